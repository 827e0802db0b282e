"""Levels are taken together where a column has too many of them for the records, and told apart again in the model."""

from itertools import combinations

import numpy as np
import pytest

from discreet import ZCDP, ApproxDP, Attribute, Curator, Domain, Ledger, PrivacyUnit, PureDP, Release, encode
from discreet.attribute import Groups
from discreet.audit import audit_replay, failures
from discreet.domain import in_groups
from discreet.errors import CostError, InputError, SchemaError
from discreet.learn.fields import distance_rounds, grouping
from discreet.learn.fields.adaptive import AdaptiveField
from discreet.learn.fields.distance_rounds import DistanceRounds
from discreet.learn.fields.grouping import groups_of, may_group, seen_in, shares_within, split_domain, together
from discreet.learn.fields.selection_rounds import SelectionRounds
from discreet.learn.transcript import Transcript
from discreet.measurement import Measurement, Measurements
from discreet.models import GroupedField, MarkovRandomField
from discreet.noise import Noise
from discreet.privacy.claims import contradictions
from discreet.privacy.curator import ExactCurator
from discreet.privacy.mechanisms import SecureGateway
from discreet.privacy.queries.distances import Distances, WorstTable, WorthMeasuring
from discreet.privacy.query import CellSums, LargestSum, Marginals
from discreet.privacy.requests import Select
from discreet.privacy.unit import PrivacyUnit as Unit
from discreet.schema import parse_schema
from discreet.spec import resolve

BUDGETS = [ZCDP("0.02"), ApproxDP(1, "1e-6"), PureDP(2)]
UNITS = [PrivacyUnit(), PrivacyUnit(relation="replace-one"), PrivacyUnit("person", max_rows=2)]
MANY = Domain.of({"age": 60, "wage": 50, "sex": 2, "job": [f"job {i}" for i in range(20)], "town": 3})


def people(n, seed=0):
    """Wages rise with age, within jobs that rise with age as well."""
    rng = np.random.default_rng(seed)
    age = np.clip(rng.normal(30, 14, n), 0, 59).astype(int)
    sex = rng.integers(0, 2, n)
    wage = np.clip(0.6 * age + 4 * sex + rng.normal(0, 5, n), 0, 49).astype(int)
    job = np.clip(age // 6 + rng.integers(0, 10, n), 0, 19)
    return {"age": age, "wage": wage, "sex": sex, "job": [f"job {i}" for i in job], "town": rng.integers(0, 3, n)}


def learned(rows, budget, *, unit=None, domain=MANY, groups=True, gateway=None, ledger=None):
    table = encode(rows, domain)
    with Curator(table, unit or PrivacyUnit(), budget, ledger, gateway=gateway) as curator:
        return resolve(domain, options={"groups": groups}).learn(curator)


def mean_distance(model, rows, sets):
    counts = ExactCurator(encode(rows, model.domain)).measure(Marginals(model.domain, sets))
    own = [m.values / m.values.sum() for m in counts]
    return np.mean([0.5 * np.abs(model.marginal(c).probabilities - t).sum() for c, t in zip(sets, own, strict=True)])


# -- groups ------------------------------------------------------------------------------------------------------------


def test_groups_are_checked():
    own = Attribute.categorical("a", 4)
    for codes in ((0, 1), (0, 0, 2, 2), (1, 1, 1, 1), (-1, 0, 0, 0), (0, 1, True, 1)):
        with pytest.raises(SchemaError, match="groups"):
            Groups(own, codes)
    groups = Groups(own, (0, 1, 1, 0))
    with pytest.raises(SchemaError, match="2 groups"):
        Attribute.categorical("b", 3, groups=groups)
    with pytest.raises(SchemaError, match="groups already"):
        Groups(Attribute.categorical("b", 2, groups=groups), (0, 1))
    column = Attribute.categorical("b", 2, groups=groups)
    assert Attribute.from_dict("b", column.to_dict()) == column
    for wrong in ({}, {"name": "a", "of": 3, "codes": [0]}, {"name": "a", "of": own.to_dict(), "codes": "0110"}):
        with pytest.raises(SchemaError):
            Attribute.from_dict("b", {"levels": [0, 1], "groups": wrong})


def test_a_file_makes_no_work_beyond_its_size():
    """Of groups a file may say any number, and that their levels are groups in turn, as often as it likes."""
    wild = {"name": "a", "of": {"levels": [0, 1]}, "codes": [0, 10**15]}
    with pytest.raises(SchemaError, match="numbered 0, 1"):
        Attribute.from_dict("b", {"levels": [0, 1], "groups": wild})
    deep = {"levels": [0]}
    for _ in range(5000):
        deep = {"levels": [0], "groups": {"name": "a", "of": deep, "codes": [0]}}
    with pytest.raises(SchemaError, match="groups already"):
        Attribute.from_dict("b", deep)


def test_groups_of_other_levels_than_those_of_the_column_are_refused():
    five = Attribute.categorical("age", 5)
    grouped = Attribute.categorical("age in groups", 2, groups=Groups(five, (0, 0, 1, 1, 1)))
    with pytest.raises(SchemaError, match="other levels than those that were taken together"):
        in_groups(MANY, [grouped])
    tables = [
        Measurement("age", np.ones(4, dtype=int), Noise("laplace", 1.0), Domain.of({"age": 4}), ("age",)),
        Measurement("groups", np.ones(2, dtype=int), Noise("laplace", 1.0), Domain((grouped,)), ("age in groups",)),
    ]
    with pytest.raises(SchemaError, match="other levels"):
        AdaptiveField().estimate(Measurements(tables, {"origin": "release"}))


@pytest.mark.parametrize("name", ["sex", "age"])
def test_groups_with_the_name_of_a_column_of_the_rows_are_refused_before_anything_is_spent(name):
    forged = Attribute.categorical(name, 6, groups=in_tens().groups)
    with Curator(encode(people(50), MANY), PrivacyUnit(), ZCDP(1)) as curator:
        with pytest.raises(SchemaError, match="declared twice"):
            curator.measure(Marginals(Domain((forged,)), [(name,)]))
        with pytest.raises(SchemaError, match="declared twice"):
            curator.select(LargestSum(Marginals(Domain((forged,)), [(name,)])))
        assert curator.spent is None


def test_a_schema_says_nothing_of_groups():
    with pytest.raises(SchemaError, match="takes levels together by itself"):
        parse_schema('[columns.a]\nlevels = [1, 2]\ngroups = {name = "b", of = {levels = [1, 2]}, codes = [0, 1]}')


def test_cells_are_added_up():
    rng = np.random.default_rng(0)
    table = rng.integers(0, 9, (4, 3, 5))
    own = [Groups(Attribute.categorical("x", k), codes) for k, codes in ((4, (1, 0, 1, 2)), (5, (0, 0, 1, 0, 1)))]
    found = together(table, {0: own[0], 2: own[1]})
    expected = np.zeros((3, 3, 2), dtype=int)
    for (i, j, k), count in np.ndenumerate(table):
        expected[own[0].codes[i], j, own[1].codes[k]] += count
    np.testing.assert_array_equal(found, expected)


def in_tens(name="age"):
    own = MANY[name]
    return Attribute.categorical(
        f"{name} in groups", own.size // 10, groups=Groups(own, tuple(i // 10 for i in range(own.size)))
    )


def test_a_column_and_its_groups_are_not_asked_for_together_nor_row_by_row():
    both = Domain((*MANY.attributes, in_tens()))
    rows = encode(people(50), MANY)
    with Curator(rows, PrivacyUnit(), ZCDP(1)) as curator:
        with pytest.raises(InputError, match="ask for them apart"):
            curator.measure(Marginals(both, [("age", "age in groups")]))
        assert curator.spent is None
        wider = Domain((in_tens("wage"),))
        other = encode({**people(50), "wage": [0] * 50}, Domain.of({**{n: MANY[n] for n in MANY}, "wage": 51}))
        with Curator(other, PrivacyUnit(), ZCDP(1)) as another, pytest.raises(SchemaError, match="another column"):
            another.measure(Marginals(wider, [wider.names]))
        with pytest.raises(InputError, match="no groups of levels"):
            curator.measure(RowByRow(both))
        assert curator.spent is None
    with ExactCurator(rows) as curator:
        (grouped,) = curator.measure(Marginals(both, [("age in groups", "sex")]))
        (fine,) = curator.measure(Marginals(both, [("age",)]))
        # Axes are in the order of the question's columns, which has the groups last.
        np.testing.assert_array_equal(grouped.counts.sum(0), fine.counts.reshape(6, 10).sum(1))
        sums = curator.measure(CellSums(both, ["age in groups"], np.arange(6)[:, None]))[0]
        assert sums.counts[0] == np.arange(6) @ grouped.counts.sum(0)


def test_choices_among_tables_of_groups_say_which_levels_are_taken_together():
    """The names of the tables are the same whatever the groups are."""

    def asked(codes):
        grouped = Attribute.categorical("a in groups", 2, groups=Groups(FIVE["a"], codes))
        domain = Domain((grouped, FIVE["c"]))
        distances = Distances(domain, [domain.names], [np.zeros(domain.shape)])
        return [WorstTable(distances), WorthMeasuring(distances, [1]), LargestSum(distances)]

    for one, other in zip(asked((0, 1, 1)), asked((0, 0, 1)), strict=True):
        assert one.candidates == other.candidates
        assert one.describe() != other.describe()
        assert Select(PureDP(1), one).describe() != Select(PureDP(1), other).describe()


class RowByRow(Marginals):
    cliques = None
    columns = ("age in groups",)

    def __init__(self, domain):
        super().__init__(domain, ["sex"])


# -- which levels are taken together -----------------------------------------------------------------------------------


def measured(domain, tables, scale=1.0):
    return Measurements(
        [
            Measurement(n, np.array(t), Noise("gaussian", scale), domain.project([n]), clique=(n,))
            for n, t in tables.items()
        ]
    )


def test_neighbours_are_taken_together_until_groups_are_large_enough():
    counts = [5, 5, 100, 3, 4, 3, 50, 1, 0, 2, 1, 1, 90]
    domain = Domain.of({"x": 13, "y": 2})
    tables = measured(domain, {"x": counts, "y": [130, 135]})
    noise = 100 / (grouping.SEEN * 265)  # for which a group has 10 records at least
    (codes,) = groups_of(domain, tables, noise).values()
    assert codes == [0, 0, 1, 2, 2, 2, 3, 3, 3, 3, 3, 3, 4]
    sums = np.bincount(codes, counts)
    assert sums.min() >= 10


def test_names_have_no_neighbours_and_numbers_their_own_order():
    names = Domain.of({"x": [f"n{i}" for i in range(13)]})
    counts = [1, 80, 2, 90, 1, 70, 3, 60, 1, 50, 2, 40, 0]
    codes = grouping._groups(np.array(counts, dtype=float), 9.0, grouping._in_order(names["x"]))
    assert np.bincount(codes, counts).min() >= 9 and max(codes) + 1 == 7
    heaps = Attribute.numeric("x", [0, 10, 20, 30], heaps=(5.0, 20.0), missing="?")
    assert grouping._in_order(heaps).tolist() == [0, 3, 1, 2, 4, 5]  # 20 before the bin that it begins
    assert grouping._in_order(names["x"]) is None


def test_few_levels_and_rules_keep_theirs():
    assert may_group(MANY) and not may_group(MANY.project(["sex", "town"]))
    ruled = Domain(MANY.attributes, ({"sex": "0", "town": "1"},))
    assert not may_group(ruled)


def test_tables_are_added_up_and_levels_share_their_group():
    grouped = in_groups(MANY, [in_tens()])
    tables = measured(MANY, {"age": [3, 1, *[0] * 8, *[7] * 50], "sex": [100, 254]}, scale=0.001)
    own, split = split_domain(Measurements([*tables, *measured(grouped, {"age in groups": [4, *[70] * 5]})]), MANY)
    assert own == MANY and split == grouped
    age, sex = seen_in(grouped, tables)
    assert age.clique == ("age in groups",) and age.counts.tolist() == [4, *[70] * 5] and sex.counts.sum() == 354
    assert age.noise.variance == pytest.approx(10 * tables[0].noise.variance)
    shares = shares_within(grouped, tables)["age"]
    np.testing.assert_allclose(shares[:10], [0.75, 0.25, *[0] * 8], atol=1e-3)
    np.testing.assert_allclose(shares[10:], 0.1)
    drowned = shares_within(grouped, measured(MANY, {"age": [3, 1, *[0] * 8, *[7] * 50]}, scale=50))["age"]
    np.testing.assert_allclose(drowned[:10], 0.1)  # what noise may have made is not believed


def test_groups_of_a_hostile_file_do_not_fill_the_memory():
    own = Attribute.categorical("a", 40_000)
    column = Attribute.categorical("g", 40_000, groups=Groups(own, tuple(range(40_000))))
    field = MarkovRandomField(Domain((column,)), {("g",): np.zeros(40_000)})
    model = GroupedField(Domain((own,)), field, {"a": np.ones(40_000)})
    with pytest.raises(CostError, match="too many"):
        model.marginal("a")


# -- a fit -------------------------------------------------------------------------------------------------------------


@pytest.mark.chance
def test_pairs_are_nearer_with_groups():
    rows, sets = people(8000), list(combinations(MANY.names, 2))
    errors = {
        groups: np.mean([mean_distance(learned(rows, BUDGETS[1], groups=groups).model, rows, sets) for _ in range(3)])
        for groups in (True, False)
    }
    assert errors[True] < 0.85 * errors[False]


@pytest.mark.parametrize("most_cells", [1000, 30])
@pytest.mark.parametrize("budget", [PureDP(1), ZCDP("0.5")], ids=str)
def test_tables_keep_within_their_cells_and_no_run_fails_where_none_does(budget, most_cells):
    """With many records no levels are taken together; with few cells even groups have too many of them for a pair."""
    rng = np.random.default_rng(0)
    first = rng.choice(40, 60_000, p=None if most_cells == 1000 else 1 / np.arange(1, 41) / sum(1 / np.arange(1, 41)))
    domain = Domain.of(dict.fromkeys("abc", 40))
    rows = {name: (first + rng.integers(0, 2, len(first))) % 40 for name in "abc"}
    with Curator(encode(rows, domain), PrivacyUnit(), budget) as curator:
        model = resolve(domain, options={"most_cells": most_cells}).learn(curator).model
    field = model.field if isinstance(model, GroupedField) else model
    assert all(field.domain.size(c) <= most_cells for c in field.cliques if len(c) > 1)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_a_release_with_groups_is_whole(budget, tmp_path):
    rows, ledger = people(8000), Ledger.in_memory(budget)
    found = learned(rows, budget, ledger=ledger)
    assert isinstance(found.model, GroupedField) and found.model.domain == MANY
    assert ledger.spent <= budget and contradictions(found.model.card) == []
    Release.of(found).save(tmp_path / "m.zip")
    again = Release.load(tmp_path / "m.zip")
    assert again.model == found.model and again.refit_agrees()
    assert again.certificate is not None and found.model.card["misfit"] < 1.5
    near = again.intervals(draws=8).marginal(["age", "wage"])
    assert near.estimate.shape == (60, 50)
    drawn = again.model.sample(500, random_state=0)
    assert drawn.domain == MANY and drawn.codes.shape == (500, 5)


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize(
    "purpose", [{"target": "sex"}, {"target": "age"}, {"workload": "age,wage,sex 2; sex,town"}], ids=str
)
def test_a_purpose_speaks_of_columns_and_not_of_groups(purpose, budget):
    spec = resolve(MANY, **purpose)
    with Curator(encode(people(5000), MANY), PrivacyUnit(), budget) as curator:
        found = spec.learn(curator)
    assert isinstance(found.model, GroupedField)


@pytest.mark.parametrize("columns", [["age", "sex"], ["age", "town", "sex"]])
def test_small_models_have_intervals_too(columns):
    domain = MANY.project(columns)
    rows = {n: people(5000)[n] for n in columns}
    release = Release.of(learned(rows, ApproxDP(1, "1e-6"), domain=domain))
    assert isinstance(release.model, GroupedField)
    assert release.intervals(draws=5).marginal(["age"]).estimate.shape == (60,)


def test_few_levels_know_nothing_of_groups():
    domain = MANY.project(["sex", "town"])
    rows = {n: people(2000)[n] for n in domain.names}
    plan = str(AdaptiveField().plan(domain, PrivacyUnit(), BUDGETS[0]))
    assert plan == str(AdaptiveField(groups=False).plan(domain, PrivacyUnit(), BUDGETS[0]))
    assert isinstance(learned(rows, BUDGETS[0], domain=domain).model, MarkovRandomField)


class Stopped(SecureGateway):
    def __init__(self, most):
        super().__init__()
        self.draws, self.most = 0, most

    def add_noise(self, call, values):
        if self.draws >= self.most:
            raise KeyboardInterrupt
        self.draws += 1
        return super().add_noise(call, values)


def test_a_stopped_run_goes_on_with_the_same_groups(tmp_path):
    rows, ledger = encode(people(3000), MANY), Ledger.in_memory(ZCDP("0.02"))
    procedure = AdaptiveField().plan(MANY, Unit(), ZCDP("0.02"))
    with (
        pytest.raises(KeyboardInterrupt),
        Curator(rows, Unit(), ZCDP("0.02"), ledger, gateway=Stopped(9)) as curator,
    ):
        procedure.run(curator, Transcript(tmp_path / "run"))
    gateway = Stopped(10**9)
    with Curator(rows, Unit(), ZCDP("0.02"), ledger, gateway=gateway) as curator:
        found = procedure.run(curator, Transcript(tmp_path / "run"))
    assert float(ledger.spent.rho) == pytest.approx(0.02)
    assert any(a.groups is not None for a in found.domain.attributes)


FIVE = Domain.of({"a": 3, "b": 3, "c": 2, "d": 2, "e": 2})
"""So many columns that (ε, δ) has Gaussian noise."""


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_nothing_depends_on_rows_but_through_noise(budget, unit, monkeypatch):
    """Columns of three levels, two of which are taken together."""
    monkeypatch.setattr(grouping, "MANY", 2)
    for rounds in (DistanceRounds, SelectionRounds):
        monkeypatch.setattr(rounds, "enough", 0.0)
    monkeypatch.setattr(SelectionRounds, "_rounds", lambda self, size: 2)
    monkeypatch.setattr(distance_rounds, "PLENTY", 0.0)
    monkeypatch.setattr(grouping, "SEEN", 1e9)  # however many records there are
    seen = []

    def fit(curator):
        found = AdaptiveField().measure(curator)
        seen.append(bool(found.found.get(grouping.GROUPS)))

    found = audit_replay(fit, FIVE, unit, budget, count=6)
    assert failures(found) == [] and all(seen)


class Itself(Marginals):
    """Planted: a group is counted as often as it has levels."""

    def combine(self, counts):
        return tuple(2 * c if self.grouped else c for c in counts)


def test_a_planted_bug_in_groups_is_caught():
    domain = Domain((Attribute.categorical("g", 2, groups=Groups(FIVE["a"], (0, 1, 0))), FIVE["c"]))
    for query, right in ((Itself, False), (Marginals, True)):
        asked = query(domain, [("g", "c")])
        found = audit_replay(lambda c, asked=asked: c.measure(asked), FIVE, PrivacyUnit(), ZCDP(1), count=60)
        assert (failures(found) == []) is right
