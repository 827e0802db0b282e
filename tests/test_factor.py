import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from discreet.domain import Domain
from discreet.errors import InputError
from discreet.factor import CliqueVector, Factor, logsumexp, subtract

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 4})
INF = np.inf


def factor(names: str, seed: int = 0, batch: tuple[int, ...] = ()) -> Factor:
    own = DOMAIN.project(tuple(names))
    return Factor(own, np.random.default_rng(seed).standard_normal((*batch, *own.shape)))


def test_a_sum_covers_the_union_of_columns_in_any_axis_order():
    f, g = factor("ab"), factor("cb", 1)
    total = f + g
    assert total.names == ("a", "b", "c")
    np.testing.assert_allclose(total.values, f.values[:, :, None] + g.values.T[None])
    np.testing.assert_allclose((g + f).transpose("abc").values, total.values)
    np.testing.assert_allclose((f + 2.5).values, f.values + 2.5)
    np.testing.assert_allclose((2.5 + f).values, f.values + 2.5)


def test_zero_over_zero_is_zero_and_makes_no_nan():
    f = Factor(DOMAIN.project("a"), np.array([-INF, 1.0]))
    assert (f - f).values.tolist() == [-INF, 0.0]
    assert (f + f).values.tolist() == [-INF, 2.0]
    assert (f - 3.0).values.tolist() == [-INF, -2.0]
    assert subtract(np.array([1.0]), np.array([-INF])).tolist() == [INF]


def test_elimination_of_columns():
    f = factor("abc")
    p = f.exp()
    np.testing.assert_allclose(f.logsumexp(["b"]).exp(), p.sum(axis=1))
    np.testing.assert_allclose(f.logsumexp().exp(), p.sum())
    np.testing.assert_allclose(f.project(["c", "a"]).exp(), p.sum(axis=1).T)
    np.testing.assert_allclose(f.max(["a", "c"]).exp(), p.max(axis=(0, 2)))
    np.testing.assert_allclose(f.normalize().exp().sum(), 1.0)
    assert f.logsumexp([]) is f


def test_sums_survive_extremes_and_all_zero_rows():
    values = np.array([[1000.0, 999.0], [-INF, -INF], [-1000.0, -INF]])
    np.testing.assert_allclose(logsumexp(values, 1), [1000 + np.log1p(np.exp(-1)), -INF, -1000.0])


def test_conditioning_takes_the_slice_and_ignores_strangers():
    f = factor("abc")
    np.testing.assert_array_equal(f.condition({"b": 2, "z": 9}).values, f.values[:, 2])
    assert f.condition({"z": 9}) is f
    with pytest.raises(InputError, match=r"column 'b' has codes 0 … 2, got 3"):
        f.condition({"b": 3})
    with pytest.raises(InputError, match="a code"):
        f.condition({"b": "yes"})


def test_batches_lead_and_broadcast():
    f, g = factor("ab", batch=(5,)), factor("bc", 1)
    total = f + g
    assert total.batch_shape == (5,)
    np.testing.assert_allclose(total.values[3], (factor_at(f, 3) + g).values)
    np.testing.assert_allclose(total.project("c").values[3], (factor_at(f, 3) + g).project("c").values)
    np.testing.assert_allclose(total.normalize().exp().sum(axis=(1, 2, 3)), np.ones(5))
    np.testing.assert_allclose(total.condition({"c": 1}).values, total.values[..., 1])
    assert f.transpose("ba").values.shape == (5, 3, 2)


def factor_at(f: Factor, i: int) -> Factor:
    return Factor(f.domain, f.values[i])


def test_mistakes_are_named():
    with pytest.raises(InputError, match=r"needs a table of shape \(…, 2, 3\), got \(3, 2\)"):
        Factor(DOMAIN.project(tuple("ab")), np.zeros((3, 2)))
    with pytest.raises(InputError, match="non-negative"):
        Factor.from_probabilities(DOMAIN.project("a"), [0.5, -0.5])
    with pytest.raises(InputError, match="non-negative"):
        Factor.from_probabilities(DOMAIN.project("a"), [0.5, np.nan])
    with pytest.raises(InputError, match="cannot normalise"):
        Factor.from_probabilities(DOMAIN.project("a"), [0.0, 0.0]).normalize()
    with pytest.raises(InputError, match="every column"):
        factor("ab").transpose("a")


@given(st.permutations("abc"), st.integers(0, 3))
def test_projection_is_the_marginal_in_the_order_asked(names, k):
    f = factor("abc")
    wanted = names[:k]
    expected = np.einsum("abc->" + "".join(wanted), f.exp())
    np.testing.assert_allclose(f.project(wanted).exp(), expected)


# -- clique vectors --------------------------------------------------------------------------------------------------


def vector(seed: int = 0, batch: tuple[int, ...] = ()) -> CliqueVector:
    return CliqueVector(DOMAIN, {("a", "b"): factor("ab", seed, batch), ("b", "c"): factor("bc", seed + 1, batch)})


def test_a_clique_vector_is_a_frozen_mapping():
    v = vector()
    assert v.cliques == (("a", "b"), ("b", "c")) and len(v) == 2
    assert v[("a", "b")].names == ("a", "b")
    with pytest.raises(TypeError):
        v[("a", "b")] = factor("ab")  # type: ignore[index]
    with pytest.raises(KeyError):
        v[("a", "c")]


def test_factors_are_brought_into_domain_order():
    v = CliqueVector(DOMAIN, {("b", "a"): factor("ba")})
    assert v.cliques == (("a", "b"),)
    np.testing.assert_array_equal(v[("a", "b")].values, factor("ba").values.T)
    with pytest.raises(InputError, match="domain order"):
        CliqueVector(DOMAIN, {("b", "a"): np.zeros((3, 2))})


def test_arithmetic():
    v, w = vector(0), vector(5)
    for c in v:
        np.testing.assert_allclose((v + w)[c].values, v[c].values + w[c].values)
        np.testing.assert_allclose((v - w)[c].values, v[c].values - w[c].values)
        np.testing.assert_allclose((2 * v)[c].values, 2 * v[c].values)
    assert v.dot(w) == pytest.approx(sum(float((v[c].values * w[c].values).sum()) for c in v))
    extra = CliqueVector(DOMAIN, {("c",): factor("c")})
    assert set((v + extra).cliques) == {("a", "b"), ("b", "c"), ("c",)}
    np.testing.assert_allclose((v - extra)[("c",)].values, -factor("c").values)


def test_a_zero_probability_times_minus_infinity_counts_as_zero():
    potential = CliqueVector(DOMAIN, {("a",): np.array([-INF, 2.0])})
    probability = CliqueVector(DOMAIN, {("a",): np.array([0.0, 1.0])})
    assert potential.dot(probability) == 2.0
    assert (0.0 * potential)[("a",)].values.tolist() == [0.0, 0.0]


def test_of_adds_up_factors_on_the_same_columns():
    v = CliqueVector.of(DOMAIN, [factor("ab"), factor("ba", 1), factor("c")])
    np.testing.assert_allclose(v[("a", "b")].values, factor("ab").values + factor("ba", 1).values.T)
    assert v.cliques == (("a", "b"), ("c",))
