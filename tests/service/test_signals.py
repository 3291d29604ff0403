"""Numbers for operators: `/metrics`, the Prometheus rules and the Grafana dashboard in deploy/."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from driftwise.lift import Lift
from service.living import living

DEPLOY = Path(__file__).resolve().parents[2] / "deploy"
RULES, TESTS = DEPLOY / "prometheus" / "driftwise.rules.yml", DEPLOY / "prometheus" / "driftwise.tests.yml"
GRAFANA = DEPLOY / "grafana" / "driftwise.json"


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    """`/metrics` of a stream with a holdback, and what was played: unit, cohort, arm, value."""
    rng, played = np.random.default_rng(0), []
    with living(tmp_path_factory.mktemp("signals") / "a.db") as asked:
        asked.put(mode="holdback", holdback=0.5, ramp=[0.5], margin=-1,
                  guardrails={"ms": {"margin": 50}, "seen": {"margin": 5, "better": "higher"}})
        for number in range(300):
            unit = f"u{number // 2}"
            found = asked.decide(f"d{number}", unit=unit).json()
            value = float(rng.random() < (0.8 if found["cohort"] == "live" else 0.2))
            metrics = {"ms": 100.0 + 10.0 * (found["cohort"] == "live"), "seen": float(found["cohort"] != "live")}
            metrics = {name: value + rng.normal() for name, value in metrics.items()}
            asked.ask("POST", "home/reward", json={"id": found["id"], "value": value, "metrics": metrics})
            played.append((unit, found["cohort"], found["arm"], value))
        answer = asked.get("/metrics")
        assert answer.status_code == 200
        stream = asked.service.stream("home")
        worth = stream.fold.policy.worth(stream.fold.states.front)
        again = asked.get("/metrics").text
        yield answer.text, played, worth, again


def gauge(text, name, **labels):
    for line in text.splitlines():
        found = re.fullmatch(rf"{name}\{{(.*)\}} (\S+)", line)
        if found and labels.items() <= dict(re.findall(r'(\w+)="([^"]*)"', found[1])).items():
            return float(found[2])
    raise AssertionError(f"{name} {labels} is not told")


def test_metrics_tell_what_the_log_says(told):
    text, played, worth, _ = told
    lift = Lift(0.5, (0.0, 1.0))
    lift.add([row[0] for row in played], [row[1] == "live" for row in played], [row[3] for row in played])
    look = lift.look()
    assert look.difference.shown and look.lift.shown
    for of, found in (("difference", look.difference), ("lift", look.lift), ("bounded", look.bounded)):
        for end, value in (("value", found.value), ("low", found.low), ("high", found.high)):
            assert gauge(text, "driftwise_lift", stream="home", of=of, end=end) == value
    for cohort in ("live", "baseline"):
        mean = np.mean([row[3] for row in played if row[1] == cohort])
        assert gauge(text, "driftwise_mean_reward", cohort=cohort) == pytest.approx(mean)
    share = np.mean([row[2] == 0 for row in played])
    assert gauge(text, "driftwise_arm_share", arm="arm 0") == pytest.approx(share)
    assert gauge(text, "driftwise_effective_observations", stream="home") == worth
    assert gauge(text, "driftwise_memory_ticks", stream="home") > 0
    assert 0 <= gauge(text, "driftwise_reward_delay_seconds", q="0.5") < 60
    assert gauge(text, "driftwise_sample_ratio_mismatch", stream="home") == 0.0


def test_metrics_tell_the_step_of_a_ramp_and_how_much_worse_guardrails_are(told):
    text, _, _, _ = told
    assert gauge(text, "driftwise_ramp_step", stream="home") == 0.0
    assert gauge(text, "driftwise_ramp_share", stream="home") == 0.5
    assert gauge(text, "driftwise_ramp_stopped", stream="home") == 0.0
    for metric, worse, margin in (("ms", 10.0, 50.0), ("seen", 1.0, 5.0)):
        ends = {end: gauge(text, "driftwise_guardrail", metric=metric, end=end) for end in ("low", "value", "high")}
        assert 0.0 < ends["low"] < ends["value"] < ends["high"] and ends["value"] == pytest.approx(worse, abs=0.5)
        assert gauge(text, "driftwise_guardrail_margin", metric=metric) == margin


def test_a_second_scrape_within_seconds_reads_no_log(told):
    text, _, _, again = told
    assert [line for line in text.splitlines() if "lift{" in line] == [
        line for line in again.splitlines() if "lift{" in line
    ]


def test_every_metric_of_the_rules_and_the_dashboard_is_told(told):
    known = set(re.findall(r"^# TYPE (\w+)", told[0], flags=re.M)) | {"driftwise_commit_seconds_bucket"}
    panels = json.loads(GRAFANA.read_text(encoding="utf-8"))["panels"]
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    asked = set(re.findall(r"driftwise_\w+", " ".join(queries)))
    asked |= set(re.findall(r"driftwise_\w+", RULES.read_text(encoding="utf-8"))) - {"driftwise_rules"}
    assert len(asked) > 12 and asked <= known, asked - known
    alerts = (DEPLOY.parent / "docs" / "alerts.md").read_text(encoding="utf-8")
    for name in known - {"driftwise_commit_seconds_bucket"}:
        assert name in alerts, f"docs/alerts.md does not say what {name} is"


def test_promtool_accepts_rules_their_tests_and_the_metrics(told):
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed: it comes with Prometheus")
    for arguments, given in ((["check", "rules", RULES], None), (["test", "rules", TESTS], None),
                             (["check", "metrics"], told[0])):  # fmt: skip
        ended = subprocess.run([promtool, *arguments], input=given, capture_output=True, text=True, timeout=60)
        assert ended.returncode == 0, ended.stdout + ended.stderr
