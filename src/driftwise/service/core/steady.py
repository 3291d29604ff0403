"""The time of a server: its machine's clock, unless that jumps ahead.

If a wall clock is set ahead by mistake, everything that was learned would look old, and the server's time would not
advance until the wrong time is reached. So a time more than a minute ahead of the monotonic clock is held back. The
first time after a start is accepted, because only the machine's clock knows how long the server was stopped.
"""

from __future__ import annotations

import time
from collections.abc import Callable

AHEAD = 60.0  # seconds that a clock may be set ahead at once


def seconds_passed() -> float:
    """Monotonic seconds, with the time in which the machine was suspended if the system counts it."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


class Steady:
    """The time `wall`, held back if it is more than AHEAD beyond the largest time so far plus the monotonic time since.

    `held` counts how often it was held back, and `ahead` is by how many seconds the last time. A clock that is set back
    is accepted, and may return to where it was.
    """

    def __init__(self, wall: Callable[[], float] = time.time, passed: Callable[[], float] = seconds_passed) -> None:
        self._wall, self._passed = wall, passed
        self._offset: float | None = None  # the largest difference between the two clocks
        self.held, self.ahead = 0, 0.0

    def __call__(self) -> float:
        now, since = self._wall(), self._passed()
        offset = now - since
        if self._offset is None or offset <= self._offset + AHEAD:
            self._offset = offset if self._offset is None else max(self._offset, offset)
            self.ahead = 0.0
            return now
        self.held, self.ahead = self.held + 1, offset - self._offset
        return since + self._offset

    @property
    def word(self) -> str:
        """The warning about the clock; empty if there is none."""
        if not self.ahead:
            return ""
        return f"the machine's clock jumped {self.ahead:.0f} s ahead and is held back; restart if its time is right"


def steady(now: Callable[[], float] | None) -> Steady:
    """The machine's clock, held back; a clock that was given is used unchanged."""
    if now is None:
        return Steady()
    return now if isinstance(now, Steady) else Steady(now, now)
