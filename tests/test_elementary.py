"""Elementary functions against forty digits of decimal arithmetic, and their edges."""

import math
from decimal import Decimal, localcontext

import numba
import numpy as np
import pytest

from driftwise._internal import elementary as ours
from interpreting import both_ways

PI = Decimal("3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803")


def exact_sine(x):
    """Taylor's series after subtracting whole half turns."""
    turns = (x / PI).to_integral_value()
    r = x - turns * PI
    term, total, n = r, r, 1
    while abs(term) > Decimal(10) ** -60:
        term = -term * r * r / ((n + 1) * (n + 2))
        total, n = total + term, n + 2
    return -total if turns % 2 else total


def exact_erfc(x):
    """1 - erf by its series, with extra digits for the cancellation."""
    term, total, n = x, x, 0
    while abs(term) > Decimal(10) ** -720:
        n += 1
        term = -term * x * x / n
        total += term / (2 * n + 1)
    return 1 - 2 * total / PI.sqrt() if abs(x) < 1 else 1 - 2 * total / _root_pi()


def _root_pi():
    """√π with 720 digits, π by Machin's formula."""
    def arctangent(inverse):
        total, power, n = Decimal(0), Decimal(1) / inverse, 1
        while power > Decimal(10) ** -725:
            total, power, n = total + (power / n if n % 4 == 1 else -power / n), power / (inverse * inverse), n + 2
        return total

    return (4 * (4 * arctangent(Decimal(5)) - arctangent(Decimal(239)))).sqrt()


EXACT = {
    "exp": lambda x: x.exp(), "expm1": lambda x: x.exp() - 1, "log": lambda x: x.ln(),
    "log1p": lambda x: (1 + x).ln(), "log2": lambda x: x.ln() / Decimal(2).ln(),
    "sine": exact_sine, "cosine": lambda x: exact_sine(x + PI / 2), "erfc": exact_erfc,
}  # fmt: skip
MOST = {"exp": 0.55, "expm1": 0.55, "log": 0.55, "log1p": 0.55}


def points(name, count, seed=0):
    """Arguments over the whole range, near hard points, and on both sides of every change of method."""
    rng = np.random.default_rng(seed)
    sign, uniform = rng.choice([-1.0, 1.0], count), rng.uniform
    small = sign * np.exp2(uniform(-60, -2, count))
    around = {
        "exp": [uniform(-745, 709.7, count), uniform(-745.1, -700, count), uniform(-3, 3, count), small],
        "expm1": [uniform(-45, 60, count), uniform(-1, 1, count), uniform(0.24, 0.26, count) * sign, small],
        "log": [np.exp2(uniform(-1074, 1023, count)), uniform(0.5, 2, count), 1 + small, uniform(0.98, 1.02, count)],
        "log1p": [2.0 ** uniform(-100, 900, count), uniform(-0.99, 3, count), small,
                  2.0 ** uniform(-52, -1, count) - 1, uniform(0.0156, 0.016, count) * sign],
        "sine": [uniform(-7, 7, count), uniform(-1e8, 1e8, count), small],
        "erfc": [uniform(-6, 26, count), uniform(7.9, 8.1, count), np.round(uniform(0, 128, count)) / 16, small],
    }  # fmt: skip
    around["cosine"], around["log2"] = around["sine"], around["log"]
    return np.concatenate(around[name])


def many(function, *columns):
    @numba.njit(error_model="numpy")
    def loop(out, *columns):
        for i in range(out.size):
            if len(columns) == 1:
                out[i] = function(columns[0][i])

    out = np.empty(len(columns[0]))
    loop(out, *columns)
    return out


def units_off(found, exact):
    """How many units in the last place of the exact value."""
    near = float(exact)
    return abs(float((Decimal(float(found)) - exact) / Decimal(float(np.spacing(abs(near))))))


def worst(name, count):
    x = points(name, count)
    found = many(getattr(ours, name), x)
    with localcontext(prec=740 if name == "erfc" else 80):
        return max(units_off(y, EXACT[name](Decimal(float(z)))) for z, y in zip(x, found, strict=True))


@pytest.mark.parametrize("name", EXACT)
@pytest.mark.parametrize("count", [60, pytest.param(3000, marks=pytest.mark.slow)])
def test_a_function_is_within_its_units_of_the_exact_value(name, count):
    some = max(4, count // 20) if name == "erfc" else count  # whose series takes 740 digits
    assert worst(name, some) <= MOST.get(name, 1.0)


def test_a_power_is_within_a_unit():
    rng = np.random.default_rng(1)
    for x, y in zip(np.exp2(rng.uniform(-100, 100, 300)), rng.uniform(-7, 7, 300), strict=True):
        with localcontext(prec=60):
            assert units_off(ours.power(x, y), (Decimal(float(y)) * Decimal(float(x)).ln()).exp()) <= 1.0


def test_a_logarithm_of_a_subnormal_number_is_rounded_once():
    x = 1.648918422380846e-309  # where log(x) / log(2) is more than a unit off
    with localcontext(prec=80):
        assert units_off(ours.log2(x), EXACT["log2"](Decimal(x))) <= 0.55


def test_a_wrong_digit_would_be_found_out(monkeypatch):
    x = 1.0 / 3.0
    assert units_off(math.nextafter(ours.exp(x), 2.0), Decimal(x).exp()) > 0.55


INF, NAN = math.inf, math.nan


@pytest.mark.parametrize(("name", "x", "y"), [
    ("exp", 0.0, 1.0), ("exp", INF, INF), ("exp", -INF, 0.0), ("exp", NAN, NAN), ("exp", 710.0, INF),
    ("exp", -746.0, 0.0), ("exp", -745.1, 5e-324), ("expm1", 0.0, 0.0), ("expm1", -INF, -1.0), ("expm1", INF, INF),
    ("expm1", NAN, NAN), ("log", 1.0, 0.0), ("log", 0.0, -INF), ("log", -1.0, NAN), ("log", INF, INF),
    ("log", NAN, NAN), ("log1p", 0.0, 0.0), ("log1p", -1.0, -INF), ("log1p", -2.0, NAN), ("log1p", INF, INF),
    ("log1p", NAN, NAN), ("erfc", 0.0, 1.0), ("erfc", INF, 0.0), ("erfc", -INF, 2.0), ("erfc", NAN, NAN),
    ("erfc", -40.0, 2.0), ("sine", 0.0, 0.0), ("sine", INF, NAN), ("cosine", 0.0, 1.0), ("cosine", NAN, NAN),
    ("log2", 0.0, -INF), ("log2", -1.0, NAN), ("log2", INF, INF), ("log2", 5e-324, -1074.0),
    ("log2", 2.0**-1022, -1022.0),
])  # fmt: skip
def test_the_edges_are_those_of_the_c_library(name, x, y):
    found = getattr(ours, name)(x)
    assert found == y or (math.isnan(found) and math.isnan(y))


@pytest.mark.parametrize(("x", "y"), [
    (0.0, 2.0), (0.0, -1.0), (INF, 2.0), (INF, -2.0), (0.5, INF), (2.0, INF), (2.0, -INF), (1.0, INF), (3.0, 0.0),
    (1e300, 2.0), (1e-300, 2.0), (5e-324, 0.5), (2.0, 0.5), (10.0, 3.0), (10.0, -1e301), (7.0, 1e-310), (2.0, -1074.0),
])  # fmt: skip
def test_the_edges_of_a_power_are_those_of_the_c_library(x, y):
    try:
        expected = math.pow(x, y)
    except (OverflowError, ValueError):  # the sign of what overflows, or a pole
        expected = INF
    assert ours.power(x, y) == pytest.approx(expected, rel=1e-15)


def test_a_power_of_what_is_below_zero_is_no_number():
    assert math.isnan(ours.power(-1.0, 2.0)) and math.isnan(ours.power(NAN, 2.0))


def test_tables_are_made_of_whole_numbers_and_decimals_alone():
    # no C library is involved: the numbers of the first and the last node, computed otherwise
    assert ours.POWER_LEAD[64] == math.sqrt(2.0) and ours.POWER_LEAD[0] == 1.0 and ours.POWER_REST[0] == 0.0
    assert abs(ours.TAIL[0, 0] - math.exp(0.03125**2) * math.erfc(0.03125)) < 1e-15
    assert abs(ours.TAIL[-1, 0] - math.exp(7.96875**2) * math.erfc(7.96875)) < 1e-14
    assert ours.QUARTER_1 + ours.QUARTER_2 == math.pi / 2


SCRIPT = """
import sys; sys.path.insert(0, "tests")
import hashlib
import test_elementary as t
for name in t.EXACT:
    found = [getattr(t.ours, name)(float(x)) for x in t.points(name, 40)]
    print(name, hashlib.sha256(b"".join(t.np.float64(y).tobytes() for y in found)).hexdigest())
"""


def test_interpreted_functions_have_the_bits_of_compiled_ones():
    compiled, interpreted = both_ways(SCRIPT)
    assert compiled == interpreted and len(compiled.splitlines()) == len(EXACT)
