"""The smallest release, from a file of rows to a file of tables."""

from __future__ import annotations

import json
import math
import re
from fractions import Fraction

import duckdb
import numpy as np
import pytest
from command_desk import assert_discreet, contents

from discreet.measurement import Measurements
from discreet.privacy.budget import ZCDP, PureDP
from discreet.privacy.ledger import Ledger
from discreet.tables.sources import Sources

ASK = ["measure", "data.csv", "--schema", "schema.toml", "--table", "smoke,city", "--epsilon"]


def spent(desk):
    with Ledger.open(desk / "ledger.db") as ledger:
        return ledger.spent


def test_a_release_is_planned_paid_saved_and_shown(desk, discreet):
    result = discreet(*ASK, "1", "--ledger", "ledger.db", "-o", "tables.zip")
    assert result.code == 0
    plan, tables = result.out.index("Plan: contingency tables"), result.out.index("smoke × city: laplace")
    assert plan < tables
    assert spent(desk) == PureDP(1)
    released = Measurements.load(desk / "tables.zip")
    assert released.cliques == (("smoke", "city"),)
    assert released.release["budget"] == PureDP(1).to_dict()
    for count in released[0].counts.reshape(-1):
        assert f"{count:,}" in result.out
    assert_discreet(result.text)
    shown = discreet("show", "tables.zip")
    assert shown.code == 0 and "smoke × city" in shown.out and "ε = 1 (pure DP)" in shown.out


def test_counts_are_those_of_the_rows_under_the_schema(desk, discreet):
    """With hardly any noise: unknown words go to the declared level, numbers to the nearest bin, blanks to missing."""
    result = discreet(*ASK, "100000", "--table", "age", "-o", "tables.zip")
    assert result.code == 0
    released = Measurements.load(desk / "tables.zip")
    assert released.table(["smoke", "city"]).counts.tolist() == [[2, 0, 1], [0, 1, 1]]
    assert released.table(["age"]).counts.tolist() == [1, 1, 2, 1]


def test_a_person_counts_as_often_as_allowed(desk, discreet):
    (desk / "data.csv").write_text("patient,smoke\n" + "ann,yes\n" * 50 + "bob,no\n" * 2 + ",yes\n" * 9)
    ask = ["measure", "data.csv", "--schema", "schema.toml", "--table", "smoke", "--epsilon", "100000"]
    result = discreet(*ask, "--unit-column", "patient", "--max-rows", "3", "-o", "t.zip")
    assert result.code == 0
    assert Measurements.load(desk / "t.zip")[0].counts.tolist() == [3, 2], "rows without a person do not count"
    assert Measurements.load(desk / "t.zip").release["unit"]["max_rows"] == 3


def test_a_release_by_person_says_what_its_counts_are_of(desk, discreet):
    said = (
        "All rows with the same “patient” are protected together. At most 2 rows of each count, chosen at random; rows "
        "without a “patient” do not. Intervals cover the noise, not the rows left out."
    )
    by_person = [*ASK, "1", "--unit-column", "patient", "--max-rows", "2", "-o", "t.zip"]
    for result in (discreet(*by_person, "--plan"), discreet(*by_person), discreet("show", "t.zip")):
        assert result.code == 0 and said in result.out
    assert said in discreet("verify", "t.zip").out
    assert said in json.loads(discreet("show", "t.zip", "--json").out)["statement"]
    assert "At most" not in discreet(*ASK, "1").out
    one = discreet(*ASK, "1", "--unit-column", "patient", "--max-rows", "1").out
    assert "(at most 1 row)" in one and "At most 1 row of each counts" in one
    assert "from public knowledge" in " ".join(discreet("measure", "--help").out.replace("│", " ").split())


def test_a_missing_file_is_said_before_there_is_a_plan(desk, discreet):
    (desk / "data.csv").unlink()
    result = discreet(*ASK, "1")
    assert result.code == 4 and result.out == "" and "no file data.csv" in result.err


@pytest.mark.parametrize(
    ("budget", "weak"),
    [
        (["--epsilon", "10"], False),
        (["--epsilon", "10.1"], True),
        (["--epsilon", "11", "--delta", "1e-6"], True),
        (["--rho", "1.5"], False),
        (["--rho", "1.7"], True),
    ],
)
def test_a_budget_that_hardly_protects_is_called_so(desk, discreet, budget, weak):
    said = "protects hardly at all"
    planned, done = discreet(*ASK[:-1], *budget, "--plan"), discreet(*ASK[:-1], *budget, "-o", "t.zip")
    assert (said in planned.err) == (said in done.err) == (said in discreet("verify", "t.zip").out) == weak
    assert ("can be published" in done.out) == (not weak)
    assert (said in discreet("ledger", "create", "new.db", *budget).err) == weak


def test_noise_is_never_called_exact(desk, discreet):
    assert re.search(r"laplace +below 1e-9", discreet(*ASK, "100000", "--plan").out)
    result = discreet(*ASK, "100000", "-o", "t.zip")
    for text in (result.out, discreet("show", "t.zip").out):
        assert "exact" not in text
        assert "laplace noise, scale 1e-05, standard deviation below 1e-9" in text
    assert discreet("verify", "t.zip").code == 0


def test_zcdp_is_put_into_words_at_a_stated_delta(desk, discreet):
    assert discreet(*ASK[:-1], "--rho", "0.1", "-o", "t.zip").code == 0
    converted = ZCDP("0.1").to_approx("1e-6")
    factor = math.exp(converted.epsilon) + 0.005  # rounded up to three digits
    for command in ("show", "verify"):
        text = discreet(command, "t.zip").out
        assert f"ρ = 0.1 (zCDP) in total. That is {converted}. Nothing in this release" in text
        assert f"more than {factor:.3g} times likelier or less likely to appear had any one record not been" in text
        assert "in the data, give or take a probability of 1e-06." in text


def test_too_many_cells_in_all_are_refused_in_words_of_the_command_line(desk, discreet, monkeypatch):
    monkeypatch.setattr("discreet.privacy.calibration.LARGEST_DRAW", 6)
    result = discreet(*ASK, "1", "--table", "age")
    assert result.code == 5 and "10 cells together" in result.err and "Curator" not in result.err


def test_the_plan_needs_no_data(desk, discreet):
    (desk / "data.csv").unlink()
    before = contents(desk)
    result = discreet(*ASK, "0.5", "--plan", "--ledger", "ledger.db", "-o", "t.zip")
    assert result.code == 0
    assert re.search(r"smoke × city +6 +100 % +laplace +2\.\d+ ", result.out) and "No row has been read" in result.out
    assert contents(desk) == before


def test_the_plan_keeps_its_promise(desk, discreet):
    ask = [*ASK, "1", "--table", "age", "--weights", "3,1", "--json"]
    planned = json.loads(discreet(*ask, "--plan").out)["plan"]
    assert [t["scale"] for t in planned["tables"]] == pytest.approx([4 / 3, 4])
    assert [t["share"] for t in planned["tables"]] == [0.75, 0.25]
    done = json.loads(discreet(*ask).out)
    assert done["plan"] == planned
    assert [t["noise"]["scale"] for t in done["tables"]] == [t["scale"] for t in planned["tables"]]
    assert np.shape(done["tables"][0]["counts"]) == (2, 3)
    assert done["tables"][0]["levels"] == [["yes", "no"], ["north", "south", "elsewhere"]]
    spent = Fraction(done["release"]["spent"]["epsilon"])
    assert 1 - Fraction(1, 10**12) < spent <= 1, "never more than the total, not even by rounding"


def test_what_is_planned_is_what_the_ledger_and_the_release_say(desk, discreet):
    done = json.loads(discreet(*ASK, "1", "--table", "age", "--ledger", "ledger.db", "--json").out)
    with Ledger.open(desk / "ledger.db") as ledger:
        written = [step for entry in ledger.entries for step in entry.details.get("steps", [])]
    assert [step["step"] for step in written] == ["tables"] and written == done["release"]["steps"]
    assert written[0]["parts"] == [" × ".join(table["columns"]) for table in done["plan"]["tables"]]


@pytest.mark.parametrize(
    ("budget", "says"),
    [
        (["--epsilon", "1", "--delta", "1e-6"], "δ = 1e-06 (approximate DP)"),
        (["--rho", "0.1"], "ρ = 0.1 (zCDP)"),
        (["--epsilon", "1", "--relation", "replace-one"], "replace-one"),
    ],
)
def test_other_notions(desk, discreet, budget, says):
    result = discreet(*ASK[:-1], *budget, "-o", "t.zip")
    assert result.code == 0
    assert says in result.out
    assert says in discreet("verify", "t.zip").out


def test_epsilon_is_the_decimal_that_was_typed(desk, discreet):
    for _ in range(3):
        assert discreet(*ASK, "0.1", "--ledger", "ledger.db").code == 0
    assert spent(desk) == PureDP("0.3")


def test_interrupted_while_reading_spends_nothing(desk, discreet, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr(Sources, "_read", interrupted)
    result = discreet(*ASK, "1", "--ledger", "ledger.db", "-o", "t.zip")
    assert result.code == 130
    assert "nothing was spent" in result.err
    assert "Plan: " in result.out, "the plan is shown before a row is read"
    assert spent(desk) is None
    assert not (desk / "t.zip").exists()


def test_interrupted_while_noise_is_drawn_counts_as_spent(desk, discreet, monkeypatch):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("discreet.privacy.mechanisms.SecureGateway.add_noise", interrupted)
    result = discreet(*ASK, "1", "--ledger", "ledger.db", "-o", "t.zip")
    assert result.code == 130
    assert "ε = 1 (pure DP) counts as spent" in result.err and "ledger.db" in result.err
    assert spent(desk) == PureDP(1)
    assert not (desk / "t.zip").exists()


def test_a_full_disk_does_not_lose_what_was_paid_for(desk, discreet, monkeypatch):
    def full(self, path, *, sign):
        raise OSError(28, "No space left on device", str(path))

    monkeypatch.setattr(Measurements, "save", full)
    result = discreet(*ASK, "1", "--ledger", "ledger.db", "-o", "t.zip")
    assert result.code == 9
    assert "No space left" in result.err and "t.zip" in result.err
    assert "smoke × city: laplace" in result.out


def test_the_messages_of_the_reader_are_not_passed_on(desk, discreet, monkeypatch):
    """DuckDB quotes the row that it stumbled over."""

    def stumble(*_):
        raise duckdb.InvalidInputException("CSV Error on Line: 4 Original Line: Quetzalcoatl,no,987654321,Xochimilco")

    monkeypatch.setattr(Sources, "_read", stumble)
    result = discreet(*ASK, "1", "--ledger", "ledger.db")
    assert result.code == 4
    assert "cannot read data.csv as delimited text" in result.err
    assert_discreet(result.text)
    assert spent(desk) is None


@pytest.mark.parametrize("words", [[], ["--row-is-line"]])
def test_a_quote_that_is_not_closed_is_for_the_curator_to_judge(desk, discreet, words):
    """Two of them make valid text of the lines between; only who knows the file can say that they are rows."""
    (desk / "data.csv").write_text('patient,smoke,age,city\na,no,1,"\n' + "b,no,2,north\n" * 500 + 'c,no,3,"\n')
    result = discreet(*ASK, "100", "-o", "t.zip", *words)
    assert result.code == 0
    total = Measurements.load(desk / "t.zip").table(["smoke", "city"]).counts.sum()
    assert total == pytest.approx(502 if words else 1, abs=20)


def test_remarks_go_to_stderr(desk, discreet):
    result = discreet(*ASK, "1", "--json")
    json.loads(result.out)
    assert "no ledger" in result.err and "not saved" in result.err
    quiet = discreet(*ASK, "1", "--json", "--ledger", "ledger.db", "-o", "t.zip")
    assert quiet.err == ""


def test_force_overwrites(desk, discreet):
    assert discreet(*ASK, "1", "-o", "t.zip").code == 0
    first = (desk / "t.zip").read_bytes()
    assert discreet(*ASK, "1", "-o", "t.zip").code == 4
    assert (desk / "t.zip").read_bytes() == first
    assert discreet(*ASK, "2", "-o", "t.zip", "--force").code == 0
    assert (desk / "t.zip").read_bytes() != first


def test_odd_names_of_columns_and_files(desk, discreet):
    (desk / "schema.toml").write_text('[columns."a, b"]\nlevels = ["[0, 1)", "x"]\n[columns.c]\nlevels = [1]\n')
    (desk / "da[t]a *.csv").write_text('"a, b",c,A\n"[0, 1)",1,2\n')
    ask = ["measure", "da[t]a *.csv", "--schema", "schema.toml", "--table", '"a, b",c', "--epsilon", "100000"]
    result = discreet(*ask, "-o", "t.zip")
    assert result.code == 0, result.err
    assert "[0, 1)" in result.out, "a label that looks like markup is printed as it is"
    assert Measurements.load(desk / "t.zip")[0].counts.tolist() == [[1], [0]]


def test_large_tables_are_shortened(desk, discreet):
    (desk / "schema.toml").write_text(f"[columns.smoke]\nlevels = {list(range(60))}\n")
    ask = ["measure", "data.csv", "--schema", "schema.toml", "--table", "smoke", "--epsilon", "1"]
    assert "and 20 more cells" in discreet(*ask).out
    assert len(discreet(*ask, "--all").out.splitlines()) - len(discreet(*ask).out.splitlines()) == 19
