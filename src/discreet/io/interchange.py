"""Models from and to the files of other programs: BIF for networks, UAI for networks and Markov random fields.

These formats know labels (or, UAI, only numbers): what a schema says beyond that — numbers, missing values, where
unforeseen values go — is not kept. The native format keeps all of it.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..domain import Clique, Domain
from ..errors import FileFormatError, InputError
from ..models import BayesianNetwork, MarkovRandomField, Model
from .atomic import PathLike
from .bif import read_bif, write_bif
from .limits import DEFAULT_LIMITS, Limits
from .native import load_model, save_model
from .network_data import FactorData, NetworkData, Table
from .reading import shown
from .uai import read_uai, write_uai


def load_bif(source: PathLike | bytes, limits: Limits = DEFAULT_LIMITS) -> BayesianNetwork:
    """The network in a BIF file."""
    return network_from_data(read_bif(source, limits))


def save_bif(model: Model, path: PathLike, name: str = "unknown") -> None:
    """Write a network as BIF."""
    if not isinstance(model, BayesianNetwork):
        raise InputError(
            f"BIF holds Bayesian networks, and this is a {type(model).__name__}; convert it first, or use UAI"
        )
    write_bif(network_to_data(model, name), path)


def load_uai(path: PathLike, limits: Limits = DEFAULT_LIMITS) -> BayesianNetwork | MarkovRandomField:
    """The network (BAYES) or the Markov random field (MARKOV) in a UAI file."""
    data = read_uai(path, limits)
    try:
        return network_from_data(data.to_network()) if data.directed else field_from_data(data)
    except (FileFormatError, InputError) as error:
        raise FileFormatError(f"cannot read {shown(path)}: {error}") from None


def save_uai(model: Model, path: PathLike) -> None:
    """Write a model as UAI, with its names in a sidecar: a network as BAYES, any other model as MARKOV.

    UAI tables are not in logarithms: each potential is shifted so that its largest cell is one, which changes the
    normalising constant of a Markov random field and nothing else.
    """
    write_uai(factors_of(model), path)


def open_model(path: PathLike, limits: Limits = DEFAULT_LIMITS) -> Any:
    """The model in a file of any known format, told apart by the ending: ``.bif``, ``.uai``, else native."""
    ending = os.path.splitext(os.fspath(path))[1].lower()
    if ending == ".bif":
        return load_bif(path, limits)
    return load_uai(path, limits) if ending == ".uai" else load_model(path, limits)


def write_model(model: Model, path: PathLike) -> None:
    """Write a model in the format that the ending asks for: ``.bif``, ``.uai``, else native."""
    ending = os.path.splitext(os.fspath(path))[1].lower()
    if ending == ".bif":
        save_bif(model, path)
    elif ending == ".uai":
        save_uai(model, path)
    else:
        save_model(model, path)


# -- between data and models -------------------------------------------------------------------------------------------


def domain_of(levels: Mapping[str, Sequence[str]]) -> Domain:
    """The domain of variables with these labels."""
    return Domain.of(levels)


def network_from_data(data: NetworkData, card: Mapping[str, Any] | None = None) -> BayesianNetwork:
    """The Bayesian network that a file describes."""
    return BayesianNetwork(domain_of(data.levels), data.parents, data.tables, card)


def network_to_data(model: BayesianNetwork, name: str = "unknown") -> NetworkData:
    """A Bayesian network as names, labels and tables."""
    levels = {column: model.domain[column].labels for column in model.domain}
    parents = {column: tuple(model.parents[column]) for column in model.domain}
    return NetworkData(name, levels, parents, {column: model.tables[column] for column in model.domain})


def field_from_data(data: FactorData) -> MarkovRandomField:
    """The Markov random field whose potentials are the logarithms of these tables; those over one scope are joined."""
    domain = domain_of(data.levels)
    potentials: dict[Clique, Table] = {}
    for scope, table in zip(data.scopes, data.tables, strict=True):
        if not table.any():
            raise FileFormatError(f"the table over {scope} is zero everywhere")
        clique = domain.clique(scope)
        if clique:
            with np.errstate(divide="ignore"):
                logs = np.log(np.transpose(table, [scope.index(v) for v in clique]))
            potentials[clique] = potentials[clique] + logs if clique in potentials else logs
    return MarkovRandomField(domain, potentials)  # type: ignore[arg-type]


def factors_of(model: Model) -> FactorData:
    """A model as a product of non-negative tables: the conditional ones of a network, else exponentiated potentials."""
    if isinstance(model, BayesianNetwork):
        return FactorData.from_network(network_to_data(model))
    levels = {column: model.domain[column].labels for column in model.domain}
    factors = list(model.potentials.values())
    scopes = tuple(tuple(factor.domain.names) for factor in factors)
    tables = tuple(np.exp(factor.values - factor.values.max()) for factor in factors)
    return FactorData(False, levels, scopes, tables)
