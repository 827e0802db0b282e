"""Models for other libraries: the same probabilities there, to the last digits; and a word on what to install.

pyAgrum and networkx are in the test environment. What pgmpy is given is put together without it, and checked here
against its documented form; where it is installed, its own inference is asked as well.
"""

from __future__ import annotations

import sys
import types

import numpy as np
import pytest

from discreet import networks
from discreet.domain import Domain
from discreet.errors import MissingPackageError
from discreet.extras import needed
from discreet.io.export import save_bif
from discreet.models.bayesian import BayesianNetwork
from discreet.models.convert import to_markov
from discreet.models.interchange import for_pgmpy, tables_of
from discreet.models.markov import MarkovRandomField

# Levels that file formats stumble over, columns against the order of the domain, and different numbers of levels.
DOMAIN = Domain.of({"size of town": ["<5, 1", "12+", "x|y"], "b": ["no", "yes"], "c": 4})


def a_network() -> BayesianNetwork:
    rng = np.random.default_rng(3)
    tables = {
        "c": rng.dirichlet(np.ones(4)),
        "b": rng.dirichlet(np.ones(2), size=4),
        "size of town": rng.dirichlet(np.ones(3), size=(4, 2)),
    }
    return BayesianNetwork(DOMAIN, {"size of town": ("c", "b"), "b": ("c",)}, tables)


def a_field() -> MarkovRandomField:
    rng = np.random.default_rng(4)
    b_c = rng.normal(size=(4, 2))
    b_c[1, 0] = -np.inf  # impossible
    return MarkovRandomField(DOMAIN, {("c", "b"): b_c, ("size of town", "c"): rng.normal(size=(3, 4))})  # type: ignore[arg-type]


MODELS = {"network": a_network, "field": a_field}


def joint(model) -> np.ndarray:
    return np.asarray(model.marginal(DOMAIN.names).probabilities)


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_the_product_of_the_tables_is_the_distribution(make):
    model = make()
    product = np.ones(DOMAIN.shape)
    for columns, table in tables_of(model):
        product = np.einsum(product, [0, 1, 2], table, [DOMAIN.index(n) for n in columns], [0, 1, 2])
    np.testing.assert_allclose(product / product.sum(), joint(model), atol=1e-12)


# -- pyAgrum -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
def test_pyagrum_has_the_same_joint_distribution(make):
    import pyagrum as gum

    model = make()
    theirs = model.to_pyagrum()
    ask = gum.LazyPropagation if model.directed else gum.ShaferShenoyMRFInference
    engine = ask(theirs)
    engine.addJointTarget(set(DOMAIN.names))
    engine.makeInference()
    found = engine.jointPosterior(set(DOMAIN.names))
    array = found.toarray().transpose([list(reversed(found.names)).index(n) for n in DOMAIN.names])
    np.testing.assert_allclose(array, joint(model), atol=1e-12)
    assert theirs.variableFromName("size of town").labels() == ("<5, 1", "12+", "x|y")


def test_pyagrum_agrees_on_alarm_given_evidence_by_label():
    import pyagrum as gum

    model = networks.load("alarm")
    engine = gum.LazyPropagation(model.to_pyagrum())
    engine.setEvidence({"HYPOVOLEMIA": "TRUE", "BP": "LOW"})
    engine.makeInference()
    for name in ("LVFAILURE", "CO", "HR"):
        ours = model.marginal(name, {"HYPOVOLEMIA": "TRUE", "BP": "LOW"})
        np.testing.assert_allclose(engine.posterior(name).toarray(), ours.probabilities, atol=1e-10)


def test_bif_that_we_write_is_read_by_pyagrum_with_levels_and_all(tmp_path):
    import pyagrum as gum

    model = networks.load("asia")
    save_bif(model, tmp_path / "asia.bif")
    theirs = gum.loadBN(str(tmp_path / "asia.bif"))
    engine = gum.LazyPropagation(theirs)
    engine.setEvidence({"smoke": "yes"})
    engine.makeInference()
    for name in model.domain:
        assert theirs.variableFromName(name).labels() == model.domain[name].labels
        ours = model.marginal(name, {"smoke": "yes"}) if name != "smoke" else None
        if ours is not None:
            np.testing.assert_allclose(engine.posterior(name).toarray(), ours.probabilities, atol=1e-6)


# -- networkx ----------------------------------------------------------------------------------------------------------


def test_networkx_has_levels_tables_and_the_card():
    model = a_network().with_card({"what": "a test"})
    graph = model.to_networkx(strength=True)
    assert graph.is_directed() and set(graph.edges) == {("c", "b"), ("c", "size of town"), ("b", "size of town")}
    node = graph.nodes["size of town"]
    assert node["levels"] == DOMAIN["size of town"].labels and node["parents"] == ("c", "b")
    np.testing.assert_array_equal(node["table"], model.tables["size of town"])
    assert graph.edges["c", "b"]["strength"] == pytest.approx(model.edge_strength()["c", "b"])
    assert graph.graph["card"] == {"what": "a test"}

    undirected = a_field().to_networkx()
    assert not undirected.is_directed() and len(undirected.graph["tables"]) == len(a_field().potentials)
    assert undirected.graph["card"] is None and "strength" not in undirected.edges["b", "c"]


# -- pgmpy -------------------------------------------------------------------------------------------------------------


def test_what_pgmpy_is_given_has_a_row_a_level_and_the_last_parent_fastest():
    model = a_network()
    parts = {part["variable"]: part for part in for_pgmpy(model)}
    assert "evidence" not in parts["c"] and parts["c"]["values"].shape == (4, 1)
    child = parts["size of town"]
    assert (child["variable_card"], child["evidence"], child["evidence_card"]) == (3, ["c", "b"], [4, 2])
    for c in range(4):
        for b in range(2):
            np.testing.assert_array_equal(child["values"][:, 2 * c + b], model.tables["size of town"][c, b])
    assert child["state_names"] == {n: list(DOMAIN[n].labels) for n in ("size of town", "b", "c")}
    factors = for_pgmpy(a_field())
    assert all(list(f["values"].shape) == f["cardinality"] for f in factors)
    assert all(list(f["state_names"]) == f["variables"] for f in factors)


class Recorder:
    """A stand-in for a graph of pgmpy: it keeps what it is given."""

    def __init__(self) -> None:
        self.nodes, self.edges, self.parts = [], [], []

    def add_nodes_from(self, nodes):
        self.nodes += nodes

    def add_edges_from(self, edges):
        self.edges += edges

    def add_cpds(self, *parts):
        self.parts += parts

    add_factors = add_cpds


@pytest.mark.parametrize("make", MODELS.values(), ids=MODELS)
@pytest.mark.parametrize("prefix", ["", "Discrete"], ids=["older", "today"])
def test_pgmpy_is_given_the_whole_model_under_its_old_names_and_its_new_ones(make, prefix, monkeypatch):
    models, factors = types.ModuleType("pgmpy.models"), types.ModuleType("pgmpy.factors.discrete")
    setattr(models, f"{prefix}BayesianNetwork", type("B", (Recorder,), {}))
    setattr(models, f"{prefix}MarkovNetwork", type("M", (Recorder,), {}))
    factors.TabularCPD = factors.DiscreteFactor = dict
    for name in ("pgmpy", "pgmpy.factors"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    monkeypatch.setitem(sys.modules, "pgmpy.models", models)
    monkeypatch.setitem(sys.modules, "pgmpy.factors.discrete", factors)
    model = make()
    made = model.to_pgmpy()
    assert type(made).__name__ == ("B" if model.directed else "M")
    assert tuple(made.nodes) == DOMAIN.names and tuple(made.edges) == model.edges
    assert len(made.parts) == len(for_pgmpy(model))


@pytest.mark.parametrize("make", [*MODELS.values(), lambda: networks.load("asia")], ids=[*MODELS, "asia"])
def test_pgmpy_itself_answers_alike(make):
    pytest.importorskip("pgmpy", reason="pgmpy is not in the test environment; the tests above do without it")
    from pgmpy.inference import VariableElimination

    model = make()
    theirs = model.to_pgmpy()
    assert theirs.check_model()
    engine = VariableElimination(theirs)
    for name in model.domain:
        found = engine.query([name], show_progress=False)
        assert found.state_names[name] == list(model.domain[name].labels)
        values = found.values / found.values.sum()  # of Markov networks they are not normalised
        np.testing.assert_allclose(values, model.marginal(name).probabilities, atol=1e-9)


def test_pgmpy_reads_the_bif_that_we_write(tmp_path):
    pytest.importorskip("pgmpy", reason="pgmpy is not in the test environment; pyAgrum reads it above")
    from pgmpy.readwrite import BIFReader

    model = networks.load("asia")
    save_bif(model, tmp_path / "asia.bif")
    theirs = BIFReader(str(tmp_path / "asia.bif")).get_model()
    assert set(theirs.edges()) == set(model.edges)
    for name in model.domain:
        cpd = theirs.get_cpds(name)
        order = [cpd.variables.index(n) for n in (*model.parents[name], name)]
        np.testing.assert_allclose(cpd.values.transpose(order), model.tables[name], atol=1e-6)


# -- what is not installed ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "package"), [("to_pgmpy", "pgmpy"), ("to_pyagrum", "pyagrum")])
def test_a_missing_package_is_named_with_what_to_install(method, package, monkeypatch):
    for module in [m for m in sys.modules if m.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, module)
    monkeypatch.setitem(sys.modules, package, None)  # which is how Python marks what cannot be imported
    with pytest.raises(MissingPackageError, match=rf"needs the package {package}, .*pip install '{package}'"):
        getattr(a_network(), method)()


def test_what_a_package_misses_itself_is_named_too(tmp_path, monkeypatch):
    (tmp_path / "halfway.py").write_text("import a_thing_that_nobody_has\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(MissingPackageError, match=r"needs the package halfway.*a_thing_that_nobody_has is missing"):
        needed("halfway", "this test")


def test_to_markov_and_back_through_pyagrum_is_the_same_field():
    import pyagrum as gum

    model = to_markov(networks.load("asia"))
    engine = gum.ShaferShenoyMRFInference(model.to_pyagrum())
    engine.makeInference()
    for name in model.domain:
        np.testing.assert_allclose(engine.posterior(name).toarray(), model.marginal(name).probabilities, atol=1e-10)
