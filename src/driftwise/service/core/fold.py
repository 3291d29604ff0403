"""A stream's state: what its learned rewards give in the order of their numbers, computed by the agent's own core.

The rewards of a group are learned on a second state, the pending one. `publish` swaps the two states when the group is
on disk, and `drop` discards the group's rewards if it could not be written. So decisions see committed rewards only.
"""

from __future__ import annotations

import gc
import hashlib
import itertools
from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import numpy as np

from driftwise.agent.choosing import Chooser, Picked
from driftwise.agent.states import States, shown_at, start_clock
from driftwise.errors import BadInput
from driftwise.kernels.point import Floats
from driftwise.ledger import LESSONS, Verdict
from driftwise.policies.arms import ArmSet
from driftwise.policies.base import Compiled
from driftwise.policies.state import State
from driftwise.service.core.offers import FREE, Limits
from driftwise.service.core.setup import Setup
from driftwise.service.stores.records import AT_FIRST_LESSON, DigestRow, EraRow, RewardRow, SnapshotRow
from driftwise.service.stores.store import Store

EVERY = 1_000  # rewards between two digests
_FEW = 64  # at most so many rewards are learned twice; with more, the state is copied


def digest(policy: Compiled, state: State) -> str:
    """The digest of a state. Equal states have equal digests."""
    return hashlib.sha256(policy.canonical(state).to_bytes()).hexdigest()


class Fold:
    """The state of one generation, published after `seq` rewards, and the pending state with the rewards of the current
    group."""

    def __init__(self, era: EraRow, setup: Setup, state: State | None = None, seq: int | None = None) -> None:
        policy, seed = setup.policy, setup.body.seed
        self.era, self.policy = era, policy
        zero = None if era.origin == AT_FIRST_LESSON else era.origin
        self.states = States(policy, policy.start(seed) if state is None else state, zero)
        self.chooser = Chooser(policy, setup.body.epsilon, seed)
        self.seq = self.newest = era.first if seq is None else seq
        self._tick, self._zero = self.states.tick, zero  # of the pending state
        self._group: list[tuple[Floats, float, float, float]] = []

    @property
    def tick(self) -> int:
        """The tick of the published state."""
        return self.states.tick

    def choose(self, arms: ArmSet, upon: int, seq: int, limits: Limits = FREE) -> Picked:
        """The choice of decision number `seq` on the published state, advanced to the tick `upon`."""
        if limits is FREE:
            return self.chooser.choose(self.states.at(upon), arms, None, seq)
        found = self.chooser.choose(self.states.at(upon), limits.among(arms), limits.costs, seq)
        return found[0]._replace(arm=limits.arm(found[0].arm)), *found[1:]

    def lesson(self, x: Floats, value: float, tick: int, born: int) -> None:
        """Learn the next reward on the pending state. If that fails, nothing is changed."""
        since, zero = (born, born) if self._zero is None else (self._tick, self._zero)
        taken = (x, value, float(tick - since), float(tick - born))
        if self._zero is None:
            start_clock(self.policy, self.states.back, zero)
        try:
            self.policy.take(self.states.back, *taken)
        except BaseException:
            if self._zero is None:
                self.states.level()
            raise
        self._group.append(taken)
        self._tick, self._zero = tick, zero

    def publish(self) -> None:
        """The group is on disk: publish its rewards, and let the other state learn them too."""
        states, group = self.states, self._group
        self.seq = self.newest
        if not group:
            return
        states.swap(self._tick)
        first, states.zero = states.zero is None, self._zero
        if self.policy.can_fail or len(group) > _FEW:
            states.level()
        else:
            if first and self._zero is not None:
                start_clock(self.policy, states.back, self._zero)
            for taken in group:
                self.policy.take(states.back, *taken)
        group.clear()

    def drop(self) -> None:
        """The group could not be written: discard its rewards."""
        self.newest = self.seq
        self._tick, self._zero = self.states.tick, self.states.zero
        self.states.level()
        self._group.clear()

    def digest(self) -> str:
        """The digest of the published state."""
        return digest(self.policy, self.states.front)

    def digest_behind(self) -> DigestRow:
        """The digest of the pending state."""
        return DigestRow(self.era.stream, self.era.number, self.newest, digest(self.policy, self.states.back))

    def snapshot_behind(self) -> SnapshotRow:
        """A snapshot of the pending state, to be written with the group."""
        data = self.policy.canonical(self.states.back).to_bytes()
        return SnapshotRow(self.era.stream, self.era.number, self.newest, self._tick, data)

    def learn_rows(self, rows: Iterable[RewardRow], known: dict[int, str] | None = None) -> None:
        """Learn rewards from the log and publish them. A digest that is known after one of them must be reached
        again."""
        known = {} if known is None else known
        state, tick = self.states.front, self.states.tick
        with _uncollected():
            for stretch in _stretches(rows):
                if stretch[-1].seq - stretch[0].seq != len(stretch) - 1:  # one is missing
                    raise Unlike(self.era, stretch[-1].seq)
                tick = self._learn(state, tick, [row for row in stretch if row.verdict in LESSONS])
                self.seq = self.newest = stretch[-1].seq
                wanted = known.get(self.seq)
                if wanted is not None and digest(self.policy, state) != wanted:
                    raise Unlike(self.era, self.seq)
        self.states.tick, self.states.zero, self.states.viewed = tick, self._zero, -1
        self.drop()

    def _learn(self, state: State, tick: int, rows: list[RewardRow]) -> int:
        """Learn rewards one after the other, in one call if the policy takes many."""
        if not rows:
            return tick
        dim = self.policy.dim
        _, _, _, values, ticks, _, _, _, born, vectors = zip(*rows, strict=True)
        if None in vectors or set(map(len, vectors)) != {8 * dim}:
            raise Unlike(self.era, rows[0].seq)
        x = np.frombuffer(b"".join(vectors), dtype="<f8").reshape(len(rows), dim)
        if self._zero is None:
            self._zero = tick = born[0]
            start_clock(self.policy, state, tick)
        at, rewards = np.array(ticks, dtype=np.int64), np.array(values)
        old = (at - np.array(born, dtype=np.int64)).astype(np.float64)
        steps = np.diff(at, prepend=tick).astype(np.float64)
        if self.policy.folds and steps.max() <= 1e6:
            self.policy.fold(state, x.astype(np.float64), rewards, steps, old)
        else:
            for place in range(len(rows)):
                vector = x[place].reshape(1, dim, 1).astype(np.float64)
                self.policy.take(state, vector, float(rewards[place]), float(steps[place]), float(old[place]))
        return int(at[-1])


class Unlike(Exception):
    """A state differs from the stored digests at reward `seq` of a generation."""

    def __init__(self, era: EraRow, seq: int) -> None:
        super().__init__(era, seq)
        self.era, self.seq = era, seq

    def __str__(self) -> str:
        return f"generation {self.era.number} at reward {self.seq}"


@contextmanager
def _uncollected() -> Iterator[None]:
    """Turn the garbage collector off. Rows are many and form no cycles; looking for cycles takes a tenth of the time of
    learning."""
    collecting = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collecting:
            gc.enable()


def _stretches(rows: Iterable[RewardRow]) -> Iterable[list[RewardRow]]:
    """Rewards in runs that end where digests are taken."""
    left = iter(rows)
    for first in left:
        yield [first, *itertools.islice(left, -first.seq % EVERY)]


def resume(store: Store, era: EraRow, setup: Setup, *, snapshots: bool = True, upto: int | None = None) -> Fold:
    """The state of a generation as the store has it: from its newest sound snapshot, or learned from the first reward.

    Snapshots before `base` are not used, because the rewards after them were forgotten.
    """
    if setup.policy.digest != era.policy:
        raise Unlike(era, era.first)
    fold = None
    found = store.snapshots(era.stream, era.number) if snapshots or era.base else []
    for row in found:
        if row.seq < era.base or (row.seq > era.base and not snapshots) or (upto is not None and row.seq > upto):
            continue
        try:
            fold = _restored(store, era, setup, row)
        except BadInput:  # its bytes were changed: try an older one
            continue
        break
    if fold is None:
        if era.base:
            raise Unlike(era, era.base)
        fold = Fold(era, setup)
    fold.learn_rows(store.rewards(era.stream, fold.seq, upto), store.digests(era.stream, era.number))
    return fold


def based(store: Store, era: EraRow, setup: Setup) -> Fold:
    """The state at the base of a generation, also if another machine computed it: it is all that is left of forgotten
    rows."""
    for row in store.snapshots(era.stream, era.number):
        if row.seq == era.base:
            try:
                fold = _restored(store, era, setup, row)
            except BadInput:
                break
            fold.learn_rows(())
            return fold
    raise Unlike(era, era.base)


def remaining(store: Store, era: EraRow, setup: Setup) -> Fold:
    """The state at the base of a generation by the vectors that are left, for a policy that cannot read the snapshot
    there. For rewards whose vectors were forgotten time passes, and nothing is learned."""
    fold, policy = Fold(era, setup), setup.policy
    lessons = (row for row in store.rewards(era.stream, era.first, era.base) if row.verdict in LESSONS)
    first = next(lessons, None)
    if first is not None and fold._zero is None:
        fold._zero = fold.states.tick = first.born
        start_clock(policy, fold.states.front, first.born)
    tick = max((row.tick for row in lessons), default=fold.tick if first is None else first.tick)
    rows = store.rewards(era.stream, era.first, era.base)
    fold.learn_rows(row._replace(verdict=Verdict.EXPIRED.value) if row.x is None else row for row in rows)
    if tick > fold.tick:
        policy.advance(fold.states.front, float(tick - fold.tick))
        fold.states.tick = tick
        fold.drop()
    return fold


def _restored(store: Store, era: EraRow, setup: Setup, row: SnapshotRow) -> Fold:
    state = setup.policy.adopted(row.data, era.policy, setup.body.seed)
    zero: int | None = era.origin
    shown = float(row.tick - era.origin)
    if era.origin == AT_FIRST_LESSON:
        lessons = (one.born for one in store.rewards(era.stream, era.first, row.seq) if one.verdict in LESSONS)
        zero = next(lessons, None)
        shown = 0.0 if zero is None else shown_at(setup.policy, zero, row.tick)
    if state.clock != shown:
        raise BadInput("snapshot", f"tick {row.tick}", "the tick that its state shows", "learn the rewards again")
    fold = Fold(era, setup, state, row.seq)
    fold.states.tick = fold._tick = row.tick
    fold.states.zero = fold._zero = zero
    return fold
