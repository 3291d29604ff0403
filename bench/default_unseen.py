"""Problems for the default policy, written by an author who did not know what the default was tuned on.

`REGISTRY` maps a name to (function, "values" or "clicks", description). A function takes a seed and a horizon T and
returns a `Stream`. The same seed gives the same stream, so policies are compared on the same rewards.
Times of change are fractions of T: a short stream has the same shape as a long one.

`python bench/default_unseen.py` runs `check()` and prints `digest()`. A result from these kinds names the digest.
The file is long because the digest covers one file: a kind cannot change without a change of the digest.
Generation uses no BLAS, and the digest rounds to 20 bits (6 decimal digits), so that it is the same on other machines.
"""

from __future__ import annotations

import hashlib
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.random import PCG64, Generator
from numpy.typing import NDArray

Array = NDArray[np.float64]
HORIZON = 6000


class Stream(NamedTuple):
    """One problem: what each arm looks like, what it is worth, and what playing it would give.

    `arms` is (n, d) if the arms stay and (T, n, d) if they change. `means` and `rewards` are (T, n).
    """

    arms: Array
    means: Array
    rewards: Array


Kind = Callable[[int, int], Stream]
REGISTRY: dict[str, tuple[Kind, str, str]] = {}
BEST: dict[str, str] = {}
"""What the best arm does in each kind.

- "constant": one arm is the best in every round, and its mean does not change.
- "level": one arm is the best in every round, and its mean changes.
- "moves": the best arm changes.
"""


def kind(rewards: str, best: str) -> Callable[[Callable[[Generator, int], Stream]], Callable[..., Stream]]:
    """Register a kind under its function's name; the docstring is its description."""

    def register(draw: Callable[[Generator, int], Stream]) -> Callable[..., Stream]:
        name = draw.__name__

        def stream(seed: int, T: int = HORIZON) -> Stream:
            return draw(Generator(PCG64([seed, zlib.crc32(name.encode())])), T)

        stream.__name__ = stream.__qualname__ = name  # so that a process pool can pickle it
        stream.__doc__ = draw.__doc__
        REGISTRY[name] = (stream, rewards, draw.__doc__ or "")
        BEST[name] = best
        return stream

    return register


# Pieces shared by the kinds.


def dot(arms: Array, theta: Array) -> Array:
    """Means (T, n) of arms (n, d) or (T, n, d) under parameters (T, d), summed feature by feature without BLAS."""
    means = np.zeros((len(theta), arms.shape[-2]))
    for j in range(arms.shape[-1]):
        means += arms[..., j] * theta[:, j, None]
    return means


def still(theta: Array, T: int) -> Array:
    """The same parameter in every round: (T, d)."""
    return np.tile(theta, (T, 1))


def ages(T: int) -> Array:
    """The fraction of the horizon that has passed: (T,)."""
    return np.arange(T) / T


def wave(T: int, cycles: float, phase: float = 0.0) -> Array:
    """A sine with that many cycles in the horizon: (T,)."""
    return np.sin(2 * np.pi * (cycles * ages(T) + phase))


def walk(rng: Generator, T: int, d: int, total: float) -> Array:
    """A Gaussian walk from 0 whose standard deviation at the end is `total`: (T, d)."""
    return np.cumsum(rng.standard_normal((T, d)), axis=0) * (total / T**0.5)


def segments(rng: Generator, T: int, changes: int) -> NDArray[np.intp]:
    """The number of changes so far; the changes are at random times that keep a distance: (T,)."""
    at = (np.arange(1, changes + 1) + 0.6 * (rng.random(changes) - 0.5)) / (changes + 1)
    return (ages(T)[:, None] >= at).sum(axis=1)


def jumps(rng: Generator, T: int, d: int, changes: int, scale: float) -> Array:
    """A parameter that is redrawn at each change: (T, d)."""
    return (rng.standard_normal((changes + 1, d)) * scale)[segments(rng, T, changes)]


def shares(rng: Generator, T: int, total: float, constant: float) -> Array:
    """A constant and four weights >= 0 of fixed sum, which move in a straight line between two draws: (T, 5)."""
    weights = rng.standard_exponential((2, 4)) ** 2
    weights *= total / weights.sum(axis=1, keepdims=True)
    moving = weights[0] + ages(T)[:, None] * (weights[1] - weights[0])
    return np.concatenate([np.full((T, 1), constant), moving], axis=1)


def autoregression(rng: Generator, T: int, lengths: float) -> Array:
    """A stationary AR(1) series with unit variance; the horizon has that many correlation lengths: (T,)."""
    rho = 1 - lengths / T
    steps = rng.standard_normal(T)
    for t in range(1, T):
        steps[t] = rho * steps[t - 1] + (1 - rho * rho) ** 0.5 * steps[t]
    return steps


def lives(rng: Generator, T: int, n: int, life: float) -> tuple[NDArray[np.intp], Array]:
    """Slots whose item is replaced after a geometric life: the item's number within its slot, and its age; (T, n)."""
    new = rng.random((T, n)) < 1 / life
    new[0] = False
    rounds = np.arange(T)[:, None]
    born = np.maximum.accumulate(np.where(new, rounds, 0), axis=0)
    return np.cumsum(new, axis=0), (rounds - born).astype(float)


def turnover(rng: Generator, item: NDArray[np.intp], d: int) -> Array:
    """Gaussian features that belong to the items of `lives`: (T, n, d)."""
    n = item.shape[1]
    return rng.standard_normal((int(item.max()) + 1, n, d))[item, np.arange(n)]


def words(rng: Generator, T: int, n: int, d: int, count: int) -> Array:
    """Bags of words: each arm draws `count` words, low numbers more often: (T, n, d) of 0 and 1."""
    arms = np.zeros((T, n, d))
    for _ in range(count):
        word = np.minimum((d * rng.random((T, n)) ** 1.5).astype(np.intp), d - 1)
        np.put_along_axis(arms, word[..., None], 1.0, axis=2)
    return arms


def crosses(context: Array, n: int) -> Array:
    """Context (T, c) times the one-hot of n items: (T, n, n c). The parameter holds a block of c for each item."""
    T, c = context.shape
    arms = np.zeros((T, n, n * c))
    for a in range(n):
        arms[:, a, a * c : (a + 1) * c] = context
    return arms


def sigmoid(z: Array) -> Array:
    return 1 / (1 + np.exp(-z))


def values(rng: Generator, arms: Array, means: Array, noise: float | Array) -> Stream:
    """Rewards with Gaussian noise of that standard deviation."""
    return Stream(arms, means, means + noise * rng.standard_normal(means.shape))


def clicks(rng: Generator, arms: Array, means: Array) -> Stream:
    """Rewards 1 with the probability `means`, and 0 otherwise."""
    return Stream(arms, means, (rng.random(means.shape) < means).astype(float))


# Real-valued rewards: worlds that stay.


@kind("values", "moves")
def courier_raw_units(rng: Generator, T: int) -> Stream:
    """Courier assignment: metres, grams, seconds and shares from 5e-4 to 1e5 as they stand in the table; still."""
    units = np.array([1e5, 3e3, 1e2, 1.0, 1e-2, 5e-4])
    arms = rng.standard_exponential((T, 12, 6)) * units
    theta = rng.choice([-1.0, 1.0], 6) * (0.4 + rng.random(6)) / units
    return values(rng, arms, dot(arms, still(theta, T)), 6.0)


@kind("values", "moves")
def assay_sparse(rng: Generator, T: int) -> Stream:
    """Assay choice in a laboratory: 60 dense features, of which three matter; still."""
    arms = rng.standard_normal((T, 12, 60))
    theta = np.zeros(60)
    theta[rng.permutation(60)[:3]] = rng.choice([-1.0, 1.0], 3) * (0.6 + 0.4 * rng.random(3))
    return values(rng, arms, dot(arms, still(theta, T)), 1.0)


@kind("values", "constant")
def catalogue_of_200(rng: Generator, T: int) -> Stream:
    """A catalogue of 200 items with six fixed features, small differences at the top and much noise; still."""
    arms = rng.standard_normal((200, 6))
    return values(rng, arms, dot(arms, still(0.3 * rng.standard_normal(6), T)), 3.0)


@kind("values", "constant")
def forty_bins(rng: Generator, T: int) -> Stream:
    """Picking from 40 bins that are known only by their number (one-hot), without any structure; still."""
    level = rng.permutation(np.linspace(0.0, 1.0, 40) ** 2)
    return values(rng, np.eye(40), np.tile(level, (T, 1)), 0.6)


@kind("values", "moves")
def latency_heavy_tails(rng: Generator, T: int) -> Stream:
    """Replica choice by negative latency in ms: about -200, with Student noise of 2.2 degrees of freedom; still."""
    arms = rng.standard_normal((T, 8, 6))
    arms[..., 0] = 1.0
    theta = 3.0 * rng.standard_normal(6)
    theta[0] = -200.0
    means = dot(arms, still(theta, T))
    return Stream(arms, means, means + 12.0 * rng.standard_t(2.2, means.shape))


@kind("values", "constant")
def funds_uneven_risk(rng: Generator, T: int) -> Stream:
    """Fund choice: the best of six is ten times as noisy as the second best, which looks safer; still."""
    order = rng.permutation(6)
    level = np.array([1.0, 0.7, 0.4, 0.3, 0.1, -0.2])[order]
    risk = np.array([2.0, 0.2, 0.2, 1.0, 0.2, 3.0])[order]
    return values(rng, np.eye(6), np.tile(level, (T, 1)), risk)


@kind("values", "moves")
def crops_in_one_weather(rng: Generator, T: int) -> Stream:
    """Field treatments: the noise is weather, the same for all arms and correlated over hundreds of rounds; still."""
    arms = rng.standard_normal((T, 8, 5))
    means = dot(arms, still(0.25 * rng.standard_normal(5) + 0.1, T))
    weather = 2.0 * autoregression(rng, T, 60)
    return Stream(arms, means, means + weather[:, None] + rng.standard_normal(means.shape))


@kind("values", "moves")
def cost_without_constant(rng: Generator, T: int) -> Stream:
    """Cost per shipment near -15, while the table has centred features and no column of ones; still."""
    arms = rng.standard_normal((T, 10, 6))
    return values(rng, arms, dot(arms, still(0.7 * rng.standard_normal(6), T)) - 15.0, 4.0)


@kind("values", "moves")
def whale_accounts(rng: Generator, T: int) -> Stream:
    """Sales calls: lognormal account sizes, so that few rounds with a giant account carry most of the gain; still."""
    arms = np.exp(1.2 * rng.standard_normal((T, 10, 5)))
    theta = rng.permutation(np.array([1.0, 0.5, 0.2, -0.3, -0.6])) * (0.7 + 0.6 * rng.random())
    return values(rng, arms, dot(arms, still(theta, T)), 20.0)


@kind("values", "moves")
def menu_with_pairs(rng: Generator, T: int) -> Stream:
    """Set menus: twelve yes/no dishes, and three pairs that go together, which a linear model misses; still."""
    arms = (rng.random((T, 10, 12)) < 0.4).astype(float)
    means = dot(arms, still(0.6 * rng.standard_normal(12), T))
    for i, j in rng.permutation(12)[:6].reshape(3, 2):
        means += 0.7 * arms[..., i] * arms[..., j]
    return values(rng, arms, means, 0.8)


# Real-valued rewards: sudden changes.


@kind("values", "moves")
def supplier_turnaround(rng: Generator, T: int) -> Stream:
    """Eight suppliers (one-hot), quiet for 80% of the time; then the worst, which no greedy player tries, is best."""
    order = rng.permutation(8)
    means = np.tile(np.linspace(0.2, 1.0, 8)[order], (T, 1))
    means[ages(T) >= 0.8, np.flatnonzero(order == 0)[0]] = 1.8
    return values(rng, np.eye(8), means, 0.5)


@kind("values", "moves")
def stores_by_weekday(rng: Generator, T: int) -> Stream:
    """Four offers, and a context that repeats every seven rounds (weekday); after half, two weekdays change."""
    table = rng.standard_normal((2, 7, 4))
    table[1, 2:] = table[0, 2:]
    context = np.eye(7)[np.arange(T) % 7]
    late = (ages(T) >= 0.5).astype(np.intp)
    theta = table.transpose(0, 2, 1).reshape(2, 28)[late]
    arms = crosses(context, 4)
    return values(rng, arms, dot(arms, theta), 0.8)


@kind("values", "moves")
def router_regimes(rng: Generator, T: int) -> Stream:
    """Route choice: the network is rewired twelve times, and everything learnt is void each time."""
    arms = rng.standard_normal((T, 20, 4))
    return values(rng, arms, dot(arms, jumps(rng, T, 4, 12, 0.7)), 0.7)


@kind("values", "moves")
def patch_of_two_weights(rng: Generator, T: int) -> Stream:
    """A pricing engine with 30 inputs: patches change two of the weights, and the other 28 stay."""
    arms = rng.standard_normal((T, 10, 30))
    theta = still(0.25 * rng.standard_normal(30), T)
    theta[:, rng.permutation(30)[:2]] = jumps(rng, T, 2, 4, 1.2)
    return values(rng, arms, dot(arms, theta), 1.0)


@kind("values", "moves")
def compiler_flags(rng: Generator, T: int) -> Stream:
    """Compiler flags for a build farm: 40 switches, no noise at all, and a new workload five times."""
    arms = (rng.random((T, 25, 40)) < 0.5).astype(float)
    means = dot(arms, jumps(rng, T, 40, 5, 0.3))
    return Stream(arms, means, means.copy())


@kind("values", "moves")
def sensor_that_ages(rng: Generator, T: int) -> Stream:
    """Machine settings read by a sensor whose noise grows thirtyfold; the process changes once, early."""
    arms = rng.standard_normal((T, 8, 6))
    means = dot(arms, jumps(rng, T, 6, 1, 0.7))
    return values(rng, arms, means, (0.1 * 30.0 ** ages(T))[:, None])


@kind("values", "moves")
def star_ratings(rng: Generator, T: int) -> Stream:
    """Ratings of one to five stars (ordered logit, so not quite linear); the audience changes twice."""
    arms = rng.standard_normal((T, 10, 8))
    taste = dot(arms, jumps(rng, T, 8, 2, 0.5))
    u = rng.random(taste.shape)
    felt = taste + np.log(u / (1 - u))
    means, stars = np.ones_like(taste), np.ones_like(taste)
    for cut in (-3.0, -2.0, -0.5, 1.5):
        means += sigmoid(taste - cut)
        stars += felt > cut
    return Stream(arms, means, stars)


@kind("values", "moves")
def micro_joules(rng: Generator, T: int) -> Stream:
    """Energy saved by a radio mode: rewards near 1e-7, features near 1e-3, and three changes of the channel."""
    arms = 1e-3 * rng.standard_normal((T, 6, 4))
    return values(rng, arms, dot(arms, jumps(rng, T, 4, 3, 1e-4)), 1e-7)


@kind("values", "moves")
def promotion_wakes(rng: Generator, T: int) -> Stream:
    """A flag that meant nothing for half of the time becomes the strongest feature (a promotion starts)."""
    arms = rng.standard_normal((T, 8, 7))
    arms[..., 6] = rng.random((T, 8)) < 0.2
    theta = still(0.3 * rng.standard_normal(7), T)
    theta[:, 6] = np.where(ages(T) < 0.5, 0.0, 2.0)
    return values(rng, arms, dot(arms, theta), 1.0)


@kind("values", "moves")
def pipeline_changes_units(rng: Generator, T: int) -> Stream:
    """A release of the data pipeline writes milliseconds for seconds; the world itself stays."""
    arms = rng.standard_normal((T, 8, 5))
    theta = still(rng.choice([-1.0, 1.0], 5) * (0.3 + 0.5 * rng.random(5)), T)
    late = ages(T) >= 0.5
    arms[late, :, 2] *= 1000.0
    theta[late, 2] /= 1000.0
    return values(rng, arms, dot(arms, theta), 1.0)


@kind("values", "moves")
def two_variants_swap(rng: Generator, T: int) -> Stream:
    """An A/B test with a gap of a sixth of the noise, and the better variant changes once."""
    first = int(rng.integers(2))
    gap = np.where(ages(T) < 0.35 + 0.2 * rng.random(), 0.16, -0.16)
    means = np.zeros((T, 2))
    means[:, first] = gap
    return values(rng, np.eye(2), means, 1.0)


@kind("values", "moves")
def two_regimes_recur(rng: Generator, T: int) -> Stream:
    """Weekday and holiday demand: two worlds take turns in spells of unequal length, ten fixed arms."""
    arms = rng.standard_normal((10, 6))
    worlds = 0.5 * rng.standard_normal((2, 6))
    worlds[1] -= 0.7 * worlds[0]
    return values(rng, arms, dot(arms, worlds[segments(rng, T, 7) % 2]), 0.7)


# Real-valued rewards: trends, walks and seasons.


@kind("values", "moves")
def battery_spread(rng: Generator, T: int) -> Stream:
    """A battery that charges or discharges: one feature (kW), and a price whose sign swings and wanders."""
    arms = np.linspace(-50.0, 50.0, 5)[:, None]
    price = wave(T, 8, rng.random()) + 0.5 * autoregression(rng, T, 60)
    return values(rng, arms, dot(arms, 0.04 * price[:, None]), 1.5)


@kind("values", "moves")
def slow_riser(rng: Generator, T: int) -> Stream:
    """Twenty sales regions (one-hot); one that was worthless climbs slowly past all others, unseen by greedy play."""
    order = rng.permutation(20)
    means = np.tile(np.append(0.8 * rng.random(18), (1.0, 0.0))[order], (T, 1))
    means[:, np.flatnonzero(order == 19)[0]] = 2.2 * np.clip((ages(T) - 0.2) / 0.4, 0.0, 1.0)
    return values(rng, np.eye(20), means, 0.5)


@kind("values", "moves")
def collinear_sensors(rng: Generator, T: int) -> Stream:
    """Twenty sensor readings that are two factors, small errors, exact copies and a sum; three weights wander."""
    loading = rng.standard_normal((2, 20))
    factors = rng.standard_normal((T, 15, 2))
    arms = factors[..., :1] * loading[0] + factors[..., 1:] * loading[1] + 0.1 * rng.standard_normal((T, 15, 20))
    arms[..., 18] = arms[..., 0]
    arms[..., 19] = arms[..., 1] + arms[..., 2]
    theta = still(0.1 * rng.standard_normal(20), T)
    theta[:, :3] += 0.2 * rng.standard_normal(3) + walk(rng, T, 3, 0.5)
    return values(rng, arms, dot(arms, theta), 1.0)


@kind("values", "moves")
def survey_dummies(rng: Generator, T: int) -> Stream:
    """Three categories as full dummies beside a constant (rank-deficient); one category is seasonal."""
    level = [rng.integers(size, size=(T, 15)) for size in (4, 5, 6)]
    arms = np.concatenate([np.ones((T, 15, 1)), *(np.eye(s)[i] for s, i in zip((4, 5, 6), level, strict=True))], axis=2)
    theta = still(0.4 * rng.standard_normal(16), T)
    for j in range(5):
        theta[:, 5 + j] += 0.8 * wave(T, 3, j / 5)
    return values(rng, arms, dot(arms, theta), 0.8)


@kind("values", "moves")
def listings_turn_over(rng: Generator, T: int) -> Stream:
    """A shop window with twelve slots: listings are sold and replaced, and buyers' taste wanders."""
    item, _ = lives(rng, T, 12, T / 15)
    arms = turnover(rng, item, 6)
    return values(rng, arms, dot(arms, 0.5 * rng.standard_normal(6) + walk(rng, T, 6, 0.8)), 1.0)


@kind("values", "moves")
def day_and_season(rng: Generator, T: int) -> Stream:
    """Playlist choice: two tastes follow a fast cycle (the day), two a slow one (the season), one stays."""
    arms = rng.standard_normal((T, 10, 5))
    theta = still(0.4 * rng.standard_normal(5), T)
    for j, cycles in enumerate((30, 30, 4, 4)):
        theta[:, j] += 0.7 * wave(T, cycles, rng.random())
    return values(rng, arms, dot(arms, theta), 0.5)


@kind("values", "moves")
def tools_wear(rng: Generator, T: int) -> Stream:
    """Eight fixed cutting settings: a straight trend from the first day to the last reverses their order."""
    arms = rng.standard_normal((8, 4))
    arms[:, 0] = 1.0
    start = 0.6 * rng.standard_normal(4)
    end = -start + 0.2 * rng.standard_normal(4)
    start[0], end[0] = 5.0, 2.0
    return values(rng, arms, dot(arms, start + ages(T)[:, None] * (end - start)), 0.8)


@kind("values", "moves")
def taste_walks(rng: Generator, T: int) -> Stream:
    """Film suggestions: ten tastes wander without pause, and there is no level to return to."""
    arms = rng.standard_normal((T, 10, 10))
    return values(rng, arms, dot(arms, 0.3 * rng.standard_normal(10) + walk(rng, T, 10, 1.0)), 2.0)


@kind("values", "level")
def traffic_level(rng: Generator, T: int) -> Stream:
    """Ten fixed layouts: the day's traffic moves all of them by far more than they differ; no column of ones."""
    arms = rng.standard_normal((10, 4))
    level = 6.0 * wave(T, 5, rng.random()) + walk(rng, T, 1, 4.0)[:, 0]
    return values(rng, arms, dot(arms, still(0.4 * rng.standard_normal(4), T)) + level[:, None], 0.6)


@kind("values", "level")
def volume_multiplies(rng: Generator, T: int) -> Stream:
    """Twelve fixed bids: order volume multiplies rewards and noise by 0.3 to 3, and the order of arms stays."""
    arms = rng.random((12, 5))
    arms[:, 0] = 1.0
    volume = np.exp(1.1 * wave(T, 8, rng.random()))[:, None]
    theta = rng.standard_normal(5)
    theta[0] = 2.5 + np.abs(theta[1:]).sum()
    return values(rng, arms, volume * dot(arms, still(theta, T)), volume)


@kind("values", "moves")
def basket_money(rng: Generator, T: int) -> Stream:
    """Basket value: three of four visits buy nothing, the rest is lognormal; the weights shift slowly."""
    arms = rng.random((T, 6, 5))
    arms[..., 0] = 1.0
    means = dot(arms, shares(rng, T, 60.0, 3.0))
    buys = rng.random(means.shape) < 0.25
    return Stream(arms, means, means * buys * 4.0 * np.exp(0.7 * rng.standard_normal(means.shape) - 0.245))


@kind("values", "moves")
def revenue_in_yen(rng: Generator, T: int) -> Stream:
    """Branch campaigns: rewards near 1e8 with an offset, features are head counts near 1e4; weights wander."""
    arms = np.floor(1e4 * np.exp(0.4 * rng.standard_normal((T, 8, 5))))
    theta = 1e3 * (rng.standard_normal(5) + walk(rng, T, 5, 1.0))
    return values(rng, arms, dot(arms, theta) + 5e7, 3e7)


@kind("values", "moves")
def users_by_items(rng: Generator, T: int) -> Stream:
    """Nine items crossed with six user features (54 columns): three items wander and six stay."""
    common = rng.standard_normal((T, 1))
    user = 0.6 * common + 0.8 * rng.standard_normal((T, 6))
    user[:, 0] = 1.0
    theta = still(0.4 * rng.standard_normal(54), T)
    theta[:, :18] += walk(rng, T, 18, 0.6)
    arms = crosses(user, 9)
    return values(rng, arms, dot(arms, theta), 0.7)


@kind("values", "moves")
def ad_spend_saturates(rng: Generator, T: int) -> Stream:
    """Fifteen fixed budgets over three channels: falling returns (not linear), and efficiency changes twice."""
    arms = 30.0 * rng.standard_exponential((15, 3))
    rate = rng.permutation(np.array([0.2, 1.0, 5.0]))[(np.arange(3) + segments(rng, T, 2)[:, None]) % 3] / 80.0
    profit = np.zeros((T, 15))
    for j in range(3):
        profit += 40.0 * (1 - np.exp(-arms[:, j] * rate[:, j, None])) - 0.25 * arms[:, j]
    return values(rng, arms, profit, 8.0)


@kind("values", "moves")
def fresh_news(rng: Generator, T: int) -> Stream:
    """Reading time: topic dummies and a freshness that decays; articles come and go, topics change four times."""
    item, age = lives(rng, T, 10, T / 30)
    arms = np.zeros((T, 10, 6))
    topic = rng.integers(5, size=(int(item.max()) + 1, 10))[item, np.arange(10)]
    arms[..., :5] = np.eye(5)[topic]
    arms[..., 5] = np.exp(-age / (T / 60))
    theta = jumps(rng, T, 6, 4, 0.8)
    theta[:, 5] = 1.0
    return values(rng, arms, dot(arms, theta), 0.8)


@kind("values", "moves")
def price_points(rng: Generator, T: int) -> Stream:
    """Eleven prices with features (p, p squared): revenue is linear in them, and demand swings three times."""
    price = np.linspace(5.0, 15.0, 11)
    demand = 14.0 + 5.0 * wave(T, 3, rng.random())
    arms = np.stack([price, price**2], axis=1)
    return values(rng, arms, dot(arms, np.stack([demand, np.full(T, -0.7)], axis=1)), 12.0)


@kind("values", "moves")
def breaking_words(rng: Generator, T: int) -> Stream:
    """Headlines as bags of 60 words: six words in turn are hot for an eighth of the time and then cool down."""
    arms = words(rng, T, 18, 60, 3)
    theta = still(0.3 * rng.standard_normal(60), T)
    for hot, start in zip(rng.permutation(30)[:6], (rng.random(6) + np.arange(6)) / 7, strict=True):
        theta[(ages(T) >= start) & (ages(T) < start + 0.125), hot] += 1.8
    return values(rng, arms, dot(arms, theta), 0.8)


@kind("values", "moves")
def marketplace_of_troubles(rng: Generator, T: int) -> Stream:
    """A marketplace with raw units, turnover, a swinging level, heavy tails and two sudden changes at once."""
    units = np.array([1e4, 50.0, 1.0, 0.1, 1e-3])
    item, _ = lives(rng, T, 10, T / 40)
    arms = (1.0 + 0.5 * turnover(rng, item, 5)) * units
    level = 200.0 + 4.0 * wave(T, 6, rng.random())
    means = dot(arms, jumps(rng, T, 5, 2, 1.2) / units) + level[:, None]
    return Stream(arms, means, means + 0.6 * rng.standard_t(3.0, means.shape))


# Clicks: worlds that stay.


@kind("clicks", "constant")
def banner_one_percent(rng: Generator, T: int) -> Stream:
    """Ten banners (one-hot) with click rates near 1%, one of them at 4%; still."""
    rate = 0.005 + 0.01 * rng.random(10)
    rate[rng.integers(10)] = 0.04
    return clicks(rng, np.eye(10), np.tile(rate, (T, 1)))


@kind("clicks", "moves")
def rare_purchase_flags(rng: Generator, T: int) -> Stream:
    """Purchases at a base rate of 0.7%: twelve rare flags, of which three raise the rate strongly; still."""
    arms = np.ones((T, 10, 13))
    arms[..., 1:] = rng.random((T, 10, 12)) < 0.15
    theta = 0.2 * rng.standard_normal(13)
    theta[1 + rng.permutation(12)[:3]] = 2.3
    theta[0] = -5.0
    return clicks(rng, arms, sigmoid(dot(arms, still(theta, T))))


@kind("clicks", "moves")
def subject_lines(rng: Generator, T: int) -> Stream:
    """Opened mails: subject lines as bags of 40 words, four words each, without a constant; still."""
    arms = words(rng, T, 15, 40, 4)
    return clicks(rng, arms, sigmoid(dot(arms, still(0.7 * rng.standard_normal(40), T)) - 1.5))


@kind("clicks", "moves")
def leads_raw_units(rng: Generator, T: int) -> Stream:
    """Calls to leads: income, age, distance and a share in raw units with a constant; answers near 20%; still."""
    units = np.array([1.0, 4e4, 40.0, 3e3, 0.05])
    arms = np.exp(0.5 * rng.standard_normal((T, 8, 5))) * units
    arms[..., 0] = 1.0
    theta = rng.choice([-1.0, 1.0], 5) * (0.5 + 0.5 * rng.random(5))
    theta[0] = -1.3 - theta[1:].sum()
    return clicks(rng, arms, sigmoid(dot(arms, still(theta / units, T))))


# Clicks: sudden changes.


@kind("clicks", "moves")
def renewals_near_97_percent(rng: Generator, T: int) -> Stream:
    """Renewal offers accepted at 97%: all gain is in the last few percent, and the weights change once."""
    arms = rng.standard_normal((T, 8, 5))
    arms[..., 0] = 1.0
    theta = jumps(rng, T, 5, 1, 0.7)
    theta[:, 0] = 3.5
    return clicks(rng, arms, sigmoid(dot(arms, theta)))


@kind("clicks", "moves")
def near_certain_answers(rng: Generator, T: int) -> Stream:
    """Checks that pass or fail almost surely: probabilities near 0 and 1, and three changes."""
    arms = rng.standard_normal((T, 4, 8))
    return clicks(rng, arms, sigmoid(dot(arms, jumps(rng, T, 8, 3, 1.6)) - 2.5))


@kind("clicks", "moves")
def fashion_jumps(rng: Generator, T: int) -> Stream:
    """Twenty fixed outfits with five features: the fashion changes five times."""
    arms = rng.standard_normal((20, 5))
    return clicks(rng, arms, sigmoid(dot(arms, jumps(rng, T, 5, 5, 0.6)) - 1.0))


@kind("clicks", "moves")
def segments_by_offers(rng: Generator, T: int) -> Stream:
    """Eight offers crossed with four customer segments (32 one-hot columns): two offers change at 60% of the time."""
    table = rng.standard_normal((2, 8, 4)) - 1.5
    table[1, 2:] = table[0, 2:]
    table[1, :2] += 1.0
    arms = crosses(np.eye(4)[rng.integers(4, size=T)], 8)
    theta = table.reshape(2, 32)[(ages(T) >= 0.6).astype(np.intp)]
    return clicks(rng, arms, sigmoid(dot(arms, theta)))


@kind("clicks", "moves")
def worst_comes_back(rng: Generator, T: int) -> Stream:
    """Eight channels (one-hot): the worst is repaired at 60% of the time and is then the best by far."""
    order = rng.permutation(8)
    means = np.tile(np.linspace(0.04, 0.3, 8)[order], (T, 1))
    means[ages(T) >= 0.6, np.flatnonzero(order == 0)[0]] = 0.55
    return clicks(rng, np.eye(8), means)


@kind("clicks", "level")
def outages(rng: Generator, T: int) -> Stream:
    """Six fixed buttons: five outages of the checkout take all rates to nearly zero, and the order stays."""
    arms = np.concatenate([np.ones((6, 1)), rng.standard_normal((6, 3))], axis=1)
    theta = 0.6 * rng.standard_normal(4)
    theta[0] = -1.0
    up = np.ones(T)
    for start in (np.arange(5) + 0.8 * rng.random(5)) / 5:
        up[(ages(T) >= start) & (ages(T) < start + 0.03)] = 0.02
    return clicks(rng, arms, up[:, None] * sigmoid(dot(arms, still(theta, T))))


@kind("clicks", "moves")
def one_context_flips(rng: Generator, T: int) -> Stream:
    """Three pages for two kinds of visitors: for the rarer kind alone, the best page changes twice."""
    visitor = (rng.random(T) < 0.3).astype(np.intp)
    rare = np.array([0.5, 0.2, 0.1])[(np.arange(3) + segments(rng, T, 2)[:, None]) % 3]
    table = np.stack([np.tile(rng.permutation(np.array([0.35, 0.25, 0.15])), (T, 1)), rare])
    return clicks(rng, crosses(np.eye(2)[visitor], 3), table[visitor, np.arange(T)])


@kind("clicks", "moves")
def discount_depth(rng: Generator, T: int) -> Stream:
    """Six discounts as the only feature, in percent: the effect of depth changes its sign twice; no constant."""
    arms = np.linspace(-25.0, 25.0, 6)[:, None]
    slope = np.where(segments(rng, T, 2) % 2 == rng.integers(2), 0.03, -0.03)
    return clicks(rng, arms, sigmoid(dot(arms, slope[:, None]) - 1.0))


# Clicks: trends, walks and seasons.


@kind("clicks", "moves")
def night_and_day_rate(rng: Generator, T: int) -> Stream:
    """Push messages: the base rate swings between 5% and 70% six times, and the weights stay; no constant."""
    arms = rng.standard_normal((T, 10, 6))
    base = 1.9 * wave(T, 6, rng.random()) - 1.0
    return clicks(rng, arms, sigmoid(dot(arms, still(0.4 * rng.standard_normal(6), T)) + base[:, None]))


@kind("clicks", "moves")
def news_with_new_items(rng: Generator, T: int) -> Stream:
    """A front page: topic dummies, an item's freshness and a log age; items come and go, and topics wander."""
    item, age = lives(rng, T, 12, T / 25)
    topic = rng.integers(6, size=(int(item.max()) + 1, 12))[item, np.arange(12)]
    arms = np.concatenate([np.eye(6)[topic], np.exp(-age / (T / 50))[..., None], np.log1p(age)[..., None]], axis=2)
    theta = 0.6 * rng.standard_normal(8) + walk(rng, T, 8, 1.2)
    theta[:, 6], theta[:, 7] = 1.2, -0.1
    return clicks(rng, arms, sigmoid(dot(arms, theta) - 2.0))


@kind("clicks", "moves")
def coupons_linear_rate(rng: Generator, T: int) -> Stream:
    """Coupons whose redemption rate is linear in four shares (no logit); the weights shift over the whole time."""
    arms = rng.random((T, 7, 5))
    arms[..., 0] = 1.0
    return clicks(rng, arms, dot(arms, shares(rng, T, 0.6, 0.03)))


@kind("clicks", "moves")
def ad_fatigue(rng: Generator, T: int) -> Stream:
    """Twelve adverts (one-hot): the three best wear out at different speeds, and the others stay."""
    rate = 0.05 + 0.10 * np.arange(12) / 11
    means = np.tile(rate, (T, 1))
    for a, (top, half) in enumerate(((0.40, 0.15), (0.33, 0.3), (0.26, 0.7))):
        means[:, a] = 0.01 + top * 0.5 ** (ages(T) / half)
    return clicks(rng, np.eye(12), means[:, rng.permutation(12)])


@kind("clicks", "moves")
def embeddings_of_200(rng: Generator, T: int) -> Stream:
    """A shelf of 200 items with fixed embeddings of 12 numbers, base rate near 5%; the taste turns slowly."""
    arms = 0.5 * rng.standard_normal((200, 12))
    first, second = 0.5 * rng.standard_normal((2, 12))
    turn = np.pi * ages(T)[:, None]
    theta = np.cos(turn) * first + np.sin(turn) * second
    return clicks(rng, arms, sigmoid(dot(arms, theta) - 3.0))


@kind("clicks", "moves")
def hidden_audiences(rng: Generator, T: int) -> Stream:
    """Ten fixed trailers: two audiences that the log does not tell apart, and the share of one falls from 95% to 5%."""
    arms = rng.standard_normal((10, 6))
    taste = 0.7 * rng.standard_normal((2, 6))
    taste[1] = 0.5 * taste[1] - taste[0]
    share = (0.95 - 0.9 * ages(T))[:, None]
    a, b = (sigmoid(dot(arms, still(t, T)) - 1.0) for t in taste)
    return clicks(rng, arms, share * a + (1 - share) * b)


@kind("clicks", "moves")
def checkout_of_troubles(rng: Generator, T: int) -> Stream:
    """Cross-selling with a 4% base, raw units, turnover, a swinging base rate and one sudden change at once."""
    units = np.array([300.0, 1e-2, 1.0, 5e4])
    item, _ = lives(rng, T, 9, T / 30)
    arms = (2.0 + turnover(rng, item, 4)) * units
    theta = jumps(rng, T, 4, 1, 0.8)
    base = -3.0 - 2.0 * theta.sum(axis=1) + 0.8 * wave(T, 5, rng.random())
    return clicks(rng, arms, sigmoid(dot(arms, theta / units) + base[:, None]))


# Validation.


def behaviour(means: Array) -> str:
    """What the best arm does, in the words of `BEST`."""
    top = means.max(axis=1)
    if not (means == top[:, None]).all(axis=0).any():
        return "moves"
    return "constant" if np.ptp(top) == 0.0 else "level"


def excess(errors: Array) -> float:
    """How many standard errors the mean of (T,) is away from 0; from 20 batches, so correlation in time is allowed."""
    batches = np.array([part.mean() for part in np.array_split(errors, 20)])
    return abs(float(batches.mean())) / (float(batches.std(ddof=1)) / 20**0.5 or 1.0)


def faults(stream: Stream, rewards: str, best: str, T: int) -> list[str]:
    """What is wrong with a stream of that kind of rewards and that behaviour of the best arm."""
    arms, means, got = stream
    n, d = arms.shape[-2:]
    shapes = arms.shape in ((n, d), (T, n, d)) and means.shape == got.shape == (T, n)
    if not shapes or any(part.dtype != np.float64 or not np.isfinite(part).all() for part in stream):
        return ["shapes (n, d) or (T, n, d), (T, n), (T, n) of finite float64"]
    regret = means.max(axis=1) - means.mean(axis=1)
    share = regret.mean() / (means.max(axis=1) - means.min(axis=1)).mean()
    errors = got - means
    lean = errors * (means - means.mean(axis=1, keepdims=True))
    laws = {
        "2 to 200 arms, 1 to 60 features": 2 <= n <= 200 and 1 <= d <= 60,
        "64 MB at T = 6000": (arms.nbytes * (HORIZON / T if arms.ndim == 3 else 1) + 16 * HORIZON * n) <= 64e6,
        "clicks in {0, 1} with means in [0, 1]": rewards == "values"
        or (np.isin(got, (0.0, 1.0)).all() and means.min() >= 0.0 and means.max() <= 1.0),
        "values that are not clicks": rewards == "clicks" or not np.isin(got, (0.0, 1.0)).all(),
        f"a best arm that is {best}, not {behaviour(means)}": behaviour(means) == best,
        "a regret of random play above 5% of the noise and 20% of the spread of the arms":
            regret.mean() > 0.05 * errors.std() and share > 0.2,
        "rewards whose expectation is the mean": max(excess(errors.mean(axis=1)), excess(lean.mean(axis=1))) < 6,
    }
    return [law for law, holds in laws.items() if not holds]


def check(T: int = HORIZON, trials: int = 1) -> None:
    """Validate `trials` streams of every kind; raise ValueError with the list of faults."""
    wrong = []
    for name, (draw, rewards, _) in REGISTRY.items():
        for seed in range(trials):
            wrong += [f"{name}, seed {seed}: wanted {law}" for law in faults(draw(seed, T), rewards, BEST[name], T)]
    if wrong:
        raise ValueError("\n".join(wrong))


def rounded(part: Array) -> Array:
    """Values with 20 bits of mantissa; what is below 1e-12 of the largest becomes 0."""
    mantissa, exponent = np.frexp(np.where(np.abs(part) < 1e-12 * np.abs(part).max(), 0.0, part))
    return np.ldexp(np.round(mantissa * 2.0**20), exponent - 20) + 0.0


def digest() -> str:
    """The sha256 of this file's text and of trial 0 of every kind at T = 200."""
    sha = hashlib.sha256(Path(__file__).read_text(encoding="utf-8").encode())
    for name, (draw, _, _) in REGISTRY.items():
        sha.update(name.encode())
        for part in draw(0, 200):
            sha.update(str(part.shape).encode() + rounded(part).astype("<f8").tobytes())
    return sha.hexdigest()


if __name__ == "__main__":
    check()
    print(f"{len(REGISTRY)} kinds, digest {digest()}")
