"""MST, AIM and SWIFT by their published rules, as learners of ours: our curator answers and charges what they ask, all
tables are fitted by :func:`discreet.learn.fields.mirror.mirror_fit`, and inference has the same limit for everybody.

So what is compared is the choice of tables and the shares, not programs. Where we depart from the rules:

* Private-PGM's own fit (thousands of steps of mirror descent) is replaced by ours. It stops early, for the sake of
  tables like our default's; where few tables are weak and stand alone, such as single columns of a hundred levels, that
  costs the peers something, so they may have the likelihood of :class:`NoiseAwareField` instead (``likelihood=True``).
* A model may have as many cells as our default's, ``most_cells`` of the junction tree in all. (AIM: 80 MB; SWIFT: 1e7
  cells a clique.)
* MST merges rare levels before it looks at pairs. We do not.
* AIM and SWIFT ask for single columns with 10 % of the budget, as Google's dpsynth does. (AIM's paper: 5.6 %.)
* Under pure DP, which the papers do not treat, MST and AIM have Laplace noise and permute-and-flip.

Guarantee: the budget; see :mod:`discreet.learn.procedure`. MST and AIM select by errors, which one record may move up
or down: the exponential mechanism of scale b costs Δ²/(2b²) zCDP, Δ the largest change, and not a quarter of that as
for errors that only go one way. All of SWIFT is Gaussian noise, so it gets the same exact accounting as our default.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import combinations
from typing import ClassVar

import numpy as np

from discreet.domain import Clique, Domain
from discreet.errors import BudgetError
from discreet.graph import triangulate
from discreet.inference.exact import get_engine
from discreet.learn.cards import card_of
from discreet.learn.consistency import estimated_total
from discreet.learn.error_curve import mean_absolute
from discreet.learn.fields.growth import Tree
from discreet.learn.fields.noise_aware import NoiseAwareField
from discreet.learn.fields.rounds import fitted
from discreet.learn.learner import Learner
from discreet.learn.procedure import Found, Procedure, Step, Whole
from discreet.measurement import Measurements
from discreet.models import MarkovRandomField
from discreet.privacy.budget import ZCDP, ApproxDP, Budget, GaussianDP, PureDP
from discreet.privacy.calibration import noise_of, plan_noise
from discreet.privacy.queries.distances import Distances
from discreet.privacy.query import Marginals, Score
from discreet.privacy.requests import Asking, Measure, Select
from discreet.privacy.selection import Selection
from discreet.privacy.unit import PrivacyUnit

MOST_CELLS = 100_000
_PRECISION = 10**9


class MostMissed(Score):
    """Select the table of the largest w·(Σ|x − r| − price), with public whole weights w and prices.

    A distance moves by at most 1 under add-remove and 2 under replace-one (:class:`Distances`), times the rows of a
    person; so a score moves by at most the largest weight times that, up or down.
    """

    def __init__(self, distances: Distances, prices: Sequence[float], weights: Sequence[int]) -> None:
        self.query = distances
        self._prices, self._weights = np.rint(prices).astype(np.int64), np.array(weights, dtype=np.int64)

    @property
    def candidates(self) -> tuple[str, ...]:
        return tuple(" × ".join(c) for c in self.query.cliques)

    def scores(self, sums: Sequence[np.ndarray]) -> np.ndarray:
        return self._weights * (sums[0] - self._prices)

    def linf(self, unit: PrivacyUnit) -> int:
        return int(self._weights.max()) * max(s.linf for s in self.query.sensitivity(unit))


@dataclass(frozen=True)
class _Peer(Learner[MarkovRandomField]):
    finds_graph: ClassVar[bool] = True
    method: ClassVar[str]

    most_cells: int = MOST_CELLS
    likelihood: bool = False

    @abstractmethod
    def steps(self, whole: Whole) -> tuple[Step, ...]: ...

    def prepare(self, whole: Whole) -> Procedure:
        return Procedure(self.method, whole, self.steps(whole))

    def estimate(self, measurements: Measurements, domain: Domain | None = None) -> MarkovRandomField:
        if self.likelihood:
            return NoiseAwareField(sorted(set(measurements.cliques))).estimate(measurements, domain)
        fit = fitted(domain or measurements.domain, measurements)
        card = card_of(measurements, self.method, estimated_total(measurements))
        return MarkovRandomField(fit.field.domain, fit.field.potentials(fit.theta), card)

    def pairs(self, domain: Domain) -> list[Clique]:
        return [c for c in combinations(domain.names, 2) if domain.size(c) <= self.most_cells]


def columns_of(domain: Domain) -> list[Clique]:
    return [(name,) for name in domain.names]


def tables(domain: Domain, cliques: Iterable[Clique], share: Budget, parts: Sequence[float] | None = None) -> Measure:
    """The noise is Laplace's for pure shares; ``parts`` of the share are equal unless told."""
    weights = None if parts is None else [max(1, round(_PRECISION * p / max(parts))) for p in parts]
    return Measure(share, Marginals(domain, cliques), "laplace" if isinstance(share, PureDP) else "gaussian", weights)


def expected_counts(domain: Domain, released: Measurements, cliques: Iterable[Clique]) -> dict[Clique, np.ndarray]:
    """What a model of everything released expects: public."""
    fit = fitted(domain, released, rough=True)
    beliefs = get_engine(domain, fit.field.cliques).calibrate(fit.potentials)
    total = estimated_total(released)
    return {c: total * np.asarray(beliefs.marginal(c).exp()) for c in cliques}


def distances(domain: Domain, expected: Mapping[Clique, np.ndarray], cliques: Sequence[Clique]) -> Distances:
    return Distances(domain, cliques, [expected[c] for c in cliques])


# -- MST ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MST(_Peer):
    """Maximum spanning tree [McKenna, Miklau, Sheldon, 2021]: single columns, the pairs of a tree selected one by one
    by their distance from independence, their tables; a third of the budget each."""

    method: ClassVar[str] = "MST"

    def steps(self, whole: Whole) -> tuple[Step, ...]:
        domain = whole.domain
        first, second, third = whole.budget.split([1, 1, 1])

        def select(released: Measurements) -> Asking[Found]:
            expected = expected_counts(domain, released, self.pairs(domain))
            home = {name: {name} for name in domain.names}
            chosen: list[Clique] = []
            for share in second.split([1] * (len(domain) - 1)):
                left = [pair for pair in expected if home[pair[0]] is not home[pair[1]]]
                if not left:
                    break
                score = MostMissed(distances(domain, expected, left), [0] * len(left), [1] * len(left))
                selection: Selection = yield Select(share, score)
                pair = left[selection.indices[0]]
                chosen.append(pair)
                joined = home[pair[0]] | home[pair[1]]
                home.update(dict.fromkeys(joined, joined))
            return {"tree": [list(pair) for pair in chosen]}

        def measure(released: Measurements) -> Asking[Found]:
            tree = [tuple(pair) for pair in released.found["tree"]]
            yield tables(domain, tree or columns_of(domain), third)
            return {}

        return (
            whole.measure("tables of single columns", tables(domain, columns_of(domain), first)),
            whole.later("selections of a pair for a tree", second, select),
            whole.later("tables of the tree", third, measure),
        )


# -- AIM ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class AIM(_Peer):
    """Adaptive and iterative mechanism [McKenna, Mullins, Sheldon, Miklau, VLDB 2022] for the workload of all pairs, or
    of all sets of ``ways`` columns.

    Rounds: select the table of the largest w·(‖x − Nμ‖₁ − expected noise), w the number of its columns (that is its
    weight in such a workload), among those that keep the model within a limit that grows with what is spent; measure
    it; fit. 16 rounds a column are planned, a tenth of each for selection. When a table taught less than its noise, the
    noise of the next rounds is halved.
    """

    method: ClassVar[str] = "AIM"

    ways: int = 2

    def steps(self, whole: Whole) -> tuple[Step, ...]:
        domain, unit = whole.domain, whole.unit
        first, rest = whole.budget.split([1, 9])
        dearer = 2 if isinstance(rest, PureDP) else 4  # what half the noise costs

        def rounds(released: Measurements) -> Asking[Found]:
            everything = [c for k in range(1, self.ways + 1) for c in combinations(domain.names, k)]
            candidates = [c for c in everything if domain.size(c) <= self.most_cells]
            known, left, part = released, Fraction(1), Fraction(1, 16 * len(domain))
            expected = expected_counts(domain, known, candidates)
            asked = 0
            while left:
                part = left if left < 2 * part else part
                left -= part
                looking, measuring = _scaled(rest, part / 10), _scaled(rest, part * 9 / 10)
                small = self._small(domain, known.cliques, candidates, float(1 - left))
                (call,) = plan_noise(Marginals(domain, small[:1]), unit, measuring).calls
                noise = [mean_absolute(noise_of(call)) * domain.size(c) for c in small]
                score = MostMissed(distances(domain, expected, small), noise, [len(c) for c in small])
                selection: Selection = yield Select(looking, score)
                best = small[selection.indices[0]]
                measured: Measurements = yield tables(domain, [best], measuring)
                known = Measurements([*known, *measured])
                before, expected = expected[best], expected_counts(domain, known, candidates)
                if np.abs(expected[best] - before).sum() <= noise[selection.indices[0]]:
                    part *= dearer
                asked += 1
            return {"rounds": asked}

        return (
            whole.measure("tables of single columns", tables(domain, columns_of(domain), first)),
            whole.later("rounds of a selection and a table", rest, rounds),
        )

    def _small(
        self, domain: Domain, cliques: Sequence[Clique], candidates: Iterable[Clique], spent: float
    ) -> list[Clique]:
        """Those that keep the junction tree within so much of the limit, and those that it holds anyway."""
        tree = [set(c) for c in triangulate(domain, cliques).cliques]
        limit = int(self.most_cells * spent)
        return [c for c in candidates if any(set(c) <= t for t in tree) or Tree(domain, cliques, limit).takes(c)]


def _scaled(share: Budget, fraction: Fraction) -> Budget:
    assert isinstance(share, ZCDP | PureDP)
    return share.scaled(fraction)


# -- SWIFT -------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SWIFT(_Peer):
    """SWIFT of Google's dpsynth (2026) for the workload of all pairs.

    Distances of all pairs and columns from independence in one shot, a tenth of what single columns left; a clique tree
    grown from the pairs by distance less a penalty on cells, for seven penalties, of which the tree that holds the
    largest sum of distances is taken; the tables inside it that are worth their noise, all measured at once.
    """

    method: ClassVar[str] = "SWIFT"
    penalties: ClassVar[tuple[int, ...]] = (0, 1, 2, 4, 8, 16, 32)

    def prepare(self, whole: Whole) -> Procedure:
        if not isinstance(whole.budget, ApproxDP) or whole.budget.to_gaussian() is None:
            raise BudgetError(f"SWIFT is made of Gaussian noise, for an (ε, δ) budget and not for {whole.budget}")
        return Procedure(self.method, whole, self.steps(whole), composition="as one Gaussian")

    def steps(self, whole: Whole) -> tuple[Step, ...]:
        domain, unit = whole.domain, whole.unit
        assert isinstance(whole.budget, ApproxDP)
        within = whole.budget.to_gaussian()
        assert within is not None
        first, looking, measuring = within.split([10, 9, 81])
        assert isinstance(measuring, GaussianDP)
        candidates = [*columns_of(domain), *self.pairs(domain)]

        def look(released: Measurements) -> Asking[Found]:
            expected = expected_counts(domain, released, candidates)
            (noisy,) = yield Measure(looking, distances(domain, expected, candidates), "gaussian")
            return {"distances": [int(e) for e in noisy.counts]}

        def measure(released: Measurements) -> Asking[Found]:
            said = dict(zip(candidates, map(float, released.found["distances"]), strict=True))
            tree = self._tree(domain, said)
            inside = {c: e for c, e in said.items() if any(set(c) <= t for t in tree)}
            moved = math.sqrt(Marginals(domain, candidates[:1]).sensitivity(unit)[0].l2_squared)
            chosen = worth_their_noise(domain, inside, moved / math.sqrt(float(measuring.mu_squared)))
            yield tables(domain, list(chosen), measuring, list(chosen.values()))
            return {}

        return (
            whole.measure("tables of single columns", tables(domain, columns_of(domain), first)),
            whole.later("distances of all pairs", looking, look, kept=False),
            whole.later("tables inside a clique tree", measuring, measure),
        )

    def _tree(self, domain: Domain, said: Mapping[Clique, float]) -> list[set[str]]:
        pairs = [c for c in said if len(c) == 2]
        orders = [sorted(pairs, key=lambda c, p=p: (p * domain.size(c) - said[c], c)) for p in self.penalties]
        best: tuple[float, list[set[str]]] = (-math.inf, [])
        for order in dict.fromkeys(map(tuple, orders)):  # where all pairs have as many cells, one order is all
            tree = Tree(domain, columns_of(domain), self.most_cells)
            for pair in order:
                tree.takes(pair)
            cliques = [set(c) for c in triangulate(domain, tree.cliques).cliques]
            held = sum(said[c] for c in pairs if any(set(c) <= t for t in cliques))
            best = max(best, (held, cliques), key=lambda found: found[0])
        return best[1]


def worth_their_noise(domain: Domain, said: Mapping[Clique, float], price: float) -> dict[Clique, float]:
    """The tables that raise Σ w·e − price·(Σ y)^1.5, y = (w·cells·√(2/π))^⅔, taken by w·e/y, with their parts y; w is
    the number of columns."""
    parts = {c: (len(c) * domain.size(c) * math.sqrt(2 / math.pi)) ** (2 / 3) for c in said}
    out: dict[Clique, float] = {}
    gained = paid = 0.0
    best = -math.inf  # the first one is always taken
    for c in sorted(said, key=lambda c: (-len(c) * said[c] / parts[c], c)):
        value = gained + len(c) * said[c] - price * (paid + parts[c]) ** 1.5
        if value <= best:
            break
        out[c] = parts[c]
        gained, paid, best = gained + len(c) * said[c], paid + parts[c], value
    return out
