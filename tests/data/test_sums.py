"""A log reduced part by part equals the log folded, to 1e-12, for any division into parts; nothing counts twice."""

import itertools
import math
import re
import shutil
import sqlite3
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import driftwise as dw
from driftwise.data import parts as module
from driftwise.data.reduce import sums
from driftwise.data.sums import Sums
from driftwise.data.warehouse import sql, sums_of_row
from driftwise.tables.logs import Log, log_of
from refusing import refused

D = 3


def rows(count=200, seed=0, late=5, lost=0.1):
    """A log in the order of rewards, some late, some lost."""
    rng = np.random.default_rng(seed)
    born = np.arange(1, count + 1)
    paid_at = born + rng.integers(0, late + 1, count)
    order = np.argsort(paid_at, kind="stable")
    reward = np.where(rng.random(count) < lost, np.nan, rng.standard_normal(count))[order]
    X = rng.standard_normal((count, D))
    X /= 2.0 * np.linalg.norm(X, axis=1, keepdims=True)
    paid_at = np.where(np.isnan(reward), 0, paid_at[order])
    return {"born": born[order], "x": X[order], "reward": reward, "reward_tick": paid_at}


def cut(columns, pieces):
    edges = np.linspace(0, len(columns["born"]), pieces + 1).astype(int)
    parts = [
        log_of(**{name: value[a:b] for name, value in columns.items()}).parts[0]
        for a, b in itertools.pairwise(edges)
    ]
    return Log(parts)


def folded(policy, columns):
    """A lesson at a time, as an agent learns."""
    state = policy.start(0)
    for born, x, reward, tick in zip(*columns.values(), strict=True):
        if not math.isnan(reward):
            policy.learn(state, x[None], 0, float(reward), float(tick - state.clock), float(tick - born))
    return state


def same(a, b, within=1e-12):
    for name, group in a.groups().items():
        got = b.groups()[name]
        scale = max(1.0, float(np.abs(group[np.isfinite(group)]).max(initial=0.0)))
        np.testing.assert_allclose(got, group, rtol=0, atol=within * scale, err_msg=name)


POLICIES = [
    dw.LinearUCB(dim=D, memory=dw.Keep(), lam=1.0),
    dw.LinearUCB(dim=D, memory=dw.Fade(0.02), lam=1.0),
    dw.LinearUCB(dim=D, memory=dw.Fade(0.2), lam=1.0, two_matrix="correct"),
    dw.research.LinearSampling(dim=D, memory=dw.Fade(0.01), lam=1.0),
]


@pytest.mark.parametrize("policy", POLICIES)
@given(st.integers(1, 7), st.integers(0, 9))
def test_reducing_parts_and_adding_is_folding(policy, pieces, seed):
    columns = rows(seed=seed)
    found = sums(cut(columns, pieces), policy)
    whole = folded(policy, columns)
    same(whole, found.state(policy))
    assert found.n == whole.observations
    assert found.tick == whole.clock


def test_a_choice_on_the_sums_is_the_choice_on_the_fold():
    policy, columns = POLICIES[1], rows()
    arms = np.random.default_rng(1).standard_normal((20, D)) / 4.0
    state = sums(log_of(**columns), policy).state(policy)
    assert policy.choose(state, arms).arm == policy.choose(folded(policy, columns), arms).arm


def test_parts_in_any_order_and_ticks_brought_forward_give_the_same():
    policy, log = POLICIES[2], cut(rows(), 4)
    forward, back = sums(log, policy), sums(Log(log.parts[::-1]), policy)
    np.testing.assert_allclose(forward.G, back.G, rtol=0, atol=1e-13)
    later = sums(log, policy, tick=forward.tick + 10)
    state = forward.state(policy)
    policy.advance(state, 10.0)
    same(state, later.state(policy))


def test_nothing_is_added_twice(tmp_path):
    policy, columns = POLICIES[1], rows()
    one = sums(log_of(**columns), policy)
    with refused("sums", "count twice"):
        one + one
    part = log_of(**columns).parts[0]
    with refused("log", "count twice"):
        sums(Log([part, part]), policy)
    with refused("sums", "forget"):
        one + sums(log_of(**rows(seed=1)), POLICIES[0])


def test_a_part_that_was_reduced_before_is_not_read_again(tmp_path, monkeypatch):
    policy, log = POLICIES[1], cut(rows(), 3)
    first = sums(Log(log.parts[:2]), policy, tmp_path)
    assert len(list(tmp_path.iterdir())) == 2
    read = []
    fold = module._fold
    monkeypatch.setattr(module, "_fold", lambda *args: read.append(args[-1]) or fold(*args))
    again = sums(log, policy, tmp_path)
    assert read == [log.parts[2].digest()]
    whole = sums(log, policy)
    np.testing.assert_array_equal(again.G, whole.G)
    assert first.parts < again.parts == whole.parts
    sums(log, POLICIES[0], tmp_path)  # another memory has separate files
    assert len(list(tmp_path.iterdir())) == 6


def test_a_file_is_whole_or_absent(tmp_path, monkeypatch):
    """If the process is killed while it writes a file of sums, the file does not exist, and the next run makes it."""
    policy, log = POLICIES[1], cut(rows(), 1)
    monkeypatch.setattr("driftwise._internal.files.os.fsync", lambda handle: (_ for _ in ()).throw(KeyboardInterrupt))
    with pytest.raises(KeyboardInterrupt):
        sums(log, policy, tmp_path)
    assert list(tmp_path.iterdir()) == []
    monkeypatch.undo()
    sums(log, policy, tmp_path)
    path = next(tmp_path.iterdir())
    path.write_bytes(path.read_bytes()[:-40])  # a file that no crash of driftwise could leave is refused
    with refused("data", "made again"):
        sums(log, policy, tmp_path)


def test_sums_outlive_the_process():
    found = sums(log_of(**rows()), POLICIES[2])
    again = Sums.from_bytes(found.to_bytes())
    assert again.to_bytes() == found.to_bytes()
    same(found.state(POLICIES[2]), again.state(POLICIES[2]), 0.0)


def parquet(path, columns, group):
    pa = pytest.importorskip("pyarrow")
    vectors = pa.FixedSizeListArray.from_arrays(pa.array(columns["x"].ravel()), D)
    reward = pa.array(columns["reward"], from_pandas=True)
    table = pa.table({"born": columns["born"], "x": vectors, "reward": reward, "reward_tick": columns["reward_tick"]})
    pa.parquet.write_table(table, path, row_group_size=group)


def test_rows_older_than_forty_half_lives_are_not_read_and_it_is_said(tmp_path):
    pytest.importorskip("pyarrow.parquet")
    policy, columns = POLICIES[2], rows(1000)  # a half-life of 3 ticks
    parquet(tmp_path / "a.parquet", {name: value[:500] for name, value in columns.items()}, 50)
    parquet(tmp_path / "b.parquet", {name: value[500:] for name, value in columns.items()}, 50)
    with pytest.warns(UserWarning, match=r"\d+ rows are older than 40 half-lives"):
        found = sums(tmp_path, policy)
    whole = folded(policy, columns)
    same(whole, found.state(policy))
    with pytest.warns(UserWarning, match="older than 40"):
        alone = sums(tmp_path / "b.parquet", policy)
    same(folded(policy, {name: value[500:] for name, value in columns.items()}), alone.state(policy))


def parts_of(folder, pieces=5, seed=0):
    """A log in so many files."""
    columns = rows(1000, seed)
    for place, piece in enumerate(np.array_split(np.arange(1000), pieces)):
        parquet(folder / f"{place}.parquet", {name: value[piece] for name, value in columns.items()}, 100)
    return columns


@pytest.mark.parametrize("policy", POLICIES[:2])
def test_an_executor_finds_the_bytes_that_one_thread_does(tmp_path, policy):
    pytest.importorskip("pyarrow.parquet")
    columns = parts_of(tmp_path)
    alone = sums(tmp_path, policy)
    with ThreadPoolExecutor(2) as pool:
        found = sums(tmp_path, policy, executor=pool)
        later = sums(tmp_path, policy, tick=alone.tick + 7, executor=pool)
    assert found.to_bytes() == alone.to_bytes()
    assert later.to_bytes() == sums(tmp_path, policy, tick=alone.tick + 7).to_bytes()
    same(folded(policy, columns), found.state(policy))


def test_an_executor_reads_no_part_that_was_reduced_before(tmp_path, monkeypatch):
    pytest.importorskip("pyarrow.parquet")
    policy = POLICIES[1]
    parts_of(tmp_path)
    names = sorted(tmp_path.glob("*.parquet"))
    read, fold = [], module._fold
    monkeypatch.setattr(module, "_fold", lambda *args: read.append(args[-1]) or fold(*args))
    with ThreadPoolExecutor(2) as pool:
        sums(names[:2], policy, tmp_path / "kept", executor=pool)
        whole = sums(tmp_path, policy, tmp_path / "kept", executor=pool)
        assert len(read) == len(set(read)) == 5
        assert sums(tmp_path, policy, tmp_path / "kept").to_bytes() == whole.to_bytes()
        assert len(read) == 5
        shutil.copy(names[0], tmp_path / "again.parquet")
        with refused("log", "count twice"):
            sums(tmp_path, policy, executor=pool)
        with refused("log", "not a file"):
            sums(log_of(**rows()), policy, executor=pool)
        names[2].write_bytes(b"PAR1 no more")
        with refused("log", "2.parquet"):
            sums(names, policy, executor=pool)


def test_an_executor_leaves_out_what_is_too_old_and_says_so(tmp_path):
    pytest.importorskip("pyarrow.parquet")
    parts_of(tmp_path)
    with pytest.warns(UserWarning, match=r"\d+ rows are older") as told:
        alone = sums(tmp_path, POLICIES[2])
    with ThreadPoolExecutor(2) as pool, pytest.warns(UserWarning, match=re.escape(str(told[0].message))):
        found = sums(tmp_path, POLICIES[2], executor=pool)
    assert found.to_bytes() == alone.to_bytes()


@pytest.mark.parametrize("policy", POLICIES[:3])
def test_a_warehouse_gives_the_same_sums(policy):
    columns = rows()
    found = sums(log_of(**columns), policy)
    base = sqlite3.connect(":memory:")
    base.create_function("EXP", 1, math.exp)
    base.row_factory = sqlite3.Row
    base.execute("CREATE TABLE log (born INTEGER, reward REAL, x1 REAL, x2 REAL, x3 REAL)")
    values = [
        (int(born), None if math.isnan(reward) else reward, *map(float, x))
        for born, x, reward, _ in zip(*columns.values(), strict=True)
    ]
    base.executemany("INSERT INTO log VALUES (?, ?, ?, ?, ?)", values)
    row = base.execute(sql(policy, found.tick, element="x{i}")).fetchone()
    there = sums_of_row(policy, found.tick, dict(row), "warehouse")
    same(found.state(policy), there.state(policy), 1e-9)
    assert there.n == found.n


def test_refusals_are_sentences():
    log, fade = log_of(**rows()), POLICIES[1]
    with refused("policy", "learn the log"):
        sums(log, dw.make("Auto", dim=D))
    with refused("policy", "Keep() or Fade"):
        sums(log, dw.LinearUCB(dim=D, memory=dw.Window(50), lam=1.0))
    with refused("policy", "learn the log"):
        sums(log, dw.make("Auto", dim=D, memory=dw.Keep()))
    with refused("log", "column reward_tick"):
        sums(log_of(**{name: value for name, value in rows().items() if name != "reward_tick"}), fade)
    with refused("log", "dim"):
        sums(log, dw.LinearUCB(dim=D + 1, memory=dw.Keep(), lam=1.0))
    bad = rows()
    bad["x"] = bad["x"] * 4.0
    with refused("log", "row 0", "column x"):
        sums(log_of(**bad), fade)
    bad = rows(late=0, lost=0.0)
    bad["reward_tick"][7] -= 3
    with refused("log", "row 7", "reward_tick"):
        sums(log_of(**bad), fade)
    found = sums(log, fade)
    with refused("clock", "learn_log"):
        found.agent(fade, rewards=(-9.0, 9.0), clock="rewards")
    with refused("tick", "a later tick"):
        found.at(found.tick - 1)
    with refused("policy", "reduce the log for it"):
        found.state(POLICIES[0])


def test_the_command_reduces_and_prints_the_query(tmp_path, capsys):
    from driftwise.cli import main

    parquet(tmp_path / "log.parquet", rows(), 100)
    asked = ["sums", str(tmp_path / "log.parquet"), "--policy", "LB-WeightUCB", "--half-life", "50"]
    with pytest.raises(SystemExit, match="0"):
        main([*asked, "--out", str(tmp_path / "sums")])
    assert "effective rewards" in capsys.readouterr().out
    assert len(list((tmp_path / "sums").iterdir())) == 1
    with pytest.raises(SystemExit, match="0"):
        main([*asked, "--sql"])
    policy = dw.LinearUCB(dim=D, memory=dw.Fade(dw.convert_memory(50, "half_life", "forget")), lam=1.0)
    last = sums(log_of(**rows()), policy).tick
    assert capsys.readouterr().out.strip() == sql(policy, last)
