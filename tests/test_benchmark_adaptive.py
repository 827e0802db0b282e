"""The benchmark of unknown graphs: peers spend what they say, the yardstick is right, and a run has its rows."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import reduce

import numpy as np
import pytest

from benchmarks import _adaptive_certificates, _adaptive_records, _adaptive_sizes, adaptive
from benchmarks import _adaptive_peers as peers
from benchmarks.harness import Checkpoint, checked_rows, verdict
from discreet.domain import Domain
from discreet.errors import BudgetError
from discreet.privacy.budget import ZCDP, ApproxDP, PureDP
from discreet.privacy.curator import Curator, ExactCurator
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


# -- the rules as they were published ----------------------------------------------------------------------------------


@pytest.fixture
def asked(monkeypatch):
    """Whatever a peer asks for, in order: its share and the query or score."""
    out = []

    def recorded(request):
        def make(share, what, *rest):
            out.append((share, what))
            return request(share, what, *rest)

        return make

    for name in ("Measure", "Select"):
        monkeypatch.setattr(peers, name, recorded(getattr(peers, name)))
    return out


def exactly(learner, codes, budget, domain=DOMAIN):
    return learner.fit(ExactCurator(encode(codes, domain), budget=budget))


def rhos(requests, whole):
    return [share.rho / whole.rho for share, _ in requests]


def from_independence(codes, pair, domain=DOMAIN):
    i, j = map(domain.index, pair)
    x = np.zeros((domain.shape[i], domain.shape[j]))
    np.add.at(x, (codes[:, i], codes[:, j]), 1)
    return float(np.abs(x - np.outer(x.sum(1), x.sum(0)) / len(codes)).sum())


def test_mst_is_a_third_for_columns_one_for_a_largest_tree_and_one_for_its_tables(asked):
    budget, codes = ZCDP(1), _codes()
    exactly(peers.MST(), codes, budget)
    assert rhos(asked, budget) == [Fraction(1, 3), *[Fraction(1, 9)] * 3, Fraction(1, 3)]
    columns, *_, tables = (what for _, what in asked)
    assert columns.cliques == tuple(peers.columns_of(DOMAIN))
    weight = {pair: from_independence(codes, pair) for pair in itertools.combinations("abcd", 2)}
    trees = [t for t in itertools.combinations(weight, 3) if _joins_all(t)]
    assert set(tables.cliques) == set(max(trees, key=lambda t: sum(weight[e] for e in t)))


def _rounds(shares):
    """A selection and a table each."""
    return [a + b for a, b in zip(shares[::2], shares[1::2], strict=True)]


def _joins_all(edges):
    parts = {name: {name} for name in DOMAIN.names}
    for a, b in edges:
        joined = parts[a] | parts[b]
        parts.update(dict.fromkeys(joined, joined))
    return len(parts["a"]) == len(DOMAIN)


def test_aim_looks_with_a_tenth_of_every_round_and_weighs_by_columns(asked):
    """The first round by hand: 16 rounds a column, and the noise that the table would have is taken off."""
    budget, codes = ZCDP(1), _codes()
    exactly(peers.AIM(ways=3), codes, budget)
    first, looking, measuring, *_ = rhos(asked, budget)
    assert first == Fraction(1, 10)
    assert (looking, measuring) == (Fraction(9, 10) / 64 / 10, Fraction(9, 10) / 64 * 9 / 10)
    score, measured = asked[1][1], asked[2][1]
    sigma = 1 / math.sqrt(2 * float(measuring))  # Gaussian noise of a table moved by 1 under add-remove
    cliques = score.query.cliques
    assert set(cliques) == {c for k in (1, 2, 3) for c in itertools.combinations("abcd", k)}
    assert score._weights.tolist() == [len(c) for c in cliques]
    prices = [math.sqrt(2 / math.pi) * sigma * DOMAIN.size(c) for c in cliques]
    assert score._prices.tolist() == pytest.approx(prices, rel=0.05, abs=1)  # rounded, and so is the noise's scale
    worth = {c: len(c) * (_missed(codes, c) - p) for c, p in zip(cliques, prices, strict=True)}
    assert measured.cliques == (max(worth, key=worth.get),)


def _missed(codes, clique):
    """How far independent columns are off, by hand."""
    true = np.zeros([DOMAIN[n].size for n in clique])
    np.add.at(true, tuple(codes[:, DOMAIN.index(n)] for n in clique), 1)
    columns = [np.bincount(codes[:, DOMAIN.index(n)], minlength=DOMAIN[n].size) / len(codes) for n in clique]
    return float(np.abs(true - len(codes) * reduce(np.multiply.outer, columns)).sum())


def test_aim_halves_the_noise_where_nothing_is_learned(asked):
    """A round tells less than its noise: the next has four times the budget, and the last one what is left."""
    every = np.array(list(itertools.product(*map(range, DOMAIN.shape))))
    budget = ZCDP(1)
    exactly(peers.AIM(), np.vstack([np.tile(every, (50, 1)), *[every[:1]] * 3]), budget)  # next to nothing
    rounds = _rounds(rhos(asked, budget)[1:])
    assert [r * Fraction(10, 9) * 64 for r in rounds] == [1, 4, 16, 43]


def test_aim_keeps_its_noise_where_something_is_learned(asked):
    budget = ZCDP(100)
    exactly(peers.AIM(), _codes(), budget)
    rounds = _rounds(rhos(asked, budget)[1:])
    assert rounds[0] == rounds[1] == Fraction(9, 10) / 64
    assert sum(rounds) == Fraction(9, 10)


def test_aim_lets_the_model_grow_with_what_is_spent(asked):
    """Nine cells in the first of 64 rounds: room for pairs of two levels each, beside the other columns."""
    exactly(peers.AIM(most_cells=64 * 9), _codes(), ZCDP(1))
    scores = [what for _, what in asked if isinstance(what, peers.MostMissed)]
    first, last = (set(score.query.cliques) for score in (scores[0], scores[-1]))
    assert {c for c in first if len(c) == 2} == {("a", "c"), ("a", "d"), ("c", "d")}
    assert len(last) == 10


def test_swift_asks_thrice_and_is_one_gaussian(asked):
    exactly(peers.SWIFT(), _codes(), APPROXIMATE)
    whole = APPROXIMATE.to_gaussian()
    shares = [share.mu_squared / whole.mu_squared for share, _ in asked]
    assert shares == pytest.approx([0.1, 0.09, 0.81], rel=1e-9)
    looked, measured = asked[1][1].cliques, asked[2][1].cliques
    assert set(looked) == {c for k in (1, 2) for c in itertools.combinations("abcd", k)}
    assert {("a", "b"), ("b", "c")} <= set(measured) <= set(looked)


def test_swift_takes_the_tree_that_holds_most():
    """The pair with the largest distance leaves no room for others; a penalty on cells puts it last."""
    domain = Domain.of({"a": 2, "b": 2, "c": 2, "w": 40})
    said = {("a", "w"): 500.0, ("a", "b"): 300.0, ("b", "c"): 300.0, ("a", "c"): 290.0}
    learner = peers.SWIFT(most_cells=84)
    assert {"a", "b", "c"} in learner._tree(domain, said)
    assert {"a", "w"} in learner._tree(domain, said | {("a", "w"): 900.0})
    assert {"a", "w"} in peers.SWIFT(most_cells=88)._tree(domain, said)


def test_swift_measures_what_is_worth_its_noise():
    """By the objective as it stands in the source: Σ w·(e − cells·√(2/π)/√B_c), ΣB_c = B, for the best shares."""
    domain = Domain.of({"a": 2, "b": 5, "c": 9, "d": 2})
    cliques = [c for k in (1, 2) for c in itertools.combinations("abcd", k)]
    rng = np.random.default_rng(3)

    def objective(chosen, said, parts, budget):
        whole = sum(parts)
        noise = [
            domain.size(c) * math.sqrt(2 / math.pi / (budget * p / whole)) for c, p in zip(chosen, parts, strict=True)
        ]
        return sum(len(c) * (said[c] - n) for c, n in zip(chosen, noise, strict=True))

    sizes = set()
    for _ in range(30):
        said, budget = dict(zip(cliques, rng.exponential(200, len(cliques)), strict=True)), 0.02
        taken = peers.worth_their_noise(domain, said, 1 / math.sqrt(budget))
        best = objective(list(taken), said, list(taken.values()), budget)
        for _ in range(20):  # no other shares are better
            other = [p * rng.uniform(0.5, 2) for p in taken.values()]
            assert objective(list(taken), said, other, budget) <= best + 1e-9
        order = sorted(cliques, key=lambda c: -said[c] * len(c) ** (1 / 3) / domain.size(c) ** (2 / 3))
        assert list(taken) == order[: len(taken)]
        for more in (-1, 1):  # one fewer, or one more, is worse
            chosen = order[: len(taken) + more]
            if 0 < len(chosen) <= len(order) and more:
                parts = [(len(c) * domain.size(c)) ** (2 / 3) for c in chosen]
                assert objective(chosen, said, parts, budget) <= best + 1e-9
        sizes.add(len(taken))
    assert len(sizes) > 3


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


def test_the_yardstick_of_columns_with_many_levels(monkeypatch):
    """Levels that are taken together are told apart again."""
    rng = np.random.default_rng(3)
    a, wide = rng.integers(0, 3, 3000), rng.geometric(0.05, (3000, 3)).clip(max=80) - 1
    wide[:, 1] = (wide[:, 0] + a) % 80
    columns = Domain.of({"a": 3, "x": 80, "y": 80, "z": 80})
    monkeypatch.setattr(adaptive.Task, "records", (columns, np.column_stack([a, wide])))
    task = adaptive.Task("wide", 0, 0)
    found = [adaptive.measure(task, APPROXIMATE, method) for method in (adaptive.DEFAULT, adaptive.INDEPENDENT)]
    assert 0 < found[0]["triples"] < 1 and found[0]["pairs"] < 1.2 * found[1]["pairs"]


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
    monkeypatch.setattr(_adaptive_certificates, "QUICK_RUNS", 1)
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
    intervals = [r for r in rows if r["what"].startswith("certificate: 90 %")]
    assert len(intervals) == 2 * len(_adaptive_certificates.BUDGETS) and all(0 <= r["ours"] <= 1 for r in intervals)


def test_what_a_certificate_covers():
    """Without noise everything; of another model's tables nothing."""
    found = _adaptive_certificates.covered("classes of 12 columns", ApproxDP(600, "1e-9"), 0, 0)
    assert found["of"] == 66 and found["pairs"] > 50 and found["bound"] is True
    codes = np.array([[0, 1], [0, 1], [1, 0], [1, 1]])
    assert _adaptive_certificates._apart(codes, np.array([[0.0, 0.5], [0.25, 0.25]])) == 0
    assert _adaptive_certificates._apart(codes, np.array([[1.0, 0.0], [0.0, 0.0]])) == 1


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
    monkeypatch.setattr(_adaptive_records, "PROGRAM_RESULTS", tmp_path / "kept.json")
    monkeypatch.setattr(adaptive.Task, "records", (DOMAIN, _codes()))
    kept = Checkpoint(None)
    rows = checked_rows(
        _adaptive_records.rows([adaptive.Task("tiny", 0, 0)], APPROXIMATE, kept, tmp_path, adaptive.errors_of_records)
    )
    skipped = [f"skipped {program}: it cannot be installed here" for program in _adaptive_records.PROGRAMS]
    assert [r.get("note", "") for r in rows] == [*skipped, ""]
    assert not (tmp_path / "kept.json").exists()  # another machine may have it
    assert rows[-1]["ours"] == pytest.approx(rows[-1]["reference"], abs=0.1)  # d tells nothing and is not told


def test_what_a_program_made_is_measured_once_and_kept(monkeypatch, tmp_path):
    made, calls = _codes()[:500], []

    def made_by(peer, domain, true, budget, folder):
        calls.append(peer)
        return made, {"version": "1.0", "cpu_seconds": 1e6}

    monkeypatch.setattr(_adaptive_records.peers, "environment", lambda package, folder: tmp_path)
    monkeypatch.setattr(_adaptive_records.peers, "made_by", made_by)
    monkeypatch.setattr(_adaptive_records, "PROGRAM_RESULTS", tmp_path / "kept.json")
    monkeypatch.setattr(adaptive.Task, "records", (DOMAIN, _codes()))
    tasks = [adaptive.Task("tiny", 0, 0)]
    for _ in range(2):
        again = _adaptive_records.rows(tasks, APPROXIMATE, Checkpoint(None), tmp_path, adaptive.errors_of_records)
        rows = [r for r in checked_rows(again) if r["reference_name"] == "OpenDP AIM (1.0)"]
    assert calls == list(_adaptive_records.PROGRAMS)
    expected = adaptive.errors_of_records(tasks[0], made)
    assert rows[0]["reference"] == pytest.approx(expected["pairs"]) and rows[0]["target"] == rows[0]["reference"]
    faster = next(r for r in rows if "seconds" in r["what"])
    assert verdict(faster) == "met" and faster["ours"] == faster["seconds"] / 1e6
