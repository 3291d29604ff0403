"""Hypotheses about published numbers of docs/field that no spec plays, each with the regret that it gives.

`python bench/field.py cheung` (or wang, zhao, russac2021) prints the rows that the page quotes. The worlds of Cheung
and Wang have two basis arms, for which SW-UCB and EXP3.S are a few sums, so that a scan takes seconds.
"""

import csv
import math
import sys
from dataclasses import replace
from importlib.resources import files

import numpy as np
from numba import njit

import driftwise as dw
from driftwise.experiments.paper.panels import built_in

HORIZONS = (30_000, 120_000, 240_000)
EIGHT = tuple(30_000 * (one + 1) for one in range(8))
BUDGETS = {"b1": lambda T: 1.0, "b10": lambda T: 10.0, "b20": lambda T: 20.0, "bk": lambda T: T ** (1 / 3)}


@njit
def noise_of(t, deviation):
    """Normal noise, or the centred coin of round t where the deviation is 0."""
    if deviation > 0.0:
        return deviation * np.random.standard_normal()
    share = 0.5 / (t + 1)
    return (1.0 if np.random.random() < share else 0.0) - share


@njit
def sw_ucb(T, waves, window, beta, lam, deviation, seed):
    """The regret of SW-UCB with a constant radius on means 0.5 ± 0.3 sin(2π waves t/T)."""
    np.random.seed(seed)
    count, total, regret = np.zeros(2), np.zeros(2), 0.0
    arms, rewards = np.zeros(T, np.int64), np.zeros(T)
    for t in range(T):
        if t >= window:
            old = t - window
            count[arms[old]] -= 1.0
            total[arms[old]] -= rewards[old]
        wave = 0.3 * math.sin(2.0 * math.pi * waves * (t + 1) / T)
        left, right = count[0] + lam, count[1] + lam
        ahead = total[0] / left + beta / math.sqrt(left) >= total[1] / right + beta / math.sqrt(right)
        arm = 0 if ahead else 1
        mean = 0.5 + wave if arm == 0 else 0.5 - wave
        regret += 0.5 + abs(wave) - mean
        arms[t], rewards[t] = arm, mean + noise_of(t, deviation)
        count[arm] += 1.0
        total[arm] += rewards[t]
    return regret


@njit
def exp3s(T, waves, mix, share, deviation, seed, batch):
    """The regret of EXP3.S there; batch > 0 starts the weights again after so many rounds (Rexp3 with share = 0)."""
    np.random.seed(seed)
    weights, regret = np.ones(2), 0.0
    for t in range(T):
        if batch > 0 and t % batch == 0:
            weights[:] = 1.0
        wave = 0.3 * math.sin(2.0 * math.pi * waves * (t + 1) / T)
        chance = (1.0 - mix) * weights / weights.sum() + 0.5 * mix
        arm = 0 if np.random.random() < chance[0] else 1
        mean = 0.5 + wave if arm == 0 else 0.5 - wave
        regret += 0.5 + abs(wave) - mean
        more = 0.5 * math.e * share * weights.sum()
        weights[arm] *= math.exp(0.5 * mix * (mean + noise_of(t, deviation)) / chance[arm])
        weights += more
        weights /= weights.max()
    return regret


def told(values):
    half = 1.96 * np.std(values, ddof=1) / math.sqrt(len(values)) if len(values) > 1 else 0.0
    return f"{np.mean(values):.0f} ± {half:.0f}"


def radius(T, window, R=0.1, S=1.0, lam=1.0, power=1):
    """√λ S + R √(2 log((1 + w/λ) T^power))."""
    return math.sqrt(lam) * S + R * math.sqrt(2.0 * math.log((1.0 + window / lam) * T**power))


def besbes(T, V):
    return min(1.0, (8.0 * V * math.log(2.0 * T) / ((math.e - 1.0) ** 2 * T)) ** (1.0 / 3.0))


def cheung(trials=10):
    print("SW-UCB at B = 1, published 127, 253, 359; at B = T^(1/3) 4773, 20969, 42999")
    rows = {
        "(dT)^(2/3), as the specs": ((2 / 3), 0, 1.0, 1),
        "d^(1/3) T^(2/3)": ((1 / 3), 0, 1.0, 1),
        "δ = 1/T²": ((2 / 3), 0, 1.0, 2),
        "λ = 0.01": ((2 / 3), 0, 0.01, 1),
        **{f"{one} rounds longer": ((2 / 3), one, 1.0, 1) for one in (1, 3, 5, 6, 7)},
    }
    for name, (power, more, lam, delta) in rows.items():
        found = []
        for budget in ("b1", "bk"):
            for T in HORIZONS:
                w = int(2.0**power * T ** (2.0 / 3.0)) + more
                beta, waves = radius(T, w, lam=lam, power=delta), 2.5 * BUDGETS[budget](T)
                found.append(told([sw_ucb(T, waves, w, beta, lam, 0.1, seed) for seed in range(trials)]))
        print(f"  {name:26}", "  ".join(found))
    print("EXP3.S at B = 1, published 1010, 2453, 3808")
    for V in (1.0, 2.0, 3.0, 4.24):
        found = [told([exp3s(T, 2.5, besbes(T, V), 1 / T, 0.1, seed, 0) for seed in range(trials)]) for T in HORIZONS]
        print(f"  V = {V:<22}", "  ".join(found))


def wang():
    published = {}
    with (files("driftwise.experiments.field") / "published.csv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            published.setdefault((row["spec"], row["algorithm"]), []).append(float(row["regret"]))
    windows = [*range(100, 1000, 25), *range(1000, 4001, 100)]
    print("SW-UCB, one window for all eight horizons: the best, its root mean square of log(ours/published)")
    for budget, B in BUDGETS.items():
        wanted = np.array(published[f"wang2025_{budget}", "SW-UCB"])
        best = min(
            (float(np.sqrt(np.mean(np.log(np.array(found) / wanted) ** 2))), R, w, [round(one) for one in found])
            for R in (0.1, 0.5) for w in windows
            for found in [[sw_ucb(T, 2.5 * B(T), w, radius(T, w, R), 1.0, 0.0, 0) for T in EIGHT]]
        )  # fmt: skip
        print(f"  {budget:4} published {wanted.astype(int).tolist()}\n       error {best[0]:.2f} at R = {best[1]}, "
              f"w = {best[2]}: {best[3]}")  # fmt: skip
    print("EXP3.S at B = 1 and T = 30,000, 120,000, 240,000: published 4595, 10403, 13096")
    batch = {T: math.ceil((2.0 * math.log(2.0)) ** (1.0 / 3.0) * T ** (2.0 / 3.0)) for T in HORIZONS}
    tried = {
        "Besbes, Gur, Zeevi, V = 1": lambda T: (besbes(T, 1.0), 1.0 / T, 0),
        "the same, V = 3": lambda T: (besbes(T, 3.0), 1.0 / T, 0),
        "8 times that rate": lambda T: (min(1.0, 8.0 * besbes(T, 1.0)), 1.0 / T, 0),
        "Auer et al., S = 1": lambda T: (
            math.sqrt(2.0 * (math.log(2.0 * T) + math.e) / ((math.e - 1.0) * T)), 1.0 / T, 0),
        "Rexp3": lambda T: (math.sqrt(2.0 * math.log(2.0) / ((math.e - 1.0) * batch[T])), 0.0, batch[T]),
        "a fixed rate of 0.003": lambda T: (0.003, 1.0 / T, 0),
        "a fixed rate of 0.002": lambda T: (0.002, 1.0 / T, 0),
    }  # fmt: skip
    for name, rule in tried.items():
        found = []
        for T in HORIZONS:
            mix, share, rounds = rule(T)
            found.append(told([exp3s(T, 2.5, mix, share, 0.0, seed, rounds) for seed in range(10)]))
        print(f"  {name:26}", "  ".join(found))


def zhao(trials=6):
    print("published: eight jumps 5882, 987, 778, 936, 102; half a turn 6858, 116, 166, 340")
    for lam in (1.0, 0.1, 0.01):
        for delta in (1 / 50_000, 0.01, 0.1):
            found = []
            for key in ("zhao_abrupt_short", "zhao_gradual_short"):
                ((contest,),) = built_in(key).contests
                ridge = lam / 0.38**2  # of arms that are 0.38 times as long
                policies = {name: replace(one, lam=ridge, delta=delta) for name, one in contest.policies.items()}
                played = dw.simulate(policies, contest.world, trials=trials, record="last", progress=False)
                found += [f"{played.regret[name].mean():.0f}" for name in policies]
            print(f"  λ = {lam}, δ = {delta}:", ", ".join(found))


def russac2021(trials=5):
    changes = {
        "as in the spec": ("D-GLUCB", {}), "R = 1": ("D-GLUCB", {"R": 1.0}), "δ = 0.05": ("D-GLUCB", {"delta": 0.05}),
        "λ five times as large": ("D-GLUCB", {"lam": 5.0}), "λ a fifth": ("D-GLUCB", {"lam": 0.2}),
        "bonus not divided": ("D-GLUCB", {"exploration": 1.0}),
        "SC-D-GLUCB as in the spec": ("SC-D-GLUCB", {}), "SC-D-GLUCB, δ = 0.05": ("SC-D-GLUCB", {"delta": 0.05}),
        "SC-D-GLUCB, λ five times as large": ("SC-D-GLUCB", {"lam": 5.0}),
        "SC-D-GLUCB, bonus not divided": ("SC-D-GLUCB", {"exploration": 1.0}),
        "LogUCB1, δ = 0.05": ("LogUCB1", {"delta": 0.05}), "LogUCB1, λ a half": ("LogUCB1", {"lam": 0.5}),
    }  # fmt: skip
    print("published at S = 6 and 7: D-GLUCB 715, 1150; SC-D-GLUCB 580, 730; LogisticUCB1 1850, 1900")
    for name, (base, fields) in changes.items():
        found = []
        for key in ("russac2021_s6", "russac2021_s7"):
            ((contest,),) = built_in(key).contests
            policy = contest.policies[base]
            given = {one: value * policy.lam if one == "lam" else value for one, value in fields.items()}
            played = dw.simulate({name: replace(policy, **given)}, contest.world, trials=trials, record="last",
                                 progress=False)  # fmt: skip
            found.append(told(played.regret[name][:, -1]))
        print(f"  {name:36}", "  ".join(found), flush=True)


if __name__ == "__main__":
    {"cheung": cheung, "wang": wang, "zhao": zhao, "russac2021": russac2021}[sys.argv[1]]()
