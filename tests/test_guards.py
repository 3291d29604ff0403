"""Guards: the C module of a wheel calls them before each entry; an accepted call stays inside its arrays."""

import json

import pytest
from numba import types

from driftwise.kernels import entries
from interpreting import interpreted

UNGUARDED = {"bank_best", "bank_pick"}  # they read nothing beyond the length of an array


def trespasses(**options):
    """Failures, calls tried, calls accepted, entries never called."""
    return json.loads(interpreted(f"import json, guarding; print(json.dumps(guarding.trespasses(**{options!r})))"))


@pytest.mark.parametrize(("every", "first"), [(20, 7), pytest.param(1, 0, marks=pytest.mark.slow)])
def test_what_a_guard_lets_through_stays_inside_its_arrays(every, first):
    found, tried, through, unseen = trespasses(every=every, first=first)
    assert not found, f"{len(found)} of {tried}:\n" + "\n".join(found[:40])
    assert not unseen and 0.2 * tried < through < 0.9 * tried


def test_an_entry_without_its_guard_would_be_found_out():
    found, tried, _, _ = trespasses(every=6, guarded=False, only="solve_")
    assert 0.1 * tried < len(found), found


def test_every_entry_that_takes_arrays_has_a_guard():
    for name, live in entries.LIST.items():
        arrays = any(not isinstance(one, types.Number | types.Boolean) for one in entries.declared(name).args)
        assert (live.guard is not None) == (arrays and name not in UNGUARDED), name
