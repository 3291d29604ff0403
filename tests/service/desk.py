"""A stream without a server: the test decides when groups are written."""

import msgspec
import numpy as np

from driftwise.service.core.fold import Fold, resume
from driftwise.service.core.origin import begun
from driftwise.service.core.recompute import eras_of
from driftwise.service.core.setup import setup
from driftwise.service.core.stream import Stream
from driftwise.service.stores.records import EraRow, StreamRow
from driftwise.service.stores.sqlite import SQLiteStore
from driftwise.service.wire.protocol import DecideBody, RewardBody, StreamBody

LINEAR = {"policy": {"name": "OFUL", "dim": 3, "horizon": 1000}, "rewards": [0, 1], "half_life": 40}
POLICIES = {
    "fade": LINEAR,
    "window": {"policy": {"name": "SW-UCB", "dim": 3, "horizon": 500, "path_length": 20.0}, "rewards": [0, 1]},
    "Auto": {"policy": {"name": "Auto", "dim": 3}, "rewards": [0, 1], "epsilon": 0.2},
    "clicks": {"policy": {"name": "Auto", "dim": 3, "link": "logistic"}, "rewards": [0, 1]},
    "solver": {"policy": {"name": "GLB-SW", "dim": 3, "horizon": 500, "path_length": 20.0}, "rewards": [0, 1]},
    "sampling": {"policy": {"name": "D-RandLinUCB", "dim": 3, "horizon": 500, "path_length": 1.0}, "rewards": [0, 1],
                 "epsilon": 0.1},
    "wall": {"policy": {"name": "OFUL", "dim": 3, "horizon": 1000}, "rewards": [0, 1], "clock": "wall",
             "half_life": "100s", "tick": 1.0},
    "wall Auto": {"policy": {"name": "Auto", "dim": 3}, "rewards": [0, 1], "clock": "wall", "tick": 1.0},
    "wall restart": {"policy": {"name": "OFUL", "dim": 3, "horizon": 1000, "memory": {"type": "Restart", "period": 12}},
                     "rewards": [0, 1], "clock": "wall", "tick": 1.0},
}  # fmt: skip


def body_of(data):
    return msgspec.convert(data, StreamBody)


def arms_of(rng, n=4, dim=3):
    arms = rng.normal(size=(n, dim))
    return (arms / np.maximum(1.0, np.linalg.norm(arms, axis=1))[:, None]).tolist()


class Desk:
    """A database with one stream; opening it again resumes.

    If it is not signed, its era is that of a version that recorded no machine.
    """

    def __init__(self, path, data=LINEAR, signed=True):
        self.store = SQLiteStore(path)
        self.store._database.execute("PRAGMA synchronous=OFF")  # no power cut is tested here
        rows = self.store.streams()
        if not rows:
            made = setup(body_of(data))
            self.store.begin()
            number = self.store.add_stream("home", 0.0)
            era = EraRow(number, 1, 0, 0, 0, made.origin(0), made.text, made.policy.digest)
            era = begun(era, None) if signed else era
            self.store.add_era(era)
            self.store.commit()
            self.stream = Stream(StreamRow(number, "home", 0.0, False), made, Fold(era, made), self.store)
        else:
            era, made = eras_of(self.store, rows[0].id)[-1]
            self.stream = Stream(rows[0], made, resume(self.store, era, made), self.store)

    def decide(self, arms, at=1000.0, **more):
        asked = DecideBody(arms=arms, **more)
        return self.stream.decide(asked, self.stream.offers.offer(asked), at)

    def reward(self, id, value, at=1000.0):
        return self.stream.reward(RewardBody(id=id, value=value), at)

    def commit(self):
        self.store.begin()
        self.stream.write()
        self.store.commit()
        self.stream.publish()

    def fail(self):
        self.store.begin()
        self.stream.write()
        self.store.rollback()
        self.stream.undo()

    def refolded(self):
        """The digest of all rewards folded from the first."""
        era, made = eras_of(self.store, 1)[-1]
        return resume(self.store, era, made, snapshots=False).digest()

    def close(self):
        self.store.close()
