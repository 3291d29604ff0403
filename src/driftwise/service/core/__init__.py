"""Decisions and rewards: streams, folds, group commit, keys and verify."""
