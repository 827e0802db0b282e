"""What every learner is: a value whose fields are its options, with two things to say.

``prepare`` says what it will ask, from public things alone; ``estimate`` makes the model of what was released. The rest
follows: a plan is a prepared procedure, measuring is running it, fitting is both.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import ClassVar, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from ..domain import Domain
from ..measurement import Measurements
from ..models.base import Model
from ..privacy.budget import ApproxDP, Budget
from ..privacy.curator import Curator
from ..privacy.unit import PrivacyUnit
from .checks import check_curator, check_types, require_found
from .independence import with_independence
from .procedure import Procedure, Whole
from .self_check import with_self_check, without_self_check

Result = TypeVar("Result")


class Learner(ABC, Generic[Result]):
    """From a curator, or from what one released, to a model (or, for learners of structure, to a graph).

    A dataclass, whose fields are its options.
    """

    finds_graph: ClassVar[bool] = False
    """Whether it finds the graph privately: noise intervals then take it as it is."""
    refits: ClassVar[bool] = True
    """Whether noisy sums alone determine the model, so that anybody can learn it again from them."""
    certified: ClassVar[float] = 0.0
    """Which part of the budget buys a certificate of fit (:mod:`.certifying`), unless somebody says otherwise."""
    as_one_gaussian: ClassVar[bool] = False
    """Whether all its steps may be Gaussian under (ε, δ): it can then be prepared with a share of the μ² within."""
    at_once: ClassVar[bool] = False
    """Whether :meth:`estimates` is much faster than as many times :meth:`estimate`."""
    passes: ClassVar[int] = 100
    """About how often estimating goes through the whole graph, for forecasts of time."""

    def __post_init__(self) -> None:
        """Its options are of the kinds that its fields say; what numbers may be, a learner says itself."""
        check_types(self)

    @abstractmethod
    def prepare(self, whole: Whole) -> Procedure:
        """What will be asked, and for how much: of public things only, which ``whole`` holds."""

    @abstractmethod
    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> Result:
        """The model from what was released; post-processing, which costs nothing."""

    def estimates(self, many: Sequence[Measurements], domain: Domain | None = None) -> list[Result]:
        """A model of each of several sets of the same sums with other noise, as noise intervals ask for; without a
        card. Whoever has a faster way than one after the other says so in ``at_once``."""
        return [self.estimate(one, domain) for one in many]

    def expected(self, measurements: Measurements) -> Callable[[Model], list[NDArray[np.float64]]] | None:
        """What a model expects of each measurement, for noise intervals of sums that are no contingency tables; None
        where all of them are."""
        return None

    def within(self, domain: Domain, budget: Budget) -> Budget:
        """The budget in the notion that its steps, and a certificate with them, add up in. It can be prepared with a
        share of that, too."""
        gaussian = budget.to_gaussian() if self.as_one_gaussian and isinstance(budget, ApproxDP) else None
        return gaussian or budget

    def uncertifiable(self) -> str:
        """Why there can be no certificate of fit for its models; "" where there can."""
        return ""

    def most_work(self, domain: Domain) -> tuple[int, float] | None:
        """Bytes and seconds that learning takes at most, besides reading the rows, where they follow from the columns
        alone; None where a forecast goes by what the procedure shows."""
        return None

    def pair_error(self, whole: Whole, records: float) -> float | None:
        """About how far pairs of columns will be from so many records, in total variation and on average, where that
        does not follow from tables that are known before; None where it does."""
        return None

    def compared(self, domain: Domain) -> int:
        """How many candidates a private search compares, for forecasts of time; 0 for learners that do not search."""
        return 0

    def plan(
        self,
        domain: Domain,
        unit: PrivacyUnit,
        budget: Budget,
        approximate_size: float | None = None,
        public_size: int | None = None,
    ) -> Procedure:
        """What would be asked, to be printed: the very procedure that :meth:`fit` runs."""
        return self.prepare(Whole(require_found(domain), unit, budget, public_size, approximate_size))

    def measure(self, curator: Curator, share: Budget | None = None) -> Measurements:
        """Ask the curator, with ``share`` or all that remains. Guarantee: the share; see :mod:`.procedure`."""
        check_curator(curator)
        whole = Whole(require_found(curator.domain), curator.unit, curator.share_of(share), curator.public_size)
        return self.prepare(whole).run(curator)

    def fit(self, curator: Curator, share: Budget | None = None) -> Result:
        """:meth:`measure`, then :meth:`estimate`, then :meth:`checked`."""
        measured = self.measure(curator, share)
        return self.checked(self.estimate(measured, curator.domain), measured)

    def checked(self, found: Result, measurements: Measurements) -> Result:
        """What was estimated, with what is known for free on the card of a model: how far it is from the sums that
        determine it, if any do, and whether its columns are independent."""
        if not isinstance(found, Model):
            return found
        if self.refits:
            seen = with_self_check(found, measurements, self.expected(measurements))
        else:
            seen = without_self_check(found)
        given = hasattr(self, "graph") or hasattr(self, "cliques") or getattr(self, "order", 2) == 1
        checked: Result = with_independence(seen, given)
        return checked
