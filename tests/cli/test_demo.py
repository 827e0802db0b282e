"""The demonstration: prints the commands it runs, runs the commands it prints, and keeps to its own files."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path

import pytest

from discreet import demo
from discreet.measurement import Measurements
from discreet.privacy.budget import PureDP
from discreet.privacy.ledger import Ledger
from discreet.schema import load_schema

OWN = {"patients.csv", "schema.toml", "ledger.db", "tables.zip", ".discreet-demo.json"}


@pytest.fixture
def played(tmp_path, monkeypatch, discreet):
    monkeypatch.chdir(tmp_path)
    result = discreet("demo", "--people", "500")
    assert result.code == 0, result.err
    return result


def commands(text):
    return [shlex.split(line.removeprefix("  $ ")) for line in text.splitlines() if line.startswith("  $ ")]


def test_it_ends_with_a_release_and_a_ledger(played):
    assert {p.name for p in Path("demo").iterdir()} == OWN
    assert load_schema("demo/schema.toml").peeked == {}
    assert {a.outside for a in load_schema("demo/schema.toml").attributes} == {"no"}, "no unknown answer is a disease"
    released = Measurements.load("demo/tables.zip")
    assert released.is_release and released.release["budget"] == PureDP(1).to_dict()
    with Ledger.open("demo/ledger.db") as ledger:
        assert ledger.spent == PureDP(1) and ledger.total == PureDP(3)
    assert "truth" in played.out and "synthetic" in played.out
    assert str(Path("demo").resolve()) in played.out


def test_the_truth_beside_it_is_the_truth(played):
    rows = [line.split(",") for line in Path("demo/patients.csv").read_text().splitlines()]
    smoke, lung = rows[0].index("smoke"), rows[0].index("lung")
    remark = "   outside, as up to 1 in 10 will be"
    shown = [line.removesuffix(remark) for line in played.out.splitlines() if line.startswith("  ") and "…" in line]
    for answer in (("yes", "yes"), ("no", "no")):
        count = sum((r[smoke], r[lung]) == answer for r in rows[1:])
        (line,) = [each for each in shown if tuple(each.split()[:2]) == answer]
        assert int(line.split()[-1]) == count


def test_the_printed_commands_are_the_ones_that_work(played, discreet):
    printed = commands(played.out)
    assert [c[1] for c in printed] == ["schema", "measure", "ledger", "measure", "ledger", "verify"]
    for name in ("ledger.db", "tables.zip"):
        (Path("demo") / name).unlink()
    for command in printed:
        result = discreet(*command[1:])
        assert result.code == 0, result.err


def test_again_replaces_its_own_files_and_no_others(played, discreet):
    (Path("demo") / "mine.txt").write_text("mine")
    first = Path("demo/tables.zip").read_bytes()
    data = Path("demo/patients.csv").read_bytes()
    assert discreet("demo", "--people", "500").code == 0
    assert Path("demo/tables.zip").read_bytes() != first, "fresh noise"
    assert Path("demo/patients.csv").read_bytes() == data, "the same synthetic patients"
    assert (Path("demo") / "mine.txt").read_text() == "mine"
    with Ledger.open("demo/ledger.db") as ledger:
        assert ledger.spent == PureDP(1)


def test_foreign_files_stop_it(played, discreet):
    shutil.move("demo", "other")
    (Path("other") / ".discreet-demo.json").unlink()
    before = {p.name: p.read_bytes() for p in Path("other").iterdir()}
    result = discreet("demo", "--directory", "other")
    assert result.code == 4
    assert {p.name: p.read_bytes() for p in Path("other").iterdir()} == before


def test_the_program_is_named_as_the_user_calls_it(monkeypatch, tmp_path):
    root = Path(demo.__file__).resolve().parents[2]
    monkeypatch.chdir(root)
    assert demo.program() == "./discreet"
    monkeypatch.chdir(tmp_path)
    assert demo.program() == str(root / "discreet")
    monkeypatch.setattr(demo, "__file__", str(tmp_path / "site-packages" / "discreet" / "demo.py"))
    assert demo.program() == "discreet"
