"""For research: the classes of the paper's algorithms, of those it compares with, and of adaptations to unknown drift.

`dw.make` makes all of them by their names; these are for settings of your own.
"""

from driftwise.policies.adapt import BanditOverBandit, FadeBank, Master
from driftwise.policies.auto import Auto
from driftwise.policies.bvd import BVDGLMUCB
from driftwise.policies.glm import GLMUCB
from driftwise.policies.model import Link
from driftwise.policies.optimistic import LogisticUCB2, OFULog, PiecewiseUCB
from driftwise.policies.sampling import LinearSampling, PosteriorSampling
from driftwise.policies.self_concordant import DiscountedSelfConcordantUCB, SelfConcordantUCB

__all__ = [
    "BVDGLMUCB",
    "GLMUCB",
    "Auto",
    "BanditOverBandit",
    "DiscountedSelfConcordantUCB",
    "FadeBank",
    "LinearSampling",
    "Link",
    "LogisticUCB2",
    "Master",
    "OFULog",
    "PiecewiseUCB",
    "PosteriorSampling",
    "SelfConcordantUCB",
]
