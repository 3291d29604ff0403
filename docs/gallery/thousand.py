"""A thousand arms, and ten numbers to describe each.

What is learned about one arm holds for all similar arms, so exploration has to learn ten numbers and not a thousand.
θ is a random walk. `dw.simulate` plays compiled rounds. The times depend on this machine; their ratio does not.
"""

import numpy as np

import driftwise as dw

SIZES = {"10 arms": 10, "100 arms": 100, "1000 arms": 1000}


def main(rounds=3000, trials=2, seed=0):
    found, seconds = {}, {}
    for name, arms in SIZES.items():
        world = dw.worlds.Walk(dim=10, arms=arms, horizon=rounds, step=0.005, noise=0.3)
        policies = {"Auto": dw.make("Auto", dim=10)}
        result = dw.simulate(policies, world, trials=trials, seed=seed, record=20)
        found[name] = result.regret["Auto"].mean(axis=0)
        seconds[name] = float(result.seconds["Auto"].min()) / rounds
    print({name: round(float(each[-1])) for name, each in found.items()}, "lost")
    print(f"a round among 1000 arms takes {seconds['1000 arms'] / seconds['10 arms']:.1f} times as long as among 10")
    return {"rounds": np.asarray(result.rounds), **found}


def draw(axes, found):
    for name, colour in zip(SIZES, ("#56b4e9", "#0072b2", "#000000"), strict=True):
        axes.plot(found["rounds"], found[name], color=colour, label=name)
    axes.set(xlabel="round", ylabel="cumulative regret", ylim=(0, None))


if __name__ == "__main__":
    main()
