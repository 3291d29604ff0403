"""Everything driftwise raises: one sentence that says what, wanted, got, and the way out."""

from __future__ import annotations


class DriftwiseError(Exception):
    """The root of all errors raised on purpose."""


class BadInput(DriftwiseError, ValueError):
    """A value at the border is not usable; nothing was changed."""

    def __init__(self, parameter: str, got: object, wanted: str, way_out: str) -> None:
        self.parameter, self.got, self.wanted, self.way_out = parameter, got, wanted, way_out
        super().__init__(f"{parameter}: wanted {wanted}, got {_short(got)}; {way_out}")


class NumericalError(DriftwiseError, ArithmeticError):
    """A solver did not reach its tolerance; the sentence says what to change."""


def _short(value: object) -> str:
    try:
        text = value if isinstance(value, str) and " " in value else repr(value)
    except ValueError:  # a number of thousands of digits
        text = f"a {type(value).__name__} too long to show"
    text = " ".join(text.split())
    return text if len(text) <= 120 else text[:117] + "..."
