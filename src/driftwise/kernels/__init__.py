"""Loops on arrays: numpy, numba, math and theory, nothing else. A name that ends in _ writes into its arguments."""

from driftwise._internal.compiling import entry, formula, kernel, late, loop, outside, part, piece, routine, stored_as

__all__ = ["entry", "formula", "kernel", "late", "loop", "outside", "part", "piece", "routine", "stored_as"]
