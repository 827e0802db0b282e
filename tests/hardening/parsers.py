"""Rows of the table about files and words from anywhere: typed errors only, at most a second and 200 MB for each.

Inputs are good ones, damaged: bytes and pieces of text moved, repeated, cut and replaced, values of JSON replaced by
odd ones, archives sealed again with a valid checksum. Which input an attempt makes follows from its number alone.
"""

from __future__ import annotations

import contextlib
import copy
import functools
import io
import json
import os
import random
import re
import resource
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from mutations import ACCIDENTS, MALICE

from discreet import Curator, Domain, Ledger, PrivacyUnit, PureDP, Release, Spec, encode, open_table
from discreet.cli import run as command
from discreet.cli.choices import merged
from discreet.cli.prepared import prepare
from discreet.errors import DiscreetError, EngineError, LedgerError, MissingPackageError
from discreet.files import load_bif, load_uai, open_model
from discreet.frames import public_rows
from discreet.learn.fields.purpose import workload_of
from discreet.learn.graph_files import read_graph
from discreet.learn.structure.result import StructureResult
from discreet.privacy.query import Marginals
from discreet.schema import load_totals, parse_schema, schema_text

from .table import Row, Seen

SECONDS, MEGABYTES = 1.0, 200
WHOLE = 100_000
LONGEST_MESSAGE = 5_000
Try = Callable[[bytes, random.Random], Any]

# -- damage ------------------------------------------------------------------------------------------------------------

NUMBERS = [
    b"0", b"-1", b"1e999", b"-1e999", b"1e-400", b"1e999999999", b"nan", b"NaN", b"inf", b"-Infinity", b"0x10",
    b"1_000", b"00", b".5", b"5.", b"9" * 30, b"9" * 5_000, b"18446744073709551616", b"4611686018427387904", b"1/3",
    b"1/0", b"-0.0", b"3.7", "٣".encode(), "１".encode(),
]  # fmt: skip
TEXTS = [
    b"", b" ", b"\t", b"\n", b"\r", b"\r\n", b"\x00", b"\x1b[2J", b'"', b"'", b'"""', b"\\", b"\\u0000", b"\\ud800",
    b"#", b"//", b"/*", b"*/", b"(", b")", b"[", b"]", b"{", b"}", b"|", b",", b";", b"=", b"->", b"<->", b"--", b"<=",
    b"!=", b"*", b"?", b"~", b"null", b"true", b"false", b"None", b"../", b"/dev/zero", b"\xff\xfe", b"\xed\xa0\x80",
    b"\xc3", b"\xef\xbb\xbf", "é".encode(), "e\u0301".encode(), "\u202e".encode(), "\u2028".encode(), "ǅ".encode(),
    "\U0001f600".encode(), "ß".encode(), "İ".encode(), b"x" * 300, b"x" * 70_000, b"[" * 3_000, b"{" * 3_000,
    b"(" * 3_000, b'{"a":' * 2_000, b"a." * 2_000, b"~" * 3_000, b'"' * 3_001, b"1979-05-27", b"07:32:00",
    b"2024-02-30", b"0000-00-00", b"99999-01-01",
]  # fmt: skip
WORD = re.compile(rb"[A-Za-z_]+|[0-9.eE+-]+|[^\sA-Za-z0-9]")


def damaged_text(data: bytes, rng: random.Random, words: tuple[bytes, ...] = ()) -> bytes:
    """One to four changes to a text: of its bytes, of its words, of its lines."""
    for _ in range(rng.choice((1, 1, 2, 4))):
        places = list(WORD.finditer(data))
        kind = rng.randrange(9)
        at = rng.randint(0, len(data))
        if kind == 0 or not places:
            data = data[:at] + rng.choice(TEXTS) + data[at:]
        elif kind == 1:
            data = rng.choice(ACCIDENTS[:8])(data, rng) if data else data
        elif kind in (2, 3):
            spot = rng.choice(places)
            data = data[: spot.start()] + rng.choice([*NUMBERS, *TEXTS, *words]) + data[spot.end() :]
        elif kind == 4:
            one, other = rng.choice(places), rng.choice(places)
            data = data[: one.start()] + other[0] + data[one.end() :]
        elif kind == 5:
            spot = rng.choice(places)
            data = data[: spot.start()] + data[spot.end() :]
        elif kind == 6:
            lines = data.split(b"\n")
            i, j = rng.randrange(len(lines)), rng.randrange(len(lines))
            lines[i], lines[j] = (lines[j], lines[i]) if rng.random() < 0.5 else (lines[i] + b"\n" + lines[j], lines[j])
            data = b"\n".join(lines)
        elif kind == 7:
            end = rng.randint(at, min(len(data), at + 60))
            data = data[:at] + data[at:end] * rng.choice((2, 3, 1_000)) + data[end:]
        else:
            numbers = [p for p in places if p[0][:1].isdigit()] or places
            spot = rng.choice(numbers)
            data = data[: spot.start()] + rng.choice(NUMBERS) + data[spot.end() :]
    return data


ODD: list[Any] = [
    None, True, False, 0, -1, 0.5, 1e308, 2**63, 2**64, -(2**70), 10**400, float("inf"), float("nan"), "", "x", "\x00",
    "\ud800", "x" * 5_000, "1", "1/3", "1/0", "1e999", "1e999999999", "nan", [], {}, [[]], [0], [None], ["a"],
    ["a", "a"], {"": 0}, {"x": 1}, [[[[[[0]]]]]], list(range(300)), {"epsilon": 1}, {"notion": "pure", "epsilon": "1"},
    {"notion": "zcdp", "rho": 0.1}, {"notion": "pure", "epsilon": -1}, "marginals", "laplace",
]  # fmt: skip


def odd(rng: random.Random) -> Any:
    """One of them, of its own: it may be damaged in its turn."""
    return copy.deepcopy(rng.choice(ODD))


def damaged_json(document: Any, rng: random.Random) -> Any:
    """A copy of which one to three values, anywhere, are odd, gone, doubled, or those of another place."""
    document = json.loads(json.dumps(document))
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        spots = [(d, k) for d in _inner(document) for k in (list(d) if isinstance(d, dict) else range(len(d)))]
        if not spots:
            return odd(rng)
        node, key = rng.choice(spots)
        kind = rng.randrange(6)
        if kind <= 2:
            node[key] = odd(rng)
        elif kind == 3:
            del node[key]
        elif kind == 4:
            other, name = rng.choice(spots)
            with contextlib.suppress(LookupError, TypeError):
                node[key] = json.loads(json.dumps(other[name]))
        elif isinstance(node, dict):
            node[rng.choice(["x", "", "columns", "levels", "epsilon", "kind"])] = odd(rng)
        else:
            node.insert(key, copy.deepcopy(rng.choice([*ODD, node[key]])))
    return document


def _inner(node: Any) -> Iterator[Any]:
    if isinstance(node, dict | list):
        yield node
        for value in node.values() if isinstance(node, dict) else node:
            yield from _inner(value)


def json_bytes(document: Any) -> bytes:
    return json.dumps(document, ensure_ascii=True).encode()


# -- what is read ------------------------------------------------------------------------------------------------------

SCHEMA = b"""\
# what is public
[columns]
smoke = { levels = ["yes", "no"] }

[columns.age]
edges = [0, 18, 65, 120]
missing = "unknown"

[columns.job]
levels = ["nurse", "clerk"]
other = "none of these"

[columns.visits]
range = [0, 5]
bins = "private"
integer = true

[columns.born]
dates = {from = 1990-01-01, to = 1999-12-31, by = "year"}

[[impossible]]
smoke = "yes"
job = "clerk"

[[totals]]
columns = ["smoke"]
counts = [20, 80]

[[totals]]
columns = ["job", "smoke"]
proportions = [[0.1, 0.2], [0.0, 0.3], [0.2, 0.2]]
"""
PLAIN_SCHEMA = '[columns.smoke]\nlevels = ["yes", "no"]\n[columns.age]\nedges = [0, 18, 65, 120]\n'
PLAIN_SCHEMA += '[columns.job]\nlevels = ["nurse", "clerk"]\nother = "else"\n'
RUN = b"""\
schema = "schema.toml"
data = "rows.csv"
output = "model.zip"
epsilon = "1"
relation = "add-remove"
family = "network"
method = "optimal"
graph = "smoke -> job; age -> job"
public-size = 1000

[options]
step_back = true

[card]
name = "a release"
intended_use = "tests"
"""
CSV = (
    b'smoke,age,job,note\nyes,34,nurse,"two\nlines"\nno,,clerk,"a ""word"""\nmaybe,17,,plain\n'
    b'yes,1e3,"nurse",\nno,-5,clerk\nyes,70,nurse,x,y\n'
)
QUESTIONS = [
    b"P(age | smoke=yes)", b"P(age >= 18, job in {nurse, clerk})", b"E(age | job)", b"P(smoke)", b"SD(age | smoke=no)",
    b"QUANTILE(age, 0.9 | job=else)", b"MAP(job | age < 65)", b"MAP(smoke, job)", b"E(age | smoke != yes)",
    b"P('job' = \"nurse\" | age >= 18)",
]  # fmt: skip
WORKLOADS = [b"smoke,age 2; age,job", b"smoke,age,job 0.5\nsmoke,job\n# a remark\n", b"pairs", b"triples"]
WORKLOAD = {"workload": [{"columns": ["smoke", "age"], "weight": 2}, ["age", "job"]]}
GRAPH_WORDS = (b"smoke", b"age", b"job", b"BAYES", b"MARKOV", b"variable", b"probability", b"table", b"default")
MARKOV = b"MARKOV\n3\n2 3 2\n2\n2 0 1\n2 1 2\n\n6\n1 2 3 4 5 6\n\n6\n0.1 0 0.3\n1e3 5 6\n"
BAYES = b"BAYES\n2\n2 2\n2\n1 0\n2 0 1\n\n2\n0.3 0.7\n\n4\n0.1 0.9\n0.5 0.5\n"


SPINS = Domain.of({"a": 2, "b": 2, "c": 2})


@functools.lru_cache(maxsize=1)
def domain() -> Domain:
    return parse_schema(PLAIN_SCHEMA)


@functools.lru_cache(maxsize=1)
def rows() -> Any:
    rng = np.random.default_rng(2)
    columns = {"smoke": rng.choice(["yes", "no"], 300), "age": rng.integers(0, 100, 300)}
    return encode({**columns, "job": rng.choice(["nurse", "clerk", "x"], 300)}, domain())


@functools.lru_cache(maxsize=1)
def releases() -> tuple[bytes, ...]:
    """A network, a field, a certified one, and noisy tables alone, as files."""
    out = []
    specs = [
        Spec("network", "optimal", {"graph": {"job": ["smoke", "age"]}}),
        Spec("field", "noise_aware", {"cliques": [["smoke", "age"], ["age", "job"]]}),
        Spec("network", "optimal", {"graph": {"job": ["smoke"]}}, certify=0.2),
    ]
    for number, spec in enumerate(specs):
        with Curator(rows(), PrivacyUnit(), PureDP(2)) as curator:
            Release.of(spec.learn(curator), {"epsilon": "2"}, {"name": "x"}).save(f"good{number}.zip")
        out.append(Path(f"good{number}.zip").read_bytes())
    with Curator(rows(), PrivacyUnit(), PureDP(2)) as curator:
        curator.measure(Marginals(domain(), [("smoke", "age")])).save("sums.zip")
    return (*out, Path("sums.zip").read_bytes())


@functools.lru_cache(maxsize=1)
def model() -> Any:
    Path("model.zip").write_bytes(releases()[0])
    return open_model("model.zip")


@functools.lru_cache(maxsize=1)
def bif() -> bytes:
    from discreet import networks

    networks.load("asia").save("asia.bif")
    return Path("asia.bif").read_bytes()


@functools.lru_cache(maxsize=1)
def saved_graph() -> Any:
    bits = encode({name: np.arange(300) // k % 2 for k, name in enumerate(SPINS, start=1)}, SPINS)
    with Curator(bits, PrivacyUnit(), PureDP(3)) as curator:
        Spec("structure", "selected_edges", {}).learn(curator).model.save("graph.json")
    return json.loads(Path("graph.json").read_text())


@functools.lru_cache(maxsize=1)
def ledger() -> tuple[bytes, bytes, bytes]:
    import test_damaged_ledgers

    class Places:
        def mktemp(self, name: str) -> Path:
            Path(name).mkdir()
            return Path(name).resolve()

    made: tuple[bytes, bytes, bytes] = test_damaged_ledgers.whole.__wrapped__(Places())  # type: ignore[attr-defined]
    return made


# -- one parser each ---------------------------------------------------------------------------------------------------


def text_of(data: bytes) -> str:
    return data.decode("utf-8", "replace")


def ask(rng: random.Random) -> None:
    words = (b"smoke", b"age", b"job", b"nurse", b"or", b"in", b"not", b"P", b"E", b"and", b"between", b"argmax")
    data = damaged_text(rng.choice(QUESTIONS), rng, words)
    model().ask(text_of(data))


def run_file(rng: random.Random) -> None:
    Path("schema.toml").write_text(PLAIN_SCHEMA)
    words = (
        b"rho",
        b"delta",
        b"cliques",
        b"unit",
        b"max_rows",
        b"workload",
        b"target",
        b"replace-one",
        b"field",
        b"spin",
    )
    Path("run.toml").write_bytes(damaged_text(RUN, rng, words))
    prepare(merged(Path("run.toml"), {}))


def schema(rng: random.Random) -> None:
    words = (b"bins", b'"private"', b"peeked", b"rules", b"impossible", b"step", b"format", b"decimals", b"missing")
    text = text_of(damaged_text(SCHEMA, rng, words))
    read = parse_schema(text)
    assert parse_schema(schema_text(read)) == read, "written and read again it is another schema"
    Path("s.toml").write_text(text)
    load_totals(Path("s.toml"), read)


def uai(rng: random.Random) -> None:
    Path("x.uai").write_bytes(damaged_text(rng.choice((MARKOV, BAYES)), rng, GRAPH_WORDS))
    load_uai("x.uai")


def of_bif(rng: random.Random) -> None:
    load_bif(damaged_text(bif(), rng, GRAPH_WORDS))


def graph_json(rng: random.Random) -> None:
    good = saved_graph()
    data = json_bytes(damaged_json(good, rng)) if rng.random() < 0.7 else damaged_text(json_bytes(good), rng)
    Path("x.json").write_bytes(data)
    with contextlib.suppress(DiscreetError):
        read_graph(Path("x.json"), SPINS)
    StructureResult.load(Path("x.json"))


def rows_table(place: str) -> None:
    table = open_table(place, domain())
    table.count([("smoke", "age"), ("job",)])


def parquet(rng: random.Random) -> None:
    """Columns of any type and values, which must be read or refused by their type; and damaged bytes."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    columns = {name: _odd_column(rng) for name in domain().names}
    out = io.BytesIO()
    with contextlib.suppress(pa.ArrowException, OverflowError):
        pq.write_table(pa.table(columns), out, compression=rng.choice(["none", "snappy", "zstd"]))
    data = out.getvalue()
    if data and rng.random() < 0.5:
        data = rng.choice(ACCIDENTS[:8])(data, rng)
    Path("x.parquet").write_bytes(data)
    rows_table("x.parquet")


def _odd_column(rng: random.Random) -> Any:
    import pyarrow as pa

    texts = ["yes", "no", "nurse", "", "1e999", " yes", "\x00", "é", "x" * 2_000, "nan", None]
    bits = [0, 1, -1, 17, 2**31, 2**62, -(2**63), None]
    makers: list[Callable[[], Any]] = [
        lambda: pa.array([rng.choice(texts) for _ in range(6)]),
        lambda: pa.array([rng.choice(texts) for _ in range(6)], pa.large_string()),
        lambda: pa.array([rng.choice(texts) for _ in range(6)]).dictionary_encode(),
        lambda: pa.array([rng.choice(bits) for _ in range(6)], pa.int64()),
        lambda: pa.array([rng.choice([0.0, -0.0, 1e308, float("nan"), float("inf"), 17.5, None]) for _ in range(6)]),
        lambda: pa.array([rng.choice(bits) for _ in range(6)]).cast(pa.timestamp(rng.choice(["s", "ms", "us", "ns"]))),
        lambda: pa.array([rng.choice([0, 1, 17, -5, 2**31 - 1, None]) for _ in range(6)], pa.int32()).cast(pa.date32()),
        lambda: pa.array([rng.choice(bits) for _ in range(6)]).cast(pa.duration("us")),
        lambda: pa.array([rng.choice([b"yes", b"\xff\xfe", b"", None]) for _ in range(6)], pa.binary()),
        lambda: pa.array([rng.choice([[1], [], None, [2, 3]]) for _ in range(6)]),
        lambda: pa.array([rng.choice([{"a": 1}, {"a": None}, None]) for _ in range(6)]),
        lambda: pa.array([rng.choice([True, False, None]) for _ in range(6)]),
        lambda: pa.nulls(6),
        lambda: pa.array([rng.choice([0, 1, 2, 3]) for _ in range(6)], pa.uint64()).cast(pa.decimal128(38, 3)),
        lambda: pa.array([rng.choice([0, 1, 65, 120]) for _ in range(6)], pa.int32()).cast(pa.time32("ms")),
        lambda: pa.array([rng.choice([1.0, 2.0, None]) for _ in range(6)], pa.float16()),
    ]
    for _ in range(9):
        with contextlib.suppress(pa.ArrowException, OverflowError):
            return rng.choice(makers)()
    return pa.nulls(6)


def csv(rng: random.Random) -> None:
    """Behind a good first line, no bytes whatever may fail; nor may they count for more rows than there are lines."""
    first, _, rest = CSV.partition(b"\n")
    body = damaged_text(rest, rng, (b'"', b'",', b',"', b"yes", b"\r"))
    end = rng.choice((b"\n", b"\r\n"))
    whole = rng.random() < 0.2
    data = damaged_text(CSV, rng) if whole else first + end + body.replace(b"\n", end)
    Path("x.csv").write_bytes(data)
    try:
        table = open_table("x.csv", domain(), row_is_line=rng.random() < 0.5)
        counted = int(table.count([()])[0])
    except DiscreetError as error:
        assert whole, f"rows made reading fail: {error}"
        raise
    assert counted <= data.count(b"\n") + 1, "more rows than lines"


def archive(rng: random.Random) -> None:
    mutate = rng.choice(ACCIDENTS + MALICE)
    data = mutate(rng.choice(releases()), rng)
    Path("x.zip").write_bytes(data)
    with contextlib.suppress(DiscreetError):
        Release.load(data)
    told(["verify", "x.zip", "--no-refit"], (0, 1, 4, 5, 6, 7, 8))
    told(["show", "x.zip"], (0, 4, 5))


def card(rng: random.Random) -> None:
    """The header of a release, sealed again: card, books, specification and certificate hold anything."""
    from mutations import sealed, taken_apart

    header, arrays = taken_apart(rng.choice(releases()))
    document = damaged_json(json.loads(header), rng)
    Path("x.zip").write_bytes(sealed(json_bytes(document), arrays))
    told(["verify", "x.zip", "--no-refit"], (0, 1, 4, 5, 6, 7, 8))
    told(["show", "x.zip"], (0, 4, 5))
    told(["show", "x.zip", "--json"], (0, 4, 5))


def told(words: list[str], codes: tuple[int, ...]) -> None:
    """A command that ends with one of these exit codes, with words."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = command(words)
    assert code in codes, f"{words[0]} ends with {code}: {err.getvalue()[-400:]}"
    assert code == 0 or err.getvalue() or out.getvalue(), f"{words[0]} ends with {code} and says nothing"


def of_ledger(rng: random.Random) -> None:
    import test_damaged_ledgers

    made = ledger()
    folder = Path("damaged").resolve()
    folder.mkdir(exist_ok=True)
    path = test_damaged_ledgers.damaged(folder, made, rng)
    with contextlib.suppress(LedgerError), Ledger.open(path) as opened:
        _ = opened.entries, opened.spent, opened.remaining, opened.unit, opened.head, opened.verify()
        opened.charge(PureDP("0.125"), PrivacyUnit())
    told(["ledger", "verify", str(path)], (0, 1, 4, 8, 10))


def workload(rng: random.Random) -> None:
    kind = rng.randrange(3)
    if kind == 0:
        workload_of(text_of(damaged_text(rng.choice(WORKLOADS), rng, GRAPH_WORDS)), domain())
        return
    name = rng.choice(["w.json", "w.toml", "w.txt"])
    good = {"w.json": json_bytes(WORKLOAD), "w.txt": WORKLOADS[1]}.get(
        name, b'workload = [{columns = ["smoke", "age"], weight = 2}, ["age", "job"]]'
    )
    if kind == 1 and name == "w.json":
        Path(name).write_bytes(json_bytes(damaged_json(WORKLOAD, rng)))
    else:
        Path(name).write_bytes(damaged_text(good, rng, GRAPH_WORDS))
    workload_of(Path(name), domain())


def given_rows(rng: random.Random) -> None:
    """Public rows to complete: a file that is not what it should be is refused in words."""
    if rng.random() < 0.6:
        path = Path("g.csv")
        path.write_bytes(damaged_text(b"smoke,age,job\nyes,,nurse\n,30,\nno,70,clerk\n", rng, (b"smoke", b"elder")))
    else:
        import pyarrow as pa
        import pyarrow.parquet as pq

        path = Path("g.parquet")
        out = io.BytesIO()
        with contextlib.suppress(pa.ArrowException, OverflowError):
            pq.write_table(pa.table({name: _odd_column(rng) for name in domain().names}), out)
        data = out.getvalue()
        path.write_bytes(rng.choice(ACCIDENTS[:8])(data, rng) if data and rng.random() < 0.5 else data)
    model().complete(public_rows(path), 1)


# -- trying them -------------------------------------------------------------------------------------------------------


def trying(one: Callable[[random.Random], None], name: str) -> Callable[[int, int, Seen], None]:
    def run(first: int, count: int, seen: Seen) -> None:
        ready()
        for number in range(first, first + count):
            seen.at(number)
            rng = random.Random(f"{name} {number}")
            begin, before = time.process_time(), memory_of_now()
            try:
                one(rng)
                seen.count("read")
            except (EngineError, MissingPackageError) as error:
                if "cannot be read" not in str(error) and one not in (parquet, given_rows):
                    seen.wrong(number, f"{type(error).__name__}: {error}")
            except DiscreetError as error:
                seen.count("refused")
                if not 0 < len(str(error)) < LONGEST_MESSAGE:
                    seen.wrong(number, f"a message of {len(str(error)):,} characters: {str(error)[:100]}")
            except BaseException as error:
                if os.environ.get("TABLE_SHOWS"):
                    raise
                seen.wrong(number, _raw(error))
            took, held = time.process_time() - begin, (memory_peak() - before) / 1e6
            seen.most("most seconds", took)
            seen.most("most MB", held)
            if took > SECONDS:
                seen.wrong(number, f"took {took:.1f} s")
            if held > MEGABYTES:
                seen.wrong(number, f"took {held:.0f} MB")

    return run


def _raw(error: BaseException) -> str:
    import traceback

    frames = traceback.extract_tb(error.__traceback__)
    ours = [f for f in frames if "/discreet/" in f.filename] or frames
    return f"{type(error).__name__} at {Path(ours[-1].filename).name}:{ours[-1].lineno}: {error}"


@functools.lru_cache(maxsize=1)
def ready() -> None:
    """Good ones of all kinds are made and read, and all that is imported late is imported: no part of an attempt."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    model(), bif(), saved_graph(), ledger()
    Path("x.csv").write_bytes(CSV)
    rows_table("x.csv")
    Path("g.csv").write_bytes(b"smoke,age,job\nyes,,nurse\n")
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table(public_rows(Path("g.csv"))), "x.parquet")
    rows_table("x.parquet")
    model().complete(public_rows(Path("g.csv")), 1)
    for words in (["verify", "model.zip", "--no-refit"], ["show", "model.zip"]):
        told(words, (0,))
    for question in QUESTIONS:
        model().ask(question.decode())
    for text in WORKLOADS:
        workload_of(text.decode(), domain())
    for text in (MARKOV, BAYES):
        Path("x.uai").write_bytes(text)
        load_uai("x.uai")
    load_bif(bif())
    Path("s.toml").write_bytes(SCHEMA)
    load_totals(Path("s.toml"), parse_schema(SCHEMA.decode()))
    Path("schema.toml").write_text(PLAIN_SCHEMA)
    Path("run.toml").write_bytes(RUN)
    prepare(merged(Path("run.toml"), {}))
    StructureResult.load(Path("graph.json"))
    shutil.rmtree("damaged", ignore_errors=True)


def memory_of_now() -> int:
    """What this process holds; its peak is counted from here on."""
    Path("/proc/self/clear_refs").write_text("5")
    return _status("VmRSS")


def memory_peak() -> int:
    return _status("VmHWM")


def _status(word: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(word):
            return 1024 * int(line.split()[1])
    raise AssertionError(word)


FUZZED: dict[str, Callable[[random.Random], None]] = {
    "query language": ask,
    "run file": run_file,
    "schema": schema,
    "UAI": uai,
    "BIF": of_bif,
    "graph (JSON)": graph_json,
    "Parquet": parquet,
    "CSV": csv,
    "release": archive,
    "card": card,
    "ledger": of_ledger,
    "workload": workload,
    "rows for --given": given_rows,
}


def _facts(facts: dict[str, float]) -> str:
    refused = f"{facts.get('refused', 0):,.0f} refused"
    return f"{refused}, at most {facts.get('most seconds', 0):.2f} s, {facts.get('most MB', 0):.0f} MB"


ROWS = [
    Row(f"fuzzed: {name}", "typed errors only, ≤ 1 s, ≤ 200 MB", WHOLE, 200, 500, trying(one, name), "inputs", _facts)
    for name, one in FUZZED.items()
]
