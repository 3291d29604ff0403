"""A jump: from one round to the next all is different.

Three times in 6000 rounds θ jumps to another direction. OFUL forgets nothing and never recovers. The others are given
the path length of θ and forget in three ways: by fading, by a window, by restarts. `Auto` is given nothing.
"""

import driftwise as dw

COLOURS = {
    "OFUL": "#000000", "RestartUCB": "#009e73", "SW-UCB": "#56b4e9", "LB-WeightUCB": "#0072b2", "Auto": "#cc79a7",
}  # fmt: skip


def main(rounds=6000, trials=6, seed=0):
    world = dw.worlds.Jumps(
        dim=2, arms=50, horizon=rounds, jumps=3, directions=[[1, 0], [-0.6, 0.8], [0, -1], [0.8, 0.6]]
    )
    policies = {name: dw.make(name, **(world.facts if name != "Auto" else {"dim": 2})) for name in COLOURS}
    result = dw.simulate(policies, world, trials=trials, seed=seed, record=20)
    print({name: round(float(result.final(name).mean())) for name in policies}, "lost")
    return {"rounds": result.rounds, **{name: result.regret[name].mean(axis=0) for name in policies}}


def draw(axes, found):
    for name, colour in COLOURS.items():
        axes.plot(found["rounds"], found[name], color=colour, label=name)
    axes.set(xlabel="round", ylabel="cumulative regret", ylim=(0, None))


if __name__ == "__main__":
    main()
