"""Identities and bounds of [ZKKW20] (full version), each test citing the item it holds the code to."""

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from model_enumeration import all_codes, joint, models, random_model
from scipy.special import expit

from discreet.domain import Domain
from discreet.errors import InputError
from discreet.models import BinaryMRF, IsingModel, PairwiseModel, Polynomial, generators

seeds = st.integers(0, 2**32 - 1)


def conditionals(table, axis):
    """P(x_axis | rest) from a joint table, the axis moved last."""
    return np.moveaxis(table / table.sum(axis=axis, keepdims=True), axis, -1)


# -- Definitions 2.1, 2.2, 2.4 ---------------------------------------------------------------------------------------


def test_definition_2_1_code_0_is_minus_one_and_code_1_is_plus_one():
    model = IsingModel([[0, 0.7], [0.7, 0]], [0.3, -0.2])
    weights = {(a, b): math.exp(0.7 * a * b + 0.3 * a - 0.2 * b) for a in (-1, 1) for b in (-1, 1)}
    for (a, b), w in weights.items():
        assert model.probability({"x0": a, "x1": b}) == pytest.approx(w / sum(weights.values()))
    labelled = IsingModel([[0, 0.7], [0.7, 0]], [0.3, -0.2], Domain.of({"s": ["no", "yes"], "t": ["low", "high"]}))
    assert labelled.probability({"s": "yes", "t": "low"}) == pytest.approx(weights[1, -1] / sum(weights.values()))


def test_definition_2_1_width_and_minimum_edge_weight():
    model = IsingModel([[0, -0.5, 0.2], [-0.5, 0, 0], [0.2, 0, 0]], [0.1, -0.4, 0.0])
    assert model.width == pytest.approx(max(0.5 + 0.2 + 0.1, 0.5 + 0.4, 0.2))
    assert model.minimum_edge_weight == 0.2
    assert model.edges == (("x0", "x1"), ("x0", "x2"))


def test_definition_2_2_width_and_minimum_edge_weight():
    W = {("a", "b"): [[1.0, -1.0], [-0.5, 0.5], [-0.5, 0.5]], ("b", "c"): [[0.3, -0.3], [-0.3, 0.3]]}
    Theta = {"a": [0.1, 0.0, -2.0], "b": [0.0, 0.0], "c": [0.0, 0.5]}
    model = PairwiseModel(W, Theta)
    a = max(1.0 + 0.1, 0.5 + 0.0, 0.5 + 2.0)
    b = max(1.0 + 0.3, 1.0 + 0.3)
    c = max(0.3, 0.3 + 0.5)
    assert model.width == pytest.approx(max(a, b, c)) == pytest.approx(2.5)
    assert model.minimum_edge_weight == pytest.approx(0.3)
    np.testing.assert_array_equal(model.weights("c", "b"), model.weights("b", "c").T)


@given(models(families=("pairwise",)))
@settings(max_examples=40, deadline=None)
def test_definition_2_2_as_written(model):
    """λ = max_{i,a} (Σ_{j≠i} max_b |W_ij(a, b)| + |θ_i(a)|) and η = min over edges of max_{a,b} |W_ij(a, b)|."""
    domain = model.domain
    sums = [
        sum(max(abs(w) for w in model.weights(i, j)[a]) for j in domain if j != i) + abs(model.Theta[i][a])
        for i in domain
        for a in range(domain[i].size)
    ]
    assert model.width == pytest.approx(max(sums))
    largest = [np.abs(model.weights(i, j)).max() for i, j in combinations(domain.names, 2)]
    assert model.minimum_edge_weight == min((w for w in largest if w > 0), default=math.inf)


def test_definition_2_4_width_is_the_largest_norm_of_a_derivative():
    model = BinaryMRF.spins({(0, 1, 2): 0.5, (0, 1): -0.25, (2,): 0.75, (3,): 0.1}, 4)
    for name, norm in zip(model.domain, (0.75, 0.75, 1.25, 0.1), strict=True):
        assert model.derivative(name).norm == pytest.approx(norm)
    assert model.width == pytest.approx(1.25) and model.order == 3
    assert model.norm == pytest.approx(1.6)
    assert model.maximal_monomials == (("x3",), ("x0", "x1", "x2"))
    assert model.minimum_edge_weight == 0.5


@given(models(families=("ising",)))
@settings(max_examples=20, deadline=None)
def test_an_ising_model_is_a_pairwise_and_a_binary_model_of_the_same_width(model):
    spread = {
        (a, b): model.A[i, j] * np.array([[1, -1], [-1, 1]])
        for i, a in enumerate(model.domain)
        for j, b in enumerate(model.domain)
        if i < j
    }
    pairwise = PairwiseModel(spread, {n: t * np.array([-1, 1]) for n, t in zip(model.domain, model.theta, strict=True)})
    assert pairwise.width == pytest.approx(model.width)
    assert pairwise.minimum_edge_weight == pytest.approx(model.minimum_edge_weight)
    pairs = {(i, j): model.A[i, j] for i, j in combinations(range(len(model.A)), 2)}
    binary = BinaryMRF.spins({**pairs, **{(i,): t for i, t in enumerate(model.theta)}}, len(model.A))
    assert binary.width == pytest.approx(model.width)
    np.testing.assert_allclose(joint(pairwise), joint(model), atol=1e-12)
    np.testing.assert_allclose(joint(binary), joint(model), atol=1e-12)


# -- Definition 2.3: multilinear polynomials -------------------------------------------------------------------------


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_definition_2_3_derivatives_are_those_of_calculus(seed):
    """h is linear in each variable, so ∂_i h(x) = (h(x with x_i = 1) − h(x with x_i = −1)) / 2, exactly."""
    rng = np.random.default_rng(seed)
    names = tuple("abcde")
    sets = [I for t in range(5) for I in combinations(names, t) if rng.random() < 0.4]
    h = Polynomial(names, {I: float(rng.normal()) for I in sets})
    x = rng.normal(size=(7, 5))
    for i, name in enumerate(names):
        up, down = x.copy(), x.copy()
        up[:, i], down[:, i] = 1, -1
        np.testing.assert_allclose(h.derivative(name)(x), (h(up) - h(down)) / 2, atol=1e-12)
    twice = h.derivative("a").derivative("b")
    assert twice == h.derivative(("b", "a")) == h.derivative("b").derivative("a")
    assert all(h.derivative("a")[I] == h[(*I, "a")] for I in h.derivative("a"))
    for I in h.maximal_monomials:
        assert h[I] != 0 and not any(set(I) < set(J) for J in h)
    for J in h:
        assert any(set(J) <= set(I) for I in h.maximal_monomials)


def test_polynomials_refuse_nonsense():
    with pytest.raises(InputError, match="each of its variables once"):
        Polynomial("ab", {("a", "a"): 1.0})
    with pytest.raises(InputError, match="all among"):
        Polynomial("ab", {("c",): 1.0})
    with pytest.raises(InputError, match="twice"):
        Polynomial("ab", {("a", "b"): 1.0, ("b", "a"): 2.0})
    with pytest.raises(InputError, match="finite"):
        Polynomial("ab", {("a",): math.inf})
    assert Polynomial("ab", {}).maximal_monomials == () and Polynomial("ab", {})["a"] == 0.0


# -- δ-unbiasedness: Lemmas 2.6 to 2.8 -------------------------------------------------------------------------------


@given(models(families=("ising", "pairwise", "binary")))
@settings(max_examples=60, deadline=None)
def test_lemmas_2_7_and_2_8_every_conditional_is_at_least_delta(model):
    table = joint(model)
    smallest = min(conditionals(table, axis).min() for axis in range(table.ndim))
    assert smallest >= model.unbiasedness * (1 - 1e-9)


def test_lemma_2_7_is_nearly_attained_so_the_bound_is_not_vacuous():
    """A star with every neighbour against it: the conditional tends to e^{−2λ}; a bound twice as large would fail."""
    model = generators.ising(4, generators.star(4), weight=0.5)
    smallest = conditionals(joint(model), 0).min()
    assert model.unbiasedness <= smallest < 2.2 * model.unbiasedness


@given(models(families=("ising", "pairwise", "binary")), seeds)
@settings(max_examples=40, deadline=None)
def test_lemma_2_6_marginals_stay_unbiased(model, seed):
    table = joint(model)
    if table.ndim < 2:
        return
    delta = min(conditionals(table, axis).min() for axis in range(table.ndim))
    without = table.sum(axis=seed % table.ndim)
    assert min(conditionals(without, axis).min() for axis in range(without.ndim)) >= delta * (1 - 1e-9)


# -- Conditional probabilities: Lemmas 3.7, 3.10, 4.1 ----------------------------------------------------------------


@given(models(families=("ising",)))
@settings(max_examples=40, deadline=None)
def test_lemma_3_7(model):
    """P(Z_i = 1 | Z_{−i} = x) = σ(Σ_{j≠i} 2 A_ij x_j + 2 θ_i) = σ(⟨w, [x, 1]⟩)."""
    codes = all_codes(model.domain)
    for i, name in enumerate(model.domain):
        truth = conditionals(joint(model), i)
        rest = np.delete(codes, i, axis=1)
        expected = np.array([truth[(*r, 1)] for r in rest])
        np.testing.assert_allclose(expit(model.log_odds(name, codes)), expected, atol=1e-10)
        w = model.logistic_weights(name)
        assert w.shape == (len(model.domain),) and np.abs(w).sum() <= 2 * model.width * (1 + 1e-12)
        x = np.hstack([2.0 * rest - 1, np.ones((len(rest), 1))])
        np.testing.assert_allclose(expit(x @ w), expected, atol=1e-10)


@given(models(families=("pairwise",)))
@settings(max_examples=40, deadline=None)
def test_lemma_3_10(model):
    """P(Z_i = u | Z_i ∈ {u, v}, Z_{−i} = x) = σ(Σ_j (W_ij(u, x_j) − W_ij(v, x_j)) + θ_i(u) − θ_i(v))."""
    codes = all_codes(model.domain)
    for i, attribute in enumerate(model.domain.attributes):
        truth = conditionals(joint(model), i)
        rest = np.delete(codes, i, axis=1)
        for u in range(attribute.size):
            for v in range(attribute.size):
                if u != v:
                    expected = [truth[(*r, u)] / (truth[(*r, u)] + truth[(*r, v)]) for r in rest]
                    odds = model.log_odds(attribute.name, u, v, codes)
                    np.testing.assert_allclose(expit(odds), expected, atol=1e-10)


@given(models(families=("binary",)))
@settings(max_examples=40, deadline=None)
def test_lemma_4_1(model):
    """P(Z_i = 1 | Z_{−i} = x) = σ(2 ∂_i h(x))."""
    codes = all_codes(model.domain)
    for i, name in enumerate(model.domain):
        truth = conditionals(joint(model), i)
        expected = [truth[(*r, 1)] for r in np.delete(codes, i, axis=1)]
        np.testing.assert_allclose(expit(model.log_odds(name, codes)), expected, atol=1e-10)
        np.testing.assert_allclose(model.full_conditional(name, codes)[:, 1], expected, atol=1e-10)


def test_section_5_the_mean_of_a_product_is_tanh_of_the_weight():
    """The paper writes (e^η − 1)/(e^η + 1) = tanh(η/2); with its own Definition 2.1 it is tanh η."""
    model = IsingModel([[0, 0.4], [0.4, 0]])
    p = model.marginal(["x0", "x1"]).probabilities
    assert p[0, 0] + p[1, 1] - p[0, 1] - p[1, 0] == pytest.approx(math.tanh(0.4))


# -- Centring: footnote 2 --------------------------------------------------------------------------------------------


@given(seeds)
@settings(max_examples=40, deadline=None)
def test_centring_changes_the_weights_and_not_the_distribution(seed):
    rng = np.random.default_rng(seed)
    p = int(rng.integers(2, 5))
    levels = rng.integers(1, 4, p).tolist()
    domain = Domain.of({f"x{i}": k for i, k in enumerate(levels)})
    W = {(a, b): rng.normal(2, 1, (domain[a].size, domain[b].size)) for a, b in combinations(domain.names, 2)}
    Theta = {a.name: rng.normal(size=a.size) for a in domain.attributes}
    model = PairwiseModel(W, Theta, domain)
    for table in model.W.values():
        np.testing.assert_allclose(table.sum(axis=0), 0, atol=1e-12)
        np.testing.assert_allclose(table.sum(axis=1), 0, atol=1e-12)
    raw = np.array(
        [
            sum(W[a, b][at[domain.index(a)], at[domain.index(b)]] for a, b in W)
            + sum(Theta[n][c] for n, c in zip(domain, at, strict=True))
            for at in all_codes(domain)
        ]
    )
    raw = np.exp(raw - raw.max())
    np.testing.assert_allclose(joint(model).ravel(), raw / raw.sum(), atol=1e-12)
    again = PairwiseModel(model.W, model.Theta, domain)
    assert again == model  # to the last bit: centring centred weights does nothing


def test_a_pair_that_only_adds_is_no_edge():
    table = np.add.outer([0.1, 0.7, 0.2], [1.3, 0.4])
    model = PairwiseModel({("a", "b"): table}, {"a": np.zeros(3), "b": np.zeros(2)})
    assert model.edges == () and model.minimum_edge_weight == math.inf


def test_pairwise_from_arrays_reads_the_blocks_above_the_diagonal():
    rng = np.random.default_rng(0)
    model = random_model("pairwise", rng, 3)
    W = rng.normal(size=(3, 3, 2, 2))
    Theta = rng.normal(size=(3, 2))
    model = PairwiseModel.from_arrays(W, Theta)
    named = PairwiseModel(
        {("x0", "x1"): W[0, 1], ("x0", "x2"): W[0, 2], ("x2", "x1"): W[1, 2].T},
        {f"x{i}": t for i, t in enumerate(Theta)},
    )
    np.testing.assert_allclose(joint(model), joint(named), atol=1e-12)
    with pytest.raises(InputError, match=r"\(p, p, k, k\)"):
        PairwiseModel.from_arrays(np.zeros((2, 2, 2, 3)))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: IsingModel([[0, 1], [2, 0]]), "symmetric"),
        (lambda: IsingModel([[1, 0], [0, 0]]), "zero diagonal"),
        (lambda: IsingModel([[0, np.nan], [np.nan, 0]]), "finite"),
        (lambda: IsingModel(np.zeros((2, 2)), [1.0]), "A has 2 rows"),
        (lambda: IsingModel(np.zeros((1, 1)), domain=Domain.of({"a": 3})), "'a' has 3"),
        (lambda: PairwiseModel({}, {}), "needs a domain"),
        (lambda: PairwiseModel({("a", "b"): [[1.0]]}, {"a": [0.0], "b": [0.0, 0.0]}), "shape"),
        (lambda: PairwiseModel({("a", "z"): [[1.0]]}, {"a": [0.0]}), "no column 'z'"),
        (lambda: PairwiseModel({("a", "b"): [[1.0]], ("b", "a"): [[1.0]]}, {"a": [0.0], "b": [0.0]}), "twice"),
        (lambda: BinaryMRF({("a", "q"): 1.0}, Domain.of({"a": 2})), "no column 'q'"),
        (lambda: BinaryMRF.spins({(0, 5): 1.0}, 2), "positions 0 … 1"),
    ],
)
def test_wrong_parameters_are_refused_by_name(make, message):
    with pytest.raises(InputError, match=message):
        make()
