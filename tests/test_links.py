"""Links: values against scipy, derivatives against differences, no argument that overflows."""

import itertools
import math
import os
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special
from scipy.integrate import quad

from driftwise.errors import BadInput
from driftwise.kernels import links

LINKS = [links.IDENTITY, links.LOGISTIC, links.PROBIT, links.POISSON]
MEANS = {links.IDENTITY: lambda z: z, links.LOGISTIC: special.expit, links.PROBIT: special.ndtr, links.POISSON: np.exp}
ORDERS = [links.area, links.mean, links.slope, links.curve, links.third]
values = st.floats(-30, 30)


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


def test_a_link_of_the_users_own_has_no_compiled_value():
    for order in ORDERS:
        assert math.isnan(order(links.CUSTOM, 0.3))


@pytest.mark.parametrize("link", LINKS)
@pytest.mark.parametrize("radius", [0.0, 0.5, 1.0, 5.0, 20.0])
def test_bounds_are_the_largest_and_least_slope_over_the_interval(link, radius):
    k, c = links.bounds(link, radius)
    slopes = [links.slope(link, z) for z in np.linspace(-radius, radius, 2001)]
    assert k == pytest.approx(max(slopes), rel=1e-14)
    assert c == pytest.approx(min(slopes), rel=1e-14)


def test_bounds_of_the_paper():
    assert 1 / links.bounds(links.LOGISTIC, 1.0)[1] == pytest.approx(5.09, abs=0.005)
    assert 1 / links.bounds(links.LOGISTIC, 5.0)[1] == pytest.approx(150.4, abs=0.05)
    with pytest.raises(BadInput, match="pass k and c yourself"):
        links.bounds(links.CUSTOM, 1.0)


SCRIPT = """
import numpy as np
from driftwise.kernels import links
for link in range(4):
    for order in (links.area, links.mean, links.slope, links.curve, links.third):
        for z in np.linspace(-45.0, 45.0, 37).tolist() + [-800.0, 800.0, 0.1, -3.1]:
            print(float(order(link, z)).hex())
"""


def test_compiled_and_interpreted_links_agree_to_the_bit():
    outputs = []
    for disable in ("0", "1"):
        environment = {**os.environ, "NUMBA_DISABLE_JIT": disable}
        command = [sys.executable, "-c", SCRIPT]
        outputs.append(subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout)
    assert outputs[0] == outputs[1] and len(outputs[0]) > 1000
