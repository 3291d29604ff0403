"""The estimators again, one row at a time, by the definitions of Open Bandit Pipeline, with a policy of a few lines."""

import math

import numpy as np


class Greedy:
    """Plays the best arm by ridge regression on everything seen."""

    def __init__(self, dim, lam=1.0):
        self.dim, self.lam = dim, lam

    def start(self, seed=0):
        return {"V": self.lam * np.eye(self.dim), "b": np.zeros(self.dim)}

    def choose(self, state, arms):
        return int(np.argmax(self.estimate(state, arms)))

    def learn(self, state, arms, arm, reward):
        state["V"] = state["V"] + np.outer(arms[arm], arms[arm])
        state["b"] = state["b"] + reward * arms[arm]

    def estimate(self, state, arms):
        return np.asarray(arms) @ np.linalg.solve(state["V"], state["b"])


class First:
    """Plays the first arm and learns nothing."""

    def start(self, seed=0):
        return None

    def choose(self, state, arms):
        return 0

    def learn(self, state, arms, arm, reward):
        pass


class Ranking(Greedy):
    """The same, with scores of every arm."""

    def scores(self, state, arms):
        from driftwise import Scores

        mean = self.estimate(state, arms)
        return Scores(mean, np.zeros(len(mean)))


def walk(policy, arms, arm, propensity, reward, epsilon, born=None, paid=None):
    """Per row: the weight, q̂ of the logged arm, and the policy's expected q̂. Lessons are learned when they came."""
    n = len(reward)
    born = list(range(n)) if born is None else born
    paid = list(born) if paid is None else paid
    state, done, found = policy.start(), set(), []
    for t in sorted(range(n), key=lambda k: (born[k], k)):
        for s in sorted(range(n), key=lambda k: (paid[k], k)):
            if s not in done and paid[s] < born[t]:
                policy.learn(state, arms[s], arm[s], reward[s])
                done.add(s)
        means = policy.estimate(state, arms[t])
        pi = [epsilon / len(means)] * len(means)
        pi[policy.choose(state, arms[t])] += 1.0 - epsilon
        expected = sum(p * q for p, q in zip(pi, means, strict=True))
        found.append((pi[arm[t]] / propensity[t], means[arm[t]], expected, reward[t]))
    return found


def ips(rows):
    return sum(w * r for w, _, _, r in rows) / len(rows)


def snips(rows):
    return (sum(w * r for w, _, _, r in rows) / len(rows)) / (sum(w for w, *_ in rows) / len(rows))


def doubly_robust(rows):
    return sum(expected + w * (r - q) for w, q, expected, r in rows) / len(rows)


def error_of_mean(values):
    mean = sum(values) / len(values)
    return math.sqrt(sum((v - mean) ** 2 for v in values) / (len(values) - 1) / len(values))


def replayed(policy, arms, arm, reward):
    """Li et al. 2011, Algorithm 2: the rewards of the rows that match."""
    state, found = policy.start(), []
    for t in range(len(reward)):
        if policy.choose(state, arms[t]) == arm[t]:
            found.append(reward[t])
            policy.learn(state, arms[t], arm[t], reward[t])
    return found


def likelihood_interval(w, r, most, said=None, expected=None):
    """The set of values v whose likelihood ratio is within the quantile, by the primal's dual as Owen writes it: the
    most that Σ log(1 + b'c + s(w r - v)) reaches over multipliers for which it is positive at all possible rows."""
    from itertools import product

    from scipy.optimize import brentq, minimize
    from scipy.stats import t

    w, r, n = np.asarray(w), np.asarray(r), len(w)
    model = said is not None
    q, e = (np.asarray(said), np.asarray(expected)) if model else (np.zeros(n), np.zeros(n))

    def row(w, r, q, e, v):
        return np.array([w - 1.0, *([w * q - e] if model else []), w * r - v])

    ends = (e.min(), e.max())
    all_q = (min(q.min(), ends[0]), max(q.max(), ends[1]))
    possible = list(product((0.0, most), (0.0, 1.0), all_q, ends))

    def log_ratio(v, free):
        seen = np.array([row(*one, v) for one in zip(w, r, q, e, strict=True)])
        corners = np.array([row(*one, v) for one in possible])
        if free:  # any v is fine: its multiplier is 0
            seen, corners = seen[:, :-1], corners[:, :-1]
        scale = np.maximum(1.0, np.abs(corners).max(axis=1))
        held = {"type": "ineq", "fun": lambda b: (1.0 + corners @ b) / scale}
        found = minimize(
            lambda b: -np.log(np.maximum(1.0 + seen @ b, 1e-300)).sum(), np.zeros(seen.shape[1]), method="SLSQP",
            jac=lambda b: -(seen / np.maximum(1.0 + seen @ b, 1e-300)[:, None]).sum(axis=0), constraints=[held],
            options={"maxiter": 500, "ftol": 1e-13},
        )  # fmt: skip
        return -found.fun

    centre = float((w * r).sum() / w.sum())
    psi = e + w * (r - q) - np.mean(e + w * (r - q)) if model else w * (r - centre)
    alike = (psi**2).sum() ** 2 / (psi**4).sum()
    most_apart = t.ppf(0.975, max(alike - 1.0, 3.0)) ** 2 / 2.0 + log_ratio(centre, True)

    def over(v):
        return log_ratio(v, False) - most_apart

    inside = min(np.linspace(0.05, 0.95, 19), key=over)
    # At 0 and 1 themselves the ratio has no largest value, and the minimiser diverges.
    return brentq(over, 0.001, inside, xtol=1e-9), brentq(over, inside, 0.999, xtol=1e-9)


def capital(w, p, n, most):
    """The largest log capital against a mean weight of 1 (docs/math.md#weights), wager by wager and row by row."""
    shares = [0.95] + [0.5**k for k in range(1, 12)]
    players = [(0.5 / 12, b, math.inf) for b in shares]
    for limit in (0.8, 0.95, 1.0):
        largest = max([most] + [(m - 1) / (1.0 - q) if q < 1.0 else math.inf for q, m in zip(p, n, strict=True)
                                if q <= limit and m > 1])  # fmt: skip
        players += [(0.5 / 36, -b / max(largest - 1.0, 1.0), limit) for b in shares]
    money, best = [share for share, _, _ in players], 1.0
    for weight, q in zip(w, p, strict=True):
        for k, (_, bet, limit) in enumerate(players):
            counted = max(weight, 1.0) if q > limit else weight
            money[k] *= 1.0 + bet * (counted - 1.0)
        best = max(best, sum(money))
    return math.log(best)
