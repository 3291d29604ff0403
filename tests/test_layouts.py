"""Layouts are declared once: the groups of a state, and what kernels scribble on."""

import numpy as np
import pytest

import driftwise as dw
from driftwise.errors import BadInput
from driftwise.kernels import groups, point
from driftwise.policies import vetting
from driftwise.policies.state import State, layout

KNOWN = {"dim": 2, "horizon": 60, "path_length": 1.5, "changes": 2}


def test_every_size_has_the_flag_of_its_name():
    assert {name: getattr(point, name.upper()) for name in groups.SIZES} == groups.SIZE_AT


def test_every_demand_of_a_group_has_its_check_and_every_check_is_demanded():
    demanded = {demand for group in groups.GROUPS.values() for demand in group.demands}
    assert demanded == {*vetting._CHECKS, *vetting._INFINITE}


def test_files_of_before_have_their_sizes_and_groups_at_the_same_places():
    """A packed state is in files: a new size comes last, a new group behind all others of its kind that files have."""
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
