"""Ctrl-C at any point of a call: locks are free, and a retry gives the agent that was not interrupted, bit for bit.

CPython delivers a signal when a function begins, after a call, and where a loop begins again. A tracer raises at each
of these places in turn, in all Python code that a call runs. It raises before the next instruction; where that has
another handler than the one before it (`return f()` in a `with`), it does not.
"""

import dis
import functools
import random
import sys

import numpy as np
import pytest

import driftwise as dw
from driftwise.tables.encoder import Encoder

# What a call of Python's own leaves behind that is interrupted within it, such as a folder's iterator.
pytestmark = pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")

ARMS = np.array([[0.9, 0.1, 0.3], [0.2, 0.8, 0.1], [0.1, 0.2, 0.9]])
CHECKED = ("RESUME", "CALL", "CALL_FUNCTION_EX", "CALL_KW", "JUMP_BACKWARD")
AFTER = {dis.opmap[name] for name in CHECKED if name in dis.opmap}
SAMPLE = 12


@functools.cache
def handlers(code):
    """Where an exception of each instruction is handled."""
    return {at: one.target for one in dis._parse_exception_table(code) for at in range(one.start, one.end, 2)}


class Interrupted(BaseException):
    """Raised as Ctrl-C would raise."""


class Strike:
    """A tracer that raises at place number `at` of the Python code that a call runs; 0 only counts the places."""

    def __init__(self, at=0):
        self.at, self.count, self.struck = at, 0, False
        self.last = {}

    def __call__(self, frame, event, _):
        frame.f_trace_opcodes = frame.f_code.co_filename != __file__
        if event == "opcode":
            code, here = frame.f_code, frame.f_lasti
            (before, there), self.last[frame] = self.last.get(frame, (None, 0)), (code.co_code[here], here)
            if before in AFTER and handlers(code).get(here) == handlers(code).get(there):
                self.count += 1
                if self.count == self.at:
                    self.struck = True
                    sys.settrace(None)
                    raise Interrupted
        elif event == "return":
            self.last.pop(frame, None)
        return self

    def run(self, act):
        """How the call ended: what it returned or raised."""
        before = sys.gettrace()
        sys.settrace(self)
        try:
            return act()
        except (Interrupted, dw.BadInput) as raised:
            return raised
        except RuntimeError as raised:  # a thread of Python's own that is interrupted while it starts
            assert self.struck and "lock" in str(raised)
            return raised
        finally:
            sys.settrace(before)
            self.last.clear()


def retried(act):
    """How a call without a tracer ended, which takes half the time."""
    try:
        return act()
    except dw.BadInput as raised:
        return raised


class Own:
    """A policy of the user's own, which can be kept."""

    def start(self, seed=0):
        return np.zeros(3)

    def choose(self, state, arms):
        return int(np.argmax(arms @ state))

    def scores(self, state, arms):
        return dw.Scores(arms @ state, np.ones(len(arms)))

    def learn(self, state, arms, arm, reward):
        state += reward * arms[arm]

    def state_to_bytes(self, state):
        return state.tobytes()

    def state_from_bytes(self, data):
        return np.frombuffer(data).copy()


F = dw.Features
FEATURES = dw.Features(context={"hour": F.number(mean=12, scale=6)}, item={"price": F.number(mean=20, scale=10)})


def made(name, **more):
    told = {"dim": 3, "horizon": 100, "path_length": 2.0, "S": 1.0, "R": 0.5, "L": 1.0}
    return lambda: dw.make(name, **{**told, **more})


# Policies, and beside a plain one every option of the constructor.
POLICIES = {
    "Auto": lambda: dw.make("Auto", dim=3), "Auto for clicks": lambda: dw.make("Auto", dim=3, link="logistic"),
    "LB-WeightUCB": made("LB-WeightUCB"), "GLB-WeightUCB": made("GLB-WeightUCB"), "SW-UCB": made("SW-UCB"),
    "MASTER": made("MASTER+OFUL"), "BOB": made("BOB+LB-WeightUCB"), "D-LinTS": made("D-LinTS"),
    "D-RandLinUCB": made("D-RandLinUCB"), "one's own": Own,
}
OPTIONS = {
    "expire_after": {"expire_after": 2.0}, "default_reward": {"expire_after": 2.0, "default_reward": 0.25},
    "wall clock": {"clock": "wall", "tick": 1.0, "expire_after": "3s", "default_reward": 0.0},
    "rewards clock": {"clock": "rewards", "expire_after": 1.0}, "half_life": {"half_life": 20.0},
    "half_life in time": {"half_life": "10s"}, "epsilon, seed": {"epsilon": 0.5, "seed": 3},
    "max_open": {"max_open": 3}, "remember": {"remember": 1}, "remember none": {"remember": 0},
}  # fmt: skip
SETUPS = {name: (policy, {}) for name, policy in POLICIES.items()}
SETUPS |= {f"Auto, {name}": (POLICIES["Auto"], OPTIONS[name]) for name in ("default_reward", "wall clock")}
SETUPS |= {
    name: (lambda: dw.LinearUCB(dim=3, memory=dw.Keep(), S=1.0, L=1.0, R=0.5, delta=0.05, lam=1.0), options)
    for name, options in OPTIONS.items()
}
SETUPS["features"] = (lambda: dw.make("Auto", dim=FEATURES.dim), {"features": FEATURES})


def born(setup, act):
    """The bytes of an agent that has lived a little: decisions are open, learned, cancelled. Of a policy that has one
    decision at a time the last is open, but where another one follows."""
    policy, options = SETUPS[setup]
    agent = dw.Agent(policy(), rewards=(0.0, 1.0), **options)
    alone = agent._parts.alone
    for number in range(6):
        decide(agent, f"a{number}", number)
        if number % 2 == 0 or (alone and (number < 5 or act == "decide")):
            agent.reward(f"a{number}", 0.5 * (number % 3), now=100.0 + number)
    if not alone:
        agent.cancel("a5")
    return agent.to_bytes()


def decide(agent, id, number, **more):
    at = 100.0 + number
    if agent.features is not None:
        items = {"x": {"price": 5.0}, "y": {"price": 30.0 + number}}
        return agent.decide(context={"hour": number % 24}, items=items, id=id, now=at)
    return agent.decide(ARMS, id=id, now=at, **more)


def loaded(setup, data):
    policy = SETUPS[setup][0]
    return dw.Agent.from_bytes(data, policy=policy() if policy is Own else None, now=lambda: 107.0)


def open_one(agent):
    return next(iter(agent._parts.book.open), "a0")


ACTS = {
    "decide": lambda agent, room: decide(agent, "new", 7),
    "decide_many": lambda agent, room: agent.decide_many([ARMS, ARMS[:2]], ids=["new", "newer"], now=107.0),
    "reward": lambda agent, room: agent.reward(room["open"], 1.0, now=107.0),
    "reward_many": lambda agent, room: agent.reward_many([(one, 0.5) for one in room["all open"]], now=107.0),
    "cancel": lambda agent, room: agent.cancel(room["open"]),
    "explain": lambda agent, room: agent.explain(*room["asked"], now=107.0),
    "drift": lambda agent, room: agent.drift(),
    "to_bytes": lambda agent, room: agent.to_bytes(),
    "state": lambda agent, room: (agent.state, agent.counts, repr(agent)),
    "save": lambda agent, room: agent.save(room["path"] / "agent"),
    "log_to": lambda agent, room: agent.log_to(room["path"] / "log", format="jsonl").close(),
    "learn_log": lambda agent, room: agent.learn_log(room["log"]),
    "merge": lambda agent, room: agent.merge(room["other"]),
}  # fmt: skip
CHANGES_COUNTS = {"repeated", "conflicting"}  # by the retry


def whole(agent):
    """The agent as bytes, without what a retry counts."""
    agent._parts.book.counts.update(dict.fromkeys(CHANGES_COUNTS, 0))
    return agent.to_bytes()


def check_free(agent):
    """No lock is held, and no state is in use."""
    parts = agent._parts
    locks = [parts.learning, parts.choosing, *([] if parts.encoder is None else [parts.encoder.lock])]
    assert not any(lock._is_owned() for lock in locks) and not parts.busy.locked()
    for state in (parts.states.front, parts.states.back, parts.states.view):
        assert not getattr(getattr(state, "in_use", None), "locked", bool)()


def lives_on(agent):
    """What an agent does after the interrupt, as its twin does. Two counts are of calls, also of those made again."""
    agent._parts.book.counts.update(late=0, unknown=0)
    if agent._parts.alone:
        for id in list(agent._parts.book.open):
            agent.reward(id, 0.5, now=108.0)
    found = decide(agent, "later", 8)
    agent.reward("later", 0.75, now=108.0)
    return found._replace(x=None), whole(agent)


def refuses(setup, act):
    """Whether no agent of this setup can do this."""
    if act == "decide_many":
        return setup in ("MASTER", "BOB", "features")
    if act == "explain":
        return setup in ("BOB", "MASTER", "features")
    # Memories that fade are merged on the wall clock only.
    return act == "merge" and (setup not in OPTIONS or setup == "half_life")


def forgets(setup, act):
    """Whether the agent does not know any more, when it is asked again, that it has done this."""
    return act in ("merge", "log_to") or (setup == "remember none" and act in ("reward", "cancel"))


def check_interrupts(setup, act, tmp_path, sample):
    data = born(setup, act)
    twin, room = loaded(setup, data), {"path": tmp_path}
    room["open"] = open_one(twin)
    room["all open"] = list(twin._parts.book.open)
    room["asked"] = (room["open"],) if room["open"] in twin._parts.book.open else (ARMS,)
    if act in ("learn_log", "merge"):
        room |= beside(setup, data, tmp_path)
    (tmp_path / "warm").mkdir()
    ACTS[act](loaded(setup, data), {**room, **parallel(setup, act, room), "path": tmp_path / "warm"})  # compile it
    places = Strike()
    places.run(lambda: ACTS[act](twin, {**room, **parallel(setup, act, room)}))
    wanted = lives_on(twin)
    numbers = range(1, places.count + 1)
    if sample is not None:
        numbers = random.Random(f"{setup} {act}").sample(numbers, min(sample, len(numbers)))
    for number in numbers:
        agent, strike = loaded(setup, data), Strike(number)
        mine = {**room, **parallel(setup, act, room), "path": tmp_path / f"{number}"}
        mine["path"].mkdir(exist_ok=True)
        strike.run(lambda agent=agent, mine=mine: ACTS[act](agent, mine))
        check_free(agent)
        again = retried(lambda agent=agent, mine=mine: ACTS[act](agent, mine))
        assert forgets(setup, act) or not isinstance(again, dw.BadInput), (number, again)
        if agent._parts.book.log is not None:
            agent._parts.book.log.close()
        assert lives_on(agent) == wanted, f"place {number} of {places.count}"
        agent.save(mine["path"] / "kept")
        assert (mine["path"] / "kept").read_bytes() == agent.to_bytes()
    return places.count


def beside(setup, data, tmp_path):
    """A log of an agent that went on from the same bytes, and an agent to merge."""
    ahead = loaded(setup, data)
    with ahead.log_to(tmp_path / "ahead", arms=True, format="jsonl"):
        for id in list(ahead._parts.book.open):
            ahead.reward(id, 0.25, now=107.0)
    policy, options = SETUPS[setup]
    other = dw.Agent(policy(), rewards=(0.0, 1.0), **options)
    decide(other, "there", 7)
    other.reward("there", 1.0, now=107.0)
    return {"log": tmp_path / "ahead", "bytes": other.to_bytes()}


def parallel(setup, act, room):
    return {"other": loaded(setup, room["bytes"])} if act == "merge" else {}


PAIRS = [(setup, act) for setup in SETUPS for act in ACTS if not refuses(setup, act)]
FEW = random.Random(4).sample(PAIRS, 24)


@pytest.mark.parametrize(("setup", "act"), FEW, ids=lambda one: one)
def test_a_call_that_is_interrupted_anywhere_has_happened_or_not(setup, act, tmp_path):
    assert check_interrupts(setup, act, tmp_path, SAMPLE) > 3


@pytest.mark.slow
@pytest.mark.parametrize(("setup", "act"), PAIRS, ids=lambda one: one)
def test_every_call_of_every_agent_is_interrupted_everywhere(setup, act, tmp_path):
    assert check_interrupts(setup, act, tmp_path, None) > 3


@pytest.mark.parametrize("setup", ["expire_after", "default_reward"])
def test_a_decision_that_is_interrupted_while_others_expire_leaves_the_agent_free(setup, tmp_path):
    """The interrupt between taking a lock and the `try` that released it held the lock for ever."""
    assert check_interrupts(setup, "decide", tmp_path, None) > 30


def test_an_interrupt_is_no_failure_and_its_retry_no_duplicate(tmp_path):
    data, number, struck = born("LB-WeightUCB", "reward"), 0, True
    while struck:
        number += 1
        agent, strike = loaded("LB-WeightUCB", data), Strike(number)
        strike.run(lambda agent=agent: agent.reward("a1", 1.0, now=107.0))
        agent.reward("a1", 1.0, now=107.0)
        struck = strike.struck
        # Where nothing was struck the second call is a duplicate.
        assert (agent.counts["failed"], agent.counts["duplicate"]) == (0, 0 if struck else 1)
    assert number > 20


def test_an_item_that_is_interrupted_while_it_changes_is_encoded_by_the_retry():
    """The row was taken as known, and the vector was still that of the row before."""
    old, new, number, struck = {"x": {"price": 5.0}}, {"x": {"price": 30.0}}, 0, True
    wanted = Encoder(FEATURES).arms({"hour": 1}, new)
    while struck:
        number += 1
        encoder, strike = Encoder(FEATURES), Strike(number)
        encoder.know(old)
        strike.run(lambda encoder=encoder: encoder.know(new))
        struck = strike.struck
        np.testing.assert_array_equal(encoder.arms({"hour": 1}, new), wanted)
    assert number > 20


def test_a_save_that_is_interrupted_writes_no_row_of_the_log_twice(tmp_path):
    data, number, struck = born("LB-WeightUCB", "reward"), 0, True
    while struck:
        number += 7
        agent, strike, here = loaded("LB-WeightUCB", data), Strike(number), tmp_path / str(number)
        here.mkdir()
        with agent.log_to(here / "log", format="jsonl"):
            agent.reward("a1", 1.0, now=107.0)
            strike.run(lambda agent=agent, here=here: agent.save(here / "agent"))
            agent.reward("a3", 0.5, now=107.0)
            agent.save(here / "agent")
        struck = strike.struck
        rows = [row for batch in dw.read_log(here / "log").batches(["reward_seq"]) for row in batch.reward_seq.tolist()]
        assert rows == [4, 5]
    assert number > 300
