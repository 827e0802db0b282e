"""The benchmark of unknown graphs: peers spend what they say, the yardstick is right, and a run has its rows."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from benchmarks import _adaptive_peers as peers
from benchmarks import _adaptive_records, _adaptive_sizes, adaptive
from benchmarks.harness import Checkpoint, checked_rows, verdict
from discreet.domain import Domain
from discreet.errors import BudgetError
from discreet.privacy.budget import ApproxDP, PureDP
from discreet.privacy.curator import Curator
from discreet.privacy.queries.distances import Distances
from discreet.privacy.unit import PrivacyUnit
from discreet.tables.encode import encode

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 2, "d": 2})
APPROXIMATE = ApproxDP(1, "1e-9")


def _codes(n=3000):
    """a, b and c in a chain of copies with errors; d alone."""
    rng = np.random.default_rng(0)
    a = rng.integers(0, 2, n)
    b = np.where(rng.random(n) < 0.9, a, 2)
    c = np.where(rng.random(n) < 0.9, np.minimum(b, 1), rng.integers(0, 2, n))
    return np.stack([a, b, c, rng.integers(0, 2, n)], axis=1)


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize(
    "learner, budget",
    [(kind(), budget) for kind in (peers.MST, peers.AIM) for budget in (APPROXIMATE, PureDP(1))]
    + [(peers.SWIFT(likelihood=fit), APPROXIMATE) for fit in (False, True)],
    ids=str,
)
def test_peers_spend_what_they_say_and_no_more(learner, budget, relation):
    unit = PrivacyUnit(relation=relation)
    curator = Curator(encode(_codes(), DOMAIN), unit, budget)
    model = learner.fit(curator)
    assert 0.999 * budget.epsilon <= curator.spent.epsilon <= budget.epsilon
    assert curator.spent <= budget
    assert {tuple(sorted(edge)) for edge in model.edges} >= {("a", "b"), ("b", "c")}
    planned = learner.plan(DOMAIN, unit, budget)
    assert {step.get("step") for step in curator.statement()["steps"]} >= {step.name for step in planned.steps}


def test_swift_has_no_pure_form():
    with pytest.raises(BudgetError, match="Gaussian"):
        peers.SWIFT().plan(DOMAIN, PrivacyUnit(), PureDP(1))


def test_scores_move_by_no_more_than_is_said():
    """One record more, or another one in its place, against every record of the domain."""
    cliques = [("a",), ("a", "b"), ("b", "c", "d")]
    rng = np.random.default_rng(1)
    expected = [rng.uniform(0, 9, DOMAIN.project(c).shape) for c in cliques]
    score = peers.MostMissed(Distances(DOMAIN, cliques, expected), [1.4, 2.6, 0.0], [1, 2, 3])
    base = _codes(20)

    def scores(codes):
        return score.scores(encode(codes, DOMAIN).sum(score.query))

    every = np.array(list(itertools.product(*map(range, DOMAIN.shape))))
    more = [np.abs(scores(np.vstack([base, record])) - scores(base)).max() for record in every]
    other = [np.abs(scores(np.vstack([base[1:], record])) - scores(base)).max() for record in every]
    assert max(more) == score.linf(PrivacyUnit()) == 3
    assert max(other) == score.linf(PrivacyUnit(relation="replace-one")) == 6


def test_the_yardstick(monkeypatch):
    monkeypatch.setattr(adaptive.Task, "records", (DOMAIN, _codes()))
    task = adaptive.Task("tiny", 0, 0)
    assert {way: len(tables) for way, tables in task.tables.items()} == {"pairs": 6, "triples": 4, "five columns": 0}
    assert adaptive.errors(task, lambda c: adaptive.proportions(*task.records, c)) == {"pairs": 0, "triples": 0}
    independent = adaptive.measure(task, APPROXIMATE, adaptive.INDEPENDENT)
    codes, by_hand = _codes(), []
    for i, j in itertools.combinations(range(4), 2):
        cells = itertools.product(range(DOMAIN.shape[i]), range(DOMAIN.shape[j]))
        x, y = codes[:, i], codes[:, j]
        by_hand.append(sum(abs(np.mean((x == u) & (y == v)) - np.mean(x == u) * np.mean(y == v)) for u, v in cells) / 2)
    assert independent["pairs"] == pytest.approx(np.mean(by_hand))


def test_few_enough_sets_of_few_enough_cells(monkeypatch):
    monkeypatch.setattr(adaptive, "DRAWS", 1000)
    domain = Domain.of({f"x{i}": 2 + 40 * (i % 2) for i in range(40)})
    rng = np.random.default_rng(0)
    fives = adaptive.some_sets(domain, 5, 100, rng)
    assert len(set(fives)) == len(fives) == 100
    assert max(domain.size(c) for c in fives) <= adaptive.MOST_CELLS
    assert len(adaptive.some_sets(domain, 2, 10**6, rng)) == 40 * 39 // 2


def test_a_small_run_has_its_rows(monkeypatch, tmp_path):
    """On asia in place of the larger networks, without the slowest methods."""
    monkeypatch.setattr(adaptive, "RECORDS", 1000)
    monkeypatch.setattr(adaptive, "DRAWS", 60)
    monkeypatch.delenv("DISCREET_DATA", raising=False)
    monkeypatch.setattr(adaptive, "NO_AIM_QUICKLY", ("NLTCS", "child", "sachs"))
    monkeypatch.setattr(_adaptive_sizes, "QUICK", ((50, 3),))
    monkeypatch.setattr(adaptive, "METHODS", {n: m for n, m in adaptive.METHODS.items() if "searched" not in n})
    monkeypatch.setattr(adaptive.networks, "load", lambda name, load=adaptive.networks.load: load("asia"))
    rows = checked_rows(adaptive.run(quick=True, seed=3, data=tmp_path))
    assert "skipped" in rows[0]["note"] and verdict(rows[0]) == "—"
    beside = {r["reference_name"] for r in rows if r["what"] == "mean TV, pairs" and r["reference"] is not None}
    assert beside == {adaptive.INDEPENDENT, "MST by rule", adaptive.SWIFT_NAME, adaptive.SWIFT_LIKELIHOOD}
    asked = [r for r in rows if r["setting"].startswith("child") and r["reference"] is None and "TV" in r["what"]]
    assert [r["target"] for r in asked] == [0.0106, 0.0215, 0.055]
    assert all(0 < r["ours"] < 1 for r in rows if r["what"].startswith("mean TV,"))
    sizes = [r for r in rows if r["reference_name"] == "independent columns, same budget"]
    assert [r["setting"].split(", ε")[0] for r in sizes] == ["random network, 50 records × 3 columns"] * 2


def test_accuracy_is_that_of_the_last_column_given_the_others():
    """c copies b but for one in ten; nothing tells b's copies apart."""
    domain, codes = DOMAIN.project(["a", "b", "c"]), _codes()[:, :3]
    likely = np.mean(codes[:, 2] == np.minimum(codes[:, 1], 1))
    assert _adaptive_records.accuracy(domain, codes, codes, 0) == pytest.approx(likely, abs=0.03)
    noise = np.random.default_rng(2).permuted(codes, axis=0)
    assert _adaptive_records.accuracy(domain, noise, codes, 0) < likely - 0.1
    alone = np.where(np.arange(3) == 2, 1, codes)
    assert _adaptive_records.accuracy(domain, alone, codes, 0) == pytest.approx(np.mean(codes[:, 2]), abs=0.03)


def test_a_program_that_cannot_be_had_is_a_row_that_says_so(monkeypatch, tmp_path):
    monkeypatch.setattr(_adaptive_records.peers, "environment", lambda package, folder: None)
    monkeypatch.setattr(adaptive.Task, "records", (DOMAIN, _codes()))
    kept = Checkpoint(None)
    rows = checked_rows(
        _adaptive_records.rows([adaptive.Task("tiny", 0, 0)], APPROXIMATE, kept, tmp_path, adaptive.errors_of_records)
    )
    assert [r.get("note", "")[:18] for r in rows] == ["skipped OpenDP MST", "skipped OpenDP AIM", ""]
    assert rows[-1]["ours"] == pytest.approx(rows[-1]["reference"], abs=0.1)  # d tells nothing and is not told
