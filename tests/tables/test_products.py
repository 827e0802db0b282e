"""Pairs counted by a product: the same whole numbers as by groups, on every kind of table."""

import itertools

import numpy as np
import pytest

from discreet.domain import Domain
from discreet.privacy.query import Marginals
from discreet.tables import jobs, products
from discreet.tables.counting import count_group
from discreet.tables.jobs import Counting
from discreet.tables.memory import MemoryTable


def rows_of(sizes, records, seed=0):
    rng = np.random.default_rng(seed)
    domain = Domain.of({f"c{i:02d}": k for i, k in enumerate(sizes)})
    return domain, [rng.integers(0, k, records).astype(np.uint8) for k in sizes]


@pytest.mark.parametrize("records", [0, 1, 57, 20_000])
@pytest.mark.parametrize("threads", [1, 3])
def test_a_product_counts_what_groups_count(monkeypatch, records, threads):
    monkeypatch.setattr(products, "CHUNK_ROWS", 1000)
    domain, columns = rows_of([2, 1, 3, 2, 5, 2] * 4, records)
    asked = [*itertools.combinations(domain.names, 2), (), ("c03",), ("c01", "c04", "c09")]
    assert Counting(domain, tuple(asked)).products is not None
    table = MemoryTable(domain, columns, threads=threads, batch_rows=4096)
    batch = dict(zip(domain.names, columns, strict=True))
    for clique, found in zip(asked, table.count(asked), strict=True):
        expected = count_group(domain, clique, batch)
        assert found.dtype == np.int64 and np.array_equal(found.reshape(-1), expected), clique


def test_single_precision_is_exact_in_a_chunk():
    """All records in one cell: the largest sum there is."""
    domain, columns = rows_of([2] * 20, 30_000)
    table = MemoryTable(domain, [np.ones_like(c) for c in columns], threads=1)
    pairs = list(itertools.combinations(domain.names, 2))
    assert Counting(domain, tuple(pairs)).products is not None
    assert products.CHUNK_ROWS < 2**24
    assert all(t.tolist() == [[0, 0], [0, 30_000]] for t in table.count(pairs))


def test_the_way_of_counting_follows_from_public_things(monkeypatch):
    """Few pairs, or columns of many levels, are counted in groups; the sums do not tell."""
    domain, columns = rows_of([2] * 30, 500)
    pairs = tuple(itertools.combinations(domain.names, 2))
    assert Counting(domain, pairs[:50]).products is None
    wide = Domain.of({f"c{i}": 3000 for i in range(20)})
    assert Counting(wide, tuple(itertools.combinations(wide.names, 2))).products is None
    table = MemoryTable(domain, columns, threads=1)
    by_product = table.count(pairs)
    monkeypatch.setattr(jobs, "worth_a_product", lambda *given: False)
    assert all(np.array_equal(a, b) for a, b in zip(by_product, table.count(pairs), strict=True))


def test_sums_are_kept_for_the_same_query_of_the_same_rows_only():
    """A copy with other rows counts its own."""
    domain, columns = rows_of([2, 3], 500)
    table = MemoryTable(domain, columns, threads=1)
    query = Marginals(domain, [("c00", "c01")])
    (first,) = table.sum(query)
    assert table.sum(query)[0] is first
    half = table._take(np.arange(100))
    assert half.sum(query)[0].sum() == 100
    assert table.sum(query)[0].sum() == 500
    assert sum(int(part.sum(query)[0].sum()) for part in table.split(3, b"k" * 16)) == 500
