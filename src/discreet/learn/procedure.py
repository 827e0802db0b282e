"""The procedure: what will be asked, in order. It is what a plan prints, what runs, and what the records say was done.

A procedure is prepared from public things alone: the domain, who is protected, the budget, and the number of records
where that is public. Each of its steps has a name for people, a share of the budget and the requests that it makes;
what cannot be known before is "made from what earlier steps released, within this share".

**Shown = run = recorded.** ``str(procedure)`` is the plan. :meth:`Procedure.run` goes through the same steps: the
curator lets a step spend no more than its share, and writes the step's name beside every entry of its account, from
where ledger, card and report read it. There is no other place where a share is computed or a step is named.

Guarantee: the procedure's budget, for the curator's unit and relation. Each request is (a part of) a step's share by
the curator's own argument; shares add up to the budget, in one of four ways:

* composed: the shares are parts of the budget (``Budget.split``), and the curator's account adds up what they cost;
* in sequence: ε and δ of the steps add up (:meth:`Curator.in_sequence`);
* as one Gaussian: all steps are Gaussian noise, and their μ² add up (:meth:`Curator.in_gaussian`);
* in blocks: each step is asked of one of several disjoint random blocks and may cost the whole budget, because a unit
  is in one block (:meth:`Curator.partition`).

What a step asks may depend on earlier answers, which are public by then: that is adaptive composition.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from typing import Any, Literal

from .. import markup
from ..arguments import require_domain
from ..domain import Clique, Domain
from ..errors import InputError, counted
from ..measurement import Measurement, Measurements
from ..privacy.budget import ZCDP, ApproxDP, Budget, GaussianDP, PureDP, exact, part_of
from ..privacy.calibration import noise_of, plan_noise, require_room
from ..privacy.curator import Curator
from ..privacy.query import Marginals
from ..privacy.requests import Ask, Asking, Measure, Request, answered, put
from ..privacy.unit import PrivacyUnit
from ..progress import step_begins
from . import planned
from .checks import check_curator, checked_public_size, checked_size
from .error_curve import ErrorCurve, error_curve
from .planned import PlannedTable, settled_later, step_lines, steps_text
from .transcript import Transcript

Found = Mapping[str, Any]
"""What a step found besides noisy sums, by name: public, and handed on to later steps and to ``estimate``."""
Asks = Callable[[Measurements], Asking[Found | None]]
"""From what earlier steps released (their sums, and in ``found`` the rest) to the requests of a step."""

ALL_PURE = "all_pure"
"""Under which name a step finds that all that was asked is pure, and all that follows is to be, although shares are
those of Gaussian noise."""
MOVED_LATER = 1 << 24
"""By how much a row can move what is asked that is made on the way: a hundred thousand distances in 64ths of a record,
under replace-one."""
Kept = bool | Literal["tables"]
"""Whether the sums of a step are used for the model: all, none, or its tables alone."""
Composition = Literal["composed", "in sequence", "as one Gaussian", "in blocks"]
"""How shares add up to the budget."""


@dataclass(frozen=True)
class Step:
    """One step: its name for people, its share, the rows that a plan shows of it, and what it asks.

    ``kept``: whether its noisy sums are among those that the model is estimated from; "tables": its tables are, and
    nothing else. ``rate``: the step is asked of a
    random sample of the records. ``block``: it is asked of this block, in a procedure that divides the records.
    """

    name: str
    share: Budget
    rows: tuple[PlannedTable, ...]
    asks: Asks
    kept: Kept = True
    rate: Fraction | None = None
    block: int | None = None


@dataclass(frozen=True)
class Whole:
    """All that a procedure is prepared from, which is public: columns, who is protected, and the whole budget that
    steps are cut from. It makes these steps.

    ``public_size`` is the number of records where that is public knowledge; ``approximate_size`` a guess of it, for the
    errors that are shown.
    """

    domain: Domain
    unit: PrivacyUnit
    budget: Budget
    public_size: int | None = None
    approximate_size: float | None = None

    def __post_init__(self) -> None:
        require_domain(self.domain)
        if not isinstance(self.unit, PrivacyUnit) or not isinstance(self.budget, PureDP | ZCDP | ApproxDP | GaussianDP):
            raise InputError(
                "a plan is made from a domain, who is protected and a budget, as in plan(domain, PrivacyUnit(), "
                f"PureDP(1)); got {type(self.unit).__name__} and {type(self.budget).__name__}"
            )
        checked_public_size(self.public_size)
        checked_size(self.approximate_size)

    @property
    def size(self) -> float | None:
        """The number of records that errors are shown for: the public one, or the guess."""
        return self.approximate_size if self.public_size is None else self.public_size

    def measure(self, name: str, request: Measure, *, why: str = "", kept: bool = True) -> Step:
        """A step that measures a query which is known before; its noise is known before, too."""
        query, weights = request.query, request.weights
        calls = plan_noise(query, self.unit, request.share, noise=request.noise, weights=weights).calls
        portions = [Fraction(1)] * len(calls) if weights is None else [exact(w, "a weight") for w in weights]
        part = part_of(request.share, self.budget) / sum(portions)
        rows = tuple(
            PlannedTable(
                p.clique or (),
                p.cells,
                float(part * portion),
                noise_of(call),
                why,
                name="" if p.clique is not None else name if len(calls) == 1 else p.label,
                grid=p.grid,
            )
            for p, portion, call in zip(query.parts, portions, calls, strict=True)
        )

        def asks(released: Measurements) -> Asking[None]:
            yield request

        return Step(name, request.share, rows, asks, kept)

    def count(self, share: Budget, *, kept: bool = True) -> Step:
        """The noisy number of records."""
        return self.measure("number of records", Measure(share, Marginals(self.domain, [()])), kept=kept)

    def later(self, name: str, share: Budget, asks: Asks, *mechanisms: str, kept: Kept = True) -> Step:
        """A step that is made from what earlier ones released, within this share; whatever it will be, its noise fits,
        for what was spent by then would be lost."""
        require_room(share, MOVED_LATER * self.unit.max_rows)
        row = settled_later(name, float(part_of(share, self.budget)), *mechanisms)
        return Step(name, share, (row,), asks, kept)


@dataclass(frozen=True)
class FoundFirst:
    """The first so many steps find what the columns are (:mod:`.discovery`); ``then`` makes the procedure that follows.
    ``aside``: the part of δ that is set aside for what those steps release by mistake."""

    steps: int
    then: Callable[[Measurements], Procedure]
    aside: Fraction = Fraction(0)


@dataclass(frozen=True)
class Procedure:
    """All steps of a learner, in order. Printable; made from public things only.

    ``given`` are public tables that need no asking, such as a public number of records. ``spec``: what it was prepared
    from, as plain data, by which a stopped run is known again.
    """

    method: str
    whole: Whole
    steps: tuple[Step, ...]
    notes: tuple[str, ...] = ()
    given: tuple[Measurement, ...] = ()
    composition: Composition = "composed"
    spec: Mapping[str, Any] = field(default_factory=dict)
    found_first: FoundFirst | None = None

    def __post_init__(self) -> None:
        parts = [part_of(step.share, self.budget) for step in self.steps]
        if (max(parts, default=0) if self.composition == "in blocks" else sum(parts)) > 1:
            raise InputError(f"the steps of {self.method!r} have shares of more than the whole budget")

    @property
    def domain(self) -> Domain:
        return self.whole.domain

    @property
    def unit(self) -> PrivacyUnit:
        return self.whole.unit

    @property
    def budget(self) -> Budget:
        return self.whole.budget

    # -- running ---------------------------------------------------------------------------------------------------

    def run(
        self, curator: Curator, transcript: Transcript | None = None, heard: Callable[[Any], None] | None = None
    ) -> Measurements:
        """Ask the curator, step by step: the noisy sums that were kept, with the curator's statement and, in ``found``,
        what was found besides. All of it is public.

        With a ``transcript`` every answer is written down as it comes, and a run that was stopped goes on after the
        last one, without paying twice. ``heard`` is given every answer that was paid for, before anything is done with
        it: what comes after may fail.
        """
        self._check(curator)
        if transcript is None:
            return self._run(curator, put if heard is None else _overheard(heard))
        if self.not_resumable:
            raise InputError(self.not_resumable)
        with transcript.of(curator, {**self.to_dict(), "spec": dict(self.spec)}) as ask:
            return self._run(curator, ask)  # the transcript has heard it all

    @property
    def not_resumable(self) -> str:
        """Why a run that was stopped cannot go on; "" if it can.

        It would divide the records by fresh coins. A unit that was in one block might be in another; and amplification
        by sampling is of one sample. It is of two as well for a pure share: with q the rate, (1 + q(a − 1))(1 +
        q(b − 1)) ≤ 1 + q(ab − 1) for a = e^ε₁, b = e^ε₂ ≥ 1. A zCDP share is not amplified.
        """
        sampled = any(step.rate is not None and isinstance(step.share, ApproxDP) for step in self.steps)
        if self.composition != "in blocks" and not sampled:
            return ""
        return (
            f"{self.method} asks random blocks or samples of the records, and a run that goes on would draw others: it "
            "cannot be stopped and taken up again. Run it without a file for its answers"
        )

    def _run(self, curator: Curator, ask: Ask) -> Measurements:
        curator.check_share(self.budget)
        kept: list[Measurement] = list(self.given)
        found: dict[str, Any] = {}
        asked = curator
        first = self.found_first
        aside = Fraction(0) if first is None else first.aside
        if self.composition == "in sequence":
            asked = curator.in_sequence(self.budget)
        elif self.composition == "as one Gaussian":
            asked = curator.in_gaussian(self.budget, aside)
        elif aside:
            asked = curator.in_steps(self.budget, aside)
        in_blocks = self.composition == "in blocks"
        blocks = curator.partition(len(self.steps), self.budget) if in_blocks else ()

        steps = self.steps
        done = 0
        while done < len(steps):
            if first is not None and done == first.steps:
                rest = first.then(Measurements(kept, {"found": found}))
                asked.narrow(rest.domain)
                kept, steps = list(rest.given), (*steps[:done], *rest.steps)
            step = steps[done]
            who = asked if step.block is None else blocks[step.block]
            step_begins(step.name, done, len(steps), partial(_left, who))
            with who.step(step.name, step.share):
                if step.rate is not None:
                    who = who.subsample(step.rate, step.share)
                released = Measurements(kept, {"found": found})
                measured, more = answered(who, step.asks(released), ask)
            kept += [m for m in measured if (m.told_of if step.kept == "tables" else step.kept)]
            found |= more or {}
            done += 1
        step_begins("all is asked; the rest is computing", len(steps), len(steps), partial(_left, asked))
        return Measurements(kept, {**curator.statement(), "found": found})

    def _check(self, curator: Curator) -> None:
        """Refuse before anything is asked, let alone spent."""
        check_curator(curator)
        if curator.domain != self.domain or curator.unit != self.unit:
            raise InputError("this procedure was prepared for other columns or another unit; prepare it again")

    # -- showing ---------------------------------------------------------------------------------------------------

    @property
    def tables(self) -> tuple[PlannedTable, ...]:
        """The rows of the plan."""
        return tuple(row for step in self.steps for row in step.rows)

    @property
    def cells(self) -> int:
        return sum(t.cells for t in self.tables)

    @property
    def expected_error(self) -> float:
        """Of all tables that are known before, in records."""
        return sum(t.expected_error for t in self.tables)

    @property
    def noisy(self) -> tuple[PlannedTable, ...]:
        """Tables whose average cell is below one standard deviation of its noise; empty without an approximate size."""
        return planned.noisy(self.tables, self.whole.size)

    @property
    def hopeless(self) -> tuple[PlannedTable, ...]:
        """Tables with an expected L1 error of 2 or more; empty without an approximate size."""
        return planned.hopeless(self.tables, self.whole.size)

    @property
    def noise_only_below(self) -> float:
        """With fewer records than this, noise outweighs every table."""
        return planned.noise_only_below(self.tables)

    def with_cautions(self, capped: Iterable[Clique] = (), way_out: str = "") -> Procedure:
        """The same procedure with notes on what noise will dominate; see :func:`discreet.learn.planned.cautions`."""
        more = planned.cautions(self.tables, self.whole.size, capped, way_out)
        return replace(self, notes=(*self.notes, *more))

    def curve(self, amounts: Sequence[float] | None = None) -> ErrorCurve:
        """Expected error at other totals (ε, or ρ): ``print(plan.curve())``, ``plan.curve([0.5, 1, 2]).plot()``."""
        known = [(t.cells * float(t.grid), t.noise) for t in self.tables if t.cells]
        return error_curve(known, self.budget, self.whole.size, amounts)

    @property
    def _words(self) -> tuple[str, ...]:
        pure = isinstance(self.budget, ApproxDP) and all(isinstance(step.share, PureDP) for step in self.steps)
        unused = "Laplace noise is less than Gaussian noise for so few columns: all steps are pure, and δ is not used."
        return (*self.notes, unused) if pure else self.notes

    def to_dict(self) -> dict[str, Any]:
        return {
            "method": self.method,
            "unit": self.unit.to_dict(),
            "budget": self.budget.to_dict(),
            "approximate_size": self.whole.size,
            "steps": [
                {
                    "name": step.name,
                    "share": step.share.to_dict(),
                    "part": float(part_of(step.share, self.budget)),
                    "tables": [row.to_dict() for row in step.rows],
                }
                for step in self.steps
            ],
            "tables": [row.to_dict() for row in self.tables],
            "notes": list(self._words),
        }

    def _head(self) -> str:
        known = sum(bool(row.cells) for row in self.tables)
        size = f", {counted(known, 'table')}, {counted(self.cells, 'cell')}" if known else ""
        return f"{self.method}: {counted(len(self.steps), 'step')}{size}; {self.budget}; protects {self.unit}"

    def _shown(self) -> list[tuple[str, float, tuple[PlannedTable, ...]]]:
        return [(step.name, float(part_of(step.share, self.budget)), step.rows) for step in self.steps]

    def _below(self) -> list[str]:
        return [*dict.fromkeys(row.why for row in self.tables if row.why), *self._words]

    def __str__(self) -> str:
        return "\n".join((self._head(), steps_text(self._shown(), self.whole.size), *self._below()))

    def _repr_html_(self) -> str:
        head, *lines = step_lines(self._shown(), self.whole.size)
        return markup.table(self._head(), head, lines, self._below())


def _left(curator: Curator) -> float:
    """Which part of its budget a curator has left: public."""
    return 0.0 if curator.remaining is None else float(part_of(curator.remaining, curator.budget))


def _overheard(heard: Callable[[Any], None]) -> Ask:
    def ask(request: Request, curator: Curator) -> Any:
        answer = put(request, curator)
        heard(answer)
        return answer

    return ask
