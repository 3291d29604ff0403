"""`driftwise import`: a log becomes the rows of a stream, as if the stream had made them; on both stores, atomic."""

import os
import signal
from contextlib import closing

import numpy as np
import pytest

import driftwise as dw
from driftwise import cli
from driftwise.errors import BadInput
from driftwise.service.core.verify import verify
from driftwise.service.operate.export import export
from driftwise.service.operate.importing import import_log
from driftwise.service.stores.opening import open_store
from driftwise.service.stores.sqlite import SQLiteStore
from driftwise.tables.logs import Log, MemoryPart, read_log
from service.living import ARMS, living

CASES = {
    "live": {"epsilon": 0.2},
    "holdback": {"mode": "holdback", "holdback": 0.4, "baseline": "uniform", "epsilon": 0.1},
    "shadow": {"mode": "shadow"},
    "wall": {"clock": "wall", "half_life": "100s", "tick": 1.0, "expire_after": "20s", "default_reward": 0.0},
}


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def db(request, tmp_path):
    return tmp_path / "b.db" if request.param == "sqlite" else request.getfixturevalue("database")


def live(path, count=300, name="home", **changes):
    """A stream that decides and learns at times in whole microseconds, a few decisions being open at any time."""
    rng, now, waiting = np.random.default_rng(3), [1_700_000_000.0], []
    with living(path, now=lambda: now[0]) as asked:
        assert asked.put(name, **changes).status_code == 201
        for number in range(count):
            now[0] = round(now[0] + float(rng.integers(1, 900_000)) / 1e6, 6)
            arms = np.round(rng.uniform(-0.7, 0.7, (int(rng.integers(2, 5)), 2)), 3).tolist()
            more = {"action": int(rng.integers(len(arms)))} if changes.get("mode") == "shadow" else {}
            more |= {} if number % 3 else {"items": [f"i{place}" for place in range(len(arms))]}
            assert asked.decide(f"d{number}", arms=arms, stream=name, **more).status_code == 200
            waiting.append(f"d{number}")
            rng.shuffle(waiting)
            while len(waiting) > 4 or (waiting and rng.random() < 0.5):
                id = waiting.pop()
                if rng.random() < 0.9:
                    asked.reward(id, float(rng.integers(2)), stream=name)
        return asked.stream(name)


def rows(db, name):
    with closing(open_store(db, writes=False)) as store:
        number = {row.name: row.id for row in store.streams()}[name]
        rewards = [one._replace(stream=0) for one in store.rewards(number)]
        kept = [one._replace(stream=0, arm_set=None, unit=None) for one in store.decisions(number)]
        return sorted(kept, key=lambda one: one.seq), rewards, store.digests(number, 1)


@pytest.mark.parametrize("case", CASES)
def test_an_imported_stream_has_the_rows_and_the_state_of_the_one_that_lived_them(db, tmp_path, case):
    before = live(tmp_path / "a.db", **CASES[case])
    export(tmp_path / "a.db", tmp_path / "log")
    with living(db, now=lambda: 1_700_009_000.0) as asked:
        asked.put("copy", **CASES[case])
    with pytest.raises(SystemExit) as ended:
        cli.main(["import", str(db), "copy", str(tmp_path / "log")])
    assert ended.value.code == 0
    theirs, ours = rows(tmp_path / "a.db", "home"), rows(db, "copy")
    assert len(ours[0]) == 300 and len(ours[1]) > 200 and ours == theirs
    (found,) = verify(db)
    assert not found.differs and found.digest == before["digest"]
    with living(db, now=lambda: 1_700_000_001.0) as asked:  # and it continues as the other would
        after = asked.stream("copy")
        assert (after["digest"], after["state_seq"]) == (before["digest"], before["state_seq"])
        assert after["counts"]["decided"] == 300
        told = asked.decide("next", arms=ARMS, stream="copy", **({"action": 0} if case == "shadow" else {})).json()
        assert told["seq"] > 300
    assert not [one for found in verify(db) for one in found.differs]


def test_the_log_of_an_agent_that_counts_rewards_becomes_a_stream(tmp_path):
    agent = dw.Agent(dw.make("OFUL", dim=2, horizon=1000), rewards=(0, 1), clock="rewards", half_life=50, epsilon=0.1)
    with agent.log_to(tmp_path / "log", arms=True):
        for number in range(100):
            made = agent.decide(ARMS, id=f"a{number}", now=1e9 + number)
            agent.reward(made.id, number % 2, now=1e9 + number)
    with living(tmp_path / "b.db") as asked:
        asked.put(epsilon=0.1)
    found = import_log(tmp_path / "b.db", "home", tmp_path / "log")
    assert (found.decisions, found.rewards) == (100, 100)
    assert not verify(tmp_path / "b.db")[0].differs


@pytest.mark.parametrize("column, row, value, wanted", (
    ("reward", 7, 1.5, "a reward from 0 to 1"), ("score", 11, 0.125, "can be recomputed"), ("reward_seq", 5, 1, "rise"),
    ("policy", -1, "another", "newest decision the stream's policy made"),
    ("arm", 2, 9, "n - 1"), ("born", 4, -3, "that of the decision"),
    ("state_seq", 6, 200, "the learned rewards so far"), ("x", 8, 0.5, "the vector of the arm"),
))  # fmt: skip
def test_a_log_with_an_error_names_the_row_and_imports_nothing(lived, tmp_path, column, row, value, wanted):
    log, made = lived
    (batch,) = log.batches(log.columns)
    columns = {name: getattr(batch, name) for name in log.columns}
    changed = columns[column].copy() if isinstance(columns[column], np.ndarray) else list(columns[column])
    row = int(np.argmax(batch.at)) if row < 0 else row
    changed[row] = value
    wrong = Log([MemoryPart({**columns, column: changed})])
    with living(tmp_path / "b.db") as asked:
        asked.put(**CASES["live"])
    with pytest.raises(BadInput, match=f"{wanted}.*row {row},"):
        import_log(tmp_path / "b.db", "home", wrong)
    assert rows(tmp_path / "b.db", "home") == ([], [], {})
    assert import_log(tmp_path / "b.db", "home", log).digest == made["digest"]


@pytest.fixture(scope="module")
def lived(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lived")
    made = live(folder / "a.db", 60, **CASES["live"])
    export(folder / "a.db", folder / "log")
    return read_log(folder / "log"), made


def test_a_stream_that_has_decided_or_is_served_or_is_another_is_refused(lived, tmp_path):
    log, _ = lived
    with living(tmp_path / "b.db") as asked:
        asked.put(**CASES["live"])
        with pytest.raises(BadInput, match="db:"):
            import_log(tmp_path / "b.db", "home", log)
        asked.put("seed", **{**CASES["live"], "seed": 5})
    with pytest.raises(BadInput, match="can be recomputed"):
        import_log(tmp_path / "b.db", "seed", log)
    with pytest.raises(BadInput, match="stream"):
        import_log(tmp_path / "b.db", "other", log)
    import_log(tmp_path / "b.db", "home", log)
    with pytest.raises(BadInput, match="which has decisions"):
        import_log(tmp_path / "b.db", "home", log)


def test_a_process_that_is_killed_imports_nothing(lived, tmp_path, monkeypatch):
    log, made = lived
    with living(tmp_path / "b.db") as asked:
        asked.put(**CASES["live"])
    if not (child := os.fork()):
        begin = SQLiteStore.begin

        def small(self):
            self.run("PRAGMA cache_size=1")  # so that rows reach the log before they are committed
            begin(self)

        monkeypatch.setattr(SQLiteStore, "begin", small)
        monkeypatch.setattr(SQLiteStore, "commit", lambda self: os.kill(os.getpid(), signal.SIGKILL))
        import_log(tmp_path / "b.db", "home", log)
        os._exit(0)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert (tmp_path / "b.db-wal").stat().st_size > 20_000
    assert rows(tmp_path / "b.db", "home") == ([], [], {})
    assert import_log(tmp_path / "b.db", "home", log).digest == made["digest"]


def test_a_log_that_begins_after_a_reset_is_imported_by_its_own_numbers(tmp_path):
    now = [1e9]
    with living(tmp_path / "a.db", now=lambda: now[0]) as asked:
        asked.put()
        for number in range(40):
            now[0] += 1.0
            if number == 20:
                asked.ask("POST", "home/reset")
            asked.decide(f"d{number}")
            asked.reward(f"d{number}", number % 2)
        asked.put("copy")
        before = asked.stream()
    export(tmp_path / "a.db", tmp_path / "log", "home")
    assert import_log(tmp_path / "a.db", "copy", tmp_path / "log").digest == before["digest"]
    with living(tmp_path / "a.db", now=lambda: now[0]) as asked:
        assert asked.stream("copy")["counts"] == {**before["counts"], "decided": 20, "learned": 20}
        assert asked.decide("next", stream="copy").json()["seq"] == 41
    assert not [one for found in verify(tmp_path / "a.db") for one in found.differs]


def test_what_was_sent_and_not_learned_survives_a_move(db, tmp_path):
    """Late rewards, those of a fallback and of units that do not teach: their rows, their units, and their counts."""
    settings = {"mode": "holdback", "keep_out": 0.3, "expire_after": 8}
    with living(tmp_path / "a.db", now=lambda: 1_700_000_000.0) as asked:
        asked.put(**settings)
        for number in range(40):
            if number in (10, 20):
                asked.ask("POST", f"home/{'pause' if number == 10 else 'resume'}", json={"fallback": 1})
            assert asked.decide(f"d{number}", unit=f"u{number % 7}").status_code == 200
            if number % 4:
                assert asked.reward(f"d{number}", number % 2).status_code == 200
        verdicts = {asked.reward(f"d{number}", 1.0).json()["verdict"] for number in (0, 4, 12)}
        before = asked.stream()
        assert before["counts"]["kept"] > 9 and before["counts"]["late"] > 0 and verdicts >= {"late"}
    export(tmp_path / "a.db", tmp_path / "log", format="jsonl")
    with living(db) as asked:
        asked.put("copy", **settings)
    assert import_log(db, "copy", tmp_path / "log").digest == before["digest"]

    def outcome(path, name):
        decisions, rewards, _ = rows(path, name)
        with closing(open_store(path, writes=False)) as store:
            units = [one.unit for one in store.decisions(1)]
        return decisions, [one._replace(tick=0) for one in rewards], sorted(units)

    theirs, ours = outcome(tmp_path / "a.db", "home"), outcome(db, "copy")
    assert ours[1:] == theirs[1:] and [one.id for one in ours[0]] == [one.id for one in theirs[0]]
    with living(db, now=lambda: 1_700_000_000.0) as asked:
        assert asked.stream("copy")["counts"] == before["counts"]
        assert asked.ask("POST", "copy/forget", json={"unit": "u3"}).json()["forgotten"] == 6
    (found,) = verify(db)
    assert not found.differs


def test_a_unit_is_kept_and_forgotten_in_every_mode(tmp_path):
    with living(tmp_path / "a.db") as asked:
        for name, more in (("live", {}), ("shadow", {"action": 1}), ("holdback", {})):
            asked.put(name, mode=name)
            assert asked.decide("a", stream=name, unit="u", **more).status_code == 200
            asked.ask("POST", f"{name}/pause", json={"fallback": 0})
            assert asked.decide("b", stream=name, unit="u", **more).status_code == 200
            assert asked.ask("POST", f"{name}/forget", json={"unit": "u"}).json() == {"forgotten": 2}
