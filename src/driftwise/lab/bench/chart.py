"""One picture of the times: a line per contender, a mark per size, on a logarithmic scale."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from driftwise.draw.plots import pyplot
from driftwise.lab.bench.rounds import BenchRow

_MARKS = ("o", "s", "^", "D", "v")


def draw_chart(rows: Sequence[BenchRow], target: Path) -> None:
    """Microseconds per round. The contender that is fastest at the smallest size is on top."""
    plot = pyplot()
    timed = [row for row in rows if row.ns]
    sizes = sorted({(row.dim, row.arms) for row in timed})
    first = {row.name: row.median for row in reversed(sorted(timed, key=lambda row: (row.dim, row.arms)))}
    names = sorted(first, key=lambda name: first[name], reverse=True)
    picture, axes = plot.subplots(figsize=(7.5, 0.8 + 0.24 * len(names)), layout="constrained")
    for mark, (d, n) in zip(_MARKS, sizes, strict=False):
        cells = [row for row in timed if (row.dim, row.arms) == (d, n)]
        axes.plot(
            [row.median / 1e3 for row in cells], [names.index(row.name) for row in cells], mark, markersize=5,
            linestyle="none", label=f"d = {d}, {n} arms",
        )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yticks(range(len(names)), names)
    axes.set_xlabel("CPU µs a round, median")
    axes.grid(axis="x", alpha=0.3)
    axes.legend(loc="lower right", frameon=False)
    target.parent.mkdir(parents=True, exist_ok=True)
    picture.savefig(target)
    plot.close(picture)
