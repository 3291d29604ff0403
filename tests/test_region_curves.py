"""Curves: searches against grids, and the bounds of their features."""

import numpy as np
import pytest

import driftwise as dw
from naive_regions import NaiveIndex
from test_regions import found, hard

CURVES = {
    "parabola": dw.Curve(dw.Polynomial(2), 1.0, 5.0),
    "polynomial": dw.Curve(dw.Polynomial(5), -2.0, 3.0),
    "waves": dw.Curve(dw.Fourier(3), 0.0, 2.0),
    "cubics": dw.Curve(dw.Spline(6), 0.0, 10.0),
    "lines": dw.Curve(dw.Spline(7, degree=1), 0.0, 1.0),
    "own, by its bend": dw.Curve(lambda p: np.stack([np.cos(p), np.sin(2 * p)], axis=1), 0.0, 3.0, bend=4.13),
    "own, by its slope": dw.Curve(lambda p: np.stack([np.abs(p), p**2], axis=1) / 2, -1.0, 1.0, slope=1.12,
                                  tolerance=1e-3),
}  # fmt: skip


def no_number_of_a_grid_is_better(curve, link, count, seeds):
    rows = curve.at(np.linspace(curve.low, curve.high, count))
    for seed in range(seeds):
        rng = np.random.default_rng([seed, 7])
        theta, A = hard(rng, curve.dim, "usual")
        naive = NaiveIndex(theta, A / np.trace(A), 10.0 ** rng.uniform(-1, 1), link=link)
        value, gap, peak = found(curve, naive)
        best, scale = float(naive(rows).max()), max(1.0, abs(value))
        assert best - curve.tolerance * scale <= value
        assert -1e-12 * scale <= gap <= 1.01 * curve.tolerance * scale and value + gap >= best - 1e-12 * scale
        assert np.array_equal(peak.x, curve.at(np.array([peak.number]))[0])


@pytest.mark.parametrize("link", [None, "logistic", "poisson"])
@pytest.mark.parametrize("name", CURVES)
def test_a_curve_is_searched_to_its_tolerance(name, link):
    no_number_of_a_grid_is_better(CURVES[name], link, 100_001, 3)


@pytest.mark.slow
@pytest.mark.parametrize("link", [None, "logistic", "poisson"])
@pytest.mark.parametrize("name", CURVES)
def test_a_curve_is_searched_to_its_tolerance_of_a_million_numbers(name, link):
    no_number_of_a_grid_is_better(CURVES[name], link, 1_000_001, 10)


@pytest.mark.parametrize("name", ["parabola", "polynomial", "waves", "cubics"])
def test_no_second_derivative_is_longer_than_a_curve_says(name):
    curve = CURVES[name]
    numbers = np.linspace(curve.low, curve.high, 20_001)
    step = numbers[1] - numbers[0]
    second = np.diff(curve.at(numbers), n=2, axis=0) / step**2
    longest = float(np.sqrt((second**2).sum(axis=1)).max())
    said = curve.features.bend(curve.low, curve.high)
    assert longest <= said * (1.0 + 1e-4) and said <= 1.01 * longest  # the bound is reached, so it is not too loose
