"""How far the noise can have moved an answer: intervals for any question to a model learned from measurements.

Parametric bootstrap. The noise is public: its distribution and scale are part of every measurement. So take tables that
are as near to the exact ones as the noisy ones tell (consistent, and projected to non-negative counts), add fresh noise
of the same kind, refit with the same estimator, and see how far the answers are from what the estimator makes of those
tables when they are exact. That imitates how far the real answer is from its target. The half-width is the root mean
square of the distances times Student's quantile: it counts the bias of an estimator that smooths as well as its
spread, and needs fewer draws than quantiles do.

*Target of an interval*: the answer of the same estimator on the exact tables, bias included; in a release the records'
own, so that there is room for how they scatter about the model's form by chance (:mod:`.scatter`). Intervals do not
speak of people whom the records were drawn from, nor of a form that is wrong. Answers of a release about columns that
were not measured together say so, and are widened by what a certificate says (:mod:`.together`). Where a condition
has fewer records than noise hides, the answer may rest on what is typical of other rows; the interval says so in its
``note`` and makes room for how so few scatter (:mod:`.rare`); of numbers it takes in all that bins allow. Of levels
that were taken together, refits have each as far from the others as its noise (:mod:`.within` has the rest).

All of it is post-processing: it costs no budget. ``random_state`` seeds it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import language, markup
from ..arguments import check_whole
from ..conditions import Condition, number_line
from ..errors import DiscreetError, EvidenceError, InputError
from ..language import Resolved
from ..learn.consistency import estimated_total
from ..learn.fields.grouping import shares_within
from ..measurement import Measurements, Noise
from ..models import numbers
from ..models.answer import Answer
from ..models.base import Model
from ..models.grouped import GroupedField
from ..models.marginals import marginals
from ..models.records import RandomState
from ..progress import track
from . import left_open, rare, student
from .fresh_noise import likely_tables, whole, with_counts
from .interval import ANYTHING, Interval, Survival
from .same_model import SAME, Refit, check_belongs
from .scatter import Scatter
from .together import Together
from .within import told_apart_alike

Array = NDArray[np.float64]
Expected = Callable[[Model], Sequence[NDArray[Any]]]


@dataclass(frozen=True, eq=False)
class NoiseIntervals:
    """Refits under fresh noise, ready for questions. Made by :func:`noise_intervals`."""

    model: Model
    centre: Model
    """What the estimator makes of the tables that fresh noise is added to, without it, but as if they had it."""
    draws: tuple[Model, ...]
    level: float
    exact: Model | None = None
    """What the estimator makes of these tables when it takes them for exact: the stand-in for the target."""
    records: float | None = None
    deviation: float | None = None
    """The number of records as far as the noisy tables tell, and the noise of a cell (median over tables)."""
    together: Together | None = None
    """Where the graph was found: what was measured together, by which answers about other columns are widened."""

    def _repr_html_(self) -> str:
        """The single columns, with intervals."""
        columns = [self.marginal(name) for name in self.model.domain.names[:6]]
        more = [f"… and {len(self.model.domain) - 6} more columns"] if len(self.model.domain) > 6 else []
        return "".join(column._repr_html_() for column in columns) + (markup.table(more[0]) if more else "")

    def ask(self, text: str) -> Interval | Survival:
        """A question in the query language: ``P(lung | smoke=yes)`` with an interval for each cell, ``MAP(lung, tub)``
        with the probability that the answer survives fresh noise."""
        question = language.resolve(language.parse(text), self.model.domain)
        given = dict(question.given)
        if question.kind == "MAP":
            return self.map([t.name for t in question.targets], given)
        found = self.of(lambda m: np.asarray(m.ask(text)))
        names = [t.name for t in question.targets]
        if question.kind == "P":
            event = {t.name: t.event for t in question.targets if t.event is not None}
            found = self._clipped(found, [n for n in names if n not in event], given, question.tables, event)
        else:
            found = self._of_numbers(found, question)
        asked = self.model.ask(text)
        answer = asked if isinstance(asked, Answer) else None
        if answer is not None:
            remarks = [answer.remark, left_open.in_words(found, self.model, question)]
            answer = replace(answer, remark="; ".join(filter(None, remarks)))
        return replace(found, answer=answer)

    def of(self, question: Callable[[Model], Any]) -> Interval:
        """An interval for any numbers that can be computed from a model, probabilities or not."""
        estimate = np.asarray(question(self.model), dtype=np.float64)
        moves = np.stack([np.asarray(question(m), dtype=np.float64) for m in self.draws]) - self._target(question)
        # Student's quantile and not the normal one: the root mean square is itself known from so many draws only.
        half = student.half_width(len(self.draws), self.level) * np.sqrt(np.mean(moves**2, axis=0))
        return Interval(estimate, estimate - half, estimate + half, self.level)

    def marginal(self, names: Iterable[str] | str, given: Mapping[str, object] | None = None) -> Interval:
        """For each cell of P(names | given)."""
        wanted = names if isinstance(names, str | Mapping) else tuple(names)  # asked of many models
        found = self._clipped(self.of(lambda m: m.marginal(wanted, given).probabilities), _names(wanted), given)
        return replace(found, answer=self.model.marginal(wanted, given))

    def conditional(self, names: Iterable[str] | str, given: Mapping[str, object]) -> Interval:
        return self.marginal(names, given)

    def probability(self, event: Mapping[str, object], given: Mapping[str, object] | None = None) -> Interval:
        return self._clipped(self.of(lambda m: m.probability(event, given)), (), given, event=event)

    def map(self, names: Iterable[str] | str | None = None, given: Mapping[str, object] | None = None) -> Survival:
        """The most probable values of these columns (all that are not given, by default), and how firm they are."""
        wanted = names if names is None or isinstance(names, str) else tuple(names)
        return Survival(
            self.model.map(wanted, given),
            self.map_survival(wanted, given),
            self._caution(_names(wanted), given, self._share(given), room=False),
        )

    def map_survival(
        self, names: Iterable[str] | str | None = None, given: Mapping[str, object] | None = None
    ) -> float:
        """How often a refit under fresh noise gives the same most probable values as the model."""
        wanted = names if names is None or isinstance(names, str) else tuple(names)
        answer = dict(self.model.map(wanted, given))
        return sum(dict(m.map(wanted, given)) == answer for m in self.draws) / len(self.draws)

    def _target(self, question: Callable[[Model], Any]) -> Array:
        if self.exact is not None:
            try:
                found = np.asarray(question(self.exact), dtype=np.float64)
                if np.all(np.isfinite(found)):
                    return found
            except EvidenceError:  # no record has it as far as the tables tell; the smoothed model allows it
                pass
        return np.asarray(question(self.centre), dtype=np.float64)

    def _clipped(
        self,
        found: Interval,
        names: Iterable[str],
        given: Mapping[str, object] | None,
        tables: tuple[str, ...] = (),
        event: Mapping[str, object] | None = None,
    ) -> Interval:
        """An interval for probabilities, wide enough for how records scatter about the model's form or, where they are
        few, about the answer, and for a graph that was found. ``tables`` are given with every level, and are the first
        axes."""
        event = event or {}
        scatter = np.zeros_like(found.estimate)
        if self._scatter is not None:
            scatter = self._scatter.of_answer(found.estimate, names, given or {}, tables, event)
        if self.records is not None and self.deviation is not None and (given or tables):
            few = rare.chance(found.estimate, self.records * self._share(given, tables), self.deviation)
            scatter = np.maximum(scatter, few)
        found = found.widened(NormalDist().inv_cdf((1 + self.level) / 2) * scatter)
        found, part = self._room(found, [*names, *event, *tables], given, tables)
        part = part.reshape(part.shape + (1,) * (found.estimate.ndim - part.ndim))
        lower = np.clip(np.minimum(found.lower, found.estimate - part), 0, 1)
        upper = np.clip(np.maximum(found.upper, found.estimate + part), 0, 1)
        for axis, name in enumerate((*tables, *names)):  # P(age | age >= 40): of others there are none for certain
            if isinstance(condition := (given or {}).get(name), Condition):
                others = np.delete(np.arange(found.estimate.shape[axis]), sorted(condition.codes))
                for end in (lower, upper):
                    np.moveaxis(end, axis, 0)[others] = 0.0
        anything = upper - lower >= self.level
        said = [f"{found.note}; ± makes room for that" if part.any() else found.note]
        if anything.any():
            said.append(f"of what is ± {ANYTHING}, nothing is known")
        return replace(found, lower=lower, upper=upper, note="; ".join(filter(None, said)), anything=anything)

    @cached_property
    def _scatter(self) -> Scatter | None:
        """None where the number of records is not known, or it is not known what was measured."""
        if self.records is None or self.together is None:
            return None
        return Scatter.of(self.model, self.records, self.together.certificate is not None)

    def _of_numbers(self, found: Interval, question: Resolved) -> Interval:
        """An interval for a mean or a quantile, wide enough for a graph that was found; of a standard deviation it is
        not known how far that can move it. Where hardly any record is behind it, it may be all that its bins allow."""
        name, given = question.targets[0].name, dict(question.given)
        if question.kind == "QUANTILE":
            line = number_line(self.model.domain[name])
            found = replace(found, places=None if line is None else line.decimals)
        of_whom = self._share(given) * numbers.known_share(self.model, question)
        found, part = self._room(found, [name, *question.tables], given, question.tables, of_whom, name)
        if self.records is not None and self.deviation is not None:
            few = rare.rare_rows(self.records * of_whom, self.deviation)
            low, high = numbers.by_bins_alone(self.model, question)
            lower, upper = np.fmin(found.lower, low), np.fmax(found.upper, high)
            found = replace(found, lower=np.where(few, lower, found.lower), upper=np.where(few, upper, found.upper))
        if not part.any():
            return found
        if question.kind == "SD":
            return replace(found, note=f"{found.note}; ± makes no room for that")
        lower, upper = numbers.without_a_part(self.model, question, part)
        lower, upper = np.fmin(found.lower, lower), np.fmax(found.upper, upper)  # NaN where a refit has no such records
        return replace(found, lower=lower, upper=upper, note=f"{found.note}; ± makes room for that")

    def _room(
        self,
        found: Interval,
        names: Iterable[str],
        given: Mapping[str, object] | None,
        tables: tuple[str, ...],
        of_whom: Array | None = None,
        number: str = "",
    ) -> tuple[Interval, Array]:
        """What to beware of, and which part of the records that an answer is of may be elsewhere than it says, row by
        row: what columns that were not measured together leave open, as a part of those that the condition leaves."""
        share = self._share(given, tables)
        found = replace(
            found, note=self._caution(names, given, share if of_whom is None else of_whom, number, room=not number)
        )
        beyond = 0.0 if self.together is None else self.together.beyond_noise({*names, *(given or ())}, self.level)[0]
        return found, beyond / np.maximum(share if beyond else 1.0, beyond or 1.0)

    def _share(self, given: Mapping[str, object] | None, tables: tuple[str, ...] = ()) -> Array:
        """Of all records, the part that a condition leaves, for each level of columns that are given as a whole."""
        share = np.asarray(float(self.model.probability(given)) if given else 1.0)
        return np.asarray(share * self.model.marginal(tables, given).probabilities) if tables else share

    def _caution(
        self,
        names: Iterable[str],
        given: Mapping[str, object] | None,
        share: Array,
        number: str = "",
        *,
        room: bool,
    ) -> str:
        """What to beware of: more noise than records behind the answer, columns that were not measured together, or
        levels that were taken together."""
        caution = str((self.model.card or {}).get("caution", ""))
        if caution:
            return caution
        said = []
        if self.records is not None and self.deviation is not None and not (share.ndim == 0 and share >= 1):
            said.append(rare.in_words(self.records * share, self.deviation, given or {}, number, room=room))
        apart = "" if self.together is None else self.together.beyond_noise({*names, *(given or ())}, self.level)[1]
        said.append(apart or told_apart_alike(self.model, names, given or {}, room=room))
        return "; ".join(filter(None, said))


def _names(asked: Iterable[str] | str | None) -> tuple[str, ...]:
    return () if asked is None else (asked,) if isinstance(asked, str) else tuple(asked)


def noise_intervals(
    refit: Refit,
    measurements: Measurements,
    model: Model,
    level: float = 0.9,
    draws: int = 100,
    random_state: RandomState = None,
    *,
    expected: Expected | None = None,
) -> NoiseIntervals:
    """Simulate how far the noise of ``measurements`` can have moved what ``refit`` makes of them.

    Parameters
    ----------
    refit:
        The estimator: ``learner.estimate``.
    model:
        What it made of ``measurements``; another model is refused.
    expected:
        The sums that a model expects, one array for each measurement on the scale of its ``values``. Needed only when
        some measurement is not a contingency table.
    """
    if not callable(refit) or not isinstance(measurements, Measurements):
        raise InputError(
            "give the estimator, the measurements and the model: noise_intervals(learner.estimate, …, model)"
        )
    _check_asked(measurements, level, draws)
    if "domain" in inspect.signature(refit).parameters:
        # Tables alone do not tell the order of columns.
        refit = partial(refit, domain=model.domain)  # type: ignore[call-arg]
    rng = np.random.default_rng(random_state)
    tables = likely_tables(measurements) if expected is None else list(expected(model))
    if len(tables) != len(measurements):
        raise InputError(f"{len(measurements)} measurements need as many expected tables, got {len(tables)}")
    check_belongs(refit, measurements, model)
    centre = refit(with_counts(measurements, tables, None))
    refits = [refit(with_counts(measurements, tables, rng)) for _ in track(range(draws), draws, "noise intervals")]
    if expected is not None:  # the model itself stands in for the truth, so that what smoothing hides is counted
        return NoiseIntervals(model, centre, tuple(refits), level, model)
    exact = _exact_fit(refit, measurements, tables)
    return NoiseIntervals(model, centre, tuple(refits), level, exact, *_records_and_deviation(measurements))


def intervals_at_once(
    refits: Callable[[Sequence[Measurements]], Sequence[Model]],
    measurements: Measurements,
    model: Model,
    level: float = 0.9,
    draws: int = 100,
    random_state: RandomState = None,
) -> NoiseIntervals:
    """The same for an estimator of contingency tables that is faster with many at once.

    Here the model itself stands in for the truth: fresh noise is added to its own tables, which agree with each other,
    and the target is the model. So the estimator need not run on tables that it takes for exact, which for the adaptive
    field takes as long as twelve fits. Intervals of either kind cover alike (pairs of columns of asia and sachs at
    ε = 1, nominal 90 %: .89 to .91 of the fits to exact tables, and .88 to .91).
    """
    _check_asked(measurements, level, draws)
    rng = np.random.default_rng(random_state)
    records, deviation = _records_and_deviation(measurements)
    asked = [m.told_of for m in measurements if m.told_of]
    own = dict(zip(asked, marginals(model, asked)[0], strict=True))
    tables = [m.of_table(records * own[m.told_of]) if m.told_of else np.array(records) for m in measurements]
    fresh = [with_counts(measurements, tables, rng) for _ in range(draws)]
    again, *found = refits([measurements, *fresh])
    check_belongs(lambda _: again, measurements, model, SAME)  # earlier versions stopped up to 0.003 away
    found = [_unshrunk(one, own) for one, own in zip(found, fresh, strict=True)]
    return NoiseIntervals(model, model, tuple(found), level, model, records, deviation)


def _unshrunk(refit: Model, measurements: Measurements) -> Model:
    """With the levels of a group as far apart as the noise has them; see :func:`shares_within`."""
    if not isinstance(refit, GroupedField):
        return refit
    return replace(refit, within=shares_within(refit.field.domain, measurements, shrunk=False))


def _check_asked(measurements: Measurements, level: float, draws: int) -> None:
    if not 0 < level < 1:
        raise InputError(f"level must lie strictly between 0 and 1, got {level}")
    check_whole(2, draws=draws)
    if not any(m.noise.variance for m in measurements):
        raise InputError("none of these measurements has noise, so there is nothing to be uncertain about")


def _records_and_deviation(measurements: Measurements) -> tuple[float, float]:
    noisy = [m for m in measurements if m.noise.variance]
    deviations = [m.standard_deviation for m in noisy if m.clique != ()] or [m.standard_deviation for m in noisy]
    return estimated_total(measurements), float(np.median(deviations))


def _exact_fit(refit: Refit, measurements: Measurements, tables: Sequence[NDArray[Any]]) -> Model | None:
    """The estimator on these tables as if they were exact; None for one that cannot do without noise."""
    items = [
        m if m.noise.variance == 0 else replace(m, counts=whole(m, t), noise=Noise("none"), origin="research")
        for m, t in zip(measurements, tables, strict=True)
    ]
    try:
        return refit(Measurements(items, measurements.release))
    except (DiscreetError, ArithmeticError):
        return None
