"""Tiles and lazy rounds have the bits of the plain loops in every world; margins that are too small fail."""

from pathlib import Path

import numpy as np
import pytest

import adversary
import driftwise as dw
import interpreting
from driftwise.kernels import tiled
from driftwise.policies import engines

MEMORIES = {
    "keep": dw.Keep(), "fade": dw.Fade(0.02), "restart": dw.Restart(70), "window": dw.Window(40),
    "fade fast": dw.Fade(0.6),
}  # fmt: skip


def rounds(dim, arms, T=150, fresh=False, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((T if fresh else 1, dim, arms))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    theta = np.cumsum(0.2 * rng.standard_normal((T, dim)), axis=0)
    return X, theta, rng.standard_normal(T), 0.5


@pytest.mark.parametrize("memory", MEMORIES.values(), ids=MEMORIES)
@pytest.mark.parametrize("size", [(1, 1), (2, 50), (3, 8), (7, 65), (12, 9), (17, 40)])
def test_every_road_has_the_bits_of_the_plain_one(size, memory):
    policy = dw.LinearUCB(dim=size[0], memory=memory, lam=1.0, delta=0.01)
    for fresh in (False, True):
        world = rounds(*size, fresh=fresh)
        plain = adversary.by("plain", policy, *world)
        for road in ("tiled", "lazy"):
            for one, other in zip(plain, adversary.by(road, policy, *world), strict=True):
                assert one.tobytes() == other.tobytes()


def test_sizes_and_memories_say_which_engine_plays():
    def engine(memory, dim, arms, sets=1, length=100, **fields):
        policy = dw.LinearUCB(**{"dim": dim, "memory": memory, "lam": 1.0, "delta": 0.01, **fields})
        return policy.engine(engines.Sizes(sets, dim, arms, length)).name

    assert engine(dw.Keep(), 2, 5) == "plain"
    assert engine(dw.Keep(), 40, 500, two_matrix="correct") == "plain"
    assert engine(dw.Keep(), 2, 50) == "tiled"
    assert engine(dw.Keep(), 2, 50, radius="posterior", lam=None) == "tiled"
    assert engine(dw.Fade(0.01), 12, 64) == "tiled_wide"
    assert engine(dw.Fade(0.01), 32, 1000) == "lazy"
    assert engine(dw.Fade(0.01), 32, 1000, length=3) == "tiled_wide"
    assert engine(dw.Fade(0.01), 32, 1000, sets=100) == "tiled_wide"
    assert engine(dw.Window(100), 32, 1000) == "tiled_wide"


@pytest.mark.parametrize("size", [(1, 30), (13, 203)])
def test_a_live_choice_among_many_arms_has_the_bits_of_the_plain_one_and_changes_nothing(size, monkeypatch):
    dim, n = size
    rng = np.random.default_rng(5)
    A = rng.standard_normal((n, dim)) * rng.integers(0, 2, (n, 1))  # zeros too: their means are 0 or -0
    A /= max(1.0, np.linalg.norm(A, axis=1).max())
    sets = [dw.ArmSet(A), dw.ArmSet(A[::-1])]
    monkeypatch.setattr(engines, "TILED_WORK", 0)
    new = dw.LinearUCB(dim=dim, memory=dw.Fade(0.05), lam=0.5, delta=0.01)
    assert new._live.many <= n and new._live.score_many is tiled.score_tiled_.call
    monkeypatch.setattr(engines, "TILED_WORK", np.inf)
    old = dw.LinearUCB(dim=dim, memory=dw.Fade(0.05), lam=0.5, delta=0.01)
    assert old._live.many == np.inf
    states = [new.start(), new.start()]
    for t in range(40):
        state = states[t % 2]
        before = state.to_bytes()
        for arms in sets:
            one, other = new.scores(state, arms), old.scores(state.copy(), arms)
            assert one.mean.tobytes() == other.mean.tobytes()
            assert one.bonus.tobytes() == other.bonus.tobytes()
            choice = new.choose(state, arms)
            assert choice == old.choose(state.copy(), arms) == new.choose(state.copy(), arms)
        assert state.to_bytes() == before
        new.learn(state, arms, choice.arm, float(rng.standard_normal()))


def test_no_arm_differs_in_hostile_worlds():
    assert adversary.differing(17, 100_000, 1000) == (0, 0)


@pytest.mark.slow
def test_no_arm_differs_in_three_million_rounds_of_hostile_worlds():
    assert adversary.differing(18, 3_000_000, 2000) == (0, 0)


HERE = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})\n"

PLAYED = """
import adversary, hashlib
import numpy as np
rng = np.random.default_rng(3)
for size in ((1, 9), (5, 20), (12, 17)):
    policy, world = adversary.drawn(rng, 25, (size[0],), (size[1],), ("clip", "duplicates"))
    for road in ("plain", "tiled", "lazy"):
        parts = adversary.by(road, policy, *world)
        print(size, road, [hashlib.sha256(part.tobytes()).hexdigest()[:12] for part in parts])
"""


def test_compiled_is_interpreted():
    compiled, interpreted = interpreting.both_ways(HERE + PLAYED)
    assert compiled == interpreted
    assert len(compiled.splitlines()) == 9


# Interpreted, so that a margin can be replaced: on near ties of a few ulp and on memories that forget fast.
CONTROL = """
import adversary
from driftwise.kernels import lazy
right = lazy.margin_of
def wrong(gamma, radius, *rest):
    it = right(gamma, radius, *rest)
    return {
        "right": it,
        "no margin": it._replace(slope=radius, lift=1.0),
        "no growth": it._replace(grow=1.0, keep=1.0, rest=0.0),
        "half the growth": it._replace(grow=gamma**-0.25, keep=1.0, rest=0.5 * (1.0 - gamma)),
    }[name]
lazy.margin_of = wrong
for name in ("right", "no margin", "no growth", "half the growth"):
    near = adversary.differing(1, 600, 30, dims=(3, 5), sizes=(20,), kinds=("near ties", "duplicates"))
    far = adversary.differing(2, 600, 60, dims=(3, 5), sizes=(20,), kinds=("sphere", "clip"))
    print(name, near[0] + far[0])
"""


def test_margins_that_are_too_small_would_be_found_out():
    found = dict(line.rsplit(" ", 1) for line in interpreting._printed(HERE + CONTROL, "1").splitlines())
    assert int(found.pop("right")) == 0
    assert {name for name, count in found.items() if int(count) > 0} == {"no margin", "no growth", "half the growth"}
