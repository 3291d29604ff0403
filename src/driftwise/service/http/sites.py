"""Which requests a web page may make a browser send here: a request's Host, Origin and Content-Type.

A page of any site can make the browser on this machine send requests to this server. A page cannot set these headers as
it likes, so they tell its requests from those of other programs:

- Host. A page whose name was rebound to this address (DNS rebinding) has the server's own origin in the browser's eyes,
  but the browser still sends the page's name.
- Origin, or Sec-Fetch-Site where there is none, says which site a request that changes something comes from.
- Content-Type. A page of another site may send application/json only after a preflight, which this server never grants.

No answer has a CORS header, so a page of another site can read none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Any, NamedTuple

from driftwise.errors import BadInput
from driftwise.service.wire.protocol import Refusal

Address = IPv4Address | IPv6Address

_JSON = b"application/json"
_LOOKED_AT = frozenset((b"host", b"origin", b"sec-fetch-site", b"content-type"))
_READS = frozenset(("GET", "HEAD", "OPTIONS"))
_BODIES = frozenset(("POST", "PUT", "PATCH", "DELETE"))
_ANY_HOST = frozenset(("/healthz", "/readyz"))  # a health check sends the address of its container; they reveal nothing
_AUTHORITY = re.compile(r"(?:\[([0-9a-z:.%]+)\]|([0-9a-z._-]+?)\.?)(?::([0-9]{0,5}))?", re.ASCII | re.IGNORECASE)
_MOST_KNOWN = 256


class _Authority(NamedTuple):
    """A host, as an address or as a name in lower case, and the port if one was given."""

    host: Address | str
    port: str


def _address(text: str) -> Address | None:
    try:
        made = ip_address(text)
    except ValueError:
        return None
    return (made.ipv4_mapped if isinstance(made, IPv6Address) else None) or made


def _authority(text: bytes | str) -> _Authority | None:
    """A parsed Host header, or None if it is malformed, for example with a user, or an IPv6 address without
    brackets."""
    found = _AUTHORITY.fullmatch(text.decode("latin-1") if isinstance(text, bytes) else text)
    if found is None:
        return None
    inside, name, port = found.groups(default="")
    host = _address(inside or name) or name.lower()
    return _Authority(host, port) if host and bool(inside) == (":" in inside) else None


def loopback(host: str) -> bool:
    """Whether only this machine can reach an address."""
    made = _address(host)
    return host == "localhost" if made is None else made.is_loopback


def _checked(name: str) -> Address | str:
    """A name given by --allow-host."""
    made = _address(name.removeprefix("[").removesuffix("]"))
    if made is not None:
        return made
    found = _authority(name)
    if found is None or ":" in name:
        raise BadInput("allow-host", name, "a host name or an address", "leave out the scheme, the port and the path")
    return found.host


class Site:
    """The names of this server. bound: the address it listens at; allowed: further names, such as a proxy's."""

    def __init__(self, bound: str = "127.0.0.1", allowed: Sequence[str] = ()) -> None:
        made = _address(bound)
        self._allowed = frozenset(map(_checked, allowed))
        self._own = self._allowed | {bound.lower().removesuffix(".") if made is None else made, "localhost"}
        # If the server listens on every address of the machine, every address is accepted: DNS rebinding needs a name.
        self._any_address = not bound or (made is not None and made.is_unspecified)
        self._known: set[bytes] = set()  # Host headers that were accepted

    def check(self, scope: dict[str, Any]) -> None:
        """Accept a request, or refuse it with 400, 403, 415 or 421."""
        found: dict[bytes, bytes] = {}
        for name, value in scope["headers"]:
            if name in _LOOKED_AT:
                if name in found:
                    raise Refusal("repeated_header", f"more than one {name.decode()} header", name.decode())
                found[name] = value
        host, method = found.get(b"host"), scope["method"]
        if host not in self._known and scope.get("path") not in _ANY_HOST:
            self.check_host(host, scope["http_version"])
        if method in _READS:
            return
        if b"origin" in found or b"sec-fetch-site" in found:
            self._check_origin(found.get(b"origin"), found.get(b"sec-fetch-site"), host or b"")
        kind = found.get(b"content-type", b"")
        if kind != _JSON and method in _BODIES and kind.partition(b";")[0].strip().lower() != _JSON:
            raise Refusal("wrong_content_type")

    def check_host(self, host: bytes | None, version: str) -> None:
        """Accept a request by its Host header, or refuse it with 400 or 421."""
        if host is None:
            if version == "1.0":  # which no browser speaks
                return
            raise Refusal("missing_host")
        asked = _authority(host)
        if asked is None or not self._is_own(asked.host):
            name = "this name" if asked is None else str(asked.host)
            raise Refusal("wrong_host", f"this server does not answer to {name}")
        if len(self._known) < _MOST_KNOWN:
            self._known.add(host)

    def _is_own(self, host: Address | str) -> bool:
        return host in self._own or (not isinstance(host, str) and (self._any_address or host.is_loopback))

    def _check_origin(self, origin: bytes | None, site: bytes | None, host: bytes) -> None:
        """Check that the page's host and port are those of the request. Its scheme may be that of a TLS proxy. A proxy
        that sends another Host must be named by --allow-host."""
        if origin is None:
            fits = site in (b"same-origin", b"none")
        else:
            scheme, _, rest = origin.partition(b"://")
            page = _authority(rest) if scheme in (b"http", b"https") else None
            fits = page is not None and (page == _authority(host) or page.host in self._allowed)
        if not fits:
            raise Refusal("foreign_origin")
