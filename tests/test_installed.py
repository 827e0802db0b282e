"""A wheel and a source distribution, installed where there is no repository, do what the first page promises.

Set ``DISCREET_PYTHONS`` to try other interpreters than the one that runs the tests: paths with colons between them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
PYTHONS = os.environ.get("DISCREET_PYTHONS", sys.executable).split(os.pathsep)
SCHEMA = '[columns.smoke]\nlevels = ["yes", "no"]\n[columns.lung]\nlevels = ["yes", "no"]\n'
COMMANDS = [
    "--version",
    "docs",
    "docs schema",
    "schema show schema.toml",
    "plan --schema schema.toml --epsilon 1",
    "ledger create ledger.db --epsilon 3",
    "fit rows.csv --schema schema.toml --epsilon 1 --ledger ledger.db -o model.zip",
    "verify model.zip",
    "query model.zip P(lung|smoke=yes)",
    "query alarm P(BP)",
    "sample model.zip -n 100 -o new.csv",
    "certify model.zip rows.csv --epsilon 1 --ledger ledger.db -o certified.zip",
    "report model.zip",
    "demo",
]


def done(*words: str | Path, folder: Path) -> str:
    environment = {key: value for key, value in os.environ.items() if key not in ("PYTHONPATH", "VIRTUAL_ENV")}
    found = subprocess.run(words, cwd=folder, env=environment, capture_output=True, text=True)
    assert found.returncode == 0, (words, found.stderr[-3000:])
    return found.stdout


@pytest.mark.slow
@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("kind", ["wheel", "sdist"])
def test_it_works_without_the_repository(kind: str, python: str, tmp_path: Path) -> None:
    done(sys.executable, "-m", "pip", "install", "-q", "--target", tmp_path / "tools", "build", "hatchling",
         folder=tmp_path)  # fmt: skip
    code = f"import sys; sys.path.insert(0, {str(tmp_path / 'tools')!r}); from hatchling.builders import {kind} as k; "
    name = {"wheel": "WheelBuilder", "sdist": "SdistBuilder"}[kind]
    done(sys.executable, "-c", f"{code}print(*k.{name}({str(ROOT)!r}).build(directory={str(tmp_path / 'built')!r}))",
         folder=tmp_path)  # fmt: skip
    (file,) = (tmp_path / "built").iterdir()
    done(python, "-m", "venv", tmp_path / "venv", folder=tmp_path)
    programs = tmp_path / "venv" / "bin"
    done(programs / "python", "-m", "pip", "install", "-q", file, folder=tmp_path)
    where = tmp_path / "elsewhere"
    where.mkdir()
    (where / "schema.toml").write_text(SCHEMA)
    (where / "rows.csv").write_text("smoke,lung\n" + "yes,no\nno,no\n" * 500)
    for command in COMMANDS:
        assert done(programs / "discreet", *command.split(), folder=where) or command.startswith("sample")
    assert "discreet" in done(programs / "python", "-m", "discreet", "--version", folder=where)
    home = done(programs / "python", "-c", "import discreet; print(discreet.__file__)", folder=where)
    assert str(programs.parent) in home
    megabytes = sum(f.stat().st_size for f in (tmp_path / "venv").rglob("*") if f.is_file()) / 1e6
    print(f"{kind}, {python}: {megabytes:.0f} MB")
