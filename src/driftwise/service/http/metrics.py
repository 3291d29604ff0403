"""Numbers for Prometheus, gathered when they are asked for: counting costs a request nothing."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
)
from prometheus_client.registry import Collector

from driftwise.service.core.access import sees
from driftwise.service.core.engine import BUCKETS
from driftwise.service.stores.records import KeyRow

if TYPE_CHECKING:
    from driftwise.service.http.app import Api

TYPE = "text/plain; version=0.0.4; charset=utf-8"


class _Gathered(Collector):
    def __init__(self, api: Api, key: KeyRow | None) -> None:
        self.api, self.key = api, key

    def collect(self) -> Iterator[Metric]:
        engine = self.api.service.engine
        decided = CounterMetricFamily("driftwise_decisions", "Decisions on disk", labels=["stream"])
        rewards = CounterMetricFamily("driftwise_rewards", "Rewards by verdict", labels=["stream", "verdict"])
        lag = GaugeMetricFamily("driftwise_replica_lag", "Rewards of others not learned here yet", labels=["stream"])
        waiting = GaugeMetricFamily("driftwise_open", "Decisions without a reward", labels=["stream"])
        for name, stream in engine.streams.items():
            if not sees(self.key, name):
                continue
            counts = stream.counts
            decided.add_metric([name], counts.decided)
            rewards.add_metric([name, "learned"], counts.learned)
            if stream.setup.terms.default is not None or counts.defaulted:
                rewards.add_metric([name, "defaulted"], counts.defaulted)
            rewards.add_metric([name, "late"], counts.late)
            lag.add_metric([name], stream.lag)
            waiting.add_metric([name], counts.open)
        requests = CounterMetricFamily("driftwise_requests", "Requests by status", labels=["status"])
        for status, count in sorted(self.api.statuses.items()):
            requests.add_metric([str(status)], count)
        totals = list(itertools.accumulate(engine.commits))
        ends = [*(str(end) for end in BUCKETS), "+Inf"]
        commits = HistogramMetricFamily("driftwise_commit_seconds", "Commits by the time they took")
        commits.add_metric([], list(zip(ends, totals, strict=True)), engine.commit_seconds)
        full = GaugeMetricFamily("driftwise_disk_full", "1 while nothing can be written", value=int(bool(engine.full)))
        now = self.api.service.now
        held = CounterMetricFamily("driftwise_clock_held", "Times held back: the clock leapt ahead", value=now.held)
        yield from (decided, rewards, waiting, lag, requests, commits, full, held)


def text(api: Api, key: KeyRow | None) -> bytes:
    """The server's numbers and those of the streams that a key may see, as Prometheus reads them."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Gathered(api, key))
    return generate_latest(registry)
