"""Files larger than memory: the same codes, sums, coins and clipped rows as in memory, and kind failures."""

import gzip
import os
import subprocess
import sys
from collections import Counter
from datetime import date
from decimal import Decimal
from fractions import Fraction

import engines
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engines import KEY, all_cells, mixed_domain, mixed_rows, same_sums, write_parquet
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from discreet import Curator, Marginals, PrivacyUnit, PureDP, encode, open_table
from discreet.audit import audit_replay, failures
from discreet.domain import Attribute, Domain
from discreet.encoding import encode_column
from discreet.errors import DiscreetError, EngineError, FileFormatError, InputError
from discreet.learn.networks.optimal import OptimalNetwork
from discreet.progress import listening
from discreet.tables import blocks, coins
from discreet.tables.arrow import encode_arrow
from discreet.tables.files import FileTable

ATTRIBUTES = [
    Attribute.categorical("words", ["1", "yes", "true", "é", "it's", ""]),
    Attribute.categorical("words, all foreseen", ["1", "no", "01"], missing="NA", other="other"),
    Attribute.categorical("numbers", [1, 0, -3, 2**40], outside="0"),
    Attribute.categorical("far numbers", [-(2**63), 2**63 - 1, 5], missing="7"),
    Attribute.categorical("flags", [True, False], missing="1"),
    Attribute.categorical("one", ["only"]),
    Attribute.numeric("bins", [-1, 0, 2.5, 1e6]),
    Attribute.numeric("bins, all foreseen", [0, 1, 2], missing="5", other="1"),
]
TEXTS = st.one_of(
    st.none(),
    st.sampled_from(
        ["1", "01", "1.0", "yes", "true", "True", "TRUE", "é", "e\u0301", "it's", "", " 1", "1_000", "nan"]
    ),
    st.sampled_from(["inf", "-3", "1e3", "٣", "NA", "other", "a\x00b", "\ufeff1", "[0, 1)"]),
    st.text(max_size=4),
    st.floats().map(str),
)
WHOLE = st.one_of(st.none(), st.integers(-5, 8), st.sampled_from([2**40, -(2**63), 2**63 - 1]))
COLUMNS = st.one_of(
    st.lists(TEXTS, max_size=12).map(lambda v: pa.array(v, pa.string())),
    st.lists(TEXTS, max_size=12).map(lambda v: pa.array(v, pa.large_string())),
    st.lists(TEXTS, max_size=12).map(lambda v: pa.array(v, pa.string()).dictionary_encode()),
    st.lists(WHOLE, max_size=12).map(lambda v: pa.array(v, pa.int64())),
    st.lists(st.one_of(st.none(), st.integers(0, 255)), max_size=12).map(lambda v: pa.array(v, pa.uint8())),
    st.lists(st.one_of(st.none(), st.integers(-128, 127)), max_size=12).map(lambda v: pa.array(v, pa.int8())),
    st.lists(st.one_of(st.none(), st.integers(0, 2**64 - 1)), max_size=12).map(lambda v: pa.array(v, pa.uint64())),
    st.lists(st.one_of(st.none(), st.floats()), max_size=12).map(lambda v: pa.array(v, pa.float64())),
    st.lists(st.one_of(st.none(), st.floats(width=32)), max_size=12).map(lambda v: pa.array(v, pa.float32())),
    st.lists(st.one_of(st.none(), st.booleans()), max_size=12).map(lambda v: pa.array(v, pa.bool_())),
    st.lists(st.one_of(st.none(), st.dates(date(1900, 1, 1), date(2100, 1, 1))), max_size=5).map(
        lambda v: pa.array(v, pa.date32())
    ),
    st.lists(st.one_of(st.none(), st.sampled_from([Decimal("1.00"), Decimal("2.50")])), max_size=5).map(
        lambda v: pa.array(v, pa.decimal128(5, 2))
    ),
    st.lists(st.none(), max_size=5).map(lambda v: pa.array(v, pa.null())),
    st.lists(st.one_of(st.none(), st.binary(max_size=3)), max_size=5).map(lambda v: pa.array(v, pa.binary())),
    st.lists(st.one_of(st.none(), st.lists(st.integers(0, 2), max_size=2)), max_size=5).map(
        lambda v: pa.array(v, pa.list_(pa.int64()))
    ),
)


@settings(max_examples=400, deadline=None)
@given(COLUMNS, st.sampled_from(ATTRIBUTES))
def test_arrow_columns_have_the_codes_of_their_values(column, attribute):
    expected = [int(encode_column([v], attribute)[0]) for v in column.to_pylist()]
    assert encode_arrow(column, attribute).tolist() == expected


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("rows")


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(COLUMNS.filter(len), st.sampled_from(ATTRIBUTES))
def test_parquet_has_the_codes_of_its_values(folder, column, attribute):
    path = folder / "one.parquet"
    pq.write_table(pa.table({attribute.name: column}), path)
    domain = Domain((attribute,))
    reference = encode(pq.read_table(path), domain)
    assert all_cells(open_table(path, domain)) == all_cells(reference)


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(codec="utf-8"), max_size=4), min_size=1, max_size=9), st.sampled_from(ATTRIBUTES))
def test_text_files_have_the_codes_of_memory(folder, values, attribute):
    path = folder / "one.csv"
    quoted = ['"' + v.replace('"', '""') + '"' if set(v) & set(',"\r\n') else v for v in values]
    path.write_bytes(("\n".join(['"value",z', *(f"{v},z" for v in quoted)]) + "\n").encode())
    domain = Domain((Attribute(**{**vars_of(attribute), "name": "value"}),))
    reference = encode({"value": [v or None for v in values]}, domain)
    assert all_cells(open_table(path, domain)) == all_cells(reference)


def vars_of(attribute):
    names = ("levels", "edges", "missing", "other", "outside", "integer", "peeked")
    return {name: getattr(attribute, name) for name in names}


# -- ways to store rows ------------------------------------------------------------------------------------------------


def as_csv(rows):
    import pandas as pd

    frame = pd.DataFrame({n: pd.Series(v, dtype=object) for n, v in rows.items()})
    return frame.to_csv(index=False).encode()


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    """The same rows, stored in many ways, and the reference in memory."""
    base = tmp_path_factory.mktemp("stored")
    rows = mixed_rows(2500, 1)
    text = as_csv(rows)
    (base / "plain.csv").write_bytes(text)
    (base / "mark.csv").write_bytes(b"\xef\xbb\xbf" + text)
    (base / "packed.csv.gz").write_bytes(gzip.compress(text))
    with pa.output_stream(base / "packed.csv.zst", compression="zstd") as out:
        out.write(text)
    write_parquet(base / "plain.parquet", rows)
    for i in range(3):
        part = {n: v[i * 1000 : (i + 1) * 1000] for n, v in rows.items()}
        write_parquet(base / f"part-{i}.parquet", part)
        # Every file has an order, and types, of its own.
        keys = list(part)
        part["number"] = pa.array(part["number"], [pa.int8(), pa.float64(), pa.int64()][i])
        write_parquet(base / f"odd-{i}.parquet", {n: part[n] for n in keys[i:] + keys[:i]})
    for number in {*rows["number"]}:
        chosen = [i for i, x in enumerate(rows["number"]) if x == number]
        name = "__HIVE_DEFAULT_PARTITION__" if number is None else number
        (base / "tree" / f"number={name}").mkdir(parents=True)
        part = {n: [v[i] for i in chosen] for n, v in rows.items() if n != "number"}
        write_parquet(base / "tree" / f"number={name}" / "part.parquet", part)
    (base / "tree" / "_SUCCESS").touch()
    return base, rows, encode(rows, mixed_domain(), unit="who")


# CSV knows no empty text: it is absent.
BINARY = ["plain.parquet", "part-*.parquet", "odd-*.parquet", "tree"]


@pytest.mark.parametrize("name", BINARY)
@pytest.mark.parametrize("engine", ["duckdb", "memory"])
def test_parquet_in_every_form_is_the_same_table(stored, name, engine):
    base, _, reference = stored
    assert same_sums(open_table(base / name, mixed_domain(), unit="who", engine=engine), reference, mixed_domain())


@pytest.mark.parametrize("name", ["plain.csv", "mark.csv", "packed.csv.gz", "packed.csv.zst"])
def test_text_in_every_form_is_the_same_table(stored, name):
    base, rows, _ = stored
    texts = {n: [None if v in (None, "") else str(v) for v in values] for n, values in rows.items()}
    reference = encode(texts, mixed_domain(), unit="who")
    assert same_sums(open_table(base / name, mixed_domain(), unit="who"), reference, mixed_domain())


@pytest.mark.parametrize("end", ["csv", "parquet"])
def test_all_columns_may_stand_in_the_path(tmp_path, end):
    (tmp_path / "word=yes").mkdir()
    path = tmp_path / "word=yes" / f"rows.{end}"
    write_parquet(path, {"x": ["1", "2", '"']}) if end == "parquet" else path.write_text('x,y\n1,1\n2,1\n"\n')
    assert words_table(tmp_path).count([("word",)])[0].tolist() == [3, 0]


# -- coins -------------------------------------------------------------------------------------------------------------


@pytest.fixture(params=["at once", "in parts"])
def memory(request, monkeypatch):
    """All rows at once; or many small parts, blocks and gatherings, as with rows far larger than memory."""
    if request.param == "in parts":
        monkeypatch.setattr("discreet.tables.files._PARTS_OF_MEMORY", 1 << 17)
        monkeypatch.setattr("discreet.tables.files.BLOCK_ROWS", 100)
        monkeypatch.setattr("discreet.tables.sources.BLOCK_ROWS", 100)
        monkeypatch.setattr(blocks, "_WAITING", 150)
    return request.param


def test_every_choice_is_that_of_memory(stored, memory):
    base, _, reference = stored
    table = FileTable(base / "plain.parquet", mixed_domain(), unit="who")
    if memory == "in parts":
        assert len(list(table._parts(KEY))) > 2
    for k in (1, 2, 5):
        assert all_cells(table.clip(k, KEY)) == all_cells(reference.clip(k, KEY))
    for left, right in ((table, reference), (table.without_persons(), reference.without_persons())):
        for a, b in zip(left.split(3, KEY), right.split(3, KEY), strict=True):
            assert all_cells(a) == all_cells(b)
        chosen, expected = left.sample(Fraction(1, 3), KEY), right.sample(Fraction(1, 3), KEY)
        assert all_cells(chosen) == all_cells(expected)
        assert all_cells(chosen.split(2, KEY)[1]) == all_cells(expected.split(2, KEY)[1])
    assert all_cells(table.clip(2, KEY).split(2, KEY)[0]) == all_cells(reference.clip(2, KEY).split(2, KEY)[0])


def test_removing_a_row_moves_no_other(tmp_path, memory):
    domain = Domain.of({"a": 3, "b": 2})
    rng = np.random.default_rng(5)
    rows = {"a": rng.integers(0, 3, 600).tolist(), "b": rng.integers(0, 2, 600).tolist()}
    whole = FileTable(write_parquet(tmp_path / "whole.parquet", rows), domain).split(4, KEY)
    for gone in (0, 17, 599):
        fewer = {n: v[:gone] + v[gone + 1 :] for n, v in rows.items()}
        less = FileTable(write_parquet(tmp_path / "less.parquet", fewer), domain).split(4, KEY)
        changes = [Counter(all_cells(a)) - Counter(all_cells(b)) for a, b in zip(whole, less, strict=True)]
        back = [Counter(all_cells(b)) - Counter(all_cells(a)) for a, b in zip(whole, less, strict=True)]
        assert sum(sum(c.values()) for c in changes) == 1
        assert not any(back)
        assert sum(changes, Counter()) == {(rows["a"][gone], rows["b"][gone]): 1}


@given(st.lists(st.lists(st.integers(0, 3), max_size=9), max_size=6))
def test_numbering_in_batches_is_numbering_at_once(batches):
    seen = coins.Seen()
    got = [seen.number(np.array(b, dtype=np.uint64)).tolist() for b in batches]
    whole = coins.occurrence(np.array([x for b in batches for x in b], dtype=np.uint64)).tolist()
    assert [x for b in got for x in b] == whole


@given(st.lists(st.integers(1, 300), min_size=1, max_size=20), st.data())
def test_words_are_one_to_one(sizes, data):
    row = st.tuples(*(st.integers(0, s - 1) for s in sizes))
    rows = data.draw(st.lists(row, min_size=2, max_size=6))
    words = coins.words_of([np.array(c) for c in zip(*rows, strict=True)], sizes)
    assert len(set(zip(*(w.tolist() for w in words), strict=True))) == len(set(rows))


# -- privacy -----------------------------------------------------------------------------------------------------------


def file_curator(folder):
    """Curators whose table went through a Parquet file."""
    made = iter(range(10**6))

    def make(table, unit, budget, ledger, **options):
        codes = {n: pa.array(c) for n, c in table._columns.items()}
        if table._persons is not None:
            codes["person"] = pa.array(table._persons.of_row)
        path = folder / f"audit-{next(made)}.parquet"
        pq.write_table(pa.table(codes), path)
        rows = FileTable(path, table.domain, unit=unit.column, threads=1)
        return Curator(rows, unit, budget, ledger, **options)

    return make


@pytest.mark.parametrize("unit", [PrivacyUnit(), PrivacyUnit("person", max_rows=2)], ids=["row", "person"])
def test_nothing_but_noise_tells_neighbouring_files_apart(tmp_path, unit):
    domain = Domain.of({"a": 2, "b": 3, "c": 2})

    def learn(curator):
        half, other = curator.partition(2, PureDP("1/2"))
        table = half.measure(Marginals(domain, [("a",)]))
        return table, OptimalNetwork({"b": ("a",), "c": ("a", "b")}).fit(curator), other.budget

    found = audit_replay(learn, domain, unit, PureDP(1), count=12, make_curator=file_curator(tmp_path))
    assert failures(found) == []


def test_an_audit_on_files_can_fail(tmp_path, monkeypatch):
    """Coins by position, the planted mistake: a row's block follows from how many rows stand before it."""
    domain = Domain.of({"a": 2, "b": 3})

    def by_position(parts, domain, key):
        at = 0
        for block in parts:
            place = [np.arange(at, at + block.rows, dtype=np.uint64)]
            yield block, coins.keyed_hash(key, place)
            at += block.rows

    monkeypatch.setattr(blocks, "coins_of", by_position)

    def learn(curator):
        return [block.measure(Marginals(domain, [("a", "b")])) for block in curator.partition(2)]

    found = audit_replay(learn, domain, PrivacyUnit(), PureDP(1), count=40, make_curator=file_curator(tmp_path))
    assert failures(found)


def test_encoded_rows_have_no_name_on_disk(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    path = write_parquet(tmp_path / "rows.parquet", mixed_rows(500, 2))
    with open_table(path, mixed_domain(), unit="who") as table:
        table.clip(2, KEY).split(2, KEY)
        assert os.listdir(tmp_path / "scratch") == []
        assert "500" not in repr(table)
    with pytest.raises(InputError, match="closed"):
        table.count([()])


def test_progress_tells_parts_and_never_numbers(tmp_path, monkeypatch):
    monkeypatch.setattr("discreet.tables.files.BLOCK_ROWS", 100)
    path = write_parquet(tmp_path / "rows.parquet", mixed_rows(1500, 2))
    heard = []
    with listening(lambda *what: heard.append(what)):
        open_table(path, mixed_domain(), threads=1).count([()])
    assert heard == [("reading the rows", done, 100) for done in range(101)]


def test_an_interrupt_spends_nothing_and_leaves_nothing(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    path = write_parquet(tmp_path / "rows.parquet", mixed_rows(500, 2))
    curator = Curator(open_table(path, mixed_domain()), budget=PureDP(1))

    def interrupt(label, done, total):
        raise KeyboardInterrupt

    query = Marginals(mixed_domain(), [("word",)])
    with pytest.raises(KeyboardInterrupt), listening(interrupt):
        curator.measure(query)
    assert curator.statement()["steps"] == []
    assert os.listdir(tmp_path / "scratch") == []
    assert len(curator.measure(query)) == 1  # and the whole budget is still there


# -- bad input ---------------------------------------------------------------------------------------------------------

SECRET = "Quetzalcoatl"


def words_table(path):
    return open_table(path, Domain.of({"word": ["yes", "no"]}))


def test_files_that_are_missing_or_do_not_fit(tmp_path):
    with pytest.raises(FileFormatError, match="there is no file"):
        words_table(tmp_path / "none.parquet")
    with pytest.raises(FileFormatError, match="no file matches"):
        words_table(tmp_path / "none-*.parquet")
    with pytest.raises(FileFormatError, match="no files in the folder"):
        words_table(tmp_path)
    with pytest.raises(InputError, match="not a local path"):
        words_table("s3://bucket/rows.parquet")
    write_parquet(tmp_path / "a.parquet", {"word": [SECRET]})
    write_parquet(tmp_path / "b.parquet", {"words": [SECRET]})
    with pytest.raises(InputError, match=r"b\.parquet names no column 'word'") as error:
        words_table(tmp_path / "*.parquet")
    assert SECRET not in str(error.value)
    (tmp_path / "a.csv").write_text(f"word;other\n{SECRET};{SECRET}\n")
    with pytest.raises(InputError, match=r"no column 'word' .*divided at ',' it has one field alone") as error:
        open_table(tmp_path / "a.csv", Domain.of({"word": ["yes"]}), delimiter=",")
    assert SECRET not in str(error.value)
    with pytest.raises(InputError, match="unit column"):
        open_table(tmp_path / "a.parquet", Domain.of({"word": ["yes"]}), unit="person")
    for limit in (0, -1, "many", "2 X", True):
        with pytest.raises(InputError, match="memory_limit"):
            open_table(tmp_path / "a.parquet", Domain.of({"word": ["yes"]}), memory_limit=limit)
    with pytest.raises(InputError, match="engine must be one of"):
        open_table(tmp_path / "a.parquet", Domain.of({"word": ["yes"]}), engine="duck")
    with pytest.raises(InputError, match="encode"):
        open_table({"word": [SECRET]}, Domain.of({"word": ["yes"]}))


def test_files_that_are_not_whole(tmp_path):
    path = write_parquet(tmp_path / "rows.parquet", {"word": [f"{SECRET} {i}" for i in range(5000)]})
    data = bytearray(path.read_bytes())
    path.write_bytes(data[:-10])
    with pytest.raises(FileFormatError, match="footer"):
        words_table(path)
    start = data.index(SECRET.encode())
    data[4 : start + 8] = b"\xff" * (start + 4)  # the first page of the column, not the footer
    path.write_bytes(data)
    curator = Curator(words_table(path), budget=PureDP(1))
    with pytest.raises(DiscreetError) as error:
        curator.measure(Marginals(curator.domain, [("word",)]))
    assert SECRET not in str(error.value)
    assert "rows.parquet" in str(error.value)
    assert curator.statement()["steps"] == []


def test_a_name_with_wildcards_is_taken_as_it_is(tmp_path):
    path = write_parquet(tmp_path / "rows[1]*.parquet", {"word": ["yes", "no"]})
    write_parquet(tmp_path / "rows1.parquet", {"word": ["yes"]})
    assert words_table(path).count([()])[0] == 2


def test_names_that_differ_in_case_and_odd_names(tmp_path):
    rows = {"a": [0, 0], "A": [1, 1], 'odd "name"': [1, 0], "dotted.name": [1, 1]}
    domain = Domain.of(dict.fromkeys(rows, 2))
    table = open_table(write_parquet(tmp_path / "rows.parquet", rows), domain)
    assert all_cells(table) == {(0, 1, 1, 1): 1, (0, 1, 0, 1): 1}


def test_a_file_without_rows(tmp_path):
    path = tmp_path / "empty.parquet"
    pq.write_table(pa.table({"word": pa.array([], pa.string()), "who": pa.array([], pa.int64())}), path)
    table = open_table(path, Domain.of({"word": ["yes", "no"]}), unit="who")
    assert table.count([(), ("word",)])[1].tolist() == [0, 0]
    assert all_cells(table.clip(2, KEY)) == {}
    assert [all_cells(t) for t in table.split(2, KEY)] == [{}, {}]
    assert table.in_memory().count([()])[0] == 0


FULL = """
import resource, sys
sys.dont_write_bytecode = True  # a compiled module would be cut off as well, and stay so
from discreet import Curator, Domain, Marginals, PureDP, open_table
resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))
domain = Domain.of({"word": ["yes", "no"]})
curator = Curator(open_table(sys.argv[1], domain), budget=PureDP(1))
try:
    curator.measure(Marginals(domain, [("word",)]))
except Exception as error:
    print(type(error).__name__, error, curator.statement()["steps"])
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs a limit on file sizes")
def test_a_full_disk_is_said_so(tmp_path):
    path = write_parquet(tmp_path / "rows.parquet", {"word": [SECRET] * 50_000})
    done = subprocess.run([sys.executable, "-c", FULL, str(path)], capture_output=True, text=True, check=True)
    assert "EngineError" in done.stdout
    assert "TMPDIR" in done.stdout
    assert done.stdout.strip().endswith("[]")
    assert SECRET not in done.stdout + done.stderr


def test_too_little_memory_is_said_so(tmp_path, monkeypatch):
    path = write_parquet(tmp_path / "rows.parquet", {"word": ["yes"]})

    def short(*_):
        raise pa.ArrowMemoryError(SECRET)

    monkeypatch.setattr("discreet.tables.sources.Sources._read", short)
    with pytest.raises(EngineError, match="smaller row groups") as error:
        words_table(path).count([()])
    assert SECRET not in str(error.value)


def test_a_column_that_is_there_twice_is_refused_by_the_footer(tmp_path):
    path = tmp_path / "rows.parquet"
    pq.write_table(pa.Table.from_arrays([pa.array(["yes"]), pa.array(["no"])], names=["word", "word"]), path)
    with pytest.raises(InputError, match=r"rows\.parquet names the column 'word' twice; rename"):
        words_table(path)


# -- odd values in Parquet ---------------------------------------------------------------------------------------------

FAR = [0, 1, -1, 2**53, 2**62, -(2**62), 2**63 - 1, -(2**63), 253402300800 * 10**3, 9223372036854776, -9223372036854776]
NEAR = [0, 1, -1, 2**31 - 1, -(2**31), 2932897, -719163, 86_400_001]
TEXT_BYTES = [
    b"yes",
    b"",
    b"{",
    b"[1",
    b"nul",
    b"\x00",
    b"\xff",
    b"\xc3(",
    b"\xed\xa0\x80",
    b"yes\xff",
    b"\xef\xbb\xbfyes",
]


def as_type(kind, values, storage):
    """An array of any type from the numbers or bytes behind it, sensible or not."""
    stored = pa.array(values, storage)
    return pa.Array.from_buffers(kind, len(values), stored.buffers())


def odd_arrays():
    """For each type: an ordinary value, then one that may be odd."""
    for unit in ("ms", "us", "ns"):
        for zone in (None, "Europe/Berlin"):
            yield from ((pa.timestamp(unit, zone), [0, v], pa.int64()) for v in FAR)
        yield from ((pa.duration(unit), [0, v], pa.int64()) for v in FAR)
    for kind in (pa.time64("us"), pa.time64("ns"), pa.date64(), pa.uint64(), pa.float64()):
        yield from ((kind, [0, v], pa.int64()) for v in FAR)
    for kind in (pa.time32("ms"), pa.time32("s"), pa.date32(), pa.uint32(), pa.float32()):
        yield from ((kind, [0, v], pa.int32()) for v in NEAR)
    yield from ((pa.float16(), [0, v], pa.int16()) for v in (1, 0x7C00, -1, 0x7E01))
    yield from ((pa.string(), [b"yes", v], pa.binary()) for v in TEXT_BYTES)
    for kind in (pa.decimal128(38, 0), pa.decimal128(38, 38), pa.decimal128(5, 2)):
        yield from ((kind, [bytes(16), v], pa.binary(16)) for v in (b"\xff" * 16, b"\x7f" * 16, b"\x80" + bytes(15)))
    yield from ((pa.decimal256(76, 0), [bytes(32), v], pa.binary(32)) for v in (b"\xff" * 32, b"\x7f" * 32))


def odd_tables():
    for kind, values, storage in odd_arrays():
        array = as_type(kind, values, storage)
        yield array, {}
        if kind == pa.string():
            yield array, {"use_dictionary": False}
            yield pa.DictionaryArray.from_arrays(pa.array([0, 1], pa.int32()), array), {}
            yield pa.ListArray.from_arrays(pa.array([0, 1, 2], pa.int32()), array), {}
            yield pa.StructArray.from_arrays([array], ["inner"]), {}
            if hasattr(pa, "json_"):
                yield pa.ExtensionArray.from_storage(pa.json_(), array), {}
        if kind == pa.timestamp("ns"):
            yield array, {"use_deprecated_int96_timestamps": True}


@pytest.mark.parametrize("attribute", [ATTRIBUTES[1], ATTRIBUTES[7]], ids=lambda a: a.name)
def test_no_value_of_any_type_makes_a_fit_fail_or_moves_another_row(tmp_path, attribute):
    domain = Domain((Attribute(**{**vars_of(attribute), "name": "x"}),))
    path = tmp_path / "one.parquet"

    def cells(array, options, **more):
        pq.write_table(pa.table({"x": array}), path, **options)
        return Counter(all_cells(open_table(path, domain, threads=1, **more)))

    for array, options in odd_tables():
        alone, odd = cells(array[:1], options), cells(array[1:], options)
        assert cells(array, options) == alone + odd and odd.total() == 1, array.type
        assert cells(array, options, unit="x").total() <= 2, array.type


# -- learners ----------------------------------------------------------------------------------------------------------


def test_sums_of_gradients_are_the_same_to_the_last_unit(tmp_path, monkeypatch):
    monkeypatch.setattr("discreet.tables.files.BLOCK_ROWS", 1000)
    domain = Domain.of({f"x{i}": 2 for i in range(8)})
    rng = np.random.default_rng(3)
    rows = {n: rng.integers(0, 2, 20_000) for n in domain.names}
    table = open_table(write_parquet(tmp_path / "rows.parquet", rows), domain, threads=2)
    query = engines.gradients(domain)
    assert np.array_equal(table.stream(query)[0], encode(rows, domain).stream(query)[0])
