"""Which monomials a binary field has, as far as noisy parities tell: post-processing."""

from __future__ import annotations

import math

import numpy as np

from ...domain import Clique
from .enumeration import MOST_COLUMNS
from .ising_fit import BOUNDED_CUT, GENEROUS_CUT, mostly_real
from .parity_moments import ParityFit, ParityMoments, expected_parities, fit_parities

_SEARCHES = 10  # fits of a search on many columns


def cut_among(candidates: int) -> float:
    """Standard errors that the largest of so many estimates of nothing hardly exceeds."""
    return math.sqrt(2 * math.log(max(candidates, 2))) + 0.5


def candidates_again(moments: ParityMoments, *, bounded: bool, random_state: int = 0) -> tuple[list[Clique], bool]:
    """Monomials that may stand out when they are measured again (and all single columns), and whether most of all do.

    Up to 20 columns from one fit of everything. Beyond, from small fits: the parities that a fit contradicts most are
    added until none is contradicted.
    """
    if len(moments.domain) > MOST_COLUMNS:
        return _search(moments, random_state), False
    fit = fit_parities(moments)
    joint, z = _scores(fit)
    if not bounded and mostly_real(z[joint] < 1, 0.683):
        return list(moments.monomials), True
    cut = min(cut_among(len(moments.monomials)), GENEROUS_CUT)
    return [I for I, kept in zip(fit.monomials, (z > cut) | ~joint, strict=True) if kept], False


def standing_out(fit: ParityFit, among: int, most: int | None, least: float) -> list[Clique]:
    """The fitted monomials that stand out of the noise among so many, and all single columns."""
    joint, z = _scores(fit)
    bounded = most is not None or least > 0
    cut = min(cut_among(among), BOUNDED_CUT) if bounded else cut_among(among)
    keep = (z > cut) & (np.abs(fit.c) >= least / 2)
    if most is not None and (keep & joint).sum() > most:
        order = np.argsort(-np.where(keep & joint, z, -1.0), kind="stable")
        keep[order[most:]] = False
    return [I for I, kept in zip(fit.monomials, keep | ~joint, strict=True) if kept]


def _scores(fit: ParityFit) -> tuple[np.ndarray, np.ndarray]:
    joint = np.array([len(I) > 1 for I in fit.monomials])
    return joint, np.abs(fit.c) / np.maximum(fit.error, 1e-300)


def _search(moments: ParityMoments, random_state: int) -> list[Clique]:
    found: list[Clique] = [I for I in moments.monomials if len(I) == 1]
    at_once = max(4, len(moments.domain) // 2)
    cut = cut_among(len(moments.monomials)) - 0.5
    start: dict[Clique, float] = {}
    for _ in range(_SEARCHES):
        fit = fit_parities(moments.only(found), start, random_state)
        start = fit.coefficients
        expected, records = expected_parities(fit, moments.domain, moments.monomials)
        spread = 1 - np.minimum(expected**2, 0.99)
        error = np.sqrt(moments.variance + spread / moments.records + spread / records)
        misfit = np.abs(moments.mean - expected) / error
        known = set(found)
        order = [k for k in np.argsort(-misfit, kind="stable") if moments.monomials[k] not in known]
        worst = [moments.monomials[k] for k in order[:at_once] if misfit[k] > cut]
        if not worst:
            break
        found += worst
    return found
