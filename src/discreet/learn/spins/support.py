"""Which interactions a field of spins has, as far as noisy parities tell: post-processing.

Two questions are asked of a term. Does its coefficient stand out of its own standard error? Where columns are strongly
correlated none may, although together they are plainly there; so terms are left out only while what is left explains
everything that was measured: those that the fit contradicts most come back, until none is contradicted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...domain import Clique
from .enumeration import MOST_COLUMNS
from .likelihood import Fit, fit_terms, plain_fit
from .moments import Moments
from .pairs import bethe_couplings, bethe_errors, index_of

Array = NDArray[np.float64]
GENEROUS_CUT = 2.5  # standard errors beyond which a term is looked at again
BOUNDED_CUT = 3.0  # standard errors that a term must show when a bound on their number keeps out the false ones
_SEARCHES = 10  # fits of a search on many columns, where each takes its time


def cut_among(candidates: int) -> float:
    """Standard errors that the largest of so many estimates of nothing, some √(2 ln m), hardly exceeds."""
    return math.sqrt(2 * math.log(max(candidates, 2))) + 0.5


def mostly_real(small: NDArray[np.bool_], probability: float) -> bool:
    """Whether clearly more than half of many estimates are of something: far fewer of them are small than there would
    be if half were noise, of which this part is small."""
    m = len(small)
    expected = 0.5 * m * probability
    slack = 1.5 * math.sqrt(expected * (1 - probability))
    return m > 3 and float(small.sum()) < expected - slack


def significant(
    moments: Moments,
    *,
    most: int | None = None,
    least: float = 0.0,
    generous: bool = False,
    random_state: int = 0,
) -> tuple[list[Clique], bool]:
    """The measured terms that stand out of the noise, and whether nearly all seem to be there.

    What lies above :func:`cut_among` is taken. Where more than half of all terms look real, leaving out the small ones
    would cost as much as it saves, and all are kept. ``most`` keeps the largest, ``least`` those of that size.
    ``generous`` names all that may turn out to be real when they are measured again, and some that will not.
    """
    terms = moments.joint
    if not terms:
        return [], False
    if moments.p > MOST_COLUMNS and moments.order > 2:  # too many for one fit: a search, term by term
        fit = explained(moments, [], cut_among(len(terms)) - 0.5, random_state)
        return (list(fit.moments.joint) if generous else standing_out(fit, most, least)), False
    c, error = _all_at_once(moments)
    size = np.divide(np.abs(c), error, out=np.zeros_like(c), where=error > 0)
    dense = most is None and least == 0 and mostly_real(size < 1, 0.683)
    cut = cut_among(len(terms))
    if most is not None:
        cut = min(cut, BOUNDED_CUT)
    if generous:
        cut, least, most = min(cut, GENEROUS_CUT), 0.0, None if most is None else 2 * most
    keep = np.ones(len(terms), dtype=bool) if dense else size > cut
    if least > 0:
        keep = (np.abs(c) >= least / 2) & (size > 1)
    return _kept(terms, _strongest(keep, size, most)), dense


def _all_at_once(moments: Moments) -> tuple[Array, Array]:
    """Coefficients of all measured terms together, and their standard errors."""
    if moments.p <= MOST_COLUMNS:
        fit = plain_fit(moments.only(moments.joint))
        return fit.joint, fit.errors()
    at = index_of(moments.domain.names, moments.joint)
    return bethe_couplings(moments)[at], bethe_errors(moments)[at]


def standing_out(fit: Fit, most: int | None = None, least: float = 0.0) -> list[Clique]:
    """Of fitted terms, a few out of all that there might be, those that stand out."""
    moments = fit.moments
    strength, error = np.abs(fit.joint), np.maximum(fit.errors(), 1e-300)
    cut = cut_among(sum(math.comb(moments.p, k) for k in range(2, moments.order + 1)))
    if most is not None:
        cut = min(cut, BOUNDED_CUT)
    keep = strength > cut * error if least == 0 else strength >= least / 2
    return _kept(moments.joint, _strongest(keep, strength / error, most))


def explained(
    moments: Moments, terms: Sequence[Clique], cut: float | None = None, random_state: int = 0, fit: Fit | None = None
) -> Fit:
    """The fit of these terms, and of as many more as it takes until no measured parity contradicts it.

    Terms are added by how far the fit is from what was measured, while that is more than noise. ``fit``: that of the
    terms, if there is one already.
    """
    measured = moments.joint
    mean, variance = moments.at(measured)
    cut = cut_among(len(measured)) if cut is None else cut
    at_once = 3 if moments.order <= 2 else max(4, moments.p // 2)
    found = fit or fit_terms(moments.only(terms), None, random_state)
    for _ in range(len(measured) if moments.p <= MOST_COLUMNS else _SEARCHES):
        known = set(found.moments.joint)
        expected, records = found.expected(measured)
        spread = 1 - mean**2
        misfit = np.abs(mean - expected) / np.sqrt(variance + spread / moments.records + spread / records)
        worst = [k for k in np.argsort(-misfit, kind="stable") if measured[k] not in known and misfit[k] > cut]
        if not worst:
            break
        more = [*found.moments.joint, *(measured[k] for k in worst[:at_once])]
        found = fit_terms(moments.only(more), found.coefficients, random_state)
    return found


def _strongest(keep: NDArray[np.bool_], size: Array, most: int | None) -> NDArray[np.bool_]:
    """At most so many of those to be kept, by size."""
    if most is None or keep.sum() <= most:
        return keep
    chosen = np.zeros_like(keep)
    chosen[np.argsort(-np.where(keep, size, -1.0), kind="stable")[:most]] = True
    return chosen


def _kept(terms: Sequence[Clique], keep: NDArray[np.bool_]) -> list[Clique]:
    return [I for I, kept in zip(terms, keep, strict=True) if kept]


def estimated(
    moments: Moments,
    last: Sequence[Clique] | None,
    dense: bool = False,
    most: int | None = None,
    least: float = 0.0,
    random_state: int = 0,
) -> Fit:
    """The field from everything measured. ``last``: the terms measured last, because they may be there (None: all
    were, once); ``dense``: those are all there are, and stay."""
    fit = None
    if last is None:
        kept, dense = significant(moments, most=most, least=least, random_state=random_state)
    else:
        fit = fit_terms(moments.only(last), None, random_state)
        kept = list(last) if dense else standing_out(fit, most, least)
    if fit is None or kept != list(fit.moments.joint):
        fit = fit_terms(moments.only(kept), None if fit is None else fit.coefficients, random_state)
    free = most is None and least == 0 and not dense
    # On many columns a fit of pairs is one long run of chains, and the couplings of all pairs are known together.
    return explained(moments, kept, None, random_state, fit) if free and can_explain(moments) else fit


def can_explain(moments: Moments) -> bool:
    """Whether the fit says what it expects of all parities, or can be asked: not for pairs of many columns."""
    return moments.p <= MOST_COLUMNS or moments.order > 2
