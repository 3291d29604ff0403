"""The base of policies that solve a program for every choice: compiled history, the estimate updated from Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from driftwise.kernels.links import mean as link_mean
from driftwise.kernels.point import DAMAGED, FAILED, USED, Floats
from driftwise.kernels.solvers import newton, project
from driftwise.kernels.solvers.atoms import Atoms
from driftwise.policies.glm import GeneralizedUCB
from driftwise.policies.live import report
from driftwise.policies.state import State


@dataclass(frozen=True, kw_only=True)
class Solved(GeneralizedUCB):
    """A generalized linear policy whose index is a program of its own. It runs call by call.

    Compiled learning keeps sums and atoms. As for a link of the user's own, Python updates the estimate; here it calls
    compiled solvers.
    """

    @property
    def stepped(self) -> bool:
        return True

    def history(self, state: State) -> Atoms:
        """The atoms for solvers, at the current ridge."""
        used, ridge = int(state.cursor[USED]), self.ridge_now(state)
        if not 0 <= used <= state.atoms.shape[1]:
            report(DAMAGED)
        return Atoms(self.model.code, state.atoms, state.weights, state.targets, 0, used, ridge, float(self.S))

    def mu(self, z: Floats) -> Floats:
        """μ on an array."""
        code = self.model.code
        return np.array([link_mean(code, one) for one in z.ravel().tolist()]).reshape(z.shape)

    def ridge_now(self, state: State) -> float:
        """The current ridge of the estimating equation."""
        return self.reg

    def _after(self, state: State, lesson: tuple[Any, float, float] | None, ticks: float) -> None:
        atoms = self.history(state)
        work = newton.newton_scratch(self.dim, max(1, atoms.used))
        status = newton.solve_(atoms, state.theta, work, state.H[0])
        state.shown[0] = state.theta[0]
        if status == newton.CONVERGED:  # θ̃, the projection in the norm of H(θ)⁻¹
            status, _ = project.project_(False, atoms, work.M[0], state.shown, work)
        if status != newton.CONVERGED:
            state.counters[0, FAILED] += 1.0
