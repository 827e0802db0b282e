"""Consistency against a dense generalised-least-squares solve, and projection against its definition."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from discreet.domain import Domain
from discreet.errors import InputError
from discreet.learn.consistency import consistent, estimated_total, pooled
from discreet.learn.projection import project_simplex, project_table
from discreet.measurement import Measurement, Measurements, Noise

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 2, "d": 3})
GRAPHS = {
    "chain": [("a", "b"), ("b", "c"), ("c", "d")],
    "loop": [("a", "b"), ("b", "c"), ("c", "d"), ("a", "d")],
    "dense": [("a", "b"), ("a", "c"), ("a", "d"), ("b", "c"), ("b", "d"), ("c", "d")],
    "triples": [("a", "b", "c"), ("b", "c", "d"), ("a", "c", "d")],
    "nested": [("a", "b", "c"), ("b", "c"), ("c",), ("c", "d"), ()],
    "apart": [("a", "b"), ("c", "d")],
}


def margin_matrix(clique: tuple[str, ...]) -> np.ndarray:
    """The 0/1 matrix that sums a full table to the table of a clique."""
    cells = np.indices(DOMAIN.shape).reshape(len(DOMAIN), -1)
    shape = tuple(DOMAIN[n].size for n in clique)
    rows = (
        np.ravel_multi_index(tuple(cells[DOMAIN.index(n)] for n in clique), shape)
        if clique
        else np.zeros(cells.shape[1], dtype=int)
    )
    matrix = np.zeros((math.prod(shape), cells.shape[1]))
    matrix[rows, np.arange(cells.shape[1])] = 1
    return matrix


def noisy(cliques: list[tuple[str, ...]], scales: list[float], seed: int = 0) -> Measurements:
    rng = np.random.default_rng(seed)
    full = rng.integers(0, 60, DOMAIN.shape)
    items = []
    for clique, scale in zip(cliques, scales, strict=True):
        shape = tuple(DOMAIN[n].size for n in clique)
        truth = (margin_matrix(clique) @ full.ravel()).reshape(shape)
        noise = Noise("gaussian", scale) if scale else Noise("none")
        counts = np.rint(truth + rng.normal(0, scale, shape)) if scale else truth
        origin = "release" if scale else "public"
        items.append(
            Measurement("t", counts.astype(np.int64), noise, DOMAIN.project(clique), clique=clique, origin=origin)
        )
    return Measurements(items)


def dense_gls(measurements: Measurements) -> tuple[dict[Any, np.ndarray], dict[Any, np.ndarray]]:
    """Tables and their variances by a least-squares solve over all cells of the full table."""
    stacked = np.vstack([margin_matrix(m.clique) / m.standard_deviation for m in measurements])
    y = np.concatenate([m.values.ravel() / m.standard_deviation for m in measurements])
    inverse = np.linalg.pinv(stacked.T @ stacked)
    full = inverse @ stacked.T @ y
    tables, variances = {}, {}
    for m in measurements:
        matrix = margin_matrix(m.clique)
        tables[m.clique] = (matrix @ full).reshape(m.counts.shape)
        variances[m.clique] = np.diag(matrix @ inverse @ matrix.T)
    return tables, variances


@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("seed", range(3))
def test_it_is_generalised_least_squares(graph: str, seed: int) -> None:
    scales = list(np.random.default_rng(seed + 50).uniform(1, 30, len(GRAPHS[graph])))
    measurements = noisy(GRAPHS[graph], scales, seed)
    tables, variances = dense_gls(measurements)
    found = consistent(measurements)
    assert found.keys() == tables.keys()
    for clique, table in found.items():
        np.testing.assert_allclose(table.values, tables[clique], atol=1e-8)
        np.testing.assert_allclose(table.variance, variances[clique], rtol=1e-8)


def test_equal_weights_would_not_be() -> None:
    """The dense solve does notice wrong weights: the mean of two totals of unequal tables is not least squares."""
    measurements = noisy(GRAPHS["nested"], [3.0] * 5)
    tables, _ = dense_gls(measurements)
    plain = np.mean([m.values.sum() for m in measurements])
    assert abs(plain - tables[()]) > 1e-3
    assert estimated_total(measurements) == pytest.approx(float(tables[()]))


def test_public_tables_are_kept_and_pull_the_others() -> None:
    measurements = noisy([("a", "b"), ("b", "c"), ("c", "d")], [9.0, 0.0, 4.0])
    nearly = Measurements(
        m if m.noise.variance else Measurement(m.label, m.counts, Noise("gaussian", 2e-4), m.domain, clique=m.clique)
        for m in measurements
    )
    # A discrete Gaussian of so small a scale has variance zero; the dense solve gets the scale by hand.
    tables, _ = _dense_with(nearly, {("b", "c"): 1e-5})
    found = consistent(measurements)
    np.testing.assert_array_equal(found[("b", "c")].values, measurements[1].values)
    assert found[("b", "c")].variance == 0
    for clique in measurements.cliques:
        np.testing.assert_allclose(found[clique].values, tables[clique], atol=1e-4)


def _dense_with(measurements: Measurements, deviation: dict[Any, float]) -> Any:
    stacked, y = [], []
    for m in measurements:
        sd = deviation.get(m.clique) or m.standard_deviation
        stacked.append(margin_matrix(m.clique) / sd)
        y.append(m.values.ravel() / sd)
    full = np.linalg.lstsq(np.vstack(stacked), np.concatenate(y), rcond=None)[0]
    return {m.clique: (margin_matrix(m.clique) @ full).reshape(m.counts.shape) for m in measurements}, full


def test_several_measurements_of_a_clique_are_pooled() -> None:
    one, two = noisy([("a", "b")], [2.0], 1), noisy([("a", "b")], [4.0], 1)
    both = pooled([*one, *two])[("a", "b")]
    np.testing.assert_allclose(both.values, 0.8 * one[0].values + 0.2 * two[0].values, rtol=1e-6)
    assert both.variance == pytest.approx(1 / (1 / one[0].noise.variance + 1 / two[0].noise.variance))
    chain = Measurements([*one, *two, *noisy([("b", "c")], [3.0], 1)])
    tables, _ = dense_gls(chain)
    np.testing.assert_allclose(consistent(chain)[("a", "b")].values, tables[("a", "b")], atol=1e-8)


def test_a_public_size_is_used_where_rows_are_units() -> None:
    items = noisy(GRAPHS["chain"], [5.0] * 3)
    size = round(estimated_total(items)) + 3
    measurements = Measurements(items, {"public_size": size, "unit": {"column": None}})
    assert estimated_total(measurements) == size
    found = consistent(measurements)
    assert set(found) == set(GRAPHS["chain"])
    assert all(table.total == pytest.approx(size) for table in found.values())
    persons = Measurements(measurements, {"public_size": size, "unit": {"column": "person"}})
    assert estimated_total(persons) != pytest.approx(size, abs=1e-6)


def test_a_stated_size_that_cannot_be_true_is_left_out_with_a_warning() -> None:
    """The budget is spent by then, so it is no error; taken for certain it would wreck every table."""
    items = noisy(GRAPHS["chain"], [5.0] * 3)
    wrong = Measurements(items, {"public_size": 10 * round(estimated_total(items)), "unit": {"column": None}})
    with pytest.warns(UserWarning, match="the curator was told.*not made use of"):
        assert estimated_total(wrong) == estimated_total(items)
    with pytest.warns(UserWarning, match="not made use of"):
        assert all(np.array_equal(t.values, consistent(items)[c].values) for c, t in consistent(wrong).items())


def test_totals_are_never_below_the_least_and_need_a_table() -> None:
    m = Measurement("t", np.array([-5, -6]), Noise("laplace", 9.0), DOMAIN.project(["a"]), clique=("a",))
    assert estimated_total([m]) == 1.0
    assert estimated_total([m], least=-math.inf) == -11
    with pytest.raises(InputError, match="no tables"):
        estimated_total([])
    assert consistent([]) == {}


# -- projection ------------------------------------------------------------------------------------------------------

ROWS = arrays(np.float64, st.tuples(st.integers(1, 4), st.integers(1, 7)), elements=st.floats(-1e3, 1e3))


@given(ROWS, st.floats(0, 100))
@settings(max_examples=200, deadline=None)
def test_projection_is_the_nearest_point(x: np.ndarray, total: float) -> None:
    p = project_simplex(x, total)
    assert np.all(p >= 0)
    np.testing.assert_allclose(p.sum(axis=-1), total, atol=1e-9)
    # Optimality: the gradient x − p is largest, and equal, exactly where p is positive.
    slope = x - p
    for row, at in zip(slope, p, strict=True):
        assert np.all(row[at > 1e-6] >= row.max() - 1e-6) or total == 0


def test_projection_takes_a_total_for_each_row_and_any_shape() -> None:
    p = project_simplex([[3.0, 1.0], [3.0, 1.0]], [1.0, 6.0])
    np.testing.assert_allclose(p, [[1, 0], [4, 2]])
    table = project_table(np.array([[5.0, -4.0], [1.0, 0.0]]), 4.0)
    np.testing.assert_allclose(table, [[4, 0], [0, 0]])
    with pytest.raises(InputError, match="not negative"):
        project_simplex([1.0], -1.0)
    with pytest.raises(InputError, match="at least one cell"):
        project_simplex(np.zeros((3, 0)))
