"""From a CSV of rows as they come to a synthetic CSV of the same kind: one schema of a dozen lines, and no peeking."""

from __future__ import annotations

import csv
from collections import Counter

import census_rows
import numpy as np
import pytest

from discreet import Release


@pytest.mark.chance
def test_from_csv_to_synthetic_csv_without_peeking(desk, discreet):
    truth = census_rows.write(desk / "people.csv")
    (desk / "people.toml").write_text(census_rows.SCHEMA)
    assert len(census_rows.SCHEMA.splitlines()) <= 12
    budget = ["--epsilon", "1", "--delta", "1e-6"]
    fitted = discreet(
        "fit", "people.csv", "--schema", "people.toml", *budget, "-o", "people.zip", "--no-plan", "--force"
    )
    assert fitted.code == 0 and "It can be published" in fitted.out and "Found privately, and paid for" in fitted.out
    assert discreet("verify", "people.zip").code == 0
    later = ["certify", "people.zip", "people.csv", "--schema", "people.toml", "--epsilon", "0.2", "--delta", "1e-6"]
    assert discreet(*later, "-o", "certified.zip", "--force").code == 0, "the schema that it was learned with"
    assert discreet("sample", "people.zip", "-n", "60000", "--seed", "1", "-o", "synthetic.csv", "--force").code == 0
    with open(desk / "synthetic.csv") as stream:
        rows = list(csv.reader(stream))
    assert tuple(rows[0]) == census_rows.COLUMNS
    synthetic = dict(zip(rows[0], zip(*rows[1:], strict=True), strict=True))
    model = Release.load(desk / "people.zip").model
    assert model.card["peeked"] == {}
    for name in census_rows.NUMBERS:
        drawn = np.array([float(v) if v else np.nan for v in synthetic[name]])
        assert np.nanmax(np.abs(drawn - np.round(drawn))) == 0, "whole numbers are whole again"
        _alike(name, drawn, truth[name], model.domain[name])
    jobs = set(model.domain["occupation"].levels)
    assert len(jobs) >= 8 and not any(job.startswith("only") for job in jobs)
    with open(desk / "people.csv") as stream:
        held = Counter(row["workclass"] for row in csv.DictReader(stream))
    assert all(held[level] > 50 for level in model.domain["workclass"].levels), "never a handful of people"
    assert all(len(day) == 10 and day[2] == day[5] == "/" for day in synthetic["joined"])
    assert np.mean([v == "" for v in synthetic["workclass"]]) == pytest.approx(0.06, abs=0.02)


def _alike(name, drawn, truth, attribute):
    """Mean and deviation within 3 % but for noise, and quantiles within a bin. Of money, nine of ten have none and one
    in two hundred has 99999: its mean is a matter of noise, and shares are what is compared."""
    if name == "capital_gain":
        assert np.mean(drawn == 0) == pytest.approx(np.mean(truth == 0), abs=0.02)
        assert np.mean(drawn == 99999) == pytest.approx(np.mean(truth == 99999), abs=0.006)
    else:
        mean, deviation = np.nanmean(truth), np.nanstd(truth)
        assert abs(np.nanmean(drawn) - mean) < 0.03 * mean, name
        assert np.nanstd(drawn) == pytest.approx(deviation, rel=0.06), name
    edges = np.asarray(attribute.edges)
    for share in (0.1, 0.25, 0.5, 0.75, 0.9):
        ours, theirs = np.nanquantile(drawn, share), np.nanquantile(truth, share)
        low, high = sorted((ours, theirs))
        assert np.sum((edges > low) & (edges <= high)) <= 1, (name, share, ours, theirs)


def test_a_schema_that_leaves_things_open_is_shown_as_it_is_meant(desk, discreet):
    (desk / "people.toml").write_text(census_rows.SCHEMA)
    out = discreet("schema", "show", "people.toml").out
    assert "bins to be found privately between 0 and 120" in out and "levels to be found privately" in out
    assert "≤ 33" in out and "the nearest period" in out and "up to" in out
    plan = discreet("plan", "--schema", "people.toml", "--epsilon", "1", "--delta", "1e-6").out
    assert "bins found privately: 4 columns" in plan and "levels found privately: 2 columns" in plan
    pure = discreet("plan", "--schema", "people.toml", "--epsilon", "1")
    assert pure.code != 0 and 'levels = "discover"' in pure.err and "--delta 1e-6" in pure.err
    tables = discreet("measure", "people.csv", "--schema", "people.toml", "--table", "age", "--epsilon", "1")
    assert tables.code == 2 and "are to be found privately" in tables.err
