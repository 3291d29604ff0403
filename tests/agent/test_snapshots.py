"""Snapshots: a loaded agent continues bit for bit, and changed bytes give one sentence."""

import hashlib
import json
import struct
from pathlib import Path

import numpy as np
import pytest

import driftwise as dw
from agent.living import linear, unit_arms
from hostile.battery import suffer
from laws.test_catalogue import variants
from refusing import refused

ARMS = unit_arms(5, 3, 2)


def lived(policy, rounds=40, **options):
    agent = dw.Agent(policy, rewards=(0, 1), epsilon=0.1, seed=4, **options)
    go_on(agent, 1, rounds)
    return agent


def go_on(agent, first, last):
    """Rounds with rewards that come at once, later, or never. Returns the decisions."""
    waiting, made = [], []
    late = not agent._parts.alone
    for number in range(first, last):
        one = agent.decide(ARMS, id=f"n{number}", now=float(number))
        made.append(one)
        waiting.append(one)
        if not late or number % 3:
            agent.reward(waiting.pop(0).id, float(number % 2), now=float(number))
    return made


@pytest.mark.parametrize("name", list(variants(3)))
def test_a_loaded_agent_goes_on_bit_for_bit(name, tmp_path):
    agent = lived(variants(3)[name])
    agent.save(tmp_path / "agent")
    twin = dw.Agent.load(tmp_path / "agent")
    assert twin.policy == agent.policy
    assert go_on(twin, 40, 60) == go_on(agent, 40, 60)
    assert twin.to_bytes() == agent.to_bytes()
    assert str(twin.drift()) == str(agent.drift())


def test_a_link_of_ones_own_is_given_again():
    link = dw.research.Link(mean=np.tanh, slope=lambda z: 1 / np.cosh(z) ** 2, k=1.0, c=0.4)
    policy = dw.research.GLMUCB(dim=3, memory=dw.Fade(0.1), lam=3.0, delta=0.1, link=link, R=0.5, horizon=50)
    data = lived(policy, 5).to_bytes()
    with refused("policy"):
        dw.Agent.from_bytes(data)
    with refused("policy", "digest"):
        dw.Agent.from_bytes(data, policy=linear(dim=3))
    assert dw.Agent.from_bytes(data, policy=policy).to_bytes() == data


def test_what_is_no_snapshot_is_said():
    for bad in (b"", b"x" * 100, "text", None, linear().start().to_bytes()):
        with refused("data"):
            dw.Agent.from_bytes(bad)


def signed(data):
    return data[:-32] + hashlib.sha256(data[:-32]).digest()


def with_header(data, change):
    """The same snapshot with another header, and with lengths and digest that fit it."""
    magic, version, length, _ = struct.unpack_from("<8sIQQ", data)
    facts = json.loads(data[28 : 28 + length])
    change(facts)
    text = json.dumps(facts, sort_keys=True, separators=(",", ":")).encode()
    body = text + data[28 + length : -32]
    return signed(struct.pack("<8sIQQ", magic, version, len(text), 28 + len(body) + 32) + body + b"\0" * 32)


@pytest.mark.parametrize("count", [400, pytest.param(10_000, marks=pytest.mark.slow)])
def test_mutated_snapshots_give_a_sentence_or_an_agent_that_works(count):
    """In separate processes: a crash, a hang or excessive memory is a failure."""
    findings, summary = suffer("snapshots", {"count": count, "seed": 30})
    assert not findings, f"{len(findings)} findings:\n" + "\n".join(findings)
    assert summary["sentences"] >= count // 2 and summary["fine"] > 0, summary
    assert summary["megabytes"] <= 96.0, summary


@pytest.mark.parametrize(
    ("place", "value"),
    [
        ("seq", -1), ("seq", 1.5), ("seq", "1"), ("seq", None), ("learned", 7), ("newest", 0), ("counts", {}),
        ("counts", None), ("settings", {}), ("settings", []), ("policy", None), ("policy", {"type": "Agent"}),
        ("policy", {"type": "LinearUCB"}), ("policy", [[[]]]), ("digest", "x"), ("open", 10**9), ("sources", [1]),
        ("sources", []), ("origin", 5), ("stride", -1), ("agent", 3), ("agent", None), ("outside", -1),
        ("zero", 5), ("zero", -1), ("silence", -1.0),
    ],
)  # fmt: skip
def test_a_header_that_lies_gives_a_sentence(place, value):
    data = lived(linear(dim=3), 10).to_bytes()
    with pytest.raises(dw.BadInput) as caught:
        dw.Agent.from_bytes(with_header(data, lambda facts: facts.update({place: value})))
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 500


def test_the_seed_may_be_any_whole_number():
    agent = dw.Agent(linear(), rewards=(0, 1), seed=2**63 + 5, epsilon=0.5)
    twin = dw.Agent.from_bytes(agent.to_bytes())
    arms = unit_arms(4, 2, 0)
    assert [agent.decide(arms).arm for _ in range(20)] == [twin.decide(arms).arm for _ in range(20)]


GOLDEN = Path(__file__).resolve().parent.parent / "golden" / "agent-1.dw"


def test_the_first_versions_snapshot_stays_readable():
    """Written by `lived(linear(dw.Fade(0.05), dim=3), 30)` of version 1 of agents."""
    agent = dw.Agent.from_bytes(GOLDEN.read_bytes())
    again = lived(linear(dw.Fade(0.05), dim=3), 30)
    assert agent.counts == again.counts and agent.counts["open"] > 0
    np.testing.assert_allclose(agent.state.floats, again.state.floats, rtol=1e-12, atol=1e-12)
    known = next(iter(agent._parts.book.open.values())).decision
    assert agent.decide(ARMS, id=known.id) == known and known.draws == 0  # its arms have the digest of that version
    again.decide(ARMS, id=known.id)
    assert [one[:3] for one in go_on(agent, 30, 40)] == [one[:3] for one in go_on(again, 30, 40)]
