"""Kinds like products, written before any result was seen. HALF[name] is "tune" or "kept" (one look at the end).

A kind gives (arms, means, rewards), and late kinds delays (T, n) in rounds beside (DELAYS)."""
import zlib
import numpy as np
from numpy.random import PCG64, Generator
from default_unseen import Stream, ages, clicks, crosses, dot, jumps, lives, sigmoid, still, turnover, walk, wave, values
REGISTRY, HALF, DELAYS = {}, {}, {}
def kind(rewards, half, **variants):
    def register(draw):
        for v, f in (variants or {"": {}}).items():
            name = f"{draw.__name__}_{v}".strip("_")
            def stream(seed, T=6000, name=name, f=f):
                out = draw(Generator(PCG64([seed, zlib.crc32(("p"+name).encode())])), T, **f)
                return out if isinstance(out, Stream) else out[0]
            def delay(seed, T=6000, name=name, f=f):
                out = draw(Generator(PCG64([seed, zlib.crc32(("p"+name).encode())])), T, **f)
                return None if isinstance(out, Stream) else out[1]
            REGISTRY[name] = (stream, rewards, draw.__doc__ or ""); HALF[name] = half; DELAYS[name] = delay
        return draw
    return register
def const(z): return np.concatenate([np.ones((*z.shape[:-1], 1)), z], axis=-1)
def shop(rng, T, n, d, life):
    item, age = lives(rng, T, n, life)
    return turnover(rng, item, d), age, item
# catalogues with arrivals
@kind("values", "tune")
def catalogue(rng, T):
    """15 slots, items replaced, constant + 6 features, still tastes."""
    z, _, _ = shop(rng, T, 15, 6, T / 10); a = const(z)
    return values(rng, a, dot(a, still(np.append(3.0, 0.4 * rng.standard_normal(6)), T)), 1.5)
@kind("clicks", "kept")
def catalogue_c(rng, T):
    """The same as clicks at 6%, tastes wander."""
    z, _, _ = shop(rng, T, 15, 6, T / 10); a = const(z)
    th = np.concatenate([np.full((T, 1), -2.7), 0.4 * rng.standard_normal(6) + walk(rng, T, 6, 0.4)], axis=1)
    return clicks(rng, a, sigmoid(dot(a, th)))
@kind("clicks", "tune")
def arrivals_one_hot_c(rng, T):
    """12 slots one-hot, an item lives T/6 rounds, rates near 8%."""
    item, _ = lives(rng, T, 12, T / 6)
    return clicks(rng, np.eye(12), sigmoid(0.7 * turnover(rng, item, 1)[..., 0] - 2.5))
@kind("values", "kept")
def arrivals_one_hot(rng, T):
    """12 slots one-hot, an item lives T/6 rounds."""
    item, _ = lives(rng, T, 12, T / 6)
    return values(rng, np.eye(12), 5 + turnover(rng, item, 1)[..., 0], 2.0)
# hours of the day
def hours(rng, T, n, seen, size):
    h = 2 * np.pi * np.arange(T) / 96
    ctx = np.stack([np.ones(T), np.cos(h), np.sin(h)], axis=1)
    th = size * rng.standard_normal((n, 3)); th[:, 1:] *= 0.7
    m = ctx @ th.T
    return (crosses(ctx, n) if seen else np.eye(n)), m, h
@kind("values", "tune", seen={"seen": True}, hidden={"seen": False})
def hours_of_day(rng, T, seen):
    """Six pages; what they pay follows the hour (96 rounds a day)."""
    a, m, _ = hours(rng, T, 6, seen, 0.6)
    return values(rng, a, m + 2, 1.0)
@kind("clicks", "kept", seen={"seen": True}, hidden={"seen": False})
def hours_of_day_c(rng, T, seen):
    a, m, h = hours(rng, T, 6, seen, 0.5)
    return clicks(rng, a, sigmoid(m - 2.5 + 0.8 * np.cos(h + 1)[:, None]))
@kind("clicks", "tune")
def night_level_c(rng, T):
    """Eight offers with features; the level of all follows the hour, unseen."""
    a = const(rng.standard_normal((8, 4)))
    th = still(np.append(-2.5, 0.5 * rng.standard_normal(4)), T); th[:, 0] += 1.2 * np.cos(2 * np.pi * np.arange(T) / 96)
    return clicks(rng, a, sigmoid(dot(a, th)))
# price changes
def prices(rng, T, n):
    p = np.exp(0.3 * jumps(rng, T, n, 8, 1.0)); w = rng.standard_normal(n) * 0.5
    a = np.zeros((T, n, n + 1)); a[:, np.arange(n), np.arange(n)] = 1; a[..., n] = p
    return a, p, w
@kind("values", "tune")
def prices_move(rng, T):
    """Ten products (one-hot) beside their price, which changes eight times: profit rises with price and falls."""
    a, p, w = prices(rng, T, 10)
    buy = sigmoid(w - 1.2 * p - 0.3)
    return Stream(a, p * buy * 10, p * 10 * (rng.random(buy.shape) < buy))
@kind("clicks", "kept")
def prices_move_c(rng, T):
    a, p, w = prices(rng, T, 10)
    return clicks(rng, a, sigmoid(w - 1.5 * p - 0.5))
# loud weeks
@kind("values", "kept")
def loud_weeks(rng, T):
    """Revenue of 12 fixed banners; in 6 weeks of 120 rounds all is four times as large, noise too."""
    a = const(rng.standard_normal((12, 4))); m = dot(a, still(np.append(4.0, 0.5 * rng.standard_normal(4)), T))
    loud = np.ones(T)
    for s in rng.integers(0, T - 120, 6): loud[s:s + 120] = 4
    return values(rng, a, m * loud[:, None], 2.0 * loud[:, None])
@kind("clicks", "tune")
def loud_weeks_c(rng, T):
    a = const(rng.standard_normal((12, 4))); z = dot(a, still(np.append(-3.2, 0.5 * rng.standard_normal(4)), T))
    for s in rng.integers(0, T - 120, 6): z[s:s + 120] += 1.5
    return clicks(rng, a, sigmoid(z))
@kind("values", "tune")
def loud_items(rng, T):
    """Fifteen items one-hot; a season makes all sell up to three times as much and as noisily; order stays."""
    base = np.exp(0.4 * rng.standard_normal(15)) * 3; f = np.exp(0.55 * wave(T, 4, rng.random()))[:, None]
    return values(rng, np.eye(15), base * f, 1.5 * np.sqrt(base) * f)
# late rewards: a reward comes soon or, if none, at the deadline
def late(rng, m, T, deadline, soon):
    buys = rng.random(m.shape) < m
    lag = np.where(buys, np.minimum(rng.exponential(soon, m.shape), deadline), deadline).astype(int)
    return buys, lag
@kind("clicks", "tune")
def late_conversions_c(rng, T):
    """Ten offers one-hot, 5%, no conversion is known after 300 rounds; the best changes once."""
    m = sigmoid(jumps(rng, T, 10, 1, 0.6) - 3.0); buys, lag = late(rng, m, T, 300, 60)
    return Stream(np.eye(10), m, buys.astype(float)), lag
@kind("values", "kept")
def late_baskets(rng, T):
    """Twelve offers with features, baskets of 15% of visits, no basket is known after 200 rounds, still."""
    a = const(rng.standard_normal((12, 4))); m = sigmoid(dot(a, still(np.append(-1.9, 0.5 * rng.standard_normal(4)), T)))
    buys, lag = late(rng, m, T, 200, 40); v = np.exp(0.5 * rng.standard_normal(m.shape) - 0.125)
    return Stream(a, m * 20, buys * v * 20), lag
@kind("values", "tune")
def late_all(rng, T):
    """Tastes jump three times, every reward comes 50 to 150 rounds late."""
    a = rng.standard_normal((T, 12, 4)); m = dot(a, jumps(rng, T, 4, 3, 0.6))
    return values(rng, a, m, 1.0), rng.integers(50, 150, m.shape)
@kind("clicks", "kept")
def late_clicks_c(rng, T):
    """Fresh arms at 10%, clicks soon, none after 100 rounds, tastes turn slowly."""
    a = const(rng.standard_normal((T, 10, 4))); t = np.pi * ages(T)[:, None]
    th = np.cos(t) * rng.standard_normal(4) * .7 + np.sin(t) * rng.standard_normal(4) * .7
    m = sigmoid(dot(a, np.concatenate([np.full((T, 1), -2.2), th], axis=1))); buys, lag = late(rng, m, T, 100, 15)
    return Stream(a, m, buys.astype(float)), lag
# many arms and few pulls
@kind("values", "tune")
def many_items(rng, T):
    """80 items one-hot, noise twice the spread."""
    return values(rng, np.eye(80), np.tile(2 + rng.standard_normal(80), (T, 1)), 2.0)
@kind("clicks", "kept")
def many_items_c(rng, T):
    """80 items one-hot, rates near 5%."""
    return clicks(rng, np.eye(80), np.tile(sigmoid(0.8 * rng.standard_normal(80) - 3), (T, 1)))
@kind("clicks", "tune")
def shelf_c(rng, T):
    """150 items with 10 features, fixed, rates near 4%."""
    a = const(0.5 * rng.standard_normal((150, 10)))
    return clicks(rng, a, sigmoid(dot(a, still(np.append(-3.3, 0.6 * rng.standard_normal(10)), T))))
@kind("values", "kept")
def shelf(rng, T):
    """150 items with 10 features, fixed; tastes wander a little."""
    a = const(0.5 * rng.standard_normal((150, 10)))
    return values(rng, a, dot(a, np.append(4, 0.6 * rng.standard_normal(10)) + walk(rng, T, 11, 0.3)), 2.0)
# many one-hot features
def dummies(rng, T, n, sizes):
    return np.concatenate([np.ones((T, n, 1)), *(np.eye(s)[rng.integers(s, size=(T, n))] for s in sizes)], axis=2)
@kind("clicks", "tune")
def dummies_c(rng, T):
    """Category, brand, band and place as dummies (d = 46), 15 arms, rates near 8%."""
    a = dummies(rng, T, 15, (8, 20, 5, 12)); th = 0.4 * rng.standard_normal(46); th[0] = -2.6
    return clicks(rng, a, sigmoid(dot(a, still(th, T))))
@kind("values", "kept")
def dummies_v(rng, T):
    """The same for values; the categories change twice."""
    a = dummies(rng, T, 15, (8, 20, 5, 12)); th = still(0.4 * rng.standard_normal(46), T); th[:, 1:9] = jumps(rng, T, 8, 2, 0.5); th[:, 0] = 5
    return values(rng, a, dot(a, th), 1.5)
# zero-inflated revenue, rare clicks
@kind("values", "tune")
def revenue_items(rng, T):
    """Ten offers one-hot, 6% buy, lognormal baskets."""
    r = sigmoid(0.6 * rng.standard_normal(10) - 2.8); v = np.exp(0.3 * rng.standard_normal(10)) * 30
    buys = rng.random((T, 10)) < r
    return Stream(np.eye(10), np.tile(r * v, (T, 1)), buys * v * np.exp(0.8 * rng.standard_normal((T, 10)) - 0.32))
@kind("values", "kept")
def revenue_segments(rng, T):
    """Offers by features, 10% buy, lognormal baskets, tastes jump once."""
    a = const(rng.standard_normal((T, 10, 5))); th = np.concatenate([np.full((T, 1), -2.3), jumps(rng, T, 5, 1, 0.5)], axis=1)
    r = sigmoid(dot(a, th)); buys = rng.random(r.shape) < r
    return Stream(a, r * 25, buys * 25 * np.exp(0.8 * rng.standard_normal(r.shape) - 0.32))
@kind("clicks", "tune")
def half_percent_c(rng, T):
    """Eight banners with 3 features, rates near .6%."""
    a = const(rng.standard_normal((8, 3)))
    return clicks(rng, a, sigmoid(dot(a, still(np.append(-5.1, 0.6 * rng.standard_normal(3)), T))))
@kind("clicks", "kept")
def one_percent_fresh_c(rng, T):
    a = const(rng.standard_normal((T, 12, 4)))
    return clicks(rng, a, sigmoid(dot(a, still(np.append(-4.7, 0.6 * rng.standard_normal(4)), T))))
# novelty that wears off
@kind("values", "kept")
def novelty(rng, T):
    """Ten slots one-hot; a new item pays 2 more and loses it in T/40 rounds; an item lives T/8."""
    item, age = lives(rng, T, 10, T / 8)
    return values(rng, np.eye(10), 3 + 0.7 * turnover(rng, item, 1)[..., 0] + 2 * np.exp(-age / (T / 40)), 1.0)
@kind("clicks", "tune")
def novelty_c(rng, T):
    """Ten slots with 5 features of the item and a constant; new ones have odds e higher that wear off in T/40."""
    z, age, _ = shop(rng, T, 10, 5, T / 8); a = const(z)
    return clicks(rng, a, sigmoid(dot(a, still(np.append(-2.8, 0.5 * rng.standard_normal(5)), T)) + np.exp(-age / (T / 40))))
# tests of a few variants
@kind("values", "kept")
def five_variants(rng, T):
    """Five variants, gaps of a tenth of the noise, still."""
    return values(rng, np.eye(5), np.tile(3 + 0.1 * rng.standard_normal(5), (T, 1)), 1.0)
@kind("clicks", "tune")
def five_variants_c(rng, T):
    return clicks(rng, np.eye(5), np.tile(sigmoid(-2.0 + 0.25 * rng.standard_normal(5)), (T, 1)))
@kind("values", "tune")
def users_items(rng, T):
    """User segments (6) crossed with 8 items: still, noise large."""
    c = np.eye(6)[rng.integers(6, size=T)]; a = crosses(c, 8)
    return values(rng, a, dot(a, still(3 + 0.7 * rng.standard_normal(48), T)), 2.0)
@kind("clicks", "kept")
def users_items_c(rng, T):
    c = np.eye(4)[rng.integers(4, size=T)]; a = crosses(c, 6)
    return clicks(rng, a, sigmoid(dot(a, jumps(rng, T, 24, 1, 0.6) - 2.3)))
if __name__ == "__main__":
    for n, (d, r, _) in REGISTRY.items():
        s = d(0); g = s.means.max(1) - s.means.mean(1); print(HALF[n], r, n, s.arms.shape, round(float(g.sum())), round(float(s.rewards.mean()), 3), round(float((s.rewards - s.means).std()), 2))
