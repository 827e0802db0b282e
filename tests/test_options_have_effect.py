"""No option without effect: each option of each method is changed, and what is asked, what is released, what is
estimated from the same released sums, or a refusal tells the difference."""

from __future__ import annotations

import functools
import json
from typing import Any

import numpy as np
import pytest

from discreet import ZCDP, ApproxDP, Domain, Spec, encode
from discreet.errors import DiscreetError
from discreet.learn.procedure import Procedure
from discreet.measurement import Measurements
from discreet.methods import METHODS, STRUCTURE
from discreet.models import generators
from discreet.models.base import Model
from discreet.privacy.unit import PrivacyUnit
from discreet.release.research import ResearchCurator

UNIT = PrivacyUnit()
GRAPH = {"b": ["a"], "c": ["b"], "d": ["a", "c"]}
CYCLE = [["a", "b"], ["b", "c"], ["c", "d"], ["a", "d"]]

# A value other than the default for every option; those of one method stand under its family and name.
OTHER: dict[Any, Any] = {
    "noise": "laplace",
    "shares": "equal",
    "approximate_size": 40,
    "largest": 4,
    "too_large": "coarsen",
    "fit_steps": 1,
    "fitted": False,
    "step_back": False,
    "probes": 1,
    "least_records": 3.0,
    "rate": 0.5,
    "first_stage": 0.3,
    "max_parents": 3,
    "selection": 0.5,
    "counting": 0.1,
    "root": "c",
    "inference": "loopy",
    "iterations": 1,
    "solver": "nlbp",
    "stopping": "converged",
    "likelihood": "noise",
    "damping": 0.5,
    "tolerance": 100.0,
    "penalty": 0.5,
    "project": False,
    "strategy": "one shot",
    "order": 3,
    "width": 0.1,
    "max_edges": 1,
    "min_weight": 0.9,
    "variant": "published",
    "steps": 3,
    "vertices": "coordinate",
    "release": "multiplicative_weights",
    "halves": True,
    "test": "correlation",
    "base": "sparsitron",
    "how": "each edge",
    "blocks": 7,
    "random_state": 1,
    "most_cells": 4,
    "triples": False,
    "groups": False,
    "workload": [{"columns": ["a", "b"], "weight": 3}],
    "target": "c",
    ("field", "noise_aware", "approximate_size"): 1,
    "classes": 3,
    "together": 2,
    "missing": "random",
    "tied": False,
    "bound": "scale",
    "rounds": 7,
    "clip": 0.5,
    "learning_rate": 0.5,
    ("structure", "stable_mode", "blocks"): 9,
    ("structure", "stable_mode", "steps"): 1,
}
# Where the default of one option leaves nothing to another, or an option must be given.
BESIDE: dict[Any, dict[str, Any]] = {
    "hidden": {"iterations": 2},
    "collective solver": {"iterations": 1},
    "descent": {"approximate_size": 3000, "rounds": 5, "rate": 0.2},
    "optimal too_large": {"largest": 4},
    "optimal step_back": {"approximate_size": 1},
    "noise_aware step_back": {"approximate_size": 1},
    "uniform too_large": {"largest": 4},
    "two_stage too_large": {"largest": 4},
    "collective likelihood": {"noise": "laplace"},  # Gaussian noise is normal by its own law
    "maximal_monomials": {"order": 2, "min_weight": 0.2},
    "stable_mode": {"min_weight": 0.2, "width": 1.0},
}
CASES = [(m, option) for m in METHODS for option in m.options]
WIDE = [("spin", "moments"), (STRUCTURE, "selected_edges")]
"""Methods whose random_state seeds Gibbs chains, which run on wide graphs only."""


@functools.cache
def table(columns: int, levels: int = 2):
    """Records of a cycle of spins with a chord, plain enough that its edges are found; one column may tell them in more
    levels."""
    cycle = [(i, (i + 1) % columns) for i in range(columns)]
    model = generators.ising(columns, [*cycle, (0, 2)], weight=0.3)
    names = list("abcdefghijklmnopqrstuvwxyz"[:columns])
    rows = model.sample(3000, random_state=1).to_pandas().set_axis(names, axis=1)
    domain = Domain.of(dict.fromkeys(names, model.domain.attributes[0].levels))
    if levels > 2:
        spins = rows["a"].to_numpy() == model.domain.attributes[0].levels[1]
        rows["a"] = levels // 2 * spins + np.random.default_rng(0).integers(0, levels // 2, len(rows))
        domain = Domain.of({n: levels if n == "a" else domain[n] for n in names})
    return domain, encode(rows, domain)


class Seen:
    """What can be seen of a specification: what it asks, what is released with seeded noise, or that it refuses."""

    def __init__(self, method: Any, options: dict[str, Any], columns: int = 4, levels: int = 2) -> None:
        self.refusal, self.asked, self.released, self.learner = "", "", None, None
        domain, rows = table(columns, levels)
        self.domain = domain
        budget = ApproxDP(8, 1e-6) if method.name.startswith(("stable", "descent")) else ZCDP(2)
        given = {"graph": GRAPH} if method.needs == "graph" else {"cliques": CYCLE} if method.needs else {}
        try:
            self.learner = Spec(method.family, method.name, given | options).learner()
            procedure: Procedure = self.learner.plan(domain, UNIT, budget)
            self.asked = json.dumps(procedure.to_dict())
            self.released = procedure.run(ResearchCurator(rows, UNIT, budget, seed=5))
        except DiscreetError as error:
            self.refusal = str(error)

    def differs_from(self, other: Seen) -> str:
        if self.refusal or other.refusal:
            return "refused" if self.refusal != other.refusal else ""
        if self.asked != other.asked:
            return "another procedure"
        if plain(self.released) != plain(other.released):
            return "other answers"
        return "another estimate" if made(self, other.released) != made(other, other.released) else ""


def plain(released: Measurements | None) -> str:
    assert released is not None
    return repr([m.counts.tolist() for m in released]) + repr(dict(released.found))


def made(seen: Seen, released: Any) -> str:
    assert seen.learner is not None
    try:
        found = seen.learner.estimate(released, seen.domain)
    except DiscreetError as error:
        return f"refused: {error}"
    if not isinstance(found, Model):
        return repr((found.cliques, found.evidence))
    header, arrays = found.to_archive()
    return json.dumps(header["model"], default=str) + repr({k: np.asarray(v).tolist() for k, v in arrays.items()})


def base(method: Any, option: str) -> dict[str, Any]:
    return dict(BESIDE.get(f"{method.name} {option}", BESIDE.get(method.name, {})))


@pytest.mark.parametrize(("method", "option"), CASES, ids=[f"{m.family} {m.name} {o}" for m, o in CASES])
def test_every_option_has_an_effect(method: Any, option: str, monkeypatch: pytest.MonkeyPatch) -> None:
    columns, levels = 4, 400 if option == "groups" else 2
    if option == "random_state" and (method.family, method.name) in WIDE:
        monkeypatch.setattr("discreet.learn.spins.likelihood.PAIR_TREE_CELLS", 0)  # every graph is wide
        columns = 22
    beside = base(method, option)
    value = OTHER.get((method.family, method.name, option), OTHER[option])
    assert value != beside.get(option, method.options[option]), "this changes nothing"
    assert Seen(method, {**beside, option: value}, columns, levels).differs_from(Seen(method, beside, columns, levels))


@pytest.mark.parametrize("method", METHODS, ids=lambda m: f"{m.family} {m.name}")
def test_what_is_seen_is_the_same_when_nothing_is_changed(method: Any) -> None:
    """Otherwise the test above could not fail."""
    assert Seen(method, base(method, "")).differs_from(Seen(method, base(method, ""))) == ""
