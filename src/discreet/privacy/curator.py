"""The curator: the only one who sees rows. Ask it, and pay; what it answers is public."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any

from .._version import __version__
from ..domain import Domain, in_groups
from ..errors import BudgetError, InputError
from ..measurement import MOST_RECORDS, Measurement, Measurements, Noise
from ..tables.base import Asked, IntArray, Table
from . import selection, stability, unlisted, voting
from .account import Account, whole_budget
from .accounting import Accountant, Cost
from .budget import Amount, ApproxDP, Budget, GaussianDP, PureDP
from .calibration import (
    NoiseChoice,
    SelectionChoice,
    amplified,
    drawn,
    noise_of,
    plan_noise,
    plan_threshold,
    require_room,
)
from .ledger import Ledger
from .mechanisms import ExactGateway, Gateway, SecureGateway
from .query import GroupedScore, Marginals, Query, Score
from .selection import Selection
from .stability import StabilityTest
from .unit import PrivacyUnit, as_probability
from .voting import Learner, Vote


class Curator(Account):
    """Holds a table and a budget; answers queries with noise, and refuses when the budget is gone.

    Use it as a context manager, or call :meth:`close`: what was not used goes back to the ledger::

        with Curator(encode(rows, domain), PrivacyUnit(), PureDP(1), Ledger.open("ledger.db")) as curator:
            tables = curator.measure(Marginals(domain, [("age", "sex")]))

    Order of events in every answer: the request is checked, its cost is computed from public things, the budget is
    checked, the sum is taken, the charge is made durable, and only then noise is drawn.

    Parameters
    ----------
    table:
        The rows. Nobody else should keep them.
    unit:
        Who is protected; a row under add-remove by default.
    budget:
        The total that everything asked of this curator may cost.
    ledger:
        Where the budget is charged, once and as a whole, before the first answer. Without one, nothing outlasts this
        curator's own account: fine for a notebook.
    public_size:
        The number of records, if it is public knowledge. It is never taken from the table.
    delta_for_tests:
        Part of the δ of an (ε, δ) budget that is set aside for steps with a δ of their own (thresholds, tests).
    purpose:
        A word for the ledger.
    """

    def __init__(
        self,
        table: Table,
        unit: PrivacyUnit | None = None,
        budget: Budget | None = None,
        ledger: Ledger | None = None,
        *,
        public_size: int | None = None,
        delta_for_tests: Amount = 0,
        purpose: str = "",
        gateway: Gateway | None = None,
    ) -> None:
        if not isinstance(table, Table):
            raise InputError(
                f"a curator holds a table of encoded rows, got a {type(table).__name__}; make one with "
                "encode(rows, domain)"
            )
        super().__init__(budget, unit or PrivacyUnit(), table.domain, ledger, delta_for_tests, purpose)
        if self.unit.column is not None and table.unit_column != self.unit.column:
            raise InputError(
                f"the unit is the column {self.unit.column!r}, but the table was made with "
                + (f"{table.unit_column!r}" if table.unit_column else "no unit column")
                + f"; encode the rows with unit={self.unit.column!r}"
            )
        if self.unit.column is None and table.for_persons_alone:
            raise InputError(
                "one row more or less moves all windows of its person, so that a row cannot be the unit of windows; "
                f"give PrivacyUnit({table.unit_column!r}, max_rows=…)"
            )
        if public_size is not None and (type(public_size) is not int or not 0 <= public_size <= MOST_RECORDS):
            raise InputError(
                f"public_size must be a whole number of records, {MOST_RECORDS:,} at most, got {public_size!r}"
            )
        self.public_size = public_size
        self._source = table
        self._prepared: Table | None = None
        self._gateway: Gateway = gateway or SecureGateway()

    # -- asking ------------------------------------------------------------------------------------------------------

    def require(self, asked: Asked) -> None:
        """Refuse a query, score or test that was made for other columns than the rows have. Costs nothing: every
        answer begins with it, and whoever asks for several things may begin with all of it."""
        self._source.require(asked)

    def measure(
        self,
        query: Query,
        share: Budget | None = None,
        *,
        noise: NoiseChoice = "auto",
        weights: Sequence[Amount] | None = None,
    ) -> Measurements:
        """Noisy sums, one measurement for each part of the query, in one pass over the rows.

        ``share`` is what it may cost (default: all that remains), divided over the parts by ``weights`` (default:
        equally). Guarantee: see :mod:`discreet.privacy.mechanisms`; parts compose.
        """
        share = self._share(share)
        plan = plan_noise(query, self.unit, share, noise=noise, weights=weights)
        self._check(plan.costs)
        sums = self._sum(query)
        step = {**query.describe(), "noise": plan.calls[0].kind, "share": share.to_dict()}
        self._spend(plan.costs, {**step, **drawn(plan.calls, self.unit)})
        domain = in_groups(self.domain, query.grouped)
        items = []
        for part, call, total in zip(query.parts, plan.calls, sums, strict=True):
            items.append(
                Measurement(
                    part.label,
                    self._gateway.add_noise(call, total.reshape(part.shape)),
                    Noise("none") if self._gateway.origin == "exact" else noise_of(call),
                    domain.project(part.clique) if part.clique is not None else domain,
                    clique=part.clique,
                    grid=part.grid,
                    about=part.about,
                    origin=self._gateway.origin,
                    cost={"kind": call.kind, "scale": repr(call.scale)},
                )
            )
        return Measurements(items, self.statement())

    def select(self, score: Score, share: Budget | None = None, *, k: int = 1) -> Selection:
        """The best of public candidates, privately; with ``k``, the best k one after the other, each with 1/k of it.

        Guarantee: permute-and-flip for a pure share, otherwise the exponential mechanism (2Δ/b-DP, Δ²/(2b²)-zCDP).
        """
        return selection.select(self, score, share, k)

    def select_each(
        self, score: GroupedScore, share: Budget | None = None, *, k: int = 1, mechanism: SelectionChoice = "auto"
    ) -> tuple[Selection, ...]:
        """The best k of each group of candidates, privately, in one pass over the rows; each selection has the same
        part of the share.

        Guarantee: that of :meth:`select` for every selection (``"laplace"``: report-noisy-max with Laplace noise);
        they compose, because one unit may move the scores of every group.
        """
        return selection.select_each(self, score, share, k, mechanism)

    def large_cells(self, clique: Iterable[str], share: Budget | None = None) -> dict[tuple[str, ...], int]:
        """The cells of one contingency table whose noisy count is large, by their labels: for tables far too large to
        be noised cell by cell.

        Guarantee: (ε, δ)-DP by a thresholded histogram; which cells are non-zero stays hidden below the threshold.
        """
        share = self._share(share)
        query = Marginals(self.domain, [clique])
        (columns,) = query.cliques
        (sensitivity,) = query.sensitivity(self.unit)
        call, cost = plan_threshold(sensitivity, share)
        self._check((cost,))
        histogram = {",".join(map(str, cell)): n for cell, n in self._rows.count_sparse(columns).items()}
        step = {**query.describe(), "noise": "threshold", "share": share.to_dict()}
        self._spend((cost,), {**step, **drawn([call], self.unit)})
        released = self._gateway.release_large(call, histogram)
        attributes = [self.domain[n] for n in columns]
        return {
            tuple(a.labels[int(code)] for a, code in zip(attributes, key.split(",") if key else [], strict=True)): n
            for key, n in released.items()
        }

    def size(self, share: Budget | None = None) -> Measurement:
        """The number of records: the public statement if there is one, else a noisy count that is paid for."""
        if self.public_size is not None:
            return Measurement.public(self.domain, (), self.public_size)
        if share is None:
            raise BudgetError(
                "the number of records is private: pay for a noisy count with size(share), or state public_size"
            )
        return self.measure(Marginals(self.domain, [()]), share)[0]

    # -- dividing the rows -------------------------------------------------------------------------------------------

    def partition(self, blocks: int, share: Budget | None = None) -> tuple[Curator, ...]:
        """Curators of disjoint random blocks, each with the whole ``share`` to spend (parallel composition).

        Each unit goes to a block by its own secret coin, so neighbours differ in one block only, which costs at most
        ``share``; the other blocks are the same. Under replace-one the old and the new value of a unit have equally
        distributed coins, so they can be taken to share one (a coupling), and again one block differs.
        """
        share = whole_budget(self._share(share))  # its parts have accounts of their own
        voting.check_blocks(blocks)
        cost = Cost.of(share)
        self._check((cost,))
        tables = self._rows.split(blocks, self._gateway.secret())
        number = self._spend((cost,), {"query": "partition", "blocks": blocks, "share": share.to_dict()})
        places = ({"in": "block or sample", "of": number, "block": block} for block in range(1, blocks + 1))
        return tuple(self._child(t, share, self._gateway, place) for t, place in zip(tables, places, strict=True))

    def subsample(self, rate: Amount, share: Budget | None = None) -> Curator:
        """A curator of a Poisson sample, with as much to spend as costs ``share`` on the whole table.

        Amplification is taken where it is proved: for pure and (ε, δ) shares under add-remove.
        """
        share = self._share(share)
        q = as_probability(rate)
        cost = Cost.of(share)
        self._check((cost,))
        inner = amplified(share, q, self.unit)
        table = self._rows.sample(q, self._gateway.secret())
        number = self._spend((cost,), {"query": "subsample", "rate": str(q), "share": share.to_dict()})
        return self._child(table, inner, self._gateway.inside(inner), {"in": "block or sample", "of": number})

    def vote(
        self, learner: Learner, blocks: int, share: Budget | None = None, *, candidates: Sequence[str] | None = None
    ) -> Vote:
        """Run a learner on each of ``blocks`` random blocks, inside, and let out only what a private vote releases.

        The learner gets an :class:`ExactCurator` of its block and returns a word (None, or failing, is an abstention).
        It must be a function of its block alone: nothing may be remembered from one call to the next.
        One unit is in one block and changes at most one vote. With public ``candidates`` the winner is selected
        privately under the share's notion (votes for anything else are abstentions); without, the share is (ε, δ) and
        outcomes are released by a thresholded histogram [001 Lemma 6.1, with the constants of its proof corrected].
        """
        return voting.vote(self, learner, blocks, share, candidates)

    def vote_for_each(
        self, learner: Learner, questions: int, blocks: int, share: Budget | None = None
    ) -> stability.Stability:
        """Run a learner on each block, inside; it answers ``questions`` with a word of 0 and 1, and the majority's
        answers are released if no few votes could change any of them [(ε, δ)-DP; one unit changes one block's votes].
        """
        return voting.vote_for_each(self, learner, questions, blocks, share)

    def vote_and_test(self, learner: Learner, blocks: int, share: Budget | None = None) -> stability.Stability:
        """The most frequent word if it leads by far: propose, test, release [(ε, δ)-DP; 001 Section 6]."""
        return voting.vote_and_test(self, learner, blocks, share)

    # -- tests of stability ------------------------------------------------------------------------------------------

    def release_if_stable(self, test: StabilityTest, share: Budget | None = None) -> stability.Stability:
        """All signs of a test if no few units could change any of them, otherwise a refusal.

        Guarantee: (ε, δ)-DP; :mod:`discreet.privacy.stability` has the argument.
        """
        return stability.release(self, test, share)

    def in_sequence(self, share: Budget | None = None) -> Curator:
        """A curator of the same rows for a few steps whose ε and δ simply add up, ``share`` in all.

        A sequence of (ε_i, δ_i) steps, chosen adaptively, is (Σε_i, Σδ_i)-DP; the account of this curator books
        ``share`` at once. Better than the zCDP route where one large step with a δ of its own follows small ones.
        """
        share = whole_budget(self._share(share))  # its parts have accounts of their own
        cost = Cost.of(share)
        self._check((cost,))
        rows = self._rows
        number = self._spend((cost,), {"query": "in sequence", "share": share.to_dict()})
        child = self._child(rows, share, self._gateway, {"in": "sequence", "of": number})
        child._accountant.composition = "basic"
        return child

    def in_steps(self, share: Budget, aside: Fraction) -> Curator:
        """A curator of the same rows for steps that are composed in zCDP, ``share`` = (ε, δ) in all, of which the δ
        ``aside`` is for steps that have a δ of their own."""
        share = whole_budget(self._share(share))  # its parts have accounts of their own
        accountant = Accountant(share, delta_for_tests=aside)  # refuses what does not fit, before anything is booked
        cost = Cost.of(share)
        self._check((cost,))
        rows = self._rows
        number = self._spend((cost,), {"query": "steps", "share": share.to_dict(), "delta_for_tests": str(aside)})
        child = self._child(rows, share, self._gateway, {"in": "steps", "of": number})
        child._accountant = accountant
        return child

    def in_gaussian(self, share: Budget | None = None, aside: Fraction = Fraction(0)) -> Curator:
        """A curator of the same rows for steps that are Gaussian noise, ``share`` = (ε, δ) in all.

        Their μ² add up to that of the share, without the loss of a conversion through zCDP, also when each step is made
        from the answers of the ones before (:mod:`discreet.privacy.gaussian` has the argument). Pure steps may be among
        them; and if all steps are pure, their ε may add up to that of the share. The δ ``aside`` is for
        thresholds among them (:mod:`discreet.privacy.unlisted`), and the μ² is that of what it leaves.
        """
        share = self._share(share)
        within = ApproxDP(share.epsilon, share.delta - aside).to_gaussian() if isinstance(share, ApproxDP) else None
        if not isinstance(share, ApproxDP) or within is None:
            raise BudgetError(f"Gaussian steps are shares of an (ε, δ) budget with ε at least 1e-6, not of {share}")
        cost = Cost.of(share)
        self._check((cost,))
        rows = self._rows
        more = {"delta_for_tests": str(aside)} if aside else {}
        number = self._spend((cost,), {"query": "Gaussian steps", "share": share.to_dict(), **more})
        child = self._child(rows, share, self._gateway, {"in": "Gaussian steps", "of": number})
        child._accountant = Accountant(GaussianDP(within.mu_squared, share.epsilon), delta_for_tests=aside)
        return child

    # -- columns that are found on the way ---------------------------------------------------------------------------

    def find_levels(self, column: str, share: Budget, delta: Fraction) -> unlisted.Unlisted:
        """The texts of a column that stand out, for a column whose levels are to be found.

        Guarantee: δ-approximate zCDP; :mod:`discreet.privacy.unlisted` has the argument.
        """
        return unlisted.release(self, column, share, delta)

    def narrow(self, domain: Domain) -> None:
        """From now on the rows are under the domain that was found. Public, as that was released; nothing is spent.

        Which rows of a person count is drawn anew: each answer keeps its guarantee, for its own coins.
        """
        if self._place.get("in") == "block or sample":
            raise InputError("columns are found from all rows, before these are divided into blocks or samples")
        if isinstance(self._parent, Curator):
            self._parent.narrow(domain)
            self._source = self._parent._rows
        else:
            self._source = self._source.under(domain)
        self.domain, self._prepared = domain, None

    def statement(self) -> dict[str, Any]:
        """The public facts that go with everything released: who is protected, how far, and what was peeked at."""
        return {
            "origin": self._gateway.origin,
            "unit": self.unit.to_dict(),
            "budget": self.budget.to_dict(),
            "spent": None if self.spent is None else self.spent.to_dict(),
            "steps": list(self._steps),
            "public_size": self.public_size,
            "domain": self.domain.fingerprint,
            "peeked": {k: list(v) for k, v in self.domain.peeked.items()},
            **({"found_privately": {k: list(v) for k, v in found.items()}} if (found := self.domain.found) else {}),
            "version": __version__,
            **self._accountant.rules(),
        }

    def close(self) -> None:
        super().close()
        self._prepared = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({len(self.domain)} columns, unit {self.unit}, budget {self.budget})"

    # -- inside ------------------------------------------------------------------------------------------------------

    def _share(self, share: Budget | None) -> Budget:
        share = super()._share(share)
        require_room(share)  # also where the share is to be divided later: it would be lost
        return share

    def _sum(self, query: Query) -> tuple[IntArray, ...]:
        """The one way to exact sums; a query for other columns is refused before the rows are even prepared."""
        self.require(query)
        return self._rows.sum(query)

    @property
    def _rows(self) -> Table:
        """The rows as the unit allows them to count: clipped to the bound, or one by one."""
        if self._prepared is None:
            self._prepared = self._source if self._parent is not None else self._counting(self._source)
        return self._prepared

    def _counting(self, table: Table) -> Table:
        """All rows, as the unit allows them to count."""
        if self.unit.column is not None:
            return table.clip(self.unit.max_rows, self._gateway.secret())
        return table.without_persons()

    @property
    def _source_of_all(self) -> Table:
        """The rows of the curator that stands in the ledger, for who may ask all of them: a block or a sample pays for
        its own rows only."""
        if self._place.get("in") == "block or sample":
            raise InputError("columns are found from all rows, before these are divided into blocks or samples")
        return self._parent._source_of_all if isinstance(self._parent, Curator) else self._source

    def _exact(self, block: Table) -> Curator:
        """For a learner that votes: its block, without noise, and never seen outside."""
        return ExactCurator(block, self.unit)

    def _child(self, table: Table, budget: Budget, gateway: Gateway, place: dict[str, Any]) -> Curator:
        child = Curator(table, self.unit, budget, gateway=gateway, purpose=self.purpose)
        child._parent, child._place = self, place
        return child


class ExactCurator(Curator):
    """Answers exactly and never refuses. NOT PRIVATE: nothing learned through it can be saved as a release."""

    def __init__(self, table: Table, unit: PrivacyUnit | None = None, budget: Budget | None = None) -> None:
        super().__init__(table, unit, budget or PureDP(1), gateway=ExactGateway())

    def _share(self, share: Budget | None) -> Budget:
        return share if share is not None else self.budget

    def _check(self, costs: Sequence[Cost]) -> None:
        pass

    def _spend(self, costs: Sequence[Cost], step: Mapping[str, Any]) -> int:
        self._steps.append(self._named(step))
        return len(self._steps)

    @property
    def _rows(self) -> Table:
        if self._prepared is None:
            clipped = self.unit.column is not None and self._source.unit_column is not None
            self._prepared = self._source.clip(self.unit.max_rows, self._gateway.secret()) if clipped else self._source
        return self._prepared

    def _child(self, table: Table, budget: Budget, gateway: Gateway, place: dict[str, Any]) -> Curator:
        return ExactCurator(table, self.unit, budget)
