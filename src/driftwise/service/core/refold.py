"""`driftwise refold`: go on with a database that another machine, library or version computed.

The newest era of a stream ends, and one begins whose state is the same rewards folded here: from the first, or from the
base snapshot where rows were forgotten. Decisions of earlier eras keep their numbers.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from driftwise.service.core.fold import Fold, Unlike, based
from driftwise.service.core.origin import begun, earlier, elsewhere, foreign, refused
from driftwise.service.core.recompute import Era, eras_of
from driftwise.service.core.verify import Found, check_era
from driftwise.service.stores.opening import written_alone
from driftwise.service.stores.records import Damaged, EraRow, StreamRow
from driftwise.service.stores.store import seal_era

_MOST = 20_000  # decisions of an era that are recomputed before a machine is recorded for it


def refold(db: str | Path) -> dict[str, int]:
    """The streams that began a new era, with its number."""
    with written_alone(db) as store:
        found = {row.name: _stream(store, row) for row in store.streams()}
    return {name: number for name, number in found.items() if number}


def _stream(store: Any, row: StreamRow) -> int:
    """The number of the era that began, 0 where the newest was computed here."""
    if store.shared:
        store.lock(row.id, 2**62)
    last, found = eras_of(store, row.id)[-1], Found(row.name)
    if not foreign(last.row):
        check_era(store, last, None, found, decisions=False)
        if not found.unlike:
            return 0
        if last.row.probe is not None and not elsewhere(last.row):
            raise refused(store.path, row.name, found.unlike[0])
    try:
        return _begin(store, row, last)
    except Unlike as slip:
        raise Damaged(str(store.path), f"rewards of stream {row.name} that cannot be folded: {slip}") from None


def _begin(store: Any, row: StreamRow, last: Era) -> int:
    """The same rewards folded here, as a new era."""
    before, made = last
    decided, rewarded = store.last_decision(row.id), store.last_reward(row.id)
    era = begun(EraRow(
        row.id, before.number + 1, 0 if decided is None else decided.seq, before.first,
        0 if rewarded is None else rewarded.seq, before.origin, before.body, made.policy.digest, before.base,
    ), "refold")  # fmt: skip
    fold = based(store, before, made) if before.base else Fold(era, made)
    fold.era = era
    store.add_era(era)
    if era.base:
        store.add_snapshot(fold.snapshot_behind())
    fold.learn_rows(store.rewards(row.id, fold.seq))
    if fold.seq > max(era.first, era.base):
        store.add_snapshot(fold.snapshot_behind())
    return era.number


def record_machine(store: Any, row: StreamRow) -> None:
    """Record this machine for the newest era of a stream, where an earlier version wrote it and all of it comes out
    here. Where it folds to another state, a new era begins with the same rewards folded here."""
    if not earlier(store.eras(row.id)[-1]):
        return
    reader = store.reader()
    try:
        era, found = eras_of(reader, row.id)[-1], Found(row.name)
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
        if found.foreign and now.number == era.row.number:
            if store.shared and not store.alone():
                raise refused(store.path, row.name, Unlike(now, now.first))
            _begin(store, row, era)
            store.changed()
        elif now.number == era.row.number and earlier(now):
            signed = begun(now, now.reason)
            store.run("UPDATE era SET probe = ?, sources = ?, seal = ? WHERE stream = ? AND number = ?",
                      values=(signed.probe, signed.sources, seal_era(signed), row.id, now.number))  # fmt: skip
            store.changed()
        store.commit()
    except BaseException:
        store.rollback()
        raise
