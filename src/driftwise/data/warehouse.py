"""Sums computed by a data warehouse: the query that reduces a log to one row, and the sums in that row."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from driftwise._internal.validate import real, whole
from driftwise.data.sums import Sums, nothing
from driftwise.errors import BadInput
from driftwise.policies.linear import LinearUCB
from driftwise.policies.own import asked


def sql(policy: LinearUCB, tick: int, *, table: str = "log", element: str = "x[{i}]") -> str:
    """The query with which a warehouse reduces the log to one row, for `sums_of_row`.

    `element` is how number {i} of the vector is written, counted from 1, or {j}, from 0: "x[{i}]" in PostgreSQL and
    DuckDB, "x[OFFSET({j})]" in BigQuery, "x{i}" for columns of their own.
    """
    forget, d = asked(policy).check_sums(), policy.dim
    tick = whole("tick", tick, 0, "pass a tick not earlier than the last reward")
    weight = f"EXP({math.log1p(-forget)!r} * ({tick} - born))" if forget else "1.0"
    x = [element.format(i=i + 1, j=i) for i in range(d)]
    lines = ["COUNT(*) AS n", "SUM(w) AS weight", "SUM(w * w) AS squares"]
    lines += [f"SUM(w * reward * {x[i]}) AS b_{i + 1}" for i in range(d)]
    lines += [f"SUM(w * {x[i]} * {x[j]}) AS g_{i + 1}_{j + 1}" for i in range(d) for j in range(i + 1)]
    if policy.two_matrix:
        lines += [f"SUM(w * w * {x[i]} * {x[j]}) AS t_{i + 1}_{j + 1}" for i in range(d) for j in range(i + 1)]
    return (
        "SELECT\n  " + ",\n  ".join(lines)
        + f"\nFROM (\n  SELECT {table}.*, {weight} AS w FROM {table} WHERE reward IS NOT NULL\n) AS weighed"
    )  # fmt: skip


def sums_of_row(policy: LinearUCB, tick: int, row: Mapping[str, Any], part: str) -> Sums:
    """The sums in the row that the query of `sql` returns. `part` names what was reduced, so that it is added once."""
    found, d = nothing(policy, whole("tick", tick, 0), frozenset([str(part)])), policy.dim

    def number(name: str) -> float:
        if name not in row:
            raise BadInput("row", f"no column {name}", "the row that the query of `sql` returns", "run it again")
        return real(f"row[{name!r}]", 0.0 if row[name] is None else row[name], -math.inf)

    for i in range(d):
        found.b[i] = number(f"b_{i + 1}")
        for j in range(i + 1):
            found.G[i, j] = found.G[j, i] = number(f"g_{i + 1}_{j + 1}")
            if policy.two_matrix:
                found.twin[i, j] = found.twin[j, i] = number(f"t_{i + 1}_{j + 1}")
    n = whole("row['n']", row.get("n"), 0)
    return replace(found, weight=number("weight"), squares=number("squares"), n=n)
