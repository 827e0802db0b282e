"""UAI files: exact round trips, the published example, names kept in a sidecar, and refusal of the rest."""

import random
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mutations import ACCIDENTS

from discreet.errors import FileFormatError, InputError
from discreet.io.bif import read_bif
from discreet.io.limits import Limits
from discreet.io.network_data import FactorData
from discreet.io.uai import (
    names_path,
    parse_uai,
    read_uai,
    uai_text,
    write_uai,
)

MARKOV = """MARKOV
3
2 2 3
2
2 0 1
2 1 2

4
 4.000 2.400
 1.000 0.000

6
 2.2500 3.2500 3.7500
 0.0000 0.0000 10.0000
"""
BAYES = """BAYES
3
2 2 3
3
1 0
2 0 1
2 1 2

2
 0.436 0.564

4
 0.128 0.872
 0.920 0.080

6
 0.210 0.333 0.457
 0.811 0.000 0.189
"""


def same(a, b):
    return (
        a.directed == b.directed
        and list(a.levels.items()) == list(b.levels.items())
        and a.scopes == b.scopes
        and all(np.array_equal(x, y) for x, y in zip(a.tables, b.tables, strict=True))
    )


def test_a_markov_random_field():
    data = parse_uai(MARKOV)
    assert not data.directed
    assert data.levels == {"x0": ("0", "1"), "x1": ("0", "1"), "x2": ("0", "1", "2")}
    assert data.scopes == (("x0", "x1"), ("x1", "x2"))
    np.testing.assert_array_equal(data.tables[1], [[2.25, 3.25, 3.75], [0, 0, 10]])
    assert same(parse_uai(uai_text(data)), data)
    with pytest.raises(FileFormatError, match="MARKOV"):
        data.to_network()


def test_a_bayesian_network():
    network = parse_uai(BAYES).to_network()
    assert network.parents == {"x0": (), "x1": ("x0",), "x2": ("x1",)}
    assert network.tables["x1"][1, 0] == 0.92
    assert same(FactorData.from_network(network), parse_uai(BAYES))
    with pytest.raises(FileFormatError, match="sums to"):
        parse_uai(BAYES.replace("0.128", "0.228")).to_network()
    with pytest.raises(FileFormatError, match="exactly one"):
        parse_uai(BAYES.replace("2 0 1\n", "2 1 0\n")).to_network()
    with pytest.raises(FileFormatError, match="cycle"):
        parse_uai(BAYES.replace("1 0\n2 0 1", "2 1 0\n2 0 1").replace("2\n 0.436 0.564", "4 .5 .5 .5 .5")).to_network()


def test_the_last_variable_varies_fastest():
    numbers = " ".join(map(str, range(12)))
    data = parse_uai(f"MARKOV 3\n2 3 2\n1\n3 1 2 0\n12 {numbers}")
    assert data.tables[0].shape == (3, 2, 2)
    assert data.tables[0][2, 0, 1] == 2 * 4 + 0 * 2 + 1


@pytest.mark.parametrize("name", ["asia", "sachs", "child", "alarm"])
def test_networks_round_trip_with_their_names(networks_directory, tmp_path, name):
    network = read_bif(networks_directory / f"{name}.bif")
    data = FactorData.from_network(network)
    write_uai(data, tmp_path / "m.uai")
    back = read_uai(tmp_path / "m.uai")
    assert same(back, data)
    again = back.to_network(name)
    assert again.parents == network.parents and again.notes == ()
    assert all(np.array_equal(again.tables[v], network.tables[v]) for v in network.levels)


def test_agreement_with_pyagrum(networks_directory, tmp_path):
    gum = pytest.importorskip("pyagrum")
    network = read_bif(networks_directory / "alarm.bif")
    write_uai(FactorData.from_network(network), tmp_path / "alarm.uai")
    theirs = gum.loadBN(str(tmp_path / "alarm.uai"))
    index = {v: i for i, v in enumerate(network.levels)}
    assert {tuple(arc) for arc in theirs.arcs()} == {
        (index[parent], index[v]) for v in network.levels for parent in network.parents[v]
    }
    for variable, table in network.tables.items():
        if len(network.parents[variable]) > 1:
            continue  # there pyAgrum runs through the parents in reverse, against the format's definition
        cpt = theirs.cpt(index[variable])
        order = [theirs.variable(index[v]).name() for v in (*network.parents[variable], variable)]
        ours = np.transpose(table, [order.index(axis) for axis in reversed(cpt.names)])
        np.testing.assert_allclose(ours, cpt.toarray(), rtol=0, atol=1e-7)  # it reads single precision


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=6)


@st.composite
def factors(draw):
    variables = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    levels = {v: tuple(draw(st.lists(names, min_size=1, max_size=3, unique=True))) for v in variables}
    scopes = draw(st.lists(st.lists(st.sampled_from(variables), unique=True, max_size=3).map(tuple), max_size=4))
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    tables = [np.asarray(rng.exponential(size=[len(levels[v]) for v in scope])) for scope in scopes]
    return FactorData(False, levels, tuple(scopes), tuple(tables))


@settings(deadline=None)
@given(factors())
def test_round_trip_is_exact(tmp_path_factory, data):
    path = tmp_path_factory.mktemp("uai") / "m.uai"
    write_uai(data, path)
    assert same(read_uai(path), data)


def test_without_the_sidecar_there_are_numbers(tmp_path):
    write_uai(parse_uai(MARKOV, {"a": ("x", "y"), "b": ("x", "y"), "c": ("1", "2", "3")}), tmp_path / "m.uai")
    assert list(read_uai(tmp_path / "m.uai").levels) == ["a", "b", "c"]
    (tmp_path / "m.uai.names.json").unlink()
    assert list(read_uai(tmp_path / "m.uai").levels) == ["x0", "x1", "x2"]


@pytest.mark.parametrize(
    ("sidecar", "message"),
    [
        ("{}", "format"),
        ('{"format": "discreet-uai-names", "version": 1, "variables": []}', "not those of the file"),
        ('{"format": "discreet-uai-names", "version": 1, "variables": [3]}', "name and levels"),
        ('{"format": "discreet-uai-names", "version": 1, "variables": [{"name": "a"}]}', "name and levels"),
        ('{"format": "discreet-uai-names", "version": 1, "variables": [{"name": "", "levels": []}]}', "not a name"),
        ('{"format": "discreet-uai-names", "version": 1, "variables": [{"name": "a", "levels": "xy"}]}', "list of"),
        ('{"format": "discreet-uai-names", "version": 1, "variables": [{"name": "a", "levels": ["x", "x"]}]}', "twice"),
        ('{"format": "discreet-uai-names", "format": 1}', "twice"),
        ("[", "JSON"),
        ("[" * 100_000, "depth"),
    ],
)
def test_a_broken_sidecar_is_refused(tmp_path, sidecar, message):
    (tmp_path / "m.uai").write_text(MARKOV)
    (tmp_path / "m.uai.names.json").write_text(sidecar)
    assert names_path(tmp_path / "m.uai") == str(tmp_path / "m.uai.names.json")
    with pytest.raises(FileFormatError, match=message):
        read_uai(tmp_path / "m.uai")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "expected MARKOV or BAYES"),
        ("ID 3", "begins with 'ID'"),
        ("MARKOV", "line 1: expected the number of variables"),
        ("MARKOV\n-3", "line 2: expected the number of variables, a whole number, found '-3'"),
        ("MARKOV\n99999999999999999", "too large"),
        ("MARKOV 1\n0", "no levels"),
        ("MARKOV 2\n300000 300000", "levels"),
        (MARKOV.replace("2 0 1", "2 0 3"), "line 5: 3 is too large for a variable"),
        (MARKOV.replace("2 0 1", "2 0 0"), "twice"),
        (MARKOV.replace("2.400", "-2.4"), "line 9: expected a number that is not negative"),
        (MARKOV.replace("2.400", "nan"), "line 9: expected a number, found 'nan'"),
        (MARKOV.replace("2.400", "1e999"), "not infinite"),
        (MARKOV.replace("\n4\n", "\n3\n"), "3 entries, and its scope asks for 4"),
        (MARKOV + "5", "line 15: expected the end of the file"),
        (MARKOV[:-10], "end of the file"),
        ("MARKOV 40\n" + "9 " * 40 + "\n1\n12 " + " ".join(map(str, range(12))) + "\n1", "limit on cells"),
        ("MARKOV 40\n" + "1 " * 40 + "\n1\n40 ", "too large for the size of a scope"),
    ],
)
def test_errors_give_the_line(text, message):
    with pytest.raises(FileFormatError, match=message):
        parse_uai(text)


def test_limits_can_be_moved():
    with pytest.raises(FileFormatError, match="limit on cells"):
        parse_uai(MARKOV, limits=Limits(table_cells=9))
    assert parse_uai(MARKOV, limits=Limits(table_cells=10))


def test_what_no_file_can_hold_is_not_written(tmp_path):
    for bad in (np.nan, np.inf, -1.0):
        with pytest.raises(InputError, match="the table over"):
            write_uai(FactorData(False, {"a": ("x",)}, (("a",),), (np.array([bad]),)), tmp_path / "m.uai")
    assert list(tmp_path.iterdir()) == []


def test_fuzz_some_hundred_broken_files(tmp_path):
    rng = random.Random(5)
    path = tmp_path / "m.uai"
    write_uai(parse_uai(BAYES), path)
    good = {path: path.read_bytes(), tmp_path / "m.uai.names.json": (tmp_path / "m.uai.names.json").read_bytes()}
    read = 0
    for _ in range(500):
        for file, data in good.items():
            file.write_bytes(rng.choice(ACCIDENTS[:8])(data, rng) if rng.random() < 0.6 else data)
        begin = time.process_time()
        try:
            data = read_uai(path)
            read += 1
            assert all(np.isfinite(t).all() and (t >= 0).all() for t in data.tables)
        except FileFormatError as error:
            assert len(str(error)) < 1000
        assert time.process_time() - begin < 1
    assert 0 < read < 400
