"""Eight numbers side by side: every lane has the bits that it would have alone, compiled and interpreted."""

import math

import numpy as np
import pytest

from driftwise.kernels import kernel, piece
from driftwise.kernels.lanes import EIGHT, FOUR, eight, four_eights, load, load_four, roots, store_, where_above
from interpreting import both_ways


@piece
def _without(a, x, y):
    a -= x * y
    return a


@kernel
def _all_operations_(A, b, c, out):
    """Every operation, between lanes and with numbers on both sides."""
    for i in range(A.shape[0]):
        m = eight(c)
        for j in range(A.shape[1]):
            m = _without(m, load(A, (i, j)), load(b, 3 * j))
            m += c * load(A, (i, j))
        m = 1.0 / roots(m * m + 2) - load(A, (i, 0)) / 3
        store_(out, i, where_above(m, 0.5, m, load(A, (i, 1))))


@kernel
def _by_four_tiles_(A, b, c, out):
    """The same of tiles (n, 5, 4, 8), with four eights and eight lanes beside them."""
    for i in range(A.shape[0]):
        m = four_eights(c)
        for j in range(A.shape[1]):
            m = _without(m, load_four(A, (i, j)), load(b, 3 * j))
            m += c * load_four(A, (i, j))
        m = 1.0 / roots(m * m + 2) - load_four(A, (i, 0)) / 3
        store_(out, FOUR * i, where_above(m, eight(0.5), m, load_four(A, (i, 1))))


def _one_by_one(A, b, c):
    out = np.empty((A.shape[0], EIGHT))
    for i in range(A.shape[0]):
        for lane in range(EIGHT):
            m = c
            for j in range(A.shape[1]):
                m = m - A[i, j, lane] * b[3 * j + lane]
                m = m + c * A[i, j, lane]
            m = 1.0 / math.sqrt(m * m + 2) - A[i, 0, lane] / 3
            out[i, lane] = m if m > 0.5 else A[i, 1, lane]
    return out


def _numbers(seed):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((6, 5, EIGHT)), rng.standard_normal(3 * 5 + EIGHT), float(rng.standard_normal())


@pytest.mark.parametrize("seed", range(20))
def test_every_lane_is_rounded_as_if_it_were_alone(seed):
    A, b, c = _numbers(seed)
    out = np.empty((6, EIGHT))
    _all_operations_(A, b, c, out)
    assert out.tobytes() == _one_by_one(A, b, c).tobytes()


@pytest.mark.parametrize("seed", range(5))
def test_four_eights_are_four_times_eight(seed):
    A, b, c = _numbers(seed)
    A = np.concatenate([A, A[:2]])
    tiles = np.ascontiguousarray(A.reshape(2, FOUR, 5, EIGHT).transpose(0, 2, 1, 3))  # row i of four lies side by side
    out = np.empty((2 * FOUR, EIGHT))
    _by_four_tiles_(tiles, b, c, out)
    assert out.tobytes() == _one_by_one(A, b, c).tobytes()


def test_a_contracted_product_would_be_found_out():
    A, b, c = _numbers(0)
    m = np.longdouble(c)
    exact = [float(m - np.longdouble(A[0, 0, lane]) * np.longdouble(b[lane])) for lane in range(EIGHT)]
    assert exact != [c - A[0, 0, lane] * b[lane] for lane in range(EIGHT)]


def test_no_sign_of_zero_is_lost_and_what_is_no_number_is_never_above():
    out, values = np.empty(EIGHT), np.array([-0.0, 0.0, np.nan, 1.0, -1.0, np.inf, -np.inf, 2.0])

    @kernel
    def pick_(values, out):
        store_(out, 0, where_above(load(values, 0), 0.0, 3.0, load(values, 0)))

    pick_(values, out)
    assert out.tobytes() == np.array([-0.0, 0.0, np.nan, 3.0, -1.0, 3.0, -np.inf, 3.0]).tobytes()


def test_compiled_and_interpreted_lanes_are_the_same():
    compiled, interpreted = both_ways(
        "import sys; sys.path.insert(0, 'tests')\n"
        "import numpy as np, test_lanes\n"
        "for seed in range(5):\n"
        "    A, b, c = test_lanes._numbers(seed)\n"
        "    out = np.empty((6, 8)); test_lanes._all_operations_(A, b, c, out); print(out.tobytes())\n"
        "    tiles, out = np.repeat(A[:, :, None], 4, axis=2), np.empty((24, 8))\n"
        "    test_lanes._by_four_tiles_(tiles, b, c, out); print(out.tobytes())"
    )
    assert compiled == interpreted
