"""The time of a round: our policies, NumPy, a loop in C and other packages, measured in one run."""
