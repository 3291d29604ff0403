"""Checks of a policy's arguments: its numbers, rewards and ticks (arms.py checks arms)."""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

from driftwise._internal.elementary import log
from driftwise._internal.validate import keep_whole, one_of, real
from driftwise.errors import BadInput
from driftwise.policies.memory import checked_memory
from driftwise.policies.questions import MOST_REWARD
from driftwise.policies.vetting import LATEST
from driftwise.theory.radius import uniform_log


def checked_reward(reward: Any, low: float, high: float) -> float:
    """A reward as a float; a click may be a boolean."""
    way_out = "rescale it, or pass the largest reward as m" if high < MOST_REWARD else "leave out a lost reward"
    number = float(reward) if isinstance(reward, (bool, np.bool_)) else reward
    return real("reward", number, low, high, way_out=way_out)


def checked_ticks(ticks: Any) -> float:
    """A span of time in ticks."""
    return real("ticks", ticks, 0.0, LATEST, way_out="time does not run backwards, nor past 2^53 ticks")


def checked_age(age: Any) -> float:
    """The age of a choice."""
    return real("age", age, 0.0, way_out="a reward is never older than its choice: pass now - decided")


def check_clock(clock: float, ticks: float) -> None:
    """Refuse a time that a double cannot count exactly."""
    if not clock + ticks <= LATEST:
        raise BadInput("ticks", ticks, "a clock that stays below 2^53 ticks", "count time in larger ticks")


def log_confidence(policy: Any, more: float = 0.0) -> float:
    """The entry of δ in the table (kernels/linear.py, `confidence`): log(1/δ), or log(T/δ) with uniform=True.

    Without a horizon uniform=True uses the share δ/(2t(1+log t)²) at round t. `more` is added to log(1/δ).
    """
    if policy.delta is None:
        return -1.0
    log_delta = more - log(policy.delta)
    if not policy.uniform:
        return log_delta
    return uniform_log(log_delta, 1.0, float(policy.horizon)) if policy.horizon else -2.0 - log_delta


def check_uniform(policy: Any) -> None:
    """Check that uniform=True has a δ to divide."""
    one_of("uniform", policy.uniform, [True, False])
    if policy.uniform and policy.delta is None:
        raise BadInput("delta", None, "a number in (0, 1), which uniform=True shares out over rounds", "pass delta=")


def check_index(policy: Any, untold: tuple[str, ...] = ()) -> None:
    """Check the numbers that every index shares: dim, memory, lam, delta, S, L, exploration. Those in `untold` may be
    None.
    """
    keep_whole(policy, "dim", 1, "pass the number of features of an arm")
    checked_memory(policy.memory)
    if not ("lam" in untold and policy.lam is None):
        real("lam", policy.lam, 0.0, low_open=True, way_out="pass a positive ridge; dim is Theorem 1's")
    if policy.delta is not None:
        real("delta", policy.delta, 0.0, 1.0, low_open=True, high_open=True, way_out="pass delta=1/horizon")
    for name in ("S", "L"):
        if name in untold and getattr(policy, name) is None:
            continue
        real(name, getattr(policy, name), 0.0, low_open=True, way_out="pass the largest norm of θ (S) and x (L)")
    real("exploration", policy.exploration, 0.0, way_out="pass 1 for the theorem's bonus, less for a bolder policy")


def tell(message: str) -> None:
    """Warn at the first stack frame outside driftwise."""
    frame, level = sys._getframe(1), 2
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("driftwise."):
        frame, level = frame.f_back, level + 1
    warnings.warn(message, RuntimeWarning, stacklevel=level)
