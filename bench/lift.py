"""How often an interval of the lift is ever wrong when it is looked at after every unit, and how wide it is.

    python bench/lift.py aa [--streams 10000] [--units 10000]   A/A streams: the share in which 0 is ever left out
    python bench/lift.py width                                  half widths at the last unit, beside ville's
    python bench/lift.py ramp [--runs 20]                      what a ramp costs on a harmful policy, and on a good one

`aa` computes the same sums as driftwise.lift for many streams at once, and compares some looks with the module itself.
`width` needs ville (pip install ville), which is no dependency of driftwise.
"""

from __future__ import annotations

import argparse
import math
import time

import numpy as np

from driftwise._internal.intervals import t_quantile
from driftwise.lift import Bets, Lift, Ramp, UnitSums
from driftwise.lift.betting import BETS, WEIGHTS, fourth_factor
from driftwise.lift.intervals import TIGHTEST
from driftwise.lift.sums import LEAST

LEVEL = 0.05
CAP = 100.0  # of heavy values
CHUNK = 25  # streams at a time


def rate(p):
    return lambda rng, shape: (rng.random(shape) < p).astype(float)


def heavy(rng, shape):
    """One unit in ten buys, for a sum whose fourth moment is 3,000 times its variance squared, cut off at CAP."""
    return (rng.random(shape) < 0.1) * np.minimum(np.exp(1.5 * rng.standard_normal(shape)), CAP)


def drifting(rng, shape):
    """A rate that swings between .02 and .18, and halves for good at half time."""
    t = np.arange(shape[1])
    return (rng.random(shape) < (0.1 + 0.08 * np.sin(t / 500)) * np.where(t < shape[1] / 2, 1, 0.5)).astype(float)


WORLDS = {"rate .01": (rate(0.01), 1.0), "rate .1": (rate(0.1), 1.0), "rate .5": (rate(0.5), 1.0),
          "heavy": (heavy, CAP), "drifting": (drifting, 1.0)}  # fmt: skip


def bounded_wrong(y, arm, share):
    """Whether the bounded interval ever excludes 0, for each stream; y within [0, 1]."""
    n = y.shape[1]
    centre = np.empty_like(y)
    centre[:, 0] = 0.5
    centre[:, 1:] = (0.5 + np.cumsum(y, axis=1)[:, :-1]) / np.arange(2, n + 1)
    phi = (y - centre) * np.where(arm, 1 / share, -1 / (1 - share))
    one, two = np.cumsum(phi, axis=1), np.cumsum(phi**2, axis=1)
    near = one**2 >= 1.9**2 * two  # others are far from the boundary: no mixture of bets has gained 1/α there
    rows, looks = np.nonzero(near)
    if not rows.size:
        return np.zeros(len(y), dtype=bool)
    three, four = np.cumsum(phi**3, axis=1)[rows, looks], np.cumsum(phi**4, axis=1)[rows, looks]
    one, two = one[rows, looks], two[rows, looks]
    reach, wrong = 1 / min(share, 1 - share), np.zeros(len(y), dtype=bool)
    grown = np.zeros(rows.size)
    sign = np.sign(one)
    factors = fourth_factor(BETS)
    for bet, weight, factor in zip(BETS / reach, WEIGHTS, factors, strict=True):
        gain = sign * (bet * one + bet**3 * three / 3) - bet**2 * two / 2 - factor * bet**4 * four
        grown += np.exp(np.minimum(weight + gain, 50.0))
    wrong[rows[grown >= 2 / LEVEL]] = True
    return wrong


def looks_of(y, arm):
    """Mean, variance of the mean, number and units that matter of a cohort at every look."""
    n = np.cumsum(arm, axis=1).astype(float)
    powers = [np.cumsum(np.where(arm, y**k, 0.0), axis=1) for k in range(1, 5)]
    with np.errstate(all="ignore"):
        mean = powers[0] / n
        square = np.maximum(powers[1] - n * mean**2, 0)
        fourth = powers[3] - 4 * mean * powers[2] + 6 * mean**2 * powers[1] - 3 * n * mean**4
        effective = np.where(fourth > 1e-12 * square**2, square**2 / fourth, 0.0)
        return mean, square / n / (n - 1), n, effective


def spreads(units, level):
    rho = TIGHTEST / (2 * math.log(1 / level) + math.log(1 + 2 * math.log(1 / level)))
    return np.sqrt((1 + rho / units) * (np.log1p(units / rho) + 2 * math.log(1 / level)))


def others_wrong(y, arm):
    """Whether the asymptotic interval, and Welch's, ever exclude 0; and Welch's at ten looks."""
    one, zero = looks_of(y, arm), looks_of(y, ~arm)
    with np.errstate(all="ignore"):
        z = np.abs(one[0] - zero[0]) / np.sqrt(one[1] + zero[1])
    shown = np.minimum(one[3], zero[3]) >= LEAST
    units = np.arange(1, y.shape[1] + 1)
    asymptotic = (shown & (z > spreads(units, LEVEL))).any(axis=1)
    welch = (np.minimum(one[2], zero[2]) >= 30) & (z > t_quantile(1e9))  # as soon as it can be computed
    tenths = np.linspace(0, y.shape[1] - 1, 11).astype(int)[1:]
    return asymptotic, welch.any(axis=1), welch[:, tenths].any(axis=1), shown.any(axis=1)


def agree(y, arm, share, top):
    """Check that the module gives the same results for one stream as the sums above."""
    bets, sums = Bets(share, (0.0, top)), UnitSums()
    bounded = asymptotic = False
    for start in range(0, len(y), 500):
        part = slice(start, start + 500)
        bets.add(arm[part].astype(int), y[part])
        sums.add(range(start, start + len(y[part])), arm[part].astype(int), y[part].tolist())
        found = bets.difference(LEVEL)
        bounded |= not found.low <= 0 <= found.high
        found = sums.difference(LEVEL)
        asymptotic |= found.shown and not found.low <= 0 <= found.high
    return bounded, asymptotic


def aa(streams, units, only, held_back):
    print(f"{streams} A/A streams of {units} units, a look after every unit; the share that is ever wrong, in %")
    print("     world  held  bounded  asymptotic  Welch  Welch, 10 looks  shown")
    for name, (draw, top) in WORLDS.items():
        for held in held_back:
            if only and only != name:
                continue
            began, rng, share = time.perf_counter(), np.random.default_rng(7), 1 - held
            counts = np.zeros(5)
            for start in range(0, streams, CHUNK):
                shape = (min(CHUNK, streams - start), units)
                y, arm = draw(rng, shape), rng.random(shape) < share
                bounded = bounded_wrong(y / top, arm, share)
                found = (bounded, *others_wrong(y, arm))
                if start == 0:
                    for row in range(3):
                        seen = agree(y[row], arm[row], share, top)
                        assert seen[0] <= found[0][row] and seen[1] <= found[1][row], (name, row, seen)
                counts += [one.sum() for one in found]
            each = 100 * counts / streams
            print(f"{name:>10} {held:5.0%} {each[0]:8.2f} {each[1]:11.2f} {each[2]:6.1f} {each[3]:16.1f} {each[4]:6.1f}"
                  f"   {time.perf_counter() - began:.0f} s", flush=True)  # fmt: skip


def width(units, runs=5):
    import ville

    print(f"half widths at {units} units, mean of {runs} streams, over those of ville")
    print("     world  held   bounded     ville  ratio  asymptotic     ville  ratio")
    for name, (draw, top) in WORLDS.items():
        for held in (0.1, 0.5):
            share, rng, found = 1 - held, np.random.default_rng(3), []
            for _ in range(runs):
                y, arm = draw(rng, (1, units))[0], rng.random(units) < share
                bets, sums = Bets(share, (0.0, top)), UnitSums()
                bets.add(arm.astype(int), y)
                sums.add(range(units), arm.astype(int), y.tolist())
                betting = ville.BettingABTest(bounds=(0, top), propensity=share, grid=8000).fit(y, arm.astype(float))
                normal = ville.AsymptoticABTest(propensity=share).fit(y, arm.astype(float))
                found.append([
                    (pair[-1] - pair[-2]) / 2
                    for pair in (bets.difference(LEVEL), betting.interval(), sums.difference(LEVEL), normal.interval())
                ])  # fmt: skip
            a, b, c, d = np.mean(found, axis=0)
            print(f"{name:>10} {held:5.0%} {a:9.5f} {b:9.5f} {a / b:6.2f} {c:11.5f} {d:9.5f} {c / d:6.2f}", flush=True)


def ramp(runs):
    """Units that got the policy, and rewards lost to it, until a ramp stops or arrives."""
    shares = (0.01, 0.05, 0.25, 1.0)
    print(f"ramp {shares}, baseline rate .1, {runs} runs of at most 2,000,000 units, a look every 2,000 units")
    print("  rate  margin  arrived  stopped  running  units that got the policy  rewards lost (mean, most)")
    for live, margin in ((0.0, 0.0), (0.05, 0.0), (0.08, 0.0), (0.12, 0.0), (0.1, -0.02)):
        ended, exposed = {"arrived": 0, "stopped": 0, "running": 0}, []
        for seed in range(runs):
            how, units = _ramped(Ramp(shares, margin), live, np.random.default_rng(seed))
            ended[how] += 1
            exposed.append(units)
        lost = (0.1 - live) * np.array(exposed)
        print(f"{live:6.2f} {margin:7.2f} {ended['arrived']:8} {ended['stopped']:8} {ended['running']:8} "
              f"{np.mean(exposed):26.0f} {lost.mean():14.0f} {lost.max():8.0f}", flush=True)  # fmt: skip


def _ramped(rule, live, rng, every=2_000, most=1_000):
    """How one ramp ends, and the units that got the policy."""
    place, exposed, lift = 0, 0, Lift(rule.shares[0], (0.0, 1.0))
    for look in range(most):
        arm = (rng.random(every) < lift.share).astype(int)
        exposed += int(arm.sum())
        y = (rng.random(every) < np.where(arm, live, 0.1)).astype(float)
        lift.add(range(look * every, (look + 1) * every), arm.tolist(), y.tolist())
        step = rule.judge(lift, place).step
        if step == "stopped":
            return "stopped", exposed
        if step == "advanced":
            place += 1
            if rule.shares[place] == 1.0:
                return "arrived", exposed
            lift = Lift(rule.shares[place], (0.0, 1.0))
    return "running", exposed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["aa", "width", "ramp"])
    parser.add_argument("--streams", type=int, default=10_000)
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--units", type=int, default=10_000)
    parser.add_argument("--world", default="", help="one of: " + ", ".join(WORLDS))
    parser.add_argument("--held", type=float, nargs="*", default=[0.1, 0.5], help="shares that are held back")
    asked = parser.parse_args()
    if asked.what == "aa":
        aa(asked.streams, asked.units, asked.world, asked.held)
    elif asked.what == "width":
        width(asked.units)
    else:
        ramp(asked.runs)


if __name__ == "__main__":
    main()
