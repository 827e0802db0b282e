"""A graph found privately: a greedy network of bounded in-degree, one private selection a column.

The score of a column X with parents Π is n·R = ½ Σ |C[x, π] − C[x]·C[π]/n|: how many records would have to move for X
and Π to look independent. R is the score of [ZCPSX17] PrivBayes (Zhang, Cormode, Procopiuc, Srivastava, Xiao, ACM TODS
42, 2017); multiplied by n it needs no public n.

**Sensitivity.** Let D = C − C_X C_Π/n over all cells, with rows x and columns π.

*Adding a record* at (x₀, π₀), with a = C[x₀], b = C[π₀] before and q = (n − a)(n − b)/(n(n + 1)). Then D changes by
+q at (x₀, π₀); by −C[π](n − a)/(n(n + 1)) at (x₀, π ≠ π₀), which is −q in all; likewise by −q in all at (x ≠ x₀, π₀);
and by C[x]C[π]/(n(n + 1)) elsewhere, +q in all. So ½‖D‖₁ moves by at most 2q < 2. (n = 0: from 0 to 0.)

*Replacing a record* leaves n. C moves by 2 in L1; with the margins P, Q of n records C_X C_Π/n = n·PQ, and
‖P′Q′ − PQ‖₁ ≤ ‖P′ − P‖₁ + ‖Q′ − Q‖₁ ≤ 4/n. So ½‖D‖₁ moves by at most (2 + 4)/2 = 3.

The score is the whole part of ½‖D‖₁ less a public penalty. If a real number moves by at most Δ, a whole number, its
whole part moves by at most Δ. It is computed in whole numbers, from Σ |n·C[x, π] − C[x]C[π]| and 2n, so it is exact.

The penalty is what independent columns would score by chance at the approximate number of records (a public guess or
a noisy count): ½·√(2/π)·√(n(|X| − 1)(|Π| − 1)). It keeps large families from winning because they are large.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from ...arguments import check_whole
from ...domain import Domain
from ...errors import CostError, InputError, counted
from ...measurement import Measurements
from ...models.bayesian import BayesianNetwork
from ...privacy.budget import Amount, Budget, exact
from ...privacy.calibration import NoiseChoice, plan_selection
from ...privacy.query import Marginals, Score
from ...privacy.requests import Asking, Measure, Select
from ...privacy.unit import PrivacyUnit
from ...progress import track
from ..checks import as_measurements, check_types, checked_size
from ..graph_files import Parents
from ..learner import Learner
from ..planned import measuring, selecting
from ..procedure import Found, Procedure, Whole
from .fit import STEPS
from .optimal import OptimalNetwork

IntArray = NDArray[np.int64]
Candidate = tuple[str, tuple[str, ...]]
FoundTables = Callable[[Budget, Parents], Measure]
"""From a share and the graph that was found to the tables that are measured with it."""
MOST_CANDIDATES = 20_000
LARGEST_COUNT = 2**31
LARGEST_PENALTY = 2**60
METHOD = "searched"


class Dependence(Score):
    """The score of the module's text for candidates (column, parents), higher is better."""

    def __init__(self, domain: Domain, candidates: Sequence[Candidate], penalties: Sequence[int] | None = None) -> None:
        if not candidates:
            raise InputError("there are no candidates to choose from")
        self.domain = domain
        self._pairs = [(x, tuple(above)) for x, above in candidates]
        for x, above in self._pairs:
            if not above or x in above:
                raise InputError(f"a candidate is a column with parents, got {x!r} given {above}")
        cliques = dict.fromkeys(domain.clique((*above, x)) for x, above in self._pairs)
        self.query = Marginals(domain, cliques)
        self._position = {c: i for i, c in enumerate(cliques)}
        self._penalties = [0] * len(self._pairs) if penalties is None else [int(p) for p in penalties]
        if len(self._penalties) != len(self._pairs):
            raise InputError(
                f"{counted(len(self._pairs), 'candidate')} need as many penalties, got {len(self._penalties)}"
            )
        if any(abs(p) > LARGEST_PENALTY for p in self._penalties):  # a score less its penalty must fit into 64 bits
            raise InputError("a penalty must lie within 2⁶⁰ of zero")

    @property
    def candidates(self) -> tuple[str, ...]:
        return tuple(f"{x} | {', '.join(above)}" for x, above in self._pairs)

    def scores(self, sums: Sequence[IntArray]) -> IntArray:
        out = np.empty(len(self._pairs), dtype=np.int64)
        for i, ((x, above), penalty) in enumerate(zip(self._pairs, self._penalties, strict=True)):
            clique = self.domain.clique((*above, x))
            counts = np.moveaxis(sums[self._position[clique]], clique.index(x), 0)
            out[i] = whole_dependence(counts.reshape(counts.shape[0], -1)) - penalty
        return out

    def linf(self, unit: PrivacyUnit) -> int:
        """2 a row under add-remove, 3 under replace-one (where a person's rows may also be added or removed)."""
        return unit.max_rows * (2 if unit.relation == "add-remove" else 3)


def whole_dependence(counts: IntArray) -> int:
    """The whole part of ½ Σ |C[x, π] − C[x]C[π]/n|, exactly."""
    n = int(counts.sum())
    if n == 0:
        return 0
    if n >= LARGEST_COUNT:  # products would not fit into 64 bits
        counts = counts.astype(object)
    distance = np.abs(n * counts - counts.sum(axis=1)[:, None] * counts.sum(axis=0)[None, :])
    return sum(int(row) for row in distance.sum(axis=1)) // (2 * n)


def chance_penalty(domain: Domain, candidate: Candidate, size: float) -> int:
    """What independent columns score by chance, about."""
    x, above = candidate
    freedom = (domain[x].size - 1) * (domain.size(above) - 1)
    return round(0.5 * math.sqrt(2 / math.pi * max(size, 0.0) * freedom))


@dataclass(frozen=True)
class GraphSearch:
    """The search alone: options and steps that learners of networks and of fields share.

    Parameters
    ----------
    max_parents:
        In-degree of the network: how many earlier columns a column may depend on.
    selection:
        Part of the budget for choosing the graph; the rest goes to the tables.
    approximate_size:
        A public guess of the number of records, for penalties only. Without it a noisy count is bought with
        ``counting``, a part of the budget.
    largest:
        Cells of a family at most. By default so many that an average cell keeps some records: size/20.
    root:
        The column to start from; the first of the domain by default. It must not be chosen by looking at the data.
    """

    max_parents: int = 2
    selection: Amount = 0.3
    counting: Amount = 0.02
    approximate_size: int | None = None
    largest: int | None = None
    root: str | None = None

    def __post_init__(self) -> None:
        check_types(self)
        check_whole(1, max_parents=self.max_parents)
        check_whole(1, or_none=True, largest=self.largest)
        parts = exact(self.selection, "selection"), exact(self.counting, "counting")
        if min(parts) <= 0 or sum(parts) >= 1:
            raise InputError(
                "selection and counting must be positive parts of the budget that leave some for the tables"
            )
        checked_size(self.approximate_size)

    def search_and_measure(self, method: str, whole: Whole, tables: FoundTables) -> Procedure:
        """A noisy count unless a number of records is known, the search, and the tables of what it finds."""
        self._check(whole.domain)
        size = self.approximate_size if self.approximate_size is not None else whole.public_size
        counting, selection = exact(self.counting, "counting"), exact(self.selection, "selection")
        *count, searching, measured = whole.budget.split(
            [*([counting] if size is None else []), selection, 1 - selection - (counting if size is None else 0)]
        )

        def search(released: Measurements) -> Asking[Found]:
            known = size if size is not None else max(int(released[0].counts), 1)
            parents = yield from self._search(whole.domain, searching, float(known))
            return {"parents": {child: list(above) for child, above in parents.items()}}

        def measure(released: Measurements) -> Asking[None]:
            parents = {child: tuple(above) for child, above in released.found["parents"].items()}
            yield tables(measured, parents)

        steps = [whole.count(share) for share in count]
        notes = []
        rounds = len(whole.domain) - 1
        if rounds:
            name = counted(rounds, "private selection") + " of a column and its parents"
            steps.append(whole.later(name, searching, search, selecting(searching)))
            notes.append(self._note(whole, searching, rounds))
        else:
            steps.append(whole.later("the graph of one column", searching, search, selecting(searching)))
        steps.append(whole.later("tables of the graph that is found", measured, measure, measuring(measured)))
        return Procedure(method, whole, tuple(steps), tuple(notes))

    def compared(self, domain: Domain) -> int:
        """How many families the search compares in all."""
        p, degrees = len(domain), range(1, self.max_parents + 1)
        return sum((p - i) * sum(math.comb(i, k) for k in degrees) for i in range(1, p))

    def _note(self, whole: Whole, searching: Budget, rounds: int) -> str:
        first, second, *_ = whole.domain.names
        score = Dependence(whole.domain, [(second, (first,))])
        call, _ = plan_selection(score.linf(whole.unit), searching.split([1] * rounds)[0])
        return (
            f"{counted(rounds, 'private selection')} share{'s' * (rounds == 1)} {searching}; each can tell families "
            f"apart that differ by more than some {call.scale * math.log(max(len(whole.domain), 2)):.3g} records."
        )

    def _search(self, domain: Domain, share: Budget, size: float) -> Asking[Parents]:
        """One selection for each column after the first, with equal parts of the share; which families are candidates
        depends on earlier selections and on the number of records only."""
        first = domain.names[0] if self.root is None else domain[self.root].name
        chosen: Parents = {first: ()}
        if len(domain) == 1:
            return chosen
        rounds = len(domain) - 1
        for part in track(share.split([1] * rounds), rounds, "searching the graph"):
            candidates = self._candidates(domain, tuple(chosen), size)
            if not candidates:  # every pair is too large: the rest stand alone
                break
            penalties = [chance_penalty(domain, c, size) for c in candidates]
            if len(candidates) == 1:
                x, above = candidates[0]
            else:
                selection = yield Select(part, Dependence(domain, candidates, penalties))
                x, above = candidates[selection.indices[0]]
            chosen[x] = above
        return {name: chosen.get(name, ()) for name in domain}

    def _check(self, domain: Domain) -> None:
        """Refuse before anything is spent."""
        if self.root is not None:
            domain.index(self.root)
        columns = len(domain)
        degrees = range(1, self.max_parents + 1)
        number = max((columns - i) * sum(math.comb(i, k) for k in degrees) for i in range(columns))
        if number > MOST_CANDIDATES:
            raise CostError(
                f"{number:,} families would have to be compared in one step, more than {MOST_CANDIDATES:,}; "
                f"take max_parents={max(self.max_parents - 1, 1)}, or draw the graph yourself"
            )

    def _candidates(self, domain: Domain, placed: tuple[str, ...], size: float) -> list[Candidate]:
        limit = self.largest if self.largest is not None else max(int(size / 20), 16)
        left = [n for n in domain if n not in placed]
        sets = [c for k in range(1, self.max_parents + 1) for c in combinations(placed, k)]
        return [(x, above) for x in left for above in sets if domain.size((*above, x)) <= limit]


@dataclass(frozen=True)
class SearchedNetwork(GraphSearch, Learner[BayesianNetwork]):
    """Learn graph and tables from one budget; options as those of :class:`GraphSearch`, and:

    Parameters
    ----------
    noise, fit_steps:
        Of the tables, as for :class:`OptimalNetwork`.
    """

    finds_graph: ClassVar[bool] = True

    noise: NoiseChoice = "auto"
    fit_steps: int = STEPS

    def __post_init__(self) -> None:
        super().__post_init__()
        self._learner({})  # checks noise and fit_steps

    def prepare(self, whole: Whole) -> Procedure:
        def tables(share: Budget, parents: Parents) -> Measure:
            return self._learner(parents).request(whole.domain, whole.unit, share)

        return self.search_and_measure(METHOD, whole, tables)

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> BayesianNetwork:
        """The network from what was measured, on the graph that was found; post-processing only. Noise intervals from
        these tables take the graph as it is."""
        measured = as_measurements(measurements)
        found = measured.found.get("parents")
        if not isinstance(found, Mapping):
            raise InputError(
                "these measurements do not say which graph was found, so SearchedNetwork.measure did not make them; "
                "with a graph of your own use OptimalNetwork(graph).estimate"
            )
        parents = {child: tuple(above) for child, above in found.items()}
        model = self._learner(parents).estimate(measured, domain)
        return model.with_card({**(model.card or {}), "method": METHOD, "graph": _arrows(parents)})

    def _learner(self, parents: Parents) -> OptimalNetwork:
        return OptimalNetwork(parents, noise=self.noise, fit_steps=self.fit_steps)


def _arrows(parents: Parents) -> list[str]:
    return [f"{a} -> {child}" for child, above in parents.items() for a in above]
