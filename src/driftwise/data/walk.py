"""A policy walks through a log: rows in the order of time, what it would have played at each, and what that weighs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from driftwise.agent.drift import Drift, Meter, reading
from driftwise.agent.own import Lent, Own
from driftwise.border import real
from driftwise.data.estimate import Terms
from driftwise.errors import BadInput
from driftwise.kernels.point import Floats, Ints
from driftwise.policies.adapt import Bank
from driftwise.policies.arms import ArmSet
from driftwise.policies.base import Compiled, Policy
from driftwise.policies.linear import LinearUCB
from driftwise.policies.memory import Keep
from driftwise.policies.sampling import Sampling
from driftwise.progress import bar
from driftwise.tables.logs import read_log
from driftwise.tables.schema import Batch

_HOW = "log with dw.Agent(…, epsilon=0.05) and agent.log_to(path, arms=True)"
_NEEDED = ("arm", "reward", "propensity")
_MAY_HAVE = ("seq", "born", "reward_tick", "reward_seq", "arms", "candidates")
# By what share a propensity may be off 1/n on a log that explored uniformly.
_UNIFORM = 1e-6
# Rows that are read and judged before anybody wonders how long it takes.
SHORT = 1e4

Model = Literal["policy", "ridge"]


class Row(NamedTuple):
    """A choice that was logged, and what it brought."""

    arms: ArmSet
    arm: int
    reward: float
    propensity: float
    seq: int


class Rows:
    """The rows of a log that have a reward, in the order their choices were made; ticks begin at 1."""

    def __init__(self, source: Any, items: Mapping[str, npt.ArrayLike] | None, progress: bool | None) -> None:
        log = read_log(source)
        if "propensity" not in log.columns:
            raise BadInput("log", "no column propensity", "the propensity of each choice", _HOW)
        log.require(_NEEDED, "which estimates are made of")
        if "arms" not in log.columns and not (items is not None and "candidates" in log.columns):
            wanted = "the column arms, or candidates with items={name: vector}"
            raise BadInput("log", f"columns {', '.join(log.columns)}", wanted, _HOW)
        names = [name for name in (*_NEEDED, *_MAY_HAVE) if name in log.columns]
        self.items = None if items is None else {str(k): np.asarray(v, dtype=np.float64) for k, v in items.items()}
        self.rows: list[Row] = []
        self.missing, born, paid, turn = 0, [], [], []
        self._sets: dict[tuple[str, ...], ArmSet] = {}
        with bar("reading", log.rows, progress, least=SHORT) as tick:
            for batch, row in ((one, row) for one in log.batches(names) for row in range(one.rows)):
                tick(1)
                if math.isnan(batch.reward[row]):  # type: ignore[index]
                    self.missing += 1
                    continue
                at = len(self.rows)
                self.rows.append(self._row(batch, row, at))
                born.append(at + 1 if batch.born is None else int(batch.born[row]))
                timed = batch.born is not None and batch.reward_tick is not None
                paid.append(int(batch.reward_tick[row]) if timed else born[-1])  # type: ignore[index]
                turn.append(at if batch.reward_seq is None else int(batch.reward_seq[row]))
                if paid[-1] < born[-1]:
                    raise batch.bad(row, "reward_tick", paid[-1], f"a tick from {born[-1]}, its choice's, up")
        if len(self.rows) < 2:
            raise BadInput("log", f"{len(self.rows)} rows with a reward", "at least two", "wait for more rewards")
        if all(one.propensity == 1.0 for one in self.rows) and any(one.arms.count > 1 for one in self.rows):
            wanted = "choices some of which were drawn: a propensity of 1 says nothing of other arms"
            raise BadInput("log", "propensity 1 in every row", wanted, _HOW)
        first = min(born) - 1
        self.born, self.paid = np.array(born) - first, np.array(paid) - first
        seqs = np.array([one.seq for one in self.rows])
        self.decisions = np.lexsort((np.arange(len(seqs)), seqs, self.born))
        self.lessons = np.lexsort((np.array(turn), self.paid))

    def __len__(self) -> int:
        return len(self.rows)

    def _row(self, batch: Batch, row: int, at: int) -> Row:
        arms, arm = self._arms(batch, row), int(batch.arm[row])  # type: ignore[index]
        propensity = float(batch.propensity[row])  # type: ignore[index]
        if not 0 <= arm < arms.count:
            raise batch.bad(row, "arm", arm, f"an arm from 0 to {arms.count - 1}")
        if not 0.0 < propensity <= 1.0 + 1e-9:
            got = "nothing at all" if math.isnan(propensity) else propensity
            raise batch.bad(row, "propensity", got, "a number in (0, 1], how likely the choice was", _HOW)
        seq = at + 1 if batch.seq is None else int(batch.seq[row])
        return Row(arms, arm, float(batch.reward[row]), propensity, seq)  # type: ignore[index]

    def _arms(self, batch: Batch, row: int) -> ArmSet:
        if batch.arms is not None:
            rows = batch.arms[row]
            if not len(rows):
                raise batch.bad(row, "arms", "no arms at all", "the arms that were allowed", _HOW)
            return ArmSet(rows)
        assert self.items is not None
        named = tuple((batch.candidates[row] if batch.candidates is not None else None) or ())
        unknown = next((one for one in named if one not in self.items), None)
        if not named or unknown is not None:
            raise batch.bad(row, "candidates", unknown or "nothing at all", "names of items", "add it to items=")
        if named not in self._sets:
            self._sets[named] = ArmSet(np.stack([self.items[one] for one in named]))
        return self._sets[named]

    def check_uniform(self) -> None:
        """Replay needs choices drawn uniformly, or the sentence with the first that was not."""
        for number, one in enumerate(self.rows):
            if abs(one.propensity * one.arms.count - 1.0) > _UNIFORM:
                got = f"propensity {one.propensity:g} among {one.arms.count} arms in row {number} with a reward"
                raise BadInput("log", got, "1/n in every row for replay", 'pass method="weights", or log at epsilon=1')


class Player:
    """A policy with its state, asked and taught a row at a time."""

    def __init__(self, policy: Policy, epsilon: float, seed: int) -> None:
        asked: Any = policy if isinstance(policy, Compiled) else Own(policy)
        self.policy, self.epsilon, self.seed, self.clock = asked, epsilon, seed, 0
        self.state: Any = asked.start(seed)
        self.meter = Meter()
        own = isinstance(self.policy, Own)
        self._shares: Callable[..., Any] | None = getattr(policy, "propensities", None) if own else None
        self.can_rank = not own or self.policy.ranks
        if own and not self.policy.deterministic and self._shares is None:
            wanted = "propensities(state, arms, draw) of a policy that samples"
            raise BadInput("policy", type(policy).__name__, wanted, "add it, so that its choices can be weighed")

    def shares(self, arms: ArmSet, draw: int) -> tuple[int, Floats]:
        """The arm it would play, and how likely it plays each."""
        policy, state, n = self.policy, self.state, arms.count
        arm = policy.choose(state, arms, None if policy.deterministic else draw).arm
        if isinstance(policy, Sampling):
            found = policy.propensities(state, arms, draw).shares
        elif self._shares is not None:
            found = np.asarray(self._shares(state.inside, policy.rows(arms), draw), dtype=np.float64).reshape(n)
        elif policy.deterministic:
            found = np.zeros(n)
            found[arm] = 1.0
        else:
            found = np.array([policy.share_of(state, arms, one) for one in range(n)])
        return arm, self.epsilon / n + (1.0 - self.epsilon) * found

    def means(self, arms: ArmSet) -> Floats:
        """Its estimate of every arm's reward."""
        return np.asarray(self.policy.scores(self.state, arms).mean)

    def report(self) -> dict[str, Any]:
        """What a policy that learns more than θ has to say."""
        return dict(self.policy.report(self.state)) if getattr(self.policy, "reports", False) else {}

    def learn(self, arms: ArmSet, arm: int, reward: float, tick: int, born: int) -> None:
        ticks, self.clock = float(tick - self.clock), tick
        if isinstance(self.policy, Own):
            self.policy.take(self.state, Lent(arms, arm), reward, ticks, float(tick - born))
        else:
            self.policy.learn(self.state, arms, arm, reward, ticks, float(tick - born))
        self.meter.recent.append((tick, born, arms.columns[:, :, arm : arm + 1], reward))
        if isinstance(self.policy, Bank):
            self.meter.weigh(tick, self.state.scores)

    def drift(self, rows: Rows) -> Drift:
        """How long it remembers by the end, and whether another memory would have predicted better."""
        each = [row.reward for row in rows.rows]
        low, high = min(each), max(each)
        if low == high:  # nobody said what a reward may be, and a range must not be empty
            low, high = low - 0.5, high + 0.5
        return reading(self.policy, self.state, self.meter, (low, high), lambda _: None)


def model_of(player: Player, rows: Rows, model: Model, ridge: float) -> Player | None:
    """Who foretells rewards for DR; None where nobody can."""
    if model == "policy":
        return player if player.can_rank else None
    ridge = real("ridge", ridge, 0.0, low_open=True, way_out="pass λ, e.g. 1")
    longest = max(one.arms.longest for one in rows.rows)
    made = LinearUCB(dim=rows.rows[0].arms.dim, memory=Keep(), lam=ridge, L=max(longest, 1e-12), R=0.0)
    return Player(made, 0.0, 0)


def weigh(
    player: Player, rows: Rows, model: Player | None, tick: Callable[[float], None]
) -> tuple[Ints, Terms]:
    """Every row's weight, and what the model says, on the rewards that had come before its choice."""
    n, known = len(rows), 0
    arms, weight, reward = np.empty(n, dtype=np.int64), np.empty(n), np.empty(n)
    said, expected = np.empty(n), np.empty(n)
    students = [player] if model is None or model is player else [player, model]
    for place, number in enumerate(rows.decisions):
        while known < n and rows.paid[rows.lessons[known]] < rows.born[number]:
            past = int(rows.lessons[known])
            old = rows.rows[past]
            for one in students:
                one.learn(old.arms, old.arm, old.reward, int(rows.paid[past]), int(rows.born[past]))
            known += 1
        row = rows.rows[number]
        arms[place], shares = player.shares(row.arms, row.seq)
        weight[place], reward[place] = shares[row.arm] / row.propensity, row.reward
        if model is not None:
            means = model.means(row.arms)
            said[place], expected[place] = means[row.arm], shares @ means
        tick(1)
    return arms, Terms(reward, weight, *((said, expected) if model is not None else ()))


def replay(player: Player, rows: Rows, tick: Callable[[float], None]) -> tuple[Ints, Terms]:
    """Rows in which the policy plays what was played are its own experience, the others never were."""
    n = len(rows)
    arms, weight, reward = np.empty(n, dtype=np.int64), np.zeros(n), np.empty(n)
    drawn = np.random.default_rng(player.seed)  # for the share epsilon
    for place, number in enumerate(rows.decisions):
        row = rows.rows[number]
        arm = player.policy.choose(player.state, row.arms, None if player.policy.deterministic else place).arm
        if player.epsilon and drawn.random() < player.epsilon:
            arm = int(drawn.integers(row.arms.count))
        arms[place], reward[place] = arm, row.reward
        if arm == row.arm:
            weight[place] = 1.0
            player.learn(row.arms, arm, row.reward, player.clock + 1, player.clock + 1)
        tick(1)
    if not weight.any():
        raise BadInput("log", "no row in which the policy plays what was played", "one that matches", "log more rows")
    return arms, Terms(reward, weight)
