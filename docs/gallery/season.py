"""A season: everything sells better in December.

All twenty options rise and fall together, and their order hardly changes. A memory that is short enough to follow the
season forgets the order. A memory that keeps everything takes December for a good option. `Auto` distinguishes the
common level of all options from preferences. With `memory=Keep()` it has the one memory that keeps everything.
"""

import numpy as np

import driftwise as dw


def main(rounds=4000, trials=3, seed=0):
    season = 1.5 * np.sin(2.0 * np.pi * np.arange(rounds) / (rounds / 8))
    policies = {
        "Auto": dw.make("Auto", dim=4),
        "Auto that keeps everything": dw.make("Auto", dim=4, memory=dw.Keep()),
        "a memory of 100 rounds": dw.LinearUCB(dim=4, memory=dw.Fade(0.01), radius="posterior", R=0.5, S=2.0, L=2.0),
    }
    lost = {name: [] for name in policies}
    for trial in range(trials):
        chance = np.random.default_rng((seed, trial))
        options = chance.standard_normal((20, 3))
        options /= np.linalg.norm(options, axis=1, keepdims=True)
        arms = np.c_[options, np.ones(20)]  # a constant feature, which has the season
        theta = np.c_[np.tile([0.6, 0.3, -0.2], (rounds, 1)), season]
        world = dw.worlds.Given(
            arms=arms, theta=theta, tape=chance.standard_normal(rounds), reward="gaussian", noise=0.5
        )
        result = dw.simulate(policies, world, trials=1, seed=trial, record=20)
        for name in policies:
            lost[name].append(result.regret[name][0])
    found = {name: np.mean(each, axis=0) for name, each in lost.items()}
    print({name: round(float(each[-1])) for name, each in found.items()}, "lost")
    return {"rounds": result.rounds, **found}


def draw(axes, found):
    for name, colour in zip(list(found)[1:], ("#0072b2", "#000000", "#d55e00"), strict=True):
        axes.plot(found["rounds"], found[name], color=colour, label=name)
    axes.set(xlabel="round", ylabel="cumulative regret", ylim=(0, None))


if __name__ == "__main__":
    main()
