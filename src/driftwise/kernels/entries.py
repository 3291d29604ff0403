"""The compiled entries that live systems call: one closed list. Annotations say with what each is called.

Scores, lessons and folds are made of the pieces of a family (kernels/rounds.py), with memory, rule and adaptation by
flag, so that a few entries serve every point of model × memory × rule × adaptation. Wheels hold them as machine code:
nothing else is compiled while a live system decides and learns. Their loops play rounds of a simulation and branch on
the flags; where there is no machine code, numba compiles a loop for the pieces of one policy.
"""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from driftwise._internal.compiling import Kernel
from driftwise._internal.shipped import code_of
from driftwise.kernels import entry, guards, ridge, stored_as, tapes, tiled
from driftwise.kernels.adapt import bank, bob, book, master
from driftwise.kernels.adapt.glm import GLM
from driftwise.kernels.adapt.linear import ADAPTIVE_LINEAR
from driftwise.kernels.algebra import factor_
from driftwise.kernels.auto.lesson import AUTO, auto_scores_, weigh_auto_
from driftwise.kernels.bvd import BVD
from driftwise.kernels.chance import normal, uniform
from driftwise.kernels.checksum import checksum_
from driftwise.kernels.cut import Matrix, Stack, Vector
from driftwise.kernels.glm import glm_radius
from driftwise.kernels.guards import (
    ARMS,
    ATOMS_HELD,
    FIRST_DRAW,
    FIRST_ROW,
    LESSON,
    RECORDED,
    ROUNDS_HELD,
    ROW,
    SOLVER,
    Need,
    Said,
    form_need,
    guarding,
    guarding_state,
    lesson_need,
    nothing_needed,
    play_need,
    scores_need,
)
from driftwise.kernels.index import columns_, first_best, score_scratch_of
from driftwise.kernels.linear import LINEAR, best_means_, linear_radius
from driftwise.kernels.point import DAMAGED, FINE, ONLY, Ints, Lesson
from driftwise.kernels.renew import renew_
from driftwise.kernels.rounds import AnyFamily, AnyPieces, Family, ScoresArms, View, Work, plain, playing
from driftwise.kernels.sampling import SAMPLED_GLM, SAMPLED_LINEAR, sample_glm_, sample_linear_
from driftwise.kernels.search import ball, corners, families, index_form
from driftwise.kernels.search.linear import best_linear_
from driftwise.kernels.solvers.eigen import eigen_
from driftwise.kernels.solvers.newton import solve_
from driftwise.kernels.solvers.one_pass import one_pass_aim_, one_pass_fade_, one_pass_take_
from driftwise.kernels.solvers.project import project_
from driftwise.kernels.solvers.sets import COLUMNS as SET_ROWS
from driftwise.kernels.solvers.sets import optimist_
from driftwise.kernels.solvers.slabs import narrow_
from driftwise.kernels.trials import FourRecord, FourRounds, best_of_eight_, eight_trials


def scoring(name: str, family: Family[View, Work], score: ScoresArms[View] | None = None) -> Callable[..., int]:
    """The entry that scores a list of arms."""
    view_of, sound_view, score_ = family.view_of, family.sound_view, score or family.score_

    @entry
    @stored_as(name)
    def score_list_(flags: Ints, table: Matrix, floats: Vector, ints: Ints, scratch: Vector, X: Stack) -> int:
        """Mean and bonus of every arm of X (1, d, n), at the beginning of scratch; returns the best arm, or DAMAGED."""
        own = view_of(flags, table, floats, ints)
        if not sound_view(own):
            return DAMAGED
        scores = score_scratch_of(scratch, X.shape[1], X.shape[2])
        score_(own, X, int(ONLY), scores)
        return first_best(scores.mean, scores.bonus)

    return score_list_


def teaching(name: str, family: Family[View, Work]) -> Callable[..., int]:
    """The entry that learns."""
    view_of, sound_view = family.view_of, family.sound_view
    lesson_scratch_of, lesson_ = family.lesson_scratch_of, family.lesson_

    @entry
    @stored_as(name)
    def learn_(
        flags: Ints, table: Matrix, floats: Vector, ints: Ints, scratch: Vector, X: Stack, arm: int, reward: float,
        ticks: float, age: float,
    ) -> int:
        """A lesson on X[0]; arm < 0 lets time pass without an observation. Returns FINE, or why nothing was done."""
        own = view_of(flags, table, floats, ints)
        if not sound_view(own):
            return DAMAGED
        work = lesson_scratch_of(own, scratch, int(ONLY), X.shape[1])
        lesson_(own, work, scratch, 0.0, Lesson(X, int(ONLY), arm, reward, ticks, age))
        return FINE

    return learn_


def adapting(name: str, family: Family[View, Work]) -> Callable[..., int]:
    """The entry that learns, with what MASTER's tests need: ρ̂ and the index of the choice."""
    view_of, sound_view = family.view_of, family.sound_view
    lesson_scratch_of, lesson_ = family.lesson_scratch_of, family.lesson_

    @entry
    @stored_as(name)
    def adapt_(
        flags: Ints, table: Matrix, floats: Vector, ints: Ints, scratch: Vector, lesson: Lesson, rho: Vector,
        largest: float,
    ) -> int:
        """The same. Returns FINE, or why nothing was done."""
        own = view_of(flags, table, floats, ints)
        if not sound_view(own):
            return DAMAGED
        work = lesson_scratch_of(own, scratch, int(ONLY), lesson.X.shape[1])
        lesson_(own, work, rho, largest, lesson)
        return FINE

    return adapt_


def folding(name: str, family: Family[View, Work]) -> Callable[..., int]:
    """The entry that learns many lessons."""
    view_of, sound_view = family.view_of, family.sound_view
    lesson_scratch_of, lesson_ = family.lesson_scratch_of, family.lesson_

    @entry
    @stored_as(name)
    def fold_(
        flags: Ints, table: Matrix, floats: Vector, ints: Ints, scratch: Vector, X: Stack, rewards: Vector,
        ticks: Vector, ages: Vector,
    ) -> int:
        """Lessons in order, lesson t on X[t] (d, 1). Returns FINE, or why nothing was done."""
        own = view_of(flags, table, floats, ints)
        if not sound_view(own):
            return DAMAGED
        work = lesson_scratch_of(own, scratch, int(ONLY), X.shape[1])
        for t in range(rewards.shape[0]):
            lesson_(own, work, scratch, 0.0, Lesson(X, t, int(ONLY), rewards[t], ticks[t], ages[t]))
        return FINE

    return fold_


score_linear_, score_glm_ = scoring("score_linear_", LINEAR), scoring("score_glm_", GLM)
score_adaptive_linear_ = scoring("score_adaptive_linear_", ADAPTIVE_LINEAR)
score_auto_ = scoring("score_auto_", AUTO, auto_scores_)
learn_linear_, learn_bvd_ = teaching("learn_linear_", LINEAR), teaching("learn_bvd_", BVD)
learn_adaptive_linear_ = adapting("learn_adaptive_linear_", ADAPTIVE_LINEAR)
learn_glm_, learn_auto_ = adapting("learn_glm_", GLM), adapting("learn_auto_", AUTO)
fold_linear_ = folding("fold_linear_", LINEAR)

# ------------------------------------------------------------------------------------------ rounds of every policy

_FAMILIES: tuple[AnyFamily, ...] = (LINEAR, ADAPTIVE_LINEAR, AUTO, GLM, BVD, SAMPLED_LINEAR, SAMPLED_GLM)
_FASTER: dict[str, Callable[[AnyFamily], AnyPieces]] = {
    "tiled": tiled.tiled, "tiled_wide": tiled.tiled_wide, "lazy": tiled.lazy
}  # fmt: skip


# ------------------------------------------------------------------------------------------ the list


class Live(NamedTuple):
    """An entry. For machine code: its guard, which checks lengths, and the arrays that are only read, so that the C
    module accepts read-only ones. `kinds` are those of arguments whose annotation is wider."""

    call: Callable[..., Any]
    guard: Callable[..., bool] | None = None
    reads: tuple[int, ...] = ()
    kinds: Mapping[str, object] = {}


def _stated(call: Callable[..., Any], family: str, need: Need, **said: Said) -> Live:
    return Live(call, guarding_state(call, family, need, **said))


def _sized(
    call: Callable[..., Any], form: str = "", kinds: Mapping[str, object] | None = None, **said: Said
) -> Live:
    return Live(call, guarding(call, form, kinds, **said), kinds=kinds or {})


def _loop(family: AnyFamily, engine: str, pieces: AnyPieces) -> Live:
    call, need = playing(f"play_{family.name}_{engine}", pieces), play_need(family.name, engine)
    return _stated(call, family.name, need, rounds=ROUNDS_HELD, record=RECORDED, rho="tests")


LIST: dict[str, Live] = {
    # Scores of a list of arms: by model, then rules that sample.
    "score_linear_": _stated(score_linear_, "linear", scores_need("plain"), X=ARMS),
    "score_tiled_": _stated(tiled.score_tiled_, "linear", scores_need("tiled"), X=ARMS),
    "score_adaptive_linear_": _stated(score_adaptive_linear_, "adaptive_linear", scores_need("plain"), X=ARMS),
    "score_glm_": _stated(score_glm_, "glm", scores_need("plain"), X=ARMS),
    "score_auto_": _stated(score_auto_, "auto", scores_need("plain"), X=ARMS),
    "weigh_auto_": _stated(weigh_auto_, "auto", scores_need("plain"), X=ARMS, costs="n?"),
    "sample_linear_": _stated(sample_linear_, "sampled_linear", scores_need("plain"), X=ARMS, shares="n?"),
    "sample_glm_": _stated(sample_glm_, "sampled_glm", scores_need("plain"), X=ARMS, shares="n?"),
    # Lessons.
    "learn_linear_": _stated(learn_linear_, "linear", lesson_need("linear"), X="1+, dim, arm<"),
    "learn_adaptive_linear_": _stated(
        learn_adaptive_linear_, "adaptive_linear", lesson_need("adaptive_linear"), lesson=LESSON, rho="tests"
    ),
    "learn_glm_": _stated(learn_glm_, "glm", lesson_need("glm"), lesson=LESSON, rho="tests"),
    "learn_bvd_": _stated(learn_bvd_, "bvd", lesson_need("bvd"), X="1+, dim, arm<"),
    "learn_auto_": _stated(learn_auto_, "auto", lesson_need("auto"), lesson=LESSON, rho="tests"),
    "fold_linear_": _stated(
        fold_linear_, "linear", nothing_needed, X="T+, dim, 1+", rewards="T", ticks="T+", ages="T+"
    ),
    "checksum_": _sized(checksum_, sums="2+"),
    "renew_": Live(renew_, guards.guard_renew),
    "columns_": _sized(columns_, rows="many, i", columns="1+, i+, many+")._replace(reads=(0,)),
    # The index on continuous sets, and its largest point.
    "form_linear_": _stated(families.form_linear_, "adaptive_linear", form_need, whose="lanes>"),
    "form_auto_": _stated(families.form_auto_, "auto", form_need),
    "form_glm_": _stated(families.form_glm_, "glm", form_need, whose="lanes>"),
    "form_sampling_linear_": _stated(families.form_sampling_linear_, "sampled_linear", form_need),
    "form_sampling_glm_": _stated(families.form_sampling_glm_, "sampled_glm", form_need),
    "best_linear_": Live(best_linear_, guards.guard_best_linear),
    "summit_": Live(ball.summit_, guards.guard_summit),
    "corner_": _sized(corners.corner_, form="d", low="d", high="d", out="d"),
    "climb_": _sized(corners.climb_, form="d", low="d", high="d", starts="_, d", out="d"),
    "values_": _sized(index_form.values_, form="d", X="many, d", out="many+"),
    "score_of": Live(index_form.score_of),
    "eigen_": _sized(eigen_, A="d+, d+", values="d", rows="d+, d+", beside="d+"),
    # What worlds draw and lay out, and curves.
    "normals_": _sized(tapes.normals_, below="256+", width="256+", height="256+", begun="0+"),
    "turn_": _sized(tapes.turn_, angles="T", path="T+, 2+"),
    "waves_": Live(tapes.waves_, guards.guard_waves),
    "walk_": _sized(tapes.walk_, theta="T, i", steps="T+, i+"),
    "lay_out_": _sized(tapes.lay_out_, raw="T, many, i", length="many+", out="T+, i+, many+"),
    "best_means_": _sized(best_means_, arms="T~, i, n", theta="T, i+", value="n+", best="T+"),
    # The data of adaptations: marks and notes at the start, and weights.
    "bob_draw_": _sized(bob.bob_draw_, point=FIRST_ROW, own=FIRST_DRAW),
    "begin_block_": Live(master.begin_block_, guards.guard_begin_block),
    "schedule_": Live(master.schedule_, guards.guard_schedule),
    "to_clear_": Live(book.to_clear_, guards.guard_to_clear),
    "bank_best": Live(bank.bank_best),
    "bank_pick": Live(bank.bank_pick),
    # Scalars that policies and agents use.
    "linear_radius": _sized(linear_radius, point=ROW, row="0+"),
    "glm_radius": _sized(glm_radius, point=ROW, row="0+"),
    "uniform": Live(uniform),
    "normal": Live(normal),
    # Rules that optimise over a set of parameters, and links of the user's own: the solvers that Python steps.
    "solve_": _sized(solve_, p=ATOMS_HELD, theta="lane<, d", newton=SOLVER, H="d, d"),
    "project_": _sized(project_, p=ATOMS_HELD, low="d, d", theta="lane<, d", newton=SOLVER),
    "optimist_": _sized(
        optimist_, p=ATOMS_HELD, theta="lane<, d", X="d, n", table=f"{SET_ROWS}+, n+", centre="d", best="d"
    ),
    "narrow_": _sized(
        narrow_, p=ATOMS_HELD, theta="lane<, d", Y="d+, count+", limit="count+", count="0+", out="d"
    ),
    "factor_": _sized(
        factor_, kinds={"G": Stack, "ridge": float, "low": Matrix, "pivot": Vector},
        G="at<, d+, d+", at="0+", low="d, d+", pivot="d+",
    ),
    "one_pass_fade_": _sized(one_pass_fade_, H="k<, d+, d+", theta="k<, d", k="0+", M="2+, d, d"),
    "one_pass_aim_": _sized(one_pass_aim_, theta="k<, d", k="0+", x="d", newton=SOLVER | {"Z": "_, _"}),
    "one_pass_take_": _sized(one_pass_take_, H="k<, d+, d+", theta="k<, d", k="0+", x="d", P="1+, d+"),
    # Ridge regression for policies of plain Python.
    "ridge_scores_": _sized(
        ridge.ridge_scores_, V="at<, d+, d+", at="0+", b="at<, d+", X="many, d", low="d, d+", rows="3+, d+",
        out="2+, many+",
    )._replace(reads=(3,)),
    "ridge_take_": _sized(ridge.ridge_take_, V="at<, d+, d+", at="0+", b="at<, d+", x="d")._replace(reads=(3,)),
    "best_of_eight_": _sized(best_of_eight_, X="_, i, 4, 8", path="T, i", four="4+, 8", best="T+, 8"),
    # Rounds.
    "play_linear_eight": Live(
        playing("play_linear_eight", eight_trials(LINEAR)), guards.guard_eight,
        kinds={"rounds": FourRounds, "record": FourRecord},
    ),
    **{f"play_{family.name}_plain": _loop(family, "plain", plain(family)) for family in _FAMILIES},
    **{f"play_linear_{engine}": _loop(LINEAR, engine, pieces(LINEAR)) for engine, pieces in _FASTER.items()},
}



def declared(name: str) -> Any:
    """The signature of an entry in numba's types, from its annotations and those of the bundles that it takes."""
    live = LIST[name]
    kinds = {**_hints(getattr(live.call, "py_func", live.call)), **live.kinds}
    result = _numba(kinds.pop("return"))
    return result(*map(_numba, kinds.values()))


def _hints(one: Any) -> dict[str, Any]:
    return get_type_hints(one, include_extras=True)


def _numba(kind: Any) -> Any:
    """numba's type of what is annotated so."""
    types: Any = importlib.import_module("numba").types
    if isinstance(kind, type) and issubclass(kind, tuple):
        return types.NamedTuple([_numba(field) for field in _hints(kind).values()], kind)
    if get_origin(kind) is tuple:
        return types.Tuple([_numba(one) for one in get_args(kind)])
    if get_origin(kind) is Annotated:
        number, axes = kind.__metadata__
        return types.Array(getattr(types, number), axes, "C")
    return {int: types.int64, float: types.float64, bool: types.boolean, type(None): types.none}[kind]


def guard_of(name: str) -> Any:
    """The signature of its guard: arguments that it asks only for sizes come in one tuple."""
    types: Any = importlib.import_module("numba").types
    args, guard = declared(name).args, LIST[name].guard
    own = list(inspect.signature(guard.py_func).parameters)  # type: ignore[union-attr]
    if own[-1] == "given":
        alone = len(own) - 1
        args = (*args[:alone], types.StarArgTuple.from_types(args[alone:]))
    return types.boolean(*args)


def _ship() -> None:
    """Give every entry its machine code, if the wheel has some."""
    for name, live in LIST.items():
        code = code_of(name)
        if code is not None and isinstance(live.call, Kernel):
            result = _hints(live.call.py_func)["return"]
            live.call.ship(_bundled(code, result._make) if hasattr(result, "_make") else code)


def _bundled(code: Callable[..., Any], make: Callable[..., Any]) -> Callable[..., Any]:
    """Code that returns a plain tuple, as a function that returns a bundle."""
    return lambda *args: make(code(*args))


_ship()
