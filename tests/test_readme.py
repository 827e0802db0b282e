"""The README is true: its Python runs as it stands, its files exist, and its commands are commands."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import core_environment
from warm import DISCREET, Warm

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
    from discreet.cli.app import COMMANDS

    used = set(re.findall(r"^\.{1,2}/discreet (\w+)", "\n".join(blocks("sh")), re.MULTILINE))
    assert used
    assert used <= {*COMMANDS}


def test_the_tour_works_after_the_demonstration(tmp_path: Path, warm: Warm) -> None:
    (tour,) = [block for block in blocks("sh") if block.startswith("cd demo")]
    (go, folder), *lines = [shlex.split(line, comments=True) for line in tour.replace("\\\n", " ").splitlines()]
    assert go == "cd" and len(lines) > 5 and {program for program, *_ in lines} == {"../discreet"}
    for where, line in ((tmp_path, ["demo", "--people", "500"]), *((tmp_path / folder, line) for _, *line in lines)):
        said = (tmp_path / "out.txt", tmp_path / "err.txt")
        assert warm.start(DISCREET, line, where, *said).wait() == 0, (line, said[1].read_text())


def test_the_schema_of_the_documentation_is_one() -> None:
    from discreet.domain import Attribute
    from discreet.schema import parse_schema

    text = (ROOT / "docs" / "schema.md").read_text(encoding="utf-8")
    first, *others = re.findall(r"```toml\n(.*?)```", text, re.DOTALL)
    assert parse_schema(first).names == ("sex", "age", "number of rooms")
    for example in others:
        assert len(parse_schema(example if "version" in example else f"version = 1\n{example}"))
    for key in Attribute.__dataclass_fields__:
        assert key in ("name", "sought") or f"| `{key}` |" in text
