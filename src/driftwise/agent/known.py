"""The facts about an agent: its policy, its clock, its counts, and θ by the names of the features."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from driftwise.agent.states import turn
from driftwise.policies.names import called

if TYPE_CHECKING:
    from driftwise.agent.parts import AgentParts


@dataclass(frozen=True)
class AgentFacts:
    """`facts` are names and values. `coefficients` are all of θ, the largest first, by the names of the agent's
    features or x0, x1, …. A policy of the user's own has none."""

    facts: tuple[tuple[str, str], ...]
    coefficients: tuple[tuple[str, float], ...]


def known(parts: AgentParts) -> AgentFacts:
    """The facts about the state on which the next decision would be made."""
    policy, clock = parts.policy, parts.clock
    with turn(parts, parts.learning), parts.choosing:
        lessons = parts.states.tick
        state = parts.states.at(clock.born(parts.asked_at(), lessons)[1]).copy()
        counts = {name: count for name, count in parts.counts.items() if count}
    theta, memory = policy.theta(state), policy.remembered(state)
    days = clock.days(memory)
    tick = "" if clock.tick is None else f" of {clock.tick:g} s"
    facts = [
        ("policy", f"{called(policy.given)}, digest {parts.digest}"),
        ("dimension", str(policy.dim)),
        ("features", "declared" if parts.features is not None else "none: arms are given as vectors"),
        ("rewards", f"{parts.terms.low:g} to {parts.terms.high:g}"),
        ("clock", f"{clock.kind}: {clock.newest} ticks{tick}, the last reward at {lessons}"),
        ("epsilon", f"{parts.epsilon:g}"),
        *((name.replace("_", " "), str(count)) for name, count in counts.items()),
    ]
    if not math.isnan(memory):
        facts.append(("memory played", f"{memory:g} ticks" + ("" if days is None else f" ({days:.3g} days)")))
        facts.append(("effective observations", f"{policy.worth(state):.1f}"))
    names = [f"x{i}" for i in range(theta.size)] if parts.features is None else parts.features.names
    order = np.argsort(-np.abs(theta), kind="stable")
    return AgentFacts(tuple(facts), tuple((names[i], float(theta[i])) for i in order))
