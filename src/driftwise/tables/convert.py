"""Logs of other programs: Vowpal Wabbit's dsjson, and the bandit feedback of Open Bandit Pipeline.

Both have rounds and no clock: decision k has tick k, and its reward comes at once.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from driftwise._internal import container
from driftwise._internal.validate import array, whole
from driftwise.errors import BadInput
from driftwise.tables.encoder import Encoder
from driftwise.tables.features import Features
from driftwise.tables.logs import Log, log_of
from driftwise.tables.schema import Floats

_DEEPEST = 8


def from_dsjson(path: str | Path, features: Features | None = None) -> tuple[Log, Features]:
    """A log from decision service JSON (one ranking and its cost per line), and the features that make its vectors.

    The reward is -cost. Shared features are the context, those of `_multi` the items; nested names are joined by dots.
    If no features are given they are fitted, with every number and text of both as a field. An item is identified by
    its `_tag`, or by a digest of its features. Lines that are not rankings (outcomes, dangling observations) are left
    out.
    """
    rows = list(_rankings(Path(path)))
    if not rows:
        raise BadInput("path", str(path), "rankings in dsjson: lines with c._multi, a and p", "pass another file")
    items = {name: row for one in rows for name, row in one["items"]}
    spec = features or Features.fit([one["context"] for one in rows], items)
    encoder = Encoder(spec)
    encoder.know(items)
    names = [[name for name, _ in one["items"]] for one in rows]
    arms = [encoder.arms(one["context"], named) for one, named in zip(rows, names, strict=True)]
    arm = [one["arm"] for one in rows]
    log = log_of(
        **_rounds(len(rows)), decision_id=[one["id"] for one in rows], at=[one["at"] for one in rows], arm=arm,
        item=[named[place] for named, place in zip(names, arm, strict=True)], n=[len(named) for named in names],
        x=np.array([each[place] for each, place in zip(arms, arm, strict=True)]), arms=arms, candidates=names,
        propensity=[one["propensity"] for one in rows], reward=[one["reward"] for one in rows],
        context=[encoder.context(one["context"]) for one in rows],
    )  # fmt: skip
    return log, spec


def _rounds(count: int) -> dict[str, Any]:
    number = np.arange(1, count + 1)
    return {
        "seq": number, "born": number, "reward_tick": number, "reward_seq": number, "verdict": ["learned"] * count,
        "explored": np.zeros(count, dtype=bool),
    }  # fmt: skip


def _rankings(path: Path) -> Iterator[dict[str, Any]]:
    """The lines that are rankings, checked."""
    try:
        lines = path.read_bytes().splitlines()
    except OSError as error:
        raise BadInput("path", str(path), "a file that can be read", str(error.strerror)) from None
    for number, line in enumerate(lines):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except (ValueError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise _no(path, number, "not a JSON object")
        if isinstance(found.get("c"), dict) and "_multi" in found["c"]:
            yield _ranking(path, number, found)


def _no(path: Path, number: int, what: str) -> BadInput:
    wanted = "dsjson: _label_cost, c with _multi, a (from 1) and p"
    return BadInput("path", f"{what} in row {number} of {path.name}", wanted, "correct or leave out the line")


def _ranking(path: Path, number: int, found: dict[str, Any]) -> dict[str, Any]:
    """One ranking: the context, the items, the action played, its probability and its reward."""
    actions, ranked, chances = found["c"]["_multi"], found.get("a"), found.get("p")
    if not isinstance(actions, list) or not actions or not all(isinstance(one, dict) for one in actions):
        raise _no(path, number, "no actions in c._multi")
    good = isinstance(ranked, list) and isinstance(chances, list) and ranked and chances
    if not good or type(ranked[0]) is not int or not 1 <= ranked[0] <= len(actions):  # type: ignore[index]
        raise _no(path, number, "no action in a")
    cost, chance = found.get("_label_cost"), chances[0]  # type: ignore[index]
    for name, value in (("_label_cost", cost), ("p", chance)):
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not abs(value) < 1e100:
            raise _no(path, number, f"{str(value)[:30]} as {name}")
    if not 0.0 < chance <= 1.0:
        raise _no(path, number, f"a chance of {chance!r}")
    items = []
    for action in actions:
        tag, row = action.get("_tag"), _flat({name: one for name, one in action.items() if name != "_tag"})
        items.append((tag if isinstance(tag, str) else container.short_digest(row)[:12], row))
    shared = {name: one for name, one in found["c"].items() if name != "_multi"}
    at, id = found.get("Timestamp"), found.get("EventId")
    return {
        "context": _flat(shared), "items": items, "arm": ranked[0] - 1, "propensity": float(chance),  # type: ignore[index]
        "reward": 0.0 - float(cost), "at": at[:26].rstrip("Z") if isinstance(at, str) else "1970-01-01",  # type: ignore[arg-type]
        "id": id if isinstance(id, str) else f"row {number}",
    }  # fmt: skip


def _flat(data: Mapping[str, Any], before: str = "", depth: int = 0) -> dict[str, Any]:
    """Nested names joined by dots. The elements of a list are named by their index."""
    made: dict[str, Any] = {}
    for name, value in data.items():
        full = f"{before}{name}"
        if isinstance(value, list):
            value = {str(place): one for place, one in enumerate(value)}
        if isinstance(value, dict) and depth < _DEEPEST:
            made |= _flat(value, f"{full}.", depth + 1)
        elif isinstance(value, (str, bool, int, float)):
            made[full] = value
    return made


def from_obp(feedback: Mapping[str, Any], vectors: Callable[[Floats, Floats], npt.ArrayLike] | None = None) -> Log:
    """A log from the dict that Open Bandit Pipeline calls bandit feedback; its pscore is the propensity.

    vectors makes arms (n_actions, d) from a context and the actions' features. Without it an arm is the product of its
    action's features with (1, context), scaled to a norm of at most 1: with obp's one-hot actions, one block per
    action. Positions are not distinguished.
    """
    if not isinstance(feedback, Mapping) or not {"context", "action", "reward", "n_actions"} <= set(feedback):
        wanted = "a dict with context, action, reward, n_actions and pscore"
        raise BadInput("feedback", feedback, wanted, "pass what obtain_batch_bandit_feedback gave")
    context = array("context", feedback["context"], (None, None), "pass an array (n_rounds, d)")
    rounds, many = len(context), whole("n_actions", feedback["n_actions"], 1, "pass the number of actions")
    action = _played(feedback["action"], rounds, many)
    reward = array("reward", feedback["reward"], (rounds,), "pass one reward per round")
    given = feedback.get("action_context")
    actions = np.eye(many) if given is None else array("action_context", given, (many, None), "pass one row per action")
    arms = _products(context, actions) if vectors is None else _asked(vectors, context, actions)
    more = {}
    if feedback.get("pscore") is not None:
        more["propensity"] = array("pscore", feedback["pscore"], (rounds,), "pass one probability per round")
    return log_of(
        **_rounds(rounds), decision_id=[f"row {row}" for row in range(rounds)], arm=action, n=np.full(rounds, many),
        item=[str(one) for one in action.tolist()], x=np.ascontiguousarray(arms[np.arange(rounds), action]),
        arms=arms, reward=reward, **more,
    )  # fmt: skip


def _played(action: Any, rounds: int, many: int) -> Any:
    played = array("action", action, (rounds,), "pass the action of each round")
    if not ((played >= 0) & (played < many) & (played == np.floor(played))).all():
        raise BadInput("action", "an action out of range", f"whole numbers from 0 to {many - 1}", "correct them")
    return played.astype(np.int64)


def _products(context: Floats, actions: Floats) -> Floats:
    """Arms (rounds, actions, d) as products of action features and (1, context)."""
    widened = np.column_stack([np.ones(len(context)), context])
    longest = np.sqrt(np.square(widened).sum(axis=1).max() * max(float(np.square(actions).sum(axis=1).max()), 1e-300))
    made = actions[None, :, :, None] * (widened / longest)[:, None, None, :]
    return np.asarray(made.reshape(len(context), len(actions), -1))


def _asked(vectors: Callable[[Floats, Floats], npt.ArrayLike], context: Floats, actions: Floats) -> Floats:
    made = [array("vectors", vectors(one, actions), (len(actions), None), "return a row per action") for one in context]
    return np.array(made)
