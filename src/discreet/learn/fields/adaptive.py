"""Nobody knows the graph: a Markov random field whose tables are found in rounds, each asking what the last one missed.

1. The tables of single columns.
2. The *distances* of all pairs from what independent columns would have, all at once: one whole number a pair, Σ|x − r|
   with r public (:class:`~discreet.privacy.queries.distances.Distances`). They cost next to nothing.
3. The tables of a spanning tree of the largest distances.
4. The distances of all pairs from the model so far: what independence hid shows now.
5. The tables that are worth their noise, pairs and single columns, as long as exact inference stays small
   (:mod:`.growth`).
6. The distances of pairs and triples inside the cliques of the junction tree, which cost inference nothing.
7. The tables that are worth their noise, again or for the first time.

Under Gaussian noise tables of several columns are asked for without their margins, as *interactions*, which the same
budget buys with less noise; and in steps 3, 5 and 7 what was measured before gets as much more as it is short
(:mod:`.allocation`). After each round all tables are fitted together (:mod:`.mirror`). With few records steps 2 and 3
ask for single columns, with fewer all do (:mod:`.distance_rounds`). Every decision is made from released numbers and
public sizes.

Guarantee: the budget, for the curator's unit, under add-remove and replace-one alike; see :mod:`..procedure`. Under
(ε, δ) and zCDP all steps are Gaussian noise. Within (ε, δ) they compose as one Gaussian
(:mod:`discreet.privacy.gaussian`), also though what is asked follows from earlier answers. Under pure DP noise is
Laplace's, and the pairs of the tree and of step 5 are selected one by one, because a hundred distances at once would
be a hundred times as noisy.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

from ...arguments import check_whole
from ...domain import Domain
from ...factor import CliqueVector
from ...measurement import Measurements
from ...models.grouped import GroupedField
from ...models.markov import MarkovRandomField
from ...privacy.budget import ApproxDP, Budget, GaussianDP, PureDP
from ...privacy.gaussian import HALF_PI
from ..cards import card_of
from ..checks import as_measurements
from ..consistency import estimated_total
from ..independence import INDEPENDENT
from ..learner import Learner
from ..procedure import Procedure, Whole
from . import forecast
from .distance_rounds import CLEARLY, DistanceRounds
from .grouping import seen_in, shares_within, split_domain
from .purpose import Purpose, Workload, check_workload
from .refits import fits_of_many
from .rounds import Rounds, fitted, most_work
from .selection_rounds import SelectionRounds

METHOD = "adaptive"
WHY = (
    "no table of two columns was worth its noise. More records, a larger budget, or fewer columns and levels would help"
)


@dataclass(frozen=True)
class AdaptiveField(Learner[MarkovRandomField | GroupedField]):
    """Learn a Markov random field when nobody knows the graph; nothing to tune.

    Parameters
    ----------
    most_cells:
        How large the junction tree of the model may be, in cells: memory and time of exact inference.
    triples:
        Whether tables of three columns may be measured (step 7).
    workload:
        Which tables should be right: ``"pairs"``, ``"triples"``, or a list of ``{"columns": […], "weight": w}``. What
        is measured, and with which part of the budget, then serves them (:mod:`.purpose`); None serves all alike.
    target:
        A column to be predicted from the others: tables with it count more.
    groups:
        Whether levels may be taken together where a column has too many of them for the records (:mod:`.grouping`).
    """

    finds_graph: ClassVar[bool] = True
    certified: ClassVar[float] = 0.03
    as_one_gaussian: ClassVar[bool] = True
    at_once: ClassVar[bool] = True

    most_cells: int = 100_000
    triples: bool = True
    workload: Workload = None
    target: str | None = None
    groups: bool = True

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(1, most_cells=self.most_cells)
        check_workload(self.workload)

    def prepare(self, whole: Whole) -> Procedure:
        """Seven steps; under pure DP the number of records, unless it is public, and one that follows from it."""
        domain = whole.domain
        purpose = Purpose(domain, self.workload, self.target)
        share = self.within(domain, whole.budget)
        rounds: Rounds
        if isinstance(share, PureDP):
            rounds = SelectionRounds(whole, share, self.most_cells, purpose, self.groups)
        else:
            rounds = DistanceRounds(whole, share, self.most_cells, purpose, self.triples, self.groups)
            if rounds.too_few and rounds.laplace is not None:  # publicly known: all is pure
                within = whole if isinstance(whole.budget, ApproxDP) else replace(whole, budget=rounds.laplace)
                return self._procedure(within, rounds.laplace, rounds, purpose)
        return self._procedure(whole, share, rounds, purpose)

    def _procedure(self, whole: Whole, share: Budget, rounds: Rounds, purpose: Purpose) -> Procedure:
        looks = bool(rounds.pairs) and not rounds.too_few
        growing = (
            f"Tables are added while the junction tree keeps within {self.most_cells:,} cells; what is asked follows "
            "from what was released before."
        )
        notes = (
            *([growing] if looks else []),
            *([rounds.note] if rounds.pairs else []),
            *([purpose.note] if purpose.note else []),
        )
        steps = rounds.steps() if looks else (rounds.columns_alone(whole, share),)
        gaussian = isinstance(share, GaussianDP)
        return Procedure(METHOD, whole, steps, notes, composition="as one Gaussian" if gaussian else "composed")

    def within(self, domain: Domain, budget: Budget) -> Budget:
        """Under (ε, δ) one Gaussian; ε alone where columns are so few that Laplace noise on all of them and all pairs
        is less. m tables have Laplace noise m/ε and Gaussian noise √(2m/π)/μ in a cell, on average. Where that is so
        (and clearly) of the columns, the share has an ε, too, in case that columns are all that will be asked."""
        within = super().within(domain, budget)
        if not isinstance(budget, ApproxDP) or not isinstance(within, GaussianDP):
            return within

        def is_less(tables: int, clearly: Fraction = Fraction(1)) -> bool:
            return tables * HALF_PI * within.mu_squared <= (clearly * budget.epsilon) ** 2

        if is_less(len(domain) * (len(domain) + 1) // 2):
            return budget.to_pure()
        return GaussianDP(within.mu_squared, budget.epsilon if is_less(len(domain), CLEARLY) else None)

    def pair_error(self, whole: Whole, records: float) -> float:
        purpose = Purpose(whole.domain, self.workload, self.target)
        return forecast.pair_error(whole.domain, whole.unit, self.within(whole.domain, whole.budget), records, purpose)

    def most_work(self, domain: Domain) -> tuple[int, float]:
        """As if the junction tree became as large as it may."""
        return most_work(domain, self.most_cells)

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> MarkovRandomField | GroupedField:
        """The field from all tables; post-processing only."""
        measured = Measurements([m for m in as_measurements(measurements) if m.told_of], dict(measurements.release))
        columns, grouped = split_domain(measured, domain)
        fit = fitted(grouped, seen_in(grouped, measured))
        tables = [list(c) for c in fit.field.cliques if len(c) > 1]
        card = card_of(
            measured,
            METHOD,
            estimated_total(measured),
            inference=fit.field.inference,
            estimation="least squares, as far as the noise allows",
            tables=tables,
        )
        if not tables and len(columns) > 1:
            card.setdefault("caution", f"{INDEPENDENT}: {WHY}")
        return _model(columns, grouped, fit.field.potentials(fit.theta), measured, card)

    def estimates(
        self, many: Sequence[Measurements], domain: Domain | None = None
    ) -> list[MarkovRandomField | GroupedField]:
        """See :mod:`.refits`."""
        measured = [Measurements([m for m in one if m.told_of], dict(one.release)) for one in many]
        columns, grouped = split_domain(measured[0], domain)
        fits = fits_of_many(grouped, [seen_in(grouped, one) for one in measured])
        return [_model(columns, grouped, fit, one, None) for fit, one in zip(fits, measured, strict=True)]


def _model(
    columns: Domain, grouped: Domain, potentials: CliqueVector, measured: Measurements, card: dict[str, Any] | None
) -> MarkovRandomField | GroupedField:
    field = MarkovRandomField(grouped, potentials, card)
    if grouped == columns:
        return field
    return GroupedField(columns, field.with_card(None), shares_within(grouped, measured), card)
