"""Machine code: one list gives numba's functions and the C file; both have the same bits; buffers are checked."""

import contextlib
import copy
import importlib.util
import io
import os
import pickle
import re
import subprocess
import sys
import warnings
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import driftwise as dw
from driftwise._internal import compiling, shipped
from driftwise._internal.compiling import INTERPRETED
from driftwise._internal.sources import COMPILED, source_hash
from driftwise.errors import BadInput
from driftwise.kernels import entries, guards
from driftwise.kernels.point import ATOMS
from driftwise.policies import engines
from driftwise.policies.live import Ready
from driftwise.policies.state import State

ROOT = Path(__file__).resolve().parents[1]
ENTRIES = ("score_linear_", "learn_linear_", "uniform", "to_clear_", "linear_radius", "columns_", "renew_")


def tool():
    spec = importlib.util.spec_from_file_location("release_machine", ROOT / "release" / "machine.py")
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


def test_every_entry_of_the_list_has_a_c_function_and_no_other_has():
    machine = tool()
    text = machine.source_of({name: entries.declared(name) for name in entries.LIST})
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
        given = (np.zeros(0), arms.columns, arm, float(number % 3), 1.0, 0.0)
        assert code.learn_linear_(*point, other.floats, other.ints, *given) == 0
    assert np.array_equal(mine.floats, other.floats) and np.array_equal(mine.ints, other.ints)
    assert code.uniform(1, 2, 3, 4, 5) == entries.LIST["uniform"].call(1, 2, 3, 4, 5)
    radius = entries.LIST["linear_radius"].call(policy.point, 0, 2.0, 5.0, 3)
    assert radius == code.linear_radius(policy.point, 0, 2.0, 5.0, 3)


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
            code.linear_radius(bad, 0, 2.0, 5.0, 3)
    with pytest.raises((TypeError, OverflowError)):
        code.uniform(1, 2, 3, 4, 2**70)
    assert sys.getrefcount(X) < 20  # and no buffer is held


def odd_rows():
    """The same numbers as numpy may hold them: unaligned, by columns, with gaps, swapped, read-only, shorter."""
    plain = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.75]])
    unaligned = np.ndarray((3, 2), np.float64, bytearray(plain.nbytes + 1), offset=1)
    unaligned[:] = plain
    fixed = plain.copy()
    fixed.flags.writeable = False
    gaps = np.repeat(plain, 2, axis=1)[:, ::2]
    return plain, [unaligned, np.asfortranarray(plain), gaps, plain.astype(">f8"), fixed, plain.astype(np.float32)]


def test_policies_hand_over_what_machine_code_takes(monkeypatch):
    """Wherever arms come from, entries get packed, aligned doubles, that may be written to where code does."""
    plain, odd = odd_rows()
    policy, other = dw.make("LB-WeightUCB", dim=2, horizon=60, path_length=1.0), dw.make("dLinUCB", dim=2)
    seen, states = [], []

    def watched(call):
        def watch(*given):
            seen.extend(one for one in given if isinstance(one, np.ndarray))
            return call(*given)

        return watch

    monkeypatch.setattr("driftwise.policies.arms.columns_", watched(entries.LIST["columns_"].call))
    monkeypatch.setattr("driftwise.kernels.ridge.ridge_scores_", watched(entries.LIST["ridge_scores_"].call))
    fold = policy.entries._replace(fold=watched(policy.entries.fold))
    monkeypatch.setattr(type(policy), "entries", property(lambda self: fold))
    for rows in [plain, *odd]:
        state, lived = policy.start(0), other.start(0)
        for given, held in ((policy, state), (other, lived)):
            given.learn(held, rows, given.choose(held, rows).arm, 1.0)
        policy.fold(state, rows, *np.ones((3, 3)))
        states.append(state.to_bytes())
    assert len(set(states)) == 1
    assert len(seen) > 50 and all(one.flags.c_contiguous and one.flags.aligned for one in seen)
    assert {one.dtype for one in seen} == {np.dtype(np.float64), np.dtype(np.int64)}


def test_a_state_shorter_than_its_flags_say_is_refused(code):
    """Lengths, offsets and sizes with which code would leave its arrays."""
    policy = dw.make("LB-WeightUCB", dim=3, horizon=100, path_length=1.0)
    state, X, scratch = policy.start(0), np.zeros((1, 3, 4)), np.zeros(200)
    flags, table = policy.point
    lesson = (0, 0.5, 1.0, 0.0)
    assert code.score_linear_(flags, table, state.floats, state.ints, scratch, X) == 0
    bad = []
    for place in range(len(flags)):
        for value in (-1, 2**31, 2**62, -(2**63)):
            changed = flags.copy()
            changed[place] = value
            if place >= 8 and place < len(flags) - 1:  # sizes and places of groups
                bad.append((changed, table, state.floats, state.ints))
    bad += [
        (flags[:-1].copy(), table, state.floats, state.ints), (flags, table[:, :-9].copy(), state.floats, state.ints),
        (flags, table[:0].copy(), state.floats, state.ints), (flags, table, state.floats[:-1].copy(), state.ints),
        (flags, table, state.floats, state.ints[:-1].copy()),
    ]  # fmt: skip
    for one in bad:
        with pytest.raises(ValueError, match="shorter than their sizes say"):
            code.score_linear_(*one, scratch, X)
        with pytest.raises(ValueError, match="shorter than their sizes say"):
            code.learn_linear_(*one, scratch, X, *lesson)
    whole = (flags, table, state.floats, state.ints)
    for short, arms in ((np.zeros(8), X), (scratch, np.zeros((1, 2, 4))), (scratch, np.zeros((1, 3, 0)))):
        with pytest.raises(ValueError):
            code.score_linear_(*whole, short, arms)
    for arm in (4, 2**62):
        with pytest.raises(ValueError):
            code.learn_linear_(*whole, scratch, X, arm, 0.5, 1.0, 0.0)
    with pytest.raises(ValueError):
        code.columns_(np.zeros((5, 3)), np.zeros((1, 3, 4)))
    with pytest.raises(ValueError):
        code.renew_(flags, state.floats, state.ints, state.floats[1:].copy(), state.ints)
    raw = np.zeros(8 * 13, dtype=np.uint8)[1 : 1 + 8 * 12].view(np.float64).reshape(1, 3, 4)
    with pytest.raises((TypeError, BufferError, ValueError)):
        code.score_linear_(*whole, scratch, raw)


@pytest.mark.skipif(INTERPRETED, reason="a guard compiled is what is asked for")
def test_guards_ask_for_the_scratch_that_policies_hand_over():
    """For every row of the catalogue: not more than policies allocate, and not less than lessons write."""
    for row in dw.catalogue():
        policy = dw.make(row["name"], dim=3, horizon=60, path_length=1.0, changes=2)
        family = policy.entries.family.name
        if family in ("linear", "sampled_linear") or policy.stepped:
            continue
        flags = policy.point.flags
        for used in (0, int(flags[ATOMS])):
            asked = guards.NEEDS[family].py_func(flags, used + 1)
            assert asked == policy._scratch(used), row["name"]


def test_a_fork_goes_on_with_machine_code(code):
    policy = dw.make("LB-WeightUCB", dim=3, horizon=100, path_length=1.0)
    state, X, scratch = policy.start(0), np.zeros((1, 3, 4)), np.zeros(200)
    given = (*policy.point, state.floats, state.ints, scratch, X)
    here = code.score_linear_(*given)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # a fork beside threads
        child = os.fork()
    if child == 0:
        os._exit(0 if code.score_linear_(*given) == here else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_a_second_interpreter_loads_the_module_or_says_that_it_cannot(code):
    """The module keeps nothing between calls; from 3.12 on Python itself may refuse it, with an ImportError."""
    program = f"""
import importlib.util
try:
    spec = importlib.util.spec_from_file_location("v2", {code.__file__!r})
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
except ImportError as slip:
    assert "interpreter" in str(slip), slip
else:
    assert 0.0 < made.uniform(1, 2, 3, 4, 5) < 1.0
"""
    outer = f"""
try:
    import _interpreters as interpreters
    slip = interpreters.exec(interpreters.create(), {program!r})
    assert slip is None, slip
except ImportError:
    import _xxsubinterpreters as interpreters
    interpreters.run_string(interpreters.create(), {program!r})
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", outer], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def test_two_threads_on_one_state_are_refused_where_machine_code_runs(code, monkeypatch):
    """Arguments are checked for machine code and for numba: the state is in use until the entry returns."""
    policy, arms = dw.make("LB-WeightUCB", dim=3, horizon=100, path_length=1.0), dw.ArmSet(np.eye(3))
    state, refused = policy.start(0), []

    def scores(*given):
        with pytest.raises(BadInput, match="in use"):
            policy.choose(state, arms)
        refused.append(True)
        return code.score_linear_(*given)

    monkeypatch.setitem(vars(policy), "_live", replace(policy._live, scores=scores, many=1e9))
    assert policy.choose(state, arms).arm == 0 and refused == [True]


def test_machine_code_runs_without_the_lock_in_threads(code):
    from concurrent.futures import ThreadPoolExecutor

    policy = dw.make("LB-WeightUCB", dim=3, horizon=100, path_length=1.0)
    state, X = policy.start(0), np.random.default_rng(1).uniform(-0.5, 0.5, (1, 3, 50))

    def work(_):
        return [code.score_linear_(*policy.point, state.floats, state.ints, np.zeros(1000), X) for _ in range(200)]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(work, range(4)))
    assert all(one == found[0] for one in found)


def test_calls_with_the_same_arms_are_prepared_once_and_choose_the_same():
    """A state keeps what was checked; other arms, another policy and new arrays start again."""
    policy, other = (dw.make("LB-WeightUCB", dim=3, horizon=100, path_length=length) for length in (1.0, 9.0))
    rows = np.random.default_rng(2).uniform(-0.5, 0.5, (2, 20, 3))
    first, second = map(dw.ArmSet, rows)
    state, plain, kept = policy.start(0), policy.start(0), None
    for t in range(40):
        arms, row = (first, rows[0]) if t % 10 < 6 else (second, rows[1])
        choice = policy.choose(state, arms)
        assert choice == policy.choose(plain, row)
        policy.learn(state, arms, choice.arm, 0.25 * (t % 3))
        policy.learn(plain, row, choice.arm, 0.25 * (t % 3))
        assert type(state.ready) is Ready and state.ready.arms is arms
        assert state.ready is kept or t % 10 in (0, 6)
        kept = state.ready
        assert state.to_bytes() == plain.to_bytes()
    with pytest.raises(BadInput, match="arm: wanted"):
        policy.learn(state, second, 20, 0.5)
    state.in_use.acquire()
    for call in (lambda: policy.choose(state, second), lambda: policy.learn(state, second, 0, 0.5)):
        with pytest.raises(BadInput, match="in use"):
            call()
    state.in_use.release()
    with pytest.raises(BadInput, match="another policy"):
        other.choose(State.from_bytes(state.to_bytes()), second)
    state.floats = state.floats.copy()
    state.packed = shipped.buffer_of(state.floats), shipped.buffer_of(state.ints)
    policy.learn(state, second, 3, 0.5)
    assert state.to_bytes() != plain.to_bytes()


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


def test_an_entry_finds_its_machine_code_whoever_calls_it_first(code):
    program = WITHOUT + f"""
import importlib.util, numpy as np
spec = importlib.util.spec_from_file_location("v2", {code.__file__!r})
made = importlib.util.module_from_spec(spec)
spec.loader.exec_module(made)
sys.modules["driftwise._machine.v2"] = made
import driftwise as dw
assert dw.ArmSet(np.eye(2)).reach == 1.0
"""
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "0"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]


def test_a_package_without_machine_code_and_numba_runs_the_readme_as_python_and_suggests_numba_once():
    """Both blocks of Python, the second with fewer rounds: what it prints is what compiled code gives."""
    agent, rounds = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.S)
    fewer = rounds.replace("horizon=6000", "horizon=60").replace("trials=20", "trials=2")
    assert fewer.count("=60,") == 1 and "trials=2," in fewer
    environment = {**os.environ, "DRIFTWISE_MACHINE": "off", "NUMBA_DISABLE_JIT": "0"}
    command = [sys.executable, "-c", WITHOUT + agent + fewer + "assert 'numba' not in sys.modules"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    told = io.StringIO()
    with contextlib.redirect_stdout(told):
        exec(agent + fewer, {})
    assert done.stdout == told.getvalue() and "politics learned" in done.stdout
    assert done.stderr.count("\n") == 1 and 'pip install "driftwise[jit]"' in done.stderr


@pytest.mark.parametrize("level", ["v9", "V3", "3", "on"])
def test_a_level_that_there_is_not_is_refused(level):
    program = "import driftwise as dw\ntry: dw.make('Auto', dim=3)\nexcept dw.BadInput as slip: print(slip)"
    environment = {**os.environ, "DRIFTWISE_MACHINE": level, "NUMBA_DISABLE_JIT": "0"}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert level in done.stdout and "off, v2, v3, v4 or v8" in done.stdout


def test_a_level_that_is_not_installed_is_refused(monkeypatch):
    monkeypatch.setenv("DRIFTWISE_MACHINE", "v3")
    monkeypatch.setattr(shipped, "INTERPRETED", False)
    monkeypatch.setattr(shipped, "_module", lambda level: None)
    with pytest.raises(BadInput, match="this installation has none"):
        shipped.shipped.__wrapped__()


def test_an_installation_for_one_processor_runs_there_and_on_newer_ones_alone(monkeypatch):
    def installed(has):
        made = SimpleNamespace(sources=source_hash(*COMPILED), level=lambda: has)
        monkeypatch.setattr(shipped, "_module", lambda level: made if level == 3 else None)
        return shipped.shipped.__wrapped__()

    monkeypatch.delenv("DRIFTWISE_MACHINE", raising=False)
    monkeypatch.setattr(shipped, "INTERPRETED", False)
    assert [installed(has).level for has in (2, 3, 4)] == [None, "v3", "v3"]
    assert installed(2).why == "that of this installation is v3, above v2"
    monkeypatch.setenv("DRIFTWISE_MACHINE", "v2")
    with pytest.raises(BadInput, match="v3, above v2"):
        installed(4)


def test_the_level_that_is_built_here_is_the_highest_that_runs_here(code):
    assert tool().levels_here()[-1] == f"v{code.level()}"


def test_the_two_halves_that_compile_side_by_side_are_the_list():
    first, second = tool().halves(list(entries.LIST))
    assert sorted([*first, *second]) == sorted(entries.LIST) and len(first) > 5 < len(second)
    guarded = [{entries.LIST[name].guard for name in half} - {None} for half in (first, second)]
    assert not guarded[0] & guarded[1], "a guard would be linked twice"


@pytest.mark.parametrize("damage", ["cut off", "emptied", "text", "of another processor"])
def test_machine_code_that_cannot_be_loaded_is_not_run_and_said(code, damage, tmp_path, monkeypatch):
    """A file that is cut off would end the process; a level below it runs, or the reason is given."""
    whole = Path(code.__file__).read_bytes()
    bad = {"cut off": whole[: len(whole) // 2], "emptied": b"", "text": b"not here" * 99,
           "of another processor": whole[:18] + b"\xb7" + whole[19:]}[damage]  # fmt: skip
    monkeypatch.setattr("driftwise._machine.__path__", [str(tmp_path)])
    monkeypatch.setattr(shipped, "INTERPRETED", False)
    monkeypatch.delenv("DRIFTWISE_MACHINE", raising=False)
    sound = SimpleNamespace(sources=source_hash(*COMPILED), level=lambda: 3)
    load = shipped._module
    (tmp_path / "v3.abi3.so").write_bytes(bad)
    with monkeypatch.context() as there:
        there.setattr(shipped, "_module", lambda level: sound if level == 2 else load(level))
        found = shipped.shipped.__wrapped__()
        assert found.level == "v2" and found.why.startswith("v3 cannot be loaded (")
    (tmp_path / "v2.abi3.so").write_bytes(bad)
    found = shipped.shipped.__wrapped__()
    assert found.module is None and found.why.endswith("): install driftwise again")
    monkeypatch.setattr(shipped, "shipped", lambda: found)
    assert "v2 cannot be loaded" in str(compiling._missing("learn_linear_"))


def test_a_link_of_your_own_without_numba_names_the_extra(monkeypatch):
    monkeypatch.setattr("driftwise._internal.compiling.compiles", lambda: False)
    with pytest.raises(BadInput, match=r'a link of your own: .*pip install "driftwise\[jit\]"'):
        dw.research.Link(mean=lambda z: z, slope=lambda z: z, k=1.0, c=0.5)


def test_without_numba_rounds_are_played_by_the_loops_of_the_list(monkeypatch):
    monkeypatch.setattr(engines, "compiles", lambda: False)
    for row in dw.catalogue():
        policy = dw.make(row["name"], dim=3, horizon=60, path_length=1.0, changes=2)
        if not policy.stepped:
            for sizes in (engines.Sizes(1, 3, 50, 60, 8), engines.Sizes(1, 3, 4, 60), engines.Sizes(9, 3, 50, 60)):
                family, engine = policy.entries.family, policy.engine(sizes)
                assert any(engines.bound(engine, family, policy.point) is one.call for one in entries.LIST.values())


def test_the_package_imports_numba_only_when_it_compiles():
    program = "import sys, driftwise as dw; dw.make('Auto', dim=3); sys.exit('numba' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_the_sentence_without_numba_names_the_extra(monkeypatch):
    def none(name):
        if name.endswith(".jit"):
            raise ImportError(name)
        return import_module(name)

    monkeypatch.setattr(compiling, "import_module", none)
    with pytest.raises(BadInput, match=r"driftwise\[jit\]"):
        compiling.compiler("a link of your own")
