"""All audits of one configuration, on synthetic rows of its schema: what `discreet audit` runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from ..domain import Domain
from ..learn.discovery import SHARE, with_discovery
from ..learn.procedure import Whole
from ..learn.tables import Tables
from ..privacy.budget import Budget
from ..privacy.claims import contradictions
from ..privacy.curator import Curator
from ..privacy.mechanisms import Gateway, SecureGateway
from ..privacy.query import Marginals
from ..privacy.unit import PrivacyUnit
from .draws import audit_draws_by_statistics, audit_draws_exactly, draws_of
from .findings import Finding, failures
from .gateway import audit_choices, audit_freshness, audit_range, audit_shape
from .neighbours import large_tables
from .replay import SIZES, audit_replay, audit_sizes

LARGE = (100, 1_000, 10_000)


def releasing_tables(domain: Domain, tables: Iterable[Iterable[str]] | None = None) -> Callable[[Curator], object]:
    """Contingency tables of these columns, or of each column; columns to be found are found first, as a fit does."""
    cliques = [tuple(c) for c in tables] if tables is not None else [(name,) for name in domain.names]

    def release(curator: Curator) -> object:
        if not domain.sought:
            return curator.measure(Marginals(domain, cliques))
        whole = Whole(domain, curator.unit, curator.budget)
        made = with_discovery(whole, SHARE, lambda rest: Tables(cliques).prepare(rest), as_one_gaussian=False)
        return made.run(curator)

    return release


def run_configuration(
    domain: Domain,
    unit: PrivacyUnit,
    budget: Budget,
    release: Callable[[Curator], object],
    *,
    pairs: int = 200,
    runs: int = 2_000,
    seed: int = 0,
    gateway: Gateway | None = None,
    **options: Any,
) -> list[Finding]:
    """Whatever a curator is asked by ``release``: on neighbours, small and large; between tables of other sizes; its
    draws, exactly and by statistics; its books; and the noise itself."""
    real = gateway or SecureGateway()
    told: Any = {"seed": seed, "gateway": gateway, **options}
    found = audit_replay(release, domain, unit, budget, count=pairs, sizes=LARGE, **told)
    found += audit_sizes(release, domain, unit, budget, sizes=SIZES, **told)
    if not failures(found):
        draws = draws_of(release, domain, unit, budget, **told)
        found += [audit_draws_exactly(draws), audit_draws_by_statistics(draws, runs, gateway)] if draws else []
        found.append(_audit_books(release, domain, unit, budget, seed, options))
    return [
        *found,
        audit_range(real),
        audit_freshness(real),
        audit_shape(real, "laplace", 5.0),
        audit_shape(real, "gaussian", 5.0),
        audit_choices(real),
    ]


def _audit_books(
    release: Callable[[Curator], object], domain: Domain, unit: PrivacyUnit, budget: Budget, seed: int, options: Any
) -> Finding:
    """What was booked, computed again from the noise that each entry records, as `verify` does."""
    (rows,) = large_tables(domain, unit, [30], seed)
    curator = Curator(rows.table(domain, unit), unit, budget, **options)
    release(curator)
    wrong = contradictions(curator.statement())
    return Finding("the books add up", not wrong, "; ".join(wrong))
