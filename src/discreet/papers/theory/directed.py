"""Error bounds of [CRJ20] for inference with noisy parameters, computed as the paper defines them.

[CRJ20] Chowdhury, Rekatsinas, Jha, ICML 2020: Theorems 4.1 (8.5) and 4.2 (8.6), Lemmas 8.1, 8.2 and 8.7, and the
normalised error μ of section 5.2. What we know of them:

* **Theorem 4.1 (lower bound) is false**: P(X) = (.5, .5) → (.6, .4) and P(Y=1|X) = (.5, .5) → (.6, .35) change every
  parameter by at least 0.1 and P(Y) not at all. Its proof drops the signs of the errors.
* **Theorem 4.2 (upper bound) is not informative**: on asia, sachs, child and alarm it exceeds 2, the largest L1
  distance there is, already for parameter errors of a few percent.
* Hence μ, the place of an error between the two, is small whatever the method.
* Lemma 8.2 speaks of *at least* the treewidth, and the proof of Theorem 4.2 uses it as *at most*; for the best order
  the largest factor before summing has treewidth + 1 columns.
* Lemma 8.7 (products of numbers in [0, 1]) is right.

For an interval that says something use :func:`discreet.release.uncertainty.noise_intervals`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from ...factor import Factor
from ...graph import triangulate
from ...models.bayesian import BayesianNetwork
from ...models.divergence import check_comparable

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PaperBounds:
    """Lower and upper bound of the paper for one pair of networks, and what goes into them."""

    lower: float
    upper: float
    eta: int
    treewidth: int
    largest_domain: int
    least_error: float
    largest_error: float
    least_parameter: float

    def normalised(self, error: float) -> float:
        """μ = (error − LB)/(UB − LB) of section 5.2."""
        return (error - self.lower) / (self.upper - self.lower) if self.upper > self.lower else 0.0


def paper_bounds(exact: BayesianNetwork, private: BayesianNetwork) -> PaperBounds:
    """Theorems 4.1 and 4.2 from the empirical parameter errors of one run (footnote 2 of the paper)."""
    check_comparable(exact, private)
    if {n: set(exact.parents[n]) for n in exact.domain} != {n: set(private.parents[n]) for n in exact.domain}:
        raise InputError("the two networks must have the same graph")
    errors = [parameter_errors(exact, private, name).reshape(-1) for name in exact.domain]
    delta = np.concatenate(errors)
    least = float(min(exact.tables[n].min() for n in exact.domain))
    eta, kappa, d = eta_of(exact), treewidth(exact), max(exact.domain.shape)
    return PaperBounds(
        lower_bound(eta, float(delta.min()), least),
        upper_bound(eta, d, kappa, float(delta.max())),
        eta,
        kappa,
        d,
        float(delta.min()),
        float(delta.max()),
        least,
    )


def lower_bound(eta: int, least_error: float, least_parameter: float) -> float:
    """Theorem 4.1: √(η − 1)·δ_min·φ_min^(η − 2)."""
    return float(np.sqrt(max(eta - 1, 0)) * least_error * least_parameter ** max(eta - 2, 0))


def upper_bound(eta: int, largest_domain: int, width: int, largest_error: float) -> float:
    """Theorem 4.2: 2·η·d^κ·δ_max."""
    return float(2 * eta * float(largest_domain) ** width * largest_error)


def eta_of(model: BayesianNetwork) -> int:
    """η = max over nodes of in-degree + out-degree, plus 1."""
    return 1 + max(len(model.parents[n]) + len(model.children[n]) for n in model.domain)


def treewidth(model: BayesianNetwork) -> int:
    """κ: the width of the triangulation that the engine found for the moral graph, an upper bound on the treewidth."""
    tree = triangulate(model.domain, tuple(model.domain.clique((*model.parents[n], n)) for n in model.domain))
    return max(len(c) for c in tree.cliques) - 1


def parameter_errors(exact: BayesianNetwork, private: BayesianNetwork, name: str) -> Array:
    """|Θ[x|pa] − Θ̃[x|pa]|, axes (*parents, node) in the order of the exact network."""
    order = [private.parents[name].index(n) for n in exact.parents[name]]
    moved = np.transpose(private.tables[name], (*order, len(order)))
    return np.abs(exact.tables[name] - moved)


def parameter_l1(exact: BayesianNetwork, private: BayesianNetwork) -> float:
    """The paper's L1 error of parameters, per row: the mean over all rows of all tables of Σ_x |Θ − Θ̃|."""
    rows = [parameter_errors(exact, private, n).sum(axis=-1).reshape(-1) for n in exact.domain]
    return float(np.concatenate(rows).mean())


def is_conditional(factor: Factor, *, tolerance: float = 1e-9) -> bool:
    """Lemma 8.1: whether a factor is a conditional probability table of some of its columns given the others.

    That is, for some set S of its columns the sum over S is one for every value of the rest.
    """
    names = factor.names
    values = factor.exp()
    for mask in range(1, 1 << len(names)):
        away = tuple(i for i in range(len(names)) if mask >> i & 1)
        if np.allclose(values.sum(axis=away), 1.0, atol=tolerance):
            return True
    return bool(np.allclose(values, 1.0, atol=tolerance))


def product_bound(exact: Sequence[Array], noisy: Sequence[Array]) -> tuple[Array, Array]:
    """Lemma 8.7: the noisy product, and Πφ + Σδ that bounds it, entry by entry, for factors within [0, 1]."""
    left = np.prod(np.stack([np.asarray(f, dtype=np.float64) for f in noisy]), axis=0)
    errors = sum(np.abs(np.asarray(a) - np.asarray(b)) for a, b in zip(exact, noisy, strict=True))
    right = np.prod(np.stack([np.asarray(f, dtype=np.float64) for f in exact]), axis=0) + errors
    return left, right
