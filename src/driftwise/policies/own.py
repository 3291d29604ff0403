"""The adapter of a policy of the user's own, with start, choose and learn only, to the interface of built-in policies.

It must have start, choose and learn (`dw.checks.check_policy` tests them) and may have more: `advance`, and ticks= and
age= in learn, if it depends on time; `scores`, for explanations, costs and the numbers of random draws; draw= in
choose, if it samples; `state_to_bytes` and `state_from_bytes`, for snapshots.
"""

from __future__ import annotations

import copy
import inspect
import math
from dataclasses import is_dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from driftwise._internal.validate import is_integer, is_number
from driftwise.errors import BadInput
from driftwise.kernels.point import Floats
from driftwise.policies.arms import ActionSet, ArmSet, Choice, Scores
from driftwise.policies.base import Compiled
from driftwise.policies.memory import Memory
from driftwise.policies.plain import policy_digest
from driftwise.policies.questions import Asked, Policy, WorldFacts, no_shares


def asked(policy: object, name: str = "policy") -> Asked:
    """The policy itself, or the adapter of one of the user's own; or a BadInput."""
    if isinstance(policy, (Compiled, Own)):
        return policy
    if isinstance(policy, type) or not isinstance(policy, Policy):
        wanted = "a policy: an object with start, choose and learn"
        raise BadInput(name, policy, wanted, 'pass dw.make("Auto", dim=10), say')
    return Own(policy)


class Lent(NamedTuple):
    """All arms of a decision and the one played, because it is unknown what a policy of the user's own learns from."""

    arms: ArmSet
    arm: int

    @property
    def column(self) -> Floats:
        """The vector played, as (1, d, 1)."""
        return self.arms.columns[:, :, self.arm : self.arm + 1].copy()


class OwnState:
    """The state of a policy of the user's own, which no other code reads."""

    __slots__ = ("inside", "outside", "warned")

    def __init__(self, inside: Any) -> None:
        self.inside, self.outside, self.warned = inside, 0, False

    def copy(self) -> OwnState:
        return OwnState(copy.deepcopy(self.inside))

    def become(self, other: OwnState) -> None:
        """Take over the content of another state."""
        self.inside = copy.deepcopy(other.inside)

    def release(self) -> None:
        """It is never held."""


class Own(Asked):
    """The answers for a policy with start, choose and learn. What it does not declare is unknown."""

    can_fail = True  # assumed: the second state is copied, and no lesson is learned twice
    stepped = taught_with_arms = True
    state_size = 0

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.dim: int | None = getattr(policy, "dim", None)
        self.draws = _takes(policy.choose, "draw")
        self.scores_draws = self.scores_arms and _takes(policy.scores, "draw")  # type: ignore[attr-defined]

    @property
    def given(self) -> Any:
        return self.policy

    @property
    def reach(self) -> float:
        longest = getattr(self.given, "L", None)
        return float(longest) if isinstance(longest, (int, float)) else math.inf

    @property
    def deterministic(self) -> bool:
        return bool(getattr(self.given, "deterministic", True))

    @cached_property
    def ages(self) -> bool:
        return hasattr(self.given, "advance") and _takes(self.given.learn, "ticks", "age")

    @property
    def timeless(self) -> bool:
        return not self.ages

    @property
    def scores_arms(self) -> bool:
        return hasattr(self.given, "scores")

    @property
    def reports(self) -> bool:
        return bool(getattr(self.given, "reports", hasattr(self.given, "report")))

    @property
    def digest(self) -> str:
        """Its own digest, that of its numbers if it is a dataclass, or that of its name."""
        given = getattr(self.given, "digest", None)
        if isinstance(given, str):
            return given
        return policy_digest([self.described, self.given if is_dataclass(self.given) else None])

    @property
    def described(self) -> str:
        return f"{type(self.given).__module__}.{type(self.given).__qualname__}"

    def check_problem(self, name: str, problem: WorldFacts) -> None:
        """Its own calls report what does not fit."""

    def remembering(self, memory: Memory) -> Any:
        raise BadInput("memory", memory, "none: a policy of your own keeps its memory itself", "leave it out")

    def check_wall_clock(self) -> None:
        """Any clock is accepted."""

    def start(self, seed: int = 0) -> OwnState:
        return OwnState(self.given.start(seed=seed))

    def rows(self, arms: ArmSet) -> Floats:
        """Arms (n, d), read-only: a policy must not change the arms that others see."""
        if self.dim is None:
            self.dim = arms.dim
        if arms.dim != self.dim:
            raise BadInput("arms", f"dimension {arms.dim}", f"dimension {self.dim}", "match policy and arms")
        rows = np.ascontiguousarray(arms.columns[0].T)
        rows.flags.writeable = False
        return rows

    def choose(self, state: OwnState, arms: ArmSet, draw: int | None = None) -> Choice:
        more = {"draw": draw} if draw is not None and self.draws else {}
        found: Any = self.given.choose(state.inside, self.rows(arms), **more)
        arm = getattr(found, "arm", found)
        if not is_integer(arm) or not 0 <= arm < arms.count:
            wanted = f"an arm from 0 to {arms.count - 1}, or something with such an .arm"
            raise BadInput("choose", found, wanted, "return the index of the arm")
        if found is arm:  # an index only; an integer of numpy has a method `mean`
            return Choice(int(arm), math.nan, math.nan, math.nan)
        return Choice(int(arm), *(_number_of(found, name) for name in ("score", "mean", "bonus")))

    def scores(self, state: OwnState, arms: ArmSet, draw: int | None = None) -> Scores:
        """Its scores, or NaN if it has none."""
        if not self.scores_arms:
            return Scores(np.full(arms.count, math.nan), np.full(arms.count, math.nan))
        more = {"draw": draw} if draw is not None and self.scores_draws else {}
        found: Any = self.given.scores(state.inside, self.rows(arms), **more)
        try:
            return Scores(*(np.array(one, dtype=np.float64).reshape(arms.count) for one in (found.mean, found.bonus)))
        except (AttributeError, TypeError, ValueError):
            wanted = f"a mean and a bonus for each of {arms.count} arms"
            raise BadInput("scores", found, wanted, "return dw.Scores(mean, bonus)") from None

    def propensity(self, state: OwnState, arms: ArmSet, arm: int, draw: int) -> tuple[float, int] | None:
        return None if self.draws else (math.nan, 0)

    def shares(self, state: OwnState, arms: ArmSet, arm: int, draw: int) -> Floats:
        """Its own propensities or, if it does not sample, 1 for the arm it plays."""
        say = getattr(self.given, "propensities", None)
        if say is None:
            return np.asarray(np.arange(arms.count) == arm, dtype=np.float64)
        found = say(state.inside, self.rows(arms), draw)
        try:
            shares = np.asarray(found, dtype=np.float64).reshape(arms.count)
        except (TypeError, ValueError):
            shares = np.full(arms.count, np.nan)
        if not ((shares >= 0.0).all() and abs(shares.sum() - 1.0) <= 1e-6):
            wanted = f"numbers of at least 0 for {arms.count} arms whose sum is 1"
            raise BadInput("propensities", found, wanted, "return how likely each arm is played")
        return shares

    def check_shares(self) -> None:
        if not self.deterministic and not hasattr(self.given, "propensities"):
            no_shares(self.given)

    def check_set(self, offered: ActionSet) -> None:
        if not offered.listed:
            raise BadInput("arms", offered, "a list of arms for a policy of your own", "pass a grid of the set")

    def lesson_of(self, arms: ActionSet, found: Choice) -> Lent:
        return Lent(arms.arms, found.arm)

    def learn(self, state: OwnState, arms: ArmSet, arm: int, reward: float) -> None:
        self.given.learn(state.inside, self.rows(arms), arm, reward)

    def take(self, state: OwnState, x: Lent, reward: float, ticks: float, age: float) -> None:
        more = {"ticks": ticks, "age": age} if self.ages else {}
        self.given.learn(state.inside, self.rows(x.arms), x.arm, reward, **more)

    def advance(self, state: OwnState, ticks: float) -> None:
        if self.ages:
            self.given.advance(state.inside, ticks)

    def renew(self, copy: OwnState, state: OwnState) -> None:
        copy.become(state)

    def seen(self, state: OwnState) -> Any:
        return state.inside

    def written(self, state: OwnState) -> dict[str, Any]:
        """The state as its policy writes it, or a BadInput."""
        write = getattr(self.given, "state_to_bytes", None)
        if write is None or not hasattr(self.given, "state_from_bytes"):
            wanted = "state_to_bytes(state) and state_from_bytes(data), without which its state cannot be kept"
            raise BadInput("policy", type(self.given).__name__, wanted, "add both to your policy")
        return {"own": np.frombuffer(bytes(write(state.inside)), dtype=np.uint8)}

    def held(self, arrays: dict[str, Any], way_out: str) -> OwnState:
        """The state that its policy wrote, as it reads it."""
        read = getattr(self.given, "state_from_bytes", None)
        if read is None:
            raise BadInput("policy", type(self.given).__name__, "state_from_bytes(data) to read its state", "add it")
        try:
            return OwnState(read(arrays["own"].tobytes()))
        except Exception as slip:
            got = f"a state that its policy cannot read ({type(slip).__name__})"
            raise BadInput("data", got, "the snapshot of an agent", way_out) from None

    def theta(self, state: OwnState) -> Floats:
        return np.zeros(0)

    def worth(self, state: OwnState) -> float:
        return math.nan

    def remembered(self, state: OwnState) -> float:
        return math.nan

    def report(self, state: OwnState) -> dict[str, Any]:
        return dict(self.given.report(state.inside))

def _number_of(found: Any, name: str) -> float:
    """A number of a choice; NaN if it has none."""
    value = getattr(found, name, None)
    if value is None:
        return math.nan
    if not (is_number(value) or isinstance(value, bool)):
        raise BadInput(f"choose: {name}", value, "a number, or none", f"leave out .{name} where there is none")
    return float(value)


def _takes(method: Any, *names: str) -> bool:
    """Whether a method has these arguments, or takes any."""
    try:
        known = inspect.signature(method).parameters.values()
    except (TypeError, ValueError):  # for example written in C
        return False
    return any(one.kind is one.VAR_KEYWORD for one in known) or set(names) <= {one.name for one in known}
