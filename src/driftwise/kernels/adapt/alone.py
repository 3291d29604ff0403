"""No adaptation: the one lane learns."""

from __future__ import annotations

from driftwise.kernels import part
from driftwise.kernels.adapt.book import ALL
from driftwise.kernels.adapt.lane import Adaptation, Given, Lane
from driftwise.kernels.groups import Adapting
from driftwise.kernels.point import Floats, Lesson, Point


def stand_alone(lane: Lane[Given]) -> Adaptation[Given]:
    """The one lane of a family learns."""

    @part
    def before_(point: Point, lesson: Lesson, lanes: Given, own: Adapting) -> tuple[int, int, int]:
        """No round is counted."""
        return ALL, lesson.arm, 0

    @part
    def after_(
        point: Point, rho: Floats, lesson: Lesson, largest: float, turns: int, lanes: Given, own: Adapting
    ) -> None:
        """Nothing to do."""

    return Adaptation(before_, after_)
