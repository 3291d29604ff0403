"""The parts of an agent, by public names, for the modules that carry out its calls. `Agent` is the interface to them.

A module that learns a log, merges, explains or writes a snapshot takes them, and reads nothing private of an agent.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from driftwise.agent.clock import Clock, moment
from driftwise.agent.drift import Meter
from driftwise.agent.encoding import Locked
from driftwise.agent.forking import enrol
from driftwise.agent.lineage import Lineage
from driftwise.agent.record import Book, Recent, new_process
from driftwise.agent.states import States
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
        enrol(self)

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

    def at(self, now: object) -> float:
        """The time of a call: that of the caller, or that of the clock."""
        at: Any = self.now() if now is None else now
        return at if type(at) is float and -1e15 <= at <= 1e15 else moment("now", at)

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
