"""An agent's log: a row for every decision when it closes (docs/contract.md#logs)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from driftwise.agent.encoding import candidates
from driftwise.agent.record import Entry, Item, Logged
from driftwise.errors import BadInput
from driftwise.kernels.point import Ints
from driftwise.ledger import LESSONS, Verdict
from driftwise.policies.arms import ActionSet
from driftwise.policies.own import Lent
from driftwise.tables.write import LogRow, Status, Writer, last_lesson

if TYPE_CHECKING:
    from driftwise.agent.parts import AgentParts


class AgentLog:
    """The log that an agent writes. After `flush` it is on disk; after `close` the agent writes no more.

    The book makes a `row` and appends it to those that wait while no other thread chooses.
    """

    def __init__(self, parts: AgentParts, writer: Writer) -> None:
        self._parts, self._writer = parts, writer
        self.arms = writer.arms

    @property
    def path(self) -> Path:
        """The folder of its parts."""
        return self._writer.folder

    @property
    def status(self) -> Status:
        """The numbers of rows on disk, waiting, and set aside because they cannot be written; and the reason."""
        return self._writer.status

    @property
    def waiting(self) -> list[LogRow]:
        """Rows that wait for their part: see `Writer.waiting`."""
        return self._writer.waiting

    def added(self) -> None:
        """A row was appended to the waiting ones."""
        self._writer.added()

    def row(self, entry: Entry, verdict: Verdict, value: float) -> LogRow:
        """The row of an open decision that is about to be closed; its counts do not include it yet.

        Of one that was made before the log, the place and the arms are known only for a policy of the user's own.
        """
        one, shown, parts, x = entry.decision, entry.shown, self._parts, entry.x
        lesson, lent = verdict in LESSONS, type(x) is Lent
        place = shown.place if shown is not None else x.arm if lent else None
        if one.n == 0:  # a continuous set, which has no indices
            place = None
        arms = None if shown is None else shown.arms
        if arms is None and lent and self.arms:
            arms = x.arms
        return LogRow(
            one.seq, one.id, None, one.at, one.born, place, None if one.item is None else str(one.item), one.n,
            x.column if lent else x, one.propensity, one.explored, one.score, one.mean, one.bonus,
            one.policy, None if shown is None else shown.state_seq,
            value if lesson else None, parts.book.told_at if lesson else None,
            parts.states.tick if lesson else None,
            parts.book.lessons + 1 if lesson else None, verdict.value,
            None if shown is None else shown.context, None if shown is None else shown.candidates,
            None if arms is None else arms.columns[0].T,
            one.measure if shown is None else shown.measure, None, parts.clock.upon(one.born), one.draws,
        )  # fmt: skip

    def shown(
        self, offered: ActionSet, place: int, items: Sequence[Item] | None, places: Ints | None,
        context: dict[str, Any] | None, measure: str | None,
    ) -> Logged:
        """What will be logged of a decision that is being made."""
        named = None if items is None else candidates(items, places)
        kept = offered.arms if self.arms and offered.listed else None
        return Logged(self._parts.book.lessons, place, kept, context, named, measure)

    def flush(self) -> None:
        """Write everything that has closed; it is on disk when this returns."""
        self._writer.flush()

    def close(self) -> None:
        """Flush, and stop writing."""
        book = self._parts.book
        with self._parts.turn(self._parts.choosing):
            mine = book.log is self
            if mine:
                book.log = None
        try:
            self._writer.close()
        finally:
            book.unlogged += mine * self.status.aside

    def disown(self) -> None:
        """In the child of a fork: the rows belong to the parent, whose thread writes them."""
        self._writer.disown()

    def __enter__(self) -> AgentLog:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def log_to(parts: AgentParts, path: str | Path, arms: bool, **options: Any) -> AgentLog:
    """See `Agent.log_to`."""
    if not isinstance(path, (str, Path)):
        raise BadInput("path", path, "the path of a folder", 'pass "log", say')
    with parts.turn(parts.learning):
        if parts.book.log is not None:
            raise BadInput("path", str(path), "one log at a time", f"close the one in {parts.book.log.path} first")
        fields = None if parts.features is None else parts.features.fields
        writer = Writer(path, arms=arms, fields=fields, origin=parts.origin, **options)
        log = AgentLog(parts, writer)
        try:
            writer.begin()
            _check_end(parts, Path(path))  # while no other process can write to the folder
            with parts.choosing:
                parts.book.log = log
        except BaseException:
            if parts.book.log is not log:
                writer.close()
            raise
    return log


def _check_end(parts: AgentParts, folder: Path) -> None:
    """Check that the log in a folder, if there is one, ends where the agent is."""
    lessons = parts.book.lessons
    last = last_lesson(folder)
    if last and last != lessons:
        wanted = f"a log that ends at learned reward {lessons}, as this agent does"
        way_out = "pass a new folder" + (", or learn_log this one first" if last > lessons else "")
        raise BadInput("path", f"a log that ends at learned reward {last}", wanted, way_out)
