"""Searches for the best fit have one thread; what surrounds them keeps its own."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.optimize  # noqa: F401  # its library of linear algebra is there before threads are counted
from threadpoolctl import threadpool_info, threadpool_limits

from discreet import Domain, encode
from discreet.count_table import CountTable
from discreet.inference.exact import ExactEngine
from discreet.learn.fields.likelihood import Field
from discreet.learn.fields.mirror import flow_to
from discreet.learn.regressions.spins import SpinRegressions
from discreet.learn.spins.field import SpinField
from discreet.privacy.budget import PureDP
from discreet.privacy.curator import Curator
from discreet.tables import jobs
from discreet.tables.memory import MemoryTable
from discreet.tables.open import open_table
from discreet.threads import one_thread

DOMAIN = Domain.of({"a": 3, "b": 3, "c": 3})


def threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.fixture
def two():
    with threadpool_limits(2, user_api="blas"):
        if threads() != {2}:
            pytest.skip("linear algebra has one thread here")
        yield


@pytest.fixture
def seen(monkeypatch):
    seen = []
    run = Field.__call__
    monkeypatch.setattr(Field, "__call__", lambda self, theta: seen.append(threads()) or run(self, theta))
    return seen


def test_inside_there_is_one_thread(two):
    with pytest.raises(ValueError, match="on purpose"), one_thread():
        assert threads() == {1}
        raise ValueError("on purpose")
    assert threads() == {2}


def test_a_search_has_one_thread(two, seen):
    field = Field(DOMAIN, [("a", "b"), ("b", "c")])
    field.maximise(field.uniform(), np.full(field.size, 0.1), start=np.ones(field.size))
    assert seen and all(one == {1} for one in seen) and threads() == {2}


@pytest.mark.parametrize("deviation", [30.0, 0.5], ids=["much noise", "little noise"])
def test_a_flow_has_one_thread(two, seen, deviation):
    counts = np.random.default_rng(1).integers(100, 900, (3, 3)).astype(float)
    pair = ("a", "b")
    flow = flow_to(DOMAIN, {pair: CountTable(pair, counts, deviation**2)}, float(counts.sum()))
    flow.path()
    assert seen and all(one == {1} for one in seen) and threads() == {2}


@pytest.mark.parametrize("where", ["memory", "a file"])
def test_while_rows_are_counted_there_is_one_thread(two, tmp_path, monkeypatch, where):
    domain = Domain.of({"a": 2, "b": 2})
    if where == "memory":
        table = MemoryTable(domain, [np.zeros(9, dtype=np.uint8)] * 2, threads=2, batch_rows=3)
    else:
        (tmp_path / "rows.csv").write_text("a,b\n" + "0,1\n" * 9)
        table = open_table(tmp_path / "rows.csv", domain, threads=2)
    told, count = [], jobs.Counting.sum_batch
    monkeypatch.setattr(jobs.Counting, "sum_batch", lambda self, batch: told.append(threads()) or count(self, batch))
    assert table.count([("a", "b")])[0].sum() == 9
    assert told and all(one == {1} for one in told) and threads() == {2}


def spins(columns):
    codes = np.random.default_rng(0).integers(0, 2, (3000, 1)).repeat(columns, axis=1)
    return encode({f"c{i}": codes[:, i] for i in range(columns)}, Domain.of({f"c{i}": [0, 1] for i in range(columns)}))


def test_a_field_of_regressions_has_one_thread(two, seen):
    SpinRegressions(steps=2).fit(Curator(spins(3), budget=PureDP(100)))
    assert seen and all(one == {1} for one in seen) and threads() == {2}


def test_spins_on_a_tree_have_one_thread(two, monkeypatch):
    seen, run = [], ExactEngine.calibrate
    monkeypatch.setattr(ExactEngine, "calibrate", lambda *given: seen.append(threads()) or run(*given))
    SpinField(max_edges=2).fit(Curator(spins(22), budget=PureDP(100)))
    assert seen and {1} in seen and threads() == {2}
