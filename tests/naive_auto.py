"""The slow and literal twin of docs/math.md#auto, written from that page alone.

Covariances are full matrices, every number that the page defines has a method, and whatever is a mean or a sum of what
was seen is computed from the list of all of it. What the page defines by a recursion is one here.
"""

import math

import numpy as np
from scipy import special

from driftwise.kernels.chance import uniform

PLAIN = (8, 32, 128, 512, 2048, 8192)
TRENDS = (32, 128, 512, 2048)
LEVELS = tuple((N, L) for L in (8, 32) for N in (32, 512, 8192))


class Lane:
    """m and C of (θ, offset, velocities), with N rounds of memory and L rounds of its offset's."""

    KEPT = 1 / 8  # it begins anew where less stays

    def __init__(self, dim, N, *, L=math.inf, trend=False, level=False, offset=0.0, wide=1e4):
        self.dim, self.N, self.L, self.trend, self.level, self.wide = dim, N, L, trend, level, wide
        size = 2 * dim + 1 if trend else dim + 1
        self.m, self.C = np.zeros(size), np.zeros((size, size))
        self.m[dim], self.C[dim, dim] = offset, wide

    def speed(self, i):
        """The place of the velocity of feature i."""
        return self.dim + 1 + i

    def priors(self, P):
        """The prior variance of every coordinate."""
        return np.concatenate([P, [self.wide], P / self.N**2] if self.trend else [P, [self.wide]])

    def vector(self, x, age=0.0):
        """v of an arm chosen `age` ago."""
        return np.concatenate([x, [1.0], -age * x] if self.trend else [x, [1.0]])

    def begin(self, P):
        """θ and velocities anew."""
        m, variance = self.m[self.dim], self.C[self.dim, self.dim]
        self.C, self.m = np.diag(self.priors(P)), np.zeros(len(self.m))
        self.m[self.dim], self.C[self.dim, self.dim] = m, variance

    def meet(self, i, variance):
        """The prior of a feature that is seen for the first time."""
        self.C[i, i] = variance
        if self.trend:
            self.C[self.speed(i), self.speed(i)] = variance / self.N**2

    def settle(self, P):
        """A coordinate much wider than its prior becomes as wide."""
        for i in range(self.dim):
            if P[i] > 0.0 and self.C[i, i] > 16.0 * P[i]:
                f = np.ones(len(self.m))
                f[[i, self.speed(i)] if self.trend else [i]] = math.sqrt(P[i] / self.C[i, i])
                self.m, self.C = f * self.m, np.diag(f) @ self.C @ np.diag(f)

    def stretch(self, gone, level, P):
        """S of the second step of time."""
        prior, held = self.priors(P), np.diag(self.C)
        by = np.full(len(self.m), 1.0 / gone if gone > 0.0 else math.inf)
        by[self.dim] = 1.0 / level if level > 0.0 else math.inf
        for i in range(len(by)):
            if held[i] == 0.0:
                by[i] = 1.0
            elif by[i] * held[i] > prior[i]:
                by[i] = max(1.0, prior[i] / held[i])
        return np.sqrt(by)

    def observe(self, v, e, noise):
        """m and C after an observation of v that is e above what was foretold."""
        y = self.C @ v
        self.m = self.m + y * e / (noise + v @ y)
        self.C = self.C - np.outer(y, y) / (noise + v @ y)
        self.C = (self.C + self.C.T) / 2  # rounding would let the two halves part

    def shown(self, i, P, gone):
        """The prior of feature i, as much of it as fades."""
        noise = P[i] / (self.dim * (1.0 - gone))
        self.observe(np.eye(len(self.m))[i], -self.m[i], noise)
        if self.trend:
            at = self.speed(i)
            self.observe(np.eye(len(self.m))[at], -self.m[at], noise / self.N**2)

    def later(self, ticks, P, i, seen):
        """Time."""
        gone, level = (1.0 - 1.0 / self.N) ** ticks, (1.0 - 1.0 / self.L) ** ticks
        anew = gone < self.KEPT
        if anew:
            self.begin(P)
        if gone < 1.0 or level < 1.0:
            S = np.diag(self.stretch(gone, level, P))
            self.C = S @ self.C @ S
        if self.trend and not anew:
            F = np.eye(len(self.m))
            F[: self.dim, self.dim + 1 :] = ticks * np.eye(self.dim)
            self.m, self.C = F @ self.m, F @ self.C @ F.T
        if gone < 1.0 and seen[i]:
            self.shown(i, P, gone)

    def variance(self, v, last):
        """σ²: the variance of v given the value of the arm learned last."""
        s = v @ self.C @ v
        if last is None:
            return max(0.0, s)
        bar = self.vector(last)
        return max(0.0, s - (v @ self.C @ bar) ** 2 / (bar @ self.C @ bar))


class NaiveAuto:
    """`memory` is None, or the rounds of the only lane."""

    SHARE, BELIEVED = 1e-3, 4.0  # weights that are spread; nats above which levels act

    def __init__(self, *, dim, link="identity", memory=None, looks=None, rate=0.12):
        self.dim, self.link, self.clicks = dim, link, link != "identity"
        self.often = looks if looks is not None else 0.5 if memory is None else 0.0
        prior = {"offset": math.log(rate / (1.0 - rate)), "wide": 4.0} if self.clicks else {}
        if memory is None:
            self.lanes = [Lane(dim, N, **prior) for N in PLAIN]
            self.lanes += [Lane(dim, N, trend=True, **prior) for N in TRENDS]
            self.lanes += [Lane(dim, N, L=L, level=True, **prior) for N, L in LEVELS]
        else:
            self.lanes = [Lane(dim, memory, **prior)]
        self.families = [[k for k, one in enumerate(self.lanes) if one.level == level] for level in (False, True)]
        self.families = [family for family in self.families if family]
        self.weights = np.zeros(len(self.lanes))
        for family in self.families:
            self.weights[family] = special.softmax([self.first(self.lanes[k]) for k in family])
        self.unit = np.zeros(dim)  # 0 before a feature was seen
        self.rewards, self.arms, self.apart = [], [], []  # all rewards and arms (in units); what B is the mean of
        self.E = self.W = self.E_now = self.W_now = self.D_now = self.leans = 0.0
        self.D, self.F, self.bar, self.last = 0.0, 0.0, np.zeros(dim), None
        self.next, self.refused = 0, 0

    def first(self, lane):
        """The log of a weight at first."""
        return -0.5 * lane.trend

    # ------------------------------------------------------------------------------------ what is known of rewards
    @property
    def t(self):
        return len(self.rewards)

    def inside(self, x):
        """x in units; a feature without one keeps its number."""
        return x / np.where(self.unit > 0.0, self.unit, 1.0)

    def counts(self):
        """n and q."""
        arms = np.reshape(self.arms, (-1, self.dim))
        return (arms != 0.0).sum(axis=0), (arms**2).sum(axis=0)

    def k(self):
        return max(1.0, np.mean([np.count_nonzero(x) for x in self.arms])) if self.arms else 1.0

    def M(self):
        return np.mean(self.rewards) if self.rewards else 0.0

    def Q(self):
        if self.t == 1:
            found = self.rewards[0] ** 2
        else:
            found = np.var(self.rewards, ddof=1) if self.t else 0.0
        return found or 1e-12 * self.M() ** 2 or 1.0

    def R2(self):
        if self.clicks:
            return 1.0
        guess = 10.0 * (1 - 1e-3) ** self.t
        return max((guess * self.Q() / 2 + self.E) / (guess + self.W), 1e-10 * self.Q())

    def B(self):
        if self.t <= 1 and not self.clicks:
            return self.Q()
        return np.sum(self.apart) / max(self.t, 1)

    def p0(self):
        if self.clicks:
            return 4.0 * max(1.0, self.B()) / self.k()
        return 4.0 * max(self.B() - self.R2(), 0.09 * self.Q()) / (self.R2() * self.k())

    def P(self):
        n, q = self.counts()
        return self.p0() * n / np.where(n > 0, q, 1.0)

    def H(self):
        """The noise of now, believed or not."""
        return (self.E_now + 4.0 * self.R2()) / (self.W_now + 4.0)

    def noise_now(self):
        """ς_n."""
        return 1.0 if self.clicks or self.D_now <= 8.0 else self.H() / self.R2()

    def nu(self):
        return min(8.0, 1.0 + self.W)

    def lean(self):
        """l."""
        return self.leans / (self.W + 200)

    def kept(self, u):
        """û."""
        return np.clip(u, -10.0, 10.0)

    def leant(self, u):
        """What an error adds to Λ."""
        u = self.kept(u)
        return u * (u**2 - 1) / (8 + u**2)

    def hears(self, e, s):
        """An error of the lane that acted."""
        self.leans = (1 - 1e-3) * self.leans + self.leant(self.deviations(s, e, self.noise_now()))
        noise, R2, H = self.noise_now(), self.R2(), self.H()
        h = e**2 * noise / (noise + s)
        told = 0.5 * (math.log(R2 / H) + 9 * (math.log(1 + h / (8 * R2)) - math.log(1 + h / (8 * H))))
        self.D_now = max(0.0, (1 - 1 / 200) * self.D_now + np.clip(told, -1.0, 1.0))
        self.E_now, self.W_now = (1 - 1 / 40) * self.E_now + h, (1 - 1 / 40) * self.W_now + 1.0
        self.E, self.W = (1 - 1e-3) * self.E + h, (1 - 1e-3) * self.W + 1.0

    def strange(self, x, r):
        """Whether a reward is not learned, were it not the ninth."""
        if self.t < 10:
            return False
        n, q = self.counts()
        away, usual = (r - self.M()) ** 2, np.var(self.rewards) + self.M() ** 2
        loud = not self.clicks and any(self.rewards) and away > 1e8 * usual
        return loud or any(x[i] ** 2 > 1e8 * q[i] / n[i] for i in range(self.dim) if n[i])

    def length(self, x):
        """‖x‖² in units √(q/n)."""
        n, q = self.counts()
        return sum(x[i] ** 2 * n[i] / q[i] for i in range(self.dim) if n[i])

    # -------------------------------------------------------------------------------------------------------- links
    def mu(self, z):
        return special.expit(z) if self.link == "logistic" else special.ndtr(z)

    def bend(self, z):
        """μ'."""
        if self.link == "logistic":
            return special.expit(z) * special.expit(-z)
        return math.exp(-(z**2) / 2) / math.sqrt(2 * math.pi)

    def slope(self, z):
        """μ', kept from 0."""
        return max(1e-8, self.bend(z))

    def chance(self, f, s):
        """The foretold chance of a click."""
        c = math.pi / 8 if self.link == "logistic" else 1.0
        return np.clip(self.mu(f / math.sqrt(1.0 + c * s)), 1e-12, 1 - 1e-12)

    def mode(self, f, s, w, r):
        """z = f + ws(r - μ(z)), by bisection."""
        low, high = f - w * s, f + w * s
        for _ in range(200):
            z = (low + high) / 2
            low, high = (low, z) if z > f + w * s * (r - self.mu(z)) else (z, high)
        return (low + high) / 2

    # ---------------------------------------------------------------------------------------------------- learning
    def advance(self, ticks):
        """Time passes."""
        if ticks == 0.0:
            return
        P = self.P()
        for lane in self.lanes:
            lane.later(ticks, P, self.next, self.unit > 0.0)
        self.next = (self.next + 1) % self.dim

    def deviations(self, s, e, noise):
        """u."""
        return e / math.sqrt(self.R2() * (noise + s))

    def density(self, s, u, noise):
        """log p of a value."""
        tails = 0.5 * (self.nu() + 1) * math.log(1 + u**2 / self.nu())
        return -0.5 * math.log(noise + s) - tails - self.lean() * self.kept(u)

    def worth(self, lane, age):
        """w."""
        return max(self.least_worth(), (1.0 - 1.0 / lane.N) ** age)

    def least_worth(self):
        return math.exp(-14)

    def loud(self, noise, u):
        """ς after a reward that is loud while others are quiet."""
        return noise * max(1.0, (8 + u**2) / 9) if self.noise_now() < 1.0 else noise

    def taught(self, lane, x, r, age):
        """A reward in one lane: returns log p, s, and f and e from before."""
        v = lane.vector(x, age)
        if v @ lane.C @ v < 0.0:
            lane.begin(self.P())
        s, f, w = v @ lane.C @ v, lane.m @ v, self.worth(lane, age)
        if self.clicks:
            p = self.chance(f, s)
            log_p = r * math.log(p) + (1 - r) * math.log(1 - p)
            z = self.mode(f, s, w, r)
            noise, e = 1.0 / (w * self.slope(z)), z + (r - self.mu(z)) / self.slope(z) - f
        else:
            e, noise_now = r - f, self.noise_now()
            u = self.deviations(s, e, noise_now)
            log_p, noise = self.density(s, u, noise_now), self.loud(noise_now, u) / w
        lane.observe(v, e, noise)
        return log_p, s, f, e

    def contrast(self, x):
        """h."""
        return min(1.0, 4.0 * self.length(x - self.bar) / self.length(x)) if x.any() else 1.0

    def reweigh(self, log_p, h):
        """Weights after a reward."""
        for family in self.families:
            lanes = [self.lanes[k] for k in family]
            logs = np.log(self.weights[family]) + np.array([self.power(one, h) for one in lanes]) * log_p[family]
            self.weights[family] = (1 - self.SHARE) * special.softmax(logs) + self.SHARE / len(family)

    def power(self, lane, h):
        return h if lane.level else 1.0

    def together(self, family, log_p):
        """log p of a family."""
        return special.logsumexp(log_p[family], b=self.weights[family])

    def learn(self, arms, arm, r, ticks=1.0, age=0.0):
        self.advance(ticks)
        x = np.asarray(arms, dtype=float)[arm]
        self.refused = self.refused + 1 if self.strange(self.inside(x), r) else 0
        if 0 < self.refused < 9:
            return
        acted = self.lanes[self.played()]
        new = (self.unit == 0.0) & (x != 0.0)
        self.unit[new] = 2.0 ** np.floor(np.log2(np.abs(x[new])))
        x = self.inside(x)
        self.rewards.append(r)
        self.arms.append(x)
        for lane in self.lanes:
            for i in np.flatnonzero(new):
                lane.meet(i, self.p0() / x[i] ** 2)
        for lane in self.lanes:
            lane.settle(self.P())
        short = self.short()
        unknown = short.variance(short.vector(x), self.last) / self.length(x) if x.any() else 0.0
        self.F += (unknown - self.F) / min(self.t, 128)
        offset = acted.m[self.dim]
        told = [self.taught(lane, x, r, age) for lane in self.lanes]
        log_p, (_, s, f, e) = np.array([one[0] for one in told]), told[self.lanes.index(acted)]
        h = self.contrast(x)
        self.bar = self.bar + (x - self.bar) / min(self.t, 4)
        told = log_p if self.t > 1 else 0.0 * log_p
        if len(self.families) > 1:
            plain, levels = (self.together(family, told) for family in self.families)
            self.D = (1 - 1 / 4000) * self.D + h * (levels - plain)
        self.reweigh(told, h)
        if self.clicks:
            self.apart.append((f - offset) ** 2)
        else:
            self.hears(e, s)
            self.apart.append((r - (acted.m[self.dim] if self.t > 1 else 0.0)) ** 2)
        self.last = x

    # ----------------------------------------------------------------------------------------------------- choosing
    def played(self):
        """The lane that acts."""
        family = self.families[-1] if self.D > self.BELIEVED else self.families[0]
        return max(family, key=lambda k: self.weights[k])

    def short(self):
        """The lane that looks ask."""
        return next((one for one in self.lanes if one.N == 128), self.lanes[0])

    def psi(self, u):
        return math.sqrt(0.5 * math.log(1.0 + u))

    def spread(self, lane, x):
        """σ² of an arm (in units)."""
        unseen = np.count_nonzero(x[self.unit == 0.0])
        return lane.variance(lane.vector(x), self.last) + self.p0() * unseen

    def patience(self, lane, f):
        """u."""
        u = min(lane.N, self.t + 20) / self.noise_now()
        return u * self.bend(f) if self.clicks else u

    def scores(self, arms):
        """Means and bonuses."""
        lane, scores = self.lanes[self.played()], []
        for x in map(self.inside, np.asarray(arms, dtype=float)):
            f, spread = lane.m @ lane.vector(x), self.spread(lane, x)
            scores.append(self.lifted(f, math.sqrt(self.R2() * spread) * self.psi(self.patience(lane, f) * spread)))
        return np.transpose(scores)

    def lifted(self, f, more):
        """A mean, and what an index is above it."""
        return (self.mu(f), self.mu(f + more) - self.mu(f)) if self.clicks else (f, more)

    def on_a_set(self, x, look):
        """Mean and bonus of a vector of a continuous set."""
        lane, x = self.short() if look else self.lanes[self.played()], self.inside(x)
        spread = lane.variance(lane.vector(x), self.last) + self.p0() * np.sum(x[self.unit == 0.0] ** 2)
        times = 1.0 + 0.45 * math.log(1.0 + min(self.t, lane.N))
        return self.lifted(lane.m @ lane.vector(x), math.sqrt(self.R2() * times * spread))

    def hidden(self, x):
        """Whether an arm (in units) is hidden."""
        short = self.short()
        return self.spread(short, x) > 4 * self.F * self.length(x) + 1e-12 * short.C[self.dim, self.dim]

    def deviation(self, x):
        """κ of an arm (in units), and its mean by the lane that looks ask."""
        lane = self.short()
        return self.lifted(lane.m @ lane.vector(x), math.sqrt(self.R2() * self.spread(lane, x)))[::-1]

    def looked(self, arms, best, costs):
        """The chance that a look plays each hidden arm; of the rest it plays what would be played."""
        inside = [self.inside(x) for x in np.asarray(arms, dtype=float)]
        kappa, short = np.transpose([self.deviation(x) for x in inside])
        mean = self.scores(arms)[0]
        g = np.maximum(0.0, np.max(mean - costs) - (np.maximum(mean, short) - costs))
        worth = self.worth_a_look(kappa, g) * [arm != best and self.hidden(x) for arm, x in enumerate(inside)]
        return worth * self.of_a_look(worth) if worth.any() else worth

    def worth_a_look(self, kappa, g):
        """c."""
        return kappa**2 / np.where(kappa > 0.0, kappa**2 + 10 * g**2, 1.0)

    def of_a_look(self, worth):
        """The chance of an arm for each of its c."""
        return worth.max() / worth.sum()

    def look_chance(self):
        return min(1.0, self.often / math.sqrt(self.t + 1)) if self.t >= 10 else 0.0

    def shares(self, arms, costs=0.0):
        """The probability of each arm."""
        best = int(np.argmax(sum(self.scores(arms)) - costs))
        share = self.look_chance() * self.looked(arms, best, costs)
        share[best] += 1.0 - share.sum()
        return share

    def choose(self, arms, key, costs=0.0, draw=None):
        """The arm that decision number `draw` plays, by the two halves of a key."""
        number, best = self.t + 1 if draw is None else draw, int(np.argmax(sum(self.scores(arms)) - costs))
        share = self.looked(arms, best, costs)
        if uniform(*key, number, 1, 0) >= self.look_chance():
            return best
        found = np.flatnonzero(uniform(*key, number, 1, 1) < np.cumsum(share))
        return int(found[0]) if len(found) else best
