"""``discreet docs``: the pages of the documentation, from wherever discreet is installed."""

from __future__ import annotations

import sys
import tempfile
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
    build: Annotated[
        Path | None,
        typer.Option(
            "--build", metavar="DIR", help="Write all of them as a web site, the reference of Python included."
        ),
    ] = None,
    as_json: options.Json = False,
) -> None:
    """Read the documentation here: the pages come with the package.

    \b
    [bold]Examples[/bold]
      discreet docs
      discreet docs schema
      discreet docs publishing | less
      discreet docs --build site
    """
    if build is not None:
        if topic is not None:
            raise WrongUse(f"--build writes all pages; leave out {topic!r}")
        _build(build, as_json=as_json)
        return
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


def _build(site: Path, *, as_json: bool) -> None:
    """The pages as a web site, with Sphinx; a warning is a failure, as a page with one is not as it was meant."""
    from ..extras import needed

    build = needed("sphinx.cmd.build", "a site of these pages", "discreet[docs]")
    for package in ("myst_parser", "furo"):
        needed(package, "a site of these pages", "discreet[docs]")
    if site.exists() and (not site.is_dir() or (any(site.iterdir()) and not (site / "index.html").exists())):
        raise FileFormatError(f"{site} is there already, and is no site of ours; name a new folder")
    with tempfile.TemporaryDirectory() as kept:  # what Sphinx remembers is no part of the site
        code = build.build_main(["-q", "-W", "--keep-going", "-d", kept, str(_folder()), str(site)])
    if code:
        raise FileFormatError(
            f"the pages could not be built; the lines above say why, and what there is lies in {site}"
        )
    if as_json:
        say_json({"site": str(site), "start": str(site / "index.html")})
    else:
        say(f"Wrote {site}: open {site / 'index.html'} in a browser.")


def _folder() -> Path:
    """Where the pages lie: those that came with the package, else those of the checkout."""
    package = Path(__file__).resolve().parents[1]
    folder = next((f for f in (package / "docs", package.parents[1] / "docs") if (f / "index.md").is_file()), None)
    if folder is None:
        raise FileFormatError(
            "the pages of the documentation are not installed here; install discreet again, by its wheel"
        )
    return folder


def _pages() -> dict[str, Path]:
    """The pages by their topic."""
    folder = _folder()
    found = [p for p in [*sorted(folder.glob("*.md")), *sorted((folder / "howto").glob("*.md"))] if p.stem != "index"]
    return {path.stem: path for path in found}


def _title(path: Path) -> str:
    with path.open(encoding="utf-8") as file:
        return file.readline().lstrip("# ").strip()
