"""Past one machine: any executor gives the bytes of threads; lost workers, schedulers and drivers cost time only."""

import contextlib
import dataclasses
import itertools
import json
import multiprocessing
import random
import re
import shutil
import subprocess
import sys
import time
import types
from concurrent.futures import CancelledError, Future, ProcessPoolExecutor, ThreadPoolExecutor

import pytest

import driftwise as dw
from driftwise import cluster
from driftwise._internal import work
from driftwise.cli import main
from driftwise.errors import BadInput, DriftwiseError, NumericalError
from driftwise.lab.run import chunks, results, trials
from driftwise.lab.run.folder import writable
from driftwise.lab.run.spec import parse
from refusing import refused
from scheduling import Scheduler, command, contents, played

# Two kinds of compiled policy, with enough trials that a run can be killed in the middle.
TEXT = """\
title = "Spread"
trials = 6
seed = 3
record = 100

[world]
kind = "Turn"
horizon = 2000

[[policies]]
name = "LB-WeightUCB"

[[policies]]
name = "SW-UCB"
trials = 4
"""


def write(outcomes, folder):
    results.write_results(outcomes, folder, "test")
    return contents(folder)


@pytest.fixture(scope="module")
def by_threads(tmp_path_factory):
    folder = writable(tmp_path_factory.mktemp("threads") / "out")
    return write(trials.play([parse(TEXT, "spread.toml")], folder), folder)


@pytest.mark.parametrize("kind", [ThreadPoolExecutor, ProcessPoolExecutor])
def test_any_executor_finds_the_bytes_of_the_threads(by_threads, tmp_path, kind):
    options = {} if kind is ThreadPoolExecutor else {"mp_context": multiprocessing.get_context("spawn")}
    with kind(2, **options) as executor:
        found = trials.play([parse(TEXT, "spread.toml")], tmp_path, executor=executor)
    assert write(found, tmp_path) == by_threads


def test_chunks_and_answers_are_plain_and_refusals_come_back_as_they_were():
    spec = parse(TEXT, "spread.toml")
    seats = {"here": chunks.Seat(0, 0, 0, "LB-WeightUCB")}
    data = chunks.trial_chunk(chunks.spec_texts([spec]), [chunks.Job(3, 1, seats)])
    assert json.loads(data)["needs"] == work.sources()
    answer = chunks.play_chunk(data)
    assert type(answer) is bytes and answer.startswith(b"DRIFTWSE")
    (one,) = chunks.played(*work.opened(answer))
    world = dw.worlds.Turn(horizon=2000)
    policy = dw.make("LB-WeightUCB", **world.facts)
    expected = dw.simulate({"it": policy}, world, trials=[1], seed=3, record=100).regret["it"][0]
    assert (one.name, one.trial) == ("here", 1) and (one.regret == expected).all()

    @work.answering
    def slip(asked):
        raise {"a": BadInput("x", 3, "four", "add one"), "b": NumericalError("no"), "c": DriftwiseError("never")}[asked]

    for asked, kind, sentence in (("a", BadInput, "x: wanted four, got 3; add one"), ("b", NumericalError, "no"),
                                  ("c", DriftwiseError, "never")):  # fmt: skip
        with pytest.raises(kind, match=re.escape(sentence)):
            work.opened(slip(work.chunk(asked)))


def test_trials_of_one_world_are_played_together_and_come_out_as_alone(monkeypatch):
    """Several trials are played eight at a time: `driftwise run` does so too, with the same bits."""
    spec = parse(TEXT, "spec.toml")
    seats = {"here": chunks.Seat(0, 0, 0, "LB-WeightUCB")}
    asked = []
    monkeypatch.setattr(chunks, "simulate", lambda *a, **k: asked.append(k["trials"]) or dw.simulate(*a, **k))
    jobs = [chunks.Job(3, trial, seats) for trial in range(9)] + [chunks.Job(4, 0, seats)]
    together = chunks.played(*work.opened(chunks.play_chunk(chunks.trial_chunk(chunks.spec_texts([spec]), jobs))))
    assert asked == [list(range(9)), [0]]
    for job, one in zip(jobs, together, strict=True):
        data = chunks.trial_chunk(chunks.spec_texts([spec]), [job])
        (alone,) = chunks.played(*work.opened(chunks.play_chunk(data)))
        assert (one.name, one.trial) == (alone.name, alone.trial) and (one.regret == alone.regret).all()



@pytest.mark.parametrize("other", ["sources", "numba"])
def test_a_worker_with_other_sources_is_refused_by_name(other):
    asked = json.loads(work.chunk(0))
    asked["needs"][other] = "another"
    with refused("worker", f"{other} another", work.me(), "install the same"):
        work.opened(chunks.play_chunk(json.dumps(asked).encode()))


def test_a_spec_that_is_not_its_text_is_refused():
    spec = parse(TEXT, "spread.toml")
    other = parse(TEXT.replace("2000", "3000"), "spread.toml")
    with refused("spec", "its text"):
        chunks.spec_texts([dataclasses.replace(spec, contests=other.contests)])


def test_stretches_are_about_as_long_as_asked_and_short_at_the_end():
    known = [False]
    queue = work.WorkQueue(range(100), 10.0, lambda thing: 1.0 if known[0] else float("inf"))
    assert queue.stretch(2) == [0]
    known[0] = True
    sizes = []
    while stretch := queue.stretch(2):
        sizes.append(len(stretch))
    assert sum(sizes) == 99 and sizes[0] == max(sizes) == 10 and sizes[-1] == 1
    assert all(a >= b for a, b in itertools.pairwise(sizes))


def test_what_is_finished_is_taken_in_before_an_error_is_raised():
    done = []

    def cut(room):
        return work.chunk(cut.left.pop()) if cut.left else None

    cut.left = [0.3, -1, 0.2]
    with ThreadPoolExecutor(3) as pool, refused("it", "more"):
        work.run(_sleep, cut, lambda facts, arrays: done.append(facts), pool, "naps")
    assert sorted(done) == [0.2, 0.3]


def test_what_a_closed_client_was_sent_too_late_is_not_waited_for():
    """Dask never finishes work that it gets between losing its scheduler and noticing the loss."""

    class Late(ThreadPoolExecutor):
        _client = types.SimpleNamespace(status="running", nthreads=lambda: {"one": 1})

        def submit(self, function, data):
            if json.loads(data)["work"]:
                return super().submit(function, data)
            self._client.status = "closed"
            return Future()

    def cut(room):
        return work.chunk(left.pop()) if left else None

    done, left = [], [0, 0.1]
    with Late(1) as pool, pytest.raises(CancelledError):
        work.run(_sleep, cut, lambda *found: done.append(found), pool, "naps")
    assert done == [(0.1, {})]


@work.answering
def _sleep(seconds):
    if seconds < 0:
        raise BadInput("it", seconds, "more", "pass it")
    time.sleep(seconds)
    return seconds, {}


@pytest.mark.parametrize(("words", "sentence"), [
    (["--on", "nowhere"], "on: wanted local:N, or the address"),
    (["--on", "local:0"], "at least one process"),
    (["--on", "tcp://10.1.2.3:8786"], "it runs any code it is sent"),
    (["--on", "example.org:8786"], "it runs any code it is sent"),
    (["--on", "tls://example.org:8786"], "tls: wanted --tls FOLDER"),
    (["--on", "tls://example.org:8786", "--tls", "."], "add ca.pem"),
    (["--on", "tcp://127.0.0.1:8786", "--tls", "."], "beside no other"),
    (["--tls", "."], "nothing without --on"),
    (["--on", "local:2", "--jobs", "2"], "jobs: wanted none beside an executor"),
])  # fmt: skip
def test_addresses_are_of_this_machine_or_over_tls(tmp_path, monkeypatch, capsys, words, sentence):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cluster, "_client", lambda *_: contextlib.nullcontext(_NoClient()))
    (tmp_path / "spread.toml").write_text(TEXT)
    with pytest.raises(SystemExit, match="2"):
        main(["run", "spread.toml", *words])
    said = capsys.readouterr().err
    assert sentence in said and said.count("\n") == 1


class _NoClient:
    def get_executor(self, pure):
        return ThreadPoolExecutor(1)


# Dask from here on.


@pytest.fixture
def drive(tmp_path, scheduler):
    """Runs of a spec on the scheduler; all of them end with the test."""
    begun = []

    def start(spec, out):
        words = command(spec, out, "--on", scheduler.address)
        begun.append(subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True))
        return begun[-1]

    yield start
    for one in begun:
        with one:
            one.kill()


@pytest.fixture
def scheduler(tmp_path):
    pytest.importorskip("distributed")
    made = Scheduler(tmp_path)
    yield made
    made.close()


def wait_for(what, process, seconds=120.0):
    end = time.monotonic() + seconds
    while not what():
        assert process.poll() is None and time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.slow
def test_workers_drivers_and_the_scheduler_are_lost_and_the_bytes_are_the_same(tmp_path, scheduler, drive):
    """One of each is lost: a worker's chunk is run again; after a driver or a scheduler the same command continues."""
    text = TEXT.replace("trials = 6", "trials = 200").replace("trials = 4\n", "").replace("2000", "20000")
    spec, out = tmp_path / "spread.toml", tmp_path / "out"
    spec.write_text(text)
    driver = drive(spec, out)
    wait_for(lambda: played(out) > 0, driver)
    scheduler.workers[0].kill()
    before = played(out)
    wait_for(lambda: played(out) > before, driver)
    driver.kill()
    driver.communicate()
    before = played(out)
    driver = drive(spec, out)
    wait_for(lambda: played(out) > before, driver)
    scheduler.process.kill()
    said = driver.communicate(timeout=60)[1]
    assert driver.returncode == 2 and said.count("\n") == 1
    assert re.match(r"driftwise: on: the scheduler at tcp://127\S+ does not answer .*the same command continues", said)
    assert before < played(out) < 400
    found = [trials.play([parse(text, "spread.toml")], folder) for folder in (out, writable(tmp_path / "threads"))]
    assert write(found[0], out) == write(found[1], tmp_path / "threads") | {".lock": b""}


@pytest.mark.slow
@pytest.mark.parametrize("lost", ["workers", "drivers"])
def test_two_are_killed_at_random_moments_and_the_bytes_are_the_same(tmp_path, scheduler, drive, lost):
    text = TEXT.replace("trials = 6", "trials = 400").replace("trials = 4\n", "").replace("2000", "20000")
    spec, out, rng = tmp_path / "spread.toml", tmp_path / "out", random.Random(2)
    spec.write_text(text)
    driver = drive(spec, out)
    for _ in range(2):
        before = played(out)
        wait_for(lambda before=before: played(out) > before, driver)
        time.sleep(rng.uniform(0.0, 0.5))
        assert driver.poll() is None  # otherwise no worker was killed during the run
        if lost == "workers":
            gone = scheduler.workers.pop(0)
            scheduler.workers.append(scheduler.worker())
        else:
            gone, driver = driver, None
        gone.kill()
        gone.wait()
        driver = driver or drive(spec, out)
    assert driver.communicate()[0] is None and driver.returncode == 0
    subprocess.run(command(spec, tmp_path / "threads"), check=True, stdout=subprocess.DEVNULL)
    assert contents(out) == contents(tmp_path / "threads")


def test_processes_of_this_machine_reduce_a_log(tmp_path):
    pytest.importorskip("distributed")
    pytest.importorskip("pyarrow.parquet")
    from data.test_sums import parts_of

    parts_of(tmp_path)
    asked = ["sums", str(tmp_path), "--policy", "LB-WeightUCB", "--half-life", "50", "--out"]
    with pytest.raises(SystemExit) as ended:
        main([*asked, str(tmp_path / "alone")])
    assert ended.value.code == 0
    line = [sys.executable, "-m", "driftwise.cli", *asked, str(tmp_path / "spread"), "--on", "local:2"]
    found = subprocess.run(line, capture_output=True, text=True)
    assert found.returncode == 0, found.stderr
    files = {folder: contents(tmp_path / folder) for folder in ("alone", "spread")}
    assert len(files["alone"]) == 5 and files["alone"] == files["spread"]


@pytest.mark.slow
def test_processes_of_this_machine_are_heard_on_this_machine_alone(tmp_path):
    pytest.importorskip("distributed")
    program = """
import os, psutil
from driftwise import cluster
if __name__ == "__main__":
    with cluster.on("local:1") as executor:
        processes = [os.getpid(), *executor._client.run(os.getpid).values()]
        found = [one for number in processes for one in psutil.Process(number).net_connections()]
        print({one.laddr.ip for one in found if one.status == "LISTEN"})
"""
    (tmp_path / "heard.py").write_text(program)
    line = [sys.executable, "-W", "error::UserWarning", str(tmp_path / "heard.py")]
    found = subprocess.run(line, capture_output=True, text=True)
    assert found.stdout.strip() == "{'127.0.0.1'}", found.stderr


def certificates(folder):
    """A new authority and a certificate of this machine, valid for a day."""
    folder.mkdir()
    run = {"cwd": folder, "check": True, "capture_output": True}
    openssl, days = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-subj"], ["-days", "1"]
    subprocess.run([*openssl, "/CN=ours", "-keyout", "ca.key", "-out", "ca.pem", *days], **run)
    names = ["-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost"]
    signed = ["-CA", "ca.pem", "-CAkey", "ca.key"]
    subprocess.run([*openssl, "/CN=here", "-keyout", "key.pem", "-out", "cert.pem", *days, *names, *signed], **run)
    return folder


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("openssl"), reason="no openssl here")
def test_over_tls_whoever_shows_no_certificate_is_not_heard(tmp_path):
    pytest.importorskip("distributed")
    spec, ours = tmp_path / "spread.toml", certificates(tmp_path / "ours")
    spec.write_text(TEXT)
    names = {"--tls-ca-file": "ca.pem", "--tls-cert": "cert.pem", "--tls-key": "key.pem"}
    extra = [word for option, name in names.items() for word in (option, str(ours / name))]
    made = Scheduler(tmp_path, 1, [*extra, "--protocol", "tls"])
    try:
        assert made.address.startswith("tls://")
        subprocess.run(command(spec, tmp_path / "out", "--on", made.address, "--tls", str(ours)), check=True)
        theirs = certificates(tmp_path / "theirs")
        words = command(spec, tmp_path / "no", "--on", made.address, "--tls", str(theirs))
        refusal = subprocess.run(words, capture_output=True, text=True)
        assert refusal.returncode == 2 and "does not answer" in refusal.stderr
    finally:
        made.close()
