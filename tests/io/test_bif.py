"""BIF: the dialects, exact round trips, agreement with pyAgrum, and errors that give the place."""

import math
import random
import re
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mutations import ACCIDENTS

from discreet.errors import FileFormatError, InputError
from discreet.io.bif import bif_text, parse_bif, read_bif, write_bif
from discreet.io.limits import Limits
from discreet.io.network_data import NetworkData

NETWORKS = {"asia": (8, 8, 18), "sachs": (11, 17, 178), "child": (20, 25, 230), "alarm": (37, 46, 509)}

SMALL = """
// a comment
network "two words" { property author = someone else; property "x = {;}"; }
variable rain { type discrete [ 2 ] { yes, no }; property "position = (1, 2)"; }
variable "wet grass" { /* a
 longer comment */ property p; type discrete[3]{"very wet" Asy/Patch <5}; }
probability ( rain ) { table 0.2 0.8; }
probability ( "wet grass" | rain ) { (no) 0.1, 0.2, 0.7; (yes) 0.5, 0.25, 0.25; }
"""


def same(a, b):
    return (
        list(a.levels.items()) == list(b.levels.items())
        and a.parents == b.parents
        and all(np.array_equal(a.tables[v], b.tables[v]) for v in a.levels)
        and a.name == b.name
    )


def test_a_small_network():
    network = parse_bif(SMALL)
    assert network.name == "two words"
    assert network.levels == {"rain": ("yes", "no"), "wet grass": ("very wet", "Asy/Patch", "<5")}
    assert network.parents == {"rain": (), "wet grass": ("rain",)}
    np.testing.assert_array_equal(network.tables["wet grass"], [[0.5, 0.25, 0.25], [0.1, 0.2, 0.7]])
    assert network.notes == ()
    assert same(parse_bif(bif_text(network)), network)


@pytest.mark.parametrize("name", NETWORKS)
def test_the_four_networks_have_their_published_size_and_round_trip(networks_directory, tmp_path, name):
    network = read_bif(networks_directory / f"{name}.bif")
    nodes, arcs, parameters = NETWORKS[name]
    assert len(network.levels) == nodes
    assert sum(map(len, network.parents.values())) == arcs
    assert sum(t.size - t[..., 0].size for t in network.tables.values()) == parameters
    write_bif(network, tmp_path / "x.bif")
    again = read_bif(tmp_path / "x.bif")
    assert same(again, network) and again.notes == ()
    for table in network.tables.values():
        np.testing.assert_allclose(table.sum(axis=-1), 1, rtol=0, atol=1e-15)


def with_plain_labels(text):
    """pyAgrum cannot read labels such as Asy/Patch, <5 or 12+: spell each odd character out."""

    def plain(match):
        words = re.findall(r"[^\s,(){}]+", match.group())
        spelt = ["L" + re.sub(r"\W", lambda odd: f"_{ord(odd.group())}_", word) for word in words]
        return match.group()[0] + ", ".join(spelt) + match.group()[-1]

    text = re.sub(r"(?<=\] )\{[^}]*\}", plain, text)
    return re.sub(r"(?<=\n  )\([^)]*\)", plain, text)


@pytest.mark.parametrize("name", NETWORKS)
def test_agreement_with_pyagrum(networks_directory, tmp_path, name):
    gum = pytest.importorskip("pyagrum")
    path = networks_directory / f"{name}.bif"
    network = read_bif(path)
    plain = tmp_path / "plain.bif"
    plain.write_text(with_plain_labels(path.read_text()))
    theirs = gum.loadBN(str(plain))
    for variable, table in network.tables.items():
        cpt = theirs.cpt(variable)
        order = [*network.parents[variable], variable]
        assert set(cpt.names) == set(order)
        axes = list(reversed(cpt.names))  # their array has the axes in reverse
        ours = np.transpose(table, [order.index(axis) for axis in axes])
        np.testing.assert_allclose(ours, cpt.toarray(), rtol=0, atol=2e-7)


def test_child_keeps_its_labels(networks_directory):
    levels = read_bif(networks_directory / "child.bif").levels
    assert levels["ChestXray"][-1] == "Asy/Patch" and levels["LowerBodyO2"] == ("<5", "5-12", "12+")
    assert levels["CO2Report"] == ("<7.5", ">=7.5") and levels["CardiacMixing"][-1] == "Transp."


TWO = "variable a { type discrete [2] { x, y }; } variable b { type discrete [2] { u, v }; }"
C = "variable c { type discrete [3] { p, q, r }; }"
PRIORS = "probability (a) { table 0.5 0.5; } probability (b) { table 0.5 0.5; }"


def test_a_table_in_one_piece_has_the_variable_slowest_as_in_pyagrum(tmp_path):
    gum = pytest.importorskip("pyagrum")
    numbers = "0.1, 0.2, 0.3, 0.4, 0.2, 0.3, 0.4, 0.5, 0.7, 0.5, 0.3, 0.1"
    text = f"network n {{ }} {TWO}{C}{PRIORS}probability (c | a, b) {{ table {numbers}; }}"
    (tmp_path / "x.bif").write_text(text.replace("(", " ( ").replace(")", " ) "))
    ours = read_bif(tmp_path / "x.bif").tables["c"]
    np.testing.assert_array_equal(ours[0], [[0.1, 0.2, 0.7], [0.2, 0.3, 0.5]])
    theirs = gum.loadBN(str(tmp_path / "x.bif"))  # kept: a table dies with its network
    cpt = theirs.cpt("c")
    for a, b, c in np.ndindex(2, 2, 3):
        assert cpt[{"a": a, "b": b, "c": c}] == pytest.approx(ours[a, b, c])


def test_default_fills_what_is_left():
    text = f"{TWO}{C}{PRIORS}probability (c | a, b) {{ default 0.2, 0.3, 0.5; (y, u) 1.0, 0, 0; }}"
    table = parse_bif(text).tables["c"]
    np.testing.assert_array_equal(table[1, 0], [1, 0, 0])
    assert (table[[0, 0, 1], [0, 1, 1]] == [0.2, 0.3, 0.5]).all()


def test_the_oldest_dialect_has_no_bar():
    assert parse_bif(
        f'{TWO}probability("a") {{ table 1 0; }} probability ( "b" "a" ) {{ table .1 .2 .9 .8; }}'
    ).parents["b"] == ("a",)


def test_small_errors_of_rounding_are_mended_and_noted():
    network = parse_bif(f"{TWO}probability (a) {{ table 0.33333 0.66666; }} probability (b) {{ table 0.1 0.9; }}")
    assert network.tables["a"].sum() == pytest.approx(1, abs=1e-15)
    assert len(network.notes) == 1 and "'a'" in network.notes[0]
    with pytest.raises(FileFormatError, match=r"'a' sums to 0\.999 instead"):
        parse_bif(f"{TWO}probability (a) {{ table 0.333 0.666; }}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "line 1, column 1: it declares no variables"),
        ("hello", "line 1, column 1: expected 'network'"),
        (f"{TWO}\n  probability ( z )", "line 2, column 17: no variable 'z' is declared above"),
        (f"{TWO}\nprobability (a) {{ table 0.5, x; }}", "line 2, column 30: expected a number"),
        (f"{TWO}\nprobability (a) {{ table 0.5, -0.5; }}", r"line 2, column 30: -0\.5 is not a probability"),
        (f"{TWO}\nprobability (a) {{ table 0.5, 1.5; }}", r"1\.5 is not a probability"),
        (f"{TWO}\nprobability (a) {{ table 0.5, nan; }}", "expected a number"),
        (f"{TWO}\nprobability (a) {{ table 0.5, inf; }}", "expected a number"),
        (f"{TWO}\nprobability (a) {{ table 0.5, 1e999; }}", "not a probability"),
        (f"{TWO}\nprobability (a) {{ table 1; }}", "expected 2 numbers, found 1"),
        (f"{TWO}\nprobability (a) {{ table 0.5 0.5 0.5; }}", "more than 2 numbers"),
        (f"{TWO}\nprobability (a) {{ table 0.5 0.5; table 0.5 0.5; }}", "given twice"),
        (f"{TWO}\nprobability (a) {{ }}", "no probabilities are given"),
        (f"{TWO}\nprobability (a | b) {{ (u) 1 0; (u) 1 0; }}", "given twice"),
        (f"{TWO}\nprobability (a | b) {{ (u) 1 0; }}", r"no probabilities are given for \(v\)"),
        (f"{TWO}\nprobability (a | b) {{ (w) 1 0; }}", "line 2, column 24: 'b' has no value 'w'"),
        (f"{TWO}\nprobability (a | b) {{ (u, v) 1 0; }}", r"expected '\)', found 'v'"),
        (f"{TWO}\nprobability (a | b b) {{ }}", "'b' appears twice"),
        (f"{TWO}\nprobability (a | a) {{ }}", "'a' appears twice"),
        (f"{TWO}{PRIORS}\nprobability (a) {{ }}", "second probability block"),
        (f"{TWO}\nprobability (a) {{ table 1 0; }}", "no probability block for the variable 'b'"),
        (f"{TWO}probability (a|b) {{ default 1 0; }} probability (b|a) {{ default 1 0; }}", "cycle: a ← b ← a"),
        (f"{TWO}{TWO}", "'a' is declared twice"),
        ("variable a { type discrete [2] { x, x }; }", "'x' is listed twice"),
        ("variable a { type discrete [3] { x, y }; }", "column 29: 3 values are announced and 2 are listed"),
        ("variable a { type discrete [0] { }; }", "at least one value"),
        ("variable a { type continuous; }", "expected 'discrete'"),
        ("variable a { }", "has no type"),
        ('variable "" { }', "name is empty"),
        ("variable a { type discrete [2] { x, y }; property", "not closed"),
        ("/* never closed", "column 1: a quotation or a comment"),
        ('network "never closed {', "column 9: a quotation or a comment"),
        ("network x { junk }", "expected 'property'"),
        ("network x {", "found the end of the file"),
    ],
)  # fmt: skip
def test_errors_give_line_and_column(text, message):
    with pytest.raises(FileFormatError, match=message):
        parse_bif(text)


def test_huge_tables_are_refused_before_they_are_made():
    variables = "".join(
        f"variable v{i} {{ type discrete [9] {{ {' '.join(map(str, range(9)))} }}; }}" for i in range(40)
    )
    for parents in (10, 39):
        given = " ".join(f"v{i}" for i in range(1, parents + 1))
        begin = time.process_time()
        with pytest.raises(FileFormatError, match=r"'v0' is too large \(Limits.table_cells"):
            parse_bif(f"{variables} probability (v0 | {given}) {{ default {'0.125 ' * 8} 0; }}")
        assert time.process_time() - begin < 0.5
    many = "".join(f"variable v{i} {{ type discrete [1] {{ x }}; }}" for i in range(40))
    with pytest.raises(FileFormatError, match="31 parents"):
        parse_bif(f"{many} probability (v0 | {' '.join(f'v{i}' for i in range(1, 40))}) {{ default 1; }}")
    with pytest.raises(FileFormatError, match="too large"):
        parse_bif(SMALL, limits=Limits(table_cells=7))
    assert parse_bif(SMALL, limits=Limits(table_cells=8))


def test_a_long_chain_needs_no_deep_stack():
    n = 3000
    text = "".join(f"variable v{i} {{ type discrete [1] {{ x }}; }}" for i in range(n))
    text += "".join(f"probability (v{i} | v{(i + 1) % n}) {{ default 1; }}" for i in range(n))
    with pytest.raises(FileFormatError, match="cycle"):
        parse_bif(text)
    assert len(parse_bif(text.replace(f"(v{n - 1} | v0)", f"(v{n - 1})")).levels) == n


ODD = ["a//b", "/*", "//", '"', "\\", "\\\\", 'a\\"', "table", "default", "property", "(", "|", "x;y", " ", "\n", "0.5"]
names = st.sampled_from(ODD) | st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=8
)


@st.composite
def networks(draw):
    variables = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    levels = {v: tuple(draw(st.lists(names | st.just(""), min_size=1, max_size=3, unique=True))) for v in variables}
    parents = {
        v: tuple(draw(st.lists(st.sampled_from(variables[:i]), max_size=2, unique=True))) if i else ()
        for i, v in enumerate(variables)
    }
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    tables = {}
    for v in variables:
        shape = [len(levels[u]) for u in (*parents[v], v)]
        tables[v] = rng.dirichlet(np.full(shape[-1], draw(st.sampled_from([0.05, 1.0]))), size=shape[:-1])
    return NetworkData(draw(names), levels, parents, tables)


@settings(deadline=None)
@given(networks())
def test_round_trip_is_exact_whatever_the_names(network):
    back = parse_bif(bif_text(network))
    assert same(back, network) or back.notes  # a drawn row may sum to one only within 1e-12
    assert not back.notes


def test_names_that_no_file_can_hold():
    for name in ("a\x00", "\ud800"):
        with pytest.raises(InputError, match="cannot hold"):
            bif_text(NetworkData(name, {}, {}, {}))


def test_other_files_are_refused(tmp_path):
    with pytest.raises(FileFormatError, match="there is no file"):
        read_bif(tmp_path / "absent.bif")
    (tmp_path / "x.bif").write_bytes(b"PK\x03\x04\x00\x00\xff")
    with pytest.raises(FileFormatError, match=r"x\.bif"):
        read_bif(tmp_path / "x.bif")


def fuzz_bif(data, count, seed):
    rng = random.Random(seed)
    read = 0
    for _ in range(count):
        mutate = rng.choice(ACCIDENTS[:8])
        begin = time.process_time()
        try:
            network = read_bif(mutate(data, rng))
            read += 1
            assert all(np.isfinite(t).all() and math.isclose(t.sum(), t[..., 0].size) for t in network.tables.values())
        except FileFormatError as error:
            assert len(str(error)) < 1000
        assert time.process_time() - begin < 1
    return read


def test_fuzz_some_hundred_broken_files():
    data = bif_text(parse_bif(SMALL)).encode()
    assert 0 < fuzz_bif(data, 500, seed=3) < 400


@pytest.mark.slow
def test_fuzz_many_broken_files(networks_directory):
    for name in NETWORKS:
        fuzz_bif((networks_directory / f"{name}.bif").read_bytes(), 1000, seed=4)
