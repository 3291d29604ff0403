"""The policies behind Agent.for_clicks and Agent.for_values."""

from __future__ import annotations

import math
from typing import Any

from driftwise.errors import BadInput
from driftwise.policies.advice import advise
from driftwise.policies.auto import Auto
from driftwise.policies.base import Compiled
from driftwise.policies.memory import Keep


def clicks(
    dim: int, half_life: float | str | None, click_rate: float | tuple[float, float] | None, L: float | None,
    options: dict[str, Any],
) -> tuple[Compiled, dict[str, Any]]:
    """Auto for clicks; with a half-life its one memory fades by it."""
    rate = None
    if click_rate is not None:
        advise(click_rate=click_rate, L=L or 1.0)  # raises where they are no chances
        low, high = click_rate if isinstance(click_rate, (tuple, list)) else (click_rate, click_rate)
        odds = math.sqrt(low / (1.0 - low) * high / (1.0 - high))
        rate = odds / (1.0 + odds)
    memory = None if half_life is None else Keep()
    return Auto(dim=dim, link="logistic", rate=rate, L=L, memory=memory), _told(half_life, options)


def values(
    dim: int, low: float, high: float, half_life: float | str | None, L: float | None, options: dict[str, Any]
) -> tuple[Compiled, dict[str, Any]]:
    """Auto for numbers; with a half-life its one memory fades by it."""
    advise(values=(low, high))  # raises where there is no range
    return Auto(dim=dim, L=L, memory=None if half_life is None else Keep()), _told(half_life, options)


def _told(half_life: float | str | None, options: dict[str, Any]) -> dict[str, Any]:
    """The options of an agent, with the half-life if there is one."""
    more = _clock(half_life, options)
    return more if half_life is None else {**more, "half_life": half_life}


def _clock(half_life: float | str | None, options: dict[str, Any]) -> dict[str, Any]:
    """The clock of a half-life: the wall clock for a time, the round clock for a number."""
    more = dict(options)
    for taken in ("half_life", "rewards", "policy"):
        if taken in more:
            raise BadInput(taken, more[taken], "no such option: for_clicks and for_values set it", "use dw.Agent")
    if isinstance(half_life, str):
        more.setdefault("clock", "wall")
    return more
