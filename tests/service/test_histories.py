"""What happened to a stream, in every order: rewards, another policy, a reset, forgetting, restarts. Whatever it was,
`verify` finds no difference, every decision is explained, the page is there, and an agent that learns the export of a
stream that forgot nothing is the stream, to the last bit."""

import itertools

import numpy as np
import pytest

import driftwise as dw
from driftwise.service.core.fold import digest
from driftwise.service.core.recompute import eras_of
from driftwise.service.core.verify import verify
from driftwise.service.operate.export import export
from driftwise.service.stores.opening import open_store
from service.living import BODY, living

WINDOW = {"policy": {"name": "SW-UCB", "dim": 2, "horizon": 300, "path_length": 20.0}, "rewards": [0, 1]}
WALL = {**BODY, "clock": "wall", "half_life": "100s", "tick": 1.0}
BODIES = (BODY, WINDOW, {**BODY, "epsilon": 0.2})
START = 1_700_000_000.0


class Told:
    """A stream with a history given by letters: r rewards, p another policy, z a reset, h and f forget half and all."""

    def __init__(self, asked, now, word, name, bodies=BODIES):
        self.asked, self.now, self.word, self.name, self.bodies = asked, now, word, name, bodies
        self.rng = np.random.default_rng(len(name))
        self.ids, self.times, self.forgot, self.body = [], [START], False, 0
        assert asked.ask("PUT", name, json=bodies[0]).status_code == 201

    def step(self, place):
        letter = self.word[place]
        self.now[0] += 1.0
        {"r": self.reward, "p": self.change, "z": self.reset, "h": self.half, "f": self.all}[letter]()

    def reward(self):
        for _ in range(4):
            id = f"{self.name}-{len(self.ids)}"
            arms = self.rng.uniform(-0.7, 0.7, (3, 2)).tolist()
            assert self.asked.decide(id, arms=arms, stream=self.name).status_code == 200
            self.ids.append(id)
        for id in self.ids[-1:-4:-1] + self.ids[-8:-7]:  # one stays open until the next batch
            self.now[0] += 1.0
            self.times.append(self.now[0])
            assert self.asked.reward(id, float(self.rng.integers(2)), stream=self.name).status_code == 200

    def change(self):
        after = (self.body + 1) % len(self.bodies)
        status = self.asked.ask("PUT", f"{self.name}/policy", json=self.bodies[after]).status_code
        assert status == 200 or (status == 409 and self.forgot)
        self.body = after if status == 200 else self.body

    def reset(self):
        assert self.asked.ask("POST", f"{self.name}/reset").status_code == 200

    def half(self):
        self._forget(self.times[len(self.times) // 2])

    def all(self):
        self._forget(self.times[-1] + 1.0)

    def _forget(self, before):
        self.forgot = True
        at = np.datetime64(int(before * 1e6), "us")
        found = self.asked.ask("POST", f"{self.name}/forget", json={"before": f"{at}"})
        assert found.status_code == 200


def lived(db, words, restarts, now, bodies=BODIES):
    """Streams with these histories in one service, with their digests."""
    streams = []
    places = range(max(map(len, words)))
    for stretch in ([one] for one in places) if restarts else [list(places)]:
        with living(db, now=lambda: now[0]) as asked:
            if not streams:
                streams = [Told(asked, now, word, f"{place}-{word}", bodies) for place, word in enumerate(words)]
            for stream in streams:
                stream.asked = asked
                for place in stretch:
                    if place < len(stream.word):
                        stream.step(place)
            told = {stream.name: asked.stream(stream.name) for stream in streams}
    return streams, told


def words(length):
    """Every history of at most so many letters between two batches of rewards."""
    return ["r" + "".join(one) + "r" for n in range(length + 1) for one in itertools.product("rpzhf", repeat=n)]


def check(db, streams, told, folder):
    """Check everything that must hold for these streams."""
    found = {one.name: one for one in verify(db)}
    assert not [one for row in found.values() for one in (*row.differs, *row.foreign)]
    assert {name: one.digest for name, one in found.items()} == {name: one["digest"] for name, one in told.items()}
    store = open_store(db, writes=False)
    for number, row in enumerate(store.streams()):
        stream = next(one for one in streams if one.name == row.name)
        era, made = eras_of(store, row.id)[-1]
        if stream.forgot and era.base:
            continue  # an agent cannot learn what was forgotten
        log = folder / str(number)
        assert export(db, log, row.name).before == era.first
        agent = dw.Agent(made.policy, rewards=(0.0, 1.0), clock=made.body.clock, tick=made.tick)
        agent.learn_log(log)
        assert digest(made.policy, agent.state) == found[row.name].digest
    store.close()


def check_pages(db, streams, now):
    """Pages exist, and every decision is explained: recomputed to the last bit unless it was forgotten."""
    with living(db, now=lambda: now[0]) as asked:
        for stream in streams:
            assert asked.get(f"/streams/{stream.name}").status_code == 200
            for id in stream.ids:
                found = asked.ask("GET", f"{stream.name}/explain/{id}")
                assert found.status_code == 200
                assert found.json()["recomputed"] is True or (stream.forgot and found.json()["recomputed"] is None)


@pytest.mark.parametrize(("length", "restarts"), [
    (1, False),
    *(pytest.param(*case, marks=pytest.mark.slow) for case in ((2, True), (3, False), (3, True))),
])  # fmt: skip
def test_whatever_a_stream_lived_through_comes_out_again(tmp_path, length, restarts):
    now = [START]
    streams, told = lived(tmp_path / "a.db", words(length), restarts, now)
    check(tmp_path / "a.db", streams, told, tmp_path / "logs")
    check_pages(tmp_path / "a.db", streams, now)


def test_whatever_a_stream_on_the_wall_clock_lived_through_comes_out_again(tmp_path):
    now = [START]
    bodies = (WALL, {**WALL, "half_life": "30s"})
    streams, told = lived(tmp_path / "a.db", [*words(1), "rrzprpr", "rzhrf", "rprfrfr"], True, now, bodies)
    check(tmp_path / "a.db", streams, told, tmp_path / "logs")
    check_pages(tmp_path / "a.db", streams, now)


@pytest.mark.parametrize("some", [["rprfrr", "rzrhrfr", "rfrhr"], pytest.param(words(2), marks=pytest.mark.slow)])
def test_whatever_a_stream_of_replicas_lived_through_comes_out_again(database, tmp_path, some):
    now = [START]
    streams, told = lived(database, some, True, now)
    check(database, streams, told, tmp_path / "logs")
    check_pages(database, streams, now)
