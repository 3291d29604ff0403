"""Defects that were found once, one section each: every test failed before, or would fail on the same error."""

import io
import itertools
import json
import math
import os
import re
import signal
import stat
import struct
import subprocess
import sys
import threading
import time
import tomllib
import warnings
from pathlib import Path

import numpy as np
import pytest

import driftwise as dw
from driftwise import research
from driftwise.kernels.adapt import book
from hostile.battery import KNOWN, lived, policies
from hostile.cases import joined, parts
from hostile.strangers import as_nobody, can_become, python
from refusing import refused, unchanged

A = np.eye(3)
ROOT = Path(__file__).resolve().parents[2]
NAMES = list(policies())
every_policy = pytest.mark.parametrize("name", NAMES)
root_only = pytest.mark.skipif(not can_become(), reason="only root on x86-64 Linux can become nobody")


def scb(**fields):
    return dw.make("SCB-WeightUCB", **{**KNOWN, **fields})


def glm(**fields):
    common = {"dim": 3, "memory": dw.Keep(), "lam": 1.0, "delta": 0.1, "R": 1.0, "horizon": 200}
    return research.GLMUCB(**{**common, **fields})


def heard(call):
    """The warnings of a call, as sentences."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(one.message) for one in caught]


# ------------------------------------------------------------------------------------------ 1. one thread at a time


def test_a_second_thread_is_refused_while_the_first_learns_and_both_go_on_after():
    inside, go_on = threading.Event(), threading.Event()

    def slow(z):
        inside.set()
        assert go_on.wait(200)
        return 0.5 * z

    policy = glm(link=research.Link(mean=slow, slope=lambda z: np.full_like(z, 0.5), k=0.5, c=0.5))
    state = policy.start()
    first = threading.Thread(target=policy.learn, args=(state, A, 0, 1.0))
    first.start()
    assert inside.wait(200)
    for call in (lambda: policy.learn(state, A, 1, 1.0), lambda: policy.choose(state, A),
                 lambda: policy.scores(state, A), lambda: policy.advance(state)):  # fmt: skip
        with refused("state", "thread", "copy()"):
            call()
    go_on.set()
    first.join(200)
    assert not first.is_alive() and state.observations == 1
    policy.learn(state, A, 1, 1.0)
    assert state.observations == 2


def test_a_link_that_uses_the_state_it_is_asked_for_is_refused_and_does_not_hang():
    def nosy(z):
        policy.choose(state, A)
        return 0.5 * z

    policy = glm(link=research.Link(mean=nosy, slope=lambda z: np.full_like(z, 0.5), k=0.5, c=0.5))
    state = policy.start()
    with refused("state", "thread"):
        policy.learn(state, A, 0, 1.0)


THREADS = """
import sys, threading
import numpy as np
import driftwise as dw
sys.setswitchinterval(1e-6)
A, prepared = np.eye(8), dw.ArmSet(np.eye(8))
kinds = {
    "SCB": dw.make("SCB-WeightUCB", dim=8, horizon=20000, path_length=3.0),
    "window": dw.research.GLMUCB(dim=8, memory=dw.Window(7), lam=10.0, delta=0.01),
    "SW-UCB": dw.make("SW-UCB", dim=8, horizon=300, path_length=3.0),
    "bank": dw.make("Bank+LB-WeightUCB", dim=8),
    "MASTER": dw.make("MASTER+OFUL", dim=8, horizon=20000),
}
for name, policy in kinds.items():
    state, learned, wrong = policy.start(), [0] * 6, []
    policy.choose(state, A), policy.learn(state, A, 0, 1.0)
    def work(me):
        for number in range(400):
            try:
                if number % 4 == 3:
                    choice = policy.choose(state, prepared if me % 2 else A)
                    assert 0 <= choice.arm < 8 and abs(choice.score) < 1e6, choice
                else:
                    policy.learn(state, prepared if me % 2 else A, (me + number) % 8, 1.0)
                    learned[me] += 1
            except dw.BadInput as error:
                if "thread" not in str(error):
                    wrong.append(str(error))
            except BaseException as error:
                wrong.append(repr(error))
    threads = [threading.Thread(target=work, args=(me,)) for me in range(6)]
    [one.start() for one in threads], [one.join() for one in threads]
    assert not wrong, (name, wrong[:3])
    assert state.clock == 1 + sum(learned), (name, state.clock, learned)
    assert np.isfinite(state.G).all() and np.isfinite(state.b).all()
    dw.State.from_bytes(state.to_bytes())
    policy.learn(state, A, 0, 1.0)
"""


def test_six_threads_on_one_state_never_corrupt_it_and_every_lesson_that_was_taken_counts():
    python(THREADS)


# ------------------------------------------------------------------------------------------ 2. loading


def old_npz():
    """A state as an earlier version wrote it."""
    file = io.BytesIO()
    np.savez(file, G=np.zeros((1, 3, 3)), b=np.zeros((1, 3)))
    return file.getvalue()


def plain_npy():
    file = io.BytesIO()
    np.save(file, np.zeros(5))
    return file.getvalue()


FOREIGN = {
    "None": None, "a string": "DRIFTWSE", "a number": 5, "a list": [1, 2], "an array": np.zeros(300), "nothing": b"",
    "a plain npy": plain_npy(), "an npz": old_npz(), "zeros": bytes(500), "a magic word alone": b"DRIFTWSE",
    "a zip's beginning": b"PK\x03\x04", "a strided view": memoryview(bytes(400))[::2],
}  # fmt: skip


@pytest.mark.parametrize("data", FOREIGN.values(), ids=FOREIGN)
def test_what_no_state_wrote_is_refused_in_one_sentence(data):
    with refused("data", "save the state again"):
        dw.State.from_bytes(data)


def test_an_npz_of_an_earlier_version_is_called_by_its_name():
    with refused("data", "npz", "earlier version"):
        dw.State.from_bytes(old_npz())


def test_bytes_of_any_kind_of_buffer_are_taken():
    data = scb().start().to_bytes()
    for one in (data, bytearray(data), memoryview(data), memoryview(np.frombuffer(data, dtype=np.uint8))):
        assert dw.State.from_bytes(one).to_bytes() == data


def test_every_truncation_and_every_flipped_byte_is_refused():
    data = dw.make("OFUL", dim=2, horizon=100).start().to_bytes()
    for length in range(len(data)):
        with refused("data"):
            dw.State.from_bytes(data[:length])
    for place in range(len(data)):
        flipped = bytearray(data)
        flipped[place] ^= 0x41
        with refused("data"):
            dw.State.from_bytes(bytes(flipped))


HUGE = """
import resource, sys
import driftwise as dw
from hostile.cases import joined, parts
import json
data = dw.make("OFUL", dim=2, horizon=100).start().to_bytes()
_, text, arrays = parts(data)
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
def tried(bad):
    try:
        dw.State.from_bytes(bad)
    except dw.BadInput as error:
        assert len(str(error)) < 500, error
    else:
        raise AssertionError("taken")
for size in (10**8, 2**31, 2**62, 2**64 - 1):
    tried(joined(text, arrays, characters=size)), tried(joined(text, arrays, length=size))
for size in (5 * 10**7, 2**40, 2**62, 10**100):
    facts = json.loads(text)
    facts["arrays"][0][2] = [size]
    tried(joined(json.dumps(facts).encode(), arrays))
    facts = json.loads(text)
    facts["sizes"][4] = size
    tried(joined(json.dumps(facts).encode(), arrays))
tried(joined(b"1" * 5000, arrays)), tried(joined(b'{"sizes":' + b"9" * 5000 + b"}", arrays))
tried(joined(b"[" * 10**6, arrays))
print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)
"""


def test_sizes_are_proven_before_anything_is_allocated():
    assert float(python(HUGE).stdout) < 64.0


def test_a_state_of_another_policy_is_refused_after_loading_though_every_shape_agrees():
    one, other = (scb(lam=lam) for lam in (3.0, 4.0))
    state = dw.State.from_bytes(lived(one, 4).to_bytes())
    for call in (lambda: other.choose(state, A), lambda: other.learn(state, A, 0, 1.0), lambda: other.advance(state)):
        with unchanged(state), refused("state", "another policy"):
            call()
    one.learn(state, A, 0, 1.0)  # its own policy still accepts it after the refusal


@every_policy
def test_a_loaded_state_goes_on_bit_for_bit(name):
    policy = policies()[name]
    state = lived(policy, 7)
    again = dw.State.from_bytes(state.to_bytes())
    for number in range(5):
        assert policy.choose(state, A) == policy.choose(again, A)
        policy.learn(state, A, number % 3, 1.0), policy.learn(again, A, number % 3, 1.0)
    assert state.to_bytes() == again.to_bytes()


@every_policy
@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_nan_and_infinite_sums_are_refused_after_loading(name, value):
    policy = policies()[name]
    good = lived(policy, 5)
    for group in ("G", "b", "theta", "ring", "atoms", "targets", "H", "scores"):
        if group in good.groups():
            state = good.copy()
            getattr(state, group).flat[-1 if group in ("theta", "H") else 0] = value
            loaded = dw.State.from_bytes(state.to_bytes())
            with refused(f"state.{group}", "finite"):
                policy.choose(loaded, A)
            with refused(f"state.{group}", "finite"):  # nor is it accepted the second time
                policy.learn(loaded, A, 0, 1.0)


@pytest.mark.parametrize(
    ("name", "group", "place", "value"),
    [("SW-UCB", "cursor", 0, 10**9), ("BVD-GLM-UCB", "cursor", 3, 1000),
     ("SCB-WeightUCB in one pass", "cursor", 3, 1000),
     ("BOB+LB-WeightUCB", "marks", 2, 10**6), ("MASTER+OFUL", "marks", 4, 10**6), ("MASTER+LogUCB1", "marks", 1, -1)],
)  # fmt: skip
def test_a_cursor_or_mark_beyond_its_array_is_refused_loaded_or_in_memory(name, group, place, value):
    policy = policies()[name]
    state = lived(policy, 5)
    getattr(state, group)[place] = value
    for one in (dw.State.from_bytes(state.to_bytes()), state):
        with pytest.raises(dw.BadInput, match=r"^state"):
            policy.learn(one, A, 0, 1.0)


@pytest.mark.parametrize("kind", ["<f4", ">f8", "<i4", "<c16", "|O", "<u8", "|b1"])
def test_other_types_of_numbers_are_refused(kind):
    _, text, arrays = parts(lived(dw.make("OFUL", dim=2, horizon=100), 0).to_bytes())
    for at in range(2):
        facts = json.loads(text)
        size = facts["arrays"][at][2][0]
        facts["arrays"][at][1:] = [kind, [size * 8 // np.dtype(kind).itemsize]]
        with refused("data"):
            dw.State.from_bytes(joined(json.dumps(facts).encode(), arrays))
    facts = json.loads(text)
    facts["arrays"][0][1], facts["arrays"][1][1] = "<i8", "<f8"
    with refused("data"):
        dw.State.from_bytes(joined(json.dumps(facts).encode(), arrays))


# ------------------------------------------------------------------------------------------ 3. surroundings

SMALL = """
import numpy as np, driftwise as dw
dw.ArmSet(np.eye(2))
from driftwise.kernels.index import columns_
print(sum(columns_.call.stats.cache_hits.values()), sum(columns_.call.stats.cache_misses.values()))
"""


@root_only
def test_nobody_without_home_or_name_can_import_and_compile(tmp_path):
    cache, temporary = tmp_path / "cache", tmp_path / "temporary"
    for folder in (cache, temporary):
        folder.mkdir()
        folder.chmod(0o777)
    done = as_nobody(SMALL, NUMBA_CACHE_DIR=str(cache), TMPDIR=str(temporary))
    assert (done.returncode, done.stdout.split()) == (0, ["0", "1"]), done.stderr
    done = as_nobody(SMALL, NUMBA_CACHE_DIR=str(cache), TMPDIR=str(temporary))
    assert (done.returncode, done.stdout.split()) == (0, ["1", "0"]), done.stderr


@root_only
def test_a_warmed_cache_that_cannot_be_written_is_used_and_leaves_nothing_behind(tmp_path):
    cache, temporary = tmp_path / "cache", tmp_path / "temporary"
    cache.mkdir(), temporary.mkdir()
    temporary.chmod(0o777)
    assert python(SMALL, env={"NUMBA_CACHE_DIR": str(cache)}).stdout.split() == ["0", "1"]
    before = sorted(cache.rglob("*"))
    done = as_nobody(SMALL, NUMBA_CACHE_DIR=str(cache), TMPDIR=str(temporary))
    assert (done.returncode, done.stdout.split()) == (0, ["1", "0"]), done.stderr
    assert sorted(cache.rglob("*")) == before
    assert list(temporary.iterdir()) == []


@root_only
def test_a_cold_cache_that_cannot_be_written_is_said_to_be_so_and_all_works(tmp_path):
    cache = tmp_path / "cache"
    cache.mkdir()
    assert stat.S_IMODE(cache.stat().st_mode) & 0o022 == 0
    done = as_nobody("import warnings; warnings.simplefilter('always')" + SMALL, NUMBA_CACHE_DIR=str(cache))
    assert done.returncode == 0 and "NUMBA_CACHE_DIR" in done.stderr, done.stderr


def test_a_home_that_cannot_be_told_is_no_error():
    code = "import pwd\ndef nobody(uid): raise KeyError(uid)\npwd.getpwuid = nobody\nimport driftwise"
    kept = {key: value for key, value in os.environ.items() if key not in ("HOME", "XDG_CACHE_HOME")}
    done = subprocess.run([sys.executable, "-c", code], env=kept, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


# ------------------------------------------------------------------------------------------ 4. lower bounds


def test_every_dependency_has_a_lower_bound_and_typers_is_one_that_works():
    wanted = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    bounds = dict(re.fullmatch(r"([\w-]+)>=([\d.]+).*", one).groups() for one in wanted)
    assert tuple(map(int, bounds["typer"].split("."))) >= (0, 16)


# ------------------------------------------------------------------------------------------ 5. BOB and banks


def test_bob_is_paid_for_rewards_that_come_after_their_tick():
    policy = dw.make("BOB+SCB-WeightUCB", dim=3, horizon=300, block=20)
    state = policy.start()
    for number in range(1, 11):
        policy.advance(state, 1.0)
        policy.learn(state, A, 0, 1.0, ticks=0.0)
        policy.learn(state, A, 1, 0.5, ticks=0.0)
        assert state.notes[book.PAYOFF] == 1.5 * number
    for _ in range(10):
        policy.advance(state, 1.0)
    assert state.scores.sum() > 0.0  # the block of mean reward 0.75 was paid


def test_a_bank_refuses_a_memory_of_another_kind():
    for name in ("Bank+LB-WeightUCB", "Bank+SCB-WeightUCB"):
        for memory in (dw.Restart(10), dw.Window(10)):
            with pytest.raises(dw.BadInput, match=r"^(base|memory): wanted .*(keeps|Keep)"):
                dw.make(name, dim=3, memory=memory)


# ------------------------------------------------------------------------------------------ 6. sets


@pytest.mark.parametrize("name", ["OFULog", "OFULog-r", "Logistic-UCB-2", "SCB-PW-WeightUCB"])
def test_a_set_without_width_still_chooses_a_real_arm(name):
    policy = dw.make(name, dim=2, horizon=1000, changes=2, exploration=0)
    state, arms = policy.start(), np.array([[1.0, 0.0], [0.0, 1.0], [-0.6, 0.8]])
    for number in range(6):
        choice = policy.choose(state, arms)
        assert choice.arm in (0, 1, 2)
        assert choice.score == pytest.approx(policy.scores(state, arms).score.max(), abs=1e-9)
        policy.learn(state, arms, number % 3, 1.0)


def test_past_its_horizon_every_atom_keeps_its_own_bound():
    chance = np.random.default_rng(2)
    policy = dw.make("Logistic-UCB-2", dim=2, horizon=5)
    state, told = policy.start(), {}
    for _ in range(14):
        rows = chance.standard_normal((4, 2))
        rows *= (chance.uniform(0.05, 1.0, 4) / np.linalg.norm(rows, axis=1))[:, None]
        policy.learn(state, rows, 0, float(chance.random() < 0.5))
        used = int(state.cursor[3])
        for column, limit in zip(state.atoms.T[:used], state.limits[:used], strict=True):
            key = tuple(column)
            assert limit <= told.get(key, np.linalg.norm(column)) + 1e-12  # bounds only shrink, and none exceeds S‖x‖
            told[key] = limit
        assert all(math.isinf(limit) for limit in state.limits[used:])
        assert tuple(rows[0]) in told or state.dropped or state.lost


STUCK = """
import numpy as np, driftwise as dw
policy = dw.make("Logistic-UCB-2", dim=2, horizon=3)
state, rows = policy.start(), np.array([[1e-160, 0], [0, 1], [1, 0], [.6, .8]])
for lap in range(3):
    for arm in range(4):
        try:
            policy.learn(state, rows, arm, 1.0)
        except dw.DriftwiseError as error:
            print(error)
    policy.choose(state, rows)
"""


def test_an_arm_of_next_to_no_length_does_not_keep_a_lesson_from_ending():
    python(STUCK, timeout=120)


# ------------------------------------------------------------------------------------------ 7. float32, booleans


def unit32(dim=3, n=2000, seed=0, kind=np.float32):
    rows = np.random.default_rng(seed).standard_normal((n, dim)).astype(kind)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


@pytest.mark.parametrize("kind", [np.float32, np.float16])
@pytest.mark.parametrize("dim", [3, 64])
def test_unit_vectors_in_their_own_precision_are_unit_vectors(dim, kind):
    policy, arms = dw.make("OFUL", dim=dim, horizon=100), unit32(dim, kind=kind)
    state = policy.start()
    longest = int(np.argmax(np.linalg.norm(arms.astype(float), axis=1)))
    assert np.linalg.norm(arms[longest].astype(float)) > 1.0 + 1e-9
    policy.choose(state, arms), policy.scores(state, dw.ArmSet(arms))
    policy.learn(state, arms, longest, 1.0), policy.learn(state, dw.ArmSet(arms), longest, 1.0)


def test_an_arm_that_is_too_long_is_named_by_its_row():
    policy, arms = dw.make("OFUL", dim=3, horizon=100), unit32()
    arms[7] *= 1.001
    state = policy.start()
    for call in (lambda: policy.choose(state, arms), lambda: policy.learn(state, arms, 7, 1.0),
                 lambda: policy.learn(state, dw.ArmSet(arms), 7, 1.0)):  # fmt: skip
        with unchanged(state), refused("arms", "row 7", "L = 1"):
            call()
    policy.learn(state, arms, 6, 1.0)
    with refused("arms", "row 1"):  # in float64 the same surplus is an error
        policy.choose(state, np.array([[1.0, 0.0, 0.0], [1.0 + 1e-7, 0.0, 0.0]]))


@pytest.mark.parametrize("click", [True, False, np.True_, np.False_])
def test_a_click_may_be_a_boolean(click):
    policy = scb()
    one, other = policy.start(), policy.start()
    policy.learn(one, A, 0, click), policy.learn(other, A, 0, float(click))
    assert one.to_bytes() == other.to_bytes()


# ------------------------------------------------------------------------------------------ 8. advice


@pytest.mark.parametrize("rate", [0.03, 0.5, 0.97, 1e-6, (0.01, 0.2)])
@pytest.mark.parametrize("L", [1.0, 4.0])
def test_the_ball_advised_holds_the_rate(rate, L):
    fields = dw.advise(click_rate=rate, L=L)
    policy = dw.make("SCB-WeightUCB", **KNOWN, L=L, **fields)
    reach = 1.0 / (1.0 + math.exp(policy.S * L))
    for one in rate if isinstance(rate, tuple) else (rate,):
        assert reach <= one <= 1.0 - reach


def test_clicks_beyond_the_ball_are_told_once_after_a_thousand_lessons():
    policy = dw.make("SCB-WeightUCB", dim=1, horizon=10_000, path_length=0.0, estimate="one-pass", lam=1.0)
    state, arms = policy.start(), np.ones((1, 1))
    said = [number for number in range(1, 4001) if heard(lambda: policy.learn(state, arms, 0, 0.0))]
    assert len(said) == 1 and 1000 <= said[0] < 1200, said


def test_clicks_within_the_ball_are_no_reason_to_warn():
    advice = dw.advise(click_rate=0.03)
    policy = dw.make("SCB-WeightUCB", dim=1, horizon=10_000, path_length=0.0, estimate="one-pass", lam=1.0, **advice)
    state, arms = policy.start(), np.ones((1, 1))
    assert heard(lambda: [policy.learn(state, arms, 0, float(number % 33 == 0)) for number in range(3000)]) == []


# ------------------------------------------------------------------------------------------ 9. windows in days


@pytest.mark.parametrize("make", [lambda memory: dw.LinearUCB(dim=3, memory=memory, lam=1.0, delta=0.1),
                                  lambda memory: glm(memory=memory)], ids=["linear", "generalized"])  # fmt: skip
def test_a_window_that_drops_what_is_young_says_so_once_and_names_capacity(make):
    policy = make(dw.Window(14.0))
    state = policy.start()

    def day():
        for number in range(5):
            policy.learn(state, A, number % 3, 1.0, ticks=0.2)

    said = [heard(day) for _ in range(12)]
    said = list(itertools.chain(*said))
    assert len(said) == 1 and "capacity" in said[0], said
    assert state.dropped > 0
    roomy = make(dw.Window(14.0, capacity=100))
    state = roomy.start()
    assert heard(lambda: [roomy.learn(state, A, 0, 1.0, ticks=0.2) for _ in range(300)]) == []
    assert state.dropped == 0


def test_the_warning_points_at_the_line_that_learned():
    for policy in (dw.LinearUCB(dim=3, memory=dw.Window(2.0), lam=1.0, delta=0.1), glm(memory=dw.Window(2.0))):
        state = policy.start()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for _ in range(10):
                policy.learn(state, A, 0, 1.0, ticks=0.1)
        assert [Path(one.filename).name for one in caught] == [Path(__file__).name]


def test_a_late_reward_is_no_reason_to_say_that_a_full_window_drops():
    policy = dw.LinearUCB(dim=3, memory=dw.Window(5.0), lam=1.0, delta=0.1)
    state = policy.start()
    for _ in range(8):
        policy.learn(state, A, 0, 1.0)

    def late():
        for _ in range(8):
            policy.learn(state, A, 0, 1.0)
            policy.learn(state, A, 0, 1.0, ticks=0.0, age=20.0)  # older than the window: not counted, as it should be

    assert heard(late) == []


def test_being_told_of_drops_does_not_hide_that_the_ball_is_too_small():
    policy = glm(memory=dw.Window(200.0, capacity=100), lam=1.0)
    state, arms = policy.start(), np.array([[1.0, 0.0, 0.0]])
    said = heard(lambda: [policy.learn(state, arms, 0, 0.0) for _ in range(1500)])
    assert sum("capacity" in one for one in said) == 1
    assert sum("ball" in one for one in said) == 1, said


def test_exact_estimates_have_room_for_as_many_atoms_as_they_are_given():
    chance, lost = np.random.default_rng(0), {}
    for capacity in (None, 2000):
        policy = scb(memory=dw.Fade(0.2), capacity=capacity)
        state = policy.start()
        for number in range(1000):
            rows = chance.standard_normal((1, 3))
            policy.learn(state, rows / np.linalg.norm(rows) / 1.0001, 0, 0.0, ticks=float(number % 50 == 0))
        lost[capacity] = state.lost / (state.lost + state.weight)
    assert lost[None] > 0.1 and lost[2000] == 0.0, lost
    for name in ("GLB-WeightUCB", "SC-D-GLUCB", "BVD-GLM-UCB", "GLM-UCB", "LogUCB1", "SCB-SW"):
        assert dw.make(name, **KNOWN, changes=2, capacity=77).start().atoms.shape == (3, 77)


# ------------------------------------------------------------------------------------------ 10. bounds and failures

LONG = """
import time
import numpy as np, driftwise as dw
A = np.eye(3)
for name in ("MASTER+OFUL", "MASTER+LogUCB1", "BOB+LB-WeightUCB", "BOB+SCB-WeightUCB", "Bank+LB-WeightUCB",
             "Bank+SCB-WeightUCB", "Bank+GLB-WeightUCB"):
    policy = dw.make(name, dim=3, horizon=300)
    state = policy.start()
    policy.learn(state, A, 0, 1.0), policy.advance(state, 2.0), policy.choose(state, A)
    before, began = state.to_bytes(), time.perf_counter()
    try:
        policy.advance(state, 1e12)
        assert name.startswith("Bank"), name
    except dw.BadInput as error:
        assert error.parameter == "ticks" and not name.startswith("Bank") and state.to_bytes() == before, (name, error)
    seconds = time.perf_counter() - began
    assert seconds < 20.0, (name, seconds)
    began = time.perf_counter()
    policy.advance(state, 1e6), policy.learn(state, A, 1, 1.0)
    assert time.perf_counter() - began < 100.0, name
    assert np.isfinite(policy.choose(state, A).score), name
"""


def test_a_long_silence_costs_nothing_or_is_refused_at_once():
    python(LONG)


@every_policy
def test_clocks_and_rewards_are_bounded(name):
    policy = policies()[name]
    state = lived(policy, 4)
    with unchanged(state):
        for ticks in (1e308, 1e300, 2.0**53 * 1.01, math.inf, math.nan, -1.0):
            with refused("ticks"):
                policy.advance(state, ticks)
            with refused("ticks"):
                policy.learn(state, A, 0, 1.0, ticks=ticks)
        for reward in (1e160, -1e160, 1e308, math.inf, math.nan):
            with refused("reward"):
                policy.learn(state, A, 0, reward)
    assert np.isfinite(policy.choose(state, A).score)


@pytest.mark.parametrize("name", ["OFUL", "Bank+LB-WeightUCB", "SW-UCB", "SCB-WeightUCB", "Bank+SCB-WeightUCB"])
def test_clocks_do_not_creep_beyond_their_bound(name):
    policy = dw.make(name, dim=3, horizon=300, path_length=1.5)
    state = policy.start()
    policy.advance(state, 2.0**52)
    policy.advance(state, 2.0**51)
    with unchanged(state), refused("ticks"):
        policy.advance(state, 2.0**52)
    policy.learn(state, A, 0, 1.0)
    loaded = dw.State.from_bytes(state.to_bytes())
    assert policy.choose(loaded, A) == policy.choose(state, A) and np.isfinite(policy.choose(state, A).score)


@pytest.mark.parametrize("name", ["OFUL", "Bank+LB-WeightUCB", "SCB-WeightUCB"])
def test_a_clock_at_its_bound_takes_no_small_step_either_that_could_not_be_loaded_again(name):
    policy = dw.make(name, dim=3, horizon=300, path_length=1.5)
    state = policy.start()
    policy.advance(state, 2.0**53)
    for _ in range(3):
        try:
            policy.advance(state, 1e6)
        except dw.BadInput as error:
            assert error.parameter == "ticks"
    policy.choose(dw.State.from_bytes(state.to_bytes()), A)


@pytest.mark.parametrize("reward", [1e100, -1e100, 1e80])
def test_the_largest_reward_that_is_taken_leaves_a_bank_with_weights(reward):
    policy = dw.make("Bank+LB-WeightUCB", dim=3)
    state = lived(policy, 10)
    for number in range(30):
        policy.learn(state, A, number % 3, reward if number % 5 == 0 else 1.0)
        assert np.isfinite(state.scores).all() and (state.scores > 0.0).all()
        assert np.isfinite(policy.choose(state, A).score)
    policy.choose(dw.State.from_bytes(state.to_bytes()), A)  # what was learned can be saved and loaded


def test_a_failed_solver_leaves_the_state_and_later_lessons_work():
    for policy in (scb(), glm(memory=dw.Window(9)), dw.make("MASTER+LogUCB1", dim=3, horizon=300)):
        state, twin = lived(policy, 6), lived(policy, 6)
        good = state.targets.copy()
        state.targets[state.weights > 0.0] = 1e200  # an equation without a solution in doubles
        with unchanged(state):
            for _ in range(2):
                with pytest.raises(dw.NumericalError, match="did not converge"):
                    policy.learn(state, A, 1, 1.0)
            policy.choose(state, A)
        state.targets[:] = good
        for one in (state, twin):
            policy.learn(one, A, 1, 1.0)
        assert state.to_bytes() == twin.to_bytes()


def wayward(trouble):
    """A link that works until the test changes it: too steep for Newton, infinite, or raising."""
    ways = {
        "none": lambda z: 0.5 * z, "waves": lambda z: 10.0 * np.sin(50.0 * z), "NaN": lambda z: np.full_like(z, np.nan),
        "raises": lambda z: 1 / 0,
    }  # fmt: skip
    return research.Link(mean=lambda z: ways[trouble["now"]](z), slope=lambda z: np.full_like(z, 0.5), k=0.5, c=0.5)


@pytest.mark.parametrize(
    ("estimate", "way", "error"),
    [("exact", "waves", dw.NumericalError), ("exact", "NaN", dw.BadInput), ("exact", "raises", ZeroDivisionError),
     ("one-pass", "NaN", dw.BadInput), ("one-pass", "raises", ZeroDivisionError)],
)  # fmt: skip
def test_a_link_that_fails_within_a_lesson_leaves_the_state_as_it_was(estimate, way, error):
    trouble = {"now": "none"}
    policy = glm(link=wayward(trouble), estimate=estimate)
    state, twin = lived(policy, 6), lived(policy, 6)
    trouble["now"] = way
    with unchanged(state):
        for _ in range(2):
            with pytest.raises(error):
                policy.learn(state, A, 1, 5.0)
    trouble["now"] = "none"
    for one in (state, twin):
        policy.learn(one, A, 1, 1.0)
    assert state.to_bytes() == twin.to_bytes()


# ------------------------------------------------------------------------------------------ 11. without matplotlib

# As on a machine without it: no finder knows the name.
BLOCK = """
import sys
from importlib.machinery import PathFinder
class Without(PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.split(".")[0] == "matplotlib" else PathFinder.find_spec(name, path, target)
sys.meta_path[:] = [Without if one is PathFinder else one for one in sys.meta_path]
from driftwise.cli import main
main(sys.argv[1:])
"""
SPEC = """
title = "Tiny"
trials = 2
seed = 3
record = 20
[world]
kind = "Turn"
horizon = 60
reward = "bernoulli"
[[policies]]
name = "LB-WeightUCB"
[[policies]]
name = "OFUL"
"""


@pytest.mark.parametrize("words", [
    ["run", "tiny.toml"], pytest.param(["reproduce", "lb", "--trials", "1"], marks=pytest.mark.slow),
], ids=" ".join)  # fmt: skip
def test_without_matplotlib_a_run_plays_prints_its_table_and_says_what_is_missing(words, tmp_path):
    (tmp_path / "tiny.toml").write_text(SPEC, encoding="utf-8")
    command = [sys.executable, "-c", BLOCK, *words, "--out", "out", "--jobs", "1"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=200)
    assert done.returncode == 0, done.stderr
    assert "LB-WeightUCB" in done.stdout and "OFUL" in done.stdout
    assert "matplotlib" in done.stderr and 'pip install "driftwise[plot]"' in done.stderr
    assert "Traceback" not in done.stderr
    assert (tmp_path / "out" / "curves.npz").exists() and (tmp_path / "out" / "summary.json").exists()
    assert not list((tmp_path / "out").glob("figure*"))


# ------------------------------------------------------------------------------------------ 12. the rest

TOO_LARGE = {
    "horizon of GLM-UCB": lambda: dw.make("GLM-UCB", dim=2, horizon=10**9).start(),
    "window": lambda: dw.make("SW-UCB", dim=2, horizon=100, path_length=1.0, memory=dw.Window(1e12)).start(),
    "window of GLB-SW": lambda: dw.make("GLB-SW", dim=2, horizon=100, path_length=1.0, memory=dw.Window(1e12)).start(),
    "restart": lambda: dw.make("GLB-RestartUCB", dim=2, horizon=99, path_length=1.0, memory=dw.Restart(1e300)).start(),
    "capacity": lambda: scb(capacity=10**14).start(),
    "dim": lambda: dw.make("OFUL", dim=10**7, horizon=100).start(),
    "memories": lambda: dw.make("Bank+LB-WeightUCB", dim=2, memories=5),
    "memories with a horizon": lambda: dw.make("Bank+LB-WeightUCB", dim=2, horizon=100, memories=5),
    "memories that are words": lambda: dw.make("Bank+SCB-WeightUCB", dim=2, memories=("8", "9")),
    "memories that are none": lambda: dw.make("Bank+SCB-WeightUCB", dim=2, memories=None),
    "tilt": lambda: dw.make("Bank+LB-WeightUCB", dim=2, tilt=-1000).start(),
    "tilt the other way": lambda: dw.make("Bank+LB-WeightUCB", dim=2, tilt=1000).start(),
    "horizon of MASTER": lambda: dw.make("MASTER+LogUCB1", dim=2, horizon=10**9).start(),
    "order of MASTER": lambda: dw.make("MASTER+OFUL", dim=2, horizon=100, n0=60).start(),
}


@pytest.mark.parametrize("call", TOO_LARGE.values(), ids=TOO_LARGE)
def test_what_is_too_large_gets_the_one_sentence(call):
    with pytest.raises(dw.BadInput) as caught:
        call()
    assert re.fullmatch(r"[\w.]+: wanted .+, got .+; .+", str(caught.value)), caught.value


def test_a_restart_so_long_that_it_never_comes_is_taken_where_it_costs_nothing():
    policy = dw.make("RestartUCB", dim=3, horizon=100, path_length=1.0, memory=dw.Restart(1e300))
    assert np.isfinite(policy.choose(lived(policy, 5), A).score)


SCARCE = """
import resource
import driftwise as dw
resource.setrlimit(resource.RLIMIT_AS, (3 << 30, 3 << 30))
try:
    dw.make("GLM-UCB", dim=2, horizon=4 * 10**8).start()
except dw.BadInput as error:
    print(error)
"""


def test_a_state_that_does_not_fit_in_the_memory_there_is_gets_the_one_sentence():
    done = python(SCARCE, check=False)
    assert done.returncode == 0 and "state: wanted" in done.stdout, done.stderr[-500:]


def test_the_command_says_its_version(capsys):
    from driftwise.cli import main

    with pytest.raises(SystemExit, match="0"):
        main(["--version"])
    assert capsys.readouterr().out.strip() == f"driftwise {dw.__version__}"


SNIPPET = """
import driftwise as dw
policy = dw.make("Bank+LB-WeightUCB", dim=2)
rounds: float = policy.memory(policy.start())
"""


@pytest.mark.slow
def test_mypy_takes_the_memory_of_a_bank(tmp_path):
    (tmp_path / "snippet.py").write_text(SNIPPET, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", str(ROOT / "pyproject.toml"), "snippet.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=500)
    assert done.returncode == 0, done.stdout


def _imports(process):
    """Wait until numpy is being loaded: from then on it is driftwise that imports."""
    until = time.monotonic() + 20
    while time.monotonic() < until and process.poll() is None:
        if b"numpy" in Path(f"/proc/{process.pid}/maps").read_bytes():
            return
        time.sleep(0.002)


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="looks into /proc to see when to interrupt")
def test_ctrl_c_while_the_command_imports_is_no_traceback():
    command = [str(Path(sys.executable).parent / "driftwise"), "list"]
    ends = []
    for delay in (0.0, 0.03, 0.08, 0.15, 0.25, 0.4, 0.6, 0.8):
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        _imports(process)
        time.sleep(delay)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert "Traceback" not in errors and "KeyboardInterrupt" not in errors, (delay, errors[-800:])
        ends.append(process.returncode)
    assert set(ends) <= {0, 130, -signal.SIGINT} and ends[0] != 0, ends


def test_a_program_that_imports_driftwise_keeps_its_own_ctrl_c():
    code = "import signal; before = signal.getsignal(signal.SIGINT); import driftwise; " \
           "assert signal.getsignal(signal.SIGINT) is before"  # fmt: skip
    python(code)


def test_a_header_is_read_as_what_it_says():
    """The tests above rest on these offsets."""
    data = scb().start().to_bytes()
    magic, version, text, length = struct.unpack_from("<8sIQQ", data)
    assert (magic, version, length) == (b"DRIFTWSE", 1, len(data)) and joined(*parts(data)[1:]) == data and text > 0


def test_a_whole_number_that_no_machine_word_holds_is_a_number():
    policy = dw.LinearUCB(dim=2, memory=dw.Window(5), lam=10**60, delta=0.1, radius="cheung")
    assert policy.choose(policy.start(), np.eye(2)).arm == 0
