"""A machine's clock that jumps ahead is held back and counted; one that is set back, or a stopped server, is not."""

import pytest

from driftwise.service.core.verify import verify
from driftwise.service.core.waiting import AHEAD, Steady
from service.living import living

YEAR = 365 * 86400.0


class Clocks:
    """The machine's clock and the monotonic clock, which the test moves."""

    def __init__(self, at=1_700_000_000.0):
        self.at, self.since = at, 77.0
        self.steady = Steady(lambda: self.at, lambda: self.since)

    def wait(self, seconds):
        self.at += seconds
        self.since += seconds


def test_what_passes_is_believed_and_a_leap_is_held_back_and_counted():
    clocks = Clocks()
    assert clocks.steady() == clocks.at
    clocks.wait(30 * 86400.0)  # a month of silence
    assert clocks.steady() == clocks.at and clocks.steady.held == 0 and not clocks.steady.word
    clocks.at += AHEAD  # a normal correction of a clock
    right = clocks.at
    assert clocks.steady() == right and clocks.steady.held == 0
    clocks.at += YEAR
    assert clocks.steady() == right and clocks.steady.held == 1
    clocks.wait(5.0)
    assert clocks.steady() == right + 5.0 and clocks.steady.held == 2 and "31536000 s ahead" in clocks.steady.word
    clocks.at -= YEAR
    assert clocks.steady() == right + 5.0 == clocks.at and clocks.steady.held == 2 and not clocks.steady.word
    clocks.at -= 3600.0
    assert clocks.steady() == clocks.at
    clocks.at += 3600.0  # back where it was
    assert clocks.steady() == clocks.at and clocks.steady.held == 2
    assert Clocks(clocks.at + YEAR).steady() == clocks.at + YEAR  # the first time after a start


def test_a_year_ahead_makes_nothing_old_and_is_said(tmp_path):
    clocks = Clocks()
    with living(tmp_path / "a.db", now=clocks.steady) as asked:
        asked.put(clock="wall", half_life="1h", tick="1s", expire_after="10m", default_reward=0.0)
        for number in range(8):
            asked.decide(str(number))
            asked.reward(str(number), 1.0)
            clocks.wait(1.0)
        mean = asked.decide("before").json()["mean"]
        clocks.at += YEAR
        assert asked.decide("after").json()["mean"] == mean > 0.1
        born = {row.id: row.born for row in asked.service.store.decisions(1)}
        assert born["after"] == born["before"]
        clocks.wait(601.0)
        asked.decide("later")
        assert asked.reward("before", 1.0).json()["verdict"] == "late"  # defaults are due when they were
        health = asked.wait(asked.client.get("/healthz"))
        assert health.status_code == 200 and "s ahead" in health.json()["reason"]
        said = asked.wait(asked.client.get("/metrics")).text
        held = next(line for line in said.splitlines() if line.startswith("driftwise_clock_held_total"))
        assert float(held.split()[1]) == asked.service.now.held > 0
        assert "clock held back" in asked.wait(asked.client.get("/")).text
    assert not verify(tmp_path / "a.db")[0].differs


def test_an_hour_back_and_forth_changes_no_order_no_digest_no_decision(tmp_path):
    clocks = Clocks(10_000.0)
    with living(tmp_path / "a.db", now=clocks.steady) as asked:
        asked.put(clock="wall", half_life="1h", tick="1s")
        for number, jump in enumerate((0.0, 3600.0, -7200.0, 0.0, 3600.0)):
            clocks.at += jump
            asked.decide(str(number))
            assert asked.reward(str(number), 1.0).json()["verdict"] == "learned"
        assert [row.born for row in asked.service.store.decisions(1)] == [10_000] * 5
        digest = asked.stream()["digest"]
    assert verify(tmp_path / "a.db")[0].digest == digest


@pytest.mark.parametrize("short", [{"tick": 1e-7}, {"half_life": 1e-4}, {"expire_after": 1e-5}, {"tick": 1e-300}])
def test_a_stream_whose_ticks_cannot_count_the_time_until_now_is_refused_when_it_is_put(tmp_path, short):
    with living(tmp_path / "a.db") as asked:
        bank = {"policy": {"name": "Auto", "dim": 2}, "half_life": None}
        refused = asked.put(clock="wall", **({} if "half_life" in short else bank), **short)
        assert refused.status_code == 422 and refused.json()["field"] == "tick" and "1970" in refused.json()["error"]
        assert asked.put(clock="wall", half_life="1h", tick=1e-5).status_code == 201
        assert asked.decide("first").status_code == 200
