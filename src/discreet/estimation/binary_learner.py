"""Private estimation of binary t-wise Markov random fields: noisy parities and maximum likelihood, or Algorithm 4."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from ..domain import Clique, Domain
from ..errors import CostError, InputError
from ..measurement import Measurement, Noise
from ..models.binary import BinaryMRF
from ..models.ising import check_binary
from ..privacy.budget import Budget
from ..privacy.calibration import noise_of, plan_noise
from ..privacy.curator import Curator
from ..privacy.parities import ParitySums, all_monomials
from ..privacy.query import Marginals
from ..privacy.unit import PrivacyUnit
from .enumeration import MOST_COLUMNS, ParityFamily, positions
from .frank_wolfe import Variant
from .ising_fit import BOUNDED_CUT, GENEROUS_CUT, mostly_real, ridge_of
from .ising_frank_wolfe import DEFAULT_WIDTH, regress_spins
from .plan import Plan
from .planned_sums import PlannedSums, release_card
from .spin_measuring import SIZE_SHARE, size_and_rest

Array = NDArray[np.float64]
MOST_PARITIES = 3000  # Newton's method solves a system of this size at every step


@dataclass(frozen=True)
class BinaryMRFLearner:
    """Learn the coefficients h̄(I), |I| ≤ t, of a binary Markov random field.

    Parameters
    ----------
    order:
        t, the largest number of columns that interact.
    method:
        ``"moments"`` (what ``"auto"`` takes up to 20 columns): all noisy parities up to order t, then those that stand
        out again, then maximum likelihood by enumeration. ``"frank_wolfe"``: [001] Algorithm 4, for more columns.
    max_terms, min_weight:
        Public bounds on the number of interactions of two and more columns, and on the least |h̄(I)| of one.
    width, variant, steps:
        Of Frank–Wolfe: λ ≥ max_i ‖∂_i h‖₁ (2 by default), and as for :class:`IsingLearner`.
    """

    order: int
    method: Literal["auto", "moments", "frank_wolfe"] = "auto"
    max_terms: int | None = None
    min_weight: float = 0.0
    width: float | None = None
    variant: Variant = "tight"
    steps: int | None = None

    def __post_init__(self) -> None:
        if type(self.order) is not int or self.order < 1:
            raise InputError(f"order must be a whole number of at least 1, got {self.order!r}")
        if self.method not in ("auto", "moments", "frank_wolfe"):
            raise InputError(f"method must be 'auto', 'moments' or 'frank_wolfe', got {self.method!r}")
        if self.width is not None and not self.width > 0:
            raise InputError(f"width must be positive, got {self.width}")

    def _method(self, domain: Domain) -> str:
        check_binary(domain, "a binary Markov random field")
        p, t = len(domain), min(self.order, len(domain))
        parities = sum(math.comb(p, k) for k in range(1, t + 1))
        fits = p <= MOST_COLUMNS and parities <= MOST_PARITIES
        if self.method == "moments" and not fits:
            raise CostError(
                f"maximum likelihood for {parities:,} parities of {p} columns is by enumeration, up to {MOST_COLUMNS} "
                f"columns and {MOST_PARITIES:,} parities; use method='frank_wolfe', a lower order, or fewer columns"
            )
        if self.method == "auto":
            return "moments" if fits else "frank_wolfe"
        return self.method

    def plan(
        self,
        domain: Domain,
        unit: PrivacyUnit,
        budget: Budget,
        approximate_size: float | None = None,
        *,
        size_is_public: bool = False,
    ) -> Plan:
        """What will be asked, before a row is read."""
        method = self._method(domain)
        for_size, rest = size_and_rest(budget, size_is_public=size_is_public)
        entries = []
        whole = 1.0
        if for_size is not None:
            whole = 1 - SIZE_SHARE / 100
            noise = noise_of(plan_noise(Marginals(domain, [()]), unit, for_size).calls[0])
            entries.append(PlannedSums((), 1, SIZE_SHARE / 100, noise, name="number of records"))
        if method == "moments":
            query = self._parities(domain)
            half = rest.split([1, 1])[0]
            noise = noise_of(plan_noise(query, unit, half).calls[0])
            cells = query.parts[0].cells
            entries.append(PlannedSums((), cells, whole / 2, noise, name=f"all parities up to order {self.order}"))
            entries.append(PlannedSums((), 0, whole / 2, Noise("none"), name="those that stand out, again"))
        else:
            what = f"steps of {len(domain)} regressions on parities up to order {self.order - 1}"
            entries.append(PlannedSums((), 0, whole, Noise("none"), name=what))
        what = f"{method}, binary fields of order {self.order}"
        return Plan(what, unit, budget, tuple(entries), (), approximate_size)

    def fit(self, curator: Curator, share: Budget | None = None) -> BinaryMRF:
        """Ask the curator with ``share`` (all that remains, by default), then estimate."""
        method = self._method(curator.domain)
        budget = share or curator.remaining or curator.budget
        return self._moments(curator, budget) if method == "moments" else self._frank_wolfe(curator, budget)

    def _parities(self, domain: Domain) -> ParitySums:
        return ParitySums(domain, all_monomials(domain, min(self.order, len(domain))), label="parities")

    def _moments(self, curator: Curator, budget: Budget) -> BinaryMRF:
        domain = curator.domain
        for_size, rest = size_and_rest(budget, size_is_public=curator.public_size is not None)
        size = curator.size(for_size)
        n = max(float(size.values), 1.0)
        first, second = rest.split([1, 1])
        everything = self._parities(domain)
        sums = [(everything.monomials, curator.measure(everything, first)[0])]
        chosen, dense = self._significant(domain, sums, n, list(everything.monomials), generous=True)
        again = ParitySums(domain, chosen, label="chosen parities")
        sums.append((again.monomials, curator.measure(again, second)[0]))
        if not dense:
            chosen, _ = self._significant(domain, sums, n, chosen)
        names, c, _ = _fit(domain, sums, n, chosen)
        card = release_card(
            curator.statement(),
            [size, *(m for _, m in sums)],
            method="moments",
            estimation="maximum likelihood by enumeration",
            terms=len(names),
        )
        return BinaryMRF(dict(zip(names, map(float, c), strict=True)), domain, card)

    def _significant(
        self,
        domain: Domain,
        sums: list[tuple[tuple[Clique, ...], Measurement]],
        n: float,
        candidates: list[Clique],
        *,
        generous: bool = False,
    ) -> tuple[list[Clique], bool]:
        """Monomials that stand out of the noise (and all single columns); all, if most of them do."""
        names, c, error = _fit(domain, sums, n, candidates)
        z = np.abs(c) / np.maximum(error, 1e-300)
        joint = np.array([len(I) > 1 for I in names])
        bounded = self.max_terms is not None or self.min_weight > 0
        dense = generous and not bounded and mostly_real(z[joint] < 1, 0.683)
        cut = math.sqrt(2 * math.log(max(len(sums[0][0]), 2))) + 0.5
        if bounded:
            cut = min(cut, BOUNDED_CUT)
        if generous:
            cut = min(cut, GENEROUS_CUT)
        keep = (z > cut) & (generous | (np.abs(c) >= self.min_weight / 2))
        if self.max_terms is not None and not generous and (keep & joint).sum() > self.max_terms:
            order = np.argsort(-np.where(keep & joint, z, -1.0), kind="stable")
            keep[order[self.max_terms :]] = False
        keep |= ~joint | dense
        return [I for I, kept in zip(names, keep, strict=True) if kept], dense

    def _frank_wolfe(self, curator: Curator, budget: Budget) -> BinaryMRF:
        """[001] Algorithm 4; a coefficient that several regressions estimate is their mean, not the first one's."""
        domain = curator.domain
        width = self.width or DEFAULT_WIDTH
        monomials = [*all_monomials(domain, min(self.order, len(domain)) - 1), ()]
        done = regress_spins(curator, budget, monomials, width, self.variant, self.steps)
        found: dict[Clique, list[float]] = defaultdict(list)
        for name, row in zip(domain.names, done.state.w / 2, strict=True):
            for I, value in zip(monomials, row, strict=True):
                if name not in I:
                    found[domain.clique((*I, name))].append(float(value))
        coefficients = {I: float(np.mean(values)) for I, values in found.items()}
        kept = {I: v for I, v in coefficients.items() if abs(v) >= self.min_weight / 2}
        if self.max_terms is not None:
            joint = sorted((I for I in kept if len(I) > 1), key=lambda I: -abs(kept[I]))
            kept = {I: v for I, v in kept.items() if len(I) == 1 or I in set(joint[: self.max_terms])}
        card = release_card(
            curator.statement(),
            [] if done.size is None else [done.size],
            method=f"frank_wolfe, {self.variant}",
            frank_wolfe_steps=done.steps,
            width=width,
        )
        return BinaryMRF(kept, domain, card)


def _fit(
    domain: Domain, sums: list[tuple[tuple[Clique, ...], Measurement]], n: float, monomials: list[Clique]
) -> tuple[list[Clique], Array, Array]:
    """Maximum likelihood with these monomials, and the standard errors of their coefficients."""
    total, weight = dict.fromkeys(monomials, 0.0), dict.fromkeys(monomials, 0.0)
    for measured, m in sums:
        w = 1 / max(m.standard_deviation / n, 1e-3 / n) ** 2
        for I, value in zip(measured, m.values, strict=True):
            if I in total:
                total[I] += w * value / n
                weight[I] += w
    variance = np.array([1 / weight[I] for I in monomials])
    target = np.clip(np.array([total[I] for I in monomials]) * variance, -1, 1)
    family = ParityFamily(len(domain), positions(domain.names, monomials))
    c, spectrum = family.fit(target, ridge_of(variance))
    return monomials, c, family.standard_errors(spectrum, variance, n)
