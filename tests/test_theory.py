"""The linear part of theory: closed forms equal the sums they replace, and limits are exact."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import driftwise as dw
from driftwise import theory

FORGETS = [1e-17, 1e-16, 1e-12, 1e-8, 1e-4, 0.0229, 0.1, 0.5, 0.9]
forgets = st.one_of(st.sampled_from(FORGETS), st.floats(1e-17, 0.9))
repeatable = settings(deadline=None, derandomize=True)


def exactly(forget, n):
    """(1-γ^2n)/(1-γ²) to 80 digits, γ = 1 - the float `forget` taken as the exact number it is."""
    with localcontext() as context:
        context.prec = 80
        gamma = 1 - Decimal(forget)
        return (1 - gamma ** (2 * n)) / (1 - gamma**2)


def relative(value, reference):
    return abs(float((Decimal(value) - reference) / reference))


@repeatable
@given(forgets, st.integers(1, 300))
def test_geometric_is_the_sum_of_squared_weights(forget, n):
    gamma = 1.0 - forget
    assert theory.geometric(forget, float(n)) == pytest.approx(sum(gamma ** (2 * i) for i in range(n)), rel=1e-12)


@pytest.mark.parametrize("n", [1, 2, 1000, 6000, 10**6, 10**9])
@pytest.mark.parametrize("forget", FORGETS)
def test_geometric_loses_no_digits_however_little_is_forgotten(forget, n):
    assert relative(theory.geometric(forget, float(n)), exactly(forget, n)) < 1e-14


@pytest.mark.parametrize("n", [0, 1, 17, 10**12])
def test_geometric_counts_where_nothing_is_forgotten(n):
    assert theory.geometric(0.0, float(n)) == n
    assert theory.geometric(0.3, 0.0) == 0.0


def literal_radius(n, d, lam, delta, S, L, R, gamma):
    """β as the paper prints it."""
    E = n if gamma == 1.0 else (1 - gamma ** (2 * n)) / (1 - gamma**2)
    return math.sqrt(lam) * S + R * math.sqrt(2 * math.log(1 / delta) + d * math.log(1 + L**2 * E / (lam * d)))


@repeatable
@given(
    st.integers(0, 5000), st.integers(1, 30), st.floats(1e-6, 100), st.floats(1e-9, 0.9), st.floats(0.1, 5),
    st.floats(0.1, 5), st.floats(0.0, 5), st.sampled_from([0.5, 0.9, 0.99, 1.0]),
)  # fmt: skip
def test_the_radius_is_the_printed_one(n, d, lam, delta, S, L, R, gamma):
    ours = theory.lb_radius(theory.geometric(1.0 - gamma, float(n)), float(d), lam, -math.log(delta), S, L, R)
    assert ours == pytest.approx(literal_radius(n, d, lam, delta, S, L, R, gamma), rel=1e-9)


def test_a_policy_bonus_is_the_theorem_radius_round_by_round():
    # The E that a state carries (E <- γ²E + 1) is the closed form: β_n multiplies the length of x.
    policy = dw.LinearUCB(dim=2, memory=dw.Fade(0.03), lam=0.5, delta=0.02, S=2.0, L=1.5, R=0.7)
    state, arms = policy.start(), np.array([[1.0, 0.5]])
    for n in range(200):
        V = 0.5 * np.eye(2) + sum(0.97**i for i in range(n)) * np.outer(arms[0], arms[0])
        width = math.sqrt(arms[0] @ np.linalg.solve(V, arms[0]))
        expected = literal_radius(n, 2, 0.5, 0.02, 2.0, 1.5, 0.7, 0.97) * width
        assert policy.choose(state, arms).bonus == pytest.approx(expected, rel=1e-10)
        policy.learn(state, arms, 0, 1.0)


def test_the_radius_of_cheung_is_constant_and_as_printed():
    expected = math.sqrt(2) * 1.5 + 0.5 * math.sqrt(3 * math.log((1 + 34 * 4 / 2) / 0.01))
    assert theory.cheung_radius(34.0, 3.0, 2.0, -math.log(0.01), 1.5, 2.0, 0.5) == pytest.approx(expected, rel=1e-12)


paths = st.tuples(st.integers(2, 60), st.integers(1, 4), st.integers(0, 99)).map(
    lambda shape: np.random.default_rng(shape[2]).standard_normal(shape[:2])
)


@repeatable
@given(paths, st.sampled_from([0.001, 0.05, 0.5, 0.9]), st.floats(1e-6, 100), st.floats(0.1, 3))
def test_the_bias_term_is_the_papers_form_and_the_sum_behind_it(theta, forget, lam, L):
    (t, d), gamma = theta.shape, 1.0 - forget
    steps = [float(np.linalg.norm(theta[p] - theta[p - 1])) for p in range(1, t)]
    printed = sum(
        gamma ** ((t - 1) / 2) * math.sqrt((gamma**-p - 1) / (1 - gamma)) * steps[p - 1] for p in range(1, t)
    )
    behind = sum(
        math.sqrt(sum(gamma ** (t - 1 - s) for s in range(1, p + 1))) * steps[p - 1] for p in range(1, t)
    )
    ours = theory.bias_bound(theta, forget, lam, L)
    assert ours == pytest.approx(L * L * math.sqrt(d / lam) * printed, rel=1e-9)
    assert ours == pytest.approx(L * L * math.sqrt(d / lam) * behind, rel=1e-9)


def test_the_bias_term_does_not_overflow_where_the_papers_form_does():
    theta = np.zeros((5000, 1))
    theta[2500:] = 1.0
    with pytest.raises(OverflowError):
        0.5**-2500.0
    assert theory.bias_bound(theta, 0.5, 1.0) == pytest.approx(math.sqrt(2.0) * 0.5 ** (2499 / 2), rel=1e-9)
    theta[2500:4999] = 0.0
    assert theory.bias_bound(theta, 0.5, 1.0) == pytest.approx(math.sqrt(2.0), rel=1e-12)


def test_the_bias_term_without_forgetting_has_roots_of_p():
    theta = np.array([[0.0, 0.0], [3.0, 4.0], [3.0, 4.0], [3.0, 5.0]])
    expected = 2.0**2 * math.sqrt(2 / 0.5) * (1 * 5.0 + math.sqrt(2) * 0.0 + math.sqrt(3) * 1.0)
    assert theory.bias_bound(theta, 0.0, 0.5, 2.0) == pytest.approx(expected, rel=1e-15)
    assert theory.bias_bound(theta[:1], 0.0, 0.5, 2.0) == theory.bias_bound(theta[:1], 0.3, 0.5, 2.0) == 0.0


def test_forgetting_next_to_nothing_is_forgetting_nothing():
    theta = np.cumsum(np.random.default_rng(0).standard_normal((3000, 3)), axis=0)
    still = {"dim": 3, "horizon": 3000.0, "path_length": 0.0, "lam": 3.0}
    bound = {"lam": 2.0, "delta": 0.1}
    for tiny in (1e-17, 1e-16):  # 1e-16: the last one for which γ itself is still 1 as a float
        assert theory.geometric(tiny, 3000.0) == pytest.approx(theory.geometric(0.0, 3000.0), rel=1e-12)
        assert theory.bias_bound(theta, tiny, 2.0) == pytest.approx(theory.bias_bound(theta, 0.0, 2.0), rel=1e-12)
        assert theory.lb_regret_bound(forget=tiny, **still) == pytest.approx(
            theory.lb_regret_bound(forget=0.0, **still), rel=1e-12
        )
        assert theory.lb_estimation_bound(theta, tiny, 0.3, **bound) == pytest.approx(
            theory.lb_estimation_bound(theta, 0.0, 0.3, **bound), rel=1e-12
        )


def test_a_policy_that_forgets_next_to_nothing_plays_as_one_that_keeps_everything():
    world = dw.worlds.Turn(horizon=500)
    common = {"dim": 2, "lam": 2.0, "delta": 1 / 500}
    policies = {"keep": dw.LinearUCB(memory=dw.Keep(), **common)}
    policies |= {str(f): dw.LinearUCB(memory=dw.Fade(f), **common) for f in (0.0, 1e-17)}
    result = dw.simulate(policies, world, trials=2)
    assert (result.arms["keep"] == result.arms["0.0"]).all()
    assert (result.arms["keep"] == result.arms["1e-17"]).all()


def test_the_estimation_bound_adds_bias_and_radius_at_the_data_seen_so_far():
    theta = np.random.default_rng(1).standard_normal((40, 2))
    beta = literal_radius(39, 2, 0.7, 0.05, 2.0, 1.2, 0.4, 0.9)
    ours = theory.lb_estimation_bound(theta, 0.1, 0.25, lam=0.7, delta=0.05, S=2.0, L=1.2, R=0.4)
    assert ours == pytest.approx(theory.bias_bound(theta, 0.1, 0.7, 1.2) + 0.25 * beta, rel=1e-9)


@repeatable
@given(
    st.integers(1, 20), st.integers(2, 10**6), st.floats(0.0, 50.0), st.sampled_from([1e-6, 1e-3, 0.02, 0.5]),
    st.floats(0.01, 100), st.floats(0.1, 3), st.floats(0.1, 3), st.floats(0.1, 3),
)  # fmt: skip
def test_the_printed_regret_bound_is_theorem_1_with_its_constants(d, T, P, forget, lam, S, L, R):
    gamma = 1.0 - forget
    beta = literal_radius(T, d, lam, 1 / (2 * T), S, L, R, gamma)
    mass = math.fsum([1.0, -math.exp(T * math.log1p(-forget))]) / forget
    potential = T * -math.log1p(-forget) + math.log(1 + L**2 / (lam * d) * mass)
    expected = 4 * L**2 * math.sqrt(d / lam) * forget**-1.5 * P
    expected += 2 * beta * math.sqrt(2 * max(1, L**2 / lam) * d * T) * math.sqrt(potential)
    common = {"dim": d, "horizon": T, "path_length": P, "forget": forget, "lam": lam, "S": S, "L": L, "R": R}
    ours = theory.lb_regret_bound(**common, uniform=False)
    assert ours == pytest.approx(expected, rel=1e-6)  # the literal 1-γ^2T has few digits left at forget = 1e-6


def test_the_regret_bound_at_gamma_1_is_infinite_under_drift_and_ofuls_without():
    common = {"dim": 2, "horizon": 6000, "forget": 0.0, "lam": 2.0}
    assert theory.lb_regret_bound(path_length=1e-9, **common) == math.inf
    beta = math.sqrt(2) + math.sqrt(2 * math.log(12000 * 6000) + 2 * math.log(1 + 6000 / 4))
    expected = 2 * beta * math.sqrt(2 * 2 * 6000) * math.sqrt(math.log(1 + 6000 / 4))
    assert theory.lb_regret_bound(path_length=0.0, **common) == pytest.approx(expected, rel=1e-12)


def theorem_1(T, uniform=False):
    """The bound as the theorem tunes it, one turn of radius 1 in two dimensions; infinite where γ leaves (0, 1)."""
    if T <= math.pi:
        return math.inf
    forget = theory.lb_forget(2, T, 2 * math.pi)
    return theory.lb_regret_bound(dim=2, horizon=T, path_length=2 * math.pi, forget=forget, lam=2.0, uniform=uniform)


def test_theorem_1_says_something_from_the_horizon_that_a_direct_search_finds(record_property):
    gap = 2.0  # no round can cost more: |x'θ| ≤ 1
    told = theory.informative_horizon(theorem_1, gap)
    low, high = 8, 10**9  # bound(T)/T falls, so bisection finds the least whole T
    grid = np.geomspace(low, high, 400)
    ratios = np.array([theorem_1(T) / T for T in grid])
    assert (np.diff(ratios) < 0).all()
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if theorem_1(middle) < gap * middle else (middle, high)
    assert high <= told <= 1.01 * high + 1
    assert theorem_1(told) < gap * told
    record_property("Theorem 1 says something from T =", high)
    assert high == 379_704  # by the formula of docs/math.md#bounds, written out separately


def test_a_bound_that_never_says_anything_has_no_informative_horizon():
    assert theory.informative_horizon(lambda T: 3.0 * T, 2.0) == math.inf
    assert theory.informative_horizon(lambda T: 1.0 * T, 2.0) == 1


def test_the_published_tuning_of_the_papers_experiment():
    P = 2 * math.pi
    assert theory.restart_period(2, 6000, P) == theory.window_length(2, 6000, P) == 34
    assert theory.lb_forget(2, 6000, P) == pytest.approx(0.0229, abs=5e-5)
    assert theory.lb_forget(2, 6000, P) == pytest.approx(math.sqrt(P / 12000), rel=1e-15)


def test_tunings_at_their_ends():
    assert theory.lb_forget(2, 6000, 0.0) == 1 / 6000  # no drift: 1/T
    assert theory.lb_forget(2, 6000, 1.9 / 6000) == 1 / 6000
    assert theory.lb_forget(2, 1, 0.0) == 0.0  # with a single round there is nothing to forget
    assert theory.lb_forget(3, 10, 29.999) < 1.0
    with pytest.raises(dw.BadInput, match=r"path_length: wanted below dim\*horizon = 30"):
        theory.lb_forget(3, 10, 30.0)
    assert theory.restart_period(2, 100, 1e9) == 1  # never less than a round
    assert theory.window_length(16, 100, 0.0) == 20  # d^{1/4} √T


def test_path_length_and_change_number_of_known_paths():
    square = np.array([[0.0, 0.0], [3.0, 4.0], [3.0, 4.0], [0.0, 0.0], [0.0, -1.0]])
    assert theory.path_length(square) == 11.0
    assert theory.change_number(square) == 3
    assert theory.path_length(square[:1]) == theory.change_number(square[:1]) == 0
    only_one_coordinate = np.array([[1.0, 0.0], [1.0, 1e-300]])
    assert theory.change_number(only_one_coordinate) == 1
    angle = 2 * np.pi * np.arange(6000) / 6000
    turn = np.column_stack([np.cos(angle), np.sin(angle)])
    assert theory.path_length(turn) == pytest.approx(5999 * 2 * math.sin(math.pi / 6000), rel=1e-12)
    assert theory.change_number(turn) == 5999


def test_memories_weigh_ages_as_their_names_say():
    assert [dw.Keep().weight(age) for age in (0.0, 1e9)] == [1.0, 1.0]
    assert dw.Fade(0.25).weight(3.0) == pytest.approx(0.75**3, rel=1e-15)
    assert [dw.Window(5).weight(age) for age in (0.0, 4.999, 5.0)] == [1.0, 1.0, 0.0]
    assert [dw.Restart(5).weight(age) for age in (0.0, 4.999, 5.0)] == [1.0, 1.0, 0.0]


def test_theorem_4_as_printed_is_its_formula():
    d, T, forget, reg, rho, S, L, k, changes, gap = 2, 6000.0, 0.01, 17.4, 30.0, 1.5, 0.8, 0.25, 4, 0.9
    delay = theory.pw_delay(forget, T)
    assert delay == math.ceil(math.log(T) / -math.log(0.99))
    inside = T * math.log(1 / 0.99) + math.log(1 + L**2 * k / (reg * d) * (1 - 0.99**T) / forget)
    spread = 2 * math.sqrt(1 + 2 * S * L) * rho * math.sqrt(2 * k * max(1.0, L**2 * k / reg) * d * T)
    wanted = changes * delay * gap + spread * math.sqrt(inside)
    got = theory.pw_regret_bound(
        dim=d, horizon=T, changes=changes, gap=gap, delay=delay, forget=forget, reg=reg, rho=rho, S=S, L=L, k=k, c=0.1,
        uniform=False,
    )  # fmt: skip
    assert got == pytest.approx(wanted, rel=1e-12)
