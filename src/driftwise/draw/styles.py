"""One colour per algorithm in all figures, and a marker where colour does not distinguish lines."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

# The colours of text and axes, and of grid lines. A dark page replaces these two and the palette.
INK, GRID = "#1a1a1a", "#d0d0d0"

# Okabe and Ito's colours and four more, all at least 14 apart in CIELAB, also under each of the three colour
# blindnesses. Families that share a hue are never in the same figure.
PALETTE: dict[str, str] = {
    "weighted": "#0072b2",
    "static": "#000000",
    "restart": "#009e73",
    "discounted": "#d55e00",
    "window": "#56b4e9",
    "MASTER": "#e69f00",
    "BOB": "#8b1a5b",
    "Bank": "#cc79a7",
    "piecewise": "#9955ff",
    "OFULog": "#804000",
    "Logistic-UCB-2": "#1f5c2e",
    "other": "#767676",
}
_FAMILY = {
    "weighted": ("LB-WeightUCB", "GLB-WeightUCB", "SCB-WeightUCB"),
    "static": ("OFUL", "GLM-UCB", "LogUCB1"),
    "restart": ("RestartUCB", "GLB-RestartUCB", "SCB-RestartUCB"),
    "discounted": ("D-LinUCB", "BVD-GLM-UCB", "SC-D-GLUCB", "D-LinTS", "D-RandLinUCB", "D-GLM-TSL"),
    "window": ("SW-UCB", "GLB-SW", "SCB-SW"),
    "Bank": ("Bank", "Auto"),
    "piecewise": ("SCB-PW-WeightUCB",),
    "OFULog": ("OFULog", "OFULog-r"),
}
_BY_NAME = {name: family for family in PALETTE for name in _FAMILY.get(family, (family,))}
_MARKERS = ("o", "s", "^", "D", "v", "P", "X")


def _tint(hue: str) -> str:
    """The hue, two fifths of the way to white."""
    parts = (int(hue[i : i + 2], 16) for i in (1, 3, 5))
    return "#" + "".join(f"{round(0.6 * part + 0.4 * 255):02x}" for part in parts)


# A variant of an algorithm is drawn in its tint, with markers in its hue.
TINTS: dict[str, str] = {family: _tint(hue) for family, hue in PALETTE.items()}


class Style(NamedTuple):
    """How a line is drawn: its colour, its marker ("" for none), and the marker's colour."""

    colour: str
    marker: str
    hue: str


def _family(label: str) -> tuple[str, bool]:
    """The family of the algorithm a label begins with, and whether it says more: "OFUL R=1/2" is a variant of OFUL."""
    found = re.match(r"[\w+-]+", label)
    name = found.group() if found else ""
    variant = name == "OFULog-r" or label[len(name) :].strip() not in ("", "n=13")
    return _BY_NAME.get(name.split("+")[0], "other"), variant


def colour(label: str) -> str:
    """The colour of an algorithm: its family's, or the family's tint for a variant."""
    family, variant = _family(label)
    return TINTS[family] if variant and family != "other" else PALETTE[family]


def styles(labels: Sequence[str]) -> dict[str, Style]:
    """The styles of the lines of one figure, no two alike: colours by `colour`, and a marker on each variant.

    Labels that are not algorithms get hues that the figure does not use, the rarest first.
    """
    present = {_family(label)[0] for label in labels}
    spare = [family for family in PALETTE if family not in present and family != "other"]  # the rarest last
    found: dict[str, Style] = {}
    for label in labels:
        family, variant = _family(label)
        if family == "other":
            family, variant = (spare.pop() if spare else family), False
        hue, first = PALETTE[family], list(PALETTE).index(family)
        choices = [Style(TINTS[family], _MARKERS[(first + i) % len(_MARKERS)], hue) for i in range(len(_MARKERS))]
        if not variant:
            choices.insert(0, Style(hue, "", hue))
        found[label] = next((one for one in choices if one not in found.values()), choices[-1])
    return found
