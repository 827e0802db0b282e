"""Files to models: every format, and every family that a native file can hold.

BIF (networks) and UAI (networks and Markov random fields) know labels (or, UAI, only numbers): what a schema says
beyond that — numbers, missing values, where unforeseen values go — is not there. The native format keeps all of it.
Models write themselves (:meth:`discreet.models.base.Model.save`); to read one, all families must be known.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .domain import Clique, Domain
from .errors import DiscreetError, FileFormatError, InputError, did_you_mean
from .io.archive import read_archive
from .io.atomic import PathLike
from .io.bif import read_bif
from .io.export import BIF, UAI, ending_of
from .io.limits import DEFAULT_LIMITS, Limits
from .io.native import Parts, taken_apart
from .io.network_data import FactorData, NetworkData, Table
from .io.reading import shown
from .io.uai import read_uai
from .models import BayesianNetwork, BinaryMRF, GroupedField, IsingModel, MarkovRandomField, Model, PairwiseModel

FAMILIES: Mapping[str, type[Model]] = {
    family.kind: family
    for family in (IsingModel, PairwiseModel, BinaryMRF, MarkovRandomField, GroupedField, BayesianNetwork)
}
"""By the kind that a native file names."""
_LONGEST_REASON = 500


def open_model(path: PathLike, limits: Limits = DEFAULT_LIMITS) -> Any:
    """The model in a file of any known format, told apart by the ending: ``.bif``, ``.uai``, else native.
    ``open_model("model.zip").ask("P(lung | smoke=yes)")``."""
    ending = ending_of(path)
    if ending == BIF:
        return load_bif(path, limits)
    return load_uai(path, limits) if ending == UAI else load_model(path, limits)


# -- native ------------------------------------------------------------------------------------------------------------


def load_model(source: PathLike | bytes, limits: Limits = DEFAULT_LIMITS) -> Any:
    """Read a native file, which may come from anywhere (see :mod:`.io.archive`); the class follows from it."""
    return load_parts(source, limits)[0]


def load_parts(source: PathLike | bytes, limits: Limits = DEFAULT_LIMITS) -> tuple[Any, Parts | None]:
    """Read a model and, unopened, what a release file holds beside it."""
    archive = read_archive(source, limits)
    try:
        (header, arrays), beside = taken_apart(*archive)
        kind = header.get("kind")
        if not isinstance(kind, str) or kind not in FAMILIES:
            hint = did_you_mean(str(kind), FAMILIES)
            raise FileFormatError(f"it holds a {str(kind)[:60]!r}, which is no kind of model{hint}")
        return FAMILIES[kind].from_archive(header, arrays), beside
    except (DiscreetError, KeyError, TypeError, ValueError, IndexError, AttributeError, OverflowError) as error:
        # The bytes are sound and the header is JSON, but they do not describe a model.
        reason = str(error) if isinstance(error, DiscreetError) else f"{type(error).__name__}: {error}"
        raise FileFormatError(f"cannot read {shown(source)}: {reason[:_LONGEST_REASON]}") from error


# -- of other programs -------------------------------------------------------------------------------------------------


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


def network_from_data(data: NetworkData, card: Mapping[str, Any] | None = None) -> BayesianNetwork:
    """The Bayesian network that a file describes."""
    return BayesianNetwork(Domain.of(data.levels), data.parents, data.tables, card)


def field_from_data(data: FactorData) -> MarkovRandomField:
    """The Markov random field whose potentials are the logarithms of these tables; those over one scope are joined."""
    domain = Domain.of(data.levels)
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
