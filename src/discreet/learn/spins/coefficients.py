"""Coefficients h̄(I) of a field of spins: the model that they make, and public bounds on them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ...arguments import check_positive, check_whole
from ...domain import Clique, Domain
from ...errors import InputError
from ...models.base import Model
from ...models.binary import BinaryMRF
from ...models.ising import IsingModel, check_binary

SpinModel = IsingModel | BinaryMRF
Coefficients = dict[Clique, float]


def check_bounds(width: float | None = None, min_weight: float = 0.0, max_edges: int | None = None) -> None:
    """Public bounds on a field: its width, the least weight of an interaction, and how many there are."""
    check_positive(or_none=True, width=width)
    check_whole(0, or_none=True, max_edges=max_edges)
    if not 0 <= min_weight < float("inf"):
        raise InputError(f"min_weight must be a finite number of at least 0, got {min_weight}")


def order_in(domain: Domain, order: int) -> int:
    """The order of a field on these columns, which must have two levels each: no more than there are columns."""
    check_binary(domain, "an Ising model" if order == 2 else "a field of spins")
    return min(order, len(domain))


def spin_model(order: int, coefficients: Mapping[Clique, float], domain: Domain, card: Mapping[str, Any]) -> SpinModel:
    """An Ising model up to order 2, a binary field beyond."""
    if order > 2:
        return BinaryMRF(dict(coefficients), domain, card)
    pairs = {(I[0], I[1]): value for I, value in coefficients.items() if len(I) == 2}
    alone = {I[0]: value for I, value in coefficients.items() if len(I) == 1}
    return IsingModel.from_edges(pairs, alone, domain=domain, card=card)


def coefficients_of(model: Model) -> Coefficients:
    """The inverse of :func:`spin_model`."""
    if isinstance(model, BinaryMRF):
        return dict(model.coefficients)
    assert isinstance(model, IsingModel)
    alone: Coefficients = {(name,): float(value) for name, value in zip(model.domain.names, model.theta, strict=True)}
    joint: Coefficients = {pair: float(value) for pair, value in model.edge_strength().items()}
    return alone | joint


def within_width(coefficients: Mapping[Clique, float], width: float | None) -> Coefficients:
    """Scale down what is wider than λ at a column, Σ_{I∋i} |h̄(I)|: each coefficient by the strictest of its columns."""
    total: dict[str, float] = {}
    for I, value in coefficients.items():
        for name in I:
            total[name] = total.get(name, 0.0) + abs(value)
    if width is None:
        return dict(coefficients)
    factor = {name: min(1.0, width / at) if at > 0 else 1.0 for name, at in total.items()}
    return {I: value * min(factor[name] for name in I) for I, value in coefficients.items()}


def largest(coefficients: Mapping[Clique, float], most: int | None, least: float) -> Coefficients:
    """All single columns, and the ``most`` largest interactions of those of at least ``least``/2."""
    joint = [I for I, value in coefficients.items() if len(I) > 1 and abs(value) >= least / 2]
    kept = set(sorted(joint, key=lambda I: -abs(coefficients[I]))[:most])
    return {I: value for I, value in coefficients.items() if len(I) == 1 or I in kept}


def sup_error(model: IsingModel, truth: IsingModel) -> float:
    """max |Â_ij − A_ij|, the error of the paper's Definition 2.10."""
    return float(np.abs(model.A - truth.A).max(initial=0.0))
