"""Rows of the table about what depends on records: every learner on neighbours, and every kind of question."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import test_every_sensitivity as sensitivities
import test_shown_run_recorded as shown

from discreet import ZCDP, ApproxDP, Curator, Domain, PrivacyUnit, PureDP
from discreet.audit import audit_replay, audit_sizes, failures
from discreet.audit.draws import audit_draws_by_statistics, draws_of
from discreet.privacy.budget import Budget

from .table import Row, Seen

BUDGETS: tuple[Budget, ...] = (PureDP(1), ZCDP("0.5"), ApproxDP(1, "1e-6"))
PAIRS = 7  # of a learner at a time: tables of zero to six units
SIZES = (3, 0, 1, 100, 1_000)
DRAWS = 20_000
UNITS = {
    "row, add-remove": PrivacyUnit(),
    "row, replace-one": PrivacyUnit(relation="replace-one"),
    "person, add-remove": PrivacyUnit("who", max_rows=2),
    "person, replace-one": PrivacyUnit("who", max_rows=2, relation="replace-one"),
}


@lru_cache(maxsize=1)
def learners() -> list[tuple[str, Any, Domain]]:
    """Everything that learns, of the registry and beside it, with the columns that it is tried on."""
    out = [(name, spec.learn, domain) for name, (spec, domain) in shown.SPECS.items()]
    others = [(n, learner.fit, shown.SPINS) for n, learner in shown.OTHERS.items()]
    return [*out, *others]


def setting(name: str, unit: PrivacyUnit, number: int) -> Budget | None:
    """Budgets take turns; None where a learner does nothing under this unit."""
    for budget in itertools.islice(itertools.cycle(BUDGETS), number % 3, number % 3 + 3):
        if not shown.refuses(name, budget, unit):
            return budget
    return None


def released(learn: Callable[[Curator], Any]) -> Callable[[Curator], Any]:
    """What comes out, as values that can be compared."""

    def run(curator: Curator) -> Any:
        out = learn(curator)
        sums = getattr(out, "measurements", None)
        return getattr(out, "model", out), [] if sums is None else [m.counts for m in sums], curator.statement()

    return run


def chunks(first: int, count: int, size: int) -> Iterator[tuple[int, int, int]]:
    """Attempts as learners and seeds: which learner, which seed, how many."""
    every = len(learners())
    for begin in range(first, first + count, size):
        number = begin // size
        yield number % every, number // every, min(size, first + count - begin)


def neighbours(unit: str) -> Callable[[int, int, Seen], None]:
    def run(first: int, count: int, seen: Seen) -> None:
        for which, seed, size in chunks(first, count, PAIRS):
            seen.at(first)
            name, learn, domain = learners()[which]
            budget = setting(name, UNITS[unit], seed)
            if budget is None:
                seen.count("refused", size)
                continue
            found = audit_replay(released(learn), domain, UNITS[unit], budget, count=size, seed=seed)
            for failure in failures(found):
                if failure.name != "the algorithm returns" or "refus" not in failure.detail:
                    seen.wrong(first, f"{name}, {budget}, seed {seed}: {failure}")

    return run


def sizes(first: int, count: int, seen: Seen) -> None:
    for number in range(first, first + count):
        seen.at(number)
        which, rest = number % len(learners()), number // len(learners())
        name, learn, domain = learners()[which]
        unit = list(UNITS.values())[rest % 4]
        budget = setting(name, unit, rest // 4)
        if budget is None:
            continue
        for failure in failures(audit_sizes(released(learn), domain, unit, budget, sizes=SIZES, seed=rest)):
            seen.wrong(number, f"{name}, {unit}, {budget}: {failure}")


def statistics(first: int, count: int, seen: Seen) -> None:
    for number in range(first, first + count):
        seen.at(number)
        which, rest = number % len(learners()), number // len(learners())
        name, learn, domain = learners()[which]
        unit = list(UNITS.values())[(which + rest) % 4]
        budget = setting(name, unit, rest)
        if budget is None:
            continue
        draws = draws_of(released(learn), domain, unit, budget, seed=rest)
        seen.count("draws", min(len(draws), 4))
        if not draws:
            continue
        finding = audit_draws_by_statistics(draws, DRAWS)
        if not finding.passed:
            seen.wrong(number, f"{name}, {unit}, {budget}: {finding}")


def questions(first: int, count: int, seen: Seen) -> None:
    every = list(itertools.product(sensitivities.PLAIN, sensitivities.UNITS))
    for number in range(first, first + count):
        seen.at(number)
        (kind, case), unit = every[number * 37 % len(every)]  # so that a sample is spread out
        asked = sensitivities.CASES[kind][case]()
        domain = sensitivities.of_the_rows((asked.query if hasattr(asked, "query") else asked).domain)
        worst = sensitivities.worst(asked, domain, sensitivities.UNITS[unit], large=True)
        if worst:
            seen.wrong(number, f"{kind.__name__} {case}, {unit}: {worst}")


def _rows() -> Iterator[Row]:
    every = len(learners())
    for unit in UNITS:
        yield Row(
            f"every learner on neighbours, {unit}",
            "replay differs in nothing; losses within every share",
            10_000 * every,
            PAIRS * every,
            PAIRS * 10,
            neighbours(unit),
            f"pairs, {every} learners",
        )
    yield Row(
        "every learner on tables of other sizes",
        f"nothing but noise tells {', '.join(f'{n:,}' for n in SIZES)} units apart",
        100 * every,
        8,
        1,
        sizes,
        f"runs, {every} learners",
    )
    yield Row(
        "every learner's costliest draws, statistics",
        f"lower bound on ε (1 − 10⁻⁶) within the share; {DRAWS:,} runs a side",
        4 * every,
        4,
        1,
        statistics,
        f"audits, {every} learners",
        lambda facts: f"{facts.get('draws', 0):,.0f} draws",
    )
    cases = len(sensitivities.PLAIN) * len(sensitivities.UNITS)
    yield Row(
        "declared sensitivities, exactly",
        "no neighbour moves it further",
        cases,
        cases // 8,
        2,
        questions,
        f"cases (of {len(sensitivities.CASES)} kinds), all neighbours each",
    )


ROWS = list(_rows())
