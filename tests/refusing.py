"""Assertions about the one sentence that bad input gets."""

import re
from contextlib import contextmanager

import pytest

import driftwise as dw


@contextmanager
def refused(parameter, *words):
    """The block raises one sentence, about this parameter, with these words in it."""
    with pytest.raises(dw.BadInput) as caught:
        yield
    error, text = caught.value, str(caught.value)
    assert error.parameter == parameter
    assert re.fullmatch(re.escape(parameter) + r": wanted .+, got .+; .+", text)
    assert "\n" not in text
    assert len(text) < 500
    for word in words:
        assert word in text
    assert isinstance(error, ValueError)
    assert isinstance(error, dw.DriftwiseError)


@contextmanager
def unchanged(*states):
    """The block changes nothing: the states have the same bytes before and after."""
    before = [state.to_bytes() for state in states]
    yield
    assert [state.to_bytes() for state in states] == before
