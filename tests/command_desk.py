"""A desk with private rows, a schema and a ledger on it. The rows hold canaries that no output may ever show."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import pytest

from discreet.cli import run
from discreet.privacy.budget import PureDP
from discreet.privacy.ledger import Ledger

# A name, a place and a number that stand in rows and nowhere else.
CANARIES = ("Quetzalcoatl", "Xochimilco", "987654321")
SCHEMA = """\
[columns.smoke]
levels = ["yes", "no"]

[columns.age]
edges = [0, 18, 65, 120]
missing = "unknown"

[columns.city]
levels = ["north", "south"]
other = "elsewhere"
"""
ROWS = """\
patient,smoke,age,city
ann,yes,34,north
bob,no,,south
Quetzalcoatl,no,987654321,Xochimilco
Quetzalcoatl,yes,12,Xochimilco
eve,maybe,70,north
"""


@dataclass
class Result:
    code: int
    out: str
    err: str

    @property
    def text(self) -> str:
        return self.out + self.err


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """The folder, current, with data.csv, schema.toml and ledger.db (ε = 3, nothing spent)."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data.csv").write_text(ROWS)
    (tmp_path / "schema.toml").write_text(SCHEMA)
    (tmp_path / "metadata.json").write_text('{"smoke": "bool", "age": "int64"}')
    Ledger.create(tmp_path / "ledger.db", PureDP(3)).close()
    return tmp_path


@pytest.fixture
def discreet(capsys):
    """Run a command line in this process, as the entry point does."""

    def call(*arguments: str) -> Result:
        capsys.readouterr()
        code = run([str(a) for a in arguments])
        captured = capsys.readouterr()
        return Result(code, captured.out, captured.err)

    return call


def contents(folder: Path) -> dict[str, bytes]:
    """Every file and its bytes: what must not have changed."""
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


def assert_discreet(text: str) -> None:
    for canary in CANARIES:
        assert canary not in text, f"a private value was echoed: {canary}"
    assert "Traceback" not in text
