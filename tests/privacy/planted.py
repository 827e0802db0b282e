"""Privacy bugs planted on purpose, one a name. Each is small and looks plausible; each must be caught by an audit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np

from discreet.domain import Attribute, Domain
from discreet.privacy.budget import PureDP
from discreet.privacy.curator import Curator
from discreet.privacy.mechanisms import NoiseCall, SecureGateway
from discreet.privacy.query import LargestSum, Marginals, Query
from discreet.privacy.unit import PrivacyUnit, Relation, Sensitivity
from discreet.tables.base import IntArray
from discreet.tables.memory import MemoryTable


class HalfSensitivity(Marginals):
    """Declares half of what a person with two rows can move."""

    def sensitivity(self, unit: PrivacyUnit) -> tuple[Sensitivity, ...]:
        return self.row_sensitivity(unit.relation)


class ReplaceOnePaidAsAddRemove(Marginals):
    def row_sensitivity(self, relation: Relation) -> tuple[Sensitivity, ...]:
        return super().row_sensitivity("add-remove")


class OverlappingTablesPaidOnce(Query):
    """Two tables released as one part, with the sensitivity of one of them."""

    def __init__(self, domain: Domain) -> None:
        super().__init__(domain)
        self._inner = Marginals(domain, [("a",), ("b",)])

    @property
    def parts(self) -> Any:
        from discreet.privacy.query import Part

        return (Part("a and b", (sum(p.cells for p in self._inner.parts),)),)

    @property
    def cliques(self) -> Any:
        return self._inner.cliques

    def combine(self, counts: Sequence[IntArray]) -> tuple[IntArray, ...]:
        return (np.concatenate([c.reshape(-1) for c in counts]),)

    def row_sensitivity(self, relation: Relation) -> tuple[Sensitivity, ...]:
        return self._inner.row_sensitivity(relation)[:1]


# -- algorithms that misuse a curator --------------------------------------------------------------------------------


def exact_rows(curator: Curator) -> int:
    return int(curator._rows.sum(Marginals(curator.domain, [()]))[0])


def private_n_used_as_public(curator: Curator) -> Any:
    """The share depends on the exact number of records."""
    n = exact_rows(curator)
    return curator.measure(Marginals(curator.domain, [("a",)]), PureDP(Fraction(1, n + 2)))


def proportions_by_exact_n(curator: Curator) -> Any:
    """1/n on counts: a noisy table divided by the exact total."""
    n = exact_rows(curator)
    return curator.measure(Marginals(curator.domain, [("a",)]))[0].values / max(n, 1)


def early_stop_on_private_data(curator: Curator) -> Any:
    """Stops asking when the exact table has no empty cell left."""
    out = []
    for share in curator.budget.split([1, 1, 1]):
        out.append(curator.measure(Marginals(curator.domain, [("a",)]), share))
        if curator._rows.sum(Marginals(curator.domain, [("a",)]))[0].min() > 0:
            break
    return out


def reused_noise(curator: Curator) -> Any:
    """The noise of one table is taken off and put on another."""
    first = curator.measure(Marginals(curator.domain, [("a",)]))[0]
    exact_a, exact_b = curator._rows.sum(Marginals(curator.domain, [("a",), ("b",)]))
    noise = first.counts - exact_a
    return first.counts, exact_b + np.resize(noise, exact_b.shape)


def float_addition_after_noise(curator: Curator) -> Any:
    """A correction computed from rows is added to the noisy table in floating point."""
    noisy = curator.measure(Marginals(curator.domain, [("a",)]))[0].values
    return noisy + 1e-9 * exact_rows(curator)


def error_echoing_a_value(curator: Curator) -> Any:
    """Refuses a row, and says what it holds."""
    counts = curator._rows.sum(Marginals(curator.domain, [("a",)]))[0]
    if counts[-1]:
        raise ValueError(f"found {counts[-1]} rows with the level {curator.domain['a'].labels[-1]}")
    return curator.measure(Marginals(curator.domain, [("a",)]))


def log_line_with_n(curator: Curator) -> Any:
    print(f"fitting {exact_rows(curator)} records")
    return curator.measure(Marginals(curator.domain, [("a",)]))


def domain_from_data(curator: Curator) -> Any:
    """Measures only the levels that occur."""
    present = np.flatnonzero(curator._rows.sum(Marginals(curator.domain, [("a",)]))[0])
    levels = [curator.domain["a"].levels[i] for i in present] or [0]
    table = MemoryTable(Domain((Attribute.categorical("a", levels),)), [np.zeros(exact_rows(curator), dtype=np.uint8)])
    inner = Curator(table, curator.unit, curator.budget, gateway=curator._gateway, ledger=curator._ledger)
    curator._reserve()
    inner._charge = curator._charge
    return inner.measure(Marginals(table.domain, [("a",)]))


class SpendsAfterNoise(Curator):
    """Draws first and books afterwards: a crash in between is a free release."""

    def measure(self, query: Query, share: Any = None, **options: Any) -> Any:
        share = self._share(share)
        (total,) = self._rows.sum(query)
        (sensitivity,) = query.sensitivity(self.unit)
        call = NoiseCall("laplace", float(1 / share.epsilon), sensitivity)
        noisy = self._gateway.add_noise(call, total)
        from discreet.privacy.accounting import Cost

        self._spend((Cost.of(share),), query.describe())
        return noisy


class MonotoneSelection(Curator):
    """Takes the discount for scores that only grow, which add-remove counts with both signs are not."""

    def select(self, score: Any, share: Any = None, *, k: int = 1) -> Any:
        from discreet.privacy.accounting import Cost

        share = self._share(share)
        linf = score.linf(self.unit)
        call = NoiseCall("permute-and-flip", float(linf / share.epsilon), Sensitivity(linf, linf, linf, 1))
        self._spend((Cost.of(share),), score.describe())
        return self._gateway.select(call, score.scores(self._rows.sum(score.query)))


class PartitionByPosition(MemoryTable):
    """Blocks by row number: deleting one row moves all the rows after it."""

    def without_persons(self) -> MemoryTable:
        return self

    def split(self, blocks: int, key: bytes) -> tuple[MemoryTable, ...]:
        block = np.arange(self._rows) % blocks
        return tuple(self._take(np.flatnonzero(block == b)) for b in range(blocks))


# -- gateways that are wrong themselves ------------------------------------------------------------------------------


class ThirtyTwoBits(SecureGateway):
    def add_noise(self, call: NoiseCall, values: IntArray) -> IntArray:
        return super().add_noise(call, np.asarray(values).astype(np.int32).astype(np.int64))


class SameNoiseAgain(SecureGateway):
    def __init__(self) -> None:
        self._kept: dict[Any, IntArray] = {}

    def add_noise(self, call: NoiseCall, values: IntArray) -> IntArray:
        key = (call, np.shape(values))
        if key not in self._kept:
            self._kept[key] = super().add_noise(call, np.zeros_like(values))
        return np.asarray(values) + self._kept[key]


class ScaleTenPercentOff(SecureGateway):
    def add_noise(self, call: NoiseCall, values: IntArray) -> IntArray:
        return super().add_noise(NoiseCall(call.kind, call.scale / 1.1, call.sensitivity), values)


class SelectsWithHalfTheNoise(SecureGateway):
    def select(self, call: NoiseCall, scores: IntArray) -> int:
        return super().select(NoiseCall(call.kind, call.scale / 2, call.sensitivity), scores)


class ForgetsTheThreshold(SecureGateway):
    """Shows every key, however small its count."""

    def release_large(self, call: NoiseCall, histogram: Mapping[str, int]) -> dict[str, int]:
        return super().release_large(NoiseCall(call.kind, call.scale, call.sensitivity, -(10**6)), histogram)


def select_largest(curator: Curator) -> Any:
    return curator.select(LargestSum(Marginals(curator.domain, [("a",)])))
