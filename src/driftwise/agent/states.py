"""Two states and a swap: a choice sees the last complete update and never waits for the next one."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any

from driftwise.policies.questions import Asked


def start_clock(policy: Asked, state: Any, zero: int) -> None:
    """Bring a new state to the tick from which its time is counted.

    Its clock then shows 0; for a memory that is bound to times of day, the time since the last of them.
    """
    phase = policy.phase(zero)
    if phase:
        state.begin(phase)


def shown_at(policy: Asked, zero: int, tick: int) -> float:
    """The clock of a state at a tick, if its time is counted from tick `zero` of the wall clock."""
    return tick - zero + policy.phase(zero)


class States:
    """The published state, the state behind it, and a copy that is advanced in time where time matters.

    A thread that chooses holds `choosing`; a thread that learns holds it only for the swap. Threads that learn take
    turns by another lock. `tick` is the tick of the published state, `viewed` the tick that its copy was last advanced
    to. `zero` is the tick from which the state counts its time. It is None until the first update; it is then the tick
    of the decision that was learned from, which every log of the rewards has. Until then no time passes for the state.
    """

    __slots__ = ("back", "choosing", "copies", "front", "policy", "tick", "view", "viewed", "zero")

    def __init__(self, policy: Asked, state: Any, zero: int | None = 0) -> None:
        self.policy, self.front, self.back, self.copies = policy, state, state.copy(), policy.can_fail
        self.view = state.copy() if policy.ages else None
        self.zero = zero
        self.tick, self.viewed = zero or 0, -1
        self.choosing: Any = RLock()

    def at(self, tick: int) -> Any:
        """The published state, or, if time has passed since its last update, a copy that is advanced to this tick.

        The copy is always advanced from the published state in one step, so that a choice depends on the rewards and
        its tick only. The caller must hold `choosing`.
        """
        front, view = self.front, self.view
        if view is None or self.zero is None or tick <= self.tick:
            return front
        if tick == self.viewed:
            return view
        self.viewed = -1  # until it is complete: an interruption may leave half of it
        self.policy.renew(view, front)
        view.warned = True  # lessons give the warnings
        self.policy.advance(view, float(tick - self.tick))
        if self.policy.reads_only:  # reading may change a state of the user's own policy
            self.viewed = tick
        return view

    def publish(self, state: Any, tick: int, zero: int | None, then: Callable[[], None]) -> None:
        """Publish a state that was made elsewhere from a copy of the published one."""
        state.warned, state.outside = self.front.warned, self.front.outside
        behind = state.copy()
        with self.choosing:
            self.front, self.back, self.tick, self.zero, self.viewed = state, behind, tick, zero, -1
            then()

    def learn(
        self, lesson: Callable[[Any], None], tick: int, then: Callable[[], None], done: Callable[[], bool],
        zero: int | None = None,
    ) -> None:  # fmt: skip
        """Take an update into the state behind, and publish it, together with `then`, when it has succeeded.

        The other state is then brought up to date by the same update, which is cheaper than copying a long window, or
        by a copy where a solver makes the update expensive. Ctrl-C may interrupt at any point. `done` says whether
        `then` has happened. If it has, the update stays; otherwise it is rolled back. `zero` is the tick from which
        time is counted if this is the first update.
        """
        before = self.front, self.back, self.tick, self.zero
        try:
            lesson(self.back)
            with self.choosing:
                self.swap(tick)
                self.zero = zero if self.zero is None else self.zero
                then()
            if self.copies:
                self.policy.renew(self.back, self.front)
            else:
                lesson(self.back)
        except BaseException:
            if not done():
                with self.choosing:
                    self.front, self.back, self.tick, self.zero = before
                    self.viewed = -1
            self.level()
            raise

    def swap(self, tick: int) -> None:
        """Publish the state behind; the other one must still be brought up to date. The caller must hold `choosing`, or
        be the only thread."""
        self.front, self.back, self.tick, self.viewed = self.back, self.front, tick, -1
        self.back.warned, self.back.outside = self.front.warned, self.front.outside

    def level(self) -> None:
        """Copy the published state to the state behind, all of it, because half an update may have changed any part."""
        self.back.release()
        self.back.become(self.front)

    def unlock(self) -> None:
        """Release a state after a choice that was interrupted. The caller must hold `choosing`.

        An interruption between taking a state into use and the `try` that releases it leaves it in use. The locks of
        the agent guarantee that no other thread has it.
        """
        for state in (self.front, self.view):
            if state is not None:
                state.release()
