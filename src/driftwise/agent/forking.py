"""Fork in a process with threads: agents stay consistent.

Before a fork all locks of all agents are taken, so that no update and no swap is half done in the child's memory.
Afterwards both processes release them. In the child an agent gets a new name for its ids, and its log stays with the
parent.

A lock that cannot be taken within PATIENCE seconds is held by a very long update, or by the thread that forks. That
agent keeps working in the parent. Its copy in the child may be half of an update and refuses every call.
"""

from __future__ import annotations

import os
import threading
import time
import weakref
from typing import TYPE_CHECKING, Any

from driftwise.agent.record import new_process
from driftwise.errors import BadInput

if TYPE_CHECKING:
    from driftwise.agent.parts import AgentParts

PATIENCE = 5.0
# How long to wait for one lock before all are released: the thread that has it may wait for one of ours.
_STEP = 0.2

_living: weakref.WeakSet[AgentParts] = weakref.WeakSet()
_births = threading.Lock()
_held: list[tuple[AgentParts, list[Any]]] = []
_torn: list[AgentParts] = []


def enrol(parts: AgentParts) -> None:
    """Register an agent of this process, whose locks a fork must take."""
    with _births:
        _living.add(parts)


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
