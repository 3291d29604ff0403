"""An experiment as data: a TOML file with a world, policies, trials and a seed, and optionally sweeps."""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from driftwise._internal.rng import checked_seed
from driftwise._internal.validate import is_number, one_of, whole
from driftwise.draw.figure import SCALES
from driftwise.errors import BadInput
from driftwise.lab.run.source import Place, SpecSource
from driftwise.policies.base import Compiled
from driftwise.policies.curves import Curve, Fourier, Polynomial, Spline
from driftwise.policies.memory import KINDS as MEMORIES
from driftwise.policies.names import make
from driftwise.policies.shapes import Ball, Box, Ellipsoid
from driftwise.simulation import Record, check_fit, recorded_rounds
from driftwise.worlds import KINDS as WORLDS
from driftwise.worlds import World

_MOST_TRIALS = 1_000_000
# Sets that a spec can name, and what a curve's features may be.
SETS = {one.__name__: one for one in (Ball, Ellipsoid, Box, Curve, Polynomial, Fourier, Spline)}
# The largest number of letters of a name in a figure and in a file name.
_LONG = 100


@dataclass(frozen=True)
class PolicyEntry:
    """One line of a figure: the name of an algorithm, fields that differ from its theorem's, and how it is shown."""

    name: str
    label: str
    fields: Mapping[str, Any]
    published: str | None = None
    drawn: bool = True
    trials: int | None = None


@dataclass(frozen=True)
class Sweep:
    """Final regret against one field: of the world ("world.turns") or of the policies ("policies.delta").

    With `times`, values are multiples of the true value of the world.
    """

    over: str
    values: tuple[Any, ...]
    times: bool = False
    title: str = ""
    axis: str = ""
    scale: str = "even"


@dataclass(frozen=True)
class Contest:
    """A world and the policies that play in it: the unit that trials repeat."""

    world: World
    policies: dict[str, Compiled]


@dataclass(frozen=True)
class Spec:
    """An experiment: one world with curves over rounds, or sweeps with the regret at the horizon."""

    key: str
    title: str
    text: str
    trials: int
    seed: int
    record: Record
    notes: tuple[str, ...]
    entries: tuple[PolicyEntry, ...]
    sweeps: tuple[Sweep, ...]
    contests: tuple[tuple[Contest, ...], ...]

    def rounds_of(self, world: World) -> list[int]:
        """The rounds recorded; a sweep records only the last."""
        return [int(one) for one in recorded_rounds(self.record, world.horizon)]

    def trials_of(self, entry: PolicyEntry) -> int:
        """The number of trials of an entry; a slow policy may have fewer."""
        return min(self.trials, entry.trials or self.trials)

    def repeated(self, trials: int | None, seed: int | None) -> Spec:
        """The same spec with another number of trials or another seed."""
        return dataclasses.replace(
            self,
            trials=self.trials if trials is None else _trials(trials),
            seed=self.seed if seed is None else checked_seed(seed),
        )


def _trials(value: object) -> int:
    """A number of trials, small enough for the names of their files."""
    trials = whole("trials", value)
    if trials > _MOST_TRIALS:
        raise BadInput("trials", value, f"at most {_MOST_TRIALS}", "pass fewer; they can be raised later")
    return trials


def load(path: Path) -> Spec:
    """A spec from a file."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not UTF-8 text"
        raise BadInput("spec", str(path), "a TOML file that can be read", f"{reason}: pass another") from None
    return parse(text, path.name)


def parse(text: str, file: str) -> Spec:
    """A spec from its text. Every error is one sentence with its line."""
    source = SpecSource(text, file)
    top = _checked(source, (), source.data, _TOP, ("title", "world", "policies"))
    for name, kind in (("title", str), ("key", str), ("notes", list)):
        source.kind((), top, name, kind)
    if not top["title"].isprintable() or len(top["title"]) > 2 * _LONG:
        source.fail(("title",), "title", top["title"], f"up to {2 * _LONG} printable characters", "write it shorter")
    with source.at(()):
        trials, seed = _trials(top.get("trials", 20)), checked_seed(top.get("seed", 0))
    entries = tuple(_entries(source, top["policies"]))
    sweeps = tuple(_sweeps(source, top.get("sweep", [])))
    world = _world(source, top["world"], {})
    if sweeps:
        contests = tuple(tuple(_swept(source, top["world"], entries, sweeps)))
    else:
        contests = ((_contest(source, world, entries, {}),),)
    with source.at(()):
        record: Record = "last" if sweeps else top.get("record", 50)
        recorded_rounds(record, world.horizon)
    key = top.get("key", re.sub(r"[^\w.+-]", "_", Path(file).stem)[:_LONG])
    if not re.fullmatch(r"[\w.+-]+", key) or len(key) > _LONG or key.startswith("."):
        source.fail(("key",), "key", key, f"up to {_LONG} letters, digits, and . _ + - only", "it names files")
    if not any(entry.drawn for entry in entries):
        source.fail(("policies",), "drawn", False, "at least one policy that is drawn", "leave drawn out")
    notes = tuple(map(str, top.get("notes", ())))
    return Spec(key, top["title"], text, trials, seed, record, notes, entries, sweeps, contests)


_TOP = ("title", "key", "trials", "seed", "record", "notes", "world", "policies", "sweep")
_OWN = ("name", "label", "published", "drawn", "trials")


def _checked(
    source: SpecSource, place: Place, table: Any, allowed: Sequence[str], needed: Sequence[str]
) -> dict[str, Any]:
    """The table, or an error if a key is missing or unknown."""
    if not isinstance(table, dict):
        head = f"[[{place[0]}]]" if len(place) > 1 else f"[{place[0]}]"
        source.fail(place, str(place[0]), table, "a table", f"write {head} and its fields below")
    for key in table:
        with source.at(place):
            one_of("field", key, allowed)
    for key in needed:
        if key not in table:
            source.fail(place, key, "nothing", f"{key}, which has no default", "add it")
    return dict(table)


def _entries(source: SpecSource, tables: Any) -> Iterator[PolicyEntry]:
    if not isinstance(tables, list) or not tables:
        source.fail(("policies",), "policies", tables, "at least one [[policies]] table", 'add name = "LB-WeightUCB"')
    seen: set[str] = set()
    for number, table in enumerate(tables):
        place = ("policies", number)
        if not isinstance(table, dict) or not isinstance(table.get("name"), str):
            source.fail((*place, "name"), "name", table, "the name of an algorithm", "see `driftwise list --all`")
        for key, kind in (("label", str), ("published", str), ("drawn", bool)):
            source.kind(place, table, key, kind)
        label = str(table.get("label", table["name"]))
        if not label.isprintable() or not 0 < len(label) <= _LONG or label == "rounds" or label.endswith(".npy"):
            wanted = f'up to {_LONG} printable characters, other than "rounds" and names of arrays'
            source.fail((*place, "label"), "label", label, wanted, "it names an array in curves.npz")
        if label in seen:
            source.fail((*place, "label"), "label", label, "a label of its own for each policy", "add label =")
        seen.add(label)
        with source.at(place):
            trials = _trials(table["trials"]) if "trials" in table else None
        fields = _values(source, place, table, _OWN)
        yield PolicyEntry(table["name"], label, fields, table.get("published"), table.get("drawn", True), trials)


def _values(source: SpecSource, place: Place, table: Mapping[str, Any], skipped: Sequence[str]) -> dict[str, Any]:
    """The fields of a table, except those of the spec itself."""
    found = {}
    for key, value in table.items():
        if key not in skipped:
            with source.at((*place, key)):
                found[key] = _value(key, value)
    return found


def _value(key: str, value: Any) -> Any:
    """A field as a Python value: memory = { kind = "Fade", forget = 0.02 } becomes a memory, arms = { kind = "Ball",
    dim = 2 } a set, and a list a tuple."""
    if isinstance(value, dict) and (key in ("memory", "grid", "arms", "features") or "kind" in value):
        kind, rest = value.get("kind"), {name: _value(name, one) for name, one in value.items() if name != "kind"}
        what, kinds = ("arms", SETS) if key in ("arms", "features") else ("memory", MEMORIES)
        one_of(what, kind, list(kinds))
        made: Any = kinds[str(kind)]
        try:
            return made(**rest)
        except TypeError:  # a field too many or too few
            wanted = f"{kind} with " + (", ".join(one.name for one in dataclasses.fields(made)) or "no fields")
            module = "driftwise.policies.memory" if what == "memory" else "docs/sets.md"
            raise BadInput(what, value, wanted, f"see {module}") from None
    return tuple(_value(key, one) for one in value) if isinstance(value, list) else value


def _sweeps(source: SpecSource, tables: Any) -> Iterator[Sweep]:
    if not isinstance(tables, list):
        source.fail(("sweep",), "sweep", tables, "[[sweep]] tables", "write [[sweep]] with double brackets")
    seen: set[str] = set()
    for number, table in enumerate(tables):
        place = ("sweep", number)
        allowed = [one.name for one in dataclasses.fields(Sweep)]
        _checked(source, place, table, allowed, ("over", "values"))
        for key, kind in (("over", str), ("values", list), ("times", bool), ("title", str), ("axis", str)):
            source.kind(place, table, key, kind)
        if not re.fullmatch(r"(world|policies)\.\w+", table["over"]):
            wanted = '"world.FIELD" or "policies.FIELD"'
            source.fail((*place, "over"), "over", table["over"], wanted, 'write over = "world.turns"')
        if table["over"] in [f"policies.{name}" for name in _OWN] or table["over"] in seen:
            wanted = "a field of the world or of policies, another in each sweep"
            source.fail((*place, "over"), "over", table["over"], wanted, 'write over = "world.turns"')
        seen.add(table["over"])
        if not table["values"] or (table.get("times") and not all(map(is_number, table["values"]))):
            wanted = "at least one value" + (", all numbers" if table.get("times") else "")
            source.fail((*place, "values"), "values", table["values"], wanted, "add some")
        with source.at(place):
            one_of("scale", table.get("scale", "even"), SCALES)
        with source.at((*place, "values")):
            values = tuple(_value(table["over"].split(".")[1], value) for value in table["values"])
        yield Sweep(**{**table, "values": values})


def _world(source: SpecSource, table: Any, changed: Mapping[str, Any], at: Place = ("world",)) -> World:
    kinds = list(WORLDS)
    _checked(source, ("world",), table, [*{name: 1 for kind in kinds for name in _fields(kind)}, "kind"], ("kind",))
    with source.at(("world",)):
        one_of("kind", table["kind"], kinds)
        fields = _values(source, ("world",), table, ("kind",))
        for key in fields:
            one_of(f"field of {table['kind']}", key, _fields(table["kind"]))
    with source.at(at if changed else ("world",)):
        return WORLDS[table["kind"]](**{**fields, **changed})


def _fields(kind: str) -> list[str]:
    """The fields of a world, also of a world of arrays."""
    return [name for name in inspect.signature(WORLDS[kind].__init__).parameters if name != "self"]


def _contest(
    source: SpecSource, world: World, entries: Sequence[PolicyEntry], told: Mapping[str, Any], at: Place | None = None
) -> Contest:
    policies = {}
    for number, entry in enumerate(entries):
        with source.at(at or ("policies", number)):
            policies[entry.label] = make(entry.name, **{**world.facts, **entry.fields, **told})
            check_fit({entry.label: policies[entry.label]}, world)
    return Contest(world, policies)


def _swept(
    source: SpecSource, table: Any, entries: Sequence[PolicyEntry], sweeps: Sequence[Sweep]
) -> Iterator[tuple[Contest, ...]]:
    for number, sweep in enumerate(sweeps):
        place, (side, field) = ("sweep", number, "values"), sweep.over.split(".")
        plain = _world(source, table, {})
        if side == "world":
            with source.at(("sweep", number)):
                one_of("over", field, _fields(table["kind"]))
        truth = plain.facts.get(field) if side == "policies" else getattr(plain, field, None)
        if sweep.times and not is_number(truth):
            wanted = "a field that is a number in this world"
            source.fail(("sweep", number, "over"), "over", sweep.over, wanted, "leave times out")
        contests = []
        for value in sweep.values:
            used = value * truth if sweep.times else value
            world = _world(source, table, {field: used} if side == "world" else {}, place)
            contests.append(_contest(source, world, entries, {field: used} if side == "policies" else {}, place))
        yield tuple(contests)
