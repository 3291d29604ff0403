"""Mutated snapshots of agents: loaded, used, explained, and saved again."""

import json
import struct

import numpy as np

import driftwise as dw
from hostile.battery import DIM, arms_of, policies
from hostile.cases import JUNK, WHOLE, WILD, _bytes_changed, _head_changed, _json_bytes_changed, joined, parts, sign


def leaves(tree, path=()):
    """Every place in plain data."""
    if isinstance(tree, (dict, list)):
        for one in tree if isinstance(tree, dict) else range(len(tree)):
            yield from leaves(tree[one], (*path, one))
    yield path


def facts_changed(chance, data):
    """One place of the header has another value."""
    _, text, arrays = parts(data)
    facts = json.loads(text)
    places = [path for path in leaves(facts) if path]
    *way, last = places[chance.integers(len(places))]
    at = facts
    for one in way:
        at = at[one]
    at[last] = JUNK[chance.integers(len(JUNK))] if chance.random() < 0.7 else {"a": at[last]}
    return joined(json.dumps(facts).encode(), arrays)


def numbers_changed(chance, data):
    """Some numbers of the arrays are changed."""
    _, text, arrays = parts(data)
    arrays = bytearray(arrays)
    for _ in range(int(chance.integers(1, 4))):
        at = int(chance.integers(len(arrays) - 8))
        if chance.random() < 0.5:
            at -= at % 8
        kind, values = (("<q", WHOLE), ("<d", WILD))[chance.integers(2)]
        struct.pack_into(kind, arrays, at, values[chance.integers(len(values))])
    return joined(text, bytes(arrays))


def rows_changed(chance, data):
    """Numbers of the tables of decisions, which follow those of the state, are changed."""
    _, text, arrays = parts(data)
    arrays, at = bytearray(arrays), 0
    for name, kind, shape in json.loads(text)["arrays"]:
        size = int(np.prod(shape)) * int(kind[2:])
        if name in ("whole", "numbers", "vectors", "recent_ticks", "history_ticks") and chance.random() < 0.4 and size:
            place = at + 8 * int(chance.integers(size // 8))
            wild = (WHOLE if kind == "<i8" else WILD)
            struct.pack_into("<q" if kind == "<i8" else "<d", arrays, place, wild[chance.integers(len(wild))])
        at += size
    return joined(text, bytes(arrays))


def bytes_changed(chance, data):
    return sign(_bytes_changed(chance, data[:-32]))


SIGNED = (facts_changed, facts_changed, numbers_changed, numbers_changed, rows_changed, rows_changed,
          _json_bytes_changed, _head_changed, bytes_changed)  # fmt: skip


def clocks_of(name, policy):
    """An agent on each clock that the policy takes, with every part of a snapshot: ids, items, a deadline, ε."""
    options = {"rewards": (0, 1), "epsilon": 0.1, "seed": 4, "expire_after": 30, "remember": 20, "now": lambda: 1e6}
    yield f"{name} by rounds", dw.Agent(policy, **options, default_reward=0.5)
    if not name.startswith(("MASTER", "BOB")):
        yield f"{name} by rewards", dw.Agent(policy, **options)
        try:
            yield f"{name} by the wall clock", dw.Agent(policy, **options, clock="wall", tick=1.0)
        except dw.BadInput:  # windows and exact estimates would need capacity= there
            pass


def live(agent, first, last):
    """Rounds with rewards that come at once, later or never."""
    chance, waiting = np.random.default_rng(first), []
    for number in range(first, last):
        one = agent.decide(arms_of(chance), list("abcd"), id=f"n{number}", now=float(number))
        assert 0 <= one.arm < 4 and not np.isnan(one.score), f"{one}"
        waiting.append(one.id)
        if agent._parts.alone or number % 3:
            agent.reward(waiting.pop(0), float(number % 2), now=float(number))


def whole():
    """Snapshots of every kind, each after some rounds; this compiles everything."""
    found = {}
    for name, policy in policies().items():
        for what, agent in clocks_of(name, policy):
            live(agent, 1, 25)
            found[what] = agent.to_bytes()
            twin = dw.Agent.from_bytes(found[what])
            live(twin, 1000, 1004)
            twin.explain(np.eye(DIM)), twin.drift(), twin.to_bytes()
    return found


def _loaded(data, original):
    def case():
        agent = dw.Agent.from_bytes(data)
        assert original is None or data == original, "changed bytes that were not signed again were taken"
        again = agent.to_bytes()
        assert len(again) < 2 * len(data) + 4096
        live(agent, 1000, 1006)
        agent.explain(np.eye(DIM)), agent.drift()
        dw.Agent.from_bytes(agent.to_bytes())

    return case


def mutated(count, seed):
    """So many mutated snapshots, four of five signed again."""
    return _mutated(whole(), count, seed)


def _mutated(found, count, seed):
    names = list(found)
    for number in range(count):
        chance = np.random.default_rng([seed, number])
        data, original = found[names[number % len(names)]], None
        way = SIGNED[chance.integers(len(SIGNED))]
        if chance.random() < 0.2:
            way, original = _bytes_changed, data
        yield f"{names[number % len(names)]}: snapshot {number} of seed {seed}, {way.__name__}", _loaded(
            way(chance, data), original
        )
