"""The neighbours' algorithms again, slow and literal, from the formulas of their papers: every sum is made anew."""

import math

import numpy as np


class NaiveDLinUCB:
    """dLinUCB (Wu, Iyer, Wang 2018): models are lists of what they learned and of whether they failed."""

    def __init__(self, *, dim, lam, delta, S, L, R, window, delta_2, delta_new, count="own"):
        self.dim, self.lam, self.delta, self.S, self.L, self.R = dim, lam, delta, S, L, R
        self.window, self.delta_2, self.delta_new, self.count = window, delta_2, delta_new, count
        self.t, self.models = 0, [{"data": [], "fails": [], "born": 0}]

    def solve(self, model):
        V, b = self.lam * np.eye(self.dim), np.zeros(self.dim)
        for x, r in model["data"]:
            V, b = V + np.outer(x, x), b + r * x
        return np.linalg.inv(V), np.linalg.solve(V, b)

    def beta(self, model):
        n = len(model["data"]) + (model["born"] if self.count == "as-published" else 0)
        inside = 2 * math.log(1 / self.delta) + self.dim * math.log(1 + n * self.L**2 / (self.lam * self.dim))
        return math.sqrt(self.lam) * self.S + self.R * math.sqrt(inside)

    def badness(self, model):
        last = model["fails"][-self.window :]
        if not last:
            return 0.0, 0.5
        return sum(last) / len(last), math.sqrt(math.log(1 / self.delta_2) / (2 * len(last)))

    def best(self):
        def low(model):
            bad, half = self.badness(model)
            return bad - math.sqrt(math.log(self.window)) * half

        return min(self.models, key=low)

    def theta(self):
        return self.solve(self.best())[1]

    def choose(self, arms):
        inverse, theta = self.solve(self.best())
        beta = self.beta(self.best())
        return int(np.argmax([x @ theta + beta * math.sqrt(x @ inverse @ x) for x in arms]))

    def learn(self, arms, arm, reward):
        from scipy.special import erfinv

        self.t += 1
        x, eta = np.array(arms[arm]), math.sqrt(2.0) * self.R * float(erfinv(1 - self.delta))
        for model in self.models:
            inverse, theta = self.solve(model)
            fails = abs(x @ theta - reward) > self.beta(model) * math.sqrt(x @ inverse @ x) + eta
            if not fails:
                model["data"].append((x, reward))
            model["fails"].append(fails)
        told = [(model, *self.badness(model)) for model in self.models]
        some_good = any(bad < half + self.delta_new for _, bad, half in told)
        limit = max(self.delta, self.delta_new)
        self.models = [model for model, bad, half in told if bad < half + limit]
        if not some_good or not self.models:
            self.models.append({"data": [], "fails": [], "born": self.t})


class NaiveWeightedOFUL:
    """Restarted-WeightedOFUL+ (Wang et al. 2025, Algorithm 1)."""

    def __init__(self, *, dim, window, lam, alpha, gamma, sigma, delta, S, L, R, beta=None):
        self.dim, self.window, self.lam, self.alpha, self.gamma = dim, window, lam, alpha, gamma
        self.sigma, self.delta, self.S, self.L, self.R, self.given = sigma, delta, S, L, R, beta
        self.k, self.data = 0, []

    def sums(self):
        V, b = self.lam * np.eye(self.dim), np.zeros(self.dim)
        for x, r, s in self.data:
            V, b = V + np.outer(x, x) / s**2, b + r * x / s**2
        return np.linalg.inv(V), np.linalg.solve(V, b)

    def theta(self):
        return self.sums()[1]

    def radius(self):
        if self.given is not None:
            return self.given
        n = max(1, self.k % self.window)
        q = math.log(32 * (math.log(self.gamma**2 / self.alpha) + 1) * n**2 / self.delta)
        first = 12 * math.sqrt(self.dim * math.log(1 + n * self.L**2 / (self.alpha**2 * self.dim * self.lam)) * q)
        return first + 30 * q * self.R / self.gamma**2 + math.sqrt(self.lam) * self.S

    def choose(self, arms):
        inverse, theta = self.sums()
        return int(np.argmax([x @ theta + self.radius() * math.sqrt(x @ inverse @ x) for x in arms]))

    def learn(self, arms, arm, reward):
        x, (inverse, _) = np.array(arms[arm]), self.sums()
        self.k += 1
        p = 0.5 / self.k
        sigma = math.sqrt(p * (1 - p)) if self.sigma == "rare" else self.sigma
        self.data.append((x, reward, max(sigma, self.alpha, self.gamma * math.sqrt(math.sqrt(x @ inverse @ x)))))
        if self.k % self.window == 0:
            self.data = []


def naive_exp3_shares(history, n, mix, share):
    """Probabilities of EXP3.S after (arm, reward in [0, 1]) of every round, with weights as they grow."""
    w = np.ones(n)
    for arm, reward in history:
        p = (1 - mix) * w / w.sum() + mix / n
        estimate = np.zeros(n)
        estimate[arm] = reward / p[arm]
        w = w * np.exp(mix * estimate / n) + math.e * share / n * w.sum()
    return (1 - mix) * w / w.sum() + mix / n
