"""Samples follow the model: sampled marginals against model marginals, with controls that must fail."""

import time

import numpy as np
import pytest
from model_enumeration import joint, random_model
from scipy.special import gammaln, logsumexp
from scipy.stats import chi2

from discreet import networks
from discreet.domain import Attribute, Domain
from discreet.models import MarkovRandomField, Records, generators, to_markov


def chi_square(counts, p):
    """p-value of counts under probabilities p; a count where p is zero is impossible."""
    n = counts.sum()
    if counts[p == 0].any():
        return 0.0
    possible = (p > 0) & (n * p >= 1)
    rest = n * p[~possible].sum()
    statistic = ((counts[possible] - n * p[possible]) ** 2 / (n * p[possible])).sum()
    cells = possible.sum()
    if rest > 0:
        statistic += (counts[~possible].sum() - rest) ** 2 / rest
        cells += 1
    return chi2.sf(statistic, cells - 1) if cells > 1 else 1.0


def p_values(model, records, table):
    """Of all one- and two-column marginals and of the whole table."""
    names = model.domain.names
    groups = [(a,) for a in names] + [(a, b) for i, a in enumerate(names) for b in names[:i]] + [names]
    out = []
    for group in groups:
        truth = table.sum(axis=tuple(i for i, n in enumerate(names) if n not in group))
        ordered = [n for n in names if n in group]
        out.append(chi_square(records.counts(ordered), truth))
    return np.array(out)


@pytest.mark.parametrize("family", ["ising", "pairwise", "binary", "markov", "bayesian"])
@pytest.mark.parametrize("method", ["exact", "gibbs"])
def test_sampled_marginals_are_those_of_the_model(family, method):
    """Bonferroni over all tables; the same test rejects samples of the same model with weights 3× as strong."""
    model = random_model(family, np.random.default_rng(7), 4)
    options = {"chains": 20_000, "burn_in": 60} if method == "gibbs" else {}
    records = model.sample(20_000, 1, method=method, **options)
    assert records.method == method
    values = p_values(model, records, joint(model))
    assert values.min() > 1e-5 / len(values)
    strong = MarkovRandomField(model.domain, dict(3.0 * to_markov(model).potentials))
    wrong = p_values(model, strong.sample(20_000, 1), joint(model))
    assert wrong.min() < 1e-5 / len(wrong)


@pytest.mark.parametrize(
    "model",
    [
        generators.ising(4, generators.chain(4), weight=0.8),
        generators.dirichlet(4, generators.chain(4, 2), levels=3, random_state=0),
        generators.network(4, {1: [0], 2: [0, 1], 3: [2]}, levels=3, random_state=0),
    ],
    ids=["ising", "markov", "bayesian"],
)
@pytest.mark.parametrize("method", ["exact", "gibbs"])
def test_samples_with_evidence_follow_the_conditional(model, method):
    label = model.domain["x1"].labels[-1]
    options = {"chains": 20_000, "burn_in": 40} if method == "gibbs" else {}
    records = model.sample(20_000, 2, given={"x1": label}, method=method, **options)
    assert set(records["x1"].astype(str)) == {label}
    others = ["x0", "x2", "x3"]
    assert chi_square(records.counts(others), model.marginal(others, {"x1": label}).probabilities) > 1e-6
    assert chi_square(records.counts(others), model.marginal(others).probabilities) < 1e-6


@pytest.mark.parametrize("form", [lambda m: m, to_markov])
def test_rounded_samples_have_rounded_expected_counts(form):
    """Each count of a root and of a family given its parents is within one of its expectation; a draw is not."""
    network = generators.network(5, {1: [0], 2: [0, 1], 3: [2], 4: [2]}, levels=3, random_state=3)
    model = form(network)
    n = 10_000
    rounded, drawn = model.sample(n, 5, method="rounded"), model.sample(n, 5)
    assert rounded.method == "rounded"

    def distance(records, name):
        return np.abs(records.counts(name) - n * network.marginal(name).probabilities).max()

    spread = np.sqrt(n) / 3
    for name in network.domain:
        assert distance(rounded, name) <= 15 < spread
    assert max(distance(drawn, name) for name in network.domain) > 15
    if model is network:
        for child, above in network.parents.items():
            table = rounded.counts((*above, child))
            expected = table.sum(axis=-1, keepdims=True) * network.tables[child]
            assert np.abs(table - expected).max() < 1 + 1e-9


def test_rounded_samples_are_right_on_average_and_not_sorted():
    """Unbiased cell by cell over many runs, and the order of the records carries nothing."""
    network = generators.network(3, {1: [0], 2: [1]}, levels=2, random_state=1)
    total = sum(network.sample(7, s, method="rounded").counts(network.domain.names) for s in range(3000))
    expected = 7 * 3000 * joint(network)
    assert np.all(np.abs(total - expected) < 5 * np.sqrt(expected))
    codes = network.sample(10_000, 0, method="rounded").codes
    for column in codes.T.astype(float):
        half = column[:5000].mean() - column[5000:].mean()
        assert abs(half) < 5 * column.std() / np.sqrt(2500)


def test_same_seed_same_records():
    model = random_model("markov", np.random.default_rng(3), 5)
    for method in ("exact", "rounded", "gibbs"):
        a, b, c = (model.sample(100, seed, method=method).codes for seed in (1, 1, 2))
        np.testing.assert_array_equal(a, b)
        assert not np.array_equal(a, c)
    generator = np.random.default_rng(1)
    assert not np.array_equal(model.sample(100, generator).codes, model.sample(100, generator).codes)


def test_approximations_take_over_when_exact_is_too_wide_and_say_so():
    """All pairs alike: the number of +1 has the weight C(p, m) exp(w (M² − p)/2), M = 2m − p, so all is known."""
    p, w = 30, 0.016
    model = generators.ising(p, generators.dense(p), weight=w)
    m = np.arange(p + 1)
    M = 2.0 * m - p
    log_weight = gammaln(p + 1) - gammaln(m + 1) - gammaln(p - m + 1) + w * (M**2 - p) / 2
    log_z = logsumexp(log_weight)
    share = np.exp(log_weight - log_z)
    correlation = (share @ M**2 - p) / (p * (p - 1))
    entropy = log_z - w * (share @ M**2 - p) / 2

    records = model.sample(2000, 0, chains=2000, burn_in=20)
    assert records.method == "gibbs" and "columns" in records.reason
    squares = (2.0 * records.codes - 1).sum(axis=1) ** 2
    spread = squares.std() / np.sqrt(len(squares))
    assert abs(squares.mean() - share @ M**2) < 5 * spread
    assert abs(squares.mean() - p) > 5 * spread  # independent columns are told apart

    answer = model.marginal(["x0", "x1"])
    assert answer.method in ("loopy", "gibbs") and answer.reason
    assert 0 < 4 * answer.probabilities[0, 0] - 1 < 2 * correlation  # belief propagation sees the direct part only
    by_gibbs = model.marginal(["x0", "x1"], method="gibbs", random_state=0, chains=1500, sweeps=20, burn_in=20)
    assert 4 * by_gibbs.probabilities[0, 0] - 1 == pytest.approx(correlation, abs=0.02)
    asked = model.marginal("x0", {"x1": 1}, method="gibbs", random_state=0, chains=50, sweeps=50, burn_in=20)
    assert asked.method == "gibbs" and asked["1"] > 0.5 - 0.02

    estimate = model.estimate_log_partition(random_state=0, particles=100, temperatures=30)
    assert abs(estimate - log_z) < 5 * estimate.standard_error + 1e-9 and estimate.standard_error < 0.1
    guess = model.entropy(samples=200, random_state=0)
    assert abs(guess - entropy) < 6 * guess.standard_error and guess.standard_error < 0.3
    np.testing.assert_allclose(
        model.log_prob(records.codes[:5], log_partition=log_z), model.log_weight(records.codes[:5]) - log_z
    )


def test_binned_numbers_are_drawn_within_their_bins_unless_labels_are_asked_for():
    domain = Domain.of({"age": Attribute.numeric("age", [0, 18, 65, 100], integer=True), "sex": ["f", "m"]})
    model = MarkovRandomField(domain, {("age", "sex"): np.log([[1, 2], [3, 4], [5, 6]])})
    plain, drawn = model.sample(2000, 0, labels=True), model.sample(2000, 0)
    assert plain["age"][0].startswith("[") and drawn["age"].dtype == np.int64
    np.testing.assert_array_equal(plain.codes, drawn.codes)
    np.testing.assert_array_equal(np.searchsorted([18, 65], drawn["age"], side="right"), drawn.codes[:, 0])
    np.testing.assert_array_equal(model.log_prob(drawn.to_pandas()), model.log_prob(plain))
    assert isinstance(drawn, Records) and drawn["age"].max() <= 100


@pytest.mark.parametrize("form", [lambda m: m, to_markov], ids=["network", "junction tree"])
def test_a_million_records_of_alarm_in_seconds(form):
    """Timed loosely (machines differ); z-scores of every family's every cell, and 3× the error is rejected."""
    network = networks.load("alarm")
    model = form(network)
    n = 1_000_000
    start = time.perf_counter()
    records = model.sample(n, 0)
    assert time.perf_counter() - start < 20
    assert records.codes.shape == (n, 37) and records.codes.dtype == np.uint8
    worst = 0.0
    scores = []
    for child, above in network.parents.items():
        p = network.marginal((*above, child)).probabilities
        counts = records.counts((*above, child))
        assert not counts[p == 0].any()
        usual = n * p > 25
        z = (counts - n * p)[usual] / np.sqrt((n * p * (1 - p))[usual] + 1e-12)
        scores.append(z)
        worst = max(worst, np.abs(z).max())
    scores = np.concatenate(scores)
    assert worst < 6 and abs(scores.std() - 1) < 0.15
    assert abs((3 * scores).std() - 1) > 0.15
