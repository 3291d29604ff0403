"""The bench of the default policy: regret beside what a user has without tuning, and beside the best in hindsight.

    python bench/default.py --half seen|unseen|fresh --rewards values|clicks [--trials 30] [--only WORD] [--policy SPEC]
        [--rivals] [--cache DIR] [--out JSON [--resume]]

The seen half (default_seen.py) is for tuning. The unseen half (default_unseen.py) was played once; its numbers then
showed a defect of looks, which was mended, so that it belongs to tuning since. The fresh half (default_fresh.py) was
written and committed before that was mended, by an author who knew none of these, and is played once, at the end. A
trial is a stream by its seed, the same for all. Results of rivals are kept in DIR, a file a kind, and are found again
unless the stream or the rivals have changed; `--rivals` fills DIR and does not play the policy. SPEC is a name of the
catalogue with fields ("Auto", "Auto:looks=1.0"), or FILE.py:FUNCTION, a function of (dim, rewards) that
gives a policy with start(seed), choose(state, arms) and learn(state, arms, arm, reward). --only takes kinds whose name
contains WORD. The columns: "practical" is the least mean of five rivals that are told nothing, "hindsight" the least of
44 posterior UCBs by memory and quantile, told noise and scales (default_rivals.py). The goal is ≤ 1.5 × the larger of
both + 0.5√T. From Python:

    import sys; sys.path.insert(0, "bench")
    from default import registry, regret
    draw, rewards, text = registry("seen")["unseen_rise"]
    regret(dw.make("Auto", dim=6), draw(seed=0, T=6000), seed=0)
"""

from __future__ import annotations

import argparse
import ast
import json
import math
import runpy
import tempfile
import time
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import default_fresh
import default_rivals
import default_seen
import default_unseen
import driftwise as dw
from default_unseen import HORIZON, Kind, Stream

FULL, SHORT = 10, 8
"""The whole grid plays the first FULL trials, and its SHORT best of those play the others."""
LONG = 10
"""The most trials of a kind whose horizon is longer than usual."""
HALVES: dict[str, Any] = {"seen": default_seen, "unseen": default_unseen, "fresh": default_fresh}
Make = Callable[[int, str], Any]


def registry(half: str) -> dict[str, tuple[Kind, str, str]]:
    """The kinds of a half, by name."""
    return HALVES[half].REGISTRY


def regret(policy: Any, stream: Stream, seed: int = 0) -> float:
    """What a policy loses on a stream, played live: start, choose, learn.

    A decision that the policy refuses is played at random, and nothing is learned from it.
    """
    arms, means, rewards = stream
    state, total, best = policy.start(seed), 0.0, means.max(axis=1)
    fixed = dw.ArmSet(arms) if arms.ndim == 2 else None
    for t in range(len(means)):
        offered = arms[t] if fixed is None else fixed
        try:
            choice = policy.choose(state, offered)
        except dw.BadInput:
            total += float(best[t] - means[t].mean())
            continue
        arm = int(getattr(choice, "arm", choice))
        total += float(best[t] - means[t, arm])
        policy.learn(state, offered, arm, float(rewards[t, arm]))
    return total


def maker(spec: str) -> Make:
    """What makes a policy from a dimension and "values" or "clicks"."""
    name, _, fields = spec.partition(":")
    if name.endswith(".py"):
        return runpy.run_path(name)[fields]  # type: ignore[no-any-return]
    pairs = (one.partition("=") for one in fields.split(",") if one)
    told = {key: ast.literal_eval(value) for key, _, value in pairs}
    return lambda dim, rewards: dw.make(name, dim=dim, **({"link": "logistic"} if rewards == "clicks" else {}), **told)


class Trials:
    """The streams of a kind and what its rivals lost on them, kept in a file."""

    def __init__(self, half: str, name: str, cache: Path, trials: int) -> None:
        self.draw, self.rewards, _ = registry(half)[name]
        self.T = default_seen.HORIZONS.get(name, HORIZON)
        self.trials = trials if self.T <= HORIZON else min(trials, LONG)
        self.file = cache / f"{half}-{''.join(c if c.isalnum() else '_' for c in name)}.json"
        self.kept: dict[str, dict[str, Any]] = json.loads(self.file.read_text()) if self.file.exists() else {}

    def stream(self, seed: int) -> Stream:
        return self.draw(seed, self.T)

    def rivals(self) -> dict[str, float]:
        """Mean regret: the best practical rival and the best in hindsight by name, and random play."""
        for seed in range(self.trials):
            self._trial(seed, None if seed < FULL else self._short())
        rows = [self.kept[str(seed)] for seed in range(self.trials)]
        means = {
            key: {name: float(np.mean([row[key][name] for row in rows])) for name in rows[-1][key]}
            for key in ("practical", "grid")
        }
        best = {key: min(means[key], key=means[key].__getitem__) for key in means}
        return {
            "practical": means["practical"][best["practical"]], "practical is": best["practical"],
            "hindsight": means["grid"][best["grid"]], "hindsight is": best["grid"],
            "random": float(np.mean([row["random"] for row in rows])),
        }  # type: ignore[dict-item]  # fmt: skip

    def _short(self) -> list[str]:
        """The best of the grid on the first trials."""
        rows = [self.kept[str(seed)]["grid"] for seed in range(FULL)]
        return sorted(rows[0], key=lambda name: float(np.mean([row[name] for row in rows])))[:SHORT]

    def _trial(self, seed: int, only: list[str] | None) -> None:
        """Play the rivals in a trial, unless they are known."""
        stream = self.stream(seed)
        check = zlib.crc32(stream.rewards.tobytes(), zlib.crc32(stream.arms.tobytes()))
        mark = f"{default_rivals.VERSION} {self.T} {check}"
        known = self.kept.get(str(seed), {})
        if known.get("mark") == mark and set(only or ()) <= known["grid"].keys():
            return
        self.kept[str(seed)] = {
            "mark": mark, "random": default_rivals.random_play(stream),
            "practical": default_rivals.practical(stream, self.rewards, seed),
            "grid": default_rivals.grid(stream, self.rewards, seed, only),
        }  # fmt: skip
        self.file.parent.mkdir(parents=True, exist_ok=True)
        fresh = self.file.with_suffix(".new")
        fresh.write_text(json.dumps(self.kept))
        fresh.replace(self.file)


def goal(row: dict[str, Any]) -> float:
    """The most that the policy should lose."""
    return 1.5 * max(row["practical"], row["hindsight"]) + 0.5 * math.sqrt(row["T"])


HEAD = "| world | policy | ± | practical | hindsight | random | /practical | /hindsight | goal |"


def line(name: str, row: dict[str, Any]) -> str:
    """A row of the table."""
    lost = np.array(row["lost"])
    mean, error = lost.mean(), lost.std(ddof=1) / math.sqrt(len(lost)) if len(lost) > 1 else math.nan
    number = ".3g" if mean < 10 else ".0f"
    numbers = [mean, error, row["practical"], row["hindsight"], row["random"]]
    ratios = [mean / row["practical"], mean / row["hindsight"]]
    cells = [f"{value:{number}}" for value in numbers] + [f"{ratio:.2f}" for ratio in ratios]
    return f"| {name} | " + " | ".join(cells) + f" | {'yes' if mean <= goal(row) else f'no ({goal(row):.0f})'} |"


def summary(rows: dict[str, dict[str, Any]]) -> str:
    """Geometric means, and the worst kinds."""
    text = []
    for key in ("hindsight", "practical"):
        ratios = {name: float(np.mean(row["lost"])) / row[key] for name, row in rows.items()}
        worst = max(ratios, key=ratios.__getitem__)
        mean = math.exp(float(np.mean(np.log(list(ratios.values())))))
        text.append(f"to {key}: geometric mean {mean:.3f}, largest {ratios[worst]:.2f} ({worst})")
    reached = sum(float(np.mean(row["lost"])) <= goal(row) for row in rows.values())
    return "\n".join([*text, f"goal reached: {reached} of {len(rows)}"])


def played(options: argparse.Namespace) -> str:
    """What a row was made with, as far as the command says it."""
    return f"{options.policy}, {options.trials} trials"


def play(half: str, name: str, options: argparse.Namespace) -> dict[str, Any]:
    """A kind's rivals, and what the policy loses in each trial."""
    kind = Trials(half, name, options.cache, options.trials)
    row: dict[str, Any] = {"T": kind.T, "played": played(options), **kind.rivals(), "lost": []}
    begun = time.thread_time()
    for seed in range(0 if options.rivals else kind.trials):
        stream = kind.stream(seed)
        policy = maker(options.policy)(stream.arms.shape[-1], kind.rewards)
        row["lost"].append(regret(policy, stream, seed))
    row["ms a round"] = 1000.0 * (time.thread_time() - begun) / kind.T / max(1, len(row["lost"]))
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--half", choices=tuple(HALVES), default="seen")
    parser.add_argument("--rewards", choices=("values", "clicks"), required=True)
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--only", default="", help="kinds whose name contains this")
    parser.add_argument("--policy", default="Auto")
    parser.add_argument("--rivals", action="store_true", help="fill the cache, and do not play the policy")
    parser.add_argument("--cache", type=Path, default=Path(tempfile.gettempdir()) / "driftwise-default")
    parser.add_argument("--out", type=Path, help="what was found, a row a kind")
    parser.add_argument("--resume", action="store_true", help="keep --out's rows of this policy and trials")
    options = parser.parse_args()
    names = [name for name, (_, rewards, _) in registry(options.half).items()
             if rewards == options.rewards and options.only in name]  # fmt: skip
    rows: dict[str, dict[str, Any]] = {}
    if options.resume and options.out and options.out.exists():
        known = json.loads(options.out.read_text())
        rows = {name: row for name, row in known.items() if row["played"] == played(options)}
    print(f"{HEAD}\n{'|---' * (HEAD.count('|') - 1)}|")
    for name in names:
        rows[name] = rows.get(name) or play(options.half, name, options)
        print(f"| {name} | known |" if options.rivals else line(name, rows[name]), flush=True)
        if options.out and not options.rivals:
            options.out.write_text(json.dumps(rows))
    if not options.rivals:
        print("\n" + summary({name: rows[name] for name in names}))
    print(f"{played(options)}, digest of the fresh half {default_fresh.digest()}")


if __name__ == "__main__":
    main()
