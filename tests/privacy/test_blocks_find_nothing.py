"""Blocks and samples do not reach the rows that they were taken from, though these can be read again."""

from __future__ import annotations

from fractions import Fraction

import pytest

from discreet import Curator, PrivacyUnit, PureDP, encode
from discreet.errors import InputError
from discreet.privacy.budget import ZCDP
from discreet.privacy.curator import ExactCurator
from discreet.schema import parse_schema

OPEN = parse_schema('[columns.t]\nlevels = "discover"\n')
KEY = bytes(16)


@pytest.mark.parametrize("unit", [PrivacyUnit(), PrivacyUnit("who")], ids=str)
def test_a_learner_that_votes_cannot_find_levels_in_all_rows(unit: PrivacyUnit) -> None:
    """It would make one person change the vote of every block."""
    rows = {"t": [*"ab" * 20, "mine"], "who": [f"p{i}" for i in range(41)]}
    voted = []

    def learner(block: ExactCurator) -> str:
        voted.append("mine" in block.find_levels("t", ZCDP(1), Fraction(1, 1000)).counts)
        return "yes" if voted[-1] else "no"

    Curator(encode(rows, OPEN, unit=unit.column), unit, PureDP(1)).vote(learner, 10, candidates=["yes", "no"])
    assert sum(voted) <= 1


def test_chosen_rows_are_all_that_a_table_has() -> None:
    table = encode({"t": ["a", "b"] * 20, "who": range(40)}, OPEN, unit="who")
    for part in (*table.split(2, KEY), table.sample(Fraction(1, 2), KEY), table.clip(1, KEY)):
        with pytest.raises(InputError):
            part.under(OPEN)
