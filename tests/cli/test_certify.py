"""``fit --certify`` and ``discreet certify``: the certificate is paid for, saved, shown, verified; or refused."""

from __future__ import annotations

import json

import pytest
from command_desk import assert_discreet

from discreet import Ledger, Release
from discreet.io.archive import read_archive, write_archive

FIT = ["fit", "data.csv", "--schema", "schema.toml", "--epsilon", "1", "-o", "model.zip"]
CERTIFY = ["certify", "model.zip", "data.csv", "--schema", "schema.toml", "--epsilon", "0.5"]
GRAPH = ["--graph", "smoke -> city"]


@pytest.fixture
def model(desk, discreet):
    assert discreet(*FIT, *GRAPH, "--ledger", "ledger.db").code == 0
    return desk / "model.zip"


def test_fit_buys_and_shows_it(desk, discreet):
    found = discreet(*FIT)
    assert found.code == 0 and "certificate: distances of 3 pairs from the model" in found.out
    assert "): pairs of columns are" in found.out
    assert_discreet(found.text)
    assert "Certificate of fit (" in discreet("show", "model.zip").out
    shown = json.loads(discreet("show", "model.zip", "--json").out)
    assert shown["certificate"]["tables_compared"] == 3 and shown["spec"]["certify"] == 0.03
    checked = discreet("verify", "model.zip")
    assert checked.code == 0, checked.text


def test_a_share_on_the_line_over_the_run_file(desk, discreet):
    (desk / "run.toml").write_text('data = "data.csv"\nschema = "schema.toml"\nepsilon = 1\ncertify = 0.25\n')
    words = ["--run", "run.toml", "--json"]
    assert json.loads(discreet("plan", *words).out)["plan"]["steps"][-1]["part"] == 0.25
    assert json.loads(discreet("plan", *words, "--certify", "0.1").out)["plan"]["steps"][-1]["part"] == 0.1
    without = json.loads(discreet("plan", *words, "--certify", "0").out)["plan"]["steps"]
    assert not any("certificate" in step["name"] for step in without)
    assert json.loads(discreet("fit", *words, *GRAPH).out)["certificate"]["tables_compared"] == 3
    wrong = discreet("plan", *words, "--certify", "0.9")
    assert wrong.code != 0 and "from 0 (none) to 0.5" in wrong.err


def test_bought_afterwards_from_the_ledger(model, discreet):
    assert Release.load(model).certificate is None
    found = discreet(*CERTIFY, "--ledger", "ledger.db")
    assert found.code == 0, found.text
    assert "Plan: a certificate of fit for model.zip" in found.out and "Saved in model-certified.zip" in found.out
    assert "comes on top of what the model cost. Both together: ε = " in found.out
    assert_discreet(found.text)
    with Ledger.open("ledger.db") as ledger:
        assert str(ledger.spent) == "ε = 1.5 (pure DP)"
    certified = Release.load("model-certified.zip")
    assert certified.certificate.paid["budget"]["epsilon"] == "1/2"
    assert certified.refit_agrees() and certified.measurements is not None
    shown = discreet("show", "model-certified.zip").out  # nothing that it promises is about more than it paid for
    assert "Nothing in this release, the certificate of fit aside, would" in shown and "DP) in total" not in shown
    checked = discreet("verify", "model-certified.zip")
    assert checked.code == 0 and "for ε = 0.5 (pure DP)" in checked.out, checked.text
    assert "Signed by" in checked.out
    assert "Certificate of fit" in discreet("show", "model-certified.zip").out


@pytest.mark.parametrize("budget", [["--epsilon", "1", "--delta", "1e-6"], ["--rho", "0.1"]])
def test_other_budgets_units_and_a_workload(model, discreet, budget):
    (model.parent / "workload.txt").write_text("smoke,age,city\nage,city\n")
    said = ["certify", "model.zip", "data.csv", *budget, "--relation", "replace-one", "--public-size", "5", "--json"]
    found = discreet(*said, "--cliques", "workload.txt", "-o", "other.zip")
    assert found.code == 0, found.text
    assert json.loads(found.out)["certificate"]["tables_compared"] == 2
    certificate = Release.load("other.zip").certificate
    assert certificate.workload and certificate.records == 5 and certificate.paid["unit"]["relation"] == "replace-one"
    assert discreet("verify", "other.zip").code == 0
    persons = ["--unit-column", "patient", "--max-rows", "2", "-o", "persons.zip"]
    assert discreet("certify", "model.zip", "data.csv", *budget, *persons).code == 0
    assert Release.load("persons.zip").certificate.paid["unit"]["column"] == "patient"


@pytest.mark.parametrize("budget", [["--epsilon", "1"], ["--epsilon", "1", "--delta", "1e-6"]])
def test_weights_of_a_workload_file(model, discreet, budget):
    (model.parent / "workload.toml").write_text(
        'workload = [["smoke", "age"], {columns = ["age", "city"], weight = 2.5}]\n'
    )
    found = discreet("certify", "model.zip", "data.csv", *budget, "--workload", "workload.toml", "-o", "weighted.zip")
    assert found.code == 0 and "each with its weight" in found.out, found.text
    assert Release.load("weighted.zip").certificate.weights == (2, 5)
    checked = discreet("verify", "weighted.zip")
    assert checked.code == 0, checked.text
    assert_discreet(found.text)
    if "--delta" not in budget:  # the noise of a sum is for its weights: said to be larger, they would have cost more
        header, arrays = read_archive("weighted.zip")
        header["card"]["certificate"]["weights"] = [4, 10]
        write_archive("forged.zip", header, arrays)
        found = discreet("verify", "forged.zip")
        assert found.code == 6 and "moves it by more than its step says" in found.out, found.text


def test_the_plan_alone_spends_nothing(model, discreet):
    found = discreet(*CERTIFY, "--ledger", "ledger.db", "--plan", "--json")
    assert json.loads(found.out)["plan"]["steps"][0]["name"] == "certificate: distances of 3 pairs from the model"
    with Ledger.open("ledger.db") as ledger:
        assert str(ledger.spent) == "ε = 1 (pure DP)"


def test_what_is_wrong_is_found_before_anything_is_spent(model, discreet):
    (model.parent / "other.toml").write_text('[columns.smoke]\nlevels = ["yes", "no"]\n')
    cases = [
        ([*CERTIFY[:3], "--schema", "other.toml", "--epsilon", "1"], "not those of the model"),
        ([*CERTIFY, "-o", "model.txt"], "a release is a .zip file"),
        ([*CERTIFY, "-o", "model.zip"], "exists already"),
        ([*CERTIFY[:-1], "9"], "left"),
        ([*CERTIFY, "--relation", "sideways"], "--relation is add-remove or replace-one"),
        ([*CERTIFY, "--cliques", "smoke,hat"], "hat"),
        ([*CERTIFY, "--public-size", "0"], "public_size is a whole number"),
        ([*CERTIFY, "--engine", "abacus"], "--engine is one of"),
        (["certify", "asia.bif", "data.csv", "--epsilon", "1"], "asia.bif"),
    ]
    for words, said in cases:
        found = discreet(*words, "--ledger", "ledger.db")
        assert found.code != 0 and said in found.err, (words, found.text)
        assert_discreet(found.text)
    with Ledger.open("ledger.db") as ledger:
        assert str(ledger.spent) == "ε = 1 (pure DP)"


@pytest.mark.parametrize("bought", ["in the run", "afterwards"])
def test_a_forged_certificate_is_found(desk, discreet, bought):
    discreet(*FIT, "--certify", "0.2" if bought == "in the run" else "0")
    if bought == "afterwards":
        discreet(*CERTIFY, "-o", "model.zip", "--force")
    header, arrays = read_archive(desk / "model.zip")
    header.pop("checksum", None)
    certificate = header["card"]["certificate"]
    certificate["total"]["scale"] /= 2
    write_archive(desk / "forged.zip", header, arrays)
    found = discreet("verify", "forged.zip")
    assert found.code == 6 and "no step has paid for that" in found.out, found.text
    if bought == "afterwards":
        certificate["total"]["scale"] *= 2
        certificate["paid"]["budget"]["epsilon"] = "1/100"
        write_archive(desk / "cheaper.zip", header, arrays)
        found = discreet("verify", "cheaper.zip")
        assert found.code == 6 and "its certificate of fit:" in found.out, found.text


@pytest.mark.parametrize("budget", ["--epsilon 0.5", "--epsilon 0.5 --delta 1e-6", "--rho 0.1"])
@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_a_certificate_that_moves_further_than_its_step_says_is_found(model, discreet, budget, relation):
    """A step that says too small a sensitivity costs too little: noise of the same scale seems to protect more."""
    bought = discreet("certify", "model.zip", "data.csv", *budget.split(), "--relation", relation, "-o", "whole.zip")
    assert bought.code == 0 and discreet("verify", "whole.zip").code == 0
    header, arrays = read_archive("whole.zip")
    finer = header["card"]["certificate"]["each"]
    assert finer["grid"] == "1/64"
    finer["grid"] = "1/128"  # the same steps for sums that move twice as far
    write_archive("forged.zip", header, arrays)
    found = discreet("verify", "forged.zip")
    assert found.code == 6 and "moves it by more than its step says" in found.out


def test_a_certificate_without_protection_is_not_to_be_published(model, discreet):
    assert discreet(*CERTIFY, "-o", "whole.zip").code == 0
    header, arrays = read_archive("whole.zip")
    header["card"]["certificate"]["paid"]["origin"] = "exact"
    write_archive("forged.zip", header, arrays)
    found = discreet("verify", "forged.zip")
    assert found.code == 7 and "carries no guarantee" in found.out


def test_a_certificate_of_another_model_is_found(model, discreet):
    """That of a good model beside a bad one."""
    assert discreet(*CERTIFY, "-o", "whole.zip").code == 0
    header, arrays = read_archive("whole.zip")
    header["card"]["certificate"]["squares"][0] += 0.01
    write_archive("forged.zip", header, arrays)
    found = discreet("verify", "forged.zip")
    assert found.code == 1 and "about another model" in found.out
