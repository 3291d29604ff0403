"""The options of a decision in pairs and all together, by every kind of stream, alone and in batches, on both stores.

After each: the same request again has the same answer, also after a restart; an agent decides the same; `explain` and
`verify` recompute it; it survives export and import; and it is forgotten by its unit.
"""

import itertools
from contextlib import closing

import numpy as np
import pytest

import driftwise as dw
from driftwise.service.core.verify import verify
from driftwise.service.operate.export import export
from driftwise.service.operate.importing import import_log
from driftwise.service.stores.opening import open_store
from driftwise.tables.check import check_log
from service.living import ARMS, living

OFUL, AUTO = {"name": "OFUL", "dim": 2, "horizon": 1000}, {"name": "Auto", "dim": 2}
SAMPLES = {"name": "D-RandLinUCB", "dim": 2, "horizon": 500, "path_length": 1.0}
STREAMS = {
    "bonus": {"policy": OFUL, "half_life": 50},
    "exploration": {"policy": OFUL, "half_life": 50, "epsilon": 0.3, "seed": 4},
    "looks": {"policy": AUTO},
    "looks at clicks": {"policy": {**AUTO, "link": "logistic"}, "epsilon": 0.1},
    "draws": {"policy": SAMPLES, "epsilon": 0.1},
    "holdback": {"policy": AUTO, "mode": "holdback", "holdback": 0.5, "baseline": "uniform"},
    "shadow": {"policy": AUTO, "mode": "shadow"},
    "fallback": {"policy": AUTO},
}
OPTIONS = {
    "cost": {"cost": [0.1, 0.45, 0.0]}, "allowed": {"allowed": [True, False, True]}, "indices": {"allowed": [2, 1]},
    "unit": {"unit": "u1"}, "items": {"items": ["a", "b", "c"]}, "trace": {},
}  # fmt: skip
TRACE = "00-{:032x}-00f067aa0ba902b7-01"


def requests(kind):
    """Bodies of decisions, each with the options that it has."""
    known = [name for name in OPTIONS if kind != "draws" or name != "cost"]  # which a rule that samples refuses
    tried = [names for count in range(3) for names in itertools.combinations(known, count)]
    tried = [names for names in tried if names != ("allowed", "indices")]
    tried += [[name for name in known if name != one] for one in ("allowed", "indices")]
    for number, names in enumerate(tried, 1):
        body = {"id": f"d{number}", "arms": ARMS} | ({"unit": f"n{number}"} if kind == "holdback" else {})
        for name in names:
            body |= OPTIONS[name]
        yield names, body | ({"action": 2, "propensity": 0.25} if kind == "shadow" else {})


def ask(asked, names, body, batch):
    headers = {"traceparent": TRACE.format(int(body["id"][1:]))} if "trace" in names else None
    answer = asked.ask("POST", f"home/decide{'/batch' * batch}", json=[body] if batch else body, headers=headers)
    assert answer.status_code == 200, (names, answer.text)
    return answer.json()[0] if batch else answer.json()


@pytest.fixture(params=["sqlite", pytest.param("postgres", marks=pytest.mark.slow)])
def dbs(request, tmp_path):
    """A database and another one for a copy."""
    if request.param == "sqlite":
        return tmp_path / "a.db", tmp_path / "b.db"
    server = request.getfixturevalue("server")
    return server.database(), server.database()


@pytest.mark.parametrize("kind", [
    "looks", "draws", "holdback", "shadow",
    *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("bonus", "exploration", "looks at clicks", "fallback")),
])  # fmt: skip
def test_options_of_a_decision_keep_every_promise_together(dbs, tmp_path, kind):
    db, copy = dbs
    body = {"rewards": [0, 1], **STREAMS[kind]}
    agent = None
    if kind not in ("holdback", "shadow", "fallback"):
        more = {name: body[name] for name in ("epsilon", "seed", "half_life") if name in body}
        agent = dw.Agent(dw.make(**body["policy"]), rewards=(0, 1), clock="rewards", **more)
    kept = {}
    with living(db) as asked:
        assert asked.ask("PUT", "home", json=body).status_code == 201
        if kind == "fallback":
            asked.ask("POST", "home/pause", json={"fallback": 2})
        for number, (names, one) in enumerate(requests(kind)):
            told = ask(asked, names, one, number % 3 == 0)
            if agent is not None:
                own = agent.decide(ARMS, **{name: one[name] for name in ("id", "cost", "allowed") if name in one})
                for name in ("arm", "score", "mean", "bonus", "propensity", "explored"):
                    assert told[name] == getattr(own, name), (names, name)
            allowed = one.get("allowed", [0, 1, 2])
            assert allowed[told["arm"]] if allowed[0] is True else told["arm"] in allowed
            assert told["item"] == (one["items"][told["arm"]] if "items" in one else None)
            kept[one["id"]] = names, one, told
            if number % 4:
                assert asked.reward(one["id"], number % 2).status_code == 200
                if agent is not None:
                    agent.reward(one["id"], number % 2)
            assert ask(asked, names, one, number % 2) == told
        state = asked.stream()
    with living(db) as asked:
        assert asked.stream()["digest"] == state["digest"]
        for names, one, told in kept.values():
            assert ask(asked, names, one, False) == told, names
            seen = asked.ask("GET", f"home/explain/{one['id']}").json()
            assert seen["recomputed"] and ("cost" in seen["arms"][0]) == ("cost" in names), (names, seen)
            assert (seen.get("trace") is not None) == ("trace" in names)
    out = tmp_path / "log"
    export(db, out, "home")
    (batch,) = check_log(out).batches(["decision_id", "n", "arm", "costs", "unit_hash"])
    for row, id in enumerate(batch.decision_id):
        names, one, told = kept[id]
        places = np.flatnonzero(one["allowed"]) if "allowed" in names else sorted(one.get("allowed", [0, 1, 2]))
        assert places[batch.arm[row]] == told["arm"] and batch.n[row] == len(places)
        costs = None if batch.costs is None or batch.costs[row] is None else batch.costs[row].tolist()
        assert costs == (np.array(one["cost"])[places].tolist() if "cost" in names else None)
    with living(copy) as asked:
        assert asked.ask("PUT", "home", json=body).status_code == 201
    assert import_log(copy, "home", out).digest == state["digest"]
    with living(copy) as asked:
        for names, one, told in kept.values():
            if not {"allowed", "indices"} & set(names):  # a log has only the allowed arms
                assert ask(asked, names, one, False)["arm"] == told["arm"], names
            assert asked.ask("GET", f"home/explain/{one['id']}").json()["recomputed"]
    with living(db) as asked:
        gone = {id for id, (names, _, _) in kept.items() if "unit" in names}
        assert asked.ask("POST", "home/forget", json={"unit": "u1"}).json() == {"forgotten": len(gone)}
        assert asked.stream()["digest"] == state["digest"]
        for id, (names, one, told) in kept.items():
            if id in gone:
                assert asked.ask("POST", "home/decide", json=one).json()["code"] == "forgotten_decision"
            else:
                assert ask(asked, names, one, False) == told
    for one in (*verify(db), *verify(copy)):
        assert not one.differs and one.decisions == len(kept)
    if kind == "holdback":
        assert {told["cohort"] for _, _, told in kept.values()} == {"live", "baseline"}
    with closing(open_store(db, writes=False)) as store:
        assert not [one for one in store.decisions(1) if one.id in gone and store.detail(1, one.seq) is not None]
