"""The lemmas behind the bounds, against exact enumeration and simulation; each with a version that must fail."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import binom

from discreet.errors import InputError
from discreet.papers.theory import composition, lemmas, packing, stability


def sigma(x):
    return 1 / (1 + np.exp(-x))


def softplus(x):
    return np.logaddexp(0, x)


def excess(weights, r1, r2):
    """E KL(σ(r₁)‖σ(r₂)), exactly."""
    return float(weights @ (softplus(r2) - softplus(r1) - sigma(r1) * (r2 - r1)))


# -- loss to parameters ----------------------------------------------------------------------------------------------


def test_the_curve_constant_is_the_infimum_and_attained():
    a = np.linspace(-15, 15, 1501)[:, None]
    d = np.concatenate([-np.geomspace(0.02, 30, 700), np.geomspace(0.02, 30, 700), [-1.0, 1.0]])[None]
    ratio = np.exp(np.abs(a)) * (softplus(a + d) - softplus(a) - sigma(a) * d) / np.minimum(1, d * d)
    assert ratio.min() >= lemmas.CURVE * (1 - 1e-9)
    assert ratio.min() <= lemmas.CURVE * (1 + 1e-9)


def spin_tables(p, rng, scale):
    """All x ∈ {±1}^(p−1) with the exact law of the other nodes of a random Ising model, and node 0's weights."""
    A = np.triu(rng.normal(0, scale, (p, p)), 1)
    A, theta = A + A.T, rng.normal(0, scale, p)
    z = np.array(list(itertools.product((-1.0, 1.0), repeat=p)))
    chance = np.exp(0.5 * np.einsum("ni,ij,nj->n", z, A, z) + z @ theta)
    chance = (chance / chance.sum()).reshape((2,) * p)
    marginal = chance.sum(axis=0)
    x = np.array(list(itertools.product((-1.0, 1.0), repeat=p - 1)))
    return x, marginal, 2 * A[0, 1:], 2 * theta[0]


def exact_unbiasedness(marginal):
    return min(
        float((np.minimum(*np.split(marginal, 2, axis=i)) / marginal.sum(axis=i, keepdims=True)).min())
        for i in range(marginal.ndim)
    )


@pytest.mark.parametrize("seed", range(20))
def test_lemma_3_9_on_random_ising_models(seed):
    rng = np.random.default_rng(seed)
    x, marginal, u, theta = spin_tables(5, rng, 0.2)
    weights = marginal.reshape(-1)
    delta, norm = exact_unbiasedness(marginal), np.abs(u).sum() + abs(theta)
    closest = 0.0
    for _ in range(300):
        step = rng.normal(size=len(u) + 1) * 10 ** rng.uniform(-3, 0.5)
        if rng.random() < 0.5:  # errors that cancel on one side of one coordinate are the worst kind
            step[:] = 0
            j = rng.integers(len(u))
            step[j] = rng.choice([-1, 1]) * 10 ** rng.uniform(-3, 0.5)
            step[-1] = rng.choice([-1, 1]) * step[j]
        r1, r2 = x @ u + theta, x @ (u + step[:-1]) + theta + step[-1]
        gamma = excess(weights, r1, r2)
        if gamma < 1e-12:
            continue
        bound = lemmas.parameter_error(gamma, norm=norm, unbiased=delta)
        assert np.abs(step[:-1]).max() <= bound * (1 + 1e-9)
        closest = max(closest, np.abs(step[:-1]).max() / bound)
    assert closest > 0.1  # not vacuous


def test_lemma_3_9_is_nearly_attained_so_half_of_it_is_false():
    # u₁ = 0, one coordinate with a strong field, an error that shows on its rare side only
    field = 2.0
    rare = 1 / (1 + math.exp(2 * field))
    step = 0.2
    gamma = rare * float(softplus(2 * step) - softplus(0) - step)
    bound = lemmas.parameter_error(gamma, norm=0.0, unbiased=rare)
    assert step <= bound <= 2 * step


def test_unbiasedness_bounds_every_conditional_and_is_attained():
    rng = np.random.default_rng(0)
    for _ in range(50):
        _, marginal, u, theta = spin_tables(4, rng, 0.7)
        own = sigma(-(np.abs(u).sum() + abs(theta)))
        assert own >= lemmas.unbiasedness((np.abs(u).sum() + abs(theta)) / 2) * (1 - 1e-12)
        assert marginal.ndim == 3
    assert lemmas.unbiasedness(1.0) == pytest.approx(1 / (1 + math.exp(2)))
    assert lemmas.unbiasedness(1.0, 3) >= math.exp(-2) / 3


@pytest.mark.parametrize("k", [2, 3, 5])
def test_lemma_3_12_on_random_distributions(k):
    rng = np.random.default_rng(k)
    columns = 3
    levels = np.array(list(itertools.product(range(k), repeat=columns)))
    for _ in range(40):
        marginal = rng.dirichlet(np.full(k**columns, 3.0)).reshape((k,) * columns)
        weights = marginal.reshape(-1)
        delta = min(float((marginal / marginal.sum(axis=i, keepdims=True)).min()) for i in range(columns))
        u1, step = rng.normal(size=(columns, k)), rng.normal(size=(columns, k)) * 10 ** rng.uniform(-3, 0)
        u1, step = (m - m.mean(axis=1, keepdims=True) for m in (u1, step))
        theta, shift = rng.normal(size=2)
        r1 = sum(u1[i, levels[:, i]] for i in range(columns)) + theta
        r2 = r1 + sum(step[i, levels[:, i]] for i in range(columns)) + shift * np.abs(step).max()
        norm = np.abs(u1).max(axis=1).sum() + abs(theta)
        bound = lemmas.parameter_error(excess(weights, r1, r2), norm=norm, unbiased=delta, k=k)
        assert np.abs(step).max() <= bound * (1 + 1e-9)


def test_lemma_4_3_on_random_polynomials():
    rng = np.random.default_rng(3)
    p, degree = 4, 2
    x = np.array(list(itertools.product((-1.0, 1.0), repeat=p)))
    sets = [I for s in range(degree + 1) for I in itertools.combinations(range(p), s)]
    features = np.array([[np.prod(row[list(I)]) for I in sets] for row in x])
    for _ in range(60):
        marginal = rng.dirichlet(np.full(2**p, 3.0)).reshape((2,) * p)
        delta = exact_unbiasedness(marginal)
        u1, step = rng.normal(size=len(sets)) * 0.3, rng.normal(size=len(sets)) * 10 ** rng.uniform(-4, -1)
        gamma = excess(marginal.reshape(-1), features @ u1, features @ (u1 + step))
        facts = {"norm": float(np.abs(u1).sum()), "unbiased": delta}
        whole = lemmas.polynomial_error(gamma, variables=p, degree=degree, **facts)
        assert np.abs(step).sum() <= whole * (1 + 1e-9)
        for i, I in enumerate(sets):
            if len(I) == degree:  # maximal
                assert abs(step[i]) <= lemmas.derivative_error(gamma, order=degree, **facts) * (1 + 1e-9)
        slopes = features[:, 1 : p + 1]
        linear = step[1] + sum(step[sets.index((0, j))] * slopes[:, j] for j in range(1, p))  # ∂_{0}
        for level in (0.001, 0.01, 0.1):
            tail = float(marginal.reshape(-1) @ (np.abs(linear) >= level))
            assert tail <= lemmas.derivative_tail(gamma, order=1, at_least=level, **facts) + 1e-12


def test_loss_for_error_inverts_parameter_error():
    for k in (2, 3, 7):
        for error in (0.01, 0.3):
            gamma = lemmas.loss_for_error(error, norm=1.5, unbiased=0.05, k=k)
            assert lemmas.parameter_error(gamma, norm=1.5, unbiased=0.05, k=k) == pytest.approx(error)
    assert lemmas.parameter_error(1.0, norm=1.5, unbiased=0.05) == math.inf


def test_correlation_of_a_pair_is_tanh():
    eta = 0.7
    z = np.array(list(itertools.product((-1, 1), repeat=2)))
    chance = np.exp(eta * z[:, 0] * z[:, 1])
    assert lemmas.correlation(eta) == pytest.approx(float((chance / chance.sum()) @ (z[:, 0] * z[:, 1])))
    assert lemmas.correlation(eta) != pytest.approx(math.tanh(eta / 2), rel=0.2)


def test_generalisation_holds_on_simulated_regressions():
    # The gap is at most the bound with probability 1 − β, and is some way below it: 200 draws, none may exceed it.
    rng = np.random.default_rng(0)
    q, n, radius = 6, 400, 2.0
    w = np.zeros(q)
    w[0] = radius
    bound = lemmas.generalisation(n, radius=radius, features=q, failure=1e-9)
    for _ in range(200):
        x = rng.choice([-1.0, 1.0], (n, q))
        y = np.where(rng.random(n) < sigma(x @ w), 1, -1)
        vertices = np.concatenate([np.eye(q), -np.eye(q)]) * radius
        empirical = softplus(-y[:, None] * (x @ vertices.T)).mean(axis=0)
        likely, other = softplus(-radius), softplus(radius)  # of a margin of +C and of −C
        true = np.full(2 * q, (likely + other) / 2)
        true[0] = sigma(radius) * likely + sigma(-radius) * other
        true[q] = sigma(radius) * other + sigma(-radius) * likely
        assert (true - empirical).max() <= bound


def test_frank_wolfe_gap_bounds_a_run_of_it():
    rng = np.random.default_rng(1)
    n, q, radius, rho = 3000, 5, 1.5, 0.5
    x = rng.choice([-1.0, 1.0], (n, q))
    y = np.where(rng.random(n) < sigma(x @ np.array([1.0, -0.3, 0, 0, 0])), 1, -1)

    def loss(w):
        return softplus(-y * (x @ w)).mean()

    steps = 40
    best, w = np.inf, np.zeros(q)
    for t in range(1, 4000):  # the minimum, by the same method without noise
        g = -(y * sigma(-y * (x @ w))) @ x / n
        j = np.abs(g).argmax()
        s = np.zeros(q)
        s[j] = -radius * np.sign(g[j])
        w = w + 2 / (t + 2) * (s - w)
        best = min(best, loss(w))
    b = math.sqrt((steps - 1) / (2 * rho)) / n
    for _ in range(30):
        w = np.zeros(q)
        for t in range(1, steps):
            g = -(y * sigma(-y * (x @ w))) @ x / n
            scores = -radius * np.concatenate([g, -g]) + rng.gumbel(0, radius * b, 2 * q)
            pick = scores.argmax()
            s = np.zeros(q)
            s[pick % q] = radius if pick < q else -radius
            w = w + 2 / (t + 2) * (s - w)
        noisy = steps - 1
        bound = 2 * radius**2 / (steps + 2) + radius * b * (math.log(2 * q) + math.log(noisy / 1e-9))
        assert loss(w) - best <= bound
    found = lemmas.frank_wolfe_gap(n, radius=radius, features=q, rho=rho, failure=1e-9)
    assert found <= bound * 1.5  # the best number of steps does not do much worse than forty
    assert lemmas.frank_wolfe_gap(n, radius=radius, features=q, rho=rho, failure=0.1, replace_one=True) > (
        lemmas.frank_wolfe_gap(n, radius=radius, features=q, rho=rho, failure=0.1)
    )


def test_records_for_risk_is_the_least_number():
    facts = {"radius": 2.0, "features": 10, "failure": 0.1}
    n = lemmas.records_for_risk(0.05, rho=0.1, **facts)
    for size, enough in ((n * 1.01, True), (n * 0.99, False)):
        risk = lemmas.generalisation(size, radius=2.0, features=10, failure=0.05)
        risk += lemmas.frank_wolfe_gap(size, radius=2.0, features=10, rho=0.1, failure=0.05)
        assert (risk <= 0.05) is enough
    assert lemmas.records_for_risk(0.05, **facts) < n


# -- Lemma 6.1 -------------------------------------------------------------------------------------------------------


def test_mode_failure_bounds_a_simulation_of_the_histogram():
    # The bound is an expectation over at most some union bounds: with 40,000 runs the estimate has a standard error
    # of at most 0.0025, and six of them are allowed (failure by chance below 1e-8).
    rng = np.random.default_rng(5)
    epsilon, delta, runs = 1.0, 1e-3, 40_000
    for blocks in (30, 40, 60):
        right = rng.binomial(blocks, 2 / 3, runs)
        noisy = right + rng.laplace(0, 2 / epsilon, runs)
        rival = np.where(right < blocks, blocks - right + rng.laplace(0, 2 / epsilon, runs), -np.inf)
        failed = np.mean((noisy <= stability.threshold(epsilon, delta)) | (rival >= noisy))
        bound = stability.mode_failure(blocks, epsilon, delta)
        assert failed <= bound + 0.015
        assert bound <= failed + 0.15  # and not vacuous


def test_blocks_needed_is_the_least_and_grows_as_the_lemma_says():
    for epsilon, delta in ((1.0, 1e-6), (0.2, 1e-6), (1.0, 1e-12)):
        m = stability.blocks_needed(epsilon, delta, success=0.9)
        assert stability.mode_failure(m, epsilon, delta) <= 0.1 < stability.mode_failure(m - 1, epsilon, delta)
    few = stability.blocks_needed(0.05, 1e-6, success=0.9)
    assert few == pytest.approx(2 * stability.blocks_needed(0.1, 1e-6, success=0.9), rel=0.1)
    assert stability.blocks_needed(1.0, 1e-6, success=0.9, base_success=0.99) < stability.blocks_needed(
        1.0, 1e-6, success=0.9
    )
    with pytest.raises(InputError, match=r"base_success=0\.4"):
        stability.blocks_needed(1.0, 1e-6, success=0.9, base_success=0.4)


# -- composition -----------------------------------------------------------------------------------------------------


def randomised_response(steps, epsilon0, epsilon):
    """The exact δ(ε) of ``steps`` randomised responses."""
    flips = np.arange(steps + 1)
    chance = binom.pmf(flips, steps, 1 / (1 + math.exp(epsilon0)))
    loss = epsilon0 * (steps - 2 * flips)
    return float(chance @ np.maximum(0.0, -np.expm1(np.minimum(epsilon - loss, 0.0))))


def test_strong_composition_is_sound_and_the_printed_one_is_not():
    for steps, epsilon0, slack in ((1000, 1.0, 0.1), (100, 0.1, 1e-6), (20, 0.5, 1e-3), (3, 1.0, 1e-6)):
        epsilon, delta = composition.strong_composition(steps, epsilon0, slack=slack)
        assert randomised_response(steps, epsilon0, epsilon) <= delta + 1e-12
    epsilon, delta = composition.strong_composition_as_printed(1000, 1.0, slack=0.1)
    assert epsilon == pytest.approx(117.5, abs=0.1)
    assert randomised_response(1000, 1.0, epsilon) > 0.99 > delta
    assert randomised_response(1000, 1.0, 450.0) > 0.1
    assert composition.strong_composition(3, 1.0, slack=1e-6) == (3.0, 0.0)
    printed = composition.strong_composition_as_printed(100, 0.1, slack=1e-6)[0]
    assert printed >= composition.strong_composition(100, 0.1, slack=1e-6)[0]


def test_conversions_agree_with_the_curators_own():
    from discreet.privacy.budget import ZCDP, ApproxDP, PureDP

    for rho, delta in ((0.1, 1e-6), (1.0, 1e-9), (0.003, 1e-5)):
        tight = composition.tight_epsilon_of_rho(rho, delta)
        assert tight == pytest.approx(float(ZCDP(str(rho)).to_approx(str(delta)).epsilon), rel=1e-6)
        assert tight < composition.epsilon_of_rho(rho, delta)
    assert composition.rho_within(1, 1e-6) == pytest.approx(float(ApproxDP(1, "1e-6").to_zcdp().rho), rel=1e-6)
    assert composition.rho_of_epsilon(1.0) == pytest.approx(float(PureDP(1).to_zcdp().rho), rel=1e-6)
    assert composition.concentrated_composition(7, 0.1) == pytest.approx(0.7)


# -- packing ---------------------------------------------------------------------------------------------------------


def best_packing_success(instances, epsilon, n):
    """The best ε-DP answer to "which of M tables is it?", all at distance n from each other: the exponential one."""
    return math.exp(epsilon * n) / (math.exp(epsilon * n) + instances - 1)


def test_pure_packing_against_the_best_mechanism():
    # M tables of n equal records each, "which record is it": randomised response at ε·n is the best there is.
    for bits in (3, 6, 12):
        for epsilon in (0.1, 1.0):
            least = packing.pure_packing(bits * math.log(2), epsilon)
            for n in range(1, 200):
                if best_packing_success(2**bits, epsilon, n) >= 2 / 3:
                    assert n >= least
                    assert least >= 0.5 * (n - 1) - 1 / epsilon  # and not vacuous
                    break


def test_concentrated_packing_against_gaussian_noise():
    # One-hot sums of M records types, Gaussian noise: success by simulation; whoever succeeds obeys the bound.
    rng = np.random.default_rng(0)
    instances, rho = 256, 0.05
    least = packing.concentrated_packing(math.log(instances), rho)
    noise = 1 / math.sqrt(rho)  # replacing a record moves the sums by √2: σ² = 2/(2ρ)
    for n in range(1, 60):
        drawn = rng.normal(0, noise, (4000, instances))
        drawn[:, 0] += n
        if np.mean(drawn.argmax(axis=1) == 0) >= 2 / 3 - 0.06:
            assert n >= least
            assert least >= n / 4
            break


def test_coupled_packing_against_repetition():
    # A coin of bias b shown n times, M = 2^d product coins: for M = 2 compare with the optimal private test's order.
    far = packing.coupled_packing(20.0, 1.0, 1.0, replace_one=True)
    near = packing.coupled_packing(20.0, 1.0, 0.1, replace_one=True)
    assert near == pytest.approx(10 * far)
    assert packing.coupled_packing(20.0, 1.0, 0.1) == pytest.approx(near / 2)
    # by hand at c = 3: ln(M − 1)/(3εV) for s = 2/3, and the optimised c is at least as good
    assert near >= math.log(math.exp(20.0) - 1) / (3 * 0.1)
    assert packing.coupled_packing(20.0, 1.0, 1.0, replace_one=True) < packing.pure_packing(20.0, 1.0)


def test_fano_against_the_best_test():
    # M Gaussian-like hypotheses: one of M coins has bias; the maximum-likelihood test succeeds only above the bound.
    rng = np.random.default_rng(2)
    instances, bias = 64, 0.4
    information = 0.5 * ((1 + bias) * math.log(1 + bias) + (1 - bias) * math.log(1 - bias))
    least = packing.fano(math.log(instances), information)
    assert least > 20
    n = math.floor(least)
    heads = rng.binomial(n, 0.5, (4000, instances))
    heads[:, 0] = rng.binomial(n, (1 + bias) / 2, 4000)
    assert np.mean(heads.argmax(axis=1) == 0) < 2 / 3 + 0.05


# -- fingerprinting --------------------------------------------------------------------------------------------------


def noisy_means(n, d, scale, rng, runs):
    """Clipped means with Gaussian noise, on the prior of the lemma: (estimates, means, records)."""
    mu = rng.uniform(-1 / 3, 1 / 3, (runs, d))
    x = np.where(rng.random((runs, n, d)) < (1 + mu[:, None]) / 2, 1.0, -1.0)
    estimate = np.clip(x.mean(axis=1) + rng.normal(0, scale, (runs, d)), -1 / 3, 1 / 3)
    return estimate, mu, x


def test_the_fingerprinting_identity():
    # E[w(μ)(f − μ)Σ(X_i − μ)] = 2E[μf]; 400,000 coordinates, six standard errors.
    rng = np.random.default_rng(7)
    estimate, mu, x = noisy_means(10, 40, 0.2, rng, 10_000)
    w = (1 / 9 - mu**2) / (1 - mu**2)
    left = w * (estimate - mu) * (x.sum(axis=1) - 10 * mu)
    difference = left - 2 * mu * estimate
    assert abs(difference.mean()) <= 6 * difference.std() / math.sqrt(difference.size)
    assert abs((2 * left - 2 * mu * estimate).mean()) > 12 * difference.std() / math.sqrt(difference.size)
    z = np.abs(w[:, None] * (2 / 3) * (x - mu[:, None]))
    assert z.max() <= packing._LARGEST_TERM
    assert z.max() >= 0.95 * packing._LARGEST_TERM


@pytest.mark.parametrize("n", [20, 100, 400])
def test_fingerprinting_holds_for_the_gaussian_mechanism(n):
    # Whatever accuracy noisy means reach at (ε, δ) with n records, the lemma must not ask for more than n of them.
    rng = np.random.default_rng(n)
    d, epsilon, delta = 50, 1.0, 1e-5
    sensitivity = 2 * math.sqrt(d) / n
    scale = sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon
    estimate, mu, _ = noisy_means(n, d, scale, rng, 60)
    norms = np.linalg.norm(estimate - mu, axis=1)
    least = packing.fingerprinting(d, norms.mean(), (norms**2).mean(), epsilon, delta, replace_one=True)
    assert least <= n
    if n == 400:
        assert least > 0.2  # the bound says something here
        # a mechanism without noise reaches an accuracy that the lemma rules out for private ones
        exact, mu, _ = noisy_means(n, 40 * d, 0.0, rng, 3)
        norms = np.linalg.norm(exact - mu, axis=1)
        assert packing.fingerprinting(40 * d, norms.mean(), (norms**2).mean(), 0.1, 1e-9, replace_one=True) > n


def test_the_printed_lemma_is_weaker_than_the_derived_one():
    d, gamma, epsilon, n = 200.0, 1.0, 0.5, 100
    ours = packing.fingerprinting(d, gamma, gamma**2, epsilon, 3 / (64 * n), replace_one=True)
    assert ours > packing.fingerprinting_as_printed(d, gamma, epsilon)
    with pytest.raises(InputError, match="d/54"):
        packing.fingerprinting_as_printed(d, 2.0, epsilon)
