"""Starting and compiling: shortcuts change no number, and everything that Python calls can be called."""

from __future__ import annotations

import gc
import io
import math
import os
import signal
import subprocess
import sys
import textwrap
from types import SimpleNamespace

import numba
import numpy as np
import pytest

from driftwise._internal import compile_notice, jit, numba_text
from driftwise.kernels.index import first_best
from driftwise.kernels.scratch import line
from driftwise.theory import radius


def python(program: str, **environment: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)], capture_output=True, text=True, check=False,
        env=os.environ | environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


PLAY = """
    import driftwise as dw, hashlib
    p = dw.make("LB-WeightUCB", dim=2, horizon=200, path_length=6.28)
    r = dw.simulate({"p": p}, dw.worlds.Turn(dim=2, arms=20, horizon=200, turns=1), trials=2, seed=3, jobs=1)
    print(hashlib.sha256(r.regret["p"].tobytes()).hexdigest())
"""


@pytest.mark.skipif(not numba_text.possible, reason="this numba is left as it is")
def test_a_function_inside_leaves_no_machine_code():
    """Each play is emitted once, as a whole. Emitting an inlined function too would waste time."""
    program = """
        import numba.core.codegen as codegen
        emitted = []
        def finalize(self, before=codegen.JITCodeLibrary._finalize_specific):
            emitted.append(self.name)
            return before(self)
        codegen.JITCodeLibrary._finalize_specific = finalize
    """
    out = python(textwrap.dedent(program) + textwrap.dedent(PLAY) + "print(*emitted)",
                 NUMBA_CACHE_DIR=str(jit.FOLDER))  # fmt: skip
    assert "whiten_" not in out.split() and "absorb_" not in out.split()


@pytest.mark.skipif(not numba_text.tunable, reason="this numba is left as it is")
def test_loops_of_an_entry_are_not_unrolled_and_add_up_the_same():
    def total(x):
        found = 0.0
        for i in range(x.size):
            found += x[i]
        return found

    x = np.linspace(0.1, 7.0, 37)
    rolled, plain = numba.njit(**numba_text.ROLLED)(total), numba.njit(total)
    assert rolled(x) == plain(x) == total(x)
    added = [next(iter(one.inspect_llvm().values())).count("fadd") for one in (rolled, plain)]
    assert added[0] == 1 < added[1]


@pytest.mark.slow  # compiles everything
def test_a_numba_built_otherwise_gives_the_same_numbers(tmp_path):
    """The shortcuts use numba's private parts. Without them the rounds are the same."""
    otherwise = "import numba.core.codegen as c\ndel c.CPUCodeLibrary._finalize_dynamic_globals\n"
    # the missing part is put back before numba compiles, so only our check fails
    restored = "import numba.core.codegen as c\nkept = c.CPUCodeLibrary._finalize_dynamic_globals\n" + otherwise
    restored += "from driftwise._internal import numba_text\nassert not numba_text.possible\n"
    restored += "c.CPUCodeLibrary._finalize_dynamic_globals = kept\n"
    plain = python(restored + textwrap.dedent(PLAY), NUMBA_CACHE_DIR=str(tmp_path))
    assert plain == python(PLAY)


def test_python_may_call_what_is_for_the_inside():
    assert first_best(np.array([0.0, 2.0, 1.0]), np.array([0.0, 0.0, 1.0])) == 1


def test_a_formula_outside_is_plain_python():
    assert line(9) == 16 and type(line(9)) is int
    assert radius.lb_radius(0.0, 1.0, 4.0, -math.log(0.5), 1.0, 1.0, 0.0) == 2.0


def test_a_name_that_does_not_exist_is_said():
    import driftwise as dw

    with pytest.raises(AttributeError, match="no attribute 'Agnet'"):
        dw.Agnet  # noqa: B018


def test_every_public_name_is_there_and_listed():
    import driftwise as dw

    assert all(getattr(dw, name) is not None for name in dw.__all__)
    assert set(dw.__all__) <= set(dir(dw))


def test_a_person_at_a_terminal_is_told_what_is_compiled(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    compiling_it = SimpleNamespace(data={"dispatcher": first_best})
    shown = Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    notice = compile_notice._Notice()
    notice.on_start(compiling_it)
    notice.on_start(compiling_it)
    assert not gc.isenabled()
    notice.on_end(compiling_it)
    notice.on_end(compiling_it)
    assert gc.isenabled()
    assert "first_best" in shown.getvalue() and "2 functions" in shown.getvalue()
    monkeypatch.setenv("COLUMNS", "40")
    notice.on_start(compiling_it)
    notice.on_end(compiling_it)
    assert all(len(line) < 80 for line in shown.getvalue().split("\r"))  # a line that wraps is not written over
    assert len(shown.getvalue().split("\r")[-2]) == 39
    assert shown.getvalue().endswith("\x1b[2K")


def test_ctrl_c_ends_a_compile_of_the_main_thread_at_once_without_a_traceback():
    """A long hash replaces LLVM: one call of seconds that handles no signal and lets other threads run."""
    program = """
        import hashlib, signal
        from types import SimpleNamespace
        from driftwise._internal import compile_notice, interrupts
        signal.signal(signal.SIGINT, lambda *_: None)  # LLVM hears nothing before or after the hash either
        interrupts.end_compiles()
        compile_notice._notice.on_start(SimpleNamespace(data={}))
        print("compiling", flush=True)
        hashlib.pbkdf2_hmac("sha256", b"", b"", 2_000_000_000)
    """
    process = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, text=True)  # fmt: skip
    assert process.stdout is not None and process.stdout.readline() == "compiling\n"
    process.send_signal(signal.SIGINT)
    _, told = process.communicate(timeout=100)
    assert process.returncode == 130 and told.count("\n") == 1 and "interrupted" in told
