"""An evaluation on a log: what would the other policy have earned?

An agent draws a fifth of its decisions at random and logs them with their propensities. From that log alone
`dw.evaluate` says what other policies would have earned, with 95% intervals. Here the truth is known too: each policy
is also played in the same world.
"""

import tempfile

import numpy as np

import driftwise as dw


def world(rounds, seed):
    chance = np.random.default_rng(seed)
    arms = chance.standard_normal((6, 3))
    arms /= np.linalg.norm(arms, axis=1, keepdims=True)
    angle = np.pi * np.arange(rounds) / rounds
    return arms, 0.5 + 0.4 * np.c_[np.cos(angle), np.sin(angle), np.zeros(rounds)] @ arms.T, chance.random(rounds)


def live(agent, rounds, seed):
    arms, rates, luck = world(rounds, seed)
    prepared, earned = dw.ArmSet(arms), np.empty(rounds)
    for now in range(rounds):
        one = agent.decide(prepared)
        earned[now] = rates[now, one.arm]
        agent.reward(one.id, float(luck[now] < earned[now]))
    return float(earned.mean())


def main(rounds=4000, seed=0):
    others = {
        "Auto": dw.make("Auto", dim=3, link="logistic"),
        "remembers 200": dw.PosteriorUCB(dim=3, memory=dw.Fade(1 / 200), estimate="one-pass"),
        "forgets nothing": dw.PosteriorUCB(dim=3, memory=dw.Keep(), estimate="one-pass"),
    }
    found = {}
    with tempfile.TemporaryDirectory() as folder:
        logger = dw.Agent.for_clicks(3, epsilon=0.2, seed=seed)
        with logger.log_to(folder, arms=True):
            logged = live(logger, rounds, seed)
        for name, policy in others.items():
            by_log = dw.evaluate(policy, folder).estimates["DR"]
            truth = live(dw.Agent(policy, rewards=(0.0, 1.0)), rounds, seed)
            found[name] = (by_log.value, by_log.low, by_log.high, truth)
            said = f"by the log {by_log.value:.3f} ({by_log.low:.3f} to {by_log.high:.3f})"
            print(f"{name}: {said}, in truth {truth:.3f}")
    return {"logged": logged, **found}


def draw(axes, found):
    names = [name for name in found if name != "logged"]
    for place, name in enumerate(names):
        value, low, high, truth = found[name]
        axes.plot([low, high], [place, place], color="#0072b2", label="by the log, 95%" if not place else None)
        axes.plot([value], [place], "o", color="#0072b2", ms=6)
        axes.plot([truth], [place], "D", color="#d55e00", ms=6, label="in truth" if not place else None)
    axes.axvline(found["logged"], color="#767676", lw=0.8, ls=":")
    axes.set_yticks(range(len(names)), names)
    axes.set(xlabel="reward a round (dotted: the agent that logged)", ylim=(-0.7, len(names) - 0.3))
    axes.invert_yaxis()


if __name__ == "__main__":
    main()
