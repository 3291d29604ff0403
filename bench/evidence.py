"""The real sets, played by our policies and, with --rivals, by those of other packages.

    python bench/evidence.py [--rivals] [--only SET] [--rival NAME] [--draws 8] [--out DIR] [--envs DIR] [--dry]

As `driftwise evidence`, whose folder it shares: what was played before is not played again. Every rival has an
environment of its own, made here with the pinned versions, and plays in a process of its own. All settings of its grid,
which were written down before any was played, play the first two draws; the default and the best of these play all
draws. A slow rival plays the first rounds of a set only, and its row says how many. A rival whose environment cannot be
made, or that fails, is a row that says so. --dry plays nothing and writes the tables of what is there.
"""

from __future__ import annotations

import argparse
import hashlib
import inspect
import json
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import evidence_rivals as players
import evidence_table
from driftwise._internal.files import keep
from driftwise.data.outcomes import Outcomes
from driftwise.lab import sets
from driftwise.lab.evidence import run
from driftwise.lab.evidence.plays import Contender, Play, Plays, first_rounds, play_digest, summed
from driftwise.lab.sets.fetched import cache

PLAYERS = Path(players.__file__)


class RivalFailed(Exception):
    """A rival that cannot be installed, or whose process failed: its name and the last line that it printed."""


@dataclass(frozen=True)
class Rival:
    """A package: what its environment installs, its player, its settings by name (the default first), and the most
    rounds, and pairs of a round and an arm, that it plays of a set."""

    needs: tuple[str, ...]
    player: str
    settings: Mapping[str, Mapping[str, Any]]
    most: int = 1_000_000
    pairs: int = 20_000_000

    def rounds(self, log: Outcomes) -> int:
        """The rounds that it plays of a log, from the first on."""
        return first_rounds(log.rounds, min(self.most, self.pairs // len(log.names)))


# The most rounds of rivals that take about .2 ms a round, .3 ms, and .7 to 2 ms. MABWiser takes .4 ms an arm.
BRISK, STEADY, SLOW = 40_000, 20_000, 10_000

RIVALS = {
    "Vowpal Wabbit": Rival(("vowpalwabbit==9.11.9", "numpy==2.4.6"), "vw", {
        "squarecb": {}, "squarecb, power_t 0": {"more": "--power_t 0"},
        "squarecb, power_t 0, l 0.05": {"more": "--power_t 0 -l 0.05"},
        "squarecb γ 100, power_t 0, l 0.05": {"explore": "--squarecb --gamma_scale 100", "more": "--power_t 0 -l 0.05"},
        "cover 3": {"explore": "--cover 3"},
        "cover 3, power_t 0, l 0.05": {"explore": "--cover 3", "more": "--power_t 0 -l 0.05"},
    }, BRISK),
    "bayesianbandits": Rival(("bayesianbandits==1.5.0",), "bayesianbandits", {
        "no forgetting": {},
        **{f"{rule} {rate}": {"forget": rule, "rate": rate}
           for rule in ("exponential", "stabilised") for rate in (0.998, 0.9995, 0.9999)},
    }, SLOW),
    "pybandits": Rival(("pybandits==8.4.1",), "pybandits", {
        "no decay": {}, **{f"decay {rate}": {"decay": rate} for rate in (0.99, 0.999, 0.9999)},
    }, STEADY),
    "river LinUCB": Rival(("river==0.26.1",), "river", {
        "default": {}, "smoothing 0.99": {"smoothing": 0.99}, "smoothing 0.999": {"smoothing": 0.999},
        "β 100": {"beta": 100.0},
    }, SLOW),
    "MABWiser": Rival(("mabwiser==2.7.4",), "mabwiser", {
        "LinUCB": {}, "LinUCB 0.1": {"alpha": 0.1}, "LinTS": {"kind": "LinTS"},
        "LinTS 0.1": {"kind": "LinTS", "alpha": 0.1},
    }, 3_000, pairs=24_000),
    "LiteLLM": Rival(("numpy==2.4.6",), "litellm", {"tier 2": {}, "tier 1": {"tier": 1}, "tier 3": {"tier": 3}}),
    "ParetoBandit": Rival(("paretobandit==0.1.1",), "paretobandit", {
        "α 0.01": {}, "α 0.05, forget 0.997": {"alpha": 0.05, "forgetting_factor": 0.997},
        "α 0.1, forget 0.999": {"alpha": 0.1, "forgetting_factor": 0.999},
        "α 0.1, forget 0.9997": {"alpha": 0.1, "forgetting_factor": 0.9997},
        "α 1, forget 0.9997": {"alpha": 1.0, "forgetting_factor": 0.9997}, "α 1": {"alpha": 1.0},
    }),
    "contextualbandits": Rival(("contextualbandits==0.3.30",), "contextualbandits", {
        "LinUCB": {}, "LinUCB 0.1": {"alpha": 0.1}, "LinTS": {"kind": "LinTS"},
    }, SLOW // 2),
}  # fmt: skip


def environment(rival: Rival, folder: Path) -> Path:
    """The Python of the environment of a rival, made if need be."""
    digest = hashlib.sha256(" ".join(rival.needs).encode()).hexdigest()[:8]
    python = folder / f"{rival.player}-{digest}" / "bin" / "python"
    whole = python.parent.parent / "whole"
    if not whole.is_file():
        _said([sys.executable, "-m", "venv", "--clear", str(python.parent.parent)])
        _said([str(python), "-m", "pip", "install", "--quiet", *rival.needs])
        whole.touch()
    return python


def _said(command: Sequence[str]) -> None:
    """Run a command, or say why it failed by the last line that it printed."""
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        lines = [line for line in (done.stderr or done.stdout).splitlines() if line.strip()]
        raise RivalFailed(lines[-1].strip()[:160] if lines else f"exit {done.returncode}")


def context_of(log: Outcomes) -> np.ndarray:
    """The context of every round: 1 where arms are a basis, else the one block of features that all arms share."""
    if len(log._sets) == 1:
        return np.ones((log.rounds, 1))
    return np.ascontiguousarray(log._sets[:, 0].reshape(log.rounds, len(log.names), -1).sum(axis=1))


def contender(name: str, setting: str, envs: Path) -> Contender:
    """A rival with one of its settings, as what plays a log."""
    rival = RIVALS[name]
    values = rival.settings[setting]

    def play(log: Outcomes, seed: int) -> Play:
        rounds = rival.rounds(log)
        try:
            python = environment(rival, envs)
            with tempfile.TemporaryDirectory() as folder:
                given, out = Path(folder) / "log.npz", Path(folder) / "out.npz"
                np.savez(given, context=context_of(log)[:rounds], paid=log.paid[:rounds])
                words = [rival.player, json.dumps(dict(values)), str(given), str(out), str(seed)]
                _said([str(python), str(PLAYERS), *words])
                with np.load(out) as found:
                    return summed(log, found["earned"], found["arms"])
        except RivalFailed as error:
            raise RivalFailed(name, *error.args) from None

    sources = inspect.getsource(players.RIVALS[rival.player]), inspect.getsource(players.main)
    digest = play_digest(f"{rival.needs} {sorted(values.items())} {_limits(rival)} {sources}")
    return Contender(digest, play, shuffled=False, grid=name, default=setting == next(iter(rival.settings)))


def _limits(rival: Rival) -> str:
    return f"{rival.most}" if rival.pairs == Rival.pairs else f"{rival.most} {rival.pairs}"


def everyone(envs: Path, chosen: Sequence[str]) -> run.Contenders:
    """Ours and the rivals."""

    def who(plays: Plays) -> Mapping[str, Contender]:
        found = dict(run.ours(plays))
        for name in chosen:
            for setting in RIVALS[name].settings:
                found[f"{name}: {setting}"] = contender(name, setting, envs)
        return found

    return who


def add_less_ours(results: dict[str, Any], asked: argparse.Namespace, chosen: Sequence[str]) -> None:
    """Add to the rows of rivals what they earn less Auto on the draws and rounds that they played, which may be few."""
    for name, one in results["sets"].items():
        plays = Plays(name, sets.SETS[name], asked.out)
        who = everyone(asked.envs, chosen)(plays)
        for row in one["rows"]:
            for key, own in evidence_table.LESS.items():
                if who[row["policy"]].grid in chosen and own in who:
                    names, draws = (row["policy"], own), range(asked.draws)
                    both = [plays.read(each, who[each].digest, False, draws) for each in names]
                    apart = [theirs.reward - ours.reward[: len(theirs.reward)]
                             for theirs, ours in zip(*both, strict=False)]  # fmt: skip
                    row[key] = float(np.mean(apart)) if apart else None


def gathered(asked: argparse.Namespace, chosen: list[str]) -> dict[str, Any]:
    """Play, without the rivals that fail, and write results.json with the reasons of these."""
    words = "python bench/evidence.py" + (" --rivals" if asked.rivals else "") + f" --draws {asked.draws}"
    failed: dict[str, str] = {}
    while True:
        who = everyone(asked.envs, [name for name in chosen if name not in failed])
        try:
            results = run.evidence(asked.only, asked.out, asked.draws, command=words, who=who)
        except RivalFailed as error:
            name, reason = error.args
            failed[name] = reason
            print(f"{name}: left out: {reason}", file=sys.stderr)
        else:
            break
    results["rivals"] = {
        name: {"needs": list(RIVALS[name].needs), "settings": list(RIVALS[name].settings), "failed": failed.get(name)}
        for name in chosen
    }  # fmt: skip
    add_less_ours(results, asked, [name for name in chosen if name not in failed])
    keep(asked.out / "results.json", json.dumps(results, indent=1) + "\n")
    keep(asked.out / "table.md", evidence_table.tables(results))
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rivals", action="store_true")
    parser.add_argument("--only", action="append", default=[], choices=list(sets.SETS))
    parser.add_argument("--rival", action="append", choices=list(RIVALS), help="this rival; may be given again")
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--out", type=Path, default=Path("results/evidence"))
    parser.add_argument("--envs", type=Path, default=cache() / "rivals")
    parser.add_argument("--dry", action="store_true")
    asked = parser.parse_args()
    if asked.dry:
        Plays.missing = lambda *_: iter(())  # type: ignore[method-assign]
    gathered(asked, (asked.rival or list(RIVALS)) if asked.rivals else [])
    print((asked.out / "table.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
