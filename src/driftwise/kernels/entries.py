"""The compiled entries that live systems call: one closed list. Annotations say with what each is called.

Scores, lessons and folds are made of the pieces of a family (kernels/rounds.py), with memory, rule and adaptation by
flag, so that a few entries serve every point of model × memory × rule × adaptation. Wheels hold them as machine code:
nothing else is compiled while a live system decides and learns. Their loops play rounds of a simulation and branch on
the flags; where there is no machine code, numba compiles a loop for the pieces of one policy.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Annotated, Any, NamedTuple, get_args, get_origin, get_type_hints

from driftwise._internal.compiling import Kernel
from driftwise._internal.shipped import code_of
from driftwise.kernels import entry, guards, ridge, stored_as, tapes, tiled
from driftwise.kernels.adapt import bank, bob, book, levels, master
from driftwise.kernels.adapt.belief import BELIEF, audit_belief_, audit_chance, bank_score_, purpose_of, trial_chance
from driftwise.kernels.adapt.glm import GLM
from driftwise.kernels.adapt.linear import ADAPTIVE_LINEAR
from driftwise.kernels.algebra import factor_
from driftwise.kernels.belief import prior_of
from driftwise.kernels.bvd import BVD
from driftwise.kernels.chance import normal, uniform
from driftwise.kernels.checksum import checksum_
from driftwise.kernels.cut import Matrix, Stack, Vector
from driftwise.kernels.glm import glm_radius
from driftwise.kernels.guards import guard_of
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
score_belief_ = scoring("score_belief_", BELIEF, bank_score_)
learn_linear_, learn_bvd_ = teaching("learn_linear_", LINEAR), teaching("learn_bvd_", BVD)
learn_adaptive_linear_ = adapting("learn_adaptive_linear_", ADAPTIVE_LINEAR)
learn_glm_, learn_belief_ = adapting("learn_glm_", GLM), adapting("learn_belief_", BELIEF)
fold_linear_ = folding("fold_linear_", LINEAR)

# ------------------------------------------------------------------------------------------ rounds of every policy

_FAMILIES: tuple[AnyFamily, ...] = (LINEAR, ADAPTIVE_LINEAR, BELIEF, GLM, BVD, SAMPLED_LINEAR, SAMPLED_GLM)
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


def _loop(family: AnyFamily, engine: str, pieces: AnyPieces) -> Live:
    return Live(playing(f"play_{family.name}_{engine}", pieces), guard_of("play", family.name, engine))


LIST: dict[str, Live] = {
    # ScoresArms of a list of arms: by model, then rules that sample, then audits.
    "score_linear_": Live(score_linear_, guard_of("score", "linear")),
    "score_tiled_": Live(tiled.score_tiled_, guard_of("tiled", "linear")),
    "score_adaptive_linear_": Live(score_adaptive_linear_, guard_of("score", "adaptive_linear")),
    "score_glm_": Live(score_glm_, guard_of("score", "glm")),
    "score_belief_": Live(score_belief_, guard_of("score", "belief")),
    "audit_belief_": Live(audit_belief_, guard_of("look", "belief")),
    "sample_linear_": Live(sample_linear_, guard_of("sample", "sampled_linear")),
    "sample_glm_": Live(sample_glm_, guard_of("sample", "sampled_glm")),
    # Lessons.
    "learn_linear_": Live(learn_linear_, guard_of("learn", "linear")),
    "learn_adaptive_linear_": Live(learn_adaptive_linear_, guard_of("adapt", "adaptive_linear")),
    "learn_glm_": Live(learn_glm_, guard_of("adapt", "glm")),
    "learn_bvd_": Live(learn_bvd_, guard_of("learn", "bvd")),
    "learn_belief_": Live(learn_belief_, guard_of("adapt", "belief")),
    "fold_linear_": Live(fold_linear_, guard_of("fold", "linear")),
    "checksum_": Live(checksum_, guards.guard_checksum),
    "renew_": Live(renew_, guards.guard_renew),
    "columns_": Live(columns_, guards.guard_columns, reads=(0,)),
    # The index on continuous sets, and its largest point.
    "form_linear_": Live(families.form_linear_, guard_of("form", "adaptive_linear")),
    "form_belief_": Live(families.form_belief_, guard_of("form", "belief")),
    "form_glm_": Live(families.form_glm_, guard_of("form", "glm")),
    "form_sampling_linear_": Live(families.form_sampling_linear_, guard_of("drawn_form", "sampled_linear")),
    "form_sampling_glm_": Live(families.form_sampling_glm_, guard_of("drawn_form", "sampled_glm")),
    "best_linear_": Live(best_linear_, guard_of("best", "linear")),
    "summit_": Live(ball.summit_, guards.guard_summit),
    "corner_": Live(corners.corner_, guards.guard_corner),
    "climb_": Live(corners.climb_, guards.guard_climb),
    "values_": Live(index_form.values_, guards.guard_values),
    "score_of": Live(index_form.score_of),
    "eigen_": Live(eigen_, guards.guard_eigen),
    # What worlds draw and lay out, and curves.
    "normals_": Live(tapes.normals_, guards.guard_normals),
    "turn_": Live(tapes.turn_, guards.guard_turn),
    "waves_": Live(tapes.waves_, guards.guard_waves),
    "walk_": Live(tapes.walk_, guards.guard_walk),
    "lay_out_": Live(tapes.lay_out_, guards.guard_lay_out),
    "best_means_": Live(best_means_, guards.guard_best_means),
    # The data of adaptations: marks and notes at the start, and weights.
    "bob_draw_": Live(bob.bob_draw_, guards.guard_bob_draw),
    "begin_block_": Live(master.begin_block_, guards.guard_begin_block),
    "schedule_": Live(master.schedule_, guards.guard_schedule),
    "to_clear_": Live(book.to_clear_, guards.guard_to_clear),
    "bank_best": Live(bank.bank_best),
    "bank_pick": Live(bank.bank_pick),
    "level_pick": Live(levels.level_pick, guards.guard_level_pick),
    "level_lane": Live(levels.level_lane, guards.guard_level_lane),
    "purpose_of": Live(purpose_of, guards.guard_purpose),
    "trial_chance": Live(trial_chance, guards.guard_trial_chance),
    "audit_chance": Live(audit_chance, guards.guard_audit_chance),
    # Scalars that policies and agents use.
    "prior_of": Live(prior_of, guards.guard_prior),
    "linear_radius": Live(linear_radius, guards.guard_linear_radius),
    "glm_radius": Live(glm_radius, guards.guard_glm_radius),
    "uniform": Live(uniform),
    "normal": Live(normal),
    # Rules that optimise over a set of parameters, and links of the user's own: the solvers that Python steps.
    "solve_": Live(solve_, guards.guard_solve),
    "project_": Live(project_, guards.guard_project),
    "optimist_": Live(optimist_, guards.guard_optimist),
    "narrow_": Live(narrow_, guards.guard_narrow),
    "factor_": Live(
        factor_, guards.guard_factor, kinds={"G": Stack, "ridge": float, "low": Matrix, "pivot": Vector}
    ),
    "one_pass_fade_": Live(one_pass_fade_, guards.guard_one_pass_fade),
    "one_pass_aim_": Live(one_pass_aim_, guards.guard_one_pass_aim),
    "one_pass_take_": Live(one_pass_take_, guards.guard_one_pass_take),
    # Ridge regression for policies of plain Python.
    "ridge_scores_": Live(ridge.ridge_scores_, guards.guard_ridge_scores, reads=(3,)),
    "ridge_take_": Live(ridge.ridge_take_, guards.guard_ridge_take, reads=(3,)),
    "best_of_eight_": Live(best_of_eight_, guards.guard_best_of_eight),
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


def guarding(name: str) -> Any:
    """The signature of its guard."""
    return importlib.import_module("numba").types.boolean(*declared(name).args)


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
