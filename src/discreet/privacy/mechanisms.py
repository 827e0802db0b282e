"""The one gateway of noise: every random bit that protects somebody is drawn here, by OpenDP's exact samplers.

A :class:`Gateway` does six things: add discrete Laplace or discrete Gaussian noise to whole numbers, select one of
many scores, release the large counts of a sparse histogram, release an outcome that is far from changing, and draw a
secret key. The audits put recording and replaying gateways in its place; nothing else may. Each call states its
sensitivity, so that an audit can check it.

Calibration is exact: scales are rounded up to a float, and a :class:`~discreet.privacy.accounting.Cost` is computed
with rationals from the float that is used.

Guarantees (Δ is the sensitivity of the whole vector for the unit and relation at hand):

* discrete Laplace of scale b: Δ₁/b-DP [GRS12]; discrete Gaussian of scale σ: Δ₂²/(2σ²)-zCDP [CKS20], or (ε, δ)
  directly from its exact privacy-loss distribution when every changed cell moves by one;
* permute-and-flip with scale b: 2Δ∞/b-DP [MS20]; exponential mechanism (Gumbel noise of scale b): 2Δ∞/b-DP and,
  having range 2Δ∞/b, Δ∞²/(2b²)-zCDP [CR21]. Scores move both ways, so neither is given the monotone discount;
* noisy-max, the largest after discrete Laplace noise of scale b (the first of equals): 2Δ∞/b-DP. Given the others'
  noise, i wins iff its own is at least some whole τ; on a neighbour τ moves by at most 2Δ∞, and one step of τ changes
  P(noise ≥ τ) by a factor of at most e^{1/b};
* thresholded histogram: discrete Laplace noise of scale b on the non-zero counts, those above τ are released:
  (Δ₁/b, δ)-DP with δ = Δ₀·P(noise > τ − Δ∞). We threshold ourselves: OpenDP 0.16 releases counts *equal* to its
  threshold but leaves that atom out of δ (opendp/opendp issue 2922);
* thresholded histogram with Gaussian noise: δ-approximately Δ₂²/(2σ²)-zCDP with δ = Δ₀·P(noise > τ − Δ∞);
  :mod:`discreet.privacy.unlisted` has the argument;
* stable outcome: (1/b, δ)-DP with δ = P(noise > τ); see :mod:`discreet.privacy.stability` for the argument.

[GRS12] Ghosh, Roughgarden, Sundararajan, SICOMP 2012. [CKS20] Canonne, Kamath, Steinke, NeurIPS 2020. [MS20] McKenna,
Sheldon, NeurIPS 2020. [CR21] Cesar, Rogers, ALT 2021.
"""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Any, Literal, Protocol

import numpy as np

from ..errors import BudgetError
from ..measurement import Origin
from ..progress import listening, nobody, track
from ..tables.base import KEY_BYTES, IntArray
from .budget import Budget
from .levels import Released, distance_of, released_above
from .unit import Sensitivity

MICROSECONDS_PER_DRAW = {"laplace": 6.0, "gaussian": 10.0}  # measured on one core; a forecast, not a promise
_CHUNK = 1 << 14
# Noise is added to whole numbers of 64 bits, and what does not fit is cut off. At this scale Laplace noise exceeds 2⁶²,
# half of what fits, with probability e⁻⁶⁴, and Gaussian noise never; the thresholds are kept below that too.
LARGEST_SCALE = 2**56
LARGEST_THRESHOLD = 2**62
SAME_NUMBER = Fraction(1, 2**36)  # of 2²⁷ other texts, each with one of 2⁶³ numbers


@dataclass(frozen=True)
class NoiseCall:
    """What a draw is about: its kind, its scale and the sensitivity that the scale was made for."""

    kind: Literal[
        "laplace",
        "gaussian",
        "permute-and-flip",
        "exponential",
        "noisy-max",
        "threshold",
        "stability",
        "gaussian-threshold",
    ]
    scale: float
    sensitivity: Sensitivity
    threshold: int | None = None
    delta: Fraction | None = None  # of a Gaussian threshold: what may be released by mistake


class Gateway(Protocol):
    """Where noise comes from. ``origin`` marks what is measured through it."""

    origin: Origin

    def add_noise(self, call: NoiseCall, values: IntArray) -> IntArray: ...

    def select(self, call: NoiseCall, scores: IntArray) -> int: ...

    def release_large(self, call: NoiseCall, histogram: Mapping[str, int]) -> dict[str, int]: ...

    def release_stable(self, call: NoiseCall, levels: IntArray, word: str) -> Released:
        """The signs of the levels, and the word, if they are far from changing; the noisy distance in any case."""

    def secret(self) -> bytes: ...

    def inside(self, budget: Budget) -> Gateway:
        """The gateway of a Poisson sample that may spend ``budget``, which costs the whole table less."""


class SecureGateway:
    """The real one: OpenDP's samplers, and keys from the operating system."""

    origin: Origin = "release"

    def __init__(self) -> None:
        _opendp()  # before anything is charged, should it be missing or broken

    def add_noise(self, call: NoiseCall, values: IntArray) -> IntArray:
        mechanism = _additive(call.kind, call.scale)
        flat = _whole(values).reshape(-1)
        chunks = [flat[i : i + _CHUNK] for i in range(0, len(flat), _CHUNK)]
        if len(chunks) <= 1:
            return np.asarray(mechanism(flat) if flat.size else flat, dtype=np.int64).reshape(values.shape)
        # OpenDP releases the interpreter lock while it samples, so threads help.
        with ThreadPoolExecutor(min(8, os.cpu_count() or 1)) as pool:
            noisy = list(track(pool.map(mechanism, chunks), len(chunks), "drawing noise"))
        return np.concatenate([np.asarray(c, dtype=np.int64) for c in noisy]).reshape(values.shape)

    def select(self, call: NoiseCall, scores: IntArray) -> int:
        if call.kind == "noisy-max":
            noisy = self.add_noise(NoiseCall("laplace", call.scale, call.sensitivity), np.asarray(scores))
            return int(np.argmax(noisy))
        return int(_selection(call.kind, call.scale)(_whole(scores)))

    def release_large(self, call: NoiseCall, histogram: Mapping[str, int]) -> dict[str, int]:
        assert call.threshold is not None
        keys = sorted(histogram)
        counts = np.array([histogram[k] for k in keys], dtype=np.int64)
        # In silence: how many keys there are is private, and progress would tell.
        with listening(nobody):
            kind: Literal["gaussian", "laplace"] = "gaussian" if call.kind == "gaussian-threshold" else "laplace"
            noisy = self.add_noise(NoiseCall(kind, call.scale, call.sensitivity), counts)
        return {k: int(c) for k, c in zip(keys, noisy, strict=True) if c > call.threshold}

    def release_stable(self, call: NoiseCall, levels: IntArray, word: str) -> Released:
        distance = np.array([distance_of(levels)], dtype=np.int64)
        noisy = self.add_noise(NoiseCall("laplace", call.scale, call.sensitivity), distance)
        assert call.threshold is not None
        return released_above(call.threshold, int(noisy[0]), levels, word)

    def secret(self) -> bytes:
        return secrets.token_bytes(KEY_BYTES)

    def inside(self, budget: Budget) -> Gateway:
        return self


class ExactGateway:
    """No noise at all. For tests, benchmarks and non-private baselines; what passes through is marked ``exact``."""

    origin: Origin = "exact"

    def add_noise(self, call: NoiseCall, values: IntArray) -> IntArray:
        return np.array(values, dtype=np.int64)

    def select(self, call: NoiseCall, scores: IntArray) -> int:
        return int(np.argmax(scores))

    def release_large(self, call: NoiseCall, histogram: Mapping[str, int]) -> dict[str, int]:
        return dict(histogram)

    def release_stable(self, call: NoiseCall, levels: IntArray, word: str) -> Released:
        return Released(distance_of(levels), np.asarray(levels) >= 0, word)

    def secret(self) -> bytes:
        return SecureGateway().secret()

    def inside(self, budget: Budget) -> Gateway:
        return self


def _whole(values: IntArray) -> IntArray:
    """Sums that are no integers would be cut off in silence, and may depend on the order of rows: refuse them."""
    array = np.ascontiguousarray(values)
    if array.dtype.kind not in "iu":
        raise TypeError(f"noise is added to whole numbers, and these are {array.dtype}; round to a grid per record")
    return array.astype(np.int64, copy=False)


@lru_cache(maxsize=1)
def _opendp() -> Any:
    """The library, loaded when the first noise is drawn: who asks a released model, or plans, has no use for it."""
    import opendp.domains
    import opendp.measurements
    import opendp.measures
    import opendp.metrics
    import opendp.mod

    opendp.mod.enable_features("contrib")
    return opendp


@lru_cache(maxsize=256)
def _additive(kind: str, scale: float) -> Any:
    """Vector noise on 64-bit integers ("i64": OpenDP's plain `int` has 32 bits)."""
    dp = _opendp()
    vector = dp.domains.vector_domain(dp.domains.atom_domain(T="i64"))
    if kind == "laplace":
        return dp.measurements.make_laplace(vector, dp.metrics.l1_distance(T="i64"), scale)
    return dp.measurements.make_gaussian(vector, dp.metrics.l2_distance(T="f64"), scale)


@lru_cache(maxsize=256)
def _selection(kind: str, scale: float) -> Any:
    dp = _opendp()
    vector = dp.domains.vector_domain(dp.domains.atom_domain(T="i64"))
    metric = dp.metrics.linf_distance(T="i64", monotonic=False)
    pure = kind == "permute-and-flip"
    measure = dp.measures.max_divergence() if pure else dp.measures.zero_concentrated_divergence()
    return dp.measurements.make_noisy_max(vector, metric, measure, scale)


def forecast_seconds(kind: str, cells: int) -> float:
    """About how long a draw will take."""
    return cells * MICROSECONDS_PER_DRAW.get(kind, 10.0) * 1e-6


# -- calibration: the least float scale whose exact cost is within the share -----------------------------------------


def float_above(x: Fraction) -> float:
    """Least float that is at least x, up to one unit in the last place."""
    y = float(x)
    return y if Fraction(y) >= x else math.nextafter(y, math.inf)


def fitting(scale: Fraction | float) -> float:
    """The scale as a float, rounded up; refused where the noise would not fit the whole numbers it is added to."""
    if not scale <= LARGEST_SCALE:
        raise BudgetError(
            "the budget is too small, or is divided among too many: noise of a scale beyond 2⁵⁶ does not fit whole "
            "numbers of 64 bits. Give more, or ask for less of it"
        )
    return float_above(Fraction(scale))


def laplace_scale(l1: int, epsilon: Fraction) -> float:
    """Discrete Laplace: b ≥ Δ₁/ε."""
    return fitting(Fraction(l1) / epsilon)


def gaussian_scale(l2_squared: int, rho: Fraction) -> float:
    """Discrete Gaussian: σ² ≥ Δ₂²/(2ρ)."""
    wanted = Fraction(l2_squared) / (2 * rho)
    # Floats end at 2¹⁰²⁴, so what is far too large is refused by its square.
    sigma: float = math.sqrt(float_above(wanted)) if wanted <= LARGEST_SCALE**2 else fitting(math.inf)
    while Fraction(sigma) ** 2 < wanted:
        sigma = math.nextafter(sigma, math.inf)
    return float(sigma)


def selection_scale_pure(linf: int, epsilon: Fraction) -> float:
    """Permute-and-flip: b ≥ 2Δ∞/ε."""
    return fitting(Fraction(2 * linf) / epsilon)


def selection_scale_zcdp(linf: int, rho: Fraction) -> float:
    """Exponential mechanism: b² ≥ Δ∞²/(2ρ)."""
    return gaussian_scale(linf**2, rho)


def threshold_for(sensitivity: Sensitivity, scale: float, delta: Fraction) -> int:
    """Least whole τ that makes the thresholded histogram (Δ₁/b, δ)-DP.

    Let p = P(noise > τ − Δ∞) = q^t/(1 + q) with q = e^{−1/b} and t = τ + 1 − Δ∞ ≥ 1: the most that a key which a
    neighbour lacks can be released with. At most Δ₀ keys of D are absent from D′, so with probability 1 − Δ₀p none of
    them shows; we ask Δ₀p ≤ δ. On such outputs each key of D′ that D lacks must stay silent in D′, which costs a
    factor 1/(1 − p); it has used up at least one unit of Δ₁, worth a factor 1/q, so we ask p ≤ 1 − q. The other keys
    move by the rest of Δ₁ under noise of scale b.
    """
    log_q = -1 / scale
    log_p_allowed = min(_log(delta) - math.log(sensitivity.l0), math.log(-math.expm1(log_q)))
    log_target = log_p_allowed + math.log1p(math.exp(log_q)) - 1e-12  # strictly inside, whatever rounding did
    return _fitting_threshold(sensitivity.linf + max(1, math.ceil(log_target / log_q)) - 1)


def gaussian_threshold(sensitivity: Sensitivity, scale: float, delta: Fraction) -> int:
    """Least whole τ with Δ₀·(P(N(0, σ²) ≥ τ − Δ∞) + c) ≤ δ, which bounds the discrete Gaussian too; see
    :mod:`.unlisted`. c is the chance that a text of the unit's shares its number with another."""
    each = delta / sensitivity.l0 - SAME_NUMBER
    if each <= 0:
        raise BudgetError(
            "levels cannot be found with so small a δ: that two texts are mistaken for each other is as likely; "
            "take a larger δ, fewer rows of each unit, or list the levels"
        )
    log_p = _log(each) - 1e-9  # strictly inside, whatever rounding did
    if log_p >= math.log(0.5):
        return _fitting_threshold(sensitivity.linf)
    from scipy.special import ndtri_exp  # 0.2 s to import, for this alone

    away = scale * -float(ndtri_exp(log_p)) * (1 + 1e-12)
    return _fitting_threshold(sensitivity.linf + math.ceil(away))


def stability_threshold(scale: float, delta: Fraction) -> int:
    """Least whole τ ≥ 0 with P(noise > τ) = q^{τ+1}/(1 + q) ≤ δ, where q = e^{−1/b}."""
    log_q = -1 / scale
    log_target = _log(delta) + math.log1p(math.exp(log_q)) - 1e-12  # strictly inside, whatever rounding did
    return _fitting_threshold(max(0, math.ceil(log_target / log_q) - 1))


def _log(delta: Fraction) -> float:
    return math.log(delta.numerator) - math.log(delta.denominator)  # also of one that is below all floats


def _fitting_threshold(threshold: int) -> int:
    if threshold > LARGEST_THRESHOLD:
        raise BudgetError(
            "the budget is too small: no count of 64 bits could be above the threshold that its ε and δ ask for. Give "
            "more of either"
        )
    return threshold


# -- (ε, δ) of an all-Gaussian batch, directly -----------------------------------------------------------------------


def gaussian_delta(scale: float, moved: int, epsilon: float) -> float:
    """δ(ε) of ``moved`` independent discrete Gaussians of one scale, each shifted by one; rounded up.

    With S the sum of the m noises, the privacy loss is (2S + m)/(2σ²) [CKS20, proof of Theorem 7], so
    δ(ε) = E[max(0, 1 − e^{ε − loss})]. The law of S is the m-th power of a characteristic function, by FFT on N points
    with N/2 ≥ 14σ√m. What that can lose is added in full: the mass that wraps around, at most 2e^{−98} as S is
    mσ²-subgaussian [CKS20, Section 3], and rounding, some m·log₂N·2⁻⁵² an entry.
    """
    from scipy.fft import next_fast_len  # slow to import

    reach = math.ceil(14 * scale * math.sqrt(moved)) + 2
    length = next_fast_len(2 * reach + 1, real=True)
    s = np.arange(length)
    s[s > length // 2] -= length
    law = np.exp(-(s**2) / (2 * scale**2))
    law = np.fft.irfft(np.fft.rfft(law / law.sum()) ** moved, length)
    loss = (2 * s + moved) / (2 * scale**2)
    gain = -np.expm1(np.minimum(epsilon - loss, 0.0))
    lost: float = length * (moved + 8) * math.log2(length) * 2.0**-52
    return float((np.maximum(law, 0) * gain).sum()) * (1 + 1e-9) + lost


@lru_cache(maxsize=1024)
def gaussian_scale_direct(moved: int, epsilon: Fraction, delta: Fraction) -> float | None:
    """Least scale (to 1e-5, rounded up) for which ``moved`` shifts by one are (ε, δ)-DP.

    None when δ is so small that the slack for rounding in :func:`gaussian_delta` would matter.
    """
    eps, d = float(epsilon) * (1 - 1e-12), float(delta) * (1 - 1e-12)
    high = 1.0
    while gaussian_delta(high, moved, eps) > d:
        high *= 2
        if high * math.sqrt(moved) > 1e5:
            return None
    low = high / 2
    while high - low > 1e-5 * high:
        middle = (low + high) / 2
        low, high = (low, middle) if gaussian_delta(middle, moved, eps) <= d else (middle, high)
    return high
