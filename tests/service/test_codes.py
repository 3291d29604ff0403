"""Every error of the wire has a code of its own: in the answer, in openapi.json, in the docs and in the client."""

import ast
from collections import Counter
from pathlib import Path

import pytest

import driftwise
from driftwise.service.client import Client, Refused
from driftwise.service.wire.codes import STATUS, TABLE
from driftwise.service.wire.openapi import document
from driftwise.service.wire.protocol import Refusal
from service.living import ARMS, BODY, Passing, living

SOURCES = Path(driftwise.__file__).parent / "service"
DOCS = Path(__file__).parents[2] / "docs" / "codes.md"


def raised():
    """The first argument of every Refusal in the sources, with its place."""
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Call):
                name = node.func.id if isinstance(node.func, ast.Name) else ""
                stale = isinstance(node.func, ast.Attribute) and ast.unparse(node.func) == "super().__init__"
                inside = stale and node.args and isinstance(node.args[0], ast.Constant) and node.args[0].value in STATUS
                if name == "Refusal" or inside:
                    yield f"{path.name}:{node.lineno}", node.args[0].value if node.args else None
                assert name != "Error" or path.name == "protocol.py", f"{path.name}: an answer beside Refusal"


def test_a_code_names_one_kind_of_error():
    assert not [name for name, many in Counter(one.name for one in TABLE).items() if many > 1]
    assert not [said for said, many in Counter(one.meaning for one in TABLE).items() if many > 1]
    assert all(one.name.isidentifier() and one.name.islower() and 400 <= one.status < 600 for one in TABLE)


def test_no_error_is_without_a_code_and_no_code_without_an_error():
    found = dict(raised())
    assert len(found) > 45 and not {place: code for place, code in found.items() if code not in STATUS}
    assert set(found.values()) == set(STATUS)
    with pytest.raises(KeyError):
        Refusal("no_such_code", "a sentence")


def test_codes_are_stable():
    """A released code keeps its status: callers rely on both. New ones are added here."""
    told = {(one.status, one.name) for one in TABLE}
    assert {
        (400, "invalid_json"), (401, "unknown_key"), (403, "missing_scope"), (404, "unknown_stream"),
        (404, "unknown_decision"), (409, "stream_exists"), (409, "stream_paused"), (409, "stream_changed"),
        (409, "fixed_setting"), (409, "missing_features"), (409, "forgotten_rewards"), (409, "forgotten_decision"),
        (409, "other_decision"), (409, "other_reward"), (409, "other_dimension"), (409, "other_result"),
        (413, "long_body"), (422, "invalid_field"), (422, "invalid_value"), (429, "many_failures"),
        (503, "internal_error"), (503, "starting"), (503, "overloaded"), (503, "uncertain_write"), (507, "disk_full"),
    } <= told  # fmt: skip


def test_the_description_and_the_page_have_all_codes():
    made = document()
    assert made["components"]["schemas"]["Error"]["properties"]["code"]["enum"] == list(STATUS)
    assert "code" in made["components"]["schemas"]["Error"]["required"]
    page = DOCS.read_text()
    for one in TABLE:
        assert f"{one.name}: {one.meaning}" in made["components"]["responses"][str(one.status)]["description"]
        assert f"| `{one.name}` | {one.status} | {one.meaning} |" in page
    for path in made["paths"].values():
        for method, told in path.items():
            if method != "parameters" and told.get("security") != []:
                assert {str(status) for status in STATUS.values()} <= set(told["responses"])


def test_conflicts_are_told_apart_by_their_code(tmp_path):
    with living(tmp_path / "a.db") as asked, Client(transport=Passing(asked), tries=1) as client:
        client.put("home", **BODY)
        client.decide("home", ARMS, id="a")
        client.reward("home", "a", 1.0)
        for code, call in (
            ("stream_exists", lambda: client.put("home", **{**BODY, "epsilon": 0.5})),
            ("other_decision", lambda: client.decide("home", ARMS[:2], id="a")),
            ("other_reward", lambda: client.reward("home", "a", 0.0)),
            ("missing_features", lambda: client.items("home", {"x": {"hour": 1}})),
            ("fixed_setting", lambda: client.change("home", **{**BODY, "policy": {**BODY["policy"], "dim": 3}})),
            ("unknown_decision", lambda: client.reward("home", "b", 0.0)),
        ):  # fmt: skip
            with pytest.raises(Refused) as told:
                call()
            assert (told.value.code, told.value.status) == (code, STATUS[code])
        asked.ask("POST", "home/pause")
        assert asked.decide("b").json()["code"] == "stream_paused"
        member = client.decide_many("home", [{"arms": ARMS, "id": "b"}])[0]
        assert (member["code"], member["status"]) == ("stream_paused", 409)
