"""Late lessons through learn, fold and a stream of the service, and loaded states, for each family and memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy as np

import driftwise as dw
from driftwise import research
from driftwise.service.core.fold import Fold
from driftwise.service.stores.records import AT_FIRST_LESSON, RewardRow
from golden import guard
from golden.seen import Case, Seen, click, ended
from golden.sets import DIM, LISTED

MEMORIES = {
    "keep": dw.Keep(), "fade": dw.Fade(0.05), "window": dw.Window(20), "window, small": dw.Window(20.5, capacity=15),
    "restart": dw.Restart(30),
}  # fmt: skip
FAMILIES: dict[str, tuple[str, dict[str, Any]]] = {
    "linear": ("LB-WeightUCB", {}), "linear, delta of time": ("LB-WeightUCB", {"delta": None}),
    "two matrices": ("D-LinUCB", {}), "two matrices, as published": ("D-LinUCB", {"two_matrix": "as-published"}),
    "posterior": ("LB-WeightUCB", {"radius": "posterior", "lam": None}),
    "posterior, told": ("LB-WeightUCB", {"radius": "posterior", "R": 0.5, "lam": 1.0}),
    "GLB": ("GLB-WeightUCB", {}), "GLB in one pass": ("GLB-WeightUCB", {"estimate": "one-pass"}),
    "SCB": ("SCB-WeightUCB", {}), "SCB in one pass": ("SCB-WeightUCB", {"estimate": "one-pass"}),
    "SC-D": ("SC-D-GLUCB", {}), "BVD": ("BVD-GLM-UCB", {}), "piecewise": ("SCB-PW-WeightUCB", {}),
    "OFULog": ("OFULog", {}), "Logistic-UCB-2": ("Logistic-UCB-2", {}), "linear Thompson": ("D-LinTS", {}),
    "a drawn multiplier": ("D-RandLinUCB", {}), "Thompson of clicks": ("D-GLM-TSL", {}),
    "bank": ("Bank+LB-WeightUCB", {"memories": (8.0, 64.0)}),
    "bank of SCB": ("Bank+SCB-WeightUCB", {"memories": (8.0, 64.0)}),
    "bank of GLB, exact": ("Bank+GLB-WeightUCB", {"memories": (8.0, 64.0), "estimate": "exact"}),
    "MASTER": ("MASTER+OFUL", {"n0": 2, "test_scale": 1e-3}), "MASTER of SCB": ("MASTER+LogUCB1", {"n0": 2}),
    "BOB": ("BOB+LB-WeightUCB", {"grid": True}), "BOB of SCB": ("BOB+SCB-WeightUCB", {"grid": True}),
}  # fmt: skip
ALONE: dict[str, Callable[[Any], Any]] = {
    "posterior of clicks": lambda memory: dw.PosteriorUCB(dim=DIM, memory=memory, horizon=100),
    "posterior of clicks, one pass": lambda memory: dw.PosteriorUCB(dim=DIM, memory=memory, estimate="one-pass"),
    "Auto": lambda memory: dw.make("Auto", dim=DIM),
    "Auto, clicks": lambda memory: dw.make("Auto", dim=DIM, link="logistic"),
    "Auto of one memory": lambda memory: dw.make("Auto", dim=DIM, memory=memory),
    "Auto of one memory, clicks": lambda memory: dw.make("Auto", dim=DIM, memory=memory, link="logistic"),
}


def learner(family: str, memory: str) -> Any:
    """A family with a memory; None if it refuses the memory."""
    try:
        if family in ALONE:
            return ALONE[family](MEMORIES[memory])
        name, fields = FAMILIES[family]
        if "grid" in fields:
            given: dict[str, Any] = {"grid": (MEMORIES[memory], type(MEMORIES[memory]).lasting(64.0))}
        elif name.startswith("Bank") and memory == "keep":
            given = {}
        else:
            given = {"memory": MEMORIES[memory]}
        made = dw.make(name, dim=DIM, horizon=100, **guard.KNOWN, **{**fields, **given})
        made.start()
        return made
    except dw.BadInput:
        return None


def lessons(policy: Any, count: int, seed: int) -> tuple[np.ndarray, ...]:
    """Vectors, rewards, ticks other than 1 and ages other than 0, some of them older than any memory here."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(count, DIM))
    rows /= np.maximum(1.0, np.sqrt((rows**2).sum(axis=1, keepdims=True)))
    rewards = (rng.random(count) < 0.4).astype(np.float64) if click(policy) else rng.normal(size=count)
    ticks = rng.choice([0.0, 0.5, 1.0, 2.5, 17.0], size=count)
    return rows, rewards, ticks, rng.choice([0.0, 0.7, 3.0, 12.0, 40.0], size=count)


def _late(policy: Any) -> Seen:
    """Lessons with ticks and ages through `learn`, time that passes, and scores in between."""
    state, arms = policy.start(seed=7), np.array(LISTED)
    found, numbers = [], []
    rows, rewards, ticks, ages = lessons(policy, 45, 3)
    for t in range(len(rows)):
        policy.learn(state, rows[t : t + 1], 0, float(rewards[t]), ticks=float(ticks[t]), age=float(ages[t]))
        if t % 6 == 5:
            policy.advance(state, float(ages[t] / 2.0))
        if t % 5 == 4:
            one, scores = policy.choose(state, arms, t), policy.scores(state, arms, t)
            found.append(int(one.arm))
            numbers += [one.score, *scores.mean, *scores.bonus]
    return ended(policy, state, found, numbers)


def _folded(policy: Any) -> Seen:
    """Many lessons in one call if the policy takes them so, otherwise one after the other."""
    state, each = policy.start(seed=7), policy.start(seed=7)
    rows, rewards, ticks, ages = lessons(policy, 60, 9)
    for t in range(len(rows)):
        policy.take(each, rows[t].reshape(1, -1, 1).copy(), float(rewards[t]), float(ticks[t]), float(ages[t]))
    if policy.folds:
        policy.fold(state, rows, rewards, ticks, ages)
        same = policy.canonical(state).to_bytes() == policy.canonical(each).to_bytes()
        return ended(policy, state, ["folds", same], [])
    return ended(policy, each, ["does not fold"], [])


def _vetted(policy: Any) -> Seen:
    """A state that is loaded, and which of its numbers, changed one at a time, are refused."""
    state, arms = policy.start(seed=7), np.array(LISTED)
    for row, reward, tick, age in zip(*lessons(policy, 25, 4), strict=True):
        policy.learn(state, row[None], 0, float(reward), ticks=float(tick), age=float(age))
    data = state.to_bytes()
    back = dw.State.from_bytes(data)
    fates: list[Any] = [back.to_bytes() == data, int(policy.choose(back, arms, 0).arm), len(data)]
    places = np.linspace(0, len(state.floats) - 1, 14).astype(int)
    spots: list[Any] = [("floats", at, bad) for at in places for bad in (np.nan, -1e300)]
    spots += [("ints", at, bad) for at in range(min(len(state.ints), 8)) for bad in (-1, 2**40)]
    for packed, at, bad in spots:
        wrong = dw.State.from_bytes(data)
        getattr(wrong, packed)[at] = bad
        try:
            policy.advance(wrong, 0.0)
        except (dw.BadInput, dw.NumericalError) as error:
            fates.append(type(error).__name__)
        else:
            fates.append("taken")
    return ended(policy, state, fates, [])


def _served(policy: Any, origin: int) -> Seen:
    """A stream's fold: all rows of its log at once, and the same rewards in groups that are published or dropped."""
    setup: Any = SimpleNamespace(policy=policy, body=SimpleNamespace(seed=7, epsilon=0.1))
    era: Any = SimpleNamespace(stream=1, number=1, first=0, origin=origin)
    rows, rewards, gaps, ages = lessons(policy, 40, 6)
    ticks = 1000 + np.cumsum(np.ceil(gaps)).astype(int)
    told = [
        RewardRow(1, t + 1, f"{t}", float(rewards[t]), int(ticks[t]), 0.0, "learned", t + 1,
                  int(max(ticks[t] - np.ceil(ages[t]), 1000)), rows[t].tobytes())
        for t in range(len(rows))
    ]  # fmt: skip
    read, live, found, numbers = Fold(era, setup), Fold(era, setup), [], []
    read.learn_rows(told)
    for t, row in enumerate(told):
        again = t == 21  # a group that could not be written
        if again:
            live.drop()
        for s in range(live.seq if again else t, t + 1):
            one = told[s]
            live.lesson(rows[s].reshape(1, -1, 1).copy(), one.value, one.tick, one.born)
            live.newest = one.seq
        if t % 4 == 3:
            live.publish()
            choice, propensity, _, explored = live.choose(dw.ArmSet(LISTED), row.tick + 2, t)
            found.append([int(choice.arm), explored])
            numbers += [choice.score, propensity]
    seen = ended(policy, read.states.front, [*found, read.seq, read.tick, live.seq, live.tick], numbers)
    return seen._replace(state=seen.state + read.snapshot_behind().data + live.digest().encode())


def cases() -> Iterator[Case]:
    for family in (*FAMILIES, *ALONE):
        for memory in MEMORIES:
            policy = learner(family, memory)
            if policy is None:
                yield f"learn: {family}, {memory}", lambda: Seen(["refused"], b"", b"", np.zeros(0))
                continue
            yield f"learn: {family}, {memory}", lambda p=policy: _late(p)
            yield f"fold: {family}, {memory}", lambda p=policy: _folded(p)
            yield f"read: {family}, {memory}", lambda p=policy: _vetted(p)
            repeats = policy.deterministic or isinstance(policy, research.Auto)  # looks are drawn by key
            drawn = research.Master | research.BanditOverBandit
            if repeats and not policy.stepped and not isinstance(policy, drawn):
                for origin, word in ((1000, "from a tick"), (AT_FIRST_LESSON, "from the first lesson")):
                    yield f"service: {family}, {memory}, {word}", lambda p=policy, o=origin: _served(p, o)
