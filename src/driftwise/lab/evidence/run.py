"""The command `driftwise evidence`: play what is missing, then write results.json and the page."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from driftwise import __version__
from driftwise._internal.files import keep
from driftwise._internal.progress import bar
from driftwise._internal.validate import one_of, whole
from driftwise.errors import BadInput
from driftwise.lab import sets
from driftwise.lab.evidence import page
from driftwise.lab.evidence.plays import Contender, Plays, contenders
from driftwise.lab.evidence.rows import rows, story

Contenders = Callable[[Plays], Mapping[str, Contender]]


def ours(plays: Plays) -> Mapping[str, Contender]:
    """Our own policies for a set."""
    return contenders(plays.facts.dim, plays.listed.clicks)


def check_asked(only: Sequence[str], draws: int) -> None:
    """Check what is to be played, before a folder is made for it."""
    whole("draws", draws, 1, "pass at least 8 for numbers to publish")
    for name in only:
        one_of("only", name, list(sets.SETS))


def evidence(
    only: Sequence[str], folder: Path, draws: int = 8, *, command: str, who: Contenders = ours,
    progress: bool | None = None,
) -> dict[str, Any]:
    """Play every set, or only the named ones. Plays that are stored with the same sources are read instead.

    A set that cannot be fetched gets a row with the reason. Returns the contents of results.json.
    """
    check_asked(only, draws)
    found, missing = [], dict[str, str]()
    for name in only or sets.SETS:
        plays = Plays(name, sets.SETS[name], folder)
        try:
            found.append(_one(plays, draws, who, progress))
        except BadInput as error:
            if error.parameter not in (name, "prompts", "data"):
                raise
            missing[name] = str(error)
            print(f"{name}: left out: {error}", file=sys.stderr)
    results = {"version": __version__, "command": command, "sets": {one.name: _plain(one) for one in found},
               "missing": missing}  # fmt: skip
    keep(folder / "results.json", json.dumps(results, indent=1) + "\n")
    page.write(found, missing, folder, command)
    return results


def _one(plays: Plays, draws: int, who: Contenders, progress: bool | None) -> page.PlayedSet:
    chosen = who(plays)
    while todo := list(plays.missing(chosen, draws)):
        with bar(plays.name, len(todo), progress) as tick:
            for name, shuffled, number in todo:
                plays.play(chosen, name, shuffled, number)
                tick(1)
    time, mixed = (
        {name: plays.read(name, one.digest, shuffled, range(draws)) for name, one in chosen.items()}
        for shuffled in (False, True)
    )
    definition = " ".join((getattr(sets, plays.name).__doc__ or "").split())
    told = story(plays.facts, time)
    return page.PlayedSet(plays.name, definition, plays.listed.terms, plays.facts, rows(time, mixed), time, told)


def _plain(found: page.PlayedSet) -> dict[str, Any]:
    facts = found.facts
    return {
        "rounds": facts.rounds, "arms": len(facts.names), "dim": facts.dim, "best_of_every_round": facts.best,
        "terms": found.terms, "rows": [row.to_dict() for row in found.rows],
        "story": None if found.story is None else page.told_of_set(found.story),
    }  # fmt: skip
