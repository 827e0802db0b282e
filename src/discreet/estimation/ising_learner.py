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
from ..privacy.gradients import SpinGradients
from ..privacy.query import Marginals
from ..privacy.unit import PrivacyUnit
from .frank_wolfe import Variant, choose_steps
from .ising_fit import IsingFit, Pair, explained, fit_support, project_width, sparse_of
from .ising_frank_wolfe import DEFAULT_WIDTH, couplings, regress_spins
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

Method = Literal["auto", "moments", "frank_wolfe"]


@dataclass(frozen=True)
class IsingLearner:
    """Learn an Ising model from binary columns.

    Parameters
    ----------
    method:
        ``"moments"`` (what ``"auto"`` takes): noisy means and pair correlations, then maximum likelihood.
        ``"frank_wolfe"``: a private sparse logistic regression a column ([001] Algorithm 2).
    strategy:
        Which pairs are measured: ``"all pairs"``, ``"selected pairs"``, or what the noise suggests (``"auto"``).
    width:
        λ, a public bound on Σ_j |A_ij| + |θ_i| for every column; estimates are scaled down to it. Frank–Wolfe
        searches the ball of radius 2λ, with λ = 2 by default.
    max_edges:
        A public bound on the number of couplings.
    min_weight:
        η, a public lower bound on |A_ij| of a coupling that is there.
    variant, steps:
        Of Frank–Wolfe: ``"tight"`` or ``"published"`` (see :mod:`discreet.estimation.frank_wolfe`), and how many steps;
        by default from the public or noisy number of records.
    random_state:
        Of approximate maximum likelihood on wide graphs; noise that protects is never seeded.
    """

    method: Method = "auto"
    strategy: Strategy = "auto"
    width: float | None = None
    max_edges: int | None = None
    min_weight: float = 0.0
    variant: Variant = "tight"
    steps: int | None = None
    random_state: int = 0

    def __post_init__(self) -> None:
        if self.method not in ("auto", "moments", "frank_wolfe"):
            raise InputError(f"method must be 'auto', 'moments' or 'frank_wolfe', got {self.method!r}")
        if self.variant not in ("tight", "published"):
            raise InputError(f"variant must be 'tight' or 'published', got {self.variant!r}")
        if self.steps is not None and (type(self.steps) is not int or self.steps < 1):
            raise InputError(f"steps must be a whole number of at least 1, got {self.steps!r}")
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
        if self.method == "frank_wolfe":
            return self._frank_wolfe_plan(domain, unit, budget, approximate_size, size_is_public)
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
        if self.method == "frank_wolfe":
            return self._frank_wolfe(curator, budget)
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

    def _frank_wolfe(self, curator: Curator, budget: Budget) -> IsingModel:
        domain = curator.domain
        width = self.width or DEFAULT_WIDTH
        done = regress_spins(curator, budget, [*((n,) for n in domain.names), ()], width, self.variant, self.steps)
        A, theta = couplings(done.state, len(domain))
        A = np.where(np.abs(A) >= self.min_weight / 2, A, 0.0)
        if self.max_edges is not None:
            size = np.sort(np.abs(A[np.triu_indices(len(A), 1)]))[::-1]
            cut = size[self.max_edges] if self.max_edges < len(size) else 0.0
            A = np.where(np.abs(A) > cut, A, 0.0)
        card = release_card(
            curator.statement(),
            [] if done.size is None else [done.size],
            method=f"frank_wolfe, {self.variant}",
            frank_wolfe_steps=done.steps,
            width=width,
        )
        return IsingModel(A, theta, domain, card)

    def _frank_wolfe_plan(
        self, domain: Domain, unit: PrivacyUnit, budget: Budget, size: float | None, size_is_public: bool
    ) -> Plan:
        public = size_is_public or self.steps is not None
        for_size, rest = size_and_rest(budget, size_is_public=public)
        entries = []
        if for_size is not None:
            noise = noise_of(plan_noise(Marginals(domain, [()]), unit, for_size).calls[0])
            entries.append(PlannedSums((), 1, SIZE_SHARE / 100, noise, name="number of records"))
        width = self.width or DEFAULT_WIDTH
        steps: int | None = self.steps
        if steps is None and size is not None:
            monomials = [*((n,) for n in domain.names), ()]
            zero = SpinGradients(domain, monomials, np.zeros((len(domain), len(monomials)), dtype=np.int64), 0.0)
            steps = choose_steps(self.variant, 2 * width, size, zero, unit, rest)
        what = f"{'some' if steps is None else steps} steps, a vertex for each of {len(domain)} regressions"
        share = 1.0 if for_size is None else 1 - SIZE_SHARE / 100
        entries.append(PlannedSums((), 0, share, Noise("none"), name=what))
        note = "Selections, not sums: their noise is on the scores inside."
        return Plan(f"frank_wolfe, {self.variant}", unit, budget, tuple(entries), (note,), size)

    def _estimate(self, domain: Domain, measured: Measured) -> tuple[IsingFit, Sequence[Pair]]:
        moments, pairs = measured.moments, list(measured.pairs)
        fit = fit_support(domain, moments, pairs, self.random_state)
        if measured.dense:
            return fit, pairs
        kept = sparse_of(fit, moments, pairs, most=self.max_edges, least=self.min_weight)
        if self.max_edges is None and self.min_weight == 0:
            kept = explained(moments, kept)
        return (fit if kept == pairs else fit_support(domain, moments, kept, self.random_state)), kept


def sup_error(model: IsingModel, truth: IsingModel) -> float:
    """max |Â_ij − A_ij|, the error of the paper's Definition 2.10."""
    return float(np.abs(model.A - truth.A).max(initial=0.0))
