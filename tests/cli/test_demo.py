"""The demonstration: prints the commands it runs, runs the commands it prints, and keeps to its own files."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from discreet.privacy.budget import PureDP
from discreet.privacy.ledger import Ledger
from discreet.release import Release
from discreet.schema import load_schema

OWN = {
    "patients.csv", "draft.toml", "schema.toml", "graph.txt", "ledger.db", "ledger.db.key", "model.zip",
    "synthetic.csv", ".discreet-demo.json",
}  # fmt: skip
REPORT = {"report.html"}  # when there is the command


@pytest.fixture
def played(tmp_path, monkeypatch, discreet):
    monkeypatch.chdir(tmp_path)
    result = discreet("demo", "--people", "500")
    assert result.code == 0, result.err
    return result


def commands(text):
    return [shlex.split(line.removeprefix("  $ ")) for line in text.splitlines() if line.startswith("  $ ")]


def test_it_ends_with_a_release_and_a_ledger(played):
    assert {p.name for p in Path("demo").iterdir()} - REPORT == OWN
    assert load_schema("demo/draft.toml").peeked, "a draft says what it peeked at"
    assert load_schema("demo/schema.toml").peeked == {}
    assert {a.outside for a in load_schema("demo/schema.toml").attributes} == {"no"}, "no unknown answer is a disease"
    release = Release.load("demo/model.zip")
    assert release.card["budget"] == PureDP(1).to_dict() and release.refit_agrees()
    assert len(Path("demo/synthetic.csv").read_text().splitlines()) == 501
    with Ledger.open("demo/ledger.db") as ledger:
        assert float(ledger.spent.epsilon) == pytest.approx(1) and ledger.total == PureDP(3)
    assert "truth" in played.out and "synthetic" in played.out
    assert str(Path("demo").resolve()) in played.out


def test_the_truth_beside_it_is_the_truth(played):
    rows = [line.split(",") for line in Path("demo/patients.csv").read_text().splitlines()]
    smoke, lung = rows[0].index("smoke"), rows[0].index("lung")
    smokers = [r for r in rows[1:] if r[smoke] == "yes"]
    truth = sum(r[lung] == "yes" for r in smokers) / len(smokers)
    (line,) = [each for each in played.out.splitlines() if each.startswith("  P(lung=yes | smoke=yes)")]
    shown = line.removesuffix("   outside, as about 1 in 10 will be").split()
    assert float(shown[-1]) == pytest.approx(truth, abs=6e-4)
    assert shown[-3] == "…" and float(shown[-4]) <= float(shown[-2])


def test_the_printed_commands_are_the_ones_that_work(played, discreet):
    printed = commands(played.out)
    told = [c[1] for c in printed if c[1] != "report"]
    assert told == ["schema", "plan", "ledger", "fit", "query", "sample", "verify", "ledger"]
    for path in Path("demo").iterdir():
        if path.name in {"draft.toml", "ledger.db", "model.zip", "synthetic.csv", *REPORT}:
            path.unlink()
    for command in printed:
        result = discreet(*command[1:])
        assert result.code == 0, result.err


def test_again_replaces_its_own_files_and_no_others(played, discreet):
    (Path("demo") / "mine.txt").write_text("mine")
    first = Path("demo/model.zip").read_bytes()
    data = Path("demo/patients.csv").read_bytes()
    assert discreet("demo", "--people", "500").code == 0
    assert Path("demo/model.zip").read_bytes() != first, "fresh noise"
    assert Path("demo/patients.csv").read_bytes() == data, "the same synthetic patients"
    assert (Path("demo") / "mine.txt").read_text() == "mine"
    with Ledger.open("demo/ledger.db") as ledger:
        assert float(ledger.spent.epsilon) == pytest.approx(1)


def test_foreign_files_stop_it(played, discreet):
    shutil.move("demo", "other")
    (Path("other") / ".discreet-demo.json").unlink()
    before = {p.name: p.read_bytes() for p in Path("other").iterdir()}
    result = discreet("demo", "--directory", "other")
    assert result.code == 4
    assert {p.name: p.read_bytes() for p in Path("other").iterdir()} == before
