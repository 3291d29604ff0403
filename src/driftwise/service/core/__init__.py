"""Decisions and rewards: streams, states, group commit, keys and verify."""
