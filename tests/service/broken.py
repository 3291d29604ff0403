"""The server with a defect, by name: `python broken.py DB PORT [what …]`.

slow             every commit takes 20 ms longer
kill:POINT:N     kill -9 itself when it comes to a named point for the N-th time; in-upgrade: in step N of the tables
stop:POINT:N     stop itself (SIGSTOP) when it comes to a named point for the N-th time, on PostgreSQL
early            answer before the commit            (negative control)
twice            learn every reward twice            (negative control)
forgetful        know no id again, and no UNIQUE     (negative control)
nosync           fsync fails at the N-th commit: nosync:N
hasty            patience with slow callers of half a second
unsynced         SQLite syncs nothing                (negative control)
often            snapshots every 50 rewards, digests every 10
counted          says on SIGUSR1 what is alive
changed          uvicorn's private side has a name less
cold             compiling takes a minute
next             the tables are a version further
cramped          the log is brought into the file every 40 pages
"""

import asyncio
import gc
import json
import os
import signal
import sys
import threading
import time
from pathlib import Path

from driftwise.service.core import engine, fold, serving, stream, waiting
from driftwise.service.http import run, straight
from driftwise.service.stores import schema, sqlite
from driftwise.service.stores.opening import is_shared
from driftwise.service.stores.records import Broken


def before(owner, name, act):
    """Call `act` before a function runs."""
    inside = getattr(owner, name)

    def wrapped(*arguments, **more):
        act()
        return inside(*arguments, **more)

    setattr(owner, name, wrapped)


def after(owner, name, act):
    """Call `act` after a function has run."""
    inside = getattr(owner, name)

    def wrapped(*arguments, **more):
        found = inside(*arguments, **more)
        act()
        return found

    setattr(owner, name, wrapped)


def killer(times, number=signal.SIGKILL):
    left = [times]

    def act():
        left[0] -= 1
        if left[0] == 0:
            os.kill(os.getpid(), number)

    return act


def in_checkpoint(times):
    """Kill the process a moment after a checkpoint began."""
    inside, left = sqlite.SQLiteStore.commit, [times]

    def commit(self):
        inside(self)
        left[0] -= 1
        if left[0] <= 0:
            threading.Timer(0.0001 * (1 + times % 10), os.kill, (os.getpid(), signal.SIGKILL)).start()
            self.checkpoint()

    sqlite.SQLiteStore.commit = commit


def in_step(number):
    """Kill the process within a step, before its last statement."""
    *first, last = [one for one in schema.STEPS[number].split(";\n") if one.strip()]
    dying = ";\n".join([*first, "SELECT die()", last])
    schema.STEPS = (*schema.STEPS[:number], dying, *schema.STEPS[number + 1 :])
    inside = schema.step

    def step(database, number):
        database.create_function("die", 0, killer(1))
        inside(database, number)

    schema.step = step


POINTS = {
    "before-insert": lambda times: before(sqlite.SQLiteStore, "add_decisions", killer(times)),
    "before-commit": lambda times: before(sqlite.SQLiteStore, "commit", killer(times)),
    "after-commit": lambda times: after(sqlite.SQLiteStore, "commit", killer(times)),
    "before-reply": lambda times: before(engine, "settle_group", killer(times)),
    "in-snapshot": lambda times: after(sqlite.SQLiteStore, "add_snapshot", killer(1 + times // 40)),
    "in-checkpoint": in_checkpoint,
    "in-migration": lambda times: in_step(0),
    "in-upgrade": lambda times: (next_version(), in_step(times)),
}


def stopping(point, times):
    """Stop with the lock of a stream's row held, or in the middle of the statement that writes rewards."""
    import psycopg

    from driftwise.service.stores.postgres import PostgresStore

    if point == "in-lock":
        after(PostgresStore, "lock", killer(times, signal.SIGSTOP))
    else:
        act = killer(times, signal.SIGSTOP)
        before(PostgresStore, "add_rewards", lambda: before(psycopg.Copy, "write_row", act))


def next_version():
    """A driftwise whose tables have one more step."""
    schema.STEPS = (*schema.STEPS, "CREATE TABLE later (x INTEGER);\nCREATE TABLE later_still (x INTEGER)")
    schema.VERSION += 1


def early():
    """Answers are sent before the commit."""
    enter = waiting.Queue.enter

    def at_once(self, work, tell):
        def told():
            try:
                tell(work())
            except Exception as error:
                tell(error)

        self._turn._last = 2  # never on the event loop
        enter(self, told, lambda answer: None)

    async def change(self, write, then):
        done = asyncio.get_running_loop().create_future()
        enter(self.engine.queue, lambda: self.engine.also(write, then), done.set_result)
        await done

    waiting.Queue.enter, serving.Service.written = at_once, change


def twice():
    lesson = fold.Fold.lesson

    def more(self, *what):
        lesson(self, *what)
        lesson(self, *what)

    fold.Fold.lesson = more


def forgetful():
    schema.STEPS = (schema.STEPS[0].replace(", UNIQUE (stream, event_id)", ""), *schema.STEPS[1:])
    find = stream.Stream.find
    fresh = threading.local()

    def decide(self, asked, offer, at, trace=None, inside=stream.Stream.decide):
        fresh.now = True
        try:
            return inside(self, asked, offer, at, trace)
        finally:
            fresh.now = False

    stream.Stream.decide = decide
    stream.Stream.find = lambda self, id: None if getattr(fresh, "now", False) else find(self, id)


def often():
    fold.EVERY = stream.EVERY = 10
    stream.SNAPSHOT_EVERY = 50


def nosync(times):
    left = [times]

    def fail():
        left[0] -= 1
        if left[0] == 0:
            raise Broken("disk I/O error")

    before(sqlite.SQLiteStore, "commit", fail)


def hasty():
    straight.PATIENCE = 0.5


def changed():
    del straight.HttpToolsProtocol.on_response_complete


def opened(statement):
    """Every database that is opened for writing runs one more statement."""
    inside = sqlite.SQLiteStore._open

    def told(self, writes, pages):
        inside(self, writes, pages)
        if writes:
            self._database.execute(statement)

    sqlite.SQLiteStore._open = told


def counted():
    """On SIGUSR1, report what is alive: tasks, pending futures, connections, and requests in the engine."""
    engines, make = [], serving.CommitEngine

    def made(*parts):
        engines.append(make(*parts))
        return engines[-1]

    def tell(loop):
        gc.collect()
        alive = gc.get_objects()
        print(json.dumps({
            "tasks": len(asyncio.all_tasks(loop)),
            "futures": sum(isinstance(one, asyncio.Future) and not one.done() for one in alive),
            "connections": sum(isinstance(one, asyncio.Protocol) for one in alive),
            "requests": len(engines[-1].queue.waiting),
        }), file=sys.stderr, flush=True)  # fmt: skip

    def listen():
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGUSR1, tell, loop)

    serving.CommitEngine = made
    after(run, "settle_heap", listen)


WHAT = {
    "cold": lambda: setattr(serving, "warm", lambda *_: time.sleep(60.0)),
    "counted": counted, "cramped": lambda: opened("PRAGMA wal_autocheckpoint=40"), "early": early,
    "forgetful": forgetful, "hasty": hasty, "changed": changed, "next": next_version, "often": often,
    "slow": lambda: before(sqlite.SQLiteStore, "commit", lambda: time.sleep(0.02)), "twice": twice,
    "unsynced": lambda: opened("PRAGMA synchronous=OFF"),
}  # fmt: skip


def serve(words):
    """A server on DB at PORT with these defects."""
    db, port, *what = words
    for word in what:
        name, *rest = word.split(":")
        if name == "kill":
            POINTS[rest[0]](int(rest[1]))
        elif name == "stop":
            stopping(rest[0], int(rest[1]))
        elif name == "nosync":
            nosync(int(rest[0]))
        else:
            WHAT[name]()
    run.serve(db if is_shared(db) else Path(db), port=int(port))


if __name__ == "__main__":
    serve(sys.argv[1:])
