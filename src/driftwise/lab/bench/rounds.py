"""Times of rounds of the catalogue and of rivals, at three sizes, interleaved. Only ratios within one run are
reliable."""

from __future__ import annotations

import statistics
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from driftwise._internal.progress import bar
from driftwise._internal.python_first import compile_at_once
from driftwise.lab.bench import rivals
from driftwise.policies.base import Compiled
from driftwise.policies.names import catalogue, make
from driftwise.simulation import simulate
from driftwise.worlds import Turn, World

SIZES = ((2, 50), (10, 100), (50, 200))
UNIT = "LB-WeightUCB"
NUMPY, C = "the same in NumPy", "the same in C"
_LONGEST = 4.0  # seconds that one turn of one contender may take


@dataclass
class BenchRow:
    """One contender at one size: CPU nanoseconds per round in each turn, and its mean regret per round if it has
    one."""

    name: str
    dim: int
    arms: int
    rounds: int
    ns: list[float] = field(default_factory=list)
    regret: float | None = None
    word: str = ""  # why there is no number

    @property
    def median(self) -> float:
        return statistics.median(self.ns) if self.ns else float("nan")

    @property
    def spread(self) -> float:
        """Half of the interquartile range, as a share of the median."""
        if len(self.ns) < 2:
            return 0.0
        low, _, high = statistics.quantiles(self.ns, n=4)
        return (high - low) / 2.0 / self.median


Turns = Callable[[BenchRow], None]  # one turn: appends to ns


def measure(
    *, horizon: int, repeats: int, sizes: Sequence[tuple[int, int]] = SIZES, names: Sequence[str] | None = None,
    progress: bool | None = None,
) -> list[BenchRow]:
    """Measure every compiled row of the catalogue (or the named ones), NumPy and C, in turns."""
    compile_at_once()
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        contenders = [one for size in sizes for one in _contenders(size, horizon, names, folder)]
        tick = stack.enter_context(bar("turns", repeats * len(contenders), progress))
        for _ in range(repeats):
            for row, turn in contenders:
                if not row.word:
                    turn(row)
                tick(1)
    return [row for row, _ in contenders]


def _contenders(
    size: tuple[int, int], horizon: int, names: Sequence[str] | None, folder: Path
) -> list[tuple[BenchRow, Turns]]:
    dim, arms = size
    linear = Turn(dim=dim, arms=arms, horizon=horizon)
    clicks = Turn(dim=dim, arms=arms, horizon=horizon, reward="bernoulli")
    found: list[tuple[BenchRow, Turns]] = []
    for entry in catalogue():
        if names is not None and entry["name"] not in names:
            continue
        world = linear if entry["family"] == "linear" else clicks
        policy = make(entry["name"], **world.facts)
        if not policy.stepped:
            rounds = _fitting(policy, world)
            found.append((BenchRow(entry["name"], dim, arms, rounds), _ours(policy, _shortened(world, rounds))))
    found.append((BenchRow(NUMPY, dim, arms, min(horizon, 300)), _numpy(linear)))
    found.append(_in_c(linear, arms, folder))
    return found


def _shortened(world: Turn, rounds: int) -> World:
    """The same world with fewer rounds. The facts that policies were given stay the same."""
    return Turn(dim=world.dim, arms=world.arms, horizon=rounds, reward=world.reward)


def _fitting(policy: Compiled, world: Turn) -> int:
    """The number of rounds that fit into a turn. An estimate over many clicks takes milliseconds at d = 50."""
    trial = min(world.horizon, 20)
    result = simulate({"it": policy}, _shortened(world, trial), trials=1, jobs=1, record="last", progress=False)
    each = float(result.seconds["it"][0]) / trial
    return int(min(world.horizon, max(trial, _LONGEST / 4.0 / max(each, 1e-9))))


def _ours(policy: Compiled, world: World) -> Turns:
    def turn(row: BenchRow) -> None:
        result = simulate({"it": policy}, world, trials=1, jobs=1, record="last", progress=False)
        row.ns.append(float(result.seconds["it"][0]) / row.rounds * 1e9)
        row.regret = float(result.regret["it"][0, -1]) / row.rounds

    return turn


def _numpy(world: World) -> Turns:
    return lambda row: row.ns.append(rivals.numpy_round(world, row.rounds) * 1e9)


def _in_c(world: Turn, arms: int, folder: Path) -> tuple[BenchRow, Turns]:
    row = BenchRow(C, world.dim, arms, world.horizon)
    cc = rivals.c_compiler()
    program = (folder / "limit") if (folder / "limit").exists() else cc and rivals.compile_limit(folder, cc)
    if not program:
        row.word = "no C compiler here" if cc is None else "the C compiler failed"

    def turn(row: BenchRow) -> None:
        assert program
        row.ns.append(rivals.c_round(Path(program), world.dim, arms, min(world.horizon, 1000), 3) * 1e9)

    return row, turn


def plain_rows(rows: Sequence[BenchRow]) -> list[Mapping[str, Any]]:
    """The rows for JSON, each with its multiple of LB-WeightUCB at the same size."""
    unit = {(row.dim, row.arms): row.median for row in rows if row.name == UNIT}
    return [
        {
            "name": row.name, "dim": row.dim, "arms": row.arms, "rounds": row.rounds, "ns": row.ns,
            "median_ns": row.median if row.ns else None, "spread": row.spread,
            "times_unit": row.median / unit[row.dim, row.arms] if row.ns and (row.dim, row.arms) in unit else None,
            "regret_per_round": row.regret, "word": row.word,
        }
        for row in rows
    ]  # fmt: skip


def bench_table(rows: Sequence[BenchRow]) -> tuple[list[str], list[list[str]]]:
    """Columns and lines: a line per contender and a column per size, with ns, spread and multiple of LB-WeightUCB."""
    sizes = sorted({(row.dim, row.arms) for row in rows})
    unit = {(row.dim, row.arms): row.median for row in rows if row.name == UNIT}
    lines = []
    for name in dict.fromkeys(row.name for row in rows):
        cells = {(row.dim, row.arms): row for row in rows if row.name == name}
        lines.append([name, *(_cell(cells.get(size), unit.get(size)) for size in sizes)])
    return ["algorithm", *(f"d={d}, n={n}" for d, n in sizes)], lines


def _cell(row: BenchRow | None, unit: float | None) -> str:
    if row is None or not row.ns:
        return row.word if row is not None else ""
    times = f" × {row.median / unit:.2f}" if unit else ""
    return f"{_time(row.median)} ±{row.spread:.0%}{times}"


def _time(ns: float) -> str:
    for unit, size in (("ms", 1e6), ("µs", 1e3)):
        if ns >= size:
            return f"{ns / size:.3g} {unit}"
    return f"{ns:.0f} ns"
