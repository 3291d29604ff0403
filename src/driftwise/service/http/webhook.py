"""A webhook: messages of drift, lift and stops, sent from the database to the one address given at start.

A message is a row, written with the event that it is of. It is sent by a thread of its own, signed, and erased when the
receiver answers 2xx; until then it is sent again, later and later. So an answer never waits for it, and a restart loses
none. Before it is sent its next try is written down: a message may come twice, by the same `id`, and never from two
replicas at once. Redirects are not followed.
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
from driftwise.service.http.logs import Log
from driftwise.service.stores.records import NoticeRow

SECRET = "DRIFTWISE_WEBHOOK_SECRET"
_SHORTEST = 16  # characters of a secret
_TIMEOUT = 10.0
_FIRST, _LONGEST, _TRIES = 5.0, 3600.0, 30  # seconds to the second try, most from try to try, and how many: a day
_PAUSE, _EVERY = 0.5, 10  # seconds from look to look for messages, and looks from one to the next at the streams


class Webhook:
    """Where messages go, and what signs them."""

    def __init__(self, url: str, secret: str) -> None:
        try:
            found = urlsplit(url)
            good = found.scheme in ("http", "https") and found.hostname and found.port != 0
        except ValueError:  # a port or a bracket that is none
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
        """Send a message, in a thread: "" when it was taken, else why not."""
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
        except (OSError, http.client.HTTPException, ValueError) as slip:
            return type(slip).__name__
        finally:
            connection.close()


def webhook_of(url: str | None, file: Path | None) -> Webhook | None:
    """The webhook that a server is started with; its secret is in a file or in the environment, never an argument."""
    if url is None:
        return None
    try:
        secret = os.environ.get(SECRET, "") if file is None else file.read_text(encoding="utf-8").strip()
    except (OSError, UnicodeError) as slip:
        raise BadInput("webhook_secret_file", f"{file}: {slip}", "a file of text", "pass another") from None
    return Webhook(url, secret)


class Sender:
    """Sends the messages of a service; `run` goes on until it is cancelled."""

    def __init__(self, service: Service, hook: Webhook, log: Log) -> None:
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
            with suppress(DriftwiseError):  # the store is away, or more wait than can be served
                if looks % _EVERY == 0:
                    await self._telling.look()
                await self.look()
            looks += 1

    def close(self) -> bool:
        """Whether its thread has ended."""
        return end_soon(self._thread)

    async def look(self) -> None:
        """Send the messages that are due, until one is not taken."""
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
