"""Shown = run = recorded. For every method, notion, relation, unit, and public or private size: the steps that a plan
prints are the calls that the curator sees, the entries of the ledger and the steps on the card, also of a file that is
opened again. What a method cannot do it refuses in ``prepare``, before there is anything to charge."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from covering import covering
from shown import Seen, WatchedGateway, differences, watching

from discreet import ZCDP, ApproxDP, Curator, Domain, Ledger, PrivacyUnit, PureDP, Release, Spec, encode
from discreet.errors import BudgetError, DiscreetError, InputError
from discreet.learn.held_out import HeldOut
from discreet.learn.learner import Learner
from discreet.learn.procedure import Procedure, Step, Whole
from discreet.learn.query_release import GaussianAnswers, MultiplicativeWeights, Parities, PerturbedLeader
from discreet.learn.regressions.convex import ConvexLearner
from discreet.learn.regressions.logistic import LogisticLearner
from discreet.learn.structure.result import StructureResult
from discreet.learn.tables import Tables
from discreet.measurement import Measurements
from discreet.methods import METHODS
from discreet.models.ising import IsingModel
from discreet.papers.output_perturbation import OutputPerturbation
from discreet.privacy.budget import Budget, part_of
from discreet.privacy.queries.polytope import Loss, Polytope
from discreet.privacy.query import Marginals
from discreet.privacy.requests import Asking, Measure

N = 60
BUDGETS = [PureDP(1), ZCDP("0.5"), ApproxDP(1, "1e-6")]
UNITS = [
    PrivacyUnit(c, m, r) for (c, m), r in itertools.product([(None, 1), ("who", 2)], ["add-remove", "replace-one"])
]
SETTINGS = list(itertools.product(BUDGETS, UNITS, [None, N]))
COVERING = [SETTINGS[i] for i in sorted(covering([tuple(map(id, values)) for values in SETTINGS]))]

SPINS = Domain.of({"a": 2, "b": 2, "c": 2, "d": 2})
MIXED = Domain.of({"a": 2, "b": 3, "c": 2, "d": 2})
GRAPH = {"b": ["a"], "c": ["b"], "d": ["a", "c"]}
CYCLE = [["a", "b"], ["b", "c"], ["c", "d"], ["a", "d"]]


def table_for(domain: Domain) -> Any:
    rng = np.random.default_rng(1)
    columns = {name: rng.integers(0, domain[name].size, N) for name in domain.names}
    columns["b"] = np.where(rng.random(N) < 0.8, columns["a"], columns["b"])
    return encode({**columns, "who": np.arange(N) // 2}, domain, unit="who")


ROWS = {domain: table_for(domain) for domain in (SPINS, MIXED)}

# What keeps a run small, or must be given; some methods are tried in more than one way.
SMALL: dict[str, list[dict[str, Any]]] = {
    "network searched": [{"max_parents": 2}],
    "field collective": [{"iterations": 2}],
    "field pairwise_regressions": [{"steps": 2}, {}],
    "network hidden": [{"together": 2, "iterations": 5}],
    "field hidden": [{"classes": 1}, {"iterations": 1}],
    "field descent": [{"approximate_size": N, "rounds": 3, "rate": 0.25}],
    "chain noise_aware": [{}, {"order": 2}, {"tied": False}],
    "chain descent": [{"approximate_size": N, "rounds": 3, "rate": 0.25}],
    "spin moments": [{"strategy": "all"}, {"strategy": "selected"}, {"order": 3}],
    "spin frank_wolfe": [{"steps": 2}, {}, {"variant": "published", "steps": 2}],
    "spin maximal_monomials": [
        {"order": 2, "min_weight": 0.2, "steps": 2, "release": how, "halves": halves}
        for how, halves in [("gaussian", False), ("multiplicative_weights", True), ("perturbed_leader", False)]
    ],
    "structure stable_edges": [{}, {"min_weight": 0.3}],
    "structure thresholded_regressions": [{"steps": 2}],
    "structure stable_mode": [
        {"min_weight": 0.2, "width": 1.0, "steps": 2, "blocks": 5, "how": how}
        for how in ("histogram", "propose-test-release", "each edge")
    ],
}


def specs() -> Iterator[tuple[str, Spec, Domain]]:
    for method in METHODS:
        domain = MIXED if method.family in ("network", "field") else SPINS
        given = {"graph": GRAPH} if method.needs == "graph" else {"cliques": CYCLE} if method.needs else {}
        for options in SMALL.get(f"{method.family} {method.name}", [{}]):
            words = "".join(f" {k}={v}" for k, v in options.items())
            yield f"{method.family} {method.name}{words}", Spec(method.family, method.name, given | options), domain


SPECS = {name: (spec, domain) for name, spec, domain in specs()}


def refuses(name: str, budget: Budget, unit: PrivacyUnit) -> bool:
    """What cannot be done; everything else must be."""
    if "stable_" in name:
        return not isinstance(budget, ApproxDP)
    return "descent" in name and (not isinstance(budget, ApproxDP) or unit.relation != "add-remove")


def watched(learner: Any, rows: Any, budget: Budget, unit: PrivacyUnit, size: int | None) -> Any:
    """Prepare, run, estimate: the procedure, what was seen, the ledger, and what came out; None for a refusal."""
    ledger = Ledger.in_memory(budget)
    planned = learner.prepare if isinstance(learner, Spec) else learner.plan
    with watching() as seen:
        try:
            procedure = planned(rows.domain, unit, budget, public_size=size)
        except DiscreetError:
            with (
                pytest.raises(DiscreetError),
                Curator(rows, unit, budget, ledger, gateway=WatchedGateway(seen)) as curator,
            ):
                (learner.learn if isinstance(learner, Spec) else learner.fit)(curator)
            assert ledger.spent is None and seen == Seen()
            return None
        with Curator(rows, unit, budget, ledger, public_size=size, gateway=WatchedGateway(seen)) as curator:
            released = procedure.run(curator)
    out = (
        learner.conclude(released, rows.domain)
        if isinstance(learner, Spec)
        else learner.estimate(released, rows.domain)
    )
    return procedure, seen, ledger, out


@pytest.mark.parametrize(
    "settings", [COVERING, pytest.param(SETTINGS, marks=pytest.mark.slow)], ids=["every two", "all together"]
)
@pytest.mark.parametrize("name", SPECS)
def test_every_method_of_the_registry(name: str, settings: list[Any], tmp_path: Path) -> None:
    spec, domain = SPECS[name]
    for at, (budget, unit, size) in enumerate(settings):
        done = watched(spec, ROWS[domain], budget, unit, size)
        assert (done is None) == refuses(name, budget, unit), (budget, unit)
        if done is None:
            continue
        procedure, seen, ledger, learned = done
        saved = tmp_path / f"{at}"
        if isinstance(learned.model, StructureResult):
            learned.model.save(saved)
            cards = [learned.model.card, StructureResult.load(saved).card]
        else:
            cards = [learned.model.card]
            if at % 3 == 1:  # all notions, relations, units and sizes come by
                Release.of(learned).save(saved := saved.with_suffix(".zip"))
                again = Release.load(saved)
                cards += [again.card, *([again.measurements.release] if again.measurements else [])]
        for card in cards:
            assert differences(procedure, seen, ledger, card) == [], (budget, unit, size)


@pytest.mark.parametrize("name", [n for n, (spec, _) in SPECS.items() if spec.family != "structure"])
def test_every_method_with_a_certificate(name: str) -> None:
    """The last step of any method, or a refusal where the records are divided into blocks."""
    spec, domain = SPECS[name]
    certified = replace(spec, certify=0.2)
    for budget, unit, size in SETTINGS[1::5]:
        done = watched(certified, ROWS[domain], budget, unit, size)
        assert (done is None) == ("halves=True" in name or "descent" in name), (budget, unit)
        if done is None:
            continue
        procedure, seen, ledger, learned = done
        assert procedure.steps[-1].name == "certificate: distances of 6 pairs from the model"
        assert differences(procedure, seen, ledger, learned.model.card) == [], (budget, unit, size)
        parts = [part_of(step.share, budget) for step in procedure.steps]
        assert float(parts[-1]) == pytest.approx(0.2) and sum(parts) <= 1
        assert Release.of(learned).certificate.cliques


# -- learners outside the registry -------------------------------------------------------------------------------------


def absolute(w: Any, records: Any) -> Any:
    return np.stack([np.sign(w[0] - records["a"]), np.sign(w[1] - records["b"])], axis=1)


BOX = Polytope.of([[0, 0], [1, 0], [0, 1], [1, 1]])
LOGISTIC = {"target": "a", "values": {"b": [-1, 1], "c": [-1, 1]}}
PARITIES = Parities(SPINS, list(itertools.combinations(SPINS.names, 2)))
OTHERS: dict[str, Learner[Any]] = {
    "tables": Tables([("a", "b"), ("c",)]),
    "held out": HeldOut(IsingModel(0.3 * (1 - np.eye(4)), domain=SPINS)),
    "answers": GaussianAnswers(PARITIES),
    "multiplicative weights": MultiplicativeWeights(PARITIES, rounds=2),
    "perturbed leader": PerturbedLeader(PARITIES, rounds=2, samples=3),
    "perturbed leader, unknown rounds": PerturbedLeader(PARITIES, samples=2),
    "logistic": LogisticLearner(**LOGISTIC, steps=2),
    "logistic, unknown steps": LogisticLearner(**LOGISTIC),
    "convex": ConvexLearner(Loss(("a", "b"), absolute, 1.0), BOX, steps=2),
    "convex, published": ConvexLearner(Loss(("a", "b"), absolute, 1.0), BOX, "published"),
    "output perturbation": OutputPerturbation(CYCLE),
}


@pytest.mark.parametrize("name", OTHERS)
def test_every_other_learner(name: str) -> None:
    learner, rows = OTHERS[name], ROWS[SPINS]
    for budget, unit, size in SETTINGS:
        done = watched(learner, rows, budget, unit, size)
        assert (done is None) == refuses(name, budget, unit), (budget, unit)
        if done is not None:
            procedure, seen, ledger, out = done
            card = out.release if isinstance(out, Measurements) else getattr(out, "card", None)
            assert (card is None) == ("held out" in name)
            assert differences(procedure, seen, ledger, card) == [], (budget, unit, size)


# -- planted: learners that do not do what they show ------------------------------------------------------------------


@dataclass(frozen=True)
class Planted(Learner[Measurements]):
    """One noisy table for half of the budget, another for the rest; ``fault`` is what is wrong with it."""

    fault: str = ""

    def prepare(self, whole: Whole) -> Procedure:
        domain, budget = whole.domain, whole.budget
        half, rest = budget.split([1, 1])
        first = whole.measure("a", Measure(half, Marginals(domain, ["a"])))
        second = whole.later("b", rest, lambda released: _asks(Measure(rest, Marginals(domain, ["b"]))), "laplace")
        if self.fault == "more than its share":
            first = replace(first, asks=lambda released: _asks(Measure(budget, Marginals(domain, ["a"]))))
        if self.fault == "another query":
            first = replace(first, asks=lambda released: _asks(Measure(half, Marginals(domain, ["b"]))))
        if self.fault == "another table of the same size":
            first = replace(first, asks=lambda released: _asks(Measure(half, Marginals(domain, ["c"]))))
        if self.fault == "other noise":
            first = replace(first, asks=lambda released: _asks(Measure(half, Marginals(domain, ["a"]), "gaussian")))
        if self.fault == "less than it says":
            first = replace(
                first, asks=lambda released: _asks(Measure(half.split([1, 1])[0], Marginals(domain, ["a"])))
            )
        if self.fault == "hidden row":
            first = replace(first, rows=())
        steps: tuple[Step, ...] = (first, second)
        procedure = Procedure("planted", whole, steps)
        return Unlisted(**vars(procedure)) if self.fault == "not listed" else procedure

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> Measurements:
        return measurements


def _asks(request: Measure) -> Asking[None]:
    yield request


class Unlisted(Procedure):
    """Runs less than it was shown with, and asks the curator for something else with what is left."""

    def run(self, curator: Curator, transcript: Any = None) -> Measurements:
        one = replace(self, steps=self.steps[:1])
        released = Procedure(**vars(one)).run(curator)
        curator.measure(Marginals(self.domain, ["d"]), self.steps[1].share)
        return Measurements(released, {**curator.statement(), "found": {}})


def planted(fault: str) -> list[str]:
    budget = ZCDP("0.5") if fault == "other noise" else PureDP(1)
    procedure, seen, ledger, out = watched(Planted(fault), ROWS[SPINS], budget, PrivacyUnit(), None)
    return differences(procedure, seen, ledger, out.release)


def test_an_honest_learner_passes() -> None:
    assert planted("") == []


def test_more_than_its_share_is_refused_while_it_runs() -> None:
    with pytest.raises(BudgetError, match="the step 'a' has spent its share"):
        planted("more than its share")


@pytest.mark.parametrize(
    ("fault", "rule"),
    [
        ("not listed", "unlisted"),
        ("another query", "query"),
        ("another table of the same size", "query"),
        ("other noise", "noise"),
        ("less than it says", "share"),
        ("hidden row", "printed"),
    ],
)
def test_what_was_not_shown_is_caught_by_name(fault: str, rule: str) -> None:
    found = planted(fault)
    assert any(problem.startswith(f"{rule}:") for problem in found), found


def test_shares_beyond_the_budget_make_no_procedure() -> None:
    whole = Whole(SPINS, PrivacyUnit(), PureDP(1))
    with pytest.raises(InputError, match="more than the whole"):
        Procedure("greedy", whole, (whole.count(PureDP("0.6")), whole.count(PureDP("0.6"))))


def test_records_that_say_less_or_more_are_caught_by_name() -> None:
    procedure, seen, ledger, out = watched(Planted(), ROWS[SPINS], PureDP(1), PrivacyUnit(), None)
    steps = out.release["steps"]
    for card in ({**out.release, "steps": steps[:1]}, {**out.release, "steps": [*steps, steps[0]]}):
        assert any(p.startswith("card:") for p in differences(procedure, seen, ledger, card))
    assert any(p.startswith("ledger:") for p in differences(procedure, seen, Ledger.in_memory(PureDP(1)), out.release))
    seen.drawn.append(seen.drawn[0])  # a draw that no entry tells of
    assert any(p.startswith("noise:") for p in differences(procedure, seen, ledger, out.release))
