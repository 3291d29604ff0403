"""What simulation, agent, data, experiments, service and the command line ask of a policy: one protocol.

Built-in policies answer in answers.py, and where one differs in its own file. A policy of the user's own, with start,
choose and learn alone, answers through the adapter in own.py. No other module asks for the class of a policy, or reads
how a state is laid out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from driftwise.kernels.point import Floats

if TYPE_CHECKING:
    from driftwise.policies.arms import ActionSet, ArmSet, Choice, Scores
    from driftwise.policies.engines import Sizes
    from driftwise.policies.memory import Memory


@runtime_checkable
class Policy(Protocol):
    """All that a policy owes."""

    def start(self, seed: int = 0) -> Any: ...
    def choose(self, state: Any, arms: Any) -> Any: ...
    def learn(self, state: Any, arms: Any, arm: int, reward: float) -> None: ...


class WorldFacts(NamedTuple):
    """What a world says of itself to a policy that is to play it."""

    dim: int
    L: float
    link: str
    reward: str
    offered: ActionSet | None  # where the set is the same in every round, and no list


class LinkCurve(NamedTuple):
    """Rewards behind a link: μ and μ' on arrays, whether they are chances, and what an estimate is scored by."""

    mean: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]
    chances: bool
    widening: float
    noise: float
    reach: float  # no |x'θ| is larger
    ridge: float


class Predicts(NamedTuple):
    """What rewards are to a policy: R, 0 where it is not told, the length L of arms, and the curve of a link."""

    noise: float
    length: float
    curve: LinkCurve | None = None


class LevelReport(NamedTuple):
    """A level that all arms share: evidence in nats that it moves apart, whether that is believed, and how long the
    likeliest memory keeps the level and preferences, in ticks."""

    evidence: float
    believed: bool
    level: float
    preferences: float


class Asked(Protocol):
    """The questions. States are what `start` gave, vectors are (1, d, 1)."""

    # ---------------------------------------------------------------------------------------- what it is
    @property
    def given(self) -> Any:
        """The policy as the user made it."""

    @property
    def described(self) -> Any:
        """The policy as plain data, or the name of its class where it is the user's own."""

    @property
    def digest(self) -> str:
        """What it is known by."""

    @property
    def dim(self) -> int | None:
        """Features of an arm; None where the first arms say it."""

    @property
    def reach(self) -> float:
        """The longest arm it takes."""

    @property
    def reward_range(self) -> tuple[float, float]:
        """The least and the largest reward it takes."""

    @property
    def stepped(self) -> bool:
        """Whether it can only be run a call at a time."""

    def plays_eight(self, sizes: Sizes) -> bool:
        """Whether several trials of these sizes are played at once."""

    @property
    def cost(self) -> float:
        """What a round costs, in rounds of one linear lane."""

    @property
    def can_fail(self) -> bool:
        """Whether a lesson can fail, or is dearer than a copy of the state."""

    def check_problem(self, name: str, problem: WorldFacts) -> None:
        """Refuse a problem that it cannot play."""

    # ---------------------------------------------------------------------------------------- time
    @property
    def single_memory(self) -> Memory | None:
        """Its memory; None where it chooses among several, or nobody knows."""

    @property
    def adapts(self) -> bool:
        """Whether it finds its memory itself."""

    @property
    def counts_rounds(self) -> bool:
        """Whether a decision must be closed before the next: it looks at rounds in a row."""

    @property
    def timeless(self) -> bool:
        """Whether no choice depends on how long a tick is."""

    @property
    def ages(self) -> bool:
        """Whether choices change as time passes without rewards."""

    @property
    def half_life(self) -> float:
        """Ticks in which it forgets half; infinite where it forgets nothing, or nobody knows."""

    def remembering(self, memory: Memory) -> Any:
        """The same policy with another memory."""

    def check_wall_clock(self) -> None:
        """Refuse what means nothing on the wall clock."""

    def phase(self, tick: int) -> float:
        """What the clock of a state shows that starts at this tick of the wall clock."""

    def effective(self) -> Floats:
        """Rounds of every memory that it may play by."""

    # ---------------------------------------------------------------------------------------- choices
    @property
    def deterministic(self) -> bool:
        """Whether equal states and arms give equal choices; if not, a choice takes the number of a draw."""

    @property
    def scores_arms(self) -> bool:
        """Whether it says what it thinks of every arm."""

    @property
    def ranks(self) -> bool:
        """Whether the arm played is that of largest score, so that a cost can be taken off."""

    @property
    def judged(self) -> bool:
        """Whether its memories propose arms: one that none proposes has a negative bonus."""

    @property
    def many_arms(self) -> float:
        """From so many arms on another kernel scores them."""

    def choose(self, state: Any, arms: Any, draw: int | None = None) -> Choice:
        """The choice."""

    def scores(self, state: Any, arms: Any, draw: int | None = None) -> Scores:
        """Mean and bonus of every arm; NaN where it does not score."""

    def propensity(self, state: Any, arms: ArmSet, arm: int, draw: int) -> tuple[float, int] | None:
        """How likely an arm is played and the draws that was counted over, 0 where it is exact; None where whoever
        asks has to draw again and count."""

    def shares(self, state: Any, arms: ArmSet, arm: int, draw: int) -> Floats:
        """How likely each arm is played; `arm` is played by this draw."""

    def check_shares(self) -> None:
        """Refuse a policy that samples and does not say how likely it plays an arm."""

    def check_set(self, offered: ActionSet) -> None:
        """Refuse a list of arms, or a continuous set, that it cannot play."""

    # ---------------------------------------------------------------------------------------- lessons
    @property
    def taught_with_arms(self) -> bool:
        """Whether a lesson takes all arms of a decision, and not only the vector played."""

    def lesson_of(self, arms: ActionSet, found: Choice) -> Any:
        """What the lesson of a choice will take."""

    def learn(self, state: Any, arms: Any, arm: Any, reward: float) -> None:
        """A lesson at the next tick, checked."""

    def take(self, state: Any, x: Any, reward: float, ticks: float, age: float) -> None:
        """A lesson, checked by whoever calls."""

    def advance(self, state: Any, ticks: float) -> None:
        """Time passes."""

    @property
    def folds(self) -> bool:
        """Whether `fold` takes many lessons in one call."""

    def fold(self, state: Any, rows: Floats, rewards: Floats, ticks: Floats, ages: Floats) -> None:
        """Many lessons."""

    # ---------------------------------------------------------------------------------------- states
    @property
    def reads_only(self) -> bool:
        """Whether a choice is known to change nothing."""

    @property
    def state_size(self) -> int:
        """Numbers of a state."""

    def start(self, seed: int = 0) -> Any:
        """A fresh state."""

    def renew(self, copy: Any, state: Any) -> None:
        """A state that was a copy of another becomes one again."""

    def seen(self, state: Any) -> Any:
        """A state as the user knows it."""

    def written(self, state: Any) -> dict[str, Any]:
        """A state as arrays, for a snapshot."""

    def held(self, arrays: dict[str, Any], way_out: str) -> Any:
        """The state that `written` gave, proven in range, or the one sentence."""

    # ---------------------------------------------------------------------------------------- what it knows
    def theta(self, state: Any) -> Floats:
        """θ as it is played; empty where nobody knows."""

    def worth(self, state: Any) -> float:
        """(Σw)²/Σw² of the lane that is played: how many observations it is worth; NaN where nobody knows."""

    def remembered(self, state: Any) -> float:
        """Rounds of the memory now played; NaN where nobody knows."""

    @property
    def weighs(self) -> bool:
        """Whether it weighs several memories against each other."""

    def weights(self, state: Any) -> Floats | None:
        """The weights of its memories; None where it weighs none."""

    def weighed(self, weights: Floats) -> tuple[tuple[float, ...], Floats]:
        """Rounds of its memories and rows of weights as a reader wants them, those of one length as one."""

    def level(self, state: Any) -> LevelReport | None:
        """The drift of a level that all arms share, where it tells that apart."""

    @property
    def predicts(self) -> Predicts:
        """By what rewards can be predicted again."""

    @property
    def reports(self) -> bool:
        """Whether `report` says something that was not told."""

    def report(self, state: Any) -> dict[str, Any]:
        """What it has to say at the end."""

    # ---------------------------------------------------------------------------------------- adding up
    @property
    def adds_up(self) -> bool:
        """Whether states can be added at all."""

    def check_adds(self) -> None:
        """Refuse to add states that do not add up."""

    def add(self, state: Any, theirs: Any) -> None:
        """The sums of one state and of another at the same tick; then the estimate anew."""

    def check_sums(self) -> float:
        """The forget of a policy whose state is sums over rows, or the one sentence."""
