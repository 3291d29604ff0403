"""A page of headings, paragraphs, tables and figures, written as one self-contained HTML file and as Markdown."""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import assert_never

from driftwise.draw.markup import NEW_LINE, Html, badge, html_table, joined, safe, tag
from driftwise.errors import BadInput

VERDICTS = {
    "reproduced": "yes", "not reproduced": "no", "cannot be told": "open", "same": "yes", "differs": "no",
}  # fmt: skip
# The colours of a drawing on a dark page: ink, grids and background; the hues of styles.py, again at least 14 apart in
# CIELAB under each colour blindness; and their tints, half way between the dark hue and white (grey for black).
DARK = {
    "#1a1a1a": "#e8e6e1", "#b0b0b0": "#3d444d", "#cccccc": "#3d444d", "#d0d0d0": "#363c45", "#ffffff": "#14171b",
    "#0072b2": "#4694d7", "#000000": "#e8e6e1", "#009e73": "#4bca9d", "#d55e00": "#dc6612", "#56b4e9": "#8ecffb",
    "#e69f00": "#efa922", "#8b1a5b": "#c364a7", "#cc79a7": "#e19ac1", "#9955ff": "#ad75fd", "#804000": "#d27d42",
    "#1f5c2e": "#5f9e6a", "#767676": "#8e8e8e",
    "#66aad1": "#a2caeb", "#666666": "#a8a8a6", "#66c5ab": "#a5e4ce", "#e69e66": "#eeb288", "#9ad2f2": "#c6e7fd",
    "#f0c566": "#f7d490", "#b9769d": "#e1b2d3", "#e0afca": "#f0cce0", "#c299ff": "#d6bafe", "#b38c66": "#e8bea0",
    "#799d82": "#afceb4", "#adadad": "#c6c6c6",
}  # fmt: skip


@dataclass(frozen=True)
class Heading:
    """A heading below the title; those of level 2 make the table of contents."""

    text: str
    level: int = 2

    def __post_init__(self) -> None:
        if not 2 <= self.level <= 6:
            raise BadInput("level", self.level, "2 to 6", "the title of the page is its one heading of level 1")


@dataclass(frozen=True)
class Text:
    """A paragraph."""

    text: str


@dataclass(frozen=True)
class Bullets:
    """An unordered list."""

    items: Sequence[str]


@dataclass(frozen=True)
class Table:
    """Rows of strings. Columns whose numbers are in `numeric` are right-aligned; verdicts become badges."""

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    numeric: Sequence[int] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise BadInput("row", row, f"{len(self.columns)} cells", "give one cell per column, empty or not")


@dataclass(frozen=True)
class Picture:
    """The picture in figures/{name}.svg, .png and, for phones, -narrow.svg."""

    name: str
    caption: str
    alt: str


@dataclass(frozen=True)
class Folded:
    """A table that HTML shows when its summary is opened. In Markdown it is a file beside the page."""

    summary: str
    table: Table
    file: str


Block = Heading | Text | Bullets | Table | Picture | Folded


@dataclass(frozen=True)
class Page:
    """A title, a lead of a sentence or two, and the blocks of the page."""

    title: str
    lead: str
    blocks: Sequence[Block]


def html(page: Page, folder: Path) -> str:
    """One self-contained file without network access or scripts. Figures are read from folder/figures."""
    anchors = _anchors(page.blocks)
    body: list[str] = []
    under, tables = page.title, 0
    for place, block in enumerate(page.blocks):
        match block:
            case Heading(text, level):
                under = text
                body.append(tag(f"h{level}", text, id=anchors[place]))
            case Text(text):
                body.append(tag("p", _html(text)))
            case Bullets(items):
                listed = joined([tag("li", _html(item)) for item in items], "\n")
                body.append(tag("ul", NEW_LINE, listed, NEW_LINE))
            case Table():
                tables += 1
                body.append(_table(block, f"Table {tables}: {under}"))
            case Folded(summary, table):
                tables += 1
                shown = _table(table, f"Table {tables}: {summary}")
                body.append(tag("details", NEW_LINE, tag("summary", _html(summary)), NEW_LINE, shown))
            case Picture():
                body.append(_picture(block, folder))
            case _:
                assert_never(block)
    entries = [
        tag("li", tag("a", block.text, href=f"#{anchors[place]}"))
        for place, block in enumerate(page.blocks)
        if isinstance(block, Heading) and block.level == 2
    ]
    contents = ['<nav aria-label="Contents">\n<ol>', *entries, "</ol>\n</nav>"] if entries else []
    top = f"<header>\n{tag('h1', page.title)}\n{tag('p', _html(page.lead))}\n</header>"
    lines = [_HEAD.format(title=safe(page.title), style=style()), top, *contents, "<main>", *body, "</main>"]
    return "\n".join([*lines, "</body>\n</html>\n"])


def markdown(page: Page) -> str:
    """The page as GitHub Markdown, with figures as links to figures/{name}.png."""
    parts = [f"# {_literal(page.title)}", _paragraph(page.lead)]
    for block in page.blocks:
        match block:
            case Heading(text, level):
                parts.append("#" * level + " " + _literal(text))
            case Text(text):
                parts.append(_paragraph(text))
            case Bullets(items):
                parts.append("\n".join(f"- {_paragraph(item)}" for item in items))
            case Table(columns, rows, numeric):
                rule = ["---:" if place in numeric else "---" for place in range(len(columns))]
                cells = [[_inline(cell, _MARKDOWN).replace("|", r"\|") for cell in row] for row in (columns, *rows)]
                parts.append("\n".join(f"| {' | '.join(row)} |" for row in (cells[0], rule, *cells[1:])))
            case Folded(summary, _, file):
                parts.append(f"{_paragraph(summary)}: {file}.")
            case Picture(name, caption, alt):
                parts.append(f"![{_literal(alt)}](figures/{name}.png)")
                parts += [] if alt == caption else [_paragraph(caption)]  # a reader of Markdown meets it once
            case _:
                assert_never(block)
    return "\n\n".join(parts) + "\n"


def themed(svg: str) -> str:
    """The drawing with CSS variables for its colours, which a dark page sets; without XML preamble and date."""
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg[svg.index("<svg") :], flags=re.DOTALL)
    # matplotlib omits black fills, because black is the default; black is therefore always in the set.
    inks = {"#000000"}

    def variable(match: re.Match[str]) -> str:
        ink = match[1].lower()
        if ink not in DARK:
            return match[0]
        inks.add(ink)
        return f":var(--i{ink[1:]})"

    svg = re.sub(r'style="[^"]*"', lambda style: re.sub(r":\s*(#[0-9a-fA-F]{6})\b", variable, style[0]), svg)
    light = "".join(f"--i{ink[1:]}:{ink};" for ink in sorted(inks))
    dark = "".join(f"--i{ink[1:]}:{DARK[ink]};" for ink in sorted(inks))
    rule = f"svg{{{light}fill:var(--i000000)}}@media (prefers-color-scheme:dark){{svg{{{dark}}}}}"
    return re.sub(r"<svg[^>]*>", lambda tag: f"{tag[0]}<style>{rule}</style>", svg, count=1)


def _picture(picture: Picture, folder: Path) -> str:
    source, narrow = (_embedded(folder / "figures" / f"{picture.name}{kind}.svg") for kind in ("", "-narrow"))
    return (
        f'<figure>\n<picture><source media="(max-width: 600px)" srcset="{narrow[0]}" {narrow[1]}>'
        f'<img src="{source[0]}" alt="{safe(picture.alt)}" {source[1]}></picture>\n'
        f"{tag('figcaption', _html(picture.caption))}\n</figure>"
    )


def _embedded(path: Path) -> tuple[str, str]:
    """The drawing as a data URL, and its size in pixels. A unit of matplotlib's viewBox is a point."""
    if not path.is_file():
        raise BadInput("figure", str(path), "a drawing that exists", "draw the figures before the page")
    svg = themed(path.read_text(encoding="utf-8"))
    box = re.search(r'viewBox="[\d.-]+ [\d.-]+ ([\d.]+) ([\d.]+)"', svg)
    if box is None:
        raise BadInput("figure", str(path), "an SVG with a viewBox", "save it with matplotlib")
    width, height = (round(float(side) * 96 / 72) for side in box.groups())
    return f"data:image/svg+xml;base64,{b64encode(svg.encode()).decode()}", f'width="{width}" height="{height}"'


def _table(table: Table, label: str) -> Html:
    return html_table(table.columns, table.rows, table.numeric, label, _cell, _kind, _html)


def _cell(cell: str) -> Html:
    return badge(_html(cell), VERDICTS[cell]) if cell in VERDICTS else _html(cell)


def _kind(cell: str) -> str | None:
    return "words" if len(cell) > 40 else None


def _anchors(blocks: Sequence[Block]) -> dict[int, str]:
    """An anchor for each heading by its place: its words, with a number if they were used before."""
    anchors: dict[int, str] = {}
    for place, block in enumerate(blocks):
        if isinstance(block, Heading):
            words = stem = re.sub(r"\W+", "-", block.text.lower()).strip("-") or "section"
            count = 1
            while words in anchors.values():
                count += 1
                words = f"{stem}-{count}"
            anchors[place] = words
    return anchors


@dataclass(frozen=True)
class _Dialect:
    """How a format writes plain text, code, bold text and a link."""

    plain: Callable[[str], str]
    code: Callable[[str], str]
    bold: Callable[[str], str]
    link: Callable[[str, str], str]


_MARKS = re.compile(r"`([^`]+)`|\*\*(.+?)\*\*|\[([^\]]+)\]\(((?:[^()\s]|\([^()\s]*\))+)\)")
_ADDRESS = re.compile(r"https?://|mailto:|[^:]*$")


def _inline(text: str, dialect: _Dialect) -> str:
    text, parts, end = " ".join(text.split()), [], 0
    for mark in _MARKS.finditer(text):
        parts.append(dialect.plain(text[end : mark.start()]))
        code, bold, words, address = mark.groups()
        if code:
            parts.append(dialect.code(code))
        elif bold:
            parts.append(dialect.bold(_inline(bold, dialect)))
        elif _ADDRESS.match(address):
            parts.append(dialect.link(_inline(words, dialect), address))
        else:
            parts.append(dialect.plain(mark[0]))
        end = mark.end()
    return "".join([*parts, dialect.plain(text[end:])])


def _html(text: str) -> Html:
    return Html(_inline(text, _HTML))


def _literal(text: str) -> str:
    """Escape characters that Markdown would read as markup. An underscore inside a word is not markup."""
    return re.sub(r"[\\`*\[\]~$]|(?<!\w)_|_(?!\w)", r"\\\g<0>", text).replace("&", "&amp;").replace("<", "&lt;")


def _paragraph(text: str) -> str:
    """Escape the start of a line that Markdown would read as a list, a quotation or a heading."""
    return re.sub(r"^(\d*)([-+#>=]|(?<=\d)[.)](?=\s))", r"\1\\\2", _inline(text, _MARKDOWN))


_HTML = _Dialect(
    safe,
    lambda code: tag("code", code),
    lambda bold: tag("strong", Html(bold)),
    lambda words, address: tag("a", Html(words), href=address),
)
_MARKDOWN = _Dialect(_literal, "`{}`".format, "**{}**".format, "[{}]({})".format)
_HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>"""


def style() -> str:
    """The style sheet, for other pages with the same look."""
    return (files("driftwise.draw") / "page.css").read_text(encoding="utf-8")
