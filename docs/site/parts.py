"""What the site needs beyond Sphinx: equations as MathML, docstrings as written, all public names, drawings."""

from __future__ import annotations

import inspect
import re
from functools import cached_property
from html import escape
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive, directives
from latex2mathml.converter import convert
from sphinx.util.docutils import SphinxDirective

import driftwise as dw

# A public name stands on the page of the first room its module lies in.
ROOMS = {
    "agent": ("driftwise.agent",),
    "data": ("driftwise.data", "driftwise.tables"),
    "memory": ("driftwise.policies.memory", "driftwise.policies.half_life"),
    "making": ("driftwise.policies.names", "driftwise.policies.advice", "driftwise.policies.model"),
    "state": ("driftwise.policies.arms", "driftwise.policies.state"),
    "policies": ("driftwise.policies",),
    "simulation": ("driftwise.simulation",),
    "errors": ("driftwise.errors",),
}
MODULES = ("theory", "worlds", "checks", "research")


def room(name: str) -> str:
    """The page of a public name; "rest" for what has none yet."""
    if name in MODULES:
        return name
    return _page(getattr(getattr(dw, name), "__module__", ""))


def _page(module: str) -> str:
    return next((page for page, rooms in ROOMS.items() if module.startswith(rooms)), "rest")


def names(page: str) -> list[str]:
    """The public names of a page, as they are imported: `driftwise.Agent`."""
    if page in MODULES:
        module = getattr(dw, page)
        public = getattr(module, "__all__", None) or [
            one for one, value in vars(module).items() if getattr(value, "__module__", "") == module.__name__
        ]
        found = [f"driftwise.{page}.{one}" for one in public if not one.startswith("_")]
    else:
        found = [f"driftwise.{one}" for one in dw.__all__ if room(one) == page]
    return [one for one in found if callable(_value(one)) or inspect.getdoc(_value(one)) is None]


def _value(name: str) -> Any:
    value: Any = dw
    for part in name.split(".")[1:]:
        value = getattr(value, part)
    return value


class PublicNames(Directive):
    """`public-names:: agent`: everything public of a room, by its docstrings."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        lines: list[str] = []
        for name in names(self.arguments[0]):
            value = _value(name)
            if inspect.isclass(value):
                kind = "autoexception" if issubclass(value, Exception) else "autoclass"
            elif callable(value) and not hasattr(value, "__args__"):
                kind = "autofunction"
            else:
                kind = "autodata"
            lines += [f".. {kind}:: {name}", "   :no-value:" if kind == "autodata" else "", ""]
        from docutils.statemachine import StringList

        holder = nodes.section()
        holder.document = self.state.document
        self.state.nested_parse(StringList(lines, "public-names"), 0, holder)
        return holder.children


class Drawing(SphinxDirective):
    """`{drawing} name`: drawings/name.svg, its dark twin, and those for a telephone; the content is its alternative."""

    required_arguments = 1
    has_content = True
    option_spec = {"link": directives.unchanged}  # noqa: RUF012 - as docutils wants it

    def run(self) -> list[nodes.Node]:
        depth = self.env.docname.count("/")
        base = "../" * depth + "_static/drawings/" + self.arguments[0]
        alt = escape(" ".join(" ".join(self.content).split()))
        parts = [
            f'<picture class="only-{scheme}"><source media="(max-width: 600px)" srcset="{base}-narrow{tail}.svg">'
            f'<img src="{base}{tail}.svg" alt="{alt}"></picture>'
            for scheme, tail in (("light", ""), ("dark", "-dark"))
        ]
        inside = "".join(parts)
        if "link" in self.options:
            inside = f'<a href="{escape(self.options["link"])}.html">{inside}</a>'
        return [nodes.raw("", f'<div class="drawing">{inside}</div>', format="html")]


def readable(app: Any, what: str, name: str, value: Any, options: Any, lines: list[str]) -> None:
    """Docstrings here are plain words with `code`: their stars and bars mean nothing; then the paper's equation."""
    lines[:] = [plain(line) for line in lines]
    tex = app.config.equations.get(name.removeprefix("driftwise."))
    if tex:
        lines += ["", ".. math::", "", *(f"   {row}" for row in tex.strip().splitlines()), ""]


# What a user calls of a policy; the rest is between rooms of the library.
CALLED = {"start", "choose", "scores", "learn", "advance", "propensities", "report", "diagnose", "memory", "estimate"}


def hidden(app: Any, what: str, name: str, value: Any, skip: bool, options: Any) -> bool | None:
    """Fields stand in the signature already; of policies, what is called."""
    if what != "class":
        return None
    method = inspect.isroutine(value) or isinstance(value, (property, cached_property, classmethod, staticmethod))
    getter = getattr(value, "fget", None) or getattr(value, "func", None) or value
    module = getattr(getter, "__module__", "") or ""
    return True if not method or (_page(module) == "policies" and name not in CALLED) else None


def plain(line: str) -> str:
    parts = re.split(r"`([^`]+)`", line)
    for place, part in enumerate(parts):
        parts[place] = f"``{part}``" if place % 2 else re.sub(r"[\\|_]|\*(?!\w+\*)(?<!\w\*)", r"\\\g<0>", part)
    return "".join(parts)


class _AsWritten(str):
    """An annotation that is shown as its author wrote it, not as what it stands for."""

    def __repr__(self) -> str:
        return str(self)


def signature(app: Any, what: str, name: str, value: Any, options: Any, args: str | None, result: str | None) -> Any:
    """Annotations as they stand in the source: `Arms`, and not the union of ten types it is short for."""
    try:
        found = inspect.signature(value)
    except (TypeError, ValueError):
        return None
    drop = 1 if what == "method" and not inspect.ismethod(value) else 0

    def shown(one: Any) -> Any:
        return one.replace(annotation=_AsWritten(one.annotation)) if isinstance(one.annotation, str) else one

    kept = [shown(one) for one in list(found.parameters.values())[drop:]]
    gives = found.return_annotation if isinstance(found.return_annotation, str) else None
    if what in ("class", "exception") or gives == "None":
        gives = None
    text = str(found.replace(parameters=kept, return_annotation=inspect.Signature.empty))
    return re.sub(r"<(?:[\w-]+ )*(\w+)>", r"\1", text), gives  # <built-in function time> is no Python


def mathml(tex: str, **more: Any) -> str:
    """MathML; bars of a norm as high as a letter, which \\lVert would stretch to the fraction beside it."""
    return str(convert(re.sub(r"\\[lr]Vert(?![a-zA-Z])", r"\\|", tex), **more))


def visit_inline(self: Any, node: Any) -> None:
    self.body.append(mathml(node.astext()))
    raise nodes.SkipNode


def visit_block(self: Any, node: Any) -> None:
    # One that is wider than a telephone is scrolled, by keyboard too.
    self.body.append('<div class="equation" tabindex="0" role="group" aria-label="equation">')
    self.body.append(mathml(node.astext(), display="block") + "</div>")
    raise nodes.SkipNode


# Attributes that the theme lacks, for screen readers and keyboards (found by axe-core).
MENDED = (
    (r'<p class="caption" role="heading">', '<p class="caption" role="heading" aria-level="2">'),
    (r'<aside class="sidebar-drawer">', '<aside class="sidebar-drawer" aria-label="Pages">'),
    (r'<aside class="toc-drawer', '<aside aria-label="On this page" class="toc-drawer'),
    (r"<pre>", '<pre tabindex="0">'),
    (r'<div class="table-wrapper', '<div tabindex="0" role="group" aria-label="table" class="table-wrapper'),
    (r'<th class="head[^"]*">\s*<p></p>\s*</th>', "<td></td>"),
    # A picture of nine panels is small on a telephone: it can be opened by itself.
    (r'(<img [^>]*src="([^"]*_images/[^"]*\.png)"[^>]*>)', r'<a class="picture" href="\2">\1</a>'),
)


def mended(text: str) -> str:
    """A page with names, levels and focus where they belong, and parameters in lines instead of a list of nothing."""
    for pattern, better in MENDED:
        text = re.sub(pattern, better, text)

    def lines(found: re.Match[str]) -> str:
        inside = found[1].replace("<dd>", '<span class="parameter">').replace("</dd>", "</span>")
        return f'<span class="parameters">{inside}</span>'

    text = re.sub(r"<dl>\s*(<dd>.*?)</dl>", lines, text, flags=re.S)
    if "<h1" not in text:
        text = re.sub(r"(<article[^>]*>)", r"\1<h1>Search</h1>", text, count=1)
    return text


def finished(app: Any, failed: Exception | None) -> None:
    if failed is None and app.builder.format == "html":
        for page in Path(app.outdir).rglob("*.html"):
            page.write_text(mended(page.read_text(encoding="utf-8")), encoding="utf-8")


def setup(app: Any) -> dict[str, Any]:
    app.add_config_value("equations", {}, "env")
    app.add_html_math_renderer("mathml", (visit_inline, None), (visit_block, None))
    app.add_directive("public-names", PublicNames)
    app.add_directive("drawing", Drawing)
    app.connect("autodoc-process-docstring", readable)
    app.connect("autodoc-skip-member", hidden)
    app.connect("autodoc-process-signature", signature)
    app.connect("build-finished", finished)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
