"""Numbers of streams for `/metrics`: recent rewards, the lift, shares of arms, delays.

The dashboard's thread reads them from the log, at most once in PAUSE seconds per stream for all scrapes together. So a
scrape delays no answer, and its cost does not grow with the log. The memory and the effective observations are read
from the state that decides.
"""

from __future__ import annotations

import math
import time
from typing import NamedTuple

import numpy as np

from driftwise.lift import Look
from driftwise.service.core.following import Comparisons, comparable
from driftwise.service.dashboard import reading
from driftwise.service.dashboard.live import LiveStream
from driftwise.service.stores.store import Store

PAUSE = 5.0
WINDOW = 2_000  # decisions that means, shares and delays are about


class Signal(NamedTuple):
    """A stream's numbers; NaN where there are none."""

    means: dict[str, float]  # by cohort
    shares: dict[str, float]  # by arm
    delays: tuple[float, float, float]  # median, 90% and 99%, in seconds
    look: Look | None


class Signals:
    """The newest numbers of each stream. Only the dashboard's thread calls `read`."""

    def __init__(self) -> None:
        self._compared = Comparisons()
        self._found: dict[int, tuple[float, Signal]] = {}

    def newest(self, stream: int) -> Signal | None:
        """The numbers that were read last."""
        found = self._found.get(stream)
        return None if found is None else found[1]

    def due(self, stream: int) -> bool:
        found = self._found.get(stream)
        return found is None or time.monotonic() - found[0] >= PAUSE

    def read(self, store: Store, one: LiveStream) -> None:
        """The numbers of a stream as it is now."""
        found = reading.newest(store, one.number, one.last, WINDOW)
        names, shares = reading.shares(found, 1)
        means = {}
        for cohort in sorted(set(found.cohort.tolist())):
            values = found.value[found.cohort == cohort]
            values = values[~np.isnan(values)]
            means[cohort] = float(values.mean()) if values.size else math.nan
        median, most, nearly_all = reading.delays(found)[1]
        told = Signal(
            means, dict(zip(names, shares[0].tolist(), strict=True)) if len(found) else {},
            (median, most, nearly_all), self.compare(store, one),
        )  # fmt: skip
        self._found[one.number] = time.monotonic(), told

    def compare(self, store: Store, one: LiveStream) -> Look | None:
        """The comparison of the policy with the units held back, since the generation began; None if no unit is held
        back."""
        if one.setup.body.mode != "holdback" or not comparable(one.steps):
            return None
        return self._compared.followed(store, one.era, one.setup, one.steps, one.state_seq).lift.look()
