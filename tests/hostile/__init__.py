"""Hostile input: damaged states, wrong calls, and processes without rights, home or name."""
