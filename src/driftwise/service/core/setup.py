"""A stream's body checked: the policy it names, its clock, its range, its features, ready to be used."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgspec

from driftwise._internal.container import canonical
from driftwise._internal.validate import real
from driftwise.agent.asked import checked_range
from driftwise.agent.clock import Clock, check_meaning, clock_for, in_ticks
from driftwise.agent.encoding import encoder_for
from driftwise.errors import BadInput
from driftwise.ledger import Terms, terms_of
from driftwise.policies.base import Compiled
from driftwise.policies.memory import Memory
from driftwise.policies.names import make, restored_policy
from driftwise.policies.plain import kinds_of, restored
from driftwise.policies.vetting import LATEST
from driftwise.service.stores.records import AT_FIRST_LESSON
from driftwise.service.wire.protocol import StreamBody
from driftwise.tables.encoder import Encoder
from driftwise.tables.features import Features

# Numbers of one state, of which a stream has four: whoever may make a stream may not take all memory.
MOST_STATE = 2**24


@dataclass(frozen=True)
class Setup:
    """What a stream is made of. `tick` is seconds a tick on the wall clock, None where rewards are counted."""

    body: StreamBody
    policy: Compiled
    tick: float | None
    terms: Terms
    features: Features | None

    def clock(self) -> Clock:
        return Clock(self.body.clock, self.tick)

    def check_now(self, at: float) -> None:
        """Refuse a new stream whose ticks are too short to count the time up to now, and ten times as much.

        Streams of before that have such ticks are opened: they have no decisions, and other streams are served.
        """
        if self.tick is not None and not 10.0 * at / self.tick <= LATEST:
            wanted = f"ticks of at least {10.0 * at / LATEST:.1g} seconds: they are counted from 1970, to 2^53"
            raise BadInput("tick", self.tick, wanted, 'pass tick="1s", or a longer half_life, memory or expire_after')

    def origin(self, learned: int) -> int:
        """The tick at which a state starts that is folded from now on; `learned` is that of the reward clock."""
        return AT_FIRST_LESSON if self.body.clock == "wall" else learned

    def encoder(self) -> Encoder | None:
        return None if self.features is None else encoder_for(self.features, self.policy)

    @property
    def text(self) -> str:
        """The body as text: equal bodies, equal text."""
        return setup_text(self.body)


def setup_text(body: StreamBody) -> str:
    """A body as text: equal bodies, equal text. A default that was sent is left out, as one that was not."""
    return canonical(_sent(body)).decode()


def _sent(value: Any) -> Any:
    """Plain data without fields that have their default: msgspec itself leaves out only the default object."""
    if isinstance(value, msgspec.Struct):
        fields = ((one.name, getattr(value, one.name), one.default) for one in msgspec.structs.fields(value))
        return {name: _sent(given) for name, given, default in fields if given != default}
    if isinstance(value, dict):
        return {name: _sent(one) for name, one in value.items()}
    return msgspec.to_builtins(value)


def same_stream(found: Setup, body: StreamBody) -> bool:
    """Whether a body is that of a stream: the same policy, also where its defaults are spelled out, and the rest."""
    for asked in (body, declared(body)):
        if found.text == setup_text(asked):
            return True
        plain = msgspec.structs.replace(asked, policy=found.body.policy)
        if found.text == setup_text(plain) and setup(asked).policy.digest == found.policy.digest:
            return True
    return False


def declared(body: StreamBody, before: StreamBody | None = None) -> StreamBody:
    """The body of a new stream, or of another policy of one, whose features say what becomes of unknown names.

    They are refused where nothing is said. Streams of before say nothing and allow them, and go on so.
    """
    if body.features is None or "unknown" in body.features:
        return body
    kept = {"unknown": "refuse"}
    if before is not None and before.features is not None:
        kept = {name: value for name, value in before.features.items() if name == "unknown"}
    return msgspec.structs.replace(body, features={**body.features, **kept})


def setup(body: StreamBody, tick: float | None = None) -> Setup:
    """A stream's parts, or the one sentence. `tick` is that of the stream whose policy this is to take over."""
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
    """Refuse a ramp that cannot be one."""
    shares = body.ramp or []
    if body.mode != "holdback":
        raise BadInput("ramp", body.mode, 'mode "holdback", which has a baseline', 'pass "mode": "holdback"')
    if not shares or any(b <= a for a, b in zip([0.0, *shares], shares, strict=False)):
        wanted = "shares of units above 0, each larger than the one before"
        raise BadInput("ramp", shares, wanted, "pass [0.01, 0.05, 0.25, 1], say")


def _policy(given: dict[str, Any]) -> Compiled:
    """{"name": …, "dim": …} as `make` takes it, or a policy as plain data, {"type": …}."""
    way_out = 'pass {"name": "Auto", "dim": 10}, say'
    fields = {name: _memory(value) for name, value in given.items()}
    try:
        if "type" in given:
            policy = restored_policy(given, way_out)
        elif isinstance(given.get("name"), str) and "dim" in given:
            policy = make(**fields)
        else:
            raise BadInput("policy", sorted(given), "a name and dim, and what else its row needs", way_out)
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError) as slip:
        if isinstance(slip, BadInput):
            raise
        raise BadInput("policy", type(slip).__name__, "fields of the kinds that the policy takes", way_out) from None
    return policy


def _memory(value: Any) -> Any:
    """A memory as plain data, {"type": "Fade", …}, becomes one."""
    if isinstance(value, dict) and "type" in value:
        return restored(value, kinds_of(Memory))
    return tuple(value) if isinstance(value, list) else value
