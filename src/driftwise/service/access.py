"""Who may do what: bearer keys of which only the sha256 is known, scopes a stream, and a limit on guessing."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import secrets
import time
from collections.abc import Callable, Sequence

from driftwise.errors import BadInput
from driftwise.service.protocol import Refusal
from driftwise.service.store import KeyRow

SCOPES = ("decide", "reward", "admin")
_FAILURES, _MINUTE = 10, 60.0
_MOST_CALLERS = 10_000


def new_key() -> str:
    """256 random bits as text."""
    return secrets.token_urlsafe(32)


def hashed(key: str) -> bytes:
    """What is stored of a key. It is random, so no salt and no slow hash is needed."""
    return hashlib.sha256(key.encode(errors="replace")).digest()


def checked_scopes(text: str) -> str:
    """Scopes as they are stored, in one order."""
    asked = {one.strip() for one in text.split(",") if one.strip()}
    if not asked or not asked <= set(SCOPES):
        raise BadInput("scopes", text, f"some of {', '.join(SCOPES)}", "pass decide,reward, say")
    return ",".join(one for one in SCOPES if one in asked)


def _presented(header: str | None) -> str | None:
    """The key in a header: a bearer's, or the password that a browser asked for."""
    kind, _, rest = (header or "").partition(" ")
    if kind.lower() == "bearer":
        return rest
    if kind.lower() == "basic":
        with contextlib.suppress(ValueError):
            return base64.b64decode(rest).decode().partition(":")[2]
    return None


class Access:
    """Keys at hand. Where there are none everybody may do everything: the server then listens to this machine only."""

    def __init__(self, keys: Sequence[KeyRow], now: Callable[[], float] = time.monotonic) -> None:
        self.keys = list(keys)
        self._now = now
        self._failures: dict[str, list[float]] = {}

    def __repr__(self) -> str:
        return f"<Access with {len(self.keys)} keys>"

    def check(self, caller: str, header: str | None, scope: str | None, stream: str | None) -> KeyRow | None:
        """Let a request pass with its key, or 401, 403, 429. scope None: any key of the stream will do."""
        if not self.keys:
            return None
        self._limit(caller)
        given = _presented(header)
        known = None
        if given is not None:
            presented = hashed(given)
            for key in self.keys:  # all of them, whichever fits: time tells nothing
                if hmac.compare_digest(key.sha256, presented):
                    known = key
        if known is None:
            self._fail(caller)
            raise Refusal(401, "no key, or none that is known", "authorization", "send Authorization: Bearer <key>")
        fits = known.stream == "*" or stream is None or known.stream == stream
        if not fits or (scope is not None and scope not in known.scopes.split(",")):
            hint = "use a key with that scope and stream"
            raise Refusal(403, f"this key has no {scope or 'scope'} here", "authorization", hint)
        return known

    def _limit(self, caller: str) -> None:
        recent = self._failures.get(caller)
        if recent is None:
            return
        since = self._now() - _MINUTE
        recent[:] = [at for at in recent if at > since]
        if not recent:
            del self._failures[caller]
        elif len(recent) >= _FAILURES:
            wait = max(1, int(recent[0] - since) + 1)
            raise Refusal(429, "too many keys that are not known", "authorization", "wait", retry_after=wait)

    def _fail(self, caller: str) -> None:
        if caller not in self._failures and len(self._failures) >= _MOST_CALLERS:
            del self._failures[next(iter(self._failures))]
        self._failures.setdefault(caller, []).append(self._now())
