"""The fault rows of docs/contract.md#faults except F8, for reliability.py.

Long rows are done in parts, each kept in build/reliability/ when it is over: a row that was stopped goes on where it
stood. Parts that another source of the service gave do not count.
"""

from __future__ import annotations

import hashlib
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests"))

from service import broken, powercut  # noqa: E402
from service.loading import Clients, Server, wrong  # noqa: E402
from service.nursery import Nursery  # noqa: E402

Told = tuple[str, bool] | tuple[str, bool, float]
KILLS, BATCH = 500, 25  # of F1: the number of servers that are killed one after the other on one database
IMAGES, RECORDS = 1000, 10  # of F4
_limits: dict[str, Any] = {"until": None, "fresh": False}
_nursery = Nursery()
POINTS = [point for point in broken.POINTS if point != "in-upgrade"]  # which is F13's


def budget(minutes: float | None, fresh: bool) -> None:
    """The time after which no part is started, and whether earlier parts count."""
    _limits.update(until=None if minutes is None else time.monotonic() + 60.0 * minutes, fresh=fresh)


def _source() -> str:
    """The hash of the sources of the service and of its rules for rewards."""
    inside = ROOT / "src" / "driftwise"
    files = [*sorted((inside / "service").rglob("*.py")), inside / "ledger.py"]
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def parts(row: str, plan: list[str], work: Callable[[str], Any]) -> dict[str, Any]:
    """The results of each part of a row; missing parts are run while there is time."""
    path = ROOT / "build" / "reliability" / f"{row}.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = json.loads(path.read_text()) if path.exists() and not _limits["fresh"] else {}
    source = _source()  # as it is now: servers are forked from a process that imported it
    found = kept["parts"] if kept.get("source") == source else {}
    for name in plan:
        if name not in found:
            if _limits["until"] is not None and time.monotonic() > _limits["until"]:
                break
            found[name] = work(name)
            path.write_text(json.dumps({"source": source, "parts": found}, indent=1))
            print(f"{row} {name}: {found[name]}", file=sys.stderr, flush=True)
    return {name: found[name] for name in plan if name in found}


# ------------------------------------------------------------------------------------------ kill -9


def killed(folder: Path, kills: int, *what: str, seed: int = 0) -> tuple[list[str], Clients]:
    """Servers on one file, each killed at a random moment. Returns the errors at the end."""
    rng, clients, db = random.Random(seed), Clients(seed), folder / "a.db"
    try:
        for _ in range(kills):
            server = Server(db, *what, nursery=_nursery)
            server.put()
            timer = threading.Timer(rng.uniform(0.02, 0.6), server.process.kill)
            timer.start()
            clients.run(server.port)
            timer.join()
            server.end()
        server = Server(db, *what, nursery=_nursery)
    except AssertionError as refused:  # the file itself shows it
        return [str(refused)], clients
    clients.run(server.port, 0.2)  # clients without an answer send the request again
    found = wrong(db, clients, server.stream()["digest"])
    server.kill()
    return found, clients


def f1(share: float) -> Told:
    batches = max(1, round(KILLS * share / BATCH))
    ways: dict[str, tuple[str, ...]] = {"as it is": (), "slowed by 20 ms": ("slow",)}

    def work(name: str) -> Any:
        way, _, number = name.rpartition(" ")
        with tempfile.TemporaryDirectory() as folder:
            found, clients = killed(Path(folder), BATCH, "often", *ways[way], seed=int(number))
        return {"decided": len(clients.decided), "rewarded": len(clients.rewarded), "wrong": found}

    done = parts("F1", [f"{way} {number}" for number in range(batches) for way in ways], work)
    told = []
    for way in ways:
        mine = [one for name, one in done.items() if name.startswith(way)]
        events = sum(one["decided"] + one["rewarded"] for one in mine)
        told.append(f"{way}: {BATCH * len(mine)} kills, {events} acknowledged, {_wrongs(mine)} wrong")
    return "; ".join(told), bool(done) and not _wrongs(done.values()), len(done) * BATCH / (2 * KILLS)


def _wrongs(found: Any) -> int:
    return sum(len(one["wrong"]) for one in found)


def f2(share: float) -> Told:
    times = max(1, round(20 * share))
    done = parts("F2", [f"{point} {number}" for number in range(times) for point in POINTS], _at_point)
    counts = {point: sum(name.startswith(point) for name in done) for point in POINTS}
    told = ", ".join(f"{point} × {count}" for point, count in counts.items())
    passed = bool(done) and all(one["died"] and not one["wrong"] for one in done.values())
    return f"{told}; {_wrongs(done.values())} wrong", passed, len(done) / (20 * len(POINTS))


def _at_point(name: str) -> Any:
    point, _, number = name.rpartition(" ")
    with tempfile.TemporaryDirectory() as folder:
        clients, db = Clients(name), Path(folder) / "a.db"
        migrating = point == "in-migration"
        server = Server(db, "often", f"kill:{point}:{5 + 7 * int(number)}", wait=not migrating, nursery=_nursery)
        if not migrating:
            server.put()
            clients.run(server.port, 20.0)
        server.end()
        died = server.process.returncode == -9
        server = Server(db, "often", nursery=_nursery)
        server.put()
        clients.run(server.port, 0.2)
        found = wrong(db, clients, server.stream()["digest"])
        server.kill()
    return {"died": died, "decided": len(clients.decided), "wrong": found}


def f3(share: float) -> Told:
    """Each control until its defect is found, two kills at a time, because the moment of a kill is random."""
    told, passed = [], True
    for what in (("early", "slow"), ("twice",), ("forgetful",)):
        tries, found = 0, []
        while not found and tries < 10:
            with tempfile.TemporaryDirectory() as folder:
                found, _ = killed(Path(folder), 2, *what, seed=tries)
            tries += 1
        told.append(f"{what[0]}: {len(found)} wrong after {2 * tries} kills")
        passed = passed and bool(found)
    if powercut.compiler() is None:
        return "; ".join([*told, "unsynced: no compiler here"]), False
    row = powercut.power_cuts("unsynced", images=round(100 * share), lives=1)
    told.append(f"unsynced: wrong after {len(row.wrong)} of {row.images} power cuts, "
                f"{row.answers.unsynced} of {row.answers.count} answers before a sync")  # fmt: skip
    return "; ".join(told), passed and bool(row.wrong) and bool(row.answers.unsynced)


# ------------------------------------------------------------------------------------------ power


def f4(share: float) -> Told:
    if powercut.compiler() is None:
        return "no C compiler here, so that nothing could be recorded", False, 0.0
    images = round(IMAGES * share / RECORDS)

    def work(name: str) -> Any:
        row = powercut.power_cuts(seed=int(name), images=images)
        count, repeats, unsynced = row.answers
        return {"wrong": row.wrong, "images": images, "waited": row.waited, "answers": count, "repeats": repeats,
                "unsynced": unsynced}  # fmt: skip

    done = list(parts("F4", [str(number) for number in range(RECORDS)], work).values())
    total = {name: sum(one[name] for one in done) for name in ("images", "waited", "answers", "repeats", "unsynced")}
    told = (
        f"{total['images']} disks after a cut, {total['waited']} unsynced writes in them: {_wrongs(done)} wrong; "
        f"{total['answers']} answers sent, {total['unsynced']} before their row was synced "
        f"({total['repeats']} are of rows that had been answered before)"
    )
    return told, bool(done) and not _wrongs(done) and not total["unsynced"], total["images"] / IMAGES


# ------------------------------------------------------------------------------------------ rows run by tests


def tests(what: str, *names: str) -> Callable[[float], Told]:
    """Rows that run the tests and no more; `what` says which part of the row that is."""

    def run(share: float) -> Told:
        paths = [str(ROOT / "tests" / "service" / name) for name in names]
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-rs", *paths]
        ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
        skipped = [line.rpartition(": ")[2] for line in ended.stdout.splitlines() if line.startswith("SKIPPED")]
        return "; but ".join([what, *skipped]), ended.returncode == 0 and not skipped

    return run


ROWS: dict[str, tuple[str, str, Callable[[float], Told]]] = {
    "F1": ("kill -9 at random moments, 16 clients", "nothing acknowledged lost, all comes out", f1),
    "F2": ("kill -9 at named points", "same", f2),
    "F3": ("negative controls", "the suite fails", f3),
    "F4": ("power cut", "all acknowledged present, the database opens; a sync before every answer", f4),
    "F5": ("torn and flipped bytes", "all acknowledged, or a sentence",
            tests("a flipped bit in 100 databases and 100 logs, 20 cuts, 20 holes; not in the very last frame",
                  "test_damage.py")),
    "F6": ("disk full", "507, health says why, goes on",
            tests("by max_page_count; on a tmpfs of 1 MB that then grows",
                  "test_damage.py::test_a_full_disk_refuses_writes_says_why_and_goes_on_when_there_is_room",
                  "test_full.py")),
    "F7": ("fsync fails", "the process exits",
            tests("a commit that raises as SQLite's would; no failing disk",
                  "test_faults.py::test_when_a_sync_fails_the_process_ends_and_says_yes_to_nobody")),
    "F10": ("clock ± 1 h", "order, digests, decisions unchanged",
            tests("+1 h, -2 h, +1 h, once", "test_wire.py::test_a_clock_that_jumps_moves_nothing_but_later_births")),
    "F11": ("SIGTERM under load", "drains within 5 s, exit 0",
            tests("once, 16 clients, slowed commits",
                  "test_faults.py::test_told_to_stop_it_answers_who_asked_and_ends_well")),
    "F12": ("client disconnects at a random byte", "at most one decision, no leak",
            tests("300 cuts, closed or reset: open files, tasks, futures and connections as before",
                  "test_faults.py::test_callers_that_go_away_are_recorded_at_most_once_and_leave_nothing_behind")),
    "F13": ("upgrade, kill in migration, downgrade", "opens and verifies; refused with a sentence",
            tests("the golden databases of versions 1 to 3; a kill in making tables and in each step of an upgrade",
                  "test_upgrade.py",
                  "test_faults.py::test_killed_while_it_makes_its_tables_the_next_makes_them",
                  "test_store.py::test_a_database_of_the_future_or_of_others_is_refused_with_a_sentence")),
}  # fmt: skip
