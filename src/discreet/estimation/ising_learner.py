"""Private estimation of Ising models: couplings, fields and, by what stands out of the noise, the graph."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from ..domain import Domain
from ..errors import InputError
from ..measurement import Noise
from ..models.ising import IsingModel, check_binary
from ..privacy.budget import Budget
from ..privacy.calibration import noise_of, plan_noise
from ..privacy.curator import Curator
from ..privacy.query import Marginals
from ..privacy.unit import PrivacyUnit
from .ising_fit import IsingFit, Pair, fit_support, project_width, significant_pairs, sparse_of
from .plan import Plan
from .planned_sums import PlannedSums, release_card
from .spin_measuring import (
    PARTNERS,
    SELECTED_SHARES,
    SIZE_SHARE,
    Measured,
    Strategy,
    choose,
    chosen_sums,
    measure_spins,
    pair_sums,
    size_and_rest,
)

Method = Literal["auto", "moments"]


@dataclass(frozen=True)
class IsingLearner:
    """Learn an Ising model from binary columns.

    Parameters
    ----------
    method:
        ``"moments"`` (what ``"auto"`` takes): noisy means and pair correlations, then maximum likelihood.
    strategy:
        Which pairs are measured: ``"all pairs"``, ``"selected pairs"``, or what the noise suggests (``"auto"``).
    width:
        λ, a public bound on Σ_j |A_ij| + |θ_i| for every column; estimates are scaled down to it.
    max_edges:
        A public bound on the number of couplings.
    min_weight:
        η, a public lower bound on |A_ij| of a coupling that is there.
    random_state:
        Of approximate maximum likelihood on wide graphs; noise that protects is never seeded.
    """

    method: Method = "auto"
    strategy: Strategy = "auto"
    width: float | None = None
    max_edges: int | None = None
    min_weight: float = 0.0
    random_state: int = 0

    def __post_init__(self) -> None:
        if self.method not in ("auto", "moments"):
            raise InputError(f"method must be 'auto' or 'moments', got {self.method!r}")
        if self.strategy not in ("auto", "all pairs", "selected pairs"):
            raise InputError(f"strategy must be 'auto', 'all pairs' or 'selected pairs', got {self.strategy!r}")
        if self.width is not None and not self.width > 0:
            raise InputError(f"width must be positive, got {self.width}")
        if self.max_edges is not None and (type(self.max_edges) is not int or self.max_edges < 0):
            raise InputError(f"max_edges must be a whole number of at least 0, got {self.max_edges!r}")
        if not self.min_weight >= 0:
            raise InputError(f"min_weight must not be negative, got {self.min_weight}")

    def plan(
        self,
        domain: Domain,
        unit: PrivacyUnit,
        budget: Budget,
        approximate_size: float | None = None,
        *,
        size_is_public: bool = False,
    ) -> Plan:
        """What will be asked and with which noise, before a row is read."""
        check_binary(domain, "an Ising model")
        for_size, rest = size_and_rest(budget, size_is_public=size_is_public)
        entries: list[PlannedSums] = []
        whole = 1.0
        if for_size is not None:
            whole = 1 - SIZE_SHARE / 100
            count = Marginals(domain, [()])
            noise = noise_of(plan_noise(count, unit, for_size).calls[0])
            entries.append(PlannedSums((), 1, SIZE_SHARE / 100, noise, name="number of records"))
        strategy = choose(domain, unit, rest, approximate_size, self.strategy)
        if strategy == "all pairs":
            stages = [(pair_sums(domain), 50, "all means and pair sums"), (None, 50, "those that stand out, again")]
        else:
            stages = [
                (chosen_sums(domain, []), SELECTED_SHARES[0], "means"),
                (None, SELECTED_SHARES[1], f"selection of {PARTNERS} partners a column"),
                (None, SELECTED_SHARES[2], "means and chosen pair sums"),
            ]
        for (query, percent, name), share in zip(stages, rest.split([s for _, s, _ in stages]), strict=True):
            noise = Noise("none") if query is None else noise_of(plan_noise(query, unit, share).calls[0])
            cells = 0 if query is None else query.parts[0].cells
            entries.append(PlannedSums((), cells, whole * percent / 100, noise, name=name))
        note = f"Strategy: {strategy}" + ("." if approximate_size else "; the noisy number of records may change it.")
        return Plan(f"moments of an Ising model, {strategy}", unit, budget, tuple(entries), (note,), approximate_size)

    def fit(self, curator: Curator, share: Budget | None = None) -> IsingModel:
        """Ask the curator with ``share`` (all that remains, by default), then estimate."""
        check_binary(curator.domain, "an Ising model")
        budget = share or curator.remaining or curator.budget
        measured = measure_spins(curator, budget, self.strategy, most=self.max_edges, least=self.min_weight)
        fit, pairs = self._estimate(curator.domain, measured)
        A, theta = fit.A, fit.theta
        if self.width is not None:
            A, theta = project_width(A, theta, self.width)
        card = release_card(
            curator.statement(),
            [measured.size, *(m for _, m in measured.sums)],
            method="moments",
            strategy=measured.strategy,
            estimation=fit.how,
            couplings=len(pairs),
        )
        return IsingModel(A, theta, curator.domain, card)

    def _estimate(self, domain: Domain, measured: Measured) -> tuple[IsingFit, Sequence[Pair]]:
        moments = measured.moments
        if measured.strategy == "selected pairs":
            chosen = moments.measured_pairs()
            fit = fit_support(domain, moments, chosen, self.random_state)
            pairs = sparse_of(fit, moments, chosen, most=self.max_edges, least=self.min_weight)
        else:
            pairs, dense = significant_pairs(domain, moments, most=self.max_edges, least=self.min_weight)
            if dense:
                pairs = moments.measured_pairs()
        return fit_support(domain, moments, pairs, self.random_state), pairs


def sup_error(model: IsingModel, truth: IsingModel) -> float:
    """max |Â_ij − A_ij|, the error of the paper's Definition 2.10."""
    return float(np.abs(model.A - truth.A).max(initial=0.0))
