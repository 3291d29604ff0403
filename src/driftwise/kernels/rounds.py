"""The one loop of rounds, bound to an engine's pieces: how rounds begin, how an arm is chosen, what a reward teaches.

A *family* says how a state is seen, scored and taught; live entries (kernels/entries.py) use the same pieces, and that
is why simulated and live choices have the same bits. An *engine* plays rounds of a family: the plain one here plays
every family, others (kernels/tiled.py, kernels/trials.py) play some of them faster and to the same bits. A bound loop
contains what its policy plays and nothing else, which is what it is quick to compile for.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from driftwise.kernels import entry, piece
from driftwise.kernels.binding import bind, unbound
from driftwise.kernels.chance import Record, Rounds, reward_, set_of
from driftwise.kernels.index import ScoreScratch, first_best, score_scratch_of, score_scratch_size
from driftwise.kernels.point import DAMAGED, FINE, Floats, Ints, Lesson

# ------------------------------------------------------------------------------------------ the loop

begin_ = unbound("begin_", "cuts a state and scratch into what rounds use, and says what the first round is handed")
sound = unbound("sound", "says whether cursors and marks lie in range")
choose_ = unbound("choose_", "gives the arm, the row of the table that acted, and what is handed on")
pay_ = unbound("pay_", "records an arm and gives its reward and the regret so far")
learn_ = unbound("learn_", "takes a lesson in and gives what is handed on")
failed = unbound("failed", "says whether a solver failed, which ends the rounds")


def _play(
    flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, arms: Floats, path: Floats,
    draws: Floats, best: Floats, link: int, kind: int, noise: float, total: float, chosen: Ints, regret: Floats,
    used: Ints, rho: Floats,
) -> int:
    """Play len(path) rounds; regret is cumulative and starts from total; used says which row acted.

    FINE, or why nothing was done. Stops where a solver fails.
    """
    rounds, record = Rounds(arms, path, draws, best, link, kind, noise), Record(chosen, regret, used)
    own, kept = begin_(flags, table, floats, ints, scratch, arms)
    if not sound(own):
        return DAMAGED
    for t in range(path.shape[0]):
        at = set_of(rounds, t)
        arm, row, kept = choose_(own, kept, arms, at)
        reward, total = pay_(own, rounds, record, t, arm, row, total)
        kept = learn_(own, kept, rho, Lesson(arms, at, arm, reward, 1.0, 0.0))
        if failed(own):
            break
    return FINE


def play(name: str, **pieces: Callable[..., Any]) -> Callable[..., int]:
    """The loop with these pieces in it, compiled and cached under a name of its own."""
    return entry(bind(_play, name, **pieces))


@piece
def pay_one_(
    own: Any, rounds: Rounds, record: Record, t: int, arm: int, row: int, total: float
) -> tuple[float, float]:
    """One trial: the reward of the arm, and the regret with it."""
    reward = reward_(rounds, t, arm, total, record)
    record.used[t] = row
    return reward, record.regret[t]


@piece
def never_fails(own: Any) -> bool:
    """No solver stands between a lesson and its end."""
    return False


# ------------------------------------------------------------------------------------------ the plain engine

view_of = unbound("view_of", "cuts a packed state into the bundles of a family")
sound_view = unbound("sound_view", "says whether cursors and marks of a view lie in range")
score_ = unbound("score_", "writes mean and bonus of every arm to scratch and gives the row that acted")
lesson_scratch_of = unbound("lesson_scratch_of", "cuts scratch of a lesson from a place of scratch on")
lesson_ = unbound("lesson_", "takes a lesson in")
failed_view = unbound("failed_view", "says whether a solver failed")


def as_it_is(family: Family, flags: Ints) -> Family:
    """One set of pieces for all policies of a family."""
    return family


class Family(NamedTuple):
    """How a model's states are seen, scored and taught; `name` is part of the name that bound code is cached under.

    `bound` gives the family with the pieces of one policy's memory, rule and adaptation and no others. Live entries use
    the pieces as they stand here, which ask the flags.
    """

    name: str
    view_of: Callable[..., Any]  # flags, table, floats, ints
    sound_view: Callable[..., Any]  # view
    score_: Callable[..., Any]  # view, arms, at, scores
    lesson_scratch_of: Callable[..., Any]  # view, scratch, start, d
    lesson_: Callable[..., Any]  # view, work, rho, largest, lesson
    failed_view: Callable[..., Any] = never_fails  # view
    bound: Callable[[Family, Ints], Family] = as_it_is


class Plain(NamedTuple):
    """A state as its family sees it, scratch of scores, and scratch of lessons."""

    state: Any
    scores: ScoreScratch
    work: Any


def _begin_(flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, arms: Floats) -> tuple[Plain, int]:
    view, d, n = view_of(flags, table, floats, ints), arms.shape[1], arms.shape[2]
    work = lesson_scratch_of(view, scratch, score_scratch_size(d, n), d)
    return Plain(view, score_scratch_of(scratch, d, n), work), arms.size - arms.size


def _sound(own: Any) -> bool:
    return bool(sound_view(own.state))


def _choose_(own: Plain, kept: int, arms: Floats, at: int) -> tuple[int, int, int]:
    row = score_(own.state, arms, at, own.scores)
    return first_best(own.scores.mean, own.scores.bonus), row, kept


def _learn_(own: Plain, kept: int, rho: Floats, lesson: Lesson) -> int:
    largest = own.scores.mean[lesson.arm] + own.scores.bonus[lesson.arm]
    lesson_(own.state, own.work, rho, largest, lesson)
    return kept


def _failed(own: Plain) -> bool:
    return bool(failed_view(own.state))


def sounds(family: Family) -> Callable[..., Any]:
    """`sound` of an engine whose own bundle has the family's view."""
    return piece(bind(_sound, f"sound_{family.name}", sound_view=family.sound_view))


def plain(family: Family) -> dict[str, Callable[..., Any]]:
    """The pieces by which the loop plays any family: score all arms, take the first of the best, learn."""
    name, cuts = family.name, {"view_of": family.view_of, "lesson_scratch_of": family.lesson_scratch_of}
    return {
        "begin_": piece(bind(_begin_, f"begin_{name}", **cuts)),
        "sound": sounds(family),
        "choose_": piece(bind(_choose_, f"choose_{name}", score_=family.score_)),
        "pay_": pay_one_,
        "learn_": piece(bind(_learn_, f"learn_{name}", lesson_=family.lesson_)),
        "failed": piece(bind(_failed, f"failed_{name}", failed_view=family.failed_view)),
    }
