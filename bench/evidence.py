"""The real sets, played by our policies and, with --rivals, by those of other packages.

    python bench/evidence.py [--rivals] [--only SET] [--rival NAME] [--draws 8] [--out DIR] [--envs DIR] [--dry]

As `driftwise evidence`, whose folder it shares: what was played before is not played again. Every rival has an
environment of its own, made here with the pinned versions, and plays in a process of its own, at its default and at
every setting of a small grid; the best setting in hindsight is the best mean of all draws. A rival whose environment
cannot be made is a row that says so. --dry plays nothing and writes the tables of what is there.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from driftwise.data.outcomes import Outcomes
from driftwise.data.sets.fetched import cache
from driftwise.experiments.evidence import run
from driftwise.experiments.evidence.plays import Contender, Play, Plays, summed

PLAYERS = Path(__file__).with_name("evidence_rivals.py")


@dataclass(frozen=True)
class Rival:
    """A package: what its environment installs, its player, and settings by name, the default first."""

    needs: tuple[str, ...]
    player: str
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=lambda: {"default": {}})


RIVALS = {
    "Vowpal Wabbit": Rival(("vowpalwabbit==9.11.9", "numpy==2.4.6"), "vw", {
        "squarecb": {}, "squarecb, power_t 0": {"more": "--power_t 0"},
        "squarecb, power_t 0, l 0.05": {"more": "--power_t 0 -l 0.05"}, "cover 3": {"explore": "--cover 3"},
        "cover 3, power_t 0": {"explore": "--cover 3", "more": "--power_t 0"},
    }),
    "bayesianbandits": Rival(("bayesianbandits==1.5.0",), "bayesianbandits", {
        "no forgetting": {}, "exponential .9995": {"forget": "exponential", "rate": 0.9995},
        "exponential .998": {"forget": "exponential", "rate": 0.998},
        "stabilised .9995": {"forget": "stabilised", "rate": 0.9995},
        "stabilised .998": {"forget": "stabilised", "rate": 0.998},
    }),
    "pybandits": Rival(("pybandits==8.4.1",), "pybandits", {
        "no decay": {}, "decay .999": {"decay": 0.999}, "decay .9999": {"decay": 0.9999},
    }),
    "river LinUCB": Rival(("river==0.26.1",), "river", {
        "default": {}, "smoothing .999": {"smoothing": 0.999}, "smoothing .9999": {"smoothing": 0.9999},
    }),
    "MABWiser": Rival(("mabwiser==2.7.4",), "mabwiser", {
        "LinUCB": {}, "LinUCB .1": {"alpha": 0.1}, "LinTS": {"kind": "LinTS"},
        "LinTS .1": {"kind": "LinTS", "alpha": 0.1},
    }),
    "LiteLLM": Rival(("numpy==2.4.6",), "litellm", {"tier 2": {}, "tier 1": {"tier": 1}}),
    "ParetoBandit": Rival(("paretobandit==0.1.1",), "paretobandit", {
        "default": {}, "forget .999": {"forgetting_factor": 0.999},
        "forget .999, α .1": {"forgetting_factor": 0.999, "alpha": 0.1},
        "forget .9997, α .1": {"forgetting_factor": 0.9997, "alpha": 0.1}, "α 1": {"alpha": 1.0},
    }),
    "contextualbandits": Rival(("contextualbandits==0.3.30",), "contextualbandits", {
        "LinUCB": {}, "LinUCB .1": {"alpha": 0.1}, "LinTS": {"kind": "LinTS"},
    }),
}  # fmt: skip


def environment(rival: Rival, folder: Path) -> Path:
    """The Python of the environment of a rival, made if need be."""
    digest = hashlib.sha256(" ".join(rival.needs).encode()).hexdigest()[:8]
    python = folder / f"{rival.player}-{digest}" / "bin" / "python"
    whole = python.parent.parent / "whole"
    if not whole.is_file():
        subprocess.run([sys.executable, "-m", "venv", str(python.parent.parent)], check=True)
        subprocess.run([str(python), "-m", "pip", "install", "--quiet", *rival.needs], check=True)
        whole.touch()
    return python


def context_of(log: Outcomes) -> np.ndarray:
    """The context of every round: 1 where arms are a basis, else the one block of features that all arms share."""
    if len(log._sets) == 1:
        return np.ones((log.rounds, 1))
    return np.ascontiguousarray(log._sets[:, 0].reshape(log.rounds, len(log.names), -1).sum(axis=1))


def contender(rival: Rival, settings: Mapping[str, Any], envs: Path) -> Contender:
    """A rival with these settings, as what plays a log."""

    def play(log: Outcomes, seed: int) -> Play:
        python = environment(rival, envs)
        with tempfile.TemporaryDirectory() as folder:
            given, out = Path(folder) / "log.npz", Path(folder) / "out.npz"
            np.savez(given, context=context_of(log), paid=log.paid)
            words = [rival.player, json.dumps(dict(settings)), str(given), str(out), str(seed)]
            subprocess.run([str(python), str(PLAYERS), *words], check=True)
            with np.load(out) as found:
                return summed(log, found["earned"], found["arms"])

    text = f"{rival.needs} {sorted(settings.items())} {PLAYERS.read_text()}"
    return Contender(hashlib.sha256(text.encode()).hexdigest()[:16], play, shuffled=False)


def everyone(envs: Path, chosen: list[str]) -> run.Contenders:
    """Ours and the rivals."""

    def who(plays: Plays) -> Mapping[str, Contender]:
        found = dict(run.ours(plays))
        for name in chosen:
            for setting, values in RIVALS[name].settings.items():
                found[f"{name}: {setting}"] = contender(RIVALS[name], values, envs)
        return found

    return who


def hindsight(results: dict[str, Any]) -> str:
    """A line a set: static, Auto, the best half-life, and each rival at its default and its best setting."""
    lines = ["| set | static | Auto | clicks | best half-life | " + " | ".join(RIVALS) + " | best rival |"]
    lines.append("|---" * (6 + len(RIVALS)) + "|")
    for name, one in results["sets"].items():
        paid = {row["policy"]: (row["reward"], row["draws"]) for row in one["rows"]}
        ours = [f"{paid[who][0]:.4f}" if who in paid else "" for who in ("static", "Auto", "Auto, clicks")]
        halves = {who: paid[who] for who in paid if who.startswith("half-life")}
        half = max(halves, key=lambda who: halves[who], default="")
        cells, best = [*ours, f"{paid[half][0]:.4f} ({half.split()[1]})" if half else ""], ("none played", -np.inf)
        for rival in RIVALS:
            there = {who: paid[who] for who in paid if who.startswith(f"{rival}: ")}
            if not there:
                cells.append("not played")
                continue
            first, top = next(iter(there)), max(there, key=lambda who: there[who])
            cells.append(f"{there[first][0]:.4f}, {there[top][0]:.4f} ({top.split(': ')[1]}; {there[top][1]})")
            best = max(best, (top, there[top][0]), key=lambda pair: pair[1])
        lines.append(f"| {name} | " + " | ".join([*cells, best[0]]) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rivals", action="store_true")
    parser.add_argument("--only", action="append", default=[])
    parser.add_argument("--rival", action="append", choices=list(RIVALS), help="this rival; may be given again")
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--out", type=Path, default=Path("results/evidence"))
    parser.add_argument("--envs", type=Path, default=cache() / "rivals")
    parser.add_argument("--dry", action="store_true")
    asked = parser.parse_args()
    chosen = (asked.rival or list(RIVALS)) if asked.rivals else []
    for name in [] if asked.dry else list(chosen):
        try:
            environment(RIVALS[name], asked.envs)
        except subprocess.CalledProcessError as error:
            print(f"{name}: left out: its environment cannot be made ({error})", file=sys.stderr)
            chosen.remove(name)
    words = "python bench/evidence.py" + (" --rivals" if asked.rivals else "") + f" --draws {asked.draws}"
    if asked.dry:
        Plays.missing = lambda *_: iter(())  # type: ignore[method-assign]
    results = run.evidence(asked.only, asked.out, asked.draws, command=words, who=everyone(asked.envs, chosen))
    print(hindsight(results))


if __name__ == "__main__":
    main()
