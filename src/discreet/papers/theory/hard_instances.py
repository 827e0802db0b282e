"""The instances behind the lower bounds of [001], as models: perfect matchings, with codes or weights on the pairs.

    model = coded_matching([1, 0, 1, 1], 0.5)      # Theorem 7.1: p = 8, an edge where the code has a one
    model = random_means(64, random_state=0)       # Theorem 5.1: correlations uniform in [−1/3, 1/3]
    model = coded_pairs(codes, 0.5)                # Theorem 7.4: a 0/1 matrix of k × k a pair

They are what a method should be tried on: within one family nothing but the answer differs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import numpy.typing as npt

from ...arguments import check_positive, check_whole
from ...domain import Attribute, Domain
from ...errors import InputError
from ...models.checks import numbered
from ...models.ising import IsingModel
from ...models.pairwise import PairwiseModel
from ...models.records import RandomState, generator
from .packing import MEANS


def weighted_matching(weights: npt.ArrayLike) -> IsingModel:
    """An Ising model on 2m columns with coupling ``weights[i]`` between columns 2i and 2i + 1, and no other."""
    eta = np.asarray(weights, dtype=np.float64)
    if eta.ndim != 1 or not len(eta) or not np.all(np.isfinite(eta)):
        raise InputError("give a weight for each pair: a list of numbers, not empty")
    A = np.zeros((2 * len(eta), 2 * len(eta)))
    first = 2 * np.arange(len(eta))
    A[first, first + 1] = A[first + 1, first] = eta
    return IsingModel(A)


def coded_matching(code: Sequence[int] | npt.NDArray[np.integer], weight: float) -> IsingModel:
    """The instance of Theorem 7.1 for a code word c ∈ {0, 1}^(p/2): A_{2i,2i+1} = η·c[i]."""
    check_positive(weight=weight)
    word = np.asarray(code)
    if word.ndim != 1 or not np.isin(word, (0, 1)).all():
        raise InputError("a code word is a list of zeros and ones, one a pair of columns")
    return weighted_matching(weight * word.astype(np.float64))


def random_codes(p: int, *, random_state: RandomState = None) -> Iterator[npt.NDArray[np.int64]]:
    """Code words for Theorem 7.1, drawn uniformly without end."""
    check_whole(2, p=p)
    rng = generator(random_state)
    while True:
        yield rng.integers(0, 2, p // 2)


def random_means(p: int, *, random_state: RandomState = None) -> IsingModel:
    """The prior of Theorem 5.1's proof: correlations of the pairs uniform in [−1/3, 1/3], weights artanh of them."""
    check_whole(2, p=p)
    return weighted_matching(np.arctanh(generator(random_state).uniform(-MEANS, MEANS, p // 2)))


def coded_pairs(codes: npt.ArrayLike, weight: float) -> PairwiseModel:
    """The instance of Theorem 7.4 for 0/1 matrices of shape (p/2, k, k): W_{2l,2l+1} = η·codes[l], all else zero.

    The paper takes symmetric matrices. Models are kept centred, so matrices that differ by f(a) + g(b) differ in the
    fields only, and constant matrices leave no edge; with zeros in the first row and column no two are the same.
    """
    check_positive(weight=weight)
    words = np.asarray(codes)
    if words.ndim != 3 or words.shape[1] != words.shape[2] or words.shape[1] < 2 or not np.isin(words, (0, 1)).all():
        raise InputError(f"codes must be zeros and ones of shape (pairs, k, k), got shape {words.shape}")
    pairs, k = words.shape[:2]
    names = numbered(2 * pairs)
    domain = Domain(tuple(Attribute.categorical(name, k) for name in names))
    W = {(names[2 * i], names[2 * i + 1]): weight * words[i].astype(np.float64) for i in range(pairs)}
    return PairwiseModel(W, {name: np.zeros(k) for name in names}, domain)


def random_tables(p: int, k: int, *, random_state: RandomState = None) -> Iterator[npt.NDArray[np.int64]]:
    """0/1 matrices for :func:`coded_pairs` with zeros in the first row and column, drawn uniformly without end."""
    check_whole(2, p=p, k=k)
    rng = generator(random_state)
    while True:
        codes = rng.integers(0, 2, (p // 2, k, k))
        codes[:, 0, :] = codes[:, :, 0] = 0
        yield codes
