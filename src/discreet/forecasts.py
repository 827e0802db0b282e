"""What a specification will cost the machine, from public quantities alone: about how much memory, about how long."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .domain import Domain
from .errors import CostError
from .graph import DEFAULT_MEMORY_LIMIT, size_text, triangulate
from .learn.graph_input import structure_of
from .learn.procedure import Procedure
from .spec import Spec

# Measured on one core of a small machine; a forecast, not a promise.
_SECONDS_PER_DRAW = {"laplace": 6e-6, "gaussian": 10e-6}
_SECONDS_PER_CANDIDATE = 7e-5  # of a private search: one table counted and scored, at some thousand rows
_SECONDS_PER_PAIR_CELL = 2e-4
_MOST_KEPT, _KEPT_FOR_EACH_PAIR = 1 << 22, 10
"""Cells of tables that were counted and are kept (:class:`discreet.tables.jobs.JobTable`), and those of a search: by
pairs of levels."""
_MOSTLY = 0.2
"""Of the most that a fit may take, 16 of 18 took less (sachs, child, alarm, NLTCS, Adult at ε = 0.1, 1, 10)."""
_BASE_BYTES = 150 * 2**20  # Python with NumPy, SciPy and OpenDP


@dataclass(frozen=True)
class CostForecast:
    """Memory and time; ``notes`` say what they leave out. ``at_most``: how long depends on what will be found."""

    bytes: int
    seconds: float
    notes: tuple[str, ...] = ()
    at_most: bool = False

    def lines(self) -> list[str]:
        time = "under a second" if self.seconds < 1 else f"about {_rounded(self.seconds)} s"
        if self.at_most and self.seconds >= 1:
            mostly = math.ceil(_MOSTLY * self.seconds)
            time = f"mostly less than {mostly} s, up to some {_rounded(self.seconds)} s"
        return [f"Memory: about {size_text(self.bytes)}. Time: {time}, besides reading the rows.", *self.notes]


def _rounded(seconds: float) -> str:
    return f"{seconds:.0f}" if seconds < 100 else f"{float(f'{seconds:.1e}'):,.0f}"


def cost_forecast(spec: Spec, domain: Domain, procedure: Procedure) -> CostForecast:
    """The cost of learning as this specification says."""
    learner = spec.learner()
    seconds = sum(t.cells * _SECONDS_PER_DRAW.get(t.noise.kind, 1e-5) for t in procedure.tables)
    table_bytes = 5 * 8 * procedure.cells  # counts, noisy counts, and their consistent copies
    if (most := learner.most_work(domain)) is not None:
        kept = 8 * min(_MOST_KEPT, _KEPT_FOR_EACH_PAIR * sum(domain.shape) ** 2)
        return CostForecast(_BASE_BYTES + table_bytes + kept + most[0], seconds + most[1], at_most=True)
    if compared := learner.compared(domain):
        note = "The graph is not known yet, so this is for the search; the forecast of inference comes with the model."
        return CostForecast(_BASE_BYTES + table_bytes, seconds + compared * _SECONDS_PER_CANDIDATE, (note,))
    if not spec.entry.needs:
        pairs = len(domain) * (len(domain) - 1) / 2
        size = max(domain.shape) ** 2
        return CostForecast(_BASE_BYTES + table_bytes, seconds + pairs * size * _SECONDS_PER_PAIR_CELL)
    given = spec.options[spec.entry.needs]
    cliques = structure_of(given, domain).cliques if spec.entry.needs == "graph" else given
    inference = triangulate(domain, [domain.clique(c) for c in cliques]).forecast()
    try:
        inference.check(DEFAULT_MEMORY_LIMIT)
    except CostError:
        note = "The graph is too wide for exact inference: answers will be approximate, and say so."
        return CostForecast(_BASE_BYTES + table_bytes, seconds, (note,))
    work = learner.passes * inference.seconds
    return CostForecast(_BASE_BYTES + table_bytes + inference.bytes, seconds + work)
