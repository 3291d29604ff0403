"""Problems that the default policy is tuned on: the table below, the worlds of docs/unknown-drift.md, and clicks.

`REGISTRY` has the form of default_unseen.REGISTRY: a name maps to (function of seed and T, "values" or "clicks",
description). `HORIZONS` names the kinds whose horizon is not 6000.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable

import numpy as np
from numpy.random import PCG64, Generator

from default_unseen import (
    HORIZON,
    Array,
    Kind,
    Stream,
    ages,
    autoregression,
    clicks,
    crosses,
    dot,
    jumps,
    lives,
    sigmoid,
    still,
    turnover,
    walk,
    wave,
)
from drifts import click_world, hidden_rise, level_world, linear_worlds, logistic_worlds, sphere
from driftwise.worlds import Jumps, Still, Turn, Walk, World

REGISTRY: dict[str, tuple[Kind, str, str]] = {}
HORIZONS: dict[str, int] = {}
Draw = Callable[[Generator, int], Stream]


def add(name: str, rewards: str, text: str, draw: Draw) -> None:
    """Register a kind."""
    assert name not in REGISTRY, name

    def stream(seed: int, T: int = HORIZON) -> Stream:
        return draw(Generator(PCG64([seed, zlib.crc32(name.encode())])), T)

    REGISTRY[name] = (stream, rewards, text)


def kind(
    rewards: str, *, horizon: int = HORIZON, **variants: dict[str, object]
) -> Callable[[Callable[..., Stream]], Callable[..., Stream]]:
    """Register a function under its name, or under `name_variant` with the arguments of each variant."""

    def register(draw: Callable[..., Stream]) -> Callable[..., Stream]:
        for variant, fields in (variants or {"": {}}).items():
            name = f"{draw.__name__}_{variant}".strip("_")
            add(name, rewards, draw.__doc__ or "", lambda rng, T, fields=fields: draw(rng, T, **fields))
            if horizon != HORIZON:
                HORIZONS[name] = horizon
        return draw

    return register


def values(rng: Generator, arms: Array, means: Array, noise: float | Array = 1.0, offset: float = 0.0) -> Stream:
    """Normal noise, one draw a round for all arms; noise is a number or (T,)."""
    draws = np.broadcast_to(noise, len(means)) * rng.standard_normal(len(means))
    return Stream(arms, means + offset, means + offset + draws[:, None])


def circle(T: int, turns: float, d: int = 2, start: float = 0.0) -> Array:
    """θ of norm 1 that turns in the plane of the first two coordinates: (T, d)."""
    angle = 2.0 * np.pi * (turns * ages(T) + start)
    return np.concatenate([np.cos(angle)[:, None], np.sin(angle)[:, None], np.zeros((T, d - 2))], axis=1)


def scaled(arms: Array, theta: Array, column: int, factor: float) -> tuple[Array, Array]:
    """One feature in other units; its weight in theta (T, d) follows."""
    arms, theta = arms.copy(), theta.copy()
    arms[..., column] *= factor
    theta[:, column] /= factor
    return arms, theta


def ring(rng: Generator, T: int, d: int, step: float) -> Array:
    """A walk on the unit sphere: (T, d)."""
    theta, x = np.empty((T, d)), sphere(rng, d)
    for t, move in enumerate(step * rng.standard_normal((T, d))):
        x = x + move
        x /= np.linalg.norm(x)
        theta[t] = x
    return theta


def users_and_items(rng: Generator, T: int, users: int, items: int) -> Array:
    """One-hot user beside one-hot item: (T, items, users + items)."""
    arms = np.zeros((T, items, users + items))
    arms[np.arange(T), :, rng.integers(users, size=T)] = 1.0
    arms[:, np.arange(items), users + np.arange(items)] = 1.0
    return arms


def rises(T: int, n: int, top: float, to: float, at: float = 0.5) -> Array:
    """Means that fall from `top` to 0; the second best rises unseen: (T, n)."""
    means = np.tile(np.linspace(top, 0.0, n), (T, 1))
    means[ages(T) >= at, 1] = to
    return means


# The kinds of the table.


@kind("values")
def scale_relevant(rng: Generator, T: int) -> Stream:
    """One feature x 1000, relevant, still, d = 5."""
    arms, theta = scaled(sphere(rng, 50, 5), still(sphere(rng, 5), T), 0, 1000.0)
    return values(rng, arms, dot(arms, theta), 0.5)


@kind("values")
def scale_irrelevant(rng: Generator, T: int) -> Stream:
    """One feature x 1000, irrelevant, still, d = 5."""
    arms, theta = sphere(rng, 50, 5), sphere(rng, 5)
    theta[0] = 0.0
    arms[:, 0] *= 1000.0
    return values(rng, arms, dot(arms, still(theta, T)), 0.5)


@kind("values")
def scale_constant(rng: Generator, T: int) -> Stream:
    """A constant feature x 1000 that says nothing, still, d = 5."""
    arms = np.concatenate([sphere(rng, 50, 4), np.full((50, 1), 1000.0)], axis=1)
    return values(rng, arms, dot(arms, still(np.append(sphere(rng, 4), 0.0), T)), 0.5)


def loud(T: int) -> Array:
    """Noise that is quiet and loud in turn, 500 rounds of 6000 each: (T,)."""
    return np.where((ages(T) * 12).astype(int) % 2 == 0, 0.1, 2.0)


@kind("values")
def noise_changes_still(rng: Generator, T: int) -> Stream:
    """Noise that changes in time, still, d = 5."""
    arms = sphere(rng, 50, 5)
    return values(rng, arms, dot(arms, still(sphere(rng, 5), T)), loud(T))


@kind("values")
def noise_changes_turn(rng: Generator, T: int) -> Stream:
    """Noise that changes in time, one turn, d = 2."""
    arms = sphere(rng, 50, 2)
    return values(rng, arms, dot(arms, circle(T, 1.0, start=rng.random())), loud(T))


@kind("values")
def unseen_rise(rng: Generator, T: int) -> Stream:
    """The second-best arm rises unseen, basis of 6."""
    return values(rng, np.eye(6), rises(T, 6, 0.5, 0.8), 0.2)


@kind("values")
def one_hot_walk(rng: Generator, T: int) -> Stream:
    """One-hot user + item, d = 13, walk."""
    arms = users_and_items(rng, T, 5, 8)
    return values(rng, arms, dot(arms, 0.5 * rng.standard_normal(13) + walk(rng, T, 13, 1.0)), 1.0)


@kind("values")
def two_arms_turn(rng: Generator, T: int) -> Stream:
    """Two arms, basis, turn."""
    return values(rng, np.eye(2), circle(T, 1.0, start=rng.random()), 1.0)


@kind("values")
def offset_five(rng: Generator, T: int) -> Stream:
    """Rewards with an offset of 5 and no constant feature, still, fixed arms."""
    arms = sphere(rng, 20, 5)
    return values(rng, arms, dot(arms, still(sphere(rng, 5), T)), 0.5, offset=5.0)


@kind("values")
def still_d50(rng: Generator, T: int) -> Stream:
    """Still, d = 50, 10 fixed arms."""
    arms = sphere(rng, 10, 50)
    return values(rng, arms, dot(arms, still(sphere(rng, 50), T)), 0.3)


@kind("values")
def t_noise(rng: Generator, T: int) -> Stream:
    """Student's noise of 3 degrees of freedom, still, d = 5."""
    arms = sphere(rng, 50, 5)
    means = dot(arms, still(sphere(rng, 5), T))
    return Stream(arms, means, means + rng.standard_t(3, T)[:, None] / 3**0.5)


@kind("values")
def rare_purchases(rng: Generator, T: int) -> Stream:
    """Rare purchases: rewards are heavy and mostly 0."""
    arms = sphere(rng, 50, 5)
    rate = 0.05 * (1.0 + arms @ sphere(rng, 5))
    buys = rng.random((T, 1)) < rate
    return Stream(arms, np.tile(rate * np.exp(3.0), (T, 1)), buys * rng.lognormal(2.5, 1.0, (T, 1)))


@kind("values", horizon=100_000)
def long_still(rng: Generator, T: int) -> Stream:
    """Still, T = 100,000, d = 5."""
    arms = sphere(rng, 50, 5)
    return values(rng, arms, dot(arms, still(sphere(rng, 5), T)), 0.3)


@kind("values", horizon=100_000)
def long_basis(rng: Generator, T: int) -> Stream:
    """Still, T = 100,000, basis of 10."""
    return values(rng, np.eye(10), np.tile(rng.standard_normal(10), (T, 1)), 1.0)


@kind("values")
def half_turn_five_arms(rng: Generator, T: int) -> Stream:
    """Half a turn, 5 arms, d = 2."""
    arms = sphere(rng, 5, 2)
    return values(rng, arms, dot(arms, circle(T, 0.5, start=rng.random())), 1.0)


# Kinds beside the table.


@kind("values", duplicated={"how": 0}, summed={"how": 1}, tiny={"how": 2})
def scale_collinear(rng: Generator, T: int, how: int) -> Stream:
    """One turn at d = 2, with copies of the features, with their sum, or with one in units of 1e-6."""
    z, theta = sphere(rng, 50, 2), circle(T, 1.0, 4, rng.random())
    more = [z, np.stack([z.sum(axis=1), z[:, 0] - z[:, 1]], axis=1), 1e-6 * rng.standard_normal((50, 2))][how]
    arms = np.concatenate([z, more], axis=1)
    return values(rng, arms, dot(arms, theta), 0.3)


@kind("values", still={"turns": 0.0}, turn={"turns": 1.0})
def noise_none(rng: Generator, T: int, turns: float) -> Stream:
    """No noise at all."""
    arms = sphere(rng, 20, 3)
    return values(rng, arms, dot(arms, circle(T, turns, 3, rng.random())), 0.0)


@kind("values")
def noise_by_arm(rng: Generator, T: int) -> Stream:
    """The noise of an arm is between .1 and 3, still, d = 5."""
    arms = sphere(rng, 20, 5)
    means = dot(arms, still(sphere(rng, 5), T))
    return Stream(arms, means, means + np.geomspace(0.1, 3.0, 20) * rng.standard_normal((T, 1)))


@kind("values")
def noise_correlated(rng: Generator, T: int) -> Stream:
    """Noise of all arms that is correlated over a hundred rounds, still, d = 5."""
    arms = sphere(rng, 20, 5)
    means = dot(arms, still(sphere(rng, 5), T))
    noise = autoregression(rng, T, T / 100.0) + 0.3 * rng.standard_normal(T)
    return Stream(arms, means, means + noise[:, None])


@kind("values", minus={"offset": -5.0, "fresh": False}, fresh={"offset": 5.0, "fresh": True})
def offset_turn(rng: Generator, T: int, offset: float, fresh: bool) -> Stream:
    """Rewards with an offset and no constant feature, one turn, d = 3."""
    arms = sphere(rng, T, 20, 3) if fresh else sphere(rng, 20, 3)
    return values(rng, arms, dot(arms, circle(T, 1.0, 3, rng.random())), 1.0, offset)


@kind("values")
def one_long_decision(rng: Generator, T: int) -> Stream:
    """One decision, at a tenth of the time, has arms 10⁶ times too long (a rate of 0 for all of them), still, d = 5."""
    arms = np.tile(sphere(rng, 20, 5), (T, 1, 1))
    means = dot(arms, still(sphere(rng, 5), T))
    arms[T // 10] *= 1e6
    return values(rng, arms, means, 0.3)


def of_world(world: World, trial: int) -> Stream:
    """A trial of a library's world: what dw.simulate plays with seed 0."""
    parts = []
    for tape in world.tapes(0, trial):
        sets = np.ascontiguousarray(tape.arms.transpose(0, 2, 1))
        felt = dot(sets if world.fresh else sets[0], tape.theta)
        clicked = world.reward == "bernoulli"
        means = sigmoid(felt) if clicked else felt
        draws = tape.draws[:, None]
        parts.append((sets, means, (draws < means).astype(float) if clicked else means + world.noise * draws))
    arms, means, rewards = (np.concatenate(part) for part in zip(*parts, strict=True))
    return Stream(arms if world.fresh else arms[0], means, rewards)


def given(rewards: str, name: str, text: str, make: Callable[[int, int], World]) -> None:
    """Register a world, made from a horizon and a trial; of one that is longer the beginning is taken."""

    def stream(seed: int, T: int = HORIZON) -> Stream:
        arms, means, got = of_world(make(T, seed), seed)
        return Stream(arms[:T] if arms.ndim == 3 else arms, means[:T], got[:T])

    assert name not in REGISTRY, name
    REGISTRY[name] = (stream, rewards, text)


for _name in linear_worlds():
    given("values", f"drift: {_name}", "bench/drifts.py", lambda T, k, name=_name: linear_worlds(T)[name])
for _name, _world in {
    "still": Still, "one turn": Turn, "walk .005": lambda **f: Walk(step=0.005, **f),
    "3 jumps": lambda **f: Jumps(jumps=3, **{**f, "dim": 2}),
}.items():  # fmt: skip
    given("values", f"drift: {_name}, d=5, noise .1".replace("jumps, d=5", "jumps"), "bench/unknown_drift.py",
          lambda T, k, world=_world: world(horizon=T, dim=5, noise=0.1))  # fmt: skip
for _name in ("seasons", "blocks", "walk"):
    given("values", f"level: {_name}", "bench/drifts.py", lambda T, k, name=_name: level_world(name, 0, k, 1.0))
    given("values", f"level: {_name}, basis of 20, noise .3", "bench/drifts.py",
          lambda T, k, name=_name: level_world(name, 0, k, 0.3, basis=True))  # fmt: skip
given("values", "hidden_rise_quiet", "A hidden rise, noise .1: of ten basis arms one far from the best rises at half.",
      lambda T, k: hidden_rise(np.random.default_rng([0, k]), 0.1, True))  # fmt: skip
given("values", "level: seasons, fresh", "bench/drifts.py", lambda T, k: level_world("seasons", 0, k, 0.3, fresh=True))
given("values", "level: walk, 1 turn", "bench/drifts.py", lambda T, k: level_world("walk", 0, k, 0.3, turns=1.0))
for _name in logistic_worlds(radii=(1.0, 3.0, 5.0)):
    given("clicks", f"drift: {_name}", "bench/drifts.py",
          lambda T, k, name=_name: logistic_worlds(T, (1.0, 3.0, 5.0))[name])  # fmt: skip
for _name, _fields in {
    "seasons": {}, "blocks": {}, "walk": {}, "seasons, basis of 20": {"basis": True}, "walk, 3% clicks": {"rate": -3.9},
    "seasons, 0.25 turns": {"turns": 0.25}, "walk, basis of 2": {"basis": True, "arms": 2},
}.items():  # fmt: skip
    given("clicks", f"level of odds: {_name}", "bench/drifts.py",
          lambda T, k, name=_name, f=_fields: click_world(name.split(",")[0], 0, k, **f))  # fmt: skip


# Clicks.


def with_constant(z: Array) -> Array:
    """A feature of ones before the others."""
    return np.concatenate([np.ones((*z.shape[:-1], 1)), z], axis=-1)


def click(rng: Generator, arms: Array, theta: Array, base: float | Array = 0.0) -> Stream:
    """Clicks with log odds base + x'θ; base is a number or (T,), and no feature shows it."""
    return clicks(rng, arms, sigmoid(dot(arms, theta) + np.broadcast_to(base, len(theta))[:, None]))


@kind("clicks", fixed={"fresh": False}, fresh={"fresh": True})
def rate_one_percent(rng: Generator, T: int, fresh: bool) -> Stream:
    """A base rate of 1% by a constant feature, preferences of norm 1.5, still."""
    z = sphere(rng, T, 20, 3) if fresh else sphere(rng, 20, 3)
    return click(rng, with_constant(z), still(np.append(-4.6, 1.5 * sphere(rng, 3)), T))


@kind("clicks", still={"step": 0.0}, walk={"step": 1.0})
def rate_one_percent_items(rng: Generator, T: int, step: float) -> Stream:
    """Ten items (one-hot) at rates around 1%, still or wandering."""
    return click(rng, np.eye(10), -4.6 + 0.8 * rng.standard_normal(10) + walk(rng, T, 10, step))


@kind("clicks")
def rate_one_percent_jumps(rng: Generator, T: int) -> Stream:
    """A base rate of 1% by a constant feature; preferences of norm 2 are redrawn three times."""
    theta = np.concatenate([np.full((T, 1), -4.6), jumps(rng, T, 3, 3, 1.2)], axis=1)
    return click(rng, with_constant(sphere(rng, 20, 3)), theta)


@kind("clicks", walk={"how": 0}, ramp={"how": 1}, season={"how": 2})
def level_of_odds(rng: Generator, T: int, how: int) -> Stream:
    """The level of log odds wanders, climbs from 1% to 20%, or swings by 1.5, and no feature shows it."""
    base = [2.0 * walk(rng, T, 1, 1.0)[:, 0] - 2.0, -4.6 + 3.2 * ages(T), 1.5 * wave(T, 10) - 2.0][how]
    return click(rng, sphere(rng, 20, 4), still(1.5 * sphere(rng, 4), T), base)


@kind("clicks", walk={"how": 0}, season={"how": 1})
def level_of_items(rng: Generator, T: int, how: int) -> Stream:
    """Eight items (one-hot) whose log odds share a level that wanders or swings."""
    base = [walk(rng, T, 1, 2.0)[:, 0], 1.5 * wave(T, 10)][how] - 2.0
    return click(rng, np.eye(8), still(0.7 * rng.standard_normal(8), T), base)


@kind("clicks", features={"d": 4}, many={"d": 12})
def items_come_and_go(rng: Generator, T: int, d: int) -> Stream:
    """Twelve slots whose items are replaced after T/20 rounds on average; features of items, still."""
    item, _ = lives(rng, T, 12, T / 20)
    return click(rng, with_constant(turnover(rng, item, d)), still(np.append(-2.0, sphere(rng, d)), T))


@kind("clicks")
def items_new_behind_slots(rng: Generator, T: int) -> Stream:
    """Ten slots (one-hot): the item of a slot is replaced after T/10 rounds on average, unseen."""
    item, _ = lives(rng, T, 10, T / 10)
    return clicks(rng, np.eye(10), sigmoid(turnover(rng, item, 1)[..., 0] - 1.5))


@kind("clicks")
def items_one_hot_forty(rng: Generator, T: int) -> Stream:
    """Forty items (one-hot) with rates near 5%, still."""
    return click(rng, np.eye(40), still(0.8 * rng.standard_normal(40) - 3.0, T))


@kind("clicks", still={"step": 0.0}, walk={"step": 1.0})
def users_by_items(rng: Generator, T: int, step: float) -> Stream:
    """One-hot user + item, d = 13, still or wandering."""
    return click(rng, users_and_items(rng, T, 5, 8), 0.7 * rng.standard_normal(13) + walk(rng, T, 13, step), -1.0)


@kind("clicks")
def segments_cross_items(rng: Generator, T: int) -> Stream:
    """Three segments crossed with six items (18 columns); everything is redrawn once."""
    return click(rng, crosses(np.eye(3)[rng.integers(3, size=T)], 6), jumps(rng, T, 18, 1, 1.0), -1.5)


@kind("clicks", d2={"d": 2, "turns": 1.0}, d5={"d": 5, "turns": 1.0}, half={"d": 2, "turns": 0.5, "n": 5})
def turns(rng: Generator, T: int, d: int, turns: float, n: int = 30) -> Stream:
    """Preferences of norm 2 that turn, log odds around -1 without a constant feature."""
    return click(rng, sphere(rng, n, d), 2.0 * circle(T, turns, d, rng.random()), -1.0)


@kind("clicks")
def two_pages_turn(rng: Generator, T: int) -> Stream:
    """Two pages (basis) that take turns slowly, rates near 20%."""
    return click(rng, np.eye(2), 0.7 * circle(T, 1.0, start=rng.random()) - 1.4)


@kind("clicks", few={"changes": 3}, many={"changes": 15})
def jump(rng: Generator, T: int, changes: int) -> Stream:
    """Preferences at d = 5 with a constant are redrawn; fresh arms."""
    theta = np.concatenate([np.full((T, 1), -2.0), jumps(rng, T, 5, changes, 0.9)], axis=1)
    return click(rng, with_constant(sphere(rng, T, 20, 5)), theta)


@kind("clicks", slow={"step": 0.005}, fast={"step": 0.02})
def walks(rng: Generator, T: int, step: float) -> Stream:
    """Preferences of norm 2 at d = 5 walk on the sphere; a constant feature."""
    theta = np.concatenate([np.full((T, 1), -1.5), 2.0 * ring(rng, T, 5, step)], axis=1)
    return click(rng, with_constant(sphere(rng, 30, 5)), theta)


@kind("clicks")
def unseen_rise_of_clicks(rng: Generator, T: int) -> Stream:
    """Six items (one-hot): the second best rises unseen from 12% to 35%."""
    return clicks(rng, np.eye(6), 0.02 + rises(T, 6, 0.13, 0.33))


@kind("clicks", relevant={"at": 1}, constant={"at": 0})
def scale_of_clicks(rng: Generator, T: int, at: int) -> Stream:
    """One feature, or the constant, x 1000; still."""
    arms, theta = scaled(with_constant(sphere(rng, 30, 4)), still(np.append(-2.0, 1.5 * sphere(rng, 4)), T), at, 1000.0)
    return click(rng, arms, theta)


@kind("clicks")
def wide_features(rng: Generator, T: int) -> Stream:
    """d = 50 and 10 fixed arms, still."""
    return click(rng, sphere(rng, 10, 50), still(6.0 * sphere(rng, 50), T), -1.5)


@kind("clicks")
def nearly_always(rng: Generator, T: int) -> Stream:
    """Rates near 97%, one turn, fresh arms."""
    theta = np.concatenate([np.full((T, 1), 3.5), 1.5 * circle(T, 1.0, 3, rng.random())], axis=1)
    return click(rng, with_constant(sphere(rng, T, 10, 3)), theta)
