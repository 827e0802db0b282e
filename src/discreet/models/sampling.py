"""Records drawn from a model: exactly where the graph allows it, by Gibbs sampling otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import CostError, InputError, counted
from ..inference.gibbs import gibbs_sample
from .distribution import Distribution, Given
from .options import check_draws
from .queries import calibrate, check_method, evidence_codes
from .records import RandomState, Records, generator, origin_of

METHODS = ("auto", "exact", "rounded", "gibbs")
MOST_VALUES = 10**10
"""Of one sample: far more would not fit into the memory of any machine."""


def sample(
    model: Distribution,
    n: int,
    random_state: RandomState,
    given: Given | None,
    method: str,
    within_bins: bool,
    limit: int,
    options: Mapping[str, Any],
) -> Records:
    check_method(method, METHODS)
    if isinstance(n, bool) or not isinstance(n, int | np.integer) or n < 0:
        raise InputError(f"the number of records must be a whole number, zero or more; got n={n!r}")
    if n * max(len(model.domain), 1) > MOST_VALUES:
        raise CostError(
            f"{n:,} records of {counted(len(model.domain), 'column')} are more than is drawn at once, {MOST_VALUES:,} "
            "values; draw fewer, several times with different seeds"
        )
    check_draws(options, method)
    rng = generator(random_state)
    evidence = evidence_codes(model.domain, given)
    codes, used, reason = _draw(model, int(n), rng, evidence, method, limit, options)
    records = Records(model.domain, codes, method=used, reason=reason, origin=origin_of(model.card))
    return records.within_bins(rng) if within_bins else records


def _draw(
    model: Distribution,
    n: int,
    rng: np.random.Generator,
    evidence: Mapping[str, int],
    method: str,
    limit: int,
    options: Mapping[str, Any],
) -> tuple[NDArray[Any], str, str]:
    reason = 'method="gibbs" was asked for'
    if method != "gibbs":
        used = "rounded" if method == "rounded" else "exact"
        codes = None if evidence else model._sample_forward(n, rng, used == "rounded")
        if codes is not None:
            return codes, used, "each column given its parents"
        try:
            beliefs = calibrate(model, evidence, limit) if evidence else model._calibrated
        except CostError as error:
            if method != "auto":
                raise
            reason = str(error)
        else:
            drawn = beliefs.sample_rounded(n, rng) if used == "rounded" else beliefs.sample(n, rng)
            return drawn, used, "clique by clique of the junction tree"
    codes = gibbs_sample(model.domain, model.potentials, n, evidence=evidence, random_state=rng, **options)
    return codes, "gibbs", reason
