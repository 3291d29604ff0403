"""The loop of rounds, made of an engine's pieces: how rounds begin, how an arm is chosen, how a reward is learned.

A *family* defines how a state is viewed, scored and changed by a lesson. Live entries (kernels/entries.py) use the same
pieces, so simulated and live choices have the same bits. An *engine* plays rounds of a family: the plain one here plays
every family; others (kernels/tiled.py, kernels/trials.py) play some of them faster, with the same bits. A loop contains
only what its policy uses, so it compiles quickly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from driftwise.kernels import entry, piece, stored_as
from driftwise.kernels.chance import Record, Rounds, reward_, set_of
from driftwise.kernels.cut import Matrix, Vector
from driftwise.kernels.index import ScoreScratch, first_best, score_scratch_of, score_scratch_size
from driftwise.kernels.point import DAMAGED, FINE, ONLY, Floats, Ints, Lesson

View = TypeVar("View")
Work = TypeVar("Work")
Own = TypeVar("Own")
Kept = TypeVar("Kept")
ViewOut = TypeVar("ViewOut", covariant=True)
ViewIn = TypeVar("ViewIn", contravariant=True)
WorkOut = TypeVar("WorkOut", covariant=True)
WorkIn = TypeVar("WorkIn", contravariant=True)
OwnIn = TypeVar("OwnIn", contravariant=True)
OwnOut = TypeVar("OwnOut", covariant=True)
KeptOut = TypeVar("KeptOut", covariant=True)

# ------------------------------------------------------------------------------------------ families


class Sees(Protocol[ViewOut]):
    """Cuts a packed state into the bundles of a family."""

    def __call__(self, flags: Ints, table: Floats, floats: Floats, ints: Ints) -> ViewOut: ...


class Asks(Protocol[ViewIn]):
    """Says something of a view: whether its cursors and marks lie in range, whether a solver failed."""

    def __call__(self, view: ViewIn, /) -> bool: ...


class ScoresArms(Protocol[ViewIn]):
    """Writes mean and bonus of every arm to scratch and gives the row that acted."""

    def __call__(self, view: ViewIn, X: Floats, at: int, scores: ScoreScratch, /) -> int: ...


class CutsScratch(Protocol[ViewIn, WorkOut]):
    """Cuts scratch of a lesson from a place of scratch on."""

    def __call__(self, view: ViewIn, scratch: Floats, start: int, d: int, /) -> WorkOut: ...


class Teaches(Protocol[ViewIn, WorkIn]):
    """Takes a lesson in."""

    def __call__(self, view: ViewIn, work: WorkIn, rho: Floats, largest: float, lesson: Lesson, /) -> None: ...


@piece
def never_fails(view: object) -> bool:
    """No solver is used."""
    return False


class Family(NamedTuple, Generic[View, Work]):
    """How a model's states are viewed, scored and changed; `name` is part of the name under which loops are cached.

    `bound` gives the family with only the pieces of one policy's memory, rule and adaptation. Live entries use the
    pieces here, which branch on the flags.
    """

    name: str
    view_of: Sees[View]
    sound_view: Asks[View]
    score_: ScoresArms[View]
    lesson_scratch_of: CutsScratch[View, Work]
    lesson_: Teaches[View, Work]
    failed_view: Asks[View] = never_fails
    bound: Callable[[Family[View, Work], Ints], Family[View, Work]] = lambda family, flags: family


AnyFamily = Family[Any, Any]


# ------------------------------------------------------------------------------------------ the loop


class Begins(Protocol[ViewIn, OwnOut, KeptOut]):
    """Adds scratch to a view for what rounds use, and says what the first round is handed."""

    def __call__(self, view: ViewIn, scratch: Floats, arms: Floats, /) -> tuple[OwnOut, KeptOut]: ...


class Chooses(Protocol[OwnIn, Kept]):
    """Gives the arm, the row of the table that acted, and what is handed on."""

    def __call__(self, own: OwnIn, kept: Kept, arms: Floats, at: int, /) -> tuple[int, int, Kept]: ...


class Pays(Protocol[OwnIn]):
    """Records an arm and gives its reward and the regret so far."""

    def __call__(
        self, own: OwnIn, rounds: Rounds, record: Record, t: int, arm: int, row: int, total: float, /
    ) -> tuple[float, float]: ...


class Learns(Protocol[OwnIn, Kept]):
    """Takes a lesson in and gives what is handed on."""

    def __call__(self, own: OwnIn, kept: Kept, rho: Floats, lesson: Lesson, /) -> Kept: ...


@piece
def pay_one_(
    own: object, rounds: Rounds, record: Record, t: int, arm: int, row: int, total: float
) -> tuple[float, float]:
    """One trial: the reward of the arm, and the regret including it."""
    reward = reward_(rounds, t, arm, total, record)
    record.used[t] = row
    return reward, record.regret[t]


class Pieces(NamedTuple, Generic[View, Own, Kept]):
    """How an engine plays rounds."""

    view_of: Sees[View]
    sound_view: Asks[View]
    begin_: Begins[View, Own, Kept]
    choose_: Chooses[Own, Kept]
    learn_: Learns[Own, Kept]
    failed_view: Asks[View] = never_fails
    pay_: Pays[Own] = pay_one_


AnyPieces = Pieces[Any, Any, Any]


def playing(name: str, pieces: Pieces[View, Own, Kept]) -> Callable[..., int]:
    """The loop of these pieces, compiled and cached under its own name."""
    view_of, sound_view, failed_view = pieces.view_of, pieces.sound_view, pieces.failed_view
    begin_, choose_, pay_, learn_ = pieces.begin_, pieces.choose_, pieces.pay_, pieces.learn_

    @entry
    @stored_as(name)
    def play(
        flags: Ints, table: Matrix, floats: Vector, ints: Ints, scratch: Vector, rounds: Rounds, total: float,
        record: Record, rho: Vector,
    ) -> int:
        """Play the rounds. The regret is cumulative and starts from total.

        Returns FINE, or why nothing was done. It stops if a solver fails.
        """
        view = view_of(flags, table, floats, ints)
        if not sound_view(view):
            return DAMAGED
        own, kept = begin_(view, scratch, rounds.arms)
        for t in range(rounds.path.shape[0]):
            at = set_of(rounds, t)
            arm, row, kept = choose_(own, kept, rounds.arms, at)
            reward, total = pay_(own, rounds, record, t, arm, row, total)
            kept = learn_(own, kept, rho, Lesson(rounds.arms, at, arm, reward, 1.0, 0.0))
            if failed_view(view):
                break
        return FINE

    return play


# ------------------------------------------------------------------------------------------ the plain engine


class Plain(NamedTuple, Generic[View, Work]):
    """A state as its family views it, scratch of scores, and scratch of lessons."""

    state: View
    scores: ScoreScratch
    work: Work


def plain(family: Family[View, Work]) -> Pieces[View, Plain[View, Work], int]:
    """The pieces with which the loop plays any family: score all arms, take the first of the best, learn."""
    score_, lesson_scratch_of, lesson_ = family.score_, family.lesson_scratch_of, family.lesson_

    @piece
    def begin_(view: View, scratch: Floats, arms: Floats) -> tuple[Plain[View, Work], int]:
        d, n = arms.shape[1], arms.shape[2]
        work = lesson_scratch_of(view, scratch, score_scratch_size(d, n), d)
        return Plain(view, score_scratch_of(scratch, d, n), work), int(ONLY)

    @piece
    def choose_(own: Plain[View, Work], kept: int, arms: Floats, at: int) -> tuple[int, int, int]:
        row = score_(own.state, arms, at, own.scores)
        return first_best(own.scores.mean, own.scores.bonus), row, kept

    @piece
    def learn_(own: Plain[View, Work], kept: int, rho: Floats, lesson: Lesson) -> int:
        largest = own.scores.mean[lesson.arm] + own.scores.bonus[lesson.arm]
        lesson_(own.state, own.work, rho, largest, lesson)
        return kept

    return Pieces(family.view_of, family.sound_view, begin_, choose_, learn_, family.failed_view)
