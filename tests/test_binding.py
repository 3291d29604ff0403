"""Binding: a function with other pieces has the same bits, and a separate cache."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import driftwise as dw
from driftwise._internal import compiling
from driftwise._internal.compiling import at_hand
from driftwise.kernels import brief, entry, linear, piece, tapes
from driftwise.kernels.binding import bind, branching, unbound
from driftwise.kernels.point import Point

weigh = unbound("weigh", "gives the weight of an age")
twist = unbound("twist", "changes a number")


@piece
def half(age: float) -> float:
    return 0.5**age


@piece
def third(age: float) -> float:
    return age / 3.0


def _weighted(age: float) -> float:
    return float(1.0 + twist(weigh(age)))


@piece
def _sum(x: np.ndarray) -> float:
    total = 0.0
    for t in range(x.size):
        total += x[t] * twist(float(t))
    return total


def _twice(x: float) -> float:
    return 2.0 * x


def _sum_written_out(x: np.ndarray) -> float:
    total = 0.0
    for t in range(x.size):
        total += x[t] * (1.0 + 2.0 * (float(t) / 3.0))
    return total


X = np.random.default_rng(0).standard_normal(100)


def test_a_bound_function_has_the_bits_of_the_one_written_out() -> None:
    inner = piece(bind(_weighted, "weighted_third", weigh=third, twist=piece(_twice)))
    made = entry(bind(_sum, "sum_third", twist=inner))  # a bound function is a piece, and a decorated one is bound
    assert made(X) == entry(_sum_written_out)(X) == _sum_written_out(X)
    interpreted = bind(_weighted, "interpreted", weigh=lambda age: age / 3.0, twist=_twice)
    assert bind(_sum, "sum_interpreted", twist=interpreted)(X) == made(X)


def test_two_bindings_of_one_function_differ() -> None:
    one, other = (piece(bind(_weighted, f"w_{f.__name__}", weigh=f, twist=piece(_twice))) for f in (half, third))
    assert entry(bind(_sum, "sum_a", twist=one))(X) != entry(bind(_sum, "sum_b", twist=other))(X)


def test_a_piece_that_is_missing_or_unknown_is_refused_with_a_sentence() -> None:
    with pytest.raises(TypeError, match="lacks the pieces twist of _weighted: twist changes a number"):
        bind(_weighted, "w", weigh=half)
    with pytest.raises(TypeError, match="was given twits, which _sum does not name"):
        bind(_sum, "s", twist=half, twits=half)
    with pytest.raises(TypeError, match="weigh is a piece that gives the weight of an age"):
        _weighted(1.0)


PROGRAM = """
import numpy as np
from driftwise.kernels import entry, piece
from driftwise.kernels.binding import bind, unbound

twist = unbound("twist", "changes a number")

def _once(x): return x
def _twice(x): return 2.0 * x
def _run(x):
    total = 0.0
    for t in range(x.size):
        total += twist(x[t])
    return total

for name, one in ("once", _once), ("twice", _twice):
    made = entry(bind(_run, f"run_{name}", twist=piece(one)))
    print(made(np.ones(3)), sum(made.call.stats.cache_hits.values()))
"""


@pytest.mark.skipif(bool(os.environ.get("NUMBA_DISABLE_JIT")), reason="interpreted code is not cached")
def test_bindings_are_cached_each_under_its_own_name(tmp_path: Path) -> None:
    script = tmp_path / "bound.py"
    script.write_text(PROGRAM)
    env = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    runs = [subprocess.run([sys.executable, script], env=env, capture_output=True, text=True, check=True).stdout
            for _ in range(2)]
    assert runs[0].split() == ["3.0", "0", "6.0", "0"]
    assert runs[1].split() == ["3.0", "1", "6.0", "1"]


def test_a_branch_on_a_flag_takes_its_own_function_or_the_other() -> None:
    def usual(x: float, point: Point) -> float:
        return x

    def special(x: float, point: Point) -> float:
        return -x

    made = branching("chosen", 1, {3: special}, usual)
    got = [made(2.0, Point(np.array([3, flag]), np.zeros((1, 1)))) for flag in (0, 3, 1)]
    assert got == [2.0, -2.0, 2.0] and made.__name__ == "chosen"


def _add_(numbers: np.ndarray, out: np.ndarray) -> None:
    for i in range(out.size):
        out[i] = numbers[i] + 1.0


@pytest.mark.skipif(compiling.INTERPRETED, reason="everything is interpreted")
def test_a_brief_entry_runs_as_python_until_its_steps_are_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[int] = []

    class Compiler:
        @staticmethod
        def called_of(kernel: Any) -> Any:
            return lambda numbers, out: compiled.append(out.size)

    monkeypatch.setattr(compiling, "compiler", lambda what: Compiler)
    add_: Any = brief(lambda numbers, out: compiling.PATIENCE // 20 * out.size)(_add_)
    out, held = np.zeros(8), at_hand(add_)
    add_(X, out)
    held(X, out)
    assert np.array_equal(out, X[:8] + 1.0) and compiled == []
    for call in (held, add_, held):
        call(X, out)
    assert compiled == [8, 8, 8]


@pytest.mark.skipif(compiling.INTERPRETED, reason="everything is interpreted")
@pytest.mark.parametrize(("reward", "norm"), [("gaussian", "unit"), ("bernoulli", "clip")])
def test_a_world_has_the_bits_of_python_and_of_compiled_code(reward: Any, norm: Any, monkeypatch: Any) -> None:
    def bits(left: int) -> list[bytes]:
        for one in (tapes.turn_, tapes.normals_, tapes.lay_out_, linear.best_means_):
            monkeypatch.setattr(one, "left", left)
            one.__dict__.pop("call", None)
        world = dw.worlds.Turn(dim=3, arms=7, horizon=100, reward=reward, norm=norm, fresh=True)
        return [part.tobytes() for tape in world.tapes(seed=4) for part in tape]

    assert bits(10**9) == bits(-1)
