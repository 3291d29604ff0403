"""The laws of CONTRIBUTING.md#laws over the whole catalogue."""

import dataclasses
import json
import os
import subprocess
import sys

import numpy as np
import pytest

import driftwise as dw
from driftwise import checks

NAMES = [row["name"] for row in dw.catalogue()]
KNOWN = {"horizon": 300, "path_length": 1.5, "changes": 2}


def made(name, dim, **fields):
    return dw.make(name, dim=dim, **KNOWN, **fields)


def variants(dim):
    """Every row by name, and further points."""
    policies = {name: made(name, dim) for name in NAMES}
    policies["D-LinUCB as published"] = made("D-LinUCB", dim, two_matrix="as-published")
    policies["D-LinUCB with a window"] = made("D-LinUCB", dim, memory=dw.Window(20))
    policies["LinearUCB with a window"] = made("LB-WeightUCB", dim, memory=dw.Window(20))
    policies["MASTER that never tests"] = made("MASTER+OFUL", dim, n0=3, test_scale=float("inf"))
    policies["MASTER that tests often"] = made("MASTER+LogUCB1", dim, n0=2, test_scale=1e-4)
    policies["a bank of two, exact"] = made("Bank+SCB-WeightUCB", dim, memories=(8.0, 64.0), estimate="exact")
    policies["SCB in one pass"] = made("SCB-WeightUCB", dim, estimate="one-pass")
    policies["Auto for clicks"] = made("Auto", dim, link="logistic")
    policies["Auto that keeps all"] = made("Auto", dim, memory=dw.Keep())
    policies["Auto that fades"] = made("Auto", dim, memory=dw.Fade(0.05), link="logistic", rate=0.3)
    policies["Auto that looks often"] = made("Auto", dim, looks=5.0)
    policies["D-LinTS with one matrix"] = made("D-LinTS", dim, two_matrix=None)
    policies["D-LinTS with a window"] = made("D-LinTS", dim, memory=dw.Window(20), radius="weighted")
    sided = {"optimistic": dim > 1, "two_matrix": None}  # on a line |Z| hardly ever changes what is best
    policies["D-RandLinUCB, optimistic"] = made("D-RandLinUCB", dim, **sided)
    policies["D-RandLinUCB with restarts"] = made("D-RandLinUCB", dim, memory=dw.Restart(30))
    policies["D-GLM-TSL in one pass"] = made("D-GLM-TSL", dim, estimate="one-pass")
    for memory in (dw.Keep(), dw.Fade(0.05), dw.Window(20), dw.Restart(30)):
        kind = type(memory).__name__
        policies[f"posterior, {kind}"] = dw.LinearUCB(dim=dim, memory=memory, radius="posterior")
        policies[f"posterior clicks, {kind}"] = dw.PosteriorUCB(dim=dim, memory=memory, horizon=400)
    policies["a bank of posteriors"] = dw.research.FadeBank(
        base=dw.LinearUCB(dim=dim, memory=dw.Keep(), radius="posterior", R=0.5)
    )
    policies["posterior clicks in one pass"] = dw.PosteriorUCB(dim=dim, memory=dw.Fade(0.02), estimate="one-pass")
    return policies


@pytest.mark.parametrize("dim", [1, 2, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", list(variants(2)))
def test_every_policy_keeps_every_law(name, dim):
    assert len(checks.check_policy(variants(dim)[name])) >= 10


def test_a_policy_that_peeks_at_the_order_of_arms_is_caught():
    class First:
        def start(self, seed=0):
            return None

        def choose(self, state, arms):
            return 0

        def learn(self, state, arms, arm, reward):
            pass

    with pytest.raises(AssertionError, match="permuted"):
        checks.check_policy(First(), dim=2)


def test_a_policy_that_scribbles_on_its_arms_is_caught():
    @dataclasses.dataclass(frozen=True)
    class Scribbler:
        inner: object

        def start(self, seed=0):
            return self.inner.start(seed)

        def choose(self, state, arms):
            return self.inner.choose(state, arms).arm

        def learn(self, state, arms, arm, reward):
            self.inner.learn(state, arms, arm, reward)
            arms[0] *= 0.5

    with pytest.raises(AssertionError, match="changed"):
        checks.check_policy(Scribbler(made("OFUL", 2)), dim=2)


@pytest.mark.parametrize(
    "world",
    [
        dw.worlds.Turn(horizon=300),
        dw.worlds.Walk(horizon=300, dim=3, fresh=True, arms=5),
        dw.worlds.Jumps(horizon=300, dim=1),
        dw.worlds.StopAndGo(horizon=300, norm="max", reward="bernoulli", radius=5.0),
        dw.worlds.Still(horizon=300, norm="clip", reward="poisson", draw="cube"),
        dw.worlds.Sine(horizon=300, arms=2, draw="basis", chance="rare"),
        dw.worlds.Turn(horizon=300, fresh=True, draw="disc", norm="clip"),
    ],
    ids=lambda world: type(world).__name__,
)
def test_every_world_keeps_every_law(world):
    checks.check_world(world)


PLAY = """
import json, sys
sys.path.insert(0, {tests!r})
import numpy as np
import driftwise as dw
from laws.test_catalogue import variants
world = dw.worlds.Turn(horizon=40, arms=6, dim=3, reward="bernoulli")
out = {{}}
for name, policy in variants(3).items():
    result = dw.simulate({{"it": policy}}, world, trials=1, jobs=1)
    out[name] = [result.arms["it"].tolist(), [x.hex() for x in result.regret["it"].ravel().tolist()]]
print(json.dumps(out))
"""


def test_compiled_equals_interpreted_bit_for_bit(tmp_path):
    """Interpreted everywhere, or as Python before anything is compiled."""
    code = PLAY.format(tests=os.path.dirname(os.path.dirname(__file__)))
    patient = {"DRIFTWISE_PATIENCE": "1e9", "NUMBA_CACHE_DIR": str(tmp_path)}
    compiled, *others = [
        _printed(code, settings) for settings in ({"NUMBA_DISABLE_JIT": "0"}, {"NUMBA_DISABLE_JIT": "1"}, patient)
    ]
    assert not list(tmp_path.rglob("*.nbi"))
    assert [one == compiled for one in others] == [True, True]


def _printed(code, settings):
    command, environment = [sys.executable, "-c", code], {**os.environ, **settings}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_catalogue_names_its_rows_once():
    assert len(set(NAMES)) == len(NAMES)
    for row in dw.catalogue():
        assert set(row) == {"name", "family", "memory", "adaptation", "reference", "needs"}
        assert isinstance(made(row["name"], 2).start().floats, np.ndarray)


class Sampler:
    """Thompson sampling for linear rewards, its draws a function of the key and of the rounds learned."""

    deterministic = False
    spread = 1.0

    def start(self, seed=0):
        return {"seed": seed, "V": None, "b": None, "rounds": 0}

    def draw(self, state, size):
        return np.random.default_rng([state["seed"], state["rounds"]]).standard_normal(size)

    def choose(self, state, arms):
        d = arms.shape[1]
        V = np.eye(d) if state["V"] is None else state["V"]
        b = np.zeros(d) if state["b"] is None else state["b"]
        theta = np.linalg.solve(V, b) + self.spread * np.linalg.solve(np.linalg.cholesky(V).T, self.draw(state, d))
        return int(np.argmax(arms @ theta))

    def learn(self, state, arms, arm, reward):
        x = np.array(arms[arm])
        state["V"] = (np.eye(len(x)) if state["V"] is None else state["V"]) + np.outer(x, x)
        state["b"] = (0.0 if state["b"] is None else state["b"]) + reward * x
        state["rounds"] += 1


def test_a_policy_that_samples_owes_the_laws_of_equal_keys_and_of_shares():
    names = checks.check_policy(Sampler(), dim=3)
    assert "equal_keys_choose_equally" in names and "rotating_arms_changes_nothing" in names


def test_a_policy_that_samples_without_its_key_is_caught():
    class Global(Sampler):
        chance = np.random.default_rng(5)

        def draw(self, state, size):
            return self.chance.standard_normal(size)

    with pytest.raises(AssertionError, match=r"overwriting|equal seeds|second choose"):
        checks.check_policy(Global(), dim=3)


def test_a_policy_that_says_it_samples_but_never_does_is_caught():
    class Still(Sampler):
        spread = 0.0

    with pytest.raises(AssertionError, match="nothing is drawn"):
        checks.check_policy(Still(), dim=3)


def test_a_policy_whose_shares_depend_on_the_order_of_arms_is_caught():
    class Lopsided(Sampler):
        def choose(self, state, arms):
            return len(arms) - 1 if self.draw(state, 1)[0] < 1.0 else super().choose(state, arms)

    with pytest.raises(AssertionError, match="shares of choices"):
        checks.check_policy(Lopsided(), dim=3)
