"""A page has the same content in HTML and in Markdown, escapes everything, and is self-contained."""

import base64
import re
from html.parser import HTMLParser

import pytest

from colours import coded, luminance
from driftwise.draw import styles
from driftwise.draw.page import DARK, Bullets, Heading, Page, Picture, Table, Text, html, markdown, themed
from driftwise.errors import BadInput

SVG = """<?xml version="1.0"?>
<!DOCTYPE svg PUBLIC "-//W3C//DTD SVG 1.1//EN" "http://www.w3.org/Graphics/SVG/1.1/DTD/svg11.dtd">
<svg width="360pt" height="180pt" viewBox="0 0 360 180" xmlns="http://www.w3.org/2000/svg">
 <metadata><date>2020-01-01</date></metadata>
 <path id="m000000" style="fill: none; stroke: #1a1a1a"/><path style="stroke:#0072B2"/><path style="fill: #D0D0D0"/>
 <path style="fill: #abcdef; clip-path: url(#m000000)"/><text>black by default</text>
</svg>"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "figures").mkdir()
    for name in ("one", "one-narrow"):
        (tmp_path / "figures" / f"{name}.svg").write_text(SVG, encoding="utf-8")
    return tmp_path


def page(*blocks, lead="What it is."):
    return Page("The title", lead, blocks)


EVERY = page(
    Heading("First words"),
    Text("A paragraph."),
    Bullets(["one thing", "another thing"]),
    Heading("Deeper", 3),
    Table(["name", "regret"], [["OFUL", "4360"], ["ours", "reproduced"]], numeric=[1]),
    Picture("one", "A caption.", "What one sees"),
    Heading("First words"),
)
ORDER = ["The title", "What it is.", "First words", "A paragraph.", "one thing", "another thing", "Deeper", "regret",
         "OFUL", "4360", "reproduced", "What one sees", "A caption.", "First words"]  # fmt: skip


class Tags(HTMLParser):
    """Every tag with its attributes, in order; an unclosed tag is an error."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open = [], []
        self.feed(text)
        assert not self.open

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in {"meta", "img", "source"}:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def all(self, tag):
        return [attrs for name, attrs in self.tags if name == tag]


def test_both_renderings_hold_every_block_in_order(folder):
    for text in (html(EVERY, folder).split("</nav>")[1], markdown(EVERY)):
        end = 0
        for words in ORDER if text.startswith("#") else ORDER[2:]:
            end = text.index(words, end) + len(words)


def test_the_html_needs_nothing_but_itself(folder):
    text = html(EVERY, folder)
    tags = Tags(text)
    sources = [attrs.get("src", attrs.get("srcset")) for name, attrs in tags.tags if name in {"img", "source"}]
    assert len(sources) == 2 and all(source.startswith("data:image/svg+xml;base64,") for source in sources)
    for forbidden in ("http", "<script", "<link", "@import", "url("):
        assert forbidden not in re.sub(r"base64,[\w+/=]*", "", text)


def test_the_html_can_be_found_one_s_way_in(folder):
    tags = Tags(html(EVERY, folder))
    assert tags.all("html") == [{"lang": "en"}] and len(tags.all("h1")) == 1
    names = [attrs["id"] for attrs in tags.all("h2")]
    assert names == ["first-words", "first-words-2"]
    assert [attrs["href"] for attrs in tags.all("a")] == [f"#{name}" for name in names]
    assert [attrs["scope"] for attrs in tags.all("th")] == ["col", "col", "row", "row"]
    (region,) = (attrs for attrs in tags.all("div"))
    assert region == {"class": "wide", "tabindex": "0", "role": "region", "aria-label": "Table 1: Deeper"}
    (image,) = tags.all("img")
    assert (image["width"], image["height"], image["alt"]) == ("480", "240", "What one sees")


def test_what_looks_like_markup_stays_words(folder):
    nasty = "<script>alert('1')</script> a|b & c"
    every = page(Heading(nasty), Text(nasty), Bullets([nasty]), Table([nasty], [[nasty]]), Picture("one", nasty, nasty))
    text = html(Page(nasty, nasty, every.blocks), folder)
    assert "script" not in {name for name, _ in Tags(text).tags}
    assert "<td>&lt;script&gt;" in text or '<th scope="row">&lt;script&gt;' in text
    plain = markdown(Page(nasty, nasty, every.blocks))
    assert "<script" not in plain
    row = next(line for line in plain.splitlines() if line.startswith("| &lt;script"))
    assert row == r"| &lt;script>alert('1')&lt;/script> a\|b &amp; c |"


@pytest.mark.parametrize(
    ("marked", "as_html", "as_markdown"),
    [
        ("a **b `c|d`** e", "a <strong>b <code>c|d</code></strong> e", "a **b `c|d`** e"),
        ("`<b> **x**`", "<code>&lt;b&gt; **x**</code>", "`<b> **x**`"),
        ("[a *b*](https://x.org/A_(b)?c=1&d)", '<a href="https://x.org/A_(b)?c=1&amp;d">a *b*</a>',
         r"[a \*b\*](https://x.org/A_(b)?c=1&d)"),
        ("[x](javascript:y)", "[x](javascript:y)", r"\[x\](javascript:y)"),
        ("path_length _x_ 2 * 3 $4", "path_length _x_ 2 * 3 $4", r"path_length \_x\_ 2 \* 3 \$4"),
        ("1. no list", "1. no list", r"1\. no list"),
        ("- no\n  list", "- no list", r"\- no list"),
        ("0.5 is a number", "0.5 is a number", "0.5 is a number"),
    ],
)  # fmt: skip
def test_inline_markup(marked, as_html, as_markdown, folder):
    assert f"<p>{as_html}</p>" in html(page(Text(marked)), folder)
    assert markdown(page(Text(marked))).endswith(f"\n\n{as_markdown}\n")


def test_a_pipe_in_a_cell_does_not_split_it():
    lines = markdown(page(Table(["a", "b"], [["`x|y`", "u|v"]], numeric=[1]))).splitlines()
    assert lines[-3:] == ["| a | b |", "| --- | ---: |", r"| `x\|y` | u\|v |"]


def test_a_verdict_is_said_in_words(folder):
    verdicts = ["reproduced", "not reproduced", "cannot be told"]
    text = html(page(Table(["name", "verdict"], [["x", verdict] for verdict in verdicts])), folder)
    assert re.findall(r'<span class="verdict \w+">([^<]+)</span>', text) == verdicts


def test_a_drawing_has_no_ink_that_a_dark_page_would_swallow():
    drawing = themed(SVG)
    for style in re.findall(r'style="[^"]*"', drawing):
        assert not any(ink in style.lower().replace("(#", "") for ink in DARK)
    assert "fill:var(--i000000)" in drawing  # a shape without a fill is black
    assert "#abcdef" in drawing and "url(#m000000)" in drawing and "2020" not in drawing
    assert drawing.startswith("<svg")


def contrast(one, other):
    low, high = sorted(luminance(coded(colour)) for colour in (one, other))
    return (high + 0.05) / (low + 0.05)


def test_every_colour_of_the_figures_has_a_twin_that_can_be_read_on_a_dark_page():
    assert {styles.INK, styles.GRID} <= set(DARK)
    colours = [*styles.PALETTE.values(), *styles.TINTS.values()]
    for colour in colours:
        assert contrast(DARK[colour], DARK["#ffffff"]) >= 4.5, colour
    assert len({DARK[colour] for colour in colours}) == len(set(colours))


def test_words_and_badges_have_contrast_in_both_schemes(folder):
    text = html(page(), folder)
    screen = text.split("@media print")[0]
    rules = re.findall(r":root \{(.*?)\}", screen, re.DOTALL)
    schemes = [dict(re.findall(r"--([\w-]+): (#\w{6});", rule)) for rule in rules]
    assert [scheme["page"] for scheme in schemes] == ["#ffffff", DARK["#ffffff"]]
    for scheme in schemes:
        pairs = [(ink, ground) for ink in ("ink", "soft", "link") for ground in ("page", "tint")]
        for ink, ground in [*pairs, ("yes", "yes-tint"), ("no", "no-tint"), ("open", "open-tint")]:
            assert contrast(scheme[ink], scheme[ground]) >= 4.5, (ink, ground)


def test_the_embedded_drawing_is_the_themed_one(folder):
    (image,) = Tags(html(page(Picture("one", "", "x")), folder)).all("img")
    assert base64.b64decode(image["src"].split(",")[1]).decode() == themed(SVG)


def test_what_cannot_be_a_page_is_refused(folder):
    with pytest.raises(BadInput, match="level: wanted 2 to 6, got 1"):
        Heading("x", 1)
    with pytest.raises(BadInput, match="row: wanted 2 cells"):
        Table(["a", "b"], [["only one"]])
    with pytest.raises(BadInput, match=r"figure: wanted a drawing that exists, got .*gone\.svg"):
        html(page(Picture("gone", "", "")), folder)
