"""A file of rows as they come: 32,561 people with ages, hours, money, texts, a date, and `<NULL>` for what is missing.

From Adult (``adult.csv``, integer codes, in the folder that DISCREET_DATA names), or generated where that is not there:
columns of the same kinds and shapes. Gains above a limit are 99999, as everybody knows who has seen the code book.
"""

from __future__ import annotations

import csv
import os
from pathlib import Path

import numpy as np

ROWS = 32_561
COLUMNS = ("age", "workclass", "education_num", "occupation", "sex", "capital_gain", "hours", "joined", "income")
SCHEMA = """\
missing_values = ["<NULL>"]
columns.age = {bins = "private", range = [0, 120], integer = true, missing = "unknown"}
columns.workclass = {levels = "discover", missing = "unknown"}
columns.education_num = {bins = "private", range = [0, 20], integer = true}
columns.occupation = {levels = "discover", missing = "unknown"}
columns.sex = {levels = ["Female", "Male"]}
columns.capital_gain = {bins = "private", range = [0, 100000], integer = true, heaps = [99999]}
columns.hours = {bins = "private", range = [0, 100], integer = true}
columns.joined = {dates = {from = 2015-01-01, to = 2020-12-31, by = "quarter", format = "%d/%m/%Y"}}
columns.income = {levels = ["<=50K", ">50K"]}
"""
NUMBERS = ("age", "education_num", "capital_gain", "hours")


def codes_of_adult() -> dict[str, np.ndarray] | None:
    folder = os.environ.get("DISCREET_DATA")
    if not folder or not (path := Path(folder) / "adult.csv").is_file():
        return None
    with open(path) as stream:
        names = next(csv.reader(stream))
        table = np.loadtxt(stream, delimiter=",", dtype=np.int64, max_rows=ROWS)
    return dict(zip(names, table.T, strict=True))


def generated(n: int, seed: int) -> dict[str, np.ndarray]:
    """Codes like Adult's."""
    rng = np.random.default_rng(seed)
    age = np.clip(rng.gamma(4, 7, n).astype(int), 0, 73)
    education = np.clip(rng.normal(9 + 0.02 * age, 2.5, n).round().astype(int), 0, 15)
    income = (rng.random(n) < 1 / (1 + np.exp(4.5 - 0.3 * education - 0.02 * age))).astype(int)
    heaped = rng.random(n)
    hours = np.where(heaped < 0.47, 39, np.where(heaped < 0.56, 49, np.clip(rng.normal(38, 13, n), 0, 98).round()))
    gain = np.where(rng.random(n) < 0.06, 99, np.clip(rng.lognormal(1.8, 0.7, n) + 5 * income, 1, 99))
    return {
        "age": age, "education-num": education, "income>50K": income, "hours-per-week": hours.astype(int),
        "workclass": rng.choice(9, n, p=[0.7, 0.08, 0.06, 0.05, 0.05, 0.03, 0.02, 0.0098, 0.0002]),
        "occupation": (education * 0.8 + rng.integers(0, 4, n)).astype(int) % 15,
        "sex": rng.integers(0, 2, n),
        "capital-gain": np.where(rng.random(n) < 0.92, 0, gain).astype(int),
    }  # fmt: skip


def write(path: Path, n: int = ROWS, seed: int = 0) -> dict[str, np.ndarray]:
    """Write the file; the columns of numbers come back, with NaN for what is missing."""
    codes = codes_of_adult() or generated(n, seed)
    rng = np.random.default_rng(seed + 1)
    n = min(n, len(codes["age"]))
    gain = codes["capital-gain"][:n]
    numbers = {
        "age": codes["age"][:n] + 17.0,
        "education_num": codes["education-num"][:n] + 1.0,
        "capital_gain": np.where(gain == 99, 99999.0, np.where(gain > 0, gain * 600.0 + rng.integers(0, 600, n), 0)),
        "hours": codes["hours-per-week"][:n] + 1.0,
    }  # fmt: skip
    numbers["age"][rng.random(n) < 0.04] = np.nan
    days = [f"{d:02}/{m:02}/{y}" for d, m, y in rng.integers([1, 1, 2015], [29, 13, 2021], (n, 3))]
    texts = {
        "workclass": [f"class {c}" for c in codes["workclass"][:n]],
        "occupation": [f"job {c}" for c in codes["occupation"][:n]],
        "sex": [("Female", "Male")[c] for c in codes["sex"][:n]],
        "joined": days,
        "income": [("<=50K", ">50K")[c] for c in codes["income>50K"][:n]],
    }
    for i in np.flatnonzero(rng.random(n) < 0.06):
        texts["workclass"][i] = texts["occupation"][i] = "<NULL>"
    for i in range(8):
        texts["occupation"][i] = f"only {i}"
    written = {name: ["<NULL>" if np.isnan(x) else str(int(x)) for x in v] for name, v in numbers.items()} | texts
    with open(path, "w", newline="") as stream:
        out = csv.writer(stream)
        out.writerow(COLUMNS)
        out.writerows(zip(*(written[name] for name in COLUMNS), strict=True))
    return numbers
