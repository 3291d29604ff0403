"""The largest index over a continuous set of arms."""
