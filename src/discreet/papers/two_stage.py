"""[CRJ20] Algorithm 2: budgets that depend on the data, by way of a first private stage on a Poisson sample.

Stage I spends ε^I (a tenth) on a sample of rate β = 0.1, whose amplification lets it use ln((e^{ε^I} − 1)/β + 1) there
(line 1, Lemma 2.1); from its estimates come the errors δ_i (eq. 6), the sensitivities Δ_i (eq. 8–9), the weights
W_i (eq. 7) and the shares of stage II (eq. 10). What the text leaves open is decided here, besides what
:mod:`.compute_parameters` decides:

* *counts in eq. 6* are noisy and may be below one: they count as one record at least;
* *T in eq. 6* are the tables of stage I, on the sample (the paper writes T̂ and T̃): a factor β common to all nodes would
  cancel in eq. 10 anyway;
* *eq. 8 for leaves*, an empty mean, is 0, as the text says below eq. 8;
* *height* (line 7) is the longest directed path down to a leaf.

Amplification is accounted under add-remove and for pure budgets only; otherwise stage I spends its share as it is. As
a matter of algebra eq. 8 holds no data: Σ_y ∂P[Y=y]/∂Θ[x|pa] = P[pa], so Δ_i = mean_Y(1/|dom Y|)/|dom pa_i|.
:func:`sensitivity` computes it from exact derivatives all the same, and the tests check the identity.

Privacy: stage I costs its share on the whole table by amplification, stage II the rest, and the shares of stage II are
post-processing of stage I.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np

from ..errors import InputError
from ..factor import Factor
from ..inference.elimination import eliminate
from ..learn.networks.families import Array, Families
from ..learn.planned import measuring
from ..learn.procedure import Found, Procedure, Step, Whole
from ..measurement import Measurement, Measurements
from ..models.bayesian import BayesianNetwork
from ..privacy.budget import Amount, exact
from ..privacy.calibration import amplified
from ..privacy.requests import Asking
from .compute_parameters import NodeTables, PublishedNetwork, node_requests, node_tables, parameters


@dataclass(frozen=True)
class TwoStageNetwork(PublishedNetwork):
    """Learn a Bayesian network with the data-dependent budgets of [CRJ20]; options as those of
    :class:`PublishedNetwork` (``least_records`` are for stage II), and:

    Parameters
    ----------
    rate:
        β, the rate of the Poisson sample of stage I.
    first_stage:
        ε^I as a part of the whole budget ε^B.
    """

    rate: Amount = 0.1
    first_stage: Amount = 0.1

    method: ClassVar[str] = "two_stage"
    passes: ClassVar[int] = 60

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < exact(self.first_stage, "first_stage") < 1:
            raise InputError(f"first_stage must lie strictly between 0 and 1, got {self.first_stage}")
        if not 0 < exact(self.rate, "rate") <= 1:
            raise InputError(f"rate must lie in (0, 1], got {self.rate}")

    def prepare(self, whole: Whole) -> Procedure:
        """Stage I on a random sample, then stage II, whose shares follow from it: they are shown as ranges, and errors
        at equal shares. Noise intervals from the tables of stage II take its shares as they are."""
        families = self.families(whole.domain)
        rate, part = exact(self.rate, "rate"), exact(self.first_stage, "first_stage")
        first, second = whole.budget.split([part, 1 - part])
        equal: list[Amount] = [1] * len(whole.domain)

        def stage_one(released: Measurements) -> Asking[Found]:
            tables: list[Measurement] = []
            for _, request in node_requests(families, amplified(first, rate, whole.unit), equal, self.noise):
                tables += yield request
            weights = budget_weights(families, node_tables(families, tables))
            return {"shares": {name: w / sum(weights.values()) for name, w in weights.items()}}

        def stage_two(released: Measurements) -> Asking[None]:
            weights: list[Amount] = [Fraction(w) for w in released.found["shares"].values()]
            for _, request in node_requests(families, second, weights, self.noise):
                yield request

        name = f"stage I, on a sample of rate {float(rate):.3g}"
        sample = replace(whole.later(name, first, stage_one, measuring(first), kept=False), rate=rate)
        why = "The shares of stage II depend on stage I; errors are shown for equal shares."
        shown = [whole.measure(n, r, why=why) for n, r in node_requests(families, second, equal, self.noise)]
        rows = [replace(row, share_range=(0.0, float(1 - part) / 2)) for step in shown for row in step.rows]
        tables = Step("stage II", second, tuple(rows), stage_two)
        return Procedure(self.method, whole, (sample, tables), families.notes()).with_cautions()


def budget_weights(families: Families, tables: Mapping[str, NodeTables]) -> dict[str, float]:
    """√(W_i δ_i) for each node: eq. 10 gives shares in proportion to it, as 1/√c_i = √(W_i δ_i)."""
    model = families.network(parameters(families, tables))
    return {
        name: float(np.sqrt(node_weight(model, name) * node_error(model.tables[name], tables[name])))
        for name in families.domain
    }


def node_error(rows: Array, tables: NodeTables) -> float:
    """δ_i of eq. 6: the mean over cells of Θ·√(1/T[pa]² + 1/T[x, pa]²)."""
    family, above = np.maximum(tables.family, 1.0), np.maximum(tables.parents, 1.0)
    return float(np.mean(rows * np.sqrt(1 / above[..., None] ** 2 + 1 / family**2)))


def node_weight(model: BayesianNetwork, name: str) -> float:
    """W_i of eq. 7: (height + 1)·(out-degree + 1)·(sensitivity + 1)."""
    return (height(model, name) + 1) * (len(model.children[name]) + 1) * (sensitivity(model, name) + 1)


def height(model: BayesianNetwork, name: str) -> int:
    """Length of the longest directed path from a node to a leaf."""
    heights: dict[str, int] = {}
    for node in reversed(model.order):
        heights[node] = max((heights[child] + 1 for child in model.children[node]), default=0)
    return heights[name]


def sensitivity(model: BayesianNetwork, name: str) -> float:
    """Δ_i of eq. 8: the mean over cells, children Y and values y of ∂P[Y=y]/∂Θ[x|pa]; 0 for a leaf."""
    children = model.children[name]
    if not children:
        return 0.0
    return float(np.mean([np.mean(child_derivatives(model, name, child)) for child in children]))


def child_derivatives(model: BayesianNetwork, name: str, child: str) -> Array:
    """∂P[child = y]/∂Θ[x|pa] of eq. 9, exactly: axes (*parents, node, child).

    P[Y=y] is a sum of products in which each term holds Θ[x|pa] once, so the derivative is what is left when the
    factor of the node is taken out and its columns are kept.
    """
    above = model.ancestors([child])
    domain = model.domain.project(n for n in model.domain if n in above)
    factors = [
        Factor.from_probabilities(domain.project((*model.parents[n], n)), model.tables[n]) for n in domain if n != name
    ]
    return eliminate(domain, factors, (*model.parents[name], name, child)).factor.exp()
