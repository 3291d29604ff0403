"""driftwise: choosing under drift."""

from driftwise import checks, theory, worlds
from driftwise.errors import BadInput, DriftwiseError, NumericalError
from driftwise.policies.base import ArmSet, Choice, Scores, State
from driftwise.policies.linear import LinearUCB
from driftwise.policies.memory import Fade, Keep, Restart, Window
from driftwise.policies.names import catalogue, make
from driftwise.simulation import Result, simulate

__version__ = "0.1.0"

__all__ = [
    "ArmSet",
    "BadInput",
    "Choice",
    "DriftwiseError",
    "Fade",
    "Keep",
    "LinearUCB",
    "NumericalError",
    "Restart",
    "Result",
    "Scores",
    "State",
    "Window",
    "catalogue",
    "checks",
    "make",
    "simulate",
    "theory",
    "worlds",
]
