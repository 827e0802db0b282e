"""The README is true: its Python runs as it stands, its files exist, and its commands are commands."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from pathlib import Path

import core_environment

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def run_in_the_core(arguments: list[str], folder: Path) -> None:
    """Python with what `pip install .` installs, and nothing else."""
    environment = core_environment.environment()
    done = subprocess.run([sys.executable, *arguments], cwd=folder, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]


def test_python_blocks_run(tmp_path: Path) -> None:
    assert blocks("python")
    for code in blocks("python"):
        run_in_the_core(["-W", "error", "-c", code], tmp_path)
    assert (tmp_path / "tables.zip").exists()


def test_links_lead_somewhere() -> None:
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    for link in links:
        assert link.startswith("https://") or (ROOT / link).exists(), link


def test_commands_exist() -> None:
    from typer.main import get_command

    from discreet.cli.app import app

    known = set(get_command(app).commands)  # type: ignore[attr-defined]
    used = set(re.findall(r"^\.{1,2}/discreet (\w+)", "\n".join(blocks("sh")), re.MULTILINE))
    assert used
    assert used <= known


def test_the_tour_works_after_the_demonstration(tmp_path: Path) -> None:
    (tour,) = [block for block in blocks("sh") if block.startswith("cd demo")]
    (go, folder), *lines = [shlex.split(line, comments=True) for line in tour.replace("\\\n", " ").splitlines()]
    assert go == "cd" and len(lines) > 5 and {program for program, *_ in lines} == {"../discreet"}
    code = (
        "import json, os, sys\nfrom discreet.cli import run\n"
        "assert run(['demo', '--people', '500']) == 0\nos.chdir(sys.argv[1])\n"
        "for line in json.loads(sys.argv[2]):\n    assert run(line) == 0, line"
    )
    words = json.dumps([arguments for _, *arguments in lines])
    run_in_the_core(["-c", code, folder, words], tmp_path)


def test_the_schema_of_the_documentation_is_one() -> None:
    from discreet.domain import Attribute
    from discreet.schema import parse_schema

    text = (ROOT / "docs" / "schema.md").read_text(encoding="utf-8")
    (example,) = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert parse_schema(example).names == ("sex", "age", "number of rooms")
    for key in Attribute.__dataclass_fields__:
        assert key == "name" or f"| `{key}` |" in text
