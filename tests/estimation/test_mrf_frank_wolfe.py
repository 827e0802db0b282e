"""Private Frank–Wolfe: gradients and sensitivities by brute force, exact divergences of tiny transcripts, audits."""

from itertools import combinations, product

import numpy as np
import pytest
from mrf_cases import BUDGETS, UNITS, sampled, table_of

from discreet.audit import all_tables, audit_replay, check_pair, failures, output_law
from discreet.domain import Domain
from discreet.errors import InputError
from discreet.learn.regressions import frank_wolfe
from discreet.learn.regressions.spins import SpinRegressions
from discreet.learn.spins.coefficients import sup_error
from discreet.models import generators
from discreet.privacy.budget import ZCDP, PureDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.queries import gradients
from discreet.privacy.queries.gradients import UNITS as PER_UNIT
from discreet.privacy.queries.gradients import SpinGradients, SteepestVertex
from discreet.privacy.query import Marginals
from discreet.privacy.requests import answered
from discreet.privacy.unit import PrivacyUnit


def domain_of(p):
    return Domain.of({f"x{i}": 2 for i in range(p)})


def singles(domain):
    return [*((n,) for n in domain.names), ()]


def every_pair(domain):
    return Marginals(domain, list(combinations(domain.names, 2)))


def weights(p, seed, size=6):
    rng = np.random.default_rng(seed)
    v = rng.integers(-size, size + 1, (p, p + 1))
    v[np.arange(p), np.arange(p)] = 0
    return v


def by_hand(codes, v, scale):
    """Σ y σ(−y⟨w,x⟩) x in floats."""
    z = 2.0 * codes - 1
    x = np.hstack([z, np.ones((len(z), 1))])
    out = np.zeros(v.shape)
    for i in range(len(v)):
        y = z[:, i]
        out[i] = (y / (1 + np.exp(y * (x @ v[i]) * scale))) @ x
    return out


@pytest.mark.parametrize("rows", [0, 1, 9, 500])
def test_sums_are_the_gradient(rows, monkeypatch):
    monkeypatch.setattr(gradients, "ROWS", 64)
    domain = domain_of(4)
    codes = np.random.default_rng(rows).integers(0, 2, (rows, 4))
    v = weights(4, 1)
    (sums,) = table_of(codes, domain).sum(SpinGradients(domain, singles(domain), v, 0.07))
    assert sums.dtype == np.int64
    assert np.abs(sums / PER_UNIT - by_hand(codes, v, 0.07)).max(initial=0) <= rows / (2 * PER_UNIT) + 1e-9


def test_binned_margins_stay_close(monkeypatch):
    domain = domain_of(3)
    codes = np.random.default_rng(0).integers(0, 2, (200, 3))
    v = weights(3, 2, size=10**6)
    query = SpinGradients(domain, singles(domain), v, 1e-6)
    assert query._table[2] > 0  # binned
    (sums,) = table_of(codes, domain).sum(query)
    assert np.abs(sums / PER_UNIT - by_hand(codes, v, 1e-6)).max() <= 200 * 1e-3


def test_sums_do_not_depend_on_the_order_or_company_of_records():
    """Sums over any division of the rows add up to the whole, to the last unit."""
    domain = domain_of(5)
    codes = np.random.default_rng(3).integers(0, 2, (700, 5))
    query = SpinGradients(domain, singles(domain), weights(5, 3, size=1000), 1 / 777)
    (whole,) = table_of(codes, domain).sum(query)
    shuffled = codes[np.random.default_rng(4).permutation(700)]
    parts = [table_of(shuffled[lo : lo + k], domain).sum(query)[0] for lo, k in ((0, 1), (1, 311), (312, 388))]
    assert np.array_equal(sum(parts), whole)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("size", [0, 3, 400])
def test_sensitivities_are_those_of_brute_force(seed, size):
    domain = domain_of(3)
    v = weights(3, seed, size)
    v[np.arange(3), (np.arange(3) + 1) % 3] = 0  # a feature without weight, as there is until all were chosen
    score = SteepestVertex(SpinGradients(domain, singles(domain), v, 1 / (3 * max(size, 1))))
    records = [np.array([r]) for r in product([0, 1], repeat=3)]
    terms = np.array([score.scores(table_of(r, domain).sum(score.query)) for r in records])
    groups = np.split(terms, np.cumsum(score.groups)[:-1], axis=1)
    added = score.linfs(PrivacyUnit())
    replaced = score.linfs(PrivacyUnit(relation="replace-one"))
    for group, add, replace in zip(groups, added, replaced, strict=True):
        assert np.abs(group).max() == add  # attained: some record has the margin −‖v‖₁
        assert np.abs(group[:, None] - group[None]).max() == replace == 2 * add  # attained at that feature
    (s,) = score.query.row_sensitivity("add-remove")
    flat = np.array([table_of(r, domain).sum(score.query)[0].reshape(-1) for r in records])
    assert np.abs(flat).sum(axis=1).max() <= s.l1 and (flat**2).sum(axis=1).max() <= s.l2_squared


def test_weights_are_the_papers_iterates():
    """w_{t+1} = (1 − μ_t) w_t + μ_t w̃_t with μ_t = 2/(t+2)."""
    domain = domain_of(4)
    codes = np.random.default_rng(1).integers(0, 2, (50, 4))
    curator = ExactCurator(table_of(codes, domain))
    state = frank_wolfe.init(4, 5, 3.0)
    w = np.zeros((4, 5))
    for t in range(1, 8):
        problem = lambda v, s: SpinGradients(domain, singles(domain), v, s)  # noqa: E731
        _, (state, info) = answered(curator, frank_wolfe.step(problem, state, PureDP(1)))
        vertex = 3.0 * info["moves"]
        assert (np.abs(info["moves"]).sum(axis=1) == 1).all()
        w = (1 - 2 / (t + 2)) * w + 2 / (t + 2) * vertex
        assert np.allclose(state.w, w)
        assert not np.diag(state.w[:, :4]).any()


def test_exact_frank_wolfe_minimises_the_loss():
    model = generators.ising(6, generators.chain(6), weight=0.4)
    table = sampled(model, 20_000, 2)
    found = SpinRegressions(width=1.2, steps=300).fit(ExactCurator(table))
    assert sup_error(found, model) < 0.06
    assert found.card["origin"] == "exact"


def test_the_field_of_regressions_in_a_narrow_ball_is_fitted():
    """Intercepts that the ball holds back would be made up for by couplings; the fit has the columns' own means."""
    model = generators.ising(8, generators.grid(2, 4), weight=0.5)
    shifted = type(model)(model.A, model.theta - 0.6, domain=model.domain)
    table = sampled(shifted, 20_000, 3)
    truth = {m.clique: m.values / m.values.sum() for m in ExactCurator(table).measure(every_pair(shifted.domain))}

    def error(found):
        gaps = [np.abs(found.marginal(c).probabilities - share).sum() / 2 for c, share in truth.items()]
        return float(np.mean(gaps))

    alone, fitted = (SpinRegressions(width=1.0, steps=60, fitted=f).fit(ExactCurator(table)) for f in (False, True))
    assert error(fitted) < 0.3 * error(alone)
    for name in shifted.domain.names:
        exact = ExactCurator(table).measure(Marginals(shifted.domain, [(name,)]))[0].values / 20_000
        assert np.allclose(fitted.marginal((name,)).probabilities, exact, atol=1e-3)
    assert fitted.card["scale"] > 1 and "scale" not in alone.card


@pytest.mark.chance
def test_interactions_that_are_noise_are_dropped():
    """With next to no budget for the regressions what they find does not show in the energy: means are all there is."""
    model = generators.ising(6, [], weight=0.5, field=-0.4)
    fit = SpinRegressions().fit(Curator(sampled(model, 100_000, 1), None, PureDP(0.05)))
    assert np.abs(fit.A).max() < 0.5  # of 120 runs the largest had .10, most had 0
    for name, field in zip(model.domain.names, model.theta, strict=True):
        low, high = fit.marginal((name,)).probabilities
        assert abs(high - low - np.tanh(field)) < 0.2  # and .04 here


@pytest.mark.chance
@pytest.mark.parametrize("variant", ["tight", "published"])
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_private_fit(variant, relation):
    model = generators.ising(8, generators.chain(8), weight=0.4)
    curator = Curator(sampled(model, 20_000, 2), UNITS[relation], ZCDP(0.5))
    found = SpinRegressions(variant=variant, width=1.0).fit(curator)
    assert sup_error(found, model) < (0.2 if variant == "tight" else 0.4)
    assert found.card["frank_wolfe_steps"] >= 7 and curator.spent <= curator.budget


def test_structure_by_an_edge_bound():
    model = generators.ising(8, generators.matching(8), weight=0.6)
    learner = SpinRegressions(width=1.0, max_edges=4)
    found = learner.fit(Curator(sampled(model, 20_000, 2), None, ZCDP(0.5)))
    assert found.edges == model.edges


def test_plan_and_refusals():
    domain = domain_of(5)
    plan = SpinRegressions().plan(domain, PrivacyUnit(), ZCDP(0.1), 1e4)
    assert sum(t.share for t in plan.tables) == pytest.approx(1) and "steps" in str(plan)
    regressions = "a vertex for each of 5 regressions"
    assert [step.name for step in plan.steps] == ["number of records", "means, regressions and their energy"]
    assert regressions in str(plan)
    known = SpinRegressions().plan(domain, PrivacyUnit(), ZCDP(0.1), public_size=10_000)
    assert sum(t.share for t in known.tables) == pytest.approx(1) and known.steps[1].name[0].isdigit() and known.given
    alone = SpinRegressions(steps=5, fitted=False).plan(domain, PrivacyUnit(), ZCDP(0.1))
    assert [step.name for step in alone.steps] == [f"5 steps, {regressions}"]
    assert [t.share for t in alone.tables] == [1]
    with pytest.raises(InputError, match="variant"):
        SpinRegressions(variant="fast")
    with pytest.raises(InputError, match="steps"):
        SpinRegressions(steps=0)
    with pytest.raises(InputError, match="radius"):
        frank_wolfe.init(2, 2, 0.0)


# -- privacy ---------------------------------------------------------------------------------------------------------

TWO = domain_of(2)


def transcript(variant, steps):
    """All choices of a tiny run: the output the guarantee is about."""

    def algorithm(curator):
        problem = lambda v, s: SpinGradients(TWO, singles(TWO), v, s)  # noqa: E731
        start = frank_wolfe.init(2, 3, 2.0)
        return answered(curator, frank_wolfe.descend(problem, start, steps, curator.budget, variant))[1].v

    return algorithm


@pytest.mark.crossed
@pytest.mark.parametrize("variant", ["tight", "published"])
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("budget", [ZCDP(0.3), PureDP(1)], ids=["zcdp", "pure"])
def test_exact_divergence_of_tiny_transcripts(variant, relation, budget, monkeypatch):
    monkeypatch.setattr(gradients, "UNITS", 16)  # a coarse grid makes the exact laws cheap
    unit = PrivacyUnit(relation=relation)
    algorithm = transcript(variant, 2)
    laws = {}
    for size in (0, 1, 2) if variant == "tight" and budget == PureDP(1) else (0, 1):
        for rows in all_tables((2, 2), size):
            laws[rows.tobytes(), size] = (rows, output_law(algorithm, table_of(rows, TWO), unit, budget))
    compared = 0
    for (_, n), (left, p) in laws.items():
        for (_, m), (right, q) in laws.items():
            if relation == "add-remove":
                near = m == n + 1 and any(
                    sorted(map(tuple, left)) == sorted(map(tuple, np.delete(right, i, axis=0))) for i in range(m)
                )
            else:
                near = m == n == 1 or (m == n == 2 and bool(set(map(tuple, left)) & set(map(tuple, right))))
            if near:
                compared += 1
                assert not failures([check_pair(p, q, budget)])
    assert compared >= 4


def test_exact_divergence_catches_half_the_sensitivity(monkeypatch):
    honest = SteepestVertex.linfs
    monkeypatch.setattr(SteepestVertex, "linfs", lambda self, unit: tuple(x // 2 for x in honest(self, unit)))
    unit, budget = PrivacyUnit(relation="replace-one"), ZCDP(0.3)
    rows = [np.array([r]) for r in product([0, 1], repeat=2)]
    laws = [output_law(transcript("tight", 2), table_of(r, TWO), unit, budget) for r in rows]
    assert any(failures([check_pair(p, q, budget)]) for p in laws for q in laws)


THREE = domain_of(3)


@pytest.mark.crossed
@pytest.mark.parametrize("variant", ["tight", "published"])
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("unit", UNITS)
def test_audit(unit, budget, variant):
    learner = SpinRegressions(variant=variant, width=1.0)
    assert not failures(audit_replay(learner.fit, THREE, UNITS[unit], BUDGETS[budget], count=15))


def test_audit_catches_an_understated_sensitivity(monkeypatch):
    honest = SteepestVertex.linfs
    monkeypatch.setattr(SteepestVertex, "linfs", lambda self, unit: tuple(x // 2 for x in honest(self, unit)))
    learner = SpinRegressions(width=1.0, steps=7)
    assert failures(audit_replay(learner.fit, THREE, UNITS["add-remove"], BUDGETS["zcdp"], count=10))


def test_audit_catches_steps_from_the_exact_number_of_rows():
    def careless(curator):
        n = int(curator._rows.count([()])[0])
        return SpinRegressions(width=1.0, steps=n + 1).fit(curator)

    assert failures(audit_replay(careless, THREE, UNITS["add-remove"], BUDGETS["zcdp"], count=10))
