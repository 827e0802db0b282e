"""The bounds as functions: values by hand, growth in every argument, both numberings, and the hard instances."""

import inspect
import itertools
import math
import re
from pathlib import Path

import numpy as np
import pytest

from discreet.errors import InputError
from discreet.papers.theory import (
    composition,
    frank_wolfe,
    hard_instances,
    items,
    lemmas,
    lower,
    packing,
    polynomials,
    stability,
    upper,
)
from discreet.papers.theory.bound import Bound, readable

HERE = {"items": items, "upper": upper, "lower": lower, "lemmas": lemmas, "packing": packing,
        "composition": composition, "frank_wolfe": frank_wolfe, "stability": stability,
        "polynomials": polynomials}  # fmt: skip
E = math.e


# -- values by hand --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bound", "value"),
    [
        (upper.theorem_3_8(100, 0.5, 0.1, 0.25),
         0.25 * math.log(100) * E**6 / 1e-4 + 10 * 0.25 * math.log(100) ** 2 * E**4.5 / (0.5 * 1e-3)),
        (upper.theorem_3_11(100, 4, 0.5, 0.1, 0.25),
         0.25 * 1024 * math.log(400) * E**7 / 1e-4 + 10 * 0.25 * 2048 * math.log(400) ** 2 * E**5.5 / (0.5 * 1e-3)),
        (upper.theorem_4_2(10, 2, 0.1, 0.5, 1.0),
         16 * (E**2.4 * 1e8 * math.log(10) / 0.0625 + E**1.8 * 10**6.5 * math.log(10) ** 2 / 0.125)),
        (upper.theorem_4_7(100, 3, 0.1, 0.25, 0.25),
         E**1.5 * 10 * math.log(100) ** 2 / (0.5 * 0.25**4.5) + 3 * 0.01 * 10 * math.log(100) / (0.5 * 0.0625)
         + E**1.8 * math.log(100) / 0.25**6),
        (upper.theorem_4_7(81, 2, 0.1, 0.25, 0.25, oracle=True),
         E * 9 * math.log(81) ** 2 / (0.5 * 0.25**4.5) + 2 * 0.01 * 243 * math.log(81) / (0.5 * 0.0625)
         + E**1.2 * math.log(81) / 0.25**6),
        (upper.theorem_6_2(100, 3, 0.5, 0.5), 0.25 * 81 * E**7 * math.log(300) / 0.0625),
        (upper.theorem_6_3(100, 3, 0.5, 0.5, 2.0, 1e-6),
         0.25 * 81 * E**7 * math.log(300) / 0.0625 * math.log(1e6) / 2),
        (upper.theorem_6_4(100, 2, 0.5, 0.5), E**7 * math.log(200) / 0.0625),
        (upper.theorem_6_5(100, 2, 0.5, 0.5, 2.0, 1e-6), E**7 * math.log(200) / 0.0625 * math.log(1e6) / 2),
        (upper.theorem_1_3(1000, 50, 8.0, 0.01, 0.1), 16 * math.log(500_000) / 100 ** (2 / 3)),
        (upper.lemma_3_3(1000, 100, 2.0, 0.5, 8.0, 0.01, 0.1), 2 * math.log(1e6) / 100 ** (2 / 3)),
        (lower.theorem_7_1_zcdp(200, 0.04), (math.sqrt(100 * math.log(2)) - math.sqrt(math.log(1.5))) / 0.2),
        (lower.theorem_7_1_pure(200, 2.0, 0.5), (100 * math.log(2) + math.log(2 / 3)) / 0.5),
        (lower.theorem_7_4_zcdp(200, 3, 0.04), (math.sqrt(400 * math.log(2)) - math.sqrt(math.log(1.5))) / 0.2),
        (lower.theorem_7_4_pure(200, 3, 2.0, 0.5), (400 * math.log(2) + math.log(2 / 3)) / 0.5),
        (lower.theorem_5_1_as_printed(64, 0.01, 1.0), 32 / (72 * math.sqrt(32 * 64) * 0.01)),
        (lower.theorem_5_1(64, 0.01, 0.5, 1e-12, replace_one=True),
         32 * (1 / 27 - 0.02 / 3) / (math.sinh(0.5) * math.sqrt(32) * 0.01 / 9)),
        (lower.graph_without_privacy(10, 0.5),
         (math.log(45) - (math.log(3) - 2 / 3 * math.log(2)) - math.log(44) / 3)
         / (0.5 * math.tanh(0.5) - math.log(math.cosh(0.5)))),
    ],
)  # fmt: skip
def test_values_by_hand(bound, value):
    assert bound.value == pytest.approx(value, rel=1e-6)
    assert bound.item in str(bound)
    assert bound.constant in str(bound)
    assert bound.to_dict()["item"] == bound.item


def test_the_printed_theorem_5_1_does_not_hold_up_to_a_fiftieth():
    with pytest.raises(InputError, match=r"0\.0170 \(not 1/50\)"):
        lower.theorem_5_1_as_printed(64, 1 / 50, 1.0)
    assert lower.theorem_5_1_as_printed(64, 1 / 59, 1.0).value > 0
    assert lower.theorem_5_1(64, 1 / 17, 1.0, 1e-6).value == 0  # says nothing, and says so with a zero
    for alpha in (0.005, 0.01, 0.0169):
        repaired = lower.theorem_5_1(256, alpha, 1.0, 1e-9, replace_one=True).value
        assert repaired > lower.theorem_5_1_as_printed(256, alpha, 1.0).value


# -- growth ----------------------------------------------------------------------------------------------------------

FACTS = {"p": 64, "k": 3, "t": 3, "width": 0.8, "alpha": 0.1, "rho": 0.1, "epsilon": 1.0, "delta": 1e-6, "weight": 0.3}
GROWS = {"p", "k", "t", "width"}  # upper bounds grow with these and fall with the others
FAMILIES = [f for module in (upper, lower) for name, f in inspect.getmembers(module, inspect.isfunction)
            if name.startswith(("theorem_", "lemma_4_", "parameters_", "graph_"))]  # fmt: skip
FAMILIES = [f for f in FAMILIES if {p.name for p in inspect.signature(f).parameters.values()
                                    if p.default is p.empty} <= set(FACTS)]  # fmt: skip
FAMILIES.remove(lower.theorem_5_1_as_printed)


CASES = [(f, proved) for f in FAMILIES for proved in (False, True)
         if not proved or "proved" in inspect.signature(f).parameters]  # fmt: skip


@pytest.mark.parametrize(("function", "proved"), CASES, ids=lambda value: getattr(value, "__name__", str(value)))
def test_bounds_move_the_right_way(function, proved):
    accepted = inspect.signature(function).parameters
    facts = {name: value for name, value in FACTS.items() if name in accepted}
    facts |= {"alpha": 0.01} if function is lower.theorem_5_1 else {}
    facts |= {"proved": True} if proved else {}
    base = function(**facts)
    assert isinstance(base, Bound)
    assert 0 < base.value < math.inf
    assert base.constant == ("proved" if proved or base.kind == "lower" else "order only")
    if proved:  # a proved number never stands beside the formula of an order
        assert base.formula != function(**(facts | {"proved": False})).formula
    for name in set(facts) - {"proved"}:
        more = facts | {name: facts[name] * 2 if name != "delta" else facts[name] * 1000}
        grown = function(**more).value
        if name in GROWS:
            assert grown >= base.value * (1 - 1e-9), name
        else:
            assert grown <= base.value * (1 + 1e-9), name


def test_growth_with_p_is_that_of_table_1():
    def slope(function):
        return math.log(function(4_000_000).value / function(1_000_000).value) / math.log(4)

    assert slope(lambda p: lower.theorem_7_1_zcdp(p, 0.1)) == pytest.approx(0.5, abs=0.01)
    assert slope(lambda p: lower.theorem_7_1_pure(p, 0.3, 1.0)) == pytest.approx(1.0, abs=0.01)
    assert slope(lambda p: lower.theorem_5_1(p, 0.01, 1.0, 1e-15)) == pytest.approx(0.5, abs=0.01)
    assert slope(lambda p: upper.theorem_3_8(p, 0.5, 0.1, 1e-9)) == pytest.approx(0.5, abs=0.16)  # and ln²p
    assert slope(lambda p: upper.theorem_6_3(p, 2, 0.5, 0.3, 1.0, 1e-6)) < 0.1
    rates = {(c.goal, c.notion): c.growth(10_000.0) for c in items.TABLE_1}
    assert rates["graph", "approx"] == rates["graph", "none"] == pytest.approx(math.log(10_000))
    assert rates["parameters", "approx"] == rates["graph", "zcdp"] == 100
    assert rates["graph", "pure"] == 10_000
    assert len(items.TABLE_1) == 8


def test_lower_bounds_stay_below_upper_bounds():
    for p, eta, width in itertools.product((4, 64, 4096), (0.05, 0.3), (0.3, 1.0)):
        proved = upper.theorem_6_2(p, 2, width, eta, proved=True).value
        assert lower.graph_without_privacy(p, eta).value < proved
        private = upper.theorem_6_3(p, 2, width, eta, 1.0, 1e-6, proved=True).value
        assert proved < private
        zcdp = upper.theorem_3_8(p, width, eta / 2, 0.1, proved=True).value
        assert lower.theorem_7_1_zcdp(p, 0.1).value < zcdp
        assert lower.parameters_zcdp(p, eta / 2, width, 0.1).value < zcdp


def test_huge_widths_give_infinity_or_a_kind_error_and_no_overflow():
    assert upper.theorem_3_8(64, 100.0, 0.1, 0.1).value == math.inf
    assert upper.theorem_3_8(64, 100.0, 0.1, 0.1).to_dict()["value"] is None
    assert readable(math.inf) == "—"
    assert lower.theorem_7_1_pure(64, 1000.0, 1.0).value > 0


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: upper.theorem_3_8(1, 0.5, 0.1, 0.1), "p must be a whole number of at least 2, got 1"),
        (lambda: upper.theorem_3_8(64, 0.5, 0.0, 0.1), r"alpha must be positive and finite, got 0\.0"),
        (lambda: upper.theorem_6_3(64, 2, 0.5, 0.3, 1.0, 1.5), "delta must lie strictly between 0 and 1"),
        (lambda: lower.theorem_7_1_pure(64, math.nan, 1.0), "weight must be positive and finite, got nan"),
        (lambda: upper.theorem_3_11(64, 2.5, 0.5, 0.1, 0.1), "k must be a whole number"),
    ],
)
def test_arguments_out_of_range(call, words):
    with pytest.raises(InputError, match=words):
        call()


# -- numbering -------------------------------------------------------------------------------------------------------

WANTED = re.split(
    ", ",
    "Theorem 1.2, Theorem 1.3, Theorem 1.4, Theorem 1.5, Theorem 1.6, Theorem 1.7, Theorem 3.6, Theorem 3.8, "
    "Theorem 3.11, Theorem 4.2, Theorem 4.7, Theorem 5.1, Theorem 6.2, Corollary 6.3, Theorem 6.4, Corollary 6.5, "
    "Theorem 7.1, Theorem 7.4, Lemma 3.3, Lemma 4.4, Lemma 4.5, Lemma 4.6, Lemma 6.1, Table 1, Lemma 3.9, Lemma 3.12, "
    "Lemma 4.3, Lemma 5.2, Lemma 7.2, Lemma 7.3, Lemma 2.15",
)


def test_every_item_is_there_and_its_functions_exist():
    numbers = [item.full for item in items.ITEMS]
    assert len(set(numbers)) == len(numbers)
    assert set(WANTED) <= set(numbers)
    for item in items.ITEMS:
        module = None
        for name in item.functions.split(", "):
            if name.startswith("…"):
                continue
            home, _, short = name.rpartition(".")
            module = HERE[home] if home else module
            assert hasattr(module, short or name), name
    page = (Path(__file__).parents[2] / "docs" / "theory.md").read_text(encoding="utf-8")
    for item in items.ITEMS:
        assert re.search(rf"\| {re.escape(item.full)} \| {re.escape(item.conference)} \|", page), item.full


# -- hard instances --------------------------------------------------------------------------------------------------


def test_coded_matchings_are_the_instances_of_theorem_7_1():
    model = hard_instances.coded_matching([1, 0, 1], 0.7)
    assert len(model.domain) == 6
    assert {tuple(sorted(map(model.domain.index, e))) for e in model.edges} == {(0, 1), (4, 5)}
    z = np.array(list(itertools.product((-1.0, 1.0), repeat=6)))
    assert exact(model) @ (z[:, 0] * z[:, 1]) == pytest.approx(math.tanh(0.7))
    assert exact(model) @ (z[:, 2] * z[:, 3]) == pytest.approx(0.0)
    graphs = {hard_instances.coded_matching(c, 0.5).edges for c in itertools.product((0, 1), repeat=4)}
    assert len(graphs) == 2**4  # any structure learner must tell all of them apart


def test_variation_bound_against_the_exact_distance():
    for pairs, weight in itertools.product((1, 2, 3), (0.1, 0.5, 1.5)):
        first = exact(hard_instances.coded_matching([1] * pairs, weight))
        second = exact(hard_instances.coded_matching([0] * pairs, weight))
        mixed = exact(hard_instances.coded_matching([1, 0, 1][:pairs], weight))
        bound = lower.matching_variation(pairs, weight)
        for other in (second, mixed):
            assert 0.5 * np.abs(first - other).sum() <= bound + 1e-12
        assert 0.5 * np.abs(first - second).sum() >= bound / 4
        assert lower.pair_divergence(weight) <= weight**2 / 2


def exact(model):
    z = np.array(list(itertools.product((-1.0, 1.0), repeat=len(model.A))))
    chance = np.exp(0.5 * np.einsum("ni,ij,nj->n", z, model.A, z) + z @ model.theta)
    return chance / chance.sum()


def test_random_means_follow_the_prior_of_theorem_5_1():
    model = hard_instances.random_means(400, random_state=3)
    weights = model.A[np.arange(0, 400, 2), np.arange(1, 400, 2)]
    assert np.abs(weights).max() <= math.log(2) / 2  # ½ ln 2: the paper's ln 2 would be for half the weight
    assert np.abs(np.tanh(weights)).max() > 0.3
    assert np.abs(np.tanh(weights).mean()) < 0.1


def test_tables_of_theorem_7_4_share_their_graph_but_not_their_parameters():
    k = 3
    seen, graphs = [], set()
    for bits in itertools.product((0, 1), repeat=(k - 1) ** 2):
        codes = np.zeros((1, k, k), dtype=int)
        codes[0, 1:, 1:] = np.reshape(bits, (k - 1, k - 1))
        model = hard_instances.coded_pairs(codes, 0.8)
        seen.append(np.asarray(model.weights("x0", "x1")))
        graphs.add(bool(model.edges))
    assert len(graphs) == 2 < len(seen) == 16  # with an edge or without: what a graph can tell of 16 instances
    closest = min(np.abs(a - b).max() for a, b in itertools.combinations(seen, 2))
    assert closest >= 0.8 / 4 * (1 - 1e-9)
    drawn = next(hard_instances.random_tables(8, 4, random_state=0))
    assert drawn.shape == (4, 4, 4)
    assert not drawn[:, 0].any()
    assert len(next(hard_instances.random_codes(10, random_state=0))) == 5


@pytest.mark.parametrize(
    "call",
    [
        lambda: hard_instances.coded_matching([1, 2], 0.5),
        lambda: hard_instances.coded_pairs(np.zeros((2, 3, 2)), 0.5),
        lambda: hard_instances.weighted_matching([]),
        lambda: hard_instances.coded_matching([1, 0], -0.5),
    ],
)
def test_bad_codes_are_refused(call):
    with pytest.raises(InputError):
        call()
