"""Records and questions for the benchmark of directed models, and the figures of one comparison."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from discreet.models import BayesianNetwork
from discreet.papers.theory.directed import paper_bounds, parameter_l1
from discreet.tables.memory import MemoryTable

RECORDS = 10_000
LARGEST_TABLE = 1 << 13


@dataclass(frozen=True)
class Work:
    """One network: fresh records for each run, and random questions."""

    network: BayesianNetwork
    seed: int

    def codes(self, run: int) -> np.ndarray:
        return self.network.sample(RECORDS, self._rng(run, 0)).codes

    def table(self, run: int) -> MemoryTable:
        return MemoryTable(self.network.domain, list(self.codes(run).T))

    def marginals(self, run: int, count: int) -> list[tuple[str, ...]]:
        """Random sets of one to five columns."""
        rng = self._rng(run, 1)
        names = self.network.domain.names
        return [tuple(rng.choice(names, 1 + i % min(5, len(names)), replace=False).tolist()) for i in range(count)]

    def any_size(self, run: int, count: int) -> list[tuple[str, ...]]:
        """Random sets from single columns up to all of them, cut where the table would get too large to list."""
        rng = self._rng(run, 2)
        domain = self.network.domain
        out = []
        for _ in range(count):
            chosen: list[str] = []
            for name in rng.permutation(domain.names)[: int(rng.integers(1, len(domain) + 1))].tolist():
                if domain.size((*chosen, name)) <= LARGEST_TABLE:
                    chosen.append(name)
            out.append(tuple(chosen))
        return out

    def conditions(self, run: int, count: int) -> list[tuple[str, dict[str, object]]]:
        """One column given one to four others at the values of a record."""
        rng = self._rng(run, 3)
        domain = self.network.domain
        records = self.network.sample(count, rng).codes
        out = []
        for record in records:
            names = rng.choice(len(domain), 1 + int(rng.integers(1, min(5, len(domain)))), replace=False)
            given = {domain.names[i]: domain.attributes[i].labels[int(record[i])] for i in names[1:]}
            out.append((domain.names[names[0]], given))
        return out

    def assignments(self, run: int, count: int) -> list[dict[str, object]]:
        """Conditions for MAP questions: any number of columns at the values of a record; all others are asked for."""
        rng = self._rng(run, 4)
        domain = self.network.domain
        out = []
        for record in self.network.sample(count, rng).codes:
            names = rng.choice(len(domain), int(rng.integers(0, len(domain))), replace=False)
            out.append({domain.names[i]: domain.attributes[i].labels[int(record[i])] for i in names})
        return out

    def _rng(self, run: int, purpose: int) -> np.random.Generator:
        return np.random.default_rng([self.seed, run, purpose, len(self.network.domain)])


def compare(work: Work, exact: BayesianNetwork, private: BayesianNetwork, run: int, queries: int) -> dict[str, float]:
    """Every figure of the paper for one run."""

    def l1(names: tuple[str, ...] | str, given: Any = None) -> tuple[float, float]:
        p, q = exact.marginal(names, given).probabilities, private.marginal(names, given).probabilities
        reached = p > 0
        return float(np.abs(p - q).sum()), float((p[reached] * np.log(p[reached] / q[reached])).sum())

    small = [l1(names)[0] for names in work.marginals(run, queries)]
    large = np.array([l1(names) for names in work.any_size(run, max(queries // 2, 1))])
    asked = [(name, given) for name, given in work.conditions(run, queries) if _possible(exact, given)]
    conditional = np.array([l1(name, given) for name, given in asked]) if asked else np.zeros((1, 2))
    hits = [
        dict(exact.map(None, given)) == dict(private.map(None, given))
        for given in work.assignments(run, queries)
        if _possible(exact, given)
    ]
    bounds = paper_bounds(exact, private)
    return {
        "kl": exact.kl(private),
        "reversed_kl": private.kl(exact),
        "reversed_kl_smoothed": private.kl(smoothed(exact)),
        "marginal_l1": float(np.mean(small)),
        "any_size_l1": float(large[:, 0].mean()),
        "any_size_kl": float(large[:, 1].mean()),
        "conditional_l1": float(conditional[:, 0].mean()),
        "conditional_kl": float(conditional[:, 1].mean()),
        "map": float(np.mean(hits)) if hits else 1.0,
        "parameter_l1": parameter_l1(exact, private),
        "mu": float(np.mean([bounds.normalised(e) for e in small])),
    }


def _possible(model: BayesianNetwork, given: dict[str, object]) -> bool:
    return not given or model.probability(given) > 0


def smoothed(model: BayesianNetwork, part: float = 1e-3) -> BayesianNetwork:
    """Rows mixed with a little of the uniform one: the paper's reversed KL is infinite against rows with zeros."""
    tables = {name: (1 - part) * t + part / t.shape[-1] for name, t in model.tables.items()}
    return BayesianNetwork(model.domain, dict(model.parents), tables)
