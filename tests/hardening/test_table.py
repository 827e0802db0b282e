"""The table of what is tried (`./test --table`): some attempts of each row, and what they have found stays found."""

from __future__ import annotations

import importlib
import json
import mmap
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from discreet import Curator, Domain, PrivacyUnit, PureDP, Spec, encode
from discreet.errors import BudgetError, FileFormatError, InputError
from discreet.frames import public_rows
from discreet.models import MarkovRandomField
from discreet.models.records import Records
from discreet.release import Release
from discreet.schema import parse_schema

ROOT = Path(__file__).resolve().parents[2]
if str(ROOT / "tests") not in sys.path:
    sys.path.append(str(ROOT / "tests"))
table = importlib.import_module("hardening.table")
EVERY = table.rows()
parsers = importlib.import_module("hardening.parsers")
QUICK = [r for r in EVERY if not any(word in r.name for word in ("statistics", "kills", "fuzzed"))]


def all_parsers(first: int, count: int, seen: Any) -> None:
    """One fork for all of them: to make good files of all kinds takes a second."""
    for name, one in parsers.FUZZED.items():
        parsers.trying(one, name)(first, count, seen)


QUICK.append(table.Row("all that is fuzzed", "typed errors only", 10, 10, 10, all_parsers))


def test_there_are_twenty_seven_rows() -> None:
    assert len(EVERY) == len({row.name for row in EVERY}) == 27
    assert all(0 < row.sample <= row.whole for row in EVERY)


def test_a_command_that_tells_how_many_rows_there_are_is_caught(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Negative control: the statement, which goes into cards and ledgers, has the exact number."""
    true = Curator.statement

    def telling(curator: Curator) -> dict[str, Any]:
        (count,) = curator._rows.count([()])
        return {**true(curator), "version": str(count)}

    monkeypatch.setattr(Curator, "statement", telling)
    (row,) = (r for r in EVERY if r.name == "every command on neighbours")
    fork = table.Fork(row, 0, 5)
    fork.start(tmp_path)
    while (found := fork.ended()) is None:
        pass
    assert len(found[1]) >= 2


@pytest.mark.parametrize("row", QUICK, ids=lambda row: row.name)
def test_two_attempts_of_each_row(row: Any, tmp_path: Path) -> None:
    """In a fork, as they are made: they change the folder, the clock and the classes."""
    fork = table.Fork(row, 3, 2)
    fork.start(tmp_path)
    while (found := fork.ended()) is None:
        pass
    assert found[:2] == (2, [])


class Faulty:
    """A row with something wrong, of every kind."""

    def __init__(self, how: str) -> None:
        self.how = how

    def __call__(self, first: int, count: int, seen: Any) -> None:
        for number in range(first, first + count):
            seen.at(number)
            if number == 2:
                if self.how == "says so":
                    seen.wrong(number, "odd")
                elif self.how == "raises":
                    raise ZeroDivisionError
                elif self.how == "dies":
                    os._exit(11)


@pytest.mark.parametrize("how", ["says so", "raises", "dies"])
def test_what_is_wrong_is_counted_and_shown(how: str) -> None:
    row = table.Row("faulty", "holds", 10, 4, 2, Faulty(how))
    known: dict[str, Any] = {}
    list(table.try_all([(row, 4)], known, 1))
    outcome = known["faulty"]
    assert (outcome.asked, outcome.wrong) == (4, 1)
    assert outcome.done == (4 if how == "says so" else 2)
    assert outcome.findings[0].startswith("2: ")
    assert "**1 findings**" in table.show([row], known)
    list(table.try_all([(row, 6)], known, 1))  # it goes on where it was
    assert (outcome.asked, outcome.wrong) == (6, 1)


@pytest.mark.parametrize("what", ["raw", "slow", "large"])
def test_a_parser_that_misbehaves_is_noticed(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control of the fuzzing: a raw error, too much time, too much memory."""
    held = []

    def one(rng: random.Random) -> None:
        if what == "raw":
            raise KeyError("x")
        if what == "large":
            held.append(b"x" * 100_000_000)  # so much is never taken from what was freed
        while what == "slow" and parsers.time.process_time() < end:
            pass

    monkeypatch.setattr(parsers, "ready", lambda: None)
    monkeypatch.setattr(parsers, "SECONDS", 0.05 if what == "slow" else 60)
    monkeypatch.setattr(parsers, "MEGABYTES", 20)
    end = parsers.time.process_time() + 0.1
    seen = table.Seen(mmap.mmap(-1, 8))
    parsers.trying(one, "x")(0, 1, seen)
    assert len(seen.findings) == 1


# -- what it found -----------------------------------------------------------------------------------------------------

DOMAIN = Domain.of({"a": ["x", "y"], "b": ["x", "y"]})


@pytest.fixture(scope="module")
def release() -> Release:
    rng = np.random.default_rng(1)
    rows = encode({name: rng.choice(["x", "y"], 200) for name in DOMAIN}, DOMAIN)
    with Curator(rows, PrivacyUnit(), PureDP(2)) as curator:
        return Release.of(Spec("network", "optimal", {"graph": {"b": ["a"]}}).learn(curator))


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("g.csv", b"a,b\nx\n"),
        ("g.csv", b"\xc3\nx\n"),
        ("g.csv", b"a,a\nx,y\n"),
        ("g.csv", b""),
        ("g.parquet", b"PAR1x"),
    ],
)
def test_public_rows_that_cannot_be_read(name: str, content: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(FileFormatError, match=name):
        public_rows(tmp_path / name)


@pytest.mark.parametrize("row", [b"Quetzalcoatl,x,y", b"Quetzalcoatl,\xe9"])
def test_a_wrong_file_of_rows_is_not_repeated(row: bytes, tmp_path: Path) -> None:
    """Python's own message about bytes that are no text tells the byte, and where it stands."""
    (tmp_path / "g.csv").write_bytes(b"a,b\nx,y\n" + row + b"\n")
    with pytest.raises(FileFormatError) as error:
        public_rows(tmp_path / "g.csv")
    said = str(error.value).replace(str(tmp_path), "")
    assert not any(piece in said for piece in ("Quetzalcoatl", "0xe9", "position"))


@pytest.mark.parametrize("values", [[{"k": 1}, None], [[1], [2]], [2**62, None]])
def test_rows_to_complete_with_odd_values(values: list[Any], tmp_path: Path) -> None:
    """What cannot be hashed, or cannot be held by Python, is no number."""
    column = pa.array(values)
    if pa.types.is_integer(column.type):
        column = column.cast(pa.timestamp("us"))
    domain = parse_schema('[columns.x]\nedges = [0, 1, 2]\n[columns.a]\nlevels = ["x", "y"]\n')
    model = MarkovRandomField(domain, {("x", "a"): np.zeros((2, 2))})
    pyarrow.parquet.write_table(pa.table({"x": column, "a": ["x", "y"]}), tmp_path / "g.parquet")
    try:
        assert isinstance(model.complete(public_rows(tmp_path / "g.parquet"), 1), Records)
    except InputError as error:
        assert "x" in str(error)


def resealed(release: Release, change: Any, tmp_path: Path) -> Path:
    from mutations import sealed, taken_apart

    release.save(tmp_path / "good.zip")
    header, arrays = taken_apart((tmp_path / "good.zip").read_bytes())
    document = json.loads(header)
    change(document)
    (tmp_path / "bad.zip").write_bytes(sealed(json.dumps(document).encode(), arrays))
    return tmp_path / "bad.zip"


def spots(node: Any, key: str) -> Any:
    """Every table of a document that has this key."""
    if isinstance(node, dict):
        if key in node:
            yield node
        for value in node.values():
            yield from spots(value, key)
    elif isinstance(node, list):
        for value in node:
            yield from spots(value, key)


def test_a_release_whose_parts_do_not_fit(release: Release, tmp_path: Path, capsys: Any) -> None:
    """`show` says so and ends well; it ended as if the command had been wrong."""
    from discreet.cli import run

    def other_graph(document: Any) -> None:
        for found in spots(document, "graph"):
            if isinstance(found["graph"], dict) and "b" in found["graph"]:
                found["graph"]["b"] = 7

    path = resealed(release, other_graph, tmp_path)
    assert run(["show", str(path)]) in (0, 4)
    said = capsys.readouterr()
    assert "verify" in said.out + said.err


def test_a_label_that_is_no_text(release: Release, tmp_path: Path, capsys: Any) -> None:
    """`verify` and `show` raised."""
    from discreet.cli import run

    def number(document: Any) -> None:
        next(spots(document, "label"))["label"] = 7

    path = resealed(release, number, tmp_path)
    assert [run([word, str(path)]) for word in ("verify", "show")] == [1, 4]
    assert "are texts" in capsys.readouterr().err


@pytest.mark.parametrize("text", ["1e999999999", "1E-999999999", "1e1_000_000"])
def test_numbers_that_would_fill_the_memory(text: str, release: Release, tmp_path: Path, capsys: Any) -> None:
    """In a budget, and in the grid of a table in a file: reading ten letters took minutes."""
    from discreet.cli import run

    with pytest.raises(BudgetError, match="finite"):
        PureDP(text)

    def grid(document: Any) -> None:
        next(spots(document, "grid"))["grid"] = text

    assert run(["verify", str(resealed(release, grid, tmp_path))]) == 1
    capsys.readouterr()


def test_messages_stay_short() -> None:
    with pytest.raises(InputError) as error:
        DOMAIN.index("x" * 100_000)
    assert len(str(error.value)) < 1_000
    with pytest.raises(BudgetError) as error:
        PureDP("9" * 5_000)
    assert len(str(error.value)) < 1_000
    model = MarkovRandomField(parse_schema("[columns.x]\nedges = [0, 1, 2]\n"), {("x",): np.zeros(2)})
    with pytest.raises(InputError) as error:
        model.ask(f"QUANTILE(x, {'9' * 5_000})")
    assert len(str(error.value)) < 2_000


def test_the_command_prints_the_table() -> None:
    words = [sys.executable, str(ROOT / "tests" / "hardening" / "table.py"), "--show", "--row", "CSV"]
    done = subprocess.run(words, capture_output=True, text=True, timeout=300)
    assert done.returncode in (0, 1), done.stderr
    assert "| fuzzed: CSV |" in done.stdout


def test_no_message_is_as_long_as_the_name_that_it_complains_of() -> None:
    long = f"unknown key {'x' * 70_000!r}; known: a, b"
    assert len(str(InputError(long))) <= 4_000 < parsers.LONGEST_MESSAGE
    assert str(InputError(long)).endswith("known: a, b") and str(InputError("short")) == "short"
