"""Private estimation of fields of spins: noisy parities, then maximum likelihood. Order 2 is the Ising model."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arguments import check_whole
from ...domain import Domain
from ...errors import CostError, InputError
from ...measurement import Measurements
from ...models.base import Model
from ...privacy.queries.parities import measured_monomials
from ..cards import card_of
from ..checks import as_measurements
from ..counting import counted_first
from ..learner import Learner
from ..procedure import Procedure, Whole
from .coefficients import SpinModel, check_bounds, order_in, spin_model, within_width
from .enumeration import MOST_COLUMNS
from .measuring import STRATEGIES, Asked, Strategy, Sums
from .model_parities import model_parities
from .old_files import up_to_date
from .support import estimated

MOST_PARITIES = 3000  # up to 20 columns: Newton's method solves a system of this size at every step
MOST_WIDE_PARITIES = 40_000  # beyond: only those that stand out are fitted
METHOD = "moments"


@dataclass(frozen=True)
class SpinField(Learner[SpinModel]):
    """Learn the coefficients h̄(I), |I| ≤ t, of P(z) ∝ exp(Σ_I h̄(I) Π_{i∈I} z_i) over columns with two levels.

    Order 2 gives an :class:`IsingModel` with couplings A_ij and fields θ_i, higher orders a :class:`BinaryMRF`. The
    likelihood is maximised by enumeration up to 20 columns, beyond on the junction tree or by Gibbs chains, which the
    card says.

    Guarantee: the budget, for the curator's unit, under add-remove and replace-one alike, by composition; each step is
    a paid question, and what the later ones ask for follows from what the earlier ones released. Sensitivities:
    :class:`ParitySums`. The model is post-processing.

    Parameters
    ----------
    order:
        t, the largest number of columns that interact.
    strategy:
        ``"all"``: all parities, and what stands out again; ``"selected"``: pairs that each column selects privately, or
        for higher orders all pairs and the larger interactions that they explain worst; ``"auto"``: what the noise
        suggests of the two; ``"one shot"``: all parities, once.
    width:
        λ, a public bound on Σ_{I∋i} |h̄(I)| for every column; estimates are scaled down to it.
    max_edges, min_weight:
        Public bounds on the number of interactions of two and more columns, and on the least |h̄(I)| of one that is
        there.
    random_state:
        Of approximate maximum likelihood on wide graphs; noise that protects is never seeded.
    """

    order: int = 2
    strategy: Strategy = "auto"
    width: float | None = None
    max_edges: int | None = None
    min_weight: float = 0.0
    random_state: int = 0

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole(1, order=self.order)
        check_bounds(self.width, self.min_weight, self.max_edges)
        if self.strategy not in STRATEGIES:
            raise InputError(f"strategy must be one of {', '.join(map(repr, STRATEGIES))}; got {self.strategy!r}")
        if self.strategy == "selected" and self.order < 2:
            raise InputError("strategy='selected' selects interactions, and order 1 has none; use 'all' or 'one shot'")

    def prepare(self, whole: Whole) -> Procedure:
        """The number of records unless it is public, then parities as the strategy says."""
        domain = whole.domain
        order = order_in(domain, self.order)
        _check_number(len(domain), order)
        count, given, rest = counted_first(whole)
        asked = Asked(whole, rest, order, self.max_edges, self.min_weight, self.random_state)
        asked, strategy = asked.settled(self.strategy, whole.public_size)
        notes = []
        if strategy == "auto" and whole.size is not None:
            likely = asked.choose("auto", whole.size)
            what = f"{likely} pairs" if self.order <= 2 else f"{likely} parities of more than two columns"
            notes.append(f"With some {whole.size:g} records that would be {what}.")
        if len(domain) > MOST_COLUMNS:
            notes.append(f"{len(domain)} columns cannot be enumerated: the fit is on a junction tree, or approximate.")
        what = "an Ising model" if self.order == 2 else f"a field of spins of order {self.order}"
        steps = (*count, *asked.steps(strategy))
        return Procedure(f"{METHOD} of {what}", whole, steps, tuple(notes), given)

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> SpinModel:
        """The field from what :meth:`measure` released; post-processing only. A public total may have been added."""
        measured, sums = self._read(measurements)
        columns = sums.domain
        if domain is not None and domain.names != columns.names:
            raise InputError(f"these are sums of the columns {', '.join(columns.names)}, not of the domain given")
        dense = measured.found.get("dense") is True
        fit = estimated(sums.moments, sums.last, dense, self.max_edges, self.min_weight, self.random_state)
        facts: dict[str, Any] = {"strategy": sums.strategy, "estimation": fit.how, "terms": len(fit.moments.joint)}
        card = card_of(measured, METHOD, **facts)
        return spin_model(self.order, within_width(fit.coefficients, self.width), domain or columns, card)

    def expected(self, measurements: Measurements) -> Callable[[Model], list[NDArray[np.float64]]]:
        """What a model expects of each measurement: for ``noise_intervals(learner.estimate, …, expected=…)``."""
        measured, sums = self._read(measurements)

        def sums_of(model: Model) -> list[NDArray[np.float64]]:
            asked = [measured_monomials(m) if "parities" in m.about else None for m in measured]
            wanted = dict.fromkeys(I for monomials in asked if monomials is not None for I in monomials)
            parities = model_parities(model, tuple(wanted), self.random_state)
            known = dict(zip(wanted, (sums.records * parities).tolist(), strict=True))
            return [
                np.asarray(m.values, dtype=np.float64) if monomials is None else np.array([known[I] for I in monomials])
                for m, monomials in zip(measured, asked, strict=True)
            ]

        return sums_of

    def _read(self, measurements: Measurements) -> tuple[Measurements, Sums]:
        measured = up_to_date(as_measurements(measurements))
        sums = Sums.among(measured)
        order = max(len(I) for monomials, _ in sums.parts for I in monomials)
        if order > self.order:
            raise InputError(f"these are parities of up to {order} columns: use SpinField(order={order})")
        return measured, sums


def _check_number(p: int, order: int) -> None:
    """Of parities, before anything is spent; pairs of many columns have ways of their own."""
    parities = sum(math.comb(p, k) for k in range(1, order + 1))
    if order > 2 and parities > (MOST_PARITIES if p <= MOST_COLUMNS else MOST_WIDE_PARITIES):
        raise CostError(
            f"{parities:,} parities of {p} columns are too many for maximum likelihood, which takes up to "
            f"{MOST_PARITIES:,} for {MOST_COLUMNS} columns and {MOST_WIDE_PARITIES:,} beyond; use the method "
            "'frank_wolfe', a lower order, or fewer columns"
        )
