"""Structural zeros: combinations of levels that the schema calls impossible get no counts and no probability.

All of it is post-processing of noisy tables by public knowledge, so it costs nothing and holds for any guarantee.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..conditions import known
from ..dependencies import Dependency
from ..domain import Clique, Domain
from ..errors import CostError
from ..factor import CliqueVector, Factor, spread
from ..graph import DEFAULT_MEMORY_LIMIT
from ..impossible import Rule
from ..measurement import Measurement, Measurements
from ..models.base import Model
from ..models.bayesian import BayesianNetwork
from ..models.convert import to_markov
from ..models.markov import MarkovRandomField

_MOST_CELLS = 1 << 20
_ROUNDS = 100
_NEAR = 1e-6
_LEAST = 1e-12
"""Of proportional fitting: cells of the table, rounds, the distance at which it stops, and what is taken for zero."""


def impossible_cells(domain: Domain, columns: Clique, rules: tuple[Rule, ...] | None = None) -> NDArray[np.bool_]:
    """True for the cells of a table over these columns that a rule about some of them excludes."""
    out = np.zeros(tuple(domain[name].size for name in columns), dtype=bool)
    for rule in domain.zeros if rules is None else rules:
        if not all(name in columns for name, _ in rule):
            continue
        labels = dict(rule)
        inside = [
            [domain[n].codes[label] for label in labels[n]] if n in labels else range(domain[n].size) for n in columns
        ]
        out[np.ix_(*inside)] = True
    return out


def without_impossible(measurements: Measurements, domain: Domain) -> Measurements:
    """The same tables with zeros where no record can be."""
    if not domain.zeros:
        return measurements
    items = []
    for m in measurements:
        cells = impossible_cells(domain, m.clique) if m.clique else None
        if cells is None or not cells.any() or m.origin == "public":
            items.append(m)
            continue
        counts = np.where(cells, 0, m.counts)
        items.append(Measurement(m.label, counts, m.noise, m.domain, m.clique, m.grid, m.origin, m.cost))
    return Measurements(items, measurements.release)


def enforced(model: Model) -> Model:
    """The model conditioned on nothing impossible having happened.

    A network keeps its graph where every rule is within one of its families, row by row. Otherwise, and for any other
    family, it becomes a Markov random field with potentials of −∞, where every rule holds; unless a network that rules
    tie together would be too wide for exact inference: then it stays one, and its card says which rules it does not
    know. (Records drawn from it keep to them all the same.)
    """
    domain = model.domain
    if not domain.zeros and not domain.dependencies:
        return model
    masks = _masks(model)
    if isinstance(model, BayesianNetwork):
        model, left = _within_families(model, masks)
        if not left:
            return model.with_card(_card(model, len(masks), []))
        field = _conditioned(model, left)
        if field.forecast.bytes > DEFAULT_MEMORY_LIMIT:
            return model.with_card(_card(model, len(masks) - len(left), [mask.text for mask in left]))
        return field.with_card(_card(model, len(masks), []))
    return _conditioned(model, masks).with_card(_card(model, len(masks), []))


@dataclass(frozen=True)
class _Mask:
    """Cells of a table that cannot be, and why."""

    clique: Clique
    cells: NDArray[np.bool_]
    text: str

    def on(self, columns: Clique) -> NDArray[np.bool_]:
        """The cells of a table over these columns, among which its own are."""
        return np.asarray(spread(self.cells.astype(np.float64), self.clique, columns), dtype=bool)


def _masks(model: Model) -> list[_Mask]:
    domain = model.domain
    out = []
    for rule in domain.zeros:
        clique = domain.clique([name for name, _ in rule])
        text = " and ".join(f"{n} in {list(labels)}" for n, labels in rule)
        out.append(_Mask(clique, impossible_cells(domain, clique, (rule,)), text))
    for dependency in domain.dependencies:
        if dependency.kind == "determines":
            clique = domain.clique(dependency.columns)
            out.append(_Mask(clique, _undetermined(model, dependency, clique), str(dependency)))
    return out


def _undetermined(model: Model, dependency: Dependency, clique: Clique) -> NDArray[np.bool_]:
    """All values of the result but the most probable one, for known values of what determines it. It is read off the
    model, and so post-processing."""
    axis = clique.index(dependency.result)
    p = np.asarray(model.marginal(clique).probabilities)
    out: NDArray[np.bool_] = np.arange(p.shape[axis]) != np.moveaxis(p, axis, -1).argmax(axis=-1)[..., None]
    for position, name in enumerate(n for n in clique if n != dependency.result):
        is_known = np.isin(np.arange(model.domain[name].size), list(known(model.domain[name])))
        shape = [1] * out.ndim
        shape[position] = len(is_known)
        out = out & is_known.reshape(shape)
    return np.moveaxis(out, -1, axis)


def _conditioned(model: Model, masks: list[_Mask]) -> MarkovRandomField:
    domain, field = model.domain, to_markov(model)
    potentials: dict[Clique, Any] = {clique: factor.values for clique, factor in field.potentials.items()}
    for mask in masks:
        home = next((c for c in potentials if set(mask.clique) <= set(c)), mask.clique)
        table = potentials.get(home, np.zeros(tuple(domain[n].size for n in home)))
        potentials[home] = np.where(mask.on(home), -np.inf, table)
    factors = CliqueVector.of(domain, (Factor(domain.project(c), table) for c, table in potentials.items()))
    return _with_columns_of(model, MarkovRandomField(domain, factors, model.card))


def _with_columns_of(model: Model, field: MarkovRandomField) -> MarkovRandomField:
    """The field with the columns of sums distributed as in the model.

    A part and its total are often in no family together. That their zeros hold says then nothing of how frequent the
    levels of each are, which was measured: of all distributions that keep to the zeros and have these columns, the one
    nearest to the field is found by proportional fitting. Its factors belong to single columns, so that it is done on
    the table of the columns of a sum; where that is too large, or costs too much, the field stays as it is.
    """
    domain = model.domain
    for dependency in domain.dependencies:
        columns = domain.clique(dependency.columns)
        shape = tuple(domain[name].size for name in columns)
        if dependency.kind != "sum" or np.prod(shape, dtype=float) > _MOST_CELLS:
            continue
        try:
            table = np.asarray(field.marginal(columns).probabilities)
            wanted = [np.asarray(model.marginal((name,)).probabilities) for name in columns]
        except CostError:
            continue
        potentials = dict(field.potentials.items())
        for name, factor in zip(columns, _fitted(table, wanted), strict=True):
            home = next(c for c in potentials if name in c)
            added = spread(np.log(factor), (name,), home)
            potentials[home] = Factor(potentials[home].domain, potentials[home].values + added)
        field = MarkovRandomField(domain, CliqueVector(domain, potentials), model.card)
    return field


def _fitted(table: NDArray[np.float64], wanted: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    """A factor for each axis of a table that give it the sums that are wanted, as far as its zeros allow."""
    factors = [np.ones(n) for n in table.shape]
    table = table.copy()
    for _ in range(_ROUNDS):
        furthest = 0.0
        for axis, goal in enumerate(wanted):
            sums = table.sum(axis=tuple(i for i in range(table.ndim) if i != axis))
            furthest = max(furthest, float(np.abs(sums - goal).sum()))
            step = np.where((sums > _LEAST) & (goal > _LEAST), goal / np.maximum(sums, _LEAST), 1.0)
            factors[axis] *= step
            table *= step.reshape([-1 if i == axis else 1 for i in range(table.ndim)])
        if furthest < _NEAR:
            break
    return factors


def _within_families(model: BayesianNetwork, masks: list[_Mask]) -> tuple[BayesianNetwork, list[_Mask]]:
    """The network with the rules that its families can say, and those that they cannot."""
    tables = {name: np.array(table) for name, table in model.tables.items()}
    left: list[_Mask] = []
    for mask in masks:
        names = set(mask.clique)
        homes = [n for n in model.domain if names <= {n, *model.parents[n]} and n in names]
        whole = bool(homes)
        for child in homes:
            columns = (*model.parents[child], child)
            rows = np.where(mask.on(columns), 0.0, tables[child])
            total = rows.sum(axis=-1, keepdims=True)
            # Where nothing is left of a row, its parents cannot come together, which this table cannot say.
            whole = whole and bool(np.all(total > 0))
            tables[child] = np.where(total > 0, rows / np.where(total > 0, total, 1.0), tables[child])
        if not whole:
            left.append(mask)
    return BayesianNetwork(model.domain, model.parents, tables, model.card), left


def _card(model: Model, held: int, left: list[str]) -> dict[str, Any] | None:
    if model.card is None:
        return None
    return {**model.card, "impossible_enforced": held, **({"impossible_not_enforced": left} if left else {})}
