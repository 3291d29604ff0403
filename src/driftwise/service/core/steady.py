"""The time of a server: that of its machine, unless that leaps ahead.

A wall clock that is set ahead by mistake would make all that was learned old, and no later time would count before
the wrong one is reached. So a time more than a minute ahead of what another clock says has passed is not believed. The
first time after a start is: how long a server was away only the machine knows.
"""

from __future__ import annotations

import time
from collections.abc import Callable

AHEAD = 60.0  # seconds that a clock may be set ahead at once


def seconds_passed() -> float:
    """Seconds since some point in the past, those in which the machine slept included where it counts them."""
    boot = getattr(time, "CLOCK_BOOTTIME", None)
    return time.monotonic() if boot is None else time.clock_gettime(boot)


class Steady:
    """`wall`, held back to the largest time so far and what passed since where it is more than AHEAD beyond that.

    `held` counts the times that were held back, and `ahead` is by how many seconds the last one was. A clock that is
    set back is believed, and may return to where it was.
    """

    def __init__(self, wall: Callable[[], float] = time.time, passed: Callable[[], float] = seconds_passed) -> None:
        self._wall, self._passed = wall, passed
        self._offset: float | None = None  # the largest, of one clock to the other
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
        """What there is to say of it, if anything."""
        if not self.ahead:
            return ""
        return f"the machine's clock leapt {self.ahead:.0f} s ahead and is held back; restart to take its time as right"


def steady(now: Callable[[], float] | None) -> Steady:
    """The machine's clock; a clock that was given is believed whatever it says."""
    if now is None:
        return Steady()
    return now if isinstance(now, Steady) else Steady(now, now)
