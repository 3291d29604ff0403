"""States that were damaged, in memory or as bytes: a sentence or a correct state, and never a crash."""

import pytest

from hostile.battery import suffer


def _no_findings(kind, least_sentences, **arguments):
    findings, summary = suffer(kind, arguments)
    assert not findings, f"{len(findings)} findings:\n" + "\n".join(findings)
    assert summary["sentences"] >= least_sentences and summary["fine"] > 0, summary
    return summary


def test_no_whole_number_of_a_state_can_crash_a_lesson():
    _no_findings("integers", 100)


@pytest.mark.slow
def test_no_number_of_a_state_can_crash_or_stall_a_lesson():
    _no_findings("floats", 5, every=5)


@pytest.mark.slow
def test_no_number_of_a_state_can_crash_or_stall_a_lesson_whichever_it_is():
    _no_findings("floats", 50, every=1)


@pytest.mark.parametrize("count", [500, pytest.param(10_000, marks=pytest.mark.slow)])
def test_a_mutated_state_is_refused_or_correct_and_never_costs_memory(count):
    summary = _no_findings("states", count // 2, count=count, seed=20)
    assert summary["megabytes"] <= 64.0, summary
