"""A log reduced to sums, part by part (PRODUCT.md 5): Σw xx', Σw r x, Σw, Σw² and n at a tick, which add up.

A part is reduced to the tick of its own last reward, so that its sums stay good when parts are added later; adding
brings both sides to the later tick, which multiplies by γ^(ticks between). That is the state a fold of all rewards
gives, to 1e-12: weights of linear policies that keep or fade depend on nothing but age.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from driftwise import container
from driftwise.agent.agent import Agent
from driftwise.border import real, whole
from driftwise.errors import BadInput
from driftwise.files import keep_durably
from driftwise.kernels.point import CLOCK, COUNT, SQUARES, WEIGHT, Floats
from driftwise.policies.linear import LinearUCB
from driftwise.policies.state import State
from driftwise.tables.logs import Log, Part, read_log
from driftwise.tables.schema import Batch

COLUMNS = ("born", "x", "reward", "reward_tick")
# What is older than so many half-lives weighs less than 2^-40 < 1e-12.
HALF_LIVES = 40.0
ENDING = ".sums"
_ANEW = "remove the file, and it is made again"


@dataclass(frozen=True, eq=False)
class Sums:
    """Σw xx' as G, Σw² xx' as twin, Σw r x as b, Σw, Σw² and n of `parts`, at a tick; γ = 1 - forget."""

    forget: float
    tick: int
    G: Floats
    twin: Floats
    b: Floats
    weight: float
    squares: float
    n: int
    parts: frozenset[str]

    @property
    def dim(self) -> int:
        return len(self.b)

    def at(self, tick: int) -> Sums:
        """The same at a later tick."""
        if tick < self.tick:
            raise BadInput("tick", tick, f"{self.tick} or later, the sums' own", "sums cannot grow younger")
        fade = math.exp((tick - self.tick) * math.log1p(-self.forget))
        square = fade * fade
        return replace(
            self, tick=tick, G=fade * self.G, twin=square * self.twin, b=fade * self.b, weight=fade * self.weight,
            squares=square * self.squares,
        )  # fmt: skip

    def __add__(self, other: Sums) -> Sums:
        if not isinstance(other, Sums):
            return NotImplemented
        if other.dim != self.dim or other.forget != self.forget:
            got, wanted = (f"dim = {one.dim} and forget = {one.forget:g}" for one in (other, self))
            raise BadInput("sums", got, f"{wanted}, as in the other", "reduce both logs for one policy")
        twice = self.parts & other.parts
        if twice:
            wanted = "parts that were not added before: their rewards would count twice"
            raise BadInput("sums", f"part {min(twice)[:12]} on both sides", wanted, "add each part once")
        tick = max(self.tick, other.tick)
        a, b = self.at(tick), other.at(tick)
        return Sums(
            self.forget, tick, a.G + b.G, a.twin + b.twin, a.b + b.b, a.weight + b.weight, a.squares + b.squares,
            a.n + b.n, a.parts | b.parts,
        )  # fmt: skip

    def state(self, policy: LinearUCB, seed: int = 0) -> State:
        """The state of a policy that learned all of it; its forget must be the sums', noise and λ are its own."""
        if check_policy(policy) != self.forget or policy.dim != self.dim:
            got = f"dim = {policy.dim} and forget = {policy.memory.forget:g}"
            raise BadInput("policy", got, f"dim = {self.dim} and forget = {self.forget:g}", "reduce the log for it")
        state = policy.start(seed)
        state.G[0], state.b[0] = np.tril(self.G), self.b
        if "twin" in state.groups():
            state.twin[0] = np.tril(self.twin)
        for place, value in ((CLOCK, self.tick), (COUNT, self.n), (WEIGHT, self.weight), (SQUARES, self.squares)):
            state.counters[0, place] = value
        return state

    def agent(self, policy: LinearUCB, **options: Any) -> Agent:
        """A new agent that learned all of it, on the round or the wall clock; options are those of dw.Agent.

        It goes on after the sums' tick, and counts their rewards as learned. Its drift meter begins anew.
        """
        if options.get("clock") == "rewards":
            wanted = 'clock="rounds" or "wall": sums do not say how many rewards every tick had'
            raise BadInput("clock", "rewards", wanted, "fold the log instead, agent.learn_log(log)")
        made = Agent(policy, **options)
        state = self.state(made.policy, options.get("seed", 0))
        clock, counts = made._clock, made._book.counts

        def then() -> None:
            clock.newest = max(clock.newest, self.tick)
            if clock.kind == "rounds":
                made._seq = clock.newest
            counts["learned"] += self.n
            counts["decided"] += self.n

        with made._learning:
            made._states.publish(state, self.tick, then)
        return made

    def to_bytes(self) -> bytes:
        """One container (PRODUCT.md 4)."""
        facts = {"forget": float(self.forget), "tick": self.tick, "n": self.n, "parts": sorted(self.parts)}
        numbers = np.array([self.weight, self.squares])
        return container.pack("sums", facts, {"G": self.G, "twin": self.twin, "b": self.b, "weights": numbers})

    @classmethod
    def from_bytes(cls, data: bytes) -> Sums:
        """What `to_bytes` wrote, bit for bit, or the one sentence."""
        facts, arrays = container.unpack("sums", data, _ANEW)
        forget, tick, n, parts = map(facts.get, ("forget", "tick", "n", "parts"))
        b = arrays.get("b", np.zeros(0))
        shapes = {"G": (len(b), len(b)), "twin": (len(b), len(b)), "b": (len(b),), "weights": (2,)}
        no = BadInput("data", "other numbers", "the sums of a log", _ANEW)
        if type(tick) is not int or type(n) is not int or n < 0 or not isinstance(forget, float) or not len(b):
            raise no
        if not isinstance(parts, list) or not all(isinstance(one, str) for one in parts) or not 0.0 <= forget < 1.0:
            raise no
        if set(arrays) != set(shapes) or any(
            arrays[name].shape != shape or not np.isfinite(arrays[name]).all() for name, shape in shapes.items()
        ):
            raise no
        weights = arrays["weights"]
        return cls(
            forget, tick, arrays["G"], arrays["twin"], b, float(weights[0]), float(weights[1]), n, frozenset(parts)
        )


def check_policy(policy: object) -> float:
    """The forget of a policy whose state is sums, or the one sentence."""
    if not isinstance(policy, LinearUCB):
        wanted = "a linear policy with Keep or Fade: nothing else is a sum over rows"
        raise BadInput("policy", policy, wanted, "fold the log instead, agent.learn_log(log)")
    if not policy.memory.geometric:
        raise BadInput("policy", policy.memory, "memory=Keep() or Fade(forget)", "fold the log instead")
    if policy.learns:
        wanted = "R and S that are told: what is learned of them depends on the order of rewards"
        raise BadInput("policy", f"R = {policy.R!r}, S = {policy.S!r}", wanted, "tell both, or fold the log")
    if policy.two_matrix == "as-published":
        raise BadInput("two_matrix", "as-published", '"correct": the slip depends on order', "pass that")
    return float(policy.memory.numbers() and policy.memory.forget)


def sums(log: Any, policy: LinearUCB, out: str | Path | None = None, *, tick: int | None = None) -> Sums:
    """Reduce a log to the sums of a linear policy that keeps or fades.

    The tick is that of the last reward, or a later one. With a folder `out` the sums of each part are kept there as a
    file named by the part's digest and the memory: a part that was reduced before is not read again. Parquet parts, and
    row groups, whose rows are all older than 40 half-lives are left out with a warning.
    """
    forget, found = check_policy(policy), read_log(log)
    found.require(COLUMNS, "which sums are made of")
    if found.dim is not None and found.dim != policy.dim:
        raise BadInput("log", f"vectors of {found.dim} numbers", f"{policy.dim}, the policy's dim", "match them")
    folder = None if out is None else Path(out)
    if folder is not None:
        folder.mkdir(parents=True, exist_ok=True)
    span = HALF_LIVES * math.log(2.0) / -math.log1p(-forget) if forget else math.inf
    names = _digests(found)
    ranges = [_tick_range(part) if forget else None for part in found.parts]
    last = max((one[1] for one in ranges if one), default=None)
    total, skipped = None, 0
    for part, name, known in zip(found.parts, names, ranges, strict=True):
        if known and last is not None and last - known[0] > span and known[1] < last:
            skipped += part.rows
            one = _nothing(policy, known[1], frozenset([name]), known[2])
        else:
            one, left_out = _reduced(part, name, policy, span, folder)
            skipped += left_out
        total = one if total is None else total + one
    if total is None:
        raise BadInput("log", "no parts", "at least one", "pass a log with rows")
    if skipped:
        told = f"{skipped} rows are older than {HALF_LIVES:g} half-lives, weigh less than 1e-12, and were not read"
        warnings.warn(told, stacklevel=2)
    return total if tick is None else total.at(whole("tick", tick, 0, "pass a tick no earlier than the last reward"))


def last_tick(log: Log) -> int:
    """The tick of the last reward."""
    log.require(("reward", "reward_tick"), "which says when rewards came")
    last = 0
    for batch in log.batches(("reward", "reward_tick")):
        assert batch.reward is not None and batch.reward_tick is not None
        last = max(last, int(batch.reward_tick[~np.isnan(batch.reward)].max(initial=0)))
    return last


def _digests(log: Log) -> list[str]:
    """What the parts are known by; the same rows twice are refused before anything is read."""
    names: list[str] = []
    for part in log.parts:
        name = part.digest()
        if name in names:
            first = log.parts[names.index(name)].name
            wanted = "each part once: its rewards would count twice"
            raise BadInput("log", f"{part.name}, which holds what {first} does", wanted, "leave one out")
        names.append(name)
    return names


def _nothing(policy: LinearUCB, tick: int, parts: frozenset[str], n: int = 0) -> Sums:
    d = policy.dim
    forget = float(policy.memory.forget)
    return Sums(forget, tick, np.zeros((d, d)), np.zeros((d, d)), np.zeros(d), 0.0, 0.0, n, parts)


def _reduced(part: Part, name: str, policy: LinearUCB, span: float, folder: Path | None) -> tuple[Sums, int]:
    """The sums of a part, from their file where there is one, and how many rows were not read for it."""
    memory = container.digest(["sums", policy.dim, float(policy.memory.forget)])
    path = None if folder is None else folder / f"{name[:32]}-{memory}{ENDING}"
    if path is not None and path.exists():
        kept = Sums.from_bytes(path.read_bytes())
        if kept.parts != {name} or kept.forget != policy.memory.forget or kept.dim != policy.dim:
            raise BadInput("out", str(path), f"the sums of {part.name}", _ANEW)
        return kept, 0
    groups, left_out, count = _recent(part, span)
    found = _fold(groups, policy, name)
    found = replace(found, n=found.n + count)
    if path is not None:
        keep_durably(path, found.to_bytes())
    return found, left_out


def _fold(batches: Iterator[Batch], policy: LinearUCB, name: str) -> Sums:
    """Batch by batch, each at the tick of its own last reward."""
    log_gamma, found = math.log1p(-float(policy.memory.forget)), None
    low, high = policy._reward_range()
    for batch in batches:
        born, X, reward, paid_at = batch.born, batch.x, batch.reward, batch.reward_tick
        assert born is not None and X is not None and reward is not None and paid_at is not None
        lessons = ~np.isnan(reward)
        _check_rows(batch, lessons, policy, low, high)
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
        twin = scaled.T @ scaled if policy.two_matrix else np.zeros_like(G)
        one = Sums(policy.memory.forget, tick, G, twin, b, float(w.sum()), float(w @ w), len(w), frozenset())
        found = one if found is None else found + one
    return replace(found or _nothing(policy, 0, frozenset()), parts=frozenset([name]))


def _check_rows(batch: Batch, lessons: Any, policy: LinearUCB, low: float, high: float) -> None:
    """Rewards in range, arms no longer than L, and no reward before its choice; or the sentence with the row."""
    born, X, reward, paid_at = batch.born, batch.x, batch.reward, batch.reward_tick
    assert born is not None and X is not None and reward is not None and paid_at is not None
    wrong = lessons & ~((reward >= low) & (reward <= high))
    if wrong.any():
        row = int(wrong.argmax())
        raise batch.bad(row, "reward", float(reward[row]), f"a reward from {low:g} to {high:g}")
    wrong = lessons & ((paid_at < born) | (paid_at >= 2**53))
    if wrong.any():
        row = int(wrong.argmax())
        raise batch.bad(row, "reward_tick", int(paid_at[row]), f"a tick from {born[row]}, its choice's, up")
    lengths = np.einsum("ij,ij->i", X, X)
    wrong = lessons & (lengths > (policy.reach * (1.0 + 1e-6)) ** 2)
    if wrong.any():
        row = int(wrong.argmax())
        raise batch.bad(row, "x", f"norm {math.sqrt(lengths[row]):g}", f"norm at most L = {policy.reach:g}")


def _statistics(part: Part) -> tuple[Any, list[dict[str, Any]]] | None:
    """A Parquet file's metadata and, a row group each, the statistics of born, reward_tick and reward."""
    if not hasattr(part, "path") or part.path.suffix != ".parquet":
        return None
    from pyarrow.parquet import read_metadata

    metadata, found = read_metadata(part.path), []
    for number in range(metadata.num_row_groups):
        group = metadata.row_group(number)
        columns = {group.column(k).path_in_schema: group.column(k).statistics for k in range(group.num_columns)}
        known = {name: columns.get(name) for name in ("born", "reward_tick", "reward")}
        counted = getattr(known["reward"], "has_null_count", False)
        if not counted or not all(getattr(known[one], "has_min_max", False) for one in ("born", "reward_tick")):
            return None
        known["rows"] = group.num_rows
        found.append(known)
    return metadata, found


def _tick_range(part: Part) -> tuple[int, int, int] | None:
    """The newest birth and the newest reward of a Parquet part, and how many rewards it has, by statistics alone."""
    known = _statistics(part)
    if known is None or not known[1]:
        return None
    groups = known[1]
    count = sum(one["rows"] - one["reward"].null_count for one in groups)
    return max(one["born"].max for one in groups), max(one["reward_tick"].max for one in groups), count


def _recent(part: Part, span: float) -> tuple[Iterator[Batch], int, int]:
    """Batches of a part without row groups that are too old; rows left out, and rewards among them."""
    known = _statistics(part) if math.isfinite(span) else None
    if known is None:
        return part.batches(COLUMNS), 0, 0
    groups = known[1]
    last = max((one["reward_tick"].max for one in groups), default=0)
    old = [last - one["born"].max > span for one in groups]
    if not any(old):
        return part.batches(COLUMNS), 0, 0
    from driftwise.tables.arrow import ParquetPart

    class Recent(ParquetPart):
        """The row groups that count."""

        def _record_batches(self, names: list[str], rows: int) -> Iterator[Any]:
            kept = [number for number, gone in enumerate(old) if not gone]
            with self._open() as file:
                yield from file.iter_batches(batch_size=rows, row_groups=kept, columns=names, use_threads=False)

    left = [one for one, gone in zip(groups, old, strict=True) if gone]
    rewards = sum(one["rows"] - one["reward"].null_count for one in left)
    return Recent(part.path).batches(COLUMNS), sum(one["rows"] for one in left), rewards  # type: ignore[attr-defined]


def sql(policy: LinearUCB, tick: int, *, table: str = "log", element: str = "x[{i}]") -> str:
    """The query that has a warehouse reduce the log to one row, for `sums_of_row`.

    `element` says how number {i} of the vector is written, counted from 1, or {j}, from 0: "x[{i}]" in PostgreSQL and
    DuckDB, "x[OFFSET({j})]" in BigQuery, "x{i}" for columns of their own.
    """
    forget, d = check_policy(policy), policy.dim
    tick = whole("tick", tick, 0, "pass the tick to weigh at: no earlier than the last reward")
    weight = f"EXP({math.log1p(-forget)!r} * ({tick} - born))" if forget else "1.0"
    x = [element.format(i=i + 1, j=i) for i in range(d)]
    lines = ["COUNT(*) AS n", "SUM(w) AS weight", "SUM(w * w) AS squares"]
    lines += [f"SUM(w * reward * {x[i]}) AS b_{i + 1}" for i in range(d)]
    lines += [f"SUM(w * {x[i]} * {x[j]}) AS g_{i + 1}_{j + 1}" for i in range(d) for j in range(i + 1)]
    if policy.two_matrix:
        lines += [f"SUM(w * w * {x[i]} * {x[j]}) AS t_{i + 1}_{j + 1}" for i in range(d) for j in range(i + 1)]
    return (
        "SELECT\n  " + ",\n  ".join(lines)
        + f"\nFROM (\n  SELECT {table}.*, {weight} AS w FROM {table} WHERE reward IS NOT NULL\n) AS weighed"
    )  # fmt: skip


def sums_of_row(policy: LinearUCB, tick: int, row: Mapping[str, Any], part: str) -> Sums:
    """The sums in the one row that the query of `sql` gives; `part` names what was reduced, to be added once."""
    found, d = _nothing(policy, whole("tick", tick, 0), frozenset([str(part)])), policy.dim

    def number(name: str) -> float:
        if name not in row:
            raise BadInput("row", f"no column {name}", "the row that the query of `sql` gives", "run it again")
        return real(f"row[{name!r}]", 0.0 if row[name] is None else row[name], -math.inf)

    for i in range(d):
        found.b[i] = number(f"b_{i + 1}")
        for j in range(i + 1):
            found.G[i, j] = found.G[j, i] = number(f"g_{i + 1}_{j + 1}")
            if policy.two_matrix:
                found.twin[i, j] = found.twin[j, i] = number(f"t_{i + 1}_{j + 1}")
    n = whole("row['n']", row.get("n"), 0)
    return replace(found, weight=number("weight"), squares=number("squares"), n=n)
