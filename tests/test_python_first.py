"""Entries run as Python before they are compiled: same bits, same types, and only while that saves time."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import driftwise as dw
from driftwise._internal import compiling, python_first
from driftwise.kernels import entry, linear, tapes
from driftwise.policies.engines import Sizes

pytestmark = pytest.mark.skipif(compiling.INTERPRETED, reason="everything is interpreted")

LIVE = """
import hashlib, json, sys
import numpy as np
import driftwise as dw
arms = np.array([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [-0.6, 0.8]])
known = {"dim": 2, "horizon": 60, "path_length": 1.0}
agents = {
    "values": dw.Agent.for_values(2, -1.0, 1.0, now=lambda: 0.0), "clicks": dw.Agent.for_clicks(2, now=lambda: 0.0),
    **{name: dw.Agent(dw.make(name, **known), rewards=(0.0, 1.0), now=lambda: 0.0)
       for name in ("MASTER+OFUL", "BOB+GLB-WeightUCB", "D-LinTS", "SCB-SW")},
}
shown = {}
for name, agent in agents.items():
    made = []
    for t in range(12):
        made.append(agent.decide(arms[: 2 + t % 3], id=str(t)))
        agent.reward(str(t), float(t % 2))
    types = sorted({type(part).__name__ for one in made for part in one})
    state = agent.state
    shown[name] = repr(made), types, hashlib.sha256(state.floats.tobytes() + state.ints.tobytes()).hexdigest()
print(json.dumps([shown, "numba" in sys.modules]))
"""


def printed(script: str, **settings: str) -> Any:
    command, environment = [sys.executable, "-c", script], {**os.environ, **settings}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_decisions_as_python_are_those_of_compiled_code(tmp_path: Path) -> None:
    early, loaded = printed(LIVE, DRIFTWISE_PATIENCE="1e9", NUMBA_CACHE_DIR=str(tmp_path))
    assert not loaded, "nothing needs a compiler"
    assert early == printed(LIVE, DRIFTWISE_PATIENCE="0")[0]


def _halve_(numbers: Any, by: Any) -> float:
    numbers[0] += 1.0
    numbers[1] = numbers[1] / float(by[0])
    return numbers[1]


class Compiler:
    """Stands for numba's compiler."""

    @staticmethod
    def called_of(kernel: Any) -> Any:
        def compiled(numbers: Any, by: Any) -> str:
            numbers[0] += 1.0
            return f"compiled {kernel.__name__}"

        return compiled


@pytest.fixture
def halve_(monkeypatch: pytest.MonkeyPatch) -> Any:
    """An entry that is compiled late, of which nothing is stored."""
    monkeypatch.setattr(compiling, "compiler", lambda what: Compiler)
    monkeypatch.setattr(python_first, "patience", lambda: 0.05)
    monkeypatch.setattr(python_first, "_at_once", False)
    monkeypatch.setattr(python_first, "was_compiled", lambda name: False)
    return compiling.late(entry(_halve_))


def test_an_entry_runs_as_python_until_its_time_is_spent(halve_: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers, by, held = np.array([0.0, 8.0]), np.array([2.0]), compiling.at_hand(halve_)
    found = [halve_(numbers, by), held(numbers, by)]
    assert found == [4.0, 2.0] and {type(one) for one in found} == {float} and numbers.tolist() == [2.0, 2.0]
    halve_.spent.seconds = 1.0
    assert [held(numbers, by), halve_(numbers, by), held(numbers, by)] == ["compiled _halve_"] * 3
    assert compiling.at_hand(halve_)(numbers, by) == "compiled _halve_" and held is not compiling.at_hand(halve_)


def test_where_python_raises_the_compiled_entry_gets_the_arrays_as_they_were(halve_: Any) -> None:
    numbers, raising = np.array([0.0, 8.0]), compiling.late(entry(_raises_))
    assert raising(numbers, np.zeros(1)) == "compiled _raises_" and numbers.tolist() == [1.0, 8.0]


def _raises_(numbers: Any, by: Any) -> float:
    numbers[0] += 100.0
    return 1.0 / float(by[0])


def test_an_interrupt_leaves_no_half_of_a_lesson(halve_: Any) -> None:
    numbers, stopped = np.array([0.0, 8.0]), compiling.late(entry(_is_stopped_))
    with pytest.raises(KeyboardInterrupt):
        stopped(numbers, np.zeros(1))
    assert numbers.tolist() == [0.0, 8.0]


def _is_stopped_(numbers: Any, by: Any) -> float:
    numbers[0] += 100.0
    raise KeyboardInterrupt


def test_a_call_on_many_numbers_and_a_server_do_not_wait(halve_: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    large = compiling.late(entry(_raises_))
    assert large(np.zeros(30_000), np.ones(1)) == "compiled _raises_"
    monkeypatch.setattr(python_first, "_at_once", True)
    assert halve_(np.ones(2), np.ones(1)) == "compiled _halve_"


def test_machine_code_of_a_wheel_is_used_at_once_and_without_a_compiler_python_runs(
    halve_: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    shipped = compiling.late(entry(_raises_))
    shipped.ship(lambda numbers, by: "shipped")
    assert not shipped.is_early(1) and shipped(np.ones(2), np.ones(1)) == "shipped"
    monkeypatch.setattr(compiling, "can_compile", lambda: False)
    assert not halve_.is_early(1) and halve_(np.array([0.0, 8.0]), np.full(1, 4.0)) == 2.0
    with pytest.raises(dw.BadInput, match=r'_raises_: .*pip install "driftwise\[jit\]"'):
        compiling.late(entry(_raises_))(np.ones(2), np.zeros(1))


def test_few_rounds_are_brief_and_many_are_not(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(python_first, "patience", lambda: 1.0)
    monkeypatch.setattr(python_first, "_at_once", False)
    stored: list[str] = []
    monkeypatch.setattr(python_first, "was_compiled", lambda name: name in stored)
    # A memory that no other test plays in this process has a loop that is not compiled yet.
    policy = dw.LinearUCB(dim=3, memory=dw.Restart(5), lam=1.0, delta=0.1, two_matrix="correct")
    loop = policy._loop(Sizes(1, 3, 7, 50))
    monkeypatch.setattr(loop, "spent", python_first.Spent(loop.__name__))
    monkeypatch.delitem(vars(loop), "call", raising=False)
    assert policy.is_brief(Sizes(1, 3, 7, 50)) and not policy.is_brief(Sizes(1, 3, 7, 10**6))
    assert policy.is_brief(Sizes(1, 3, 7, 50, 3)) and not policy.is_brief(Sizes(1, 3, 7, 50, 10**5))
    stored.append(loop.__name__)
    monkeypatch.setattr(loop, "spent", python_first.Spent(loop.__name__))
    assert not policy.is_brief(Sizes(1, 3, 7, 50))


def test_a_patience_that_is_no_number_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DRIFTWISE_PATIENCE", "soon")
    python_first.patience.cache_clear()
    try:
        with pytest.raises(dw.BadInput, match=r"^DRIFTWISE_PATIENCE: .*soon"):
            python_first.patience()
    finally:
        python_first.patience.cache_clear()


@pytest.mark.parametrize(("reward", "norm"), [("gaussian", "unit"), ("bernoulli", "clip")])
def test_a_world_has_the_bits_of_python_and_of_compiled_code(reward: Any, norm: Any, monkeypatch: Any) -> None:
    drawing: list[Any] = [tapes.turn_, tapes.normals_, tapes.lay_out_, linear.best_means_]
    monkeypatch.setattr(python_first, "was_compiled", lambda name: False)
    monkeypatch.setattr(python_first, "_at_once", False)

    def bits(patience: float) -> tuple[list[bytes], bool]:
        monkeypatch.setattr(python_first, "patience", lambda: patience)
        for one in drawing:
            monkeypatch.setattr(one, "spent", python_first.Spent(one.__name__))
            one.__dict__.pop("call", None)
        world = dw.worlds.Turn(dim=3, arms=7, horizon=100, reward=reward, norm=norm, fresh=True)
        return [part.tobytes() for tape in world.tapes(seed=4) for part in tape], drawing[0].spent.seconds > 0.0

    python, compiled = bits(1e9), bits(0.0)
    assert python[0] == compiled[0] and (python[1], compiled[1]) == (True, False)
