"""Query release: close to the truth, exact divergences of tiny transcripts, sensitivities by brute force, audits."""

import math
from itertools import combinations, product

import numpy as np
import pytest
from mrf_cases import BUDGETS, UNITS, sampled, table_of

from discreet.audit import all_tables, audit_replay, check_pair, failures, output_law
from discreet.domain import Domain
from discreet.errors import CostError, InputError, SchemaError
from discreet.inference.best_record import Best, CellTerms, Enumeration, ParityTerms, objective
from discreet.inference.perturbed_leader import DataPlayer
from discreet.learn.query_release import (
    AnnealedSearch,
    GaussianAnswers,
    IntegerProgram,
    MultiplicativeWeights,
    Parities,
    PerturbedLeader,
    Tables,
)
from discreet.learn.query_release.leader import SCALE, choose_rounds, samples_of
from discreet.learn.transcript import Transcript
from discreet.measurement import Measurements
from discreet.models import generators
from discreet.privacy.budget import ZCDP, PureDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.mechanisms import SecureGateway
from discreet.privacy.queries.parities import ParitySums, all_monomials
from discreet.privacy.queries.residuals import SignedResiduals
from discreet.privacy.query import Marginals
from discreet.privacy.requests import answered
from discreet.privacy.unit import PrivacyUnit

MIXED = Domain.of({"a": 2, "b": 3, "c": 2})
BINARY = Domain.of({"a": 2, "b": 2, "c": 2})
WORKLOADS = {
    "parities": Parities(BINARY, all_monomials(BINARY, 2)),
    "tables": Tables(MIXED, [("a", "b"), ("b", "c")]),
}


def leader(workload, **options):
    return PerturbedLeader(workload, **{"rounds": 4, "samples": 3, "random_state": 1, **options})


METHODS = {"gaussian": GaussianAnswers, "weights": MultiplicativeWeights, "leader": leader}


def exact_answers(table, workload, n):
    return np.concatenate([part.reshape(-1) for part in table.sum(workload.query)]) / n


# -- answers -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", WORKLOADS)
def test_a_workload_agrees_with_itself(kind):
    workload = WORKLOADS[kind]
    rng = np.random.default_rng(0)
    codes = np.stack([rng.integers(0, k, 300) for k in workload.domain.shape], axis=1)
    counts = np.zeros(workload.domain.shape)
    np.add.at(counts, tuple(codes.T), 1 / 300)
    asked = exact_answers(table_of(codes, workload.domain), workload, 300)
    assert np.allclose(workload.answers_on(codes), asked)
    assert np.allclose(workload.answers_under(counts.reshape(-1)), asked)
    for g, where in enumerate(workload.groups):  # Σ_x P(x) Σ_q c_q q(x) = Σ_q c_q · answer
        c = rng.normal(size=where.stop - where.start)
        assert counts.reshape(-1) @ workload.spread(g, c) == pytest.approx(c @ asked[where])


@pytest.mark.parametrize("kind", ["parities", "tables"])
@pytest.mark.parametrize(("method", "error"), [(GaussianAnswers, 0.03), (MultiplicativeWeights, 0.04), (leader, 0.2)])
def test_answers_are_close(method, error, kind):
    """Far beyond what noise does at this size: 0.03 is more than eight standard deviations of the Gaussian answers."""
    model = generators.ising(6, generators.matching(6), weight=0.5)
    table = sampled(model, 20_000, 1)
    domain = model.domain
    workload = (
        Parities(domain, all_monomials(domain, 3)) if kind == "parities" else Tables(domain, combinations(domain, 2))
    )
    options = {"rounds": 100, "samples": 100} if method is leader else {}
    released = method(workload, **options).fit(Curator(table, None, ZCDP(0.5)))
    assert np.abs(released.answers - exact_answers(table, workload, 20_000)).max() < error
    assert released.card["origin"] == "release"
    if kind == "tables":
        tables = workload.tables(released.answers)
        assert tables["x0", "x1"].shape == (2, 2)


def test_multiplicative_weights_without_noise_answer_everything():
    model = generators.ising(5, generators.chain(5), weight=0.5)
    table = sampled(model, 5000, 1)
    workload = Parities(model.domain, all_monomials(model.domain, 2))
    released = MultiplicativeWeights(workload, rounds=len(workload)).fit(ExactCurator(table))
    assert np.abs(released.answers - exact_answers(table, workload, 5000)).max() < 0.01
    assert released.card["origin"] == "exact"


@pytest.mark.parametrize("oracle", [AnnealedSearch(), IntegerProgram(2.0)])
@pytest.mark.parametrize("perturbation", ["separator", "exponential"])
def test_the_leader_goes_by_any_oracle(oracle, perturbation):
    model = generators.ising(6, generators.matching(6), weight=0.7)
    table = sampled(model, 5000, 1)
    workload = Parities(model.domain, all_monomials(model.domain, 2))
    learner = leader(workload, oracle=oracle, perturbation=perturbation, rounds=6)
    released = learner.fit(Curator(table, None, ZCDP(1)))
    assert released.records.shape == (18, 6) and np.abs(released.answers).max() <= 1
    assert released.gap == 0 if isinstance(oracle, IntegerProgram) else math.isnan(released.gap)
    assert np.allclose(workload.answers_on(released.records), released.answers)


def test_kind_refusals_before_anything_is_spent():
    wide = Domain.of({f"x{i}": 2 for i in range(20)})
    workload = Parities(wide, [("x0",)])
    with pytest.raises(CostError, match="20 columns"):
        MultiplicativeWeights(workload)
    for options in ({"perturbation": "none"}, {"rounds": 0}, {"samples": 0}, {"scale": -1.0}):
        with pytest.raises(InputError, match=next(iter(options))):
            PerturbedLeader(workload, **options)
    for rounds in (0, 7, 1.5):
        with pytest.raises(InputError, match="between 1 and"):
            MultiplicativeWeights(WORKLOADS["parities"], rounds=rounds)
    curator = Curator(table_of(np.zeros((1, 3), dtype=int), BINARY), None, ZCDP(1))
    for method in METHODS.values():
        with pytest.raises(SchemaError, match="another column 'b'"):
            method(WORKLOADS["tables"]).fit(curator)  # where b has three levels
        with pytest.raises(InputError, match="measure did not make them"):
            method(WORKLOADS["parities"]).estimate(curator.measure(Marginals(BINARY, [()]), ZCDP(0.1)))
    assert len(curator.steps) == len(METHODS)  # the three noisy counts of this test, and nothing else
    with pytest.raises(InputError, match="two levels"):
        Parities(MIXED, [("a",)])
    with pytest.raises(InputError, match="at least one"):
        Tables(MIXED, [()])


# -- shown, run, recorded ----------------------------------------------------------------------------------------------


@pytest.mark.crossed
@pytest.mark.parametrize("size", [None, 300], ids=["private size", "public size"])
@pytest.mark.parametrize("kind", WORKLOADS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("budget", BUDGETS)
def test_what_is_planned_is_what_is_recorded(budget, method, kind, size):
    learner, domain, budget = METHODS[method](WORKLOADS[kind]), WORKLOADS[kind].domain, BUDGETS[budget]
    rows = table_of(np.random.default_rng(0).integers(0, 2, (300, 3)), domain)
    curator = Curator(rows, None, budget, public_size=size)
    plan = learner.plan(domain, curator.unit, budget, public_size=size)
    assert math.isclose(sum(t.share for t in plan.tables), 1.0) and ("number of records" in str(plan)) == (size is None)
    measured = learner.measure(curator)
    assert list(dict.fromkeys(entry["step"] for entry in curator.steps)) == [step.name for step in plan.steps]
    released = learner.estimate(measured)
    assert released.card["steps"] == list(curator.steps) and len(released.answers) == len(WORKLOADS[kind])
    planned = {word for t in plan.tables for then in t.how.split(", then ") for word in then.split(" or ")}
    assert {step["noise"].replace("exponential", "exponential mechanism") for step in curator.steps} <= planned
    if learner.refits:
        again = learner.estimate(Measurements(list(measured), measured.release))
        assert np.array_equal(again.answers, released.answers)


def test_the_number_of_selections_is_shown_where_it_is_known():
    unit, workload = PrivacyUnit(), WORKLOADS["parities"]
    assert "20 to 1000 selections" in str(PerturbedLeader(workload).plan(BINARY, unit, ZCDP(0.5)))
    public = PerturbedLeader(workload)
    procedure = public.plan(BINARY, unit, ZCDP(0.5), public_size=300)
    curator = Curator(table_of(np.zeros((300, 3), dtype=int), BINARY), None, ZCDP(0.5), public_size=300)
    rounds = public.fit(curator).facts["rounds"]
    assert procedure.steps[-1].name == f"{rounds} selections of a query" and len(curator.steps) == rounds


class NoDraws(SecureGateway):
    """Whoever asks for noise has asked a question twice."""

    add_noise = select = None


@pytest.mark.parametrize("method", METHODS)
def test_a_run_that_was_written_down_is_not_asked_again(method, tmp_path):
    """Also where the data player draws records: its random numbers are a function of ``random_state``."""
    rows = table_of(np.random.default_rng(0).integers(0, 2, (300, 3)), BINARY)
    learner = (PerturbedLeader if method == "leader" else METHODS[method])(WORKLOADS["parities"])
    found = []
    for gateway in (SecureGateway(), NoDraws()):
        curator = Curator(rows, None, ZCDP(0.1), gateway=gateway)
        run = learner.plan(BINARY, curator.unit, ZCDP(0.1)).run(curator, Transcript(tmp_path / "answers"))
        found.append(learner.estimate(run).answers)
    assert np.array_equal(*found)


@pytest.mark.parametrize("size", [None, 2000], ids=["private size", "public size"])
@pytest.mark.parametrize("method", METHODS)
def test_another_learner_can_ask(method, size):
    """``asks`` within a share, as a part of a larger procedure: it costs no more, and gives such answers."""
    model = generators.ising(3, [(0, 1)], weight=0.5)
    curator = Curator(sampled(model, 2000, 1), None, ZCDP(2))
    workload = Parities(model.domain, all_monomials(model.domain, 2))
    with curator.step("parities", ZCDP(1)):
        _, released = answered(curator, METHODS[method](workload).asks(ZCDP(1), size))
    assert len(released.answers) == len(workload) and not released.card and curator.spent <= ZCDP(1)
    counts = [entry for entry in curator.steps if entry.get("parts") == ["number of records"]]
    assert len(counts) == (size is None)


# -- privacy -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", WORKLOADS)
@pytest.mark.parametrize("unit", ["add-remove", "replace-one"])
def test_signed_residuals_move_as_declared(kind, unit):
    """Brute force over all records (and pairs of them); the bound is attained."""
    workload = WORKLOADS[kind]
    score = SignedResiduals(workload.query, np.arange(len(workload)) / 3)
    one = [
        score.scores(table_of(np.array([r]), workload.domain).sum(score.query))
        for r in product(*(range(k) for k in workload.domain.shape))
    ]
    none = score.scores(table_of(np.zeros((0, 3), dtype=int), workload.domain).sum(score.query))
    moves = [a - none for a in one] if unit == "add-remove" else [a - b for a in one for b in one]
    assert max(np.abs(m).max() for m in moves) == score.linf(UNITS[unit])


@pytest.mark.crossed
@pytest.mark.parametrize("kind", WORKLOADS)
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("unit", UNITS)
def test_release_audit(unit, budget, method, kind):
    learner = METHODS[method](WORKLOADS[kind])
    assert not failures(audit_replay(learner.fit, WORKLOADS[kind].domain, UNITS[unit], BUDGETS[budget], count=8))


class Worst:
    """An oracle that could not be worse: the record that *minimises* what it is asked to maximise."""

    def solve(self, terms, weights, linear, rng):
        from discreet.inference.best_record import Enumeration

        return Best(Enumeration().solve(terms, -weights, -linear, rng).records, math.inf)


TWO = Domain.of({"a": 2, "b": 2})


@pytest.mark.crossed
@pytest.mark.parametrize("oracle", [None, Worst()], ids=["best", "worst"])
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
@pytest.mark.parametrize("budget", [ZCDP(0.4), PureDP(1)], ids=["zcdp", "pure"])
def test_exact_divergence_of_tiny_games(budget, relation, oracle):
    """Two rounds over all pairs of neighbours of up to two rows, whatever the oracle does."""
    unit = PrivacyUnit(relation=relation)
    workload = Parities(TWO, all_monomials(TWO, 2))

    def game(curator):
        curator.public_size = 2  # so that nothing but the selections is paid for
        return leader(workload, rounds=2, samples=2, oracle=oracle).fit(curator).records

    assert compare(game, unit, budget, (0, 1, 2)) >= 10


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_exact_divergence_of_tiny_weights(relation):
    """Two rounds of selection and measurement; noise is clamped to a window, which is post-processing."""
    workload = Parities(TWO, [("a",), ("a", "b")])

    def weights(curator):
        curator.public_size = 1
        return MultiplicativeWeights(workload, rounds=2).fit(curator).answers

    assert compare(weights, PrivacyUnit(relation=relation), ZCDP(0.4), (0, 1)) >= 4


def compare(algorithm, unit, budget, sizes, window=(-1, 2)):
    laws = [
        (rows, output_law(algorithm, table_of(rows, TWO), unit, budget, window=window))
        for n in sizes
        for rows in all_tables((2, 2), n)
    ]
    compared = 0
    for left, p in laws:
        for right, q in laws:
            if neighbours(left, right, unit.relation):
                compared += 1
                assert not failures([check_pair(p, q, budget)])
    return compared


def neighbours(left, right, relation):
    a, b = sorted(map(tuple, left)), sorted(map(tuple, right))
    if relation == "add-remove":
        return len(b) == len(a) + 1 and any(a == b[:i] + b[i + 1 :] for i in range(len(b)))
    return len(a) == len(b) and any(
        a[:i] + a[i + 1 :] == b[:j] + b[j + 1 :] for i in range(len(a)) for j in range(len(b))
    )


# -- planted bugs ------------------------------------------------------------------------------------------------------


def test_half_the_sensitivity_is_caught(monkeypatch):
    honest = SignedResiduals.linf
    monkeypatch.setattr(SignedResiduals, "linf", lambda self, unit: max(honest(self, unit) // 2, 1))
    assert failures(
        audit_replay(leader(WORKLOADS["parities"]).fit, BINARY, UNITS["replace-one"], BUDGETS["zcdp"], count=20)
    )
    with pytest.raises(AssertionError):

        def game(curator):
            curator.public_size = 2
            return leader(Parities(TWO, all_monomials(TWO, 2)), rounds=2, samples=2).fit(curator).records

        compare(game, PrivacyUnit(relation="replace-one"), ZCDP(0.4), (1, 2))


def test_the_exact_number_of_records_is_caught():
    """n·answer with the true n: under add-remove the approximation is then not public."""

    def careless(curator):
        n = int(curator._rows.count([()])[0])
        score = SignedResiduals(WORKLOADS["parities"].query, n * np.full(len(WORKLOADS["parities"]), 0.5))
        return curator.select(score, curator.budget).indices, n

    assert failures(audit_replay(careless, BINARY, UNITS["add-remove"], BUDGETS["zcdp"], count=10))


def test_an_oracle_that_saw_the_rows_is_caught():
    """Answers read off the true records instead of the synthetic ones."""

    def careless(curator):
        released = leader(WORKLOADS["parities"]).fit(curator)
        sums = curator._rows.sum(WORKLOADS["parities"].query)[0]
        return released.answers + 1e-9 * sums

    assert failures(audit_replay(careless, BINARY, UNITS["add-remove"], BUDGETS["zcdp"], count=10))


def test_selecting_for_free_is_caught():
    """A selection that is measured but was paid as if the score did not move."""

    def careless(curator):
        released = MultiplicativeWeights(WORKLOADS["parities"], rounds=2).fit(curator)
        curator._accountant.spending = type(curator._accountant.spending)()
        return released.answers, GaussianAnswers(WORKLOADS["parities"]).fit(curator, curator.budget).answers

    assert failures(audit_replay(careless, BINARY, UNITS["add-remove"], BUDGETS["zcdp"], count=6))


def test_understated_parity_sums_are_caught(monkeypatch):
    from discreet.privacy.unit import Sensitivity

    monkeypatch.setattr(ParitySums, "row_sensitivity", lambda self, relation: (Sensitivity(1, 1, 1, 1),))
    assert failures(
        audit_replay(
            GaussianAnswers(WORKLOADS["parities"]).fit, BINARY, UNITS["replace-one"], BUDGETS["zcdp"], count=10
        )
    )


# -- rounds, scale and oracle of the perturbed leader ------------------------------------------------------------------


def game_error(perturbation, rounds, scale, seed, samples=40):
    """Nearly without noise: what only the game leaves."""
    truth = generators.ising(6, generators.matching(6), weight=0.5)
    workload = Parities(truth.domain, all_monomials(truth.domain, 2))
    data = workload.answers_on(np.asarray(truth.sample(4000, seed).codes, dtype=np.int64))
    player = DataPlayer(workload.terms, Enumeration(), perturbation, scale, samples, seed)
    total = np.zeros(len(workload))
    for _ in range(rounds):
        now = workload.answers_on(player.play())
        total += now / rounds
        worst = int(np.abs(data - now).argmax())
        player.ask_for(worst, 1 if data[worst] > now[worst] else -1)
    return float(np.abs(total - data).max())


@pytest.mark.parametrize("perturbation", ["separator", "exponential"])
def test_the_error_of_the_game_vanishes_as_rounds_grow(perturbation):
    few, many = (
        np.mean([game_error(perturbation, T, SCALE * math.sqrt(T), seed) for seed in range(3)]) for T in (16, 256)
    )
    assert many < 0.6 * few
    assert many < 0.06
    assert game_error(perturbation, 256, 0.05, 0) > many  # unperturbed, the leader is always the worst answer


def test_records_a_round_grow_with_the_rounds_where_trying_all_is_cheap():
    """With a fixed number of them their sampling error, which selections follow, is soon the larger part."""
    small, large = (Parities(Domain.of({f"x{i}": 2 for i in range(p)}), [("x0", "x1")]) for p in (8, 14))
    assert [samples_of(small, rounds) for rounds in (50, 200, 800, 5000)] == [100, 100, 400, 512]
    assert samples_of(large, 800) == 100

    def error(samples: int) -> float:
        return float(
            np.mean([game_error("separator", 200, SCALE * math.sqrt(200), seed, samples) for seed in range(3)])
        )

    assert error(200) < 0.75 * error(10)


def test_enumeration_finds_the_best_record():
    rng = np.random.default_rng(1)
    binary = ParityTerms((2,) * 7, tuple(c for k in (1, 2, 3) for c in combinations(range(7), k)))
    mixed = CellTerms((2, 3, 4), (*(((0, a), (2, b)) for a in range(2) for b in range(4)), ((1, 2),)))
    for terms in (binary, mixed):
        everything = np.indices(terms.shape).reshape(len(terms.shape), -1).T
        weights = rng.integers(-2, 3, len(terms)).astype(float)
        linear = rng.normal(size=(5, int(terms.starts[-1])))
        assert np.allclose(terms.everywhere(weights), terms.values(everything, range(len(terms))) @ weights)
        best = Enumeration().solve(terms, weights, linear, rng)
        for one, record in zip(linear, best.records, strict=True):
            worth = objective(terms, weights, np.tile(one, (len(everything), 1)), everything)
            assert (everything[worth.argmax()] == record).all()


def test_the_search_seldom_misses_the_best_record():
    rng = np.random.default_rng(2)
    terms = ParityTerms((2,) * 9, tuple(c for k in (1, 2, 3) for c in combinations(range(9), k)))
    missed = []
    for _ in range(4):
        weights = np.bincount(rng.integers(0, len(terms), 100), minlength=len(terms)) * rng.choice(
            [-1.0, 1.0], len(terms)
        )
        noise = rng.laplace(0, 5, (50, 9))
        linear = np.stack([-noise, noise], axis=2).reshape(50, 18)
        values = [
            objective(terms, weights, linear, oracle.solve(terms, weights, linear, rng).records)
            for oracle in (Enumeration(), AnnealedSearch())
        ]
        assert (values[1] <= values[0] + 1e-9).all()
        missed.append(float(np.mean(values[1] < values[0] - 1e-9)))
    assert np.mean(missed) < 0.15


def test_rounds_and_scale_follow_from_public_numbers():
    few, many = (choose_rounds(WORKLOADS["parities"], n, ZCDP(0.1)) for n in (100, 1e5))
    assert (few, many) == (20, 1000)
