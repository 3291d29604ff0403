"""A PostgreSQL server for tests: in a temporary folder, on a socket there, without a port."""

import importlib.util
import itertools
import os
import shutil
import subprocess
import tempfile
from pathlib import Path


def binaries():
    """The folder of initdb and pg_ctl; Debian does not put them on the PATH."""
    found = shutil.which("initdb")
    folders = [Path(found).parent] if found else []
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    return next((folder for folder in folders if (folder / "pg_ctl").exists()), None)


def missing():
    """The name of what is missing; empty if nothing is."""
    if importlib.util.find_spec("psycopg") is None:
        return "no psycopg: pip install driftwise[postgres]"
    return "" if binaries() else "no PostgreSQL here: apt-get install postgresql"


class Server:
    """A server that starts at once. Without `sync` it is faster, and not safe against a power cut."""

    def __init__(self, folder=None, sync=False):
        # A socket's path may have 107 letters, and the server may not be root: a short folder that is its own.
        self.folder = Path(tempfile.mkdtemp(prefix="dwpg"))
        self.user = "postgres" if os.geteuid() == 0 else None
        if self.user:
            shutil.chown(self.folder, self.user)
        self._names = itertools.count()
        self._run("initdb", "-D", self._data, "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync")
        settings = ["listen_addresses = ''", f"unix_socket_directories = '{self.folder}'", "max_connections = 50"]
        settings += [] if sync else ["fsync = off"]
        with (self.folder / "data" / "postgresql.conf").open("a") as file:
            file.write("\n".join(settings) + "\n")
        self.start()

    @property
    def _data(self):
        return str(self.folder / "data")

    def _run(self, program, *words):
        options = {"user": self.user, "extra_groups": []} if self.user else {}
        subprocess.run([str(binaries() / program), *words], check=True, cwd=self.folder, **options,
                       stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)  # fmt: skip

    def start(self):
        self._run("pg_ctl", "-D", self._data, "-l", str(self.folder / "log"), "-w", "start")

    def stop(self, how="immediate"):
        self._run("pg_ctl", "-D", self._data, "-m", how, "-w", "stop")

    def database(self):
        """The address of a new database."""
        import psycopg

        name = f"test{next(self._names)}"
        with psycopg.connect(self.address("postgres"), autocommit=True) as made:
            made.execute(f"CREATE DATABASE {name} STRATEGY file_copy")
        return self.address(name)

    def empty(self, address):
        """Make a database as new, which is faster than a new one: that has 300 files."""
        import psycopg

        with psycopg.connect(address, autocommit=True) as made:
            made.execute("DROP SCHEMA public CASCADE")
            made.execute("CREATE SCHEMA public")

    def address(self, name):
        return f"postgresql://postgres@/{name}?host={self.folder}"

    def cut(self, name):
        """Cut all connections of replicas with a word in their names; how many."""
        import psycopg

        with psycopg.connect(self.address("postgres"), autocommit=True) as made:
            return made.execute("SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
                                "WHERE application_name LIKE %s", (f"%{name}%",)).fetchone()[0]  # fmt: skip

    def close(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)
