"""Good policies for those who know their product and not this library."""

from __future__ import annotations

from typing import Any

from driftwise.errors import BadInput
from driftwise.policies.advice import advise
from driftwise.policies.base import Compiled
from driftwise.policies.half_life import half_life_to_forget, seconds, ticks
from driftwise.policies.linear import LinearUCB
from driftwise.policies.memory import Keep
from driftwise.policies.names import BANK_EXPLORATION, make

# The ball of radius 3 holds rates from 5% to 95%.
ANY_RATE = 3.0


def clicks(
    dim: int, half_life: float | str | None, click_rate: float | tuple[float, float] | None, L: float,
    options: dict[str, Any],
) -> tuple[Compiled, dict[str, Any]]:
    """A bank for clicks; with a half-life a bank of that one memory, because its judge is what serves clicks well."""
    told = {"S": ANY_RATE / L} if click_rate is None else {"S": advise(click_rate=click_rate, L=L)["S"]}
    more = _clock(half_life, options, bank=True)
    fields: dict[str, Any] = {**told, "L": L}
    if half_life is not None:
        tick = more.get("tick")
        fields["memories"] = (1.0 / half_life_to_forget(ticks("half_life", half_life, tick)),)
    return make("Bank+SCB-WeightUCB", dim=dim, **fields), more


def values(
    dim: int, low: float, high: float, half_life: float | str | None, L: float, options: dict[str, Any]
) -> tuple[Compiled, dict[str, Any]]:
    """A bank for numbers; with a half-life the linear policy that fades by it."""
    told = advise(values=(low, high), L=L)
    if half_life is None:
        return make("Bank+LB-WeightUCB", dim=dim, L=L, **told), _clock(None, options, bank=True)
    policy = LinearUCB(
        dim=dim, memory=Keep(), lam=float(dim), delta=None, L=L, exploration=BANK_EXPLORATION, **told
    )
    return policy, {**_clock(half_life, options, bank=False), "half_life": half_life}


def _clock(half_life: float | str | None, options: dict[str, Any], bank: bool) -> dict[str, Any]:
    """A half-life in time is on the wall clock, one in rounds on theirs; a bank must be told its tick."""
    more = dict(options)
    for taken in ("half_life", "rewards", "policy"):
        if taken in more:
            raise BadInput(taken, more[taken], "what for_clicks and for_values say themselves", "use dw.Agent")
    if isinstance(half_life, str):
        more.setdefault("clock", "wall")
        if bank:
            more.setdefault("tick", seconds("half_life", half_life) / 1000.0)
    return more
