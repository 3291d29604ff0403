"""The book's section of a snapshot: open decisions first, then closed ones, each in order."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from driftwise.agent.record import COUNTED, Book, Decision, Entry, checked_id, checked_item
from driftwise.agent.sections import check_vectors, no, packed, plain_section, section_count, section_table, shaped
from driftwise.ledger import CLOSED, Terms, Verdict
from driftwise.policies.arms import ArmSet
from driftwise.policies.own import Lent, vector_of

_WHOLE, _NUMBERS = 6, 6


def arrays(book: Book, policy: Any) -> dict[str, Any]:
    """The decisions, one row each."""
    entries = [*book.open.values(), *book.closed.values()]
    lent = [entry.x for entry in book.open.values()] if policy.taught_with_arms else None
    return {
        **({} if lent is None else _lent_arrays(lent)),
        "names": packed([[entry.decision.id, entry.decision.item, entry.mark] for entry in entries]),
        "whole": section_table([_whole(entry) for entry in entries], _WHOLE, np.int64),
        "numbers": section_table([_numbers(entry) for entry in entries], _NUMBERS, np.float64),
        "draws": np.array([entry.decision.draws for entry in entries], dtype=np.int64),
        "vectors": section_table(
            [vector_of(entry.x).ravel() for entry in book.open.values()], policy.dim or 1, np.float64
        ),
    }


def _lent_arrays(lent: list[Lent]) -> dict[str, Any]:
    """All arms of open decisions, for a policy that learns with them."""
    arms = [one.arms.columns[0].T for one in lent]
    return {
        "own_arms": np.concatenate(arms) if arms else np.zeros((0, 1)),
        "own_places": np.array([one.arm for one in lent], dtype=np.int64),
    }


def _whole(entry: Entry) -> list[int]:
    one = entry.decision
    return [one.seq, max(one.arm, 0), int(one.explored), one.born, one.n, CLOSED.index(entry.verdict)]


def _numbers(entry: Entry) -> list[float]:
    one = entry.decision
    return [one.score, one.mean, one.bonus, one.propensity, one.at, entry.value]


def fill(
    book: Book, facts: dict[str, Any], arrays: dict[str, Any], policy: Any, terms: Terms, *, seq: int, ahead: int,
    most: int, digest: str,
) -> None:  # fmt: skip
    """Read counts and decisions of an agent at decision `seq`, whose next decision has at most the tick `ahead`."""
    if set(facts["counts"]) != set(COUNTED):
        raise no("other counters")
    book.counts = {name: section_count(facts["counts"], name) for name in COUNTED}
    opened, names = section_count(facts, "open"), plain_section(arrays["names"], "names")
    if not isinstance(names, list) or not all(isinstance(one, list) and len(one) == 3 for one in names):
        raise no("names of another shape")
    own, rows, dim = policy.taught_with_arms, len(names), policy.dim or 1
    whole = shaped(arrays, "whole", (rows, _WHOLE), "i8").tolist()
    unknown = own or any(row[4] == 0 for row in whole)  # the density of a sampled point of a ball is unknown
    numbers = shaped(arrays, "numbers", (rows, _NUMBERS), "f8", unknown=unknown).tolist()
    draws = shaped(arrays, "draws", (rows,), "i8").tolist() if "draws" in arrays else [0] * rows
    vectors = shaped(arrays, "vectors", (opened, dim), "f8")
    if opened > most or rows - opened > book.remember:
        raise no("more decisions than there is room for")
    check_vectors(policy, vectors)
    kept = _lent(arrays, [row[4] for row in whole[:opened]]) if own else [
        vector.reshape(1, dim, 1).copy() for vector in vectors
    ]
    born_last = 0
    for row, (id, item, mark) in enumerate(names):
        number, arm, explored, born, n, code = whole[row]
        score, mean, bonus, propensity, at, value = numbers[row]
        is_open = row < opened
        arm = arm if n else -1  # a continuous set has no indices
        good = 0 < number <= seq and explored <= 1 and code < len(CLOSED) and not (own and n == 0)
        largest = 1.0 if n else math.inf  # for such a set it may be a density
        good = good and (0.0 <= propensity <= largest or math.isnan(propensity))
        good = good and (CLOSED[code] is Verdict.OPEN) == is_open and born <= ahead
        good = good and not (is_open and born < born_last)
        good = good and (code == 0 or value == 0.0 or terms.low <= value <= terms.high)
        good = good and (mark is None or isinstance(mark, str)) and checked_id(id) not in book.open
        if not good or id in book.closed:
            raise no(f"a decision out of order in row {row}", "decisions as an agent makes them")
        born_last = born if is_open else born_last
        item = item if type(item) is int else checked_item(item)  # of any length, as earlier versions accepted
        decision = Decision(
            id, number, arm, item, score, mean, bonus, propensity, bool(explored), born, at, n,
            digest, draws[row], vectors[row].copy() if is_open and n == 0 else None,
        )  # fmt: skip
        entry = Entry(decision, kept[row] if is_open else None, mark)
        entry.verdict, entry.value = CLOSED[code], value
        (book.open if is_open else book.closed)[id] = entry


def _lent(arrays: dict[str, Any], counts: list[int]) -> list[Lent]:
    """All arms of open decisions; `counts` has their numbers."""
    dim = arrays["own_arms"].shape[1] if arrays["own_arms"].ndim == 2 else 0
    rows = shaped(arrays, "own_arms", (sum(counts), dim), "f8")
    places = shaped(arrays, "own_places", (len(counts),), "i8").tolist()
    if not all(place < number for place, number in zip(places, counts, strict=True)):
        raise no("an arm that was not offered", "indices of offered arms")
    parts = np.split(rows, np.cumsum(counts)[:-1]) if counts else []
    return [Lent(ArmSet(part), place) for part, place in zip(parts, places, strict=True)]
