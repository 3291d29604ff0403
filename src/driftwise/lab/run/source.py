"""A TOML file with line numbers: every error is one sentence that names the line."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, NoReturn

from driftwise.errors import BadInput

# A place in the file: table, number in a list of tables, key.
Place = tuple[str | int, ...]


class SpecSource:
    """The text, its data, and the line of each place."""

    def __init__(self, text: str, file: str) -> None:
        self.lines, self.file = re.split(r"\r?\n", text), file
        try:
            self.data = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # TOMLDecodeError, or too long a number or too deep a nesting
            found = re.search(r"\(at line (\d+), column \d+\)", str(error))
            line = int(found.group(1)) if found else len(self.lines)
            reason = " ".join(str(error).split(" (at ")[0].split())
            raise BadInput(f"{file}, line {line}", reason, "TOML", "see the specs in driftwise/lab") from None

        self._plain((), self.data)

    def _plain(self, place: Place, data: Any) -> None:
        """Refuse everything but text, booleans, lists, tables and 64-bit numbers. TOML's dates have no meaning here."""
        if isinstance(data, (dict, list)):
            for key, one in data.items() if isinstance(data, dict) else enumerate(data):
                self._plain((*place, key), one)
        elif not isinstance(data, (str, int, float)) or (isinstance(data, int) and abs(data) >= 2**63):
            self.fail(place, str(place[-1]), data, "text, true or false, or a number of 64 bits", "correct it")

    def line(self, place: Place) -> int:
        """The line at which a place begins: the first line after the longest part of the file that parses without
        it."""
        before = 0
        for count in range(1, len(self.lines) + 1):
            try:
                there = has(tomllib.loads("\n".join(self.lines[:count])), place)
            except tomllib.TOMLDecodeError:  # in the middle of a value
                continue
            if there:
                return before + 1
            before = count
        return len(self.lines)

    def fail(self, place: Place, parameter: str, got: object, wanted: str, way_out: str) -> NoReturn:
        """Raise BadInput for a place, or for the head of its table if the place is missing."""
        while place and not has(self.data, place):
            place = place[:-1]
        line = self.line(place) if place else 1
        raise BadInput(f"{self.file}, line {line}: {parameter}", got, wanted, way_out) from None

    @contextmanager
    def at(self, place: Place) -> Iterator[None]:
        """Add the line of this place, or of its key of that name, to a BadInput that is raised inside."""
        try:
            yield
        except BadInput as error:
            if error.parameter.startswith(f"{self.file}, line "):
                raise
            named: Place = (*place, error.parameter)
            # The name of an unknown field is in `got`, that of a known one in `parameter`.
            if not has(self.data, named) and has(self.data, (*place, str(error.got))):
                named = (*place, str(error.got))
            self.fail(named, error.parameter, error.got, error.wanted, error.way_out)

    def kind(self, place: Place, table: Mapping[str, Any], key: str, kind: type) -> None:
        """Refuse a key of another type; a missing key is allowed."""
        if key in table and not isinstance(table[key], kind):
            word = {str: "text in quotes", bool: "true or false", list: "a list in [ ]"}[kind]
            self.fail((*place, key), key, table[key], word, "correct it")


def has(data: Any, place: Place) -> bool:
    for step in place:
        if isinstance(step, int) and isinstance(data, list) and step < len(data):
            data = data[step]
        elif isinstance(step, str) and isinstance(data, dict) and step in data:
            data = data[step]
        else:
            return False
    return True
