"""Counting many contingency tables in one pass gives what counting each by hand gives."""

import itertools
import math
from collections import Counter
from copy import copy

import numpy as np
import pytest
from engines import parts_are_counted_by_themselves
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.attribute import Groups
from discreet.domain import Attribute, Domain
from discreet.errors import InputError
from discreet.privacy.budget import PureDP
from discreet.privacy.curator import Curator
from discreet.tables import counting, memory, open_table
from discreet.tables.blocks import Block, Layout
from discreet.tables.encode import encode
from discreet.tables.memory import MemoryTable


def table_and_rows(shape, n, seed, **options):
    domain = Domain.of({f"c{i}": k for i, k in enumerate(shape)})
    rng = np.random.default_rng(seed)
    rows = np.stack([rng.integers(0, k, n) for k in shape], axis=1) if shape else np.zeros((n, 0), dtype=int)
    columns = [rows[:, i].astype(np.uint8 if k <= 256 else np.uint32) for i, k in enumerate(shape)]
    return MemoryTable(domain, columns, **options), domain, rows


def by_hand(domain, rows, clique):
    """Row by row, in the axis order that the clique gives."""
    out = np.zeros([domain[n].size for n in clique], dtype=np.int64)
    for row in rows[:, [domain.index(n) for n in clique]].tolist():
        out[tuple(row)] += 1
    return out


@st.composite
def domains_and_cliques(draw):
    shape = draw(st.lists(st.integers(1, 9), min_size=1, max_size=6))
    names = [f"c{i}" for i in range(len(shape))]
    clique = st.lists(st.sampled_from(names), unique=True, max_size=4).map(tuple)
    return shape, draw(st.lists(clique, max_size=8)), draw(st.integers(0, 40)), draw(st.integers(0, 2**32))


@settings(max_examples=150, deadline=None)
@given(domains_and_cliques())
def test_tables_equal_counts_by_hand(case):
    shape, cliques, n, seed = case
    table, domain, rows = table_and_rows(shape, n, seed)
    counts = table.count(cliques)
    assert len(counts) == len(cliques)
    for clique, got in zip(cliques, counts, strict=True):
        assert got.dtype == np.int64
        assert got.shape == tuple(domain[c].size for c in clique)
        assert np.array_equal(got, by_hand(domain, rows, clique)), clique


def test_equal_to_numpy_histograms():
    table, domain, rows = table_and_rows([4, 7, 3], 5000, 1)
    (cube,) = table.count([domain.names])
    expected, _ = np.histogramdd(rows, bins=[np.arange(k + 1) - 0.5 for k in (4, 7, 3)])
    assert np.array_equal(cube, expected)
    (pair,) = table.count([("c1", "c2")])
    assert np.array_equal(pair.reshape(-1), np.bincount(rows[:, 1] * 3 + rows[:, 2], minlength=21))


@pytest.mark.parametrize("shape", [(300, 70), (130, 130, 2), (20000,), (2,) * 16])
def test_tables_larger_than_a_group(shape):
    assert math.prod(shape) > counting.GROUP_CELLS
    table, domain, rows = table_and_rows(shape, 3000, 2)
    cliques = [domain.names, domain.names[:1], domain.names[::-1], ()]
    for clique, got in zip(cliques, table.count(cliques), strict=True):
        assert np.array_equal(got, by_hand(domain, rows, clique))


def test_axes_follow_the_order_of_the_clique():
    table, _, rows = table_and_rows([2, 5], 100, 3)
    forward, backward = table.count([("c0", "c1"), ("c1", "c0")])
    assert forward.shape == (2, 5)
    assert np.array_equal(forward.T, backward)
    assert forward[1, 3] == ((rows[:, 0] == 1) & (rows[:, 1] == 3)).sum()


def test_many_batches_and_threads_add_up(monkeypatch):
    monkeypatch.setattr(memory, "BATCH_ROWS", 37)
    for threads in (1, 5):
        table, domain, rows = table_and_rows([3, 4, 5, 2], 1000, 4, threads=threads)
        cliques = list(itertools.combinations(domain.names, 2))
        for clique, got in zip(cliques, table.count(cliques), strict=True):
            assert np.array_equal(got, by_hand(domain, rows, clique))


@pytest.mark.parametrize("n", [0, 1])
def test_small_tables(n):
    table, domain, rows = table_and_rows([2, 3], n, 5)
    total, single, pair = table.count([(), ("c1",), ("c0", "c1")])
    assert total.shape == ()
    assert (int(total), single.sum(), pair.sum()) == (n, n, n)
    assert np.array_equal(pair, by_hand(domain, rows, domain.names))
    assert table.count([]) == ()


@settings(max_examples=200, deadline=None)
@given(domains_and_cliques())
def test_groups_cover_every_clique_once(case):
    shape, cliques, _, _ = case
    domain = Domain.of({f"c{i}": k for i, k in enumerate(shape)})
    groups = counting.plan_groups(domain, tuple(cliques))
    seen = Counter(position for _, positions in groups for position in positions)
    assert seen == Counter(range(len(cliques)))
    for group, positions in groups:
        assert all(set(cliques[p]) <= set(group) for p in positions)
        assert domain.size(group) <= counting.GROUP_CELLS or len(positions) == 1


def test_all_pairs_come_out_of_few_counts():
    domain = Domain.of({f"c{i}": 5 for i in range(20)})
    pairs = tuple(itertools.combinations(domain.names, 2))
    groups = counting.plan_groups(domain, pairs)
    assert len(groups) <= 40 < len(pairs)
    assert all(domain.size(group) <= counting.GROUP_CELLS for group, _ in groups)


@settings(max_examples=60, deadline=None)
@given(domains_and_cliques())
def test_sparse_counts_are_the_cells_that_are_not_zero(case):
    shape, cliques, n, seed = case
    table, domain, rows = table_and_rows(shape, n, seed)
    for clique in cliques:
        dense = by_hand(domain, rows, clique)
        expected = {tuple(map(int, cell)): int(dense[tuple(cell)]) for cell in np.argwhere(dense)}
        assert table.count_sparse(clique) == expected


def test_sparse_counts_of_a_table_with_far_more_cells_than_memory():
    table, domain, rows = table_and_rows([2] * 80, 50, 6)
    counts = table.count_sparse(domain.names)
    assert sum(counts.values()) == 50
    assert counts == dict(Counter(map(tuple, rows.tolist())))


class SumOfSquares:
    """A query that visits rows."""

    cliques = None
    columns = ("c1", "c0")
    needs_weights = False

    def __init__(self, domain):
        self.attributes = tuple(domain[name] for name in self.columns)

    def sum_rows(self, batch):
        assert set(batch) == set(self.columns)
        return (np.array([(batch["c0"].astype(np.int64) ** 2).sum()]), batch["c1"].astype(np.int64).sum(keepdims=True))


@pytest.mark.parametrize("n", [0, 1, 500])
def test_streams_add_up_batches(n, monkeypatch):
    monkeypatch.setattr(memory, "BATCH_ROWS", 64)
    table, domain, rows = table_and_rows([9, 4, 2], n, 7)
    squares, sums = table.sum(SumOfSquares(domain))
    assert squares.tolist() == [(rows[:, 0] ** 2).sum()]
    assert sums.tolist() == [rows[:, 1].sum()]


def test_a_table_checks_its_columns():
    domain = Domain.of({"a": 2, "b": 2})
    with pytest.raises(InputError, match="domain has 2 columns, got codes for 1"):
        MemoryTable(domain, [np.zeros(3, dtype=np.uint8)])
    with pytest.raises(InputError, match="unit column"):
        MemoryTable(domain, [np.zeros(3, dtype=np.uint8)] * 2, unit_column="p")
    with pytest.raises(InputError, match="made with a unit column"):
        encode(np.zeros((2, 2), dtype=int), domain).clip(1, bytes(16))


# -- codes that do not fit ---------------------------------------------------------------------------------------------

TYPES = [np.dtype(kind) for kind in ("i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", ">u2", ">i8")]
SIZES = [1, 2, 127, 128, 129, 255, 256, 257, 32768, 32769, 65535, 65536, 65537]


@pytest.mark.parametrize("levels", SIZES)
@pytest.mark.parametrize("dtype", TYPES, ids=str)
def test_codes_are_refused_by_their_type_or_counted_as_they_are(dtype, levels):
    domain = Domain((Attribute.categorical("a", range(levels)), Attribute.categorical("b", 2)))
    other = np.zeros(3, dtype=np.uint8)
    if np.iinfo(dtype).max < levels - 1:
        with pytest.raises(InputError, match=f"column 'a' has {levels:,} levels: its codes must be"):
            MemoryTable(domain, [np.zeros(3, dtype=dtype), other])
        return
    codes = np.array([0, levels - 1, levels // 2])
    table = MemoryTable(domain, [codes.astype(dtype), other])
    expected = dict(Counter((c, 0) for c in codes.tolist()))
    assert table.count_sparse(("a", "b")) == expected
    (counts,) = table.count([("a", "b")])
    assert {(int(a), int(b)): int(counts[a, b]) for a, b in np.argwhere(counts)} == expected
    parts = [Counter(part.count_sparse(("a", "b"))) for part in table.split(2, bytes(16))]
    assert parts[0] + parts[1] == Counter(expected)


@pytest.mark.parametrize(
    "codes", [np.zeros(3), np.zeros(3, dtype=bool), np.array(["0"]), [0, 0], np.zeros((3, 1), dtype=np.uint8)], ids=repr
)
def test_what_are_no_codes_is_refused(codes):
    with pytest.raises(InputError, match="its codes must be an array of whole numbers"):
        MemoryTable(Domain.of({"a": 2}), [codes])


@pytest.mark.parametrize("codes", [[5, 1, 1], [-1, 1, 1], [2**40, 1, -(2**40)]])
def test_a_code_that_is_no_level_moves_no_more_than_its_own_cell(codes):
    """Neither an error nor another cell of the pair may tell of it."""
    domain = Domain.of({"a": 2, "b": 3})
    table = MemoryTable(domain, [np.array(codes), np.array([2, 2, 2])])
    nearest = np.clip(codes, 0, 1)
    assert table.count([("a", "b")])[0][:, 2].tolist() == np.bincount(nearest, minlength=2).tolist()
    assert table.count_sparse(("a",)) == dict(Counter((int(c),) for c in nearest))


def test_columns_of_different_lengths_are_refused():
    with pytest.raises(InputError, match="differ in length"):
        MemoryTable(Domain.of({"a": 2, "b": 2}), [np.zeros(3, dtype=np.uint8), np.zeros(2, dtype=np.uint8)])


@pytest.mark.parametrize(("levels", "small"), [(129, np.int8), (257, np.uint8), (65537, np.uint16)])
def test_blocks_of_files_and_of_spark_refuse_codes_that_do_not_fit(levels, small):
    layout = Layout(Domain((Attribute.categorical("a", range(levels)),)), False)
    packed = layout.pack(Block({"a": np.array([levels - 1])}, None, 1))
    assert layout.unpack_whole(packed, 1, None).columns["a"].tolist() == [levels - 1]
    with pytest.raises(InputError, match=f"too small for its {levels:,} levels"):
        layout.pack(Block({"a": np.zeros(1, dtype=small)}, None, 1))


# -- what was counted is kept ------------------------------------------------------------------------------------------


class Watched(MemoryTable):
    """Remembers which tables went over the rows."""

    def _run(self, job):
        self.__dict__.setdefault("asked", []).append(job.cliques)
        return super()._run(job)


def watched():
    domain = Domain.of({"a": 2, "b": 3, "c": 2})
    rng = np.random.default_rng(3)
    return Watched(domain, [rng.integers(0, k, 500).astype(np.uint8) for k in domain.shape])


def test_a_table_is_counted_once():
    table = watched()
    first = table.count([("a", "b"), ("c",), ("a", "b")])
    again = table.count([("b", "c"), ("a", "b"), ("c",)])
    assert table.asked == [(("a", "b"), ("c",)), (("b", "c"),)]
    asked = [("a", "b"), ("c",), ("a", "b"), ("b", "c"), ("a", "b"), ("c",)]
    for mine, fresh in zip((*first, *again), watched().count_rows(asked), strict=True):
        np.testing.assert_array_equal(mine, fresh)
    assert not np.shares_memory(first[0], first[2]), "who asks twice at once has two arrays"


def test_who_changes_a_count_changes_nobody_elses():
    table = watched()
    (first,) = table.count([("a",)])
    expected = first.copy()
    first += 7
    (second,) = table.count([("a",)])
    second += 7
    np.testing.assert_array_equal(table.count([("a",)])[0], expected)


def test_other_rows_are_counted_by_themselves():
    table = watched()
    (whole,) = table.count([("a",)])
    parts = table.split(2, bytes(16))
    assert sum(part.count([("a",)])[0] for part in parts).tolist() == whole.tolist()
    assert all(part.count([("a",)])[0].sum() < whole.sum() for part in parts)
    assert all("_counted" not in vars(copy(part)) for part in (table, *parts))
    table.close()
    assert not table._counted


def test_parts_of_files_are_counted_by_themselves_and_nothing_after_the_end(tmp_path):
    path = tmp_path / "rows.csv"
    path.write_text("a,who\n" + "".join(f"{i % 3},p{i // 2}\n" for i in range(400)))
    table = open_table(path, Domain.of({"a": 3}), unit="who")
    assert parts_are_counted_by_themselves(table)
    alone = table.without_persons()
    assert parts_are_counted_by_themselves(alone)
    table.close()
    assert not table._counted
    for closed in (table, alone):
        with pytest.raises(InputError, match="this table is closed"):
            closed.count([("a",)])


def test_blocks_that_have_voted_keep_no_counts():
    seen = []

    def vote(curator):
        seen.append(curator._rows)
        curator._rows.count([("a",)])
        return "yes"

    with Curator(watched(), budget=PureDP(1)) as curator:
        curator.vote(vote, 5, candidates=["yes", "no"])
    assert len(seen) == 5 and not any(block._counted for block in seen)


def test_levels_taken_together_are_kept_by_what_they_hold():
    table = watched()
    b = table.domain["b"]
    together = [Attribute.categorical("g", 2, groups=Groups(b, codes)) for codes in ((0, 0, 1), (0, 1, 1))]
    one, other = (table.count([("a", "g")], [g])[0] for g in together)
    ((whole,)) = table.count([("a", "b")])
    assert one.tolist() == np.stack([whole[:, :2].sum(axis=1), whole[:, 2]], axis=1).tolist()
    assert other.tolist() == np.stack([whole[:, 0], whole[:, 1:].sum(axis=1)], axis=1).tolist()
    kept, new = table.count([("a", "g"), ("c",)], together[:1])  # rows are asked for c alone
    assert kept.tolist() == one.tolist() and new.sum() == whole.sum()


def test_only_so_much_is_kept(monkeypatch):
    monkeypatch.setattr("discreet.tables.jobs.MOST_KEPT", 7)
    table = watched()
    for _ in range(2):
        table.count([("a", "b"), ("b", "c"), ("a",)])
    assert table.asked == [(("a", "b"), ("b", "c"), ("a",)), (("b", "c"), ("a",))]
