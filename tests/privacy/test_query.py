"""Queries: the sums are right, and no neighbour moves them further than they declare."""

import itertools
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from discreet.domain import Domain
from discreet.errors import InputError
from discreet.privacy.queries.distances import Distances, TotalDistance, WorstTable
from discreet.privacy.query import CellSums, LargestSum, Marginals
from discreet.privacy.unit import PrivacyUnit, Sensitivity, as_probability
from discreet.tables.encode import encode

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 2})
CELLS = list(itertools.product(range(2), range(3), range(2)))


def table(rows):
    return encode(np.array(rows, dtype=np.int64).reshape(-1, 3), DOMAIN)


def changes(query, unit, most=2):
    """Largest change of each norm, part by part, over all neighbours of small tables whose persons have ≤ m rows."""
    parts = [np.zeros(4, dtype=np.int64) for _ in query.parts]
    persons = [rows for n in range(most + 1) for rows in itertools.combinations_with_replacement(CELLS, n)]
    of = {rows: [s.reshape(-1) for s in table(rows).sum(query)] for rows in persons}
    pairs = itertools.product(persons, [()]) if unit.relation == "add-remove" else itertools.combinations(persons, 2)
    for one, other in pairs:
        if unit.relation == "replace-one" and unit.column is None and len(one) != len(other):
            continue
        for k in range(len(parts)):
            d = np.abs(of[one][k] - of[other][k])
            parts[k] = np.maximum(parts[k], [d.sum(), (d * d).sum(), d.max(initial=0), (d > 0).sum()])
    return [Sensitivity(*map(int, p)) for p in parts]


GROUPS = [("a",), ("b", "c"), ("a", "b", "c")]
TWICE = [s.copy() for s in table([(0, 0, 0)] * 2).sum(Marginals(DOMAIN, GROUPS))]  # public here: two records, alike
UNITS = [
    (PrivacyUnit(), 1),
    (PrivacyUnit(relation="replace-one"), 1),
    (PrivacyUnit("who", 2), 2),
    (PrivacyUnit("who", 2, "replace-one"), 2),
]
QUERIES = {
    "marginals": Marginals(DOMAIN, [("a",), ("a", "b"), ("a", "b", "c")]),
    "total": Marginals(DOMAIN, [()]),
    "cell sums": CellSums(DOMAIN, ["a", "c"], np.array([[[1, -3], [0, 2]], [[5, 1], [-2, -2]]])),
    "distances": Distances(DOMAIN, GROUPS, TWICE),
    "finer distances": Distances(DOMAIN, GROUPS, TWICE, finer=64),
    "sum of distances": TotalDistance(DOMAIN, GROUPS, TWICE),
    "finer sum of distances": TotalDistance(DOMAIN, GROUPS, TWICE, finer=64),
    "weighted sum of distances": TotalDistance(DOMAIN, GROUPS, TWICE, weights=[7, *[2] * (len(GROUPS) - 1)]),
}


@pytest.mark.parametrize("name", QUERIES)
@pytest.mark.parametrize(("unit", "rows"), UNITS, ids=lambda u: str(u))
def test_no_neighbour_moves_the_sums_further_than_declared(name, unit, rows):
    query = QUERIES[name]
    for part, declared, found in zip(query.parts, query.sensitivity(unit), changes(query, unit, rows), strict=True):
        for norm in ("l1", "l2_squared", "linf", "l0"):
            assert getattr(found, norm) <= getattr(declared, norm), (part.label, norm)
        if name != "total":  # ... and the declaration is attained, so half of it would be wrong
            assert found.l1 == declared.l1


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize(
    "expected",
    [TWICE, [np.zeros_like(r) for r in TWICE], [r / 3 for r in TWICE], [np.full(r.shape, 0.7) for r in TWICE]],
    ids=["two records", "nothing", "rounded to one", "rounded to one in every cell"],
)
def test_the_sensitivity_of_distances_is_exact_over_all_neighbours(expected, relation):
    """Distances do not add up over records, so every table of up to three rows is tried, not the empty one alone."""
    query = Distances(DOMAIN, GROUPS, expected)
    declared = query.sensitivity(PrivacyUnit(relation=relation))[0]
    tables = [rows for n in range(4) for rows in itertools.combinations_with_replacement(CELLS[::2], n)]
    of = {rows: table(rows).sum(query)[0] for rows in tables}
    for rows, distances in of.items():  # by their formula, first
        cells = [s - np.rint(r) for s, r in zip(table(rows).sum(Marginals(DOMAIN, GROUPS)), expected, strict=True)]
        assert distances.tolist() == [int(np.abs(c).sum()) for c in cells]
    seen = np.zeros(4, dtype=np.int64)
    for rows in tables:
        for i in range(len(rows)):
            without = rows[:i] + rows[i + 1 :]
            others = [without]
            if relation == "replace-one":
                others = [tuple(sorted((*without, cell))) for cell in CELLS[::2]]
            for other in others:
                d = np.abs(of[rows] - of[other])
                seen = np.maximum(seen, [d.sum(), (d * d).sum(), d.max(), (d > 0).sum()])
    found = Sensitivity(*map(int, seen))
    assert all(getattr(found, n) <= getattr(declared, n) for n in ("l1", "l2_squared", "linf", "l0"))
    if relation == "add-remove" or expected is TWICE:  # ... and all of it is attained
        assert found == declared


def test_distances_that_make_no_sense():
    with pytest.raises(InputError, match="no table to compare"):
        Distances(DOMAIN, [], [])
    with pytest.raises(InputError, match="2 tables need as many expectations, got 1"):
        Distances(DOMAIN, ["a", "b"], [np.zeros(2)])
    with pytest.raises(InputError, match=r"expectation of b must have shape \(3,\), got \(2,\)"):
        Distances(DOMAIN, ["a", "b"], [np.zeros(2), np.zeros(2)])
    for wild in (np.nan, np.inf, 1e19, -1e19):  # in 64 bits these would wrap around
        with pytest.raises(InputError, match="finite counts"):
            Distances(DOMAIN, ["a"], [np.array([wild, 0])])

    for finer in (0, 2000, 1.5, True):
        with pytest.raises(InputError, match="finer is a whole number"):
            Distances(DOMAIN, ["a"], [np.zeros(2)], finer=finer)


def test_finer_distances_are_in_parts_of_a_record():
    rows = table([(0, 0, 0), (1, 2, 1), (1, 2, 0)])
    expected = [np.full(part.shape, 0.3) for part in Marginals(DOMAIN, GROUPS).parts]
    exact = [np.abs(x - 0.3).sum() for x in rows.sum(Marginals(DOMAIN, GROUPS))]
    query = Distances(DOMAIN, GROUPS, expected, finer=64)
    found = rows.sum(query)[0] * float(query.parts[0].grid)
    assert found == pytest.approx(exact, abs=12 / 128)
    assert found != pytest.approx(rows.sum(Distances(DOMAIN, GROUPS, expected))[0], abs=0.1)
    assert rows.sum(TotalDistance(DOMAIN, GROUPS, expected, finer=64))[0].tolist() == [rows.sum(query)[0].sum()]
    weights = list(range(1, len(GROUPS) + 1))
    weighted = TotalDistance(DOMAIN, GROUPS, expected, weights=weights, finer=64)
    assert rows.sum(weighted)[0].tolist() == [int(rows.sum(query)[0] @ weights)]
    assert weighted.describe() != TotalDistance(DOMAIN, GROUPS, expected, finer=64).describe()
    for wrong in ([1], [0] * len(GROUPS), [1.5] * len(GROUPS)):
        with pytest.raises(InputError, match="as many weights, whole numbers above 0"):
            TotalDistance(DOMAIN, GROUPS, expected, weights=wrong)


def test_the_sensitivities_of_tables():
    query = Marginals(DOMAIN, [("a", "b"), ()])
    assert query.sensitivity(PrivacyUnit()) == (Sensitivity(1, 1, 1, 1),) * 2
    moved, total = query.sensitivity(PrivacyUnit(relation="replace-one"))
    assert moved == Sensitivity(2, 2, 1, 2)
    assert total == Sensitivity(1, 1, 1, 1)
    assert query.sensitivity(PrivacyUnit("p", 5)) == (Sensitivity(5, 25, 5, 5),) * 2


@pytest.mark.parametrize("columns", [62, 63, 64, 65, 200])
def test_tables_of_more_cells_than_64_bits_are_no_smaller_for_it(columns):
    domain = Domain.of({f"c{i}": 2 for i in range(columns)})
    query = Marginals(domain, [domain.names])
    assert query.parts[0].cells == 2**columns
    assert query.sensitivity(PrivacyUnit(relation="replace-one")) == (Sensitivity(2, 2, 1, 2),)


@settings(max_examples=80, deadline=None)
@given(st.lists(st.sampled_from(CELLS), max_size=12), st.lists(st.integers(-50, 50), min_size=8, max_size=8))
def test_cell_sums_are_the_sums_over_rows(rows, numbers):
    values = np.array(numbers, dtype=float).reshape(2, 2, 2) / 4
    query = CellSums(DOMAIN, ["a", "c"], values, grid=Fraction(1, 4))
    expected = sum((values[a, c] * 4 for a, _, c in rows), np.zeros(2))
    (got,) = table(rows).sum(query)
    assert got.dtype == np.int64
    assert np.array_equal(got, expected)


def test_values_are_read_in_the_order_in_which_the_columns_are_named():
    values = np.arange(6.0).reshape(2, 3, 1)
    forward, backward = CellSums(DOMAIN, ("a", "b"), values), CellSums(DOMAIN, ("b", "a"), values.transpose(1, 0, 2))
    rows = table([(1, 2, 0), (0, 1, 0)])
    assert rows.sum(forward)[0].tolist() == rows.sum(backward)[0].tolist() == [5 + 1]
    square = Domain.of({"x": 2, "y": 2})
    one = encode(np.array([[0, 1]]), square)
    weights = np.array([[[1.0], [2.0]], [[3.0], [4.0]]])
    assert one.sum(CellSums(square, ("x", "y"), weights))[0].tolist() == [2]
    assert one.sum(CellSums(square, ("y", "x"), weights))[0].tolist() == [3]


def test_terms_are_rounded_to_the_grid_record_by_record():
    query = CellSums(DOMAIN, "a", np.array([[0.3], [-0.7]]), grid=0.5)
    (part,) = query.parts
    assert part.grid == Fraction(1, 2)
    assert table([(0, 0, 0)] * 3 + [(1, 0, 0)]).sum(query)[0].tolist() == [3 * 1 - 1]
    assert query.sensitivity(PrivacyUnit())[0] == Sensitivity(1, 1, 1, 1)
    assert query.sensitivity(PrivacyUnit(relation="replace-one"))[0] == Sensitivity(2, 4, 2, 1)


def test_large_terms_have_exact_norms():
    big = 2**31
    query = CellSums(DOMAIN, "a", np.array([[big, big, big], [-big, -big, -big]], dtype=float))
    assert query.sensitivity(PrivacyUnit())[0] == Sensitivity(3 * big, 3 * big**2, big, 3)
    assert query.sensitivity(PrivacyUnit(relation="replace-one"))[0] == Sensitivity(6 * big, 12 * big**2, 2 * big, 3)
    with pytest.raises(InputError, match="2³¹"):
        CellSums(DOMAIN, "a", np.array([[2.0 * big], [0]]))


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e300])
def test_terms_that_are_no_numbers(value):
    with pytest.raises(InputError, match="finite"):
        CellSums(DOMAIN, "a", np.array([[value], [0]]))


@pytest.mark.parametrize("grid", [0, -1])
def test_grids_are_positive(grid):
    with pytest.raises(InputError, match="grid must be positive"):
        CellSums(DOMAIN, "a", np.zeros((2, 1)), grid=grid)


@pytest.mark.parametrize("values", [np.zeros(2), np.zeros((3, 1)), np.zeros((2, 2, 1)), np.array(1.0)])
def test_values_of_the_wrong_shape(values):
    with pytest.raises(InputError, match="shape"):
        CellSums(DOMAIN, "a", values)


def test_cliques_that_make_no_sense():
    with pytest.raises(InputError, match="no column 'aa'"):
        Marginals(DOMAIN, [("aa",)])
    with pytest.raises(InputError, match="asked for twice"):
        Marginals(DOMAIN, [("a", "b"), ("b", "a")])
    with pytest.raises(InputError, match="once"):
        Marginals(DOMAIN, [("a", "a")])


def test_descriptions_are_public_and_short():
    assert Marginals(DOMAIN, [("b", "a"), ()]).describe() == {
        "query": "Marginals",
        "noun": ["table", "tables"],
        "parts": ["a × b", "number of records"],
    }


# -- scores --------------------------------------------------------------------------------------------------------


def score_changes(score, unit):
    """Largest change of any score over neighbours of all tables of up to two rows."""
    bases = [rows for n in range(3) for rows in itertools.combinations_with_replacement(CELLS[::2], n)]
    largest = 0
    for base in bases:
        here = score.scores(table(base).sum(score.query))
        others = [(*base, cell) for cell in CELLS]
        if unit.relation == "replace-one":
            others = [(*base[1:], cell) for cell in CELLS] if base else []
        for other in others:
            largest = max(largest, int(np.abs(score.scores(table(other).sum(score.query)) - here).max()))
    return largest


SCORES = {
    "largest": LargestSum(QUERIES["cell sums"]),
    "worst": WorstTable(
        Distances(DOMAIN, QUERIES["marginals"].cliques, [np.ones(2), np.full((2, 3), 0.4), np.zeros((2, 3, 2))])
    ),
}


@pytest.mark.parametrize("name", SCORES)
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_no_neighbour_moves_a_score_further_than_declared(name, relation):
    unit = PrivacyUnit(relation=relation)
    assert score_changes(SCORES[name], unit) == SCORES[name].linf(unit)


def test_scores_name_their_candidates():
    assert SCORES["largest"].candidates == ("sums[0]", "sums[1]")
    assert SCORES["worst"].candidates == ("a", "a × b", "a × b × c")
    assert SCORES["worst"].scores(table([(0, 0, 0)] * 4).sum(SCORES["worst"].query)).tolist() == [3 + 1, 4, 4]


def test_scores_that_make_no_sense():
    class TwoGrids(CellSums):
        @property
        def parts(self):
            (part,) = super().parts
            return (part, type(part)("other", (1,), grid=Fraction(1, 2)))

    with pytest.raises(InputError, match="different grids"):
        LargestSum(TwoGrids(DOMAIN, "a", np.zeros((2, 1))))


# -- units ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((None, 1, "swap"), "relation must be one of 'add-remove', 'replace-one'"),
        ((None, 2), "needs a unit column"),
        (("p", 0), "max_rows"),
        (("p", 1.5), "max_rows"),
        (("p", True), "max_rows"),
    ],
)
def test_units_that_make_no_sense(arguments, message):
    with pytest.raises(InputError, match=message):
        PrivacyUnit(*arguments)


def test_units_say_what_they_are_and_can_be_written_down():
    unit = PrivacyUnit("who", 3, "replace-one")
    assert str(unit) == "one value of 'who' (at most 3 rows), replace-one"
    assert PrivacyUnit.from_dict(unit.to_dict()) == unit
    assert str(PrivacyUnit()) == "one row, add-remove"


@pytest.mark.parametrize("rate", [0, -0.5, 1.1, float("nan"), float("inf"), "x", None])
def test_rates_that_are_none(rate):
    with pytest.raises(InputError, match="sampling rate"):
        as_probability(rate)


def test_a_rate_is_the_decimal_that_people_read():
    assert as_probability(0.1) == Fraction(1, 10)
    assert as_probability("1/3") == Fraction(1, 3)
    assert as_probability(1) == 1


# -- sums that are kept ------------------------------------------------------------------------------------------------


class Weighed(Marginals):
    """Counts times a number that somebody changes."""

    weight = 100

    def row_sensitivity(self, relation):
        return tuple(s.times(self.weight) for s in super().row_sensitivity(relation))

    def combine(self, counts):
        return tuple(self.weight * c for c in counts)


def test_a_query_that_has_changed_is_counted_again():
    """Old sums under noise for the sensitivity of today would be a hundred times too little noise."""
    rows, query = table([(0, 0, 0)] * 5), Weighed(DOMAIN, [("a",)])
    assert rows.sum(query)[0].tolist() == [500, 0]
    query.weight = 1
    assert rows.sum(query)[0].tolist() == [5, 0] and query.sensitivity(PrivacyUnit())[0].l1 == 1


def test_who_works_in_place_on_sums_leaves_those_of_the_next_alone():
    rows, query = table([(0, 0, 0)] * 5), QUERIES["distances"]
    before = rows.sum(query)[0].tolist()
    rows.sum(query)[0][:] *= 9
    assert rows.sum(query)[0].tolist() == before


def test_kept_sums_do_not_go_with_a_copy_that_has_other_rows():
    """A part of a part may come to lie where the whole was, and must not be taken for it."""
    query = Distances(DOMAIN, [("a",)], [np.zeros(2)])
    for _ in range(50):
        whole = table([(0, 0, 0)] * 40)
        assert whole.sum(query)[0].tolist() == [40]
        part = whole._take(np.arange(20))
        del whole
        assert part._take(np.arange(10)).sum(query)[0].tolist() == [10]
        assert part.sum(query)[0].tolist() == [20]
