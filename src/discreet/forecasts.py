"""What a recipe will cost the machine, from public quantities alone: about how much memory, about how long."""

from __future__ import annotations

import math
from dataclasses import dataclass

from .domain import Domain
from .errors import CostError
from .graph import DEFAULT_MEMORY_LIMIT, size_text, triangulate
from .learn.procedure import Plan
from .spec import Recipe

# Measured on one core of a small machine; a forecast, not a promise.
_SECONDS_PER_DRAW = {"laplace": 6e-6, "gaussian": 10e-6}
_PASSES = {"optimal": 50, "uniform": 1, "two_stage": 60, "noise_aware": 300, "collective": 2500, "naive": 500}
_SECONDS_PER_CANDIDATE = 7e-5  # of a private search: one table counted and scored, at some thousand rows
_SECONDS_PER_PAIR_CELL = 2e-4
_BASE_BYTES = 150 * 2**20  # Python with NumPy, SciPy and OpenDP


@dataclass(frozen=True)
class CostForecast:
    """Memory and time; ``notes`` say what they leave out."""

    bytes: int
    seconds: float
    notes: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        time = "under a second" if self.seconds < 1 else f"about {_rounded(self.seconds)} s"
        return [f"Memory: about {size_text(self.bytes)}. Time: {time}, besides reading the rows.", *self.notes]


def _rounded(seconds: float) -> str:
    return f"{seconds:.0f}" if seconds < 100 else f"{float(f'{seconds:.1e}'):,.0f}"


def cost_forecast(recipe: Recipe, domain: Domain, plan: Plan) -> CostForecast:
    """The cost of learning as this recipe says."""
    seconds = sum(t.cells * _SECONDS_PER_DRAW.get(t.noise.kind, 1e-5) for t in plan.tables)
    table_bytes = 5 * 8 * plan.cells  # counts, noisy counts, and their consistent copies
    if recipe.method == "searched":
        p, k = len(domain), int(recipe.options.get("max_parents", 2))
        compared = sum((p - i) * sum(math.comb(i, j) for j in range(1, k + 1)) for i in range(1, p))
        note = "The graph is not known yet, so this is for the search; the forecast of inference comes with the model."
        return CostForecast(_BASE_BYTES + table_bytes, seconds + compared * _SECONDS_PER_CANDIDATE, (note,))
    cliques = _cliques(recipe)
    if cliques is None:
        pairs = len(domain) * (len(domain) - 1) / 2
        size = max(domain.shape) ** 2
        return CostForecast(_BASE_BYTES + table_bytes, seconds + pairs * size * _SECONDS_PER_PAIR_CELL)
    inference = triangulate(domain, [domain.clique(c) for c in cliques]).forecast()
    notes: tuple[str, ...] = ()
    passes = _PASSES.get(recipe.method, 100)
    try:
        inference.check(DEFAULT_MEMORY_LIMIT)
        memory = inference.bytes
    except CostError:
        memory = 0
        notes = ("The graph is too wide for exact inference: answers will be approximate, and say so.",)
    work = 0.0 if notes else passes * inference.seconds
    return CostForecast(_BASE_BYTES + table_bytes + memory, seconds + work, notes)


def _cliques(recipe: Recipe) -> list[list[str]] | None:
    if "graph" in recipe.options:
        return [[*above, child] for child, above in recipe.options["graph"].items()]
    if "cliques" in recipe.options:
        return [list(c) for c in recipe.options["cliques"]]
    return None
