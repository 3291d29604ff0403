"""Bits are a promise: runs give the records that are stored in this folder (see guard.py)."""

import json
import warnings

import numpy as np
import pytest

from golden import guard
from golden import seen as records

KEPT = json.loads(guard.KEPT.read_text())
WIDER = json.loads(guard.WIDER_KEPT.read_text())


@pytest.fixture(scope="module")
def compiled():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # the guard overflows a window on purpose
        return guard.records(guard.DIMS, guard.ROUNDS)


# Engines are bound, and so compiled, for every memory. These are in the slow suite.
DEAR = ("engine: OFUL", "engine: RestartUCB", "engine: SW-UCB", "engine: LB-WeightUCB with a window", "engine: BOB+")


@pytest.fixture(scope="module")
def beside():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        return guard.wider(without=DEAR)


def as_kept(seen, sums):
    return not guard.differences(seen, sums, WIDER["rows"], WIDER["platform"], guard.WIDER_SUMS, records.CLOSE)


def test_engines_sets_lessons_folds_and_agents_do_what_they_did(beside):
    assert as_kept(*beside)
    assert set(beside[0]) == {key for key in WIDER["rows"] if not key.startswith(DEAR)}


@pytest.mark.slow
@pytest.mark.parametrize("dear", DEAR)
def test_engines_of_every_memory_do_what_they_did(dear):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        seen, sums = guard.wider(dear)
    assert seen and as_kept(seen, sums)


def test_every_engine_plays_the_same_bits(beside):
    """In the stored records, engines of one policy and size have one row."""
    rows: dict[str, set[str]] = {}
    for key, row in beside[0].items():
        plain = key.removesuffix(", one by one")
        for forced in ("as it comes", "plain", "tiled", "lazy"):
            plain = plain.removesuffix(f", {forced}")
        if key.startswith("engine: "):
            rows.setdefault(plain, set()).add(json.dumps(row))
    assert len(rows) > 50 and {key for key, found in rows.items() if len(found) > 1} == set()


def test_a_record_of_few_is_the_record_of_all(beside):
    """`--only` runs the named records, and they are the same when they run alone."""
    for word in ("agent: fade, wall", "set: ball, Auto", "service: SCB, restart"):
        few, _ = guard.wider(word)
        assert few and few == {key: row for key, row in beside[0].items() if word in key}


def test_a_record_that_cannot_be_made_is_named(monkeypatch):
    def broken(self, other):
        raise RuntimeError("planted")

    monkeypatch.setattr("driftwise.Agent.merge", broken)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        seen, sums = guard.wider("merge: keep")
    found = guard.differences(seen, sums, WIDER["rows"], WIDER["platform"], guard.WIDER_SUMS, records.CLOSE)
    assert found == [f"{key}: RuntimeError: planted" for key in ("merge: keep", "merge: keep, wall")]


def test_every_row_of_the_catalogue_does_what_it_did(compiled):
    seen, sums = compiled
    assert not guard.differences(seen, sums, KEPT["rows"], KEPT["platform"])


def test_nothing_kept_has_gone(compiled):
    assert set(compiled[0]) == set(KEPT["rows"])


@pytest.mark.slow
@pytest.mark.parametrize("dims", [(2,), guard.DIMS])
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


def test_the_guard_sees_sums_that_are_not_close(beside):
    key, kept = "sums: keep", WIDER["rows"]
    row, sums = {key: {**kept["sums: keep"], "sums": "0" * 16}}, beside[1][key]
    for off, found in ((1e-14, []), (1e-11, [f"{key}: sums"])):
        near = {key: sums * (1.0 + off)}
        assert guard.differences(row, near, kept, guard.here(), guard.WIDER_SUMS, records.CLOSE) == found
