"""bench/hour.py at a small size: through a restart, a deploy and a kill; an agent then learns its log."""

import importlib.util
from pathlib import Path

from service.nursery import Nursery

PATH = Path(__file__).resolve().parents[2] / "bench" / "hour.py"


def test_a_product_lives_through_a_restart_a_deploy_and_a_kill_and_its_log_says_all_of_it():
    spec = importlib.util.spec_from_file_location("hour", PATH)
    hour = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(hour)
    nursery = Nursery()

    def start(db, port):
        process = nursery.start(db, port)
        process.stderr.close()
        return process

    found = hour.hour(400, 4.0, start=start, threads=4)
    assert found.same == 400 and found.refolds and found.differs == []
    assert sorted(found.seen.seqs) == list(range(1, 401))  # each visit is decided once, however often it was sent
    clicks = sum(found.seen.verdicts.values())  # whether they come in time depends on the machine
    assert found.counts["decided"] == 400 and found.counts["defaulted"] > 50 and clicks > 30
