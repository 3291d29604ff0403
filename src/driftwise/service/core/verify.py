"""`driftwise verify`: recompute everything from the database, in a process of its own.

It checks that every row has its seal, that numbers have no gap and that every id occurs once. It learns the states of
every generation from their first reward and compares them with every digest and snapshot, and it makes every decision
again and compares it to the last bit. A generation that another machine, library or version computed may differ here:
this is reported separately from damage (origin.py), and what needs no arithmetic is still compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path

from driftwise.errors import BadInput, DriftwiseError
from driftwise.ledger import LESSONS
from driftwise.service.core.fold import Fold, Unlike, resume
from driftwise.service.core.offers import limits_of, stored_arms
from driftwise.service.core.origin import elsewhere, revised
from driftwise.service.core.ramping import Standing, check_steps
from driftwise.service.core.recompute import again, arms_of, eras_of, same
from driftwise.service.core.setup import Era
from driftwise.service.core.telling import check_signs
from driftwise.service.stores.opening import open_store
from driftwise.service.stores.records import DecisionRow, RewardRow, StreamRow
from driftwise.service.stores.store import Store

MOST_TOLD = 20


@dataclass
class Found:
    """What was checked of a stream. `differs` has the first few differences from what was written."""

    name: str
    decisions: int = 0
    rewards: int = 0
    eras: int = 0
    forgotten: int = 0  # decisions that can no longer be recomputed
    digest: str = ""  # of the newest era, as computed here
    differs: list[str] = field(default_factory=list)
    foreign: list[str] = field(default_factory=list)  # eras that are not recomputable here, which is not damage
    revised: list[str] = field(default_factory=list)  # eras of an earlier revision of the policy, which is not either
    unlike: list[Unlike] = field(default_factory=list)
    deleted: str = ""  # the time of its deletion, if it was deleted

    def tell(self, what: str) -> None:
        told = f"{self.name}: {what}"
        if len(self.differs) < MOST_TOLD and told not in self.differs:
            self.differs.append(told)

    def tell_era(self, era: Era, what: str) -> None:
        """Something that was computed and does not come out again: damage, unless another machine computed it."""
        other = elsewhere(era)
        here = "by this version" if revised(era) else f"here: {what}"
        told = self.revised if revised(era) else self.foreign
        if not other:
            self.tell(what)
        elif not any(one.startswith(f"generation {era.row.number},") for one in told):
            told.append(f"generation {era.row.number}, computed by {other}, is not recomputable {here}")

    def __str__(self) -> str:
        if self.deleted:
            return f"{self.name}: deleted at {self.deleted}"
        erased = f", {self.forgotten} forgotten and no longer recomputable" if self.forgotten else ""
        ended = "all as written" if not self.differs else f"{len(self.differs)} differences"
        for eras, where in ((self.revised, "by this version"), (self.foreign, "here")):
            if eras:
                rest = "what can be compared here is as written" if ended == "all as written" else ended
                ended = f"{len(eras)} generations are not recomputable {where}, {rest}"
        return (f"{self.name}: {self.decisions} decisions, {self.rewards} rewards, {self.eras} generations{erased}, "
                f"digest {self.digest}: {ended}")  # fmt: skip


def verify(path: str | Path) -> list[Found]:
    """Check all streams of a database, which may be in use."""
    store = open_store(path, writes=False)
    try:
        sound = store.soundness()
        if sound != "ok":
            raise BadInput(str(path), sound, "a file with an intact structure", "restore a backup")
        found = [_stream(store, row) for row in store.streams()]
        return found + [_deleted(store, name, number) for name, number in store.deleted().items()]
    finally:
        store.close()


def _deleted(store: Store, name: str, number: int) -> Found:
    """Check the rest of a deleted stream: its events."""
    found = Found(name)
    try:
        event = next(one for one in store.events(number) if one.kind == "deleted")  # earlier replicas wrote one each
        found.deleted = datetime.fromtimestamp(event.at, UTC).isoformat(timespec="seconds")
    except DriftwiseError as error:
        found.tell(str(error))
    return found


def _stream(store: Store, row: StreamRow) -> Found:
    found = Found(row.name)
    try:
        eras = eras_of(store, row.id)
    except DriftwiseError as error:
        found.tell(str(error))
        return found
    found.eras = len(eras)
    try:
        _rewards(store, row.id, eras, found)
    except DriftwiseError as error:
        found.tell(str(error))
    after, events = 0, store.events(row.id)
    pauses = [event.kind == "paused" for event in events if event.kind in ("paused", "resumed")]
    if pauses and pauses[-1] != row.paused:
        found.tell("its events and its row disagree on whether it is paused")
    for place, era in enumerate(eras):
        later = eras[place + 1] if place + 1 < len(eras) else None
        try:
            check_era(store, era, later.row.begun_at if later else None, found)
            for wrong in check_steps(store, events, era.row, era.setup):
                found.tell(wrong)
            for wrong in check_signs(store, events, era.row, era.setup):
                found.tell_era(era, wrong)
        except DriftwiseError as error:  # later eras are still checked
            found.tell(str(error))
        if era.row.after < after and not store.shared:
            found.tell(f"generation {era.row.number} begins before the one before it")
        after = era.row.after
    return found


def _rewards(store: Store, stream: int, eras: list[Era], found: Found) -> None:
    """Check that rewards have no gap, and each its decision and the vector that was played."""
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
        elif not next(era.setup.terms for era in reversed(eras) if era.row.begun_at < row.seq).was_due(
            row.verdict, row.value, row.born, row.tick
        ):
            found.tell(f"reward {row.seq} is a default that was not due")
        seq, learned, tick = row.seq, expected, row.tick
        found.rewards += 1


def _same_vector(store: Store, decision: DecisionRow, row: RewardRow) -> bool:
    arms = stored_arms(store, decision)
    if arms is None or row.x is None:
        return row.x is None
    return bytes(arms[1][decision.arm].tobytes()) == row.x


class Refolding:
    """The state of a generation from its first reward, compared with every digest and snapshot.

    It ends at reward `end`, where the next generation begins. A difference is reported, and there is no state after it.
    """

    def __init__(self, store: Store, era: Era, end: int | None, found: Found) -> None:
        self.store, self.era, self.end, self.found = store, era, end, found
        row = era.row
        self.known = store.digests(row.stream, row.number)
        snapshots = {one.seq: sha256(one.data).hexdigest() for one in store.snapshots(row.stream, row.number)}
        self.known.update(snapshots)
        self.fold: Fold | None = None
        self.forgotten = row.base > 0 and row.base == end and row.base not in snapshots  # the whole era
        if self.forgotten:
            return
        try:
            self.fold = resume(store, row, era.setup, snapshots=False, upto=max(row.first, row.base))
        except Unlike as error:
            self._tell(error)
            return
        last = 2**62 if end is None else end
        self.stops = sorted((seq for seq in self.known if self.fold.seq < seq <= last), reverse=True)

    def to(self, seq: int) -> Fold | None:
        """The state after `seq` rewards, or at the end."""
        try:
            while self.fold is not None and self.stops and self.stops[-1] <= seq:
                self._learn(self.fold, self.stops.pop())
            if self.fold is not None and seq > self.fold.seq:
                self._learn(self.fold, seq)
        except Unlike as error:
            self.fold = None
            self._tell(error)
        return self.fold

    def _learn(self, fold: Fold, upto: int) -> None:
        fold.learn_rows(self.store.rewards(fold.era.stream, fold.seq, upto), self.known)
        wanted = self.known.get(fold.seq)
        if wanted is not None and fold.digest() != wanted:
            raise Unlike(fold.era, fold.seq)

    def _tell(self, error: Unlike) -> None:
        self.found.unlike.append(error)
        self.found.tell_era(self.era, f"rewards that give another state: {error}")


def check_era(store: Store, era: Era, end: int | None, found: Found, decisions: bool = True) -> None:
    """Learn a generation from its first reward, and check its decisions on the way."""
    row = era.row
    way, seq = Refolding(store, era, end, found), row.after
    # With replicas, some learn of an event later, so decisions cannot be compared with it.
    standing = None if store.shared else Standing(store.events(row.stream), row, era.setup)
    for decision in store.decisions(row.stream, row.number) if decisions else ():
        seq += 1
        if standing is not None and decision.seq <= standing.imported:  # a log may have gaps
            seq = decision.seq
        if decision.seq != seq and not store.shared:  # a replica that ends leaves a gap of a few numbers
            found.tell(f"decision {decision.seq} where {seq} was due")
            seq = decision.seq
        wrong = "" if standing is None else standing.wrong(decision)
        if wrong:
            found.tell(f"decision {decision.seq} {wrong}")
        _decision(store, era, way, decision, found)
        found.decisions += 1
    fold = way.to(2**62 if end is None else end)
    found.digest = "" if fold is None else fold.digest()


def _decision(store: Store, era: Era, way: Refolding, row: DecisionRow, found: Found) -> None:
    if store.decision(row.stream, row.id) != row:
        found.tell(f"id {row.id!r} has two decisions")
    arms = arms_of(store, row)
    if arms is None or row.state_seq < era.row.base or way.forgotten:
        found.forgotten += 1
        return
    if arms.dim != era.setup.policy.dim or not 0 <= row.arm < row.n:
        found.tell(f"decision {row.seq} was made among other arms")
        return
    limits = limits_of(store.detail(row.stream, row.seq), row.n)
    if limits.place(row.arm) is None:
        found.tell(f"decision {row.seq} played an arm that was not allowed")
    fold = way.to(row.state_seq)
    if fold is None:
        return  # the reason was reported
    if fold.seq != row.state_seq:
        found.tell(f"decision {row.seq} was made on a state that is not there")
    elif not same(row, again(fold, era.setup, row, arms, limits)):
        found.tell_era(era, f"decision {row.seq} differs when it is recomputed")
