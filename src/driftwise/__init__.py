"""driftwise: choosing under drift."""

from driftwise import interrupts  # isort: skip - first, for what follows takes half a second
from driftwise import checks, theory, worlds
from driftwise.agent import Agent, Decision, Verdict
from driftwise.data.evaluate import Evaluation, evaluate
from driftwise.data.outcomes import Backtest, Outcomes, backtest
from driftwise.data.reduce import sums
from driftwise.data.sums import Sums
from driftwise.errors import BadInput, DriftwiseError, NumericalError
from driftwise.policies.adapt import BanditOverBandit, FadeBank, Master
from driftwise.policies.advice import advise
from driftwise.policies.arms import ArmSet, Choice, Scores
from driftwise.policies.bvd import BVDGLMUCB
from driftwise.policies.curves import Curve, Fourier, Polynomial, Spline
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
from driftwise.policies.shapes import Ball, Box, Ellipsoid, Union
from driftwise.policies.state import State
from driftwise.policies.trend_bank import TrendBank
from driftwise.simulation import Result, simulate
from driftwise.tables import Features, read_log

del interrupts

__version__ = "0.1.0"

__all__ = [
    "BVDGLMUCB",
    "GLMUCB",
    "Agent",
    "ArmSet",
    "Backtest",
    "BadInput",
    "Ball",
    "BanditOverBandit",
    "Box",
    "Choice",
    "Curve",
    "Decision",
    "DiscountedSelfConcordantUCB",
    "DriftwiseError",
    "Ellipsoid",
    "Evaluation",
    "Fade",
    "FadeBank",
    "Features",
    "Fourier",
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
    "Polynomial",
    "PosteriorSampling",
    "PosteriorUCB",
    "Restart",
    "Result",
    "Scores",
    "SelfConcordantUCB",
    "Spline",
    "State",
    "Sums",
    "Trend",
    "TrendBank",
    "Union",
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
