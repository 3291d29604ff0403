"""Portable bits: no result depends on the C library, BLAS or NumPy's own functions."""

import ast
import os
import subprocess
import sys

import numpy as np
import pytest

import homes
from driftwise._internal import products
from driftwise._internal.rng import Turns, stream
from driftwise.kernels.tapes import normals, ziggurat

# Folders whose results must have portable bits. A link of the user's own uses Python, scipy and BLAS, and so does what
# drift() predicts again, which is shown and never chosen by.
FOLDERS = ("kernels", "theory", "policies", "worlds", "tables", "agent", "service/core")
FREE = {"policies/own_link.py", "agent/drift.py", "agent/replay.py"}
MATH = {
    "exp", "exp2", "expm1", "log", "log1p", "log2", "log10", "pow", "sin", "cos", "tan", "asin", "acos", "atan",
    "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "erf", "erfc", "gamma", "lgamma", "hypot", "cbrt",
    "dist", "fma", "sumprod",
}  # fmt: skip
NUMPY = MATH | {
    "power", "float_power", "logaddexp", "arcsin", "arccos", "arctan", "arctan2", "dot", "vdot", "inner", "matmul",
    "tensordot", "einsum", "kron", "convolve", "correlate", "linalg", "fft", "polyfit", "interp", "sinc",
}  # fmt: skip
DRAWS = {
    "standard_normal", "normal", "standard_exponential", "exponential", "standard_gamma", "gamma", "beta", "poisson",
    "binomial", "dirichlet", "multivariate_normal", "standard_t", "lognormal", "chisquare", "uniform",
}  # fmt: skip


def slips(tree):
    """The lines that call a function which may round differently."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            home, name = node.value.id, node.attr
            if name in {"math": MATH, "np": NUMPY, "rng": DRAWS}.get(home, ()):
                yield node.lineno, f"{home}.{name}"
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            yield node.lineno, "@"
        elif isinstance(node, (ast.BinOp, ast.AugAssign)) and isinstance(node.op, ast.Pow):
            sides = (node.left, node.right) if isinstance(node, ast.BinOp) else ()
            signs = [one.operand if isinstance(one, ast.UnaryOp) else one for one in sides]
            if not signs or not all(isinstance(one, (ast.Constant, ast.Name)) for one in signs) or _varies(signs):
                yield node.lineno, "**"
        elif isinstance(node, ast.ImportFrom) and node.module == "math":
            if MATH & {one.name for one in node.names}:
                yield node.lineno, "from math"
        elif isinstance(node, ast.Call) and getattr(node.func, "attr", "") in ("dot", "matmul"):
            yield node.lineno, "a product by BLAS"


def _varies(sides):
    """Whether a power is more than a constant like 2**EIGHT."""
    return any(isinstance(one, ast.Name) and not one.id.isupper() for one in sides)


# LinAlgError is an exception of NumPy's, raised by products.py too.
def allowed(line):
    return "LinAlgError" in line


@pytest.mark.parametrize("folder", FOLDERS)
def test_where_bits_count_only_our_functions_are_called(folder):
    found = []
    for path, tree in homes.modules(folder).items():
        lines = (homes.SOURCES / path).read_text(encoding="utf-8").splitlines()
        if path not in FREE:
            found += [f"{path}:{at} {what}" for at, what in slips(tree) if not allowed(lines[at - 1])]
    assert found == []


@pytest.mark.parametrize("text", [
    "y = math.exp(x)", "y = np.log1p(x)", "y = a @ b", "y = x ** 2", "y = np.linalg.solve(A, b)", "x **= 2.0",
    "from math import exp", "y = x.dot(z)", "y = rng.standard_normal(3)", "y = 2.0 ** share",
])  # fmt: skip
def test_a_call_of_a_library_would_be_found(text):
    assert list(slips(ast.parse(text)))


def test_normal_draws_are_those_of_the_generator_but_for_the_last_bits():
    for count in (1, 7, (300, 40)):
        ours, theirs = stream(3, "draws"), stream(3, "draws")
        found, wanted = normals(ours, count), theirs.standard_normal(count)
        assert (found == wanted).mean() > 0.999 and np.abs(found - wanted).max() < 1e-13
        assert found.shape == wanted.shape
        assert ours.random() == theirs.random()  # no further word was read


def test_normal_draws_go_on_where_a_stream_had_got_to():
    turns, whole = Turns(), normals(stream(1, "a"), 50)
    turns.begin(1, "a")
    first, mark = normals(turns.generator, 20), turns.mark()
    turns.begin(2, "b")
    normals(turns.generator, 9)
    assert np.array_equal(np.concatenate([first, normals(turns.resume(mark), 30)]), whole)


def test_layers_of_normal_draws_have_one_area():
    below, width, height = ziggurat()
    edges = width * 2.0**52
    areas = edges[1:] * (height[:-1] - height[1:])
    assert np.allclose(areas, areas[0], rtol=1e-10) and below[1] == 0 and (below[2:] < 2**52).all()


def test_linear_systems_are_solved():
    rng = np.random.default_rng(0)
    for d in (1, 2, 5, 17):
        A, b = rng.standard_normal((d, d)), rng.standard_normal((d, 3))
        V = A @ A.T + np.eye(d)
        assert np.allclose(products.solved(A, b), np.linalg.solve(A, b), rtol=1e-8)
        assert np.allclose(products.solved(V, b[:, 0]), np.linalg.solve(V, b[:, 0]), rtol=1e-10)
        assert np.allclose(products.factor(V), np.linalg.cholesky(V)) and np.allclose(products.times(A, b.T), A @ b)
    for bad in (np.zeros((2, 2)), -np.eye(2)):
        with pytest.raises(np.linalg.LinAlgError):
            products.factor(bad)
    with pytest.raises(np.linalg.LinAlgError):
        products.solved(np.zeros((2, 2)), np.ones(2))


SCRIPT = """
import sys; sys.path.insert(0, "tests")
import warnings; warnings.simplefilter("ignore")
from golden import guard
for word in ("SCB-WeightUCB, d = 2", "Auto, d = 2", "Logistic-UCB-2, d = 2", "D-LinTS, d = 2"):
    print(guard.records((2,), 60, word)[0])
"""


def test_another_variant_of_the_c_library_gives_the_same_bits():
    """glibc then uses its code for processors without fused multiply-add."""
    plain = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-AVX2,-FMA4,-AVX512F", "OPENBLAS_CORETYPE": "Nehalem"}
    seen = {
        subprocess.run([sys.executable, "-c", SCRIPT], env={**os.environ, **more}, capture_output=True, text=True,
                       check=True).stdout
        for more in ({}, plain)
    }  # fmt: skip
    assert len(seen) == 1 and "Auto" in seen.pop()
