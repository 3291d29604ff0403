"""Notifications: which hour, for whom, and then come the holidays.

Each day every user gets one message in one of six slots. Students open theirs in the evening, others in the morning,
until the holidays, when all get up late. `dw.Features` crosses the kind of user with the slot, so that the agent
learns the preference of each kind, and forgets it when it changes.
"""

import numpy as np

import driftwise as dw

SLOTS = (7, 10, 13, 16, 19, 22)
KINDS = ("student", "other")


def opened(kind, slot, holidays):
    """The chance that a message sent in this slot is opened."""
    best = 13 if holidays else 20 if kind == "student" else 8
    return 0.05 + 0.6 * np.exp(-(((slot - best) / 3.0) ** 2))


def main(days=80, users=60, seed=0):
    chance = np.random.default_rng(seed)
    items = {f"{slot}:00": {"slot": f"{slot}:00"} for slot in SLOTS}
    contexts = [{"kind": kind} for kind in KINDS]
    features = dw.Features.fit(contexts, items, cross=[("kind", "slot")])
    agent = dw.Agent.for_clicks(features.dim, features=features)
    hours, got = {kind: np.zeros(days) for kind in KINDS}, np.zeros(3)
    for day in range(days):
        sent = {kind: [] for kind in KINDS}
        for _ in range(users):
            kind = KINDS[int(chance.random() < 0.5)]
            one = agent.decide(context={"kind": kind}, items=items)
            rates = [opened(kind, slot, day >= days // 2) for slot in SLOTS]
            agent.reward(one.id, float(chance.random() < rates[one.arm]))
            sent[kind].append(SLOTS[one.arm])
            got += rates[one.arm], max(rates), np.mean(rates)
        for kind in KINDS:
            hours[kind][day] = np.median(sent[kind])
    print("opened: {:.0f}, at the best hours {:.0f}, at any hour {:.0f}".format(*got))
    return {"hours": hours, "got": got}


def draw(axes, found):
    for (kind, hours), colour in zip(found["hours"].items(), ("#8b1a5b", "#009e73"), strict=True):
        axes.plot(hours, color=colour, drawstyle="steps-mid", label={"other": "others"}.get(kind, kind + "s"))
    axes.axvline(len(hours) / 2, color="#767676", lw=0.8, ls=":")
    axes.set(xlabel="day (dotted: the holidays begin)", ylabel="hour sent, median of the day", ylim=(6, 23))
    axes.set_yticks(SLOTS)


if __name__ == "__main__":
    main()
