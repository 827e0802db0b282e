"""The ledger: durable, shared, append-only. Processes race on it and are killed; it never says less than was spent."""

import contextlib
import json
import os
import random
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from fractions import Fraction

import numpy as np
import pytest

from discreet.domain import Domain
from discreet.errors import BudgetError, DamagedLedgerError, LedgerError
from discreet.privacy.budget import ZCDP, ApproxDP, PureDP
from discreet.privacy.curator import Curator
from discreet.privacy.ledger import Ledger
from discreet.privacy.ledger_access import patiently
from discreet.privacy.ledger_entries import Had, connect
from discreet.privacy.unit import PrivacyUnit
from discreet.tables.encode import encode

ROW = PrivacyUnit()
PERSON = PrivacyUnit("who", 3)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "spending.ledger"


def charges(ledger):
    return [e for e in ledger.entries if e.kind == "charge"]


# -- spending ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("in_memory", [True, False])
def test_charges_add_up_and_stop_at_the_total(path, in_memory):
    ledger = Ledger.in_memory(PureDP(1)) if in_memory else Ledger.create(path, PureDP(1))
    assert ledger.spent is None
    assert ledger.remaining == PureDP(1)
    for i in range(10):
        assert ledger.charge(PureDP(0.1), ROW) == i + 2
    assert ledger.spent == PureDP(1)
    assert ledger.remaining is None
    with pytest.raises(BudgetError, match="does not suffice"):
        ledger.charge(PureDP("1e-30"), ROW)
    assert len(charges(ledger)) == 10
    assert ledger.verify() == []


def test_the_file_is_the_memory(path):
    with Ledger.create(path, ZCDP(1)) as ledger:
        number = ledger.charge(ZCDP("1/3"), PERSON, {"purpose": "Übersicht \ud800", "domain": "abc"})
        created = ledger.created
    with Ledger.open(path) as again:
        assert again.total == ZCDP(1)
        assert again.spent == ZCDP("1/3")
        assert again.created == created
        (entry,) = charges(again)
        assert entry.number == number
        assert entry.details["amount"] == {"notion": "zcdp", "rho": "1/3"}
        assert entry.details["unit"] == {"column": "who", "max_rows": 3, "relation": "add-remove"}
        assert entry.details["purpose"] == "Übersicht \ud800"
        assert entry.details["version"]
        assert entry.time.endswith("+00:00")
        assert again.verify() == []


def test_a_commit_is_synced_to_the_disk(path):
    ledger = Ledger.create(path, PureDP(1))
    assert ledger._connection.execute("PRAGMA synchronous").fetchone() == (3,)  # EXTRA
    assert ledger._connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
    # What a charge wrote can be read by somebody else at once.
    ledger.charge(PureDP(0.5), ROW)
    assert sqlite3.connect(path).execute("SELECT count(*) FROM entries WHERE kind = 'charge'").fetchone() == (1,)


def test_two_users_of_a_file_see_each_other(path):
    one, two = Ledger.create(path, PureDP(1)), Ledger.open(path)
    one.charge(PureDP(0.75), ROW)
    assert two.remaining == PureDP(0.25)
    with pytest.raises(BudgetError):
        two.charge(PureDP(0.5), ROW)
    two.charge(PureDP(0.25), ROW)
    assert one.remaining is None


def test_totals_in_every_notion():
    approx = Ledger.in_memory(ApproxDP(1, 1e-6))
    approx.charge(ApproxDP(0.5, 5e-7), ROW)
    approx.charge(PureDP(0.25), ROW)
    assert approx.remaining == ApproxDP(0.25, 5e-7)
    with pytest.raises(BudgetError, match="keep the total in ZCDP"):
        approx.charge(ZCDP(0.001), ROW)
    with pytest.raises(BudgetError):
        approx.charge(ApproxDP(0.1, 6e-7), ROW)
    concentrated = Ledger.in_memory(ZCDP(1))
    concentrated.charge(PureDP(1), ROW)
    assert float(concentrated.spent.rho) == pytest.approx(0.46211715726)
    with pytest.raises(BudgetError, match="δ of its own"):
        concentrated.charge(ApproxDP(0.1, 1e-6), ROW)
    pure = Ledger.in_memory(PureDP(1))
    with pytest.raises(BudgetError, match="Laplace"):
        pure.charge(ZCDP(0.001), ROW)
    assert pure.spent is None


def test_one_ledger_protects_one_kind_of_unit(path):
    ledger = Ledger.create(path, PureDP(1))
    ledger.charge(PureDP(0.1), ROW)
    for other in (PERSON, PrivacyUnit(relation="replace-one")):
        with pytest.raises(BudgetError, match="do not add up"):
            Ledger.open(path).charge(PureDP(0.1), other)
    assert ledger.spent == PureDP(0.1)


def test_checking_spends_nothing(path):
    ledger = Ledger.create(path, PureDP(1))
    ledger.check(PureDP(1), ROW)
    with pytest.raises(BudgetError):
        ledger.check(PureDP(2), ROW)
    assert ledger.spent is None
    assert len(ledger.entries) == 1


def test_details_cannot_pass_for_the_amount_or_the_unit():
    ledger = Ledger.in_memory(PureDP(1))
    ledger.charge(PureDP(1), ROW, {"amount": PureDP("1/1000").to_dict(), "unit": PERSON.to_dict(), "version": "x"})
    assert ledger.remaining is None
    assert charges(ledger)[0].details["unit"] == ROW.to_dict()


# -- giving back ---------------------------------------------------------------------------------------------------


def test_what_was_not_used_comes_back(path):
    ledger = Ledger.create(path, ZCDP(1))
    first, second = ledger.charge(ZCDP(0.5), ROW), ledger.charge(ZCDP(0.5), ROW)
    ledger.settle(first, ZCDP(0.125))
    ledger.settle(second, None)
    assert ledger.spent == Ledger.open(path).spent == ZCDP(0.125)
    ledger.charge(ZCDP(0.875), ROW)
    assert ledger.remaining is None
    assert ledger.verify() == Ledger.open(path).verify() == []


def test_a_charge_is_settled_once_and_never_upwards():
    ledger = Ledger.in_memory(ZCDP(1))
    number = ledger.charge(ZCDP(0.5), ROW)
    with pytest.raises(LedgerError, match="cannot have used"):
        ledger.settle(number, ZCDP(0.6))
    with pytest.raises(LedgerError, match="cannot have used"):
        ledger.settle(number, PureDP(0.01))
    with pytest.raises(LedgerError, match="no open charge number 99"):
        ledger.settle(99, None)
    ledger.settle(number, ZCDP(0.25))
    for used in (ZCDP(0.1), None):  # a second time would give back what was drawn
        with pytest.raises(LedgerError, match="no open charge"):
            ledger.settle(number, used)
    assert ledger.spent == ZCDP(0.25)
    untouched = ledger.charge(ZCDP(0.5), ROW)
    ledger.settle(untouched, None)
    with pytest.raises(LedgerError, match="no open charge"):
        ledger.settle(untouched, None)


def test_steps_are_information_only():
    ledger = Ledger.in_memory(PureDP(1))
    number = ledger.charge(PureDP(0.5), ROW)
    ledger.record_steps(number, [{"query": "Marginals"}])
    assert ledger.entries[-1].details == {"charge": number, "steps": [{"query": "Marginals"}]}
    assert ledger.spent == PureDP(0.5)


# -- altered files ------------------------------------------------------------------------------------------------


@pytest.fixture
def spent_path(path):
    with Ledger.create(path, PureDP(1)) as ledger:
        for _ in range(5):
            ledger.charge(PureDP(0.125), ROW)
    return path


def alter(path, *statements):
    with sqlite3.connect(path) as connection:
        for statement in statements:
            assert connection.execute(statement).rowcount > 0
    connection.close()


@pytest.mark.parametrize(
    ("statement", "found"),
    [
        (
            """UPDATE entries SET details = replace(details, '"1/8"', '"1/80"') WHERE number = 3""",
            "entry 3 was altered",
        ),
        ("UPDATE entries SET time = '2001-01-01' WHERE number = 4", "entry 4 was altered"),
        ("UPDATE entries SET kind = 'steps' WHERE number = 2", "entry 2 was altered"),
        ("UPDATE entries SET chain = 'x' WHERE number = 6", "entry 6 was altered"),
        ("UPDATE entries SET details = '{}' WHERE number = 4", "entry 4 was altered"),
        ("""UPDATE entries SET details = '"text"' WHERE number = 4""", "entry 4 was altered"),
        ("UPDATE entries SET details = 'not json' WHERE number = 4", "cannot be read"),
        ("DELETE FROM entries WHERE number = 3", "entry 3 is missing"),
        ("UPDATE entries SET number = 30 WHERE number = 6", "entry 6 is missing"),
        (
            "INSERT INTO entries SELECT 7, time, 'settle', '{\"charge\": 2, \"used\": null}', chain, signature "
            "FROM entries WHERE number = 6",
            "entry 7 was altered",
        ),
        (
            "INSERT INTO entries SELECT number + 5, time, kind, details, chain, signature FROM entries "
            "WHERE number = 2",
            "entry 7",
        ),
    ],
)
def test_tampering_is_found(spent_path, statement, found):
    assert Ledger.open(spent_path).verify() == []
    alter(spent_path, statement)
    problems = Ledger.open(spent_path).verify()
    assert any(found in problem for problem in problems), problems


def test_charges_beyond_the_total_are_found(spent_path):
    """Even when whoever wrote them got the hashes right."""
    ledger = Ledger.open(spent_path)
    ledger._append("charge", {"amount": PureDP(5).to_dict(), "unit": ROW.to_dict()})
    (problem,) = Ledger.open(spent_path).verify()
    assert "do not fit the total" in problem


def test_a_damaged_database_is_found(spent_path):
    raw = bytearray(spent_path.read_bytes())
    middle = raw.find(b'"1/8"')
    raw[middle : middle + 2000] = os.urandom(len(raw[middle : middle + 2000]))
    spent_path.write_bytes(raw)
    with contextlib.suppress(LedgerError):  # refused on opening would be as good
        assert Ledger.open(spent_path).verify() != []


# -- files that are no ledger --------------------------------------------------------------------------------------


def other_database(path):
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE entries (number, time, kind, details, chain)")
        connection.execute("INSERT INTO entries VALUES (1, 'now', 'open', '{\"format\": \"another\"}', '')")
    connection.close()


@pytest.mark.parametrize(
    "make",
    [
        lambda p: p.write_text("just a text file, long enough to be more than a database header" * 20),
        lambda p: p.write_bytes(b""),
        lambda p: p.mkdir(),
        other_database,
        lambda p: sqlite3.connect(p).execute("CREATE TABLE x (y)"),
    ],
    ids=["text", "empty", "folder", "another ledger", "another database"],
)
def test_files_that_are_no_ledger(path, make):
    make(path)
    for total in (None, PureDP(1)):
        with pytest.raises(LedgerError, match=r"spending\.ledger"):
            Ledger.open(path, total)
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.create(path, PureDP(1))


def test_paths_that_lead_nowhere(path, tmp_path):
    with pytest.raises(LedgerError, match=r"there is no ledger .*Ledger\.create"):
        Ledger.open(path)
    for make in (Ledger.create, Ledger.open):
        with pytest.raises(LedgerError, match="does not exist; make it first"):
            make(tmp_path / "nowhere" / "x.ledger", PureDP(1))
    assert list(tmp_path.iterdir()) == []


def test_a_total_cannot_be_changed_nor_a_ledger_overwritten(path):
    Ledger.create(path, PureDP(1)).charge(PureDP(0.5), ROW)
    with pytest.raises(LedgerError, match=r"a total cannot be changed"):
        Ledger.open(path, PureDP(2))
    with pytest.raises(LedgerError, match="exists already"):
        Ledger.create(path, PureDP(1))
    assert Ledger.open(path, PureDP(1)).remaining == PureDP(0.5)


def test_names_with_odd_characters(tmp_path):
    odd = tmp_path / "a b?mode=memory#%41ü.ledger"
    Ledger.create(odd, PureDP(1)).charge(PureDP(0.5), ROW)
    assert Ledger.open(odd).spent == PureDP(0.5)
    assert sorted(p.name for p in tmp_path.iterdir()) == [odd.name, f"{odd.name}.key"]


def test_a_read_only_ledger_can_be_read_and_not_charged(spent_path, monkeypatch):
    monkeypatch.setattr("discreet.privacy.ledger_log.connect", lambda path, mode: connect(path, "ro"))
    ledger = Ledger.open(spent_path)
    assert ledger.spent == PureDP(0.625)
    assert ledger.verify() == []
    with pytest.raises(LedgerError, match=r"could not be written|cannot be written"):
        ledger.charge(PureDP(0.125), ROW)
    assert ledger.spent == PureDP(0.625)


def test_a_full_disk_spends_nothing(path, monkeypatch):
    ledger = Ledger.create(path, PureDP(1))
    pages = ledger._connection.execute("PRAGMA page_count").fetchone()[0]

    def limited(path, mode):
        connection = connect(path, mode)
        connection.execute(f"PRAGMA max_page_count = {pages + 1}")
        return connection

    monkeypatch.setattr("discreet.privacy.ledger_log.connect", limited)
    taken = 0
    with pytest.raises(LedgerError, match=r"nothing was spent.*full"):
        for _ in range(1000):
            ledger.charge(PureDP("1/1000"), ROW, {"purpose": "x" * 500})
            taken += 1
    assert 0 < taken < 1000
    assert ledger.spent == PureDP(Fraction(taken, 1000))
    assert ledger.verify() == []
    monkeypatch.undo()
    ledger.charge(PureDP("1/1000"), ROW)
    assert Ledger.open(path).spent == PureDP(Fraction(taken + 1, 1000))


@pytest.mark.parametrize("how", ["by its name", "by its bytes"])
@pytest.mark.parametrize("when", ["before it is locked", "before the commit"])
def test_a_ledger_that_is_replaced_while_it_is_charged_is_noticed(path, tmp_path, monkeypatch, how, when):
    """An old copy is put in its place after the file was opened: what is written would be nowhere."""
    ledger = Ledger.create(path, PureDP(1))
    old = path.read_bytes()
    ledger.charge(PureDP(0.25), ROW)
    replaced = []

    def replacing(connection, place, statement, values=()):
        if (
            statement == {"before it is locked": "BEGIN IMMEDIATE", "before the commit": "COMMIT"}[when]
            and not replaced
        ):
            replaced.append(statement)
            if how == "by its bytes":
                path.write_bytes(old)
            else:
                (tmp_path / "copy").write_bytes(old)
                os.replace(tmp_path / "copy", path)
        return patiently(connection, place, statement, values)

    monkeypatch.setattr("discreet.privacy.ledger_log.patiently", replacing)
    try:
        ledger.charge(PureDP(0.25), ROW)
    except LedgerError as error:
        assert re.search("replaced|put back|nothing was spent", str(error))
    else:  # so small a ledger is written as a whole: the old bytes are gone again
        assert (how, when) == ("by its bytes", "before the commit")
        assert Ledger.open(path).spent == PureDP(0.5)
    assert replaced


def test_a_ledger_that_is_replaced_while_a_charge_is_tried_again_is_noticed(path, tmp_path, monkeypatch):
    """What is tried again has the number of what failed, and is looked for all the same."""
    ledger = Ledger.create(path, PureDP(1))
    ledger.charge(PureDP(0.25), ROW)
    old, commits = path.read_bytes(), []

    def failing_once(connection, place, statement, values=()):
        if statement == "COMMIT":
            commits.append(statement)
            if len(commits) == 1:
                raise sqlite3.OperationalError("disk I/O error")
            (tmp_path / "copy").write_bytes(old)
            os.replace(tmp_path / "copy", path)
        return patiently(connection, place, statement, values)

    monkeypatch.setattr("discreet.privacy.ledger_log.patiently", failing_once)
    with pytest.raises(LedgerError, match="nothing was spent"):
        ledger.charge(PureDP(0.5), ROW)
    with pytest.raises(DamagedLedgerError, match="replaced"):
        ledger.charge(PureDP(0.5), ROW)
    assert len(commits) == 2


def test_a_ledger_put_back_to_before_its_own_charge_is_noticed(path):
    """Also when nothing was looked up since."""
    ledger = Ledger.create(path, PureDP(1))
    old = path.read_bytes()
    ledger.charge(PureDP(0.75), ROW)
    path.write_bytes(old)
    with pytest.raises(DamagedLedgerError, match="put back"):
        ledger.charge(PureDP(0.75), ROW)


def test_a_locked_ledger_is_waited_for(path):
    ledger = Ledger.create(path, PureDP(1))
    holder = sqlite3.connect(path, isolation_level=None, check_same_thread=False)
    holder.execute("BEGIN IMMEDIATE")
    threading.Timer(0.3, lambda: holder.execute("ROLLBACK")).start()
    begin = time.monotonic()
    ledger.charge(PureDP(0.5), ROW)
    assert time.monotonic() - begin >= 0.25


# -- many at once --------------------------------------------------------------------------------------------------


def test_threads_cannot_overspend_together():
    ledger = Ledger.in_memory(PureDP(1))
    succeeded, start = [], threading.Barrier(8)

    def spend():
        start.wait()
        for _ in range(40):
            with contextlib.suppress(BudgetError):
                succeeded.append(ledger.charge(PureDP("1/200"), ROW))

    threads = [threading.Thread(target=spend) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(succeeded) == len(set(succeeded)) == 200
    assert ledger.remaining is None
    assert ledger.verify() == []


def test_opening_while_another_creates(tmp_path):
    for attempt in range(8):
        path = tmp_path / f"{attempt}.ledger"
        start, ledgers, failures = threading.Barrier(6), [], []

        def open_it(path=path, start=start, ledgers=ledgers, failures=failures):
            start.wait()
            try:
                ledgers.append(Ledger.open(path, PureDP(1)))
            except BaseException as error:
                failures.append(error)

        threads = [threading.Thread(target=open_it) for _ in range(6)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        assert failures == []
        for ledger in ledgers:
            ledger.charge(PureDP("1/6"), ROW)
        assert ledgers[0].remaining is None
        assert [e.kind for e in ledgers[0].entries] == ["open"] + ["charge"] * 6
    assert sorted(p.name for p in tmp_path.iterdir()) == sorted(
        name for i in range(8) for name in (f"{i}.ledger", f"{i}.ledger.key")
    )  # no drafts left behind


SPENDER = """
import sys
from discreet.errors import BudgetError
from discreet.privacy.budget import PureDP
from discreet.privacy.ledger import Ledger
from discreet.privacy.ledger_access import patiently
from discreet.privacy.unit import PrivacyUnit

ledger, taken = Ledger.open(sys.argv[1]), 0
print("ready", flush=True)
sys.stdin.readline()
for _ in range(int(sys.argv[2])):
    try:
        ledger.charge(PureDP("1/500"), PrivacyUnit())
        taken += 1
    except BudgetError:
        pass
print(taken)
"""


def run(program, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", program, *map(str, arguments)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def test_two_processes_end_exactly_at_the_budget(path):
    """Each tries 350 times to spend a five-hundredth; together they succeed five hundred times."""
    ledger = Ledger.create(path, PureDP(1))
    processes = [run(SPENDER, path, 350) for _ in range(2)]
    assert [p.stdout.readline() for p in processes] == ["ready\n"] * 2
    for p in processes:
        p.stdin.write("go\n")
        p.stdin.flush()
    worked = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    taken = [int(p.communicate(timeout=110)[0]) for p in processes]
    worked = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - worked
    assert sum(taken) == 500
    assert min(taken) >= 150  # both were at work
    assert ledger.spent == PureDP(1)
    assert ledger.remaining is None
    assert ledger.verify() == []
    assert worked < 6, "a charge must not grow slower with the number of those before it"


RELEASER = """
import os, sys
from discreet.privacy.budget import PureDP
from discreet.privacy.ledger import Ledger
from discreet.privacy.ledger_access import patiently
from discreet.privacy.unit import PrivacyUnit

ledger = Ledger.open(sys.argv[1])
releases = os.open(sys.argv[2], os.O_WRONLY | os.O_APPEND | os.O_CREAT)
print("ready", flush=True)
while True:
    number = ledger.charge(PureDP("1/1000000"), PrivacyUnit(), {"purpose": "x" * 300})
    os.write(releases, b"%d\\n" % number)
    os.fsync(releases)
"""


def kill_in_the_middle(tmp_path, kills):
    """Kill a process that charges and releases, again and again; the ledger must cover every release each time."""
    path, released = tmp_path / "killed.ledger", tmp_path / "released"
    released.touch()
    begin = time.monotonic()
    Ledger.create(path, PureDP(1)).close()
    patience = max(0.06, 3 * (time.monotonic() - begin))  # a few charges, on a slow disk too
    luck = random.Random()
    for _ in range(kills):
        process = run(RELEASER, path, released)
        assert process.stdout.readline() == "ready\n"
        end = time.monotonic() + 60
        while not released.read_text() and time.monotonic() < end:  # on a busy machine nothing may come for a while
            time.sleep(0.01)
        time.sleep(luck.uniform(0.0, patience))
        process.send_signal(signal.SIGKILL)
        process.communicate()
        with Ledger.open(path) as ledger:
            assert ledger.verify() == []
            numbers = {e.number for e in charges(ledger)}
            spent = ledger.spent
        releases = released.read_text().split()
        assert len(set(releases)) == len(releases)
        assert {int(r) for r in releases} <= numbers
        assert spent is None or spent.epsilon == Fraction(len(numbers), 10**6) >= Fraction(len(releases), 10**6)
    return len(releases), len(numbers)


def test_kills_leave_the_ledger_ahead_of_the_releases(tmp_path):
    releases, charged = kill_in_the_middle(tmp_path, 8)
    assert releases > 0
    assert charged - releases <= 8  # a kill loses one charge at most


@pytest.mark.slow
def test_a_hundred_kills_leave_the_ledger_ahead_of_the_releases(tmp_path):
    releases, charged = kill_in_the_middle(tmp_path, 100)
    assert 0 < releases <= charged <= releases + 100


def test_a_ledger_that_charges_late_would_be_caught(tmp_path):
    """Negative control: release first, charge afterwards, and the kills show it."""
    late = RELEASER.replace(
        """    number = ledger.charge(PureDP("1/1000000"), PrivacyUnit(), {"purpose": "x" * 300})
    os.write(releases, b"%d\\n" % number)
    os.fsync(releases)
""",
        """    os.write(releases, b"%d\\n" % (ledger.entries[-1].number + 1))
    os.fsync(releases)
    print("released", flush=True)
    sys.stdin.readline()
    ledger.charge(PureDP("1/1000000"), PrivacyUnit())
""",
    )
    assert late != RELEASER
    path, released = tmp_path / "late.ledger", tmp_path / "released"
    Ledger.create(path, PureDP(1)).close()
    process = run(late, path, released)
    assert [process.stdout.readline() for _ in range(2)] == ["ready\n", "released\n"]
    process.send_signal(signal.SIGKILL)
    process.communicate()
    numbers = {e.number for e in charges(Ledger.open(path))}
    assert not {int(r) for r in released.read_text().split()} <= numbers


def test_a_ledger_says_what_it_is(path):
    assert repr(Ledger.in_memory(PureDP(1))) == "Ledger(in memory, total ε = 1 (pure DP))"
    assert str(path) in repr(Ledger.create(path, PureDP(1)))
    assert json.loads(json.dumps([e.details for e in Ledger.open(path).entries]))[0]["format"] == "discreet-ledger-1"


def test_a_run_that_has_had_answers_has_not_used_nothing():
    """A curator that took it up and was stopped before it booked them would give back what was paid for them."""
    ledger = Ledger.in_memory(PureDP(1))
    charge = ledger.charge(PureDP(1), PrivacyUnit(), {"run": "r"})
    had = Had(1, "seal")
    ledger.count_answer(charge, Had(), had)
    curator = Curator(encode(np.zeros((3, 1), dtype=np.int64), Domain.of({"a": 2})), budget=PureDP(1), ledger=ledger)
    curator.take_up("r", had, Had())
    curator.close()
    with pytest.raises(LedgerError, match="has had answers"):
        ledger.settle(charge, None)
    assert ledger.spent == PureDP(1)
    assert ledger.resume("r", PureDP(1), PrivacyUnit(), had) == (charge, False)  # and it can go on
