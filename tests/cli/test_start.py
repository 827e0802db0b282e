"""Starting: help that teaches, nothing heavy before it is needed, and every end with its exit code."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from discreet import __version__
from discreet.cli import app as cli_app
from discreet.cli import run
from discreet.cli.failures import MEANINGS, Exit, explain

COMMANDS = [
    [],
    ["measure"],
    ["show"],
    ["verify"],
    ["audit"],
    ["bench"],
    ["demo"],
    *(["schema", c] for c in ("draft", "check", "show")),
    *(["ledger", c] for c in ("create", "show", "verify", "key", "head")),
]
HEAVY = ("numpy", "scipy", "opendp", "duckdb", "narwhals", "networkx", "matplotlib", "pandas", "discreet.models")


def start(*arguments, **options):
    return subprocess.run(
        [sys.executable, "-c", "import sys; from discreet.cli import main; sys.exit(main())", *arguments],
        capture_output=True,
        text=True,
        timeout=60,
        **options,
    )


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_help_teaches_with_an_example(command, discreet):
    result = discreet(*command, "--help")
    assert result.code == 0
    assert "discreet " + " ".join(command) in result.out
    assert "Example" in result.out or "A first release" in result.out


def test_help_documents_the_exit_codes(discreet):
    text = " ".join(discreet("--help").out.split())
    for code, meaning in MEANINGS.items():
        assert f"{int(code)} {meaning}" in text.split("Exit codes:")[1]
    assert set(MEANINGS) == set(Exit)


def test_the_documentation_lists_the_same_exit_codes():
    page = (Path(__file__).parents[2] / "docs" / "command_line.md").read_text().replace("`", "")
    table = re.findall(r"^\| (\d+) \| (.+) \|$", page, re.MULTILINE)
    assert table == [(str(int(code)), meaning) for code, meaning in MEANINGS.items()]


def test_version(discreet):
    result = discreet("--version")
    assert (result.code, result.out) == (0, f"discreet {__version__}\n")


def test_help_starts_quickly_and_imports_nothing_heavy():
    code = (
        "import sys; from discreet.cli import run; run(['--help']); "
        f"print([m for m in {HEAVY!r} if m in sys.modules], file=sys.stderr)"
    )
    times = []
    for _ in range(3):
        before = os.times()
        result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
        after = os.times()
        times.append(after.children_user - before.children_user + after.children_system - before.children_system)
        assert result.stderr.strip() == "[]"
    assert min(times) < 0.4, "seconds of processor time; a busy machine does not count against us"


def test_from_a_shell_errors_are_one_line_and_a_code():
    result = start("measure", "nothing.csv", "--schema", "nothing.toml", "--table", "a", "--epsilon", "1")
    assert result.returncode == Exit.FILE
    assert result.stdout == ""
    assert result.stderr.startswith("discreet: there is no schema file nothing.toml")
    assert result.stderr.count("\n") == 1


def test_an_old_terminal_is_no_reason_to_fail(desk):
    result = start(
        "measure", "data.csv", "--schema", "schema.toml", "--table", "smoke", "--epsilon", "1", "--plan",
        cwd=desk, env={**os.environ, "PYTHONIOENCODING": "ascii"},
    )  # fmt: skip
    assert result.returncode == 0
    assert "? = 1 (pure DP)" in result.stdout


def test_a_closed_pipe_is_no_failure(desk):
    line = (
        f"{sys.executable} -c 'import sys; from discreet.cli import main; sys.exit(main())' schema show schema.toml"
        " | head -n 1; echo ${PIPESTATUS[0]}"
    )
    result = subprocess.run(["bash", "-c", line], capture_output=True, text=True, cwd=desk, timeout=60)
    assert result.stdout.splitlines()[-1] == "0"
    assert result.stderr == ""


def test_a_defect_withholds_its_details(monkeypatch, capsys):
    """The message of an error that nobody foresaw may quote a value; so may the variables of a traceback."""

    def broken(*_, **__):
        raise ValueError("could not convert string to float: 'Quetzalcoatl'")

    monkeypatch.delenv("DISCREET_DEBUG", raising=False)
    monkeypatch.setattr("discreet.schema.load_schema", broken)
    assert run(["schema", "show", "schema.toml"]) == Exit.DEFECT
    text = capsys.readouterr()
    assert "Quetzalcoatl" not in text.out + text.err
    assert "ValueError" in text.err and "DISCREET_DEBUG" in text.err and "test_start.py" in text.err
    monkeypatch.setenv("DISCREET_DEBUG", "1")
    assert run(["schema", "show", "schema.toml"]) == Exit.DEFECT
    assert "Quetzalcoatl" in capsys.readouterr().err


def test_ctrl_c_anywhere_is_130(monkeypatch, capsys):
    def interrupted(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("discreet.schema.load_schema", interrupted)
    assert run(["schema", "show", "schema.toml"]) == 130
    assert "nothing was spent" in capsys.readouterr().err


def test_errors_of_the_operating_system_name_the_file(capsys):
    assert explain(OSError(28, "No space left on device", "/x/tables.zip")) == Exit.FILE
    assert capsys.readouterr().err == "discreet: cannot use the file /x/tables.zip: No space left on device\n"


def test_main_is_the_entry_point(capsys):
    assert cli_app.main(["--version"]) == 0
    assert __version__ in capsys.readouterr().out
