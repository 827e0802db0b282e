"""Oracles that enumerate every cell, and random problems to hold the engine against them. Small domains only."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from hypothesis import strategies as st

from discreet.domain import Domain
from discreet.factor import CliqueVector, Factor


@dataclass(frozen=True)
class Problem:
    domain: Domain
    potentials: CliqueVector
    evidence: dict[str, int]

    def joint(self, *, with_evidence: bool = True) -> np.ndarray:
        """Unnormalised log weight of every cell, axes in domain order, written without any code of the engine."""
        names = self.domain.names
        table = np.zeros(self.domain.shape)
        for cell in np.ndindex(*self.domain.shape):
            at = dict(zip(names, cell, strict=True))
            table[cell] = sum(f.values[tuple(at[n] for n in c)] for c, f in self.potentials.items())
            if with_evidence and any(at[n] != code for n, code in self.evidence.items()):
                table[cell] = -np.inf
        return table

    def log_partition(self) -> float:
        return log_sum(self.joint())

    def marginal(self, names: tuple[str, ...]) -> np.ndarray:
        """Probabilities of these columns, axes in the order given."""
        joint = self.joint()
        weights = np.exp(joint - joint.max())
        axes = [self.domain.index(n) for n in names]
        out = np.zeros([self.domain.shape[a] for a in axes])
        for cell in np.ndindex(*self.domain.shape):
            out[tuple(cell[a] for a in axes)] += weights[cell]
        return out / out.sum()

    def best(self, k: int) -> list[float]:
        """Log weights of the k best allowed cells."""
        weights = np.sort(self.joint().ravel())[::-1][:k]
        return [float(w) for w in weights if w > -np.inf]

    def weight_of(self, codes: dict[str, int]) -> float:
        return float(self.joint()[tuple(codes[n] for n in self.domain.names)])

    @property
    def is_possible(self) -> bool:
        return bool(self.joint().max() > -np.inf)


def log_sum(values: np.ndarray) -> float:
    top = values.max()
    return float(top + np.log(np.exp(values - top).sum())) if top > -np.inf else -np.inf


def random_problem(
    seed: int,
    *,
    columns: int = 6,
    cliques: int = 7,
    arity: int = 3,
    scale: float = 1.0,
    zeros: float = 0.0,
    evidence: float = 0.2,
    sizes: tuple[int, int] = (1, 3),
) -> Problem:
    """A random hypergraph with normal log potentials; a share of cells is forbidden, a share of columns observed."""
    rng = np.random.default_rng(seed)
    domain = Domain.of({f"x{i}": int(rng.integers(sizes[0], sizes[1] + 1)) for i in range(columns)})
    tables = {}
    for _ in range(cliques):
        clique = domain.clique(
            rng.choice(domain.names, size=min(columns, int(rng.integers(1, arity + 1))), replace=False)
        )
        values = scale * rng.standard_normal(domain.project(clique).shape)
        values[rng.random(values.shape) < zeros] = -np.inf
        tables[clique] = Factor(domain.project(clique), values)
    given = {n: int(rng.integers(domain[n].size)) for n in domain if rng.random() < evidence}
    return Problem(domain, CliqueVector(domain, tables), given)


def random_tree(
    seed: int, *, columns: int = 7, scale: float = 1.0, zeros: float = 0.0, evidence: float = 0.2
) -> Problem:
    """A random tree (or forest: some edges are missing) of pairs, with a potential on every column too."""
    rng = np.random.default_rng(seed)
    domain = Domain.of({f"x{i}": int(rng.integers(2, 4)) for i in range(columns)})
    cliques = [(f"x{int(rng.integers(i))}", f"x{i}") for i in range(1, columns) if rng.random() < 0.9]
    cliques += [(n,) for n in domain]
    tables = {}
    for clique in cliques:
        values = scale * rng.standard_normal(domain.project(clique).shape)
        if len(clique) == 2:
            values[rng.random(values.shape) < zeros] = -np.inf
        tables[clique] = Factor(domain.project(clique), values)
    given = {n: int(rng.integers(domain[n].size)) for n in domain if rng.random() < evidence}
    return Problem(domain, CliqueVector(domain, tables), given)


def problems(**fixed: object) -> st.SearchStrategy[Problem]:
    """Random graphs, sizes, scales, structural zeros and evidence; extreme potentials among them."""
    return st.builds(
        random_problem,
        st.integers(0, 2**32 - 1),
        columns=st.integers(1, 6),
        cliques=st.integers(0, 9),
        arity=st.integers(1, 4),
        scale=st.sampled_from([0.1, 1.0, 5.0, 50.0, 800.0]),
        zeros=st.sampled_from([0.0, 0.0, 0.1, 0.3]),
        evidence=st.sampled_from([0.0, 0.2, 0.6]),
        **fixed,
    )
