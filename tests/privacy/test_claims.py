"""What a statement says of its steps is computed again: mistakes that only one of its rules can see."""

from __future__ import annotations

import copy
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from discreet.domain import Domain
from discreet.privacy.budget import ZCDP, ApproxDP, Budget, PureDP
from discreet.privacy.claims import Noised, contradictions
from discreet.privacy.curator import Curator
from discreet.privacy.queries.descent import SampledRounds
from discreet.privacy.queries.interactions import Interactions
from discreet.privacy.queries.parities import PartnerResiduals
from discreet.privacy.query import CellSums, Marginals
from discreet.privacy.unit import PrivacyUnit
from discreet.tables.encode import encode

BITS = Domain.of({"a": 2, "b": 2, "c": 2})
TABLE = Marginals(BITS, [("a",)])


def statement(ask: Callable[[Curator], Any], budget: Budget, unit: PrivacyUnit | None = None) -> dict[str, Any]:
    rows = {**{n: [0, 1, 1] for n in "abc"}, "who": ["x", "y", "y"]}
    curator = Curator(encode(rows, BITS, unit=unit.column if unit else None), unit, budget)
    ask(curator)
    said = copy.deepcopy(curator.statement())
    assert contradictions(said) == []
    return said


def test_shares_that_add_up_to_more_are_found() -> None:
    """Though the noise of each step is what its first share bought."""
    said = statement(lambda c: [c.measure(TABLE, PureDP("0.5")) for _ in range(2)], PureDP(1))
    said["steps"][0]["share"]["epsilon"] = "3/4"
    assert any("shares of the steps" in problem for problem in contradictions(said))


def test_less_noise_than_was_paid_is_found() -> None:
    """Of choices in many groups, and of rounds of descent, whose noise is no draw of its own."""
    said = statement(lambda c: c.select_each(PartnerResiduals(BITS, np.zeros((3, 3)))), PureDP(1))
    said["steps"][0]["draws"][0]["scale"] *= 0.9
    assert contradictions(said)
    wide = CellSums(BITS, ["a"], np.ones((2, 1)) * 4096)
    budget = ApproxDP(1, 1e-5)
    said = statement(lambda c: SampledRounds(budget, 0.3, 4, lambda done: wide).ask(c), budget)
    said["steps"][0]["multiplier"] *= 0.9
    assert contradictions(said)


@pytest.mark.parametrize("unit", [PrivacyUnit("who", max_rows=2), PrivacyUnit(relation="replace-one")], ids=str)
def test_a_table_that_moves_further_than_its_step_says_is_found(unit: PrivacyUnit) -> None:
    said = statement(lambda c: c.measure(TABLE), PureDP(1), unit)
    (draw,) = said["steps"][0]["draws"]
    shown = [Noised("a", draw["kind"], draw["scale"], 2)]
    assert contradictions(said, shown) == []
    assert draw["l1"] == 2
    draw["l1"] = 1
    said["spent"]["epsilon"] = "1/2"
    assert contradictions(said) == []  # the arithmetic is right, for somebody else's table
    assert any("moves it by more" in problem for problem in contradictions(said, shown))


@pytest.mark.parametrize("called", ["Marginals", "Interactions", "LogLikelihood"])
@pytest.mark.parametrize("levels", [None, (2, 2)], ids=["table", "interaction"])
def test_how_far_a_table_moves_follows_from_what_it_is_and_not_from_what_its_step_calls_itself(called, levels) -> None:
    """A forged step with another name must not pass with the noise of a sum that moves less."""
    unit = PrivacyUnit("who", max_rows=2)
    query = TABLE if levels is None else Interactions(BITS, [("a", "b")])
    said = statement(lambda c: c.measure(query), PureDP(1), unit)
    (draw,), (label,) = said["steps"][0]["draws"], said["steps"][0]["parts"]
    shown = [Noised(label, draw["kind"], draw["scale"], 2 if levels is None else None, levels=levels)]
    assert contradictions(said, shown) == []
    said["steps"][0]["query"] = called
    said["spent"]["epsilon"] = str(Fraction(1, draw["l1"]))
    draw["l1"] = 1
    assert contradictions(said) == []
    assert any("moves it by more" in problem for problem in contradictions(said, shown))


def test_counting_in_small_parts_does_not_make_less_noise_pass() -> None:
    """A table in parts of 2⁻²⁰ that a record moves by one part would be exact."""
    said = statement(lambda c: c.measure(TABLE), PureDP(1))
    (draw,) = said["steps"][0]["draws"]
    for called in ("Marginals", "ChainTables"):
        said["steps"][0]["query"] = called
        assert contradictions(said, [Noised("a", draw["kind"], draw["scale"], 2)]) == []
        fine = Noised("a", draw["kind"], draw["scale"], 2, parts=2**20)
        assert any("moves it by more" in problem for problem in contradictions(said, [fine]))


UNLISTED = Domain.from_dict({"columns": {"t": {"levels": "discover"}}})
UNITS = [PrivacyUnit(), PrivacyUnit("who", max_rows=2), PrivacyUnit("who", max_rows=2, relation="replace-one")]


def levels_found(unit: PrivacyUnit) -> dict[str, Any]:
    rows = {"t": ["p", "q", "q"], "who": ["x", "y", "y"]}
    curator = Curator(encode(rows, UNLISTED, unit=unit.column), unit, ApproxDP(1, 1e-5))
    inner = curator.in_steps(ApproxDP(1, 1e-5), Fraction(1, 10**6))
    inner.find_levels("t", ZCDP("0.01"), Fraction(1, 10**6))
    said = copy.deepcopy(curator.statement())
    assert contradictions(said) == []
    return said


@pytest.mark.parametrize("unit", UNITS, ids=str)
@pytest.mark.parametrize("norm", ["l2_squared", "linf", "l0"])
def test_levels_that_move_further_than_their_step_says_are_found(unit: PrivacyUnit, norm: str) -> None:
    said = levels_found(unit)
    draw = said["steps"][1]["draws"][0]
    if draw[norm] == 1:
        return  # less is no whole number
    draw[norm] -= 1
    assert any("unlisted levels by more" in problem for problem in contradictions(said))


def test_a_budget_without_delta_sets_none_aside() -> None:
    """A threshold with a δ of its own is not zCDP, whatever the file says was set aside."""
    said = levels_found(PrivacyUnit())
    (_, step) = said["steps"]
    own = {key: value for key, value in step.items() if key not in ("in", "of")}
    forged = {**said, "steps": [own], "budget": own["share"], "spent": own["share"], "delta_for_tests": "1/1000000"}
    assert any("sets aside" in problem for problem in contradictions(forged))
