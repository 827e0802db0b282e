"""The search for the number of records, and the curve through its runs, on methods whose truth is known."""

import math

import numpy as np
import pytest

from benchmarks import _structure_search as search
from benchmarks.harness import Checkpoint, row
from benchmarks.structure import Cells, by_importance, remark


@pytest.mark.parametrize("start", [None, 100, 436, 5000, 90_000])
@pytest.mark.parametrize("needed", [50, 437, 20_000])
def test_the_search_ends_at_the_least_n_of_its_grid(needed, start, monkeypatch):
    monkeypatch.setattr(search, "is_right", lambda method, truth, kind, n, seed: n >= needed)
    asked = search.Search(search.DEFAULT, "matching", 4, 0, runs=10, step=1.15)
    found = asked(start)
    assert found["n"] >= needed and found["n"] <= max(100, needed * 1.16)
    assert found["above"] is None if needed < 100 else needed > found["above"] >= needed / 1.16
    assert all(runs == (10 if n >= needed else 2) for n, _, runs in found["tried"])  # given up at the second failure
    assert remark(found, asked) == {}


def test_what_a_search_knows_when_it_stops(monkeypatch):
    monkeypatch.setattr(search, "is_right", lambda method, truth, kind, n, seed: False)
    never = search.Search(search.DEFAULT, "matching", 4, 0, most=1e4)
    assert never()["n"] is None and 8_000 < never()["above"] <= 1e4
    assert "not at" in remark(never(), never)["note"]
    late = search.Search(search.MODE, "matching", 4, 0, seconds=0.0)
    assert {k: v for k, v in late().items() if k != "tried"} == {"n": None, "above": None}
    assert "not searched" in remark(late(), late)["note"]
    row("what", "setting", late()["n"], **remark(late(), late))  # rows without a number are rows


def test_the_curve_finds_nine_of_ten():
    """Binomial counts around known curves; the estimate is within 4 % (its standard error is some 0.7 %)."""
    rng = np.random.default_rng(0)
    tried, truth = {}, {8: 300.0, 16: 350.0, 64: 500.0}
    for p, ninety in truth.items():
        middle = math.log(ninety) - math.log(9) / 12
        tried[p] = []
        for n in np.geomspace(0.7 * ninety, 1.3 * ninety, 8):
            chance = 1 / (1 + math.exp(-12 * (math.log(n) - middle)))
            tried[p].append([n, int(rng.binomial(400, chance)), 400])
    found = search.smoothed(tried)
    assert found == {p: pytest.approx(n, rel=0.04) for p, n in truth.items()}


def test_every_cell_is_measured_once():
    every = list(by_importance())
    assert len(every) == len(set(every)) == 4 * 6 * len(search.ALL)
    slow = Cells(Checkpoint(None), False, 0)
    assert slow.search("grid", 256, search.MODE).seconds == 0 and slow.search("grid", 8, search.MODE).seconds > 0
