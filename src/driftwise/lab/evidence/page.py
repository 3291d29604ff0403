"""The page of the evidence: a table and a figure per set, and the description and figure of a change."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from driftwise._internal.files import keep
from driftwise.draw.page import Block, Heading, Page, Picture, Table, Text, html, markdown
from driftwise.draw.picture import picture
from driftwise.draw.plots import can_draw
from driftwise.draw.styles import INK, PALETTE
from driftwise.lab.evidence.plays import AUTO, SCOUTS, STATIC, Facts, Play
from driftwise.lab.evidence.rows import EvidenceRow, Story

_COLOURS = {AUTO: PALETTE["weighted"], STATIC: INK}
_COLUMNS = ("policy", "reward", "less static, over draws", "over time", "shuffled", "shuffled: less static", "draws",
            "rounds")  # fmt: skip


@dataclass(frozen=True)
class PlayedSet:
    """The results of one set."""

    name: str
    definition: str
    terms: str
    facts: Facts
    rows: Sequence[EvidenceRow]
    plays: Mapping[str, Sequence[Play]]
    story: Story | None


def signed_difference(mean: float, width: float) -> str:
    return "" if np.isnan(mean) else f"{mean:+.4f} ± {width:.4f}".replace("-", "\N{MINUS SIGN}")


def evidence_table(found: PlayedSet) -> Table:
    """The rows of a set, static first."""
    lines = []
    for row in found.rows:
        own = row.policy == STATIC
        lines.append([
            row.policy, f"{row.reward:.4f}", "" if own else signed_difference(row.less_static, row.over_draws),
            "" if own else signed_difference(row.less_static, row.over_time),
            "" if np.isnan(row.shuffled) else f"{row.shuffled:.4f}",
            "" if own else signed_difference(row.shuffled_less_static, row.shuffled_over_draws), str(row.draws),
            f"{row.part:.0%}",
        ])  # fmt: skip
    return Table(_COLUMNS, lines, range(1, len(_COLUMNS)))


def write(sets: Sequence[PlayedSet], missing: Mapping[str, str], folder: Path, command: str) -> list[Path]:
    """Write evidence.html and evidence.md, with figures if matplotlib is installed. Returns the files written."""
    drawn, blocks = can_draw(), list[Block]()
    for found in sets:
        facts = found.facts
        fixed = float(np.nanmean(facts.paid, axis=0).max())
        blocks += [
            Heading(found.name), Text(found.definition),
            Text(f"{facts.rounds} rounds, {len(facts.names)} arms, d = {facts.dim}. The best arm of every round pays "
                 f"{facts.best:.4f}, the best fixed arm {fixed:.4f}. Terms: {found.terms}."),
            evidence_table(found),
        ]  # fmt: skip
        if drawn:
            _draw(found, folder, found.name, _panels, 2)
            blocks.append(Picture(found.name, "Reward per round, and Auto's memory, over time.",
                                  f"reward and memory over time on {found.name}"))  # fmt: skip
        if found.story is not None:
            blocks.append(Text(told_of_set(found.story)))
            if drawn:
                _draw(found, folder, f"{found.name}-change", _change, 3)
                blocks.append(Picture(f"{found.name}-change", "What the two arms pay, who plays the new one, and what "
                                      "each policy has lost to it.", f"the change of {found.name}"))  # fmt: skip
    blocks += [Text(f"{name}: not played. {sentence}") for name, sentence in missing.items()]
    lead = (f"Policies on real data, by `{command}`. Differences to static are paired; intervals are 95%, over draws "
            "(these rounds again, other orders of arms) and over 40 stretches of time (other rounds like these).")
    made = Page("Evidence", lead, blocks)
    keep(folder / "evidence.html", html(made, folder))
    keep(folder / "evidence.md", markdown(made))
    return [folder / "evidence.html", folder / "evidence.md"]


def told_of_set(one: Story) -> str:
    """A paragraph that describes a change."""
    at = f"round {one.at * one.rounds}"
    when = "Auto never plays it more" if one.noticed is None else (
        f"Auto plays it more from {(one.noticed - one.at) * one.rounds} rounds later on")  # fmt: skip
    return (f"The change that matters most comes at {at}: {one.before} was best before it and {one.after} after it. "
            f"{when}, which cost {one.cost:.0f} rewards against playing it at once. From the change to the end Auto "
            f"lost {one.lost:.0f} rewards to it, and static {one.static_lost:.0f}.")  # fmt: skip


def _draw(found: PlayedSet, folder: Path, name: str, fill: Callable[[PlayedSet, Any], None], panels: int) -> None:
    """Panels side by side, and one below the other for narrow screens and in the PNG, which pages show at any width."""
    with picture(folder / "figures" / f"{name}.svg", (9.0, 3.2), columns=panels) as axes:
        fill(found, axes[0])
    for ending, width in (("-narrow.svg", 4.0), (".png", 5.0)):
        with picture(folder / "figures" / f"{name}{ending}", (width, 2.6 * panels), rows=panels) as axes:
            fill(found, axes[:, 0])


def _panels(found: PlayedSet, axes: Any) -> None:
    """The rewards of Auto, static and the best half-life, and the memory of Auto."""
    per = found.facts.rounds / len(found.facts.paid)
    best = max(filter(lambda name: name.startswith("half-life") and found.plays[name], found.plays), default="",
               key=lambda name: float(np.mean([one.reward.mean() for one in found.plays[name][:SCOUTS]])))  # fmt: skip
    for name, colour in {best: PALETTE["restart"], **_COLOURS}.items():
        if plays := found.plays.get(name):
            mean = _smooth(np.mean([one.reward for one in plays], axis=0))
            axes[0].plot((np.arange(len(mean)) + 0.5) * per, mean, color=colour, label=name, lw=1.4)
    if plays := found.plays.get(AUTO):
        longest = 2.0 * found.facts.rounds
        memory = np.exp(np.mean([np.log(np.minimum(one.memory, longest)) for one in plays], axis=0))
        axes[1].plot((np.arange(len(memory)) + 0.5) * per, memory, color=_COLOURS[AUTO], lw=1.4)
    axes[1].set_yscale("log")
    _label(axes, ("reward per round", "Auto's memory, rounds"))


def _change(found: PlayedSet, axes: Any) -> None:
    """What the arms of the story pay, how often policies play the new one, and what they lost to it since."""
    one, facts = found.story, found.facts
    assert one is not None
    per, new = facts.rounds / len(facts.paid), facts.names.index(one.after)
    rounds, paid = (np.arange(len(facts.paid)) + 0.5) * per, facts.paid[:, new]
    for name, style in ((one.before, ":"), (one.after, "-")):
        axes[0].plot(rounds, _smooth(facts.paid[:, facts.names.index(name)]), style, color=INK, lw=1.2, label=name)
    for name in (STATIC, AUTO):
        plays, colour = found.plays[name], _COLOURS[name]
        share = _smooth(np.mean([play.shares[:, new] for play in plays], axis=0))
        axes[1].plot(rounds, share, color=colour, label=name)
        lost = np.cumsum((paid - np.mean([play.reward for play in plays], axis=0))[one.at :]) * per
        axes[2].plot(rounds[one.at :], lost, color=colour, label=f"{name}: {lost[-1]:.0f}")
    for axis in axes:
        axis.axvline(one.at * per, color="#b0b0b0", lw=0.8, label="the change" if axis is axes[0] else None)
        if one.noticed is not None:
            axis.axvline(one.noticed * per, color="#b0b0b0", lw=0.8, ls="--",
                         label="Auto plays it more" if axis is axes[0] else None)  # fmt: skip
    _label(axes, ("reward of the two arms", "share of the new arm", "rewards lost to the new arm"))


def _label(axes: Any, titles: Sequence[str]) -> None:
    for axis, title in zip(axes, titles, strict=True):
        axis.set_title(title, fontsize=9)
        axis.set_xlabel("round", fontsize=8)
        axis.tick_params(labelsize=7)
        axis.locator_params(axis="x", nbins=5)
        if axis.get_legend_handles_labels()[1]:
            axis.legend(fontsize=6.5, frameon=False)


def _smooth(values: Any, width: int = 9) -> Any:
    """A moving mean, over fewer values at the ends."""
    known = np.where(np.isnan(values), 0.0, 1.0)
    wide = np.ones(min(width, len(values)))
    return np.convolve(np.nan_to_num(values), wide, "same") / np.maximum(np.convolve(known, wide, "same"), 1.0)
