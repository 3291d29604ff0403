"""Finished trials on disk, packed in shards of a thousand. Each file is complete or absent.

    trials/incoming/000007.rows     new trials in the order of arrival
    trials/<identity>/0002000.rows  trials 2000 to 2999 of one policy, in order: the same trials, the same bytes
    trials/<identity>/00042.npz     a trial as earlier versions kept it; read, and left where it is

One thread of one process writes.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from driftwise._internal import container
from driftwise._internal.files import keep
from driftwise._internal.validate import Floats
from driftwise.errors import BadInput

ENDING = ".rows"
# Trials of a shard. One damaged byte loses a shard, and one added trial rewrites it.
_SHARD = 1000
# The number of incoming files after which they are packed into shards.
_INCOMING = 256


class Played(NamedTuple):
    """One policy's trial: the name under which it is stored, its number, its regret, and its seconds."""

    name: str
    trial: int
    regret: Floats
    seconds: float


class TrialStore:
    """Finished trials by identity and number, and how long each took in timings.jsonl."""

    def __init__(self, folder: Path) -> None:
        self.folder, self._log = folder / "trials", folder / "timings.jsonl"
        self._incoming = self.folder / "incoming"
        self._known: dict[str, dict[int, Floats]] = {}
        self._old: dict[str, set[int]] = {}
        self._fresh: set[tuple[str, int]] = set()
        self._files: list[Path] = []
        for path in sorted(self._incoming.glob(f"*{ENDING}")):
            self._files.append(path)
            for name, numbers, rows in _read_incoming(path):
                self._add(name, numbers, rows)
        self.pack()

    def get(self, identity: str, trial: int, rounds: int) -> Floats | None:
        """The regret of a finished trial. None if it is missing, or if its checksum shows damage."""
        row = self._rows(identity).get(trial)
        if row is None and trial in self._old[identity]:
            row = _read_one(self.folder / identity / f"{trial:05d}.npz")
        return row if row is not None and row.shape == (rounds,) else None

    def put(self, played: Iterable[Played]) -> None:
        """Store trials that arrived together."""
        played = list(played)
        # The leading newline ends a line that a killed process left unfinished.
        lines = [f"\n{json.dumps({'run': one.name, 'trial': one.trial, 'seconds': one.seconds})}" for one in played]
        with self._log.open("a", encoding="utf-8") as log:
            log.write("".join(lines))
        by_name: dict[str, list[Played]] = {}
        for one in played:
            by_name.setdefault(one.name, []).append(one)
        arrays = {}
        for number, (name, ones) in enumerate(by_name.items()):
            numbers, rows = np.array([one.trial for one in ones]), np.array([one.regret for one in ones])
            arrays[f"trials {number}"], arrays[f"regret {number}"] = numbers, rows
            self._add(name, numbers, rows)
        path = self._incoming / f"{len(self._files):06d}{ENDING}"
        keep(path, container.pack("trials", {"names": list(by_name)}, arrays))
        self._files.append(path)
        if len(self._files) >= _INCOMING:
            self.pack()

    def pack(self) -> None:
        """Move incoming trials into their shards. The same trials give the same shards, in any order of arrival."""
        for name, first in sorted(self._fresh):
            rows = self._rows(name)
            numbers = sorted(number for number in rows if first <= number < first + _SHARD)
            arrays = {"trials": np.array(numbers), "regret": np.array([rows[number] for number in numbers])}
            keep(self.folder / name / f"{first:07d}{ENDING}", container.pack("trials", {"name": name}, arrays))
        for path in self._files:
            path.unlink(missing_ok=True)
        if self._incoming.exists():
            self._incoming.rmdir()
        self._fresh, self._files = set(), []

    def seconds(self) -> dict[tuple[str, int], float]:
        """The seconds of finished trials."""
        found = {}
        if self._log.exists():
            for line in self._log.read_text(encoding="utf-8", errors="replace").splitlines():
                try:
                    one = json.loads(line)
                    found[one["run"], one["trial"]] = float(one["seconds"])
                except (ValueError, KeyError, TypeError, RecursionError):  # an unfinished line of a killed process
                    continue
        return found

    def _rows(self, identity: str) -> dict[int, Floats]:
        """The packed trials of an identity, read once."""
        known = self._known.get(identity)
        if known is None:
            known = self._known[identity] = {}
            for path in sorted((self.folder / identity).glob(f"*{ENDING}")):
                known.update(_read_shard(path, identity))
            old = (self.folder / identity).glob("*.npz")
            self._old[identity] = {int(path.stem) for path in old if path.stem.isdecimal()}
        return known

    def _add(self, name: str, numbers: Iterable[int], rows: Iterable[Floats]) -> None:
        known = self._rows(name)
        for number, row in zip(map(int, numbers), rows, strict=True):
            known[number] = row
            self._fresh.add((name, number // _SHARD * _SHARD))


def _unpacked(path: Path) -> tuple[dict[str, object], dict[str, Floats]]:
    """A file's facts and arrays; empty if the file is damaged in any way, because trials can be played again."""
    try:
        return container.unpack("trials", path.read_bytes(), "remove it")
    except (BadInput, OSError):
        return {}, {}


def _read_incoming(path: Path) -> Iterator[tuple[str, Floats, Floats]]:
    facts, arrays = _unpacked(path)
    names = facts.get("names", [])
    for number, name in enumerate(names if isinstance(names, list) else []):
        yield str(name), arrays[f"trials {number}"], arrays[f"regret {number}"]


def _read_shard(path: Path, identity: str) -> Iterator[tuple[int, Floats]]:
    facts, arrays = _unpacked(path)
    if facts.get("name") == identity:
        for number, row in zip(arrays["trials"], arrays["regret"], strict=True):
            yield int(number), row


def _read_one(path: Path) -> Floats | None:
    """A trial in the format before shards."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as found:
            row: Floats = found["regret"]
    except Exception:  # a trial in a damaged file can be played again
        return None
    return row if row.ndim == 1 and row.dtype == np.float64 and np.isfinite(row).all() else None
