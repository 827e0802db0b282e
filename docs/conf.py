"""How the documentation is built: `discreet docs --build site`."""

import re
import sys
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))

from discreet import __version__

project = "discreet"
copyright = "the discreet authors"
version = release = __version__
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinx.ext.mathjax"]
myst_enable_extensions = ["dollarmath", "colon_fence"]
myst_heading_anchors = 3
exclude_patterns = ["images"]
html_theme = "furo"
html_title = "discreet"
html_static_path: list[str] = []
autodoc_typehints = "none"
autodoc_member_order = "bysource"
autodoc_class_signature = "separated"
nitpicky = False
suppress_warnings = ["myst.xref_missing"]  # pages link to source files, which are no part of the built pages


def _absolute_values(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """A bar in a docstring is an absolute value or a condition, never a substitution of docutils."""
    lines[:] = [
        "``".join(re.sub(r"\|", r"\\|", part) if i % 2 == 0 else part for i, part in parts)
        for parts in (list(enumerate(line.split("``"))) for line in lines)
    ]


def setup(app: Any) -> None:
    app.connect("autodoc-process-docstring", _absolute_values)
