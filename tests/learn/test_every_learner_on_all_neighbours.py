"""What every learner asks, with the parameters that it asks with, moves no further than it says: on all neighbours.

The kinds of questions have their own cases (tests/privacy/test_every_sensitivity.py). Here they are as a learner makes
them in a run, of answers that it was given before. A learner without a case fails the build.
"""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import sys
from pathlib import Path
from typing import Any

import pytest
import test_shown_run_recorded as shown

sys.path.append(str(Path(__file__).resolve().parents[1] / "privacy"))
sensitivities = importlib.import_module("test_every_sensitivity")

import discreet  # noqa: E402
from discreet import ApproxDP, Curator, PureDP  # noqa: E402
from discreet.errors import DiscreetError  # noqa: E402
from discreet.learn.baselines import NonprivateField  # noqa: E402
from discreet.learn.learner import Learner  # noqa: E402
from discreet.learn.nonprivate import NonprivateNetwork  # noqa: E402
from discreet.tables.base import Table  # noqa: E402

EXACT = {NonprivateNetwork, NonprivateField}  # they take tables without noise, and ask no curator that protects
LEARNERS = {name: (spec.learn, domain) for name, (spec, domain) in shown.SPECS.items()}
LEARNERS |= {n: (one.fit, shown.SPINS) for n, one in shown.OTHERS.items()}
UNITS = list(sensitivities.UNITS)


def every_learner() -> set[type]:
    """All classes of the library that learn."""
    for module in pkgutil.walk_packages(discreet.__path__, "discreet."):
        if module.name != "discreet.__main__":
            importlib.import_module(module.name)
    found: set[type] = set()
    waiting: list[type] = [Learner]
    while waiting:
        kind = waiting.pop()
        waiting += kind.__subclasses__()
        if kind.__module__.startswith("discreet.") and not inspect.isabstract(kind):
            found.add(kind)
    return found


def test_every_learner_has_a_case() -> None:
    tried = {type(spec.learner()) for spec, _ in shown.SPECS.values()} | {type(one) for one in shown.OTHERS.values()}
    bases = {base for kind in tried for base in kind.__mro__}
    assert every_learner() - bases - EXACT == set(), "give every learner a case in test_shown_run_recorded.py"


def asked_by(learn: Any, domain: Any, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What the curator is asked in a run, one of each kind and size, as it was asked."""
    seen: dict[Any, Any] = {}

    def noting(of: type, name: str) -> Any:
        real = getattr(of, name)

        def method(self: Any, asked: Any, *rest: Any, **named: Any) -> Any:
            query = getattr(asked, "query", asked)
            if query.domain == domain and (of is Curator or not seen):  # of a sample a curator asks for itself
                seen.setdefault((type(asked), len(getattr(query, "parts", ()))), asked)
            return real(self, asked, *rest, **named)

        return method

    for name in ("measure", "select", "select_each", "release_if_stable"):
        monkeypatch.setattr(Curator, name, noting(Curator, name))
    monkeypatch.setattr(Table, "sum", noting(Table, "sum"))
    for budget in (PureDP(1), ApproxDP(1, "1e-6")):
        try:
            with Curator(shown.ROWS[domain], shown.UNITS[0], budget) as curator:
                learn(curator)
            break
        except DiscreetError:  # what needs a δ
            continue
    monkeypatch.undo()
    return list(seen.values())


@pytest.mark.parametrize("name", LEARNERS)
def test_no_neighbour_moves_what_it_asks_further_than_it_says(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each learner under one unit, in turn; all four are for `./test --slow`."""
    learn, domain = LEARNERS[name]
    unit = UNITS[list(LEARNERS).index(name) % len(UNITS)]
    asked = asked_by(learn, domain, monkeypatch)
    assert asked
    for one in asked[:3]:
        assert sensitivities.worst(one, domain, sensitivities.UNITS[unit], large=False) == ""


@pytest.mark.slow
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("name", LEARNERS)
def test_under_every_unit(name: str, unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    learn, domain = LEARNERS[name]
    for one in asked_by(learn, domain, monkeypatch):
        assert sensitivities.worst(one, domain, sensitivities.UNITS[unit], large=False) == ""


def test_a_learner_that_understates_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Negative control: one query says half of what it moves by."""
    learn, domain = LEARNERS["tables"]
    (asked,) = asked_by(learn, domain, monkeypatch)
    real = Table.sum
    monkeypatch.setattr(Table, "sum", lambda self, query: tuple(2 * part for part in real(self, query)))
    assert "moved by" in sensitivities.worst(asked, domain, sensitivities.UNITS[UNITS[0]], large=False)
