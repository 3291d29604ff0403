"""States in use: checked before compiled code sees them, and used by one thread at a time.

Compiled code does not check bounds. So a loaded state is checked when it is first used, and a second thread is refused.
"""

from __future__ import annotations

from types import TracebackType

import numpy as np

from driftwise.errors import BadInput
from driftwise.policies.plain import check_revision
from driftwise.policies.state import Layout, State
from driftwise.policies.vetting import vet


class Hold:
    """The requirements on a state for a policy: its layout and owner, arms up to `reach`, rewards in a range.

    `with hold(state):` holds it for a block; `enter` takes it into use for callers that release `in_use` themselves.
    """

    __slots__ = ("layout", "owner", "reach", "rewards")

    def __init__(self, layout: Layout, owner: str, reach: float, rewards: tuple[float, float]) -> None:
        self.layout, self.owner, self.reach, self.rewards = layout, owner, reach, rewards

    def __call__(self, state: State) -> _Held:
        return _Held(self, state)

    def enter(self, state: State) -> None:
        """Take a state of the policy into use, or raise BadInput."""
        if not isinstance(state, State):
            raise BadInput("state", state, "a state", "pass what start() gave")
        if state.layout is not self.layout:
            self.check_layout(state)
        if not state.in_use.acquire(blocking=False):
            wanted = "a state that no other thread is using"
            raise BadInput("state", "one in use", wanted, "give each thread its own copy(), or put a lock around it")
        if not state.vetted:
            try:
                self.vet(state)
            except BaseException:
                state.in_use.release()
                raise

    def read(self, state: State) -> State:
        """A state of the policy, to read its numbers."""
        with self(state):
            return state

    def vet(self, state: State) -> None:
        """Check the numbers of a loaded state against its policy."""
        if state.owner != self.owner:
            check_revision(state.owner, self.owner)
            got = f"a state of another policy ({state.owner})"
            raise BadInput("state", got, f"a state of this one ({self.owner})", "use the policy that saved it")
        vet(state, self.reach, self.rewards)
        state.vetted = True

    def check_layout(self, state: State) -> None:
        """Refuse a state with other groups, or of another revision, which may have others."""
        check_revision(state.owner, self.owner)
        if not np.array_equal(state.layout.flags, self.layout.flags):
            mine, other = ({n: g.shape for gs in one.groups.values() for n, g in gs.items()}
                           for one in (self.layout, state.layout))
            name = next(name for name in {**mine, **other} if mine.get(name) != other.get(name))
            wanted = f"a state of this policy, with {name} of shape {mine.get(name, 'none')}"
            raise BadInput("state", f"{name} of shape {other.get(name, 'none')}", wanted, "pass what its start() gave")


class _Held:
    """A state that is held for a block."""

    __slots__ = ("hold", "state")

    def __init__(self, hold: Hold, state: State) -> None:
        self.hold, self.state = hold, state

    def __enter__(self) -> State:
        self.hold.enter(self.state)
        return self.state

    def __exit__(self, kind: type[BaseException] | None, slip: BaseException | None, at: TracebackType | None) -> None:
        self.state.in_use.release()
