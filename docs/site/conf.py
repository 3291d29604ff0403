"""The site's settings. Nothing is asked of any other server when a page is read: no fonts, no scripts, no pictures."""

import os
import sys
import tomllib
from pathlib import Path

os.environ.setdefault("NUMBA_DISABLE_JIT", "1")  # what is compiled has no signature to show

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path[:0] = [str(HERE), str(ROOT / "src")]

import driftwise  # noqa: E402

project = "driftwise"
author = "the driftwise developers"
project_copyright = f"2026, {author}"
version = release = driftwise.__version__
language = "en"
smartquotes = False  # x'θ is a transpose, and `tie="nearest"` in a docstring is Python

extensions = ["myst_parser", "sphinx.ext.autodoc", "parts"]
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath", "fieldlist"]
myst_heading_anchors = 4
myst_dmath_allow_labels = False

html_theme = "furo"
html_title = "driftwise"
_MADE = ROOT / "build" / "site" / "source" / "static"  # fonts and drawings, where build.py has made them
html_static_path = [str(HERE / "static"), *([str(_MADE)] if _MADE.is_dir() else [])]
html_css_files = ["site.css"]
html_js_files = ["site.js"]
html_show_sphinx = False
html_copy_source = html_show_sourcelink = False
html_math_renderer = "mathml"
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#005f96", "color-brand-content": "#005f96"},
    "dark_css_variables": {"color-brand-primary": "#7cc0f0", "color-brand-content": "#7cc0f0"},
}
pygments_style, pygments_dark_style = "a11y-high-contrast-light", "a11y-high-contrast-dark"

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_typehints_format = "short"
autodoc_default_options = {"members": True}
python_use_unqualified_type_names = True
python_display_short_literal_types = True
maximum_signature_line_length = 80
add_module_names = False
nitpicky = True
# Types are named in signatures and not all are public: numpy's, Python's, and the library's own between its rooms.
nitpick_ignore_regex = [("py:.*", r"(?!dw\.|driftwise\.[A-Z]).*")]

equations = tomllib.loads((HERE / "equations.toml").read_text(encoding="utf-8"))
