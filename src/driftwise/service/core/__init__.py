"""Decisions and rewards: streams, folds, groups that are written together, keys, and all of it again (verify)."""
