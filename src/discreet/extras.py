"""Packages that not everybody has: loaded when they are needed, or an error that says what to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from .errors import MissingPackageError


def needed(module: str, what: str, install: str = "") -> Any:
    """The module, for ``what`` needs it; ``install`` is what pip calls the package, unless it is the module's name."""
    try:
        return import_module(module)
    except ModuleNotFoundError as error:
        package = module.partition(".")[0]
        inner = f" ({error.name} is missing)" if error.name and error.name.partition(".")[0] != package else ""
        raise MissingPackageError(
            f"{what} needs the package {package}, which is not installed{inner}: pip install '{install or package}'"
        ) from None
