"""Helpers of the tests of engines: the same rows in memory, in files and on Spark."""

import itertools
from dataclasses import replace
from datetime import date, timedelta
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from discreet.domain import Attribute, Domain
from discreet.encoding import Hashed
from discreet.learn.quantiles import found_bins
from discreet.privacy.queries.gradients import LevelGradients, SpinGradients
from discreet.privacy.queries.histograms import Histograms
from discreet.schema import parse_schema

KEY = bytes(range(16))


def all_cells(table, domain=None):
    """The multiset of rows of a table, as counts of its cells."""
    domain = domain or table.domain
    return table.count_sparse(domain.names)


def mixed_domain():
    return Domain(
        (
            Attribute.categorical("word", ["yes", "no", "it's", ""], missing="?", other="…"),
            Attribute.categorical("number", range(4)),
            Attribute.categorical("flag", [False, True], missing="unknown"),
            Attribute.numeric("size", [0, 1.5, 10, 100], missing="none"),
        )
    )


def mixed_rows(n, seed):
    rng = np.random.default_rng(seed)
    words = np.array(["yes", "no", "it's", "", "NO", " yes", None, "é"], dtype=object)
    numbers = [None if x == 9 else int(x) for x in rng.integers(-2, 10, n)]
    flags = [None if x == 2 else bool(x) for x in rng.integers(0, 3, n)]
    sizes = [None if x > 95 else float(x) for x in np.round(rng.uniform(-20, 120, n), 1)]
    persons = [None if x == 0 else f"person {x}" for x in rng.integers(0, max(n // 3, 2), n)]
    return {"word": list(rng.choice(words, n)), "number": numbers, "flag": flags, "size": sizes, "who": persons}


def write_parquet(path, rows, row_group_size=1000):
    pq.write_table(pa.table(rows), path, row_group_size=row_group_size)
    return path


def pairs_of(domain):
    return list(itertools.combinations(domain.names, 2))


def gradients(domain, seed=0):
    """Queries that visit rows: the gradients of all regressions at random whole weights."""
    rng = np.random.default_rng(seed)
    if set(domain.shape) == {2}:
        monomials = [(n,) for n in domain.names] + [()]
        v = rng.integers(-50, 50, (len(domain), len(monomials)))
        return SpinGradients(domain, monomials, v, 0.013)
    return LevelGradients(domain, rng.integers(-50, 50, LevelGradients.shape_for(domain)), 0.013)


def same_sums(left, right, domain):
    """Whether counts, a gradient, and the multiset of rows are the same, to the last unit."""
    cliques = [(), *((n,) for n in domain.names), *pairs_of(domain)]
    counts = all(np.array_equal(a, b) for a, b in zip(left.count(cliques), right.count(cliques), strict=True))
    query = gradients(domain)
    sums = all(np.array_equal(a, b) for a, b in zip(left.stream(query), right.stream(query), strict=True))
    return counts and sums and all_cells(left) == all_cells(right)


def parts_are_counted_by_themselves(table, key=bytes(16)):
    """Also when the whole was counted before."""
    every = [(name,) for name in table.domain]
    whole = table.count(every)
    halves = [part.count(every) for part in table.split(2, key)]
    one = table.sample(Fraction(1, 2), key).count(every)
    for total, first, second, drawn in zip(whole, *halves, one, strict=True):
        assert np.array_equal(first + second, total) and max(first.sum(), second.sum(), drawn.sum()) < total.sum()
    return True


# -- columns that are still to be found --------------------------------------------------------------------------------

TO_BE_FOUND = parse_schema("""
missing_values = ["?", "<NULL>"]
[columns.age]
bins = "private"
range = [0, 120]
integer = true
missing = "unknown"
[columns.pay]
bins = "private"
range = "private"
[columns.job]
levels = "discover"
strip = true
ignore_case = true
[columns.dose]
bins = "private"
range = [0, 50]
step = 0.25
most = 6
[columns.seen]
dates = {from = 2020-01-01, to = 2021-12-31, by = "month"}
missing = "never"
""")


def rows_to_be_found(n):
    rng = np.random.default_rng(3)
    day = [None if i % 9 == 0 else date(2019, 6, 1) + timedelta(int(d)) for i, d in enumerate(rng.integers(0, 1000, n))]
    return {
        "age": [None if i % 50 == 0 else int(a) for i, a in enumerate(rng.integers(15, 125, n))],
        "pay": np.round(rng.lognormal(7, 1.5, n), 2).tolist(),
        "dose": (np.where(rng.random(n) < 0.3, 0, rng.integers(4, 210, n)) / 4).tolist(),
        "job": rng.choice(["cook", " Cook", "nurse", "<NULL>", "only one", "?"], n).tolist(),
        "seen": day,
        "who": [f"p{i // 2}" for i in range(n)],
    }


def facts_to_be_found(table):
    """Everything that is counted, on rows that are clipped with a fixed key; and the rows under what was found."""
    job = TO_BE_FOUND["job"]
    query = Histograms(TO_BE_FOUND, ["age", "pay", "dose"])
    sums = table.clip(1, KEY).sum(query)
    hashed = Hashed.of(job, KEY)
    texts = table.under(Domain((hashed,))).clip(1, KEY).count_sparse(("job",))
    spelled = table.texts(hashed, {hashed.number(text) for text in ("cook", "nurse", "only one", "nobody")})
    bins = [_bins(TO_BE_FOUND[name], query, sums) for name in ("age", "pay", "dose")]
    found = Domain((*bins, replace(job, levels=("cook", "nurse"), sought=None), TO_BE_FOUND["seen"]))
    counts = [part.tolist() for part in table.under(found).count([("job",), ("seen",), ("age", "dose"), ("pay",)])]
    whole = [part.tolist() for part in sums]
    return str((whole, sorted(texts.items()), sorted(spelled.items()), [b.to_dict() for b in bins], counts))


def _bins(attribute, query, sums):
    """The column as it is found from its histograms, with noise that is the same for every engine."""
    rng = np.random.default_rng(4)
    own = [
        s + rng.normal(0, 2, len(s))
        for s, p in zip(sums, query.parts, strict=True)
        if p.about["column"] == attribute.name
    ]
    bins = found_bins(attribute.sought, own, [4.0] * len(own))
    return replace(attribute, sought=None, edges=bins.edges, heaps=bins.heaps, spread=bins.spread)
