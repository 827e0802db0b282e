"""The README is true: its Python runs as it stands, its files exist, and its commands are commands."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def test_python_blocks_run(tmp_path: Path) -> None:
    assert blocks("python")
    for code in blocks("python"):
        done = subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
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
    used = set(re.findall(r"^\./discreet (\w+)", "\n".join(blocks("sh")), re.MULTILINE))
    assert used
    assert used <= known
