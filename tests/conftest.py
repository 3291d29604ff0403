"""Chance is tested with fixed seeds: hypothesis draws the same examples in every run, and never a deadline."""

import pytest
from hypothesis import settings

settings.register_profile("driftwise", derandomize=True, deadline=None)
settings.load_profile("driftwise")


@pytest.fixture(scope="session")
def report(tmp_path_factory):
    """The folder of a short reproduction of everything. Who uses it belongs to the xdist group "report"."""
    from driftwise.cli import main

    folder = tmp_path_factory.mktemp("report")
    with pytest.raises(SystemExit, match="0"):
        main(["reproduce", "all", "--trials", "2", "--out", str(folder)])
    return folder
