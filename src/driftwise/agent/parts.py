"""The parts of an agent, by public names, for the modules that carry out its calls. `Agent` is the interface to them.

A module that learns a log, merges, explains or writes a snapshot takes them, and reads nothing private of an agent.
Here are also the sources of its rewards, and what a fork does to it.
"""

from __future__ import annotations

import hashlib
import os
import threading
import time
import weakref
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from driftwise.agent.clock import Clock, moment
from driftwise.agent.drift import Meter
from driftwise.agent.encoding import Locked
from driftwise.agent.record import Book, Recent, new_process
from driftwise.agent.states import States
from driftwise.errors import BadInput
from driftwise.ledger import Terms
from driftwise.tables.features import Features

if TYPE_CHECKING:
    from driftwise.agent.agent import Agent

class AgentParts:
    """The settings of an agent, and what it has learned and decided. `learning` and `choosing` are its two locks, and
    `busy` is held inside `learning` by what may take long: it can be asked whether it is held.

    `seq` is the number of the last decision, `driven` the newest now= that a caller gave, and `process` the part of
    automatic ids that is new after every start and fork.
    """

    states: States
    choosing: Any
    seq: int
    driven: float | None

    def __init__(
        self, policy: Any, clock: Clock, terms: Terms, book: Book, encoder: Locked | None, now: Callable[[], float], *,
        epsilon: float, seed: int, max_open: int,
    ) -> None:  # fmt: skip
        self.policy, self.clock, self.terms, self.book, self.encoder = policy, clock, terms, book, encoder
        self.now, self.epsilon, self.seed, self.max_open = now, epsilon, seed, max_open
        self.alone, self.digest = policy.counts_rounds, policy.digest
        self.process, self.origin = new_process(), os.urandom(8).hex()
        self.lineage = Lineage({self.origin})
        self.begin(policy.start(seed), None if clock.kind == "wall" else 0)

    def begin(self, state: Any, zero: int | None) -> None:
        """Start with a state and the tick from which it counts (see `States`)."""
        self.states, self.meter, self.shown = States(self.policy, state, zero), Meter(), Recent()
        self.seq, self.driven = 0, None
        self.choosing, self.learning, self.busy = self.states.choosing, threading.RLock(), threading.Lock()
        with _births:  # a fork must take its locks
            _living.add(self)

    @property
    def features(self) -> Features | None:
        return None if self.encoder is None else self.encoder.features

    @property
    def counts(self) -> dict[str, int]:
        """See `Agent.counts`."""
        book = self.book
        aside = 0 if book.log is None else book.log.status.aside
        return {**book.counts, "open": len(book.open), "unlogged": book.unlogged + aside}

    def count(self, event: str) -> None:
        """Count an event outside the chooser's lock. All other events are counted under it."""
        with self.choosing:
            self.book.counts[event] += 1

    def turn(self, lock: Any) -> Any:
        """A lock of the agent, for a thread that may take it now.

        A policy, a signal handler or a finalizer can call the agent inside a call of the same thread. Such a call would
        wait for itself, or see half of a change.
        """
        if self.choosing._is_owned() or lock._is_owned():
            wanted, way_out = "no call of this agent inside another call of it", "call it when the first has returned"
            raise BadInput("agent", "a call by its policy, a signal handler or a finalizer", wanted, way_out)
        return lock

    def at(self, now: object, jump: bool = True) -> float:
        """The time of a call: that of the caller, or that of the agent's clock. Without `jump` see `Clock.hear`."""
        given: Any = self.now() if now is None else now
        at: float = given if type(given) is float and -1e15 <= given <= 1e15 else moment("now", given)
        if not jump and self.clock.tick is not None:
            self.clock.hear(at, now is not None, self.policy.half_life)
        return at

    def asked_at(self, now: object = None) -> float:
        """The time for a question: the given one, or the newest that a caller gave, or that of the clock."""
        return self.at(self.driven if now is None else now)

    def lesson(
        self, lesson: Callable[[Any], None], tick: int, then: Callable[[], None], done: Callable[[], bool]
    ) -> None:
        """See `States.learn`. A failure is counted; Ctrl-C is none."""
        try:
            self.states.learn(lesson, tick, then, done)
        except Exception:
            self.count("failed")
            raise


def parts_of(agent: Agent) -> AgentParts:
    """The parts of an agent, for modules that are given one."""
    return agent._parts


# At most this many parts are kept, those with the smallest digests: two long lists with much in common both keep some.
MOST_PARTS = 4096
LENGTH = 16


@dataclass
class Lineage:
    """The sources of an agent's rewards, each LENGTH hex digits, so that `merge` counts no reward twice.

    `agents` are the agents whose own rewards it has: itself, and those merged into it. `logs` are the agents whose logs
    it learned from, and `parts` the parts of logs that were learned, or reduced to sums. Two agents that learned
    different parts of one log may be merged. Two agents that learned a common part may not, nor may an agent and one
    that learned its log. A part that was rewritten (converted, cut differently) counts as another part.
    """

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


# Fork in a process with threads. Before a fork all locks of all agents are taken, so that no update and no swap is half
# done in the child's memory. Afterwards both processes release them. In the child an agent gets a new name for its ids,
# and its log stays with the parent. A lock that cannot be taken within PATIENCE seconds is held by a very long update,
# or by the thread that forks. That agent keeps working in the parent. Its copy in the child may be half of an update
# and refuses every call.
PATIENCE = 5.0
# How long to wait for one lock before all are released: the thread that has it may wait for one of ours.
_STEP = 0.2

_living: weakref.WeakSet[AgentParts] = weakref.WeakSet()
_births = threading.Lock()
_held: list[tuple[AgentParts, list[Any]]] = []
_torn: list[AgentParts] = []


class _Torn:
    """Replaces the locks of an agent that a fork copied in the middle of an update."""

    def acquire(self, *_: object, **__: object) -> bool:
        wanted = "an agent that was not learning when the process forked"
        raise BadInput("agent", "a copy made by a fork", wanted, "load a snapshot in the child, dw.Agent.load(path)")

    def release(self) -> None:
        """Nothing was acquired."""

    def _is_owned(self) -> bool:
        return False

    def __enter__(self) -> None:
        self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


def _take(parts: AgentParts) -> bool:
    """Take all locks of an agent in its own order, or none."""
    encoder = parts.encoder
    wanted = [*([] if encoder is None else [encoder.lock]), parts.learning, parts.choosing]
    for count, lock in enumerate(wanted):
        if lock._is_owned() or not lock.acquire(timeout=_STEP):
            for taken in wanted[:count]:
                taken.release()
            return False
    _held.append((parts, wanted))
    return True


def _release() -> None:
    for _, locks in _held:
        for lock in reversed(locks):
            lock.release()
    _held.clear()


def _before() -> None:
    _births.acquire()
    until = time.monotonic() + PATIENCE
    while True:
        _torn[:] = [parts for parts in list(_living) if not _take(parts)]
        if not _torn or time.monotonic() > until:
            return
        _release()


def _in_parent() -> None:
    _torn.clear()
    _release()
    _births.release()


def _in_child() -> None:
    for parts in _torn:
        parts.learning = parts.choosing = parts.states.choosing = _Torn()  # type: ignore[assignment]
        if parts.encoder is not None:
            parts.encoder.lock = threading.RLock()
    for parts in list(_living):
        parts.process = new_process()
        if parts.book.log is not None:
            parts.book.log.disown()
            parts.book.log = None
    _in_parent()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_before, after_in_parent=_in_parent, after_in_child=_in_child)
