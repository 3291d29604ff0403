"""The protocol by which simulation, agent, data, lab, service and the command line use a policy.

A question with a body has that default. Policies with lanes and memories answer in answers.py and, where one differs,
in its own file. A policy of the user's own, with start, choose and learn only, answers through the adapter in own.py.
No other module checks the class of a policy or reads the layout of a state.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn, Protocol, runtime_checkable

import numpy as np

from driftwise.errors import BadInput
from driftwise.kernels.point import Floats
from driftwise.policies.arms import ActionSet, ArmSet, Choice, Scores

if TYPE_CHECKING:
    from driftwise.policies.engines import Sizes
    from driftwise.policies.memory import Memory


@runtime_checkable
class Policy(Protocol):
    """The methods that every policy must have."""

    def start(self, seed: int = 0) -> Any: ...
    def choose(self, state: Any, arms: Any) -> Any: ...
    def learn(self, state: Any, arms: Any, arm: int, reward: float) -> None: ...


class WorldFacts(NamedTuple):
    """The facts of a world for a policy that plays it."""

    dim: int
    L: float
    link: str
    reward: str
    offered: ActionSet | None  # the set, if it is continuous and the same in every round


class LinkCurve(NamedTuple):
    """Rewards with a link: μ and μ' on arrays, whether they are probabilities, and what scores an estimate."""

    mean: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]
    chances: bool
    widening: float
    noise: float
    reach: float  # the largest |x'θ|
    ridge: float


class Predicts(NamedTuple):
    """The model of rewards: R, 0 if it is not given, the length L of arms, and the curve of a link."""

    noise: float
    length: float
    curve: LinkCurve | None = None


class LevelReport(NamedTuple):
    """A common level of all arms: log evidence that it moves apart from preferences, whether that is accepted, and how
    long the likeliest memory keeps the level and preferences, in ticks."""

    evidence: float
    believed: bool
    level: float
    preferences: float


# The squares of larger rewards do not fit in a double.
MOST_REWARD = 1e100
# The cost of a round with a solver or Python in it, in rounds of one linear lane.
STEPPED_COST = 400.0


class Asked(Protocol):
    """The questions. States are those that `start` made, vectors are (1, d, 1)."""

    dim: Any  # the number of features of an arm; None if the first arms determine it

    # ---------------------------------------------------------------------------------------- what it is
    @property
    def given(self) -> Any:
        """The policy as the user made it."""
        return self

    @property
    def described(self) -> Any:
        """The policy as plain data, or the name of its class if it is the user's own."""

    @property
    def digest(self) -> str:
        """The digest that identifies it."""

    @property
    def reach(self) -> float:
        """The longest arm it accepts."""

    @property
    def reward_range(self) -> tuple[float, float]:
        """The smallest and the largest reward it accepts: squares of larger ones would not fit in a double."""
        return -MOST_REWARD, MOST_REWARD

    @property
    def stepped(self) -> bool:
        """Whether it can only be run call by call."""
        return False

    def plays_eight(self, sizes: Sizes) -> bool:
        """Whether several trials of these sizes are played together."""
        return False

    @property
    def cost(self) -> float:
        """The cost of a round, in rounds of one linear lane."""
        return STEPPED_COST

    @property
    def can_fail(self) -> bool:
        """Whether an update can fail, or costs more than a copy of the state."""
        return False

    def check_problem(self, name: str, problem: WorldFacts) -> None:
        """Refuse a problem that it cannot play."""

    # ---------------------------------------------------------------------------------------- time
    @property
    def single_memory(self) -> Memory | None:
        """Its memory; None if it chooses among several, or if it is unknown."""
        return None

    @property
    def adapts(self) -> bool:
        """Whether it finds its memory itself."""
        return False

    @property
    def counts_rounds(self) -> bool:
        """Whether a decision must be closed before the next, because it depends on consecutive rounds."""
        return False

    @property
    def timeless(self) -> bool:
        """Whether no choice depends on the length of a tick."""

    @property
    def ages(self) -> bool:
        """Whether choices change while time passes without rewards."""

    @property
    def half_life(self) -> float:
        """The ticks in which it forgets half; infinite if it forgets nothing or if it is unknown."""
        return np.inf

    def remembering(self, memory: Memory) -> Any:
        """The same policy with another memory."""

    def check_wall_clock(self) -> None:
        """Refuse settings that have no meaning on the wall clock."""

    def phase(self, tick: int) -> float:
        """The clock of a state that starts at this tick of the wall clock."""
        return 0.0

    def effective(self) -> Floats:
        """The rounds of every memory that it may use."""
        return np.zeros(0)

    # ---------------------------------------------------------------------------------------- choices
    @property
    def deterministic(self) -> bool:
        """Whether equal states and arms give equal choices; if not, a choice needs the number of a draw."""
        return True

    @property
    def scores_arms(self) -> bool:
        """Whether it scores every arm."""
        return True

    @property
    def ranks(self) -> bool:
        """Whether the arm played has the largest score, so that a cost can be subtracted."""
        return self.scores_arms and self.deterministic

    @property
    def judged(self) -> bool:
        """Whether its memories propose arms. An arm that none proposes has a negative bonus."""
        return False

    @property
    def many_arms(self) -> float:
        """From this number of arms on, another kernel scores them."""
        return np.inf

    def choose(self, state: Any, arms: Any, draw: int | None = None) -> Choice:
        """The choice."""

    def scores(self, state: Any, arms: Any, draw: int | None = None) -> Scores:
        """Mean and bonus of every arm; NaN if it does not score."""

    def priced(self, state: Any, arms: ArmSet, costs: Floats, draw: int | None) -> tuple[Choice, Floats]:
        """The choice where costs are subtracted from scores, with its score less its cost, and the probability of every
        arm. Asked of a policy that ranks alone; of one that also draws, with no costs too."""
        scores = self.scores(state, arms, draw)
        totals = scores.score - costs
        arm = int(totals.argmax())
        found = Choice(arm, float(totals[arm]), float(scores.mean[arm]), float(scores.bonus[arm]))
        return found, np.asarray(np.arange(arms.count) == arm, dtype=np.float64)

    def propensity(self, state: Any, arms: ArmSet, arm: int, draw: int) -> tuple[float, int] | None:
        """The probability of an arm and the number of draws from which it was counted, 0 if it is exact; None if the
        caller must draw again and count."""
        return None

    def shares(self, state: Any, arms: ArmSet, arm: int, draw: int) -> Floats:
        """The probability of each arm; `arm` is played with this draw."""
        return np.asarray(np.arange(arms.count) == arm, dtype=np.float64)

    def check_shares(self) -> None:
        """Refuse a policy that samples and does not report the probabilities of arms."""
        if not self.deterministic and type(self).shares is Asked.shares:
            no_shares(self.given)

    def check_set(self, offered: ActionSet) -> None:
        """Refuse a list of arms, or a continuous set, that it cannot play."""

    # ---------------------------------------------------------------------------------------- lessons
    @property
    def taught_with_arms(self) -> bool:
        """Whether an update needs all arms of a decision, and not only the vector played."""
        return False

    def lesson_of(self, arms: ActionSet, found: Choice) -> Any:
        """The argument for the update of a choice."""

    def learn(self, state: Any, arms: Any, arm: Any, reward: float) -> None:
        """An update at the next tick, with checks."""

    def take(self, state: Any, x: Any, reward: float, ticks: float, age: float) -> None:
        """An update that the caller has checked."""

    def advance(self, state: Any, ticks: float) -> None:
        """Time passes."""

    @property
    def folds(self) -> bool:
        """Whether `fold` takes many updates in one call."""
        return False

    def fold(self, state: Any, rows: Floats, rewards: Floats, ticks: Floats, ages: Floats) -> None:
        """Many updates."""
        assert self.folds, "it learns rewards one by one"

    # ---------------------------------------------------------------------------------------- states
    @property
    def reads_only(self) -> bool:
        """Whether a choice is known not to change the state."""
        return False

    @property
    def state_size(self) -> int:
        """The number of numbers in a state."""

    def start(self, seed: int = 0) -> Any:
        """A fresh state."""

    def renew(self, copy: Any, state: Any) -> None:
        """Make a former copy of a state a copy again."""

    def seen(self, state: Any) -> Any:
        """A state in the user's own form."""
        return state

    def written(self, state: Any) -> dict[str, Any]:
        """A state as arrays, for a snapshot."""

    def held(self, arrays: dict[str, Any], way_out: str) -> Any:
        """The state that `written` gave, checked, or a BadInput."""

    # ---------------------------------------------------------------------------------------- what it knows
    def theta(self, state: Any) -> Floats:
        """θ in use; empty if it is unknown."""

    def worth(self, state: Any) -> float:
        """(Σw)²/Σw² of the lane in use: its effective observations; NaN if they are unknown."""

    def remembered(self, state: Any) -> float:
        """The rounds of the memory in use; NaN if they are unknown."""

    @property
    def weighs(self) -> bool:
        """Whether it weighs several memories."""
        return False

    def weights(self, state: Any) -> Floats | None:
        """The weights of its memories; None if it has none."""
        return None

    def weighed(self, weights: Floats) -> tuple[tuple[float, ...], Floats]:
        """The rounds of its memories and rows of weights for a reader; memories of equal length are combined."""
        return tuple(self.effective().tolist()), weights

    def level(self, state: Any) -> LevelReport | None:
        """The drift of a level that all arms share, if it separates that."""
        return None

    @property
    def predicts(self) -> Predicts:
        """The model with which rewards can be predicted again."""
        return Predicts(0.0, self.reach)

    @property
    def reports(self) -> bool:
        """Whether `report` contains something that was learned."""
        return False

    def report(self, state: Any) -> dict[str, Any]:
        """Its report at the end."""
        return {}

    # ---------------------------------------------------------------------------------------- adding up
    @property
    def adds_up(self) -> bool:
        """Whether states can be added at all."""
        return False

    def check_adds(self) -> None:
        """Refuse to add states that do not add up."""
        if not self.adds_up:
            wanted = "a linear policy or an exact generalized linear one, with Keep or Fade"
            raise BadInput("policy", self.given, wanted, "nothing else adds up")

    def add(self, state: Any, theirs: Any) -> None:
        """Add the sums of another state at the same tick, and solve the estimate again."""
        self.check_adds()

    def check_sums(self) -> float:
        """The forget of a policy whose state is sums over rows, or a BadInput."""
        wanted = "a linear policy with Keep or Fade: nothing else is a sum over rows"
        raise BadInput("policy", self.given, wanted, "learn the log instead, agent.learn_log(log)")


def no_shares(policy: object) -> NoReturn:
    """Refuse a policy that samples and does not report the probabilities of arms."""
    wanted = "propensities(state, arms, draw) of a policy that samples"
    raise BadInput("policy", type(policy).__name__, wanted, "add it, so that its choices can be weighed")
