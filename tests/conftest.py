"""Chance is tested with fixed seeds: hypothesis draws the same examples in every run and has no deadline.

Several processes test side by side. Threads of a matrix product that wait for a core spin there: with a thread each,
three tests of data/test_coverage.py took 4 s of CPU where they took more than 31. Workers and servers inherit the
setting.
"""

import fcntl
import gc
import os
import re

import pytest
from hypothesis import settings

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # read when numpy is imported
os.environ.setdefault("DRIFTWISE_PATIENCE", "0")  # tests are of compiled code; test_python_first.py is of Python first

INTERPRETED = bool(int(os.environ.get("NUMBA_DISABLE_JIT") or 0))

settings.register_profile("driftwise", derandomize=True, deadline=None)
settings.load_profile("driftwise")


# Files that take longest, which come first: the processes that test side by side then end at nearly the same time.
LONGEST = (
    "test_auto", "test_browser", "test_catalogue", "test_runs", "test_glm_policies", "test_guard", "test_lemmas_2_3",
    "test_sampling", "test_naive_glm", "test_extending", "test_dashboard", "test_cluster", "test_neighbours",
    "test_faults", "test_project", "test_definitions", "test_shipped", "test_defects", "test_evidence",
)  # fmt: skip


def pytest_collection_modifyitems(items):
    places = {name: place for place, name in enumerate(LONGEST)}
    items.sort(key=lambda item: places.get(item.path.stem, len(places)))


def pytest_collection_finish():
    gc.collect()
    gc.freeze()  # modules and collected tests live as long as the process: to visit them again takes 3% of the CPU


def shorter(spec):
    """A spec of the package with a tenth of its rounds; horizons of growth specs double from a hundred."""
    from driftwise.lab.run.spec import parse

    def doubling(found):
        return f"values = [{', '.join(str(100 * 2**place) for place in range(found[1].count(',') + 1))}]"

    text = re.sub(r"^horizon = (\d+)0$", r"horizon = \1", spec.text, flags=re.M)
    text = re.sub(r"^at = .*$", lambda found: found[0].replace("000", "00"), text, flags=re.M)
    text = re.sub(r'(?<=over = "world.horizon"\n)values = \[([^\]]*)\]', doubling, text)
    return parse(text, f"{spec.key}.toml")


def reproduced(folder, cut=None):
    """`driftwise reproduce all` with two trials, all of it or a cut of every spec."""
    from driftwise.cli import main
    from driftwise.lab.paper import panels

    with pytest.MonkeyPatch.context() as patched:
        if cut is not None:
            whole = panels.built_in
            patched.setattr(panels, "built_in", lambda name: cut(whole(name)))
        with pytest.raises(SystemExit, match="0"):
            main(["reproduce", "all", "--trials", "2", "--out", str(folder)])


@pytest.fixture(scope="session", autouse=True)
def compiled_once(tmp_path_factory):
    """What tests/warm.py has not compiled, one of the processes that test side by side compiles; the others wait for it
    and load it."""
    if "PYTEST_XDIST_WORKER" not in os.environ or INTERPRETED:
        yield
        return
    from numba.core.caching import NullCache
    from numba.core.compiler_lock import global_compiler_lock
    from numba.core.dispatcher import Dispatcher

    folder, alone = tmp_path_factory.getbasetemp().parent, Dispatcher.compile

    def compile(self, signature):
        if isinstance(self._cache, NullCache):
            return alone(self, signature)
        name = f"{self.__module__}.{self.__qualname__}".replace("<", "").replace(">", "")
        with global_compiler_lock, (folder / f"compile-{name}.lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            return alone(self, signature)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(Dispatcher, "compile", compile)
        yield


@pytest.fixture(scope="session")
def report(tmp_path_factory):
    """The folder of a short reproduction of everything; processes that test side by side share one."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "report"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "report.html").exists():
            reproduced(folder, cut=shorter)
    return folder
