"""Asking a model on the command line, in the words of the query language."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from discreet import networks
from discreet.cli.app import run
from discreet.measurement import Measurements
from discreet.release import Release


def test_a_bundled_network_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["query", "asia", "P(dysp=yes | smoke=yes)", "MAP(lung, tub | xray=yes)"]) == 0
    out = capsys.readouterr().out
    assert "0.5528" in out
    assert "lung = yes" in out


def test_a_file_gives_the_same_answer_as_python(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model = networks.load("sachs")
    model.save(tmp_path / "m.bif")
    assert run(["query", str(tmp_path / "m.bif"), "P(Akt, PKC)", "--json"]) == 0
    (answer,) = json.loads(capsys.readouterr().out)
    expected = model.ask("P(Akt, PKC)").to_dict()
    assert [c["levels"] for c in answer["cells"]] == [c["levels"] for c in expected["cells"]]
    seen, wanted = ([c["probability"] for c in a["cells"]] for a in (answer, expected))
    assert seen == pytest.approx(wanted, abs=1e-9)


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["asia", "P(dyspp=yes)"], 2, "dysp"),
        (["asia", "P(dysp=maybe)"], 2, "maybe"),
        (["asia", "P(dysp"], 2, "P(dysp"),
        (["nowhere.zip", "P(a)"], 4, "nowhere.zip"),
        (["asia", "P(xray | either=yes, lung=no, tub=no)"], 2, "probability"),
    ],
)
def test_mistakes(arguments: list[str], code: int, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["query", *arguments]) == code
    said = capsys.readouterr().err
    assert words in said
    assert "Traceback" not in said


def test_a_wrong_question_is_shown_with_its_place_marked(capsys: pytest.CaptureFixture[str]) -> None:
    question = "P(dysp=yes | smokes=yes)"
    assert run(["query", "asia", question]) == 2
    said, shown, mark = capsys.readouterr().err.splitlines()
    assert said.startswith("discreet: ") and "smoke" in said
    assert shown.strip() == question
    assert shown[mark.index("^") : len(mark)] == "smokes"


@pytest.mark.parametrize(
    ("question", "part"), [("P(dysp=yes | smoke > 3)", "3"), ("E(dysp)", "dysp"), ("P(dysp in {yes, nope})", "nope")]
)
def test_a_wrong_condition_is_marked(question: str, part: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["query", "asia", question]) == 2
    _, shown, mark = capsys.readouterr().err.splitlines()
    assert shown.strip() == question and shown[mark.index("^") : len(mark)] == part


def test_a_question_does_not_drive_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["query", "asia", "P(\x1b[31m\u202edysp)"]) == 2
    assert not set("\x1b\u202e") & set(capsys.readouterr().err)


# -- with noise intervals ----------------------------------------------------------------------------------------------


@pytest.fixture
def fitted(desk, discreet):
    """Makes model.zip: smoke and city at ε = 1, as if the noise of so many records had come out as 0."""
    (desk / "two.toml").write_text(
        '[columns.smoke]\nlevels = ["yes", "no"]\n[columns.city]\nlevels = ["north", "south", "west"]\n'
    )
    asked = ["--schema", "two.toml", "--epsilon", "1", "--graph", "smoke -> city", "-o", "model.zip"]
    assert discreet("fit", "data.csv", *asked).code == 0
    release = Release.load(desk / "model.zip")
    (table,) = release.measurements

    def fit(records: int) -> Release:
        third = records // 3
        counts = np.array([[0, third, 1], [third, third, 0]])  # one record lives in the west
        measured = Measurements([replace(table, counts=counts)], release.measurements.release)
        made = replace(release, model=release.refit(measured), measurements=measured)
        made.save(desk / "model.zip")
        return made

    return fit


def test_the_command_asks_as_python_does(fitted, discreet):
    intervals = fitted(3000).intervals(draws=15)
    for question in ("P(city | smoke=yes)", "P(city=north)", "MAP(city | smoke=no)"):
        (said,) = json.loads(discreet("query", "model.zip", question, "--draws", "15", "--json").out)
        expected = intervals.ask(question)
        assert said["note"] == expected.note
        if question.startswith("MAP"):
            assert said["survival"] == expected.survival
        else:
            assert [cell["noise"] for cell in said["cells"]] == pytest.approx(expected.half_width.reshape(-1).tolist())
    said = json.loads(discreet("map", "model.zip", "city", "--given", "smoke=no", "--draws", "15", "--json").out)
    assert said["survival"] == intervals.map("city", {"smoke": "no"}).survival


def test_narrow_intervals_are_warned_of(fitted, discreet):
    """One record has what is given, and noise hides it."""
    fitted(3000)
    rare = discreet("query", "model.zip", "P(smoke | city=west)", "--draws", "10")
    assert (
        rare.code == 0 and "beware: only some" in rare.out and "makes room for how so few" in " ".join(rare.out.split())
    )
    assert "beware: only some" in discreet("query", "model.zip", "MAP(smoke | city=west)", "--draws", "10").out
    assert "beware: only some" in discreet("map", "model.zip", "--given", "city=west", "--draws", "10").out
    (said,) = json.loads(discreet("query", "model.zip", "P(smoke | city=west)", "--draws", "10", "--json").out)
    assert "makes room for how so few" in said["note"]
    assert "beware" not in discreet("query", "model.zip", "P(smoke | city=south)", "--draws", "10").out


def test_the_digits_that_the_noise_leaves_are_shown(fitted, discreet):
    """Not "0.3333 ± 0.0000" with many rows, and not four digits where noise leaves one."""
    for records, fewest in ((3_000_000, 6), (30, 2)):
        fitted(records)
        out = discreet("query", "model.zip", "P(city=north)", "--draws", "10").out
        p, half = re.search(r"= ([\d.]+) ± ([\d.]+) ", out).groups()
        assert float(half) > 0 and len(p) == len(half) >= 2 + fewest, out
        assert 1 <= len(half.replace(".", "").lstrip("0")) <= 2, "two digits of the noise at most"


@pytest.mark.parametrize("width", [None, 0.2])
def test_a_model_that_misses_its_own_tables_says_so(desk, discreet, width):
    """Two columns that are always equal, and a width under which no model can say so."""
    (desk / "equal.csv").write_text("a,b\n" + "yes,yes\nno,no\n" * 1000)
    (desk / "equal.toml").write_text('[columns.a]\nlevels = ["yes", "no"]\n[columns.b]\nlevels = ["yes", "no"]\n')
    options = [] if width is None else ["--option", f"width={width}"]
    common = ["--schema", "equal.toml", "--epsilon", "1", "--family", "spin", "--ledger", "ledger.db"]
    fit = discreet("fit", "equal.csv", *common, *options, "-o", "equal.zip")
    assert fit.code == 0, fit.err
    shown, asked = discreet("show", "equal.zip"), discreet("query", "equal.zip", "P(a | b=yes)", "--draws", "5")
    if width is None:
        assert "as close to its own noisy tables as noise allows" in fit.out and "misses its" not in asked.text
        return
    said = "the model misses its own tables, means and "
    assert "Beware: " + said in fit.out and "Beware: " + said in shown.out
    assert "beware: " + said in asked.out and "± covers the noise and not this" in asked.out


def test_a_wrong_question_does_not_hide_the_answers_to_others(discreet) -> None:
    both = discreet("query", "asia", "P(smoke=yes)", "P(nothing=yes)", "P(lung=yes)")
    alone = discreet("query", "asia", "P(nothing=yes)")
    assert both.code == alone.code == 2 and alone.out == ""
    assert "P(smoke=yes)" in both.out and "P(lung=yes)" in both.out
    assert both.err == "No answer to P(nothing=yes):\n" + alone.err
    found = discreet("query", "asia", "P(nothing=yes)", "P(lung=yes)", "--json")
    assert found.code == 2 and len(json.loads(found.out)) == 1 and "No answer to" in found.err


def test_numbers_come_with_their_noise(desk, discreet) -> None:
    (desk / "two.toml").write_text(
        '[columns.smoke]\nlevels = ["yes", "no"]\n[columns.age]\nedges = [0, 30, 60, 100]\ninteger = true\n'
        'missing = "unknown"\n'
    )
    (desk / "ages.csv").write_text("smoke,age\n" + "yes,20\nno,40\nyes,70\nno,\n" * 100)
    fit = ["--schema", "two.toml", "--epsilon", "20", "--graph", "smoke -> age", "-o", "ages.zip", "--force"]
    assert discreet("fit", "ages.csv", *fit).code == 0
    questions = ["E(age | smoke)", "QUANTILE(age, 0.5 | smoke=yes)", "P(age >= 50, smoke)"]
    said = discreet("query", "ages.zip", *questions, "--draws", "5")
    assert said.code == 0
    lines = said.out.splitlines()
    assert lines[0].startswith("E(age | smoke)   (± at 90 %")
    assert re.match(r"smoke +mean +noise", lines[1].strip())
    assert any(re.match(r"yes +\d\d\.\d+ +± +\d", line.strip()) for line in lines)
    assert "of those whose age is known, 7" in said.out and "QUANTILE(age, 0.5 | smoke=yes) = " in said.out
    found = discreet("query", "ages.zip", *questions, "--draws", "5", "--json")
    mean, quantile, table = json.loads(found.out)
    assert [set(cell) for cell in mean["cells"]] == [{"levels", "mean", "noise"}] * 2
    assert 15 < quantile["cells"][0]["quantile"] < 90 and 0 <= table["cells"][0]["probability"] <= 1
    assert mean["remark"].startswith("of those whose age is known")
