"""How regret grows with the horizon when the path keeps its shape (Theorem 1 promises T^{3/4}, up to logarithms)."""

import numpy as np
import pytest

import driftwise as dw


def slope(horizons, trials, **fields):
    """Least squares of log regret on log T for LB-WeightUCB, tuned again to one turn in each horizon."""
    regret = []
    for horizon in horizons:
        world = dw.worlds.Turn(horizon=horizon)
        policy = dw.make("LB-WeightUCB", **world.facts, **fields)
        regret.append(dw.simulate(policy, world, trials=trials, record="last").final("LinearUCB").mean())
    return float(np.polyfit(np.log(horizons), np.log(regret), 1)[0])


FEW = ((1_000, 3_162, 10_000, 31_623, 100_000), 4)
MANY = pytest.param((1_000, 3_162, 10_000, 31_623, 100_000, 316_228, 1_000_000), 20, marks=pytest.mark.slow)


@pytest.mark.parametrize(("horizons", "trials"), [FEW, MANY])
def test_regret_grows_slower_than_T_to_the_0_9_with_the_theorems_bonus(horizons, trials):
    assert slope(horizons, trials) <= 0.90


@pytest.mark.parametrize(("horizons", "trials"), [FEW, MANY])
def test_regret_grows_slower_than_T_to_the_0_85_with_a_bolder_bonus(horizons, trials):
    assert slope(horizons, trials, exploration=0.3) <= 0.85


def test_regret_of_a_policy_that_never_forgets_is_linear_in_T():
    # The power of the two above: without forgetting the slope is 1, and both would fail.
    horizons, regret = FEW[0], []
    for horizon in horizons:
        world = dw.worlds.Turn(horizon=horizon)
        policy = dw.make("OFUL", **world.facts)
        regret.append(dw.simulate(policy, world, trials=2, record="last").final("LinearUCB").mean())
    assert np.polyfit(np.log(horizons), np.log(regret), 1)[0] > 0.95
