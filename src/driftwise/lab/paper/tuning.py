"""The theorems' tunings side by side."""

from __future__ import annotations

import math

from driftwise._internal.validate import real, whole
from driftwise.kernels.links import link_row
from driftwise.theory import tuning


def advice(*, dim: int, horizon: int, path_length: float, S: float, L: float, link: str) -> list[tuple[str, ...]]:
    """A row per family: γ, 1-γ, memory in rounds, window, period, λ."""
    whole("dim", dim)
    whole("horizon", horizon, 2, "forgetting needs at least two rounds")
    real("path_length", path_length, 0.0, way_out="pass the length of the path of θ, P_T")
    real("S", S, 0.0, low_open=True, way_out="pass the largest norm of θ")
    real("L", L, 0.0, low_open=True, way_out="pass the largest norm of an arm")
    k, c = link_row(link).slopes(S * L)
    families = (
        ("LB", tuning.lb_forget(dim, horizon, path_length), float(dim)),
        ("GLB", tuning.glb_forget(dim, horizon, path_length, k, c), dim / c**2),
        ("SCB", tuning.scb_forget(dim, horizon, path_length, k), dim * math.log(horizon) / c),
    )
    window = tuning.window_length(dim, horizon, path_length)
    period = tuning.restart_period(dim, horizon, path_length)
    return [
        (name, f"{1 - forget:.6f}", f"{forget:.3g}", f"{1 / forget:.1f}", str(window), str(period), f"{lam:.4g}")
        for name, forget, lam in families
    ]
