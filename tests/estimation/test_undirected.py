"""Learners of Markov random fields from noisy tables: what they estimate, what they refuse, how they compare."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from discreet import networks
from discreet.domain import Domain
from discreet.errors import InputError, NotAReleaseError
from discreet.learn.baselines import NonprivateField, random_field
from discreet.learn.fields.evidence import Evidence, curvature_squared
from discreet.learn.fields.learner import FieldLearner, covering, maximal
from discreet.learn.fields.likelihood import Field
from discreet.learn.fields.noise_aware import NoiseAwareField, Risk, fitted, learned
from discreet.measurement import Measurement, Measurements, Noise
from discreet.models import generators
from discreet.models.markov import MarkovRandomField
from discreet.papers.collective import CollectiveField, NoisyTables, dual_step, nlbp, patience
from discreet.papers.naive import NaiveField
from discreet.papers.output_perturbation import OutputPerturbation
from discreet.privacy.budget import ZCDP, ApproxDP, PureDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.unit import PrivacyUnit
from discreet.tables.memory import MemoryTable

PRIVATE: list[type[FieldLearner]] = [NoiseAwareField, NaiveField, CollectiveField]


def table_of(model: MarkovRandomField, n: int, seed: int) -> MemoryTable:
    codes = model.sample(n, seed).codes
    return MemoryTable(model.domain, [codes[:, i].astype(np.uint8) for i in range(len(model.domain))])


@pytest.fixture(scope="module")
def truth() -> MarkovRandomField:
    return generators.dirichlet(5, generators.chain(5, 2), levels=4, random_state=3)


@pytest.fixture(scope="module")
def measured(truth: MarkovRandomField) -> Measurements:
    return NoiseAwareField(truth.cliques).measure(Curator(table_of(truth, 20_000, 1), budget=PureDP(1)))


@pytest.mark.chance
@pytest.mark.parametrize("kind", PRIVATE)
def test_every_method_learns_from_one_release(
    kind: type[FieldLearner], truth: MarkovRandomField, measured: Measurements
) -> None:
    learner = CollectiveField(truth.cliques, iterations=20) if kind is CollectiveField else kind(truth.cliques)
    model = learner.estimate(measured, truth.domain)
    assert truth.kl(model) < 0.1 * truth.kl(MarkovRandomField.uniform(truth.domain))
    assert model.card is not None
    assert model.card["method"] == kind.method
    assert model.card["origin"] == "release"
    assert model.card["spent"] == PureDP(1).to_dict()
    assert model.card["inference"] == "exact"
    assert model == learner.estimate(measured, truth.domain)


@pytest.mark.chance
def test_the_default_is_near_the_non_private_fit(truth: MarkovRandomField) -> None:
    table = table_of(truth, 100_000, 2)
    exact = NonprivateField(truth.cliques).fit(ExactCurator(table))
    private = NoiseAwareField(truth.cliques).fit(Curator(table, budget=PureDP(1)))
    assert truth.kl(exact) < 0.003
    assert truth.kl(private) < 0.01


@pytest.mark.chance
@pytest.mark.parametrize("epsilon", [1.0, 0.1, 0.01, 0.001])
@pytest.mark.parametrize("graph", ["chain", "triples"])
def test_the_default_never_does_worse_than_uniform(epsilon: float, graph: str) -> None:
    truth = generators.dirichlet(6, generators.chain(6, 3), levels=3, random_state=8)
    cliques = truth.cliques if graph == "chain" else [truth.domain.names[i : i + 3] for i in range(4)]
    learner = NoiseAwareField(cliques)
    uniform = truth.kl(MarkovRandomField.uniform(truth.domain))
    for seed in range(3):
        model = learner.fit(Curator(table_of(truth, 500, seed), budget=PureDP(epsilon)))
        assert truth.kl(model) <= 1.05 * uniform


@pytest.mark.chance
def test_tables_that_drown_in_noise_give_the_uniform_model_and_public_shares_survive(truth: MarkovRandomField) -> None:
    """The noisy number of records stands out by chance in one of 27 draws (measured, 400); three of five do not."""
    table = table_of(truth, 500, 3)
    learner = NoiseAwareField(truth.cliques)
    uniform = pytest.approx(truth.kl(MarkovRandomField.uniform(truth.domain)))
    first = truth.cliques[0]
    shares = truth.marginal(first).probabilities
    drowned = 0
    for _ in range(5):
        with Curator(table, budget=PureDP("1e-6")) as curator:
            measured = learner.measure(curator)
        model = learner.estimate(measured, truth.domain)
        assert model.card is not None
        if "do not stand out" in model.card.get("caution", ""):
            drowned += 1
            assert truth.kl(model) == uniform
    assert drowned >= 3
    known = learner.estimate(measured.plus(Measurement.public(truth.domain, first, proportions=shares)), truth.domain)
    np.testing.assert_allclose(known.marginal(first).probabilities, shares, atol=0.02)


@pytest.mark.chance
@pytest.mark.parametrize("epsilon", ["0.001", "0.003", "0.01"])
def test_drowned_tables_do_no_harm_when_the_number_of_records_is_public(epsilon: str) -> None:
    truth = networks.load("asia")
    names = truth.domain.names
    learner = NoiseAwareField([names[i : i + 2] for i in range(len(names) - 1)])
    codes = truth.sample(500, 1).codes
    table = MemoryTable(truth.domain, [codes[:, i].astype(np.uint8) for i in range(len(names))])
    target = NonprivateField(learner.cliques).fit(ExactCurator(table))
    uniform = target.kl(MarkovRandomField.uniform(truth.domain))
    for _ in range(5):
        model = learner.fit(Curator(table, budget=PureDP(epsilon), public_size=500))
        assert target.kl(model) <= 1.2 * uniform


@pytest.mark.parametrize("kind", PRIVATE)
def test_the_card_keeps_the_account_of_what_was_spent(
    kind: type[FieldLearner], truth: MarkovRandomField, measured: Measurements
) -> None:
    card = kind(truth.cliques).estimate(measured, truth.domain).card
    assert card is not None
    assert card["steps"] == measured.release["steps"]
    statement = {key: fact for key, fact in measured.release.items() if key != "found"}
    assert {**card, **statement} == card


@pytest.mark.chance
def test_oracle_penalty_does_not_help_naive_much(truth: MarkovRandomField, measured: Measurements) -> None:
    best = min(
        truth.kl(NaiveField(truth.cliques, penalty=10.0**k).estimate(measured, truth.domain)) for k in range(-6, 1)
    )
    assert truth.kl(NoiseAwareField(truth.cliques).estimate(measured, truth.domain)) <= 1.1 * best


def test_gaussian_noise_is_taken_when_it_is_smaller() -> None:
    domain = Domain.of({f"x{i}": 3 for i in range(16)})
    edges = list(pairwise(domain.names)) + [(domain.names[i], domain.names[i + 2]) for i in range(14)]
    learner = NoiseAwareField(edges)
    assert {t.noise.kind for t in learner.plan(domain, PrivacyUnit(), PureDP(1)).tables} == {"laplace"}
    assert {t.noise.kind for t in learner.plan(domain, PrivacyUnit(), ApproxDP(1, 1e-6)).tables} == {"gaussian"}
    assert {t.noise.kind for t in learner.plan(domain, PrivacyUnit(), ZCDP(0.05)).tables} == {"gaussian"}


def test_the_plan_is_what_is_measured(truth: MarkovRandomField) -> None:
    learner = NoiseAwareField([*truth.cliques, ("x0",), ("x1", "x2")])
    plan = learner.plan(truth.domain, PrivacyUnit(), PureDP(1), 1000)
    assert {t.clique for t in plan.tables} == set(truth.cliques)  # cliques inside others are measured once
    assert sum(t.share for t in plan.tables) == pytest.approx(1)
    done = learner.measure(Curator(table_of(truth, 10, 0), budget=PureDP(1)))
    assert [m.noise for m in done] == [t.noise for t in plan.tables]
    assert "noise_aware" in str(plan)


def test_equal_shares_are_the_papers() -> None:
    domain = Domain.of({"a": 2, "b": 20, "c": 2})
    learner = NoiseAwareField([("a", "b"), ("a", "c")], shares="equal")
    noise = {t.clique: t.noise.scale for t in learner.plan(domain, PrivacyUnit(), PureDP(1)).tables}
    assert noise[("a", "b")] == noise[("a", "c")] == pytest.approx(2)  # Laplace(|C|/ε), eq. 3
    by_size = {
        t.clique: t.noise.scale for t in NoiseAwareField(learner.cliques).plan(domain, PrivacyUnit(), PureDP(1)).tables
    }
    assert by_size[("a", "b")] < 2 < by_size[("a", "c")]


def test_columns_in_no_clique_stand_alone() -> None:
    domain = Domain.of({"a": 2, "b": 2, "c": 3})
    assert covering(domain, [("b", "a")]) == (("a", "b"), ("c",))
    assert maximal((("a",), ("a", "b"), ("c",))) == (("a", "b"), ("c",))
    codes = [np.array([0, 1, 1] * 300), np.array([0, 1, 0] * 300), np.array([2, 2, 1] * 300)]
    table = MemoryTable(domain, [c.astype(np.uint8) for c in codes])
    model = NoiseAwareField([("a", "b")]).fit(Curator(table, budget=PureDP(5)))
    np.testing.assert_allclose(model.marginal("c").probabilities, [0, 1 / 3, 2 / 3], atol=0.05)


@pytest.mark.chance
def test_further_tables_are_made_use_of(truth: MarkovRandomField, measured: Measurements) -> None:
    exact = NonprivateField(truth.cliques).measure(ExactCurator(table_of(truth, 20_000, 1)))
    public = [Measurement.public(truth.domain, m.clique, m.counts) for m in exact if m.clique is not None]
    learner = NoiseAwareField(truth.cliques)
    assert truth.kl(learner.estimate(measured.plus(*public))) < truth.kl(learner.estimate(measured))


def test_a_missing_table_is_named(truth: MarkovRandomField, measured: Measurements) -> None:
    some = Measurements(measured[1:], measured.release)
    in_full = NoiseAwareField(truth.cliques, step_back=False)
    for learner in (in_full, *(kind(truth.cliques) for kind in PRIVATE if kind is not NoiseAwareField)):
        with pytest.raises(InputError, match=r"\('x0', 'x1'\)"):
            learner.estimate(some, truth.domain)
    stepped = NoiseAwareField(truth.cliques).estimate(some, truth.domain)
    assert stepped.card is not None and stepped.card["stepped_back"] == [["x0", "x1"]]
    column = Measurements([m for m in measured if "x4" not in (m.clique or ())], measured.release)
    with pytest.raises(InputError, match="no measured table holds"):
        NoiseAwareField(truth.cliques).estimate(column, truth.domain)


@pytest.mark.parametrize("kind", [*PRIVATE, NonprivateField])
def test_what_was_learned_from_exact_tables_cannot_be_saved(
    kind: type[FieldLearner], truth: MarkovRandomField, tmp_path: object
) -> None:
    learner = CollectiveField(truth.cliques, iterations=2) if kind is CollectiveField else kind(truth.cliques)
    model = learner.fit(ExactCurator(table_of(truth, 100, 1)))
    assert model.card is not None
    assert model.card["origin"] == "exact"
    with pytest.raises(NotAReleaseError):
        model.save(f"{tmp_path}/model.zip")


def test_baselines_are_not_mistaken_for_releases(truth: MarkovRandomField, tmp_path: object) -> None:
    with pytest.raises(InputError, match="ExactCurator"):
        NonprivateField(truth.cliques).fit(Curator(table_of(truth, 10, 1), budget=PureDP(1)))
    random = random_field(truth.domain, truth.cliques, 0)
    assert truth.kl(random) > 0.1
    with pytest.raises(NotAReleaseError):
        random.save(f"{tmp_path}/model.zip")


def test_wrong_choices_are_refused() -> None:
    with pytest.raises(InputError, match="shares"):
        NoiseAwareField([("a",)], shares="some")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="penalty"):
        NaiveField([("a",)], penalty=0.0)
    with pytest.raises(InputError, match="solver"):
        CollectiveField([("a",)], solver="em")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="empty clique"):
        covering(Domain.of({"a": 2}), [()])
    with pytest.raises(InputError, match="inference"):
        Field(Domain.of({"a": 2}), [("a",)], inference="magic")  # type: ignore[arg-type]


@pytest.mark.parametrize("cliques", ["ab", 3, [3], [("a", 1)], np.zeros((2, 2))], ids=str)
def test_cliques_of_the_wrong_kind_are_explained(cliques: object) -> None:
    for kind in (NoiseAwareField, NaiveField, CollectiveField, OutputPerturbation):
        with pytest.raises(InputError, match="column names") as caught:
            kind(cliques)  # type: ignore[arg-type]
        assert "0." not in str(caught.value)  # an array of rows is not echoed


@pytest.mark.chance
@pytest.mark.parametrize(("levels", "records", "epsilon"), [(3, 100_000, 0.1), (4, 1_000_000, 0.01), (4, 10_000, 1.0)])
def test_few_states_and_strong_coupling(levels: int, records: int, epsilon: float) -> None:
    """Noise makes tables that no model has: the ridge of a prior alone is then far too weak."""
    truth = generators.dirichlet(8, generators.chain(8, 3), levels=levels, random_state=2)
    learner = NoiseAwareField(truth.cliques)
    measured = learner.measure(Curator(table_of(truth, records, 1), budget=PureDP(epsilon)))
    oracle = min(
        truth.kl(NaiveField(truth.cliques, penalty=10.0**k).estimate(measured, truth.domain)) for k in range(-5, 0)
    )
    assert truth.kl(learner.estimate(measured, truth.domain)) <= 1.2 * oracle


def evidence_of(random_state: int) -> Evidence:
    truth = generators.dirichlet(5, generators.chain(5, 2), levels=3, random_state=random_state)
    measured = NoiseAwareField(truth.cliques).measure(Curator(table_of(truth, 20_000, 1), budget=PureDP(1)))
    found = Evidence.of(Field(truth.domain, truth.cliques), measured)
    assert found is not None
    return found


@pytest.mark.chance
@pytest.mark.parametrize("random_state", [1, 2])
def test_the_spectrum_is_that_of_the_model(random_state: int) -> None:
    """Expected KL from a few Lanczos steps, and from the eigenvalues of the whole matrix."""
    evidence = evidence_of(random_state)
    risk, field = Risk.of(evidence), evidence.field
    ridge = risk.first()
    fit = fitted(evidence, ridge, 1e-6)
    seen = risk.spectrum(ridge, fit)
    away = 1e-4 * np.eye(field.size)
    dense = (field.marginals(fit.theta + away) - field.marginals(fit.theta - away)) / 2e-4
    h = np.linalg.eigvalsh(dense / evidence.root / evidence.root[:, None])
    h = h[h > 1e-9]
    for rho in (0.1 * evidence.level, evidence.level, 10 * evidence.level):
        g, g_seen = learned(h, rho, risk.order), learned(seen.h, rho, risk.order)
        bias = (ridge.prior * h * (1 - g) ** 2).sum() / 2
        sampling = (g**2).sum() / evidence.total / 2
        got = ridge.prior * (seen.prior * seen.h * (1 - g_seen) ** 2).sum() / 2
        # Far below the level, the bias is a few thousandths of the whole, of which a few probes say little.
        assert got == pytest.approx(bias, rel=0.35, abs=0.03 * (bias + sampling))
        assert (seen.prior * g_seen**2).sum() / evidence.total / 2 == pytest.approx(sampling, rel=0.35)


def test_curvature_at_the_uniform_model_in_closed_form() -> None:
    domain = Domain.of({"a": 2, "b": 3, "c": 4})
    field = Field(domain, [("a", "b"), ("b", "c"), ("a", "c")])
    h = 1e-4 * np.eye(field.size)
    dense = (field.marginals(h) - field.marginals(-h)) / 2e-4
    assert curvature_squared(field) == pytest.approx((dense**2).sum(), rel=1e-4)


@pytest.mark.chance
def test_more_records_need_less_ridge_and_the_prior_is_found() -> None:
    """σ² of log potentials from a Dirichlet(5) is 0.22."""
    truth = generators.dirichlet(10, generators.chain(10, 3), levels=4, concentration=5, random_state=3)
    cards = []
    for records in (10_000, 1_000_000):
        model = NoiseAwareField(truth.cliques).fit(Curator(table_of(truth, records, 1), budget=PureDP(1)))
        assert model.card is not None
        cards.append(model.card)
    assert cards[1]["ridge"] < cards[0]["ridge"]
    assert 0.15 < cards[1]["prior_variance"] < 0.3


def test_wrong_use_is_explained(truth: MarkovRandomField, measured: Measurements) -> None:
    learner, table = NoiseAwareField(truth.cliques), table_of(truth, 10, 1)
    wrong: list[tuple[str, Any]] = [
        ("asks a curator", lambda: learner.fit(table)),
        ("measure", lambda: learner.estimate(table)),
        ("measure", lambda: learner.estimate([1, 2])),
        ("Domain", lambda: learner.estimate(measured, {"x0": 4})),
        ("Domain", lambda: learner.plan({"x0": 4}, PrivacyUnit(), PureDP(1))),
        ("a plan is made from", lambda: learner.plan(truth.domain, None, PureDP(1))),
        ("noise must be", lambda: NoiseAwareField(truth.cliques, noise="normal")),
        ("inference", lambda: NoiseAwareField(truth.cliques, inference="magic")),
        ("memory_limit", lambda: NoiseAwareField(truth.cliques, memory_limit="big")),
        ("penalty", lambda: NaiveField(truth.cliques, penalty="x")),
        ("iterations", lambda: CollectiveField(truth.cliques, iterations=2.5)),
        ("damping", lambda: CollectiveField(truth.cliques, damping=2)),
        ("strength", lambda: OutputPerturbation(truth.cliques, strength="x")),
        ("Domain", lambda: random_field({"x0": 4}, [("x0",)])),
    ]
    for words, work in wrong:
        with pytest.raises(InputError, match=words):
            work()


def test_loopy_when_asked_says_so(truth: MarkovRandomField, measured: Measurements) -> None:
    model = CollectiveField(truth.cliques, inference="loopy", iterations=2).estimate(measured, truth.domain)
    assert model.card is not None
    assert model.card["inference"] == "loopy"


@pytest.mark.parametrize("kind", PRIVATE)
def test_without_a_domain_the_columns_may_come_in_another_order(kind: type[FieldLearner]) -> None:
    truth = generators.dirichlet(4, [(0, 3), (1, 3), (1, 2)], levels=[2, 3, 4, 5], random_state=1)
    done = NoiseAwareField(truth.cliques).measure(Curator(table_of(truth, 50_000, 1), budget=PureDP(5)))
    assert done.domain.names != truth.domain.names
    learner = CollectiveField(truth.cliques, iterations=10) if kind is CollectiveField else kind(truth.cliques)
    assert truth.kl(learner.estimate(done)) < 0.02


# -- collective graphical models -------------------------------------------------------------------------------------


def small(noise: Noise, seed: int) -> NoisyTables:
    truth = generators.dirichlet(4, generators.chain(4), levels=3, random_state=seed)
    exact = NonprivateField(truth.cliques).measure(ExactCurator(table_of(truth, 2000, seed)))
    rng = np.random.default_rng(seed)
    draw = rng.laplace if noise.kind == "laplace" else rng.normal
    noisy = [
        Measurement(
            m.label,
            np.rint(m.counts + draw(0, noise.scale, m.counts.shape)).astype(np.int64),
            noise,
            m.domain,
            clique=m.clique,
        )
        for m in exact
    ]
    return NoisyTables.of(Field(truth.domain, truth.cliques), Measurements(noisy))


@pytest.mark.parametrize("noise", [Noise("gaussian", 20.0), Noise("laplace", 10.0)], ids=lambda n: n.kind)
def test_the_dual_gives_the_iterates_of_nlbp(noise: Noise) -> None:
    tables = small(noise, 5)
    theta = np.zeros(tables.field.size)
    for _ in range(3):
        fresh = dual_step(tables, theta, tolerance=1e-14)
        before = tables.total * tables.field(theta)[1]
        dual = tables.total * tables.field(fresh)[1]
        n, _ = nlbp(tables, theta, damping=None, iterations=4000, tolerance=1e-9)
        assert np.abs(dual - before).max() > 5  # the step does something …
        assert np.abs(dual - n).max() < 0.5  # … and both do the same, to half a record of 2,000
        theta = fresh


def test_constant_damping_does_not_settle_on_laplace_noise() -> None:
    tables = small(Noise("laplace", 10.0), 5)
    assert not nlbp(tables, np.zeros(tables.field.size), damping=0.1, iterations=500, tolerance=1e-6)[1]
    smooth = small(Noise("gaussian", 20.0), 5)
    assert nlbp(smooth, np.zeros(smooth.field.size), damping=0.1, iterations=500, tolerance=1e-6)[1]


def test_a_laplace_step_stays_in_its_box() -> None:
    tables = small(Noise("laplace", 10.0), 6)
    step = dual_step(tables, np.zeros(tables.field.size))
    assert np.abs(step).max() <= 0.1 * (1 + 1e-9)


def test_several_steps_at_once_follow_the_single_ones() -> None:
    for noise in (Noise("gaussian", 20.0), Noise("laplace", 10.0)):
        tables = small(noise, 7)
        one_by_one = at_once = np.zeros(tables.field.size)
        for _ in range(40):
            one_by_one = dual_step(tables, one_by_one)
        for made in [1] * 20 + [2] * 10:
            at_once = dual_step(tables, at_once, steps=made)
        both = [tables.total * tables.field(theta)[1] for theta in (one_by_one, at_once)]
        start = tables.total * tables.field.uniform()
        assert np.abs(both[0] - both[1]).mean() < 0.02 * np.abs(both[0] - start).mean()


def test_the_distance_is_one_at_the_exact_tables() -> None:
    for noise in (Noise("gaussian", 20.0), Noise("laplace", 10.0)):
        truth = generators.dirichlet(4, generators.chain(4), levels=3, random_state=8)
        exact = NonprivateField(truth.cliques).measure(ExactCurator(table_of(truth, 2000, 8)))
        tables = small(noise, 8)
        n = tables.field.join({c: next(m for m in exact if m.clique == c).counts for c in tables.field.cliques})
        assert 0.6 < tables.distance(n) < 1.5  # 27 cells of seeded noise
    assert patience(tables, 0.5) == 1.6  # Laplace
    normal = small(Noise("gaussian", 20.0), 8)
    assert patience(normal, 0.5) == 1
    assert patience(normal, math.e) == pytest.approx(1.75)


def test_the_stopping_rule_moves_with_the_noise_where_25_steps_freeze() -> None:
    truth = generators.dirichlet(6, generators.grid(2, 3), levels=4, random_state=4)
    exact = NonprivateField(truth.cliques).measure(ExactCurator(table_of(truth, 200_000, 4)))
    rng = np.random.default_rng(1)
    for scale in (40.0, 200.0):
        noise = Noise("laplace", scale)
        measured = Measurements(
            Measurement(m.label, np.rint(m.counts + rng.laplace(0, scale, m.counts.shape)).astype(np.int64), noise,
                        m.domain, clique=m.clique)
            for m in exact
        )  # fmt: skip
        naive = [NaiveField(truth.cliques, penalty=p / 200_000).estimate(measured) for p in (1, 10)]
        better = min(truth.kl(model) for model in naive)
        stopped = CollectiveField(truth.cliques).estimate(measured)
        published = CollectiveField(truth.cliques, likelihood="noise").estimate(measured)
        frozen = CollectiveField(truth.cliques, likelihood="noise", iterations=25).estimate(measured)
        assert truth.kl(stopped) <= 1.1 * better
        assert truth.kl(published) <= 2 * better
        assert truth.kl(frozen) > 1.5 * truth.kl(published)
        assert stopped.card is not None
        assert stopped.card["likelihood"] == "normal"
        assert not stopped.card["converged"]


def test_converged_em_fits_what_it_can_and_is_worse() -> None:
    tables = small(Noise("gaussian", 20.0), 5)
    truth = generators.dirichlet(4, generators.chain(4), levels=3, random_state=5)
    measured = Measurements(
        Measurement(f"t{i}", np.rint(tables.field.split(tables.y)[c]).astype(np.int64), Noise("gaussian", 20.0),
                    truth.domain, clique=c)
        for i, c in enumerate(tables.field.cliques)
    )  # fmt: skip
    stopped = CollectiveField(truth.cliques).estimate(measured)
    ended = CollectiveField(truth.cliques, stopping="converged").estimate(measured)
    assert stopped.card is not None
    assert ended.card is not None
    assert ended.card["converged"]
    assert ended.card["steps_of_em"] > 2 * stopped.card["steps_of_em"]
    assert truth.kl(ended) > truth.kl(stopped)


def test_tables_without_noise_are_fitted_at_once() -> None:
    truth = generators.dirichlet(4, generators.chain(4), levels=3, random_state=2)
    exact = NonprivateField(truth.cliques).measure(ExactCurator(table_of(truth, 20_000, 2)))
    model = CollectiveField(truth.cliques).estimate(exact)
    assert model.kl(NonprivateField(truth.cliques).estimate(exact)) < 1e-4
    assert model.card is not None
    assert model.card["steps_of_em"] <= 5


def test_files_that_state_the_published_damping_are_fitted() -> None:
    truth = generators.dirichlet(3, generators.chain(3), levels=2, random_state=1)
    assert CollectiveField(truth.cliques, damping=0.1, iterations=25, tolerance=1e-4).iterations == 25
    with pytest.raises(InputError, match="nothing to damp"):
        CollectiveField(truth.cliques, damping=0.2)


def test_nlbp_and_dual_learn_the_same_model() -> None:
    truth = generators.dirichlet(3, generators.chain(3), levels=2, random_state=1)
    measured = NaiveField(truth.cliques, noise="gaussian").measure(
        Curator(table_of(truth, 3000, 1), budget=ZCDP(0.0002))
    )
    dual = CollectiveField(truth.cliques, iterations=3, tolerance=0).estimate(measured)
    published = CollectiveField(truth.cliques, iterations=3, tolerance=0, solver="nlbp", damping=0.3).estimate(measured)
    assert dual.kl(published) < 1e-6
