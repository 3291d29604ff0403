"""A TOML file that knows its lines: whatever is wrong in it is refused in one sentence that says where."""

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
    """The text, what it says, and where it says so."""

    def __init__(self, text: str, file: str) -> None:
        self.lines, self.file = re.split(r"\r?\n", text), file
        try:
            self.data = tomllib.loads(text)
        except (ValueError, RecursionError) as error:  # TOMLDecodeError is one; so are endless numbers and nesting
            found = re.search(r"\(at line (\d+), column \d+\)", str(error))
            line = int(found.group(1)) if found else len(self.lines)
            reason = " ".join(str(error).split(" (at ")[0].split())
            raise BadInput(f"{file}, line {line}", reason, "TOML", "see the specs in driftwise/experiments") from None

        self._plain((), self.data)

    def _plain(self, place: Place, data: Any) -> None:
        """Text, truth, lists, tables, and numbers that a machine has; TOML's dates mean nothing here."""
        if isinstance(data, (dict, list)):
            for key, one in data.items() if isinstance(data, dict) else enumerate(data):
                self._plain((*place, key), one)
        elif not isinstance(data, (str, int, float)) or (isinstance(data, int) and abs(data) >= 2**63):
            self.fail(place, str(place[-1]), data, "text, true or false, or a number of 64 bits", "write it so")

    def line(self, place: Place) -> int:
        """The line where a place of the file begins: the first after the last whole beginning without it."""
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
        """Refuse what stands at a place; at the table's head if the thing itself is not there."""
        while place and not has(self.data, place):
            place = place[:-1]
        line = self.line(place) if place else 1
        raise BadInput(f"{self.file}, line {line}: {parameter}", got, wanted, way_out) from None

    @contextmanager
    def at(self, place: Place) -> Iterator[None]:
        """What is refused inside was said at this place of the file, or at its key of that name."""
        try:
            yield
        except BadInput as error:
            if error.parameter.startswith(f"{self.file}, line "):
                raise
            named: Place = (*place, error.parameter)
            # An unknown field is named by what was got, a known one by the parameter.
            if not has(self.data, named) and has(self.data, (*place, str(error.got))):
                named = (*place, str(error.got))
            self.fail(named, error.parameter, error.got, error.wanted, error.way_out)

    def kind(self, place: Place, table: Mapping[str, Any], key: str, kind: type) -> None:
        """If a key is there it has this type."""
        if key in table and not isinstance(table[key], kind):
            word = {str: "text in quotes", bool: "true or false", list: "a list in [ ]"}[kind]
            self.fail((*place, key), key, table[key], word, "write it so")


def has(data: Any, place: Place) -> bool:
    for step in place:
        if isinstance(step, int) and isinstance(data, list) and step < len(data):
            data = data[step]
        elif isinstance(step, str) and isinstance(data, dict) and step in data:
            data = data[step]
        else:
            return False
    return True
