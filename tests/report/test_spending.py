"""Recorded = run: what report, card and ledger say of a budget is what the entries of the account say, by the names of
the steps, and no part of it is counted twice."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction

import pytest

from discreet import ZCDP, ApproxDP, Curator, Domain, Marginals, PrivacyUnit, PureDP, encode
from discreet.errors import BudgetError
from discreet.learn.procedure import Procedure, Whole
from discreet.methods import METHODS
from discreet.papers.two_stage import TwoStageNetwork
from discreet.privacy import requests
from discreet.privacy.budget import Budget, part_of
from discreet.privacy.queries.distances import Distances, WorstTable
from discreet.privacy.queries.edge_tests import CorrelationTest
from discreet.privacy.queries.gradients import SpinGradients
from discreet.privacy.queries.parities import ParitySums
from discreet.privacy.query import Query, Score
from discreet.privacy.requests import Measure, Select, SelectEach
from discreet.privacy.stability import StabilityTest
from discreet.report.spending import describe_steps, portions
from discreet.spec import Spec

DOMAIN = Domain.of({name: ["no", "yes"] for name in "abc"})
ROWS = {name: ["no", "yes"] * 20 for name in "abc"}
GRAPH = {"b": ["a"], "c": ["a"]}
PURE, CONCENTRATED, APPROXIMATE = PureDP(1), ZCDP(Fraction(1, 2)), ApproxDP(1, "1e-6")


def curator_of(budget: Budget, **more: object) -> Curator:
    return Curator(encode(ROWS, DOMAIN), budget=budget, **more)  # type: ignore[arg-type]


def tables(*cliques: tuple[str, ...]) -> Marginals:
    return Marginals(DOMAIN, cliques)


def run(procedure: Procedure) -> dict:
    with curator_of(procedure.budget) as curator:
        return dict(procedure.run(curator).release)


def composed(budget: Budget) -> Procedure:
    whole = Whole(DOMAIN, PrivacyUnit(), budget)
    count, choose, rest = budget.split([1, 4, 15])

    def chosen(released):
        each = choose.split([1] * 4)
        for share in each:
            yield Select(share, WorstTable(Distances(DOMAIN, ["a", "b"], [[20, 20], [20, 20]])))
        return {"best": "a"}

    steps = (
        whole.count(count),
        whole.later("a search", choose, chosen, "selections"),
        whole.measure("what was found", Measure(rest, tables(("a", "b"), ("c",)))),
    )
    return Procedure("composed", whole, steps)


def sampled(budget: Budget) -> Procedure:
    whole = Whole(DOMAIN, PrivacyUnit(), budget)
    first, second = budget.scaled(Fraction(1, 5)), budget.scaled(Fraction(4, 5))  # type: ignore[attr-defined]

    def inside(released):
        for share, name in zip(first.split([1, 1]), "ab", strict=True):  # a pure sample may spend more than that
            yield Measure(share, tables((name,)))

    sample = replace(whole.later("a look at a sample", first, inside, "laplace", kept=False), rate=Fraction(1, 4))
    return Procedure("sampled", whole, (sample, whole.measure("tables", Measure(second, tables(("a", "b"))))))


def in_sequence() -> Procedure:
    whole = Whole(DOMAIN, PrivacyUnit(), APPROXIMATE)
    few, rest = PureDP("1/50"), ApproxDP("49/50", "1e-6")

    def asks(released):
        yield requests.TestStability(rest, CorrelationTest(DOMAIN, [("a", "b"), ("b", "c")], 0.2))

    steps = (whole.count(few), whole.later("distance to another graph", rest, asks, "laplace"))
    return Procedure("in sequence", whole, steps, composition="in sequence")


def in_blocks(budget: Budget) -> Procedure:
    whole = Whole(DOMAIN, PrivacyUnit(), budget)

    def asks(released):
        shares = budget.split([1] * 3)
        gradients = SpinGradients(DOMAIN, [("a",), ("b",), ("c",), ()], [[0] * 4] * 3, 0.1)
        for share in shares:
            yield SelectEach(share, gradients.score(adaptive=True))

    first = replace(whole.later("regressions", budget, asks, "selections"), block=0)
    second = whole.measure("parities", Measure(budget, ParitySums(DOMAIN, [("a", "b"), ("a", "b", "c")])))
    return Procedure("in blocks", whole, (first, replace(second, block=1)), composition="in blocks")


ALL: dict[str, Callable[[], Procedure]] = {
    "composed, pure": lambda: composed(PURE),
    "composed, zCDP": lambda: composed(CONCENTRATED),
    "composed, approximate": lambda: composed(APPROXIMATE),
    "sampled, pure": lambda: sampled(PURE),
    "sampled, zCDP": lambda: sampled(CONCENTRATED),
    "in sequence": in_sequence,
    "in blocks, pure": lambda: in_blocks(PURE),
    "in blocks, zCDP": lambda: in_blocks(CONCENTRATED),
    "two stages, pure": lambda: TwoStageNetwork(GRAPH).plan(DOMAIN, PrivacyUnit(), PURE),
    "two stages, zCDP": lambda: TwoStageNetwork(GRAPH).plan(DOMAIN, PrivacyUnit(), CONCENTRATED),
    "two stages, approximate": lambda: TwoStageNetwork(GRAPH).plan(DOMAIN, PrivacyUnit(), APPROXIMATE),
}


@pytest.mark.parametrize("name", ALL)
def test_the_parts_are_those_of_the_plan(name):
    procedure = ALL[name]()
    card = run(procedure)
    found = portions(card)
    assert sum(p.part for p in found) == pytest.approx(1, abs=1e-3)
    assert sum(p.part for p in found) <= 1 + 1e-9
    if procedure.composition == "in blocks":
        assert [p.what for p in found] == ["regressions and parities, each on its own records"]
        return
    planned = {step.name: float(part_of(step.share, procedure.budget)) for step in procedure.steps}
    assert {p.what: p.part for p in found if p.what != "not used"} == pytest.approx(planned, rel=1e-6)


@pytest.mark.parametrize("name", ALL)
def test_the_ledger_tells_the_steps_by_their_names(name):
    procedure = ALL[name]()
    text = describe_steps(run(procedure)["steps"])
    at = [text.index(step.name) for step in procedure.steps]
    assert at == sorted(at)
    assert not [word for word in ("Marginals", "Gradients", "Vertex", "Test", "None") if word in text], text


# -- all methods -------------------------------------------------------------------------------------------------------


def learned(method) -> list[tuple[str, Spec]]:
    options: dict = {"graph": {"b": ["a"], "c": ["b"]}} if method.needs == "graph" else {}
    options |= {"cliques": [["a", "b"], ["b", "c"]]} if method.needs == "cliques" else {}
    options |= {name: {"order": 3, "min_weight": 0.4}.get(name, 1) for name in method.demands}
    more = [{"halves": True}] if "halves" in method.options else []
    return [(f"{method.family} {method.name} {extra}", Spec(method.family, method.name, options | extra))
            for extra in ({}, *more)]  # fmt: skip


SPECS = {name: spec for method in METHODS for name, spec in learned(method)}


@pytest.mark.crossed
@pytest.mark.parametrize("budget", [PURE, CONCENTRATED, APPROXIMATE], ids=["pure", "zCDP", "approximate"])
@pytest.mark.parametrize("name", SPECS)
def test_every_method_tells_its_own_steps_and_shares(name, budget):
    learner = SPECS[name].learner()
    try:
        procedure = learner.plan(DOMAIN, PrivacyUnit(), budget)
    except BudgetError:
        return  # tests of stability need a δ, and some others none
    card = run(procedure)
    found = portions(card)
    assert sum(p.part for p in found) == pytest.approx(1, abs=1e-3)
    text = describe_steps(card["steps"])
    known = {str(facts["step"]) for facts in card["steps"] if "step" in facts}
    assert known <= {step.name for step in procedure.steps}, "nothing is asked outside of the steps"
    assert all(step in text for step in known)
    if procedure.composition == "in blocks":
        assert len(found) == 1 and all(step in found[0].what for step in known)
        return
    planned = {step.name: float(part_of(step.share, procedure.budget)) for step in procedure.steps}
    for portion in found:
        if portion.what != "not used":
            assert portion.part <= planned[portion.what] * (1 + 1e-9), "no more than the plan says"


def test_what_was_asked_in_words():
    assert describe_steps(run(composed(PURE))["steps"]) == (
        "number of records; a search: 4 choices of a table; what was found: tables of a × b, c"
    )
    assert describe_steps(run(sampled(PURE))["steps"]) == (
        "a look at a sample: a random sample (table of a; table of b); tables: table of a × b"
    )
    assert describe_steps(run(in_sequence())["steps"]) == (
        "number of records; distance to another graph: 1 test whether the graph is far from changing"
    )
    assert describe_steps(run(in_blocks(PURE))["steps"]) == (
        "2 disjoint blocks (regressions: 3 steps of the regressions; parities: sum of parities)"
    )


def test_a_step_is_taken_apart_into_its_tables():
    procedure = composed(PURE)
    with curator_of(PURE) as curator:
        released = procedure.run(curator)
    found = portions(released.release, released)
    assert [p.what for p in found] == ["number of records", "a search", "a × b", "c"]
    assert [p.part for p in found] == pytest.approx([0.05, 0.2, 0.375, 0.375])


def test_equal_labels_are_not_taken_for_each_other():
    with curator_of(PURE) as curator:
        first = curator.measure(tables(("a",)), PureDP("1/4"))
        second = curator.measure(tables(("a",), ("b",)), PureDP("3/4"))
        both = type(first)([*first, *second], curator.statement())
    found = portions(both.release, both)
    assert [p.what for p in found] == ["table of a", "tables of a, b"]
    assert [p.part for p in found] == pytest.approx([0.25, 0.75])


# -- curators that are asked directly ----------------------------------------------------------------------------------


class Own(Query):
    """Somebody's own question, without a word about what it is called."""

    def __init__(self, query: Query) -> None:
        super().__init__(query.domain)
        self.parts, self.cliques = query.parts, query.cliques  # type: ignore[misc, assignment]
        self.combine, self.row_sensitivity = query.combine, query.row_sensitivity  # type: ignore[method-assign]

    parts, cliques = (), None  # type: ignore[assignment]

    def row_sensitivity(self, relation):
        raise NotImplementedError


def ask_everything(curator: Curator, share: Callable[[int], Budget]) -> None:
    worst = WorstTable(Distances(DOMAIN, ["a", "b"], [[1, 2], [3, 4]]))
    curator.measure(Own(tables(("a",))), share(1))
    for _ in range(2):
        curator.select(worst, share(1))
    one, two = curator.partition(2, share(2))
    one.measure(tables(("a",)), None)
    two.measure(tables(("b",)), None)
    sample = curator.subsample("1/2", share(2))
    for block in sample.partition(2):
        block.measure(tables(("c",)))


@pytest.mark.parametrize("budget", [PURE, CONCENTRATED], ids=str)
def test_nothing_is_counted_twice(budget):
    with curator_of(budget) as curator:
        ask_everything(curator, lambda n: budget.scaled(Fraction(n, 10)))
        card = curator.statement()
    found = portions(card)
    assert [p.part for p in found] == pytest.approx([0.1, 0.2, 0.2, 0.2, 0.3])
    assert [p.what for p in found] == [
        "sum of a",
        "2 choices of a table",
        "2 disjoint blocks (table of a; table of b)",
        "a random sample (2 disjoint blocks (2 × table of c))",
        "not used",
    ]
    assert describe_steps(card["steps"]).startswith("sum of a; 2 choices of a table; 2 disjoint blocks (table of a; ")


def test_entries_say_where_they_belong():
    """With the number of the entry that made their place, even when places are asked in turn."""

    def entry(share: str, **more: object) -> dict:
        return {"share": PURE.scaled(Fraction(share)).to_dict(), **more}

    steps = [
        entry("1", query="in sequence"),
        entry("1/4", **{"in": "sequence", "of": 1}, step="a count", parts=["number of records"]),
        entry("1/4", **{"in": "sequence", "of": 1}, step="a sample", query="subsample"),
        entry("1/2", **{"in": "block or sample", "of": 3}, step="a sample", query="in sequence"),
        entry("1/2", **{"in": "sequence", "of": 4}, step="a sample", query="Marginals", parts=["x"]),
        entry("1/2", **{"in": "sequence", "of": 1}, step="the rest", query="Marginals", parts=["y"]),
    ]
    found = portions({"budget": PURE.to_dict(), "steps": steps})
    assert [(p.what, p.part) for p in found] == [("a count", 0.25), ("a sample", 0.25), ("the rest", 0.5)]
    assert describe_steps(steps) == (
        "a count: the number of records; a sample: a random sample (marginals of x); the rest: marginals of y"
    )


def test_gaussian_steps_share_out_what_was_paid_for_them_together():
    half = ApproxDP("1/2", "5e-7")
    with curator_of(APPROXIMATE) as curator:
        within = curator.in_sequence()
        within.size(PureDP("1/2"))
        steps = within.in_gaussian(half)
        for share in half.to_gaussian().split([1, 3]):
            steps.measure(tables(("a",)), share)
        found = portions(curator.statement())
    assert [p.what for p in found] == ["the number of records", "2 × table of a"]
    assert [p.part for p in found] == pytest.approx([0.5, 0.5])


def test_many_small_shares_of_an_approximate_budget_stay_within_it():
    """Their ε add up to more than the whole: they compose in zCDP."""
    with curator_of(APPROXIMATE) as curator:
        for _ in range(60):
            curator.measure(tables(("a",)), PureDP("1/50"))
        found = portions(curator.statement())
    assert [p.what for p in found] == ["60 × table of a", "not used"]
    assert 0 < found[0].part <= 1 and sum(p.part for p in found) == pytest.approx(1)


# -- words -------------------------------------------------------------------------------------------------------------


def test_every_question_has_its_words():
    def below(kind):
        return {kind}.union(*map(below, kind.__subclasses__()))

    asked = {kind for root in (Query, Score, StabilityTest) for kind in below(root)}
    assert len(asked) > 15
    for kind in asked:
        one, several = kind.noun
        assert one and several and one != several and one.islower(), kind


def test_old_files_say_something_sensible():
    share = PURE.scaled(Fraction(1, 10)).to_dict()
    steps = [
        {"query": "Marginals", "parts": ["number of records"], "share": share},
        *[{"score": "SteepestVertex", "query": "SpinGradients", "share": share}] * 4,
        {"query": "Marginals", "parts": ["a", "b × c"], "share": share},
        {"query": "partition", "blocks": 2, "share": share},
        *[{"in": "block or sample", "query": "_CellSums", "parts": ["x"], "share": share}] * 2,
        {"in": "nowhere", "query": "Marginals", "parts": ["x"], "share": share},
        {},
    ]
    card = {"budget": PURE.to_dict(), "steps": steps[:-1]}
    assert [p.part for p in portions(card)] == pytest.approx([0.1, 0.4, 0.1, 0.1, 0.3])
    assert describe_steps(steps) == (
        "the number of records; 4 steepest vertex; marginals of a, b × c; 2 disjoint blocks (2 × cell sums of x); "
        "1 question"
    )
