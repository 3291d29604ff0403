"""Worlds whose arms are a continuous set: best means, paired trials, specs, and refusals."""

import math
import re
import runpy
from pathlib import Path

import numpy as np
import pytest

import driftwise as dw
from driftwise.lab.run.spec import parse
from refusing import refused

ROOT = Path(__file__).resolve().parent.parent
KNOWN = {"horizon": 200, "path_length": 2 * math.pi}


def world(arms, **more):
    return dw.worlds.Turn(**{"dim": 2, "arms": arms, "horizon": 200, "noise": 0.3, **more})


def test_the_best_mean_on_a_ball_is_that_of_the_longest_arm_along_theta():
    tape = next(world(dw.Ball(2, 0.5), radius=0.8).tapes())
    assert np.allclose(tape.best, 0.4)
    clicks = next(world(dw.Ball(2), reward="bernoulli", radius=2.0).tapes())
    assert np.allclose(clicks.best, 1 / (1 + math.exp(-2.0)))
    box = next(world(dw.Box([-0.5, -0.5], [0.5, 0.5])).tapes())
    assert np.allclose(box.best, 0.5 * np.abs(box.theta).sum(axis=1))


@pytest.mark.parametrize("arms", [dw.Ball(2), dw.Ellipsoid([[1.0, 0.2], [0.2, 0.5]]), dw.Box([-0.7, -0.7], [0.7, 0.7])])
def test_a_world_of_a_set_passes_its_checks_and_is_played(arms):
    dw.checks.check_world(world(arms))
    static = dw.make("OFUL", dim=2, horizon=200, L=1.1)
    policies = {"ours": dw.make("LB-WeightUCB", dim=2, L=1.1, **KNOWN), "OFUL": static}
    found = dw.simulate(policies, world(arms), trials=2, seed=3, jobs=1)
    again = dw.simulate({"ours": policies["ours"]}, world(arms), trials=[1], seed=3, jobs=1)
    assert found.x["ours"].shape == (2, 200, 2) and (found.arms["ours"] == -1).all()
    assert np.array_equal(again.regret["ours"][0], found.regret["ours"][1])
    steps = np.diff(found.regret["ours"], axis=1)
    assert (steps >= -1e-12).all() and found.final("ours").mean() < 200
    assert all(arms.contains(x) for x in found.x["ours"][0, :20])


def test_regret_on_a_ball_is_no_more_than_on_a_list_of_its_arms_and_what_the_list_leaves_out():
    # 64 arms of the circle: both play the same θ; the ball's best mean is higher by at most 1 - cos(π/64).
    angle = 2 * math.pi * np.arange(64) / 64
    theta = world(dw.Ball(2)).theta()
    listed = dw.worlds.Given(arms=np.stack([np.cos(angle), np.sin(angle)], axis=1), theta=theta, noise=0.3)
    ball = dw.worlds.Given(arms=dw.Ball(2), theta=theta, noise=0.3)
    policy = dw.make("LB-WeightUCB", dim=2, **KNOWN)
    one, other = (dw.simulate({"it": policy}, w, trials=4, seed=0, jobs=1).final("it").mean() for w in (listed, ball))
    assert abs(one - other) < 0.25 * one


def test_a_spec_names_a_set():
    spec = parse(
        """
title = "a ball"
trials = 2
[world]
kind = "Turn"
horizon = 50
arms = { kind = "Ball", dim = 2, radius = 0.5 }
[[policies]]
name = "LB-WeightUCB"
""",
        "ball.toml",
    )
    assert spec.contests[0][0].world.arms == dw.Ball(2, 0.5) and spec.contests[0][0].policies["LB-WeightUCB"].L == 0.5
    for wrong in ('arms = { kind = "Bal" }', 'arms = { kind = "Ball", size = 2 }', 'arms = { kind = "Ball", dim = 3 }'):
        text = f'title = "a"\n[world]\nkind = "Turn"\n{wrong}\n[[policies]]\nname = "OFUL"\n'
        with pytest.raises(dw.BadInput, match="arms"):
            parse(text, "wrong.toml")


def test_what_cannot_be_played_is_refused_before_anything_is():
    with pytest.raises(dw.BadInput, match="list"):
        dw.simulate({"it": dw.make("OFULog", dim=2, horizon=200)}, world(dw.Ball(2), reward="bernoulli"), trials=1)
    with pytest.raises(dw.BadInput, match="arms"):
        world(dw.Ball(3))
    with pytest.raises(dw.BadInput, match="arms"):
        world(dw.Ball(2), fresh=True)


def test_a_policy_of_the_users_own_that_returns_no_vector_gets_a_sentence():
    class FirstArm:
        def start(self, seed=0):
            return {}

        def choose(self, state, arms):
            return 0

        def learn(self, state, arms, arm, reward):
            pass

    with refused("choose", "a continuous set"):
        dw.simulate({"own": FirstArm()}, dw.worlds.Turn(dim=2, arms=dw.Ball(2), horizon=5), trials=1, jobs=1)


def test_the_page_about_sets_runs(capsys):
    text = (ROOT / "docs" / "sets.md").read_text(encoding="utf-8")
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.S):
        exec(compile(block, "sets.md", "exec"), {})
    assert "no price has an index more than" in capsys.readouterr().out


def test_the_shop_that_asks_any_price_earns_more_than_one_that_forgets_nothing(capsys):
    shop = runpy.run_path(str(ROOT / "docs" / "gallery" / "curve.py"))
    found = {name: shop["trade"](*shop["shops"]()[name], 500, 0)[0] for name in
             ("any price of the curve", "the curve, forgetting nothing")}
    assert 0.75 < found["any price of the curve"] <= 1.0
    assert found["any price of the curve"] > found["the curve, forgetting nothing"] + 0.02
