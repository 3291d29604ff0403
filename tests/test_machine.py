"""The probe: equal if the bits are equal, different if a library computes other bits."""

import os
import subprocess
import sys
import time

from numpy._core._multiarray_umath import __cpu_dispatch__

from driftwise._internal import elementary, products
from driftwise._internal.machine import differing, probe

# glibc then uses its code for processors without fused multiply-add.
PLAIN = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-AVX2,-FMA4,-AVX512F"}


def elsewhere(env):
    """The probe of a separate process."""
    words = [sys.executable, "-c", "from driftwise._internal.machine import probe; print(probe())"]
    return subprocess.run(words, env={**os.environ, **env}, capture_output=True, text=True, check=True).stdout.strip()


def test_a_probe_is_the_same_in_every_process_and_quick():
    assert elsewhere({"OPENBLAS_NUM_THREADS": "1"}) == probe()
    probe.cache_clear()
    spent = min(_timed() for _ in range(3))
    assert spent < 1.0


def _timed():
    probe.cache_clear()
    began = time.process_time()
    probe()
    return time.process_time() - began


def test_a_probe_is_the_same_with_another_c_library_linear_algebra_and_code_of_numpy():
    slow = {"OPENBLAS_CORETYPE": "Nehalem", "NPY_DISABLE_CPU_FEATURES": " ".join(__cpu_dispatch__)}
    assert elsewhere(PLAIN) == elsewhere(slow) == probe()


def test_a_probe_differs_where_a_function_or_a_sum_does(monkeypatch):
    here, exp, total = probe(), elementary.exp, products.dot
    for home, name, other, told in (
        (elementary, "exp", lambda x: exp(x) * (1.0 + 2.0**-52), "our elementary functions"),
        (products, "dot", lambda x, y: total(x, y) * (1.0 + 2.0**-52), "NumPy's sums"),
    ):
        with monkeypatch.context() as changed:
            changed.setattr(home, name, other)
            probe.cache_clear()
            assert differing(probe(), here) == told
    probe.cache_clear()


def test_a_probe_of_an_earlier_version_is_told_by_its_libraries():
    assert "the C library" in differing("c:1 numpy:2 blas:3 svml:no", probe())
