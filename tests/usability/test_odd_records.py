"""Columns as nobody planned them: records of each go out as CSV and frames and come back to the same codes, within what
the schema says, and questions about them have an answer or a clear error."""

from __future__ import annotations

from datetime import date

import numpy as np
import pandas as pd
import pytest

from discreet.conditions import number_line
from discreet.dates import Dates
from discreet.domain import Attribute, Domain
from discreet.errors import InputError
from discreet.frames import public_rows
from discreet.language import quoted
from discreet.models import MarkovRandomField
from discreet.models.encoding import encode

DAY, YEAR = date(2024, 2, 29), Dates("year", date(1850, 6, 1), date(1969, 12, 31))
numeric, categorical, dates = Attribute.numeric, Attribute.categorical, Attribute.of_dates

ODD = {
    "negative whole numbers": numeric("x", [-50, -10, -1, 0, 3], integer=True),
    "one bin": numeric("x", [0, 1]),
    "one whole number": numeric("x", [7, 8], integer=True, heaps=[8]),
    "bins of one number each": numeric("x", [0, 1, 2, 3], integer=True, missing="?"),
    "huge": numeric("x", [-1e300, 0, 1e300]),
    "tiny": numeric("x", [0, 1e-300, 1e-299]),
    "twelve decimals": numeric("x", [0, 0.5, 1], decimals=12),
    "edges between the decimals": numeric("x", [0.005, 0.5, 1.995], decimals=2),
    "no number of so many decimals in a bin": numeric("x", [0, 0.01, 0.02, 5], decimals=1),
    "heap at both ends": numeric("x", [0, 5, 10], integer=True, heaps=[0, 10]),
    "heap on an inner edge": numeric("x", [0, 5, 10], integer=True, heaps=[5]),
    "heap outside the edges": numeric("x", [0, 5, 10], integer=True, heaps=[-9, 99]),
    "heaps that take a whole bin": numeric("x", [0, 2, 10], integer=True, heaps=[0, 1]),
    "heap among reals": numeric("x", [0, 5, 10], heaps=[2.5], missing="none", other="odd"),
    "negative money with a heap": numeric("x", [-100, 0, 100], decimals=2, heaps=[0]),
    "missing level with a comma": numeric("x", [0, 1, 2], missing="not known, or refused"),
    "a single day": dates("x", Dates("day", DAY, DAY)),
    "leap years by month": dates("x", Dates("month", date(2023, 12, 31), date(2024, 3, 1)), missing="never"),
    "before 1970": dates("x", YEAR),
    "dates with a comma": dates("x", Dates("quarter", date(2020, 1, 1), date(2021, 1, 1), "%d %b, %Y")),
    "dates with a clock": dates("x", Dates("week", date(2020, 1, 1), date(2020, 3, 1), "%Y-%m-%d %H:%M"), missing="?"),
    "weekdays": dates("x", Dates("weekday"), missing="unknown"),
    "hours of the day": dates("x", Dates("hour of day"), missing="unknown"),
    "hours of the day, or else": dates("x", Dates("hour of day"), other="else"),
    "negative codes": categorical("x", [-1, 0, 1]),
    "whole numbers and others": categorical("x", [1, 2], other="5 or more", missing="?"),
    "truth that may be missing": categorical("x", [True, False], missing="unknown"),
    "an empty text": categorical("x", ["", " ", "a"], other="else"),
    "quotes and commas": categorical("x", ['say "hi"', "a, b", "it's", "{a}"]),
    "words of other programs": categorical("x", ["nan", "NULL", "None", "1e5", "007"]),
    "formulas": categorical("x", ["=1+1", "@x", "-"]),
}


def model_of(attribute: Attribute) -> MarkovRandomField:
    domain = Domain((attribute, categorical("y", ["a", "b"])))
    rng = np.random.default_rng(0)
    return MarkovRandomField(domain, {("x", "y"): rng.normal(size=(attribute.size, 2))})


def known_again(attribute: Attribute, codes):
    """What comes back of codes that have no value of their own: absent values, and other ones among numbers."""
    codes = codes.astype(int).copy()
    if attribute.other is not None and (
        attribute.is_numeric or (attribute.dates is not None and attribute.dates.first)
    ):
        codes[codes == attribute.codes[attribute.other]] = attribute.missing_code
    if attribute.name == "x" and attribute.heaps == (0, 1):  # a bin of which heaps leave nothing
        codes = np.where(codes == 0, -1, codes)
    return codes


@pytest.mark.parametrize("kind", ODD)
def test_records_go_out_and_come_back(kind, tmp_path):
    attribute = ODD[kind]
    model = model_of(attribute)
    drawn = model.sample(400, 1)
    wanted = known_again(attribute, drawn.codes[:, 0])
    drawn.to_csv(tmp_path / "out.csv")
    drawn.to_parquet(tmp_path / "out.parquet")
    frames = [drawn.to_pandas(), drawn.to_polars(), drawn.to_arrow(), public_rows(tmp_path / "out.parquet")]
    if kind not in ("an empty text",):  # which CSV as Arrow reads it cannot tell from an absent value
        frames.append(public_rows(tmp_path / "out.csv"))
    if attribute.dates is not None and attribute.dates.by == "hour of day":
        frames = []  # an hour is no date: the model knows no more
    for frame in frames:
        found = encode(frame, model.domain)[:, 0].astype(int)
        np.testing.assert_array_equal(found[wanted >= 0], wanted[wanted >= 0])
    labels = model.sample(50, 1, labels=True)
    assert set(labels["x"].tolist()) - {None} <= {*attribute.labels, *attribute.levels, *range(24)}
    assert len(repr(drawn)) and len(list(drawn)) == 400


@pytest.mark.parametrize("kind", ODD)
def test_questions_have_an_answer_or_a_clear_error(kind):
    attribute = ODD[kind]
    model, line = model_of(attribute), number_line(attribute)
    assert np.asarray(model.ask("P(x | y)")).sum() == pytest.approx(2)
    assert 0 < float(model.ask("P(known(x))")) <= 1 + 1e-12
    for label in attribute.labels if attribute.size > 1 else ():
        said = quoted(label, is_item=True)
        inside, outside = (float(model.ask(f"P(x {sign} {{{said}}})")) for sign in ("in", "not in"))
        assert inside + outside == pytest.approx(1)
    if line is None or (attribute.dates is not None and attribute.dates.first is not None):
        with pytest.raises(InputError, match="is about numbers"):
            model.ask("E(x)")
        if line is None:
            with pytest.raises(InputError, match="holds categories"):
                model.ask("P(x > 3)")
            return
        first, last = str(attribute.dates.first), str(attribute.dates.last)
    else:
        low, high = line.ends
        mean = float(model.ask("E(x)"))
        if abs(high) < 1e200:
            assert low <= mean <= high and 0 <= float(model.ask("SD(x)")) <= high - low
        quantiles = [float(model.ask(f"QUANTILE(x, {q} | y=a)")) for q in (0, 0.25, 0.5, 1)]
        assert quantiles == sorted(quantiles) and low <= quantiles[0] and quantiles[-1] <= high
        first, last = repr(low), repr(high)
    everything = float(model.ask("P(known(x))"))
    assert float(model.ask(f"P(x >= {first})")) == pytest.approx(everything)
    assert float(model.ask(f"P(x <= {last})")) == pytest.approx(everything)
    with pytest.raises(InputError, match=r"no (value|bin) of column 'x'"):
        model.ask(f"P(x < {first})")


@pytest.mark.parametrize("kind", [k for k, a in ODD.items() if number_line(a) is not None and number_line(a).bins])
def test_numbers_keep_to_what_the_schema_says(kind):
    attribute = ODD[kind]
    drawn = model_of(attribute).sample(2000, 2)
    x = drawn.numbers["x"]
    known = ~np.isnan(x)
    assert known.sum() + np.isin(drawn.codes[:, 0], [attribute.codes[l] for l in (attribute.missing, attribute.other) if l]).sum() == 2000  # fmt: skip  # noqa: E501
    if attribute.precision is not None and kind != "no number of so many decimals in a bin":
        np.testing.assert_array_equal(np.round(x[known], attribute.precision), x[known])
    for i, heap in enumerate(attribute.heaps):
        at_heap = drawn.codes[:, 0] == attribute.bins + i
        assert (x[at_heap] == heap).all()
        if kind != "heaps that take a whole bin":
            assert not np.any(x[~at_heap] == heap)


def test_what_pandas_reads_has_the_kind_of_the_column(tmp_path):
    domain = Domain(tuple(Attribute.from_dict(f"c{i}", a.to_dict()) for i, a in enumerate(ODD.values())))
    drawn = MarkovRandomField.uniform(domain, [(n,) for n in domain.names]).sample(300, 0)
    drawn.to_csv(tmp_path / "all.csv")
    frame = pd.read_csv(tmp_path / "all.csv")
    for name, kind in zip(domain.names, ODD, strict=True):
        attribute = domain[name]
        if attribute.is_numeric:
            whole = attribute.integer and attribute.missing is None and attribute.other is None
            assert frame[name].dtype == (np.int64 if whole else np.float64), kind
