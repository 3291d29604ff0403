"""Intervals of evaluations: equal to their definition, with the promised coverage, and without a verdict where the log
has no information."""

from __future__ import annotations

import math

import numpy as np
import pytest

import driftwise as dw
import naive_evaluate as naive
from data import intervals
from driftwise.data.estimate import RowTerms, estimates
from driftwise.data.likelihood import Sample, likelihood_interval
from driftwise.data.page import verdict
from driftwise.tables import log_of


@pytest.mark.parametrize("model", [False, True])
@pytest.mark.parametrize(("arms", "explore", "rows"), [(4, 0.2, 300), (20, 0.2, 400), (20, 0.05, 200)])
def test_an_interval_is_what_its_definition_says(arms, explore, rows, model):
    terms, _, _ = intervals.log_of_world(np.random.default_rng(1), arms, explore, rows, intervals.WORLDS["A"])
    more = (terms.logged, terms.expected) if model else ()
    found = likelihood_interval(Sample(terms.weight, terms.reward, np.full(rows, 1.0 / rows), rows, terms.most, *more))
    assert found == pytest.approx(naive.likelihood_interval(terms.weight, terms.reward, terms.most, *more), abs=2e-5)


@pytest.mark.parametrize(("arms", "explore", "rows"), [(4, 0.2, 500), (100, 0.05, 500), (20, "Thompson", 500)])
def test_three_cells_of_the_grid_cover(arms, explore, rows):
    """40 logs: fewer than 33 hits of 40 come by chance in 1 of 500 cases at 95%. Normal intervals have about 10 of 40
    with 100 arms."""
    for name, found in intervals.cell(arms, explore, rows, 40, "ABCDEFG").items():
        answers, cover, *_ = intervals.summary(found)
        assert cover >= 33 / 40 and answers > 0.5, name


@pytest.mark.slow
@pytest.mark.parametrize("rows", intervals.ROWS)
@pytest.mark.parametrize("arms", intervals.ARMS)
@pytest.mark.parametrize("explore", intervals.EXPLORES)
def test_every_cell_of_the_grid_covers(arms, explore, rows):
    """1000 logs a cell. Widths are held to twice the normal one's where rewards are not rare (worlds C and G aside)."""
    for name, found in intervals.cell(arms, explore, rows, 1000, "ABCDEFG").items():
        answers, cover, wide, answers_there, _ = intervals.summary(found)
        print(f"{arms} arms, {explore}, {rows} rows, {name}: {answers:.3f} answers, {cover:.3f} covered")
        assert not cover < 0.92, name
        assert wide < 0.02 or answers_there >= 0.95, name
    for name, found in intervals.cell(arms, explore, rows, 200, "ABDEF").items():
        *_, wide, _, width = intervals.summary(found)
        assert wide < 0.02 or width <= 2.0, name


def clicks(arms, epsilon, rows, seed, rate=0.1):
    """A log by a rule that plays the last arm and explores; the first arm is clicked at this rate."""
    rng = np.random.default_rng(seed)
    drawn = rng.random(rows) < epsilon
    arm = np.where(drawn, rng.integers(0, arms, rows), arms - 1)
    p = np.where(arm == arms - 1, 1.0 - epsilon + epsilon / arms, epsilon / arms)
    reward = (rng.random(rows) < np.where(arm == 0, rate, 0.3)).astype(np.float64)
    return log_of(arms=[np.eye(arms)] * rows, arm=arm, propensity=p, reward=reward)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (1, 2))])
def test_a_log_that_hardly_plays_the_policy_gets_no_verdict(seed):
    """500 rows among 100 arms have about 0.25 rows of the first arm: a handful of effective rows, or none."""
    found = dw.evaluate(naive.First(), clicks(100, 0.05, 500, seed), blocks=2, progress=False)
    assert "not certain" in verdict(found).lower()
    for one in (*found.estimates.values(), *found.blocks[0].estimates.values()):
        assert one.low >= 0.0 and one.high <= 1.0
        assert "0.0000 [0.0000, 0.0000]" not in str(one)
        if one.reason is None:
            assert one.low <= one.value <= one.high
        else:
            assert math.isnan(one.value) and str(one) == "cannot tell" and one.to_dict()["value"] is None
    assert found.reasons() == [] or "is not known: no logged row plays" in str(found)


def test_rewards_that_are_all_nothing_are_not_known_to_be_nothing():
    terms = RowTerms(np.zeros(500), np.ones(500)).within((0.0, 1.0), 80.0, None)
    for one in estimates(terms, terms.names).values():
        assert one.value == 0.0 and one.low == 0.0 and 1e-3 < one.high < 0.05


def test_logs_that_agents_wrote_cover(tmp_path):
    """4 logs of 300 decisions among 20 arms, written and read as files; the truth of a fixed policy is known."""
    hits, theta = 0, np.array([0.6, 0.3])
    policy = dw.LinearUCB(dim=2, memory=dw.Keep(), lam=1.0, L=2.0)
    for seed in range(4):
        rng = np.random.default_rng(seed)
        agent = dw.Agent(policy, rewards=(0.0, 1.0), epsilon=0.2, seed=seed)
        with agent.log_to(tmp_path / str(seed), arms=True, format="jsonl"):
            for _ in range(300):
                arms = rng.uniform(0.0, 1.0, (20, 2))
                made = agent.decide(arms)
                agent.reward(made.id, float(rng.random() < arms[made.arm] @ theta))
        found = dw.evaluate(naive.First(), tmp_path / str(seed), blocks=1, progress=False)
        hits += found.estimates["SNIPS"].low <= 0.45 <= found.estimates["SNIPS"].high
    assert hits >= 2
