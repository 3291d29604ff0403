"""Variants: an A/B test that never ends.

Four variants of a button, each a basis vector. Their rates drift, so that the best in March is not the best in May. A
usual A/B test shows all of them equally often to the first fifth of visitors, and the winner to the rest. The agent
continues to explore. This costs little, and the agent notices when the winner is no longer the best.
"""

import numpy as np

import driftwise as dw


def main(visitors=10000, seed=0):
    chance = np.random.default_rng(seed)
    time = np.linspace(0.0, 1.0, visitors)[:, None]
    rates = 0.30 + 0.20 * np.sin(2.0 * np.pi * (time + np.array([0.0, 0.3, 0.55, 0.8])))
    luck = chance.random(visitors)
    agent, lost = dw.Agent.for_clicks(4, click_rate=(0.05, 0.6)), {}
    arms = dw.ArmSet(np.eye(4))
    shown = np.empty(visitors, dtype=int)
    for visitor in range(visitors):
        one = agent.decide(arms)
        shown[visitor] = one.arm
        agent.reward(one.id, float(luck[visitor] < rates[visitor, one.arm]))
    lost["the agent"] = rates.max(axis=1) - rates[np.arange(visitors), shown]
    test = visitors // 5
    turns = np.arange(test) % 4
    clicks = luck[:test] < rates[np.arange(test), turns]
    winner = int(np.argmax(np.bincount(turns, clicks, 4)))
    tested = np.r_[turns, np.full(visitors - test, winner)]
    lost["a test, then its winner"] = rates.max(axis=1) - rates[np.arange(visitors), tested]
    lost["all alike"] = rates.max(axis=1) - rates.mean(axis=1)
    print({name: round(float(each.sum())) for name, each in lost.items()}, "conversions lost")
    return lost


def draw(axes, found):
    for (name, each), colour in zip(found.items(), ("#0072b2", "#d55e00", "#767676"), strict=True):
        axes.plot(np.cumsum(each), color=colour, label=name)
    axes.set(xlabel="visitor", ylabel="conversions lost so far", ylim=(0, None))


if __name__ == "__main__":
    main()
