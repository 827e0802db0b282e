"""What an audit found, and the comparison of public results that several audits share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Finding:
    """One check: its name, whether it passed, and what was seen when it did not."""

    name: str
    passed: bool
    detail: str = ""

    def __str__(self) -> str:
        return f"{'ok  ' if self.passed else 'FAIL'} {self.name}{': ' + self.detail if self.detail else ''}"


def failures(findings: Sequence[Finding]) -> list[Finding]:
    return [f for f in findings if not f.passed]


def canonical(value: Any, depth: int = 0) -> Any:
    """A nested tuple that is equal for two results exactly when nobody outside could tell them apart."""
    if depth > 40:
        raise ValueError("a result is nested too deeply to be compared")
    if value is None or isinstance(value, bool | int | float | complex | str | bytes):
        return (type(value).__name__, repr(value))
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        return (
            "array",
            str(array.dtype),
            array.shape,
            array.tobytes() if array.dtype != object else repr(array.tolist()),
        )
    if isinstance(value, Mapping):
        return ("mapping", tuple((canonical(k, depth + 1), canonical(v, depth + 1)) for k, v in value.items()))
    if isinstance(value, list | tuple):
        extra = canonical(value.__dict__, depth + 1) if hasattr(value, "__dict__") else None
        return (type(value).__name__, tuple(canonical(v, depth + 1) for v in value), extra)
    if isinstance(value, set | frozenset):
        return ("set", tuple(sorted(map(repr, (canonical(v, depth + 1) for v in value)))))
    if isinstance(value, BaseException):
        return (type(value).__name__, str(value))
    if is_dataclass(value) and not isinstance(value, type):
        body = tuple((f.name, canonical(getattr(value, f.name), depth + 1)) for f in fields(value) if f.compare)
        return (type(value).__name__, body)
    if hasattr(value, "statement"):  # a curator: only what it says in public counts
        return (type(value).__name__, canonical(value.statement(), depth + 1))
    if hasattr(value, "__dict__"):
        return (type(value).__name__, canonical(vars(value), depth + 1))
    return (type(value).__name__, repr(value))
