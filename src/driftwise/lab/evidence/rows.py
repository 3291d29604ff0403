"""Summaries of plays: a row per policy, intervals over draws and over stretches of time, and the story of a change."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from driftwise.data.outcomes import block_means
from driftwise.lab.evidence.plays import AUTO, STATIC, Facts, Play
from driftwise.simulation import t_interval

# The number of stretches that an interval over time treats as independent.
BLOCKS = 40


@dataclass(frozen=True)
class EvidenceRow:
    """A policy on a set: its reward per round, the difference to static with 95% half-widths, and the same for shuffled
    rows.

    `part` is the share of the rounds that it played, from the first on. The difference is to static on these rounds.
    """

    policy: str
    reward: float
    draws: int
    part: float
    less_static: float
    over_draws: float
    over_time: float
    shuffled: float
    shuffled_less_static: float
    shuffled_over_draws: float

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers; None for what is not known."""
        return {name: None if isinstance(value, float) and not math.isfinite(value) else value
                for name, value in asdict(self).items()}  # fmt: skip


def rows(time: Mapping[str, Sequence[Play]], shuffled: Mapping[str, Sequence[Play]]) -> list[EvidenceRow]:
    """A row for every policy with plays in the order of time. Its draws are paired with those of static."""
    found = []
    for name, plays in time.items():
        if not plays:
            continue
        rewards, (gap, draws, wide) = [one.reward.mean() for one in plays], _against(plays, time.get(STATIC, ()))
        mixed = shuffled.get(name, ())
        other = float(np.mean([one.reward.mean() for one in mixed])) if mixed else math.nan
        less, over, _ = _against(mixed, shuffled.get(STATIC, ()))
        part = len(plays[0].reward) / max(len(one.reward) for every in time.values() for one in every)
        found.append(EvidenceRow(name, float(np.mean(rewards)), len(plays), part, gap, draws, wide, other, less, over))
    return found


def _against(plays: Sequence[Play], static: Sequence[Play]) -> tuple[float, float, float]:
    """The mean difference, and its half-widths over draws and over time."""
    apart = np.array([a.reward - b.reward[: len(a.reward)] for a, b in zip(plays, static, strict=False)])
    if not len(apart):
        return math.nan, math.nan, math.nan
    gap, draws = t_interval(apart.mean(axis=1))
    stretches = block_means(apart.mean(axis=0), BLOCKS) if apart.shape[1] > 1 else apart.mean(axis=0)
    return gap, draws, t_interval(stretches)[1]


@dataclass(frozen=True)
class Story:
    """One change of a set: the arm that was best before a stretch of time and the arm that was best from it on.

    `noticed` is the first stretch in which Auto plays the new arm more than the old one (None: never), and `cost` what
    Auto lost to the new arm by then. `lost` and `static_lost` are what Auto and static lost to the new arm from the
    change to the end. All are rewards per draw.
    """

    at: int
    before: str
    after: str
    noticed: int | None
    cost: float
    lost: float
    static_lost: float
    rounds: int  # of a stretch


def story(facts: Facts, plays: Mapping[str, Sequence[Play]]) -> Story | None:
    """The most important change: the time at which switching from one arm to another gains most over any single arm.

    None where arms are not always available: an arm that is best where it is available cannot be played throughout.
    """
    auto, static, paid = plays.get(AUTO, ()), plays.get(STATIC, ()), facts.paid
    if not auto or not static or len(paid) < 4 or not facts.whole:
        return None
    upto = np.cumsum(paid, axis=0)
    worth = upto[:-1].max(axis=1) + (upto[-1] - upto[:-1]).max(axis=1)
    at = int(np.argmax(worth)) + 1
    old, new = int(upto[at - 1].argmax()), int((upto[-1] - upto[at - 1]).argmax())
    if old == new:
        return None
    shares = np.mean([one.shares for one in auto], axis=0)
    later = np.flatnonzero(shares[at:, new] > shares[at:, old])
    noticed = at + int(later[0]) if len(later) else None
    size = facts.rounds / len(paid)
    earned = {name: np.mean([one.reward for one in plays[name]], axis=0) for name in (AUTO, STATIC)}
    end = len(paid) if noticed is None else noticed
    cost, lost, static_lost = (
        float((paid[at:until, new] - earned[name][at:until]).sum() * size)
        for name, until in ((AUTO, end), (AUTO, len(paid)), (STATIC, len(paid)))
    )
    return Story(at, facts.names[old], facts.names[new], noticed, cost, lost, static_lost, round(size))
