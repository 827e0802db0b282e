"""Lanczos' method: what it says of a spectrum, also when a small matrix is soon exhausted."""

import numpy as np
import pytest

from discreet.learn.fields.spectrum import lanczos


@pytest.mark.parametrize("cells", [1, 2, 3, 40])
@pytest.mark.parametrize("scale", [1e-120, 1e-9, 1.0, 1e9])
def test_quadratic_forms_are_those_of_the_matrix(cells, scale):
    rng = np.random.default_rng(cells)
    root = rng.normal(size=(cells, cells))
    matrix = scale * (root @ root.T + 0.1 * np.eye(cells))
    probes = rng.normal(size=(4, cells))
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        seen = lanczos(lambda q: q @ matrix, probes, lambda s: float((s.prior * s.h).sum()))
    for nodes, weights, own in ((seen.h, seen.prior, probes[:2]), (seen.noise_h, seen.noise, probes[2:])):
        if scale >= 1e-9:  # below it, eigenvalues count as rounding
            exact = np.einsum("ki,ij,kj->", own, matrix, own) / 2
            assert (weights * nodes).sum() == pytest.approx(exact, rel=1e-8)
        assert weights.sum() == pytest.approx((own**2).sum() / 2)
