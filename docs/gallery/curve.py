"""A price from a curve: every price between two ends may be asked.

A price stands for an hour, in which 25 customers come. Each buys at price p with probability a - 0.9p, and a follows
the season, so revenue is a parabola in p whose top moves. Four shops see the same customers: one asks any price of the
curve, one of 20 prices with the same features, one of 20 prices that learn nothing from each other, and one that plays
the curve and forgets nothing. The figure shows what the first shop believes at three moments, and the truth.
"""

import numpy as np

import driftwise as dw

LOW, HIGH, STEEP, CUSTOMERS = 0.2, 1.0, 0.9, 25
CURVE = dw.Curve(dw.Polynomial(2), LOW, HIGH, tolerance=1e-4)
PRICES = np.linspace(LOW, HIGH, 20)


def season(hours):
    """a for every hour: two years."""
    return 0.9 + 0.35 * np.sin(4.0 * np.pi * np.arange(hours) / hours)


def revenue(a, price):
    """What a customer brings on average."""
    return price * np.clip(a - STEEP * price, 0.0, 1.0)


def shops():
    """A policy and what it chooses from."""
    auto = dw.make("Auto", dim=3)
    keeps = dw.make("Auto", dim=3, memory=dw.Keep())
    return {
        "any price of the curve": (auto, CURVE),
        "20 prices, the curve's features": (auto, CURVE.at(PRICES)),
        "20 prices, each for itself": (dw.make("Auto", dim=20), np.eye(20)),
        "the curve, forgetting nothing": (keeps, CURVE),
    }


def trade(policy, arms, hours, seed, looks=()):
    """The share of what the best price of every hour would bring, and copies of the state at some hours."""
    chance, a, kept = np.random.default_rng(seed).random((hours, CUSTOMERS)), season(hours), {}
    state, earned = policy.start(seed=seed), 0.0
    prepared = arms if isinstance(arms, dw.Curve) else dw.ArmSet(arms)
    for t in range(hours):
        if t in looks:
            kept[t] = state.copy()
        choice = policy.choose(state, prepared)
        price = float(PRICES[choice.arm]) if choice.number is None else choice.number
        bought = float((chance[t] < np.clip(a[t] - STEEP * price, 0.0, 1.0)).mean())
        policy.learn(state, prepared, choice.arm if choice.number is None else choice.number, price * bought)
        earned += float(revenue(a[t], price))
    return earned / revenue(a, np.clip(a / (2 * STEEP), LOW, HIGH)).sum(), kept


def main(hours=2000, trials=8):
    looks = (hours // 50, hours * 3 // 8, hours * 5 // 8)
    found = {
        name: np.array([trade(policy, arms, hours, seed)[0] for seed in range(trials)])
        for name, (policy, arms) in shops().items()
    }
    for name, shares in found.items():
        behind = found["any price of the curve"] - shares
        half = 0.0 if trials < 2 else 2.4 * behind.std(ddof=1) / np.sqrt(trials)
        print(f"{name:34} {shares.mean():.3f} of the best; the curve has {behind.mean():+.3f} ± {half:.3f} more")
    auto = dw.make("Auto", dim=3)
    return {**found, "hours": hours, "looks": trade(auto, CURVE, hours, 0, looks)[1]}


def draw(axes, found):
    numbers, policy = np.linspace(LOW, HIGH, 200), dw.make("Auto", dim=3)
    for (t, state), colour in zip(found["looks"].items(), ("#0072b2", "#e69f00", "#009e73"), strict=True):
        choice = policy.choose(state, CURVE)
        axes.plot(numbers, policy.scores(state, CURVE.at(numbers)).mean, color=colour, label=f"estimate, hour {t + 1}")
        axes.plot(numbers, revenue(season(found["hours"])[t], numbers), color=colour, linestyle=":")
        axes.plot([choice.number], [revenue(season(found["hours"])[t], choice.number)], "o", color=colour)
    axes.plot([], [], color="#767676", linestyle=":", label="truth")
    axes.set(xlabel="price", ylabel="revenue per customer", ylim=(-0.1, 0.6))


if __name__ == "__main__":
    main()
