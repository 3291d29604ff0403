"""Real data are read from the packages that hold them; small stand-ins test what their rows become."""

import io
import subprocess
import tarfile
from pathlib import Path

import numpy as np
import pytest

from data import set_formats as formats
from driftwise.lab import sets
from driftwise.lab.sets import fetched, hours, models, shops, travel
from refusing import refused

nan = np.nan


@pytest.mark.parametrize("name", sets.SETS)
def test_every_set_of_the_list_is_read_in_its_format_and_names_its_terms(monkeypatch, tmp_path, name):
    formats.small(monkeypatch, tmp_path, name)
    log = sets.SETS[name].draw(0)
    assert log.rounds >= 30
    assert 2 <= len(log.names) <= 20
    assert log.longest == pytest.approx(1.0)
    paid = log.paid[~np.isnan(log.paid)]
    assert not sets.SETS[name].clicks or set(paid.tolist()) <= {0.0, 1.0}
    assert sets.SETS[name].terms


def test_a_basket_is_a_customer_s_day_and_days_are_in_order(monkeypatch, tmp_path):
    rows = [("11/2/2000", "7", "a"), ("11/1/2000", "8", "b"), ("11/1/2000", "8", "a"), ("11/1/2000", "8", "a"),
            ("12/1/2000", "7", "a"), ("11/10/2000", "9", "c")]  # fmt: skip
    formats.packaged(monkeypatch, tmp_path, shops, "TAFENG", formats.tafeng(rows))
    log = sets.tafeng(count=2)
    assert log.names == ("a", "b")  # in most baskets, then by name
    np.testing.assert_array_equal(log.paid, [[1, 1], [1, 0], [0, 0], [1, 0]])


def test_the_seed_orders_a_day_and_never_crosses_it(monkeypatch, tmp_path):
    rows = [(f"11/{1 + n // 20}/2000", f"{n:08}", f"{n % 20}") for n in range(60)]
    formats.packaged(monkeypatch, tmp_path, shops, "TAFENG", formats.tafeng(rows))
    one, two = sets.tafeng(seed=0).paid, sets.tafeng(seed=1).paid
    assert (one != two).any()
    for day in range(3):
        np.testing.assert_array_equal(one[20 * day : 20 * day + 20].sum(axis=0), np.ones(20))


def test_an_invoice_counts_products_that_were_not_sent_back(monkeypatch, tmp_path):
    early, late, last = (f"12/1/2009 {hour}:00" for hour in (7, 8, 9))
    rows = [("2", "85048", 1, late), ("1", "85048", 1, early), ("1", "79323p", 2, early), ("C3", "85048", -1, last),
            ("2", "79323P", -1, late), ("2", "POST", 1, late)]  # fmt: skip
    formats.packaged(monkeypatch, tmp_path, shops, "RETAIL", formats.retail(rows))
    log = sets.retail()
    assert log.names == ("85048", "79323P")
    np.testing.assert_array_equal(log.paid, [[1, 1], [1, 0]])


def test_an_hour_of_flights_is_a_round_with_its_carriers_on_offer(monkeypatch, tmp_path):
    ten, eleven, noon = (f"2013-01-01T{hour}:00:00Z" for hour in (10, 11, 12))
    rows = [(eleven, "UA", 14), (ten, "UA", 15), (ten, "AA", -3), (eleven, "DL", ""), (noon, "DL", 0)]
    formats.packaged(monkeypatch, tmp_path, travel, "FLIGHTS", formats.flights(rows))
    log = sets.flights()
    assert log.names == ("AA", "DL", "UA")
    # 15 minutes late is late, no arrival is late, an hour with one carrier is no choice
    np.testing.assert_array_equal(log.paid, [[1.0, nan, 0.0], [nan, 0.0, 1.0]])
    np.testing.assert_array_equal(sets.flights(late=20).paid[0], [1.0, nan, 1.0])


def test_ten_minutes_of_the_busiest_airports_are_a_round(monkeypatch, tmp_path):
    at = np.datetime64("2001-01-01T00:00")
    rows = [(at, 20, "LAS"), (at + 9, 0, "ATL"), (at + 10, 0, "ATL"), (at + 19, 15, "LAS"), (at + 30, 0, "LAS"),
            (at + 31, 0, "XXX")]  # fmt: skip
    formats.packaged(monkeypatch, tmp_path, travel, "AIRPORTS", formats.airports(rows))
    log = sets.airports(count=2)
    assert log.names == ("ATL", "LAS")
    np.testing.assert_array_equal(log.paid, [[1.0, 0.0], [1.0, 0.0]])


def test_a_tier_pays_by_its_distance_from_the_tier_that_came(tmp_path):
    path = tmp_path / "Bikeshare.csv"
    path.write_bytes(formats.bikes())
    log = sets.bikes(path=path)
    np.testing.assert_allclose(log.paid[0], [1.0, 2 / 3, 1 / 3, 0.0])
    np.testing.assert_allclose(log.paid[39], [0.0, 1 / 3, 2 / 3, 1.0])
    assert [int((log.paid.argmax(axis=1) == tier).sum()) for tier in range(4)] == [10, 10, 10, 10]
    assert log.longest == pytest.approx(1.0)
    assert (np.count_nonzero(log._sets, axis=2) <= 8).all()


def test_hours_without_weather_are_left_out(monkeypatch, tmp_path):
    rows = [("2011-01-01 00:00:00", 5, "", 0), ("2011-01-01 01:00:00", 1, 9.0, 0), ("2011-01-01 02:00:00", 7, 9.0, "")]
    formats.packaged(monkeypatch, tmp_path, hours, "CAPITAL", formats.capital(rows))
    np.testing.assert_array_equal(sets.capital(tiers=2).paid, [[1, 0], [0, 1]])


def test_the_class_of_the_half_hour_before_is_a_feature(monkeypatch, tmp_path):
    formats.packaged(monkeypatch, tmp_path, hours, "ELEC2", formats.elec2([(0, 0, 0, 0, 0, 0, up) for up in (1, 0, 0)]))
    log = sets.elec2()
    np.testing.assert_array_equal(log.paid, [[1, 0], [1, 0]])
    before = log._sets[:, 0, log.dim // 2 - 1]
    assert before[0] > 0.0 and before[1] == 0.0


def test_prompts_are_graded_for_every_model(monkeypatch, tmp_path):
    for number, pin in enumerate(("VALIDATION", "HOLDOUT")):
        arms = {"b": {"reward": 0.5, "cost": 0.1}, "a": {"reward": 0.25 * number, "cost": 0.01}}
        rows = [{"prompt": "what\u2028now", "source": f"bbh/{pin}", "arms": arms}]
        formats.packaged(monkeypatch, tmp_path, models, pin, formats.graded(rows))
    log = sets.prompts(price=1.0)
    assert log.names == ("a", "b")
    np.testing.assert_allclose(log.paid, [[-0.01, 0.4], [0.24, 0.4]])
    assert log.dim == 2 * 3  # a block a model: 1, the one family of benchmarks, the length


def test_a_price_counts_from_its_day_on(monkeypatch, tmp_path):
    formats.small(monkeypatch, tmp_path, "prices")
    log, flat = sets.prices(price=1.0), sets.prices(price=0.0)
    cost = flat.paid - log.paid
    mistral = log.names.index("mistralai/mistral-large-2512")
    steps = np.unique(np.round(cost[:, mistral] / cost[-1, mistral], 9))
    np.testing.assert_allclose(steps, [1.0, 4.0, 6.0, 8.0, 16.0])
    assert (np.diff(cost[:, mistral]) <= 1e-12).all()


def test_what_cannot_be_fetched_gets_the_one_sentence(monkeypatch, tmp_path):
    monkeypatch.setattr(fetched, "find_spec", lambda name: None)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    with refused("bikes", "go online", "ISLP 0.6.0"):
        sets.bikes()
    monkeypatch.setattr(fetched.shutil, "which", lambda name: None)
    with refused("airports", "no npm", "install npm"):
        sets.airports()
    with refused("path", "can be read"):
        sets.bikes(path=tmp_path / "none.csv")
    (tmp_path / "islp.whl").write_bytes(b"no wheel")
    with refused("path", "a wheel of ISLP"):
        sets.bikes(path=tmp_path / "islp.whl")
    with refused("tiers", "at least 2"):
        sets.bikes(tiers=1)


def test_a_fetched_file_is_kept_only_with_the_pinned_digest(monkeypatch, tmp_path):
    raw, asked = formats.airports(), []

    def pack(command, **more):
        asked.append(command)
        with tarfile.open(Path(more["cwd"]) / "vega.tgz", "w:gz") as tar:
            info = tarfile.TarInfo("package/data/flights-3m.parquet")
            info.size = len(raw)
            tar.addfile(info, io.BytesIO(raw))
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(fetched.subprocess, "run", pack)
    monkeypatch.setattr(fetched.shutil, "which", lambda name: name)
    with monkeypatch.context() as other:
        other.setenv("XDG_CACHE_HOME", str(tmp_path / "empty"))
        with refused("airports", "sha256"):
            sets.airports()
        assert not travel.AIRPORTS.kept.exists()
    formats.packaged(monkeypatch, tmp_path, travel, "AIRPORTS", raw)
    travel.AIRPORTS.kept.unlink()
    assert sets.airports().rounds == sets.airports().rounds  # the second time from the cache
    assert len(asked) == 2


@pytest.mark.parametrize(("raw", "share"), [(b"PK\x03\x04", 1.0), (None, 0.5), (None, 0.99), (b"", 1.0)])
def test_a_truncated_wheel_or_none_gets_the_one_sentence(monkeypatch, tmp_path, raw, share):
    box = raw if raw is not None else formats.zipped("ISLP/data/Bikeshare.csv", formats.bikes())

    def download(command, **more):
        if box:
            (Path(more["cwd"]) / "islp.whl").write_bytes(box[: int(share * len(box))])
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(fetched, "find_spec", lambda name: None)
    monkeypatch.setattr(fetched.subprocess, "run", download)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with refused("bikes", "cannot be unpacked", "ISLP 0.6.0"):
        sets.bikes()
    assert not hours.BIKES.kept.exists()


@pytest.mark.parametrize("place", [40, 60, 100])
def test_a_damaged_tarball_gets_the_one_sentence(monkeypatch, tmp_path, place):
    def pack(command, **more):
        path = Path(more["cwd"]) / "vega.tgz"
        with tarfile.open(path, "w:gz") as tar:
            info = tarfile.TarInfo("package/data/flights-3m.parquet")
            info.size = 4000
            tar.addfile(info, io.BytesIO(np.random.default_rng(0).bytes(4000)))
        raw = bytearray(path.read_bytes())
        raw[place] ^= 255
        path.write_bytes(raw[: 2000 if place == 100 else None])
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(fetched.subprocess, "run", pack)
    monkeypatch.setattr(fetched.shutil, "which", lambda name: name)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with refused("airports"):
        sets.airports()
    assert not travel.AIRPORTS.kept.exists()
