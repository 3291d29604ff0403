"""From the log of an agent to sums, an evaluation and a page."""

import json

import numpy as np
import pytest

import driftwise as dw


@pytest.fixture
def lived(tmp_path):
    """An agent that logged 300 decisions among arms over time; its rewards favour feature 1 of three."""
    pytest.importorskip("pyarrow")
    policy = dw.LinearUCB(dim=3, memory=dw.Fade(0.01), lam=1.0)
    agent = dw.Agent(policy, rewards=(-3.0, 3.0), epsilon=0.5, seed=3)
    log = agent.log_to(tmp_path / "log", arms=True, rows=100)
    rng = np.random.default_rng(0)
    for _ in range(300):
        arms = rng.standard_normal((4, 3))
        arms /= 2.0 * np.linalg.norm(arms, axis=1, keepdims=True)
        decision = agent.decide(arms)
        agent.reward(decision.id, float(np.clip(arms[decision.arm, 1] + 0.1 * rng.standard_normal(), -3, 3)))
    log.close()
    return agent, tmp_path / "log", policy


def test_the_sums_of_its_log_are_the_agents_state(lived):
    agent, folder, policy = lived
    found = dw.sums(folder, policy)
    state = found.state(policy)
    assert len(found.parts) == 3
    for name in ("G", "b", "counters"):
        np.testing.assert_allclose(getattr(state, name), getattr(agent.state, name), rtol=0, atol=1e-12)


def test_an_agent_of_the_sums_goes_on_as_the_one_that_was_there(lived, tmp_path):
    agent, folder, policy = lived
    other = dw.sums(folder, policy).agent(policy, rewards=(-3.0, 3.0), epsilon=0.5, seed=3)
    other.save(tmp_path / "agent.dw")
    other = dw.Agent.load(tmp_path / "agent.dw")
    assert other.counts["learned"] == agent.counts["learned"] == 300
    rng = np.random.default_rng(5)
    for _ in range(50):
        arms = rng.standard_normal((4, 3)) / 8.0
        mine, theirs = agent.decide(arms), other.decide(arms)
        assert (mine.arm, mine.born, mine.explored) == (theirs.arm, theirs.born, theirs.explored)
        assert mine.score == pytest.approx(theirs.score, rel=0, abs=1e-11)
        reward = float(rng.uniform(-1, 1))
        agent.reward(mine.id, reward), other.reward(theirs.id, reward)


def test_the_command_says_what_another_policy_would_have_earned(lived, tmp_path, capsys):
    from driftwise.cli import main

    _, folder, _ = lived
    with pytest.raises(SystemExit, match="0"):
        main(["evaluate", str(folder), "--policy", "OFUL", "--blocks", "3", "--out", str(tmp_path / "out")])
    out = capsys.readouterr().out
    assert "DR" in out
    assert "by DR" in out
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Would it have helped?" in page
    assert "data:image/svg+xml" in page
    found = json.loads((tmp_path / "out" / "evaluation.json").read_text())
    assert found["policy"] == "OFUL"
    assert len(found["blocks"]) == 3
    twin = dw.evaluate(dw.make("OFUL", dim=3, horizon=300), folder, blocks=3, name="OFUL")
    assert found == json.loads(json.dumps(twin.to_dict()))


def test_the_verdict_follows_the_interval(lived):
    from driftwise.data.page import verdict

    _, folder, _ = lived
    wise = dw.evaluate(dw.LinearUCB(dim=3, memory=dw.Keep(), lam=1.0, R=0.1), folder)
    assert wise.gains["DR"].low > 0.0
    assert verdict(wise).startswith("**Yes**")

    class Contrary:
        """Plays the worst arm for feature 1."""

        def start(self, seed=0):
            return None

        def choose(self, state, arms):
            return int(np.argmin(np.asarray(arms)[:, 1]))

        def learn(self, state, arms, arm, reward):
            pass

    assert verdict(dw.evaluate(Contrary(), folder, model="ridge")).startswith("**No**")


def test_a_log_without_propensities_ends_in_one_sentence(lived, tmp_path, capsys):
    from driftwise.cli import main

    (tmp_path / "bare.jsonl").write_text('{"arm": 0, "reward": 1.0, "n": 2, "x": [0.0, 1.0]}\n')
    with pytest.raises(SystemExit, match="2"):
        main(["evaluate", str(tmp_path / "bare.jsonl")])
    assert "epsilon=0.05" in capsys.readouterr().err


def test_the_documents_examples_run(capsys):
    import re
    from pathlib import Path

    text = (Path(__file__).parents[2] / "docs" / "evaluation.md").read_text(encoding="utf-8")
    space = {}
    for block in re.findall(r"```python\n(.*?)```", text, flags=re.S):
        exec(compile(block, "evaluation.md", "exec"), space)
    printed = capsys.readouterr().out
    assert "\nTrue\n" in printed
    assert "against static" in printed
    assert space["state"].observations == 2000
