"""The four memories: time, late rewards, order, capacity, and states that are saved and loaded."""

import itertools
import math
from contextlib import nullcontext

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import driftwise as dw
from driftwise.policies.memory import Memory

MEMORIES = {
    "keep": dw.Keep(),
    "fade": dw.Fade(0.1),
    "fade nothing": dw.Fade(0.0),
    "window": dw.Window(6.0, capacity=50),
    "restart": dw.Restart(9.0),
}
RULES = {"one matrix": {}, "two matrices": {"two_matrix": "correct"}}
memories = pytest.mark.parametrize("memory", MEMORIES.values(), ids=MEMORIES)
rules = pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
ARMS = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, -1.0]])
repeatable = settings(max_examples=60, deadline=None, derandomize=True)


def policy_of(memory, dim=2, **fields):
    return dw.LinearUCB(dim=dim, memory=memory, lam=0.5, delta=0.05, **fields)


def close(one, other):
    """Two states with the same sums."""
    assert one.clock == pytest.approx(other.clock, rel=1e-12)
    assert (one.observations, one.dropped) == (other.observations, other.dropped)
    assert one.squares == pytest.approx(other.squares, rel=1e-12)
    assert one.weight == pytest.approx(other.weight, rel=1e-12)
    for name in {"G", "twin", "b"} & set(one.groups()):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-10, atol=1e-12)


@memories
@rules
def test_time_may_pass_before_the_observation_or_with_it(memory, rule):
    policy = policy_of(memory, **rule)
    one, other = policy.start(), policy.start()
    for arm, ticks in zip(itertools.cycle([0, 1, 2]), [1.0, 2.5, 0.0, 0.5, 4.0, 1.5, 7.25, 1.0], strict=False):
        policy.learn(one, ARMS, arm, 0.3 * arm, ticks=ticks)
        policy.advance(other, ticks)
        policy.learn(other, ARMS, arm, 0.3 * arm, ticks=0.0)
        close(one, other)


@memories
@rules
def test_time_passes_the_same_in_one_go_or_in_pieces(memory, rule):
    policy = policy_of(memory, **rule)
    one, other = policy.start(), policy.start()
    for state, pieces in ((one, [5.5]), (other, [1.0, 1.0, 0.25, 0.0, 3.0, 0.25])):
        for arm in (0, 1, 2, 1):
            policy.learn(state, ARMS, arm, 1.0)
        for piece in pieces:
            policy.advance(state, piece)
    close(one, other)


@memories
@rules
@repeatable
@given(st.permutations([(0, 3.0), (1, 0.5), (2, 7.0), (1, 2.0), (0, 6.0), (2, 0.0)]), st.sampled_from([3.0, 7.0, 10.0]))
def test_the_order_in_which_late_rewards_arrive_does_not_matter(memory, rule, arrivals, clock):
    policy = policy_of(memory, **rule)
    one, other = policy.start(), policy.start()
    for state, order in ((one, sorted(arrivals)), (other, arrivals)):
        policy.advance(state, clock)
        for arm, age in order:
            policy.learn(state, ARMS, arm, 1.0 + arm, ticks=0.0, age=age)
        policy.advance(state, 1.5)
    close(one, other)


@memories
def test_a_late_reward_counts_as_if_it_had_come_in_time(memory):
    policy = policy_of(memory)
    prompt, late = policy.start(), policy.start()
    for state in (prompt, late):
        policy.learn(state, ARMS, 0, 1.0)
    policy.learn(prompt, ARMS, 1, -0.5)
    policy.advance(late)
    for state in (prompt, late):
        policy.advance(state, 2.5)
    policy.learn(prompt, ARMS, 2, 0.25, ticks=0.5)
    policy.learn(late, ARMS, 2, 0.25, ticks=0.5)
    policy.learn(late, ARMS, 1, -0.5, ticks=0.0, age=3.0)
    close(prompt, late)


@memories
def test_a_state_weighs_an_observation_as_its_memory_says(memory):
    for age in (0.0, 0.5, 1.0, 5.75, 6.0, 8.5, 30.0):
        policy = policy_of(memory)
        state = policy.start()
        policy.learn(state, ARMS, 0, 2.0, ticks=0.25)
        policy.advance(state, age)
        assert state.b[0, 0] == pytest.approx(2.0 * memory.weight(age), rel=1e-12, abs=0.0)
        assert state.squares == pytest.approx(memory.weight(age) ** 2, rel=1e-12, abs=0.0)


def test_an_observation_leaves_a_window_when_it_is_as_old_as_the_window():
    policy = policy_of(dw.Window(3))
    state = policy.start()
    held = []
    for _ in range(6):
        policy.learn(state, ARMS, 0, 1.0)
        held.append(state.observations)
    assert held == [1, 2, 3, 3, 3, 3]
    policy.advance(state, 2.0)
    assert state.observations == 1
    policy.learn(state, ARMS, 1, 1.0, ticks=0.0, age=2.999)
    policy.learn(state, ARMS, 1, 1.0, ticks=0.0, age=3.0)
    assert (state.observations, state.dropped) == (2, 1)
    policy.advance(state, 3.0)
    assert state.observations == state.squares == 0
    assert not state.G.any()
    assert not state.b.any()


def test_a_full_window_lets_the_oldest_go_and_counts_it():
    policy = policy_of(dw.Window(100, capacity=3))
    state = policy.start()
    for reward, age in [(1.0, 5.0), (2.0, 9.0), (4.0, 7.0), (8.0, 0.0), (16.0, 8.0)]:
        with pytest.warns(RuntimeWarning, match="capacity") if reward == 8.0 else nullcontext():
            policy.learn(state, ARMS, 0, reward, ticks=0.0, age=age)
    # Born at -9, -7, -5, 0: the first was dropped for the fourth; one born at -8 is older than all that are left.
    assert (state.observations, state.dropped) == (3, 2)
    assert state.b[0, 0] == 1.0 + 4.0 + 8.0


class Ring(dw.Window):
    """A memory that keeps single observations as a window does, without declaring that it slides."""

    sliding = False
    full = Memory.full


def test_a_ring_that_is_no_window_is_called_by_its_own_name_and_has_no_radius_of_windows():
    with pytest.raises(dw.BadInput, match="a Window and a delta"):
        policy_of(Ring(5), radius="cheung")
    policy = policy_of(Ring(100, capacity=1))
    state = policy.start()
    policy.learn(state, ARMS, 0, 1.0)
    with pytest.warns(RuntimeWarning, match=r"^Ring with room for 1 observations is full .* capacity= to Ring$"):
        policy.learn(state, ARMS, 0, 1.0)


def test_by_default_a_window_has_room_for_an_observation_a_round():
    for length in (1, 2.5, 7):
        policy = policy_of(dw.Window(length))
        state = policy.start()
        for _ in range(20):
            policy.learn(state, ARMS, 0, 1.0)
        assert (state.observations, state.dropped) == (math.ceil(length), 0)


def test_a_restart_clears_before_rounds_H_plus_1_and_2H_plus_1():
    policy = policy_of(dw.Restart(4))
    state = policy.start()
    seen = []
    for _ in range(10):
        seen.append(state.observations)  # the state of this round's choice
        policy.learn(state, ARMS, 0, 1.0)
    assert seen == [0, 1, 2, 3, 0, 1, 2, 3, 0, 1]


def test_what_was_decided_before_a_restart_is_dropped_and_counted():
    policy = policy_of(dw.Restart(4))
    state = policy.start()
    policy.advance(state, 5.0)
    policy.learn(state, ARMS, 0, 1.0, ticks=0.0, age=1.0)  # born at 4, the moment of the restart
    assert (state.observations, state.dropped) == (0, 1)
    policy.learn(state, ARMS, 0, 1.0, ticks=0.0, age=0.5)
    assert (state.observations, state.dropped) == (1, 1)
    policy.learn(state, ARMS, 0, 1.0, ticks=30.0, age=0.25)  # many periods at once
    assert (state.observations, state.clock, state.dropped) == (1, 35.0, 1)


def after_large_numbers(window, rounds):
    """The state after so many rounds of numbers of another size and 25 ordinary ones, and the arms of the latter."""
    rng = np.random.default_rng(0)
    policy = policy_of(window, L=1e8)
    state = policy.start()
    for _ in range(rounds):
        policy.learn(state, 1e8 * ARMS * rng.uniform(), int(rng.integers(3)), 1e8)
    x = rng.standard_normal((25, 2))
    for row in x:
        policy.learn(state, row[None], 0, 1.0)
    return state, x


def test_a_window_rebuilds_its_sums_so_that_rounding_never_piles_up():
    # Numbers of very different size enter and leave; afterwards no rounding error of them may be left.
    state, x = after_large_numbers(dw.Window(10), 500)
    np.testing.assert_allclose(np.tril(state.G[0]), np.tril(x[-10:].T @ x[-10:]), rtol=1e-13)
    np.testing.assert_allclose(state.b[0], x[-10:].sum(axis=0), rtol=1e-12)


def test_a_window_with_room_to_spare_rebuilds_as_often():
    # Once per window length, not once per capacity: with 1000 places rounding errors would stay for 1000 removals.
    state, x = after_large_numbers(dw.Window(10, capacity=1000), 50)
    np.testing.assert_allclose(np.tril(state.G[0]), np.tril(x[-10:].T @ x[-10:]), rtol=1e-12)


def test_the_ridge_does_not_fade_with_the_data():
    policy = policy_of(dw.Fade(0.5))
    state = policy.start()
    fresh = policy.choose(state, ARMS)
    for _ in range(5):
        policy.learn(state, ARMS, 1, 1.0)
    policy.advance(state, 200.0)
    assert policy.choose(state, ARMS).bonus == pytest.approx(fresh.bonus, rel=1e-12)


@pytest.mark.parametrize("memory", [dw.Keep(), dw.Fade(0.01), dw.Window(40), dw.Restart(40)], ids=lambda m: repr(m))
def test_scores_stay_finite_however_small_the_ridge_is_beside_the_data(memory):
    # Exactly, no pivot of G + λI is below λ; rounding leaves them at ±1e-16·‖G‖, and a root of that is NaN.
    for seed in range(20):
        rng = np.random.default_rng(seed)
        policy = dw.LinearUCB(dim=3, memory=memory, lam=1e-6, delta=0.1, L=1e6)
        state = policy.start()
        x = rng.standard_normal(3)
        for _ in range(30):
            policy.learn(state, (1e6 * rng.random() * x / np.linalg.norm(x))[None], 0, 1.0)
        scores = policy.scores(state, np.eye(3))
        assert np.isfinite(scores.score).all()


@memories
@rules
def test_half_a_stream_saved_and_loaded_is_the_whole_stream(memory, rule):
    policy = policy_of(memory, **rule)
    whole, half = policy.start(), policy.start()
    rng = np.random.default_rng(0)
    for step in range(60):
        arm, reward, ticks, age = int(rng.integers(3)), rng.normal(), rng.choice([0.0, 0.5, 1.0]), rng.choice([0, 0, 2])
        for state in (whole, half):
            policy.learn(state, ARMS, arm, reward, ticks=float(ticks), age=float(age))
        if step % 10 == 9:
            half = dw.State.from_bytes(half.to_bytes())
    assert whole.to_bytes() == half.to_bytes()
    assert policy.choose(whole, ARMS) == policy.choose(half, ARMS)


def test_a_copy_is_independent():
    policy = policy_of(dw.Window(3), two_matrix="correct")
    state = policy.start()
    policy.learn(state, ARMS, 0, 1.0)
    copy = state.copy()
    before = copy.to_bytes()
    policy.learn(state, ARMS, 1, 1.0)
    assert copy.to_bytes() == before != state.to_bytes()


def test_choosing_reads_and_learning_writes_in_place():
    policy = policy_of(dw.Window(3), two_matrix="correct")
    state = policy.start()
    policy.learn(state, ARMS, 0, 1.0)
    before, parts = state.to_bytes(), (id(state.floats), id(state.ints))
    policy.choose(state, ARMS)
    policy.scores(state, ARMS)
    assert state.to_bytes() == before
    policy.learn(state, ARMS, 0, 1.0)
    assert state.to_bytes() != before
    assert (id(state.floats), id(state.ints)) == parts


@pytest.mark.parametrize("shape", [(3, 2), (1, 2), (3, 1), (1, 1)])
def test_an_arm_set_is_a_copy_and_plays_as_the_array_does(shape):
    rng = np.random.default_rng(0)
    arms = rng.uniform(-0.5, 0.5, shape)
    prepared, policy = dw.ArmSet(arms), policy_of(dw.Fade(0.1), dim=shape[1])
    one, other, kept = policy.start(), policy.start(), arms.copy()
    for reward in (1.0, -2.0, 0.5):
        assert policy.choose(one, kept) == policy.choose(other, prepared)
        policy.learn(one, kept, 0, reward)
        policy.learn(other, prepared, 0, reward)
        arms *= 0.5  # the caller continues to use the array
    assert one.to_bytes() == other.to_bytes()
    assert (len(prepared), prepared.dim) == shape


@pytest.mark.parametrize("layout", ["float32", "fortran", "strided", "list", "ints", "read-only"])
def test_arms_of_any_layout_are_the_same_arms(layout):
    arms = np.array([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0]])
    other = {
        "float32": lambda: arms.astype(np.float32),
        "fortran": lambda: np.asfortranarray(arms),
        "strided": lambda: np.repeat(arms, 2, axis=0)[::2],
        "list": lambda: arms.tolist(),
        "ints": lambda: arms.astype(int),
        "read-only": lambda: np.frombuffer(arms.tobytes()).reshape(3, 2),
    }[layout]()
    policy = policy_of(dw.Keep())
    one, two = policy.start(), policy.start()
    for reward in (1.0, 0.5):
        policy.learn(one, arms, 1, reward)
        policy.learn(two, other, 1, reward)
        assert policy.choose(one, arms) == policy.choose(two, other)
    assert one.to_bytes() == two.to_bytes()


def test_whole_numbers_may_be_written_as_floats():
    policy = dw.LinearUCB(dim=2.0, memory=dw.Window(3, capacity=4.0), lam=1, delta=0.1)
    state = policy.start()
    policy.learn(state, ARMS, 0, 1)
    assert (state.G.shape, state.ring.shape[0]) == ((1, 2, 2), 4)
    assert dw.make("OFUL", dim=2.0, horizon=1e4) == dw.make("OFUL", dim=2, horizon=10_000)
