"""A release that can be trusted: python release/dist.py [--quick], into dist/ and build/dist.

Builds a wheel with machine code, a pure wheel and the sdist twice, which must give the same bytes; looks into them;
installs the wheel in clean environments (without extras, with each, at the lowest versions that pyproject claims, on
every Python from 3.11 up that this machine has) and runs release/smoke.py there; without numba also release/first.py,
tests/golden/guard.py on every level of machine code and with the C library's FMA variants off, and with a test runner
the README's examples, hostile states and the service; installs the pure wheel with and without numba, the sdist with
and without a C compiler, and this folder (pip install .); holds docs/lab/measured.md to what an installation weighs.
--quick installs once, without extras.

Wheels for aarch64 and musl are built where DRIFTWISE_AARCH64 and DRIFTWISE_MUSL name an interpreter that runs here
(release/pythons.sh makes both), because code that was never run is not released. They play the catalogue there.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tarfile
import time
import tomllib
import zipfile
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
WORK = ROOT / "build" / "dist"
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
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


class Made(NamedTuple):
    """What is released."""

    wheel: Path
    pure: Path
    sdist: Path
    foreign: dict[str, Path]

    @property
    def files(self) -> list[Path]:
        return [self.wheel, self.pure, self.sdist, *self.foreign.values()]


def built(folder: Path) -> Made:
    """Wheels and sdist in a folder of their own; wheels share what is compiled with none of another folder."""
    shutil.rmtree(folder, ignore_errors=True)
    shutil.rmtree(WORK / f"kept-{folder.name}", ignore_errors=True)
    kinds = ["machine", "pure", *(name for name, one in FOREIGN.items() if one.python)]
    made = {}
    for kind in kinds:
        kept = {"DRIFTWISE_WHEEL": kind, "DRIFTWISE_KEPT": str(WORK / f"kept-{folder.name}")}
        environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH, **kept}
        what = ["--wheel", *(["--sdist"] if kind == "pure" else [])]
        run([sys.executable, "-m", "build", "--no-isolation", *what, "--outdir", folder / kind, ROOT], env=environment)
        (wheel,) = (folder / kind).glob("*.whl")
        made[kind] = wheel.replace(folder / wheel.name)
    (sdist,) = (folder / "pure").glob("*.tar.gz")
    sdist = sdist.replace(folder / sdist.name)
    for kind in kinds:
        (folder / kind).rmdir()
    return Made(made["machine"], made["pure"], sdist, {kind: made[kind] for kind in kinds[2:]})


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check_wheel(wheel: Path, levels: Sequence[str]) -> str:
    """All of the package and nothing else: sources, data, py.typed, the license, and one version. Its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if not name.endswith("/")}
        about = next(name for name in inside if name.endswith(".dist-info/METADATA"))
        metadata = archive.read(about).decode()
    source = ROOT / "src"
    wanted = {
        str(path.relative_to(source)) for path in (source / "driftwise").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".so"
    }  # fmt: skip
    wanted |= {f"driftwise/_machine/{level}.abi3.so" for level in levels}
    if wheel.stat().st_size > MOST_WHEEL * 1e6:
        raise Broken(f"{wheel.name}: {wheel.stat().st_size / 1e6:.1f} MB, wanted {MOST_WHEEL:g} at most")
    package = {name for name in inside if name.startswith("driftwise/")}
    if package != wanted:
        raise Broken(f"{wheel.name}: missing {sorted(wanted - package)[:5]}, too many {sorted(package - wanted)[:5]}")
    stray = {name for name in inside if not name.startswith(("driftwise/", f"driftwise-{version()}.dist-info/"))}
    if stray or "driftwise/py.typed" not in inside or not any(name.endswith("licenses/LICENSE") for name in inside):
        raise Broken(f"{wheel.name}: wanted py.typed, a license and nothing else, got {sorted(stray)[:5]}")
    if f"\nVersion: {version()}\n" not in metadata:
        raise Broken(f"{wheel.name}: its version is not that of driftwise/__init__.py, {version()}")
    return metadata


def check_wheels(made: Made) -> None:
    """Every wheel, and that all have the same metadata: what is needed where is said by environment markers."""
    levels = {made.wheel: LEVELS, made.pure: ()} | {made.foreign[one]: FOREIGN[one].levels for one in made.foreign}
    if len({check_wheel(wheel, levels[wheel]) for wheel in levels}) != 1:
        raise Broken("wheels differ in their metadata")


def check_sdist(sdist: Path) -> None:
    """What is needed to build and test it, and nothing that a build leaves behind."""
    with tarfile.open(sdist) as archive:
        inside = {"/".join(name.split("/")[1:]) for name in archive.getnames()}
    needed = {"pyproject.toml", "README.md", "LICENSE", "CHANGELOG.md", "Makefile", "src/driftwise/py.typed"}
    needed |= {"release/hook.py", "release/machine.py"}
    missing = needed - inside
    left = {name for name in inside if re.search(r"(^|/)(\.venv|build|results|__pycache__|\.git)(/|$)", name)}
    if missing or left or not any(name.startswith("tests/") for name in inside):
        raise Broken(f"{sdist.name}: missing {sorted(missing)}, left behind {sorted(left)[:5]}")
    known = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if known.returncode == 0:  # in a checkout: what git does not know is nobody's to release
        stray = inside - {*known.stdout.splitlines(), "PKG-INFO"}
        if stray:
            raise Broken(f"{sdist.name}: git does not know {sorted(stray)[:5]}; commit or ignore it")
    if sdist.stat().st_size > 10e6:
        raise Broken(f"{sdist.name}: {sdist.stat().st_size / 1e6:.1f} MB, wanted 10 at most")


def version() -> str:
    """The version, which stands in one place."""
    text = (ROOT / "src" / "driftwise" / "__init__.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "([^"]+)"$', text, flags=re.M)
    if found is None:
        raise Broken("driftwise/__init__.py: wanted __version__")
    return found[1]


def pythons() -> dict[tuple[int, int], Path]:
    """An interpreter of each version from the oldest up: this one, those on the path, and pyenv's."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    named = [shutil.which(f"python3.{minor}") for minor in range(OLDEST[1], 30)]
    kept = sorted(root.glob("versions/3.*/bin/python"))
    candidates = [Path(sys.executable), *kept, *(Path(one) for one in named if one)]
    ask = "import sys; print(*sys.version_info[:2])"
    found: dict[tuple[int, int], Path] = {}
    for one in candidates:
        asked = subprocess.run([one, "-c", ask], capture_output=True, text=True, check=False)
        if asked.returncode == 0:
            major, minor = map(int, asked.stdout.split())
            if (major, minor) >= OLDEST:
                found.setdefault((major, minor), one)
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
    shutil.rmtree(folder, ignore_errors=True)
    run([python, "-m", "venv", folder])
    return folder / "bin" / "python"


def tried(python: Path, wheel: Path, extras: Sequence[str], name: str, at: Sequence[str] = ()) -> str:
    """Install the wheel in a clean environment and run the smoke test; what it said."""
    began, inside = time.perf_counter(), clean(python, name)
    constraints = WORK / f"{name}.txt"
    constraints.write_text("\n".join(at) + "\n")
    installed(inside, f"{wheel}[{','.join(extras)}]" if extras else str(wheel), "--constraint", str(constraints))
    said = run([inside, "-I", ROOT / "release" / "smoke.py", version(), *extras], cwd=WORK, env=_bare())
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
    said += run([sys.executable, ROOT / "release" / "first.py", inside], cwd=WORK, env=_bare()).splitlines()
    plain = [f"without FMA {one}" for one in played([inside], LEVELS, PLAIN)]
    return "; ".join([*said, *played([inside], LEVELS, {}), *plain])


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
    said = run([inside, "-I", ROOT / "release" / "smoke.py", version()], cwd=WORK, env=environment)
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


def weights(python: Path) -> Iterator[tuple[str, float]]:
    """Megabytes of each folder that an installation has, the largest first, and all."""
    (packages,) = (python.parent.parent / "lib").glob("python3.*/site-packages")
    own = ("pip", "setuptools", "_distutils_hack", "pkg_resources", "distutils-precedence.pth")
    sizes: dict[str, float] = {}
    for path in packages.iterdir():
        name = path.name.split("-")[0].removesuffix(".libs").removesuffix(".py")
        if name in own or name == "__pycache__":
            continue
        files = [path] if path.is_file() else [one for one in path.rglob("*") if one.is_file()]
        kept = [one for one in files if "__pycache__" not in one.parts]
        sizes[name] = sizes.get(name, 0.0) + sum(one.stat().st_size for one in kept) / 1e6
    yield "all", sum(sizes.values())
    yield from sorted(sizes.items(), key=lambda item: -item[1])


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


def plan(quick: bool) -> Iterator[tuple[Path, list[str], str, list[str]]]:
    """Interpreter, extras, name and constraints of each environment."""
    found = pythons()
    here = found[sys.version_info[:2]]
    yield here, [], "no extras", []
    if quick:
        return
    for extra in EXTRAS:
        yield here, [extra], extra, []
    first = min(found)
    yield found[first], [], f"lowest versions, Python {first[0]}.{first[1]}", lowest([])
    yield found[first], EXTRAS, f"lowest versions and all extras, Python {first[0]}.{first[1]}", lowest(EXTRAS)
    for (major, minor), python in found.items():
        if python != here:
            yield python, [], f"Python {major}.{minor}", []


def attempts(made: Made, quick: bool) -> Iterator[tuple[str, Callable[[], str]]]:
    """What is tried, by name."""
    for python, extras, name, at in plan(quick):
        folder = re.sub(r"[^a-z0-9.]+", "-", name.lower())
        yield name, partial(tried, python, made.wheel, extras, folder, at)
    if not quick:
        here = pythons()[sys.version_info[:2]]
        yield "tests without numba", partial(tested, here, made.wheel)
        yield "the pure wheel without numba", partial(tried, here, made.pure, [], "pure")
        yield "the pure wheel with numba", partial(tried, here, made.pure, ["jit"], "pure-jit")
        yield "the sdist with a C compiler", partial(from_source, here, made.sdist, "sdist", True)
        yield "pip install . with a C compiler", partial(from_source, here, ROOT, "folder", True)
        yield "the sdist without a C compiler", partial(from_source, here, made.sdist, "sdist-without", False)
        for name, wheel in made.foreign.items():
            yield name, partial(abroad, name, wheel)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one environment, without extras")
    quick = parser.parse_args().quick
    began = time.perf_counter()
    WORK.mkdir(parents=True, exist_ok=True)
    first, second = built(ROOT / "dist"), built(WORK / "again")
    for one, other in zip(first.files, second.files, strict=True):
        if digest(one) != digest(other):
            raise Broken(f"{one.name}: two builds differ")
        print(f"{one.name}: {one.stat().st_size / 1e6:.1f} MB, sha256 {digest(one)}, twice", flush=True)
    check_wheels(first)
    check_sdist(first.sdist)
    run([sys.executable, "-m", "twine", "check", "--strict", *first.files])
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
    sizes = dict(weights(WORK / "environments" / "no-extras" / "bin" / "python"))
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
