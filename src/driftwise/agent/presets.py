"""The policies behind Agent.for_clicks and Agent.for_values."""

from __future__ import annotations

from typing import Any

from driftwise.errors import BadInput
from driftwise.policies.advice import advise
from driftwise.policies.base import Compiled
from driftwise.policies.linear import LinearUCB
from driftwise.policies.memory import Keep
from driftwise.policies.names import make
from driftwise.policies.posterior import PosteriorUCB


def clicks(
    dim: int, half_life: float | str | None, click_rate: float | tuple[float, float] | None, L: float | None,
    options: dict[str, Any],
) -> tuple[Compiled, dict[str, Any]]:
    """Auto for clicks; with a half-life the posterior rule that fades by it."""
    told: dict[str, Any] = {"S": None} if click_rate is None else {"S": advise(click_rate=click_rate, L=L or 1.0)["S"]}
    if half_life is None:
        return make("Auto", dim=dim, link="logistic", L=L, **told), _clock(None, options)
    policy = PosteriorUCB(dim=dim, memory=Keep(), L=L, estimate="one-pass", **told)
    return policy, {**_clock(half_life, options), "half_life": half_life}


def values(
    dim: int, low: float, high: float, half_life: float | str | None, L: float | None, options: dict[str, Any]
) -> tuple[Compiled, dict[str, Any]]:
    """Auto for numbers; with a half-life the posterior rule that fades by it, with learned noise and scale."""
    advise(values=(low, high))  # raises where there is no range
    if half_life is None:
        return make("Auto", dim=dim, L=L), _clock(None, options)
    policy = LinearUCB(dim=dim, memory=Keep(), radius="posterior", R="learn", S=None, L=L)
    return policy, {**_clock(half_life, options), "half_life": half_life}


def _clock(half_life: float | str | None, options: dict[str, Any]) -> dict[str, Any]:
    """The clock of a half-life: the wall clock for a time, the round clock for a number."""
    more = dict(options)
    for taken in ("half_life", "rewards", "policy"):
        if taken in more:
            raise BadInput(taken, more[taken], "no such option: for_clicks and for_values set it", "use dw.Agent")
    if isinstance(half_life, str):
        more.setdefault("clock", "wall")
    return more
