"""A file format with a header, plain data, raw arrays and a digest of all of it (docs/contract.md#snapshots).

    magic (8 bytes), version (uint32), length of the JSON (uint64), length of the whole (uint64)
    canonical JSON: {"kind": …, "arrays": [[name, dtype, shape], …], …}
    the arrays, one after the other, little-endian
    sha256 of everything before

`unpack` checks the sizes against the length of the file before it allocates anything, then the digest, then the shapes.
The caller checks what the numbers mean. The format has no pickle and no compression.
"""

from __future__ import annotations

import hashlib
import json
import math
import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from driftwise.errors import BadInput

MAGIC = b"DRIFTWSE"
VERSION = 1
_HEAD = struct.Struct("<8sIQQ")
_DIGEST = 32
_TYPES = ("<f8", "<i8", "|u1")
_MOST_DIMENSIONS = 8


def canonical(data: object) -> bytes:
    """Plain data as bytes. Equal data give equal bytes. JSON has no infinity, so the caller writes a string."""
    return json.dumps(data, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def short_digest(data: object) -> str:
    """The first twenty hex digits of the SHA-256 of plain data."""
    return hashlib.sha256(canonical(data)).hexdigest()[:20]


def pack(kind: str, facts: Mapping[str, Any], arrays: Mapping[str, npt.NDArray[Any]]) -> bytes:
    """The container as bytes."""
    parts = {name: np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")) for name, array in arrays.items()}
    table = [[name, part.dtype.str, list(part.shape)] for name, part in parts.items()]
    text = canonical({**facts, "kind": kind, "arrays": table})
    body = b"".join([text, *(part.tobytes() for part in parts.values())])
    head = _HEAD.pack(MAGIC, VERSION, len(text), _HEAD.size + len(body) + _DIGEST)
    return head + body + hashlib.sha256(head + body).digest()


def unpack(kind: str, data: object, way_out: str) -> tuple[dict[str, Any], dict[str, npt.NDArray[Any]]]:
    """The facts and arrays that `pack` wrote, or BadInput. The arrays are copies, writable and aligned."""
    wanted = f"data that driftwise wrote as {'an' if kind[0] in 'aeiou' else 'a'} {kind}"

    def no(what: str) -> BadInput:
        return BadInput("data", what, wanted, way_out)

    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise no(f"a {type(data).__name__}")
    raw = memoryview(data.tobytes() if isinstance(data, memoryview) else data)
    if bytes(raw[:2]) == b"PK":
        raise no("an npz archive, as an earlier version wrote it")
    if len(raw) < _HEAD.size + _DIGEST:
        raise no(f"{len(raw)} bytes, too few for any")
    magic, version, text_length, length = _HEAD.unpack_from(raw)
    if magic != MAGIC:
        raise no("bytes of another kind")
    if version != VERSION:
        raise no(f"version {version}, which this driftwise cannot read")
    room = len(raw) - _HEAD.size - _DIGEST
    if length != len(raw) or text_length > room:
        raise no(f"{len(raw)} of {length} bytes")
    if hashlib.sha256(raw[:-_DIGEST]).digest() != bytes(raw[-_DIGEST:]):
        raise no("changed bytes: the digest differs")
    facts = _facts(bytes(raw[_HEAD.size : _HEAD.size + text_length]))
    if facts is None or facts.get("kind") != kind:
        got = str(facts.get("kind", "nameless thing")) if facts else ""
        raise no(f"{'an' if got[:1] in 'aeiou' else 'a'} {got}" if got else "a header that is not plain data")
    table = _table(facts.pop("arrays", None), room - text_length)
    if table is None:
        raise no("arrays whose sizes do not add up to the file's")
    del facts["kind"]
    arrays, at = {}, _HEAD.size + text_length
    for name, kind_of, shape in table:
        count = math.prod(shape)
        found = np.frombuffer(raw, dtype=kind_of, count=count, offset=at)
        arrays[name] = found.reshape(shape).astype(found.dtype.newbyteorder("="), copy=True)
        at += found.nbytes
    return facts, arrays


def _facts(text: bytes) -> dict[str, Any] | None:
    """The JSON of the header, if it is an object."""
    try:
        facts = json.loads(text.decode())
    except (ValueError, RecursionError):
        return None
    return facts if isinstance(facts, dict) else None


def _table(table: object, room: int) -> list[tuple[str, str, tuple[int, ...]]] | None:
    """Names, types and shapes of the arrays, if they fill the room exactly."""
    rows, total = [], 0
    for row in table if isinstance(table, list) else [None]:
        if not (isinstance(row, list) and len(row) == 3):
            return None
        name, kind, shape = row
        good = isinstance(name, str) and kind in _TYPES and isinstance(shape, list) and len(shape) <= _MOST_DIMENSIONS
        if not good or not all(type(size) is int and 0 <= size <= room for size in shape):
            return None
        total += math.prod(shape) * int(kind[2:])
        rows.append((name, kind, tuple(shape)))
    return rows if total == room and len({name for name, *_ in rows}) == len(rows) else None
