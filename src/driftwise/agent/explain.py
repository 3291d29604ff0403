"""Why an arm is chosen: estimates, bonuses, scores, and the features that moved the choice against the runner-up; and
the facts about an agent."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt

from driftwise.agent.choosing import checked_price
from driftwise.agent.record import SHOWN, SHOWN_NUMBERS, Decision, Entry, Item
from driftwise.errors import BadInput
from driftwise.kernels.point import Floats
from driftwise.policies.arms import Arms, ArmSet, Scores, action_set
from driftwise.policies.names import called

if TYPE_CHECKING:
    from driftwise.agent.parts import AgentParts

@dataclass(frozen=True)
class Explanation:
    """Every arm as the policy scores it now, the best first in `order`.

    `score` is mean + bonus, less `cost` where arms have costs. `pulls` are (feature, θ_i (x_i - y_i)) for the arm
    chosen against the runner-up, and ("cost", …) for what it costs less, the strongest first. `effective` is (Σw)²/Σw²,
    the observations that the estimate is worth. `memory` is the number of rounds remembered, `days` the same where the
    clock measures time. A policy of the user's own has none of these, and no θ. `decision` is the record of
    the decision that was asked about, with the numbers of its moment. `missing` says how many of its arms are not
    shown, and why. A bank for clicks chooses among the arms that its memories propose: `proposed` says which; the
    others have an estimate and no bonus.
    """

    items: tuple[Item, ...]
    mean: Floats
    bonus: Floats
    score: Floats
    chosen: int
    runner_up: int | None
    pulls: tuple[tuple[str, float], ...]
    theta: Floats
    effective: float
    memory: float
    days: float | None
    decision: Decision | None = None
    proposed: npt.NDArray[np.bool_] | None = None
    missing: str = ""
    cost: Floats | None = None

    @property
    def order(self) -> list[int]:
        """Arms by score, the best first."""
        return [int(arm) for arm in np.argsort(-self.score, kind="stable")]

    def __str__(self) -> str:
        """A table for the terminal, ten arms at most."""
        price = "" if self.cost is None else f"{'cost':>12}"
        lines = [f"{'':2}{'arm':<16}{'estimate':>12}{'bonus':>12}{price}{'score':>12}"]
        for arm in self.order[:10]:
            mark = "> " if arm == self.chosen else "  "
            name = _short(self.items[arm])
            if self.proposed is not None and not self.proposed[arm]:
                lines.append(f"{mark}{name:<16}{self.mean[arm]:>12.4f}{'not proposed':>24}")
                continue
            price = "" if self.cost is None else f"{self.cost[arm]:>12.4f}"
            seen = f"{self.mean[arm]:>12.4f}{self.bonus[arm]:>12.4f}{price}{self.score[arm]:>12.4f}"
            lines.append(f"{mark}{name:<16}{seen}")
        if len(self.items) > 10:
            lines.append(f"  … and {len(self.items) - 10} more")
        if self.runner_up is not None and self.pulls:
            strongest = [one for one in self.pulls[:5] if one[1] != 0.0] or self.pulls[:1]  # both arms may share most
            pulls = ", ".join(f"{name} {pull:+.4f}" for name, pull in strongest)
            lines.append(f"against {_short(self.items[self.runner_up])}: {pulls}")
        days = "" if self.days is None else f" ({self.days:.3g} days)"
        if not math.isnan(self.memory):
            lines.append(f"remembers {self.memory:g} ticks{days}, worth {self.effective:.1f} observations")
        if self.missing:
            lines.append(self.missing)
        if self.decision is not None:
            then = self.decision
            paid = then.mean + then.bonus - then.score
            price = f", cost {paid:.4f}" if abs(paid) > 1e-12 * max(1.0, abs(then.mean), abs(then.bonus)) else ""
            what = f"estimate {then.mean:.4f}, bonus {then.bonus:.4f}{price}, propensity {then.propensity:.4f}"
            lines.append(f"decision {then.id}: {what}")
        return "\n".join(lines)

    def draw(self, path: str | Path) -> None:
        """Bars of estimate and bonus, and of the features' pulls, as a figure (.png or .svg)."""
        from driftwise.draw.picture import picture
        from driftwise.draw.styles import GRID, PALETTE

        arms, pulls = self.order[:12], self.pulls[:8]
        size = 9.0, 0.32 * max(len(arms), len(pulls)) + 1.2
        with picture(path, size, columns=2 if pulls else 1) as axes:
            left, places = axes[0, 0], range(len(arms))
            left.barh(places, self.mean[arms], color=PALETTE["weighted"], label="estimate")
            bonus = np.maximum(self.bonus[arms], 0.0)
            left.barh(places, bonus, left=self.mean[arms], color=PALETTE["window"], label="bonus")
            if self.cost is not None:
                left.barh(places, -self.cost[arms], color=PALETTE["restart"], label="cost")
            left.set_yticks(places, [_short(self.items[arm]) for arm in arms])
            left.set_title("score = estimate + bonus" + ("" if self.cost is None else " - cost"), fontsize=10)
            left.legend(fontsize=8)
            left.invert_yaxis()
            if pulls:
                right, places = axes[0, 1], range(len(pulls))
                right.barh(places, [pull for _, pull in pulls], color=PALETTE["discounted"])
                right.set_yticks(places, [name for name, _ in pulls])
                right.set_title("what moved the choice", fontsize=10)
                right.invert_yaxis()
            for one in axes.flat:
                one.grid(axis="x", color=GRID)
                one.set_axisbelow(True)


def _short(item: Item) -> str:
    text = str(item)
    return text if len(text) <= 15 else text[:14] + "…"


def explain(
    parts: AgentParts, what: Decision | str | Arms, arms: Arms | None, items: Sequence[Item] | None,
    features: Sequence[str] | None, at: float, cost: npt.ArrayLike | None = None,
) -> Explanation:
    """See `Agent.explain`."""
    decision, place, missing, costs = None, None, "", None
    if isinstance(what, (Decision, str)):
        id = what if isinstance(what, str) else what.id
        entry = parts.book.find(id)
        if entry is None:
            raise BadInput("decision", id, "a decision this agent remembers", "pass arms instead")
        decision = entry.decision
        if arms is None:
            arms, items, place, costs = _arms_of(parts, entry)
            missing = _missing(decision, arms)
    else:
        arms = what
    offered = action_set(arms)
    if not offered.listed:
        raise BadInput("arms", arms, "a list of arms, each of which is explained", "pass [decision.x], say")
    prepared = offered.arms
    names = tuple(range(prepared.count) if items is None else items)
    if len(names) != prepared.count:
        raise BadInput("items", f"{len(names)} names", f"one for each of {prepared.count} arms", "pass a list of names")
    policy, dim = parts.policy, prepared.dim
    if policy.dim not in (None, dim):
        raise BadInput("arms", f"dimension {dim}", f"dimension {policy.dim}", "match policy and arms")
    if not policy.scores_arms:
        wanted = "a policy that says what it thinks of arms: scores(state, arms) with mean and bonus"
        raise BadInput("policy", type(policy.given).__name__, wanted, "add it to your policy")
    if features is None and parts.features is not None:
        features = parts.features.names
    labels = [f"x{i}" for i in range(dim)] if features is None else [str(one) for one in features]
    if len(labels) != dim:
        raise BadInput("features", f"{len(labels)} names", f"one for each of {dim} features", "leave them out")
    if cost is not None:
        costs = checked_price(policy, cost, prepared.count)
    with parts.turn(parts.choosing):
        try:
            state = parts.states.at(parts.clock.born(at, parts.states.tick)[1])
            draw = None if policy.deterministic else decision.seq if decision is not None else parts.seq + 1
            if place is not None:
                chosen = place
            elif decision is not None and decision.arm < prepared.count:
                chosen = decision.arm
            elif costs is not None:
                chosen = policy.priced(state, prepared, costs, draw)[0].arm
            else:
                chosen = policy.choose(state, prepared, draw).arm
            seen = compared(policy, state, prepared, draw, chosen, labels, costs)
            theta, memory, effective = policy.theta(state), policy.remembered(state), policy.worth(state)
        except BaseException:
            parts.states.unlock()
            raise
    scores = seen.scores
    totals = scores.score if costs is None else scores.score - costs
    return Explanation(
        names, scores.mean, scores.bonus, totals, chosen, seen.rival, seen.pulls, theta,
        effective, memory, parts.clock.days(memory), decision,
        scores.bonus >= 0.0 if policy.judged else None, missing, costs,
    )  # fmt: skip


class Compared(NamedTuple):
    """Arms as a policy scores them on a state: their scores, the arms by score less cost, the best one beside the
    chosen one, and the effect of each feature on the chosen arm against it, and of what it costs less, the strongest
    first."""

    scores: Scores
    order: list[int]
    rival: int | None
    pulls: tuple[tuple[str, float], ...]


def compared(
    policy: Any, state: Any, arms: ArmSet, draw: int | None, chosen: int, labels: Sequence[str] = (),
    costs: Floats | None = None,
) -> Compared:  # fmt: skip
    """The comparison of a choice, for an agent, the service and its pages. Without labels there are no pulls."""
    scores = policy.scores(state, arms, draw)
    total = scores.score if costs is None else scores.score - costs
    order = [int(arm) for arm in np.argsort(-total, kind="stable")]
    rival = next((arm for arm in order if arm != chosen), None)
    if not labels or rival is None:
        return Compared(scores, order, rival, ())
    theta, pulls = policy.theta(state), []
    if theta.size == arms.dim:
        pull = theta * (arms.columns[0, :, chosen] - arms.columns[0, :, rival])
        pulls = list(zip(labels, pull.tolist(), strict=True))
    if costs is not None:
        pulls.append(("cost", float(costs[rival] - costs[chosen])))
    return Compared(scores, order, rival, tuple(sorted(pulls, key=lambda one: -abs(one[1]))))


def _missing(decision: Decision, arms: Any) -> str:
    """The note if not all arms of a decision are available."""
    there = len(arms)
    if there >= decision.n:
        return ""
    return (
        f"{decision.n - there} other arms of this decision are not kept, only those of the last decisions "
        f"(at most {SHOWN}, {SHOWN_NUMBERS:,} numbers in all); pass arms= to compare it with them"
    )


def _arms_of(parts: AgentParts, entry: Entry) -> tuple[Arms, Sequence[Item], int, Floats | None]:
    """What is available of a decision: the arms it was made among (of an open one also those it will be logged with),
    or while it is open its own vector; their names, the index of the chosen arm, and what arms cost."""
    decision = entry.decision
    with parts.turn(parts.choosing):
        kept, x = parts.shown.find(decision.id), entry.x
    if kept is not None:
        _, arms, items, places, place, costs = kept
        numbers = range(arms.count) if places is None else places.tolist()
        return arms, [number if items is None else items[number] for number in numbers], place, costs
    logged = entry.shown
    if logged is not None and logged.arms is not None:  # an open decision keeps what will be logged
        names = logged.candidates
        return logged.arms, range(logged.arms.count) if names is None else names, logged.place, None
    if x is None:
        wanted = "one of the last decisions, an open one, or its arms: those of older ones are not kept"
        raise BadInput("decision", f"{decision.id!r}, which is {entry.verdict.value}", wanted, "pass arms= too")
    column = x.column if parts.policy.taught_with_arms else x
    return column[0].T, [decision.arm if decision.item is None else decision.item], 0, None


@dataclass(frozen=True)
class AgentFacts:
    """`facts` are names and values. `coefficients` are all of θ, the largest first, by the names of the agent's
    features or x0, x1, …. A policy of the user's own has none."""

    facts: tuple[tuple[str, str], ...]
    coefficients: tuple[tuple[str, float], ...]


def known(parts: AgentParts) -> AgentFacts:
    """The facts about the state on which the next decision would be made."""
    policy, clock = parts.policy, parts.clock
    with parts.turn(parts.learning), parts.choosing:
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
