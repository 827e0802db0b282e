"""The README as it stands in a package: what is read away from the repository can have no links into it.

A hook of Hatchling, which builds the package. Pages become the command that shows them, which comes with the package.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_IMAGE = re.compile(r"!\[[^]]*\]\((?!https://)[^)]*\)\n*")
_LINK = re.compile(r"\[([^]]+)\]\((?!https://)([^)#]+)[^)]*\)")


def readme_text(text: str) -> str:
    """Without pictures and links that only the repository has."""
    return _LINK.sub(_said, _IMAGE.sub("", text))


def _said(link: re.Match[str]) -> str:
    words, place = link[1], Path(link[2])
    if place.parts[0] != "docs":
        return words
    shown = f"`discreet docs {place.stem}`"
    return shown if words == link[2] else f"{words} ({shown})"


class Readme(MetadataHookInterface):
    """Sets the text that package indexes show."""

    def update(self, metadata: dict[str, Any]) -> None:
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": readme_text(text)}
