"""The line between private and public, drawn in the import graph.

What crosses it was noised by one gateway and paid for in one ledger; so who may import rows, noise, frames and
randomness is part of the proof. The contract is the two tables below. Every rule is tried on planted violations.
"""

import ast
import gc
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

from discreet import Curator, Domain, PureDP, Release, encode, resolve
from discreet.cli import kept, main
from discreet.release import DRAWS

SOURCE = Path(__file__).resolve().parents[1] / "src"

# What is guarded, and who may import it. A name stands for a module and everything below it; `discreet.` is left out.
#
#   rule                 guarded                                  may be imported by                   and, in part, by
MAY_IMPORT = {
    "rows":             (["tables"],                              ["tables", "audit", "evaluate", "cli", "estimators"],
                         {"privacy": "tables.base"}),
    "noise":            (["privacy.mechanisms"],                  ["privacy", "audit"], {}),
    "curator":          (["privacy.curator"],                     ["privacy", "audit", "cli", "estimators",
                                                                   "learn", "papers", "spec", "report",
                                                                   "release"], {}),
    "opendp":           (["opendp"],                              ["privacy"], {}),
    "frames":           (["narwhals", "pandas", "polars", "pyarrow", "pyspark", "duckdb"],
                                                                  ["tables", "encoding", "frames", "models",
                                                                   "estimators"], {}),
    "web":              (["bottle", "wsgiref", "http.server"],    ["report.local", "report.explore", "cli.guide"], {}),
    "scikit-learn":     (["sklearn"],                             ["estimators", "evaluate"], {}),
    "unprotected":      (["evaluate"],                            ["evaluate", "cli.evaluate"], {}),
    "terminal":         (["typer", "rich", "click"],              ["cli"], {}),
}  # fmt: skip

# Who may not import what, whatever the table above says.
#
#   rule                 who                                                                    what
MAY_NOT = {
    "public side":      (["spelling", "bins", "dates", "sought", "keys", "attribute",
    "conditions", "impossible", "dependencies", "domain", "errors", "arguments",
                          "frames", "factor", "graph", "ordering", "inference", "models", "io", "files", "language",
                          "networks", "papers.theory"],
                         ["tables", "privacy", "audit"]),
    "learners":         (["learn", "papers", "spec", "report"],
                         ["tables", "privacy.mechanisms", "privacy.ledger", "audit"]),
    "looks only":       (["evaluate"],  # at rows, unprotected: it knows nothing that a release could be written with
                         ["privacy", "learn", "papers", "spec", "measurement", "release", "signing", "files",
                          "io.archive", "io.native", "report.card", "report.page"]),
    "money":            (["privacy.budget", "privacy.accounting", "privacy.ledger", "privacy.unit"],
                         ["tables"]),
    "seeded noise":     (["tables", "privacy", "learn", "papers", "spec"],
                         ["random", "numpy.random"]),
    "noise of others":  (["tables", "privacy"],
                         ["scipy.stats", "torch", "jax"]),
    "pickle":           ([""],
                         ["pickle", "shelve", "marshal", "dill", "joblib"]),
}  # fmt: skip

# All rooms. Imports run one way: nobody imports a room below their own, not inside a function, not for types only.
ONE_WAY = [
    "_version", "errors", "extras", "progress", "threads", "program", "signing", "markup",
    "spelling", "bins", "dates", "sought", "keys", "attribute",
    "conditions", "impossible", "dependencies", "domain", "arguments", "frames", "encoding",
    "question", "language", "ordering",
    "io",  # how things lie in files: bytes and plain data
    "factor", "count_table", "graph", "inference", "models",
    "files", "networks",  # from files to models
    "noise", "claimed", "measurement", "schema", "metadata", "tables", "privacy",
    "learn", "papers", "methods", "spec", "forecasts", "sweeps",
    "release",
    "report", "audit", "evaluate", "estimators", "demo", "cli", "__main__",
]  # fmt: skip

# Learners are handed a curator. They make none, and nobody reaches into one, or into a table.
MAKE_NO_CURATOR = ["learn", "papers", "spec", "report", "models", "inference"]
INSIDES = {"_source", "_rows", "_prepared", "_gateway", "_persons"}
MAY_REACH_INSIDE = ["tables", "privacy", "audit"]

# Imports inside functions: what is slow or optional, and the commands of the command line.
MAY_WAIT = [
    "opendp",
    "cryptography",
    "dp_accounting",
    "matplotlib",
    "narwhals",
    "networkx",
    "pandas",
    "polars",
    "pyarrow",
    "pyspark",
    "scipy",
    "sklearn",
    "threadpoolctl",
    "duckdb",
    "jinja2",
    "yaml",
]
MAY_WAIT_WITH_ANYTHING = ["cli", "__init__"]


# -- reading the imports ---------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Import:
    """One imported module, with where it stands: at the top, in a function, or for type checkers only."""

    target: str  # without `discreet.` when it is ours
    line: int
    place: str
    is_ours: bool


def within(name, rooms):
    return any(room == "" or name == room or name.startswith(room + ".") for room in rooms)


class Reader(ast.NodeVisitor):
    """Imports, attribute accesses and calls of one module."""

    def __init__(self, module, is_package, modules):
        self.module, self.modules = module, modules
        self.package = module if is_package else module.rpartition(".")[0]
        self.place = "top"
        self.imports, self.attributes, self.calls = [], [], []

    def _add(self, dotted, node):
        ours = dotted == "discreet" or dotted.startswith("discreet.")
        target = dotted.removeprefix("discreet").removeprefix(".") if ours else dotted
        self.imports.append(Import(target or "__init__" if ours else target, node.lineno, self.place, ours))

    def visit_Import(self, node):
        for alias in node.names:
            self._add(alias.name, node)

    def visit_ImportFrom(self, node):
        base = node.module or ""
        if node.level:
            parents = ("discreet." + self.package).rstrip(".").split(".")
            parents = parents[: len(parents) - (node.level - 1)]
            base = ".".join([*parents, *([node.module] if node.module else [])])
        for alias in node.names:  # `from .. import tables` and `from numpy import random` import modules too
            inner = f"{base}.{alias.name}"
            is_module = inner.removeprefix("discreet.") in self.modules or inner in ("numpy.random", "scipy.stats")
            self._add(inner if is_module else base, node)

    def visit_Call(self, node):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        self.calls.append((name, node.lineno))
        is_import = name in ("import_module", "__import__")
        if is_import and node.args and isinstance(node.args[0], ast.Constant) and isinstance(node.args[0].value, str):
            self._add(node.args[0].value, node)
        if name == "Method" and self.module == "methods":  # the registry loads classes when they are asked for
            home = node.args[2].value
            assert home.rpartition(".")[0] in self.modules, home
            self._add(f"discreet.{home.rpartition('.')[0]}", node)
        self.generic_visit(node)

    def visit_Attribute(self, node):
        if not (isinstance(node.value, ast.Name) and node.value.id in ("self", "cls")):
            self.attributes.append((node.attr, node.lineno))
        if node.attr == "random" and isinstance(node.value, ast.Name) and node.value.id in ("np", "numpy"):
            self._add("numpy.random", node)
        self.generic_visit(node)

    def _inside(self, node, place):
        before, self.place = self.place, place
        self.generic_visit(node)
        self.place = before

    def visit_FunctionDef(self, node):
        self._inside(node, "function" if self.place == "top" else self.place)

    visit_AsyncFunctionDef = visit_Lambda = visit_FunctionDef

    def visit_If(self, node):
        if "TYPE_CHECKING" in ast.dump(node.test):
            before, self.place = self.place, "types"
            for child in node.body:
                self.visit(child)
            self.place = before
            for child in node.orelse:
                self.visit(child)
        else:
            self.generic_visit(node)


def read(sources):
    """``{module: text}`` → ``{module: Reader}``; packages are named by themselves, the root ``__init__``."""
    packages = {m for m in sources if any(other.startswith(m + ".") for other in sources)}
    readers = {}
    for module, text in sources.items():
        reader = Reader(
            "" if module == "__init__" else module, module in packages or module == "__init__", set(sources)
        )
        reader.visit(ast.parse(text))
        readers[module] = reader
    return readers


def sources_of(root):
    found = {}
    for path in sorted((root / "discreet").rglob("*.py")):
        parts = path.relative_to(root / "discreet").with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" and len(parts) > 1 else parts)
        found[name] = path.read_text(encoding="utf-8")
    return found


# -- checking --------------------------------------------------------------------------------------------------------


def violations(sources):
    """Sentences that begin with the name of the rule."""
    found = []
    readers = read(sources)
    for module, reader in readers.items():
        for i in reader.imports:
            if module == "__init__" and i.place != "top":
                continue  # the lazy front door
            where = f"{module}:{i.line} imports {i.target}"
            found += [f"{rule}: {where}" for rule in _broken(module, i)]
            hidden = i.place == "function" and not within(module, MAY_WAIT_WITH_ANYTHING) and i.target != "numpy.random"
            if hidden and not within(i.target, MAY_WAIT):
                found.append(f"hidden: {where} inside a function")
        if within(module, MAKE_NO_CURATOR):
            made = [line for name, line in reader.calls if name in ("Curator", "ExactCurator", "SecureGateway")]
            found += [f"makes a curator: {module}:{line}" for line in made]
        if not within(module, MAY_REACH_INSIDE):
            reached = [(name, line) for name, line in reader.attributes if name in INSIDES]
            found += [f"reaches inside: {module}:{line} uses {name}" for name, line in reached]
    found += [f"cycle: {' → '.join(c)}" for c in cycles(readers)]
    return found


def _broken(module, i):
    for rule, (guarded, allowed, parts) in MAY_IMPORT.items():
        part = next((p for m, p in parts.items() if within(module, [m])), None)
        if within(i.target, guarded) and not within(module, allowed) and not (part and within(i.target, [part])):
            yield rule
    for rule, (who, what) in MAY_NOT.items():
        if within(module, who) and within(i.target, what):
            yield rule
    room, theirs = ([n for n, r in enumerate(ONE_WAY) if within(x, [r])] for x in (module, i.target))
    if i.is_ours and room and theirs and theirs[0] > room[0]:
        yield "one way"


def cycles(readers):
    """Cycles among modules. Imports inside functions and for type checkers count: who is spoken of is depended on."""
    graph = {
        m: {i.target for i in r.imports if i.is_ours and i.target in readers} - {m}
        for m, r in readers.items()
        if m != "__init__"
    }
    done, path, found = set(), [], []

    def walk(m):
        if m in path:
            found.append([*path[path.index(m) :], m])
            return
        if m in done or m not in graph:
            return
        path.append(m)
        for n in sorted(graph[m]):
            walk(n)
        path.pop()
        done.add(m)

    for m in sorted(graph):
        walk(m)
    return found


# -- the tests -------------------------------------------------------------------------------------------------------


def test_the_contract_is_kept():
    assert violations(sources_of(SOURCE)) == []


def test_the_source_was_read():
    readers = read(sources_of(SOURCE))
    assert {"tables.memory", "privacy.curator", "privacy", "models.base", "__init__", "audit"} <= set(readers)
    assert any(i.target == "opendp.measurements" for i in readers["privacy.mechanisms"].imports)
    assert any(i.target == "tables.base" for i in readers["privacy.curator"].imports)
    assert any(i.target == "numpy.random" for i in readers["factor"].imports)
    assert any(i.target == "release" and i.place == "types" for i in readers["cli.query"].imports)
    assert sum(within(i.target, ["learn", "papers"]) for i in readers["methods"].imports) > 25
    assert sum(len(r.imports) for r in readers.values()) > 300


def test_every_room_has_its_place():
    rooms = {module.partition(".")[0] for module in sources_of(SOURCE)} - {"__init__"}
    assert rooms == set(ONE_WAY) and len(ONE_WAY) == len(set(ONE_WAY))


# The smallest package in which everything is in its place.
CLEAN = {
    "__init__": "def __getattr__(name):\n    from .tables.encode import encode\n",
    "domain": "import math\n",
    "encoding": "import narwhals as nw\nfrom .domain import Domain\n",
    "frames": "import narwhals as nw\n",
    "factor": "import numpy as np\nfrom .domain import Domain\nrng = np.random.default_rng()\n",
    "graph": "from .factor import Factor\n",
    "tables": "",
    "tables.base": "from ..domain import Domain\n",
    "tables.memory": "from .base import Table\nimport narwhals as nw\n",
    "tables.encode": "from .memory import MemoryTable\n",
    "privacy": "",
    "privacy.budget": "",
    "privacy.query": "from ..tables.base import IntArray\n",
    "privacy.mechanisms": "import opendp.measurements as m\nfrom ..tables.base import IntArray\n",
    "privacy.curator": "from ..tables.base import Table\nfrom .mechanisms import Gateway\nx = table._rows\n",
    "inference": "",
    "inference.exact": "from ..graph import f\n",
    "models": "",
    "io": "",
    "io.native": "from ..domain import Domain\n",
    "models.base": "from ..inference.exact import f\nfrom ..io.native import s\ndef plot():\n    import matplotlib\n",
    "files": "from .io.native import s\nfrom .models.base import M\n",
    "models.records": "from .base import M\ndef frame():\n    import pandas as pd\n",
    "learn": "",
    "learn.fw": "from ..models.base import M\nfrom ..privacy.curator import Curator\n",
    "audit": "from .tables.memory import MemoryTable\n",
    "report": "",
    "evaluate": "from .tables.base import Table\n",
    "cli": "",
    "cli.evaluate": "def run():\n    from ..evaluate import evaluate\n",
    "cli.measure": "import typer\ndef run():\n    from ..tables.encode import encode\n",
    "cli.app": "from . import measure\n",
}

FOR_TYPES = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    "
PLANTED = [
    ("rows", "learn.fw", "from ..tables.memory import MemoryTable"),
    ("rows", "learn.fw", "import discreet.tables.encode"),
    ("rows", "learn.fw", "from .. import tables"),
    ("rows", "privacy.query", "from ..tables.memory import MemoryTable"),
    ("rows", "privacy.curator", "from ..tables import memory"),
    ("money", "privacy.budget", "from ..tables.base import Table"),
    ("rows", "graph", "from .tables.base import Table"),
    ("rows", "models.base", "def f():\n    from ..tables.encode import encode"),
    ("rows", "models.base", FOR_TYPES + "from ..tables.base import Table"),
    ("rows", "models.base", "import importlib\nt = importlib.import_module('discreet.tables.encode')"),
    ("rows", "encoding", "from .tables.memory import MemoryTable"),
    ("public side", "models.records", "from ..privacy.budget import PureDP"),
    ("public side", "inference.exact", "from ..privacy import curator"),
    ("public side", "domain", "from .tables.base import Table"),
    ("public side", "frames", "from .tables.memory import MemoryTable"),
    ("learners", "learn.fw", "from ..privacy.mechanisms import SecureGateway"),
    ("learners", "learn.fw", "from ..tables.base import IntArray"),
    ("noise", "cli.measure", "from ..privacy.mechanisms import SecureGateway"),
    ("noise", "models.base", "from ..privacy import mechanisms"),
    ("curator", "models.base", "from ..privacy.curator import Curator"),
    ("curator", "tables.memory", "from ..privacy.curator import Curator"),
    ("opendp", "tables.memory", "import opendp.prelude as dp"),
    ("opendp", "learn.fw", "def f():\n    from opendp.mod import enable_features"),
    ("frames", "graph", "import pandas as pd"),
    ("frames", "privacy.curator", "import polars"),
    ("frames", "learn.fw", "import duckdb"),
    ("seeded noise", "tables.memory", "import random"),
    ("seeded noise", "privacy.mechanisms", "import numpy as np\nnoise = np.random.default_rng(0).laplace()"),
    ("seeded noise", "privacy.mechanisms", "from numpy import random"),
    ("seeded noise", "privacy.mechanisms", "from numpy.random import default_rng"),
    ("noise of others", "privacy.mechanisms", "from scipy import stats"),
    ("seeded noise", "learn.fw", "import numpy\nx = numpy.random.rand()"),
    ("web", "learn.fw", "import bottle"),
    ("web", "cli.measure", "def run():\n    from http.server import HTTPServer"),
    ("scikit-learn", "models.base", "from sklearn.base import BaseEstimator"),
    ("unprotected", "report", "from .evaluate import evaluate"),
    ("unprotected", "cli.measure", "def run():\n    from ..evaluate import evaluate"),
    ("unprotected", "learn.fw", FOR_TYPES + "from ..evaluate import Evaluation"),
    ("looks only", "evaluate", "from .privacy.curator import Curator"),
    ("looks only", "evaluate", "from .files import load_model"),
    ("looks only", "evaluate", "def save():\n    from .learn.fw import f"),
    ("terminal", "privacy.curator", "from rich.progress import track"),
    ("pickle", "tables.memory", "import pickle"),
    ("one way", "inference.exact", "from ..models.base import M"),
    ("one way", "domain", "from .factor import Factor"),
    ("one way", "io.native", "def f():\n    from ..models import M"),
    (
        "one way",
        "models.base",
        FOR_TYPES + "from ..files import load_model",
    ),
    ("one way", "models.base", "def save():\n    from ..files import load_model"),
    ("one way", "privacy.query", "from ..learn.fw import f"),
    ("hidden", "models.base", "def f():\n    from ..graph import g"),
    ("makes a curator", "learn.fw", "c = Curator(table, budget=b)"),
    ("makes a curator", "learn.fw", "c = curator_module.ExactCurator(table)"),
    ("reaches inside", "learn.fw", "rows = curator._rows"),
    ("reaches inside", "models.base", "def f(c):\n    return c._source.count([()])"),
    ("cycle", "domain", "from .graph import g"),
    ("cycle", "tables.base", "from .memory import MemoryTable"),
    ("cycle", "io.native", "from ..models.base import M"),
    ("cycle", "io.native", "import importlib\ndef load():\n    importlib.import_module('discreet.models.base')"),
    ("cycle", "graph", "def f():\n    from .inference.exact import g"),
    (
        "cycle",
        "tables.base",
        FOR_TYPES + "from .memory import MemoryTable",
    ),
    ("cycle", "cli.measure", "def f():\n    from .app import app"),
]


def test_a_clean_package_has_no_violations():
    assert violations(CLEAN) == []


@pytest.mark.parametrize(("rule", "module", "planted"), PLANTED)
def test_planted_violations_are_caught_by_name(rule, module, planted):
    found = violations({**CLEAN, module: f"{CLEAN[module]}{planted}\n"})
    assert any(v.startswith(f"{rule}:") for v in found), found


def test_every_rule_has_a_planted_violation():
    named = {rule for rule, _, _ in PLANTED}
    assert {*MAY_IMPORT, *MAY_NOT, "one way", "hidden", "makes a curator", "reaches inside", "cycle"} == named


# -- what an import costs --------------------------------------------------------------------------------------------

HEAVY = [
    "opendp",
    "scipy",
    "matplotlib",
    "networkx",
    "pandas",
    "polars",
    "pyarrow",
    "duckdb",
    "sklearn",
    "typer",
    "rich",
]
FRESH = """
import sys, time
before = time.process_time()
import discreet
{more}
print(time.process_time() - before)
print(*sorted({{m.partition('.')[0] for m in sys.modules}}))
"""


def fresh(more=""):
    out = subprocess.run(
        [sys.executable, "-c", FRESH.format(more=more)], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    return float(out[-2]), set(out[-1].split())


def test_importing_the_package_is_quick_and_light():
    seconds, loaded = min(fresh() for _ in range(3))
    assert seconds < 0.5
    assert not loaded & set(HEAVY)


def test_lightness_can_fail():
    _, loaded = fresh("discreet.Curator; import opendp")
    assert "opendp" in loaded  # so the test above would have seen it


def test_a_curator_has_its_noise_before_anything_is_charged():
    _, loaded = fresh("from discreet.privacy.mechanisms import SecureGateway; SecureGateway()")
    assert "opendp" in loaded


# What fits alone need, and what nobody needs who looks at a release or plans one.
COMMAND = """
import sys
from discreet.cli.app import main
assert main({words!r}) == 0
print(*sorted(set(sys.modules) & set({slow!r})))
"""
FOR_FITS = ["scipy.optimize", "scipy.sparse", "scipy.fft", "scipy.stats"]
FOR_OTHERS = [
    "opendp",
    "sklearn",
    "matplotlib",
    "networkx",
    "duckdb",
    "pyarrow",
    "bottle",
    "tomlkit",
    "yaml",
    "pandas",
    "polars",
]
OF_OTHER_METHODS = [
    "discreet.learn.networks.optimal",
    "discreet.learn.regressions.pairwise",
    "discreet.learn.hidden.field",
    "discreet.learn.structure.learner",
    "discreet.papers.collective",
    "discreet.papers.theory",
]
FOR_PLANS = [*FOR_OTHERS, *OF_OTHER_METHODS, "scipy", "narwhals"]
OF_OTHER_COMMANDS = [
    "discreet.cli.attack",
    "discreet.cli.certify",
    "discreet.cli.schema",
    "discreet.cli.start",
    "cryptography",
    "threadpoolctl",
]
SCHEMA = '[columns.smoke]\nlevels = ["yes", "no"]\n[columns.lung]\nlevels = ["yes", "no"]\n'


def loaded_by(words, slow):
    program = COMMAND.format(words=words, slow=slow)
    out = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    return out.splitlines()[-1].split()


@pytest.mark.parametrize(
    ("words", "slow"),
    [
        (["query", "asia", "P(lung | smoke=yes)"], [*FOR_OTHERS, *FOR_FITS, *OF_OTHER_COMMANDS]),
        (["map", "asia", "lung"], [*FOR_OTHERS, *FOR_FITS, *OF_OTHER_COMMANDS, "rich.table"]),
        (["plan", "--schema", "schema.toml", "--epsilon", "1"], [*FOR_PLANS, *OF_OTHER_COMMANDS]),
        (["show", "model.zip"], [*FOR_PLANS, *OF_OTHER_COMMANDS]),
        (["verify", "model.zip"], [*FOR_OTHERS, *OF_OTHER_METHODS, "narwhals", "discreet.cli.attack"]),
        (["query", "model.zip", "P(smoke)"], [*FOR_PLANS, *OF_OTHER_COMMANDS]),
    ],
    ids=lambda x: " ".join(x[:2]),
)
def test_commands_load_what_they_need(words, slow, tmp_path, monkeypatch):
    (tmp_path / "schema.toml").write_text(SCHEMA)
    monkeypatch.setenv("DISCREET_CACHE", str(tmp_path / "kept"))
    if "model.zip" in words:
        domain = Domain.of({"smoke": ["yes", "no"], "lung": ["yes", "no"]})
        with Curator(encode({"smoke": ["yes", "no"] * 50, "lung": ["no"] * 100}, domain), budget=PureDP(1)) as curator:
            release = Release.of(resolve(domain).learn(curator))
        release.save(tmp_path / "model.zip")
        # Refits need an optimiser, once: they are kept, as those of a model of any size are.
        monkeypatch.setattr(kept, "WORTHWHILE", -1)
        kept.intervals(release, 0.9, DRAWS, 0)
    monkeypatch.chdir(tmp_path)
    assert loaded_by(words, slow) == []


def test_a_fit_of_texts_in_parquet_loads_no_pandas(tmp_path, monkeypatch):
    """Pyarrow would import it, to convert numbers that it holds as we do; that took as long as all counts."""
    import pyarrow as pa
    import pyarrow.parquet

    pyarrow.parquet.write_table(
        pa.table({"smoke": ["yes", "no"] * 50, "lung": ["no"] * 100}), tmp_path / "rows.parquet"
    )
    (tmp_path / "schema.toml").write_text(SCHEMA)
    monkeypatch.chdir(tmp_path)
    fit = ["fit", "rows.parquet", "--schema", "schema.toml", "--epsilon", "1", "-o", "model.zip"]
    assert loaded_by(fit, ["pandas", "narwhals", "pyarrow.compute", "duckdb", "sklearn", "matplotlib"]) == []


def test_a_program_that_ends_does_not_look_for_garbage(monkeypatch, capsys):
    """That took a quarter of a small command. Who calls ``main`` with words goes on, and wants it looked for."""
    frozen = []
    monkeypatch.setattr(gc, "freeze", lambda: frozen.append(True))
    assert main(["--version"]) == 0 and not frozen
    monkeypatch.setattr(sys, "argv", ["discreet", "--version"])
    assert main() == 0 and frozen and "discreet" in capsys.readouterr().out


def test_a_needless_import_would_be_seen():
    assert loaded_by(["query", "asia", "P(lung)"], ["numpy", *FOR_OTHERS]) == ["numpy"]


def test_budgets_and_ledgers_do_not_need_the_noise():
    _, loaded = fresh("discreet.PureDP, discreet.Ledger, discreet.Domain")
    assert not loaded & {"opendp", "matplotlib", "networkx", "pandas", "polars", "duckdb"}


def test_statistics_wait_until_they_are_needed():
    """scipy.stats takes longer to import than all else that a command needs; what we use of it is in scipy.special."""
    readers = read({**sources_of(SOURCE), "planted": "from scipy import stats\n"})
    at_the_top = [m for m, r in readers.items() for i in r.imports if i.place == "top" and i.target == "scipy.stats"]
    assert at_the_top == ["planted"]


def test_importing_says_nothing():
    result = subprocess.run(
        [sys.executable, "-W", "error", "-c", "import discreet; discreet.Curator; discreet.encode; discreet.Domain"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")
