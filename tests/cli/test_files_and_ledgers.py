"""Looking at releases and ledgers: what is whole, what was altered, and what it says."""

from __future__ import annotations

import csv
import json
import shutil
import sqlite3
from importlib.resources import files

import numpy as np
import pytest

from discreet import networks
from discreet.domain import Domain
from discreet.io.archive import read_archive, write_archive
from discreet.measurement import Measurement, Measurements, Noise
from discreet.privacy.budget import ZCDP, PureDP
from discreet.privacy.ledger import Ledger
from discreet.privacy.unit import PrivacyUnit

ASK = ["measure", "data.csv", "--schema", "schema.toml", "--table", "smoke", "--epsilon", "1"]


@pytest.fixture
def released(desk, discreet):
    assert discreet(*ASK, "--ledger", "ledger.db", "-o", "t.zip").code == 0
    return desk / "t.zip"


def rewrite(path, change):
    """A file with a valid checksum, whose header was changed."""
    header, arrays = read_archive(path)
    change(header)
    write_archive(path, header, arrays)


def test_verify_states_the_guarantee(released, discreet):
    result = discreet("verify", released)
    assert result.code == 0
    assert "checksum holds" in result.out and "ε = 1 (pure DP)" in result.out and "2.72 times" in result.out
    assert json.loads(discreet("verify", released, "--json").out)["verified"] is True


@pytest.mark.parametrize(
    ("change", "says", "code"),
    [
        (lambda h: h["measurements"][0].update(origin="exact"), "does not claim to be a release", 1),
        (lambda h: h["measurements"][0].update(noise="none", scale=0), "no noise", 1),
        (lambda h: h["measurements"][0].update(scale=0), "no noise", 6),
        (lambda h: h["release"].update(spent={"notion": "pure", "epsilon": "2"}), "2 (pure DP) was spent", 6),
        (lambda h: h["release"].update(peeked={"smoke": ["levels"]}), "does not agree", 7),
        (lambda h: h["release"].pop("budget"), "no well-formed statement", 1),
        (lambda h: h["release"].update(unit={"column": None, "max_rows": 0, "relation": "x"}), "no well-formed", 1),
        (lambda h: h["measurements"].pop(), "PROBLEM", 1),
    ],
)
def test_verify_finds_what_is_no_release(released, discreet, change, says, code):
    rewrite(released, change)
    result = discreet("verify", released)
    assert result.code == code
    assert says in result.out


def test_a_file_from_anywhere_does_not_drive_the_terminal(desk, discreet):
    domain = Domain.of({"a\x1b[31m": ["\x1b]0;title\x07", "\u202eevil"]})
    name = domain.names[0]
    release = {"budget": PureDP(1).to_dict(), "unit": PrivacyUnit().to_dict(), "spent": None, "peeked": {}}
    Measurements(
        [Measurement("x\x1b[2J", np.array([1, 2]), Noise("laplace", 1), domain, clique=(name,))], release
    ).save("t.zip")
    result = discreet("show", "t.zip")
    assert result.code == 0
    assert not any(c in result.out for c in "\x1b\x07\u202e")


def test_models_are_shown_and_do_not_pass_for_releases(desk, discreet):
    shutil.copy(str(files("discreet") / "data" / "asia.zip"), "asia.zip")
    shown = discreet("show", "asia.zip").out
    assert "a Bayesian network of 8 columns and 8 edges" in shown
    result = discreet("verify", "asia.zip")
    assert result.code == 0 and "it is a Bayesian network\n" in result.out and "PROBLEM" not in result.out
    for text in (shown, result.out):
        assert "A model that is not a release: a public reference network" in text
        assert "Origin: Bayesian-network repository" in text and "Licence: Creative Commons" in text


@pytest.mark.parametrize("card", [None, {}, {"what": "a model of our patients"}, {"what": 7, "origin": ["x", 3]}])
def test_a_model_of_unknown_origin_does_not_verify(desk, discreet, card):
    networks.load("asia").with_card(card).save("m.zip")
    result = discreet("verify", "m.zip")
    assert result.code == 7 and "A model that is not a release: " in result.out and "PROBLEM" in result.out
    assert discreet("show", "m.zip").code == 0


def test_a_learned_model_states_its_guarantee(desk, discreet, released):
    card = {**Measurements.load(released).release, "method": "by hand"}
    networks.load("asia").with_card(card).save("m.zip")
    for command in ("show", "verify"):
        result = discreet(command, "m.zip")
        assert result.code == 0 and "ε = 1 (pure DP) in total" in result.out and "Method: by hand" in result.out


def test_ledger_create_and_show(desk, discreet):
    assert discreet("ledger", "create", "new.db", "--rho", "0.5").code == 0
    assert "ρ = 0.5 (zCDP) in total" in discreet("ledger", "show", "new.db").out
    assert "spent: nothing" in discreet("ledger", "show", "new.db").out


def test_ledger_show_says_what_was_spent_on_what(released, discreet):
    result = discreet("ledger", "show", "ledger.db")
    assert "spent: ε = 1 (pure DP); left: ε = 2 (pure DP)" in result.out
    (line,) = [line.split() for line in result.out.splitlines() if " measure " in line]
    assert line[0] == "1" and line[-3:] == ["table", "of", "smoke"]
    state = json.loads(discreet("ledger", "show", "ledger.db", "--json").out)
    assert state["remaining"] == {"notion": "pure", "epsilon": "2"}
    assert [e["kind"] for e in state["entries"]][:2] == ["open", "charge"]


def test_ledger_verify_finds_a_forged_entry(released, discreet):
    assert discreet("ledger", "verify", "ledger.db").code == 0
    with sqlite3.connect("ledger.db") as connection:
        connection.execute('UPDATE entries SET details = replace(details, \'"epsilon": "1"\', \'"epsilon": "1/9"\')')
    result = discreet("ledger", "verify", "ledger.db")
    assert result.code == 1
    assert "altered" in result.out


def test_the_ledger_to_make_is_one_that_can_pay(desk, discreet):
    rest = ["fit", "data.csv", "--schema", "schema.toml", "--ledger", "none.db"]
    for money, total in (
        (["--epsilon", "1"], "--epsilon TOTAL`"),
        (["--epsilon", "1", "--delta", "1e-6"], "--epsilon TOTAL --delta TOTAL`"),
        (["--rho", "0.1"], "--rho TOTAL`"),
    ):
        assert total in discreet(*rest, *money).err


def test_a_misspelt_unit_is_no_question_of_units(desk, discreet):
    (desk / "rows.csv").write_text("person_id,smoke\n" + "1,yes\n2,no\n" * 50)
    (desk / "one.toml").write_text('[columns.smoke]\nlevels = ["yes", "no"]\n')
    discreet("ledger", "create", "units.db", "--epsilon", "9")
    paid = ["measure", "rows.csv", "--schema", "one.toml", "--table", "smoke", "--epsilon", "1", "--ledger", "units.db"]
    assert discreet(*paid, "--unit-column", "person_id", "--max-rows", "2", "-o", "t.zip").code == 0
    found = discreet(*paid, "--unit-column", "personid", "--max-rows", "2", "-o", "u.zip")
    assert found.code == 2 and "did you mean 'person_id'?" in found.err


def test_ledger_show_says_whom_it_protects(released, desk, discreet):
    assert "protects: one row, add-remove" in discreet("ledger", "show", "ledger.db").out
    with Ledger.create("new.db", ZCDP(1)) as ledger:
        assert "protects" not in discreet("ledger", "show", "new.db").out, "not known before the first charge"
        ledger.charge(ZCDP("0.1"), PrivacyUnit("patient", 5, "replace-one"))
    assert "protects: all rows of one value of 'patient', replace-one" in discreet("ledger", "show", "new.db").out
    state = json.loads(discreet("ledger", "show", "new.db", "--json").out)
    assert state["unit"] == {"column": "patient", "relation": "replace-one"}


def test_ledger_show_is_a_line_a_release(desk, discreet):
    """Numbers without gaps; what was given back is said, but for crumbs of rounding; equal steps are counted."""

    def share(part):
        return {"share": PureDP(part).to_dict()}

    with Ledger.create("new.db", PureDP(4)) as ledger:
        crumbs, half, nothing, _cut_short = (ledger.charge(PureDP(1), PrivacyUnit()) for _ in range(4))
        tables = {"query": "Marginals", "noun": ["table", "tables"], "parts": ["a", "b × c"], **share("0.2")}
        choice = {"score": "Dependence", "noun": ["choice", "choices"], "candidates": 9, **share("0.1")}
        ledger.record_steps(crumbs, [{**tables, "parts": ["number of records"]}, *[choice] * 7, tables])
        ledger.settle(crumbs, PureDP("0.9999999999"))
        ledger.settle(half, PureDP("0.5"))
        ledger.settle(nothing, None)
    lines = discreet("ledger", "show", "new.db").out.splitlines()[-4:]
    assert [line.split()[0] for line in lines] == ["1", "2", "3", "4"]
    assert lines[0].endswith("the number of records; 7 choices; tables of a, b × c")
    assert "charged" not in lines[0] and "ε = 1 (pure DP)" in lines[0]
    assert "ε = 0.5 (pure DP), charged ε = 1 (pure DP)" in lines[1]
    assert "nothing, charged ε = 1 (pure DP)" in lines[2] and lines[2].rstrip().endswith("nothing")
    assert "not recorded; it counts in full" in lines[3]
    entries = json.loads(discreet("ledger", "show", "new.db", "--json").out)["entries"]
    assert sum(e["kind"] == "settle" for e in entries) == 3, "nothing is kept from scripts"
    assert "9 entries, whole" in discreet("ledger", "verify", "new.db").out
    Ledger.create("empty.db", PureDP(1)).close()
    assert "1 entry, whole" in discreet("ledger", "verify", "empty.db").out


def test_ledger_report_and_card_tell_the_same_steps(desk, discreet):
    """By the names, and with the shares, that the plan has for them."""
    fit = ["--schema", "schema.toml", "--rho", "0.1", "--family", "network", "--method", "searched"]
    planned = json.loads(discreet("plan", *fit, "--json").out)["plan"]["steps"]
    assert discreet("ledger", "create", "spent.db", "--rho", "1").code == 0
    assert discreet("fit", "data.csv", *fit, "--ledger", "spent.db", "--no-plan").code == 0
    assert discreet("report", "model.zip", "--card", "card.yaml").code == 0
    asked = " ".join(discreet("ledger", "show", "spent.db").out.split())
    card, page = (desk / "card.yaml").read_text(), (desk / "report.html").read_text()
    assert len(planned) == 3
    at = [asked.index(step["name"][:12]) for step in planned]  # the table breaks lines
    assert at == sorted(at)
    for step in planned[:2]:  # the third is taken apart into its tables
        assert f"{step['name']}: {100 * step['part']:.3g} %" in card
        assert step["name"] in page
    assert "Where it went: " in card and "Dependence" not in asked + card


def test_tables_go_into_a_spreadsheet(desk, discreet):
    ask = ["measure", "data.csv", "--schema", "schema.toml", "--epsilon", "2"]
    assert discreet(*ask, "--table", "smoke,city", "--table", "age", "-o", "t.zip").code == 0
    result = discreet("show", "t.zip", "--csv", "t.csv", "--level", "0.5")
    assert result.code == 0 and "Wrote 2 tables, 10 cells, to t.csv; lower and upper are 50 % intervals" in result.out
    with open("t.csv", encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert list(rows[0]) == ["table", "smoke", "city", "age", "count", "lower", "upper"]
    released = Measurements.load("t.zip")
    table = released.table(["smoke", "city"])
    lower, upper = table.interval(0.5)
    cell = next(r for r in rows if (r["smoke"], r["city"]) == ("no", "elsewhere"))
    assert [float(cell[k]) for k in ("count", "lower", "upper")] == [table.values[1, 2], lower[1, 2], upper[1, 2]]
    assert cell["table"] == "smoke × city" and cell["age"] == ""
    ages = [r for r in rows if r["table"] == "age"]
    assert [r["age"] for r in ages] == ["[0, 18)", "[18, 65)", "[65, 120]", "unknown"]
    assert [int(r["count"]) for r in ages] == released.table(["age"]).counts.tolist()


def test_columns_called_as_ours_are_kept_apart_in_a_spreadsheet(desk, discreet):
    (desk / "schema.toml").write_text('[columns.count]\nlevels = ["=1+1", "a,b"]\n')
    (desk / "data.csv").write_text("count,x\n=1+1,1\n")
    ask = ["measure", "data.csv", "--schema", "schema.toml", "--table", "count", "--epsilon", "1", "-o", "t.zip"]
    assert discreet(*ask).code == 0
    assert discreet("show", "t.zip", "--csv", "t.csv", "--json").code == 0
    with open("t.csv", encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.reader(stream))
    assert rows[0] == ["table", "count", "(count)", "lower", "upper"] and rows[2][1] == "a,b"


def test_what_must_not_be_published_does_not_pass(desk, discreet):
    """A draft's levels come from private rows: tables and a model with them say so, and verify fails."""
    (desk / "peeked.csv").write_text("a,b\n" + "yes,no\nno,no\nno,yes\n" * 20)
    assert discreet("schema", "draft", "peeked.csv", "-o", "peeked.toml").code == 0
    spent = ["peeked.csv", "--schema", "peeked.toml", "--epsilon", "0.5", "--ledger", "ledger.db"]
    for command, file in (
        (["measure", *spent, "--table", "a"], "tables.zip"),
        (["fit", *spent, "--graph", "a -> b"], "model.zip"),
    ):
        assert discreet(*command, "-o", file).code == 0
        checked = discreet("verify", file)
        assert checked.code == 7 and "it must not be published as it is" in checked.out
