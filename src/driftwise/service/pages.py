"""The dashboard's pages as HTML: light and dark, narrow and wide, whole without JavaScript."""

from __future__ import annotations

import math
import time
from base64 import b64encode
from hashlib import sha256
from html import escape
from urllib.parse import quote

from driftwise.service.engine import Engine
from driftwise.service.looking import Look, Mean, slowest
from driftwise.service.protocol import Explained

_STYLE = """
:root{color-scheme:light dark;--ink:#1a1a1a;--soft:#666;--line:#ccc;--ground:#fff;--bar:#0072b2}
@media(prefers-color-scheme:dark){:root{--ink:#e8e6e1;--soft:#a8a8a6;--line:#3d444d;--ground:#14171b;--bar:#4694d7}}
body{font:16px/1.45 system-ui,sans-serif;color:var(--ink);background:var(--ground)}
body{margin:0 auto;max-width:70rem;padding:1rem}
a{color:inherit}h1{font-size:1.4rem}h2{font-size:1.05rem;margin:1.5rem 0 .4rem}p{margin:.4rem 0}.soft{color:var(--soft)}
.grid{display:grid;grid-template-columns:repeat(auto-fit,minmax(17rem,1fr));gap:0 2rem}
table{border-collapse:collapse;width:100%}
td,th{text-align:left;padding:.25rem .6rem .25rem 0;border-bottom:1px solid var(--line)}
td.n,th.n{text-align:right;font-variant-numeric:tabular-nums}.wide{overflow-x:auto}
svg{width:100%;height:8rem}svg.bar{height:.6rem;min-width:6rem;fill:var(--bar)}code{overflow-wrap:anywhere}
"""
_SCRIPT = """
const here=document.querySelector('main[data-live]');
if(here){const told=new EventSource(here.dataset.live);told.onmessage=e=>{here.innerHTML=JSON.parse(e.data)}}
"""
_HASH = b64encode(sha256(_SCRIPT.encode()).digest()).decode()
HEADERS = {
    "content-security-policy": f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{_HASH}'; "
    "connect-src 'self'", "cache-control": "no-store", "x-content-type-options": "nosniff",
}  # fmt: skip
_INKS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#8b1a5b", "#767676")


def page(title: str, main: str, live: str | None = None) -> str:
    """A whole page."""
    fresh = "" if live is None else f' data-live="{escape(live)}"'
    return (
        f'<!doctype html><html lang="en"><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style><body><main{fresh}>{main}</main>"
        f"<script>{_SCRIPT}</script></body></html>"
    )


def table(columns: list[str], rows: list[list[str]], numeric: tuple[int, ...] = ()) -> str:
    """Rows of cells that are HTML already."""

    def cells(kind: str, row: list[str]) -> str:
        return "".join(f'<{kind}{" class=n" if i in numeric else ""}>{cell}</{kind}>' for i, cell in enumerate(row))

    body = "".join(f"<tr>{cells('td', row)}</tr>" for row in rows)
    return f'<div class="wide"><table><tr>{cells("th", columns)}</tr>{body}</table></div>'


def overview(engine: Engine) -> str:
    """All streams."""
    rows = []
    for name, stream in sorted(engine.streams.items()):
        seq, rewarded, learned = stream.kept
        paused = " (paused)" if stream.paused else ""
        link = f'<a href="/streams/{quote(name)}">{escape(name)}</a>{paused}'
        counts = (seq, learned, rewarded - learned, seq - rewarded)
        rows.append([link, stream.setup.body.mode, *(f"{count:,}" for count in counts)])
    health = escape(engine.full) or "everything that is answered is on disk"
    listed = table(["stream", "mode", "decided", "learned", "late", "open"], rows, (2, 3, 4, 5))
    empty = "<p>No stream yet: PUT /v1/streams/{name} makes one.</p>"
    return f"<h1>driftwise</h1><p>{health}; commits, 99 of 100: {slowest(engine)}.</p>{listed if rows else empty}"


def stream_page(found: Look, commit: str) -> str:
    """One stream."""
    one = found.answer
    return (
        f'<p><a href="/">all streams</a></p><h1>{escape(one.stream)}</h1>'
        f'<p class="soft">{one.mode}, clock of {one.clock}, era {one.era}{", paused" if one.paused else ""}; '
        f"policy <code>{one.policy}</code>, state {one.state_seq} <code>{one.digest[:16]}</code></p>"
        f'<div class="grid"><section><h2>Reward</h2>{_reward(found)}</section>'
        f"<section><h2>Drift</h2>{_drift(found)}</section>"
        f"<section><h2>Played lately</h2>{_bars(found.shares)}</section>"
        f"<section><h2>Events</h2>{_events(found, commit)}</section></div>"
        f"<h2>Coefficients</h2>{_coefficients(found)}"
    )


def _interval(one: Mean) -> str:
    if one.n < 2:
        return f"{one.mean:.4g}"
    return f'{one.mean:.4g} <span class="soft">({one.low:.4g} to {one.high:.4g})</span>'


def _reward(found: Look) -> str:
    if not found.cohorts:
        return "<p>No reward yet.</p>"
    rows = [[name, f"{one.n:,}", _interval(one)] for name, one in found.cohorts.items()]
    lift = "" if found.lift is None else f"<p>Lift of live over baseline: <b>{_interval(found.lift)}</b></p>"
    return table(["who chose", "rewards", "mean, 95%"], rows, (1,)) + lift


def _drift(found: Look) -> str:
    memory = "everything" if math.isinf(found.memory) else f"{found.memory:.4g} ticks"
    rows = [["remembers", memory], ["worth", f"{found.worth:.4g} observations"]]
    words = {"evidence": "evidence for a level of its own, nats", "level": "memory of the level, rounds"}
    rows += [[word, f"{found.drift[name]:.4g}"] for name, word in words.items() if name in found.drift]
    return table(["", ""], rows, (1,))


def _bars(shares: list[tuple[str, float]]) -> str:
    if not shares:
        return "<p>No decision yet.</p>"
    rows = [
        [escape(name), f"{share:.1%}", '<svg class="bar" viewBox="0 0 100 4" preserveAspectRatio="none" role="img" '
         f'aria-label="{share:.0%}"><rect width="{100 * share:.2f}" height="4"/></svg>'] for name, share in shares
    ]  # fmt: skip
    return table(["", "share", ""], rows, (1,))


def _events(found: Look, commit: str) -> str:
    counts = found.answer.counts
    rows = [["decided", f"{counts.decided:,}"], ["learned", f"{counts.learned:,}"], ["late", f"{counts.late:,}"],
            ["open", f"{counts.open:,}"], ["commit, 99 of 100", commit]]  # fmt: skip
    if found.delays is not None:
        rows.append(["reward after, half and nine tenths", f"{found.delays[0]:.3g} s, {found.delays[1]:.3g} s"])
    return table(["", ""], rows, (1,))


def _coefficients(found: Look) -> str:
    listed = table(
        ["feature", "now"],
        [[f'<span style="color:{ink}">■</span> {escape(name)}', f"{value:+.4f}"]
         for (name, value), ink in zip(found.theta, _INKS, strict=False)], (1,),
    )  # fmt: skip
    if len(found.history) < 2:
        return listed
    numbers = [value for _, row in found.history for value in row]
    low, high = min(numbers), max(numbers)
    first, last = found.history[0][0], found.history[-1][0]
    wide, tall = 100.0 / max(last - first, 1e-9), 30.0 / max(high - low, 1e-12)
    lines = []
    for i, ink in zip(range(len(found.theta)), _INKS, strict=False):
        points = " ".join(f"{wide * (at - first):.2f},{30 - tall * (row[i] - low):.2f}" for at, row in found.history)
        lines.append(f'<polyline points="{points}" fill="none" stroke="{ink}" stroke-width="1.5" '
                     'vector-effect="non-scaling-stroke"/>')  # fmt: skip
    span = f"the last {(last - first) / 60:.1f} minutes, {low:.3g} to {high:.3g}"
    return (
        '<svg viewBox="0 0 100 30" preserveAspectRatio="none" role="img" aria-label="coefficients over time">'
        f'{"".join(lines)}</svg><p class="soft">{span}</p>{listed}'
    )


def decision_page(stream: str, found: Explained) -> str:
    """One decision explained."""
    one = found.decision
    came = {True: "came out again to the last bit", False: "does not come out again", None: "its arms were forgotten"}
    when = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(found.at))
    reward = "none yet" if found.reward is None else f"{found.reward:g} ({escape(found.verdict)})"
    rows = [
        [("<b>played</b> " if arm.arm == one.arm else "") + escape(arm.item or f"arm {arm.arm}"), f"{arm.mean:.4f}",
         f"{arm.bonus:.4f}", f"{arm.score:.4f}"] for arm in found.arms[:50]
    ]  # fmt: skip
    share = "unknown" if one.propensity is None else f"{one.propensity:.4g}"
    return (
        f'<p><a href="/streams/{quote(stream)}">{escape(stream)}</a></p><h1>Decision {escape(one.id)}</h1>'
        f"<p>Number {one.seq}, {when} UTC, on the state after {one.state_seq} rewards; chosen by {one.cohort} with "
        f"propensity {share}{', explored' if one.explored else ''}. Reward: {reward}.</p>"
        f"<p>It {came[found.recomputed]}.</p>"
        + table(["arm", "estimate", "bonus", "score"], rows, (1, 2, 3))
    )
