"""An hour of a product in two minutes: users whose tastes turn and whose mood moves, served over HTTP through a
restart, a deploy and a kill, with clicks that come late or never.

Then the log is exported and refolded here: `Agent.learn_log` comes to the server's state, and an agent that learns the
log step by step plays the same arms, to the last bit. Beside it play a policy that forgets nothing, on the same visits,
and the best possible.
"""

from __future__ import annotations

import heapq
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import driftwise as dw
from driftwise._internal.validate import Floats
from driftwise.service.client import Client
from driftwise.service.core.fold import digest
from driftwise.service.core.verify import verify
from driftwise.service.operate.export import export

DIM, SHELF, SHOWN = 6, 30, 8
EPSILON = 0.02
TICKS, PATIENCE = 6000, 1 / 80  # of an hour: no click comes after 45 seconds
FLAT = ("x", "reward", "reward_seq", "reward_tick", "born", "seq")  # columns of a log that are arrays
EVENTS = ("restart", "deploy", "kill -9")


def time_of(seconds: float) -> dict[str, Any]:
    """The simulated time, if an hour takes so many seconds."""
    return {"clock": "wall", "tick": seconds / TICKS, "expire_after": PATIENCE * seconds, "default_reward": 0.0}


class Visits:
    """The arms of every visit, the click of each arm, and when the click would come."""

    def __init__(self, count: int, seed: int = 0) -> None:
        chance = np.random.default_rng(seed)
        shelf = chance.standard_normal((SHELF, DIM - 1))
        users = chance.choice([-1.0, 1.0], size=(12, DIM - 1))  # users differ in their taste
        picked = np.array([chance.choice(SHELF, SHOWN, replace=False) for _ in range(count)])
        tastes = shelf[picked] * users[chance.integers(len(users), size=count)][:, None, :]
        tastes *= 0.8 / np.linalg.norm(tastes, axis=2, keepdims=True)
        self.arms = np.concatenate([tastes, np.full((count, SHOWN, 1), 0.6)], axis=2)
        turn = 3.0 * np.pi * np.arange(count) / count  # one and a half turns
        theta = np.zeros((count, DIM - 1))
        theta[:, 0], theta[:, 1] = np.cos(turn), np.sin(turn)
        mood = 0.45 + 0.1 * np.sin(2.0 * turn)
        self.means = np.clip(mood[:, None] + 0.5 * np.einsum("tad,td->ta", tastes, theta), 0.02, 0.98)
        self.drawn = chance.random(count)
        late = chance.random(count) < 0.03
        self.delay = np.where(late, 3.0, chance.uniform(0.0, 0.8, count)) * PATIENCE  # in hours

    def __len__(self) -> int:
        return len(self.arms)

    def clicks(self, visit: int, arm: int) -> bool:
        return bool(self.drawn[visit] < self.means[visit, arm])


# ------------------------------------------------------------------------------------------ a server


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def started(db: Path, port: int) -> Any:
    """A server in a process of its own."""
    command = [sys.executable, "-m", "driftwise.cli", "serve", "--db", str(db), "--port", str(port)]
    return subprocess.Popen(command, stderr=subprocess.DEVNULL)


class Serving:
    """The server of a product, which is replaced while it gets requests."""

    def __init__(self, db: Path, start: Callable[[Path, int], Any]) -> None:
        self.db, self.start, self.port = db, start, free_port()
        self.process = start(db, self.port)

    def happen(self, event: str) -> None:
        if event == "deploy":  # another process at another address takes over
            self.process.terminate()
            self.process.wait(30)
            self.port = free_port()
        elif event == "restart":
            self.process.terminate()
            self.process.wait(30)
        else:
            self.process.kill()
            self.process.wait(30)
        self.process = self.start(self.db, self.port)

    def stop(self) -> None:
        self.process.terminate()
        self.process.wait(30)


# ------------------------------------------------------------------------------------------ users


class Seen(NamedTuple):
    """The arm of every visit, its number in the log, and the longest wait around each event."""

    arms: list[int]
    seqs: list[int]
    waits: dict[str, float]
    verdicts: dict[str, int]


def served(serving: Serving, visits: Visits, seconds: float, threads: int = 8) -> Seen:
    """All visits over HTTP, by so many callers, through all events."""
    count, turn, pace = len(visits), threading.Lock(), {"next": 0.0}
    numbers = iter(range(count))
    coming: list[tuple[float, str]] = []
    arms, seqs, waits = [-1] * count, [0] * count, dict.fromkeys(("", *EVENTS), 0.0)
    verdicts: dict[str, int] = {}
    due = {count * (place + 1) // (len(EVENTS) + 1): event for place, event in enumerate(EVENTS)}
    busy = {"now": ""}

    def change(event: str) -> None:
        busy["now"] = event
        serving.happen(event)

    mine, clients = threading.local(), []

    def call(ask: Callable[[Client], Any]) -> Any:
        """Send a request until a server answers."""
        asked = time.monotonic()
        while True:
            if getattr(mine, "port", 0) != serving.port:
                mine.port = serving.port
                mine.client = Client(f"http://127.0.0.1:{mine.port}", tries=2)
                clients.append(mine.client)
            try:
                answer = ask(mine.client)
            except dw.BadInput:
                time.sleep(0.05)
                continue
            event = busy["now"]
            waits[event] = max(waits[event], time.monotonic() - asked)
            return answer

    def reward(id: str) -> None:
        verdict = call(lambda client: client.reward("home", id, 1.0))["verdict"]
        with turn:
            verdicts[verdict] = verdicts.get(verdict, 0) + 1

    def user() -> None:
        while True:
            with turn:
                visit = next(numbers, None)
                # A visit that waits for a server delays later visits, so there is no crowd when the server is back.
                due_at = pace["next"] = max(pace["next"] + seconds / count, time.monotonic())
            if visit is None:
                return
            time.sleep(max(0.0, due_at - time.monotonic()))
            with turn:
                ripe = [heapq.heappop(coming)[1] for _ in range(len(coming)) if coming[0][0] <= time.monotonic()]
            if visit in due:
                threading.Thread(target=change, args=(due[visit],)).start()
            for id in ripe:
                reward(id)
            rows = visits.arms[visit].tolist()
            answer = call(lambda client: client.decide("home", rows, id=f"visit-{visit}"))  # noqa: B023 - called here
            arms[visit], seqs[visit] = answer["arm"], answer["seq"]
            if visits.clicks(visit, answer["arm"]):
                with turn:
                    heapq.heappush(coming, (time.monotonic() + seconds * visits.delay[visit], answer["id"]))

    body = {"policy": {"name": "Auto", "dim": DIM}, "rewards": [0, 1], "epsilon": EPSILON, **time_of(seconds)}
    call(lambda client: client.put("home", **body))
    users = [threading.Thread(target=user) for _ in range(threads)]
    for one in users:
        one.start()
    for one in users:
        one.join()
    for client in clients:
        client.close()
    return Seen(arms, seqs, waits, verdicts)


def alone(policy: Any, visits: Visits) -> list[int]:
    """The same visits with an agent in this process, with the same delays of clicks."""
    agent, arms = agent_of(policy, time_of(1.0)), []
    coming: list[tuple[float, str]] = []
    for visit in range(len(visits)):
        now = visit / len(visits)
        while coming and coming[0][0] <= now:
            agent.reward(heapq.heappop(coming)[1], 1.0, now=now)
        made = agent.decide(visits.arms[visit], now=now)
        arms.append(made.arm)
        if visits.clicks(visit, made.arm):
            heapq.heappush(coming, (now + visits.delay[visit], made.id))
    return arms


def agent_of(policy: Any, time: dict[str, Any]) -> dw.Agent:
    return dw.Agent(policy, rewards=(0.0, 1.0), epsilon=EPSILON, **time)


# ------------------------------------------------------------------------------------------ the log again


def refolded(log: Path, seconds: float) -> str:
    """The digest of the state after `learn_log`."""
    agent = agent_of(dw.make("Auto", dim=DIM), time_of(seconds))
    agent.learn_log(log)
    return digest(agent.policy, agent._parts.states.front)


def replayed(log: Path, seconds: float) -> Iterator[bool]:
    """Make every decision again, by an agent that learns the log up to the state of that decision, and compare."""
    lessons: dict[str, list[Any]] = {name: [] for name in (*FLAT, "decision_id", "verdict")}
    decisions = []
    for one in dw.read_log(log).batches((*lessons, "arm", "arms", "score", "state_seq")):
        for row in range(one.rows):
            played = (int(one.arm[row]), float(one.score[row]), int(one.born[row]))
            decisions.append((int(one.seq[row]), int(one.state_seq[row]), one.decision_id[row], one.arms[row], played))
            if one.reward_seq[row]:  # rows are in the order of their rewards
                for name, column in lessons.items():
                    column.append(getattr(one, name)[row])
    tick = seconds / TICKS  # defaults are rows of the log, so this agent makes none itself
    agent, learned = agent_of(dw.make("Auto", dim=DIM), {"clock": "wall", "tick": tick}), 0
    for _, state_seq, id, arms, played in sorted(decisions, key=lambda one: one[0]):
        if learned < state_seq:
            stretch = {name: column[learned:state_seq] for name, column in lessons.items()}
            agent.learn_log({name: np.array(column) if name in FLAT else column for name, column in stretch.items()})
            learned = state_seq
        made = agent.decide(arms, id=id, now=(played[2] + 0.5) * tick)
        yield (made.arm, made.score, made.born) == played


class Hour(NamedTuple):
    """The results."""

    seen: Seen
    same: int  # decisions that an agent played again
    refolds: bool
    differs: list[str]
    means: dict[str, Floats]
    counts: dict[str, int]


def hour(count: int, seconds: float, start: Callable[[Path, int], Any] = started, threads: int = 8) -> Hour:
    """Run the whole hour."""
    visits = Visits(count)
    with tempfile.TemporaryDirectory() as name:
        db, log = Path(name) / "a.db", Path(name) / "log"
        serving = Serving(db, start)
        try:
            seen = served(serving, visits, seconds, threads)
            with Client(f"http://127.0.0.1:{serving.port}") as client:
                live = client.stream("home")
        finally:
            serving.stop()
        (told,) = verify(db)
        export(db, log)
        same = sum(replayed(log, seconds))
        refolds = refolded(log, seconds) == live["digest"] == told.digest
    at = np.arange(count)
    means = {
        "the best possible": visits.means.max(axis=1),
        "the service": visits.means[at, seen.arms],
        "forgets nothing": visits.means[at, alone(dw.make("OFUL", dim=DIM, horizon=count), visits)],
        "by chance": visits.means.mean(axis=1),
    }
    return Hour(seen, same, refolds, told.differs, means, live["counts"])
