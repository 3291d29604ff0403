"""The paper's panels: a world, the policies of its legend, and which published curve each answers to."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from driftwise.errors import BadInput
from driftwise.policies.base import Policy
from driftwise.policies.names import make
from driftwise.worlds import Jumps, Turn, World


@dataclass(frozen=True)
class Entry:
    """One line of a panel: its label, its policy, the published curve's name if any, and whether it is drawn."""

    label: str
    policy: Policy
    published: str | None = None
    drawn: bool = True


@dataclass(frozen=True)
class Panel:
    """One picture of the paper: everybody plays the same world."""

    key: str
    title: str
    world: World
    entries: tuple[Entry, ...]
    notes: tuple[str, ...] = ()


_ARMS = "arms have unit norm and stay fixed over the rounds of a trial; the text leaves both open"


def _banks(weight: str, world: World) -> tuple[Entry, Entry]:
    """The bank with the theorem's radii, and with its own exploration."""
    name = f"Bank+{weight}"
    return Entry(f"{name} e=1", make(name, exploration=1.0, **world.facts)), Entry(name, make(name, **world.facts))


def lb() -> tuple[Panel, ...]:
    """Figure 1: linear bandits, one turn of θ in 6,000 rounds."""
    world = Turn()
    entries = [Entry(name, make(name, **world.facts), name) for name in ("OFUL", "RestartUCB", "D-LinUCB")]
    slip = make("D-LinUCB", two_matrix="as-published", **world.facts)
    entries += [
        Entry("D-LinUCB as published", slip, "D-LinUCB"),
        Entry("LB-WeightUCB", make("LB-WeightUCB", **world.facts), "LB-WeightUCB"),
        Entry("SW-UCB", make("SW-UCB", **world.facts)),
        Entry("MASTER+OFUL n=0", make("MASTER+OFUL", n0=0, **world.facts), "MASTER+OFUL n=0"),
        Entry("MASTER+OFUL n=13", make("MASTER+OFUL", n0=13, **world.facts), "MASTER+OFUL n=13"),
        Entry("BOB+LB-WeightUCB", make("BOB+LB-WeightUCB", **world.facts)),
        *_banks("LB-WeightUCB", world),
    ]
    notes = (
        _ARMS,
        "D-LinUCB as published repeats the slip of its authors' code, whose bonus collapses to LB-WeightUCB's",
    )
    return (Panel("LB", "Linear bandits", world, tuple(entries), notes),)


# The paper sets its experiments' noise as R = 1, the text leaves it open; R = 1/2 is what Bernoulli rewards have.
PAPER_R = 1.0


def glb() -> tuple[Panel, ...]:
    """Figure 2, left: generalized linear bandits with logistic rewards, θ of norm 1 and 5."""
    return tuple(_glb(S) for S in (1.0, 5.0))


def _glb(S: float) -> Panel:
    world = Turn(radius=S, reward="bernoulli")
    names = ("GLM-UCB", "GLB-RestartUCB", "GLB-WeightUCB")
    entries = [Entry(name, make(name, R=PAPER_R, **world.facts), name) for name in names]
    entries += [Entry(f"{name} R=1/2", make(name, **world.facts), name, drawn=False) for name in names]
    entries += [
        Entry("GLB-SW", make("GLB-SW", R=PAPER_R, **world.facts)),
        Entry("MASTER+GLM-UCB", make("MASTER+GLM-UCB", n0=13, R=PAPER_R, **world.facts), "MASTER+GLM-UCB"),
        Entry("BVD-GLM-UCB", make("BVD-GLM-UCB", R=PAPER_R, **world.facts), "BVD-GLM-UCB"),
        Entry("BVD-GLM-UCB origin", make("BVD-GLM-UCB", R=PAPER_R, tie="origin", **world.facts), "BVD-GLM-UCB"),
        Entry("BOB+GLB-WeightUCB", make("BOB+GLB-WeightUCB", R=PAPER_R, **world.facts)),
        *_banks("GLB-WeightUCB", world),
    ]
    notes = (
        _ARMS,
        "R = 1 fits the published curves better; R = 1/2, which is valid for Bernoulli rewards, stands beside it",
        "BVD-GLM-UCB's source takes any point of an intersection, and which one decides: the nearest to the estimate "
        "and the origin are shown; the published curve cannot be recovered from the text",
    )
    return Panel(f"GLB_S{S:.0f}", f"Generalized linear bandits, S = {S:.0f}", world, tuple(entries), notes)


def scb() -> tuple[Panel, ...]:
    """Figure 2, right: self-concordant bandits in the same worlds."""
    return tuple(_scb(S) for S in (1.0, 5.0))


def _scb(S: float) -> Panel:
    world = Turn(radius=S, reward="bernoulli")
    entries = [Entry(name, make(name, **world.facts), name) for name in ("LogUCB1", "SCB-RestartUCB", "SCB-WeightUCB")]
    entries += [
        Entry("SCB-SW", make("SCB-SW", **world.facts)),
        Entry("MASTER+LogUCB1", make("MASTER+LogUCB1", n0=13, **world.facts), "MASTER+LogUCB1"),
        Entry("BOB+SCB-WeightUCB", make("BOB+SCB-WeightUCB", **world.facts)),
        *_banks("SCB-WeightUCB", world),
    ]
    notes = (_ARMS, "the self-concordant radius uses the range m = 1 of the rewards; no R enters it")
    return Panel(f"SCB_S{S:.0f}", f"Self-concordant bandits, S = {S:.0f}", world, tuple(entries), notes)


def piecewise() -> tuple[Panel, ...]:
    """Appendix D's setting: logistic rewards and a parameter that jumps four times; the paper plots no such figure."""
    return tuple(_piecewise(S) for S in (1.0, 5.0))


def _piecewise(S: float) -> Panel:
    world = Jumps(jumps=4, radius=S, reward="bernoulli")
    names = ("SCB-PW-WeightUCB", "SC-D-GLUCB", "SCB-WeightUCB", "SCB-RestartUCB", "LogUCB1", "OFULog-r")
    entries = [Entry(name, make(name, **world.facts)) for name in names]
    entries.insert(1, Entry("SCB-PW-WeightUCB convex", make("SCB-PW-WeightUCB", set="convex", **world.facts)))
    notes = (
        _ARMS,
        "the convex set around the paper's holds the whole ball at this size, so it plays the longest arm throughout",
    )
    return Panel(f"PW_S{S:.0f}", f"Piecewise stationary, four jumps, S = {S:.0f}", world, tuple(entries), notes)


EXPERIMENTS: dict[str, Callable[[], tuple[Panel, ...]]] = {"lb": lb, "glb": glb, "scb": scb, "piecewise": piecewise}


def panels(name: str) -> tuple[Panel, ...]:
    """The panels of an experiment by its name on the command line."""
    if name not in EXPERIMENTS:
        raise BadInput("experiment", name, "one of " + ", ".join(EXPERIMENTS), "try `driftwise reproduce lb`")
    return EXPERIMENTS[name]()
