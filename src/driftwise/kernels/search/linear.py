"""The linear family on a ball or an ellipsoid in one call: from sums to the best point, its score and a bound.

With three calls, for a form, a search and a score, Python took longer than the arithmetic.
"""

from __future__ import annotations

from driftwise.kernels import entry, piece
from driftwise.kernels.adapt.book import sound_marks
from driftwise.kernels.adapt.lesson import who_acts
from driftwise.kernels.cut import Matrix, Vector, cut
from driftwise.kernels.groups import adapting_of, sums_of
from driftwise.kernels.index import ScoreScratch
from driftwise.kernels.linear import linear_index_
from driftwise.kernels.point import DAMAGED, FINE, ONLY, Ints, Point
from driftwise.kernels.search.ball import outward_, plain_summit_, through_
from driftwise.kernels.search.families import linear_form_
from driftwise.kernels.search.index_form import (
    BONUS,
    FIRST,
    MEAN,
    PIVOT,
    SECOND,
    WEIGHT,
    WHITE,
    IndexForm,
    index_form_of,
)

# The status of a search whose matrix has no eigenvalues.
NO_ROOT = 1


@piece
def scores_on(form: IndexForm) -> ScoreScratch:
    """Scores of one arm whose factors are those of the form, its mean and bonus places of numbers."""
    mean, bonus = cut(form.numbers, MEAN, (1,)), cut(form.numbers, BONUS, (1,))
    vec, Y = form.vec, cut(form.vec[FIRST], 0, (form.vec.shape[1], 1))
    low, other, more = form.low, form.other, form.rows
    return ScoreScratch(mean, bonus, vec[SECOND], low, other, vec[PIVOT], vec[WHITE], Y, more, vec[SECOND])


@entry
def best_linear_(
    flags: Ints, table: Matrix, floats: Vector, ints: Ints, scratch: Vector, F: Matrix, straight: bool, out: Vector
) -> int:
    """out <- the x = Fy, ‖y‖ ≤ 1, of largest index, alone or adapting; numbers have its mean and bonus and TOP, the
    bound. FINE, NO_ROOT or DAMAGED."""
    point, own = Point(flags, table), adapting_of(flags, floats, ints)
    if not sound_marks(point, own):
        return DAMAGED
    (lane, row), form = who_acts(point, own), index_form_of(scratch, out.size)
    linear_form_(point, row, lane, sums_of(flags, floats), form)
    through_(form, F, straight)
    if not plain_summit_(form):
        return NO_ROOT
    outward_(form, F, straight, out)
    linear_index_(point, form.numbers[WEIGHT], cut(out, 0, (1, out.size, 1)), int(ONLY), scores_on(form))
    return FINE
