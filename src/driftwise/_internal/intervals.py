"""The 97.5% point of Student's t, for 95% intervals. It is computed here so that scipy is not needed for one number."""

from __future__ import annotations

import math

_TAIL = 0.025
_NORMAL = 1.959963984540054
_LEAST = 1e-300


def t_quantile(freedom: float) -> float:
    """The t that a Student variable exceeds with probability 2.5%. NaN where freedom is not positive, as in scipy."""
    if not freedom > 0.0:
        return math.nan
    if freedom > 1e4:  # Cornish and Fisher's expansion, whose next term is below 1e-15
        z, n = _NORMAL, 1 / freedom
        third = (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / 384
        return z + n * ((z**3 + z) / 4 + n * ((5 * z**5 + 16 * z**3 + 3 * z) / 96 + n * third))
    t = 1.95  # below the root for every freedom; the tail is convex, so Newton's steps approach it from below
    while True:
        step = (_tail(t, freedom) - _TAIL) / _density(t, freedom)
        t += step
        if not step > 1e-15 * t:
            return t


def _log_ratio(a: float) -> float:
    """log Γ(a + 1/2)/Γ(a), by Stirling's series where the gammas are large and their logarithms would cancel."""
    if a < 80.0:
        return math.log(math.gamma(a + 0.5) / math.gamma(a))
    return 0.5 * math.log(a) - 1 / (8 * a) + 1 / (192 * a**3) - 1 / (640 * a**5)


def _density(t: float, freedom: float) -> float:
    log = _log_ratio(freedom / 2) - 0.5 * math.log(freedom * math.pi)
    return math.exp(log - (freedom + 1) / 2 * math.log1p(t * t / freedom))


def _tail(t: float, freedom: float) -> float:
    """P(T > t) = I_x(ν/2, 1/2)/2 at x = ν/(ν+t²), the incomplete beta by its continued fraction (modified Lentz)."""
    a, b, square = freedom / 2, 0.5, t * t / freedom
    x = 1 / (1 + square)
    log = _log_ratio(a) - 0.5 * math.log(math.pi) - a * math.log1p(square) + b * math.log(square * x)
    c, d = 1.0, 1 / (1 - (a + b) * x / (a + 1))
    fraction = d
    for m in range(1, 10_000):
        for factor in (
            m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            d = 1 / _away(1 + factor * d)
            c = _away(1 + factor / c)
            fraction *= c * d
        if abs(c * d - 1) < 1e-16:
            break
    return math.exp(log) * fraction / a / 2


def _away(value: float) -> float:
    """The value, or a tiny number instead of 0, because it is a divisor."""
    return value if abs(value) > _LEAST else _LEAST
