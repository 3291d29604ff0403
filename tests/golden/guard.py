"""The guard: arms, regret and final sums of every row of the catalogue, stored and compared.

    python tests/golden/guard.py                # compare with the stored records
    python tests/golden/guard.py --only MASTER  # only records whose name contains that
    python tests/golden/guard.py --bits         # compare bits, whatever the platform
    python tests/golden/guard.py --write        # store new records; say why in the CHANGELOG

engines.py, sets.py, lessons.py and agents.py add records of their own, as seen.py says: engines that are forced,
continuous sets, late lessons, folds, states that are read, and agents.

A policy is *played* by compiled rounds against a tape, and *lived with* a call at a time: rewards come late, in heaps
or not at all, and time passes without any. The platform is kept beside them. Elsewhere the arms have to be equal and
the sums within 1e-12; --bits asks for equal bits there too, but for what NumPy rounds (ROUNDED). What BLAS rounds is
close everywhere and promised to the bit nowhere: `dw.sums` (CLOSE_ONLY), and what drift() predicts again, which stands
among the sums of an agent.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import platform
import subprocess
import sys
import warnings
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path

import numpy as np

os.environ.setdefault("DRIFTWISE_PATIENCE", "0")  # the records are of compiled code
FOLDER = Path(__file__).resolve().parent
KEPT = FOLDER / "catalogue.json"
SUMS = FOLDER / "catalogue.npz"
WIDER_KEPT, WIDER_SUMS = FOLDER / "wider.json", FOLDER / "wider.npz"
DIMS = (1, 2, 5)
ROUNDS = 200
KNOWN = {"path_length": 1.5, "changes": 2}
# Only sums: an estimate is solved to a tolerance, and elsewhere may stop a step earlier.
GROUPS = ("G", "twin", "b", "mean", "spread")
# What NumPy rounds, by the beginning of a record's name: a caller's own function that asks it for sines. With another
# NumPy, C library or processor these are other bits.
ROUNDED = {"set: curve, own": {"numbers", "sums"}}
# What BLAS rounds: sums of logs by matrix products. The library chooses its code by processor, and OPENBLAS_CORETYPE.
CLOSE_ONLY = {"sums: ": {"sums"}}
EXACT = 1e-12  # how close sums are without a search


def here() -> str:
    """The things on which bits depend besides our own code."""
    try:
        features = Path("/proc/cpuinfo").read_text().split("flags", 1)[1].split("\n", 1)[0].split()
    except (OSError, IndexError):
        features = []
    vectors = [one for one in ("fma", "avx2", "avx512f") if one in features]
    versions = [f"{name} {version(name)}" for name in ("numpy", "numba", "llvmlite") if find_spec(name)]
    return ", ".join([sys.platform, platform.machine(), *platform.libc_ver(), *vectors, *versions])


def policies(dim: int, rounds: int) -> dict[str, object]:
    """Every row of the catalogue, and further points."""
    import driftwise as dw

    known = {"dim": dim, "horizon": rounds, **KNOWN}
    made = {row["name"]: dw.make(row["name"], **known) for row in dw.catalogue()}
    made["D-LinUCB as published"] = dw.make("D-LinUCB", **known, two_matrix="as-published")
    made["D-LinUCB with a window"] = dw.make("D-LinUCB", **known, memory=dw.Window(20))
    made["D-LinUCB with restarts"] = dw.make("D-LinUCB", **known, memory=dw.Restart(30))
    made["LinearUCB with a window"] = dw.make("LB-WeightUCB", **known, memory=dw.Window(20.5, capacity=15))
    made["MASTER that tests often"] = dw.make("MASTER+LogUCB1", **known, n0=2, test_scale=1e-4)
    made["MASTER that tests often, linear"] = dw.make("MASTER+OFUL", **known, n0=2, test_scale=1e-3)
    made["a bank of two, exact"] = dw.make("Bank+SCB-WeightUCB", **known, memories=(8.0, 64.0), estimate="exact")
    made["a bank of two matrices"] = dw.research.FadeBank(
        base=dw.LinearUCB(dim=dim, memory=dw.Keep(), lam=1.0, delta=0.01, two_matrix="correct"), memories=(8.0, 64.0)
    )
    made["SCB in one pass"] = dw.make("SCB-WeightUCB", **known, estimate="one-pass")
    made["GLB in one pass, small ball"] = dw.make("GLB-WeightUCB", **known, estimate="one-pass", S=0.2)
    made["GLB, small ball"] = dw.make("GLB-WeightUCB", **known, S=0.2, lam=0.3)
    made["SCB, small ball, restarts"] = dw.make("SCB-RestartUCB", **known, S=0.2, lam=0.3)
    made["GLB with a probit link"] = dw.make("GLB-WeightUCB", **known, link="probit")
    made["GLB with counts"] = dw.make("GLB-WeightUCB", **known, link="poisson", R=1.0)
    made["GLB, identity"] = dw.make("GLB-WeightUCB", **known, link="identity", S=0.3)
    made["BVD, ties to the origin"] = dw.make("BVD-GLM-UCB", **known, tie="origin")
    made["SCB-PW, convex"] = dw.make("SCB-PW-WeightUCB", **known, set="convex")
    return made


def world(policy: object, dim: int, rounds: int) -> object:
    """A drifting world with rewards that the policy accepts."""
    import driftwise as dw

    link = getattr(getattr(policy, "base", policy), "link", "identity")
    reward = {"identity": "gaussian", "poisson": "poisson"}.get(link, "bernoulli")
    return dw.worlds.Jumps(
        dim=dim, arms=10, horizon=rounds, jumps=3, reward=reward, link=link, norm="clip", noise=0.5, fresh=dim == 5
    )


def summed(state: object) -> np.ndarray:
    """The final sums as one row of numbers; of matrices the lower triangle, because the upper one is not updated."""
    parts = []
    for name in GROUPS:
        value = getattr(state, name, None)
        if value is not None and value.size:
            parts.append((value[..., *np.tril_indices(value.shape[-1])] if value.ndim == 3 else value).ravel())
    numbers = [state.clock, state.observations, state.squares, state.dropped, state.lost]
    return np.concatenate([*parts, np.array(numbers, dtype=np.float64)])


def estimates(state: object) -> bytes:
    """Further numbers whose bits must not change: θ̂ and the point shown."""
    values = (getattr(state, name, None) for name in ("theta", "shown"))
    return b"".join(value.tobytes() for value in values if value is not None)


def played(policy: object, place: object) -> tuple[list[int], bytes, object]:
    """Compiled rounds: arms, regret, the last state. A policy that only steps is stepped."""
    import driftwise as dw
    from driftwise.kernels.chance import Rounds

    state = policy.start(seed=7)
    if policy.stepped:
        result = dw.simulate({"it": policy}, place, trials=1, jobs=1)
        return result.arms["it"][0].tolist(), result.regret["it"].tobytes(), state
    arms, regret, total = [], [], 0.0
    for tape in place.tapes(3, 0):
        chosen, lost = np.empty(len(tape.theta), dtype=np.int64), np.empty(len(tape.theta))
        rounds = Rounds(*tape, place.link_code, place.reward_code, float(place.noise))
        policy.play(state, rounds, total, chosen, lost)
        total = float(lost[-1])
        arms += chosen.tolist()
        regret.append(lost)
    return arms, np.concatenate(regret).tobytes(), state


def lived(policy: object, place: object, rounds: int) -> tuple[list[int], bytes, object]:
    """Choices one call at a time, with rewards that come late, in bursts, or never."""
    rng = np.random.default_rng(11)
    state, arms, scores, waiting = policy.start(seed=7), [], [], []
    done = 0
    for tape in place.tapes(3, 0):
        for t in range(min(len(tape.theta), rounds - done)):
            columns = tape.arms[t if len(tape.arms) > 1 else 0]
            rows = np.ascontiguousarray(columns.T)
            choice = policy.choose(state, rows)
            arms.append(int(choice.arm))
            scores.append(choice.score)
            mean = float(rows[choice.arm] @ tape.theta[t])
            reward = float(rng.random() < 0.5 + 0.4 * np.tanh(mean))
            fate = rng.random()
            if fate < 0.6:
                policy.learn(state, rows, choice.arm, reward)
            elif fate < 0.85:
                waiting.append((done + t, rows, choice.arm, reward))
                policy.advance(state)
            else:
                policy.advance(state, 1.5)
            if len(waiting) == 4:
                for born, old, arm, late in waiting:
                    policy.learn(state, old, arm, late, ticks=0.0, age=float(min(done + t - born, 9)))
                waiting = []
        done += len(tape.theta)
    return arms, np.array(scores).tobytes(), state


Records = tuple[dict[str, dict[str, str]], dict[str, np.ndarray]]


def records(dims: tuple[int, ...], rounds: int, only: str = "") -> Records:
    """For every policy, dimension and kind of run: arms, hashes of regret and of sums; and the sums themselves."""
    seen: dict[str, dict[str, str]] = {}
    sums: dict[str, np.ndarray] = {}
    for dim in dims:
        for name, policy in policies(dim, rounds).items():
            place = world(policy, dim, rounds)
            for way in ("played", "lived"):
                key = f"{name}, d = {dim}, {way}"
                if only not in key:
                    continue
                run = played(policy, place) if way == "played" else lived(policy, place, rounds)
                arms, numbers, state = run
                row = summed(state)
                sums[key] = row
                seen[key] = {
                    "arms": "".join(map(str, arms)),
                    "numbers": hashlib.sha256(numbers).hexdigest()[:16],
                    "sums": hashlib.sha256(row.tobytes() + estimates(state)).hexdigest()[:16],
                }
    return seen, sums


def wider(only: str = "", without: tuple[str, ...] = ()) -> Records:
    """The records beside the catalogue; without those whose names begin so."""
    from golden import agents, engines, lessons, sets
    from golden.seen import kept

    seen: dict[str, dict[str, str]] = {}
    sums: dict[str, np.ndarray] = {}
    for module in (engines, sets, lessons, agents):
        for key, run in module.cases():
            if only in key and not key.startswith(without):
                assert key not in seen, key
                try:
                    found = run()
                except Exception as error:  # a record that cannot be made is reported like one that differs
                    seen[key], sums[key] = {"arms": f"{type(error).__name__}: {error}"}, np.zeros(0)
                else:
                    seen[key], sums[key] = kept(found), found.sums
    return seen, sums


def interpreted(dims: tuple[int, ...], rounds: int) -> dict[str, dict[str, str]]:
    """The same records from the same sources, not compiled."""
    ask = f"import json; from golden import guard; print(json.dumps(guard.records({dims!r}, {rounds})[0]))"
    paths = os.pathsep.join([str(FOLDER.parent), *sys.path])
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1", "PYTHONPATH": paths}
    done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-2000:]
    return dict(json.loads(done.stdout))


def differences(
    seen: dict[str, dict[str, str]], sums: dict[str, np.ndarray], kept: dict[str, dict[str, str]], there: str,
    stored_in: Path = SUMS, close: float = EXACT, bits: bool = False,
) -> list[str]:  # fmt: skip
    """The differences from the stored records. On another platform only arms and sums count, unless `bits` is set."""
    def parts(table: dict[str, set[str]], key: str) -> set[str]:
        return {part for name, parts in table.items() if key.startswith(name) for part in parts}

    found = []
    stored, alike = unpacked(stored_in), _libraries(there) == _libraries(here())
    for key, row in seen.items():
        if key not in kept:
            found.append(f"{key}: new")
        elif len(row) == 1:
            found.append(f"{key}: {row['arms']}")
        else:
            free = parts(CLOSE_ONLY, key) | (set() if alike else parts(ROUNDED, key))
            same = set(row) - free if bits or there == here() else {"arms"}
            wrong = {part for part in same if kept[key][part] != row[part]}
            within, one, other = EXACT if parts(CLOSE_ONLY, key) else close, sums[key], stored[key]
            if one.shape != other.shape or not np.allclose(one, other, rtol=within, atol=within):
                wrong.add("sums")
            found += [f"{key}: {part}" for part in sorted(wrong)]
    return found


def _libraries(told: str) -> list[str]:
    """The part of `here` that NumPy's rounding depends on."""
    return [one for one in told.split(", ") if not one.startswith(("numba", "llvmlite"))]


def pack(path: Path, sums: dict[str, np.ndarray]) -> None:
    """Many short rows as one long one: a separate file for each would be larger than the rows."""
    values, sizes = np.concatenate(list(sums.values())), [len(row) for row in sums.values()]
    np.savez_compressed(path, names=np.array(list(sums)), sizes=np.array(sizes), values=values)


def unpacked(path: Path) -> dict[str, np.ndarray]:
    """The rows that `pack` wrote."""
    with np.load(path) as stored:
        rows = np.split(stored["values"], np.cumsum(stored["sizes"])[:-1])
        return dict(zip(stored["names"].tolist(), rows, strict=True))


def compare(only: str, write: bool, bits: bool = False) -> tuple[int, list[str]]:
    """Run the records whose name contains a word; store them, or report how many there are and which differ."""
    from golden.seen import CLOSE

    count, found = 0, []
    for run, kept_in, stored_in, close in (
        (lambda: records(DIMS, ROUNDS, only), KEPT, SUMS, EXACT), (lambda: wider(only), WIDER_KEPT, WIDER_SUMS, CLOSE),
    ):  # fmt: skip
        seen, sums = run()
        count += len(seen)
        if write:
            assert not (failed := [key for key, row in seen.items() if len(row) == 1]), failed
            kept_in.write_text(json.dumps({"platform": here(), "rows": seen}, indent=0, ensure_ascii=False) + "\n")
            pack(stored_in, sums)
            continue
        kept = json.loads(kept_in.read_text())
        found += differences(seen, sums, kept["rows"], kept["platform"], stored_in, close, bits)
        found += [f"{key}: gone" for key in kept["rows"] if only in key and key not in seen]
    return count, found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--bits", action="store_true", help="compare bits, whatever the platform")
    parser.add_argument("--only", default="", metavar="WORD", help="only records whose name contains it")
    options = parser.parse_args()
    if options.write and options.only:
        parser.error("--write keeps all records: leave --only out")
    warnings.simplefilter("ignore", RuntimeWarning)  # windows overflow on purpose
    count, found = compare(options.only, options.write, options.bits)
    if found:
        sys.exit("\n".join([*found, f"{len(found)} parts of {count} records are not as kept"]))
    print(f"{count} records {'kept' if options.write else 'as kept'}")


if __name__ == "__main__":
    sys.path.insert(0, str(FOLDER.parent))
    main()
