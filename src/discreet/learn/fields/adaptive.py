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

After each round all tables are fitted together (:mod:`.mirror`). Every decision is made from released numbers and
public sizes.

Guarantee: the budget, for the curator's unit, under add-remove and replace-one alike; see :mod:`..procedure`. Under
(ε, δ) and zCDP all steps are Gaussian noise. Within (ε, δ) they compose as one Gaussian
(:mod:`discreet.privacy.gaussian`), also though what is asked follows from earlier answers. Under pure DP noise is
Laplace's, and the pairs of the tree and of step 5 are selected one by one, because a hundred distances at once would
be a hundred times as noisy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from ...arguments import check_whole
from ...domain import Clique, Domain
from ...measurement import Measurements
from ...models.markov import MarkovRandomField
from ...privacy.budget import ApproxDP, Budget, GaussianDP, PureDP
from ..cards import card_of
from ..checks import as_measurements
from ..consistency import estimated_total
from ..learner import Learner
from ..procedure import Procedure, Step, Whole
from . import rounds
from .distance_rounds import DistanceRounds
from .growth import Prices
from .purpose import Purpose, Workload, check_workload
from .rounds import fitted
from .selection_rounds import SelectionRounds

METHOD = "adaptive"


@dataclass(frozen=True)
class AdaptiveField(Learner[MarkovRandomField]):
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
    """

    finds_graph: ClassVar[bool] = True
    certified: ClassVar[float] = 0.03
    as_one_gaussian: ClassVar[bool] = True

    most_cells: int = 100_000
    triples: bool = True
    workload: Workload = None
    target: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(1, most_cells=self.most_cells)
        check_workload(self.workload)

    def prepare(self, whole: Whole) -> Procedure:
        """Seven steps; under pure DP the number of records, unless it is public, and one that follows from it."""
        domain, budget = whole.domain, whole.budget
        purpose = Purpose(domain, self.workload, self.target)
        within = budget.to_gaussian() if isinstance(budget, ApproxDP) else None
        share: Budget = within or budget
        steps: tuple[Step, ...]
        if len(domain) == 1:
            prices = Prices(domain, whole.unit, share, purpose)
            steps = (whole.measure("table of the column", prices.request([domain.names])),)
        elif isinstance(budget, PureDP):
            steps = SelectionRounds(whole, budget, self.most_cells, purpose).steps()
        else:
            steps = DistanceRounds(whole, share, self.most_cells, purpose, self.triples).steps()
        notes = (
            f"Tables are added while the junction tree keeps within {self.most_cells:,} cells; what is asked follows "
            "from what was released before.",
            *([purpose.note] if purpose.note else []),
        )
        all_gaussian = isinstance(share, GaussianDP)
        return Procedure(METHOD, whole, steps, notes, composition="as one Gaussian" if all_gaussian else "composed")

    def wanted(self, domain: Domain) -> dict[Clique, float]:
        return Purpose(domain, self.workload, self.target).sets

    def most_work(self, domain: Domain) -> tuple[int, float]:
        """As if the junction tree became as large as it may."""
        return rounds.most_work(domain, self.most_cells)

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> MarkovRandomField:
        """The field from all tables; post-processing only."""
        measured = Measurements([m for m in as_measurements(measurements) if m.clique], dict(measurements.release))
        columns = domain or measured.domain
        fit = fitted(columns, measured)
        card = card_of(
            measured,
            METHOD,
            estimated_total(measured),
            inference=fit.field.inference,
            estimation="least squares, as far as the noise allows",
            tables=[list(c) for c in fit.field.cliques if len(c) > 1],
        )
        return MarkovRandomField(columns, fit.field.potentials(fit.theta), card)
