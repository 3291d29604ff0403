"""What Auto knows beside its lanes: noise, the scale of rewards, units of features, and the last arms played."""

from __future__ import annotations

from typing import NamedTuple

from driftwise._internal.elementary import bits_of, log, log1p, number_of
from driftwise.kernels import formula, piece
from driftwise.kernels.cut import cut
from driftwise.kernels.groups import AT_GAUGE
from driftwise.kernels.links import IDENTITY
from driftwise.kernels.point import DIM, Floats, Ints, Lesson

# Numbers of a gauge: rewards learned, their mean, squares about it, the last one; features that were not 0; what is
# left of the first guess of noise, and sums of squared errors with their weight; the same of now, and nats that speak
# for it; squares of rewards besides an offset; what a short memory does not know of arms played; strange rewards in a
# row; evidence that levels move apart; whose turn it is among coordinates; by how much errors lean to one side.
(
    SEEN, AVERAGE, SQUARE, LAST, ACTIVE, GUESSED, ERRORS, ERROR_WEIGHT, NOW_ERRORS, NOW_WEIGHT, NOW_NATS, BESIDES,
    UNKNOWN, STRANGE, EVIDENCE, TURN, LEANS,
) = range(17)  # fmt: skip
KNOWN = 17

# Prior standard deviations of an arm's value, in those of rewards without noise: 2, an arm far from all others.
REACH = 2.0
# Rewards besides noise have no less than this part of the spread: noise is never all that there is.
LEAST = 0.3
# Squared errors fade by 1/1000 a reward: a noise that changes within a day of a busy product.
FADE = 1e-3
# The first guess of noise counts for ten rewards, and is half of their variance.
GUESS, HALF = 10.0, 0.5
# Noise of now fades by 1/40, begins with four usual errors, and is believed from 8 nats of the last 200 rewards on.
NOW, NOW_GUESS, NOW_ROUNDS, BELIEVED_NOW = 1.0 / 40.0, 4.0, 200.0, 8.0
# Degrees of freedom of a reward's density: no reward decides alone. It is tilted by how far errors lean, of which 200
# rewards of none are the first guess, and an error counts as 10 deviations at most.
FREEDOM, UPRIGHT, FARTHEST = 8.0, 200.0, 10.0
# A reward or a feature 10⁴ times what was usual is not learned, unless it is the ninth in a row.
STRANGELY, PATIENCE = 1e8, 9.0
# An arm's part tells a level from preferences in so far as it differs from the last four arms.
CONTRAST, LAST_ARMS = 4.0, 4.0


class Gauge(NamedTuple):
    """The numbers above; of every feature the sum of squares in its unit, how often it was not 0, and 1 over its unit;
    the mean of the last arms, and the last one with a 1 for the offset."""

    known: Floats
    squares: Floats
    counts: Floats
    inverse: Floats
    near: Floats
    bar: Floats


@formula
def gauge_size(d: int) -> int:
    """Its length."""
    return KNOWN + 5 * d + 1


@piece
def gauge_of(flags: Ints, floats: Floats) -> Gauge:
    """Cut from a packed state."""
    d, at = flags[DIM], flags[AT_GAUGE]
    return Gauge(
        cut(floats, at, (KNOWN,)),
        cut(floats, at + KNOWN, (d,)),
        cut(floats, at + KNOWN + d, (d,)),
        cut(floats, at + KNOWN + 2 * d, (d,)),
        cut(floats, at + KNOWN + 3 * d, (d,)),
        cut(floats, at + KNOWN + 4 * d, (d + 1,)),
    )


class Scale(NamedTuple):
    """The variance of noise, that of noise now whether believed or not and as it is believed, and the prior variance
    over noise that a coordinate has in an arm's value."""

    noise: float
    heard: float
    now: float
    prior: float


@formula
def scale_of(link: int, gauge: Gauge) -> Scale:
    """What rewards so far say of noise and scale; clicks have no noise of their own."""
    known = gauge.known
    seen = max(known[SEEN], 1.0)
    many = max(known[ACTIVE] / seen, 1.0)
    if link != IDENTITY:
        return Scale(1.0, 1.0, 1.0, REACH * REACH * max(1.0, known[BESIDES] / seen) / many)
    spread = known[SQUARE] / (known[SEEN] - 1.0) if known[SEEN] > 1.0 else known[LAST] * known[LAST]
    if spread <= 0.0:
        spread = 1e-12 * known[AVERAGE] * known[AVERAGE] if known[AVERAGE] != 0.0 else 1.0
    told = known[GUESSED] * HALF * spread + known[ERRORS]
    noise = max(told / (known[GUESSED] + known[ERROR_WEIGHT]), 1e-10 * spread)
    heard = (known[NOW_ERRORS] + NOW_GUESS * noise) / (known[NOW_WEIGHT] + NOW_GUESS)
    besides = known[BESIDES] / known[SEEN] if known[SEEN] > 1.0 else spread
    prior = REACH * REACH * max(besides - noise, LEAST * LEAST * spread) / noise / many
    return Scale(noise, heard, heard if known[NOW_NATS] > BELIEVED_NOW else noise, prior)


@formula
def unit_over(x: float) -> float:
    """1 over the power of two below |x|, so that other units by powers of two change no bit."""
    return float(number_of((2046 - min(max((bits_of(abs(x)) >> 52) & 2047, 523), 1523)) << 52))


@piece
def usual_of(i: int, gauge: Gauge) -> float:
    """The mean square of a feature that was seen, in its unit."""
    return float(gauge.squares[i] / gauge.counts[i])


@piece
def usual_length(v: Floats, gauge: Gauge) -> float:
    """The squared length of an arm in usual sizes of its features."""
    total = 0.0
    for i in range(gauge.counts.size):
        if gauge.counts[i] > 0.0:
            total += v[i] * v[i] / usual_of(i, gauge)
    return total


@piece
def is_strange(link: int, lesson: Lesson, gauge: Gauge) -> bool:
    """Whether a reward or its arm is out of all measure, and not the last of many."""
    known, strange = gauge.known, False
    if lesson.arm < 0 or known[SEEN] < GUESS:
        return False
    if link == IDENTITY and known[SQUARE] + abs(known[AVERAGE]) > 0.0:
        away = lesson.reward - known[AVERAGE]
        strange = away * away > STRANGELY * (known[SQUARE] / known[SEEN] + known[AVERAGE] * known[AVERAGE])
    for i in range(gauge.counts.size):
        x = lesson.X[lesson.at, i, lesson.arm] * gauge.inverse[i]
        strange = strange or (gauge.counts[i] > 0.0 and x * x > STRANGELY * usual_of(i, gauge))
    known[STRANGE] = known[STRANGE] + 1.0 if strange else 0.0
    return bool(0.0 < known[STRANGE] < PATIENCE)


@piece
def count_reward_(lesson: Lesson, gauge: Gauge) -> None:
    """A reward enters the mean and the spread of rewards."""
    known = gauge.known
    known[SEEN] += 1.0
    known[GUESSED] *= 1.0 - FADE
    away = lesson.reward - known[AVERAGE]
    known[SQUARE] += away * away * (known[SEEN] - 1.0) / known[SEEN]
    known[AVERAGE] += away / known[SEEN]
    known[LAST] = lesson.reward
    for i in range(gauge.counts.size):
        if lesson.X[lesson.at, i, lesson.arm] != 0.0:
            known[ACTIVE] += 1.0


@piece
def hear_(part: float, taken: float, scale: Scale, gauge: Gauge) -> None:
    """The part of a squared error that is noise is held against noise now and noise as usual, and joins both; what a
    density with heavy tails takes from an error joins the lean."""
    known = gauge.known
    known[LEANS] = (1.0 - FADE) * known[LEANS] + taken
    tails = log1p(part / FREEDOM / scale.noise) - log1p(part / FREEDOM / scale.heard)
    nats = 0.5 * (log(scale.noise / scale.heard) + (FREEDOM + 1.0) * tails)
    known[NOW_NATS] = max(0.0, (1.0 - 1.0 / NOW_ROUNDS) * known[NOW_NATS] + min(max(nats, -1.0), 1.0))
    known[NOW_ERRORS] = (1.0 - NOW) * known[NOW_ERRORS] + part
    known[NOW_WEIGHT] = (1.0 - NOW) * known[NOW_WEIGHT] + 1.0
    known[ERRORS] = (1.0 - FADE) * known[ERRORS] + part
    known[ERROR_WEIGHT] = (1.0 - FADE) * known[ERROR_WEIGHT] + 1.0


@piece
def contrast_(v: Floats, gauge: Gauge) -> float:
    """How much an arm differs from the last ones, which it joins; from 0 to 1."""
    apart, length = 0.0, usual_length(v, gauge)
    for i in range(gauge.counts.size):
        away = v[i] - gauge.near[i]
        if gauge.counts[i] > 0.0:
            apart += away * away / usual_of(i, gauge)
        gauge.near[i] += away / min(gauge.known[SEEN], LAST_ARMS)
    return min(1.0, CONTRAST * apart / length) if length > 0.0 else 1.0
