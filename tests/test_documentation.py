"""The documentation is true: it builds without a warning, and every block of code in it runs as it stands.

The blocks of a page run from top to bottom in one folder of the page's own: Python blocks in one namespace, shell
blocks in a real shell that finds `discreet` on its path.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
PAGES = sorted(p for p in DOCS.rglob("*.md") if re.search(r"^```(python|sh)\n", p.read_text("utf-8"), re.MULTILINE))


def blocks(text: str) -> list[tuple[str, str]]:
    return re.findall(r"^```(python|sh)\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


@pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(DOCS)))
def test_every_block_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import matplotlib

    from discreet.methods import METHODS

    matplotlib.use("Agg")
    monkeypatch.chdir(tmp_path)
    methods = METHODS[:]
    names: dict[str, object] = {"__name__": "page"}
    try:
        for language, code in blocks(page.read_text("utf-8")):
            with contextlib.redirect_stdout(io.StringIO()):
                if language == "python":
                    exec(compile(code, str(page), "exec", dont_inherit=True), names)
                else:
                    run_commands(code)
    finally:
        METHODS[:] = methods  # a page may add one


def run_commands(code: str) -> None:
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", code], env={**os.environ, "PATH": path}, capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()[-3000:]


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
