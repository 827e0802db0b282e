"""[CRJ20] Algorithm 1 (ComputeParameters) with the mutual consistency of its Appendix 8.2.1, as the paper states them.

[CRJ20] Chowdhury, Rekatsinas, Jha, *Data-Dependent Differentially Private Parameter Learning for Directed Graphical
Models*, ICML 2020. What the text leaves open is decided here:

* *roots* (Algorithm 1, line 2): X_pa is empty, so T_pa is the number of records, measured with half the node's budget;
* *negative counts* (line 3): become zero when a table is turned into probabilities;
* *line 4*, "convert T̃_i into M̃_i using T̃_pa": conditional rows T̃_i[x, pa]/T̃_pa[pa] (eq. 3), rescaled to sum to one,
  times the distribution T̃_pa/ΣT̃_pa; an empty row is uniform, and so is an empty T̃_pa;
* *eq. 17–18* work on these marginal tables M̃ (probabilities), weighted by ε_t, over all intersections of families from
  the empty one upwards ("Overall Consistency", steps 1–3); eq. 18 is read for single cells;
* after eq. 18 cells may be negative again: they become zero before line 8 takes conditional rows, and empty rows are
  uniform. As the paper states it, KL(non-private ‖ private) is then infinite in nearly every run; so, unless the
  tables are exact, every cell gets a tenth of a record on top (``least_records``).

Privacy: 2 counting queries a node with half of its share each; L1 sensitivity 1 under add-remove. Under replace-one the
same noise would give 2ε (one cell loses a record and another gains one): the curator doubles it then.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from ..count_table import CountTable
from ..domain import Domain
from ..errors import InputError, counted
from ..learn.checks import as_measurements
from ..learn.networks.families import Array, Families
from ..learn.networks.given import GivenGraph
from ..measurement import Measurement, Measurements
from ..models.bayesian import BayesianNetwork
from ..privacy.budget import Amount, Budget
from ..privacy.calibration import NoiseChoice
from ..privacy.query import Marginals
from ..privacy.requests import Measure

LEAST_RECORDS = 0.1


@dataclass(frozen=True)
class NodeTables:
    """The two noisy tables of a node with axes (*parents, node) and (*parents,), and the weight of its share."""

    family: Array
    parents: Array
    weight: float
    exact: bool = False


def node_requests(
    families: Families, share: Budget, weights: Sequence[Amount], noise: NoiseChoice
) -> Iterator[tuple[str, Measure]]:
    """Lines 1–3: T̃_i and T̃_pa for every node, each with half of the node's share; two measurements a node."""
    for name, part in zip(families.domain, share.split(weights), strict=True):
        family, above = families.cliques[name], families.domain.clique(families.parents[name])
        yield name, Measure(part, Marginals(families.domain, [family, above]), noise)


def node_tables(families: Families, measured: Sequence[Measurement]) -> dict[str, NodeTables]:
    """Pair up what :func:`node_requests` asks for; the weight ε_t of eq. 17 is one over the noise's scale."""
    if len(measured) != 2 * len(families.domain):
        raise InputError(
            f"{counted(2 * len(families.domain), 'table')} are needed, two a column, as measure(curator) gives them; "
            f"got {len(measured)}. The paper's methods make no use of further or public tables; OptimalNetwork does"
        )
    out = {}
    for i, name in enumerate(families.domain):
        family, above = measured[2 * i], measured[2 * i + 1]
        if family.clique != families.cliques[name] or above.clique != families.domain.clique(families.parents[name]):
            raise InputError(f"the tables of {name!r} are not where they should be; keep the order of the measurements")
        scale = family.noise.scale
        out[name] = NodeTables(
            families.table(name, family.as_table()).values,
            above.as_table().onto(families.parents[name]).values,
            1 / scale if scale else 1.0,
            family.noise.variance == 0,
        )
    return out


def parameters(
    families: Families, tables: Mapping[str, NodeTables], least_records: float = LEAST_RECORDS
) -> dict[str, Array]:
    """Lines 4–9: conditional tables of all nodes; noisy cells get ``least_records`` on top."""
    scopes = {name: (*families.parents[name], name) for name in families.domain}
    marginals = [CountTable(scope, _marginal(tables[name])) for name, scope in scopes.items()]
    weights = [tables[name].weight for name in scopes]
    records = records_of(tables)
    out = {}
    for name, agreed in zip(scopes, mutual_consistency(families.domain, marginals, weights), strict=True):
        least = 0.0 if tables[name].exact else least_records / records
        out[name] = _uniform_where_empty(np.maximum(agreed.values, 0.0) + least)
    return out


def records_of(tables: Mapping[str, NodeTables]) -> float:
    """The number of records as far as the noisy tables tell: the mean of their totals, at least 1."""
    return max(float(np.mean([t.family.sum() for t in tables.values()])), 1.0)


def _marginal(tables: NodeTables) -> Array:
    """Line 4: T̃_i and T̃_pa → M̃_i."""
    family, above = np.maximum(tables.family, 0.0), np.maximum(tables.parents, 0.0)
    # Rows of T̃_i/T̃_pa rescaled to one do not depend on T̃_pa: it decides how much each row weighs.
    rows = _uniform_where_empty(family)
    weight = above / above.sum() if above.sum() > 0 else np.full(above.shape, 1 / above.size)
    return np.asarray(weight[..., None] * rows)


def _uniform_where_empty(table: Array) -> Array:
    total = table.sum(axis=-1, keepdims=True)
    return np.where(total > 0, table / np.where(total > 0, total, 1.0), 1 / table.shape[-1])


def mutual_consistency(domain: Domain, tables: Sequence[CountTable], weights: Sequence[float]) -> list[CountTable]:
    """Appendix 8.2.1: eq. 17 and 18 for every intersection of tables, from the empty set upwards."""
    out = list(tables)
    sets = [frozenset(t.clique) for t in tables]
    closed = {frozenset[str]()}
    for s in dict.fromkeys(sets):
        closed |= {s & other for other in closed} | {s}
    for shared in sorted((domain.clique(s) for s in closed), key=lambda c: (len(c), [domain.index(n) for n in c])):
        holders = [i for i, t in enumerate(out) if t.holds(shared)]
        if len(holders) < 2:
            continue
        margins = [out[i].onto(shared).values for i in holders]
        used = np.array([weights[i] for i in holders])
        mean = sum(w * m for w, m in zip(used, margins, strict=True)) / used.sum()  # eq. 17
        for i, margin in zip(holders, margins, strict=True):
            out[i] = out[i].plus_evenly(CountTable(shared, mean - margin))  # eq. 18
    return out


@dataclass(frozen=True)
class PublishedNetwork(GivenGraph):
    """What the learners of the paper share.

    ``noise="auto"`` is Laplace noise for a pure budget, as in the paper, and whichever is smaller otherwise.
    ``least_records`` on top of every noisy cell keep probabilities above zero; the paper's own text means 0.
    """

    noise: NoiseChoice = "auto"
    least_records: float = LEAST_RECORDS

    method: ClassVar[str]

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 <= self.least_records < math.inf:
            raise InputError(f"least_records is a number of records of at least 0, got {self.least_records!r}")

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> BayesianNetwork:
        """From the tables of :meth:`measure`, in their order; post-processing only."""
        measured = as_measurements(measurements)
        families = self.families(domain or measured.domain)
        nodes = node_tables(families, measured)
        tables = parameters(families, nodes, self.least_records)
        facts = {"shares": measured.found["shares"]} if "shares" in measured.found else {}
        return families.network(tables, families.card(measured, self.method, records_of(nodes), **facts))
