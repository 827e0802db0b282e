"""Private estimation of Ising models: couplings, fields and, by what stands out of the noise, the graph."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...domain import Domain
from ...errors import InputError, counted
from ...measurement import Measurements
from ...models.base import Model
from ...models.ising import IsingModel, check_binary
from ...privacy.budget import Budget
from ...privacy.calibration import noise_of, plan_noise
from ...privacy.curator import Curator
from ...privacy.queries.gradients import SpinGradients
from ...privacy.queries.parities import ParitySums
from ...privacy.unit import PrivacyUnit
from ..planned_sums import PlannedSums, measuring, release_card, selecting, settled_later
from ..procedure import Plan
from ..regressions.frank_wolfe import Variant, choose_steps
from ..regressions.ising import DEFAULT_WIDTH, couplings, regress_spins
from .ising_fit import (
    IsingFit,
    Pair,
    explained,
    fit_support,
    project_width,
    significant_pairs,
    sparse_of,
    spin_moments,
)
from .learning import Method, check_choices, frank_wolfe_card, planned_size, selection_plan
from .measuring import (
    PARTNERS,
    SELECTED_SHARES,
    STRATEGIES,
    Measured,
    Strategy,
    choose,
    chosen_sums,
    measure_spins,
    monomials_of,
    pair_sums,
)


@dataclass(frozen=True)
class IsingLearner:
    """Learn an Ising model from binary columns.

    Parameters
    ----------
    method:
        ``"moments"`` (what ``"auto"`` takes): noisy means and pair correlations, then maximum likelihood.
        ``"frank_wolfe"``: a private sparse logistic regression a column ([001] Algorithm 2).
    strategy:
        Which pairs are measured: ``"all pairs"`` and what stands out again, ``"selected pairs"``, or what the noise
        suggests of the two (``"auto"``); ``"one shot"``: all pairs, once.
    width:
        λ, a public bound on Σ_j |A_ij| + |θ_i| for every column; estimates are scaled down to it. Frank–Wolfe
        searches the ball of radius 2λ, with λ = 2 by default.
    max_edges:
        A public bound on the number of couplings.
    min_weight:
        η, a public lower bound on |A_ij| of a coupling that is there.
    variant, steps:
        Of Frank–Wolfe: ``"tight"`` or ``"published"`` (see :mod:`discreet.learn.regressions.frank_wolfe`), and how many
        steps; by default from the public or noisy number of records.
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
        check_choices(self.method, self.variant, self.steps, self.width, self.min_weight, most=self.max_edges)
        if self.strategy not in STRATEGIES:
            raise InputError(f"strategy must be one of {', '.join(map(repr, STRATEGIES))}; got {self.strategy!r}")

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
        entries, rest, whole = planned_size(domain, unit, budget, size_is_public=size_is_public)
        strategy = choose(domain, unit, rest, approximate_size, self.strategy)
        later = measuring(rest)
        stages: list[tuple[ParitySums | str, int, str]]
        if strategy == "one shot":
            stages = [(pair_sums(domain), 100, "all means and pair sums")]
        elif strategy == "all pairs":
            stages = [(pair_sums(domain), 50, "all means and pair sums"), (later, 50, "those that stand out, again")]
        else:
            stages = [
                (chosen_sums(domain, []), SELECTED_SHARES[0], "means"),
                (selecting(rest), SELECTED_SHARES[1], f"selection of {PARTNERS} partners a column"),
                (later, SELECTED_SHARES[2], "means and chosen pair sums"),
            ]
        for (asked, percent, name), share in zip(stages, rest.split([s for _, s, _ in stages]), strict=True):
            part = whole * percent / 100
            if isinstance(asked, str):
                entries.append(settled_later(name, part, asked))
            else:
                noise = noise_of(plan_noise(asked, unit, share).calls[0])
                entries.append(PlannedSums((), asked.parts[0].cells, part, noise, name=name))
        settled = approximate_size or self.strategy != "auto"
        note = f"Strategy: {strategy}" + ("." if settled else "; the noisy number of records may change it.")
        return Plan(f"moments of an Ising model, {strategy}", unit, budget, tuple(entries), (note,), approximate_size)

    def fit(self, curator: Curator, share: Budget | None = None) -> IsingModel:
        """Ask the curator with ``share`` (all that remains, by default), then estimate."""
        if self.method == "frank_wolfe":
            check_binary(curator.domain, "an Ising model")
            return self._frank_wolfe(curator, share or curator.remaining or curator.budget)
        return self.estimate(self.measure(curator, share))

    def measure(self, curator: Curator, share: Budget | None = None) -> Measurements:
        """The noisy number of records and sums of spins; with ``share``, or all that remains.

        Guarantee: ``share``, for the curator's unit, by composition; each step is a paid question, and which pairs the
        later ones ask for follows from what the earlier ones released. Sensitivities: :class:`ParitySums`.
        """
        check_binary(curator.domain, "an Ising model")
        if self.method == "frank_wolfe":
            raise InputError("Frank–Wolfe selects and measures nothing; use fit, or method='moments'")
        budget = share or curator.remaining or curator.budget
        return measure_spins(curator, budget, self.strategy, most=self.max_edges, least=self.min_weight)

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> IsingModel:
        """The model from what :meth:`measure` gave; post-processing only. A public total may have been added."""
        measured = Measured.of(measurements)
        columns = next(m.domain for m in measurements if m.clique is None)
        if domain is not None and domain.names != columns.names:
            raise InputError(f"these are sums of the columns {', '.join(columns.names)}, not of the domain given")
        domain = domain or columns
        fit, pairs = self._estimate(domain, measured)
        A, theta = fit.A, fit.theta
        if self.width is not None:
            A, theta = project_width(A, theta, self.width)
        card = release_card(
            dict(measurements.release),
            measurements,
            method="moments",
            strategy=measured.strategy,
            estimation=fit.how,
            couplings=len(pairs),
        )
        return IsingModel(A, theta, domain, card)

    def expected(self, measurements: Measurements) -> Callable[[Model], list[NDArray[np.float64]]]:
        """What a model expects of each measurement: for ``noise_intervals(learner.estimate, …, expected=…)``.

        Up to 20 columns by enumeration, beyond by Gibbs chains.
        """
        read = [monomials_of(m) if m.clique is None else None for m in measurements]
        n = Measured.of(measurements).moments.records

        def sums(model: Model) -> list[NDArray[np.float64]]:
            assert isinstance(model, IsingModel)
            single, double = spin_moments(model.A, model.theta, self.random_state)
            place = {name: i for i, name in enumerate(model.domain.names)}
            out = []
            for m, monomials in zip(measurements, read, strict=True):
                if monomials is None:
                    out.append(np.asarray(m.values, dtype=np.float64))
                    continue
                at = [[place[name] for name in I] for I in monomials]
                out.append(n * np.array([single[I[0]] if len(I) == 1 else double[I[0], I[1]] for I in at]))
            return out

        return sums

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
        return IsingModel(A, theta, domain, frank_wolfe_card(curator, done, f"frank_wolfe, {self.variant}", width))

    def _frank_wolfe_plan(
        self, domain: Domain, unit: PrivacyUnit, budget: Budget, size: float | None, size_is_public: bool
    ) -> Plan:
        width = self.width or DEFAULT_WIDTH
        monomials = [*((n,) for n in domain.names), ()]
        zero = SpinGradients(domain, monomials, np.zeros((len(domain), len(monomials)), dtype=np.int64), 0.0)

        def steps(n: float, rest: Budget) -> int:
            return choose_steps(self.variant, 2 * width, n, zero, unit, rest)

        what = f"a vertex for each of {counted(len(domain), 'regression')}"
        method = f"frank_wolfe, {self.variant}"
        return selection_plan(method, domain, unit, budget, size, size_is_public, self.steps, steps, what, self.variant)

    def _estimate(self, domain: Domain, measured: Measured) -> tuple[IsingFit, Sequence[Pair]]:
        moments = measured.moments
        bounds: dict[str, Any] = {"most": self.max_edges, "least": self.min_weight}
        free = self.max_edges is None and self.min_weight == 0
        if measured.pairs is None:
            found, dense = significant_pairs(domain, moments, **bounds)
            pairs = explained(moments, found) if free and not dense else found
        else:
            pairs, dense = list(measured.pairs), measured.dense
        fit = fit_support(domain, moments, pairs, self.random_state)
        if dense or measured.pairs is None:
            return fit, pairs
        kept = sparse_of(fit, moments, pairs, **bounds)
        if free:
            kept = explained(moments, kept)
        return (fit if kept == pairs else fit_support(domain, moments, kept, self.random_state)), kept


def sup_error(model: IsingModel, truth: IsingModel) -> float:
    """max |Â_ij − A_ij|, the error of the paper's Definition 2.10."""
    return float(np.abs(model.A - truth.A).max(initial=0.0))
