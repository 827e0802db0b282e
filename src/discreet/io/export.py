"""Models to files, in the format that the ending asks for. What is written is plain data, which every model can say of
itself; no class of models is known here.

BIF (networks) and UAI (networks and Markov random fields) are for other programs. They know labels (or, UAI, only
numbers): what a schema says beyond that — numbers, missing values, where unforeseen values go — is not kept, and
neither is the card. The native format keeps all of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar, Protocol, TypeGuard

import numpy as np

from ..domain import Domain
from ..errors import InputError
from .atomic import PathLike
from .bif import write_bif
from .native import Archivable, check_release, save_model
from .network_data import FactorData, NetworkData, Table
from .uai import write_uai

NATIVE, BIF, UAI = ".zip", ".bif", ".uai"


class Written(Archivable, Protocol):
    """What a model says of itself to be written."""

    kind: ClassVar[str]

    @property
    def domain(self) -> Domain: ...

    @property
    def card(self) -> Mapping[str, Any] | None: ...

    @property
    def potentials(self) -> Mapping[Any, Any]: ...


class WrittenNetwork(Written, Protocol):
    """What a network says besides."""

    @property
    def parents(self) -> Mapping[str, tuple[str, ...]]: ...

    @property
    def tables(self) -> Mapping[str, Table]: ...


def ending_of(path: PathLike) -> str:
    """The ending of a file name in small letters."""
    return os.path.splitext(os.fspath(path))[1].lower()


def check_ending(path: PathLike) -> str:
    """The ending of a file that a model can be written to; for all others an error."""
    ending = ending_of(path)
    if ending not in (NATIVE, BIF, UAI):
        raise InputError(
            f"cannot tell the format of {os.fspath(path)!r} by its ending {ending!r}; give it the ending {NATIVE} (the "
            f"native format, which keeps everything), {BIF} (Bayesian networks) or {UAI}"
        )
    return ending


def write_model(model: Written, path: PathLike) -> None:
    """Write a model in the format that the ending asks for: ``.zip`` (native), ``.bif`` or ``.uai``."""
    ending = check_ending(path)
    if ending == NATIVE:
        save_model(model, path)
        return
    write = save_bif if ending == BIF else save_uai
    check_release(model.card)
    if "budget" in (model.card or {}):
        raise InputError(
            f"a {ending} file has no room for the release card of this model, which says what is protected and what it "
            f"cost. Save it as {NATIVE}, or write the numbers alone with discreet.io.export.{write.__name__}"
        )
    write(model, path)


def save_bif(model: Written, path: PathLike, name: str = "unknown") -> None:
    """Write a network as BIF. The card is left behind: publish it beside the file if the model is a release."""
    check_release(model.card)
    if not _is_network(model):
        raise InputError(
            f"BIF holds Bayesian networks, and this is a {type(model).__name__}; convert it first, or use UAI"
        )
    write_bif(network_to_data(model, name), path)


def save_uai(model: Written, path: PathLike) -> None:
    """Write a model as UAI, with its names in a sidecar: a network as BAYES, any other model as MARKOV.

    UAI tables are not in logarithms: each potential is shifted so that its largest cell is one, which changes the
    normalising constant of a Markov random field and nothing else. The card is left behind: publish it beside the file
    if the model is a release.
    """
    check_release(model.card)
    write_uai(factors_of(model), path)


def _is_network(model: Written) -> TypeGuard[WrittenNetwork]:
    return model.kind == "bayesian"


def network_to_data(model: WrittenNetwork, name: str = "unknown") -> NetworkData:
    """A Bayesian network as names, labels and tables."""
    levels = {column: model.domain[column].labels for column in model.domain}
    parents = {column: tuple(model.parents[column]) for column in model.domain}
    return NetworkData(name, levels, parents, {column: model.tables[column] for column in model.domain})


def factors_of(model: Written) -> FactorData:
    """A model as a product of non-negative tables: the conditional ones of a network, else exponentiated potentials."""
    if _is_network(model):
        return FactorData.from_network(network_to_data(model))
    levels = {column: model.domain[column].labels for column in model.domain}
    factors = list(model.potentials.values())
    scopes = tuple(tuple(factor.domain.names) for factor in factors)
    tables = tuple(np.exp(factor.values - factor.values.max()) for factor in factors)
    return FactorData(False, levels, scopes, tables)
