"""A ledger whose bytes or entries were damaged is refused in words, or is as good as before: never a raw error."""

from __future__ import annotations

import contextlib
import json
import os
import random
import sqlite3

import pytest

from discreet.cli import run
from discreet.errors import DamagedLedgerError, LedgerError
from discreet.privacy.budget import PureDP
from discreet.privacy.ledger import Ledger
from discreet.privacy.ledger_entries import Entry, connect, initialise
from discreet.privacy.unit import PrivacyUnit

UNIT = {"column": None, "max_rows": 1, "relation": "add-remove"}
VALUES = [
    None, 0, -1, 2**63 - 1, 1.5, "", "x", "[]", "null", "1", b"\xff\xfe", "[" * 2000, '{"charge": 1}', '{"amount": 3}',
    '{"amount": {"notion": "pure", "epsilon": "1e999999"}, "unit": {}}', '{"charge": [1], "used": null}',
    '{"charge": {}, "steps": 3}', '{"format": "discreet-ledger-1", "total": 7}',
    '{"format": "discreet-ledger-1", "total": {"notion": "pure", "epsilon": "x"}}',
    json.dumps({"run": [], "amount": {"notion": "pure", "epsilon": "1"}, "unit": UNIT}),
]  # fmt: skip
STATEMENTS = [
    "DROP TABLE entries", "DELETE FROM entries", "DELETE FROM entries WHERE number = 1", "CREATE VIEW v AS SELECT 1",
    "ALTER TABLE entries RENAME COLUMN chain TO c", "ALTER TABLE entries ADD COLUMN x",
]  # fmt: skip
COLUMNS = ("number", "time", "kind", "details", "chain")


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """The bytes of a signed ledger with its key, and of one without a key, whose chain anybody can make again."""
    folder = tmp_path_factory.mktemp("ledgers")
    signed, unsigned = folder / "signed.db", folder / "unsigned.db"
    with Ledger.create(signed, PureDP(3)) as ledger:
        fill(ledger)
    with contextlib.closing(connect(unsigned, "rwc")) as connection:
        initialise(connection, PureDP(3))
    with Ledger.open(unsigned) as ledger:
        fill(ledger)
    return signed.read_bytes(), (folder / "signed.db.key").read_bytes(), unsigned.read_bytes()


def fill(ledger):
    charge = ledger.charge(PureDP(1), PrivacyUnit(), {"purpose": "x"})
    ledger.record_steps(charge, [{"query": "marginals", "noise": "laplace", "share": PureDP(1).to_dict()}])
    ledger.settle(charge, PureDP("0.9"))
    ledger.charge(PureDP("0.5"), PrivacyUnit(), {"run": "abc"})


def bytes_damaged(content, rng):
    content = bytearray(content)
    for _ in range(rng.choice([1, 2, 5, 50])):
        at = rng.randrange(len(content)) if rng.random() < 0.7 else rng.randrange(600)  # the heading, or anywhere
        content[at] = rng.choice([0, 255, content[at] ^ (1 << rng.randrange(8)), rng.randrange(256)])
    return bytes(content[: rng.randrange(len(content))] if rng.random() < 0.2 else content)


def entries_damaged(path, rng, *, chained):
    """Other values in the entries; with the hashes made again, so that only their meaning is wrong."""
    with (
        contextlib.closing(sqlite3.connect(path, isolation_level=None)) as database,
        contextlib.suppress(sqlite3.Error),
    ):
        if rng.random() < 0.2:
            database.execute(rng.choice(STATEMENTS))
            return
        column, number = rng.choice(COLUMNS if not chained else ("kind", "details")), rng.randrange(1, 6)
        database.execute(f"UPDATE entries SET {column} = ? WHERE number = ?", (rng.choice(VALUES), number))
        before = ""
        for row in database.execute("SELECT number, time, kind, details FROM entries").fetchall() if chained else ():
            with contextlib.suppress(ValueError, TypeError, RecursionError):
                before = Entry(*row[:3], json.loads(row[3]), "").digest(before)
                database.execute("UPDATE entries SET chain = ? WHERE number = ?", (before, row[0]))


def damaged(folder, whole, rng):
    path = folder / "l.db"
    for old in folder.glob("l.db*"):
        old.unlink()
    signed, key, unsigned = whole
    kind = rng.randrange(3)
    path.write_bytes(unsigned if kind == 2 else bytes_damaged(signed, rng) if kind == 0 else signed)
    if kind != 2:
        (folder / "l.db.key").write_bytes(key)
        os.chmod(folder / "l.db.key", 0o600)
    if kind:
        entries_damaged(path, rng, chained=kind == 2)
    return path


def check(path):
    """Everything that can be done with a ledger either works or is refused in words."""
    refused = None
    try:
        with Ledger.open(path) as ledger:
            _ = ledger.entries, ledger.spent, ledger.remaining, ledger.unit, ledger.head
            ledger.charge(PureDP("0.125"), PrivacyUnit())
    except LedgerError as error:
        refused = error
    codes = {words: run(["ledger", words, str(path)]) for words in ("show", "verify", "head")}
    assert 70 not in codes.values(), codes
    if isinstance(refused, DamagedLedgerError):
        assert codes["verify"] in (1, 4, 10), codes
    return refused


def test_damaged_copies_are_refused_in_words(tmp_path, whole, capsys):
    rng = random.Random(20261118)
    refused = [check(damaged(tmp_path, whole, rng)) for _ in range(30)]
    assert sum(error is not None for error in refused) > 10
    assert any(isinstance(error, DamagedLedgerError) for error in refused)
    assert "Traceback" not in capsys.readouterr().err


@pytest.mark.slow
def test_thousands_of_damaged_copies(tmp_path, whole, capsys):
    rng = random.Random(1)
    for _ in range(4000):
        check(damaged(tmp_path, whole, rng))


@pytest.mark.parametrize("text", [b"CR\xe9ATE", b"en\xf4ries"])
def test_a_table_whose_name_is_no_text(tmp_path, whole, text):
    """The database quotes it in its error, and that is no Unicode."""
    path = tmp_path / "l.db"
    content = whole[2].replace({b"CR\xe9ATE": b"CREATE", b"en\xf4ries": b"entries"}[text], text, 1)
    path.write_bytes(content)
    with pytest.raises(DamagedLedgerError):
        Ledger.open(path)
    assert run(["ledger", "show", str(path)]) == 10
