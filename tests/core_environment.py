"""The environment of somebody who has run `./discreet demo`, or `pip install .`, and has installed nothing else."""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Iterable
from functools import cache
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


DESKTOP = tuple(
    re.search(r"^DESKTOP=(\S+)", (ROOT / "tools" / "environment.sh").read_text("utf-8"), re.MULTILINE)[1].split(",")
)
"""The extras that `./discreet` installs."""


def environment(extras: Iterable[str] = (), *, core_alone: bool = False, besides: Iterable[str] = ()) -> dict[str, str]:
    """Variables under which Python finds the core, these extras beside those of `./discreet`, packages of the user's
    own (``besides``), and no other one."""
    installed = frozenset(extras) | (frozenset() if core_alone else frozenset(DESKTOP))
    paths = [str(ROOT / "tests" / "core_only"), str(ROOT / "src")]
    return {
        **os.environ,
        "PATH": os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]),
        "PYTHONPATH": os.pathsep.join(paths),
        "ABSENT": " ".join(sorted(absent(installed, frozenset(besides)))),
        "MPLBACKEND": "Agg",
    }


@cache
def absent(extras: frozenset[str], besides: frozenset[str] = frozenset()) -> frozenset[str]:
    """Modules of all packages that are installed here and that neither the core nor these extras and packages depend
    on."""
    wanted = [
        *PROJECT["dependencies"],
        *besides,
        *(line for e in extras for line in PROJECT["optional-dependencies"][e]),
    ]
    found = {"discreet", "pip"}
    todo = [Requirement(line) for line in wanted]
    while todo:
        requirement = todo.pop()
        if _normal(requirement.name) == "discreet":
            todo += [Requirement(line) for e in requirement.extras for line in PROJECT["optional-dependencies"][e]]
        if _normal(requirement.name) in found:
            continue
        found.add(_normal(requirement.name))
        try:
            lines = metadata.requires(requirement.name) or ()
        except metadata.PackageNotFoundError:  # for another system
            continue
        asked = ("", *requirement.extras)
        more = [Requirement(line) for line in lines]
        todo += [r for r in more if r.marker is None or any(r.marker.evaluate({"extra": e}) for e in asked)]
    owners = metadata.packages_distributions()
    return frozenset(module for module, names in owners.items() if not found & set(map(_normal, names)))


def _normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()
