"""Bad uses of plan, fit, query, map and sample. Each message names the thing, its public value and the way out, in one
line; it shows no traceback and no private value, and nothing is spent or half written."""

from __future__ import annotations

import subprocess
import sys

import pytest
from command_desk import ROWS, SCHEMA, assert_discreet, contents

from discreet import networks
from discreet.privacy.budget import ZCDP, PureDP
from discreet.privacy.ledger import Ledger
from discreet.privacy.unit import PrivacyUnit

WRONG_USE, REFUSED, FILE, TOO_LARGE, CHECK_FAILED = 2, 3, 4, 5, 1


def fitting(*more, data="data.csv", schema="schema.toml", epsilon="1", ledger="ledger.db"):
    """A fit that works, but for what is changed."""
    words = ["fit", *([data] if data else []), *(["--schema", schema] if schema else []), "--ledger", ledger]
    return [*words, *(["--epsilon", epsilon] if epsilon is not None else []), *more]


def write(name, content):
    return lambda desk: (desk / name).write_bytes(content if isinstance(content, bytes) else content.encode())


def folder(name):
    return lambda desk: (desk / name).mkdir()


def spend(amount, unit=None):
    def prepare(desk):
        with Ledger.open(desk / "ledger.db") as ledger:
            ledger.charge(amount, unit or PrivacyUnit())

    return prepare


def a_ledger(total):
    return lambda desk: Ledger.create(desk / "l", total).close()


def asia(desk):
    networks.load("asia").save(desk / "asia.zip")


def run_file(text):
    return write("run.toml", text)


def schema(extra):
    return write("s.toml", SCHEMA + extra)


WIDE = "\n".join(f"[columns.c{i}]\nlevels = {list(range(50))}" for i in range(6))
MANY = "\n".join(f"[columns.c{i}]\nlevels = [0, 1]" for i in range(400))
MANY_HEADER = ",".join(f"c{i}" for i in range(400)) + "\n"
CYCLE = "smoke -> city; city -> age; age -> smoke"

CATALOGUE = {
    # name: (command line, exit code, what the message must say, what stands on the desk)
    # -- what to learn
    "unknown family": (fitting("--family", "networt"), WRONG_USE, ["'networt'", "did you mean 'network'"]),
    "unknown method": (
        fitting("--graph", "smoke -> city", "--method", "optimum"), WRONG_USE, ["'optimum'", "did you mean 'optimal'"],
    ),
    "method without family": (fitting("--method", "moments"), WRONG_USE, ["'moments'", "needs a family", "'spin'"]),
    "method of another family": (
        fitting("--family", "ising", "--method", "optimal"), WRONG_USE, ["'spin'", "'optimal'", "moments"],
    ),
    "method that needs a graph": (
        fitting("--family", "network", "--method", "uniform"), WRONG_USE, ["publicly known", "a graph, as in 'a -> b"],
    ),
    "method that needs cliques": (
        fitting("--family", "field", "--method", "collective"), WRONG_USE, ["publicly known", "cliques, as in"],
    ),
    "graph for a model that finds its own": (
        fitting("--family", "pairwise", "--graph", "smoke -> city"), WRONG_USE,
        ["finds its graph itself", "leave the graph out"],
    ),
    "Ising model of many levels": (fitting("--family", "ising"), WRONG_USE, ["'age'", "two levels"]),
    "unknown option of the method": (
        fitting("--option", "most_cell=1"), WRONG_USE, ["'most_cell'", "did you mean 'most_cells'"],
    ),
    "option without a value": (fitting("--option", "max_parents"), WRONG_USE, ["'max_parents'", "name=value"]),
    "word for a whole number": (
        fitting("--max-rows", "lots"), WRONG_USE, ["--max-rows must be a whole number, got 'lots'", "fit --help"],
    ),
    "misspelt file before anything else": (
        fitting(data="vists.csv", schema="no.toml"), FILE, ["there is no file vists.csv"],
    ),
    "option twice": (
        fitting("--option", "max_parents=1", "--option", "max_parents=2"), WRONG_USE, ["max_parents", "twice"],
    ),
    "option of the wrong kind": (fitting("--option", "most_cells=some"), WRONG_USE, ["most_cells", "'some'"]),
    "option out of range": (
        fitting("--graph", "smoke -> city", "--option", "fit_steps=-1"), WRONG_USE, ["fit_steps", "-1"],
    ),
    "selection takes it all": (
        fitting("--family", "network", "--method", "searched", "--option", "selection=1"), WRONG_USE,
        ["selection", "tables"],
    ),
    # -- graphs
    "wrong column in a graph": (fitting("--graph", "smok -> city"), WRONG_USE, ["'smok'", "did you mean 'smoke'"]),
    "cyclic graph": (fitting("--graph", CYCLE), WRONG_USE, ["cycle", "smoke"]),
    "a column above itself": (fitting("--graph", "smoke -> smoke"), WRONG_USE, ["cycle", "smoke"]),
    "graph that is no graph": (fitting("--graph", "smoke"), WRONG_USE, ["line 1", "'parent -> child'"]),
    "graph with three ends": (fitting("--graph", "smoke, age, city"), WRONG_USE, ["line 1", "cliques"]),
    "half an arrow": (fitting("--graph", "smoke ->"), WRONG_USE, ["line 1"]),
    "arrow the other way": (fitting("--graph", "smoke <- city"), WRONG_USE, ["'smoke <- city'"]),
    "arrows and edges mixed": (fitting("--graph", "smoke -> city; smoke -- age"), WRONG_USE, ["both", "throughout"]),
    "empty graph": (fitting("--graph", "# nothing"), WRONG_USE, ["no edges"]),
    "graph file missing": (fitting("--graph", "no.bif"), FILE, ["no.bif", "smoke -> lung"]),
    "graph file is the data": (fitting("--graph", "data.csv"), WRONG_USE, ["line 1 of data.csv", "graph at all"]),
    "graph file of another schema": (
        fitting("--graph", "g.txt"), WRONG_USE, ["line 2 of g.txt", "was 'city' meant"],
        write("g.txt", "smoke -> age\nsmoke -> cit\n"),
    ),
    "BIF that is none": (fitting("--graph", "g.bif"), FILE, ["g.bif"], write("g.bif", "hello")),
    "model of other columns as a graph": (fitting("--graph", "asia.zip"), WRONG_USE, ["'asia'"], asia),
    "graph and cliques": (
        fitting("--graph", "smoke -> city", "--cliques", "smoke,city"), WRONG_USE, ["given twice", "keep one"],
    ),
    "wrong column in a clique": (fitting("--cliques", "smoke,agee"), WRONG_USE, ["'agee'", "did you mean 'age'"]),
    "column twice in a clique": (fitting("--cliques", "smoke,smoke"), WRONG_USE, ["once"]),
    "empty cliques": (fitting("--cliques", ";"), WRONG_USE, ["'smoke,lung; lung,xray'"]),
    "cliques from the data": (fitting("--cliques", "data.csv"), WRONG_USE, ["line 1 of data.csv"]),
    "edges for a network": (
        fitting("--family", "network", "--graph", "smoke -- city"), WRONG_USE, ["needs arrows", "family 'field'"],
    ),
    # -- budgets
    "negative epsilon": (fitting(epsilon="-1"), WRONG_USE, ["epsilon", "-1", "positive"]),
    "no budget": (fitting(epsilon=None), WRONG_USE, ["--epsilon 1", "--rho"]),
    "epsilon twice": (fitting("--epsilon", "2"), WRONG_USE, ["--epsilon", "2 times"]),
    "epsilon and rho": (fitting("--rho", "0.1"), WRONG_USE, ["--epsilon 1", "--rho 0.1"]),
    "delta without epsilon": (fitting("--delta", "1e-6", epsilon=None), WRONG_USE, ["--epsilon"]),
    "gaussian noise for pure DP": (
        fitting("--graph", "smoke -> city", "--option", "noise=gaussian"),
        REFUSED,
        ["Gaussian", "--delta", "--option noise=laplace"],
    ),
    "budget exhausted": (fitting(), REFUSED, ["does not suffice", "left is ε = 0.5"], spend(PureDP("2.5"))),
    "ledger of another unit": (
        fitting(), REFUSED, ["patient", "one unit"], spend(PureDP(1), PrivacyUnit("patient", 5)),
    ),
    "ledger of another notion": (
        fitting("--rho", "0.1", epsilon=None), REFUSED, ["--epsilon instead of --rho"],
    ),
    "delta on a zCDP ledger": (
        fitting("--delta", "1e-6", ledger="l"), REFUSED, ["zCDP", "--epsilon without --delta"], a_ledger(ZCDP(1)),
    ),
    "no ledger": (fitting(ledger="no.db"), FILE, ["no.db", "ledger create"]),
    # -- sizes, units, engines
    "size of nobody": (fitting("--public-size", "0"), WRONG_USE, ["public_size", "got 0"]),
    "negative guess": (fitting("--approximate-size", "-5"), WRONG_USE, ["approximate_size", "-5"]),
    "size in words": (fitting("--public-size", "many"), WRONG_USE, ["--public-size", "must be a whole number"]),
    "unit without rows": (fitting("--unit-column", "patient"), WRONG_USE, ["patient", "--max-rows"]),
    "unit column not in the file": (
        fitting("--unit-column", "patiant", "--max-rows", "2"), WRONG_USE, ["'patiant'", "'patient'"],
    ),
    "unknown relation": (fitting("--relation", "swap"), WRONG_USE, ["'swap'", "add-remove"]),
    "unknown engine": (fitting("--engine", "abacus"), WRONG_USE, ["'abacus'", "duckdb"]),
    # -- schemas
    "no schema said": (fitting(schema=None), WRONG_USE, ["--schema", "schema draft"]),
    "schema missing": (fitting(schema="no.toml"), FILE, ["no.toml", "schema draft"]),
    "huge cardinality": (
        ["plan", "--schema", "w.toml", "--epsilon", "1", "--cliques", "c0,c1,c2,c3,c4,c5",
         "--option", "step_back=false"], TOO_LARGE, ["cells"], write("w.toml", WIDE),
    ),
    "huge family": (
        ["plan", "--schema", "w.toml", "--epsilon", "1", "--graph", "c0, c1, c2, c3, c4 -> c5"], TOO_LARGE,
        ["'c5'", "fewer parents"], write("w.toml", WIDE),
    ),
    "too many columns to search": (
        ["plan", "--schema", "m.toml", "--epsilon", "1", "--family", "network", "--method", "searched"], TOO_LARGE,
        ["families", "graph"],
        write("m.toml", MANY),
    ),
    "survey weights": (fitting("--weight", "age"), WRONG_USE, ["--weight age", "refused", "[[totals]]"]),
    "a column of weights in the schema": (
        fitting(schema="s.toml"), FILE, ["'w'", "weights are refused", "[[totals]]"],
        schema("\n[columns.w]\nedges = [0, 10]\nweight = true\n"),
    ),
    "impossible level": (
        fitting(schema="s.toml"), FILE, ["[[impossible]] number 1", "'yess'", "did you mean 'yes'"],
        schema('\n[[impossible]]\nsmoke = "yess"\n'),
    ),
    "impossible column": (
        fitting(schema="s.toml"), FILE, ["'smok'", "did you mean 'smoke'"], schema('\n[[impossible]]\nsmok = "yes"\n'),
    ),
    "everything impossible": (
        fitting(schema="s.toml"), FILE, ["every record"], schema('\n[[impossible]]\nsmoke = ["yes", "no"]\n'),
    ),
    "totals of the wrong shape": (
        fitting(schema="s.toml"), FILE, ["[[totals]] number 1", "shape"],
        schema('\n[[totals]]\ncolumns = ["smoke"]\ncounts = [1, 2, 3]\n'),
    ),
    "totals below zero": (
        fitting(schema="s.toml"), FILE, ["[[totals]] number 1", "negative"],
        schema('\n[[totals]]\ncolumns = ["smoke"]\ncounts = [1, -2]\n'),
    ),
    "totals without counts": (
        fitting(schema="s.toml"), FILE, ["columns and counts"], schema('\n[[totals]]\ncolumns = ["smoke"]\n'),
    ),
    "totals that disagree": (
        fitting("--public-size", "9", schema="s.toml"), WRONG_USE, ["3 and 9", "disagree"],
        schema('\n[[totals]]\ncolumns = ["smoke"]\ncounts = [1, 2]\n'),
    ),
    # -- data
    "no data said": (fitting(data=None), WRONG_USE, ["private rows", "discreet fit patients.csv"]),
    "data missing": (fitting(data="no.csv"), FILE, ["no.csv"]),
    "Parquet missing": (fitting(data="no.parquet"), FILE, ["no.parquet"]),
    "data are empty": (fitting(data="d"), FILE, ["d is empty"], write("d", b"")),
    "data without a column": (
        fitting(data="d"), WRONG_USE, ["'city'", "did you mean 'City'"], write("d", ROWS.replace("city", "City")),
    ),
    "UTF-16 data": (fitting(data="d"), FILE, ["UTF-16"], write("d", ROWS.encode("utf-16"))),
    "a spreadsheet": (fitting(data="d"), FILE, ["spreadsheet"], write("d", b"PK\x03\x04" + bytes(60))),
    "NUL in the header": (fitting(data="d"), FILE, ["NUL"], write("d", b"smo\x00ke,age\nyes,1\n")),
    # -- outputs
    "output exists": (fitting("-o", "old.zip"), FILE, ["old.zip", "--force"], write("old.zip", b"mine")),
    "default output exists": (fitting(), FILE, ["model.zip", "--force"], write("model.zip", b"mine")),
    "output in no folder": (fitting("-o", "no/m.zip"), FILE, ["no", "make it first"]),
    "output is a folder": (fitting("-o", "f.zip"), FILE, ["f.zip is a folder"], folder("f.zip")),
    "output of another kind": (fitting("-o", "m.bif"), WRONG_USE, ["m.bif", ".zip"]),
    "card over a file": (fitting("--card", "data.csv"), WRONG_USE, ["data.csv", "another file"]),
    # -- run files
    "run file missing": (["fit", "--run", "no.toml"], FILE, ["no.toml", "TOML"]),
    "run file that is no TOML": (["fit", "--run", "run.toml"], FILE, ["run.toml", "TOML"], run_file("epsilon: 1")),
    "unknown key": (
        ["fit", "--run", "run.toml"], FILE, ["'epsilom'", "did you mean 'epsilon'"], run_file("epsilom = 1"),
    ),
    "key of the wrong kind": (
        ["fit", "--run", "run.toml"], FILE, ["max_rows", "whole number", "'two'"], run_file('max_rows = "two"'),
    ),
    "epsilon true": (["fit", "--run", "run.toml"], FILE, ["epsilon", "number"], run_file("epsilon = true")),
    "key twice": (
        ["fit", "--run", "run.toml"], FILE, ["twice"], run_file("max-rows = 1\nmax_rows = 2\n"),
    ),
    "epsilon in the file and on the line": (
        ["fit", "data.csv", "--run", "run.toml", "--epsilon", "2"], WRONG_USE,
        ["given twice", "epsilon = 1", "--epsilon 2"], run_file('schema = "schema.toml"\nepsilon = 1\n'),
    ),
    "rho on the line, epsilon in the file": (
        ["fit", "data.csv", "--run", "run.toml", "--rho", "0.1"], WRONG_USE,
        ["given twice", "epsilon = 1", "--rho 0.1"], run_file('schema = "schema.toml"\nepsilon = 1\n'),
    ),
    "unknown field of the card": (
        ["fit", "data.csv", "--run", "run.toml"], WRONG_USE, ["'nam'", "did you mean 'name'"],
        run_file('schema = "schema.toml"\nepsilon = 1\n[card]\nnam = "x"\n'),
    ),
    "a card that claims another budget": (
        ["fit", "data.csv", "--run", "run.toml"], WRONG_USE, ["'privacy_parameters'", "cannot be stated"],
        run_file('schema = "schema.toml"\nepsilon = 1\n[card.privacy_parameters]\nepsilon = 0.1\n'),
    ),
    "weights in the run file": (
        ["fit", "data.csv", "--run", "run.toml"], WRONG_USE, ["refused"],
        run_file('schema = "schema.toml"\nepsilon = 1\nweight = "age"\n'),
    ),
    # -- research mode
    "research to be saved": (
        ["fit", "data.csv", "--schema", "schema.toml", "--epsilon", "1", "--research-seed", "1", "-o", "m.zip"],
        WRONG_USE, ["--research-seed 1", "protects nobody", "--output"],
    ),
    "research to be charged": (fitting("--research-seed", "1"), WRONG_USE, ["--research-seed 1", "--ledger"]),
    "negative seed": (
        ["fit", "data.csv", "--schema", "schema.toml", "--epsilon", "1", "--research-seed", "-1"], WRONG_USE,
        ["seed", "-1"],
    ),
    # -- asking
    "no such model": (["query", "no.zip", "P(a)"], FILE, ["no.zip"]),
    "misspelt network": (["query", "asja", "P(a)"], FILE, ["asja", "did you mean 'asia'"]),
    "model is a table of rows": (["query", "data.csv", "P(smoke)"], FILE, ["data.csv"]),
    "model is a folder": (["query", "f", "P(smoke)"], FILE, ["f is a folder"], folder("f")),
    "unreadable model": (["query", "m.zip", "P(smoke)"], FILE, ["m.zip"], write("m.zip", b"PK\x03\x04 nonsense")),
    "unknown column asked": (["query", "asia", "P(lug)"], WRONG_USE, ["'lug'", "did you mean 'lung'"]),
    "unknown level asked": (["query", "asia", "P(lung=yess)"], WRONG_USE, ["'yess'", "did you mean 'yes'"]),
    "question without brackets": (["query", "asia", "lung"], WRONG_USE, ["lung"]),
    "no question": (["query", "asia"], WRONG_USE, ["QUESTION"]),
    "impossible evidence": (["query", "asia", "P(tub | either=no, lung=yes)"], WRONG_USE, ["either", "lung"]),
    "level of the interval": (["query", "asia", "P(lung)", "--level", "90"], WRONG_USE, ["--level", "90"]),
    "one draw": (["query", "asia", "P(lung)", "--draws", "1"], WRONG_USE, ["--draws", "1"]),
    "condition without a level": (["map", "asia", "--given", "smoke"], WRONG_USE, ["'smoke'", "COLUMN=LEVEL"]),
    "condition twice": (
        ["map", "asia", "--given", "smoke=yes", "--given", "smoke=no"], WRONG_USE, ["'smoke' twice"],
    ),
    "unknown level given": (["map", "asia", "--given", "smoke=yess"], WRONG_USE, ["'yess'", "did you mean 'yes'"]),
    "unknown column of a map": (["map", "asia", "lug"], WRONG_USE, ["'lug'", "did you mean 'lung'"]),
    "the best none": (["map", "asia", "-k", "0"], WRONG_USE, ["-k", "0"]),
    "asked and given": (["map", "asia", "smoke", "--given", "smoke=yes"], WRONG_USE, ["'smoke'", "both"]),
    # -- samples
    "no records": (["sample", "asia", "-n", "0"], WRONG_USE, ["-n", "0"]),
    "records in words": (["sample", "asia", "-n", "many"], WRONG_USE, ["--records", "must be a whole number"]),
    "records of another kind": (["sample", "asia", "-o", "x.xlsx"], WRONG_USE, ["x.xlsx", ".csv or .parquet"]),
    "records over the data": (["sample", "asia", "-o", "data.csv"], FILE, ["data.csv", "--force"]),
    "negative sampling seed": (["sample", "asia", "--seed", "-3"], WRONG_USE, ["--seed", "-3"]),
    "unknown way to sample": (["sample", "asia", "--method", "dice"], WRONG_USE, ["'dice'", "exact"]),
    # -- looking at files
    "card of what is no release": (["show", "asia.zip", "--card", "c.yaml"], FILE, ["no statement of privacy"], asia),
    "misspelt command": (["fitt"], WRONG_USE, ["fitt", "fit"]),
    "misspelt option": (fitting("--grph", "smoke -> city"), WRONG_USE, ["--grph", "--graph"]),
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
    marked = result.err.endswith("^\n")  # a question is shown, with a mark under what is wrong in it
    assert result.err.count("\n") == (3 if marked else 1), "one line, not a page"
    for fragment in fragments:
        assert fragment in result.err, result.err
    assert_discreet(result.text)
    assert contents(desk) == before, "something was written or spent"
    for word in ("clique names", "PureDP", "ZCDP(", "ApproxDP", "max_rows=", "delta_for", "Path("):
        assert word not in result.text, "said in Python, not in options"


def test_the_catalogue_is_long_enough():
    assert len(CATALOGUE) >= 60


# -- what looks bad and must release normally: a fit never fails on what a row holds -----------------------------------

ODD_ROWS = {
    "byte-order mark": b"\xef\xbb\xbf" + ROWS.encode(),
    "ragged": ROWS.encode() + b"Quetzalcoatl,yes\nQuetzalcoatl,no,3,north,Xochimilco,1,2,3\n",
    "NUL bytes": ROWS.encode() + b"Quetzalcoatl,y\x00es,3,north\n",
    "not UTF-8": ROWS.encode() + b"Quetzalcoatl,yes,3,\xff\xfeXochimilco\n",
    "open quote": ROWS.encode() + b'Quetzalcoatl,"yes,3,Xochimilco\n',
    "no rows": b"patient,smoke,age,city\n",
    "one row": b"patient,smoke,age,city\nQuetzalcoatl,yes,1,Xochimilco\n",
    "semicolons": ROWS.replace(",", ";").encode(),
}


@pytest.mark.parametrize("name", ODD_ROWS)
def test_odd_rows_are_fitted_normally(name, desk, discreet):
    (desk / "data.csv").write_bytes(ODD_ROWS[name])
    for words in ([], ["--graph", "smoke -> city"], ["--cliques", "smoke,age"]):
        result = discreet(*fitting("--force", *words, epsilon="0.5"))
        assert result.code == 0, result.text
        assert_discreet(result.text)
        assert_discreet((desk / "model.zip").read_bytes().decode("latin-1"))


SMALL_DISK = """
import resource, sys
sys.dont_write_bytecode = True  # a compiled module would be cut off as well, and stay so
resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
from discreet.cli import main
sys.exit(main(sys.argv[1:]))
"""


def test_no_disk(desk):
    """A real limit on what can be written: nothing is half written, and the message says why."""
    before = contents(desk)
    words = [sys.executable, "-c", SMALL_DISK, "sample", "asia", "-n", "5000", "-o", "new.csv"]
    result = subprocess.run(words, capture_output=True, text=True, timeout=60)
    assert result.returncode == FILE
    assert result.stderr.startswith("discreet: cannot use the file") and result.stderr.count("\n") == 1
    assert contents(desk) == before
