"""The certificate of fit: how far the model is from the records, pair by pair and on average, as it was paid for.

For a table with counts x of N records and the model's marginal μ, its total variation is ‖x − Nμ‖₁/(2N). What was
released is e = ‖x − N̂μ‖₁ plus noise (:mod:`discreet.learn.certifying`), N̂ the number of records as far as it is known.
The estimate is e/(2N̂). Its error has three sources:

* the noise of the distance, of known law;
* N̂ − N. To first order ‖x − N̂μ‖₁ moves by (N̂ − N)·Σ_i μ_i s_i, s_i the sign of x_i − Nμ_i, which nobody knows. Signs
  that have nothing to do with μ give that sum a variance of q_t = Σμ_i², which is public, and by which the variance of
  N̂ counts here. The tables of one model share their N̂. In the mean of m tables two count as correlated by the columns
  that they share, |s ∩ t|/√(|s||t|), as a model that is off by a column is so in all tables with it: together they have
  Σ_a (Σ_{t∋a} √(q_t/|t|))²/m², a sum over columns; for all pairs of p columns 2/p of what one of them has;
* expectations are rounded to a 64th of a record, which moves the distance of a table of c cells by some √c/200 records:
  left out.

A total variation is at least 0, and so are its intervals (:mod:`.nonnegative`); nor is it above 1, where both are cut
off.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from statistics import NormalDist
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import markup
from ..domain import Clique
from ..errors import FileFormatError, InputError, counted
from ..frames import frame_of
from ..learn.compared import LARGEST_TABLE, LARGEST_WEIGHT, MOST_TABLES
from ..models.base import Model
from ..models.marginals import EXACTLY, from_independence, from_sampling, marginals
from .accuracy import Accuracy
from .noisy import Noisy, real_number, whole_number
from .nonnegative import nonnegative

Array = NDArray[np.float64]
FINE = 0.02
"""A mean total variation up to which pairs are called well reproduced, whatever else is known."""
LEVEL = 0.9
BOUND = 0.95
_WORST = 10  # tables that a card names
_MOST = 10**6


@dataclass(frozen=True)
class Fit:
    """One figure: an estimate of a total variation, and an interval around it."""

    estimate: float
    lower: float
    upper: float

    def __str__(self) -> str:
        places = _places((self.upper - self.lower) / 2, 1)  # so that both ends can be told apart
        estimate, lower, upper = (_number(x, places) for x in (self.estimate, self.lower, self.upper))
        return f"{estimate} ({lower} to {upper})"


@dataclass(frozen=True)
class Certificate:
    """How far the model is from the records: ``print(release.certificate)``, ``release.certificate.to_frame()``.

    Parameters
    ----------
    cliques:
        The tables that were compared; ``every`` is how many there would be, ``workload`` whether somebody named them.
    records, records_deviation:
        The number of records as far as it is known, and its standard deviation.
    squares:
        Σμ² of each table of the model.
    from_independence:
        How far the model's tables are from those of independent columns, on average: what there was to be learned, as
        the model has it.
    from_sampling:
        How far a fresh sample of so many records of the model would be from it, on average: nobody can ask for less. 0
        in files that do not say it.
    each, total:
        What was released: noisy distances of single tables, and (under pure DP) of all together.
    weights:
        How much each table counts for the mean, in whole numbers; none if all count alike.
    accuracy:
        A noisy count of the records of which the model predicts a column right, where that was asked for.
    paid:
        The statement of what it cost, where it was bought after the model; None where it was part of the same run.
    """

    cliques: tuple[Clique, ...]
    every: int
    workload: bool
    records: float
    records_deviation: float
    squares: tuple[float, ...]
    from_independence: float
    computed: str
    each: Noisy | None = None
    total: Noisy | None = None
    weights: tuple[int, ...] = ()
    from_sampling: float = 0.0
    accuracy: Accuracy | None = None
    paid: Mapping[str, Any] | None = field(default=None)

    # -- figures -----------------------------------------------------------------------------------------------------

    @property
    def mean(self) -> float:
        """The estimate of the mean total variation of all tables compared; noise can take it beyond what such a
        distance can be, and then it is 0 or 1."""
        return min(max(self._mean[0], 0.0), 1.0)

    def mean_interval(self, level: float = LEVEL) -> tuple[float, float]:
        """An interval for :attr:`mean`."""
        centre, deviation, laplace = self._mean
        lower, upper = nonnegative(np.array([centre]), np.array([deviation]), level, laplace=laplace)
        return min(float(lower[0]), 1.0), min(float(upper[0]), 1.0)

    def mean_at_most(self, level: float = BOUND) -> float:
        """What the mean does not exceed, with this confidence."""
        centre, deviation, laplace = self._mean
        tail = -math.log(2 * (1 - level)) / math.sqrt(2) if laplace else NormalDist().inv_cdf(level)
        return min(max(centre + tail * deviation, self.mean_interval(2 * level - 1)[1]), 1.0)

    def of(self, names: Sequence[str] | str, level: float = LEVEL) -> Fit:
        """The figure of one table, by its columns."""
        wanted = {names} if isinstance(names, str) else set(names)
        for clique, fit in self.fits(level).items():
            if set(clique) == wanted:
                return fit
        raise InputError(f"there is no figure for {' × '.join(sorted(map(str, wanted)))} in this certificate")

    def fits(self, level: float = LEVEL) -> dict[Clique, Fit]:
        """Every table with a figure of its own, largest estimate first."""
        if self.each is None:
            return {}
        centres, deviations = self._single
        lower, upper = nonnegative(centres, deviations, level, laplace=self.each.noise.kind == "laplace")
        figures = np.clip(np.stack([centres, lower, upper], axis=1), 0.0, 1.0).tolist()
        order = np.argsort(-centres, kind="stable")
        named = [self.cliques[i] for i in self.each.which]
        return {named[i]: Fit(*figures[i]) for i in order.tolist()}

    @cached_property
    def outstanding(self) -> dict[Clique, Fit]:
        """Tables that are certainly further away than the mean may be, with all tables in mind: 95 % for all of them
        together (Bonferroni)."""
        if self.each is None:
            return {}
        level = 1 - (1 - BOUND) / len(self.each.which)
        bound = self.mean_at_most()
        own = self.fits()
        return {c: own[c] for c, fit in self.fits(level).items() if fit.lower > bound}

    @property
    def worst_at_most(self) -> float | None:
        """What no single table exceeds, 95 % for all of them together; None where only some were measured."""
        if self.each is None or len(self.each.which) < len(self.cliques):
            return None
        level = 1 - (1 - BOUND) / len(self.each.which)
        return max(fit.upper for fit in self.fits(level).values())

    @cached_property
    def _single(self) -> tuple[Array, Array]:
        assert self.each is not None
        centres = self.each.values / (2 * self.records)
        squares = np.array([self.squares[i] for i in self.each.which])
        moved = (squares + (2 * np.clip(centres, 0, 1)) ** 2) * self.records_deviation**2
        return centres, np.sqrt(self.each.variance + moved) / (2 * self.records)

    @cached_property
    def _mean(self) -> tuple[float, float, bool]:
        """Estimate, standard deviation, and whether the noise is Laplace's."""
        w = np.array(self._counting, dtype=np.float64)
        if self.total is not None:
            centre, variance = float(self.total.values[0]) / w.sum(), self.total.variance / w.sum() ** 2
        else:
            assert self.each is not None
            centre = float(np.average(self.each.values, weights=w))
            variance = self.each.variance * float((w**2).sum() / w.sum() ** 2)
        centre /= 2 * self.records
        moved = (self._shared(w / w.sum()) + (2 * min(max(centre, 0), 1)) ** 2) * self.records_deviation**2
        laplace = self.total is not None
        return centre, math.sqrt(variance + moved) / (2 * self.records), laplace

    def _shared(self, w: Array) -> float:
        """By which part the variance of the number of records counts in the mean; see the module's text."""
        of: dict[str, float] = {}
        for clique, square, weight in zip(self.cliques, self.squares, w, strict=True):
            for name in clique:
                of[name] = of.get(name, 0.0) + weight * math.sqrt(square / len(clique))
        return math.fsum(part**2 for part in of.values())

    @property
    def _counting(self) -> tuple[int, ...]:
        """The weight of each table."""
        return self.weights or (1,) * len(self.cliques)

    def is_about(self, model: Model) -> bool:
        """Whether what it says of the model's tables is so, where that was computed exactly."""
        if self.computed != EXACTLY:
            return True
        if len(self.cliques) > MOST_TABLES:
            return False
        names, most = set(model.domain.names), LARGEST_TABLE  # what a file names may be anything
        if any(set(c) - names or len(set(c)) < len(c) or model.domain.size(c) > most for c in self.cliques):
            return False
        tables, computed = marginals(model, self.cliques)
        own = [*(float((mu**2).sum()) for mu in tables), from_independence(tables, self.weights)]
        said = [*self.squares, self.from_independence]
        if self.from_sampling:
            own, said = [*own, from_sampling(tables, self.records, self.weights)], [*said, self.from_sampling]
        same = np.allclose(own, said, rtol=0, atol=1e-5)
        return computed == EXACTLY and bool(same)

    @property
    def drawn(self) -> list[tuple[Noisy, tuple[int, int]]]:
        """What was released; and of each how many numbers it has, and how far a row that is added moves every one of
        them, in units of its grid (:class:`~discreet.privacy.queries.distances.Distances`)."""
        out = []
        if self.each is not None:
            out.append((self.each, (len(self.each.which), math.ceil(1 / self.each.grid))))
        if self.total is not None:
            out.append((self.total, (1, sum(self._counting) * math.ceil(1 / self.total.grid))))
        if self.accuracy is not None:
            out.append((self.accuracy.right, (1, 1)))
        return out

    def right(self, level: float = LEVEL) -> Fit | None:
        """Which part of the records has the target that the model predicts from the other columns."""
        if self.accuracy is None:
            return None
        return Fit(*self.accuracy.interval(self.records, self.records_deviation, level))

    # -- words -------------------------------------------------------------------------------------------------------

    @property
    def verdict(self) -> str:
        """``"good"``: the mean is certainly small, or certainly at most half of what independent columns would miss.
        ``"fair"``: it is certainly within twice what a fresh sample of as many records would be, so that more of them
        is what would tell. ``"poor"``: it is certainly none of these. ``"unclear"``: the certificate's noise hides it.

        If the mean distance of the model from the records is a, and from independent columns b, then that of
        independent columns from the records is at least b − a, by the triangle inequality: a ≤ b/2 means that they
        would have been no nearer.
        """
        at_most, good, fair = self.mean_at_most(), max(FINE, self.from_independence / 2), 2 * self.from_sampling
        if at_most <= max(good, fair):
            return "good" if at_most <= good else "fair"
        return "poor" if self.mean_interval()[0] > max(good, fair) else "unclear"

    def lines(self) -> list[str]:
        """The certificate in plain sentences."""
        m, alone = len(self.cliques), len(self.cliques[0]) == 1
        what = "the tables asked for" if self.workload else "columns" if alone else "pairs of columns"
        some = f" ({m:,} of {self.every:,} were compared)" if self.every > m else ""
        weighted = ", each with its weight" if self.weights else ""
        near = f"about {_number(self.mean)} away from" if self.mean > 0 else "as near as can be told to"
        out = [
            f"Certificate of fit ({self.verdict}): {what}{some} are {near} the records on average{weighted}, in "
            f"total variation (at most {_number(self.mean_at_most())} at 95 %)."
        ]
        worst = self.worst_at_most
        if worst is None and self.each is not None and len(self.cliques) > 1:
            clique, fit = next(iter(self.fits().items()))
            which = " × ".join(clique)
            out.append(f"One was looked at by itself, picked as perhaps the furthest away, {which}: {fit} at 90 %.")
        elif self.outstanding:
            clique, fit = next(iter(self.outstanding.items()))
            more = len(self.outstanding) - 1
            also = f", and {more} more stand out" if more else ""
            out.append(f"The worst, {' × '.join(clique)}: {fit} at 90 %{also}.")
        elif worst is not None and len(self.cliques) > 1:
            out.append(f"No single one stands out; none is further away than {_number(worst)} (95 % for all of them).")
        if (right := self.right()) is not None and self.accuracy is not None:
            out.append(
                f"The model predicts {self.accuracy.target} from the other columns right for {right.estimate:.1%} of "
                f"the records ({right.lower:.1%} to {right.upper:.1%} at 90 %)."
            )
        return [*out, *self._advice()]

    @property
    def was_named(self) -> bool:
        """Whether these tables are those that the fit itself was to get right."""
        return self.workload and self.paid is None

    def _advice(self) -> list[str]:
        apart = _number(self.from_independence)
        match self.verdict:
            case "poor":
                named = "; if only some columns matter together, name them in a new fit's --workload"
                return [
                    "Beware: that does not show a good model. Its own tables differ from those of independent columns "
                    f"by {apart} on average, so that it is not shown to be better than these. Coarser columns in the "
                    "schema (fewer bins or levels), a larger budget, more records or another family may help "
                    f"(`discreet plan --methods`){'' if self.was_named else named}."
                ]
            case "fair":
                return [
                    "So few records over so many cells are this far from any model: a fresh sample of them would be "
                    f"{_number(self.from_sampling)} away. So it is not shown to be better than independent columns, "
                    f"from which its own tables differ by {apart} on average."
                ]
            case "unclear":
                return [
                    "Its noise is too large to tell whether the model is good (its tables differ from those of "
                    f"independent columns by {apart} on average); a larger share for the certificate, or `discreet "
                    "certify` with a budget of its own, would tell."
                ]
        return []

    def __str__(self) -> str:
        return "\n".join(self.lines())

    def _repr_html_(self) -> str:
        first, *notes = self.lines()
        numbers = [[" × ".join(c), *map(_number, (f.estimate, f.lower, f.upper))] for c, f in self.fits().items()]
        head = ["columns", "total variation", "from", "to"]
        return markup.table(first, head, numbers, [*notes, f"{LEVEL:.0%} intervals"] if numbers else notes)

    # -- as data -----------------------------------------------------------------------------------------------------

    def to_frame(self, backend: str = "pandas", *, level: float = LEVEL) -> Any:
        """One row for each table with a figure, as pandas, polars or pyarrow: its columns, the estimate of its total
        variation and an interval, largest first."""
        fits = self.fits(level)
        return frame_of(
            {
                "columns": [" × ".join(c) for c in fits],
                "total_variation": [fit.estimate for fit in fits.values()],
                "lower": [fit.lower for fit in fits.values()],
                "upper": [fit.upper for fit in fits.values()],
            },
            backend,
        )

    def summary(self) -> dict[str, Any]:
        """The figures for a card: the mean, its bound, and the tables with the largest estimates."""
        return {
            "mean_total_variation": round(self.mean, 6),
            "mean_at_most_95_percent": round(self.mean_at_most(), 6),
            "verdict": self.verdict,
            "tables_compared": len(self.cliques),
            "tables_in_all": self.every,
            "largest_estimates_90_percent": [{"columns": list(c), **_rounded(f)} for c, f in self.fits().items()][
                :_WORST
            ],
            **self._right_summary(),
        }

    def _right_summary(self) -> dict[str, Any]:
        if (right := self.right()) is None or self.accuracy is None:
            return {}
        return {"right_predictions_90_percent": {"target": self.accuracy.target, **_rounded(right)}}

    def to_dict(self) -> dict[str, Any]:
        """What was released, from which all figures follow."""
        return {
            "cliques": [list(c) for c in self.cliques],
            "every": self.every,
            "workload": self.workload,
            **({"weights": list(self.weights)} if self.weights else {}),
            "records": self.records,
            "records_deviation": self.records_deviation,
            "squares": list(self.squares),
            "from_independence": self.from_independence,
            **({"from_sampling": self.from_sampling} if self.from_sampling else {}),
            "computed": self.computed,
            **{key: noisy.to_dict() for key, noisy in (("each", self.each), ("total", self.total)) if noisy},
            **({} if self.accuracy is None else {"accuracy": self.accuracy.to_dict()}),
            **({} if self.paid is None else {"paid": dict(self.paid)}),
        }

    @classmethod
    def from_dict(cls, entry: Any) -> Certificate:
        """Read the form of :meth:`to_dict`, which may come from anywhere."""
        try:
            noisy = {key: Noisy.from_dict(entry[key]) for key in ("each", "total") if entry.get(key) is not None}
            made = cls(
                tuple(tuple(str(n) for n in c) for c in entry["cliques"]),
                whole_number(entry["every"]),
                entry["workload"] is True,
                real_number(entry["records"]),
                real_number(entry["records_deviation"]),
                tuple(real_number(s) for s in entry["squares"]),
                real_number(entry["from_independence"]),
                str(entry["computed"])[:100],
                from_sampling=real_number(entry.get("from_sampling", 0)),
                weights=tuple(whole_number(w) for w in entry.get("weights", ())),
                accuracy=None if entry.get("accuracy") is None else Accuracy.from_dict(entry["accuracy"]),
                paid=None if entry.get("paid") is None else dict(entry["paid"]),
                **noisy,
            )
            made._check()
            return made
        except (KeyError, TypeError, ValueError, AttributeError, ArithmeticError, InputError) as error:
            raise FileFormatError(f"its certificate of fit is not well-formed ({str(error)[:80]})") from None

    def _check(self) -> None:
        m = len(self.cliques)
        each, total = self.each, self.total
        lawful = (
            0 < m <= _MOST
            and all(self.cliques)
            and m == len(self.squares)
            and min(*self.squares, self.from_sampling) >= 0
            and (not self.weights or (len(self.weights) == m and all(0 < w <= LARGEST_WEIGHT for w in self.weights)))
            and self.records > 0 <= self.records_deviation
            and (each is not None or total is not None)
            and (total is None or len(total.counts) == 1)
            and (each is None or 0 < len(each.counts) == len(each.which) == len(set(each.which)))
            and (each is None or all(0 <= i < m for i in each.which))
            and (total is not None or each is None or len(each.which) == m)
            and all(noisy.grid > 0 for noisy in (each, total) if noisy is not None)
        )
        if not lawful:
            raise ValueError("its numbers do not fit together")

    def __repr__(self) -> str:
        return f"Certificate({counted(len(self.cliques), 'table')}, mean {_number(self.mean)}, {self.verdict})"


def _rounded(fit: Fit) -> dict[str, float]:
    return {key: round(getattr(fit, key), 6) for key in ("estimate", "lower", "upper")}


def _number(value: float, places: int = 0) -> str:
    """Two digits, but never as a power of ten; with so many places at least."""
    return f"{value:.{max(_places(value, 2), places)}f}" if value > 0 else "0"


def _places(value: float, digits: int) -> int:
    """So many decimals that this many digits can be seen: two to six."""
    return min(max(digits - 1 - math.floor(math.log10(value)), 2), 6) if value > 0 else 2
