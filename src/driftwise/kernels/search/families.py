"""The current index of a family as a form: the entries beside those that score lists of arms.

They read the same factors from which scores are computed, so that a point that is found has its promised score.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Protocol

from driftwise._internal.elementary import log1p
from driftwise.kernels import entry, piece, routine, stored_as
from driftwise.kernels.adapt.book import sound_marks
from driftwise.kernels.adapt.lesson import who_acts
from driftwise.kernels.algebra import factor_
from driftwise.kernels.auto.choice import acting
from driftwise.kernels.auto.gauge import SEEN, scale_of
from driftwise.kernels.auto.lane import begin_of, cell, rounds_of
from driftwise.kernels.auto.lesson import AutoView, auto_sound, auto_view
from driftwise.kernels.chance import normal
from driftwise.kernels.cut import Matrix, Vector
from driftwise.kernels.glm import QUANTILE, glm_radius
from driftwise.kernels.groups import Adapting, Sums, adapting_of, estimate_of, sums_of
from driftwise.kernels.linear import linear_factors_, linear_scale, two_matrices
from driftwise.kernels.links import IDENTITY
from driftwise.kernels.point import (
    CLOCK,
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
    SHORT,
    SQUARES,
    UPWARD,
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

# Whose index: that of the lane that acts; of a bank of clicks that is judged, the judge's; from 0 on a lane's own; for
# the look of number n, LOOK - n.
ACTING, JUDGE, LOOK = -1, -2, -4
# A posterior quantile grows with the data, so that no arm is left for ever.
WIDENS = 0.45


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
def auto_form_(view: AutoView, k: int, form: IndexForm) -> None:
    """What a lane of Auto believes: θ, and the variance x'Ax - 2x'b + c that an arm's value has beside the value of the
    arm played last. The bonus is √(1 + .45 log(1 + t)) deviations, t at most the lane's memory: that of a list, which
    depends on every arm's variance, is no quadratic form."""
    gauge, vec, d = view.gauge, form.vec, form.vec.shape[1]
    link, C, inverse = view.point.flags[LINK], view.beliefs.spread, view.gauge.inverse
    scale, first = scale_of(link, gauge), begin_of(view.point, k, d)
    times = 1.0 + WIDENS * log1p(min(gauge.known[SEEN], rounds_of(view.point, k)))
    plain_(form, int(RISES), link, math.sqrt(times * scale.noise))
    last, own = C[first + cell(d, d)], 0.0  # y = Cx̄ in vec[WHITE], and of the offset in `own`
    for j in range(d):
        own += C[first + cell(d, j)] * gauge.bar[j]
    own += last * gauge.bar[d]
    variance = own * gauge.bar[d]
    for i in range(d):
        t = C[first + cell(d, i)] * gauge.bar[d]
        for j in range(d):
            t += C[first + cell(max(i, j), min(i, j))] * gauge.bar[j]
        vec[WHITE, i] = t
        variance += t * gauge.bar[i]
    if variance <= 0.0:  # rounding has spoilt it
        own, variance = 0.0, 1.0
        for i in range(d):
            vec[WHITE, i] = 0.0
    for i in range(d):
        vec[THETA, i] = view.beliefs.mean[k, i] * inverse[i]
        vec[TILT, i] = -(C[first + cell(d, i)] - vec[WHITE, i] * own / variance) * inverse[i]
        for j in range(d):
            t = C[first + cell(max(i, j), min(i, j))] - vec[WHITE, i] * vec[WHITE, j] / variance
            form.A[i, j] = t * (inverse[i] * inverse[j])
        if gauge.counts[i] == 0.0:
            form.A[i, i] += scale.prior
    form.numbers[page.SHIFT] = view.beliefs.mean[k, d]
    form.numbers[page.CONSTANT_PART] = last - own * own / variance


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
form_glm_ = forming("form_glm_", generalized_form_)


@entry
def form_auto_(flags: Ints, table: Matrix, floats: Vector, ints: Ints, scratch: Vector, whose: int) -> int:
    """The index of Auto's lane that acts, or for a look of the one that looks ask."""
    view = auto_view(flags, table, floats, ints)
    if not auto_sound(view):
        return DAMAGED
    k = acting(view.point, view.gauge, view.beliefs) if whose > LOOK else int(table[0, SHORT])
    auto_form_(view, k, index_form_of(scratch, flags[DIM]))
    return FINE


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
