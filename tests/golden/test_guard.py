"""Bits are a promise: what is kept in this folder is what comes out (guard.py says how it is kept)."""

import json
import warnings

import numpy as np
import pytest

from golden import guard

KEPT = json.loads(guard.KEPT.read_text())


@pytest.fixture(scope="module")
def compiled():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the guard fills a window on purpose
        return guard.records(guard.DIMS, guard.ROUNDS)


def test_every_row_of_the_catalogue_does_what_it_did(compiled):
    seen, sums = compiled
    assert not guard.differences(seen, sums, KEPT["rows"], KEPT["platform"])


def test_nothing_kept_has_gone(compiled):
    assert set(compiled[0]) == set(KEPT["rows"])


@pytest.mark.parametrize("dims", [(2,), pytest.param(guard.DIMS, marks=pytest.mark.slow)])
def test_interpreted_is_compiled_to_the_last_bit(compiled, dims):
    seen, _ = compiled
    rows = guard.interpreted(dims, guard.ROUNDS)
    assert {key for key, row in rows.items() if seen[key] != row} == set()


def test_the_guard_sees_one_bit(compiled):
    seen, sums = compiled
    key = next(iter(seen))
    bent = {key: {**seen[key], "sums": "0" * 16}}
    if KEPT["platform"] == guard.here():
        assert guard.differences(bent, sums, KEPT["rows"], KEPT["platform"]) == [f"{key}: sums"]
    off = {**sums, key: sums[key] * (1.0 + 1e-9)}
    assert guard.differences({key: seen[key]}, off, KEPT["rows"], "elsewhere") == [f"{key}: sums"]
    assert np.isfinite(sums[key]).all()
