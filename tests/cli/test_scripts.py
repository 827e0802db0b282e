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


def test_what_is_to_be_typed_next_is_as_it_was_typed(tmp_path, monkeypatch, capsys):
    from discreet.cli.console import note, say
    from discreet.program import LAUNCHER, program

    def called(argv, launcher="", path=""):
        monkeypatch.setattr("sys.argv", [str(argv)])
        monkeypatch.setenv(LAUNCHER, launcher)
        monkeypatch.setenv("PATH", str(path))
        return program()

    script = tmp_path / "bin" / "discreet"
    executable(script, "true")
    assert called(script, path=script.parent) == "discreet"
    assert called(script) == str(script) and called(script, "./discreet") == "./discreet"
    assert called(script, "/my work/discreet") == "'/my work/discreet'"
    assert called("/x/pytest") == "discreet" and called("/x/discreet/__main__.py").endswith(" -m discreet")
    called(script, "../discreet")
    say("see `discreet show x`, which discreet shows")
    note("or `discreet fit`")
    told = capsys.readouterr()
    assert told.out == "see `../discreet show x`, which discreet shows\n" and told.err == "or `../discreet fit`\n"


def test_the_launcher_says_how_it_was_called(tmp_path):
    shutil.copy(ROOT / "discreet", tmp_path / "discreet")
    (tmp_path / "tools").mkdir()
    (tmp_path / "tools" / "environment.sh").write_text("ensure_environment() { :; }\n")
    executable(tmp_path / ".venv" / "bin" / "discreet", 'echo "$DISCREET_CALLED_AS"')
    assert subprocess.run(["./discreet"], cwd=tmp_path, capture_output=True, text=True).stdout == "./discreet\n"


def test_pip_warns_nobody_but_shows_errors(tmp_path):
    """Quiet once leaves warnings, three times hides errors."""
    executable(tmp_path / ".venv" / "bin" / "python", 'echo "$*"')
    script = f". {ROOT}/tools/environment.sh; root={tmp_path}; PATH=; install_into_environment python bench"
    done = subprocess.run(["/bin/sh", "-c", script], capture_output=True, text=True, timeout=60)
    (line,) = [line for line in done.stdout.splitlines() if "install" in line]
    assert line.split().count("--quiet") == 2 and line.endswith(f"--editable {tmp_path}[files,plot,sklearn,bench]")
