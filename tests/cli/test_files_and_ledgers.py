"""Looking at releases and ledgers: what is whole, what was altered, and what it says."""

from __future__ import annotations

import json
import shutil
import sqlite3
from importlib.resources import files

import numpy as np
import pytest

from discreet.domain import Domain
from discreet.io.archive import read_archive, write_archive
from discreet.measurement import Measurement, Measurements, Noise
from discreet.privacy.budget import PureDP
from discreet.privacy.unit import PrivacyUnit

ASK = ["measure", "data.csv", "--schema", "schema.toml", "--table", "smoke", "--epsilon", "1"]


@pytest.fixture
def released(desk, discreet):
    assert discreet(*ASK, "--ledger", "ledger.db", "-o", "t.zip").code == 0
    return desk / "t.zip"


def rewrite(path, change):
    """A file with a valid checksum, whose header was changed."""
    header, arrays = read_archive(path)
    change(header)
    write_archive(path, header, arrays)


def test_verify_states_the_guarantee(released, discreet):
    result = discreet("verify", released)
    assert result.code == 0
    assert "checksum holds" in result.out and "ε = 1 (pure DP)" in result.out and "2.72 times" in result.out
    assert json.loads(discreet("verify", released, "--json").out)["verified"] is True


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (lambda h: h["measurements"][0].update(origin="exact"), "no guarantee"),
        (lambda h: h["measurements"][0].update(noise="none", scale=0), "no noise"),
        (lambda h: h["release"].update(spent={"notion": "pure", "epsilon": "2"}), "more was spent"),
        (lambda h: h["release"].update(peeked={"smoke": ["levels"]}), "does not agree"),
        (lambda h: h["release"].pop("budget"), "no well-formed statement"),
        (lambda h: h["release"].update(unit={"column": None, "max_rows": 0, "relation": "x"}), "no well-formed"),
        (lambda h: h["measurements"].pop(), "PROBLEM"),
    ],
)
def test_verify_finds_what_is_no_release(released, discreet, change, says):
    rewrite(released, change)
    result = discreet("verify", released)
    assert result.code == 1
    assert says in result.out


def test_a_file_from_anywhere_does_not_drive_the_terminal(desk, discreet):
    domain = Domain.of({"a\x1b[31m": ["\x1b]0;title\x07", "\u202eevil"]})
    name = domain.names[0]
    release = {"budget": PureDP(1).to_dict(), "unit": PrivacyUnit().to_dict(), "spent": None, "peeked": {}}
    Measurements(
        [Measurement("x\x1b[2J", np.array([1, 2]), Noise("laplace", 1), domain, clique=(name,))], release
    ).save("t.zip")
    result = discreet("show", "t.zip")
    assert result.code == 0
    assert not any(c in result.out for c in "\x1b\x07\u202e")


def test_models_are_shown_and_do_not_pass_for_releases(desk, discreet):
    shutil.copy(str(files("discreet") / "data" / "asia.zip"), "asia.zip")
    assert "8 columns" in discreet("show", "asia.zip").out
    result = discreet("verify", "asia.zip")
    assert result.code == 1 and "not a release" in result.out


def test_ledger_create_and_show(desk, discreet):
    assert discreet("ledger", "create", "new.db", "--rho", "0.5").code == 0
    assert "ρ = 0.5 (zCDP) in total" in discreet("ledger", "show", "new.db").out
    assert "spent: nothing" in discreet("ledger", "show", "new.db").out


def test_ledger_show_says_what_was_spent_on_what(released, discreet):
    result = discreet("ledger", "show", "ledger.db")
    assert "spent: ε = 1 (pure DP); left: ε = 2 (pure DP)" in result.out
    assert "Marginals of smoke" in result.out
    state = json.loads(discreet("ledger", "show", "ledger.db", "--json").out)
    assert state["remaining"] == {"notion": "pure", "epsilon": "2"}
    assert [e["kind"] for e in state["entries"]][:2] == ["open", "charge"]


def test_ledger_verify_finds_a_forged_entry(released, discreet):
    assert discreet("ledger", "verify", "ledger.db").code == 0
    with sqlite3.connect("ledger.db") as connection:
        connection.execute('UPDATE entries SET details = replace(details, \'"epsilon": "1"\', \'"epsilon": "1/9"\')')
    result = discreet("ledger", "verify", "ledger.db")
    assert result.code == 1
    assert "altered" in result.out
