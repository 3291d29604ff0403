"""Agents by clock, memory and policy: they play, are explained, saved and loaded, merged, and learn logs."""

from __future__ import annotations

import dataclasses
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import driftwise as dw
from golden import guard
from golden.seen import Case, Seen, click, digest, ended, sample, sine
from golden.sets import DIM, LISTED, regions, searchers

BEGUN = 1.8e9


def agents() -> dict[str, Callable[[], dw.Agent]]:
    """Agents by clock, memory and policy; on the wall clock a minute passes from decision to decision."""
    def linear(memory: Any, **options: Any) -> dw.Agent:
        policy = dw.LinearUCB(dim=DIM, memory=memory, lam=1.0, delta=0.1)
        return dw.Agent(policy, rewards=(-3.0, 3.0), seed=4, **options)

    def of(name: str, fields: dict[str, Any], **options: Any) -> dw.Agent:
        rewards = (0.0, 1.0) if any(word in name for word in ("GLB", "SCB", "Log")) else (-3.0, 3.0)
        policy = dw.make(name, dim=DIM, horizon=100, **guard.KNOWN, **fields)
        return dw.Agent(policy, rewards=rewards, seed=4, **options)

    expires: dict[str, Any] = {"epsilon": 0.2, "expire_after": 12, "default_reward": 0.0, "max_open": 9}
    return {
        "values": lambda: dw.Agent.for_values(DIM, -3.0, 3.0, seed=4),
        "clicks": lambda: dw.Agent.for_clicks(DIM, seed=4, epsilon=0.1),
        "values, wall": lambda: dw.Agent.for_values(DIM, -3.0, 3.0, clock="wall", tick="1m", seed=4),
        "clicks, wall": lambda: dw.Agent.for_clicks(DIM, clock="wall", tick="1m", seed=4, expire_after="25m"),
        "values, half-life": lambda: dw.Agent.for_values(DIM, -3.0, 3.0, half_life=20, seed=4, **expires),
        "clicks, half-life": lambda: dw.Agent.for_clicks(DIM, half_life=20, click_rate=0.3, seed=4, **expires),
        "values, half-life in time": lambda: dw.Agent.for_values(DIM, -3.0, 3.0, half_life="20m", seed=4),
        "clicks, half-life in time": lambda: dw.Agent.for_clicks(DIM, half_life="20m", seed=4),
        "keep": lambda: linear(dw.Keep()), "fade": lambda: linear(dw.Fade(0.05), **expires),
        "restart": lambda: linear(dw.Restart(15)), "window": lambda: linear(dw.Window(12)),
        "fade, rewards": lambda: linear(dw.Fade(0.05), clock="rewards"),
        "fade, wall": lambda: linear(dw.Fade("20m"), epsilon=0.2), "restart, wall": lambda: linear(dw.Restart("15m")),
        "window, wall": lambda: linear(dw.Window("12m", capacity=40)),
        "keep, wall": lambda: linear(dw.Keep(), clock="wall"),
        "posterior": lambda: dw.Agent(searchers()["posterior, linear"], rewards=(-3.0, 3.0), seed=4),
        "two matrices": lambda: of("D-LinUCB", {}), "linear Thompson": lambda: of("D-LinTS", {}),
        "GLB, restart": lambda: of("GLB-RestartUCB", {"memory": dw.Restart(15)}),
        "GLB, window": lambda: of("GLB-SW", {"memory": dw.Window(12)}),
        "SCB, fade, wall": lambda: of("SCB-WeightUCB", {"memory": dw.Fade("20m"), "capacity": 60}),
        "SCB in one pass, wall": lambda: of("SCB-WeightUCB", {"memory": dw.Fade("20m"), "estimate": "one-pass"}),
        "bank": lambda: of("Bank+LB-WeightUCB", {}), "bank of SCB": lambda: of("Bank+SCB-WeightUCB", {}),
        "MASTER": lambda: of("MASTER+OFUL", {"n0": 2, "test_scale": 1e-3}), "BOB": lambda: of("BOB+LB-WeightUCB", {}),
    }  # fmt: skip


def _live(agent: dw.Agent, arms: Any, first: int, last: int) -> tuple[list[Any], list[float]]:
    """Decisions with rewards that come late, in bursts or never, or cancelled; MASTER and BOB get rewards at once."""
    alone = isinstance(agent.policy, (dw.research.Master, dw.research.BanditOverBandit))
    clicks, found, numbers, waiting = click(agent.policy), [], [], []
    for t in range(first, last):
        one = agent.decide(arms, id=f"visit {t}", now=BEGUN + 60.0 * t)
        found.append([one.arm, one.explored, one.born])
        numbers += [one.score, one.mean, one.bonus, one.propensity, *([] if one.x is None else one.x)]
        value = float((t * 7 + t // 3) % 3 == 0) if clicks else sine(t) + 0.1 * one.arm
        waiting.append((one.id, value))
        if t % 7 == 3:
            agent.cancel(waiting.pop()[0])
        elif t % 7 == 5 and not alone:
            waiting.pop()
        if alone or t % 4 == 1:
            found += [str(agent.reward(id, value, now=BEGUN + 60.0 * t + 20.0)) for id, value in waiting]
            waiting.clear()
    return found, numbers


def _explained(agent: dw.Agent, arms: Any) -> list[float]:
    """The numbers of explain()."""
    one = agent.explain(arms, now=BEGUN + 60.0 * 50)
    numbers = [*one.mean, *one.bonus, *one.score, *one.theta, one.effective, one.memory, one.chosen, one.days or 0.0]
    return [*map(float, numbers), *(float(pull) for _, pull in one.pulls)]


def _floats(data: Any) -> list[float]:
    """All numbers in plain data, in order."""
    if isinstance(data, dict):
        data = list(data.values())
    if isinstance(data, (list, tuple, np.ndarray)):
        return [number for one in data for number in _floats(one)]
    return [float(data)] if isinstance(data, (int, float, np.number)) else []


def _lifetime(make: Callable[[], dw.Agent], region: Any = None) -> Seen:
    """An agent that plays, is explained, saved and loaded, and continues. What drift() predicts again BLAS and NumPy
    round, so that it is kept among the sums."""
    arms = np.array(LISTED) if region is None else region
    with mock.patch("os.urandom", lambda count: b"\7" * count):
        agent = make()
        found, numbers = _live(agent, arms, 0, 40)
        shown: list[float] = []
        if region is None:
            numbers += _explained(agent, arms)
            drift = agent.drift()
            (numbers if drift.advantage is None else shown).extend(_floats(dataclasses.asdict(drift)))
        data = agent.to_bytes()
        found.append([digest(data), agent.counts["open"]])
        back = dw.Agent.from_bytes(data)
        more, others = _live(back, arms, 50, 60)
    seen = ended(back.policy, back.state, found[:-1] + more, numbers + others)
    snapshot = json.dumps(found[-1]).encode() + agent.policy.canonical(agent.state).to_bytes()
    return seen._replace(state=snapshot + seen.state, sums=np.concatenate([seen.sums, sample(shown)]))


def _merged(make: Callable[[], dw.Agent]) -> Seen:
    """Two agents that learned separately, merged."""
    one, other = make(), make()
    _live(one, np.array(LISTED), 0, 17)
    _live(other, np.array(LISTED), 3, 30)
    one.merge(other)
    found, numbers = _live(one, np.array(LISTED), 40, 50)
    return ended(one.policy, one.state, found, numbers)


def _logged(make: Callable[[], dw.Agent], add: bool = False) -> Seen:
    """An agent that learns the log of another, which has one part or two; or the sums of both parts, added."""
    arms = np.array(LISTED)
    with tempfile.TemporaryDirectory() as folder:
        paths = [Path(folder) / name for name in ("early", "late")]
        writer = make()
        for path, (first, last) in zip(paths, ((0, 21), (30, 50)), strict=True):
            with writer.log_to(path, arms=True, format="jsonl"):
                _live(writer, arms, first, last)
        if add:
            parts = [dw.sums(dw.read_log(path), writer.policy) for path in paths]
            return ended(writer.policy, (parts[0] + parts[1]).state(writer.policy), [], [])
        reader = make()
        learned = [reader.learn_log(path, gaps=True) for path in paths]
    return ended(reader.policy, reader.state, learned, [])


def cases() -> Iterator[Case]:
    made = agents()
    for name, make in made.items():
        yield f"agent: {name}", lambda m=make: _lifetime(m)
    for name in ("values", "clicks", "values, half-life", "clicks, half-life in time", "fade, wall", "bank of SCB"):
        still = name in ("values", "clicks, half-life in time")  # without random draws, which a union does not accept
        for kind in ("ball", "polynomial", "union") if still else ("ball", "polynomial"):
            region = regions()[kind]
            yield f"agent: {name}, on a {kind}", lambda m=made[name], r=region: _lifetime(m, r)
    for name in ("keep", "keep, wall", "fade, wall", "SCB, fade, wall"):
        yield f"merge: {name}", lambda m=made[name]: _merged(m)
    logged = ("values", "clicks", "fade", "fade, wall", "window", "restart, wall", "SCB in one pass, wall")
    for name in (*logged, "MASTER", "bank"):
        yield f"log: {name}", lambda m=made[name]: _logged(m)
    for name in ("keep", "fade", "two matrices"):
        yield f"sums: {name}", lambda m=made[name]: _logged(m, add=True)
