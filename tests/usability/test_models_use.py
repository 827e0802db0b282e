"""Models in the hands of somebody new: what is misspelt, misplaced or of the wrong kind is an error that says what to
write instead, and never a silent answer to another question."""

from __future__ import annotations

import csv

import numpy as np
import pytest

from discreet import networks, open_model
from discreet.domain import Domain
from discreet.errors import DiscreetError, FileFormatError, InputError, NotAReleaseError
from discreet.io.export import save_bif, save_uai
from discreet.measurement import Measurement, Measurements, Noise
from discreet.models import (
    BayesianNetwork,
    BinaryMRF,
    IsingModel,
    MarkovRandomField,
    PairwiseModel,
    generators,
)
from discreet.models.records import generator
from discreet.privacy.budget import PureDP
from discreet.privacy.curator import Curator
from discreet.privacy.query import Marginals
from discreet.release.uncertainty import NoiseIntervals
from discreet.tables.encode import encode

ASIA = networks.load("asia")
DOMAIN = Domain.of({"sex": ["m", "f"], "age": 3, "marital status": ["single", "married"]})
SPINS = Domain.of({"a": 2, "b": 2})
ROWS = {"sex": ["m"], "age": [1], "marital status": ["single"]}
RELEASE = {"budget": {"epsilon": "1"}, "unit": {"protects": "a row"}}
TABLES = {"sex": [[0.5, 0.5], [0.1, 0.9]], "age": [0.2, 0.3, 0.5], "marital status": [0.5, 0.5]}
FIELD = MarkovRandomField.uniform(DOMAIN, [("sex", "age")])


def measured(origin="release", **more):
    noise = Noise("laplace", 2.0) if origin == "release" else Noise("none")
    tables = [
        Measurement("sex", np.array([3, 4]), noise, DOMAIN, clique=("sex",), origin=origin),
        Measurement("sex × age", np.arange(6).reshape(2, 3), noise, DOMAIN, clique=("sex", "age"), origin=origin),
        Measurement("number of records", np.array(7), noise, DOMAIN, clique=(), origin=origin),
    ]
    return Measurements(tables, {**RELEASE, **more})


CALLS = {
    # name: (call, what the message must say)
    # -- options that do not exist
    "evidence for a sample": (lambda: ASIA.sample(3, evidence={"smoke": "yes"}), ["'evidence'", "'given'"]),
    "evidence for a marginal": (lambda: ASIA.marginal("lung", evidence={"smoke": "yes"}), ["'evidence'", "'given'"]),
    "unknown option": (lambda: ASIA.marginal("lung", foo=1), ["'foo'", "'damping'", "'chains'"]),
    "unknown option of a question": (lambda: ASIA.ask("P(lung)", bar=2), ["'bar'"]),
    "condition beside a question": (lambda: ASIA.ask("P(lung)", given={"smoke": "yes"}), ["P(lung | smoke=yes)"]),
    "unknown option of MAP": (lambda: ASIA.ask("MAP(lung)", bar=2), ["'bar'"]),
    "method of MAP": (lambda: ASIA.ask("MAP(lung)", method="gibbs"), ["exactly", 'method="gibbs"']),
    "burnin": (lambda: ASIA.sample(3, burnin=10), ["'burnin'", "'burn_in'"]),
    "seed": (lambda: ASIA.sample(3, seed=10), ["'seed'", "'random_state'"]),
    "option of a probability": (lambda: ASIA.probability({"lung": "yes"}, dampin=0.1), ["'dampin'", "'damping'"]),
    "option of a table": (lambda: ASIA.conditional("lung", "smoke", chain=2), ["'chain'", "'chains'"]),
    "option of a condition": (lambda: ASIA.conditional("lung", {"smoke": "yes"}, chain=2), ["'chain'", "'chains'"]),
    "option of another method": (lambda: ASIA.marginal("lung", method="loopy", chains=3), ["'chains'", "loopy"]),
    "option of no use": (lambda: ASIA.sample(3, method="exact", burn_in=9), ["'burn_in'", "exact", "leave it out"]),
    # -- things in the wrong place
    "mapping for names": (lambda: ASIA.map({"xray": "yes"}), ["given={'xray': 'yes'}"]),
    "mapping for names of a marginal": (lambda: ASIA.marginal({"xray": "yes"}), ["given={'xray': 'yes'}"]),
    "mapping for names of intervals": (
        lambda: NoiseIntervals(ASIA, ASIA, (ASIA,), 0.9).marginal({"xray": "yes"}), ["given={'xray': 'yes'}"],
    ),
    "mapping for how many": (lambda: ASIA.most_probable({"xray": "yes"}), ["k", "whole number"]),
    "name for given": (lambda: ASIA.marginal("lung", "smoke"), ["given={'smoke': 'yes'}", "one list"]),
    "names for given": (lambda: ASIA.marginal("lung", ["smoke"]), ["['smoke']", "one list"]),
    "text for given": (lambda: ASIA.sample(2, given="x"), ["'x'", "given={'asia': 'yes'}"]),
    "name for an event": (lambda: ASIA.probability("lung"), ["event={'lung': 'yes'}"]),
    "number for names": (lambda: ASIA.marginal(3), ["got 3", "name of a column"]),
    # -- arguments of the wrong kind
    "file for axes": (lambda: ASIA.plot("x.png"), ["ax=", "plot().figure.savefig('x.png')"]),
    "number for axes": (lambda: ASIA.plot(3), ["ax=", "got 3"]),
    "names for a domain": (lambda: Domain.of(["sex"]), ["['sex']", "Domain.of({"]),
    "file for a domain": (lambda: Domain.of("s.toml"), ["'s.toml'", "load_schema"]),
    "mapping for the domain of a field": (lambda: MarkovRandomField({"sex": 2}, {}), ["dict", "Domain.of({"]),
    "mapping for the domain of an Ising model": (lambda: IsingModel([[0.0]], domain={"a": 2}), ["dict", "Domain.of({"]),
    "mapping for the domain of a network": (lambda: BayesianNetwork({"a": 2}, {}, {}), ["dict", "Domain.of({"]),
    "mapping for the domain of pairs": (lambda: PairwiseModel({}, {}, {"a": 2}), ["dict", "Domain.of({"]),
    "mapping for the domain of monomials": (lambda: BinaryMRF({}, {"a": 2}), ["dict", "Domain.of({"]),
    "text for potentials": (lambda: MarkovRandomField(DOMAIN, "x"), ["potentials", "mapping", "'x'"]),
    "text for a potential": (lambda: MarkovRandomField(DOMAIN, {"sex": "x"}), ["('sex',)", "numbers", "'x'"]),
    "text for a matrix": (lambda: IsingModel("x"), ["A must be an array of numbers", "'x'"]),
    "list for parents": (lambda: BayesianNetwork(DOMAIN, ["sex"], TABLES), ["parents", "mapping", "['sex']"]),
    "one combination": (lambda: FIELD.forbid({"sex": "m"}), ["forbid([{'sex': 'm'}])"]),
    "text for a random state": (lambda: ASIA.sample(3, random_state="x"), ["random_state", "whole number", "'x'"]),
    "negative random state": (lambda: ASIA.sample(3, random_state=-1), ["random_state", "at least 0", "-1"]),
    "random state of a question": (
        lambda: ASIA.marginal("lung", method="gibbs", random_state="x"), ["random_state", "'x'"],
    ),
    "random state of a generator": (lambda: generators.random_tree(3, random_state="x"), ["random_state", "'x'"]),
    "random state of annealing": (lambda: ASIA.estimate_log_partition(random_state="x"), ["random_state", "'x'"]),
    "file for the domain of rows": (lambda: encode(ROWS, "s.toml"), ["load_schema('s.toml')"]),
    "rows for a curator": (lambda: Curator(ROWS, budget=PureDP(1)), ["dict", "encode(rows, domain)"]),
    # -- names that would fall apart into letters
    "one name for tables": (lambda: Marginals(DOMAIN, "age"), ["'age'", "['age']"]),
    "one name for cliques": (lambda: MarkovRandomField.uniform(DOMAIN, "age"), ["'age'", "['age']"]),
    "unknown parent": (
        lambda: BayesianNetwork(DOMAIN, {"sex": "marital stat"}, TABLES), ["did you mean 'marital status'"],
    ),
    "text for an edge": (lambda: IsingModel.from_edges({"ab": 1.0}, domain=SPINS), ["'ab'", '("a", "b")']),
    "text for a pair": (lambda: PairwiseModel({"ab": np.eye(2)}, domain=SPINS), ["'ab'", '("a", "b")']),
    # -- matrices
    "not symmetric": (
        lambda: IsingModel([[0, 1], [2, 0]]), ["A[0, 1] = 1.0", "A[1, 0] = 2.0", "symmetric"],
    ),
    "often not symmetric": (lambda: IsingModel([[0, 1, 1], [2, 0, 4], [3, 5, 0]]), ["A[0, 1] = 1.0", "2 pairs more"]),
    "diagonal": (lambda: IsingModel([[0, 1], [1, 7]]), ["A[1, 1] = 7", "zero diagonal"]),
    "not square": (lambda: IsingModel([[0, 1]]), ["square", "(1, 2)"]),
    # -- measurements
    "no such table": (lambda: measured()["sexx"], ["'sexx'", "did you mean 'sex'"]),
    "no table of two": (lambda: measured()["marital status", "sex"], ["marital status", "('sex', 'age')"]),
    "unknown frame": (lambda: measured()["sex"].to_frame("panda"), ["'panda'", "did you mean 'pandas'"]),
    "impossible level": (lambda: measured().to_frame(level=90), ["level", "90"]),
}  # fmt: skip


@pytest.mark.parametrize("name", CALLS)
def test_bad_use_of_models(name):
    call, fragments = CALLS[name]
    with pytest.raises(DiscreetError) as caught:
        call()
    assert isinstance(caught.value, InputError), repr(caught.value)
    for fragment in fragments:
        assert fragment in str(caught.value), str(caught.value)


# -- the right spelling works ----------------------------------------------------------------------------------------


def test_options_that_exist_reach_their_method():
    few = ASIA.marginal("lung", method="gibbs", chains=2, sweeps=5, burn_in=0, random_state=1)
    again = ASIA.marginal("lung", method="gibbs", chains=2, sweeps=5, burn_in=0, random_state=1)
    assert "2 chains of 5 sweeps" in few.reason
    assert np.array_equal(few.probabilities, again.probabilities)
    assert "did NOT converge" in ASIA.marginal("dysp", method="loopy", max_iterations=1).reason
    assert ASIA.marginal("lung", random_state=3).method == "exact"  # a seed is no harm where nothing is drawn
    assert "2 chains" in ASIA.ask("P(lung)", method="gibbs", chains=2, sweeps=5, random_state=0).reason
    table = ASIA.conditional("lung", "smoke", method="gibbs", chains=2, sweeps=5, random_state=0)
    assert table.method == "gibbs"
    event = ASIA.probability({"lung": "yes"}, method="gibbs", chains=1, sweeps=4, random_state=0)
    assert event in (0, 0.25, 0.5, 0.75, 1)
    assert len(ASIA.sample(7, 0, method="gibbs", chains=2, burn_in=1, thin=1)) == 7
    assert ASIA.estimate_log_partition(random_state=0, particles=5, temperatures=2) == pytest.approx(0, abs=1)


def test_conditions_are_conditions():
    assert dict(ASIA.map(given={"xray": "yes"}))["either"] == "yes"
    assert "xray" not in ASIA.map(given={"xray": "yes"})


def test_generators_and_numbers_are_random_states():
    rng = np.random.default_rng(0)
    assert generator(rng) is rng
    assert generator(5).random() == np.random.default_rng(5).random()


def test_one_name_is_one_column():
    assert Marginals(DOMAIN, ["age", ("age", "sex")]).cliques == (("age",), ("sex", "age"))
    network = BayesianNetwork(DOMAIN, {"sex": "marital status"}, TABLES)
    assert network.parents["sex"] == ("marital status",)
    assert network == BayesianNetwork(DOMAIN, {"sex": ["marital status"]}, TABLES)
    assert network.ancestors("sex") == {"sex", "marital status"}
    assert network.d_separated("sex", "age") and not network.d_separated("sex", "marital status")
    assert DOMAIN.project("age").names == ("age",)
    assert DOMAIN.size("age") == 3


def test_a_drawing_is_saved_the_way_the_message_says(tmp_path):
    import matplotlib

    matplotlib.use("Agg")
    ax = ASIA.plot(title="Asia")
    ax.figure.savefig(tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes().startswith(b"\x89PNG")
    assert ASIA.plot(ax=ax) is ax


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (IsingModel([[0.0]]), "IsingModel: 1 column of 2 levels, 0 edges"),
        (generators.ising(2, [(0, 1)]), "IsingModel: 2 columns of 2 levels, 1 edge (x0–x1)"),
        (MarkovRandomField.uniform(Domain.of({"a": 1})), "MarkovRandomField: 1 column of 1 level, 0 edges"),
        (FIELD, "MarkovRandomField: 3 columns of 2–3 levels, 1 edge (sex–age)"),
    ],
)
def test_one_is_singular(model, words):
    assert repr(model).startswith(words)


def test_one_record_is_singular():
    assert repr(IsingModel([[0.0]]).sample(1, 0)).startswith("1 record of 1 column (")
    assert repr(ASIA.sample(1_000, 0)).startswith("1,000 records of 8 columns (")


# -- files -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ending", [".zip", ".bif", ".uai", ".BIF"])
def test_the_ending_says_the_format(tmp_path, ending):
    path = tmp_path / f"m{ending}"
    ASIA.save(path)
    start = {".zip": b"PK", ".bif": b"network", ".uai": b"BAYES"}[ending.lower()]
    assert path.read_bytes().startswith(start)
    back = open_model(path)
    assert back.domain == ASIA.domain and all(np.array_equal(back.tables[n], ASIA.tables[n]) for n in ASIA.domain)
    assert (back == ASIA) == (ending == ".zip")  # the others have no room for the card


@pytest.mark.parametrize("name", ["m.xyz", "m", "m.zip.txt", "m.csv"])
def test_an_unknown_ending_is_refused(tmp_path, name):
    with pytest.raises(InputError, match=r"\.zip .*\.bif .*\.uai") as caught:
        ASIA.save(tmp_path / name)
    assert name in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("ending", "write"), [(".bif", save_bif), (".uai", save_uai)])
def test_a_release_card_is_not_lost_silently(tmp_path, ending, write):
    release = ASIA.with_card(RELEASE)
    path = tmp_path / f"m{ending}"
    with pytest.raises(InputError, match=rf"release card.*\.zip.*{write.__name__}"):
        release.save(path)
    assert not path.exists()
    release.save(tmp_path / "m.zip")
    assert open_model(tmp_path / "m.zip").card == RELEASE
    write(release, path)
    assert open_model(path).card is None


@pytest.mark.parametrize("origin", ["exact", "research"])
@pytest.mark.parametrize("ending", [".zip", ".bif", ".uai"])
def test_models_without_a_guarantee_go_into_no_file(tmp_path, ending, origin):
    path = tmp_path / f"m{ending}"
    model = ASIA.with_card({"origin": origin})
    with pytest.raises(NotAReleaseError, match=origin):
        model.save(path)
    for write in (save_bif, save_uai):
        with pytest.raises(NotAReleaseError, match=origin):
            write(model, path)
    assert list(tmp_path.iterdir()) == []


def test_models_and_measurements_are_told_apart(tmp_path):
    measured().save(tmp_path / "tables.zip")
    ASIA.save(tmp_path / "model.zip")
    with pytest.raises(FileFormatError, match=r"tables\.zip: it is a file of measurements.*Measurements\.load"):
        open_model(tmp_path / "tables.zip")
    with pytest.raises(FileFormatError, match=r"model\.zip does not hold measurements.*'bayesian'.*open_model"):
        Measurements.load(tmp_path / "model.zip")


# -- measurements as tables ------------------------------------------------------------------------------------------


def test_tables_are_found_by_name():
    tables = measured()
    assert tables["sex"] is tables[0] and tables[("sex",)] is tables[0]
    assert (
        tables["age", "sex"] is tables[1] and tables[["sex", "age"]] is tables[1] and tables["sex × age"] is tables[1]
    )
    assert tables[()] is tables[2] and tables["number of records"] is tables[2]
    assert tables[-1] is tables[2] and tables[:2] == (tables[0], tables[1])


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_a_table_as_a_labelled_frame(backend):
    frame = measured()["sex", "age"].to_frame(backend, level=0.5)
    columns = frame.to_pydict() if backend == "pyarrow" else {name: list(frame[name]) for name in frame.columns}
    half = Noise("laplace", 2.0).half_width(0.5)
    assert columns == {
        "sex": ["m", "m", "m", "f", "f", "f"],
        "age": ["0", "1", "2", "0", "1", "2"],
        "value": [0, 1, 2, 3, 4, 5],
        "lower": [x - half for x in range(6)],
        "upper": [x + half for x in range(6)],
    }


def test_a_table_in_pandas():
    frame = measured()["sex"].to_pandas()
    low, high = measured()["sex"].interval(0.9)
    assert list(frame.columns) == ["sex", "value", "lower", "upper"]
    assert frame["lower"].tolist() == low.tolist() and frame["upper"].tolist() == high.tolist()
    assert frame["value"].dtype.kind == "i"


def test_sums_on_a_grid_and_names_that_are_taken():
    domain = Domain.of({"value": ["a", "b"]})
    taken = Measurement("value", np.array([1, 2]), Noise("none"), domain, clique=("value",), origin="public")
    assert taken.to_pandas().to_dict("list") == {
        "value": ["a", "b"],
        "value_": [1, 2],
        "lower": [1, 2],
        "upper": [1, 2],
    }
    sums = Measurement("sums", np.array([[1, 2]]), Noise("none"), domain, grid=0.25, origin="public")
    assert sums.to_pandas().to_dict("list") == {
        "entry": ["0, 0", "0, 1"], "value": [0.25, 0.5], "lower": [0.25, 0.5], "upper": [0.25, 0.5],
    }  # fmt: skip


def test_all_tables_as_csv(tmp_path):
    measured().to_csv(tmp_path / "t.csv", level=0.5)
    with (tmp_path / "t.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert list(rows[0]) == ["table", "sex", "age", "value", "lower", "upper"]
    assert len(rows) == 2 + 6 + 1
    half = Noise("laplace", 2.0).half_width(0.5)
    assert rows[1] == {
        "table": "sex",
        "sex": "f",
        "age": "",
        "value": "4",
        "lower": f"{4 - half}",
        "upper": f"{4 + half}",
    }
    assert rows[2]["table"] == "sex × age" and (rows[7]["sex"], rows[7]["age"], rows[7]["value"]) == ("f", "2", "5")
    assert rows[8] | {"lower": "", "upper": ""} == {
        "table": "number of records", "sex": "", "age": "", "value": "7", "lower": "", "upper": "",
    }  # fmt: skip
    frame = measured().to_frame(level=0.5)
    assert list(frame.columns) == list(rows[0]) and frame["value"].tolist() == [int(r["value"]) for r in rows]


@pytest.mark.parametrize("change", [{"origin": "exact"}, {"origin": "research"}])
def test_exact_values_go_into_no_csv(tmp_path, change):
    with pytest.raises(NotAReleaseError, match=change["origin"]):
        measured(**change).to_csv(tmp_path / "t.csv")
    assert list(tmp_path.iterdir()) == []
