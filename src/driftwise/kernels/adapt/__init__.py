"""Adaptation to unknown drift: MASTER, BOB and the bank over lanes of the linear and generalized linear families."""
