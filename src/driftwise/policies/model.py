"""Rewards: the link μ, its noise or range, and the constants k and c that follow from S and L."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from driftwise._internal.compiling import need_compiler
from driftwise._internal.validate import real
from driftwise.errors import BadInput
from driftwise.kernels.links import CUSTOM, LINKS, LinkRow, link_row, mean, slope
from driftwise.kernels.point import Floats

LinkName: TypeAlias = str


@dataclass(frozen=True, kw_only=True)
class Link:
    """A link of your own: an increasing μ and its derivative on arrays, with k ≥ μ' ≥ c > 0 over |z| ≤ SL.

    Python evaluates it on the atoms of the history, so a policy with it runs call by call. It needs the extra `jit`.
    `self_concordant` says that |μ''| ≤ μ' there, which the self-concordant rules need.
    """

    mean: Callable[[Floats], Floats]
    slope: Callable[[Floats], Floats]
    k: float
    c: float
    self_concordant: bool = False
    bounded: bool = False

    def __post_init__(self) -> None:
        need_compiler("a link of your own")
        real("c", self.c, 0.0, low_open=True, way_out="pass the least slope of μ over |z| ≤ SL")
        real("k", self.k, self.c, way_out="pass the largest slope of μ over |z| ≤ SL")
        for name in ("mean", "slope"):
            if not callable(getattr(self, name)):
                raise BadInput(name, getattr(self, name), "a function of an array", "pass μ and μ' themselves")

    def __call__(self, z: Floats) -> tuple[Floats, Floats]:
        """μ(z) and μ'(z), checked."""
        values, slopes = (np.asarray(f(z.copy()), dtype=np.float64) for f in (self.mean, self.slope))
        for name, got in (("mean", values), ("slope", slopes)):
            if got.shape != z.shape or not np.isfinite(got).all():
                wanted = f"finite values of shape {z.shape} for arguments from {z.min():g} to {z.max():g}"
                raise BadInput(name, f"{got.shape} {got.ravel()[:3]}", wanted, "vectorise it and guard its overflow")
        return values, slopes

    @property
    def row(self) -> LinkRow:
        """The row it would have in the table of links."""
        return LinkRow(
            CUSTOM, lambda radius: (self.k, self.c), lambda radius: 1.0 if self.self_concordant else math.inf,
            noise=None, bounded=self.bounded, chance=False, rewards=(),
        )  # fmt: skip


def row_of(link: LinkName | Link) -> LinkRow:
    """The row of the table for a link."""
    return link.row if isinstance(link, Link) else link_row(link)


def constants(link: LinkName | Link, S: float, L: float) -> tuple[float, float]:
    """k = sup and c = inf of μ' over |z| ≤ SL."""
    k, c = row_of(link).slopes(S * L)
    if not (c > 0.0 and math.isfinite(k)):
        raise BadInput("S", S, f"S·L at which the slope of the {link} link is still above 0", "pass a smaller S")
    return k, c


def curves(link: LinkName | Link) -> tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]]:
    """μ and μ' on arrays."""
    if isinstance(link, Link):
        return lambda z: link(z)[0], lambda z: link(z)[1]
    code = link_row(link).code

    def each(z: Floats, curve: Callable[[int, float], float]) -> Floats:
        return np.array([curve(code, one) for one in z.tolist()])

    return lambda z: each(z, mean), lambda z: each(z, slope)


def noise(link: LinkName | Link, R: float | None) -> float:
    """R of the noise: as given, or as the link implies (1/2 for rewards in [0, 1], by Hoeffding)."""
    if R is not None:
        return real("R", R, 0.0, way_out="pass the sub-Gaussian constant of the noise")
    implied = row_of(link).noise
    if implied is None:
        raise BadInput("R", R, "the sub-Gaussian constant of the noise, which this link does not imply", "pass R=")
    return implied


def check_self_concordant(link: LinkName | Link, S: float, L: float) -> None:
    """Self-concordant rules need bounded rewards and |μ''| ≤ μ' on |z| ≤ SL (docs/math.md#conventions)."""
    row = row_of(link)
    if isinstance(link, Link):
        if not (link.self_concordant and link.bounded):
            wanted = "a Link with self_concordant=True and bounded=True"
            raise BadInput("link", link, wanted, "use the GLB rule, or say so if it is true")
    elif not row.bounded:
        bounded = " or ".join(name for name, other in LINKS.items() if other.bounded)
        wanted = f"{bounded}: self-concordant rules need rewards in [0, m]"
        raise BadInput("link", link, wanted, "use a GLB policy for this link")
    elif row.concordance(S * L) > 1.0:
        wanted = f"S·L at which |μ''| ≤ μ' for the {link} link, where now |μ''| reaches {row.concordance(S * L):.3g} μ'"
        raise BadInput("S", S, wanted, "use a GLB policy, or the logistic link")
