"""The largest index over a set of arms that is no list."""
