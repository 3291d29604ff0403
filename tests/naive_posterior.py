"""Slow twins of docs/math.md#posterior-radius: posterior radii of values and clicks, and their bank of fades.

As in naive.py nothing is carried that can be recomputed, but the weights of a bank.
"""

import math

import numpy as np

from naive import History, NaiveGLM, norms

QUANTILE, CLICK_QUANTILE = 2.0, 1.5


def posterior(X, r, w, ridge):
    """The posterior of theta: its mean, and its covariance in units of R^2."""
    A = ridge * np.eye(X.shape[1]) + (X.T * w) @ X
    return np.linalg.solve(A, X.T @ (w * r)), np.linalg.inv(A)


class NaivePosterior(History):
    """LinearUCB with radius="posterior"; memory as in History."""

    def __init__(self, *, dim, memory, R=1.0, S=1.0, lam=None, exploration=1.0):
        super().__init__(memory)
        self.dim, self.R, self.exploration = dim, R, exploration
        self.ridge = R**2 * dim / S**2 if lam is None else lam

    def posterior(self):
        """Mean of theta, and its covariance over R^2."""
        return posterior(self.xs(self.dim), self.rewards(), self.weights(), self.ridge)

    def scores(self, arms):
        """Mean and bonus of every arm."""
        theta, C = self.posterior()
        return arms @ theta, QUANTILE * self.exploration * self.R * np.sqrt(np.einsum("ni,ij,nj->n", arms, C, arms))


class NaiveClicks(NaiveGLM):
    """PosteriorUCB: the quantile x'theta + 1.5 ||x|| in H^-1 of the Laplace posterior, lifted by mu."""

    def __init__(self, *, dim, memory, link="logistic", S=1.0, lam=None, exploration=1.0, estimate="exact"):
        super().__init__(dim=dim, memory=memory, link=link, lam=dim / S**2 if lam is None else lam, delta=0.5, S=S,
                         exploration=exploration, estimate=estimate)

    def reg(self):
        """The ridge of the estimating equation."""
        return self.lam

    def H(self):
        """The Hessian at the estimate."""
        return self.pass_H if self.how == "one-pass" else self.equation().H(self.theta_hat())

    def scores(self, arms):
        """mu(x'theta) and mu(z) - mu(x'theta) of every arm."""
        center = arms @ self.theta_hat()
        mean = self.link.mu(center)
        return mean, self.link.mu(center + CLICK_QUANTILE * self.exploration * norms(arms, self.H())) - mean


class Lane:
    """A memory of so many rounds: rows of x, r, weight and at, with weight as at clock `at`."""

    def __init__(self, dim, rounds):
        self.dim, self.rounds, self.gamma = dim, rounds, 1.0 - 1.0 / rounds
        self.clock, self.rows = 0.0, np.empty((0, dim + 3))

    def learn(self, x, r, age):
        """A reward that was born `age` ago."""
        self.rows = np.vstack([self.rows, [*x, r, 1.0, self.clock - age]])

    def now(self):
        """Vectors, rewards, and weights at the present clock."""
        rewards, weights, at = self.rows[:, self.dim :].T
        return self.rows[:, : self.dim], rewards, weights * self.gamma ** (self.clock - at)

    def take_over(self, other):
        """Take over the other's data with their current weights."""
        X, rewards, weights = other.now()
        self.rows = np.column_stack([X, rewards, weights, np.full_like(weights, self.clock)])


class NaiveFadeBank:
    """FadeBank over a told posterior: memories, the shortest first, of which longer ones start with more weight."""

    def __init__(self, *, dim, memories, R=1.0, S=1.0, lam=None, share=3e-4, margin=1.0, gap=6.0, back=3.0):
        self.R, self.ridge = R, R**2 * dim / S**2 if lam is None else lam
        self.share, self.margin, self.gap, self.back = share, margin, gap, back
        self.lanes = [Lane(dim, rounds) for rounds in memories]
        self.weights = np.exp(-0.5 * np.arange(len(memories))[::-1])
        self.weights /= self.weights.sum()
        self.clock, self.taken_over = 0.0, []  # (clock, from, to)

    def played(self):
        """The longest within the margin of the best."""
        return max(np.flatnonzero(self.weights >= math.exp(-self.margin) * self.weights.max()))

    def scores(self, arms):
        """Mean and bonus by the lane played."""
        theta, C = posterior(*self.lanes[self.played()].now(), self.ridge)
        return arms @ theta, QUANTILE * self.R * np.sqrt(np.einsum("ni,ij,nj->n", arms, C, arms))

    def pay(self, x, r):
        """Update the weights by the density of a reward."""
        nats = []
        for lane in self.lanes:
            theta, C = posterior(*lane.now(), self.ridge)
            v = float(x @ C @ x)
            nats.append(-0.5 * math.log(1 + v) - 0.5 * (r - x @ theta) ** 2 / (self.R**2 * (1 + v)))
        w = self.weights * np.exp(np.array(nats) - max(nats))
        self.weights = (1 - self.share) * w / w.sum() + self.share / len(w)

    def shift(self):
        """Longer lanes far behind the best one take over its data, and stand a little below it."""
        best = max(np.flatnonzero(self.weights == self.weights.max()))
        for k in range(best + 1, len(self.lanes)):
            if self.weights[k] < math.exp(-self.gap) * self.weights[best]:
                self.lanes[k].take_over(self.lanes[best])
                self.weights[k] = self.weights[best] * math.exp(-self.back)
                self.taken_over.append((self.clock, best, k))

    def advance(self, ticks=1.0):
        """Time passes without a reward."""
        self.clock += ticks
        for lane in self.lanes:
            lane.clock += ticks
        self.shift()

    def learn(self, arms, arm, reward, ticks=1.0, age=0.0):
        """Weights, time and the reward to every lane, then take-overs."""
        x, r = np.array(arms[arm], dtype=float), float(reward)
        self.pay(x, r)
        self.clock += ticks
        for lane in self.lanes:
            lane.clock += ticks
            lane.learn(x, r, age)
        self.shift()
