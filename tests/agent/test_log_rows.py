"""The values that a row of a log may have, rows that cannot be written, and a full disk."""

import datetime
import decimal
import errno
import shutil
import subprocess
import sys

import numpy as np
import pytest

import driftwise as dw
from agent.living import linear, unit_arms
from driftwise._internal import container
from driftwise.tables import check_log, read_log, write
from refusing import refused

ARMS = unit_arms(3, 3, 0)
HALF = "\ud83d"  # half of an emoji
SPEC = dw.Features(
    context={"town": dw.Features.levels(["x", "y"]), "hour": dw.Features.number(12, 6)},
    item={"kind": dw.Features.levels(["new", "old"])}, blocks=["a"],
)  # fmt: skip


def agent_of(**options):
    return dw.Agent(linear(dim=3), rewards=(0, 1), **options)


def told_of(**options):
    return dw.Agent(linear(dim=SPEC.dim), rewards=(0, 1), features=SPEC, **options)


@pytest.mark.parametrize("bad", [HALF, f"two words {HALF}", np.str_(HALF)], ids=["half", "words", "numpy"])
def test_a_lone_surrogate_is_refused_at_the_border_and_changes_nothing(bad, tmp_path):
    agent, told = agent_of(), told_of()
    calls = [
        ("items", agent, lambda: agent.decide(ARMS, ["a", bad, "c"])),
        ("id", agent, lambda: agent.decide(ARMS, id=bad)),
        ("town", told, lambda: told.decide(context={"town": bad}, items={"a": {"kind": "new"}})),
        ("items", told, lambda: told.decide(context={"town": "x"}, items={bad: {"kind": "new"}})),
        ("kind", told, lambda: told.decide(context={"town": "x"}, items={"a": {"kind": bad}})),
    ]
    with agent.log_to(tmp_path / "one"), told.log_to(tmp_path / "two"):
        for parameter, who, call in calls:
            before = who.to_bytes()
            with refused(parameter) as _:
                call()
            assert who.to_bytes() == before
    for call in (
        lambda: dw.Features.levels([bad]), lambda: dw.Features(context={bad: dw.Features.number()}, item={}),
        lambda: dw.Features(context={}, item={}, blocks=[bad]),
        lambda: dw.Features.fit([{"town": bad}], {"a": {}}),
    ):
        with pytest.raises(dw.BadInput, match="surrogate") as caught:
            call()
        str(caught.value).encode()  # the sentence itself can be printed


def test_an_item_that_a_log_cannot_name_is_refused():
    agent = agent_of()
    for bad in (10**301, -(10**5000), b"bytes", 1.5, True, datetime.date(2030, 1, 1), ["a"], {"a": 1}):
        with refused("items"):
            agent.decide(ARMS, ["a", bad, "c"])


@pytest.mark.parametrize("field", ["town", "hour"])
def test_a_context_that_a_log_cannot_hold_is_refused(field):
    told = told_of()
    for bad in (b"x", datetime.date(2030, 1, 1), {"deep": 1}, ["x"], 10**5000, object(), HALF):
        with refused(field):
            told.decide(context={field: bad}, items={"a": {"kind": "new"}})


@pytest.mark.parametrize("format", ["parquet", "jsonl"])
def test_what_is_accepted_is_written_and_read_back(format, tmp_path):
    agent, told = agent_of(), told_of()
    items = [10**300, -(2**63) - 1, "half is whole: \U0001f600"]
    with agent.log_to(tmp_path / "one", format=format):
        for item in items:
            agent.reward(agent.decide(ARMS, [item, np.int64(7), np.str_("s")], allowed=[0]).id, 1.0)
    (batch,) = check_log(tmp_path / "one").batches(["item", "candidates"])
    assert list(batch.item) == [str(item) for item in items]
    contexts = [
        {"town": True, "hour": decimal.Decimal("1.5")}, {"town": np.str_("x"), "hour": np.float32(2)},
        {"town": 2**70, "hour": float("nan")}, {}, {"town": "nul \0", "hour": 1e300},
    ]  # fmt: skip
    with told.log_to(tmp_path / "two", format=format):
        for context in contexts:
            told.reward(told.decide(context=context, items={"a": {"kind": "new"}}).id, 1.0)
    (batch,) = check_log(tmp_path / "two").batches(["context"])
    assert [one["town"] for one in batch.context] == ["true", "x", str(2**70), None, "nul \0"]
    assert [one["hour"] for one in batch.context] == [1.5, 2.0, None, None, 1e300]


def test_parts_of_other_features_in_one_folder_are_read(tmp_path):
    """The field `town` was a level and is a number now: each part has its own type."""
    told = told_of()
    with told.log_to(tmp_path):
        told.reward(told.decide(context={"town": "x"}, items={"a": {"kind": "new"}}).id, 1.0)
    spec = dw.Features(context={"town": dw.Features.number()}, item={}, blocks=[])
    other = dw.Agent(linear(dim=spec.dim), rewards=(0, 1), features=spec)
    with other.log_to(tmp_path / "other"):
        other.reward(other.decide(context={"town": 3}, items=["a"]).id, 1.0)
    shutil.copy(next((tmp_path / "other").glob("part-*")), tmp_path / "part-99999999.parquet")
    found = [one["town"] for batch in read_log(tmp_path).batches(["context"]) for one in batch.context]
    assert found == ["x", 3.0]


def failing(name):
    """An encoder that fails on the rows of two decisions, as for an unexpected value."""
    good = getattr(write, f"_{name}")

    def encode(rows, *more):
        if any(row.decision_id in ("bad", "worse") for row in rows):
            raise OverflowError("an unexpected value")
        return good(rows, *more)

    return encode


@pytest.mark.parametrize("format, name", [("parquet", "parquet"), ("jsonl", "lines")])
def test_a_row_that_cannot_be_written_stops_no_other_row(format, name, tmp_path, monkeypatch):
    agent = agent_of()
    log = agent.log_to(tmp_path / "log", format=format, rows=1000)
    monkeypatch.setattr(write, f"_{name}", failing(name))
    ids = [f"{number}" for number in range(9)]
    ids.insert(2, "bad")
    ids.insert(7, "worse")
    for id in ids:
        agent.decide(ARMS, id=id)
        agent.reward(id, 1.0)
    with pytest.warns(RuntimeWarning, match="set aside: decision 'bad': an unexpected value") as told:
        agent.save(tmp_path / "agent")  # does not raise for it
    assert len(told) == 1  # told once
    assert agent.counts["unlogged"] == 2
    assert log.status[:3] == (9, 0, 2) and "'worse'" in log.status.reason
    agent.reward(agent.decide(ARMS, id="after").id, 1.0)
    log.close()
    found = [id for batch in read_log(tmp_path / "log").batches(["decision_id"]) for id in batch.decision_id]
    assert found == [*(str(number) for number in range(9)), "after"]
    assert agent.counts["unlogged"] == 2 and dw.Agent.load(tmp_path / "agent").counts["learned"] == 11
    with refused("log", "gaps=True"):
        agent_of().learn_log(tmp_path / "log")
    assert agent_of().learn_log(tmp_path / "log", gaps=True) == 10


def test_a_full_disk_is_told_and_loses_no_row(tmp_path, monkeypatch):
    agent, kept = agent_of(), write.keep_durably
    log = agent.log_to(tmp_path / "log")

    def full(*_, **__):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(write, "keep_durably", full)
    agent.reward(agent.decide(ARMS).id, 1.0)
    with pytest.warns(RuntimeWarning, match="cannot be written, its rows wait: No space left"):
        with refused("path", "No space left", "flush again"):
            log.flush()
    with refused("path", "No space left"):
        agent.save(tmp_path / "agent")  # a snapshot must not know of lessons that its log lost
    assert not (tmp_path / "agent").exists() and log.status.waiting == 1 and agent.counts["unlogged"] == 0
    monkeypatch.setattr(write, "keep_durably", kept)
    agent.save(tmp_path / "agent")
    assert log.status == (1, 0, 0, "")
    log.close()
    assert read_log(tmp_path / "log").rows == 1


def test_a_folder_removed_while_it_is_written_says_what_to_do(tmp_path):
    agent = agent_of()
    log = agent.log_to(tmp_path / "log")
    shutil.rmtree(tmp_path / "log")
    agent.reward(agent.decide(ARMS).id, 1.0)
    with pytest.warns(RuntimeWarning), refused("path", "make the folder again; the rows are kept, flush again"):
        log.flush()
    (tmp_path / "log").mkdir()
    log.close()
    assert read_log(tmp_path / "log").rows == 1


def test_a_process_that_ends_without_close_writes_its_rows(tmp_path):
    program = f"""
import sys; sys.path.insert(0, {str(__file__).rsplit("/agent/", 1)[0]!r})
import driftwise as dw
from agent.living import linear, unit_arms
agent = dw.Agent(linear(dim=3), rewards=(0, 1))
agent.log_to({str(tmp_path)!r})
agent.reward(agent.decide(unit_arms(3, 3, 0)).id, 1.0)
"""
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0 and not ended.stderr, ended.stderr
    assert read_log(tmp_path).rows == 1


def test_a_snapshot_that_has_a_lone_surrogate_is_still_read():
    """Earlier versions accepted it: as an item of a decision and as the name and a level of an item's row."""
    told = told_of()
    told.decide(context={"town": "x"}, items={"HALF": {"kind": "HALF"}})
    head, arrays = container.unpack("agent", told.to_bytes(), "")
    for name in ("names", "items"):
        arrays[name] = np.frombuffer(arrays[name].tobytes().replace(b"HALF", rb"\ud83d"), dtype=np.uint8)
    again = dw.Agent.from_bytes(container.pack("agent", head, arrays))
    (entry,) = again._parts.book.open.values()
    assert entry.decision.item == "?" and list(again._parts.encoder.rows) == ["?"]
    assert dw.Agent.from_bytes(again.to_bytes()).to_bytes() == again.to_bytes()
