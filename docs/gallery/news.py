"""News: readers who change their minds.

A front page shows one of ten articles. What readers like changes slowly, and half of the clicks come up to sixty
readers later. The speed of change is not given. `dw.Agent.for_clicks` learns it. The same agent with a memory that
keeps everything does not adapt, and gets fewer clicks.
"""

import numpy as np

import driftwise as dw


def rates(page, reader, readers):
    """The chance that each article is clicked: taste makes half a turn in all."""
    angle = np.pi * reader / readers
    taste = np.array([np.cos(angle), np.sin(angle), 0.0, -1.2])
    return 1.0 / (1.0 + np.exp(-2.5 * page @ taste))


def live(agent, readers, seed):
    """The chance of a click on what each reader was shown, of the best article, and of one drawn blindly."""
    chance = np.random.default_rng(seed)
    topics = chance.standard_normal((10, 3))
    page = np.c_[topics / np.linalg.norm(topics, axis=1, keepdims=True), np.full(10, 0.5)]
    coming, seen = {}, np.empty((3, readers))
    for reader in range(readers):
        chances = rates(page, reader, readers)
        shown = agent.decide(page)
        seen[:, reader] = chances[shown.arm], chances.max(), chances.mean()
        if chance.random() < chances[shown.arm]:
            late = int(chance.integers(60)) if chance.random() < 0.5 else 0
            coming.setdefault(reader + late, []).append(shown.id)
        for id in coming.pop(reader, ()):
            agent.reward(id, 1.0)
    return seen


def main(readers=4000, seed=0):
    told = {"expire_after": 60, "default_reward": 0.0}  # no click comes after sixty readers
    auto, best, blind = live(dw.Agent.for_clicks(4, **told), readers, seed)
    keeps = dw.Agent(dw.PosteriorUCB(dim=4, memory=dw.Keep(), L=2.0, estimate="one-pass"), rewards=(0.0, 1.0), **told)
    kept = live(keeps, readers, seed)[0]
    found = {"best": best, "agent": auto, "forgets nothing": kept, "blind": blind}
    print({name: round(100 * float(each.mean()), 1) for name, each in found.items()}, "clicks in 100")
    return found


def draw(axes, found):
    colours = {"best": "#767676", "agent": "#0072b2", "forgets nothing": "#000000", "blind": "#e69f00"}
    for name, each in found.items():
        smooth = np.convolve(each, np.ones(100) / 100, "valid")
        axes.plot(np.arange(len(smooth)) + 100, smooth, color=colours[name], label=name)
    axes.set(xlabel="reader", ylabel="chance of a click, mean of 100", ylim=(0, None))


if __name__ == "__main__":
    main()
