"""A fork in a process with threads: the child's agents are complete, and continue as the parent's do."""

import contextlib
import os
import signal
import threading
import time
import warnings

import numpy as np
import pytest

import driftwise as dw
from agent.living import linear, unit_arms
from driftwise.agent import parts as forking
from driftwise.tables import read_log

ARMS = unit_arms(8, 3, 0)

pytestmark = pytest.mark.skipif(not hasattr(os, "register_at_fork"), reason="this system has no fork")


def child(work, seconds=20.0):
    """The result of `work()` in a forked child, as text. A child that hangs is killed and fails the test."""
    reading, writing = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python 3.12 warns of a fork with threads, which this test makes
        number = os.fork()
    if number == 0:
        try:
            os.write(writing, str(work()).encode())
        except BaseException as error:
            os.write(writing, f"{type(error).__name__}: {error}".encode())
        finally:
            os._exit(0)
    os.close(writing)
    until = time.monotonic() + seconds
    while os.waitpid(number, os.WNOHANG)[0] == 0:
        if time.monotonic() > until:
            os.kill(number, signal.SIGKILL)
            os.waitpid(number, 0)
            pytest.fail("the child hangs")
        time.sleep(0.005)
    with os.fdopen(reading) as told:
        return told.read()


@contextlib.contextmanager
def busy(work, threads=3):
    """Threads that work until the block ends; an exception in one of them fails the test."""
    over, failures = threading.Event(), []

    def run(number):
        try:
            while not over.is_set():
                work(number)
                time.sleep(0.001)
        except BaseException as error:
            failures.append(error)

    running = [threading.Thread(target=run, args=(number,)) for number in range(threads)]
    for one in running:
        one.start()
    try:
        yield
    finally:
        over.set()
        for one in running:
            one.join()
    assert not failures, failures


def agents():
    features = dw.Features(context={"hour": dw.Features.number(12, 6)}, item={}, blocks=list("ab"))
    told = dw.Agent(linear(dim=features.dim), rewards=(0, 1), features=features, remember=50)
    return told, dw.Agent(linear(dim=3), rewards=(0, 1), expire_after=500, default_reward=0.0, remember=500)


def consistent(agent):
    """The book and the state of an agent agree, and both of its states have learned the same rewards."""
    counts = agent.counts
    assert counts["decided"] == counts["open"] + counts["learned"] + counts["defaulted"] + counts["expired"], counts
    assert agent.state.observations == counts["learned"] + counts["defaulted"], counts
    assert np.array_equal(agent._parts.states.front.floats, agent._parts.states.back.floats)
    assert dw.Agent.from_bytes(agent.to_bytes()).to_bytes() == agent.to_bytes()


def test_a_child_forked_while_threads_learn_goes_on_with_whole_agents(tmp_path):
    told, plain = agents()
    log = plain.log_to(tmp_path, rows=500)

    def work(number):
        one = told.decide(context={"hour": number}, items={"a": {}, "b": {}})
        told.reward(one.id, 1.0)
        two = plain.decide(ARMS)
        if number:
            plain.reward(two.id, 0.5)

    def go_on():
        for agent in (told, plain):
            consistent(agent)
        for number in range(5):
            work(number)
        log.flush()  # the parent writes the log, and the child must not
        log.close()
        return "fine"

    for number in range(3):
        work(number)  # first calls import modules, and a fork while another thread imports is not supported
    with busy(work):
        for _ in range(5):
            assert child(go_on) == "fine"
    for agent in (told, plain):
        consistent(agent)
    log.close()
    counts = plain.counts
    assert read_log(tmp_path).rows == counts["learned"] + counts["defaulted"] + counts["expired"]
    assert dw.Agent(linear(dim=3), rewards=(0, 1)).learn_log(tmp_path) == counts["learned"] + counts["defaulted"]


def test_a_fork_makes_ids_of_its_own():
    agent = dw.Agent(linear(dim=3), rewards=(0, 1))
    process = agent.decide(ARMS).id.split(".")[1]
    assert child(lambda: agent.decide(ARMS).id.split(".")[1]) != process
    assert agent.decide(ARMS).id.split(".")[1] == process


def test_a_child_forked_in_the_middle_of_a_lesson_says_so_and_does_not_hang(monkeypatch):
    """A lesson that takes longer than a fork waits, or that forks itself."""
    monkeypatch.setattr(forking, "PATIENCE", 0.3)
    agent, other = (dw.Agent(linear(dim=3), rewards=(0, 1)) for _ in range(2))
    one = agent.decide(ARMS)
    with agent._parts.learning:
        assert child(lambda: other.decide(ARMS).arm) == str(other.decide(ARMS).arm)
        for call in (lambda: agent.decide(ARMS), lambda: agent.reward(one.id, 1.0), agent.to_bytes, agent.drift):
            found = child(call)
            assert found.startswith("BadInput: agent: wanted") and "load a snapshot" in found
    assert agent.reward(one.id, 1.0) == "learned"


def test_a_fork_does_not_lock_out_a_thread_that_holds_one_agent_and_needs_another():
    """A policy of the user's own may call another agent: its lesson then holds the locks of two agents."""
    inner, outer = (dw.Agent(linear(dim=3), rewards=(0, 1)) for _ in range(2))

    def work(_):
        with outer._parts.learning, inner._parts.learning:
            time.sleep(0.01)
        with inner._parts.learning, outer._parts.choosing:
            time.sleep(0.01)

    with busy(work, threads=1):
        for _ in range(3):
            assert child(lambda: outer.decide(ARMS).seq) == "1"


def test_agents_may_be_made_while_the_process_forks():
    with busy(lambda _: dw.Agent(linear(dim=3), rewards=(0, 1)), threads=2):
        for _ in range(5):
            assert child(lambda: dw.Agent(linear(dim=3), rewards=(0, 1)).decide(ARMS).seq) == "1"
