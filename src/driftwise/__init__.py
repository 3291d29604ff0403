"""driftwise: choosing under drift."""

import importlib
from typing import TYPE_CHECKING

from driftwise import interrupts  # isort: skip - first, for what follows takes half a second
from driftwise import theory, worlds
from driftwise.errors import BadInput, DriftwiseError, NumericalError
from driftwise.policies.adapt import BanditOverBandit, FadeBank, Master
from driftwise.policies.advice import advise
from driftwise.policies.arms import ArmSet, Choice, Scores
from driftwise.policies.bvd import BVDGLMUCB
from driftwise.policies.glm import GLMUCB
from driftwise.policies.half_life import (
    forget_to_half_life,
    forget_to_rounds,
    forget_to_window,
    half_life_to_forget,
    rounds_to_forget,
    span_to_ticks,
    window_to_forget,
)
from driftwise.policies.linear import LinearUCB
from driftwise.policies.memory import Fade, Keep, Restart, Trend, Window
from driftwise.policies.model import Link
from driftwise.policies.names import catalogue, make
from driftwise.policies.optimistic import LogisticUCB2, OFULog, PiecewiseUCB
from driftwise.policies.posterior import PosteriorUCB
from driftwise.policies.sampling import LinearSampling, PosteriorSampling
from driftwise.policies.self_concordant import DiscountedSelfConcordantUCB, SelfConcordantUCB
from driftwise.policies.state import State
from driftwise.policies.trend_bank import TrendBank
from driftwise.simulation import Result, simulate

if TYPE_CHECKING:
    from driftwise import checks
    from driftwise.agent import Agent, Decision, Verdict
    from driftwise.data.evaluate import Evaluation, evaluate
    from driftwise.data.outcomes import Backtest, Outcomes, backtest
    from driftwise.data.reduce import sums
    from driftwise.data.sums import Sums
    from driftwise.tables import Features, read_log

del interrupts

_LATER = {
    "agent": ("Agent", "Decision", "Verdict"),
    "checks": ("checks",),
    "data.evaluate": ("Evaluation", "evaluate"),
    "data.outcomes": ("Backtest", "Outcomes", "backtest"),
    "data.reduce": ("sums",),
    "data.sums": ("Sums",),
    "tables": ("Features", "read_log"),
}  # rooms that are entered when something in them is asked for: a study needs none of them, and they take a while


def __getattr__(name: str) -> object:
    for room, names in _LATER.items():
        if name in names:
            module = importlib.import_module(f"driftwise.{room}")
            value = globals()[name] = module if name == room else getattr(module, name)
            return value
    raise AttributeError(f"module 'driftwise' has no attribute {name!r}")


def __dir__() -> list[str]:
    return [*__all__, "__version__"]

__version__ = "0.1.0"

__all__ = [
    "BVDGLMUCB",
    "GLMUCB",
    "Agent",
    "ArmSet",
    "Backtest",
    "BadInput",
    "BanditOverBandit",
    "Choice",
    "Decision",
    "DiscountedSelfConcordantUCB",
    "DriftwiseError",
    "Evaluation",
    "Fade",
    "FadeBank",
    "Features",
    "Keep",
    "LinearSampling",
    "LinearUCB",
    "Link",
    "LogisticUCB2",
    "Master",
    "NumericalError",
    "OFULog",
    "Outcomes",
    "PiecewiseUCB",
    "PosteriorSampling",
    "PosteriorUCB",
    "Restart",
    "Result",
    "Scores",
    "SelfConcordantUCB",
    "State",
    "Sums",
    "Trend",
    "TrendBank",
    "Verdict",
    "Window",
    "advise",
    "backtest",
    "catalogue",
    "checks",
    "evaluate",
    "forget_to_half_life",
    "forget_to_rounds",
    "forget_to_window",
    "half_life_to_forget",
    "make",
    "read_log",
    "rounds_to_forget",
    "simulate",
    "span_to_ticks",
    "sums",
    "theory",
    "window_to_forget",
    "worlds",
]
