"""The documentation is true: it builds without a warning, and every block of code in it runs as it stands.

The blocks of a page run from top to bottom in one folder of the page's own: Python blocks in one namespace, shell
blocks in a real shell that finds `discreet` on its path (`warm.py`). They find what `./discreet demo` installs, and
nothing else; a page that needs an extra says so.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import core_environment
import pytest
from run_blocks import BLOCK
from warm import Warm

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if BLOCK.search(p.read_text("utf-8")))


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(DOCS)))
def test_every_block_runs(page: Path, tmp_path: Path, warm: Warm) -> None:
    extras = re.findall(r"'discreet\[(\w+)\]'", page.read_text("utf-8"))
    blocks = ROOT / "tests" / "run_blocks.py"
    if extras:
        environment = core_environment.environment(extras)
        done = subprocess.run(
            [sys.executable, blocks, page], cwd=tmp_path, env=environment, capture_output=True, text=True
        )
        assert done.returncode == 0, done.stderr[-3000:]
        return
    (folder := tmp_path / "page").mkdir()
    out, err = tmp_path / "out.txt", tmp_path / "err.txt"
    code = warm.start(blocks.read_text(), [str(page), str(warm.programs)], folder, out, err).wait()
    assert code == 0, err.read_text()[-3000:]


def test_only_the_core_is_there() -> None:
    code = "import discreet.cli.app, pyarrow\ntry:\n    import pandas\nexcept ImportError:\n    print('none')"
    done = subprocess.run(
        [sys.executable, "-c", code], env=core_environment.environment(), capture_output=True, text=True
    )
    assert done.stdout == "none\n", done.stderr
    assert {
        "pandas",
        "polars",
        "pyspark",
        "pytest",
        "selenium",
        "sklearn",
        "duckdb",
        "matplotlib",
    } <= core_environment.absent(frozenset())
    assert "pyspark" not in core_environment.absent(frozenset({"spark"}))


def test_it_builds_without_warnings(tmp_path: Path) -> None:
    pytest.importorskip("sphinx")
    command = [sys.executable, "-m", "discreet", "docs", "--build", str(tmp_path / "site")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    assert (tmp_path / "site" / "index.html").stat().st_size > 1000
    again = subprocess.run([*command[:-1], str(tmp_path)], capture_output=True, text=True)
    assert again.returncode == 4 and "is no site of ours" in again.stderr


def test_links_lead_somewhere() -> None:
    for page in DOCS.rglob("*.md"):
        for link in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text("utf-8")):
            assert link.startswith("https://") or (page.parent / link).exists(), f"{page.name}: {link}"
