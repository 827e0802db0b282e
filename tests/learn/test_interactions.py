"""Interactions: tables less their margins, by themselves; how they are made to agree, and what they are given."""

import itertools
import math

import numpy as np
import pytest

from discreet import Curator, Measurements, Release, resolve
from discreet.count_table import CountTable
from discreet.domain import Domain
from discreet.errors import FileFormatError, InputError
from discreet.learn.consistency import consistent, estimated_total, pooled, reconciled
from discreet.learn.fields import mirror
from discreet.learn.fields.adaptive import AdaptiveField
from discreet.learn.fields.allocation import portions
from discreet.learn.fields.growth import Prices
from discreet.learn.fields.purpose import Purpose
from discreet.learn.fields.rounds import fitted
from discreet.learn.self_check import _squared
from discreet.models import MarkovRandomField
from discreet.models.generators import network as random_network
from discreet.privacy.budget import ZCDP, ApproxDP
from discreet.privacy.queries.interactions import Interactions, moved_together, together
from discreet.privacy.query import Marginals
from discreet.privacy.unit import PrivacyUnit
from discreet.release.research import ResearchCurator
from discreet.tables.encode import encode

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 4})
RNG = np.random.default_rng(11)


@pytest.mark.parametrize(
    "sizes", [(2,), (5,), (2, 2), (2, 3), (4, 3), (5, 5), (2, 2, 2), (2, 3, 4), (3, 3, 2)], ids=str
)
def test_how_far_a_record_moves_it(sizes):
    """L2² is attained, under both relations, and noise of it is less than that of the table; L1 and L∞ are no less than
    what some pair of records reaches."""
    cells = list(np.ndindex(*sizes))
    moved = []
    for cell in cells:
        table = np.zeros(sizes, dtype=np.int64)
        table[cell] = 1
        moved.append(together(table).reshape(-1))
    one, replaced = moved_together(sizes, "add-remove"), moved_together(sizes, "replace-one")
    assert {int((u**2).sum()) for u in moved} == {one.l2_squared}
    assert {int(np.abs(u).sum()) for u in moved} == {one.l1} and {int(np.abs(u).max()) for u in moved} == {one.linf}
    apart = [u - v for u, v in itertools.product(moved, moved)]
    assert max(int((u**2).sum()) for u in apart) == replaced.l2_squared
    assert max(int(np.abs(u).sum()) for u in apart) <= replaced.l1
    assert max(int(np.abs(u).max()) for u in apart) <= replaced.linf
    assert one.l2_squared < math.prod(sizes) ** 2 and replaced.l2_squared <= 2 * math.prod(sizes) ** 2


def test_it_is_the_table_less_its_margins():
    table = RNG.integers(0, 50, (2, 3, 4))
    assert np.allclose(together(table) / 24, CountTable(("a", "b", "c"), table.astype(float)).interaction)
    assert all(np.all(together(table).sum(axis=k) == 0) for k in range(3))


@pytest.mark.parametrize("wrong", [["one"], [()], [("a", "one")]])
def test_what_has_no_interaction_is_refused(wrong):
    with pytest.raises(InputError, match="two levels or more"):
        Interactions(Domain.of({"a": 2, "one": 1}), wrong)


def test_tables_and_interactions_agree_by_least_squares():
    """The closed form against least squares over all signed tables, by brute force; its variances too."""
    tables = {
        ("a",): CountTable(("a",), RNG.normal(50, 9, 2), 3.0),
        ("b",): CountTable(("b",), RNG.normal(40, 9, 3), 2.0),
        ("c",): CountTable(("c",), RNG.normal(30, 9, 4), 5.0),
        ("a", "b"): CountTable(("a", "b"), RNG.normal(0, 5, (2, 3)), math.inf, 0.7),
        ("b", "c"): CountTable(("b", "c"), RNG.normal(9, 5, (3, 4)), 4.0),
        ("a", "c"): CountTable(("a", "c"), RNG.normal(9, 5, (2, 4)), 6.0, 0.5),
        ("a", "b", "c"): CountTable(("a", "b", "c"), RNG.normal(0, 3, (2, 3, 4)), math.inf, 0.4),
    }
    cells = [np.zeros((2, 3, 4)) for _ in range(24)]
    for i, cell in enumerate(cells):
        cell.reshape(-1)[i] = 1

    def of(clique):  # the table of some columns, as a matrix on all cells
        axes = tuple(i for i, n in enumerate(DOMAIN.names) if n not in clique)
        return np.stack([cell.sum(axis=axes).reshape(-1) for cell in cells], axis=1)

    rows, wanted = [], []
    for clique, t in tables.items():
        shape = t.values.shape
        table = of(clique)
        alone = np.stack([CountTable(clique, x.reshape(shape)).interaction.reshape(-1) for x in table.T], axis=1)
        parts = [(alone, t.interaction, t.closely)]
        if math.isfinite(t.variance):  # what it says of fewer columns
            parts.append((table - alone, t.values - t.interaction, t.variance))
        for matrix, values, variance in parts:
            rows.append(matrix / math.sqrt(variance))
            wanted.append(values.reshape(-1) / math.sqrt(variance))
    design = np.concatenate(rows)
    x, *_ = np.linalg.lstsq(design, np.concatenate(wanted), rcond=None)
    covariance = np.linalg.inv(design.T @ design)
    found = reconciled(DOMAIN, tables)
    for clique, t in found.items():
        matrix = of(clique)
        assert np.allclose(t.values.reshape(-1), matrix @ x)
        assert t.variance == pytest.approx(np.diag(matrix @ covariance @ matrix.T).mean())
        assert t.together is None


def test_what_is_measured_several_times_is_pooled():
    v = RNG.normal(20, 3, (2, 3))
    exact = encode(np.stack([RNG.integers(0, k, 4000) for k in (2, 3, 4)], axis=1), DOMAIN)
    curator = ResearchCurator(exact, budget=ZCDP(3), seed=1)
    once, again = (curator.measure(Interactions(DOMAIN, [("a", "b")]), ZCDP(1)) for _ in range(2))
    table = curator.measure(Marginals(DOMAIN, [("a", "b")]), ZCDP(1))
    both = pooled([*once, *again])["a", "b"]
    assert math.isinf(both.variance) and both.together == pytest.approx(once[0].standard_deviation ** 2 / 2)
    every = pooled([*once, *table, *again])["a", "b"]
    assert every.variance == pytest.approx(table[0].standard_deviation ** 2) and every.together < both.together
    assert every.total == pytest.approx(table[0].as_table().total)
    assert estimated_total(Measurements([*once, *table])) == pytest.approx(estimated_total(table))
    assert consistent(Measurements([*once, *table]))["a", "b"].values.shape == v.shape
    with pytest.raises(InputError, match="nothing is known about the number"):
        estimated_total(once)


def test_what_a_record_adds_to_an_interaction_scatters_so_much():
    joint = RNG.dirichlet(np.ones(24)).reshape(2, 3, 4)
    each = []
    for i in range(24):
        table = np.zeros(24)
        table[i] = 1
        each.append(CountTable(("a", "b", "c"), table.reshape(2, 3, 4)).interaction ** 2)
    assert np.allclose(_squared(joint), np.tensordot(joint.reshape(-1), np.stack(each), axes=1))


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_portions_are_the_budget_and_no_others_are_better(relation):
    domain = Domain.of({"a": 2, "b": 3, "c": 8, "d": 2})
    columns = [(n,) for n in domain.names]
    pairs = list(itertools.combinations(domain.names, 2))
    known = dict.fromkeys(columns, 1 / 900) | {pairs[0]: 1.0}  # known closely: it gets nothing
    prices = Prices(domain, PrivacyUnit(relation=relation), ZCDP("0.01"), Purpose(domain), frozenset(known))
    said = dict.fromkeys(pairs[4:], 200.0)
    found = portions(prices, pairs[1:4], known, said, {})
    assert pairs[0] not in found and not set(said) & set(found) and set(pairs[1:4]) < set(found)
    assert sum(found.values()) == pytest.approx(prices.precision)

    def error(spent):
        u = {}
        for c in [*known, *pairs[1:4]]:
            precision = known.get(c, 0.0) + spent.get(c, 0.0) / prices.moved(c)
            u[c] = prices.directions(c) * domain.size(c) ** 2 / precision
        u |= {c: math.pi / 2 * e**2 for c, e in said.items()}
        return sum(
            prices.weight(p) * math.sqrt(u[p] + sum(u[c,] for c in p)) if len(p) > 1 else math.sqrt(u[p]) for p in u
        )

    least = error(found)
    for one, other in itertools.permutations(found, 2):
        moved = dict(found)
        moved[one] -= 0.05 * found[one]
        moved[other] += 0.05 * found[one]
        assert error(moved) >= least * (1 - 1e-6)


def test_a_release_with_interactions_is_whole(tmp_path):
    """Saved, opened, learned again, with intervals, and what it cost computed again."""
    network = random_network(5, max_parents=2, levels=[2, 3, 2, 4, 2], concentration=0.5, random_state=3)
    codes = np.asarray(network.sample(6000, 5).codes, dtype=np.int64)
    domain = Domain.of(dict(zip(network.domain.names, (2, 3, 2, 4, 2), strict=True)))
    with Curator(encode(codes, domain), budget=ZCDP("0.1")) as curator:
        learned = resolve(domain).learn(curator)
    release = Release(learned.model, learned.spec, learned.measurements)
    alone = [m for m in release.measurements if m.clique is None and m.told_of]
    assert alone and all(m.label.endswith((" together", "without the total")) for m in alone)
    release.save(tmp_path / "m.zip")
    again = Release.load(tmp_path / "m.zip")
    assert again.refit_agrees() and again.has_intervals
    assert set(release.measurements.told_of) == set(again.measurements.told_of)
    assert alone[0].to_frame("pandas").columns.tolist()[: len(alone[0].told_of)] == list(alone[0].told_of)
    found = again.intervals(draws=5, random_state=0)
    half = found.of(lambda model: model.marginal(domain.names[:2]).probabilities).half_width
    assert np.all((half > 0) & (half < 0.2))


def test_overlapping_tables_cost_less_than_with_their_margins():
    """The same choice of pairs, with tables and with interactions: the error of pairs of two-level columns."""
    rng = np.random.default_rng(2)
    domain = Domain.of({f"c{i}": 2 for i in range(8)})
    hidden = rng.random(20_000)
    table = encode((rng.random((20_000, 8)) < 0.2 + 0.6 * hidden[:, None]).astype(np.int64), domain)
    pairs = list(itertools.combinations(domain.names, 2))
    columns = [(n,) for n in domain.names]
    exact = dict(zip(pairs, table.count(pairs), strict=True))
    errors = {"tables": [], "interactions": []}
    for seed in range(8):
        curator = ResearchCurator(table, budget=ZCDP(1), seed=seed)
        whole = curator.measure(Marginals(domain, [*columns, *pairs]), ZCDP("0.01"))
        apart = [*curator.measure(Marginals(domain, columns), ZCDP("0.001"))]
        apart += [*curator.measure(Interactions(domain, columns), ZCDP("0.003"))]
        apart += [*curator.measure(Interactions(domain, pairs), ZCDP("0.006"))]
        for name, measured in (("tables", whole), ("interactions", apart)):
            found = consistent(measured)
            errors[name].append(np.mean([np.abs(found[p].values - exact[p]).sum() for p in pairs]))
    assert np.mean(errors["interactions"]) < 0.85 * np.mean(errors["tables"])


def test_one_level_columns_and_wide_pairs_are_no_trouble():
    domain = Domain.of({"a": 2, "one": 1, "b": 3, "c": 2})
    codes = np.stack([RNG.integers(0, 2, 5000), np.zeros(5000, int), RNG.integers(0, 3, 5000)], axis=1)
    codes = np.column_stack([codes, codes[:, 0]])
    with Curator(encode(codes, domain), budget=ApproxDP(1, "1e-9")) as curator:
        model = AdaptiveField().fit(curator)
    assert model.marginal(("a", "c")).probabilities.trace() > 0.9


@pytest.mark.parametrize(
    "forged", [{"columns": ["a"]}, {"columns": ["a", "c"]}, {"grid": "1"}, {"columns": 5}], ids=str
)
def test_a_file_cannot_say_that_it_is_the_interaction_of_others(forged):
    """By its columns `verify` knows how far a record moves it."""
    rows = {n: [0, 1, 1] for n in "abc"}
    told = Curator(encode(rows, DOMAIN), budget=ZCDP(1)).measure(Interactions(DOMAIN, [("b", "c")]))
    header, arrays = told.to_archive()
    assert Measurements.from_archive(header, arrays)[0].told_of == ("b", "c")
    (entry,) = header["measurements"]
    entry["about"] = {"interaction": forged.get("columns", ["b", "c"])}
    entry["grid"] = forged.get("grid", entry["grid"])
    with pytest.raises(FileFormatError):
        Measurements.from_archive(header, arrays)


def _fitted_error(table, measured):
    """Total variation between all columns at once in the records and in the model."""
    mirror._last.clear()
    fit = fitted(table.domain, measured)
    every = table.domain.names
    model = MarkovRandomField(table.domain, fit.field.potentials(fit.theta)).marginal(every).probabilities
    (counts,) = table.count([every])
    return float(0.5 * np.abs(model - counts / counts.sum()).sum())


def test_weak_interactions_of_three_columns_are_learned_less_closely_and_clear_ones_as_closely_as_pairs(monkeypatch):
    rng = np.random.default_rng(4)
    domain = Domain.of({f"c{i}": 2 for i in range(8)})
    hidden = rng.random(20_000)
    codes = (rng.random((20_000, 8)) < 0.2 + 0.6 * hidden[:, None]).astype(np.int64)
    clear = codes.copy()
    clear[:, 7] = codes[:, 0] ^ codes[:, 1]
    sets = [list(itertools.combinations(domain.names, k)) for k in (1, 2, 3)]

    def errors(table):
        out = []
        for seed in range(3):
            curator = ResearchCurator(table, budget=ZCDP(1), seed=seed)
            first = curator.measure(Marginals(domain, sets[0]), ZCDP("0.01"))
            more = [curator.measure(Interactions(domain, own), ZCDP("0.0005")) for own in sets[1:]]
            out.append(_fitted_error(table, Measurements([*first, *more[0], *more[1]])))
        return float(np.mean(out))

    weak, strong = encode(codes, domain), encode(clear, domain)
    found = errors(weak), errors(strong)
    monkeypatch.setattr(mirror, "WEAKEST", 1.0)
    assert found[0] < 0.97 * errors(weak) and found[1] < 1.03 * errors(strong)
    monkeypatch.setattr(mirror, "CLEAR", 1e9)
    monkeypatch.setattr(mirror, "WEAKEST", 1 / 16)
    assert errors(strong) > 1.5 * found[1]
