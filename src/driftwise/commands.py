"""The commands `learn`, which turns a log into an agent, and `explain`, which explains an agent."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from driftwise._internal.terminal import table
from driftwise.errors import BadInput

if TYPE_CHECKING:
    from driftwise.agent import Agent
    from driftwise.tables import Features
    from driftwise.tables.logs import Log


def learn(
    log: Annotated[Path, typer.Argument(help="A Parquet, Arrow or JSON lines file, or a folder of such parts.")],
    out: Annotated[Path, typer.Option(help="Where the agent is saved.")],
    from_: Annotated[Path | None, typer.Option("--from", help="Continue this agent instead of a new one.")] = None,
    policy: Annotated[str | None, typer.Option(help="A policy of the catalogue; Auto by default.")] = None,
    rewards: Annotated[tuple[float, float] | None, typer.Option(help="The least and the largest reward.")] = None,
    clicks: Annotated[bool | None, typer.Option("--clicks", help="Rewards are clicks, 0 or 1.")] = None,
    clock: Annotated[str | None, typer.Option(help="The log's clock: rounds (the default), wall, rewards.")] = None,
    tick: Annotated[str | None, typer.Option(help="On the wall clock, seconds or a span such as 20m.")] = None,
    half_life: Annotated[str | None, typer.Option(help="Half-life: ticks, or a span such as 14d.")] = None,
    L: Annotated[float | None, typer.Option("--L", help="Largest norm of an arm.")] = None,
    features: Annotated[Path | None, typer.Option(help="A JSON file with the result of Features.to_dict.")] = None,
    epsilon: Annotated[float | None, typer.Option(help="The share of decisions that the live agent draws.")] = None,
    expire_after: Annotated[str | None, typer.Option(help="Largest age of a decision at its reward.")] = None,
    default_reward: Annotated[float | None, typer.Option(help="The reward learned for expired decisions.")] = None,
    seed: Annotated[int | None, typer.Option(help="Seed of its draws; for the same bits, that of the writer.")] = None,
    gaps: Annotated[bool, typer.Option("--gaps", help="Learn from a log with missing rewards.")] = False,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite an existing file.")] = False,
) -> None:
    """Learn a log into an agent. Its state is that of the agent that wrote the log, bit for bit."""
    import numpy as np

    from driftwise.policies.names import called
    from driftwise.tables import read_log

    # The settings that a saved agent already has, and the other settings of a new one.
    asked: dict[str, Any] = {
        "policy": policy, "rewards": rewards, "clicks": clicks, "clock": clock, "tick": _span(tick),
        "half_life": _span(half_life), "L": L, "features": features, "epsilon": epsilon,
        "expire_after": _span(expire_after), "default_reward": default_reward, "seed": seed,
    }  # fmt: skip
    told = {name: value for name, value in asked.items() if value is not None}
    source = read_log(log)
    if from_ is not None and told:
        name = next(iter(told))
        raise BadInput(name, told[name], "nothing beside --from: a saved agent has it already", "leave one of them out")
    agent = _new(source, told) if from_ is None else _load(from_)
    _can_be_written(out)
    if out.exists() and out != from_ and not replace:
        raise BadInput("out", f"{out}, which exists", "a file that does not exist", "pass another name, or --replace")
    learned = agent.learn_log(source, gaps=gaps, progress=None)
    without = sum(int(np.isnan(batch.reward).sum()) for batch in source.batches(["reward"]) if batch.reward is not None)
    agent.save(out)
    counts = agent.counts
    rows = [
        ("rewards learned", learned), ("rows without a reward, skipped", without),
        ("rewards it knew already, skipped", source.rows - without - learned),
        ("rewards in all", counts["learned"] + counts["defaulted"]), ("open decisions", counts["open"]),
    ]  # fmt: skip
    table(f"{called(agent.policy)} from {log}", ("what", "value"), [(a, str(b)) for a, b in rows], numeric=(1,))
    print(agent.drift())
    if from_ is None and features is None and "context" in source.columns:
        print("the log has contexts, but not how they became vectors: pass --features for an agent that takes "
              "contexts", file=sys.stderr)  # fmt: skip
    if from_ is None and epsilon is None and "explored" in source.columns and any(
        batch.explored is not None and bool(batch.explored.any()) for batch in source.batches(["explored"])
    ):
        print("decisions of the log were drawn to explore, but this agent draws none: pass --epsilon", file=sys.stderr)
    print(f"wrote {out}", file=sys.stderr)


def explain(
    agent: Annotated[Path, typer.Argument(help="A file that agent.save or driftwise learn wrote.")],
    decision: Annotated[str | None, typer.Option(help="The id of a decision to explain.")] = None,
    context: Annotated[str | None, typer.Option(help="A context as JSON, for an agent with features.")] = None,
    items: Annotated[str | None, typer.Option(help="Items: names, a,b, or JSON of rows by name.")] = None,
    arms: Annotated[Path | None, typer.Option(help="A JSON file of arms: rows, or vectors by name.")] = None,
    top: Annotated[int, typer.Option(help="How many coefficients to show.")] = 10,
    draw: Annotated[Path | None, typer.Option(help="File for a picture of the choice, or of the drift meter.")] = None,
) -> None:
    """Print what an agent has learned, its drift meter, and why it chooses an arm."""
    from driftwise._internal.validate import whole
    from driftwise.agent.explain import known
    from driftwise.agent.parts import parts_of

    whole("top", top, 0, "pass how many coefficients to show")
    loaded = _load(agent)
    chosen = _choice(loaded, decision, context, items, arms)
    seen, drift = known(parts_of(loaded)), loaded.drift()
    table(str(agent), ("what", "value"), seen.facts)
    print(drift)
    largest = [(name, f"{value:+.4f}") for name, value in seen.coefficients[:top]]
    if largest:
        title = f"The largest of {len(seen.coefficients)} coefficients"
        table(title, ("feature", "coefficient"), largest, numeric=(1,))
    if chosen is not None:
        print(chosen)
    if draw is not None:
        (drift if chosen is None else chosen).draw(draw)
        print(f"wrote {draw}", file=sys.stderr)


def _new(log: Log, told: dict[str, Any]) -> Agent:
    """A new agent with the given options, for the vectors of the log."""
    from driftwise.agent import Agent
    from driftwise.data.policy import dim_of, named_policy

    name, clicks = told.pop("policy", "Auto"), told.pop("clicks", False)
    rewards = told.pop("rewards", (0.0, 1.0) if clicks else None)
    if rewards is None or not rewards[0] < rewards[1]:
        raise BadInput("rewards", rewards, "the least and the largest reward", "pass --rewards 0 10, say, or --clicks")
    if "features" in told:
        told["features"] = features_of(told["features"])
    if name == "Auto":
        half_life, L, dim = told.pop("half_life", None), told.pop("L", None), dim_of(log)
        if clicks:
            return Agent.for_clicks(dim, half_life, L=L, **told)
        return Agent.for_values(dim, rewards[0], rewards[1], half_life, L=L, **told)
    made = named_policy(name, log, None, told.pop("L", None), keeps="half_life" in told)
    return Agent(made, rewards=rewards, **told)


def _load(path: Path) -> Agent:
    from driftwise.agent import Agent

    try:
        data = path.read_bytes()
    except OSError as error:
        got = f"{path}: {error.strerror}"
        raise BadInput("agent", got, "a file that agent.save wrote", "check its spelling") from None
    return Agent.from_bytes(data)


def _can_be_written(out: Path) -> None:
    """Check the output path before the log is learned, which may take long."""
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        usable = not out.is_dir()
    except OSError:
        usable = False
    if not usable:
        raise BadInput("out", str(out), "a file in a folder that can be written", "pass --out agent.dw, say")


def _choice(agent: Agent, decision: str | None, context: str | None, items: str | None, arms: Path | None) -> Any:
    """The explanation of the choice that the options name; None without one."""
    from driftwise.agent.encoding import encoded
    from driftwise.agent.parts import parts_of

    by_context = context is not None or items is not None
    if by_context and (decision is not None or arms is not None):
        raise BadInput("context", "a context beside --decision or --arms", "one of them", "leave the others out")
    if by_context:
        told = _parsed(context, "context") if context is not None else {}
        parts = parts_of(agent)
        vectors, offered, _ = encoded(parts, None, _items(items), told)
        assert parts.encoder is not None
        strange = [str(name) for name in offered if str(name) not in parts.encoder.rows]
        if strange:
            print(f"the agent knows no row of {', '.join(strange)}: explained without item fields", file=sys.stderr)
        return agent.explain(vectors, items=offered)
    if arms is None:
        return None if decision is None else agent.explain(decision)
    found = json_of(arms, "arms", "rows of numbers, or vectors by name")
    names = list(found) if isinstance(found, Mapping) else None
    rows = list(found.values()) if isinstance(found, Mapping) else found
    return agent.explain(rows, items=names) if decision is None else agent.explain(decision, rows, items=names)


def _items(text: str | None) -> Any:
    """Names, or rows by name if the text is JSON."""
    if text is None:
        return None
    if text.lstrip().startswith("{"):
        return _parsed(text, "items")
    return [name.strip() for name in text.split(",") if name.strip()]


def _span(text: str | None) -> float | str | None:
    """A number of ticks or seconds, or a span such as "20m" unchanged."""
    try:
        return None if text is None else float(text)
    except ValueError:
        return text


def features_of(path: Path) -> Features:
    """The features in a file."""
    from driftwise.tables import Features

    return Features.from_dict(json_of(path, "features", "the result of Features.to_dict"))


def json_of(path: Path, name: str, wanted: str) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(name, f"{path}: {error.strerror}", f"a JSON file of {wanted}", "check its spelling") from None
    except (ValueError, RecursionError):
        raise BadInput(name, f"{path}, which is not JSON", f"a JSON file of {wanted}", "write it again") from None


def _parsed(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        raise BadInput(name, text, "JSON of fields by name", """pass '{"hour": 12}', say""") from None
