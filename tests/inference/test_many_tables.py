"""What makes hundreds of columns and of tables fast, against enumeration and against the way one by one."""

import itertools

import numpy as np
import pytest
from bruteforce import problems, random_problem
from hypothesis import given, settings

from discreet.domain import Domain
from discreet.errors import InputError
from discreet.factor import CliqueVector
from discreet.graph import triangulate
from discreet.inference import levels, margins
from discreet.inference.exact import ExactEngine, get_engine
from discreet.inference.levels import Levels
from discreet.inference.margins import Margins
from discreet.inference.passes import calibrate_tables
from discreet.inference.schedule import Schedule
from discreet.ordering import shallow_order


def random_graph(columns, levels_of, edges, seed):
    """A connected graph of pairs, single columns too, and potentials on it."""
    rng = np.random.default_rng(seed)
    domain = Domain.of({f"c{i:03d}": int(rng.choice(levels_of)) for i in range(columns)})
    names = domain.names
    pairs = {(names[int(rng.integers(max(0, i - 4), i))], names[i]) for i in range(1, columns)}
    while len(pairs) < edges:
        i = int(rng.integers(1, columns))
        pairs.add((names[int(rng.integers(max(0, i - 5), i))], names[i]))
    cliques = [*((n,) for n in names), *sorted(pairs)]
    return domain, cliques, CliqueVector.random(domain, cliques, seed)


# -- all pairs ---------------------------------------------------------------------------------------------------------


@given(problems())
@settings(max_examples=60)
def test_all_pairs_agree_with_enumeration(problem):
    if not problem.is_possible:
        return
    found = get_engine(problem.domain, problem.potentials).calibrate(problem.potentials, problem.evidence).pairs()
    for a in problem.domain.names:
        assert np.allclose(found[a, a], np.diag(problem.marginal((a,))))
        for b in problem.domain.names:
            if a != b:
                assert np.allclose(found[a, b], problem.marginal((a, b)), atol=1e-12), (a, b)


@pytest.mark.parametrize(("columns", "edges"), [(40, 39), (40, 55), (40, 20)])
def test_all_pairs_agree_with_one_by_one(columns, edges):
    domain, cliques, potentials = random_graph(columns, [1, 2, 3], edges, seed=columns + edges)
    beliefs = get_engine(domain, cliques).calibrate(potentials)
    found = beliefs.pairs()
    for a, b in itertools.combinations(domain.names, 2):
        assert np.allclose(found[a, b], beliefs.probabilities((a, b)), atol=1e-12)
        assert np.array_equal(found[a, b], found[b, a].T)


def test_all_pairs_through_wide_separators(monkeypatch):
    """Separators of several columns that overlap, by plain matrices and by sparse ones."""
    names = [f"c{i}" for i in range(14)]
    domain = Domain.of(dict.fromkeys(names, 2))
    cliques = [tuple(names[i : i + 4]) for i in range(11)] + [("c0", "c4"), ("c2", "c9")]
    potentials = CliqueVector.random(domain, cliques, 3)
    beliefs = get_engine(domain, cliques).calibrate(potentials)
    plain = beliefs.pairs().matrix
    monkeypatch.setattr("discreet.inference.pairs._DENSE", 0)
    assert np.allclose(plain, beliefs.pairs().matrix, atol=1e-14)
    assert all(
        np.allclose(beliefs.pairs()[p], beliefs.probabilities(p), atol=1e-12) for p in itertools.combinations(names, 2)
    )


def test_all_pairs_of_a_batch_are_refused():
    domain = Domain.of({"a": 2, "b": 2})
    with pytest.raises(InputError, match="batch"):
        get_engine(domain, [("a", "b")]).calibrate({("a", "b"): np.zeros((3, 2, 2))}).pairs()


# -- level by level ----------------------------------------------------------------------------------------------------


@given(problems())
@settings(max_examples=60)
def test_levels_agree_with_enumeration(problem):
    fewest, levels.FEWEST_CLIQUES = levels.FEWEST_CLIQUES, 0
    try:
        engine = ExactEngine(problem.domain, problem.potentials)
    finally:
        levels.FEWEST_CLIQUES = fewest
    if not problem.is_possible or not engine.levels.fits:
        return
    beliefs = engine.calibrate(problem.potentials, problem.evidence)
    assert beliefs.log_partition == pytest.approx(problem.log_partition(), abs=1e-9)
    for name in problem.domain.names:
        assert np.allclose(beliefs.probabilities((name,)), problem.marginal((name,)), atol=1e-12)


@pytest.mark.parametrize("scale", [1.0, 300.0])
@pytest.mark.parametrize("edges", [99, 130, 60])
def test_levels_agree_with_passes_one_by_one(edges, scale):
    """Also where potentials are far out of the range of linear space, and for a batch."""
    domain, cliques, potentials = random_graph(100, [2, 3], edges, seed=edges)
    tables = {c: scale * np.stack([f.values, -0.5 * f.values]) for c, f in potentials.items()}
    engine = ExactEngine(domain, cliques)
    assert engine.levels.fits
    load = engine._load(tables, None)
    beliefs, log_partition = engine.levels(load.everything())
    other, expected, is_log = calibrate_tables(engine.schedule, load)
    assert np.allclose(beliefs, np.exp(other) if is_log else other, atol=1e-9)
    assert np.allclose(log_partition, expected, rtol=1e-12)


def test_structural_zeros_level_by_level():
    names = [f"c{i:02d}" for i in range(40)]
    domain = Domain.of(dict.fromkeys(names, 2))
    cliques = list(itertools.pairwise(names))
    equal = np.log(np.eye(2), where=np.eye(2) > 0, out=np.full((2, 2), -np.inf))
    engine = ExactEngine(domain, cliques)
    assert engine.levels.fits
    beliefs = engine.calibrate(dict.fromkeys(cliques, equal), {names[0]: 1})
    assert beliefs.log_partition == pytest.approx(0.0)
    assert beliefs.probabilities((names[-1],)).tolist() == [0.0, 1.0]
    assert beliefs.pairs()[names[3], names[30]].tolist() == [[0.0, 0.0], [0.0, 1.0]]


def test_a_chain_has_a_shallow_tree():
    names = [f"c{i:03d}" for i in range(500)]
    domain = Domain.of(dict.fromkeys(names, 2))
    cliques = list(itertools.pairwise(names))
    order = shallow_order(domain, cliques, 4)
    assert sorted(order) == sorted(names)
    tree = triangulate(domain, cliques, order=order)
    assert tree.width == 2
    assert len(Levels(Schedule(tree)).levels) <= 10 < len(Levels(Schedule(triangulate(domain, cliques))).levels)
    assert len(ExactEngine(domain, cliques).levels.levels) <= 10


# -- many tables in one tree -------------------------------------------------------------------------------------------


def many_tables():
    rng = np.random.default_rng(5)
    sizes = [2, 3, 2, 2, 4, 2, 2, 2, 3, 2, 2, 3]  # 27,648 cells
    domain = Domain.of({f"c{i:02d}": k for i, k in enumerate(sizes)})
    wide = [c for k in (1, 2, 3) for c in itertools.combinations(domain.names, k)]
    return domain, [wide[i] for i in sorted(rng.choice(len(wide), 120, replace=False))]


@pytest.mark.parametrize("graph", ["one large table", "small tables"])
def test_margins_are_what_tables_one_by_one_give(graph):
    domain, cliques = many_tables() if graph == "one large table" else random_graph(30, [1, 2, 3], 45, 1)[:2]
    engine = ExactEngine(domain, cliques)
    within = Margins(engine.schedule, cliques)
    assert within.fits
    potentials = CliqueVector.random(domain, cliques, 8)
    vector = np.concatenate([potentials[c].values.reshape(-1) for c in cliques])
    assert np.allclose(within.spread(vector), engine._load(potentials, None).everything(), atol=1e-12)
    log_partition, mu = engine.marginals(within, vector)
    beliefs = engine.calibrate(potentials)
    assert log_partition == pytest.approx(beliefs.log_partition)
    assert np.allclose(mu, np.concatenate([beliefs.probabilities(c).reshape(-1) for c in cliques]), atol=1e-12)
    both = np.stack([vector, 2 * vector], axis=1)
    assert np.allclose(engine.marginals(within, both)[1][:, 0], mu, atol=1e-12)


def test_a_large_table_is_not_touched_once_for_every_small_one():
    domain, cliques = many_tables()
    engine = ExactEngine(domain, cliques)
    plan = margins._Plan(engine.schedule, cliques)
    assert max(engine.schedule.sizes) > 16_000
    assert plan.links + sum(engine.schedule.total for _ in plan.sums) < 0.3 * len(cliques) * engine.schedule.total


def test_matrices_that_would_be_too_large_are_not_made(monkeypatch):
    problem = random_problem(3)
    engine = ExactEngine(problem.domain, problem.potentials)
    assert Margins(engine.schedule, engine.cliques).fits
    monkeypatch.setattr(margins, "MOST_LINKS", 1)
    assert not Margins(engine.schedule, engine.cliques).fits
