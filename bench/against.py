"""Every side of bench/guard.py's lines in an older revision and in this checkout, in turns, in one run.

    python bench/against.py REV                 # exit code 1 if a median of new/old exceeds 1.05
    python bench/against.py REV --only tiles    # lines whose name holds that
    python bench/against.py REV --first         # CPU seconds of a first use, each from an empty cache
    python bench/against.py REV --first --rounds 20000   # the same with rounds that are too many to run as Python
    python bench/against.py REV --keep FOLDER   # keep the old sources and what was compiled of them for the next run

Two long-lived processes answer over pipes, each with the sources, the bench/guard.py and the compiled code of its side.
A pair is one call of each, the older first in every second pair; a side's number is the median of its pairs' ratios.
A side that is slower is measured again, longer, at once and after all others, as the guard does.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import resource
import statistics
import subprocess
import sys
import tarfile
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parents[1]

SIMULATE = """
import driftwise as dw
world = dw.worlds.Turn(dim=2, arms=50, horizon=ROUNDS, reward="{reward}")
dw.simulate({{"it": dw.make("{name}", **world.facts)}}, world, trials=1, jobs=1, progress=False)
"""
DECIDE = """
import driftwise as dw
agent = dw.Agent.{made}
agent.reward(agent.decide([[1.0, 0.0], [0.0, 1.0], [0.5, 0.5]]).id, 1.0)
"""
FIRST = {
    **{f"simulate {name}": SIMULATE.format(name=name, reward=reward) for name, reward in (
        ("LB-WeightUCB", "gaussian"), ("GLB-WeightUCB", "bernoulli"), ("SCB-WeightUCB", "bernoulli"),
        ("Auto", "gaussian"))},
    "decide and reward, for_values": DECIDE.format(made="for_values(2, -1.0, 1.0)"),
    "decide and reward, for_clicks": DECIDE.format(made="for_clicks(2)"),
}  # fmt: skip


def environment(checkout: Path, cache: str | None) -> dict[str, str]:
    """The environment of a side's process: its sources come first, bytecode is kept, and compiled code is its own."""
    paths = [str(checkout / "src"), *filter(None, [os.environ.get("PYTHONPATH")])]
    own = {"PYTHONPATH": os.pathsep.join(paths), "OPENBLAS_NUM_THREADS": "1"}
    here = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**here, **own, **({} if cache is None else {"NUMBA_CACHE_DIR": cache})}


def unpacked(revision: str, folder: Path) -> Path:
    """The files of a revision, in a folder of its own."""
    commit = subprocess.run(
        ["git", "rev-parse", "--verify", f"{revision}^{{commit}}"], cwd=HERE, check=True, capture_output=True, text=True
    ).stdout.strip()
    target = folder / commit
    if not target.exists():
        data = subprocess.run(["git", "archive", commit, "src", "bench"], cwd=HERE, check=True, capture_output=True)
        part = folder / f"{commit}.part"
        with tarfile.open(fileobj=io.BytesIO(data.stdout)) as files:
            files.extractall(part, filter="data")
        part.rename(target)
    return target


def work(most: int) -> None:
    """The process of one checkout: it lists its sides, then measures those whose number it gets."""
    import driftwise

    checkout = Path(os.environ["PYTHONPATH"].split(os.pathsep)[0])
    assert Path(str(driftwise.__file__)).is_relative_to(checkout), f"{driftwise.__file__} is not of {checkout}"
    sys.path.insert(0, str(checkout.parent / "bench"))
    import guard

    rounds = guard.rounds
    guard.rounds = lambda name, d, n, T, *more, **options: rounds(name, d, n, min(T, most), *more, **options)
    found: dict[str, Callable[[], float]] = {}
    for line in guard.lines(None):
        found |= {f"{line.name}: {number}": side for number, side in (("one", line.one), ("other", line.other))}
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # printed text is not part of the answer
    print(json.dumps(list(found)), file=answers, flush=True)
    for name in sys.stdin:
        print(json.dumps(found[json.loads(name)]()), file=answers, flush=True)


class Side:
    """A process that measures one checkout."""

    def __init__(self, checkout: Path, cache: str | None, most: int) -> None:
        command = [sys.executable, str(Path(__file__).resolve()), "--work", "--most", str(most), "-"]
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment(checkout, cache)
        )
        self.names: list[str] = self._answer()

    def _answer(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            sys.exit("a side ended before it answered")
        return json.loads(line)

    def measure(self, name: str) -> float:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(name) + "\n")
        self._process.stdin.flush()
        return float(self._answer())

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


def in_turns(old: Callable[[], float], new: Callable[[], float], repeats: int) -> tuple[float, float, float]:
    """Medians of the older and the newer, and of the ratios of their pairs."""
    pairs = []
    for number in range(repeats):
        if number % 2:
            second = new()
            pairs.append((old(), second))
        else:
            pairs.append((old(), new()))
    olds, news = (statistics.median(one) for one in zip(*pairs, strict=True))
    return olds, news, statistics.median(after / before for before, after in pairs)


def is_slower(name: str, measured: tuple[float, float, float], margin: float, unit: float, word: str) -> bool:
    """Print one comparison; whether it exceeds the margin."""
    old, new, ratio = measured
    slower = "SLOWER" if ratio > margin else ""
    print(f"{ratio:7.3f}  {old * unit:10.2f} -> {new * unit:10.2f} {word}  {slower:6}  {name}", flush=True)
    return bool(slower)


def sides(old: Path, cache: str, options: argparse.Namespace) -> list[str]:
    """Compare all sides that both have. Returns the names of those that are slower each time."""
    before, after = Side(old, cache, options.most), Side(HERE, options.cache, options.most)
    try:
        named = [name for name in after.names if name in before.names and options.only in name]
        for name in set(before.names) ^ set(after.names):
            print(f"only one side has it: {name}", file=sys.stderr)

        def slow(name: str, repeats: int) -> bool:
            found = in_turns(lambda: before.measure(name), lambda: after.measure(name), repeats)
            return is_slower(name, found, options.margin, 1e6, "µs")

        for name in named:  # compiled, loaded and warm
            before.measure(name), after.measure(name)
        repeats = options.repeats or 9
        late = [name for name in named if slow(name, repeats) and slow(name, 2 * repeats)]
        return [name for name in late if slow(name, 3 * repeats)]
    finally:
        before.close()
        after.close()


def first_use(checkout: Path, program: str) -> float:
    """CPU seconds of a program with an empty cache of compiled code."""
    with tempfile.TemporaryDirectory() as empty:
        begun = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", program], check=True, env=environment(checkout, empty),
                       stderr=subprocess.DEVNULL)  # fmt: skip
        ended = resource.getrusage(resource.RUSAGE_CHILDREN)
    return ended.ru_utime + ended.ru_stime - begun.ru_utime - begun.ru_stime


def firsts(old: Path, options: argparse.Namespace) -> list[str]:
    """Compare first uses; the names of those that cost more."""
    late = []
    for name, text in FIRST.items():
        program = text.replace("ROUNDS", str(options.rounds))
        if options.only in name:
            found = in_turns(
                lambda p=program: first_use(old, p), lambda p=program: first_use(HERE, p), options.repeats or 1
            )
            late += [name] if is_slower(name, found, options.margin, 1.0, "s") else []
    return late


@contextmanager
def folder_for(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() if keep is None else nullcontext(str(keep.resolve())) as folder:
        yield Path(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("revision", metavar="REV")
    parser.add_argument("--only", default="", metavar="WORD", help="names that hold it")
    parser.add_argument("--first", action="store_true", help="first uses instead of the guard's lines")
    parser.add_argument("--rounds", type=int, default=50, help="rounds of a first simulate")
    parser.add_argument("--repeats", type=int, help="pairs: 9 of a side, 1 of a first use")
    parser.add_argument("--margin", type=float, default=1.05, help="the largest median of new/old")
    parser.add_argument("--most", type=int, default=10**9, metavar="ROUNDS", help="rounds of a side at the most")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where old sources stay")
    parser.add_argument("--cache", metavar="FOLDER", help="compiled code of this checkout, if not where it always is")
    parser.add_argument("--work", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        return work(options.most)
    with folder_for(options.keep) as folder:
        old = unpacked(options.revision, folder)
        late = firsts(old, options) if options.first else sides(old, str(folder / "compiled"), options)
    if late:
        sys.exit(f"more than {options.margin:g} times {options.revision}: {', '.join(late)}")


if __name__ == "__main__":
    main()
