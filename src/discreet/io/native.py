"""Saving and loading models in the native format; each family of models registers its kind here.

The header has the keys ``format``, ``version``, ``kind``, ``domain`` (the schema form), ``card`` (the release card, or
null for a model that is not a release), ``model`` (what the kind needs besides arrays) and ``arrays``. A release file
has one more, ``release``, with what :mod:`discreet.release` puts beside the model; its arrays are ``released.…``.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from typing import Any, Protocol

from ..errors import DiscreetError, FileFormatError, InputError, NotAReleaseError, did_you_mean
from .archive import MEASUREMENTS, AnyArray, Sign, read_archive, write_archive
from .atomic import PathLike
from .limits import DEFAULT_LIMITS, Limits
from .reading import shown

_KEYS = ("format", "version", "kind", "domain", "card", "model", "arrays")
_BESIDE = "release"
_BESIDE_PREFIX = "released."
_LONGEST_REASON = 500


class Archivable(Protocol):
    """What a model must offer to be saved."""

    def to_archive(self) -> tuple[dict[str, Any], dict[str, AnyArray]]: ...


Loader = Callable[[dict[str, Any], dict[str, AnyArray]], Any]
_loaders: dict[str, Loader] = {}


def register_kind(kind: str, loader: Loader) -> None:
    """Make files of this kind loadable; ``loader(header, arrays)`` is usually a class's ``from_archive``."""
    if _loaders.get(kind, loader) != loader:
        raise InputError(f"the kind {kind!r} is registered already")
    _loaders[kind] = loader


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
    """Write a model to a file: deterministic bytes, there completely or not at all. ``beside``: see :data:`Beside`."""
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


def load_model(source: PathLike | bytes, limits: Limits = DEFAULT_LIMITS) -> Any:
    """Read a model; the class follows from the file. The file may come from anywhere: see :func:`read_archive`."""
    return load_parts(source, limits)[0]


Beside = tuple[dict[str, Any], dict[str, AnyArray]]
"""What a release file holds beside the model: a JSON-able header, and arrays."""


def load_parts(source: PathLike | bytes, limits: Limits = DEFAULT_LIMITS) -> tuple[Any, Beside | None]:
    """Read a model and, unopened, what a release file holds beside it."""
    header, arrays = read_archive(source, limits)
    beside = header.pop(_BESIDE, None)
    own = {name: array for name, array in arrays.items() if not name.startswith(_BESIDE_PREFIX)}
    others = {n.removeprefix(_BESIDE_PREFIX): array for n, array in arrays.items() if n.startswith(_BESIDE_PREFIX)}
    try:
        if not isinstance(beside, dict | None) or (beside is None and others):
            raise FileFormatError("what it holds beside the model is not an object")
        loader = _loader(header)
        return loader(header, own), None if beside is None else (beside, others)
    except (DiscreetError, KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        # The bytes are sound and the header is JSON, but they do not describe a model.
        reason = str(error) if isinstance(error, DiscreetError) else f"{type(error).__name__}: {error}"
        raise FileFormatError(f"cannot read {shown(source)}: {reason[:_LONGEST_REASON]}") from error


def _loader(header: Mapping[str, Any]) -> Loader:
    if header.get("kind") == MEASUREMENTS:
        raise FileFormatError("it is a file of measurements, not a model; read it with discreet.Measurements.load")
    for key in header:
        if key not in _KEYS:
            raise FileFormatError(f"its header has the unknown key {key[:60]!r}")
    for key in ("domain", "card", "model"):
        if not isinstance(header.get(key), dict | None):
            raise FileFormatError(f"its header has {key} = {str(header[key])[:60]!r}, which is not an object")
    kind = header.get("kind")
    if kind not in _loaders:
        # The families register themselves when they are imported; not at the top, because they import this module.
        importlib.import_module("discreet.models")
    if not isinstance(kind, str) or kind not in _loaders:
        raise FileFormatError(
            f"it holds a {str(kind)[:60]!r}, which is no kind of model{did_you_mean(str(kind), _loaders)}"
        )
    return _loaders[kind]
