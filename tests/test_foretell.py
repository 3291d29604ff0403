"""Eight memories side by side make the forecasts that each would make alone, bit for bit."""

import numpy as np
import pytest

from driftwise.kernels import kernel
from driftwise.kernels.algebra import factor_one_, forward_one_
from driftwise.kernels.belief import UNITS, Gauge, believe_sloped_, gauge_size, in_units_, per_unit
from driftwise.kernels.foretell import fill_slopes_, fill_slots_, foretell_eight_, lane_scratch_of, lane_scratch_size
from driftwise.kernels.lanes import EIGHT
from driftwise.kernels.point import Sums


@kernel
def _together_(X, gauge, sums, ridge, stiff, slopes, scratch, value, square):
    slots = lane_scratch_of(scratch, 0, X.shape[1], 1)
    for slot in range(slots.who.size):
        slots.who[slot] = slot
        slots.ridge[slot], slots.stiff[slot] = ridge[slot], stiff[slot]
    fill_slots_(X, 0, 1, gauge, sums.G, sums.b, slots)
    if slopes:
        fill_slopes_(gauge, sums.lag, sums.lag_square, sums.lag_reward, slots)
    foretell_eight_(slots, slopes, slopes)
    for slot in range(slots.who.size):
        value[slot], square[slot] = slots.value[slot], slots.square[slot]


@kernel
def _alone_(X, gauge, sums, ridge, stiff, slopes, low, other, pivot, z, y, value, square):
    for lane in range(value.size):
        if slopes:
            believe_sloped_(lane, ridge[lane], stiff[lane], gauge, sums, low, other, pivot, z)
        else:
            in_units_(sums.G, sums.b, lane, gauge, low, z)
            factor_one_(low, lane, ridge[lane], low, pivot)
            forward_one_(low, pivot, z, lane, z)
        value[lane], square[lane] = 0.0, 0.0
        for i in range(y.size):
            v = X[0, i, 1] * per_unit(gauge, i)
            for j in range(i):
                v -= low[i, j] * y[j]
            y[i] = v * pivot[i]
            value[lane] += y[i] * z[i]
            square[lane] += y[i] * y[i]


@pytest.mark.parametrize("slopes", [False, True])
@pytest.mark.parametrize("d", [1, 2, 3, 4, 5, 6, 7, 9])
def test_eight_memories_foretell_what_each_would_alone(d, slopes):
    rng = np.random.default_rng(d)
    x, lags = rng.standard_normal((EIGHT, 3 * d, d)), rng.random((EIGHT, 3 * d, 1)) * 9.0
    r = rng.standard_normal((EIGHT, 3 * d, 1))

    def sums_of(weight):
        return np.ascontiguousarray((weight * x).transpose(0, 2, 1) @ x)

    def rewards(weight):
        return np.ascontiguousarray((weight * r * x).sum(axis=1))

    ones, none = np.ones_like(lags), np.zeros((0, d, d))
    sums = Sums(
        sums_of(ones), none, rewards(ones), np.zeros((EIGHT, 8)), sums_of(lags), sums_of(lags * lags), rewards(lags)
    )
    gauge = Gauge(np.zeros(gauge_size(d)))
    gauge.known[UNITS + 2 * d :] = rng.random(d) + 0.5
    X, ridge, stiff = rng.standard_normal((1, d, 2)), rng.random(EIGHT) + 0.1, rng.random(EIGHT) + 0.1
    one, other = np.empty((2, EIGHT)), np.empty((2, EIGHT))
    _together_(X, gauge, sums, ridge, stiff, slopes, np.zeros(lane_scratch_size(d, 1)), *one)
    low, second = np.zeros((d, d)), np.zeros((d, d))
    _alone_(X, gauge, sums, ridge, stiff, slopes, low, second, np.zeros(d), np.zeros(d), np.zeros(d), *other)
    assert one.tobytes() == other.tobytes()
    assert len(set(one[0])) == EIGHT
