"""A Markov random field behind released tables: with values that are missing at random, and with a hidden class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...count_table import CountTable
from ...domain import Clique, Domain
from ...measurement import Measurements
from ...models.marginals import marginals
from ...models.markov import MarkovRandomField
from ...privacy.query import Marginals
from ..cards import card_of
from ..chains.noise_aware import RIDGE, SAMPLING
from ..checks import as_measurements
from ..consistency import reconciled
from ..fields.learner import Array, FieldLearner, covering, maximal
from ..fields.likelihood import Field
from ..projection import project_table
from .completing import CLASS
from .learner import Behind, Missing, all_sets, shares_of, told

CLIMBED = 8
"""Steps of a maximisation within one of EM: enough to go up, and the next tables are others."""


@dataclass(frozen=True)
class HiddenField(Behind[Array], FieldLearner):
    """Learn a Markov random field with what records do not show (:mod:`.completing`): columns interact in the given
    cliques, and each of them with the class.

    Guarantee: that of the tables that it asks for: the cliques, and where there are classes all sets of ``together``
    columns, without which cliques tell nothing of them. The rest is post-processing.

    Parameters
    ----------
    classes:
        How many hidden classes records fall into; 1: none.
    together:
        Tables of all sets of so many columns tell of the classes.
    missing:
        ``"random"``: a level for missing values stands for any of the other levels, and the model has no such level;
        ``"level"``: it is a level like others.
    iterations:
        Steps of EM at most.
    random_state:
        Of the starts of EM; nothing that protects.
    """

    classes: int = 2
    together: int = 3
    missing: Missing = "level"
    iterations: int = 400
    random_state: int = 0
    method: ClassVar[str] = "hidden"
    passes: ClassVar[int] = 3000

    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_hidden()

    def query(self, domain: Domain) -> Marginals:
        self.hidden(domain)  # what cannot be hidden is said before anything is asked
        more = all_sets(domain, self.together) if self.classes > 1 else []
        return Marginals(domain, maximal(list(dict.fromkeys([*covering(domain, self.cliques), *more]))))

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> MarkovRandomField:
        measured = as_measurements(measurements)
        observed = in_order(measured.domain, domain or measured.domain)
        hidden = self.hidden(observed)
        cliques = maximal(covering(observed, self.cliques))
        if self.classes > 1:
            cliques = (*cliques, *((n, CLASS) for n in observed.names))
        field = Field(hidden.domain, cliques, inference=self.inference, memory_limit=self.memory_limit)
        theta, facts = self._solve(field, measured)
        facts |= self.facts(hidden, measured.cliques, told(hidden.domain, field.cliques))
        card = card_of(measured, self.method, **facts, inference=field.inference)
        model = MarkovRandomField(hidden.domain, field.potentials(theta), card)
        return _largest_first(model) if self.classes > 1 else model

    def _solve(self, field: Field, measurements: Measurements) -> tuple[Array, dict[str, Any]]:
        hidden = self.hidden(in_order(measurements.domain, field.domain))
        tables = [c for c in measurements.cliques if c]
        shares, noise, total = shares_of(measurements, tables)
        whole = {c: hidden.with_class(c) for c in tables}
        homes = {own: [c for c in tables if set(own) <= set(whole[c])] for own in field.cliques}
        ridge = np.full(field.size, max(RIDGE * noise, SAMPLING / total))

        def start(draw: Any) -> Array:
            return np.asarray(draw.normal(size=field.size) * (0.5 if self.classes > 1 else 0.0))

        def step(theta: Array) -> tuple[Array, float]:
            model = MarkovRandomField(field.domain, field.potentials(theta))
            joint = dict(zip(tables, marginals(model, list(whole.values()))[0], strict=True))
            filled: dict[Clique, CountTable] = {}
            fit = 0.0
            for c in tables:
                made, gained = hidden.completed(c, shares[c], joint[c])
                filled[c] = CountTable(whole[c], made)
                fit += gained / len(tables)
            mean = {own: np.mean([filled[c].onto(own).values for c in of], axis=0) for own, of in homes.items()}
            # Tables that are filled in apart disagree about what they share, and no field could follow all of them.
            agreed = reconciled(field.domain, {own: CountTable(own, t, 1.0) for own, t in mean.items()})
            target = field.join({own: project_table(t.values) for own, t in agreed.items()})
            found = field.maximise(target, ridge, start=theta, curvature=target, iterations=CLIMBED)
            return found.theta, fit - 0.5 * float((ridge * found.theta**2).sum())

        return self.likeliest(start, step)

    def checked(self, found: Any, measurements: Measurements) -> Any:
        return found if self.missing == "random" else super().checked(found, measurements)


def in_order(columns: Domain, like: Domain) -> Domain:
    """The columns as they were measured, in the order of others, with their rules where they are the same."""
    if all(n in like and like[n] == columns[n] for n in columns.names) and CLASS not in like:
        return like
    place = {name: i for i, name in enumerate(like.names)}
    return Domain(tuple(sorted(columns.attributes, key=lambda a: place.get(a.name, len(place)))))


def _largest_first(model: MarkovRandomField) -> MarkovRandomField:
    """The same with its classes in the order of how many records they have."""
    order = np.argsort(-model.marginal(CLASS).probabilities, kind="stable")
    tables: dict[Clique, Any] = {
        c: factor.values if CLASS not in c else np.take(factor.values, order, axis=c.index(CLASS))
        for c, factor in model.potentials.items()
    }
    return MarkovRandomField(model.domain, type(model.potentials)(model.domain, tables), model.card)
