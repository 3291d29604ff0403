"""Pieces: a function that a factory makes has the bits of the one written out, and is stored by all of its pieces."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from driftwise._internal.sources import digest_of
from driftwise.kernels import entry, piece, stored_as


def half(age: float) -> float:
    return 0.5**age


def third(age: float) -> float:
    return age / 3.0


def summing(name: str, weigh: Any) -> Any:
    weigh = piece(weigh)

    @piece
    def twice(age: float) -> float:
        return float(1.0 + 2.0 * weigh(age))

    @entry
    @stored_as(name)
    def sum_(x: np.ndarray) -> float:
        total = 0.0
        for t in range(x.size):
            total += x[t] * twice(float(t))
        return total

    return sum_


@entry
def _written_out(x: np.ndarray) -> float:
    total = 0.0
    for t in range(x.size):
        total += x[t] * (1.0 + 2.0 * (float(t) / 3.0))
    return total


X = np.random.default_rng(0).standard_normal(100)


def test_a_function_of_pieces_has_the_bits_of_the_one_written_out_compiled_and_as_python() -> None:
    made = summing("sum_third", third)
    assert made(X) == _written_out(X) == getattr(_written_out, "py_func", _written_out)(X)
    assert getattr(made, "python", made)(X) == made(X) != summing("sum_half", half)(X)


def plain(function: Any) -> Any:
    return getattr(function, "py_func", function)


def test_a_digest_tells_pieces_apart_however_deep_and_nothing_else() -> None:
    one, again, other = summing("s", third), summing("t", third), summing("s", half)
    assert digest_of(plain(one)) == digest_of(plain(again)) != digest_of(plain(other))

    def reads(number: float, array: np.ndarray) -> Any:
        def made(x: float) -> Any:
            return number * array[0] * x

        return digest_of(made)  # type: ignore[arg-type]

    assert reads(1.0, X) == reads(1.0, X.copy()) and len({reads(1.0, X), reads(2.0, X), reads(1.0, X[1:])}) == 3


PROGRAM = """
import sys, numpy as np
sys.path[:0] = sys.argv[1:2]
import test_pieces as t
from own import link

for name, one in ("half", t.half), ("link", link):
    made = t.summing(f"stored_{name}", one)
    print(made(np.ones(3)), sum(made.call.stats.cache_hits.values()))
"""


@pytest.mark.skipif(bool(os.environ.get("NUMBA_DISABLE_JIT")), reason="interpreted code is not cached")
def test_a_changed_piece_in_a_file_of_the_users_own_is_compiled_anew_and_the_others_are_found(tmp_path: Path) -> None:
    """A file that numba knows nothing of: it looks at the file of the function that Python calls alone."""
    script, env = tmp_path / "program.py", {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    script.write_text(PROGRAM)

    def printed(link: str) -> list[str]:
        (tmp_path / "own.py").write_text(f"def link(z):\n    return {link}\n")
        command = [sys.executable, "-B", script, Path(__file__).parent]
        return subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout.split()

    assert printed("z + 1.0") == ["6.5", "0", "15.0", "0"]
    assert printed("z + 1.0") == ["6.5", "1", "15.0", "1"]
    assert printed("z + 2.0") == ["6.5", "1", "21.0", "0"]
    assert printed("z + 1.0") == ["6.5", "1", "15.0", "1"]
