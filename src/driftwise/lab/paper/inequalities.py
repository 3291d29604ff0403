"""The lemmas that hold as printed: the largest ratio of the left to the right side over random histories."""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from driftwise import theory as th
from driftwise._internal.validate import Floats

HISTORIES = 3000
NUMBERS = (4, 6, 8, 11, 12, 13, 14)


def logistic(z: Floats) -> Floats:
    """Means of rewards under the logistic link."""
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * z)))


def _slope(z: Floats) -> Floats:
    return np.asarray(0.25 / np.cosh(0.5 * z) ** 2)


def _inside(rng: np.random.Generator, rows: int, d: int, reach: float) -> Floats:
    """Points of a ball, half of them on its border."""
    x = rng.standard_normal((rows, d))
    x *= reach / np.linalg.norm(x, axis=1, keepdims=True)
    return np.asarray(x * np.where(rng.random((rows, 1)) < 0.5, 1.0, rng.random((rows, 1))))


@cache
def largest_ratios(histories: int = HISTORIES, seed: int = 0) -> dict[int, float]:
    """Left side over right side, the largest over random weights, norms, arms and paths; at most 1 if a lemma holds."""
    rng, worst = np.random.default_rng(seed), dict.fromkeys(NUMBERS, 0.0)
    for _ in range(histories):
        d, rounds = int(rng.integers(1, 4)), int(rng.integers(1, 50))
        forget, lam, S, L = 10.0 ** rng.uniform((-3, -2, -1, -1), (-0.05, 1, 0.7, 0.7))
        X, theta = _inside(rng, rounds, d, L), _inside(rng, rounds + 1, d, S)
        found = {**_bias(X, theta, forget, lam, S, L), **_sums(X, forget, lam, L), **_slopes(X, theta, lam, S, L)}
        worst = {number: max(one, found[number]) for number, one in worst.items()}
    return worst


def _length(x: Floats, matrix: Floats) -> float:
    """‖x‖ in the inverse of a matrix."""
    return math.sqrt(float(x @ np.linalg.solve(matrix, x)))


def _bias(X: Floats, theta: Floats, forget: float, lam: float, S: float, L: float) -> dict[int, float]:
    """Lemmas 4, 6 and 8: what the path of θ adds to the error, in V⁻¹ and in H(θ_t)⁻¹."""
    rounds, d = X.shape
    weights, now = (1.0 - forget) ** np.arange(rounds - 1.0, -1.0, -1.0), X @ theta[-1]
    then, k, c = np.sum(X * theta[:-1], axis=1), 0.25, float(_slope(np.array(S * L)))
    V = lam * np.eye(d) + (X * weights[:, None]).T @ X
    H = lam * c * np.eye(d) + (X * (weights * _slope(now))[:, None]).T @ X
    linear, clicks = X.T @ (weights * (then - now)), X.T @ (weights * (logistic(now) - logistic(then)))
    right = max(th.bias_bound(theta, forget, lam, L) * math.sqrt(lam) / L, 1e-300)  # 0 where θ stands still
    return {4: _length(linear, V) / right, 6: _length(clicks, V) / (k * right),
            8: _length(clicks, H) * math.sqrt(c) / (k * right)}  # fmt: skip


def _sums(X: Floats, forget: float, lam: float, L: float) -> dict[int, float]:
    """Lemmas 11 and 12: the potential, and the determinant."""
    rounds, d = X.shape
    G, total, weights, ridge, gamma = np.zeros((d, d)), 0.0, 0.0, lam * np.eye(d), 1.0 - forget
    for x in X:
        total += _length(x, G + ridge) ** 2
        G, weights = gamma * G + np.outer(x, x), gamma * weights + 1.0
    most = 2.0 * max(1.0, L * L / lam) * d * (-rounds * math.log(gamma) + math.log1p(L * L / (lam * d * forget)))
    return {11: total / most, 12: float(np.linalg.det(G + ridge)) / (lam + L * L * weights / d) ** d}


def _slopes(X: Floats, theta: Floats, lam: float, S: float, L: float) -> dict[int, float]:
    """Lemmas 13 and 14: mean slopes between two places, and G(θ₁, θ₂) above H(θ₁)/(1+2SL)."""
    one, other = X @ theta[0], X @ theta[-1]
    gap = np.maximum(np.abs(one - other), 1e-6)
    between = 0.5 * np.sinh(0.5 * gap) / (gap * np.cosh(0.5 * one) * np.cosh(0.5 * other))
    below = np.maximum(-np.expm1(-gap) / gap, 1.0 / (1.0 + gap))
    outside = np.maximum(_slope(one) * below / between, between * gap / (_slope(one) * np.expm1(gap)))
    ridge = lam * float(_slope(np.array(S * L))) * np.eye(X.shape[1])
    G, H = (ridge + (X * slopes[:, None]).T @ X for slopes in (between, _slope(one)))
    most = float(np.linalg.eigvals(np.linalg.solve(G, H)).real.max())
    return {13: float(outside.max()), 14: most / (1.0 + 2.0 * S * L)}


if __name__ == "__main__":
    for number, ratio in largest_ratios().items():
        print(f"Lemma {number}: {ratio:.3f}")
