"""A policy of the user's own behind what an agent asks of a built-in one.

It owes start, choose and learn (`dw.checks.check_policy` tries them) and may have more: `advance`, with ticks= and age=
in learn, where it knows of time; `scores`, for explanations, costs and the numbers of random draws; draw= in choose,
where it samples; `state_to_bytes` and `state_from_bytes`, for snapshots.
"""

from __future__ import annotations

import copy
import inspect
import math
from dataclasses import is_dataclass
from typing import Any, NamedTuple

import numpy as np

from driftwise.errors import BadInput
from driftwise.kernels.point import Floats
from driftwise.policies.arms import ArmSet, Choice, Scores
from driftwise.policies.base import MOST_REWARD, Policy
from driftwise.policies.plain import policy_digest


class Lent(NamedTuple):
    """All arms of a decision and the one played: nobody knows what a policy of one's own learns from."""

    arms: ArmSet
    arm: int

    @property
    def column(self) -> Floats:
        """The vector played, as (1, d, 1)."""
        return self.arms.columns[:, :, self.arm : self.arm + 1].copy()


class OwnState:
    """The state of a policy of the user's own, which nobody else looks into."""

    __slots__ = ("inside", "outside", "told")

    def __init__(self, inside: Any) -> None:
        self.inside, self.outside, self.told = inside, 0, False

    def copy(self) -> OwnState:
        return OwnState(copy.deepcopy(self.inside))


class Own:
    """A policy with start, choose and learn, as an agent takes it."""

    can_fail = True  # for all we know: the second state is copied and no lesson is told twice

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.dim: int | None = getattr(policy, "dim", None)
        self.L = self.reach = float(getattr(policy, "L", math.inf))
        self.deterministic = bool(getattr(policy, "deterministic", True))
        self.draws = _takes(policy.choose, "draw")
        self.knows_time = hasattr(policy, "advance") and _takes(policy.learn, "ticks", "age")
        self.ranks = hasattr(policy, "scores")
        self.scores_draws = self.ranks and _takes(policy.scores, "draw")  # type: ignore[attr-defined]

    @property
    def digest(self) -> str:
        """Its own, that of its numbers where it is a dataclass, or else of its name."""
        given = getattr(self.policy, "digest", None)
        if isinstance(given, str):
            return given
        return policy_digest([self.name, self.policy if is_dataclass(self.policy) else None])

    @property
    def name(self) -> str:
        return f"{type(self.policy).__module__}.{type(self.policy).__qualname__}"

    def _reward_range(self) -> tuple[float, float]:
        return -MOST_REWARD, MOST_REWARD

    def start(self, seed: int = 0) -> OwnState:
        return OwnState(self.policy.start(seed=seed))

    def rows(self, arms: ArmSet) -> Floats:
        """Arms (n, d), read-only: a policy must not change what others will see."""
        if self.dim is None:
            self.dim = arms.dim
        if arms.dim != self.dim:
            raise BadInput("arms", f"dimension {arms.dim}", f"dimension {self.dim}", "match policy and arms")
        rows = np.ascontiguousarray(arms.columns[0].T)
        rows.flags.writeable = False
        return rows

    def choose(self, state: OwnState, arms: ArmSet, draw: int | None = None) -> Choice:
        more = {"draw": draw} if draw is not None and self.draws else {}
        found: Any = self.policy.choose(state.inside, self.rows(arms), **more)
        arm = getattr(found, "arm", found)
        if not isinstance(arm, (int, np.integer)) or isinstance(arm, bool) or not 0 <= arm < arms.count:
            wanted = f"an arm from 0 to {arms.count - 1}, or something with such an .arm"
            raise BadInput("choose", found, wanted, "return the index of the arm")
        if found is arm:  # an index alone; one of numpy's has a method `mean`
            return Choice(int(arm), math.nan, math.nan, math.nan)
        return Choice(int(arm), *(_told(found, name) for name in ("score", "mean", "bonus")))

    def scores(self, state: OwnState, arms: ArmSet, draw: int | None = None) -> Scores:
        """Its scores, or numbers that say it has none."""
        if not self.ranks:
            return Scores(np.full(arms.count, math.nan), np.full(arms.count, math.nan))
        more = {"draw": draw} if draw is not None and self.scores_draws else {}
        found: Any = self.policy.scores(state.inside, self.rows(arms), **more)  # type: ignore[attr-defined]
        try:
            return Scores(*(np.array(one, dtype=np.float64).reshape(arms.count) for one in (found.mean, found.bonus)))
        except (AttributeError, TypeError, ValueError):
            wanted = f"a mean and a bonus for each of {arms.count} arms"
            raise BadInput("scores", found, wanted, "return dw.Scores(mean, bonus)") from None

    def take(self, state: OwnState, shown: Lent, reward: float, ticks: float, age: float) -> None:
        more = {"ticks": ticks, "age": age} if self.knows_time else {}
        self.policy.learn(state.inside, self.rows(shown.arms), shown.arm, reward, **more)

    def advance(self, state: OwnState, ticks: float) -> None:
        if self.knows_time:
            self.policy.advance(state.inside, ticks)  # type: ignore[attr-defined]

    def renew(self, other: OwnState, state: OwnState) -> None:
        other.inside = copy.deepcopy(state.inside)

    def to_bytes(self, state: OwnState) -> bytes:
        """The state as its policy writes it, or the one sentence."""
        write = getattr(self.policy, "state_to_bytes", None)
        if write is None or not hasattr(self.policy, "state_from_bytes"):
            wanted = "state_to_bytes(state) and state_from_bytes(data), without which its state cannot be kept"
            raise BadInput("policy", type(self.policy).__name__, wanted, "add both to your policy")
        return bytes(write(state.inside))

    def from_bytes(self, data: bytes) -> OwnState:
        return OwnState(self.policy.state_from_bytes(data))  # type: ignore[attr-defined]


def _told(found: Any, name: str) -> float:
    """A number of a choice, NaN where it has none."""
    value = getattr(found, name, None)
    if value is None:
        return math.nan
    if not isinstance(value, (int, float, np.integer, np.floating)):
        raise BadInput(f"choose: {name}", value, "a number, or none", f"leave out .{name} where there is none")
    return float(value)


def _takes(method: Any, *names: str) -> bool:
    """Whether a method has these arguments, or takes any."""
    try:
        known = inspect.signature(method).parameters.values()
    except (TypeError, ValueError):  # written in C, say
        return False
    return any(one.kind is one.VAR_KEYWORD for one in known) or set(names) <= {one.name for one in known}
