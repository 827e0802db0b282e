"""The last step of a procedure: how far is the model from the records? Bought with a share of the budget.

Pairs of columns (or a workload of cliques) are compared with the model that the steps before have led to: Σ|x − r| for
each, x the counts of the records, r = N·μ with μ the model's marginal and N the number of records as far as it is known
(:class:`~discreet.privacy.queries.distances.Distances`). The model is a function of what was released, so r is public.
:mod:`discreet.release.certificate` makes estimates and intervals of the answers.

What is asked, within the share:

1. the number of records, a fifth of the share, unless it is public or the tables so far tell it as well as that fifth
   would;
2. under (ε, δ) and zCDP all distances at once, with Gaussian noise. Their mean has the noise that asking for the sum
   alone would have: √m·Δ·√m against m·Δ, both divided by m. (With weights w it has √(m Σw²)/Σw times that, at least 1.
   The same noise for all keeps every single interval as it is without weights.);
3. under pure DP the mean has half of the rest, because m distances apart would have it √m times as noisy. The other
   half is for single pairs: for all of them where their noise leaves something to see, and otherwise for the largest
   one, selected privately and then measured.

Guarantee: the step's share; every request is a part of it, and what is asked depends on released numbers alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import BudgetError, InputError, counted
from ..measurement import MOST_RECORDS, Measurement, Measurements
from ..models.base import Model
from ..models.marginals import from_independence, from_sampling, marginals
from ..privacy.budget import ApproxDP, Budget, GaussianDP, PureDP, exact, part_of
from ..privacy.calibration import NoiseChoice, noise_of, plan_noise
from ..privacy.queries.distances import Distances, TotalDistance, WorstTable
from ..privacy.query import MOST, Marginals
from ..privacy.requests import Asking, Measure, Select
from ..privacy.unit import PrivacyUnit
from .accuracy import accuracy_step
from .compared import Compared
from .consistency import total_and_variance
from .fields.purpose import Workload, workload_of
from .planned import selecting
from .procedure import ALL_PURE, Found, Procedure, Step, Whole

Array = NDArray[np.float64]
FOUND = "certificate"
"""Under which name the answers are found."""
FINER = 64  # expectations are rounded to a 64th of a record, far below any noise
SHOWN_WIDTH = 0.05
"""Noise beyond which single pairs are not worth asking for: half the width of a 90 % interval of total variation."""
_PARTS = (1, 4)  # of a share: the number of records, the distances
_TARGET_PARTS = (9, 1)  # of a budget: the certificate of fit, one count of right predictions
MOST_SHARE = Fraction(1, 2)


def checked_share(share: Any, name: str = "certify") -> float:
    """Which part of the budget a certificate may have: nothing, or up to a half."""
    number = isinstance(share, int | float) and not isinstance(share, bool)
    if not number or not 0 <= share <= MOST_SHARE:
        shown = repr(share)[:40]
        raise InputError(
            f"{name} is the part of the budget that buys the certificate of fit, from 0 (none) to {float(MOST_SHARE)}, "
            f"as in 0.03; got {shown}"
        )
    return float(share)


def divided(within: Budget, share: float) -> tuple[Budget, Budget]:
    """What is left for learning, and what the certificate has, of a budget in the notion that they add up in."""
    part = exact(share, "certify")
    rest, own = within.split([1 - part, part])
    return rest, own


def with_certificate(procedure: Procedure, whole: Whole, certifying: Certifying) -> Procedure:
    """A procedure that was prepared with what is left of the budget, and the certificate as its last step."""
    if procedure.composition not in ("composed", "as one Gaussian"):
        raise InputError(
            f"{procedure.method} asks random blocks of the records, each with the whole budget, so that nothing is "
            "left for a certificate in the same run: leave certify out, and buy one afterwards with `discreet certify`"
        )
    if procedure.composition == "composed" and isinstance(certifying.share, GaussianDP):
        certifying = replace(certifying, share=certifying.pure)  # as the steps before
    steps = tuple(of_the_whole(step, procedure.whole, whole) for step in procedure.steps)
    return replace(procedure, whole=whole, steps=(*steps, certifying.step(whole)))


def of_the_whole(step: Step, before: Whole, whole: Whole) -> Step:
    """The same step, with rows that show parts of the whole budget."""
    factor = float(part_of(step.share, whole.budget) / part_of(step.share, before.budget))
    rows = []
    for row in step.rows:
        between = row.share_range and (row.share_range[0] * factor, row.share_range[1] * factor)
        rows.append(replace(row, share=row.share * factor, share_range=between))
    return replace(step, rows=tuple(rows))


@dataclass(frozen=True)
class Certifying:
    """What is compared, with which share; ``estimate`` makes the model of what the steps before released.

    ``workload``: what to compare, as specifications hold it; all pairs by default.
    """

    share: Budget
    estimate: Callable[[Measurements], Model]
    workload: Workload = None

    def step(self, whole: Whole) -> Step:
        """The step, to be shown and run."""
        compared = Compared.of(self.workload, whole.domain)
        if whole.public_size is not None and whole.public_size > _most_records(compared):
            raise InputError(
                f"a certificate with these weights is of at most {_most_records(compared):,} records, as sums have 64 "
                "bits; give weights that differ less"
            )
        alone = len(compared.cliques[0]) == 1 or compared.named
        many = counted(len(compared.cliques), "table" if alone else "pair")
        some = f" (of {compared.every:,})" if compared.every > len(compared.cliques) else ""
        kinds: tuple[str, ...] = ("gaussian",)
        if isinstance(self.share, PureDP):
            kinds = ("laplace", selecting(self.share))
        elif isinstance(self.share, GaussianDP) and self.share.epsilon is not None:
            kinds = ("gaussian or laplace", selecting(self.pure))

        def asks(released: Measurements) -> Asking[Found]:
            return (yield from self._asks(whole, released))

        return whole.later(
            f"certificate: distances of {many}{some} from the model", self.share, asks, *kinds, kept=False
        )

    @property
    def pure(self) -> PureDP:
        """The share where all steps before are pure."""
        assert isinstance(self.share, GaussianDP)
        assert self.share.epsilon is not None
        return PureDP(self.share.epsilon)

    # -- asking ------------------------------------------------------------------------------------------------------

    def _asks(self, whole: Whole, released: Measurements) -> Asking[Found]:
        domain, unit = whole.domain, whole.unit
        share = self.pure if released.found.get(ALL_PURE) else self.share
        model = self.estimate(released)
        compared = Compared.of(self.workload, domain)
        cliques = compared.cliques
        count, rest = share.split(_PARTS)
        before = _told(released, whole)
        fifth = Measure(count, Marginals(domain, [()]), _kind(count))
        if before is None or before[1] > _variance(fifth, unit):
            (more,) = yield fifth
            records, variance = _pooled(before, more)
        else:
            rest = share
            records, variance = before
        records = min(max(records, 1.0), float(_most_records(compared)))
        shapes, computed = marginals(model, cliques)
        expected = [records * mu for mu in shapes]
        facts: dict[str, Any] = {
            "cliques": [list(c) for c in cliques],
            "every": compared.every,
            "workload": compared.named,
            **({"weights": list(compared.weights)} if compared.weights else {}),
            "records": records,
            "records_deviation": math.sqrt(variance),
            "squares": [round(float((mu**2).sum()), 6) for mu in shapes],
            "from_independence": round(from_independence(shapes, compared.weights), 6),
            "from_sampling": round(from_sampling(shapes, records, compared.weights), 6),
            "computed": computed,
        }
        if not isinstance(rest, PureDP):
            asked = Distances(domain, cliques, expected, label=FOUND, finer=FINER)
            (each,) = yield Measure(rest, asked, "gaussian")
            return {FOUND: {**facts, "each": _plain(each, range(len(cliques)))}}
        half, singles = rest.split([1, 1])
        weights = compared.weights
        sum_of_all = TotalDistance(domain, cliques, expected, weights=weights, label=FOUND, finer=FINER)
        (total,) = yield Measure(half, sum_of_all, "laplace")
        facts["total"] = _plain(total)
        asked = Distances(domain, cliques, expected, label=FOUND, finer=FINER)
        if _width(Measure(singles, asked, "laplace"), unit, records) <= SHOWN_WIDTH:
            (each,) = yield Measure(singles, asked, "laplace")
            return {FOUND: {**facts, "each": _plain(each, range(len(cliques)))}}
        for_choice, for_it = singles.split([1, 1])
        worst = yield Select(for_choice, WorstTable(Distances(domain, cliques, expected)))
        (at,) = worst.indices
        one = Distances(domain, [cliques[at]], [expected[at]], label=FOUND, finer=FINER)
        (each,) = yield Measure(for_it, one, "laplace")
        return {FOUND: {**facts, "each": _plain(each, [at])}}


def _most_records(compared: Compared) -> int:
    """So many that their distances, weighted and in parts of a record, add up in 64 bits."""
    return min(MOST_RECORDS, MOST // (2 * FINER * (sum(compared.weights) or len(compared.cliques))))


def _told(released: Measurements, whole: Whole) -> tuple[float, float] | None:
    """The number of records as far as it is known already, and the variance of that."""
    if whole.public_size is not None and whole.unit.column is None:
        return float(whole.public_size), 0.0
    tables = [m for m in released if m.clique is not None and not m.proportions]
    return total_and_variance(tables) if tables else None


def _kind(share: Budget) -> NoiseChoice:
    return "laplace" if isinstance(share, PureDP) else "gaussian"


def _variance(asked: Measure, unit: PrivacyUnit) -> float:
    (call,) = plan_noise(asked.query, unit, asked.share, noise=asked.noise).calls
    return noise_of(call).variance


def _width(asked: Measure, unit: PrivacyUnit, records: float) -> float:
    """Half the width of a 90 % interval of total variation, as far as it comes from the noise of one distance."""
    (call,) = plan_noise(asked.query, unit, asked.share, noise=asked.noise).calls
    return noise_of(call).half_width(0.9) / FINER / (2 * records)


def _pooled(before: tuple[float, float] | None, more: Measurement) -> tuple[float, float]:
    count, variance = float(more.values), more.noise.variance
    if before is None:
        return count, variance
    if variance + before[1] == 0:  # exact counts, where nothing is protected
        return count, 0.0
    weight = variance / (variance + before[1])
    return weight * before[0] + (1 - weight) * count, weight * before[1]


def _plain(noisy: Measurement, which: Iterable[int] = ()) -> dict[str, Any]:
    return {
        "counts": [int(n) for n in noisy.counts],
        "noise": noisy.noise.kind,
        "scale": noisy.noise.scale,
        "grid": str(noisy.grid),
        "which": list(which),
    }


def certify_later(
    model: Model,
    unit: PrivacyUnit,
    budget: Budget,
    workload: str | Path | Iterable[Any] | None = None,
    public_size: int | None = None,
    target: str | None = None,
) -> Procedure:
    """The procedure that buys a certificate for a model that is there already; the whole budget is its share.

    ``workload``: which tables to compare, and how much each counts for the mean, in the forms of
    :func:`~discreet.learn.fields.purpose.workload_of`; all pairs by default. ``target``: a tenth of the budget also
    buys how often the model predicts this column right (:mod:`.accuracy`).
    """
    if target is not None:
        _ = model.domain[target]
    wanted = None if workload is None else workload_of(workload, model.domain)
    within = budget.to_gaussian() if isinstance(budget, ApproxDP) else None
    if isinstance(budget, ApproxDP) and within is None:
        raise BudgetError(f"{budget} is too small or too large for Gaussian noise; take ε between 1e-6 and 700")
    whole = Whole(model.domain, unit, budget, public_size)
    fit, right = (within or budget).split(_TARGET_PARTS) if target is not None else (within or budget, None)
    steps = [Certifying(fit, lambda released: model, wanted).step(whole)]
    if target is not None and right is not None:
        steps.append(accuracy_step(whole, right, model, target, FOUND))
    return Procedure(FOUND, whole, tuple(steps), composition="as one Gaussian" if within else "composed")
