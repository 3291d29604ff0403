"""How often the intervals of `dw.evaluate` cover, and how wide they are, on simulated logs whose truth is known.

A cell is (arms, exploration, rows). Worlds A and B were looked at while the intervals were made; C to G were looked at
once, afterwards. `answers` is the share of logs that are not "cannot tell", `cover` the share of answers that hold the
truth, `width` the median width over that of the normal interval with the true variance, of logs with at least 200
effective rows ("wide": how many those are).
"""

from __future__ import annotations

import math

import numpy as np

from driftwise.data.estimate import RowTerms, estimates

ARMS, EXPLORES, ROWS = (4, 20, 100, 500), (0.05, 0.2, "Thompson"), (500, 5000)
CONTEXTS, DRAWS = 40, 1000
WORLDS = {
    "A": {"reward": (2, 5), "agree": 0.3},
    "B": {"reward": (2, 5), "agree": 0.8},
    "C": {"reward": (1, 19), "agree": 0.5},
    "D": {"reward": (2, 3), "agree": 0.5, "epsilon": 0.1, "smooth": True},
    "E": {"reward": (8, 2), "agree": 0.0},
    "F": {"reward": (2, 5), "agree": 0.3, "samples": True},
    "G": {"reward": (1, 19), "agree": 0.9},
}


def softmax(means, spread):
    """The shares of comparable arms in Thompson sampling with about this spread."""
    shares = np.exp((means - means.max(axis=1, keepdims=True)) / (0.78 * spread))
    return shares / shares.sum(axis=1, keepdims=True)


def policies(rng, means, explore, world):
    """Shares (contexts, arms) of the policy that logs and of the one that is evaluated."""
    count, arms = means.shape
    every = np.arange(count)
    noisy = [(means + 0.15 * rng.standard_normal(means.shape)) for _ in range(2)]
    if explore == "Thompson":
        logs = 0.999 * softmax(means + 0.1 * rng.standard_normal(means.shape), 0.1) + 0.001 / arms
    else:
        logs = np.full((count, arms), explore / arms)
        logs[every, noisy[0].argmax(axis=1)] += 1.0 - explore
    if world.get("samples") and explore == "Thompson":
        return logs, softmax(means + 0.1 * rng.standard_normal(means.shape), 0.1)
    epsilon = world.get("epsilon", 0.0)
    asked = np.full((count, arms), epsilon / arms)
    agree = rng.random(count) < world["agree"]
    asked[every, np.where(agree, logs.argmax(axis=1), noisy[1].argmax(axis=1))] += 1.0 - epsilon
    return logs, asked


def log_of_world(rng, arms, explore, rows, world):
    """The terms of a log with a model of middling quality, the truth, and the true variance of w r."""
    means = rng.beta(*world["reward"], (CONTEXTS, arms))
    logs, asked = policies(rng, means, explore, world)
    x = rng.integers(0, CONTEXTS, rows)
    sums = np.cumsum(logs, axis=1)
    ladder = (sums / sums[:, -1:] + np.arange(CONTEXTS)[:, None]).ravel()
    arm = np.minimum(np.searchsorted(ladder, x + rng.random(rows) * (1.0 - 1e-12)) - x * arms, arms - 1)
    p = logs[x, arm]
    counted = (1 + rng.binomial(DRAWS - 1, p)) / DRAWS if explore == "Thompson" else p
    if world.get("smooth"):
        reward = rng.beta(4.0 * means[x, arm] + 1e-3, 4.0 * (1.0 - means[x, arm]) + 1e-3)
        squares = means * (1.0 - means) / 5.0 + means**2
    else:
        reward, squares = (rng.random(rows) < means[x, arm]).astype(np.float64), means
    said = np.clip(0.3 + 0.7 * (means - 0.3) + 0.1 * rng.standard_normal(means.shape), 0.0, 1.0)
    most = math.inf if explore == "Thompson" else arms / (p * arms).min()
    terms = RowTerms(reward, asked[x, arm] / counted, said[x, arm], (asked * said).sum(axis=1)[x])
    truth = (asked * means).sum(axis=1).mean()
    variance = (asked**2 / logs * squares).sum(axis=1).mean() - truth**2
    return terms.within((0.0, 1.0), most, None), truth, variance


def cell(arms, explore, rows, logs, worlds, names=("DR", "SNIPS")):
    """For every log and estimate: answered, covered, width over the normal one's, effective rows."""
    found = {name: [] for name in names}
    for number in range(logs):
        world = worlds[number % len(worlds)]
        rng = np.random.default_rng([ord(world), number, arms, rows, int(explore == "Thompson" or explore * 100)])
        terms, truth, variance = log_of_world(rng, arms, explore, rows, WORLDS[world])
        normal = 2.0 * 1.959964 * math.sqrt(variance / rows)
        for name, one in estimates(terms, names).items():
            inside = one.low <= truth <= one.high
            found[name].append((one.reason is None, inside, (one.high - one.low) / normal, one.effective))
    return {name: np.array(rows, dtype=np.float64) for name, rows in found.items()}


def summary(found):
    """Share of answers, their coverage, how many logs have 200 effective rows, their answers and median width."""
    answered, wide = found[:, 0] > 0, found[:, 3] >= 200.0
    cover = found[answered, 1].mean() if answered.any() else math.nan
    answers, width = (found[wide, 0].mean(), np.median(found[wide, 2])) if wide.any() else (math.nan, math.nan)
    return answered.mean(), cover, wide.mean(), answers, width
