"""Audits of what finds columns: histograms on grids, levels that nobody has listed; and bugs that they must catch."""

from __future__ import annotations

import tracemalloc
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from discreet.audit import (
    audit_replay,
    audit_sizes,
    audit_statistical,
    check_pair,
    failures,
    output_law,
    releasing_tables,
    run_configuration,
)
from discreet.audit.losses import _gaussian_tail
from discreet.domain import Domain
from discreet.encoding import Hashed
from discreet.errors import BudgetError
from discreet.learn.discovery import with_discovery
from discreet.learn.procedure import Whole
from discreet.learn.quantiles import found_bins
from discreet.learn.tables import Tables
from discreet.privacy import calibration, mechanisms
from discreet.privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from discreet.privacy.curator import Curator
from discreet.privacy.queries.histograms import Histograms
from discreet.privacy.unit import PrivacyUnit, Sensitivity
from discreet.schema import parse_schema
from discreet.tables.encode import encode
from discreet.tables.open import open_table

NUMBERS = parse_schema(
    '[columns.x]\nbins = "private"\nrange = [0, 40]\ninteger = true\nmissing = "none"\n'
    '[columns.y]\nbins = "private"\nrange = "private"\n[columns.z]\nlevels = ["a", "b"]\n'
)
BOTH = parse_schema(
    '[columns.x]\nbins = "private"\nrange = [0, 9]\ninteger = true\nmost = 4\n'
    '[columns.t]\nlevels = "discover"\nmissing = "none"\nalways = ["kept"]\n'
)
TEXTS = parse_schema('[columns.t]\nlevels = "discover"\n')
UNITS = {
    "row, add-remove": PrivacyUnit(),
    "row, replace-one": PrivacyUnit(relation="replace-one"),
    "person, add-remove": PrivacyUnit("person", max_rows=2),
    "person, replace-one": PrivacyUnit("person", max_rows=3, relation="replace-one"),
}


def tables_after(domain: Domain, *, as_one_gaussian: bool = False) -> Any:
    def algorithm(curator: Curator) -> Any:
        whole = Whole(domain, curator.unit, curator.budget)
        learner = Tables([(name,) for name in domain.names], "gaussian" if as_one_gaussian else "auto")
        return with_discovery(whole, 0.5, learner.prepare, as_one_gaussian=False).run(curator)

    return algorithm


@pytest.mark.crossed
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize(
    ("domain", "budget"),
    [(NUMBERS, PureDP(20)), (NUMBERS, ZCDP(5)), (NUMBERS, ApproxDP(20, 1e-3)), (BOTH, ApproxDP(20, 1e-3))],
    ids=["numbers, pure", "numbers, zcdp", "numbers, approx", "both, approx"],
)
def test_replay_finds_nothing(domain: Domain, budget: Budget, unit: str) -> None:
    findings = audit_replay(tables_after(domain), domain, UNITS[unit], budget, count=12, seed=3)
    assert not failures(findings), "\n".join(map(str, findings))


def test_the_audit_of_the_command_line_finds_columns_too() -> None:
    findings = run_configuration(BOTH, UNITS["person, add-remove"], ApproxDP(5, 1e-3), releasing_tables(BOTH), pairs=8)
    assert not failures(findings)
    done = [f.name for f in findings]
    assert done[0].startswith("record and replay on 11 neighbours") and "10,000 units" in done[1]
    assert "exact laws of the draws" in done


def test_what_depends_on_the_number_of_records_is_found_where_columns_are() -> None:
    """Also where only large tables show it."""

    def planted(curator: Curator) -> Any:
        if int(curator._rows.count([("z",)])[0].sum()) > 500:
            raise ValueError("too many rows")
        return tables_after(NUMBERS)(curator)

    row = UNITS["row, add-remove"]
    assert not failures(audit_replay(planted, NUMBERS, row, PureDP(20), count=3, sizes=(100,)))
    assert failures(audit_sizes(planted, NUMBERS, row, PureDP(20), sizes=(3, 600)))


# -- levels: exactly, and by statistics ------------------------------------------------------------------------------

BUDGET, ASIDE = ApproxDP(1, 0.5), Fraction(45, 100)


def find(curator: Curator) -> Any:
    inner = curator.in_gaussian(curator.budget, ASIDE)
    return inner.find_levels("t", inner.remaining, ASIDE)


def law(rows: dict[str, list[Any]], unit: PrivacyUnit) -> Any:
    return output_law(find, encode(rows, TEXTS, unit=unit.column), unit, BUDGET, window=(-9, 16))


def person(*texts: str, others: int = 0) -> dict[str, list[Any]]:
    """One person with these texts, beside so many others who have "a"."""
    return {"t": ["a"] * others + [*texts], "who": [*range(others), *("one" for _ in texts)]}


@pytest.mark.parametrize("relation", ["add-remove", "replace-one"])
def test_exact_loss_of_levels_that_are_found(relation: Any) -> None:
    unit = PrivacyUnit("who", max_rows=2, relation=relation)
    pairs = [(person(), person("b", "c")), (person(), person("b", "b")), (person(others=2), person("a", "b", others=2))]
    if relation == "replace-one":
        pairs = [(person("c"), person("b")), (person("a", "a", others=1), person("b", "b", others=1))]
    for left, right in pairs:
        finding = check_pair(law(left, unit), law(right, unit), BUDGET)
        assert finding.passed, finding


def test_exact_audit_sees_a_delta_that_is_not_shared_over_the_levels_of_a_person(monkeypatch: Any) -> None:
    unit = PrivacyUnit("who", max_rows=2)
    honest = mechanisms.gaussian_threshold
    one_row = lambda s, scale, delta: honest(Sensitivity(1, 1, 1, 1), scale, delta)  # noqa: E731
    monkeypatch.setattr(calibration.mechanisms, "gaussian_threshold", one_row)
    assert not check_pair(law(person(), unit), law(person("b", "c"), unit), BUDGET).passed


def test_the_threshold_covers_the_tail_of_the_noise_that_is_drawn() -> None:
    for scale in (2.5, 17.0, 300.0):
        for delta in (Fraction(1, 10), Fraction(1, 10**6), Fraction(1, 10**9)):
            for rows in (1, 5):
                moved = Sensitivity(rows, rows**2, rows, rows)
                threshold = mechanisms.gaussian_threshold(moved, scale, delta)
                assert rows * (_gaussian_tail(scale, threshold + 1 - rows) + mechanisms.SAME_NUMBER) <= delta
                assert rows * _gaussian_tail(scale, threshold - rows - 2 - int(scale / 3)) > delta, "nor far above it"


def test_texts_are_counted_by_a_secret_and_mistaking_them_is_part_of_delta() -> None:
    """Whoever knew the numbers could look for two texts with the same one, and have somebody's own text come out."""
    numbers = {Hashed.of(TEXTS["t"], key).number("a") for key in (b"1", b"2", b"3")}
    assert len(numbers) == 3
    with pytest.raises(BudgetError, match="so small a δ"):
        mechanisms.gaussian_threshold(Sensitivity(1, 1, 1, 1), 10.0, Fraction(1, 10**11))
    kept: list[bytes] = []
    original = Hashed.of.__func__  # type: ignore[attr-defined]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Hashed, "of", classmethod(lambda cls, a, key: kept.append(key) or original(cls, a, key)))
        for _ in range(2):
            find(Curator(encode(person("b"), TEXTS, unit="who"), PrivacyUnit("who", max_rows=2), BUDGET))
    assert len(set(kept)) == 2 and all(len(key) >= 16 for key in kept)


@pytest.mark.chance
def test_statistics_of_levels_that_are_found(monkeypatch: Any) -> None:
    unit = PrivacyUnit("who", max_rows=4)
    tables = [encode(person(*texts), TEXTS, unit="who") for texts in ((), ("b", "c", "d", "e"))]

    def run(other: bool) -> int:
        return len([t for t in find(Curator(tables[other], unit, BUDGET)).counts if t != "a"])

    assert audit_statistical(run, 1.0, delta=0.5, runs=400).passed
    honest = mechanisms.gaussian_threshold
    one_row = lambda s, scale, delta: honest(Sensitivity(1, 1, 1, 1), scale, delta)  # noqa: E731
    monkeypatch.setattr(calibration.mechanisms, "gaussian_threshold", one_row)
    assert not audit_statistical(run, 1.0, delta=0.5, runs=400).passed


def test_levels_need_a_delta_that_was_set_aside() -> None:
    table = encode({"t": ["a"]}, TEXTS)
    with pytest.raises(Exception, match="set aside"):
        Curator(table, budget=ApproxDP(1, 1e-6)).in_gaussian(ApproxDP(1, 1e-6)).find_levels(
            "t", ApproxDP(1, 1e-6).to_gaussian(), Fraction(1, 10**7)
        )
    with pytest.raises(Exception, match=r"within an \(ε, δ\) budget"):
        Curator(table, budget=PureDP(1)).find_levels("t", PureDP(1), Fraction(1, 10**7))


def test_two_columns_of_levels_share_the_delta_that_was_set_aside() -> None:
    """Each has half of it; two wholes would be refused."""
    two = parse_schema('[columns.t]\nlevels = "discover"\n[columns.u]\nlevels = "discover"\n')
    rows = encode({"t": ["a", "b"] * 40, "u": ["c"] * 80}, two)
    with Curator(rows, PrivacyUnit(), ApproxDP(8, 1e-3)) as curator:
        released = tables_after(two)(curator)
    assert set(released.domain.names) == {"t", "u"}


def test_what_is_found_is_booked() -> None:
    """Noise and δ as the theorems have them, from the scale that was used; other texts come out nowhere."""
    rows = {"t": ["often"] * 400 + ["once"]}
    curator = Curator(encode(rows, TEXTS), budget=ApproxDP(3, 1e-3))
    aside = Fraction(1, 10**4)
    inner = curator.in_gaussian(curator.budget, aside)
    share = inner.remaining
    found = inner.find_levels("t", share, aside)
    assert set(found.counts) == {"often"}
    assert curator.spent == curator.budget and inner.remaining is None
    ((cost,),) = (b.costs for b in inner.bookings)
    assert cost.rho_delta == aside
    assert cost.rho >= 1 / (2 * Fraction(found.scale) ** 2)
    assert (
        cost.mu_squared is not None
        and cost.mu_squared <= ApproxDP(3, Fraction(1, 10**3) - aside).to_gaussian().mu_squared
    )
    with pytest.raises(BudgetError):
        inner.find_levels("t", share, aside)


def test_a_block_or_a_sample_pays_for_its_own_rows_only() -> None:
    curators = [Curator(encode({"t": ["a"] * 9}, TEXTS), budget=ApproxDP(1, 1e-3)) for _ in range(2)]
    for part in (*curators[0].partition(2), curators[1].subsample(0.5)):
        inner = part.in_gaussian(part.budget, Fraction(1, 10**5))
        for asked in (part, inner):
            with pytest.raises(Exception, match="before these are divided"):
                asked.find_levels("t", inner.remaining, Fraction(1, 10**5))
            with pytest.raises(Exception, match="before these are divided"):
                asked.narrow(TEXTS)


def test_texts_that_do_not_stand_out_are_not_held(tmp_path: Path) -> None:
    """Of 6,000 texts of 5,000 letters (30 MB) only numbers are held: what comes out is bounded by the threshold."""
    texts = [f"{i:05000}" if i % 3 else "often" for i in range(9000)]
    pq.write_table(pa.table({"t": texts}), tmp_path / "rows.parquet", row_group_size=500)
    curator = Curator(open_table(tmp_path / "rows.parquet", TEXTS), budget=ApproxDP(1, 1e-6))
    inner = curator.in_gaussian(curator.budget, Fraction(1, 10**7))
    del texts
    tracemalloc.start()
    try:
        found = inner.find_levels("t", inner.remaining, Fraction(1, 10**7))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert set(found.counts) == {"often"} and peak < 15e6


# -- bins: planted bugs ----------------------------------------------------------------------------------------------


def test_replay_sees_a_range_that_is_read_off_the_rows() -> None:
    def algorithm(curator: Curator) -> Any:
        seen = curator._source.count([("x",)])[0].nonzero()[0]
        high = int(seen.max()) if len(seen) else 1
        narrow = parse_schema(f'[columns.x]\nbins = "private"\nrange = [0, {max(high, 1)}]\ninteger = true\n')
        curator.narrow(narrow)
        return curator.measure(Histograms(narrow, ["x"]))

    domain = parse_schema('[columns.x]\nbins = "private"\nrange = [0, 9]\ninteger = true\n')
    assert failures(audit_replay(algorithm, domain, PrivacyUnit(), PureDP(1), count=20, seed=1))


def test_replay_sees_quantiles_of_the_rows_themselves() -> None:
    domain = parse_schema('[columns.x]\nbins = "private"\nrange = [0, 9]\ninteger = true\nmost = 4\n')

    def algorithm(curator: Curator) -> Any:
        measured = curator.measure(Histograms(domain, ["x"]))
        exact = curator._source.count([("x",)])[0][:10].astype(float)  # ties and all
        return measured, found_bins(domain["x"].sought, [exact], [1e-9])

    assert failures(audit_replay(algorithm, domain, PrivacyUnit(), PureDP(1), count=20, seed=1))


def test_replay_sees_a_row_that_is_counted_in_two_cells(monkeypatch: Any) -> None:
    honest = Histograms.combine
    monkeypatch.setattr(Histograms, "combine", lambda self, counts: tuple(2 * c for c in honest(self, counts)))
    assert failures(audit_replay(tables_after(NUMBERS), NUMBERS, PrivacyUnit(), PureDP(5), count=10, seed=1))


def test_which_bins_come_out_is_a_function_of_the_noisy_counts_alone() -> None:
    sought = NUMBERS["x"].sought
    rng = np.random.default_rng(0)
    noisy = [rng.normal(100, 30, len(sought.edges) - 1), rng.normal(1500, 30, int(sought.coarser[0].max()) + 1)]
    assert found_bins(sought, noisy, [900.0, 900.0]) == found_bins(sought, noisy, [900.0, 900.0])
