"""Random calls of all public names: every exception is driftwise's own, whatever was passed."""

import pytest

from hostile.battery import suffer


@pytest.mark.parametrize("count", [150, pytest.param(3000, marks=pytest.mark.slow)])
def test_no_call_of_the_public_surface_raises_a_foreign_exception(count):
    findings, summary = suffer("surface", {"count": count, "seed": 8})
    assert not findings, f"{len(findings)} findings:\n" + "\n".join(findings)
    assert summary["sentences"] > count // 10 and summary["fine"] > count // 10, summary  # it tries both, and often
