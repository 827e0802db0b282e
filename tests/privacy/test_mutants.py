"""Planted mistakes stay true, and five are planted: ``tests/privacy/mutants``, all of it by `./test --mutants`."""

from __future__ import annotations

import ast
import subprocess
import sys
from functools import lru_cache
from pathlib import Path

import pytest
from mutants import run

MUTANTS = run.load()


def test_there_are_enough_and_each_has_a_name_of_its_own() -> None:
    assert len(MUTANTS) >= 300
    assert len({(m.room, m.name) for m in MUTANTS}) == len(MUTANTS)
    assert set(run.KEPT) <= {m.room for m in MUTANTS}


@pytest.mark.parametrize("room", sorted({m.room for m in MUTANTS}))
def test_every_place_is_found_once_and_the_mistake_is_a_program(room: str) -> None:
    """A mistake that can no longer be planted is to be planted elsewhere, not forgotten."""
    for mutant in MUTANTS:
        if mutant.room == room:
            text = mutant.planted()
            assert text != mutant.path.read_text(), mutant.name
            compile(text, mutant.file, "exec")


@lru_cache(maxsize=64)
def functions_of(path: Path) -> set[str]:
    return {n.name for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.FunctionDef)}


def test_every_test_that_must_notice_is_there() -> None:
    for mutant in MUTANTS:
        assert mutant.tests, mutant.name
        for test in mutant.tests:
            path, _, name = test.partition("::")
            assert name.split("[")[0] in functions_of(run.ROOT / path), f"{mutant.name}: {test}"


def test_what_is_noticed_by_luck_is_not_noticed() -> None:
    """Of two tries one: a mistake is noticed when both tries notice it."""
    assert run.together(["killed"]) == run.together(["killed", "killed"]) == "killed"
    assert run.together(["survived", "survived"]) == "survived"
    assert run.together(["killed", "survived"]) == "by luck"
    assert run.together(["killed", "timeout"]) == "broken"
    assert run.report({MUTANTS[0]: "by luck"}) == 1


def test_five_of_them_are_noticed() -> None:
    """Evenly over the rooms. They are run in a process of their own, which imports what they share once."""
    command = [sys.executable, str(run.HERE / "run.py"), "--sample", "5", "--cores", "1"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "5 of 5 planted mistakes were noticed" in done.stdout
