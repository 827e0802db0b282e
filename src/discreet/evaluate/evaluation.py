"""How good is a release? Compared with the rows themselves, for the curator's eyes.

**Nothing here is protected.** Rows are counted exactly, nothing is noised, nothing is charged: what comes out must not
be published, and says so wherever it goes. It cannot get into a release: this room imports neither the ledger nor what
writes releases, nobody imports this room but its command, and files of releases and ledgers refuse data that bear
:data:`~discreet.io.strictjson.PRIVATE_MARK`. For figures that can be published there is the certificate
(`discreet certify`), which is paid for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arguments import require_domain
from ..domain import Clique, Domain
from ..errors import InputError, counted
from ..io.strictjson import PRIVATE_MARK
from ..models.base import Model
from ..models.marginals import from_sampling
from ..progress import track
from ..tables.base import Table
from . import scores
from .classifiers import FEWEST, Trained, accuracy_of, propensity, trained
from .scores import Numbers
from .sides import Asked, Side, asked_of, parts, real_singles, require_comparable, rows_side, side

Array = NDArray[np.float64]
WARNING = (
    "For the curator's eyes only: computed from private rows without any protection. It must not be published, nor "
    "anything that is read off it."
)
TRIPLES = 500
MOST_TARGETS = 3
WORST = 10
NEARER = 0.95
"""Part of the distance of independent columns that a release must stay below, to have learned anything."""


@dataclass(frozen=True, eq=False)
class Compared:
    """One release beside the rows. Distances are total variations, one a clique of the evaluation."""

    side: Side
    columns: Array
    pairs: Array
    triples: Array
    classifiers: tuple[Trained, ...]
    pmse: float | None

    @property
    def name(self) -> str:
        return self.side.name


@dataclass(frozen=True, eq=False)
class Evaluation:
    """All releases beside the rows: ``print(evaluation)``, ``evaluation.to_dict()``, ``evaluation.worst_pairs()``.

    It was computed without protection and must not be published. ``independent`` and ``fresh`` say how far independent
    columns, and a fresh sample of as many records, would be from the rows: what is poor, and what cannot be beaten.
    """

    domain: Domain
    asked: Asked
    real: Side
    releases: tuple[Compared, ...]
    independent: tuple[Array, Array, Array]
    fresh: tuple[Array, Array, Array]
    pmse_of_rows: float | None
    notes: tuple[str, ...] = field(default=())

    def __getitem__(self, name: str) -> Compared:
        for release in self.releases:
            if release.name == name:
                return release
        raise KeyError(name)

    # -- tables --------------------------------------------------------------------------------------------------------

    def table(self, side: Side, clique: Clique) -> Array:
        """The table of one clique on one side."""
        return side.tables[self._at[clique]]

    @cached_property
    def _at(self) -> dict[Clique, int]:
        return {clique: i for i, clique in enumerate(self.asked.cliques)}

    def worst_pairs(self, release: Compared, most: int = WORST) -> list[tuple[Clique, float]]:
        """The pairs that are furthest from the rows, furthest first."""
        return _worst(self.asked.pairs, release.pairs, most)

    def worst_triples(self, release: Compared, most: int = WORST) -> list[tuple[Clique, float]]:
        return _worst(self.asked.triples, release.triples, most)

    # -- numbers -------------------------------------------------------------------------------------------------------

    @cached_property
    def values(self) -> dict[str, Array]:
        """The numbers that the levels of columns stand for, of those that have numbers."""
        found = {a.name: scores.values_of(a) for a in self.domain.attributes}
        return {name: values for name, values in found.items() if values is not None}

    def numbers(self, side: Side) -> dict[str, Numbers | None]:
        """Mean, deviation and quantiles of the columns that have numbers."""
        return {name: scores.numbers_of(self.table(side, (name,)), values) for name, values in self.values.items()}

    def correlations(self, side: Side) -> dict[Clique, float]:
        """Pearson's correlation of each pair of columns that have numbers."""
        known = self.values
        numeric = [pair for pair in self.asked.pairs if pair[0] in known and pair[1] in known]
        return {pair: scores.correlation(self.table(side, pair), (known[pair[0]], known[pair[1]])) for pair in numeric}

    def dependence(self, side: Side) -> dict[Clique, float]:
        """Cramér's V of each pair."""
        return {pair: scores.cramers_v(self.table(side, pair)) for pair in self.asked.pairs}

    # -- words ---------------------------------------------------------------------------------------------------------

    def lines(self) -> list[str]:
        """The evaluation in a few sentences and rows."""
        out = [WARNING, f"{counted(self.real.records or 0, 'row')} of {counted(len(self.domain), 'column')}."]
        out += [self.sentence(release) for release in self.releases]
        for release in self.releases:
            if worst := self.worst_pairs(release, 3):
                named = ", ".join(f"{' × '.join(pair)} {tv:.3g}" for pair, tv in worst)
                out.append(f"{release.name}: furthest away are {named}.")
            for found in release.classifiers:
                out.append(
                    f"{release.name}: a classifier of {found.target} that was trained on it is right on "
                    f"{found.synthetic:.1%} of unseen rows; trained on rows {found.real:.1%}, and "
                    f"{found.most_frequent:.1%} if the most frequent level is always said."
                )
        return [*out, *self.notes]

    def sentence(self, release: Compared) -> str:
        """Whether a release is any good, in one sentence."""
        mean, alone, fresh = self._means(release)
        what, others = ("Pairs of columns are", f"independent columns would be {alone:.3g}, ")
        if NEARER * alone <= mean < alone:
            others = f"independent columns would be hardly further, {alone:.3g}, "
        if not len(release.pairs):
            what, others = "Its column is", ""
        return (
            f"{release.name} is {self.verdict(release)}. {what} {mean:.3g} away from the rows on average, in total "
            f"variation; {others}a fresh sample of as many rows {fresh:.3g}.{self._by_drawing(release, mean)}"
        )

    def _by_drawing(self, release: Compared, mean: float) -> str:
        """Of drawn records, where that counts: how far they are from what they were drawn from."""
        records, k = release.side.records, 1 if len(release.pairs) else 0
        cliques = (self.asked.columns, self.asked.pairs)[k]
        if records is None:
            return ""
        drawing = from_sampling([self.table(release.side, clique) for clique in cliques], records)
        if drawing < mean / 4:
            return ""
        return (
            f" Of that, drawing has its part: {counted(records, 'record')} are about {drawing:.3g} away from whatever "
            "they were drawn from. Compare the model itself, or more records of it."
        )

    def verdict(self, release: Compared) -> str:
        """``"good"``, ``"fair"`` or ``"poor"``: pairs are not further away than twice what a fresh sample would be, or
        half of what independent columns are; nearer than independent columns, by a twentieth; or not. Where columns
        depend so little that a fresh sample would be no nearer than independent columns, these are no reproach."""
        mean, alone, fresh = self._means(release)
        if len(release.pairs) and alone > fresh and mean > NEARER * alone:
            return "poor"
        if mean <= max(2 * fresh, alone / 2):
            return "good"
        return "fair" if mean < NEARER * alone else "poor"

    def _means(self, release: Compared) -> tuple[float, float, float]:
        """Mean distances of pairs (of the column, where there is one only): it, independent columns, a fresh sample."""
        k = 1 if len(release.pairs) else 0
        three = ((release.columns, release.pairs)[k], self.independent[k], self.fresh[k])
        mean, alone, fresh = (float(x.mean()) for x in three)
        return mean, alone, fresh

    def __str__(self) -> str:
        return "\n".join(self.lines())

    # -- as data -------------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain data, under the names of SDMetrics and SDNist where they mean the same. It bears a mark
        by which files of releases and ledgers refuse it."""
        return {
            PRIVATE_MARK: WARNING,
            "records": self.real.records,
            "columns": list(self.domain.names),
            "releases": {release.name: self._release(release) for release in self.releases},
            "baselines": {
                name: {
                    "Column Shapes": _mean(1 - distances[0]),
                    "Column Pair Trends": _mean(1 - distances[1]),
                    **_k_marginals(distances[1], distances[2]),
                }
                for name, distances in (("independent columns", self.independent), ("a fresh sample", self.fresh))
            },
            "pMSE of two halves of the rows": self.pmse_of_rows,
            "notes": list(self.notes),
        }

    def _release(self, release: Compared) -> dict[str, Any]:
        return {
            "tables": release.side.computed,
            "verdict": self.verdict(release),
            "Column Shapes": _mean(1 - release.columns),
            "Column Pair Trends": _mean(1 - release.pairs),
            **_k_marginals(release.pairs, release.triples),
            "pMSE": release.pmse,
            "classifiers": [
                {
                    "target": found.target,
                    "trained on synthetic, tested on real": found.synthetic,
                    "trained on real, tested on real": found.real,
                    "most frequent level": found.most_frequent,
                }
                for found in release.classifiers
            ],
            "columns": [self._column(release, i) for i in range(len(self.domain))],
            "pairs": [
                {"columns": list(pair), "ContingencySimilarity": 1 - float(tv)}
                for pair, tv in zip(self.asked.pairs, release.pairs, strict=True)
            ],
            "triples": [
                {"columns": list(triple), "total variation": float(tv)}
                for triple, tv in zip(self.asked.triples, release.triples, strict=True)
            ],
            "correlations": self._correlations(release),
            "numbers": self._numbers(release),
        }

    def _column(self, release: Compared, i: int) -> dict[str, Any]:
        name = self.domain.names[i]
        out: dict[str, Any] = {"column": name, "TVComplement": 1 - float(release.columns[i])}
        if name in self.values:
            tables = self.table(self.real, (name,)), self.table(release.side, (name,))
            out["KSComplement"] = 1 - scores.kolmogorov_smirnov(*tables, self.values[name])
        return out

    def _correlations(self, release: Compared) -> list[dict[str, Any]]:
        ours = self.correlations(release.side)
        out = []
        for pair, real in self.correlations(self.real).items():
            known = np.isfinite(real) and np.isfinite(ours[pair])
            similar = 1 - abs(real - ours[pair]) / 2 if known else None
            out.append(
                {
                    "columns": list(pair),
                    "real": _finite(real),
                    "synthetic": _finite(ours[pair]),
                    "CorrelationSimilarity": similar,
                }
            )
        return out

    def _numbers(self, release: Compared) -> list[dict[str, Any]]:
        ours = self.numbers(release.side)
        out = []
        for name, real in self.numbers(self.real).items():
            mine = ours[name]
            entry: dict[str, Any] = {"column": name}
            if real is not None and mine is not None:
                width = real.highest - real.lowest
                for what in ("mean", "median", "deviation"):
                    a, b = getattr(real, what), getattr(mine, what)
                    similar = max(0.0, 1 - abs(a - b) / width) if width > 0 else None
                    entry[what] = {"real": a, "synthetic": b, "StatisticSimilarity": similar}
                entry["quantiles"] = {
                    f"{q:g}": {"real": a, "synthetic": b}
                    for q, a, b in zip(scores.QUANTILES, real.quantiles, mine.quantiles, strict=True)
                }
            out.append(entry)
        return out


def evaluate(
    rows: Table,
    releases: Mapping[str, Model | Table],
    *,
    targets: Sequence[str] = (),
    triples: int = TRIPLES,
    classifiers: bool = True,
) -> Evaluation:
    """Compare releases with the rows, without protection and for the curator's eyes.

    Parameters
    ----------
    rows:
        The private rows, as a table: ``encode(frame, domain)`` or ``open_table(path, domain)``.
    releases:
        By name: models, and tables of other people's synthetic records under the same domain.
    targets:
        Columns that classifiers are trained for; by default those that depend most on the others.
    triples:
        How many triples of columns are compared.
    classifiers:
        Whether to train any; without them a comparison takes one pass over the rows.
    """
    domain = require_domain(rows.domain)
    if not releases:
        raise InputError("there is nothing to compare with the rows: give a model, or a file of synthetic records")
    for target in targets:
        _ = domain[target]
    for name, what in releases.items():  # before a row is read
        require_comparable(name, what, domain)
    asked = asked_of(domain, triples)
    real = rows_side("the rows", rows, asked, with_records=classifiers)
    sides = [side(name, what, asked, with_records=classifiers) for name, what in releases.items()]
    singles = real_singles(real, asked)
    alone = [
        scores.total_variation(table, scores.independent([singles[n] for n in clique]))
        for clique, table in zip(asked.cliques, real.tables, strict=True)
    ]
    sampling = [from_sampling([table], real.records or 0) for table in real.tables]
    notes = _notes(asked)
    found: list[tuple[tuple[Trained, ...], float | None]] = [((), None)] * len(sides)
    pmse_of_rows = None
    if classifiers and len(domain) > 1:
        if len(real.codes) < FEWEST:
            notes += (f"There are fewer than {FEWEST} rows: no classifiers were trained.",)
        else:
            chosen = tuple(targets) or _usual_targets(real, asked)
            found, pmse_of_rows = _classified(domain, real, sides, chosen)
    compared = tuple(
        Compared(one, *parts([scores.total_variation(p, q) for p, q in _both(real, one)], asked), *more)
        for one, more in zip(sides, found, strict=True)
    )
    return Evaluation(domain, asked, real, compared, parts(alone, asked), parts(sampling, asked), pmse_of_rows, notes)


def _both(real: Side, other: Side) -> zip[tuple[Array, Array]]:
    return zip(real.tables, other.tables, strict=True)


def _notes(asked: Asked) -> tuple[str, ...]:
    out = []
    for what, some, every in (
        ("pairs", len(asked.pairs), asked.every_pair),
        ("triples", len(asked.triples), asked.every_triple),
    ):
        if some < every:
            out.append(f"{some:,} of {every:,} {what} were compared, chosen by their names alone.")
    return tuple(out)


def _usual_targets(real: Side, asked: Asked) -> tuple[str, ...]:
    """The columns that depend most on the others, in the rows."""
    strength = {clique[0]: 0.0 for clique in asked.columns}
    for pair, table in zip(asked.pairs, real.tables[len(asked.columns) :], strict=False):
        v = scores.cramers_v(table)
        for name in pair:
            strength[name] += v
    return tuple(sorted(strength, key=lambda name: -strength[name])[:MOST_TARGETS])


def _classified(
    domain: Domain, real: Side, sides: Sequence[Side], targets: Sequence[str]
) -> tuple[list[tuple[tuple[Trained, ...], float | None]], float]:
    half = len(real.codes) // 2
    train, test = real.codes[:half], real.codes[half:]
    out: list[tuple[tuple[Trained, ...], float | None]] = []
    on_real = {t: accuracy_of(domain, t, train, test) for t in track(targets, len(targets), "classifiers of the rows")}
    for one in track(sides, len(sides), "classifiers of releases"):
        learned = tuple(trained(domain, target, real.codes, one.codes, on_real[target]) for target in targets)
        out.append((learned, propensity(train, one.codes[:half])))
    return out, propensity(train, test)


def _worst(cliques: Sequence[Clique], distances: Array, most: int) -> list[tuple[Clique, float]]:
    order = np.argsort(-distances, kind="stable")[:most]
    return [(cliques[i], float(distances[i])) for i in order.tolist()]


def _mean(values: Array) -> float | None:
    return float(values.mean()) if len(values) else None


def _k_marginals(pairs: Array, triples: Array) -> dict[str, float | None]:
    return {
        f"k-marginal, k = {k}": scores.k_marginal(distances) if len(distances) else None
        for k, distances in ((2, pairs), (3, triples))
    }


def _finite(x: float) -> float | None:
    return float(x) if np.isfinite(x) else None
