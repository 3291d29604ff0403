"""The comparison of a policy with the units held back, computed along the log.

A comparison is about the decisions of one generation, or of one step of a ramp: the policy and the share of units that
are held back are fixed there. It reads rewards in their order, so that the dashboard, `/metrics`, a ramp and `verify`
get the same result after reward k, to the last bit.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from driftwise.errors import DriftwiseError
from driftwise.lift import Guardrail, Lift
from driftwise.service.core.setup import Setup
from driftwise.service.core.steps import Steps
from driftwise.service.stores.records import EraRow
from driftwise.service.stores.store import Store

if TYPE_CHECKING:
    from driftwise.service.core.serving import Service
    from driftwise.service.core.stream import Stream

MOST = 50_000  # rewards that are read at once; the next look continues
_STRETCH = 2_000
_WORD = 2.0**64
_REWARDS = """
SELECT r.seq, d.seq, d.cohort, d.unit, r.value FROM reward r JOIN decision d
ON d.stream = r.stream AND d.event_id = r.event_id
WHERE r.stream = ? AND r.seq > ? AND r.seq <= ? AND d.era = ? ORDER BY r.seq
"""


def cohort_of(unit: int, held: float) -> str:
    """The cohort of a unit, by the hash that is kept of it, where a share of units is held back."""
    return "baseline" if unit + 2**63 < held * _WORD else "live"


class Following:
    """Rewards of a generation's decisions after number `after`, while a share of units is `held` back."""

    def __init__(
        self, stream: int, era: int, held: float, rewards: tuple[float, float],
        guardrails: Mapping[str, Guardrail] | None = None, after: int = 0, begun_at: int = 0,
    ) -> None:  # fmt: skip
        self.stream, self.era, self.after, self.seq = stream, era, after, begun_at
        self.held, self.lift = held, Lift(1.0 - held, rewards, guardrails)

    def follow(self, store: Store, upto: int, most: int = MOST) -> bool:
        """Read rewards up to a number; whether all of them were read."""
        last = min(upto, self.seq + most)
        if last > self.seq:
            rows = iter(store.run(_REWARDS, values=(self.stream, self.seq, last, self.era)))
            while stretch := list(itertools.islice(rows, _STRETCH)):
                self._add(store, stretch)
            self.seq = last
        return self.seq >= upto

    def _add(self, store: Store, rows: list[Any]) -> None:
        """Add rewards of decisions whose cohort agrees with the share. A replica that learned of a step later has
        decided by the earlier share; a fallback or a forgotten unit has no cohort."""
        found = [
            (seq, unit, cohort == "live", value)
            for seq, number, cohort, unit, value in rows
            if number > self.after and unit is not None and cohort == cohort_of(unit, self.held)
        ]
        if found:
            seqs, units, live, values = zip(*found, strict=True)
            sent: dict[int, dict[str, float]] = {}
            for one in store.guardrails(self.stream, rows[0][0] - 1, rows[-1][0]) if self.lift.guardrails else ():
                sent.setdefault(one.seq, {})[one.name] = one.value
            self.lift.add(units, live, values, [sent.get(seq) for seq in seqs])


class Comparisons:
    """The comparison of every stream, each continued from where the last one ended."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[tuple[float, ...], Following]] = {}

    def followed(self, store: Store, era: EraRow, made: Setup, steps: Steps, upto: int) -> Following:
        """The comparison of a generation with the rewards up to a number, or a first part of them."""
        about = era.number, steps.held, steps.after, steps.begun_at
        known = self._known.get(era.stream)
        if known is None or known[0] != about:
            known = self._known[era.stream] = about, following(era, made, steps)
        known[1].follow(store, upto)
        return known[1]


class Looking:
    """Watches every stream of a service; `look` is asked every few seconds, and a failure waits for the next time."""

    def __init__(self, service: Service) -> None:
        self.service, self.compared = service, Comparisons()

    async def look(self) -> None:
        for stream in list(self.service.engine.streams.values()):
            with suppress(DriftwiseError):
                await self.look_at(stream)

    async def look_at(self, stream: Stream) -> None:
        raise NotImplementedError


def comparable(steps: Steps) -> bool:
    """Whether a stream whose mode is holdback has a policy's cohort and a baseline's now."""
    return 0.0 < steps.held < 1.0


def following(era: EraRow, made: Setup, steps: Steps) -> Following:
    """The comparison of a generation, or of the step of its ramp."""
    low, high = made.body.rewards
    rails = {name: Guardrail(one.margin, one.better) for name, one in (made.body.guardrails or {}).items()}
    return Following(
        era.stream, era.number, steps.held, (float(low), float(high)), rails, steps.after, steps.begun_at
    )
