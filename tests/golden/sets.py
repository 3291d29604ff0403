"""Choices from every kind of continuous set, by every index and adaptation that can search it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

import driftwise as dw
from golden import guard
from golden.seen import Case, Seen, click, ended, fused

DIM = 3
SHAPE = ((0.8, 0.1, 0.0), (0.1, 0.5, -0.1), (0.0, -0.1, 0.3))
LISTED = [[0.9, 0.1, 0.2], [-0.5, 0.5, 0.4], [0.1, -0.8, 0.3], [0.0, 0.0, -1.0]]


def _own(numbers: Any) -> Any:
    numbers = np.asarray(numbers)
    return np.stack([np.cos(numbers), np.sin(numbers), numbers / 4.0], axis=1) / 2.0


def regions() -> dict[str, Any]:
    """Every kind of continuous set."""
    return {
        "ball": dw.Ball(DIM, 0.9), "ellipsoid": dw.Ellipsoid(SHAPE), "box": dw.Box([-0.5, -0.4, 0.0], [0.5, 0.6, 0.5]),
        "box, not certified": dw.Box([-0.5, -0.4, 0.0], [0.5, 0.6, 0.5], certify=False),
        "polynomial": dw.Curve(dw.Polynomial(2), 1.0, 9.0), "Fourier": dw.Curve(dw.Fourier(1), 0.0, 24.0),
        "spline": dw.Curve(dw.Spline(2, degree=1), 0.0, 1.0),
        "curve, own": dw.Curve(_own, 0.0, 3.0, bend=0.6, certify=False),
        "union": dw.Union(dw.Ball(DIM, 0.4), LISTED, dw.Box([-0.3] * 3, [0.3] * 3, certify=False)),
    }  # fmt: skip


def searchers() -> dict[str, Any]:
    """The policies that search a continuous set: every index, every adaptation."""
    named = ("LB-WeightUCB", "D-LinUCB", "SW-UCB", "RestartUCB", "GLB-WeightUCB", "SCB-WeightUCB", "SC-D-GLUCB",
             "BVD-GLM-UCB", "D-LinTS", "D-RandLinUCB", "D-GLM-TSL", "Bank+LB-WeightUCB", "Bank+SCB-WeightUCB",
             "MASTER+OFUL", "MASTER+LogUCB1", "BOB+LB-WeightUCB", "BOB+SCB-WeightUCB", "Auto")  # fmt: skip
    known = {"dim": DIM, "horizon": 100, **guard.KNOWN}
    made = {name: dw.make(name, **known) for name in named}
    made["D-LinUCB as published"] = dw.make("D-LinUCB", **known, two_matrix="as-published")
    made["D-RandLinUCB, optimistic"] = dw.make("D-RandLinUCB", **known, optimistic=True)
    made["SCB in one pass"] = dw.make("SCB-WeightUCB", **known, estimate="one-pass")
    made["GLB with a probit link"] = dw.make("GLB-WeightUCB", **known, link="probit")
    made["posterior, linear"] = dw.LinearUCB(dim=DIM, memory=dw.Fade(0.02), radius="posterior")
    made["Auto of one memory"] = dw.make("Auto", dim=DIM, memory=dw.Fade(0.02))
    made["posterior, clicks"] = dw.PosteriorUCB(dim=DIM, memory=dw.Fade(0.02))
    made["Auto, clicks"] = dw.make("Auto", dim=DIM, link="logistic")
    made["a bank of two matrices"] = dw.research.FadeBank(
        base=dw.LinearUCB(dim=DIM, memory=dw.Keep(), lam=1.0, delta=0.01, two_matrix="correct"), memories=(8.0, 64.0)
    )
    return made


def _searched(policy: Any, region: Any, rounds: int = 8) -> Seen:
    """Choices from a set, each with a lesson: points, scores, gaps; a refusal is a record too."""
    rng, theta = np.random.default_rng(5), np.array([0.6, -0.5, 0.4])
    state, found, numbers, shown = policy.start(seed=7), [], [], []
    for t in range(rounds):
        try:
            one = policy.choose(state, region, t)
        except dw.BadInput:
            found.append("refused")
            break
        numbers += [*one.x, one.score, one.mean, one.bonus, one.gap, -1.0 if one.number is None else one.number]
        shown.append(one.number is not None)
        mean = fused(one.x, theta)
        reward = float(rng.random() < 0.5 + 0.4 * np.tanh(mean)) if click(policy) else mean + 0.3 * float(rng.normal())
        policy.learn(state, region, one.x, reward, ticks=(1.0, 0.0, 2.5)[t % 3], age=(0.0, 1.5)[t % 2])
    return ended(policy, state, [*found, *shown], numbers)


def cases() -> Iterator[Case]:
    made = searchers()
    for kind, region in regions().items():
        for name, policy in made.items():
            yield f"set: {kind}, {name}", lambda p=policy, r=region: _searched(p, r)
