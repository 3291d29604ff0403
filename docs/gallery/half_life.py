"""A wrong half-life, and what it costs.

θ makes one turn in 6000 rounds. A memory that is too short has too few data, and one that is too long has outdated
data, which is much worse: a quarter of the best half-life loses less than twice as much, four times the best one about
ten times as much. `Auto` has memories of all lengths and uses the one that predicts best.
"""

import numpy as np

import driftwise as dw

HALF_LIVES = (8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096)


def main(rounds=6000, trials=6, seed=0):
    world = dw.worlds.Turn(dim=2, arms=50, horizon=rounds, turns=1)
    policies = {}
    for half_life in HALF_LIVES:
        memory = dw.Fade(dw.convert_memory(half_life, "half_life", "forget"))
        policies[half_life] = dw.LinearUCB(dim=2, memory=memory, radius="posterior")
    every = {str(half_life): policy for half_life, policy in policies.items()} | {"Auto": dw.make("Auto", dim=2)}
    result = dw.simulate(every, world, trials=trials, seed=seed, record="last")
    lost = {name: float(result.final(name).mean()) for name in every}
    best = min(policies, key=lambda half_life: lost[str(half_life)])
    print(f"lost at the best half-life, {best} rounds: {lost[str(best)]:.0f}; by Auto: {lost['Auto']:.0f}; "
          f"at {HALF_LIVES[0]}: {lost[str(HALF_LIVES[0])]:.0f}, at {HALF_LIVES[-1]}: {lost[str(HALF_LIVES[-1])]:.0f}")
    return {"lost": np.array([lost[str(one)] for one in HALF_LIVES]), "Auto": lost["Auto"], "best": best}


def draw(axes, found):
    axes.plot(HALF_LIVES, found["lost"], color="#0072b2", marker="o", ms=4, label="with this half-life")
    axes.axhline(found["Auto"], color="#cc79a7", label="Auto, without a setting")
    axes.set_xscale("log", base=2)
    axes.set_xticks(HALF_LIVES[::3], [str(one) for one in HALF_LIVES[::3]])
    axes.set(xlabel="half-life in rounds", ylabel="regret at the end", ylim=(0, None))


if __name__ == "__main__":
    main()
