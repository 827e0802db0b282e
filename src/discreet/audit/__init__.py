"""Audits: ways to catch a privacy bug. Every learner is put through them, and planted bugs must make them fail.

* :func:`audit_replay` — record on a table, replay on its neighbours: nothing may depend on rows but through noise;
* :func:`audit_sizes` — the same between tables of quite different numbers of records;
* :func:`output_law` and :func:`check_pair` — exact enumeration on tiny domains;
* :mod:`.draws` — the draws of an algorithm one by one, exactly and by statistics, against what each was paid for;
* :func:`audit_statistical` — Clopper–Pearson on many real runs;
* :func:`run_configuration` — all of it for one configuration: what `discreet audit` runs;
* :func:`audit_range`, :func:`audit_freshness`, :func:`audit_shape` — the noise itself.
"""

from __future__ import annotations

from .configuration import releasing_tables, run_configuration
from .exact import all_tables, check_pair, output_law
from .findings import Finding, failures
from .gateway import audit_choices, audit_freshness, audit_range, audit_shape
from .neighbours import pairs
from .replay import audit_replay, audit_sizes, replay_pair
from .statistical import audit_statistical, lower_bound

__all__ = [
    "Finding",
    "all_tables",
    "audit_choices",
    "audit_freshness",
    "audit_range",
    "audit_replay",
    "audit_shape",
    "audit_sizes",
    "audit_statistical",
    "check_pair",
    "failures",
    "lower_bound",
    "output_law",
    "pairs",
    "releasing_tables",
    "replay_pair",
    "run_configuration",
]
