"""The dashboard agrees with the log, is visible only with an admin key, and delays no request."""

import asyncio
import base64
import copy
import re
import signal
import sqlite3
import threading
import time
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import quote

import httpx
import numpy as np
import pytest

from colours import luminance
from driftwise.lift import Lift
from driftwise.service.core import forgetting
from driftwise.service.core.following import following
from driftwise.service.core.setup import Setup
from driftwise.service.dashboard import looking, reading
from driftwise.service.dashboard.track import Track
from driftwise.service.dashboard.web import hash_of
from driftwise.service.operate import keeping
from driftwise.service.stores.records import DecisionRow, RewardRow
from driftwise.service.stores.sqlite import SQLiteStore
from service.living import ARMS, BODY, living
from service.loading import Server
from test_browser import CHROMIUM, GROUND, QUIET

SCREENSHOTS = Path(__file__).resolve().parents[2] / "build" / "screenshots"
NAMES = ["red", "green", "<script>alert(1)</script>"]


def play(asked, rounds=240, stream="home", seed=0):
    """Decisions of units that return, most of them rewarded, some twice."""
    rng = np.random.default_rng(seed)
    for number in range(rounds):
        unit = f"u{rng.integers(30)}"
        told = asked.decide(f"d{seed}-{number}", items=NAMES, stream=stream, unit=unit).json()
        if rng.random() < 0.9:
            value = float(rng.random() < (0.7 if told["arm"] == 2 else 0.3))
            asked.reward(told["id"], value, stream=stream)
            if rng.random() < 0.1:
                asked.reward(told["id"], value, stream=stream)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """A service with data. Tests that share it do not write to it."""
    with living(tmp_path_factory.mktemp("board") / "a.db") as asked:
        assert asked.put(mode="holdback", holdback=0.4, epsilon=0.1).status_code == 201
        play(asked)
        yield asked


# ------------------------------------------------------------------------------------------ what a page says


def by_hand(path):
    """Joined rows of the first stream, by a query that is not the dashboard's."""
    with sqlite3.connect(path) as database:
        rewards = {row[0]: row[1:] for row in database.execute("SELECT event_id, value, at, verdict FROM reward")}
        found = database.execute("SELECT event_id, cohort, unit, item, at, arm FROM decision ORDER BY seq").fetchall()
    database.close()
    return [(*row, *rewards.get(row[0], (None, None, None))) for row in found]


def words(page):
    """The text of a page, as it is read without a script."""
    inside = re.sub(r"<(style|script)>.*?</\1>", " ", page, flags=re.S)
    return re.sub(r"\s+", " ", re.sub(r"<[^>]+>", " ", inside))


def test_the_numbers_of_a_page_are_those_of_the_log(home):
    page = home.get("/streams/home")
    assert page.status_code == 200
    text, rows = words(page.text), by_hand(home.service.store.path)
    came = [row for row in rows if row[6] is not None]
    assert 150 < len(came) < len(rows) == 240
    sums = {}
    for side in ("live", "baseline"):
        mine = [(row[2], row[6]) for row in came if row[1] == side]
        units = {}
        for unit, value in mine:
            units.setdefault(unit, []).append(value)
        mean = sum(value for _, value in mine) / len(mine)
        many = len(units)
        apart = sum((sum(values) - mean * len(values)) ** 2 for values in units.values())
        sums[side] = mean, apart / len(mine) ** 2 * many / (many - 1), len(mine), many
        assert 5 < many < 25 and len(mine) > many  # units do return
    live, held = sums["live"], sums["baseline"]
    low, high = map(float, re.search(r"95% interval ([-+.\d]+) to ([-+.\d]+)", text).groups())
    lift = Lift(1.0 - 0.4, (0.0, 1.0))
    lift.add([row[2] for row in came], [row[1] == "live" for row in came], [row[6] for row in came])
    look = lift.look()
    assert look.live.variance == pytest.approx(live[1]) and look.baseline.variance == pytest.approx(held[1])
    shown = look.difference if look.difference.shown else look.bounded
    assert f"{shown.value:+.3g} a decision, 95% interval" in text
    assert (low, high) == pytest.approx(shown[1:], abs=2e-3)
    assert look.difference.value == pytest.approx(live[0] - held[0])
    for name, side in (("policy", live), ("held back", held)):
        assert f"{name} {side[0]:.4g} {side[2]} {side[3]}" in text
    stream = home.service.stream("home")
    assert f"state_seq {len(came)}" in text and f"decisions {len(rows)}" in text
    assert f"open {len(rows) - len(came)}" in text
    assert f"duplicate {stream.duplicates}" in text and stream.duplicates > 5
    last = [row[3] for row in rows[-10:]]  # 24 stretches of ten
    assert f"red {100 * last.count('red') / 10:.1f}%" in page.text
    median = float(np.quantile([row[7] - row[4] for row in came], 0.5))
    assert f"median delay {median * 1e3:.3g} ms" in text
    assert re.search(r"commit p99 ≤ \d", text)


def test_the_state_over_time_is_that_which_decides_bit_for_bit(tmp_path):
    with living(tmp_path / "a.db") as asked:
        asked.put(policy={"name": "Auto", "dim": 2}, half_life=None)
        play(asked, 60)
        first = asked.get("/streams/home").text
        play(asked, 60, seed=1)
        board, stream = asked.board, asked.service.stream("home")
        until = time.monotonic() + 60.0  # a page is made again at most once per pause, and a busy machine takes longer
        while True:
            time.sleep(looking.PAUSE)
            page = asked.get("/streams/home").text
            track = board._looked["home"].track
            if track.now.seq == stream.fold.seq or time.monotonic() > until:
                break
        theta = stream.setup.policy.theta(stream.fold.states.front)
        assert track.now.seq == stream.fold.seq and track.now.theta.tobytes() == theta.tobytes()
        assert track.fold.digest() == stream.fold.digest()
        assert [one.seq for one in track.points] == list(range(1, stream.fold.seq + 1))
        assert page != first and re.search("a common level moves|no common level moves", page)
        x = int(np.argmax(np.abs(theta)))
        assert f"now x{x} {theta[x]:.4g}" in page
    with living(tmp_path / "a.db") as asked:  # and again, from what is on disk
        asked.get("/streams/home")
        found = asked.board._looked["home"].track
        assert found.fold.digest() == asked.service.stream("home").fold.digest()
        assert [one.seq for one in found.points] == [one.seq for one in track.points]
        assert all(a.theta.tobytes() == b.theta.tobytes() for a, b in zip(found.points, track.points, strict=True))


def test_a_track_is_thinned_and_starts_at_a_snapshot_when_it_is_far_behind(tmp_path):
    crowded(tmp_path / "a.db", 3000)
    with living(tmp_path / "a.db") as asked:
        stream = asked.service.stream("home")
        reader = asked.service.store.reader()
        track = Track(reader, stream.era, stream.setup, 3000)
        track.follow(reader, 3000)
        reader.close()
        seqs = [one.seq for one in track.points]
        assert 64 <= len(seqs) < 256 and seqs[0] < 60 and seqs[-1] > 2950 and seqs == sorted(set(seqs))
        assert track.fold.digest() == stream.fold.digest() and len(track.recent) == 1024
    with living(tmp_path / "a.db") as asked:  # the clean end wrote a snapshot
        asked.get("/streams/home")
        assert asked.board._looked["home"].track.now.seq == 3000


def test_decisions_from_before_a_holdback_are_not_held_against_it(tmp_path):
    """All rewards were 1 before and 0 since: counted together the policy would seem better than the baseline."""
    with living(tmp_path / "a.db") as asked:
        asked.put()
        for number in range(30):
            asked.decide(f"a{number}")
            asked.reward(f"a{number}", 1.0)
        assert asked.ask("PUT", "home/policy", json={**BODY, "mode": "holdback", "holdback": 0.5}).status_code == 200
        for number in range(30):
            asked.decide(f"b{number}")
            asked.reward(f"b{number}", float(number % 2) / 10)
        reader = asked.service.store.reader()
        stream = asked.service.stream("home")
        followed = following(stream.era, stream.setup, stream.steps)
        assert followed.follow(reader, 60)
        reader.close()
        found = followed.lift.look()
        assert found.live.rewards + found.baseline.rewards == 30 and abs(found.difference.value) < 0.1


def test_late_and_expired_are_counted(tmp_path):
    clock = [1000.0]
    with living(tmp_path / "a.db", now=lambda: clock[0]) as asked:
        asked.put(clock="wall", half_life="1h", expire_after="10m")
        for id in "abcde":
            asked.decide(id)
        clock[0] += 60.0
        asked.reward("a", 1.0)
        clock[0] += 900.0
        asked.reward("b", 1.0)
        asked.decide("f")
        page = asked.get("/streams/home").text
        text = words(page)
        assert "late 1 counted" in text and "expired 3 no reward in 10m" in text
        assert "median delay 8.5 min" in text and "1 up to 1 min, 1 up to 1 h" in page


def test_a_mean_says_of_how_many_rewards_it_is_and_a_wait_its_unit(tmp_path):
    with living(tmp_path / "a.db") as asked:
        asked.put(expire_after=10)
        for id in "abc":
            asked.decide(id)
        asked.reward("a", 1.0)
        text = words(asked.get("/streams/home").text)
        assert "Mean reward 1 over the 1 with a reward of the newest 3 decisions." in text
        assert "no reward in 10 rewards learned" in text


@pytest.mark.parametrize("origin", ["1970", "first lesson"])
def test_no_memory_is_said_to_be_longer_than_a_stream_has_learned(tmp_path, monkeypatch, origin):
    if origin == "1970":  # as streams of earlier versions start
        monkeypatch.setattr(Setup, "origin", lambda self, learned: 0)
    clock = [1_700_000_000.0]
    with living(tmp_path / "a.db", now=lambda: clock[0]) as asked:
        asked.put(clock="wall", tick="1s", policy={"name": "Auto", "dim": len(ARMS[0])}, half_life=None)
        for number in range(24):
            clock[0] += 10.0
            asked.reward(asked.decide(f"d{number}").json()["id"], 1.0)
        text = words(asked.get("/streams/home").text)
        assert "Remembers all since the start ; all since the start predicts best." in text
        assert "remembers all since the start" in text


def test_a_shadow_says_how_often_it_agrees_and_a_live_stream_what_is_missing(tmp_path):
    with living(tmp_path / "a.db") as asked:
        asked.put("s", mode="shadow")
        for number in range(8):
            asked.decide(f"d{number}", stream="s", action=0 if number % 4 else 2)
        rows = by_hand(asked.service.store.path)
        with sqlite3.connect(asked.service.store.path) as database:
            agreed = database.execute("SELECT avg(arm = proposed) FROM decision").fetchone()[0]
        database.close()
        assert len(rows) == 8 and f"{100 * agreed:.1f}% of the newest 8" in words(asked.get("/streams/s").text)
        asked.put("l")
        assert "No units are held back" in asked.get("/streams/l").text


class Checker(HTMLParser):
    """Whether tags close, and what a page would load or run."""

    def __init__(self):
        super().__init__()
        self.open, self.faults, self.outside, self.scripts, self.pictures = [], [], [], 0, []

    def handle_starttag(self, tag, attrs):
        told = dict(attrs)
        if tag not in {"meta", "link", "br", "img"}:
            self.open.append(tag)
        self.scripts += tag == "script"
        for name in ("src", "href", "srcset", "action"):
            if name in told and not (told[name].startswith("/") and not told[name].startswith("//")):
                self.outside.append(told[name])
        if "style" in told or any(name.startswith("on") for name in told):
            self.faults.append((tag, told))
        if tag == "svg":
            self.pictures.append(told.get("aria-label", ""))

    def handle_endtag(self, tag):
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}>")


@pytest.mark.parametrize("path", ["/", "/streams/home", "/streams/home/decisions/d0-3"])
def test_a_page_is_whole_in_itself_and_its_charts_are_told_in_words(home, path):
    answer = home.get(path)
    checked = Checker()
    checked.feed(answer.text)
    assert answer.status_code == 200 and not checked.open and not checked.faults
    assert checked.outside == ["data:,"] and checked.scripts == 1
    assert all(len(alt) > 3 for alt in checked.pictures)
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "http" not in policy
    for kind in ("style", "script"):
        inside = re.search(rf"<{kind}>(.*?)</{kind}>", answer.text, flags=re.S)[1]
        assert hash_of(inside) in policy
    assert answer.headers["cache-control"] == "no-store" and answer.headers["referrer-policy"] == "no-referrer"


def test_names_of_others_are_words_and_never_markup(home):
    for path in ("/streams/home", "/streams/home/decisions/d0-3"):
        page = home.get(path).text
        assert "<script>alert(1)" not in page and "&lt;script&gt;alert(1)" in page
    evil = '"><img src=x onerror=alert(1)>/../%41'
    assert home.get(f"/streams/home/decisions/{quote(evil, safe='')}").status_code == 404
    missing = home.get(f"/streams/{quote('<script>', safe='')}")
    assert missing.status_code == 404 and "<script>alert" not in missing.text


def test_ids_and_streams_with_marks_in_their_names_are_found_and_shown(tmp_path):
    evil = '<script>alert("a/b%41")</script>'
    with living(tmp_path / "a.db") as asked:
        asked.put()
        asked.decide(evil)
        # No such stream can be made. One in a database that was changed by hand must still be harmless.
        other = copy.copy(asked.service.stream("home"))
        other.row = other.row._replace(name="<script>x")
        asked.service.engine.streams["<script>x"] = other
        for path in ("/", "/streams/%3Cscript%3Ex"):
            shown = asked.get(path).text
            assert "&lt;script&gt;x" in shown and "<script>x" not in shown
        assert 'href="/streams/%3Cscript%3Ex"' in asked.get("/").text
        del asked.service.engine.streams["<script>x"]
        page = asked.get("/streams/home").text
        link = re.search(r'href="(/streams/home/decisions/[^"]+)"', page)[1]
        assert evil not in page and "alert(&quot;a/b%41" in page
        shown = asked.get(link)
        assert shown.status_code == 200 and evil not in shown.text and "recomputed to the last bit" in shown.text


def test_one_decision_is_explained_as_the_wire_explains_it(home):
    told = home.ask("GET", "home/explain/d0-200").json()
    text = words(home.get("/streams/home/decisions/d0-200").text)
    assert "recomputed to the last bit" in text and f"number {told['decision']['seq']}" in text
    for arm in told["arms"]:
        assert f"{arm['score']:.4g} {arm['mean']:.4g} {arm['bonus']:.4g}" in text
    assert "What moved the choice" in text and re.search(r"x[01] [-+][\d.e-]+", text)
    assert home.get("/streams/home/decisions/nobody").status_code == 404
    assert home.get("/streams/nobody").status_code == 404


def test_pulls_add_up_to_the_difference_of_estimates(tmp_path):
    with living(tmp_path / "a.db") as asked:
        asked.put()
        play(asked, 40)
        reader = asked.service.store.reader()
        why = looking.why(reader, 1, "d0-39")
        reader.close()
        proposed = why.row.proposed
        mean = {arm.arm: arm.mean for arm in why.told.arms}
        rival = next(arm for arm in why.told.arms if arm.arm != proposed)
        assert sum(pull for _, pull in why.pulls) == pytest.approx(mean[proposed] - mean[rival.arm], abs=1e-9)


def test_a_unit_is_known_by_a_keyed_hash_that_says_its_cohort_and_is_forgotten_with_the_rest(tmp_path):
    db = tmp_path / "a.db"
    with living(db) as asked:
        asked.put(mode="holdback", holdback=0.4)
        for number in range(40):
            asked.decide(f"d{number}", unit=f"visitor-{number % 10}")
            asked.reward(f"d{number}", 1.0)
        rows = list(asked.service.store.decisions(1))
    assert len({row.unit for row in rows}) == 10 and all(row.unit == rows[n % 10].unit for n, row in enumerate(rows))
    for row in rows:
        assert row.cohort == ("baseline" if (row.unit + 2**63) / 2**64 < 0.4 else "live")
    assert {row.cohort for row in rows} == {"live", "baseline"}
    assert b"visitor-" not in b"".join(path.read_bytes() for path in tmp_path.iterdir())
    forgetting.forget(db, time.time() + 1.0)
    with living(db) as asked:
        assert {row.unit for row in asked.service.store.decisions(1)} == {None}
        assert asked.get("/streams/home").status_code == 200
        assert "arms were forgotten" in asked.get("/streams/home/decisions/d3").text


# ------------------------------------------------------------------------------------------ what it costs


def crowded(path, many):
    """A database with so many decisions and rewards, written in one transaction."""
    with living(path) as asked:
        asked.put()
        asked.decide("first")
        asked.service.engine.streams.clear()
        store = asked.service.store
        store.begin()
        one = next(store.decisions(1))
        x = np.array(ARMS, dtype="<f8")
        rng = np.random.default_rng(0)
        arms, values = rng.integers(0, 3, many).tolist(), rng.random(many).tolist()
        kept = [DecisionRow(*one)._replace(seq=n + 1, id=f"d{n}", at=1e9 + n, arm=arms[n]) for n in range(1, many)]
        store.add_decisions(kept)
        store.add_rewards([
            RewardRow(1, n + 1, f"d{n}" if n else "first", values[n], n + 1, 1e9 + n + 5.0, "learned", n + 1, n + 1,
                      x[arms[n]].tobytes()) for n in range(many)
        ])  # fmt: skip
        store.commit()


def steps_of(path, many, monkeypatch):
    """Thousands of SQLite's steps for the decisions of a stream's page and for a decision's page, with so many rows."""
    crowded(path, many)
    counts, inside = [0], SQLiteStore.reader

    def step():
        counts[0] += 1

    def counted(self):
        reader = inside(self)
        reader._database.set_progress_handler(step, 1000)
        return reader

    monkeypatch.setattr(SQLiteStore, "reader", counted)
    with living(path) as asked:
        text = words(asked.get("/streams/home").text)
        assert f"decisions {many:,}" in text and f"newest {reading.WINDOW:,} decisions" in text
        counts[0] = 0
        assert asked.get(f"/streams/home/decisions/d{many - 10}").status_code == 200
        one, counts[0], reader = counts[0], 0, asked.service.store.reader()
        assert len(reading.newest(reader, 1, many)) == reading.WINDOW and reading.latest_decisions(reader, 1, many)
        page = counts[0]
        for statement, values in ((reading._NEWEST, (1, 0, 9)), (reading._LISTED, (1, 9, 9))):
            plan = [row[3] for row in reader.run(f"EXPLAIN QUERY PLAN {statement}", values=values)]
            assert plan and not [step for step in plan if "SCAN" in step or "TEMP" in step]
        reader.close()
    monkeypatch.undo()
    return page, one


def test_a_page_of_many_decisions_reads_the_newest_only(tmp_path, monkeypatch):
    page, one = steps_of(tmp_path / "a.db", 25_000, monkeypatch)
    more, another = steps_of(tmp_path / "b.db", 75_000, monkeypatch)
    assert page > 10 and more < 1.1 * page and another < one + 5  # thousands of steps: they do not grow with the log


def test_decisions_go_on_while_a_page_is_made(tmp_path):
    """The event loop must never wait for the thread that reads. Here the reading thread sleeps."""
    with living(tmp_path / "a.db") as asked:
        asked.put()
        board = asked.board
        inside, began, ended = board._look, threading.Event(), threading.Event()

        def slow(*given):
            began.set()
            assert ended.wait(30)
            return inside(*given)

        board._look = slow
        page = asyncio.run_coroutine_threadsafe(asked.client.get("/streams/home"), asked.loop)
        assert began.wait(30)
        assert [asked.decide(f"d{n}").status_code for n in range(20)] == [200] * 20
        assert not page.done()
        ended.set()
        assert page.result(30).status_code == 200


def test_however_many_look_the_log_is_read_once_a_second(tmp_path):
    with living(tmp_path / "a.db") as asked:
        asked.put()
        looks, inside = [], asked.board._look

        def counted(*given):
            looks.append(1)
            return inside(*given)

        asked.board._look = counted

        async def many():
            return await asyncio.gather(*(asked.client.get("/streams/home") for _ in range(20)))

        assert {answer.status_code for answer in asked.wait(many())} == {200} and len(looks) == 1


# ------------------------------------------------------------------------------------------ who may see it


def basic(key, name="anybody"):
    return {"authorization": "Basic " + base64.b64encode(f"{name}:{key}".encode()).decode()}


def test_where_there_are_keys_an_admins_is_needed(tmp_path):
    db = tmp_path / "a.db"
    with living(db) as asked:
        asked.put(), asked.put("other")
        assert asked.get("/").status_code == 200  # this machine, no keys
    admin = keeping.create_key(db, "admin", "*", "")
    one = keeping.create_key(db, "admin", "other", "")
    clerk = keeping.create_key(db, "decide,reward", "*", "")
    with living(db) as asked:

        def ask(path, headers=None):
            return asked.wait(asked.client.get(path, headers=headers))

        paths = ("/", "/streams/home", "/streams/home/decisions/x", "/events", "/streams/home/events")
        for path in paths:
            refused = ask(path)
            assert refused.status_code == 401 and refused.headers["www-authenticate"].startswith("Basic")
            assert "home" not in words(refused.text)
            assert ask(path, basic(clerk)).status_code == 403
        for headers in (basic(admin), {"authorization": f"Bearer {admin}"}):
            assert ask("/", headers).status_code == ask("/streams/home", headers).status_code == 200
        assert "other" in ask("/", basic(one)).text and "home" not in words(ask("/", basic(one)).text)
        assert ask("/streams/other", basic(one)).status_code == 200
        assert ask("/streams/home", basic(one)).status_code == 403
        for _ in range(20):
            assert ask("/").status_code == 401  # a request before the password prompt is not a wrong key
        assert ask("/", basic(admin)).status_code == 200
        for wrong in ("x", "", "é", admin[:-1], admin + "x"):
            assert ask("/", basic(wrong)).status_code == 401
        for garbage in ("Basic", "Basic !!!", "Basic " + "A" * 7, "Digest x", ""):
            assert ask("/", {"authorization": garbage}).status_code == 401
        assert ask("/", basic("x")).status_code == 429
        said = asked.log.getvalue()
        assert admin not in said and base64.b64encode(f"anybody:{admin}".encode()).decode() not in said
        assert '"route":"dashboard"' in said


# ------------------------------------------------------------------------------------------ live


@pytest.fixture
def served(tmp_path):
    server = Server(tmp_path / "a.db")
    try:
        assert server.put(mode="holdback", holdback=0.3).status_code == 201
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
        server.end()


def some(server, first, many):
    """Traffic: decisions and rewards."""
    with httpx.Client(base_url=f"{server.url}/v1/streams/home", timeout=60) as client:
        rng = np.random.default_rng(first)
        for number in range(first, first + many):
            items = ["autumn sale", "new arrivals", "for you"]
            body = {"id": f"d{number}", "arms": ARMS, "unit": f"u{number % 40}", "items": items}
            told = client.post("/decide", json=body).json()
            if rng.random() < 0.9:
                value = float(rng.random() < (0.8, 0.4, 0.2)[told["arm"]])
                client.post("/reward", json={"id": told["id"], "value": value})


def test_news_come_by_themselves_and_only_news(served):
    some(served, 0, 5)
    with httpx.stream("GET", f"{served.url}/streams/home/events", timeout=30) as events:
        assert events.headers["content-type"] == "text/event-stream"
        seen, added = [], False
        for line in events.iter_lines():
            if line.startswith("data: "):
                seen.append(line)
            if len(seen) == 7 and not added:
                added = True
                some(served, 5, 1)
            if added and any("d5" in one for one in seen[7:]):
                break
    first = [re.search(r'"id":"(\w+)"', one)[1] for one in seen[:7]]
    assert first == ["now", "reward", "drift", "shares", "coefficients", "delays", "latest"]


def test_whoever_looks_does_not_keep_a_server_from_stopping(served):
    with httpx.stream("GET", f"{served.url}/streams/home/events", timeout=600) as events:
        lines = events.iter_lines()
        next(lines)
        served.process.send_signal(signal.SIGTERM)
        list(lines)
    assert served.process.wait(100) == 0


def test_a_revoked_key_sees_nothing_more(tmp_path):
    db = tmp_path / "a.db"
    SQLiteStore(db).close()
    key = keeping.create_key(db, "admin", "*", "")
    server = Server(db)
    try:
        with httpx.stream("GET", f"{server.url}/events", headers=basic(key), timeout=30) as events:
            lines = events.iter_lines()
            next(lines)
            keeping.create_key(db, "admin", "*", "another")
            keeping.revoke_key(db, 1)
            list(lines)  # which ends; a stream of events goes on for ever
    finally:
        server.kill()


@pytest.fixture
def browser():
    if CHROMIUM is None:
        pytest.skip("the dashboard is not looked at: install chromium (apt install chromium)")
    reason = 'the dashboard is not looked at: install playwright (pip install "playwright>=1.45")'
    with pytest.importorskip("playwright.sync_api", reason=reason).sync_playwright() as play:
        started = play.chromium.launch(executable_path=CHROMIUM, args=QUIET)
        yield started
        started.close()


def test_the_dashboard_in_a_browser_during_traffic(served, browser):
    some(served, 0, 150)
    stop = threading.Event()

    def traffic():
        number = 1000
        while not stop.is_set():
            some(served, number, 5)
            number += 5

    thread = threading.Thread(target=traffic)
    thread.start()
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    try:
        for width in (1280, 360):
            for scheme in ("light", "dark"):
                context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
                page, complaints = context.new_page(), []
                page.on("console", lambda said, to=complaints: to.append(said.text) if said.type == "error" else None)
                page.on("pageerror", lambda error, to=complaints: to.append(str(error)))
                for name, path in (("all", "/"), ("stream", "/streams/home"), ("why", "/streams/home/decisions/d149")):
                    page.goto(f"{served.url}{path}")
                    assert page.evaluate("document.documentElement.scrollWidth") <= width, (name, width)
                    ground = luminance(np.array(page.evaluate(GROUND)) / 255)
                    assert ground < 0.1 if scheme == "dark" else ground > 0.9
                    page.screenshot(path=SCREENSHOTS / f"dashboard-{name}-{width}-{scheme}.png", full_page=True)
                page.goto(f"{served.url}/streams/home")
                before = page.inner_text("#now dd")
                page.evaluate("document.querySelector('#reward details').open = true")
                page.wait_for_function("was => document.querySelector('#now dd').innerText !== was", arg=before,
                                       timeout=20_000)  # fmt: skip
                page.wait_for_function("document.querySelector('#live').innerText.includes('live')")
                assert page.evaluate("document.querySelector('#reward details').open")
                assert page.evaluate("document.documentElement.scrollWidth") <= width
                # In one call: the next event may replace the parts.
                boxes = page.evaluate(
                    "Array.from(document.querySelectorAll('figure svg'), one => one.getBoundingClientRect().toJSON())"
                )
                assert boxes and all(box["width"] >= 180 and box["height"] >= 30 for box in boxes)
                assert all(box["right"] <= width for box in boxes)
                assert not complaints
                context.close()
    finally:
        stop.set()
        thread.join()


def test_without_a_script_the_page_says_the_same(served, browser):
    some(served, 0, 40)
    context = browser.new_context(viewport={"width": 360, "height": 800}, java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{served.url}/streams/home")
    assert page.inner_text("#now dd >> nth=0") == "40" and page.locator("figure svg").count() >= 4
    assert page.locator("#reward").is_visible() and page.locator("#latest a").count() == 12
    context.close()


