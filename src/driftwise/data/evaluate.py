"""Estimates what another policy would have earned, from a log of choices with propensities.

`evaluate` replays a log with a policy in the order of time. With importance weights the policy learns every logged
reward when it came, and reports at each row what it would have played. With replay (Li et al. 2011) it learns only from
rows in which it would have played the logged arm, which is valid on logs that explored uniformly.

The weights of a log have mean 1 where its propensities are those of its choices. A test by betting checks it
(docs/math.md#weights): against weights of mean 1 nobody wins a thousandfold, but in one log of a thousand.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from driftwise._internal.progress import bar
from driftwise._internal.rng import checked_seed
from driftwise._internal.validate import one_of, real, whole
from driftwise.agent.drift import Drift
from driftwise.data.estimate import Estimate, RowTerms, estimates, logged, matched
from driftwise.data.ledger import Ledger
from driftwise.data.walk import ArmSource, Model, Player, model_of, replay, weigh_rows
from driftwise.errors import BadInput
from driftwise.kernels.point import Floats, Ints
from driftwise.policies.names import called
from driftwise.policies.own import asked
from driftwise.policies.questions import MOST_REWARD, Policy
from driftwise.tables.features import Features
from driftwise.tables.logs import read_log

Method = Literal["weights", "replay"]


@dataclass(frozen=True)
class Stretch:
    """The estimates of a stretch of the log, from row `start` to before row `stop` of the rows that count."""

    start: int
    stop: int
    logged: Estimate
    estimates: dict[str, Estimate]


@dataclass(frozen=True)
class Evaluation:
    """What a policy would have earned per row, estimated from the log of another.

    `estimates` has DR, SNIPS and IPS, or "replay". `gains` are paired differences to what was logged. `blocks` are
    stretches of time. `discounted` are estimates at the end of the log in which a row's weight halves every `half_life`
    rows; if they differ from the whole, something drifts. `missing` rows had no reward. In a log with cohorts the
    estimates use the rows of `cohort`; the policy also learns from the rows `aside`. `arms` is what the policy would
    have played, `report` its report at the end, `drift` its drift meter.

    Intervals are for other rows like these: contexts count as random. They cover the rewards of exactly these rows more
    often than 95%, especially if the model of DR is good.
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
    terms: RowTerms
    report: dict[str, Any]
    drift: Drift
    cohort: str | None = None
    aside: int = 0

    @property
    def best(self) -> str:
        """The name of the estimate to read first."""
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
            "report": self.report, "cohort": self.cohort, "aside": self.aside,
        }  # fmt: skip

    def table(self) -> tuple[list[str], list[list[str]]]:
        """Columns and rows: one row per estimate, over the whole log and discounted."""
        columns = ["estimate", "reward a row [95%]", "less logged", "recent rows", "effective rows"]
        rows = [["logged", str(self.logged), "", str(self.discounted.logged), f"{self.logged.effective:.0f}"]]
        for name, one in self.estimates.items():
            now = str(self.discounted.estimates[name])
            rows.append([name, str(one), str(self.gains[name]), now, f"{one.effective:.0f}"])
        return columns, rows

    def block_table(self) -> tuple[list[str], list[list[str]]]:
        """Columns and rows: one row per stretch of time."""
        columns = ["rows", "logged", *self.estimates, "effective rows"]
        rows = [
            [f"{one.start}–{one.stop - 1}", str(one.logged), *map(str, one.estimates.values()),
             f"{one.estimates[self.best].effective:.0f}"]
            for one in self.blocks
        ]  # fmt: skip
        return columns, rows

    def __str__(self) -> str:
        head = f"{self.policy} on {len(self.terms)} rows" + (f", {self.missing} without reward" if self.missing else "")
        if self.aside:
            head += f", {self.aside} of other cohorts than {self.cohort}"
        return "\n".join([head, _lines(*self.table()), *self.reasons(), "", _lines(*self.block_table())])

    def reasons(self) -> list[str]:
        """Why an estimate over the whole log cannot be given, one line each."""
        return [f"{name} is not known: {one.reason}" for name, one in self.estimates.items() if one.reason]


def _lines(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    grid = [columns, *rows]
    widths = [max(len(row[place]) for row in grid) for place in range(len(columns))]
    padded = ("  ".join(f"{cell:<{w}}" for cell, w in zip(row, widths, strict=True)) for row in grid)
    return "\n".join(f"  {line.rstrip()}" for line in padded)


def evaluate(
    policy: Policy, log: Any, *, method: Method = "weights", epsilon: float = 0.0, model: Model = "policy",
    ridge: float = 1.0, items: Mapping[str, Any] | None = None, blocks: int = 10,
    half_life: float | None = None, seed: int = 0, name: str | None = None, progress: bool | None = None,
    features: Features | None = None, rewards: tuple[float, float] | None = None,
) -> Evaluation:
    """What a policy would have earned on a log, with 95% intervals: over the whole, in blocks of time, and discounted.

    method: "weights" (IPS, SNIPS and doubly robust estimates of choices made on all earlier logged rewards), or
    "replay". epsilon: the share of choices that the policy draws uniformly. model: whose estimate of rewards DR uses,
    the policy's own or that of a separate `ridge` regression. items: vectors of `candidates`, for a log that has no
    `arms`; with features, the rows of items. features: makes arms of contexts and candidates. half_life: of the
    discounted estimates, in rows; a quarter of the log by default. name: the name of the policy in tables. rewards: the
    smallest and the largest possible reward; by default 0 and 1 if all rewards are in that range and one is at an end,
    otherwise those seen.
    """
    one_of("method", method, ["weights", "replay"])
    one_of("model", model, ["policy", "ridge"])
    asked(policy)
    epsilon = real("epsilon", epsilon, 0.0, 1.0, way_out="pass the share of choices to draw, e.g. 0.05")
    blocks = whole("blocks", blocks, 1, "pass how many stretches of time, e.g. 10")
    if half_life is not None:
        half_life = real("half_life", half_life, 0.0, low_open=True, way_out="pass rows, e.g. 1000")
    rows = ArmSource(read_log(log), items, features)
    book = rows.ledger
    given = book.range() if rewards is None else _range(rewards, book)
    player = Player(policy, epsilon, checked_seed(seed), book.wall)
    with bar("rows", len(book), progress, after=1.0) as tick:
        if method == "replay":
            book.check_uniform()
            arms, terms = replay(player, rows, tick)
            p, n = book.propensity[book.in_time], book.n[book.in_time]
            terms = terms.within(given, 1.0, Weights(terms.weight / p, p, n, float(n.max())).misfit())
        else:
            arms, terms = weigh_rows(player, rows, model_of(player, rows, model, ridge), given, tick)
            order = book.in_time[book.counts[book.in_time]]
            wrong = Weights(terms.weight, book.propensity[order], book.n[order], book.most()).misfit()
            terms = terms.within(given, book.most(), wrong)
    shown = called(policy) if name is None else str(name)
    return _judged(shown, method, terms, arms, blocks, half_life, book, player.report(), player.drift(given))


def _range(rewards: object, book: Ledger) -> tuple[float, float]:
    """A range that contains all rewards of the log."""
    way_out = "pass (0, 1) for clicks"
    if not isinstance(rewards, (tuple, list)) or len(rewards) != 2:
        raise BadInput("rewards", rewards, "the least and the largest reward", way_out)
    low, high = (real("rewards", one, -MOST_REWARD, MOST_REWARD, way_out=way_out) for one in rewards)
    if not low < high or book.reward.min() < low or book.reward.max() > high:
        wanted = f"a range with the rewards of the log, {book.reward.min():g} to {book.reward.max():g}"
        raise BadInput("rewards", (low, high), wanted, way_out)
    return low, high


def _judged(
    name: str, method: Method, terms: RowTerms, arms: Ints, blocks: int, half_life: float | None, book: Ledger,
    report: dict[str, Any], drift: Drift,
) -> Evaluation:
    """All estimates from the terms."""
    n = len(terms)
    half = n / 4.0 if half_life is None else half_life
    fading = np.exp(np.arange(n - 1, -1, -1) * (-math.log(2.0) / half))
    edges = np.linspace(0, n, min(blocks, n) + 1).astype(np.int64).tolist()

    def found(cut: RowTerms, discounts: Floats | None = None, gain: bool = False) -> dict[str, Estimate]:
        if method == "replay":
            return {"replay": matched(cut, discounts, gain)}
        return estimates(cut, cut.names, discounts, gain)

    def stretch(start: int, stop: int, discounts: Floats | None = None) -> Stretch:
        cut = terms.cut(slice(start, stop))
        return Stretch(start, stop, logged(cut, discounts), found(cut, discounts))

    whole_log = stretch(0, n)
    return Evaluation(
        policy=name, method=method, logged=whole_log.logged, estimates=whole_log.estimates,
        gains=found(terms, gain=True), blocks=tuple(stretch(a, b) for a, b in itertools.pairwise(edges)),
        discounted=stretch(0, n, fading), half_life=half, missing=book.missing, arms=arms, terms=terms,
        report=report, drift=drift, cohort=book.cohort, aside=len(book) - n,
    )  # fmt: skip


# Bets as shares of the largest one that can never lose everything.
BETS = np.array([0.95, *(2.0**-k for k in range(1, 12))])
# Rows in which a choice was likelier than this count as if their weight were 1 at least, in a bet on a mean below 1.
LIKELY = (0.8, 0.95, 1.0)
# The capital at which the mean is not 1, valid at .1% however long the log is (Ville's inequality).
SURE = 1000.0
_AT_ONCE = 65_536


class Weights(NamedTuple):
    """Weights in the order of time, with the propensities of the choices and the numbers of arms. No weight is larger
    than `most`, infinite if that is unknown."""

    weight: Floats
    propensity: Floats
    n: Ints
    most: float

    def wagers(self) -> list[tuple[float, Floats, Floats]]:
        """Shares of the capital, what is bet, and on which weights: half of it on a mean above 1, half below.

        An arm that was not played is taken to have had an equal share of what the choice left, 1 - p. So the largest
        weight of a row is (n-1)/(1-p), which is known where the choice was not too likely.
        """
        found = [(0.5, BETS, self.weight)]
        p, others = self.propensity, self.n - 1
        for limit in LIKELY:
            likely = p > limit
            with np.errstate(divide="ignore", invalid="ignore"):
                unseen = np.where(likely | (others == 0), 1.0, others / np.maximum(1.0 - p, 0.0))
            most = max(self.most, float(unseen.max()))
            weight = np.where(likely, np.maximum(self.weight, 1.0), self.weight)
            found.append((0.5 / len(LIKELY), -BETS / max(most - 1.0, 1.0), weight))
        return found

    def capital(self) -> float:
        """The log of the largest capital that the wagers reach."""
        wagers, best = self.wagers(), 0.0
        now = [np.full(len(BETS), math.log(share / len(BETS))) for share, _, _ in wagers]
        for start in range(0, len(self.weight), _AT_ONCE):
            every = []
            for k, (_, bets, weight) in enumerate(wagers):
                won = np.log1p(bets[:, None] * (weight[start : start + _AT_ONCE] - 1.0)).cumsum(axis=1)
                every.append(now[k][:, None] + won)
                now[k] = every[-1][:, -1]
            grown = np.concatenate(every)
            top = grown.max(axis=0)
            best = max(best, float((top + np.log(np.exp(grown - top).sum(axis=0))).max()))
        return best

    def misfit(self) -> str | None:
        """The reason why nothing can be told from weights whose mean is not 1; None where it may be 1."""
        if self.capital() < math.log(SURE):
            return None
        mean = float(self.weight.mean())
        return f"the propensities do not fit the choices: weights have mean {mean:.3g} instead of 1"
