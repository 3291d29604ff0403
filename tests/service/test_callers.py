"""What one caller sends or declares harms no other caller, no other stream and no other start."""

import pytest

from driftwise.errors import BadInput
from driftwise.service.offers import Offers
from driftwise.service.protocol import MOST_NUMBERS, DecideBody
from driftwise.service.verify import verify
from service.living import living
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
    with living(db) as asked:  # nothing is at hand: the arms come from the store
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

    offers = Offers(MOST_NUMBERS // 100, Wide())
    with pytest.raises(BadInput, match="fewer arms"):
        offers.offer(DecideBody(context={}, items=["a"] * 101))


def test_a_page_that_cannot_be_computed_is_a_refusal_and_a_line_in_the_log(tmp_path):
    with living(tmp_path / "a.db") as asked:
        asked.put(policy={"name": "OFUL", "dim": 2, "horizon": 1000, "L": 5e-324})  # the drift meter squares it
        asked.decide("x", [[5e-324, 0.0], [0.0, 5e-324]])
        asked.reward("x", 1.0)
        answer = asked.get("/streams/home")
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert "a slip of ours" in answer.text
        assert '"event":"slip"' in asked.log.getvalue()
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
