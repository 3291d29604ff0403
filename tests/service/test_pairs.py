"""What one operation does to another: a stream through every ordered pair of verbs, on SQLite and on two replicas.

After each pair: every request sent again has its answer, a restart changes nothing, `verify` finds no difference, what
was erased is in no file, and the state survives export and import.
"""

import itertools
from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from driftwise import Features
from driftwise.errors import BadInput
from driftwise.service.core.refold import refold
from driftwise.service.core.verify import verify
from driftwise.service.operate.export import export
from driftwise.service.operate.importing import import_log
from driftwise.service.stores.opening import open_store
from driftwise.service.stores.store import seal_era
from driftwise.tables.check import check_log
from service.living import living, soon

FEATURES = Features(context={"who": Features.hashed(3)}, item={"kind": Features.levels(("news", "sport"))})
KINDS = {"a": {"kind": "news"}, "b": {"kind": "sport"}, "c": {"kind": "other"}}
LIVE = {
    "policy": {"name": "OFUL", "dim": FEATURES.dim, "horizon": 1000}, "rewards": [0, 1], "half_life": 50,
    "features": FEATURES.to_dict(), "epsilon": 0.2,
}  # fmt: skip
RAMP = {"mode": "holdback", "holdback": 0.1, "ramp": [0.5, 0.9], "guardrails": {"ms": {"margin": 5}}}
ELSEWHERE = "another machine"


class World:
    """A stream, how it was asked, and what it answered. On PostgreSQL requests go to two replicas in turn."""

    def __init__(self, db, folder, copy):
        self.db, self.folder, self.copy, self.now = db, folder, copy, [1_700_000_000.0]
        self.name, self.body, self.paused, self.fallback, self.deleted = "s1", dict(LIVE), False, None, False
        self.sent, self.paid, self.erased, self.numbers = {}, {}, set(), itertools.count(1)
        self.stack, self.turns, self.replicas = ExitStack(), itertools.count(), []
        self.start()
        assert self.ask("PUT", "", LIVE, 201).json()["stream"] == "s1"
        self.items()
        for _ in range(2):
            self.decide()
        for id in ("d1", "d2"):
            self.pay(id)

    @property
    def shared(self):
        return not isinstance(self.db, Path)

    def start(self):
        for _ in range(2 if self.shared else 1):
            self.replicas.append(self.stack.enter_context(living(self.db, now=lambda: self.now[0])))

    def stop(self):
        self.replicas.clear()
        self.stack.close()

    def ask(self, method, path, body=None, *statuses, headers=None):
        """An answer, which has one of the statuses; 410 if the stream was deleted."""
        one = self.replicas[next(self.turns) % len(self.replicas)]
        self.now[0] += 1.0
        given = {} if body is None else {"json": body}
        answer = one.ask(method, f"{self.name}{path}", headers=headers, **given)
        assert answer.status_code in ((410,) if self.deleted else statuses or (200,)), (method, path, answer.text)
        self.agree()
        return answer

    def agree(self):
        """Replicas learn of a change within a second; here at once."""
        if len(self.replicas) > 1 and not self.deleted:

            def same():
                for one in self.replicas:
                    one.wait(one.service.watch.look())
                told = [one.stream(self.name) for one in self.replicas]
                return len({(one["state_seq"], one["digest"], one["era"]) for one in told if "era" in one}) <= 1

            assert soon(same, 60.0)

    # ------------------------------------------------------------------------------------ verbs

    def decide(self):
        for unit in ("u1", "u2"):
            id = f"d{next(self.numbers)}"
            body = {"id": id, "context": {"who": f"{id}-{id}-mark"}, "items": ["a", "b", "c"], "unit": unit}
            shadow = self.body.get("mode") == "shadow"
            body |= {"action": 1, "propensity": 0.5} if shadow else {}
            self.now[0] += 1.0
            trace = f"00-{int(id[1:]):032x}-00f067aa0ba902b7-01"
            blocked = self.paused and self.fallback is None
            answer = self.ask("POST", "/decide", body, 409 if blocked else 200, headers={"traceparent": trace})
            if blocked or self.deleted:
                continue
            told = answer.json()
            who = "shadow" if shadow else "fallback" if self.paused else told["cohort"]
            assert told["cohort"] == who and told["arm"] == {"shadow": 1, "fallback": 0}.get(who, told["arm"]), told
            self.sent[id] = body, told

    def pay(self, id):
        body = {"id": id, "value": int(id[1:]) % 2}
        body |= {"metrics": {"ms": 100.0 + int(id[1:])}} if "guardrails" in self.body else {}
        gone = id in self.erased
        answer = self.ask("POST", "/reward", body, 409 if gone else 200)
        if not gone and not self.deleted:
            told = answer.json()
            assert told["verdict"] == ("kept" if self.sent[id][1]["cohort"] == "fallback" else "learned"), (id, told)
            self.paid[id] = body, told

    def reward(self):
        for id in [id for id in self.sent if id not in self.paid][:2]:
            self.pay(id)

    def pause(self):
        self.ask("POST", "/pause")
        self.paused, self.fallback = True, None

    def fallback_(self):
        self.ask("POST", "/pause", {"fallback": "a"})
        self.paused, self.fallback = True, 0

    def resume(self):
        self.ask("POST", "/resume")
        self.paused, self.fallback = False, None

    def _policy(self, **changes):
        body = {**LIVE, "policy": self.body["policy"], **changes}
        forgotten = self.forgotten_lessons()
        self.ask("PUT", "/policy", body, 409 if forgotten else 200)
        if not forgotten:
            self.body = body

    def shadow(self):
        self._policy(mode="shadow")

    def holdback(self):
        self._policy(mode="holdback", holdback=0.5)

    def ramp(self):
        self._policy(**RAMP)

    def policy(self):
        found = {name: one for name, one in self.body.items() if name != "policy"}
        self._policy(**found, policy={**LIVE["policy"], "lam": self.body["policy"].get("lam", 1.0) + 1.0})

    def reset(self):
        self.ask("POST", "/reset")

    def forget_date(self):
        self.ask("POST", "/forget", {"before": "2100-01-01"})
        self.erased |= set(self.paid)

    def forget_unit(self):
        found = self.ask("POST", "/forget", {"unit": "u1"})
        known = {id for id, (body, _) in self.sent.items() if body["unit"] == "u1"} - self.erased
        assert self.deleted or found.json() == {"forgotten": len(known)}, (found.json(), known)
        self.erased |= known

    def items(self):
        self.ask("PUT", "/items", {"items": KINDS})

    def export(self):
        out = self.folder / f"log{next(self.numbers)}"
        if self.deleted:
            with pytest.raises(BadInput):
                export(self.db, out, self.name)
        else:
            export(self.db, out, self.name)
            check_log(out)

    def import_(self):
        """Go on with a copy of the stream."""
        before = None if self.deleted else self.answer()
        self.stop()
        old, name, out = self.name, f"s{next(self.numbers)}", self.folder / f"log{next(self.numbers)}"
        if not self.deleted:
            export(self.db, out, self.name)
            lost = self.forgotten_lessons()
            with living(self.db, now=lambda: self.now[0]) as asked:
                assert asked.ask("PUT", name, json=self.body).status_code == 201
            if lost:
                with pytest.raises(BadInput, match=r"reward_seq|state_seq"):
                    import_log(self.db, name, out)
            elif before["count decided"] > len(self.erased):
                found = import_log(self.db, name, out)
                assert found.digest == before["digest"]
                first = self.row()[1][-1].first
                closed = {id for id, (_, told) in self.paid.items() if told["seq"] <= first}
                left_out = closed | self.erased
                self.sent = {id: one for id, one in self.sent.items() if id not in left_out}
                self.paid = {id: one for id, one in self.paid.items() if id not in left_out}
                self.name, self.paused, self.fallback, self.erased = name, False, None, set()
        self.start()
        self.items()
        if self.name != old:
            self.replicas[0].ask("DELETE", old, json={"name": old, "force": True})

    def delete(self):
        self.ask("DELETE", "", {"name": self.name, "force": True})
        self.deleted, self.erased = True, set(self.sent)

    def refold(self):
        """As if another machine had computed the newest era."""
        self.stop()
        with closing(open_store(self.db)) as store:
            for row in store.streams():
                era = store.eras(row.id)[-1]._replace(probe=ELSEWHERE)
                store.begin()
                store.run("UPDATE era SET probe = ?, seal = ? WHERE stream = ? AND number = ?",
                          values=(ELSEWHERE, seal_era(era), row.id, era.number))  # fmt: skip
                store.commit()
        assert (self.name in refold(self.db)) is not self.deleted
        self.start()

    # ------------------------------------------------------------------------------------ checks

    def row(self):
        with closing(open_store(self.db, writes=False)) as store:
            number = {one.name: one.id for one in store.streams()}[self.name]
            return number, store.eras(number), list(store.rewards(number)), list(store.decisions(number))

    def forgotten_lessons(self):
        """Whether a lesson of the newest state was erased."""
        if self.deleted:
            return False
        _, eras, rewards, _ = self.row()
        return any(one.x is None and one.verdict == "learned" for one in rewards if one.seq > eras[-1].first)

    def answer(self):
        told = self.replicas[0].stream(self.name)
        left_out = ("counts", "seq") if self.shared else ("counts",)  # a restart may leave a gap in numbers
        return {name: told[name] for name in told if name not in left_out} | {
            f"count {name}": told["counts"].get(name, 0) for name in ("decided", "learned", "open", "kept", "late")
        }

    def again(self):
        """Every request that was answered, once more."""
        for id, (body, told) in self.sent.items():
            gone = id in self.erased
            found = self.ask("POST", "/decide", body, 409 if gone else 200).json()
            if self.deleted:
                continue
            if gone:
                assert found["code"] == "forgotten_decision", (id, found)
            else:
                one, other = ({name: this[name] for name in ("id", "seq", "arm", "item", "propensity")}
                              for this in (found, told))  # fmt: skip
                assert one == other, (id, found, told)
        for id, (body, told) in self.paid.items():
            found = self.ask("POST", "/reward", body)
            if not self.deleted:
                assert found.json()["verdict"] == "duplicate", (id, found.json(), told)

    def marks(self):
        """The marks of what was erased that are still stored."""
        marks = {id: [f"{id}-{id}-mark".encode(), f"{int(id[1:]):032x}".encode()] for id in self.erased}
        if self.shared:
            with closing(open_store(self.db, writes=False)) as store:
                tables = ("decision", "detail", "event", "notice", "item")
                rows = [row for one in tables for row in store._read(f"SELECT * FROM {one}")]
            raw = repr(rows).encode()
        else:
            files = [one for one in self.db.parent.rglob("*") if one.is_file() and one.name.startswith(self.db.name)]
            raw = b"".join(one.read_bytes() for one in files)
        return {id for id, told in marks.items() if any(mark in raw for mark in told)}

    def check(self):
        if self.deleted:
            self.again()
            self.stop()
        else:
            self.again()
            self.resume()
            self.decide()
            self.reward()
            self.again()
            before = self.answer()
            self.stop()
            self.start()
            assert self.answer() == before
            self.stop()
            self.moves(before)
        for found in verify(self.db):
            assert not (found.differs + found.foreign + found.revised), found.differs + found.foreign
        assert self.marks() == set()

    def moves(self, before):
        """Export and import: the copy has the state, the counts and the units."""
        decisions = self.row()[3]
        assert all(one.unit is not None for one in decisions if one.id not in self.erased)
        out, copy = self.folder / "moved", self.copy
        export(self.db, out, self.name)
        raw = "".join(one.read_text() for one in out.glob("*.jsonl"))
        check_log(out)
        assert not [id for id in self.erased if f"{id}-{id}-mark" in raw]
        with living(copy, now=lambda: self.now[0]) as asked:
            assert asked.ask("PUT", "copy", json=self.body).status_code == 201
        if self.forgotten_lessons():
            with pytest.raises(BadInput, match=r"reward_seq|state_seq"):
                import_log(copy, "copy", out)
            return
        if len(decisions) > len(self.erased):
            assert import_log(copy, "copy", out).digest == before["digest"]
        (found,) = verify(copy)
        assert not found.differs, found.differs


VERBS = {
    "decide": World.decide, "reward": World.reward, "pause": World.pause, "fallback": World.fallback_,
    "resume": World.resume, "shadow": World.shadow, "holdback": World.holdback, "ramp": World.ramp,
    "reset": World.reset, "policy": World.policy, "forget by date": World.forget_date,
    "forget by unit": World.forget_unit, "items": World.items, "import": World.import_, "export": World.export,
    "delete": World.delete, "refold": World.refold,
}  # fmt: skip
PAIRS = list(itertools.product(VERBS, repeat=2))


# In `make test`: every verb before and after another, and the pairs in which a defect was found.
SOME = [
    ("shadow", "fallback"), ("fallback", "forget by unit"), ("decide", "forget by unit"), ("fallback", "import"),
    ("reward", "reset"), ("policy", "import"), ("reset", "import"), ("pause", "shadow"), ("holdback", "ramp"),
    ("ramp", "export"), ("import", "forget by date"), ("forget by date", "policy"), ("forget by unit", "refold"),
    ("refold", "decide"), ("items", "reward"), ("resume", "holdback"), ("export", "pause"), ("import", "delete"),
    ("delete", "export"), ("shadow", "items"), ("refold", "resume"), ("shadow", "import"),
]  # fmt: skip
FEW = [
    ("pause", "shadow"), ("policy", "delete"), ("delete", "decide"), ("import", "forget by unit"), ("reset", "refold"),
]  # fmt: skip


def tried(db, folder, copy, first, second):
    """Drive a stream through two verbs, a decision between them."""
    world = World(db, folder, copy)
    try:
        for verb in (first, "decide", second):
            VERBS[verb](world)
        world.check()
    finally:
        world.stop()


def test_the_sample_has_every_verb_first_and_second():
    assert {first for first, _ in SOME} == {second for _, second in SOME} == set(VERBS)


@pytest.mark.parametrize(("first", "second"), SOME)
def test_two_operations_in_turn_keep_every_promise(tmp_path, first, second):
    tried(tmp_path / "a.db", tmp_path, tmp_path / "copy.db", first, second)


@pytest.mark.parametrize(("first", "second"), FEW)
def test_two_operations_on_two_replicas_keep_every_promise(server, tmp_path, first, second):
    tried(server.database(), tmp_path, server.database(), first, second)


@pytest.mark.slow  # 289 pairs, a minute
@pytest.mark.parametrize("first", VERBS)
def test_any_two_operations_in_turn_keep_every_promise(tmp_path, first):
    for second in VERBS:
        folder = tmp_path / second
        folder.mkdir()
        tried(folder / "a.db", folder, folder / "copy.db", first, second)


@pytest.mark.slow  # five minutes
@pytest.mark.parametrize("first", VERBS)
def test_any_two_operations_on_two_replicas_keep_every_promise(server, tmp_path, first):
    db, copy = server.database(), server.database()
    for second in VERBS:
        folder = tmp_path / second
        folder.mkdir()
        tried(db, folder, copy, first, second)
        server.empty(db)
        server.empty(copy)
