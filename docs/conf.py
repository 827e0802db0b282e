"""How the documentation is built: `sphinx-build -W docs out/docs`."""

import sys
from pathlib import Path

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
