"""Expectation–maximisation over released tables: the part that records do not show is filled in by the model so far.

A table of columns C has cells in which some of them are missing. *Missing at random* means: given what is seen in the
table, whether a value is missing says nothing about it. Then such a cell counts for all records with the values that
are seen, in the proportions P(missing | seen) of the model (Dempster, Laird and Rubin 1977). A hidden class is a column
that is missing in all records. So one step makes of every table one over C and the class, without missing values; and
what learns from tables learns from these, for the next step.

Everything is post-processing of noisy tables that were paid for. What a table does not hold, it cannot tell: with
tables of pairs, missing at random is about pairs.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...domain import Attribute, Clique, Domain
from ...errors import InputError

Array = NDArray[np.float64]
CLASS = "class"
LEAST = 1e-12


@dataclass(frozen=True)
class Hidden:
    """The columns of the tables, and what of them is to be seen behind: ``classes`` (1: none), and whether levels for
    missing values stand for the others."""

    observed: Domain
    classes: int
    missing: bool

    def __post_init__(self) -> None:
        if self.missing and not any(a.missing is not None for a in self.observed.attributes):
            raise InputError(
                "none of these columns has a level for missing values, so that none can be missing at random; give "
                'them one in the schema (missing = "unknown"), or leave missing="level"'
            )
        if self.classes > 1 and CLASS in self.observed:
            raise InputError(f"the column of hidden classes is called {CLASS!r}, as one of yours is; rename that")

    @cached_property
    def domain(self) -> Domain:
        """Of the model."""
        columns = [known(a) if self.missing else a for a in self.observed.attributes]
        rules = () if self.missing else self.observed.impossible
        dependencies = () if self.missing else self.observed.dependencies
        if self.classes > 1:
            columns.append(Attribute.categorical(CLASS, range(1, self.classes + 1)))
        return Domain(tuple(columns), rules, dependencies)

    def with_class(self, clique: Clique) -> Clique:
        return (*clique, CLASS) if self.classes > 1 else clique

    def completed(self, clique: Clique, table: Array, joint: Array) -> tuple[Array, float]:
        """The table of a clique and the class, and the log-likelihood of what is seen, a record; ``joint`` is what the
        model says of them."""
        behind = tuple(range(len(clique), joint.ndim))  # the class has the last axis
        out, fit = np.zeros_like(joint), 0.0
        for lost in self._patterns(clique):
            axes = (*(i for i, name in enumerate(clique) if name in lost), *behind)
            seen = table[np.ix_(*(self._codes(name, name in lost) for name in clique))]
            likely = np.maximum(joint.sum(axis=axes, keepdims=True), LEAST)
            seen = seen.reshape(likely.shape)
            out += seen / likely * joint
            fit += float((seen * np.log(likely)).sum())
        return out, fit

    def _patterns(self, clique: Clique) -> list[frozenset[str]]:
        """Which columns of a clique may be missing together."""
        may = [name for name in clique if self.missing and self.observed[name].missing is not None]
        return [frozenset(some) for k in range(len(may) + 1) for some in itertools.combinations(may, k)]

    def _codes(self, name: str, lost: bool) -> NDArray[np.intp]:
        """The codes of a column that is missing, or is not."""
        attribute = self.observed[name]
        codes = np.arange(attribute.size)
        if not self.missing or attribute.missing is None:
            return codes
        kept: NDArray[np.intp] = codes[(codes == attribute.missing_code) == lost]
        return kept


def known(attribute: Attribute) -> Attribute:
    """The column without its level for missing values. Who peeked whether values are missing has peeked at this column,
    too: the mark stays."""
    if attribute.missing is None:
        return attribute
    outside = "" if attribute.outside == attribute.missing else attribute.outside
    if attribute.size == 1:
        raise InputError(f"column {attribute.name!r} has no level but the one for missing values")
    return replace(attribute, missing=None, outside=outside)
