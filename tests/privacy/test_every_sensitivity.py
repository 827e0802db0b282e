"""Every kind of question declares how far one unit moves it; here all neighbours of small tables are tried.

A kind of query, score or test without a case fails the build. The parameters are chosen to be awkward: weights at which
the slope is largest at one end or in the middle, expectations between counts, prices, thresholds. A unit is a row or a
person of up to two rows; under replace-one it may also be replaced by one that does not count.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import lru_cache
from itertools import combinations_with_replacement, product
from typing import Any

import numpy as np
import pytest
from test_other_schemas import every_kind

from discreet.attribute import Attribute, Groups
from discreet.domain import Domain
from discreet.errors import InputError
from discreet.learn.chains.tied import TiedField
from discreet.learn.fields.likelihood import Field
from discreet.learn.networks.search import Dependence
from discreet.papers.output_perturbation import PenalisedFit
from discreet.papers.psgd import ClippedGradients
from discreet.privacy.queries.chains import ChainTables
from discreet.privacy.queries.distances import Distances, TotalDistance, WorstTable, WorthMeasuring
from discreet.privacy.queries.edge_tests import CorrelationTest, DependenceTest, SpinTest, TripleSums
from discreet.privacy.queries.gradients import LevelGradients, SpinGradients, SteepestVertex
from discreet.privacy.queries.group_vertices import GroupedLevelGradients, SteepestGroup
from discreet.privacy.queries.histograms import Histograms
from discreet.privacy.queries.interactions import Interactions
from discreet.privacy.queries.likelihood import LogLikelihood
from discreet.privacy.queries.parities import ParityResiduals, ParitySums, PartnerResiduals
from discreet.privacy.queries.polytope import CellScores, LinearLoss, LinearScores, Loss, Polytope, _CellSums
from discreet.privacy.queries.predictions import RightPredictions
from discreet.privacy.queries.residuals import SignedResiduals
from discreet.privacy.queries.two_columns import FourSums
from discreet.privacy.queries.value_gradients import LinearGradients, ValueGradients
from discreet.privacy.query import CellSums, GroupedScore, LargestSum, Marginals, Query, Score
from discreet.privacy.stability import StabilityTest
from discreet.privacy.unit import PrivacyUnit
from discreet.tables.memory import MemoryTable
from discreet.tables.windows import windows

BITS = Domain.of({"a": 2, "b": 2, "c": 2})
FOUR = Domain.of({"a": 2, "b": 2, "c": 2, "d": 2})
MIXED = Domain.of({"a": 3, "b": 2})
THREES = Domain.of({"a": 3, "b": 3})
TOGETHER = Domain(
    (
        MIXED["b"],
        Attribute.categorical("a in groups", ["0 and 2", "1"], groups=Groups(MIXED["a"], (0, 1, 0))),
    )
)
"""Levels of a column of MIXED taken together, and the columns in another order."""
GRID = Domain((Attribute.from_dict("x", {"bins": "private", "range": [0, 40], "integer": True}),))
UNITS = {
    "row, add-remove": PrivacyUnit(),
    "row, replace-one": PrivacyUnit(relation="replace-one"),
    "person, add-remove": PrivacyUnit("who", max_rows=2),
    "person, replace-one": PrivacyUnit("who", max_rows=2, relation="replace-one"),
}
RNG = np.random.default_rng(3)


def falling(margins: np.ndarray) -> np.ndarray:
    """As of the logistic loss: largest at low margins."""
    return -1 / (1 + np.exp(margins))


def rising(margins: np.ndarray) -> np.ndarray:
    """Largest at high margins."""
    return -1 / (1 + np.exp(-margins))


def hump(margins: np.ndarray) -> np.ndarray:
    """Largest in the middle, of both signs."""
    return np.sin(3 * margins) * np.exp(-(margins**2))


def climbing(margins: np.ndarray) -> np.ndarray:
    """Of a loss that grows with its margin."""
    return 1 / (1 + np.exp(-margins))


def steep(margins: np.ndarray) -> np.ndarray:
    """Beyond the bound that it declares."""
    return -7 / (1 + np.exp(-margins))


def values(slope: Any) -> Callable[[], Any]:
    weights = np.array([[7, -3]])
    return lambda: LinearGradients(slope, 1.0, MIXED, "b", {"a": [-2, 0, 2]}, 2, weights, 0.1)


def linear(slope: Any, *, adaptive: bool) -> Callable[[], Any]:
    loss = LinearLoss("b", {"a": [-2, 1, 2]}, slope, 1.0, resolution=2)
    ball = Polytope(np.array([[2, 1], [-2, -1], [0, 3]]), 1.0)
    return lambda: loss.at(MIXED, ball, np.array([7, -3]), 0.1).score(adaptive=adaptive)


def cells(seed: int = 0) -> Any:
    gradients = np.random.default_rng(seed).normal(size=(6, 2))
    gradients[3] = np.nan, 17.0
    ball = Polytope(np.array([[1, 0], [-1, 2], [0, -3]]), 1.0)
    return Loss(["a", "b"], lambda w, records: gradients, 1.0).at(MIXED, ball, np.zeros(2, dtype=np.int64), 1.0)


def spins(weights: int = 3) -> SpinGradients:
    v = np.random.default_rng(weights).integers(-weights, weights + 1, (3, 5))
    return SpinGradients(BITS, [("a",), ("b",), ("c",), ("a", "b"), ()], v, 0.3)


def levels(kind: type[LevelGradients], domain: Domain = THREES) -> Any:
    shape = LevelGradients.shape_for(domain)
    return kind(domain, np.random.default_rng(8).integers(-3, 4, shape), 0.3)


PAIRS = [("a", "b"), ("b", "c")]
NEAR = [np.array([[0.4, 1.6], [2.5, -1.0]]), np.array([[1.0, 0.5], [0.0, 3.0]])]
ODD = FOUR.project(["a", "b", "c", "d"])
TIED = TiedField(BITS, 1)
FIELD = Field(MIXED, [("a", "b")], inference="exact")

CASES: dict[type, list[Callable[[], Any]]] = {
    Marginals: [
        lambda: Marginals(MIXED, [("a",), ("a", "b"), ()]),
        lambda: Marginals(TOGETHER, [("a in groups",), ("b", "a in groups"), ()]),
    ],
    CellSums: [lambda: CellSums(MIXED, ["b", "a"], RNG.normal(size=(2, 3, 2)) * 40, grid=0.5)],
    Distances: [
        lambda: Distances(BITS, PAIRS, NEAR),
        lambda: Distances(BITS, PAIRS, NEAR, finer=4),
        lambda: Distances(TOGETHER, [("b", "a in groups")], NEAR[:1]),
    ],
    Interactions: [
        lambda: Interactions(MIXED, [("a", "b")]),
        lambda: Interactions(BITS, [("a", "b"), ("a", "b", "c")]),
        lambda: Interactions(THREES, [THREES.names[:2]]),
        lambda: Interactions(TOGETHER, [TOGETHER.names, ("a in groups",)]),
    ],
    TotalDistance: [
        lambda: TotalDistance(BITS, PAIRS, NEAR, finer=2),
        lambda: TotalDistance(BITS, PAIRS, NEAR, weights=[3, 1], finer=2),
    ],
    ParitySums: [
        lambda: ParitySums(BITS, [("a",), ("b", "c"), ("a", "b", "c"), ()]),
        lambda: ParitySums(BITS, [("a",), ("b",), ("c",), ("a", "b"), ("a", "c"), ("b", "c")]),
    ],
    Histograms: [lambda: Histograms(GRID, ["x"])],
    TripleSums: [lambda: TripleSums(BITS)],
    FourSums: [lambda: FourSums(FOUR, [(0, 1), (0, 2)], [(2, 3), (1, 3)])],
    LogLikelihood: [lambda: LogLikelihood(MIXED, [(("a", "b"), RNG.normal(size=(3, 2)) * 9)], 3.0, -4.0)],
    RightPredictions: [
        lambda: RightPredictions(
            MIXED, "b", [(("a", "b"), np.array([[2, 1], [0, 5], [3, 3]])), (("b",), np.array([0, 1]))]
        )
    ],
    SpinGradients: [spins, lambda: spins(0)],
    LevelGradients: [lambda: levels(LevelGradients), lambda: levels(LevelGradients, MIXED)],
    GroupedLevelGradients: [lambda: levels(GroupedLevelGradients)],
    ValueGradients: [lambda: ValueGradients(MIXED, "b", {"a": [-2, 0, 2]}, 2, np.array([[7, -3]]), 0.1)],
    LinearGradients: [values(slope) for slope in (falling, rising, hump, climbing, steep)],
    _CellSums: [lambda: _CellSums(cells())],
    ClippedGradients: [
        lambda: ClippedGradients(FIELD, FIELD.uniform(), 0.4),
        lambda: ClippedGradients(FIELD, FIELD.uniform(), 5.0),
        lambda: ClippedGradients(TIED, TIED.uniform() / TIED.strength, 0.4),
        lambda: ClippedGradients(TIED, TIED.uniform() / TIED.strength, 9.0),
    ],
    PenalisedFit: [lambda: PenalisedFit(Domain.of({"a": 2}), [("a",)], 1.5)],
    ChainTables: [
        lambda: ChainTables(BITS),
        lambda: ChainTables(BITS, 2),
        lambda: ChainTables(BITS, tied=False),
        lambda: ChainTables(Domain.of({"a": 2, "b": 2}), 1),
    ],
    LargestSum: [lambda: LargestSum(Marginals(MIXED, [("a",), ("a", "b")]))],
    WorstTable: [lambda: WorstTable(Distances(BITS, PAIRS, NEAR, finer=3))],
    WorthMeasuring: [lambda: WorthMeasuring(Distances(BITS, PAIRS, NEAR), [3, -2])],
    ParityResiduals: [lambda: ParityResiduals(BITS, [("a", "b"), ("c",), ("a", "b", "c")], np.array([1.4, -2.0, 0.0]))],
    PartnerResiduals: [
        lambda: PartnerResiduals(BITS, np.full((3, 3), 1.2)),
        lambda: PartnerResiduals(BITS, np.full((3, 3), -2.0), leave_out=[(0, 1)], active=[0, 2]),
    ],
    SignedResiduals: [lambda: SignedResiduals(Marginals(MIXED, [("a", "b")]), np.arange(6) - 1.5)],
    Dependence: [lambda: Dependence(BITS, [("a", ("b",)), ("c", ("a", "b"))], [0, 2])],
    SteepestVertex: [
        lambda: SteepestVertex(spins()),
        lambda: SteepestVertex(spins(), adaptive=False),
        lambda: SteepestVertex(levels(LevelGradients)),
        lambda: SteepestVertex(LevelGradients(THREES, np.zeros(LevelGradients.shape_for(THREES), dtype=int), 0.3)),
    ],
    SteepestGroup: [lambda: SteepestGroup(levels(GroupedLevelGradients))],
    CellScores: [lambda: CellScores(cells()), lambda: CellScores(cells(1), adaptive=False)],
    LinearScores: [linear(s, adaptive=a) for s in (rising, hump, climbing, steep) for a in (True, False)],
    CorrelationTest: [lambda: CorrelationTest(BITS, [("a", "b"), ("a", "b", "c")], 0.25)],
    SpinTest: [
        lambda: SpinTest(BITS, 0.25),
        lambda: SpinTest(BITS, 0.4, "conditional"),
        lambda: SpinTest(FOUR, 0.3, enough=2),
    ],
    DependenceTest: [lambda: DependenceTest(BITS, [0.3, 0.2, 0.1]), lambda: DependenceTest(MIXED, [0.3])],
}


def test_every_kind_of_question_has_its_neighbours_tried() -> None:
    assert every_kind() == set(CASES), "give every kind of query, score and test a case here, with awkward parameters"


# -- all neighbours ----------------------------------------------------------------------------------------------------

Rows = tuple[int, ...]  # which record each row is, in the order of all possible records


@lru_cache(maxsize=16)
def records_of(domain: Domain) -> np.ndarray:
    return np.array(list(product(*map(range, domain.shape))), dtype=np.uint8)


def of_the_rows(domain: Domain) -> Domain:
    return Domain(tuple(a if a.groups is None else a.groups.of for a in domain.attributes))


def table(domain: Domain, rows: Rows) -> MemoryTable:
    codes = records_of(domain)[list(rows)]
    return MemoryTable(domain, [codes[:, i] for i in range(len(domain))], threads=1)


def up_to(domain: Domain, most: int, records: int) -> list[Rows]:
    """All tables of up to so many rows, of the first so many records."""
    some = range(min(records, len(records_of(domain))))
    return [rows for size in range(most + 1) for rows in combinations_with_replacement(some, size)]


def bases(domain: Domain, *, large: bool) -> list[Rows]:
    """What stands beside the unit: nothing, one or two rows, and a few larger tables."""
    cells = len(records_of(domain))
    rng = np.random.default_rng(cells)
    # Where nearly all records are alike, one that is not weighs most.
    more: list[Rows] = [(0,) * 30, (*(0,) * 30, cells - 1), (*(0,) * 30, 0, cells // 2, cells - 1)]
    more += [tuple(sorted(rng.integers(0, cells, size).tolist())) for size in (5, 9, 20, 61)]
    some = up_to(domain, 2 if large else 1, cells)
    return [*(some if cells <= 9 else some[:20]), *more]


def parts_of(asked: Any, rows: MemoryTable, unit: PrivacyUnit) -> list[np.ndarray]:
    if isinstance(asked, StabilityTest):
        return [np.asarray(asked.levels(rows.sum, unit), dtype=object)]
    if isinstance(asked, Score):
        scores = np.asarray(asked.scores(rows.sum(asked.query)), dtype=object)
        sizes = asked.groups if isinstance(asked, GroupedScore) else (len(scores),)
        return np.split(scores, np.cumsum(sizes)[:-1])
    return [np.asarray(s, dtype=object).reshape(-1) for s in rows.sum(asked)]


def changes(seen: list[list[np.ndarray]], unit: PrivacyUnit) -> Iterator[list[np.ndarray]]:
    """By part, how far the sums of the tables in ``seen`` (the first without the unit) are from their neighbours'."""
    stacked = [np.stack([one[part] for one in seen]) for part in range(len(seen[0]))]
    for first in range(len(seen) if unit.relation == "replace-one" else 1):
        yield [np.abs(values - values[first]) for values in stacked]


def worst(asked: Any, domain: Domain, unit: PrivacyUnit, *, large: bool) -> str:
    """The first neighbours that move it further than it says; empty when none do."""
    units = up_to(domain, unit.max_rows, len(records_of(domain)) if large or unit.max_rows == 1 else 5)
    for base in bases(domain, large=large):
        seen = [parts_of(asked, table(domain, (*base, *rows)), unit) for rows in units]
        for moved in changes(seen, unit):
            found = beyond(asked, moved, unit)
            if found:
                return f"{found}, beside {len(base)} rows"
    return ""


def beyond(asked: Any, moved: list[np.ndarray], unit: PrivacyUnit) -> str:
    """``moved``: by part, one row for each neighbour."""
    if isinstance(asked, StabilityTest):
        return f"a level moved by {moved[0].max()}" if moved[0].max() > 1 else ""
    if isinstance(asked, GroupedScore):
        linfs = asked.linfs(unit)
        of_group = np.array([m.max(axis=1) / linf for m, linf in zip(moved, linfs, strict=True)], dtype=float)
        linear, squared = asked.joint(unit)
        if of_group.max() > 1 or any(linf > asked.linf(unit) for linf in linfs):
            return f"a group moved by {of_group.max()} of what it says"
        if of_group.sum(axis=0).max() > linear + 1e-9 or (of_group**2).sum(axis=0).max() > squared + 1e-9:
            return f"all groups together moved by {of_group.sum(axis=0).max()}, declared is {linear}, {squared}"
        return ""
    if isinstance(asked, Score):
        return f"a score moved by {moved[0].max()}" if moved[0].max() > asked.linf(unit) else ""
    for part, size, declared in zip(asked.parts, moved, asked.sensitivity(unit), strict=True):
        norms = {
            "L1": (size.sum(axis=1).max(), declared.l1),
            "L2 squared": ((size * size).sum(axis=1).max(), declared.l2_squared),
            "L∞": (size.max(), declared.linf),
            "the number of cells": ((size > 0).sum(axis=1).max(), declared.l0),
        }
        for name, (seen, said) in norms.items():
            if seen > said:
                return f"{name} of {part.label!r} moved by {seen}, declared is {said}"
    return ""


PLAIN = [(kind, i) for kind in CASES for i in range(len(CASES[kind]))]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(("kind", "case"), PLAIN, ids=lambda v: getattr(v, "__name__", str(v)))
def test_no_neighbour_moves_it_further_than_it_says(kind: type, case: int, unit: str) -> None:
    asked = CASES[kind][case]()
    assert type(asked) is kind
    domain = of_the_rows((asked.query if isinstance(asked, Score) or hasattr(asked, "query") else asked).domain)
    assert worst(asked, domain, UNITS[unit], large=False) == ""


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(("kind", "case"), PLAIN, ids=lambda v: getattr(v, "__name__", str(v)))
def test_no_neighbour_of_larger_tables_does(kind: type, case: int, unit: str) -> None:
    asked = CASES[kind][case]()
    domain = of_the_rows((asked.query if isinstance(asked, Score) or hasattr(asked, "query") else asked).domain)
    assert worst(asked, domain, UNITS[unit], large=True) == ""


@pytest.mark.parametrize("most", [1, 2, 3, 5])
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("tied", [True, False])
def test_no_person_weighs_more_than_one_window(tied: bool, relation: Any, most: int) -> None:
    """Windows of weight 1/K: all walks of up to six places by one person, beside another's."""
    place = Attribute.categorical("place", ["hall", "desk"])
    unit = PrivacyUnit("who", max_rows=most, relation=relation)
    seen = []
    walks = [w for length in range(7) for w in product(["hall", "desk"], repeat=length)]
    for walk in [*walks, ["hall"] * 9, ["desk"] * 12, ["hall", "desk", "desk"] * 3]:
        who = ["x", "x", "x", *["y"] * len(walk)]
        rows = {"who": who, "when": list(range(len(who))), "place": ["hall", "desk", "desk", *walk]}
        made = windows(rows, place, person="who", time="when", length=3)
        asked = ChainTables(made.domain, tied=tied, scaled=True)
        seen.append([np.asarray(s, dtype=object).reshape(-1) for s in made.clip(most, b"k" * 16).sum(asked)])
    for moved in changes(seen, unit):
        assert beyond(asked, moved, unit) == ""


def test_a_sensitivity_that_is_too_small_is_found() -> None:
    class Half(Marginals):
        def sensitivity(self, unit: PrivacyUnit) -> Any:
            return Query.sensitivity(self, PrivacyUnit())

    class LowEnd(LinearGradients):
        largest_terms = ValueGradients.largest_terms

    class TooFew(DependenceTest):
        def levels(self, ask: Any, unit: PrivacyUnit) -> Any:
            return 2 * super().levels(ask, unit)

    class Joint(SteepestVertex):
        def joint(self, unit: PrivacyUnit) -> Any:
            return tuple(x / 2 for x in super().joint(unit))

    planted: list[tuple[Any, Domain, str]] = [
        (Half(MIXED, [("a",)]), MIXED, "person, add-remove"),
        (LowEnd(rising, 1.0, MIXED, "b", {"a": [-2, 0, 2]}, 2, np.array([[7, -3]]), 0.1), MIXED, "row, add-remove"),
        (TooFew(MIXED, [0.3]), MIXED, "row, replace-one"),
        (Joint(spins(0)), BITS, "row, add-remove"),
    ]
    for asked, domain, unit in planted:
        assert worst(asked, domain, UNITS[unit], large=False) != "", type(asked).__name__


# -- numbers that are too large, and sums that are kept ----------------------------------------------------------------


def test_numbers_that_would_wrap_around_are_refused() -> None:
    """Beyond 64 bits a score wraps around, and one record moves it by far more than is said."""
    huge = [np.full((2, 2), 2.0**62), np.zeros((2, 2))]
    for make in (
        lambda: Distances(BITS, PAIRS, huge),
        lambda: TotalDistance(BITS, PAIRS, [np.full((2, 2), 2.0**58)] * 2),
        lambda: TotalDistance(BITS, PAIRS, [np.full((2, 2), 2.0**50)] * 2, weights=[300, 1]),
        lambda: ParityResiduals(BITS, [("a",)], np.array([2.0**61])),
        lambda: SignedResiduals(Marginals(MIXED, [("a",)]), np.array([0.0, np.nan, 0.0])),
        lambda: WorthMeasuring(Distances(BITS, PAIRS, NEAR), [2**61, 0]),
    ):
        with pytest.raises(InputError):
            make()
    # Dependence multiplies counts with counts: of 2³⁵ records, exactly.
    counts = np.array([[2**34, 1], [0, 2**34 - 1]])

    def ask(query: Any) -> list[np.ndarray]:
        return [counts.astype(np.int64)]

    test = DependenceTest(Domain.of({"a": 2, "b": 2}), [0.3])
    n = int(counts.sum())
    rows, columns = [int(x) for x in counts.sum(axis=1)], [int(x) for x in counts.sum(axis=0)]
    gap = sum(abs(n * int(counts[i, j]) - rows[i] * columns[j]) for i in (0, 1) for j in (0, 1))
    threshold = test.thresholds[0]
    expected = (1024 * gap // n - threshold * n - 1) // (1024 * 4 + threshold)
    assert int(test.levels(ask, PrivacyUnit())[0]) == expected


@pytest.mark.parametrize("unit", UNITS)
def test_a_loss_beyond_its_bound_is_clipped(unit: str) -> None:
    """Whatever the function gives: the sensitivity that is not adaptive is the bound."""
    ball = Polytope(np.array([[1, 0], [-1, 2], [0, -3]]), 1.0)
    wild = np.array([[5.0, -90.0], [0.1, np.inf], [-np.inf, 3.0], [np.nan, 1.0], [1e300, -1e300], [0.0, 0.0]])
    problem = Loss(["a", "b"], lambda w, records: wild, 1.0).at(MIXED, ball, np.zeros(2, dtype=np.int64), 1.0)
    for adaptive in (True, False):
        score = problem.score(adaptive=adaptive)
        assert worst(score, MIXED, UNITS[unit], large=False) == ""
        assert np.abs(score.query.units).max() <= 1024  # type: ignore[attr-defined]
    units = problem.score(adaptive=True).query.units  # type: ignore[attr-defined]
    assert units[0].tolist() == [-341, 1024, -1024]  # of (1, −1), the gradient that is left of (5, −90)


def test_sums_are_not_kept_for_questions_that_change() -> None:
    """A table keeps the sums of a question that is asked again, and of no other; nobody can change what it keeps."""

    class Moving(Marginals):
        times = 1

        def combine(self, counts: Any) -> Any:
            return tuple(self.times * c for c in counts)

    rows = table(MIXED, (0, 0, 1))
    moving = Moving(MIXED, [("a", "b")])
    assert rows.sum(moving)[0].sum() == 3
    moving.times = 5
    assert rows.sum(moving)[0].sum() == 15
    near, far = (Distances(MIXED, [("a",)], [np.array(e)]) for e in ([3.0, 0, 0], [0.0, 0, 9]))
    assert near.asked_again
    kept = rows.sum(near)[0]
    assert int(kept[0]) == 0
    kept += 7
    assert int(rows.sum(near)[0][0]) == 0
    assert int(rows.sum(far)[0][0]) == 12
    assert int(rows.sum(near)[0][0]) == 0
    (first, second) = rows.split(2, b"k" * 16)
    parts = [int(part.sum(near)[0][0]) for part in (first, second)]
    assert parts == [int(np.abs(p.count([("a",)])[0] - [3, 0, 0]).sum()) for p in (first, second)]
    assert sum(parts) == 3


def test_rows_at_the_same_time_have_an_order_of_their_own() -> None:
    """Which row stands first in a file must not decide who went where."""
    place = Attribute.categorical("place", ["hall", "desk"])
    rows = {"who": ["x"] * 4, "when": [1, 1, 2, 2], "place": ["hall", "desk", "desk", "desk"]}
    turned = {name: values[::-1] for name, values in rows.items()}
    made = [windows(r, place, person="who", time="when", length=2) for r in (rows, turned)]
    one, other = (m.count([("t1", "t2")])[0].tolist() for m in made)
    assert one == other
