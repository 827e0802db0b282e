"""What the pages say in tables and fragments is true; whole programs are run by test_documentation."""

from __future__ import annotations

import re
from itertools import pairwise
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)


def test_the_schema_examples_are_schemas():
    from discreet.schema import parse_schema

    columns = '[columns.sex]\nlevels = ["f", "m"]\n[columns.age]\nedges = [0, 18, 65]\n'
    columns += '[columns.married]\nlevels = ["yes", "no", "widowed"]\n'
    columns += '[columns.zip]\nlevels = ["10115", "80331"]\n[columns.county]\nlevels = ["Berlin", "Munich"]\n'
    columns += '[columns.pregnant]\nlevels = ["yes", "no"]\n'
    columns += "".join(f"[columns.{name}]\nedges = [0, 10, 100]\n" for name in ("income", "wage", "interest"))
    examples = [text.replace('table = "zips.csv"', 'map = {10115 = "Berlin"}') for text in blocks("schema.md", "text")]
    examples = [text.replace('"F"', '"f"') for text in examples]
    assert len(examples) == 3
    for text in examples:
        parse_schema(columns + text)


# -- the map of the code -----------------------------------------------------------------------------------------------

SOURCE = DOCS.parent / "src" / "discreet"


def named_places(text: str) -> set[str]:
    """Modules and rooms that a page names, as paths below the package."""
    return set(re.findall(r"`([a-z_/]+(?:\.py|/))`", text))


def test_the_map_names_what_is_there_and_all_of_it():
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    within = [SOURCE, SOURCE / "learn", SOURCE / "papers", DOCS.parent]  # inside the row of a room, names are short
    missing = [n for n in named_places(page) if not any((place / n).exists() for place in within)]
    assert missing == []
    rooms = {f"{p.name}/" for p in SOURCE.iterdir() if (p / "__init__.py").exists()} | {"data/"}
    modules = {p.name for p in SOURCE.glob("*.py") if not p.name.startswith("_")}
    table = page[page.index("## The rooms") : page.index("**Imports run one way**")]
    assert rooms | modules <= named_places(table)
    assert named_places("`learn/nowhere.py` and `attic/`") == {"learn/nowhere.py", "attic/"}


def test_the_map_tells_the_order_of_imports():
    import test_imports

    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    told = page[page.index("**Imports run one way**") : page.index("## The walk of one fit")]
    words = [re.findall(r"[a-z_]+", group) for group in told.partition("count:")[2].split("→")]
    for earlier, later in pairwise(words):
        order = [max(map(test_imports.ONE_WAY.index, earlier)), min(map(test_imports.ONE_WAY.index, later))]
        assert order == sorted(order), (earlier, later)


def test_the_walk_is_at_most_a_dozen_hops():
    page = (DOCS / "architecture.md").read_text(encoding="utf-8")
    walk = page[page.index("## The walk of one fit") : page.index("## Decisions worth knowing")]
    hops = re.findall(r"^(\d+)\. .*?(?=^\d+\. |\Z)", walk, re.DOTALL | re.MULTILINE)
    assert [int(h) for h in hops] == list(range(1, len(hops) + 1)) and 8 <= len(hops) <= 12
