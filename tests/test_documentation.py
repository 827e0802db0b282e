"""The documentation is true: it builds without a warning, and every block of code in it runs as it stands.

The blocks of a page run from top to bottom in one folder of the page's own: Python blocks in one namespace, shell
blocks in a real shell that finds `discreet` on its path. They find what `pip install .` installs, and nothing else; a
page that needs an extra says so.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import core_environment
import pytest
from run_blocks import BLOCK

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if BLOCK.search(p.read_text("utf-8")))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(DOCS)))
def test_every_block_runs(page: Path, tmp_path: Path) -> None:
    extras = re.findall(r"'discreet\[(\w+)\]'", page.read_text("utf-8"))
    command = [sys.executable, str(ROOT / "tests" / "run_blocks.py"), str(page)]
    done = subprocess.run(
        command, cwd=tmp_path, env=core_environment.environment(extras), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]


def test_only_the_core_is_there() -> None:
    code = "import discreet.cli.app, pyarrow\ntry:\n    import pandas\nexcept ImportError:\n    print('none')"
    done = subprocess.run(
        [sys.executable, "-c", code], env=core_environment.environment(), capture_output=True, text=True
    )
    assert done.stdout == "none\n", done.stderr
    assert {"pandas", "polars", "pyspark", "pytest", "selenium"} <= core_environment.absent(frozenset())
    assert "pyspark" not in core_environment.absent(frozenset({"spark"}))


def test_it_builds_without_warnings(tmp_path: Path) -> None:
    pytest.importorskip("sphinx")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-b",
        "html",
        str(DOCS),
        str(tmp_path / "out"),
    ]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "out" / "index.html").stat().st_size > 1000


def test_links_lead_somewhere() -> None:
    for page in DOCS.rglob("*.md"):
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            assert link.startswith("https://") or (page.parent / link).exists(), f"{page.name}: {link}"
