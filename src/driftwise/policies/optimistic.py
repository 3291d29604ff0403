"""Optimism over a set of parameters: SCB-PW-WeightUCB, OFULog and Logistic-UCB-2 (docs/math.md#self-concordant)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal, NamedTuple

import numpy as np

from driftwise._internal.elementary import log
from driftwise._internal.products import dot, solved, times
from driftwise._internal.validate import keep_whole, one_of
from driftwise.errors import BadInput, NumericalError
from driftwise.kernels import point
from driftwise.kernels.algebra import factor_
from driftwise.kernels.links import slope
from driftwise.kernels.point import USED, Floats
from driftwise.kernels.solvers import sets, slabs
from driftwise.policies.arms import Arms, Choice, Scores
from driftwise.policies.model import check_self_concordant
from driftwise.policies.plain import later
from driftwise.policies.solved import Solved
from driftwise.policies.state import State
from driftwise.theory.radius import ofulog_radius, pw_radius
from driftwise.theory.tuning import pw_delay


class Diagnosis(NamedTuple):
    """How a choice over a set was found."""

    arms: int
    looked: int
    solved: int
    residual: float
    failures: int
    empty: bool


@dataclass(frozen=True, kw_only=True)
class SetRule(Solved):
    """Play the arm of largest x'θ over x and θ in a confidence set; score = μ of that value, mean = μ(x'θ̃)."""

    rule: ClassVar[int] = point.SCB
    kind: ClassVar[int] = sets.EXACT
    form = None  # optimism over a set of θ has no index in x that could be searched

    def _check_model(self) -> None:
        if not isinstance(self.link, str):
            raise BadInput("link", self.link, "a built-in link", "set rules run compiled solvers")
        check_self_concordant(self.link, self.S, self.L)
        if self.estimate != "exact":
            raise BadInput("estimate", self.estimate, '"exact", for a set needs the history', "leave it out")
        if self.delta is None:
            raise BadInput("delta", None, "a number in (0, 1)", "pass delta=1/horizon")

    def set_radius(self, state: State) -> float:
        """ρ of the set, exploration included."""
        raise NotImplementedError

    def _set_kind(self) -> int:
        return self.kind

    def _solve(self, state: State, X: Floats, prune: bool) -> tuple[Floats, int, Diagnosis]:
        """Optimistic values of all arms (bounds for pruned arms), the best arm, and how it was found."""
        columns = np.ascontiguousarray(X[0])
        n = columns.shape[1]
        table, centre, best = np.zeros((sets.COLUMNS, n)), np.zeros(self.dim), np.zeros(self.dim)
        arm, value, looked, solved, residual, failures, empty = sets.optimist_(
            self._set_kind(), self.history(state), state.theta, float(self.L), self.set_radius(state), columns, prune,
            table, centre, best,
        )  # fmt: skip
        table[sets.VALUE, arm] = value
        return table[sets.VALUE], int(arm), Diagnosis(n, looked, solved, residual, failures, bool(empty))

    def best_of(self, state: State, X: Floats, number: int) -> Choice:
        values, arm, _ = self._solve(state, X, True)
        mean = float(self.mu(np.asarray(dot(X[0, :, arm], state.shown[0])))[()])
        score = float(self.mu(values[arm])[()])
        return Choice(arm, mean + (score - mean), mean, score - mean)

    def _scores(self, state: State, X: Floats) -> Scores:
        values, _, _ = self._solve(state, X, False)
        mean = self.mu(times(X[0].T, state.shown[0]))
        return Scores(mean, self.mu(values) - mean)

    def diagnose(self, state: State, arms: Arms) -> Diagnosis:
        """How the choice among these arms is found: arms examined and solved, residual, failures, an empty set."""
        X = self._columns(arms)
        with self.hold(state):
            return self._solve(state, X, True)[2]


@dataclass(frozen=True, kw_only=True)
class PiecewiseUCB(SetRule):
    """SCB-PW-WeightUCB (Wang, Zhao, Zhou 2023, Algorithm 4, Appendix D), for parameters that jump.

    set="exact" is the paper's rule; set="convex" is the convex set around it, which at the paper's size is the whole
    ball. tight=True divides by 1-γ² in β̆, as the derivation allows. uniform=True uses log(T/δ). D is the number of
    rounds after which a change counts as forgotten; None is ⌈log T/log(1/γ)⌉, the theorem's.
    """

    set: Literal["exact", "convex"] = "exact"
    tight: bool = False
    uniform: bool = False  # type: ignore[misc]
    D: int | None = later(None)

    def _check_model(self) -> None:
        super()._check_model()
        one_of("set", self.set, ["exact", "convex"])
        one_of("tight", self.tight, [True, False])
        one_of("uniform", self.uniform, [True, False])
        if not self.memory.geometric or self.memory.forget == 0.0:
            raise BadInput("memory", self.memory, "Fade(forget) with forget above 0", "use OFULog for γ = 1")
        if self.D is not None:
            keep_whole(self, "D", 1, "leave it out for ⌈log T/log(1/γ)⌉")
        if self.horizon is None or self.horizon < 2:
            raise BadInput("horizon", self.horizon, "at least 2 rounds: D is ⌈log T/log(1/γ)⌉", "pass horizon=")

    def _set_kind(self) -> int:
        return sets.EXACT if self.set == "exact" else sets.CONVEX

    @cached_property
    def delay(self) -> int:
        """D, the rounds after which a change is forgotten."""
        return self.D or pw_delay(self.memory.forget, float(self.horizon or 2))

    def set_radius(self, state: State) -> float:
        return self._rho

    @cached_property
    def _rho(self) -> float:
        log_delta = -log(float(self.delta or 1.0)) + (log(self.horizon or 1) if self.uniform else 0.0)
        forget = self.memory.forget
        rho = pw_radius(
            float(self.delay), forget, float(self.dim), self.reg, log_delta, float(self.S), float(self.L),
            float(self.m), self.k, self.tight,
        )  # fmt: skip
        return float(self.exploration) * float(rho)


def _omega(policy: SetRule, state: State, reg: float) -> float:
    """ω_t at this ridge. Written for L = 1: the problem with arms x/L and parameter Lθ has ridge λ/L² and radius SL."""
    L, log_delta = float(policy.L), -log(float(policy.delta or 1.0))
    return float(ofulog_radius(1.0 + state.squares, float(policy.dim), reg / (L * L), log_delta, float(policy.S) * L))


@dataclass(frozen=True, kw_only=True)
class OFULog(SetRule):
    """OFULog, and with relaxed=True OFULog-r (Abeille, Faury, Calauzènes 2021): logistic, nothing forgotten.

    Its ridge grows, λ_t = d log(2+t), and the estimate is solved again with it.
    """

    relaxed: bool = False

    def _check_model(self) -> None:
        super()._check_model()
        one_of("relaxed", self.relaxed, [True, False])
        if self.link != "logistic" or not math.isinf(self.memory.rounds):
            raise BadInput("link", self.link, "the logistic link and memory=Keep()", "use PiecewiseUCB")

    def _set_kind(self) -> int:
        return sets.CONVEX if self.relaxed else sets.EXACT

    def ridge_now(self, state: State) -> float:
        return self.dim * log(2.0 + 1.0 + state.squares) * (float(self.L) * float(self.L))

    def set_radius(self, state: State) -> float:
        return float(self.exploration) * _omega(self, state, self.ridge_now(state))


@dataclass(frozen=True, kw_only=True)
class LogisticUCB2(SetRule):
    """Logistic-UCB-2 (Faury, Abeille, Calauzènes, Fercoq 2020): a bonus at an estimate kept in a shrinking set W_t.

    W_t bounds |θ'x| of every arm played by what the confidence set of its round allowed. limits[a] is the bound of atom
    a.
    """

    lam_estimates: ClassVar[bool] = True

    def _check_model(self) -> None:
        super()._check_model()
        if self.link != "logistic" or not math.isinf(self.memory.rounds):
            raise BadInput("link", self.link, "the logistic link and memory=Keep()", "use PiecewiseUCB")

    def start(self, seed: int = 0) -> State:
        state = super().start(seed)
        state.limits[:] = math.inf
        return state

    def sizes(self, lanes: int) -> dict[str, int]:
        return {**super().sizes(lanes), "limits": self.room}

    def set_radius(self, state: State) -> float:
        """γ_t, which is OFULog's ω_t at a fixed ridge; exploration scales the bonus, not the set."""
        return _omega(self, state, self.reg)

    def _after(self, state: State, lesson: tuple[Any, float, float] | None, ticks: float) -> None:
        """Compute the bound of the arm played, from the set of the round before its reward, and θ in the smaller
        set."""
        before = state.spare or state
        limit = None if lesson is None else self._limit(before, lesson[0])
        super()._after(state, lesson, ticks)
        if lesson is not None and limit is not None:
            used = int(state.cursor[USED])
            if int(before.cursor[USED]) == state.atoms.shape[1]:  # full: an atom may have been dropped
                old = {column.tobytes(): bound for column, bound in zip(before.atoms.T, before.limits, strict=True)}
                state.limits[:] = [old.get(column.tobytes(), math.inf) for column in state.atoms.T]
            places = np.flatnonzero((state.atoms[:, :used] == lesson[0][0]).all(axis=0))
            if not len(places):
                raise BadInput("state", "a reward without an atom", "a state that was not damaged", "load a saved one")
            state.limits[places[0]] = min(float(state.limits[places[0]]), limit)
        if not state.counters[0, point.FAILED]:
            self._narrow(state)

    def _limit(self, state: State, x: Floats) -> float:
        """l = min(S‖x‖, max over C of |x'θ|); S‖x‖ where C is empty."""
        values, _, how = self._solve(state, np.concatenate([x, -x], axis=2), False)
        widest = float(self.S) * math.sqrt(float((x * x).sum()))
        return widest if how.empty else min(widest, float(values.max()))

    def _narrow(self, state: State) -> None:
        """shown <- argmin over W of ‖g(θ)-b‖ in H(θ)⁻¹."""
        atoms, out = self.history(state), np.zeros(self.dim)
        _, _, good = slabs.narrow_(atoms, state.theta, state.atoms, state.limits, atoms.used, out)
        if not good:
            state.counters[0, point.FAILED] += 1.0
        state.shown[0] = out

    def _scores(self, state: State, X: Floats) -> Scores:
        """μ(x'θ) + (2+4S)μ'(x'θ)‖x‖γ_t in H⁻¹(θ) + (4+8S)(k/c)γ_t²‖x‖² in V⁻¹."""
        X = X[0]
        used = int(state.cursor[USED])
        theta = state.shown[0]
        A, w = state.atoms[:, :used], state.weights[0, :used]
        slopes = np.array([slope(self.model.code, float(z)) for z in times(A.T, theta)])
        H = self.reg * np.eye(self.dim) + times(A * (w * slopes), A)
        low, pivot = np.zeros((self.dim, self.dim)), np.zeros(self.dim)
        factor_(state.G, 0, self.ridge, low, pivot)
        try:
            spread = np.square(solved(np.tril(low), X)).sum(axis=0)
            local = np.sqrt((X * solved(H, X)).sum(axis=0))
        except np.linalg.LinAlgError:
            raise NumericalError("the Hessian of the estimate cannot be inverted; pass a larger lam") from None
        z = times(X.T, theta)
        gamma, reach = self.set_radius(state), 1.0 + 2.0 * float(self.S) * float(self.L)
        steep = np.array([slope(self.model.code, float(one)) for one in z])
        bonus = 2.0 * reach * steep * local * gamma + 4.0 * reach * (self.k / self.c) * gamma * gamma * spread
        return Scores(self.mu(z), float(self.exploration) * bonus)

    def best_of(self, state: State, X: Floats, number: int) -> Choice:
        return self._scores(state, X).best()
