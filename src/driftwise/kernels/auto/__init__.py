"""Auto: lanes of recursive least squares, weighed by what they foretell (docs/math.md#auto)."""
