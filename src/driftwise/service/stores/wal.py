"""Checks whether SQLite's write-ahead log lost something that was acknowledged.

SQLite reads a log up to the first frame with a wrong checksum, and takes the rest for an interrupted write. That is
right for the last transaction, which was not acknowledged. It is silently wrong if a byte was changed in an earlier
transaction. A killed process leaves no commit after a bad frame, only frames that a large transaction wrote early. A
machine that lost power may have kept any part of the last transaction, and nothing of a later one, because each is
synced before the next begins. Where a write was lost, bytes of an older log may remain, with their own salts and commit
marks.

A change in the very last frame cannot be distinguished from an interrupted write.
"""

from __future__ import annotations

import struct
from pathlib import Path

import numpy as np

from driftwise.kernels.checksum import checksum_

_HEADER, _FRAME = struct.Struct(">8I"), struct.Struct(">6I")
_MAGIC = (0x377F0682, 0x377F0683)
_SECTOR = 512  # bytes that a disk writes whole or not at all


def wal_of(database: Path) -> Path:
    """The write-ahead log of a database, which SQLite names after it."""
    return database.with_name(database.name + "-wal")


def has_log(head: bytes) -> bool:
    """Whether the head of a database file says that it has a WAL."""
    return head[18:20] == b"\2\2"


def strange_log(database: Path, head: bytes) -> str:
    """Why the WAL cannot belong to the database whose file begins with `head`; "" if it can.

    SQLite writes into the file that it has a WAL, and syncs it, before it writes the WAL. A backup says that it has
    none. So a WAL beside such a file was left behind by an earlier database of this name, and SQLite would mix the two.
    """
    path = wal_of(database)
    if not path.is_file() or path.stat().st_size <= _HEADER.size:
        return ""
    with path.open("rb") as file:
        magic = int.from_bytes(file.read(4), "big")
    if magic not in _MAGIC or has_log(head):
        return ""
    what = "a file that is empty or missing" if not head else "a file that has no WAL, such as a backup"
    return f"{what}, beside {path.name} of another database in {path.parent}"


def damage_of(database: Path, same_boot: bool) -> str:
    """What is wrong with the log beside a database, or "". `same_boot`: the machine was not off since it was
    written."""
    path = wal_of(database)
    raw = path.read_bytes() if path.is_file() else b""
    if len(raw) < _HEADER.size:
        return ""
    magic, _, page, _, salt, pepper, *told = _HEADER.unpack_from(raw)
    size = _FRAME.size + page
    if magic not in _MAGIC or page < 512 or page & (page - 1):
        return _lost(raw) if same_boot else ""
    order = ">u4" if magic & 1 else "<u4"
    sums = np.zeros(2, dtype=np.int64)
    checksum_(np.frombuffer(raw, order, 6).astype(np.int64), sums)
    if sums.tolist() != told:
        return _lost(raw) if same_boot else ""
    count = (len(raw) - _HEADER.size) // size
    heads = [_FRAME.unpack_from(raw, _HEADER.size + number * size) for number in range(count)]
    ours = [head[2:4] == (salt, pepper) for head in heads]
    for number, head in enumerate(heads):
        at = _HEADER.size + number * size
        parts = (np.frombuffer(raw, order, 2, at), np.frombuffer(raw, order, page // 4, at + _FRAME.size))
        checksum_(np.concatenate(parts).astype(np.int64), sums)
        if not ours[number] or sums.tolist() != list(head[4:]):
            return _behind(heads, ours, number, page, same_boot)
    return ""


def _behind(heads: list[tuple[int, ...]], ours: list[bool], bad: int, page: int, same_boot: bool) -> str:
    """What a bad frame means, judged by the frames after it."""
    later = [number for number in range(bad + 1, len(heads)) if ours[number]]
    if not later:
        return ""
    commits = [number for number in (bad, *later) if ours[number] and heads[number][1] and _whole(number, page)]
    next_one = bool(commits) and (len(commits) > 1 or later[-1] > commits[0])
    if next_one or (same_boot and any(heads[number][1] for number in (bad, *later) if ours[number])):
        return f"frame {bad} was changed, and {len(later)} frames follow it"
    return ""


def _whole(number: int, page: int) -> bool:
    """Whether the mark of a commit and the salts of a frame reach the disk together."""
    at = _HEADER.size + number * (_FRAME.size + page)
    return at // _SECTOR == (at + 15) // _SECTOR


def _lost(raw: bytes) -> str:
    return f"its header was changed; the file has {len(raw)} bytes"
