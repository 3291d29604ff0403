"""A webhook: messages on drift, lift and stops, sent to the one address given at start.

A message is a row, written with its event. A thread sends it, signed, and erases it when the receiver answers 2xx.
Until then it is sent again at growing intervals. So an answer never waits for a message, and a restart loses none. The
time of the next attempt is written before each attempt: a message may arrive twice, with the same `id`, but two
replicas never send it at once. Redirects are not followed.
"""

from __future__ import annotations

import asyncio
import hashlib
import hmac
import http.client
import os
import ssl
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, urlsplit

import msgspec

from driftwise.errors import BadInput, DriftwiseError
from driftwise.service.core.serving import Service
from driftwise.service.core.telling import Telling
from driftwise.service.core.warming import end_soon
from driftwise.service.http.logs import ServerLog
from driftwise.service.stores.records import NoticeRow

SECRET = "DRIFTWISE_WEBHOOK_SECRET"
_SHORTEST = 16  # least characters of a secret
_TIMEOUT = 10.0
# Seconds to the second attempt, the most between two attempts, and their number, which is about a day.
_FIRST, _LONGEST, _TRIES = 5.0, 3600.0, 30
_PAUSE, _EVERY = 0.5, 10  # seconds between two looks for messages; every tenth look also looks at the streams


class Webhook:
    """The address of the messages, and the secret that signs them."""

    def __init__(self, url: str, secret: str) -> None:
        try:
            found = urlsplit(url)
            good = found.scheme in ("http", "https") and found.hostname and found.port != 0
        except ValueError:  # an invalid port or bracket
            good = False
        if not good or found.username or found.fragment or not url.isprintable():
            raise BadInput("webhook", url, "an http:// or https:// address without a user", "pass https://host/path")
        if len(secret) < _SHORTEST:
            wanted = f"a secret of at least {_SHORTEST} characters that signs messages"
            raise BadInput("webhook", "no secret", wanted, f"set {SECRET}, or pass --webhook-secret-file")
        self._to: SplitResult = found
        self._secret = secret.encode()

    def __repr__(self) -> str:
        return f"<Webhook to {self._to.hostname}>"

    def signature(self, body: bytes, at: int) -> str:
        """The header of a message: its time, and the HMAC-SHA256 of the time, a dot and the body."""
        return f"t={at},v1={hmac.new(self._secret, b'%d.' % at + body, hashlib.sha256).hexdigest()}"

    def send(self, body: bytes) -> str:
        """Send a message, in a thread: "" if it was accepted, else the reason why not."""
        to, at = self._to, int(time.time())
        secure = to.scheme == "https"
        more: dict[str, Any] = {"context": ssl.create_default_context()} if secure else {}
        kind: Any = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(to.hostname, to.port, timeout=_TIMEOUT, **more)
        headers = {"content-type": "application/json", "driftwise-signature": self.signature(body, at)}
        try:
            connection.request("POST", (to.path or "/") + (f"?{to.query}" if to.query else ""), body, headers)
            status = connection.getresponse().status
            return "" if 200 <= status < 300 else f"status {status}"
        except (OSError, http.client.HTTPException, ValueError) as error:
            return type(error).__name__
        finally:
            connection.close()


def webhook_of(url: str | None, file: Path | None) -> Webhook | None:
    """The webhook of a server. Its secret comes from a file or from the environment, never from an argument."""
    if url is None:
        return None
    try:
        secret = os.environ.get(SECRET, "") if file is None else file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as error:
        raise BadInput("webhook_secret_file", f"{file}: {error}", "a file of text", "pass another") from None
    return Webhook(url, secret)


class Sender:
    """Sends the messages of a service. `run` continues until it is cancelled."""

    def __init__(self, service: Service, hook: Webhook, log: ServerLog) -> None:
        self.service, self.hook, self.log = service, hook, log
        self.sent = self.failed = 0
        self._telling = Telling(service)
        self._thread = ThreadPoolExecutor(1, "driftwise webhook")

    async def run(self) -> None:
        looks = 0
        while True:
            await asyncio.sleep(_PAUSE)
            if self.service.engine.stopping:
                continue
            with suppress(DriftwiseError):  # the store is not reachable, or the server is overloaded
                if looks % _EVERY == 0:
                    await self._telling.look()
                await self.look()
            looks += 1

    def close(self) -> bool:
        """Close it. Returns whether its thread has ended."""
        return end_soon(self._thread)

    async def look(self) -> None:
        """Send the messages that are due, until one is not accepted."""
        for one in await self.service.aside(lambda store: store.notices(self.service.now())):
            if not await self._sent(one):
                break

    async def _sent(self, one: NoticeRow) -> bool:
        service, claimed = self.service, [False]

        def claim() -> None:
            due = service.now() + min(_FIRST * 2.0 ** min(one.tries, 20), _LONGEST)
            claimed[0] = service.store.put_off(one.id, due, one.tries)

        await service.written(claim, lambda: None)
        if not claimed[0]:  # another replica sends it
            return True
        body = msgspec.json.encode({"id": one.id, **msgspec.json.decode(one.body)})
        why = await asyncio.get_running_loop().run_in_executor(self._thread, partial(self.hook.send, body))
        self.sent, self.failed = self.sent + (not why), self.failed + bool(why)
        if why:
            self.log.event("webhook", notice=one.id, tries=one.tries + 1, why=why)
        if not why or one.tries + 1 >= _TRIES:
            drop: Callable[[], None] = partial(service.store.drop_notice, one.id)
            await service.written(drop, lambda: None)
        return not why
