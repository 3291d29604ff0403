"""The loop of rounds, bound to an engine's pieces: how rounds begin, how an arm is chosen, how a reward is learned.

A *family* defines how a state is viewed, scored and changed by a lesson. Live entries (kernels/entries.py) use the same
pieces, so simulated and live choices have the same bits. An *engine* plays rounds of a family: the plain one here plays
every family; others (kernels/tiled.py, kernels/trials.py) play some of them faster, with the same bits. A bound loop
contains only what its policy uses, so it compiles quickly.
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

view_of = unbound("view_of", "cuts a packed state into the bundles of a family")
sound_view = unbound("sound_view", "says whether cursors and marks of a view lie in range")
begin_ = unbound("begin_", "adds scratch to a view for what rounds use, and says what the first round is handed")
choose_ = unbound("choose_", "gives the arm, the row of the table that acted, and what is handed on")
pay_ = unbound("pay_", "records an arm and gives its reward and the regret so far")
learn_ = unbound("learn_", "takes a lesson in and gives what is handed on")
failed_view = unbound("failed_view", "says whether a solver failed, which ends the rounds")


def _play(
    flags: Ints, table: Floats, floats: Floats, ints: Ints, scratch: Floats, arms: Floats, path: Floats,
    draws: Floats, best: Floats, link: int, kind: int, noise: float, total: float, chosen: Ints, regret: Floats,
    used: Ints, rho: Floats,
) -> int:
    """Play len(path) rounds. regret is cumulative and starts from total; used is the row that acted.

    Returns FINE, or why nothing was done. It stops if a solver fails.
    """
    rounds, record = Rounds(arms, path, draws, best, link, kind, noise), Record(chosen, regret, used)
    view = view_of(flags, table, floats, ints)
    if not sound_view(view):
        return DAMAGED
    own, kept = begin_(view, scratch, arms)
    for t in range(path.shape[0]):
        at = set_of(rounds, t)
        arm, row, kept = choose_(own, kept, arms, at)
        reward, total = pay_(own, rounds, record, t, arm, row, total)
        kept = learn_(own, kept, rho, Lesson(arms, at, arm, reward, 1.0, 0.0))
        if failed_view(view):
            break
    return FINE


def bound_loop(
    name: str, family: Family, engine: Callable[[Family], dict[str, Callable[..., Any]]]
) -> Callable[..., int]:
    """The loop with an engine's pieces for a family, compiled and cached under its own name."""
    seen = {"view_of": family.view_of, "sound_view": family.sound_view, "failed_view": family.failed_view}
    return entry(bind(_play, name, **{**seen, "pay_": pay_one_, **engine(family)}))


@piece
def pay_one_(
    own: Any, rounds: Rounds, record: Record, t: int, arm: int, row: int, total: float
) -> tuple[float, float]:
    """One trial: the reward of the arm, and the regret including it."""
    reward = reward_(rounds, t, arm, total, record)
    record.used[t] = row
    return reward, record.regret[t]


@piece
def never_fails(view: Any) -> bool:
    """No solver is used."""
    return False


# ------------------------------------------------------------------------------------------ the plain engine

score_ = unbound("score_", "writes mean and bonus of every arm to scratch and gives the row that acted")
lesson_scratch_of = unbound("lesson_scratch_of", "cuts scratch of a lesson from a place of scratch on")
lesson_ = unbound("lesson_", "takes a lesson in")


def as_it_is(family: Family, flags: Ints) -> Family:
    """One set of pieces for all policies of a family."""
    return family


class Family(NamedTuple):
    """How a model's states are viewed, scored and changed; `name` is part of the name under which bound code is cached.

    `bound` gives the family with only the pieces of one policy's memory, rule and adaptation. Live entries use the
    pieces here, which branch on the flags.
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
    """A state as its family views it, scratch of scores, and scratch of lessons."""

    state: Any
    scores: ScoreScratch
    work: Any


def _begin_(view: Any, scratch: Floats, arms: Floats) -> tuple[Plain, int]:
    d, n = arms.shape[1], arms.shape[2]
    work = lesson_scratch_of(view, scratch, score_scratch_size(d, n), d)
    return Plain(view, score_scratch_of(scratch, d, n), work), arms.size - arms.size


def _choose_(own: Plain, kept: int, arms: Floats, at: int) -> tuple[int, int, int]:
    row = score_(own.state, arms, at, own.scores)
    return first_best(own.scores.mean, own.scores.bonus), row, kept


def _learn_(own: Plain, kept: int, rho: Floats, lesson: Lesson) -> int:
    largest = own.scores.mean[lesson.arm] + own.scores.bonus[lesson.arm]
    lesson_(own.state, own.work, rho, largest, lesson)
    return kept


def plain(family: Family) -> dict[str, Callable[..., Any]]:
    """The pieces with which the loop plays any family: score all arms, take the first of the best, learn."""
    name = family.name
    return {
        "begin_": piece(bind(_begin_, f"begin_{name}", lesson_scratch_of=family.lesson_scratch_of)),
        "choose_": piece(bind(_choose_, f"choose_{name}", score_=family.score_)),
        "learn_": piece(bind(_learn_, f"learn_{name}", lesson_=family.lesson_)),
    }
