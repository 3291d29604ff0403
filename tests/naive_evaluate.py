"""The estimators once more, a row at a time and by the definitions that obp's have, with a policy of a few lines."""

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


class Ranking(Greedy):
    """The same, which says what it thinks of every arm."""

    def scores(self, state, arms):
        from driftwise import Scores

        mean = self.estimate(state, arms)
        return Scores(mean, np.zeros(len(mean)))


def walk(policy, arms, arm, propensity, reward, epsilon, born=None, paid=None):
    """Per row: the weight, q̂ of the logged arm, and what q̂ expects of the policy; lessons when they had come."""
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
