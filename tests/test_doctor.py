"""`driftwise doctor` prints the facts for a bug report, and what is slow; the files of the project are correct."""

import json
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import driftwise as dw
from driftwise import doctor
from driftwise._internal.sources import COMPILED, source_hash
from driftwise.cli import main

ROOT = Path(__file__).resolve().parent.parent


def test_it_names_versions_cache_compiler_threads_and_extras(capsys):
    with pytest.raises(SystemExit, match="0"):
        main(["doctor", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["versions"]["driftwise"] == dw.__version__ and found["versions"]["compiler"].startswith("LLVM ")
    assert found["compiled code"]["sources"] == source_hash(*COMPILED)
    assert found["processors"]["cores"] >= 1 and isinstance(found["slow"], list)
    with pytest.raises(SystemExit, match="0"):
        main(["doctor"])
    printed = capsys.readouterr().out
    assert all(title in printed for title in ("versions", "compiled code", "processors", "extras", "what is slow here"))


def test_extras_are_there_or_say_how_to_get_them(monkeypatch):
    wanted = ["numpy>=1", 'rich>=13; extra == "fine"', 'rich; extra == "both"', "nobody-has-this>=1; extra == 'both'",
              'pytest; extra == "dev"', 'driftwise[fine]; extra == "all"']  # fmt: skip
    monkeypatch.setattr(doctor.importlib.metadata, "requires", lambda name: wanted)
    found = doctor._extras()
    assert set(found) == {"fine", "both"}
    assert found["fine"].startswith("rich ") and found["both"] == 'no nobody-has-this: pip install "driftwise[both]"'


def slow(**changes):
    compiled = {"calls": "numba", "compiles": True, "kept beyond the process": True, "functions": 5}
    processors = {"cores": 8, "usable": 8, "allowed by a container": None, "load": 0.5}
    for name, value in changes.items():
        part = compiled if name in compiled else processors
        assert name in part
        part[name] = value
    return " ".join(doctor._slow(compiled, processors))


def test_what_is_slow_is_said_with_its_reason(monkeypatch):
    monkeypatch.setattr(doctor, "_sync", lambda: 0.001)
    monkeypatch.setattr(doctor.sys, "gettrace", lambda: None)
    assert slow() == ""
    assert "runs as Python" in slow(calls="Python")
    with monkeypatch.context() as interpreted:
        interpreted.setenv("NUMBA_DISABLE_JIT", "1")
        assert "NUMBA_DISABLE_JIT" in slow()
    assert "NUMBA_CACHE_DIR" in slow(**{"kept beyond the process": False})
    assert "first use" in slow(functions=0)
    assert "simulate(jobs=2)" in slow(**{"allowed by a container": 2.0})
    assert "other processes are busy" in slow(load=30.0)
    monkeypatch.setattr(doctor, "_sync", lambda: 0.5)
    assert "500 ms" in slow()


def test_no_home_is_named():
    assert doctor._home(Path.home() / "cache") == "~/cache" and doctor._home(Path("/elsewhere")) == "/elsewhere"


def test_the_version_stands_in_one_place_and_others_repeat_it():
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert 'dynamic = ["version"]' in project and not re.search(r"^version = ", project, flags=re.M)
    assert f"\nversion: {dw.__version__}\n" in (ROOT / "CITATION.cff").read_text(encoding="utf-8")


def test_the_changelog_keeps_its_form():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    heads = re.findall(r"^## (.*)$", text, flags=re.M)
    assert heads[0] == f"[{dw.__version__}] - unreleased"
    assert all(re.fullmatch(r"\[\d+\.\d+\.\d+\] - \d{4}-\d\d-\d\d", one) for one in heads[1:])
    kinds = set(re.findall(r"^### (.*)$", text, flags=re.M))
    assert kinds <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"} and "Added" in kinds
    assert len(text.splitlines()) <= 60 * len(heads), "a version has 60 lines; reasons are in docs/decisions.md"


def test_the_page_on_installing_names_every_extra_and_what_it_brings():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    table = (ROOT / "docs" / "installing.md").read_text(encoding="utf-8")
    for extra, wanted in project["optional-dependencies"].items():
        if extra not in doctor._OWN:
            row = re.search(rf"^\| `{extra}` \| (.*?) \|", table, flags=re.M)
            assert row, f"docs/installing.md: no row for the extra {extra}"
            assert all(re.match(r"[\w-]+", one)[0] in row[1] for one in wanted), extra


def test_numba_comes_along_where_no_wheel_has_machine_code():
    """One list of requirements for all wheels: environment markers say where numba is one of them."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    wanted = [one for one in map(Requirement, project["dependencies"]) if one.name == "numba"]

    def comes(system, machine, kind="cpython"):
        here = {"sys_platform": system, "platform_machine": machine, "implementation_name": kind}
        return any(one.marker.evaluate(here) for one in wanted)

    assert not comes("linux", "x86_64") and not comes("linux", "aarch64")
    assert comes("darwin", "arm64") and comes("darwin", "x86_64") and comes("win32", "AMD64")
    assert comes("linux", "ppc64le") and comes("linux", "x86_64", "pypy")
