"""Policies for clicks as in public code: GLM-UCB and LogUCB1 with the constants of logistic_bandit, and OFUGLB."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from driftwise._internal.elementary import erfc, exp, log, log1p
from driftwise._internal.products import dot, factor, length, solved, times
from driftwise._internal.validate import one_of
from driftwise.errors import BadInput
from driftwise.kernels import point
from driftwise.kernels.links import slope
from driftwise.kernels.point import FAILED, USED, Floats
from driftwise.kernels.solvers import newton, sets
from driftwise.kernels.solvers.atoms import Atoms
from driftwise.policies.arms import Choice, Scores
from driftwise.policies.model import check_self_concordant
from driftwise.policies.optimistic import SetRule
from driftwise.policies.solved import Solved
from driftwise.policies.state import State


def chi_square(d: int, x: float) -> float:
    """The distribution function of the chi-square distribution with d degrees of freedom."""
    half = 0.5 * x
    odd = d % 2 == 1
    a = 0.5 if odd else 1.0
    found = 1.0 - erfc(math.sqrt(half)) if odd else 1.0 - exp(-half)
    term = (2.0 * math.sqrt(half / math.pi) if odd else half) * exp(-half)
    while a < 0.5 * d:
        found -= term
        a += 1.0
        term *= half / a
    return found


def log_det(V: Floats) -> float:
    """log det V, V positive definite."""
    return 2.0 * math.fsum(log(float(one)) for one in np.diagonal(factor(V)))


@dataclass(frozen=True, kw_only=True)
class LogisticCodeUCB(Solved):
    """GLM-UCB and LogUCB1 with the constants of the public code logistic_bandit (Faury et al. 2022), for clicks.

    The index is μ(x'θ̂) + exploration·ρ‖x‖ in V⁻¹, V = dI + Σxx'. Nothing is projected, and κ = 1/μ'(SL).
    constants="glm": the ridge of θ̂ is d, and ρ = (κ/4)√(2 log(1/δ) + log det(V/d)) + √d S. constants="log": the ridge
    is λ = d log(2+n) after n rewards, ρ = (√κ/4) min(√(1+2S) g, g + g²/√λ) + √λ S, g = min(√λ/2 + 2q/√λ, 1 + q),
    q = log(1/δ) + ½ log det(H/λ) + log(F(2λ)/F(λ)), H is the Hessian at θ̂, F the chi-square distribution.
    """

    constants: Literal["glm", "log"] = "glm"

    rule: ClassVar[int] = point.SCB
    project: ClassVar[bool] = False
    sheet = None

    def _check_model(self) -> None:
        one_of("constants", self.constants, ["glm", "log"])
        check_self_concordant(self.link, self.S, self.L)
        if self.link != "logistic" or not math.isinf(self.memory.rounds):
            raise BadInput("memory", self.memory, "the logistic link and memory=Keep()", "use GLMUCB")
        if self.estimate != "exact" or self.delta is None:
            raise BadInput("estimate", self.estimate, '"exact", and delta in (0, 1)', "leave estimate out")

    @property
    def reg(self) -> float:
        return float(self.lam)

    def ridge_now(self, state: State) -> float:
        n = float(state.squares)
        return self.dim * log(2.0 + n) if self.constants == "log" and n > 0.0 else self.reg

    def _after(self, state: State, lesson: tuple[Any, float, float] | None, ticks: float) -> None:
        atoms = self.history(state)
        status = newton.solve_(atoms, state.theta, newton.newton_scratch(self.dim, max(1, atoms.used)), state.H[0])
        state.shown[0] = state.theta[0]
        if status != newton.CONVERGED:
            state.counters[0, FAILED] += 1.0

    def V(self, state: State) -> Floats:
        """dI + Σ xx', d being `lam`."""
        low: Floats = np.tril(state.G[0])
        return self.reg * np.eye(self.dim) + low + np.tril(low, -1).T

    def hessian(self, state: State) -> Floats:
        """λI + Σ μ'(x'θ̂) xx'."""
        used = int(state.cursor[USED])
        A, w = state.atoms[:, :used], state.weights[0, :used]
        slopes = np.array([slope(self.model.code, float(z)) for z in times(A.T, state.theta[0])])
        return self.ridge_now(state) * np.eye(self.dim) + times(A * (w * slopes), A)

    def radius(self, state: State) -> float:
        """ρ."""
        d, S, log_delta = self.dim, float(self.S), -log(float(self.delta or 1.0))
        lam, kappa = self.ridge_now(state), 1.0 / self.c
        root = math.sqrt(lam)
        if self.constants == "glm":
            inside = 2.0 * log_delta + log_det(self.V(state)) - d * log(lam)
            return 0.25 * kappa * math.sqrt(inside) + root * S
        q = log_delta + 0.5 * (log_det(self.hessian(state)) - d * log(lam))
        q += log(chi_square(d, 2.0 * lam) / chi_square(d, lam))
        g = min(0.5 * root + 2.0 * q / root, 1.0 + q)
        return 0.25 * math.sqrt(kappa) * min(math.sqrt(1.0 + 2.0 * S) * g, g + g * g / root) + root * S

    def _scores(self, state: State, X: Floats) -> Scores:
        X = X[0]
        width = np.sqrt((X * solved(self.V(state), X)).sum(axis=0))
        return Scores(self.mu(times(X.T, state.theta[0])), float(self.exploration) * self.radius(state) * width)

    def best_of(self, state: State, X: Floats, number: int) -> Choice:
        return self._scores(state, X).best()


@dataclass(frozen=True, kw_only=True)
class OFUGLB(SetRule):
    """OFUGLB (Lee, Yun, Jun 2024) for clicks: the largest x'θ over {‖θ‖ ≤ S, loss(θ) - least loss in the ball ≤ β}.

    β = log(1/δ) + d log max(e, 2eSL_t/d), L_t = (1+S/2)n after n rewards. Arms are divided by L and θ is multiplied by
    it. memory=Window(w) takes the rewards of the last w rounds, Restart(w) those since the last restart.
    count="as-published" takes n-1 for n, as the public code does. The paper's loss has no ridge. The solver needs one,
    so `lam` is tiny.
    """

    lam: float = 1e-7
    count: Literal["own", "as-published"] = "own"
    kind: ClassVar[int] = sets.CONVEX

    def _check_model(self) -> None:
        super()._check_model()
        one_of("count", self.count, ["own", "as-published"])
        if self.link != "logistic" or self.memory.forget > 0.0:
            wanted = "the logistic link, and a memory that does not fade"
            raise BadInput("memory", self.memory, wanted, "use PiecewiseUCB")

    @property
    def reg(self) -> float:
        return float(self.lam)

    def most_gap(self, n: float) -> float:
        """β after n rewards."""
        S, d = float(self.S) * float(self.L), float(self.dim)
        rewards = max(0.0, n - 1.0) if self.count == "as-published" else n
        inside = max(math.e, 2.0 * math.e * S * (1.0 + 0.5 * S) * rewards / d)
        return -log(float(self.delta or 1.0)) + d * log(inside)

    def loss(self, state: State, theta: Floats) -> float:
        """Σ w log(1 + exp(x'θ)) - Σ w r x'θ + (lam/2)‖θ‖²."""
        used = int(state.cursor[USED])
        z = times(state.atoms[:, :used].T, theta).tolist()
        bent = math.fsum(
            w * (max(one, 0.0) + log1p(exp(-abs(one)))) for one, w in zip(z, state.weights[0].tolist(), strict=False)
        )
        return bent - math.fsum(np.asarray(z) * state.targets[0, :used]) + 0.5 * self.reg * dot(theta, theta)

    def nearest(self, state: State) -> Floats:
        """The minimum of the loss over the ball; outside the ball, the estimate at the ridge that gives it norm S."""
        theta: Floats = state.theta.copy()
        if length(theta[0]) <= float(self.S):
            return np.asarray(theta[0])
        atoms, low, high = self.history(state), 0.0, 1.0
        work, H = newton.newton_scratch(self.dim, max(1, atoms.used)), np.zeros((self.dim, self.dim))

        def at(more: float) -> float:
            if newton.solve_(Atoms(*atoms[:6], atoms.reg + more, atoms.S), theta, work, H) != newton.CONVERGED:
                state.counters[0, FAILED] += 1.0
            return length(theta[0])

        while at(high) > float(self.S):
            low, high = high, 4.0 * high
        for _ in range(60):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if at(middle) > float(self.S) else (low, middle)
        at(high)
        return np.asarray(theta[0])

    def set_radius(self, state: State) -> float:
        """ρ with (ρ + Lρ²/√lam)² = β + (least loss in the ball - least loss)."""
        hat = state.theta[0].copy()
        above = max(0.0, self.loss(state, self.nearest(state)) - self.loss(state, hat))
        wide = math.sqrt(float(self.exploration) * self.most_gap(float(state.squares)) + above)
        root, L = math.sqrt(self.reg), float(self.L)
        return root / (2.0 * L) * (math.sqrt(1.0 + 4.0 * L * wide / root) - 1.0)
