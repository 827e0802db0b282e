"""What questions, samples, divergences and drawings need to know of a model; every :class:`.base.Model` offers it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import NDArray

from ..domain import Clique, Domain
from ..factor import CliqueVector
from ..graph import Forecast
from .answer import Estimate
from .density import Density
from .records import RandomState, Records

Given = Mapping[str, object]
"""A condition: levels by column, or conditions of the query language."""


class Distribution(Protocol):
    """A distribution over the records of a domain, given by potentials."""

    directed: ClassVar[bool]

    @property
    def domain(self) -> Domain: ...

    @property
    def card(self) -> Mapping[str, Any] | None: ...

    @property
    def potentials(self) -> CliqueVector: ...

    @property
    def compact(self) -> CliqueVector: ...

    @property
    def cliques(self) -> tuple[Clique, ...]: ...

    @property
    def edges(self) -> tuple[tuple[str, str], ...]: ...

    @property
    def forecast(self) -> Forecast: ...

    @property
    def log_partition(self) -> float: ...

    @property
    def _calibrated(self) -> Any: ...

    def _relevant(self, names: Iterable[str]) -> CliqueVector: ...

    def _sample_forward(self, n: int, rng: np.random.Generator, rounded: bool) -> NDArray[Any] | None: ...

    def density(self, name: str) -> Density: ...

    def log_weight(self, records: object) -> NDArray[np.float64]: ...

    def estimate_log_partition(self, *, random_state: RandomState = None) -> Estimate: ...

    def sample(self, n: int, random_state: RandomState = None, *, labels: bool = False) -> Records: ...

    def edge_strength(self) -> dict[tuple[str, str], float]: ...
