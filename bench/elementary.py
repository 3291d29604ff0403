"""The elementary functions against mpmath: the largest error in units in the last place, where it is, and the mean.

    pip install mpmath && python bench/elementary.py [--points 1000000] [NAME ...]

Points are those of tests/test_elementary.py: over the whole range, near what is hard, and on both sides of every change
of method. mpmath computes with 150 bits. A million points of a function take about two minutes.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from mpmath import libmp

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
import test_elementary as tests
from driftwise._internal import elementary as ours

BITS = 150
ONE = libmp.fone


def over(f: Any, g: Any) -> Any:
    return libmp.mpf_div(f, g, BITS)


EXACT: dict[str, Callable[..., Any]] = {
    "exp": lambda x: libmp.mpf_exp(x, BITS),
    "expm1": lambda x: libmp.mpf_sub(libmp.mpf_exp(x, BITS + 80), ONE, BITS),
    "log": lambda x: libmp.mpf_log(x, BITS),
    "log1p": lambda x: libmp.mpf_log(libmp.mpf_add(ONE, x), BITS),
    "log2": lambda x: over(libmp.mpf_log(x, BITS), libmp.mpf_ln2(BITS)),
    "sine": lambda x: libmp.mpf_sin(x, BITS),
    "cosine": lambda x: libmp.mpf_cos(x, BITS),
    "erfc": lambda x: libmp.mpf_erfc(x, BITS),
    "power": lambda x, y: libmp.mpf_pow(x, y, BITS),
}


def points(name: str, count: int) -> list[np.ndarray]:
    """One column of arguments, for powers two."""
    if name == "power":
        rng = np.random.default_rng(1)
        x = np.exp2(rng.uniform(-100.0, 100.0, count) * rng.choice([1.0, 0.01], count))
        return [x, rng.uniform(-7.0, 7.0, count)]
    return [tests.points(name, -(-count // tests.points(name, 1).size))]


def measured(name: str, count: int) -> tuple[int, float, float, float]:
    """How many points, the largest error, where, and the mean error."""
    columns = points(name, count)
    found = np.array([getattr(ours, name)(*one) for one in zip(*(one.tolist() for one in columns), strict=True)])
    spacing = np.spacing(np.abs(found))
    worst, where, total = 0.0, 0.0, 0.0
    for y, unit, *xs in zip(found.tolist(), spacing.tolist(), *(one.tolist() for one in columns), strict=True):
        exact = EXACT[name](*map(libmp.from_float, xs))
        off = abs(libmp.to_float(over(libmp.mpf_sub(libmp.from_float(y), exact, BITS), libmp.from_float(unit))))
        total += off
        if off > worst:
            worst, where = off, xs[0]
    return len(found), worst, where, total / len(found)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", default=list(EXACT), metavar="NAME")
    parser.add_argument("--points", type=int, default=1_000_000)
    options = parser.parse_args()
    print(f"{'function':<10} {'points':>9} {'worst':>7} {'at':>24} {'mean':>7}")
    for name in options.names:
        size, worst, where, mean = measured(name, options.points)
        print(f"{name:<10} {size:>9} {worst:>7.4f} {where:>24.17g} {mean:>7.4f}", flush=True)


if __name__ == "__main__":
    main()
