"""Whatever is asked of rows under another schema than its own is refused by name, before a row is touched, for nothing.

A record with a level that a query does not foresee makes it fail, or moves it by more than it says. So every kind of
query, score and test is tried on tables that differ from its domain in one column that it uses.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from untouchable import Untouchable

import discreet
from discreet import open_table
from discreet.domain import Attribute, Domain
from discreet.errors import DiscreetError, InputError, SchemaError
from discreet.estimators import PrivateGraphicalModel
from discreet.factor import CliqueVector
from discreet.learn.fields.likelihood import Field
from discreet.learn.held_out import HeldOut
from discreet.learn.networks.search import Dependence
from discreet.learn.query_release.answers import GaussianAnswers
from discreet.learn.query_release.leader import PerturbedLeader
from discreet.learn.query_release.weights import MultiplicativeWeights
from discreet.learn.query_release.workload import Parities
from discreet.models.markov import MarkovRandomField
from discreet.papers.output_perturbation import PenalisedFit
from discreet.papers.psgd import ClippedGradients
from discreet.privacy.budget import ApproxDP, PureDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.ledger import Ledger
from discreet.privacy.queries.chains import ChainTables
from discreet.privacy.queries.descent import SampledRounds
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
from discreet.privacy.query import CellSums, GroupedScore, LargestSum, Marginals, Part, Query, Score
from discreet.privacy.stability import StabilityTest
from discreet.privacy.unit import PrivacyUnit, Sensitivity
from discreet.tables.base import Table
from discreet.tables.encode import encode
from discreet.tables.memory import MemoryTable

FOUR = Domain(tuple(Attribute.categorical(name, ["no", "yes"]) for name in "abcd"))
GRID = Domain((Attribute.from_dict("x", {"bins": "private", "range": [0, 9], "integer": True}),))
PAIR = Marginals(FOUR, [("a", "b")])
FIELD = Field(FOUR, [("a", "b"), ("c",)], inference="exact")
BALL = Polytope.l1_ball(2, 1.0)
BUDGET = ApproxDP(1, 1e-6)


def zeros(shape: Any) -> np.ndarray:
    return np.zeros(shape, dtype=np.int64)


def slope(margins: np.ndarray) -> np.ndarray:
    return -1 / (1 + np.exp(margins))


def linear() -> Any:
    return LinearLoss("b", {"a": [-1, 1]}, slope, 1.0).at(FOUR, BALL, zeros(2), 1.0)


def cells() -> Any:
    return Loss(["a", "b"], lambda w, records: np.ones((4, 2)), 1.0).at(FOUR, BALL, zeros(2), 1.0)


def spins() -> SpinGradients:
    return SpinGradients(FOUR, [*((n,) for n in FOUR.names), ()], zeros((4, 5)), 0.1)


def levels(kind: type[LevelGradients]) -> Any:
    return kind(FOUR, zeros(LevelGradients.shape_for(FOUR)), 0.1)


CASES: dict[type, Callable[[], Any]] = {
    Histograms: lambda: Histograms(GRID, ["x"]),
    Marginals: lambda: PAIR,
    CellSums: lambda: CellSums(FOUR, ["a"], np.ones((2, 1))),
    Distances: lambda: Distances(FOUR, [("a",), ("a", "b")], [np.zeros(2), np.ones((2, 2))]),
    Interactions: lambda: Interactions(FOUR, [("a", "b")]),
    ParitySums: lambda: ParitySums(FOUR, [("a",), ("a", "b", "c")]),
    TripleSums: lambda: TripleSums(FOUR),
    FourSums: lambda: FourSums(FOUR, [(0, 1)], [(2, 3)]),
    LogLikelihood: lambda: LogLikelihood(FOUR, [(("a", "b"), np.zeros((2, 2)))], 0.0),
    RightPredictions: lambda: RightPredictions(FOUR, "b", [(("a", "b"), np.zeros((2, 2), dtype=np.int64))]),
    SpinGradients: spins,
    LevelGradients: lambda: levels(LevelGradients),
    GroupedLevelGradients: lambda: levels(GroupedLevelGradients),
    ValueGradients: lambda: ValueGradients(FOUR, "b", {"a": [-1, 1]}, 1, zeros((1, 2)), 0.1),
    LinearGradients: lambda: LinearGradients(slope, 1.0, FOUR, "b", {"a": [-1, 1]}, 1, zeros((1, 2)), 0.1),
    _CellSums: lambda: _CellSums(cells()),
    ClippedGradients: lambda: ClippedGradients(FIELD, FIELD.uniform(), 1.0),
    PenalisedFit: lambda: PenalisedFit(FOUR, [("a", "b")], 100.0),
    ChainTables: lambda: ChainTables(FOUR),
    LargestSum: lambda: LargestSum(ParitySums(FOUR, [("a",), ("b",)])),
    WorstTable: lambda: WorstTable(Distances(FOUR, [("a", "b")], [np.zeros((2, 2))])),
    TotalDistance: lambda: TotalDistance(FOUR, [("a",), ("a", "b")], [np.zeros(2), np.ones((2, 2))]),
    WorthMeasuring: lambda: WorthMeasuring(Distances(FOUR, [("a", "b")], [np.ones((2, 2))]), [3]),
    ParityResiduals: lambda: ParityResiduals(FOUR, [("a", "b")], np.zeros(1)),
    PartnerResiduals: lambda: PartnerResiduals(FOUR, np.zeros((4, 4))),
    SignedResiduals: lambda: SignedResiduals(PAIR, np.zeros(4)),
    Dependence: lambda: Dependence(FOUR, [("a", ("b",))]),
    SteepestVertex: lambda: SteepestVertex(spins()),
    SteepestGroup: lambda: SteepestGroup(levels(GroupedLevelGradients)),
    CellScores: lambda: CellScores(cells()),
    LinearScores: lambda: linear().score(adaptive=True),
    CorrelationTest: lambda: CorrelationTest(FOUR, [("a", "b")], 0.25),
    SpinTest: lambda: SpinTest(FOUR, 0.25),
    DependenceTest: lambda: DependenceTest(FOUR, [0.3] * 6),
}


def every_kind() -> set[type]:
    """All classes of the library that rows can be asked for."""
    for module in pkgutil.walk_packages(discreet.__path__, "discreet."):
        if module.name != "discreet.__main__":
            importlib.import_module(module.name)
    found: set[type] = set()
    waiting: list[type] = [Query, Score, StabilityTest]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__module__.startswith("discreet.") and not inspect.isabstract(kind):
            found.add(kind)
    return found


def test_every_kind_of_question_has_a_case() -> None:
    assert every_kind() == set(CASES)


def ask(curator: Curator, asked: Any) -> Any:
    if isinstance(asked, Query):
        return curator.measure(asked)
    if isinstance(asked, StabilityTest):
        return curator.release_if_stable(asked)
    return curator.select_each(asked) if isinstance(asked, GroupedScore) else curator.select(asked)


def other_columns(own: Attribute) -> dict[str, Attribute]:
    """Columns of that name that are not the same; all have two levels or more."""
    if own.sought is not None:
        ends = {"shorter": [0, 8], "longer": [0, 10], "elsewhere": [1, 10], "one end": [-1, 9], "reals": [0, 9.5]}
        others = {how: {"bins": "private", "range": e, "integer": how != "reals"} for how, e in ends.items()}
        return {how: Attribute.from_dict(own.name, entry) for how, entry in others.items()}
    words = tuple(own.levels)
    another = "another" if isinstance(words[0], str) else 99
    return {
        "one level fewer": replace(own, levels=words[:-1], outside=""),
        "one level more": replace(own, levels=(*words, another), outside=""),
        "the same levels in another order": replace(own, levels=words[::-1], outside=""),
        "another level": replace(own, levels=(*words[:-1], another), outside=""),
        "numbers": Attribute.numeric(own.name, range(len(words) + 1)),
        "a level for absent values": replace(own, levels=words[:-1], missing=str(words[-1]), outside=""),
    }


def with_another(domain: Domain, other: Attribute) -> Domain:
    return Domain(tuple(other if a.name == other.name else a for a in domain.attributes))


def other_domains(asked: Any) -> Iterator[tuple[str, Domain]]:
    domain = {Histograms: GRID}.get(type(asked), FOUR)
    for used in asked.attributes:
        yield f"without {used.name}", Domain(tuple(a for a in domain.attributes if a.name != used.name))
        for how, other in other_columns(used).items():
            yield f"{used.name}: {how}", with_another(domain, other)


@pytest.mark.parametrize("kind", CASES, ids=lambda k: k.__name__)
def test_other_columns_are_refused_before_a_row_is_touched_and_for_nothing(kind: type) -> None:
    asked = CASES[kind]()
    assert type(asked) is kind
    tried = 0
    for how, domain in other_domains(asked):
        ledger = Ledger.in_memory(BUDGET)
        curator = Curator(Untouchable(domain), PrivacyUnit(), BUDGET, ledger)
        with pytest.raises(SchemaError, match=r"than the rows have|which the rows lack"):
            ask(curator, asked)
        with pytest.raises(SchemaError):  # also where nobody stands between
            Untouchable(domain).sum(asked if isinstance(asked, Query) else asked.query)
        assert curator.spent is None and not curator.steps, how
        assert ledger.spent is None, how
        tried += 1
    assert tried >= 6


@pytest.mark.parametrize("kind", CASES, ids=lambda k: k.__name__)
def test_its_own_columns_are_answered(kind: type) -> None:
    """Also in another order, among others that it does not use, and where somebody peeked at one."""
    asked = CASES[kind]()
    used = {a.name for a in asked.attributes}
    columns = [replace(a, peeked=frozenset({"levels"})) for a in (*FOUR.attributes, *GRID.attributes) if a.name in used]
    domain = Domain((Attribute.categorical("more", 5), *reversed(columns)))
    table = MemoryTable(domain, [zeros(3).astype(np.uint8)] * len(domain))
    ask(Curator(table, PrivacyUnit(), BUDGET), asked)


def test_true_is_not_the_word_for_one() -> None:
    numbers, flags = (Domain((Attribute.categorical("a", levels),)) for levels in ([0, 1], [False, True]))
    with pytest.raises(SchemaError, match="labels"):
        Untouchable(flags).sum(Marginals(numbers, ["a"]))


def test_no_table_has_a_way_around() -> None:
    every_kind()
    waiting, found = [Table], set()
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__module__.startswith("discreet."):
            found.add(kind.__name__)
            assert kind.sum is Table.sum and kind.require is Table.require, kind
    assert {"MemoryTable", "FileTable", "SparkTable"} <= found


def test_a_query_that_does_not_say_its_domain_is_refused() -> None:
    class Silent(Query):
        parts = (Part("rows", (1,)),)
        columns = ("a",)

        def __init__(self) -> None:
            pass

        def row_sensitivity(self, relation: Any) -> Any:
            return (Sensitivity(1, 1, 1, 1),)

    curator = Curator(Untouchable(FOUR), budget=BUDGET)
    with pytest.raises(InputError, match=r"Silent does not say its domain; call super\(\).__init__\(domain\)"):
        curator.measure(Silent())
    assert curator.spent is None


# -- whatever takes a model or a workload, and rows --------------------------------------------------------------------

THIRD = with_another(FOUR, Attribute.categorical("a", ["no", "yes", "maybe"]))
MODEL = MarkovRandomField(FOUR, CliqueVector(FOUR, {("a", "b", "c", "d"): np.zeros((2, 2, 2, 2))}))
PARITIES = Parities(FOUR, [("a", "b")])


def scored(curator: Curator) -> float:
    estimator = PrivateGraphicalModel(domain=FOUR)
    estimator.model_ = MODEL
    return estimator.score_private(curator)


ENTRIES: dict[str, Callable[[Curator], Any]] = {
    "held-out likelihood": lambda c: HeldOut(MODEL).fit(c),
    "score of an estimator": scored,
    "noise on every answer": lambda c: GaussianAnswers(PARITIES).fit(c),
    "multiplicative weights": lambda c: MultiplicativeWeights(PARITIES, 1).fit(c),
    "perturbed leader": lambda c: PerturbedLeader(PARITIES).fit(c),
    "a query, handed on by itself": lambda c: c.require(PARITIES.query),
}


@pytest.mark.parametrize("name", ENTRIES)
def test_entries_refuse_rows_of_another_schema(name: str) -> None:
    curator = Curator(Untouchable(THIRD), budget=BUDGET)
    with pytest.raises(SchemaError, match="made for another column 'a' than the rows have"):
        ENTRIES[name](curator)
    assert curator.spent is None


INSIDE: dict[str, Callable[[Curator], Any]] = {
    "block": lambda c: c.partition(2, PureDP(1))[0].measure(PARITIES.query),
    "sample": lambda c: c.subsample(0.5, PureDP(1)).measure(PARITIES.query),
    "sequence": lambda c: c.in_sequence(ApproxDP(1, 1e-6)).measure(PARITIES.query),
    "round": lambda c: SampledRounds(ApproxDP(1, 1e-6), 0.5, 1, lambda done: CASES[ClippedGradients]()).ask(c),
}


@pytest.mark.parametrize("name", INSIDE)
@pytest.mark.parametrize("value", ["no", "maybe"])
def test_parts_of_the_rows_refuse_whatever_they_hold(name: str, value: str) -> None:
    table = encode({"a": [value] * 3, **{n: ["no"] * 3 for n in "bcd"}}, THIRD)
    with pytest.raises(SchemaError, match="than the rows have"):
        INSIDE[name](Curator(table, budget=ApproxDP(20, 1e-5)))


@pytest.mark.parametrize("value", ["no", "maybe"])
def test_blocks_that_vote_abstain_whatever_they_hold(value: str) -> None:
    table = encode({"a": [value] * 30, **{n: ["no"] * 30 for n in "bcd"}}, THIRD)

    def learner(block: Curator) -> str:
        return str(block.measure(PARITIES.query)[0].counts.sum())

    assert Curator(table, budget=ApproxDP(50, 0.1)).vote(learner, 5).counts == {}


@pytest.mark.parametrize("value", ["no", "maybe"])
def test_files_and_memory_refuse_alike(value: str, tmp_path: Any) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("a,b,c,d\n" + f"{value},no,no,no\n" * 3)
    memory = encode({"a": [value] * 3, **{n: ["no"] * 3 for n in "bcd"}}, THIRD)
    with open_table(path, THIRD) as file:
        for table in (memory, file):
            for asked in (PARITIES.query, CASES[LogLikelihood](), CASES[LevelGradients]()):
                with pytest.raises(SchemaError):
                    table.sum(asked)
                with pytest.raises(SchemaError):
                    ExactCurator(table).measure(asked)


# -- rows that count 1/K ----------------------------------------------------------------------------------------------


def test_a_table_that_did_not_count_its_rows_is_not_asked_for_weights() -> None:
    rows = {"who": ["x"] * 8, **{name: ["no"] * 8 for name in FOUR.names}}
    unit = PrivacyUnit("who", max_rows=8)
    curator = Curator(encode(rows, FOUR, unit="who"), unit, BUDGET)
    scaled = ChainTables(FOUR, tied=False, scaled=True)
    for asked in (scaled, LargestSum(scaled)):
        with pytest.raises(InputError, match=r"only a table made by discreet\.tables\.windows"):
            ask(curator, asked)
    assert curator.spent is None


# -- queries whose public parts do not fit their own domain ------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda: SpinGradients(THIRD, [("b",)], zeros((4, 1)), 0.1),
        lambda: FourSums(THIRD, [(0, 1)], [(2, 3)]),
        lambda: TripleSums(THIRD),
        lambda: ParitySums(THIRD, [("a", "b")]),
        lambda: LogLikelihood(THIRD, [(("a", "b"), np.zeros((2, 2)))], 0.0),
        lambda: ClippedGradients(FIELD, FIELD.uniform()[:-1], 1.0),
    ],
)
def test_what_a_row_could_break_is_refused_when_it_is_made(make: Callable[[], Any]) -> None:
    with pytest.raises(DiscreetError, match=r"two levels|shape"):
        make()
