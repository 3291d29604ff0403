"""Shows errors in published papers and public code, each by a few lines of arithmetic.

`python -m driftwise.lab.field.slips` prints all of them.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class SourceError(NamedTuple):
    """One error: the source, a statement, the result as published, and the result as meant."""

    source: str
    statement: str
    printed: str
    repaired: str


def second_matrix(gamma: float = 0.9, rounds: int = 200, lam: float = 0.1) -> tuple[float, float]:
    """‖x‖² in V⁻¹ṼV⁻¹ for x = 1 in every round, with the update of the code and with the update of the paper.

    The code has Ṽ ← γ²V + x² + (1-γ²)λ instead of Ṽ ← γ²Ṽ + x² + (1-γ²)λ. It updates V first, so Ṽ is close to V, and
    the norm is close to that of V⁻¹.
    """
    V = slipped = meant = lam
    for _ in range(rounds):
        V = gamma * V + 1.0 + (1.0 - gamma) * lam
        slipped = gamma**2 * V + 1.0 + (1.0 - gamma**2) * lam
        meant = gamma**2 * meant + 1.0 + (1.0 - gamma**2) * lam
    return slipped / V**2, meant / V**2


def born_late(at: int = 3000, lam: float = 0.1, delta: float = 0.01) -> tuple[float, float]:
    """β of a dLinUCB model that begins in round `at`: with the rounds before it counted, and without."""

    def beta(n: float) -> float:
        return math.sqrt(lam) + math.sqrt(2.0 * math.log(1.0 / delta) + 2.0 * math.log1p(n / (2.0 * lam)))

    return beta(at), beta(0.0)


def flipped() -> tuple[float, float]:
    """The cosine of θ before and after the jump of Kim and Tewari 2020: with coef·θ, and with the intended signs."""
    theta = np.array([0.57134, -0.03008, 0.46572, 0.13817, 0.93938, 1.25121, -0.95619, 0.07533, 0.154, -0.13501])
    signs = 2 * np.random.RandomState(1).binomial(1, 0.4, 10) - 1

    def cosine(after: np.ndarray) -> float:
        return float(theta @ after / math.sqrt(float(theta @ theta) * float(after @ after)))

    return cosine(theta * theta), cosine(signs * theta)


def ball(S: float = 4.0) -> tuple[float, float]:
    """The largest ‖θ‖ that the planning of OFULog-r allows: S² in the code, S in the paper."""
    return S * S, S


def projected(S: float = 2.0) -> tuple[bool, bool]:
    """Whether an estimate of norm 3 is projected on the ball of radius 2 with do_proj: in the code, and as meant."""
    norm = 3.0
    return not norm > S, norm > S


def blind(T: int = 240_000) -> tuple[float, float]:
    """How many swings of θ the window of SW-UCB covers at B = T^(1/3): the window of B = 1, and that of B."""
    B = T ** (1.0 / 3.0)
    swing = T / (2.5 * B)
    return (2.0 * T) ** (2.0 / 3.0) / swing, (2.0 * T / B) ** (2.0 / 3.0) / swing


def lag(S: float = 4.0, t: int = 2) -> tuple[float, float]:
    """L_t of OFUGLB at round t: (1+S/2)(n-1) with n = t-1 rewards, as coded, and (1+S/2)(t-1)."""
    return (1.0 + S / 2.0) * (t - 2), (1.0 + S / 2.0) * (t - 1)


def two_gaps(lam: float = 10.0, g: float = 8.0) -> tuple[float, float]:
    """Two radii for one bound: γ + γ²/λ in ofulogr.py, and γ + γ²/√λ in logistic_ucb_1.py."""
    return g + g * g / lam, g + g * g / math.sqrt(lam)


def shared_out(n: int = 3) -> tuple[float, float]:
    """The weight of an arm that is never played, after 1000 rewards of 1 of another arm: in the code, and as meant.

    α is 0.01, and the share of exploration is 0.2.
    """
    found = []
    for everywhere in (False, True):
        w = np.ones(n)
        for _ in range(1000):
            p, total = 0.8 * w / w.sum() + 0.2 / n, w.sum()
            w[0] *= math.exp(0.2 / p[0] / n)
            w[slice(None) if everywhere else slice(1)] += math.e * 0.01 / n * total
            w /= w.max()
        found.append(float(w[1]))
    return found[0], found[1]


def _numbers(program: Callable[[], tuple[float, float]], form: str = ".3g") -> tuple[str, str]:
    first, second = program()
    return f"{first:{form}}", f"{second:{form}}"


def source_errors() -> list[SourceError]:
    """All errors that the page lists."""
    return [
        SourceError("Russac et al. 2019, code", "D-LinUCB overwrites its second matrix by the first: ‖x‖² at γ = 0.9",
             *_numbers(second_matrix)),
        SourceError("Russac et al. 2019, code of dLinUCB", "a model begun in round 3,000 counts earlier rounds: β",
             *_numbers(born_late)),
        SourceError("Kim, Tewari 2020, first code (noted by its authors)",
             "theta_flip = coef·theta: the cosine of θ before and after", *_numbers(flipped, ".2f")),
        SourceError("Cheung et al. 2019, Figure 2 (a choice, not an error)",
             "the window for unknown B makes SW-UCB blind: swings of θ in it at T = 240,000", *_numbers(blind)),
        SourceError("Faury et al. 2022, code (logistic_bandit)",
             "OFULog-r bounds ‖θ‖ by S²: at S = 4", *_numbers(ball)),
        SourceError("Faury et al. 2022, code (logistic_bandit)",
             "GLM-UCB with do_proj projects estimates inside the ball: is one outside projected?",
             *("yes" if one else "no" for one in projected())),
        SourceError("Faury et al. 2022, code (logistic_bandit)",
             "OFULog-r widens γ by γ²/λ, LogUCB1 by γ²/√λ, for one bound: at γ = 8, λ = 10", *_numbers(two_gaps)),
        SourceError("Bandits.jl, code of EXP3.S",
             "weights are shared out to the played arm only: weight of another after 1,000 rewards",
             *_numbers(shared_out, ".1e")),
        SourceError("Lee et al. 2024, code (OFUGLB)", "L_t lags by a round: at t = 2, S = 4", *_numbers(lag)),
    ]  # fmt: skip


if __name__ == "__main__":
    for one in source_errors():
        print(f"{one.source}: {one.statement}\n    as published: {one.printed}\n    as meant:     {one.repaired}")
