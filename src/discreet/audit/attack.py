"""The strongest membership attack that we can write for every learner: it teaches what ε means, and is one more audit.

Who knows all records but one person's, the method and the law of the noise is shown a release and says whether that
person was in. What they use is the exact likelihood ratio of the noisy tables, and of everything else that came out
what *shadow runs* of the same method on both tables taught them. The canary, and the crowd around it, are the worst of
dozens that were tried: a few runs of each, more of those that look worse, and what they showed teaches, too.

ε-DP promises that no attack whatever has true alarms of more than e^ε times its false alarms (plus δ), so that being
right exceeds chance by at most (e^ε − 1 + 2δ)/(e^ε + 1), the *advantage*: true minus false alarms. What an attack
reaches is a lower bound on what a release gives away, never a proof that it gives away no more; but a release of which
an attack reaches more than the promise has a bug. Runs that teach, that choose the threshold, and that count are
different ones, so the bounds (Clopper–Pearson) hold with their confidence whatever the attack has learned.

No private rows are involved: tables are synthetic, or of public rows.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..domain import Domain
from ..errors import DiscreetError, InputError
from ..models.plotting import axes_for
from ..privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from ..privacy.curator import Curator, ExactCurator
from ..privacy.unit import PrivacyUnit
from ..progress import track
from ..spec import Spec
from ..tables.base import Table
from .findings import Finding, canonical
from .seen import Array, Seen, World, worlds
from .statistical import clopper_pearson, lower_bound

Fit = Callable[[Curator], Any]
Make = Callable[[Table, PrivacyUnit, Budget], Curator]
Sides = tuple[list[Seen], list[Seen]]
Releases = Callable[[World, int], Sides]
IntArray = NDArray[np.int64]
RUNS, CROWDS = 300, (8, 16, 32, 64, 128)
CONFIDENCE, ALARM = 0.95, 0.999
"""Of the intervals that are shown; and of the bound that has to exceed the promise before we speak of a bug."""
_DELTA_OF_ZCDP = 1e-6
_RUNGS = ((4, 10), (8, 3), (20, 1))
"""Of the search for the worst case: so many more runs a side of each candidate, and how many of them go on."""
_SHUFFLED = 8
_CLEARLY = 3.0  # standard errors by which a number has to differ to be looked at
_LABEL = "runs of the attack"


@dataclass(frozen=True, eq=False)
class Attack:
    """What an attack reached: ``print(found)``, ``found.plot()``.

    ``advantage`` is true minus false alarms, with an interval; ``epsilon_at_least`` what ε is at the least, for sure
    enough (99.9 %) to call it a bug if that exceeds what was promised. ``unprotected``: the advantage of the same
    attack when the same method adds no noise. ``curve``: false and true alarms at every threshold, counted on runs that
    chose nothing.
    """

    budget: Budget
    epsilon: float
    delta: float
    world: str
    runs: int
    advantage: float
    interval: tuple[float, float]
    advantage_at_least: float
    epsilon_at_least: float
    unprotected: float | None
    curve: tuple[tuple[float, float], ...]

    @property
    def promise(self) -> float:
        """The largest advantage that the budget allows to any attack."""
        return promised_advantage(self.epsilon, self.delta)

    @property
    def passed(self) -> bool:
        """Whether the attack stays below the promise."""
        return self.epsilon_at_least <= self.epsilon and self.advantage_at_least <= self.promise

    @property
    def finding(self) -> Finding:
        """As one more audit."""
        detail = f"ε is at least {self.epsilon_at_least:.3f}; claimed is {self.epsilon:.3f}" if not self.passed else ""
        return Finding("membership attack", self.passed, detail)

    def lines(self) -> list[str]:
        """What it means, in plain sentences."""
        low, high = self.interval
        out = [
            f"Is this person in? A coin is right in 50.0 % of cases. The promise, {self.budget}, is that nobody is "
            f"right in more than {_right(self.promise)}, whatever they know and do.",
            f"The strongest of our attacks is right in {_right(self.advantage)} ({_right(low)} to "
            f"{_right(high)} at 95 %): it knows all other records, the method and the noise. Canary: {self.world}; "
            f"{self.runs} releases with it and as many without.",
        ]
        if self.unprotected is not None:
            out.append(f"Without protection the same attack would be right in {_right(self.unprotected)}.")
        if not self.passed:
            out.append(
                f"BEWARE: that is more than was promised (ε is at least {self.epsilon_at_least:.2f}). It is a bug: do "
                "not release anything, and report it."
            )
        return out

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def to_dict(self) -> dict[str, Any]:
        return {
            "budget": self.budget.to_dict(),
            "promise": {"epsilon": self.epsilon, "delta": self.delta, "advantage": self.promise},
            "advantage": self.advantage,
            "advantage_95_percent": list(self.interval),
            "advantage_at_least_99.9_percent": self.advantage_at_least,
            "epsilon_at_least_99.9_percent": max(self.epsilon_at_least, 0.0),
            "without_protection": self.unprotected,
            "canary": self.world,
            "runs": self.runs,
            "passed": self.passed,
            "curve": [list(point) for point in self.curve],
        }

    def plot(self, ax: Any = None) -> Any:
        """False against true alarms: what the promise allows (shaded), the attack, guessing; returns the ``Axes``."""
        ax = axes_for(ax, (4.5, 4.5))
        x = np.linspace(0, 1, 201)
        ax.fill_between(x, x, most_true_alarms(x, self.epsilon, self.delta), color="#6da67f", alpha=0.25)
        ax.plot(x, most_true_alarms(x, self.epsilon, self.delta), color="#6da67f", label="at most, by the promise")
        ax.plot(*zip(*self.curve, strict=True), color="#d0713f", label="the attack")
        ax.plot([0, 1], [0, 1], color="#8894a8", linewidth=1, label="guessing")
        if self.unprotected is not None:
            ax.plot([0, 0, 1], [0, self.unprotected, 1], ":", color="#8f1d14", label="without protection")
        ax.set(xlim=(-0.01, 1), ylim=(0, 1.01), xlabel="false alarms", ylabel="true alarms")
        ax.set_aspect("equal")
        ax.legend(fontsize=8, loc="lower right")
        return ax


def promised_advantage(epsilon: float, delta: float) -> float:
    """(e^ε − 1 + 2δ)/(e^ε + 1): true minus false alarms of any test between neighbours (Kairouz and others, 2015)."""
    return min(1.0, math.tanh(epsilon / 2) + 2 * delta / (math.exp(min(epsilon, 700)) + 1))


def most_true_alarms(false: Array, epsilon: float, delta: float) -> Array:
    """The most true alarms that (ε, δ) allows at this rate of false ones."""
    e = math.exp(min(epsilon, 700))
    return np.clip(np.minimum(e * false + delta, 1 - (1 - delta - false) / e), 0, 1)


def attack_spec(
    spec: Spec,
    domain: Domain,
    unit: PrivacyUnit,
    budget: Budget,
    *,
    rows: NDArray[Any] | None = None,
    runs: int = RUNS,
    seed: int = 0,
) -> Attack:
    """Attack what a specification releases. ``rows``: codes of public rows for a crowd, instead of synthetic ones."""

    def fit(curator: Curator) -> Any:
        return spec.prepare(curator.domain, curator.unit, curator.share_of(), curator.public_size).run(curator)

    return attack(fit, domain, unit, budget, rows=rows, runs=runs, seed=seed, unprotected=True)


def attack(
    fit: Fit,
    domain: Domain,
    unit: PrivacyUnit,
    budget: Budget,
    *,
    rows: NDArray[Any] | None = None,
    runs: int = RUNS,
    seed: int = 0,
    make: Make = Curator,
    unprotected: bool = False,
) -> Attack:
    """Attack anything that asks a curator and returns what it releases.

    ``runs``: releases with the canary, and as many without, that count; a third as many teach before. ``make``: what
    makes a curator, for audits of curators themselves.
    """
    if runs < 40:
        raise InputError(f"an attack needs 40 runs or more to show anything, got {runs}")
    epsilon, delta = _promise(budget)
    candidates = worlds(domain, unit, rows, CROWDS, seed)
    shadows = max(40, runs // 3)
    left = [len(candidates), *(most for _, most in _RUNGS)]
    searched = sum(min(left[0], tried) * more for tried, (more, _) in zip(left, _RUNGS, strict=False))
    shadows -= min(shadows, sum(more for more, _ in _RUNGS))  # runs of the search teach as well
    total = 2 * (searched + shadows + runs)
    done = iter(track(range(total), total, _LABEL))

    def releases(world: World, count: int) -> Sides:
        out: Sides = ([], [])
        for _ in range(count):
            for side, table in zip(out, world.tables, strict=True):
                next(done, None)
                side.append(world.look(_released(fit, table, unit, budget, make)))
        return out

    world, seen = _worst(candidates, releases)
    score, threshold = _learned(*(a + b for a, b in zip(seen, releases(world, shadows), strict=True)))
    without, with_it = ([score(seen) for seen in side] for side in releases(world, runs))
    bound = lower_bound(without, with_it, delta=delta, confidence=ALARM)
    advantage, interval, least, curve = _counted(np.array(without), np.array(with_it), threshold)
    told = _told_apart(fit, world, unit, budget) if unprotected else None
    return Attack(
        budget, epsilon, delta, world.what, runs, advantage, interval, least, max(bound.epsilon, 0.0), told, curve
    )


def _promise(budget: Budget) -> tuple[float, float]:
    if isinstance(budget, PureDP):
        return float(budget.epsilon), 0.0
    if isinstance(budget, ZCDP):
        budget = budget.to_approx(_DELTA_OF_ZCDP)
    if isinstance(budget, ApproxDP):
        return float(budget.epsilon), float(budget.delta)
    raise InputError(f"an attack is held against ε, (ε, δ) or ρ; got {budget}")


def _released(fit: Fit, table: Table, unit: PrivacyUnit, budget: Budget, make: Make) -> Any:
    """What comes out, an error in our own words included: whoever sees it has seen it."""
    try:
        with make(table, unit, budget) as curator:
            return fit(curator)
    except (DiscreetError, ArithmeticError, ValueError, LookupError) as error:
        return error


def _told_apart(fit: Fit, world: World, unit: PrivacyUnit, budget: Budget) -> float:
    """The same without noise: what comes out is the same every time, and tells the tables apart or does not."""
    results = [_released(fit, table, unit, budget, ExactCurator) for table in world.tables]
    return float(canonical(results[0]) != canonical(results[1]))


# -- learning to tell ------------------------------------------------------------------------------------------------


def _worst(candidates: Sequence[World], releases: Releases) -> tuple[World, Sides]:
    """The candidate whose releases tell most, and those of its releases that were looked at."""
    kept: list[tuple[World, Sides]] = [(world, ([], [])) for world in candidates]
    for more, most in _RUNGS:
        for world, seen in kept:
            for side, new in zip(seen, releases(world, more), strict=True):
                side += new
        kept = sorted(kept, key=lambda each: _promising(*each[1]), reverse=True)[:most]
    return kept[0]


def _promising(without: Sequence[Seen], with_it: Sequence[Seen]) -> float:
    """About which advantage these releases allow, by whatever tells most: of the noisy tables E[(1 − e^{−L})₊], L their
    log likelihood ratio, which few runs tell well; of forms and numbers by how much more they differ between the sides
    than between shuffled ones."""
    loss = np.array([*(-s.loss for s in without), *(s.loss for s in with_it)])
    tables = float(np.maximum(-np.expm1(-np.maximum(loss, 0)), 0).mean())
    n, every = len(without), [*without, *with_it]
    forms = np.unique([hash(s.form) for s in every], return_inverse=True)[1]
    told = _more_than_shuffled(lambda a, b: _apart(forms[a], forms[b]), n)
    numbers = 0.0
    if len({s.form for s in every}) == 1 and len(every[0].numbers):
        values = np.array([s.numbers for s in every])
        numbers = math.erf(_more_than_shuffled(lambda a, b: _shift(values[a], values[b]), n) / math.sqrt(8))
    return max(tables, told, numbers)


def _more_than_shuffled(differ: Callable[[IntArray, IntArray], float], n: int) -> float:
    """How much more two halves of 2n runs differ than halves that were chosen at random."""
    rng = np.random.default_rng(n)
    by_chance = [differ(*np.split(rng.permutation(2 * n), 2)) for _ in range(_SHUFFLED)]
    return max(0.0, differ(np.arange(n), np.arange(n, 2 * n)) - float(np.mean(by_chance)))


def _apart(a: IntArray, b: IntArray) -> float:
    """Total variation of two samples of whole numbers."""
    cells = int(max(a.max(), b.max())) + 1
    return float(np.abs(np.bincount(a, minlength=cells) - np.bincount(b, minlength=cells)).sum()) / (2 * len(a))


def _shift(a: Array, b: Array) -> float:
    """The largest difference of means, in standard deviations."""
    spread = np.sqrt((a.var(axis=0) + b.var(axis=0)) / 2) + 1e-9 * (1 + np.abs(a).max(axis=0))
    return float(np.minimum(np.abs(a.mean(axis=0) - b.mean(axis=0)) / spread, 50).max())


def _learned(without: Sequence[Seen], with_it: Sequence[Seen]) -> tuple[Callable[[Seen], float], float]:
    """A score that is larger for releases with the canary: of the likelihood ratio, the odds of the form, a ratio and a
    direction in the numbers, and all together, whatever tells best on shadow runs that taught nothing. And from which
    score on these runs would have raised the alarm: so that all runs that follow may count.

    Where all is made of the noisy tables nothing beats their likelihood ratio, at threshold 0: it is given up only for
    what is better by more than the chance of so many runs."""
    half = len(without) // 2
    odds = _odds(without[:half], with_it[:half])
    ratio, along = _of_numbers(without[:half], with_it[:half])

    def features(seen: Seen) -> Array:
        return np.array([seen.loss, odds.get(seen.form, 0.0), ratio(seen), along(seen)])

    a, b = (np.array([features(s) for s in side[half:]]) for side in (without, with_it))
    weights = [*np.eye(a.shape[1]), _discriminant(a, b)]
    areas = [_auc(a @ w, b @ w) for w in weights]
    tables = areas[0] + math.sqrt(1 / (6 * len(a))) >= max(areas)  # a standard deviation of an area that says nothing
    best = weights[0 if tables else int(np.argmax(areas))]

    def score(seen: Seen) -> float:
        return float(f"{features(seen) @ best:.9g}")  # what is equal but for rounding is equal

    if tables:
        return score, 0.0
    off, on = (np.array([score(seen) for seen in side[half:]]) for side in (without, with_it))
    return score, max(np.unique([*off, *on]), key=lambda t: (on >= t).mean() - (off >= t).mean())


def _odds(without: Sequence[Seen], with_it: Sequence[Seen]) -> dict[Hashable, float]:
    """log odds of the forms that occur often enough for it to mean something."""
    a, b = (Counter(s.form for s in side) for side in (without, with_it))
    often = [form for form in a | b if a[form] + b[form] >= 4]
    return {form: math.log((b[form] + 0.5) / (a[form] + 0.5)) for form in often}


def _of_numbers(without: Sequence[Seen], with_it: Sequence[Seen]) -> tuple[Callable[[Seen], float], ...]:
    """Two scores of the numbers, of releases that have the most frequent form: the likelihood ratio of Laplace noise
    around medians that shadow runs tell, and Fisher's discriminant."""
    (form, _), *_ = Counter(s.form for s in (*without, *with_it)).most_common(1)
    a, b = ([s.numbers for s in side if s.form == form] for side in (without, with_it))
    if min(len(a), len(b)) < 8 or not len(a[0]):
        return (lambda seen: 0.0,) * 2
    x, y = np.array(a), np.array(b)
    tiny = 1e-9 * (1 + np.abs(x).max(axis=0))
    error = np.sqrt(x.var(axis=0) / len(x) + y.var(axis=0) / len(y)) + tiny
    moved = np.abs(x.mean(axis=0) - y.mean(axis=0)) / error
    order = np.argsort(-moved, kind="stable")
    chosen = order[: max(1, min(len(a), len(b)) // 3)]
    w = _discriminant(x[:, chosen], y[:, chosen])
    clear = order[: max(1, int((moved > _CLEARLY).sum()))]
    off, on = np.median(x[:, clear], axis=0), np.median(y[:, clear], axis=0)
    scale = (np.abs(x[:, clear] - off).mean(axis=0) + np.abs(y[:, clear] - on).mean(axis=0)) / 2 + tiny[clear]

    def ratio(seen: Seen) -> float:
        if seen.form != form:
            return 0.0
        at = seen.numbers[clear]
        return float(((np.abs(at - off) - np.abs(at - on)) / scale).sum())

    return ratio, lambda seen: float(seen.numbers[chosen] @ w) if seen.form == form else 0.0


def _discriminant(a: Array, b: Array) -> Array:
    """(Σ + a little)⁻¹ (mean of b − mean of a): also finds directions in which there is no noise at all."""
    centred = np.concatenate([a - a.mean(axis=0), b - b.mean(axis=0)])
    covariance = centred.T @ centred / len(centred)
    ridge = 1e-9 * (np.trace(covariance) / len(covariance) + 1e-12)
    w = np.linalg.solve(covariance + ridge * np.eye(len(covariance)), b.mean(axis=0) - a.mean(axis=0))
    length = float(np.linalg.norm(w))
    return w / length if length > 0 else w


def _auc(a: Array, b: Array) -> float:
    """How often a score of b is larger than one of a."""
    return float((b[:, None] > a[None, :]).mean() + 0.5 * (b[:, None] == a[None, :]).mean())


# -- counting ----------------------------------------------------------------------------------------------------------


def _counted(
    without: Array, with_it: Array, threshold: float
) -> tuple[float, tuple[float, float], float, tuple[tuple[float, float], ...]]:
    """The advantage at a threshold that other runs chose; its interval, its bound, and the alarms at every one."""
    n = len(without)
    false, true = int((without >= threshold).sum()), int((with_it >= threshold).sum())

    def bounds(confidence: float) -> tuple[float, float]:
        level = 1 - (1 - confidence) / 4  # two sides of two probabilities
        low = [clopper_pearson(hits, n, level, upper=False) for hits in (false, true)]
        high = [clopper_pearson(hits, n, level, upper=True) for hits in (false, true)]
        return low[1] - high[0], high[1] - low[0]

    every = np.unique(np.concatenate([without, with_it]))[::-1]
    step = max(1, len(every) // 100)
    curve = [(0.0, 0.0)] + [(float((without >= at).mean()), float((with_it >= at).mean())) for at in every[::step]]
    return (true - false) / n, bounds(CONFIDENCE), bounds(ALARM)[0], (*curve, (1.0, 1.0))


def _right(advantage: float) -> str:
    """How often somebody is right about two cases that are equally likely."""
    return f"{50 + 50 * advantage:.1f} %"
