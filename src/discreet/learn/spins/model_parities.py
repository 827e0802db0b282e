"""E Π_{i∈I} z_i under a field of spins: by enumeration up to 20 columns, beyond by chains or from records drawn."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ...domain import Clique
from ...models.base import Model
from ...models.ising import IsingModel
from .coefficients import coefficients_of
from .enumeration import MOST_COLUMNS, positions
from .likelihood import family_of, parities_of_records
from .pairs import parities_by_chains

_RECORDS = 20_000


def model_parities(model: Model, monomials: tuple[Clique, ...], random_state: int = 0) -> NDArray[np.float64]:
    """Of these monomials, which hold at least one column each."""
    domain = model.domain
    if len(domain) <= MOST_COLUMNS:
        coefficients = coefficients_of(model)
        family = family_of(domain, tuple(coefficients))
        spectrum = family.spectrum(family.distribution(np.array(list(coefficients.values())))[0])
        return np.asarray(spectrum[family_of(domain, monomials).masks])
    if isinstance(model, IsingModel) and all(len(I) <= 2 for I in monomials):
        single, double = parities_by_chains(model.A, model.theta, random_state)
        at = positions(domain.names, monomials)
        return np.array([single[I[0]] if len(I) == 1 else double[I[0], I[1]] for I in at])
    records = np.asarray(model.sample(_RECORDS, random_state, labels=True).codes, dtype=np.int64)
    return parities_of_records(domain, monomials, records)
