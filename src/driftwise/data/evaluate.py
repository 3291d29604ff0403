"""Would another policy have earned more? Answers from a log of choices with propensities.

`evaluate` lets a policy walk through a log in the order of time. By importance weights it learns from every logged
reward once that had come, and says at each row what it would have played; by replay (Li et al. 2011) it learns only
from rows in which it would have played the arm that was, which is as if it had been there, on logs that explored
uniformly.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from driftwise.agent.drift import Drift, Meter, reading
from driftwise.agent.own import Lent, Own
from driftwise.border import one_of, real, whole
from driftwise.data.estimate import Estimate, Terms, estimate, logged
from driftwise.errors import BadInput
from driftwise.kernels.point import Floats, Ints
from driftwise.policies.adapt import Bank
from driftwise.policies.arms import ArmSet
from driftwise.policies.base import Compiled, Policy
from driftwise.policies.linear import LinearUCB
from driftwise.policies.memory import Keep
from driftwise.policies.sampling import Sampling
from driftwise.progress import bar
from driftwise.rng import checked_seed
from driftwise.tables.logs import read_log
from driftwise.tables.schema import Batch

_HOW = "log with dw.Agent(…, epsilon=0.05) and agent.log_to(path, arms=True)"
_NEEDED = ("arm", "reward", "propensity")
_MAY_HAVE = ("seq", "born", "reward_tick", "reward_seq", "arms", "candidates")
# By what share a propensity may be off 1/n on a log that explored uniformly.
_UNIFORM = 1e-6
# Rows that are read and judged before anybody wonders how long it takes.
_SHORT = 1e4

Method = Literal["weights", "replay"]
Model = Literal["policy", "ridge"]


@dataclass(frozen=True)
class Stretch:
    """What a stretch of the log says, from row `start` to before row `stop` of those that count."""

    start: int
    stop: int
    logged: Estimate
    estimates: dict[str, Estimate]


@dataclass(frozen=True)
class Evaluation:
    """What a policy would have earned a row, by the log of another.

    `estimates` has IPS, SNIPS and DR, or "replay"; `gains` the same less what was logged, paired; `blocks` stretches of
    time; `discounted` estimates in which a row's weight halves every `half_life` rows, at the end of the log: where
    they differ from the whole, something drifts. `missing` rows had no reward. `arms` is what the policy would have
    played, `report` what it has to say at the end, `drift` its drift meter by then.

    Intervals are for other rows like these: contexts drawn anew count as chance. What the very rows of the log would
    have paid lies in them more often than promised, the more so the better the model of DR is.
    """

    policy: str
    method: Method
    logged: Estimate
    estimates: dict[str, Estimate]
    gains: dict[str, Estimate]
    blocks: tuple[Stretch, ...]
    discounted: Stretch
    half_life: float
    missing: int
    arms: Ints
    terms: Terms
    report: dict[str, Any]
    drift: Drift

    @property
    def best(self) -> str:
        """The estimate to look at first."""
        return next(name for name in ("DR", "SNIPS", "replay") if name in self.estimates)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers."""
        def named(estimates: Mapping[str, Estimate]) -> dict[str, Any]:
            return {name: one.to_dict() for name, one in estimates.items()}

        def stretch(one: Stretch) -> dict[str, Any]:
            return {"start": one.start, "stop": one.stop, "logged": one.logged.to_dict(), **named(one.estimates)}

        return {
            "policy": self.policy, "method": self.method, "logged": self.logged.to_dict(),
            "estimates": named(self.estimates), "gains": named(self.gains), "blocks": list(map(stretch, self.blocks)),
            "discounted": stretch(self.discounted), "half_life": self.half_life, "missing": self.missing,
            "report": self.report,
        }  # fmt: skip

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Columns and rows: an estimate a row, over the whole log and discounted."""
        columns = ["estimate", "reward a row ± 95%", "less logged", "recent rows", "effective rows"]
        rows = [["logged", str(self.logged), "", str(self.discounted.logged), f"{self.logged.effective:.0f}"]]
        for name, one in self.estimates.items():
            now = str(self.discounted.estimates[name])
            rows.append([name, str(one), str(self.gains[name]), now, f"{one.effective:.0f}"])
        return columns, rows

    def block_table(self) -> tuple[list[str], list[list[str]]]:
        """The stretches of time, one a row."""
        columns = ["rows", "logged", *self.estimates, "effective rows"]
        rows = [
            [f"{one.start}–{one.stop - 1}", str(one.logged), *map(str, one.estimates.values()),
             f"{one.estimates[self.best].effective:.0f}"]
            for one in self.blocks
        ]  # fmt: skip
        return columns, rows

    def __str__(self) -> str:
        head = f"{self.policy} on {len(self.terms)} rows" + (f", {self.missing} without reward" if self.missing else "")
        return "\n".join([head, _lines(*self.table()), "", _lines(*self.block_table())])


def _lines(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    grid = [columns, *rows]
    widths = [max(len(row[place]) for row in grid) for place in range(len(columns))]
    padded = ("  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)) for row in grid)
    return "\n".join(f"  {line.rstrip()}" for line in padded)


def evaluate(
    policy: Policy, log: Any, *, method: Method = "weights", epsilon: float = 0.0, model: Model = "policy",
    ridge: float = 1.0, items: Mapping[str, npt.ArrayLike] | None = None, blocks: int = 10,
    half_life: float | None = None, seed: int = 0, name: str | None = None, progress: bool | None = None,
) -> Evaluation:
    """What a policy would have earned on a log, with 95% intervals: over the whole, in blocks of time, and discounted.

    method: "weights" (IPS, SNIPS and doubly robust estimates of choices made on all earlier logged rewards), or
    "replay". epsilon: the share of choices the policy is to draw uniformly. model: whose estimate of rewards DR uses,
    the policy's own or that of a `ridge` regression beside it. items: vectors of `candidates`, for a log that has no
    `arms`. half_life: of the discounted estimates, in rows; a quarter of the log by default. name: of the policy, for
    tables.
    """
    one_of("method", method, ["weights", "replay"])
    one_of("model", model, ["policy", "ridge"])
    if isinstance(policy, type) or not isinstance(policy, Policy):
        raise BadInput("policy", policy, "an object with start, choose and learn", 'pass dw.make("Auto", dim=…)')
    epsilon = real("epsilon", epsilon, 0.0, 1.0, way_out="pass the share of choices to draw, e.g. 0.05")
    blocks = whole("blocks", blocks, 1, "pass how many stretches of time to look at, e.g. 10")
    if half_life is not None:
        half_life = real("half_life", half_life, 0.0, low_open=True, way_out="pass rows, e.g. 1000")
    rows = _Rows(log, items, progress)
    player = _Player(policy, epsilon, checked_seed(seed))
    with bar("rows", len(rows), progress, least=_SHORT) as tick:
        if method == "replay":
            rows.check_uniform()
            arms, terms = _replay(player, rows, tick)
        else:
            arms, terms = _weigh(player, rows, _model(player, rows, model, ridge), tick)
    called = type(policy).__name__ if name is None else str(name)
    return _judged(called, method, terms, arms, blocks, half_life, rows.missing, player.report(), player.drift(rows))


def _judged(
    name: str, method: Method, terms: Terms, arms: Ints, blocks: int, half_life: float | None, missing: int,
    report: dict[str, Any], drift: Drift,
) -> Evaluation:
    """Estimates of all kinds from the terms."""
    n = len(terms)
    half = n / 4.0 if half_life is None else half_life
    fading = np.exp(np.arange(n - 1, -1, -1) * (-math.log(2.0) / half))
    edges = np.linspace(0, n, min(blocks, n) + 1).astype(np.int64).tolist()
    names = {"replay": "SNIPS"} if method == "replay" else {one: one for one in terms.names}

    def stretch(start: int, stop: int, discounts: Floats | None = None) -> Stretch:
        cut = terms.cut(slice(start, stop))
        found = {shown: estimate(cut, one, discounts) for shown, one in names.items()}
        return Stretch(start, stop, logged(cut, discounts), found)

    whole_log = stretch(0, n)
    return Evaluation(
        policy=name, method=method, logged=whole_log.logged, estimates=whole_log.estimates,
        gains={shown: estimate(terms, one, minus_logged=True) for shown, one in names.items()},
        blocks=tuple(stretch(a, b) for a, b in itertools.pairwise(edges)),
        discounted=stretch(0, n, fading), half_life=half, missing=missing, arms=arms, terms=terms,
        report=report, drift=drift,
    )  # fmt: skip


# ------------------------------------------------------------------------------------------------- the log


class _Row(NamedTuple):
    arms: ArmSet
    arm: int
    reward: float
    propensity: float
    seq: int


class _Rows:
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
        self.rows: list[_Row] = []
        self.missing, born, paid, turn = 0, [], [], []
        self._sets: dict[tuple[str, ...], ArmSet] = {}
        with bar("reading", log.rows, progress, least=_SHORT) as tick:
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

    def _row(self, batch: Batch, row: int, at: int) -> _Row:
        arms, arm = self._arms(batch, row), int(batch.arm[row])  # type: ignore[index]
        propensity = float(batch.propensity[row])  # type: ignore[index]
        if not 0 <= arm < arms.count:
            raise batch.bad(row, "arm", arm, f"an arm from 0 to {arms.count - 1}")
        if not 0.0 < propensity <= 1.0 + 1e-9:
            got = "nothing at all" if math.isnan(propensity) else propensity
            raise batch.bad(row, "propensity", got, "a number in (0, 1], how likely the choice was", _HOW)
        seq = at + 1 if batch.seq is None else int(batch.seq[row])
        return _Row(arms, arm, float(batch.reward[row]), propensity, seq)  # type: ignore[index]

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


# ------------------------------------------------------------------------------------------------- the policy


class _Player:
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

    def drift(self, rows: _Rows) -> Drift:
        """How long it remembers by the end, and whether another memory would have predicted better."""
        each = [row.reward for row in rows.rows]
        low, high = min(each), max(each)
        if low == high:  # nobody said what a reward may be, and a range must not be empty
            low, high = low - 0.5, high + 0.5
        return reading(self.policy, self.state, self.meter, (low, high), lambda _: None)


def _model(player: _Player, rows: _Rows, model: Model, ridge: float) -> _Player | None:
    """Who foretells rewards for DR; None where nobody can."""
    if model == "policy":
        return player if player.can_rank else None
    ridge = real("ridge", ridge, 0.0, low_open=True, way_out="pass λ, e.g. 1")
    longest = max(one.arms.longest for one in rows.rows)
    made = LinearUCB(dim=rows.rows[0].arms.dim, memory=Keep(), lam=ridge, L=max(longest, 1e-12), R=0.0)
    return _Player(made, 0.0, 0)


def _weigh(
    player: _Player, rows: _Rows, model: _Player | None, tick: Callable[[float], None]
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


def _replay(player: _Player, rows: _Rows, tick: Callable[[float], None]) -> tuple[Ints, Terms]:
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
