"""An hour of a product at a small size: through a restart, a deploy and a kill; an agent then learns its log."""

from service import hour
from service.nursery import Nursery


def test_a_product_lives_through_a_restart_a_deploy_and_a_kill_and_its_log_says_all_of_it():
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
