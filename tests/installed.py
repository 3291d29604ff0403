"""Does an installed driftwise work? python -I tests/installed.py VERSION [EXTRA…], in a clean environment."""

import contextlib
import importlib.metadata
import importlib.util
import json
import signal
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from pathlib import Path

VERSION, EXTRAS = sys.argv[1], sys.argv[2:]

import numpy as np  # noqa: E402

import driftwise as dw  # noqa: E402

COMMAND = [str(Path(sys.executable).with_name("driftwise"))]


def command(*words, ok=0):
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, check=False)
    assert done.returncode == ok, done.stderr
    return done


def refused(call):
    """The sentence that something missing is told by."""
    with contextlib.suppress(dw.BadInput):
        call()
        raise AssertionError("nothing was refused")


def lived(rounds=30):
    policy = dw.LinearUCB(dim=2, memory=dw.Fade(0.01), lam=1.0, delta=0.1)  # of all families it compiles fastest
    chance, agent = np.random.default_rng(0), dw.Agent(policy, rewards=(-2.0, 2.0))
    for _ in range(rounds):
        one = agent.decide(np.eye(2))
        agent.reward(one.id, float(np.clip(chance.standard_normal(), -2.0, 2.0)))
    return agent


def core():
    assert dw.__version__ == importlib.metadata.version("driftwise") == VERSION
    assert "site-packages" in dw.__file__, dw.__file__
    assert command("--version").stdout.strip() == f"driftwise {VERSION}"
    assert "LB-WeightUCB" in command("list", "--all").stdout and "0.977118" in command(
        "tune", "--dim", "2", "--horizon", "6000", "--path-length", "6.283").stdout
    examined = json.loads(command("doctor", "--json").stdout)
    assert examined["versions"]["driftwise"] == VERSION
    if not examined["compiled code"]["machine code"].startswith("v"):
        return without(examined["compiled code"])
    odd()
    agent = lived()
    with tempfile.TemporaryDirectory() as folder:
        agent.save(Path(folder) / "a.agent")
        assert dw.Agent.load(Path(folder) / "a.agent").state.to_bytes() == agent.state.to_bytes()
    if not EXTRAS:
        compiled()


def odd():
    """Arms that are unaligned, laid out by columns, swapped or read-only are those that they show."""
    plain, policy = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.75]]), dw.make("OFUL", dim=2, horizon=60)
    unaligned = np.ndarray((3, 2), np.float64, bytearray(plain.nbytes + 1), offset=1)
    unaligned[:] = plain
    fixed = plain.copy()
    fixed.flags.writeable = False
    found = []
    for rows in (plain, unaligned, np.asfortranarray(plain), plain.astype(">f8"), fixed):
        for one in (policy, dw.make("dLinUCB", dim=2)):
            state = one.start(0)
            one.learn(state, rows, one.choose(state, rows).arm, 1.0)
            found.append(one.choose(state, rows))
    assert set(found[0::2]) == {found[0]} and set(found[1::2]) == {found[1]}, found


def two_trials(folder):
    """A spec of two trials; its file."""
    file = Path(folder) / "two.toml"
    file.write_text('title = "two"\ntrials = 2\n[world]\nkind = "Turn"\nhorizon = 60\n[[policies]]\nname = "OFUL"\n')
    return str(file)


def without(found):
    """A wheel without machine code: numba compiles, or Python decides, and doctor names the extra that compiles."""
    lived(3)
    if not found["compiles"]:
        assert any("driftwise[jit]" in one for one in json.loads(command("doctor", "--json").stdout)["slow"])


def compiled():
    """The README's simulation: what it prints does not depend on the machine; and the sentences for what is missing."""
    world = dw.worlds.Turn(dim=2, arms=50, horizon=6000, turns=1)
    policies = {name: dw.make(name, **world.facts) for name in ("LB-WeightUCB", "OFUL", "SW-UCB")}
    result = dw.simulate(policies, world, trials=20, seed=0)
    found = {name: round(float(result.final(name).mean())) for name in policies}
    assert (found["LB-WeightUCB"], found["OFUL"]) == (1053, 4360), found
    assert result.interval("OFUL")[1] > 0.0
    clicks = dw.worlds.Turn(dim=2, arms=2, horizon=12, reward="bernoulli", link="logistic")
    for name in ("GLM-UCB-code", "LogUCB1-code", "OFUGLB", "GLB-OMD", "dLinUCB", "GLR+OFUL", "Restarted-WeightedOFUL+"):
        played = dw.simulate({name: dw.make(name, **clicks.facts)}, clicks, trials=1, jobs=1)
        assert played.arms[name].shape == (1, 12), name
    with tempfile.TemporaryDirectory() as folder:
        for words in (["reproduce", "lb", "--trials", "2"], ["run", two_trials(folder)]):
            said = command(*words, "--jobs", "1", "--out", folder).stderr
            assert said.splitlines()[-1].startswith("rounds: machine code of the wheel; machine code: v"), said
    refused(lambda: lived().drift().draw("drift.png"))
    assert "driftwise[serve]" in command("serve", "--db", "x.db", ok=2).stderr


def plot():
    with tempfile.TemporaryDirectory() as folder:
        lived().drift().draw(Path(folder) / "drift.png")
        assert (Path(folder) / "drift.png").read_bytes()[:4] == b"\x89PNG"


def logs():
    with tempfile.TemporaryDirectory() as folder:
        agent = dw.Agent.for_values(2, -2.0, 2.0)
        with agent.log_to(folder, arms=True):
            for number in range(20):
                agent.reward(agent.decide(np.eye(2)).id, number / 20)
        assert list(Path(folder).glob("*.parquet"))
        again = dw.Agent.for_values(2, -2.0, 2.0)
        assert again.learn_log(folder) == 20 and again.state.to_bytes() == agent.state.to_bytes()


def links():
    def slope(z):
        return np.exp(-np.abs(z)) / (1 + np.exp(-np.abs(z))) ** 2

    link = dw.research.Link(mean=lambda z: 1 / (1 + np.exp(-z)), slope=slope, k=0.25, c=0.19)
    policy = dw.research.GLMUCB(dim=2, memory=dw.Keep(), lam=0.05, delta=0.1, S=1.0, link=link, R=0.5, capacity=16)
    state = policy.start()
    for _ in range(12):
        policy.learn(state, np.eye(2), 0, 1.0)  # far outside the ball of S = 1: it is projected
    assert np.isfinite(policy.scores(state, np.eye(2)).mean).all()


def serve():
    with tempfile.TemporaryDirectory() as folder:
        words = [*COMMAND, "serve", "--db", str(Path(folder) / "a.db"), "--port", "18753"]
        with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as server:
            try:
                ask("PUT", "", {"policy": {"name": "OFUL", "dim": 2, "horizon": 100}, "rewards": [0, 1]}, patience=60.0)
                assert ask("POST", "/decide", {"id": "a", "arms": [[1, 0], [0, 1]]})["arm"] in (0, 1)
                assert ask("POST", "/reward", {"id": "a", "value": 1})["verdict"] == "learned"
            finally:
                server.send_signal(signal.SIGTERM)
                server.wait(30)
        assert server.returncode == 0, server.stderr
        command("verify", str(Path(folder) / "a.db"))


def ask(method, path, body, patience=1.0):
    address, end = f"http://127.0.0.1:18753/v1/streams/home{path}", time.monotonic() + patience
    head = {"Content-Type": "application/json"}
    request = urllib.request.Request(address, json.dumps(body).encode(), head, method=method)
    while True:
        try:
            with urllib.request.urlopen(request, timeout=30) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError:
            raise
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.2)


def client():
    from driftwise.service.client import Client

    Client("http://127.0.0.1:9").close()


def data():
    from driftwise.data import sets

    assert sets.prompts().rounds > 100


def cluster():
    """Two trials by a process that Dask has started."""
    with tempfile.TemporaryDirectory() as folder:
        command("run", two_trials(folder), "--out", str(Path(folder) / "out"), "--on", "local:1")
        with np.load(Path(folder) / "out" / "curves.npz") as curves:
            assert curves["two/OFUL"].shape == (2, 2), curves["two/OFUL"].shape


def postgres():
    """The driver connects, and no server answers at this port; without the extras the message names them."""
    wanted = "a PostgreSQL server that answers" if "serve" in EXTRAS else "driftwise[serve]"
    assert wanted in command("verify", "postgresql://nobody@127.0.0.1:9/none", ok=2).stderr


def present(extra):
    """What every extra owes: doctor finds all it brings."""
    assert not json.loads(command("doctor", "--json").stdout)["extras"][extra].startswith("no "), extra


if __name__ == "__main__":
    core()
    for extra in EXTRAS:
        present(extra)
        globals().get(extra, lambda: None)()
    compiled_by = importlib.metadata.version("numba") if importlib.util.find_spec("numba") else "none"
    print(f"works on Python {sys.version.split()[0]} with numpy {np.__version__}, numba {compiled_by}")
