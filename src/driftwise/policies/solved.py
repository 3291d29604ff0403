"""What policies that solve a program for every choice share: compiled history, the estimate stepped from Python."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from driftwise.kernels import newton, point, project
from driftwise.kernels.links import CUSTOM
from driftwise.kernels.links import mean as link_mean
from driftwise.kernels.point import FAILED, USED, Floats
from driftwise.policies.base import State
from driftwise.policies.glm import GeneralizedUCB
from driftwise.policies.model import CODES


@dataclass(frozen=True, kw_only=True)
class Solved(GeneralizedUCB):
    """A generalized linear policy whose index is a program of its own; it runs a call at a time.

    Compiled learning keeps sums and atoms; as for a link of the user's own it leaves the estimate to Python, which here
    calls compiled solvers.
    """

    @cached_property
    def point(self) -> point.Point:
        flags, table = super().point
        flags[point.LINK] = CUSTOM
        return point.Point(flags, table)

    @property
    def stepped(self) -> bool:
        return True

    @property
    def code(self) -> int:
        """The link as kernels know it."""
        return CODES[str(self.link)]

    def history(self, state: State) -> tuple[int, Floats, Floats, Floats]:
        """link, atoms, weights, reward sums: what solvers take first."""
        return self.code, state.atoms, state.weights, state.targets

    def mu(self, z: Floats) -> Floats:
        """μ on an array."""
        code = self.code
        return np.array([link_mean(code, one) for one in z.ravel().tolist()]).reshape(z.shape)

    def ridge_now(self, state: State) -> float:
        """The ridge of the estimating equation after the observations so far."""
        return self.reg

    def _after(self, state: State, lesson: tuple[Any, float, float] | None, ticks: float) -> None:
        used = int(state.cursor[USED])
        scratch = newton.scratch(self.dim, max(1, used))
        reg = self.ridge_now(state)
        status = newton.solve_(*self.history(state), used, 0, reg, state.theta, *scratch, state.H[0])
        state.shown[0] = state.theta[0]
        if status == newton.CONVERGED:  # θ̃, the projection in the norm of H(θ)⁻¹
            status, _ = project.project_h_(*self.history(state), used, 0, reg, float(self.S), state.shown, *scratch)
        if status != newton.CONVERGED:
            state.counters[0, FAILED] += 1.0
