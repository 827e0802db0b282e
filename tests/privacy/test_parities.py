"""Parity sums: exact values, and sensitivities compared with every pair of neighbours of tiny tables."""

from itertools import combinations, product

import numpy as np
import pytest

from discreet.domain import Domain
from discreet.errors import InputError
from discreet.privacy.queries import parities
from discreet.privacy.queries.parities import ParityResiduals, ParitySums, all_monomials, most_odd
from discreet.privacy.unit import PrivacyUnit
from discreet.tables.memory import MemoryTable


def binary(p):
    return Domain.of({f"x{i}": 2 for i in range(p)})


def table(codes, domain):
    return MemoryTable(domain, [codes[:, i].astype(np.uint8) for i in range(len(domain))], threads=1)


def by_hand(codes, domain, monomials):
    z = 2 * codes.astype(np.int64) - 1
    return np.array([z[:, [domain.index(n) for n in I]].prod(axis=1).sum() for I in monomials])


@pytest.mark.parametrize("order", [1, 2, 3, 4])
@pytest.mark.parametrize("rows", [0, 1, 7, 300])
def test_sums_are_exact(order, rows, monkeypatch):
    monkeypatch.setattr(parities, "CHUNK", 64)  # several products
    domain = binary(6)
    codes = np.random.default_rng(order).integers(0, 2, (rows, 6))
    monomials = all_monomials(domain, order, least=0)
    (sums,) = table(codes, domain).sum(ParitySums(domain, monomials))
    assert sums.dtype == np.int64
    assert np.array_equal(sums, by_hand(codes, domain, monomials))


def test_number_of_records_alone():
    domain = binary(3)
    query = ParitySums(domain, [()])
    assert table(np.zeros((5, 3), dtype=int), domain).sum(query)[0].tolist() == [5]
    assert query.row_sensitivity("replace-one")[0].l1 == 1  # noised as if it moved


def largest_moves(domain, monomials):
    """Brute force: the largest norms of a record's term, and of the difference of two records' terms."""
    records = np.array(list(product([0, 1], repeat=len(domain))))
    terms = np.array([by_hand(r[None], domain, monomials) for r in records])
    moves = {"add-remove": terms, "replace-one": (terms[:, None] - terms[None]).reshape(-1, len(monomials))}
    return {
        relation: (
            np.abs(v).sum(axis=1).max(),
            (v**2).sum(axis=1).max(),
            np.abs(v).max(),
            (v != 0).sum(axis=1).max(),
        )
        for relation, v in moves.items()
    }


LISTS = {
    "singles and pairs": lambda d: all_monomials(d, 2),
    "with the number of records": lambda d: all_monomials(d, 2, least=0),
    "pairs only": lambda d: tuple(combinations(d.names, 2)),
    "order 3": lambda d: all_monomials(d, 3),
    "a triangle and a path": lambda d: [("x0", "x1"), ("x1", "x2"), ("x0", "x2"), ("x2", "x3"), ("x3",)],
}


@pytest.mark.parametrize("p", [4, 5, 6])
@pytest.mark.parametrize("which", LISTS)
def test_sensitivities_are_those_of_brute_force(which, p):
    domain = binary(p)
    monomials = LISTS[which](domain)
    query = ParitySums(domain, monomials)
    for relation, (l1, l2_squared, linf, l0) in largest_moves(domain, monomials).items():
        (s,) = query.row_sensitivity(relation)
        assert (s.l1, s.l2_squared, s.linf, s.l0) == (l1, l2_squared, linf, l0), relation


@pytest.mark.parametrize("p", [2, 3, 16, 101])
def test_formulas_for_an_ising_table(p):
    query = ParitySums(binary(p), all_monomials(binary(p), 2))
    assert query.row_sensitivity("add-remove")[0].l2_squared == p * (p + 1) // 2
    assert query.row_sensitivity("replace-one")[0].l2_squared == 4 * ((p + 1) ** 2 // 4) <= (p + 1) ** 2


def test_irregular_lists_over_many_columns_are_bounded():
    pairs = [(i, i + 1) for i in range(19)]
    assert most_odd(20, pairs) == 19  # every other column flipped: attained
    assert most_odd(20, [*pairs, (0, 2)]) == 20  # a bound; 19 is the truth


def test_persons_multiply():
    query = ParitySums(binary(4), all_monomials(binary(4), 2))
    (s,) = query.sensitivity(PrivacyUnit("person", max_rows=3, relation="replace-one"))
    assert (s.l1, s.linf) == (36, 6)


def test_residual_scores():
    domain = binary(3)
    codes = np.random.default_rng(0).integers(0, 2, (9, 3))
    pairs = list(combinations(domain.names, 2))
    score = ParityResiduals(domain, pairs, np.array([3.2, -2.0, 0.0]))
    sums = table(codes, domain).sum(score.query)
    assert np.array_equal(score.scores(sums), np.abs(by_hand(codes, domain, pairs) - np.array([3, -2, 0])))
    assert score.candidates[1] == "x0·x2"
    assert score.linf(PrivacyUnit()) == 1
    assert score.linf(PrivacyUnit(relation="replace-one")) == 2


def test_refusals():
    domain = Domain.of({"a": 2, "b": 3})
    with pytest.raises(InputError, match="two levels, but 'b' has 3"):
        ParitySums(domain, [("a", "b")])
    with pytest.raises(InputError, match="asked for twice"):
        ParitySums(binary(2), [("x0", "x1"), ("x1", "x0")])
    for bad in (np.array([np.nan]), np.array([1e30]), np.zeros(2)):
        with pytest.raises(InputError):
            ParityResiduals(binary(2), [("x0",)], bad)
