"""Logs are read equally from every format, and an error names the row and the column."""

import hashlib
import json
import random
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas
import polars
import pyarrow as pa
import pyarrow.parquet
import pytest

import driftwise as dw
from agent.living import linear, unit_arms
from driftwise.tables import Ragged, check_log, from_dsjson, from_obp, log_of, read_log
from logbooks import columns_of, held, table_of, write
from refusing import refused

FORMATS = (".parquet", ".arrow", ".feather", ".jsonl")


def gathered(log, name, rows=7):
    found = [getattr(batch, name) for batch in log.batches([name], rows=rows)]
    if isinstance(found[0], Ragged):
        return np.concatenate([one.values for one in found])
    return np.concatenate([np.asarray(one, dtype=None if name != "context" else object) for one in found])


def sources(folder):
    table = table_of(columns_of())
    yield from (write(table, folder / f"log{suffix}") for suffix in FORMATS)
    frame = polars.from_arrow(table)
    yield from (table, frame, frame.lazy(), table.to_pandas(), columns_of())
    yield pandas.DataFrame({name: list(values) for name, values in columns_of().items() if name != "arms"})


def test_every_format_and_frame_gives_the_same_columns(tmp_path):
    wanted = held()
    for source in sources(tmp_path):
        log = read_log(source)
        assert log.rows == 40 and log.dim == 3
        for name in log.columns:
            found, right = gathered(log, name), gathered(wanted, name)
            if name in ("context", "candidates", "decision_id", "item", "verdict"):
                assert found.tolist() == right.tolist(), name
            else:
                np.testing.assert_array_equal(found, right, name)
                assert found.dtype == right.dtype, name
        check_log(log)


def test_a_column_is_none_where_it_is_not_asked_for_or_absent():
    (batch,) = log_of(reward=[1.0, 2.0], seq=[1, 2]).batches(["reward", "x"])
    assert batch.x is None and batch.seq is None and batch.reward.tolist() == [1.0, 2.0]
    with refused("columns", "reward"):
        list(log_of(reward=[1.0]).batches(["rewards"]))
    with refused("log", "propensity", "for evaluation"):
        log_of(reward=[1.0]).require(["propensity"], "for evaluation")


def test_a_folder_is_its_parts_in_the_order_of_their_names_and_half_a_file_is_none(tmp_path):
    table = table_of(columns_of())
    write(table.slice(20), tmp_path / "part-2.parquet")
    write(table.slice(0, 20), tmp_path / "part-1.jsonl")
    (tmp_path / "part-3.parquet.1.tmp").write_bytes(b"half")
    log = check_log(tmp_path)
    assert [part.name for part in log.parts] == ["part-1.jsonl", "part-2.parquet"]
    assert gathered(log, "seq").tolist() == list(range(1, 41))
    for part in log.parts:
        assert part.digest() == hashlib.sha256((tmp_path / part.name).read_bytes()).hexdigest()


def test_digests_follow_what_is_held_and_not_how_it_is_cut():
    table = table_of(columns_of())
    cut = pa.concat_tables([table.slice(0, 7), table.slice(7)])
    assert read_log(cut).parts[0].digest() == read_log(table).parts[0].digest()
    assert held().parts[0].digest() == held().parts[0].digest() != held(propensity=np.full(40, 0.5)).parts[0].digest()


def test_a_last_line_without_a_line_break_is_read_and_one_that_was_cut_is_left_out_with_a_word(tmp_path):
    path = write(table_of(columns_of()), tmp_path / "log.jsonl")
    whole = path.read_bytes()
    path.write_bytes(whole.removesuffix(b"\n"))
    assert read_log(path).rows == 40 and sum(batch.rows for batch in read_log(path).batches(["x"])) == 40
    path.write_bytes(whole[:-5])
    with pytest.warns(RuntimeWarning, match="the last line is cut"):
        assert read_log(path).rows == 39
    with pytest.warns(RuntimeWarning, match=r"log\.jsonl"):
        assert sum(batch.rows for batch in read_log(path).batches(["x"])) == 39


def folded(source):
    agent = dw.Agent(linear(dim=3), rewards=(0, 1))
    agent.learn_log(source)
    return agent.state.to_bytes()


@pytest.mark.parametrize("format", ["parquet", "jsonl"])
def test_a_flipped_bit_in_a_part_that_we_wrote_is_never_another_state(tmp_path, format):
    agent, chance, told = dw.Agent(linear(dim=3), rewards=(0, 1)), random.Random(format), 0
    with agent.log_to(tmp_path, arms=True, format=format):
        for t in range(30):
            agent.reward(agent.decide(unit_arms(4, 3, t)).id, t % 3 / 2)
    (part,) = tmp_path.iterdir()
    raw, right = part.read_bytes(), agent.state.to_bytes()
    assert folded(tmp_path) == right
    for _ in range(150):
        data = bytearray(raw)
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
        part.write_bytes(data)
        try:
            assert folded(tmp_path) == right
        except dw.BadInput as error:
            told += part.name in str(error)
    assert told > 120
    part.write_bytes(data)
    for reading in (check_log, lambda log: dw.sums(log, linear(dim=3)), lambda log: list(read_log(log).batches(["x"]))):
        with refused("log"):
            reading(tmp_path)


def test_a_changed_page_of_others_is_refused_where_it_has_a_checksum_and_parts_without_are_read(tmp_path):
    table, path = table_of(columns_of()).select(["seq", "x", "reward"]), tmp_path / "log.parquet"
    for checksum in (False, True):
        pa.parquet.write_table(table, path, compression="none", use_dictionary=False, write_page_checksum=checksum)
        assert read_log(path).rows == 40 and gathered(read_log(path), "x").shape == (40, 3)
        raw = bytearray(path.read_bytes())
        raw[raw.index(columns_of()["x"][20].tobytes()) + 3] ^= 1
        path.write_bytes(raw)
        if checksum:
            with refused("log", "CRC"):
                gathered(read_log(path), "x")
        else:
            assert gathered(read_log(path), "x").shape == (40, 3)


def changed(name, row, value):
    values = columns_of()[name]
    made = values.tolist() if isinstance(values, np.ndarray) else list(values)
    made[row] = value
    return {name: made}


@pytest.mark.parametrize(
    ("name", "value", "word"),
    [
        ("propensity", 0.0, "probability"), ("propensity", 1.5, "probability"), ("propensity", "half", "number"),
        ("propensity", float("inf"), "finite"), ("arm", 4, "n - 1"), ("arm", -2, "n - 1"), ("seq", 2**64, "64 bits"),
        ("seq", 1.5, "whole"), ("seq", True, "whole"), ("n", 0, "at least 1"), ("x", [1.0, 2.0], "numbers"),
        ("x", [1.0, float("nan"), 0.0], "finite"), ("x", "abc", "vector"), ("reward", None, "verdict"),
        ("reward_seq", 1, "rise"), ("reward_seq", None, "at least 1"), ("verdict", "maybe", "one of"),
        ("verdict", None, "text"), ("decision_id", "\ud800", "UTF-8"), ("item", 7, "text"), ("at", "noon", "time"),
        ("born", 99, "after"), ("arms", [[1.0, 2.0]], "3 numbers"), ("arms", [[1.0, 2.0, 3.0]], "as n says"),
        ("candidates", ["a"], "as n says"), ("candidates", [1], "texts"), ("context", {"a": [1]}, "numbers"),
        ("explored", "no", "true"), ("seq", 3, "one row per decision"),
    ],
)  # fmt: skip
def test_the_validator_names_row_and_column(name, value, word):
    with refused("log", "row 20", f"column {name}", word) if (name, value) != ("seq", 3) else refused("log", word):
        check_log(held(**changed(name, 20, value)))


@pytest.mark.parametrize(
    ("value", "word"),
    [([1.0], "as n says"), ([0.0, float("nan")], "finite"), ([True, False], "numbers"), (0.5, "numbers")],
)
def test_costs_are_one_finite_number_per_arm(value, word):
    with refused("log", "row 20", "column costs", word):
        check_log(held(costs=[None] * 20 + [value] + [None] * 19))
    costs = [[0.5] * int(n) for n in columns_of()["n"]]
    (batch,) = check_log(held(costs=costs)).batches(["costs"])
    assert [one.tolist() for one in batch.costs] == costs


def spoiled(chance, path):
    """A good log with one defect: bytes of its file, or a value of its table."""
    data = bytearray(path.read_bytes())
    way = int(chance.integers(4))
    if way == 0:
        data = data[: int(chance.integers(len(data)))]
    elif way == 1:
        for at in chance.integers(0, len(data), int(chance.integers(1, 9))):
            data[at] = int(chance.integers(256))
    elif way == 2:
        at = int(chance.integers(len(data)))
        data[at:at] = bytes(chance.integers(0, 256, int(chance.integers(1, 20)), dtype=np.uint8))
    elif path.suffix == ".jsonl":
        lines = path.read_text().splitlines()
        at = int(chance.integers(len(lines)))
        row = json.loads(lines[at])
        row[str(chance.choice(list(row)))] = ODD[int(chance.integers(len(ODD)))]
        lines[at] = json.dumps(row)
        data = bytearray(("\n".join(lines) + "\n").encode("utf-8", "surrogatepass"))
    else:
        table = table_of(columns_of())
        name = str(chance.choice(table.column_names))
        odd = [pa.nulls(40), pa.array(["x"] * 40), pa.array([[1.0]] * 40), pa.array([2**63] * 40, pa.uint64()),
               pa.array([b"\xff"] * 40), pa.array([float("nan")] * 40), pa.array([-1] * 40)][int(chance.integers(7))]
        write(table.set_column(table.column_names.index(name), name, odd), path)
        return
    path.write_bytes(bytes(data))


ODD = (None, True, -1, 0, 1.5, 1e400, 10**40, "", "x", "\ud800", [], [[]], [1, "a"], [None], [1e308] * 3, {}, {"a": {}})


def battery(folder, count, seed):
    """How many of so many malformed logs gave a BadInput; any other exception is a failure."""
    chance, sentences, table = np.random.default_rng(seed), 0, table_of(columns_of())
    for number in range(count):
        path = write(table, folder / f"log{FORMATS[number % len(FORMATS)]}")
        spoiled(chance, path)
        refusals = [refusal for use in USES if (refusal := refused_by(use, path)) is not None]
        assert all("\n" not in text and len(text) < 500 for text in refusals)
        sentences += bool(refusals)
    return sentences


POLICY = dw.LinearUCB(dim=3, memory=dw.Fade(0.01), lam=1.0, L=10.0)


def learned(path):
    """An agent that refuses a log has learned nothing of it."""
    agent = dw.Agent(POLICY, rewards=(-10.0, 10.0))
    before = agent.state.to_bytes()
    try:
        agent.learn_log(path, gaps=True)
    except dw.BadInput:
        assert agent.state.to_bytes() == before
        raise


# All functions that read a log, each with a malformed one.
USES = (check_log, learned, lambda path: dw.sums(path, POLICY), lambda path: dw.evaluate(POLICY, path, progress=False))


def odd_log(what):
    """A good log with one thing that no agent writes."""
    columns = columns_of()
    columns["state_seq"] = np.cumsum(columns["reward_seq"] > 0) - (columns["reward_seq"] > 0)
    if what in ("seq", "decision_id"):
        columns[what] = [columns[what][3], *columns[what][1:]]
    elif what == "n":
        columns["n"] = np.where(np.arange(40) == 9, 3, 4)
        columns["arm"][9], columns["x"][9] = 1, columns["arms"][9, 1]
    elif what == "x":
        columns["x"][9] = -columns["x"][9]
    elif what == "state_seq":
        columns["state_seq"][9] = columns["reward_seq"][9]
    elif what == "state_seq, at last":
        columns["state_seq"][39] = 31
    return [log_of(**columns)] * 2 if what == "a part twice" else log_of(**columns)


# What no agent writes, the uses that can see it, and a word of the sentence.
SEEN_BY = {
    "seq": ((0, 1, 2, 3), "one row per decision"), "decision_id": ((0, 3), "one row per decision"),
    "n": ((0, 3), "as many"), "x": ((0, 3), "another vector"), "state_seq": ((0, 3), "the number of its own"),
    "state_seq, at last": ((0, 3), "the learned rewards so far"), "a part twice": ((0, 1, 2, 3), ""),
}  # fmt: skip


@pytest.mark.parametrize("what", SEEN_BY)
def test_every_reader_of_logs_refuses_what_no_agent_writes(what):
    """An agent and sums read no ids, arms or state_seq, so they do not see them."""
    readers, word = SEEN_BY[what]
    for place in readers:
        with refused("log", word):
            USES[place](odd_log(what))
    for use in USES:
        use(odd_log("nothing"))


def test_a_part_without_numbers_counts_once():
    columns = {name: columns_of()[name] for name in ("arms", "arm", "propensity", "reward")}
    with refused("log", "each part once"):
        dw.evaluate(POLICY, [log_of(**columns)] * 2, progress=False)


def test_ids_of_two_streams_may_be_equal():
    columns = columns_of()
    columns["seq"] = (columns["seq"] + 1) // 2
    columns["decision_id"] = [f"d{one}" for one in columns["seq"]]
    with refused("log", "one row per decision"):
        check_log(log_of(**columns))
    check_log(log_of(**columns, stream=["a", "b"] * 20))


def refused_by(use, path):
    try:
        use(path)
    except dw.BadInput as refusal:
        return str(refusal)
    return None


@pytest.mark.parametrize("count", [80, pytest.param(1000, marks=pytest.mark.slow)])
def test_malformed_logs_give_sentences(tmp_path, count):
    """In a separate process: a crash is a failure too. Some changed bytes are never read, so not all are refused."""
    code = f"import sys; sys.path.insert(0, 'tests'); from pathlib import Path; import test_logs as t; " \
           f"print(t.battery(Path({str(tmp_path)!r}), {count}, 5))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout) >= 0.6 * count


def test_what_is_no_log_is_said(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "log.txt").write_text("x")
    for source in (tmp_path / "empty", tmp_path / "log.txt", tmp_path / "nothing.parquet", 7, object()):
        with refused("log"):
            read_log(source)
    assert log_of(seq=pandas.Series([1, 2]), reward=polars.Series([0.5, None])).rows == 2
    with refused("log", "rows"):
        log_of(seq=[1], reward=[1.0, 2.0])
    newer = table_of(columns_of()).replace_schema_metadata({"driftwise.log": "9"})
    with refused("log", "version"):
        list(read_log(newer).batches(["x"]))


def test_docs_logs_runs_from_top_to_bottom(tmp_path, monkeypatch, capsys):
    text = (Path(__file__).resolve().parent.parent / "docs" / "logs.md").read_text(encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    space = {}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.S):
        exec(compile(block, "logs.md", "exec"), space)
    printed = capsys.readouterr().out
    assert "device=phone × genre=sport" in printed and "got 5 in row 1, column arm of memory" in printed


def test_importing_driftwise_imports_no_tables_of_others():
    code = "import sys, driftwise; print([m for m in ('pyarrow', 'narwhals', 'pandas', 'polars') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


BARE = """
import sys
sys.modules["pyarrow"] = sys.modules["narwhals"] = None  # not installed
import numpy as np, driftwise as dw
from driftwise.tables import read_log
agent = dw.Agent.for_values(2, 0, 1)
with agent.log_to(sys.argv[1]):
    agent.reward(agent.decide(np.eye(2)).id, 0.5)
assert dw.Agent.for_values(2, 0, 1).learn_log(sys.argv[1]) == 1
for ask in (lambda: agent.log_to(sys.argv[1] + "x", format="parquet"), lambda: read_log(object()),
            lambda: read_log(sys.argv[2]).rows):
    try:
        ask()
    except dw.BadInput as refusal:
        print(refusal)
"""


def test_without_pyarrow_logs_are_json_lines_and_parquet_is_a_sentence(tmp_path):
    path = write(table_of(columns_of()), tmp_path / "log.parquet")
    words = [sys.executable, "-c", BARE, str(tmp_path / "log"), str(path)]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    assert done.stdout.count("driftwise[logs]") == 3 and done.stdout.count("\n") == 3
    assert [one.suffix for one in (tmp_path / "log").iterdir()] == [".jsonl"]


def ranking(action, cost, chance, **more):
    return {
        "_label_cost": cost, "_label_probability": chance, "Timestamp": "2021-02-03T04:05:06.7Z",
        "EventId": f"e{action}{cost}", "a": [action, *(a for a in (1, 2, 3) if a != action)], "p": [chance, 0.1, 0.1],
        "c": {"User": {"age": 30, "city": "Oslo"}, "_multi": [{"_tag": "a", "i": {"genre": "x"}},
              {"i": {"genre": "y"}}, {"i": {"genre": "z"}}]}, **more,
    }  # fmt: skip


def test_dsjson_becomes_a_log(tmp_path):
    path = tmp_path / "events.dsjson"
    lines = [ranking(2, -1.0, 0.8), {"RewardValue": 1.0, "EventId": "x"}, ranking(1, 0.5, 0.25)]
    path.write_text("".join(json.dumps(one) + "\n" for one in lines))
    log, features = from_dsjson(path)
    (batch,) = check_log(log).batches(log.columns)
    assert batch.reward.tolist() == [1.0, -0.5] and batch.propensity.tolist() == [0.8, 0.25]
    assert batch.arm.tolist() == [1, 0] and batch.item[1] == "a" and batch.n.tolist() == [3, 3]
    assert set(features.context) == {"User.age", "User.city"} and set(features.item) == {"i.genre"}
    assert str(batch.at[0]).startswith("2021-02-03T04:05:06.7")
    np.testing.assert_array_equal(batch.x[0], batch.arms[0][1])
    for bad in (ranking(4, 0, 0.5), ranking(1, "x", 0.5), ranking(1, 0, 0.0), ranking(1, 0, 0.5, a=[]), [1]):
        path.write_text(json.dumps(bad) + "\n")
        with refused("path", "row 0"):
            from_dsjson(path)


def test_bandit_feedback_becomes_a_log_whose_blocks_are_actions():
    chance = np.random.default_rng(0)
    feedback = {
        "n_rounds": 20, "n_actions": 3, "context": chance.standard_normal((20, 2)), "action_context": np.eye(3),
        "action": chance.integers(0, 3, 20), "reward": chance.random(20), "pscore": np.full(20, 1 / 3),
        "position": None,
    }  # fmt: skip
    log = check_log(from_obp(feedback))
    (batch,) = log.batches(log.columns)
    assert log.dim == 9 and np.linalg.norm(batch.x, axis=1).max() == pytest.approx(1.0)
    for row, arm in enumerate(feedback["action"]):
        block = np.zeros(9)
        block[3 * arm : 3 * arm + 3] = [1.0, *feedback["context"][row]]
        np.testing.assert_allclose(batch.x[row] / batch.x[row].max(), block / block.max())
    own = from_obp(feedback, vectors=lambda context, actions: np.column_stack([actions, np.tile(context, (3, 1))]))
    assert own.dim == 5
    for name, value in (("action", np.full(20, 3)), ("reward", [1.0]), ("n_actions", 0), ("pscore", "x")):
        with refused(name):
            from_obp({**feedback, name: value})
    with refused("feedback"):
        from_obp({"context": []})
