"""Memories by their flag: the phases that branch at run time on the memory, for live entries and adaptations.

Every file of this folder that has a CODE is a memory. `sums` is for linear lanes, `atoms` for generalized linear ones,
whose history is atoms as well; `trends` also knows memories for which θ moves.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from functools import cache
from types import ModuleType
from typing import Any

from driftwise.kernels import memories, piece
from driftwise.kernels.binding import branching
from driftwise.kernels.memories import keep
from driftwise.kernels.memories.phases import PIECES, Phases, made_of, phases_of, pieces_of
from driftwise.kernels.point import MEMORY


def _files() -> dict[int, ModuleType]:
    """The memories by their codes."""
    names = [one.name for one in pkgutil.iter_modules(memories.__path__) if one.name != "any"]
    files = [importlib.import_module(f"{memories.__name__}.{name}") for name in names]
    found = {one.CODE: one for one in files if hasattr(one, "CODE")}
    return dict(sorted(found.items()))


def _asking(name: str, among: dict[int, dict[str, Callable[..., Any]]]) -> Callable[..., Any]:
    """A piece that branches on the flag: Keep's, except for memories that have their own."""
    keeps = among[keep.CODE][name]
    own = {code: pieces[name] for code, pieces in among.items() if pieces[name] is not keeps}
    asks: Callable[..., Any] = branching(name, MEMORY, own, keeps)
    return piece(asks)


def _phases(name: str, moves: bool, atoms: bool) -> Phases:
    """The phases of the memory in the flag; with `moves`, also of memories for which θ moves."""
    among = {code: pieces_of(one, atoms) for code, one in MEMORIES.items() if moves or getattr(one, "STILL", True)}
    return made_of(name, {one: _asking(one, among) for one in PIECES})


@cache
def lessons_of(code: int, atoms: bool = False) -> Phases:
    """The phases of the one memory with this code, for rounds that use no other."""
    return phases_of(MEMORIES[code], atoms)


MEMORIES = _files()
sums = _phases("any", moves=False, atoms=False)
atoms = _phases("any_atoms", moves=False, atoms=True)
trends = _phases("any_trend", moves=True, atoms=False)
