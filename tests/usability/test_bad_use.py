"""A catalogue of bad uses. Each message names the thing, its public value and the way out; it shows no traceback and no
private value, and nothing is spent or half written."""

from __future__ import annotations

import gzip
import shutil
import zipfile
from importlib.resources import files

import numpy as np
import pytest
from command_desk import ROWS, assert_discreet, contents

from discreet.domain import Attribute, Domain
from discreet.errors import BudgetError, DiscreetError, FileFormatError, InputError, LedgerError, NotAReleaseError
from discreet.errors import SchemaError as BadSchema
from discreet.measurement import Measurement, Measurements, Noise
from discreet.privacy.budget import ZCDP, ApproxDP, PureDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.ledger import Ledger
from discreet.privacy.query import Marginals
from discreet.privacy.unit import PrivacyUnit
from discreet.tables.encode import encode

WRONG_USE, REFUSED, FILE, TOO_LARGE, CHECK_FAILED = 2, 3, 4, 5, 1


def asking(*more, data="data.csv", schema="schema.toml", table="smoke", epsilon="1", ledger="ledger.db"):
    """A measure command that works, but for what is changed."""
    words = ["measure", data, "--schema", schema, "--ledger", ledger]
    words += ["--table", table] if table is not None else []
    words += ["--epsilon", epsilon] if epsilon is not None else []
    return [*words, *more]


def write(name, content):
    def prepare(desk):
        (desk / name).write_bytes(content if isinstance(content, bytes) else content.encode())

    return prepare


def folder(name):
    return lambda desk: (desk / name).mkdir()


def spend(amount, unit=None):
    def prepare(desk):
        with Ledger.open(desk / "ledger.db") as ledger:
            ledger.charge(amount, unit or PrivacyUnit())

    return prepare


def a_ledger(total):
    return lambda desk: Ledger.create(desk / "l", total).close()


def a_release(desk):
    domain = Domain.of({"smoke": ["yes", "no"]})
    release = Measurements(
        [Measurement("smoke", np.array([3, 4]), Noise("laplace", 1.0), domain, clique=("smoke",))],
        {"budget": PureDP(1).to_dict(), "unit": PrivacyUnit().to_dict(), "spent": PureDP(1).to_dict(), "peeked": {}},
    )
    release.save(desk / "tables.zip")


def a_model(desk):
    shutil.copy(str(files("discreet") / "data" / "asia.zip"), desk / "asia.zip")


def a_damaged_release(desk):
    a_release(desk)
    path = desk / "tables.zip"
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 0xFF
    path.write_bytes(bytes(data))


def a_zip(desk):
    with zipfile.ZipFile(desk / "other.zip", "w") as archive:
        archive.writestr("readme.txt", "hello")


WIDE = "\n".join(f"[columns.c{i}]\nlevels = {list(range(100))}" for i in range(10))
NO_HEADER = "Quetzalcoatl,no,12,Xochimilco\nann,yes,34,north\n"
IDENTIFIERS = "name\n" + "\n".join(f"Quetzalcoatl{i}" for i in range(40)) + "\n"

CATALOGUE = {
    # name: (command line, exit code, what the message must say, what stands on the desk)
    # -- names
    "wrong column": (asking(table="smok"), WRONG_USE, ["'smok'", "did you mean 'smoke'"]),
    "wrong second column": (asking(table="smoke,agee"), WRONG_USE, ["'agee'", "did you mean 'age'"]),
    "column twice in a table": (asking(table="smoke,smoke"), WRONG_USE, ["a table names each column once", "'smoke'"]),
    "table twice": (asking("--table", "age,smoke", table="smoke,age"), WRONG_USE, ["smoke,age", "twice", "once"]),
    "empty table": (asking(table=""), WRONG_USE, ["--table", "a,b"]),
    "trailing comma": (asking(table="smoke,"), WRONG_USE, ["'smoke,'", "a,b"]),
    "no table": (asking(table=None), WRONG_USE, ["--table", "--help"]),
    "unknown command": (["mesure"], WRONG_USE, ["mesure", "measure"]),
    "unknown option": (asking("--epsilom", "1"), WRONG_USE, ["--epsilom", "--epsilon"]),
    "surplus argument": (asking("data2.csv"), WRONG_USE, ["data2.csv"]),
    # -- budgets
    "negative epsilon": (asking(epsilon="-1"), WRONG_USE, ["epsilon", "-1", "positive"]),
    "zero epsilon": (asking(epsilon="0"), WRONG_USE, ["epsilon", "positive"]),
    "epsilon in words": (asking(epsilon="one"), WRONG_USE, ["epsilon", "'one'", "number"]),
    "epsilon not a number": (asking(epsilon="nan"), WRONG_USE, ["epsilon", "finite"]),
    "infinite epsilon": (asking(epsilon="inf"), WRONG_USE, ["epsilon", "finite"]),
    "epsilon twice": (asking("--epsilon", "2"), WRONG_USE, ["--epsilon", "2 times", "once"]),
    "epsilon and rho": (asking("--rho", "0.1"), WRONG_USE, ["--epsilon 1", "--rho 0.1", "keep one"]),
    "rho and delta": (asking("--rho", "1", "--delta", "1e-6", epsilon=None), WRONG_USE, ["--delta 1e-6", "leave"]),
    "delta of one": (asking("--delta", "1"), WRONG_USE, ["delta", "below 1"]),
    "negative delta": (asking("--delta", "-0.1"), WRONG_USE, ["delta", "positive"]),
    "no budget": (asking(epsilon=None), WRONG_USE, ["budget", "--epsilon 1", "--rho"]),
    "weights for other tables": (asking("--weights", "1,2"), WRONG_USE, ["1,2", "2 numbers for 1 table;"]),
    "weight zero": (asking("--weights", "0"), WRONG_USE, ["weights", "zero"]),
    "weight negative": (asking("--weights=-1"), WRONG_USE, ["weights -1", "positive"]),
    "weight in words": (asking("--weights", "much"), WRONG_USE, ["weight", "'much'"]),
    "unknown noise": (asking("--noise", "uniform"), WRONG_USE, ["'uniform'", "laplace"]),
    "gaussian noise for pure DP": (
        asking("--noise", "gaussian"), REFUSED, ["Gaussian", "--delta", "--rho", "--noise laplace"],
    ),
    "impossible level": (asking("--level", "90"), WRONG_USE, ["--level", "90", "between 0 and 1"]),
    # -- units
    "rows without unit": (asking("--max-rows", "3"), WRONG_USE, ["--max-rows 3", "--unit-column"]),
    "unit without rows": (asking("--unit-column", "patient"), WRONG_USE, ["patient", "--max-rows"]),
    "no rows at all": (asking("--unit-column", "patient", "--max-rows", "0"), WRONG_USE, ["--max-rows", "0"]),
    "unknown relation": (asking("--relation", "swap"), WRONG_USE, ["'swap'", "add-remove", "replace-one"]),
    "unit column not in the file": (
        asking("--unit-column", "patiant", "--max-rows", "2"), WRONG_USE, ["'patiant'", "did you mean 'patient'"],
    ),
    # -- schemas
    "no schema": (asking(schema="nothing.toml"), FILE, ["nothing.toml", "schema draft"]),
    "schema not given": (["measure", "data.csv", "--table", "smoke", "--epsilon", "1"], WRONG_USE, ["--schema"]),
    "schema is a folder": (asking(schema="f"), FILE, ["f"], folder("f")),
    "schema is not TOML": (asking(schema="s"), FILE, ["TOML"], write("s", "smoke: [yes, no]")),
    "schema with a misspelt key": (
        asking(schema="s"), FILE, ["'smoke'", "'level'", "levels"], write("s", "[columns.smoke]\nlevel = ['a']"),
    ),
    "schema without columns": (asking(schema="s"), FILE, ["no columns", "[columns.NAME]"], write("s", "version = 1")),
    "schema is binary": (asking(schema="s"), FILE, ["NUL"], write("s", b"\x00\x01")),
    "edges that fall": (
        asking(schema="s"), FILE, ["'age'", "increase"], write("s", "[columns.age]\nedges = [3, 1]"),
    ),
    "unknown outside level": (
        asking(schema="s"), FILE, ["'smoke'", "'maybe'"],
        write("s", '[columns.smoke]\nlevels = ["yes", "no"]\noutside = "maybe"'),
    ),
    "huge table": (
        asking(schema="s", table=",".join(f"c{i}" for i in range(10))), TOO_LARGE, ["10^20", "fewer"], write("s", WIDE),
    ),
    # -- data
    "no such data": (asking(data="nothing.csv"), FILE, ["nothing.csv"]),
    "data are a folder": (asking(data="f"), FILE, ["f is a folder"], folder("f")),
    "data are empty": (asking(data="d"), FILE, ["d is empty", "first line"], write("d", b"")),
    "data without a header": (asking(data="d"), FILE, ["first line", "number"], write("d", NO_HEADER)),
    "data with text for a header": (
        asking(data="d"), WRONG_USE, ["first line", "'smoke'"], write("d", "Quetzalcoatl,no,Xochimilco\n"),
    ),
    "a column is missing": (
        asking(data="d", table="smoke,city"), WRONG_USE, ["'city'", "did you mean 'City'"],
        write("d", ROWS.replace("city", "City")),
    ),
    "a column twice": (asking(data="d"), FILE, ["field 2", "repeats"], write("d", "smoke,smoke\nQuetzalcoatl,no\n")),
    "a column without a name": (asking(data="d"), FILE, ["field 2", "empty"], write("d", "smoke,,age\nyes,no,1\n")),
    "UTF-16 data": (asking(data="d"), FILE, ["UTF-16", "iconv -f UTF-16 -t UTF-8"], write("d", ROWS.encode("utf-16"))),
    "compressed data, cut off": (
        asking(data="d"),
        FILE,
        ["gzip", "whole"],
        write("d", gzip.compress(ROWS.encode())[:20]),
    ),
    "a Parquet file": (asking(data="d"), FILE, ["Parquet", "CSV"], write("d", b"PAR1....PAR1")),
    "a spreadsheet": (asking(data="other.zip"), FILE, ["spreadsheet", "CSV"], a_zip),
    "NUL in the header": (asking(data="d"), FILE, ["NUL"], write("d", b"smo\x00ke,age\nyes,1\n")),
    "Latin-1 in the header": (
        asking(data="d"),
        FILE,
        ["UTF-8", "iconv -f WINDOWS-1252"],
        write("d", "smoke,größe\n".encode("latin-1")),
    ),
    "wrong delimiter": (asking("--delimiter", ";;"), WRONG_USE, ["delimiter", "';;'"]),
    # -- ledgers
    "no ledger": (asking(ledger="no.db"), FILE, ["no.db", "ledger create no.db"]),
    "ledger exhausted": (
        asking(), REFUSED, ["does not suffice", "asked for ε = 1,", "left is ε = 0.5", "ε = 3"], spend(PureDP("2.5")),
    ),
    "ask for more than the ledger has": (asking(epsilon="4"), REFUSED, ["ε = 3", "does not suffice"]),
    "ledger of another unit": (
        asking(), REFUSED, ["one row", "patient", "one unit for one body of data"],
        spend(PureDP(1), PrivacyUnit("patient", 5)),
    ),
    "ledger of another relation": (asking("--relation", "replace-one"), REFUSED, ["replace-one"], spend(PureDP(1))),
    "ledger of another notion": (
        asking("--rho", "0.1", epsilon=None), REFUSED,
        ["pure ε", "--epsilon instead of --rho", "a ledger with --rho"],
    ),
    "delta on a pure ledger": (
        asking("--delta", "1e-6"), REFUSED, ["pure ε", "drop --delta", "a ledger with --epsilon and --delta"],
    ),
    "rho on an (ε, δ) ledger": (
        asking("--rho", "0.1", epsilon=None, ledger="l"), REFUSED,
        ["(ε, δ)", "--epsilon (and --delta) instead of --rho"], a_ledger(ApproxDP(1, 1e-6)),
    ),
    "more than an (ε, δ) ledger has": (
        asking("--delta", "1e-6", epsilon="2", ledger="l"), REFUSED,
        ["does not suffice", "asked for ε = 2, δ = 1e-06", "left is ε = 1, δ = 1e-06"], a_ledger(ApproxDP(1, 1e-6)),
    ),
    "delta on a zCDP ledger": (
        asking("--delta", "1e-6", ledger="l"), REFUSED, ["zCDP", "--epsilon without --delta"], a_ledger(ZCDP(1)),
    ),
    "ledger is no ledger": (asking(ledger="l"), FILE, ["ledger l:", "not a database"], write("l", ROWS)),
    "ledger is a folder": (asking(ledger="f"), FILE, ["f"], folder("f")),
    "ledger exists": (["ledger", "create", "ledger.db", "--epsilon", "9"], FILE, ["ledger.db", "never overwritten"]),
    "ledger without a total": (["ledger", "create", "new.db"], WRONG_USE, ["--epsilon"]),
    "ledger in no folder": (["ledger", "create", "no/new.db", "--rho", "1"], FILE, ["no", "make it first"]),
    "show no ledger": (["ledger", "show", "no.db"], FILE, ["no.db", "ledger create"]),
    "verify what is no ledger": (["ledger", "verify", "data.csv"], FILE, ["data.csv"]),
    # -- outputs
    "output exists": (asking("-o", "old.zip"), FILE, ["old.zip", "--force"], write("old.zip", b"mine")),
    "output over the data": (asking("-o", "data.csv", "--force"), WRONG_USE, ["data.csv", "another file"]),
    "output in no folder": (asking("-o", "no/tables.zip"), FILE, ["no", "make it first"]),
    "output is a folder": (asking("-o", "f"), FILE, ["f is a folder"], folder("f")),
    "draft over a schema": (["schema", "draft", "data.csv", "-o", "schema.toml"], FILE, ["schema.toml", "--force"]),
    "draft of identifiers": (
        ["schema", "draft", "d", "-o", "new.toml"], FILE, ["identifiers", "by hand"], write("d", IDENTIFIERS),
    ),
    "draft with no levels": (
        ["schema", "draft", "data.csv", "-o", "n.toml", "--max-levels", "1"], WRONG_USE, ["2 levels", "1"],
    ),
    # -- released files
    "show no file": (["show", "no.zip"], FILE, ["no.zip"]),
    "show a table of rows": (["show", "data.csv"], FILE, ["data.csv"]),
    "show a folder": (["show", "f"], FILE, ["f is a folder"], folder("f")),
    "show a damaged file": (["show", "tables.zip"], FILE, ["tables.zip"], a_damaged_release),
    "verify no file": (["verify", "no.zip"], FILE, ["no.zip"]),
    "verify another kind of file": (["verify", "data.csv"], FILE, ["data.csv", "a table of rows, not a release"]),
    "ask a table of rows": (["query", "data.csv", "P(a)"], FILE, ["data.csv", "a table of rows, not a release"]),
    "a misspelt command": (["fot", "d"], WRONG_USE, ["Did you mean 'fit'? See `discreet --help`"]),
    "an option that is begun": (["fit", "--eps", "1"], WRONG_USE, ["Did you mean --epsilon?"]),
    "a decimal comma": (["ledger", "create", "new.db", "--epsilon", "1,5"], WRONG_USE, ["'1,5'; write 1.5"]),
    "a misspelt option": (["fit", "--schma", "d"], WRONG_USE, ["Did you mean --schema? See `discreet fit --help`"]),
    "no line of names": (
        ["schema", "draft", "d", "-o", "new.toml"], FILE, ["or replace that line, if it is one of names"],
        write("d", b"0,1,2\n1,0,1\n"),
    ),
    "verify an empty file": (["verify", "d"], FILE, ["it is empty"], write("d", b"")),
    "spreadsheet over a file": (["show", "tables.zip", "--csv", "data.csv"], FILE, ["data.csv", "--force"], a_release),
    "spreadsheet of a model": (["show", "asia.zip", "--csv", "t.csv"], WRONG_USE, ["asia.zip", "model"], a_model),
    "schema twice": (["schema", "check", "data.csv", "schema.toml", "--schema", "b.toml"], WRONG_USE, ["keep one"]),
    "schema to check against": (["schema", "check", "data.csv"], WRONG_USE, ["name the schema"]),
    # -- the rest
    "audit no pairs": (["audit", "--schema", "schema.toml", "--pairs", "0"], WRONG_USE, ["--pairs", "0"]),
    "audit a wrong column": (["audit", "--schema", "schema.toml", "--table", "ag"], WRONG_USE, ["'ag'", "'age'"]),
    "unknown benchmark": (["bench", "foundatoins"], WRONG_USE, ["foundatoins", "benchmark"]),
    "benchmark not named": (["bench"], WRONG_USE, ["--list"]),
    "demo in a file": (["demo", "--directory", "data.csv"], FILE, ["data.csv is a file", "--directory"]),
    "demo over foreign files": (["demo", "--directory", "."], FILE, ["schema.toml", "not made by", "--directory"]),
    "demo of nobody": (["demo", "--people", "0"], WRONG_USE, ["at least one", "0"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CATALOGUE)
def test_bad_command(name, desk, discreet):
    arguments, code, fragments, *prepare = CATALOGUE[name]
    for step in prepare:
        step(desk)
    before = contents(desk)
    result = discreet(*arguments)
    assert result.code == code, result.text
    assert result.err.startswith("discreet: ")
    assert result.err.count("\n") == 1, "one line, not a page"
    for fragment in fragments:
        assert fragment in result.err, result.err
    assert_discreet(result.text)
    assert contents(desk) == before, "something was written or spent"
    for word in ("clique", "PureDP", "ZCDP(", "ApproxDP", "noise=", "max_rows", "delta_for"):
        assert word not in result.text, "said in Python, not in options"


def test_a_damaged_release_does_not_verify(desk, discreet):
    a_damaged_release(desk)
    result = discreet("verify", "tables.zip")
    assert result.code == CHECK_FAILED
    assert "PROBLEM" in result.out
    assert "checksum holds" not in result.out


# -- what looks bad and must release normally: a fit never fails on what a row holds -----------------------------------

ODD_ROWS = {
    "byte-order mark": b"\xef\xbb\xbf" + ROWS.encode(),
    "ragged": ROWS.encode() + b"Quetzalcoatl,yes\nQuetzalcoatl,no,3,north,Xochimilco,1,2,3\n",
    "NUL bytes": ROWS.encode() + b"Quetzalcoatl,y\x00es,3,north\n",
    "not UTF-8": ROWS.encode() + b"Quetzalcoatl,yes,3,\xff\xfeXochimilco\n",
    "open quote": ROWS.encode() + b'Quetzalcoatl,"yes,3,Xochimilco\n',
    "stray quotes": ROWS.encode() + b'Quetz"alcoatl,yes,"3"4,Xoch""imilco\n',
    "blank lines": ROWS.replace("\n", "\n\n").encode(),
    "Windows line ends": ROWS.replace("\n", "\r\n").encode(),
    "no line end": ROWS.strip().encode(),
    "no rows": b"patient,smoke,age,city\n",
    "no rows, no line end": b"patient,smoke,age,city",
    "semicolons": ROWS.replace(",", ";").encode(),
    "a long field": ROWS.encode() + b"Quetzalcoatl,yes,3," + b"Xochimilco" * 100_000 + b"\n",
}


@pytest.mark.parametrize("name", ODD_ROWS)
def test_odd_rows_release_normally(name, desk, discreet):
    (desk / "data.csv").write_bytes(ODD_ROWS[name])
    result = discreet(*asking("-o", "tables.zip", table="smoke,city"))
    assert result.code == 0, result.text
    assert_discreet(result.text)
    assert Measurements.load(desk / "tables.zip").table(["smoke", "city"]).counts.shape == (2, 3)


# -- the same in Python ------------------------------------------------------------------------------------------------

DOMAIN = Domain.of({"smoke": ["yes", "no"], "age": Attribute.numeric("age", [0, 18, 65, 120])})
PRIVATE = {"smoke": ["yes", "Quetzalcoatl"], "age": [12, 987654321]}


def curator(budget=None, unit=None, **options):
    return Curator(encode(PRIVATE, DOMAIN), unit, budget or PureDP(1), **options)


def smoke(*more):
    return Marginals(DOMAIN, [("smoke",), *more])


def cyclic():
    from discreet.models import BayesianNetwork

    table = np.full((2, 2), 0.5)
    domain = Domain.of({"a": ["x", "y"], "b": ["x", "y"]})
    return BayesianNetwork(domain, {"a": ("b",), "b": ("a",)}, {"a": table, "b": table})


def asked_after_the_money_is_gone():
    c = curator()
    c.measure(smoke())
    c.measure(smoke())


PYTHON = {
    "rows without a schema": (lambda: encode(PRIVATE), BadSchema, ["schema", "Domain.of"]),
    "rows without a column": (lambda: encode({"smoke": ["yes"]}, DOMAIN), InputError, ["'age'"]),
    "rows of odd lengths": (lambda: encode({"smoke": ["yes"], "age": [1, 2]}, DOMAIN), InputError, ["length"]),
    "rows that are no rows": (lambda: encode(7, DOMAIN), InputError, ["int", "pandas"]),
    "array of the wrong width": (lambda: encode(np.zeros((3, 5)), DOMAIN), InputError, ["2 columns"]),
    "unknown unit column": (lambda: encode(PRIVATE, DOMAIN, unit="who"), InputError, ["'who'", "'smoke'"]),
    "unknown level": (lambda: DOMAIN["smoke"].code("yess"), InputError, ["'smoke'", "'yess'", "did you mean 'yes'"]),
    "unknown column": (lambda: DOMAIN["smok"], InputError, ["'smok'", "did you mean 'smoke'"]),
    "unknown column in a table": (lambda: Marginals(DOMAIN, [("smok",)]), InputError, ["did you mean 'smoke'"]),
    "column declared twice": (lambda: Domain((DOMAIN["smoke"],) * 2), BadSchema, ["'smoke'", "twice"]),
    "level declared twice": (lambda: Domain.of({"a": ["x", "x"]}), BadSchema, ["'a'", "'x'", "twice"]),
    "real-valued levels": (lambda: Domain.of({"a": [0.5, 1.5]}), BadSchema, ["'a'", "edges"]),
    "one edge": (lambda: Attribute.numeric("age", [1]), BadSchema, ["'age'", "two numbers"]),
    "infinite edge": (lambda: Attribute.numeric("age", [0, float("inf")]), BadSchema, ["'age'", "finite"]),
    "no budget": (lambda: Curator(encode(PRIVATE, DOMAIN)), BudgetError, ["PureDP"]),
    "a number for a budget": (lambda: curator(budget=1.0), BudgetError, ["1.0", "PureDP"]),
    "negative epsilon": (lambda: PureDP(-1), BudgetError, ["epsilon=-1", "positive"]),
    "negative rho": (lambda: ZCDP(-0.5), BudgetError, ["rho=-0.5", "positive"]),
    "delta of one": (lambda: ApproxDP(1, 1), BudgetError, ["delta", "below 1"]),
    "budget gone": (asked_after_the_money_is_gone, BudgetError, ["ε = 1", "gone"]),
    "more than the budget": (lambda: curator().measure(smoke(), PureDP(2)), BudgetError, ["ε = 1", "not suffice"]),
    "zCDP out of pure": (lambda: curator().measure(smoke(), ZCDP(0.1)), BudgetError, ["pure"]),
    "gaussian out of pure": (lambda: curator().measure(smoke(), noise="gaussian"), BudgetError, ["laplace"]),
    "weights that do not match": (lambda: curator().measure(smoke(), weights=[1, 2]), InputError, ["weights"]),
    "weights negative": (lambda: curator().measure(smoke(("age",)), weights=[1, -1]), BudgetError, ["weights"]),
    "nothing asked": (lambda: curator().measure(Marginals(DOMAIN, [])), InputError, ["at least one clique"]),
    "the exact size": (lambda: curator().size(), BudgetError, ["private", "public_size"]),
    "zero blocks": (lambda: curator().partition(0), InputError, ["blocks", "0"]),
    "rate above one": (lambda: curator().subsample(1.5), InputError, ["(0, 1]", "1.5"]),
    "rows without unit": (lambda: PrivacyUnit(max_rows=3), InputError, ["max_rows=3", "column"]),
    "unknown relation": (lambda: PrivacyUnit(relation="swap"), InputError, ["'swap'", "add-remove"]),
    "unit that the table lacks": (lambda: curator(unit=PrivacyUnit("who", 2)), InputError, ["'who'", "encode"]),
    "exact values as a release": (
        lambda: ExactCurator(encode(PRIVATE, DOMAIN)).measure(smoke()).save("x.zip"), NotAReleaseError, ["exact"],
    ),
    "public table with fractions": (lambda: Measurement.public(DOMAIN, ["smoke"], [0.5, 1]), InputError, ["whole"]),
    "no such table": (
        lambda: curator().measure(smoke()).table(["age"]), InputError, ["age"],
    ),
    "file that is not there": (lambda: Measurements.load("nothing.zip"), FileFormatError, ["nothing.zip"]),
    "ledger that is not there": (lambda: Ledger.open("nothing.db"), LedgerError, ["nothing.db", "create"]),
    "ledger with another total": (lambda: Ledger.open("ledger.db", PureDP(9)), LedgerError, ["ε = 3", "ε = 9"]),
    "cyclic network": (cyclic, InputError, ["cycl"]),
}  # fmt: skip


@pytest.mark.parametrize("name", PYTHON)
def test_bad_call(name, desk):
    call, kind, fragments = PYTHON[name]
    before = contents(desk)
    with pytest.raises(DiscreetError) as caught:
        call()
    assert isinstance(caught.value, kind), repr(caught.value)
    for fragment in fragments:
        assert fragment in str(caught.value), str(caught.value)
    assert_discreet(str(caught.value))
    assert contents(desk) == before


def test_the_catalogue_is_long_enough():
    assert len(CATALOGUE) + len(ODD_ROWS) + len(PYTHON) >= 60
