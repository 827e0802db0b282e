"""plan, fit, query, map, sample: from rows to a file that can be published, and what can be done with it."""

from __future__ import annotations

import json
import os
import shlex
from dataclasses import replace

import numpy as np
import pytest
import yaml
from command_desk import CANARIES, assert_discreet, contents

from discreet.errors import FileFormatError
from discreet.files import open_model
from discreet.io.archive import read_archive, write_archive
from discreet.methods import METHODS, STRUCTURE
from discreet.models import BayesianNetwork, MarkovRandomField
from discreet.privacy.budget import ApproxDP
from discreet.privacy.ledger import Ledger
from discreet.release import Release
from discreet.report.card import FIELDS
from discreet.spec import Spec

FIT = ("fit", "data.csv", "--schema", "schema.toml")
ARROWS = "smoke -> city; age, smoke -> city"


@pytest.fixture
def model(desk, discreet):
    """model.zip, a network with a public graph, at ε = 1."""
    result = discreet(*FIT, "--epsilon", "1", "--graph", "smoke -> city; smoke -> age", "--ledger", "ledger.db")
    assert result.code == 0, result.err
    return desk / "model.zip"


def spent(desk):
    with Ledger.open(desk / "ledger.db") as ledger:
        return pytest.approx(float(ledger.spent.epsilon))  # settled: crumbs of rounding go back


# -- plan and fit ----------------------------------------------------------------------------------------------------


def test_a_schema_and_a_budget_are_enough(desk, discreet):
    result = discreet(*FIT, "--epsilon", "1")
    assert result.code == 0, result.err
    assert_discreet(result.text)
    assert "No row has been read" in result.out and "Guarantee: ε = 1" in result.out
    release = Release.load(desk / "model.zip")
    assert release.spec.method == "adaptive" and release.model.domain.names == ("smoke", "age", "city")
    for canary in CANARIES:
        assert canary.encode() not in (desk / "model.zip").read_bytes()


def test_what_comes_next_can_be_typed_whatever_the_names_are(desk, discreet):
    (desk / "odd.csv").write_text("claim date,x\n" + "yes,no\nno,yes\n" * 50)
    (desk / "odd.toml").write_text(
        'version = 1\n[columns."claim date"]\nlevels = ["yes", "no"]\n[columns.x]\nlevels = ["yes", "no"]\n'
    )
    words = ["fit", "odd.csv", "--schema", "odd.toml", "--graph", "claim date -> x", "--epsilon", "1"]
    lines = discreet(*words, "-o", "an odd.zip", "--no-plan").out.splitlines()
    for command in next(line for line in lines if line.startswith("Next: ")).removeprefix("Next: ").split("; "):
        done = discreet(*shlex.split(command)[1:])
        assert done.code == 0, done.err


def test_the_plan_reads_no_row_and_spends_nothing(desk, discreet):
    before = contents(desk)
    (desk / "data.csv").unlink()
    result = discreet("plan", "--schema", "schema.toml", "--epsilon", "1", "--graph", ARROWS)
    assert result.code == 0, result.err
    assert "smoke × age × city" in result.out and "Memory: about" in result.out and "Time:" in result.out
    del before["data.csv"]
    assert contents(desk) == before
    as_json = json.loads(discreet("plan", "--schema", "schema.toml", "--rho", "0.1", "--json").out)
    assert as_json["spec"]["method"] == "adaptive" and as_json["seconds"] >= 0
    sized = discreet(
        "plan", "--schema", "schema.toml", "--epsilon", "1", "--graph", ARROWS, "--approximate-size", "1000"
    )
    assert "n ≈ 1000" in sized.out


TIMES = [
    "--unit-column",
    "patient",
    "--max-rows",
    "2",
    "--time-column",
    "age",
    "--window",
    "3",
    "--state-column",
    "smoke",
]
FITS = {
    "network by its graph": ["--graph", "smoke -> city"],
    "network, uniform": ["--graph", "smoke -> city", "--method", "uniform"],
    "network, two-stage": ["--graph", "smoke -> city", "--method", "two-stage"],
    "network found": ["--family", "network"],
    "network searched with an option": ["--family", "network", "--method", "searched", "--option", "max_parents=1"],
    "field by its edges": ["--graph", "smoke -- city; age -- city"],
    "field by its cliques": ["--cliques", "smoke,age", "--cliques", "city"],
    "field from arrows": ["--family", "field", "--graph", "smoke -> city"],
    "field adaptive": [],
    "field adaptive with a delta": ["--delta", "1e-6"],
    "field adaptive with options": ["--option", "most_cells=20", "--option", "triples=false"],
    "field, collective": ["--family", "field", "--method", "collective", "--cliques", "smoke,city"],
    "pairwise": ["--family", "pairwise"],
    "field, public size": ["--public-size", "5"],
    "field, replace-one": ["--relation", "replace-one"],
    "field, person": ["--unit-column", "patient", "--max-rows", "2"],
    "field, memory engine": ["--engine", "memory"],
    "field, chain through windows": [*TIMES, "--family", "chain"],
    "field, chain of weights 1/K": [*TIMES, "--family", "chain", "--option", "bound=scale", "--option", "order=2"],
    "field, chain by the clock": [*TIMES, "--family", "chain", "--segment", "50", "--null-state", "no"],
    "field, chain of other columns": ["--family", "chain", "--option", "tied=false"],
    "field of windows": [*TIMES, "--cliques", "t1,t3"],
}


@pytest.mark.parametrize("name", FITS)
def test_every_way_to_fit(name, desk, discreet):
    result = discreet(*FIT, "--epsilon", "1", *FITS[name])
    assert result.code == 0, result.err
    assert_discreet(result.text)
    release = Release.load(desk / "model.zip")
    kind = MarkovRandomField if name.startswith("field") else object if name == "pairwise" else BayesianNetwork
    assert isinstance(release.model, kind)
    if release.measurements is not None:
        assert release.refit_agrees()
    for command in (["verify", "model.zip"], ["show", "model.zip", "--card", "card.yaml"], ["report", "model.zip"]):
        done = discreet(*command)
        assert done.code == 0, done.err


def test_windows_need_to_be_told_all_that_makes_them(desk, discreet):
    wrong = [
        (["--window", "3"], "--time-column"),
        (["--time-column", "age", "--window", "3"], "--unit-column"),
        ([*TIMES[:6]], "--window"),
        ([*TIMES[:8]], "--state-column"),
        ([*TIMES, "--engine", "duckdb"], "in memory"),
        ([*TIMES, "--segment", "hour"], "nobody was seen"),
        ([*TIMES, "--null-state", "perhaps"], "perhaps"),
        ([*TIMES[:4], "--time-column", "wen", *TIMES[6:]], "time column"),
    ]
    for words, said in wrong:
        result = discreet(*FIT, "--epsilon", "1", "--ledger", "ledger.db", "--family", "chain", *words)
        assert result.code and said in result.err, (words, result.err)
        assert_discreet(result.text)
    with Ledger.open(desk / "ledger.db") as ledger:
        assert ledger.spent is None


@pytest.fixture
def hours(desk, discreet):
    """A chain learned from a long table on the desk."""
    lines = [f"p{p},2024-05-02T{9 + t}:00,{'yes' if (p + t) % 3 else 'no'},north" for p in range(60) for t in range(6)]
    (desk / "long.csv").write_text("patient,when,smoke,city\n" + "\n".join(lines) + "\n")
    words = ["--unit-column", "patient", "--max-rows", "1", "--time-column", "when", "--window", "3"]
    words += ["--state-column", "smoke", "--family", "chain", "--epsilon", "1", "--ledger", "ledger.db"]
    assert discreet("fit", "long.csv", "--schema", "schema.toml", *words, "-o", "hours.zip").code == 0
    return desk


def test_a_chain_is_evaluated_and_certified_beside_its_windows(hours, discreet):
    result = discreet("evaluate", "hours.zip", "long.csv", "--schema", "schema.toml", "--no-classifiers")
    assert result.code == 0 and "120 rows of 3 columns" in result.out and "A row is a window" in result.out
    found = discreet(
        "certify", "hours.zip", "long.csv", "--schema", "schema.toml", "--epsilon", "1", "--ledger", "ledger.db"
    )
    assert found.code == 0 and discreet("verify", "hours-certified.zip").code == 0
    both = discreet(
        "evaluate",
        "hours.zip",
        "hours-certified.zip",
        "long.csv",
        "--schema",
        "schema.toml",
        "--no-classifiers",
        "--json",
    )
    assert both.code == 0 and json.loads(both.out)["records"] == 120


def test_windows_that_cannot_be_cut_again_are_refused_with_the_way_out(hours, discreet):
    evaluate = ["evaluate", "hours.zip"]
    schema = ["--schema", "schema.toml"]
    words = ["--unit-column", "patient", "--max-rows", "1", "--time-column", "when", "--window", "2"]
    words += ["--state-column", "smoke", "--family", "chain", "--epsilon", "0.5", "--ledger", "ledger.db"]
    assert discreet("fit", "long.csv", *schema, *words, "-o", "two.zip").code == 0
    release = Release.load("hours.zip")
    replace(release, run={}).save("python.zip")
    (hours / "other.toml").write_text('[columns.smoke]\nlevels = ["never", "often"]\n')
    before = (hours / "ledger.db").read_bytes()
    paid = ["--epsilon", "0.5", "--ledger", "ledger.db", "-o", "new.zip"]
    wrong = [
        ([*evaluate, "long.csv"], "give --schema FILE"),
        ([*evaluate, "two.zip", "long.csv", *schema], "one at a time"),
        ([*evaluate, "long.csv", *schema, "--engine", "duckdb"], "in memory"),
        (["evaluate", "python.zip", "long.csv"], "evaluate it there"),
        (["certify", "hours.zip", "long.csv", *paid], "give --schema FILE"),
        (["certify", "hours.zip", "long.csv", "--schema", "other.toml", *paid], "not those of the model"),
        (["certify", "hours.zip", "long.csv", *schema, *paid, "--unit-column", "city", "--max-rows", "1"], "'city'"),
    ]
    for line, said in wrong:
        result = discreet(*line)
        assert result.code and said in result.err, (line, result.err)
    assert (hours / "ledger.db").read_bytes() == before
    for key, value in {"window": "3", "time_column": 5, "segment": [1], "time_format": 1}.items():
        replace(release, run={**release.run, key: value}).save("odd.zip")
        result = discreet("evaluate", "odd.zip", "long.csv", *schema)
        assert result.code and f"{key} must be" in result.err


def test_a_run_file_says_how_windows_are_made(desk, discreet):
    (desk / "run.toml").write_text(
        'data = "data.csv"\nschema = "schema.toml"\nepsilon = 1\nfamily = "chain"\nunit_column = "patient"\n'
        'max_rows = 2\ntime_column = "age"\nwindow = 2\nsegment = 50\nnull_state = "no"\nstate_column = "smoke"\n'
        'time_format = "%d.%m.%Y"\n'
    )
    result = discreet("fit", "--run", "run.toml")
    assert result.code == 0, result.err
    release = Release.load(desk / "model.zip")
    assert release.model.domain.names == ("t1", "t2") and release.run["segment"] == 50


@pytest.mark.chance
def test_a_field_of_nothing_but_noise_says_so_everywhere(desk, discreet):
    fitted = discreet(*FIT, "--epsilon", "0.0001", "--family", "field", "--cliques", "smoke,city", "--force")
    assert "Beware: the tables do not stand out from their noise" in fitted.out
    for command in (
        ["show"],
        ["query", "P(smoke)"],
        ["query", "P(smoke=yes)"],
        ["query", "P(smoke)", "--no-intervals"],
    ):
        assert "tables do not stand out" in discreet(command[0], "model.zip", *command[1:]).out


BINARY = ["--family", "ising"], ["--family", "binary"], ["--family", "ising", "--method", "frank-wolfe"]


@pytest.mark.parametrize("words", BINARY)
def test_binary_families(words, desk, discreet):
    (desk / "two.toml").write_text(
        '[columns.smoke]\nlevels = ["yes", "no"]\n[columns.city]\nlevels = ["north", "south"]\n'
    )
    result = discreet("fit", "data.csv", "--schema", "two.toml", "--epsilon", "1", *words)
    assert result.code == 0, result.err
    assert open_model("model.zip").kind == words[1]


@pytest.mark.parametrize("name", ["graph.txt", "graph.csv", "graph.bif", "graph.zip"])
def test_graphs_from_files(name, desk, discreet, model):
    fitted = open_model(model)
    if name == "graph.txt":
        (desk / name).write_text("# a comment\nsmoke -> age\n\nsmoke -> city\n")
    elif name == "graph.csv":
        (desk / name).write_text("smoke,age\nsmoke,city\n")
    elif name == "graph.bif":
        fitted.with_card(None).save(desk / name)
    else:
        fitted.save(desk / name)
    result = discreet(*FIT, "--epsilon", "1", "--graph", name, "--force")
    assert result.code == 0, result.err
    assert set(map(frozenset, open_model(model).edges)) == {frozenset(e) for e in (("smoke", "age"), ("smoke", "city"))}


def test_the_ledger_remembers_month_after_month(desk, discreet):
    fit = [*FIT, "--epsilon", "1", "--graph", "smoke -> city", "--ledger", "ledger.db"]  # spends all of it
    for month in ("january", "february", "march"):
        result = discreet(*fit, "-o", f"{month}.zip", "--purpose", month)
        assert result.code == 0, result.err
    assert spent(desk) == 3
    refused = discreet(*fit, "-o", "april.zip")
    assert refused.code == 3 and "does not suffice" in refused.err and not (desk / "april.zip").exists()
    shown = discreet("ledger", "show", "ledger.db").out
    assert "january" in shown and "march" in shown


def test_ctrl_c_says_what_was_spent(desk, discreet, monkeypatch):
    import discreet.learn.networks.optimal as module

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(module.OptimalNetwork, "_estimate", interrupted)
    result = discreet(*FIT, "--epsilon", "1", "--graph", "smoke -> city", "--ledger", "ledger.db")
    assert result.code == 130
    assert "ε = 1 (pure DP) counts as spent" in result.err and "ledger.db" in result.err
    assert spent(desk) == 1
    assert not (desk / "model.zip").exists()


def test_a_full_disk_says_what_was_spent(desk, discreet, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("discreet.io.archive.write_atomically", full)
    result = discreet(*FIT, "--epsilon", "1", "--graph", "smoke -> city", "--ledger", "ledger.db")
    assert result.code == 9
    assert "No space left" in result.err and "counts as spent" in result.err
    assert "Traceback" not in result.text


def test_json(desk, discreet):
    result = discreet(*FIT, "--epsilon", "1", "--graph", "smoke -> city", "--json")
    document = json.loads(result.out)
    assert document["file"] == "model.zip" and document["edges"] == [["smoke", "city"]]
    assert document["spec"]["method"] == "optimal" and document["has_intervals"] is True
    assert "counts" not in document


def test_the_number_of_records_is_nowhere(desk, discreet):
    outputs = set()
    for rows in (5, 6):
        (desk / "data.csv").write_text("smoke,age,city\n" + "yes,30,north\n" * rows)
        result = discreet("plan", "data.csv", "--schema", "schema.toml", "--epsilon", "1", "--graph", ARROWS)
        outputs.add(result.text)
    assert len(outputs) == 1


# -- run files -------------------------------------------------------------------------------------------------------

RUN = """\
data = "data.csv"
schema = "schema.toml"
epsilon = 1
graph = "smoke -> city"
ledger = "ledger.db"
purpose = "monthly"

[options]
fit_steps = 2

[card]
name = "Smoking in the city"
intended_use = "Testing"
data_curators = ["Ministry of Tests"]
"""


def test_a_run_file_says_it_all(desk, discreet):
    (desk / "run.toml").write_text(RUN)
    result = discreet("fit", "--run", "run.toml", "-o", "model.zip", "--card", "card.yaml")
    assert result.code == 0, result.err
    release = Release.load(desk / "model.zip")
    assert release.spec.options["fit_steps"] == 2
    assert dict(release.run)["epsilon"] == "1" and dict(release.run)["purpose"] == "monthly"
    assert "data.csv" not in json.dumps(dict(release.run)), "where files lie is not published"
    assert spent(desk) == 1
    card = yaml.safe_load((desk / "card.yaml").read_text())
    assert card["deployment"]["basic"]["name"] == "Smoking in the city"
    assert card["deployment"]["basic"]["data_curators"][0]["data_curator_name"] == "Ministry of Tests"
    assert card["deployment"]["basic"]["publication_date"] == "not stated"
    assert card["deployment"]["privacy_loss"]["privacy_parameters"] == {"epsilon": 1.0}
    assert {part: list(fields) for part, fields in card["deployment"].items()} == {
        p: list(f) for p, f in FIELDS.items()
    }
    assert discreet("show", "model.zip", "--card", "again.yaml").code == 0
    assert (desk / "again.yaml").read_text() == (desk / "card.yaml").read_text()


def test_the_line_overrides_the_file_but_for_the_budget(desk, discreet):
    (desk / "run.toml").write_text(RUN)
    result = discreet(
        "fit", "--run", "run.toml", "--graph", "smoke -> age", "--option", "fit_steps=1", "--epsilon", "1.0"
    )
    assert result.code == 0, result.err
    release = Release.load(desk / "model.zip")
    assert release.model.edges == (("smoke", "age"),) and release.spec.options["fit_steps"] == 1
    for words in (["--epsilon", "2"], ["--rho", "0.1"], ["--epsilon", "1", "--delta", "1e-6", "--rho", "1"]):
        refused = discreet("fit", "--run", "run.toml", "-o", "x.zip", *words)
        assert refused.code == 2 and "given twice" in refused.err
        assert not (desk / "x.zip").exists()


@pytest.mark.parametrize("delta", ["0.01", "0.5"])
def test_a_delta_that_protects_nobody_is_refused_unless_it_is_said_to_be_meant(desk, discreet, delta):
    fit = ["fit", "data.csv", "--schema", "schema.toml", "--graph", "smoke -> age", "--epsilon", "1", "--delta"]
    before = contents(desk)
    refused = discreet(*fit, delta)
    assert refused.code == 2 and "--allow-large-delta" in refused.err and "1e-6" in refused.err
    for words in (["plan", *fit[2:]], ["ledger", "create", "other.db", *fit[-3:]]):
        refused = discreet(*words, delta)
        assert refused.code == 2 and "--allow-large-delta" in refused.err
        allowed = discreet(*words, delta, "--allow-large-delta")
        assert allowed.code == 0 and "nothing at all is protected" in allowed.err
        (desk / "other.db").unlink(missing_ok=True)
    (desk / "other.db.key").unlink()
    assert contents(desk) == before
    (desk / "large.toml").write_text(f"delta = {delta}\nallow_large_delta = true\nepsilon = 1\n")
    allowed = discreet(*fit[:-3], "--run", "large.toml")
    assert allowed.code == 0 and Release.load(desk / "model.zip").card["budget"]["delta"] != "0"
    assert discreet(*fit, "0.0099", "-o", "small.zip", "--no-plan").code == 0


def test_places_are_meant_from_where_the_run_file_lies(desk, discreet, monkeypatch):
    (desk / "run.toml").write_text(RUN)
    (desk / "elsewhere").mkdir()
    monkeypatch.chdir(desk / "elsewhere")
    result = discreet("fit", "--run", "../run.toml", "-o", "model.zip")
    assert result.code == 0, result.err
    assert (desk / "elsewhere" / "model.zip").exists()


# -- asking ----------------------------------------------------------------------------------------------------------


def test_answers_come_with_the_noise(model, discreet):
    result = discreet(
        "query", "model.zip", "P(city | smoke=yes)", "P(smoke=yes)", "MAP(city | smoke=no)", "--draws", "8"
    )
    assert result.code == 0, result.err
    assert result.out.count("±") >= 6 and "of refits under fresh noise" in result.out
    plain = discreet("query", "model.zip", "P(city | smoke=yes)", "--no-intervals")
    assert "±" not in plain.out
    answers = json.loads(discreet("query", "model.zip", "P(city)", "MAP(city)", "--json", "--draws", "8").out)
    assert all(cell["noise"] > 0 for cell in answers[0]["cells"]) and answers[0]["level"] == 0.9
    assert 0 <= answers[1]["survival"] <= 1
    again = json.loads(discreet("query", "model.zip", "P(city)", "MAP(city)", "--json", "--draws", "8").out)
    assert again == answers, "post-processing is seeded"


def test_questions_of_one_call_share_their_refits(model, discreet, monkeypatch):
    calls = []
    estimate = Spec.estimate
    monkeypatch.setattr(Spec, "estimate", lambda *a, **k: calls.append(1) or estimate(*a, **k))
    counts = []
    for questions in (["P(city)"], ["P(city)", "P(smoke | city=north)", "MAP(age)", "P(age)"]):
        calls.clear()
        assert discreet("query", "model.zip", *questions, "--draws", "6").code == 0
        counts.append(len(calls))
    assert counts[0] == counts[1] >= 6, "the model is learned again for the noise, not for each question"


def test_models_without_tables_have_no_intervals(discreet, desk):
    result = discreet("query", "asia", "P(dysp=yes)")
    assert result.code == 0 and "±" not in result.out


def test_map(model, discreet):
    result = discreet("map", "model.zip", "--given", "smoke=yes", "--no-intervals")
    assert result.code == 0 and "age" in result.out and "probability" in result.out
    assert "of refits" in discreet("map", "model.zip", "city", "--draws", "4").out
    best = json.loads(discreet("map", "asia", "-k", "3", "--json").out)
    assert len(best) == 3 and best[0]["log_probability"] >= best[1]["log_probability"]


def test_sample(model, discreet, desk):
    result = discreet("sample", "model.zip", "-n", "50", "--seed", "1", "-o", "new.csv")
    assert result.code == 0, result.err
    lines = (desk / "new.csv").read_text().splitlines()
    assert lines[0] == "smoke,age,city" and len(lines) == 51
    assert discreet("sample", "model.zip", "-n", "50", "--seed", "1").out == (desk / "new.csv").read_text()
    assert discreet("sample", "model.zip", "-n", "50", "--seed", "2").out != (desk / "new.csv").read_text()
    assert discreet("sample", "model.zip", "-n", "50", "--seed", "1", "-o", "new.parquet").code == 0
    import pyarrow.parquet as pq

    table = pq.read_table(desk / "new.parquet")
    assert table.column_names == ["smoke", "age", "city"] and table.num_rows == 50
    given = discreet("sample", "model.zip", "-n", "20", "--given", "smoke=yes").out.splitlines()[1:]
    assert {line.split(",")[0] for line in given} == {"yes"}
    rows = json.loads(discreet("sample", "asia", "-n", "2", "--json").out)
    assert len(rows["rows"]) == 2


def test_nothing_is_left_beside_a_sample(model, discreet, desk, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "full")

    monkeypatch.setattr("discreet.models.records.Records.to_csv", full)
    before = set(os.listdir(desk))
    assert discreet("sample", "model.zip", "-o", "new.csv").code == 4
    assert set(os.listdir(desk)) == before


# -- looking at the file ---------------------------------------------------------------------------------------------


def test_show_and_verify_say_what_it_is(model, discreet):
    shown = discreet("show", "model.zip")
    assert "a Bayesian network of 3 columns and 2 edges" in shown.out and "smoke → city" in shown.out
    assert "noisy tables" in shown.out
    document = json.loads(discreet("show", "model.zip", "--json").out)
    assert document["spec"]["family"] == "network" and document["has_intervals"] is True
    verified = discreet("verify", "model.zip")
    assert verified.code == 0 and "follows from the noisy tables" in verified.out
    assert json.loads(discreet("verify", "model.zip", "--json").out)["verified"] is True


TAMPERED = {
    "another model": (lambda h, a: a.update(table0=np.array([0.25, 0.75])), "not what its specification makes", 1),
    "other tables": (
        lambda h, a: a.update({"released.counts00000": a["released.counts00000"] + 9}), "not what its specification", 1,
    ),
    "another budget": (lambda h, a: h["card"].update(budget={"notion": "pure", "epsilon": "1/2"}), "cost more than", 6),
    "budgets that differ": (
        lambda h, a: h["card"].update(budget={"notion": "pure", "epsilon": "2"}), "do not agree", 6,
    ),
    "a schema that was peeked": (
        lambda h, a: h["domain"]["columns"]["smoke"].update(peeked=["levels"]), "peeked at does not agree", 7,
    ),
    "where the rows lie": (lambda h, a: h["release"]["run"].update(data="/home/x/rows.csv"), "private files lie", 1),
    "an exact model": (lambda h, a: h["card"].update(origin="exact"), "no privacy guarantee", 7),
    "a specification of something else": (
        lambda h, a: h["release"].update(spec={"family": "ising", "method": "moments", "options": {}}), "", 1,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TAMPERED)
def test_verify_finds_what_was_changed_and_sealed_again(name, model, discreet):
    change, message, code = TAMPERED[name]
    header, arrays = read_archive(model)
    header, arrays = json.loads(json.dumps(header)), dict(arrays)
    change(header, arrays)
    write_archive(model, header, arrays)
    result = discreet("verify", "model.zip")
    assert result.code == code, result.text
    assert "PROBLEM" in result.out and message in result.out
    assert "Traceback" not in result.text


def test_damage_is_found(model, discreet):
    data = bytearray(model.read_bytes())
    data[len(data) // 2] ^= 1
    model.write_bytes(bytes(data))
    assert discreet("verify", "model.zip").code == 1
    with pytest.raises(FileFormatError):
        Release.load(model)


# -- special data ----------------------------------------------------------------------------------------------------

ZEROS = '\n[[impossible]]\nage = "[0, 18)"\nsmoke = "yes"\n'


def test_impossible_combinations_have_no_probability(desk, discreet):
    (desk / "schema.toml").write_text((desk / "schema.toml").read_text() + ZEROS)
    for words in (["--graph", "smoke -> age"], ["--cliques", "smoke,age"], ["--cliques", "smoke,city"], []):
        result = discreet(*FIT, "--epsilon", "1", "--force", *words)
        assert result.code == 0, result.err
        model = open_model("model.zip")
        enforced = words != [] or model.card["impossible_enforced"] == 1
        if enforced:
            assert model.probability({"age": "[0, 18)", "smoke": "yes"}) == 0
        assert discreet("verify", "model.zip").code == 0
    result = discreet(
        "measure", "data.csv", "--schema", "schema.toml", "--table", "smoke,age", "--epsilon", "1", "--json"
    )
    table = json.loads(result.out)["tables"][0]
    assert table["counts"][table["levels"][0].index("yes")][table["levels"][1].index("[0, 18)")] == 0


def test_a_rule_outside_every_family_holds_all_the_same(desk, discreet):
    """The network becomes a field on its graph with the rule's edge."""
    (desk / "schema.toml").write_text((desk / "schema.toml").read_text() + ZEROS)
    assert discreet(*FIT, "--epsilon", "1", "--graph", "smoke -> city; age -> city").code == 0
    model = open_model("model.zip")
    assert model.kind == "markov" and model.card["impossible_enforced"] == 1
    assert model.probability({"age": "[0, 18)", "smoke": "yes"}) == 0
    assert discreet("verify", "model.zip").code == 0
    assert discreet("query", "model.zip", "P(age | smoke)", "--draws", "3").code == 0


def test_public_totals_are_met(desk, discreet):
    (desk / "schema.toml").write_text(
        (desk / "schema.toml").read_text() + '\n[[totals]]\ncolumns = ["smoke"]\ncounts = [200, 800]\n'
    )
    (desk / "data.csv").write_text("smoke,age,city\n" + "yes,30,north\n" * 200 + "no,30,south\n" * 800)
    result = discreet(*FIT, "--epsilon", "1", "--graph", "smoke -> city")
    assert result.code == 0, result.err
    assert "Public totals of the schema: public smoke" in result.out
    release = Release.load(desk / "model.zip")
    assert release.card["public_size"] == 1000, "the totals say how many there are"
    assert release.model.probability({"smoke": "yes"}) == pytest.approx(0.2, abs=0.01)
    assert discreet("query", "model.zip", "P(smoke=yes)", "--draws", "5").code == 0


def test_shares_of_a_population_say_nothing_about_the_size(desk, discreet):
    (desk / "schema.toml").write_text(
        (desk / "schema.toml").read_text() + '\n[[totals]]\ncolumns = ["smoke"]\nproportions = [0.25, 0.75]\n'
    )
    (desk / "data.csv").write_text("smoke,age,city\n" + "yes,30,north\n" * 250 + "no,30,south\n" * 750)
    result = discreet(*FIT, "--epsilon", "1", "--graph", "smoke -> city")
    assert result.code == 0, result.err
    release = Release.load(desk / "model.zip")
    assert release.card["public_size"] is None
    assert release.model.probability({"smoke": "yes"}) == pytest.approx(0.25, abs=0.01)


@pytest.mark.parametrize("engine", ["auto", "memory", "duckdb"])
def test_parquet_and_several_files(desk, discreet, engine):
    import polars as pl

    frame = pl.read_csv(desk / "data.csv", infer_schema=False)
    frame.write_parquet(desk / "rows.parquet")
    (desk / "part").mkdir()
    for number in range(2):
        frame.write_parquet(desk / "part" / f"{number}.parquet")
    for data in ("rows.parquet", "part"):
        words = ["fit", data, "--schema", "schema.toml", "--epsilon", "1", "--engine", engine, "--force"]
        result = discreet(*words)
        assert result.code == 0, result.err
        assert_discreet(result.text)
    frame.drop("city").write_parquet(desk / "rows.parquet")
    before = contents(desk)
    result = discreet(
        "fit", "rows.parquet", "--schema", "schema.toml", "--epsilon", "1", "--engine", engine, "-o", "x.zip"
    )
    assert result.code in (2, 4) and "'city'" in result.err
    assert contents(desk) == before


# -- research mode ---------------------------------------------------------------------------------------------------


def test_research_mode_saves_and_charges_nothing(desk, discreet):
    before = contents(desk)
    results = [discreet(*FIT, "--epsilon", "1", "--research-seed", "7", "--graph", "smoke -> city") for _ in range(2)]
    assert results[0].code == 0 and results[0].out == results[1].out
    assert "NOT A RELEASE" in results[0].out and "Guarantee" not in results[0].out
    assert contents(desk) == before


# -- shown, run, recorded --------------------------------------------------------------------------------------------

MODELS = [m for m in METHODS if m.family != STRUCTURE]


@pytest.mark.crossed
@pytest.mark.parametrize("public", [False, True], ids=["private size", "public size"])
@pytest.mark.parametrize("method", MODELS, ids=lambda m: f"{m.family} {m.name}")
def test_the_plan_that_is_shown_is_what_runs(method, public, desk, discreet):
    """Steps printed by plan and by fit = steps on the card = steps in the ledger; a public size is not paid for."""
    (desk / "two.toml").write_text(
        '[columns.smoke]\nlevels = ["yes", "no"]\n[columns.city]\nlevels = ["north", "south"]\n'
    )
    given = {"graph": ["--graph", "smoke -> city"], "cliques": ["--cliques", "smoke,city"]}.get(method.needs, [])
    words = ["data.csv", "--schema", "two.toml", "--epsilon", "1", "--family", method.family, "--method", method.name]
    words += [*given, *(["--public-size", "5"] if public else [])]
    demanded = {"order": 2, "min_weight": 0.2, "approximate_size": 5}
    words += [word for name in method.demands for word in ("--option", f"{name}={demanded[name]}")]
    words += ["--option", "tied=false"] if method.family == "chain" else []
    if method.name == "descent":  # (ε, δ) alone, and a ledger that takes it
        words += ["--delta", "1e-6"]
        (desk / "ledger.db").unlink()
        Ledger.create(desk / "ledger.db", ApproxDP(3, "1e-5")).close()
    planned = json.loads(discreet("plan", *words, "--json").out)["plan"]
    done = discreet("fit", *words, "--json", "--ledger", "ledger.db")
    assert done.code == 0, done.err
    fitted = json.loads(done.out)
    assert fitted["plan"] == planned
    names = [step["name"] for step in planned["steps"]]
    on_the_card = list(dict.fromkeys(step["step"] for step in fitted["release"]["steps"]))
    assert on_the_card == [name for name in names if name in on_the_card], "in order, and nothing else"
    assert not public or not any("number of records" in name for name in on_the_card if "parities" not in name)
    unasked = set(names) - set(on_the_card)
    assert all(planned["tables"][names.index(name)]["cells"] == 0 for name in unasked), "only what was left to later"
    with Ledger.open(desk / "ledger.db") as ledger:
        written = [step for entry in ledger.entries for step in entry.details.get("steps", [])]
    assert written == fitted["release"]["steps"]
