"""What an adaptation asks of a lane: the pieces that a family supplies (`alike` in lesson.py has the usual ones).

`lanes` is the bundle of a family's lanes; it has `sums` and, for a bank, `surprise`, scratch with a place per lane.
"""

from __future__ import annotations

from driftwise.kernels.binding import unbound

# point, row, lane, lesson, lanes
lane_learn_ = unbound("lane_learn_", "takes a lesson into a lane")
# point, lane, lanes; for MASTER and BOB
lane_fresh_ = unbound("lane_fresh_", "lets a lane begin anew, its clock included")
# For a bank: point, lesson, lanes, own; point, lesson, density, lanes; point, lane, other, lanes; lane, other, lanes;
# point, lesson, lanes, own
lane_foretell_ = unbound("lane_foretell_", "says how surprised every lane is by a reward, and whether that is paid for")
lane_paid_ = unbound("lane_paid_", "takes note of the log density that all lanes together gave a reward")
lane_may_follow = unbound("lane_may_follow", "says whether a lane can take over the data of another")
lane_follow_ = unbound("lane_follow_", "lets a lane drop its data for another's")
lane_wake_ = unbound("lane_wake_", "wakes the lanes whose time has come")
