"""The state is the fold of learned rewards in the order of their numbers, whatever happened in between."""

import numpy as np
import pytest

import driftwise as dw
from driftwise.service.core.fold import Fold, Unlike, digest, resume
from driftwise.service.core.recompute import again, eras_of, same
from driftwise.service.core.recompute import arms_of as shown
from driftwise.service.core.setup import setup
from driftwise.service.stores.records import SnapshotRow
from driftwise.service.wire.protocol import Refusal
from service.desk import LINEAR, POLICIES, Desk, arms_of, body_of


def drive(desk, rng, rounds, group=1, at=1000.0):
    """Decisions and late rewards, in groups. Returns the ids that are still open."""
    waiting, many = [], 0
    for number in range(rounds):
        waiting.append(desk.decide(arms_of(rng), at + number).id)
        if rng.random() < 0.8:
            place = int(rng.integers(len(waiting)))
            desk.reward(waiting.pop(place), float(rng.random() < 0.5), at + number)
        many += 1
        if many == group:
            desk.commit()
            many = 0
    desk.commit()
    return waiting


@pytest.mark.parametrize("name", POLICIES)
def test_live_from_a_snapshot_and_folded_again_are_one_state_to_the_last_bit(name, tmp_path, monkeypatch):
    monkeypatch.setattr("driftwise.service.core.fold.EVERY", 10)
    monkeypatch.setattr("driftwise.service.core.stream.EVERY", 10)
    monkeypatch.setattr("driftwise.service.core.stream.SNAPSHOT_EVERY", 20)
    rng, desk = np.random.default_rng(1), Desk(tmp_path / "a.db", POLICIES[name])
    for start in range(3):
        drive(desk, rng, 60, group=start * 3 + 1, at=1000.0 + 100 * start)
        live = desk.stream.fold.digest()
        assert live == desk.refolded()
        assert digest(desk.stream.setup.policy, desk.stream.fold.states.back) == live
        desk.close()
        desk = Desk(tmp_path / "a.db")
        assert desk.stream.fold.digest() == live
    assert desk.store.snapshots(1, 1) and len(desk.store.digests(1, 1)) >= 10
    desk.close()


@pytest.mark.parametrize("name", POLICIES)
def test_every_decision_comes_out_again_from_the_log(name, tmp_path):
    desk = Desk(tmp_path / "a.db", POLICIES[name])
    drive(desk, np.random.default_rng(2), 60, group=4)
    era, made = eras_of(desk.store, 1)[0]
    fold, odd = Fold(era, made), 0
    for row in desk.store.decisions(1):
        fold.learn_rows(desk.store.rewards(1, fold.seq, row.state_seq))
        assert same(row, again(fold, made, row, shown(desk.store, row)))
        off = row._replace(score=float(np.nextafter(row.score, 9.0)))
        odd += not same(off, again(fold, made, row, shown(desk.store, row)))
    assert odd == desk.stream.seq  # a changed last bit is found
    desk.close()


def test_a_stream_that_is_asked_one_at_a_time_is_the_agent(tmp_path):
    made = setup(body_of({**LINEAR, "epsilon": 0.3, "seed": 5}))
    agent = dw.Agent(made.policy, rewards=(0.0, 1.0), clock="rewards", epsilon=0.3, seed=5)
    desk, rng = Desk(tmp_path / "a.db", {**LINEAR, "epsilon": 0.3, "seed": 5}), np.random.default_rng(3)
    waiting = []
    for number in range(200):
        arms = arms_of(rng)
        theirs, ours = agent.decide(arms, id=str(number)), desk.decide(arms, id=str(number))
        desk.commit()
        assert (ours.arm, ours.score, ours.propensity, ours.explored) == (
            theirs.arm, theirs.score, theirs.propensity, theirs.explored
        )  # fmt: skip
        waiting.append(str(number))
        if rng.random() < 0.7:
            id, value = waiting.pop(int(rng.integers(len(waiting)))), float(rng.random())
            agent.reward(id, value)
            desk.reward(id, value)
            desk.commit()
    assert (agent.state.floats == desk.stream.fold.states.front.floats).all()
    desk.close()


def test_rewards_are_the_same_state_however_they_are_grouped(tmp_path):
    digests = set()
    for group in (1, 7, 100):
        desk, rng = Desk(tmp_path / f"{group}.db"), np.random.default_rng(4)
        ids = [desk.decide(arms_of(rng), id=str(number)).id for number in range(100)]
        desk.commit()
        for place, id in enumerate(ids):
            desk.reward(id, float(rng.random()))
            if place % group == group - 1:
                desk.commit()
        desk.commit()
        digests.add(desk.stream.fold.digest())
        desk.close()
    assert len(digests) == 1


@pytest.mark.parametrize("name", ("fade", "window", "solver", "Auto"))
def test_a_group_that_could_not_be_written_has_never_been(name, tmp_path):
    told = []
    for failing in (False, True):
        desk, rng = Desk(tmp_path / f"{failing}.db", POLICIES[name]), np.random.default_rng(5)
        for number in range(40):
            arms, more = arms_of(rng), arms_of(rng)
            if failing:
                desk.decide(more, id=f"x{number}")
                desk.decide(arms, id=str(number))
                desk.reward(str(number), 1.0)
                if number:
                    with pytest.raises(Refusal, match="has the reward"):
                        desk.reward(str(number - 1), 0.75)
                desk.fail()
                with pytest.raises(Refusal, match="no decision has this id"):
                    desk.reward(f"x{number}", 1.0)
            desk.decide(arms, id=str(number))
            desk.commit()
            desk.reward(str(number), float(number % 2))
            desk.commit()
        told.append((desk.stream.fold.digest(), desk.refolded(), desk.stream.kept))
        desk.close()
    assert told[0] == told[1] and told[0][0] == told[0][1]


def test_whoever_decides_sees_what_is_committed_and_no_more(tmp_path):
    desk, rng = Desk(tmp_path / "a.db"), np.random.default_rng(6)
    first = desk.decide(arms_of(rng), id="a")
    desk.commit()
    desk.reward("a", 1.0)
    assert desk.decide(arms_of(rng), id="b").state_seq == first.state_seq == 0
    desk.commit()
    assert desk.decide(arms_of(rng), id="c").state_seq == 1
    desk.close()


def test_minus_zero_is_zero_before_anything_is_learned_or_written(tmp_path):
    desk = Desk(tmp_path / "a.db", {**LINEAR, "rewards": [-1, 1]})
    desk.decide([[-0.0, 1.0, -0.0], [0.0, 0.5, 0.0]], id="a")
    desk.commit()
    desk.reward("a", -0.0)
    desk.commit()
    assert desk.decide([[0.0, 1.0, 0.0], [0.0, 0.5, 0.0]], id="a").seq == 1
    assert desk.stream.fold.digest() == desk.refolded()
    desk.close()


def test_a_damaged_snapshot_is_passed_over_and_a_wrong_one_found_out(tmp_path, monkeypatch):
    monkeypatch.setattr("driftwise.service.core.fold.EVERY", 10)
    monkeypatch.setattr("driftwise.service.core.stream.EVERY", 10)
    desk = Desk(tmp_path / "a.db")
    drive(desk, np.random.default_rng(7), 80)
    good, tick = desk.stream.fold.digest(), desk.stream.fold.tick
    data = bytearray(desk.stream.fold.snapshot_behind().data)
    data[len(data) // 2] ^= 1
    desk.store.begin()
    desk.store.add_snapshot(SnapshotRow(1, 1, 5, 5, bytes(data)))
    desk.store.commit()
    desk.close()
    desk = Desk(tmp_path / "a.db")
    assert desk.stream.fold.digest() == good and desk.stream.fold.tick == tick
    # A complete snapshot of other rewards is found by the next digest.
    other = Desk(tmp_path / "b.db")
    drive(other, np.random.default_rng(8), 5)
    desk.store.begin()
    desk.store.add_snapshot(other.stream.fold.snapshot_behind())
    desk.store.commit()
    desk.close(), other.close()
    with pytest.raises(Exception, match="generation 1 at reward 10"):
        Desk(tmp_path / "a.db")


def test_a_window_keeps_its_bits_over_a_commit_that_failed_and_a_restart(tmp_path):
    """Unused space may differ; digests must not depend on it."""
    desk, rng = Desk(tmp_path / "a.db", POLICIES["window"]), np.random.default_rng(9)
    drive(desk, rng, 30)
    for _ in range(5):
        desk.reward(desk.decide(arms_of(rng)).id, 1.0)
    desk.fail()
    drive(desk, rng, 30, group=5)
    assert desk.stream.fold.digest() == desk.refolded()
    desk.close()


def test_a_reward_that_is_missing_from_the_log_is_found_before_any_digest(tmp_path):
    desk = Desk(tmp_path / "a.db")
    drive(desk, np.random.default_rng(2), 40)
    desk.refolded()
    desk.store.run("DELETE FROM reward WHERE seq = 7")
    era, made = eras_of(desk.store, 1)[-1]
    with pytest.raises(Unlike):
        resume(desk.store, era, made, snapshots=False)
    desk.close()
