"""The client: one id gives one decision, whatever breaks in between."""

import re
import subprocess
import sys

import httpx
import msgspec
import pytest

import driftwise as dw
from driftwise.errors import BadInput
from driftwise.service import answers
from driftwise.service.client import Client, Refused
from driftwise.service.wire import protocol
from service.living import ARMS, BODY, Passing, living


class Cut(Passing):
    """A transport that loses some requests and some answers, and is busy at times."""

    number = 0

    def handle_request(self, request):
        self.number += 1
        if self.number % 5 == 1:
            raise httpx.ConnectError("lost on the way there")
        found = super().handle_request(request)
        if self.number % 5 == 2:
            raise httpx.ReadError("lost on the way back")
        if self.number % 5 == 3:
            return httpx.Response(503, json={"error": "busy"}, headers={"retry-after": "0"})
        return found


def test_retries_reuse_the_id_so_that_every_decision_is_made_and_learned_once(tmp_path, monkeypatch):
    monkeypatch.setattr("driftwise.service.client.time.sleep", lambda seconds: None)
    with living(tmp_path / "a.db") as asked, Client(transport=Cut(asked)) as client:
        client.put("home", **BODY)
        for number in range(20):
            found = client.decide("home", ARMS)
            assert found["seq"] == number + 1
            assert client.reward("home", found["id"], 1.0)["seq"] == number + 1
        assert client.stream("home")["counts"] == {"decided": 20, "learned": 20, "late": 0, "open": 0}
        answers = client.decide_many("home", [{"arms": ARMS}, {"arms": ARMS, "id": "b"}])
        assert answers[1]["id"] == "b" and asked.stream()["seq"] == 22
        told = client.reward_many("home", [("b", 0.5), (answers[0]["id"], 1.0)])
        assert {one["verdict"] for one in told} <= {"learned", "duplicate"} and asked.stream()["state_seq"] == 22
        assert client.explain("home", "b")["recomputed"] is True


def test_what_is_refused_says_why_and_is_not_tried_again(tmp_path):
    with living(tmp_path / "a.db") as asked:
        transport = Cut(asked)
        with Client(transport=transport) as client:
            transport.number = 3
            with pytest.raises(Refused, match="404 unknown_stream: no stream has this name") as told:
                client.decide("nowhere", ARMS)
            told = told.value
            assert (told.status, told.code, told.field) == (404, "unknown_stream", "stream") and transport.number == 4


@pytest.mark.parametrize("id", (
    "order?x", "order#x", "a/b", "a/../b", "..", ".", "%2e%2e", "%2F", "a b", "a+b", "a;b", "a&b=c", "é", "日本", "🙂",
    "\\", '"', "%", "http://evil.test/",
))  # fmt: skip
def test_an_id_is_explained_whatever_is_in_it(crowd, id):
    """Other decisions have the ids that remain if an id is not quoted."""
    client = crowd
    made = client.decide("home", ARMS, id=id)
    told = client.explain("home", id)
    assert told["decision"] == made and told["decision"]["id"] == id


@pytest.fixture(scope="module")
def crowd(tmp_path_factory):
    with living(tmp_path_factory.mktemp("client") / "a.db") as asked, Client(transport=Passing(asked)) as client:
        client.put("home", **BODY)
        for id in ("order", "b", "a", "a b c"):
            client.decide("home", ARMS, id=id)
        yield client


@pytest.mark.parametrize("name", ("home?x", "home#x", "home/reset", "home/../home", "a/b", "é", "%", "", "home/"))
def test_a_name_that_is_no_streams_asks_no_other_stream(crowd, name):
    before = crowd.stream("home")
    calls = (lambda: crowd.stream(name), lambda: crowd.decide(name, ARMS), lambda: crowd.reward(name, "b", 1.0),
             lambda: crowd.change(name, **BODY), lambda: crowd.items(name, {}), lambda: crowd.explain(name, "b"),
             lambda: crowd.decide_many(name, [{"arms": ARMS}]),
             lambda: crowd.reward_many(name, [("b", 1.0)]))  # fmt: skip
    for call in calls:
        with pytest.raises(Refused) as told:
            call()
        assert told.value.status in (404, 405, 422)
    assert crowd.stream("home") == before


def test_streams_of_dots_are_asked_by_their_names(crowd):
    for name in ("..", ".", "a.b"):
        assert crowd.put(name, **BODY)["stream"] == crowd.stream(name)["stream"] == name


def test_a_set_that_is_no_list_is_one_sentence_and_never_sent(tmp_path):
    with living(tmp_path / "a.db") as asked:
        with Client(transport=Passing(asked)) as client:
            client.put("home", **BODY)
            many = [{"arms": dw.Ball(2)}]
            for call in (lambda: client.decide("home", dw.Ball(2)), lambda: client.decide_many("home", many)):
                with pytest.raises(BadInput, match=r"arms: .*lists only, got .Ball"):
                    call()
        told = asked.decide("a", arms={"ball": 2}).json()
        assert told["field"] == "arms" and "lists" in told["hint"] and asked.stream()["seq"] == 0


def test_a_server_that_is_not_there_is_one_sentence(monkeypatch):
    monkeypatch.setenv("DRIFTWISE_KEY", "c0ffee5ec2e7")
    with Client("http://127.0.0.1:9", tries=2) as client:
        with pytest.raises(BadInput, match="is the server up"):
            client.stream("home")
        assert "c0ffee" not in repr(client)


class Starting(httpx.BaseTransport):
    """A server that is not ready for the first requests."""

    def __init__(self, many):
        self.left = many

    def handle_request(self, request):
        self.left -= 1
        if self.left >= 0:
            told = {"error": "the server is starting", "field": "ready", "hint": "send it again"}
            return httpx.Response(503, json=told, headers={"retry-after": "1"}, request=request)
        return httpx.Response(200, json={"seq": 1}, request=request)


@pytest.fixture
def clock(monkeypatch):
    """A clock that advances only by sleeping."""
    now = [0.0]
    monkeypatch.setattr("driftwise.service.client.time.monotonic", lambda: now[0])
    monkeypatch.setattr("driftwise.service.client.time.sleep", lambda seconds: now.__setitem__(0, now[0] + seconds))
    return now


def test_a_server_that_starts_is_waited_for_and_that_is_said_once(clock, caplog):
    with Client(transport=Starting(60), tries=2) as client:
        assert client.decide("home", ARMS)["seq"] == 1 and clock[0] > 25.0
    assert [record.name for record in caplog.records] == ["driftwise.client"]
    assert "the server is starting" in caplog.text and caplog.records[0].levelname == "WARNING"


def test_a_server_that_is_never_ready_is_an_error_after_the_patience_of_the_client(clock):
    with Client(transport=Starting(10_000), patience=20.0) as client:
        with pytest.raises(Refused, match="not ready within 20 s: the server is starting") as told:
            client.reward("home", "a", 1.0)
        assert told.value.status == 503 and 20.0 <= clock[0] < 22.0


def test_a_short_wait_is_not_worth_a_warning(clock, caplog):
    with Client(transport=Starting(2)) as client:
        assert client.decide("home", ARMS)["seq"] == 1
    assert not caplog.records


PAIRS = {
    "Settings": protocol.StreamBody, "Decided": protocol.Decided, "Rewarded": protocol.Rewarded,
    "Refusal": protocol.Error, "Counts": protocol.Counts, "StreamAnswer": protocol.StreamAnswer, "Arm": protocol.Arm,
    "Explained": protocol.Explained,
}  # fmt: skip


@pytest.mark.parametrize("name", PAIRS)
def test_types_of_the_client_have_the_names_of_the_wire(name):
    """A field that is always sent is required; one that may be left out is not."""
    typed, fields = getattr(answers, name), msgspec.structs.fields(PAIRS[name])
    assert set(typed.__annotations__) == {field.name for field in fields}
    if name != "Settings":
        assert typed.__required_keys__ == {field.name for field in fields if field.required}


@pytest.mark.slow  # mypy reads numpy
def test_a_type_checker_finds_a_misspelt_setting_and_a_misread_answer(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "from driftwise.service.client import Client\n"
        "client = Client()\n"
        "client.put('home', policy={'name': 'Auto', 'dim': 2}, rewards=(0, 1), epsilon=0.1)\n"
        "client.put('home', policy={}, rewards=(0, 1), epsilonn=0.1)\n"
        "number: int = client.decide('home', [[1.0]])['arm']\n"
        "wrong: str = client.reward('home', 'a', 1.0)['verdickt']\n"
    )
    ended = subprocess.run([sys.executable, "-m", "mypy", "--strict", "--no-error-summary", str(program)],
                           capture_output=True, text=True, cwd=tmp_path, check=False)  # fmt: skip
    lines = {int(found) for found in re.findall(r"program.py:(\d+): error", ended.stdout)}
    assert lines == {4, 6}, ended.stdout + ended.stderr
