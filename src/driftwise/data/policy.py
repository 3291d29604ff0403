"""A policy of the catalogue for a log, as the commands need it."""

from __future__ import annotations

from typing import Any

import numpy as np

from driftwise.errors import BadInput
from driftwise.policies.half_life import convert_memory
from driftwise.policies.memory import Fade, Keep
from driftwise.policies.names import catalogue, make
from driftwise.tables.logs import Log


def dim_of(log: Log) -> int:
    """The length of a log's vectors: those played, or all arms."""
    if log.dim is not None:
        return log.dim
    for batch in log.batches(["arms"], rows=1):
        if batch.arms is not None and len(batch.arms.values):
            return int(batch.arms.values.shape[1])
    raise BadInput("log", "neither x nor arms", "vectors to learn from", "see docs/logs.md for what a log holds")


def only_clicks(log: Log) -> bool:
    """Whether every reward of a log is 0 or 1."""
    rewards = (batch.reward for batch in log.batches(["reward"]))
    return all(one is not None and np.isin(one[~np.isnan(one)], (0.0, 1.0)).all() for one in rewards)


def named_policy(
    name: str, log: Log, half_life: float | None, L: float | None, keeps: bool = False, clicks: bool = False
) -> Any:
    """The policy of this name, with the log's dimension and its length as horizon. A half-life replaces its memory.
    Without one it keeps everything if `keeps`. Auto needs `clicks`; other names imply it. Auto with a half-life is the
    single memory that `Agent.for_clicks` and `for_values` use."""
    fields: dict[str, Any] = {"dim": dim_of(log)}
    needs = next((row["needs"] for row in catalogue() if row["name"] == name), ())
    if "horizon" in needs:
        fields["horizon"] = max(2, log.rows)
    if L is not None:
        fields["L"] = L
    memory = Keep() if half_life is None else Fade(convert_memory(half_life, "half_life", "forget"))
    if name == "Auto":
        if clicks:
            fields["link"] = "logistic"
        return make(name, **fields, memory=None if half_life is None else memory)
    if half_life is not None or keeps:
        fields["memory"] = memory
    return make(name, **fields)
