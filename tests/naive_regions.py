"""The largest index over a set, slow and literal: grids, brute force, ascent and SLSQP from many starts.

An index is z + w√q or μ(z) + w√q, with z = shift + x'θ and q = x'Ax - 2x'b + c.
"""

import itertools
import math

import numpy as np
from scipy import optimize, special

LINKS = {
    "identity": lambda z: z, "logistic": special.expit, "probit": special.ndtr, "poisson": np.exp,
}  # fmt: skip


class NaiveIndex:
    """The index at rows of X (n, d); link=None is one that rises, before its link."""

    def __init__(self, theta, A, w, *, b=None, c=0.0, shift=0.0, link=None):
        self.theta, self.A, self.w, self.shift, self.c = np.asarray(theta), np.asarray(A), w, shift, c
        self.b = np.zeros(len(self.theta)) if b is None else np.asarray(b)
        self.link = link

    def __call__(self, X):
        z = self.shift + X @ self.theta
        q = np.einsum("ni,ij,nj->n", X, self.A, X) - 2.0 * X @ self.b + self.c
        return (z if self.link is None else LINKS[self.link](z)) + self.w * np.sqrt(np.maximum(q, 0.0))

    def gradient(self, x):
        """By the formula."""
        q = max(float(x @ self.A @ x - 2.0 * x @ self.b + self.c), 1e-300)
        z = self.shift + x @ self.theta
        slopes = {None: 1.0, "identity": 1.0, "logistic": special.expit(z) * special.expit(-z),
                  "probit": math.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi), "poisson": math.exp(min(z, 50.0))}
        return slopes[self.link] * self.theta + self.w * (self.A @ x - self.b) / math.sqrt(q)


def circle(n):
    """n points of the unit circle."""
    angle = 2.0 * math.pi * np.arange(n) / n
    return np.stack([np.cos(angle), np.sin(angle)], axis=1)


def finest(index, dim, radius=1.0):
    """The best of a fine grid of the sphere, refined around its best points: d = 2 and 3."""
    if dim == 2:
        points = circle(3000)
    else:
        n = 12000  # Fibonacci's spiral
        z = 1.0 - (2.0 * np.arange(n) + 1.0) / n
        angle = math.pi * (3.0 - math.sqrt(5.0)) * np.arange(n)
        points = np.stack([np.sqrt(1 - z * z) * np.cos(angle), np.sqrt(1 - z * z) * np.sin(angle), z], axis=1)
    spread, rng = (3e-3, 3e-2)[dim - 2], np.random.default_rng(0)
    for _ in range(14):
        order = np.argsort(-index(radius * points))[:20]
        near = points[order][:, None, :] + spread * rng.standard_normal((20, 60, dim))
        near = near.reshape(-1, dim)
        near /= np.sqrt((near**2).sum(axis=1, keepdims=True))
        points = np.concatenate([points[order], near])
        spread /= 3.0
    inside = rng.uniform(-1, 1, (2000, dim)) / math.sqrt(dim)
    return float(max(index(radius * points).max(), index(radius * inside).max()))


def ascent(index, dim, starts, rng, radius=1.0, steps=300):
    """Ascent from many starts, with gradients scaled to the edge of the ball: it never falls if the index is convex."""
    X = rng.standard_normal((starts, dim))
    X *= radius / np.sqrt((X**2).sum(axis=1, keepdims=True))
    for _ in range(steps):
        q = np.maximum(np.einsum("ni,ij,nj->n", X, index.A, X) - 2.0 * X @ index.b + index.c, 1e-300)
        g = index.theta + index.w * (X @ index.A - index.b) / np.sqrt(q)[:, None]
        X = radius * g / np.maximum(np.sqrt((g**2).sum(axis=1, keepdims=True)), 1e-300)
    return float(index(X).max())


def slsqp(index, dim, starts, rng, radius=1.0):
    """The best of SLSQP from many starts."""
    best = -math.inf
    ball = {"type": "ineq", "fun": lambda x: radius**2 - x @ x, "jac": lambda x: -2.0 * x}
    for _ in range(starts):
        x = rng.standard_normal(dim)
        x *= radius / math.sqrt(x @ x)
        found = optimize.minimize(
            lambda x: -float(index(x[None])[0]), x, jac=lambda x: -index.gradient(x), constraints=[ball],
            method="SLSQP", options={"maxiter": 200},
        ).x  # fmt: skip
        found = found * min(1.0, radius / max(math.sqrt(found @ found), 1e-300))
        best = max(best, float(index(found[None])[0]))
    return best


def longest(values, c, w):
    """In the eigenbasis of A, by the formula: the y of largest c'y + w√(y'Ay), c_i/(ν - 1/λ_i) with λ = 1/values. ν is
    the root of Σ λc²/(νλ - 1)² = w², found by Brent's method in the logarithm of its distance to the largest value."""
    lam, most = 1.0 / values, values.max()
    level = optimize.brentq(
        lambda s: math.log((lam * c**2 / (lam * (most - values + math.exp(s))) ** 2).sum() / w**2), -80.0, 80.0,
        xtol=1e-15, rtol=1e-15,
    )  # fmt: skip
    y = c / (most - values + math.exp(level))
    return y / math.sqrt(y @ y)


def vertices(low, high):
    """All vertices of a box."""
    return np.array(list(itertools.product(*zip(low, high, strict=True))))


def index_of_state(G, b, lam, beta, twin=None):
    """x'V⁻¹b + β‖x‖ in the norm of V⁻¹, or of V⁻¹ṼV⁻¹, from sums."""
    inverse = np.linalg.inv(G + lam * np.eye(len(b)))
    A = inverse if twin is None else inverse @ (twin + lam * np.eye(len(b))) @ inverse
    return NaiveIndex(inverse @ b, A, beta)
