"""One way in for rows that live in files."""

from __future__ import annotations

import os
from typing import Literal, get_args

from ..arguments import require_domain
from ..domain import Domain
from ..errors import InputError, did_you_mean
from .base import Table
from .delimited import open_delimited, read_delimited

Engine = Literal["auto", "memory", "duckdb", "spark"]


def open_table(
    path: str | os.PathLike[str],
    domain: Domain,
    *,
    unit: str | None = None,
    engine: Engine = "auto",
    memory_limit: int | str | None = None,
) -> Table:
    """The rows of files under a domain, for a curator."""
    require_domain(domain)
    if engine not in get_args(Engine):
        raise InputError(
            f"engine must be one of {', '.join(get_args(Engine))}; got {engine!r}"
            + did_you_mean(str(engine), get_args(Engine))
        )
    return read_delimited(open_delimited(path), domain, unit=unit)
