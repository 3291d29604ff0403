"""Clocks, ticks and spans of time: each combination works, or its error names a way out that works."""

import itertools
import re

import pytest

import driftwise as dw
from agent.living import linear, unit_arms
from refusing import refused

CLOCKS, TICKS = (None, "rounds", "wall", "rewards"), (None, 60.0, "1m")
HALF_LIVES, EXPIRIES = (None, 500.0, "14d"), (None, 50.0, "1h")

MAKERS = {
    "for_clicks": lambda **given: dw.Agent.for_clicks(2, **given),
    "for_values": lambda **given: dw.Agent.for_values(2, 0.0, 1.0, **given),
    "Auto": lambda **given: dw.Agent(dw.make("Auto", dim=2), rewards=(0, 1), **given),
    "keeps": lambda **given: dw.Agent(linear(dw.Keep()), rewards=(0, 1), **given),
    "fades": lambda **given: dw.Agent(linear(dw.Fade(0.01)), rewards=(0, 1), **given),
    "fades in time": lambda **given: dw.Agent(linear(dw.Fade("14d")), rewards=(0, 1), **given),
    "MASTER": lambda **given: dw.Agent(
        dw.make("MASTER+OFUL", dim=2, horizon=500), rewards=(0, 1), **given),
}  # fmt: skip


def followed(name, given, refusal):
    """The maker and its arguments after following the first way out."""
    what, way_out = refusal.parameter, refusal.way_out
    if way_out.startswith("leave it out"):
        return name, {**given, what: None}
    if way_out.startswith("use a bank"):
        return "Auto", given
    if way_out == "pass a number":
        return name, {**given, what: 40}
    passed = re.match(r'pass (\w+)="([^"]+)"', way_out)
    assert passed, str(refusal)
    assert given.get(passed[1]) != passed[2], f"already done: {refusal}"
    return name, {**given, passed[1]: passed[2]}


@pytest.mark.parametrize("name", MAKERS)
def test_every_combination_works_or_its_way_out_does(name):
    arms, worked = unit_arms(3, 2, 0), 0
    for clock, tick, half_life, expire in itertools.product(CLOCKS, TICKS, HALF_LIVES, EXPIRIES):
        asked = {"clock": clock, "tick": tick, "half_life": half_life, "expire_after": expire}
        maker, given, told = name, asked, []
        while True:
            try:
                agent = MAKERS[maker](**{key: value for key, value in given.items() if value is not None})
            except dw.BadInput as refusal:
                told.append(str(refusal))
                assert len(told) <= 6 and len(set(told)) == len(told), (asked, told)  # no circle
                maker, given = followed(maker, given, refusal)
                continue
            break
        agent.reward(agent.decide(arms).id, 1.0)
        timed = any(isinstance(one, str) for one in (given["half_life"], given["expire_after"]))
        timed = timed or given["tick"] is not None or maker == "fades in time"
        assert agent._parts.clock.kind == (given["clock"] or ("wall" if timed else "rounds")), (given, told)
        worked += not told
    assert worked >= 4


def test_a_span_alone_chooses_the_wall_clock_and_a_tick():
    agent = dw.Agent.for_clicks(3, expire_after="1h", default_reward=0)
    assert (agent._parts.clock.kind, agent._parts.clock.tick, agent._parts.terms.expire_after) == ("wall", 3.6, 1000.0)
    agent = dw.Agent(linear(dw.Keep()), rewards=(0, 1), half_life="14d")
    assert (agent._parts.clock.kind, agent._parts.clock.tick) == ("wall", 1209.6)
    agent = dw.Agent(linear(dw.Restart("7d")), rewards=(0, 1), expire_after="1h")
    assert (agent._parts.clock.kind, agent._parts.clock.tick) == ("wall", 604.8)
    agent = dw.Agent(linear(), rewards=(0, 1), tick="1m", expire_after="1h")
    assert (agent._parts.clock.kind, agent._parts.terms.expire_after) == ("wall", 60.0)


def test_a_number_of_decisions_is_not_silently_taken_for_seconds():
    with refused("half_life", "beside expire_after=", 'half_life="500s"'):
        dw.Agent.for_clicks(3, 500, expire_after="1h")
    with refused("expire_after", "beside tick=", 'expire_after="50s"'):
        dw.Agent(linear(dw.Keep()), rewards=(0, 1), tick="1m", expire_after=50)


def test_a_span_beside_a_clock_that_counts_events_gets_one_sentence():
    for clock, counted in (("rounds", "decisions"), ("rewards", "rewards")):
        for name in ("half_life", "expire_after"):
            with refused(name, f"a number of {counted}", 'pass clock="wall"'):
                dw.Agent(linear(dw.Keep()), rewards=(0, 1), clock=clock, **{name: "1h"})
