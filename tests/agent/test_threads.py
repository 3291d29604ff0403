"""Many threads: a thread that decides never waits for a lesson, and the result is that of some serial order."""

import threading
import time

import numpy as np
import pytest

import driftwise as dw
from agent.living import linear, unit_arms

ARMS = unit_arms(20, 4, 0)


def run(count, work):
    failures = []

    def guarded(number):
        try:
            work(number)
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures, failures


@pytest.mark.parametrize("name", ["linear", "clicks", "bank"])
def test_results_equal_some_serial_order(name):
    policy = {
        "linear": linear(dw.Fade(0.01), dim=4),
        "clicks": dw.make("SCB-WeightUCB", dim=4, horizon=2000, path_length=2.0, estimate="one-pass"),
        "bank": dw.make("Bank+LB-WeightUCB", dim=4),
    }[name]
    agent, lessons = dw.Agent(policy, rewards=(0, 1)), []
    learn = agent._learn

    def noted(entry, value, tick, verdict):  # in the order of the lessons, under the learner's lock
        lessons.append((tick, entry.decision.born, entry.x.copy(), value))
        return learn(entry, value, tick, verdict)

    agent._learn = noted

    def work(number):
        for turn in range(100):
            one = agent.decide(ARMS, id=f"{number}-{turn}")
            if turn % 10 != 9:
                assert agent.reward(one.id, float((number + turn) % 2)) == "learned"

    run(6, work)
    counts = agent.counts
    assert (counts["decided"], counts["learned"], counts["open"]) == (600, 540, 60)
    state, clock = policy.start(), 0
    for tick, born, x, value in lessons:  # the fold of the lessons only
        policy.learn(state, x[0].T, 0, value, ticks=float(tick - clock), age=float(tick - born))
        clock = tick
    assert np.array_equal(state.floats, agent.state.floats)
    made = sorted((entry.decision for entry in [*agent._parts.book.open.values(), *agent._parts.book.closed.values()]),
                  key=lambda one: one.seq)
    assert [one.seq for one in made] == list(range(1, 601))
    if name == "linear":
        decided_in_some_order(policy, lessons, made)


def decided_in_some_order(policy, lessons, made):
    """Every decision was made on the state after some lessons, and never after fewer than the one before it."""
    state, known = policy.start(), [(0, policy.start())]
    for tick, born, x, value in lessons:
        policy.learn(state, x[0].T, 0, value, ticks=float(tick - known[-1][0]), age=float(tick - born))
        known.append((tick, state.copy()))
    after = 0
    for one in made:
        while True:
            tick, there = known[after]
            there = there.copy()
            if one.born - 1 > tick:
                policy.advance(there, float(one.born - 1 - tick))
            if policy.choose(there, ARMS) == (one.arm, one.score, one.mean, one.bonus):
                break
            after += 1  # an IndexError means that there is no such order


def test_one_reward_told_by_many_is_learned_once():
    agent = dw.Agent(linear(dim=4), rewards=(0, 1))
    one, verdicts = agent.decide(ARMS), []
    run(8, lambda number: verdicts.append(agent.reward(one.id, 1.0)))
    assert sorted(verdicts) == ["duplicate"] * 7 + ["learned"]
    assert agent.state.observations == 1


def test_no_event_is_lost_from_the_counts():
    """Many threads count refusals of decisions and of rewards in one place."""
    agent = dw.Agent(linear(dim=4), rewards=(0, 1))
    agent.decide(ARMS, id="same")
    agent.reward("same", 1.0)
    calls = [
        lambda: agent.decide(ARMS[:3], id="same"), lambda: agent.reward("same", 0.5),
        lambda: agent.reward("nobody", 0.5), lambda: agent.reward("same", 7.0), lambda: agent.reward("same", 1.0),
    ]  # fmt: skip

    def work(number):
        for turn in range(300):
            try:
                calls[(number + turn) % 5]()
            except dw.BadInput:
                pass

    run(5, work)
    wanted = {"conflicting": 600, "unknown": 300, "out_of_range": 300, "duplicate": 300, "learned": 1}
    assert wanted.items() <= agent.counts.items()


def test_one_id_asked_for_by_many_is_one_decision():
    agent, made = dw.Agent(linear(dim=4), rewards=(0, 1)), []
    run(8, lambda number: made.append(agent.decide(ARMS, id="same")))
    assert len(set(made)) == 1


def slow_down(agent, begun, go_on, fail=False):
    """Lessons of this agent begin, wait, and then continue or fail."""
    take = agent.policy.take

    class Slow:
        def __init__(self, policy):
            self.policy = policy

        def __getattr__(self, name):
            return getattr(self.policy, name)

        def take(self, *lesson):
            begun.set()
            assert go_on.wait(20)
            if fail:
                raise dw.NumericalError("no")
            take(*lesson)

    agent._parts.policy = agent._parts.states.policy = Slow(agent._parts.policy)


@pytest.mark.parametrize("fail", [False, True])
@pytest.mark.parametrize("room", [1, 3])
def test_a_decision_is_not_crowded_out_while_its_lesson_is_running(room, fail):
    """Book and state agree: a learned decision is closed as learned, and a failed one is open or evicted."""
    agent = dw.Agent(linear(dim=4), rewards=(0, 1), max_open=room)
    made, begun, go_on = [agent.decide(ARMS) for _ in range(room)], threading.Event(), threading.Event()
    verdicts = []

    def teach():
        try:
            verdicts.append(agent.reward(made[0].id, 1.0))
        except dw.NumericalError:
            verdicts.append("failed")

    slow_down(agent, begun, go_on, fail)
    learner = threading.Thread(target=teach)
    learner.start()
    assert begun.wait(20)
    more = [agent.decide(ARMS) for _ in range(room)]
    go_on.set()
    learner.join()
    counts = agent.counts
    assert verdicts == ["failed" if fail else "learned"]
    assert counts["learned"] == agent.state.observations == int(not fail)
    assert counts["open"] == len(agent._parts.book.open) <= room
    assert counts["crowded_out"] == counts["expired"] == (room if fail else max(0, room - 1))
    assert counts["decided"] == counts["open"] + counts["learned"] + counts["expired"]
    assert set(agent._parts.book.open) <= {one.id for one in more}
    agent._parts.policy = agent.policy  # no longer slow, so that a snapshot can be written
    assert dw.Agent.from_bytes(agent.to_bytes()).counts == counts


def test_who_decides_does_not_wait_for_a_lesson():
    agent = dw.Agent(linear(dim=4), rewards=(0, 1))
    one, begun, go_on = agent.decide(ARMS), threading.Event(), threading.Event()
    slow_down(agent, begun, go_on)
    learner = threading.Thread(target=agent.reward, args=(one.id, 1.0))
    learner.start()
    assert begun.wait(20)
    started = time.monotonic()
    before = [agent.decide(ARMS).mean for _ in range(50)]
    assert time.monotonic() - started < 10 and learner.is_alive()
    assert set(before) == {0.0}  # the old state, complete
    go_on.set()
    learner.join()
    assert agent.decide(ARMS).mean != 0.0


def test_deadlines_snapshots_and_cancellations_in_between_lose_nothing():
    agent = dw.Agent(linear(dim=4), rewards=(0, 1), expire_after=40, default_reward=0.0, max_open=64, epsilon=0.1)
    snapshots = []

    def work(number):
        for turn in range(150):
            one = agent.decide(ARMS)
            if number == 0 and turn % 30 == 0:
                snapshots.append(agent.to_bytes())
                agent.explain(ARMS), agent.drift()
            if turn % 5 == 0:
                try:
                    agent.cancel(one.id)
                except dw.BadInput:  # overdue by then
                    pass
            elif turn % 5 != 1:
                assert agent.reward(one.id, 1.0) in ("learned", "late")

    run(5, work)
    counts = agent.counts
    closed = sum(counts[name] for name in ("learned", "defaulted", "expired", "cancelled"))
    assert counts["decided"] == 750 == closed + counts["open"]
    assert agent.state.observations == counts["learned"] + counts["defaulted"]
    for data in snapshots:
        assert dw.Agent.from_bytes(data).to_bytes() == data
