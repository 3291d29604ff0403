"""Ticks (docs/contract.md#ticks): the tick of a decision, of the state it is made on, and of a reward."""

from __future__ import annotations

import math
from typing import Any, Literal

from driftwise._internal.validate import one_of, real
from driftwise.errors import BadInput
from driftwise.policies.half_life import convert_memory, seconds, ticks
from driftwise.policies.memory import Fade, Keep
from driftwise.policies.questions import Asked
from driftwise.policies.vetting import LATEST

Kind = Literal["rounds", "wall", "rewards"]
KINDS = ("rounds", "wall", "rewards")


# The limits of a `now=` ahead of the last time: so many half-lives, or so many times the longest silence so far.
# Without a known half-life, a silence counts as at least an hour.
HALF_LIVES, SILENCES, HOUR = 40.0, 1000.0, 3600.0


class Clock:
    """Time in ticks, which never decreases. `tick` is the seconds per tick on the wall clock, None on the others.

    `silence` is the longest time so far, in ticks, between two calls on the wall clock.
    """

    __slots__ = ("kind", "newest", "silence", "tick")

    def __init__(self, kind: Kind, tick: float | None) -> None:
        self.kind, self.tick = kind, tick
        self.newest = 0  # the largest tick seen; on the round clock the decisions so far
        self.silence = 0.0

    def hear(self, at: float, told: bool, half_life: float) -> None:
        """Hear the time of a call on the wall clock. A time far ahead that the caller gave (`told`) is refused: it
        would make everything that was learned old, and the clock would not advance until that time.

        half_life is the policy's, in ticks; infinite if it has none.
        """
        assert self.tick is not None
        ahead = at / self.tick - self.newest
        if not self.newest or ahead <= self.silence:
            return
        if math.isinf(half_life):
            most = SILENCES * max(self.silence, HOUR / self.tick)
        else:
            most = max(HALF_LIVES * half_life, SILENCES * self.silence)
        if told and ahead > most:
            wanted = (
                f"a time at most {most * self.tick:g} seconds after the last one, {self.newest * self.tick:.0f}: "
                f"{HALF_LIVES:g} half-lives, or {SILENCES:g} times the longest silence"
            )
            raise BadInput("now", at, wanted, "pass jump=True where so much time has passed")
        self.silence = ahead

    def read(self, at: float, learned: int) -> int:
        """The tick at which a reward that comes now is learned; `learned` is the tick of the state."""
        if self.kind == "wall":
            self.newest = max(self.newest, self._wall(at))
        elif self.kind == "rewards":
            self.newest = learned + 1
        return self.newest

    def born(self, at: float, learned: int) -> tuple[int, int]:
        """The tick of the next decision, and the tick of the state it is made on. Nothing changes."""
        if self.kind == "wall":
            born = max(self.newest, self._wall(at))
            return born, born
        if self.kind == "rewards":
            return learned + 1, learned
        return self.newest + 1, self.newest

    def upon(self, born: int) -> int:
        """The tick of the state on which a decision of this tick was made."""
        return born if self.kind == "wall" else born - 1

    def _wall(self, at: float) -> int:
        assert self.tick is not None
        tick = at / self.tick
        if not 0.0 <= tick <= LATEST:
            raise BadInput("now", at, f"a time from 0 to {LATEST * self.tick:g} seconds", "pass seconds since 1970")
        return math.floor(tick)

    def span(self, name: str, span: object) -> float:
        """A span in ticks of this clock."""
        return ticks(name, span, self.tick)

    def days(self, span: float) -> float | None:
        """Ticks as days; None on clocks that do not measure time."""
        return span * self.tick / 86400.0 if self.tick is not None and not math.isnan(span) else None


def clock_for(kind: object, tick: object, half_life: object, policy: Asked, expire_after: object = None) -> Clock:
    """The clock of this kind. For None it is the wall clock if a setting is a time, and otherwise the round clock."""
    memory = policy.single_memory
    numbers = {"half_life": half_life, "expire_after": expire_after}
    spans: dict[str, Any] = {name: value for name, value in numbers.items() if isinstance(value, str)}
    if tick is not None:
        spans["tick"] = tick
    if memory is not None and memory.timed:
        spans["memory"] = memory
    if kind is None:
        kind = "wall" if spans and not policy.counts_rounds else "rounds"
        for name, value in numbers.items():
            if kind == "wall" and value is not None and name not in spans:
                wanted = f"a span of time beside {next(iter(spans))}=, which is time: a number alone counts decisions"
                raise BadInput(name, value, wanted, f'pass {name}="{seconds(name, value):g}s" if it is seconds')
    one_of("clock", kind, KINDS)
    if kind == "wall":
        return Clock("wall", _tick(tick, half_life, policy, expire_after))
    for name, value in spans.items():
        counted = {"rounds": "decisions", "rewards": "rewards"}[str(kind)]
        if name == "tick":
            raise BadInput(name, value, f'no tick with clock="{kind}", which counts {counted}', "leave it out")
        way_out = "pass a number" if policy.counts_rounds else 'pass clock="wall", or a number'
        wanted = f'a number of {counted}, which clock="{kind}" counts'
        raise BadInput(name, value, wanted, way_out)
    return Clock(kind, None)  # type: ignore[arg-type]


def _tick(tick: object, half_life: object, policy: Asked, expire_after: object) -> float:
    """The seconds of a tick on the wall clock. Unless given, it is a thousandth of the half-life, of a memory given in
    time, or of the time after which a bank's decisions expire; a second if nothing is forgotten."""
    if tick is not None:
        return seconds("tick", tick)
    if half_life is not None:
        return seconds("half_life", half_life) / 1000.0
    memory = policy.single_memory
    if memory is not None and memory.timed:
        return min(one.seconds for one in memory.timed.values()) / 1000.0
    if policy.weighs and expire_after is not None:  # it finds its memory itself, in ticks of any length
        return seconds("expire_after", expire_after) / 1000.0
    if not policy.timeless:
        wanted = "seconds a tick, because this policy's memory is counted in ticks"
        raise BadInput("tick", None, wanted, 'pass tick="1m", or a memory in time such as Fade("14d")')
    return 1.0


def in_ticks(policy: Asked, half_life: object, clock: Clock) -> Any:
    """The policy with Keep replaced by the Fade that a half-life means, or a memory given in time counted in ticks."""
    memory = policy.single_memory
    if half_life is None:
        if memory is None or not memory.timed or clock.tick is None:
            return policy
        return policy.remembering(memory.in_ticks(clock.tick))
    if not isinstance(memory, Keep):
        got = "a bank, which finds its memory itself" if policy.adapts else memory
        raise BadInput("half_life", got, "a policy with memory=Keep(), which a half-life replaces", "leave it out")
    return policy.remembering(Fade(convert_memory(clock.span("half_life", half_life), "half_life", "forget")))


def check_meaning(policy: Asked, clock: Clock) -> None:
    """Refuse meaningless combinations of policy and clock (docs/contract.md#ticks)."""
    if policy.counts_rounds and clock.kind != "rounds":
        wanted = f'clock="rounds": {type(policy).__name__} counts rounds that follow each other'
        raise BadInput("clock", clock.kind, wanted, "use a bank, which takes any clock")
    if clock.kind == "wall":
        policy.check_wall_clock()


def moment(name: str, value: object) -> float:
    """A point in time in seconds since 1970, from a number or a datetime."""
    stamp = getattr(value, "timestamp", None)
    return real(name, stamp() if callable(stamp) else value, -1e15, 1e15, way_out="pass seconds, as time.time() does")
