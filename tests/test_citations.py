"""Citations: every page and section that sources, tests, programs and pages name exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
FENCE = re.compile(r"^```.*?^```$", flags=re.M | re.S)
# The files that are checked: sources, specs and pages. The changelog describes the past.
CITING = sorted(
    path
    for pattern in ("src/**/*.py", "src/**/*.toml", "tests/**/*.py", "bench/*.py", "docs/**/*.py", "docs/**/*.toml",
                    "docs/**/*.md", "release/*.py", "deploy/*", "*.md", "*.toml", "Makefile")
    for path in ROOT.glob(pattern)
    if path.is_file() and path.name not in ("CHANGELOG.md", "test_citations.py")
)  # fmt: skip
CITATION = re.compile(r"(?<![\w/.-])((?:docs/[\w./-]+|CONTRIBUTING|SECURITY|README|CHANGELOG)\.md)(?:#([\w-]+))?")
# Documents that were never in the repository.
ELSEWHERE = re.compile(r"\b(?:MATH|PRODUCT|DESIGN|STYLE)\.md\b")


def slug(heading):
    """The address of a heading, as GitHub and MyST make it."""
    words = re.sub(r"[`*]|\[([^\]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", words).replace(" ", "-")


def sections(page):
    text = FENCE.sub("", page.read_text(encoding="utf-8"))
    return {slug(heading) for heading in re.findall(r"^#+ (.*)$", text, flags=re.M)}


def broken(text, root):
    """The citations of a text whose target does not exist."""
    for page, section in CITATION.findall(text):
        if not (root / page).is_file():
            yield f"{page} does not exist"
        elif section and section not in sections(root / page):
            yield f"{page} has no section #{section}"
    for name in ELSEWHERE.findall(text):
        yield f"{name} is not in the repository"


FOLDERS = sorted({str(path.relative_to(ROOT).parent) for path in CITING})


@pytest.mark.parametrize("folder", FOLDERS)
def test_every_citation_leads_to_a_section_that_exists(folder):
    for path in (path for path in CITING if str(path.relative_to(ROOT).parent) == folder):
        found = list(broken(path.read_text(encoding="utf-8"), ROOT))
        assert not found, f"{path.relative_to(ROOT)}: {found}"


def test_a_citation_of_what_does_not_exist_is_found(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "math.md").write_text("# Math\n\n## Linear\n\n```sh\n## Not a heading\n```\n")
    assert not list(broken("see docs/math.md and docs/math.md#linear, which is fine.", tmp_path))
    assert list(broken("docs/math.md#quadratic", tmp_path)) == ["docs/math.md has no section #quadratic"]
    assert list(broken("docs/math.md#not-a-heading", tmp_path)) == ["docs/math.md has no section #not-a-heading"]
    assert list(broken("(docs/proofs.md#linear)", tmp_path)) == ["docs/proofs.md does not exist"]
    assert list(broken("MATH.md 8", tmp_path)) == ["MATH.md is not in the repository"]


def test_both_specifications_are_cited():
    """Without this, the test above would accept sources without citations."""
    text = "".join(path.read_text(encoding="utf-8") for path in CITING if path.suffix == ".py")
    assert len(re.findall(r"docs/math\.md#", text)) > 20 and len(re.findall(r"docs/contract\.md#", text)) > 20
