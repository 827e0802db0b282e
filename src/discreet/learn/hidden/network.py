"""Latent classes: a hidden class, given which all columns are independent; learned from tables of two or three."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...domain import Domain
from ...errors import InputError
from ...measurement import Measurements
from ...models.bayesian import BayesianNetwork
from ...privacy.calibration import NoiseChoice
from ...privacy.query import Marginals
from ...privacy.requests import Measure
from ..cards import card_of
from ..checks import as_measurements
from ..fields.learner import Array
from ..learner import Learner
from ..planned import advice, noisy
from ..procedure import Procedure, Whole
from ..shares import allocate
from .completing import CLASS
from .field import in_order
from .learner import Behind, Missing, all_sets, shares_of

SMOOTHING = 0.5
"""Added to every cell of a conditional table: records, or as many deviations of the noise in a cell of the tables."""
Parameters = tuple[Array, dict[str, Array]]


@dataclass(frozen=True)
class HiddenNetwork(Behind[Parameters], Learner[BayesianNetwork]):
    """Learn P(class)·Π P(column | class), the class hidden, by EM over noisy tables (:mod:`.completing`).

    Guarantee: the budget, by the sensitivity of tables of all sets of ``together`` columns.

    Parameters
    ----------
    classes:
        How many hidden classes records fall into; 1: none, and all columns are independent.
    together:
        Tables of all sets of so many columns are asked for. Three tell classes apart that two do not, and have more
        noise.
    missing:
        ``"random"``: a level for missing values stands for any of the other levels, and the model has no such level;
        ``"level"``: it is a level like others.
    noise:
        ``"laplace"``, ``"gaussian"`` or ``"auto"``: the one with less error for the budget.
    iterations:
        Steps of EM at most.
    random_state:
        Of the starts of EM; nothing that protects.
    """

    classes: int = 2
    together: int = 3
    missing: Missing = "level"
    noise: NoiseChoice = "auto"
    iterations: int = 400
    random_state: int = 0
    method: ClassVar[str] = "hidden"

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_hidden()

    def prepare(self, whole: Whole) -> Procedure:
        self.hidden(whole.domain)  # what cannot be hidden is said before anything is asked
        query = Marginals(whole.domain, all_sets(whole.domain, self.together))
        found = allocate(query, whole.unit, whole.budget, self.noise)
        request = Measure(whole.budget, query, found.noise, found.weights)
        step = whole.measure(f"tables of {min(self.together, len(whole.domain))} columns", request, why=found.why)
        return Procedure(self.method, whole, (step,), advice(noisy(step.rows, whole.size)))

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> BayesianNetwork:
        measured = as_measurements(measurements)
        observed = measured.domain if domain is None else in_order(measured.domain, domain)
        hidden = self.hidden(observed)
        tables = [c for c in measured.cliques if c]
        if set(observed.names) - {n for c in tables for n in c}:
            raise InputError("every column must be in a measured table")
        shares, deviation, total = shares_of(measured, tables)
        least = SMOOTHING * max(1 / total, deviation)

        def start(draw: Any) -> Parameters:
            sizes = {n: hidden.domain[n].size for n in observed.names}
            return np.full(self.classes, 1 / self.classes), {
                n: draw.dirichlet(np.full(k, 3.0), self.classes).T for n, k in sizes.items()
            }

        def step(state: Parameters) -> tuple[Parameters, float]:
            weight, given = state
            classes, columns, fit = np.zeros_like(weight), {n: np.zeros_like(t) for n, t in given.items()}, 0.0
            for c in tables:
                joint = _joint(weight, [given[n] for n in c])
                made, gained = hidden.completed(c, shares[c], joint if self.classes > 1 else joint[..., 0])
                made, fit = made.reshape(joint.shape), fit + gained / len(tables)
                classes += made.sum(axis=tuple(range(len(c))))
                for i, n in enumerate(c):
                    columns[n] += made.sum(axis=tuple(k for k in range(len(c)) if k != i))
            often = {n: sum(n in c for c in tables) for n in given}
            fresh = {n: t / often[n] + least / self.classes for n, t in columns.items()}
            classes = classes / len(tables) + least
            return (classes / classes.sum(), {n: t / t.sum(axis=0) for n, t in fresh.items()}), fit

        (weight, given), facts = self.likeliest(start, step)
        order = np.argsort(-weight, kind="stable")  # the largest class first
        numbers = self.classes - 1 + sum(self.classes * (len(t) - 1) for t in given.values())
        card = card_of(measured, self.method, total, **facts, **self.facts(hidden, tables, numbers))
        one = {n: t[:, order].T for n, t in given.items()}
        if self.classes == 1:
            return BayesianNetwork(hidden.domain, dict.fromkeys(one, ()), {n: t[0] for n, t in one.items()}, card)
        parents: dict[str, tuple[str, ...]] = dict.fromkeys(one, (CLASS,))
        return BayesianNetwork(hidden.domain, {**parents, CLASS: ()}, {**one, CLASS: weight[order]}, card)

    def checked(self, found: Any, measurements: Measurements) -> Any:
        return found if self.missing == "random" else super().checked(found, measurements)


def _joint(weight: Array, given: list[Array]) -> Array:
    """P(columns, class), the class last."""
    out = weight
    for k, table in enumerate(given):
        out = out[..., None, :] * table.reshape((1,) * k + table.shape)
    return np.asarray(out)
