"""Audits: ways to catch a privacy bug. Every learner is put through them, and planted bugs must make them fail.

* :func:`audit_replay` — record on a table, replay on its neighbours: nothing may depend on rows but through noise;
* :func:`output_law` and :func:`check_pair` — exact enumeration on tiny domains;
* :func:`audit_statistical` — Clopper–Pearson on many real runs;
* :func:`audit_range`, :func:`audit_freshness`, :func:`audit_shape` — the noise itself.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..domain import Domain
from ..privacy.budget import Budget
from ..privacy.curator import Curator
from ..privacy.mechanisms import SecureGateway
from ..privacy.query import Marginals
from ..privacy.unit import PrivacyUnit
from .exact import all_tables, check_pair, output_law
from .findings import Finding, failures
from .gateway import audit_freshness, audit_range, audit_shape
from .neighbours import pairs
from .replay import audit_replay, replay_pair
from .statistical import audit_statistical, lower_bound

__all__ = [
    "Finding",
    "all_tables",
    "audit_freshness",
    "audit_range",
    "audit_replay",
    "audit_shape",
    "audit_statistical",
    "check_pair",
    "failures",
    "lower_bound",
    "output_law",
    "pairs",
    "replay_pair",
    "run_configuration",
]


def run_configuration(
    domain: Domain,
    unit: PrivacyUnit,
    budget: Budget,
    tables: Iterable[Iterable[str]] | None = None,
    *,
    pairs: int = 200,
    seed: int = 0,
) -> list[Finding]:
    """The audits of a user's own configuration, on synthetic rows of the user's schema: what `discreet audit` runs."""
    cliques = [tuple(c) for c in tables] if tables is not None else [(name,) for name in domain.names]

    def release(curator: Curator) -> object:
        return curator.measure(Marginals(domain, cliques))

    gateway = SecureGateway()
    return [
        *audit_replay(release, domain, unit, budget, count=pairs, seed=seed),
        audit_range(gateway),
        audit_freshness(gateway),
        audit_shape(gateway, "laplace", 5.0),
        audit_shape(gateway, "gaussian", 5.0),
    ]
