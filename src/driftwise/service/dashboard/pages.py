"""The pages of streams. A page is a title and parts with ids. Events replace the parts."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import quote

from driftwise.draw.markup import Html, badge, html_table, joined, tag
from driftwise.lift import Look
from driftwise.service.dashboard import cards, reading
from driftwise.service.dashboard.live import WHO, LiveStream, Server, address, arm_name, mode_of
from driftwise.service.dashboard.reading import Newest
from driftwise.service.dashboard.track import EVERYTHING, Track
from driftwise.service.dashboard.wording import card, count, decimal, short, shown_time, span, tile

_MOST_STREAMS = 500


def streams(all_of_them: Sequence[LiveStream], server: Server) -> dict[str, Html]:
    """The parts of the first page."""
    decided = sum(one.counts.decided for one in all_of_them)
    learned = sum(one.counts.learned for one in all_of_them)
    waiting = sum(one.counts.open for one in all_of_them)
    tiles = tag(
        "dl",
        tile("streams", count(len(all_of_them))), tile("decisions", count(decided)),
        tile("rewards learned", count(learned)), tile("open", count(waiting)), tile("commit p99", server.p99),
        class_="tiles",
    )  # fmt: skip
    warning = joined([
        tag("p", badge("disk full", "no"), " Nothing can be written: ", server.full) if server.full else "",
        _clock(server),
    ])  # fmt: skip
    rows = [
        (
            tag("a", one.name, href=f"/streams/{quote(one.name, safe='')}"), mode_of(one), one.policy,
            count(one.counts.decided), count(one.counts.learned), count(one.counts.late),
            count(one.counts.open), count(one.state_seq),
        )
        for one in all_of_them[:_MOST_STREAMS]
    ]  # fmt: skip
    columns = ("stream", "mode", "policy", "decisions", "learned", "late", "open", "state_seq")
    listed = html_table(columns, rows, range(3, 8), "Streams") if rows else tag(
        "p", "No stream yet: ", tag("code", "PUT /v1/streams/{stream}"), " makes one."
    )  # fmt: skip
    left = len(all_of_them) - _MOST_STREAMS
    more = tag("p", f"{count(left)} more are not listed.") if left > 0 else ""
    return {"now": joined([warning, tiles]), "streams": card("Streams", listed, more)}


def now(one: LiveStream, server: Server, track: Track) -> Html:
    """The numbers at the top."""
    state, memory = track.now, track.memory
    days = one.setup.clock().days(memory)
    remembers = track.lasting(memory)
    if days is not None and remembers != EVERYTHING:
        remembers = span(days * 86400.0)
    tiles = tag(
        "dl",
        tile("decisions", count(one.counts.decided)), tile("rewards learned", count(one.counts.learned)),
        tile("open", count(one.counts.open)), tile("state_seq", count(one.state_seq)),
        tile("effective observations", decimal(state.effective), f"remembers {remembers}"),
        tile("commit p99", server.p99), _replicas(one), class_="tiles",
    )  # fmt: skip
    told = [mode_of(one), f" {one.policy}, clock of {'the wall' if one.setup.body.clock == 'wall' else 'rewards'}"]
    if one.era.number > 1:
        told.append(f", generation {one.era.number}")
    full = tag("p", badge("disk full", "no"), " ", server.full) if server.full else ""
    return joined([tag("p", *told, class_="soft"), full, _clock(server), tiles])


def _clock(server: Server) -> Html | str:
    """The warning about a clock that was set ahead."""
    return tag("p", badge("clock held back", "no"), " ", server.clock) if server.clock else ""


def _replicas(one: LiveStream) -> object:
    """How many replicas serve the stream, and how far the last one is behind; nothing if there is only one."""
    if not one.replicas:
        return ""
    behind = max(one.lag, max(max(folded for _, folded in one.replicas) - folded for _, folded in one.replicas))
    return tile("replicas", count(len(one.replicas)), f"the last is {count(behind)} rewards behind")


def parts(
    one: LiveStream, found: Newest, listed: Sequence[reading.NewestDecision], track: Track, look: Look | None
) -> dict[str, Html]:
    """The parts of a stream's page that need the log."""
    return {
        "reward": cards.reward(one, found, look), "drift": cards.drift_card(track), "shares": cards.shares_card(found),
        "coefficients": cards.coefficients(track), "delays": cards.delays_card(one, found),
        "latest": _latest(one, listed),
    }  # fmt: skip


def _latest(one: LiveStream, listed: Sequence[reading.NewestDecision]) -> Html:
    rows = [
        (
            tag("a", short(row.id), href=address(one.name, row.id)), shown_time(row.at), arm_name(row.arm, row.item),
            WHO.get(row.cohort, row.cohort), decimal(row.propensity), decimal(row.value), row.verdict or "open",
        )
        for row in listed
    ]  # fmt: skip
    columns = ("decision", "at (UTC)", "played", "chosen by", "propensity", "reward", "verdict")
    inside = html_table(columns, rows, (4, 5), "Newest decisions") if rows else tag("p", "No decisions yet.")
    return card("Newest decisions", inside)
