"""Small networks and tables for the tests of directed learners."""

from __future__ import annotations

from typing import Any

import numpy as np

from discreet.domain import Domain
from discreet.models import BayesianNetwork
from discreet.privacy.curator import ExactCurator
from discreet.tables.memory import MemoryTable


def table_of(network: BayesianNetwork, n: int, seed: int) -> MemoryTable:
    return MemoryTable(network.domain, list(network.sample(n, seed).codes.T))


def codes_table(domain: Domain, rows: list[list[int]]) -> MemoryTable:
    codes = np.array(rows, dtype=np.uint8).reshape(len(rows), len(domain))
    return MemoryTable(domain, list(codes.T))


def exact(table: Any) -> ExactCurator:
    return ExactCurator(table)


def small_network() -> BayesianNetwork:
    """a → c ← b, c → d with 2, 3, 2, 2 levels."""
    domain = Domain.of({"a": 2, "b": 3, "c": 2, "d": 2})
    rng = np.random.default_rng(3)
    parents = {"c": ("a", "b"), "d": ("c",)}
    tables = {
        "a": np.array([0.3, 0.7]),
        "b": np.array([0.2, 0.3, 0.5]),
        "c": rng.dirichlet([1, 1], size=(2, 3)),
        "d": np.array([[0.9, 0.1], [0.2, 0.8]]),
    }
    return BayesianNetwork(domain, parents, tables)


def figure_two(rng: np.random.Generator) -> BayesianNetwork:
    """The example of the paper: A, B → C → D, E and D, E → F, all binary, with random tables."""
    domain = Domain.of(dict.fromkeys("ABCDEF", 2))
    parents = {"C": ("A", "B"), "D": ("C",), "E": ("C",), "F": ("D", "E")}
    tables = {n: rng.dirichlet([1, 1], size=(2,) * len(parents.get(n, ()))) for n in domain}
    return BayesianNetwork(domain, parents, tables)
