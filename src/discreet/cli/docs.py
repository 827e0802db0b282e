"""``discreet docs``: the pages of the documentation, from wherever discreet is installed."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from ..errors import FileFormatError, did_you_mean
from . import options
from .console import clean, say, say_json, say_table
from .failures import WrongUse


def docs(
    topic: Annotated[
        str | None, typer.Argument(metavar="TOPIC", help="Which page; without one, all are listed.")
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Read the documentation here: the pages come with the package.

    \b
    [bold]Examples[/bold]
      discreet docs
      discreet docs schema
      discreet docs publishing | less
    """
    pages = _pages()
    if topic is None:
        titles = {name: _title(path) for name, path in pages.items()}
        if as_json:
            say_json({"topics": titles})
        else:
            say_table(["topic", "page"], [[name, title] for name, title in titles.items()])
            say("`discreet docs TOPIC` shows one.")
        return
    wanted = topic.removesuffix(".md").removeprefix("docs/").removeprefix("howto/")
    if wanted not in pages:
        raise WrongUse(f"there is no page {topic!r}{did_you_mean(wanted, pages)}; `discreet docs` lists them")
    text = pages[wanted].read_text(encoding="utf-8")
    if as_json:
        say_json({"topic": wanted, "title": _title(pages[wanted]), "text": text})
    elif sys.stdout.isatty():
        from rich.console import Console
        from rich.markdown import Markdown

        Console().print(Markdown(text, hyperlinks=False))
    else:
        for line in text.splitlines():
            print(clean(line))


def _pages() -> dict[str, Path]:
    """The pages by their topic: those that came with the package, else those of the checkout."""
    package = Path(__file__).resolve().parents[1]
    folder = next((f for f in (package / "docs", package.parents[1] / "docs") if (f / "index.md").is_file()), None)
    if folder is None:
        raise FileFormatError(
            "the pages of the documentation are not installed here; install discreet again, by its wheel"
        )
    found = [p for p in [*sorted(folder.glob("*.md")), *sorted((folder / "howto").glob("*.md"))] if p.stem != "index"]
    return {path.stem: path for path in found}


def _title(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.readline().lstrip("# ").strip()
