"""The current index of a family as a form: the entries beside those that score lists of arms.

They read the same factors from which scores are computed, so that a point that is found has its promised score.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from driftwise._internal.elementary import log, log1p
from driftwise.kernels import entry, piece, routine, stored_as
from driftwise.kernels.adapt.belief import ACTING as ACTING
from driftwise.kernels.adapt.belief import LOOK
from driftwise.kernels.adapt.book import sound_marks
from driftwise.kernels.adapt.lesson import who_acts
from driftwise.kernels.adapt.levels import level_lane
from driftwise.kernels.algebra import factor_
from driftwise.kernels.belief import Gauge, believe_, gauge_of, prior_of, quantile_of, trace_of
from driftwise.kernels.chance import normal
from driftwise.kernels.cut import Matrix, Vector
from driftwise.kernels.glm import QUANTILE, glm_radius
from driftwise.kernels.groups import Adapting, Sums, adapting_of, estimate_of, sums_of
from driftwise.kernels.level import FOUR, Levels, believe_preferences_, center_, guess_of, levels_of
from driftwise.kernels.linear import linear_factors_, linear_scale, two_matrices
from driftwise.kernels.links import IDENTITY
from driftwise.kernels.point import (
    AUDIT_LANE,
    CLOCK,
    COUNT,
    DAMAGED,
    DIM,
    DRAWN,
    EXPLORE,
    FINE,
    KAPPA,
    KEY_HIGH,
    KEY_LOW,
    LAM,
    LINK,
    ONLY,
    POSTERIOR,
    RULE,
    SQUARES,
    UPWARD,
    WEIGHT,
    Floats,
    Ints,
    Point,
    S,
)
from driftwise.kernels.point import THETA as DRAWS_THETA
from driftwise.kernels.sampling import BY_ROUND, round_of
from driftwise.kernels.search import index_form as page
from driftwise.kernels.search.index_form import (
    PIVOT,
    RISES,
    SUM,
    THETA,
    TILT,
    WHITE,
    IndexForm,
    add_square_,
    index_form_of,
    invert_,
    plain_,
    set_to_zero_,
)
from driftwise.kernels.solvers.ball import length_of

# Whose index: that of the lane that acts, or what a decision is for (kernels/adapt/belief.py); of a bank of clicks that
# is judged, the judge's; from 0 on a lane's own.
JUDGE = -2


@piece
def estimate_from_(form: IndexForm) -> None:
    """θ = low⁻ᵀz, with z in vec[WHITE] and low⁻¹ in work."""
    vec, work, d = form.vec, form.work, form.vec.shape[1]
    for i in range(d):
        t = 0.0
        for k in range(i, d):
            t += work[k, i] * vec[WHITE, k]
        vec[THETA, i] = t


@routine
def linear_form_(point: Point, row: int, lane: int, sums: Sums, form: IndexForm) -> None:
    """x'V⁻¹b and β‖x‖ in the norm of V⁻¹, or of V⁻¹ṼV⁻¹ for two matrices: the values of linear_scores_."""
    d, pivot = form.vec.shape[1], form.vec[PIVOT]
    linear_factors_(point, row, lane, sums, form.low, form.other, pivot, form.vec[WHITE])
    plain_(form, int(RISES), int(IDENTITY), linear_scale(point, row, lane, sums, pivot))
    invert_(form.low, pivot, form.work)
    estimate_from_(form)
    set_to_zero_(form.A)
    if not two_matrices(point):
        add_square_(1.0, form.work, form.A)
        return
    # A = K'K, K = other' low⁻¹, kept in rows.
    set_to_zero_(form.rows)
    for k in range(d):
        for i in range(k + 1):
            t = form.other[k, i]
            for j in range(k + 1):
                form.rows[i, j] += t * form.work[k, j]
    for k in range(d):
        for i in range(d):
            t = form.rows[k, i]
            for j in range(d):
                form.A[i, j] += t * form.rows[k, j]


@routine
def belief_form_(
    point: Point, row: int, lane: int, audit: bool, sums: Sums, gauge: Gauge, form: IndexForm
) -> None:
    """θ̂ and a quantile of the belief as belief_scores_ has it, or for a look a theorem's radius with δ = 1/t and the
    ridge ρ₀ (docs/math.md#audits): R(√d + √(2 log t + d log(1 + tr G/(ρ₀d)))), in whose first part √ρ₀S = R√d."""
    d, link = form.vec.shape[1], point.flags[LINK]
    pivot, z = form.vec[PIVOT], form.vec[WHITE]
    prior = prior_of(point, row, gauge, d)
    believe_(point, row, lane, prior.played, gauge, sums, form.low, form.other, pivot, z)
    if audit:
        grown = d * log1p(trace_of(sums.G, lane, gauge) / (prior.ridge * d))
        weight = math.sqrt(d) + math.sqrt(2.0 * log(max(2.0, sums.counters[lane, COUNT])) + grown)
    else:
        weight = quantile_of(point, row, sums.counters[lane, WEIGHT]) * point.table[row, EXPLORE]
    plain_(form, int(RISES), link, weight * (prior.noise if link == IDENTITY else 1.0))
    invert_(form.low, pivot, form.work)
    estimate_from_(form)
    set_to_zero_(form.A)
    add_square_(1.0, form.work, form.A)


@routine
def level_form_(point: Point, row: int, lane: int, levels: Levels, gauge: Gauge, form: IndexForm) -> None:
    """The index of a lane with a separate level, whose arms are relative to centres: level_scores_."""
    d, link, vec = form.vec.shape[1], point.flags[LINK], form.vec
    pivot, z, centre = vec[PIVOT], vec[WHITE], form.other
    prior, total, first = prior_of(point, row, gauge, d), 0.0, int(ONLY)
    guess = guess_of(prior, gauge, d)
    weight = quantile_of(point, row, levels.sums.counters[lane, WEIGHT]) * point.table[row, EXPLORE]
    plain_(form, int(RISES), link, weight * (prior.noise if link == IDENTITY else 1.0))
    set_to_zero_(form.A)
    memories = levels.weights.size // FOUR
    for turn in range(memories):
        total += levels.weights[lane % FOUR + turn * FOUR]
    for turn in range(memories):  # the lane itself comes last, and its θ and centre stay
        k = lane % FOUR + (lane // FOUR + turn + 1) % memories * FOUR
        own = k % levels.filters.shape[0]
        level = center_(point, row, guess, levels.filters, own, 0.0, centre, first)
        believe_preferences_(k, prior.ridge, gauge, levels.sums, form.low, pivot, z)
        invert_(form.low, pivot, form.work)
        share = levels.weights[k] / total
        add_square_(share, form.work, form.A)
        estimate_from_(form)
        form.numbers[page.SHIFT] = level.reward
        for i in range(d):  # low⁻¹x̄, and with it A x̄ and x̄'A x̄ of this lane
            t = 0.0
            for j in range(i + 1):
                t += form.work[i, j] * centre[first, j]
            pivot[i] = t
            form.numbers[page.SHIFT] -= centre[first, i] * vec[THETA, i]
            form.numbers[page.CONSTANT_PART] += share * t * t
        for i in range(d):
            for j in range(i, d):
                vec[TILT, i] += share * form.work[j, i] * pivot[j]


# ------------------------------------------------------------------------------------------ entries


class Writes(Protocol):
    """Writes whose index it is to a form."""

    def __call__(self, point: Point, own: Adapting, floats: Floats, whose: int, form: IndexForm) -> None: ...


def forming(name: str, write_: Writes) -> Callable[..., int]:
    """The entry that writes the index of a family."""

    @entry
    @stored_as(name)
    def form_(flags: Ints, table: Matrix, floats: Vector, ints: Ints, scratch: Vector, whose: int) -> int:
        """The current index as a form. Returns FINE, or why nothing was done."""
        point, own = Point(flags, table), adapting_of(flags, floats, ints)
        if not sound_marks(point, own):
            return DAMAGED
        write_(point, own, floats, whose, index_form_of(scratch, flags[DIM]))
        return FINE

    return form_


@piece
def acting_form_(point: Point, own: Adapting, floats: Floats, whose: int, form: IndexForm) -> None:
    """The linear family, alone or adapting."""
    lane, row = who_acts(point, own)
    linear_form_(point, row, lane, sums_of(point.flags, floats), form)


@piece
def believed_form_(point: Point, own: Adapting, floats: Floats, whose: int, form: IndexForm) -> None:
    """Beliefs, alone or in a bank, for what a decision is for."""
    flags, table = point
    sums, levels, gauge = sums_of(flags, floats), levels_of(flags, floats), gauge_of(flags, floats)
    with_level = level_lane(levels.weights, levels.evidence)
    if with_level >= 0 and whose == ACTING:
        level_form_(point, int(table.shape[0] - levels.weights.size + with_level), with_level, levels, gauge, form)
        return
    look = whose <= LOOK
    audited = int(table[0, AUDIT_LANE])
    lane, row = (audited, audited) if look else who_acts(point, own)
    belief_form_(point, row, lane, look, sums, gauge, form)


@piece
def generalized_form_(point: Point, own: Adapting, floats: Floats, whose: int, form: IndexForm) -> None:
    """The generalized linear families: of the acting lane, of one lane, or of a judge."""
    flags, table = point
    sums, estimate = sums_of(flags, floats), estimate_of(flags, floats)
    d, link = flags[DIM], flags[LINK]
    lane, row = who_acts(point, own) if whose < 0 else (whose, whose)
    pivot, weight, kind, judge = form.vec[PIVOT], 0.0, int(SUM), whose == JUDGE
    if flags[RULE] == POSTERIOR or judge:
        place = lane + sums.G.shape[0] if judge else lane
        factor_(estimate.H, place, 0.0, form.low, pivot)
        weight, kind = table[0, KAPPA] if judge else QUANTILE * table[row, EXPLORE], int(RISES)
        for i in range(d):
            form.vec[WHITE, i] = estimate.theta[place, i]
    else:
        factor_(sums.G, lane, table[row, LAM], form.low, pivot)
        inside = length_of(estimate.theta, lane) <= table[row, S]
        count = sums.counters
        weight = glm_radius(point, row, count[lane, SQUARES], count[lane, CLOCK], d, inside)
        for i in range(d):
            form.vec[WHITE, i] = estimate.shown[lane, i]
    plain_(form, kind, link, weight)
    invert_(form.low, pivot, form.work)
    set_to_zero_(form.A)
    add_square_(1.0, form.work, form.A)
    for i in range(d):
        form.vec[THETA, i] = form.vec[WHITE, i]


form_linear_ = forming("form_linear_", acting_form_)
form_belief_ = forming("form_belief_", believed_form_)
form_glm_ = forming("form_glm_", generalized_form_)


@routine
def draw_theta_(link: int, scale: float, key: Ints, draw: int, form: IndexForm, root: Floats) -> None:
    """θ + scale·root'z, z the normals of a draw's first attempt: what add_normal_ adds to the arms of a list, before
    its link."""
    d = form.vec.shape[1]
    for k in range(d):
        z = scale * normal(key[KEY_LOW], key[KEY_HIGH], draw, k, 0)
        for i in range(d):
            form.vec[THETA, i] += z * root[k, i]
    plain_(form, int(RISES), link, 0.0)


@entry
def form_sampling_linear_(
    flags: Ints, table: Matrix, floats: Vector, ints: Ints, scratch: Vector, draw: int
) -> int:
    """x'θ̃ of a draw, or x'θ̂ and |Z|β‖x‖; a multiplier below 0 is written as a weight below 0."""
    point, sums, key = Point(flags, table), sums_of(flags, floats), adapting_of(flags, floats, ints).key
    form, first = index_form_of(scratch, flags[DIM]), int(ONLY)
    linear_form_(point, first, first, sums, form)
    number = round_of(sums) if draw == BY_ROUND else draw
    if flags[DRAWN] != DRAWS_THETA:
        z = normal(key[KEY_LOW], key[KEY_HIGH], number, first, first)
        form.numbers[page.WEIGHT] *= abs(z) if flags[DRAWN] == UPWARD else z
        return FINE
    scale = float(form.numbers[page.WEIGHT])
    draw_theta_(flags[LINK], scale, key, number, form, form.rows if two_matrices(point) else form.work)
    return FINE


@entry
def form_sampling_glm_(flags: Ints, table: Matrix, floats: Vector, ints: Ints, scratch: Vector, draw: int) -> int:
    """x'θ̃ of a draw by the Laplace posterior."""
    key, sums = adapting_of(flags, floats, ints).key, sums_of(flags, floats)
    form, estimate, first = index_form_of(scratch, flags[DIM]), estimate_of(flags, floats), int(ONLY)
    factor_(estimate.H, first, 0.0, form.low, form.vec[PIVOT])
    invert_(form.low, form.vec[PIVOT], form.work)
    set_to_zero_(form.A)
    for i in range(flags[DIM]):
        form.vec[THETA, i] = estimate.theta[first, i]
    number = round_of(sums) if draw == BY_ROUND else draw
    draw_theta_(flags[LINK], table[first, EXPLORE], key, number, form, form.work)
    return FINE
