"""Experiments: how they are run, and those of the paper and of the field."""
