"""An evaluation as a page: the estimates, the drift meter, and a chart of each."""

from __future__ import annotations

import math
from pathlib import Path

from driftwise._internal.files import keep
from driftwise.data.evaluate import Evaluation
from driftwise.draw.page import Block, Heading, Page, Picture, Table, Text, html, markdown
from driftwise.draw.picture import picture
from driftwise.draw.plots import can_draw
from driftwise.draw.styles import INK, PALETTE

_COLOURS = {"IPS": "window", "SNIPS": "restart", "DR": "weighted", "replay": "weighted"}
_SIZES = {"": (7.0, 3.4), "-narrow": (4.0, 3.4)}


def write_page(found: Evaluation, folder: Path) -> list[Path]:
    """Write report.html and report.md, with charts if matplotlib is installed. Returns the files."""
    drawn = can_draw()
    if drawn:
        for kind, ending in (("", ".svg"), ("-narrow", ".svg"), ("", ".png")):
            _chart(found, folder / "figures" / f"blocks{kind}{ending}", _SIZES[kind])
            found.drift.draw(folder / "figures" / f"drift{kind}{ending}", _SIZES[kind])
    made = page(found, drawn)
    keep(folder / "report.html", html(made, folder))
    keep(folder / "report.md", markdown(made))
    return [folder / "report.html", folder / "report.md"]


def page(found: Evaluation, drawn: bool) -> Page:
    """The page: text, tables and charts."""
    gain = found.gains[found.best]
    blocks: list[Block] = [Heading("Would it have helped?"), Text(verdict(found)), _table(*found.table())]
    blocks += [
        Text(
            f"Intervals are 95%, for other rows like these. Recent rows: a row's weight halves every "
            f"{found.half_life:.0f} rows. Effective rows: as many rows of equal weight have the same information; few "
            "of them mean that the log rarely plays the policy's arms."
        ),
        Heading("Over time"),
    ]
    if drawn:
        alt = f"{found.best} and what was logged in {len(found.blocks)} stretches of time, with 95% intervals"
        blocks.append(Picture("blocks", "Reward per row over time; bars are 95% intervals.", alt))
    blocks.append(_table(*found.block_table()))
    blocks += [Heading("The drift meter"), Text(_meter(found))]
    if drawn:
        alt = f"Weights of {len(found.drift.memories)} memories over time"
        blocks.append(Picture("drift", "Weights of the memories, in ticks; the lightest is the shortest.", alt))
    blocks.append(_table(*found.drift.table()))
    if found.report:
        rows = [[str(name), f"{value:.4g}" if isinstance(value, float) else str(value)]
                for name, value in found.report.items()]  # fmt: skip
        blocks += [Heading("What else it learned", 3), Text("The policy's report at the end of the log."),
                   Table(["what", "value"], rows, (1,))]  # fmt: skip
    lead = f"{len(found.terms)} logged rows with a reward; {found.missing} more had none. "
    return Page(f"{found.policy} on a log", lead + f"{found.best}: {gain} per row more than was logged.", blocks)


def verdict(found: Evaluation) -> str:
    """One sentence: better, worse, or not certain, by the interval of the gain."""
    gain = found.gains[found.best]
    if gain.reason is not None or found.estimates[found.best].reason is not None:
        return f"**It is not certain**: {gain.reason or found.estimates[found.best].reason}."
    if gain.low > 0.0:
        return f"**Yes**: {gain} per row more than was logged, by {found.best}."
    if gain.high < 0.0:
        return f"**No**: {gain} per row against what was logged, by {found.best}."
    open_ = f"**It is not certain**: {gain} per row against what was logged, by {found.best}; the interval contains 0."
    effective = found.estimates[found.best].effective
    known = f"The log is worth {effective:.0f} rows of this policy's own."
    return f"{open_} {known} A longer log, or one with a larger epsilon, gives a narrower interval."


def _meter(found: Evaluation) -> str:
    """The reading of the meter as a paragraph."""
    drift = found.drift
    how = (
        "The policy weighs memories of these lengths while it learns."
        if drift.advantage is None
        else "The last rewards were predicted again with memories of these lengths."
    )
    level = "" if drift.level is None else f" The level: {drift.level}."
    return f"By the end of the log: {drift.summary}. {how}{level}"


def _table(columns: list[str], rows: list[list[str]]) -> Table:
    return Table(columns, rows, range(1, len(columns)))


def _chart(found: Evaluation, path: Path, size: tuple[float, float]) -> None:
    with picture(path, size) as axes:
        ax = axes[0, 0]
        middle = [(one.start + one.stop) / 2.0 for one in found.blocks]
        step = (middle[1] - middle[0]) / 8.0 if len(middle) > 1 else 1.0
        lines = {"logged": ([one.logged for one in found.blocks], INK)}
        for name in found.estimates:
            lines[name] = [one.estimates[name] for one in found.blocks], PALETTE[_COLOURS[name]]
        for place, (name, (values, colour)) in enumerate(lines.items()):
            known = [(x + place * step, one) for x, one in zip(middle, values, strict=True) if math.isfinite(one.value)]
            reach = [[one.value - one.low for _, one in known], [one.high - one.value for _, one in known]]
            ax.errorbar(
                [x for x, _ in known], [one.value for _, one in known], reach, label=name, color=colour,
                marker="os^D"[place], markersize=4, linewidth=1, capsize=2,
            )  # fmt: skip
        ax.set_xlabel("rows, in order of time")
        ax.set_ylabel("reward a row")
        ax.legend(frameon=False, fontsize="small")
