"""Bad input gets one sentence: the parameter, what was wanted, what was given, and a way out. Nothing changes."""

import dataclasses
import math

import numpy as np
import pytest

import driftwise as dw
from refusing import refused, unchanged

NAN, INF = math.nan, math.inf
ARMS = np.array([[1.0, 0.0], [0.6, 0.8], [0.0, -0.5]])
HAND = {"dim": 2, "memory": dw.Keep(), "lam": 1.0, "delta": 0.1}
POLICIES = {
    "keep": dw.LinearUCB(**HAND),
    "fade, two matrices": dw.LinearUCB(**HAND | {"memory": dw.Fade(0.1)}, two_matrix="correct"),
    "as published": dw.LinearUCB(**HAND | {"memory": dw.Fade(0.1)}, two_matrix="as-published"),
    "window": dw.LinearUCB(**HAND | {"memory": dw.Window(2)}, radius="cheung"),
    "restart": dw.LinearUCB(**HAND | {"memory": dw.Restart(5)}),
}
policies = pytest.mark.parametrize("policy", POLICIES.values(), ids=POLICIES)
NOT_NUMBERS = ["1", None, True, [1.0], 1j]


def used(policy):
    """A state that has learned something."""
    state = policy.start()
    for arm, reward in [(0, 1.0), (1, 0.5), (2, -1.0)]:
        policy.learn(state, ARMS, arm, reward)
    return state


BAD_ARMS = {
    "NaN": (np.array([[0.0, 0.0], [0.1, NAN]]), "finite"),
    "infinite": (np.array([[0.0, 0.0], [0.1, -INF]]), "finite"),
    "NaN in a list": ([[0.0, 0.0], [NAN, 0.0]], "finite"),
    "too many columns": (np.zeros((2, 3)), "2"),
    "too few columns": (np.zeros((2, 1)), "2"),
    "one arm without its row": (np.zeros(2), "shape"),
    "three axes": (np.zeros((1, 2, 2)), "shape"),
    "a number": (0.5, "shape"),
    "no arms": (np.zeros((0, 2)), "shape"),
    "an empty list": ([], "shape"),
    "rows of different lengths": ([[0.1, 0.2], [0.1]], "shape"),
    "words": ("arms", "shape"),
    "an array of words": (np.array([["a", "b"], ["c", "d"]]), "shape"),
    "nothing": (None, "shape"),
    "too long": (np.array([[1.1, 0.0], [1.1, 0.0]]), "L = 1"),
    "far too long": (np.full((2, 2), 1e200), "norm"),
}
bad_arms = pytest.mark.parametrize(("arms", "word"), BAD_ARMS.values(), ids=BAD_ARMS)


@policies
@bad_arms
def test_bad_arms_are_refused_in_choosing(policy, arms, word):
    state = used(policy)
    for ask in (policy.choose, policy.scores):
        with unchanged(state), refused("arms", word):
            ask(state, arms)


@policies
@bad_arms
def test_bad_arms_are_refused_in_learning(policy, arms, word):
    state = used(policy)
    last = max(0, len(arms) - 1) if isinstance(arms, (list, np.ndarray)) else 0  # the bad one, if only one is
    with unchanged(state), refused("arms"):
        policy.learn(state, arms, last, 1.0)


def test_bad_arms_do_not_become_an_arm_set():
    for name, (arms, word) in BAD_ARMS.items():
        if name not in ("too many columns", "too few columns", "too long"):  # that depends on the policy
            with refused("arms", word):
                dw.ArmSet(arms)


def test_complex_arms_are_refused_and_not_stripped_of_their_imaginary_part():
    arms, policy = ARMS + 0.5j, POLICIES["keep"]
    state = used(policy)
    for action in (lambda: policy.choose(state, arms), lambda: policy.learn(state, arms, 0, 1.0)):
        with unchanged(state), refused("arms", "number"):
            action()


def test_a_number_too_large_for_a_float_is_refused_like_any_other():
    policy, huge = POLICIES["keep"], 10**400
    state = used(policy)
    with unchanged(state), refused("reward"):
        policy.learn(state, ARMS, 0, huge)
    with unchanged(state), refused("ticks"):
        policy.advance(state, huge)
    with refused("lam"):
        dw.LinearUCB(**HAND | {"lam": huge})
    with refused("horizon"):
        dw.make("OFUL", dim=2, horizon=huge)


def test_a_prepared_arm_set_is_checked_against_the_policy_too():
    policy = POLICIES["keep"]
    state = used(policy)
    for arms in (dw.ArmSet(np.zeros((4, 3))), dw.ArmSet(1.5 * ARMS)):
        with unchanged(state), refused("arms"):
            policy.choose(state, arms)
        with unchanged(state), refused("arms"):
            policy.learn(state, arms, 0, 1.0)


def test_arms_a_rounding_error_longer_than_L_are_taken():
    policy = POLICIES["keep"]
    assert policy.choose(policy.start(), ARMS * (1 + 1e-12)).arm in range(3)


@policies
@pytest.mark.parametrize("arm", [-1, 3, 1.0, None, True, "0", NAN])
def test_an_arm_that_is_not_there_is_refused(policy, arm):
    state = used(policy)
    with unchanged(state), refused("arm", "from 0 to 2"):
        policy.learn(state, ARMS, arm, 1.0)


@policies
@pytest.mark.parametrize("reward", [NAN, INF, -INF, 1e160, *(one for one in NOT_NUMBERS if one is not True)])
def test_a_bad_reward_is_refused(policy, reward):
    state = used(policy)
    with unchanged(state), refused("reward"):
        policy.learn(state, ARMS, 0, reward)


@policies
@pytest.mark.parametrize("value", [-1.0, -1e-300, NAN, INF, *NOT_NUMBERS])
def test_time_that_is_negative_or_not_finite_is_refused(policy, value):
    state = used(policy)
    with unchanged(state), refused("ticks", "[0, 9.0072e+15]", "backwards"):
        policy.learn(state, ARMS, 0, 1.0, ticks=value)
    with unchanged(state), refused("age", "[0, inf)"):
        policy.learn(state, ARMS, 0, 1.0, age=value)
    with unchanged(state), refused("ticks", "[0, 9.0072e+15]", "backwards"):
        policy.advance(state, value)


def test_of_several_bad_values_nothing_is_half_done():
    policy = POLICIES["window"]
    state = used(policy)
    with unchanged(state), pytest.raises(dw.BadInput):
        policy.learn(state, ARMS, 0, NAN, ticks=5.0, age=-1.0)


POSITIVE = [0.0, -1.0, NAN, INF, *NOT_NUMBERS]
BAD_FIELDS = {
    "dim": [0, -1, 1.5, NAN, INF, *NOT_NUMBERS],
    "memory": [None, 0.1, "fade", dw.Fade],
    "lam": POSITIVE,
    "delta": [1.0, 1.5, *(value for value in POSITIVE if value is not None)],
    "S": POSITIVE,
    "L": POSITIVE,
    "R": POSITIVE[1:],
    "exploration": POSITIVE[1:],
    "two_matrix": ["Correct", "as published", 1, False],
    "radius": ["chueng", None, 1.0],
    "uniform": ["yes", 2, None],
    "horizon": [0, -1, 1.5, "10"],
}


@pytest.mark.parametrize(("field", "value"), [(field, value) for field in BAD_FIELDS for value in BAD_FIELDS[field]])
def test_a_bad_value_for_each_field_of_a_policy(field, value):
    with refused(field):
        dw.LinearUCB(**HAND | {field: value})
    with refused(field):
        dw.make("OFUL", **{"dim": 2, "horizon": 100} | {field: value})


def test_every_field_of_a_policy_has_its_bad_values():
    assert {field.name for field in dataclasses.fields(dw.LinearUCB)} == set(BAD_FIELDS)


@pytest.mark.parametrize(
    ("memory", "parameter", "values"),
    [
        (dw.Fade, "forget", [1.0, 1.5, *POSITIVE[1:]]),  # γ = 1 - forget outside (0, 1]
        (dw.Window, "length", POSITIVE),
        (dw.Restart, "period", POSITIVE),
    ],
)
def test_a_bad_value_for_each_memory(memory, parameter, values):
    for value in values:
        with refused(parameter):
            memory(value)


@pytest.mark.parametrize("value", [0, -1, 1.5, NAN, "3"])
def test_a_window_needs_room_for_an_observation(value):
    with refused("capacity"):
        dw.Window(5, capacity=value)


def test_gamma_above_1_and_at_0_is_refused_and_gamma_1_is_not():
    for gamma in (1.0 + 1e-9, 0.0, -0.5):
        with refused("forget", "(0, 1]"):
            dw.Fade(1.0 - gamma)
    assert dw.Fade(0.0).weight(100.0) == 1.0


def test_the_constant_radius_needs_a_window():
    with refused("radius", "Window"):
        dw.LinearUCB(**HAND, radius="cheung")
    with refused("radius", "Window"):
        dw.make("SW-UCB", dim=2, horizon=100, path_length=1.0, memory=dw.Keep())


@pytest.mark.parametrize(
    ("wrong", "meant"),
    [("LB-WeigthUCB", "LB-WeightUCB"), ("lb-weightucb", "LB-WeightUCB"), ("OFULL", "OFUL"), ("DLinUCB", "D-LinUCB"),
     ("SWUCB", "SW-UCB"), ("Restart", "RestartUCB")],
)  # fmt: skip
def test_a_name_that_is_not_in_the_catalogue_gets_the_nearest(wrong, meant):
    with pytest.raises(dw.BadInput) as caught:
        dw.make(wrong, dim=2, horizon=100, path_length=1.0)
    assert meant in caught.value.way_out
    with refused("name", repr(wrong)):
        dw.make(wrong, dim=2)


@pytest.mark.parametrize("name", ["", "quite another thing", None, 3, ["OFUL"]])
def test_a_name_near_to_nothing_gets_a_sentence_too(name):
    with refused("name", "OFUL"):
        dw.make(name, dim=2, horizon=100)


def test_an_unknown_field_gets_the_nearest():
    with pytest.raises(dw.BadInput, match=r"wanted one of memory, .*, got 'lambda_'") as caught:
        dw.make("OFUL", dim=2, horizon=100, lambda_=3.0)
    assert "lam" in caught.value.way_out
    for field in ("entries", "point"):  # attributes of the class that are not fields of a policy
        with pytest.raises(dw.BadInput, match=f"wanted one of memory, .*, got '{field}'"):
            dw.make("OFUL", dim=2, horizon=100, **{field: 1})


@pytest.mark.parametrize("horizon", [0, -5, 2.5, NAN, INF, "100", True])
def test_a_horizon_below_1_is_refused(horizon):
    with refused("horizon"):
        dw.make("OFUL", dim=2, horizon=horizon)
    with refused("horizon"):
        dw.worlds.Turn(horizon=horizon)


@pytest.mark.parametrize("name", ["LB-WeightUCB", "D-LinUCB", "SW-UCB", "RestartUCB", "OFUL"])
def test_what_a_tuning_needs_is_asked_for_by_name(name):
    with refused("horizon", name):
        dw.make(name, dim=2, path_length=1.0)
    if name != "OFUL":
        with refused("path_length", name):
            dw.make(name, dim=2, horizon=100)
    for value in (-1.0, NAN, INF, "1"):
        with refused("path_length"):
            dw.make(name, dim=2, horizon=100, path_length=value)
        with refused("changes"):
            dw.make(name, dim=2, horizon=100, path_length=1.0, changes=value)
    by_hand = dw.make(name, dim=2, memory=dw.Window(9), lam=1.0, delta=0.1)  # nothing is left to tune
    assert by_hand.memory == dw.Window(9)


@pytest.mark.parametrize("name", ["LB-WeightUCB", "D-LinUCB"])
def test_a_path_too_long_for_any_gamma_is_a_sentence_with_a_way_out(name):
    for length in (200.0, 1e9):
        with refused("path_length", "dim*horizon = 200", "memory=Fade"):
            dw.make(name, dim=2, horizon=100, path_length=length)
    assert dw.make(name, dim=2, horizon=100, path_length=199.9).memory.forget < 1.0
    assert dw.make(name, dim=2, horizon=100, path_length=1e9, memory=dw.Fade(0.5)).memory == dw.Fade(0.5)


@pytest.mark.parametrize("seed", [-1, 1.0, None, "0", True])
def test_a_seed_is_a_whole_number_from_0(seed):
    with refused("seed"):
        dw.simulate(POLICIES["keep"], dw.worlds.Turn(horizon=5), trials=1, seed=seed)
    with refused("seed"):
        POLICIES["keep"].start(seed=seed)


@pytest.mark.parametrize("data", [b"", b"junk", b"PK\x03\x04junk", "half"])
def test_bytes_that_are_no_state_are_refused(data):
    saved = used(POLICIES["window"]).to_bytes()
    with refused("data", "wrote as a state"):
        dw.State.from_bytes(saved[: len(saved) // 2] if data == "half" else data)


def test_a_state_of_another_policy_is_refused():
    # Compiled loops do not check bounds, so arrays that do not fit must not reach them.
    three = dw.LinearUCB(**HAND | {"dim": 3})
    with refused("state"):
        three.choose(POLICIES["keep"].start(), np.eye(3))
    with refused("state"):
        POLICIES["fade, two matrices"].scores(POLICIES["keep"].start(), ARMS)
    with refused("state"):
        POLICIES["keep"].choose(None, ARMS)


TIMES = [np.datetime64("2030-01-01"), np.timedelta64(5, "s"), np.datetime64(7, "ns"), np.timedelta64(7, "ns")]


@pytest.mark.parametrize("time", TIMES, ids=str)
def test_a_time_or_a_span_is_no_number_wherever_numbers_enter(time):
    sets = ([[time, time], [time, time]], np.full((2, 2), time), [[0.5, time]], np.array([[0.5, time]], dtype=object))
    for arms in sets:
        with refused("arms", "numbers"):
            dw.ArmSet(arms)
        with refused("arms"):
            dw.make("LB-WeightUCB", dim=2, horizon=10, path_length=1.0).choose(used(POLICIES["keep"]), arms)
    with refused("arm"):
        POLICIES["keep"].learn(used(POLICIES["keep"]), ARMS, time, 1.0)
    agent = dw.Agent(POLICIES["keep"], rewards=(0.0, 10.0))
    one = agent.decide(ARMS)
    before = agent.to_bytes()
    asks = {
        "arms": lambda: agent.decide([[time, 0.0]]), "cost": lambda: agent.decide(ARMS, cost=[0.0, 0.0, time]),
        "allowed": lambda: agent.decide(ARMS, allowed=np.array([time])),
        "items": lambda: agent.decide(ARMS, items=["a", "b", time]), "now": lambda: agent.decide(ARMS, now=time),
        "id": lambda: agent.decide(ARMS, id=time),
    }  # fmt: skip
    for field, ask in asks.items():
        with refused(field):
            ask()
    assert agent.to_bytes() == before
    with refused("value"):
        agent.reward(one.id, time)
    for field, make in {
        "seed": lambda: dw.Agent(POLICIES["keep"], rewards=(0.0, 1.0), seed=time),
        "rewards": lambda: dw.Agent(POLICIES["keep"], rewards=(0.0, time)),
        "epsilon": lambda: dw.Agent(POLICIES["keep"], rewards=(0.0, 1.0), epsilon=time),
        "max_open": lambda: dw.Agent(POLICIES["keep"], rewards=(0.0, 1.0), max_open=time),
    }.items():
        with refused(field):
            make()


@pytest.mark.parametrize("time", TIMES, ids=str)
def test_a_time_or_a_span_is_no_value_of_a_feature(time):
    spec = dw.Features(context={"age": dw.Features.number(), "town": dw.Features.levels(("a", "7", "5"))}, item={})
    agent = dw.Agent(linear_of(spec.dim), rewards=(0.0, 1.0), features=spec)
    for field in ("age", "town"):
        with refused(field):
            agent.decide(items=["one", "two"], context={field: time})
    with refused("items"):
        agent.decide(items=[time, "two"], context={})
    with refused("town"):
        dw.Features.fit([{"town": time}], {"one": {}})
    assert agent.counts["decided"] == 0


def linear_of(dim):
    return dw.LinearUCB(**HAND | {"dim": dim})
