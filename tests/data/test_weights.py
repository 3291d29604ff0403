"""Weights have mean 1 where propensities are those of the choices: a test that is wrong once in a thousand logs."""

import math

import numpy as np
import pytest

import driftwise as dw
import naive_evaluate as naive
from driftwise.data.evaluate import SURE, Weights
from driftwise.tables import log_of


def softmax(z):
    shares = np.exp(z - z.max(axis=1, keepdims=True))
    return shares / shares.sum(axis=1, keepdims=True)


def drawn(rng, rows, n, logger, target, recorded=lambda p: p):
    """Weights of a log: of a logger and a target, each a function of scores; `recorded` changes what is written."""
    z, every = rng.standard_normal((rows, n)), np.arange(rows)
    logs, asked = logger(z), target(z)
    arm = (logs.cumsum(axis=1) < rng.random((rows, 1)) * (1.0 - 1e-12)).sum(axis=1)
    p = recorded(logs[every, arm])
    return Weights(asked[every, arm] / p, p, np.full(rows, n), float(1.0 / p.min()))


def greedy(z):
    return np.eye(z.shape[1])[z.argmax(axis=1)]


TARGETS = {"greedy": greedy, "least": lambda z: greedy(-z), "first": lambda z: greedy(-np.arange(z.shape[1]) + 0.0 * z)}
LOGGERS = {
    "uniform": lambda z: softmax(0.0 * z), "5%": lambda z: 0.95 * greedy(z) + 0.05 / z.shape[1],
    "1%": lambda z: 0.99 * greedy(z) + 0.01 / z.shape[1], "soft": softmax, "hard": lambda z: softmax(4.0 * z),
    "never": greedy, "seldom": lambda z: np.where(z[:, :1] > 0.0, greedy(z), softmax(z)),
}  # fmt: skip


@pytest.mark.parametrize("logger", LOGGERS)
def test_weights_of_propensities_that_fit_are_doubted_once_in_a_thousand_logs(logger):
    """900 logs for each logger: .9 alarms are allowed on average, and five or more come once in 400 such tests. A
    logger that never plays what the policy would fits too."""
    rng, wrong = np.random.default_rng(1), 0
    for target in TARGETS.values():
        for number in range(300):
            log = drawn(rng, (20, 100, 600)[number % 3], (2, 6, 30)[number // 3 % 3], LOGGERS[logger], target)
            wrong += log.misfit() is not None
    assert wrong < 5


@pytest.mark.parametrize(("times", "rows"), [(0.2, 300), (0.5, 600), (2.0, 2000), (3.9, 2000)])
def test_propensities_that_are_off_by_a_factor_are_found(times, rows):
    for seed in range(10):
        log = drawn(np.random.default_rng(seed), rows, 6, LOGGERS["uniform"], greedy, lambda p: p * times)
        assert "do not fit" in log.misfit()


@pytest.mark.parametrize("logger", LOGGERS)
def test_the_capital_is_what_its_definition_says(logger):
    for seed, target in enumerate(TARGETS.values()):
        log = drawn(np.random.default_rng(seed), 60, 5, LOGGERS[logger], target, lambda p: np.minimum(1.0, p * 1.1))
        rows = zip(log.weight.tolist(), log.propensity.tolist(), log.n.tolist(), strict=True)
        wanted = naive.capital(*zip(*rows, strict=True), log.most)
        assert log.capital() == pytest.approx(wanted, rel=1e-9, abs=1e-9)
    none = Weights(log.weight, log.propensity, log.n, math.inf)  # nothing is bet on a mean below 1
    assert none.capital() == pytest.approx(naive.capital(*log[:3], math.inf), rel=1e-9, abs=1e-9)
    assert none.capital() < math.log(SURE)


def logged(times=None, rows=400, seed=0, least=False):
    """A log of softmax choices among six arms, which records its propensities times a factor, or 1/6 everywhere."""
    rng = np.random.default_rng(seed)
    arms = rng.standard_normal((rows, 6, 3)) / 3.0
    score = arms @ np.array([1.0, -0.5, 0.5])
    logs = softmax(2.0 * (-score if least else score)) if times is None else np.full((rows, 6), 1.0 / 6.0)
    arm = (logs.cumsum(axis=1) < rng.random((rows, 1)) * (1.0 - 1e-12)).sum(axis=1)
    reward = (rng.random(rows) < 0.5 + 0.3 * np.tanh(score[np.arange(rows), arm])).astype(float)
    return log_of(arms=list(arms), arm=arm, propensity=np.full(rows, (times or 1.0) / 6.0), reward=reward)


class Best(naive.Greedy):
    """Plays the best arm of a fixed θ."""

    def choose(self, state, arms):
        return int(np.argmax(np.asarray(arms) @ np.array([1.0, -0.5, 0.5])))


@pytest.mark.parametrize("method", ["weights", "replay"])
def test_evaluate_says_that_propensities_do_not_fit(method):
    """A softmax logger that records 1/6 everywhere: no estimate and no gain is known, of the whole or of blocks."""
    for seed in range(5):
        found = dw.evaluate(Best(3), logged(seed=seed, least=True), method=method)
        every = [*found.estimates.values(), *found.gains.values(), *found.blocks[0].estimates.values(),
                 *found.discounted.estimates.values()]  # fmt: skip
        assert all(one.reason and math.isnan(one.value) for one in every)
        assert "do not fit the choices: weights have mean" in found.estimates[found.best].reason
        assert "cannot tell" in str(found) and "do not fit" in str(found)
        assert found.gains[found.best].low == -1.0 and found.gains[found.best].high == 1.0
        assert found.logged.reason is None


@pytest.mark.parametrize(("times", "fits"), [(0.2, False), (1.0, True), (3.9, False)])
def test_evaluate_finds_a_factor_and_believes_what_fits(times, fits):
    found = dw.evaluate(Best(3), logged(times, rows=2000), rewards=(0.0, 1.0))
    assert [one.reason is None for one in found.estimates.values()] == [fits] * len(found.estimates)
