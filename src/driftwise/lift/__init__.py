"""The lift of a policy over a baseline, with intervals that are valid at any time. Pure: no I/O."""

from driftwise.lift.betting import Bets
from driftwise.lift.comparison import Guardrail, Lift, Look, Ramp, RampVerdict, mismatch
from driftwise.lift.intervals import Interval
from driftwise.lift.sums import Cohort, UnitSums

__all__ = ["Bets", "Cohort", "Guardrail", "Interval", "Lift", "Look", "Ramp", "RampVerdict", "UnitSums", "mismatch"]
