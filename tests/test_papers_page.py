"""The page that lists the papers' items names nothing that is not there."""

import importlib
import re
from pathlib import Path

import pytest

from discreet.papers.theory.items import ITEMS

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "papers.md").read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]
    for line in PAGE.splitlines()
    if line.startswith("|") and not line.startswith(("| item", "|---"))
]
VERDICTS = ("works", "corrected", "order only", "does not hold", "in part")


def imported(name: str) -> object:
    parts = f"discreet.{name}".split(".")
    for length in range(len(parts), 0, -1):
        try:
            found: object = importlib.import_module(".".join(parts[:length]))
        except ModuleNotFoundError:
            continue
        for part in parts[length:]:
            found = getattr(found, part)
        return found
    raise AssertionError(name)


def is_there(name: str) -> bool:
    """A test, by its file and function, or a function of a benchmark."""
    home, _, function = name.partition("::")
    files = [ROOT / home] if home.endswith(".py") else list((ROOT / "tests").rglob(f"{home}.py"))
    return len(files) == 1 and (not function or f"def {function}(" in files[0].read_text(encoding="utf-8"))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0][:40])
def test_every_row_names_what_is_there(row: list[str]) -> None:
    assert len(row) == 6
    _, _, where, verdict, _, seen = row
    assert verdict.startswith(VERDICTS)
    names = re.findall(r"`([^`]+)`", where)
    assert names
    for name in names:
        imported(name)
    tests, pictures = re.findall(r"`([^`]+)`", seen), re.findall(r"\]\(([^)]+)\)", seen)
    assert tests or pictures
    assert all(is_there(name) for name in tests)
    assert all((ROOT / "docs" / picture).is_file() for picture in pictures)


def test_what_is_not_there_would_be_noticed() -> None:
    assert not is_there("test_undirected::test_that_nobody_wrote")
    with pytest.raises(AttributeError):
        imported("papers.collective.nothing")


def test_every_item_of_the_papers_has_its_row() -> None:
    listed = " ".join(row[0] for row in ROWS)
    for item in ITEMS:
        assert f"{item.full} ([000]" in listed
    wanted = {
        "Algorithm 1": 3,
        "Algorithm 2": 3,
        "Algorithm 3": 2,
        "Algorithm 4": 1,
        "Algorithm 5": 1,
        "Figure 1": 2,
        "Figure 2": 2,
    }
    for name, times in wanted.items():
        assert sum(row[0] == name for row in ROWS) == times, name
