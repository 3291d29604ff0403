"""Conformance checks that every policy and every world must pass (public). A check that fails raises AssertionError.

    dw.checks.check_policy(my_policy, dim=3)
    dw.checks.check_world(my_world)

A policy that samples has `deterministic = False`. The same checks apply to it. A check that compares two runs gives
both the same key, and they must agree exactly. A check that transforms the arms, so that a draw may fall on another
arm, compares the shares of choices over many keys instead.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from driftwise._internal.rng import stream
from driftwise._internal.validate import whole
from driftwise.errors import BadInput
from driftwise.kernels.chance import Rounds
from driftwise.kernels.lanes import EIGHT
from driftwise.kernels.links import LINKS
from driftwise.kernels.point import Floats
from driftwise.policies import engines
from driftwise.policies.arms import ArmSet
from driftwise.policies.base import Compiled
from driftwise.policies.curves import Curve
from driftwise.policies.engines import Sizes
from driftwise.policies.memory import KINDS, Keep, Memory
from driftwise.policies.own import asked
from driftwise.policies.questions import Policy
from driftwise.policies.regions import Region
from driftwise.policies.searching import index_of
from driftwise.policies.shapes import Ball, Box, Ellipsoid, Union
from driftwise.policies.state import State
from driftwise.simulation import simulate
from driftwise.theory.bounds import change_number, path_length
from driftwise.worlds import Given, World

# Two ways to compute the same score differ by rounding or by the tolerance of a solver. Between arms whose scores are
# closer than this, either choice is right.
TOLERANCE = 1e-6


def check_policy(policy: Policy, *, dim: int | None = None, rounds: int = 60, seed: int = 0) -> list[str]:
    """Run every check that applies to a policy and return the names of the checks. The first failure raises."""
    size = dim if dim is not None else getattr(policy, "dim", None)
    if size is None:
        raise BadInput("dim", None, "the number of features of an arm", "pass dim=")
    asked(policy)
    size, rounds = whole("dim", size), whole("rounds", rounds)
    applying = list(_ANY) + (list(_BUILT_IN) if isinstance(policy, Compiled) else [])
    counted: dict[str, Floats] = {}
    for check in applying:
        check(policy, _Stream(int(size), rounds, seed, _reach(policy), counted))
    return [check.__name__ for check in applying]


def check_world(world: World, *, seed: int = 0) -> list[str]:
    """Run every check of a world and return the names of the checks. The first failure raises."""
    if not isinstance(world, World):
        raise BadInput("world", world, "a world, e.g. dw.worlds.Turn()", "wrap arrays in dw.worlds.Given")
    for check in _WORLD:
        check(world, seed)
    return [check.__name__ for check in _WORLD]


class _Stream:
    """Arms of distinct norms, and rewards that do not depend on the policy, so that runs can be compared.

    `counted` keeps the shares of choices among these arms for the next check.
    """

    def __init__(self, dim: int, rounds: int, seed: int, L: float, counted: dict[str, Floats] | None = None) -> None:
        self.counted = {} if counted is None else counted
        rng = stream(seed, "checks")
        self.dim, self.rounds = dim, rounds
        rows = rng.standard_normal((7, dim))
        norms = np.sqrt((rows * rows).sum(axis=1, keepdims=True))
        self.arms = L * rows / norms * np.linspace(0.55, 1.0, 7)[:, None]
        self.rewards = (rng.random(rounds) < 0.5).astype(np.float64)
        self.rotation = np.linalg.qr(rng.standard_normal((dim, dim)))[0]
        self.shuffle = rng.permutation(len(self.arms))


def _reach(policy: Policy) -> float:
    return float(getattr(policy, "L", 1.0) or 1.0)  # 1 for a policy that takes arms of any length


def _arm(choice: Any) -> int:
    return int(getattr(choice, "arm", choice))


def _follow(
    policy: Policy, data: _Stream, arms: Floats, leader: list[int] | None = None, seed: int = 0
) -> tuple[list[int], Any]:
    """The arms chosen along the stream, and the last state. The arms played are those of `leader` if it is given."""
    state, chosen = policy.start(seed=seed), []
    for t in range(data.rounds):
        chosen.append(_arm(policy.choose(state, arms)))
        policy.learn(state, arms, leader[t] if leader else chosen[-1], float(data.rewards[t]))
    return chosen, state


def samples(policy: Policy) -> bool:
    """Whether a policy declares that it samples."""
    return not getattr(policy, "deterministic", True)


# The number of keys over which shares of choices are counted, and the largest difference of two shares. With 400 keys
# the standard error of a difference is at most 0.036. 0.2 is 5.5 of these; with seven arms 1 of 4 million checks fails
# falsely.
KEYS, FAR_APART = 400, 0.2


def _shares(policy: Policy, data: _Stream, arms: Floats, back: Callable[[int], int], forth: dict[int, int]) -> Floats:
    """How often each arm is chosen after one stream, over many keys, in the numbering of the original arms."""
    counts = np.zeros(len(data.arms))
    for seed in range(KEYS):
        state = policy.start(seed=seed)
        for t in range(min(5, data.rounds)):
            arm = t % len(data.arms)
            policy.learn(state, arms, forth[arm], float(data.rewards[t]))
        counts[back(_arm(policy.choose(state, arms)))] += 1.0
    return counts / KEYS


def _same_choices(policy: Policy, data: _Stream, arms: Floats, back: Callable[[int], int], law: str) -> None:
    """On transformed arms the policy makes the same choices, up to arms whose scores tie within rounding.

    A policy that samples makes them in the same shares.
    """
    if samples(policy):
        same = {arm: arm for arm in range(len(data.arms))}
        forth = {back(arm): arm for arm in range(len(arms) - 1, -1, -1)}
        if not data.counted:
            data.counted["plain"] = _shares(policy, data, data.arms, int, same)
        gap = float(np.abs(data.counted["plain"] - _shares(policy, data, arms, back, forth)).max())
        assert gap <= FAR_APART, f"{law}: shares of choices differ by {gap:.2f} over {KEYS} keys"
        return
    one, other = policy.start(seed=0), policy.start(seed=0)
    forth = {back(arm): arm for arm in range(len(arms))}
    for t in range(data.rounds):
        a, b = _arm(policy.choose(one, data.arms)), back(_arm(policy.choose(other, arms)))
        if a != b:
            assert isinstance(policy, Compiled), f"{law}: arm {a} became arm {b} at round {t + 1}"
            score = policy.scores(one, data.arms).score
            gap = abs(score[a] - score[b]) / max(1.0, abs(score[a]))
            assert gap <= TOLERANCE, f"{law}: arm {a} became arm {b} at round {t + 1}, gap {gap:g}"
        policy.learn(one, data.arms, a, float(data.rewards[t]))
        policy.learn(other, arms, forth[a], float(data.rewards[t]))


def inputs_are_neither_changed_nor_kept(policy: Policy, data: _Stream) -> None:
    """A policy does not write into the arms it gets, and overwriting them after the call changes nothing."""
    state, twin = policy.start(seed=0), policy.start(seed=0)
    for t in range(data.rounds):
        lent, kept = data.arms.copy(), data.arms.copy()
        a, b = _arm(policy.choose(state, lent)), _arm(policy.choose(twin, kept))
        assert a == b, f"overwriting the arms after a call changed the choice of round {t + 1}"
        policy.learn(state, lent, a, float(data.rewards[t]))
        policy.learn(twin, kept, a, float(data.rewards[t]))
        assert np.array_equal(lent, data.arms), f"arms were changed at round {t + 1}"
        lent[:] = 1e-3


def equal_keys_choose_equally(policy: Policy, data: _Stream) -> None:
    """Two states with the same seed and stream choose the same arms. A policy that samples draws only from its key, and
    other keys give other choices."""
    chosen = [_follow(policy, data, data.arms, seed=seed)[0] for seed in (0, 0, 1, 2, 3)]
    assert chosen[0] == chosen[1], "equal seeds gave other choices"
    if samples(policy) and not getattr(policy, "ranks", False):  # one that ranks draws now and then
        assert any(chosen[0] != other for other in chosen[2:]), "four seeds gave the same choices: nothing is drawn"


def choosing_changes_nothing(policy: Policy, data: _Stream) -> None:
    """A second `choose` gives the same arm."""
    state = policy.start(seed=0)
    for reward in data.rewards:
        arm = _arm(policy.choose(state, data.arms))
        assert arm == _arm(policy.choose(state, data.arms)), "a second choose gave another arm"
        policy.learn(state, data.arms, arm, float(reward))


def a_duplicate_arm_changes_nothing(policy: Policy, data: _Stream) -> None:
    """A copy of an arm at the end of the list is never played, because a tie goes to the first arm. A policy that
    samples may play the copy, which then counts as the original."""
    doubled, n, drawn = np.concatenate([data.arms, data.arms[:3]]), len(data.arms), samples(policy)
    _same_choices(policy, data, doubled, lambda arm: arm if arm < n else arm - n if drawn else -1, "a duplicate arm")


# How many draws recorded propensities are held against, and how many standard errors they may be away: with some 30
# shares 1 of 50,000 checks fails falsely.
DRAWS, ERRORS = 10_000, 5.0


def propensities_are_the_shares_of_draws(policy: Policy, data: _Stream) -> None:
    """The probability that is recorded of an arm is the share of draws that play it: in a new state, after rewards, and
    after a long silence, also where arms nearly tie."""
    one = asked(policy)
    if one.deterministic or (one is not policy and not hasattr(policy, "propensities")):
        return
    same = _reach(policy) * data.arms / np.sqrt((data.arms * data.arms).sum(axis=1, keepdims=True))
    ties = np.concatenate([same, same[:2], same[2:4] * (1.0 - 1e-15)])
    new, lived = one.start(seed=3), one.start(seed=3)
    fixed = getattr(policy, "arms", None) == len(data.arms)  # it plays so many arms in every round
    for t in range(min(20, data.rounds)):
        one.learn(lived, ArmSet(data.arms), t % len(data.arms), float(data.rewards[t]))
    idle = lived.copy()
    one.advance(idle, 1e4)
    cases = {"a new state": (new, same), "after rewards": (lived, data.arms), "after a silence": (idle, same)}
    if not fixed:
        cases |= {"a new state, ties": (new, ties), "after a silence, ties": (idle, ties)}
    for where, (state, rows) in cases.items():
        arms = ArmSet(rows)
        shares, tries = one.shares(state, arms, 0, 0), (one.propensity(state, arms, 0, 0) or (0.0, 0))[1]
        counts = np.zeros(len(rows))
        for draw in range(DRAWS):
            counts[one.choose(state, arms, draw).arm] += 1.0
        counts /= DRAWS
        most = np.maximum(shares, counts)
        error = np.sqrt(most * (1.0 - most) * (1.0 / DRAWS + (1.0 / tries if tries else 0.0))) + 1e-12
        worst = int(np.argmax(np.abs(counts - shares) / error))
        told = f"{where}: arm {worst} has the propensity {shares[worst]:.4g} and {counts[worst]:.4g} of {DRAWS} draws"
        assert abs(counts[worst] - shares[worst]) <= ERRORS * error[worst], told


def permuting_arms_permutes_the_choice(policy: Policy, data: _Stream) -> None:
    """The order of arms does not matter. Their norms differ, so there are no ties."""
    _same_choices(policy, data, data.arms[data.shuffle], lambda arm: int(data.shuffle[arm]), "permuted arms")


def rotating_arms_changes_nothing(policy: Policy, data: _Stream) -> None:
    """The choice of coordinates does not matter, unless the policy keeps a unit for each of them."""
    if getattr(policy, "unit_per_feature", False):
        return
    _same_choices(policy, data, data.arms @ data.rotation, lambda arm: arm, "rotated arms")


def other_units_change_nothing(policy: Compiled, data: _Stream) -> None:
    """A policy that keeps a unit for each feature chooses the same arms if features are measured in other units."""
    if not policy.unit_per_feature:
        return
    other_units = data.arms * 2.0 ** (7 * np.arange(data.dim) - 10)  # powers of 2 change no rounding
    one, other = policy.start(seed=0), policy.start(seed=0)
    for t in range(data.rounds):
        arm = t  # units are unknown before every feature was seen
        if t >= len(data.arms):
            arm = policy.choose(one, data.arms).arm
            seen = policy.choose(other, other_units).arm
            assert arm == seen, f"in other units arm {arm} became arm {seen} at round {t + 1}"
        policy.learn(one, data.arms, arm, float(data.rewards[t]))
        policy.learn(other, other_units, arm, float(data.rewards[t]))


def _static(policy: Compiled) -> Any:
    """The policy with memory=Keep(), and the radius of E(n) if its own radius needs another memory. None if it has no
    static form."""
    for radius in ({}, {"radius": "weighted"}) if hasattr(policy, "radius") else ({},):
        try:
            return dataclasses.replace(policy, memory=Keep(), **radius)  # type: ignore[type-var]
        except BadInput:
            continue
    return None


def forgetting_nothing_is_the_static_policy(policy: Compiled, data: _Stream) -> None:
    """forget = 0, a window and a period longer than the stream give the static estimate. They give the static choices
    where the radius is that of E(n)."""
    if not isinstance(getattr(policy, "memory", None), Memory):
        return
    if getattr(policy, "two_matrix", None) == "as-published":  # its mistake breaks this law (docs/math.md#linear)
        return
    static = _static(policy)
    if static is None:
        return
    longer = float(data.rounds + 1)
    chosen, state = _follow(static, data, data.arms)
    for memory in (kind.lasting(longer) for kind in KINDS.values()):
        try:
            other: Any = dataclasses.replace(static, memory=memory)
        except BadInput:
            continue
        mimic, copy = _follow(other, data, data.arms, chosen)
        for name, mine in state.groups().items():
            if name in ("G", "twin", "b"):
                his = getattr(copy, name)
                assert np.allclose(mine, his, rtol=1e-9, atol=1e-9), f"{memory} does not give the static sums"
        assert mimic == chosen, f"{memory} does not make the static choices"


def half_a_stream_saved_and_loaded_is_the_whole_stream(policy: Compiled, data: _Stream) -> None:
    """A state that is saved and loaded at any round continues bit for bit."""
    chosen, end = _follow(policy, data, data.arms)
    state = policy.start(seed=0)
    for t in range(data.rounds):
        state = State.from_bytes(state.to_bytes())
        assert policy.choose(state, data.arms).arm == chosen[t], f"another arm at round {t + 1} after loading"
        policy.learn(state, data.arms, chosen[t], float(data.rewards[t]))
    assert state.to_bytes() == end.to_bytes(), "the state after loading is another one"


def _turning(policy: Compiled, data: _Stream, arms: Floats) -> Given:
    """A world with these arms (one set, or one per round) and rewards that the policy accepts."""
    theta = np.zeros((data.rounds, data.dim))
    theta[:, 0] = np.cos(np.arange(data.rounds) / data.rounds)
    link = policy.link_name or "logistic"
    reward: Any = LINKS[link].rewards[0]
    return Given(arms=arms, theta=theta, tape=np.linspace(0.01, 0.99, data.rounds), reward=reward, link=link)


def every_engine_plays_the_same_bits(policy: Compiled, data: _Stream) -> None:
    """Every engine that can play the policy gives the arms, the regret and the last state of the plain engine."""
    if policy.stepped:
        return
    rows = np.concatenate([data.arms, -data.arms @ data.rotation, 0.5 * data.arms])  # more than fit into a tile
    turned = np.stack([np.roll(rows, t, axis=0) for t in range(data.rounds)])
    for arms, sets in ((rows, 1), (turned, data.rounds)):
        world, sizes = _turning(policy, data, arms), Sizes(sets, data.dim, len(rows), data.rounds, EIGHT)
        fitting = engines.fitting(policy.entries.family, policy.point, sizes)
        wanted = {way: _engine_plays(policy, world, "plain", way) for way in {one.plays_eight for one in fitting}}
        for one in fitting:
            assert _engine_plays(policy, world, one.name, one.plays_eight) == wanted[one.plays_eight], (
                f"the engine {one.name!r} plays other bits than the plain one"
            )


def _engine_plays(policy: Compiled, world: Given, engine: str, plays_eight: bool) -> tuple[bytes, ...]:
    """The result of a world with one engine: of eight trials, or of one trial with its state."""
    with engines.forced(engine):
        if plays_eight:
            found = simulate({"it": policy}, world, trials=EIGHT, jobs=1)
            return found.arms["it"].tobytes(), found.regret["it"].tobytes()
        state, tape = policy.start(seed=0), next(iter(world.tapes()))
        chosen, regret = np.empty(world.horizon, dtype=np.int64), np.empty(world.horizon)
        rounds = Rounds(*tape, world.link_code, world.reward_code, float(world.noise))
        policy.play(state, rounds, 0.0, chosen, regret)
        return chosen.tobytes(), regret.tobytes(), state.to_bytes()


def simulated_equals_stepped(policy: Compiled, data: _Stream) -> None:
    """The compiled run and the run by single calls play the same arms and give the same regret."""
    world = _turning(policy, data, data.arms)
    fast, slow = (simulate({"it": policy}, world, trials=1, jobs=1, stepped=way) for way in (False, True))
    assert np.array_equal(fast.arms["it"], slow.arms["it"]), "compiled and stepped runs play different arms"
    assert np.array_equal(fast.regret["it"], slow.regret["it"]), "compiled and stepped runs differ in regret"


def a_prepared_arm_set_is_its_arms(policy: Compiled, data: _Stream) -> None:
    """ArmSet(arms) gives the same choices as arms."""
    state = policy.start(seed=0)
    prepared = ArmSet(data.arms)
    for reward in data.rewards[:10]:
        choice = policy.choose(state, data.arms)
        assert choice == policy.choose(state, prepared), "a prepared ArmSet gave another choice"
        policy.learn(state, prepared, choice.arm, float(reward))


def a_choice_is_the_best_score(policy: Compiled, data: _Stream) -> None:
    """score = mean + bonus, all are finite, and no other arm has a larger score."""
    state = policy.start(seed=0)
    for reward in data.rewards:
        choice, scores = policy.choose(state, data.arms), policy.scores(state, data.arms)
        if policy.audited(state):
            shares = policy.shares(state, ArmSet(data.arms), choice.arm, 0)
            assert shares[choice.arm] > 0.0, "forced exploration played an arm of no chance"
            policy.learn(state, data.arms, choice.arm, float(reward))
            continue
        assert np.isfinite(scores.mean).all() and np.isfinite(scores.bonus).all(), "a score is not finite"
        assert choice.score == choice.mean + choice.bonus, "score is not mean + bonus"
        # A set rule that prunes arms solves fewer of them than one that scores all, to the same tolerance. A multiplier
        # of all bonuses chooses in exact arithmetic, whose best score may be rounded below another.
        slack = TOLERANCE if policy.stepped or getattr(policy, "exact", False) else 0.0
        assert abs(choice.score - scores.score[choice.arm]) <= slack, "choose and scores differ"
        assert choice.score >= scores.score.max() - slack, "another arm scores more"
        policy.learn(state, data.arms, choice.arm, float(reward))


def bad_input_changes_nothing(policy: Compiled, data: _Stream) -> None:
    """A bad call raises BadInput with one sentence and does not change the state."""
    _, state = _follow(policy, data, data.arms)
    before = state.to_bytes()
    hole = data.arms.copy()
    hole[2, 0] = math.nan
    far = data.arms * 10.0 * max(1.0, policy.reach)
    good = data.arms
    bad_calls: list[Callable[[], object]] = [
        lambda: policy.choose(state, hole),
        lambda: policy.choose(state, far),
        lambda: policy.choose(state, np.zeros((0, data.dim))),
        lambda: policy.choose(state, np.zeros((3, data.dim + 1))),
        lambda: policy.choose(state, "arms"),
        lambda: policy.learn(state, good, 0, math.nan),
        lambda: policy.learn(state, good, 0, math.inf),
        lambda: policy.learn(state, good, len(good), 0.0),
        lambda: policy.learn(state, good, -1, 0.0),
        lambda: policy.learn(state, hole, 2, 0.0),
        lambda: policy.learn(state, far, 6, 0.0),
        lambda: policy.learn(state, good, 0, 0.0, ticks=-1.0),
        lambda: policy.learn(state, good, 0, 0.0, age=-1.0),
        lambda: policy.learn(state, good, 0, 0.0, ticks=math.nan),
        lambda: policy.advance(state, -1.0),
    ]
    for number, call in enumerate(bad_calls):
        try:
            call()
        except BadInput as error:
            assert str(error).count("\n") == 0 and "wanted" in str(error), f"not one sentence: {error}"
        else:
            raise AssertionError(f"bad call number {number} was accepted")
        assert state.to_bytes() == before, f"bad call number {number} changed the state"


def rotating_a_ball_changes_nothing(policy: Compiled, data: _Stream) -> None:
    """If the data are rotated, the choice in a ball is rotated and has the same score. No arm of the ball scores more
    than the choice plus its gap. A policy that plays only lists refuses the ball."""
    ball, one, other = Ball(data.dim, _reach(policy)), policy.start(seed=0), policy.start(seed=0)
    if policy.form is None:
        try:
            policy.choose(one, ball)
        except BadInput:
            return
        raise AssertionError("a policy that plays only lists accepted a ball")
    if samples(policy) or policy.unit_per_feature:
        return
    points = data.arms / np.sqrt((data.arms**2).sum(axis=1, keepdims=True)) * ball.radius
    for t in range(min(20, data.rounds)):
        a, b = policy.choose(one, ball), policy.choose(other, ball)
        assert a.x is not None and b.x is not None and ball.contains(a.x), "a choice outside the ball"
        scale = max(1.0, abs(a.score))
        assert abs(a.score - b.score) <= TOLERANCE * scale, f"a rotated ball: score {a.score} became {b.score}"
        if not policy.judged:  # its scores belong to the proposed arm
            most = policy.scores(one, points).score.max()
            assert most <= a.score + a.gap + TOLERANCE * scale, "an arm of the ball scores more than the choice"
        policy.learn(one, ball, a.x, float(data.rewards[t]))
        policy.learn(other, ball, a.x @ data.rotation, float(data.rewards[t]))


def _sets(dim: int, reach: float, listed: Floats) -> list[Region]:
    """One set of every kind, with the largest arms that the policy accepts."""
    def turn(numbers: Floats) -> Floats:
        rows = np.zeros((len(numbers), dim))
        rows[:, 0], rows[:, -1] = np.cos(numbers), np.sin(numbers)
        return 0.7 * reach * rows

    side, shape = np.full(dim, 0.9 * reach / math.sqrt(dim)), np.diag(np.linspace(1.0, 0.4, dim)) * reach**2
    return [
        Ball(dim, reach), Ellipsoid(shape), Box(-side, 0.5 * side, certify=False),
        Curve(turn, 0.0, 3.0, certify=False), Union(Ball(dim, 0.5 * reach), listed),
    ]  # fmt: skip


def a_point_found_has_the_score_of_a_list_that_holds_it(policy: Compiled, data: _Stream) -> None:
    """A list with a point that was found in a continuous set gives it the same mean and bonus, to the last bit. The
    function that was maximised has the same value at that point."""
    if policy.form is None:
        return
    for region in _sets(data.dim, _reach(policy), data.arms):
        state = policy.start(seed=1)
        for t in range(min(4, data.rounds)):
            try:
                found = policy.choose(state, region)
            except BadInput:  # sets cannot be searched with a multiplier below 0
                break
            assert found.x is not None and region.contains(found.x), "a point outside the set"
            if policy.audited(state):  # it looks elsewhere than at the largest index
                policy.learn(state, region, found.x, float(data.rewards[t]))
                continue
            listed = policy.choose(state, found.x[None])
            if policy.own_form:  # a list has another bonus, and the mean is summed in another order
                apart = abs(found.mean - listed.mean)
                assert apart <= TOLERANCE * max(1.0, abs(listed.mean)), f"a mean that is {apart} from that of a list"
                listed = found
            told = f"{type(region).__name__}: a point scores {found.score} where it was found, {listed.score} in a list"
            assert (found.mean, found.bonus) == (listed.mean, listed.bonus), told
            if not policy.judged:  # its scores belong to the proposed arm
                index = index_of(policy, state)
                value = index.score(float(index.values(found.x[None])[0]))
                told = f"{type(region).__name__}: the index is {value} in the search and {listed.score} in a list"
                assert abs(value - listed.score) <= TOLERANCE * max(1.0, abs(listed.score)), told
            policy.learn(state, region, found.x, float(data.rewards[t]))


def the_path_is_what_it_says(world: World, seed: int) -> None:
    """P_T, Γ_T, S and the shape are those of the path."""
    theta = world.theta()
    assert theta.shape == (world.horizon, world.dim)
    assert math.isclose(world.path_length, path_length(theta), rel_tol=1e-9, abs_tol=1e-12)
    assert world.changes == change_number(theta)
    assert float(np.sqrt((theta * theta).sum(axis=1)).max()) <= world.S * (1.0 + 1e-9)


def tapes_are_whole_and_repeat(world: World, seed: int) -> None:
    """A trial's tape covers the horizon, has no arm longer than L, and is the same every time."""
    done = 0
    for one, again, theta in zip(world.tapes(seed, 0), world.tapes(seed, 0), world.path(), strict=True):
        done += len(one.theta)
        assert all(np.array_equal(a, b) for a, b in zip(one, again, strict=True)), "a tape does not repeat"
        assert np.array_equal(one.theta, theta), "the path does not repeat"
        assert len(one.draws) == len(one.best) == len(one.theta)
        if world.region is not None:
            assert one.arms.reach <= world.L * (1.0 + 1e-9)
            continue
        assert float(np.sqrt((one.arms * one.arms).sum(axis=1)).max()) <= world.L * (1.0 + 1e-9)
        assert len(one.arms) in (1, len(one.theta))
    assert done == world.horizon


_ANY: tuple[Callable[[Any, _Stream], None], ...] = (
    inputs_are_neither_changed_nor_kept,
    equal_keys_choose_equally,
    choosing_changes_nothing,
    a_duplicate_arm_changes_nothing,
    permuting_arms_permutes_the_choice,
    rotating_arms_changes_nothing,
    propensities_are_the_shares_of_draws,
)
_BUILT_IN: tuple[Callable[[Any, _Stream], None], ...] = (
    other_units_change_nothing,
    forgetting_nothing_is_the_static_policy,
    half_a_stream_saved_and_loaded_is_the_whole_stream,
    simulated_equals_stepped,
    every_engine_plays_the_same_bits,
    a_prepared_arm_set_is_its_arms,
    a_choice_is_the_best_score,
    bad_input_changes_nothing,
    rotating_a_ball_changes_nothing,
    a_point_found_has_the_score_of_a_list_that_holds_it,
)
_WORLD: tuple[Callable[[World, int], None], ...] = (the_path_is_what_it_says, tapes_are_whole_and_repeat)
