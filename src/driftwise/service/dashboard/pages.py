"""What the pages say. A page is a title and parts with ids; the parts are what stays live."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple
from urllib.parse import quote

import msgspec
import numpy as np

from driftwise.service.dashboard import charts, reading
from driftwise.service.dashboard.comparing import Cohort, Interval
from driftwise.service.dashboard.markup import (
    Html,
    badge,
    count,
    joined,
    moment,
    numbers,
    percent,
    real,
    short,
    signed,
    span,
    table,
    tag,
)
from driftwise.service.dashboard.reading import Newest
from driftwise.service.dashboard.track import Track
from driftwise.service.engine import BUCKETS
from driftwise.service.protocol import Explained
from driftwise.service.setup import Setup
from driftwise.service.store import DecisionRow, EraRow
from driftwise.service.stream import Stream

COEFFICIENTS = 5  # those that are drawn
_MOST_STREAMS = 500
_ARMS, _PULLS = 12, 8


class Live(NamedTuple):
    """What the server knows of a stream without asking the log, taken between two groups."""

    name: str
    number: int
    paused: bool
    setup: Setup
    era: EraRow
    decided: int
    rewarded: int
    learned: int
    state_seq: int
    duplicates: int
    tick: int
    last: int  # the largest number of a decision
    lag: int = 0
    replicas: tuple[tuple[str, int], ...] = ()  # names, and the last reward each has folded; none where one is alone

    @property
    def policy(self) -> str:
        given = self.setup.body.policy
        return str(given.get("name") or given.get("type") or type(self.setup.policy).__name__)


def live_of(stream: Stream, now: float) -> Live:
    """For the event loop, where nothing moves meanwhile."""
    _, rewarded, learned = stream.kept
    tick = stream.clock.born(now, learned)[0]
    return Live(
        stream.row.name, stream.row.id, stream.paused, stream.setup, stream.era, stream.decided, rewarded, learned,
        stream.fold.seq, stream.duplicates, tick, stream.last, stream.lag, stream.replicas,
    )  # fmt: skip


class Server(NamedTuple):
    """What concerns all streams."""

    commits: tuple[int, ...]
    full: str

    @property
    def p99(self) -> str:
        """The end of the bucket in which the 99% quantile of commits lies."""
        total = sum(self.commits)
        if not total:
            return "–"
        place = next(i for i, upto in enumerate(itertools.accumulate(self.commits)) if upto >= 0.99 * total)
        return f"≤ {span(BUCKETS[place])}" if place < len(BUCKETS) else f"> {span(BUCKETS[-1])}"


def _tile(name: str, value: object, more: object = "") -> Html:
    return tag("div", tag("dt", name), tag("dd", value, tag("small", more) if more else ""))


def _card(title: str, *inside: object) -> Html:
    return joined([tag("h2", title), *inside])


def _about(found: Newest) -> str:
    return "the newest decision" if len(found) == 1 else f"the newest {count(len(found))} decisions"


# ------------------------------------------------------------------------------------------ all streams


def streams(all_of_them: Sequence[Live], server: Server) -> dict[str, Html]:
    """The parts of the first page."""
    decided = sum(one.decided for one in all_of_them)
    learned = sum(one.learned for one in all_of_them)
    waiting = sum(one.decided - one.rewarded for one in all_of_them)
    tiles = tag(
        "dl",
        _tile("streams", count(len(all_of_them))), _tile("decisions", count(decided)),
        _tile("rewards learned", count(learned)), _tile("open", count(waiting)), _tile("commit p99", server.p99),
        class_="tiles",
    )  # fmt: skip
    warning = tag("p", badge("disk full", "no"), " Nothing can be written: ", server.full) if server.full else ""
    rows = [
        (
            tag("a", one.name, href=f"/streams/{quote(one.name, safe='')}"), _mode(one), one.policy,
            count(one.decided), count(one.learned), count(one.rewarded - one.learned),
            count(one.decided - one.rewarded), count(one.state_seq),
        )
        for one in all_of_them[:_MOST_STREAMS]
    ]  # fmt: skip
    columns = ("stream", "mode", "policy", "decisions", "learned", "late", "open", "state_seq")
    listed = table(columns, rows, range(3, 8), "Streams") if rows else tag(
        "p", "No stream yet: ", tag("code", "PUT /v1/streams/{stream}"), " makes one."
    )  # fmt: skip
    left = len(all_of_them) - _MOST_STREAMS
    more = tag("p", f"{count(left)} more are not listed.") if left > 0 else ""
    return {"now": joined([warning, tiles]), "streams": _card("Streams", listed, more)}


def _mode(one: Live) -> Html:
    body = one.setup.body
    word = f"holdback {percent(body.holdback)}" if body.mode == "holdback" else body.mode
    return joined([badge(word, "yes" if body.mode == "live" else "open"), badge("paused", "no") if one.paused else ""],
                  " ")  # fmt: skip


# ------------------------------------------------------------------------------------------ one stream


def now(one: Live, server: Server, track: Track) -> Html:
    """The numbers at the top."""
    state, memory = track.now, track.memory
    days = one.setup.clock().days(memory)
    remembers = f"{real(memory)} ticks" if days is None else span(days * 86400.0)
    tiles = tag(
        "dl",
        _tile("decisions", count(one.decided)), _tile("rewards learned", count(one.learned)),
        _tile("open", count(one.decided - one.rewarded)), _tile("state_seq", count(one.state_seq)),
        _tile("effective observations", real(state.effective), f"remembers {remembers}"),
        _tile("commit p99", server.p99), _replicas(one), class_="tiles",
    )  # fmt: skip
    told = [_mode(one), f" {one.policy}, clock of {'the wall' if one.setup.body.clock == 'wall' else 'rewards'}"]
    if one.era.number > 1:
        told.append(f", era {one.era.number}")
    full = tag("p", badge("disk full", "no"), " ", server.full) if server.full else ""
    return joined([tag("p", *told, class_="soft"), full, tiles])


def _replicas(one: Live) -> object:
    """How many serve the stream, and how far the last of them is behind; nothing where one is alone."""
    if not one.replicas:
        return ""
    behind = max(one.lag, max(max(folded for _, folded in one.replicas) - folded for _, folded in one.replicas))
    return _tile("replicas", count(len(one.replicas)), f"the last is {count(behind)} rewards behind")


def parts(one: Live, found: Newest, listed: Sequence[reading.Listed], track: Track) -> dict[str, Html]:
    """The parts of a stream's page that the log is read for."""
    return {
        "reward": _reward(one, found), "drift": _drift(track), "shares": _shares(found),
        "coefficients": _coefficients(track), "delays": _delays(one, found), "latest": _latest(one, listed),
    }  # fmt: skip


def _ends(found: Newest) -> tuple[object, object]:
    return (moment(float(found.at[0])), moment(float(found.at[-1]))) if len(found) else ("", "")


_WHO = {"live": "policy", "baseline": "held back", "shadow": "your own"}


def _reward(one: Live, found: Newest) -> Html:
    mode, compared = one.setup.body.mode, reading.against_holdback(found)
    cohorts = [name for name in _WHO if len(found) and (found.cohort == name).any()]
    said: list[object] = []
    if mode == "holdback":
        said += _lift(compared.difference, compared.lift, compared.live, compared.baseline)
    elif mode == "shadow":
        share = float(found.agreed.mean()) if len(found) else math.nan
        said.append(tag("p", tag("b", percent(share)), f" of {_about(found)} were what the policy would have played."))
    else:
        known = found.value[~np.isnan(found.value)]
        mean = float(known.mean()) if known.size else math.nan
        hint = "Nobody is held back, so there is nothing to compare with: mode holdback keeps a share of units apart."
        said.append(tag("p", "Mean reward ", tag("b", real(mean)), f" over {_about(found)}."))
        said.append(tag("p", hint, class_="soft"))
    drawn = [charts.Line(_WHO[name], place, reading.means(found, name)) for place, name in enumerate(cohorts)]
    words = "; ".join(f"{line.name} {real(_last(line.heights))} in the last stretch" for line in drawn)
    chart = charts.lines(drawn, _ends(found), f"Mean reward over time: {words or 'no reward yet'}")
    rows = [
        (moment(float(found.at[part.start])), *(real(line.heights[place]) for line in drawn))
        for place, part in enumerate(reading.bins(found))
    ]
    told = numbers(("from", *(line.name for line in drawn)), rows, range(1, 1 + len(drawn)), "Mean reward over time")
    title = "Reward against holdback" if mode == "holdback" else "Reward"
    return _card(title, *said, chart, told if rows else "")


def _last(heights: Sequence[float]) -> float:
    return next((y for y in reversed(heights) if not math.isnan(y)), math.nan)


def _lift(difference: Interval, lift: Interval, live: Cohort, baseline: Cohort) -> list[object]:
    if math.isnan(difference.low):
        return [_cohorts(live, baseline), tag("p", "Too few units with rewards to tell a difference yet.")]
    ends = f"{signed(difference.low)} to {signed(difference.high)}"
    verdict = (
        badge("better", "yes") if difference.low > 0.0 else badge("worse", "no") if difference.high < 0.0
        else badge("cannot be told")
    )  # fmt: skip
    told = "lift cannot be told: the baseline's mean may be 0"
    if not math.isnan(lift.low):
        told = f"lift {percent(lift.value, True)} ({percent(lift.low, True)} to {percent(lift.high, True)})"
    alt = f"Difference {signed(difference.value)}, 95% interval {ends}"
    return [
        tag("p", tag("b", signed(difference.value), class_="large"), f" a decision, 95% interval {ends} ", verdict),
        tag("p", told), charts.interval(difference.value, difference.low, difference.high, alt),
        _cohorts(live, baseline),
    ]  # fmt: skip


def _cohorts(live: Cohort, baseline: Cohort) -> Html:
    rows = [
        (name, real(side.mean), count(side.decisions), count(side.units))
        for name, side in (("policy", live), ("held back", baseline))
    ]
    return table(("cohort", "mean reward", "rewards", "units"), rows, (1, 2, 3), "Cohorts")


def _drift(track: Track) -> Html:
    found = track.drift
    names = [f"{real(memory, 3)} ticks" for memory in found.memories]
    rows = _thinned(len(found.at))
    columns = [found.weights[row].tolist() for row in rows]
    last = columns[-1] if columns else [1.0 / len(names)] * len(names)
    best = names[found.memories.index(found.best)] if found.best in found.memories else "–"
    # A level that is believed is played by lanes of their own; the weights are of the others.
    among = "of memories without a level, " if found.level is not None and found.level.believed else ""
    said: list[object] = [tag(
        "p", "Remembers ", tag("b", f"{real(found.remembers, 3)} ticks"),
        "" if found.days is None else f" ({span(found.days * 86400.0)})", f"; {among}{best} predicts best.",
    )]  # fmt: skip
    if found.level is not None:
        kind = "no" if found.level.believed else "yes"
        said.append(tag("p", badge("the level moves" if found.level.believed else "no level apart", kind), " ",
                        str(found.level), "."))  # fmt: skip
    else:
        said.append(tag("p", "This policy does not tell a level that all arms share from preferences; Auto with "
                        "levels does.", class_="soft"))  # fmt: skip
    shown, columns = _few(names, columns)
    ends = (f"tick {count(int(found.at[0]))}", f"tick {count(int(found.at[-1]))}") if len(found.at) else ("", "")
    now = ", ".join(f"{name} {percent(weight)}" for name, weight in zip(names, last, strict=True))
    alt = f"Belief in each memory over time; now {now}"
    chart = charts.stacked(shown, columns, ends, alt)
    head = ("memory", "weight now") + (() if found.advantage is None else ("nats a reward",))
    listed = [
        (name, percent(last[place])) + (() if found.advantage is None else (signed(float(found.advantage[place])),))
        for place, name in enumerate(names)
    ]
    return _card("Drift meter", *said, chart, numbers(head, listed, range(1, len(head)), "Memories"))


def _thinned(many: int, most: int = 96) -> list[int]:
    """Places, evenly, of which the last is the last."""
    return [] if not many else sorted({round(place) for place in np.linspace(0, many - 1, min(many, most))})


def _few(names: list[str], columns: list[list[float]]) -> tuple[list[str], list[list[float]]]:
    """The names with most weight as they are, in their order, and the others as one."""
    if len(names) <= charts.COLOURS:
        return names, columns
    total = np.array(columns).sum(axis=0) if columns else np.zeros(len(names))
    kept = sorted(np.argsort(-total, kind="stable")[: charts.COLOURS - 1].tolist())
    thinned = [[column[place] for place in kept] for column in columns]
    return [*(names[place] for place in kept), reading.REST], [[*part, max(0.0, 1.0 - sum(part))] for part in thinned]


def _shares(found: Newest) -> Html:
    names, table_of = reading.shares(found)
    now = dict(zip(names, table_of[-1].tolist(), strict=True)) if len(found) else {}
    alt = "Shares of arms over time; now " + ", ".join(f"{short(name)} {percent(share)}" for name, share in now.items())
    chart = charts.stacked(names, table_of.tolist(), _ends(found), alt)
    rows = [
        (moment(float(found.at[part.start])), *(percent(share) for share in table_of[place].tolist()))
        for place, part in enumerate(reading.bins(found))
    ]
    explored = percent(float(found.explored.mean())) if len(found) else "–"
    told = numbers(("from", *map(short, names)), rows, range(1, 1 + len(names)), "Shares of arms") if rows else ""
    return _card("Shares of arms", tag("p", f"What was played in {_about(found)}; {explored} explored."), chart, told)


def _coefficients(track: Track) -> Html:
    points, labels, current = track.points, track.labels, track.now
    points = [points[place] for place in _thinned(len(points))]
    if not points or points[-1].seq != current.seq:
        points = [*points, current]
    if not current.theta.size:
        return _card("Coefficients", tag("p", "This policy tells no coefficients."))
    top = np.argsort(-np.abs(current.theta), kind="stable")[:COEFFICIENTS].tolist()
    drawn = [charts.Line(labels[i], place, [float(p.theta[i]) for p in points]) for place, i in enumerate(top)]
    ends = f"reward {count(points[0].seq)}", f"reward {count(points[-1].seq)}"
    alt = "Coefficients over time; now " + ", ".join(f"{labels[i]} {real(float(current.theta[i]))}" for i in top)
    rows = [
        (labels[i], real(float(points[0].theta[i])), real(float(current.theta[i]))) for i in top
    ]
    listed = numbers(("feature", ends[0], "now"), rows, (1, 2), "Coefficients")
    said = f"The {len(top)} largest of {len(labels)}, as they are played." if len(labels) > 1 else "As it is played."
    return _card("Coefficients", tag("p", said), charts.lines(drawn, ends, alt, low=0.0), listed)


def _delays(one: Live, found: Newest) -> Html:
    counts, quantiles = reading.delays(found)
    late, total = one.rewarded - one.learned, sum(counts)
    expired = reading.expired(found, one.tick, one.setup.expire_after)
    waits = one.setup.body.expire_after
    tiles = tag(
        "dl",
        _tile("late", count(late), "counted, not learned"),
        _tile("duplicate", count(one.duplicates), "since this server started"),
        _tile("expired", count(expired), "nothing expires" if waits is None else f"no reward in {waits}"),
        _tile("median delay", span(quantiles[0])), _tile("90%", span(quantiles[1])), _tile("99%", span(quantiles[2])),
        class_="tiles small",
    )  # fmt: skip
    names = [name for _, name in reading.DELAYS]
    said = ", ".join(f"{number} up to {name}" for number, name in zip(counts, names, strict=True) if number)
    first = next((i for i, number in enumerate(counts) if number), 0)
    last = next((i for i in range(len(counts) - 1, -1, -1) if counts[i]), 0) + 1
    first, last = max(0, first - 1), min(len(counts), last + 1)
    ends = f"up to {names[first]}", names[last - 1] if last == len(counts) else f"up to {names[last - 1]}"
    chart = charts.bars([float(number) for number in counts[first:last]], ends, f"Delays of rewards: {said or 'none'}")
    rows = [(name, count(number)) for name, number in zip(names, counts, strict=True)]
    title = f"How long {count(total)} rewards took, of {_about(found)}." if total else "No reward has come yet."
    return _card("Rewards that come later", tiles, tag("p", title), chart,
                 numbers(("up to", "rewards"), rows, (1,), "Delays of rewards"))  # fmt: skip


def _latest(one: Live, listed: Sequence[reading.Listed]) -> Html:
    rows = [
        (
            tag("a", short(row.id), href=address(one.name, row.id)), moment(row.at), _arm(row.arm, row.item),
            _WHO.get(row.cohort, row.cohort), real(row.propensity), real(row.value), row.verdict or "open",
        )
        for row in listed
    ]  # fmt: skip
    columns = ("decision", "at (UTC)", "played", "chosen by", "propensity", "reward", "verdict")
    inside = table(columns, rows, (4, 5), "Newest decisions") if rows else tag("p", "Nothing was decided yet.")
    return _card("Newest decisions", inside)


def _arm(arm: int, item: str | None) -> str:
    return f"arm {arm}" if item is None else short(item)


def address(stream: str, id: str) -> str:
    """Where a decision is explained."""
    return f"/streams/{quote(stream, safe='')}/decisions/{quote(id, safe='')}"


# ------------------------------------------------------------------------------------------ one decision


class Why(NamedTuple):
    """A decision with what there is to say of it; `told` is none where it was not computed again, for `reason`."""

    row: DecisionRow
    setup: Setup
    told: Explained
    pulls: tuple[tuple[str, float], ...]
    rival: str
    reason: str = ""


def decision(why: Why) -> dict[str, Html]:
    """The parts of a decision's page."""
    row, told = why.row, why.told
    facts: list[tuple[object, object]] = [
        ("number", count(row.seq)), ("at (UTC)", moment(row.at)), ("played", _arm(row.arm, row.item)),
        ("chosen by", _WHO.get(row.cohort, row.cohort)), ("propensity", real(row.propensity, 6)),
        ("explored", "yes" if row.explored else "no"), ("among", f"{count(row.n)} arms"),
        ("state after", f"{count(row.state_seq)} rewards, era {row.era}"), ("born at tick", count(row.born)),
        ("policy", tag("code", told.policy[:16])),
        ("reward", joined([real(told.reward, 6), " ", badge(told.verdict, _KIND.get(told.verdict, "open"))])),
    ]  # fmt: skip
    if row.cohort != "live":
        facts.insert(3, ("the policy's own", f"arm {row.proposed}"))
    again = {True: badge("recomputed to the last bit", "yes"), False: badge("does not come out again", "no"),
             None: badge("not recomputed")}[told.recomputed]  # fmt: skip
    said = tag("p", again, f" {why.reason}" if why.reason else "")
    found = {"facts": _card("What was decided", said, table((), facts, (), "The decision"))}
    if why.pulls:
        found["pulls"] = _pulls(why)
    if told.arms:
        found["arms"] = _arms(why)
    if row.context:
        found["context"] = _context(row.context)
    return found


_KIND = {"learned": "yes", "late": "no"}


def _arms(why: Why) -> Html:
    listed, row = why.told.arms, why.row
    most = max((abs(arm.mean) + max(arm.bonus, 0.0) for arm in listed), default=1.0) or 1.0
    shown = [arm for place, arm in enumerate(listed) if place < _ARMS or arm.arm in (row.arm, row.proposed)]
    rows = []
    for arm in shown:
        name = _arm(arm.arm, arm.item)
        marks = [badge("played", "yes")] if arm.arm == row.arm else []
        marks += [badge("proposed")] if arm.arm == row.proposed != row.arm else []
        bar = charts.meter(max(arm.score, 0.0) / most, f"score {real(arm.score)}")
        rows.append((joined([name, *marks], " "), real(arm.score), real(arm.mean), real(arm.bonus), bar))
    left = len(listed) - len(shown)
    more = tag("p", f"{count(left)} more arms are not listed.", class_="soft") if left else ""
    said = tag("p", "Score = estimate + bonus, on the state that it was decided on; the best first.")
    columns = ("arm", "score", "estimate", "bonus", "")
    return _card("Arms", said, table(columns, rows, (1, 2, 3), "Arms"), more)


def _pulls(why: Why) -> Html:
    most = max(abs(pull) for _, pull in why.pulls) or 1.0
    rows = [
        (name, signed(pull, 4), charts.meter(abs(pull) / most, f"{name} {signed(pull)}", 0 if pull >= 0.0 else 1))
        for name, pull in why.pulls[:_PULLS]
    ]
    own = next(arm for arm in why.told.arms if arm.arm == why.row.proposed)
    other = next(arm for arm in why.told.arms if arm.arm != why.row.proposed)
    together = f". Together {signed(own.mean - other.mean)}; the bonus makes {signed(own.bonus - other.bonus)}."
    said = tag("p", "What each feature did for the policy's arm against the runner-up, ", tag("b", why.rival), together)
    return _card("What moved the choice", said, table(("feature", "pull", ""), rows, (1,), "Pulls of features"))


def _context(text: str) -> Html:
    told = msgspec.json.decode(text)
    rows = [(name, value) for name, value in told.items()] if isinstance(told, dict) else [("context", text)]
    return _card("Context", table(("field", "value"), rows, (), "Context"))
