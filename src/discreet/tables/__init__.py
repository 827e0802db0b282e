"""Where rows live. ``open_table`` is loaded when it is first used: it brings DuckDB along."""

from __future__ import annotations

from importlib import import_module


def __getattr__(name: str) -> object:
    if name == "open_table":
        return import_module(f"{__name__}.open").open_table
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
