"""`driftwise refold`: continue a database that another machine, library or version computed.

The newest generation of a stream ends, and one begins with the same rewards, learned here: from the first, or
from the base snapshot where rows were forgotten. Another revision of a policy cannot read that snapshot, and learns the
vectors that are left. Decisions of earlier generations keep their numbers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from driftwise.policies.plain import revision_in
from driftwise.service.core.fold import Fold, Unlike, based, remaining
from driftwise.service.core.origin import begun, earlier, elsewhere, foreign, refused, revised
from driftwise.service.core.recompute import eras_of
from driftwise.service.core.setup import Era
from driftwise.service.core.verify import Found, check_era
from driftwise.service.stores.opening import check_there, written_alone
from driftwise.service.stores.records import Damaged, EraRow, StreamRow
from driftwise.service.stores.store import seal_era

_MOST = 20_000  # decisions of an era that are recomputed before a machine is recorded for it


def refold(db: str | Path) -> dict[str, int]:
    """Learn the rewards of a database again. Returns the streams that began a new generation, with its number."""
    check_there(db)
    with written_alone(db) as store:
        found = {row.name: _stream(store, row) for row in store.streams()}
    return {name: number for name, number in found.items() if number}


def _stream(store: Any, row: StreamRow) -> int:
    """The number of the new generation; 0 if the newest generation was computed here."""
    if store.shared:
        store.lock(row.id, 2**62)
    last, found = eras_of(store, row.id)[-1], Found(row.name)
    if not (foreign(last.row) or revised(last)):
        check_era(store, last, None, found, decisions=False)
        if not found.unlike:
            return 0
        if last.row.probe is not None and not elsewhere(last):
            raise refused(store.path, row.name, last, found.unlike[0])
    return _begin(store, row, last)


def _begin(store: Any, row: StreamRow, last: Era) -> int:
    """Begin a new generation with the same rewards, learned here."""
    before, made = last
    decided, rewarded = store.last_decision(row.id), store.last_reward(row.id)
    era = begun(EraRow(
        row.id, before.number + 1, 0 if decided is None else decided.seq, before.first,
        0 if rewarded is None else rewarded.seq, before.origin, before.body, made.policy.digest, before.base,
    ), "revision" if revised(last) else "refold")  # fmt: skip
    try:
        fold = Fold(era, made)
        if era.base:
            readable = revision_in(before.policy) == revision_in(era.policy)
            fold = based(store, before, made) if readable else remaining(store, era, made)
        fold.era = era
        store.add_era(era)
        if era.base:
            store.add_snapshot(fold.snapshot_behind())
        fold.learn_rows(store.rewards(row.id, fold.seq))
    except Unlike as error:
        raise Damaged(str(store.path), f"rewards of stream {row.name} that cannot be learned: {error}") from None
    if fold.seq > max(era.first, era.base):
        store.add_snapshot(fold.snapshot_behind())
    return era.number


def bring_up(store: Any, row: StreamRow) -> None:
    """Let a stream go on whose newest generation an earlier version of driftwise, or of its policy, computed.

    Where all of it comes out here, this machine is recorded for it. Where it does not, or where the policy was revised,
    a new generation begins with the same rewards learned here. Of several servers that start at once, one does it.
    """
    era, found = eras_of(store, row.id)[-1], Found(row.name)
    if not (earlier(era.row) or revised(era)):
        return
    if not revised(era):
        reader = store.reader()
        try:
            last = reader.last_decision(row.id)
            check_era(reader, era, None, found, decisions=last is None or last.seq - era.row.after <= _MOST)
        finally:
            reader.close()
    if found.differs:
        return
    store.begin()
    try:
        if store.shared:
            store.lock(row.id, 2**62)
        now = store.eras(row.id)[-1]
        if now.number != era.row.number:
            pass  # another server was first
        elif revised(era) or found.foreign:
            if store.shared and not store.alone():
                raise refused(store.path, row.name, era, Unlike(now, now.first))
            _begin(store, row, era)
            store.changed()
        elif earlier(now):
            signed = begun(now, now.reason)
            store.run("UPDATE era SET probe = ?, sources = ?, seal = ? WHERE stream = ? AND number = ?",
                      values=(signed.probe, signed.sources, seal_era(signed), row.id, now.number))  # fmt: skip
            store.changed()
        store.commit()
    except BaseException:
        store.rollback()
        raise
