"""Links: values against scipy, derivatives against differences, no overflow, and the facts of the table."""

import itertools
import math
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special
from scipy.integrate import quad

import naive
from driftwise.kernels import links
from interpreting import both_ways
from refusing import refused

ROWS = list(links.LINKS.values())
LINKS = [row.code for row in ROWS]
MEANS = {row.code: naive.LINKS[name][0] for name, row in links.LINKS.items()}
ORDERS = [links.area, links.mean, links.slope, links.curve, links.third]
UNKNOWN = [links.CUSTOM, len(ROWS) + 1, 99, -1]  # codes without a row
RADII = [0.0, 0.5, 1.0, 1.4, 1.5, 5.0, 20.0]
values = st.floats(-30, 30)
every_row = pytest.mark.parametrize("row", ROWS, ids=links.LINKS)
at_every_radius = pytest.mark.parametrize("radius", RADII)


def within(radius):
    """A grid of |z| ≤ radius, with its ends and its middle."""
    return np.linspace(-radius, radius, 2001).tolist()


@pytest.mark.parametrize("link", LINKS)
def test_means_are_scipys_to_the_last_digits(link):
    for z in np.linspace(-37, 37, 741):
        conditioning = 1 + z * z if link == links.PROBIT else 1  # of erfc in its argument
        assert links.mean(link, z) == pytest.approx(MEANS[link](z), rel=4e-16 * conditioning, abs=0)


@pytest.mark.parametrize("link", LINKS)
@settings(deadline=None)
@given(z=values)
def test_each_order_is_the_derivative_of_the_one_before(link, z):
    h = 1e-4 / (1 + abs(z))
    for lower, upper in itertools.pairwise(ORDERS):
        ends = lower(link, z + h), lower(link, z - h)
        rounding = 1e-14 * max(map(abs, ends)) * (1 + abs(z)) / h
        size = max(map(abs, ends)) + abs(upper(link, z))
        assert abs((ends[0] - ends[1]) / (2 * h) - upper(link, z)) <= 1e-7 * size + rounding


@pytest.mark.parametrize("z", [-700.0, -40.0, -20.0, -1e-9, 0.0, 1e-9, 20.0, 40.0, 700.0])
def test_logistic_derivatives_keep_their_digits_in_both_tails_and_at_zero(z):
    e = math.exp(-abs(z))
    assert links.slope(links.LOGISTIC, z) == pytest.approx(e / (1 + e) ** 2, rel=1e-15, abs=0)
    assert links.curve(links.LOGISTIC, z) == pytest.approx(
        -math.tanh(z / 2) * e / (1 + e) ** 2, rel=1e-14, abs=0
    )


def test_the_probit_integral_does_not_cancel_on_the_left():
    for z in (-2.0, -2.99, -3.01, -4.0, -6.0):
        exact = quad(special.ndtr, z - 40 / abs(z), z, epsabs=0, epsrel=1e-13)[0]
        assert links.area(links.PROBIT, z) == pytest.approx(exact, rel=1e-12, abs=0)
    for z in (-9.0, -15.0, -30.0, -37.0):  # φ(z)(1/z² - 3/z⁴ + 15/z⁶ - …), summed to its smallest term
        term, total, n = 1 / z**2, 0.0, 1
        while abs(term) > 1e-18 * abs(total) and n < z**2 / 2:
            total, term, n = total + term, -term * (2 * n + 1) / z**2, n + 1
        exact = math.exp(-z * z / 2) / math.sqrt(2 * math.pi) * total
        assert links.area(links.PROBIT, z) == pytest.approx(exact, rel=1e-11, abs=0)


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("z", [-1e150, -800.0, -745.2, 745.2, 800.0, 1e3])
def test_every_order_is_finite_and_silent_far_out(link, z):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for order in ORDERS:
            assert math.isfinite(order(link, z))


def test_the_means_saturate_where_they_should():
    for link in (links.LOGISTIC, links.PROBIT):
        assert links.mean(link, 800.0) == 1.0
        assert links.mean(link, -800.0) == 0.0
        assert links.slope(link, 800.0) == links.slope(link, -800.0) == 0.0
    assert links.mean(links.POISSON, 800.0) == links.mean(links.POISSON, 700.0) == math.exp(700.0)


@pytest.mark.parametrize("link", UNKNOWN)
def test_a_link_without_a_row_has_no_compiled_value_and_is_given_the_cautious_answer(link):
    for z in (-2.0, 0.0, 0.3):
        for order in (*ORDERS, links.bend):
            assert math.isnan(order(link, z))
    assert math.isnan(links.widening(link))
    assert not links.tame(link, 0.1) and not links.one_valley(link)


def test_each_link_has_a_code_of_its_own_and_none_that_of_the_users_own():
    assert len({links.CUSTOM, *LINKS}) == len(LINKS) + 1


@every_row
@at_every_radius
def test_slopes_are_the_largest_and_least_slope_over_the_interval(row, radius):
    k, c = row.slopes(radius)
    slopes = [links.slope(row.code, z) for z in within(radius)]
    assert k == pytest.approx(max(slopes), rel=1e-14)
    assert c == pytest.approx(min(slopes), rel=1e-14)


@every_row
@at_every_radius
def test_concordance_is_the_least_that_bounds_the_curve_by_the_slope(row, radius):
    M = row.concordance(radius)
    ratios = [abs(links.curve(row.code, z)) / links.slope(row.code, z) for z in within(radius)]
    assert max(ratios) == pytest.approx(M, rel=1e-13, abs=0)


@every_row
@at_every_radius
def test_the_bend_bounds_the_curve_by_the_slope_within_reach(row, radius):
    M = links.bend(row.code, radius)
    for z in within(radius):
        assert abs(links.curve(row.code, z)) <= M * links.slope(row.code, z) * (1 + 1e-14)


@every_row
def test_a_bend_that_does_not_grow_far_out_is_the_same_at_every_reach(row):
    bends = [links.bend(row.code, radius) for radius in RADII]
    assert links.bends_more_far_out(row.code) == (len(set(bends)) > 1)
    assert bends == sorted(bends)


@every_row
@at_every_radius
def test_a_tame_link_bounds_the_third_derivative_by_the_slope(row, radius):
    if links.tame(row.code, radius):
        for z in within(radius):
            assert abs(links.third(row.code, z)) <= links.slope(row.code, z)


def test_some_links_are_tame_and_one_only_near_zero():
    """Without this the law above could hold for no link."""
    assert all(links.tame(link, 20.0) for link in (links.IDENTITY, links.LOGISTIC))
    assert links.tame(links.PROBIT, 1.4) and not links.tame(links.PROBIT, 1.5)
    assert abs(links.third(links.PROBIT, 1.5)) > links.slope(links.PROBIT, 1.5)


@every_row
def test_widening_is_what_not_knowing_z_does_to_a_probability(row):
    a = links.widening(row.code)
    if not row.chance:
        assert math.isnan(a)
        return
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    weights = weights / weights.sum()
    for z in np.linspace(-4, 4, 33):
        for s in np.linspace(0, 2, 9):
            averaged = weights @ MEANS[row.code](z + s * nodes)
            assert links.mean(row.code, z / math.sqrt(1 + a * s * s)) == pytest.approx(averaged, abs=0.02)


def test_widening_is_exact_for_the_probit():
    nodes, weights = np.polynomial.hermite_e.hermegauss(80)
    for z, s in itertools.product((-3.0, -0.5, 0.0, 2.0), (0.3, 1.0, 2.0)):
        averaged = weights @ special.ndtr(z + s * nodes) / weights.sum()
        wide = math.sqrt(1 + links.widening(links.PROBIT) * s * s)
        assert links.mean(links.PROBIT, z / wide) == pytest.approx(averaged, abs=1e-12)


@every_row
def test_a_chance_lies_between_zero_and_one_and_so_is_bounded(row):
    within_one = all(0 <= links.mean(row.code, z) <= 1 for z in within(40.0))
    assert row.chance == within_one
    assert row.bounded or not row.chance


def test_bounds_of_the_paper():
    slopes = links.link_row("logistic").slopes
    assert 1 / slopes(1.0)[1] == pytest.approx(5.09, abs=0.005)
    assert 1 / slopes(5.0)[1] == pytest.approx(150.4, abs=0.05)


@pytest.mark.parametrize("link", ["custom", "logit", links.CUSTOM, links.LOGISTIC, None])
def test_a_link_without_a_row_gets_the_sentence(link):
    with refused("link", repr(link), *links.LINKS):
        links.link_row(link)


SCRIPT = """
import numpy as np
from driftwise.kernels import links
for link in range(4):
    for order in (links.area, links.mean, links.slope, links.curve, links.third):
        for z in np.linspace(-45.0, 45.0, 37).tolist() + [-800.0, 800.0, 0.1, -3.1]:
            print(float(order(link, z)).hex())
"""


def test_compiled_and_interpreted_links_agree_to_the_bit():
    compiled, interpreted = both_ways(SCRIPT)
    assert compiled == interpreted and len(compiled) > 1000
