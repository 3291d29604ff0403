"""Replays a log with a policy: the arm it would have played at each choice, on the state of that choice.

Rewards are learned in the order of the log, and choices are made in the order of their states, so the policy that wrote
the log repeats it bit for bit. Arms are read in stretches and kept from a choice to its reward.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, Literal

import numpy as np

from driftwise._internal.validate import real
from driftwise.agent.drift import Drift, Meter, reading
from driftwise.agent.states import States, start_clock
from driftwise.data.estimate import RowTerms
from driftwise.data.ledger import HOW, Ledger, read_events
from driftwise.errors import BadInput
from driftwise.kernels.point import Floats, Ints
from driftwise.policies.arms import ArmSet
from driftwise.policies.linear import LinearUCB
from driftwise.policies.memory import Keep
from driftwise.policies.own import Lent, asked
from driftwise.policies.questions import Policy
from driftwise.tables.check import check_batch
from driftwise.tables.encoder import Encoder
from driftwise.tables.features import Features
from driftwise.tables.logs import Log
from driftwise.tables.schema import Batch

# Numbers of arms that are read at a time, and rows at most: 32 MB.
_AT_ONCE, _ROWS = 4_000_000, 4096
# The largest difference between a vector that features make and the logged one.
_SAME = 1e-9

Model = Literal["policy", "ridge"]


class ArmSource:
    """The source of arms: the column arms, or candidates with vectors of items, or with features and contexts."""

    def __init__(self, log: Log, items: Mapping[str, Any] | None, features: Features | None) -> None:
        self.log = log
        self.encoder: Encoder | None = None
        self.vectors: dict[str, Floats] = {}
        self._sets: dict[tuple[str, ...], ArmSet] = {}
        self.columns: list[str] = [name for name in ("arm", "arms", "n", "x") if name in log.columns]
        if "arms" not in log.columns:
            if "candidates" not in log.columns or (items is None and features is None):
                wanted = "the column arms, or candidates with items={name: vector}, or with features="
                raise BadInput("log", f"columns {', '.join(log.columns)}", wanted, HOW)
            self.columns = [name for name in ("arm", "candidates", "n") if name in log.columns]
            self._know(items or {}, features)
        self.ledger: Ledger = read_events(log)

    def _know(self, items: Mapping[str, Any], features: Features | None) -> None:
        if features is None:
            self.vectors = {str(name): np.asarray(row, dtype=np.float64) for name, row in items.items()}
            return
        if not isinstance(features, Features):
            raise BadInput("features", features, "a dw.Features", "pass those of the agent that logged")
        self.encoder = Encoder(features)
        self.encoder.know(items)
        self.columns += [name for name in ("context", "x") if name in self.log.columns]

    def rows(self, dim: int | None) -> Iterator[tuple[int, Lent]]:
        """Rows with a reward in the order of the log, and the number of each."""
        wanted, number, place = self.ledger.row, 0, 0
        size = int(self.ledger.n.max()) * (dim or self.log.dim or 1)
        for batch in self.log.batches(self.columns, max(1, min(_ROWS, _AT_ONCE // size))):
            check_batch(batch)
            while place < len(wanted) and wanted[place] < number + batch.rows:
                row = int(wanted[place]) - number
                yield place, Lent(self._arms(batch, row), int(batch.arm[row]))  # type: ignore[index]
                place += 1
            number += batch.rows

    def _arms(self, batch: Batch, row: int) -> ArmSet:
        if batch.arms is not None:
            rows = batch.arms[row]
            if not len(rows):
                raise batch.bad(row, "arms", "no arms", "the arms that were allowed", HOW)
            made = ArmSet(rows)
        elif self.encoder is not None:
            made = ArmSet(self._encoded(batch, row))
        else:
            named = self._named(batch, row, self.vectors)
            if named not in self._sets:
                self._sets[named] = ArmSet(np.stack([self.vectors[one] for one in named]))
            made = self._sets[named]
        if not 0 <= batch.arm[row] < made.count:  # type: ignore[index]
            raise batch.bad(row, "arm", int(batch.arm[row]), f"an arm from 0 to {made.count - 1}")  # type: ignore[index]
        return made

    def _encoded(self, batch: Batch, row: int) -> Floats:
        """The arms that the features make of the context and the candidates. The vector played must be the logged
        one."""
        assert self.encoder is not None
        known = self.encoder.rows if self.encoder.features.item else None
        named = self._named(batch, row, known)
        made = self.encoder.arms((batch.context[row] if batch.context is not None else None) or {}, list(named))
        arm = int(batch.arm[row])  # type: ignore[index]
        if batch.x is not None and 0 <= arm < len(made) and not (
            made[arm].shape == batch.x[row].shape and np.abs(made[arm] - batch.x[row]).max() <= _SAME
        ):
            wanted = f"the vector that these features make of item {named[arm]!r}"
            raise batch.bad(row, "x", "another vector", wanted, "pass features= and items= of the agent that logged")
        return made

    def _named(self, batch: Batch, row: int, known: Mapping[str, Any] | None) -> tuple[str, ...]:
        named = tuple((batch.candidates[row] if batch.candidates is not None else None) or ())
        unknown = None if known is None else next((one for one in named if one not in known), None)
        if not named or unknown is not None:
            raise batch.bad(row, "candidates", unknown or "nothing", "names of items", "add it to items=")
        return named


class BorrowedRows:
    """Rows that are read when they are needed: twice, for the choice and for the update, or once."""

    def __init__(self, rows: Iterator[tuple[int, Lent]], uses: Ints) -> None:
        self._rows, self._left = rows, uses
        self._held: dict[int, Lent] = {}

    def take(self, place: int) -> Lent:
        """A row by its number. Rows before it are read, and kept while they will still be needed."""
        while place not in self._held:
            number, row = next(self._rows)
            if self._left[number]:
                self._held[number] = row
        self._left[place] -= 1
        return self._held[place] if self._left[place] else self._held.pop(place)


class Player:
    """A policy with its state, which chooses and learns row by row, as in an agent."""

    def __init__(self, policy: Policy, epsilon: float, seed: int, wall: bool = False) -> None:
        self.policy, self.epsilon, self.seed = asked(policy), epsilon, seed
        self.policy.check_shares()
        self._states = States(self.policy, self.policy.start(seed), None if wall else 0)
        self.meter = Meter()

    @property
    def clock(self) -> int:
        """The tick of the last update."""
        return self._states.tick

    def at(self, tick: int) -> Any:
        """The state that a choice at this tick is made on."""
        states = self._states
        if self.policy.counts_rounds and tick > states.tick:  # rounds without a reward end before the next begins
            self.policy.advance(states.front, float(tick - states.tick))
            states.tick = tick
        return states.at(tick)

    def choose(self, arms: ArmSet, draw: int, tick: int) -> int:
        """The arm it would play."""
        return int(self.policy.choose(self.at(tick), arms, None if self.policy.deterministic else draw).arm)

    def shares(self, arms: ArmSet, draw: int, tick: int) -> tuple[int, Floats]:
        """The arm it would play, and the probability of each arm."""
        arm = self.choose(arms, draw, tick)
        found = self.policy.shares(self.at(tick), arms, arm, draw)
        return arm, self.epsilon / arms.count + (1.0 - self.epsilon) * found

    def means(self, arms: ArmSet, tick: int) -> Floats:
        """Its estimate of every arm's reward."""
        return np.asarray(self.policy.scores(self.at(tick), arms).mean)

    def check(self, arms: ArmSet) -> None:
        """Refuse arms that the policy cannot learn from, for rows at which it does not choose."""
        self.policy.check_set(arms)

    def report(self) -> dict[str, Any]:
        """The report of a policy that learns more than θ."""
        return dict(self.policy.report(self._states.front)) if self.policy.reports else {}

    def learn(self, row: Lent, reward: float, tick: int, born: int) -> None:
        """Learn a reward as `Agent.reward` does."""
        states, x = self._states, row.column
        shown = row if self.policy.taught_with_arms else x
        if states.zero is None:  # on the wall clock time begins with the first lesson
            start_clock(self.policy, states.front, born)
            states.zero = states.tick = born
        self.policy.take(states.front, shown, reward, float(tick - states.tick), float(tick - born))
        states.tick, states.viewed = tick, -1
        self.meter.recent.append((tick, born, x, reward))
        self.meter.weigh(tick, self.policy.weights(states.front))

    def drift(self, rewards: tuple[float, float]) -> Drift:
        """How long it remembers by the end, and whether another memory would have predicted better."""
        return reading(self.policy, self._states.front, self.meter, rewards, lambda _: None)


def model_of(player: Player, source: ArmSource, model: Model, ridge: float) -> Player | None:
    """The model that predicts rewards for DR; None if there is none."""
    if model == "policy":
        return player if player.policy.scores_arms else None
    ridge = real("ridge", ridge, 0.0, low_open=True, way_out="pass λ, e.g. 1")
    longest, dim = 1e-12, 1
    for _, row in source.rows(player.policy.dim):
        longest, dim = max(longest, row.arms.longest), row.arms.dim
    return Player(LinearUCB(dim=dim, memory=Keep(), lam=ridge, L=longest, R=0.0), 0.0, 0, source.ledger.wall)


def weigh_rows(
    player: Player, source: ArmSource, model: Player | None, rewards: tuple[float, float], tick: Callable[[float], None]
) -> tuple[Ints, RowTerms]:
    """The weight of every row that counts, and the model's predictions, on the state of each choice, in order of time.

    A prediction is clipped to the range of rewards before it is weighted by the policy's shares: the mean of w q̂ is
    Σπq̂ only if both use the same q̂.
    """
    ledger, n = source.ledger, len(source.ledger)
    arms, weight = np.empty(n, dtype=np.int64), np.empty(n)
    said, expected = np.empty(n), np.empty(n)
    students = [player] if model is None or model is player else [player, model]
    held = BorrowedRows(source.rows(player.policy.dim), 1 + ledger.counts.astype(np.int64))
    learned = 0

    def learn(upto: int) -> int:
        for place in ledger.lessons[learned:upto].tolist():
            row = held.take(place)
            for one in students:
                if not ledger.counts[place]:
                    one.check(row.arms)
                one.learn(row, float(ledger.reward[place]), int(ledger.paid[place]), int(ledger.born[place]))
            tick(1)
        return max(learned, upto)

    for place in ledger.choices[ledger.counts[ledger.choices]].tolist():
        learned = learn(int(ledger.known[place]))
        row, upon = held.take(place), int(ledger.upon[place])
        arms[place], shares = player.shares(row.arms, int(ledger.seq[place]), upon)
        weight[place] = shares[row.arm] / ledger.propensity[place]
        if model is not None:
            means = np.clip(model.means(row.arms, upon), *rewards)
            if np.isnan(means).any():
                wanted = "a number as its estimate of every arm's reward"
                raise BadInput("policy", "NaN", wanted, 'rescale the rewards, or pass model="ridge"')
            said[place], expected[place] = means[row.arm], shares @ means
    learn(n)
    order = ledger.in_time
    order = order[ledger.counts[order]]
    more = (said[order], expected[order]) if model is not None else (None, None)
    return arms[order], RowTerms(ledger.reward[order], weight[order], *more)


def replay(player: Player, source: ArmSource, tick: Callable[[float], None]) -> tuple[Ints, RowTerms]:
    """Rows in which the policy plays the logged arm are its experience; the others are ignored."""
    ledger, n = source.ledger, len(source.ledger)
    arms, weight = np.empty(n, dtype=np.int64), np.zeros(n)
    drawn = np.random.default_rng(player.seed)  # for the share epsilon
    held = BorrowedRows(source.rows(player.policy.dim), np.ones(n, dtype=np.int64))
    for place, number in enumerate(ledger.in_time.tolist()):
        row = held.take(number)
        arm = player.choose(row.arms, place, player.clock)
        if player.epsilon and drawn.random() < player.epsilon:
            arm = int(drawn.integers(row.arms.count))
        arms[place] = arm
        if arm == row.arm:
            weight[place] = 1.0
            player.learn(row, float(ledger.reward[number]), player.clock + 1, player.clock + 1)
        tick(1)
    if not weight.any():
        raise BadInput("log", "no row in which the policy plays what was played", "one that matches", "log more rows")
    return arms, RowTerms(ledger.reward[ledger.in_time], weight)


