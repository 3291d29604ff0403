"""The site: every block runs, every command exists, every link has a target."""

import contextlib
import importlib.util
import inspect
import io
import re
import shlex
import tomllib
from pathlib import Path

import pytest

import driftwise as dw
from test_citations import slug

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted([*DOCS.rglob("*.md"), *ROOT.glob("*.md")])
NAMES = {str(page.relative_to(ROOT)): page.read_text(encoding="utf-8") for page in PAGES}
# Pages whose blocks have a test of their own: it names the page and runs it.
TESTED = {
    "README.md": "test_documents.py", "docs/theory.md": "test_documents.py", "docs/experiments.md": "test_documents.py",
    "docs/tutorial.md": "test_tutorial.py", "docs/agent.md": "agent/test_programs.py", "docs/logs.md": "test_logs.py",
    "docs/evaluation.md": "data/test_whole_way.py", "docs/extending.md": "test_extending.py",
    "docs/service.md": "service/test_documents.py", "docs/curl.md": "service/test_deployed.py",
    "docs/personalizer.md": "service/test_deployed.py",
}  # fmt: skip
FENCE = re.compile(r"^```([^\n]*)\n(.*?)^```$", flags=re.M | re.S)


def module(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


@pytest.fixture(scope="module")
def build():
    return module(DOCS / "site" / "build.py")


@pytest.mark.parametrize("name", [name for name, text in NAMES.items() if "```python" in text and name not in TESTED])
def test_python_runs_and_prints_what_stands_below_it(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    space, wanted = {}, []  # a page imports and defines what it uses, as its reader must
    for code, text in re.findall(r"```python\n(.*?)```\n(?:```text\n(.*?)```\n)?", NAMES[name], flags=re.S):
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(code, name, "exec"), space)
        wanted += [(text, printed.getvalue())] if text else []
    for text, printed in wanted:
        assert printed == text


def test_every_page_with_code_is_run_by_a_test():
    for name, by in TESTED.items():
        text = (ROOT / "tests" / by).read_text(encoding="utf-8")
        assert Path(name).name in text, f"{by} does not name {name}"
    for name, text in NAMES.items():
        languages = {head.strip() for head, _ in FENCE.findall(text) if not head.startswith("{")}
        assert languages <= {"python", "text", "sh", "toml", "json", "diff"}, name
        alone = languages & {"toml", "json", "diff"}
        assert not alone or name in TESTED, f"{name}: no test reads its {alone}"


def commands(text):
    """Every `driftwise …`, `make …` and `python …` of a page's shell blocks, indented lines and inline code."""
    blocks = [line for head, body in FENCE.findall(text) if head.strip() == "sh" for line in body.splitlines()]
    blocks += re.findall(r"^    ((?:driftwise|make|python) .*)$", FENCE.sub("", text), flags=re.M)
    inline = re.findall(r"`((?:driftwise|make|python) [^`]*)`", FENCE.sub("", text).replace("\n", " "))
    for line in [*blocks, *inline]:
        line = line.removeprefix("$ ").removeprefix(".venv/bin/")
        if line.startswith(("driftwise ", "make ", "python ")) and "…" not in line and "{" not in line:
            yield [word for word in shlex.split(line, comments=True) if word not in ("&", "\\")]


@pytest.mark.parametrize("name", [name for name in NAMES if name != "CHANGELOG.md"])
def test_commands_exist_with_all_their_options(name):
    import typer

    from driftwise.cli import app

    made = typer.main.get_command(app)
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.M))
    for program, first, *rest in filter(lambda words: len(words) > 1, commands(NAMES[name])):
        if program == "make":
            assert first in targets, first
        elif program == "python":
            assert first.startswith("-") or (ROOT / first).is_file(), first
        elif first != "--version":
            assert first in made.commands, f"driftwise {first}"
            options = {option for one in made.commands[first].params for option in one.opts} | {"--help"}
            subs = getattr(made.commands[first], "commands", {})
            for sub in subs.values():
                options |= {option for one in sub.params for option in one.opts}
            asked = {word.split("=")[0] for word in rest if word.startswith("--")}
            assert asked <= options, f"driftwise {first} {asked - options}"


def test_every_extra_that_a_page_installs_is_there():
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    installed = re.findall(r"(?:driftwise|install \"\.)\[([\w,]+)\]", "".join(NAMES.values()))
    named = {one for some in installed for one in some.split(",")}
    assert named <= set(extras) and len(named) >= 6


def test_the_page_on_clusters_passes_an_argument_that_is_there():
    """It needs a cluster, so it is not run here."""
    from driftwise.lab.run import trials

    (named,) = re.findall(r"`play\(…,\s+(\w+)=client\.get_executor", NAMES["docs/cluster.md"])
    assert named in inspect.signature(trials.play).parameters


def test_an_underscore_is_never_emphasis():
    """Pages use stars for emphasis. An underscore that is read as emphasis is a formula that lost its indices."""
    from markdown_it import MarkdownIt

    reader = MarkdownIt("commonmark")
    assert [one.markup for one in reader.parse("‖W‖_F ≤ γ_{d}")[1].children if one.type == "em_open"] == ["_"]
    for name, text in NAMES.items():
        inline = (one for block in reader.parse(text) for one in block.children or () if one.type == "em_open")
        assert all(one.markup == "*" for one in inline), name


def test_links_lead_to_what_is_there():
    anchors = {
        name: {slug(heading) for heading in re.findall(r"^#+ (.*)$", FENCE.sub("", text), flags=re.M)}
        for name, text in NAMES.items()
    }
    seen = 0
    for name, text in NAMES.items():
        for target in re.findall(r"\]\(([^)\s]+)\)", FENCE.sub("", text)):
            if re.match(r"https?://", target):
                assert re.match(r"https://[\w.-]+\.\w+(/\S*)?$", target), f"{name}: {target}"
                continue
            path, _, anchor = target.partition("#")
            found = ((ROOT / name).parent / path).resolve() if path else ROOT / name
            assert found.exists(), f"{name}: {target}"
            seen += 1
            if anchor:
                assert anchor in anchors[str(found.relative_to(ROOT))], f"{name}: {target}"
    assert seen > 40


def test_every_call_of_the_decision_page_makes_a_policy():
    calls = re.findall(r"`(dw\.make\([^`]*\))`", NAMES["docs/which.md"])
    made = [eval(call, {"dw": dw}) for call in calls]
    assert len(made) == 14 and all(hasattr(policy, "choose") for policy in made)


def test_a_page_that_no_table_of_contents_names_is_put_into_one(build, tmp_path):
    start = NAMES["docs/index.md"]
    for page in DOCS.glob("*.md"):
        (tmp_path / page.name).write_text("# A page\n")
    (tmp_path / "brand-new.md").write_text("# New\n")
    text = build.with_rest(start, tmp_path)
    trees = " ".join(re.findall(r"```\{toctree\}\n(.*?)```", text, flags=re.S)).split()
    assert "brand-new" in trees and "brand-new" not in start
    for page in tmp_path.glob("*.md"):
        assert page.stem == "index" or trees.count(page.stem) == 1, page.stem


def test_every_public_name_has_a_page_and_a_sentence():
    pytest.importorskip("sphinx", reason='pip install "driftwise[docs]"')
    pytest.importorskip("latex2mathml", reason='pip install "driftwise[docs]"')
    parts = module(DOCS / "site" / "parts.py")
    pages = {page.stem for page in (DOCS / "api").glob("*.md")}
    for name in dw.__all__:
        page = parts.room(name)
        assert page in pages | {"rest"}, name
        assert name in parts.MODULES or f"driftwise.{name}" in parts.names(page), name
        assert name in parts.MODULES or (getattr(dw, name).__doc__ or "").strip(), name
    assert len(parts.names("theory")) == len(dw.theory.__all__)
