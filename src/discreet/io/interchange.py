"""Models from and to the files of other programs: BIF for networks, UAI for networks and Markov random fields.

These formats know labels (or, UAI, only numbers): what a schema says beyond that — numbers, missing values, where
unforeseen values go — is not kept. The native format keeps all of it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..domain import Clique, Domain
from ..errors import FileFormatError, InputError
from ..models import BayesianNetwork, MarkovRandomField
from .atomic import PathLike
from .bif import read_bif
from .export import BIF, UAI, ending_of
from .export import factors_of as factors_of
from .export import network_to_data as network_to_data
from .export import save_bif as save_bif
from .export import save_uai as save_uai
from .export import write_model as write_model
from .limits import DEFAULT_LIMITS, Limits
from .native import load_model
from .network_data import FactorData, NetworkData, Table
from .reading import shown
from .uai import read_uai


def load_bif(source: PathLike | bytes, limits: Limits = DEFAULT_LIMITS) -> BayesianNetwork:
    """The network in a BIF file."""
    return network_from_data(read_bif(source, limits))


def load_uai(path: PathLike, limits: Limits = DEFAULT_LIMITS) -> BayesianNetwork | MarkovRandomField:
    """The network (BAYES) or the Markov random field (MARKOV) in a UAI file."""
    data = read_uai(path, limits)
    try:
        return network_from_data(data.to_network()) if data.directed else field_from_data(data)
    except (FileFormatError, InputError) as error:
        raise FileFormatError(f"cannot read {shown(path)}: {error}") from None


def open_model(path: PathLike, limits: Limits = DEFAULT_LIMITS) -> Any:
    """The model in a file of any known format, told apart by the ending: ``.bif``, ``.uai``, else native.
    ``open_model("model.zip").ask("P(lung | smoke=yes)")``."""
    ending = ending_of(path)
    if ending == BIF:
        return load_bif(path, limits)
    return load_uai(path, limits) if ending == UAI else load_model(path, limits)


# -- between data and models -------------------------------------------------------------------------------------------


def domain_of(levels: Mapping[str, Sequence[str]]) -> Domain:
    """The domain of variables with these labels."""
    return Domain.of(levels)


def network_from_data(data: NetworkData, card: Mapping[str, Any] | None = None) -> BayesianNetwork:
    """The Bayesian network that a file describes."""
    return BayesianNetwork(domain_of(data.levels), data.parents, data.tables, card)


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
