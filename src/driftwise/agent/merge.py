"""Merge two agents: their weighted sums and atoms, brought to one tick, are added."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from driftwise.agent.states import turn
from driftwise.errors import BadInput

if TYPE_CHECKING:
    from driftwise.agent.agent import Agent


def merge(mine: Agent, other: Agent) -> None:
    """See `Agent.merge`. Open decisions stay where they were made."""
    _check(mine, other)
    with turn(other, other._learning):
        theirs, their_tick, their_zero = other._states.front.copy(), other._states.tick, other._states.zero
        lineage, lessons = other._lineage.copy(), other._book.lessons
    with turn(mine, mine._learning):
        mine._lineage.check_apart(lineage)
        tick = max(mine._states.tick, their_tick) if mine._clock.kind == "wall" else mine._states.tick
        policy, behind, my_zero = mine._policy, mine._states.tick, mine._states.zero
        # An agent that has learned nothing has no time yet, and nothing to fade.
        zeros = [zero for zero in (my_zero, their_zero) if zero is not None]
        if tick > their_tick and policy.single_memory.forget and their_zero is not None:
            policy.advance(theirs, float(tick - their_tick))

        def add(state: Any) -> None:
            if tick > behind and my_zero is not None:
                policy.advance(state, float(tick - behind))
            policy.add(state, theirs)
            if mine._clock.kind == "wall" and zeros:  # the merged state counts from the earlier start
                state.set_clock(tick - min(zeros))

        merged = mine._book.counts["merged"]

        def then() -> None:
            mine._states.zero = min(zeros, default=None)
            mine._lineage.merged(lineage)
            mine._clock.newest = max(mine._clock.newest, tick)
            mine._book.counts["merged"] += lessons

        mine._lesson(add, tick, then, lambda: mine._book.counts["merged"] > merged)


def _check(mine: Agent, other: Any) -> None:
    if type(other) is not type(mine) or other is mine:
        raise BadInput("other", other, "another agent", "pass the result of Agent.load")
    policy = mine._policy
    policy.check_adds()
    if other._digest != mine._digest:
        raise BadInput("other", f"policy {other._digest}", f"the same policy, {mine._digest}", "merge equal agents")
    if (other._clock.kind, other._clock.tick) != (mine._clock.kind, mine._clock.tick):
        raise BadInput("other", f"clock {other._clock.kind!r}", "the same clock and tick", "merge equal agents")
    if policy.single_memory.forget and mine._clock.kind != "wall":
        wanted = 'clock="wall" for a memory that fades: rounds of two agents are not on one clock'
        raise BadInput("clock", mine._clock.kind, wanted, "or use memory=Keep()")
