"""Kernels compiled or loaded before a request needs them. Compiling takes seconds, so it runs in threads."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np

from driftwise._internal.python_first import compile_at_once
from driftwise.agent.choosing import Chooser
from driftwise.policies.arms import ArmSet
from driftwise.policies.base import Compiled

_MOST_WAIT = 0.5  # seconds that a stopping server waits for work in threads
_warm: set[str] = set()  # digests of policies whose kernels are in this process


def is_warm(policy: Compiled) -> bool:
    """Whether this process has run all kernels of a policy."""
    return policy.digest in _warm


def warm(policy: Compiled, value: float) -> None:
    """Run every kernel that a stream's requests, its state and its pages need, on a state that is discarded."""
    if is_warm(policy):
        return
    compile_at_once()
    state, few = policy.start(), ArmSet(np.zeros((2, policy.dim)))
    many = policy.many_arms  # from this number of arms on another kernel scores them
    for arms in (few, ArmSet(np.zeros((int(np.ceil(many)), policy.dim)))) if np.isfinite(many) else (few,):
        for epsilon in (0.0, 0.5):
            Chooser(policy, epsilon, 0).choose(state, arms, None, 1)
        policy.scores(state, arms, None if policy.deterministic else 1)
    policy.take(state, np.zeros((1, policy.dim, 1)), value, 1.0, 0.0)
    if policy.folds:
        policy.fold(state, np.zeros((2, policy.dim)), np.full(2, value), np.ones(2), np.zeros(2))
    policy.advance(state, 1.0)
    policy.renew(policy.start(), state)
    policy.theta(state)
    _warm.add(policy.digest)


def end_soon(pool: ThreadPoolExecutor) -> bool:
    """End a pool of threads; returns whether it has ended. A compile cannot be stopped and is left running."""
    pool.shutdown(wait=False, cancel_futures=True)
    waiting = threading.Thread(target=pool.shutdown, daemon=True)
    waiting.start()
    waiting.join(_MOST_WAIT)
    return not waiting.is_alive()
