"""Prints the lowest versions that pyproject.toml allows, one a line, for pip: ``numpy>=2.0`` becomes ``numpy==2.0``.

What the tests themselves need comes as it is, but for the frames that people hand over.
"""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

TEST_TOOLS = ("pytest", "pytest-xdist", "hypothesis", "dp-accounting")
FRAMES = ("pandas", "polars")
EXTRAS = ("files", "plot", "sklearn")


def lowest(project: dict[str, object]) -> list[str]:
    """The requirements of a run with the lowest versions."""
    needed: list[str] = project["dependencies"]  # type: ignore[assignment]
    extras: dict[str, list[str]] = project["optional-dependencies"]  # type: ignore[assignment]
    for_tests = extras["test"]
    names = [(line, line.split(">=")[0]) for line in for_tests]
    pinned = [
        *needed,
        *(line for name in EXTRAS for line in extras[name]),
        *(line for line, name in names if name in FRAMES),
    ]
    return [*(line.replace(">=", "==") for line in pinned), *(line for line, name in names if name in TEST_TOOLS)]


if __name__ == "__main__":
    document = tomllib.loads((Path(sys.argv[1]) / "pyproject.toml").read_text())
    print("\n".join(lowest(document["project"])))
