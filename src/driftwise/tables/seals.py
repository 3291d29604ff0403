"""Checksums of a log that driftwise wrote: a changed byte gives an error and never another state.

Parquet has checksums of pages, but none of the metadata that says where pages are and how to read them. So a part has a
CRC-32 of all its bytes in its own metadata, whose eight hex digits count as zeros. A JSON line ends with a CRC-32 of
the text before it. Parts and lines without a checksum, of other programs or older versions, are read unchecked.
"""

from __future__ import annotations

import zlib
from pathlib import Path

SEAL = "driftwise.seal"
BLANK = "0" * 8
# The key and value as Parquet's metadata has them: a text of eight bytes is the next field.
_KEY = SEAL.encode() + b"\x18\x08"
_TAIL = 1 << 20  # bytes at the end of a file that contain the metadata
_CHUNK = 1 << 20
_LINE = b',"driftwise.seal":'


def sealed_file(data: bytes) -> bytes:
    """The bytes of a Parquet file whose metadata has BLANK under SEAL, with their checksum in its place.

    If the metadata has another layout, the file is written without a seal, so that no rows are lost.
    """
    found = data.rfind(_KEY + BLANK.encode())
    if found < 0:
        return data
    at = found + len(_KEY)
    return data[:at] + b"%08x" % zlib.crc32(data) + data[at + len(BLANK) :]


def file_holds(path: Path) -> bool | None:
    """Whether the bytes of a file agree with its seal; None without a seal."""
    with path.open("rb") as file:
        size = file.seek(0, 2)
        first = max(0, size - _TAIL)
        file.seek(first)
        found = file.read().rfind(_KEY)
        if found < 0:
            return None
        at = first + found + len(_KEY)
        file.seek(0)
        crc = 0
        while chunk := file.read(min(_CHUNK, at - file.tell())):
            crc = zlib.crc32(chunk, crc)
        told = file.read(len(BLANK))
        crc = zlib.crc32(BLANK.encode()[: len(told)], crc)
        while chunk := file.read(_CHUNK):
            crc = zlib.crc32(chunk, crc)
    return told == b"%08x" % crc


def sealed_line(line: bytes) -> bytes:
    """A JSON object on one line, with a checksum as its last field."""
    return line[:-1] + _LINE + b"%d}" % zlib.crc32(line[:-1])


def line_holds(line: bytes) -> bool:
    """Whether a line agrees with its seal, or has no seal."""
    body, found, told = line.rstrip().rpartition(_LINE)
    return not found or told == b"%d}" % zlib.crc32(body)
