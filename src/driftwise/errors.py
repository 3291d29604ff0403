"""The exceptions of driftwise. A message is one sentence: what was wrong, what was wanted, what was given, what to do.
"""

from __future__ import annotations

from typing import Any

# Types of values that are safe to send to another process inside an error.
_PLAIN = (type(None), bool, int, float, str, bytes)


class DriftwiseError(Exception):
    """The base class of all errors that are raised on purpose. All of them survive copy and pickle, as a process pool
    needs.

    `args` holds the finished sentence. An error is rebuilt from its sentence and attributes, not by its constructor,
    whose arguments differ.
    """

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuilt, (type(self), self.args), self.__dict__


class BadInput(DriftwiseError, ValueError):
    """A value cannot be used. Nothing was changed."""

    def __init__(self, parameter: str, got: object, wanted: str, way_out: str) -> None:
        self.parameter, self.got, self.wanted, self.way_out = parameter, got, wanted, way_out
        sentence = f"{parameter}: wanted {wanted}, got {_short(got)}; {way_out}"
        super().__init__(sentence.encode("utf-8", "backslashreplace").decode())  # a lone surrogate cannot be printed

    def __reduce__(self) -> tuple[Any, ...]:
        """`got` may be anything, a lock included. In a copy it is the value if that is plain, else its text."""
        got = self.got if type(self.got) in _PLAIN else _short(self.got)
        return _rebuilt, (type(self), self.args), {**self.__dict__, "got": got}


class NumericalError(DriftwiseError, ArithmeticError):
    """A solver did not reach its tolerance. The message says what to change."""


def _rebuilt(kind: type[DriftwiseError], args: tuple[Any, ...]) -> DriftwiseError:
    return kind.__new__(kind, *args)


def _short(value: object) -> str:
    try:
        text = value if isinstance(value, str) and " " in value else repr(value)
    except Exception:  # a number of thousands of digits, or a __repr__ that fails
        text = f"a {type(value).__name__} that cannot be shown"
    text = " ".join(text.split())
    return text if len(text) <= 120 else text[:117] + "..."
