"""`driftwise export`: a stream as a log (docs/contract.md#logs), for `Agent.learn_log`, `dw.sums` and others."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import NamedTuple

import msgspec

from driftwise._internal.validate import one_of
from driftwise.errors import BadInput
from driftwise.ledger import LESSONS, Verdict
from driftwise.service.core.offers import limits_of, stored_arms
from driftwise.service.core.recompute import eras_of, upon
from driftwise.service.core.setup import Era
from driftwise.service.core.steps import imported_seeds
from driftwise.service.stores.opening import open_store
from driftwise.service.stores.records import DecisionRow, RewardRow
from driftwise.service.stores.store import Store
from driftwise.tables.write import LogRow, Writer

_NOTHING: tuple[float | None, float | None, int | None, int | None] = (None, None, None, None)


class Written(NamedTuple):
    """The numbers of rows: written, left out because they were forgotten, and left out because they closed before the
    reset.
    """

    rows: int
    forgotten: int
    before: int


class Since(NamedTuple):
    """The start of a log: the reward `first` after which it begins, the rewards learned by then, and the state's first
    tick.
    """

    first: int
    learned: int
    origin: int


def export(
    path: str | Path, out: Path, stream: str | None = None, format: str | None = None, everything: bool = False
) -> Written:
    """Write a stream's rows in the order in which they closed, then the open ones.

    Rows that closed before the last reset are left out, and learned rewards and ticks are counted from the reset: an
    agent that learns the log reaches the stream's state. `everything` writes all rows with the stream's own numbers.
    """
    store = open_store(path, writes=False)
    try:
        names = {row.name: row.id for row in store.streams()}
        if not names or (stream is None and len(names) != 1):
            listed = ", ".join(names) or "none"
            raise BadInput("stream", f"{len(names)} streams", "one stream", f"pass --stream; there are {listed}")
        name = next(iter(names)) if stream is None else stream
        one_of("stream", name, list(names))
        if out.exists() and (not out.is_dir() or any(out.iterdir())):
            raise BadInput("out", str(out), "a folder that is empty or does not exist", "pass a new one")
        return _write(store, names[name], name, out, format, everything)
    finally:
        store.close()


def _write(store: Store, stream: int, name: str, out: Path, format: str | None, everything: bool) -> Written:
    eras = {era.row.number: era for era in eras_of(store, stream)}
    newest = eras[max(eras)]
    features = newest.setup.features
    writer = Writer(out, format=format, arms=True, fields=None if features is None else features.fields).begin()
    lessons, written, left_out = [0], 0, 0
    imported, seeds = imported_seeds(store.events(stream))
    try:
        lessons += [reward.learned for reward in store.rewards(stream)]
        first = 0 if everything else newest.row.first
        since = Since(first, lessons[first], 0 if everything else max(newest.row.origin, 0))
        closed = ((store.decision(stream, reward.id), reward) for reward in store.rewards(stream, first))
        opened = ((one, None) for one in store.decisions(stream) if store.reward(stream, one.id) is None)
        for one, reward in chain(closed, opened):
            row = None if one is None else _row(store, name, eras[one.era], one, reward, lessons, since)
            if one is not None and row is not None and one.unit is not None:
                by = {eras[one.era].setup.body.seed} | (seeds if one.seq <= imported else set())
                row = row._replace(unit_seeds=None if by == {newest.setup.body.seed} else sorted(map(float, by)))
            written, left_out = written + (row is not None), left_out + (row is None)
            if row is not None:
                writer.add(row)
    finally:
        writer.close()
    return Written(written, left_out, first)


def _row(
    store: Store, name: str, era: Era, one: DecisionRow, reward: RewardRow | None, lessons: list[int], since: Since
) -> LogRow | None:
    """A decision with its reward; None if its arms were forgotten."""
    found, detail = stored_arms(store, one), store.detail(one.stream, one.seq)
    if found is None:
        return None
    limits, names = limits_of(detail, one.n), None if one.candidates is None else msgspec.json.decode(one.candidates)
    arms, place = found[1], limits.place(one.arm)
    if limits.places is not None:  # a log lists only the allowed arms, as an agent's log does
        arms = arms[limits.places]
        names = names and [names[arm] for arm in limits.places.tolist()]
    own = one.arm == one.proposed  # score, mean and bonus belong to the policy's own arm
    value, sent, tick, number = _NOTHING
    if reward and reward.verdict in LESSONS:
        value, tick, number = reward.value, reward.tick - since.origin, reward.learned - since.learned
    elif reward:
        sent = reward.value
    known, shown = lessons[one.state_seq] - since.learned, upon(era.setup, one) - since.origin
    before = era.row.first < since.first or shown < 0  # it was made on a state that the log does not have
    return LogRow(
        one.seq, one.id, name, one.at, one.born - since.origin, place, one.item, len(arms), found[1][one.arm],
        float("nan") if one.propensity is None else one.propensity, bool(one.explored),
        one.score if own else float("nan"), one.mean if own else float("nan"), one.bonus if own else float("nan"),
        era.row.policy, None if before else known, value, None if reward is None else reward.at, tick, number,
        (Verdict.OPEN if reward is None else Verdict(reward.verdict)).value,
        None if one.context is None else msgspec.json.decode(one.context),
        names, arms, cohort=one.cohort, upon=None if before else shown,
        draws=one.draws if one.cohort == "live" else 0, trace=None if detail is None else detail.trace,
        reward_sent=sent, unit_hash=one.unit, costs=limits.costs,
    )  # fmt: skip
