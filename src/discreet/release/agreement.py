"""Whether what a release says besides its tables agrees with the steps on its card: the part of the budget that its
specification gives to the certificate, and the noisy distances by which tables were chosen.

As in :mod:`discreet.privacy.claims`, this is arithmetic about what a file says.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from fractions import Fraction
from typing import Any

from ..errors import DiscreetError
from ..learn import discovery
from ..learn.certifying import FOUND
from ..learn.fields.distance_rounds import DEVIATION, NARROWED
from ..noise import Noise
from ..privacy.budget import ApproxDP, Budget, exact, part_of
from ..spec import Spec
from ..spelling import written

_CRUMBS = Fraction(1, 10**6)


def disagreements(card: Mapping[str, Any], spec: Spec | None, found: Any) -> list[str]:
    """In words; ``found`` is what came out besides the tables, as the file has it, which may be anything."""
    try:
        if not isinstance(found, Mapping):
            raise TypeError("what was found has names")
        return [*_of_the_certificate(card, spec), *_of_distances(card, found)]
    except (DiscreetError, KeyError, IndexError, TypeError, ValueError, ArithmeticError, AttributeError):
        return ["its specification, or what was found besides its tables, does not fit the steps on its card"]


def _of_the_certificate(card: Mapping[str, Any], spec: Spec | None) -> list[str]:
    if spec is None:
        return []
    steps = list(card.get("steps") or ())
    names = [str(step.get("step")) for step in steps]
    said = exact(spec.certify or 0, "certify")
    if any(name.startswith((discovery.BINS, discovery.LEVELS)) for name in names):
        said *= 1 - exact(spec.discover or discovery.SHARE, "discover")
    own = [step for step, name in zip(steps, names, strict=True) if name.startswith(f"{FOUND}:")]
    had = sum((_part(step, steps, Budget.from_dict(dict(card["budget"]))) for step in own), Fraction(0))
    if abs(had - said) <= _CRUMBS:
        return []
    return [
        f"its specification gives {float(said):.3%} of the budget to a certificate of fit, and the steps on its card "
        f"{float(had):.3%}"
    ]


def _part(step: Mapping[str, Any], steps: list[Mapping[str, Any]], budget: Budget) -> Fraction:
    """Which part of all that there is to share out a step has."""
    share, whole = Budget.from_dict(dict(step["share"])), budget
    if "of" in step:
        opening = steps[step["of"] - 1]
        aside = written(opening.get("delta_for_tests", "0"))
        whole = Budget.from_dict(dict(opening["share"]))
        if aside and isinstance(whole, ApproxDP):
            whole = ApproxDP(whole.epsilon, whole.delta - aside)
    return part_of(share, whole)


def _of_distances(card: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """Noisy distances are no tables; but each list of them has the noise of a step, and not more of them than that. Of
    the first ones, where there are many columns, only the names of the largest are told, which are asked for again."""
    paid = [draw for step in card.get("steps") or () if step.get("query") == "Distances" for draw in step["draws"]]
    out = []
    if NARROWED in found:
        names = {tuple(pair) for pair in found[NARROWED]}
        if any(tuple(pair) not in names for pair, _ in found.get("pairs", ())):
            out.append("it tells noisy distances of pairs that are not among the largest, which alone were asked for")
    for name in sorted(key.removesuffix(DEVIATION) for key in found if key.endswith(DEVIATION)):
        many, deviation = len(found[name]), found[name + DEVIATION]
        for at, draw in enumerate(paid):
            noise = Noise("gaussian" if draw["kind"] == "gaussian" else "laplace", draw["scale"])
            same = math.isclose(math.sqrt(noise.variance), deviation, rel_tol=1e-9)
            if same and many * draw["linf"] ** 2 <= draw["l2_squared"]:
                del paid[at]
                break
        else:
            out.append(f"it tells {many} noisy distances ({name[:40]}), and no step has paid for these")
    return out
