"""Compiles what tests run, once, before processes that test side by side load it: `python tests/warm.py`.

Two processes compile, each its own families: entries of one family share most of what is compiled for them. Code that
is stored already is left alone.
"""

import os
import time
from multiprocessing import get_context

os.environ["DRIFTWISE_PATIENCE"] = "0"

import driftwise as dw
from driftwise import eight
from driftwise._internal import jit
from driftwise._internal.compiling import INTERPRETED
from driftwise._internal.sources import was_compiled
from driftwise.kernels import entries
from driftwise.policies import engines
from laws.test_catalogue import variants

# Parts of names, the family that takes longest first; what has none of them is of the last.
FAMILIES = (("glm", "solve_", "project_", "optimist_", "narrow_", "one_pass"), ("auto", "adaptive", "sampled"), ())


def compiling():
    """What compiles each entry, by name: of the list, and of the rounds of every policy on every engine that fits."""
    rounds = entries.declared("play_linear_plain").args
    made = {}
    for name, live in entries.LIST.items():
        if not (live.call.plain or name.startswith("play_")):
            made[live.call.__name__] = lambda one=live.call, name=name: stored(one, entries.declared(name).args)
    for policy in variants(2).values():
        for sizes in () if policy.stepped else (engines.Sizes(1, 2, 50, 60, 8), engines.Sizes(1, 20, 50, 60)):
            for engine in engines.fitting(policy.entries.family, policy.point, sizes):
                loop = engines.bound(engine, policy.entries.family, policy.point)
                if engine.plays_eight:
                    made[loop.__name__] = lambda policy=policy: eight.compile_eight(policy, dw.worlds.Turn())
                else:
                    made[loop.__name__] = lambda loop=loop: stored(loop, rounds)
    return made


def stored(kernel, signature):
    """Compile an entry, which stores it."""
    jit.called_of(kernel).compile(signature)


def family_of(name):
    return next(place for place, parts in enumerate(FAMILIES) if any(one in name for one in parts) or not parts)


def compile_family(names):
    made = compiling()
    for name in names:
        begun = time.perf_counter()
        made[name]()
        print(f"compiled {name} in {time.perf_counter() - begun:.1f} s", flush=True)


def main():
    if INTERPRETED:
        return
    missing = [name for name in compiling() if not was_compiled(name)]
    print(f"tests: {len(missing)} entries to compile", flush=True)
    families = [[name for name in missing if family_of(name) == place] for place in range(len(FAMILIES))]
    with get_context("spawn").Pool(min(2, os.cpu_count() or 1)) as pool:
        pool.map(compile_family, filter(None, families), chunksize=1)


if __name__ == "__main__":
    main()
