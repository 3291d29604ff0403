"""Trials played eight at a time equal single trials: arms and regret, bit for bit, for any trials and any number."""

import math
import threading
import tracemalloc

import numpy as np
import pytest

import driftwise as dw
from driftwise import eight
from driftwise._internal.rng import Turns, stream
from driftwise.kernels import point
from driftwise.policies import engines
from driftwise.simulation import _work
from driftwise.worlds import World
from interpreting import both_ways

MEMORIES = [dw.Keep(), dw.Fade(0.05), dw.Restart(7), dw.Restart(2.6), dw.Restart(1 / 3)]
WORLDS = {
    "turn": dict(kind=dw.worlds.Turn, dim=2, arms=7),
    "walk": dict(kind=dw.worlds.Walk, dim=3, arms=4, norm="clip"),
    "jumps": dict(kind=dw.worlds.Jumps, dim=5, arms=13, draw="cube", norm="max", arms_of=3),
    "line": dict(kind=dw.worlds.Jumps, dim=1, arms=1),
    "clicks": dict(kind=dw.worlds.Turn, dim=4, arms=10, reward="bernoulli"),
    "counts": dict(kind=dw.worlds.Turn, dim=2, arms=6, reward="poisson"),
    "probit": dict(kind=dw.worlds.Turn, dim=2, arms=6, reward="bernoulli", link="probit"),
    "large": dict(kind=dw.worlds.Turn, dim=20, arms=21),
}


def _world(name, horizon=60):
    fields = dict(WORLDS[name])
    return fields.pop("kind")(horizon=horizon, **fields)


def _policies(world, memory):
    common = dict(dim=world.dim, memory=memory, lam=0.7, delta=0.01, S=world.S, L=world.L)
    return {
        "one matrix": dw.LinearUCB(**common),
        "two matrices": dw.LinearUCB(**common, two_matrix="correct", exploration=0.3),
        "no horizon": dw.LinearUCB(**{**common, "delta": None}),
        "greedy": dw.LinearUCB(**common, exploration=0.0),
        "posterior": dw.LinearUCB(dim=world.dim, memory=memory, radius="posterior", R=0.4),
    }


def _both(monkeypatch, policies, world, **options):
    """Eight at a time and one by one."""
    plays_eight = dw.simulate(policies, world, **{"jobs": 1, **options})
    monkeypatch.setattr(engines, "FEWEST", math.inf)
    alone = dw.simulate(policies, world, **{"jobs": 1, **options})
    monkeypatch.undo()
    return plays_eight, alone


def _assert_same(one, other):
    assert one.regret.keys() == other.regret.keys()
    for name in one.regret:
        assert np.array_equal(one.arms[name], other.arms[name]), name
        assert one.regret[name].tobytes() == other.regret[name].tobytes(), name


@pytest.mark.parametrize("name", WORLDS)
@pytest.mark.parametrize("memory", MEMORIES, ids=repr)
def test_eight_at_a_time_have_the_bits_of_one_by_one(monkeypatch, memory, name):
    world = _world(name)
    policies = _policies(world, memory)
    assert all(eight.plays_eight(policy, world) for policy in policies.values())
    _assert_same(*_both(monkeypatch, policies, world, trials=8, seed=5))


@pytest.mark.parametrize("name", ["LB-WeightUCB", "OFUL", "RestartUCB", "D-LinUCB"])
def test_the_rows_of_the_catalogue_that_are_linear_go_together(monkeypatch, name):
    world = dw.worlds.Turn(dim=2, arms=9, horizon=5000)  # more than one stretch
    policy = dw.make(name, **world.facts)
    assert eight.plays_eight(policy, world)
    _assert_same(*_both(monkeypatch, {name: policy}, world, trials=[3, 1, 4, 15, 9, 2, 6, 5], record=100))


@pytest.mark.parametrize("trials", [1, 3, 4, 7, 8, 9, 11, 12, 20])
@pytest.mark.parametrize("jobs", [1, 2])
def test_any_number_of_trials_by_any_number_of_threads(monkeypatch, trials, jobs):
    world = _world("turn")
    window = dw.LinearUCB(dim=2, memory=dw.Window(9), lam=1.0, delta=0.1)
    policies = {**_policies(world, dw.Fade(0.05)), "one by one": window}
    _assert_same(*_both(monkeypatch, policies, world, trials=trials, jobs=jobs))


def test_every_lane_is_its_own_trial():
    world = _world("turn")
    policy = _policies(world, dw.Fade(0.05))["one matrix"]
    numbers = [9, 0, 4, 17, 2, 3, 30, 11]
    plays_eight = dw.simulate({"it": policy}, world, trials=numbers, jobs=1).regret["it"]
    assert len({row.tobytes() for row in plays_eight}) == 8
    for row, number in enumerate(numbers):
        alone = dw.simulate({"it": policy}, world, trials=[number], jobs=1).regret["it"]
        assert alone.tobytes() == plays_eight[row].tobytes()


def test_a_lane_that_took_its_neighbours_tape_would_be_found_out(monkeypatch):
    world, taken = _world("turn"), World.tapes_of_eight

    def crossed(self, seed, trials):
        for tapes in taken(self, seed, trials):
            yield tapes._replace(draws=np.ascontiguousarray(np.roll(tapes.draws, 1, axis=1)))

    policy = _policies(world, dw.Fade(0.05))
    right = dw.simulate(policy, world, trials=8, jobs=1)
    monkeypatch.setattr(World, "tapes_of_eight", crossed)
    wrong = dw.simulate(policy, world, trials=8, jobs=1)
    assert all((wrong.regret["one matrix"][lane] != right.regret["one matrix"][lane]).any() for lane in range(8))


@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_ties_go_to_the_first_arm_in_every_tile(monkeypatch, count):
    """The best arm is at one place, or at two, for all places."""
    d, horizon = 2, 3
    for first in range(count):
        for second in range(first, count):
            arms = np.full((count, d), -0.5)
            arms[[first, second]] = (0.6, 0.8)
            world = dw.worlds.Given(arms=arms, theta=np.tile([0.6, 0.8], (horizon, 1)), noise=0.0)
            policy = dw.LinearUCB(dim=d, memory=dw.Keep(), lam=1.0, delta=0.1, S=1.0, L=1.0)
            result = dw.simulate({"it": policy}, world, trials=8, jobs=1)
            assert (result.arms["it"] == first).all()


def test_what_cannot_go_together_does_not(monkeypatch):
    policy = _policies(_world("turn"), dw.Keep())["one matrix"]
    turn = dict(dim=2, arms=3, horizon=9)
    assert eight.plays_eight(policy, dw.worlds.Turn(**turn))
    assert not eight.plays_eight(policy, dw.worlds.Turn(**turn, fresh=True))
    for other in (
        dw.LinearUCB(dim=2, memory=dw.Window(9), lam=1.0, delta=0.1),
        dw.LinearUCB(dim=2, memory=dw.Fade(0.1), lam=1.0, delta=0.1, two_matrix="as-published"),
        dw.make("Auto", dim=2, memory=dw.Keep()),
        dw.make("Bank+LB-WeightUCB", dim=2, horizon=9),
        dw.make("D-LinTS", dim=2, horizon=9, path_length=1.0),
        dw.make("GLB-WeightUCB", dim=2, horizon=9, path_length=1.0),
    ):
        assert not eight.plays_eight(other, dw.worlds.Turn(**turn)), other
    unknown = _policies(_world("turn"), dw.Keep())["no horizon"]
    for flag in (point.MEMORY, point.RULE, point.RADIUS):  # kinds that an extension adds, see docs/extending.md
        before, unknown.point.flags[flag] = unknown.point.flags[flag], 9
        assert not eight.plays_eight(unknown, dw.worlds.Turn(**turn))
        unknown.point.flags[flag] = before
    assert eight.plays_eight(unknown, dw.worlds.Turn(**turn))
    wide = dw.worlds.Turn(dim=21, arms=3, horizon=9)
    assert not eight.plays_eight(dw.LinearUCB(dim=21, memory=dw.Keep(), lam=1.0, delta=0.1), wide)

    class Own(dw.worlds.Turn):
        def tapes(self, seed=0, trial=0):
            for tape in super().tapes(seed, trial):
                yield tape._replace(theta=-tape.theta)

    _assert_same(*_both(monkeypatch, {"it": policy}, Own(**turn), trials=8))


def test_seconds_are_the_shares_of_the_eights_time():
    world = _world("large", 400)
    policy = _policies(world, dw.Keep())["one matrix"]
    seconds = dw.simulate({"it": policy}, world, trials=16, jobs=1).seconds["it"]
    assert seconds.min() > 0.0
    assert len(set(seconds[:8])) == len(set(seconds[8:])) == 1


def test_many_trials_take_no_more_memory_than_what_is_recorded_of_them():
    world = _world("turn", 20)
    policy = _policies(world, dw.Fade(0.05))["one matrix"]

    def peak(trials, jobs):
        """The least of three, because the first calls of a process keep what later ones use again."""
        found = []
        for _ in range(3):
            tracemalloc.start()
            dw.simulate({"it": policy}, world, trials=trials, jobs=jobs, record="last")
            found.append(tracemalloc.get_traced_memory()[1])
            tracemalloc.stop()
        return min(found)

    for jobs in (1, 2):
        assert peak(4096, jobs) - peak(512, jobs) < (4096 - 512) * (8 + 4 + 8) + 50_000


def test_a_task_that_fails_ends_the_work():
    begun, ended = [], threading.Event()

    def tasks():
        try:
            for number in range(1000):
                yield lambda number=number: task(number)
        finally:
            ended.set()

    def task(number):
        begun.append(number)
        if number == 3:
            raise ValueError("three")

    for workers in (1, 2):
        begun.clear()
        ended.clear()
        with pytest.raises(ValueError, match="three"):
            _work(tasks(), workers)
        assert ended.is_set() and len(begun) < 900


def test_streams_read_in_turns_are_the_streams():
    turns, drawn, marks = Turns(), [[], []], [None, None]
    for part in range(3):
        for who in range(2):
            generator = turns.begin(7, "tape", who) if part == 0 else turns.resume(marks[who])
            drawn[who].append(generator.standard_normal(5))
            drawn[who].append(generator.random(3, dtype=np.float32))  # half of a random word may be left over
            marks[who] = turns.mark()
    for who in range(2):
        alone = stream(7, "tape", who)
        again = [one for _ in range(3) for one in (alone.standard_normal(5), alone.random(3, dtype=np.float32))]
        assert all(np.array_equal(a, b) for a, b in zip(drawn[who], again, strict=True))


def test_compiled_and_interpreted_eights_are_the_same():
    compiled, interpreted = both_ways(
        "import driftwise as dw\n"
        "from driftwise import eight\n"
        "for reward in ('gaussian', 'bernoulli'):\n"
        "    w = dw.worlds.Turn(dim=3, arms=6, horizon=12, reward=reward)\n"
        "    for memory in (dw.Fade(0.1), dw.Restart(5)):\n"
        "        for two in (None, 'correct'):\n"
        "            p = dw.LinearUCB(dim=3, memory=memory, lam=0.7, delta=0.01, two_matrix=two)\n"
        "            assert eight.plays_eight(p, w)\n"
        "            r = dw.simulate({'it': p}, w, trials=5, jobs=1)\n"
        "            print(r.regret['it'].tobytes().hex(), r.arms['it'].tolist())\n"
    )
    assert compiled == interpreted
