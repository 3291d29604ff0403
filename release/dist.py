"""A release that can be trusted: python release/dist.py [--quick], into dist/ and build/dist.

Builds a wheel with machine code, a pure wheel and the sdist twice, which must give the same bytes; looks into them;
installs the wheel in clean environments (without extras, with each, at the lowest versions that pyproject claims, on
every Python from 3.11 up that this machine has) and runs tests/installed.py there; without numba it also measures a
first decision, runs tests/golden/guard.py on every level of machine code and with the C library's FMA variants off, and
with a test runner the README's examples, hostile states and the service; installs the pure wheel with and without
numba, the sdist with and without a C compiler, and this folder (pip install .); holds docs/lab/measured.md to what an
installation weighs. --quick installs once, without extras.

Wheels for aarch64 and musl are built where DRIFTWISE_AARCH64 and DRIFTWISE_MUSL name an interpreter that runs here
(release/pythons.sh makes both), because code that was never run is not released. They play the catalogue there.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
import tomllib
import urllib.request
import zipfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
WORK, SMOKE = ROOT / "build" / "dist", ROOT / "tests" / "installed.py"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PACKAGE = ROOT / "src" / "driftwise"
VERSION = re.findall(r'^__version__ = "(.+)"$', (PACKAGE / "__init__.py").read_text("utf-8"), re.M)[0]
# Extras for those who work on the library: `make test`, `make docs` and this program install them.
OWN = ("dev", "docs", "release")
EXTRAS = [extra for extra in PROJECT["optional-dependencies"] if extra not in OWN]
OLDEST = (3, 11)
# A wheel has no date but this: 2020-01-01.
EPOCH = "1577836800"
LEVELS = ("v2", "v3", "v4")
# glibc then takes the code that it has for processors without fused multiply-add.
PLAIN = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-AVX2,-FMA4,-AVX512F"}
# Megabytes that a wheel may have, and driftwise where it is installed.
MOST_WHEEL, MOST_INSTALLED = 6.0, 15.0
# What is tried by a test runner in an environment without numba.
TESTED = (
    "tests/hostile/test_states.py", "tests/test_documents.py", "tests/test_simulate.py",
    "tests/service/test_contract.py", "tests/service/test_fold.py", "tests/service/test_wire.py",
)  # fmt: skip

# A first decision in a process of its own, and a view of the file system that cannot be written to.
LIVED = "one = agent.decide([[1.0, 0.0], [0.0, 1.0]]); agent.reward(one.id, 1.0)"
PROGRAMS = {
    "import": "import driftwise",
    "clicks": f"import driftwise as dw; agent = dw.Agent.for_clicks(2); {LIVED}",
    "values": f"import driftwise as dw; agent = dw.Agent.for_values(2, 0.0, 1.0); {LIVED}",
}
READ_ONLY = """mount --make-rprivate / && mount --bind / "$0" && mount -o remount,ro,bind "$0" &&
exec env -i /usr/sbin/chroot "$0" "$@\""""
RUNS = 5  # of which the median is told


class Broken(Exception):
    """What must not be released, in one sentence."""


def run(words: Sequence[object], **more: object) -> str:
    """What a command prints; its complaint if it fails."""
    done = subprocess.run([str(word) for word in words], capture_output=True, text=True, check=False, **more)  # type: ignore[call-overload]
    if done.returncode:
        said = done.stdout[-1500:] + done.stderr[-1500:]
        raise Broken(f"{' '.join(map(str, words[:6]))} ended with {done.returncode}:\n{said}")
    return str(done.stdout)


class Foreign(NamedTuple):
    """A platform that this machine runs with help: what names its interpreter, pip's names of the platform, the levels
    of its machine code, and versions at which it is tried."""

    variable: str
    platforms: tuple[str, ...]
    levels: tuple[str, ...]
    at: tuple[str, ...] = ()

    @property
    def python(self) -> str:
        return os.environ.get(self.variable, "")


FOREIGN = {
    "aarch64": Foreign("DRIFTWISE_AARCH64", ("manylinux_2_17_aarch64", "manylinux_2_28_aarch64"), ("v8",)),
    "musl": Foreign("DRIFTWISE_MUSL", ("musllinux_1_2_x86_64", "musllinux_1_1_x86_64"), LEVELS,
                    ("numpy==1.26.4",)),  # Debian 12's musl ends the process while it loads a newer one
}


def built(folder: Path) -> dict[str, Path]:
    """Wheels and sdist in a folder of their own; wheels share what is compiled with none of another folder."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(WORK / f"kept-{folder.name}", ignore_errors=True)
    made = {}
    for kind in ["machine", "pure", *(name for name, one in FOREIGN.items() if one.python)]:
        kept = {"DRIFTWISE_WHEEL": kind, "DRIFTWISE_KEPT": str(WORK / f"kept-{folder.name}")}
        environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH, **kept}
        what = ["--wheel", *(["--sdist"] if kind == "pure" else [])]
        run([sys.executable, "-m", "build", "--no-isolation", *what, "--outdir", folder / kind, ROOT], env=environment)
        for one in list((folder / kind).iterdir()):
            made[kind if one.suffix == ".whl" else "sdist"] = one.replace(folder / one.name)
        (folder / kind).rmdir()
    return made


def check_wheel(wheel: Path, levels: Sequence[str]) -> str:
    """All of the package and nothing else: sources, data, py.typed, the license, and one version. Its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if not name.endswith("/")}
        about = next(name for name in inside if name.endswith(".dist-info/METADATA"))
        metadata = archive.read(about).decode()
    files = [path for path in PACKAGE.rglob("*") if path.is_file() and path.suffix != ".so"]
    wanted = {str(path.relative_to(PACKAGE.parent)) for path in files if "__pycache__" not in path.parts}
    wanted |= {f"driftwise/_machine/{level}.abi3.so" for level in levels}
    if wheel.stat().st_size > MOST_WHEEL * 1e6:
        raise Broken(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, wanted {MOST_WHEEL:g} at most")
    package = {name for name in inside if name.startswith("driftwise/")}
    if package != wanted:
        raise Broken(f"{wheel.name}: missing {sorted(wanted - package)[:5]}, too many {sorted(package - wanted)[:5]}")
    stray = {name for name in inside if not name.startswith(("driftwise/", f"driftwise-{VERSION}.dist-info/"))}
    if stray or not any(name.endswith("licenses/LICENSE") for name in inside):
        raise Broken(f"{wheel.name}: wanted a license and nothing else, got {sorted(stray)[:5]}")
    if f"\nVersion: {VERSION}\n" not in metadata:
        raise Broken(f"{wheel.name}: its version is not that of driftwise/__init__.py, {VERSION}")
    return metadata


def check_wheels(made: dict[str, Path]) -> None:
    """Every wheel, and that all have the same metadata: what is needed where is said by environment markers."""
    levels = {"machine": LEVELS, "pure": (), **{name: one.levels for name, one in FOREIGN.items()}}
    if len({check_wheel(made[kind], levels[kind]) for kind in made if kind != "sdist"}) != 1:
        raise Broken("wheels differ in their metadata")


def check_sdist(sdist: Path) -> None:
    """All that git knows, so that it can be built and tested, and nothing that a build leaves behind."""
    with tarfile.open(sdist) as archive:
        inside = {"/".join(one.name.split("/")[1:]) for one in archive.getmembers() if one.isfile()}
    known = {*run(["git", "ls-files"], cwd=ROOT).splitlines(), "PKG-INFO"}
    if inside != known:
        missing, stray = sorted(known - inside)[:5], sorted(inside - known)[:5]
        raise Broken(f"{sdist.name}: missing {missing}, and git does not know {stray}; commit or ignore it")
    if sdist.stat().st_size > 10e6:
        raise Broken(f"{sdist.name}: {sdist.stat().st_size / 1e6:.1f} MB, wanted 10 at most")


def pythons() -> dict[tuple[int, int], Path]:
    """An interpreter of each version from the oldest up: this one, those on the path, and pyenv's."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    named = [shutil.which(f"python3.{minor}") for minor in range(OLDEST[1], 30)]
    found: dict[tuple[int, int], Path] = {sys.version_info[:2]: Path(sys.executable)}
    for one in [*sorted(root.glob("versions/3.*/bin/python")), *map(Path, filter(None, named))]:
        ask = [one, "-c", "import sys; print(*sys.version_info[:2])"]
        told = subprocess.run(ask, capture_output=True, text=True, check=False).stdout.split()
        if told and (kind := (int(told[0]), int(told[1]))) >= OLDEST:
            found.setdefault(kind, one)
    return dict(sorted(found.items()))


def lowest(extras: Sequence[str]) -> list[str]:
    """Every requirement at the version it begins with."""
    optional = PROJECT["optional-dependencies"]
    wanted = [*PROJECT["dependencies"], *(one for extra in extras for one in optional[extra])]
    named = [one.split(";")[0] for one in wanted if not one.startswith("driftwise")]
    return [re.sub(r"\[[^\]]*\]", "", one).replace(">=", "==") for one in named]


def clean(python: Path, name: str) -> Path:
    """A new environment; its python."""
    folder = WORK / "environments" / name
    run([python, "-m", "venv", "--clear", folder])
    return folder / "bin" / "python"


def tried(python: Path, wheel: Path, extras: Sequence[str], name: str, at: Sequence[str] = ()) -> str:
    """Install the wheel in a clean environment and run the smoke test; what it said."""
    began, inside = time.perf_counter(), clean(python, name)
    installed(inside, f"{wheel}[{','.join(extras)}]" if extras else str(wheel), *at)
    said = run([inside, "-I", SMOKE, VERSION, *extras], cwd=WORK, env=_bare())
    return f"{' '.join(said.split())} ({time.perf_counter() - began:.0f} s)"


def installed(inside: Path, *what: str) -> None:
    run([inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-warn-script-location", *what],
        env=_bare())  # fmt: skip


def tested(python: Path, wheel: Path) -> str:
    """The wheel beside a test runner, without numba: every golden record on every level, the README, hostile states,
    simulations and the service; and how long a first decision takes."""
    inside = clean(python, "tested")
    installed(inside, f"{wheel}[serve,client,plot,logs,postgres]", "pytest", "hypothesis", "pandas",
              "polars", "schemathesis", "scipy")  # fmt: skip
    words = [inside, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *TESTED]
    said = [run(words, cwd=ROOT, env=_bare()).splitlines()[-1]]
    plain = (f"without FMA {one}" for one in played([inside], LEVELS, PLAIN))
    return "; ".join([*said, *firsts(str(inside)), *played([inside], LEVELS, {}), *plain])


def firsts(python: str) -> Iterator[str]:
    """How long it takes from `python` to a first decision, to a server's first answer and to its first decision; and as
    root on a read-only file system without HOME, PATH or anything else in the environment."""
    for name, program in PROGRAMS.items():
        yield told(name, [spent([python, "-I", "-c", program], _bare()) for _ in range(RUNS)])
    answers = [served(python) for _ in range(RUNS)]
    yield told("serve, first answer", [one[0] for one in answers])
    yield told("serve, first decision", [one[1] for one in answers])
    unshare = shutil.which("unshare")
    if os.geteuid() == 0 and unshare:
        with tempfile.TemporaryDirectory() as folder:
            words = [unshare, "--mount", "sh", "-c", READ_ONLY, folder, python, "-I", "-c"]
            refused = subprocess.run([*words, "open('/tmp/first', 'w')"], capture_output=True, check=False, env={})
            if b"Read-only file system" not in refused.stderr:
                raise Broken(f"wanted a file system that cannot be written to, got {refused.stderr[-500:]!r}")
            yield told("read-only, clicks", [spent([*words, PROGRAMS["clicks"]], {}) for _ in range(RUNS)])


def spent(words: list[str], environment: dict[str, str]) -> tuple[float, float]:
    """Wall and CPU seconds of a process that must end well."""
    began = time.perf_counter()
    _, status, usage = os.wait4(os.posix_spawn(words[0], words, environment), 0)
    if status:
        raise Broken(f"{' '.join(words)[:200]} ended with {os.waitstatus_to_exitcode(status)}")
    return time.perf_counter() - began, usage.ru_utime + usage.ru_stime


def told(name: str, seen: Sequence[tuple[float, float]]) -> str:
    """The median of seconds, with the least and the most."""
    walls, cpus = zip(*seen, strict=True)
    spread = f"{statistics.median(walls):.2f} s ({min(walls):.2f}-{max(walls):.2f})"
    return f"{name} {spread}, CPU {statistics.median(cpus):.2f} s"


def served(python: str) -> list[tuple[float, float]]:
    """Wall and CPU seconds of `driftwise serve` to its first answer, and to the first decision of a new stream."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    asks = (
        ("GET", "/readyz", None),
        ("PUT", "/v1/streams/home", {"policy": {"name": "Auto", "dim": 2}, "rewards": [0, 1]}),
        ("POST", "/v1/streams/home/decide", {"id": "a", "arms": [[1, 0], [0, 1]]}),
    )
    with tempfile.TemporaryDirectory() as folder:
        words = [str(Path(python).with_name("driftwise")), "serve", "--db", f"{folder}/a.db", "--port", str(port)]
        began, found = time.perf_counter(), []
        server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=_bare())
        try:
            for method, path, body in asks:
                data, head = None if body is None else json.dumps(body).encode(), {"Content-Type": "application/json"}
                request = urllib.request.Request(f"http://127.0.0.1:{port}{path}", data, head, method=method)
                while True:
                    try:
                        urllib.request.urlopen(request, timeout=10).close()
                        break
                    except OSError:
                        if found or server.poll() is not None or time.perf_counter() - began > 60.0:
                            raise
                        time.sleep(0.01)
                used = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
                found.append((time.perf_counter() - began, sum(map(int, used)) / os.sysconf("SC_CLK_TCK")))
        finally:
            server.terminate()
            server.wait(30)
    return [found[0], found[-1]]


def played(python: Sequence[object], levels: Sequence[str], more: dict[str, str]) -> Iterator[str]:
    """The golden guard on each level: every record to the bit."""
    guard = [*python, "-W", "ignore", ROOT / "tests" / "golden" / "guard.py", "--bits"]
    for level in levels:
        yield f"{level}: {run(guard, cwd=WORK, env=_bare(level) | more).strip()}"


def from_source(python: Path, source: Path, name: str, compiler: bool) -> str:
    """Install the sdist or a folder where there is a C compiler or none, and run the smoke test. Object code that the
    second build made is used again if pip brings the same numba."""
    inside = clean(python, name)
    environment = _bare() | {"PATH": os.environ["PATH"] if compiler else str(inside.parent)}
    environment["DRIFTWISE_KEPT"] = str(WORK / "kept-again")
    run([inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", source], env=environment)
    said = run([inside, "-I", SMOKE, VERSION], cwd=WORK, env=environment)
    ask = "from driftwise._internal.shipped import shipped; print(shipped().level)"
    level = run([inside, "-I", "-c", ask], cwd=WORK, env=environment).strip()
    if compiler == (level == "None"):
        raise Broken(f"{source.name}: machine code {level}")
    return f"{said.strip()}, machine code {level}"


def abroad(name: str, wheel: Path) -> str:
    """The wheel of another platform: installed by pip here, run by its interpreter, which plays the catalogue."""
    began, foreign, target = time.perf_counter(), FOREIGN[name], WORK / "environments" / name / "site-packages"
    kind = run([foreign.python, "-c", "import sys; print(*sys.version_info[:2], sep='.')"]).strip()
    options = {"--platform": foreign.platforms, "--abi": (f"cp{kind.replace('.', '')}", "abi3", "none")}
    words = [word for option, values in options.items() for one in values for word in (option, one)]
    shutil.rmtree(target, ignore_errors=True)
    installed(Path(sys.executable), "--target", str(target), *words, "--python-version", kind, "--implementation", "cp",
              "--only-binary", ":all:", f"{wheel}[serve,logs]", *foreign.at)  # fmt: skip
    said = "; ".join(played([foreign.python], foreign.levels, {"PYTHONPATH": str(target)}))
    return f"Python {kind}, {said} ({time.perf_counter() - began:.0f} s)"


def _bare(level: str = "") -> dict[str, str]:
    """The environment without what would let this checkout or its caches be found; for one level of machine code."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "NUMBA", "DRIFTWISE"))}
    return kept | ({"DRIFTWISE_MACHINE": level} if level else {})


def weights(python: Path) -> dict[str, float]:
    """Megabytes of each distribution that an installation has, the largest first, and of all."""
    ask = "import importlib.metadata as m, json; print(json.dumps({one.name: [str(one.locate_file(file)) for file in"
    found = json.loads(run([python, "-I", "-c", ask + " one.files or ()] for one in m.distributions()}))"]))
    sizes = {
        name: sum(os.path.getsize(one) for one in files if not one.endswith(".pyc") and os.path.exists(one)) / 1e6
        for name, files in found.items() if name not in ("pip", "setuptools")
    }  # fmt: skip
    return {"all": sum(sizes.values()), **dict(sorted(sizes.items(), key=lambda item: -item[1]))}


def check_weights(sizes: dict[str, float]) -> None:
    """The numbers of docs/lab/measured.md are those of this installation, to a tenth or two megabytes."""
    text = (ROOT / "docs" / "lab" / "measured.md").read_text(encoding="utf-8")
    said = re.search(r"(\d+) MB installed without extras.*?numpy (\d+), driftwise (\d+)", text)
    if said is None:
        raise Broken("docs/lab/measured.md: wanted a line `… MB installed without extras …: numpy …, driftwise …`")
    for name, claimed in zip(("all", "numpy", "driftwise"), map(float, said.groups()), strict=True):
        if abs(sizes[name] - claimed) > max(2.0, 0.1 * claimed):
            raise Broken(f"docs/lab/measured.md: {name} weighs {sizes[name]:.0f} MB, and not {claimed:.0f}")
    if sizes["driftwise"] > MOST_INSTALLED:
        raise Broken(f"driftwise weighs {sizes['driftwise']:.1f} MB, wanted {MOST_INSTALLED:g} at most")


def attempts(made: dict[str, Path], quick: bool) -> Iterator[tuple[str, Callable[[], str]]]:
    """What is tried, by name."""
    found = pythons()
    here, first = found[sys.version_info[:2]], min(found)
    at_first = f"Python {first[0]}.{first[1]}"
    plan: list[tuple[str, Path, list[str], list[str]]] = [("no extras", here, [], [])]
    if not quick:
        plan += [(extra, here, [extra], []) for extra in EXTRAS]
        plan.append((f"lowest versions, {at_first}", found[first], [], lowest([])))
        plan.append((f"lowest versions and all extras, {at_first}", found[first], EXTRAS, lowest(EXTRAS)))
        plan += [(f"Python {one[0]}.{one[1]}", python, [], []) for one, python in found.items() if python != here]
    for name, python, extras, at in plan:
        folder = re.sub(r"[^a-z0-9.]+", "-", name.lower())
        yield name, partial(tried, python, made["machine"], extras, folder, at)
    if not quick:
        yield "tests without numba", partial(tested, here, made["machine"])
        yield "the pure wheel without numba", partial(tried, here, made["pure"], [], "pure")
        yield "the pure wheel with numba", partial(tried, here, made["pure"], ["jit"], "pure-jit")
        yield "the sdist with a C compiler", partial(from_source, here, made["sdist"], "sdist", True)
        yield "pip install . with a C compiler", partial(from_source, here, ROOT, "folder", True)
        yield "the sdist without a C compiler", partial(from_source, here, made["sdist"], "sdist-without", False)
        for name in FOREIGN.keys() & made.keys():
            yield name, partial(abroad, name, made[name])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one environment, without extras")
    quick = parser.parse_args().quick
    began = time.perf_counter()
    WORK.mkdir(parents=True, exist_ok=True)
    first, second = built(ROOT / "dist"), built(WORK / "again")
    for kind, one in first.items():
        digest, again = (hashlib.sha256(path.read_bytes()).hexdigest() for path in (one, second[kind]))
        if digest != again:
            raise Broken(f"{one.name}: two builds differ")
        print(f"{one.name}: {one.stat().st_size / 1e6:.1f} MB, sha256 {digest}, twice", flush=True)
    check_wheels(first)
    check_sdist(first["sdist"])
    run([sys.executable, "-m", "twine", "check", "--strict", *first.values()])
    print("contents, one version and twine: nothing to mend", flush=True)
    for name, one in FOREIGN.items():
        if not one.python:
            print(f"no wheel for {name}: {one.variable} names no interpreter to try it in", flush=True)
    failed = 0
    for name, attempt in attempts(first, quick):
        try:
            print(f"{name}: {attempt()}", flush=True)
        except Broken as broken:
            failed += 1
            print(f"{name}: FAILED\n{broken}", flush=True)
    sizes = weights(WORK / "environments" / "no-extras" / "bin" / "python")
    print("megabytes without extras: " + ", ".join(f"{name} {size:.0f}" for name, size in sizes.items() if size >= 0.5))
    shutil.rmtree(WORK / "environments", ignore_errors=True)
    check_weights(sizes)
    if failed:
        raise Broken(f"{failed} environments failed")
    print(f"to be trusted, after {time.perf_counter() - began:.0f} s")


if __name__ == "__main__":
    try:
        main()
    except Broken as broken:
        sys.exit(f"dist: {broken}")
