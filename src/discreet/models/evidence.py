"""What is given, as inference takes it: codes of columns, and weights on the codes of others that are known in part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from ..arguments import shortened
from ..conditions import Condition
from ..domain import Domain
from ..errors import EvidenceError, InputError
from ..factor import CliqueVector, Factor, log_of, spread
from .distribution import Distribution, Given


@dataclass(frozen=True)
class Evidence:
    """``codes`` of columns; ``conditions`` on others, and how probable each of their codes makes them."""

    domain: Domain
    codes: dict[str, int] = field(default_factory=dict)
    conditions: dict[str, Condition] = field(default_factory=dict)
    weights: dict[str, NDArray[np.float64]] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.codes or self.weights)

    @property
    def names(self) -> tuple[str, ...]:
        return (*self.codes, *self.weights)

    @property
    def said(self) -> dict[str, str | Condition]:
        return {**labels_of(self.domain, self.codes), **self.conditions}

    def on(self, potentials: CliqueVector) -> CliqueVector:
        """The potentials with these weights multiplied in, on the same cliques."""
        if not self.weights:
            return potentials
        tables = dict(potentials.items())
        for name, weights in self.weights.items():
            home = next(clique for clique in tables if name in clique)
            table = tables[home]
            log_weights = log_of(spread(weights, (name,), home))
            tables[home] = Factor(table.domain, table.values + log_weights)
        return CliqueVector(potentials.domain, tables)

    @contextmanager
    def possible(self) -> Iterator[None]:
        """What finds that no cell is left says so of the conditions, if there are any."""
        try:
            yield
        except (EvidenceError, InputError) as error:
            if not self.weights:
                raise
            said = ", ".join(f"{n}={s}" if isinstance(s, str) else s.text for n, s in self.said.items())
            raise EvidenceError(
                f"what is given, {said}, has probability 0 under the model; change a part of it"
            ) from error


def evidence_of(
    model: Distribution, given: Given | None, asked: Iterable[str] = (), *, what: str = "given"
) -> Evidence:
    """A condition as a user gives it: levels by column, or conditions of the query language. A column that is asked
    about may be known in part, but not given a level."""
    domain = model.domain
    if given is not None and not isinstance(given, Mapping):
        name = given if isinstance(given, str) and given in domain else next(iter(domain), "column")
        label = domain[name].labels[0] if name in domain else "level"
        several = ". Several columns to ask about go into one list" if asked else ""
        raise InputError(
            f"{what} must map columns to levels, as in {what}={{{name!r}: {label!r}}}; got {shortened(given)}{several}"
        )
    given = given or {}
    conditions = {name: c for name, c in given.items() if isinstance(c, Condition)}
    codes = {name: domain[name].code(label) for name, label in given.items() if name not in conditions}
    both = [name for name in asked if name in codes]
    if both:
        raise InputError(f"column {both[0]!r} is both asked about and given; leave it out of one of them")
    return Evidence(domain, codes, conditions, {n: weights_of(model, c) for n, c in conditions.items()})


def weights_of(model: Distribution, condition: Condition) -> NDArray[np.float64]:
    """How probable each code of a column makes a condition."""
    weights = np.zeros(model.domain[condition.name].size)
    weights[list(condition.codes)] = 1.0
    if condition.cuts_bins:
        density = model.density(condition.name)
        weights[: density.line.bins] *= density.part(condition.low, condition.high).share
    return weights


def labels_of(domain: Domain, codes: Mapping[str, int]) -> dict[str, str]:
    return {name: domain[name].labels[code] for name, code in codes.items()}
