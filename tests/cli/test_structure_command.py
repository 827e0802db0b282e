"""discreet structure: a plan, a graph or an honest refusal, paid for, and a file that `fit --graph` takes."""

from __future__ import annotations

import json

import pytest
from command_desk import CANARIES, assert_discreet, contents

from discreet import Curator, PrivacyUnit, Release, Spec, open_table, resolve
from discreet.errors import FileFormatError, InputError
from discreet.learn.graph_files import read_graph
from discreet.learn.structure.learner import StructureLearner
from discreet.models import generators
from discreet.privacy.budget import ApproxDP
from discreet.privacy.curator import ExactCurator
from discreet.privacy.ledger import Ledger
from discreet.schema import load_schema

ASK = ("structure", "rows.csv", "--schema", "two.toml")
STABLE = ("--epsilon", "1", "--delta", "1e-6")
EDGES = [["a", "b"], ["b", "c"]]


@pytest.fixture
def survey(desk):
    """3,000 rows of a chain a – b – c and a column d apart, so plain that a refusal has a probability below 1e-9."""
    model = generators.ising(4, [(0, 1), (1, 2)], weight=0.6)
    rows = model.sample(3000, random_state=1).to_pandas().set_axis(list("abcd"), axis=1)
    rows.to_csv(desk / "rows.csv", index=False)
    levels = json.dumps(list(model.domain.attributes[0].labels))
    (desk / "two.toml").write_text("".join(f"[columns.{name}]\nlevels = {levels}\n" for name in "abcd"))
    Ledger.create(desk / "approx.db", ApproxDP(3, 1e-5)).close()
    return desk


def spent(desk):
    with Ledger.open(desk / "approx.db") as ledger:
        return None if ledger.spent is None else float(ledger.spent.epsilon)


def test_the_plan_reads_no_row_and_spends_nothing(survey, discreet):
    (survey / "rows.csv").unlink()
    before = contents(survey)
    result = discreet(*ASK, *STABLE, "--min-weight", "0.5", "--plan", "--ledger", "approx.db")
    assert result.code == 0, result.err
    assert "No row has been read" in result.out and "distance to another graph" in result.out
    assert "times as many on a graph with loops" in result.out.replace("\n", " ")
    assert contents(survey) == before
    as_json = json.loads(discreet(*ASK, "--rho", "0.1", "--plan", "--json").out)
    assert as_json["plan"]["method"] == "selected edges"
    counted, public = (discreet(*ASK, *STABLE, "--plan", *more).out for more in ([], ["--public-size", "3000"]))
    assert "number of records" in counted and "number of records" not in public


def test_a_graph_is_released_paid_for_and_used(survey, discreet):
    result = discreet(*ASK, *STABLE, "--min-weight", "0.5", "--ledger", "approx.db", "-o", "graph.json")
    assert result.code == 0, result.err
    assert "a -- b" in result.out and "positive" in result.out and "Guarantee: ε = 1, δ = 1e-06" in result.out
    assert spent(survey) == 1
    saved = json.loads((survey / "graph.json").read_text())
    assert saved["edges"] == EDGES and saved["refused"] is False and saved["release"]["origin"] == "release"
    assert set(saved) == {"kind", "refused", "method", "columns", "edges", "interactions", "evidence", "reason",
                          "enough", "release", "signature"}  # fmt: skip
    used = discreet("fit", "rows.csv", "--schema", "two.toml", *STABLE, "--ledger", "approx.db",
                    "--graph", "graph.json", "--json")  # fmt: skip
    assert used.code == 0, used.err
    assert json.loads(used.out)["edges"] == EDGES and spent(survey) == 2
    assert any("learned in another release (ε = 1, δ = 1e-06" in line for line in json.loads(used.out)["statement"])
    planned = discreet("plan", "--schema", "two.toml", *STABLE, "--graph", "graph.json")
    assert "learned in another release (ε = 1, δ = 1e-06" in planned.out.replace("\n", " ")


def test_in_python_too_a_graph_that_was_released_before_is_said_to_be(survey, discreet):
    result = discreet(*ASK, *STABLE, "--min-weight", "0.5", "-o", "graph.json")
    assert result.code == 0, result.err
    domain, budget = load_schema(survey / "two.toml"), ApproxDP(1, "1e-6")
    spec = resolve(domain, graph=survey / "graph.json")
    assert spec.graph_release == budget and Spec.from_dict(json.loads(json.dumps(spec.to_dict()))) == spec
    assert "learned in another release (ε = 1, δ = 1e-06" in str(spec.prepare(domain, PrivacyUnit(), budget))
    Release.of(spec.learn(Curator(open_table("rows.csv", domain), budget=budget))).save("model.zip")
    back = Release.load("model.zip")
    assert back.card["graph_release"] == back.refit().card["graph_release"] == budget.to_dict()
    drawn = resolve(domain, graph="a -- b")
    assert drawn.graph_release is None and "graph_release" not in drawn.to_dict()
    again = discreet(*ASK, *STABLE, "-o", "graph.json")
    assert again.code == 4 and "exists already" in again.err


@pytest.mark.parametrize("words", [["--rho", "0.2"], ["--epsilon", "3"], [*STABLE, "--relation", "replace-one"],
                                   [*STABLE, "--public-size", "3000"], [*STABLE, "--engine", "duckdb"]])  # fmt: skip
def test_other_notions_relations_and_engines(words, survey, discreet):
    """The chain is found under all of them: its correlations are 0.54, twelve standard deviations of the noise."""
    result = discreet(*ASK, *words, "--min-weight", "0.5", "--json")
    assert result.code == 0, result.err
    assert json.loads(result.out)["edges"] == EDGES


BLOCKS = ["--option", "min_weight=0.5", "--option", "width=1.5"]
METHODS = {
    "auto": ["--option", "min_weight=0.5"],
    "stable_edges": ["--option", "test=correlation"],
    "stable-edges": ["--option", "order=3", "--option", "min_weight=0.5"],
    "selected_edges": ["--option", "max_edges=2"],
    "thresholded": ["--option", "min_weight=0.5"],
    "thresholded_regressions": ["--option", "steps=5"],
    "stable_mode": BLOCKS,
    "stable_mode, tested": [*BLOCKS, "--option", "how=propose-test-release"],
    "stable_mode, each edge": [*BLOCKS, "--option", "how=each edge", "--option", "blocks=60"],
    "stable_mode, sparsitron": [*BLOCKS, "--option", "base=sparsitron", "--option", "order=3", "--option", "steps=9"],
}


@pytest.mark.parametrize("name", METHODS)
def test_every_method_is_reached_planned_paid_and_recorded(name, survey, discreet):
    """Steps of the plan = steps on the card = steps in the ledger, for every method and way to vote."""
    words = [*STABLE, "--method", name.split(",")[0], *METHODS[name], "--json"]
    planned = json.loads(discreet(*ASK, *words, "--plan").out)
    assert planned["spec"]["family"] == "structure"
    done = discreet(*ASK, *words, "--ledger", "approx.db", "-o", "graph.json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    assert found["plan"] == planned["plan"]
    names = [step["name"] for step in planned["plan"]["steps"]]
    asked = list(dict.fromkeys(s["step"] for s in found["release"]["steps"] if "step" in s))
    assert asked and asked == [name for name in names if name in asked]
    with Ledger.open(survey / "approx.db") as ledger:
        assert [s for e in ledger.entries for s in e.details.get("steps", [])] == found["release"]["steps"]
    assert json.loads((survey / "graph.json").read_text())["release"] == found["release"]


def test_the_least_weight_is_said_once(survey, discreet):
    result = discreet(*ASK, *STABLE, "--min-weight", "0.5", "--option", "min_weight=0.5")
    assert result.code == 2 and "given twice" in result.err


def test_a_refusal_is_a_result(survey, discreet):
    """Three records pass the threshold with a probability of at most δ = 1e-6."""
    (survey / "rows.csv").write_text("a,b,c,d\n" + "-1,1,-1,1\n" * 3)
    result = discreet(*ASK, *STABLE, "--min-weight", "0.5", "--ledger", "approx.db", "-o", "graph.json")
    assert result.code == 0 and "No graph (⊥)" in result.out
    assert "A retry costs again" in result.out or "times as many records" in result.out  # as the noisy distance falls
    assert spent(survey) == 1
    saved = json.loads((survey / "graph.json").read_text())
    assert saved["refused"] is True and saved["edges"] is None and saved["evidence"] == []
    used = discreet("fit", "rows.csv", "--schema", "two.toml", "--epsilon", "1", "--graph", "graph.json")
    assert used.code == 2 and "holds a refusal" in used.err


def test_levels_persons_and_canaries(desk, discreet):
    result = discreet("structure", "data.csv", "--schema", "schema.toml", *STABLE, "--unit-column", "patient",
                      "--max-rows", "2", "-o", "graph.json")  # fmt: skip
    assert result.code == 0, result.err
    assert_discreet(result.text)
    for canary in CANARIES:
        assert canary not in (desk / "graph.json").read_text()
    thresholded = discreet("structure", "data.csv", "--schema", "schema.toml", "--rho", "0.1", "--json")
    assert thresholded.code == 0 and "thresholded parameters" in json.loads(thresholded.out)["method"]
    assert_discreet(thresholded.text)


WRONG = {
    "no budget": ([], 2, "there is no budget"),
    "a weight of nothing": ([*STABLE, "--min-weight", "0"], 2, "min_weight must be positive"),
    "no such file": ([*STABLE, "--ledger", "none.db"], 4, "there is no ledger"),
    "another notion": (["--rho", "1", "--ledger", "approx.db"], 3, "this ledger is"),
    "too little left": (["--epsilon", "9", "--delta", "1e-6", "--ledger", "approx.db"], 3, "does not suffice"),
    "a size of nobody": ([*STABLE, "--public-size", "0"], 2, "public_size is a whole number"),
    "no such engine": ([*STABLE, "--engine", "steam"], 2, "--engine is one of"),
    "no json": ([*STABLE, "-o", "graph.txt"], 2, "saved as a .json file"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_found_before_anything_is_spent(name, survey, discreet):
    words, code, message = WRONG[name]
    before = contents(survey)
    result = discreet(*ASK, *words)
    assert (result.code, message in result.err) == (code, True), result.err
    after = contents(survey)
    assert {k: v for k, v in after.items() if not k.startswith("approx.db")} == {
        k: v for k, v in before.items() if not k.startswith("approx.db")
    }
    assert spent(survey) in (None, 0)


def test_too_many_cells_are_refused(survey, discreet):
    many = json.dumps([str(i) for i in range(600)])
    (survey / "large.toml").write_text("".join(f"[columns.{n}]\nlevels = {many}\n" for n in "abcd"))
    result = discreet("structure", "rows.csv", "--schema", "large.toml", *STABLE)
    assert result.code == 5 and "864,000,000 cells" in result.err


def test_ctrl_c_and_a_full_disk_say_what_was_spent(survey, discreet, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr("discreet.learn.structure.result.write_atomically", full)
        result = discreet(*ASK, *STABLE, "--min-weight", "0.5", "--ledger", "approx.db", "-o", "graph.json")
        machine = discreet(*ASK, *STABLE, "--min-weight", "0.5", "-o", "graph.json", "--json")
    assert result.code == 9 and "counts as spent" in result.err and "a -- b" in result.out
    assert spent(survey) == 1 and not (survey / "graph.json").exists()
    assert machine.code == 9 and ["a", "b"] in json.loads(machine.out)["edges"]

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("discreet.learn.structure.stable_edges._read", interrupted)
    result = discreet(*ASK, *STABLE, "--min-weight", "0.5", "--ledger", "approx.db", "-o", "graph.json")
    assert result.code == 130 and "counts as spent" in result.err
    assert spent(survey) == 2 and not (survey / "graph.json").exists()


def test_too_little_memory_after_the_spend_says_so(survey, discreet, monkeypatch):
    def too_large(*_):
        raise MemoryError

    monkeypatch.setattr("discreet.privacy.queries.edge_tests.SpinTest.levels", too_large)
    result = discreet(*ASK, *STABLE, "--ledger", "approx.db")  # without a weight the number of records is paid first
    assert result.code == 9 and "memory" in result.err and "counts as spent" in result.err
    assert spent(survey) == 1


def test_the_number_of_records_is_nowhere_in_the_plan(survey, discreet):
    outputs = set()
    for number in (3, 4):
        (survey / "rows.csv").write_text("a,b,c,d\n" + "-1,1,-1,1\n" * number)
        outputs.add(discreet(*ASK, *STABLE, "--plan").text)
    assert len(outputs) == 1


def test_graph_files_are_checked(survey, discreet):
    domain = load_schema("two.toml")
    for text, message in (
        ("{", "no graph that"), ("[]", "no graph that"), ('{"kind": "discreet graph"}', "no list of edges"),
        ('{"kind": "discreet graph", "interactions": []}', "no edges"),
        ('{"kind": "discreet graph", "interactions": [["a", "Quetzalcoatl"]]}', "no column of the schema"),
    ):  # fmt: skip
        (survey / "wrong.json").write_text(text)
        result = discreet("fit", "rows.csv", "--schema", "two.toml", "--epsilon", "1", "--graph", "wrong.json")
        assert result.code in (2, 4) and message in result.err, result.err
        assert_discreet(result.text)
    table = open_table(survey / "rows.csv", domain)
    exact = StructureLearner(0.5).fit(ExactCurator(table, budget=ApproxDP(1, 1e-6)))
    assert exact.edges == (("a", "b"), ("b", "c"))
    with pytest.raises(InputError, match="no release"):
        exact.save(survey / "exact.json")
    with pytest.raises(FileFormatError, match="there is no file"):
        read_graph("exact.json", domain)
