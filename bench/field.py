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
def sw_ucb(T, waves, window, beta, lam, deviation, seed, power=0.5):
    """The regret of SW-UCB with a constant radius on means 0.5 ± 0.3 sin(2π waves t/T).

    The bonus is β‖x‖ in V⁻¹, or with power=1 β x'V⁻¹x, without the square root."""
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
        ahead = total[0] / left + beta / left**power >= total[1] / right + beta / right**power
        arm = 0 if ahead else 1
        mean = 0.5 + wave if arm == 0 else 0.5 - wave
        regret += 0.5 + abs(wave) - mean
        arms[t], rewards[t] = arm, mean + noise_of(t, deviation)
        count[arm] += 1.0
        total[arm] += rewards[t]
    return regret


@njit
def weighted_oful(T, waves, window, beta, alpha, gamma, seed, power=0.5):
    """The regret of Restarted-WeightedOFUL+ there, with rare noise and λ = 1; power as above."""
    np.random.seed(seed)
    V, b, regret = np.ones(2), np.zeros(2), 0.0
    for t in range(T):
        if (t + 1) % window == 0:
            V[:], b[:] = 1.0, 0.0
        wave = 0.3 * math.sin(2.0 * math.pi * waves * (t + 1) / T)
        ahead = b[0] / V[0] + beta / V[0] ** power >= b[1] / V[1] + beta / V[1] ** power
        arm = 0 if ahead else 1
        mean = 0.5 + wave if arm == 0 else 0.5 - wave
        regret += 0.5 + abs(wave) - mean
        share = 0.5 / (t + 1)
        sigma = max(math.sqrt(share * (1.0 - share)), alpha, gamma * V[arm] ** -0.25)
        b[arm] += (mean + noise_of(t, 0.0)) / sigma**2
        V[arm] += 1.0 / sigma**2
    return regret


@njit
def save(T, waves, window, layers, seed, power=0.5):
    """The regret of Restarted SAVE+ there, with rare noise and β = 2^(1-l); power as above."""
    np.random.seed(seed)
    V, b, regret = np.zeros((layers, 2)), np.zeros((layers, 2)), 0.0
    for t in range(T):
        if t == 0 or (t + 1) % window == 0:
            b[:] = 0.0
            for layer in range(layers):
                V[layer] = 0.25 ** (layer + 1)
        wave, arm, most = 0.3 * math.sin(2.0 * math.pi * waves * (t + 1) / T), 0, -math.inf
        for a in range(2):
            least = math.inf
            for layer in range(layers):
                least = min(least, b[layer, a] / V[layer, a] + 0.5**layer / V[layer, a] ** power)
            if least > most:
                arm, most = a, least
        mean = 0.5 + wave if arm == 0 else 0.5 - wave
        regret += 0.5 + abs(wave) - mean
        reward = mean + noise_of(t, 0.0)
        for layer in range(layers):
            if V[layer, arm] ** -0.5 >= 0.5 ** (layer + 1):
                weight = 0.25 ** (layer + 1) * V[layer, arm]
                b[layer, arm] += weight * reward
                V[layer, arm] += weight
                break
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
    """Constants of the source's appendix; then a bonus without the square root; then windows and rates."""
    published = {}
    with (files("driftwise.experiments.field") / "published.csv").open(encoding="utf-8") as lines:
        for row in csv.DictReader(lines):
            published.setdefault((row["spec"], row["algorithm"]), []).append(float(row["regret"]))
    tried = {
        ("SW-UCB", "w = 1000, β = 10"): lambda T, waves: sw_ucb(T, waves, 1000, 10.0, 1.0, 0.0, 0),
        ("SW-UCB", "β x'V⁻¹x"): lambda T, waves: sw_ucb(T, waves, 1000, 10.0, 1.0, 0.0, 0, 1.0),
        ("SW-UCB", "w = 400, β = 1.5"): lambda T, waves: sw_ucb(T, waves, 400, 1.5, 1.0, 0.0, 0),
        ("R-WOFUL+", "w = 1000, β = 10"): lambda T, waves: weighted_oful(T, waves, 1000, 10.0, 1.0, 2.0, 0),
        ("R-WOFUL+", "β x'Σ⁻¹x"): lambda T, waves: weighted_oful(T, waves, 1000, 10.0, 1.0, 2.0, 0, 1.0),
        ("R-WOFUL+", "w = 400, β = 0.6"): lambda T, waves: weighted_oful(T, waves, 400, 0.6, 1.0, 2.0, 0),
        ("R-SAVE+", "w = 1000, L = 6"): lambda T, waves: save(T, waves, 1000, 6, 0),
        ("R-SAVE+", "β x'Σ⁻¹x"): lambda T, waves: save(T, waves, 1000, 6, 0, 1.0),
        ("Modified EXP3.S", "γ = 0.01, α = 1/K"): lambda T, waves: exp3s(T, waves, 0.01, 1.0 / T, 0.0, 0, 0),
        ("Modified EXP3.S", "γ = 0.01, α = 1/K²"): lambda T, waves: exp3s(T, waves, 0.01, 1.0 / T**2, 0.0, 0, 0),
        ("Modified EXP3.S", "γ = 0.003, α = 1/K"): lambda T, waves: exp3s(T, waves, 0.003, 1.0 / T, 0.0, 0, 0),
    }
    print("one trial each, eight horizons; the root mean square of log(ours/published) at B = 1, 10, 20, K^(1/3)")
    for (name, what), play in tried.items():
        errors, rows = [], []
        for budget, B in BUDGETS.items():
            wanted = np.array(published[f"wang2025_{budget}", name])
            found = np.array([play(T, 2.5 * B(T)) for T in EIGHT])
            errors.append(float(np.sqrt(np.mean(np.log(found / wanted) ** 2))))
            rows.append([round(one) for one in found])
        print(f"  {name:16} {what:20}", ", ".join(f"{one:.2f}" for one in errors), " B = 1:", rows[0])


def zhao(trials=3):
    """Arms of every round, divided by the longest or by √d times the largest coordinate; λ, δ and noise."""
    print("published: eight jumps 5882, 987, 778, 936, 102; half a turn 6858, 116, 166, 340")
    scales = {
        "fixed arms, longest": lambda A: A[:1] / np.sqrt((A[0] ** 2).sum(axis=1)).max(),
        "fixed arms, matrix norm": lambda A: A[:1] / np.linalg.norm(A[0], 2),
        "fresh arms, longest": lambda A: A / np.sqrt((A**2).sum(axis=2)).max(),
        "fresh arms, coordinate": lambda A: A / (np.abs(A).max() * math.sqrt(2.0)),
    }
    changes = [(name, {"lam": 1.0}, 0.1) for name in scales]
    changes += [("fresh arms, coordinate", more, 0.1) for more in (
        {"lam": 2.0}, {"lam": 0.5}, {"lam": 1.0, "delta": 0.01}, {"lam": 1.0, "R": 0.13})]  # fmt: skip
    changes += [("fresh arms, coordinate", {"lam": 1.0, "R": 0.1}, math.sqrt(0.1))]
    for name, fields, noise in changes:
        found = []
        for key in ("zhao_abrupt", "zhao_gradual"):
            ((contest,),) = built_in(key).contests
            regrets = []
            for seed in range(trials):
                rng = np.random.default_rng(seed)
                arms = scales[name](rng.standard_normal((50_000, 20, 2)))
                world = dw.worlds.Given(arms=arms if len(arms) > 1 else arms[0], theta=contest.world.theta(),
                                        tape=rng.standard_normal(50_000), noise=noise)  # fmt: skip
                policies = {label: replace(one, **fields) for label, one in contest.policies.items()}
                played = dw.simulate(policies, world, trials=1, record="last", progress=False)
                regrets.append([played.regret[label][0, -1] for label in policies])
            found += [f"{one:.0f}" for one in np.mean(regrets, axis=0)]
        print(f"  {name}, {fields}, noise {noise:.3g}:", ", ".join(found), flush=True)


def russac2021(trials=3):
    """Changes of the lines of the specs, which have the source's γ."""
    ones = {"lam": 1.0}
    changes = {
        "D-GLUCB, V with ridge 1": ("D-GLUCB", ones), "D-GLUCB, V with ridge 0.01": ("D-GLUCB", {"lam": 0.01}),
        "D-GLUCB, ridge 1, δ = 1/T²": ("D-GLUCB", {**ones, "delta": 8000.0**-2}),
        "D-GLUCB, ridge 1, R = 1": ("D-GLUCB", {**ones, "R": 1.0}),
        "D-GLUCB, bonus not divided": ("D-GLUCB", {"exploration": 1.0}),
        "SC-D-GLUCB, λ = 1": ("SC-D-GLUCB", ones), "SC-D-GLUCB, λ = 2": ("SC-D-GLUCB", {"lam": 2.0}),
        "SC-D-GLUCB, bonus not divided": ("SC-D-GLUCB", {"exploration": 1.0}),
        "GL-UCB, ridge 1, δ = 1/T²": ("GLM-UCB", {**ones, "delta": 8000.0**-2}),
        "LogisticUCB1, λ = 1": ("LogUCB1", {"lam": None}),
    }  # fmt: skip
    print("published, S = 6 and 7: D-GLUCB 715, 1150; SC-D-GLUCB 580, 730; GL-UCB 1970, 2170; LogisticUCB1 1850, 1900")
    for name, (base, fields) in changes.items():
        found = []
        for key in ("russac2021_s6", "russac2021_s7"):
            ((contest,),) = built_in(key).contests
            policy = contest.policies[base]
            given = {one: contest.policies["D-GLUCB"].lam if value is None else value for one, value in fields.items()}
            played = dw.simulate({name: replace(policy, **given)}, contest.world, trials=trials, record="last",
                                 progress=False)  # fmt: skip
            found.append(told(played.regret[name][:, -1]))
        print(f"  {name:36}", "  ".join(found), flush=True)


if __name__ == "__main__":
    {"cheung": cheung, "wang": wang, "zhao": zhao, "russac2021": russac2021}[sys.argv[1]]()
