"""The cost of making arms from a context, beside the choice among them: 50 items at d=181, in one run.

    python bench/features.py [--repeats 9]

Processor time of the thread, medians over interleaved repeats. The ratio of `Encoder.arms` to choose + learn of
LinearUCB at that dimension may be 0.25.
"""

from __future__ import annotations

import argparse
import statistics
import time

import driftwise as dw
from driftwise.tables import Encoder


def declared() -> dw.Features:
    """An intercept, four fields and two crosses: 181 numbers."""
    number, levels, hashed = dw.Features.number, dw.Features.levels, dw.Features.hashed
    return dw.Features(
        context={"hour": number(12.0, 6.0), "device": levels(("phone", "desktop", "tv")), "user": hashed(15)},
        item={"genre": levels(tuple("abcdefg"))},
        cross=[("user", "genre"), ("device", "genre")],
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=9)
    options = parser.parse_args()
    features = declared()
    items = {f"item {k}": {"genre": "abcdefg"[k % 7]} for k in range(50)}
    contexts = [{"hour": k % 24, "device": ("phone", "tv")[k % 2], "user": f"u{k}"} for k in range(200)]
    encoder, names = Encoder(features), list(items)
    encoder.know(items)
    policy = dw.LinearUCB(dim=features.dim, memory=dw.Fade(0.001), lam=1.0, delta=0.01)
    state, table = policy.start(), []
    for _ in range(options.repeats + 1):
        begun = time.thread_time()
        sets = [encoder.arms(context, names) for context in contexts]
        middle = time.thread_time()
        for arms in sets:
            policy.learn(state, arms, policy.choose(state, arms).arm, 0.3)
        table.append((middle - begun, time.thread_time() - middle))
    encoding, playing = (statistics.median(column) / len(contexts) * 1e6 for column in zip(*table[1:], strict=True))
    print(f"d = {features.dim}, 50 items: arms {encoding:.0f} us, choose + learn {playing:.0f} us: "
          f"{encoding / playing:.2f} (allowed 0.25)")
    raise SystemExit(0 if encoding <= 0.25 * playing else 1)


if __name__ == "__main__":
    main()
