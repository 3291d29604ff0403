"""driftwise: choosing under drift.

Names are imported on first use. Importing all of them takes half a second, and some commands must respond at once.
"""

from driftwise._internal import interrupts  # isort: skip - first, for what follows takes half a second
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # the names of `_HOMES` for type checkers; a test holds the two together
    from driftwise import checks, research, theory, worlds
    from driftwise.agent import Agent, Decision, Verdict
    from driftwise.data.evaluate import Evaluation, evaluate
    from driftwise.data.outcomes import Backtest, Outcomes, backtest
    from driftwise.data.reduce import sums
    from driftwise.data.sums import Sums
    from driftwise.errors import BadInput, DriftwiseError, NumericalError
    from driftwise.policies.advice import advise
    from driftwise.policies.arms import ArmSet, Choice, Scores
    from driftwise.policies.curves import Curve, Fourier, Polynomial, Spline
    from driftwise.policies.half_life import convert_memory
    from driftwise.policies.linear import LinearUCB
    from driftwise.policies.memory import Fade, Keep, Restart, Window
    from driftwise.policies.names import catalogue, make
    from driftwise.policies.posterior import PosteriorUCB
    from driftwise.policies.shapes import Ball, Box, Ellipsoid, Union
    from driftwise.policies.state import State
    from driftwise.simulation import Result, simulate
    from driftwise.tables import Features, read_log

del interrupts

__version__ = "0.1.0"

# Modules, and the public names that live there.
_HOMES = {
    "agent": "Agent Decision Verdict",
    "data.evaluate": "Evaluation evaluate",
    "data.outcomes": "Backtest Outcomes backtest",
    "data.reduce": "sums",
    "data.sums": "Sums",
    "errors": "BadInput DriftwiseError NumericalError",
    "policies.advice": "advise",
    "policies.arms": "ArmSet Choice Scores",
    "policies.curves": "Curve Fourier Polynomial Spline",
    "policies.half_life": "convert_memory",
    "policies.linear": "LinearUCB",
    "policies.memory": "Fade Keep Restart Window",
    "policies.names": "catalogue make",
    "policies.posterior": "PosteriorUCB",
    "policies.shapes": "Ball Box Ellipsoid Union",
    "policies.state": "State",
    "simulation": "Result simulate",
    "tables": "Features read_log",
}
_HOME = {name: f"driftwise.{module}" for module, names in _HOMES.items() for name in names.split()}


if not TYPE_CHECKING:

    def __getattr__(name):
        """A public name from its module, or a module of driftwise."""
        if name in _HOME:
            globals()[name] = found = getattr(import_module(_HOME[name]), name)
            return found
        if name.startswith("_") or find_spec(f"driftwise.{name}") is None:
            raise AttributeError(f"module 'driftwise' has no attribute {name!r}")
        return import_module(f"driftwise.{name}")

    def __dir__():
        return sorted({*globals(), *__all__})


__all__ = [
    "Agent",
    "ArmSet",
    "Backtest",
    "BadInput",
    "Ball",
    "Box",
    "Choice",
    "Curve",
    "Decision",
    "DriftwiseError",
    "Ellipsoid",
    "Evaluation",
    "Fade",
    "Features",
    "Fourier",
    "Keep",
    "LinearUCB",
    "NumericalError",
    "Outcomes",
    "Polynomial",
    "PosteriorUCB",
    "Restart",
    "Result",
    "Scores",
    "Spline",
    "State",
    "Sums",
    "Union",
    "Verdict",
    "Window",
    "advise",
    "backtest",
    "catalogue",
    "checks",
    "convert_memory",
    "evaluate",
    "make",
    "read_log",
    "research",
    "simulate",
    "sums",
    "theory",
    "worlds",
]
