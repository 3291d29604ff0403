"""A log reduced to sums, part by part (docs/contract.md#logs): Σw xx', Σw r x, Σw, Σw² and n at a tick, which add up.

A part is reduced to the tick of its own last reward, so its sums stay valid when parts are added later. Adding brings
both sides to the later tick by multiplying with γ^(ticks between). The result is the state that learning all rewards
gives, to 1e-12, because weights of linear policies that keep or fade depend on age only.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from driftwise._internal import container
from driftwise.agent.agent import Agent
from driftwise.agent.parts import parts_of
from driftwise.errors import BadInput
from driftwise.kernels.point import Floats
from driftwise.policies.linear import LinearUCB
from driftwise.policies.own import asked
from driftwise.policies.state import State

ANEW = "remove the file, and it is made again"


@dataclass(frozen=True, eq=False)
class Sums:
    """Σw xx' as G, Σw² xx' as twin, Σw r x as b, Σw, Σw² and n of `parts`, at a tick; γ = 1 - forget."""

    forget: float
    tick: int
    G: Floats
    twin: Floats
    b: Floats
    weight: float
    squares: float
    n: int
    parts: frozenset[str]

    @property
    def dim(self) -> int:
        return len(self.b)

    def at(self, tick: int) -> Sums:
        """The same at a later tick."""
        if tick < self.tick:
            raise BadInput("tick", tick, f"{self.tick} or later, the tick of the sums", "pass a later tick")
        fade = math.exp((tick - self.tick) * math.log1p(-self.forget))
        square = fade * fade
        return replace(
            self, tick=tick, G=fade * self.G, twin=square * self.twin, b=fade * self.b, weight=fade * self.weight,
            squares=square * self.squares,
        )  # fmt: skip

    def __add__(self, other: Sums) -> Sums:
        if not isinstance(other, Sums):
            return NotImplemented
        if other.dim != self.dim or other.forget != self.forget:
            got, wanted = (f"dim = {one.dim} and forget = {one.forget:g}" for one in (other, self))
            raise BadInput("sums", got, f"{wanted}, as in the other", "reduce both logs for one policy")
        twice = self.parts & other.parts
        if twice:
            wanted = "parts that were not added before: their rewards would count twice"
            raise BadInput("sums", f"part {min(twice)[:12]} on both sides", wanted, "add each part once")
        tick = max(self.tick, other.tick)
        a, b = self.at(tick), other.at(tick)
        return Sums(
            self.forget, tick, a.G + b.G, a.twin + b.twin, a.b + b.b, a.weight + b.weight, a.squares + b.squares,
            a.n + b.n, a.parts | b.parts,
        )  # fmt: skip

    def state(self, policy: LinearUCB, seed: int = 0) -> State:
        """The state of a policy that learned all of it. The policy's forget must be that of the sums; noise and λ are
        its own."""
        if asked(policy).check_sums() != self.forget or policy.dim != self.dim:
            got = f"dim = {policy.dim} and forget = {policy.memory.forget:g}"
            raise BadInput("policy", got, f"dim = {self.dim} and forget = {self.forget:g}", "reduce the log for it")
        return policy.of_sums(self.G, self.twin, self.b, self.tick, self.n, self.weight, self.squares, seed)

    def agent(self, policy: LinearUCB, **options: Any) -> Agent:
        """A new agent that learned all of it, on the round or the wall clock; options are those of dw.Agent.

        It continues after the tick of the sums and counts their rewards as learned. Its drift meter starts empty.
        """
        if options.get("clock") == "rewards":
            wanted = 'clock="rounds" or "wall": sums do not have the number of rewards of each tick'
            raise BadInput("clock", "rewards", wanted, "learn the log instead, agent.learn_log(log)")
        made = Agent(policy, **options)
        state = self.state(made.policy, options.get("seed", 0))
        parts = parts_of(made)
        clock, counts = parts.clock, parts.book.counts

        def then() -> None:
            clock.newest = max(clock.newest, self.tick)
            if clock.kind == "rounds":
                parts.seq = clock.newest
            counts["learned"] += self.n
            counts["decided"] += self.n
            parts.lineage.learned(self.parts)

        with parts.learning:
            parts.states.publish(state, self.tick, 0, then)
        return made

    def to_bytes(self) -> bytes:
        """One container (docs/contract.md#snapshots)."""
        facts = {"forget": float(self.forget), "tick": self.tick, "n": self.n, "parts": sorted(self.parts)}
        numbers = np.array([self.weight, self.squares])
        return container.pack("sums", facts, {"G": self.G, "twin": self.twin, "b": self.b, "weights": numbers})

    @classmethod
    def from_bytes(cls, data: bytes) -> Sums:
        """The sums that `to_bytes` wrote, bit for bit, or BadInput."""
        facts, arrays = container.unpack("sums", data, ANEW)
        forget, tick, n, parts = map(facts.get, ("forget", "tick", "n", "parts"))
        b = arrays.get("b", np.zeros(0))
        shapes = {"G": (len(b), len(b)), "twin": (len(b), len(b)), "b": (len(b),), "weights": (2,)}
        no = BadInput("data", "other numbers", "the sums of a log", ANEW)
        if type(tick) is not int or type(n) is not int or n < 0 or not isinstance(forget, float) or not len(b):
            raise no
        if not isinstance(parts, list) or not all(isinstance(one, str) for one in parts) or not 0.0 <= forget < 1.0:
            raise no
        if set(arrays) != set(shapes) or any(
            arrays[name].shape != shape or not np.isfinite(arrays[name]).all() for name, shape in shapes.items()
        ):
            raise no
        weights = arrays["weights"]
        return cls(
            forget, tick, arrays["G"], arrays["twin"], b, float(weights[0]), float(weights[1]), n, frozenset(parts)
        )


def nothing(policy: LinearUCB, tick: int, parts: frozenset[str], n: int = 0) -> Sums:
    """The sums of no rows."""
    d = policy.dim
    forget = float(policy.memory.forget)
    return Sums(forget, tick, np.zeros((d, d)), np.zeros((d, d)), np.zeros(d), 0.0, 0.0, n, parts)
