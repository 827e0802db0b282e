"""What learners of Markov random fields and of their regressions share: checked choices, plans and cards."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal

from ...domain import Domain
from ...errors import InputError
from ...privacy.budget import Budget
from ...privacy.calibration import noise_of, plan_noise
from ...privacy.curator import Curator
from ...privacy.query import Marginals
from ...privacy.unit import PrivacyUnit
from ..planned_sums import PlannedSums, release_card, selecting, settled_later
from ..procedure import Plan
from ..regressions.frank_wolfe import Variant, selection_of
from ..regressions.ising import Regressions
from .measuring import SIZE_SHARE, size_and_rest

Method = Literal["auto", "moments", "frank_wolfe"]
_METHODS = ("auto", "moments", "frank_wolfe")


def check_steps(variant: str, steps: int | None) -> None:
    """Of Frank–Wolfe."""
    if variant not in ("tight", "published"):
        raise InputError(f"variant must be 'tight' or 'published', got {variant!r}")
    if steps is not None and (type(steps) is not int or steps < 1):
        raise InputError(f"steps must be a whole number of at least 1, got {steps!r}")


def check_choices(
    method: str,
    variant: str,
    steps: int | None,
    width: float | None,
    min_weight: float,
    *,
    most: int | None = None,
    most_name: str = "max_edges",
    methods: Sequence[str] = _METHODS,
) -> None:
    """What every learner of a Markov random field may be told; ``most`` bounds its edges or terms."""
    if method not in methods:
        raise InputError(f"method must be {', '.join(map(repr, methods[:-1]))} or {methods[-1]!r}, got {method!r}")
    check_steps(variant, steps)
    if width is not None and not 0 < width < float("inf"):
        raise InputError(f"width must be positive and finite, got {width}")
    if most is not None and (type(most) is not int or most < 0):
        raise InputError(f"{most_name} must be a whole number of at least 0, got {most!r}")
    if not 0 <= min_weight < float("inf"):
        raise InputError(f"min_weight must be a finite number of at least 0, got {min_weight}")


def planned_size(
    domain: Domain, unit: PrivacyUnit, budget: Budget, *, size_is_public: bool
) -> tuple[list[PlannedSums], Budget, float]:
    """The noisy number of records, unless it is public; what is left of the budget, and which part of it that is."""
    for_size, rest = size_and_rest(budget, size_is_public=size_is_public)
    if for_size is None:
        return [], rest, 1.0
    noise = noise_of(plan_noise(Marginals(domain, [()]), unit, for_size).calls[0])
    return [PlannedSums((), 1, SIZE_SHARE / 100, noise, name="number of records")], rest, 1 - SIZE_SHARE / 100


def selection_plan(
    method: str,
    domain: Domain,
    unit: PrivacyUnit,
    budget: Budget,
    size: float | None,
    size_is_public: bool,
    steps: int | None,
    choose: Callable[[float, Budget], int],
    what: str,
    variant: Variant,
) -> Plan:
    """Of Frank–Wolfe: how many steps, each a selection of ``what``. A given number of steps needs no size."""
    entries, rest, share = planned_size(domain, unit, budget, size_is_public=size_is_public or steps is not None)
    if steps is None and size is not None:
        steps = choose(size, rest)
    count = "some steps" if steps is None else f"{steps} step{'' if steps == 1 else 's'}"
    entries.append(settled_later(f"{count}, {what}", share, selecting(budget, selection_of(variant))))
    note = "Selections, not sums: their noise is on the scores inside."
    return Plan(method, unit, budget, tuple(entries), (note,), size)


def frank_wolfe_card(curator: Curator, done: Regressions, method: str, width: float, **facts: Any) -> dict[str, Any]:
    """Of a model from regressions, and whatever else there is to say."""
    measured = [] if done.size is None else [done.size]
    return release_card(
        curator.statement(), measured, method=method, frank_wolfe_steps=done.steps, width=width, **facts
    )
