"""Windows of people's sequences: what they hold, whose they are, and that nobody's odd rows move another's."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from discreet import PrivacyUnit
from discreet.domain import Attribute
from discreet.errors import InputError, SchemaError
from discreet.privacy.budget import PureDP
from discreet.privacy.curator import Curator, ExactCurator
from discreet.privacy.queries.chains import ChainTables
from discreet.tables.base import WEIGHT_UNITS
from discreet.tables.windows import Windows, windows

PLACES = Attribute.categorical("place", ["away", "hall", "desk"])
ROWS = {
    "who": ["b", "a", "a", "a", "b", None, "a", "a"],
    "when": [2, 3, 1, 2, 1, 1, 4, 5],
    "place": ["desk", "away", "hall", "hall", "away", "hall", "desk", "desk"],
}


def made(rows: Any, **how: Any) -> list[tuple[str, ...]]:
    """The windows as words, in any order."""
    table = windows(rows, PLACES, person="who", time="when", **how)
    return sorted(tuple(PLACES.labels[table._columns[n][i]] for n in table.domain.names) for i in range(table._rows))


def test_windows_are_what_people_did() -> None:
    assert made(ROWS, length=2) == [("away", "desk"), ("away", "desk"), ("hall", "hall")]  # a's fifth row is left over
    assert made(ROWS, length=3) == [("hall", "hall", "away")]
    assert made(ROWS, length=3, null="away") == [
        ("away", "desk", "away"),
        ("desk", "desk", "away"),
        ("hall", "hall", "away"),
    ]
    assert made({**ROWS, "place": ["away"] * 8}, length=2, null="away") == []


def test_sequences_are_cut_apart() -> None:
    rows = {**ROWS, "day": [1, 2, 1, 1, 1, 1, 2, 2]}
    assert made(rows, length=2, sequence="day") == [("away", "desk"), ("away", "desk"), ("hall", "hall")]
    assert made(rows, length=3, sequence="day") == [("away", "desk", "desk")]


def test_hours_have_slots() -> None:
    when = [datetime(2020, 1, 1, 8, m) for m in (0, 9, 10, 59)] + [datetime(2020, 1, 1, 9, 30)]
    places = ["hall", "desk", "hall", "desk", "hall"]
    expected = sorted(
        [("desk", "hall", "away", "away", "away", "desk"), ("away", "away", "away", "hall", "away", "away")]
    )
    for times in (when, [str(t) for t in when], [(t - datetime(1970, 1, 1)).total_seconds() for t in when]):
        rows = {"who": ["a"] * 5, "when": times, "place": places}
        assert made(rows, length=6, segment="hour", null="away") == expected
        assert made(rows, length=6, segment=3600, null="away") == expected
    numbers = {"who": ["a"] * 3, "when": [0, 5, 7], "place": ["hall", "desk", "desk"]}
    assert made(numbers, length=6, segment=6, null="away") == sorted(
        [("hall", *["away"] * 4, "desk"), ("away", "desk", *["away"] * 4)]
    )
    nowhere = {"who": ["a"] * 3, "when": ["late", None, float("inf")], "place": ["hall"] * 3}
    assert made(nowhere, length=2, segment=6, null="away") == []


def test_each_of_k_windows_weighs_one_kth() -> None:
    rows = {"who": ["a"] * 6 + ["b"] * 2, "when": list(range(8)), "place": ["hall"] * 8}
    table = windows(rows, PLACES, person="who", time="when", length=2)
    (tied, _) = table.sum(ChainTables(table.domain, scaled=True))
    assert tied.sum() == 3 * (WEIGHT_UNITS // 3) + WEIGHT_UNITS
    unit = PrivacyUnit("who", max_rows=1)
    (start, moves) = ExactCurator(table, unit).measure(ChainTables(table.domain, scaled=True))
    assert (
        start.counts.sum() == moves.counts.sum() == WEIGHT_UNITS // 3 + WEIGHT_UNITS
    )  # of a one is drawn, and weighs ⅓
    for part in (*table.split(3, b"k" * 16), table.sample(1, b"k" * 16)):
        assert part.knows_weights and len(part._weights) == part._rows
    assert not table.without_persons().knows_weights


@pytest.mark.parametrize("odd", ["late", None, 2.5, "2020-01-01", True, "nan", "inf", 10**400])
@pytest.mark.parametrize("how", [{}, {"segment": 5, "null": "y"}], ids=["in turn", "on the clock"])
def test_an_odd_time_of_one_person_moves_nobody_elses_windows(odd: Any, how: dict[str, Any]) -> None:
    """How times compare must not depend on what else the column holds."""
    states = Attribute.categorical("state", ["x", "y"])
    people = [f"p{i}" for i in range(20)]
    rows = {"person": people * 2, "time": [9] * 20 + [10] * 20, "state": ["x"] * 20 + ["y"] * 20}
    more = {key: [*values, extra] for (key, values), extra in zip(rows.items(), ["new", odd, "x"], strict=True)}
    for make in (dict, pd.DataFrame):
        try:
            held = [make(r) for r in (rows, more)]
        except OverflowError:  # old pandas has no room for such a number
            continue
        tables = [windows(r, states, person="person", time="time", length=2, **how) for r in held]
        counts = [t.count([("t1", "t2")])[0] for t in tables]
        assert np.abs(counts[1] - counts[0]).sum() <= 1


def test_a_missing_time_does_not_blur_everybody_elses() -> None:
    """A frame turns whole numbers into floats when one is missing; beyond 2⁵³ that must change nothing either."""
    base = 2**60
    rows = {"who": ["a", "a", "b", "b"], "when": [base, base + 1, base + 1, base], "place": ["hall", "desk"] * 2}
    more = {k: [*v, extra] for (k, v), extra in zip(rows.items(), ["c", None, "away"], strict=True)}
    assert made(pd.DataFrame(rows), length=2) == made(pd.DataFrame(more), length=2)


@pytest.mark.parametrize(
    "times",
    [
        [np.int64(9), np.int64(10)],
        ["9", "10"],
        ["2020-01-09", "2020-01-10T00:00:01"],
        [datetime(2020, 1, 1, tzinfo=timezone(timedelta(hours=2))), datetime(2020, 1, 1, tzinfo=UTC)],
        [date(2500, 1, 1), date(3000, 1, 1)],
        [timedelta(hours=9), timedelta(hours=10)],
        [np.datetime64("2019-12-31"), np.datetime64("2020-01-01T00:00:00.000000001")],
        [np.datetime64("2019-12-31"), np.datetime64(2**62, "s")],
    ],
    ids=str,
)
def test_times_of_every_kind_are_put_in_order(times: list[Any]) -> None:
    for order in ((0, 1), (1, 0)):
        rows = {"who": [1, 1], "when": [times[i] for i in order], "place": [["hall", "desk"][i] for i in order]}
        assert made(rows, length=2) == [("hall", "desk")]


def test_files_hold_the_same_windows(tmp_path: Path) -> None:
    frame = pd.DataFrame({**ROWS, "when": [str(w) for w in ROWS["when"]]})
    frame.to_csv(tmp_path / "rows.csv", index=False)
    frame.to_parquet(tmp_path / "rows.parquet")
    how = Windows(PLACES, "who", "when", 2)
    memory = how.table(frame)
    for name in ("rows.csv", "rows.parquet"):
        how.check(tmp_path / name)
        found = how.open(tmp_path / name)
        np.testing.assert_array_equal(found.count([("t1", "t2")])[0], memory.count([("t1", "t2")])[0])
        np.testing.assert_array_equal(
            found.clip(1, b"k" * 16).count([("t1", "t2")])[0], memory.clip(1, b"k" * 16).count([("t1", "t2")])[0]
        )
    with pytest.raises(InputError, match="time column"):
        Windows(PLACES, "who", "wen", 2).check(tmp_path / "rows.csv")


@pytest.mark.parametrize(
    ("words", "how"),
    [
        ("length", {"length": 1}),
        ("at most 1,000", {"length": 5000}),
        ("a segment is a number or one of", {"length": 2, "segment": "year", "null": "away"}),
        ("positive number", {"length": 2, "segment": -3, "null": "away"}),
        ("nobody was seen", {"length": 2, "segment": "hour"}),
        ("give one of them", {"length": 2, "segment": "hour", "null": "away", "sequence": "day"}),
        ("no column 'day'", {"length": 2, "sequence": "day"}),
    ],
)
def test_wrong_use_is_explained(words: str, how: dict[str, Any]) -> None:
    with pytest.raises(InputError, match=words):
        windows(ROWS, PLACES, person="who", time="when", **how)


def test_the_states_are_public_knowledge() -> None:
    with pytest.raises(InputError, match="Attribute"):
        Windows(["hall"], "who", "when", 2)  # type: ignore[arg-type]
    with pytest.raises((InputError, SchemaError)):
        windows(ROWS, PLACES, person="who", time="when", length=2, null="nowhere")


def test_a_row_cannot_be_the_unit_of_windows() -> None:
    """Without the first of forty rows every window of the person is another one."""
    rows = {"who": ["a"] * 40, "when": list(range(40)), "place": ["hall", "desk"] * 20}
    tables = [
        windows(r, PLACES, person="who", time="when", length=2) for r in (rows, {k: v[1:] for k, v in rows.items()})
    ]
    before, after = (t.count([("t1", "t2")])[0] for t in tables)
    assert np.abs(after - before).sum() == 39
    with pytest.raises(InputError, match="a row cannot be the unit"):
        Curator(tables[0], budget=PureDP(1))
    Curator(tables[0], PrivacyUnit("who", max_rows=1), PureDP(1))


def test_times_are_spelled_as_the_format_says() -> None:
    rows = {"who": [1, 1], "when": ["01.04.2023", "02.01.2021"], "place": ["desk", "hall"]}
    assert made(rows, length=2, format="%d.%m.%Y") == [("hall", "desk")]
    assert made(rows, length=2) == [("desk", "hall")]  # words, in the order of their letters
    week = {"length": 2, "segment": "week", "null": "away"}
    assert made(rows, **week) == []  # words are nowhere on the clock
    assert len(made(rows, format="%d.%m.%Y", **week)) == 2
    with pytest.raises(SchemaError, match="cannot be read back"):
        made(rows, length=2, format="dd.mm.yyyy")
