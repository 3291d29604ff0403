"""Loops on arrays: numpy, numba, math and theory, nothing else. A name that ends in _ writes into its arguments."""

from driftwise._internal.compiling import brief, entry, formula, kernel, loop, outside, part, piece, routine, stored_as

__all__ = ["brief", "entry", "formula", "kernel", "loop", "outside", "part", "piece", "routine", "stored_as"]
