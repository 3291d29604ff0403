"""Student's t without scipy equals scipy's."""

import math
import sys

import numpy as np
import pytest
from scipy import special

from driftwise._internal.intervals import t_quantile


@pytest.mark.parametrize("freedom", [0.3, 1, 1.5, *range(2, 60), 99.5, 159.9, 160.1, 999, 9999.9, 10000.1, 1e6, 1e9])
def test_the_point_is_scipys(freedom):
    assert t_quantile(freedom) == pytest.approx(special.stdtrit(freedom, 0.975), rel=1e-12)
    assert special.stdtr(freedom, t_quantile(freedom)) == pytest.approx(0.975, rel=1e-13)


def test_it_falls_to_the_normals_and_is_nothing_without_freedom():
    points = [t_quantile(float(n)) for n in np.geomspace(1, 1e7, 200)]
    assert all(np.diff(points) < 0.0)
    assert t_quantile(math.inf) == pytest.approx(special.ndtri(0.975), rel=1e-15)
    assert math.isnan(t_quantile(0.0)) and math.isnan(t_quantile(math.nan))


def test_a_link_of_ones_own_without_scipy_is_one_sentence(monkeypatch):
    from driftwise.errors import BadInput
    from driftwise.policies import own_link

    monkeypatch.setitem(sys.modules, "scipy", None)
    with pytest.raises(BadInput, match=r"driftwise\[links\]"):
        own_link._optimize()
