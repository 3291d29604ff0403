"""Delayed rewards: what late rewards cost.

The same product four times, with rewards at once and up to 50, 200 and 800 rounds late. A late reward is learned with
its age, so it has the weight that it would have had in time. The loss comes from the rounds before rewards arrive, at
the start and after the jump in the middle.
"""

import numpy as np

import driftwise as dw

DELAYS = {"at once": 0, "up to 50 late": 50, "up to 200 late": 200, "up to 800 late": 800}


def live(delay, rounds, seed):
    chance = np.random.default_rng(seed)
    arms = chance.standard_normal((20, 4))
    arms /= np.linalg.norm(arms, axis=1, keepdims=True)
    paths = chance.standard_normal((2, 4))
    paths /= np.linalg.norm(paths, axis=1, keepdims=True)
    agent, prepared, coming, lost = dw.Agent.for_values(4, -3.0, 3.0), dw.ArmSet(arms), {}, np.empty(rounds)
    for now in range(rounds):
        means = arms @ paths[2 * now // rounds]
        one = agent.decide(prepared)
        lost[now] = means.max() - means[one.arm]
        reward = float(np.clip(means[one.arm] + 0.5 * chance.standard_normal(), -3.0, 3.0))
        coming.setdefault(now + int(chance.integers(delay + 1)), []).append((one.id, reward))
        for id, value in coming.pop(now, ()):
            agent.reward(id, value)
    return np.cumsum(lost)


def main(rounds=4000, trials=2, seed=0):
    found = {
        name: np.mean([live(delay, rounds, (seed, trial)) for trial in range(trials)], axis=0)
        for name, delay in DELAYS.items()
    }
    print({name: round(float(each[-1])) for name, each in found.items()}, "lost")
    return found


def draw(axes, found):
    for (name, each), colour in zip(found.items(), ("#0072b2", "#009e73", "#e69f00", "#d55e00"), strict=True):
        axes.plot(each, color=colour, label=name)
    axes.set(xlabel="round", ylabel="cumulative regret", ylim=(0, None))


if __name__ == "__main__":
    main()
