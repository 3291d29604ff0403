"""Slow twins of docs/math.md#posterior-radius: posterior radii, learned noise, trends, their banks, and Auto.

As in naive.py nothing is carried that can be recomputed: every estimate is solved from the full list of observations.
The exceptions are recursions by definition: what is learned of the noise, weights of a bank, and one-pass estimates.
"""

import math

import numpy as np
from scipy import special

from naive import History, Link, NaiveGLM, norms, solve_scalar

QUANTILE, CLICK_QUANTILE = 2.0, 1.5
# An untold S is 2.5 RMS of rewards without their noise, at least 0.3 RMS with it, over the arms' length; an untold R
# begins at RMS/2, which counts for 10 rewards.
REACH, LEAST_SIGNAL, SHARE_OF_NOISE = 2.5, 0.3, 0.5
GUESS_WEIGHT, RATE = 10.0, 1e-3
WIDENS = 0.45  # the quantile of a TrendBank's lane is sqrt(1 + 0.45 log(1 + sum of its weights))
MANY = 32  # with more features there are fewer lanes, which forecast fewer rewards


class NaiveGauge:
    """R and the ridge rho0 = R^2 d/S^2 as told, or as all rewards learned so far say.

    R is a number, "learn" or ("learn", guess); S a number or None; lam a number or None.
    """

    def __init__(self, *, dim, R, S, lam=None):
        self.dim, self.S, self.lam = dim, S, lam
        self.learned = R == "learn" or isinstance(R, tuple)
        self.R = None if R == "learn" else R[1] if self.learned else R  # given, or guessed
        self.rewards, self.squares = [], []  # r and ||x||^2 of all lessons, in order
        self.s, self.m, self.a = 0.0, 0.0, GUESS_WEIGHT

    @property
    def blind(self):
        """Whether something depends on the size of rewards and all rewards so far were 0."""
        return (self.S is None or self.R is None) and not any(self.rewards)

    def mean_square(self):
        """m2, the mean of ||x||^2; 1 before anything."""
        return float(np.mean(self.squares)) if self.squares else 1.0

    def prior(self):
        """(R, rho0)."""
        if self.lam is not None:
            return self.R, self.lam
        m2 = self.mean_square()
        rms2 = float(np.mean(np.square(self.rewards))) if self.rewards else 0.0
        if self.blind:  # the unit is that of the given values, or 1
            told = self.S**2 * m2 if self.S is not None else 1.0
            rms2 = told if self.R is None else (self.R / SHARE_OF_NOISE) ** 2
        R2 = SHARE_OF_NOISE**2 * rms2 if self.R is None else self.R**2
        if not self.learned and self.S is not None:
            return self.R, R2 * self.dim / self.S**2
        if self.learned and self.R is not None and rms2 > 0.0 and not self.blind:
            R2 = min(R2, rms2)  # a guess is at most the size of the rewards
        if self.learned:
            R2 = (self.s + self.a * R2) / (self.m + self.a)
        signal = max(rms2 - R2, LEAST_SIGNAL**2 * rms2)
        S2 = max(REACH**2 * signal / m2, (self.S or 0.0) ** 2)  # S is no less than rewards say
        return math.sqrt(R2), R2 * self.dim / S2

    def learn(self, x, r, residual, v):
        """Learn a reward of x with this residual of the lane played, and ||x||^2 = v in its posterior."""
        if self.learned and not self.blind:
            self.s = (1 - RATE) * self.s + residual**2 / (1 + v)
            self.m = (1 - RATE) * self.m + 1
            self.a = (1 - RATE) * self.a
        self.rewards.append(float(r))
        self.squares.append(float(x @ x))

    def report(self):
        """R and S."""
        R, ridge = self.prior()
        return {"R": R, "S": R * math.sqrt(self.dim / ridge) if self.lam is None else self.S}


class Units:
    """The unit of every feature (docs/math.md#units-per-feature): 1 where S is told."""

    def __init__(self, dim, learned):
        self.learned, self.arms, self.seen = learned, np.empty((0, dim)), np.empty((0, dim))

    def learn(self, x):
        """Add an arm whose reward was learned. `seen` gets root mean squares of nonzero values, from the tenth on."""
        self.arms = np.vstack([self.arms, x])
        if self.learned:
            self.seen = np.vstack([self.seen, np.where(self.counts() >= 10, self.sizes(), 0.0)])

    def counts(self):
        """The number of nonzero values of each feature."""
        return np.count_nonzero(self.arms, axis=0)

    def sizes(self):
        """The root mean square of those values of each feature; 1 where there are none."""
        counts = self.counts()
        return np.where(counts > 0, np.sqrt((self.arms**2).sum(axis=0) / np.maximum(counts, 1)), 1.0)

    def __call__(self):
        """All units."""
        if not self.learned:
            return np.ones(self.arms.shape[1])
        return np.where(self.counts() >= 10, self.seen.max(axis=0, initial=0.0), self.sizes())

    def beside(self, x):
        """All units while a reward of x is learned: a feature that no arm had before has its size in x."""
        units = self()
        return np.where((self.counts() == 0) & (x != 0.0), np.abs(x), units) if self.learned else units

    def mean_square(self):
        """m, the mean square norm of arms, in units where these are learned; 1 before anything."""
        if len(self.arms) == 0:
            return 1.0
        if self.learned:
            return float(self.counts().sum() / len(self.arms))
        return float((self.arms**2).sum() / len(self.arms))

    def strange(self, x):
        """Whether a feature that was seen before is beyond 10^4 of its units."""
        return self.learned and bool((np.abs(x) > 1e4 * self())[self.counts() > 0].any())


class NowGauge(NaiveGauge):
    """The gauge of a TrendBank: scales are in units of features, and the noise of now is kept (#noise-of-now).

    So is how far noise leans (#noise-that-leans).
    """

    def __init__(self, *, dim, R, S, lam=None):
        super().__init__(dim=dim, R=R, S=S, lam=lam)
        self.units = Units(dim, S is None)
        self.now_s, self.now_w, self.doubt = 0.0, 0.0, 0.0
        self.above, self.below = 0.0, 0.0

    def mean_square(self):
        """m, in units."""
        return self.units.mean_square()

    def now(self):
        """The variance of now, over R^2."""
        R2 = self.prior()[0] ** 2
        return min(max((self.now_s + 4 * R2) / (self.now_w + 4) / R2, 1e-4), 1e4)

    def spread(self):
        """The variance of a reward over R^2."""
        return self.now() if self.learned and self.doubt > 8 and not self.leans() else 1.0

    def leans(self):
        """Whether errors lean: h+ and h- differ by more than 5 and half of their sum."""
        return abs(self.above - self.below) > 5 + (self.above + self.below) / 2

    def lean(self):
        """What heavy tails take from an error, in the mean, in standard deviations."""
        return (self.above - self.below) / (self.m + 200)

    def freedom(self):
        """Degrees of freedom of the density of a reward."""
        return min(8.0, 1.0 + self.m)

    def learn(self, x, r, residual, v):
        """Learn a reward; its residual is None if no lane made a forecast."""
        if self.learned and not self.blind and residual is not None:
            spread = self.spread()
            part = residual**2 * spread / (spread + v)
            R2, now = self.prior()[0] ** 2, self.now()
            u = min(10.0, max(-10.0, residual / math.sqrt(R2 * (spread + v))))
            pull = u - 9 * u / (8 + u**2)
            tells = -0.5 * math.log(now)
            tells += 4.5 * (math.log(1 + part / (8 * R2)) - math.log(1 + part / (8 * now * R2)))
            self.doubt = max(0.0, (1 - 1 / 200) * self.doubt + min(1.0, max(-1.0, tells)))
            self.now_s = (1 - 1 / 40) * self.now_s + part
            self.now_w = (1 - 1 / 40) * self.now_w + 1
            self.above = (1 - RATE) * self.above + max(pull, 0.0)
            self.below = (1 - RATE) * self.below + max(-pull, 0.0)
            self.s = (1 - RATE) * self.s + part
            self.m = (1 - RATE) * self.m + 1
            self.a = (1 - RATE) * self.a
        self.rewards.append(float(r))
        self.units.learn(x)

    def strange(self, x, r):
        """Whether a reward is beyond 10^4 root mean squares of those before, or its arm beyond 10^4 units."""
        loud = any(self.rewards) and abs(r) > 1e4 * math.sqrt(np.mean(np.square(self.rewards)))
        told = not self.learned and self.S is not None
        return not told and len(self.rewards) >= 10 and (loud or self.units.strange(x))


def posterior(X, r, w, ridge, lags=None, rounds=None):
    """The posterior of theta: its mean, and its covariance in units of R^2. The ridge is a number or one per feature.

    With lags the model is r = x'(theta - lag v). The ridge of v is rounds^2 times larger, and v is integrated out.
    """
    d = X.shape[1]
    if lags is None:
        design, ridges = X, ridge * np.ones(d)
    else:
        design = np.hstack([X, -lags[:, None] * X])
        ridges = np.concatenate([ridge * np.ones(d), ridge * np.ones(d) * rounds**2])
    A = np.diag(ridges) + (design.T * w) @ design
    return np.linalg.solve(A, design.T @ (w * r))[:d], np.linalg.inv(A)[:d, :d]


class NaivePosterior(History):
    """LinearUCB with radius="posterior"; memory as in History, or ("trend", rounds)."""

    def __init__(self, *, dim, memory, R=1.0, S=1.0, lam=None, exploration=1.0):
        self.trend = memory[1] if memory[0] == "trend" else None
        super().__init__(("fade", 1 / self.trend) if self.trend else memory)
        self.dim, self.exploration = dim, exploration
        self.gauge = NaiveGauge(dim=dim, R=R, S=S, lam=lam)

    def posterior(self):
        """Mean of theta, its covariance over R^2, and R."""
        R, ridge = self.gauge.prior()
        lags = np.array([self.clock - born for _, _, born in self.observations]) if self.trend else None
        return *posterior(self.xs(self.dim), self.rewards(), self.weights(), ridge, lags, self.trend), R

    def scores(self, arms):
        """Mean and bonus of every arm."""
        theta, C, R = self.posterior()
        return arms @ theta, QUANTILE * self.exploration * R * np.sqrt(np.einsum("ni,ij,nj->n", arms, C, arms))

    def learn(self, arms, arm, reward, ticks=1.0, age=0.0):
        x = np.array(arms[arm], dtype=float)
        theta, C, _ = self.posterior()
        super().learn(arms, arm, reward, ticks, age)
        self.gauge.learn(x, reward, reward - x @ theta, x @ C @ x)

    def report(self):
        """R and S."""
        return self.gauge.report()


# ------------------------------------------------------------------------------------------------------- the banks


class Lane:
    """A memory of so many rounds: rows of x, r, weight, lag, at and strength, with weight and lag as at clock `at`.

    A reward weighs its age's weight times its strength, which is that of its noise.
    """

    def __init__(self, dim, rounds, trend=False):
        self.dim, self.rounds, self.trend = dim, rounds, trend
        self.gamma = 1.0 if math.isinf(rounds) else 1.0 - 1.0 / rounds
        self.clock, self.rows = 0.0, np.empty((0, dim + 5))

    def advance(self, ticks):
        """Time passes."""
        self.clock += ticks

    def learn(self, x, r, age, weight=1.0, strength=1.0):
        """A reward that was born `age` ago."""
        self.rows = np.vstack([self.rows, [*x, r, weight, 0.0, self.clock - age, strength]])

    def now(self):
        """Vectors, rewards, weights and lags at the present clock, and strengths."""
        rewards, weights, lags, at, strengths = self.rows[:, self.dim :].T
        X, since = self.rows[:, : self.dim], self.clock - at
        return X, rewards, weights * self.gamma**since, lags + since, strengths

    def take_over(self, other):
        """Take over the other's data with their current weights; those of a plain memory have no lags."""
        X, rewards, weights, lags, strengths = other.now()
        lags, at = lags if other.trend else np.zeros_like(lags), np.full_like(lags, self.clock)
        self.rows = np.column_stack([X, rewards, weights, lags, at, strengths])

    def ridges(self, ridge, units, now=None):
        """The ridge of every feature."""
        X, _, w, _, strengths = self.now() if now is None else now
        trace = ((w * strengths)[:, None] * (X / units) ** 2).sum() if units is not None else 0.0
        return max(ridge, 1e-12 * trace) * (1.0 if units is None else units**2)

    def posterior(self, ridge, units=None):
        """Mean of theta and its covariance over R^2."""
        now = X, r, w, lags, strengths = self.now()
        ridges = self.ridges(ridge, units, now)
        return posterior(X, r, w * strengths, ridges, *((lags, self.rounds) if self.trend else ()))

    def forecast(self, x, ridge, units):
        """x'theta and ||x||^2."""
        theta, C = self.posterior(ridge, units)
        return float(x @ theta), float(x @ C @ x)

    def rough_forecast(self, x, ridge, units, steps=12):
        """The same from so many steps of conjugate gradients on (G + ridge)y = x, in units, from 0."""
        X, r, w, _, strengths = self.now()
        A = ((X / units).T * (w * strengths)) @ (X / units) + np.diag(self.ridges(ridge, units) / units**2)
        y, residual = np.zeros(self.dim), x / units
        z = residual / np.diag(A)
        way = z
        for _ in range(steps):
            if not residual.any() or not way @ A @ way > 0.0:
                break
            step = (residual @ z) / (way @ A @ way)
            y = y + step * way
            after = residual - step * A @ way
            fresh = after / np.diag(A)
            way = fresh + (after @ fresh) / (residual @ z) * way
            residual, z = after, fresh
        return float(y @ ((X / units).T @ (w * strengths * r))), float(y @ (x / units))


class Bank:
    """Weights of lanes, the shortest memory first: payment, sharing, the lane played, taking over, waking."""

    def __init__(self, lanes, *, weights=None, awake=4096, share=3e-4, margin=1.0, gap=6.0, back=3.0):
        self.lanes, self.share, self.margin, self.gap, self.back = lanes, share, margin, gap, back
        self.awake = [lane.rounds <= awake or math.isinf(lane.rounds) for lane in lanes]
        self.weights = np.array(self.awake, dtype=float) if weights is None else np.array(weights)
        self.weights /= self.weights.sum()
        self.clock = 0.0
        self.taken_over, self.woken = [], []  # (clock, from, to)

    def played(self):
        """The longest within the margin of the best."""
        return max(np.flatnonzero(self.weights >= math.exp(-self.margin) * self.weights.max()))

    def pay(self, surprises):
        """Update the weights by the surprise of every lane."""
        awake = np.flatnonzero(self.awake)
        w = self.weights[awake] * np.exp(-(surprises[awake] - surprises[awake].min()))
        self.weights[awake] = (1 - self.share) * w / w.sum() + self.share / len(awake)

    def shift(self):
        """Take-overs, then lanes that wake."""
        best = max(np.flatnonzero(self.weights == self.weights.max()))
        for k, lane in enumerate(self.lanes):
            longer = k > best and lane.rounds > self.lanes[best].rounds
            loses_trend = self.lanes[best].trend and not lane.trend
            behind = self.weights[k] < math.exp(-self.gap) * self.weights[best]
            if self.awake[k] and longer and behind and not loses_trend:
                self.hand_over(best, k, self.taken_over)
        for k, lane in enumerate(self.lanes):
            if not self.awake[k] and self.clock >= lane.rounds / 2:
                self.awake[k] = True
                kin = [j for j in range(k) if self.awake[j] and self.lanes[j].trend == lane.trend
                       and self.lanes[j].rounds < lane.rounds]
                self.hand_over(kin[-1], k, self.woken)

    def hand_over(self, source, k, book):
        """Lane k begins as the source, a little below it."""
        self.lanes[k].take_over(self.lanes[source])
        self.weights[k] = self.weights[source] * math.exp(-self.back)
        book.append((self.clock, source, k))

    def advance(self, ticks=1.0):
        """Time passes without a reward."""
        self.clock += ticks
        for lane in self.lanes:
            lane.advance(ticks)
        self.shift()


def growing(dim, longest, shortest=8, shortest_trend=32):
    """(rounds, trend) of the lanes of a TrendBank."""
    rows, rounds = [], shortest
    while rounds <= longest:
        rows.append((float(rounds), False))
        if dim <= MANY and rounds >= shortest_trend:
            rows.append((float(rounds), True))
        rounds *= 2 if dim <= MANY else 4
    return [*rows, (math.inf, False)]


class GrowingBank(Bank):
    """What banks of values and of clicks share: strange rewards, and audits (docs/math.md#audits)."""

    audit, odd, learned = 0.0, 0, 0  # strange rewards in a row; rewards learned
    stays = 7 / 8  # the chance that a look plays what would be played otherwise, where no other arm is hidden
    paid = ()  # of every reward that was paid: x, its variance v, the units, and whether it can make a look likelier

    @property
    def asked(self):
        """Whether lanes forecast the next reward."""
        return self.learned % math.ceil(self.dim / MANY) == 0

    @property
    def short(self):
        """The longest plain memory of at most 64 rounds."""
        return max(k for k, lane in enumerate(self.lanes) if lane.rounds <= 64 and not lane.trend)

    @property
    def believed(self):
        """Whether a lane with a level is played."""
        return self.levels is not None and self.levels.evidence > 1.0

    def learn(self, arms, arm, reward, ticks=1.0, age=0.0):
        """A reward, if it is not strange or is the ninth such in a row."""
        x, r = np.array(arms[arm], dtype=float), float(reward)
        if self.odd < 8 and self.strange(x, r):
            self.odd += 1
            self.advance(ticks)
            return
        self.odd = 0
        self.take(x, r, ticks, age)
        self.learned += 1

    def look(self):
        """The chance that a decision is a look."""
        _, _, q = self.looked()
        chance = max(self.audit / math.sqrt(self.learned + 1), q if q >= 0.05 else 0.0)
        return min(1.0, chance) if self.audit > 0.0 else 0.0

    def unknown(self, x, v, units):
        """f, the variance of an arm by the memory of looks over its squared length in units; 0 for zeros."""
        length = float(((x / units) ** 2).sum())
        return v / length if length > 0.0 else 0.0

    def hidden(self, f, A, B):
        """Whether an arm is hidden: its f is more than four times F = A/B."""
        return B > 0.0 and f > 4.0 * A / B

    def again(self, surprised, f, A, B):
        """Whether a reward makes the next looks likelier, A and B being those before it."""
        return surprised and self.hidden(f, A, B)

    def faded(self, A, B, f):
        """A and B after a paid reward."""
        return 63 / 64 * A + min(f, 1e200), 63 / 64 * B + 1.0

    def looked(self):
        """A, B and q after all rewards that were paid."""
        A, B, q = 0.0, 0.0, 0.0
        for x, v, units, surprised in self.paid:
            f = self.unknown(x, v, units)
            q = 0.8 if self.again(surprised, f, A, B) else 0.8 * q
            A, B = self.faded(A, B, f)
        return A, B, q

    def hides(self, arms, best):
        """Whether an arm other than `best` is hidden."""
        A, B, _ = self.looked()
        lane, ridge, units = self.lanes[self.short], *self.prior()
        variances = [lane.forecast(x, ridge, units)[1] for x in arms]
        return any(
            self.hidden(self.unknown(x, v, units), A, B)
            for k, (x, v) in enumerate(zip(arms, variances, strict=True)) if k != best
        )  # fmt: skip

    def looks(self, arms, best, costs=0.0):
        """The chance of every arm in a look, where `best` would be played otherwise."""
        chances = self.looks_at(arms, best, costs)
        if not self.hides(arms, best):
            chances = (1 - self.stays) * chances
            chances[best] += self.stays
        return chances

    def looks_at(self, arms, best, costs=0.0):
        """c: the chance of every arm where another than `best` is hidden; equal where none is uncertain."""
        acting, _ = self.scores(arms)
        mean, deviation = self.known(arms)
        acting, mean = acting - costs, mean - costs
        gap = np.maximum(0.0, acting.max() - self.hoped(acting, mean))
        worth = np.zeros(len(arms))
        for k in range(len(arms)):
            if k != best and deviation[k] > 0.0:
                worth[k] = deviation[k] ** 2 / (gap[k] ** 2 + deviation[k] ** 2 / 100)
        return worth / worth.sum() if worth.any() else np.full(len(arms), 1 / len(arms))

    def hoped(self, acting, mean):
        """The larger of an arm's means, by the lane that acts and by the memory of looks."""
        return np.maximum(acting, mean)

    def shares(self, arms, costs=0.0):
        """The probability that each arm is played; costs are subtracted from scores and means."""
        best = int(np.argmax(sum(self.scores(arms)) - costs))
        trial = int(np.argmax(sum(self.plain_scores(arms)) - costs))
        look = self.look()
        tried, found = (1 - look) * self.tried(), look * self.looks(arms, best, costs)
        found[trial] += tried
        found[best] += 1 - look - tried
        return found

    def tried(self):
        """The chance that a decision that is no look is a trial."""
        return (0.7 / (0.7 + self.levels.evidence)) ** 2 if self.believed and self.audit > 0.0 else 0.0

    def advance(self, ticks=1.0):
        """Time passes without a reward."""
        if self.levels is not None:
            self.levels.advance(ticks)
        super().advance(ticks)


class Filter:
    """A level's memory: a constant or a line through fading arms and rewards in the order they came, and through a
    first guess of 0. Its clock stops when all but a millionth of it has faded."""

    def __init__(self, dim, rounds, slope):
        self.dim, self.rounds, self.slope, self.g = dim, rounds, slope, 1.0 - 1.0 / rounds
        self.clock, self.seen = 0.0, np.empty((0, dim + 3))  # x, r, when it came, its weight

    def later(self, ticks):
        """The clock so many ticks from now."""
        mass = self.g**self.clock + (self.seen[:, -1] * self.g ** (self.clock - self.seen[:, -2])).sum()
        return self.clock + min(ticks, max(0.0, math.log(1e-6 / mass) / math.log(self.g)))

    def learn(self, x, r, weight=1.0):
        """Learn an arm and its reward, which has the variance R^2/weight."""
        self.seen = np.vstack([self.seen, [*x, r, self.clock, weight]])

    def fit(self, guess, ticks):
        """xbar, rbar and v so many ticks from now; `guess` is the weight of the first guess at the start."""
        now = self.later(ticks)
        times = np.append(0.0, self.seen[:, -2]) - now
        w = self.g**-times * np.append(guess, self.seen[:, -1])
        values = np.vstack([np.zeros(self.dim + 1), self.seen[:, :-2]])
        design = np.vander(times, 2 if self.slope else 1, increasing=True)
        A = (design.T * w) @ design + np.diag([0.0, self.rounds**2][: design.shape[1]])
        level = np.linalg.solve(A, (design.T * w) @ values)[0]
        return level[:-1], level[-1], np.linalg.inv(A)[0, 0]


class Apart:
    """A lane with a level: what its filter missed, (x, r, weight, born), is regressed with a memory of its own."""

    def __init__(self, dim, level, rounds):
        self.level, self.lane = level, Lane(dim, rounds)

    def learn(self, x, r, age, told, weight=1.0):
        """Learn a reward of variance R^2/weight, with the filter's forecast from before time passed."""
        center, reward, v = told
        self.lane.learn(x - center, r - reward, age, 1.0 / (1.0 + v), (1.0 + v) / (1.0 / weight + v))


class Levels:
    """The family of lanes with a level: paid as a bank is, nothing taken over, and the evidence for it."""

    def __init__(self, dim):
        self.filters = [Filter(dim, 4, False), Filter(dim, 16, False), Filter(dim, 64, False), Filter(dim, 64, True)]
        memories = (64, 512, 4096, math.inf) if dim <= MANY else (512, math.inf)
        self.lanes = [Apart(dim, level, rounds) for rounds in memories for level in self.filters]
        first = np.repeat(np.exp(np.arange(len(memories))), 4)
        self.weights, self.share, self.evidence = first / first.sum(), 1e-5, 0.0

    def played(self):
        """The longest memory of preferences within 0.3 nats of the best, levels summed; then its likeliest level."""
        totals = self.weights.reshape(-1, 4).sum(axis=1)
        row = max(np.flatnonzero(totals >= math.exp(-0.3) * totals.max()))
        return 4 * row + int(np.argmax(self.weights[4 * row : 4 * row + 4]))

    def scores(self, arms, ridge, units, guess):
        """Mean of every arm by the lane played, and its variance over R^2 by all lanes with its level, as weighed."""
        played = self.played()
        center, level, _ = self.lanes[played].level.fit(guess, 0.0)
        offsets, variance, total = arms - center, 0.0, 0.0
        for k in range(played % 4, len(self.lanes), 4):
            theta, C = self.lanes[k].lane.posterior(ridge, units)
            variance = variance + self.weights[k] * np.einsum("ni,ij,nj->n", offsets, C, offsets)
            total += self.weights[k]
            if k == played:
                mean = level + offsets @ theta
        return mean, variance / total

    def forecasts(self, x, ridge, units, guess, ticks):
        """(value, variance over R^2) of the reward of x by every lane."""
        found, told = [], {one: one.fit(guess, ticks) for one in self.filters}
        for one in self.lanes:
            center, reward, v = told[one.level]
            value, variance = one.lane.forecast(x - center, ridge, units)
            found.append((reward + value, v + variance))
        return found

    def contrast(self, x, units, guess, ticks, age):
        """The information in a reward: the distance of x from the last arms, 4‖x - x̄‖²/‖x‖², at most 1, with x̄ of the
        filter of four rounds; times the share of its level that this filter would still have at that age."""
        center, _, _ = self.filters[0].fit(guess, ticks)
        unlike, length = ((x - center) / units) ** 2, (x / units) ** 2
        return 0.75**age * min(1.0, 4.0 * unlike.sum() / length.sum()) if x.any() else 0.0

    def pay(self, surprises, plain, contrast):
        """Update evidence, by the log density of the plain family and the information in the arm; then weights."""
        w = self.weights * np.exp(-(surprises - surprises.min()))
        nats = math.log(w.sum() / self.weights.sum()) - surprises.min() - plain
        self.evidence = (1 - 1 / 4000) * self.evidence + contrast * min(1.0, max(-1.0, nats))
        self.weights = (1 - self.share) * w / w.sum() + self.share / len(w)

    def advance(self, ticks):
        """Time passes."""
        for one in self.filters:
            one.clock = one.later(ticks)
        for one in self.lanes:
            one.lane.advance(ticks)

    def learn(self, x, r, ticks, age, guess, weights):
        """Time and a reward to every filter and lane. A filter takes the weight of its lane of longest memory."""
        told = {one: one.fit(guess, ticks) for one in self.filters}
        self.advance(ticks)
        for one, weight in zip(self.lanes, weights, strict=True):
            one.learn(x, r, age, told[one.level], weight)
        for one, weight in zip(self.filters, weights[-4:], strict=True):
            one.learn(x, r, weight)


class NaiveFadeBank(Bank):
    """FadeBank over a posterior base: plain memories, of which longer ones start with more weight."""

    levels = None

    def __init__(self, *, dim, memories, R=1.0, S=1.0, lam=None, exploration=1.0, **bank):
        self.dim, self.exploration = dim, exploration
        self.gauge = NaiveGauge(dim=dim, R=R, S=S, lam=lam)
        weights = [math.exp(-0.5 * (len(memories) - 1 - k)) for k in range(len(memories))]
        super().__init__([Lane(dim, rounds) for rounds in memories], weights=weights, awake=math.inf, **bank)

    def scores(self, arms):
        """Mean and bonus by the lane played."""
        R, ridge = self.gauge.prior()
        theta, C = self.lanes[self.played()].posterior(ridge)
        return arms @ theta, QUANTILE * self.exploration * R * np.sqrt(np.einsum("ni,ij,nj->n", arms, C, arms))

    def surprise(self, residual, v, R):
        """-log of the density of a reward, up to a constant that all lanes share."""
        squared = residual**2 / (R**2 * (1 + v))
        if not self.gauge.learned:
            return 0.5 * math.log(1 + v) + 0.5 * squared
        nu = 1 + self.gauge.m
        return 0.5 * math.log(1 + v) + 0.5 * (nu + 1) * math.log(1 + squared / nu)

    def learn(self, arms, arm, reward, ticks=1.0, age=0.0):
        """Forecasts, pay, time and the reward to every lane, the gauge, then take-overs and waking."""
        x, r = np.array(arms[arm], dtype=float), float(reward)
        R, ridge = self.gauge.prior()
        forecasts = [lane.forecast(x, ridge, None) for lane in self.lanes]
        value, v = forecasts[self.played()]
        if not self.gauge.blind:
            self.pay(np.array([self.surprise(r - one, width, R) for one, width in forecasts]))
        self.clock += ticks
        for lane in self.lanes:
            lane.advance(ticks)
            lane.learn(x, r, age)
        self.gauge.learn(x, r, r - value, v)
        self.shift()

    def report(self):
        """The memory played, R and S."""
        return {"memory": self.lanes[self.played()].rounds, "trend": 0.0, **self.gauge.report()}


class NaiveTrendBank(GrowingBank):
    """TrendBank over values."""

    def __init__(
        self, *, dim, R=1.0, S=1.0, lam=None, exploration=1.0, longest=2**24, levels=False, audit=0.0, **bank
    ):
        self.dim, self.exploration, self.audit = dim, exploration, audit
        self.levels = Levels(dim) if levels else None
        self.gauge = NowGauge(dim=dim, R=R, S=S, lam=lam)
        self.strange = self.gauge.strange
        lanes = [Lane(dim, rounds, trend) for rounds, trend in growing(dim, longest)]
        # A memory weighs e^-1/2 of one twice as long, up to twice the longest awake.
        awake = bank.get("awake", 4096)
        first = [
            min(lane.rounds, 2 * awake) ** (0.5 / math.log(2)) * (lane.rounds <= awake or math.isinf(lane.rounds))
            for lane in lanes
        ]
        super().__init__(lanes, weights=first, **{"share": 1e-3, **bank})

    def prior(self):
        """The ridge, and the units of features."""
        return self.gauge.prior()[1], self.gauge.units()

    @property
    def apart(self):
        """The lane with a level that is played, if one is."""
        return self.levels.lanes[self.levels.played()] if self.believed else None

    def scores(self, arms):
        """Mean and bonus by the lane played."""
        if self.apart is None:
            return self.plain_scores(arms)
        R, ridge = self.gauge.prior()
        mean, variance = self.levels.scores(arms, ridge, self.gauge.units(), self.guess(ridge))
        return mean, self.quantile(self.apart.lane) * R * np.sqrt(variance)

    def plain_scores(self, arms):
        """Mean and bonus by the lane that is played without a level."""
        lane = self.lanes[self.played()]
        mean, deviation = self.believes(lane, arms, self.wider(lane))
        return mean, self.quantile(lane) * deviation

    def wider(self, lane):
        """The factor on the ridge of the index of a lane (#auto, 2)."""
        keeps = lane is self.lanes[-1] and self.gauge.S is None and self.gauge.lam is None
        return min(1.0, REACH**2 / self.dim) if keeps else 1.0

    def quantile(self, lane):
        """Standard deviations in the index of a lane, by the sum of the weights of ages."""
        return self.exploration * math.sqrt(1.0 + WIDENS * math.log(1.0 + lane.now()[2].sum()))

    def believes(self, lane, arms, wider=1.0):
        """Mean and standard deviation of every arm by a plain lane, whose ridge has this factor."""
        R, ridge = self.gauge.prior()
        theta, C = lane.posterior(wider * ridge, self.gauge.units())
        return arms @ theta, R * np.sqrt(np.einsum("ni,ij,nj->n", arms, C, arms))

    def known(self, arms):
        """Mean and standard deviation of every arm by the memory of looks."""
        return self.believes(self.lanes[self.short], arms)

    def guess(self, ridge):
        """The weight of a level's first guess: R^2/S^2 for arms of the length seen, or of 1 where all is told."""
        told = not self.gauge.learned and self.gauge.S is not None
        return ridge / (self.dim * (1.0 if told else self.gauge.mean_square()))

    def surprise(self, residual, v, R):
        """-log of the density of a reward, up to a constant that all lanes share."""
        whole = self.gauge.spread() + v
        squared = residual**2 / (R**2 * whole)
        if not self.gauge.learned:
            return 0.5 * math.log(whole) + 0.5 * squared
        nu = self.gauge.freedom()
        tilt = self.gauge.lean() * min(10.0, max(-10.0, residual / (R * math.sqrt(whole))))
        return 0.5 * math.log(whole) + 0.5 * (nu + 1) * math.log(1 + squared / nu) + tilt

    def weight(self, residual, v, R):
        """What a reward weighs in a lane that missed it so."""
        spread = self.gauge.spread()
        loud = min(1.0, 9 / (8 + residual**2 / (R**2 * (spread + v)))) if spread < 1 else 1.0
        return loud / spread

    def take(self, x, r, ticks, age):
        """Forecasts, pay, time and the reward to every lane, the gauge, then take-overs and waking."""
        R, ridge = self.gauge.prior()
        units, guess, asked = self.gauge.units.beside(x), self.guess(ridge), self.asked
        shown, forecasts, apart = (None, None), [], []
        if asked:
            forecasts = [(r - value, v) for value, v in (lane.forecast(x, ridge, units) for lane in self.lanes)]
            surprises = np.array([self.surprise(e, v, R) for e, v in forecasts])
            shown = forecasts[self.played()]
            if self.levels is not None:
                apart = [(r - value, v) for value, v in self.levels.forecasts(x, ridge, units, guess, ticks)]
                shown = apart[self.levels.played()] if self.believed else shown
        if asked and not self.gauge.blind:
            above = shown[0] > 1.5 * R * math.sqrt(self.gauge.spread() + shown[1])
            v = forecasts[self.short][1]
            self.paid = (*self.paid, (x, v, units, above and v > 1 / 8))
            if self.levels is not None:
                plain = special.logsumexp(-surprises, b=self.weights / self.weights.sum())
                contrast = self.levels.contrast(x, units, guess, ticks, age)
                self.levels.pay(np.array([self.surprise(e, v, R) for e, v in apart]), plain, contrast)
            self.pay(surprises)
        flat = 1.0 / self.gauge.spread()
        if self.levels is not None:
            weights = [self.weight(e, v, R) for e, v in apart] if asked else [flat] * len(self.levels.lanes)
            self.levels.learn(x, r, ticks, age, guess, weights)
        self.clock += ticks
        for k, lane in enumerate(self.lanes):
            lane.advance(ticks)
            lane.learn(x, r, age, strength=self.weight(*forecasts[k], R) if asked else flat)
        self.gauge.learn(x, r, *shown)
        self.shift()

    def report(self):
        """The memory played, whether it follows a trend, R and S; evidence for a level, and its likeliest memory."""
        lane = self.lanes[self.played()] if self.apart is None else self.apart.lane
        told = {"memory": lane.rounds, "trend": float(lane.trend), **self.gauge.report()}
        if self.levels is not None:
            likeliest = self.levels.lanes[self.levels.played()].level.rounds
            told |= {"evidence": self.levels.evidence, "level": likeliest}
        return told


# ------------------------------------------------------------------------------------------------------- clicks


class NaiveClicks(NaiveGLM):
    """PosteriorUCB: the quantile x'theta + 1.5 ||x|| in H^-1 of the Laplace posterior, lifted by mu."""

    def __init__(self, *, dim, memory, link="logistic", S=1.0, lam=None, exploration=1.0, estimate="exact"):
        super().__init__(dim=dim, memory=memory, link=link, lam=dim / S**2 if lam is None else lam, delta=0.5, S=S,
                         exploration=exploration, estimate=estimate)

    def reg(self):
        """The ridge of the estimating equation."""
        return self.lam

    def H(self):
        """The Hessian at the estimate."""
        return self.pass_H if self.how == "one-pass" else self.equation().H(self.theta_hat())

    def scores(self, arms):
        """mu(x'theta) and mu(z) - mu(x'theta) of every arm."""
        center = arms @ self.theta_hat()
        mean = self.link.mu(center)
        return mean, self.link.mu(center + CLICK_QUANTILE * self.exploration * norms(arms, self.H())) - mean


class ClickLevels(Levels):
    """The same family for log odds a_t + x'theta: a click is a value of the variance and at the place that Newton's
    step gives it, which is another for every lane, and so each has a level of its own."""

    def __init__(self, dim):
        super().__init__(dim)
        self.lanes = [
            Apart(dim, Filter(dim, one.level.rounds, one.level.slope), one.lane.rounds) for one in self.lanes
        ]
        self.filters = [one.level for one in self.lanes]

    def learn(self, x, r, ticks, age, link, ridge, units, guess, given):
        """Time passes; every lane foretells log odds and learns the click. (z, variance) as each foretold them.

        With a value and a slope given lanes foretell nothing and take these.
        """
        levels = [one.level.fit(guess, ticks) for one in self.lanes]
        self.advance(ticks)
        foretold = []
        for one, (center, level, v) in zip(self.lanes, levels, strict=True):
            if given is None:
                z0, contrast = one.lane.forecast(x - center, ridge, units)
                foretold.append((level + z0, v + contrast))
                value, slope = newton(link, level + z0, v + one.lane.gamma**age * contrast, r)
            else:
                value, slope = given
            one.lane.learn(x - center, value - level, age, 1.0 / (1.0 / slope + v))  # what the level leaves of it
            one.level.learn(x, value, slope)
        return foretold


def newton(link, z0, variance, r):
    """The value and the weight that a click has where log odds of this mean and variance meet it."""
    z = solve_scalar(link, z0, variance, r)
    slope = float(link.d1(z))
    return z + (r - float(link.mu(z))) / slope, slope


class NaiveClickBank(GrowingBank):
    """TrendBank over clicks: lanes of values in log odds, each click entering as Newton's step would have it."""

    def __init__(
        self, *, dim, link="logistic", S=None, lam=None, exploration=1.0, longest=2**24, margin=0.3, levels=False,
        audit=0.0, **bank,
    ):  # fmt: skip
        self.levels, self.audit = ClickLevels(dim) if levels else None, audit
        self.dim, self.link, self.S, self.lam, self.exploration = dim, Link(link), S, lam, exploration
        self.units, self.odds = Units(dim, S is None), []  # z of the lane played, clipped
        lanes = [Lane(dim, rounds, trend) for rounds, trend in growing(dim, longest)]
        super().__init__(lanes, margin=margin, **bank)

    def ridge(self):
        """d/S^2, S told, or 3 for arms of the length seen; no less than 1.5 RMS of the log odds foretold."""
        if self.lam is not None:
            return self.lam
        m2 = self.units.mean_square()
        seen = float(np.mean(np.square(self.odds))) if self.odds else 0.0
        told = self.S**2 if self.S is not None else 9.0 / m2
        return self.dim / max(told, 2.25 * seen / m2)

    def prior(self):
        """The ridge, and the units of features."""
        return self.ridge(), self.units()

    @property
    def apart(self):
        """Whether a lane with a level is played."""
        return self.believed

    def strange(self, x, r):
        """Whether an arm is out of all units."""
        return self.learned >= 10 and self.units.strange(x)

    def guess(self):
        """The weight of a level's first guess: that of a weight that every arm has, at the length seen."""
        return self.ridge() / (self.dim * self.units.mean_square())

    def scores(self, arms):
        """mu(center) and what lies above it 1.5 widths further on (2 beside a level), by the lane played."""
        return self.lifted(*self.click_levels(arms), QUANTILE) if self.apart else self.plain_scores(arms)

    def plain_scores(self, arms):
        """The same by the lane that is played without a level."""
        return self.lifted(*self.believes(self.lanes[self.played()], arms), CLICK_QUANTILE)

    def believes(self, lane, arms):
        """Log odds of every arm and their variance by a plain lane."""
        theta, C = lane.posterior(self.ridge(), self.units())
        return arms @ theta, np.einsum("ni,ij,nj->n", arms, C, arms)

    def known(self, arms):
        """The chance of every arm by the memory of looks, and what a standard deviation of log odds adds to it."""
        center, variance = self.believes(self.lanes[self.short], arms)
        return self.link.mu(center), self.link.mu(center + np.sqrt(variance)) - self.link.mu(center)

    def lifted(self, center, variance, quantile):
        """What the link makes of log odds and so many of their standard deviations."""
        mean = self.link.mu(center)
        return mean, self.link.mu(center + quantile * self.exploration * np.sqrt(variance)) - mean

    def click_levels(self, arms):
        """Log odds by the lane with a level that is played; variance of contrasts by all lanes with its memory of the
        level, as weighed, each about its own center."""
        levels, variance, total = self.levels, 0.0, 0.0
        played = levels.played()
        for k in range(played % 4, len(levels.lanes), 4):
            center, level, _ = levels.lanes[k].level.fit(self.guess(), 0.0)
            theta, C = levels.lanes[k].lane.posterior(self.ridge(), self.units())
            variance = variance + levels.weights[k] * np.einsum("ni,ij,nj->n", arms - center, C, arms - center)
            total += levels.weights[k]
            if k == played:
                odds = level + (arms - center) @ theta
        return odds, variance / total

    def chance(self, z, s2):
        """The chance given to a click."""
        if self.link.name == "logistic":
            return special.expit(z / math.sqrt(1 + math.pi * s2 / 8))
        return special.ndtr(z / math.sqrt(1 + s2))

    def surprise(self, z, s2, r):
        """-log of the chance given to the click or its absence."""
        p = min(max(self.chance(z, s2), 1e-12), 1 - 1e-12)
        return -(r * math.log(p) + (1 - r) * math.log(1 - p))

    def take(self, x, r, ticks, age):
        """Time passes for every lane, which then foretells the click and learns it; pay, take-overs and waking."""
        ridge, guess, units, played, asked = self.ridge(), self.guess(), self.units.beside(x), self.played(), self.asked
        foretold, told, given = [], [], None
        self.clock += ticks
        for lane in self.lanes:
            lane.advance(ticks)
        if not asked:
            shown, variance = self.lanes[played].rough_forecast(x, ridge, units)
            given = newton(self.link, shown, self.lanes[played].gamma**age * variance, r)
        for lane in self.lanes:
            if asked:
                z0, q = lane.forecast(x, ridge, units)
                foretold.append((z0, q))
            value, slope = given or newton(self.link, z0, lane.gamma**age * q, r)
            lane.learn(x, value, age, slope)
        self.costs = np.array([self.surprise(*one, r) for one in foretold])
        if self.levels is not None:
            apart, lane = self.apart, self.levels.played()
            contrast = self.levels.contrast(x, units, guess, ticks, age)
            told = self.levels.learn(x, r, ticks, age, self.link, ridge, units, guess, given)
        if asked:
            shown, _ = told[lane] if self.levels is not None and apart else foretold[played]
            p, slope = float(self.link.mu(shown)), float(self.link.d1(shown))
            above = r - p > 1.5 * math.sqrt(p * (1 - p))
            v = foretold[self.short][1]
            self.paid = (*self.paid, (x, v, units, above and 8 * slope * v > 1))  # a slope may be 0
            if self.levels is not None:
                nats = math.log((self.weights * np.exp(-self.costs)).sum() / self.weights.sum())
                self.levels.pay(np.array([self.surprise(*one, r) for one in told]), nats, contrast)
            self.pay(self.costs)
        self.odds.append(min(abs(shown), 20.0))
        self.units.learn(x)
        self.shift()

    def report(self):
        """The memory played and whether it follows a trend; evidence for a level, and its likeliest memory."""
        lane = self.lanes[self.played()]
        if self.levels is None:
            return {"memory": lane.rounds, "trend": float(lane.trend)}
        likeliest = self.levels.lanes[self.levels.played()]
        told = {"evidence": self.levels.evidence, "level": likeliest.level.rounds}
        lane = likeliest.lane if self.apart else lane
        return {"memory": lane.rounds, "trend": float(lane.trend), **told}


def naive_level_moves(lessons):
    """Log evidence for a level that moves, lane by lane (docs/math.md#levels)."""
    X, R = np.array([x.ravel() for _, _, x, _ in lessons]), np.array([r for *_, r in lessons])
    X, R = X / np.sqrt((X**2).mean(axis=0)), (R - R.mean()) / R.std()
    moving = [(a, N) for a in (4, 16, 64) for N in (64, 512, 4096, math.inf) if a < N]
    staying = [(N, N) for N in (8, 16, 32, 64, 512, 4096, math.inf)]
    told = {pair: naive_lane(lessons, X, R, *pair) for pair in moving + staying}
    noise = min(np.mean([e * e / s for e, s, _ in one]) for one in told.values())
    total, weights = 0.0, {name: {pair: 1 / len(name) for pair in name} for name in (tuple(moving), tuple(staying))}
    for t in range(len(lessons)):
        paid = []
        for name, own in weights.items():
            p = {pair: density(*told[pair][t][:2], noise) for pair in name}
            mixed = sum(own[pair] * p[pair] for pair in name)
            paid.append(math.log(mixed))
            weights[name] = {pair: 0.999 * own[pair] * p[pair] / mixed + 0.001 / len(name) for pair in name}
        total += told[moving[0]][t][2] * min(1.0, max(-1.0, paid[0] - paid[1]))
    return total


def density(e, s, noise):
    """Of Student with 8 degrees of freedom, up to a constant."""
    return s**-0.5 * (1 + e * e / (8 * noise * s)) ** -4.5


def naive_lane(lessons, X, R, level, rounds):
    """Error, variance in units of the noise, and contrast of every reward, from all rewards before it."""
    g, gamma, found, terms = 1 - 1 / level, 1 - 1 / rounds, [], []
    for t, (tick, born, _, _) in enumerate(lessons):
        w = [g ** (tick - lessons[s][0]) for s in range(t)]
        mass = sum(w) + 0.1 * g ** (tick - lessons[0][0])
        x = sum((w[s] * X[s] for s in range(t)), np.zeros(2)) / mass
        r = sum(w[s] * R[s] for s in range(t)) / mass
        V, b = np.eye(2), np.zeros(2)
        for s, (y, z, weight) in enumerate(terms):
            faded = weight * gamma ** (tick - lessons[s][0])
            V, b = V + faded * np.outer(y, y), b + faded * z * y
        y, z = X[t] - x, R[t] - r
        e, spread = z - y @ np.linalg.solve(V, b), 1 + 1 / mass + y @ np.linalg.solve(V, y)
        found.append((e, spread, g ** (tick - born) * min(1.0, 4 * (y @ y) / (X[t] @ X[t]))))
        terms.append((y, z, gamma ** (tick - born) / (1 + 1 / mass)))
    return found
