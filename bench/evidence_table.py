"""The tables of evidence, of which docs/lab/evidence.md has the first.

    python bench/evidence_table.py results/evidence/results.json > docs/lab/evidence-tables.txt
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

STATIC, AUTO, CLICKS, PERSISTENCE, HALF = "static", "Auto", "Auto, clicks", "persistence", "half-life "
# Where a rival's row has its difference to ours on the draws and rounds that the rival played.
LESS = {"less_auto": AUTO, "less_clicks": CLICKS}
Row = Mapping[str, Any]
# The share of the rounds from which on a rival's result is more than one of the beginning.
LONG = 0.5


def tables(results: Mapping[str, Any]) -> str:
    """All tables, each between marks."""
    made = {one.__name__: one(results) for one in (summary, rewards, differences, controls, settings)}
    return "\n\n".join(marked(name, lines) for name, lines in made.items()) + "\n"


def marked(name: str, lines: Sequence[str]) -> str:
    return "\n".join([f"<!-- {name}: begin -->", "", *lines, "", f"<!-- {name}: end -->"])


def summary(results: Mapping[str, Any]) -> list[str]:
    """A line a set: our draws and rewards, the best rival, and who is best."""
    rivals = len(results["rivals"])
    head, *rows = reward_rows(results)
    return _table([[*row[:6], *row[7 + rivals :]] for row in (head, *rows)]) + _missing(results, 7)


def rewards(results: Mapping[str, Any]) -> list[str]:
    """The same with persistence, and with every rival at its default and at its best setting."""
    return _table(reward_rows(results)) + _missing(results, 8 + len(results["rivals"]))


def reward_rows(results: Mapping[str, Any]) -> list[list[str]]:
    rivals = list(results["rivals"])
    ours = [STATIC, AUTO, CLICKS, "best half-life", PERSISTENCE]
    found = [["set, rounds", "draws", *ours, *rivals, "best rival", "best of all"]]
    for name, one in _played(results):
        rows = {row["policy"]: row for row in one["rows"]}
        half, best = best_half_life(rows), best_rival(rows, rivals)
        cells = [_reward(rows.get(who)) for who in ours]
        cells[3] = f"{_reward(half)}, {half['policy'].removeprefix(HALF)}" if half else ""
        cells += [_rival(rows, rival, results["rivals"][rival]["failed"]) for rival in rivals]
        cells += [_named(best, best_rival(rows, rivals, 0.0)), best_of_all(rows, best)]
        draws = str(min(row["draws"] for row in (rows.get(STATIC), rows.get(AUTO), rows.get(CLICKS)) if row))
        found.append([f"{name}, {one['rounds']:,}", draws, *cells])
    return found


def differences(results: Mapping[str, Any]) -> list[str]:
    """A line a set: differences to static, with intervals over draws and over stretches of time."""
    lines = _head(["set", AUTO, CLICKS, "best half-life", "best rival", "best rival less Auto"])
    for name, one in _played(results):
        rows = {row["policy"]: row for row in one["rows"]}
        half, best = best_half_life(rows), best_rival(rows, list(results["rivals"]))
        cells = [_difference(rows.get(AUTO)), _difference(rows.get(CLICKS))]
        cells += [f"{_difference(row)}: {row['policy'].removeprefix(HALF)}" if row else "" for row in (half, best)]
        lines.append(_line(name, [*cells, _less_auto(best)]))
    return [*lines, *_missing(results, 5)]


def controls(results: Mapping[str, Any]) -> list[str]:
    """A line a set: the shuffled rows, and differences to static there."""
    forgetful = (AUTO, CLICKS, f"{HALF}2000")
    lines = _head(["set, shuffled", STATIC, *(f"{who} less static" for who in forgetful)])
    for name, one in _played(results):
        rows = {row["policy"]: row for row in one["rows"]}
        static = rows.get(STATIC, {}).get("shuffled")
        cells = ["" if static is None else f"{static:.4f}"]
        cells += [_difference(rows.get(who), "shuffled_less_static", ["shuffled_over_draws"]) for who in forgetful]
        lines.append(_line(name, cells))
    return [*lines, *_missing(results, 4)]


def settings(results: Mapping[str, Any]) -> list[str]:
    """A line a rival: what is installed, its default, the rest of its grid, and its best setting on each set."""
    lines = _head(["rival", "installed", "default", "also tried", "best setting by set"])
    for rival, one in results["rivals"].items():
        default, *others = one["settings"]
        found = []
        for name, played in _played(results):
            mine = [row for row in played["rows"] if row["policy"].startswith(f"{rival}: ")]
            if mine:
                best = max(mine, key=_most_draws)
                found.append(f"{name} {best['policy'].removeprefix(f'{rival}: ')}")
        cells = [", ".join(one["needs"]), default, "; ".join(others), one["failed"] or "; ".join(found)]
        lines.append(_line(rival, cells))
    return lines


def best_half_life(rows: Mapping[str, Row]) -> Row | None:
    """The best half-life among those that played most draws."""
    return max((row for name, row in rows.items() if name.startswith(HALF)), key=_most_draws, default=None)


def best_rival(rows: Mapping[str, Row], rivals: Sequence[str], part: float = LONG) -> Row | None:
    """The rival furthest above Auto on the draws and rounds that it played, each at its best setting.

    Rivals that played a smaller part of the rounds count only if no other did: in the first rounds Auto and static
    differ from their means. Auto differs less between draws than static does.
    """
    found = [row for rival in rivals if (row := _best_setting(rows, rival)) and row["less_static"] is not None]
    found = [row for row in found if row["part"] >= part] or found
    return max(found, key=lambda row: row.get("less_auto", row["less_static"]), default=None)


def best_of_all(rows: Mapping[str, Row], rival: Row | None) -> str:
    """The best of static, Auto and Auto for clicks, or the best rival if it earns more on the draws that it played."""
    ours = {STATIC: 0.0} | {who: rows[who]["less_static"] for who in (AUTO, CLICKS) if who in rows}
    best = max(ours, key=lambda who: ours[who])
    key = {AUTO: "less_auto", CLICKS: "less_clicks"}.get(best, "less_static")
    return rival["policy"].split(": ")[0] if rival and rival[key] > 0.0 else best


def _named(best: Row | None, begins: Row | None) -> str:
    """The best rival, and the one that begins better where there is one."""
    if not best or not begins:
        return "none played"
    if begins is best:
        return str(best["policy"])
    return f"{best['policy']}; on the first {begins['part']:.1%} {begins['policy']}"


def _best_setting(rows: Mapping[str, Row], rival: str) -> Row | None:
    return max((row for name, row in rows.items() if name.startswith(f"{rival}: ")), key=_most_draws, default=None)


def _most_draws(row: Row) -> tuple[int, float]:
    return row["draws"], row["reward"]


def _rival(rows: Mapping[str, Row], rival: str, failed: str | None) -> str:
    """Default and best setting; the share of rounds and the draws where they are not all."""
    mine = [row for name, row in rows.items() if name.startswith(f"{rival}: ")]
    if not mine:
        return "failed" if failed else "not played"
    best = max(mine, key=_most_draws)
    text = _reward(best) if best is mine[0] else f"{_reward(mine[0])} / {_reward(best)}"
    if best["part"] < 1.0:
        text += f" on the first {best['part']:.1%} (static {best['reward'] - best['less_static']:.4f})"
    draws = f"{best['draws']} draw{'s' if best['draws'] > 1 else ''}"
    return text + (f"; {draws}" if best["draws"] < rows[STATIC]["draws"] else "")


def _reward(row: Row | None) -> str:
    return f"{row['reward']:.4f}" if row else ""


def _difference(row: Row | None, less: str = "less_static", over: Sequence[str] = ("over_draws", "over_time")) -> str:
    """The difference to static, ± over draws, ± over time."""
    if not row or row[less] is None:
        return ""
    wide = [f" ± {row[name]:.4f}" if row[name] is not None else "" for name in over]
    return f"{row[less]:+.4f}".replace("-", "\N{MINUS SIGN}") + "".join(wide)


def _less_auto(rival: Row | None) -> str:
    """The difference of a rival to Auto and to Auto for clicks, where they were played."""
    gaps = {who: rival[key] for key, who in LESS.items() if rival and rival.get(key) is not None}
    texts = (f"{gap:+.4f}".replace("-", "\N{MINUS SIGN}") + who.removeprefix(AUTO) for who, gap in gaps.items())
    return "; ".join(texts)


def _head(columns: Sequence[str]) -> list[str]:
    return [_line(columns[0], columns[1:]), "|" + "---|" * len(columns)]


def _table(rows: Sequence[Sequence[str]]) -> list[str]:
    return _head(rows[0]) + [_line(first, cells) for first, *cells in rows[1:]]


def _line(first: str, cells: Sequence[str]) -> str:
    return "| " + " | ".join([first, *cells]) + " |"


def _played(results: Mapping[str, Any]) -> list[tuple[str, Any]]:
    """The sets that static has played, with which all others are compared."""
    return [(name, one) for name, one in results["sets"].items() if any(row["policy"] == STATIC for row in one["rows"])]


def _missing(results: Mapping[str, Any], cells: int) -> list[str]:
    """A line for every other set, with the reason."""
    played = dict(_played(results))
    why = {name: "no time" for name in results["sets"] if name not in played} | dict(results["missing"])
    return [_line(name, [f"not played: {reason}", *[""] * (cells - 1)]) for name, reason in why.items()]


if __name__ == "__main__":
    print(tables(json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))), end="")
