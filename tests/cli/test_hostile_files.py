"""Files from anywhere: their work is bounded before it is begun, and what stands in them drives no terminal and no
spreadsheet."""

from __future__ import annotations

import csv
import json
import os
import pty
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

from discreet import encode
from discreet.domain import Domain
from discreet.errors import CostError, InputError
from discreet.frames import inert
from discreet.io.archive import read_archive, write_archive
from discreet.io.limits import Limits
from discreet.measurement import Measurement, Measurements, Noise
from discreet.models import BayesianNetwork
from discreet.release import Release

EVIL = ["\x1b]0;title\x07", "\x9b2J", "\u202eevil", "=1+1"]


@pytest.fixture
def bomb(desk, discreet):
    """A small release whose recipe asks for ten million steps, with a checksum that holds."""
    words = ["fit", "data.csv", "--schema", "schema.toml", "--epsilon", "1", "--graph", "smoke -> city"]
    assert discreet(*words, "--option", "fit_steps=100").code == 0
    header, arrays = read_archive("model.zip")

    def ask(node):
        if isinstance(node, dict):
            for key, value in node.items():
                if key == "fit_steps":
                    node[key] = 10_000_000
                ask(value)

    ask(header)
    write_archive("bomb.zip", header, arrays)
    return desk / "bomb.zip"


def test_a_release_cannot_make_us_work_for_hours(bomb, discreet):
    begun = time.monotonic()
    result = discreet("verify", bomb)
    assert result.code == 5 and "--most-seconds" in result.err
    result = discreet("query", bomb, "P(smoke)")
    assert result.code == 0 and "P(smoke)" in result.out and "no intervals" in result.err
    result = discreet("report", bomb)
    assert result.code == 0 and "no intervals" in result.err
    assert discreet("verify", bomb, "--no-refit").code != 5
    assert time.monotonic() - begun < 60
    assert discreet("verify", bomb, "--most-seconds", "0").code == 2
    with pytest.raises(CostError, match="limit is 600"):
        Release.load(bomb).refit()
    assert Release.load(bomb, Limits(refit_seconds=10**6)).refit_seconds > 600


def test_what_we_write_ourselves_is_within_the_limit(bomb, discreet):
    assert Release.load("model.zip").refit_seconds < 60
    assert discreet("verify", "model.zip").code == 0


def evil_model():
    domain = Domain.of({"a": EVIL, "=cmd": ["+x", "-5"]})
    tables = {"a": np.full(4, 0.25), "=cmd": np.full(2, 0.5)}
    return BayesianNetwork(domain, {"a": (), "=cmd": ()}, tables)


def in_a_terminal(*words):
    """What a command writes to a real terminal."""
    main, other = pty.openpty()
    code = "import sys; from discreet.cli import main; sys.exit(main())"
    process = subprocess.Popen([sys.executable, "-c", code, *words], stdout=other, stderr=other)
    os.close(other)
    seen = b""
    while True:
        try:
            more = os.read(main, 65536)
        except OSError:  # the other side is gone
            break
        if not more:
            break
        seen += more
    os.close(main)
    assert process.wait(60) == 0, seen
    return seen.decode()


def test_labels_do_not_drive_a_terminal(desk, discreet):
    evil_model().save("m.zip")
    seen = in_a_terminal("sample", "m.zip", "-n", "50")
    assert "=1+1" in seen and not any(c in seen for c in "\x07\x9b\u202e") and "\x1b]" not in seen
    for words in (["query", "m.zip", "P(a)", "--json"], ["show", "m.zip", "--json"], ["show", "m.zip"]):
        out = discreet(*words).out
        assert not any(c in out for c in "\x1b\x07\x9b\u202e"), words
        if words[-1] == "--json":
            assert "\u202eevil" in json.dumps(json.loads(out), ensure_ascii=False)


def test_records_in_a_file_are_as_they_are_unless_a_spreadsheet_is_meant(desk, discreet):
    evil_model().save("m.zip")
    for more, names, formula in ([], ["a", "=cmd"], "=1+1"), (["--safe-csv"], ["a", "'=cmd"], "'=1+1"):
        assert discreet("sample", "m.zip", "-n", "50", "-o", "r.csv", "--force", *more).code == 0
        with open("r.csv", newline="", encoding="utf-8") as file:
            head, *rows = csv.reader(file)
        assert head == names and {r[0] for r in rows} == {*EVIL[:3], formula}
        assert {r[1] for r in rows} == {"'+x" if more else "+x", "-5"}
    domain = Domain.of({"a": ["=1+1", "x"]})
    release = {
        "budget": {"notion": "pure", "epsilon": "1"},
        "unit": {"column": None, "max_rows": 1, "relation": "add-remove"},
        "spent": None,
        "peeked": {},
    }
    noise = Noise("laplace", 1)
    Measurements([Measurement("=a", np.array([1, -2]), noise, domain, clique=("a",))], release).save("t.zip")
    assert discreet("show", "t.zip", "--csv", "t.csv", "--safe-csv").code == 0
    with open("t.csv", newline="", encoding="utf-8-sig") as file:
        rows = list(csv.reader(file))
    assert [r[:3] for r in rows[1:]] == [["'=a", "'=1+1", "1"], ["'=a", "x", "-2"]]


@pytest.mark.parametrize("text", ["1", "-5", "+1.5e3", "plain", "", "a=b", "’"])
def test_what_is_no_formula_stays(text):
    assert inert(text) == text


def test_more_records_than_there_is_room_for(desk, discreet):
    for n in ("1" + "0" * 20, "1" + "0" * 30):
        result = discreet("sample", "asia", "-n", n)
        assert result.code == 5 and "draw fewer" in result.err
    assert discreet("sample", "asia", "-n", "1e20").code == 2


def test_columns_of_one_name():
    domain = Domain.of({"a": ["x", "y"], "b": ["u", "v"]})
    frames = [
        pd.DataFrame([["x", "u", "y"]], columns=["a", "b", "a"]),
        pd.DataFrame([["x", "u", "y", "y"]], columns=["a", "b", "z", "z"]),
        pa.table([pa.array(["x"]), pa.array(["u"]), pa.array(["y"])], names=["a", "b", "a"]),
    ]
    for frame in frames:
        with pytest.raises(InputError, match="same name"):
            encode(frame, domain)


def test_a_cost_that_is_none(desk, discreet):
    """What stands in a file at the place of a table of facts may be anything."""
    words = ["measure", "data.csv", "--schema", "schema.toml", "--table", "smoke", "--epsilon", "1", "-o", "t.zip"]
    assert discreet(*words).code == 0
    for wrong in ("x", [1], 7, None, [[1, 2, 3]]):
        header, arrays = read_archive("t.zip")
        header["measurements"][0]["cost"] = wrong
        write_archive("wrong.zip", header, arrays)
        for command in ("verify", "show"):
            assert discreet(command, "wrong.zip").code in (1, 4, 6), (command, wrong)
