"""The same distribution in another form. Every conversion here is exact; where there is none, it says so."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product

import numpy as np
from numpy.typing import NDArray

from ..domain import Clique
from ..errors import InputError
from ..graph import triangulate
from .base import Model
from .bayesian import BayesianNetwork
from .binary import BinaryMRF
from .checks import edges_of
from .ising import IsingModel, check_binary
from .markov import MarkovRandomField
from .pairwise import PairwiseModel


def to_markov(model: Model) -> MarkovRandomField:
    """Any model as potentials on cliques: for a network the families, so the graph is its moral graph."""
    if isinstance(model, MarkovRandomField):
        return model
    return MarkovRandomField(model.domain, model.potentials, model.card)


def to_network(model: Model) -> BayesianNetwork:
    """Any model as a Bayesian network.

    Columns are ordered against an elimination order, and the parents of a column are what it meets when it is
    eliminated. A tree or forest becomes a network with the same edges and at most one parent a column; so does any
    chordal graph keep its edges. Other graphs gain the edges that triangulation fills in. Rows of parents that cannot
    happen are uniform.
    """
    if isinstance(model, BayesianNetwork):
        return model
    domain = model.domain
    tree = triangulate(domain, model.cliques, method="min-fill", tries=1)  # fills nothing in where nothing is needed
    if edges_of(domain, tree.cliques) != edges_of(domain, model.cliques):
        tree = triangulate(domain, model.cliques)
    near: dict[str, set[str]] = {name: set() for name in domain}
    for clique in tree.cliques:
        for name in clique:
            near[name].update(clique)
    parents: dict[str, Clique] = {}
    gone: set[str] = set()
    for name in tree.elimination_order:
        gone.add(name)
        parents[name] = domain.clique(near[name] - gone)
    tables = {name: _conditional(model, parents[name], name) for name in domain}
    return BayesianNetwork(domain, parents, tables, model.card)


def _conditional(model: Model, parents: Clique, name: str) -> NDArray[np.float64]:
    joint = np.asarray(model.marginal((*parents, name), method="exact").probabilities)
    total = joint.sum(axis=-1, keepdims=True)
    out = np.full(joint.shape, 1 / joint.shape[-1])
    np.divide(joint, total, out=out, where=total > 0)
    return out


def to_pairwise(model: Model) -> PairwiseModel:
    """A model whose potentials span at most two columns, as weights and mean fields."""
    if isinstance(model, PairwiseModel):
        return model
    W: dict[tuple[str, str], NDArray[np.float64]] = {}
    Theta = {name: np.zeros(model.domain[name].size) for name in model.domain}
    for clique, values in _finite(model, "a pairwise model"):
        if len(clique) == 1:
            Theta[clique[0]] += values
        elif len(clique) == 2:
            W[clique[0], clique[1]] = values
        elif clique:
            raise InputError(f"the potential on {clique} spans more than two columns, so there is no pairwise form")
    return PairwiseModel(W, Theta, model.domain, model.card)


def to_binary(model: Model) -> BinaryMRF:
    """A model over binary columns as its multilinear polynomial: h̄(I) is the mean of h(x)·Π_{i∈I} x_i."""
    if isinstance(model, BinaryMRF):
        return model
    check_binary(model.domain, "a binary Markov random field")
    coefficients: dict[Clique, float] = {}
    scale: dict[Clique, float] = {}
    for clique, values in _finite(model, "a binary Markov random field"):
        spectrum = _walsh(values)
        for index in product((0, 1), repeat=len(clique)):
            monomial = tuple(name for name, used in zip(clique, index, strict=True) if used)
            coefficients[monomial] = coefficients.get(monomial, 0.0) + float(spectrum[index])
            scale[monomial] = max(scale.get(monomial, 0.0), float(np.abs(values).max()))
    kept = {I: value for I, value in coefficients.items() if abs(value) > 1e-14 * scale[I]}
    return BinaryMRF(kept, model.domain, model.card)


def to_ising(model: Model) -> IsingModel:
    """A model over binary columns with interactions of order at most two, as A and θ."""
    if isinstance(model, IsingModel):
        return model
    h = to_binary(model).polynomial
    if h.order > 2:
        raise InputError(f"the monomial {h.maximal_monomials[-1]} has more than two columns, so there is no Ising form")
    field: Mapping[str, float] = {I[0]: value for I, value in h.items() if len(I) == 1}
    weights = {(I[0], I[1]): value for I, value in h.items() if len(I) == 2}
    return IsingModel.from_edges(weights, field, domain=model.domain, card=model.card)


def _finite(model: Model, what: str) -> list[tuple[Clique, NDArray[np.float64]]]:
    for clique, factor in model.potentials.items():
        if np.isneginf(factor.values).any():
            raise InputError(f"the potential on {clique} has impossible cells, which {what} cannot express")
    return [(clique, factor.values) for clique, factor in model.potentials.items()]


def _walsh(values: NDArray[np.float64]) -> NDArray[np.float64]:
    """Fourier coefficients over {−1, +1}ᵏ, code 0 being −1: on each axis the mean and half the difference."""
    out = values
    for axis in range(values.ndim):
        low, high = np.take(out, 0, axis), np.take(out, 1, axis)
        out = np.stack([low + high, high - low], axis=axis)
    return out / math.prod(values.shape)
