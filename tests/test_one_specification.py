"""The same words mean the same, or are the same error, on the command line, in a run file, in Python and in the
scikit-learn skin: one table of inputs, right and wrong, put to all four."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path

import networkx as nx
import pytest

from discreet import Domain, PrivacyUnit, PureDP, Spec, networks, resolve
from discreet.cli import run
from discreet.errors import DiscreetError
from discreet.estimators import PrivateGraphicalModel
from discreet.models import generators
from discreet.schema import save_schema

SPINS = Domain.of({"smoke": 2, "lung": 2, "xray": 2})
LEVELS = Domain.of({"smoke": 2, "age": 3, "city": 4})
ALONE = Domain.of({"smoke": 2})
ARROWS = {"smoke": [], "lung": ["smoke"], "xray": ["lung"]}
PAIRS = [["smoke", "lung"], ["lung", "xray"]]
SETS = [{"columns": ["lung", "xray"], "weight": 2}, {"columns": ["smoke", "xray"], "weight": 1}]


def network(method="optimal", **options):
    return Spec("network", method, options)


def field(method="noise_aware", **options):
    return Spec("field", method, options)


def spin(method="moments", **options):
    return Spec("spin", method, options)


def said(**words):
    return words


searching = partial(said, family="network", method="searched")

# name: (what is said, the specification or a part of the error, and the columns if they are not the three spins)
TABLE = {
    # -- nothing, or a family alone
    "nothing": (said(), field("adaptive")),
    "one column": (said(), field(cliques=[["smoke"]]), ALONE),
    "one column, a network": (said(family="network"), network(graph={"smoke": []}), ALONE),
    "one column, a field": (said(family="field"), field(cliques=[["smoke"]]), ALONE),
    "a guess of the size": (said(approximate_size=500), field("adaptive")),
    "the size": (said(public_size=500), field("adaptive")),
    "the size and a guess": (said(public_size=500, approximate_size=9), field("adaptive")),
    "network": (said(family="network"), network("found")),
    "network and a guess": (said(family="network", approximate_size=500), network("found")),
    "a search": (searching(), network("searched", max_parents=2)),
    "a search and a guess": (
        searching(approximate_size=500),
        network("searched", max_parents=2, approximate_size=500),
    ),
    "a search, the size and a guess": (
        searching(public_size=500, approximate_size=9),
        network("searched", max_parents=2),
    ),
    "field": (said(family="field"), field("adaptive")),
    "a method that is gone": (said(family="field", method="searched"), "the family 'field' has no method 'searched'"),
    "spin": (said(family="spin"), spin()),
    "spin of order 3": (said(family="spin", options={"order": 3}), spin(order=3)),
    "pairwise": (said(family="field", method="pairwise"), field("pairwise"), LEVELS),
    "regressions": (said(family="spin", method="frank_wolfe"), spin("frank_wolfe")),
    "a dash for an underscore": (said(family="spin", method="frank-wolfe"), spin("frank_wolfe")),
    "the largest monomials": (
        said(family="spin", method="maximal_monomials", options={"order": 2, "min_weight": 0.2}),
        spin("maximal_monomials", order=2, min_weight=0.2),
    ),
    # -- words of earlier versions
    "ising": (said(family="ising"), spin(order=2)),
    "ising with its option": (said(family="ising", options={"max_edges": 4}), spin(order=2, max_edges=4)),
    "ising with its strategy": (
        said(family="ising", options={"strategy": "all pairs"}), spin(order=2, strategy="all"),
    ),
    "ising, frank_wolfe": (said(family="ising", method="frank_wolfe"), spin("frank_wolfe", order=2)),
    "binary": (said(family="binary"), spin(order=3)),
    "binary of order 2": (said(family="binary", options={"order": 2}), spin(order=2)),
    "the family pairwise": (said(family="pairwise"), field("pairwise"), LEVELS),
    "pairwise, frank_wolfe": (
        said(family="pairwise", method="frank-wolfe"), field("pairwise_regressions"), LEVELS,
    ),
    # -- graphs
    "arrows": (said(graph="smoke -> lung; lung -> xray"), network(graph=ARROWS)),
    "a chain of arrows": (said(graph="smoke -> lung -> xray"), network(graph=ARROWS)),
    "arrows, twice the same": (said(graph="smoke -> lung; smoke -> lung -> xray"), network(graph=ARROWS)),
    "arrows for a field": (
        said(family="field", graph="smoke -> lung; lung -> xray"),
        field(cliques=PAIRS),
    ),
    "arrows and a method": (said(method="uniform", graph="smoke -> lung -> xray"), network("uniform", graph=ARROWS)),
    "edges": (said(graph="smoke -- lung; lung -- xray"), field(cliques=PAIRS)),
    "a graph in a file": (said(graph="graph.txt"), network(graph=ARROWS)),
    "a BIF file": (said(graph="graph.bif"), network(graph=ARROWS)),
    "the graph of a model": (said(graph="model.zip"), field(cliques=PAIRS)),
    "a graph that was released": (said(graph="graph.json"), field(cliques=PAIRS)),
    "a mapping to parents": (said(graph={"lung": ["smoke"], "xray": ["lung"]}), network(graph=ARROWS)),
    "a list of edges": (said(graph=PAIRS), network(graph=ARROWS)),
    "a networkx graph": (said(graph=nx.Graph(PAIRS)), field(cliques=PAIRS)),
    "a networkx graph with arrows": (said(graph=nx.DiGraph(PAIRS)), network(graph=ARROWS)),
    "a path": (said(graph=Path("graph.txt")), network(graph=ARROWS)),
    # -- cliques
    "cliques": (said(cliques="smoke,lung; lung,xray"), field(cliques=PAIRS)),
    "cliques, one by one": (said(cliques=["smoke,lung", "lung,xray"]), field(cliques=PAIRS)),
    "lists of cliques": (said(cliques=PAIRS), field(cliques=PAIRS)),
    "cliques within others": (said(cliques="smoke,lung; lung; lung,xray"), field(cliques=PAIRS)),
    "cliques in a file": (said(cliques="cliques.txt"), field(cliques=PAIRS)),
    "one column as a clique": (said(cliques=["smoke"]), field(cliques=[["smoke"]])),
    "cliques and a method": (
        said(family="field", method="naive", cliques="smoke,lung", options={"penalty": 0.5, "project": False}),
        field("naive", cliques=[["smoke", "lung"]], penalty=0.5, project=False),
    ),
    # -- options
    "options": (
        said(options={"most_cells": 500, "triples": False}), field("adaptive", most_cells=500, triples=False),
    ),
    "options of a network": (
        searching(options={"max_parents": 1, "noise": "laplace"}),
        network("searched", max_parents=1, noise="laplace"),
    ),
    "an option with a dash": (said(options={"most-cells": 500}), field("adaptive", most_cells=500)),
    "a share as a fraction": (
        searching(options={"selection": "1/3"}), network("searched", max_parents=2, selection="1/3"),
    ),
    # -- what it is for
    "a target": (said(target="lung"), field("adaptive", target="lung")),
    "all triples": (said(workload="triples"), field("adaptive", workload="triples")),
    "sets with weights": (said(workload="xray, lung 2; smoke,xray"), field("adaptive", workload=SETS)),
    "lists of sets": (
        said(workload=[{"columns": ["lung", "xray"], "weight": 2.0}, ["smoke", "xray"]]),
        field("adaptive", workload=SETS),
    ),
    "sets in a file": (said(workload="sets.txt", target="lung"), field("adaptive", workload=SETS, target="lung")),
    "sets in a TOML file": (said(workload="sets.toml"), field("adaptive", workload=SETS)),
    "sets in a JSON file": (said(workload="sets.json"), field("adaptive", workload=SETS)),
    "a workload for a search": (
        searching(workload="pairs"), "network, searched has no option 'workload': it says which tables",
    ),
    "a workload as an option": (said(options={"workload": "pairs"}), "workload is no option of a method"),
    "a target that is not there": (said(target="lnug"), "no column 'lnug' in the domain; did you mean 'lung'?"),
    "a number for a target": (said(target=5), "the target is a word, got 5"),
    "a set that is not there": (said(workload="smoke,lnug 2"), "no column 'lnug' in the domain; did you mean 'lung'?"),
    "a listed set that is not there": (said(workload=[["smoke", "lnug"]]), "no column 'lnug' in the domain"),
    "a weight of nothing": (said(workload="smoke,lung 0"), "the weight of set 1 of the workload must be a number"),
    "a weight that is none": (said(workload="smoke,lung 1e"), "ends with a weight that is no number"),
    "a set twice": (said(workload="smoke,lung; lung,smoke 2"), "set 2 of the workload was named before"),
    "a column twice in a set": (said(workload="smoke,smoke"), "names each column once"),
    "no set": (said(workload=[]), "the workload names no set of columns"),
    "a number for a workload": (said(workload=5), "a workload is pairs, triples, or sets of columns"),
    "a number for a set": (said(workload=[5]), "set 1 of the workload must be a list of names"),
    "something else in a set": (said(workload=[{"column": ["smoke"]}]), "has columns and a weight, and nothing else"),
    "no such workload": (said(workload="none.toml"), "there is no file none.toml"),
    "a workload of something else": (said(workload="wrong.txt"), "line 1 of wrong.txt names something that is no col"),
    "a TOML file of something else": (said(workload="wrong.toml"), "wrong.toml has no list 'workload'"),
    # -- what is wrong with words
    "unknown family": (said(family="networt"), "there is no family 'networt'; did you mean 'network'?"),
    "unknown method": (said(family="network", method="optimum"), "has no method 'optimum'; did you mean 'optimal'?"),
    "method of another family": (said(family="spin", method="optimal"), "the family 'spin' has no method 'optimal'"),
    "method of another family, by an earlier word": (
        said(family="ising", method="optimal"), "the family 'spin' has no method 'optimal'",
    ),
    "unknown method of the usual family": (
        said(method="nope"), "the family 'field' has no method 'nope'; known: 'noise_aware', 'adaptive'",
    ),
    "method without family": (said(method="moments"), "the method 'moments' needs a family"),
    "a graph alone, without its weight": (said(family="structure", method="stable_mode"), "the option min_weight"),
    "a graph alone": (said(family="structure"), "the family 'structure' finds a graph and no model"),
    "a number for the family": (said(family=5), "the family is a word, got 5"),
    "a number for the method": (said(family="network", method=5), "the method is a word, got 5"),
    # -- what is wrong with structures
    "graph and cliques": (said(graph="smoke -> lung", cliques="smoke,lung"), "given twice, as graph and as cliques"),
    "arrows for spins": (said(family="spin", graph="smoke -> lung"), "finds its graph itself: leave the graph out"),
    "arrows for an Ising model": (said(family="ising", graph="smoke -> lung"), "finds its graph itself"),
    "cliques for spins": (said(family="spin", cliques="smoke,lung"), "finds its graph itself: leave the cliques out"),
    "a graph for a search": (said(method="searched", graph="smoke -> lung"), "network, searched finds its graph"),
    "edges for a network": (said(family="network", graph="smoke -- lung"), "needs arrows, and this graph has edges"),
    "cliques for a network": (said(family="network", cliques="smoke,lung"), "needs arrows, and cliques have none"),
    "no graph": (said(family="network", method="uniform"), "needs a structure that is publicly known: give a graph"),
    "no cliques": (said(family="field", method="naive"), "needs a structure that is publicly known: give cliques"),
    "arrows and edges": (said(graph="smoke -> lung; lung -- xray"), "both arrows and edges without direction"),
    "a cycle": (said(graph="smoke -> lung; lung -> smoke"), "cycle"),
    "a column that is not there": (said(graph="smok -> lung"), "no column 'smok' in the domain; did you mean 'smoke'?"),
    "a clique that is not there": (said(cliques="smoke,lnug"), "no column 'lnug' in the domain; did you mean 'lung'?"),
    "half an arrow": (said(graph="smoke ->"), "line 1 of the graph is no edge"),
    "another arrow": (said(graph="smoke => lung"), "an arrow is written '->'"),
    "no edges": (said(graph="# nothing"), "the graph has no edges"),
    "no clique": (said(cliques=";"), "no clique is named"),
    "a column twice": (said(cliques="smoke,smoke"), "names a column twice"),
    "a column twice in a list": (said(cliques=[["smoke", "smoke"]]), "names a column twice"),
    "no such file": (said(graph="none.bif"), "there is no file none.bif"),
    "no such file of cliques": (said(cliques="none.txt"), "there is no file none.txt"),
    "a file of something else": (said(graph="wrong.txt"), "line 1 of wrong.txt names something that is no column"),
    "a refusal": (said(graph="refused.json"), "holds a refusal"),
    "a number for a graph": (said(graph=5), "a graph is lines such as 'a -> b'"),
    "a number for cliques": (said(cliques=5), "cliques are groups of column names"),
    "a number for a clique": (said(cliques=[5]), "a clique is a group of column names"),
    "an empty clique": (said(cliques=[[]]), "got an empty one"),
    "an edge of three": (said(graph=[["smoke", "lung", "xray"]]), "an edge is a pair (parent, child)"),
    "an edge twice": (said(graph=[*PAIRS, PAIRS[0]]), "is there twice"),
    "a word for parents": (said(graph={"lung": "smoke"}), "are a list of names, got the word 'smoke'"),
    # -- what is wrong with options and sizes
    "unknown option": (said(options={"most_cell": 1}), "has no option 'most_cell'; did you mean 'most_cells'?"),
    "an option of another method": (said(family="spin", options={"steps": 5}), "spin, moments has no option 'steps'"),
    "an option of another method, by an earlier word": (
        said(family="ising", options={"steps": 5}), "spin, moments has no option 'steps'",
    ),
    "an option of the machine": (said(graph="smoke -> lung", options={"memory_limit": 1}), "no option 'memory_limit'"),
    "a graph as an option": (said(family="network", options={"graph": "smoke"}), "graph is no option of a method"),
    "an option that must be given": (
        said(family="spin", method="maximal_monomials", options={"order": 2}), "needs the option min_weight",
    ),
    "a demanded weight of nothing": (
        said(family="spin", method="maximal_monomials", options={"order": 2, "min_weight": 0}), "a positive number",
    ),
    "an order of nothing": (said(family="spin", options={"order": 0}), "order must be a whole number of at least 1"),
    "a word for a number": (said(options={"most_cells": "some"}), "most_cells must be a whole number, got 'some'"),
    "a list for a number": (
        searching(options={"selection": [1]}), "selection must be a number or a word, got [1]",
    ),
    "yes for a number": (said(options={"most_cells": True}), "most_cells must be a whole number, got True"),
    "a number for yes": (said(options={"triples": 1}), "triples must be"),
    "no cells": (said(options={"most_cells": 0}), "most_cells must be a whole number of at least 1, got 0"),
    "a number out of range": (said(graph="smoke -> lung", options={"fit_steps": -1}), "fit_steps"),
    "a word that is none": (
        searching(options={"noise": "pink"}), "noise must be 'auto', 'laplace' or 'gaussian'",
    ),
    "selection takes it all": (searching(options={"selection": 1}), "leave some for the tables"),
    "a root that is not there": (searching(options={"root": "smok"}), "no column 'smok'"),
    "options in words": (said(options="max_parents"), "options are a table of names and values"),
    "a size of nobody": (said(public_size=0), "public_size is a whole number of at least 1, got 0"),
    "a size in words": (said(public_size="many"), "public_size is a whole number of at least 1, got 'many'"),
    "a negative guess": (said(approximate_size=-5), "approximate_size is a positive number of records, got -5"),
    "a guess in words": (said(approximate_size="some"), "approximate_size is a positive number of records"),
    "spins of three levels": (said(family="spin"), "two levels", LEVELS),
}  # fmt: skip


def test_the_table_is_long_enough():
    right = sum(isinstance(outcome, Spec) for _, outcome, *_ in TABLE.values())
    assert len(TABLE) >= 100 and right >= 40 and len(TABLE) - right >= 40


# -- the four ways in --------------------------------------------------------------------------------------------------


@pytest.fixture
def desk(tmp_path, monkeypatch):
    """Graphs and cliques in files of every kind."""
    monkeypatch.chdir(tmp_path)
    Path("graph.txt").write_text("# what doctors know\nsmoke -> lung\nlung -> xray\n")
    Path("cliques.txt").write_text("smoke, lung\nlung, xray\n")
    Path("wrong.txt").write_text("Quetzalcoatl,1\n")
    Path("wrong.toml").write_text("name = 'Quetzalcoatl'\n")
    Path("sets.txt").write_text("# what the ministry asks\nxray, lung  2\nsmoke, xray\n")
    Path("sets.toml").write_text(
        'workload = [["smoke", "xray"]]\n'.replace("[[", '[{columns = ["lung", "xray"], weight = 2}, [')
    )
    Path("sets.json").write_text(json.dumps([SETS[0], ["smoke", "xray"]]))
    found = {"kind": "discreet graph", "refused": False, "interactions": PAIRS}
    Path("graph.json").write_text(json.dumps(found))
    Path("refused.json").write_text(json.dumps({**found, "refused": True, "interactions": None}))
    chain = generators.ising(3, [(0, 1), (1, 2)])
    type(chain)(chain.A, chain.theta, SPINS).save("model.zip")
    asia = networks.load("asia")
    tables = {"smoke": asia.tables["smoke"], "lung": asia.tables["lung"], "xray": asia.tables["lung"]}
    type(asia)(SPINS, {k: tuple(v) for k, v in ARROWS.items()}, tables).save("graph.bif")
    return tmp_path


def in_python(domain, words):
    spec = resolve(domain, **words).for_a_model()
    spec.prepare(domain, PrivacyUnit(), PureDP(1), words.get("public_size"), words.get("approximate_size"))
    return spec


def in_scikit_learn(domain, words):
    estimator = PrivateGraphicalModel(1.0, domain=domain, **words)
    estimator.plan()
    return estimator.spec(domain)


def by_command(arguments, capsys):
    capsys.readouterr()
    code = run(["plan", "--schema", "schema.toml", "--epsilon", "1", "--json", *arguments])
    out, err = capsys.readouterr()
    if code:
        raise DiscreetError(err.strip().removeprefix("discreet: "))
    return Spec.from_dict(json.loads(out)["spec"])


def on_the_line(words):
    """The options of the command line; None for what cannot be said there."""
    out = []
    for key, value in words.items():
        name = "--" + key.replace("_", "-")
        if key == "options" and isinstance(value, dict):
            out += [word for k, v in value.items() for word in ("--option", f"{k}={toml(v)}")]
        elif isinstance(value, list) and key == "cliques" and all(isinstance(v, str) for v in value):
            out += [word for v in value for word in (name, v)]
        elif isinstance(value, str) and key not in ("options", "public_size", "approximate_size"):
            out += [name, value]
        elif isinstance(value, int) and key in ("public_size", "approximate_size"):
            out += [name, str(value)]
        else:
            return None
    return out


def in_a_file(words):
    """The run file; None for what TOML has no words for."""
    try:
        return "".join(f"{key} = {toml(value)}\n" for key, value in words.items())
    except TypeError:
        return None


def toml(value):
    if isinstance(value, bool | int | float | str):
        return json.dumps(value)
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(toml, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{json.dumps(k)} = {toml(v)}' for k, v in value.items())}}}"
    raise TypeError(value)


def outcome_of(way, *arguments):
    try:
        return way(*arguments)
    except DiscreetError as error:
        return " ".join(str(error).split())


@pytest.mark.parametrize("name", TABLE)
def test_everywhere_the_same(name, desk, capsys):
    words, expected, *columns = TABLE[name]
    domain = columns[0] if columns else SPINS
    save_schema(domain, "schema.toml")
    found = {
        "Python": outcome_of(in_python, domain, words),
        "scikit-learn": outcome_of(in_scikit_learn, domain, words),
    }
    line, file = on_the_line(words), in_a_file(words)
    if line is not None:
        found["the command line"] = outcome_of(by_command, line, capsys)
    if file is not None:
        Path("run.toml").write_text(file)
        found["a run file"] = outcome_of(by_command, ["--run", "run.toml"], capsys)
    assert len(found) >= 3 or isinstance(words.get("graph"), nx.Graph | Path)
    for where, outcome in found.items():
        if isinstance(expected, Spec):
            assert outcome == expected, where
        else:
            assert isinstance(outcome, str) and expected in outcome, where
            assert outcome == found["Python"], where
            assert "Quetzalcoatl" not in outcome and "--" not in outcome.replace("a -- b", "")
