"""This version reads the stored files of every version: snapshots continue, logs fold, sums give the same state."""

import json
from pathlib import Path

import pytest

import driftwise as dw
from driftwise._internal import container
from driftwise.policies.plain import revision_in
from golden import guard, keep
from refusing import refused

FOLDERS = sorted(path.parent for path in keep.HERE.glob("*/kept.json"))
CASES = [(folder, name) for folder in FOLDERS for name in json.loads((folder / "kept.json").read_text())["agents"]]
NAMED = [f"{folder.name}-{name}" for folder, name in CASES]


def kept(folder: Path, name: str) -> dict:
    return json.loads((folder / "kept.json").read_text(encoding="utf-8"))["agents"][name]


def same(folder: Path, name: str, state: dw.State, wanted: str) -> None:
    """Bit for bit where the folder was made; elsewhere compilers may round differently, and sums agree to 1e-9."""
    if json.loads((folder / "kept.json").read_text(encoding="utf-8"))["platform"] == guard.here():
        assert keep.digest(state.to_bytes()) == wanted
    else:
        there = dw.State.from_bytes((folder / f"{name}.state").read_bytes())
        assert guard.summed(state) == pytest.approx(guard.summed(there), rel=1e-9, abs=1e-9)


def test_this_version_is_kept():
    assert dw.__version__ in {folder.name for folder in FOLDERS}


def of_another_revision(folder: Path, name: str) -> bool:
    """Whether the policy was revised since. Then its snapshot is refused, and its log folds to another state."""
    facts, _ = container.unpack("state", (folder / f"{name}.state").read_bytes(), "")
    return revision_in(facts["policy"]) != revision_in(keep.agents()[name].policy.digest)


def test_the_first_auto_was_revised_and_what_keeps_its_revision_is_kept():
    assert {name: of_another_revision(folder, name) for folder, name in CASES if folder.name == "0.1.0"} == {
        "clicks": True, "values": False,
    }  # fmt: skip


@pytest.mark.parametrize(("folder", "name"), CASES, ids=NAMED)
def test_a_snapshot_is_read_and_lives_on_as_it_would_have(folder, name):
    """A snapshot of an earlier revision of its policy is refused, and the agent continues from its log."""
    if of_another_revision(folder, name):
        with refused("policy", "learn_log"):
            dw.Agent.from_bytes((folder / f"{name}.agent").read_bytes())
        agent = keep.agents()[name]
        agent.learn_log(folder / f"{name}-jsonl")
        assert len(keep.after(agent, name)["arms"]) == len(kept(folder, name)["arms"])
        return
    agent = dw.Agent.from_bytes((folder / f"{name}.agent").read_bytes())
    assert keep.digest(agent.state.to_bytes()) == kept(folder, name)["state"]
    assert agent.state.to_bytes() == dw.State.from_bytes((folder / f"{name}.state").read_bytes()).to_bytes()
    assert agent.counts["open"] > 0, "one with open decisions is the harder case"
    lived = keep.after(agent, name)
    assert lived["arms"] == kept(folder, name)["arms"]
    if json.loads((folder / "kept.json").read_text(encoding="utf-8"))["platform"] == guard.here():
        assert lived["after"] == kept(folder, name)["after"]


@pytest.mark.parametrize("format", ["parquet", "jsonl"])
@pytest.mark.parametrize(("folder", "name"), CASES, ids=NAMED)
def test_a_log_folds_to_the_state_of_its_writer(folder, name, format):
    if format == "parquet":
        pytest.importorskip("pyarrow")
    agent = keep.agents()[name]
    agent.learn_log(folder / f"{name}-{format}")
    if of_another_revision(folder, name):  # other arithmetic, with the same lessons
        facts, _ = container.unpack("agent", (folder / f"{name}.agent").read_bytes(), "")
        lessons = facts["counts"]["learned"] + facts["counts"]["defaulted"]
        assert (agent.state.clock, agent.state.observations) == (facts["learned"], lessons)
        return
    same(folder, name, agent.state, kept(folder, name)["state"])


@pytest.mark.parametrize("folder", FOLDERS, ids=[folder.name for folder in FOLDERS])
def test_sums_are_the_state_they_were(folder):
    total = dw.Sums.from_bytes((folder / "values.sums").read_bytes())
    same(folder, "values", total.state(keep.agents()["values"].policy), kept(folder, "values")["sums"])
