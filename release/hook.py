"""hatchling's hook: on Linux a wheel holds machine code where a C compiler is there; elsewhere it is pure.

Machine code is for this processor, and build/machine keeps it for the next wheel of the same sources.
DRIFTWISE_WHEEL=pure leaves it out. machine, for releases, makes it for all levels that run here, and fails where it
cannot be made. aarch64 and musl make a wheel for others on x86-64, with the compilers of the distribution
(aarch64-linux-gnu-gcc, musl-gcc). An editable install has no machine code: a checkout is compiled by numba.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import platform
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

LEAST_GLIBC = 17
# Wheels that are asked for by name, and what they demand; `pure` and nothing are the other two.
DEMANDED = ("machine", "aarch64", "musl")


class Machine(BuildHookInterface[Any]):
    """Adds a module of machine code for this processor, for each level that it runs, or for another processor."""

    PLUGIN_NAME = "custom"

    def dependencies(self) -> list[str]:
        return [] if self._why_not() or self._kept() else ["numba>=0.60"]

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        wanted, why = _wanted(), self._why_not()
        if version == "editable" or wanted == "pure":
            return
        if not why:
            self._folder = tempfile.TemporaryDirectory(prefix="driftwise-wheel-")
            why = self._make(Path(self._folder.name))
        if why and wanted in DEMANDED:
            raise RuntimeError(f"no machine code: {why}")
        if why:
            self.app.display_warning(f'no machine code: install "driftwise[jit]", or all runs as Python: {why}')
            return
        made = sorted(Path(self._folder.name).glob("*.so"))
        build_data["force_include"] |= {str(one): f"driftwise/_machine/{one.name}" for one in made}
        build_data["pure_python"] = False
        build_data["tag"] = f"cp311-abi3-{_platform(made, wanted)}"

    def finalize(self, version: str, build_data: dict[str, Any], artifact_path: str) -> None:
        if hasattr(self, "_folder"):
            self._folder.cleanup()

    def _why_not(self) -> str:
        """What stands against machine code, before anything is compiled."""
        if _wanted() == "pure":
            return "DRIFTWISE_WHEEL=pure"
        here = (sys.platform, _processor(), sys.implementation.name)
        known = here[1] in ("x86_64", "aarch64") and (here[0], here[2]) == ("linux", "cpython")
        if not known or sysconfig.get_config_var("Py_GIL_DISABLED"):
            return f"it is made for CPython on Linux, x86-64 and aarch64, not {', '.join(here)}"
        machine = self._module("release/machine.py")
        try:
            machine.compiler(_processor())
            self._level = "all" if _wanted() else machine.levels_here()[-1]
        except machine.Broken as broken:
            return str(broken)
        return ""

    def _module(self, name: str) -> Any:
        """A module of this source, which has no other dependency."""
        spec = importlib.util.spec_from_file_location(Path(name).stem, Path(self.root, name))
        assert spec is not None and spec.loader is not None
        made = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(made)
        return made

    def _store(self) -> Path:
        """Where the module for this processor is kept, by the hash of what it is made of."""
        sources = self._module("src/driftwise/_internal/sources.py")
        made_by = [Path(self.root, "release", name).read_bytes() for name in ("machine.py", "module.c")]
        recipe = hashlib.sha256(b"".join(made_by)).hexdigest()[:16]
        kept = f"{sources.source_hash(*sources.COMPILED)}-{recipe}"
        return Path(self.root, "build", "machine", kept, f"{self._level}.abi3.so")

    def _kept(self) -> bool:
        """Whether this processor's module was built already."""
        return not _wanted() and self._store().exists()

    def _keep(self, module: Path) -> None:
        """Keep a module instead of older ones. A failure only costs time."""
        store = self._store()
        shutil.rmtree(store.parents[1], ignore_errors=True)
        with contextlib.suppress(OSError):
            store.parent.mkdir(parents=True)
            shutil.copy(module, store.with_suffix(f".{os.getpid()}"))
            store.with_suffix(f".{os.getpid()}").replace(store)

    def _make(self, out: Path) -> str:
        """Build the modules; nothing, or why there are none."""
        if self._kept():
            shutil.copy(self._store(), out)
            return ""
        levels = "v8" if _processor() == "aarch64" else self._level
        program = [sys.executable, str(Path(self.root, "release", "machine.py")), str(out), "--levels", levels]
        steady = {"PYTHONHASHSEED": "0", "NUMBA_CACHE_DIR": str(out / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
        if _wanted() == "musl":
            steady["CC"] = "musl-gcc"
        print("machine code: one to two minutes on two cores", flush=True)
        said = []
        with subprocess.Popen(
            program, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env={**os.environ, **steady}
        ) as working:
            assert working.stdout is not None
            for line in working.stdout:  # pip -v shows it
                print(line, end="", flush=True)
                said.append(line)
        if working.returncode:
            return "".join(said)[-1000:]
        if not _wanted():
            self._keep(out / f"{self._level}.abi3.so")
        return ""


def _wanted() -> str:
    return os.environ.get("DRIFTWISE_WHEEL", "")


def _processor() -> str:
    """The processor that the wheel is for."""
    return "aarch64" if _wanted() == "aarch64" else platform.machine()


def _platform(made: list[Path], wanted: str) -> str:
    """The tag of a platform: by the newest version of glibc that a module asks for.

    manylinux2014 is another name for glibc 2.17. Without it `pip download --platform manylinux2014_x86_64` takes the
    pure wheel, which needs numba."""
    if wanted == "musl":
        return f"musllinux_1_2_{_processor()}"
    asked = [int(one) for path in made for one in re.findall(rb"GLIBC_2\.(\d+)", path.read_bytes())]
    if not wanted or platform.libc_ver()[0] != "glibc":  # for this processor alone: not for an index
        return f"linux_{_processor()}"
    newest = max([LEAST_GLIBC, *asked])
    earlier = f".manylinux2014_{_processor()}" if newest == LEAST_GLIBC else ""
    return f"manylinux_2_{newest}_{_processor()}{earlier}"
