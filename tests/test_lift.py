"""The lift: intervals that hold at all looks, the check of the split, and sums over units."""

import itertools
import math

import numpy as np
import pytest

from driftwise.lift import Bets, Guardrail, Interval, Lift, Ramp, UnitSums, mismatch
from driftwise.lift.betting import BETS, WEIGHTS, _capital, fourth_factor
from driftwise.lift.intervals import TIGHTEST, error_factor
from driftwise.lift.sums import LEAST

LEVEL = 0.05


def drawn(seed, n=2_000, share=0.5, live=0.3, held=0.3):
    rng = np.random.default_rng(seed)
    arm = (rng.random(n) < share).astype(int)
    return (rng.random(n) < np.where(arm, live, held)).astype(float), arm


def fed(y, arm, share=0.5, parts=1, top=1.0):
    bets, sums = Bets(share, (0.0, top)), UnitSums()
    for part in np.array_split(np.arange(len(y)), parts):
        bets.add(arm[part], y[part])
        sums.add(part.tolist(), arm[part].tolist(), y[part].tolist())
    return bets, sums


# ------------------------------------------------------------------------------------------ sums over units


def test_with_one_reward_a_unit_the_variance_is_that_of_a_mean():
    y, arm = drawn(0)
    _, sums = fed(y, arm)
    for place in (0, 1):
        own, found = y[arm == place], sums.arm(place)
        assert found.units == found.rewards == len(own) and found.mean == pytest.approx(own.mean())
        assert found.variance == pytest.approx(own.var(ddof=1) / len(own), rel=1e-9)


def test_rewards_that_are_sent_ten_times_make_no_interval_narrower():
    y, arm = drawn(1)
    once, often = UnitSums(), UnitSums()
    units = list(range(len(y)))
    once.add(units, arm.tolist(), y.tolist())
    for _ in range(10):
        often.add(units, arm.tolist(), y.tolist())
    assert often.difference(LEVEL) == pytest.approx(once.difference(LEVEL), rel=1e-9)
    assert often.ratio(LEVEL) == pytest.approx(once.ratio(LEVEL), rel=1e-9)


def test_how_rewards_are_cut_into_pieces_changes_no_bit():
    y, arm = drawn(2, n=500)
    y = y * np.random.default_rng(3).random(500)
    ways = [fed(y, arm, parts=parts) for parts in (1, 7, 500)]
    for one, other in itertools.pairwise(ways):
        assert one[0].difference(LEVEL) == other[0].difference(LEVEL)
        assert one[1].difference(LEVEL) == other[1].difference(LEVEL) and one[1].ratio(LEVEL) == other[1].ratio(LEVEL)


def test_the_units_that_matter_are_the_successes_where_rewards_are_rare():
    y, arm = np.zeros(4_000), np.tile([0, 1], 2_000)
    y[:200] = 1.0  # 100 in each cohort
    _, sums = fed(y, arm)
    assert sums.arm(0).effective == pytest.approx(100, rel=0.2)
    y[:] = 0.0
    y[: int(LEAST)] = 1.0  # half of them in each cohort: too few
    assert not fed(y, arm)[1].difference(LEVEL).shown
    assert fed(y, arm)[0].difference(LEVEL).shown


def test_a_lift_over_a_mean_that_may_be_zero_has_no_interval():
    rng = np.random.default_rng(4)
    arm = np.tile([0, 1], 500)
    sums = UnitSums()
    sums.add(range(1000), arm.tolist(), (arm + rng.normal(size=1000)).tolist())
    assert sums.difference(LEVEL).shown and not sums.ratio(LEVEL).shown
    y = np.where(arm, 1.0, 0.0)
    assert not fed(y, arm)[0].ratio(LEVEL).shown
    assert not UnitSums().difference(LEVEL).shown and not Bets(0.5, (0, 1)).difference(LEVEL).shown


# ------------------------------------------------------------------------------------------ valid at all looks


def ever_wrong(streams, n, share, rng, units_of=lambda n, rng: np.arange(n)):
    """Shares of A/A streams in which the asymptotic interval, and one of 1.96 standard errors, ever exclude 0."""
    wrong = np.zeros(2)
    for _ in range(streams):
        units = units_of(n, rng)
        own, arms = rng.normal(size=n), (rng.random(n) < share).astype(int)
        sums, bad = UnitSums(), np.zeros(2, dtype=bool)
        for part in np.array_split(np.arange(n), 20):
            picked = units[part]
            sums.add(picked.tolist(), arms[picked].tolist(), (own[picked] + rng.normal(size=len(part))).tolist())
            one, zero = sums.arm(1), sums.arm(0)
            found = sums.difference(LEVEL)
            half = 1.96 * math.sqrt(one.variance + zero.variance)
            bad |= np.array([found.shown and not found.low <= 0 <= found.high, abs(found.value) > half])
        wrong += bad
    return wrong / streams


def test_an_asymptotic_interval_survives_twenty_looks_and_a_fixed_one_does_not():
    """100 streams at a true rate of at most 3%: more than 9 wrong ones come once in 10³."""
    ours, fixed = ever_wrong(100, 1_000, 0.5, np.random.default_rng(5))
    assert ours <= 0.09 and fixed > 0.15


def test_units_that_come_again_leave_the_interval_valid():
    """Each unit comes five times and has its own mean, so residuals of a unit are correlated."""
    ours, fixed = ever_wrong(100, 1_000, 0.5, np.random.default_rng(6), lambda n, rng: rng.integers(n // 5, size=n))
    assert ours <= 0.09 and ours < fixed


def test_capital_of_the_sums_is_never_more_than_the_capital_of_the_bets():
    """The sums of four powers bound the product of the bets from below, at every candidate: a step of the proof."""
    y, arm = drawn(7, n=300, share=0.8)
    bets, _ = fed(y, arm, share=0.8)
    centre = (0.5 + np.concatenate([[0.0], np.cumsum(y)[:-1]])) / np.arange(1, 301)
    phi = (y - centre) * np.where(arm, 1 / 0.8, -1 / 0.2)
    for d in (-0.5, -0.1, 0.0, 0.07, 0.3):
        rates = BETS / 5.0
        fit = rates * (5 + max(d, 0)) < 0.97
        rates, weights = rates[fit], WEIGHTS[fit]
        exact = np.logaddexp.reduce(weights + np.log1p(rates[:, None] * (phi - d)).sum(axis=1))
        found = _capital(bets._moments(1.0), d, 5.0)
        assert found <= exact + 1e-9 and found > exact - 0.1 - 0.03 * abs(exact)


def test_the_fourth_factor_bounds_the_logarithm():
    b = np.concatenate([BETS, np.linspace(1e-4, 0.96, 50)])
    for share, factor in zip(b, fourth_factor(b), strict=True):
        x = np.linspace(-share, 4.0, 400)
        assert (np.log1p(x) - (x - x**2 / 2 + x**3 / 3 - factor * x**4) >= -1e-15).all()


def test_a_bounded_interval_finds_a_policy_that_never_earns():
    """The policy's rewards do not vary, so no asymptotic interval is shown: the bounded one shows the difference."""
    y, arm = drawn(8, n=2_000, live=0.0, held=0.3)
    bets, sums = fed(y, arm)
    assert bets.difference(LEVEL).high < -0.1 and not sums.difference(LEVEL).shown
    assert bets.ratio(LEVEL).high < -0.5


def test_intervals_have_the_truth_of_a_drifting_world():
    """Both means halve and swing; the effect is 0.1 throughout."""
    rng, n = np.random.default_rng(9), 6_000
    base = 0.3 + 0.25 * np.sin(np.arange(n) / 300)
    arm = (rng.random(n) < 0.9).astype(int)
    y = (rng.random(n) < base + 0.1 * arm).astype(float)
    bets, sums = fed(y, arm, share=0.9)
    for found in (bets.difference(LEVEL), sums.difference(LEVEL)):
        assert found.low < 0.1 < found.high and found.high - found.low < 0.3
    lift = 0.1 / base.mean()
    for found in (bets.ratio(LEVEL), sums.ratio(LEVEL)):
        assert found.low < lift < found.high


# ------------------------------------------------------------------------------------------ beside others


def test_widths_are_within_fifteen_per_cent_of_ville():
    ville = pytest.importorskip("ville", reason="ville is an oracle for widths: pip install ville")
    for share, live in ((0.9, 0.1),):
        y, arm = drawn(10, n=10_000, share=share, live=live, held=live)
        bets, sums = fed(y, arm, share=share)
        betting = ville.BettingABTest(propensity=share, grid=1_000).fit(y, arm.astype(float)).interval()
        normal = ville.AsymptoticABTest(propensity=share).fit(y, arm.astype(float)).interval()
        for found, (low, high) in ((bets.difference(LEVEL), betting), (sums.difference(LEVEL), normal)):
            assert found.high - found.low < 1.15 * (high - low)


def test_the_mixture_boundary_is_that_of_ville():
    ville = pytest.importorskip("ville", reason="ville is an oracle for the boundary: pip install ville")
    rho = TIGHTEST / (2 * math.log(1 / LEVEL) + math.log(1 + 2 * math.log(1 / LEVEL)))
    for t in (100, 2_000, 10**6):
        theirs = float(ville.normal_mixture(t, LEVEL, rho)) / math.sqrt(t)
        assert error_factor(t, LEVEL) == pytest.approx(theirs, rel=1e-12)
    assert ville.normal_mixture(TIGHTEST, LEVEL, rho) < 1.001 * ville.normal_mixture(
        TIGHTEST, LEVEL, ville.best_rho(TIGHTEST, LEVEL)
    )


# ------------------------------------------------------------------------------------------ split and guardrails


def test_a_split_that_loses_units_of_one_cohort_is_found_and_a_fair_one_is_not():
    rng = np.random.default_rng(11)
    for share in (0.5, 0.9, 0.01):
        arm = rng.random(20_000) < share
        live = np.cumsum(arm)
        assert not any(mismatch(int(live[t]), t + 1 - int(live[t]), share, 0.001) for t in range(0, 20_000, 50))
    assert mismatch(7_200, 1_000, 0.9, 0.001)  # a fifth of the policy's units is gone


def test_a_fair_split_is_ever_doubted_no_more_often_than_the_level():
    """1,000 streams looked at after every unit at level 5%: more than 70 come once in 500."""
    rng = np.random.default_rng(12)
    live = np.cumsum(rng.random((1_000, 400)) < 0.3, axis=1)
    doubted = sum(any(mismatch(int(row[t]), t + 1 - int(row[t]), 0.3, 0.05) for t in range(9, 400, 10)) for row in live)
    assert doubted <= 70


def test_a_guardrail_is_read_so_that_more_is_worse():
    y, arm = drawn(13, n=1_000)
    slow = [{"ms": 100.0 + 20.0 * a + float(i % 7)} for i, a in enumerate(arm)]
    for better, sign in (("lower", 1.0), ("higher", -1.0)):
        lift = Lift(0.5, (0.0, 1.0), {"ms": Guardrail(5.0, better)})
        lift.add(range(1_000), arm.tolist(), y.tolist(), slow)
        reward, harms, split = lift.judged(LEVEL)
        assert harms["ms"].value == pytest.approx(sign * 20.0, abs=0.5) and split
        assert harms["ms"].low <= harms["ms"].value <= harms["ms"].high
        assert reward.low < 0.0 < reward.high
    assert lift.look().guardrails["ms"].low > 15.0


def test_two_intervals_meet_in_what_both_allow():
    assert Interval(0.0, -1.0, 2.0).meet(Interval(0.1, -0.5, 3.0)) == Interval(0.0, -0.5, 2.0)
    assert Interval(0.0).meet(Interval(0.1, -0.5, 3.0)) == Interval(0.0, -0.5, 3.0)
    assert not Interval(0.0).meet(Interval(0.1)).shown


# ------------------------------------------------------------------------------------------ ramps


def ramped(ramp, seed, live, held, units=200_000, every=500):
    """Where a ramp ends, the units that got the policy, and what they lost, on a fixed world."""
    rng, place, exposed = np.random.default_rng(seed), 0, 0
    lift = Lift(ramp.shares[0], (0.0, 1.0), ramp.guardrails)
    for start in range(0, units, every):
        arm = (rng.random(every) < lift.share).astype(int)
        exposed += int(arm.sum())
        y = (rng.random(every) < np.where(arm, live, held)).astype(float)
        lift.add(range(start, start + every), arm.tolist(), y.tolist())
        found = ramp.judge(lift, place)
        if found.step == "stopped":
            return "stopped", place, exposed
        if found.step == "advanced":
            place += 1
            if ramp.shares[place] == 1.0:
                return "arrived", place, exposed
            lift = Lift(ramp.shares[place], (0.0, 1.0), ramp.guardrails)
    return "running", place, exposed


def test_a_ramp_on_a_harmful_policy_stops_at_its_first_share_and_on_a_good_one_arrives():
    ramp = Ramp((0.05, 0.25, 1.0), margin=-0.02)
    ended, place, exposed = ramped(ramp, 1, live=0.1, held=0.3)
    assert (ended, place) == ("stopped", 0) and exposed < 1_000
    assert ramped(ramp, 2, live=0.3, held=0.3)[:2] == ("arrived", 2)


def test_a_policy_that_never_earns_is_stopped_at_a_share_of_one_in_a_hundred():
    assert ramped(Ramp((0.01, 1.0)), 3, live=0.0, held=0.3)[:2] == ("stopped", 0)


def test_a_guardrail_stops_a_ramp_and_one_that_cannot_be_told_holds_it():
    y, arm = drawn(14, n=4_000, live=0.5, held=0.2)
    for extra, step, reason in ((30.0, "stopped", "ms"), (0.0, "advanced", "reward"), (None, None, "")):
        lift = Lift(0.5, (0.0, 1.0), {"ms": Guardrail(10.0)})
        noise = np.random.default_rng(15).normal(100.0, 20.0, 4_000)
        sent = None if extra is None else [{"ms": float(m + extra * a)} for m, a in zip(noise, arm, strict=True)]
        lift.add(range(4_000), arm.tolist(), y.tolist(), sent)
        found = Ramp((0.5, 1.0), guardrails={"ms": Guardrail(10.0)}).judge(lift, 0)
        assert (found.step, found.reason) == (step, reason)


def test_a_wrong_split_holds_a_ramp_and_the_last_share_never_advances():
    y, arm = drawn(16, n=4_000, live=0.5, held=0.2)
    lift = Lift(0.9, (0.0, 1.0))  # half of the units got the policy
    lift.add(range(4_000), arm.tolist(), y.tolist())
    assert Ramp((0.9, 1.0)).judge(lift, 0)[:2] == (None, "sample_ratio")
    lift = Lift(0.5, (0.0, 1.0))
    lift.add(range(4_000), arm.tolist(), y.tolist())
    assert Ramp((0.5, 1.0)).judge(lift, 0).step == "advanced" and Ramp((0.5,)).judge(lift, 0).step is None
