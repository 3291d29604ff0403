"""An agent as one container: policy and settings as plain data, the rest as arrays (docs/contract.md#snapshots).

Everything that is read is checked before it is used. The policy is built by its own constructor and must have the
digest it was saved with. The state is checked as any loaded state. Every decision is checked against both. A policy of
the user's own is passed again, and writes and reads its state itself.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from driftwise._internal import container
from driftwise._internal.validate import real
from driftwise.agent.drift import Meter
from driftwise.agent.parts import AgentParts, Lineage, parts_of
from driftwise.agent.record import COUNTED, Book, Decision, Entry, Logged, checked_id, checked_item
from driftwise.agent.states import shown_at
from driftwise.errors import BadInput
from driftwise.ledger import CLOSED, Verdict
from driftwise.policies.arms import ArmSet
from driftwise.policies.names import restored_policy
from driftwise.policies.own import Lent
from driftwise.policies.plain import check_revision
from driftwise.tables.encoder import Encoder
from driftwise.tables.features import Features

if TYPE_CHECKING:
    from driftwise.agent.agent import Agent

ANEW = "load the last snapshot that was saved whole"
# What helps where this version has another policy of that name.
_LEARNED = "make a new agent and let it learn the log, agent.learn_log(log)"
MOST = 2**53
VERSION = 2  # 1: states of the wall clock count from tick 0, in 1970
# Numbers of a decision in two tables.
_WHOLE, _NUMBERS = 6, 6
_SETTINGS = ("rewards", "clock", "tick", "epsilon", "seed", "expire_after", "default_reward", "max_open", "remember")


def write_snapshot(parts: AgentParts) -> bytes:
    """The agent as bytes. No other thread may use it meanwhile."""
    book, states, policy, meter = parts.book, parts.states, parts.policy, parts.meter
    terms, clock, dim = parts.terms, parts.clock, policy.dim or 1
    kept = policy.written(states.front)
    facts = {
        "agent": VERSION, "policy": policy.described, "digest": parts.digest, "settings": {
            "rewards": list(terms[:2]), "clock": clock.kind, "tick": clock.tick, "epsilon": parts.epsilon,
            "seed": str(parts.seed), "expire_after": terms.expire_after, "default_reward": terms.default,
            "max_open": parts.max_open, "remember": book.remember,
        },
        "seq": parts.seq, "origin": parts.origin, "counts": book.counts, "open": len(book.open),
        "learned": states.tick, "zero": states.zero, "outside": states.front.outside, "told": states.front.warned,
        "newest": clock.newest, "silence": float(clock.silence), **parts.lineage.facts(),
        "stride": meter.stride, "waited": meter.waited,
        **({} if parts.driven is None else {"driven": parts.driven}),
        **({} if parts.features is None else {"features": parts.features.to_dict()}),
    }  # fmt: skip
    return container.pack("agent", facts, {
        **kept, **_decisions(book, policy), **_lessons(meter, dim), **_rows(parts.encoder, book, dim),
    })  # fmt: skip


def read_snapshot(cls: type[Agent], data: object, policy: Any, now: Callable[[], float]) -> Agent:
    """The agent that these bytes hold, or BadInput."""
    facts, arrays = container.unpack("agent", data, ANEW)
    if facts.get("agent") not in range(1, VERSION + 1):
        raise no(f"version {facts.get('agent')!r} of agents")
    try:
        agent = _built(cls, facts, policy, now)
        parts = parts_of(agent)
        zero = _zero(facts, parts.clock.kind)
        parts.begin(_state(parts.policy, facts, arrays, zero), zero)
        _fill(parts, facts, arrays)
    except BadInput:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise no(f"a header or a table of another shape ({type(error).__name__})") from None
    return agent


def _built(cls: type[Agent], facts: dict[str, Any], policy: Any, now: Callable[[], float]) -> Agent:
    """An agent with the settings of the snapshot, and nothing learned."""
    if policy is None:
        policy = restored_policy(facts["policy"], f"pass policy= again, or {_LEARNED}")
    settings = dict(facts["settings"])
    if set(settings) != set(_SETTINGS):
        raise no("other settings")
    if not (isinstance(settings["seed"], str) and settings["seed"].isascii() and len(settings["seed"]) < 400):
        raise no("a seed that is not a number")
    settings["seed"] = int(settings["seed"]) if settings["seed"].isdigit() else -1
    settings["rewards"] = tuple(settings["rewards"])
    if settings["clock"] == "wall" and settings["expire_after"] is not None:
        settings["expire_after"] *= settings["tick"]  # written in ticks, asked for in seconds
    features = Features.from_dict(facts["features"]) if "features" in facts else None
    agent = cls(policy, **settings, features=features, now=now)
    parts = parts_of(agent)
    check_revision(facts["digest"], parts.digest)
    if parts.digest != facts["digest"]:
        got, wanted = f"digest {parts.digest}", f"the policy that was saved, {facts['digest']}"
        raise BadInput("policy", got, wanted, f"pass that one, or {_LEARNED}")
    if facts["settings"]["expire_after"] is not None:
        expire = float(facts["settings"]["expire_after"])  # to the last bit
        parts.terms = parts.terms._replace(expire_after=expire)
    return agent


def _zero(facts: dict[str, Any], clock: str) -> int | None:
    """The tick that the state counts from."""
    if facts["agent"] == 1:
        return 0
    if facts["zero"] is None and clock == "wall" and section_count(facts, "learned") == 0:
        return None
    return section_count(facts, "zero", most=MOST if clock == "wall" else 0)


def _state(policy: Any, facts: dict[str, Any], arrays: dict[str, Any], zero: int | None) -> Any:
    """The state as its policy reads it. The clock of a built-in policy's state must be that of the agent."""
    if policy.dim is None and section_count(facts, "seq"):
        policy.dim = int(arrays["vectors"].shape[1])  # the first arms gave it to a policy of the user's own
    state = policy.held(arrays, ANEW)
    if policy.taught_with_arms:
        return state
    learned, wall = section_count(facts, "learned"), facts["settings"]["clock"] == "wall"
    shown = shown_at(policy, zero, learned) if wall and zero is not None else learned
    if wall and facts["agent"] == 1 and shown != learned:  # version 1 counted a period's first tick wrongly
        state.set_clock(state.clock + (shown - learned))
    if state.clock != shown:
        raise no(f"a state at tick {state.clock:g}", f"one at tick {shown:g}")
    state.outside, state.warned = section_count(facts, "outside"), facts["told"] is True
    return state


def _fill(parts: AgentParts, facts: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Each part reads its own section."""
    states, clock = parts.states, parts.clock
    parts.seq, states.tick = section_count(facts, "seq"), section_count(facts, "learned")
    clock.newest = section_count(facts, "newest")
    if facts["agent"] > 1:
        clock.silence = real("silence", facts["silence"], 0.0, way_out=ANEW)
    if clock.kind == "rounds" and clock.newest != parts.seq:
        raise no("a clock that is not at the last decision")
    if clock.kind != "rewards" and states.tick > clock.newest:
        raise no("a state that is ahead of its clock")
    lineage = Lineage.read(facts, facts["origin"])
    if lineage is None:
        raise no("sources that are not names")
    parts.origin, parts.lineage = facts["origin"], lineage
    driven = facts.get("driven")
    if driven is not None and not (type(driven) in (int, float) and abs(driven) <= 1e15):
        raise no("an invalid time")
    parts.driven = driven
    ahead = states.tick + 1 if clock.kind == "rewards" else clock.newest
    _fill_book(parts, facts, arrays, ahead)
    _fill_meter(parts, facts, arrays)
    _fill_rows(parts, arrays)


def _decisions(book: Book, policy: Any) -> dict[str, Any]:
    """The decisions, one row each: open ones first, then closed ones, each in order."""
    entries, opened = [*book.open.values(), *book.closed.values()], list(book.open.values())
    lent = policy.taught_with_arms  # then all arms of open decisions are kept, and not only the vectors played
    every, made = [(entry, entry.decision) for entry in entries], {}
    if lent:
        arms = [entry.x.arms.columns[0].T for entry in opened]
        made["own_arms"] = np.concatenate(arms) if arms else np.zeros((0, 1))
        made["own_places"] = np.array([entry.x.arm for entry in opened], dtype=np.int64)
    whole = [
        [one.seq, max(one.arm, 0), int(one.explored), one.born, one.n, CLOSED.index(entry.verdict)]
        for entry, one in every
    ]
    numbers = [[one.score, one.mean, one.bonus, one.propensity, one.at, entry.value] for entry, one in every]
    vectors = [(entry.x.column if lent else entry.x).ravel() for entry in opened]
    return {
        **made,
        "names": packed([[one.id, one.item, entry.mark] for entry, one in every]),
        "whole": section_table(whole, _WHOLE, np.int64),
        "numbers": section_table(numbers, _NUMBERS, np.float64),
        "draws": np.array([one.draws for _, one in every], dtype=np.int64),
        "vectors": section_table(vectors, policy.dim or 1, np.float64),
    }


def _fill_book(parts: AgentParts, facts: dict[str, Any], arrays: dict[str, Any], ahead: int) -> None:
    """Read counts and decisions of an agent whose next decision has at most the tick `ahead`."""
    book, policy, terms, seq = parts.book, parts.policy, parts.terms, parts.seq
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
    if opened > parts.max_open or rows - opened > book.remember:
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
            parts.digest, draws[row], vectors[row].copy() if is_open and n == 0 else None,
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


def _lessons(meter: Meter, dim: int) -> dict[str, Any]:
    """The arrays of the drift meter."""
    lanes = len(meter.history[0][1]) if meter.history else 0
    return {
        "recent_ticks": section_table([one[:2] for one in meter.recent], 2, np.int64),
        "recent": section_table([[*one[2].ravel(), one[3]] for one in meter.recent], dim + 1, np.float64),
        "history_ticks": np.array([tick for tick, _ in meter.history], dtype=np.int64),
        "history": section_table([weights for _, weights in meter.history], lanes, np.float64),
    }


def _fill_meter(parts: AgentParts, facts: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Read the section of the drift meter."""
    meter, policy, terms, states = parts.meter, parts.policy, parts.terms, parts.states
    meter.stride, meter.waited = max(1, section_count(facts, "stride")), section_count(facts, "waited")
    dim, many = policy.dim or 1, arrays["recent"].shape[0]
    ticks = shaped(arrays, "recent_ticks", (many, 2), "i8").tolist()
    rows = shaped(arrays, "recent", (many, dim + 1), "f8")
    check_vectors(policy, rows[:, :dim])
    if not ((rows[:, dim] >= terms.low) & (rows[:, dim] <= terms.high)).all():
        raise no("rewards out of range", f"rewards from {terms.low:g} to {terms.high:g}")
    last = 0
    for (tick, born), row in zip(ticks, rows, strict=True):
        if not max(last, born) <= tick <= states.tick:
            raise no("rewards out of order", "rewards in the order of their ticks")
        last = tick
        meter.recent.append((tick, born, row[:dim].reshape(1, dim, 1).copy(), float(row[dim])))
    points = arrays["history"].shape[0]
    now = policy.weights(states.front) if points else None
    weights = shaped(arrays, "history", (points, 0 if now is None else len(now)), "f8")
    if weights.size and not (weights.min() >= 0.0 and weights.max() <= 1.0 + 1e-9):
        raise no("weights of memories out of range", "shares from 0 to 1")
    at = shaped(arrays, "history_ticks", (points,), "i8").tolist()
    meter.history = [(tick, row.copy()) for tick, row in zip(at, weights, strict=True)]


def _rows(encoder: Encoder | None, book: Book, dim: int) -> dict[str, Any]:
    """Item rows, and log data of open decisions. Snapshots of agents without features or a log have none of these."""
    made: dict[str, Any] = {}
    if encoder is not None:
        made["items"] = packed(list(encoder.rows.items()))
    entries = [entry.shown for entry in book.open.values()]
    if any(one is not None for one in entries):
        rows = [one.arms.columns[0].T for one in entries if one is not None and one.arms is not None]
        made["logged"] = packed([None if one is None else _plain(one) for one in entries])
        made["logged_arms"] = np.concatenate(rows) if rows else np.zeros((0, dim))
    return made


def _plain(one: Logged) -> list[Any]:
    named = None if one.candidates is None else list(one.candidates)
    more = [] if one.measure is None else [one.measure]
    return [one.state_seq, one.place, 0 if one.arms is None else one.arms.count, one.context, named, *more]


def _fill_rows(parts: AgentParts, found: dict[str, Any]) -> None:
    """Encode item rows again, and check the log data of open decisions against them."""
    encoder, book, dim = parts.encoder, parts.book, parts.policy.dim or 1
    if encoder is not None:
        encoder.know(dict(plain_section(found["items"])))
    if "logged" not in found:
        return
    entries, listed = list(book.open.values()), plain_section(found["logged"])
    rows, at = found["logged_arms"], 0
    good = len(entries) == len(listed) and rows.dtype == np.dtype("f8") and rows.ndim == 2
    if not good or not np.isfinite(rows).all() or rows.shape[1] != dim:
        raise no("arms or rows that do not fit its open decisions")
    for entry, one in zip(entries, listed, strict=True):
        if one is None:
            continue
        state_seq, place, count, context, named, *more = one
        n = entry.decision.n
        good = all(type(number) is int and number >= 0 for number in (state_seq, count)) and type(place) is int
        good = good and (0 <= place < n or (place == -1 and n == 0)) and (not more or more[0] in ("volume", "length"))
        good = good and count in (0, n) and at + count <= len(rows)
        good = good and (context is None or (encoder is not None and encoder.context(context) == context))
        good = good and (named is None or (len(named) == n and all(isinstance(name, str) for name in named)))
        if not good:
            raise no(f"a log's row that does not fit decision {entry.decision.id!r}")
        arms = ArmSet(rows[at : at + count]) if count else None
        at += count
        entry.shown = Logged(state_seq, place, arms, context, None if named is None else tuple(named), *more)


def no(what: str, wanted: str = "the snapshot of an agent") -> BadInput:
    """The error for data that are not the snapshot of an agent."""
    return BadInput("data", what, wanted, ANEW)


def section_count(facts: dict[str, Any], name: str, most: int = MOST) -> int:
    """A count in the header."""
    value = facts[name]
    if type(value) is not int or not 0 <= value <= most:
        raise no(f"{name} = {value!r}"[:80], f"a whole number from 0 to {most}")
    return value


def section_table(rows: list[Any], width: int, kind: Any) -> Any:
    """Rows as one array, also for no rows."""
    return np.array(rows, dtype=kind).reshape(len(rows), width)


def shaped(arrays: dict[str, Any], name: str, shape: tuple[int, ...], kind: str, unknown: bool = False) -> Any:
    """An array of the snapshot with this shape. NaN is allowed with `unknown`, for policies without estimates."""
    found = arrays[name]
    if found.shape != shape or found.dtype != np.dtype(kind):
        raise no(f"{name} of shape {found.shape}", f"shape {shape}")
    if kind == "f8" and not (np.isfinite(found) | (np.isnan(found) & unknown)).all():
        raise no(f"{name} with numbers that are not finite", "finite numbers")
    if kind == "i8" and found.size and not (found.min() >= 0 and found.max() <= MOST):
        raise no(f"{name} out of range", "whole numbers from 0 to 2^53")
    return found


def check_vectors(policy: Any, vectors: Any) -> None:
    """Refuse vectors that the policy would not have accepted as arms."""
    longest = policy.reach * (1.0 + 1e-6)
    if (np.abs(vectors) > longest).any() or (np.sqrt((vectors * vectors).sum(axis=1)) > longest).any():
        raise no("a vector longer than L", f"vectors of norm {policy.reach:g} at most")


def packed(data: Any) -> Any:
    """Plain data as the bytes of an array."""
    return np.frombuffer(json.dumps(data).encode(), dtype=np.uint8)


def plain_section(raw: Any, what: str = "rows") -> Any:
    """Plain data from the bytes of an array."""
    try:
        text = raw.tobytes()
        found = json.loads(text.decode())
        if b"\\ud" in text:  # earlier versions accepted lone surrogates in names; they are read as "?"
            found = json.loads(json.dumps(found, ensure_ascii=False).encode("utf-8", "replace"))
        return found
    except (ValueError, RecursionError):
        raise no(f"{what} that are not plain data") from None
