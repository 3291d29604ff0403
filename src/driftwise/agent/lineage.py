"""The sources of an agent's rewards, so that `merge` counts no reward twice.

`agents` are the agents whose own rewards it has: itself, and those merged into it. `logs` are the agents whose logs it
learned from, and `parts` the parts of logs that were learned, or reduced to sums. Two agents that learned different
parts of one log may be merged. Two agents that learned a common part may not, nor may an agent and one that learned its
log. A part that was rewritten (converted, cut differently) counts as another part.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from driftwise.errors import BadInput

# At most this many parts are kept, those with the smallest digests: two long lists with much in common both keep some.
MOST_PARTS = 4096
LENGTH = 16


@dataclass
class Lineage:
    """The sources of an agent's rewards, each LENGTH hex digits."""

    agents: set[str]
    logs: set[str] = field(default_factory=set)
    parts: set[str] = field(default_factory=set)

    def learned(self, parts: Iterable[str], logs: Iterable[str | None] = ()) -> None:
        """Add rewards of parts of a log, given by their digests, which these agents wrote."""
        names = {hashlib.sha256(part.encode()).hexdigest()[:LENGTH] for part in parts}
        self.parts = set(sorted(self.parts | names)[:MOST_PARTS])
        self.logs |= {one for one in logs if one is not None and len(one) == LENGTH}

    def merged(self, other: Lineage) -> None:
        """Add everything that another agent learned."""
        self.agents |= other.agents
        self.logs |= other.logs
        self.parts = set(sorted(self.parts | other.parts)[:MOST_PARTS])

    def copy(self) -> Lineage:
        return Lineage(set(self.agents), set(self.logs), set(self.parts))

    def check_apart(self, other: Lineage) -> None:
        """Refuse another agent that shares rewards with this one."""
        shared = (
            ("source", self.agents & other.agents), ("the log of source", self.agents & other.logs),
            ("the log of source", self.logs & other.agents), ("part", self.parts & other.parts),
        )  # fmt: skip
        for what, twice in shared:
            if twice:
                wanted = "an agent that has no rewards in common with this one: they would count twice"
                way_out = "merge each agent once, and agents of different logs"
                raise BadInput("other", f"{what} {min(twice)} on both sides", wanted, way_out)

    def facts(self) -> dict[str, Any]:
        """As a snapshot stores it; without logs as in earlier versions."""
        more = {"logs": sorted(self.logs), "parts": sorted(self.parts)}
        return {"sources": sorted(self.agents), **{name: listed for name, listed in more.items() if listed}}

    @classmethod
    def read(cls, facts: dict[str, Any], origin: object) -> Lineage | None:
        """What `facts` wrote; None if it is something else."""
        lists = [facts["sources"], facts.get("logs", []), facts.get("parts", [])]
        good = all(isinstance(one, str) and len(one) == LENGTH for each in lists for one in each)
        return cls(*map(set, lists)) if good and origin in lists[0] else None
