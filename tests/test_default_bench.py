"""bench/default.py: its regret is that of the policy, and stored rivals are found again."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import driftwise as dw

BENCH = Path(__file__).parents[1] / "bench"


@pytest.fixture
def bench(monkeypatch):
    """bench/default.py, which is a script."""
    monkeypatch.syspath_prepend(str(BENCH))
    return importlib.import_module("default")


def test_a_world_as_a_stream_costs_a_policy_what_simulate_says(bench):
    from drifts import linear_worlds

    policy, world = dw.make("LB-WeightUCB", dim=2, horizon=300, path_length=6.0), linear_worlds(300)["one turn"]
    draw, rewards, _ = bench.registry("seen")["drift: one turn"]
    told = dw.simulate({"it": policy}, world, trials=[3], seed=0, record="last", progress=False, jobs=1)
    assert rewards == "values"
    assert bench.regret(policy, draw(3, 300)) == pytest.approx(told.final("it")[0], rel=1e-9)


def test_every_seen_kind_is_a_sound_stream_and_the_issue_has_its_rows(bench):
    seen, unseen = bench.default_seen, bench.default_unseen
    kinds = [rewards for _, rewards, _ in seen.REGISTRY.values()]
    assert kinds.count("values") >= 40 and kinds.count("clicks") >= 41
    for name, (draw, rewards, _) in seen.REGISTRY.items():
        stream = draw(1, 200)
        assert stream.means.shape == stream.rewards.shape == (200, stream.arms.shape[-2]), name
        assert all(np.isfinite(part).all() for part in stream), name
        assert rewards == "values" or set(np.unique(stream.rewards)) <= {0.0, 1.0}, name
    assert unseen.REGISTRY.keys() == bench.registry("unseen").keys()


@pytest.mark.parametrize("name", ["unseen_rise", "rate_one_percent_items_still"])
def test_a_row_has_rivals_that_are_found_again_unless_the_stream_changed(bench, name, monkeypatch, tmp_path, capsys):
    rewards = bench.registry("seen")[name][1]
    monkeypatch.setitem(bench.default_seen.HORIZONS, name, 300)
    found = tmp_path / "out.json"
    arguments = ["--rewards", rewards, "--only", name, "--trials", "2", "--cache", str(tmp_path), "--out", str(found)]
    monkeypatch.setattr(sys, "argv", ["default.py", *arguments])
    bench.main()
    row = json.loads(found.read_text())[name]
    assert 0.0 < row["hindsight"] < row["random"] and 0.0 < row["practical"] and len(row["lost"]) == 2
    monkeypatch.setattr(bench.default_rivals, "grid", None)  # a second run must not need it
    bench.main()
    assert json.loads(found.read_text())[name]["lost"] == row["lost"]
    assert f"| {name} | " in capsys.readouterr().out
    monkeypatch.setattr(bench.default_rivals, "VERSION", -1)
    with pytest.raises(TypeError):
        bench.main()


def test_a_posterior_that_keeps_everything_beats_chance_with_clicks_and_values(bench):
    for name, memory in (("scale_relevant", "inf 2"), ("rate_one_percent_fixed", "inf 1"), ("turns_d2", "256 1")):
        draw, rewards, _ = bench.registry("seen")[name]
        stream = draw(0, 1500)
        lost = bench.default_rivals.grid(stream, rewards, 0, [memory])[memory]
        assert lost < 0.5 * bench.default_rivals.random_play(stream), name
