"""What one call walks through: files, functions and depth of Python's calls within driftwise, all run as Python.

    python bench/walks.py            # every walk
    python bench/walks.py --names    # also the functions, in the order of their first call

A function counts once. Comprehensions, lambdas and modules that are imported count as files and as depth, not as
functions. Depth is the largest number of calls of driftwise within each other in one thread. Agent and server have
answered twenty times before; the simulation and the command have not run.
"""

from __future__ import annotations

import argparse
import contextlib
import http.client
import io
import json
import os
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

os.environ["NUMBA_DISABLE_JIT"] = "1"

import numpy as np

import driftwise as dw

SOURCES = str(Path(dw.__file__).parent)
ARMS = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])


class Walk:
    """What was called while it was recorded, and how deep."""

    def __init__(self) -> None:
        self.called: dict[Any, None] = {}
        self.depth, self._inside = 0, threading.local()

    @property
    def files(self) -> set[str]:
        return {code.co_filename for code in self.called}

    @property
    def functions(self) -> list[Any]:
        """Their code, in the order of the first call."""
        return [code for code in self.called if not code.co_name.startswith("<")]

    def see(self, frame: FrameType, event: str, arg: object) -> None:
        name = frame.f_code.co_filename
        if event not in ("call", "return") or not name.startswith(SOURCES):
            return
        depth = max(0, getattr(self._inside, "depth", 0) + (1 if event == "call" else -1))
        self._inside.depth = depth
        if event == "call":
            self.called.setdefault(frame.f_code)
            self.depth = max(self.depth, depth)

    def __enter__(self) -> Walk:
        sys.setprofile(self.see)
        return self

    def __exit__(self, *_: object) -> None:
        sys.setprofile(None)


def of_agent(make: Callable[[], Any], what: str) -> Walk:
    """A decision or a reward of an agent that has made some."""
    agent = make()
    for _ in range(20):
        agent.reward(agent.decide(ARMS).id, 0.5)
    walk = Walk()
    if what == "decide":
        with walk:
            agent.decide(ARMS)
    else:
        id = agent.decide(ARMS).id
        with walk:
            agent.reward(id, 0.5)
    return walk


def auto() -> Any:
    return dw.Agent.for_values(2, -2.0, 2.0)


def alone() -> Any:
    return dw.Agent(dw.make("OFUL", dim=2, horizon=1000), rewards=(-2.0, 2.0))


def of_simulation() -> Walk:
    world = dw.worlds.Turn(dim=2, arms=5, horizon=50)
    policies = {"it": dw.make("LB-WeightUCB", **world.facts)}
    with Walk() as walk:
        dw.simulate(policies, world, trials=1, jobs=1, progress=False)
    return walk


def of_request(folder: Path) -> Walk:
    """A decision over HTTP, from the socket to the disk and back. The event loop records, in this thread; a thread
    without a record is the client."""
    from driftwise.service.http.app import app
    from driftwise.service.http.logs import ServerLog
    from driftwise.service.http.run import run, service_of
    from driftwise.service.stores.opening import open_store

    walk, port, ready, recording = Walk(), [0], threading.Event(), threading.Event()

    def seen(frame: FrameType, event: str, arg: object) -> None:
        if recording.is_set():
            walk.see(frame, event, arg)

    threading.setprofile(seen)
    sys.setprofile(seen)
    log = ServerLog(out=io.StringIO())
    service = service_of(open_store(folder / "walk.db"), later=True)
    made = app(service, log, ready.set)

    def ask() -> None:
        ready.wait(60)
        client = http.client.HTTPConnection("127.0.0.1", port[0], timeout=60)

        def send(method: str, path: str, body: Any) -> Any:
            client.request(method, f"/v1/streams/home{path}", json.dumps(body), {"content-type": "application/json"})
            answer = client.getresponse()
            told = answer.read()
            assert answer.status in (200, 201), told
            return json.loads(told)

        send("PUT", "", {"policy": {"name": "OFUL", "dim": 2, "horizon": 1000}, "rewards": [0, 1]})
        for _ in range(20):
            send("POST", "/reward", {"id": send("POST", "/decide", {"arms": ARMS.tolist()})["id"], "value": 0.5})
        recording.set()
        send("POST", "/decide", {"arms": ARMS.tolist()})
        recording.clear()
        made.end()

    client = threading.Thread(target=ask)
    client.start()
    try:
        run(made, "127.0.0.1", 0, lambda bound: port.__setitem__(0, bound))
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
        client.join()
        log.close()
    return walk


def of_evaluation(folder: Path) -> Walk:
    """The command on a log of an agent, with the page that it writes."""
    from driftwise.cli import app as command

    agent = dw.Agent(dw.make("OFUL", dim=2, horizon=1000), rewards=(-2.0, 2.0), epsilon=0.2, seed=1)
    with agent.log_to(folder / "log", arms=True):
        for _ in range(60):
            agent.reward(agent.decide(ARMS).id, 0.5)
    with Walk() as walk, contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        command(["evaluate", str(folder / "log"), "--out", str(folder / "page")], standalone_mode=False)
    return walk


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--names", action="store_true", help="also the functions")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        walks = {
            "agent.decide, Auto": lambda: of_agent(auto, "decide"),
            "agent.reward, Auto": lambda: of_agent(auto, "reward"),
            "agent.reward, one LinearUCB": lambda: of_agent(alone, "reward"),
            "simulate LB, 1 trial": of_simulation,
            "HTTP decide → disk → answer, OFUL": lambda: of_request(Path(folder)),
            "driftwise evaluate": lambda: of_evaluation(Path(folder)),
        }
        print("| walk | files | functions | depth |\n|---|---|---|---|")
        for name, walked in walks.items():
            walk = walked()
            print(f"| {name} | {len(walk.files)} | {len(walk.functions)} | {walk.depth} |", flush=True)
            for code in walk.functions if options.names else ():
                print(f"    {Path(code.co_filename).name}:{code.co_firstlineno} {code.co_qualname}")


if __name__ == "__main__":
    main()
