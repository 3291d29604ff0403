"""Every algorithm again, slow and literal, from docs/math.md: the oracle for tests of the fast code.

Nothing is carried from round to round that can be recomputed: an estimate is solved from the full list of
observations whenever it is needed. Names such as "linear" below are sections of docs/math.md.
"""

import math

import numpy as np
from scipy import optimize, special


class History:
    """All observations (x, reward, born), a clock, and the weights a memory gives them now.

    memory is ("keep",), ("fade", forget), ("window", length) or ("restart", period). With ticks = 1 and age = 0 this is
    the paper's loop: the choice of round t sees clock t-1, and observation s is born at s.
    """

    def __init__(self, memory):
        if memory[0] not in ("keep", "fade", "window", "restart"):
            raise ValueError(f"memory {memory!r}")
        self.memory = memory
        self.clock = 0.0
        self.observations = []

    def advance(self, ticks=1.0):
        """Time passes without an observation."""
        self.clock += ticks

    def learn(self, arms, arm, reward, ticks=1.0, age=0.0):
        """Time passes, then the reward of arms[arm], played `age` ago, arrives."""
        self.clock += ticks
        self.observations.append((np.array(arms[arm], dtype=float), float(reward), self.clock - age))

    @property
    def gamma(self):
        """The discount per tick; 1 for the memories that do not fade."""
        return 1.0 - self.memory[1] if self.memory[0] == "fade" else 1.0

    def last_restart(self):
        """The clock at which a restarting memory last cleared, None before the first time and for the others."""
        if self.memory[0] != "restart":
            return None
        period = self.memory[1]
        boundary = math.floor(self.clock / period) * period
        return None if boundary < period else boundary

    def weight(self, born):
        """The weight, at the current clock, of an observation born at `born`."""
        kind = self.memory[0]
        if kind == "fade":
            return self.gamma ** (self.clock - born)
        if kind == "window":
            return 1.0 if self.clock - born < self.memory[1] else 0.0
        if kind == "restart":
            boundary = self.last_restart()
            return 1.0 if boundary is None or born > boundary else 0.0
        return 1.0

    def weights(self):
        """The weights, at the current clock, of all observations."""
        return np.array([self.weight(born) for _, _, born in self.observations], dtype=float)

    def squares(self):
        """E, the sum of the squared weights: (1-g^2n)/(1-g^2) in the paper's loop, min(n, w) in a window, n if kept."""
        return float(np.sum(self.weights() ** 2))

    def xs(self, dim):
        """The vectors played, one a row."""
        return np.array([x for x, _, _ in self.observations], dtype=float).reshape(-1, dim)

    def rewards(self):
        """The rewards."""
        return np.array([r for _, r, _ in self.observations], dtype=float)

    def gram(self, dim, power=1):
        """G = sum of w^power x x'."""
        X = self.xs(dim)
        return (X.T * self.weights() ** power) @ X

    def choose(self, arms):
        """The first arm of largest score."""
        mean, bonus = self.scores(arms)
        return int(np.argmax(mean + bonus))


def norms(arms, inverse_of):
    """||x||_{M^-1} of every arm, M = inverse_of."""
    return np.sqrt(np.sum(arms * np.linalg.solve(inverse_of, arms.T).T, axis=1))


# ---------------------------------------------------------------------------------------------- docs/math.md#linear


class NaiveLinear(History):
    """docs/math.md#linear: OFUL, RestartUCB, SW-UCB, LB-WeightUCB (bonus "one") and D-LinUCB (bonus "two")."""

    def __init__(self, *, dim, memory, lam, delta, S=1.0, L=1.0, R=1.0, exploration=1.0, bonus="one",
                 radius="weighted"):
        super().__init__(memory)
        if bonus not in ("one", "two", "two-as-published"):
            raise ValueError(f"bonus {bonus!r}")
        if radius not in ("weighted", "cheung"):
            raise ValueError(f"radius {radius!r}")
        if bonus == "two-as-published" and memory[0] not in ("keep", "fade"):
            raise ValueError("the published error is a recursion in gamma: keep or fade only")
        if radius == "cheung" and memory[0] != "window":
            raise ValueError("the radius of Cheung et al. needs a window")
        self.dim, self.lam, self.delta, self.S, self.L, self.R = dim, lam, delta, S, L, R
        self.exploration, self.bonus, self.radius = exploration, bonus, radius
        self.published_twin = np.zeros((dim, dim))  # the error is a recursion, which the weights do not determine

    def learn(self, arms, arm, reward, ticks=1.0, age=0.0):
        super().learn(arms, arm, reward, ticks, age)
        if self.bonus == "two-as-published":  # V_t first, then V~_t = g^2 V_t + XX' + (1-g^2) lam I
            x, _, born = self.observations[-1]
            self.published_twin = (
                self.gamma ** (2 * ticks) * self.gram(self.dim) + self.weight(born) ** 2 * np.outer(x, x)
            )

    def advance(self, ticks=1.0):
        super().advance(ticks)
        if self.bonus == "two-as-published":
            self.published_twin = self.gamma ** (2 * ticks) * self.gram(self.dim)

    def V(self):
        """lam I + sum of w x x'."""
        return self.lam * np.eye(self.dim) + self.gram(self.dim)

    def V_twin(self):
        """D-LinUCB's second matrix: lam I + sum of w^2 x x', or the error in its authors' code."""
        twin = self.published_twin if self.bonus == "two-as-published" else self.gram(self.dim, power=2)
        return self.lam * np.eye(self.dim) + twin

    def theta(self):
        """V^-1 b."""
        return np.linalg.solve(self.V(), self.xs(self.dim).T @ (self.weights() * self.rewards()))

    def beta(self, E=None):
        """The radius of the confidence ellipsoid, E being the sum of squared weights (None: the present one)."""
        E = self.squares() if E is None else E
        d, lam, delta, S, L, R = self.dim, self.lam, self.delta, self.S, self.L, self.R
        if self.radius == "cheung":
            w = self.memory[1]
            return math.sqrt(lam) * S + R * math.sqrt(d * math.log((1 + w * L**2 / lam) / delta))
        inside = 2 * math.log(1 / delta) + d * math.log(1 + L**2 * E / (lam * d))
        return math.sqrt(lam) * S + R * math.sqrt(inside)

    def multiplier(self, E):
        """The factor of the norm of x in the bonus; E is the sum of squared weights."""
        return self.exploration * self.beta(E)

    def scores(self, arms):
        """Mean x'theta and bonus of every arm."""
        arms = np.asarray(arms, dtype=float)
        V = self.V()
        if self.bonus == "one":
            widths = norms(arms, V)
        else:
            y = np.linalg.solve(V, arms.T).T
            widths = np.sqrt(np.sum(y * (y @ self.V_twin()), axis=1))
        return arms @ self.theta(), self.multiplier(self.squares()) * widths


# ----------------------------------------------------------------- docs/math.md#generalized-linear, the estimate


def gaussian_density(z):
    """The standard normal density."""
    return np.exp(-z * z / 2) / math.sqrt(2 * math.pi)


LINKS = {  # mu, mu', mu'', M with M' = mu
    "identity": (lambda z: z, np.ones_like, np.zeros_like, lambda z: z * z / 2),
    "logistic": (
        special.expit,
        lambda z: special.expit(z) * special.expit(-z),
        lambda z: special.expit(z) * special.expit(-z) * (special.expit(-z) - special.expit(z)),
        lambda z: np.logaddexp(0, z),
    ),
    "probit": (
        special.ndtr,
        gaussian_density,
        lambda z: -z * gaussian_density(z),
        lambda z: z * special.ndtr(z) + gaussian_density(z),
    ),
    "poisson": (np.exp, np.exp, np.exp, np.exp),
}


class Link:
    """A mean function mu, its derivatives d1 and d2, its integral, and k = sup, c = inf of mu' over |z| <= SL."""

    def __init__(self, name):
        self.name = name
        self.mu, self.d1, self.d2, self.integral = LINKS[name]

    def k(self, SL):
        """sup of mu' over |z| <= SL; a slope here rises, or falls on both sides of 0."""
        return float(max(self.d1(z) for z in (-float(SL), 0.0, float(SL))))

    def c(self, SL):
        """inf of mu' over |z| <= SL."""
        return float(min(self.d1(z) for z in (-float(SL), float(SL))))


class Equation:
    """reg theta + sum of w (mu(x'theta) - r) x = 0 at one moment (docs/math.md#generalized-linear)."""

    def __init__(self, X, r, w, reg, link):
        self.X, self.r, self.w, self.reg, self.link = X, r, w, reg, link
        self.dim = X.shape[1]
        self.b = X.T @ (w * r)

    def g(self, theta):
        """reg theta + sum of w mu(x'theta) x."""
        return self.reg * theta + self.X.T @ (self.w * self.link.mu(self.X @ theta))

    def H(self, theta, power=1):
        """reg I + sum of w^power mu'(x'theta) x x', the derivative of g."""
        return self.reg * np.eye(self.dim) + (self.X.T * (self.w**power * self.link.d1(self.X @ theta))) @ self.X

    def loss(self, theta):
        """(reg/2)||theta||^2 + sum of w (M(x'theta) - r x'theta)."""
        z = self.X @ theta
        return self.reg / 2 * theta @ theta + self.w @ (self.link.integral(z) - self.r * z)

    def estimate(self):
        """argmin of the loss, by Newton from 0, the step halved while the loss rises."""
        theta = np.zeros(self.dim)
        for _ in range(500):
            step = np.linalg.solve(self.H(theta), self.b - self.g(theta))
            if np.linalg.norm(step) <= 1e-9 * (1 + np.linalg.norm(theta)):
                break
            with np.errstate(over="ignore", invalid="ignore"):
                while not self.loss(theta + step) <= self.loss(theta):
                    step = step / 2
            theta = theta + step
        for _ in range(3):  # to the last digit: here Newton's step is safe, and rounding hides changes of the loss
            theta = theta + np.linalg.solve(self.H(theta), self.b - self.g(theta))
        return theta

    def local_gaps(self, points):
        """||g(theta) - b||^2_{H(theta)^-1} at every row of points."""
        Z = points @ self.X.T
        residuals = self.reg * points + (self.w * self.link.mu(Z)) @ self.X - self.b
        H = self.reg * np.eye(self.dim) + np.einsum("pn,ni,nj->pij", self.w * self.link.d1(Z), self.X, self.X)
        return np.sum(residuals * np.linalg.solve(H, residuals[:, :, None])[:, :, 0], axis=1)

    def gap(self, theta, M):
        """||g(theta) - b||^2_{M^-1} and its gradient 2 H(theta) M^-1 (g(theta) - b)."""
        y = np.linalg.solve(M, self.g(theta) - self.b)
        return (self.g(theta) - self.b) @ y, 2 * self.H(theta) @ y

    def local_gap(self, theta):
        """||g(theta) - b||^2_{H(theta)^-1} and its gradient 2 (g - b) - sum of w mu'' (x'y)^2 x, y = H^-1 (g - b)."""
        residual = self.g(theta) - self.b
        y = np.linalg.solve(self.H(theta), residual)
        bend = self.X.T @ (self.w * self.link.d2(self.X @ theta) * (self.X @ y) ** 2)
        return residual @ y, 2 * residual - bend


# ---------------------------------------------------------------------------------- a small program, solved twice


def minimise(value, constraints, starts):
    """The best point found of: value least, every constraint >= 0. Both return (number, gradient).

    SLSQP from every start, then Newton on the equations of the active constraints. Returns None if no start leads to
    a point within 1e-9 of all constraints. Scale the constraints to order 1.
    """
    best, least = None, math.inf
    for start in starts:
        for point in _solve_from(value, constraints, np.array(start, dtype=float)):
            if _violation(constraints, point) <= 1e-9 and value(point)[0] < least:
                best, least = point, value(point)[0]
    return best


def _violation(constraints, point):
    return max([0.0, *(-con(point)[0] for con in constraints)])


def _solve_from(value, constraints, start):
    """The start itself and the point it leads to: SLSQP's answer made exact, or unchanged if that fails."""
    number, slope = value(start)
    scale = max(abs(number), float(np.linalg.norm(slope))) or 1.0
    rows = [{"type": "ineq", "fun": lambda p, con=con: con(p)[0], "jac": lambda p, con=con: con(p)[1]}
            for con in constraints]
    with np.errstate(over="ignore", invalid="ignore"):
        found = optimize.minimize(lambda p: value(p)[0] / scale, start, jac=lambda p: value(p)[1] / scale,
                                  method="SLSQP", constraints=rows, options={"ftol": 1e-15, "maxiter": 300}).x
    if not np.all(np.isfinite(found)):
        return [start]
    refined = _refine(value, constraints, found)
    if refined is None or _violation(constraints, refined) > max(1e-13, _violation(constraints, found)):
        return [start, found]
    if value(refined)[0] > value(found)[0] + 1e-6 * abs(value(found)[0]):
        return [start, found]
    return [start, refined]


def _refine(value, constraints, point):
    """Newton on gradient(value) = sum of nu_i gradient(con_i), con_i = 0 over the active i. None if it wanders off."""
    n = point.size
    near = [con for con in constraints if con(point)[0] < 1e-5]
    nu = optimize.nnls(np.array([con(point)[1] for con in near]).T, value(point)[1])[0] if near else np.zeros(0)
    active = [con for con, multiplier in zip(near, nu, strict=True) if multiplier > 0]
    nu = nu[nu > 0]

    def residual(y):
        p, multipliers = y[:n], y[n:]
        pull = sum((m * con(p)[1] for m, con in zip(multipliers, active, strict=True)), np.zeros(n))
        return np.concatenate([value(p)[1] - pull, [con(p)[0] for con in active]])

    y = np.concatenate([point, nu])
    for _ in range(30):
        now = residual(y)
        if not np.all(np.isfinite(now)):
            return None
        J = np.empty((y.size, y.size))
        for i in range(y.size):
            h = 1e-6 * (1 + abs(y[i]))
            e = np.zeros(y.size)
            e[i] = h
            J[:, i] = (residual(y + e) - residual(y - e)) / (2 * h)
        step = np.linalg.lstsq(J, -now, rcond=1e-12)[0]
        y = y + step
        if np.linalg.norm(y[:n] - point) > 1e-2 * (1 + np.linalg.norm(point)):
            return None
        if np.linalg.norm(step) <= 1e-15 * (1 + np.linalg.norm(y)):
            break
    return y[:n]


def inside_ball(S):
    """The constraint ||theta|| <= S, scaled."""
    return lambda theta: (1 - theta @ theta / S**2, -2 * theta / S**2)


def ball_starts(theta, S):
    """The radial point S theta/||theta||, the origin, the axes both ways, and six fixed random directions."""
    dim = theta.size
    directions = [theta, *np.eye(dim), *-np.eye(dim), *np.random.default_rng(0).normal(size=(6, dim))]
    return [S * v / np.linalg.norm(v) for v in directions if np.linalg.norm(v) > 0] + [np.zeros(dim)]


# ------------------------------------------------------------------ generalized linear, by a bonus


class GLMHistory(History):
    """The observations with a link: the estimate, its projections, V."""

    def __init__(self, *, dim, memory, link, lam, delta, S, L, exploration=1.0):
        super().__init__(memory)
        self.dim, self.link, self.lam, self.delta = dim, Link(link), lam, delta
        self.S, self.L, self.exploration = S, L, exploration
        self.k, self.c = self.link.k(S * L), self.link.c(S * L)

    def reg(self):
        """The ridge of the estimating equation."""
        return self.lam * self.c

    def ridge(self):
        """The ridge of V."""
        return self.lam

    def equation(self):
        """The estimating equation now."""
        return Equation(self.xs(self.dim), self.rewards(), self.weights(), self.reg(), self.link)

    def V(self):
        """ridge I + sum of w x x'."""
        return self.ridge() * np.eye(self.dim) + self.gram(self.dim)

    def V_twin(self):
        """ridge I + sum of w^2 x x'."""
        return self.ridge() * np.eye(self.dim) + self.gram(self.dim, power=2)

    def in_ball(self, theta):
        """Whether ||theta|| <= S."""
        return np.linalg.norm(theta) <= self.S

    def project(self, value, theta_hat):
        """The point of the ball where value(theta), a function returning (number, gradient), is least."""
        return minimise(value, [inside_ball(self.S)], ball_starts(theta_hat, self.S))

    def beta_glb(self, E):
        """docs/math.md#generalized-linear: the radius of the GLB rules; E is the sum of squared weights."""
        d, lam = self.dim, self.lam
        inside = 2 * math.log(1 / self.delta) + d * math.log(1 + self.L**2 * E / (lam * d))
        return math.sqrt(lam) * self.c * self.S + self.R * math.sqrt(inside)

    def beta_concordant(self, logarithm, growth):
        """sqrt(reg)/2m + (2m/sqrt(reg))(logarithm + d log 2) + (dm/sqrt(reg)) log(1+growth) + sqrt(reg) S.

        With m L for m (Conventions, last line): scaling the arms by 1/L and theta by L scales reg by 1/L^2.
        """
        root, mL, d = math.sqrt(self.reg()), self.m * self.L, self.dim
        return (root / (2 * mL) + 2 * mL / root * (logarithm + d * math.log(2))
                + d * mL / root * math.log(1 + growth) + root * self.S)


class NaiveGLM(GLMHistory):
    """The rules "glb" (docs/math.md#generalized-linear), "scb" and "sc-d-glucb" (#self-concordant), and one pass."""

    def __init__(self, *, dim, memory, link, lam, delta, S=1.0, L=1.0, R=1.0, m=1.0, exploration=1.0, rule="glb",
                 uniform=False, horizon=None, estimate="exact"):
        super().__init__(dim=dim, memory=memory, link=link, lam=lam, delta=delta, S=S, L=L, exploration=exploration)
        if rule not in ("glb", "scb", "sc-d-glucb"):
            raise ValueError(f"rule {rule!r}")
        if estimate not in ("exact", "one-pass"):
            raise ValueError(f"estimate {estimate!r}")
        if estimate == "one-pass" and memory[0] == "window":
            raise ValueError("one pass cannot drop what left a window")
        if rule == "sc-d-glucb" and (self.gamma == 1.0 or horizon is None):
            raise ValueError("sc-d-glucb needs forgetting and the horizon")
        if uniform and horizon is None:
            raise ValueError("uniform needs the horizon")
        self.R, self.m, self.rule, self.uniform, self.horizon, self.how = R, m, rule, uniform, horizon, estimate
        self.restarted = None
        self.clear()

    def reg(self):
        return self.lam if self.rule == "sc-d-glucb" else self.lam * self.c

    def ridge(self):
        return self.lam / self.c if self.rule == "sc-d-glucb" else self.lam

    # docs/math.md#estimates, one pass

    def clear(self):
        """The one-pass estimate at its start: H = reg I, theta = 0."""
        self.pass_H, self.pass_theta = self.reg() * np.eye(self.dim), np.zeros(self.dim)

    def age_one_pass(self, ticks):
        """H <- A = g H + (1-g) reg I, theta <- v = A^-1 g H theta, with g = gamma^ticks; cleared by a restart."""
        g = self.gamma**ticks
        A = g * self.pass_H + (1 - g) * self.reg() * np.eye(self.dim)
        self.pass_theta = np.linalg.solve(A, g * self.pass_H @ self.pass_theta)
        self.pass_H = A
        if self.last_restart() != self.restarted:
            self.restarted = self.last_restart()
            self.clear()

    def absorb_one_pass(self, x, r, w):
        """theta <- v + w A^-1 x (r - mu(z)), H <- A + w mu'(z) x x' where z = x'v + w x'A^-1 x (r - mu(z))."""
        y = np.linalg.solve(self.pass_H, x)
        z = solve_scalar(self.link, x @ self.pass_theta, w * (x @ y), r)
        self.pass_theta = self.pass_theta + w * y * (r - self.link.mu(z))
        self.pass_H = self.pass_H + w * self.link.d1(z) * np.outer(x, x)

    def advance(self, ticks=1.0):
        super().advance(ticks)
        self.age_one_pass(ticks)

    def learn(self, arms, arm, reward, ticks=1.0, age=0.0):
        super().learn(arms, arm, reward, ticks, age)
        self.age_one_pass(ticks)
        x, r, born = self.observations[-1]
        if self.how == "one-pass" and self.weight(born) > 0:
            self.absorb_one_pass(x, r, self.weight(born))

    # the estimate and its projection

    def theta_hat(self):
        """The solution of the estimating equation, or its one-pass stand-in."""
        return self.equation().estimate() if self.how == "exact" else self.pass_theta

    def theta(self):
        """theta_hat if it lies in the ball or the rule does not project; else the nearest point of the ball."""
        theta_hat = self.theta_hat()
        if self.rule == "sc-d-glucb" or self.in_ball(theta_hat):
            return theta_hat
        equation, V, H = self.equation(), self.V(), self.pass_H
        if self.how == "one-pass":  # no g is left: H (theta - theta_hat) stands for g(theta) - b
            Q = H @ np.linalg.solve(V, H) if self.rule == "glb" else H
            return self.project(lambda p: ((p - theta_hat) @ Q @ (p - theta_hat), 2 * Q @ (p - theta_hat)), theta_hat)
        if self.rule == "glb":
            return self.project(lambda p: equation.gap(p, V), theta_hat)
        return self.project(equation.local_gap, theta_hat)

    # the bonus

    def multiplier(self, E):
        """What multiplies ||x||_{V^-1} in the bonus, E being the sum of squared weights."""
        if self.rule == "glb":
            return self.exploration * 2 * self.k / self.c * self.beta_glb(E)
        if self.rule == "scb":
            logarithm = math.log((self.horizon if self.uniform else 1) / self.delta)
            if self.uniform and self.gamma < 1.0:  # docs/repairs.md#3-repair-of-lemma-9-and-theorem-3, step 8
                delay = math.ceil(math.log(self.horizon) / math.log(1 / self.gamma))
                logarithm += (math.e - 1) * self.reg() / (4 * self.m**2 * self.L**2)
                logarithm += self.gamma**delay / (2 * (1 - self.gamma))
            radius = self.beta_concordant(logarithm, self.L**2 * self.k * E / (self.reg() * self.dim))
            concordance = 2 * math.sqrt(1 + 2 * self.S * self.L)
            return self.exploration * concordance * self.k / math.sqrt(self.c) * radius
        return self.exploration * self.beta_russac(self.theta_hat()) / math.sqrt(self.c)

    def beta_russac(self, theta_hat):
        """SC-D-GLUCB: the radius inside and outside the ball (S, lam, m scaled as in beta_concordant)."""
        T, d, k, L, m, forget = self.horizon, self.dim, self.k, self.L, self.m, self.memory[1]
        S, lam = self.S * L, self.lam / L**2
        root = math.sqrt(lam)
        rho = (root / (2 * m) + 2 * m / root * (math.log(T / self.delta) + d * math.log(2))
               + d * m / root * math.log(1 + k * (1 - T**-2) / (d * lam * (1 - self.gamma**2))))
        if self.in_ball(theta_hat):
            return k * math.sqrt(1 + 2 * S) * (root * S + rho)
        wide = S + (2 * S * k + m) / (T * lam * forget)
        return k * root * (1 + wide + math.sqrt((1 + wide) / lam) * rho + (rho / root) ** 2) ** 1.5

    def scores(self, arms):
        """Mean mu(x'theta) and bonus of every arm."""
        arms = np.asarray(arms, dtype=float)
        return self.link.mu(arms @ self.theta()), self.multiplier(self.squares()) * norms(arms, self.V())


def solve_scalar(link, z0, q, r):
    """The z with z = z0 + q (r - mu(z)), mu >= 0: left side minus right side increases, so bracket and bisect."""
    if link.name == "identity":
        return (z0 + q * r) / (1 + q)
    if q == 0:
        return z0
    high = z0 + q * r  # there the difference is mu(high) >= 0
    width = 1.0
    with np.errstate(over="ignore"):
        while high - width - z0 - q * (r - link.mu(high - width)) > 0:
            width *= 2
        z = optimize.brentq(lambda z: min(z - z0 - q * (r - link.mu(z)), 1e300), high - width, high, xtol=1e-14,
                            rtol=4 * np.finfo(float).eps, maxiter=1000)
    for _ in range(3):
        z = z - (z - z0 - q * (r - link.mu(z))) / (1 + q * link.d1(z))
    return float(z)


# ------------------------------------------------------------------------------------ docs/math.md#unknown-drift


def naive_squares(memory, n):
    """E after n rounds of the paper's loop."""
    history = History(memory)
    for _ in range(n):
        history.learn(np.zeros((1, 1)), 0, 0.0)
    return history.squares()


def naive_rho_hat(t, *, horizon, delta, dim, lam, L, R, W):
    """rho^(t) = 6 (log2 T + 1) log(T/delta) rho(t); W is the base's bonus multiplier at n = t, lam the ridge in V."""
    width = 2 * W * math.sqrt(2 * max(1, L**2 / lam) * dim * t * math.log(1 + L**2 * t / (lam * dim)))
    rho = (width + R * math.sqrt(2 * t * math.log(1 / delta))) / t
    return 6 * (math.log2(horizon) + 1) * math.log(horizon / delta) * rho


class NaiveMaster:
    """MASTER (Wei & Luo 2021). base_factory() is a fresh base; uniform(block_start, tau, order) a draw in [0, 1).

    Rounds count from 0, the offset tau from the start of the block. rho(t) is rho^(t), test_scale multiplies it.
    """

    def __init__(self, base_factory, *, horizon, n0, test_scale, uniform, rho):
        self.base_factory, self.horizon, self.n0, self.test_scale = base_factory, horizon, n0, test_scale
        self.uniform, self.rho = uniform, rho
        self.round = 0
        self.restarts = []  # the rounds that began a block because a test fired
        self.begin_block(n0)

    def begin_block(self, order):
        """A new block of the given order starts at the current round."""
        self.order, self.block_start = order, self.round
        self.instances = []  # (order, first offset, base): all scheduled in this block so far
        self.optimism, self.rewards = [], []  # f and r of every round of the block so far
        self.schedule()

    def schedule(self):
        """Start the instances of the current offset."""
        tau = self.round - self.block_start
        if tau == 0:
            self.instances.append((self.order, 0, self.base_factory()))
        for m in range(self.order - 1, -1, -1):
            if tau % 2**m == 0 and self.uniform(self.block_start, tau, m) < 2 ** (-(self.order - m) / 2):
                self.instances.append((m, tau, self.base_factory()))

    def active(self):
        """The shortest instance that covers the current round: (order, first offset, base)."""
        tau = self.round - self.block_start
        return min((i for i in self.instances if i[1] <= tau < i[1] + 2 ** i[0]), key=lambda i: i[0])

    def scores(self, arms):
        """The active instance's."""
        return self.active()[2].scores(arms)

    choose = History.choose

    def learn(self, arms, arm, reward):
        """Only the active instance learns; then the tests."""
        if self.round >= self.horizon:
            raise ValueError("the horizon is over")
        mean, bonus = self.scores(arms)
        self.optimism.append(float(np.max(mean + bonus)))
        self.rewards.append(float(reward))
        self.active()[2].learn(arms, arm, reward)
        fired = self.fires()
        self.round += 1
        if self.round == self.horizon:
            return
        if fired:
            self.restarts.append(self.round)
            self.begin_block(self.n0)
        elif self.round - self.block_start == 2**self.order:
            self.begin_block(self.order + 1)
        else:
            self.schedule()

    def fires(self):
        """Tests 1 and 2 after the reward of the current round."""
        if math.isinf(self.test_scale):
            return False
        so_far = self.round - self.block_start + 1
        U = min(self.optimism)
        for m, first, _ in self.instances:
            if first + 2**m == so_far and np.mean(self.rewards[first:]) >= U + 9 * self.test_scale * self.rho(2**m):
                return True
        regret = np.mean(np.array(self.optimism) - np.array(self.rewards))
        return bool(regret >= 3 * self.test_scale * self.rho(so_far))


def naive_payoff(rewards, *, S, L, R, block, horizon):
    """BOB's payoff of a block for Gaussian-like rewards; for rewards in [0, 1] it is their mean."""
    spread = 2 * L * S * block + 4 * R * math.sqrt(block * math.log(horizon / math.sqrt(block)))
    return 0.5 + sum(rewards) / spread


class NaiveBOB:
    """Bandit over bandits. base_factory(j) is a fresh base with memory j of K, payoff(rewards) a block's payoff.

    uniform(block_index) is a draw in [0, 1).
    """

    def __init__(self, base_factory, *, K, block, horizon, payoff, uniform):
        self.base_factory, self.K, self.block, self.horizon = base_factory, K, block, horizon
        self.payoff, self.uniform = payoff, uniform
        blocks = math.ceil(horizon / block)
        self.g = min(1.0, math.sqrt(K * math.log(K) / ((math.e - 1) * blocks)))
        self.log_s = np.zeros(K)
        self.round = 0
        self.begin_block()

    def probabilities(self):
        """p_j = (1-g) s_j / sum of s + g/K."""
        s = np.exp(self.log_s - np.max(self.log_s))
        return (1 - self.g) * s / np.sum(s) + self.g / self.K

    def begin_block(self):
        """Draw a memory by inverting the cumulative sum of p; a cleared base."""
        u = self.uniform(self.round // self.block)
        below = np.flatnonzero(u < np.cumsum(self.probabilities()))
        self.drawn = int(below[0]) if below.size else self.K - 1
        self.base = self.base_factory(self.drawn)
        self.rewards = []

    def scores(self, arms):
        """The drawn base's."""
        return self.base.scores(arms)

    choose = History.choose

    def learn(self, arms, arm, reward):
        """The base learns; a block that ends before the horizon pays off and is followed by another draw."""
        if self.round >= self.horizon:
            raise ValueError("the horizon is over")
        self.base.learn(arms, arm, reward)
        self.rewards.append(float(reward))
        self.round += 1
        if self.round % self.block == 0 and self.round < self.horizon:
            p = self.probabilities()[self.drawn]
            self.log_s[self.drawn] += self.g * self.payoff(self.rewards) / (self.K * p)
            self.begin_block()


class NaiveBank:
    """A bank of memories, all fed, scored by likelihood; lanes are naive policies of growing memory.

    cap is c2, None for no cap. tie says which of equally scored lanes plays: the "first" (shortest) or the "last".
    """

    def __init__(self, lanes, *, alpha, cap=None, tie="first"):
        self.lanes, self.alpha, self.cap, self.tie = lanes, alpha, cap, tie
        self.log_scores = np.zeros(len(lanes))

    @staticmethod
    def state(lane):
        """A lane's estimate, its matrix V or H, and the squared twin of that."""
        if isinstance(lane, NaiveLinear):
            return lane.theta(), lane.V(), lane.lam * np.eye(lane.dim) + lane.gram(lane.dim, power=2)
        theta, equation = lane.theta_hat(), lane.equation()
        return theta, equation.H(theta), equation.H(theta, power=2)

    def log_likelihood(self, lane, x, r):
        """log p(r|x) before learning it."""
        theta, H, _ = self.state(lane)
        z, s2 = float(x @ theta), float(x @ np.linalg.solve(H, x))
        name = "identity" if isinstance(lane, NaiveLinear) else lane.link.name
        if name == "identity":
            variance = lane.R**2 * (1 + s2)
            return -0.5 * math.log(2 * math.pi * variance) - (r - z) ** 2 / (2 * variance)
        if name == "logistic":
            u = z / math.sqrt(1 + math.pi * s2 / 8)
            return r * special.log_expit(u) + (1 - r) * special.log_expit(-u)
        if name == "probit":
            u = z / math.sqrt(1 + s2)
            return r * special.log_ndtr(u) + (1 - r) * special.log_ndtr(-u)
        raise ValueError(f"no predictive law for {name}")

    def allowed(self):
        """The number of the longest lane whose estimate agrees with every shorter one."""
        if self.cap is None:
            return len(self.lanes) - 1
        states = [self.state(lane) for lane in self.lanes]
        longest = 0
        for k, (theta_k, _, _) in enumerate(states):
            agrees = True
            for j in range(k):
                theta_j, V, twin = states[j]
                y = V @ (theta_k - theta_j)  # C_j^-1 = V V~^-1 V
                agrees = agrees and y @ np.linalg.solve(twin, y) <= self.cap * self.lanes[j].R ** 2
            if agrees:
                longest = k
        return longest

    def playing(self):
        """The best-scored lane among those the cap allows."""
        scores = self.log_scores[: self.allowed() + 1]
        best = np.flatnonzero(scores == np.max(scores))
        return int(best[0] if self.tie == "first" else best[-1])

    def scores(self, arms):
        """The playing lane's."""
        return self.lanes[self.playing()].scores(arms)

    choose = History.choose

    def learn(self, arms, arm, reward):
        """L <- alpha L + log p(r|x), then every lane learns."""
        x = np.array(arms[arm], dtype=float)
        for k, lane in enumerate(self.lanes):
            self.log_scores[k] = self.alpha * self.log_scores[k] + self.log_likelihood(lane, x, float(reward))
            lane.learn(arms, arm, reward)


# ----------------------------------------------------------- docs/math.md#self-concordant, optimism over a set


def cloud(dim, S):
    """Points all over the ball of radius S: a grid in one and two dimensions, else random; the sphere well covered."""
    if dim == 1:
        return np.linspace(-S, S, 4001)[:, None]
    if dim == 2:
        side = np.linspace(-S, S, 101)
        grid = np.array([(u, v) for u in side for v in side if u * u + v * v <= S * S])
        angles = np.linspace(0, 2 * math.pi, 721)[:-1]
        return np.concatenate([grid, S * np.column_stack([np.cos(angles), np.sin(angles)])])
    rng = np.random.default_rng(1)
    points = rng.normal(size=(8000, dim))
    points *= S / np.linalg.norm(points, axis=1)[:, None]
    points[::2] *= rng.uniform(size=(4000, 1)) ** (1 / dim)
    return points


class SetRule(GLMHistory):
    """Play argmax over x and theta in a set of x'theta; the set is C, or the convex set around it.

    C = {theta in the ball: ||g(theta) - b||_{H(theta)^-1} <= rho}. The mean is mu(x'theta~) at the projection
    theta~, the bonus is what is missing to mu of the optimistic value.
    """

    convex = False

    def rho(self):
        """The radius of C."""
        raise NotImplementedError

    def theta(self):
        """The projection of docs/math.md#self-concordant."""
        equation = self.equation()
        theta_hat = equation.estimate()
        return theta_hat if self.in_ball(theta_hat) else self.project(equation.local_gap, theta_hat)

    def scores(self, arms):
        """mu(x'theta~) and mu(optimistic value) - mu(x'theta~) of every arm."""
        arms = np.asarray(arms, dtype=float)
        mean = self.link.mu(arms @ self.theta())
        values = self.convex_values(arms, self.rho()) if self.convex else self.exact_values(arms, self.rho())
        return mean, self.link.mu(values) - mean

    def exact_values(self, arms, rho):
        """max of x'theta over C for every arm; x'theta~ if C is empty."""
        equation, center = self.equation(), self.theta()
        if equation.local_gap(center)[0] > rho**2:
            return arms @ center

        def within(p):
            gap, slope = equation.local_gap(p)
            return 1 - gap / rho**2, -slope / rho**2

        local = np.linalg.inv(np.linalg.cholesky(equation.H(center))).T  # maps the unit ball to H's unit ellipsoid
        near = center + 3 * rho * cloud(self.dim, 1.0) @ local.T
        near *= np.minimum(1, self.S / np.maximum(np.linalg.norm(near, axis=1), 1e-300))[:, None]
        near, far = (p[equation.local_gaps(p) <= rho**2] for p in (near, cloud(self.dim, self.S)))
        values = []
        for x in arms:
            starts = [center, *ball_starts(x, self.S)[:1]]
            starts += [points[np.argmax(points @ x)] for points in (near, far) if len(points)]
            values.append(self.furthest(x, within, starts))
        return np.array(values)

    def convex_values(self, arms, rho):
        """max of x'theta over {theta in the ball: Loss(theta) - Loss(theta^) <= (rho + L rho^2/sqrt(reg))^2}.

        If that is empty, x'theta at argmin of the loss over the ball.
        """
        equation = self.equation()
        theta_hat = equation.estimate()
        B = (rho + self.L * rho**2 / math.sqrt(self.reg())) ** 2
        lowest = equation.loss(theta_hat)

        def within(p):
            return 1 - (equation.loss(p) - lowest) / B, -(equation.g(p) - equation.b) / B

        center = theta_hat
        if not self.in_ball(theta_hat):
            center = self.project(lambda p: (equation.loss(p) - lowest, equation.g(p) - equation.b), theta_hat)
        if equation.loss(center) - lowest > B:
            return arms @ center
        return np.array([self.furthest(x, within, [center, *ball_starts(x, self.S)[:1]]) for x in arms])

    def furthest(self, x, within, starts):
        """max of x'theta over the ball and one more constraint."""
        return float(x @ minimise(lambda p: (-(x @ p), -x), [inside_ball(self.S), within], starts))


class NaivePW(SetRule):
    """SCB-PW-WeightUCB (docs/math.md#self-concordant). tight divides by 1-gamma^2 in the last logarithm."""

    def __init__(self, *, dim, memory, link, lam, delta, horizon, S=1.0, L=1.0, m=1.0, D=None, exploration=1.0,
                 set="exact", uniform=False, tight=False):
        super().__init__(dim=dim, memory=memory, link=link, lam=lam, delta=delta, S=S, L=L, exploration=exploration)
        if self.gamma == 1.0:
            raise ValueError("PW needs forgetting")
        self.m, self.horizon, self.uniform, self.tight, self.convex = m, horizon, uniform, tight, set == "convex"
        self.D = math.ceil(math.log(horizon) / -math.log1p(-memory[1])) if D is None else D

    def rho(self):
        d, k, L, forget, reg = self.dim, self.k, self.L, self.memory[1], self.reg()
        rest = self.gamma**self.D / forget
        drift = (2 * L**2 * self.S * k + L * self.m) / math.sqrt(reg) * rest
        squares = (1 - self.gamma ** (2 * self.D)) / (1 - self.gamma**2 if self.tight else forget)
        logarithm = math.log((self.horizon if self.uniform else 1) / self.delta)
        return self.exploration * (drift + self.beta_concordant(logarithm, L**2 * k * squares / (reg * d)))


class NaiveOFULog(SetRule):
    """OFULog, and with r=True OFULog-r: reg = lam_t = d log(2+t), t = 1 + observations seen.

    omega_t = sqrt(lam)(S+1/2) + (2/sqrt(lam)) log(1/delta) + (d/sqrt(lam)) log(4(1+t/(4 d lam))) is their
    radius with m = 1, k = 1/4 and t for E.
    """

    def __init__(self, *, dim, delta, S=1.0, L=1.0, exploration=1.0, r=False, memory=("keep",)):
        super().__init__(dim=dim, memory=memory, link="logistic", lam=None, delta=delta, S=S, L=L,
                         exploration=exploration)
        self.m, self.convex = 1.0, r

    def t(self):
        """The round to be played."""
        return 1 + self.squares()

    def reg(self):
        return self.dim * math.log(2 + self.t())

    def rho(self):
        growth = self.L**2 * self.t() / (4 * self.dim * self.reg())
        return self.exploration * self.beta_concordant(math.log(1 / self.delta), growth)


class NaiveLogisticUCB2(SetRule):
    """Logistic-UCB-2 (docs/math.md#self-concordant): the estimate is kept in W. reg = lam, V has ridge lam/c."""

    def __init__(self, *, dim, lam, delta, S=1.0, L=1.0, exploration=1.0, memory=("keep",)):
        super().__init__(dim=dim, memory=memory, link="logistic", lam=lam, delta=delta, S=S, L=L,
                         exploration=exploration)
        self.m = 1.0
        self.limits = {}  # the bytes of an arm -> (arm, its smallest l)

    def reg(self):
        return self.lam

    def ridge(self):
        return self.lam / self.c

    def rho(self):
        """gamma_t = sqrt(lam)(S+1/2) + (2/sqrt(lam)) log((2^d/delta)(1+t/(4 d lam))^(d/2)), t = 1 + observations."""
        growth = self.L**2 * (1 + self.squares()) / (4 * self.dim * self.lam)
        return self.beta_concordant(math.log(1 / self.delta), growth)

    def learn(self, arms, arm, reward, ticks=1.0, age=0.0):
        """l = min(S||x||, max over C of |x'theta|) by the data before this reward, then the reward."""
        x = np.array(arms[arm], dtype=float) + 0.0  # -0 as 0
        limit = self.S * np.linalg.norm(x)
        equation = self.equation()
        if equation.local_gap(super().theta())[0] <= self.rho() ** 2:
            limit = min(limit, max(self.exact_values(np.array([x, -x]), self.rho())))
        limit = min(limit, self.limits.get(x.tobytes(), (x, math.inf))[1])
        self.limits[x.tobytes()] = (x, limit)
        super().learn(arms, arm, reward, ticks, age)

    def theta_in_W(self):
        """argmin of ||g(theta) - b||_{H(theta)^-1} over the ball with |x'theta| <= l for every arm played."""
        equation = self.equation()
        theta_hat = equation.estimate()

        def into_W(v):
            room = [limit / abs(x @ v) for x, limit in self.limits.values() if x @ v != 0]
            return v * min(1.0, self.S / max(np.linalg.norm(v), 1e-300), *room)

        if np.array_equal(into_W(theta_hat), theta_hat):
            return theta_hat
        walls = [inside_ball(self.S)]
        for x, limit in self.limits.values():
            size = self.S * np.linalg.norm(x)
            if size > 0:
                walls.append(lambda p, x=x, limit=limit, size=size: ((limit - x @ p) / size, -x / size))
                walls.append(lambda p, x=x, limit=limit, size=size: ((limit + x @ p) / size, x / size))
        return minimise(equation.local_gap, walls, [into_W(v) for v in ball_starts(theta_hat, self.S)])

    def scores(self, arms):
        """mu(x'theta) + (2+4S) mu'(x'theta)||x||_{H^-1(theta)} gamma_t + (4+8S)(1/4)(1/c) gamma_t^2 ||x||^2_{V^-1}."""
        arms = np.asarray(arms, dtype=float)
        theta, radius, concordance = self.theta_in_W(), self.rho(), 1 + 2 * self.S * self.L
        first = 2 * concordance * self.link.d1(arms @ theta) * norms(arms, self.equation().H(theta)) * radius
        second = 4 * concordance / 4 / self.c * radius**2 * norms(arms, self.V()) ** 2
        return self.link.mu(arms @ theta), self.exploration * (first + second)


class NaiveBVD(GLMHistory):
    """BVD-GLM-UCB (docs/math.md#generalized-linear). tie: the "nearest" point, or the "origin" if it is in the set."""

    def __init__(self, *, dim, memory, link, lam, delta, S=1.0, L=1.0, R=1.0, exploration=1.0, tie="nearest"):
        super().__init__(dim=dim, memory=memory, link=link, lam=lam, delta=delta, S=S, L=L, exploration=exploration)
        self.R, self.tie = R, tie

    def theta(self):
        """The three stages."""
        return self.staged()[1]

    def staged(self):
        """The stage that decided, and the point of the ball it found."""
        equation, twin, radius = self.equation(), self.V_twin(), self.beta_glb(self.squares())
        theta_hat = equation.estimate()
        if self.tie == "origin" and equation.gap(np.zeros(self.dim), twin)[0] <= radius**2:
            return 0, np.zeros(self.dim)
        if self.in_ball(theta_hat):
            return 1, theta_hat
        q = self.project(lambda p: equation.gap(p, twin), theta_hat)
        if equation.gap(q, twin)[0] <= radius**2:
            return 2, q
        return 3, self.joint(equation, twin, radius, q)[: self.dim]

    def joint(self, equation, twin, radius, q):
        """argmin over ||theta|| <= S, ||eta|| <= 1 of ||g(theta) + radius V~^(1/2) eta - b||_{V^-2}: (theta, eta)."""
        d, V = self.dim, self.V()
        values, vectors = np.linalg.eigh(twin)
        root = (vectors * np.sqrt(values)) @ vectors.T

        def value(p):
            theta, eta = p[:d], p[d:]
            y = np.linalg.solve(V, equation.g(theta) + radius * root @ eta - equation.b)
            z = np.linalg.solve(V, y)
            return y @ y, np.concatenate([2 * equation.H(theta) @ z, 2 * radius * root @ z])

        def theta_ball(p):
            number, slope = inside_ball(self.S)(p[:d])
            return number, np.concatenate([slope, np.zeros(d)])

        def eta_ball(p):
            number, slope = inside_ball(1.0)(p[d:])
            return number, np.concatenate([np.zeros(d), slope])

        starts = []
        for theta in [q, *ball_starts(q, self.S)]:
            eta = np.linalg.solve(root, equation.b - equation.g(theta))
            starts.append(np.concatenate([theta, eta / max(1.0, np.linalg.norm(eta))]))
        return minimise(value, [theta_ball, eta_ball], starts)

    def multiplier(self, E):
        """What multiplies ||x||_{V^-1} in the bonus, E being the sum of squared weights."""
        return self.exploration * 2 * self.k / self.c * self.beta_glb(E)

    def scores(self, arms):
        """Mean mu(x'theta) and bonus of every arm."""
        arms = np.asarray(arms, dtype=float)
        return self.link.mu(arms @ self.theta()), self.multiplier(self.squares()) * norms(arms, self.V())
