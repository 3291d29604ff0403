"""Make the golden database of this version: `PYTHONPATH=src:tests python tests/golden/databases/make.py`.

One file a version of the tables, which stays: every later driftwise must open it and come to the digests beside it.
"""

import json
import tempfile
from pathlib import Path
from unittest.mock import patch

import numpy as np

from driftwise.service.core import origin
from driftwise.service.core.access import Access
from driftwise.service.core.forgetting import forget
from driftwise.service.core.refold import refold
from driftwise.service.core.verify import verify
from driftwise.service.operate.keeping import backup, create_key
from driftwise.service.stores.schema import VERSION
from service.living import living

HERE = Path(__file__).resolve().parent
LINEAR = {"name": "OFUL", "dim": 2, "horizon": 500}
STREAMS = {
    "linear": {"policy": LINEAR, "rewards": [0, 1], "half_life": 40, "epsilon": 0.1},
    "auto": {"policy": {"name": "Auto", "dim": 2}, "rewards": [0, 1], "mode": "holdback"},
    "window": {"policy": {"name": "SW-UCB", "dim": 2, "horizon": 300, "path_length": 20.0}, "rewards": [-1, 1],
               "mode": "shadow"},
    "clicks": {"policy": LINEAR, "rewards": [0, 1], "clock": "wall", "half_life": "1h", "expire_after": "5s",
               "default_reward": 0.0},
}  # fmt: skip


def live(asked, now, rounds, tag, seed):
    """Decisions of all streams, most of them rewarded."""
    rng = np.random.default_rng(seed)
    for number in range(rounds):
        now[0] += 1.0
        arms = [[round(float(one), 3) for one in row] for row in rng.uniform(-0.7, 0.7, (3, 2))]
        for name, body in STREAMS.items():
            more = {"action": int(rng.integers(3))} if body.get("mode") == "shadow" else {"items": ["a", "b", "c"]}
            id = f"{tag}-{number}"
            assert asked.decide(id, arms=arms, stream=name, **more).status_code == 200
            if rng.random() < 0.7:
                assert asked.reward(id, float(rng.integers(2)), stream=name).status_code == 200


def main():
    target = HERE / f"{VERSION}.db"
    if target.exists():
        raise SystemExit(f"{target} is there: a golden file is made once")
    with tempfile.TemporaryDirectory() as folder:
        db, now = Path(folder) / "a.db", [1_700_000_000.0]
        with patch.object(origin, "probe", lambda: "c:another"), living(db, now=lambda: now[0]) as asked:
            for name, body in STREAMS.items():
                assert asked.ask("PUT", name, json=body).status_code == 201
            live(asked, now, 20, "early", 1)
            changed = {**STREAMS["linear"], "epsilon": 0.0}  # another era, which learns the rewards of the one before
            assert asked.ask("PUT", "linear/policy", json=changed).status_code == 200
            live(asked, now, 10, "then", 4)
        assert len(refold(db)) == len(STREAMS)  # as if it came from another machine
        forget(db, 1_700_000_015.0)
        now[0] += 86_400.0
        create_key(db, "decide,reward", "linear", "golden")
        with living(db, now=lambda: now[0]) as asked:
            asked.service.access = Access([])  # open, even if there are keys
            live(asked, now, 20, "late", 2)
            assert asked.ask("POST", "auto/reset").status_code == 200
            for what in ("pause", "resume"):  # two events
                assert asked.ask("POST", f"linear/{what}", json={}).status_code == 200
            live(asked, now, 20, "last", 3)
        found = verify(db)
        assert not [one for row in found for one in (*row.differs, *row.foreign)]
        backup(db, target)
    facts = {one.name: {"digest": one.digest, "decisions": one.decisions, "rewards": one.rewards, "eras": one.eras,
                        "forgotten": one.forgotten} for one in found}  # fmt: skip
    (HERE / f"{VERSION}.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
