"""What the pages say in tables and fragments is true; whole programs are run by test_documentation."""

from __future__ import annotations

import re
from pathlib import Path

DOCS = Path(__file__).resolve().parent.parent / "docs"


def blocks(page: str, language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", (DOCS / page).read_text(encoding="utf-8"), re.DOTALL)


def test_the_schema_examples_are_schemas():
    from discreet.schema import parse_schema

    columns = '[columns.sex]\nlevels = ["f", "m"]\n[columns.age]\nedges = [0, 18, 65]\n'
    columns += '[columns.married]\nlevels = ["yes", "no", "widowed"]\n'
    examples = blocks("schema.md", "text")
    assert len(examples) == 2
    for text in examples:
        parse_schema(columns + text)
