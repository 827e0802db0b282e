"""Keys and signatures: what whoever has not got the key cannot do, and what only a head kept elsewhere can tell."""

from __future__ import annotations

import json
import os
import shutil
import sqlite3
from pathlib import Path

import pytest

from discreet.errors import DamagedLedgerError, LedgerError
from discreet.io.archive import read_archive, read_signature, write_archive
from discreet.privacy.budget import PureDP
from discreet.privacy.ledger import Ledger
from discreet.privacy.ledger_entries import Entry, connect, initialise, key_path
from discreet.privacy.unit import PrivacyUnit
from discreet.release import Release
from discreet.signing import Signature, SigningKey, is_signed

ROW = PrivacyUnit()
EIGHTH = PureDP("1/8")


@pytest.fixture
def path(tmp_path):
    with Ledger.create(tmp_path / "year.db", PureDP(1)) as ledger:
        for _ in range(4):
            ledger.charge(EIGHTH, ROW)
    return tmp_path / "year.db"


@pytest.fixture
def old(tmp_path):
    """A ledger as it was made before there were keys."""
    connection = connect(tmp_path / "old.db", "rwc")
    initialise(connection, PureDP(1))
    connection.close()
    return tmp_path / "old.db"


def rewritten(path, change, sign=None):
    """Alter entries and get all hashes right again, as anybody can; ``sign`` with whatever key there is."""
    connection = sqlite3.connect(path)
    rows = connection.execute("SELECT * FROM entries ORDER BY number").fetchall()
    previous = ""
    for number, time, kind, details, _, *signature in rows:
        told = change(number, json.loads(details))
        entry = Entry(number, time, kind, told, "")
        chain = entry.digest(previous)
        signed = signature[0] if sign is None else sign.sign("ledger entry", f"{number}:{chain}")
        connection.execute(
            "UPDATE entries SET details = ?, chain = ?, signature = ? WHERE number = ?",
            (json.dumps(told), chain, signed, number),
        )
        previous = chain
    connection.commit()
    connection.close()


def cheaper(number, details):
    return {**details, "amount": PureDP("1/800").to_dict()} if number == 3 else details


# -- the key -----------------------------------------------------------------------------------------------------------


def test_the_key_is_for_its_owner_alone_and_in_no_other_file(path):
    place = key_path(path)
    assert place.stat().st_mode & 0o777 == 0o600
    secret = place.read_bytes().splitlines()[1]
    assert secret not in path.read_bytes()
    os.chmod(place, 0o644)
    with Ledger.open(path) as ledger, pytest.raises(LedgerError, match="everybody may read"):
        ledger.charge(EIGHTH, ROW)


def test_without_its_key_a_ledger_is_read_and_takes_no_charge(path):
    key_path(path).rename(path.with_name("elsewhere"))
    with Ledger.open(path) as ledger:
        assert ledger.spent == PureDP("1/2") and ledger.verify() == []
        with pytest.raises(LedgerError, match="is missing, so nothing can be charged"):
            ledger.charge(EIGHTH, ROW)
        assert ledger.spent == PureDP("1/2")
        key_path(path).symlink_to("elsewhere")
        ledger.charge(EIGHTH, ROW)


def test_the_key_of_another_ledger_does_not_serve(path, tmp_path):
    Ledger.create(tmp_path / "other.db", PureDP(1)).close()
    shutil.copy(key_path(tmp_path / "other.db"), key_path(path))
    with Ledger.open(path) as ledger, pytest.raises(LedgerError, match="is not the key of"):
        ledger.charge(EIGHTH, ROW)


def test_a_signature_is_for_one_purpose_and_one_message(tmp_path):
    key, other = SigningKey.made_at(tmp_path / "k"), SigningKey.made_at(tmp_path / "l")
    signed = key.sign("release", "abc")
    assert is_signed(key.public, "release", "abc", signed)
    assert SigningKey.made_at(tmp_path / "k").public == key.public, "it is kept"
    for public, purpose, message, signature in [
        (other.public, "release", "abc", signed),
        (key.public, "ledger entry", "abc", signed),
        (key.public, "release", "abd", signed),
        (key.public, "release", "abc", signed[:-2]),
        (key.public, "release", "abc", signed + "A"),
        (key.public[8:], "release", "abc", signed),
        ("ed25519:AAAA", "release", "abc", signed),
        (key.public, "release", "abc", "ed25519:%%%"),
        (key.public, "release", "abc", ""),
    ]:
        assert not is_signed(public, purpose, message, signature)


# -- ledgers -----------------------------------------------------------------------------------------------------------


def test_entries_are_not_altered_without_the_key(path):
    rewritten(path, cheaper)
    with Ledger.open(path) as ledger:
        assert any("entry 3 was altered" in problem for problem in ledger.verify())
        with pytest.raises(LedgerError, match="was altered"):
            ledger.charge(EIGHTH, ROW)


def test_signatures_taken_out_are_missed(path):
    connection = sqlite3.connect(path)
    connection.execute("UPDATE entries SET signature = NULL WHERE number = 5")
    connection.commit()
    connection.close()
    with Ledger.open(path) as ledger:
        assert any("entry 5 was altered" in problem for problem in ledger.verify())
        with pytest.raises(LedgerError, match="was altered"):
            _ = ledger.remaining


def test_a_ledger_whose_key_was_taken_out_takes_no_charge(path):
    rewritten(path, lambda number, details: {k: v for k, v in cheaper(number, details).items() if k != "key"})
    with Ledger.open(path) as ledger:
        assert any("was the key taken out" in problem for problem in ledger.verify())
        with pytest.raises(LedgerError, match="names no key"):
            ledger.charge(EIGHTH, ROW)


def test_a_ledger_signed_anew_by_another_is_told_by_the_key_and_by_the_head(path, tmp_path):
    with Ledger.open(path) as ledger:
        head, public = ledger.head, ledger.public_key
    key_path(path).unlink()
    forger = SigningKey.made_at(key_path(path))
    rewritten(path, lambda n, d: {**cheaper(n, d), **({"key": forger.public} if "key" in d else {})}, sign=forger)
    with Ledger.open(path) as ledger:
        assert ledger.verify() == [], "nothing in the file itself can tell"
        assert any("not by" in problem for problem in ledger.verify(key=public))
        assert any("not of this ledger" in problem for problem in ledger.verify(head=head))


@pytest.mark.parametrize("how", ["cut off", "old copy", "old copy, then others"])
def test_a_cut_end_and_an_old_copy_are_told_by_the_head(path, how):
    copy = path.with_name("copy.db")
    shutil.copy(path, copy)
    with Ledger.open(path) as ledger:
        ledger.charge(EIGHTH, ROW)
        ledger.charge(EIGHTH, ROW)
        head = ledger.head
        assert ledger.verify(head=head) == []
        ledger.charge(EIGHTH, ROW)
        assert ledger.verify(head=head) == [], "what was appended since does not matter"
    if how == "cut off":
        connection = sqlite3.connect(path)
        connection.execute("DELETE FROM entries WHERE number > 6")
        connection.commit()
        connection.close()
    else:
        shutil.copy(copy, path)
    with Ledger.open(path) as ledger:
        if how == "old copy, then others":
            for _ in range(3):
                ledger.charge(PureDP("1/80"), ROW)
        assert ledger.verify() == [], "nothing in the file itself can tell"
        (problem,) = ledger.verify(head=head)
    assert ("entries up to 7 are not those" if how.endswith("others") else "its end was cut off, or") in problem


def test_a_ledger_that_is_put_back_under_an_open_process_is_noticed(path):
    with Ledger.open(path) as ledger:
        ledger.charge(EIGHTH, ROW)
        assert ledger.spent == PureDP("5/8")
        connection = sqlite3.connect(path)
        connection.execute("DELETE FROM entries WHERE number = 6")
        connection.commit()
        connection.close()
        with pytest.raises(LedgerError, match="put back to an earlier state"):
            ledger.charge(EIGHTH, ROW)


@pytest.mark.parametrize("way", ["in place", "by name", "by a link"])
@pytest.mark.parametrize("what", ["another", "old copy", "altered"])
def test_another_file_under_an_open_process_is_noticed(path, tmp_path, way, what):
    """The database itself would go by the pages and the file that it knows: as many changes were made to these."""
    named, copy = path, tmp_path / "copy.db"
    if way == "by a link":
        named = tmp_path / "link.db"
        named.symlink_to(path)
    with Ledger.open(named) as ledger:
        ledger.charge(EIGHTH, ROW)
        shutil.copy(path, copy)
        ledger.charge(EIGHTH, ROW)
        assert ledger.spent == PureDP("6/8")
        if what == "another":
            copy.unlink()
            Ledger.create(copy, PureDP(9)).close()
        elif what == "altered":
            shutil.copy(path, copy)
            connection = sqlite3.connect(copy)
            connection.execute("UPDATE entries SET details = replace(details, '1/8', '1/9') WHERE number = 7")
            connection.commit()
            connection.close()
        raw, before = bytearray(copy.read_bytes()), path.read_bytes()
        for counter in (slice(24, 28), slice(92, 96)):
            raw[counter] = before[counter]
        copy.write_bytes(raw)
        if way == "in place":
            path.write_bytes(raw)
        elif way == "by name":
            copy.rename(path)
        else:
            named.unlink()
            named.symlink_to(copy)
        for use in (lambda: ledger.charge(EIGHTH, ROW), lambda: ledger.spent, lambda: ledger.settle(7, None)):
            with pytest.raises(DamagedLedgerError, match="or replaced by another one"):
                use()
        assert named.read_bytes() == raw, "nothing was written into it"
        assert ledger.verify() != []


def test_old_ledgers_open_are_charged_and_get_a_key(old):
    with Ledger.open(old) as ledger, Ledger.open(old) as beside:
        ledger.charge(EIGHTH, ROW)
        assert ledger.public_key is None and ledger.verify() == [] and ledger.signer is None
        assert ledger.head.startswith("2:") and ledger.verify(head=ledger.head) == []
        assert not key_path(old).exists()
        public = ledger.make_key()
        assert ledger.make_key() == public == ledger.public_key
        beside.charge(EIGHTH, ROW)  # another process learns of the key before it writes
        charge = ledger.charge(EIGHTH, ROW)
        ledger.record_steps(charge, [])
        ledger.settle(charge, PureDP("1/16"))
        assert [e.signature is not None for e in ledger.entries] == [False, False, True, True, True, True, True]
        assert ledger.verify(key=public) == [] and ledger.spent == PureDP("5/16")
    rewritten(old, lambda n, d: {**d, "amount": PureDP("1/800").to_dict()} if n == 2 else d)
    with Ledger.open(old) as ledger:
        assert ledger.verify() != [], "the first signature covers what came before it"


def test_a_key_that_was_cut_short_is_made_good(old):
    SigningKey.made_at(key_path(old))  # the process died before it wrote the entry
    with Ledger.open(old) as ledger:
        with pytest.raises(LedgerError, match="makes it good"):
            ledger.charge(EIGHTH, ROW)
        ledger.make_key()
        ledger.charge(EIGHTH, ROW)
        assert ledger.verify() == []


# -- releases ----------------------------------------------------------------------------------------------------------

MEASURE = ["measure", "data.csv", "--schema", "schema.toml", "--table", "smoke", "--epsilon", "1", "-o", "t.zip"]
FIT = ["fit", "data.csv", "--schema", "schema.toml", "--epsilon", "1", "-o", "m.zip"]


def public_of(discreet, ledger="ledger.db"):
    return discreet("ledger", "key", ledger).out.strip()


@pytest.mark.parametrize("ask", [MEASURE, FIT], ids=["measure", "fit"])
def test_a_release_is_signed_by_the_ledger_it_is_charged_to(ask, desk, discreet):
    assert discreet(*ask, "--ledger", "ledger.db").code == 0
    public, file = public_of(discreet), ask[-1]
    plain = discreet("verify", file)
    assert plain.code == 0 and f"Signed by {public}, which was not checked against a key that you trust" in plain.out
    good = discreet("verify", file, "--key", public)
    assert good.code == 0 and f"Signed by {public}: unaltered since" in good.out
    Path("key.txt").write_text(f"{public}\n")
    assert discreet("verify", file, "--key", "key.txt").code == 0
    assert discreet("ledger", "create", "other.db", "--epsilon", "1").code == 0
    other = discreet("verify", file, "--key", public_of(discreet, "other.db"))
    assert other.code == 8 and f"signed by {public}, not by" in other.out
    assert discreet("verify", file, "--key", "nonsense").code == 2
    secret = key_path(desk / "ledger.db").read_bytes().splitlines()[1]
    assert secret not in Path(file).read_bytes()


def test_an_altered_or_unsigned_release_is_found(desk, discreet):
    assert discreet(*MEASURE, "--ledger", "ledger.db").code == 0
    public = public_of(discreet)
    header, arrays = read_archive("t.zip")
    _, line = read_signature("t.zip")
    counts = {name: array + 1 for name, array in arrays.items()}
    write_archive("t.zip", header, counts, sign=lambda digest: line.strip())
    altered = discreet("verify", "t.zip")
    assert altered.code == 8 and "altered after it was signed" in altered.out
    write_archive("t.zip", header, counts)
    assert discreet("verify", "t.zip").code == 0, "counts that were made up, without a signature, cannot be told"
    stripped = discreet("verify", "t.zip", "--key", public)
    assert stripped.code == 8 and "not signed" in stripped.out
    forger = SigningKey.made_at(Path("forger"))
    write_archive("t.zip", header, counts, sign=lambda digest: f"{forger.public} {forger.sign('release', digest)}")
    assert discreet("verify", "t.zip").code == 0 and discreet("verify", "t.zip", "--key", public).code == 8
    write_archive("t.zip", header, arrays, sign=lambda digest: "two words")
    assert discreet("verify", "t.zip").code == 8


def test_a_graph_is_signed_too(desk, discreet):
    ask = ["structure", "data.csv", "--schema", "schema.toml", "--epsilon", "1", "-o", "g.json"]
    assert discreet(*ask, "--ledger", "ledger.db").code == 0
    public = public_of(discreet)
    assert discreet("verify", "g.json", "--key", public).code == 0
    document = json.loads(Path("g.json").read_text())
    assert Signature.read(document["signature"]).public == public
    Path("g.json").write_text(json.dumps(document, sort_keys=True))
    assert discreet("verify", "g.json", "--key", public).code == 0, "spaces and order do not matter"
    Path("g.json").write_text(json.dumps({**document, "edges": [["smoke", "age"], ["age", "city"]]}))
    assert discreet("verify", "g.json", "--key", public).code == 8


def test_heads_on_the_command_line(desk, discreet):
    assert discreet(*MEASURE, "--ledger", "ledger.db").code == 0
    shutil.copy("ledger.db", "copy.db")
    assert discreet(*FIT, "--ledger", "ledger.db").code == 0
    head = discreet("ledger", "head", "ledger.db").out.strip()
    Path("head.txt").write_text(f"{head}\n")
    told = discreet("ledger", "verify", "ledger.db").out
    assert "keep `discreet ledger head` elsewhere" in told and "not checked against a key" in told
    for kept in (head, "head.txt"):
        assert discreet("ledger", "verify", "ledger.db", "--head", kept, "--key", public_of(discreet)).code == 0
        assert discreet("ledger", "show", "ledger.db", "--head", kept).code == 0
    assert f"signed by: {public_of(discreet)}" in discreet("ledger", "show", "ledger.db").out
    shutil.copy("copy.db", "ledger.db")
    for command in ("verify", "show"):
        back = discreet("ledger", command, "ledger.db", "--head", "head.txt")
        assert back.code == 8 and "old copy" in back.out
    assert discreet("ledger", "verify", "ledger.db").code == 0
    for nonsense in ("x", "1:2", "-1:" + "0" * 64, "9" * 30 + ":" + "0" * 64):
        assert discreet("ledger", "verify", "ledger.db", "--head", nonsense).code in (4, 8)


def test_a_missing_key_costs_nothing(desk, discreet):
    key_path(desk / "ledger.db").unlink()
    result = discreet(*FIT, "--ledger", "ledger.db")
    assert result.code == 4 and "is missing" in result.err and not Path("m.zip").exists()
    with Ledger.open("ledger.db") as ledger:
        assert ledger.spent is None


def test_what_was_peeked_at_is_not_to_be_published(desk, discreet):
    assert discreet("schema", "draft", "data.csv", "-o", "draft.toml").code == 0
    assert (
        discreet(
            "measure", "data.csv", "--schema", "draft.toml", "--table", "smoke", "--epsilon", "1", "-o", "d.zip"
        ).code
        == 0
    )
    result = discreet("verify", "d.zip")
    assert result.code == 7 and "must not be published" in result.out


@pytest.mark.parametrize("how", [["--family", "network"], ["--family", "field", "--cliques", "a,b"]])
def test_what_was_peeked_at_stays_marked_where_missing_values_are_seen_through(desk, discreet, how):
    """The model has no level for missing values; that there are some was learned by looking all the same."""
    (desk / "gaps.csv").write_text("a,b\n" + "yes,no\nno,\nno,yes\n" * 50)
    (desk / "gaps.toml").write_text(
        '[columns.a]\nlevels = ["no", "yes"]\n\n'
        '[columns.b]\nlevels = ["no", "yes"]\nmissing = "?"\npeeked = ["missing"]\n'
    )
    options = ["--option", "classes=1", "--option", "missing=random", "--option", "iterations=5"]
    spent = ["--epsilon", "1", "--ledger", "ledger.db", "-o", "m.zip"]
    fitted = discreet("fit", "gaps.csv", "--schema", "gaps.toml", "--method", "hidden", *how, *options, *spent)
    assert fitted.code == 0
    model = Release.load("m.zip").model
    assert model.domain["b"].missing is None and model.domain.peeked == {"b": ("missing",)}
    result = discreet("verify", "m.zip")
    assert result.code == 7 and "must not be published" in result.out and "does not agree" not in result.out
