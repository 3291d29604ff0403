"""The paper's panels: a world, the policies of its legend, and which published curve each answers to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from driftwise.errors import BadInput
from driftwise.policies.base import Policy
from driftwise.policies.names import make
from driftwise.worlds import Turn, World


@dataclass(frozen=True)
class Entry:
    """One line of a panel: its label, its policy, and the published curve's name if there is one."""

    label: str
    policy: Policy
    published: str | None = None


@dataclass(frozen=True)
class Panel:
    """One picture of the paper: everybody plays the same world."""

    key: str
    title: str
    world: World
    entries: tuple[Entry, ...]
    notes: tuple[str, ...] = ()


def lb() -> tuple[Panel, ...]:
    """Figure 1: linear bandits, one turn of θ in 6,000 rounds."""
    world = Turn()
    entries = [Entry(name, make(name, **world.facts), name) for name in ("OFUL", "RestartUCB", "D-LinUCB")]
    slip = make("D-LinUCB", two_matrix="as-published", **world.facts)
    entries += [
        Entry("D-LinUCB as published", slip, "D-LinUCB"),
        Entry("LB-WeightUCB", make("LB-WeightUCB", **world.facts), "LB-WeightUCB"),
        Entry("SW-UCB", make("SW-UCB", **world.facts)),
    ]
    notes = (
        "arms have unit norm and stay fixed over the rounds of a trial; the text leaves both open",
        "D-LinUCB as published repeats the slip of its authors' code, whose bonus collapses to LB-WeightUCB's",
    )
    return (Panel("LB", "Linear bandits", world, tuple(entries), notes),)


EXPERIMENTS: dict[str, Callable[[], tuple[Panel, ...]]] = {"lb": lb}


def panels(name: str) -> tuple[Panel, ...]:
    """The panels of an experiment by its name on the command line."""
    if name not in EXPERIMENTS:
        raise BadInput("experiment", name, "one of " + ", ".join(EXPERIMENTS), "try `driftwise reproduce lb`")
    return EXPERIMENTS[name]()
