"""The requests of one caller harm no other caller, no other stream and no later start."""

import gc
import os
import socket
import subprocess
import sys
import tracemalloc
from types import SimpleNamespace

import msgspec
import pytest

from driftwise import cli
from driftwise.errors import BadInput
from driftwise.service.core.offers import Offers
from driftwise.service.core.setup import setup
from driftwise.service.core.verify import verify
from driftwise.service.stores.sqlite import SQLiteStore
from driftwise.service.wire.protocol import MOST_NUMBERS, DecideBody, Refusal, StreamBody
from service.living import BODY, living
from service.test_access import stored


@pytest.fixture(params=["sqlite", "postgres"])
def db(request, tmp_path):
    return stored(request.param, request, tmp_path)


def test_streams_of_two_dimensions_whose_arms_are_the_same_bytes_stay_apart(db):
    with living(db) as asked:
        assert asked.put("flat").status_code == 201
        assert asked.put("wide", policy={"name": "OFUL", "dim": 4, "horizon": 1000}).status_code == 201
        asked.decide("x", [[0.5, 0.0], [0.0, 0.5]], "flat")
        asked.decide("y", [[0.5, 0.0, 0.0, 0.5]], "wide")
        assert asked.ask("GET", "wide/explain/y").json()["recomputed"] is True
    with living(db) as asked:  # nothing is in memory: the arms come from the store
        assert asked.reward("y", 1.0, "wide").json()["verdict"] == "learned"
        assert asked.reward("x", 1.0, "flat").json()["verdict"] == "learned"
    assert [found.differs for found in verify(db)] == [[], []]


@pytest.mark.parametrize("numbers", [{"L": 1e308}, {"lam": 5e-324}, {"R": 1e308}])
def test_a_policy_whose_scores_are_not_finite_decides_nothing_and_the_database_opens_again(tmp_path, numbers):
    with living(tmp_path / "a.db") as asked:
        assert asked.put("good").status_code == 201
        assert asked.put("bad", policy={"name": "OFUL", "dim": 2, "horizon": 1000, **numbers}).status_code == 201
        answer = asked.decide("x", stream="bad")
        assert (answer.status_code, answer.json()["field"]) == (422, "policy")
        assert asked.decide("x", stream="good").status_code == 200
    with living(tmp_path / "a.db") as asked:
        assert asked.stream("bad")["counts"]["decided"] == 0
    assert not any(found.differs for found in verify(tmp_path / "a.db"))


def test_items_that_would_be_too_many_numbers_are_refused_before_room_is_made_for_them():
    class Wide:
        def context(self, given):
            raise AssertionError("the rows were begun")

    offers = Offers(SimpleNamespace(dim=MOST_NUMBERS // 100), Wide())
    with pytest.raises(BadInput, match="fewer arms"):
        offers.offer(DecideBody(context={}, items=["a"] * 101))


def test_features_wider_than_the_policy_are_refused_before_room_is_made_for_them():
    hashed = [["user", "hashed", {"width": 1024}]]  # a million crossed features, not more in case this fails
    wide = {"context": hashed, "item": hashed,
            "cross": [["user", "user"]], "blocks": ["a"], "intercept": True, "L": 1.0}  # fmt: skip
    tracemalloc.start()
    try:
        with pytest.raises(BadInput, match="dimension 2"):
            setup(msgspec.convert({**BODY, "features": wide}, StreamBody))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_a_page_that_cannot_be_computed_is_a_refusal_and_a_line_in_the_log(tmp_path):
    with living(tmp_path / "a.db") as asked:
        asked.put(policy={"name": "OFUL", "dim": 2, "horizon": 1000, "L": 5e-324})  # the drift meter squares it
        asked.decide("x", [[5e-324, 0.0], [0.0, 5e-324]])
        asked.reward("x", 1.0)
        answer = asked.get("/streams/home")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert "an internal error" in answer.text
        assert '"event":"internal_error"' in asked.log.getvalue()
        assert asked.get("/").status_code == 200


@pytest.mark.parametrize("made_up", ["%C2%9B31m", "%1b%5B2J", "%E2%80%AE", "x" * 65, "a%20b"])
def test_a_log_has_no_name_that_a_caller_made_up(tmp_path, made_up):
    with living(tmp_path / "a.db") as asked:
        for path in (f"/v1/streams/{made_up}", f"/v1/streams/home/{made_up}", f"/streams/{made_up}"):
            asked.get(path)
            asked.wait(asked.client.get(path, headers={"host": "evil"}))
        lines = asked.log.getvalue()
    assert '"status":404' in lines and '"status":421' in lines
    assert lines.isascii() and "\\u" not in lines and "x" * 65 not in lines and "a b" not in lines


@pytest.mark.parametrize("path", ["v1/streams/none", "v1/streams/none/explain/x", "streams/none"])
def test_a_refused_request_leaves_nothing_for_the_garbage_collector(tmp_path, path):
    """The garbage collector of a server runs rarely. A refusal that keeps the body alive would cost 100 MB a second,
    without a key."""
    with living(tmp_path / "a.db") as asked:
        gc.collect()
        gc.disable()
        try:
            assert asked.get(f"/{path}").status_code == 404
            assert asked.get(f"/{path}").status_code == 404
            assert not [one for one in gc.get_objects() if isinstance(one, Refusal)]
        finally:
            gc.enable()


def test_a_database_that_does_not_open_now_is_503_and_names_no_path(tmp_path, monkeypatch):
    with living(tmp_path / "a.db") as asked:
        asked.put()
        asked.decide("x")

        def exhausted(self, writes, pages):
            wanted = "a database that can be opened"
            raise BadInput("db", f"{self.path}: unable to open database file", wanted, "pass another")

        monkeypatch.setattr(SQLiteStore, "_open", exhausted)
        for path in ("/v1/streams/home/explain/x", "/streams/home", "/streams/home/decisions/x"):
            answer = asked.get(path)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            assert str(tmp_path) not in answer.text
        monkeypatch.undo()
        assert asked.ask("GET", "home/explain/x").json()["recomputed"] is True


def test_no_file_is_opened_in_the_place_of_a_closed_stdin_stdout_or_stderr(tmp_path):
    child = os.fork()
    if not child:
        for number in (0, 1, 2):
            os.close(number)
        cli._hold_standard_files()
        os._exit(os.open(tmp_path / "a.db", os.O_CREAT | os.O_RDWR) <= 2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_a_port_that_another_process_has_is_a_sentence_and_not_the_code_of_a_taken_database(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        words = ["serve", "--db", str(tmp_path / "a.db"), "--port", str(port)]
        found = subprocess.run([sys.executable, "-m", "driftwise.cli", *words], capture_output=True, text=True)
    assert found.returncode == 2 and "driftwise: host: wanted an address" in found.stderr and str(port) in found.stderr
    assert '"event":"serving"' not in found.stderr
