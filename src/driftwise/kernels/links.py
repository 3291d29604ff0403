"""Links μ, their derivatives and their integrals, by code; finite for every finite argument.

A link is an int so that kernels stay cacheable. CUSTOM has no compiled form: its owner evaluates it in Python
and hands the values on (newton.weigh_), and here it answers NaN. An exponent above 700 is read as 700, so that
the Poisson mean stops at e^700 instead of overflowing; its integral goes on linearly from there, so M' = μ holds.
"""

from __future__ import annotations

import math

from driftwise.errors import BadInput
from driftwise.kernels import kernel

IDENTITY, LOGISTIC, PROBIT, POISSON, CUSTOM = 0, 1, 2, 3, 4

EXPONENT = 700.0  # the largest exponent taken
FAR = 60.0  # the normal density is 0 in double precision from 39 on
ROOT_HALF = math.sqrt(0.5)
ROOT_TAU = math.sqrt(2.0 * math.pi)
MILLS = -3.0  # left of here zΦ(z) + φ(z) cancels, and a continued fraction takes over
TERMS = 60  # of it: full precision from 3 on


@kernel
def density(z: float) -> float:
    """φ(z), the standard normal density."""
    a = min(abs(z), FAR)
    return math.exp(-0.5 * a * a) / ROOT_TAU


@kernel
def mean(link: int, z: float) -> float:
    """μ(z)."""
    if link == LOGISTIC:
        e = math.exp(-abs(z))
        return 1.0 / (1.0 + e) if z > 0.0 else e / (1.0 + e)
    if link == IDENTITY:
        return z
    if link == PROBIT:
        return 0.5 * math.erfc(-ROOT_HALF * z)
    if link == POISSON:
        return math.exp(min(z, EXPONENT))
    return math.nan


@kernel
def slope(link: int, z: float) -> float:
    """μ'(z)."""
    if link == LOGISTIC:
        e = math.exp(-abs(z))
        t = 1.0 / (1.0 + e)
        return e * t * t
    if link == IDENTITY:
        return 1.0
    if link == PROBIT:
        return density(z)
    if link == POISSON:
        return math.exp(min(z, EXPONENT))
    return math.nan


@kernel
def curve(link: int, z: float) -> float:
    """μ''(z)."""
    if link == LOGISTIC:
        e = math.exp(-abs(z))
        t = 1.0 / (1.0 + e)
        bend = e * t * t * (-math.expm1(-abs(z)) * t)
        return -bend if z > 0.0 else bend
    if link == IDENTITY:
        return 0.0
    if link == PROBIT:
        return -z * density(z)
    if link == POISSON:
        return math.exp(min(z, EXPONENT))
    return math.nan


@kernel
def third(link: int, z: float) -> float:
    """μ'''(z)."""
    if link == LOGISTIC:
        e = math.exp(-abs(z))
        t = 1.0 / (1.0 + e)
        p = e * t * t
        return p * (1.0 - 6.0 * p)
    if link == IDENTITY:
        return 0.0
    if link == PROBIT:
        a = min(abs(z), FAR)
        return (a * a - 1.0) * density(z)
    if link == POISSON:
        return math.exp(min(z, EXPONENT))
    return math.nan


@kernel
def area(link: int, z: float) -> float:
    """M(z) with M' = μ: z²/2, log(1 + e^z), zΦ(z) + φ(z), e^z."""
    if link == LOGISTIC:
        return max(z, 0.0) + math.log1p(math.exp(-abs(z)))
    if link == IDENTITY:
        return 0.5 * z * z
    if link == PROBIT:
        if z > MILLS:
            return 0.5 * z * math.erfc(-ROOT_HALF * z) + density(z)
        # Φ(-a)/φ(a) = 1/(a + K) with K = 1/(a + 2/(a + 3/(a + …))), so that φ - aΦ = φ K/(a + K).
        a = -z
        tail = 0.0
        for n in range(TERMS, 0, -1):
            tail = n / (a + tail)
        return density(z) * (tail / (a + tail))
    if link == POISSON:
        if z > EXPONENT:
            return math.exp(EXPONENT) * (1.0 + (z - EXPONENT))
        return math.exp(z)
    return math.nan


def bounds(link: int, radius: float) -> tuple[float, float]:
    """k = sup and c = inf of μ' over |z| ≤ radius (radius = SL)."""
    if link == IDENTITY:
        return 1.0, 1.0
    if link == LOGISTIC:
        return 0.25, slope(LOGISTIC, radius)
    if link == PROBIT:
        return 1.0 / ROOT_TAU, density(radius)
    if link == POISSON:
        return slope(POISSON, radius), slope(POISSON, -radius)
    raise BadInput("link", link, "identity, logistic, probit or Poisson", "pass k and c yourself")
