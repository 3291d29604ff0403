"""A stream's state over time, learned from the log in a second state.

The server keeps nothing for the dashboard while no page is open. A track starts at a snapshot and follows the log in a
thread, with the same calls as the server. So what it shows survives a restart, and it never touches the state that
decides.
"""

from __future__ import annotations

import itertools
from collections import deque
from typing import NamedTuple

import numpy as np

from driftwise.agent.drift import RECENT, Drift, Meter, reading
from driftwise.agent.replay import Lesson
from driftwise.kernels.point import Floats
from driftwise.ledger import LESSONS
from driftwise.service.core.fold import resume
from driftwise.service.core.setup import Setup
from driftwise.service.core.stream import SNAPSHOT_EVERY
from driftwise.service.dashboard.wording import decimal
from driftwise.service.stores.records import EraRow, RewardRow
from driftwise.service.stores.store import Store

EVERYTHING = "all since the start"
POINTS = 256
_SOME = 2_000  # rewards that a history should have
_FAR = SNAPSHOT_EVERY + _SOME  # a track that is further behind starts again at a snapshot
_AGAIN = 32  # rewards after which the meter is read again


class TrackPoint(NamedTuple):
    """The state after `seq` rewards: the θ in use, its effective observations, and a bank's weights."""

    seq: int
    tick: int
    theta: Floats
    effective: float
    weights: Floats | None


class Track:
    """The state of one generation at up to POINTS moments; `follow` brings it to the newest reward."""

    def __init__(self, store: Store, era: EraRow, setup: Setup, newest: int) -> None:
        self.era, self.setup = era, setup
        self.points: list[TrackPoint] = []
        self.recent: deque[Lesson] = deque(maxlen=RECENT)
        self._stride = 1
        self._begun: int | None = None  # the tick of the first decision that was learned from
        self._start(store, newest)
        for row in store.rewards(era.stream, max(era.first, era.base, self.fold.seq - RECENT), self.fold.seq):
            self._keep(row)
        self._stride = max(1, (newest - self.fold.seq) // (POINTS // 2))
        self._drift: tuple[int, Drift] | None = None

    def _start(self, store: Store, newest: int) -> None:
        """Start at a snapshot or at the beginning, so that there are some rewards to learn, but not too many."""
        found = store.snapshots(self.era.stream, self.era.number)
        known = [row.seq for row in found if self.era.base <= row.seq <= newest]
        if not self.era.base:
            known.append(self.era.first)
        near = [seq for seq in known if newest - seq <= _FAR]
        some = [seq for seq in near if newest - seq >= _SOME]
        start = max(some) if some else min(near) if near else max(known, default=newest)
        self.fold = resume(store, self.era, self.setup, upto=start)

    def follow(self, store: Store, newest: int) -> None:
        """Learn the new rewards, and record the path of the state."""
        if newest - self.fold.seq > _FAR:
            self._start(store, newest)
        if self._begun is None:
            lessons = (row.born for row in store.rewards(self.era.stream, self.era.first) if row.verdict in LESSONS)
            self._begun = next(lessons, None)
        rows = store.rewards(self.era.stream, self.fold.seq, newest)
        while stretch := list(itertools.islice(rows, self._stride)):
            self.fold.learn_rows(stretch)
            for row in stretch:
                self._keep(row)
            self._write()

    def _keep(self, row: RewardRow) -> None:
        if row.verdict in LESSONS and row.x is not None:
            x = np.frombuffer(row.x, dtype="<f8").astype(np.float64).reshape(1, -1, 1)
            self.recent.append((row.tick, row.born, x, row.value))

    def _write(self) -> None:
        point = self.now
        if self.points and point.seq - self.points[-1].seq < self._stride:
            return  # the end of the log: later rewards are seen with the next look
        self.points.append(point)
        if len(self.points) >= POINTS:
            self.points = self.points[1::2]
            self._stride *= 2

    @property
    def now(self) -> TrackPoint:
        """The newest state."""
        policy, state = self.fold.policy, self.fold.states.front
        weights = policy.weights(state)
        kept = None if weights is None else weights.copy()
        return TrackPoint(self.fold.seq, self.fold.tick, policy.theta(state), policy.worth(state), kept)

    @property
    def memory(self) -> float:
        """The length of the memory in use, in ticks."""
        return self.fold.policy.remembered(self.fold.states.front)

    def lasting(self, memory: float) -> str:
        """A memory in ticks, at most the time since the first reward was learned."""
        if self._begun is not None and memory >= self.fold.tick - self._begun:
            return EVERYTHING
        return f"{decimal(memory, 3)} ticks"

    @property
    def drift(self) -> Drift:
        """The drift meter. With one memory it predicts the last rewards again, which is not done for every reward."""
        wait = 1 if self.fold.policy.weighs else _AGAIN
        if self._drift is None or not 0 <= self.fold.seq - self._drift[0] < wait:
            weighed = [*self.points, self.now]
            history = [(point.tick, point.weights) for point in weighed if point.weights is not None]
            found = reading(
                self.fold.policy, self.fold.states.front, Meter(self.recent, history),
                self.setup.terms[:2], self.setup.clock().days,
            )  # fmt: skip
            self._drift = self.fold.seq, found
        return self._drift[1]

    @property
    def labels(self) -> list[str]:
        """The feature of each coefficient."""
        return labels_of(self.setup)


def labels_of(setup: Setup) -> list[str]:
    """Names of the features, or their numbers."""
    dim = setup.policy.dim
    return setup.features.names if setup.features is not None else [f"x{place}" for place in range(dim)]
