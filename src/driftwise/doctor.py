"""`driftwise doctor`: the facts for a bug report. Versions, compiled code, processors, extras, and what is slow and
why."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
import re
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from driftwise import __version__
from driftwise._internal.terminal import table

# Extras for developers of the library.
_OWN = ("dev", "docs", "release")


def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="The same as JSON.")] = False,
) -> None:
    """Print the facts for a bug report: versions, compiled code, processors, extras, and what is slow here and why."""
    found = examined()
    if as_json:
        print(json.dumps(found, indent=1, ensure_ascii=False))
        return
    for title in ("versions", "compiled code", "processors", "extras"):
        table(title, ("what", "found"), [(name, str(value)) for name, value in found[title].items()])
    slow = found["slow"] or ["nothing found"]
    print("what is slow here, and why:\n" + "\n".join(f"- {one}" for one in slow))


def examined() -> dict[str, Any]:
    """The facts as plain data."""
    compiled, processors = _compiled(), _processors()
    return {
        "versions": _versions(), "compiled code": compiled, "processors": processors, "extras": _extras(),
        "slow": list(_slow(compiled, processors)),
    }  # fmt: skip


def _versions() -> dict[str, str]:
    try:
        import llvmlite.binding as llvm
    except ImportError:
        compiler = "none: pip install driftwise[jit] compiles loops and functions of your own"
    else:
        compiler = f"LLVM {'.'.join(map(str, llvm.llvm_version_info))} for {llvm.get_host_cpu_name()}"
    named = {name: _version(name) or "missing" for name in ("numpy", "numba", "llvmlite", "typer", "rich")}
    return {
        "driftwise": __version__, "python": f"{platform.python_version()} ({platform.python_implementation()})",
        "system": f"{platform.system()} {platform.release()}, {platform.machine()}", **named,
        "compiler": compiler,
    }  # fmt: skip


def _version(name: str) -> str | None:
    try:
        return importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return None


def _compiled() -> dict[str, Any]:
    """Where compiled code is kept, and how much of it there is."""
    from driftwise._internal import compiling, machine, shipped, sources  # other commands must start without them

    found = shipped.shipped()
    compiled = "numba" if compiling.can_compile() else "Python"
    known = {
        "machine code": ": ".join(filter(None, (found.level or "none", found.why))),
        "calls": "machine code" if found.level else compiled,
        "rounds of simulate": "machine code" if found.level else compiled,
        "sources": sources.source_hash(*sources.COMPILED), "bits": machine.probe(),
    }  # fmt: skip
    if not compiling.can_compile():
        return {"compiles": False, "folder": None, "kept beyond the process": False, "functions": 0, "megabytes": 0.0,
                **known}  # fmt: skip
    from driftwise._internal import jit

    files = list(jit.FOLDER.rglob("*.nbc")) if jit.FOLDER else []
    size = sum(one.stat().st_size for one in files)
    return {
        "compiles": True, "folder": _home(jit.FOLDER) if jit.FOLDER else None, "kept beyond the process": jit.lasts(),
        "functions": len(files), "megabytes": round(size / 1e6, 1), **known,
    }  # fmt: skip


def _home(path: Path) -> str:
    """The path with ~ for the home folder, so that a report does not show the user's name."""
    with suppress(RuntimeError, ValueError):
        return str(Path("~") / path.relative_to(Path.home()))
    return str(path)


def _processors() -> dict[str, Any]:
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    settings = {name: os.environ[name] for name in sorted(os.environ) if re.match(r"(NUMBA|OMP)_(?!.*DIR)", name)}
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else None
    return {
        "cores": os.cpu_count(), "usable": usable, "allowed by a container": _quota(),
        "threads of simulate": os.cpu_count(), "load": None if load is None else round(load, 1),
        "settings": settings or "none",
    }  # fmt: skip


def _quota() -> float | None:
    """The processors that a container may use; None if there is no limit."""
    with suppress(OSError, ValueError):
        most, period = Path("/sys/fs/cgroup/cpu.max").read_text().split()
        return None if most == "max" else round(int(most) / int(period), 2)
    return None


def _extras() -> dict[str, str]:
    """Each extra with the versions of its packages, or with the missing ones."""
    try:
        wanted = importlib.metadata.requires("driftwise") or []
    except importlib.metadata.PackageNotFoundError:
        return {"unknown": "driftwise is not installed, only imported"}
    groups: dict[str, list[str]] = {}
    for line in wanted:
        read = re.match(r"""([\w.-]+).*extra == ['"]([\w-]+)['"]""", line)
        if read and read[2] not in _OWN and read[1] != "driftwise":
            groups.setdefault(read[2], []).append(read[1])
    found = {}
    for extra, names in groups.items():
        have = {name: _version(name) for name in names}
        missing = [name for name, version in have.items() if version is None]
        found[extra] = (
            f'no {", ".join(missing)}: pip install "driftwise[{extra}]"' if missing
            else ", ".join(f"{name} {version}" for name, version in have.items())
        )  # fmt: skip
    return found


def _slow(compiled: dict[str, Any], processors: dict[str, Any]) -> Iterator[str]:
    if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
        yield "NUMBA_DISABLE_JIT is set: rounds are interpreted, a hundred times slower; unset it"
    elif compiled["calls"] == "Python":
        yield 'no machine code and no numba: all runs as Python, a hundred times slower; pip install "driftwise[jit]"'
    elif compiled["calls"] == "numba" and not compiled["kept beyond the process"]:
        yield "compiled code is not kept, so every process compiles again; set NUMBA_CACHE_DIR to a writable folder"
    elif compiled["calls"] == "numba" and compiled["functions"] == 0:
        yield "nothing is compiled yet: the first use of a family takes seconds to a minute, once per version"
    if compiled["compiles"]:
        from driftwise._internal import jit

        if jit.config.DEBUGINFO_DEFAULT or jit.config.BOUNDSCHECK or jit.config.OPT != 3:
            yield "NUMBA_OPT, NUMBA_BOUNDSCHECK or NUMBA_DEBUGINFO is set: compiled code is slower; unset it"
    cores = min(filter(None, (processors["usable"], processors["allowed by a container"])), default=None)
    if cores is not None and processors["cores"] and cores < processors["cores"]:
        yield f"{cores:g} of {processors['cores']} cores may be used: pass simulate(jobs={max(1, int(cores))})"
    if cores and processors["load"] and processors["load"] > 1.5 * cores:
        yield f"other processes are busy: a load of {processors['load']:g} on {cores:g} cores"
    sync = _sync()
    if sync is not None and sync > 0.01:
        yield f"a synced write here takes {1000 * sync:.0f} ms, and every answer of `driftwise serve` waits for one"
    if sys.gettrace() is not None:
        yield "a debugger or a coverage tool traces every line of Python"


def _sync(times: int = 5) -> float | None:
    """Seconds that a small synced write takes in the working folder; None if the folder cannot be written."""
    taken = []
    try:
        with tempfile.TemporaryFile(dir=Path.cwd()) as probe:
            for _ in range(times):
                began = time.perf_counter()
                probe.write(b"driftwise")
                probe.flush()
                os.fsync(probe.fileno())
                taken.append(time.perf_counter() - began)
    except OSError:
        return None
    return sorted(taken)[times // 2]
