"""The common part of these policies: a state of named arrays, the choice of the largest index, and checks of input."""

from __future__ import annotations

import io
import math
from typing import Any, ClassVar, NamedTuple

import numpy as np

from driftwise._internal.validate import array, contiguous, real
from driftwise.errors import BadInput
from driftwise.kernels.chance import Record, Rounds
from driftwise.kernels.index import score_scratch_size
from driftwise.kernels.point import Floats, Ints
from driftwise.kernels.stretches import ridge_layers_size, ridge_layers_views
from driftwise.policies.arms import Choice, Scores

State = dict[str, Any]


class FixedRounds(NamedTuple):
    """Rounds to play on fixed arms (1, d, n), the regret before them, and the arms and regrets that they give."""

    rounds: Rounds
    total: float
    chosen: Ints
    regret: Floats

    def play(self, loop: Any, flags: list[int], settings: list[float], floats: Floats, clock: Ints) -> None:
        """Play them by a loop of kernels/stretches.py on a packed state."""
        _, d, n = self.rounds.arms.shape
        scratch, used = np.empty(score_scratch_size(d, n)), np.empty(len(self.regret), dtype=np.int64)
        table, record = np.array([settings], dtype=np.float64), Record(self.chosen, self.regret, used)
        policy = np.array(flags, dtype=np.int64), table
        loop(*policy, floats, clock, scratch, self.rounds, self.total, record, np.zeros(0))

    def play_layers(self, loop: Any, state: State, window: int, settings: list[float]) -> None:
        """Play them by a loop on regressions: a state with k, V, b and perhaps more of RidgeLayers."""
        (layers, d), n = state["b"].shape, self.rounds.arms.shape[2]
        floats, clock = np.zeros(ridge_layers_size(layers, d, n)), np.array([state["k"]], dtype=np.int64)
        held = ridge_layers_views(floats, layers, d, n)
        held.X[:] = self.rounds.arms[0].T
        kept = {name: array for name, array in held._asdict().items() if name in state}
        for name, one in kept.items():
            one[:] = state[name]
        self.play(loop, [layers, d, n, window], settings, floats, clock)
        state.update({name: one.copy() for name, one in kept.items()}, k=np.array(clock[0]))


class Stepped:
    """A policy that runs one call at a time. A subclass defines `start`, `scores` and `_learn`.

    A state is a dictionary of arrays, so that one pair of functions writes and reads the states of all policies.
    """

    dim: int
    deterministic: ClassVar[bool] = True

    def start(self, seed: int = 0) -> State:
        """A fresh state."""
        raise NotImplementedError

    def scores(self, state: State, arms: Any) -> Scores:
        """Mean and bonus of every arm."""
        raise NotImplementedError

    def _learn(self, state: State, X: Floats, arm: int, reward: float) -> None:
        raise NotImplementedError

    @property
    def has_stretch(self) -> bool:
        """Whether `stretch` plays many rounds of fixed arms in one call."""
        return False

    def stretch(self, state: State, one: FixedRounds) -> None:
        """Play these rounds as single calls would, with the same bits."""
        raise NotImplementedError

    def choose(self, state: State, arms: Any) -> Choice:
        """Choose the arm with the largest score; in a tie, the first of them."""
        return self.scores(state, arms).best()

    def learn(self, state: State, arms: Any, arm: int, reward: float) -> None:
        """Learn the reward of an arm. One round passes."""
        X = self._rows(arms)
        if not 0 <= arm < len(X):
            raise BadInput("arm", arm, f"an arm from 0 to {len(X) - 1}", "pass the index that choose returned")
        self._learn(state, X, int(arm), real("reward", reward, -math.inf, way_out="pass a finite number"))

    def _rows(self, arms: Any) -> Floats:
        if type(arms) is np.ndarray and arms.ndim == 2 and arms.shape[1] == self.dim and arms.dtype == np.float64:
            return contiguous(arms)
        return array("arms", arms, (None, self.dim), f"pass rows of {self.dim} numbers")

    def state_to_bytes(self, state: State) -> bytes:
        """Write a state for a snapshot."""
        data = io.BytesIO()
        np.savez(data, **state)
        return data.getvalue()

    def state_from_bytes(self, data: bytes) -> State:
        """Read a state that `state_to_bytes` wrote."""
        fresh = self.start()
        with np.load(io.BytesIO(data), allow_pickle=False) as found:
            state = {name: found[name] for name in fresh}
        for name, one in state.items():
            if one.dtype != np.asarray(fresh[name]).dtype or one.ndim != np.asarray(fresh[name]).ndim:
                raise ValueError(f"{name} has another type or another number of dimensions")
        return state
