"""Two agents that learned apart as if one had learned it all: weighted sums and atoms, brought to one tick, add up."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from driftwise.agent.states import turn
from driftwise.errors import BadInput
from driftwise.kernels.point import CLOCK, COUNT, DROPPED, LOST, SQUARES, USED, WEIGHT
from driftwise.policies.base import Compiled
from driftwise.policies.glm import GLMUCB
from driftwise.policies.linear import LinearUCB
from driftwise.policies.self_concordant import DiscountedSelfConcordantUCB, SelfConcordantUCB
from driftwise.policies.state import State

if TYPE_CHECKING:
    from driftwise.agent.agent import Agent


def merge(mine: Agent, other: Agent) -> None:
    """See `Agent.merge`. Open decisions stay where they were made."""
    _check(mine, other)
    with turn(other, other._learning):
        theirs, their_tick, their_zero = other._states.front.copy(), other._states.tick, other._states.zero
        lineage, lessons = other._lineage.copy(), other._book.counts["learned"] + other._book.counts["defaulted"]
    with turn(mine, mine._learning):
        mine._lineage.check_apart(lineage)
        tick = max(mine._states.tick, their_tick) if mine._clock.kind == "wall" else mine._states.tick
        policy, behind, my_zero = mine._policy, mine._states.tick, mine._states.zero
        # One that has learned nothing has no time yet: only memories that keep or fade add up, so nothing fades there.
        zeros = [zero for zero in (my_zero, their_zero) if zero is not None]
        if tick > their_tick and policy.memory.forget and their_zero is not None:
            policy.advance(theirs, float(tick - their_tick))

        def add(state: State) -> None:
            if tick > behind and my_zero is not None:
                policy.advance(state, float(tick - behind))
            _add(policy, state, theirs)
            if mine._clock.kind == "wall" and zeros:  # it has lived as long as the elder of the two
                state.counters[:, CLOCK] = tick - min(zeros)

        merged = mine._book.counts["merged"]

        def then() -> None:
            mine._states.zero = min(zeros, default=None)
            mine._lineage.merged(lineage)
            mine._clock.newest = max(mine._clock.newest, tick)
            mine._book.counts["merged"] += lessons

        mine._lesson(add, tick, then, lambda: mine._book.counts["merged"] > merged)


def adds_up(policy: Any) -> bool:
    """Whether states of this policy can be added at all."""
    exact = isinstance(policy, (GLMUCB, SelfConcordantUCB, DiscountedSelfConcordantUCB)) and policy.estimate == "exact"
    exact = exact and not policy.stepped
    return (isinstance(policy, LinearUCB) or exact) and policy.memory.geometric


def _check(mine: Agent, other: Any) -> None:
    if type(other) is not type(mine) or other is mine:
        raise BadInput("other", other, "another agent", "pass what Agent.load gave, say")
    policy = mine._policy
    if not adds_up(policy):
        wanted = "a linear policy or an exact generalized linear one, with Keep or Fade"
        raise BadInput("policy", policy, wanted, "nothing else adds up")
    if getattr(policy, "two_matrix", None) == "as-published":
        raise BadInput("two_matrix", "as-published", '"correct": the slip depends on order', "pass that")
    if other._digest != mine._digest:
        raise BadInput("other", f"policy {other._digest}", f"the same policy, {mine._digest}", "merge equals only")
    if (other._clock.kind, other._clock.tick) != (mine._clock.kind, mine._clock.tick):
        raise BadInput("other", f"clock {other._clock.kind!r}", "the same clock and tick", "merge equals only")
    if policy.memory.forget and mine._clock.kind != "wall":
        wanted = 'clock="wall" for a memory that fades: rounds of two agents are not on one clock'
        raise BadInput("clock", mine._clock.kind, wanted, "or use memory=Keep()")


def _add(policy: Compiled, state: State, theirs: State) -> None:
    """The sums of one state and of another at the same tick; then the estimate anew."""
    for name in ("G", "b", "twin"):
        if name in state.layout.groups["floats"]:
            getattr(state, name)[:] += getattr(theirs, name)
    for column in (COUNT, WEIGHT, SQUARES, DROPPED, LOST):
        state.counters[:, column] += theirs.counters[:, column]
    if "atoms" in state.layout.groups["floats"]:
        _add_atoms(state, theirs)
        policy.advance(state, 0.0)


def _add_atoms(state: State, theirs: State) -> None:
    """Atoms that both have add their weights; the others find a place, or the one sentence."""
    used, room = int(state.cursor[USED]), state.atoms.shape[1]
    places = {state.atoms[:, a].tobytes(): a for a in range(used)}
    for a in range(int(theirs.cursor[USED])):
        at = places.get(theirs.atoms[:, a].tobytes(), used)
        if at == used:
            if used == room:
                raise BadInput("capacity", room, "room for the vectors of both agents", "pass a larger capacity=")
            state.atoms[:, at] = theirs.atoms[:, a]
            state.weights[:, at], state.targets[:, at] = 0.0, 0.0
            used += 1
        state.weights[:, at] += theirs.weights[:, a]
        state.targets[:, at] += theirs.targets[:, a]
    state.cursor[USED] = used
    assert np.isfinite(state.weights).all()
