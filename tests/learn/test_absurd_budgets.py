"""Budgets far from any meaning: what is paid for still comes to an end, and what cannot be prepared says so."""

from __future__ import annotations

import pytest
import test_shown_run_recorded as shown

from discreet import ZCDP, Curator, PrivacyUnit, PureDP, encode


@pytest.mark.parametrize(
    ("name", "budget"),
    [
        ("field collective iterations=2", PureDP("1e9")),  # so little noise that nothing is left to search
        ("chain collective", ZCDP("1e30")),
        ("field noise_aware", PureDP("1e30")),  # noise that no number of records is too small for
    ],
)
def test_a_run_without_noise_to_speak_of_ends(name, budget):
    spec, domain = shown.SPECS[name]
    with Curator(encode({n: [] for n in domain.names}, domain), PrivacyUnit(), budget) as curator:
        assert spec.learn(curator).model is not None
