"""The rules for rewards (docs/contract.md#rewards), which agents and the service share."""

import re
from itertools import product
from pathlib import Path

import pytest

import driftwise
from driftwise.agent.record import COUNTED
from driftwise.errors import BadInput
from driftwise.ledger import CLOSED, LESSONS, NOT_SENT, Conflict, Terms, Verdict, settle, terms_of
from driftwise.tables.schema import VERDICTS


@pytest.mark.parametrize(("verdict", "first", "value", "overdue", "answer"), (
    (Verdict.OPEN, 0.0, 1.0, False, Verdict.LEARNED),
    (Verdict.OPEN, 0.0, 1.0, True, Verdict.LATE),
    (Verdict.LEARNED, 1.0, 1.0, False, Verdict.DUPLICATE),
    (Verdict.LEARNED, 1.0, 1.0, True, Verdict.DUPLICATE),
    (Verdict.LEARNED, 1.0, 0.0, False, Conflict.OTHER),
    (Verdict.LATE, 1.0, 1.0, True, Verdict.LATE),
    (Verdict.LATE, 1.0, 0.0, True, Conflict.OTHER),
    (Verdict.DEFAULTED, 0.0, 0.0, True, Verdict.LATE),
    (Verdict.DEFAULTED, 0.0, 1.0, True, Verdict.LATE),
    (Verdict.EXPIRED, 0.0, 1.0, False, Verdict.LATE),
    (Verdict.CANCELLED, 0.0, 0.0, False, Conflict.CANCELLED),
))  # fmt: skip
def test_what_a_reward_gets(verdict, first, value, overdue, answer):
    assert settle(verdict, first, value, overdue) is answer


def test_only_the_first_reward_of_an_open_decision_is_learned():
    for verdict, overdue, kept_out in product(Verdict, (False, True), (False, True)):
        found = settle(verdict, 1.0, 1.0, overdue, kept_out)
        assert (found is Verdict.LEARNED) == (verdict is Verdict.OPEN and not overdue and not kept_out)
        assert (found is Verdict.KEPT) == (verdict is Verdict.OPEN and not overdue and kept_out)


def test_an_overdue_decision_gets_the_default_that_could_be_learned_or_expires():
    with_default, without = Terms(0.0, 1.0, 5.0, 0.5), Terms(0.0, 1.0, 5.0)
    assert with_default.unanswered() is Verdict.DEFAULTED and with_default.unanswered(False) is Verdict.EXPIRED
    assert without.unanswered() is Verdict.EXPIRED and without.unanswered(False) is Verdict.EXPIRED
    assert all(settle(verdict, 0.5, value) is Verdict.LATE for verdict in NOT_SENT for value in (0.5, 1.0))


def test_a_stored_default_has_its_value_and_was_due():
    terms = Terms(0.0, 1.0, 5.0, 0.5)
    assert terms.was_due("defaulted", 0.5, 0, 6) and terms.was_due("learned", 1.0, 0, 6)
    assert not terms.was_due("defaulted", 0.5, 0, 5) and not terms.was_due("defaulted", 1.0, 0, 6)
    assert not Terms(0.0, 1.0).was_due("defaulted", 0.5, 0, 6)


def test_verdicts_are_decided_in_the_ledger_alone():
    """Elsewhere a verdict is compared, counted or read from a row."""
    sources = Path(driftwise.__file__).parent
    decides = re.compile(r"(?<!is )Verdict\.(LATE|KEPT|DUPLICATE|DEFAULTED)\b|\"(defaulted|late|duplicate)\" if ")
    found = [path.name for part in ("service", "agent") for path in sorted((sources / part).rglob("*.py"))
             if decides.search(path.read_text())]  # fmt: skip
    assert found == []


def test_a_decision_is_overdue_when_it_is_older_than_it_may_be():
    terms = Terms(0.0, 1.0, expire_after=3.0)
    assert [terms.overdue(10, tick) for tick in (10, 13, 14)] == [False, False, True]
    assert all(terms.overdue(born, 14) == (born < terms.limit(14)) for born in range(20))
    never = Terms(0.0, 1.0)
    assert not never.overdue(0, 10**15) and not any(born < never.limit(10**15) for born in (0, 10))


@pytest.mark.parametrize("value", (1.5, -0.1, float("nan"), float("inf"), "1", None, 10**400))
def test_a_reward_outside_its_range_is_refused(value):
    with pytest.raises(BadInput, match="value"):
        Terms(0.0, 1.0).checked(value)


def test_a_default_is_a_reward_that_can_become_due():
    assert terms_of(0.0, 1.0, 5.0, 0.5) == Terms(0.0, 1.0, 5.0, 0.5)
    with pytest.raises(BadInput, match="expire_after"):
        terms_of(0.0, 1.0, None, 0.5)
    with pytest.raises(BadInput, match="default_reward"):
        terms_of(0.0, 1.0, 5.0, 2.0)


def test_the_words_of_logs_books_and_rows_are_those_of_the_ledger():
    assert (*map(str, CLOSED), "late", "kept") == VERDICTS and set(LESSONS) < set(VERDICTS)  # the last two: a service's
    assert {str(one) for one in Verdict if one not in (Verdict.OPEN, Verdict.KEPT)} <= set(COUNTED)  # agents have none
