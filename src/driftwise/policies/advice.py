"""S, R and link of a policy, from what a product knows about its rewards."""

from __future__ import annotations

import math
from typing import Any

from driftwise._internal.elementary import log, log1p
from driftwise._internal.validate import real
from driftwise.errors import BadInput

# An observed rate is an average; single arms are more extreme. Half a unit of log odds is a factor of 1.65.
_BEYOND = 0.5


def advise(
    *, click_rate: float | tuple[float, float] | None = None, values: tuple[float, float] | None = None, L: float = 1.0
) -> dict[str, Any]:
    """S, R and link as fields for `make` or a policy: `dw.make("SCB-WeightUCB", **dw.advise(click_rate=0.03), …)`.

    click_rate is the rate of clicks, or the smallest and the largest rate that arms may have. A ball of radius S can
    express only rates between μ(-SL) and μ(SL): S = 1 means that no arm is clicked less than 27% of the time. values
    are the smallest and the largest reward where rewards are numbers. L is the largest norm of an arm.
    """
    L = real("L", L, 0.0, low_open=True, way_out="pass the largest norm of an arm")
    if (click_rate is None) == (values is None):
        raise BadInput("click_rate", click_rate, "either click_rate or values", "pass click_rate=0.03, say")
    if click_rate is not None:
        rates = click_rate if isinstance(click_rate, (tuple, list)) else (click_rate,)
        odds = [_log_odds(rate) for rate in rates] or [_log_odds(math.nan)]
        return {"S": (max(map(abs, odds)) + _BEYOND) / L, "R": 0.5, "link": "logistic"}
    pair = values if isinstance(values, (tuple, list)) and len(values) == 2 else (math.nan, math.nan)
    low, high = (real("values", value, -1e100, 1e100, way_out="pass values=(least, largest)") for value in pair)
    if not low < high:
        raise BadInput("values", values, "the least reward below the largest", "pass values=(least, largest)")
    return {"S": max(abs(low), abs(high)) / L, "R": (high - low) / 2.0}


def _log_odds(rate: float) -> float:
    rate = real("click_rate", rate, 0.0, 1.0, low_open=True, high_open=True, way_out="pass a share such as 0.03")
    return log(rate) - log1p(-rate)
