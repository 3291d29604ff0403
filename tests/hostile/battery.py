"""The policies under test, and a process that runs case after case; a crash of that process is a failure."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np

import driftwise as dw
from driftwise._internal.shipped import buffer_of

DIM = 3
TESTS = Path(__file__).resolve().parent.parent
KNOWN = {"dim": DIM, "horizon": 300, "path_length": 1.5}
# Seconds that a case may take, because some compile. An alarm ends a kernel that does not return, which is a failure.
PATIENCE = 60.0


def policies():
    """One of every kind of state. Short horizons for Logistic-UCB-2 and OFULog, so that lessons go beyond them."""
    names = {
        "SW-UCB": {}, "GLB-SW": {}, "SCB-WeightUCB": {}, "SCB-WeightUCB in one pass": {"estimate": "one-pass"},
        "BVD-GLM-UCB": {}, "BOB+LB-WeightUCB": {"block": 20}, "MASTER+OFUL": {}, "MASTER+LogUCB1": {},
        "Bank+LB-WeightUCB": {}, "Bank+SCB-WeightUCB": {}, "Logistic-UCB-2": {"horizon": 12},
        "OFULog": {"horizon": 40},
        "Auto": {}, "Auto for clicks": {"link": "logistic"},
    }  # fmt: skip
    found = {}
    for name, fields in names.items():
        known = dict(KNOWN) if "+" not in name else {"dim": DIM, "horizon": 300}
        row = name.removesuffix(" in one pass").removesuffix(" for clicks")
        found[name] = dw.make(row, **{**known, **fields})
    return found


def arms_of(chance, n=4):
    """Arms of norm at most 1: two fixed ones, the others fresh."""
    rows = chance.standard_normal((n, DIM))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True) * 1.001
    rows[:2] = np.eye(DIM)[:2]
    return rows


def lived(policy, rounds, seed=5):
    """A state that has learned something."""
    chance, state = np.random.default_rng(seed), policy.start(seed)
    for _ in range(rounds):
        arms = arms_of(chance)
        policy.learn(state, arms, policy.choose(state, arms).arm, float(chance.random() < 0.4))
    return state


class Walls:
    """A state whose arrays lie between guard regions: a write beyond either end changes one."""

    THICK = 512

    def __init__(self, state):
        self.state, self.whole = state, []
        for name, mark in (("floats", 1234.5), ("ints", 12345)):
            inside = getattr(state, name)
            whole = np.full(inside.size + 2 * self.THICK, mark, dtype=inside.dtype)
            whole[self.THICK : self.THICK + inside.size] = inside
            setattr(state, name, whole[self.THICK : self.THICK + inside.size])
            self.whole.append((whole, mark))
        state.packed = buffer_of(state.floats), buffer_of(state.ints)

    def stand(self):
        walls = [(whole[: self.THICK], whole[-self.THICK :], mark) for whole, mark in self.whole]
        return all((wall == mark).all() for before, after, mark in walls for wall in (before, after))


def live(policy, state, rounds, seed=11):
    """Rounds with late rewards, stopped clocks and idle time. Returns the messages of BadInput; others are raised."""
    chance, heard = np.random.default_rng(seed), []
    for number in range(rounds):
        arms = arms_of(chance)
        ticks, age = ((1.0, 0.0), (1.0, 2.5), (0.0, 0.0), (1.0, 0.0))[number % 4]
        given = dw.ArmSet(arms) if number % 8 < 4 else arms  # prepared arms use a shorter path
        try:
            choice = policy.choose(state, given)
            assert 0 <= choice.arm < len(arms), f"arm {choice.arm} of {len(arms)}"
        except dw.DriftwiseError as error:
            heard.append(str(error))
        try:
            policy.learn(state, given, number % len(arms), float(number % 3 == 0), ticks=ticks, age=age)
            if number % 7 == 3:
                policy.advance(state, 1.5)
        except dw.DriftwiseError as error:
            heard.append(str(error))
    assert all("\n" not in one and len(one) < 500 for one in heard), heard
    return heard


def suffer(kind, arguments):
    """Let a process run all cases. After a crash a new one continues with the next case. Returns the failures."""
    findings, first = [], 0
    while True:
        command = [sys.executable, "-m", "hostile.worker", kind, json.dumps(arguments), str(first)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")])}
        done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=TESTS, check=False)
        lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
        findings += [line["finding"] for line in lines if "finding" in line]
        if done.returncode == 0:
            return findings, lines[-1]["summary"]
        begun = [line for line in lines if "case" in line]
        if done.returncode > 0 or not begun:
            raise AssertionError(f"the process itself failed: {done.stderr[-3000:]}")
        death = signal.Signals(-done.returncode).name
        findings.append(f"{death}{' (no return)' if death == 'SIGALRM' else ''}: {begun[-1]['what']}")
        first = begun[-1]["case"] + 1
        if len(findings) >= 40:
            return findings, None
