"""The draws that an algorithm makes, one by one: exactly, and by statistics, against what each was paid for.

On a few neighbours that differ as much as they can, every draw is seen with its two inputs. Of each different one (its
kind, its scale, its entry in the books) the pair of inputs that is furthest apart is kept. *Exactly*: the law of the
mechanism, on the candidates of a choice or on the cell that moves most, within the share of its entry. *By statistics*:
the real gateway draws thousands of times for either input, and a lower confidence bound on ε must be within that share.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from ..domain import Domain
from ..privacy.budget import ZCDP, ApproxDP, Budget, GaussianDP, PureDP
from ..privacy.curator import Curator
from ..privacy.gaussian import delta_of
from ..privacy.ledger import Ledger
from ..privacy.mechanisms import Gateway, NoiseCall, SecureGateway
from ..privacy.unit import PrivacyUnit
from ..progress import track
from .exact import Distribution, check_pair, noise_law, selection_law
from .findings import Finding
from .neighbours import Pair, Rows
from .statistical import audit_statistical
from .transcripts import RecordingGateway, ReplayingGateway, Transcript

MOST_CANDIDATES = 64  # of a choice whose law is enumerated
LOOSE = 0.01  # δ at which statistics look at budgets that have no ε by themselves


@dataclass(frozen=True)
class Draw:
    """One draw on either side of a pair, and what its entry in the books has paid."""

    call: NoiseCall
    left: np.ndarray
    right: np.ndarray
    share: Budget

    @property
    def is_choice(self) -> bool:
        return self.call.kind in ("permute-and-flip", "exponential", "noisy-max")

    @property
    def apart(self) -> int:
        change = (self.right - self.left).reshape(-1)
        return int(change.max() - change.min() if self.is_choice else np.abs(change).max()) if change.size else 0

    @property
    def name(self) -> str:
        return f"{self.call.kind} of scale {self.call.scale:.4g} for {self.share}"


def draws_of(
    algorithm: Callable[[Curator], Any],
    domain: Domain,
    unit: PrivacyUnit,
    budget: Budget,
    *,
    seed: int = 0,
    gateway: Gateway | None = None,
    most: int = 12,
    **options: Any,
) -> list[Draw]:
    """The different draws of an algorithm on neighbours that differ as much as they can."""
    found: dict[tuple[Any, ...], Draw] = {}
    for pair in _extreme_pairs(domain, unit, seed):
        recorded, replay = Transcript(), Transcript()
        with Ledger.in_memory(budget) as ledger:
            recording = RecordingGateway(recorded, ledger, gateway)
            algorithm(Curator(pair.left.table(domain, unit), unit, budget, ledger, gateway=recording, **options))
        replaying = ReplayingGateway(recorded, replay, budget)
        curator = Curator(pair.right.table(domain, unit), unit, budget, gateway=replaying, **options)
        replaying.watch(curator)
        algorithm(curator)
        for call, left, right, entry in replaying.inputs:
            share = replaying.share(entry)
            if share is None or np.shape(left) != np.shape(right):
                continue
            draw = Draw(call, np.asarray(left), np.asarray(right), share)
            key = (call.kind, call.scale, str(share))
            if draw.apart > (found[key].apart if key in found else 0):
                found[key] = draw
    return sorted(found.values(), key=lambda d: -d.apart / d.call.scale)[:most]


def _extreme_pairs(domain: Domain, unit: PrivacyUnit, seed: int) -> Iterator[Pair]:
    """One unit beside none, beside many that are like it, and beside many that are not."""
    rng = np.random.default_rng(seed)
    shape = np.array(domain.shape)
    first, last = np.zeros(len(shape), dtype=np.int64), shape - 1
    own = unit.max_rows
    for others, mine in ((0, last), (12, first), (12, last), (12, rng.integers(0, shape))):
        base = Rows(np.tile(first, (others, 1)).reshape(others, len(shape)), np.arange(others))
        more = base.with_rows(np.tile(mine, (own, 1)), others, others)
        if unit.relation == "add-remove":
            yield Pair(more, base, "one unit removed")
        else:
            yield Pair(more, base.with_rows(np.tile(shape - 1 - mine, (own, 1)), others, others), "one unit replaced")


def audit_draws_exactly(draws: list[Draw]) -> Finding:
    """Of every draw the law on both sides, and its loss within what was paid."""
    name = "exact laws of the draws"
    for draw in draws:
        if draw.is_choice and draw.left.size > MOST_CANDIDATES:
            continue
        found = check_pair(_law(draw, draw.left), _law(draw, draw.right), _claim(draw.share))
        if not found.passed:
            return Finding(name, False, f"{draw.name}: {found.detail}")
    return Finding(name, True, f"{len(draws)} different draws")


def _law(draw: Draw, values: np.ndarray) -> Distribution:
    if draw.is_choice:
        return dict(enumerate(selection_law(draw.call, [int(v) for v in values]).tolist()))
    cell = _cell(draw)
    middle, reach = int(draw.left.reshape(-1)[cell]), draw.apart + int(6 * draw.call.scale) + 6
    law = noise_law(draw.call, int(values.reshape(-1)[cell]), (middle - reach, middle + reach))
    return dict(enumerate(law.tolist()))


def _cell(draw: Draw) -> int:
    return int(np.argmax(np.abs(draw.right - draw.left)))


def _claim(share: Budget) -> Budget:
    """What can be held against a law: shares of Gaussian steps by the (ε, δ) that they imply."""
    if isinstance(share, GaussianDP):
        mu = float(share.mu_squared) ** 0.5
        return ApproxDP(1, Fraction(max(delta_of(mu, 1.0), 1e-12)))
    return share


def audit_draws_by_statistics(draws: list[Draw], runs: int, gateway: Gateway | None = None) -> Finding:
    """Of the draws that cost most, many real ones for either input."""
    name = f"statistics of the draws, {runs:,} for either neighbour"
    real = gateway or SecureGateway()
    for draw in track(draws[:4], min(len(draws), 4), "draws, again and again"):
        claim = _claim(draw.share)
        if isinstance(claim, ZCDP):
            claim = claim.to_approx(LOOSE)
        assert isinstance(claim, PureDP | ApproxDP)
        delta = float(claim.delta) if isinstance(claim, ApproxDP) else 0.0

        def run(other: bool, draw: Draw = draw) -> int:
            values = draw.right if other else draw.left
            if draw.is_choice:
                return int(real.select(draw.call, values))
            return int(real.add_noise(draw.call, values.reshape(-1)[_cell(draw), None])[0])

        found = audit_statistical(run, float(claim.epsilon), delta=delta, runs=runs, confidence=1 - 1e-6)
        if not found.passed:
            return Finding(name, False, f"{draw.name}: {found.detail}")
    return Finding(name, True, f"{min(len(draws), 4)} draws")
