"""Plays a user's own policy on the worlds of the field's page, beside the policies of the page."""

from __future__ import annotations

import hashlib
import importlib
import inspect
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from driftwise._internal.files import keep
from driftwise._internal.progress import bar
from driftwise.draw.figure import Line
from driftwise.errors import BadInput
from driftwise.lab.run.results import Outcome, plain_results
from driftwise.lab.run.spec import Contest, Spec
from driftwise.policies.arms import ArmSet
from driftwise.policies.own import asked
from driftwise.simulation import simulate
from driftwise.worlds import World


def find_maker(place: str) -> Any:
    """Import the class or function that `place` ("package:name") names. The current folder is searched first."""
    module, _, name = place.partition(":")
    sys.path.insert(0, str(Path.cwd()))
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (ImportError, AttributeError, ValueError) as error:
        wanted = "package:Policy, a class or a function that makes a policy"
        raise BadInput("policy", place, wanted, f"{type(error).__name__}: {error}") from None
    finally:
        sys.path.pop(0)
    if not callable(found):
        raise BadInput("policy", place, "a class or a function that makes a policy", "pass its name, not an object")
    return found


def made(maker: Any, world: World) -> Any:
    """Make the policy for a world. Its maker gets those facts of the world that it has arguments for."""
    known = {**world.facts, "arms": world.count, "link": world.link_name, "reward": world.reward}
    try:
        takes = inspect.signature(maker).parameters.values()
    except (TypeError, ValueError):
        return maker(dim=world.dim)
    if any(one.kind is one.VAR_KEYWORD for one in takes):
        return maker(**known)
    return maker(**{one.name: known[one.name] for one in takes if one.name in known})


def rehearse(maker: Any, place: str, specs: Sequence[Spec], rounds: int = 5) -> None:
    """Let the policy play a few rounds of every world, so that its errors show before the other policies play."""
    for spec in specs:
        for contest in (one for contests in spec.contests for one in contests):
            try:
                policy = asked(made(maker, contest.world))
                tape, state = next(iter(contest.world.tapes(spec.seed))), policy.start(seed=0)
                for t in range(rounds):
                    arms = ArmSet(tape.arms[t % len(tape.arms)].T)
                    policy.learn(state, arms, policy.choose(state, arms).arm, 0.0)
            except Exception as error:  # whatever the user's code raises, the sentence names the world
                wanted = f"a policy that plays the worlds of the page, {spec.key} among them"
                raise BadInput("policy", place, wanted, f"change it: {type(error).__name__}: {error}") from error


def _text(maker: Any) -> str:
    """The source of the policy's file. It is part of the stored name, so a changed policy is played again."""
    try:
        return Path(inspect.getsourcefile(maker) or "").read_text(encoding="utf-8")
    except (OSError, TypeError):
        return repr(maker)


def with_own(outcomes: Sequence[Outcome], maker: Any, label: str, folder: Path, trials: int) -> list[Outcome]:
    """Add a line for the user's policy to every outcome. Trials that the folder has are not played again."""
    contests = [
        (spec.spec, contest) for spec in outcomes for contests in spec.spec.contests for contest in contests
    ]
    done: dict[str, Any] = {}
    total = sum(contest.world.horizon * min(trials, spec.trials) for spec, contest in contests)
    with bar("rounds", total, None, least=1e5) as tick:
        for spec, contest in contests:
            name = _name(spec, contest, maker, label, min(trials, spec.trials))
            path = folder / "own" / f"{name}.npy"
            if not path.exists():
                result = simulate(
                    {label: made(maker, contest.world)}, contest.world, trials=min(trials, spec.trials),
                    seed=spec.seed, record=spec.record, progress=False,
                )  # fmt: skip
                keep(path, _bytes(result.regret[label]))
            done[name] = np.load(path, allow_pickle=False)
            tick(contest.world.horizon * min(trials, spec.trials))
    return [_joined(outcome, maker, label, done, trials) for outcome in outcomes]


def _joined(outcome: Outcome, maker: Any, label: str, done: dict[str, Any], trials: int) -> Outcome:
    spec, figures = outcome.spec, []
    for figure, contests in zip(outcome.figures, spec.contests, strict=True):
        names = [_name(spec, contest, maker, label, min(trials, spec.trials)) for contest in contests]
        regret = np.concatenate([done[name] for name in names], axis=1)
        line = Line(label, regret, np.full(len(contests) if figure.axis else 1, np.nan))
        figures.append(replace(figure, lines=(*figure.lines, line)))
    return replace(outcome, figures=tuple(figures))


def _name(spec: Spec, contest: Contest, maker: Any, label: str, trials: int) -> str:
    world = [plain_results(contest.world), contest.world.contents]
    about = [spec.key, world, label, _text(maker), trials, spec.seed, spec.record]
    return f"{spec.key}-{hashlib.sha256(repr(about).encode()).hexdigest()[:20]}"


def _bytes(values: Any) -> bytes:
    import io

    data = io.BytesIO()
    np.save(data, values, allow_pickle=False)
    return data.getvalue()
