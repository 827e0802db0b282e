"""Hundreds of columns: the default narrows its candidates, finds what there is, pays for it, and stays quick."""

import resource
import time
from itertools import pairwise

import numpy as np
import pytest

from discreet import ApproxDP, Curator, Domain, PrivacyUnit
from discreet.errors import CostError
from discreet.forecasts import cost_forecast
from discreet.inference.exact import ExactEngine, get_engine
from discreet.learn.fields import distance_rounds, rounds
from discreet.learn.fields.adaptive import AdaptiveField
from discreet.learn.fields.rounds import candidate_pairs
from discreet.learn.procedure import Whole
from discreet.privacy.claims import contradictions
from discreet.release.agreement import disagreements
from discreet.spec import resolve
from discreet.tables.memory import MemoryTable

BUDGET = ApproxDP(1, "1e-9")


def chain(columns, records, seed=0):
    """Binary columns in a row, in a random order: each equals the one before with a chance of some 0.8."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(columns)
    codes = np.empty((columns, records), dtype=np.uint8)
    codes[order[0]] = rng.random(records) < 0.4
    for a, b in pairwise(order.tolist()):
        codes[b] = codes[a] ^ (rng.random(records) < rng.uniform(0.15, 0.25))
    domain = Domain.of({f"c{i:03d}": 2 for i in range(columns)})
    edges = {tuple(sorted(domain.names[i] for i in pair)) for pair in pairwise(order.tolist())}
    return domain, codes, edges


def learned(domain, codes, budget=BUDGET, learner=None):
    with Curator(MemoryTable(domain, list(codes)), PrivacyUnit(), budget) as curator:
        return (learner or AdaptiveField()).fit(curator)


def distances(model, codes):
    """Mean total variation of all pairs, of the model and of exact independent columns."""
    spins = codes.astype(np.float64)
    both, ones = spins @ spins.T / codes.shape[1], spins.mean(axis=1)
    found = get_engine(model.domain, model.potentials.cliques).calibrate(model.potentials).pairs().matrix
    off = ~np.eye(len(codes), dtype=bool)
    # A table of two binary columns is told by its two margins and one cell.
    cells = [both, ones[:, None] - both, ones[None, :] - both, 1 - ones[:, None] - ones[None, :] + both]
    ours = [found[1::2, 1::2], found[1::2, ::2], found[::2, 1::2].copy(), found[::2, ::2]]
    alone = [np.outer(a, b) for a in (ones, 1 - ones) for b in (ones, 1 - ones)]
    total = 0.5 * sum(np.abs(x - y) for x, y in zip([cells[0], cells[1], cells[2], cells[3]], ours, strict=True))
    independent = 0.5 * sum(np.abs(x - y) for x, y in zip(cells, alone, strict=True))
    return float(total[off].mean()), float(independent[off].mean())


@pytest.mark.chance
def test_a_hundred_columns_are_found_with_few_evaluations(monkeypatch):
    runs = []
    evaluate = ExactEngine.marginals
    monkeypatch.setattr(ExactEngine, "marginals", lambda *given: runs.append(1) or evaluate(*given))
    domain, codes, edges = chain(100, 50_000)
    model = learned(domain, codes)
    tables = {tuple(t) for t in model.card["tables"]}
    assert len(edges & tables) >= 90
    assert len(tables) <= 300
    ours, independent = distances(model, codes)
    assert ours < 0.5 * independent
    assert len(runs) <= 1500


def test_all_that_many_columns_ask_is_planned_and_paid_for():
    """Eight steps, the plan's names in the records, and a file whose guarantee can be computed again."""
    domain, codes, _ = chain(85, 2000)
    assert len(candidate_pairs(domain, 100_000)) > rounds.MOST_CANDIDATES
    procedure = AdaptiveField().prepare(Whole(domain, PrivacyUnit(), BUDGET))
    names = [step.name for step in procedure.steps]
    assert len(names) == 8 and "3,570 pairs" in names[1] and "680 pairs" in names[2]
    assert sum(t.share for t in procedure.tables) == pytest.approx(1)
    model = learned(domain, codes)
    assert not contradictions(model.card)
    booked = [step["step"] for step in model.card["steps"] if "step" in step]
    assert list(dict.fromkeys(booked)) == names


def test_candidates_are_the_largest_that_were_released(monkeypatch):
    """What is looked at again follows from the noisy distances alone."""
    monkeypatch.setattr(distance_rounds, "MOST_CANDIDATES", 100)
    monkeypatch.setattr(distance_rounds, "KEPT", 3)
    domain, codes, edges = chain(20, 50_000)
    with Curator(MemoryTable(domain, list(codes)), PrivacyUnit(), ApproxDP(100, "1e-6")) as curator:
        released = AdaptiveField().prepare(Whole(domain, PrivacyUnit(), ApproxDP(100, "1e-6"))).run(curator)
    kept = {tuple(c) for c in released.found["narrowed"]}
    assert len(kept) == 60
    assert edges <= kept
    # and `verify` holds them against the step that has paid for them
    true = dict(released.found)
    assert disagreements(released.release, None, true) == []
    for wrong in (
        {"narrowed_deviation": true["narrowed_deviation"] / 2},
        {"narrowed": [*true["narrowed"]] * 4},
        {"more": true["narrowed"], "more_deviation": true["narrowed_deviation"]},
        {"narrowed": true["narrowed"][1:], "pairs": [[true["narrowed"][0], 5]]},
    ):
        (said,) = disagreements(released.release, None, true | wrong)
        assert "no step has paid" in said or "not among the largest" in said


def test_candidates_of_ten_thousand_columns_are_bounded():
    domain = Domain.of({f"c{i:05d}": 2 for i in range(10_000)})
    pairs = candidate_pairs(domain, 100_000)
    assert 0.9 * rounds.MOST_PAIRS < len(pairs) <= rounds.MOST_PAIRS
    assert all(0 < domain.index(b) - domain.index(a) <= 50 for a, b in pairs[::997])
    wide = Domain.of({"a": 1000, "b": 1000, "c": 2})
    assert candidate_pairs(wide, 100_000) == [("a", "c"), ("b", "c")]


def test_the_forecast_is_made_of_the_columns_alone_and_what_is_too_much_is_refused_at_once():
    sizes = {columns: Domain.of({f"c{i:05d}": 2 for i in range(columns)}) for columns in (60, 500, 10_000)}
    forecasts = {}
    for columns in (60, 500):
        procedure = AdaptiveField().prepare(Whole(sizes[columns], PrivacyUnit(), BUDGET))
        forecasts[columns] = cost_forecast(resolve(sizes[columns]), sizes[columns], procedure)
    assert forecasts[60].bytes < forecasts[500].bytes < 600 * 2**20
    assert forecasts[60].seconds < forecasts[500].seconds < 120
    assert "up to some" in forecasts[500].lines()[0]
    with pytest.raises(CostError, match=r"10,000 columns with 20,000 levels.*Nothing was asked.*fewer columns"):
        AdaptiveField().prepare(Whole(sizes[10_000], PrivacyUnit(), BUDGET))


def test_one_wide_column_among_few_is_not_too_much():
    domain = Domain.of({"postcode": 10_000, "a": 2, "b": 3})
    AdaptiveField().prepare(Whole(domain, PrivacyUnit(), BUDGET))


@pytest.mark.slow
@pytest.mark.chance
def test_five_hundred_columns_within_two_minutes_and_two_gigabytes():
    domain, codes, edges = chain(500, 100_000)
    start = time.process_time()
    model = learned(domain, codes)
    assert time.process_time() - start < 120
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss < 2 * 2**20
    assert len(edges & {tuple(t) for t in model.card["tables"]}) > 480
    ours, independent = distances(model, codes)
    assert ours < 0.8 * independent
