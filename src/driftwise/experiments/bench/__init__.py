"""How long a round takes: ours beside NumPy, a loop in C and other packages, in one run."""
