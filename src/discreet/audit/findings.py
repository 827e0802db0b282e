"""What an audit found, and the comparison of public results that several audits share."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, is_dataclass
from fractions import Fraction
from functools import cached_property, lru_cache, partial
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np

from ..privacy.curator import Curator

_PLAIN = frozenset({type(None), bool, int, float, str, bytes, Fraction})


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


def canonical(value: Any) -> Any:
    """A nested tuple that is equal for two results exactly when nobody outside could tell them apart.

    It looks wherever a result can carry something: attributes (also of frozen dataclasses and of tuples), slots,
    closures, bound methods, causes and notes of exceptions.
    """
    return _canonical(value, ())


def _canonical(value: Any, above: tuple[int, ...]) -> Any:
    if type(value) in _PLAIN or isinstance(value, int | float | complex | str | bytes | Fraction):
        return (type(value).__name__, repr(value))
    if type(value) in (list, tuple, dict) and id(value) not in above:  # by far the most, without the questions below
        inside = (*above, id(value))
        if isinstance(value, dict):
            return ("dict", tuple((_canonical(k, inside), _canonical(v, inside)) for k, v in value.items()), ())
        return (type(value).__name__, tuple([_canonical(v, inside) for v in value]), ())
    if isinstance(value, np.ndarray | np.generic):
        array = np.asarray(value)
        return (
            "array",
            str(array.dtype),
            array.shape,
            repr(array.tolist()) if array.dtype == object else array.tobytes(),
        )
    if isinstance(value, type | ModuleType | BuiltinFunctionType):
        return (type(value).__name__, repr(value))
    if id(value) in above:  # a circle: where it closes is all there is to say
        return ("seen above", len(above) - above.index(id(value)))

    def look(x: Any) -> Any:
        return _canonical(x, (*above, id(value)))

    if isinstance(value, Curator):  # it holds rows; what it says in public is what counts
        return (type(value).__name__, look(value.statement()))
    if isinstance(value, partial):
        return ("partial", look(value.func), look(value.args), look(value.keywords))
    if isinstance(value, MethodType):
        return ("method", value.__name__, look(value.__self__))
    if isinstance(value, FunctionType):
        cells = [c.cell_contents for c in value.__closure__ or ()]
        return ("function", value.__qualname__, look(cells), look(value.__defaults__), look(value.__kwdefaults__))
    parts: list[Any] = []
    if isinstance(value, Mapping):
        parts += [(look(k), look(v)) for k, v in value.items()]
    elif isinstance(value, set | frozenset):
        parts += sorted(map(repr, map(look, value)))
    elif isinstance(value, list | tuple):
        parts += [look(v) for v in value]
    elif isinstance(value, BaseException):
        parts += [str(value), look(value.args), look(value.__cause__), look(value.__context__)]
    kind = _kind(type(value))  # type: ignore[arg-type]  # every class has a hash
    attributes = {k: v for k, v in getattr(value, "__dict__", {}).items() if k not in kind.uncompared}
    attributes |= {name: getattr(value, name) for name in kind.slots if hasattr(value, name)}
    if not parts and not attributes and not isinstance(value, Collection):
        parts.append(repr(value) if kind.says_itself else "")
    return (type(value).__name__, tuple(parts), tuple((k, look(v)) for k, v in attributes.items()))


@dataclass(frozen=True)
class _Kind:
    """What a class says about where its values carry something.

    ``uncompared``: caches, which are computed properties and fields that a dataclass leaves out of comparison.
    """

    uncompared: frozenset[str]
    slots: tuple[str, ...]
    says_itself: bool


@lru_cache(maxsize=4096)  # an audit looks at very many values of few classes
def _kind(kind: type) -> _Kind:
    cached = {n for each in kind.__mro__ for n, v in each.__dict__.items() if isinstance(v, cached_property)}
    left_out = {f.name for f in fields(kind) if not f.compare} if is_dataclass(kind) else set()
    slots: list[str] = []
    for each in kind.__mro__:
        said = each.__dict__.get("__slots__", ())
        slots += [said] if isinstance(said, str) else said
    written = {n for each in kind.__mro__[:-1] for n in each.__dict__}
    return _Kind(
        frozenset(cached | left_out),
        tuple(n for n in slots if n not in ("__dict__", "__weakref__")),
        "__repr__" in written,
    )
