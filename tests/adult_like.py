"""A file as a census office might have it: ages, hours with a heap at 40, money that is mostly 0, dates, gaps."""

from __future__ import annotations

from pathlib import Path

import numpy as np

SCHEMA = """
missing_values = ["<NULL>"]

[columns.age]
edges = [17, 22, 27, 32, 37, 42, 47, 52, 57, 62, 67, 90]
integer = true

[columns.job]
levels = ["sales", "nurse", "clerk", "x, y"]
missing = "unknown"

[columns.hours]
edges = [1, 15, 25, 35, 45, 55, 65, 99]
integer = true
heaps = [40]
missing = "unknown"

[columns.gain]
edges = [0, 1000, 2500, 5000, 10000, 20000, 50000]
decimals = 2
heaps = [0]

[columns.weight]
edges = [0, 0.5, 1, 1.5, 2, 3, 5, 10]
missing = "unknown"

[columns.joined]
dates = {from = 2015-01-01, to = 2024-06-30, by = "quarter", format = "%d.%m.%Y"}
missing = "never"

[columns.member]
levels = [true, false]

[columns.children]
levels = [0, 1, 2, 3]
"""


def columns(rows: int = 20_000, seed: int = 0) -> dict[str, list[str]]:
    """The texts of the file, by column."""
    rng = np.random.default_rng(seed)
    age = np.clip(np.rint(17 + rng.gamma(2.8, 8.2, rows)), 17, 90).astype(int)
    job = rng.choice(["sales", "nurse", "clerk", "x, y"], rows, p=[0.3, 0.2, 0.4, 0.1])
    hours = np.clip(np.rint(rng.normal(40, 13, rows)), 1, 99).astype(int)
    hours[rng.random(rows) < 0.45] = 40
    gain = np.where(rng.random(rows) < 0.85, 0.0, np.minimum(rng.lognormal(8, 0.8, rows), 50_000))
    weight = np.minimum(rng.gamma(2, 0.7, rows), 10)
    days = np.datetime64("2015-01-01") + rng.integers(0, 3469, rows)
    out = {
        "age": [str(x) for x in age],
        "job": [f'"{x}"' if "," in x else str(x) for x in job],
        "hours": [str(x) for x in hours],
        "gain": [f"{x:.2f}" for x in gain],
        "weight": [repr(float(x)) for x in weight],
        "joined": [d.strftime("%d.%m.%Y") for d in days.tolist()],
        "member": ["true" if x else "false" for x in rng.random(rows) < 0.3],
        "children": [str(x) for x in rng.integers(0, 4, rows)],
    }
    for name, part in (("job", 0.05), ("hours", 0.08), ("weight", 0.03), ("joined", 0.1)):
        for i in np.flatnonzero(rng.random(rows) < part):
            out[name][i] = "<NULL>"
    return out


def write(folder: Path, rows: int = 20_000, seed: int = 0) -> None:
    """``people.csv`` and ``schema.toml``."""
    found = columns(rows, seed)
    lines = [",".join(found), *map(",".join, zip(*found.values(), strict=True))]
    (folder / "people.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    (folder / "schema.toml").write_text(SCHEMA, encoding="utf-8")
