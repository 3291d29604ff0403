"""Contextual bandit problems as practitioners meet them, for judging defaults on worlds nobody tuned on.

Every kind is a function of a seed and a number of rounds T. The world (weights, catalogues, times of change) is drawn
before anything that depends on T, and every time of change is a fraction of T, so the same seed gives the same story
told in more or fewer rounds. Nothing here uses BLAS: sums run feature by feature.
"""

import hashlib
import zlib
from collections.abc import Callable
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]
Rewards = Literal["values", "clicks"]
Rng = np.random.Generator


class Stream(NamedTuple):
    """One problem: features, expected rewards and the reward that each arm would give in each round."""

    arms: Floats
    """(n, d) where the arms stay, (T, n, d) where they are fresh each round."""
    means: Floats
    """(T, n): expected reward of each arm in each round."""
    rewards: Floats
    """(T, n): what playing each arm would give; 0 or 1 for clicks."""


Make = Callable[..., Stream]
REGISTRY: dict[str, tuple[Make, Rewards, str]] = {}


def kind(rewards: Rewards) -> Callable[[Callable[[Rng, int], Stream]], Make]:
    """Register a world under its function's name, with its docstring as the description."""

    def register(world: Callable[[Rng, int], Stream]) -> Make:
        name = world.__name__

        def make(seed: int, T: int = 6000) -> Stream:
            return world(np.random.Generator(np.random.PCG64([seed, zlib.crc32(name.encode())])), T)

        make.__name__ = make.__qualname__ = name
        make.__doc__ = world.__doc__
        REGISTRY[name] = (make, rewards, (world.__doc__ or "").strip())
        return make

    return register


# Tools: time, paths, features, noise.

KNOTS = 400


def clock(T: int) -> Floats:
    """The middle of each round as a fraction of the whole run."""
    return (np.arange(T, dtype=np.float64) + 0.5) / T


def along(path: Floats, T: int) -> Floats:
    """Stretch a path known at evenly spaced points, one column per quantity, over T rounds."""
    points = np.linspace(0.0, 1.0, len(path))
    now = clock(T)
    return np.stack([np.interp(now, points, path[:, j]) for j in range(path.shape[1])], axis=-1)


def walk(rng: Rng, width: int, T: int) -> Floats:
    """Random walks from zero that have variance one at the end of the run; (T, width)."""
    steps = rng.normal(0.0, KNOTS**-0.5, (KNOTS, width))
    return along(np.concatenate([np.zeros((1, width)), np.cumsum(steps, axis=0)]), T)


def wander(rng: Rng, width: int, T: int, memory: float) -> Floats:
    """Paths around zero of variance one that forget where they were after a fraction `memory` of the run."""
    keep = float(np.exp(-1.0 / (KNOTS * memory)))
    shocks = rng.normal(size=(KNOTS + 1, width))
    path = np.empty_like(shocks)
    path[0] = shocks[0]
    for i in range(1, KNOTS + 1):
        path[i] = keep * path[i - 1] + (1.0 - keep * keep) ** 0.5 * shocks[i]
    return along(path, T)


def pieces(levels: Floats, cuts: Floats, T: int) -> Floats:
    """Piecewise constant path: levels[i] holds from the i-th cut to the next."""
    return levels[np.searchsorted(cuts, clock(T), side="right")]


def jumps(rng: Rng, count: int) -> Floats:
    """Times of `count` changes, as fractions: evenly spread, then moved a little so that no rhythm shows."""
    return (np.arange(1, count + 1) + rng.uniform(-0.3, 0.3, count)) / (count + 1)


def ramp(T: int, start: float, end: float) -> Floats:
    """Zero until `start`, one after `end`, a straight line between."""
    return np.clip((clock(T) - start) / (end - start), 0.0, 1.0)


def wave(T: int, cycles: float, phase: float | Floats = 0.0) -> Floats:
    """A sine of so many cycles per run; one column for each phase if there are several."""
    angle = 2.0 * np.pi * cycles * clock(T)
    return np.sin(angle + phase) if isinstance(phase, float) else np.sin(angle[:, None] + phase)


def lives(rng: Rng, slots: int, T: int, life: float) -> tuple[Ints, Floats, int]:
    """Items that come and go in each slot: which item is there, its age, and how many items there are in all."""
    each = int(4.0 / life) + 12
    ends = np.cumsum(rng.exponential(life, (slots, each)), axis=1)
    ends -= rng.uniform(0.0, life, (slots, 1))
    births = np.concatenate([np.full((slots, 1), -0.5 * life), ends[:, :-1]], axis=1)
    now = clock(T)
    item = np.empty((T, slots), dtype=np.int64)
    age = np.empty((T, slots))
    for s in range(slots):
        which = np.minimum(np.searchsorted(ends[s], now, side="right"), each - 1)
        item[:, s] = s * each + which
        age[:, s] = np.maximum(now - births[s, which], 0.0)
    return item, age, slots * each


def linear(arms: Floats, weights: Floats) -> Floats:
    """Sum of features times weights, feature by feature; either side may change over time."""
    total: Floats = arms[..., 0] * weights[..., 0, None]
    for j in range(1, arms.shape[-1]):
        total = total + arms[..., j] * weights[..., j, None]
    return total


def steady(means: Floats, T: int) -> Floats:
    """The same means in every round."""
    return np.repeat(means[None, :], T, axis=0)


def blocks(context: Floats, n: int) -> Floats:
    """Give each of n arms its own copy of the context, in its own columns; (T, n, n * k)."""
    T, k = context.shape
    arms = np.zeros((T, n, n * k))
    for a in range(n):
        arms[:, a, a * k : (a + 1) * k] = context
    return arms


def with_one(columns: Floats) -> Floats:
    """Put a column of ones before the features."""
    return np.concatenate([np.ones((*columns.shape[:-1], 1)), columns], axis=-1)


def one_hot(index: Ints, size: int) -> Floats:
    """A one in the column that the index names."""
    return np.eye(size)[index]


def mixed(rng: Rng, shape: tuple[int, ...], loadings: Floats, own: float) -> Floats:
    """Correlated features: a few shared normal factors through the loadings, and noise of each feature's own."""
    factors, d = loadings.shape
    hidden = rng.normal(size=(*shape, factors))
    out = rng.normal(0.0, own, (*shape, d))
    for f in range(factors):
        out += hidden[..., f, None] * loadings[f]
    return out


def logistic(logit: Floats) -> Floats:
    """Log-odds to probability."""
    return 1.0 / (1.0 + np.exp(-logit))


def coins(rng: Rng, arms: Floats, chance: Floats) -> Stream:
    """A stream of clicks with these chances."""
    return Stream(arms, chance, (rng.random(chance.shape) < chance).astype(np.float64))


def normal(rng: Rng, arms: Floats, means: Floats, spread: float | Floats) -> Stream:
    """A stream of values with normal noise of this spread."""
    return Stream(arms, means, means + spread * rng.normal(size=means.shape))


def skewed(rng: Rng, arms: Floats, means: Floats, shape: float, centre: Floats) -> Stream:
    """A stream of values whose distance from zero is `centre` times a gamma factor of mean one, sign kept."""
    return Stream(arms, means, means + centre * (rng.gamma(shape, 1.0 / shape, means.shape) - 1.0))


# Values that do not drift.


@kind("values")
def dose_ladder(rng: Rng, T: int) -> Stream:
    """Nine doses: the effect saturates, harm grows with the cube, quadratic features, normal noise, stationary."""
    gain, half, harm = rng.uniform(2.0, 3.0), rng.uniform(0.15, 0.3), rng.uniform(2.0, 3.0)
    dose = np.linspace(0.0, 1.0, 9)
    means = steady(gain * dose / (dose + half) - harm * dose**3, T)
    return normal(rng, np.stack([np.ones(9), dose, dose**2], axis=-1), means, 1.0)


@kind("values")
def shelf_layouts(rng: Rng, T: int) -> Stream:
    """Forty shop layouts without features but their name: sales around 50, heavy-tailed noise, stationary."""
    means = steady(rng.normal(50.0, 6.0, 40), T)
    return Stream(np.eye(40), means, means + 7.0 * rng.standard_t(2.5, means.shape))


@kind("values")
def visitor_revenue(rng: Rng, T: int) -> Stream:
    """Five page variants: most visitors pay nothing, a few pay log-normal sums, stationary A/B/n test."""
    share = rng.permutation(np.linspace(0.04, 0.13, 5)) * rng.uniform(0.95, 1.05, 5)
    size, spread = rng.normal(3.5, 0.1, 5), 0.6
    means = steady(share * np.exp(size + spread**2 / 2.0), T)
    paid = rng.random(means.shape) < share
    return Stream(np.eye(5), means, np.where(paid, np.exp(size + spread * rng.normal(size=means.shape)), 0.0))


@kind("values")
def news_dwell(rng: Rng, T: int) -> Stream:
    """300 candidate articles a round from a pool: seconds read, exponential in the features, skewed, stationary."""
    topics = rng.gamma(0.5, 1.0, (3000, 8))
    pool = np.concatenate([topics / topics.sum(axis=1, keepdims=True), rng.normal(size=(3000, 3))], axis=1)
    pool = with_one(pool)
    weights = np.concatenate([[0.0], rng.normal(0.0, 0.6, 8), rng.normal(0.0, 0.25, 3)])
    seconds = 30.0 * np.exp(linear(pool, weights))
    pick = rng.integers(0, len(pool), (T, 300))
    means = seconds[pick]
    return skewed(rng, pool[pick], means, 1.5, means)


@kind("values")
def llm_router(rng: Rng, T: int) -> Stream:
    """Six language models, each its own weights on a prompt embedding: quality less cost by length, stationary."""
    loadings = rng.normal(0.0, 0.6, (4, 14))
    weights = np.concatenate([rng.normal(0.3, 0.5, (6, 1)), rng.normal(0.0, 0.3, (6, 14))], axis=1)
    price = np.linspace(0.01, 0.08, 6)
    length = rng.lognormal(0.0, 0.7, T)
    context = np.concatenate([with_one(mixed(rng, (T,), loadings, 0.6)), length[:, None]], axis=1)
    weights = np.concatenate([weights, np.zeros((6, 1))], axis=1)
    arms = blocks(context, 6)
    means = logistic(linear(arms, weights.ravel())) - price * length[:, None]
    return normal(rng, arms, means, 0.15)


@kind("values")
def hashed_ads(rng: Rng, T: int) -> Stream:
    """Twenty ads an auction with hashed sparse features that collide: revenue near 1e-3, very skewed, stationary."""
    ads, firms, segments = 60, 15, 6
    firm_of = rng.integers(0, firms, ads)
    effects = (rng.normal(0.0, 0.5, ads), rng.normal(0.0, 0.5, firms), rng.normal(0.0, 0.4, (firms, segments)))
    tables = (rng.integers(0, 150, ads), rng.integers(0, 150, firms), rng.integers(0, 150, (firms, segments)))
    segment_slots = rng.integers(0, 150, segments)
    ad = rng.integers(0, ads, (T, 20))
    segment = np.repeat(rng.integers(0, segments, (T, 1)), 20, axis=1)
    firm = firm_of[ad]
    means = 1e-3 * np.exp(effects[0][ad] + effects[1][firm] + effects[2][firm, segment])
    arms = np.zeros((T, 20, 150))
    rows, columns = np.arange(T)[:, None], np.arange(20)[None, :]
    for slot in (tables[0][ad], tables[1][firm], tables[2][firm, segment], segment_slots[segment]):
        arms[rows, columns, slot] += 1.0
    return skewed(rng, arms, means, 0.4, means)


@kind("values")
def furnace_recipe(rng: Rng, T: int) -> Stream:
    """25 furnace recipes in raw units from 1e-3 to 1e6: a gain near 1e-6, without any noise, stationary."""
    heat = rng.normal(size=25)
    press = 0.8 * heat + 0.6 * rng.normal(size=25)
    carbon, hold, gas = rng.normal(size=25), 0.5 * press + rng.normal(size=25), rng.normal(size=25)
    weights = rng.normal(0.0, 1.0, 5)
    units = (1200.0 + 80.0 * heat, 2e6 + 3e5 * press, 2e-3 + 4e-4 * carbon, 3600.0 + 600.0 * hold, 40.0 + 9.0 * gas)
    gain = linear(np.stack([heat, press, carbon, hold, gas], axis=-1), weights) + 0.4 * heat * carbon
    means = steady(1e-6 * (6.0 + gain), T)
    return Stream(with_one(np.stack(units, axis=-1)), means, means.copy())


@kind("values")
def plant_dispatch(rng: Rng, T: int) -> Stream:
    """Twelve dispatch plans an hour with correlated features: profit near 4e9, normal noise, stationary."""
    loadings = rng.normal(0.0, 0.8, (2, 8))
    weights = np.concatenate([[4e9], 2e8 * rng.normal(size=8)])
    arms = with_one(mixed(rng, (T, 12), loadings, 0.5))
    return normal(rng, arms, linear(arms, weights), 2.5e9)


@kind("values")
def tutor_match(rng: Rng, T: int) -> Stream:
    """Thirty exercises for a new pupil: gain peaks where difficulty is just above skill, not linear, stationary."""
    stretch, width = rng.uniform(0.1, 0.5, 3), rng.uniform(0.8, 1.4, 3)
    skill = np.repeat(rng.normal(0.0, 0.6, (T, 1, 3)), 30, axis=1)
    hard = rng.normal(0.0, 0.9, (T, 30, 3))
    length = rng.uniform(0.0, 1.0, (T, 30, 1))
    gap = (hard - skill - stretch) / width
    means = np.exp(-(gap**2)).sum(axis=-1) - 0.5 * length[..., 0]
    arms = with_one(np.concatenate([skill, hard, hard**2, hard * skill, length], axis=-1))
    return normal(rng, arms, means, 0.5)


@kind("values")
def two_line_split(rng: Rng, T: int) -> Stream:
    """Two production lines and three job features: one is five times noisier, and ever more so, stationary means."""
    weights = np.concatenate([rng.normal(0.0, 0.3, (2, 1)), rng.normal(0.0, 0.5, (2, 3))], axis=1)
    arms = blocks(with_one(rng.normal(size=(T, 3))), 2)
    spread = np.stack([np.full(T, 0.6), 3.0 + 3.0 * clock(T)], axis=-1)
    return normal(rng, arms, linear(arms, weights.ravel()), spread)


@kind("values")
def drill_sites(rng: Rng, T: int) -> Stream:
    """300 fixed sites described by 14 correlated surveys, each with a residual of its own: barrels, stationary."""
    sites = mixed(rng, (300,), rng.normal(0.0, 0.5, (3, 14)), 0.8)
    value = linear(sites, rng.normal(0.0, 14**-0.5, 14)) + rng.normal(0.0, 0.3, 300)
    means = steady(3e4 + 5e3 * value, T)
    return normal(rng, with_one(sites), means, 6e3)


@kind("values")
def query_planner(rng: Rng, T: int) -> Stream:
    """Eight query plans with wide log-normal cost estimates as features: minus seconds, log-normal, stationary."""
    weights = np.concatenate([[0.2], rng.uniform(0.05, 0.6, 6)])
    arms = with_one(rng.lognormal(0.0, 1.0, (T, 8, 6)))
    means = -linear(arms, weights)
    return Stream(arms, means, means * np.exp(1.2 * rng.normal(size=means.shape) - 0.72))


# Values that drift mildly.


@kind("values")
def boiler_setpoints(rng: Rng, T: int) -> Stream:
    """Twelve setpoints on a cubic curve: a seasonal level far larger than the gaps moves all arms alike."""
    best, phase = rng.uniform(-0.5, 0.5), rng.uniform(0.0, 6.0)
    point = np.linspace(-1.0, 1.0, 12)
    level = 5.0 * wave(T, 3.0, phase) + 4.0 * clock(T) - 40.0
    means = -2.0 * (point - best) ** 2 + 0.3 * point**3 + level[:, None]
    return normal(rng, np.stack([np.ones(12), point, point**2, point**3], axis=-1), means, 0.5)


@kind("values")
def courier_routes(rng: Rng, T: int) -> Stream:
    """Sixty fixed routes as kilometres by district: minus minutes, fast districts slowly turn slow, skewed delays."""
    parts = rng.gamma(1.0, 1.0, (60, 7)) * (rng.random((60, 7)) < 0.45)
    parts[np.arange(60), rng.integers(0, 7, 60)] += 0.5
    km = 10.0 * parts / parts.sum(axis=1, keepdims=True)
    arms = np.concatenate([km, rng.integers(0, 4, (60, 1)).astype(np.float64)], axis=1)
    start = np.append(rng.permutation(np.linspace(1.4, 2.6, 7)), 1.0)
    end = np.append(4.0 - start[:7], 1.0)
    means = -linear(arms, (start + clock(T)[:, None] * (end - start)) * np.exp(0.15 * walk(rng, 8, T)))
    rush = 0.2 + 0.15 * wave(T, 30.0)[:, None]
    return skewed(rng, arms, means, 1.0, means * rush)


@kind("values")
def fashion_feed(rng: Rng, T: int) -> Stream:
    """Fifty fresh garments with correlated features: six of 24 weights follow a straight trend, the rest stay."""
    loadings = rng.normal(0.0, 0.5, (4, 24))
    start, end = rng.normal(0.0, 24**-0.5, (2, 24))
    end[6:] = start[6:]
    weights = start + clock(T)[:, None] * (end - start)
    arms = mixed(rng, (T, 50), loadings, 0.7)
    return normal(rng, arms, linear(arms, weights), 4.0)


@kind("values")
def checkout_variants(rng: Rng, T: int) -> Stream:
    """Eight checkout pages: basket size walks and jumps in a holiday for all alike, so the order never changes."""
    page = rng.normal(60.0, 1.2, 8)
    level = 4.0 * walk(rng, 1, T) + 6.0 * ((clock(T) > 0.70) & (clock(T) < 0.78))[:, None]
    return normal(rng, np.eye(8), page + level, 5.0)


@kind("values")
def rival_vendors(rng: Rng, T: int) -> Stream:
    """Twelve vendors: the best one never changes, the others wander below it and sometimes come near."""
    best = int(rng.integers(0, 12))
    base = rng.uniform(8.0, 9.5, 12)
    means = base - 1.5 * np.abs(wander(rng, 12, T, 0.15))
    means[:, best] = 10.0
    return normal(rng, np.eye(12), means, 2.5)


@kind("values")
def order_venues(rng: Rng, T: int) -> Stream:
    """Seven trading venues: minus costs of a few 1e-4, slow walks, heavy-tailed noise in calm and wild spells."""
    slopes = np.array([-0.8, 0.6, -0.5, -0.3]) * rng.uniform(0.6, 1.4, 4)
    weights = np.concatenate([slopes, rng.normal(-2.0, 0.4, 7)]) + 0.3 * walk(rng, 11, T)
    wild = np.exp(0.4 * wander(rng, 1, T, 0.05))
    quotes = np.concatenate([rng.gamma(2.0, 0.5, (T, 7, 1)), rng.normal(size=(T, 7, 3))], axis=-1)
    arms = np.concatenate([quotes, np.repeat(np.eye(7)[None], T, axis=0)], axis=-1)
    means = 1e-4 * linear(arms, weights)
    return Stream(arms, means, means + 1e-4 * wild * rng.standard_t(3.0, means.shape))


@kind("values")
def tool_wear(rng: Rng, T: int) -> Stream:
    """Sixteen speed and feed settings, one square missing from the features: the best speed falls as the tool wears."""
    speed, feed = np.repeat(np.linspace(0.0, 1.0, 4), 4), np.tile(np.linspace(0.0, 1.0, 4), 4)
    feed_best = rng.uniform(0.1, 0.9)
    speed_best = rng.uniform(0.8, 0.95) - rng.uniform(0.45, 0.6) * clock(T)[:, None]
    means = 80.0 - 10.0 * (speed - speed_best) ** 2 - 4.0 * (feed - feed_best) ** 2
    arms = np.stack([np.ones(16), speed, feed, speed * feed, speed**2], axis=-1)
    return normal(rng, arms, means, 1.0)


@kind("values")
def clinic_queue(rng: Rng, T: int) -> Stream:
    """Five desks with queue length and case size: minus waiting time, desk speeds drift slowly, skewed noise."""
    pace = np.stack([rng.uniform(1.0, 4.0, 5), rng.uniform(0.5, 2.0, 5), rng.uniform(0.5, 2.0, 5)], axis=-1).ravel()
    weights = pace * np.exp(0.3 * walk(rng, 15, T))
    arms = np.zeros((T, 5, 15))
    size = rng.gamma(2.0, 0.5, T)
    for a in range(5):
        arms[:, a, 3 * a] = 1.0
        arms[:, a, 3 * a + 1] = rng.poisson(3.0, T)
        arms[:, a, 3 * a + 2] = size
    means = -linear(arms, weights)
    return skewed(rng, arms, means, 2.0, means)


@kind("values")
def podcast_slots(rng: Rng, T: int) -> Stream:
    """Forty episodes that come and go, each with an appeal its features miss; tastes walk slowly."""
    item, _, count = lives(rng, 40, T, 0.15)
    features = rng.normal(size=(count, 18))
    appeal = rng.normal(0.0, 0.3, count)
    weights = 18**-0.5 * (rng.normal(size=18) + 0.5 * walk(rng, 18, T))
    arms = features[item]
    return normal(rng, arms, 12.0 + linear(arms, weights) + appeal[item], 1.0)


@kind("values")
def crop_irrigation(rng: Rng, T: int) -> Stream:
    """Six amounts of water under known weather: the need also swings with an unseen season, losses are skewed."""
    dry_part, heat_part, phase = rng.uniform(0.15, 0.3), rng.uniform(0.05, 0.15), rng.uniform(0.0, 6.0)
    dry, heat = rng.normal(size=(T, 1)), rng.normal(size=(T, 1))
    need = np.clip(0.5 + dry_part * dry + heat_part * heat + 0.12 * wave(T, 2.0, phase)[:, None], 0.0, 1.0)
    water = np.linspace(0.0, 1.0, 6)[None, :] + np.zeros((T, 1))
    dry, heat = dry + 0.0 * water, heat + 0.0 * water
    columns = [np.ones_like(water), water, water**2, water**3, dry, heat]
    arms = np.stack([*columns, water * dry, water * heat, water**2 * dry, dry * heat], axis=-1)
    means = 7.0 - 6.0 * (water - need) ** 2
    return skewed(rng, arms, means, 1.5, np.full_like(means, -0.8))


@kind("values")
def recipe_home(rng: Rng, T: int) -> Stream:
    """Twelve recipes with 64 tags, few of them set: eight of the weights jump twice, the others never."""
    rare = rng.uniform(0.03, 0.25, 64)
    levels = np.repeat(rng.normal(0.0, 0.5, (1, 64)), 3, axis=0)
    levels[1:, :8] = rng.normal(0.0, 0.8, (2, 8))
    weights = pieces(levels, jumps(rng, 2), T)
    arms = (rng.random((T, 12, 64)) < rare).astype(np.float64)
    return normal(rng, arms, 3.0 + linear(arms, weights), 2.0)


# Values that drift strongly.


@kind("values")
def signal_sign(rng: Rng, T: int) -> Stream:
    """One feature, eight assets: the sign of the signal flips five times, heavy-tailed noise, scale 1e-2."""
    slope = 0.01 * rng.uniform(0.7, 1.3, 6) * np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0])
    weights = pieces(slope[:, None], jumps(rng, 5), T)
    arms = rng.normal(size=(T, 8, 1))
    means = linear(arms, weights)
    return Stream(arms, means, means + 0.015 * rng.standard_t(3.0, means.shape))


@kind("values")
def price_war(rng: Rng, T: int) -> Stream:
    """Fifteen prices as overlapping bands: a rival's price jumps six times and takes the demand above it."""
    rival = np.where(np.arange(7) % 2 == 0, rng.uniform(2.2, 2.8, 7), rng.uniform(1.3, 1.7, 7))
    price = np.linspace(1.0, 3.0, 15)
    demand = 100.0 * logistic(-4.0 * (price - pieces(rival[:, None], jumps(rng, 6), T)))
    arms = np.maximum(0.0, 1.0 - np.abs(price[:, None] - np.linspace(1.0, 3.0, 6)) / 0.4)
    return Stream(arms, price * demand, price * rng.poisson(demand).astype(np.float64))


@kind("values")
def patch_meta(rng: Rng, T: int) -> Stream:
    """Ten of 24 heroes on offer and six maps: five patches each redraw the strength of a third of the heroes."""
    strength = rng.normal(0.0, 0.8, (6, 24))
    for p in range(1, 6):
        kept = rng.permutation(24)[8:]
        strength[p, kept] = strength[p - 1, kept]
    cuts, trait = jumps(rng, 5), rng.normal(size=24)
    weights = np.concatenate([pieces(strength, cuts, T), np.repeat(rng.normal(0.0, 0.4, (1, 6)), T, axis=0)], axis=1)
    hero = rng.integers(0, 24, (T, 10))
    maps = one_hot(rng.integers(0, 6, T), 6)
    arms = np.concatenate([one_hot(hero, 24), trait[hero][..., None] * maps[:, None, :]], axis=-1)
    return normal(rng, arms, linear(arms, weights), 1.5)


@kind("values")
def factor_rotation(rng: Rng, T: int) -> Stream:
    """Eighty stocks with ten correlated exposures: the premia wander and turn over several times, scale 1e-3."""
    loadings = rng.normal(0.0, 0.5, (2, 10))
    weights = 1e-3 * 10**-0.5 * wander(rng, 10, T, 0.15)
    arms = mixed(rng, (T, 80), loadings, 0.8)
    means = linear(arms, weights)
    return Stream(arms, means, means + 1.5e-3 * rng.standard_t(4.0, means.shape))


@kind("values")
def night_shift(rng: Rng, T: int) -> Stream:
    """Four depots with load and urgency: each depot's weights swing through six cycles that no feature shows."""
    base, swing = rng.normal(0.0, 0.3, 12), rng.uniform(0.5, 1.0, 12)
    weights = base + swing * wave(T, 6.0, rng.uniform(0.0, 2.0 * np.pi, 12))
    arms = blocks(with_one(rng.normal(size=(T, 2))), 4)
    return normal(rng, arms, linear(arms, weights), 0.5)


@kind("values")
def sleeping_supplier(rng: Rng, T: int) -> Stream:
    """Six suppliers: the worst becomes the best at 35 hundredths, the next worst at 70, where nobody looks."""
    place, start = rng.permutation(6), rng.uniform(0.95, 1.05, 6) * np.linspace(0.0, 1.0, 6)
    levels = np.stack([start, start, start])
    levels[1:, 0] = rng.uniform(1.5, 1.8)
    levels[2, 1] = rng.uniform(2.2, 2.5)
    means = 1e3 * pieces(levels, np.array([0.35, 0.70]), T)[:, place]
    return normal(rng, np.eye(6), means, 6e2)


@kind("values")
def dock_rush(rng: Rng, T: int) -> Stream:
    """Ten fresh loads for a dock: nothing moves for half the run, then the weights turn by one and a half circles."""
    start = rng.normal(size=6)
    start *= 1.2 / float(np.sqrt((start * start).sum()))
    angle = 3.0 * np.pi * ramp(T, 0.55, 1.0)
    weights = np.empty((T, 6))
    for j in (0, 2, 4):
        weights[:, j] = np.cos(angle) * start[j] - np.sin(angle) * start[j + 1]
        weights[:, j + 1] = np.sin(angle) * start[j] + np.cos(angle) * start[j + 1]
    arms = rng.normal(size=(T, 10, 6))
    return normal(rng, arms, linear(arms, weights), 1.5)


@kind("values")
def silent_updates(rng: Rng, T: int) -> Stream:
    """Five language models by eight topics: six times a model is replaced without notice, others keep their skill."""
    skill = np.empty((7, 5, 9))
    skill[0] = rng.normal(0.0, 0.6, (5, 9))
    turns = np.concatenate([rng.permutation(5), rng.permutation(5)[:1]])
    for p in range(1, 7):
        skill[p] = skill[p - 1]
        skill[p, turns[p - 1]] = rng.normal(0.2, 0.7, 9)
    weights = pieces(skill.reshape(7, 45), jumps(rng, 6), T)
    arms = blocks(with_one(one_hot(rng.integers(0, 8, T), 8)), 5)
    return normal(rng, arms, linear(arms, weights), 0.4)


@kind("values")
def satellite_links(rng: Rng, T: int) -> Stream:
    """A hundred fixed links, no constant among the features: the best direction circles twice; bits near 4e6."""
    links = rng.normal(size=(100, 7))
    links /= np.sqrt((links * links).sum(axis=1, keepdims=True))
    weights = np.repeat(rng.normal(0.0, 3e5, (1, 7)), T, axis=0)
    phase = rng.uniform(0.0, 6.0)
    weights[:, 0] = 2e6 * wave(T, 2.0, phase)
    weights[:, 1] = 2e6 * wave(T, 2.0, phase + np.pi / 2.0)
    means = 4e6 + linear(links, weights)
    return skewed(rng, links, means, 20.0, means)


@kind("values")
def spot_compute(rng: Rng, T: int) -> Stream:
    """Twelve regions for spot machines: minus prices wander by themselves and leap up in short spells."""
    calm = -5.0 + 0.8 * wander(rng, 12, T, 0.3)
    starts = rng.uniform(0.0, 0.9, (12, 3))
    leap = np.zeros((T, 12))
    for s in range(3):
        since = clock(T)[:, None] - starts[:, s]
        leap += 3.0 * ((since > 0.0) & (since < 0.06))
    return normal(rng, np.eye(12), calm - leap, 0.5)


@kind("values")
def team_tactics(rng: Rng, T: int) -> Stream:
    """Three tactics against a described opponent who adapts: each edge decays and another grows in its place."""
    weights = np.concatenate([rng.normal(0.0, 0.25, (3, 1)), rng.normal(0.0, 0.4, (3, 6))], axis=1)
    turns = np.zeros((T, 21))
    turns[:, ::7] = 1.2 * wave(T, 4.0, 2.0 * np.pi * rng.permutation(3).astype(np.float64) / 3.0)
    arms = blocks(with_one(rng.normal(size=(T, 6))), 3)
    return normal(rng, arms, linear(arms, weights.ravel() + turns), 1.0)


# Clicks that do not drift.


@kind("clicks")
def banner_rare(rng: Rng, T: int) -> Stream:
    """Ten banners with dense features: about two clicks in a hundred, stationary."""
    weights = np.append(-4.5, 1.3 * 7**-0.5 * rng.choice([-1.0, 1.0], 7) * rng.uniform(0.6, 1.4, 7))
    arms = with_one(rng.normal(size=(T, 10, 7)))
    return coins(rng, arms, logistic(linear(arms, weights)))


@kind("clicks")
def subject_lines(rng: Rng, T: int) -> Stream:
    """Twenty subject lines without features but their name: opened by 3 to 35 in a hundred, stationary."""
    return coins(rng, np.eye(20), steady(rng.beta(3.0, 17.0, 20), T))


@kind("clicks")
def search_ads(rng: Rng, T: int) -> Stream:
    """Thirty ads for a query: three ones among sixty features (query, brand, hashed pair), stationary."""
    query_part, brand_part = rng.normal(0.0, 0.4, 10), rng.normal(0.0, 0.7, 20)
    slots = rng.integers(0, 30, (10, 20))
    weights = np.concatenate([query_part, brand_part, rng.normal(0.0, 0.7, 30)])
    query, brand = np.repeat(rng.integers(0, 10, (T, 1)), 30, axis=1), rng.integers(0, 20, (T, 30))
    arms = np.concatenate([one_hot(query, 10), one_hot(brand, 20), one_hot(slots[query, brand], 30)], axis=-1)
    return coins(rng, arms, logistic(linear(arms, weights) - 2.5))


@kind("clicks")
def flashcards(rng: Rng, T: int) -> Stream:
    """Twelve cards for a learner: kept at it if the card is neither dull nor too hard, a hump, stationary."""
    stretch, width = rng.uniform(0.0, 0.5), rng.uniform(0.4, 0.7)
    skill, tired = np.repeat(rng.normal(0.0, 0.7, (T, 2, 1)), 12, axis=2).transpose(1, 0, 2)
    hard, length = rng.normal(0.0, 1.0, (2, T, 12))
    chance = 0.08 + 0.7 * np.exp(-((hard - skill - stretch) ** 2) / width) * logistic(1.5 - 0.5 * tired - 0.5 * length)
    columns = [np.ones_like(hard), skill, hard, skill * hard, skill**2, hard**2, tired, length, tired * length]
    return coins(rng, np.stack(columns, axis=-1), chance)


@kind("clicks")
def support_answers(rng: Rng, T: int) -> Stream:
    """Four answer engines, each its own weights on ten ticket features: thumbs up or not, stationary."""
    loadings = rng.normal(0.0, 0.5, (3, 9))
    weights = np.concatenate([rng.normal(0.3, 0.4, (4, 1)), rng.normal(0.0, 0.45, (4, 9))], axis=1)
    arms = blocks(with_one(mixed(rng, (T,), loadings, 0.7)), 4)
    return coins(rng, arms, logistic(linear(arms, weights.ravel())))


@kind("clicks")
def parcel_fits(rng: Rng, T: int) -> Stream:
    """Six boxes with slack in three directions: it fits if all three are positive, no noise at all, stationary."""
    shift = rng.uniform(-0.4, 0.4, 3)
    size = rng.normal(0.0, 0.8, (T, 6, 1))
    slack = size + rng.normal(0.0, 0.7, (T, 6, 3)) + shift
    chance = ((slack[..., 0] > 0.0) & (slack[..., 1] > 0.0) & (slack[..., 2] > 0.0)).astype(np.float64)
    arms = with_one(np.concatenate([slack, rng.uniform(1.0, 5.0, (T, 6, 1))], axis=-1))
    return coins(rng, arms, chance)


# Clicks that drift mildly.


@kind("clicks")
def fraud_review(rng: Rng, T: int) -> Stream:
    """Forty payments, one to be checked: raw amounts up to 1e5, sparse flags, rare fraud, flags shift in meaning."""
    amount_part, rare = rng.uniform(0.4, 0.8), rng.uniform(0.03, 0.2, 14)
    flags = rng.normal(0.6, 0.8, 14)
    moving = 0.8 * walk(rng, 5, T)
    amount = rng.lognormal(6.0, 1.2, (T, 40, 1))
    counts = rng.poisson(2.0, (T, 40, 4)).astype(np.float64)
    marks = (rng.random((T, 40, 14)) < rare).astype(np.float64)
    weights = flags + np.concatenate([moving, np.zeros((T, 9))], axis=1)
    logit = -5.5 + amount_part * (np.log(amount[..., 0]) - 6.0) + 0.25 * counts[..., 0] + linear(marks, weights)
    arms = with_one(np.concatenate([amount, counts, marks], axis=-1))
    return coins(rng, arms, logistic(logit))


@kind("clicks")
def push_hours(rng: Rng, T: int) -> Stream:
    """24 hours to send a message, described by daily harmonics: the best hour moves slowly by a few hours."""
    angle = 2.0 * np.pi * np.arange(24) / 24.0
    peak = rng.uniform(0.0, 6.0) + 0.5 * wave(T, 1.5, rng.uniform(0.0, 6.0)) + 0.3 * walk(rng, 1, T)[:, 0]
    logit = -1.8 + 0.9 * np.cos(angle - peak[:, None]) + 0.3 * np.cos(2.0 * (angle - peak[:, None]))
    arms = np.stack([np.ones(24), np.sin(angle), np.cos(angle), np.sin(2.0 * angle), np.cos(2.0 * angle)], axis=-1)
    return coins(rng, arms, logistic(logit))


@kind("clicks")
def short_videos(rng: Rng, T: int) -> Stream:
    """200 videos a round from a pool with dense embeddings: the taste of the crowd walks slowly."""
    pool = with_one(rng.normal(size=(5000, 9)))
    weights = np.append(-3.5, rng.normal(0.0, 0.4, 9)) + 0.25 * walk(rng, 10, T)
    arms = pool[rng.integers(0, 5000, (T, 200))]
    return coins(rng, arms, logistic(linear(arms, weights)))


@kind("clicks")
def landing_level(rng: Rng, T: int) -> Stream:
    """Six landing pages: traffic quality wanders for all alike, so the chances move and the order does not."""
    page = rng.permutation(np.linspace(-0.7, 0.7, 6)) + rng.uniform(-0.1, 0.1, 6)
    return coins(rng, np.eye(6), logistic(page - 1.5 + 0.7 * wander(rng, 1, T, 0.2)))


@kind("clicks")
def loan_offers(rng: Rng, T: int) -> Stream:
    """Nine offers by rate, term and amount for a borrower: customers grow more sensitive to the rate as time goes."""
    start, end, fond = rng.uniform(0.3, 0.5), rng.uniform(1.2, 1.6), rng.uniform(0.6, 0.9)
    rate, term, amount = rng.normal(size=(3, T, 9))
    young, income = np.repeat(rng.normal(size=(2, T, 1)), 9, axis=2)
    rise = clock(T)[:, None]
    logit = -1.0 - (start + (end - start) * rise) * rate + fond * (1.0 - rise) * term + 0.5 * term * young
    arms = np.stack([np.ones_like(rate), rate, term, amount, term * young, amount * income, income], axis=-1)
    return coins(rng, arms, logistic(logit + 0.4 * amount * income - 0.3 * amount))


# Clicks that drift strongly.


@kind("clicks")
def breaking_news(rng: Rng, T: int) -> Stream:
    """Fifteen stories that come, age and go: interest fades with age and the topics of the day jump five times."""
    item, age, count = lives(rng, 15, T, 0.05)
    topic, appeal = rng.integers(0, 8, count), rng.normal(0.0, 0.4, count)
    weights = pieces(rng.normal(-2.0, 1.0, (6, 8)), jumps(rng, 5), T)
    fresh = np.exp(-age / 0.03)
    topics = one_hot(topic[item], 8)
    logit = linear(topics, weights) + 1.5 * fresh + appeal[item]
    arms = np.concatenate([topics, np.stack([fresh, age, fresh**2], axis=-1)], axis=-1)
    return coins(rng, arms, logistic(logit))


@kind("clicks")
def ladder_matchups(rng: Rng, T: int) -> Stream:
    """Eight match-ups with 16 dense features near even odds: four patches flip half of the weights each."""
    levels = np.repeat(rng.normal(0.0, 0.4, (1, 16)), 5, axis=0)
    for p in range(1, 5):
        levels[p:, rng.permutation(16)[:8]] *= -1.0
    weights = pieces(levels, jumps(rng, 4), T)
    arms = rng.normal(size=(T, 8, 16))
    return coins(rng, arms, logistic(linear(arms, weights)))


@kind("clicks")
def bot_checks(rng: Rng, T: int) -> Stream:
    """Seven challenges against bots that adapt: each challenge works for a while, fails, and recovers unseen."""
    phase = 2.0 * np.pi * rng.permutation(7).astype(np.float64) / 7.0
    return coins(rng, np.eye(7), logistic(-0.8 + 2.0 * wave(T, 2.0, phase)))


@kind("clicks")
def quiet_variant(rng: Rng, T: int) -> Stream:
    """Ten offers, three of them novel and disliked: at 45 hundredths novelty turns from a fault into a virtue."""
    offers = np.stack([np.ones(10), rng.normal(size=10), rng.normal(size=10), np.repeat([1.0, 0.0], [3, 7])], axis=-1)
    offers = offers[rng.permutation(10)]
    weights = np.array([[-1.5, -0.4, 0.5, -1.5], [-1.5, -0.4, 0.5, 2.2]])
    return coins(rng, offers, logistic(linear(offers, pieces(weights, np.array([0.45]), T))))


@kind("clicks")
def session_music(rng: Rng, T: int) -> Stream:
    """25 songs with genre and sound, 48 features: the wish for each genre wanders and turns over, sound stays."""
    genre_of, sound = rng.integers(0, 24, 2000), rng.normal(size=(2000, 24))
    steady_part = np.repeat(rng.normal(0.0, 0.22, (1, 24)), T, axis=0)
    weights = np.concatenate([1.4 * wander(rng, 24, T, 0.25), steady_part], axis=1)
    song = rng.integers(0, 2000, (T, 25))
    arms = np.concatenate([one_hot(genre_of[song], 24), sound[song]], axis=-1)
    return coins(rng, arms, logistic(linear(arms, weights) - 0.8))


@kind("clicks")
def pay_gateways(rng: Rng, T: int) -> Stream:
    """Eight payment gateways for home or foreign cards: most home cards pass, but each gateway has sudden outages."""
    skill = np.stack([rng.uniform(1.5, 3.0, 8), rng.uniform(-2.5, 0.0, 8)], axis=-1)
    starts, lengths = rng.uniform(0.0, 0.9, (8, 4)), rng.uniform(0.03, 0.12, (8, 4))
    since = clock(T)[:, None, None] - starts
    down = ((since > 0.0) & (since < lengths)).any(axis=-1)
    arms = blocks(with_one((rng.random((T, 1)) < 0.3).astype(np.float64)), 8)
    return coins(rng, arms, logistic(linear(arms, skill.ravel()) - 5.0 * down))


# What the best arm does.

FIXED_BEST: dict[str, Literal["constant", "level"]] = {
    "dose_ladder": "constant",
    "shelf_layouts": "constant",
    "visitor_revenue": "constant",
    "furnace_recipe": "constant",
    "drill_sites": "constant",
    "rival_vendors": "constant",
    "boiler_setpoints": "level",
    "checkout_variants": "level",
    "subject_lines": "constant",
    "landing_level": "level",
}

BEST: dict[str, Literal["constant", "level", "moves"]] = {name: FIXED_BEST.get(name, "moves") for name in REGISTRY}


def rounded(values: Floats) -> bytes:
    """Each column (each last index) to 20 bits below its largest size, so that the last digits do not matter."""
    flat = values.reshape(-1, values.shape[-1])
    _, exponent = np.frexp(np.abs(flat).max(axis=0) * (1.0 + 1e-9))
    whole: npt.NDArray[np.int32] = np.rint(np.ldexp(flat, 20 - exponent)).astype("<i4")
    return whole.tobytes()


def digest() -> str:
    """One hash over the means, arms and rewards of every kind at 200 rounds and seed 0."""
    total = hashlib.sha256()
    for name in sorted(REGISTRY):
        stream = REGISTRY[name][0](0, 200)
        total.update(name.encode())
        for part in (stream.means, stream.arms, stream.rewards):
            total.update(str(part.shape).encode() + rounded(part))
    return total.hexdigest()


def behaviour(means: Floats) -> str:
    """What the best arm of these means does: constant, level or moves."""
    best = means.argmax(axis=1)
    if (best != best[0]).any():
        return "moves"
    return "constant" if (means[:, best[0]] == means[0, best[0]]).all() else "level"


def check(T: int = 600, seeds: tuple[int, ...] = (0, 1, 2)) -> None:
    """Assert that every kind keeps the promises of the interface."""
    assert set(BEST) == set(REGISTRY) and set(FIXED_BEST) <= set(REGISTRY)
    for name, (make, rewards, description) in REGISTRY.items():
        assert description and "\n" not in description, name
        streams = [make(seed, T) for seed in seeds]
        shape = streams[0].arms.shape
        for stream in streams:
            n, d = stream.arms.shape[-2:]
            assert stream.arms.shape == shape and shape in ((n, d), (T, n, d)), name
            assert stream.means.shape == stream.rewards.shape == (T, n), name
            for part in stream:
                assert part.dtype == np.float64 and np.isfinite(part).all(), name
            assert 6000 * n * d * 8 < 1e9 and n >= 2, name
            assert float((stream.means.max(axis=1) - stream.means.mean(axis=1)).mean()) > 0.0, name
            assert behaviour(stream.means) == BEST[name], name
            if rewards == "clicks":
                assert np.isin(stream.rewards, (0.0, 1.0)).all(), name
                assert stream.means.min() >= 0.0 and stream.means.max() <= 1.0, name
        again = make(seeds[0], T)
        assert all(np.array_equal(a, b) for a, b in zip(streams[0], again, strict=True)), name
        assert not np.array_equal(streams[0].means, streams[1].means), name
        assert make(seeds[0], 2 * T).arms.shape[-2:] == shape[-2:], name


if __name__ == "__main__":
    check()
    print(digest())
