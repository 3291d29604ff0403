"""Prices: what customers will pay moves with the season.

A shop asks one of nine prices. The reward is its revenue, which is known a day or two later. Time is that of the
calendar: the memory has a half-life of ten days. Every night the agent is saved with its open decisions, and a new
process loads it. The features of a price say how near it is to each of six, so that neighbours learn from each other.
"""

import numpy as np

import driftwise as dw

DAY = 86400.0
PRICES = np.linspace(0.2, 1.0, 9)
NEAR = np.exp(-(((PRICES[:, None] - np.linspace(0.2, 1.0, 6)) / 0.15) ** 2))
ARMS = NEAR / np.linalg.norm(NEAR, axis=1, keepdims=True)


def main(days=120, customers=40, seed=0):
    chance = np.random.default_rng(seed)
    agent = dw.Agent.for_values(6, 0.0, 1.0, half_life="10d")
    owed, asked, best, earned = [], np.empty(days), np.empty(days), np.zeros(3)
    for day in range(days):
        limit = 0.6 + 0.3 * np.sin(2.0 * np.pi * day / 120.0)  # what a customer pays on average
        margins = PRICES / (1.0 + np.exp((PRICES - limit) / 0.08))
        chosen = np.empty(customers)
        agent = dw.Agent.from_bytes(agent.to_bytes())  # a new process, every morning
        for customer in range(customers):
            now = 1.8e9 + (day + customer / customers) * DAY
            due = [one for one in owed if one[0] <= now]
            owed = [one for one in owed if one[0] > now]
            for _, id, margin in due:
                agent.reward(id, margin, now=now)
            one = agent.decide(ARMS, now=now)
            bought = chance.random() < margins[one.arm] / PRICES[one.arm]
            owed.append((now + DAY * chance.uniform(1.0, 2.0), one.id, float(PRICES[one.arm] * bought)))
            chosen[customer] = PRICES[one.arm]
            earned += margins[one.arm], margins.max(), margins.mean()
        asked[day], best[day] = chosen.mean(), PRICES[margins.argmax()]
    print("earned {:.0f}, with the best price of each day {:.0f}, blindly {:.0f}".format(*earned))
    return {"asked": asked, "best": best, "earned": earned}


def draw(axes, found):
    axes.plot(found["best"], color="#767676", drawstyle="steps-mid", label="best price of the day")
    axes.plot(found["asked"], color="#0072b2", label="asked, mean of the day")
    axes.set(xlabel="day", ylabel="price", ylim=(0, 1.1))


if __name__ == "__main__":
    main()
