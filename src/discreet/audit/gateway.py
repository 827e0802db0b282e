"""Audits of the gateway itself: range, freshness and shape of the noise."""

from __future__ import annotations

import numpy as np
from scipy.special import chdtrc

from ..privacy.mechanisms import Gateway, NoiseCall
from ..privacy.unit import Sensitivity
from .exact import noise_law, selection_law
from .findings import Finding

_UNIT = Sensitivity(1, 1, 1, 1)


def audit_range(gateway: Gateway) -> Finding:
    """Counts beyond 32 bits come through whole."""
    big = np.array([2**40, -(2**40), 2**33 + 1], dtype=np.int64)
    for kind in ("laplace", "gaussian"):
        off = np.abs(gateway.add_noise(NoiseCall(kind, 3.0, _UNIT), big) - big)
        if off.max() > 500:
            return Finding("64-bit range", False, f"{kind} noise of scale 3 moved a count near 2⁴⁰ by {off.max()}")
    return Finding("64-bit range", True)


def audit_freshness(gateway: Gateway) -> Finding:
    """Two draws are never the same noise: neither in two calls nor within one."""
    zeros = np.zeros(64, dtype=np.int64)
    for kind in ("laplace", "gaussian"):
        call = NoiseCall(kind, 1000.0, _UNIT)
        first, second = gateway.add_noise(call, zeros), gateway.add_noise(call, zeros)
        if np.array_equal(first, second):
            return Finding("fresh noise", False, f"two {kind} draws were identical")
        if len(np.unique(first)) < 16:
            return Finding("fresh noise", False, f"a {kind} draw repeats itself from cell to cell")
    if gateway.secret() == gateway.secret():
        return Finding("fresh noise", False, "two secret keys were identical")
    return Finding("fresh noise", True)


def audit_shape(
    gateway: Gateway, kind: str, scale: float, *, claimed: float | None = None, draws: int = 60_000
) -> Finding:
    """χ² of draws at ``scale`` against the exact law of scale ``claimed`` (the same by default)."""
    name = f"shape of {kind} noise"
    call = NoiseCall(kind, scale, _UNIT)  # type: ignore[arg-type]
    noise = gateway.add_noise(call, np.zeros(draws, dtype=np.int64))
    reach = int(np.ceil(5 * scale))
    law = noise_law(NoiseCall(kind, claimed or scale, _UNIT), 0, (-reach, reach))  # type: ignore[arg-type]
    seen = np.bincount(np.clip(noise, -reach, reach) + reach, minlength=len(law))
    expected = law * draws
    large = expected >= 10
    statistic = ((seen - expected)[large] ** 2 / expected[large]).sum()
    rest = seen[~large].sum(), expected[~large].sum()
    if rest[1] >= 1:
        statistic += (rest[0] - rest[1]) ** 2 / rest[1]
    p_value = float(chdtrc(max(int(large.sum()) - 1 + (rest[1] >= 1), 1), statistic))
    return Finding(name, p_value > 1e-6, f"p = {p_value:.3g} on {draws} draws")


def audit_choices(gateway: Gateway, *, draws: int = 4_000) -> Finding:
    """χ² of choices among three candidates, and between the two signs of one, against their exact laws."""
    name = "laws of choices"
    for kind in ("permute-and-flip", "exponential", "noisy-max"):
        for scores in ((4, 2, 0), (1, -1)):
            call = NoiseCall(kind, 2.0, _UNIT)
            chosen = [gateway.select(call, np.array(scores, dtype=np.int64)) for _ in range(draws)]
            expected = selection_law(call, scores) * draws
            seen = np.bincount(chosen, minlength=len(scores))
            p_value = float(chdtrc(len(scores) - 1, ((seen - expected) ** 2 / expected).sum()))
            if p_value < 1e-6:
                return Finding(name, False, f"{kind} among {len(scores)}: p = {p_value:.3g} on {draws} draws")
    return Finding(name, True)
