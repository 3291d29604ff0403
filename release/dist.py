"""A release that can be trusted: python release/dist.py [--quick], into dist/ and build/dist.

Builds a wheel with machine code, a pure wheel and the sdist twice, which must give the same bytes; looks into them;
installs the wheel in clean environments (without extras, with each, at the lowest versions that pyproject claims, on
every Python from 3.11 up that this machine has) and runs release/smoke.py there; without numba, on every level of
machine code, also tests/golden/guard.py, which plays the whole catalogue, and with a test runner the README's examples,
hostile states and the service; installs the pure wheel with and without numba; holds docs/installing.md to what an
installation weighs. --quick installs once, without extras.
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


class Made(NamedTuple):
    """What is released."""

    wheel: Path
    pure: Path
    sdist: Path


def built(folder: Path) -> Made:
    """Wheels and sdist in a folder of their own."""
    shutil.rmtree(folder, ignore_errors=True)
    for kind, what in (("machine", ["--wheel", "--sdist"]), ("pure", ["--wheel"])):
        environment = {**os.environ, "SOURCE_DATE_EPOCH": EPOCH, "DRIFTWISE_WHEEL": kind}
        run([sys.executable, "-m", "build", "--no-isolation", *what, "--outdir", folder, ROOT], env=environment)
    (wheel,), (pure,), (sdist,) = (folder.glob(one) for one in ("*-abi3-*.whl", "*-any.whl", "*.tar.gz"))
    return Made(wheel, pure, sdist)


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def check_wheel(wheel: Path) -> None:
    """All of the package and nothing else: sources, data, py.typed, the license, and one version."""
    with zipfile.ZipFile(wheel) as archive:
        inside = {name for name in archive.namelist() if not name.endswith("/")}
        about = next(name for name in inside if name.endswith(".dist-info/METADATA"))
        metadata = archive.read(about).decode()
    source = ROOT / "src"
    wanted = {
        str(path.relative_to(source)) for path in (source / "driftwise").rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and path.suffix != ".so"
    }  # fmt: skip
    if "-abi3-" in wheel.name:
        wanted |= {f"driftwise/_machine/{level}.abi3.so" for level in LEVELS}
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
    """Install the wheel in a clean environment and run the smoke test, without extras on every level; what it said."""
    began, inside = time.perf_counter(), clean(python, name)
    constraints = WORK / f"{name}.txt"
    constraints.write_text("\n".join(at) + "\n")
    installed(inside, f"{wheel}[{','.join(extras)}]" if extras else str(wheel), "--constraint", str(constraints))
    said = run([inside, "-I", ROOT / "release" / "smoke.py", version(), *extras], cwd=WORK, env=_bare())
    if at and not extras:
        guard = [inside, "-W", "ignore", ROOT / "tests" / "golden" / "guard.py", "--bits"]
        said += "; " + "; ".join(f"{one}: {run(guard, cwd=WORK, env=_bare(one))}" for one in LEVELS)
    return f"{' '.join(said.split())} ({time.perf_counter() - began:.0f} s)"


def installed(inside: Path, *what: str) -> None:
    run([inside, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-warn-script-location", *what],
        env=_bare())  # fmt: skip


def tested(python: Path, wheel: Path) -> str:
    """The wheel beside a test runner, without numba: the README, hostile states, simulations and the service."""
    inside = clean(python, "tested")
    installed(inside, f"{wheel}[serve,client,plot,logs,postgres]", "pytest", "hypothesis", "pandas", "polars", "scipy")
    words = [inside, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-m", "not slow", *TESTED]
    return run(words, cwd=ROOT, env=_bare()).splitlines()[-1]


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
    """The numbers of docs/installing.md are those of this installation, to a tenth or two megabytes."""
    text = (ROOT / "docs" / "installing.md").read_text(encoding="utf-8")
    said = re.search(r"(\d+) MB without extras.*?numpy (\d+), driftwise (\d+)", text, flags=re.S)
    if said is None:
        raise Broken("docs/installing.md: wanted a sentence `… MB without extras …: numpy …, driftwise …`")
    for name, claimed in zip(("all", "numpy", "driftwise"), map(float, said.groups()), strict=True):
        if abs(sizes[name] - claimed) > max(2.0, 0.1 * claimed):
            raise Broken(f"docs/installing.md: {name} weighs {sizes[name]:.0f} MB, and not {claimed:.0f}")
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


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one environment, without extras")
    quick = parser.parse_args().quick
    began = time.perf_counter()
    WORK.mkdir(parents=True, exist_ok=True)
    first, second = built(ROOT / "dist"), built(WORK / "again")
    for one, other in zip(first, second, strict=True):
        if digest(one) != digest(other):
            raise Broken(f"{one.name}: two builds differ")
        print(f"{one.name}: {one.stat().st_size / 1e6:.1f} MB, sha256 {digest(one)}, twice", flush=True)
    check_wheel(first.wheel)
    check_wheel(first.pure)
    check_sdist(first.sdist)
    run([sys.executable, "-m", "twine", "check", "--strict", *first])
    print("contents, one version and twine: nothing to mend", flush=True)
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
