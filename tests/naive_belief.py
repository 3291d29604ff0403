"""Slow twins of docs/math.md#posterior-radius: posterior radii, learned noise, trends, and their banks.

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


class NaiveGauge:
    """R and the ridge rho0 = R^2 d/S^2 as told, or as all rewards learned so far say.

    R is a number, "learn" or ("learn", guess); S a number or None; lam a number or None.
    """

    def __init__(self, *, dim, R, S, lam=None):
        self.dim, self.S, self.lam = dim, S, lam
        self.learned = R == "learn" or isinstance(R, tuple)
        self.R = None if R == "learn" else R[1] if self.learned else R  # told, or guessed
        self.rewards, self.squares = [], []  # r and ||x||^2 of all that was learned, in order
        self.s, self.m, self.a = 0.0, 0.0, GUESS_WEIGHT

    @property
    def blind(self):
        """Whether something hangs on the size of rewards and none but zeros were seen."""
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
        if self.blind:  # the unit is that of what is told, or 1
            told = self.S**2 * m2 if self.S is not None else 1.0
            rms2 = told if self.R is None else (self.R / SHARE_OF_NOISE) ** 2
        R2 = SHARE_OF_NOISE**2 * rms2 if self.R is None else self.R**2
        if not self.learned and self.S is not None:
            return self.R, R2 * self.dim / self.S**2
        if self.learned and self.R is not None and rms2 > 0.0 and not self.blind:
            R2 = min(R2, rms2)  # a guess is no larger than the rewards it is in
        if self.learned:
            R2 = (self.s + self.a * R2) / (self.m + self.a)
        signal = max(rms2 - R2, LEAST_SIGNAL**2 * rms2)
        S2 = max(REACH**2 * signal / m2, (self.S or 0.0) ** 2)  # S is no less than rewards say
        return math.sqrt(R2), R2 * self.dim / S2

    def learn(self, x, r, residual, v):
        """A reward of x that the lane played missed by the residual, with ||x||^2 = v in its posterior."""
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


def posterior(X, r, w, ridge, lags=None, rounds=None):
    """The posterior of theta: its mean, and its covariance in units of R^2.

    With lags the model is r = x'(theta - lag v), with ridge rounds^2 as stiff on v, and v is integrated out.
    """
    d = X.shape[1]
    if lags is None:
        design, ridges = X, np.full(d, ridge)
    else:
        design = np.hstack([X, -lags[:, None] * X])
        ridges = np.concatenate([np.full(d, ridge), np.full(d, ridge * rounds**2)])
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
    """A memory of so many rounds: observations (x, r, weight, lag, at), weight and lag as they were at clock `at`."""

    def __init__(self, dim, rounds, trend=False):
        self.dim, self.rounds, self.trend = dim, rounds, trend
        self.gamma = 1.0 if math.isinf(rounds) else 1.0 - 1.0 / rounds
        self.clock, self.observations = 0.0, []

    def advance(self, ticks):
        """Time passes."""
        self.clock += ticks

    def learn(self, x, r, age):
        """A reward that was born `age` ago."""
        self.observations.append((x, r, 1.0, 0.0, self.clock - age))

    def now(self):
        """Vectors, rewards, and weights and lags at the present clock."""
        weights = [w * self.gamma ** (self.clock - at) for _, _, w, _, at in self.observations]
        lags = [lag + self.clock - at for _, _, _, lag, at in self.observations]
        X = np.array([x for x, *_ in self.observations]).reshape(-1, self.dim)
        return X, np.array([r for _, r, *_ in self.observations]), np.array(weights), np.array(lags)

    def take_over(self, other):
        """The other's data as they weigh there now; those of a plain memory have no lags."""
        rows = zip(*other.now(), strict=True)
        self.observations = [(x, r, w, lag if other.trend else 0.0, self.clock) for x, r, w, lag in rows]

    def posterior(self, ridge):
        """Mean of theta and its covariance over R^2."""
        X, r, w, lags = self.now()
        return posterior(X, r, w, ridge, lags, self.rounds) if self.trend else posterior(X, r, w, ridge)


class Bank:
    """Weights of lanes (of growing order): paid, shared, played by the longest near the best, taken over, woken."""

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
        """Weights after rewards that surprised every lane so much."""
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


def growing(dim, longest, trends, shortest=8, shortest_trend=32, step=2):
    """(rounds, trend) of the lanes of a TrendBank."""
    rows, rounds = [], shortest
    while rounds <= longest:
        rows.append((float(rounds), False))
        if trends and rounds >= shortest_trend:
            rows.append((float(rounds), True))
        rounds *= step
    return [*rows, (math.inf, False)]


class Filter:
    """A level's memory: a constant or a line through fading arms and rewards in the order they came, and through a
    first guess of 0. Its clock stands still when all but a millionth of it has faded."""

    def __init__(self, dim, rounds, slope):
        self.dim, self.rounds, self.slope, self.g = dim, rounds, slope, 1.0 - 1.0 / rounds
        self.clock, self.seen = 0.0, []  # (x, r), when it came, its weight

    def later(self, ticks):
        """The clock so many ticks from now."""
        mass = self.g**self.clock + sum(weight * self.g ** (self.clock - at) for _, at, weight in self.seen)
        return self.clock + min(ticks, max(0.0, math.log(1e-6 / mass) / math.log(self.g)))

    def learn(self, x, r, weight=1.0):
        """An arm and its reward come, the latter with variance R^2/weight."""
        self.seen.append((np.append(x, r), self.clock, weight))

    def fit(self, guess, ticks):
        """xbar, rbar and v so many ticks from now, the first guess weighing so much at the start."""
        now = self.later(ticks)
        times = np.array([0.0, *(at for _, at, _ in self.seen)]) - now
        w = self.g**-times * np.array([guess, *(weight for *_, weight in self.seen)])
        values = np.array([np.zeros(self.dim + 1), *(both for both, *_ in self.seen)])
        design = np.vander(times, 2 if self.slope else 1, increasing=True)
        A = (design.T * w) @ design + np.diag([0.0, self.rounds**2][: design.shape[1]])
        level = np.linalg.solve(A, (design.T * w) @ values)[0]
        return level[:-1], level[-1], np.linalg.inv(A)[0, 0]


class Apart:
    """A lane with a level: what its filter missed, (x, r, weight, born), is regressed with a memory of its own."""

    def __init__(self, dim, level, rounds):
        self.level, self.lane = level, Lane(dim, rounds)

    def learn(self, x, r, age, told):
        """A reward, by what the filter had told before time passed."""
        center, reward, v = told
        self.lane.observations.append((x - center, r - reward, 1.0 / (1.0 + v), 0.0, self.lane.clock - age))


class Levels:
    """The family of lanes with a level: paid as a bank is, nothing taken over, and the evidence for it."""

    def __init__(self, dim):
        self.filters = [Filter(dim, 4, False), Filter(dim, 16, False), Filter(dim, 64, False), Filter(dim, 64, True)]
        self.lanes = [Apart(dim, level, rounds) for rounds in (64, 512, math.inf) for level in self.filters]
        first = np.repeat([math.exp(-2), math.exp(-1), 1.0], 4)
        self.weights, self.share, self.evidence = first / first.sum(), 1e-5, 0.0

    def played(self):
        """The longest memory of preferences within a nat of the best, all levels summed; then its likeliest level."""
        totals = self.weights.reshape(3, 4).sum(axis=1)
        row = max(np.flatnonzero(totals >= math.exp(-1) * totals.max()))
        return 4 * row + int(np.argmax(self.weights[4 * row : 4 * row + 4]))

    def scores(self, arms, ridge, guess):
        """Mean of every arm by the lane played, and its variance over R^2 by all lanes with its level, as weighed."""
        played = self.played()
        center, level, _ = self.lanes[played].level.fit(guess, 0.0)
        offsets, variance, total = arms - center, 0.0, 0.0
        for k in range(played % 4, 12, 4):
            theta, C = self.lanes[k].lane.posterior(ridge)
            variance = variance + self.weights[k] * np.einsum("ni,ij,nj->n", offsets, C, offsets)
            total += self.weights[k]
            if k == played:
                mean = level + offsets @ theta
        return mean, variance / total

    def forecasts(self, x, ridge, guess, ticks):
        """(value, variance over R^2) of the reward of x by every lane."""
        found = []
        for one in self.lanes:
            center, reward, v = one.level.fit(guess, ticks)
            theta, C = one.lane.posterior(ridge)
            found.append((reward + (x - center) @ theta, v + (x - center) @ C @ (x - center)))
        return found

    def contrast(self, x, guess, ticks, age):
        """How much a reward tells: how unlike the last arms x is, 4‖x - x̄‖²/‖x‖², at most 1, x̄ by the filter of four
        rounds; and how much of its level that filter would still hold if it had come in time."""
        center, _, _ = self.filters[0].fit(guess, ticks)
        return 0.75**age * min(1.0, 4.0 * ((x - center) @ (x - center)) / (x @ x)) if x.any() else 0.0

    def pay(self, surprises, plain, contrast):
        """Evidence against the log density of the plain family, as much as the arm can tell; then weights."""
        w = self.weights * np.exp(-surprises)
        nats = math.log(w.sum() / self.weights.sum()) - plain
        self.evidence = (1 - 1 / 4000) * self.evidence + contrast * min(1.0, max(-1.0, nats))
        self.weights = (1 - self.share) * w / w.sum() + self.share / 12

    def advance(self, ticks):
        """Time passes."""
        for one in self.filters:
            one.clock = one.later(ticks)
        for one in self.lanes:
            one.lane.advance(ticks)

    def learn(self, x, r, ticks, age, guess):
        """Time and a reward to every filter and lane."""
        told = {one: one.fit(guess, ticks) for one in self.filters}
        self.advance(ticks)
        for one in self.lanes:
            one.learn(x, r, age, told[one.level])
        for one in self.filters:
            one.learn(x, r)


class NaiveTrendBank(Bank):
    """TrendBank over values; with `memories` FadeBank over a posterior base, whose longer lanes begin ahead."""

    def __init__(
        self, *, dim, R=1.0, S=1.0, lam=None, exploration=1.0, longest=2**24, memories=None, levels=False, **bank
    ):
        self.dim, self.exploration = dim, exploration
        self.levels = Levels(dim) if levels else None
        self.gauge = NaiveGauge(dim=dim, R=R, S=S, lam=lam)
        self.widens = memories is None
        if memories is None:
            lanes = [Lane(dim, rounds, trend) for rounds, trend in growing(dim, longest, True)]
            # A memory weighs e^-1/2 of one twice as long, up to twice the longest awake.
            awake = bank.get("awake", 4096)
            first = [
                min(lane.rounds, 2 * awake) ** (0.5 / math.log(2)) * (lane.rounds <= awake or math.isinf(lane.rounds))
                for lane in lanes
            ]
            super().__init__(lanes, weights=first, **{"share": 1e-3, **bank})
        else:
            K = len(memories)
            weights = [math.exp(-0.5 * (K - 1 - k)) for k in range(K)]
            super().__init__([Lane(dim, rounds) for rounds in memories], weights=weights, awake=math.inf, **bank)

    @property
    def apart(self):
        """The lane with a level that is played, if one is."""
        believed = self.levels is not None and self.levels.evidence > 1.0
        return self.levels.lanes[self.levels.played()] if believed else None

    def scores(self, arms):
        """Mean and bonus by the lane played."""
        R, ridge = self.gauge.prior()
        lane = self.lanes[self.played()] if self.apart is None else self.apart.lane
        if self.apart is None:
            theta, C = lane.posterior(ridge)
            mean, variance = arms @ theta, np.einsum("ni,ij,nj->n", arms, C, arms)
        else:
            mean, variance = self.levels.scores(arms, ridge, self.guess(ridge))
        quantile = QUANTILE
        if self.widens:
            quantile = math.sqrt(1.0 + WIDENS * math.log(1.0 + lane.now()[2].sum()))
        return mean, quantile * self.exploration * R * np.sqrt(variance)

    def guess(self, ridge):
        """The weight of a level's first guess: R^2/S^2 for arms of the length seen, or of 1 where all is told."""
        told = not self.gauge.learned and self.gauge.S is not None
        return ridge / (self.dim * (1.0 if told else self.gauge.mean_square()))

    def surprise(self, residual, v, R):
        """-log of the density of a reward, up to what all lanes share."""
        squared = residual**2 / (R**2 * (1 + v))
        if not self.gauge.learned:
            return 0.5 * math.log(1 + v) + 0.5 * squared
        nu = 1 + self.gauge.m
        return 0.5 * math.log(1 + v) + 0.5 * (nu + 1) * math.log(1 + squared / nu)

    def learn(self, arms, arm, reward, ticks=1.0, age=0.0):
        """Forecasts, pay, time and the reward to every lane, the gauge, then take-overs and waking."""
        x, r = np.array(arms[arm], dtype=float), float(reward)
        R, ridge = self.gauge.prior()
        beliefs = [lane.posterior(ridge) for lane in self.lanes]
        forecasts = [(r - x @ theta, x @ C @ x) for theta, C in beliefs]
        shown = forecasts[self.played()]
        surprises = np.array([self.surprise(e, v, R) for e, v in forecasts])
        if self.levels is not None:
            apart = [(r - value, v) for value, v in self.levels.forecasts(x, ridge, self.guess(ridge), ticks)]
            shown = apart[self.levels.played()] if self.apart is not None else shown
            if not self.gauge.blind:
                plain = math.log((self.weights * np.exp(-surprises)).sum() / self.weights.sum())
                contrast = self.levels.contrast(x, self.guess(ridge), ticks, age)
                self.levels.pay(np.array([self.surprise(e, v, R) for e, v in apart]), plain, contrast)
            self.levels.learn(x, r, ticks, age, self.guess(ridge))
        if not self.gauge.blind:
            self.pay(surprises)
        self.clock += ticks
        for lane in self.lanes:
            lane.advance(ticks)
            lane.learn(x, r, age)
        self.gauge.learn(x, r, *shown)
        self.shift()

    def advance(self, ticks=1.0):
        """Time passes without a reward."""
        if self.levels is not None:
            self.levels.advance(ticks)
        super().advance(ticks)

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
            Apart(dim, Filter(dim, rounds, slope), memory)
            for memory in (64, 512, math.inf)
            for rounds, slope in ((4, False), (16, False), (64, False), (64, True))
        ]
        self.filters = [one.level for one in self.lanes]

    def learn(self, x, r, ticks, age, link, ridge, guess):
        """Time passes; every lane foretells log odds and learns the click. (z, variance) as each foretold them."""
        levels = [one.level.fit(guess, ticks) for one in self.lanes]
        self.advance(ticks)
        foretold = []
        for one, (center, level, v) in zip(self.lanes, levels, strict=True):
            theta, C = one.lane.posterior(ridge)
            offset = x - center
            z0, contrast = float(level + offset @ theta), float(offset @ C @ offset)
            foretold.append((z0, v + contrast))
            z = solve_scalar(link, z0, v + one.lane.gamma**age * contrast, r)
            slope = float(link.d1(z))
            value = z + (r - float(link.mu(z))) / slope
            precision = 1.0 / (1.0 / slope + v)  # of what the level leaves of the click
            one.lane.observations.append((offset, value - level, precision, 0.0, one.lane.clock - age))
            one.level.learn(x, value, slope)
        return foretold


class NaiveClickBank(Bank):
    """TrendBank over clicks: lanes of values in log odds, each click entering as Newton's step would have it."""

    def __init__(
        self, *, dim, link="logistic", S=None, lam=None, exploration=1.0, longest=2**24, margin=0.3, levels=False,
        **bank,
    ):  # fmt: skip
        self.levels = ClickLevels(dim) if levels else None
        self.dim, self.link, self.S, self.lam, self.exploration = dim, Link(link), S, lam, exploration
        self.odds, self.squares = [], []  # z of the lane played, clipped, and ||x||^2 of all that was learned
        lanes = [Lane(dim, rounds, trend) for rounds, trend in growing(dim, longest, True)]
        super().__init__(lanes, margin=margin, **bank)

    def ridge(self):
        """d/S^2, S told, or 3 for arms of the length seen; no less than 1.5 RMS of the log odds foretold."""
        if self.lam is not None:
            return self.lam
        m2 = float(np.mean(self.squares)) if self.squares else 1.0
        seen = float(np.mean(np.square(self.odds))) if self.odds else 0.0
        told = self.S**2 if self.S is not None else 9.0 / m2
        return self.dim / max(told, 2.25 * seen / m2)

    @property
    def apart(self):
        """Whether a lane with a level is played."""
        return self.levels is not None and self.levels.evidence > 1.0

    def guess(self):
        """The weight of a level's first guess: that of a weight that every arm has, at the length seen."""
        return self.ridge() / (self.dim * (float(np.mean(self.squares)) if self.squares else 1.0))

    def scores(self, arms):
        """mu(center) and what lies above it 1.5 widths further on (2 beside a level), by the lane played."""
        if self.apart:
            return self.lifted(*self.click_levels(arms), QUANTILE)
        theta, C = self.lanes[self.played()].posterior(self.ridge())
        return self.lifted(arms @ theta, np.einsum("ni,ij,nj->n", arms, C, arms), CLICK_QUANTILE)

    def lifted(self, center, variance, quantile):
        """What the link makes of log odds and so many of their standard deviations."""
        mean = self.link.mu(center)
        return mean, self.link.mu(center + quantile * self.exploration * np.sqrt(variance)) - mean

    def click_levels(self, arms):
        """Log odds by the lane with a level that is played; variance of contrasts by all lanes with its memory of the
        level, as weighed, each about its own center."""
        levels, variance, total = self.levels, 0.0, 0.0
        played = levels.played()
        for k in range(played % 4, 12, 4):
            center, level, _ = levels.lanes[k].level.fit(self.guess(), 0.0)
            theta, C = levels.lanes[k].lane.posterior(self.ridge())
            variance = variance + levels.weights[k] * np.einsum("ni,ij,nj->n", arms - center, C, arms - center)
            total += levels.weights[k]
            if k == played:
                odds = level + (arms - center) @ theta
        return odds, variance / total

    def surprise(self, z, s2, r):
        """-log of the chance given to the click or its absence."""
        if self.link.name == "logistic":
            p = special.expit(z / math.sqrt(1 + math.pi * s2 / 8))
        else:
            p = special.ndtr(z / math.sqrt(1 + s2))
        p = min(max(p, 1e-12), 1 - 1e-12)
        return -(r * math.log(p) + (1 - r) * math.log(1 - p))

    def learn(self, arms, arm, reward, ticks=1.0, age=0.0):
        """Time passes for every lane, which then foretells the click and learns it; pay, take-overs and waking."""
        x, r, ridge, played = np.array(arms[arm], dtype=float), float(reward), self.ridge(), self.played()
        foretold = []
        self.clock += ticks
        for lane in self.lanes:
            lane.advance(ticks)
            theta, C = lane.posterior(ridge)
            z0, q = float(x @ theta), float(x @ C @ x)
            foretold.append((z0, q))
            z = solve_scalar(self.link, z0, lane.gamma**age * q, r)
            slope = float(self.link.d1(z))
            value = z + (r - float(self.link.mu(z))) / slope
            lane.observations.append((x, value, slope, 0.0, lane.clock - age))
        self.costs = np.array([self.surprise(z0, q, r) for z0, q in foretold])
        shown = foretold[played][0]
        if self.levels is not None:
            plain, apart, lane = (self.weights * np.exp(-self.costs)).sum(), self.apart, self.levels.played()
            contrast = self.levels.contrast(x, self.guess(), ticks, age)
            told = self.levels.learn(x, r, ticks, age, self.link, ridge, self.guess())
            shown = told[lane][0] if apart else shown
            nats = math.log(plain / self.weights.sum())
            self.levels.pay(np.array([self.surprise(*one, r) for one in told]), nats, contrast)
        self.pay(self.costs)
        self.odds.append(min(abs(shown), 20.0))
        self.squares.append(float(x @ x))
        self.shift()

    def advance(self, ticks=1.0):
        """Time passes without a click."""
        if self.levels is not None:
            self.levels.advance(ticks)
        super().advance(ticks)

    def report(self):
        """The memory played and whether it follows a trend; evidence for a level, and its likeliest memory."""
        lane = self.lanes[self.played()]
        if self.levels is None:
            return {"memory": lane.rounds, "trend": float(lane.trend)}
        likeliest = self.levels.lanes[self.levels.played()]
        told = {"evidence": self.levels.evidence, "level": likeliest.level.rounds}
        lane = likeliest.lane if self.apart else lane
        return {"memory": lane.rounds, "trend": float(lane.trend), **told}
