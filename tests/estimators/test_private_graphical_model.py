"""Graphical models as scikit-learn estimators: its checks, every family, prediction, and what private rows cost."""

import inspect
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import check_estimator

from discreet import ZCDP, Curator, Ledger, PrivacyUnit, PureDP, encode, networks
from discreet.audit import audit_replay, failures
from discreet.errors import BudgetError, DiscreetError, InputError
from discreet.estimators import PrivateGraphicalModel, PrivateLogisticRegression
from discreet.estimators.base import PrivacyWarning
from discreet.learn.held_out import HeldOut
from discreet.privacy.queries.likelihood import LogLikelihood

# What scikit-learn wants and privacy forbids, with the reason.
EXCEPTIONS = {
    "check_dtype_object": "an error on a value would show that some record holds it; what is no number has a bin",
    "check_estimators_empty_data_messages": "no rows is as good as one row: the number of records is private",
    "check_fit_idempotent": "two fits have different noise",
}


def test_scikit_learn_checks():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(
            PrivateGraphicalModel(allow_refit=True), expected_failed_checks=EXCEPTIONS, on_skip=None, on_fail=None
        )
    assert not {r["check_name"]: r["exception"] for r in results if r["status"] == "failed"}
    assert sum(r["status"] == "passed" for r in results) > 30


@pytest.fixture(scope="module")
def asia():
    truth = networks.load("asia")
    return truth, truth.sample(8000, random_state=0).to_pandas()


@pytest.mark.parametrize(
    "how",
    [
        {},
        {"graph": "smoke -> lung; smoke -> bronc"},
        {"cliques": [("smoke", "lung"), ("bronc", "dysp")]},
        {"family": "ising"},
        {"family": "pairwise"},
        {"family": "binary", "options": {"order": 3}},
    ],
    ids=["search", "graph", "cliques", "ising", "pairwise", "binary"],
)
def test_every_family(asia, how):
    truth, rows = asia
    found = PrivateGraphicalModel(ZCDP(0.5), domain=truth.domain, **how).fit(rows)
    public = truth.sample(500, random_state=1).to_pandas()
    assert found.score_samples(public).shape == (500,)
    assert found.score(public) == pytest.approx(found.score_samples(public).mean())
    assert set(found.sample(5, random_state=0).to_pandas().columns) == set(truth.domain.names)
    assert found.model_.card["origin"] == "release" and found.release_.card["budget"]["notion"] == "zcdp"
    assert found.score(public) > -8 * np.log(2)
    assert clone(found).get_params()["budget"] == ZCDP(0.5)


def test_prediction_of_a_column(asia):
    truth, rows = asia
    found = PrivateGraphicalModel(1.0, domain=truth.domain, graph=truth, target="either")
    X, y = rows.drop(columns="either"), rows["either"]
    found.fit(X, y)
    assert found.n_features_in_ == 7 and list(found.classes_) == list(truth.domain["either"].labels)
    assert found.predict_proba(X.head(10)).sum(axis=1) == pytest.approx(1)
    assert (found.predict(X) == y.to_numpy()).mean() > 0.97
    assert not hasattr(PrivateGraphicalModel(domain=truth.domain), "predict")
    with pytest.raises(DiscreetError, match="no column"):
        PrivateGraphicalModel(domain=truth.domain, target="eithr").fit(rows)


def test_absent_values_are_imputed(asia):
    truth, frame = asia
    model = PrivateGraphicalModel(50.0, domain=truth.domain, graph=truth).fit(frame)
    some = frame[["smoke", "lung", "xray"]].head(500).astype(object)
    some.loc[some.index % 3 == 0, "lung"] = None
    found = model.impute(some, 0).to_pandas()
    assert list(found) == list(truth.domain.names) and found.notna().all().all()
    there = some["lung"].notna()
    assert (found["lung"][there] == some["lung"][there]).all() and (found["smoke"] == some["smoke"]).all()
    whole = frame.head(60).astype(object)
    whole.loc[whole.index % 3 == 0, "lung"] = None
    for rows in (whole.to_numpy(), whole.to_numpy().tolist()):
        assert model.impute(rows, 0).to_pandas().equals(model.impute(whole, 0).to_pandas())
    with pytest.raises(DiscreetError, match="one column for each of"):
        model.impute(whole.to_numpy()[:, :2])


@pytest.mark.chance
def test_arrays_of_numbers_are_imputed():
    """Fitted on an array, imputed on one: numbers are drawn where they are absent, and near what they depend on."""
    rng = np.random.default_rng(0)
    x = rng.normal(0, 10, 4000)
    rows = np.stack([x, x + rng.normal(0, 1, 4000)], axis=1)
    model = PrivateGraphicalModel(20.0).fit(rows)
    some = rows[:300].copy()
    some[::2, 1] = np.nan
    found = model.impute(some, 0).to_pandas().to_numpy()
    np.testing.assert_array_equal(found[1::2], some[1::2])
    assert not np.isnan(found).any() and np.corrcoef(found[::2].T)[0, 1] > 0.8


def test_total_budget_plan_and_second_fits(asia):
    truth, rows = asia
    ledger = Ledger.in_memory(PureDP(2))
    found = PrivateGraphicalModel(1.0, domain=truth.domain, graph=truth, ledger=ledger)
    assert "ε = 1" in str(found.plan())
    found.fit(rows)
    before = ledger.spent
    with pytest.raises(BudgetError, match=r"fit number 2 .* allow_refit=True"):
        found.fit(rows)
    assert ledger.spent == before, "what is refused is not charged"
    found.set_params(allow_refit=True)
    with pytest.warns(PrivacyWarning, match="again"):
        found.fit(rows)
    with pytest.raises(BudgetError), pytest.warns(PrivacyWarning):
        found.fit(rows)
    with pytest.raises(DiscreetError, match="domain"):
        PrivateGraphicalModel().plan()


@pytest.mark.parametrize("estimator", [PrivateGraphicalModel, PrivateLogisticRegression])
def test_an_argument_it_does_not_have_is_named_with_the_right_one(estimator):
    for name, way in {
        "epsilon": "give the total as budget=ε",
        "rho": r"give the total as budget=ZCDP\(ρ\)",
        "bugdet": "did you mean 'budget'",
        "kernel": "known: 'budget', 'delta'",
    }.items():
        with pytest.raises(DiscreetError, match=f"{estimator.__name__} has no argument '{name}'; {way}"):
            estimator(**{name: 1})
    assert list(inspect.signature(estimator).parameters)[:2] == ["budget", "delta"]  # for editors and for help()
    assert not any(p.kind is p.VAR_KEYWORD for p in inspect.signature(estimator).parameters.values())


def test_persons(asia):
    truth, rows = asia
    rows = rows.assign(who=np.arange(len(rows)) // 2)
    unit = PrivacyUnit("who", 2)
    found = PrivateGraphicalModel(1.0, domain=truth.domain, graph=truth, unit=unit).fit(rows)
    assert found.model_.card["unit"]["column"] == "who"


def test_a_release_can_be_saved(asia, tmp_path):
    from discreet.release import Release

    truth, rows = asia
    found = PrivateGraphicalModel(1.0, domain=truth.domain, graph=truth).fit(rows)
    found.release_.save(tmp_path / "m.zip")
    again = Release.load(tmp_path / "m.zip")
    assert again.model == found.model_ and again.has_intervals


# -- private rows are paid for -----------------------------------------------------------------------------------------


def test_held_out_likelihood_is_close_and_paid_for(asia):
    truth, rows = asia
    table = encode(rows, truth.domain)
    with Curator(table, budget=PureDP(2)) as curator:
        found = HeldOut(truth).fit(curator, PureDP(1))
        assert found == pytest.approx(np.maximum(truth.log_prob(rows), -20).mean(), abs=0.15)
        assert curator.spent is not None and float(curator.spent.epsilon) == pytest.approx(1)


UNITS = [
    PrivacyUnit(),
    PrivacyUnit(relation="replace-one"),
    PrivacyUnit("who", 2),
    PrivacyUnit("who", 2, "replace-one"),
]


@pytest.mark.parametrize("unit", UNITS, ids=str)
def test_held_out_likelihood_passes_the_audits(unit):
    truth = networks.load("asia")
    found = audit_replay(HeldOut(truth, floor=-5.0).measure, truth.domain, unit, PureDP(1), count=40)
    assert failures(found) == []


def test_a_likelihood_that_is_not_clipped_is_caught(monkeypatch):
    truth = networks.load("asia")

    def unclipped(self, batch):
        value = np.full(len(next(iter(batch.values()))), -self._log_partition)
        for clique, table in self._tables:
            value += np.maximum(table[tuple(batch[name] for name in clique)], -50)
        return np.array([np.rint(value * (1024 / 0.5)).astype(np.int64).sum()]), np.array([len(value)])

    monkeypatch.setattr(LogLikelihood, "sum_rows", unclipped)
    found = audit_replay(HeldOut(truth, floor=-0.5).measure, truth.domain, PrivacyUnit(), PureDP(1), count=40)
    assert failures(found)


def test_numbers_without_bounds_are_never_taken_to_lie_between_minus_one_and_one():
    rng = np.random.default_rng(0)
    x = rng.normal(170, 10, 4000)
    frame = pd.DataFrame({"height": x, "weight": 0.5 * x + rng.normal(0, 5, 4000)})
    model = PrivateGraphicalModel(3.0, delta=1e-6).fit(frame)
    for name in ("height", "weight"):
        found = model.domain_[name]
        assert (
            found.found - {"spread"} == {"edges", "range"}
            and found.edges[0] < frame[name].mean() < found.edges[-1] < 1000
        )
        assert found.bins >= 3 and model.release_.card["found_privately"][name][:2] == ["edges", "range"]
    assert np.isfinite(model.score_samples(frame[:10])).all()
    public = PrivateGraphicalModel(3.0, bounds=(0, 250), bins=5).fit(frame)
    assert public.domain_["height"].edges == (0, 50, 100, 150, 200, 250) and not public.domain_.found
    for bounds in ((1, 0), "private", (0, np.inf), (1, 2, 3), ("0", "1")):
        with pytest.raises(InputError, match="bounds are two finite numbers in order, or None"):
            PrivateGraphicalModel(3.0, bounds=bounds).fit(frame)
