"""The arms of a request as one checked set, in whichever form they came, and the sha256 that identifies the set."""

from __future__ import annotations

import base64
import binascii
import hashlib
import struct
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np

from driftwise._internal.container import canonical
from driftwise.agent.choosing import allowed_places, checked_price
from driftwise.errors import BadInput
from driftwise.kernels.point import Floats, Ints
from driftwise.policies.arms import ArmSet
from driftwise.policies.base import Compiled
from driftwise.service.stores.records import Damaged, DecisionRow, DetailRow
from driftwise.service.stores.store import Store
from driftwise.service.wire.protocol import MOST_NUMBERS, DecideBody
from driftwise.tables.encoder import Encoder

_KEPT, _KEPT_NUMBERS = 256, 10_000  # how many sets are cached, and how many numbers a cached set may have


class Limits(NamedTuple):
    """The indices of the arms that may be played, in order, and the cost of every arm; None for all arms, and for no
    cost.

    The agent calls them `allowed` and `cost`. A database stores them as a mask and as float64 (DetailRow)."""

    places: Ints | None = None
    price: Floats | None = None

    def among(self, arms: ArmSet) -> ArmSet:
        """The arms that may be played."""
        return arms if self.places is None else arms.only(self.places)

    @property
    def costs(self) -> Floats | None:
        """The costs of the arms that may be played."""
        return self.price if self.price is None or self.places is None else self.price[self.places]

    def arm(self, place: int) -> int:
        """The index of the arm at a place among those that may be played."""
        return place if self.places is None else int(self.places[place])

    def place(self, arm: int) -> int | None:
        """The place of an arm among those that may be played."""
        if self.places is None:
            return arm
        found = int(np.searchsorted(self.places, arm))
        return found if found < len(self.places) and self.places[found] == arm else None

    def stored(self, count: int) -> tuple[bytes | None, bytes | None]:
        """The mask and the costs as a row stores them."""
        if self.places is None:
            mask = None
        else:
            mask = np.isin(np.arange(count), self.places).tobytes()
        return mask, None if self.price is None else self.price.tobytes()


FREE = Limits()


class Offer(NamedTuple):
    """Arms, their bytes and the sha256 of these, names of the items, the context as text, and limits on the choice."""

    arms: ArmSet
    data: bytes
    sha256: bytes
    items: list[str] | None
    context: str | None
    limits: Limits = FREE


class Offers:
    """The offers of one stream. Sets that were sent before are taken from a cache."""

    def __init__(self, policy: Compiled, encoder: Encoder | None) -> None:
        self.policy, self.dim, self.encoder = policy, policy.dim, encoder
        self._kept: OrderedDict[bytes, ArmSet] = OrderedDict()  # a dict finds its first key slowly after deletions

    def offer(self, asked: DecideBody) -> Offer:
        """The arms of a request, or a BadInput."""
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
        free = asked.allowed is None and asked.cost is None
        limits = FREE if free else self._limits(asked, len(rows))
        return Offer(self._prepared(rows, sha256), data, sha256, asked.items, context, limits)

    def _limits(self, asked: DecideBody, count: int) -> Limits:
        """The arms that may be played, and their costs."""
        places = price = None
        if asked.allowed is not None:
            if len(set(map(type, asked.allowed))) > 1:
                raise BadInput("allowed", "numbers and booleans", "one of the two", "send a mask, or indices of arms")
            places = allowed_places(asked.allowed, count)
        if asked.cost is not None:
            price = checked_price(self.policy, asked.cost, count)
        return Limits(places, price)

    def _otherwise(self, asked: DecideBody) -> tuple[Floats, str | None]:
        """The arms that were not sent as lists of numbers, and the context."""
        ways = (asked.arms is not None) + (asked.arms64 is not None) + (asked.context is not None)
        if ways != 1 and not (ways == 0 and asked.items is not None):
            raise BadInput("arms", f"{ways} of these forms", "arms, arms64 with n, or items in a context", "send one")
        if (asked.n is not None) != (asked.arms64 is not None):
            raise BadInput("n", asked.n, "n with arms64, and only with it", "send both or neither")
        if asked.arms64 is not None:
            return self._decoded(asked.arms64, asked.n or 0), None
        return self._encoded(asked)

    def _numbers(self, arms: list[list[float]]) -> Floats:
        flat: list[float] = []
        for row in arms:
            if len(row) != self.dim:
                raise BadInput("arms", f"a row of {len(row)} numbers", f"rows of {self.dim} numbers", "match its dim")
            flat += row
        raw = struct.pack(f"<{len(flat)}d", *flat)  # takes a third of the time of np.array
        return self._fitting(np.frombuffer(raw, "<f8").reshape(len(arms), self.dim))

    def _decoded(self, text: str, n: int) -> Floats:
        try:
            raw = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            raise BadInput("arms64", "not base64", "base64 of float64 rows", "send standard base64") from None
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
        self._check_size(len(asked.items))  # before memory is allocated: a name of a few bytes may stand for a long row
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
            raise BadInput("arms", "no arm", "at least one arm", "send the arms to choose from")
        return rows + 0.0  # -0 becomes 0: both are the same arm, also in the database

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


def limits_of(detail: DetailRow | None, n: int) -> Limits:
    """The limits on a decision among n arms, from the row that is stored beside it."""
    if detail is None or (detail.allowed is None and detail.cost is None):
        return FREE
    mask, cost = detail.allowed, detail.cost
    if (mask is not None and len(mask) != n) or (cost is not None and len(cost) != 8 * n):
        raise Damaged("detail", f"a changed row {detail.seq}")
    return Limits(
        None if mask is None else np.flatnonzero(np.frombuffer(mask, dtype=np.bool_)),
        None if cost is None else np.frombuffer(cost, dtype="<f8").astype(np.float64),
    )


def stored_arms(store: Store, row: DecisionRow) -> tuple[bytes, Floats] | None:
    """The sha256 and the rows of a decision's arms; None if they were forgotten. Streams of different dimensions share
    a stored set if its bytes are equal, so the number of rows is known from the decision only."""
    found = None if row.arm_set is None else store.arms(row.arm_set)
    if found is None:
        return None
    sha256, _, data = found
    if len(data) % (8 * row.n):
        raise Damaged("arm_set", f"a changed row {row.arm_set}")
    return sha256, np.frombuffer(data, dtype="<f8").reshape(row.n, -1).astype(np.float64)
