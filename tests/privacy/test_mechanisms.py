"""Noise: the shape is right (and a wrong one is rejected), ranges hold, calibration is exact, thresholds hide keys."""

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from dp_accounting.pld import privacy_loss_distribution
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from discreet.measurement import Noise
from discreet.privacy import mechanisms
from discreet.privacy.budget import rho_within
from discreet.privacy.mechanisms import NoiseCall, SecureGateway
from discreet.privacy.unit import Sensitivity
from discreet.progress import listening

F = Fraction
ONE = Sensitivity(1, 1, 1, 1)
GATEWAY = SecureGateway()
REJECT = 1e-6
DRAWS = 20_000


# -- shape ---------------------------------------------------------------------------------------------------------


def pmf(kind, scale, reach):
    """Probabilities of −reach … reach, and of everything beyond, lumped together."""
    z = np.arange(-200 * math.ceil(scale) - 200, 200 * math.ceil(scale) + 201, dtype=float)
    weight = np.exp(-np.abs(z) / scale) if kind == "laplace" else np.exp(-(z**2) / (2 * scale**2))
    p = weight / weight.sum()
    inside = np.abs(z) <= reach
    return np.append(p[inside], p[~inside].sum())


def shape_pvalue(noise, kind, scale):
    """χ² of whole-number noise against the exact probabilities."""
    reach = math.ceil(3.5 * scale)
    observed = np.append(
        np.bincount(noise[np.abs(noise) <= reach] + reach, minlength=2 * reach + 1), (np.abs(noise) > reach).sum()
    )
    expected = pmf(kind, scale, reach) * len(noise)
    dense = expected >= 5
    lump = lambda x: np.append(x[dense], x[~dense].sum() + 0.0)  # noqa: E731
    observed, expected = lump(observed), lump(expected)
    keep = expected > 0
    return stats.chisquare(observed[keep], expected[keep] * observed[keep].sum() / expected[keep].sum()).pvalue


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("scale", [0.4, 1.0, 3.7])
def test_noise_has_the_exact_shape(kind, scale):
    noise = GATEWAY.add_noise(NoiseCall(kind, scale, ONE), np.zeros(DRAWS, dtype=np.int64))
    assert shape_pvalue(noise, kind, scale) > REJECT
    # A scale 10 % off is rejected, either way, and so is the other distribution.
    assert shape_pvalue(noise, kind, scale * 1.1) < REJECT
    assert shape_pvalue(noise, kind, scale / 1.1) < REJECT
    assert shape_pvalue(noise, "gaussian" if kind == "laplace" else "laplace", scale) < REJECT


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
def test_large_scales_by_their_variance(kind):
    scale = 1e4
    noise = GATEWAY.add_noise(NoiseCall(kind, scale, ONE), np.zeros(DRAWS, dtype=np.int64)).astype(float)
    ratio = noise.var() / Noise(kind, scale).variance
    assert abs(ratio - 1) < 0.15  # six standard errors for Laplace, whose kurtosis is six
    assert abs(noise.mean()) < 6 * noise.std() / math.sqrt(DRAWS)


def test_noise_is_independent_from_cell_to_cell_and_call_to_call():
    call = NoiseCall("gaussian", 5.0, ONE)
    a, b = (GATEWAY.add_noise(call, np.zeros(DRAWS, dtype=np.int64)) for _ in range(2))
    assert not np.array_equal(a, b)
    for x, y in ((a, b), (a[1:], a[:-1]), (np.abs(a[1:]), np.abs(a[:-1]))):
        assert abs(np.corrcoef(x, y)[0, 1]) < 6 / math.sqrt(len(x))


@pytest.mark.parametrize("kind", ["laplace", "gaussian"])
@pytest.mark.parametrize("base", [2**31 - 1, 2**31, 2**32, 2**40, 2**53 + 1, 2**62, -(2**62)])
def test_sums_of_64_bits_keep_all_their_bits(kind, base):
    values = np.array([base, base + 1, base + 2], dtype=np.int64)
    noisy = GATEWAY.add_noise(NoiseCall(kind, 2.0, ONE), values)
    assert noisy.dtype == np.int64
    assert np.abs(noisy - values).max() < 200
    exact = GATEWAY.add_noise(NoiseCall(kind, 1e-3, ONE), values)  # so little noise that it is none
    assert np.array_equal(exact, values)


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (2, 3, 4), (40_000,)])
def test_any_shape_comes_back(shape):
    values = np.full(shape, 7, dtype=np.int64)
    noisy = GATEWAY.add_noise(NoiseCall("laplace", 1e-3, ONE), values)
    assert noisy.shape == shape
    assert np.array_equal(noisy, values)
    assert noisy is not values


def test_progress_is_reported_while_noise_is_drawn():
    seen = []
    with listening(lambda label, done, total: seen.append((label, done, total))):
        GATEWAY.add_noise(NoiseCall("laplace", 1.0, ONE), np.zeros(40_000, dtype=np.int64))
    assert seen[0] == ("drawing noise", 0, 3)
    assert seen[-1] == ("drawing noise", 3, 3)
    assert mechanisms.forecast_seconds("gaussian", 10**6) > mechanisms.forecast_seconds("laplace", 10**6) > 1


def test_secrets_are_long_and_new():
    secrets = {GATEWAY.secret() for _ in range(100)}
    assert len(secrets) == 100
    assert {len(s) for s in secrets} == {16}


# -- selection -----------------------------------------------------------------------------------------------------

SCORES = np.array([20, 22, 26, 16], dtype=np.int64)


def permute_and_flip(scores, scale):
    """Exact probabilities, by going through all orders. A candidate is taken with probability e^{(q − q*)/b}."""
    heads = np.exp((scores - scores.max()) / scale)
    out = np.zeros(len(scores))
    for order in itertools.permutations(range(len(scores))):
        alive = 1.0
        for i in order:
            out[i] += alive * heads[i]
            alive *= 1 - heads[i]
    return out / math.factorial(len(scores))


def exponential(scores, scale):
    weight = np.exp((scores - scores.max()) / scale)
    return weight / weight.sum()


LAWS = {"permute-and-flip": permute_and_flip, "exponential": exponential}


@pytest.mark.parametrize("kind", LAWS)
def test_selection_probabilities_are_exact(kind):
    scale = 2.0
    call = NoiseCall(kind, scale, ONE)
    picks = np.bincount([GATEWAY.select(call, SCORES) for _ in range(DRAWS)], minlength=4)
    law = LAWS[kind]
    assert law(SCORES, scale).sum() == pytest.approx(1)
    assert stats.chisquare(picks, law(SCORES, scale) * DRAWS).pvalue > REJECT
    for wrong in (law(SCORES, scale * 1.1), law(SCORES, scale / 1.1)):
        assert stats.chisquare(picks, wrong * DRAWS).pvalue < REJECT
    other = LAWS["exponential" if kind == "permute-and-flip" else "permute-and-flip"](SCORES, scale)
    assert stats.chisquare(picks, other * DRAWS).pvalue < REJECT


@pytest.mark.parametrize("kind", LAWS)
def test_selection_is_as_private_as_it_says_for_scores_that_move_both_ways(kind):
    """The exact laws that the draws above have been compared with: ratio at most e^{2Δ/b}, for every ±1 change."""
    scale = 2.0
    largest = 0.0
    for change in itertools.product((-1, 0, 1), repeat=4):
        p, q = LAWS[kind](SCORES, scale), LAWS[kind](SCORES + np.array(change), scale)
        largest = max(largest, float(np.abs(np.log(p / q)).max()))
    assert largest <= 2 / scale * (1 + 1e-9)
    assert largest > 1.2 / scale  # ... and the monotone discount (Δ/b) would be wrong


def test_the_exponential_mechanism_is_zcdp_at_half_the_range_squared():
    scale, rho = 1.5, 1 / (2 * 1.5**2)
    for change in itertools.product((-1, 0, 1), repeat=4):
        p, q = exponential(SCORES, scale), exponential(SCORES + np.array(change), scale)
        for order in (1.001, 1.5, 2, 4, 16, 64):
            divergence = math.log((p**order * q ** (1 - order)).sum()) / (order - 1)
            assert divergence <= rho * order * (1 + 1e-9)


@pytest.mark.parametrize("kind", LAWS)
def test_selection_among_extreme_scores(kind):
    call = NoiseCall(kind, 1.0, ONE)
    assert GATEWAY.select(call, np.array([5])) == 0
    assert GATEWAY.select(call, np.array([0, 2**62, 0, -(2**62)])) == 1
    assert GATEWAY.select(call, np.array([2**40, 2**40 + 1000])) == 1
    assert GATEWAY.select(call, np.arange(3000)) > 2900
    picks = np.bincount([GATEWAY.select(call, np.full(5, -(2**61))) for _ in range(2000)], minlength=5)
    assert stats.chisquare(picks).pvalue > REJECT


# -- calibration ---------------------------------------------------------------------------------------------------

rationals = st.fractions(F(1, 10**7), 10**4, max_denominator=10**9)


@given(st.integers(1, 10**9), rationals)
def test_scales_cover_the_share_exactly_and_barely(sensitivity, amount):
    tiny = 1 + F(1, 2**48)
    b = F(mechanisms.laplace_scale(sensitivity, amount))
    assert sensitivity / b <= amount <= sensitivity / b * tiny
    b = F(mechanisms.selection_scale_pure(sensitivity, amount))
    assert 2 * sensitivity / b <= amount <= 2 * sensitivity / b * tiny
    sigma = F(mechanisms.gaussian_scale(sensitivity, amount))
    assert sensitivity / (2 * sigma**2) <= amount <= sensitivity / (2 * sigma**2) * tiny
    b = F(mechanisms.selection_scale_zcdp(sensitivity, amount))
    assert F(sensitivity**2) / (2 * b**2) <= amount <= F(sensitivity**2) / (2 * b**2) * tiny


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 1000), st.sampled_from([F(1, 3), F(1), F(7, 2)]))
def test_opendp_books_the_same_costs(sensitivity, amount):
    """A second opinion: the mechanisms that are drawn from, asked for their own privacy."""

    def close(theirs, ours):
        assert theirs == pytest.approx(float(ours), rel=1e-9)

    b = mechanisms.laplace_scale(sensitivity, amount)
    close(mechanisms._additive("laplace", b).map(sensitivity), amount)
    sigma = mechanisms.gaussian_scale(sensitivity**2, amount)
    close(mechanisms._additive("gaussian", sigma).map(float(sensitivity)), amount)
    b = mechanisms.selection_scale_pure(sensitivity, amount)
    close(mechanisms._selection("permute-and-flip", b).map(sensitivity), amount)
    b = mechanisms.selection_scale_zcdp(sensitivity, amount)
    close(mechanisms._selection("exponential", b).map(sensitivity), amount)


@given(st.fractions(F(1, 10**30), 10**30))
def test_rounding_up_to_a_float(x):
    y = mechanisms.float_above(x)
    assert F(y) >= x
    assert F(math.nextafter(y, 0)) < x


# -- thresholds ----------------------------------------------------------------------------------------------------


def released_law(counts, scale, threshold, reach=120):
    """Exact law of what the thresholded histogram shows of each key (None: nothing), on a long truncated support."""
    laws = []
    for n in counts:
        if n == 0:
            laws.append({None: 1.0})
            continue
        z = np.arange(-reach, reach + 1)
        p = np.exp(-np.abs(z) / scale)
        p /= (1 + math.exp(-1 / scale)) / (1 - math.exp(-1 / scale))
        law = {int(n + k): float(w) for k, w in zip(z, p, strict=True) if n + k > threshold}
        law[None] = 1 - sum(law.values())
        laws.append(law)
    return laws


def delta_between(counts, neighbour, scale, threshold, epsilon):
    """Exact least δ for which P ≤ e^ε Q + δ on all events: the sum of positive parts over all outcomes."""
    laws = zip(released_law(counts, scale, threshold), released_law(neighbour, scale, threshold), strict=True)
    ps, qs = np.array([1.0]), np.array([1.0])
    for p, q in laws:
        support = list({*p, *q})
        ps = np.outer(ps, [p.get(k, 0.0) for k in support]).ravel()
        qs = np.outer(qs, [q.get(k, 0.0) for k in support]).ravel()
    return float(np.maximum(ps - math.exp(epsilon) * qs, 0).sum())


def neighbours(sensitivity, keys, most):
    """All pairs of tiny histograms within the sensitivity."""
    for a in itertools.product(range(most + 1), repeat=keys):
        for b in itertools.product(range(most + 1), repeat=keys):
            change = [abs(x - y) for x, y in zip(a, b, strict=True)]
            moved = sum(c > 0 for c in change)
            if sum(change) <= sensitivity.l1 and max(change) <= sensitivity.linf and moved <= sensitivity.l0 and moved:
                yield a, b


UNITS = {
    "a row, add-remove": (Sensitivity(1, 1, 1, 1), 1, 4),
    "a row, replace-one": (Sensitivity(2, 2, 1, 2), 2, 3),
    "three rows, add-remove": (Sensitivity(3, 9, 3, 3), 2, 4),
}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("epsilon", [F(1, 4), F(1), F(3)])
@pytest.mark.parametrize("delta", [F(1, 4), F(1, 50), F(1, 10**4)])
def test_thresholded_histograms_keep_their_promise(unit, epsilon, delta):
    sensitivity, keys, most = UNITS[unit]
    scale = mechanisms.laplace_scale(sensitivity.l1, epsilon)
    threshold = mechanisms.threshold_for(sensitivity, scale, delta)
    worst = max(delta_between(a, b, scale, threshold, float(epsilon)) for a, b in neighbours(sensitivity, keys, most))
    assert worst <= float(delta) * (1 + 1e-9)


@pytest.mark.parametrize("epsilon", [F(1, 4), F(1), F(3)])
@pytest.mark.parametrize("delta", [F(1, 50), F(1, 10**4), F(1, 10**9)])
def test_a_threshold_lower_by_one_would_break_the_promise(epsilon, delta):
    """Under add-remove of a row the threshold is the least possible, so an off-by-one is seen."""
    scale = mechanisms.laplace_scale(1, epsilon)
    threshold = mechanisms.threshold_for(ONE, scale, delta)
    assert delta_between((1,), (0,), scale, threshold, float(epsilon)) <= float(delta)
    if threshold > 1:
        assert delta_between((1,), (0,), scale, threshold - 1, float(epsilon)) > float(delta)


@given(
    st.sampled_from([u[0] for u in UNITS.values()]),
    st.fractions(F(1, 100), 10, max_denominator=1000),
    st.fractions(F(1, 10**12), F(9, 10)),
)
def test_thresholds_bound_the_chance_that_a_lone_key_shows(sensitivity, epsilon, delta):
    scale = mechanisms.laplace_scale(sensitivity.l1, epsilon)
    threshold = mechanisms.threshold_for(sensitivity, scale, delta)
    q = math.exp(-1 / scale)
    shows = q ** (threshold + 1 - sensitivity.linf) / (1 + q)
    assert sensitivity.l0 * shows <= float(delta) * (1 + 1e-9)
    assert threshold >= sensitivity.linf


def test_only_counts_above_the_threshold_come_out():
    call = NoiseCall("threshold", 0.001, ONE, threshold=5)  # so little noise that it is none
    assert GATEWAY.release_large(call, {"a": 5, "b": 6, "c": 2**40, "d": 1}) == {"b": 6, "c": 2**40}
    assert GATEWAY.release_large(call, {}) == {}
    noisy = NoiseCall("threshold", 2.0, ONE, threshold=10)
    shown = [GATEWAY.release_large(noisy, {"a": 10}) for _ in range(4000)]
    q = math.exp(-1 / 2)
    assert all(value > 10 for s in shown for value in s.values())
    assert stats.binomtest(sum(map(bool, shown)), len(shown), q / (1 + q)).pvalue > REJECT  # P(noise ≥ 1)


# -- (ε, δ) of Gaussian noise, directly ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("scale", "moved", "epsilon"),
    [(1.0, 1, 1.0), (2.0, 1, 0.5), (5.0, 1, 1.0), (5.0, 4, 0.7), (20.0, 10, 0.8), (40.0, 100, 1.0)],
)
def test_direct_delta_agrees_with_a_second_opinion(scale, moved, epsilon):
    ours = mechanisms.gaussian_delta(scale, moved, epsilon)
    pld = privacy_loss_distribution.from_discrete_gaussian_mechanism(
        scale, sensitivity=1, value_discretization_interval=1e-3 / moved, pessimistic_estimate=True
    ).self_compose(moved)
    optimist = privacy_loss_distribution.from_discrete_gaussian_mechanism(
        scale, sensitivity=1, value_discretization_interval=1e-3 / moved, pessimistic_estimate=False
    ).self_compose(moved)
    assert ours >= optimist.get_delta_for_epsilon(epsilon) * (1 - 1e-6)  # sound
    assert ours == pytest.approx(pld.get_delta_for_epsilon(epsilon), rel=0.01)  # and tight


@pytest.mark.parametrize(("scale", "moved", "epsilon"), [(1.0, 1, 0.3), (0.7, 2, 1.0), (1.5, 3, 2.0)])
def test_direct_delta_by_brute_force(scale, moved, epsilon):
    """Sum of positive parts over all outcomes of a few discrete Gaussians."""
    z = np.arange(-25, 26)
    p = np.exp(-(z**2) / (2 * scale**2))
    q = np.exp(-((z - 1) ** 2) / (2 * scale**2))
    p, q = p / p.sum(), q / q.sum()
    ps, qs = np.array([1.0]), np.array([1.0])
    for _ in range(moved):
        ps, qs = np.outer(ps, p).ravel(), np.outer(qs, q).ravel()
    truth = np.maximum(ps - math.exp(epsilon) * qs, 0).sum()
    ours = mechanisms.gaussian_delta(scale, moved, epsilon)
    assert truth <= ours <= truth * 1.001


@pytest.mark.parametrize("moved", [1, 5, 190])
@pytest.mark.parametrize(("epsilon", "delta"), [(F(1), F(1, 10**6)), (F(1, 10), F(1, 10**5)), (F(4), F(1, 10**7))])
def test_direct_scales_keep_their_delta_and_beat_the_detour(moved, epsilon, delta):
    scale = mechanisms.gaussian_scale_direct(moved, epsilon, delta)
    assert mechanisms.gaussian_delta(scale, moved, float(epsilon)) <= float(delta)
    assert mechanisms.gaussian_delta(scale * 0.999, moved, float(epsilon)) > float(delta)
    detour = mechanisms.gaussian_scale(moved, rho_within(epsilon, delta))
    assert 0.85 < scale / detour < 0.97


def test_direct_scales_give_up_where_rounding_would_matter():
    assert mechanisms.gaussian_scale_direct(1, F(1), F(1, 10**40)) is None
    assert mechanisms.gaussian_scale_direct(1, F(1, 10**6), F(1, 10**6)) is None


@settings(max_examples=30, deadline=None)
@given(st.floats(0.6, 30), st.integers(1, 40), st.floats(0.05, 5))
def test_more_moves_cost_more_and_more_noise_less(scale, moved, epsilon):
    delta = mechanisms.gaussian_delta(scale, moved, epsilon)
    slack = 1e-9
    assert delta <= mechanisms.gaussian_delta(scale, moved + 1, epsilon) + slack
    assert delta + slack >= mechanisms.gaussian_delta(scale, moved, epsilon * 1.1)
