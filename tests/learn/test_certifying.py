"""The certificate of fit as the last step of a run: of the final model, within its share, for every learner or refused
before anything is spent; and the audits find what is planted in it."""

from __future__ import annotations

from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest

from discreet import ZCDP, ApproxDP, Curator, Domain, Ledger, PrivacyUnit, PureDP, Release, encode, networks, resolve
from discreet.audit import audit_replay, failures
from discreet.errors import BudgetError, FileFormatError, InputError
from discreet.learn import certifying
from discreet.learn.certifying import certify_later, divided, from_independence
from discreet.learn.compared import MOST_TABLES, Compared, some_of, whole_weights
from discreet.learn.fields.adaptive import AdaptiveField
from discreet.learn.transcript import Transcript
from discreet.measurement import Measurement
from discreet.models.markov import MarkovRandomField
from discreet.privacy.budget import GaussianDP
from discreet.privacy.claims import contradictions
from discreet.privacy.curator import ExactCurator
from discreet.privacy.mechanisms import SecureGateway
from discreet.privacy.queries.distances import Distances, TotalDistance
from discreet.privacy.query import Marginals
from discreet.privacy.unit import Sensitivity
from discreet.release.certificate import Certificate
from discreet.spec import Spec

BUDGETS = [PureDP(1), ZCDP("0.05"), ApproxDP(1, "1e-6")]
UNITS = [PrivacyUnit(), PrivacyUnit(relation="replace-one"), PrivacyUnit("person", max_rows=2)]
ASIA = networks.load("asia")
ROWS = ASIA.sample(400, random_state=1).to_pandas().assign(person=np.arange(400) // 2)
TINY = Domain.of({"a": 2, "b": 3, "c": 2})


def learned(spec, budget, unit=UNITS[0], public_size=None, rows=ROWS, domain=ASIA.domain):
    with Curator(encode(rows, domain, unit=unit.column), unit, budget, public_size=public_size) as curator:
        return Release.of(spec.learn(curator))


def distances(model, rows, cliques):
    """Total variation of each table from the records, by hand."""
    counts = ExactCurator(encode(rows, model.domain)).measure(Marginals(model.domain, cliques))
    return [
        float(np.abs(m.values / m.values.sum() - model.marginal(c).probabilities).sum() / 2)
        for c, m in zip(cliques, counts, strict=True)
    ]


# -- one specification -------------------------------------------------------------------------------------------------


def test_it_is_on_where_nobody_knows_the_graph_and_off_elsewhere():
    assert resolve(ASIA.domain).certify == 0.03
    assert resolve(ASIA.domain, certify=0).certify == 0 != resolve(ASIA.domain, certify=0.1).certify
    assert resolve(ASIA.domain, graph="smoke -> lung").certify == 0
    assert Spec("field", "adaptive").to_dict()["certify"] == 0.03
    assert "certify" not in Spec("field", "adaptive", certify=0).to_dict()
    for spec in (
        Spec("field", "adaptive"),
        Spec("field", "pairwise", certify=0.2),
        Spec("field", "adaptive", certify=0),
    ):
        assert Spec.from_dict(spec.to_dict()) == spec
    # files of before it was there have none
    assert Spec.from_dict({"family": "field", "method": "adaptive", "options": {}}).certify == 0


def test_sets_that_a_workload_names_are_what_is_certified():
    named = resolve(ASIA.domain, workload="smoke,lung 2; smoke,bronc,dysp")
    assert "of 2 tables" in named.prepare(ASIA.domain, PrivacyUnit(), PureDP(1)).steps[-1].name
    for spec in (resolve(ASIA.domain, workload="triples"), resolve(ASIA.domain, target="dysp")):
        assert "of 28 pairs" in spec.prepare(ASIA.domain, PrivacyUnit(), PureDP(1)).steps[-1].name


@pytest.mark.parametrize("share", [-0.1, 0.6, "much", True, float("nan")])
def test_a_share_that_is_none_is_refused(share):
    with pytest.raises(InputError, match="certify is the part of the budget"):
        resolve(ASIA.domain, certify=share)


def test_a_graph_alone_has_no_certificate():
    with pytest.raises(InputError, match="about a model"):
        Spec("structure", "selected_edges", certify=0.1)
    assert Spec("structure", "selected_edges").certify == 0


def test_what_divides_the_records_refuses_before_anything_is_spent():
    spec = Spec("spin", "maximal_monomials", {"order": 2, "min_weight": 0.2, "halves": True}, certify=0.1)
    ledger = Ledger.in_memory(PureDP(1))
    with (
        Curator(encode(ROWS, ASIA.domain), budget=PureDP(1), ledger=ledger) as curator,
        pytest.raises(InputError, match=r"random blocks of the records.*discreet certify"),
    ):
        spec.learn(curator)
    assert ledger.spent is None


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_shares_add_up_to_the_budget(budget):
    for within in (budget, AdaptiveField().within(ASIA.domain, budget)):
        rest, own = divided(within, 0.03)
        assert type(rest) is type(own)
        whole = budget.to_gaussian() if isinstance(rest, GaussianDP) else budget
        whole = whole.to_zcdp() if isinstance(rest, ZCDP) and isinstance(whole, ApproxDP) else whole
        amount = next(iter(whole.__dataclass_fields__))
        assert getattr(rest, amount) + getattr(own, amount) == getattr(whole, amount)
        assert float(getattr(own, amount) / getattr(whole, amount)) == pytest.approx(0.03)


# -- of the final model ------------------------------------------------------------------------------------------------


class Silent(SecureGateway):
    """Draws no noise, to see what is behind it."""

    def add_noise(self, call, values):
        return np.asarray(values)


@pytest.mark.crossed
@pytest.mark.parametrize("public", [False, True], ids=["no totals", "public totals"])
@pytest.mark.parametrize("size", [None, 400])
@pytest.mark.parametrize("spec", [Spec("field", "adaptive"), Spec("field", "pairwise", certify=0.2)], ids=str)
def test_without_noise_the_figures_are_those_of_the_released_model(spec, size, public):
    known = [Measurement.public(ASIA.domain, ["smoke"], [150, 250])] if public else []
    table = encode(ROWS, ASIA.domain)
    with Curator(table, budget=ZCDP("0.05"), public_size=size, gateway=Silent()) as curator:
        release = Release.of(spec.learn(curator, known))
    found = release.certificate
    pairs = list(combinations(ASIA.domain.names, 2))
    wanted = dict(zip(pairs, distances(release.model, ROWS, pairs), strict=True))
    assert found.cliques == tuple(pairs)
    if public:  # the totals are wrong, and so is the number of records then, if they are used
        assert release.model.marginal("smoke").probabilities != pytest.approx([0.5, 0.5], abs=1e-3)
    got = {c: fit.estimate for c, fit in found.fits().items()}
    assert [got[c] for c in pairs] == pytest.approx([wanted[c] for c in pairs], abs=4 / 128 / 400)
    assert found.mean == pytest.approx(np.mean(list(wanted.values())), abs=1e-4)


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_a_run_that_goes_on_has_the_same_certificate_to_ask_for(budget, unit, tmp_path):
    """Stopped before its last answer, a run comes to the same model and asks the same question."""
    spec, table = resolve(ASIA.domain), encode(ROWS, ASIA.domain, unit=unit.column)
    place = tmp_path / "answers"
    procedure = spec.prepare(ASIA.domain, unit, budget)
    procedure.run(Curator(table, unit, budget), Transcript(place))
    lines = place.read_bytes().splitlines(keepends=True)
    place.write_bytes(b"".join(lines[:-1]))  # without a ledger nobody knows of the last one
    released = procedure.run(Curator(table, unit, budget), Transcript(place))
    assert spec.conclude(released, ASIA.domain).model.card["certificate"]["cliques"]
    assert place.read_bytes().splitlines()[1:-1] == [line.rstrip(b"\n") for line in lines[1:-1]]


def test_pairs_beyond_the_limit_are_chosen_by_their_names_alone():
    wide = Domain.of({f"x{i}": 2 for i in range(100)})
    every = list(combinations(wide.names, 2))
    compared = Compared.of(None, wide)
    chosen = list(compared.cliques)
    assert len(every) == compared.every == 4950 and len(chosen) == MOST_TABLES == len(set(chosen))
    assert chosen == some_of(list(every)) == sorted(chosen, key=every.index)
    assert some_of(every[:20]) == every[:20]
    shares = [sum(f"x{i}" in c for c in chosen) / 99 for i in range(100)]  # like any others: 0.61 of each column's
    assert min(shares) > 0.4 and max(shares) < 0.8


def test_a_single_column_is_compared_itself():
    alone = Domain.of({"a": 3})
    release = learned(Spec("field", "adaptive"), ZCDP(1), rows={"a": [0, 1, 1, 2] * 50}, domain=alone)
    assert release.certificate.cliques == (("a",),)
    assert "): columns are" in str(release.certificate)


def test_a_model_too_wide_for_exact_marginals_is_drawn_from(monkeypatch):
    pairs = list(combinations(ASIA.domain.names, 2))
    exact, how = certifying.marginals(ASIA, pairs)
    assert how == "exactly"
    monkeypatch.setattr("discreet.models.marginals.DEFAULT_MEMORY_LIMIT", 0)
    drawn, how = certifying.marginals(ASIA, pairs)
    assert how == "from records drawn from the model"
    assert all(np.abs(a - b).max() < 0.01 for a, b in zip(exact, drawn, strict=True))
    again, _ = certifying.marginals(ASIA, pairs)  # a run that goes on must ask the same
    assert all((a == b).all() for a, b in zip(drawn, again, strict=True))


def test_how_far_a_table_is_from_independence():
    assert from_independence([np.array([[0.5, 0.0], [0.0, 0.5]])]) == pytest.approx(0.5)
    assert from_independence([np.outer([0.3, 0.7], [0.2, 0.8])]) == pytest.approx(0, abs=1e-12)
    assert from_independence([np.array([0.3, 0.7])]) == 0


# -- bought later ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("budget", [*BUDGETS, PureDP(200)], ids=str)
def test_bought_for_a_model_that_is_there(budget):
    release = learned(Spec("field", "pairwise"), ZCDP("0.5"))
    assert release.certificate is None
    procedure = certify_later(release.model, PrivacyUnit(), budget, [("smoke", "lung", "xray"), ("dysp", "bronc")])
    with Curator(encode(ROWS, ASIA.domain), budget=budget) as curator:
        certified = release.certified(procedure.run(curator))
    found = certified.certificate
    assert found.cliques == (("smoke", "lung", "xray"), ("bronc", "dysp")) and found.workload
    assert found.paid["budget"] == budget.to_dict() and contradictions(found.paid) == []
    assert {k: v for k, v in certified.card.items() if k != "certificate"} == dict(release.card)
    if budget == PureDP(200):
        truth = distances(release.model, ROWS, found.cliques)
        assert [found.of(c).estimate for c in found.cliques] == pytest.approx(truth, abs=0.01)


def test_whole_weights_keep_their_ratios():
    assert whole_weights([Fraction(1), Fraction(1)]) == ()
    assert whole_weights([Fraction("0.5"), Fraction("1.25"), Fraction(3)]) == (2, 5, 12)
    assert whole_weights([Fraction(4), Fraction(2)]) == (2, 1)
    assert whole_weights([Fraction(10**6), Fraction("0.001"), Fraction(500_400)]) == (1000, 1, 500)


@pytest.mark.parametrize("budget", [*BUDGETS, PureDP(200)], ids=str)
def test_the_mean_counts_tables_by_their_weights(budget):
    """Without noise exactly; with it, the interval is of the weighted mean."""
    release = learned(Spec("field", "pairwise"), ZCDP("0.5"))
    said = "smoke,lung 8; dysp,bronc; smoke,tub 0.5"
    procedure = certify_later(release.model, PrivacyUnit(), budget, said)
    table = encode(ROWS, ASIA.domain)
    facts = procedure.run(ExactCurator(table, budget=budget)).found["certificate"]
    exact = Certificate.from_dict(facts)
    truth = distances(release.model, ROWS, exact.cliques)
    assert exact.weights == (16, 2, 1)
    assert exact.mean == pytest.approx(np.average(truth, weights=[16, 2, 1]), abs=1e-3)
    assert Certificate.from_dict(exact.to_dict()) == exact and "each with its weight" in str(exact)
    with Curator(table, budget=budget) as curator:
        found = release.certified(procedure.run(curator)).certificate
    assert contradictions(found.paid) == [] and found.is_about(release.model)
    low, high = found.mean_interval(1 - 1e-6)
    assert low <= exact.mean <= high
    wrong = {**facts, "weights": [16, 2]}
    with pytest.raises(FileFormatError, match="do not fit together"):
        Certificate.from_dict(wrong)


def test_triples_are_a_workload_too():
    procedure = certify_later(ASIA, PrivacyUnit(), ZCDP("0.5"), "triples")
    assert "of 56 tables" in procedure.steps[0].name
    assert Compared.of("triples", Domain.of({"a": 2, "b": 3})).cliques == (("a", "b"),)
    named = resolve(ASIA.domain, workload="smoke,lung 2; smoke,bronc,dysp", target="smoke")
    with Curator(encode(ROWS, ASIA.domain), budget=ZCDP(1)) as curator:
        assert Release.of(named.learn(curator)).certificate.weights == (2, 1)  # the target adds nothing here


def test_what_cannot_be_certified():
    with pytest.raises(InputError, match="at most 3,000 tables"):
        wide = Domain.of({f"x{i}": 2 for i in range(80)})
        uniform = MarkovRandomField(wide, {})
        certify_later(uniform, PrivacyUnit(), PureDP(1), combinations(wide.names, 2))
    with pytest.raises(InputError, match="more than 4,194,304 cells"):
        large = Domain.of({"a": 3000, "b": 3000})
        certify_later(MarkovRandomField(large, {}), PrivacyUnit(), PureDP(1), [("a", "b")])
    with pytest.raises(InputError, match="no pair of columns is small enough"):
        certify_later(MarkovRandomField(large, {}), PrivacyUnit(), PureDP(1))
    with pytest.raises(BudgetError, match="too small or too large"):
        certify_later(ASIA, PrivacyUnit(), ApproxDP("1e-8", "1e-6"))
    release = learned(Spec("field", "pairwise"), ZCDP("0.5"))
    with pytest.raises(InputError, match="not the answers of a certificate"):
        release.certified(release.measurements)


# -- audits ------------------------------------------------------------------------------------------------------------


@pytest.mark.crossed
@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize(
    "spec", [Spec("field", "adaptive", certify=0.3), Spec("field", "pairwise", certify=0.3)], ids=str
)
def test_nothing_depends_on_rows_but_through_noise(spec, budget, unit):
    assert failures(audit_replay(spec.learn, TINY, unit, budget, count=6)) == []


class TooSure(Distances):
    """Planted: the sensitivity of add-remove under replace-one, too."""

    def row_sensitivity(self, relation):
        return super().row_sensitivity("add-remove")


class TooSureTotal(TotalDistance):
    """The same."""

    def row_sensitivity(self, relation):
        return super().row_sensitivity("add-remove")


class SumOfOne(TotalDistance):
    """Planted: a sum of m distances said to move as one does."""

    def row_sensitivity(self, relation):
        return (Sensitivity(64, 64**2, 64, 1),)


class OwnRows(Distances):
    """Planted: compared with independent columns *of the rows* instead of with the model."""

    def combine(self, counts):
        gaps = [64 * (x - np.rint(np.multiply.outer(x.sum(1), x.sum(0)) / max(x.sum(), 1))) for x in counts]
        return (np.array([int(np.abs(g).sum()) for g in gaps], dtype=np.int64),)


@pytest.mark.parametrize(
    ("name", "planted", "budget"),
    [
        ("Distances", TooSure, ZCDP("0.5")),
        ("Distances", OwnRows, ZCDP("0.5")),
        ("TotalDistance", TooSureTotal, PureDP(1)),
        ("TotalDistance", SumOfOne, PureDP(1)),
    ],
)
def test_what_is_planted_in_a_certificate_is_caught(name, planted, budget, monkeypatch):
    corner = np.full((2, 3, 2), -9.0)
    corner[0, 0, 0] = 9.0  # a record that comes from elsewhere takes two from every distance
    model = MarkovRandomField(TINY, {("a", "b", "c"): corner})
    unit = PrivacyUnit(relation="replace-one")
    procedure = certify_later(model, unit, budget)

    def run(curator):
        return procedure.run(curator)

    assert failures(audit_replay(run, TINY, unit, budget, count=80)) == []
    monkeypatch.setattr(certifying, name, planted)
    assert failures(audit_replay(run, TINY, unit, budget, count=80)) != []
