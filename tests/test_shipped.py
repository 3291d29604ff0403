"""Machine code: the one list yields numba's functions and the C file; both have the same bits; buffers are checked."""

import copy
import importlib.util
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import driftwise as dw
from driftwise.errors import BadInput
from driftwise.kernels import entries

ROOT = Path(__file__).resolve().parents[1]
ENTRIES = ("score_linear_", "learn_linear_", "uniform", "to_clear_", "prior_of")


def tool():
    spec = importlib.util.spec_from_file_location("release_machine", ROOT / "release" / "machine.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_every_entry_of_the_list_has_a_c_function_and_no_other_has():
    machine = tool()
    text = machine.source_of({name: entries.declared(name) for name in entries.LIST}, "v2", "none")
    for name in entries.LIST:
        assert text.count(f"static PyObject *call_{name}(") == text.count(f'{{"{name}", ') == 1
    assert text.count("METH_FASTCALL, 0}") == len(entries.LIST)


@pytest.fixture(scope="module")
def code(tmp_path_factory):
    """A few entries for the lowest level."""
    machine = tool()
    try:
        machine.compiler()
    except machine.Broken as why:
        pytest.skip(str(why))
    out = tmp_path_factory.mktemp("machine")
    script = [sys.executable, str(ROOT / "release" / "machine.py"), str(out), "--levels", "v2", "--only", *ENTRIES]
    done = subprocess.run(script, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    spec = importlib.util.spec_from_file_location("v2", out / "v2.abi3.so")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_machine_code_has_the_bits_of_numba(code):
    policy = dw.make("LB-WeightUCB", dim=3, horizon=100, path_length=1.0)
    arms = dw.ArmSet(np.random.default_rng(0).uniform(-0.5, 0.5, (20, 3)))
    mine, other = policy.start(0), policy.start(0)
    policy.choose(other, arms)
    for number in range(100):
        choice = policy.choose(mine, arms)
        policy.learn(mine, arms, choice.arm, float(number % 3))
        point = policy.point
        arm = code.score_linear_(*point, other.floats, other.ints, other.scratch[1], arms.columns)
        assert arm == choice.arm
        given = (np.zeros(0), arms.columns, 0, arm, float(number % 3), 1.0, 0.0)
        assert code.learn_linear_(*point, other.floats, other.ints, *given) == 0
    assert np.array_equal(mine.floats, other.floats) and np.array_equal(mine.ints, other.ints)
    assert code.uniform(1, 2, 3, 4, 5) == entries.LIST["uniform"].call(1, 2, 3, 4, 5)
    prior = entries.LIST["prior_of"].call(policy.point, 0, entries.Gauge(np.zeros(0)), 3)
    assert tuple(prior) == code.prior_of(policy.point, 0, entries.Gauge(np.zeros(0)), 3)


def test_buffers_that_code_cannot_read_are_refused(code):
    policy = dw.make("LB-WeightUCB", dim=3, horizon=100, path_length=1.0)
    state, X = policy.start(0), np.zeros((1, 3, 4))
    flags, table = policy.point
    scratch = np.zeros(200)
    fixed, swapped = X.copy(), X.astype(">f8")
    fixed.flags.writeable = False
    for bad in (fixed, swapped, X.astype(np.float32), X[0], X[:, :, ::2], X.transpose(0, 2, 1), None, [0.0]):
        with pytest.raises((TypeError, BufferError, ValueError)):
            code.score_linear_(flags, table, state.floats, state.ints, scratch, bad)
    for few in ((), (flags, table), (1, 2, 3, 4, 5, 6, 7)):
        with pytest.raises(TypeError):
            code.score_linear_(*few)
    with pytest.raises(TypeError):
        code.score_linear_(table, table, state.floats, state.ints, scratch, X)
    for bad in ((flags,), [flags, table], None):
        with pytest.raises(TypeError):
            code.prior_of(bad, 0, entries.Gauge(np.zeros(0)), 3)
    with pytest.raises((TypeError, OverflowError)):
        code.uniform(1, 2, 3, 4, 2**70)
    assert sys.getrefcount(X) < 20  # and none is held


def test_machine_code_runs_without_the_lock_in_threads(code):
    from concurrent.futures import ThreadPoolExecutor

    policy = dw.make("LB-WeightUCB", dim=3, horizon=100, path_length=1.0)
    state, X = policy.start(0), np.random.default_rng(1).uniform(-0.5, 0.5, (1, 3, 50))

    def work(_):
        return [code.score_linear_(*policy.point, state.floats, state.ints, np.zeros(1000), X) for _ in range(200)]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(4)))
    assert all(one == found[0] for one in found)


def test_a_policy_that_was_used_travels_to_another_process():
    policy, arms = dw.make("LB-WeightUCB", dim=2, horizon=10, path_length=1.0), np.eye(2)
    state = policy.start(0)
    policy.learn(state, arms, policy.choose(state, arms).arm, 0.5)
    for other in (pickle.loads(pickle.dumps(policy)), copy.deepcopy(policy)):
        assert other == policy and other.choose(state, arms) == policy.choose(state, arms)


WITHOUT = """
import sys
class Gone:
    def find_spec(self, name, path=None, target=None):
        if name.split(".")[0] in ("numba", "llvmlite"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Gone())
"""


def test_without_numba_the_package_imports_and_says_what_is_missing():
    program = WITHOUT + """
import driftwise as dw
policy = dw.make("LB-WeightUCB", dim=2, horizon=10, path_length=1.0)
assert "numba" not in sys.modules
try:
    policy.choose(policy.start(0), [[1.0, 0.0], [0.0, 1.0]])
except dw.BadInput as slip:
    print(slip)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert 'pip install "driftwise[jit]"' in done.stdout


def test_the_package_imports_numba_only_when_it_compiles():
    program = "import sys, driftwise as dw; dw.make('Auto', dim=3); sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_sentence_without_numba_names_the_extra(monkeypatch):
    from driftwise._internal import compiling

    def none(name):
        raise ImportError(name)

    monkeypatch.setattr(compiling, "import_module", none)
    with pytest.raises(BadInput, match=r"driftwise\[jit\]"):
        compiling.compiler("a link of your own")
