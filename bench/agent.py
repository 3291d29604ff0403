"""The cost of an agent above that of its policy: decide + reward against choose + learn, in one run.

    python bench/agent.py [--repeats 9]

Processor time of the thread, medians over interleaved repeats: the machines are shared. At d=10 with 50 arms the
difference is counted in compiled rounds of the same run (12 are allowed); at 10,000 arms with d=32 the ratio is (1.1).
What an id of the caller's costs, for which all arms are summed up, is told beside it.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import driftwise as dw
from driftwise._internal.python_first import compile_at_once
from linear import play_once, tape_of

compile_at_once()  # times of compiled code are measured


def spent(policy, arms, times: int) -> tuple[float, float, float]:
    """Microseconds of a round of the policy, of an agent, and of an agent with ids of the caller's."""
    state, found = policy.start(), []
    for live, named in ((False, False), (True, False), (True, True)):
        agent = dw.Agent(policy, rewards=(-1.0, 1.0), remember=1000)
        begun = time.thread_time()
        for t in range(times):
            value = 0.3 if t % 2 else 0.1
            if live:
                agent.reward(agent.decide(arms, id=f"request {t}" if named else None).id, value)
            else:
                policy.learn(state, arms, policy.choose(state, arms).arm, value)
        found.append((time.thread_time() - begun) / times * 1e6)
    return found[0], found[1], found[2]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    world = dw.worlds.Turn(dim=10, arms=50)
    policy, tape = dw.make("LB-WeightUCB", **world.facts), tape_of(world)
    small, rows = dw.ArmSet(np.ascontiguousarray(tape.arms[0].T)), np.ascontiguousarray(tape.arms[0].T)
    chance = np.random.default_rng(0).standard_normal((10_000, 32))
    many = chance / np.linalg.norm(chance, axis=1, keepdims=True)
    wide = dw.make("LB-WeightUCB", dim=32, horizon=6000, path_length=6.0)
    for arms, one in ((small, policy), (rows, policy), (many, wide)):
        spent(one, arms, 3)
    play_once(policy, world, tape)
    table: list[list[float]] = []
    for _ in range(options.repeats):
        begun = time.thread_time()
        play_once(policy, world, tape)
        unit = (time.thread_time() - begun) / len(tape.theta) * 1e6
        table.append([unit, *spent(policy, small, 2000), *spent(policy, rows, 2000), *spent(wide, many, 12)])
    unit, bare, agent, named, bare_rows, agent_rows, named_rows, bare_many, agent_many, named_many = np.median(
        table, axis=0
    )
    extra, ratio = (agent - bare) / unit, agent_many / bare_many
    print(f"a compiled round, d=10, n=50: {unit:.2f} us")
    print(f"prepared arms: bare {bare:.1f} us, agent {agent:.1f} us: {extra:.1f} rounds above (allowed 12)")
    above = (agent_rows - bare_rows) / unit
    print(f"rows:          bare {bare_rows:.1f} us, agent {agent_rows:.1f} us: {above:.1f} rounds above")
    print(f"10,000 arms x 32: bare {bare_many:.0f} us, agent {agent_many:.0f} us: {ratio:.3f} (allowed 1.1)")
    print(
        f"an id of the caller's: {named - agent:+.1f} us with prepared arms, {named_rows - agent_rows:+.1f} us with "
        f"rows, {named_many - agent_many:+.0f} us with 10,000 rows x 32"
    )
    raise SystemExit(0 if extra <= 12.0 and ratio <= 1.1 else 1)


if __name__ == "__main__":
    main()
