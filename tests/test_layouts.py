"""Layouts are declared once: the groups of a state, and the scratch of kernels."""

import inspect
import re
from pathlib import Path

import numpy as np
import pytest

import driftwise as dw
import interpreting
from driftwise.errors import BadInput
from driftwise.kernels import groups, point, scratch
from driftwise.policies import vetting
from driftwise.policies.state import State, layout

KNOWN = {"dim": 2, "horizon": 60, "path_length": 1.5, "changes": 2}


def test_every_size_has_the_flag_of_its_name():
    places = range(groups.FIRST_SIZE, groups.FIRST_GROUP)
    assert [getattr(point, name.upper()) for name in groups.StateSizes._fields] == list(places)
    places = range(groups.FIRST_GROUP, groups.LAST_GROUP + 1)
    assert [getattr(groups, f"AT_{name.upper()}") for name in groups.GroupShapes._fields] == list(places)


def test_every_demand_of_a_group_has_its_check_and_every_check_is_demanded():
    demanded = {demand for demands in groups.DEMANDS.values() for demand in demands}
    assert groups.DEMANDS.keys() < set(groups.GroupShapes._fields)
    assert demanded == {*vetting._CHECKS, *vetting._LIMITS, *vetting._INFINITE}


def test_files_of_before_have_their_sizes_and_groups_at_the_same_places():
    """Packed states are stored in files, so a new size comes last, and a new group after all others of its kind."""
    one = layout(3, 2, twins=1, room=5, atoms=7, played=2, estimates=4, scores=2, before=2, notes=5, cursors=4, marks=3)
    assert one.written_sizes() == [3, 2, 1, 5, 7, 2, 4, 2, 2, 0, 5, 4, 3]
    assert (one.floats, one.ints) == (186, 9)
    places = {name: group.start for kind in one.groups.values() for name, group in kind.items()}
    assert places == {
        "G": 0, "twin": 18, "b": 27, "counters": 33, "ring": 49, "atoms": 74, "weights": 95, "targets": 109,
        "theta": 123, "shown": 135, "H": 141, "notes": 177, "scores": 182, "before": 184, "key": 0, "cursor": 2,
        "marks": 6,
    }  # fmt: skip


@pytest.mark.parametrize("name", ["SW-UCB", "D-LinUCB", "Bank+SCB-WeightUCB", "MASTER+OFUL", "Auto"])
def test_a_number_that_is_not_finite_is_refused_in_every_group(name):
    policy = dw.make(name, **{key: KNOWN[key] for key in KNOWN if name != "Auto" or key in ("dim", "horizon")})
    clean = policy.start()
    for group in clean.layout.groups["floats"]:
        state = State.from_bytes(clean.to_bytes())
        getattr(state, group)[...] = np.nan
        with pytest.raises(BadInput, match=f"state.{group}"):
            policy.choose(state, [[1.0, 0.0], [0.0, 1.0]])


# ------------------------------------------------------------------------------------------ scratch


def declarations():
    """Every declaration of scratch, with sizes for it."""
    from driftwise.kernels import foretell, glm, index, lazy, stretches, tiles, trials
    from driftwise.kernels.adapt import linear
    from driftwise.kernels.auto import lesson
    from driftwise.kernels.search import index_form
    from driftwise.kernels.solvers import newton, secular

    return {
        "scores": (index.score_scratch_size, index.score_scratch_of, (3, 10)),
        "tiles": (tiles.tiles_size, tiles.tiles_of, (3, 10)),
        "lazy": (lazy._own_size, lazy._lazy_from, (3, 10)),
        "slots": (foretell.lane_scratch_size, foretell.lane_scratch_of, (3,)),
        "newton": (newton.newton_scratch_size, newton.newton_scratch_of, (3, 5)),
        "set": (secular.set_scratch_size, secular.set_scratch_of, (3, 5)),
        "form": (index_form.index_form_size, index_form.index_form_of, (3,)),
        "lesson": (glm.lesson_scratch_size, glm.lesson_scratch_of, (3, 5, 2)),
        "eight": (trials.eight_states_size, trials.eight_states_of, (3,)),
        "auto": (lesson.auto_scratch_size, lesson.auto_scratch_of, (3, 4)),
        "bank": (linear.bank_scratch_size, linear.bank_scratch_of, (3, 4)),
        "exp3": (stretches.exp3_weights_size, stretches.exp3_weights_of, (3, 5)),
        "layers": (stretches.ridge_layers_size, stretches.ridge_layers_of, (2, 3, 5)),
    }


def test_every_declaration_of_scratch_is_tried_here():
    folder = Path(scratch.__file__).parent
    declared = [len(re.findall(r"^\w+, \w+ = carved", path.read_text(), re.M)) for path in folder.rglob("*.py")]
    assert sum(declared) == len(declarations())


@pytest.mark.parametrize("name", declarations())
def test_scratch_of_the_declared_size_holds_all_fields_apart_and_no_less_does(name):
    size_of, of, sizes = declarations()[name]
    size, starts = size_of(*sizes), [0] if "start" in inspect.signature(of).parameters else []

    def cut(length):
        packed = np.zeros(length)
        return packed, scratch.views(of)(packed, *starts, *sizes)

    packed, fields = cut(size)
    assert size % scratch.EIGHT == 0
    for number, view in enumerate(leaves(fields)):
        assert not view.any(), "two fields share a number"
        view[...] = number + 1.0
    with pytest.raises(AssertionError):
        cut(np.flatnonzero(packed)[-1])


def leaves(fields):
    for one in fields:
        if isinstance(one, tuple):
            yield from leaves(one)
        elif one is not None:
            yield one


EXACT = """
import numpy as np
import driftwise as dw
from driftwise.policies import base, live as scratch

def shorter(dim, n, lesson):
    whole = whole_rounds(dim, n, lesson)
    return whole[: max(0, whole.size - TAKEN)]

whole_rounds, base.for_rounds = scratch.for_rounds, shorter
names = ["LB-WeightUCB", "D-LinUCB", "GLB-WeightUCB", "SCB-WeightUCB", "BVD-GLM-UCB", "D-LinTS", "D-GLM-TSL",
         "Bank+LB-WeightUCB", "Bank+SCB-WeightUCB", "MASTER+OFUL", "BOB+SCB-WeightUCB", "Auto"]
known = {"dim": 3, "horizon": 40, "path_length": 1.5, "changes": 2}
for TAKEN in (0, 10000):
    for name in names:
        policy = dw.make(name, **known)
        clicks = getattr(getattr(policy, "base", policy), "link", "identity") != "identity"
        reward = {"reward": "bernoulli", "link": "logistic"} if clicks else {}
        for arms in (5, 20):
            world = dw.worlds.Turn(dim=3, arms=arms, horizon=4, **reward)
            try:
                dw.simulate({name: policy}, world, trials=1, jobs=1)
                outcome = "played"
            except AssertionError:
                outcome = "short"
            assert outcome == ("short" if TAKEN else "played"), (name, arms, TAKEN, outcome)
        state = policy.start()
        policy.learn(state, [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]], 1, 1.0)
        policy.scores(state, np.eye(3))
many = dw.worlds.Turn(dim=12, arms=160, horizon=20)
TAKEN = 0
dw.simulate({"lazy": dw.make("OFUL", dim=12, horizon=20)}, many, trials=9, jobs=1)
print("all")
"""


def test_every_family_and_engine_stays_within_scratch_of_the_declared_size():
    """Interpreted, a view beyond the end of scratch raises; scratch has exactly the declared length."""
    assert interpreting._printed(EXACT, "1").splitlines()[-1] == "all"
