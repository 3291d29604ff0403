"""Cases by kind: a description, and a function that runs the case and returns the error messages, if any."""

import hashlib
import json
import struct

import numpy as np

import driftwise as dw
from hostile.battery import Walls, arms_of, live, lived, policies

ROUNDS = 25


def _warm():
    """Every policy with a state that has learned, and all of its entries compiled."""
    found = {}
    for name, policy in policies().items():
        state = lived(policy, ROUNDS)
        live(policy, state.copy(), 8)
        found[name] = policy, state
    return found


def _damaged(policy, state, packed, place, value, rounds):
    def case():
        mine = state.copy()
        getattr(mine, packed)[place] = value
        walls = Walls(mine)
        heard = live(policy, mine, rounds)
        assert walls.stand(), "wrote beyond the state's arrays"
        return heard

    return case


def integers():
    """Every whole number of a state set to -1, 10⁹, 2⁶² and its neighbours, then 60 lessons."""
    return _integers(_warm())


def _integers(warm):
    for name, (policy, state) in warm.items():
        for group, at in state.layout.groups["ints"].items():
            for place in range(at.start, at.stop):
                value = int(state.ints[place])
                for other in sorted({-1, 10**9, 2**62, value - 1, value + 1} - {value}):
                    what = f"{name}: {group}[{place - at.start}] = {value} set to {other}"
                    yield what, _damaged(policy, state, "ints", place, other, 60)


FLOATS = (np.nan, np.inf, -np.inf, 1e308, -1e308, -1.0)


def floats(every):
    """Some numbers of every group of floats set to values that no lesson can give, then 20 lessons."""
    return _floats(_warm(), every)


def _floats(warm, every):
    number = 0
    for name, (policy, state) in warm.items():
        for group, at in state.layout.groups["floats"].items():
            few = range(at.start, at.stop) if group in ("notes", "counters") else ()
            places = sorted({at.start, (at.start + at.stop) // 2, at.stop - 1, *list(few)[:16]})
            for place in places:
                for value in FLOATS:
                    number += 1
                    if number % every == 0:
                        what = f"{name}: {group}[{place - at.start}] = {state.floats[place]} set to {value}"
                        yield what, _damaged(policy, state, "floats", place, value, 20)


# ------------------------------------------------------------------------------------------ bytes of a state

HEAD = struct.Struct("<8sIQQ")
WILD = (np.nan, np.inf, -np.inf, 1e308, -1e308, -1.0, 0.0, 1e-320, 2.0**53, 1e18)
WHOLE = (-1, 0, 1, 2, 10**3, 10**9, 2**31, 2**53, 2**62, -(2**63), 2**63 - 1)
JUNK = (None, -1, 0, 1, 2**31, 2**40, 2**62, 2**200, 1.5, "x", "<f8", [], {}, True, [[]], "🦊")


def sign(body):
    """The body of a container with a digest that fits."""
    return bytes(body) + hashlib.sha256(bytes(body)).digest()


def parts(data):
    """Head, JSON and arrays of a container."""
    length = HEAD.unpack_from(data)[2]
    return data[: HEAD.size], data[HEAD.size : HEAD.size + length], data[HEAD.size + length : -32]


def joined(text, arrays, **head):
    """A signed container whose head fits, except for the given changes."""
    length = HEAD.size + len(text) + len(arrays) + 32
    facts = {"magic": b"DRIFTWSE", "version": 1, "characters": len(text), "length": length} | head
    return sign(HEAD.pack(facts["magic"], facts["version"], facts["characters"], facts["length"]) + text + arrays)


def _bytes_changed(chance, data):
    """Bytes flipped, lost, doubled or moved at random."""
    data, how = bytearray(data), chance.integers(7)
    at, upto = sorted(int(i) for i in chance.integers(0, len(data), 2))
    if how == 0:
        for place in chance.integers(0, len(data), int(chance.integers(1, 5))):
            data[place] ^= int(chance.integers(1, 256))
    elif how == 1:
        del data[at:]
    elif how == 2:
        del data[at:upto]
    elif how == 3:
        data[at:at] = data[at:upto]
    elif how == 4:
        data[at:upto] = bytes(upto - at)
    elif how == 5:
        data += bytes(chance.integers(0, 256, int(chance.integers(1, 200)), dtype=np.uint8))
    else:
        data[: upto - at] = data[at:upto]
    return bytes(data)


def _head_changed(chance, data):
    _, text, arrays = parts(data)
    name = ("magic", "version", "characters", "length")[chance.integers(4)]
    value = (0, 1, 2, len(text) + 1, len(data), 2**31, 2**32 - 1)[chance.integers(7)]
    if name in ("characters", "length") and chance.random() < 0.5:
        value = (2**63, 2**64 - 1, len(data) - 1)[chance.integers(3)]
    return joined(text, arrays, **{name: b"DRIFTWSX" if name == "magic" else value})


def _json_bytes_changed(chance, data):
    _, text, arrays = parts(data)
    text = bytearray(text)
    for place in chance.integers(0, len(text), int(chance.integers(1, 4))):
        likely = b"0123456789[]{},\"-eE."
        text[place] = int(chance.integers(0, 256)) if chance.random() < 0.3 else likely[chance.integers(len(likely))]
    return joined(bytes(text), arrays)


def _facts_changed(chance, data):
    """The header's data changed in one place: a size, a name, a type, a shape, a key."""
    _, text, arrays = parts(data)
    facts, how = json.loads(text), chance.integers(9)
    junk = JUNK[chance.integers(len(JUNK))]
    if how == 0:
        facts["sizes"][chance.integers(len(facts["sizes"]))] = junk
    elif how == 1:
        place = chance.integers(len(facts["sizes"]))
        facts["sizes"][place] += int(chance.integers(-2, 3))
    elif how == 2:
        facts["arrays"][chance.integers(2)][chance.integers(3)] = junk
    elif how == 3:
        facts["arrays"][chance.integers(2)][2] = [junk] * int(chance.integers(0, 40))
    elif how == 4:
        facts[("sizes", "arrays", "policy", "kind")[chance.integers(4)]] = junk
    elif how == 5:
        del facts[("sizes", "arrays", "policy", "kind")[chance.integers(4)]]
    elif how == 6:
        facts["arrays"] *= int(chance.integers(0, 4))
    elif how == 7:
        facts["arrays"] += [["more", ("<f8", "<i8", "|u1")[chance.integers(3)], [0, 2**62, 2**62]]]
    else:
        return joined((b"[" * 100_000) if chance.random() < 0.5 else b'{"a":' * 50_000, arrays)
    return joined(json.dumps(facts).encode(), arrays)


def _sizes_and_arrays_changed(chance, data):
    """Changed sizes of groups, with arrays of zeros that fit them: a complete state whose shape no policy has."""
    _, text, _ = parts(data)
    facts = json.loads(text)
    for _ in range(int(chance.integers(1, 3))):
        facts["sizes"][chance.integers(len(facts["sizes"]))] = int(chance.integers(0, 12))
    from driftwise.policies.state import Layout

    layout = Layout(facts["sizes"])
    facts["arrays"] = [["floats", "<f8", [layout.floats]], ["ints", "<i8", [layout.ints]]]
    return joined(json.dumps(facts).encode(), bytes(8 * (layout.floats + layout.ints)))


def _numbers_changed(chance, data):
    """A few of the numbers themselves."""
    _, text, arrays = parts(data)
    floats = json.loads(text)["arrays"][0][2][0]
    arrays = bytearray(arrays)
    for _ in range(int(chance.integers(1, 4))):
        whole = chance.random() < 0.4
        place = floats + int(chance.integers(len(arrays) // 8 - floats)) if whole else int(chance.integers(floats))
        if chance.random() < 0.3:
            arrays[8 * place + int(chance.integers(8))] ^= 1 << int(chance.integers(8))
        elif whole:
            struct.pack_into("<q", arrays, 8 * place, WHOLE[chance.integers(len(WHOLE))])
        else:
            struct.pack_into("<d", arrays, 8 * place, WILD[chance.integers(len(WILD))])
    return joined(text, bytes(arrays))


def _signed_bytes_changed(chance, data):
    return sign(_bytes_changed(chance, data[:-32]))


SIGNED = (_head_changed, _json_bytes_changed, _facts_changed, _sizes_and_arrays_changed, _numbers_changed,
          _numbers_changed, _signed_bytes_changed)  # fmt: skip


def _loaded(policy, data, original, arms):
    def case():
        state = dw.State.from_bytes(data)
        assert len(state.to_bytes()) < 2 * len(data) + 4096
        walls = Walls(state)
        before = state.to_bytes()
        choice = policy.choose(state, arms)
        assert state.to_bytes() == before, "choose changed the state"
        assert 0 <= choice.arm < len(arms) and not np.isnan(choice.score), f"{choice}"
        for number in range(5):
            policy.learn(state, arms, number % len(arms), float(number % 2), age=float(number == 3) * 2.0)
        again = policy.choose(state, arms)
        assert 0 <= again.arm < len(arms) and not np.isnan(again.score), f"after lessons {again}"
        assert walls.stand(), "wrote beyond the state's arrays"
        dw.State.from_bytes(state.to_bytes())
        assert original is None or before == original, "changed bytes that were not signed again were taken"

    return case


def states(count, seed):
    """So many mutated states, every second one signed again; each is loaded, used to choose, and learns five times."""
    return _states(_warm(), count, seed)


def _states(warm, count, seed):
    names = list(warm)
    arms = arms_of(np.random.default_rng(3))
    whole = {name: state.to_bytes() for name, (_, state) in warm.items()}
    for number in range(count):
        chance = np.random.default_rng([seed, number])
        name = names[number // 2 % len(names)]
        data, original = whole[name], None
        if number % 2:
            way = SIGNED[chance.integers(len(SIGNED))]
            changed = way(chance, data)
        else:
            way, original = _bytes_changed, data
            changed = way(chance, data)
        what = f"{name}: state {number} of seed {seed}, {way.__name__}"
        yield what, _loaded(warm[name][0], changed, original, arms)


def surface(count, seed):
    """Random calls of the public surface (surface.py)."""
    from hostile.surface import calls

    return calls(count, seed)


def snapshots(count, seed):
    """Mutated snapshots of agents (snapshots.py)."""
    from hostile.snapshots import mutated

    return mutated(count, seed)
