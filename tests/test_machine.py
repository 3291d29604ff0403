"""The probe: equal where the bits are equal, another where a library computes otherwise."""

import math
import os
import subprocess
import sys
import time

import numba
import numpy as np
import pytest

from driftwise._internal import machine
from driftwise._internal.machine import differing, probe

# glibc then takes the code that it has for processors without fused multiply-add.
PLAIN = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-AVX2,-FMA4,-AVX512F"}


def elsewhere(env):
    """The probe of a process of its own."""
    words = [sys.executable, "-c", "from driftwise._internal.machine import probe; print(probe())"]
    return subprocess.run(words, env={**os.environ, **env}, capture_output=True, text=True, check=True).stdout.strip()


@numba.njit
def compiled(x, y, out):
    for i in range(x.size):
        z = abs(x[i])
        out[0, i], out[1, i], out[2, i] = math.exp(x[i]), math.log(z), math.log1p(z)
        out[3, i], out[4, i], out[5, i] = math.expm1(x[i]), math.erfc(x[i]), math.cos(x[i])
        out[6, i], out[7, i], out[8, i] = math.sin(x[i]), math.pow(z, y[i]), z ** y[i]
        out[9, i], out[10, i] = math.log2(z), math.tanh(x[i])


def test_compiled_code_calls_the_functions_that_the_probe_calls():
    x, y = np.array(machine._spread(-9.0, 9.0)), np.array(machine._spread(-2.0, 2.0))
    out = np.empty((11, x.size))
    compiled(x, y, out)
    z, pairs = np.abs(x), list(zip(np.abs(x).tolist(), y.tolist(), strict=True))
    mine = [
        [math.exp(one) for one in x], [math.log(one) for one in z], [math.log1p(one) for one in z],
        [math.expm1(one) for one in x], [math.erfc(one) for one in x], [math.cos(one) for one in x],
        [math.sin(one) for one in x], [math.pow(*one) for one in pairs], [one**power for one, power in pairs],
        [math.log2(one) for one in z], [math.tanh(one) for one in x],
    ]  # fmt: skip
    assert (out == np.array(mine)).all()


def test_a_probe_is_the_same_in_every_process_and_quick():
    assert elsewhere({"OPENBLAS_NUM_THREADS": "1"}) == probe()
    probe.cache_clear()
    spent = min(_timed() for _ in range(3))
    assert spent < 0.05


def _timed():
    probe.cache_clear()
    began = time.process_time()
    probe()
    return time.process_time() - began


def test_a_probe_differs_where_a_library_computes_otherwise():
    if "glibc" not in os.confstr("CS_GNU_LIBC_VERSION") or "fma" not in _flags():
        pytest.skip("a processor without FMA, or another C library")
    plain, other = elsewhere(PLAIN), elsewhere({"OPENBLAS_CORETYPE": "Nehalem"})
    assert "the C library" in differing(probe(), plain) and "the linear algebra" not in differing(probe(), plain)
    assert differing(probe(), other) == "the linear algebra library"


def _flags():
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as file:
            return file.read()
    except OSError:
        return ""
