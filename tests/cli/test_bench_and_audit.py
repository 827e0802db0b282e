"""The commands that run what lies elsewhere: benchmarks of the checkout, and the audits."""

from __future__ import annotations

import json
import sys
from functools import cache

import pytest

from discreet.audit import configuration
from discreet.audit.findings import Finding
from discreet.cli import bench as bench_command

FAKE = """
def run(*, quick, seed, data):
    yield {"what": "error", "setting": f"quick={quick}", "ours": 0.2, "target": 0.3, "better": "lower", "reference": 2}
    yield {"what": "speed", "setting": f"seed={seed}", "ours": 0.2, "target": 0.3, "better": "higher"}
    yield {"what": "memory", "setting": "", "ours": float("nan"), "target": None, "better": "lower"}
"""


@pytest.fixture
def fake(desk, monkeypatch):
    """A checkout with one benchmark."""
    real = bench_command.benchmarks_folder()
    folder = desk / "benchmarks"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    (folder / "harness.py").write_text((real / "harness.py").read_text())
    (folder / "fake.py").write_text(FAKE)
    for name in [m for m in sys.modules if m.split(".")[0] == "benchmarks"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(bench_command, "benchmarks_folder", lambda: folder)
    yield folder
    for name in [m for m in sys.modules if m.split(".")[0] == "benchmarks"]:
        del sys.modules[name]


def test_bench_prints_verdicts_and_writes_rows(fake, desk, discreet):
    result = discreet("bench", "fake", "--quick", "--seed", "7", "--json", "rows.json")
    assert result.code == 0
    lines = {line.split()[0]: line for line in result.out.splitlines()}
    assert "met" in lines["error"] and "quick=True" in lines["error"]
    assert "missed" in lines["speed"] and "seed=7" in lines["speed"]
    assert "—" in lines["memory"]
    assert "1 of 2 targets met" in result.err
    rows = json.loads((desk / "rows.json").read_text())
    assert [r["ours"] for r in rows] == [0.2, 0.2, None]
    assert discreet("bench", "fake", "--strict").code == 1


def test_bench_lists(fake, discreet):
    assert discreet("bench", "--list").out == "fake\n"


def test_bench_names_a_malformed_row(fake, discreet):
    (fake / "bad.py").write_text("def run(**_):\n    return [{'what': 'error', 'ours': 1, 'better': 'lower'}]\n")
    result = discreet("bench", "bad")
    assert result.code == 2 and "'setting'" in result.err and "error" in result.err


def test_bench_without_a_checkout_says_what_to_do(desk, discreet, monkeypatch):
    monkeypatch.setattr(bench_command, "__file__", str(desk / "a" / "b" / "c" / "bench.py"))
    result = discreet("bench", "engine")
    assert result.code == 4 and "clone the repository" in result.err


@pytest.fixture
def one_gateway(monkeypatch):
    """The noise itself is the same whatever is asked: thousands of draws of it are looked at once, and remembered."""
    for audit in ("audit_shape", "audit_choices"):
        monkeypatch.setattr(configuration, audit, _remembered(audit))


@cache
def _remembered(audit):
    whole, said = getattr(configuration, audit), {}

    def again(gateway, *what):
        if what not in said:
            said[what] = whole(gateway, *what)
        return said[what]

    return again


@pytest.mark.parametrize(
    "more",
    [
        ["--table", "smoke,city"],
        ["--graph", "smoke -> city"],
        ["--delta", "1e-6", "--epsilon", "1"],
        ["--family", "network", "--method", "searched", "--relation", "replace-one"],
    ],
    ids=" ".join,
)
def test_a_round_of_audits_passes(desk, discreet, one_gateway, more):
    """Of tables, and of what a fit with these options would do."""
    result = discreet("audit", "--schema", "schema.toml", *more, "--pairs", "6", "--draws", "200")
    assert result.code == 0, result.text
    for words in (
        "record and replay on 9 neighbours",
        "units",
        "exact laws",
        "statistics",
        "the books add up",
        "shape of",
    ):
        assert words in result.out, result.out
    assert "10 of 10 audits passed" in result.out


def test_a_failing_audit_is_exit_code_one(desk, discreet, monkeypatch):
    asked = {}

    def fake(domain, unit, budget, release, **options):
        asked.update(unit=str(unit), budget=str(budget), **options)
        return [Finding("replay", True), Finding("sensitivity", False, "moved by 2, declared 1")]

    monkeypatch.setattr("discreet.audit.run_configuration", fake)
    ask = ["audit", "--schema", "schema.toml", "--rho", "0.5", "--relation", "replace-one", "--seed", "3"]
    result = discreet(*ask)
    assert result.code == 1
    assert "moved by 2" in result.out and "1 of 2" in result.out
    assert asked == {
        "unit": "one row, replace-one", "budget": "ρ = 0.5 (zCDP)", "pairs": 50, "runs": 2000,
        "seed": 3, "public_size": None,
    }  # fmt: skip
    assert json.loads(discreet(*ask, "--json").out)[1]["passed"] is False
