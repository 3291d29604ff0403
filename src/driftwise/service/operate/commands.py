"""The service's commands. Each imports what it needs when it runs, and reports missing packages."""

from __future__ import annotations

import datetime
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from driftwise.errors import BadInput

Database = Annotated[
    str, typer.Argument(help="The database of driftwise serve: a file, or postgresql://…", metavar="DB")
]
keys_app = typer.Typer(help="Keys of a database.", no_args_is_help=True, rich_markup_mode=None)


def register(app: typer.Typer) -> None:
    """Add the commands to the command line."""
    for command in (serve, verify, export, backup, restore, forget, refold):
        app.command()(command)
    app.command("import")(import_)
    app.add_typer(keys_app, name="keys")


def _needs(*modules: str) -> None:
    missing = [name for name in modules if find_spec(name) is None]
    if missing:
        raise BadInput("serve", f"{missing[0]} is missing", "the server's packages", 'pip install "driftwise[serve]"')


def serve(
    db: Annotated[str, typer.Option(help="The database: a file, created if it does not exist, or postgresql://…")],
    host: Annotated[str, typer.Option(help="Address to listen at; any but loopback needs a key.")] = (
        "127.0.0.1"
    ),
    port: Annotated[int, typer.Option(help="The port.", min=0, max=65535)] = 8000,
    log_requests: Annotated[bool, typer.Option("--log-requests", help="Log every request, without bodies.")] = False,
    allow_host: Annotated[
        list[str] | None,
        typer.Option(help="A further Host name that clients use, such as a proxy's; may be repeated."),
    ] = None,
    max_pages: Annotated[int | None, typer.Option(help="Largest size of the file, in pages of 4 KiB.", min=1)] = None,
    webhook: Annotated[
        str | None, typer.Option(help="Address to which drift, lift and stops are reported; none by default.")
    ] = None,
    webhook_secret_file: Annotated[
        Path | None, typer.Option(help="File of the secret that signs messages; else DRIFTWISE_WEBHOOK_SECRET.")
    ] = None,
) -> None:
    """Serve decisions over HTTP; every answer is on disk before it is sent."""
    _needs("starlette", "uvicorn", "msgspec", "prometheus_client", "httptools")
    from driftwise.service.stores.lock import check_free
    from driftwise.service.stores.opening import is_shared

    if not is_shared(db):
        check_free(Path(db))
    from driftwise.service.http.run import serve as run
    from driftwise.service.http.webhook import webhook_of

    hook = webhook_of(webhook, webhook_secret_file)
    run(db, host, port, requests=log_requests, pages=max_pages, allow_hosts=allow_host or (), webhook=hook)


def verify(db: Database) -> None:
    """Recompute every decision, score and digest from the database. Exit code 2 means damage, 5 generations that
    another machine, library or version computed, 6 generations that only an earlier revision of their policy
    computes."""
    _needs("msgspec")
    from driftwise.service.core.origin import Foreign, Revised
    from driftwise.service.core.verify import verify as run

    found = run(db)
    for one in found:
        print(one)
        for what in (*one.differs, *one.foreign, *one.revised):
            print(f"  {what}")
    kinds = ([one.differs for one in found], [one.foreign for one in found], [one.revised for one in found])
    differs, foreign, revised = (sum(map(len, kind)) for kind in kinds)
    if differs:
        got = f"{differs} differences, listed above"
        raise BadInput(str(db), got, "everything as it was written", "restore a backup")
    if foreign:
        got = f"{foreign} generations that another machine, library or version computed, listed above"
        wanted = "generations that can be recomputed here; nothing is damaged"
        raise Foreign(str(db), got, wanted, "run driftwise verify where they were computed")
    if revised:
        got = f"{revised} generations that an earlier revision of their policy computed, listed above"
        wanted = "generations that this version can recompute; nothing is damaged"
        raise Revised(str(db), got, wanted, "run driftwise verify of the version that computed them")


def export(
    db: Database,
    out: Annotated[Path, typer.Option(help="A new folder for the parts of the log.")],
    stream: Annotated[str | None, typer.Option(help="Name of the stream, if there are several.")] = None,
    format: Annotated[str | None, typer.Option(help="parquet or jsonl.")] = None,
    everything: Annotated[bool, typer.Option("--all", help="Include decisions from before the last reset.")] = False,
) -> None:
    """Write a stream as a log, for agents and for evaluation."""
    _needs("msgspec")
    from driftwise.service.operate.export import export as run

    found = run(db, out, stream, format, everything)
    forgotten = f", {found.forgotten} left out, whose arms were forgotten" if found.forgotten else ""
    before = f", {found.before} left out, from before the last reset (--all includes them)" if found.before else ""
    print(f"{out}: {found.rows} rows{forgotten}{before}")


def import_(
    db: Database,
    stream: Annotated[str, typer.Argument(help="A stream of the database that has not decided yet.")],
    log: Annotated[Path, typer.Argument(help="A log: a folder of parts, or a file.")],
) -> None:
    """Import a log into a stream: the whole log or, if it has an error, nothing. The state gets the same bits as
    live."""
    _needs("msgspec")
    from driftwise.service.operate.importing import import_log as run

    found = run(db, stream, log)
    print(f"{stream}: {found.decisions} decisions, {found.rewards} rewards, digest {found.digest}")


def backup(db: Database, out: Annotated[Path, typer.Option(help="Path of the copy, which must not exist.")]) -> None:
    """Copy a database, also while a server uses it."""
    _needs("msgspec")
    from driftwise.service.operate.keeping import backup as run

    print(f"{out}: {run(db, out)} bytes")


def restore(
    backup: Annotated[str, typer.Argument(help="A file that driftwise backup wrote.", metavar="BACKUP")],
    db: Annotated[str, typer.Argument(help="The database file; no server may use it.", metavar="DB")],
    replace: Annotated[bool, typer.Option("--replace", help="If DB exists: keep its files under other names.")] = (
        False
    ),
) -> None:
    """Check a backup and make it the database. Do not use cp: SQLite would mix it with the old -wal file."""
    _needs("msgspec")
    from driftwise.service.operate.restoring import restore as run

    size, kept = run(backup, db, replace=replace)
    print(f"{db}: {size} bytes" + (f"; the previous files are {kept}*" if kept else ""))


def forget(
    db: Database,
    before: Annotated[
        str | None, typer.Option(help="A date or time, 2026-01-31 or 2026-01-31T12:00:00; UTC by default.")
    ] = None,
    unit: Annotated[str | None, typer.Option(help="A unit, as it was sent to decide.")] = None,
) -> None:
    """Erase arms, contexts and vectors of decisions that closed before a time, or of a unit; what was learned stays."""
    _needs("msgspec")
    from driftwise.service.core.forgetting import asked_to
    from driftwise.service.core.forgetting import forget as run

    for name, count in run(db, asked_to(before, unit)).items():
        print(f"{name}: {count} decisions forgotten")


def refold(db: Database) -> None:
    """Learn the rewards again on this machine, for a database that another machine, library or version computed."""
    _needs("msgspec")
    from driftwise.service.core.refold import refold as run

    begun = run(db)
    for name, number in begun.items():
        print(f"{name}: generation {number} begins: its rewards were learned again here")
    if not begun:
        print("every stream's newest generation was computed here: nothing to do")


@keys_app.command("create")
def create(
    db: Database,
    scopes: Annotated[str | None, typer.Option(
        help="Some of decide,reward,admin. By default all of them for the only valid key, decide,reward for others.",
        show_default=False)] = None,
    stream: Annotated[str, typer.Option(help="The stream of the key; * for all.")] = "*",
    name: Annotated[str, typer.Option(help="A note on who uses the key.")] = "",
) -> None:
    """Create a key and print it once; only its sha256 is stored."""
    _needs("msgspec")
    from driftwise.service.operate.keeping import create_key, grants, keys, lacking
    from driftwise.service.stores.opening import is_shared

    made = not is_shared(db) and not Path(db).exists()
    print(create_key(db, scopes, stream, name))
    if made:
        print(f"The database {db} did not exist and was created. The key is valid for it only.", file=sys.stderr)
    valid = keys(db)
    if len(valid) == 1:
        print("This is the only valid key. From now on the server refuses requests without a key.", file=sys.stderr)
        print(grants(valid[0]), file=sys.stderr)
    _warn(lacking(db, valid))


def _warn(sentence: str) -> None:
    if sentence:
        print(f"Warning: {sentence}", file=sys.stderr)


@keys_app.command("list")
def list_keys(db: Database) -> None:
    """List the valid keys."""
    _needs("msgspec")
    from driftwise.service.operate.keeping import keys

    for key in keys(db):
        made = datetime.datetime.fromtimestamp(key.created, datetime.UTC)
        print(f"{key.id}  {key.scopes}  stream {key.stream}  made {made:%Y-%m-%d}  {key.name}".rstrip())


@keys_app.command("revoke")
def revoke(db: Database, number: Annotated[int, typer.Argument(help="Number of the key in the list.")]) -> None:
    """Revoke a key; it takes effect within a second."""
    _needs("msgspec")
    from driftwise.service.operate.keeping import keys, lacking, revoke_key

    revoke_key(db, number)
    print(f"key {number} is revoked")
    _warn(lacking(db, keys(db)))
