"""A whole page with its style and script, and the headers that forbid it to load anything else."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files

from driftwise.draw.markup import Html, joined, tag
from driftwise.draw.page import DARK, style
from driftwise.draw.styles import PALETTE


def _colours() -> str:
    """The classes c0 … c6, light and dark, in the report's hues."""
    hues = [PALETTE[name] for name in ("weighted", "discounted", "restart", "MASTER", "Bank", "window", "other")]
    light = "".join(f".c{place} {{ color: {hue}; }}\n" for place, hue in enumerate(hues))
    dark = "".join(f".c{place} {{ color: {DARK[hue]}; }}\n" for place, hue in enumerate(hues))
    return f"{light}@media screen and (prefers-color-scheme: dark) {{\n{dark}}}\n"


def _file(name: str) -> str:
    return (files("driftwise.service.dashboard") / name).read_text(encoding="utf-8")


_STYLE = style() + _file("dashboard.css") + _colours()
_SCRIPT = _file("live.js")


def hash_of(text: str) -> str:
    """The hash by which a content policy identifies a text."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


# Only this style and script, and events from this server: markup that was not escaped could still do nothing.
CONTENT_POLICY = (
    f"default-src 'none'; style-src {hash_of(_STYLE)}; script-src {hash_of(_SCRIPT)}; connect-src 'self'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = [
    (b"content-security-policy", CONTENT_POLICY.encode()), (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"), (b"cross-origin-resource-policy", b"same-origin"),
    (b"cache-control", b"no-store"),
]  # fmt: skip


def html_document(title: str, above: object, lead: object, parts: dict[str, Html], events: str = "") -> bytes:
    """A whole page."""
    top = tag("header", tag("p", above), tag("h1", title), tag("p", lead), tag("span", id="live"))
    sections = [tag("section", inside, id=name) for name, inside in parts.items()]
    body = tag("body", top, tag("main", *sections), tag("script", Html(_SCRIPT)), data_events=events or None)
    head = joined([
        Html('<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1">'),
        Html('<meta name="color-scheme" content="light dark"><link rel="icon" href="data:,">'),
        tag("title", f"{title} · driftwise"), tag("style", Html(_STYLE)),
    ])  # fmt: skip
    return f'<!doctype html>\n<html lang="en"><head>{head}</head>{body}</html>\n'.encode()
