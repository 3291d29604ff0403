"""Elementary functions with the same bits on every machine: exp, expm1, log, log1p, log2, power, erfc, sine and
cosine.

The C library's functions differ by processor and version. These are made of + - * / and of bits alone, in a fixed
order, so compiled, shipped and interpreted code agree. test_elementary.py measures how far results are from the exact
values, in units in the last place: at most 0.54 on 10^6 points each (exp, expm1, log, log1p), 0.56 on 4,000 (erfc,
power), 0.81 on 4,000 (log2, sine, cosine).

All follow one plan. The argument is reduced exactly, or with its rounding error kept beside it, to a small one. A table
has the function at the nearest node as a leading part and a rest. A short polynomial adds what is left. The leading
part is added last, so that one rounding decides.
"""

from __future__ import annotations

import math
import struct
from decimal import Decimal, localcontext
from typing import Any

import numpy as np
import numpy.typing as npt

from driftwise._internal.compiling import inner, intrinsic, scalar

Floats = npt.NDArray[np.float64]

# ------------------------------------------------------------------------------------------ bits


def _bits_of(x: float) -> int:
    return int(struct.unpack("<q", struct.pack("<d", x))[0])


def _number_of(bits: int) -> float:
    return float(struct.unpack("<d", struct.pack("<q", bits))[0])


bits_of: Any = intrinsic(_bits_of, "bits_of")
"""The 64 bits of a double as a whole number."""
number_of: Any = intrinsic(_number_of, "number_of")
"""The double that has these 64 bits."""

# ------------------------------------------------------------------------------------------ tables

# 2^(j/128) as a double and the rest of it, relative to that double.
STEPS, STEP_BITS = 128, 7


def _digits() -> Any:
    """Fifty digits; Python's decimal exp and ln are correctly rounded, so that tables are the same everywhere."""
    return localcontext(prec=50)


def _powers() -> tuple[Floats, Floats]:
    with _digits():
        exact = [(Decimal(j) * Decimal(2).ln() / STEPS).exp() for j in range(STEPS)]
        lead = [float(one) for one in exact]
        rest = [float(one / Decimal(near) - 1) for one, near in zip(exact, lead, strict=True)]
    return np.array(lead), np.array(rest)


def _split(value: Decimal, places: int) -> tuple[float, float]:
    """A multiple of 2^-places and the rest."""
    lead = float(int((value * 2**places).to_integral_value())) / 2.0**places
    return lead, float(value - Decimal(lead))


# Multiples of 2^-42, so that whole multiples up to 2^11 and sums of them are exact.
PLACES = 42
# Intervals of z begin here, below √½; each has a seven-bit step of the significand.
FIRST_BITS = 0x3FE6A00000000000


def _logarithms() -> tuple[Floats, Floats, Floats]:
    """1/c in multiples of 2^-10, and log c in two parts, for the middle c of every interval of z."""
    inverse, lead, rest = np.empty(STEPS), np.empty(STEPS), np.empty(STEPS)
    with _digits():
        for j in range(STEPS):
            low, high = (number_of(FIRST_BITS + (i << (52 - STEP_BITS))) for i in (j, j + 1))
            inverse[j] = round(2.0 / (low + high) * 1024.0) / 1024.0
            lead[j], rest[j] = _split(-Decimal(float(inverse[j])).ln(), PLACES)
    return inverse, lead, rest


# erfcx(x) = e^(x²)erfc(x) about the middles of sixteenths below 8: two parts of the value, then Taylor's coefficients.
NODES, NODE_WIDTH, TERMS = 128, 0.0625, 10


def _scaled_tails() -> Floats:
    """By Taylor's steps of y' = 2xy - 2/√π from y(0) = 1, in whole numbers with 320 binary places.

    Errors grow by e^(x²), 2^92 at 8, so that far more than a double's places are right there.
    """
    one, half_root = 1 << 320, _fixed_two_over_root_pi()
    found, value, middle = np.empty((NODES, TERMS + 2)), one, 0
    for node in range(NODES):
        for half in range(2):  # to the middle of the sixteenth, whose coefficients are kept, then to its end
            terms = [value]
            for n in range(60):
                before = terms[n - 1] if n else 0
                terms.append((2 * ((middle * terms[n] >> 5) + before) - (half_root if n == 0 else 0)) // (n + 1))
            if half:
                lead = terms[0] / one
                found[node, 0], found[node, 1] = lead, (terms[0] - int(lead * 2.0**60) * (one >> 60)) / one
                found[node, 2:] = [term / one for term in terms[1 : TERMS + 1]]
            value, middle = sum(term >> (5 * n) for n, term in enumerate(terms)), middle + 1
    return found


def _fixed_pi() -> int:
    """π with 400 binary places, by Machin's formula."""
    places = 1 << 400

    def arctangent(inverse: int) -> int:
        total, power, n = 0, places // inverse, 1
        while power:
            total, power, n = total + power // n * (1 if n % 4 == 1 else -1), power // (inverse * inverse), n + 2
        return total

    return 4 * (4 * arctangent(5) - arctangent(239))


def _fixed_two_over_root_pi() -> int:
    """2/√π with 320 binary places."""
    return (1 << 721) // math.isqrt(_fixed_pi() << 400)


def _quarter_turn() -> list[float]:
    """π/2 in three parts of 26 bits and a rest."""
    left, unit, parts = _fixed_pi() >> 1, 400, []
    for cut in (25, 51, 77):  # binary places of a part's last bit
        part = left >> (unit - cut) << (unit - cut)
        parts.append(part / (1 << unit))
        left -= part
    return [*parts, left / (1 << unit)]


POWER_LEAD, POWER_REST = _powers()
LOG_INVERSE, LOG_LEAD, LOG_REST = _logarithms()
TAIL = _scaled_tails()

with _digits():
    _LN2 = Decimal(2).ln()
    _STEP = _LN2 / STEPS
    STEPS_PER_UNIT = float(1 / _STEP)
    STEP_LEAD, STEP_REST = _split(_STEP, 42)  # at most 2^18 steps: their products with the lead are exact
    LN2_LEAD, LN2_REST = _split(_LN2, PLACES)
    LN2, PER_LN2 = float(_LN2), float(1 / _LN2)
    PER_LN2_REST = float(1 / _LN2 - Decimal(PER_LN2))

_TWO_OVER_ROOT_PI = _fixed_two_over_root_pi()
ROOT_LEAD = _TWO_OVER_ROOT_PI / (1 << 321)  # 1/√π
ROOT_REST = (_TWO_OVER_ROOT_PI - int(ROOT_LEAD * 2.0**60) * (1 << 261)) / (1 << 321)

# π/2 in three parts of 26 bits and a rest: a part times a whole number up to 2^27 is exact.
QUARTER_1, QUARTER_2, QUARTER_3, QUARTER_4 = _quarter_turn()
QUARTERS_PER_UNIT = 2.0 / math.pi
# Beyond this an angle is first taken off whole turns, as a double has them.
MOST_ANGLE = 1e8
TURN = 2.0 * math.pi

# Adding and taking away 1.5·2^52 rounds to a whole number.
ROUNDER, ROUNDER_BITS = 6755399441055744.0, 0x4338000000000000
SPLITTER = 134217729.0  # 2^27 + 1
MOST_EXPONENT, LEAST_EXPONENT = 709.782712893384, -745.1332191019412
TINY = 2.0**-1022
UPPER = -134217728  # all bits but the lowest 27
ONE_BITS = 0x3FF0000000000000


# ------------------------------------------------------------------------------------------ two numbers for one


@inner
def product_rest(a: float, b: float, product: float) -> float:
    """a·b - product, exactly, for product = a·b rounded (Dekker)."""
    t = SPLITTER * a
    a_high = t - (t - a)
    a_low = a - a_high
    t = SPLITTER * b
    b_high = t - (t - b)
    b_low = b - b_high
    return float(((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low)


@inner
def sum_rest(a: float, b: float, total: float) -> float:
    """a + b - total, exactly, for total = a + b rounded, whichever is larger (Knuth)."""
    shadow = total - a
    return float((a - (total - shadow)) + (b - shadow))


# ------------------------------------------------------------------------------------------ exp


@inner
def in_steps(x: float) -> tuple[float, int]:
    """x = r + k·log(2)/128 with a small r."""
    rounded = x * STEPS_PER_UNIT + ROUNDER
    steps = rounded - ROUNDER
    return float((x - steps * STEP_LEAD) - steps * STEP_REST), bits_of(rounded) - ROUNDER_BITS


@inner
def exp_rest(r: float, rest: float) -> float:
    """e^(r + rest) - 1 for a small r."""
    square = r * r
    return float(rest + r + square * (0.5 + r * (1.0 / 6.0)) + square * square * (1.0 / 24.0 + r * (1.0 / 120.0)))


@inner
def scaled(lead: float, more: float, doublings: int) -> float:
    """(lead + lead·more)·2^doublings with one rounding, lead in [1, 2)."""
    if -960 <= doublings <= 1023:  # lead·more is a normal number too
        scale = number_of(bits_of(lead) + (doublings << 52))
        return float(scale + scale * more)
    if doublings > 1023:
        scale = number_of(bits_of(lead) + ((doublings - 1) << 52))
        return float((scale + scale * more) * 2.0)
    scale = number_of(bits_of(lead) + ((doublings + 1022) << 52))  # a result with fewer bits: round it where they end
    y = scale + scale * more
    if y < 1.0:
        low = (scale - y) + scale * more
        high = 1.0 + y
        low = ((1.0 - high) + y) + low
        y = (high + low) - 1.0
    return float(y * TINY)


@scalar
def exp(x: float) -> float:
    """e^x."""
    if not (LEAST_EXPONENT <= x <= MOST_EXPONENT):
        if x > MOST_EXPONENT:
            return math.inf
        return 0.0 if x < LEAST_EXPONENT else x  # x - x is not needed: NaN stays itself
    r, k = in_steps(x)
    j = k & (STEPS - 1)
    return scaled(POWER_LEAD[j], exp_rest(r, POWER_REST[j]), k >> STEP_BITS)


@scalar
def expm1(x: float) -> float:
    """e^x - 1."""
    if -0.25 < x < 0.25:
        square = x * x
        rest = product_rest(x, x, square)
        p = 1.0 / 6227020800.0 + x * (1.0 / 87178291200.0)
        p = 1.0 / 39916800.0 + x * (1.0 / 479001600.0 + x * p)
        p = 1.0 / 362880.0 + x * (1.0 / 3628800.0 + x * p)
        p = 1.0 / 5040.0 + x * (1.0 / 40320.0 + x * p)
        p = 1.0 / 120.0 + x * (1.0 / 720.0 + x * p)
        p = square * x * (1.0 / 6.0 + x * (1.0 / 24.0 + x * p))
        total = x + 0.5 * square
        return float(total + ((x - total) + 0.5 * square + (0.5 * rest + p)))
    if not x < 44.0:
        return exp(x)
    if x < -40.0:
        return -1.0
    r, k = in_steps(x)
    j = k & (STEPS - 1)
    scale = number_of(bits_of(POWER_LEAD[j]) + ((k >> STEP_BITS) << 52))
    lead = scale - 1.0
    return float(lead + (sum_rest(scale, -1.0, lead) + scale * exp_rest(r, POWER_REST[j])))


# ------------------------------------------------------------------------------------------ log


@inner
def log_near_one_rest(r: float) -> float:
    """log(1 + r) - r for |r| < 2^-6."""
    square = r * r
    p = 1.0 / 9.0 - r * (1.0 / 10.0 - r * (1.0 / 11.0))
    p = 1.0 / 7.0 - r * (1.0 / 8.0 - r * p)
    p = 1.0 / 5.0 - r * (1.0 / 6.0 - r * p)
    p = square * r * (1.0 / 3.0 - r * (1.0 / 4.0 - r * p))
    return float(p - 0.5 * square)


@inner
def log_near_one(r: float) -> float:
    """log(1 + r) for |r| < 2^-6."""
    return float(r + log_near_one_rest(r))


@inner
def log_place(bits: int) -> int:
    """The doublings k in x = z·2^k, √½ ≤ z < √2, from the bits of a normal x."""
    return (bits - FIRST_BITS) >> 52


@inner
def log_step(bits: int, k: int, rest: float) -> tuple[int, float, float]:
    """The interval of z, z/c - 1 = r for its node c, and what is to be added to log(1 + r): the rounding of r, and what
    rest/2^k adds to z. The latter is divided by 1 + r; without that log1p was 0.76 units off just beyond 1/64."""
    j = ((bits - FIRST_BITS) >> (52 - STEP_BITS)) & (STEPS - 1)
    z = number_of(bits - (k << 52))
    inverse = LOG_INVERSE[j]
    high = number_of(bits_of(z) & UPPER)
    near = high * inverse - 1.0  # exact, as both products are
    far = (z - high) * inverse
    r = near + far
    more = (near - r) + far
    if rest != 0.0 and k < 100:
        more += rest * number_of(ONE_BITS - (k << 52)) * inverse * (1.0 - r)
    return j, float(r), float(more)


@inner
def log_far(x: float, rest: float, doublings: int) -> float:
    """log((x + rest)·2^doublings) of a normal x that is not near 1."""
    bits = bits_of(x)
    k = log_place(bits)
    j, r, more = log_step(bits, k, rest)
    whole = k + doublings
    w = whole * LN2_LEAD + LOG_LEAD[j]
    lead = w + r
    low = (w - lead) + r
    square = r * r
    p = (1.0 / 3.0 - r * 0.25) + square * ((0.2 - r * (1.0 / 6.0)) + square * (1.0 / 7.0 - r * 0.125))
    rests = (whole * LN2_REST + LOG_REST[j]) + more
    return float(lead + (low + (rests + (square * r * p - 0.5 * square))))


@scalar
def log_parts(x: float, doublings: int) -> tuple[float, float]:
    """log(x·2^doublings) of a normal x as a leading part and what is to be added; the two have about 68 bits."""
    bits = bits_of(x)
    k = log_place(bits)
    j, r, more = log_step(bits, k, 0.0)
    whole = k + doublings
    w = whole * LN2_LEAD + LOG_LEAD[j]
    lead = w + r
    low = (w - lead) + r
    square = r * r
    square_rest = product_rest(r, r, square) + 2.0 * r * more
    total = lead - 0.5 * square
    low = low + ((lead - total) - 0.5 * square)
    p = 1.0 / 5.0 - r * (1.0 / 6.0 - r * (1.0 / 7.0 - r * (1.0 / 8.0 - r * (1.0 / 9.0))))
    p = square * r * (1.0 / 3.0 - r * (1.0 / 4.0 - r * p))
    return float(total), float(low + (((whole * LN2_REST + LOG_REST[j]) + (more - 0.5 * square_rest)) + p))


@scalar
def log(x: float) -> float:
    """The natural logarithm."""
    if -0.015625 < x - 1.0 < 0.015625:
        return log_near_one(x - 1.0)
    if not (TINY <= x < math.inf):
        if x == 0.0:
            return -math.inf
        if not 0.0 < x < math.inf:
            return math.nan if x < 0.0 else x
        return log_far(x * 18014398509481984.0, 0.0, -54)  # 2^54
    return log_far(x, 0.0, 0)


@scalar
def log2(x: float) -> float:
    """The logarithm to base 2; exact for powers of 2."""
    if not (0.0 < x < math.inf):
        return math.inf if x == math.inf else log(x)
    scaled, less = x, 0
    if x < TINY:
        scaled, less = x * 18014398509481984.0, 54  # 2^54
    bits = bits_of(scaled)
    doublings = log_place(bits)
    r = number_of(bits - (doublings << 52)) - 1.0
    doublings -= less
    lead, low = 0.0, 0.0
    if -0.015625 < r < 0.015625:
        lead, low = r, log_near_one_rest(r)
    else:
        lead, low = log_parts(r + 1.0, 0)
    product = lead * PER_LN2
    more = product_rest(lead, PER_LN2, product) + (low * PER_LN2 + lead * PER_LN2_REST)
    total = doublings + product
    return float(total + (sum_rest(float(doublings), product, total) + more))


@scalar
def log1p(x: float) -> float:
    """log(1 + x)."""
    if -0.015625 < x < 0.015625:
        return log_near_one(x)
    if not (-1.0 < x < math.inf):
        return -math.inf if x == -1.0 else math.nan if x < -1.0 else x
    total = 1.0 + x
    return log_far(total, sum_rest(1.0, x, total), 0)


@scalar
def power(x: float, y: float) -> float:
    """x^y for x ≥ 0; NaN for x < 0."""
    if y == 0.0 or x == 1.0:
        return 1.0
    if not (0.0 < x < math.inf) or not (-math.inf < y < math.inf):
        return _odd_power(x, y)
    lead, low = 0.0, 0.0
    if x < TINY:
        lead, low = log_parts(x * 18014398509481984.0, -54)  # 2^54
    else:
        lead, low = log_parts(x, 0)
    first = lead + low
    low = (lead - first) + low
    lead = first
    if -1e-300 < y < 1e-300 or abs(y) > 1e300:  # splitting y would leave the range
        return exp(y * (lead + low))
    product = lead * y
    rest = product_rest(lead, y, product) + low * y
    if not (LEAST_EXPONENT - 1.0 <= product <= MOST_EXPONENT + 1.0):
        return math.inf if product > 0.0 else 0.0
    r, k = in_steps(product)
    j = k & (STEPS - 1)
    if k >> STEP_BITS > 1024:
        return math.inf
    if k >> STEP_BITS < -1080:
        return 0.0
    return scaled(POWER_LEAD[j], exp_rest(r, POWER_REST[j] + rest * (1.0 + r)), k >> STEP_BITS)


@scalar
def _odd_power(x: float, y: float) -> float:
    """x^y where one of them is 0, infinite, negative or no number."""
    if x != x or y != y or x < 0.0:
        return math.nan
    if x == 0.0 or x == math.inf:
        return math.inf if (x == 0.0) == (y < 0.0) else 0.0
    return math.inf if (x > 1.0) == (y > 0.0) else 0.0


# ------------------------------------------------------------------------------------------ erfc


@scalar
def erfc(x: float) -> float:
    """2/√π ∫ₓ^∞ e^(-t²) dt."""
    if x != x:
        return x
    a = abs(x)
    if a > 27.3:
        return 0.0 if x > 0.0 else 2.0
    lead, low = 0.0, 0.0
    if a < 8.0:
        j = int(a / NODE_WIDTH)
        h = a - (j + 0.5) * NODE_WIDTH
        p = 0.0
        for n in range(TERMS + 1, 1, -1):
            p = p * h + TAIL[j, n]
        more = TAIL[j, 1] + h * p
        lead = TAIL[j, 0] + more
        low = (TAIL[j, 0] - lead) + more
    else:
        t = 0.5 / (a * a)
        p = 0.0
        for n in range(22, 0, -1):
            p = -(2.0 * n - 1.0) * t * (1.0 + p)
        lead = ROOT_LEAD / a
        product = lead * a
        low = (((ROOT_LEAD - product) - product_rest(lead, a, product)) + ROOT_REST) / a
        more = low + lead * p
        first = lead + more
        low = (lead - first) + more
        lead = first
    square = a * a
    rest = product_rest(a, a, square)
    r, k = in_steps(-square)
    j = k & (STEPS - 1)
    tail = exp_rest(r, POWER_REST[j] - rest * (1.0 + r))
    e = POWER_LEAD[j] + POWER_LEAD[j] * tail
    e_rest = (POWER_LEAD[j] - e) + POWER_LEAD[j] * tail
    product = e * lead
    product_low = product_rest(e, lead, product) + (e * low + e_rest * lead)
    doublings = k >> STEP_BITS
    if x < 0.0:
        if doublings < -100:
            return 2.0
        scale = number_of(ONE_BITS + (doublings << 52))
        first = 2.0 - product * scale
        return float(first + ((2.0 - first) - product * scale - product_low * scale))
    if doublings >= -1000:
        return float((product + product_low) * number_of(ONE_BITS + (doublings << 52)))
    scale = number_of(ONE_BITS + ((doublings + 100) << 52))
    return float((product + product_low) * scale * 2.0**-100)


# ------------------------------------------------------------------------------------------ sine and cosine


@scalar
def _turned(x: float, quarters: int) -> float:
    """sin(x + quarters·π/2)."""
    if not (-MOST_ANGLE <= x <= MOST_ANGLE):
        if not (-math.inf < x < math.inf):
            return math.nan
        x = x % TURN
    k = (x * QUARTERS_PER_UNIT + ROUNDER) - ROUNDER
    first = x - k * QUARTER_1
    step = -(k * QUARTER_2)
    second = first + step
    rest = sum_rest(first, step, second)
    step = -(k * QUARTER_3)
    third = second + step
    rest = (rest + sum_rest(second, step, third)) - k * QUARTER_4
    r = third + rest
    rest = (third - r) + rest
    square = r * r
    turn = (int(k) + quarters) & 3
    value = 0.0
    if turn & 1:
        p = 1.0 / 479001600.0 - square * (1.0 / 87178291200.0 - square * (1.0 / 20922789888000.0))
        p = 1.0 / 720.0 - square * (1.0 / 40320.0 - square * (1.0 / 3628800.0 - square * p))
        p = square * square * (1.0 / 24.0 - square * p)
        half = 0.5 * square
        value = 1.0 - half
        value += ((1.0 - value) - half) + (p - r * rest)
    else:
        p = 1.0 / 6227020800.0 - square * (1.0 / 1307674368000.0 - square * (1.0 / 355687428096000.0))
        p = 1.0 / 5040.0 - square * (1.0 / 362880.0 - square * (1.0 / 39916800.0 - square * p))
        p = square * r * (1.0 / 6.0 - square * (1.0 / 120.0 - square * p))
        value = r + (rest * (1.0 - 0.5 * square) - p)
    return -value if turn & 2 else value


@scalar
def sine(x: float) -> float:
    """sin x."""
    return _turned(x, 0)


@scalar
def cosine(x: float) -> float:
    """cos x."""
    return _turned(x, 1)
