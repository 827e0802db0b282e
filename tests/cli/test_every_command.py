"""What holds for every command, the ones that are added tomorrow included: the walk finds them by itself."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import typer

from discreet.cli import app as cli_app
from discreet.cli.guide import Guide
from discreet.report.explore import Explorer


def leaves(command, path=()):
    """All commands that do something, by the words that call them."""
    inner = getattr(command, "commands", None)
    if inner is None:
        return {path: command}
    return {k: v for name, each in inner.items() for k, v in leaves(each, (*path, name)).items()}


COMMANDS = leaves(typer.main.get_command(cli_app.commands()))
FIT = ["data.csv", "--schema", "schema.toml", "--epsilon", "1"]
TABLE = ["--table", "smoke", "--epsilon", "1"]
# In order: some need what an earlier one has made.
EXAMPLES = {
    ("start",): ["data.csv", "--no-open"],
    ("schema", "draft"): ["data.csv", "-o", "draft.toml"],
    ("schema", "import"): ["metadata.json", "-o", "imported.toml"],
    ("schema", "check"): ["data.csv", "schema.toml"],
    ("schema", "show"): ["schema.toml"],
    ("plan",): FIT,
    ("ledger", "create"): ["new.db", "--epsilon", "3"],
    ("fit",): [*FIT, "--ledger", "new.db", "-o", "model.zip"],
    ("measure",): ["data.csv", "--schema", "schema.toml", *TABLE],
    ("structure",): ["data.csv", "--schema", "schema.toml", "--epsilon", "1", "--delta", "1e-6"],
    ("certify",): ["model.zip", "data.csv", "--epsilon", "1", "-o", "certified.zip"],
    ("evaluate",): ["model.zip", "data.csv"],
    ("show",): ["model.zip"],
    ("verify",): ["model.zip"],
    ("query",): ["model.zip", "P(smoke)"],
    ("map",): ["model.zip"],
    ("sample",): ["model.zip", "-n", "3"],
    ("report",): ["model.zip"],
    ("explore",): ["model.zip", "--no-open"],
    ("bounds",): ["--p", "8", "--edge-weight", "0.5", "--epsilon", "1"],
    ("ledger", "show"): ["new.db"],
    ("ledger", "verify"): ["new.db"],
    ("ledger", "key"): ["new.db"],
    ("ledger", "head"): ["new.db"],
    ("audit",): ["--schema", "schema.toml", *TABLE, "--pairs", "2", "--draws", "200"],
    ("attack",): ["--schema", "schema.toml", "--epsilon", "1", "--graph", "smoke -> city", "--runs", "40"],
    ("bench",): ["--list"],
    ("demo",): ["--people", "200"],
    ("docs",): ["schema"],
}
CHECK_FAILS = {("schema", "check")}  # the rows on the desk break rules of the schema


def test_the_walk_finds_them_all():
    assert set(COMMANDS) == set(EXAMPLES)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_there_is_a_json_option(words):
    assert any("--json" in p.opts for p in COMMANDS[words].params)


@pytest.mark.parametrize("words", [(), ("schema",), ("ledger",), *COMMANDS], ids=" ".join)
def test_help_shows_switches_as_switches(words, discreet):
    text = discreet(*words, "--help").out
    assert "--help" in text and "bool" not in text.lower(), "nothing follows a switch"
    assert "--json" in text or words in ((), ("schema",), ("ledger",))


def complete(shell, **environment):
    """What the entry point prints for a shell that asks it."""
    code = "import sys; from discreet.cli import main; sys.exit(main())"
    variables = {**os.environ, "_DISCREET_COMPLETE": shell, **environment}
    return subprocess.run([sys.executable, "-c", code], env=variables, capture_output=True, text=True, timeout=60)


def test_completion_for_bash_is_a_script_that_completes(tmp_path):
    script = complete("source_bash").stdout
    path = tmp_path / "completion.bash"
    path.write_text(script)
    checked = subprocess.run(["bash", "-n", path], capture_output=True, text=True, timeout=60)
    assert (checked.returncode, checked.stderr) == (0, "")
    # As bash would: call the function that the script registers, with a program of ours in its place.
    (tmp_path / "discreet").write_text(
        f'#!/bin/sh\nexec {sys.executable} -c "import sys; from discreet.cli import main; sys.exit(main())"\n'
    )
    (tmp_path / "discreet").chmod(0o755)
    line = (
        f"source {path}; complete -p discreet; COMP_WORDS=(discreet ledger s); COMP_CWORD=2; "
        f'_discreet_completion {tmp_path}/discreet; echo "${{COMPREPLY[@]}}"'
    )
    done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, timeout=60)
    registered, found = done.stdout.strip().splitlines()
    assert registered.endswith("_discreet_completion discreet") and found == "show", done.stderr


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_completion_for_other_shells_is_produced(shell):
    assert "discreet" in complete(f"source_{shell}").stdout


def test_json_is_one_document_on_stdout(desk, discreet, monkeypatch):
    serve = Explorer.serve

    def for_a_moment(self):
        threading.Timer(0.1, self._server.shutdown).start()
        serve(self)

    monkeypatch.setattr(Explorer, "serve", for_a_moment)
    monkeypatch.setattr(Guide, "serve", lambda guide: guide.page._server.server_close())
    for words, arguments in EXAMPLES.items():
        option = ["--json", "-"] if words == ("bench",) else ["--json"]  # it also writes to a file
        result = discreet(*words, *arguments, *option)
        assert result.code == (1 if words in CHECK_FAILS else 0), (words, result.err)
        assert json.loads(result.out), words


def test_a_draft_in_json_says_what_was_peeked_at(desk, discreet):
    found = json.loads(discreet("schema", "draft", "data.csv", "-o", "draft.toml", "--json").out)
    assert found["file"] == "draft.toml" and found["outside_the_guarantee"]
    assert set(found["peeked"]) == set(found["columns"]) >= {"smoke", "age"}


def test_a_demonstration_in_json_names_its_files_and_answers(desk, discreet):
    result = discreet("demo", "--people", "200", "--json")
    found = json.loads(result.out)
    assert all(Path(file).is_file() for file in found["files"]) and "demo/report.html" in found["files"]
    assert [c[1] for c in found["commands"]][:2] == ["schema", "plan"]
    assert all(a["lower"] <= a["upper"] and 0 <= a["truth"] <= 1 for a in found["answers"])
    assert len(found["answers"]) == 3 and "$ " in result.err, "what people read is on stderr"
