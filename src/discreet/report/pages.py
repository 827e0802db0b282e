"""What all pages have in common: templates and styles that lie in this package, and how a page gets onto the disk."""

from __future__ import annotations

import re
from html import escape
from importlib import resources
from pathlib import Path
from typing import Any

from ..io.atomic import write_atomically


def template(name: str, package: str = __package__) -> Any:
    """A page of this package, or of another; everything that is put into it is escaped."""
    from jinja2 import Environment, StrictUndefined  # only needed here, and slow to import

    environment = Environment(autoescape=True, undefined=StrictUndefined, trim_blocks=True)
    environment.filters["with_code"] = _with_code
    return environment.from_string(resource(name, package))


def _with_code(text: str) -> str:
    """A sentence as terminals show it, escaped, with what stands between backticks as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def resource(name: str, package: str = __package__) -> str:
    """A file of this package, or of another."""
    return resources.files(package).joinpath(name).read_text(encoding="utf-8")


def write_report(path: str | Path, html: str) -> None:
    """Write the page, completely or not at all."""
    write_atomically(Path(path), [html.encode()])
