"""The recipes of docs/extending.md, carried out on a copy of the sources: they fit, they are small, and what they make
keeps the laws.

A test here starts a process that imports the copy instead of the package and calls a function below whose name begins
with `try_`. Nothing is compiled there: that compiled is interpreted is tested elsewhere.
"""

import json
import math
import os
import re
import shutil
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")


def sections(text):
    """The recipes of a page by their titles."""
    return dict(re.findall(r"^## (.*?)\n(.*?)(?=^## |\Z)", text, flags=re.M | re.S))


SECTIONS = sections(TEXT)
# Tests of the design, which are not recipes for users.
TRIALS = sections((ROOT / "tests" / "extending_power.md").read_text(encoding="utf-8"))
# The most files of src that a recipe may touch (CONTRIBUTING.md#design).
MOST = {"A rule": 3, "A memory": 4, "A link": 1, "A world": 2, "A panel": 2}
recipes = pytest.mark.parametrize("name", SECTIONS)


class Place(NamedTuple):
    """Lines before and after a change, unchanged ones in both, in the part of the file that begins with `part`."""

    part: str
    old: list[str]
    new: list[str]


def changes(name):
    """The changes of a recipe, on its page or in the file that the page shows: a path, and the lines below it."""
    text = (SECTIONS | TRIALS)[name]
    blocks = re.findall(r"```diff\n(.*?)```", text, flags=re.S)
    for shown in re.findall(r"\{literalinclude\} (\S+)", text):
        blocks.append((ROOT / "docs" / shown).read_text(encoding="utf-8"))
    for block in re.split(r"^(?=[a-z])", "".join(blocks), flags=re.M)[1:]:
        path, *lines = block.splitlines()
        yield path, lines


def places(lines):
    """Where the lines of a block go."""
    found = [Place("", [], [])]
    for line in lines:
        if line.startswith("@@"):
            found.append(Place(line[2:].strip(), [], []))
            continue
        assert line[:1] in ("", " ", "+", "-"), f"neither here nor there: {line!r}"
        if line[:1] != "+":
            found[-1].old.append(line[1:])
        if line[:1] != "-":
            found[-1].new.append(line[1:])
    return found


def changed(text, place):
    """The lines of a text after the change; its place must occur exactly once."""
    found = [at for at in range(len(text) + 1) if place.old and text[at : at + len(place.old)] == place.old]
    if place.part:
        heads = [at for at, line in enumerate(text) if re.match(rf"\s*{re.escape(place.part)}\b", line)]
        assert len(heads) == 1, f"{place.part!r} begins {len(heads)} parts"
        found = [at for at in found if at > heads[0]][:1]
    assert len(found) == 1, f"{len(found)} places for\n" + "\n".join(place.old)
    return text[: found[0]] + place.new + text[found[0] + len(place.old) :]


def carry_out(folder, *names):
    """A copy of the sources and of the slow twins, with these recipes applied."""
    # With bytecode, which is of unchanged files, and without compiled code.
    shutil.copytree(ROOT / "src", folder / "src", ignore=shutil.ignore_patterns("driftwise-*"))
    (folder / "tests").mkdir()
    shutil.copy(ROOT / "tests" / "naive.py", folder / "tests")
    for path, lines in (change for name in names for change in changes(name)):
        file = folder / path
        if all(line.startswith("+") for line in lines):
            assert not file.exists(), f"{path} is there already"
            text = [line[1:] for line in lines]
        else:
            text = file.read_text(encoding="utf-8").splitlines()
            for place in places(lines):
                text = changed(text, place)
        file.write_text("\n".join(text) + "\n", encoding="utf-8")
    return folder


def run(copy, *words):
    """Run Python with the copy in place of the package."""
    paths = [copy / "src", copy / "tests", ROOT / "tests"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(map(str, paths)), "NUMBA_DISABLE_JIT": "1"}
    command = [sys.executable, *words]
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=copy, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    return done.stdout


def tried(copy, name, function):
    """Run the Python of a recipe and the checks here; both import the copy."""
    at = f"import driftwise; assert driftwise.__file__.startswith({str(copy)!r})\n"
    blocks = re.findall(r"```python\n(.*?)```", (SECTIONS | TRIALS)[name], flags=re.S)
    run(copy, "-c", at + "\n".join(blocks) + f"\nimport test_extending\ntest_extending.{function.__name__}()\n")


# ---------------------------------------------------------------------------------------------- the page itself


def count(name):
    """Files of src, lines added, lines removed."""
    inside = [(path, lines) for path, lines in changes(name) if path.startswith("src/")]
    signs = [line[:1] for _, lines in inside for line in lines]
    return len({path for path, _ in inside}), signs.count("+"), signs.count("-")


@recipes
def test_a_recipe_is_as_small_as_the_page_says(name):
    files, come, go = count(name)
    assert files <= MOST[name]
    assert f"| {name.lower()} | {files} | {come} | {go} |" in TEXT


def test_there_are_five_recipes_and_each_has_its_place():
    assert list(SECTIONS) == list(MOST)


def test_a_recipe_that_no_longer_fits_is_found_out():
    text = ["def one():", "    return 1", "", "def two():", "    return 1"]
    place = Place("def two", ["    return 1"], ["    return 2"])
    assert changed(text, place) == [*text[:4], "    return 2"]
    for part, old in (("", ["    return 1"]), ("", ["    return 3"]), ("def three", ["    return 1"]), ("", [])):
        with pytest.raises(AssertionError):
            changed(text, Place(part, old, []))


def test_files_that_the_page_names_are_there():
    named = set(re.findall(r"`((?:tests|src|docs)/[\w/.]+\.\w+)`", TEXT)) | {
        f"docs/{link}" for link in re.findall(r"\]\(((?!http)[^)#]+)", TEXT)
    }
    assert len(named) > 5
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_all_recipes_together_are_in_our_style(tmp_path):
    pytest.importorskip("ruff")
    copy = carry_out(tmp_path, *SECTIONS)
    run(copy, "-m", "ruff", "check", "--no-cache", "--config", str(ROOT / "pyproject.toml"), "src", "tests")


@pytest.mark.slow
def test_all_recipes_together_are_typed(tmp_path):
    pytest.importorskip("mypy")
    copy = carry_out(tmp_path, *SECTIONS)
    run(copy, "-m", "mypy", "--config-file", str(ROOT / "pyproject.toml"), "--cache-dir", str(tmp_path / "mypy"), "src")


# ---------------------------------------------------------------------------------------------- the recipes


def in_the_ball(rng, n, dim, L=1.0):
    """Arms of norms up to L, of all lengths."""
    arms = rng.standard_normal((n, dim))
    return arms * (L * rng.uniform(0.05, 1.0, n) / np.linalg.norm(arms, axis=1))[:, None]


def replay(fast, slow, reward, tolerance, rounds=40, dim=2, L=1.0):
    """The slow twin replays the fast policy's arms: scores of all arms agree, with late rewards and gaps in time."""
    rng = np.random.default_rng(1)
    state, late = fast.start(), []
    for t in range(rounds):
        arms = in_the_ball(rng, 5, dim, L)
        seen, (mean, bonus) = fast.scores(state, arms), slow.scores(arms)
        close = tolerance * np.maximum(1.0, np.abs(mean + bonus))
        assert (np.abs(seen.mean - mean) <= close).all() and (np.abs(seen.bonus - bonus) <= close).all(), t
        arm, ticks = int(seen.score.argmax()), float(rng.choice([1.0, 1.0, 0.5, 2.25]))
        value = reward(rng, arms[arm])
        if rng.random() < 0.3:
            late.append((arms, arm, value, slow.clock + ticks))
            fast.advance(state, ticks)
            slow.advance(ticks)
        else:
            fast.learn(state, arms, arm, value, ticks=ticks)
            slow.learn(arms, arm, value, ticks=ticks)
        if len(late) == 3:
            for old, which, worth, born in late:
                fast.learn(state, old, which, worth, ticks=0.0, age=slow.clock - born)
                slow.learn(old, which, worth, ticks=0.0, age=slow.clock - born)
            late = []
    return state


def gaussian(rng, x):
    return float(0.7 * x[0] + 0.3 * rng.standard_normal())


def click(rng, x):
    return float(rng.random() < 0.5 + 0.4 * x[0])


def try_rule():
    import driftwise as dw
    from naive import NaiveLinear

    known = {"lam": 0.7, "delta": 0.01, "S": 0.8, "L": 1.5, "R": 0.3, "exploration": 0.9}
    pairs = [
        (dw.Keep(), ("keep",)), (dw.Fade(0.1), ("fade", 0.1)), (dw.Window(9, capacity=99), ("window", 9)),
        (dw.Restart(11), ("restart", 11)),
    ]  # fmt: skip
    for dim in (1, 3):
        for ours, theirs in pairs:
            fast = dw.LinearUCB(dim=dim, memory=ours, radius="determinant", **known)
            slow = NaiveLinear(dim=dim, memory=theirs, radius="determinant", **known)
            state = replay(fast, slow, gaussian, 1e-9, dim=dim, L=1.5)
            arms = in_the_ball(np.random.default_rng(2), 5, dim, 1.5)
            plain = dw.LinearUCB(dim=dim, memory=ours, **known)
            less = fast.scores(state, arms).bonus / plain.scores(state, arms).bonus
            # Without this a recipe without effect would pass. Where weights fade, Lemma 1's radius may be smaller.
            assert (less <= (1.0 if ours.forget else 0.999) + 1e-12).all(), (ours, less)
    assert "OFUL-det" in [row["name"] for row in dw.catalogue()]


def test_a_rule(tmp_path):
    tried(carry_out(tmp_path, "A rule"), "A rule", try_rule)


def try_rule_of_lists():
    import driftwise as dw

    policy = dw.make("OFUL-det", dim=3, horizon=300)
    with pytest.raises(AssertionError):
        dw.checks.check_policy(policy)
    with pytest.raises(AssertionError, match=r"in a list|a list for"):
        dw.checks.a_point_found_has_the_score_of_a_list_that_holds_it(policy, dw.checks._Stream(3, 60, 0, policy.L))


def test_a_rule_that_only_lists_know_breaks_a_law(tmp_path):
    """The same rule, added where lists are scored and omitted in searches over sets."""
    copy = carry_out(tmp_path, "A rule")
    file = copy / "src" / "driftwise" / "kernels" / "linear.py"
    text = file.read_text(encoding="utf-8")
    start, end = text.index("    squares, d = count[lane, SQUARES]"), text.index("@piece\ndef two_matrices")
    there = text[start:end]
    forgetful = "    return linear_radius(point, row, count[lane, SQUARES], count[lane, CLOCK], sums.b.shape[1])\n\n\n"
    own = "    count, pivot = sums.counters, scores.pivot\n" + there.replace("return", "scale =").rstrip() + "\n"
    asked = "linear_scale(point, row, lane, sums, scores.pivot), X"
    assert text.count(asked) == 1
    line = next(line for line in text.splitlines() if asked in line)
    text = text.replace(line, own + line.replace(asked, "scale, X")).replace(there, forgetful, 1)
    file.write_text(text, encoding="utf-8")
    run(copy, "-c", "import test_extending\ntest_extending.try_rule_of_lists()\n")


def try_memory():
    import driftwise as dw
    from naive import NaiveGLM, NaiveLinear
    from test_definitions import check_stream, total

    for memory in (dw.FadeRestart(0.1, 3), dw.FadeRestart(0.0, 0.75), dw.FadeRestart(0.5, 16)):
        rng = np.random.default_rng(3)
        check_stream(memory, [
            (float(rng.choice([0.0, 0.25, 1.0, 1.0, 2.75])), float(rng.choice([0.0, 0.0, 1.0, 2.75])),
             int(rng.integers(5)) if rng.random() < 0.8 else None, float(rng.normal())) for _ in range(150)
        ])  # fmt: skip
    for forget in (0.0, 0.05):
        assert math.isclose(total(dw.FadeRestart(forget, 40)), dw.FadeRestart(forget, 40).rounds, rel_tol=1e-12)
    ours, theirs = dw.FadeRestart(0.1, 8), ("fade-restart", 0.1, 8)
    known = {"dim": 2, "lam": 0.7, "delta": 0.01}
    for fast, slow in (({}, {}), ({"two_matrix": "correct"}, {"bonus": "two"})):
        replay(dw.LinearUCB(memory=ours, **known, **fast), NaiveLinear(memory=theirs, **known, **slow), gaussian, 1e-9)
    for policy, rule in ((dw.research.GLMUCB, "glb"), (dw.research.SelfConcordantUCB, "scb")):
        for estimate in ("exact", "one-pass"):
            both = {**known, "lam": 20.0, "estimate": estimate, "horizon": 300, "link": "logistic", "R": 0.5}
            replay(policy(memory=ours, **both), NaiveGLM(memory=theirs, rule=rule, **both), click, 1e-6, rounds=30)
    # A link of the user's own fades in Python what compiled code fades for ours.
    from scipy.special import expit

    own = dw.research.Link(mean=expit, slope=lambda z: expit(z) * expit(-z), k=0.25, c=float(expit(1.0) * expit(-1.0)))
    known |= {"R": 0.5, "estimate": "one-pass"}
    pair = [dw.research.GLMUCB(memory=ours, **known, link=link) for link in (own, "logistic")]
    states = [policy.start() for policy in pair]
    for t in range(30):
        arms = in_the_ball(np.random.default_rng(t), 4, 2)
        for policy, state in zip(pair, states, strict=True):
            policy.learn(state, arms, t % 4, float(t % 3 == 0), ticks=0.5 + t % 2, age=float(t % 4 == 1))
        np.testing.assert_allclose(states[0].theta, states[1].theta, rtol=1e-7, atol=1e-9)
    for refused in (lambda: dw.FadeRestart(1.0, 5), lambda: dw.FadeRestart(0.1, 0.0)):
        with pytest.raises(dw.BadInput):
            refused()
    with pytest.raises(dw.BadInput, match=r"Restart\(period\) or FadeRestart\(forget, period\)"):
        dw.LinearUCB(dim=2, memory=None, lam=1.0, delta=0.1)


def test_a_memory(tmp_path):
    tried(carry_out(tmp_path, "A memory"), "A memory", try_memory)


def try_power():
    """A memory whose weights do not change by one factor: correct in linear and generalized linear policies, refused
    elsewhere."""
    import driftwise as dw
    from driftwise.kernels.memories import power
    from naive import NaiveGLM, NaiveLinear
    from test_definitions import check_stream
    from test_memories import by_phases

    for memory in (dw.Power(1.5, 200), dw.Power(0.0, 200)):
        rng = np.random.default_rng(3)
        check_stream(memory, [
            (float(rng.choice([0.0, 0.25, 1.0, 2.75])), float(rng.choice([0.0, 0.0, 1.0, 2.75])),
             int(rng.integers(5)) if rng.random() < 0.8 else None, float(rng.normal())) for _ in range(60)
        ])  # fmt: skip
        by_phases(memory, power.KIND.sums)
        by_phases(memory, power.KIND.atoms, atoms=True)
    ours, theirs = dw.Power(1.5, 200), ("power", 1.5)
    known = {"dim": 2, "lam": 0.7, "delta": 0.01}
    for fast, slow in (({}, {}), ({"two_matrix": "correct"}, {"bonus": "two"})):
        replay(dw.LinearUCB(memory=ours, **known, **fast), NaiveLinear(memory=theirs, **known, **slow), gaussian, 1e-9)
    both = {**known, "lam": 20.0, "horizon": 300, "link": "logistic", "R": 0.5}
    for policy, rule in ((dw.research.GLMUCB, "glb"), (dw.research.SelfConcordantUCB, "scb")):
        replay(policy(memory=ours, **both), NaiveGLM(memory=theirs, rule=rule, **both), click, 1e-6, rounds=20)
    full = dw.research.GLMUCB(memory=dw.Power(1.0, 3), **both)
    state, few = full.start(), dw.research.GLMUCB(memory=dw.Power(1.0, 200), **both)
    with pytest.warns(RuntimeWarning, match=r"^Power with room for 3 observations is full .* capacity= to Power"):
        for t in range(9):
            full.learn(state, in_the_ball(np.random.default_rng(t % 5), 1, 2), 0, 1.0)
    other = few.start()
    for t in range(6, 9):
        few.learn(other, in_the_ball(np.random.default_rng(t % 5), 1, 2), 0, 1.0)
    np.testing.assert_allclose(state.theta, other.theta, rtol=1e-9)
    refused = {
        "a Window and a delta": lambda: dw.LinearUCB(memory=ours, **known, radius="cheung"),
        "Fade or Keep": lambda: dw.LinearUCB(memory=ours, **known, two_matrix="as-published"),
        "cannot take a reward out again": lambda: dw.research.GLMUCB(memory=ours, **known, estimate="one-pass"),
        "a static base": lambda: dw.research.Master(base=dw.LinearUCB(memory=ours, **known), horizon=100),
        "a base that keeps or fades": lambda: dw.research.FadeBank(base=dw.LinearUCB(memory=ours, **known)),
    }
    for sentence, make in refused.items():
        with pytest.raises(dw.BadInput, match=sentence):
            make()


@pytest.mark.slow
def test_a_memory_that_is_no_fade_takes_four_files(tmp_path):
    assert count("A power")[0] == 4
    tried(carry_out(tmp_path, "A power"), "A power", try_power)


def try_link():
    import driftwise as dw
    from driftwise.kernels import links
    from naive import NaiveGLM

    code, row = links.CLOGLOG, links.LINKS["cloglog"]
    orders = [links.area, links.mean, links.slope, links.curve, links.third]
    for z in np.linspace(-12.0, 6.0, 361).tolist():
        h = 1e-5
        for lower, upper in pairwise(orders):
            ends = lower(code, z + h), lower(code, z - h)
            gap = abs((ends[0] - ends[1]) / (2.0 * h) - upper(code, z))
            assert gap <= 1e-8 * (max(map(abs, ends)) + abs(upper(code, z))) + 1e-10, (upper.__name__, z)
    assert all(math.isfinite(order(code, z)) for order in orders for z in (-1e150, -800.0, 8.0, 800.0, 1e150))
    for radius in (0.1, 0.6, 1.0, 2.5):
        z = np.linspace(-radius, radius, 2001)
        slopes = np.array([links.slope(code, one) for one in z])
        bends = np.array([abs(links.curve(code, one)) for one in z]) / slopes
        assert np.allclose(row.slopes(radius), (slopes.max(), slopes.min()), rtol=1e-12)
        assert math.isclose(row.concordance(radius), bends.max(), rel_tol=1e-12)
        assert links.bend(code, radius) >= bends.max() * (1.0 - 1e-12) and not links.tame(code, radius)
    known = {"dim": 2, "link": "cloglog", "delta": 0.01, "S": 0.6, "R": 0.5, "horizon": 300, "exploration": 0.3}
    for policy, rule in ((dw.research.GLMUCB, "glb"), (dw.research.SelfConcordantUCB, "scb")):
        for lam, estimate in ((30.0, "exact"), (0.1, "exact"), (0.1, "one-pass")):  # in the ball, and out of it
            both = {**known, "lam": lam, "estimate": estimate}
            fast, slow = policy(memory=dw.Fade(0.1), **both), NaiveGLM(memory=("fade", 0.1), rule=rule, **both)
            state = replay(fast, slow, click, 1e-6, rounds=20)
            assert lam > 1.0 or np.linalg.norm(state.theta[0]) > 0.6
    with pytest.raises(dw.BadInput, match=r"reaches 1\.72 μ'"):
        dw.research.SelfConcordantUCB(dim=2, memory=dw.Fade(0.1), lam=1.0, delta=0.1, link="cloglog")
    base = dw.research.GLMUCB(dim=2, memory=dw.Keep(), lam=1.0, delta=0.1, link="cloglog", horizon=9)
    with pytest.raises(dw.BadInput, match="linear, logistic or probit base"):
        dw.research.FadeBank(base=base)


def test_a_link(tmp_path):
    tried(carry_out(tmp_path, "A link"), "A link", try_link)


def try_world():
    import driftwise as dw

    world = dw.worlds.Season(dim=3, horizon=800, radius=2.0, turns=0.25, seasons=2.0)
    theta = world.theta()
    for t, angle in ((0, 0.0), (100, math.pi / 2), (200, 0.0), (300, -math.pi / 2), (400, 0.0), (500, math.pi / 2)):
        assert np.allclose(theta[t], [2.0 * math.cos(angle), 2.0 * math.sin(angle), 0.0], atol=1e-12)
    dw.checks.check_world(dw.worlds.Season(horizon=9000, arms=3, fresh=True, reward="bernoulli"))  # two stretches
    for bad in ({"seasons": -1.0}, {"seasons": math.inf}, {"turns": math.nan}, {"dim": 1}):
        with pytest.raises(dw.BadInput, match=f"^{next(iter(bad))}: "):
            dw.worlds.Season(**bad)


def test_a_world(tmp_path):
    tried(carry_out(tmp_path, "A world"), "A world", try_world)


def try_panel():
    """The spec as it is, and its section of the report from a short run of it."""
    from driftwise.lab.paper import claims, panels, report
    from driftwise.lab.run import results

    (spec,) = panels.experiment("seasons")
    assert [type(policy.memory).__name__ for policy in spec.contests[0][0].policies.values()] == [
        "Fade", "Fade", "Restart", "FadeRestart"
    ]  # fmt: skip
    assert "seasons" in panels.PANELS and panels.find("seasons").key == "seasons"
    outcomes, _ = results.read_results(Path("out"))
    assert "seasons" in claims.ALL
    with pytest.MonkeyPatch.context() as patched:  # to measure the paths of all specs takes 90 s without a compiler
        patched.setattr(claims, "ALL", ("seasons",))
        heading, picture, folded, *notes = report._panel(claims.Measured(outcomes), "seasons")
    assert heading.text == "Seasons" and picture.caption.startswith("Season: d = 2, T = 60, 50 arms")
    assert [row[0] for row in folded.table.rows] == ["LB-WeightUCB", "fades", "restarts", "fades and restarts"]
    assert len(notes) == 1


def test_a_panel(tmp_path):
    pytest.importorskip("matplotlib")
    copy = carry_out(tmp_path, "A memory", "A world", "A panel")
    spec = (copy / "src/driftwise/lab/specs/seasons.toml").read_text(encoding="utf-8")
    short = spec.replace("horizon = 6000", "horizon = 60").replace("period = 750", "period = 7")
    assert short.count("horizon = 60\n") == 1 and short.count("period = 7\n") + short.count("period = 7 }") == 2
    (copy / "seasons.toml").write_text(short, encoding="utf-8")
    shown = run(copy, "-m", "driftwise.cli", "run", "seasons.toml", "--trials", "2", "--out", "out", "--jobs", "1")
    assert "fades and restarts" in shown
    summary = json.loads((copy / "out" / "summary.json").read_text(encoding="utf-8"))
    assert [row["trials"] for row in summary["panels"][0]["policies"]] == [2, 2, 2, 2]
    assert (copy / "out" / "figure.png").stat().st_size > 1000
    tried(copy, "A panel", try_panel)
