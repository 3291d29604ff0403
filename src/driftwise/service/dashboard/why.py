"""The page of one decision."""

from __future__ import annotations

from typing import NamedTuple

import msgspec

from driftwise.draw.markup import Html, badge, html_table, joined, tag
from driftwise.service.core.setup import Setup
from driftwise.service.dashboard import charts
from driftwise.service.dashboard.live import WHO, arm_name
from driftwise.service.dashboard.wording import card, count, decimal, shown_time, signed
from driftwise.service.stores.records import DecisionRow
from driftwise.service.wire.protocol import Explained

_ARMS, _PULLS = 12, 8


class Why(NamedTuple):
    """A decision and its explanation. If it was not computed again, `told` is None and `reason` says why."""

    row: DecisionRow
    setup: Setup
    told: Explained
    pulls: tuple[tuple[str, float], ...]
    rival: str
    reason: str = ""


def decision(why: Why) -> dict[str, Html]:
    """The parts of a decision's page."""
    row, told = why.row, why.told
    facts: list[tuple[object, object]] = [
        ("number", count(row.seq)), ("at (UTC)", shown_time(row.at)), ("played", arm_name(row.arm, row.item)),
        ("chosen by", WHO.get(row.cohort, row.cohort)), ("propensity", decimal(row.propensity, 6)),
        ("explored", "yes" if row.explored else "no"), ("among", f"{count(row.n)} arms"),
        ("state after", f"{count(row.state_seq)} rewards, generation {row.era}"), ("decided at tick", count(row.born)),
        ("policy", tag("code", told.policy[:16])),
        ("reward", joined([decimal(told.reward, 6), " ", badge(told.verdict, _KIND.get(told.verdict, "open"))])),
    ]  # fmt: skip
    if row.cohort != "live":
        facts.insert(3, ("the policy's own", f"arm {row.proposed}"))
    again = {True: badge("recomputed to the last bit", "yes"), False: badge("differs when recomputed", "no"),
             None: badge("not recomputed")}[told.recomputed]  # fmt: skip
    said = tag("p", again, f" {why.reason}" if why.reason else "")
    found = {"facts": card("What was decided", said, html_table((), facts, (), "The decision"))}
    if why.pulls:
        found["pulls"] = _pulls(why)
    if told.arms:
        found["arms"] = _arms(why)
    if row.context:
        found["context"] = _context(row.context)
    return found


_KIND = {"learned": "yes", "defaulted": "yes", "late": "no"}


def _arms(why: Why) -> Html:
    listed, row = why.told.arms, why.row
    priced = any(arm.cost is not None for arm in listed)
    most = max((abs(arm.mean) + max(arm.bonus, 0.0) for arm in listed), default=1.0) or 1.0
    shown = [arm for place, arm in enumerate(listed) if place < _ARMS or arm.arm in (row.arm, row.proposed)]
    rows = []
    for arm in shown:
        name = arm_name(arm.arm, arm.item)
        marks = [badge("played", "yes")] if arm.arm == row.arm else []
        marks += [badge("proposed")] if arm.arm == row.proposed != row.arm else []
        bar = charts.meter(max(arm.score, 0.0) / most, f"score {decimal(arm.score)}")
        price = [decimal(arm.cost)] if priced else []
        numbers = decimal(arm.score), decimal(arm.mean), decimal(arm.bonus), *price
        rows.append((joined([name, *marks], " "), *numbers, bar))
    left = len(listed) - len(shown)
    more = tag("p", f"{count(left)} more arms are not listed.", class_="soft") if left else ""
    less = " - cost" if priced else ""
    said = tag("p", f"Score = estimate + bonus{less}, on the state of the decision; the best first.")
    columns = ("arm", "score", "estimate", "bonus", *(("cost",) if priced else ()), "")
    return card("Arms", said, html_table(columns, rows, tuple(range(1, len(columns) - 1)), "Arms"), more)


def _pulls(why: Why) -> Html:
    most = max(abs(pull) for _, pull in why.pulls) or 1.0
    rows = [
        (name, signed(pull, 4), charts.meter(abs(pull) / most, f"{name} {signed(pull)}", 0 if pull >= 0.0 else 1))
        for name, pull in why.pulls[:_PULLS]
    ]
    own = next(arm for arm in why.told.arms if arm.arm == why.row.proposed)
    other = next(arm for arm in why.told.arms if arm.arm != why.row.proposed)
    less = "" if own.cost is None else f", and the cost {signed((other.cost or 0.0) - own.cost)}"
    together = f". In all {signed(own.mean - other.mean)}; the bonus adds {signed(own.bonus - other.bonus)}{less}."
    said = tag("p", "Effects of features on the policy's arm against the runner-up, ", tag("b", why.rival), together)
    return card("What moved the choice", said, html_table(("feature", "pull", ""), rows, (1,), "Effects of features"))


def _context(text: str) -> Html:
    told = msgspec.json.decode(text)
    rows = [(name, value) for name, value in told.items()] if isinstance(told, dict) else [("context", text)]
    return card("Context", html_table(("field", "value"), rows, (), "Context"))
