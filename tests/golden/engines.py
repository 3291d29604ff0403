"""One trial by every engine that can be forced, several at a time, and live calls on large sets."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import driftwise as dw
from driftwise.policies import engines
from golden import guard
from golden.seen import Case, Seen, ended

LINEAR = {
    "LB-WeightUCB": {}, "OFUL": {}, "RestartUCB": {"memory": dw.Restart(25)}, "SW-UCB": {"memory": dw.Window(20)},
    "LB-WeightUCB with a window": {"memory": dw.Window(20.5, capacity=15)}, "D-LinUCB": {},
    "LB-WeightUCB, delta of time": {"delta": None},
    "LB-WeightUCB, posterior": {"radius": "posterior", "lam": None},
}  # fmt: skip
OTHERS = {
    "GLB-WeightUCB": {}, "SCB-WeightUCB": {}, "SCB-WeightUCB, one pass": {"estimate": "one-pass"}, "SC-D-GLUCB": {},
    "BVD-GLM-UCB": {}, "D-LinTS": {}, "D-GLM-TSL": {}, "Bank+LB-WeightUCB": {}, "Bank+SCB-WeightUCB": {},
    "MASTER+OFUL": {"n0": 2, "test_scale": 1e-3}, "MASTER+LogUCB1": {"n0": 2, "test_scale": 1e-4}, "BOB+SW-UCB": {},
    "BOB+LB-WeightUCB": {}, "BOB+RestartUCB": {}, "BOB+GLB-WeightUCB": {}, "Auto": {},
    "Auto, clicks": {"link": "logistic"},
}  # fmt: skip
# Sizes by the engine that plays them by default: plain below 8 arms, tiles, and lazy from d = 12 and n·d² = 20,000 on.
SIZES = ((2, 6), (2, 50), (5, 30), (12, 150), (16, 200), (40, 60), (8, 1500))
SHORT = 48


@contextmanager
def engine(name: str | None) -> Iterator[None]:
    """Plain, tiled or lazy wherever it fits; `alone` plays no trials eight at a time; None is the default."""
    with engines.forced(None, without=("eight",)) if name == "alone" else engines.forced(name):
        yield


def named(name: str, dim: int, rounds: int, fields: dict[str, Any]) -> Any:
    """A row of the catalogue with fields; the text after a comma or `with` is our own name for them."""
    return dw.make(name.split(",")[0].split(" with")[0], dim=dim, horizon=rounds, **guard.KNOWN, **fields)


def place(policy: Any, dim: int, arms: int, rounds: int, fresh: bool = False) -> Any:
    link = getattr(getattr(policy, "base", policy), "link", "identity")
    reward: Any = {"identity": "gaussian", "poisson": "poisson"}.get(link, "bernoulli")
    return dw.worlds.Jumps(dim=dim, arms=arms, horizon=rounds, jumps=2, reward=reward, link=link, norm="clip",
                           noise=0.5, fresh=fresh)  # fmt: skip


def _played(make: Callable[[], Any], dim: int, arms: int, fresh: bool, forced: str | None) -> Seen:
    policy = make()
    with engine(forced):
        chosen, numbers, state = guard.played(policy, place(policy, dim, arms, SHORT, fresh))
    return ended(policy, state, chosen, numbers)


def _simulated(make: Callable[[], Any], dim: int, arms: int, trials: int, forced: str | None) -> Seen:
    policy = make()
    with engine(forced):
        result = dw.simulate({"it": policy}, place(policy, dim, arms, SHORT), trials=trials, jobs=1, progress=False)
    regret = result.regret["it"]
    return Seen(result.arms["it"].tolist(), regret.tobytes(), b"", regret[:, -1].copy())


def _lived(make: Callable[[], Any], dim: int, arms: int) -> Seen:
    policy = make()
    chosen, numbers, state = guard.lived(policy, place(policy, dim, arms, SHORT), SHORT)
    return ended(policy, state, chosen, numbers)


def cases() -> Iterator[Case]:

    def making(name: str, dim: int, fields: dict[str, Any]) -> Callable[[], Any]:
        return lambda: named(name, dim, SHORT, fields)

    for dim, arms in SIZES:
        for name, fields in (LINEAR | OTHERS).items():
            if name in OTHERS and (dim, arms) not in ((2, 50), (12, 150)):
                continue
            make = making(name, dim, fields)
            for forced in (None, "plain", "tiled", "lazy") if name in LINEAR else (None,):
                for fresh in (False, True) if (dim, arms) in ((2, 50), (16, 200)) else (False,):
                    key = f"engine: {name}, ({dim}, {arms}){', fresh' if fresh else ''}, {forced or 'as it comes'}"
                    yield key, lambda m=make, d=dim, n=arms, f=fresh, e=forced: _played(m, d, n, f, e)
            if name in LINEAR and arms * dim**2 >= 20_000:
                yield f"engine: {name}, ({dim}, {arms}), live", lambda m=make, d=dim, n=arms: _lived(m, d, n)
    for dim, arms in ((1, 9), (2, 50), (5, 30), (16, 33), (21, 40)):
        for name in ("LB-WeightUCB", "OFUL", "RestartUCB", "SW-UCB", "D-LinUCB", "LB-WeightUCB, posterior"):
            make = making(name, dim, LINEAR[name])
            for trials, forced in ((8, None), (11, None), (5, None), (8, "alone")):
                key = f"engine: {name}, ({dim}, {arms}), {trials} trials{', one by one' if forced else ''}"
                yield key, lambda m=make, d=dim, n=arms, t=trials, e=forced: _simulated(m, d, n, t, e)
