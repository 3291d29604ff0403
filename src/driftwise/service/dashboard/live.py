"""What the dashboard shows without reading the log: the streams in the server's memory, and names for their parts."""

from __future__ import annotations

import itertools
from typing import NamedTuple
from urllib.parse import quote

from driftwise.draw.markup import Html, badge, joined
from driftwise.service.core.engine import BUCKETS
from driftwise.service.core.setup import Setup
from driftwise.service.core.steps import Steps
from driftwise.service.core.stream import Stream
from driftwise.service.dashboard.wording import percent, short, span
from driftwise.service.stores.records import EraRow
from driftwise.service.wire.protocol import Counts

WHO = {"live": "policy", "baseline": "held back", "shadow": "your own"}


class LiveStream(NamedTuple):
    """The facts of a stream in the server's memory, copied between two groups."""

    name: str
    number: int
    paused: bool
    setup: Setup
    era: EraRow
    counts: Counts
    state_seq: int
    duplicates: int
    tick: int
    last: int  # the largest number of a decision
    lag: int
    steps: Steps
    replicas: tuple[tuple[str, int], ...] = ()  # names, and the last reward each has folded; empty for one server

    @property
    def policy(self) -> str:
        given = self.setup.body.policy
        return str(given.get("name") or given.get("type") or type(self.setup.policy).__name__)


def live_of(stream: Stream, now: float) -> LiveStream:
    """Copy the facts of a stream. Call it on the event loop, where no group runs meanwhile."""
    tick, peers = stream.clock.born(now, stream.kept[2])[0], stream.peers
    return LiveStream(
        stream.row.name, stream.row.id, stream.paused, stream.setup, stream.era, stream.counts,
        stream.fold.seq, stream.duplicates, tick, peers.last, peers.lag, stream.steps, peers.names,
    )  # fmt: skip


class Server(NamedTuple):
    """The facts that concern all streams."""

    commits: tuple[int, ...]
    full: str
    clock: str = ""

    @property
    def p99(self) -> str:
        """The end of the bucket in which the 99% quantile of commits lies."""
        total = sum(self.commits)
        if not total:
            return "–"
        place = next(i for i, upto in enumerate(itertools.accumulate(self.commits)) if upto >= 0.99 * total)
        return f"≤ {span(BUCKETS[place])}" if place < len(BUCKETS) else f"> {span(BUCKETS[-1])}"


def mode_of(one: LiveStream) -> Html:
    """The mode of a stream, as a badge."""
    body = one.setup.body
    word = f"holdback {percent(body.holdback)}" if body.mode == "holdback" else body.mode
    return joined([badge(word, "yes" if body.mode == "live" else "open"), badge("paused", "no") if one.paused else ""],
                  " ")  # fmt: skip


def arm_name(arm: int, item: str | None) -> str:
    """An arm by its item, or by its number where arms have no names."""
    return f"arm {arm}" if item is None else short(item)


def address(stream: str, id: str) -> str:
    """The address of the page that explains a decision."""
    return f"/streams/{quote(stream, safe='')}/decisions/{quote(id, safe='')}"
