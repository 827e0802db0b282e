"""How often the model predicts a column right, paid for: one count, exact arithmetic, its interval, its audit."""

from __future__ import annotations

import json

import numpy as np
import pytest

from discreet import ApproxDP, Curator, Domain, PrivacyUnit, PureDP, Release, encode, networks, resolve
from discreet.audit import audit_replay, failures
from discreet.errors import FileFormatError, InputError
from discreet.learn.accuracy import right_predictions
from discreet.learn.certifying import certify_later
from discreet.privacy.curator import ExactCurator
from discreet.privacy.queries.predictions import RightPredictions
from discreet.privacy.unit import Sensitivity
from discreet.release.certificate import Certificate
from discreet.tables.memory import MemoryTable

TRUTH = networks.load("asia")
RECORDS = TRUTH.sample(4000, random_state=5)
ROWS = encode(RECORDS.to_frame(), TRUTH.domain)


def by_hand(model, target):
    """Right predictions, from conditional probabilities of every record."""
    said = model.full_conditional(target, RECORDS.codes).argmax(axis=1)
    return int((said == RECORDS.codes[:, TRUTH.domain.index(target)]).sum())


@pytest.fixture(scope="module")
def release():
    with Curator(ROWS, PrivacyUnit(), PureDP(2)) as curator:
        return Release.of(resolve(TRUTH.domain, family="network", graph="smoke -> lung; lung -> xray").learn(curator))


@pytest.mark.parametrize("target", ["lung", "dysp", "smoke"])
def test_the_count_is_that_of_the_most_probable_levels(target):
    (right,) = ROWS.sum(right_predictions(TRUTH, target))
    assert int(right[0]) == by_hand(TRUTH, target)


def test_the_count_does_not_depend_on_batches():
    columns = [RECORDS.codes[:, i].astype(np.uint8) for i in range(len(TRUTH.domain))]
    query = right_predictions(TRUTH, "dysp")
    sums = {int(MemoryTable(TRUTH.domain, columns, batch_rows=b, threads=1).sum(query)[0][0]) for b in (3, 700, 10**6)}
    assert len(sums) == 1


SMALL = Domain.of({"a": 2, "b": 3})
SCORES = [(("a", "b"), np.array([[3, 1, 2], [0, 5, 5]]))]


@pytest.mark.parametrize("unit", [PrivacyUnit(), PrivacyUnit(relation="replace-one"), PrivacyUnit("p", max_rows=2)])
def test_the_audit_finds_nothing_and_catches_a_planted_bug(unit):
    def honest(curator):
        return curator.measure(RightPredictions(SMALL, "b", SCORES))

    assert not failures(audit_replay(honest, SMALL, unit, PureDP(1), count=60))

    class CountsTwice(RightPredictions):
        """Right predictions of the last level count thrice, and are paid for as if they did not."""

        def sum_rows(self, batch):
            (right,) = super().sum_rows(batch)
            more = (np.asarray(batch["b"]) == 1).sum() * 2
            return (right + more,)

        def row_sensitivity(self, relation):
            return (Sensitivity(1, 1, 1, 1),)

    def planted(curator):
        return curator.measure(CountsTwice(SMALL, "b", SCORES))

    assert failures(audit_replay(planted, SMALL, unit, PureDP(1), count=60))


def test_wrong_scores_are_refused():
    for tables in (
        [(("a",), np.zeros(2, dtype=np.int64))],
        [(("a", "b"), np.zeros((3, 2), dtype=np.int64))],
        [(("a", "b"), np.zeros((2, 3)))],
        [(("a", "b"), np.full((2, 3), 2**40))],
    ):
        with pytest.raises(InputError):
            RightPredictions(SMALL, "b", tables)


@pytest.mark.chance
@pytest.mark.parametrize("budget", [PureDP("0.5"), ApproxDP("0.5", "1e-6")], ids=str)
def test_the_interval_covers_what_is_true(release, budget):
    procedure = certify_later(release.model, PrivacyUnit(), budget, target="lung")
    assert [step.name for step in procedure.steps][1] == "certificate: how often lung is predicted right"
    true = by_hand(release.model, "lung") / len(RECORDS)
    covered = 0
    for _ in range(30):
        with Curator(ROWS, PrivacyUnit(), budget) as curator:
            found = Certificate.from_dict(procedure.run(curator).found["certificate"])
        right = found.right()
        covered += right.lower <= true <= right.upper
        assert right.upper - right.lower < 0.2
    assert covered >= 21  # of 30 at 90 %: fewer have a probability of 4e-4


def test_with_exact_counts_it_is_exact(release):
    procedure = certify_later(release.model, PrivacyUnit(), PureDP(1), target="lung")
    found = procedure.run(ExactCurator(ROWS, PrivacyUnit(), PureDP(1))).found["certificate"]
    assert found["accuracy"]["counts"] == [by_hand(release.model, "lung")]


def test_from_the_command_line_to_verify(release, tmp_path, monkeypatch, capsys):
    from discreet.cli import run

    monkeypatch.chdir(tmp_path)
    release.save("model.zip")
    RECORDS.to_csv("rows.csv")
    line = ["certify", "model.zip", "rows.csv", "--epsilon", "1", "--target", "lung", "-o", "certified.zip"]
    for relation in ("add-remove", "replace-one"):
        assert run([*line, "--force", "--relation", relation, "--json"]) == 0
        figures = json.loads(capsys.readouterr().out)["certificate"]["right_predictions_90_percent"]
        assert figures["target"] == "lung" and 0.8 < figures["estimate"] <= 1
        assert run(["verify", "certified.zip"]) == 0
        capsys.readouterr()
    assert run(["show", "certified.zip"]) == 0
    assert "predicts lung from the other columns right for" in capsys.readouterr().out
    assert run([*line[:-3], "nope", "--force"]) != 0


def test_a_file_that_says_nonsense_is_refused(release):
    procedure = certify_later(release.model, PrivacyUnit(), PureDP(1), target="lung")
    with Curator(ROWS, PrivacyUnit(), PureDP(1)) as curator:
        facts = procedure.run(curator).found["certificate"]
    assert Certificate.from_dict(facts).to_dict() == facts
    for wrong in ({"counts": [1, 2]}, {"counts": []}, {"target": 3}, {"grid": "1/2"}, {"which": [0]}):
        with pytest.raises(FileFormatError, match="certificate of fit is not well-formed"):
            Certificate.from_dict({**facts, "accuracy": {**facts["accuracy"], **wrong}})
