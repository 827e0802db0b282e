"""Models in the native format, as plain data: :mod:`discreet.files` makes models of it again.

The header has the keys ``format``, ``version``, ``kind``, ``domain`` (the schema form), ``card`` (the release card, or
null for a model that is not a release), ``model`` (what the kind needs besides arrays) and ``arrays``. A release file
has one more, ``release``, with what :mod:`discreet.release` puts beside the model; its arrays are ``released.…``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

from ..errors import FileFormatError, InputError, NotAReleaseError
from .archive import MEASUREMENTS, AnyArray, Sign, write_archive
from .atomic import PathLike

_KEYS = ("format", "version", "kind", "domain", "card", "model", "arrays")
_BESIDE = "release"
_BESIDE_PREFIX = "released."

Parts = tuple[dict[str, Any], dict[str, AnyArray]]
"""A JSON-able header, and arrays."""


class Archivable(Protocol):
    """What a model must offer to be saved."""

    def to_archive(self) -> Parts: ...


def check_release(card: Mapping[str, Any] | None) -> None:
    """A model that was learned without privacy (its card says so) goes into no file: a file looks like a release."""
    origin = (card or {}).get("origin")
    if origin in ("exact", "research"):
        raise NotAReleaseError(
            f"this model carries no privacy guarantee (its origin is {origin!r}) and cannot be saved as a release"
        )


def save_model(
    model: Archivable,
    path: PathLike,
    beside: tuple[Mapping[str, Any], Mapping[str, AnyArray]] | None = None,
    sign: Sign | None = None,
) -> None:
    """Write a model to a file: deterministic bytes, there completely or not at all. ``beside``: what a release file
    holds beside it."""
    header, arrays = model.to_archive()
    unknown = sorted(set(header) - set(_KEYS))
    if unknown or not isinstance(header.get("kind"), str):
        raise InputError(f"a model's header has the keys {', '.join(_KEYS)}; got {', '.join(header)}")
    check_release(header.get("card"))
    whole = {"kind": header["kind"], "domain": None, "card": None, "model": {}, **header}
    if beside is not None:
        whole[_BESIDE] = dict(beside[0])
        arrays = {**arrays, **{_BESIDE_PREFIX + name: array for name, array in beside[1].items()}}
    write_archive(path, whole, arrays, sign)


def taken_apart(header: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> tuple[Parts, Parts | None]:
    """What an archive says of its model and, unopened, what a release file holds beside it; checked in form."""
    own = {name: array for name, array in arrays.items() if not name.startswith(_BESIDE_PREFIX)}
    others = {n.removeprefix(_BESIDE_PREFIX): array for n, array in arrays.items() if n.startswith(_BESIDE_PREFIX)}
    beside = header.get(_BESIDE)
    if not isinstance(beside, dict | None) or (beside is None and others):
        raise FileFormatError("what it holds beside the model is not an object")
    if header.get("kind") == MEASUREMENTS:
        raise FileFormatError("it is a file of measurements, not a model; read it with discreet.Measurements.load")
    model = {key: value for key, value in header.items() if key != _BESIDE}
    for key in model:
        if key not in _KEYS:
            raise FileFormatError(f"its header has the unknown key {key[:60]!r}")
    for key in ("domain", "card", "model"):
        if not isinstance(model.get(key), dict | None):
            raise FileFormatError(f"its header has {key} = {str(model[key])[:60]!r}, which is not an object")
    return (model, own), None if beside is None else (beside, others)
