"""Logs for the tests: a good one in every format, and ways to damage it."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet

from driftwise.tables import log_of


def columns_of(rows=40, dim=3, seed=0):
    """Columns of a log as an agent writes it: every fourth decision expired."""
    chance = np.random.default_rng(seed)
    count, lesson = np.arange(1, rows + 1), np.arange(rows) % 4 != 3
    arms = chance.standard_normal((rows, 4, dim))
    arms /= np.linalg.norm(arms, axis=2, keepdims=True)
    arm = chance.integers(0, 4, rows)
    return {
        "seq": count, "decision_id": [f"d{one}" for one in count], "at": np.datetime64("2026-01-01", "us") + count,
        "born": count, "arm": arm, "item": [f"i{one}" for one in arm], "n": np.full(rows, 4),
        "x": arms[np.arange(rows), arm], "propensity": np.full(rows, 0.25), "explored": np.zeros(rows, dtype=bool),
        "reward": np.where(lesson, chance.random(rows), np.nan), "reward_tick": np.where(lesson, count, 0),
        "reward_seq": np.where(lesson, np.cumsum(lesson), 0),
        "verdict": ["learned" if one else "expired" for one in lesson],
        "context": [{"hour": float(one % 24), "city": "Oslo"} for one in count], "candidates": [list("abcd")] * rows,
        "arms": arms,
    }  # fmt: skip


def table_of(columns):
    """The columns as a pyarrow table of the schema's types."""
    lesson, dim = ~np.isnan(columns["reward"]), columns["x"].shape[1]
    made = {}
    for name, values in columns.items():
        if name == "x":
            values = pa.FixedSizeListArray.from_arrays(values.ravel(), dim)
        elif name == "arms":
            values = pa.array([each.tolist() for each in values], pa.list_(pa.list_(pa.float64(), dim)))
        elif name in ("reward", "reward_tick", "reward_seq"):
            values = pa.array(values, mask=~lesson)
        made[name] = values
    return pa.table(made)


def write(table, path):
    """A table in the format that the path names."""
    if path.suffix == ".parquet":
        pa.parquet.write_table(table, path, row_group_size=16)
    elif path.suffix == ".feather":
        pa.feather.write_feather(table, path)
    elif path.suffix == ".arrow":
        with pa.ipc.new_stream(path, table.schema) as writer:
            writer.write_table(table, max_chunksize=7)
    else:
        path.write_text("".join(json.dumps(row, default=lambda at: at.isoformat()) + "\n" for row in table.to_pylist()))
    return path


def held(**changes):
    """The log in memory, with some columns changed."""
    return log_of(**{**columns_of(), **changes})
