"""Chance is tested with fixed seeds: hypothesis draws the same examples in every run, and never a deadline."""

from hypothesis import settings

settings.register_profile("driftwise", derandomize=True, deadline=None)
settings.load_profile("driftwise")
