"""Any bytes: the answer has a promised status and shape, the state is unchanged, and no log has the bytes."""

import json

import pytest

from service.living import ARMS, living

SECRET = "c0ffee5ec2e7"
LONG = [[1e-3] * 2] * 10_001
BAD = {
    "no JSON": (b"{", 400),
    "nothing": (b"", 400),
    "not UTF-8": (b"\xff\xfe{}", 400),
    "deep": (b"[" * 100_000, 422),
    "deep inside": (b'{"arms":' + b"[" * 100_000 + b"]" * 100_000 + b"}", 422),
    "NaN": (b'{"arms":[[NaN,1]]}', 400),
    "too large a number": (b'{"arms":[[1e400,1]]}', 422),
    "a lone surrogate": (b'{"id":"\\ud800","arms":[[1,0]]}', 400),
    "a control character": (b'{"id":"a\\u0000b","arms":[[1,0]]}', 422),
    "an empty id": (b'{"id":"","arms":[[1,0]]}', 422),
    "a long id": (json.dumps({"id": "x" * 129, "arms": ARMS}).encode(), 422),
    "a long id in bytes": (json.dumps({"id": "é" * 100, "arms": ARMS}, ensure_ascii=False).encode(), 422),
    "an unknown field": (json.dumps({"arms": ARMS, SECRET: 1}).encode(), 422),
    "a wrong type": (json.dumps({"arms": SECRET}).encode(), 422),
    "a truth value": (b'{"arms":[[true,0]]}', 422),
    "no arms": (b"{}", 422),
    "an empty list": (b'{"arms":[]}', 422),
    "an empty row": (b'{"arms":[[]]}', 422),
    "ragged": (b'{"arms":[[1,0],[1]]}', 422),
    "a wrong dimension": (b'{"arms":[[1,0,0]]}', 422),
    "a norm above L": (b'{"arms":[[3,4]]}', 422),
    "norms that overflow": (b'{"arms":[[1e300,1e300]]}', 422),
    "too many arms": (json.dumps({"arms": LONG}).encode(), 422),
    "both ways": (json.dumps({"arms": ARMS, "arms64": "AAAA", "n": 1}).encode(), 422),
    "a context without features": (json.dumps({"context": {SECRET: 1}, "items": ["a"]}).encode(), 422),
    "a list": (b"[]", 422),
    "too long": (b'{"id":"' + b"x" * (1 << 20) + b'"}', 413),
}


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    with living(tmp_path_factory.mktemp("bad") / "a.db") as asked:
        asked.put(policy={"name": "OFUL", "dim": 2, "horizon": 1000, "L": 1.0})
        asked.decide("known")
        yield asked


def check(home, answer, status):
    assert answer.status_code == status, answer.text
    assert set(answer.json()) == {"code", "error", "field", "hint"} and answer.json()["error"]
    assert answer.headers["content-type"] == "application/json"
    assert SECRET not in home.log.getvalue()


@pytest.mark.parametrize("name", BAD)
def test_a_bad_decide_is_refused_in_one_shape_and_changes_nothing(home, name):
    body, status = BAD[name]
    before = home.stream()
    check(home, home.ask("POST", "home/decide", content=body), status)
    assert home.stream() == before


@pytest.mark.parametrize("value", (b"NaN", b"1e400", b"-1e400", b'"1"', b"null", b"true", b"1.5", b"-0.1", b"[1]"))
def test_a_bad_reward_is_refused_in_one_shape_and_changes_nothing(home, value):
    before = home.stream()
    answer = home.ask("POST", "home/reward", content=b'{"id":"known","value":%s}' % value)
    check(home, answer, 400 if value == b"NaN" else 422)
    assert home.stream() == before


@pytest.mark.parametrize("policy", (
    {}, {"name": "Auto"}, {"name": "Nobody", "dim": 2}, {"name": "Auto", "dim": "2"}, {"name": "Auto", "dim": -1},
    {"name": "Auto", "dim": 10**9}, {"name": "MASTER+OFUL", "dim": 2, "horizon": 100}, {"type": "Agent"},
    {"name": "OFUL", "dim": 2, "horizon": 10, "lam": {"type": "Fade", "forget": 0.1}}, {"type": "LinearUCB", "dim": 2},
    {"name": "OFUL", "dim": 2, "horizon": 10, "lam": [1]}, {"name": "GLB-SW", "dim": 2, "horizon": 10**9,
                                                             "path_length": 1e-9},
))  # fmt: skip
def test_a_stream_that_cannot_be_is_refused_with_a_sentence(home, policy):
    check(home, home.put("bad", policy=policy), 422)


@pytest.mark.parametrize("changes", (
    {"rewards": [1, 0]}, {"rewards": [0]}, {"clock": "rounds"}, {"half_life": "soon"}, {"half_life": -1},
    {"tick": 3}, {"epsilon": 2}, {"mode": "loud"}, {"features": {}}, {"seed": -1}, {"expire_after": 0},
    {"rewards": [0, 1e300]}, {"more": 1},
))  # fmt: skip
def test_settings_that_mean_nothing_are_refused_with_a_sentence(home, changes):
    check(home, home.put("bad", **changes), 422)


@pytest.mark.parametrize("name", ("a%20b", "a%2Fb", "%00", "é", "x" * 65))
def test_a_name_that_is_none_makes_no_stream(home, name):
    assert home.ask("PUT", name, json={}).status_code in (404, 405, 422)


def test_a_body_without_a_length_is_read_no_further_than_the_limit(home):
    read = 0

    async def endless():
        nonlocal read
        while True:
            read += 1 << 16
            yield b" " * (1 << 16)

    check(home, home.ask("POST", "home/decide", content=endless()), 413)
    assert read <= (1 << 20) + (1 << 17)


def test_other_paths_and_methods_have_the_shape_too(home):
    check(home, home.get("/nowhere"), 404)
    answer = home.ask("PATCH", "home")
    check(home, answer, 405)
    assert "GET" in answer.headers["allow"]
