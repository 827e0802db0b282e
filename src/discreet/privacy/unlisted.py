"""Levels that nobody has listed: which texts of a column stand out, and which do not is not told.

**Mechanism.** Count how many records have each unlisted text. Add discrete Gaussian noise of scale σ to the counts of
the texts that occur, and release those above τ, with their noisy counts.

**Guarantee.** Let a unit hold at most m records, let Δ₂² be how far it moves the counts (m² under add-remove, 2m² under
replace-one), K how many texts it can open (m, 2m), and K·P(noise > τ − m) ≤ δ. The release is δ-approximately
Δ₂²/(2σ²)-zCDP. Beside steps that are all Gaussian and together μ-GDP, with Δ₂²/(σ² − s²) among their μ², the whole is
(ε, δ(ε; μ) + δ)-DP; :mod:`.gaussian` has s and δ(ε; μ).

*Argument.* Let D and D′ be neighbours, and E the event that no text of D which D′ lacks is released, E′ the same for
D′. A text that one unit opens has a count of at most m, so E and E′ fail with probabilities that add up to at most
K·P(noise > τ − m) ≤ δ. Noise is independent between texts: given E, the release of D is that of the mechanism M″ which
leaves the unit's own texts out, a function of Gaussian noise on the texts that both tables have, whose counts the unit
moves by at most Δ₂. So given E and E′ the two are Δ₂²/(2σ²)-close in the sense of zCDP, which is the first claim [BS16,
Section 8]. For the second, let S be any set of outcomes of the whole interaction, P and P′ its probabilities, and a, a′
those with M″ in place of M; a ≤ e^ε a′ + δ(ε; μ) since all of it is Gaussian then. Let p and p′ be the probabilities
that E and E′ fail. Then P ≤ a + p, and P′ ≥ (1 − p′)a′ by independence. If e^ε a′ ≤ 1, e^ε a′ − e^ε P′ ≤ p′; otherwise
1 − e^ε P′ ≤ 1 − (1 − p′)·e^ε a′ ≤ p′. In both cases P ≤ e^ε P′ + δ(ε; μ) + p + p′.

Texts are counted by numbers that a secret key makes of them. The argument is for keys that give the unit's own texts
numbers which no other text has; others are part of δ, K·2⁻³⁶ for tables of up to 2²⁷ different texts.

The noise is that of whole numbers: P(noise > t) ≤ P(N(0, σ²) ≥ t) for whole t ≥ 0 [CKS20, Proposition 25].

[BS16] Bun, Steinke, TCC 2016. [CKS20] Canonne, Kamath, Steinke, NeurIPS 2020.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction

from ..domain import Domain
from ..encoding import Hashed
from ..errors import BudgetError, InputError
from .budget import Budget
from .calibration import drawn, plan_gaussian_threshold
from .holder import Holder
from .query import Marginals


@dataclass(frozen=True)
class Unlisted:
    """Texts that stand out, with their noisy counts. Public."""

    counts: Mapping[str, int]
    threshold: int
    scale: float


def release(curator: Holder, column: str, share: Budget, delta: Fraction) -> Unlisted:
    """The texts of a column that stand out; see above."""
    share = curator._share(share)
    source = curator._source_of_all
    attribute = curator.domain[column]
    if attribute.sought is None or attribute.sought.what != "levels":
        raise InputError(f'the levels of {column!r} are not to be found: write levels = "discover" into the schema')
    if not 0 < delta < 1:
        raise BudgetError("levels are found with a δ of their own; give the budget as ApproxDP(ε, δ)")
    secret = Hashed.of(attribute, curator._gateway.secret())
    hashed = Domain((secret,))
    query = Marginals(hashed, [(column,)])
    (sensitivity,) = query.sensitivity(curator.unit)
    call, cost = plan_gaussian_threshold(sensitivity, share, delta)
    curator._check((cost,))
    rows = curator._counting(source.under(hashed))
    histogram = {str(cell[0]): n for cell, n in rows.count_sparse((column,)).items() if cell[0]}
    step = {"query": "Unlisted", "noun": ["column", "columns"], "parts": [column], "noise": call.kind}
    curator._spend((cost,), {**step, "share": share.to_dict(), **drawn([call], curator.unit)})
    released = curator._gateway.release_large(call, histogram)
    texts = source.texts(secret, {int(number) for number in released})
    assert call.threshold is not None
    return Unlisted({text: released[str(n)] for n, text in sorted(texts.items())}, call.threshold, call.scale)
