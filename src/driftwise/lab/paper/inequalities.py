"""The lemmas that hold as printed: the largest ratio of the left to the right side over random histories."""

from __future__ import annotations

import math

import numpy as np

from driftwise._internal.validate import Floats

HISTORIES = 3000


def _mean(z: Floats) -> Floats:
    return np.asarray(0.5 * (1.0 + np.tanh(0.5 * z)))


def _slope(z: Floats) -> Floats:
    return np.asarray(0.25 / np.cosh(0.5 * z) ** 2)


def _between(one: Floats, other: Floats) -> Floats:
    """The mean slope of the logistic function between two places."""
    gap = other - one
    near = np.abs(gap) < 1e-4
    ratio = (_mean(other) - _mean(one)) / np.where(near, 1.0, gap)
    return np.where(near, _slope(0.5 * (one + other)), ratio)


def _inside(rng: np.random.Generator, rows: int, d: int, reach: float) -> Floats:
    """Points of a ball, half of them on its border."""
    x = rng.standard_normal((rows, d))
    x *= reach / np.linalg.norm(x, axis=1, keepdims=True)
    return np.asarray(x * np.where(rng.random((rows, 1)) < 0.5, 1.0, rng.random((rows, 1))))


def largest_ratios(histories: int = HISTORIES, seed: int = 0) -> dict[int, float]:
    """Left side over right side, the largest over random weights, norms, arms and paths; at most 1 if a lemma holds."""
    rng, worst = np.random.default_rng(seed), dict.fromkeys((4, 6, 8, 11, 12, 13, 14), 0.0)
    for _ in range(histories):
        d, rounds = int(rng.integers(1, 4)), int(rng.integers(1, 50))
        gamma, lam, S, L = 1.0 - 10.0 ** rng.uniform(-3, -0.05), *10.0 ** rng.uniform((-2, -1, -1), (1, 0.7, 0.7))
        X, theta = _inside(rng, rounds, d, L), _inside(rng, rounds + 1, d, S)
        found = {**_bias(X, theta, gamma, lam, S, L), **_sums(X, gamma, lam, L), **_slopes(X, theta, lam, S, L)}
        worst = {number: max(one, float(found[number])) for number, one in worst.items()}
    return worst


def _length(x: Floats, matrix: Floats) -> float:
    """‖x‖ in the inverse of a matrix."""
    return math.sqrt(float(x @ np.linalg.solve(matrix, x)))


def _bias(X: Floats, theta: Floats, gamma: float, lam: float, S: float, L: float) -> dict[int, float]:
    """Lemmas 4, 6 and 8: what the path of θ adds to the error, in V⁻¹ and in H(θ_t)⁻¹."""
    rounds, d = X.shape
    weights = gamma ** np.arange(rounds - 1.0, -1.0, -1.0)
    k, c = 0.25, float(_slope(np.array(S * L)))
    V = lam * np.eye(d) + (X * weights[:, None]).T @ X
    H = lam * c * np.eye(d) + (X * (weights * _slope(X @ theta[-1]))[:, None]).T @ X
    linear = X.T @ (weights * np.sum(X * (theta[:-1] - theta[-1]), axis=1))
    clicks = X.T @ (weights * (_mean(X @ theta[-1]) - _mean(np.sum(X * theta[:-1], axis=1))))
    p = np.arange(1.0, rounds + 1.0)
    steps = np.linalg.norm(np.diff(theta, axis=0), axis=1)
    right = L * math.sqrt(d) * float(np.sqrt(gamma ** (rounds - p) * (1.0 - gamma**p) / (1.0 - gamma)) @ steps)
    right = max(right, 1e-300)
    return {4: _length(linear, V) / right, 6: _length(clicks, V) / (k * right),
            8: _length(clicks, H) / (k / math.sqrt(c) * right)}  # fmt: skip


def _sums(X: Floats, gamma: float, lam: float, L: float) -> dict[int, float]:
    """Lemmas 11 and 12: the potential, and the determinant."""
    rounds, d = X.shape
    V, total, weights = lam * np.eye(d), 0.0, 0.0
    for x in X:
        total += _length(x, V) ** 2
        V = gamma * (V - lam * np.eye(d)) + np.outer(x, x) + lam * np.eye(d)
        weights = gamma * weights + 1.0
    most = 2.0 * max(1.0, L * L / lam) * d * (-rounds * math.log(gamma) + math.log1p(L * L / (lam * d * (1.0 - gamma))))
    return {11: total / most, 12: float(np.linalg.det(V)) / (lam + L * L * weights / d) ** d}


def _slopes(X: Floats, theta: Floats, lam: float, S: float, L: float) -> dict[int, float]:
    """Lemmas 13 and 14: mean slopes between two places, and G(θ₁, θ₂) above H(θ₁)/(1+2SL)."""
    one, other = X @ theta[0], X @ theta[-1]
    between, gap = _between(one, other), np.maximum(np.abs(one - other), 1e-12)
    below = np.maximum(-np.expm1(-gap) / gap, 1.0 / (1.0 + gap))
    bounds = max(float((_slope(one) * below / between).max()),
                 float((between / (_slope(one) * np.expm1(gap) / gap)).max()))  # fmt: skip
    ridge = lam * float(_slope(np.array(S * L))) * np.eye(X.shape[1])
    G = ridge + (X * between[:, None]).T @ X
    H = ridge + (X * _slope(one)[:, None]).T @ X
    return {13: bounds, 14: float(np.linalg.eigvals(np.linalg.solve(G, H)).real.max()) / (1.0 + 2.0 * S * L)}


if __name__ == "__main__":
    for number, ratio in largest_ratios().items():
        print(f"Lemma {number}: {ratio:.3f}")
