"""Rows whose columns are still to be found: the same sums in memory and in files, twice encoded."""

import pytest
from engines import TO_BE_FOUND, facts_to_be_found, rows_to_be_found, write_parquet

from discreet import encode, open_table
from discreet.domain import Domain
from discreet.errors import InputError


def test_memory_and_files_count_the_same(tmp_path):
    rows = rows_to_be_found(1000)
    write_parquet(tmp_path / "rows.parquet", rows)
    lines = [[*rows], *zip(*rows.values(), strict=True)]
    text = "".join(",".join("" if v is None else str(v) for v in line) + "\n" for line in lines)
    (tmp_path / "rows.csv").write_text(text)
    tables = [encode(rows, TO_BE_FOUND, unit="who")]
    for name in ("rows.parquet", "rows.csv"):
        tables += [open_table(tmp_path / name, TO_BE_FOUND, unit="who", engine=e) for e in ("duckdb", "memory")]
    assert len({facts_to_be_found(table) for table in tables}) == 1


def test_rows_of_known_columns_are_not_kept_to_be_read_again():
    table = encode({"a": [0, 1]}, Domain.of({"a": 2}))
    assert table.source is None
    with pytest.raises(InputError, match="encoded once and for all"):
        table.under(Domain.of({"a": 3}))
