"""Which machine and version of driftwise computed a generation, and what to do if it was another one.

A machine is known by its probe (machine.py). A state that another machine or version computed may be "not recomputable
here", which is not damage (docs/contract.md#machines). The version only explains a difference: a version that computes
the same bits is no reason to refuse a state. Versions that recorded no probe, or one of the C library, computed with
functions that this version does not call: a server goes on with their streams in a new generation (refold.py). So it
does where a policy was revised (policies/plain.py): this version has the arithmetic of the last revision only.
"""

from __future__ import annotations

from driftwise._internal.machine import differing, probe
from driftwise._internal.sources import COMPILED, source_hash
from driftwise.errors import BadInput
from driftwise.policies.plain import revision_in
from driftwise.service.core.fold import Unlike
from driftwise.service.core.setup import Era
from driftwise.service.stores.records import Damaged, EraRow


class Foreign(BadInput):
    """Computed by another machine, library or version."""

    exit_code = 5


class Revised(Foreign):
    """Computed by an earlier revision of its policy."""

    exit_code = 6


def _sources() -> str:
    return source_hash(*COMPILED)


def begun(era: EraRow, reason: str | None) -> EraRow:
    """A generation that begins now, computed by this machine and version."""
    return era._replace(reason=reason, probe=probe(), sources=_sources())


def earlier(era: EraRow) -> bool:
    """Whether a generation was computed by a version that called the C library's elementary functions."""
    return era.probe is None or era.probe.startswith("c:")


def foreign(era: EraRow) -> bool:
    """Whether another machine is known to have computed a generation."""
    return era.probe is not None and era.probe != probe()


def revised(era: Era) -> bool:
    """Whether an earlier revision of its policy computed a generation."""
    return revision_in(era.row.policy) < revision_in(era.setup.policy.digest)


def elsewhere(era: Era) -> str:
    """Which other machine or version computed a generation; empty where it was this one."""
    row = era.row
    if revised(era):
        return f"revision {revision_in(row.policy)} of its policy"
    if earlier(row):
        return "an earlier version of driftwise, with the C library's functions"
    if foreign(row):
        return f"another machine or library: other bits from {differing(str(row.probe), probe())}"
    return "another version of driftwise" if row.sources != _sources() else ""


def check_machine(where: object, stream: str, era: Era) -> None:
    """Refuse to go on with a generation that another machine or an earlier revision of its policy computed, even if it
    has come to the same bits so far."""
    if foreign(era.row) or revised(era):
        raise _foreign(where, stream, era)


def refused(where: object, stream: str, era: Era, error: Unlike) -> BadInput:
    """The sentence for a generation that does not come out as it was written down."""
    if elsewhere(era):
        return _foreign(where, stream, era)
    return Damaged(str(where), f"rewards of stream {stream} that give another state: {error}")


def _foreign(where: object, stream: str, era: Era) -> Foreign:
    way_out = f"driftwise refold {where} learns the rewards again here"
    got, wanted = f"stream {stream}, computed by {elsewhere(era)}", "states that were computed here"
    if revised(era):
        wanted = f"revision {revision_in(era.setup.policy.digest)}, which is the one that this version has"
        return Revised(str(where), got, wanted, f"{way_out}; stop servers of other versions first")
    return Foreign(str(where), got, wanted, way_out)
