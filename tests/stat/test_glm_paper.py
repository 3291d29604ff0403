"""Published numbers of the generalized linear and self-concordant families: the paper's panels at S = 1 and S = 5.

Seeds are fixed, so a run always passes or always fails. The margin is 6%.
"""

import functools

import pytest

import driftwise as dw

# Mean final regret with unit arms, R = 1/2, δ = 1/T. GLB-WeightUCB at S = 5 is left out: its number is not stable.
EXPECTED = {
    1.0: {"GLM-UCB": 1029, "GLB-RestartUCB": 699, "GLB-WeightUCB": 321, "LogUCB1": 1155, "SCB-RestartUCB": 701,
          "SCB-WeightUCB": 393},
    5.0: {"GLM-UCB": 2777, "GLB-RestartUCB": 895, "LogUCB1": 2681, "SCB-RestartUCB": 449, "SCB-WeightUCB": 140},
}  # fmt: skip
CASES = [(S, name, regret) for S, row in EXPECTED.items() for name, regret in row.items()]
NAMES = list(EXPECTED[1.0])


def panel(S, trials=20):
    """The paper's world at radius S, and the results of every algorithm of the panel."""
    world = dw.worlds.Turn(dim=2, arms=50, horizon=6000, turns=1, norm="unit", radius=S, reward="bernoulli")
    policies = {name: dw.make(name, **world.facts) for name in NAMES}
    return dw.simulate(policies, world, trials=trials, seed=0, record="last")


@pytest.fixture(scope="module")
def panels():
    return {S: panel(S) for S in EXPECTED}


@pytest.mark.parametrize(("S", "name", "regret"), CASES)
def test_the_papers_setting_with_unit_arms(panels, S, name, regret):
    assert panels[S].final(name).mean() == pytest.approx(regret, rel=0.06)


def better(result, one, other, by=0.0):
    """Better in the paired comparison, at 95%, by more than this share of the other's regret."""
    mean, width = result.interval(one, against=other)
    return mean + width < -by * float(result.final(other).mean())


@pytest.mark.parametrize("order", [("GLB-WeightUCB", "GLB-RestartUCB", "GLM-UCB"),
                                   ("SCB-WeightUCB", "SCB-RestartUCB", "LogUCB1")], ids=["GLB", "SCB"])
def test_at_S_1_weights_beat_restarts_beat_the_static_policy(panels, order):
    assert better(panels[1.0], order[0], order[1])
    assert better(panels[1.0], order[1], order[2])


def test_at_S_5_self_concordance_pays_and_the_static_policies_are_worst(panels):
    at_5 = panels[5.0]
    assert better(at_5, "SCB-WeightUCB", "GLB-WeightUCB", by=0.5)  # "far below"
    for static in ("GLM-UCB", "LogUCB1"):
        for name in set(NAMES) - {"GLM-UCB", "LogUCB1"}:
            assert better(at_5, name, static), (name, static)
    assert better(at_5, "SCB-WeightUCB", "SCB-RestartUCB")


# Russac, Faury, Cappé, Garivier 2021 play a logistic world of two dimensions with one jump and S = 6, where 1/c = 405.
# Neither docs/math.md nor the paper has its numbers, so the test checks the order that their bounds explain. A policy
# that forgets recovers from the jump and a static one does not; and of two that forget alike, the one that pays 1/√c
# for the link (SC-D-GLUCB) has less regret than the one that pays 1/c (D-GLUCB: the GLB rule with the same γ, λ = d).
# The second holds for a jump by a quarter turn; after half a turn what was learned misleads so much that the wider
# bonus of D-GLUCB helps it (1720 against 1930), and only the comparison with the static policies is left.
QUARTER, HALF = ((1.0, 0.0), (0.0, 1.0)), ((1.0, 0.0), (-1.0, 0.0))


ARMS = [pytest.param(False, id="fixed arms"), pytest.param(True, id="fresh arms", marks=pytest.mark.slow)]


@functools.cache
def russac(directions, fresh):
    world = dw.worlds.Jumps(jumps=1, radius=6.0, directions=directions, reward="bernoulli", fresh=fresh, arms=20)
    policies = {name: dw.make(name, **world.facts) for name in ("SC-D-GLUCB", "GLM-UCB", "LogUCB1")}
    forget = policies["SC-D-GLUCB"].memory
    policies["D-GLUCB"] = dw.make("GLM-UCB", **world.facts, memory=forget)
    return world, dw.simulate(policies, world, trials=10, seed=0, record=world.horizon // 2)


@pytest.mark.parametrize("fresh", ARMS)
@pytest.mark.parametrize("directions", [QUARTER, HALF], ids=["quarter turn", "half turn"])
def test_after_russacs_jump_forgetting_beats_the_static_policies(directions, fresh):
    world, result = russac(directions, fresh)
    assert (world.changes, world.S, world.horizon) == (1, 6.0, 6000)
    for static in ("GLM-UCB", "LogUCB1"):
        assert better(result, "SC-D-GLUCB", static, by=0.2)
        before = [float(result.regret[name][:, 0].mean()) for name in ("SC-D-GLUCB", static)]
        assert before[0] < 1.5 * before[1]  # and it costs little while nothing changes


@pytest.mark.parametrize("fresh", ARMS)
def test_in_russacs_world_self_concordance_beats_the_pessimistic_bonus(fresh):
    _, result = russac(QUARTER, fresh)
    assert better(result, "SC-D-GLUCB", "D-GLUCB", by=0.1)
    assert better(result, "D-GLUCB", "GLM-UCB", by=0.1)
