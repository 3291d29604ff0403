"""Which machine and which version of driftwise computed an era, and what follows where it was another one.

A machine is known by its probe (machine.py). A state that another machine or version computed may be "not recomputable
here", which is not damage (docs/contract.md#machines). The version only explains a difference: a version that computes
the same bits is no reason to refuse a state. Versions that recorded no probe, or one of the C library, computed with
functions that this version does not call: a server goes on with their streams in a new era (refold.py).
"""

from __future__ import annotations

from driftwise._internal.machine import differing, probe
from driftwise._internal.sources import COMPILED, source_hash
from driftwise.errors import BadInput
from driftwise.service.core.fold import Unlike
from driftwise.service.stores.records import Damaged, EraRow


class Foreign(BadInput):
    """Computed by another machine, library or version."""

    exit_code = 5


def _sources() -> str:
    return source_hash(*COMPILED)


def begun(era: EraRow, reason: str | None) -> EraRow:
    """An era that begins now, computed by this machine and version."""
    return era._replace(reason=reason, probe=probe(), sources=_sources())


def earlier(era: EraRow) -> bool:
    """Whether a version computed an era that called the C library's elementary functions."""
    return era.probe is None or era.probe.startswith("c:")


def foreign(era: EraRow) -> bool:
    """Whether another machine is known to have computed an era."""
    return era.probe is not None and era.probe != probe()


def elsewhere(era: EraRow) -> str:
    """Which other machine or version computed an era; empty where it was this one."""
    if earlier(era):
        return "an earlier version of driftwise, with the C library's functions"
    if foreign(era):
        return f"another machine or library: other bits from {differing(str(era.probe), probe())}"
    return "another version of driftwise" if era.sources != _sources() else ""


def check_machine(where: object, stream: str, era: EraRow) -> None:
    """Refuse to go on with an era that another machine computed, even if it has come to the same bits so far."""
    if foreign(era):
        raise _foreign(where, stream, elsewhere(era))


def refused(where: object, stream: str, error: Unlike) -> BadInput:
    """The sentence for an era that does not come out as it was written down."""
    other = elsewhere(error.era)
    if other:
        return _foreign(where, stream, other)
    return Damaged(str(where), f"rewards of stream {stream} that fold to another state: {error}")


def _foreign(where: object, stream: str, other: str) -> Foreign:
    way_out = f"driftwise refold {where} folds the rewards again here, as a new era"
    return Foreign(str(where), f"stream {stream}, computed by {other}", "states that were computed here", way_out)
