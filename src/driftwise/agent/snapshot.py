"""An agent as one container: policy and settings as plain data, the rest as arrays (docs/contract.md#snapshots).

Everything that is read is checked before it is used. The policy is built by its own constructor and must have the
digest it was saved with. The state is checked as any loaded state. Every decision is checked against both. A policy of
the user's own is passed again, and writes and reads its state itself.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from driftwise._internal import container
from driftwise.agent import entries, shown
from driftwise.agent.lineage import Lineage
from driftwise.agent.parts import AgentParts, parts_of
from driftwise.agent.sections import ANEW, MOST, no, section_count
from driftwise.agent.states import shown_at
from driftwise.errors import BadInput
from driftwise.policies.names import restored_policy
from driftwise.policies.plain import check_revision
from driftwise.tables.features import Features

if TYPE_CHECKING:
    from driftwise.agent.agent import Agent

VERSION = 2  # 1: states of the wall clock count from tick 0, in 1970
_SETTINGS = ("rewards", "clock", "tick", "epsilon", "seed", "expire_after", "default_reward", "max_open", "remember")


def write_snapshot(parts: AgentParts) -> bytes:
    """The agent as bytes. No other thread may use it meanwhile."""
    book, states, policy, meter = parts.book, parts.states, parts.policy, parts.meter
    kept = policy.written(states.front)
    facts = {
        "agent": VERSION, "policy": policy.described, "digest": parts.digest, "settings": _settings(parts),
        "seq": parts.seq, "origin": parts.origin, "counts": book.counts, "open": len(book.open),
        **states.facts(), **parts.clock.facts(), **parts.lineage.facts(), **meter.facts(),
        **({} if parts.driven is None else {"driven": parts.driven}),
        **({} if parts.features is None else {"features": parts.features.to_dict()}),
    }  # fmt: skip
    return container.pack("agent", facts, {
        **kept, **entries.arrays(book, policy), **meter.arrays(policy.dim or 1),
        **shown.arrays(parts.encoder, book, policy.dim or 1),
    })  # fmt: skip


def _settings(parts: AgentParts) -> dict[str, Any]:
    terms, clock = parts.terms, parts.clock
    return {
        "rewards": list(terms[:2]), "clock": clock.kind, "tick": clock.tick, "epsilon": parts.epsilon,
        "seed": str(parts.seed), "expire_after": terms.expire_after, "default_reward": terms.default,
        "max_open": parts.max_open, "remember": parts.book.remember,
    }  # fmt: skip


def read_snapshot(cls: type[Agent], data: object, policy: Any, now: Callable[[], float]) -> Agent:
    """The agent that these bytes hold, or BadInput."""
    facts, arrays = container.unpack("agent", data, ANEW)
    if facts.get("agent") not in range(1, VERSION + 1):
        raise no(f"version {facts.get('agent')!r} of agents")
    try:
        agent = _built(cls, facts, policy, now)
        parts = parts_of(agent)
        zero = _zero(facts, parts.clock.kind)
        parts.begin(_state(parts.policy, facts, arrays, zero), zero)
        _fill(parts, facts, arrays)
    except BadInput:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        raise no(f"a header or a table of another shape ({type(error).__name__})") from None
    return agent


def _built(cls: type[Agent], facts: dict[str, Any], policy: Any, now: Callable[[], float]) -> Agent:
    """An agent with the settings of the snapshot, and nothing learned."""
    if policy is None:
        policy = restored_policy(facts["policy"], "pass policy= again")
    settings = dict(facts["settings"])
    if set(settings) != set(_SETTINGS):
        raise no("other settings")
    if not (isinstance(settings["seed"], str) and settings["seed"].isascii() and len(settings["seed"]) < 400):
        raise no("a seed that is not a number")
    settings["seed"] = int(settings["seed"]) if settings["seed"].isdigit() else -1
    settings["rewards"] = tuple(settings["rewards"])
    if settings["clock"] == "wall" and settings["expire_after"] is not None:
        settings["expire_after"] *= settings["tick"]  # written in ticks, asked for in seconds
    features = Features.from_dict(facts["features"]) if "features" in facts else None
    agent = cls(policy, **settings, features=features, now=now)
    parts = parts_of(agent)
    check_revision(facts["digest"], parts.digest)
    if parts.digest != facts["digest"]:
        got, wanted = f"digest {parts.digest}", f"the policy that was saved, {facts['digest']}"
        raise BadInput("policy", got, wanted, "pass that one")
    if facts["settings"]["expire_after"] is not None:
        expire = float(facts["settings"]["expire_after"])  # to the last bit
        parts.terms = parts.terms._replace(expire_after=expire)
    return agent


def _zero(facts: dict[str, Any], clock: str) -> int | None:
    """The tick that the state counts from."""
    if facts["agent"] == 1:
        return 0
    if facts["zero"] is None and clock == "wall" and section_count(facts, "learned") == 0:
        return None
    return section_count(facts, "zero", most=MOST if clock == "wall" else 0)


def _state(policy: Any, facts: dict[str, Any], arrays: dict[str, Any], zero: int | None) -> Any:
    """The state as its policy reads it. The clock of a built-in policy's state must be that of the agent."""
    if policy.dim is None and section_count(facts, "seq"):
        policy.dim = int(arrays["vectors"].shape[1])  # the first arms gave it to a policy of the user's own
    state = policy.held(arrays, ANEW)
    if policy.taught_with_arms:
        return state
    learned, wall = section_count(facts, "learned"), facts["settings"]["clock"] == "wall"
    shown = shown_at(policy, zero, learned) if wall and zero is not None else learned
    if wall and facts["agent"] == 1 and shown != learned:  # version 1 counted a period's first tick wrongly
        state.set_clock(state.clock + (shown - learned))
    if state.clock != shown:
        raise no(f"a state at tick {state.clock:g}", f"one at tick {shown:g}")
    state.outside, state.warned = section_count(facts, "outside"), facts["told"] is True
    return state


def _fill(parts: AgentParts, facts: dict[str, Any], arrays: dict[str, Any]) -> None:
    """Each part reads its own section."""
    policy, terms, states, clock = parts.policy, parts.terms, parts.states, parts.clock
    parts.seq, states.tick = section_count(facts, "seq"), section_count(facts, "learned")
    clock.fill(facts, parts.seq, states.tick)
    lineage = Lineage.read(facts, facts["origin"])
    if lineage is None:
        raise no("sources that are not names")
    parts.origin, parts.lineage = facts["origin"], lineage
    driven = facts.get("driven")
    if driven is not None and not (type(driven) in (int, float) and abs(driven) <= 1e15):
        raise no("an invalid time")
    parts.driven = driven
    ahead = states.tick + 1 if clock.kind == "rewards" else clock.newest
    entries.fill(parts.book, facts, arrays, policy, terms, seq=parts.seq, ahead=ahead, most=parts.max_open,
                 digest=parts.digest)  # fmt: skip
    parts.meter.fill(facts, arrays, policy, terms, states)
    shown.fill(parts.encoder, parts.book, policy.dim or 1, arrays)
