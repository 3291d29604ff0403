"""The rules for rewards (docs/contract.md#rewards), which agents and the service share."""

import pytest

from driftwise.agent.record import COUNTED
from driftwise.errors import BadInput
from driftwise.ledger import CLOSED, LESSONS, Conflict, Terms, Verdict, settle, terms_of
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
    for verdict in Verdict:
        for overdue in (False, True):
            learned = settle(verdict, 1.0, 1.0, overdue) is Verdict.LEARNED
            assert learned == (verdict is Verdict.OPEN and not overdue)


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
    assert tuple(map(str, CLOSED)) == VERDICTS and set(LESSONS) < set(VERDICTS)
    assert {str(one) for one in Verdict if one not in (Verdict.OPEN, Verdict.KEPT)} <= set(COUNTED)  # agents have none
