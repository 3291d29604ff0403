"""An agent as one container: policy and settings as plain data, state and decisions as arrays (PRODUCT.md 4).

What is read is proven before it is used: the policy is built anew by its own constructor and must have the digest it
was saved with, the state is vetted as any loaded state, and every decision in the books is checked against both. A
policy of the user's own is passed again, and writes and reads its state itself.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from driftwise._internal import container
from driftwise._internal.validate import real
from driftwise.agent import shown
from driftwise.agent.lineage import Lineage
from driftwise.agent.record import COUNTED, Decision, Entry, checked_id, checked_item
from driftwise.agent.shown import plain
from driftwise.agent.states import shown_at
from driftwise.errors import BadInput
from driftwise.ledger import CLOSED, Verdict
from driftwise.policies.arms import ArmSet
from driftwise.policies.names import restored_policy
from driftwise.policies.own import Lent, vector_of
from driftwise.tables.features import Features

if TYPE_CHECKING:
    from driftwise.agent.agent import Agent

VERSION = 2  # 1: states of the wall clock count from tick 0, in 1970
_ANEW = "load the last snapshot that was saved whole"
_MOST = 2**53
_SETTINGS = ("rewards", "clock", "tick", "epsilon", "seed", "expire_after", "default_reward", "max_open", "remember")
_WHOLE, _NUMBERS = 6, 6


def written(agent: Agent) -> bytes:
    """The agent as bytes, while nobody else uses it."""
    book, state, policy = agent._book, agent._states.front, agent._policy
    kept = policy.written(state)
    entries = [*book.open.values(), *book.closed.values()]
    settings: dict[str, Any] = {
        "rewards": list(agent._terms[:2]), "clock": agent._clock.kind, "tick": agent._clock.tick,
        "epsilon": agent._epsilon, "seed": str(agent._seed), "expire_after": agent._terms.expire_after,
        "default_reward": agent._terms.default, "max_open": agent._max_open, "remember": book.remember,
    }  # fmt: skip
    facts = {
        "agent": VERSION, "policy": policy.described, "digest": agent._digest,
        "settings": settings,
        "seq": agent._seq, "learned": agent._states.tick, "newest": agent._clock.newest, "counts": book.counts,
        "zero": agent._states.zero, "silence": float(agent._clock.silence),
        "origin": agent._origin, **agent._lineage.facts(), "open": len(book.open),
        **({} if agent._driven is None else {"driven": agent._driven}),
        "stride": agent._meter.stride, "waited": agent._meter.waited,
        "outside": state.outside, "told": state.told,
        **({} if agent.features is None else {"features": agent.features.to_dict()}),
    }  # fmt: skip
    names = [[entry.decision.id, entry.decision.item, entry.mark] for entry in entries]
    dim, recent = policy.dim or 1, list(agent._meter.recent)
    lanes = len(agent._meter.history[0][1]) if agent._meter.history else 0
    return container.pack("agent", facts, {
        **kept, **(_lent_arrays(book.open.values()) if policy.taught_with_arms else {}),
        "names": np.frombuffer(json.dumps(names).encode(), dtype=np.uint8),
        "whole": _table([_whole(entry) for entry in entries], _WHOLE, np.int64),
        "numbers": _table([_numbers(entry) for entry in entries], _NUMBERS, np.float64),
        "draws": np.array([entry.decision.draws for entry in entries], dtype=np.int64),
        "vectors": _table([vector_of(entry.x).ravel() for entry in book.open.values()], dim, np.float64),
        "recent_ticks": _table([one[:2] for one in recent], 2, np.int64),
        "recent": _table([[*one[2].ravel(), one[3]] for one in recent], dim + 1, np.float64),
        "history_ticks": np.array([tick for tick, _ in agent._meter.history], dtype=np.int64),
        "history": _table([weights for _, weights in agent._meter.history], lanes, np.float64),
        **shown.arrays(agent),
    })  # fmt: skip


def _lent_arrays(open_ones: Iterable[Entry]) -> dict[str, Any]:
    """All arms of open decisions, for a policy that is taught with them."""
    lent = [entry.x for entry in open_ones]
    arms = [one.arms.columns[0].T for one in lent]
    return {
        "own_arms": np.concatenate(arms) if arms else np.zeros((0, 1)),
        "own_places": np.array([one.arm for one in lent], dtype=np.int64),
    }


def _table(rows: list[Any], width: int, kind: Any) -> Any:
    return np.array(rows, dtype=kind).reshape(len(rows), width)


def _whole(entry: Entry) -> list[int]:
    one = entry.decision
    return [one.seq, max(one.arm, 0), int(one.explored), one.born, one.n, CLOSED.index(entry.verdict)]


def _numbers(entry: Entry) -> list[float]:
    one = entry.decision
    return [one.score, one.mean, one.bonus, one.propensity, one.at, entry.value]


def _no(what: str, wanted: str = "the snapshot of an agent") -> BadInput:
    return BadInput("data", what, wanted, _ANEW)


def read(cls: type[Agent], data: object, policy: Any, now: Callable[[], float]) -> Agent:
    """The agent these bytes hold, or the one sentence."""
    facts, arrays = container.unpack("agent", data, _ANEW)
    if facts.get("agent") not in range(1, VERSION + 1):
        raise _no(f"version {facts.get('agent')!r} of agents")
    try:
        agent = _built(cls, facts, policy, now)
        kept, zero = agent._policy, _zero(facts, agent._clock.kind)
        agent._begin(_state(kept, facts, arrays, zero), zero)
        _fill(agent, facts, arrays)
    except BadInput:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as slip:
        raise _no(f"a header or a table of another shape ({type(slip).__name__})") from None
    return agent


def _built(cls: type[Agent], facts: dict[str, Any], policy: Any, now: Callable[[], float]) -> Agent:
    """An agent with the settings of the snapshot, and nothing learned."""
    if policy is None:
        policy = restored_policy(facts["policy"], "pass policy= again")
    settings = dict(facts["settings"])
    if set(settings) != set(_SETTINGS):
        raise _no("other settings")
    if not (isinstance(settings["seed"], str) and settings["seed"].isascii() and len(settings["seed"]) < 400):
        raise _no("a seed that is no number")
    settings["seed"] = int(settings["seed"]) if settings["seed"].isdigit() else -1
    settings["rewards"] = tuple(settings["rewards"])
    if settings["clock"] == "wall" and settings["expire_after"] is not None:
        settings["expire_after"] *= settings["tick"]  # written in ticks, asked for in seconds
    features = Features.from_dict(facts["features"]) if "features" in facts else None
    agent = cls(policy, **settings, features=features, now=now)
    if agent._policy.digest != facts["digest"]:
        got, wanted = f"digest {agent._policy.digest}", f"the policy that was saved, {facts['digest']}"
        raise BadInput("policy", got, wanted, "pass that one")
    if facts["settings"]["expire_after"] is not None:
        expire = float(facts["settings"]["expire_after"])  # to the last bit
        agent._terms = agent._terms._replace(expire_after=expire)
    return agent


def _zero(facts: dict[str, Any], clock: str) -> int | None:
    """The tick that the state counts from."""
    if facts["agent"] == 1:
        return 0
    if facts["zero"] is None and clock == "wall" and _count(facts, "learned") == 0:
        return None
    return _count(facts, "zero", most=_MOST if clock == "wall" else 0)


def _state(policy: Any, facts: dict[str, Any], arrays: dict[str, Any], zero: int | None) -> Any:
    """The state as its policy reads it; the clock of a built-in one is where the agent stands."""
    if policy.dim is None and _count(facts, "seq"):
        policy.dim = int(arrays["vectors"].shape[1])  # of a policy of the user's own, which the first arms told
    state = policy.held(arrays, _ANEW)
    if policy.taught_with_arms:
        return state
    learned, wall = _count(facts, "learned"), facts["settings"]["clock"] == "wall"
    shown = shown_at(policy, zero, learned) if wall and zero is not None else learned
    if wall and facts["agent"] == 1 and shown != learned:  # the first tick of a period was taken for the last before
        state.set_clock(state.clock + (shown - learned))
    if state.clock != shown:
        raise _no(f"a state at tick {state.clock:g}", f"one at tick {shown:g}")
    state.outside, state.told = _count(facts, "outside"), facts["told"] is True
    return state


def _count(facts: dict[str, Any], name: str, most: int = _MOST) -> int:
    """A count in the header."""
    value = facts[name]
    if type(value) is not int or not 0 <= value <= most:
        raise _no(f"{name} = {value!r}"[:80], f"a whole number from 0 to {most}")
    return value


def _fill(agent: Agent, facts: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Counters and books."""
    agent._seq, agent._states.tick = _count(facts, "seq"), _count(facts, "learned")
    agent._clock.newest = _count(facts, "newest")
    if facts["agent"] > 1:
        agent._clock.silence = real("silence", facts["silence"], 0.0, way_out=_ANEW)
    if agent._clock.kind == "rounds" and agent._clock.newest != agent._seq:
        raise _no("a clock that is not at the last decision")
    if agent._clock.kind != "rewards" and agent._states.tick > agent._clock.newest:
        raise _no("a state that is ahead of its clock")
    counts = facts["counts"]
    if set(counts) != set(COUNTED):
        raise _no("other counters")
    agent._book.counts = {name: _count(counts, name) for name in COUNTED}
    lineage = Lineage.read(facts, facts["origin"])
    if lineage is None:
        raise _no("sources that are no names")
    agent._origin, agent._lineage = facts["origin"], lineage
    driven = facts.get("driven")
    if driven is not None and not (type(driven) in (int, float) and abs(driven) <= 1e15):
        raise _no("a time that is none")
    agent._driven = driven
    agent._meter.stride, agent._meter.waited = max(1, _count(facts, "stride")), _count(facts, "waited")
    _fill_book(agent, _count(facts, "open"), arrays)
    _fill_meter(agent, arrays)
    shown.fill(agent, arrays, _no)


def _shaped(arrays: dict[str, Any], name: str, shape: tuple[int, ...], kind: str, unknown: bool = False) -> Any:
    """A table of the snapshot; `unknown` numbers, which are NaN, are for policies that do not say what they think."""
    found = arrays[name]
    if found.shape != shape or found.dtype != np.dtype(kind):
        raise _no(f"{name} of shape {found.shape}", f"shape {shape}")
    if kind == "f8" and not (np.isfinite(found) | (np.isnan(found) & unknown)).all():
        raise _no(f"{name} with numbers that are not finite", "finite numbers")
    if kind == "i8" and found.size and not (found.min() >= 0 and found.max() <= _MOST):
        raise _no(f"{name} out of range", "whole numbers from 0 to 2^53")
    return found


def _fill_book(agent: Agent, opened: int, arrays: dict[str, Any]) -> None:
    """Open decisions first, then closed ones, each in order."""
    try:
        names = plain(arrays["names"])
    except ValueError:
        raise _no("names that are no plain data") from None
    if not isinstance(names, list) or not all(isinstance(one, list) and len(one) == 3 for one in names):
        raise _no("names of another shape")
    own = agent._policy.taught_with_arms
    count, dim, book = len(names), agent._policy.dim or 1, agent._book
    whole = _shaped(arrays, "whole", (count, _WHOLE), "i8").tolist()
    unknown = own or any(row[4] == 0 for row in whole)  # nobody knows how likely a sampled point of a ball is
    numbers = _shaped(arrays, "numbers", (count, _NUMBERS), "f8", unknown=unknown).tolist()
    draws = _shaped(arrays, "draws", (count,), "i8").tolist() if "draws" in arrays else [0] * count
    vectors = _shaped(arrays, "vectors", (opened, dim), "f8")
    if opened > agent._max_open or count - opened > book.remember:
        raise _no("more decisions than there is room for")
    _check_vectors(agent, vectors)
    kept = _shown(arrays, [row[4] for row in whole[:opened]]) if own else [
        vector.reshape(1, dim, 1).copy() for vector in vectors
    ]
    born_last = 0
    for row, (id, item, mark) in enumerate(names):
        seq, arm, explored, born, n, code = whole[row]
        score, mean, bonus, propensity, at, value = numbers[row]
        is_open = row < opened
        arm = arm if n else -1  # no place in a set that is no list
        good = 0 < seq <= agent._seq and explored <= 1 and code < len(CLOSED) and not (own and n == 0)
        most = 1.0 if n else math.inf  # of such a set it may be a density
        good = good and (0.0 <= propensity <= most or math.isnan(propensity))
        ahead = agent._states.tick + 1 if agent._clock.kind == "rewards" else agent._clock.newest
        good = good and (CLOSED[code] is Verdict.OPEN) == is_open and born <= ahead
        good = good and not (is_open and born < born_last)
        good = good and (code == 0 or value == 0.0 or agent._terms.low <= value <= agent._terms.high)
        good = good and (mark is None or isinstance(mark, str)) and checked_id(id) not in book.open
        if not good or id in book.closed:
            raise _no(f"a decision out of order in row {row}", "decisions as an agent makes them")
        born_last = born if is_open else born_last
        item = item if type(item) is int else checked_item(item)  # of any length, as earlier versions let in
        decision = Decision(
            id, seq, arm, item, score, mean, bonus, propensity, bool(explored), born, at, n,
            agent._digest, draws[row], vectors[row].copy() if is_open and n == 0 else None,
        )  # fmt: skip
        entry = Entry(decision, kept[row] if is_open else None, mark)
        entry.verdict, entry.value = CLOSED[code], value
        (book.open if is_open else book.closed)[id] = entry


def _shown(arrays: dict[str, Any], counts: list[int]) -> list[Lent]:
    """All arms of open decisions, of which there are so many each."""
    dim = arrays["own_arms"].shape[1] if arrays["own_arms"].ndim == 2 else 0
    rows = _shaped(arrays, "own_arms", (sum(counts), dim), "f8")
    places = _shaped(arrays, "own_places", (len(counts),), "i8").tolist()
    if not all(place < count for place, count in zip(places, counts, strict=True)):
        raise _no("an arm that was not there", "places among the arms")
    parts = np.split(rows, np.cumsum(counts)[:-1]) if counts else []
    return [Lent(ArmSet(part), place) for part, place in zip(parts, places, strict=True)]


def _check_vectors(agent: Agent, vectors: Any) -> None:
    """Vectors of arms that the policy could have been shown."""
    longest = agent._policy.reach * (1.0 + 1e-6)
    if (np.abs(vectors) > longest).any() or (np.sqrt((vectors**2).sum(axis=1)) > longest).any():
        raise _no("a vector longer than L", f"vectors of norm {agent._policy.reach:g} at most")


def _fill_meter(agent: Agent, arrays: dict[str, Any]) -> None:
    """What the drift meter reads."""
    dim, recent = agent._policy.dim or 1, arrays["recent"]
    count = recent.shape[0]
    ticks = _shaped(arrays, "recent_ticks", (count, 2), "i8").tolist()
    rows = _shaped(arrays, "recent", (count, dim + 1), "f8")
    _check_vectors(agent, rows[:, :dim])
    if not ((rows[:, dim] >= agent._terms.low) & (rows[:, dim] <= agent._terms.high)).all():
        raise _no("rewards out of range", f"rewards from {agent._terms.low:g} to {agent._terms.high:g}")
    last = 0
    for (tick, born), row in zip(ticks, rows, strict=True):
        if not max(last, born) <= tick <= agent._states.tick:
            raise _no("lessons out of order", "lessons in the order of their ticks")
        last = tick
        agent._meter.recent.append((tick, born, row[:dim].reshape(1, dim, 1).copy(), float(row[dim])))
    history = arrays["history"]
    now = agent._policy.weights(agent._states.front) if history.shape[0] else None
    lanes = 0 if now is None else len(now)
    weights = _shaped(arrays, "history", (history.shape[0], lanes), "f8")
    if weights.size and not (weights.min() >= 0.0 and weights.max() <= 1.0 + 1e-9):
        raise _no("weights of memories out of range", "shares from 0 to 1")
    at = _shaped(arrays, "history_ticks", (history.shape[0],), "i8").tolist()
    agent._meter.history = [(tick, row.copy()) for tick, row in zip(at, weights, strict=True)]
