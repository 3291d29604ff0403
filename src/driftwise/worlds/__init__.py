"""Drifting worlds: a path of θ, sets of arms, and tapes of random numbers that all policies of a trial share."""

from driftwise.worlds.base import Tape, World
from driftwise.worlds.given import Given
from driftwise.worlds.paths import Jumps, Sine, Still, StopAndGo, Turn, Walk

__all__ = ["KINDS", "Given", "Jumps", "Sine", "Still", "StopAndGo", "Tape", "Turn", "Walk", "World"]

# The worlds that a spec can name.
_WORLDS = (Turn, Walk, Jumps, Still, StopAndGo, Sine, Given)
KINDS: dict[str, type[World]] = {one.__name__: one for one in _WORLDS}
