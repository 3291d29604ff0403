"""Files of the version that is released, for later versions to read: python tests/golden/keep.py, before a release.

A folder of a released version is never written again, because users have the same files. (tests/service stores the
database beside it.)
"""

from __future__ import annotations

import hashlib
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

import driftwise as dw

sys.path.append(str(Path(__file__).resolve().parent.parent))
from golden import guard

HERE = Path(__file__).resolve().parent
ITEMS = {"cup": {"topic": "sport", "minutes": 3.0}, "vote": {"topic": "politics", "minutes": 7.0}}
CONTEXTS = [{"device": "phone"}, {"device": "desk"}]


def agents() -> dict[str, dw.Agent]:
    """New agents: clicks with features by the default policy, values by a linear policy that fades."""
    features = dw.Features.fit(CONTEXTS, ITEMS, cross=[("device", "topic")])
    fades = dw.LinearUCB(dim=3, memory=dw.Fade(0.01), lam=1.0, delta=0.1)
    return {
        "clicks": dw.Agent.for_clicks(
            features.dim, features=features, epsilon=0.1, seed=3, expire_after=20, default_reward=0.0
        ),
        "values": dw.Agent(fades, rewards=(-3.0, 3.0), epsilon=0.1, seed=4),
    }


def live(name: str, agent: dw.Agent, first: int, last: int) -> list[int]:
    """The arms of decisions numbered first to last - 1; every fifth is never rewarded, every third rewarded late."""
    played: list[int] = []
    arms, late = np.array([[1.0, 0.0, 0.0], [0.0, 0.8, 0.1], [0.3, 0.3, -0.6]]), []
    for number in range(first, last):
        if name == "clicks":
            one = agent.decide(context=CONTEXTS[number % 2], items=ITEMS, id=f"visit {number}", now=1.8e9 + number)
        else:
            one = agent.decide(arms, id=f"visit {number}", now=1.8e9 + number)
        played.append(one.arm)
        if number % 5 == 4:
            continue
        value = float((number * 7 + one.arm) % 3 == 0) if name == "clicks" else float(np.sin(number) + one.arm) / 2
        late.append((one.id, value))
        if number % 3 != 2:
            for id, reward in late:
                agent.reward(id, reward, now=1.8e9 + number)
            late.clear()
    return played


def digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def after(agent: dw.Agent, name: str) -> dict[str, Any]:
    """How an agent continues: its next thirty arms, and the digest of its state after them."""
    return {"arms": live(name, agent, 1000, 1030), "after": digest(agent.state.to_bytes())}


def main() -> None:
    folder = HERE / dw.__version__
    if folder.exists():
        sys.exit(f"{folder.name} is kept already: a released version's files are never written again")
    folder.mkdir()
    kept: dict[str, Any] = {}
    for name, agent in agents().items():
        for format in ("parquet", "jsonl"):
            other = agents()[name]
            with other.log_to(folder / f"{name}-{format}", arms=True, format=format):
                live(name, other, 0, 60)
        live(name, agent, 0, 60)
        (folder / f"{name}.agent").write_bytes(agent.to_bytes())
        (folder / f"{name}.state").write_bytes(agent.state.to_bytes())
        kept[name] = {"state": digest(agent.state.to_bytes()), **after(agent, name)}
    policy = agents()["values"].policy
    total = dw.sums(dw.read_log(folder / "values-parquet"), policy)
    (folder / "values.sums").write_bytes(total.to_bytes())
    kept["values"]["sums"] = digest(total.state(policy).to_bytes())
    (folder / "kept.json").write_text(json.dumps({"platform": guard.here(), "agents": kept}) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
