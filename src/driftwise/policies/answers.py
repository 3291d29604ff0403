"""The answers of policies with lanes and memories to questions.py. A family overrides those that differ."""

from __future__ import annotations

import dataclasses
import math
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from driftwise._internal.elementary import LN2
from driftwise.errors import BadInput
from driftwise.kernels.links import LinkRow
from driftwise.kernels.point import COUNT, DROPPED, LOST, SQUARES, WEIGHT, Floats, Point
from driftwise.policies.arms import NORM_SLACK, ActionSet, Choice
from driftwise.policies.live import Hold
from driftwise.policies.memory import Memory
from driftwise.policies.plain import described
from driftwise.policies.questions import STEPPED_COST, Asked, Predicts, WorldFacts
from driftwise.policies.state import Layout, State


class Answers(Asked):
    """The answers of a policy with one lane and one memory."""

    dim: int
    L: float
    memory: Any  # the memory; for a bank, the function that returns the memory in use
    delta: float | None

    reads_only: ClassVar[bool] = True
    # Raised where a policy of the same name and fields computes otherwise or has another state (plain.revision_of).
    revision: ClassVar[int] = 1

    if TYPE_CHECKING:  # declared in the rest of a policy

        @property
        def point(self) -> Point: ...  # the policy as flags and a table
        @property
        def layout(self) -> Layout: ...  # the groups of its states
        @property
        def model(self) -> LinkRow: ...  # its model of rewards
        @property
        def digest(self) -> str: ...
        def start(self, seed: int = 0) -> State: ...
        def renew(self, copy: State, state: State) -> None: ...
        def advance(self, state: State, ticks: float = 1.0) -> None: ...
        def choose(self, state: State, arms: Any, draw: int | None = None) -> Choice: ...
        @property
        def hold(self) -> Hold: ...

    # ---------------------------------------------------------------------------------------- what it is
    @property
    def described(self) -> Any:
        return described(self)

    @property
    def reach(self) -> float:
        """The longest arm it accepts."""
        return float(self.L)

    @property
    def link_name(self) -> str | None:
        """The link of the table that rewards must have; None if any is accepted."""
        return None

    @property
    def largest_reward(self) -> float:
        """m, if rewards are known to lie in [0, m]."""
        return math.inf

    @property
    def lane_cost(self) -> float:
        """The cost of a round of one lane, in rounds of a linear one."""
        return 1.0

    @property
    def cost(self) -> float:
        return STEPPED_COST if self.stepped else self.lane_cost

    def check_problem(self, name: str, problem: WorldFacts) -> None:
        """Check its dimension, that no arm is longer than L, its link and its rewards. A linear policy accepts all
        rewards."""
        if self.dim != problem.dim:
            wanted = f"dim = {problem.dim}, the world's"
            raise BadInput(name, f"dim = {self.dim}", wanted, "make it for this world")
        if problem.L > self.reach * (1.0 + NORM_SLACK):
            wanted = f"L of at least {problem.L:g}, the world's longest arm"
            raise BadInput(name, f"L = {self.reach:g}", wanted, "pass a larger L")
        link, own = self.link_name, problem.link
        if link not in (None, own):
            raise BadInput(name, f"the {link} link", f"the {own} link, which this world has", f"pass link={own!r}")
        if self.model.bounded and (problem.reward != "bernoulli" or self.largest_reward < 1.0):
            wanted = f"rewards in [0, {self.largest_reward:g}], which it takes alone"
            way_out = 'play a world with reward="bernoulli", m at least 1'
            raise BadInput(name, f"{problem.reward} rewards", wanted, way_out)
        if problem.offered is not None:
            self.check_set(problem.offered)

    # ---------------------------------------------------------------------------------------- time
    @property
    def single_memory(self) -> Memory | None:
        found: Memory = self.memory
        return found

    @property
    def timeless(self) -> bool:
        return math.isinf(self.memory.rounds)

    @property
    def ages(self) -> bool:
        return not (math.isinf(self.memory.rounds) and self.delta is not None)

    @property
    def half_life(self) -> float:
        """The half-life of the fade that remembers as many rounds."""
        return LN2 * float(self.memory.rounds)

    def remembering(self, memory: Memory) -> Any:
        return dataclasses.replace(self, memory=memory)  # type: ignore[type-var]

    def check_wall_clock(self) -> None:
        if self.memory.room() and getattr(self.memory, "capacity", 0) is None:
            wanted = f"{type(self.memory).__name__}(…, capacity=…) on the wall clock, where many rewards share a tick"
            raise BadInput("memory", self.memory, wanted, "pass capacity=, the rewards that count at one time")

    def phase(self, tick: int) -> float:
        memory = self.single_memory
        return 0.0 if memory is None else memory.phase(tick)

    def effective(self) -> Floats:
        """The effective rounds of each memory, for a run's record of rows."""
        return np.array([self.memory.rounds])

    # ---------------------------------------------------------------------------------------- choices
    @property
    def unit_per_feature(self) -> bool:
        """Whether it learns a unit for each feature: other units change no choice, and rotating arms may."""
        return False

    def audited(self, state: State, draw: int | None = None) -> bool:
        """Whether a decision is forced exploration, which does not play the arm with the largest score."""
        return False

    def check_set(self: Any, offered: ActionSet) -> None:
        offered.check_for(self)

    def lesson_of(self, arms: ActionSet, found: Choice) -> Floats:
        """The vector played, a copy."""
        return arms.column(found)

    # ---------------------------------------------------------------------------------------- states
    @property
    def state_size(self) -> int:
        self.point  # noqa: B018 - raises where numbers do not fit each other, before room is made for them
        return self.layout.numbers

    def written(self, state: State) -> dict[str, Any]:
        return {"floats": state.floats, "ints": state.ints}

    def held(self, arrays: dict[str, Any], way_out: str) -> State:
        state = self.layout.state(arrays["floats"], arrays["ints"], self.digest, way_out)
        self.hold.vet(state)
        return state

    def adopted(self, data: bytes, known_as: str, seed: int) -> State:
        """A state that was written as bytes, proven in range, with the key of this seed.

        known_as: the digest that this policy had then. Another machine may round its numbers differently.
        """
        state = State.from_bytes(data)
        self.hold.check_layout(state)
        if state.owner == known_as:
            state.owner = self.digest
        self.hold.vet(state)
        own = self.start(seed)
        own.become(state)
        return own

    def canonical(self, state: State) -> State:
        """A copy of a state with zeros in unused space, so that equal memories have equal bytes."""
        clean = self.start()
        self.renew(clean, state)
        clean.clear_room()
        return clean

    # ---------------------------------------------------------------------------------------- what it knows
    def acting(self, state: State) -> tuple[int, int]:
        """The lane whose sums are used, and the row of the policy's table for it."""
        return 0, 0

    def lane_theta(self, at: Point, row: int, state: State, lane: int) -> Floats:
        """θ̂ of a lane with a row of a table: that of an adaptation over this policy, or its own."""
        found: Floats = state.shown[lane].copy()
        return found

    def theta(self, state: State) -> Floats:
        lane, row = self.acting(state)
        return self.lane_theta(self.point, row, state, lane)

    def worth(self, state: State) -> float:
        return effective_observations(state.counters[self.acting(state)[0]])

    def remembered(self, state: State) -> float:
        return float(self.memory.rounds)

    @property
    def predicts(self) -> Predicts:
        return Predicts(0.0, math.inf if self.L is None else float(self.L))

    # ---------------------------------------------------------------------------------------- adding up
    def add(self, state: State, theirs: State) -> None:
        groups, others = state.groups(), theirs.groups()
        for name in ("G", "b", "twin"):
            if name in groups:
                groups[name] += others[name]
        for column in (COUNT, WEIGHT, SQUARES, DROPPED, LOST):
            state.counters[:, column] += theirs.counters[:, column]
        if "atoms" in groups:
            state.add_atoms(theirs)
            self.advance(state, 0.0)

def effective_observations(counters: Floats) -> float:
    """(Σw)²/Σw² from the counters of a lane."""
    weight, squares = float(counters[WEIGHT]), float(counters[SQUARES])
    return weight * weight / squares if squares > 0.0 else 0.0
