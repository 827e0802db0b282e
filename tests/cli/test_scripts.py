"""The scripts of the checkout: what ./discreet has installed, and what of it is shown."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def executable(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["bench", "engine"], "bench"),
        (["bench", "--quick", "engine", "--seed", "3"], "bench"),
        (["bench", "--help"], ""),
        (["bench", "--list"], ""),
        (["bench", "engine", "--help"], ""),
        (["bench"], ""),
        (["bench", "nothing"], ""),
        (["bench", "harness"], ""),
        (["show", "engine"], ""),
        ([], ""),
    ],
)
def test_the_extra_is_for_a_benchmark_that_is_run(tmp_path, words, extra):
    shutil.copy(ROOT / "discreet", tmp_path / "discreet")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "environment.sh").write_text('ensure_environment() { echo "extra: $1"; }\n')
    executable(tmp_path / ".venv" / "bin" / "discreet", 'echo "words: $*"')
    (tmp_path / "benchmarks").mkdir()
    for name in ("engine", "harness"):
        (tmp_path / "benchmarks" / f"{name}.py").touch()
    done = subprocess.run([tmp_path / "discreet", *words], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"extra: {extra}\nwords: {' '.join(words)}\n"


def test_pip_warns_nobody_but_shows_errors(tmp_path):
    """Quiet once leaves warnings, three times hides errors."""
    executable(tmp_path / ".venv" / "bin" / "python", 'echo "$*"')
    script = f". {ROOT}/tools/environment.sh; root={tmp_path}; PATH=; install_into_environment python bench"
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, timeout=60)
    (line,) = [line for line in done.stdout.splitlines() if "install" in line]
    assert line.split().count("--quiet") == 2 and line.endswith(f"--editable {tmp_path}[files,plot,sklearn,bench]")
