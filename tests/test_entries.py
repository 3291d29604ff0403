"""The closed list of live entries, and the table of engines."""

from __future__ import annotations

import ast
import importlib
import itertools
import os
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import driftwise as dw
from driftwise import checks, research
from driftwise.kernels import entries, point
from driftwise.policies import engines

KNOWN = {"dim": 2, "horizon": 60, "path_length": 1.0, "changes": 2}
MEMORIES = [dw.Keep(), dw.Fade(0.05), dw.Window(9), dw.Restart(7)]
CALLS = [live.call for live in entries.LIST.values()]


def points():
    """Every row of the catalogue, and model × memory × rule × adaptation by constructors."""
    made = {row["name"]: dw.make(row["name"], **KNOWN) for row in dw.catalogue()}
    common = {"dim": 2, "lam": 1.0, "delta": 0.1}
    alone = []
    for memory in MEMORIES:
        for fields in ({}, {"two_matrix": "correct"}, {"radius": "posterior", "lam": None}):
            alone.append(dw.LinearUCB(**{**common, "memory": memory, **fields}))
        alone.append(research.LinearSampling(**{**common, "memory": memory}))
        for kind, estimate in itertools.product((research.GLMUCB, research.SelfConcordantUCB), ("exact", "one-pass")):
            if estimate == "exact" or not memory.room():
                alone.append(kind(**common, memory=memory, estimate=estimate, horizon=60, R=0.5, link="logistic"))
        alone.append(dw.PosteriorUCB(dim=2, memory=memory, horizon=60, estimate="exact"))
    alone.append(dw.LinearUCB(**{**common, "memory": dw.Fade(0.1)}, two_matrix="as-published"))
    links = ("identity", "probit")
    alone += [research.Auto(dim=2, memory=memory, link=link) for memory in MEMORIES[:2] for link in links]
    made |= {f"{number}: {one!r}": one for number, one in enumerate(alone)}
    for name, one in list(made.items()):
        if isinstance(one, (dw.LinearUCB, research.GLMUCB)) and not isinstance(one, research.LinearSampling):
            for wrap in (lambda b: research.Master(base=b, horizon=60), lambda b: research.FadeBank(base=b),
                         lambda b: research.BanditOverBandit(base=b, horizon=60, grid=(b.memory,))):  # fmt: skip
                try:
                    made[f"{len(made)} over {name}"] = wrap(one)
                except dw.BadInput:  # a base that this adaptation refuses
                    continue
    return made


def test_every_point_finds_its_live_entries_in_the_list():
    made = points()
    assert len(made) > 100
    for name, policy in made.items():
        own = policy.entries
        for call in (own.scores, own.learn, own.fold, own.form, own.ball, own.score_many):
            assert call is None or any(call is one for one in CALLS), (name, call)


def called(layer):
    """What a layer imports from kernels, directly or as an attribute of a module: name and object."""
    for path in sorted((Path(dw.__file__).parent / layer).rglob("*.py")):
        tree, known = ast.parse(path.read_text(encoding="utf-8")), {}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("driftwise.kernels"):
                home = importlib.import_module(node.module)
                for one in node.names:
                    if not hasattr(home, one.name):
                        importlib.import_module(f"{node.module}.{one.name}")
                    known[one.asname or one.name] = getattr(home, one.name)
        yield from known.items()
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in known:
                if isinstance(known[node.value.id], ModuleType):
                    yield node.attr, getattr(known[node.value.id], node.attr, None)


@pytest.mark.skipif(bool(os.environ.get("NUMBA_DISABLE_JIT")), reason="nothing is compiled")
@pytest.mark.parametrize("layer", ["policies", "worlds", "tables", "agent", "data", "service"])
def test_live_layers_call_no_compiled_function_beside_the_list(layer):
    """Formulas run as Python where Python calls them."""
    beside = {name for name, one in called(layer) if hasattr(one, "py_func") and not any(one is call for call in CALLS)
              and not getattr(one, "plain", False)}  # fmt: skip
    # These play many rounds in one call where numba is there, and simulations do without them where it is not.
    studies = {"policies": {"play_exp3_", "play_save_", "play_weighted_"}}
    assert beside == studies.get(layer, set())


def test_names_of_the_list_are_the_names_of_the_functions():
    for name, live in entries.LIST.items():
        function = getattr(live.call, "py_func", live.call)
        assert function.__name__ in (name, name.removesuffix("_"), "mean"), name
    assert len({id(call) for call in CALLS}) == len(CALLS)


@pytest.mark.skipif(bool(os.environ.get("NUMBA_DISABLE_JIT")), reason="interpreted code has no signatures")
def test_live_calls_use_the_declared_signatures_and_no_others():
    """In a separate process, because other tests call entries with other types."""
    script = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r}); import test_entries as t; t.live_calls()"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def live_calls():
    """Make the calls of a live system. Every compiled signature is the declared one."""
    arms = np.array([[1.0, 0.0], [0.0, 1.0], [0.6, 0.8]])
    names = ("LB-WeightUCB", "SW-UCB", "Bank+LB-WeightUCB", "MASTER+OFUL", "BOB+LB-WeightUCB", "D-LinTS", "Auto")
    for name in names:
        policy = dw.make(name, **KNOWN)
        state = policy.start()
        for _ in range(3):
            policy.learn(state, arms, policy.choose(state, arms).arm, 0.5, ticks=1.5)
            policy.learn(state, dw.ArmSet(arms), 0, 0.5)
        if policy.form is not None and name != "D-LinTS":
            policy.choose(state, dw.Ball(2))
            policy.choose(state, dw.Box((-0.1, -0.1), (0.5, 0.5)))
        policy.advance(state, 2.0)
        if policy.folds:
            policy.fold(state, arms, np.ones(3), np.ones(3), np.zeros(3))
            kept = arms.copy()
            kept.flags.writeable = False
            policy.fold(state, kept, np.ones(3), np.ones(3), np.zeros(3))
    seen = 0
    for name, live in entries.LIST.items():
        compiled = vars(live.call).get("call")
        wanted = entries.declared(name)
        for one in getattr(compiled, "nopython_signatures", ()):
            seen += 1
            assert (one.args, one.return_type) == (wanted.args, wanted.return_type), f"{name}: {one}, not {wanted}"
    assert seen >= 15


def test_an_engine_that_claims_a_rule_it_plays_otherwise_is_caught(monkeypatch):
    policy = dw.make("D-LinUCB", **KNOWN)
    both = (point.ONE_MATRIX, point.TWO_MATRIX)
    claiming = engines.TILED._replace(rules=both)
    monkeypatch.setattr(engines, "ENGINES", (engines.EIGHT, claiming, engines.PLAIN))
    with pytest.raises(AssertionError, match="the engine 'tiled' plays other bits than the plain one"):
        checks.check_policy(policy)


def test_a_piece_that_no_engine_declares_is_played_by_the_plain_one(monkeypatch):
    policy = dw.LinearUCB(dim=20, memory=dw.Fade(0.1), lam=1.0, delta=0.1)
    sizes = engines.Sizes(1, 20, 500, 100, 8)
    assert [one.name for one in engines.fitting(policy.entries.family, policy.point, sizes)] == [
        "eight", "lazy", "tiled_wide", "plain"
    ]  # fmt: skip
    for flag, left in ((point.MEMORY, ["tiled_wide", "plain"]), (point.RULE, ["plain"]),
                       (point.RADIUS, ["lazy", "tiled_wide", "plain"])):  # fmt: skip
        before, policy.point.flags[flag] = policy.point.flags[flag], 9  # a kind that an extension adds
        fits = engines.fitting(policy.entries.family, policy.point, sizes)
        policy.point.flags[flag] = before
        assert [one.name for one in fits] == left
    trial = dw.make("D-LinTS", **KNOWN)
    assert trial.engine(engines.Sizes(1, 2, 500, 100, 8)).name == "plain"
