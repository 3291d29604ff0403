"""Errors survive copy, pickle and a process pool."""

import concurrent.futures
import copy
import importlib
import inspect
import multiprocessing
import pickle
import pkgutil
import threading

import numpy as np
import pytest

import driftwise as dw


def classes():
    """Every exception class that a module of driftwise defines."""
    found = {}
    for module in pkgutil.walk_packages(dw.__path__, "driftwise."):
        if module.name.rsplit(".", 1)[-1] == "__main__":
            continue
        for one in vars(importlib.import_module(module.name)).values():
            if inspect.isclass(one) and issubclass(one, BaseException) and one.__module__.startswith("driftwise"):
                found[f"{one.__module__}.{one.__qualname__}"] = one
    return found


def era():
    from driftwise.service.stores.records import EraRow

    return EraRow(*range(len(EraRow._fields)))


# Arguments of constructors with more than a sentence.
ARGUMENTS = {
    "driftwise.service.wire.protocol.Stale": lambda: (),
    "driftwise.errors.BadInput": lambda: ("dim", 0, "a whole number", "pass 2"),
    "driftwise.service.stores.records.Damaged": lambda: ("x.db", "a changed row"),
    "driftwise.service.wire.protocol.Refusal": lambda: ("stream_paused", "paused", "stream", "resume", 7),
    "driftwise.service.client.Refused": lambda: (409, {"error": "paused", "field": "stream", "hint": "resume"}),
    "driftwise.service.core.fold.Unlike": lambda: (era(), 3),
}


def test_every_error_survives_pickle_and_copy():
    found = classes()
    assert set(ARGUMENTS) <= set(found) and len(found) > 12
    for kind in found.values():
        maker = next(one for one in kind.__mro__ if "__init__" in vars(one))  # the class whose constructor it has
        error = kind(*ARGUMENTS.get(f"{maker.__module__}.{maker.__qualname__}", lambda: ("a sentence",))())
        error.add_note("seen in a worker")
        for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
            assert type(again) is kind and str(again) == str(error) and again.args == error.args
            assert vars(again) == vars(error)
            assert getattr(again, "exit_code", None) == getattr(error, "exit_code", None)


@pytest.mark.parametrize("got", [threading.Lock(), lambda: 0, np.ones((3, 2)), {"deep": [threading.Lock()]}])
def test_an_error_about_a_value_that_cannot_be_pickled_keeps_its_sentence(got):
    error = dw.BadInput("policy", got, "a policy", "pass dw.make(...)")
    again = pickle.loads(pickle.dumps(error))
    assert str(again) == str(error) and again.parameter == "policy" and again.way_out == error.way_out
    assert isinstance(again.got, str) and again.got in str(error)


def fade(forget):
    return dw.Fade(forget).forget


def test_a_refusal_in_a_worker_does_not_break_the_pool():
    method = multiprocessing.get_context("forkserver")
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=method) as pool:
        with pytest.raises(dw.BadInput, match="forget: wanted"):
            pool.submit(fade, -1).result(60)
        assert pool.submit(fade, 0.5).result(60) == 0.5


def test_a_value_that_cannot_be_shown_still_gets_its_sentence():
    class Hidden:
        def __repr__(self):
            raise RuntimeError

    assert "a Hidden that cannot be shown" in str(dw.BadInput("value", Hidden(), "a number", "pass one"))
