"""Learning by specification, with everything that goes into a release, through record and replay on neighbours."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from discreet.audit import audit_replay, failures
from discreet.domain import Attribute, Domain
from discreet.measurement import Measurement
from discreet.privacy.budget import ApproxDP, Budget, PureDP
from discreet.privacy.curator import Curator
from discreet.privacy.query import Marginals
from discreet.privacy.unit import PrivacyUnit
from discreet.spec import Spec, resolve

COLUMNS = (Attribute.categorical("a", 2), Attribute.categorical("b", 3), Attribute.categorical("c", 2))
PLAIN = Domain(COLUMNS)
RULED = Domain(COLUMNS, ({"a": "0", "b": ["1", "2"]},))  # type: ignore[arg-type]
UNITS = {
    "row, add-remove": PrivacyUnit(),
    "row, replace-one": PrivacyUnit(relation="replace-one"),
    "person, add-remove": PrivacyUnit("person", max_rows=2),
}
SPECS = {
    "default": resolve(PLAIN),
    "optimal": Spec("network", "optimal", {"graph": {"b": ["a"], "c": ["b"]}}),
    "two stages": Spec("network", "two_stage", {"graph": {"b": ["a"], "c": ["b"]}}),
    "network searched": Spec("network", "searched", {"max_parents": 2}),
    "network found": Spec("network", "found"),
    "field": Spec("field", "noise_aware", {"cliques": [["a", "b"], ["c"]]}),
    "pairwise": Spec("field", "pairwise"),
}


def release(curator: Curator, spec: Spec) -> Any:
    """All that goes into a release file: model, card, sums and specification; with a public total besides."""
    learned = spec.learn(curator, [Measurement.public(curator.domain, ["a"], [2, 2])])
    sums = learned.measurements
    return learned.model, learned.spec, [] if sums is None else [m.counts for m in sums], sums and sums.release


@pytest.mark.crossed
@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("domain", [PLAIN, RULED], ids=["plain", "structural zeros"])
@pytest.mark.parametrize("name", SPECS)
def test_nothing_depends_on_rows_but_through_noise(name: str, domain: Domain, unit: str) -> None:
    algorithm = partial(release, spec=SPECS[name])
    found = audit_replay(algorithm, domain, UNITS[unit], PureDP(1), count=12)
    assert failures(found) == []


@pytest.mark.parametrize("name", ["default", "network searched", "network found"])
def test_other_budgets(name: str) -> None:
    budget: Budget = ApproxDP(1, 1e-6)
    found = audit_replay(partial(release, spec=SPECS[name]), PLAIN, PrivacyUnit(), budget, count=12)
    assert failures(found) == []


def _size_in_the_card(curator: Curator) -> Any:
    learned = SPECS["optimal"].learn(curator)
    return learned.model.with_card({"records": int(curator._rows.sum(Marginals(PLAIN, [()]))[0])})


def _remembers_exact_sums(curator: Curator) -> Any:
    learned = SPECS["optimal"].learn(curator)
    return learned.model, [t.tolist() for t in curator._rows.sum(Marginals(PLAIN, [("a", "b")]))]


@pytest.mark.parametrize("planted", [_size_in_the_card, _remembers_exact_sums], ids=lambda f: f.__name__)
def test_planted_bugs_are_caught(planted: Callable[[Curator], Any]) -> None:
    found = audit_replay(planted, PLAIN, PrivacyUnit(), PureDP(1), count=40)
    assert failures(found) != []
