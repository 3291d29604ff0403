"""The worlds for judging adaptation to unknown drift: a named list, not a product of all factors."""

from __future__ import annotations

from driftwise.worlds import Jumps, Still, StopAndGo, Turn, Walk, World

HORIZON = 6000


def linear_worlds(horizon: int = HORIZON) -> dict[str, World]:
    """Linear worlds: slow, fast, sudden and no drift, two dimensions and five, loud and quiet, fixed and fresh arms."""
    T = horizon
    return {
        "still": Still(horizon=T),
        "quarter turn": Turn(horizon=T, turns=0.25),
        "one turn": Turn(horizon=T),
        "four turns": Turn(horizon=T, turns=4.0),
        "3 jumps": Jumps(horizon=T, jumps=3),
        "5 jumps": Jumps(horizon=T, jumps=5),
        "20 jumps": Jumps(horizon=T, jumps=20),
        "half still, half fast": StopAndGo(horizon=T, turns=2.0),
        "walk .002": Walk(horizon=T, step=0.002),
        "walk .005": Walk(horizon=T, step=0.005),
        "walk .02": Walk(horizon=T, step=0.02),
        "still, quiet": Still(horizon=T, noise=0.3),
        "one turn, quiet": Turn(horizon=T, noise=0.3),
        "3 jumps, quiet": Jumps(horizon=T, jumps=3, noise=0.3),
        "still, fresh": Still(horizon=T, fresh=True),
        "one turn, fresh": Turn(horizon=T, fresh=True),
        "still, d=5": Still(horizon=T, dim=5),
        "one turn, d=5": Turn(horizon=T, dim=5),
        "20 jumps, d=5": Jumps(horizon=T, dim=5, jumps=20),
        "walk .005, d=5": Walk(horizon=T, dim=5, step=0.005),
        "one turn, d=5, fresh": Turn(horizon=T, dim=5, fresh=True),
        "still, d=5, quiet": Still(horizon=T, dim=5, noise=0.3),
    }


def logistic_worlds(horizon: int = HORIZON, radii: tuple[float, ...] = (1.0, 5.0)) -> dict[str, World]:
    """Worlds of clicks, with θ of these norms."""
    T = horizon
    worlds: dict[str, World] = {}
    for S in radii:
        worlds[f"still, S={S:.0f}"] = Still(horizon=T, radius=S, reward="bernoulli")
        worlds[f"one turn, S={S:.0f}"] = Turn(horizon=T, radius=S, reward="bernoulli")
        worlds[f"quarter turn, S={S:.0f}"] = Turn(horizon=T, turns=0.25, radius=S, reward="bernoulli")
        worlds[f"four turns, S={S:.0f}"] = Turn(horizon=T, turns=4.0, radius=S, reward="bernoulli")
        worlds[f"3 jumps, S={S:.0f}"] = Jumps(horizon=T, jumps=3, radius=S, reward="bernoulli")
        worlds[f"20 jumps, S={S:.0f}"] = Jumps(horizon=T, jumps=20, radius=S, reward="bernoulli")
        worlds[f"walk .005, S={S:.0f}"] = Walk(horizon=T, step=0.005, radius=S, reward="bernoulli")
    return worlds
