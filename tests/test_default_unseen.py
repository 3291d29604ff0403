"""bench/default_unseen.py and default_fresh.py: every kind matches its description, and a change of a kind fails."""

from __future__ import annotations

import importlib.util
import inspect
import sys
from pathlib import Path

import numpy as np
import pytest


def _half(name):
    spec = importlib.util.spec_from_file_location(name, Path(__file__).parents[1] / "bench" / f"{name}.py")
    assert spec is not None and spec.loader is not None
    sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


unseen, fresh = _half("default_unseen"), _half("default_fresh")
DIGESTS = {
    unseen: "d6bbc6e7d449160af6b43429bd77531d97118aa4921b5027d3aff90f7efb2471",
    fresh: "d7377fc3d2040d0816f6a44d435685c8ab3b7e0bd5f3ccab30995ada6b4b4333",
}
halves = pytest.mark.parametrize("half", list(DIGESTS), ids=["unseen", "fresh"])


@halves
def test_the_kinds_are_those_of_the_committed_digest(half):
    assert half.digest() == DIGESTS[half]


def test_every_kind_keeps_its_description_at_a_small_horizon():
    unseen.check(T=300, trials=2)


@halves
def test_there_are_24_kinds_of_values_and_12_of_clicks_each_in_one_sentence(half):
    rewards = [rewards for _, rewards, _ in half.REGISTRY.values()]
    assert rewards.count("values") >= 24 and rewards.count("clicks") >= 12
    for draw, _, description in half.REGISTRY.values():
        assert description.endswith(".") and "\n" not in description
        assert list(inspect.signature(draw).parameters) == ["seed", "T"]


@pytest.mark.parametrize("name", ["basket_money", "fashion_jumps", "listings_turn_over"])
def test_a_seed_is_a_stream(name):
    draw = unseen.REGISTRY[name][0]
    once, again, other = draw(3, 100), draw(3, 100), draw(4, 100)
    assert all(np.array_equal(a, b) for a, b in zip(once, again, strict=True))
    assert not np.array_equal(once.rewards, other.rewards)



@pytest.mark.parametrize(
    "name, spoil, law",
    [
        ("worst_comes_back", lambda s: s._replace(rewards=s.rewards + 0.5), "clicks in {0, 1}"),
        ("taste_walks", lambda s: s._replace(rewards=s.rewards + 0.4), "rewards whose expectation"),
        ("taste_walks", lambda s: s._replace(means=0.5 * s.means), "rewards whose expectation"),
        ("worst_comes_back", lambda s: s._replace(means=np.tile(s.means[0], (300, 1))), "a best arm that is moves"),
        ("taste_walks", lambda s: s._replace(means=0 * s.means + np.eye(10)[0] * 1e-3), "a regret of random play"),
        ("taste_walks", lambda s: s._replace(arms=np.where(s.arms > 2, np.nan, s.arms)), "shapes"),
        ("taste_walks", lambda s: s._replace(arms=np.tile(s.arms, (1, 1, 20))), "64 MB"),
    ],
)
def test_the_check_finds_a_spoilt_stream(name, spoil, law):
    draw, rewards, _ = unseen.REGISTRY[name]
    found = unseen.faults(spoil(draw(0, 300)), rewards, unseen.BEST[name], 300)
    assert any(fault.startswith(law) for fault in found)
