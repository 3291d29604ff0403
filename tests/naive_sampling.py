"""Slow and literal twins of the rules that sample (docs/math.md#sampling); they get the fast ones' normal numbers.

The source allows any square root. Here it is Cholesky's, as in the fast code, so that equal normals give equal draws.
"""

import math
from itertools import pairwise

import numpy as np

from naive import NaiveLinear
from naive_posterior import NaiveClicks


class NaiveLinTS(NaiveLinear):
    """theta~ = theta + a V^-1 Vtwin^{1/2} z; a = exploration R, or exploration beta."""

    def __init__(self, *, scale="noise", **fields):
        super().__init__(**fields)
        self.scale = scale

    def matrix(self):
        """Vtwin, or V for the one-matrix form."""
        return self.V() if self.bonus == "one" else self.V_twin()

    def a(self):
        return self.exploration * (self.R if self.scale == "noise" else self.beta())

    def sampled(self, z):
        """theta~."""
        return self.theta() + self.a() * np.linalg.solve(self.V(), np.linalg.cholesky(self.matrix()) @ z)

    def covariance(self):
        """Of theta~: a^2 V^-1 Vtwin V^-1."""
        V = self.V()
        return self.a() ** 2 * np.linalg.solve(V, np.linalg.solve(V, self.matrix()).T)

    def drawn(self, arms, z):
        """Mean x'theta, and x'theta~ minus it."""
        mean = arms @ self.theta()
        return mean, arms @ self.sampled(z) - mean


class NaiveRandLinUCB(NaiveLinTS):
    """x'theta + a Z ||x|| in V^-1 Vtwin V^-1, one Z a round; |Z| if optimistic."""

    def __init__(self, *, optimistic=False, scale="weighted", **fields):
        super().__init__(scale=scale, **fields)
        self.optimistic = optimistic

    def widths(self, arms):
        """a ||x||."""
        return np.sqrt(np.sum(arms * (arms @ self.covariance()), axis=1))

    def drawn(self, arms, z):
        Z = abs(z[0]) if self.optimistic else z[0]
        return arms @ self.theta(), Z * self.widths(arms)

    def shares(self, arms):
        """The probability of each arm: between two crossings of lines, one arm is on top."""
        mean, width = arms @ self.theta(), self.widths(arms)
        low = 0.0 if self.optimistic else -math.inf
        cuts = {low, math.inf}
        for i in range(len(arms)):
            for j in range(i):
                if width[i] != width[j]:
                    cuts.add((mean[j] - mean[i]) / (width[i] - width[j]))
        cuts = sorted(cut for cut in cuts if cut >= low)
        shares = np.zeros(len(arms))
        for left, right in pairwise(cuts):
            if math.isinf(left) and math.isinf(right):
                inside = 0.0
            elif math.isinf(left):
                inside = right - 1.0
            else:
                inside = left + 1.0 if math.isinf(right) else (left + right) / 2.0
            chance = phi(right) - phi(left)
            shares[int(np.argmax(mean + inside * width))] += 2 * chance if self.optimistic else chance
        return shares


def phi(z):
    """The normal distribution function."""
    return 0.5 * math.erfc(-z / math.sqrt(2.0))


class NaiveGLMTSL(NaiveClicks):
    """theta~ = theta + exploration L^-T z with H = L L': N(theta, exploration^2 H^-1), shown through mu."""

    def sampled(self, z):
        """theta~."""
        return self.theta_hat() + self.exploration * np.linalg.solve(np.linalg.cholesky(self.H()).T, z)

    def covariance(self):
        return self.exploration**2 * np.linalg.inv(self.H())

    def drawn(self, arms, z):
        mean = self.link.mu(arms @ self.theta_hat())
        return mean, self.link.mu(arms @ self.sampled(z)) - mean
