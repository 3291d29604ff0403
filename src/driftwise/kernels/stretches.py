"""Rounds on fixed arms for policies that otherwise run call by call: pieces with which the one loop plays them.

Experiments of neighbouring papers have up to 240,000 rounds a run, and a call from Python per round takes 30 times as
long. Each family scores and learns as its policy does, so the bits are those of single calls.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple

from driftwise._internal.elementary import exp
from driftwise.kernels import formula, piece
from driftwise.kernels.index import ScoreScratch
from driftwise.kernels.point import Floats, Ints, Lesson
from driftwise.kernels.ridge import ridge_scores_, ridge_take_
from driftwise.kernels.rounds import Family, ScoresArms, Sees, Teaches, View, plain, playing
from driftwise.kernels.scratch import Shapes, carved, views
from driftwise.theory.radius import rare_deviation, weighted_deviation


@piece
def always_sound(view: object) -> bool:
    """A state that was packed for this call."""
    return True


@piece
def no_scratch(view: object, scratch: Floats, start: int, d: int) -> int:
    """Lessons use only what the view has."""
    return start


# ------------------------------------------------------------------------------------------ EXP3.S


@formula
def exp3_chances_(weights: Floats, mix: float, out: Floats) -> float:
    """out <- the probability of every arm: (1-mix)w/Σw + mix/n. Returns Σw."""
    total = 0.0
    for i in range(weights.size):
        total += weights[i]
    for i in range(weights.size):
        out[i] = (1.0 - mix) * weights[i] / total + mix / weights.size
    return total


@formula
def exp3_drawn(chances: Floats, level: float) -> int:
    """The first arm whose cumulative probability exceeds the level; the last one if rounding leaves none."""
    sum_ = 0.0
    for i in range(chances.size - 1):
        sum_ += chances[i]
        if sum_ > level:
            return i
    return int(chances.size - 1)


@formula
def exp3_take_(weights: Floats, total: float, chance: float, arm: int, gain: float, mix: float, share: float) -> None:
    """The weights after a gain in [0, 1] of an arm. The largest becomes 1: a common factor changes no probability."""
    n = weights.size
    weights[arm] *= exp(mix * gain / chance / n)
    most = 0.0
    for i in range(n):
        weights[i] += math.e * share / n * total
        most = max(most, weights[i])
    for i in range(n):
        weights[i] /= most


class Exp3Weights(NamedTuple):
    """The weights of n arms, uniform numbers that draw the arms of so many rounds, and Σw."""

    weights: Floats
    levels: Floats
    total: Floats


@formula
def exp3_shapes(n: int, rounds: int) -> Shapes:
    """The shapes of its fields."""
    return (n,), (rounds,), (1,)


exp3_weights_size, exp3_weights_of = carved(Exp3Weights, exp3_shapes)
exp3_weights_views = views(exp3_weights_of)


class Exp3View(NamedTuple):
    """The table has mix, share, low and high; the clock counts the rounds of this call."""

    table: Floats
    clock: Ints
    held: Exp3Weights


@piece
def exp3_view(flags: Ints, table: Floats, floats: Floats, ints: Ints) -> Exp3View:
    """flags are n and the number of rounds."""
    return Exp3View(table, ints, exp3_weights_of(floats, flags[0], flags[1]))


@piece
def exp3_score_(view: Exp3View, X: Floats, at: int, scores: ScoreScratch) -> int:
    """The means are the probabilities, and only the arm that is drawn has a finite bonus, 0."""
    held, chances, bonus = view.held, scores.mean, scores.bonus
    held.total[0] = exp3_chances_(held.weights, view.table[0, 0], chances)
    for a in range(bonus.size):
        bonus[a] = -math.inf
    bonus[exp3_drawn(chances, held.levels[view.clock[0]])] = 0.0
    return 0


@piece
def exp3_lesson_(view: Exp3View, work: int, rho: Floats, largest: float, lesson: Lesson) -> None:
    """`largest` is the probability of the arm."""
    held, mix, share = view.held, view.table[0, 0], view.table[0, 1]
    low, high = view.table[0, 2], view.table[0, 3]
    gain = min(1.0, max(0.0, (lesson.reward - low) / (high - low)))
    exp3_take_(held.weights, held.total[0], largest, lesson.arm, gain, mix, share)
    view.clock[0] += 1


# ------------------------------------------------------------------------------------------ ridge regressions


class RidgeLayers(NamedTuple):
    """Of every layer V, b, Σw²r² and the number of rewards; the arms X in rows, x'θ̂ and ‖x‖ in V⁻¹ of every layer and
    arm, and scratch."""

    V: Floats
    b: Floats
    heard: Floats
    X: Floats
    out: Floats
    low: Floats
    rows: Floats


@formula
def layers_shapes(layers: int, d: int, n: int) -> Shapes:
    """The shapes of its fields."""
    return (layers, d, d), (layers, d), (layers, 2), (n, d), (layers, 2, n), (d, d), (3, d)


ridge_layers_size, ridge_layers_of = carved(RidgeLayers, layers_shapes)
ridge_layers_views = views(ridge_layers_of)


class RidgeView(NamedTuple):
    """The table has a policy's settings; the clock counts all rounds; everything is forgotten every `window` rounds."""

    table: Floats
    clock: Ints
    window: int
    held: RidgeLayers


@piece
def ridge_view(flags: Ints, table: Floats, floats: Floats, ints: Ints) -> RidgeView:
    """flags are the number of layers, d, n and the window."""
    return RidgeView(table, ints, flags[3], ridge_layers_of(floats, flags[0], flags[1], flags[2]))


@piece
def end_round_(view: RidgeView, ridge: float, factor: float) -> None:
    """Time passes. Before round k, if the window divides k, V becomes ridge·I, and by so large a factor more in every
    layer that follows."""
    held = view.held
    view.clock[0] += 1
    if (view.clock[0] + 1) % view.window != 0:
        return
    for layer in range(held.b.shape[0]):
        held.heard[layer, 0], held.heard[layer, 1] = 0.0, 0.0
        for i in range(held.b.shape[1]):
            held.b[layer, i] = 0.0
            for j in range(held.b.shape[1]):
                held.V[layer, i, j] = ridge if i == j else 0.0
        ridge *= factor


@piece
def weighted_score_(view: RidgeView, X: Floats, at: int, scores: ScoreScratch) -> int:
    """Restarted-WeightedOFUL+ with a constant β; the table has λ, alpha, gamma, β and σ."""
    held, beta = view.held, view.table[0, 3]
    ridge_scores_(held.V, 0, held.b, held.X, held.low, held.rows, held.out[0])
    for a in range(scores.mean.size):
        scores.mean[a], scores.bonus[a] = held.out[0, 0, a], beta * held.out[0, 1, a]
    return 0


@piece
def weighted_lesson_(view: RidgeView, work: int, rho: Floats, largest: float, lesson: Lesson) -> None:
    """A negative σ is that of rare noise."""
    held, table, arm = view.held, view.table, lesson.arm
    known = table[0, 4] if table[0, 4] >= 0.0 else rare_deviation(view.clock[0] + 1)
    deviation = weighted_deviation(known, table[0, 1], table[0, 2], held.out[0, 1, arm])
    ridge_take_(held.V, 0, held.b, held.X[arm], lesson.reward, 1.0 / (deviation * deviation))
    end_round_(view, table[0, 0], 1.0)


@piece
def save_score_(view: RidgeView, X: Floats, at: int, scores: ScoreScratch) -> int:
    """Restarted SAVE+ with β = 2^(1-l) in layer l: mean and bonus of the layer where their sum is least."""
    held, layers = view.held, view.held.b.shape[0]
    for layer in range(layers):
        ridge_scores_(held.V, layer, held.b, held.X, held.low, held.rows, held.out[layer])
    for a in range(scores.mean.size):
        least, scale = math.inf, 1.0
        for layer in range(layers):
            mean, bonus = held.out[layer, 0, a], scale * held.out[layer, 1, a]
            if mean + bonus < least:
                least, scores.mean[a], scores.bonus[a] = mean + bonus, mean, bonus
            scale *= 0.5
    return 0


@piece
def save_lesson_(view: RidgeView, work: int, rho: Floats, largest: float, lesson: Lesson) -> None:
    """The first layer that is not sure enough of the arm learns."""
    held, arm, reward, scale = view.held, lesson.arm, lesson.reward, 0.5
    for layer in range(held.b.shape[0]):
        width = held.out[layer, 1, arm]
        if width >= scale:
            weight = (scale / width) * (scale / width)
            ridge_take_(held.V, layer, held.b, held.X[arm], reward, weight)
            held.heard[layer, 0] += weight * reward * reward
            held.heard[layer, 1] += 1.0
            break
        scale *= 0.5
    end_round_(view, 0.25, 0.25)


# ------------------------------------------------------------------------------------------ the loops


def _loop(name: str, view_of: Sees[View], score_: ScoresArms[View], lesson_: Teaches[View, int]) -> Callable[..., int]:
    family = Family(name, view_of, always_sound, score_, no_scratch, lesson_)
    return playing(f"play_{name}_plain", plain(family))


play_exp3_ = _loop("exp3", exp3_view, exp3_score_, exp3_lesson_)
play_weighted_ = _loop("weighted", ridge_view, weighted_score_, weighted_lesson_)
play_save_ = _loop("save", ridge_view, save_score_, save_lesson_)
