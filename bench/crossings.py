"""How often runs cross the radii of Lemmas 1, 2, 3 and 10 at some round, as printed and as corrected.

    python bench/crossings.py [--runs 1000] [--out results/crossings.csv] [--only LB] [--seed 0]

A run crosses where at some round a norm is above its radius. "noise" is the weighted sum of noise against the radius
without the term for the ridge. "whole" is the statement itself, bias and ridge included: the lemma's |x'(θ̂-θ)| at every
arm for linear bandits; for the others ‖g(θ_t)-g(θ̂_t)‖, from which the lemma follows without chance. BVD's whole is
noise and ridge, which is what its confidence set holds. δ = 0.05; T = 6,000 for linear bandits and 2,000 else; arms are
played greedily.

Columns: `radius` is "printed", "horizon" (δ/T a round; for SCB with the repair of Lemma 9, on the rounds it covers) or
"anytime" (δ/(2t(1+log t)²)); `crossed` counts runs; `q95` is the 95% quantile over runs of the largest ratio.
A finished case is appended to the file; a second start goes on where the first one stopped.
"""

from __future__ import annotations

import argparse
import csv
import itertools
import math
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np

from driftwise import theory as th
from driftwise.kernels.links import LINKS

DELTA = 0.05
RADII = ("printed", "horizon", "anytime")
COLUMNS = ("family", "d", "world", "gamma", "forget", "norm", "part", "radius", "crossed", "runs", "q95")
WORLDS = ("still", "turn", "jump")
GAMMAS = ("0.9", "0.977", "tuned")
HORIZONS = {"LB": 6000, "GLB": 2000, "BVD": 2000, "SCB": 2000, "PW": 2000}
NORMS = {"LB": ("V", "two matrices"), "GLB": ("V",), "BVD": ("two matrices",), "SCB": ("H",), "PW": ("H",)}
V, TWIN, H = 0, 1, 2
Floats = np.ndarray[Any, np.dtype[np.float64]]


@numba.njit(error_model="numpy")
def _factor(A, ridge, F):
    """Cholesky factor of A + ridge I."""
    d = A.shape[0]
    for j in range(d):
        for i in range(j, d):
            value = A[i, j] + (ridge if i == j else 0.0)
            for m in range(j):
                value -= F[i, m] * F[j, m]
            F[i, j] = math.sqrt(value) if i == j else value / F[j, j]


@numba.njit(error_model="numpy")
def _length(F, v, w):
    """‖v‖ in (FF')⁻¹; w is F⁻¹v."""
    total = 0.0
    for i in range(len(v)):
        value = v[i]
        for m in range(i):
            value -= F[i, m] * w[m]
        w[i] = value / F[i, i]
        total += w[i] * w[i]
    return math.sqrt(total)


@numba.njit(error_model="numpy")
def _back(F, w, out):
    """out = F'⁻¹w."""
    for i in range(len(w) - 1, -1, -1):
        value = w[i]
        for m in range(i + 1, len(w)):
            value -= F[m, i] * out[m]
        out[i] = value / F[i, i]


@numba.njit(error_model="numpy")
def _draw_arms(arms):
    """Unit vectors; in one dimension 1 and -1 in turn."""
    K, d = arms.shape
    for a in range(K):
        total = 0.0
        for i in range(d):
            arms[a, i] = np.random.normal() if d > 1 else 1.0 - 2.0 * (a % 2)
            total += arms[a, i] ** 2
        for i in range(d):
            arms[a, i] /= math.sqrt(total)


@numba.njit(error_model="numpy")
def linear_runs(seed, runs, K, gamma, lam, theta, bias, noise, whole):
    """Largest ratio of a run by norm (V, two matrices), part (noise, whole) and radius."""
    np.random.seed(seed)
    T, d = theta.shape
    out = np.zeros((runs, 2, 2, noise.shape[0]))
    arms, F, F2 = np.zeros((K, d)), np.zeros((d, d)), np.zeros((d, d))
    w, y, x_hat, gap = np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d)
    for run in range(runs):
        _draw_arms(arms)
        G, G2, b, z = np.zeros((d, d)), np.zeros((d, d)), np.zeros(d), np.zeros(d)
        for t in range(T):
            _factor(G, lam, F)
            _factor(G2, lam, F2)
            one, two = _length(F, z, w), _length(F2, z, w)
            _length(F, b, w)
            _back(F, w, x_hat)
            gap[:] = x_hat - theta[t]
            best, top, wide_one, wide_two = 0, -np.inf, 0.0, 0.0
            for a in range(K):
                x = arms[a]
                score, error = 0.0, 0.0
                for i in range(d):
                    score += x[i] * x_hat[i]
                    error += x[i] * gap[i]
                if score > top:
                    best, top = a, score
                over = abs(error) - bias[t]
                if over > 0.0:
                    wide_one = max(wide_one, over / _length(F, x, w))
                    _back(F, w, y)
                    square = 0.0
                    for i in range(d):
                        for j in range(d):
                            square += y[i] * (G2[i, j] + (lam if i == j else 0.0)) * y[j]
                    wide_two = max(wide_two, over / math.sqrt(square))
            for v in range(noise.shape[0]):
                out[run, 0, 0, v] = max(out[run, 0, 0, v], one / noise[v, t])
                out[run, 1, 0, v] = max(out[run, 1, 0, v], two / noise[v, t])
                out[run, 0, 1, v] = max(out[run, 0, 1, v], wide_one / whole[v, t])
                out[run, 1, 1, v] = max(out[run, 1, 1, v], wide_two / whole[v, t])
            eta = np.random.normal()
            x = arms[best]
            reward = eta
            for i in range(d):
                reward += x[i] * theta[t, i]
            for i in range(d):
                b[i] = gamma * b[i] + reward * x[i]
                z[i] = gamma * z[i] + eta * x[i]
                for j in range(d):
                    G[i, j] = gamma * G[i, j] + x[i] * x[j]
                    G2[i, j] = gamma * gamma * G2[i, j] + x[i] * x[j]
    return out


@numba.njit(error_model="numpy")
def click_runs(seed, runs, K, gamma, lam, reg, norm, theta, bias, noise, whole, counted):
    """Largest ratio of a run by part (noise, whole) and radius, over the rounds that are counted for the radius."""
    np.random.seed(seed)
    T, d = theta.shape
    out = np.zeros((runs, 2, noise.shape[0]))
    arms, A, F, Hess, Fh = np.zeros((K, d)), np.zeros((d, d)), np.zeros((d, d)), np.zeros((d, d)), np.zeros((d, d))
    z, g, w, step, grad = np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d), np.zeros(d)
    for run in range(runs):
        _draw_arms(arms)
        n1, n2, s, e, est = np.zeros(K), np.zeros(K), np.zeros(K), np.zeros(K), np.zeros(d)
        for t in range(T):
            A[:], Hess[:] = 0.0, 0.0
            for i in range(d):
                z[i], grad[i] = 0.0, reg * est[i]
                g[i] = reg * theta[t, i]
            for a in range(K):
                if n1[a] == 0.0:
                    continue
                x, true, guess = arms[a], 0.0, 0.0
                for i in range(d):
                    true += x[i] * theta[t, i]
                    guess += x[i] * est[i]
                mean, seen = 1.0 / (1.0 + math.exp(-true)), 1.0 / (1.0 + math.exp(-guess))
                weight = n2[a] if norm == TWIN else n1[a] if norm == V else n1[a] * mean * (1.0 - mean)
                slope = n1[a] * seen * (1.0 - seen)
                off = e[a] if norm == TWIN else s[a] - n1[a] * mean
                for i in range(d):
                    z[i] += e[a] * x[i]
                    g[i] -= off * x[i]
                    grad[i] += (n1[a] * seen - s[a]) * x[i]
                    for j in range(d):
                        A[i, j] += weight * x[i] * x[j]
                        Hess[i, j] += slope * x[i] * x[j]
            _factor(A, reg if norm == H else lam, F)
            one, all_of_it = _length(F, z, w), _length(F, g, w)
            for v in range(noise.shape[0]):
                if counted[v, t]:
                    out[run, 0, v] = max(out[run, 0, v], one / noise[v, t])
                    out[run, 1, v] = max(out[run, 1, v], (all_of_it - bias[t]) / whole[v, t])
            _factor(Hess, reg, Fh)  # one Newton step per round: any arm that depends only on the past is allowed
            _length(Fh, grad, w)
            _back(Fh, w, step)
            size = 0.0
            for i in range(d):
                size += step[i] * step[i]
            damp = min(1.0, 1.0 / max(math.sqrt(size), 1e-300))
            for i in range(d):
                est[i] -= damp * step[i]
            best, top = 0, -np.inf
            for a in range(K):
                score = 0.0
                for i in range(d):
                    score += arms[a, i] * est[i]
                if score > top:
                    best, top = a, score
            true = 0.0
            for i in range(d):
                true += arms[best, i] * theta[t, i]
            mean = 1.0 / (1.0 + math.exp(-true))
            reward = 1.0 if np.random.random() < mean else 0.0
            for a in range(K):
                n1[a] *= gamma
                s[a] *= gamma
                e[a] *= gamma
                n2[a] *= gamma * gamma
            n1[best] += 1.0
            n2[best] += 1.0
            s[best] += reward
            e[best] += reward - mean
    return out


def path(world: str, d: int, T: int) -> Floats:
    """θ of norm 1: still, one turn in the first two coordinates (a cosine in one), or a jump to the other side."""
    theta = np.zeros((T, d))
    angle = 2.0 * np.pi * np.arange(T) / T
    if world == "turn":
        theta[:, 0] = np.cos(angle)
        theta[:, 1 % d] = np.sin(angle) if d > 1 else np.cos(angle)
    else:
        theta[:, 0] = np.where(np.arange(T) < T // 2, 1.0, -1.0) if world == "jump" else 1.0
    return theta


class Case(NamedTuple):
    """One set of runs."""

    family: str
    d: int
    world: str
    gamma: str

    @property
    def key(self) -> tuple[str, ...]:
        return self.family, str(self.d), self.world, self.gamma


def cases(only: str | None) -> Iterator[Case]:
    for family, d, world, gamma in itertools.product(HORIZONS, (1, 2, 5), WORLDS, GAMMAS):
        if family == (only or family) and (family, world) != ("PW", "turn"):  # no round of a turn is far from a change
            yield Case(family, d, world, gamma)


def forget_of(case: Case, theta: Floats) -> float:
    """1-γ as given, or as the theorem tunes it."""
    if case.gamma != "tuned":
        return 1.0 - float(case.gamma)
    T, P, (k, c) = len(theta), th.path_length(theta), LINKS["logistic"].slopes(1.0)
    return {
        "LB": lambda: th.lb_forget(case.d, T, P),
        "GLB": lambda: th.glb_forget(case.d, T, P, k, c),
        "BVD": lambda: max(1.0 / T, th.bvd_forget(case.d, T, P)),
        "SCB": lambda: th.scb_forget(case.d, T, P, k),
        "PW": lambda: th.pw_forget(case.d, T, th.change_number(theta)),
    }[case.family]()


def shares(T: int, family: str) -> list[Floats]:
    """log(1/δ) by radius and round."""
    log = -math.log(DELTA)
    rows = [np.full(T, log), np.full(T, th.uniform_log(log, 1.0, float(T)))]
    if family not in ("SCB", "PW"):
        rows.append(np.array([th.uniform_log(log, t + 1.0, 0.0) for t in range(T)]))
    return rows


def drift_sums(theta: Floats, forget: float) -> Floats:
    """B_t = Σ_p √(γ^{t-1-p}(1-γ^p)/(1-γ)) ‖θ_p-θ_{p+1}‖ at every round, by recursion."""
    steps = np.linalg.norm(np.diff(theta, axis=0), axis=1)
    out, root = np.zeros(len(theta)), math.sqrt(1.0 - forget)
    for t in range(1, len(theta)):
        out[t] = root * out[t - 1] + math.sqrt(-math.expm1(t * math.log1p(-forget)) / forget) * steps[t - 1]
    return out


def far(theta: Floats, delay: int, most: float) -> np.ndarray[Any, np.dtype[np.bool_]]:
    """Rounds whose last D rounds have a path of at most `most`."""
    total = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(theta, axis=0), axis=1))])
    first = np.maximum(np.arange(len(theta)) - delay, 0)
    return np.asarray(total - total[first] <= most)


def run(case: Case, runs: int, seed: int) -> Iterator[tuple[Any, ...]]:
    """Rows of the table."""
    T, d = HORIZONS[case.family], case.d
    theta = path(case.world, d, T)
    forget = forget_of(case, theta)
    found = (_linear if case.family == "LB" else _clicks)(case, theta, forget, runs, seed)
    for (norm, part), ratios in found.items():
        for radius, column in zip(RADII, ratios.T, strict=False):
            yield (*case.key, f"{forget:.6g}", norm, part, radius, int((column > 1.0).sum()), runs,
                   f"{np.quantile(column, 0.95):.3f}")  # fmt: skip


def _linear(case: Case, theta: Floats, forget: float, runs: int, seed: int) -> dict[tuple[str, str], Floats]:
    T, d = theta.shape
    lam = float(d)
    radius = np.array([[th.lb_radius(th.geometric(forget, float(t)), d, lam, row[t], 1.0, 1.0, 1.0) for t in range(T)]
                       for row in shares(T, "LB")])  # fmt: skip
    bias = math.sqrt(d / lam) * drift_sums(theta, forget)
    K = 20 if d > 1 else 2
    out = linear_runs(seed, runs, K, 1.0 - forget, lam, theta, bias, radius - math.sqrt(lam), radius)
    parts = itertools.product(enumerate(NORMS["LB"]), enumerate(("noise", "whole")))
    return {(norm, part): out[:, i, j] for (i, norm), (j, part) in parts}


def _clicks(case: Case, theta: Floats, forget: float, runs: int, seed: int) -> dict[tuple[str, str], Floats]:
    T, d = theta.shape
    family, (k, c) = case.family, LINKS["logistic"].slopes(1.0)
    lam = {"GLB": d / c**2, "BVD": float(d)}.get(family, d * math.log(T) / c)
    reg, delay, norm = lam * c, th.pw_delay(forget, T), {"GLB": V, "BVD": TWIN}.get(family, H)
    logs, counted = shares(T, family), np.ones((3, T), dtype=np.bool_)
    bias = math.sqrt(d) * k * drift_sums(theta, forget) * {"GLB": 1.0, "SCB": 1.0 / math.sqrt(c)}.get(family, 0.0)
    if family in ("GLB", "BVD"):
        ridge = math.sqrt(lam) * c
        radius = [[th.glb_radius(th.geometric(forget, float(t)), d, lam, row[t], 1.0, 1.0, 0.5, c) for t in range(T)]
                  for row in logs]  # fmt: skip
    elif family == "SCB":
        ridge = math.sqrt(reg)
        logs[1] = np.array([th.drifting_log(log, reg, 1.0, 1.0, th.scb_tail(forget, T)) for log in logs[1]])
        counted[1] = far(theta, delay, 1.0)
        radius = [[th.scb_radius(th.geometric(forget, float(t)), d, reg, row[t], 1.0, 1.0, 1.0, k) for t in range(T)]
                  for row in logs]  # fmt: skip
    else:
        ridge = math.sqrt(reg)
        counted[:] = far(theta, delay, 0.0)
        radius = [[th.pw_radius(float(delay), forget, d, reg, row[0], 1.0, 1.0, 1.0, k, False)] * T for row in logs]
    whole = np.array(radius)
    bare = whole - ridge
    if family == "PW":
        bare -= 2.0 * k / math.sqrt(reg) * th.scb_tail(forget, T)
    out = click_runs(seed, runs, 10 if d > 1 else 2, 1.0 - forget, lam, reg, norm, theta, bias, bare, whole,
                     counted[: len(whole)])  # fmt: skip
    return {(NORMS[family][0], part): out[:, j] for j, part in enumerate(("noise", "whole"))}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", choices=list(HORIZONS))
    parser.add_argument("--out", type=Path, default=Path("results/crossings.csv"))
    options = parser.parse_args()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    done = set()
    if options.out.exists():
        with options.out.open(encoding="utf-8", newline="") as file:
            done = {tuple(row[name] for name in COLUMNS[:4]) for row in csv.DictReader(file)}
    with options.out.open("a", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        if not done:
            writer.writerow(COLUMNS)
        for number, case in enumerate(cases(options.only)):
            if case.key in done:
                continue
            begun = time.perf_counter()
            writer.writerows(list(run(case, options.runs, options.seed + number)))
            file.flush()
            print(*case.key, f"{time.perf_counter() - begun:.1f} s", flush=True)


if __name__ == "__main__":
    main()
