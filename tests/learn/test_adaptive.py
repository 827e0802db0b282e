"""Nobody knows the graph: the default finds what there is, is no worse than independent columns, and pays for all."""

from functools import partial, reduce
from itertools import combinations

import numpy as np
import pytest

from discreet import ZCDP, ApproxDP, Attribute, Curator, Domain, Ledger, PrivacyUnit, PureDP, Release, encode, networks
from discreet.audit import audit_replay, failures
from discreet.audit.transcripts import MOVED
from discreet.count_table import CountTable
from discreet.errors import DiscreetError
from discreet.learn.fields import distance_rounds, growth, mirror, selection_rounds
from discreet.learn.fields.adaptive import AdaptiveField
from discreet.learn.fields.distance_rounds import DistanceRounds
from discreet.learn.fields.growth import Prices, Tree, batch, believed, spanning_tree
from discreet.learn.fields.mirror import mirror_fit
from discreet.learn.fields.purpose import Purpose
from discreet.learn.fields.selection_rounds import SelectionRounds
from discreet.learn.procedure import Whole
from discreet.learn.tables import Tables
from discreet.privacy.budget import GaussianDP
from discreet.privacy.claims import contradictions
from discreet.privacy.curator import ExactCurator
from discreet.privacy.mechanisms import SecureGateway
from discreet.privacy.queries.distances import Distances, WorthMeasuring
from discreet.privacy.queries.interactions import Interactions
from discreet.privacy.query import Marginals
from discreet.privacy.unit import Sensitivity
from discreet.spec import Spec, resolve

BUDGETS = [PureDP(1), ZCDP("0.02"), ApproxDP(1, "1e-6")]
UNITS = [PrivacyUnit(), PrivacyUnit(relation="replace-one"), PrivacyUnit("person", max_rows=2)]


def rows_of(network, n, seed=0):
    return network.sample(n, random_state=seed).to_pandas()


def mean_distance(model, rows, size=2):
    """Mean total variation over all sets of columns of this size."""
    sets = list(combinations(model.domain.names, size))
    counts = ExactCurator(encode(rows, model.domain)).measure(Marginals(model.domain, sets))
    tables = zip(sets, (m.values / max(m.values.sum(), 1) for m in counts), strict=True)
    return float(np.mean([0.5 * np.abs(model.marginal(c).probabilities - table).sum() for c, table in tables]))


def fit(rows, domain, budget, unit=None, learner=None):
    with Curator(encode(rows, domain), unit or PrivacyUnit(), budget) as curator:
        return (learner or AdaptiveField()).fit(curator)


def test_it_is_the_default():
    domain = networks.load("asia").domain
    assert resolve(domain) == resolve(domain, family="field") == Spec("field", "adaptive")
    assert resolve(domain, family="network") == Spec("network", "found")


# -- what is asked -----------------------------------------------------------------------------------------------------

TINY = Domain.of({"a": 2, "b": 3, "c": 2})


FIVE = Domain.of({"a": 2, "b": 3, "c": 2, "d": 2, "e": 2})
"""So many columns that (ε, δ) has Gaussian noise."""


@pytest.mark.crossed
@pytest.mark.parametrize("records", ["plenty", "few", "too few"])
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_nothing_depends_on_rows_but_through_noise(budget, unit, records, monkeypatch):
    """The neighbours are of a few rows, which are too few for pairs unless any number is enough."""
    looks = records != "too few"
    for rounds in (DistanceRounds, SelectionRounds):
        monkeypatch.setattr(rounds, "enough", 0.0 if looks else 1e9)
    monkeypatch.setattr(distance_rounds, "PLENTY", 0.0 if records == "plenty" else 1e9)
    found = audit_replay(lambda c: AdaptiveField().fit(c), FIVE if looks else TINY, unit, budget, count=8)
    assert failures(found) == []


class TooSure(Distances):
    """Planted: the sensitivity of add-remove under replace-one, too."""

    def row_sensitivity(self, relation):
        m = len(self.cliques)
        return (Sensitivity(m, m, 1, m),)


class OwnRows(Distances):
    """Planted: the expectation is that of independent columns *in the rows*, instead of a public one."""

    def combine(self, counts):
        gaps = [x - np.rint(_independent(x)) for x in counts]
        return (np.array([int(np.abs(g).sum()) for g in gaps], dtype=np.int64),)


class Understated(Interactions):
    """Planted: an interaction is said to move as a table does, times a quarter, whatever its levels."""

    def row_sensitivity(self, relation):
        cells = [self.domain.size(c) for c in self.cliques]
        return tuple(Sensitivity(2 * n, n**2 // 4, n, n) for n in cells)


def _independent(table):
    every, n = range(table.ndim), max(int(table.sum()), 1)
    margins = (table.sum(axis=tuple(j for j in every if j != i)) / n for i in every)
    return n * reduce(np.multiply.outer, margins)


@pytest.mark.parametrize("query", [TooSure, OwnRows])
def test_planted_bugs_in_the_distances_are_caught(query):
    pairs = list(combinations(TINY.names, 2))
    expected = [np.zeros(tuple(TINY[n].size for n in c)) for c in pairs]
    for r in expected:
        r.flat[0] = 9  # a record that comes from elsewhere takes two from the distance
    asked = query(TINY, pairs, expected)
    unit = PrivacyUnit(relation="replace-one")
    found = audit_replay(lambda c: c.measure(asked), TINY, unit, PureDP(1), count=150)
    assert failures(found) != []
    honest = Distances(TINY, pairs, expected)
    assert failures(audit_replay(lambda c: c.measure(honest), TINY, unit, PureDP(1), count=150)) == []


@pytest.mark.chance
@pytest.mark.parametrize(
    ("module", "name", "planted", "budget", "count"),
    [
        (distance_rounds, "Distances", TooSure, ZCDP("0.5"), 40),
        (distance_rounds, "Distances", OwnRows, ZCDP("0.5"), 40),
        (growth, "Interactions", Understated, ZCDP("0.5"), 5),
        (selection_rounds, "Distances", TooSure, PureDP(10), 40),
        (selection_rounds, "Distances", OwnRows, PureDP(10), 60),
    ],
)
def test_planted_bugs_in_whole_runs_are_caught(module, name, planted, budget, count, monkeypatch):
    """From the tables of single columns to the last step, each bug in the place where the procedure asks. Without them
    the test above finds nothing."""
    for rounds in (DistanceRounds, SelectionRounds):
        monkeypatch.setattr(rounds, "enough", 0.0)
    monkeypatch.setattr(distance_rounds, "PLENTY", 0.0)
    monkeypatch.setattr(module, name, planted)
    unit = PrivacyUnit(relation="replace-one")
    found = audit_replay(lambda c: AdaptiveField().fit(c), TINY, unit, budget, count=count)
    assert MOVED in {finding.name for finding in failures(found)}


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_selections_of_what_is_worth_measuring(unit):
    pairs = list(combinations(TINY.names, 2))
    asked = Distances(TINY, pairs, [np.full(tuple(TINY[n].size for n in c), 1.4) for c in pairs])
    score = WorthMeasuring(asked, [1, 2, 3])
    assert score.candidates == ("a × b", "a × c", "b × c", "none")
    assert failures(audit_replay(lambda c: c.select(score), TINY, unit, PureDP(1), count=100)) == []
    with pytest.raises(DiscreetError, match="prices"):
        WorthMeasuring(asked, [1, 2])
    for far in (2**60, -(2**60), -(2**63)):  # a distance from the last would leave 64 bits
        with pytest.raises(DiscreetError, match="prices"):
            WorthMeasuring(asked, np.array([1, 2, far]))


class Scales(SecureGateway):
    def __init__(self):
        super().__init__()
        self.kinds = set()

    def add_noise(self, call, values):
        self.kinds.add(call.kind)
        return super().add_noise(call, values)


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_all_is_paid_for_and_the_file_says_so(budget, unit, tmp_path):
    rows = rows_of(networks.load("asia"), 300)
    rows["person"] = np.arange(300) // 2
    domain = networks.load("asia").domain
    gateway, ledger = Scales(), Ledger.in_memory(budget)
    table = encode(rows, domain, unit=unit.column)
    with Curator(table, unit, budget, ledger, gateway=gateway) as curator:
        learned = resolve(domain).learn(curator)
    assert gateway.kinds == ({"laplace"} if isinstance(budget, PureDP) else {"gaussian"})
    assert ledger.spent <= budget
    assert contradictions(learned.model.card) == []
    release = Release.of(learned)
    release.save(tmp_path / "model.zip")
    again = Release.load(tmp_path / "model.zip")
    assert again.graph_was_found and again.refit_agrees()


# -- how good it is ----------------------------------------------------------------------------------------------------


@pytest.mark.chance
@pytest.mark.parametrize(("budget", "most"), [(BUDGETS[0], 0.05), (BUDGETS[2], 0.03)], ids=str)
def test_it_finds_what_there_is(budget, most):
    network = networks.load("sachs")
    rows = rows_of(network, 5000)
    alone = fit(rows, network.domain, budget, learner=Independent())
    model = fit(rows, network.domain, budget)
    assert mean_distance(model, rows) < most < mean_distance(alone, rows)


class Independent(AdaptiveField):
    """All of the budget for single columns."""

    def prepare(self, whole):
        return Tables([(name,) for name in whole.domain.names], "auto", None).prepare(whole)


@pytest.mark.chance
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("n", [0, 50, 500, 20_000])
def test_it_is_hardly_worse_than_independent_columns(budget, n):
    """Where there is nothing to be found, and little to find it with."""
    rng = np.random.default_rng(n)
    domain = Domain.of({"a": 2, "b": 3, "c": 30, "d": 2, "e": 5})
    rows = {a.name: rng.integers(0, a.size, n) ** 2 // a.size for a in domain.attributes}
    both = [np.mean([mean_distance(fit(rows, domain, budget, learner=l), rows) for _ in range(3)]) if n else 0.0
            for l in (AdaptiveField(), Independent())]  # fmt: skip
    fit(rows, domain, budget)  # also of no rows at all
    assert both[0] <= 1.5 * both[1] + 0.02


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_too_few_records_for_pairs(budget):
    """All of the budget then goes to single columns; plan and card say so. A public number is known before."""
    domain, unit = Domain.of({f"c{i}": 3 for i in range(8)}), PrivacyUnit()
    same = np.random.default_rng(2).integers(0, 3, 30_000)
    few, many = (dict.fromkeys(domain.names, same[:n]) for n in (100, 30_000))
    plan = str(AdaptiveField().plan(domain, unit, budget))
    assert "records noise would hide which pairs of columns matter: then the whole budget goes to" in plan
    with Curator(encode(few, domain), unit, budget) as curator:
        learned = resolve(domain).learn(curator)
    assert learned.model.edges == () and "columns are independent" in learned.model.card["caution"]
    columns = [m for m in learned.measurements if m.clique]
    assert {len(m.clique) for m in columns} == {1} and contradictions(learned.model.card) == []
    precision = sum(1 / m.noise.variance for m in columns)
    alone = Tables([(name,) for name in domain.names], "laplace" if budget == PureDP(1) else "gaussian", None)
    with Curator(encode(few, domain), unit, budget) as curator:
        most = sum(1 / m.noise.variance for m in alone.measure(curator))
    # Less the certificate, the number of records and, for (ε, δ), nothing else: one Gaussian.
    assert 0.9 < precision / most < 1.2  # Laplace: (0.97 · 0.99)²
    with Curator(encode(few, domain), unit, budget, public_size=100) as curator:
        procedure = AdaptiveField().plan(domain, unit, budget, public_size=100)
        assert [step.name for step in procedure.steps] == ["tables of single columns"]
        assert "The model will be that of independent columns" in str(procedure)
        assert AdaptiveField().fit(curator).edges == ()
    model = fit(many, domain, budget)
    assert model.edges and "independent" not in model.card.get("caution", "")


@pytest.mark.parametrize("budget", [b for b in BUDGETS if b != PureDP(1)], ids=str)
def test_where_records_are_few_columns_are_asked_for_before_any_distance(budget, monkeypatch):
    """Columns that are all alike: pairs are found all the same, by the distances of the fourth step."""
    domain = Domain.of({f"c{i}": 3 for i in range(8)})
    rows = dict.fromkeys(domain.names, np.random.default_rng(2).integers(0, 3, 2000))
    monkeypatch.setattr(distance_rounds, "PLENTY", 1e9)  # the number of records is noisy
    monkeypatch.setattr(DistanceRounds, "enough", 0.0)
    with Curator(encode(rows, domain), PrivacyUnit(), budget) as curator:
        learned = resolve(domain).learn(curator)
    found = learned.measurements.found
    assert found["few_records"] is True and "pairs" not in found and len(found["missed"]) == 28
    of_columns = [m for m in learned.measurements if m.clique and len(m.clique) == 1]
    assert len(of_columns) >= 3 * 8
    assert len(learned.model.edges) >= 7 and contradictions(learned.model.card) == []


def test_a_certified_model_is_fitted_once(monkeypatch):
    """For the certificate; the release has the same tables. Other tables are another fit."""
    fits = []
    flow_to = mirror.flow_to
    monkeypatch.setattr(mirror, "flow_to", lambda *a, **k: fits.append(k["rough"]) or flow_to(*a, **k))
    domain = Domain.of({f"c{i}": 3 for i in range(8)})
    rows = dict.fromkeys(domain.names, np.arange(3000) % 3)
    for _ in range(2):
        with Curator(encode(rows, domain), PrivacyUnit(), ApproxDP(1, "1e-6")) as curator:
            resolve(domain).learn(curator)
    assert fits.count(False) == 2


def test_the_forecast_allows_a_fit_all_its_iterations(monkeypatch):
    """Where noise is small it takes them."""
    domain = Domain.of({f"c{i}": 10 for i in range(10)})
    before = AdaptiveField().most_work(domain)[1]
    assert 10 < before < 20  # Adult at ε = 100, the tree as large as it may be: 11.3 s
    monkeypatch.setattr("discreet.learn.fields.rounds.MOST_ITERATIONS_CLOSELY", 2 * mirror.MOST_ITERATIONS_CLOSELY)
    assert AdaptiveField().most_work(domain)[1] > 1.9 * before


def test_few_columns_need_no_delta():
    """Laplace noise on three columns and three pairs is less than Gaussian noise within (1, 1e-9)."""
    budget, gateway = ApproxDP(1, "1e-9"), Scales()
    rows = {a.name: np.arange(3000) % a.size for a in TINY.attributes}
    ledger = Ledger.in_memory(budget)
    with Curator(encode(rows, TINY), PrivacyUnit(), budget, ledger, gateway=gateway) as curator:
        learned = resolve(TINY).learn(curator)
    assert gateway.kinds == {"laplace"} and ledger.spent <= budget
    assert contradictions(learned.model.card) == []
    assert "δ is not used" in str(resolve(TINY).prepare(TINY, PrivacyUnit(), budget))
    gaussian = ApproxDP(1, "1e-6").to_gaussian()
    assert AdaptiveField().within(FIVE, ApproxDP(1, "1e-6")) == GaussianDP(gaussian.mu_squared, 1)


EIGHT = Domain.of({f"c{i}": 3 for i in range(8)})
FEW_COLUMNS = ApproxDP(1, "1e-9")


@pytest.mark.parametrize("size", [None, "public"])
@pytest.mark.parametrize("unit", UNITS[::2], ids=str)
@pytest.mark.parametrize("n", [40, 30_000])
def test_few_records_of_few_columns_have_laplace_noise(n, unit, size, tmp_path):
    """All of ε for columns, but for the count that says so and the certificate; or else all steps are Gaussian."""
    unit = PrivacyUnit(unit.column, 1, unit.relation)
    same, gateway = np.random.default_rng(2).integers(0, 3, n), Scales()
    rows = {**dict.fromkeys(EIGHT.names, same), "person": np.arange(n)}
    public = n if size and unit.column is None else None
    ledger = Ledger.in_memory(FEW_COLUMNS)
    table = encode(rows, EIGHT, unit=unit.column)
    with Curator(table, unit, FEW_COLUMNS, ledger, gateway=gateway, public_size=public) as curator:
        learned = resolve(EIGHT).learn(curator)
    assert ("laplace" in gateway.kinds) == (public is None or n < 100)
    assert ("gaussian" in gateway.kinds) == (n > 100)
    assert ledger.spent == FEW_COLUMNS
    assert contradictions(learned.model.card) == []
    assert bool(learned.model.edges) == (n > 100)
    release = Release.of(learned)
    release.save(tmp_path / "model.zip")
    assert Release.load(tmp_path / "model.zip").refit_agrees()
    assert release.certificate.mean_at_most() > 0
    if n < 100:
        columns = [m for m in learned.measurements if m.clique]
        assert [len(m.clique) for m in columns] == [1] * 8
        spent = sum(1 / m.noise.scale for m in columns)  # ε of add-remove
        assert spent == pytest.approx(0.97 * (1 if public else 0.985), rel=1e-6)


def test_laplace_noise_is_for_few_columns_only():
    """Not where replacing a record moves two cells, nor of many columns, nor where bins were found with μ²."""
    for domain, unit, budget in (
        (EIGHT, PrivacyUnit(relation="replace-one"), ApproxDP(1, "1e-5")),
        (Domain.of({f"c{i}": 3 for i in range(15)}), PrivacyUnit(), FEW_COLUMNS),
        (EIGHT, PrivacyUnit(), FEW_COLUMNS.to_gaussian()),
    ):
        rounds = DistanceRounds(
            Whole(domain, unit, budget), AdaptiveField().within(domain, budget), 1000, Purpose(domain), True
        )
        assert rounds.laplace is None
        assert rounds.count is None
    whole = Whole(EIGHT, PrivacyUnit(), FEW_COLUMNS)
    rounds = DistanceRounds(whole, AdaptiveField().within(EIGHT, FEW_COLUMNS), 1000, Purpose(EIGHT), True)
    total = FEW_COLUMNS.to_gaussian().mu_squared
    assert rounds.count.mu_squared + sum(s.mu_squared for s in rounds.shares) == total
    assert rounds.count.epsilon + rounds.laplace.epsilon == 1
    assert rounds.count.mu_squared <= 0.02 * total


def test_a_few_records_of_few_columns_on_all_neighbours(monkeypatch):
    """Whichever way the count falls out, it is within the budget."""
    found = audit_replay(lambda c: AdaptiveField().fit(c), EIGHT, PrivacyUnit(), FEW_COLUMNS, count=6)
    assert failures(found) == []


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_odd_domains(budget):
    rng = np.random.default_rng(1)
    one = Domain.of({"a": 4})
    assert fit({"a": rng.integers(0, 4, 500)}, one, budget).edges == ()
    odd = Domain((*Domain.of({"a": 1, "b": 2, "c": 700}).attributes, Attribute.categorical("d", 1)))
    rows = {a.name: rng.integers(0, a.size, 400) for a in odd.attributes}
    model = fit(rows, odd, budget, learner=AdaptiveField(most_cells=1000))
    assert ("b", "c") not in model.edges  # a table of 1,400 cells is too large
    assert model.marginal(["a", "d"]).probabilities == pytest.approx(np.ones((1, 1)))


def test_no_pair_is_small_enough():
    domain = Domain.of({"a": 40, "b": 50, "c": 30})
    rows = {a.name: np.arange(300) % a.size for a in domain.attributes}
    for budget in BUDGETS:
        assert fit(rows, domain, budget, learner=AdaptiveField(most_cells=200)).edges == ()


def test_exact_tables_are_fitted_exactly():
    network = networks.load("asia")
    rows = rows_of(network, 20_000)  # enough to ask for more than a few tables
    model = AdaptiveField().fit(ExactCurator(encode(rows, network.domain)))
    assert mean_distance(model, rows) < 0.01
    assert model.card["origin"] == "exact"


def test_kind_errors():
    for wrong in ({"most_cells": 0}, {"most_cells": 1.5}, {"triples": 1}):
        with pytest.raises(DiscreetError, match=next(iter(wrong))):
            AdaptiveField(**wrong)


# -- its parts ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_prices_are_what_the_noise_costs(budget):
    """The expected error that a price names is that of the noise which the request then gets."""
    domain = Domain.of({"a": 4, "b": 50, "c": 9})
    for unit in (PrivacyUnit(), PrivacyUnit("person", max_rows=3)):
        prices = Prices(domain, unit, budget, Purpose(domain))
        cliques = [("a",), ("b",), ("c",)]
        request = prices.request(cliques)
        planned = Tables(cliques, request.noise, request.weights).plan(domain, unit, budget).tables
        error = sum(prices.weight(c) * t.expected_error for c, t in zip(cliques, planned, strict=True))
        cost = prices.cost(sum(prices.part(c) for c in cliques))
        # (ε, δ) is priced by way of zCDP here and drawn as one Gaussian, with some 7 % less noise.
        assert error == pytest.approx(cost, rel=0.09)


def test_the_rules_of_growth():
    domain = Domain.of({"a": 2, "b": 2, "c": 2, "d": 40})
    prices = Prices(domain, PrivacyUnit(), ZCDP("0.5"), Purpose(domain))
    told = {("a", "b"): 900.0, ("b", "c"): 800.0, ("a", "c"): 700.0, ("a", "d"): 1.0}
    assert spanning_tree(prices, told) == [("a", "b"), ("b", "c")]  # no loop, and what noise outweighs is left out
    tree = Tree(domain, [(n,) for n in domain.names], 100)
    assert set(batch(prices, tree, told, {})) == {("a", "b"), ("b", "c"), ("a", "c")}
    small = Tree(domain, [("a", "b"), ("b", "c"), ("d",)], 50)
    assert not small.takes(("a", "d")) and small.takes(("a", "c"))
    assert batch(prices, tree, {("a", "b"): -5.0}, {}) == []


def test_noisy_distances_are_not_taken_at_their_word():
    """Posterior means: against draws from what is assumed, and at both ends."""
    rng = np.random.default_rng(3)
    true = rng.exponential(300.0, 4000)
    noisy = true + rng.normal(0, 400.0, true.size)
    said = {(f"a{i}", f"b{i}"): float(e) for i, e in enumerate(noisy)}
    found = np.array(list(believed(said, 400.0).values()))
    assert found.min() >= 0 and np.all(np.diff(found[np.argsort(noisy)]) >= 0)
    assert np.mean((found - true) ** 2) < 0.5 * np.mean((noisy - true) ** 2)
    top = np.argsort(noisy)[-100:]
    assert abs((found - true)[top].mean()) < 100 < (noisy - true)[top].mean()  # chosen for being the largest
    assert believed(said, 0.0) == said
    sure = believed({("a", "b"): 5000.0, ("a", "c"): 1000.0}, 1.0)
    assert sure == pytest.approx({("a", "b"): 5000.0, ("a", "c"): 1000.0}, abs=0.01)
    nothing = believed({("a", "b"): 900.0, ("a", "c"): -900.0}, 1000.0)
    assert all(0 < e < 1000 for e in nothing.values())
    assert all(np.isfinite(e) and e >= 0 for e in believed({("a", "b"): -1e9, ("a", "c"): 1e9}, 1.0).values())


def test_the_flow_stops_where_noise_begins():
    """Tables of one distribution with known noise: fitted beyond the noise they would be nearer to the tables, and
    further from the truth."""
    rng = np.random.default_rng(0)
    domain = Domain.of({"a": 8, "b": 8})
    truth = rng.dirichlet(np.full(64, 0.3)).reshape(8, 8)
    n, deviation = 5000, 60.0
    noisy = n * truth + rng.normal(0, deviation, truth.shape)
    found = mirror_fit(domain, {("a", "b"): CountTable(("a", "b"), noisy, deviation**2)}, n)
    mu = found.field(found.theta)[1].reshape(8, 8)
    assert np.abs(mu - truth).sum() < 0.8 * np.abs(noisy / n - truth).sum()
    assert 0.3 < np.mean((n * mu - noisy) ** 2) / deviation**2 < 1.2
    sure = mirror_fit(domain, {("a", "b"): CountTable(("a", "b"), n * truth, 0.0)}, n)
    assert sure.field(sure.theta)[1] == pytest.approx(truth.reshape(-1), abs=1e-4)


def test_every_table_stops_at_its_own_time():
    """How well other columns are known does not change how far a table is fitted, and what overlaps is pooled first."""
    rng = np.random.default_rng(1)
    domain = Domain.of({"a": 40, "b": 2})
    n, deviation = 5000, 60.0
    noisy = CountTable(("a",), n * rng.dirichlet(np.full(40, 0.5)) + rng.normal(0, deviation, 40), deviation**2)
    found = []
    for other in (60.0, 0.6):
        surely = CountTable(("b",), np.array([0.3, 0.7]) * n, other**2)
        fit = mirror_fit(domain, {("a",): noisy, ("b",): surely}, n)
        found.append(fit.field.split(fit.field(fit.theta)[1])["a",])
    assert np.abs(found[0] - found[1]).sum() < 0.02
    both = Domain.of({"a": 2, "b": 2})
    pair = CountTable(("a", "b"), np.array([[900.0, 100.0], [100.0, 900.0]]), 1.0)
    wrong = CountTable(("a",), np.array([1500.0, 500.0]), 100.0)  # 98 % of what is known of a, the pair's table says
    made = mirror_fit(both, {("a", "b"): pair, ("a",): wrong}, 2000)
    assert made.field.split(made.field(made.theta)[1])["a",] == pytest.approx([0.505, 0.495], abs=0.002)


def test_a_stopped_run_comes_to_the_same_model(tmp_path):
    """Every decision follows from what was released: the same answers lead to the same questions and the same model."""
    from discreet.learn.transcript import Transcript

    network = networks.load("asia")
    table = encode(rows_of(network, 500), network.domain)
    learner, budget = AdaptiveField(), ApproxDP(1, "1e-6")
    run = partial(learner.plan(network.domain, PrivacyUnit(), budget).run)
    first = run(Curator(table, PrivacyUnit(), budget), Transcript(tmp_path / "answers"))
    again = run(Curator(table, PrivacyUnit(), budget), Transcript(tmp_path / "answers"))
    assert first.found == again.found
    assert [m.counts.tolist() for m in first] == [m.counts.tolist() for m in again]
