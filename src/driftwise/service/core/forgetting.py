"""Erase arms, contexts, vectors, traces and guardrails of decisions that closed before a time, or of all decisions of
a unit. What was learned from them stays.

The state continues from a snapshot at the last forgotten reward, which is sealed by its own sha256. A server erases a
batch of rewards per group, so that other requests are answered in between. Other replicas learn of it as they learn of
a new generation. The command erases everything in one transaction, if no server has the file open.
"""

from __future__ import annotations

import asyncio
import datetime
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from driftwise.errors import BadInput
from driftwise.service.core.fold import Fold, Unlike, resume
from driftwise.service.core.origin import check_machine, elsewhere, foreign, refused
from driftwise.service.core.recompute import eras_of
from driftwise.service.core.setup import Era
from driftwise.service.core.steps import hashed_unit, imported_seeds
from driftwise.service.core.warming import warm
from driftwise.service.stores.opening import check_there, one_file
from driftwise.service.stores.records import DecisionRow, EraRow, RewardRow, Taken
from driftwise.service.stores.sqlite import SQLiteStore
from driftwise.service.stores.store import seal, seal_era

if TYPE_CHECKING:
    from driftwise.service.core.serving import Service
    from driftwise.service.core.stream import Stream

STRETCH = 500  # rewards that a server erases per group
_HEARD = 1.0  # seconds within which every replica learns of a change


class Forgotten(NamedTuple):
    """What one batch erased: up to reward `cut`, the ids whose arms are gone, and the current generations."""

    cut: int
    ids: list[str]
    eras: list[EraRow]


def moment_before(before: str) -> float:
    """A date or time as seconds since 1970; UTC if no zone is given."""
    try:
        found = datetime.datetime.fromisoformat(before)
    except ValueError:
        raise BadInput("before", before, "a date or time", "pass 2026-01-31 for example") from None
    return (found if found.tzinfo is not None else found.replace(tzinfo=datetime.UTC)).timestamp()


def asked_to(before: str | None, unit: str | None) -> float | str:
    """What to forget: everything that closed before a time, or everything of a unit."""
    if (before is None) == (unit is None):
        got = "neither" if unit is None else "both"
        raise BadInput("before", got, "a time or a unit", "pass one of before and unit")
    return moment_before(before) if before is not None else str(unit)


def forget(path: str | Path, what: float | str) -> dict[str, int]:
    """Forget in a database that no server has open. Returns the number of decisions per stream."""
    one_file(path, "a server that has it takes POST …/forget")
    check_there(path)
    try:
        store = SQLiteStore(path)
    except Taken as error:
        way_out = "send POST …/forget to that server, or stop it"
        raise Taken("db", error.got, "a database that no server has open", way_out) from None
    try:
        store.erase_wholly()
        store.begin()
        found = {row.name: len(_at_once(store, row.id, what).ids) for row in store.streams()}
        store.drop_sets()
        store.commit()
        store.checkpoint()
        store.run("VACUUM")
        store.checkpoint()
        return found
    except BaseException:
        store.rollback()
        raise
    finally:
        store.close()


def _at_once(store: Any, stream: int, what: float | str) -> Forgotten:
    if isinstance(what, float):
        return expired_stretch(store, stream, what)
    return erased(store, stream, ids_of(store, stream, what, 2**62))


async def online(service: Service, name: str, what: float | str) -> dict[str, int]:
    """Forget in a stream that is served, one batch per group."""
    return await service.changed(_forgotten, service, service.stream(name), what)


async def _forgotten(service: Service, stream: Stream, what: float | str) -> dict[str, int]:
    store = service.store
    await service.aside(_warm_eras, stream.row.id)  # earlier eras may have other policies
    await service.engine.submit(store.erase_wholly)
    count = await (_before(service, stream, what) if isinstance(what, float) else _of_unit(service, stream, what))
    await service.drop_sets()
    return {"forgotten": count}


async def _before(service: Service, stream: Stream, before: float) -> int:
    done = count = 0
    while True:
        found = await _group(service, stream, lambda done=done: expired_stretch(  # type: ignore[misc]
            service.store, stream.row.id, before, done, STRETCH))  # fmt: skip
        count += len(found.ids)
        if found.cut < done + STRETCH:
            return count
        done = found.cut


async def _of_unit(service: Service, stream: Stream, unit: str) -> int:
    """Forget all decisions of a unit, open ones too. Until another replica learns of it, it may still write the vector
    of an open one with its reward; so the ids are erased once more after that time."""
    gone: list[str] = []
    while ids := await service.aside(ids_of, stream.row.id, unit, STRETCH):
        gone += ids
        await _group(service, stream, lambda ids=ids: erased(service.store, stream.row.id, ids))  # type: ignore[misc]
    if gone and service.store.shared:
        await service.written(lambda: service.event(stream, "forgotten", by="unit"), lambda: None, stream)
        await asyncio.sleep(_HEARD)
        for start in range(0, len(gone), STRETCH):
            ids = gone[start : start + STRETCH]
            await _group(service, stream, lambda ids=ids: erased(service.store, stream.row.id, ids))  # type: ignore[misc]
    return len(gone)


def _warm_eras(store: Any, stream: int) -> None:
    for era in eras_of(store, stream):
        warm(era.setup.policy, era.setup.terms.low)


async def _group(service: Service, stream: Stream, work: Callable[[], Forgotten]) -> Forgotten:
    """Erase one batch with the next group. When it is on disk, drop it from memory too."""
    found: list[Forgotten] = []

    def write() -> None:
        found[:] = [work()]

    def then() -> None:
        for id in found[0].ids:
            stream.known.pop(id, None)
        for era in found[0].eras:
            if era.number == stream.era.number:
                stream.fold.era = era

    await service.written(write, then, stream)  # under its lock, so that two replicas never erase the same rows
    return found[0]


def expired_stretch(store: Any, stream: int, before: float, done: int = 0, most: int | None = None) -> Forgotten:
    """Forget what closed before a time, at most `most` rewards after number `done`, in the current transaction."""
    cut = done
    for reward in store.rewards(stream, done, None if most is None else done + most):
        if reward.at >= before:
            break
        cut = reward.seq
    changed = _rebased(store, stream, cut)  # first, because it folds vectors that are erased next
    return Forgotten(cut, _erase(store, stream, done, cut), changed)


def ids_of(store: Any, stream: int, unit: str, most: int) -> list[str]:
    """At most `most` decisions of a unit that were not forgotten."""
    seeds = {era.setup.body.seed for era in eras_of(store, stream)} | imported_seeds(store.events(stream))[1]
    units = sorted(hashed_unit(seed, unit) for seed in seeds)
    marks = ", ".join("?" * len(units))
    statement = f"SELECT event_id FROM decision WHERE stream = ? AND unit IN ({marks}) LIMIT ?"
    return [row[0] for row in store.run(statement, values=(stream, *units, most))]


def erased(store: Any, stream: int, ids: list[str]) -> Forgotten:
    """Forget decisions by their ids, open ones too, in the current transaction. The state continues from the last of
    their rewards: without their vectors the earlier states cannot be computed."""
    rewards = {id: store.reward(stream, id) for id in ids}
    cut = max((one.seq for one in rewards.values() if one is not None), default=0)
    changed = _rebased(store, stream, cut)
    for id, reward in rewards.items():
        decision = store.decision(stream, id)
        store.run("DELETE FROM detail WHERE stream = ? AND seq = ?", values=(stream, decision.seq))
        if reward is not None:
            store.run("DELETE FROM guardrail WHERE stream = ? AND seq = ?", values=(stream, reward.seq))
        _blank(store, decision, reward)
    return Forgotten(cut, ids, changed)


def _rebased(store: Any, stream: int, cut: int) -> list[EraRow]:
    """Let every generation continue from a snapshot at a reward, or at its end if that is earlier. Returns the changed
    generations."""
    changed = []
    eras = eras_of(store, stream)
    for place, (row, _) in enumerate(eras):
        end = eras[place + 1].row.begun_at if place + 1 < len(eras) else cut
        base = min(cut, end)
        if base <= max(row.first, row.base):
            continue
        fold = _fold_at(store, eras[place], base, newest=place + 1 == len(eras))
        changed.append(row._replace(base=end if fold is None else base))
        store.run("UPDATE era SET base = ?, seal = ? WHERE stream = ? AND number = ?",
                  values=(changed[-1].base, seal_era(changed[-1]), stream, row.number))  # fmt: skip
        if fold is not None:
            store.add_snapshot(fold.snapshot_behind())
        store.run("DELETE FROM snapshot WHERE stream = ? AND era = ? AND seq < ?", values=(stream, row.number, base))
    if changed:
        store.changed()
    return changed


def _fold_at(store: Any, era: Era, base: int, newest: bool) -> Fold | None:
    """The state that a generation continues from. None if the generation is over and not recomputable here: then all of
    it is forgotten, because a state computed here would differ from the one that its later decisions were made on."""
    name = next(one.name for one in store.streams() if one.id == era.row.stream)
    if newest:
        check_machine(store.path, name, era)
    elif foreign(era.row):
        return None
    try:
        return resume(store, era.row, era.setup, upto=base)
    except Unlike as error:
        if newest or (era.row.probe is not None and not elsewhere(era)):
            raise refused(store.path, name, era, error) from None
        return None


def _erase(store: Any, stream: int, done: int, cut: int) -> list[str]:
    """Erase the content of rewards and their decisions. Returns the ids of decisions that lost their arms."""
    ids = []
    stretch = (stream, done, cut)
    store.run("DELETE FROM guardrail WHERE stream = ? AND seq > ? AND seq <= ?", values=stretch)
    store.run("DELETE FROM detail WHERE stream = ? AND seq IN (SELECT d.seq FROM decision d JOIN reward r ON "
              "r.stream = d.stream AND r.event_id = d.event_id WHERE r.stream = ? AND r.seq > ? AND r.seq <= ?)",
              values=(stream, *stretch))  # fmt: skip
    for reward in list(store.rewards(stream, done, cut)):
        decision = store.decision(stream, reward.id)
        if decision is not None and decision.arm_set is not None:
            ids.append(reward.id)
        _blank(store, decision, reward)
    return ids


def _blank(store: Any, decision: DecisionRow | None, reward: RewardRow | None) -> None:
    """Erase the content of a decision and its reward."""
    if reward is not None:
        bare = reward._replace(x=None)
        store.run("UPDATE reward SET x = NULL, seal = ? WHERE stream = ? AND seq = ?",
                  values=(seal(bare), bare.stream, bare.seq))  # fmt: skip
    if decision is not None and (decision.arm_set is not None or decision.item is not None):
        empty = decision._replace(arm_set=None, item=None, context=None, candidates=None, unit=None)
        store.run("UPDATE decision SET arm_set = NULL, item = NULL, context = NULL, candidates = NULL, unit = NULL, "
                  "seal = ? WHERE stream = ? AND seq = ?", values=(seal(empty), empty.stream, empty.seq))  # fmt: skip
