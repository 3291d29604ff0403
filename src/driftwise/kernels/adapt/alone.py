"""No adaptation: the one lane learns."""

from __future__ import annotations

from typing import Any

from driftwise.kernels import part
from driftwise.kernels.adapt.book import ALL
from driftwise.kernels.groups import Adapting
from driftwise.kernels.point import Floats, Lesson, Point


@part
def before_(point: Point, lesson: Lesson, lanes: Any, own: Adapting) -> tuple[int, int, int]:
    """No round is counted."""
    return ALL, lesson.arm, 0


@part
def after_(
    point: Point, rho: Floats, lesson: Lesson, largest: float, turns: int, lanes: Any, own: Adapting
) -> None:
    """Nothing to do."""
