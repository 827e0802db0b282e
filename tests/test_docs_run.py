"""What the pages on extending and on the command line show is true: their programs run, their run file is one."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parent.parent / "docs"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)


def programs(page: str) -> list[str]:
    """Blocks that stand by themselves; one that imports nothing continues the one before."""
    out: list[str] = []
    for block in blocks(page, "python"):
        if re.search(r"^(import|from) ", block, re.MULTILINE):
            out.append(block)
        else:
            out[-1] += block
    return out


PROGRAMS = [(page, number) for page in ("extending.md", "command_line.md") for number in range(len(programs(page)))]


@pytest.mark.parametrize(("page", "number"), PROGRAMS)
def test_programs_run(page, number, tmp_path):
    code = programs(page)[number]
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_there_are_programs():
    assert len(PROGRAMS) >= 4


def test_the_run_file_is_one(tmp_path):
    from discreet.cli.choices import merged, read_run_file
    from discreet.report.card import check_stated

    (text,) = blocks("command_line.md", "toml")
    (tmp_path / "run.toml").write_text(text)
    assert read_run_file(tmp_path / "run.toml")["max_rows"] == 6
    check_stated(merged(tmp_path / "run.toml", {}).card)


def test_the_schema_examples_are_schemas():
    from discreet.schema import parse_schema

    columns = '[columns.sex]\nlevels = ["f", "m"]\n[columns.age]\nedges = [0, 18, 65]\n'
    columns += '[columns.married]\nlevels = ["yes", "no", "widowed"]\n'
    examples = blocks("schema.md", "text")
    assert len(examples) == 2
    for text in examples:
        parse_schema(columns + text)


def test_exit_codes_are_documented():
    from discreet.cli.failures import Exit

    page = (DOCS / "command_line.md").read_text(encoding="utf-8")
    for code in Exit:
        assert f"| {int(code)} |" in page
