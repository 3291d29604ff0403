"""A small picture that is not a figure of the paper: axes to draw on, which are then saved to a file."""

from __future__ import annotations

import io
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from driftwise._internal.files import keep
from driftwise.draw.plots import pyplot
from driftwise.errors import BadInput

_KINDS = ("png", "svg", "pdf")


@contextmanager
def picture(path: str | Path, size: tuple[float, float], columns: int = 1, rows: int = 1) -> Iterator[Any]:
    """Axes (rows, columns) of a picture of this size in inches. The file is written if no error occurs."""
    target = Path(path)
    kind = target.suffix.lstrip(".") or "png"
    if kind not in _KINDS:
        raise BadInput("path", str(path), f"a file that ends in .{', .'.join(_KINDS)}", 'pass "picture.png", say')
    plt = pyplot()
    drawn, axes = plt.subplots(rows, columns, figsize=size, squeeze=False, layout="constrained")
    try:
        yield axes
        data = io.BytesIO()
        drawn.savefig(data, format=kind, dpi=150)
    finally:
        plt.close(drawn)
    keep(target, data.getvalue())
