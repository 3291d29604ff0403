"""Experiments as data: specs, the trials they ask for, and what these leave on disk."""
