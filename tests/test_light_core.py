"""What `pip install .` alone can do: fit, ask, sample, report. What needs an extra says which one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import core_environment
import pytest

SCHEMA = '[columns.smoke]\nlevels = ["yes", "no"]\n[columns.lung]\nlevels = ["yes", "no"]\n'
EXTRAS = {"sklearn", "matplotlib", "duckdb", "pyspark", "pandas", "polars", "dp_accounting"}
ALL_OF_IT = """
from discreet.cli import run
for words in [
    ["schema", "show", "schema.toml"],
    ["plan", "--schema", "schema.toml", "--epsilon", "1"],
    ["ledger", "create", "ledger.db", "--epsilon", "3"],
    ["fit", "rows.csv", "--schema", "schema.toml", "--epsilon", "1", "--ledger", "ledger.db"],
    ["query", "model.zip", "P(lung | smoke=yes)"],
    ["sample", "model.zip", "-n", "50", "-o", "new.csv"],
    ["report", "model.zip"],
    ["verify", "model.zip"],
    ["show", "model.zip"],
    ["measure", "rows.csv", "--schema", "schema.toml", "--table", "lung", "--epsilon", "1", "-o", "tables.zip"],
]:
    assert run(words) == 0, words
import sys
assert not {found!r} & {{name for name, module in sys.modules.items() if module is not None}}
"""


def alone(code: str, folder: Path) -> subprocess.CompletedProcess[str]:
    environment = core_environment.environment(core_alone=True)
    return subprocess.run([sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("alone")
    (made / "schema.toml").write_text(SCHEMA)
    (made / "rows.csv").write_text("smoke,lung\n" + "yes,no\nno,no\n" * 500)
    return made


def test_from_rows_to_a_report_without_any_extra(folder: Path) -> None:
    assert core_environment.absent(frozenset()) >= EXTRAS
    done = alone(ALL_OF_IT.format(found=EXTRAS), folder)
    assert done.returncode == 0, done.stderr[-2000:]
    assert (folder / "report.html").exists() and len((folder / "new.csv").read_text().splitlines()) == 51


@pytest.mark.parametrize(
    ("code", "extra"),
    [
        ("discreet.PrivateGraphicalModel", "sklearn"),
        ("discreet.networks.load('asia').plot()", "plot"),
        ("discreet.cli.run(['schema', 'draft', 'rows.csv', '-o', 'first.toml'])", "files"),
        ("discreet.cli.run(['schema', 'check', 'rows.csv', '--schema', 'schema.toml'])", "files"),
        ("discreet.tables.open.open_table('rows.csv', discreet.load_schema('schema.toml'), engine='spark')", "spark"),
    ],
)
def test_a_missing_extra_is_named(code: str, extra: str, folder: Path) -> None:
    done = alone(f"import discreet, discreet.cli, discreet.tables.open\n{code}", folder)
    last = done.stderr.strip().splitlines()[-1]
    assert f"pip install 'discreet[{extra}]'" in last, done.stderr[-2000:]
