"""One part of a log reduced to its sums, and the folder in which sums of parts are kept."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from driftwise._internal import container
from driftwise._internal.files import keep_durably
from driftwise.data.sums import ANEW, Sums
from driftwise.errors import BadInput
from driftwise.policies.linear import LinearUCB
from driftwise.tables.check import Checker
from driftwise.tables.logs import Log, Part
from driftwise.tables.schema import Batch

COLUMNS = ("born", "x", "reward", "reward_tick")
# Rows older than this many half-lives weigh less than 2^-40 < 1e-12.
HALF_LIVES = 40.0
ENDING = ".sums"


class Recipe(NamedTuple):
    """The numbers on which a policy's sums depend, as plain data. `twin` says whether Σw² xx' is computed."""

    dim: int
    forget: float
    twin: bool
    low: float
    high: float
    reach: float

    @classmethod
    def of(cls, policy: LinearUCB) -> Recipe:
        low, high = policy.reward_range
        forget = float(policy.memory.forget)
        return cls(policy.dim, forget, bool(policy.two_matrix), float(low), float(high), float(policy.reach))

    @property
    def span(self) -> float:
        """How many ticks matter."""
        return HALF_LIVES * math.log(2.0) / -math.log1p(-self.forget) if self.forget else math.inf

    def nothing(self) -> Sums:
        """The sums of no rows."""
        d = self.dim
        return Sums(self.forget, 0, np.zeros((d, d)), np.zeros((d, d)), np.zeros(d), 0.0, 0.0, 0, frozenset())


class Shelf:
    """A folder of sums, named by the digests of their parts and the memory. Without a folder nothing is kept."""

    def __init__(self, folder: Path | None, recipe: Recipe) -> None:
        self._folder, self._recipe = folder, recipe
        self._memory = container.short_digest(["sums", recipe.dim, recipe.forget])

    def _path(self, name: str) -> Path | None:
        return None if self._folder is None else self._folder / f"{name[:32]}-{self._memory}{ENDING}"

    def names(self) -> list[str]:
        """The beginnings of the names of its parts."""
        found = [] if self._folder is None else self._folder.glob(f"*-{self._memory}{ENDING}")
        return sorted(path.name[:32] for path in found)

    def get(self, name: str, part: str) -> Sums | None:
        """The sums of a part; None if they are not there."""
        path = self._path(name)
        if path is None or not path.exists():
            return None
        kept = Sums.from_bytes(path.read_bytes())
        if kept.parts != {name} or kept.forget != self._recipe.forget or kept.dim != self._recipe.dim:
            raise BadInput("out", str(path), f"the sums of {part}", ANEW)
        return kept

    def put(self, name: str, sums: Sums) -> None:
        path = self._path(name)
        if path is not None:
            keep_durably(path, sums.to_bytes())


def once(log: Log, names: Sequence[str]) -> None:
    """Raise BadInput if two parts have the same content."""
    seen: dict[str, str] = {}
    for part, name in zip(log.parts, names, strict=True):
        if name in seen:
            wanted = "each part once: its rewards would count twice"
            raise BadInput("log", f"{part.name}, which has the content of {seen[name]}", wanted, "leave one out")
        seen[name] = part.name


def reduced(part: Part, name: str, recipe: Recipe) -> tuple[Sums, int]:
    """The sums of a part, and the number of rows that were too old to be read."""
    groups, left_out, count = _recent(part, recipe.span)
    found = _fold(groups, Checker(part, ordered=False), recipe, name)
    return replace(found, n=found.n + count), left_out


def _fold(batches: Iterator[Batch], checker: Checker, recipe: Recipe, name: str) -> Sums:
    """Learn batch by batch, each at the tick of its own last reward."""
    log_gamma, found = math.log1p(-recipe.forget), None
    for batch in batches:
        born, X, reward, paid_at = batch.born, batch.x, batch.reward, batch.reward_tick
        assert born is not None and X is not None and reward is not None and paid_at is not None
        lessons = ~np.isnan(reward)
        _check_rows(batch, lessons, recipe)
        checker.check(batch)
        if not lessons.all():
            born, X, reward, paid_at = born[lessons], X[lessons], reward[lessons], paid_at[lessons]
        if not len(reward):
            continue
        tick = int(paid_at.max())
        root = np.exp(0.5 * log_gamma * (tick - born))
        scaled = X * root[:, np.newaxis]
        w = root * root
        G, b = scaled.T @ scaled, scaled.T @ (root * reward)
        scaled *= root[:, np.newaxis]
        twin = scaled.T @ scaled if recipe.twin else np.zeros_like(G)
        one = Sums(recipe.forget, tick, G, twin, b, float(w.sum()), float(w @ w), len(w), frozenset())
        found = one if found is None else found + one
    checker.end()
    return replace(found or recipe.nothing(), parts=frozenset([name]))


def _check_rows(batch: Batch, lessons: Any, recipe: Recipe) -> None:
    """Check that rewards are in range, arms not longer than L, and no reward before its choice."""
    born, X, reward, paid_at = batch.born, batch.x, batch.reward, batch.reward_tick
    assert born is not None and X is not None and reward is not None and paid_at is not None
    low, high = recipe.low, recipe.high
    wrong = lessons & ~((reward >= low) & (reward <= high))
    if wrong.any():
        row = int(wrong.argmax())
        raise batch.bad(row, "reward", float(reward[row]), f"a reward from {low:g} to {high:g}")
    wrong = lessons & ((paid_at < born) | (paid_at >= 2**53))
    if wrong.any():
        row = int(wrong.argmax())
        raise batch.bad(row, "reward_tick", int(paid_at[row]), f"a tick of at least {born[row]}, that of its choice")
    lengths = np.einsum("ij,ij->i", X, X)
    wrong = lessons & (lengths > (recipe.reach * (1.0 + 1e-6)) ** 2)
    if wrong.any():
        row = int(wrong.argmax())
        raise batch.bad(row, "x", f"norm {math.sqrt(lengths[row]):g}", f"norm at most L = {recipe.reach:g}")


def _recent(part: Part, span: float) -> tuple[Iterator[Batch], int, int]:
    """The batches of a part without row groups that are too old; the rows left out, and the rewards among them."""
    columns = [*COLUMNS, *(name for name in ("seq", "stream") if name in part.columns)]
    groups = part.row_groups() if math.isfinite(span) else None
    last = max((one.paid for one in groups or ()), default=0)
    old = [number for number, one in enumerate(groups or ()) if last - one.born > span]
    if groups is None or not old:
        return part.batches(columns), 0, 0
    kept = [number for number in range(len(groups)) if number not in set(old)]
    left_out = [groups[number] for number in old]
    return part.only(kept).batches(columns), sum(one.rows for one in left_out), sum(one.rewards for one in left_out)
