"""Loops on arrays: numpy, numba, math and theory, nothing else. A name that ends in _ writes into its arguments."""

from driftwise.compiling import kernel, part, piece, routine

__all__ = ["kernel", "part", "piece", "routine"]
