"""A hidden change, and looks.

An arm that is not played gives no information. Here the third of three arms, which share no feature, is the worst at
first and the best from the middle on. A policy that has settled on the first arm does not notice. Auto plays, in a
small and shrinking share of rounds, a/√t at most, an arm that it would not choose. That finds the change, and costs a
little where nothing changes. The default is looks=0.5; looks=0 switches it off.
"""

import numpy as np

import driftwise as dw


def main(rounds=6000, trials=4, seed=0):
    rising = np.repeat([[0.5, 0.2, 0.0], [0.5, 0.2, 0.9]], [rounds // 2, rounds - rounds // 2], axis=0)
    policies = {"never forced": dw.make("Auto", dim=3, looks=0.0), "Auto": dw.make("Auto", dim=3)}
    found = {}
    for kind, theta in (("the third rises", rising), ("nothing changes", np.tile(rising[0], (rounds, 1)))):
        lost = {name: [] for name in policies}
        for trial in range(trials):
            tape = np.random.default_rng((seed, trial)).standard_normal(rounds)
            world = dw.worlds.Given(arms=np.eye(3), theta=theta, tape=tape, reward="gaussian", noise=0.3)
            result = dw.simulate(policies, world, trials=1, seed=trial, record=20)
            for name in policies:
                lost[name].append(result.regret[name][0])
        found |= {(kind, name): np.mean(each, axis=0) for name, each in lost.items()}
        print(kind + ":", {name: round(float(found[kind, name][-1])) for name in policies}, "lost")
    return found | {"rounds": result.rounds}


def draw(axes, found):
    colours = {"never forced": "#000000", "Auto": "#0072b2"}
    for kind, dashes in (("the third rises", "-"), ("nothing changes", "--")):
        for name, colour in colours.items():
            axes.plot(found["rounds"], found[kind, name], color=colour, ls=dashes, label=f"{name}, {kind}")
    axes.set(xlabel="round", ylabel="cumulative regret", ylim=(0, None))


if __name__ == "__main__":
    main()
