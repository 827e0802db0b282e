"""What a release says of itself, computed again: do its steps, with their noise, imply the guarantee on its card?

A step records its share, the draws of noise (kind, scale, how far one unit moves what the noise is added to) and the
unit that this holds for; :func:`~discreet.privacy.calibration.drawn` writes it. Here the cost of every draw follows
from its scale (:mod:`.recorded`), costs add up by the rules of :mod:`.accounting`, and
the sum must be within the share, the shares within the budget, and every noisy table one that a step has paid for.

This is arithmetic about what a file says. Who makes up a whole file, and its numbers so that they agree, passes: that
the noise was drawn, and from the rows, no file can prove. A signature says who vouches for it (:mod:`..signing`).
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

from ..errors import DiscreetError
from ..spelling import written
from ..tables.base import WEIGHT_UNITS
from .accounting import Accountant, Cost, Spending
from .budget import ApproxDP, Budget, GaussianDP
from .calibration import amplified, moved_by
from .queries.interactions import moved_together
from .recorded import Contradiction, aside_of, check_rounds, costs_of, draws_of, in_words, joint_cost, whole
from .unit import PrivacyUnit, as_probability

MOST_COSTS = 20_000
"""Different costs that are added up exactly; beyond, it would take minutes."""
_CRUMBS = Fraction(1, 10**6)


@dataclass(frozen=True)
class Noised:
    """What a file says of one noisy table; ``cells`` when it is a contingency table, in ``parts`` of a record.

    ``moves``: of other sums how many there are, and how far a row that is added moves each of them; a replaced one
    moves them twice as far. ``levels``: of an interaction, those of its columns.
    """

    label: str
    kind: str
    scale: float
    cells: int | None = None
    moves: tuple[int, int] | None = None
    levels: tuple[int, ...] | None = None
    parts: int = 1


@dataclass
class _Account:
    """The root, a block, a sample or a sequence: what its steps may cost together."""

    accountant: Accountant
    costs: Counter[Cost] = field(default_factory=Counter)
    shares: Counter[Cost] = field(default_factory=Counter)


def contradictions(statement: Mapping[str, Any], tables: Iterable[Noised] | None = None) -> list[str]:
    """Where a statement (a card, or that of noisy tables) contradicts itself; in words that name the step.

    ``tables``: the noisy tables that came with it.
    """
    try:
        return _Book(statement).contradictions(tables)
    except Contradiction as error:
        return [str(error)]
    except (DiscreetError, KeyError, TypeError, ValueError, ArithmeticError, AttributeError):
        return ["its statement of what was spent on what is not well-formed"]


class _Book:
    """The steps of a statement, and the accounts that they are booked on."""

    def __init__(self, statement: Mapping[str, Any]) -> None:
        self.budget = Budget.from_dict(dict(statement["budget"]))
        self.unit = PrivacyUnit.from_dict(dict(statement["unit"]))
        self.spent = statement.get("spent")
        aside = written(statement.get("delta_for_tests", "0"))
        composition = statement.get("composition", "concentrated")
        if composition not in ("basic", "concentrated"):
            raise Contradiction(f"its steps are added up by a rule that is not known, {str(composition)[:40]!r}")
        if aside and not isinstance(self.budget, ApproxDP):
            raise Contradiction(f"it sets aside a δ that {self.budget} does not have")
        self.accounts: dict[tuple[int, ...], _Account] = {
            (): _Account(Accountant(self.budget, composition, delta_for_tests=aside))
        }
        self.steps: Sequence[Mapping[str, Any]] = statement.get("steps") or ()
        self.paid: dict[str, list[tuple[Mapping[str, Any], Mapping[str, Any]]]] = defaultdict(list)

    def contradictions(self, tables: Iterable[Noised] | None) -> list[str]:
        out = []
        for number, step in enumerate(self.steps, start=1):
            try:
                self._take(number, step)
            except Contradiction as error:
                out.append(f"step {number} ({_name(step)}): {error}")
            except (DiscreetError, KeyError, TypeError, ValueError, ArithmeticError, AttributeError):
                out.append(f"step {number} ({_name(step)}) is not well-formed, so its cost cannot be computed")
        if len({cost for account in self.accounts.values() for cost in account.costs}) > MOST_COSTS:
            return [*out, f"it has more than {MOST_COSTS:,} different costs, too many to be added up"]
        for place, account in self.accounts.items():
            accountant = account.accountant
            accountant.spending = Spending.of(account.costs)
            if not accountant.admits(accountant.spending):
                out.append(
                    f"the steps {_of(place)} together cost more than {accountant.total}, which is what "
                    f"{'the card promises' if not place else 'was paid for them'}: {in_words(accountant.spending)}"
                )
            elif not _roomier(accountant).admits(Spending.of(account.shares)):
                out.append(f"the shares of the steps {_of(place)} add up to more than {accountant.total}")
        if not out:
            out += self._wrong_total()
        for table in tables or ():
            out += self._unpaid(table)
        return out

    # -- the steps ---------------------------------------------------------------------------------------------------

    def _take(self, number: int, step: Mapping[str, Any]) -> None:
        """Compute the step's cost again and book it."""
        account = self._account_of(step)
        share = Budget.from_dict(dict(step["share"]))
        if isinstance(share, GaussianDP) == isinstance(account.accountant.total, GaussianDP):
            account.shares[Cost.of(share)] += 1  # others do not add up with the rest; what they cost does
        self._check_unit(step)
        if step.get("query") in ("partition", "in sequence", "Gaussian steps", "steps", "subsample"):
            account.costs[Cost.of(share)] += 1
            self._open(number, step, share)
            return
        draws = draws_of(step)
        if "joint" in step:
            account.costs[joint_cost(step, share, draws)] += 1
            return
        if "score" in step and step["k"] != sum(draw["times"] for draw in draws):
            raise Contradiction(f"it chose {step['k']} candidates, and not with as many draws of noise")
        for draw in draws:
            if draw["kind"] == "gaussian-threshold" and not self._opens_enough(draw):
                raise Contradiction("one unit moves the counts of unlisted levels by more than it says")
        costs = costs_of(draws, share)
        within = Accountant(share)
        if not isinstance(share, ApproxDP):
            within.delta_for_tests = account.accountant.delta_for_tests
        if not within.admits(Spending.of(costs)):
            raise Contradiction(f"its noise costs {in_words(Spending.of(costs))}, more than its share, {share}")
        account.costs.update(costs)
        self._pay(step, draws)

    def _account_of(self, step: Mapping[str, Any]) -> _Account:
        if "in" not in step:
            return self.accounts[()]
        place = (step.get("of"), *([step["block"]] if "block" in step else []))
        if not all(type(n) is int for n in place):
            raise Contradiction("it does not say of which block or sample it is")
        if place not in self.accounts:
            raise Contradiction(f"it says that it is {_of(place)}, and there is none")
        return self.accounts[place]

    def _open(self, number: int, step: Mapping[str, Any], share: Budget) -> None:
        if isinstance(share, GaussianDP):  # its ε, or its μ²: what such a part costs is neither alone
            raise Contradiction(f"a part of the rows or of the steps has a share in ε, ρ or (ε, δ), and not {share}")
        if "rounds" in step:
            check_rounds(step, share)
        elif step["query"] == "partition":
            blocks = whole(step["blocks"], "the number of blocks")
            if blocks > len(self.steps) + 10**6:
                raise Contradiction(f"it has {blocks:,} blocks")
            for block in {s["block"] for s in self.steps if s.get("of") == number and "block" in s}:
                if type(block) is int and 1 <= block <= blocks:
                    self.accounts[(number, block)] = _Account(Accountant(share))
        elif step["query"] == "subsample":
            inner = amplified(share, as_probability(written(step["rate"])), self.unit)
            self.accounts[(number,)] = _Account(Accountant(inner))
        elif step["query"] == "Gaussian steps":
            aside = aside_of(step, share)
            within = ApproxDP(share.epsilon, share.delta - aside).to_gaussian() if isinstance(share, ApproxDP) else None
            if not isinstance(share, ApproxDP) or within is None:
                raise Contradiction(f"Gaussian steps are shares of an (ε, δ) budget, and this one is {share}")
            total = GaussianDP(within.mu_squared, share.epsilon)
            self.accounts[(number,)] = _Account(Accountant(total, delta_for_tests=aside))
        elif step["query"] == "steps":
            self.accounts[(number,)] = _Account(Accountant(share, delta_for_tests=aside_of(step, share)))
        else:
            self.accounts[(number,)] = _Account(Accountant(share, "basic"))

    def _check_unit(self, step: Mapping[str, Any]) -> None:
        if "unit" not in step:
            return  # of a division into parts; whoever draws noise must say it
        mine, said = moved_by(self.unit), dict(step["unit"])
        if said.get("relation") != mine["relation"] or whole(said.get("max_rows"), "max_rows") < mine["max_rows"]:
            raise Contradiction(f"its noise was made for another unit than the card's, {self.unit}")

    def _pay(self, step: Mapping[str, Any], draws: Sequence[Mapping[str, Any]]) -> None:
        """Which tables the step has paid for, with the noise of each."""
        labels = [str(label) for label in step.get("parts", ())]
        if "query" in step and labels and step.get("noise") in ("laplace", "gaussian"):
            if len(labels) != sum(draw["times"] for draw in draws):
                raise Contradiction(f"it has {len(labels)} tables, and not as many draws of noise")
            noises = (draw for draw in draws for _ in range(draw["times"]))
            for label, draw in zip(labels, noises, strict=True):
                self.paid[label].append((step, draw))

    # -- the whole ---------------------------------------------------------------------------------------------------

    def _wrong_total(self) -> list[str]:
        spent = self.accounts[()].accountant.spent
        said = None if self.spent is None else Budget.from_dict(dict(self.spent))
        if spent == said:
            return []
        return [f"it says that {said or 'nothing'} was spent, and its steps cost {spent or 'nothing'}"]

    def _unpaid(self, table: Noised) -> list[str]:
        for at, (step, draw) in enumerate(self.paid.get(table.label, ())):
            if (draw["kind"], draw["scale"]) != (table.kind, table.scale):
                continue
            del self.paid[table.label][at]  # paid once, shown once
            if not self._moves_as_it_is(step, draw, table):
                return [f"the table {table.label}: one unit moves it by more than its step says"]
            return []
        return [
            f"the table {table.label} has {table.kind} noise of scale {table.scale:.6g}, and no step has paid for that"
        ]

    def _moves_as_it_is(self, step: Mapping[str, Any], draw: Mapping[str, Any], table: Noised) -> bool:
        """How far a unit moves a table follows from what the table is, whatever its step calls itself."""
        if table.levels is not None:
            own = self._moves_together(draw, table.levels)
        elif table.cells is not None:
            # Only where each of K rows of a person counts 1/K, all of them move it as one does.
            weighed = step["query"] == "ChainTables" and table.parts == WEIGHT_UNITS and self.unit.column is not None
            rows = 1 if weighed else self.unit.max_rows
            own = self._moves_enough(draw, table.cells, rows * table.parts)
        else:
            own = step["query"] not in ("Marginals", "Interactions")
        return own and self._moves_all(draw, table.moves)

    def _moves_enough(self, draw: Mapping[str, Any], cells: int | None, rows: int) -> bool:
        """A unit of m rows moves a contingency table by m in one cell; a replaced one by m in each of two."""
        cells_moved = 2 if self.unit.relation == "replace-one" and cells != 1 else 1
        if draw["kind"] == "laplace":
            return bool(draw["l1"] >= rows * cells_moved)
        return bool(draw["l2_squared"] >= rows**2 * cells_moved and draw["linf"] >= rows)

    def _moves_together(self, draw: Mapping[str, Any], levels: tuple[int, ...]) -> bool:
        least = moved_together(levels, self.unit.relation).times(self.unit.max_rows)
        if draw["kind"] == "laplace":
            return bool(draw["l1"] >= least.l1)
        return bool(draw["l2_squared"] >= least.l2_squared and draw["linf"] >= least.linf)

    def _opens_enough(self, draw: Mapping[str, Any]) -> bool:
        """A unit of m rows can open m levels, a replaced one 2m, wherever they are counted."""
        levels = self.unit.max_rows * (2 if self.unit.relation == "replace-one" else 1)
        return self._moves_enough(draw, None, self.unit.max_rows) and bool(draw["l0"] >= levels)

    def _moves_all(self, draw: Mapping[str, Any], moves: tuple[int, int] | None) -> bool:
        """A unit of m rows moves each of so many sums by m times what a row does."""
        if moves is None:
            return True
        sums, far = moves[0], moves[1] * self.unit.max_rows * (2 if self.unit.relation == "replace-one" else 1)
        if draw["kind"] == "laplace":
            return bool(draw["l1"] >= sums * far)
        return bool(draw["l2_squared"] >= sums * far**2 and draw["linf"] >= far)


def _roomier(accountant: Accountant) -> Accountant:
    """For shares: what rounding left of one goes into the next, so that together they exceed the total by crumbs."""
    names = accountant.total.to_dict().keys() - {"notion"}
    room = {name: getattr(accountant.total, name) * (1 + _CRUMBS) for name in names}
    return Accountant(
        type(accountant.total)(**room),
        accountant.composition,
        delta_for_tests=accountant.delta_for_tests * (1 + _CRUMBS),
    )


# -- words -------------------------------------------------------------------------------------------------------------


def _name(step: Any) -> str:
    """What a step asked, with the first of its tables."""
    if not isinstance(step, Mapping):
        return "no step at all"
    kind = str(step.get("query") or step.get("score") or step.get("test") or "a question")[:40]
    parts = step.get("parts")
    first = f" {str(parts[0])[:60]}" if isinstance(parts, list) and parts else ""
    return kind + first + (" …" if first and len(parts) > 1 else "")  # type: ignore[arg-type]


def _of(place: tuple[Any, ...]) -> str:
    if not place:
        return "of the release"
    return (
        f"of block {place[1]} of step {place[0]}" if len(place) > 1 else f"of the sample or sequence of step {place[0]}"
    )
