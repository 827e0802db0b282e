"""Research mode: the same learners with seeded noise, for teaching and debugging. NOT PRIVATE.

Noise that can be drawn again from a seed protects nobody who knows the seed. So everything that passes through here is
marked ``research``, and no file, card or report will have it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError
from ..measurement import Noise, Origin
from ..privacy.budget import Budget
from ..privacy.curator import Curator
from ..privacy.levels import Released, distance_of, released_above
from ..privacy.unit import PrivacyUnit
from .fresh_noise import simulated_noise

IntArray = NDArray[np.int64]


class ResearchGateway:
    """Noise of the right distributions from an ordinary generator. What passes through is marked ``research``."""

    origin: Origin = "research"

    def __init__(self, seed: int) -> None:
        if isinstance(seed, bool) or not isinstance(seed, int) or seed < 0:
            raise InputError(f"a seed is a whole number of at least 0, got {seed!r}")
        self._rng = np.random.default_rng(seed)

    def add_noise(self, call: Any, values: IntArray) -> IntArray:
        kind = "gaussian" if call.kind in ("gaussian", "gaussian-threshold") else "laplace"
        drawn = simulated_noise(Noise(kind, call.scale), np.shape(values), self._rng)  # type: ignore[arg-type]
        return np.asarray(values, dtype=np.int64) + drawn

    def select(self, call: Any, scores: IntArray) -> int:
        if call.kind == "noisy-max":
            return int(np.argmax(self.add_noise(call, scores)))
        # Permute-and-flip is the largest after exponential noise, the exponential mechanism that after Gumbel noise.
        draw = self._rng.exponential if call.kind == "permute-and-flip" else self._rng.gumbel
        noise = call.scale * draw(size=len(scores))
        return int(np.argmax(np.asarray(scores, dtype=np.float64) + noise))

    def release_large(self, call: Any, histogram: Mapping[str, int]) -> dict[str, int]:
        keys = sorted(histogram)
        noisy = self.add_noise(call, np.array([histogram[k] for k in keys], dtype=np.int64))
        return {k: int(c) for k, c in zip(keys, noisy, strict=True) if c > call.threshold}

    def release_stable(self, call: Any, levels: IntArray, word: str) -> Released:
        noisy = self.add_noise(call, np.array([distance_of(levels)], dtype=np.int64))
        return released_above(call.threshold, int(noisy[0]), levels, word)

    def secret(self) -> bytes:
        return self._rng.bytes(16)

    def inside(self, budget: Budget) -> ResearchGateway:
        return self


class ResearchCurator(Curator):
    """A curator with seeded noise: equal seeds give equal answers. NOT PRIVATE, so it has no ledger.

    >>> curator = ResearchCurator(table, budget=PureDP(1), seed=7)  # doctest: +SKIP
    """

    def __init__(
        self,
        table: Any,
        unit: PrivacyUnit | None = None,
        budget: Budget | None = None,
        *,
        seed: int,
        public_size: int | None = None,
    ) -> None:
        super().__init__(table, unit, budget, public_size=public_size, gateway=ResearchGateway(seed))
