"""The paper's own methods: what its equations give, on its own examples."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from directed_cases import exact, figure_two, small_network, table_of
from hypothesis import given
from hypothesis import strategies as st

from discreet import networks
from discreet.count_table import CountTable
from discreet.domain import Domain
from discreet.errors import InputError
from discreet.factor import Factor
from discreet.inference.elimination import eliminate
from discreet.learn.networks.families import Families
from discreet.models import BayesianNetwork
from discreet.papers.compute_parameters import (
    NodeTables,
    mutual_consistency,
    node_tables,
    parameters,
)
from discreet.papers.two_stage import (
    TwoStageNetwork,
    budget_weights,
    child_derivatives,
    height,
    node_error,
    node_weight,
    sensitivity,
)
from discreet.papers.uniform import UniformNetwork
from discreet.privacy.budget import ZCDP, ApproxDP, PureDP
from discreet.privacy.curator import Curator
from discreet.privacy.unit import PrivacyUnit

# -- Algorithm 1 -------------------------------------------------------------------------------------------------------


def test_each_node_pays_for_two_tables_with_half_of_its_share() -> None:
    """Lap(2/ε_i) with ε_i = ε/n for every entry (Algorithm 1, line 3; section 5.1)."""
    network = small_network()
    curator = Curator(table_of(network, 100, 0), budget=PureDP(1))
    measured = UniformNetwork(network).measure(curator)
    assert len(measured) == 8
    for m in measured:
        assert m.noise.kind == "laplace" and m.noise.scale == pytest.approx(2 * 4, rel=1e-9)
    assert curator.remaining is None
    assert measured[1].clique == ()  # the parents of a root: the number of records
    plan = UniformNetwork(network).plan(network.domain, PrivacyUnit(), PureDP(1), 1000)
    assert [t.noise.scale for t in plan.tables] == pytest.approx([m.noise.scale for m in measured])


def test_replace_one_doubles_the_noise() -> None:
    """The paper's constants hold for add-remove; under its own words ("differ in a single record") they give 2ε."""
    network = small_network()
    unit = PrivacyUnit(relation="replace-one")
    one = UniformNetwork(network).plan(network.domain, PrivacyUnit(), PureDP(1)).tables[0].noise.scale
    two = UniformNetwork(network).plan(network.domain, unit, PureDP(1)).tables[0].noise.scale
    assert two == pytest.approx(2 * one)


def test_mutual_consistency_by_hand() -> None:
    """Eq. 17 and 18 on two tables that share one column."""
    domain = Domain.of({"a": 2, "b": 2, "c": 2})
    first, second = np.array([[0.4, 0.2], [0.3, 0.1]]), np.array([[0.5, 0.1], [0.2, 0.2]])  # a × b, b × c
    tables = [CountTable(("a", "b"), first), CountTable(("b", "c"), second)]
    out = [table.values for table in mutual_consistency(domain, tables, [1.0, 3.0])]
    mean = (1 * first.sum(axis=0) + 3 * second.sum(axis=1)) / 4
    assert np.allclose(out[0].sum(axis=0), mean) and np.allclose(out[1].sum(axis=1), mean)
    assert np.allclose(out[0], first + (mean - first.sum(axis=0))[None, :] / 2)
    assert np.allclose(out[1], second + (mean - second.sum(axis=1))[:, None] / 2)


@given(st.integers(0, 10_000))
def test_mutual_consistency_makes_all_tables_agree(seed: int) -> None:
    rng = np.random.default_rng(seed)
    domain = Domain.of({"a": 2, "b": 3, "c": 2, "d": 2})
    cliques = [("a", "b", "c"), ("b", "c", "d"), ("a", "d"), ("c", "d")]
    tables = [CountTable(c, rng.normal(1, 1, [domain[n].size for n in c])) for c in cliques]
    out = [table.values for table in mutual_consistency(domain, tables, rng.random(4) + 0.1)]
    for i, c in enumerate(cliques):
        for j, d in enumerate(cliques):
            shared = [n for n in c if n in d]
            left = out[i].sum(axis=tuple(k for k, n in enumerate(c) if n not in shared))
            right = out[j].sum(axis=tuple(k for k, n in enumerate(d) if n not in shared))
            assert np.allclose(left, right)


def test_negative_and_empty_rows_become_distributions() -> None:
    domain = Domain.of({"a": 2, "b": 2})
    families = Families.of(domain, {"b": ("a",)})
    tables = {
        "a": NodeTables(np.array([-3.0, -1.0]), np.array(-2.0), 1.0),
        "b": NodeTables(np.array([[-5.0, 10.0], [-1.0, -1.0]]), np.array([-4.0, -2.0]), 1.0),
    }
    for table in parameters(families, tables).values():
        assert np.all(table > 0) and np.allclose(table.sum(axis=-1), 1)


def test_measurements_in_the_wrong_order_are_refused() -> None:
    network = small_network()
    families = Families.of(network.domain, network)
    measured = UniformNetwork(network).measure(Curator(table_of(network, 10, 0), budget=PureDP(1)))
    with pytest.raises(InputError, match="order"):
        node_tables(families, measured[::-1])
    with pytest.raises(InputError, match="two a column"):
        node_tables(families, measured[:3])


# -- Algorithm 2 -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(5))
def test_sensitivity_of_a_in_figure_two_holds_no_data(seed: int) -> None:
    """Δ_A = ¼ Σ ∂P[C=c]/∂Θ[A=a] of section 3.3 is one half, whatever the tables are."""
    model = figure_two(np.random.default_rng(seed))
    derivatives = child_derivatives(model, "A", "C")
    b, c = model.tables["B"], model.tables["C"]
    by_hand = b[0] * c[0, 0, 0] + b[1] * c[0, 1, 0]  # the paper's ∂P[C=0]/∂Θ[A=0]
    assert derivatives[0, 0] == pytest.approx(by_hand)
    assert derivatives.sum() / 4 == pytest.approx(0.5)
    assert sensitivity(model, "A") == pytest.approx(0.5)
    assert sensitivity(model, "F") == 0


def _child_probabilities(
    model: BayesianNetwork, child: str, name: str, at: tuple[int, ...], amount: float
) -> np.ndarray:
    """P[child] as the multilinear function of the tables that it is: one entry moved, its row not rescaled."""
    above = model.ancestors([child])
    own = model.domain.project(n for n in model.domain if n in above)
    factors = []
    for n in own:
        table = np.array(model.tables[n])
        if n == name:
            table[at] += amount
        factors.append(Factor.from_probabilities(own.project((*model.parents[n], n)), table))
    return eliminate(own, factors, (child,)).factor.exp()


@pytest.mark.parametrize("name", ["C", "D", "A"])
def test_derivatives_match_finite_differences(name: str) -> None:
    model = figure_two(np.random.default_rng(1))
    step = 1e-6
    for child in model.children[name]:
        derivatives = child_derivatives(model, name, child)
        for at in np.ndindex(model.tables[name].shape):
            up, down = (_child_probabilities(model, child, name, at, s) for s in (step, -step))
            assert np.allclose((up - down) / (2 * step), derivatives[at], atol=1e-6)


def test_sensitivity_is_a_number_of_the_graph_alone() -> None:
    """Δ_i = mean_Y(1/|dom Y|)/|dom pa_i| on every node of sachs and alarm: eq. 8–9 carry no information on the data."""
    for network in (networks.load("sachs"), networks.load("alarm")):
        for name in list(network.domain)[:12]:
            children = network.children[name]
            above = network.domain.size(network.parents[name])
            wanted = np.mean([1 / network.domain[c].size for c in children]) / above if children else 0.0
            assert sensitivity(network, name) == pytest.approx(wanted, rel=1e-9)


def test_heights_and_weights() -> None:
    model = figure_two(np.random.default_rng(0))
    assert {n: height(model, n) for n in "ABCDEF"} == {"A": 3, "B": 3, "C": 2, "D": 1, "E": 1, "F": 0}
    assert node_weight(model, "F") == 1  # (0 + 1)(0 + 1)(0 + 1)
    assert node_weight(model, "A") == pytest.approx(4 * 2 * 1.5)


def test_errors_of_equation_six_by_hand() -> None:
    rows = np.array([[0.25, 0.75], [0.5, 0.5]])
    tables = NodeTables(np.array([[10.0, 30.0], [-4.0, 0.2]]), np.array([40.0, 0.0]), 1.0)
    wanted = (
        0.25 * math.hypot(1 / 40, 1 / 10) + 0.75 * math.hypot(1 / 40, 1 / 30) + 2 * 0.5 * math.hypot(1, 1)
    ) / 4  # counts below one count as one
    assert node_error(rows, tables) == pytest.approx(wanted)


def test_shares_solve_the_papers_problem() -> None:
    """Eq. 10 minimises Σ W_i δ_i/ε_i under Σ ε_i = 1: no random division does better."""
    network = small_network()
    families = Families.of(network.domain, network)
    tables = node_tables(families, UniformNetwork(network).measure(exact(table_of(network, 500, 0))))
    model = families.network(parameters(families, tables))
    cost = np.array([node_weight(model, n) * node_error(model.tables[n], tables[n]) for n in network.domain])
    found = np.array(list(budget_weights(families, tables).values()))
    found = found / found.sum()
    root = 1 / np.sqrt(1 / cost)
    assert np.allclose(found, root / root.sum())
    rng = np.random.default_rng(0)
    for _ in range(300):
        assert (cost / rng.dirichlet(np.ones(4))).sum() >= (cost / found).sum()


def test_sachs_shares_are_not_what_the_paper_prints() -> None:
    """The paper: PKC gets the largest budget (0.1 of ε = 1) and Jnk the least (0.004). Its equations, on exact counts:
    PKC gets about 0.03, less than four other nodes, and Jnk about 0.04."""
    network = networks.load("sachs")
    model = TwoStageNetwork(network, rate=1).fit(exact(table_of(network, 10_000, 0)))
    assert model.card is not None
    shares = {n: 0.9 * s for n, s in model.card["shares"].items()}
    assert sum(shares.values()) == pytest.approx(0.9)
    assert 0.02 < shares["PKC"] < 0.07
    assert sum(s > shares["PKC"] for s in shares.values()) >= 4
    assert shares["Jnk"] > 0.02 > 0.004


def test_two_stages_spend_the_whole_budget_and_no_more() -> None:
    network = small_network()
    for budget in (PureDP(1), ZCDP(0.1), ApproxDP(1, 1e-6)):
        for unit in (PrivacyUnit(), PrivacyUnit(relation="replace-one")):
            curator = Curator(table_of(network, 300, 0), unit, budget)
            model = TwoStageNetwork(network).fit(curator)
            assert curator.spent is not None and curator.spent <= budget
            assert model.card is not None and sum(model.card["shares"].values()) == pytest.approx(1)


def test_amplification_is_taken_under_add_remove_only() -> None:
    """Stage I on the sample may use ln((e^0.1 − 1)/0.1 + 1) (Algorithm 2, line 1) only where Lemma 2.1 holds."""
    network = small_network()
    scales = {}
    for relation in ("add-remove", "replace-one"):
        curator = Curator(table_of(network, 300, 0), PrivacyUnit(relation=relation), PureDP(1))  # type: ignore[arg-type]
        sample = curator.subsample(0.1, PureDP("1/10"))
        scales[relation] = float(sample.budget.epsilon)  # type: ignore[attr-defined]
    assert scales["add-remove"] == pytest.approx(math.log((math.exp(0.1) - 1) / 0.1 + 1))
    assert scales["replace-one"] == pytest.approx(0.1)


def test_plans_show_ranges_where_shares_are_private() -> None:
    network = small_network()
    plan = TwoStageNetwork(network).plan(network.domain, PrivacyUnit(), PureDP(1), 1000)
    sample, tables = plan.steps
    assert sample.rate == Fraction(1, 10) and float(sample.share.epsilon) == 0.1  # type: ignore[attr-defined]
    assert len(tables.rows) == 8 and all(t.share_range == (0.0, 0.45) for t in tables.rows)
    assert "0–45 %" in str(plan) and "stage I, on a sample of rate 0.1  " in str(plan) and "10 %" in str(plan)


@pytest.mark.parametrize(("option", "value"), [("rate", 0), ("rate", 2), ("first_stage", 0), ("first_stage", 1)])
def test_bad_stages_are_refused(option: str, value: float) -> None:
    with pytest.raises(InputError, match=option):
        TwoStageNetwork({}, **{option: value})  # type: ignore[arg-type]


def test_exact_counts_give_the_exact_network() -> None:
    """Without noise both methods return the frequencies, consistency included."""
    network = small_network()
    table = table_of(network, 4000, 3)
    codes = network.sample(4000, 3).codes
    for learner in (UniformNetwork(network), TwoStageNetwork(network)):
        model = learner.fit(exact(table))
        assert isinstance(model, BayesianNetwork)
        d = np.histogram2d(codes[:, 2], codes[:, 3], bins=2)[0]
        assert np.allclose(model.tables["d"], d / d.sum(axis=1, keepdims=True))
