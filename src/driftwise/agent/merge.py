"""Merge two agents: their weighted sums and atoms, brought to one tick, are added."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from driftwise.agent.states import turn
from driftwise.errors import BadInput

if TYPE_CHECKING:
    from driftwise.agent.parts import AgentParts


def merge(mine: AgentParts, other: AgentParts) -> None:
    """See `Agent.merge`. Open decisions stay where they were made."""
    _check(mine, other)
    with turn(other, other.learning):
        theirs, their_tick, their_zero = other.states.front.copy(), other.states.tick, other.states.zero
        lineage, lessons = other.lineage.copy(), other.book.lessons
    with turn(mine, mine.learning), mine.busy:
        mine.lineage.check_apart(lineage)
        tick = max(mine.states.tick, their_tick) if mine.clock.kind == "wall" else mine.states.tick
        policy, behind, my_zero = mine.policy, mine.states.tick, mine.states.zero
        # An agent that has learned nothing has no time yet, and nothing to fade.
        zeros = [zero for zero in (my_zero, their_zero) if zero is not None]
        if tick > their_tick and policy.single_memory.forget and their_zero is not None:
            policy.advance(theirs, float(tick - their_tick))

        def add(state: Any) -> None:
            if tick > behind and my_zero is not None:
                policy.advance(state, float(tick - behind))
            policy.add(state, theirs)
            if mine.clock.kind == "wall" and zeros:  # the merged state counts from the earlier start
                state.set_clock(tick - min(zeros))

        both = mine.lineage.copy()
        both.merged(lineage)

        def then() -> None:
            zero, newest = min(zeros, default=None), max(mine.clock.newest, tick)
            # No function is called from here on, so that Ctrl-C cannot interrupt in between.
            mine.states.zero, mine.lineage, mine.clock.newest = zero, both, newest
            mine.book.counts["merged"] += lessons

        mine.lesson(add, tick, then, lambda: mine.lineage is both)


def _check(mine: AgentParts, other: AgentParts) -> None:
    policy = mine.policy
    policy.check_adds()
    if other.digest != mine.digest:
        raise BadInput("other", f"policy {other.digest}", f"the same policy, {mine.digest}", "merge equal agents")
    if (other.clock.kind, other.clock.tick) != (mine.clock.kind, mine.clock.tick):
        raise BadInput("other", f"clock {other.clock.kind!r}", "the same clock and tick", "merge equal agents")
    if policy.single_memory.forget and mine.clock.kind != "wall":
        wanted = 'clock="wall" for a memory that fades: rounds of two agents are not on one clock'
        raise BadInput("clock", mine.clock.kind, wanted, "or use memory=Keep()")
