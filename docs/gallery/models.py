"""Language models: which one answers, when the good ones cost more and all of them change.

Quality, from 0 to 1, is a reviewer's mark for an answer. The cost is known beforehand and is subtracted from the score.
A model is crossed with the difficulty of the request. Halfway the small model is improved; the agent is not informed.
"""

import numpy as np

import driftwise as dw

MODELS = ("small", "medium", "large")
COST = np.array([0.02, 0.10, 0.30])


def arms(difficulty):
    """A row for each model: which one it is, and how hard the request is for it."""
    return np.kron(np.eye(3), [0.7, 0.7 * difficulty])


def main(requests=4000, seed=0):
    chance = np.random.default_rng(seed)
    agent = dw.Agent.for_values(6, 0.0, 1.0, epsilon=0.05)  # one answer in twenty is drawn: others can be judged on it
    asked, worth = np.empty(requests, dtype=int), np.empty((requests, 3))
    for request in range(requests):
        difficulty = float(chance.random())
        skill = np.array([0.55 if request >= requests // 2 else 0.1, 0.4, 0.9])
        quality = 0.95 - (1.0 - skill) * difficulty
        one = agent.decide(arms(difficulty), items=MODELS, cost=COST)
        agent.reward(one.id, float(np.clip(quality[one.arm] + 0.1 * chance.standard_normal(), 0.0, 1.0)))
        asked[request], worth[request] = one.arm, quality - COST
    won = {"agent": worth[np.arange(requests), asked].mean(), "best": worth.max(axis=1).mean()}
    won |= {f"always {name}": worth[:, place].mean() for place, name in enumerate(MODELS)}
    print("quality less cost:", {name: round(float(mean), 3) for name, mean in won.items()})
    return {"asked": asked, **won}


def draw(axes, found):
    asked, width = found["asked"], max(20, len(found["asked"]) // 20)
    for place, colour in enumerate(("#009e73", "#e69f00", "#0072b2")):
        share = np.convolve(asked == place, np.ones(width) / width, "valid")
        axes.plot(np.arange(len(share)) + width, 100 * share, color=colour, label=MODELS[place])
    axes.axvline(len(asked) / 2, color="#767676", lw=0.8, ls=":")
    axes.set(xlabel="request (dotted: the small model is improved)", ylabel="% of requests", ylim=(0, 100))


if __name__ == "__main__":
    main()
