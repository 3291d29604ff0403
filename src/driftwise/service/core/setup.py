"""The setup of a stream: its body, checked, with the policy, the clock, the range and the features it declares."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import msgspec

from driftwise._internal.container import canonical
from driftwise._internal.validate import real
from driftwise.agent.choosing import checked_range
from driftwise.agent.clock import Clock, check_meaning, clock_for, in_ticks
from driftwise.agent.encoding import encoder_for
from driftwise.errors import BadInput
from driftwise.ledger import Terms, terms_of
from driftwise.policies.base import Compiled
from driftwise.policies.memory import Memory
from driftwise.policies.names import make, restored_policy
from driftwise.policies.plain import kinds_of, restored
from driftwise.policies.vetting import LATEST
from driftwise.service.stores.records import AT_FIRST_LESSON, EraRow
from driftwise.service.wire.protocol import StreamBody
from driftwise.tables.encoder import Encoder
from driftwise.tables.features import Features

# The most numbers in one state, of which a stream has four. It prevents one stream from taking all memory.
MOST_STATE = 2**24


@dataclass(frozen=True)
class Setup:
    """The parts of a stream. `tick` is the seconds per tick of the wall clock; None if rewards are counted."""

    body: StreamBody
    policy: Compiled
    tick: float | None
    terms: Terms
    features: Features | None

    def clock(self) -> Clock:
        return Clock(self.body.clock, self.tick)

    def check_now(self, at: float) -> None:
        """Refuse a new stream whose ticks are too short to count the time up to now, and ten times as much.

        Streams of earlier versions with such ticks are still opened: they have no decisions, and other streams are
        served.
        """
        if self.tick is not None and not 10.0 * at / self.tick <= LATEST:
            wanted = f"ticks of at least {10.0 * at / LATEST:.1g} seconds: they are counted from 1970, to 2^53"
            raise BadInput("tick", self.tick, wanted, 'pass tick="1s", or a longer half_life, memory or expire_after')

    def origin(self, learned: int) -> int:
        """The tick at which a state starts whose learning begins now; `learned` is the count of the reward clock."""
        return AT_FIRST_LESSON if self.body.clock == "wall" else learned

    def encoder(self) -> Encoder | None:
        return None if self.features is None else encoder_for(self.features, self.policy)

    @property
    def text(self) -> str:
        """The body as text. Equal bodies have equal texts."""
        return setup_text(self.body)


class Era(NamedTuple):
    """A generation with its parts: those of the ones before it say how long a tick is."""

    row: EraRow
    setup: Setup


def setup_text(body: StreamBody) -> str:
    """A body as text. Equal bodies have equal texts: a default that was sent explicitly is left out."""
    return canonical(_sent(body)).decode()


def _sent(value: Any) -> Any:
    """Plain data without the fields that have their default. msgspec itself leaves out only the default object."""
    if isinstance(value, msgspec.Struct):
        fields = ((one.name, getattr(value, one.name), one.default) for one in msgspec.structs.fields(value))
        return {name: _sent(given) for name, given, default in fields if given != default}
    if isinstance(value, dict):
        return {name: _sent(one) for name, one in value.items()}
    return msgspec.to_builtins(value)


def same_stream(found: Setup, body: StreamBody) -> bool:
    """Whether a body declares the same stream: the same policy, also if its defaults are spelled out, and the same
    rest."""
    for asked in (body, declared_body(body)):
        if found.text == setup_text(asked):
            return True
        plain = msgspec.structs.replace(asked, policy=found.body.policy)
        if found.text == setup_text(plain) and setup(asked).policy.digest == found.policy.digest:
            return True
    return False


def declared_body(body: StreamBody, before: StreamBody | None = None) -> StreamBody:
    """The body of a new stream or of a new policy, with a setting for unknown feature names.

    New streams refuse unknown names unless the body says otherwise. Streams of earlier versions have no such setting;
    they allow unknown names and continue to do so.
    """
    if body.features is None or "unknown" in body.features:
        return body
    kept = {"unknown": "refuse"}
    if before is not None and before.features is not None:
        kept = {name: value for name, value in before.features.items() if name == "unknown"}
    return msgspec.structs.replace(body, features={**body.features, **kept})


def setup(body: StreamBody, tick: float | None = None) -> Setup:
    """The setup of a stream, or a BadInput. `tick` is the tick of the stream whose policy is replaced."""
    asked = _policy(body.policy)
    given = tick if tick is not None and body.clock == "wall" and body.tick is None else body.tick
    clock = clock_for(body.clock, given, body.half_life, asked, body.expire_after)
    policy = in_ticks(asked, body.half_life, clock)
    check_meaning(policy, clock)
    if policy.state_size > MOST_STATE:
        wanted = f"a state of at most {MOST_STATE} numbers"
        raise BadInput("policy", f"{policy.state_size} numbers", wanted, "pass a smaller dim, window or capacity")
    expire = None if body.expire_after is None else clock.span("expire_after", body.expire_after)
    if expire is not None:
        real("expire_after", expire, 0.0)
    default = None if body.default_reward is None else body.default_reward + 0.0
    terms = terms_of(*checked_range(policy, body.rewards), expire, default)
    features = None if body.features is None else Features.from_dict(body.features)
    if features is not None:
        encoder_for(features, policy)
    if body.ramp is not None:
        check_ramp(body)
    return Setup(body, policy, clock.tick, terms, features)


def check_ramp(body: StreamBody) -> None:
    """Refuse an invalid ramp."""
    shares = body.ramp or []
    if body.mode != "holdback":
        raise BadInput("ramp", body.mode, 'mode "holdback", which has a baseline', 'pass "mode": "holdback"')
    if not shares or any(b <= a for a, b in zip([0.0, *shares], shares, strict=False)):
        wanted = "shares of units above 0, each larger than the one before"
        raise BadInput("ramp", shares, wanted, "pass [0.01, 0.05, 0.25, 1], say")


def _policy(given: dict[str, Any]) -> Compiled:
    """The policy of {"name": …, "dim": …}, as `make` takes it, or of plain data, {"type": …}."""
    way_out = 'pass {"name": "Auto", "dim": 10} for example'
    fields = {name: _memory(value) for name, value in given.items()}
    try:
        if "type" in given:
            policy = restored_policy(given, way_out)
        elif isinstance(given.get("name"), str) and "dim" in given:
            policy = make(**fields)
        else:
            raise BadInput("policy", sorted(given), "a name and dim, and what else the policy needs", way_out)
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput("policy", type(error).__name__, "fields of the types that the policy takes", way_out) from None
    return policy


def _memory(value: Any) -> Any:
    """Build the memory that plain data, {"type": "Fade", …}, describes."""
    if isinstance(value, dict) and "type" in value:
        return restored(value, kinds_of(Memory))
    return tuple(value) if isinstance(value, list) else value
