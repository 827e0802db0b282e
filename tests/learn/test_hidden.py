"""What records do not show: classes and values missing at random, on models that are known."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from discreet import Curator, Domain, PrivacyUnit, PureDP, Release, encode, resolve
from discreet.domain import Attribute
from discreet.errors import CostError, InputError
from discreet.learn.hidden.completing import CLASS, Hidden, known
from discreet.learn.hidden.field import HiddenField
from discreet.learn.hidden.network import HiddenNetwork
from discreet.privacy.curator import ExactCurator
from discreet.release.research import ResearchCurator

NAMES = "abcde"
GIVEN = np.array([[0.9, 0.2], [0.8, 0.3], [0.15, 0.7], [0.6, 0.1], [0.25, 0.9]])  # P(yes | class)
FIVE = Domain.of(dict.fromkeys(NAMES, 2))


def of_classes(n: int, seed: int) -> np.ndarray:
    rng = np.random.default_rng(seed)
    second = rng.random(n) < 0.35
    return (rng.random((n, 5)) < GIVEN[:, second.astype(int)].T).astype(int)


@pytest.mark.parametrize(
    ("learner", "within"), [(HiddenNetwork(), 0.04), (HiddenField([("a", "b")], iterations=40), 0.06)]
)
def test_classes_that_made_the_records_are_found(learner: Any, within: float) -> None:
    table = encode(of_classes(20_000, 1), FIVE)
    model = learner.fit(ResearchCurator(table, budget=PureDP(2), seed=3))
    np.testing.assert_allclose(model.marginal(CLASS).probabilities, [0.65, 0.35], atol=within)
    for k in (0, 1):
        found = [float(model.probability({n: 1}, {CLASS: k + 1})) for n in NAMES]
        np.testing.assert_allclose(found, GIVEN[:, k], atol=within)
    assert "mean nothing" in model.card["identifiability"] and "certainly not" not in model.card["identifiability"]
    assert model.card["misfit"] < 1.2 and model.card["converged"] in (True, False)


def test_classes_that_tables_cannot_tell_are_said_to_be_undetermined() -> None:
    table = encode(of_classes(2000, 1)[:, :3], FIVE.project(list("abc")))
    for learner in (HiddenNetwork(together=2), HiddenNetwork(classes=4), HiddenField([("a", "b", "c")], iterations=2)):
        card = learner.fit(ExactCurator(table)).card
        assert "certainly not determined" in card["identifiability"], learner
    assert "identifiability" not in HiddenNetwork(classes=1).fit(ExactCurator(table)).card


COLUMNS = Domain(
    (
        Attribute.categorical("a", ["no", "yes"]),
        Attribute.categorical("b", ["no", "yes"], missing="?"),
        Attribute.categorical("c", ["no", "yes"], missing="?"),
    )
)


def with_gaps(n: int, seed: int, *, by_a: bool) -> tuple[Any, np.ndarray]:
    """b is missing more often where a says yes, or anywhere alike; c anywhere."""
    rng, x = np.random.default_rng(seed + 100), of_classes(n, seed)[:, :3]
    lost = rng.random(n) < (0.1 + 0.7 * x[:, 0] if by_a else 0.4)
    words = np.array(["no", "yes"])
    b = np.where(lost, None, words[x[:, 1]])
    c = np.where(rng.random(n) < 0.2, None, words[x[:, 2]])
    return encode({"a": words[x[:, 0]], "b": b, "c": c}, COLUMNS), x


@pytest.mark.parametrize(
    ("learner", "by_a"),
    [
        (HiddenField([("a", "b", "c")], classes=1, missing="random"), True),
        (HiddenField([("a", "b"), ("b", "c")], classes=1, missing="random"), False),
        (HiddenNetwork(missing="random"), True),
    ],
)
def test_values_missing_at_random_are_seen_through(learner: Any, by_a: bool) -> None:
    table, x = with_gaps(30_000, 2, by_a=by_a)
    model = learner.fit(ResearchCurator(table, budget=PureDP(2), seed=1))
    assert [a.missing for a in model.domain.attributes][:3] == [None] * 3
    assert float(model.probability({"b": "yes"})) == pytest.approx(x[:, 1].mean(), abs=0.02)
    assert float(model.probability({"b": "yes"}, {"a": "yes"})) == pytest.approx(x[x[:, 0] == 1, 1].mean(), abs=0.03)
    assert float(model.probability({"c": "yes"})) == pytest.approx(x[:, 2].mean(), abs=0.02)
    if by_a:  # what is there alone is another thing
        (counts,) = table.count([("b",)])
        assert abs(counts[1] / counts[:2].sum() - x[:, 1].mean()) > 0.05
    assert "missing at random" in model.card["unchecked"]


def test_one_step_fills_in_what_the_model_says() -> None:
    hidden = Hidden(COLUMNS, 2, missing=True)
    joint = np.random.default_rng(1).dirichlet(np.ones(8)).reshape(2, 2, 2)  # a, b, class
    table = np.array([[0.1, 0.2, 0.3], [0.05, 0.05, 0.3]])
    made, fit = hidden.completed(("a", "b"), table, joint)
    by_hand = np.zeros_like(joint)
    for a in range(2):
        for b in range(2):
            for k in range(2):
                seen = table[a, b] * joint[a, b, k] / joint[a, b].sum()
                by_hand[a, b, k] = seen + table[a, 2] * joint[a, b, k] / joint[a].sum()
    np.testing.assert_allclose(made, by_hand)
    expected = (table[:, :2] * np.log(joint.sum(axis=2))).sum() + (table[:, 2] * np.log(joint.sum(axis=(1, 2)))).sum()
    assert fit == pytest.approx(expected) and made.sum() == pytest.approx(1)


def test_a_release_of_them_says_all_that_releases_say(tmp_path: Path) -> None:
    table, _ = with_gaps(5000, 3, by_a=False)
    ways = {
        "field": {"cliques": [["a", "b"], ["b", "c"]], "options": {"classes": 1, "missing": "random"}},
        "network": {"options": {"missing": "random", "iterations": 30}},
    }
    for family, how in ways.items():
        spec = resolve(table.domain, family=family, method="hidden", **how)
        with Curator(table, PrivacyUnit(), PureDP(2)) as curator:
            Release.of(spec.learn(curator)).save(tmp_path / f"{family}.zip")
        release = Release.load(tmp_path / f"{family}.zip")
        assert release.refit_agrees()
        interval = release.intervals(draws=3).marginal("b")
        assert interval.estimate.shape == (2,) and (interval.half_width > 0).all()
        assert len(release.model.sample(5, random_state=1).codes) == 5


def test_wrong_use_is_explained_before_anything_is_spent() -> None:
    wide = Domain.of({f"x{i}": 2 for i in range(60)})
    named = Domain.of({CLASS: 2, "a": 2})
    wrong: list[tuple[type, str, Any]] = [
        (
            InputError,
            "none of these columns has a level for missing",
            lambda: HiddenNetwork(missing="random").plan(FIVE, PrivacyUnit(), PureDP(1)),
        ),
        (InputError, "missing must be", lambda: HiddenField([("a",)], missing="maybe")),  # type: ignore[arg-type]
        (InputError, "classes", lambda: HiddenNetwork(classes=0)),
        (InputError, "rename", lambda: HiddenNetwork().plan(named, PrivacyUnit(), PureDP(1))),
        (InputError, "rename", lambda: HiddenField([("a",)]).plan(named, PrivacyUnit(), PureDP(1))),
        (CostError, "together=2", lambda: HiddenNetwork().plan(wide, PrivacyUnit(), PureDP(1))),
        (
            InputError,
            "certificate",
            lambda: resolve(COLUMNS, family="network", method="hidden", options={"missing": "random"}, certify=0.1),
        ),
    ]
    for kind, words, work in wrong:
        with pytest.raises(kind, match=words):
            work()
    assert known(COLUMNS["b"]).labels == ("no", "yes")
