"""What an adaptation asks of a lane: the pieces that a family supplies."""

from __future__ import annotations

from typing import Generic, NamedTuple, Protocol, TypeVar

from driftwise.kernels import part
from driftwise.kernels.groups import Adapting, Sums
from driftwise.kernels.point import Floats, Lesson, Point


class Lanes(Protocol):
    """The bundle of a family's lanes; `surprise` is scratch with a place per lane, which a bank uses."""

    @property
    def sums(self) -> Sums: ...

    @property
    def surprise(self) -> Floats: ...


Given = TypeVar("Given", bound=Lanes)
GivenIn = TypeVar("GivenIn", bound=Lanes, contravariant=True)


class LaneLearn(Protocol[GivenIn]):
    """Takes a lesson into a lane."""

    def __call__(self, point: Point, row: int, lane: int, lesson: Lesson, lanes: GivenIn) -> None: ...


class LaneForetell(Protocol[GivenIn]):
    """Says how surprised every lane is by a reward, and whether that is paid for."""

    def __call__(self, point: Point, lesson: Lesson, lanes: GivenIn, own: Adapting) -> bool: ...


class LaneFollow(Protocol[GivenIn]):
    """Lets a lane drop its data for another's."""

    def __call__(self, lane: int, other: int, lanes: GivenIn) -> None: ...


class LaneFresh(Protocol[GivenIn]):
    """Lets a lane begin anew, its clock included; for MASTER and BOB."""

    def __call__(self, point: Point, lane: int, lanes: GivenIn) -> None: ...


@part
def _never_fresh(point: Point, lane: int, lanes: Lanes) -> None: ...


class Lane(NamedTuple, Generic[Given]):
    """The pieces of a lane. Those with a default are for the lanes of a bank, but for `fresh_`."""

    learn_: LaneLearn[Given]
    foretell_: LaneForetell[Given]
    follow_: LaneFollow[Given]
    fresh_: LaneFresh[Given] = _never_fresh


class Before(Protocol[GivenIn]):
    """Says who takes a lesson, with which arm, and how many rounds end."""

    def __call__(
        self, point: Point, lesson: Lesson, lanes: GivenIn, own: Adapting
    ) -> tuple[int, int, int]: ...


class After(Protocol[GivenIn]):
    """The turn of the adaptation, when the lanes have learned."""

    def __call__(
        self, point: Point, rho: Floats, lesson: Lesson, largest: float, turns: int, lanes: GivenIn, own: Adapting
    ) -> None: ...


class Adaptation(NamedTuple, Generic[Given]):
    """An adaptation over the lanes of a family."""

    before_: Before[Given]
    after_: After[Given]
