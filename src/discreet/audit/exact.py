"""Exact audits on tiny domains: enumerate everything an algorithm can release and compute its privacy loss.

An :class:`ExploringGateway` follows a script of answers; running the algorithm over and over with all scripts gives
every transcript with its exact probability, adaptive steps included. Additive noise is clamped to a window first, which
is post-processing and makes the outputs finitely many. Meant for a handful of cells.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import combinations_with_replacement, product
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from ..measurement import Origin
from ..privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from ..privacy.curator import Curator
from ..privacy.levels import Released, distance_of, released_above
from ..privacy.mechanisms import Gateway, NoiseCall
from ..privacy.unit import PrivacyUnit
from ..tables.base import KEY_BYTES, IntArray, Table
from .findings import Finding, canonical

Distribution = dict[Any, float]
ORDERS = (1.01, 1.1, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 100.0, 1000.0)


def selection_law(call: NoiseCall, scores: Sequence[int]) -> NDArray[np.float64]:
    """Exact probabilities of private selection."""
    if call.kind == "noisy-max":
        return _noisy_max_law(call.scale, tuple(scores))
    q = np.array([float(s - max(scores)) for s in scores]) / call.scale
    a = np.exp(q)
    if call.kind == "exponential":
        return np.asarray(a / a.sum())
    # Permute-and-flip [MS20]: candidates in random order, each accepted with probability a_i. With e_k the elementary
    # symmetric polynomials of the others' rejections, P(i) = a_i Σ_k e_k / (m C(m−1, k)).
    m = len(a)
    law = np.empty(m)
    for i in range(m):
        e = np.zeros(m)
        e[0] = 1.0
        for j in range(m):
            if j != i:
                e[1:] += e[:-1] * (1 - a[j])
        law[i] = a[i] * sum(e[k] / (m * math.comb(m - 1, k)) for k in range(m))
    return law


@lru_cache(maxsize=4096)
def _noisy_max_law(scale: float, scores: tuple[int, ...]) -> NDArray[np.float64]:
    """The largest after discrete Laplace noise, the first of equals: a sum over where the winner stands."""
    reach = math.ceil(45 * scale) + max(scores) - min(scores) + 1
    z = np.arange(-reach, reach + 1)
    weight = np.exp(-np.abs(z) / scale)
    weight /= weight.sum()
    at = [np.concatenate([np.zeros(s - min(scores)), weight, np.zeros(max(scores) - s)]) for s in scores]
    up_to = [np.cumsum(w) for w in at]
    below = [c - w for c, w in zip(up_to, at, strict=True)]
    law = [
        (at[i] * np.prod([below[j] if j < i else up_to[j] for j in range(len(scores)) if j != i], axis=0)).sum()
        for i in range(len(scores))
    ]
    return np.array(law)


@lru_cache(maxsize=4096)
def noise_law(call: NoiseCall, value: int, window: tuple[int, int]) -> NDArray[np.float64]:
    """Probabilities of value + noise clamped to the window, exactly summed tails at both ends."""
    low, high = window
    reach = math.ceil(60 * call.scale) + 60
    z = np.arange(-reach, reach + 1)
    weight = np.exp(-np.abs(z) / call.scale) if call.kind == "laplace" else np.exp(-(z**2) / (2 * call.scale**2))
    clamped = np.clip(value + z, low, high) - low
    law = np.bincount(clamped, weights=weight, minlength=high - low + 1)
    return np.asarray(law / weight.sum())


@dataclass
class ExploringGateway:
    """Answers by a script; beyond its end takes the first answer and notes how many there were."""

    script: list[int]
    window: tuple[int, int]
    key: bytes = b"\0" * KEY_BYTES
    choices: list[int] = field(default_factory=list)
    probability: float = 1.0
    origin: Origin = "release"

    def add_noise(self, call: NoiseCall, values: IntArray) -> IntArray:
        out = np.empty(values.size, dtype=np.int64)
        for i, value in enumerate(np.asarray(values).reshape(-1)):
            out[i] = self._branch(noise_law(call, int(value), self.window)) + self.window[0]
        return out.reshape(values.shape)

    def select(self, call: NoiseCall, scores: IntArray) -> int:
        return self._branch(selection_law(call, [int(s) for s in scores]))

    def release_large(self, call: NoiseCall, histogram: Mapping[str, int]) -> dict[str, int]:
        """Branches on shown or silent for each key; the released number is clamped like any other."""
        assert call.threshold is not None
        kind: Literal["gaussian", "laplace"] = "gaussian" if call.kind == "gaussian-threshold" else "laplace"
        noise = NoiseCall(kind, call.scale, call.sensitivity)
        released = {}
        for key in sorted(histogram):
            noisy = self._branch(noise_law(noise, histogram[key], self.window)) + self.window[0]
            if noisy > call.threshold:
                released[key] = noisy
        return released

    def release_stable(self, call: NoiseCall, levels: IntArray, word: str) -> Released:
        """The noisy distance is clamped like any other number; the window should reach beyond the threshold."""
        laplace = NoiseCall("laplace", call.scale, call.sensitivity)
        noisy = self._branch(noise_law(laplace, distance_of(levels), self.window)) + self.window[0]
        assert call.threshold is not None
        return released_above(call.threshold, noisy, levels, word)

    def secret(self) -> bytes:
        return self.key

    def inside(self, budget: Budget) -> Gateway:
        return self

    def _branch(self, law: NDArray[np.float64]) -> int:
        position = len(self.choices)
        self.choices.append(len(law))
        chosen = self.script[position] if position < len(self.script) else 0
        self.probability *= float(law[chosen])
        return chosen


def output_law(
    algorithm: Callable[[Curator], Any],
    table: Table,
    unit: PrivacyUnit,
    budget: Budget,
    *,
    window: tuple[int, int] = (-3, 4),
    keys: Sequence[bytes] = (b"\0" * KEY_BYTES,),
    make_curator: Callable[..., Curator] = Curator,
) -> Distribution:
    """The exact law of everything the algorithm lets out (results and exceptions), averaged over secret keys."""
    law: Distribution = {}
    for key in keys:
        script: list[int] = []
        while True:
            gateway = ExploringGateway(script, window, key)
            curator = make_curator(table, unit, budget, gateway=gateway)
            try:
                outcome: Any = canonical(algorithm(curator))
            except Exception as error:
                outcome = ("raised", type(error).__name__, str(error))
            law[outcome] = law.get(outcome, 0.0) + gateway.probability / len(keys)
            # The next script in lexicographic order: advance the last step that has an answer left.
            taken = [*script, *([0] * (len(gateway.choices) - len(script)))]
            while taken and taken[-1] + 1 >= gateway.choices[len(taken) - 1]:
                taken.pop()
            if not taken:
                break
            script = [*taken[:-1], taken[-1] + 1]
    return law


def largest_log_ratio(p: Distribution, q: Distribution) -> float:
    """Max divergence, both ways."""
    worst = 0.0
    for outcome in {*p, *q}:
        a, b = p.get(outcome, 0.0), q.get(outcome, 0.0)
        if a != b:
            worst = math.inf if min(a, b) == 0 else max(worst, abs(math.log(a) - math.log(b)))
    return worst


def renyi(p: Distribution, q: Distribution, order: float) -> float:
    """Rényi divergence of order α, the larger of both ways."""
    if {k for k, v in p.items() if v > 0} != {k for k, v in q.items() if v > 0}:
        return math.inf
    keys = [k for k, v in p.items() if v > 0]
    a, b = np.log([p[k] for k in keys]), np.log([q[k] for k in keys])
    one_way = np.logaddexp.reduce(order * a + (1 - order) * b) / (order - 1)
    other_way = np.logaddexp.reduce(order * b + (1 - order) * a) / (order - 1)
    return float(max(one_way, other_way))


def hockey_stick(p: Distribution, q: Distribution, epsilon: float) -> float:
    """Least δ for which the pair is (ε, δ)-indistinguishable."""
    keys = {*p, *q}
    ways = ((p, q), (q, p))
    return max(sum(max(0.0, a.get(k, 0.0) - math.exp(epsilon) * b.get(k, 0.0)) for k in keys) for a, b in ways)


def check_pair(p: Distribution, q: Distribution, budget: Budget) -> Finding:
    """Whether two exact output laws are within the budget."""
    for law in (p, q):
        if abs(sum(law.values()) - 1) > 1e-9:
            return Finding("exact enumeration", False, f"the probabilities add up to {sum(law.values())}")
    match budget:
        case PureDP(epsilon=epsilon):
            seen, bound, what = largest_log_ratio(p, q), float(epsilon), "log-ratio"
        case ZCDP(rho=rho):
            seen = max(renyi(p, q, order) / order for order in ORDERS)
            bound, what = float(rho), "Rényi divergence over its order"
        case ApproxDP(epsilon=epsilon, delta=delta):
            seen, bound, what = hockey_stick(p, q, float(epsilon)), float(delta), "δ"
        case _:
            raise TypeError(f"not a budget: {budget!r}")
    passed = seen <= bound * (1 + 1e-9) + 1e-13
    return Finding("exact enumeration", passed, f"{what} {seen:.9g}, allowed {bound:.9g}")


def all_tables(shape: Sequence[int], size: int) -> list[NDArray[np.int64]]:
    """Every table of ``size`` rows over a tiny domain, as arrays of codes (rows in order, multisets only)."""
    cells = list(product(*(range(k) for k in shape)))
    choices = combinations_with_replacement(range(len(cells)), size)
    return [np.array([cells[c] for c in choice], dtype=np.int64).reshape(size, len(shape)) for choice in choices]
