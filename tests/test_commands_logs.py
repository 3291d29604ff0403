"""The commands on logs and agents: learn gives the state of live learning, explain prints the agent's explanation."""

import dataclasses
import json
import re
from contextlib import contextmanager

import numpy as np
import pytest

import driftwise as dw
from driftwise.cli import main
from driftwise.data.policy import named_policy

pytest.importorskip("pyarrow")

F = dw.Features
FEATURES = F(
    context={"device": F.levels(["phone", "desktop"])}, item={"genre": F.levels(["news", "sport"])},
    cross=[("device", "genre")],
)  # fmt: skip
ITEMS = {"final": {"genre": "sport"}, "budget": {"genre": "news"}, "derby": {"genre": "sport"}}
POLICY = dw.LinearUCB(dim=FEATURES.dim, memory=dw.Fade(0.01), lam=1.0, delta=0.01)
LIVED, OPEN, CANCELLED = 80, 3, 2


def live(agent, visits):
    """Readers on phones like sport, others news."""
    for visit in visits:
        device = ("phone", "desktop")[visit % 2]
        shown = agent.decide(context={"device": device}, items=ITEMS, id=f"visit {visit}")
        liked = {"phone": "sport", "desktop": "news"}[device]
        agent.reward(shown.id, float(ITEMS[shown.item]["genre"] == liked))


@pytest.fixture
def lived(tmp_path):
    """A log of 80 lessons and 2 decisions without one; and the agent that wrote it, saved half way and at the end, with
    3 open decisions."""
    agent = dw.Agent(POLICY, rewards=(0.0, 1.0), epsilon=0.2, features=FEATURES)
    with agent.log_to(tmp_path / "log", arms=True):
        live(agent, range(LIVED // 2))
        agent.save(tmp_path / "half.dw")
        for number in range(CANCELLED):
            agent.cancel(agent.decide(context={}, items=ITEMS, id=f"cancelled {number}").id)
        live(agent, range(LIVED // 2, LIVED))
        for number in range(OPEN):
            agent.decide(context={"device": "phone"}, items=ITEMS, id=f"open {number}")
        agent.save(tmp_path / "whole.dw")
    return agent, tmp_path


def run(capsys, *words, ok=0):
    capsys.readouterr()
    with pytest.raises(SystemExit) as ended:
        main([str(word) for word in words])
    said = capsys.readouterr()
    assert ended.value.code == ok, said.err
    return said


def value(printed, what):
    """The number beside these words in a printed table."""
    found = re.search(rf"│ {re.escape(what)}\s+│\s*(\S.*?)\s*│", printed)
    assert found, f"{what!r} is not in\n{printed}"
    return found[1]


def told(printed):
    """Lessons learned, rows without a reward, lessons it had already."""
    words = "rewards learned", "rows without a reward, skipped", "rewards it knew already, skipped"
    return tuple(int(value(printed, one)) for one in words)


def test_learn_goes_on_from_a_saved_agent_to_the_state_of_the_one_that_wrote_the_log(lived, capsys):
    agent, folder = lived
    said = run(capsys, "learn", folder / "log", "--from", folder / "half.dw", "--out", folder / "again.dw")
    assert told(said.out) == (LIVED // 2, CANCELLED, LIVED // 2)
    assert str(agent.drift()) in said.out and "wrote" in said.err
    again = dw.Agent.load(folder / "again.dw")
    assert again.state.to_bytes() == agent.state.to_bytes()
    assert again.counts["learned"] == LIVED
    once_more = run(capsys, "learn", folder / "log", "--from", folder / "again.dw", "--out", folder / "again.dw")
    assert told(once_more.out) == (0, CANCELLED, LIVED)
    assert dw.Agent.load(folder / "again.dw").state.to_bytes() == agent.state.to_bytes()


def test_learn_makes_the_default_agent_for_clicks_or_values(lived, capsys):
    _, folder = lived
    for words, twin in (
        (["--clicks"], dw.Agent.for_clicks(FEATURES.dim)),
        (["--rewards", 0, 1], dw.Agent.for_values(FEATURES.dim, 0.0, 1.0)),
        (["--clicks", "--half-life", 50], dw.Agent.for_clicks(FEATURES.dim, 50.0)),
    ):
        said = run(capsys, "learn", folder / "log", *words, "--replace", "--out", folder / "deep" / "new.dw")
        assert told(said.out) == (LIVED, CANCELLED, 0)
        twin.learn_log(folder / "log")
        made = dw.Agent.load(folder / "deep" / "new.dw")
        assert made.policy == twin.policy
        assert made.state.to_bytes() == twin.state.to_bytes()


def test_learn_makes_the_agent_its_options_describe(lived, capsys):
    _, folder = lived
    (folder / "features.json").write_text(json.dumps(FEATURES.to_dict()))
    run(capsys, "learn", folder / "log", "--policy", "OFUL", "--rewards", -1, 2, "--half-life", 50, "--L", 1,
        "--features", folder / "features.json", "--epsilon", 0.25, "--expire-after", 100, "--default-reward", 0.5,
        "--seed", 4, "--out", folder / "new.dw")  # fmt: skip
    made = dw.Agent.load(folder / "new.dw")
    policy = dw.make("OFUL", dim=FEATURES.dim, horizon=LIVED + CANCELLED, L=1.0)
    twin = dw.Agent(policy, rewards=(-1.0, 2.0), half_life=50.0, features=FEATURES, epsilon=0.25, expire_after=100,
                    default_reward=0.5, seed=4)  # fmt: skip
    twin.learn_log(folder / "log")
    twin.save(folder / "twin.dw")
    seen = [run(capsys, "explain", folder / name).out.partition("┏")[2] for name in ("new.dw", "twin.dw")]
    assert made.policy == twin.policy and made.state.to_bytes() == twin.state.to_bytes()
    assert seen[0] == seen[1] and value(seen[0], "epsilon") == "0.25"
    shown = [one.decide(context={"device": "phone"}, items=ITEMS, id="next", now=1.0) for one in (made, twin)]
    assert shown[0] == shown[1]


def test_explain_says_what_the_agent_knows(lived, capsys):
    agent, folder = lived
    said = run(capsys, "explain", folder / "whole.dw", "--top", 4).out
    assert value(said, "learned") == str(LIVED) and value(said, "open") == str(OPEN)
    assert value(said, "rewards") == "0 to 1" and value(said, "policy").startswith("LinearUCB, digest ")
    seen = agent.explain("open 0")
    assert value(said, "effective observations") == f"{seen.effective:.1f}"
    assert value(said, "memory played") == "100 ticks"
    assert str(agent.drift()) in said
    largest = np.argsort(-np.abs(seen.theta), kind="stable")
    shown = re.findall(r"│ (\S.*?)\s+│\s+([+-]\d\.\d{4}) │", said)
    assert shown == [(FEATURES.names[i], f"{seen.theta[i]:+.4f}") for i in largest[:4]]
    assert "device=phone × genre=sport" in dict(shown)


def test_explain_tells_the_level_from_preferences(lived, capsys):
    _, folder = lived
    run(capsys, "learn", folder / "log", "--clicks", "--out", folder / "auto.dw")
    said = run(capsys, "explain", folder / "auto.dw").out
    assert re.search(r"level .*log evidence [+-]\d+\.\d", said)


def test_explain_explains_a_choice_three_ways(lived, capsys):
    agent, folder = lived
    saved = dw.Agent.load(folder / "whole.dw")
    by_id = run(capsys, "explain", folder / "whole.dw", "--decision", "open 1").out
    assert str(agent.explain("open 1")) in by_id  # all arms, although the process that had them has ended
    assert all(item in by_id for item in ITEMS) and "decision open 1: estimate" in by_id

    asked = ["--context", '{"device": "desktop"}', "--items", "final,budget"]
    by_context = run(capsys, "explain", folder / "whole.dw", *asked)
    arms = dw.tables.Encoder(FEATURES).arms({"device": "desktop"}, {name: ITEMS[name] for name in ("final", "budget")})
    wanted = str(saved.explain(arms, items=["final", "budget"]))
    assert wanted in by_context.out and "> budget" in wanted and "known" not in by_context.err

    (folder / "arms.json").write_text(json.dumps(dict(zip(("final", "budget"), arms.tolist(), strict=True))))
    assert wanted in run(capsys, "explain", folder / "whole.dw", "--arms", folder / "arms.json").out
    (folder / "arms.json").write_text(json.dumps(arms.tolist()))
    assert str(saved.explain(arms)) in run(capsys, "explain", folder / "whole.dw", "--arms", folder / "arms.json").out


def test_items_may_bring_rows_and_those_without_are_refused_or_named(lived, capsys):
    _, folder = lived
    strict = run(capsys, "explain", folder / "whole.dw", "--context", '{"device": "phone"}', "--items", "finale", ok=2)
    assert "the nearest is 'final'" in strict.err
    lenient = dw.Agent(POLICY, rewards=(0.0, 1.0), features=dataclasses.replace(FEATURES, unknown="allow"))
    lenient.learn_log(folder / "log")
    lenient.decide(context={}, items=ITEMS)
    lenient.save(folder / "whole.dw")
    rows = json.dumps({"cup": {"genre": "sport"}, "budget": {"genre": "news"}})
    said = run(capsys, "explain", folder / "whole.dw", "--context", '{"device": "phone"}', "--items", rows)
    assert "> cup" in said.out and said.err == ""
    bare = run(capsys, "explain", folder / "whole.dw", "--context", '{"device": "phone"}', "--items", "cup, budget")
    assert "the agent knows no row of cup" in bare.err and "budget" not in bare.err
    rates = [float(re.search(r"cup +(\S+)", one.out)[1]) for one in (said, bare)]
    assert rates[0] > rates[1] + 0.2  # without its row the topic is unknown


def test_a_drawing_is_of_the_choice_or_else_of_the_drift_meter(lived, capsys):
    pytest.importorskip("matplotlib")
    _, folder = lived
    run(capsys, "explain", folder / "whole.dw", "--draw", folder / "drift.svg")
    assert "weight of a memory" in (folder / "drift.svg").read_text(encoding="utf-8")
    run(capsys, "explain", folder / "whole.dw", "--decision", "open 0", "--draw", folder / "choice.svg")
    assert "what moved the choice" in (folder / "choice.svg").read_text(encoding="utf-8")


def test_learn_writes_over_no_other_agent_and_says_what_a_log_does_not_know(lived, capsys):
    agent, folder = lived
    words = ("learn", folder / "log", "--clicks", "--out", folder / "new.dw")
    said = run(capsys, *words)
    assert "Auto from" in said.out and "TrendBank" not in said.out and "--features" in said.err
    assert "--epsilon" in said.err
    before = (folder / "new.dw").read_bytes()
    assert "--replace" in run(capsys, *words, ok=2).err and (folder / "new.dw").read_bytes() == before
    assert "--epsilon" not in run(capsys, *words, "--replace", "--epsilon", "0.1").err
    assert (folder / "new.dw").read_bytes() != before
    run(capsys, "learn", folder / "log", "--from", folder / "half.dw", "--out", folder / "half.dw")  # it goes on
    assert "Auto" in repr(dw.Agent.for_clicks(2)) and "LinearUCB" in repr(agent)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("learn", "nothing.parquet", "--clicks", "--out", "new.dw"), "log"),
        (("learn", "log", "--clicks"), "--out"),
        (("learn", "log", "--out", "new.dw"), "--rewards 0 10, say, or --clicks"),
        (("learn", "log", "--rewards", "0", "0.5", "--out", "new.dw"), "reward"),
        (("learn", "log", "--rewards", "1", "0", "--out", "new.dw"), "rewards"),
        (("learn", "log", "--clicks", "--policy", "Autoo", "--out", "new.dw"), "Autoo"),
        (("learn", "log", "--clicks", "--policy", "SW-UCB", "--out", "new.dw"), "path_length"),
        (("learn", "log", "--clicks", "--clock", "sun", "--out", "new.dw"), "clock"),
        (("learn", "log", "--clicks", "--half-life", "2 moons", "--out", "new.dw"), "half_life"),
        (("learn", "log", "--from", "half.dw", "--seed", "0", "--out", "new.dw"), "beside --from"),
        (("learn", "log", "--from", "nothing.dw", "--out", "new.dw"), "nothing.dw: No such file"),
        (("learn", "log", "--from", "junk.json", "--out", "new.dw"), "data"),
        (("learn", "log", "--clicks", "--features", "junk.json", "--out", "new.dw"), "not JSON"),
        (("learn", "log", "--clicks", "--out", "log"), "out"),
        (("learn", "log", "--clicks", "--out", "junk.json/new.dw"), "out"),
        (("explain", "nothing.dw"), "nothing.dw: No such file"),
        (("explain", "junk.json"), "data"),
        (("explain", "whole.dw", "--decision", "never"), "never"),
        (("explain", "whole.dw", "--decision", "visit 3"), "arms"),
        (("explain", "whole.dw", "--context", "{"), "context"),
        (("explain", "whole.dw", "--context", "3", "--items", "final"), "context"),
        (("explain", "whole.dw", "--context", "{}"), "items"),
        (("explain", "whole.dw", "--items", ","), "items"),
        (("explain", "whole.dw", "--items", "final", "--decision", "open 0"), "one of them"),
        (("explain", "whole.dw", "--arms", "junk.json"), "not JSON"),
        (("explain", "whole.dw", "--arms", "short.json"), "arms"),
        (("explain", "whole.dw", "--top", "-1"), "top"),
        (("explain", "whole.dw", "--draw", "picture.doc"), "path"),
    ],
)
def test_what_cannot_be_ends_in_one_sentence_and_leaves_no_agent(lived, monkeypatch, capsys, words, said):
    _, folder = lived
    monkeypatch.chdir(folder)
    (folder / "junk.json").write_text("{")
    (folder / "short.json").write_text("[[1.0, 2.0]]")
    printed = run(capsys, *words, ok=2)
    assert printed.err.startswith("driftwise: ") and printed.err.count("\n") == 1 and said in printed.err
    assert not (folder / "new.dw").exists()


def test_an_agent_without_features_takes_no_context(tmp_path, capsys):
    dw.Agent.for_values(2, 0.0, 1.0).save(tmp_path / "bare.dw")
    said = run(capsys, "explain", tmp_path / "bare.dw", "--context", "{}", "--items", "a", ok=2)
    assert "features=" in said.err
    assert "x0" in run(capsys, "explain", tmp_path / "bare.dw").out


def test_bars_come_to_their_end(lived, monkeypatch):
    """The advances of a bar add up to its total, and nothing is counted without a bar."""
    from driftwise.agent import folding
    from driftwise.data import evaluate

    _, folder = lived
    bars = []

    @contextmanager
    def bar(what, total, wanted, **_):
        one = {"what": what, "total": total, "wanted": wanted, "done": 0.0}
        bars.append(one)
        yield lambda many: one.update(done=one["done"] + many)

    monkeypatch.setattr(folding, "bar", bar)
    monkeypatch.setattr(evaluate, "bar", bar)
    dw.Agent(POLICY, rewards=(0.0, 1.0)).learn_log(folder / "log", progress=True)
    dw.evaluate(POLICY, folder / "log", progress=True)
    assert [one["what"] for one in bars] == ["rows", "rows"]
    assert [one["total"] for one in bars] == [one["done"] for one in bars] == [LIVED + CANCELLED, LIVED]
    dw.Agent(POLICY, rewards=(0.0, 1.0)).learn_log(folder / "log")
    assert (bars[-1]["total"], bars[-1]["wanted"]) == (0, False)


def test_the_page_of_an_evaluation_has_the_drift_meter_that_an_agent_would_show(lived, capsys):
    pytest.importorskip("matplotlib")
    _, folder = lived
    said = run(capsys, "evaluate", folder / "log", "--policy", "Auto", "--blocks", 3, "--out", folder / "out")
    found = dw.evaluate(dw.make("Auto", dim=FEATURES.dim), folder / "log", blocks=3)
    assert str(found.drift) in said.out
    page = (folder / "out" / "report.html").read_text(encoding="utf-8")
    assert "The drift meter" in page and page.count("data:image/svg+xml") == 4  # two charts, each wide and narrow
    text = (folder / "out" / "report.md").read_text(encoding="utf-8")
    assert "figures/blocks.png" in text and "figures/drift.png" in text and str(found.drift.level) in text


def test_evaluate_makes_arms_of_the_features_in_a_file(lived, tmp_path, capsys):
    _, folder = lived
    import pyarrow.parquet

    tables = [pyarrow.parquet.read_table(part) for part in sorted((folder / "log").glob("*.parquet"))]
    (tmp_path / "bare").mkdir()
    for number, table in enumerate(tables):
        bare = table.drop(["arms"]).replace_schema_metadata(None)
        pyarrow.parquet.write_table(bare, tmp_path / "bare" / f"{number}.parquet")
    (tmp_path / "features.json").write_text(json.dumps(FEATURES.to_dict()))
    (tmp_path / "items.json").write_text(json.dumps(ITEMS))
    words = ("--policy", "OFUL", "--blocks", 2, "--rewards", 0, 1)
    more = ("--features", tmp_path / "features.json", "--items", tmp_path / "items.json")
    whole = run(capsys, "evaluate", folder / "log", *words).out
    bare = run(capsys, "evaluate", tmp_path / "bare", *words, *more).out
    assert whole.splitlines()[1:] == bare.splitlines()[1:] and "DR" in whole
    assert "features=" in run(capsys, "evaluate", tmp_path / "bare", *words, ok=2).err


def test_auto_with_a_half_life_is_evaluated_as_the_agent_with_that_half_life_plays(lived, capsys):
    _, path = lived
    log = dw.read_log(path / "log")
    agents = {True: dw.Agent.for_clicks(FEATURES.dim, 50), False: dw.Agent.for_values(FEATURES.dim, 0.0, 1.0, 50)}
    for clicks, agent in agents.items():
        assert named_policy("Auto", log, 50, None, clicks=clicks).digest == agent.policy.digest
    run(capsys, "evaluate", path / "log", "--clicks", "--half-life", 50, "--blocks", 1)
    said = run(capsys, "sums", path / "log", "--policy", "Auto", ok=2).err
    assert said.count("\n") == 1


def test_an_evaluation_of_auto_hints_at_clicks(lived, capsys):
    _, path = lived
    assert "pass --clicks" in run(capsys, "evaluate", path / "log", "--blocks", 1).err
    assert "pass --clicks" not in run(capsys, "evaluate", path / "log", "--clicks", "--blocks", 1).err


def test_evaluate_tells_Auto_of_clicks(lived, capsys):
    _, folder = lived
    printed = [run(capsys, "evaluate", folder / "log", "--blocks", 2, *more).out for more in ([], ["--clicks"])]
    found = dw.evaluate(dw.make("Auto", dim=FEATURES.dim, link="logistic"), folder / "log", blocks=2)
    assert str(found.gains["DR"]) in printed[1] and str(found.drift) in printed[1]
    assert printed[0] != printed[1]


@pytest.mark.parametrize("policy", [POLICY, dw.make("Auto", dim=FEATURES.dim)], ids=["one memory", "a bank"])
def test_the_meter_of_an_evaluation_reads_what_a_fold_of_the_same_lessons_reads(lived, policy):
    """At the end of the log all lessons are learned, so an agent that folded them has the same meter."""
    _, folder = lived
    found = dw.evaluate(policy, folder / "log")
    names = ("x", "reward", "reward_seq", "reward_tick", "born")
    batches = list(dw.read_log(folder / "log").batches(names))
    columns = {name: np.concatenate([getattr(batch, name) for batch in batches]) for name in names}
    lessons = np.flatnonzero(~np.isnan(columns["reward"]))
    agent = dw.Agent(policy, rewards=(0.0, 1.0))
    agent.learn_log({name: values[lessons] for name, values in columns.items()})
    twin = agent.drift()
    assert found.drift.memories == twin.memories and found.drift.remembers == twin.remembers
    np.testing.assert_array_equal(found.drift.at, twin.at)
    np.testing.assert_allclose(found.drift.weights, twin.weights, rtol=0, atol=1e-12)
