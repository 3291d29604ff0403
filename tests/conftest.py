"""Chance is tested with fixed seeds: hypothesis draws the same examples in every run, and never a deadline."""

import fcntl
import os

import pytest
from hypothesis import settings

settings.register_profile("driftwise", derandomize=True, deadline=None)
settings.load_profile("driftwise")


@pytest.fixture(scope="session")
def report(tmp_path_factory):
    """The folder of a short reproduction of everything; processes that test side by side share one."""
    from driftwise.cli import main

    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "report"
    with folder.with_suffix(".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "report.html").exists():
            with pytest.raises(SystemExit, match="0"):
                main(["reproduce", "all", "--trials", "2", "--out", str(folder)])
    return folder
