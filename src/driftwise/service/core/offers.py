"""What is offered: arms of a request as one checked set, whichever way they came, and the sha256 they are known by."""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np

from driftwise._internal.container import canonical
from driftwise.errors import BadInput
from driftwise.kernels.point import Floats
from driftwise.policies.arms import ArmSet
from driftwise.service.stores.records import Damaged, DecisionRow
from driftwise.service.stores.store import Store
from driftwise.service.wire.protocol import MOST_NUMBERS, DecideBody
from driftwise.tables.encoder import Encoder

_KEPT, _KEPT_NUMBERS = 256, 10_000  # sets that are at hand, and how many numbers such a set may have


class Offer(NamedTuple):
    """Arms, their bytes and the sha256 of these, names of the items, and the context as text."""

    arms: ArmSet
    data: bytes
    sha256: bytes
    items: list[str] | None
    context: str | None


class Offers:
    """Offers of one stream; sets that come again are not laid out again."""

    def __init__(self, dim: int, encoder: Encoder | None) -> None:
        self.dim, self.encoder = dim, encoder
        self._kept: OrderedDict[bytes, ArmSet] = OrderedDict()  # a dict is slow to find its first again and again

    def offer(self, asked: DecideBody) -> Offer:
        """The arms of a request, or the one sentence."""
        context = None
        if asked.arms is not None and asked.arms64 is None and asked.context is None and asked.n is None:
            rows = self._numbers(asked.arms)
        else:
            rows, context = self._otherwise(asked)
        if asked.items is not None and len(asked.items) != len(rows):
            got = f"{len(asked.items)} items"
            raise BadInput("items", got, f"a name for each of {len(rows)} arms", "send as many, or none")
        self._check_size(len(rows))
        data = rows.tobytes()
        sha256 = hashlib.sha256(data).digest()
        return Offer(self._prepared(rows, sha256), data, sha256, asked.items, context)

    def _otherwise(self, asked: DecideBody) -> tuple[Floats, str | None]:
        """Arms that did not come as numbers alone, and the context."""
        ways = (asked.arms is not None) + (asked.arms64 is not None) + (asked.context is not None)
        if ways != 1 and not (ways == 0 and asked.items is not None):
            raise BadInput("arms", f"{ways} of them", "arms, arms64 with n, or items in a context", "send one")
        if (asked.n is not None) != (asked.arms64 is not None):
            raise BadInput("n", asked.n, "n with arms64, and only with it", "send both or neither")
        if asked.arms64 is not None:
            return self._decoded(asked.arms64, asked.n or 0), None
        return self._encoded(asked)

    def _numbers(self, arms: list[list[float]]) -> Floats:
        flat: list[float] = []
        for row in arms:
            if len(row) != self.dim:
                raise BadInput("arms", f"a row of {len(row)} numbers", f"rows of {self.dim} numbers", "mend it")
            flat += row
        raw = struct.pack(f"<{len(flat)}d", *flat)  # a third of the time of np.array
        return self._fitting(np.frombuffer(raw, "<f8").reshape(len(arms), self.dim))

    def _decoded(self, text: str, n: int) -> Floats:
        try:
            raw = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise BadInput("arms64", "no base64", "base64 of float64 rows", "send standard base64") from None
        if len(raw) != 8 * n * self.dim:
            wanted = f"{8 * n * self.dim} bytes: {n} rows of {self.dim} float64"
            raise BadInput("arms64", f"{len(raw)} bytes", wanted, "match n and dim")
        return self._fitting(np.frombuffer(raw, dtype="<f8").reshape(n, self.dim))

    def _encoded(self, asked: DecideBody) -> tuple[Floats, str]:
        if self.encoder is None:
            wanted = "arms or arms64: this stream has no features"
            raise BadInput("context", "items and a context", wanted, "declare features when you make the stream")
        if asked.items is None:
            raise BadInput("items", None, "the items to choose from", "send their names")
        self._check_size(len(asked.items))  # before room is made for them: a name of a few bytes may be a long row
        told = self.encoder.context(asked.context or {})
        rows: Any = self.encoder.arms(told, asked.items)
        return self._fitting(rows), canonical(told).decode()

    def _check_size(self, count: int) -> None:
        if count * self.dim > MOST_NUMBERS:
            raise BadInput("arms", f"{count * self.dim} numbers", f"at most {MOST_NUMBERS}", "offer fewer arms")

    def _fitting(self, rows: Floats) -> Floats:
        if rows.ndim != 2 or rows.shape[1] != self.dim:
            raise BadInput("arms", f"shape {rows.shape}", f"rows of {self.dim} numbers", "match the stream's dim")
        if not rows.size:
            raise BadInput("arms", "no arm", "an arm at least", "send the arms to choose from")
        return rows + 0.0  # -0 and 0 are one arm, and no database tells them apart

    def _prepared(self, rows: Floats, sha256: bytes) -> ArmSet:
        known = self._kept.get(sha256)
        if known is not None:
            return known
        arms = ArmSet(rows)
        if rows.size <= _KEPT_NUMBERS:
            if len(self._kept) >= _KEPT:
                self._kept.popitem(last=False)
            self._kept[sha256] = arms
        return arms


def offered(store: Store, row: DecisionRow) -> tuple[bytes, Floats] | None:
    """The sha256 and the rows of a decision's arms; none where they were forgotten. Streams of several dimensions share
    one stored set where its bytes are the same, so only the decision says how many rows these are."""
    found = None if row.arm_set is None else store.arms(row.arm_set)
    if found is None:
        return None
    sha256, _, data = found
    if len(data) % (8 * row.n):
        raise Damaged("arm_set", f"a changed row {row.arm_set}")
    return sha256, rows_of(data, row.n)


def rows_of(data: bytes, n: int) -> Floats:
    """The rows that these bytes were."""
    return np.frombuffer(data, dtype="<f8").reshape(n, -1).astype(np.float64)
