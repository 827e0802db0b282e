"""Optimisation oracles: against enumeration, with gaps that mean what they say; chains of parity models."""

import math
from itertools import combinations, product

import numpy as np
import pytest

from discreet.errors import CostError, InputError
from discreet.inference.best_record import (
    AnnealedSearch,
    CellTerms,
    Enumeration,
    IntegerProgram,
    ParityTerms,
    objective,
)
from discreet.inference.parity_chains import ParityChains, parity_features


def parities(p, order):
    return ParityTerms((2,) * p, tuple(I for k in range(1, order + 1) for I in combinations(range(p), k)))


def cells(shape):
    pairs = combinations(range(len(shape)), 2)
    return CellTerms(
        shape, tuple(((i, a), (j, b)) for i, j in pairs for a, b in product(range(shape[i]), range(shape[j])))
    )


CASES = {"parities": parities(6, 4), "cells": cells((2, 3, 4, 2))}


@pytest.mark.parametrize("case", CASES)
def test_values_are_what_they_say(case):
    terms = CASES[case]
    rng = np.random.default_rng(0)
    records = np.stack([rng.integers(0, k, 20) for k in terms.shape], axis=1)
    found = terms.values(records, list(range(len(terms))))
    for record, row in zip(records, found, strict=True):
        for t, value in enumerate(row):
            if case == "parities":
                assert value == math.prod(2 * record[i] - 1 for i in terms.monomials[t])
            else:
                assert value == all(record[i] == a for i, a in terms.cells[t])


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("seed", range(4))
def test_the_integer_program_finds_the_best_and_proves_it(case, seed):
    terms = CASES[case]
    rng = np.random.default_rng(seed)
    weights = rng.integers(-3, 4, len(terms)) * (rng.random(len(terms)) < 0.5).astype(float)
    linear = rng.laplace(size=(3, int(terms.starts[-1])))
    best = Enumeration().solve(terms, weights, linear, rng)
    found = IntegerProgram(20.0).solve(terms, weights, linear, rng)
    assert found.gap == 0
    assert objective(terms, weights, linear, found.records) == pytest.approx(
        objective(terms, weights, linear, best.records)
    )


def test_without_time_the_gap_is_told():
    terms = parities(18, 3)
    rng = np.random.default_rng(1)
    weights = rng.integers(-3, 4, len(terms)).astype(float)
    found = IntegerProgram(0.01).solve(terms, weights, rng.laplace(size=(1, 36)), rng)
    assert found.gap > 0 and found.records.shape == (1, 18)


@pytest.mark.parametrize("case", CASES)
def test_annealed_search_is_near_the_best(case):
    terms = CASES[case]
    rng = np.random.default_rng(2)
    weights, linear = rng.normal(size=len(terms)), rng.laplace(size=(20, int(terms.starts[-1])))
    best = objective(terms, weights, linear, Enumeration().solve(terms, weights, linear, rng).records)
    found = AnnealedSearch(tries=8).solve(terms, weights, linear, rng)
    value = objective(terms, weights, linear, found.records)
    assert math.isnan(found.gap)
    assert (value <= best + 1e-9).all() and value.mean() > 0.9 * best.mean()


def test_refusals():
    rng = np.random.default_rng(0)
    with pytest.raises(CostError, match="too many"):
        Enumeration().solve(parities(17, 1), np.zeros(17), np.zeros((1, 34)), rng)
    with pytest.raises(InputError, match="seconds=0"):
        IntegerProgram(0)
    with pytest.raises(InputError, match="two levels"):
        ParityTerms((2, 3), ((0,),))


def test_parity_chains_have_the_models_moments():
    monomials, c = ((0,), (1, 2), (0, 2, 3)), np.array([0.3, -0.5, 0.6])
    everything = np.array(list(product([0, 1], repeat=4)))
    weights = np.exp(parity_features(everything, monomials) @ c)
    exact = weights @ parity_features(everything, monomials) / weights.sum()
    chains = ParityChains.start(np.zeros(4), 20_000, 0)
    chains.sweep(monomials, c, 30)
    assert np.abs(chains.features(monomials).mean(axis=0) - exact).max() < 0.03  # seeded: four standard errors
    assert np.array_equal(parity_features(chains.codes, monomials), chains.features(monomials))
