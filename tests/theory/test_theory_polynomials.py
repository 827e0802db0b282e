"""Proved numbers for t-wise fields: their steps against enumeration, and what they are together."""

import itertools
import math

import numpy as np
import pytest

from discreet.errors import InputError
from discreet.models import generators
from discreet.papers.theory import polynomials, upper

STATES = np.array(list(itertools.product((-1.0, 1.0), repeat=4)))


def monomials(columns, most):
    return [I for s in range(most + 1) for I in itertools.combinations(columns, s)]


def field(seed):
    """A random field of four columns and order three: its coefficients, probabilities and width."""
    rng = np.random.default_rng(seed)
    h = {I: rng.uniform(-0.25, 0.25) for I in monomials(range(4), 3) if I}
    energy = sum(c * STATES[:, I].prod(axis=1) for I, c in h.items())
    weight = np.exp(energy)
    width = max(sum(abs(c) for I, c in h.items() if i in I) for i in range(4))
    return h, weight / weight.sum(), width


@pytest.mark.parametrize("seed", range(30))
def test_a_small_risk_means_small_derivatives_on_average(seed):
    """For the regression of column 0, another w near the true one or anywhere in the ball: whenever its exact excess
    risk is below the bound for m, all averages E|∂_I d| are at most m."""
    rng = np.random.default_rng(1000 + seed)
    h, chance, width = field(seed)
    features = monomials((1, 2, 3), 2)
    x = np.array([STATES[:, I].prod(axis=1) for I in features])
    true = np.array([2 * h[tuple(sorted((0, *I)))] for I in features])
    y = STATES[:, 0]
    risk = lambda w: float(chance @ np.log1p(np.exp(-y * (w @ x))))  # noqa: E731
    tried = 0
    for size in (1e-3, 1e-2, 0.1, 0.5, 2.0):
        w = true + size * rng.standard_normal(len(true))
        w *= min(1.0, 2 * width / np.abs(w).sum())
        excess = risk(w) - risk(true)
        assert excess > -1e-12
        d = dict(zip(features, true - w, strict=True))
        for m in (0.01, 0.1, 0.5, 1.0):
            if excess <= polynomials._risk_for_average(m, 3, width):
                tried += 1
                for I in features:
                    inner = sum(c * STATES[:, [j for j in J if j not in I]].prod(axis=1) for J, c in d.items()
                                if set(I) <= set(J))  # fmt: skip
                    assert chance @ np.abs(inner) <= m
    assert tried


def test_the_best_threshold_of_the_average_is_taken():
    for m, s, width in itertools.product((0.05, 0.5, 1.5, 5.0), (0, 1, 2), (0.3, 2.0)):
        a = np.linspace(1e-4, m, 20_001)[:-1]
        best = ((m - a) * np.minimum(1.0, 2**s * a**2) / (4 * width)).max()
        taken = min(2 * m / 3, 2 ** (-s / 2))
        assert (m - taken) * 2**s * taken**2 / (4 * width) == pytest.approx(best, rel=1e-3)


def test_multiplicative_weights_close_the_gap_as_fast_as_proved():
    """Five columns, all parities of order at most 2, exact selection: after T steps the average is within √(2p ln 2/T),
    also for data on a single point, where the relative entropy is largest."""
    p, steps = 5, 200
    points = np.array(list(itertools.product((-1.0, 1.0), repeat=p)))
    queries = np.array([points[:, I].prod(axis=1) for I in monomials(range(p), 2) if I])
    signed = np.vstack([queries, -queries])
    rate = math.sqrt(2 * p * math.log(2) / steps)
    for seed in range(4):
        weight = np.random.default_rng(seed).dirichlet(np.full(2**p, 0.2)) if seed else np.eye(2**p)[7]
        log, total = np.zeros(2**p), np.zeros(2**p)
        for _ in range(steps):
            now = np.exp(log - log.max())
            now /= now.sum()
            total += now
            log += rate * signed[int(np.argmax(signed @ (weight - now)))]
        assert (signed @ (weight - total / steps)).max() <= math.sqrt(2 * p * math.log(2) / steps)


def test_values_by_hand():
    p, t, width, alpha, rho = 10, 3, 0.5, 0.2, 0.1
    assert polynomials._features(10, 3) == 1 + 9 + 36 and polynomials._monomials(10, 3) == 10 + 45 + 120
    first, second = polynomials.maximal(p, t, width, alpha, rho, 1 / 4)
    assert second == pytest.approx(32 * 0.25 * math.log(2 * 460 * 8) / 0.04)
    assert upper.lemma_4_4(p, t, width, alpha, rho, proved=True).value == first + second
    error, least = 0.05, 2 * 10 * math.log(2) / 0.05**2
    steps = math.ceil(4 * least)
    by_hand = 2 * math.sqrt(steps / 0.2) * math.log(350 * steps * 20) / (error - math.sqrt(20 * math.log(2) / steps))
    assert by_hand * 0.8 < polynomials.parities(10, 3, error, rho, 1 / 20) <= by_hand
    both = upper.theorem_4_7(p, t, width, alpha, rho, proved=True).value
    assert both >= first + upper.lemma_4_5(p, t, width, alpha, rho / 2, proved=True).value
    blocks = upper.theorem_6_5(p, t, width, 0.2, 1.0, 1e-6, proved=True)
    assert blocks.value % upper.theorem_6_4(p, t, width, 0.2, proved=True).value == pytest.approx(0, abs=1e-3 * first)
    assert blocks.constant == "proved" and "blocks" in blocks.formula
    with pytest.raises(InputError, match="beyond all numbers"):
        upper.theorem_4_2(p, t, 500.0, alpha, rho, proved=True)


def test_at_order_two_the_graph_needs_no_less_than_by_theorem_6_2_with_its_own_proof():
    """Both are proved; the one for t = 2 knows that couplings are single weights and is much smaller."""
    assert upper.theorem_6_2(16, 2, 0.5, 0.3, proved=True).value < upper.theorem_6_4(16, 2, 0.5, 0.3, proved=True).value
    model = generators.binary(6, [(0, 1, 2)], weight=0.4, random_state=0)
    assert model.width <= 0.5  # what λ is in these functions: the largest ℓ₁ norm of ∂_i h


def test_the_perturbed_leader_is_stable_and_its_error_is_within_the_proof():
    p, rng = 4, np.random.default_rng(3)
    z = np.array(list(itertools.product([-1.0, 1.0], repeat=p)))
    queries = np.array([np.prod(z[:, list(i)], axis=1) for k in (1, 2, 3) for i in itertools.combinations(range(p), k)])
    signed = np.concatenate([queries, -queries])
    for eta in (2.0, 8.0):
        for _ in range(5):
            before, more = rng.integers(-3, 4, len(queries)) @ queries, signed[rng.integers(len(signed))]
            own = rng.laplace(0, eta, (20_000, p)) @ z.T
            moved = np.mean((own + before).argmax(axis=1) != (own + before + more).argmax(axis=1))
            assert moved <= p / (2 * eta) + 0.02
    data = rng.dirichlet(np.ones(len(z)))
    errors = []
    for rounds in (50, 800):
        asked, total = np.zeros(len(z)), np.zeros(len(z))
        for _ in range(rounds):
            own = rng.laplace(0, math.sqrt(rounds), (rounds, p)) @ z.T
            now = np.bincount((own + asked).argmax(axis=1), minlength=len(z)) / rounds
            total += now / rounds
            asked += signed[int(np.argmax(signed @ (data - now)))]
        errors.append(float((signed @ (data - total)).max()))
        assert errors[-1] <= polynomials.leader_error(p, len(queries), rounds, math.inf, 1.0, 1e-4)
    assert errors[1] < errors[0] / 16**0.4


def test_the_records_of_lemma_4_6_are_those_of_its_error():
    p, t, error, rho = 10, 3, 0.05, 0.1
    n = polynomials.parities_by_leader(p, t, error, rho, 1 / 20)
    reached = min(
        polynomials.leader_error(p, 175, rounds, n, rho, 1 / 20) for rounds in range(200_000, 3_000_000, 5_000)
    )
    assert reached == pytest.approx(error, rel=0.01)
    assert upper.lemma_4_6(p, t, 0.5, 0.2, rho, proved=True).value == n
    assert upper.theorem_4_7(p, t, 0.5, 0.2, rho, oracle=True, proved=True).constant == "proved"
    few, many = (polynomials.parities_by_leader(p, 2, error, rho, 0.05) for p in (16, 64))
    assert math.log(many / few) / math.log(4) < 1.25  # p times a logarithm, where the paper has p^1.25 times one
