"""The cards of a stream's page, made from its log: each has a heading, a sentence, a chart and its numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from driftwise.draw.markup import Html, badge, html_table, joined, tag
from driftwise.lift import Cohort, Interval, Look
from driftwise.service.dashboard import charts, reading
from driftwise.service.dashboard.live import WHO, LiveStream
from driftwise.service.dashboard.reading import Newest
from driftwise.service.dashboard.track import EVERYTHING, Track
from driftwise.service.dashboard.wording import (
    card,
    count,
    decimal,
    numbers,
    percent,
    short,
    shown_time,
    signed,
    span,
    tile,
)

COEFFICIENTS = 5  # those that are drawn


def about(found: Newest) -> str:
    return "the newest decision" if len(found) == 1 else f"the newest {count(len(found))} decisions"


def _ends(found: Newest) -> tuple[object, object]:
    return (shown_time(float(found.at[0])), shown_time(float(found.at[-1]))) if len(found) else ("", "")


def reward(one: LiveStream, found: Newest, look: Look | None) -> Html:
    """The rewards over time, and against the units that are held back."""
    mode = one.setup.body.mode
    cohorts = [name for name in WHO if len(found) and (found.cohort == name).any()]
    said: list[object] = []
    if one.setup.body.ramp is not None:
        said.append(_ramp(one))
    if look is not None:
        said += _lift(look)
    elif mode == "shadow":
        share = float(found.agreed.mean()) if len(found) else math.nan
        said.append(tag("p", tag("b", percent(share)), f" of {about(found)} were what the policy would have played."))
    else:
        known = found.value[~np.isnan(found.value)]
        mean = float(known.mean()) if known.size else math.nan
        hint = "No units are held back, so there is no comparison. Mode holdback gives a share of units the baseline."
        rewarded = "" if known.size == len(found) else f"the {count(known.size)} with a reward of "
        said.append(tag("p", "Mean reward ", tag("b", decimal(mean)), f" over {rewarded}{about(found)}."))
        said.append(tag("p", hint, class_="soft"))
    drawn = [charts.ChartLine(WHO[name], place, reading.means(found, name)) for place, name in enumerate(cohorts)]
    words = "; ".join(f"{line.name} {decimal(_last(line.heights))} in the last stretch" for line in drawn)
    chart = charts.lines(drawn, _ends(found), f"Mean reward over time: {words or 'no reward yet'}")
    rows = [
        (shown_time(float(found.at[part.start])), *(decimal(line.heights[place]) for line in drawn))
        for place, part in enumerate(reading.bins(found))
    ]
    told = numbers(("from", *(line.name for line in drawn)), rows, range(1, 1 + len(drawn)), "Mean reward over time")
    title = "Reward against holdback" if mode == "holdback" else "Reward"
    return card(title, *said, chart, told if rows else "")


def _last(heights: Sequence[float]) -> float:
    return next((y for y in reversed(heights) if not math.isnan(y)), math.nan)


def _ramp(one: LiveStream) -> Html:
    """The steps of a ramp, and the current one."""
    shares, steps = one.setup.body.ramp or [], one.steps
    listed = [
        badge(percent(share), "yes" if place == steps.place and not steps.stopped else "open")
        for place, share in enumerate(shares)
    ]
    margin = f"Advances when the lower end is above {signed(one.setup.body.margin)}, stops when the upper is below."
    if steps.stopped:
        said = [badge("stopped", "no"), " All units get the baseline since the policy was shown to be worse."]
    else:
        now = f" {percent(1.0 - steps.held)} of units get the policy."
        said = ["Ramp: ", *(joined([step, " "]) for step in listed), now]
    return joined([tag("p", *said), tag("p", margin, class_="soft")])


def _lift(look: Look) -> list[object]:
    """The difference and the lift, by the interval that can be shown: the asymptotic one, else the bounded one."""
    chosen, lift, name = (look.difference, look.lift, "") if look.difference.shown else (
        look.bounded, look.bounded_lift, ", for bounded rewards")  # fmt: skip
    warned: list[object] = []
    if not look.split_holds:
        warned.append(tag("p", badge("sample ratio mismatch", "no"), " The cohorts do not have the drawn shares of "
                          "units: rewards of one cohort are lost. Do not trust the comparison."))  # fmt: skip
    if not chosen.shown or (look.bounded.high - look.bounded.low >= 2.0 * look.reach and not look.difference.shown):
        return [*warned, _cohorts(look), tag("p", "Too few units with rewards to tell a difference yet.")]
    verdict = (
        badge("better", "yes") if chosen.low > 0.0 else badge("worse", "no") if chosen.high < 0.0
        else badge("not certain")
    )  # fmt: skip
    told = "no lift: the baseline's mean may be 0"
    if lift.shown:
        told = f"lift {percent(lift.value, True)} ({percent(lift.low, True)} to {percent(lift.high, True)})"
    alt = f"Difference {signed(chosen.value)}, 95% interval {_ends_of(chosen)}"
    return [
        *warned,
        tag("p", tag("b", signed(chosen.value), class_="large"), f" a decision, 95% interval {_ends_of(chosen)}{name} ",
            verdict),
        tag("p", told), charts.interval(chosen.value, chosen.low, chosen.high, alt), _cohorts(look),
        _intervals(look),
        tag("p", "Intervals are valid at any time: watch as long as you like, and stop when you like.",
            class_="soft"),
    ]  # fmt: skip


def _ends_of(found: Interval) -> str:
    return f"{signed(found.low)} to {signed(found.high)}" if found.shown else "–"


def _cohorts(look: Look) -> Html:
    def row(name: str, side: Cohort) -> tuple[object, ...]:
        return name, decimal(side.mean), count(side.rewards), count(side.units)

    rows = [row("policy", look.live), row("held back", look.baseline)]
    return html_table(("cohort", "mean reward", "rewards", "units"), rows, (1, 2, 3), "Cohorts")


def _intervals(look: Look) -> Html:
    """All intervals of the comparison."""
    listed = [("difference, all rewards", look.difference), ("difference, bounded, first rewards", look.bounded)]
    listed += [(f"guardrail {short(name)}", found) for name, found in look.guardrails.items()]
    rows = [(name, signed(found.value), _ends_of(found)) for name, found in listed]
    return numbers(("interval", "estimate", "95%, valid at any time"), rows, (1, 2), "Intervals of the difference")


def drift_card(track: Track) -> Html:
    """How long the policy remembers, and whether a level moves."""
    found = track.drift
    names = [f"{decimal(memory, 3)} ticks" for memory in found.memories]
    rows = _thinned(len(found.at))
    columns = [found.weights[row].tolist() for row in rows]
    last = columns[-1] if columns else [1.0 / len(names)] * len(names)
    best = track.lasting(found.best) if found.best in found.memories else "–"
    remembers = track.lasting(found.remembers)
    # While a level is in use, its own lanes play; the weights are those of the other lanes.
    among = "of memories without a level, " if found.level is not None and found.level.moves else ""
    said: list[object] = [tag(
        "p", "Remembers ", tag("b", remembers),
        "" if found.days is None or remembers == EVERYTHING else f" ({span(found.days * 86400.0)})",
        f"; {among}{best} predicts best.",
    )]  # fmt: skip
    if found.level is not None:
        words = "the common level moves" if found.level.moves else "no common level moves"
        said.append(tag("p", badge(words, "no" if found.level.moves else "yes"), " ", str(found.level), "."))
    else:
        said.append(tag("p", "This policy does not separate a common level of all arms from preferences; Auto with "
                        "levels does.", class_="soft"))  # fmt: skip
    shown, columns = _few(names, columns)
    ends = (f"tick {count(int(found.at[0]))}", f"tick {count(int(found.at[-1]))}") if len(found.at) else ("", "")
    now = ", ".join(f"{name} {percent(weight)}" for name, weight in zip(names, last, strict=True))
    alt = f"Weight of each memory over time; now {now}"
    chart = charts.stacked(shown, columns, ends, alt)
    head = ("memory", "weight now") + (() if found.advantage is None else ("log score a reward",))
    listed = [
        (name, percent(last[place])) + (() if found.advantage is None else (signed(float(found.advantage[place])),))
        for place, name in enumerate(names)
    ]
    return card("Drift meter", *said, chart, numbers(head, listed, range(1, len(head)), "Memories"))


def _thinned(many: int, most: int = 96) -> list[int]:
    """Evenly spaced places that include the last one."""
    return [] if not many else sorted({round(place) for place in np.linspace(0, many - 1, min(many, most))})


def _few(names: list[str], columns: list[list[float]]) -> tuple[list[str], list[list[float]]]:
    """The names with the largest weights, in their order, and one name for all others."""
    if len(names) <= charts.COLOURS:
        return names, columns
    total = np.array(columns).sum(axis=0) if columns else np.zeros(len(names))
    kept = sorted(np.argsort(-total, kind="stable")[: charts.COLOURS - 1].tolist())
    thinned = [[column[place] for place in kept] for column in columns]
    return [*(names[place] for place in kept), reading.REST], [[*part, max(0.0, 1.0 - sum(part))] for part in thinned]


def shares_card(found: Newest) -> Html:
    """The shares of arms over time."""
    names, table_of = reading.shares(found)
    now = dict(zip(names, table_of[-1].tolist(), strict=True)) if len(found) else {}
    alt = "Shares of arms over time; now " + ", ".join(f"{short(name)} {percent(share)}" for name, share in now.items())
    chart = charts.stacked(names, table_of.tolist(), _ends(found), alt)
    rows = [
        (shown_time(float(found.at[part.start])), *(percent(share) for share in table_of[place].tolist()))
        for place, part in enumerate(reading.bins(found))
    ]
    explored = percent(float(found.explored.mean())) if len(found) else "–"
    told = numbers(("from", *map(short, names)), rows, range(1, 1 + len(names)), "Shares of arms") if rows else ""
    return card("Shares of arms", tag("p", f"What was played in {about(found)}; {explored} explored."), chart, told)


def coefficients(track: Track) -> Html:
    """The largest coefficients over time."""
    points, labels, current = track.points, track.labels, track.now
    points = [points[place] for place in _thinned(len(points))]
    if not points or points[-1].seq != current.seq:
        points = [*points, current]
    if not current.theta.size:
        return card("Coefficients", tag("p", "This policy has no coefficients."))
    top = np.argsort(-np.abs(current.theta), kind="stable")[:COEFFICIENTS].tolist()
    drawn = [charts.ChartLine(labels[i], place, [float(p.theta[i]) for p in points]) for place, i in enumerate(top)]
    ends = f"reward {count(points[0].seq)}", f"reward {count(points[-1].seq)}"
    alt = "Coefficients over time; now " + ", ".join(f"{labels[i]} {decimal(float(current.theta[i]))}" for i in top)
    rows = [
        (labels[i], decimal(float(points[0].theta[i])), decimal(float(current.theta[i]))) for i in top
    ]
    listed = numbers(("feature", ends[0], "now"), rows, (1, 2), "Coefficients")
    said = f"The {len(top)} largest of {len(labels)}, as played." if len(labels) > 1 else "As played."
    return card("Coefficients", tag("p", said), charts.lines(drawn, ends, alt, low=0.0), listed)


def delays_card(one: LiveStream, found: Newest) -> Html:
    """The delays of rewards, and the rewards that came too late or never."""
    counts, quantiles = reading.delays(found)
    late, total = one.counts.late, sum(counts)
    expired = reading.expired(found, one.tick, one.setup.terms.expire_after)
    waits = one.setup.body.expire_after
    if waits is not None and not isinstance(waits, str):  # seconds on the wall clock, else rewards learned
        waits = span(waits) if one.setup.body.clock == "wall" else f"{waits:g} rewards learned"
    said = "counted, not learned" if one.setup.terms.default is None else "since this server started"
    tiles = tag(
        "dl",
        tile("late", count(late), said),
        tile("duplicate", count(one.duplicates), "since this server started"),
        tile("expired", count(expired), "nothing expires" if waits is None else f"no reward in {waits}"),
        tile("median delay", span(quantiles[0])), tile("90%", span(quantiles[1])), tile("99%", span(quantiles[2])),
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
    title = f"How long {count(total)} rewards took, of {about(found)}." if total else "No reward has come yet."
    return card("Rewards that come later", tiles, tag("p", title), chart,
                 numbers(("up to", "rewards"), rows, (1,), "Delays of rewards"))  # fmt: skip
