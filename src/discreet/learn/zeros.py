"""Structural zeros: combinations of levels that the schema calls impossible get no counts and no probability.

All of it is post-processing of noisy tables by public knowledge, so it costs nothing and holds for any guarantee.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..domain import Clique, Domain
from ..factor import CliqueVector, Factor
from ..impossible import Rule
from ..measurement import Measurement, Measurements
from ..models.base import Model
from ..models.bayesian import BayesianNetwork
from ..models.convert import to_markov
from ..models.markov import MarkovRandomField


def impossible_cells(domain: Domain, columns: Clique, rules: tuple[Rule, ...] | None = None) -> NDArray[np.bool_]:
    """True for the cells of a table over these columns that a rule about some of them excludes."""
    out = np.zeros(tuple(domain[name].size for name in columns), dtype=bool)
    for rule in domain.impossible if rules is None else rules:
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
    if not domain.impossible:
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
    """The model conditioned on nothing impossible having happened, as far as its family can say so.

    A network keeps its graph: rules within a family are enforced, row by row; others are not, and the card says which.
    Any other model becomes a Markov random field with potentials of −∞, where every rule holds.
    """
    domain = model.domain
    if not domain.impossible:
        return model
    if isinstance(model, BayesianNetwork):
        return _enforced_network(model)
    field = to_markov(model)
    potentials: dict[Clique, Any] = {clique: factor.values for clique, factor in field.potentials.items()}
    for rule in domain.impossible:
        clique = domain.clique([name for name, _ in rule])
        home = next((c for c in potentials if set(clique) <= set(c)), clique)
        table = potentials.get(home, np.zeros(tuple(domain[n].size for n in home)))
        potentials[home] = np.where(impossible_cells(domain, home, (rule,)), -np.inf, table)
    factors = CliqueVector.of(domain, (Factor(domain.project(c), table) for c, table in potentials.items()))
    return MarkovRandomField(domain, factors, _card(model, len(domain.impossible), []))


def _enforced_network(model: BayesianNetwork) -> BayesianNetwork:
    tables = {name: np.array(table) for name, table in model.tables.items()}
    left: list[Rule] = []
    for rule in model.domain.impossible:
        names = {name for name, _ in rule}
        homes = [n for n in model.domain if names <= {n, *model.parents[n]} and n in names]
        if not homes:
            left.append(rule)
        for child in homes:
            columns = (*model.parents[child], child)
            rows = np.where(impossible_cells(model.domain, columns, (rule,)), 0.0, tables[child])
            total = rows.sum(axis=-1, keepdims=True)
            # Where nothing is left of a row, its parents cannot come together, which this table cannot say.
            tables[child] = np.where(total > 0, rows / np.where(total > 0, total, 1.0), tables[child])
    card = _card(model, len(model.domain.impossible) - len(left), left)
    return BayesianNetwork(model.domain, model.parents, tables, card)


def _card(model: Model, held: int, left: list[Rule]) -> dict[str, Any] | None:
    if model.card is None:
        return None
    facts: dict[str, Any] = {"impossible_enforced": held}
    if left:
        facts["impossible_not_enforced"] = [" and ".join(f"{n} in {list(ls)}" for n, ls in rule) for rule in left]
    return {**model.card, **facts}
