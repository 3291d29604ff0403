"""Late kinds of a helper: written 20 Nov before any was played, for the choice of what late rewards do (no kept kind)."""
import products as p
from products import const, late, np, sigmoid, jumps, walk, dot, ages, still, values, Stream
keep = (dict(p.REGISTRY), dict(p.HALF), dict(p.DELAYS))
@p.kind("clicks", "late")
def news_jump_c(rng, T):
    """Fresh arms at 10%, no click after 80 rounds is waited for, tastes jump twice."""
    a = const(rng.standard_normal((T, 8, 5))); m = sigmoid(dot(a, np.concatenate([np.full((T, 1), -2.2), jumps(rng, T, 5, 2, 0.5)], axis=1)))
    b, lag = late(rng, m, T, 80, 10); return Stream(a, m, b.astype(float)), lag
@p.kind("clicks", "late")
def shelf_walk_c(rng, T):
    """Twelve fixed items with 4 features at 15%, deadline 50, tastes wander."""
    a = const(rng.standard_normal((12, 4))); m = sigmoid(dot(a, np.concatenate([np.full((T, 1), -1.8), 0.4 * rng.standard_normal(4) + walk(rng, T, 4, 0.5)], axis=1)))
    b, lag = late(rng, m, T, 50, 8); return Stream(a, m, b.astype(float)), lag
@p.kind("clicks", "late")
def offers_walk_c(rng, T):
    """Six offers one-hot near 6%, deadline 150, rates wander."""
    m = sigmoid(0.5 * rng.standard_normal(6) - 2.8 + walk(rng, T, 6, 0.6)); b, lag = late(rng, m, T, 150, 40); return Stream(np.eye(6), m, b.astype(float)), lag
@p.kind("clicks", "late")
def still_c(rng, T):
    """Fresh arms at 20%, deadline 100, still."""
    a = const(rng.standard_normal((T, 10, 4))); m = sigmoid(dot(a, still(np.append(-1.4, 0.5 * rng.standard_normal(4)), T)))
    b, lag = late(rng, m, T, 100, 15); return Stream(a, m, b.astype(float)), lag
@p.kind("values", "late")
def baskets_turn(rng, T):
    """Fresh offers, baskets of 20% of visits, none is known after 100 rounds, tastes turn by half."""
    a = const(rng.standard_normal((T, 8, 4))); t = np.pi * ages(T)[:, None]
    th = np.cos(t) * rng.standard_normal(4) * .5 + np.sin(t) * rng.standard_normal(4) * .5
    m = sigmoid(dot(a, np.concatenate([np.full((T, 1), -1.4), th], axis=1))); b, lag = late(rng, m, T, 100, 20); v = np.exp(0.5 * rng.standard_normal(m.shape) - 0.125)
    return Stream(a, m * 20, b * v * 20), lag
@p.kind("values", "late")
def all_late_walk(rng, T):
    """Tastes wander, every reward comes 20 to 60 rounds late."""
    a = rng.standard_normal((T, 10, 5)); m = dot(a, walk(rng, T, 5, 1.0)); s = values(rng, a, m, 0.7)
    return s, rng.integers(20, 60, m.shape)
mine = [n for n in p.REGISTRY if n not in keep[0]]
REGISTRY, DELAYS = {n: p.REGISTRY.pop(n) for n in mine}, {n: p.DELAYS.pop(n) for n in mine}
for n in mine: p.HALF.pop(n)
