"""The neighbours' algorithms again, slow and literal, from the formulas of their papers: every sum is computed
again."""

import math

import numpy as np


class NaiveDLinUCB:
    """dLinUCB (Wu, Iyer, Wang 2018): models are lists of what they learned and of whether they failed."""

    def __init__(self, *, dim, lam, delta, S, L, R, window, delta_2, delta_new, count="own"):
        self.dim, self.lam, self.delta, self.S, self.L, self.R = dim, lam, delta, S, L, R
        self.window, self.delta_2, self.delta_new, self.count = window, delta_2, delta_new, count
        self.t, self.models = 0, [{"data": [], "fails": [], "born": 0}]

    def solve(self, model):
        V, b = self.lam * np.eye(self.dim), np.zeros(self.dim)
        for x, r in model["data"]:
            V, b = V + np.outer(x, x), b + r * x
        return np.linalg.inv(V), np.linalg.solve(V, b)

    def beta(self, model):
        n = len(model["data"]) + (model["born"] if self.count == "as-published" else 0)
        inside = 2 * math.log(1 / self.delta) + self.dim * math.log(1 + n * self.L**2 / (self.lam * self.dim))
        return math.sqrt(self.lam) * self.S + self.R * math.sqrt(inside)

    def badness(self, model):
        last = model["fails"][-self.window :]
        if not last:
            return 0.0, 0.5
        return sum(last) / len(last), math.sqrt(math.log(1 / self.delta_2) / (2 * len(last)))

    def best(self):
        def low(model):
            bad, half = self.badness(model)
            return bad - math.sqrt(math.log(self.window)) * half

        return min(self.models, key=low)

    def theta(self):
        return self.solve(self.best())[1]

    def choose(self, arms):
        inverse, theta = self.solve(self.best())
        beta = self.beta(self.best())
        return int(np.argmax([x @ theta + beta * math.sqrt(x @ inverse @ x) for x in arms]))

    def learn(self, arms, arm, reward):
        from scipy.special import erfinv

        self.t += 1
        x, eta = np.array(arms[arm]), math.sqrt(2.0) * self.R * float(erfinv(1 - self.delta))
        for model in self.models:
            inverse, theta = self.solve(model)
            fails = abs(x @ theta - reward) > self.beta(model) * math.sqrt(x @ inverse @ x) + eta
            if not fails:
                model["data"].append((x, reward))
            model["fails"].append(fails)
        told = [(model, *self.badness(model)) for model in self.models]
        some_good = any(bad < half + self.delta_new for _, bad, half in told)
        limit = max(self.delta, self.delta_new)
        self.models = [model for model, bad, half in told if bad < half + limit]
        if not some_good or not self.models:
            self.models.append({"data": [], "fails": [], "born": self.t})


class NaiveWeightedOFUL:
    """Restarted-WeightedOFUL+ (Wang et al. 2025, Algorithm 1)."""

    def __init__(self, *, dim, window, lam, alpha, gamma, sigma, delta, S, L, R, beta=None):
        self.dim, self.window, self.lam, self.alpha, self.gamma = dim, window, lam, alpha, gamma
        self.sigma, self.delta, self.S, self.L, self.R, self.given = sigma, delta, S, L, R, beta
        self.k, self.data = 0, []

    def sums(self):
        V, b = self.lam * np.eye(self.dim), np.zeros(self.dim)
        for x, r, s in self.data:
            V, b = V + np.outer(x, x) / s**2, b + r * x / s**2
        return np.linalg.inv(V), np.linalg.solve(V, b)

    def theta(self):
        return self.sums()[1]

    def radius(self):
        if self.given is not None:
            return self.given
        n = (self.k + 1) % self.window  # of the round to come
        if n == 0 or self.k == 0:
            return math.sqrt(self.lam) * self.S
        q = math.log(32 * (math.log(self.gamma**2 / self.alpha) + 1) * n**2 / self.delta)
        first = 12 * math.sqrt(self.dim * math.log(1 + n * self.L**2 / (self.alpha**2 * self.dim * self.lam)) * q)
        return first + 30 * q * self.R / self.gamma**2 + math.sqrt(self.lam) * self.S

    def choose(self, arms):
        inverse, theta = self.sums()
        return int(np.argmax([x @ theta + self.radius() * math.sqrt(x @ inverse @ x) for x in arms]))

    def learn(self, arms, arm, reward):
        x, (inverse, _) = np.array(arms[arm]), self.sums()
        self.k += 1
        p = 0.5 / self.k
        sigma = math.sqrt(p * (1 - p)) if self.sigma == "rare" else self.sigma
        self.data.append((x, reward, max(sigma, self.alpha, self.gamma * math.sqrt(math.sqrt(x @ inverse @ x)))))
        if (self.k + 1) % self.window == 0:
            self.data = []


class NaiveSAVE:
    """Restarted SAVE+ (Wang et al. 2025, Algorithm 2): every layer keeps its rewards, and all is computed anew."""

    def __init__(self, *, dim, window, layers, delta, S, R, radius="theorem"):
        self.dim, self.window, self.layers, self.delta = dim, window, layers, delta
        self.S, self.R, self.kind, self.k = S, R, radius, 0
        self.data = {layer: [] for layer in range(1, layers + 1)}

    def sums(self, layer):
        V, b = 4.0**-layer * np.eye(self.dim), np.zeros(self.dim)
        for x, r, w in self.data[layer]:
            V, b = V + w**2 * np.outer(x, x), b + w**2 * r * x
        return np.linalg.inv(V), np.linalg.solve(V, b)

    def theta(self):
        return self.sums(1)[1]

    def radius(self, layer):
        if self.kind == "first" or not self.data[layer]:
            return 2.0 ** (1 - layer)
        one = math.log(4 * (self.window + 1) ** 2 * self.layers / self.delta)
        other = math.log(4 * self.window**2 * self.layers / self.delta)
        variance = self.R**2 * len(self.data[layer])
        if 2**layer >= 64 * math.sqrt(one):
            theta = self.sums(layer)[1]
            variance = sum(w**2 * (r - theta @ x) ** 2 for x, r, w in self.data[layer])
        first = 16 * 2.0**-layer * math.sqrt((8 * variance + 6 * self.R**2 * one + 2.0 ** (4 - 2 * layer)) * other)
        return first + 6 * 2.0**-layer * self.R * other + 2.0**-layer * self.S

    def scores(self, arms):
        found = []
        for layer in self.data:
            inverse, theta = self.sums(layer)
            found.append([x @ theta + self.radius(layer) * math.sqrt(x @ inverse @ x) for x in arms])
        return np.min(found, axis=0)

    def choose(self, arms):
        return int(np.argmax(self.scores(arms)))

    def learn(self, arms, arm, reward):
        x = np.array(arms[arm])
        self.k += 1
        widths = {layer: math.sqrt(x @ self.sums(layer)[0] @ x) for layer in self.data}
        wide = [layer for layer, width in widths.items() if width >= 2.0**-layer]
        if wide:
            self.data[wide[0]].append((x, reward, 2.0 ** -wide[0] / widths[wide[0]]))
        if (self.k + 1) % self.window == 0:
            self.data = {layer: [] for layer in self.data}


def naive_exp3_shares(history, n, mix, share):
    """Probabilities of EXP3.S after (arm, reward in [0, 1]) of every round, with unscaled weights."""
    w = np.ones(n)
    for arm, reward in history:
        p = (1 - mix) * w / w.sum() + mix / n
        estimate = np.zeros(n)
        estimate[arm] = reward / p[arm]
        w = w * np.exp(mix * estimate / n) + math.e * share / n * w.sum()
    return (1 - mix) * w / w.sum() + mix / n


class NaiveGLUCB:
    """D-GLUCB and SW-GLUCB (Russac, Cappé, Garivier 2020): clicks, a discount or a window, told d, T, Γ_T and S.

    θ̂ solves λθ + Σ w (μ(x'θ) - r) x = 0. V = (λ/c) I + Σ w xx', c = μ'(S). The index is μ(x'θ̃) + (2k/c) β ‖x‖ in V⁻¹,
    β = √(λc) S + R √(2 log(1/δ) + d log(1 + cE/(λd))), E = Σ w². θ̃ is θ̂, or the point of the ball that is nearest in
    ‖g(θ) - g(θ̂)‖ in V⁻¹. w is γ^age with 1-γ = (Γ/(dT))^(2/3), or 1 at ages below 1/(1-γ).
    """

    def __init__(self, *, dim, horizon, changes, S, kind, R=0.5, lam=1.0, project=True):
        self.dim, self.S, self.R, self.lam, self.kind, self.project = dim, S, R, lam, kind, project
        self.delta, self.forget = 1 / horizon, (changes / (dim * horizon)) ** (2 / 3)
        self.k, self.c = 0.25, self.mu(S) * (1 - self.mu(S))
        self.data = []

    @staticmethod
    def mu(z):
        return 1 / (1 + np.exp(-z))

    def weights(self):
        age = np.arange(len(self.data))[::-1]
        return (1 - self.forget) ** age if self.kind == "fade" else (age < 1 / self.forget).astype(float)

    def xs(self):
        return np.array([x for x, _ in self.data]).reshape(-1, self.dim)

    def g(self, theta):
        return self.lam * theta + self.xs().T @ (self.weights() * self.mu(self.xs() @ theta))

    def V(self):
        return self.lam / self.c * np.eye(self.dim) + (self.xs().T * self.weights()) @ self.xs()

    def estimate(self):
        """Newton's steps from 0 on the sums above."""
        b, theta = self.xs().T @ (self.weights() * np.array([r for _, r in self.data])), np.zeros(self.dim)
        for _ in range(60):
            p = self.mu(self.xs() @ theta)
            H = self.lam * np.eye(self.dim) + (self.xs().T * (self.weights() * p * (1 - p))) @ self.xs()
            step = np.linalg.solve(H, b - self.g(theta))
            theta = theta + step
            if np.linalg.norm(step) < 1e-12:
                return theta
        raise AssertionError("Newton's steps did not settle")

    def theta(self):
        found = self.estimate()
        if not self.project or np.linalg.norm(found) <= self.S:
            return found
        inverse, at = np.linalg.inv(self.V()), self.g(found)

        def gap(angle):  # d = 2: the nearest point lies on the circle
            apart = self.g(self.S * np.array([math.cos(angle), math.sin(angle)])) - at
            return float(apart @ inverse @ apart)

        best, width = min(np.linspace(0, 2 * math.pi, 121), key=gap), 0.06
        while width > 1e-8:
            best, width = min(np.linspace(best - width, best + width, 9), key=gap), width / 3
        return self.S * np.array([math.cos(best), math.sin(best)])

    def scores(self, arms):
        inverse, theta = np.linalg.inv(self.V()), self.theta()
        E = float((self.weights() ** 2).sum())
        inside = 2 * math.log(1 / self.delta) + self.dim * math.log(1 + self.c * E / (self.lam * self.dim))
        beta = math.sqrt(self.lam * self.c) * self.S + self.R * math.sqrt(inside)
        return np.array([self.mu(x @ theta) + 2 * self.k / self.c * beta * math.sqrt(x @ inverse @ x) for x in arms])

    def choose(self, arms):
        return int(np.argmax(self.scores(arms)))

    def learn(self, arms, arm, reward):
        self.data.append((np.array(arms[arm]), reward))


class NaiveLogisticCode:
    """GLM-UCB and LogUCB1 of logistic_bandit, from the formulas in the docstring of `LogisticCodeUCB`, by scipy."""

    def __init__(self, *, dim, delta, S, L, constants):
        self.dim, self.delta, self.S, self.constants, self.data = dim, delta, S, constants, []
        self.kappa = 2 + math.exp(S * L) + math.exp(-S * L)

    def lam(self):
        return self.dim * math.log(2 + len(self.data)) if self.constants == "log" and self.data else float(self.dim)

    def theta(self):
        from scipy.optimize import root

        def equation(theta):
            return self.lam() * theta + sum((x * (NaiveGLUCB.mu(x @ theta) - r) for x, r in self.data), 0 * theta)

        return root(equation, np.zeros(self.dim), tol=1e-13).x

    def radius(self):
        from scipy.stats import chi2

        d, lam, S = self.dim, self.lam(), self.S
        if self.constants == "glm":
            inside = 2 * math.log(1 / self.delta) + math.log(np.linalg.det(self.V() / d))
            return self.kappa / 4 * math.sqrt(inside) + math.sqrt(d) * S
        H = lam * np.eye(d)
        for x, _ in self.data:
            p = NaiveGLUCB.mu(x @ self.theta())
            H = H + p * (1 - p) * np.outer(x, x)
        q = math.log(1 / self.delta) + math.log(np.linalg.det(H / lam)) / 2
        q += math.log(chi2(d).cdf(2 * lam) / chi2(d).cdf(lam))
        g = min(math.sqrt(lam) / 2 + 2 * q / math.sqrt(lam), 1 + q)
        return math.sqrt(self.kappa) / 4 * min(math.sqrt(1 + 2 * S) * g, g + g**2 / math.sqrt(lam)) + math.sqrt(lam) * S

    def V(self):
        return self.dim * np.eye(self.dim) + sum((np.outer(x, x) for x, _ in self.data), np.zeros((self.dim,) * 2))

    def scores(self, arms):
        inverse, theta, rho = np.linalg.inv(self.V()), self.theta(), self.radius()
        return np.array([NaiveGLUCB.mu(x @ theta) + rho * math.sqrt(x @ inverse @ x) for x in arms])

    def learn(self, arms, arm, reward):
        self.data.append((np.array(arms[arm]), reward))


class NaiveOFUGLB:
    """OFUGLB at d = 2: the largest x'θ over a fine grid of the ball, refined where the set's best point is."""

    def __init__(self, *, dim, delta, S, window, share):
        self.dim, self.delta, self.S, self.window, self.share, self.data = dim, delta, S, window, share, []

    def loss(self, thetas):
        """Of each row."""
        total = np.zeros(len(thetas))
        for x, r in self.data[-self.window :] if self.window else self.data:
            z = thetas @ x
            total += np.logaddexp(0, z) - r * z
        return total

    def level(self):
        n = len(self.data) if self.window is None else min(self.window, len(self.data))
        inside = max(math.e, 2 * math.e * self.S * (1 + self.S / 2) * n / self.dim)
        return self.share * (math.log(1 / self.delta) + self.dim * math.log(inside))

    def grid(self):
        radius, angle = np.meshgrid(np.linspace(0, self.S, 61), np.linspace(0, 2 * math.pi, 361))
        return np.stack([(radius * np.cos(angle)).ravel(), (radius * np.sin(angle)).ravel()], axis=1)

    def values(self, arms):
        """Optimistic x'θ of every arm, from below, to about 1% of S‖x‖."""
        thetas = self.grid()
        losses = self.loss(thetas)
        kept = thetas[losses - losses.min() <= self.level()]
        return np.array([(kept @ x).max() for x in arms])

    def learn(self, arms, arm, reward):
        self.data.append((np.array(arms[arm]), reward))


def naive_glr(rewards):
    """max over s of s·kl(mean of the first s, mean) + (n-s)·kl(mean of the others, mean)."""

    def kl(p, q):
        ends = ((p, q), (1 - p, 1 - q))
        return sum(a * math.log(a / b) for a, b in ends if a > 0)

    n, mean = len(rewards), sum(rewards) / len(rewards)
    if mean in (0.0, 1.0):
        return 0.0
    return max(s * kl(sum(rewards[:s]) / s, mean) + (n - s) * kl(sum(rewards[s:]) / (n - s), mean) for s in range(1, n))


class NaiveGLBOMD:
    """GLB-OMD (Zhang, Xu, Zhao, Sugiyama 2025) at d = 2: every step minimises its objective, on a circle by angles."""

    def __init__(self, *, S, L, delta, lam=None):
        self.S, self.L, self.delta, self.eta = S * L, L, delta, 1 + S * L
        self.lam = max(14 * 2 * self.eta, 6 * self.eta * self.S / 4) if lam is None else lam
        self.steps = []  # (x, θ after its reward)

    def H(self):
        slopes = [NaiveGLUCB.mu(x @ theta) * NaiveGLUCB.mu(-x @ theta) for x, theta in self.steps]
        pairs = zip(slopes, self.steps, strict=True)
        return self.lam * np.eye(2) + sum((s * np.outer(x, x) for s, (x, _) in pairs), np.zeros((2, 2)))

    def now(self):
        return self.steps[-1][1] if self.steps else np.zeros(2)

    def scores(self, arms):
        n, inverse = len(self.steps), np.linalg.inv(self.H())
        beta2 = 4 * self.lam * self.S**2 + 2 * self.eta * math.log(1 / self.delta)
        beta2 += 2 * (6 * self.eta**2 + self.eta) * math.log(1 + n / (4 * self.lam))
        X = np.array(arms) / self.L
        return np.array([x @ self.now() + math.sqrt(beta2) * math.sqrt(x @ inverse @ x) for x in X])

    def learn(self, arms, arm, reward):
        x, start, H = np.array(arms[arm]) / self.L, self.now(), self.H()
        p = NaiveGLUCB.mu(x @ start)

        def objective(theta):
            gone = theta - start
            return (p - reward) * x @ gone + p * (1 - p) * (x @ gone) ** 2 / 2 + gone @ H @ gone / (2 * self.eta)

        theta = start - np.linalg.solve(p * (1 - p) * np.outer(x, x) + H / self.eta, (p - reward) * x)
        if np.linalg.norm(theta) > self.S:
            best, width = 0.0, math.pi
            while width > 1e-9:
                angles = np.linspace(best - width, best + width, 41)
                best, width = min(angles, key=lambda a: objective(self.S * self.at(a))), width / 10
            theta = self.S * self.at(best)
        self.steps.append((x, theta))

    @staticmethod
    def at(angle):
        return np.array([math.cos(angle), math.sin(angle)])
