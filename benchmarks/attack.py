"""The membership attack on every method: what it reaches beside what is promised, at ε = 0.5, 1 and 2.

``ours`` is the least ε that the attack shows with 99.9 % confidence; the target is the ε that was promised.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.harness import row
from discreet import ApproxDP, Domain, PrivacyUnit, PureDP, Spec, resolve
from discreet.audit.attack import attack_spec
from discreet.errors import DiscreetError
from discreet.methods import METHODS, Method

DOMAIN = Domain.of({"a": 2, "b": 2, "c": 2, "d": 2})
STRUCTURES = {"graph": "a -> b; b -> c", "cliques": "a,b; b,c"}
OPTIONS: dict[str, dict[str, Any]] = {
    "maximal_monomials": {"order": 2, "min_weight": 0.3},
}  # for which there are no defaults
SLOW = ("stable_mode",)  # half a second a run, by blocks that vote


def spec_of(method: Method) -> Spec:
    """The method with what it must be told."""
    said = {method.needs: STRUCTURES[method.needs]} if method.needs else {}
    options = OPTIONS.get(method.name, {})
    return resolve(DOMAIN, family=method.family, method=method.name, options=options, **said)  # type: ignore[arg-type]


def run(quick: bool = False, seed: int = 0, data: Path | None = None) -> Iterator[dict[str, Any]]:
    """All rows. Rows are synthetic: nothing is read from ``data``."""
    for method in METHODS:
        if method.name in SLOW:
            continue
        spec = spec_of(method)
        for epsilon in ("0.5", "1", "2"):
            budget: PureDP | ApproxDP = PureDP(epsilon)
            try:
                spec.prepare(DOMAIN, PrivacyUnit(), budget)
            except DiscreetError:  # it needs a δ
                budget = ApproxDP(epsilon, "1e-6")
            found = attack_spec(spec, DOMAIN, PrivacyUnit(), budget, runs=80 if quick else 300, seed=seed)
            yield row(
                "ε that an attack shows",
                f"{method.family} {method.name}, {budget}",
                found.epsilon_at_least,
                target=float(epsilon),
                reference=found.advantage,
                reference_name=f"advantage, of {found.promise:.3f}",
                runs=found.runs,
                at_most_95_percent=found.interval[1],
            )
