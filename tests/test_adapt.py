"""Adaptation to unknown drift: slow twins written from the recipe, and the laws of each wrapper."""

import math

import numpy as np
import pytest
from scipy import special

import driftwise as dw
from driftwise.kernels.adapt import book
from driftwise.kernels.chance import Rounds, uniform
from driftwise.policies.adapt import MEMORIES, fades
from naive import NaiveBOB, NaiveGLM, NaiveLinear, NaiveMaster, naive_payoff, naive_rho_hat, naive_squares

T = 160
KNOWN = {"dim": 2, "horizon": T}


def stream(seed, rounds=T, fresh=False, dim=2, clicks=False):
    """Arms, and rewards that turn with time whichever arm is played."""
    rng = np.random.default_rng(seed)
    sets = rng.normal(size=(rounds if fresh else 1, 6, dim))
    sets /= np.linalg.norm(sets, axis=2, keepdims=True)
    sets *= np.linspace(0.6, 1.0, 6)[:, None]
    angle = np.arange(rounds) / 25.0
    theta = np.zeros((rounds, dim))
    theta[:, 0], theta[:, 1] = np.cos(angle), np.sin(angle)
    noise = rng.normal(size=rounds)
    for t in range(rounds):
        arms = sets[t if fresh else 0]

        def reward(arm, t=t, arms=arms):
            value = float(arms[arm] @ theta[t])
            if clicks:
                return float(special.ndtr(noise[t]) < special.expit(2.0 * value))
            return value + 0.5 * noise[t]

        yield arms, reward


def replay(policy, naive, rounds, tolerance):
    """The naive twin follows the fast one's arms; the arm played is naive's best, up to ties."""
    state = policy.start(seed=5)
    for t, (arms, reward) in enumerate(rounds):
        choice = policy.choose(state, arms)
        mean, bonus = naive.scores(arms)
        score = mean + bonus
        assert score[choice.arm] >= score.max() - tolerance * max(1.0, abs(score.max())), f"round {t + 1}"
        assert choice.score == pytest.approx(score[choice.arm], rel=1e-6, abs=1e-6)
        r = reward(choice.arm)
        policy.learn(state, arms, choice.arm, r)
        naive.learn(arms, choice.arm, r)
    return state


def key_of(seed):
    return seed & 0xFFFFFFFF, seed >> 32


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize(("n0", "test_scale"), [(0, math.inf), (8, math.inf), (3, 1.0), (2, 3e-4), (4, 3e-4)])
def test_MASTER_over_OFUL_is_its_slow_twin(n0, test_scale, fresh):
    policy = dw.make("MASTER+OFUL", n0=n0, test_scale=test_scale, **KNOWN)
    base = policy.base
    fields = {"dim": 2, "memory": ("keep",), "lam": base.lam, "delta": base.delta}

    def rho(t):
        W = NaiveLinear(**fields).multiplier(naive_squares(("keep",), t))
        return naive_rho_hat(t, horizon=T, delta=base.delta, dim=2, lam=base.lam, L=1.0, R=1.0, W=W)

    naive = NaiveMaster(
        lambda: NaiveLinear(**fields), horizon=T, n0=n0, test_scale=test_scale, rho=rho,
        uniform=lambda block, tau, order: uniform(*key_of(5), block, tau, order),
    )  # fmt: skip
    state = replay(policy, naive, stream(1, rounds=T - 1, fresh=fresh), 1e-9)
    report = policy.report(state)
    assert report["order"] == naive.order
    if test_scale < 1.0:
        assert report["restarts"] == len(naive.restarts) > 0
        assert report["test_1"] + report["test_2"] >= report["restarts"]
    else:
        assert report["test_1"] == report["test_2"] == 0


@pytest.mark.parametrize("name", ["GLM-UCB", "LogUCB1"])
def test_MASTER_over_a_generalized_base_is_its_slow_twin(name):
    policy = dw.make(f"MASTER+{name}", n0=4, test_scale=math.inf, dim=2, horizon=60)
    base = policy.base
    rule = "glb" if name == "GLM-UCB" else "scb"
    fields = {"dim": 2, "memory": ("keep",), "link": "logistic", "lam": base.lam, "delta": base.delta, "R": 0.5}
    naive = NaiveMaster(
        lambda: NaiveGLM(**fields, rule=rule), horizon=60, n0=4, test_scale=math.inf, rho=None,
        uniform=lambda block, tau, order: uniform(*key_of(5), block, tau, order),
    )  # fmt: skip
    replay(policy, naive, stream(2, rounds=59, clicks=True), 1e-6)


@pytest.mark.parametrize("kind", ["fade", "window", "restart"])
def test_BOB_is_its_slow_twin(kind):
    name = {"fade": "LB-WeightUCB", "window": "SW-UCB", "restart": "RestartUCB"}[kind]
    policy = dw.make(f"BOB+{name}", block=13, **KNOWN)
    memories = [
        {"fade": ("fade", 0.0 if math.isinf(rounds) else 1 / rounds), "window": ("window", rounds),
         "restart": ("restart", rounds)}[kind]
        for rounds in MEMORIES if kind == "fade" or math.isfinite(rounds)
    ]  # fmt: skip
    naive = NaiveBOB(
        lambda j: NaiveLinear(dim=2, memory=memories[j], lam=2.0, delta=1 / T), K=len(memories), block=13, horizon=T,
        payoff=lambda rewards: naive_payoff(rewards, S=1, L=1, R=1, block=13, horizon=T),
        uniform=lambda block: uniform(*key_of(5), block, 0, 0),
    )  # fmt: skip
    replay(policy, naive, stream(3, rounds=T), 1e-9)


def test_BOB_over_clicks_pays_the_mean_reward():
    policy = dw.make("BOB+SCB-WeightUCB", block=10, dim=2, horizon=60)
    naive = NaiveBOB(
        lambda j: NaiveGLM(
            dim=2, memory=("fade", fades()[j].forget), link="logistic", lam=policy.base.lam, delta=1 / 60, rule="scb"
        ),
        K=len(MEMORIES), block=10, horizon=60, payoff=lambda rewards: float(np.mean(rewards)),
        uniform=lambda block: uniform(*key_of(5), block, 0, 0),
    )  # fmt: skip
    replay(policy, naive, stream(4, rounds=60, clicks=True), 1e-6)


class SlowBank:
    """The bank's recipe over linear lanes, literally: each lane is a list of (x, r, weight)."""

    def __init__(self, policy):
        self.p, K = policy, len(policy.memories)
        self.gammas = [1.0 - memory.forget for memory in fades(policy.memories)]
        self.lanes = [[] for _ in self.gammas]
        self.weights = np.exp(-0.5 * np.arange(K - 1, -1, -1))
        self.weights /= self.weights.sum()

    def sums(self, k, ridge):
        X = np.array([x for x, _, _ in self.lanes[k]]).reshape(-1, 2)
        r, w = (np.array([row[i] for row in self.lanes[k]]) for i in (1, 2))
        V = ridge * np.eye(2) + (X.T * w) @ X
        return V, np.linalg.solve(V, X.T @ (w * r)), float(np.sum(w * w))

    def scores(self, arms):
        base = self.p.base
        k = max(k for k, w in enumerate(self.weights) if w >= self.weights.max() * math.exp(-self.p.margin))
        V, theta, E = self.sums(k, base.lam)
        beta = math.sqrt(base.lam) * base.S + base.R * math.sqrt(
            2 * math.log(1 / base.delta) + 2 * math.log(1 + E / (base.lam * 2))
        )
        return arms @ theta, base.exploration * beta * np.sqrt(np.einsum("ni,in->n", arms, np.linalg.solve(V, arms.T)))

    def learn(self, arms, arm, r):
        x, base, K = arms[arm], self.p.base, len(self.lanes)
        density = []
        for k in range(K):
            V, theta, _ = self.sums(k, 2 * base.R**2 / base.S**2)
            variance = base.R**2 * (1 + x @ np.linalg.solve(V, x))
            density.append(math.exp(-((r - x @ theta) ** 2) / (2 * variance)) / math.sqrt(variance))
        if K > 1:
            self.weights = self.weights * density / np.sum(self.weights * density)
            self.weights = (1 - self.p.share) * self.weights + self.p.share / K
        for k in range(K):
            self.lanes[k] = [(a, b, w * self.gammas[k]) for a, b, w in self.lanes[k]] + [(x.copy(), r, 1.0)]
        best = max(range(K), key=lambda k: (self.weights[k], k))
        for k in range(best + 1, K):
            if self.weights[k] < self.weights[best] * math.exp(-self.p.gap):
                self.lanes[k] = list(self.lanes[best])
                self.weights[k] = self.weights[best] * math.exp(-self.p.back)


@pytest.mark.parametrize("seed", range(3))
def test_the_linear_bank_is_its_slow_twin(seed):
    policy = dw.make("Bank+LB-WeightUCB", R=0.3, memories=(4.0, 16.0, 64.0, math.inf), gap=2.0, back=1.0, **KNOWN)
    state = replay(policy, SlowBank(policy), stream(seed, fresh=seed == 2), 1e-8)
    assert state.marks[book.TAKEN_OVER] > 0


class SlowClickBank:
    """The bank's recipe over SCB lanes in one pass, literally."""

    def __init__(self, policy):
        self.p, base, self.K = policy, policy.base, len(policy.memories)
        fields = {"dim": 2, "link": "logistic", "lam": base.lam, "delta": base.delta, "rule": "scb", "S": base.S}
        self.lanes = [
            NaiveGLM(memory=("fade", memory.forget), exploration=base.exploration, estimate="one-pass", **fields)
            for memory in fades(policy.memories)
        ]
        self.gammas = [1.0 - memory.forget for memory in fades(policy.memories)]
        self.ridge = 2 / base.S**2
        self.theta, self.H = np.zeros((self.K, 2)), np.array([self.ridge * np.eye(2)] * self.K)
        self.weights = np.full(self.K, 1 / self.K)

    def best(self):
        return max(range(self.K), key=lambda k: (self.weights[k], k))

    def scores(self, arms):
        e, proposed = self.p.base.exploration, set()
        for lane in self.lanes:
            mean, bonus = lane.scores(arms)
            proposed |= {int(np.argmax(mean + factor * bonus)) for factor in (1.0, 1.0 / e, e)}
        b = self.best()
        mean = special.expit(arms @ self.theta[b])
        width = np.sqrt(np.einsum("ni,in->n", arms, np.linalg.solve(self.H[b], arms.T)))
        bonus = special.expit(arms @ self.theta[b] + self.p.kappa * width) - mean
        return mean, np.array([bonus[a] if a in proposed else -1.0 for a in range(len(arms))])

    def learn(self, arms, arm, r):
        x = arms[arm]
        density = []
        for k in range(self.K):
            s2 = x @ np.linalg.solve(self.H[k], x)
            p = special.expit(x @ self.theta[k] / math.sqrt(1 + math.pi * s2 / 8))
            density.append(p if r == 1.0 else 1 - p)
            A = self.gammas[k] * self.H[k] + (1 - self.gammas[k]) * self.ridge * np.eye(2)
            v = np.linalg.solve(A, self.gammas[k] * self.H[k] @ self.theta[k])
            q, z0 = x @ np.linalg.solve(A, x), x @ v
            low, high = z0 + q * (r - 1), z0 + q * r
            for _ in range(200):
                z = (low + high) / 2
                low, high = (z, high) if z < z0 + q * (r - special.expit(z)) else (low, z)
            p = special.expit(z)
            self.theta[k] = v + np.linalg.solve(A, x) * (r - p)
            self.H[k] = A + p * (1 - p) * np.outer(x, x)
        self.weights = self.weights * density / np.sum(self.weights * density)
        self.weights = (1 - self.p.share) * self.weights + self.p.share / self.K
        for lane in self.lanes:
            lane.learn(arms, arm, r)


def test_the_bank_of_clicks_is_its_slow_twin():
    policy = dw.make("Bank+SCB-WeightUCB", memories=(8.0, 64.0, math.inf), gap=1e9, dim=2, horizon=80)
    replay(policy, SlowClickBank(policy), stream(6, rounds=80, clicks=True), 1e-6)


@pytest.mark.parametrize(("bank", "base", "fields"), [
    ("Bank+LB-WeightUCB", "OFUL", {}),
    ("Bank+LB-WeightUCB", "LB-WeightUCB", {"memory": dw.Fade(1 / 50)}),
    ("Bank+SCB-WeightUCB", "SCB-WeightUCB", {"memory": dw.Fade(1 / 50), "estimate": "one-pass"}),
])  # fmt: skip
def test_a_bank_of_one_memory_is_its_base_arm_for_arm(bank, base, fields):
    clicks = "SCB" in bank
    world = dw.worlds.Turn(horizon=400, reward="bernoulli" if clicks else "gaussian")
    memory = fields.get("memory", dw.Fade(0.0))
    rounds = math.inf if memory.forget == 0.0 else 1 / memory.forget
    told = {key: value for key, value in world.facts.items() if key not in ("path_length", "changes")}
    policies = {
        "bank": dw.make(bank, memories=(rounds,), exploration=0.5, **told),
        "base": dw.make(base, exploration=0.5, **fields, **world.facts),
    }
    result = dw.simulate(policies, world, trials=3)
    assert np.array_equal(result.arms["bank"], result.arms["base"])


def test_BOB_with_one_grid_point_is_its_base_restarted_per_block():
    world = dw.worlds.Turn(horizon=300)
    grid = (dw.Fade(0.0),)
    policies = {
        "bob": dw.make("BOB+LB-WeightUCB", grid=grid, block=37, dim=2, horizon=300),
        "restarted": dw.make("RestartUCB", memory=dw.Restart(37), **world.facts),
    }
    result = dw.simulate(policies, world, trials=3)
    assert np.array_equal(result.arms["bob"], result.arms["restarted"])


def test_a_still_world_without_noise_ends_in_the_longest_memory():
    world = dw.worlds.Still(horizon=2000, noise=0.0)
    result = dw.simulate({"bank": dw.make("Bank+LB-WeightUCB", dim=2, R=0.1)}, world, trials=3)
    assert (result.memory["bank"][:, -200:] == math.inf).all()


def test_the_bank_believes_in_shorter_memories_where_the_world_moves_faster():
    believed = []
    for turns in (0.25, 4.0):
        world = dw.worlds.Turn(turns=turns, horizon=4000)
        result = dw.simulate({"bank": dw.make("Bank+LB-WeightUCB", dim=2)}, world, trials=4)
        believed.append(np.median(result.memory["bank"][:, 1000:]))
    assert believed[1] < believed[0] / 2


def test_the_bank_needs_neither_path_length_nor_horizon_and_says_what_it_remembers():
    for name in ("Bank+LB-WeightUCB", "Bank+GLB-WeightUCB", "Bank+SCB-WeightUCB"):
        policy = dw.make(name, dim=2)
        state = policy.start()
        arms = np.eye(2)
        for _ in range(20):
            policy.learn(state, arms, policy.choose(state, arms).arm, 1.0)
        assert policy.memory(state) in MEMORIES
        assert policy.base.delta is None


def test_a_late_reward_finds_the_MASTER_instance_that_chose_or_is_dropped():
    policy = dw.make("MASTER+OFUL", n0=5, test_scale=math.inf, **KNOWN)
    state = policy.start(seed=11)
    arms = np.eye(2)
    acted = []
    for _ in range(20):
        acted.append(int(state.marks[book.ACTIVE]))
        policy.advance(state)
    for age in range(1, 20):
        trial = state.copy()
        before = trial.counters[:, 1].copy()
        policy.learn(trial, arms, 0, 1.0, ticks=0.0, age=float(age))
        took = np.flatnonzero(trial.counters[:, 1] != before)
        lane = acted[19 - age]
        assert (list(took) == [lane]) or (len(took) == 0 and trial.dropped == state.dropped + 1)
        if lane == 5:  # the instance of the block itself lasts as long as the block
            assert list(took) == [5]


@pytest.mark.slow
def test_the_papers_setting_with_MASTER_and_BOB():
    world = dw.worlds.Turn()
    policies = {
        "n13": dw.make("MASTER+OFUL", n0=13, **world.facts),
        "n0": dw.make("MASTER+OFUL", n0=0, **world.facts),
        "BOB": dw.make("BOB+LB-WeightUCB", **world.facts),
    }
    # 100 trials: those of n0 = 13 have a spread of 377, so the mean of 20 varies by 84 (seed 0 gives 1462, outside).
    result = dw.simulate(policies, world, trials=100, record="last", seed=1)
    assert abs(result.final("n13").mean() - 1692) < 200
    assert abs(result.final("n0").mean() - 2038) < 120
    assert abs(result.final("BOB").mean() - 1130) < 0.06 * 1130


def test_MASTERs_tests_do_not_fire_at_the_papers_size():
    world = dw.worlds.Turn()
    policy = dw.make("MASTER+OFUL", n0=13, **world.facts)
    state = policy.start(seed=0)
    for tape in world.tapes(0, 0):
        size = len(tape.theta)
        policy.play(state, Rounds(*tape, 0, 0, 1.0), 0.0, np.empty(size, dtype=np.int64), np.empty(size))
    report = policy.report(state)
    assert report == {"blocks": 1, "order": 13, "restarts": 0, "test_1": 0, "test_2": 0}
    assert dw.simulate({"it": policy}, dw.worlds.Turn(horizon=200), trials=2).report["it"] == [report, report]


@pytest.mark.parametrize(
    ("name", "fields", "parameter"),
    [
        ("Bank+LB-WeightUCB", {"memories": ()}, "memories"),
        ("Bank+LB-WeightUCB", {"memories": 5}, "memories"),
        ("Bank+LB-WeightUCB", {"memories": ("a", "b")}, "memories"),
        ("Bank+LB-WeightUCB", {"tilt": "x"}, "tilt"),
        ("BOB+LB-WeightUCB", {"grid": 5}, "grid"),
        ("BOB+LB-WeightUCB", {"grid": (1, 2)}, "grid"),
        ("Bank+LB-WeightUCB", {"memories": (64.0, 8.0)}, "memories"),
        ("Bank+LB-WeightUCB", {"share": 1.0}, "share"),
        ("Bank+LB-WeightUCB", {"margin": -1.0}, "margin"),
        ("Bank+GLB-WeightUCB", {"link": "poisson", "R": 1.0}, "base"),
        ("BOB+LB-WeightUCB", {"grid": (dw.Fade(0.1), dw.Window(3))}, "grid"),
        ("BOB+LB-WeightUCB", {"block": 0}, "block"),
        ("MASTER+OFUL", {"n0": -1}, "n0"),
        ("MASTER+OFUL", {"test_scale": -1.0}, "test_scale"),
        ("MASTER+OFUL", {"memory": dw.Fade(0.1)}, "base"),
        ("MASTER+OFUL", {"marginn": 1.0}, "field of MASTER+OFUL"),
    ],
)
def test_bad_settings_get_the_sentence(name, fields, parameter):
    with pytest.raises(dw.BadInput) as caught:
        dw.make(name, **KNOWN, **fields)
    assert caught.value.parameter == parameter


def test_draws_are_uniform_and_depend_on_every_counter():
    draws = np.array([uniform(7, 9, a, b, c) for a in range(30) for b in range(30) for c in range(10)])
    assert 0.0 <= draws.min() and draws.max() < 1.0 and len(np.unique(draws)) == len(draws)
    counts = np.histogram(draws, bins=20, range=(0, 1))[0]
    assert float(((counts - 450) ** 2 / 450).sum()) < 50.8  # 99.99% quantile of chi² with 19 degrees of freedom
