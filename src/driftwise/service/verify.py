"""`driftwise verify`: everything again from what is written, in a process that knows nothing else.

Every row's seal, every number without a gap, every id once; the states of every era folded from their first reward and
compared with every digest and snapshot on the way; every decision chosen again and compared to the last bit.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path

from driftwise.errors import BadInput, DriftwiseError
from driftwise.service.fold import Fold, Unlike, resume
from driftwise.service.offers import rows_of
from driftwise.service.opening import open_store
from driftwise.service.recompute import Era, again, arms_of, eras_of, same
from driftwise.service.store import LESSONS, DecisionRow, RewardRow, Store, StreamRow

MOST_TOLD = 20


@dataclass
class Found:
    """What was looked at of a stream; `differs` says what did not come out as written, the first few of it."""

    name: str
    decisions: int = 0
    rewards: int = 0
    eras: int = 0
    forgotten: int = 0  # decisions that nobody can recompute any more
    digest: str = ""
    differs: list[str] = field(default_factory=list)

    def tell(self, what: str) -> None:
        if len(self.differs) < MOST_TOLD:
            self.differs.append(f"{self.name}: {what}")

    def __str__(self) -> str:
        erased = f", {self.forgotten} forgotten and recomputable no more" if self.forgotten else ""
        ended = "all as written" if not self.differs else f"{len(self.differs)} differences"
        return (f"{self.name}: {self.decisions} decisions, {self.rewards} rewards, {self.eras} eras{erased}, "
                f"digest {self.digest}: {ended}")  # fmt: skip


def verify(path: str | Path) -> list[Found]:
    """Look at all streams of a database, which may be in use."""
    store = open_store(path, writes=False)
    try:
        sound = store.soundness()
        if sound != "ok":
            raise BadInput(str(path), sound, "a file whose structure is whole", "restore a backup")
        return [_stream(store, row) for row in store.streams()]
    finally:
        store.close()


def _stream(store: Store, row: StreamRow) -> Found:
    found = Found(row.name)
    try:
        eras = eras_of(store, row.id)
        found.eras = len(eras)
        _rewards(store, row.id, eras, found)
        after = 0
        for place, era in enumerate(eras):
            later = eras[place + 1] if place + 1 < len(eras) else None
            _era(store, era, later.row.begun_at if later else None, found)
            if era.row.after < after and not store.shared:
                found.tell(f"era {era.row.number} begins before the one before it")
            after = era.row.after
    except Unlike as slip:
        found.tell(f"rewards that fold to another state: {slip}")
    except DriftwiseError as slip:
        found.tell(str(slip))
    return found


def _rewards(store: Store, stream: int, eras: list[Era], found: Found) -> None:
    """Rewards without a gap, each of a decision that was made, with the vector that was played."""
    seq = learned = tick = 0
    for row in store.rewards(stream):
        seq, expected = seq + 1, learned + (row.verdict in LESSONS)
        decision = store.decision(stream, row.id)
        if row.seq != seq or row.learned != expected or row.tick < tick:
            found.tell(f"reward {row.seq} is out of order")
        elif store.reward(stream, row.id) != row:
            found.tell(f"id {row.id!r} has two rewards")
        elif decision is None or decision.born != row.born or not _same_vector(store, decision, row):
            found.tell(f"reward {row.seq} does not fit its decision")
        elif row.verdict == "defaulted" and not _due(eras, row):
            found.tell(f"reward {row.seq} is a default that was not due")
        seq, learned, tick = row.seq, expected, row.tick
        found.rewards += 1


def _due(eras: list[Era], row: RewardRow) -> bool:
    """Whether a default is that of its time, and the decision's was over."""
    made = next(era.setup for era in reversed(eras) if era.row.begun_at < row.seq)
    return made.expire_after is not None and row.value == made.default and row.tick - row.born > made.expire_after


def _same_vector(store: Store, decision: DecisionRow, row: RewardRow) -> bool:
    arms = None if decision.arm_set is None else store.arms(decision.arm_set)
    if arms is None or row.x is None:
        return row.x is None
    _, n, data = arms
    return bytes(rows_of(data, n)[decision.arm].tobytes()) == row.x


def _era(store: Store, era: Era, end: int | None, found: Found) -> None:
    """One fold from its first reward on, and its decisions as it passes them."""
    row, made = era
    known = store.digests(row.stream, row.number)
    for snapshot in store.snapshots(row.stream, row.number):
        known[snapshot.seq] = sha256(snapshot.data).hexdigest()
    fold = resume(store, row, made, snapshots=False, upto=max(row.first, row.base))
    stops = iter(sorted(seq for seq in known if seq > fold.seq))
    coming = next(stops, None)
    seq = row.after
    for decision in store.decisions(row.stream, row.number):
        while coming is not None and coming <= decision.state_seq:
            _advance(store, fold, coming, known)
            coming = next(stops, None)
        _advance(store, fold, decision.state_seq, known)
        seq += 1
        if decision.seq != seq and not store.shared:  # replicas leave gaps of a few numbers where they end
            found.tell(f"decision {decision.seq} where {seq} was due")
            seq = decision.seq
        _decision(store, era, fold, decision, found)
        found.decisions += 1
    for stop in (coming, *stops, end):
        _advance(store, fold, stop, known)
    found.digest = fold.digest()


def _advance(store: Store, fold: Fold, upto: int | None, known: dict[int, str]) -> None:
    """Learn up to a reward, or all there are."""
    if upto is None or upto > fold.seq:
        fold.learn_rows(store.rewards(fold.era.stream, fold.seq, upto), known)
        wanted = known.get(fold.seq)
        if wanted is not None and fold.digest() != wanted:
            raise Unlike(fold.era, fold.seq)


def _decision(store: Store, era: Era, fold: Fold, row: DecisionRow, found: Found) -> None:
    if store.decision(row.stream, row.id) != row:
        found.tell(f"id {row.id!r} has two decisions")
    arms = arms_of(store, row)
    if arms is None or row.state_seq < era.row.base:
        found.forgotten += 1
    elif fold.seq != row.state_seq:
        found.tell(f"decision {row.seq} was made on a state that is not there")
    elif arms.count != row.n or not 0 <= row.arm < row.n or not same(row, again(fold, era.setup, row, arms)):
        found.tell(f"decision {row.seq} does not come out again")
