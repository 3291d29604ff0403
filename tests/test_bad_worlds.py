"""Bad input to worlds, to simulate and on the command line gets the same one sentence (see test_bad_input)."""

import math
import re

import numpy as np
import pytest

import driftwise as dw
from driftwise.cli import main
from refusing import refused

NAN, INF = math.nan, math.inf


BAD_WORLDS = [
    (dw.worlds.Turn, "dim", [1, 0, -2, 2.5, "2", None]),
    (dw.worlds.Walk, "dim", [0, NAN]),
    (dw.worlds.Turn, "arms", [0, -1, 1.5, NAN, "5", None]),
    (dw.worlds.Turn, "radius", [-1.0, NAN, INF, "1"]),
    (dw.worlds.Turn, "noise", [-1.0, NAN, INF, "1"]),
    (dw.worlds.Turn, "reward", ["gauss", None]),
    (dw.worlds.Turn, "norm", ["l2", None]),
    (dw.worlds.Turn, "draw", ["uniform", None]),
    (dw.worlds.Turn, "spread", [0.0, -1.0, NAN, INF, "1", None, 0.5]),  # 0.5 needs norm="clip"
    (dw.worlds.Turn, "link", ["logit", "log"]),
    (dw.worlds.Turn, "turns", [NAN, INF, "1", None]),
    (dw.worlds.Walk, "step", [-0.1, NAN, INF, None]),
    (dw.worlds.Walk, "path_seed", [-1, 1.5, None]),
    (dw.worlds.Turn, "arms_of", [-1, 1.5, "0"]),
    (dw.worlds.Turn, "fresh", ["no", None, {}]),
    (dw.worlds.Turn, "horizon", [0, 1e30, INF]),
    (dw.worlds.StopAndGo, "go", [(0.5, 0.5), (0.7, 0.2), (-0.1, 0.5), (0.5, 1.1), (0.5,), (NAN, 1.0), 0.5, None]),
    (dw.worlds.StopAndGo, "go", [("0.1", "0.9"), "ab"]),
    (dw.worlds.Sine, "waves", [NAN, "a", None]),
    (dw.worlds.Sine, "swing", [NAN, "a", None]),
    (dw.worlds.Turn, "chance", ["often", 1, None]),
    (dw.worlds.Jumps, "jumps", [-1, 1.5, 6000, NAN, None]),
    (dw.worlds.Jumps, "at", [(1, 2), (0, 1, 2), (3, 2, 1), (1, 2, 6000), (1, 1, 2), (1.5, 2, 3), 5]),
    (dw.worlds.Jumps, "directions", [((1.0, 0.0),), ((0.0, 0.0),) * 4, ((1.0,),) * 4, ((NAN, 1.0),) * 4, 3]),
]


@pytest.mark.parametrize(("world", "field", "values"), BAD_WORLDS, ids=lambda v: getattr(v, "__name__", None))
def test_a_bad_value_for_each_field_of_a_world(world, field, values):
    for value in values:
        with refused(field):
            world(**{field: value})


def test_rounds_of_jumps_are_a_list_even_without_jumps():
    with refused("at"):
        dw.worlds.Jumps(jumps=0, at=5)
    assert dw.worlds.Jumps(jumps=0, at=()).changes == 0


def test_all_trials_may_share_one_set_of_arms():
    own, shared = (next(dw.worlds.Turn(horizon=10, arms_of=of).tapes(0, 3)) for of in (None, 5))
    assert (shared.arms == next(dw.worlds.Turn(horizon=10).tapes(0, 5)).arms).all()
    assert (shared.arms != own.arms).any() and (shared.draws == own.draws).all()


def test_a_link_that_does_not_fit_its_rewards_is_refused():
    for reward, link in [("bernoulli", "identity"), ("bernoulli", "poisson"), ("poisson", "logistic")]:
        with refused("link", reward):
            dw.worlds.Turn(reward=reward, link=link)
    with refused("radius", "poisson"):
        dw.worlds.Turn(reward="poisson", radius=50.0)


A, TH, U = np.zeros((4, 2)), np.zeros((6, 2)), np.full(6, 0.5)
BAD_GIVEN = {
    "NaN theta": ("theta", {"theta": np.full((6, 2), NAN)}),
    "flat theta": ("theta", {"theta": np.zeros(6)}),
    "no rounds": ("theta", {"theta": np.zeros((0, 2))}),
    "arms of another dimension": ("arms", {"arms": np.zeros((4, 3))}),
    "infinite arms": ("arms", {"arms": np.full((4, 2), INF)}),
    "no arms": ("arms", {"arms": np.zeros((0, 2))}),
    "fresh arms for fewer rounds": ("arms", {"arms": np.zeros((5, 4, 2))}),
    "fresh arms without arms": ("arms", {"arms": np.zeros((6, 0, 2))}),
    "ragged arms": ("arms", {"arms": [[1.0, 0.0], [1.0]]}),
    "a tape too short": ("tape", {"tape": np.zeros(5)}),
    "a tape with a hole": ("tape", {"tape": np.full(6, NAN)}),
    "normals for bernoulli": ("tape", {"tape": np.array([0.1, -0.5, 0.2, 0.3, 0.4, 0.5]), "reward": "bernoulli"}),
    "a uniform of 1": ("tape", {"tape": np.ones(6), "reward": "poisson"}),
    "a misspelt reward": ("reward", {"reward": "bernouli", "tape": -U}),
    "negative noise": ("noise", {"noise": -1.0}),
}


@pytest.mark.parametrize(("parameter", "fields"), BAD_GIVEN.values(), ids=BAD_GIVEN)
def test_given_arrays_are_checked(parameter, fields):
    with refused(parameter):
        dw.worlds.Given(**{"arms": A, "theta": TH, "tape": U} | fields)


def test_simulate_checks_before_it_runs():
    world, policy = dw.worlds.Turn(horizon=5), dw.make("OFUL", dim=2, horizon=5)
    for field, values in {
        "trials": [0, -1, 1.5, NAN, "2", None],
        "jobs": [0, -1, 1.5, "2"],
        "record": [0, -1, 1.5, "every", None, True],
    }.items():
        for value in values:
            with refused(field):
                dw.simulate(policy, world, **{field: value})
    with refused("policies"):
        dw.simulate({}, world)
    with refused("policies['x']"):
        dw.simulate({"x": object()}, world)
    with refused("policies['x']"):
        dw.simulate({"x": dw.LinearUCB}, world)  # the class, not a policy
    with refused("policies['x']", "dim = 2"):
        dw.simulate({"x": dw.make("OFUL", dim=3, horizon=5)}, world)
    with refused("policies['x']", "L of at least 1"):
        dw.simulate({"x": dw.make("OFUL", dim=2, horizon=5, L=0.5)}, world)
    for nothing in (None, "Turn", dw.worlds.Turn):
        with refused("world"):
            dw.simulate(policy, nothing)


@pytest.mark.parametrize(
    ("words", "parameter"),
    [
        (["reproduce", "lb", "--trials", "1", "--out", "/proc/nowhere"], "out"),
        (["reproduce", "lb", "--trials", "0"], "trials"),
        (["reproduce", "lb", "--seed", "-1"], "seed"),
        (["tune", "--dim", "2", "--horizon", "100", "--path-length", "1e9"], "path_length"),
        (["tune", "--dim", "0", "--horizon", "100", "--path-length", "1"], "dim"),
        (["tune", "--dim", "2", "--horizon", "0", "--path-length", "1"], "horizon"),
        (["tune", "--dim", "2", "--horizon", "10", "--path-length", "nan"], "path_length"),
    ],
)
def test_the_command_line_says_the_same_sentence_and_exits_2(words, parameter, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as caught:
        main(words)
    out, err = capsys.readouterr()
    assert caught.value.code == 2
    assert out == ""
    assert re.fullmatch(rf"driftwise: {parameter}: wanted .+, got .+; .+\n", err)
    assert not list(tmp_path.iterdir())


def test_an_output_folder_that_is_a_file_is_refused(capsys, tmp_path):
    (tmp_path / "file").write_text("here first")
    with pytest.raises(SystemExit) as caught:
        main(["reproduce", "lb", "--trials", "1", "--out", str(tmp_path / "file")])
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith("driftwise: out: wanted ")
    assert (tmp_path / "file").read_text() == "here first"
