"""A call that a guard accepts stays inside its arrays: calls of entries are recorded, changed, and run interpreted.

Interpreted code finds an index beyond an array; `Strict` arrays also refuse one below 0, which Python would count from
the end. Each array is shortened by one and emptied along each axis, each whole number and each whole number of an
array is set to its neighbours, -1 and 2^62. Nothing here names an entry: a new one is recorded where policies call it.
"""

import signal
import sys
import warnings

import numpy as np

import driftwise as dw
from driftwise.kernels import entries
from driftwise.policies import engines
from golden import guard

EXAMPLES = 2
OUTSIDE = (IndexError, AssertionError)  # an index, or a group or scratch that extends beyond its packed array


class Strict(np.ndarray):
    """An array that refuses an index below 0."""

    def __getitem__(self, index):
        _check(index)
        return super().__getitem__(index)

    def __setitem__(self, index, value):
        _check(index)
        super().__setitem__(index, value)


def _check(index):
    for one in index if isinstance(index, tuple) else (index,):
        if isinstance(one, int | np.integer) and one < 0:
            raise IndexError(f"index {one}")


def copied(given):
    """Copies of the arguments, with strict arrays."""
    if isinstance(given, np.ndarray):
        return np.array(given).view(Strict)
    if isinstance(given, tuple):
        return type(given)(*map(copied, given)) if hasattr(given, "_fields") else tuple(map(copied, given))
    return given


def changed(given):
    """One argument after the other, each with one change: a description, and the changed argument."""
    if isinstance(given, np.ndarray):
        for axis in range(given.ndim):
            for size in sorted({0, given.shape[axis] - 1}):
                kept = tuple(slice(size) if one == axis else slice(None) for one in range(given.ndim))
                yield f"axis {axis} of {given.shape[axis]} cut to {size}", np.ascontiguousarray(given[kept])
        if given.dtype.kind == "i":
            for place in range(min(given.size, 120)):
                value = int(given.flat[place])
                for other in sorted({-1, 0, min(value + 1, 2**63 - 1), max(value - 1, -(2**63)), 2**62} - {value}):
                    made = np.array(given)
                    made.flat[place] = other
                    yield f"[{place}] = {value} set to {other}", made
    elif isinstance(given, tuple):
        for place, one in enumerate(given):
            for what, other in changed(one):
                yield f"{place}: {what}", type(given)._make((*given[:place], other, *given[place + 1 :]))
    elif isinstance(given, int) and not isinstance(given, bool):
        for other in (-1, given + 1, given + 1000, 2**62):
            yield f"{given} set to {other}", other


def pieces_of(function):
    """What tells functions of one factory apart."""
    return tuple(id(cell.cell_contents) for cell in function.__closure__ or ())


def recorded(play):
    """The first calls of each entry while something is played: their arguments."""
    known = {(live.call.__code__, pieces_of(live.call)): name for name, live in entries.LIST.items()}
    found, codes = {name: [] for name in entries.LIST}, {code for code, _ in known}

    def watch(frame, event, _):
        if event != "call" or frame.f_code not in codes:
            return
        pieces = tuple(id(frame.f_locals[one]) for one in frame.f_code.co_freevars)
        if (name := known.get((frame.f_code, pieces))) is None:
            return
        if len(found[name]) < EXAMPLES:
            code = frame.f_code
            found[name].append(tuple(copied(frame.f_locals[one]) for one in code.co_varnames[: code.co_argcount]))

    sys.setprofile(watch)
    try:
        play()
    finally:
        sys.setprofile(None)
    return found


def lived():
    """A few rounds of every policy of the golden guard, by all calls that use entries."""
    engines.compiles, engines.code_of = (lambda: False), str  # rounds and scores, by the entries of the list
    arms, known = np.array([[0.9, 0.1], [0.2, -0.8], [0.5, 0.5], [-0.6, 0.6]]), {"horizon": 8, "path_length": 1.0}
    made = guard.policies(2, 8) | {"audits": dw.make("Auto", dim=2, looks=5.0), "dLinUCB": dw.make("dLinUCB", dim=2)}
    for policy in made.values():
        state = policy.start(3)
        for t in range(5):
            policy.learn(state, arms, policy.choose(state, arms).arm, float(t % 2))
        if not getattr(policy, "stepped", True):
            policy.advance(state)
            guard.played(policy, guard.world(policy, 2, 8))
    made["audits"].scores(made["audits"].start(3), arms)  # its choices are of another entry
    for name in ("LB-WeightUCB", "D-LinTS", "GLB-WeightUCB", "D-GLM-TSL", "Auto"):
        policy = dw.make(name, dim=2, **({} if name == "Auto" else known))
        state = policy.start(3)
        for reach in (dw.Ball(2), dw.Box([-0.5, -0.5], [0.5, 0.5], certify=name[:3] != "GLB")):
            policy.learn(state, reach, policy.choose(state, reach).x, 0.5)
    for dim, engine in ((2, "lazy"), (2, "tiled"), (engines.WORTH_TILES, "tiled")):
        policy = dw.make("LB-WeightUCB", dim=dim, **known)
        with engines.forced(engine):
            guard.played(policy, guard.world(policy, dim, 4))
        policy.fold(policy.start(3), np.zeros((2, dim)), *np.ones((3, 2)))
        policy.choose(policy.start(3), np.eye(12, dim))
    policy = dw.make("LB-WeightUCB", dim=3, **known)
    policy.choose(policy.start(3), dw.Curve(dw.Fourier(1), 0.0, 24.0))
    for world in (dw.worlds.Turn(dim=2, arms=4, horizon=8), dw.worlds.Walk(dim=2, arms=4, horizon=8)):
        list(world.tapes(1, 0))
    alone = dw.worlds.Turn(dim=2, arms=6, horizon=8)
    for name in ("LB-WeightUCB", "D-LinUCB", "RestartUCB"):
        dw.simulate({"it": dw.make(name, dim=2, **known)}, alone, trials=8, jobs=1, progress=False)
    entries.LIST["checksum_"].call(np.arange(6), np.zeros(2, dtype=np.int64))


def trespasses(every=1, first=0, guarded=True, only=""):
    """The failures; the number of calls tried and accepted by a guard; entries that were never called."""
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    signal.signal(signal.SIGALRM, _too_long)
    found, tried, through, examples = [], 0, 0, recorded(lived)
    for name, calls in examples.items():
        guard_, call = entries.LIST[name].guard if guarded else None, entries.LIST[name].call
        for given in calls if only in name else ():
            if guard_ is not None and not guard_(*copied(given)):
                found.append(f"{name}: its guard refuses what policies hand over")
            changes = [(place, *two) for place, one in enumerate(given) for two in changed(one)]
            for place, what, other in changes[first::every]:
                args, tried = copied((*given[:place], other, *given[place + 1 :])), tried + 1
                slip = None
                signal.setitimer(signal.ITIMER_REAL, 20.0)
                try:
                    if guard_ is None or guard_(*args):
                        through += 1
                        call(*args)
                except (*OUTSIDE, TimeoutError) as error:
                    slip = error
                except (ArithmeticError, ValueError):
                    pass  # compiled code divides by 0 and continues
                signal.setitimer(signal.ITIMER_REAL, 0.0)
                if slip is not None:
                    found.append(f"{name}, argument {place + 1}, {what}: {type(slip).__name__}: {slip}")
    return found, tried, through, sorted(name for name, calls in examples.items() if not calls)


def _too_long(*_):
    raise TimeoutError
