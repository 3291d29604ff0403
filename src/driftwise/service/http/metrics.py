"""Numbers for Prometheus. They are gathered when they are requested, so counting costs a request nothing."""

from __future__ import annotations

import itertools
import math
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

from driftwise.lift import Guardrail
from driftwise.service.core.access import sees
from driftwise.service.core.engine import BUCKETS
from driftwise.service.dashboard.signals import Signals
from driftwise.service.stores.records import KeyRow

if TYPE_CHECKING:
    from driftwise.service.http.app import Api

TYPE = "text/plain; version=0.0.4; charset=utf-8"
_SIGNALS: dict[str, tuple[str, ...]] = {  # the help of each gauge, and its labels beside the stream
    "mean_reward": ("Mean reward of the newest 2000 decisions", "cohort"),
    "arm_share": ("Share of the newest 2000 decisions that played an arm", "arm"),
    "reward_delay_seconds": ("Quantiles of the delay of rewards", "q"),
    "lift": ("Policy against held-back units: difference, lift, bounded difference; valid at any time", "of", "end"),
    "sample_ratio_mismatch": ("1 while cohorts do not have the drawn shares of units",),
    "effective_observations": ("Effective observations of the estimate",),
    "memory_ticks": ("Length of the memory in use, in ticks",),
    "paused": ("1 while the stream is paused",),
    "ramp_step": ("Number of the step of the ramp, from 0",),
    "ramp_share": ("Share of units that get the policy at this step of the ramp",),
    "ramp_stopped": ("1 when the ramp was stopped",),
    "guardrail": ("How much worse the policy is than the held-back units; valid at any time", "metric", "end"),
    "guardrail_margin": ("How much worse a guardrail may be", "metric"),
}


class _Gathered(Collector):
    def __init__(self, api: Api, signals: Signals, key: KeyRow | None) -> None:
        self.api, self.signals, self.key = api, signals, key

    def collect(self) -> Iterator[Metric]:
        engine = self.api.service.engine
        decided = CounterMetricFamily("driftwise_decisions", "Decisions on disk", labels=["stream"])
        rewards = CounterMetricFamily("driftwise_rewards", "Rewards by verdict", labels=["stream", "verdict"])
        lag = GaugeMetricFamily("driftwise_replica_lag", "Rewards of replicas not learned here yet", labels=["stream"])
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
            lag.add_metric([name], stream.peers.lag)
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
        held = CounterMetricFamily("driftwise_clock_held", "Jumps of the clock that were held back", value=now.held)
        hooks = CounterMetricFamily("driftwise_webhook", "Messages of the webhook", labels=["outcome"])
        if self.api.sender is not None:
            hooks.add_metric(["sent"], self.api.sender.sent)
            hooks.add_metric(["failed"], self.api.sender.failed)
        yield from (decided, rewards, waiting, lag, requests, commits, full, held, hooks)
        yield from self._signals()

    def _signals(self) -> Iterator[Metric]:
        """Rewards, memories and shares of streams; see dashboard/signals.py."""
        gauges = {name: GaugeMetricFamily(f"driftwise_{name}", told, labels=["stream", *labels])
                  for name, (told, *labels) in _SIGNALS.items()}  # fmt: skip

        def tell(name: str, value: float, *labels: str) -> None:
            if math.isfinite(value):
                gauges[name].add_metric(labels, value)

        for name, stream in self.api.service.engine.streams.items():
            if not sees(self.key, name):
                continue
            policy, state = stream.fold.policy, stream.fold.states.front
            tell("effective_observations", policy.worth(state), name)
            tell("memory_ticks", policy.remembered(state), name)
            tell("paused", float(stream.paused), name)
            body, steps = stream.setup.body, stream.steps
            if body.ramp is not None:
                tell("ramp_step", float(steps.place), name)
                tell("ramp_share", 1.0 - steps.held, name)
                tell("ramp_stopped", float(steps.stopped), name)
            for metric, rail in (body.guardrails or {}).items():
                tell("guardrail_margin", rail.margin, name, metric)
            found = self.signals.newest(stream.row.id)
            if found is None:
                continue
            for cohort, mean in found.means.items():
                tell("mean_reward", mean, name, cohort)
            for arm, share in found.shares.items():
                tell("arm_share", share, name, arm)
            for quantile, delay in zip(("0.5", "0.9", "0.99"), found.delays, strict=True):
                tell("reward_delay_seconds", delay, name, quantile)
            look = found.look
            if look is not None:
                tell("sample_ratio_mismatch", float(not look.split_holds), name)
                for kind, one in (("difference", look.difference), ("lift", look.lift), ("bounded", look.bounded)):
                    for end, value in (("value", one.value), ("low", one.low), ("high", one.high)):
                        tell("lift", value, name, kind, end)
                for metric, found_rail in look.guardrails.items():
                    declared = (body.guardrails or {})[metric]
                    one = Guardrail(declared.margin, declared.better).harm(found_rail)
                    for end, value in (("value", one.value), ("low", one.low), ("high", one.high)):
                        tell("guardrail", value, name, metric, end)
        yield from gauges.values()


def metrics_text(api: Api, signals: Signals, key: KeyRow | None) -> bytes:
    """The server's numbers and those of the streams that a key may see, as Prometheus reads them."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Gathered(api, signals, key))
    return generate_latest(registry)
