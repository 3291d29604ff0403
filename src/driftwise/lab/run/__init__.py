"""Experiments as data: specs, their trials, and the results on disk."""
