"""The table of links: μ, its derivatives and its integral by code, and what other modules need to know of a link.

A link is an int inside kernels, so that they stay cacheable, and a row of `LINKS` outside. To add one: a code, a branch
in each function of this file, and a row. A code that a function does not know gets NaN, or the cautious answer, and
solvers report numbers that are not finite as a failure. CUSTOM has no compiled form: its owner evaluates it in Python
and passes the values on (newton.weigh_). All functions are finite for every finite argument: an exponent above 700 is
taken as 700, so the Poisson mean stops at e^700 instead of overflowing; its integral continues linearly, so M' = μ.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from driftwise._internal.elementary import erfc, exp, expm1, log1p
from driftwise._internal.validate import one_of
from driftwise.kernels import formula

IDENTITY, LOGISTIC, PROBIT, POISSON, CUSTOM = 0, 1, 2, 3, 4

EXPONENT = 700.0  # the largest exponent taken
FAR = 60.0  # the normal density is 0 in double precision from 39 on
ROOT_HALF = math.sqrt(0.5)
ROOT_TAU = math.sqrt(2.0 * math.pi)
MILLS = -3.0  # left of here zΦ(z) + φ(z) cancels, and a continued fraction takes over
TERMS = 60  # of it: full precision from 3 on


@formula
def density(z: float) -> float:
    """φ(z), the standard normal density."""
    a = min(abs(z), FAR)
    return exp(-0.5 * a * a) / ROOT_TAU


@formula
def mean(link: int, z: float) -> float:
    """μ(z)."""
    if link == LOGISTIC:
        e = exp(-abs(z))
        return 1.0 / (1.0 + e) if z > 0.0 else e / (1.0 + e)
    if link == IDENTITY:
        return z
    if link == PROBIT:
        return 0.5 * erfc(-ROOT_HALF * z)
    if link == POISSON:
        return exp(min(z, EXPONENT))
    return math.nan


@formula
def slope(link: int, z: float) -> float:
    """μ'(z)."""
    if link == LOGISTIC:
        e = exp(-abs(z))
        t = 1.0 / (1.0 + e)
        return e * t * t
    if link == IDENTITY:
        return 1.0
    if link == PROBIT:
        return density(z)
    if link == POISSON:
        return exp(min(z, EXPONENT))
    return math.nan


@formula
def curve(link: int, z: float) -> float:
    """μ''(z)."""
    if link == LOGISTIC:
        e = exp(-abs(z))
        t = 1.0 / (1.0 + e)
        bend = e * t * t * (-expm1(-abs(z)) * t)
        return -bend if z > 0.0 else bend
    if link == IDENTITY:
        return 0.0
    if link == PROBIT:
        return -z * density(z)
    if link == POISSON:
        return exp(min(z, EXPONENT))
    return math.nan


@formula
def third(link: int, z: float) -> float:
    """μ'''(z)."""
    if link == LOGISTIC:
        e = exp(-abs(z))
        t = 1.0 / (1.0 + e)
        p = e * t * t
        return p * (1.0 - 6.0 * p)
    if link == IDENTITY:
        return 0.0
    if link == PROBIT:
        a = min(abs(z), FAR)
        return (a * a - 1.0) * density(z)
    if link == POISSON:
        return exp(min(z, EXPONENT))
    return math.nan


@formula
def area(link: int, z: float) -> float:
    """M(z) with M' = μ: z²/2, log(1 + e^z), zΦ(z) + φ(z), e^z."""
    if link == LOGISTIC:
        return max(z, 0.0) + log1p(exp(-abs(z)))
    if link == IDENTITY:
        return 0.5 * z * z
    if link == PROBIT:
        if z > MILLS:
            return 0.5 * z * erfc(-ROOT_HALF * z) + density(z)
        # Φ(-a)/φ(a) = 1/(a + K) with K = 1/(a + 2/(a + 3/(a + …))), so that φ - aΦ = φ K/(a + K).
        a = -z
        tail = 0.0
        for n in range(TERMS, 0, -1):
            tail = n / (a + tail)
        return density(z) * (tail / (a + tail))
    if link == POISSON:
        if z > EXPONENT:
            return exp(EXPONENT) * (1.0 + (z - EXPONENT))
        return exp(z)
    return math.nan


@formula
def bend(link: int, reach: float) -> float:
    """The M with |μ''| ≤ M μ' for |z| ≤ reach, from which Newton's method knows how far it may step."""
    if link == LOGISTIC or link == POISSON:
        return 1.0
    if link == IDENTITY:
        return 0.0
    if link == PROBIT:
        return reach
    return math.nan


@formula
def bends_more_far_out(link: int) -> bool:
    """Whether that M grows with the reach."""
    return link == PROBIT


@formula
def tame(link: int, reach: float) -> bool:
    """Whether |μ'''| ≤ μ' is known as well, as long as |z| ≤ reach."""
    return link == LOGISTIC or link == IDENTITY or (link == PROBIT and reach <= 1.4)


@formula
def one_valley(link: int) -> bool:
    """Whether the projection in V⁻¹ may stop at the first minimum it finds (project.py counts the exceptions)."""
    return link == LOGISTIC or link == IDENTITY or link == PROBIT


@formula
def widening(link: int) -> float:
    """The a with E μ(z + sN) ≈ μ(z/√(1 + a s²)), N standard normal: the effect of an uncertain z on a probability."""
    if link == LOGISTIC:
        return math.pi / 8.0
    if link == PROBIT:
        return 1.0
    return math.nan


def _half_tanh(radius: float) -> float:
    """tanh(radius/2)."""
    e = expm1(-radius)
    return -e / (2.0 + e)


class LinkRow(NamedTuple):
    """What other modules need to know of a link. `radius` is SL, the largest |x'θ|.

    slopes(radius) is k = sup and c = inf of μ' there, concordance(radius) the smallest M with |μ''| ≤ M μ'; noise is
    the R that rewards imply, None where they imply none; bounded says that they lie in [0, m]; chance that μ is a
    probability, which a bank can score; rewards are the kinds a world may draw around such a mean, the usual one first.
    """

    code: int
    slopes: Callable[[float], tuple[float, float]]
    concordance: Callable[[float], float]
    noise: float | None
    bounded: bool
    chance: bool
    rewards: tuple[str, ...]


LINKS: dict[str, LinkRow] = {
    "identity": LinkRow(
        IDENTITY, lambda radius: (1.0, 1.0), lambda radius: 0.0,
        noise=1.0, bounded=False, chance=False, rewards=("gaussian",),
    ),
    "logistic": LinkRow(
        LOGISTIC, lambda radius: (0.25, slope(LOGISTIC, radius)), _half_tanh,
        noise=0.5, bounded=True, chance=True, rewards=("bernoulli", "gaussian"),
    ),
    "probit": LinkRow(
        PROBIT, lambda radius: (1.0 / ROOT_TAU, density(radius)), lambda radius: radius,
        noise=0.5, bounded=True, chance=True, rewards=("bernoulli", "gaussian"),
    ),
    "poisson": LinkRow(
        POISSON, lambda radius: (slope(POISSON, radius), slope(POISSON, -radius)), lambda radius: 1.0,
        noise=None, bounded=False, chance=False, rewards=("poisson", "gaussian"),
    ),
}  # fmt: skip


def link_row(link: object) -> LinkRow:
    """The row of a link by name, or a BadInput."""
    one_of("link", link, list(LINKS))
    return LINKS[str(link)]
