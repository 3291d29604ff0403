"""An agent's log: a row for every closed decision. A new agent that learns it equals the one that wrote it."""

import errno
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

import driftwise as dw
from agent.living import linear, unit_arms
from driftwise.tables import check_log, read_log
from driftwise.tables.write import LogRow, Writer
from refusing import refused

CLOCKS = {
    "rounds": {"clock": "rounds", "expire_after": 9, "default_reward": 0.25},
    "wall": {"clock": "wall", "tick": 7.0, "expire_after": 120.0, "default_reward": 0.1},
    "rewards": {"clock": "rewards", "expire_after": 5},
}


def lived(agent, rounds, seed=0, dim=3):
    """Rounds with rewards that are late, out of order, lost or cancelled, and arms that are forbidden now and then."""
    chance, waiting = np.random.default_rng(seed), []
    for t in range(rounds):
        arms, now = unit_arms(6, dim, 100 * seed + t), 10.0 * t
        waiting.append(agent.decide(arms, list("abcdef"), allowed=[0, 2, 5] if t % 5 == 0 else None, now=now))
        while waiting and (agent._parts.alone or chance.random() < 0.6):
            one, fate = waiting.pop(int(chance.integers(len(waiting)))), chance.random()
            if fate < 0.1 and one.id in agent._parts.book.open:
                agent.cancel(one.id)
            elif fate < 0.8 or agent._parts.alone:
                agent.reward(one.id, float(chance.random()), now=now + 3.0)
    return agent


def agent_of(policy=None, **options):
    return dw.Agent(policy or linear(dim=3), rewards=(0, 1), epsilon=0.1, **options)


@pytest.mark.parametrize("format", ["parquet", "jsonl"])
@pytest.mark.parametrize("clock", list(CLOCKS))
def test_a_log_folded_is_having_been_there_bit_for_bit(clock, format, tmp_path):
    agent, twin = agent_of(**CLOCKS[clock]), agent_of(**CLOCKS[clock])
    with agent.log_to(tmp_path, format=format, rows=37):
        lived(agent, 200)
    log = check_log(tmp_path)
    counts = agent.counts
    assert log.rows == sum(counts[name] for name in ("learned", "defaulted", "expired", "cancelled"))
    assert counts["defaulted"] + counts["expired"] > 20 and counts["cancelled"] > 5 and len(log.parts) > 3
    assert twin.learn_log(tmp_path) == counts["learned"] + counts["defaulted"]
    assert twin.state.to_bytes() == agent.state.to_bytes()
    assert str(twin.drift()) == str(agent.drift())
    assert {**twin.counts, "open": 0, "decided": 0, "explored": 0, "late": 0} == {
        **counts, "open": 0, "decided": 0, "explored": 0, "late": 0}
    assert dw.Agent.from_bytes(twin.to_bytes()).to_bytes() == twin.to_bytes()


ROWS = {row["name"]: {} for row in dw.catalogue()}
ROWS |= {
    "Auto for clicks": {"name": "Auto", "link": "logistic"}, "a window": {"name": "OFUL", "memory": dw.Window(15)},
    "restarts": {"name": "OFUL", "memory": dw.Restart(12)},
}  # fmt: skip


@pytest.mark.parametrize("row", list(ROWS))
def test_every_row_is_folded_to_the_bits_of_having_been_there(row, tmp_path):
    asked = {"name": row, "dim": 3, "horizon": 300, "path_length": 1.5, "changes": 2, **ROWS[row]}
    agent, twin = (agent_of(dw.make(**asked)) for _ in range(2))
    with agent.log_to(tmp_path):
        lived(agent, 40)
    assert twin.learn_log(tmp_path) == agent.counts["learned"] > 15
    assert twin.state.to_bytes() == agent.state.to_bytes()


def test_a_fold_in_another_order_would_be_found_out(tmp_path):
    """The test has power: two swapped lessons give other bits, and such a log is refused."""
    agent, twin = agent_of(), agent_of()
    with agent.log_to(tmp_path):
        lived(agent, 100)
    columns = ("x", "reward", "reward_seq", "reward_tick", "born")
    (batch,) = read_log(tmp_path).batches(columns)
    lessons = np.flatnonzero(~np.isnan(batch.reward))
    order = lessons.copy()
    order[[10, 11]] = order[[11, 10]]
    swapped = {name: getattr(batch, name)[order] for name in columns}
    before = twin.to_bytes()
    with refused("log", "reward_seq", "sort"):
        twin.learn_log(swapped)
    assert twin.to_bytes() == before
    twin.learn_log({**swapped, **{name: getattr(batch, name)[lessons] for name in ("reward_seq", "reward_tick")},
                    "born": np.minimum(swapped["born"], batch.reward_tick[lessons])})
    assert twin.state.to_bytes() != agent.state.to_bytes()


def test_a_snapshot_and_the_log_since_make_the_agent_that_wrote_both(tmp_path):
    agent = agent_of(expire_after=9)
    log = agent.log_to(tmp_path / "log", rows=20)
    lived(agent, 80)
    agent.save(tmp_path / "agent")  # flushes the log, so the log is never behind
    lived(agent, 80, seed=1)
    log.close()
    twin = dw.Agent.load(tmp_path / "agent")
    with refused("path", "learn_log"):
        twin.log_to(tmp_path / "log")
    learned = agent.counts["learned"] - twin.counts["learned"]
    assert learned > 20 and twin.learn_log(tmp_path / "log") == learned
    assert twin.state.to_bytes() == agent.state.to_bytes()
    assert twin.learn_log(tmp_path / "log") == 0
    for name in ("learned", "expired", "cancelled"):
        assert twin.counts[name] == agent.counts[name]
    twin.log_to(tmp_path / "log").close()  # and continues where it ends


def test_a_log_that_cannot_have_been_lived_changes_nothing(tmp_path):
    good = {"x": unit_arms(6, 3, 0), "reward": np.full(6, 0.5), "reward_seq": np.arange(1, 7),
            "reward_tick": np.arange(1, 7), "born": np.array([1, 1, 1, 1, 5, 6])}  # fmt: skip
    agent = agent_of()
    before = agent.to_bytes()
    for name, row, value, word in (
        ("reward", 3, 2.0, "from 0 to 1"), ("reward_tick", 3, 1, "never fall"), ("born", 3, 9, "born"),
        ("x", 3, [3.0, 0.0, 0.0], "norm"), ("reward_seq", 3, 5, "reward_seq"), ("reward_tick", 5, 2**60, "2^53"),
    ):  # fmt: skip
        changed = good[name].copy()
        changed[row] = value
        with refused("log", word):
            agent.learn_log({**good, name: changed})
        assert agent.to_bytes() == before
    with refused("log", "gaps=True"):
        agent.learn_log({**good, "reward_seq": np.arange(5, 11)})
    with refused("log", "born"):
        agent.learn_log({name: good[name] for name in good if name != "born"})
    with refused("log", "3 numbers"):
        agent.learn_log({**good, "x": unit_arms(6, 2, 0)})
    assert agent.learn_log({**good, "reward_seq": np.arange(5, 11)}, gaps=True) == 6


def test_open_decisions_keep_what_their_rows_need_across_a_snapshot(tmp_path):
    agent = agent_of()
    arms = unit_arms(5, 3, 1)
    with agent.log_to(tmp_path / "a", arms=True):
        one = agent.decide(arms, list("abcde"), allowed=[1, 3])
        data = agent.to_bytes()
    twin = dw.Agent.from_bytes(data)
    assert twin.to_bytes() == data
    with twin.log_to(tmp_path / "b", arms=True):
        twin.reward(one.id, 0.5)
    (batch,) = check_log(tmp_path / "b").batches(["arms", "arm", "candidates", "state_seq", "item", "x"])
    np.testing.assert_array_equal(batch.arms[0], arms[[1, 3]])
    assert batch.candidates[0] == ["b", "d"] and batch.state_seq[0] == 0
    assert batch.item[0] == batch.candidates[0][batch.arm[0]]
    np.testing.assert_array_equal(batch.x[0], batch.arms[0][batch.arm[0]])


def test_an_agent_without_log_and_features_has_the_bytes_it_always_had(tmp_path):
    agent = lived(agent_of(), 30)
    data = agent.to_bytes()
    assert b'"features"' not in data and b'"logged"' not in data and b'"items"' not in data
    agent.log_to(tmp_path).close()
    assert agent.to_bytes() == data


class Popular:
    """A policy of the user's own, which uses the index of the arm."""

    dim = 3

    def start(self, seed=0):
        return [0.0] * 6

    def choose(self, state, arms):
        return max(range(len(arms)), key=lambda arm: state[arm])

    def learn(self, state, arms, arm, reward):
        state[arm] += reward - 0.4


def test_a_policy_of_ones_own_is_taught_with_all_arms(tmp_path):
    agent, twin = agent_of(Popular()), agent_of(Popular())
    with agent.log_to(tmp_path / "all", arms=True):
        lived(agent, 60)
    twin.learn_log(tmp_path / "all")
    assert twin.state == agent.state and any(agent.state)
    with agent.log_to(tmp_path / "none"):
        lived(agent, 5)
    with refused("log", "arms"):
        twin.learn_log(tmp_path / "none")


def test_a_log_has_the_arms_of_ones_own_decisions_that_were_made_before_it(tmp_path):
    agent, twin = agent_of(Popular()), agent_of(Popular())
    arms = unit_arms(5, 3, 1)
    early = [agent.decide(arms, allowed=allowed).id for allowed in ([1, 3], [3, 4], None)]
    with agent.log_to(tmp_path / "log", arms=True):
        for id in early:
            agent.reward(id, 1.0)
    (batch,) = check_log(tmp_path / "log").batches(["arms", "arm", "n", "x"])
    assert batch.n.tolist() == [len(batch.arms[row]) for row in range(3)] == [2, 2, 5]
    for row, arm in enumerate(batch.arm):
        np.testing.assert_array_equal(batch.x[row], batch.arms[row][arm])
    twin.learn_log(tmp_path / "log")
    assert twin.state == agent.state and any(agent.state)


def test_a_log_says_no_place_of_a_decision_made_before_it(tmp_path):
    """The place among all arms was taken for that among the allowed ones."""
    agent, dear = dw.Agent(linear(dim=3), rewards=(0, 1)), [0.0, 0.0, 0.0, 9.0]
    early = agent.decide(np.ones((4, 3)) / 2, allowed=[1, 3], cost=dear)
    with agent.log_to(tmp_path / "log"):
        late = agent.decide(np.ones((4, 3)) / 2, allowed=[1, 3], cost=dear)
        agent.reward_many([(early.id, 1.0), (late.id, 1.0)])
    (batch,) = check_log(tmp_path / "log").batches(["arm"])
    assert (early.arm, late.arm, batch.arm.tolist()) == (1, 1, [-1, 0])


KILLED = """
import sys, numpy as np, driftwise as dw
agent = dw.Agent(dw.LinearUCB(dim=3, memory=dw.Fade(0.1), lam=1.0, delta=0.1), rewards=(0, 1))
log = agent.log_to(sys.argv[1], rows=25, format=sys.argv[2])
arms = np.eye(3)
while True:
    agent.reward(agent.decide(arms).id, 0.5)
    if agent.counts["learned"] % 60 == 0:
        log.flush()
        print(agent.counts["learned"], flush=True)
"""


@pytest.mark.parametrize("format", ["parquet", pytest.param("jsonl", marks=pytest.mark.slow)])
def test_kill_9_leaves_whole_parts_with_all_that_was_flushed(format, tmp_path):
    for trial in range(3):
        folder = tmp_path / str(trial)
        words = [sys.executable, "-c", KILLED, str(folder), format]
        child = subprocess.Popen(words, stdout=subprocess.PIPE, text=True)
        said = [child.stdout.readline()]  # everything is compiled by now, and parts are written one after the other
        time.sleep(0.1 + 0.07 * trial)
        os.kill(child.pid, signal.SIGKILL)
        said += child.communicate()[0].splitlines(keepends=True)
        flushed = max(int(line) for line in said if line.endswith("\n"))
        log = check_log(folder)
        assert log.rows >= flushed > 0
        twin = dw.Agent(linear(dim=3, delta=0.1), rewards=(0, 1))
        assert twin.learn_log(folder) == log.rows
        twin.log_to(folder, format=format).close()
        assert not list(folder.glob("*.tmp"))


def test_rows_that_cannot_be_written_wait_and_are_said(tmp_path):
    agent = agent_of()
    log = agent.log_to(tmp_path / "log", format="jsonl")
    agent.reward(agent.decide(unit_arms(4, 3, 0)).id, 0.5)
    (tmp_path / "log").rmdir()
    with refused("path", "flush again"):
        log.flush()
    (tmp_path / "log").mkdir()
    log.close()
    assert read_log(tmp_path / "log").rows == 1


def test_a_second_log_and_a_path_that_is_none_are_refused(tmp_path):
    agent = agent_of()
    with agent.log_to(tmp_path / "one"):
        with refused("path", "one log"):
            agent.log_to(tmp_path / "two")
        with refused("log", "close"):
            agent.learn_log(tmp_path / "one")
    (tmp_path / "file").write_text("x")
    with refused("path"):
        agent.log_to(tmp_path / "file")
    with refused("format"):
        agent.log_to(tmp_path / "x", format="csv")
    with refused("rows"):
        agent.log_to(tmp_path / "x", rows=0)


# ------------------------------------------------------------------------------------------ one writer a folder

BESIDE = """
import sys, time
import numpy as np, driftwise as dw
agent = dw.Agent(dw.LinearUCB(dim=3, memory=dw.Fade(0.05), lam=1.0, delta=0.1), rewards=(0, 1))
for line in sys.stdin:
    try:
        log = agent.log_to(line.strip(), format="jsonl", rows=5)
        agent.reward(agent.decide(np.eye(3)).id, 0.5)
        log.flush()
        print("logs", flush=True)
    except dw.BadInput as refusal:
        print(refusal, flush=True)
"""


def lessons(folder):
    return [int(one) for batch in read_log(folder).batches(["reward_seq"]) for one in batch.reward_seq]


def test_two_agents_never_log_into_one_folder_and_the_first_loses_nothing(tmp_path):
    folder, words = tmp_path / "log", [sys.executable, "-c", BESIDE]
    with subprocess.Popen(words, stdin=-1, stdout=-1, text=True) as other:
        agent, twin = agent_of(), agent_of()
        with agent.log_to(folder, format="jsonl", rows=5) as log:
            (tmp_path / "link").symlink_to(folder)
            for t in range(40):
                agent.reward(agent.decide(unit_arms(4, 3, t)).id, 0.5)
                if t % 20 == 10:
                    print(tmp_path / "link", file=other.stdin, flush=True)
                    assert "no other agent or process" in other.stdout.readline()
            with refused("path", "no other agent", "give each its own"):
                twin.log_to(folder)
            log.flush()
            assert lessons(folder) == list(range(1, 41))
        print(tmp_path / "next", file=other.stdin, flush=True)
        assert other.stdout.readline() == "logs\n"
        with refused("path", "no other agent"):
            twin.log_to(tmp_path / "next")
        other.kill()  # and its lock is released
    twin.learn_log(tmp_path / "next", gaps=True)
    twin.log_to(tmp_path / "next").close()


def test_a_child_that_outlives_its_parent_does_not_keep_the_folder(tmp_path):
    agent = agent_of()
    log = agent.log_to(tmp_path / "log", format="jsonl")
    (reading, writing), (hearing, telling) = os.pipe(), os.pipe()
    child = os.fork()
    if child == 0:  # pragma: no cover - it only waits
        os.close(writing)
        os.write(telling, b"!")
        os.read(reading, 1)
        os._exit(0)
    os.close(reading)
    assert os.read(hearing, 1) == b"!"  # it has released what it must not keep
    os.close(hearing)
    os.close(telling)
    with refused("path", "no other agent"):
        agent_of().log_to(tmp_path / "log")
    os.close(log._writer._claim._file)  # as the end of this process would
    log._writer._claim._file = None
    agent_of().log_to(tmp_path / "log").close()
    os.close(writing)
    os.waitpid(child, 0)
    log.close()


def test_where_folders_cannot_be_locked_parts_of_two_writers_are_all_there(tmp_path, monkeypatch):
    def unable(*_):
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr("fcntl.flock", unable)
    row = LogRow(
        1, "x", None, 0.0, 1, 0, None, 1, np.ones(3), 1.0, False, 0.0, 0.0, 0.0, "p", 0, 0.5, 0.0, 1, 1, "open"
    )  # fmt: skip
    writers = [Writer(tmp_path, format="jsonl", rows=2).begin() for _ in range(2)]

    def work(writer, first):
        for number in range(first, first + 60):
            writer.add(row._replace(seq=number, reward_seq=number))
        writer.flush()

    threads = [threading.Thread(target=work, args=(one, 1 + 60 * k)) for k, one in enumerate(writers)]
    for one in threads:
        one.start()
    for one in threads:
        one.join()
    for one in writers:
        one.close()
    assert sorted(lessons(tmp_path)) == list(range(1, 121))


def test_logs_and_snapshots_are_readable_by_their_owner_alone(tmp_path):
    before = os.umask(0)
    try:
        agent = agent_of()
        with agent.log_to(tmp_path / "log"):
            agent.reward(agent.decide(unit_arms(4, 3, 0)).id, 0.5)
        agent.save(tmp_path / "agent.dw")
        made = [*(tmp_path / "log").iterdir(), tmp_path / "agent.dw"]
        assert [one.stat().st_mode & 0o777 for one in made] == [0o600] * 2
        (tmp_path / "agent.dw").chmod(0o644)  # a mode that the owner set is kept
        agent.save(tmp_path / "agent.dw")
        assert (tmp_path / "agent.dw").stat().st_mode & 0o777 == 0o644
    finally:
        os.umask(before)


@pytest.mark.parametrize("seq", [2**53, 2**63 - 1])
def test_a_log_whose_decisions_have_impossible_numbers_is_refused(seq):
    agent = agent_of()
    before = agent.to_bytes()
    log = {"seq": [seq], "x": [[0.6, 0.0, 0.8]], "reward": [1.0], "reward_seq": [1], "reward_tick": [1], "born": [1]}
    with refused("log", "seq"):
        agent.learn_log(log)
    assert agent.to_bytes() == before
