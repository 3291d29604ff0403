"""A check that units are split as they were drawn, valid at any time.

If the split differs from the drawn one, one cohort loses more units or rewards than the other, and no interval is
valid. The test is the beta mixture of Lindon and Malek, "Anytime-valid inference for multinomial count data" (NeurIPS
2022): under the drawn share the evidence ever exceeds 1/α with probability at most α.
"""

from __future__ import annotations

import math

_WEIGHT = 100.0  # the weight of the prior on the drawn share, in units


def ratio_evidence(live: int, baseline: int, share: float) -> float:
    """log of the evidence against a split of units at the drawn share of the policy."""
    a, b = _WEIGHT * share, _WEIGHT * (1.0 - share)
    mixed = _log_beta(a + live, b + baseline) - _log_beta(a, b)
    return mixed - live * math.log(share) - baseline * math.log1p(-share)


def mismatch(live: int, baseline: int, share: float, level: float) -> bool:
    """Whether the split differs from the drawn one. Ever wrong with probability at most `level`."""
    return ratio_evidence(live, baseline, share) >= math.log(1.0 / level)


def _log_beta(a: float, b: float) -> float:
    return math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
