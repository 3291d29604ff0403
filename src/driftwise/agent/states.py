"""Two states and a swap: whoever chooses sees the last lesson whole, and never waits for the next."""

from __future__ import annotations

from collections.abc import Callable
from threading import RLock
from typing import Any

from driftwise.errors import BadInput
from driftwise.policies.questions import Asked


def start_clock(policy: Asked, state: Any, zero: int) -> None:
    """Bring a fresh state to the tick that its time is counted from.

    Its clock then shows 0, and for a memory that is bound to times of day the time since the last of them.
    """
    phase = policy.phase(zero)
    if phase:
        state.begin(phase)


def shown_at(policy: Asked, zero: int, tick: int) -> float:
    """What the clock of a state shows at a tick, if its time is counted from tick `zero` of the wall clock."""
    return tick - zero + policy.phase(zero)


class States:
    """The state that is published, the one behind it, and one that is brought forward in time where time matters.

    `choosing` is held by whoever chooses, and by a learner only for the swap; learners take turns by a lock of theirs.
    `tick` is that of the published state, `viewed` the tick that it was last brought forward to. `zero` is the tick
    that the state counts its time from. It is None for a state that is to start at the first lesson: at the birth of
    the decision learned from, which every log of the lessons tells. Until then no time passes for it.
    """

    __slots__ = ("back", "choosing", "front", "policy", "tick", "view", "viewed", "zero")

    def __init__(self, policy: Asked, state: Any, zero: int | None = 0) -> None:
        self.policy, self.front, self.back = policy, state, state.copy()
        self.view = state.copy() if policy.ages else None
        self.zero = zero
        self.tick, self.viewed = zero or 0, -1
        self.choosing: Any = RLock()

    def facts(self) -> dict[str, Any]:
        """Its section of a snapshot's header; the numbers of the state are the policy's own."""
        return {"learned": self.tick, "zero": self.zero, "outside": self.front.outside, "told": self.front.told}

    def at(self, tick: int) -> Any:
        """The published state, or where time has passed since its last lesson a copy that is brought to this tick.

        Always from the published state in one step, so that a choice depends on nothing but lessons and its tick. For
        those who hold `choosing`.
        """
        front, view = self.front, self.view
        if view is None or self.zero is None or tick <= self.tick:
            return front
        if tick == self.viewed:
            return view
        self.viewed = -1  # until it is there: an interruption may leave half of it
        self.policy.renew(view, front)
        view.told = True  # what there is to warn of, lessons do
        self.policy.advance(view, float(tick - self.tick))
        if self.policy.reads_only:  # one of the user's own may be changed by whoever looks at it
            self.viewed = tick
        return view

    def publish(self, state: Any, tick: int, zero: int | None, then: Callable[[], None]) -> None:
        """A state that was brought up elsewhere, from a copy of the published one, takes its place."""
        state.told, state.outside = self.front.told, self.front.outside
        behind = state.copy()
        with self.choosing:
            self.front, self.back, self.tick, self.zero, self.viewed = state, behind, tick, zero, -1
            then()

    def take(
        self, x: Any, value: float, tick: int, born: int, then: Callable[[], None], done: Callable[[], bool]
    ) -> None:
        """The lesson of a reward at a tick, of a decision born at another; see `learn`."""
        first, policy = self.zero is None, self.policy
        ticks, age = float(tick - (born if first else self.tick)), float(tick - born)

        def lesson(state: Any) -> None:
            if first:
                start_clock(policy, state, born)
            policy.take(state, x, value, ticks, age)

        def published() -> None:
            if first:
                self.zero = born
            then()

        self.learn(lesson, tick, published, done)

    def learn(
        self, lesson: Callable[[Any], None], tick: int, then: Callable[[], None], done: Callable[[], bool]
    ) -> None:
        """A lesson on the state behind; published, with what else is to be seen then, when it succeeded.

        The other one is brought up to date by the same lesson, which is cheaper than copying a long window, or copied
        where a solver makes the lesson dear. Ctrl-C may strike anywhere: `done` says whether `then` has happened. If it
        has, the lesson stays; otherwise it has never been.
        """
        before = self.front, self.back, self.tick, self.zero
        try:
            lesson(self.back)
            with self.choosing:
                self.swap(tick)
                then()
            if self.policy.can_fail:
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
        """What is behind is published; the other has yet to be brought up to date. For those who hold `choosing`, or
        are alone."""
        self.front, self.back, self.tick, self.viewed = self.back, self.front, tick, -1
        self.back.told, self.back.outside = self.front.told, self.front.outside

    def level(self) -> None:
        """The state behind becomes what is published, all of it: half a lesson may have gone anywhere."""
        self.back.release()
        self.back.become(self.front)

    def unlock(self) -> None:
        """After a choice that was interrupted. For those who hold `choosing`.

        An interruption between taking a state into use and the `try` that releases it leaves it in use. The locks of
        the agent say that no other thread has it.
        """
        for state in (self.front, self.view):
            if state is not None:
                state.release()


def turn(agent: Any, lock: Any) -> Any:
    """A lock of an agent, for a thread that may take it now.

    A policy, a signal handler or a finalizer can call the agent inside a call of the same thread. Such a call would
    wait for itself, or see half of a change.
    """
    if agent._choosing._is_owned() or lock._is_owned():
        wanted, way_out = "no call of this agent inside another call of it", "call it when the first has returned"
        raise BadInput("agent", "a call by its policy, a signal handler or a finalizer", wanted, way_out)
    return lock
