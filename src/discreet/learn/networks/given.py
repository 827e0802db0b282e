"""What learners of Bayesian networks with a public graph share."""

from __future__ import annotations

from dataclasses import dataclass, field

from ...arguments import check_whole
from ...domain import Domain
from ...models.bayesian import BayesianNetwork
from ..checks import TooLarge
from ..graph_input import Graph, materialised
from ..learner import Learner
from .families import LARGEST_FAMILY, Families


@dataclass(frozen=True)
class GivenGraph(Learner[BayesianNetwork]):
    """A learner of the conditional tables of a network whose graph is public.

    Parameters
    ----------
    graph:
        The graph, as :func:`discreet.learn.graph_input.parents_of` understands it.
    largest, too_large:
        Limit on the cells of a family, and what to do about a family that is beyond it: ``"refuse"`` it, or
        ``"coarsen"``: leave out parents, those with most levels first.
    """

    graph: Graph
    largest: int = field(default=LARGEST_FAMILY, kw_only=True)
    too_large: TooLarge = field(default="refuse", kw_only=True)

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "graph", materialised(self.graph))
        check_whole(1, largest=self.largest)

    def families(self, domain: Domain) -> Families:
        """The families of the graph, within the limit on cells."""
        return Families.of(domain, self.graph, largest=self.largest, too_large=self.too_large)
