"""One door to all methods: ``method="auto"`` takes exact inference when the forecast allows it, and says what it took.

>>> from discreet.domain import Domain
>>> from discreet.factor import CliqueVector
>>> domain = Domain.of({"a": 2, "b": 2})
>>> infer(domain, CliqueVector.zeros(domain, [("a", "b")])).method
'exact'
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..domain import Clique, Domain
from ..errors import CostError, InputError
from ..factor import Array, Factor, check_code
from ..graph import DEFAULT_MEMORY_LIMIT
from .calibrated import Calibrated
from .exact import Potentials, get_engine
from .gibbs import GibbsBeliefs, gibbs_marginals
from .loopy import LoopyBeliefs, loopy_marginals

METHODS = ("auto", "exact", "loopy", "gibbs")
# Runs of belief propagation that one out-of-clique question may take.
_MOST_RUNS = 512


@dataclass(frozen=True)
class Beliefs:
    """Answers of one method. ``method`` is what was used and ``reason`` why; ``details`` is the method's own result
    (:class:`Calibrated`, :class:`LoopyBeliefs` or :class:`GibbsBeliefs`), with its diagnostics."""

    domain: Domain
    method: str
    reason: str
    details: Calibrated | LoopyBeliefs | GibbsBeliefs
    _potentials: Potentials
    _evidence: Mapping[str, int]
    _options: Mapping[str, Any]

    @property
    def is_exact(self) -> bool:
        return self.method == "exact"

    @property
    def log_partition(self) -> float:
        """Exact, or the Bethe approximation (loopy), or NaN (gibbs; see ``annealed_log_partition``)."""
        return float(self.details.log_partition)

    def marginal(self, names: Iterable[str]) -> Factor:
        """Log-probabilities of these columns, axes in the order given."""
        wanted = (names,) if isinstance(names, str) else tuple(names)
        if not isinstance(self.details, LoopyBeliefs):
            return self.details.marginal(wanted)
        if len(wanted) <= 1 or self.details.home(wanted) is not None:
            return self.details.marginal(wanted)
        return self._by_conditioning(wanted)

    def _by_conditioning(self, names: Clique) -> Factor:
        """P(x₁ … x_m) = Π P(x_i | x_1 … x_{i−1}), each term by a run with the earlier codes as evidence."""
        domain = self.domain.project(names)
        runs = sum(math.prod(domain.shape[:i]) for i in range(1, len(names)))
        if runs > _MOST_RUNS:
            raise InputError(
                f"the joint of {names} would take {runs} runs of belief propagation (at most {_MOST_RUNS}); "
                'use method="gibbs", or ask about fewer columns'
            )
        values: Array = np.full(domain.shape, -np.inf)
        self._fill(values, names, (), 0.0, self.details)
        return Factor(domain, values).normalize()

    def _fill(self, values: Array, names: Clique, codes: tuple[int, ...], log_p: float, beliefs: Any) -> None:
        """Enter the log-probabilities of all cells that begin with ``codes``, which have log-probability ``log_p``."""
        next_name = names[len(codes)]
        term = beliefs.marginal((next_name,)).values
        if len(codes) == len(names) - 1:
            values[codes] = log_p + term
            return
        for code in np.flatnonzero(~np.isneginf(term)):
            longer = (*codes, int(code))
            evidence = {**self._evidence, **dict(zip(names, longer, strict=False))}
            deeper = loopy_marginals(self.domain, self._potentials, evidence, **self._options)
            self._fill(values, names, longer, log_p + float(term[code]), deeper)


def infer(
    domain: Domain,
    potentials: Potentials,
    *,
    method: str = "auto",
    evidence: Mapping[str, int] | None = None,
    memory_limit: int = DEFAULT_MEMORY_LIMIT,
    random_state: int | np.random.Generator | None = None,
    **options: Any,
) -> Beliefs:
    """Beliefs under these potentials and hard evidence.

    ``"auto"``: exact when it fits into ``memory_limit``; else loopy belief propagation; else, when that does not
    converge, Gibbs sampling. ``options`` go to the approximate method (``damping``, ``chains``, …).
    """
    if method not in METHODS:
        raise InputError(f"method must be one of {', '.join(map(repr, METHODS))}; got {method!r}")
    given = {n: check_code(domain, n, c) for n, c in (evidence or {}).items()}

    def beliefs(used: str, reason: str, details: Any, kept: Mapping[str, Any] | None = None) -> Beliefs:
        return Beliefs(domain, used, reason, details, potentials, given, kept or {})

    asked = f'method="{method}" was asked for'
    refusal = ""
    if method in ("auto", "exact"):
        try:
            engine = get_engine(domain, potentials, memory_limit=memory_limit)
            fits = f"the largest table has {engine.forecast.largest_cells:,} cells, which fits into the memory limit"
            return beliefs("exact", fits if method == "auto" else asked, engine.calibrate(potentials, given))
        except CostError as error:
            if method == "exact":
                raise
            refusal = str(error).split(" Nothing was allocated")[0]
    if method in ("auto", "loopy"):
        loopy_options = {k: v for k, v in options.items() if method == "loopy" or k in _LOOPY_OPTIONS}
        loopy = loopy_marginals(domain, potentials, given, **loopy_options)
        if method == "loopy":
            state = "converged" if loopy.converged else f"did NOT converge (residual {loopy.residual:.1e})"
            return beliefs("loopy", f"{asked}; it {state} in {loopy.iterations} rounds", loopy, loopy_options)
        if loopy.converged:
            reason = f"{refusal} Loopy belief propagation, an approximation, converged in {loopy.iterations} rounds."
            return beliefs("loopy", reason, loopy, loopy_options)
        refusal += f" Loopy belief propagation did not converge (residual {loopy.residual:.1e})."
    gibbs_options = {k: v for k, v in options.items() if method == "gibbs" or k not in _LOOPY_OPTIONS}
    gibbs = gibbs_marginals(domain, potentials, given, random_state=random_state, **gibbs_options)
    mixed = f"{gibbs.draws.shape[1]} chains of {gibbs.draws.shape[0]} sweeps, largest R-hat {gibbs.r_hat:.3f}"
    return beliefs("gibbs", f"{asked}; {mixed}" if method == "gibbs" else f"{refusal} Gibbs sampling: {mixed}.", gibbs)


_LOOPY_OPTIONS = frozenset({"max_iterations", "tolerance", "damping"})
