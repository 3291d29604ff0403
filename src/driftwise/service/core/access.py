"""Access: bearer keys, of which only the sha256 is stored, scopes per stream, and a limit on failed attempts."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import hmac
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any

from driftwise.errors import BadInput
from driftwise.service.stores.records import KeyRow
from driftwise.service.stores.store import Store
from driftwise.service.wire.protocol import Refusal

SCOPES = ("decide", "reward", "admin")
_FAILURES, _MINUTE = 10, 60.0
_MOST_CALLERS = 10_000
_EVERY = 0.25  # seconds between two readings of the keys


def new_key() -> str:
    """256 random bits as text."""
    return secrets.token_urlsafe(32)


def hashed(key: str) -> bytes:
    """The stored hash of a key. A key is random, so it needs no salt and no slow hash."""
    return hashlib.sha256(key.encode(errors="replace")).digest()


def checked_scopes(text: str) -> str:
    """Scopes as they are stored, in one order."""
    asked = {one.strip() for one in text.split(",") if one.strip()}
    if not asked or not asked <= set(SCOPES):
        raise BadInput("scopes", text, f"some of {', '.join(SCOPES)}", "pass decide,reward for example")
    return ",".join(one for one in SCOPES if one in asked)


def _presented(header: str | None, basic: bool) -> str | None:
    """The key in a header: a bearer's, or, with basic, the password that a browser asked for."""
    kind, _, rest = (header or "").partition(" ")
    if kind.lower() == "bearer":
        return rest
    if basic and kind.lower() == "basic":
        with contextlib.suppress(ValueError):
            return base64.b64decode(rest).decode().partition(":")[2]
    return None


def caller_of(scope: dict[str, Any]) -> str:
    """The address that a request came from; "" where the connection has none."""
    return scope["client"][0] if scope.get("client") else ""


def authorization(scope: dict[str, Any]) -> str | None:
    """The Authorization header of a request. Two of them are refused: a proxy may have read the other one."""
    found = [value for name, value in scope["headers"] if name == b"authorization"]
    if len(found) > 1:
        raise Refusal("repeated_header", f"{len(found)} Authorization headers", "authorization")
    return found[0].decode("latin-1") if found else None


def sees(key: KeyRow | None, stream: str) -> bool:
    """Whether a key is for a stream; without a key, on an open server, every stream is seen."""
    return key is None or key.stream in ("*", stream)


class Access:
    """The valid keys, and whether one is needed. A server is open only while it listens on loopback and its database
    has never had a key. After the first key it is closed for good, even if all keys are revoked."""

    def __init__(self, keys: Sequence[KeyRow], now: Callable[[], float] = time.monotonic) -> None:
        self.keys: list[KeyRow] = []
        self.closed = False
        self._now = now
        self._failures: OrderedDict[str, list[float]] = OrderedDict()
        self.take(keys)

    def __repr__(self) -> str:
        return f"<Access with {len(self.keys)} keys>"

    def take(self, keys: Sequence[KeyRow]) -> None:
        """Replace the keys by all rows of the table `key`, revoked ones too. Any thread may call this."""
        self.closed = self.closed or bool(keys)  # first, because a request may be checked between the two lines
        self.keys = [key for key in keys if key.revoked is None]

    def close(self) -> None:
        """Require a key from now on: the server listens on an address that other machines can reach."""
        self.closed = True

    def check(
        self, caller: str, header: str | None, scope: str | None, stream: str | None, *, basic: bool = False
    ) -> KeyRow | None:
        """Check the key of a request: returns it, or raises 401, 403 or 429. scope None: any key of the stream
        suffices. A valid key always passes; only failures are limited. basic: the key may be the password of Basic,
        which a browser repeats by itself, so it is only for pages that change nothing."""
        if not self.closed:
            return None
        given = _presented(header, basic)
        known = None
        if given is not None:
            presented = hashed(given)
            for key in self.keys:  # all keys are compared, so the time does not depend on which one fits
                if hmac.compare_digest(key.sha256, presented):
                    known = key
        if known is None:
            self._fail(caller)
            raise Refusal("unknown_key")
        fits = stream is None or sees(known, stream)
        if not fits or (scope is not None and scope not in known.scopes.split(",")):
            raise Refusal("missing_scope", f"this key does not have the scope {scope or 'for this stream'}")
        return known

    def _fail(self, caller: str) -> None:
        """Count a failure of an address, or 429 if it had too many within a minute. The number of addresses and times
        in memory is bounded."""
        now = self._now()
        recent = [at for at in self._failures.pop(caller, ()) if at > now - _MINUTE]
        self._failures[caller] = recent
        if len(recent) >= _FAILURES:
            wait = max(1, int(recent[0] - (now - _MINUTE)) + 1)
            raise Refusal("many_failures", retry_after=wait)
        recent.append(now)
        if len(self._failures) > _MOST_CALLERS:
            self._failures.popitem(last=False)


class KeyWatch:
    """Reads the keys of a database four times a second, in its own thread and connection, because commits may keep the
    store's other connection busy for seconds."""

    def __init__(self, access: Access, store: Store, error: Callable[[Exception], None]) -> None:
        self._access, self._store, self._slip = access, store, error
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="driftwise keys", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join(5.0)

    def _run(self) -> None:
        failing = False
        while not self._ended.is_set():
            try:
                with contextlib.closing(self._store.aside()) as aside:
                    while not self._ended.is_set():
                        self._access.take(aside.keys())
                        failing = False
                        self._ended.wait(_EVERY)
            except Exception as error:  # such as a lost connection: the keys stay until a read succeeds
                if not failing:
                    self._slip(error)
                failing = True
                self._ended.wait(_EVERY)
