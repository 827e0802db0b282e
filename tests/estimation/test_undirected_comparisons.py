"""The paper's comparison methods: private stochastic gradient descent and output perturbation."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet.audit import audit_replay, failures
from discreet.domain import Domain
from discreet.errors import BudgetError, InputError
from discreet.learn.fields.likelihood import Field
from discreet.measurement import Measurements
from discreet.models import generators
from discreet.models.markov import MarkovRandomField
from discreet.papers.output_perturbation import GRID, OutputPerturbation, PenalisedFit
from discreet.papers.psgd import UNITS, ClippedGradients, PrivateDescent
from discreet.privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.queries.descent import SampledRounds
from discreet.privacy.subsampled import noise_multiplier
from discreet.privacy.unit import PrivacyUnit
from discreet.tables.memory import MemoryTable

DOMAIN = Domain.of({"a": 2, "b": 3, "c": 2})
CLIQUES = [("a", "b"), ("b", "c")]
UNITS_OF_PRIVACY = [
    PrivacyUnit(),
    PrivacyUnit(relation="replace-one"),
    PrivacyUnit("person", max_rows=2),
    PrivacyUnit("person", max_rows=2, relation="replace-one"),
]


@pytest.fixture(scope="module")
def truth() -> MarkovRandomField:
    return generators.dirichlet(4, generators.chain(4), levels=3, random_state=3)


def table_of(model: MarkovRandomField, n: int, seed: int) -> MemoryTable:
    codes = model.sample(n, seed).codes
    return MemoryTable(model.domain, [codes[:, i].astype(np.uint8) for i in range(len(model.domain))])


# -- output perturbation ---------------------------------------------------------------------------------------------


@pytest.mark.chance
def test_output_perturbation_learns_something(truth: MarkovRandomField) -> None:
    learner = OutputPerturbation(truth.cliques, strength=300)
    model = learner.fit(Curator(table_of(truth, 50_000, 1), budget=ZCDP(0.5)))
    assert truth.kl(model) < 0.3 * truth.kl(MarkovRandomField.uniform(truth.domain))
    assert "output_perturbation" in str(learner.plan(truth.domain, PrivacyUnit(), ZCDP(0.5)))
    with pytest.raises(InputError, match="strength"):
        OutputPerturbation(truth.cliques, strength=0)


@pytest.mark.parametrize("n", [0, 1, 7, 400])
def test_the_fit_is_the_minimiser(truth: MarkovRandomField, n: int) -> None:
    query = PenalisedFit(truth.domain, truth.cliques, 2.0)
    (fitted,) = ExactCurator(table_of(truth, n, 1)).measure(query)
    counts = np.concatenate([t.reshape(-1) for t in table_of(truth, n, 1).count(query.cliques)])
    slope = n * query.field(fitted.values)[1] - counts + 2.0 * fitted.values
    assert np.linalg.norm(slope) / 2.0 <= 2e-4 * query.reach + math.sqrt(query.field.size) * (n + 2) / GRID


def test_the_bound_is_of_the_right_size(truth: MarkovRandomField) -> None:
    """One record more moves the fit by no more than the bound, and by a good part of it."""
    query = PenalisedFit(truth.domain, truth.cliques, 5.0)
    zero, one = (ExactCurator(table_of(truth, n, 1)).measure(query)[0].values for n in (0, 1))
    moved = np.linalg.norm(one - zero)
    assert 0.3 * query.reach < moved <= query.reach * 1.001


@pytest.mark.parametrize("unit", UNITS_OF_PRIVACY, ids=str)
@pytest.mark.parametrize("budget", [PureDP(1), ZCDP(0.1), ApproxDP(1, 1e-6)], ids=lambda b: b.notion)
def test_output_perturbation_replays(budget: Budget, unit: PrivacyUnit) -> None:
    findings = audit_replay(OutputPerturbation(CLIQUES, strength=3.0).fit, DOMAIN, unit, budget, count=12)
    assert not failures(findings), "\n".join(map(str, findings))


def test_a_penalty_on_the_mean_would_be_caught() -> None:
    """Strength per record instead of in all: the usual mistake."""

    class Wrong(PenalisedFit):
        def _minimise(self, counts: np.ndarray) -> np.ndarray:
            self.strength, kept = 0.3, self.strength
            try:
                return super()._minimise(counts)
            finally:
                self.strength = kept

    findings = audit_replay(
        lambda c: c.measure(Wrong(DOMAIN, CLIQUES, 3.0)), DOMAIN, PrivacyUnit(), PureDP(1), count=12
    )
    assert "within the declared sensitivity" in {f.name for f in failures(findings)}


# -- private stochastic gradient descent -----------------------------------------------------------------------------


@pytest.mark.chance
def test_descent_learns(truth: MarkovRandomField) -> None:
    learner = PrivateDescent(truth.cliques, 20_000, rounds=60, rate=0.2)
    model = learner.fit(Curator(table_of(truth, 20_000, 1), budget=ApproxDP(2, 1e-5)))
    assert truth.kl(model) < 0.3 * truth.kl(MarkovRandomField.uniform(truth.domain))
    assert model.card is not None
    assert model.card["spent"]["epsilon"] == "2"


def test_noisy_gradients_determine_the_model_and_are_what_is_paid_for(truth: MarkovRandomField, tmp_path: Path) -> None:
    learner = PrivateDescent(truth.cliques, 500, rounds=5, rate=0.5)
    curator = Curator(table_of(truth, 500, 1), budget=ApproxDP(2, 1e-5))
    measured = learner.measure(curator)
    assert [m.noise.kind for m in measured] == ["gaussian"] * 5
    (step,) = learner.plan(truth.domain, PrivacyUnit(), curator.budget).steps
    assert [s["step"] for s in curator.steps] == [step.name] and curator.remaining is None
    model = learner.estimate(measured, truth.domain)
    measured.save(tmp_path / "gradients.zip")
    again = learner.estimate(Measurements.load(tmp_path / "gradients.zip"), truth.domain)
    assert all(np.array_equal(model.potentials[c].values, again.potentials[c].values) for c in model.cliques)
    assert model.card == again.card and model.card is not None
    assert model.card["noise_multiplier"] == noise_multiplier(2.0, 1e-5, 0.5, 5)
    # By hand: θ ← θ + η(gradient/(qn) − λθ), then the mean over rounds 3 to 5.
    theta, seen = np.zeros(measured[0].counts.size), []
    for m in measured:
        theta = theta + 5.0 * (m.values / 250 - 1e-3 * theta)
        seen.append(theta)
    flat = np.concatenate([model.potentials[c].values.reshape(-1) for c in model.cliques])
    np.testing.assert_allclose(flat, np.mean(seen[2:], axis=0))
    with pytest.raises(InputError, match="all its rounds"):
        learner.estimate(measured[:4], truth.domain)


@pytest.mark.parametrize("radius", [0.4, 1.0, 2.0])
def test_no_gradient_exceeds_its_radius(radius: float) -> None:
    field = Field(DOMAIN, CLIQUES)
    mu = field(np.random.default_rng(0).normal(size=field.size))[1]
    query = ClippedGradients(field, mu, radius)
    cells = np.indices(DOMAIN.shape).reshape(3, -1).T
    longest = 0.0
    for cell in cells:
        (units,) = query.sum_rows({n: np.array([c], dtype=np.uint8) for n, c in zip(DOMAIN.names, cell, strict=True)})
        exact = np.concatenate([np.eye(6)[3 * cell[0] + cell[1]] - mu[:6], np.eye(6)[2 * cell[1] + cell[2]] - mu[6:]])
        clipped = exact * min(1.0, radius / np.linalg.norm(exact))
        np.testing.assert_allclose(units / UNITS, clipped, atol=3e-3)
        assert sum(int(u) ** 2 for u in units) <= query.row_sensitivity("add-remove")[0].l2_squared
        longest = max(longest, float(np.linalg.norm(units / UNITS)))
    assert longest > 0.9 * min(radius, 1.0)


def test_multipliers_are_those_of_the_accountant() -> None:
    """Against a second computation: one unsampled round is the Gaussian mechanism; sampling and fewer rounds help."""
    one = noise_multiplier(1.0, 1e-5, 1.0, 1)
    assert 3.5 < one < 4.3  # the analytic Gaussian mechanism needs 3.73; RDP somewhat more
    assert noise_multiplier(1.0, 1e-5, 0.1, 10) < one
    assert noise_multiplier(1.0, 1e-5, 0.1, 100) > noise_multiplier(1.0, 1e-5, 0.1, 10)


def test_descent_needs_delta_and_add_remove(truth: MarkovRandomField) -> None:
    table = table_of(truth, 10, 1)
    learner = PrivateDescent(truth.cliques, 10, rounds=2)
    with pytest.raises(BudgetError, match="--delta"):
        learner.fit(Curator(table, budget=PureDP(1)))
    with pytest.raises(InputError, match="replace-one"):
        learner.fit(Curator(table, PrivacyUnit(relation="replace-one"), ApproxDP(1, 1e-5)))
    curator = Curator(table, budget=ApproxDP(1, 1e-5))
    assert len(learner.measure(curator)) == 2  # as many rounds as were paid for
    with pytest.raises(BudgetError):
        learner.fit(curator)


@pytest.mark.parametrize("unit", [PrivacyUnit(), PrivacyUnit("person", max_rows=2)], ids=str)
@pytest.mark.parametrize("clip", [None, 0.5])
def test_descent_replays(unit: PrivacyUnit, clip: float | None) -> None:
    learner = PrivateDescent(CLIQUES, 5, rounds=3, rate=0.5, clip=clip)
    findings = audit_replay(learner.fit, DOMAIN, unit, ApproxDP(1, 1e-5), count=12)
    assert not failures(findings), "\n".join(map(str, findings))


def test_gradients_that_are_not_clipped_would_be_caught() -> None:
    class Long(ClippedGradients):
        def row_sensitivity(self, relation: Any) -> Any:
            self.radius, kept = 0.5, self.radius
            out = super().row_sensitivity(relation)
            self.radius = kept
            return out

    field = Field(DOMAIN, CLIQUES)

    def careless(curator: Curator) -> Any:
        return SampledRounds(curator.budget, 1, 1, lambda done: Long(field, field.uniform(), 2.0)).ask(curator)

    findings = audit_replay(careless, DOMAIN, PrivacyUnit(), ApproxDP(1, 1e-5), count=12)
    assert "within the declared sensitivity" in {f.name for f in failures(findings)}


def test_descent_is_planned_without_rows(truth: MarkovRandomField) -> None:
    learner = PrivateDescent(truth.cliques, 20_000, rounds=60, rate=0.2)
    plan = learner.plan(truth.domain, PrivacyUnit(), ApproxDP(2, 1e-5))
    assert "60 rounds" in str(plan)
    expected = noise_multiplier(2.0, 1e-5, 0.2, 60) * math.sqrt(2 * 3) / 0.2 / math.sqrt(60)
    assert plan.tables[0].noise.scale == pytest.approx(expected)
    with pytest.raises(InputError, match="replace-one"):
        learner.plan(truth.domain, PrivacyUnit(relation="replace-one"), ApproxDP(1, 1e-5))
    with pytest.raises(BudgetError, match="--delta"):
        learner.plan(truth.domain, PrivacyUnit(), ZCDP(1))


def test_what_cannot_work_is_refused_before_it_is_paid(truth: MarkovRandomField) -> None:
    curator = Curator(table_of(truth, 10, 1), budget=ApproxDP(1, 1e-5))
    with pytest.raises(InputError, match="too coarse"):
        PrivateDescent(truth.cliques, 10, rounds=2, clip=1e-9).fit(curator)
    with pytest.raises(InputError, match="rate"):
        PrivateDescent(truth.cliques, 10, rate=2)
    assert curator.spent is None


def test_samples_that_are_not_drawn_afresh_would_be_caught() -> None:
    """More rounds than were accounted for: the losses no longer fit into the budget."""
    field = Field(DOMAIN, CLIQUES)

    def greedy(curator: Curator) -> Any:
        query = ClippedGradients(field, field.uniform(), 2.0)
        one = SampledRounds(curator.budget, 1, 1, lambda done: query)
        multiplier, inside = one.pay(curator)
        return [one.one_round(curator, inside, query, multiplier) for _ in range(9)]

    findings = audit_replay(greedy, DOMAIN, PrivacyUnit(), ApproxDP(1, 1e-5), count=12)
    assert "within the budget" in {f.name for f in failures(findings)}
