"""Answers: what a model says to a question, as labelled tables that read well in a terminal and travel as frames."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import markup
from ..conditions import Condition
from ..domain import Level, level_text
from ..errors import InputError, counted, did_you_mean
from ..frames import frame_of
from ..language import quoted

SHOWN_ROWS = 24
SHOWN_COLUMNS = 8
FIGURES = {"P": "probability", "E": "mean", "SD": "deviation", "QUANTILE": "quantile"}
"""What the cells of an answer are, by the kind of the question."""


class Estimate(float):
    """A number that was estimated by sampling; it carries its standard error."""

    standard_error: float

    def __new__(cls, value: float, standard_error: float) -> Estimate:
        number = super().__new__(cls, value)
        number.standard_error = float(standard_error)
        return number

    def __repr__(self) -> str:
        return f"{float(self):.6g} ± {self.standard_error:.2g}"

    def __reduce__(self) -> tuple[type[Estimate], tuple[float, float]]:
        return Estimate, (float(self), self.standard_error)


def _title(kind: str, targets: Iterable[str], given: Iterable[str]) -> str:
    condition = ", ".join(given)
    return f"{kind}({', '.join(targets)}{' | ' + condition if condition else ''})"


def _terms(said: Mapping[str, str | Condition]) -> list[str]:
    return [
        what.text if isinstance(what, Condition) else f"{quoted(name)}={quoted(what, is_level=True)}"
        for name, what in said.items()
    ]


def _probability_text(p: float) -> str:
    if math.isnan(p):
        return "undefined"
    if p and p < 1e-4:
        return f"{p:.3e}"
    return f"{p:.6f}"


def _caution_text(caution: str) -> str:
    return f"\n  beware: {caution}" if caution else ""


@dataclass(frozen=True, eq=False)
class Answer:
    """A table of probabilities, or of another figure, with a label on every cell.

    Parameters
    ----------
    names, labels:
        One name and one tuple of labels an axis.
    probabilities:
        The table, one axis for each name; a plain number when every target of the question was fixed to a level.
        For a question about numbers, their means, standard deviations or quantiles; :attr:`values` is another name.
    given:
        The condition of the question, by label or as a condition; the columns of a conditional table that are
        conditioned on but not fixed are axes of the table, and listed in ``given_names``.
    event:
        Targets of the question that were fixed to a level or a condition: ``P(dysp=yes)``.
    kind, number:
        ``"P"``; or ``"E"``, ``"SD"``, ``"QUANTILE"``, and of what: ``age``, or ``age, 0.9``.
    method, reason:
        How the numbers came about (``"exact"``, ``"loopy"``, ``"gibbs"``) and why that way.
    caution:
        What the card of the model warns of.
    """

    names: tuple[str, ...]
    labels: tuple[tuple[str, ...], ...]
    probabilities: NDArray[np.float64]
    given: Mapping[str, str | Condition] = field(default_factory=dict)
    event: Mapping[str, str | Condition] = field(default_factory=dict)
    given_names: tuple[str, ...] = ()
    method: str = "exact"
    reason: str = ""
    caution: str = ""
    kind: str = "P"
    number: str = ""
    remark: str = ""

    def __post_init__(self) -> None:
        table = np.array(self.probabilities, dtype=np.float64)
        table.flags.writeable = False
        object.__setattr__(self, "probabilities", table)
        if table.shape != tuple(len(labels) for labels in self.labels) or len(self.labels) != len(self.names):
            raise InputError(f"an answer over {self.names} cannot have a table of shape {table.shape}")

    @property
    def title(self) -> str:
        """The question in the query language."""
        targets = [quoted(n) for n in self.names if n not in self.given_names] + _terms(self.event)
        asked = [self.number] if self.number else targets
        return _title(self.kind, asked, [*map(quoted, self.given_names), *_terms(self.given)])

    @property
    def values(self) -> NDArray[np.float64]:
        return self.probabilities

    @property
    def figure(self) -> str:
        """What the cells are, in a word."""
        return FIGURES[self.kind]

    def _text(self, x: float) -> str:
        if self.kind == "P":
            return _probability_text(x)
        return "undefined" if math.isnan(x) else f"{x:.6g}"

    # -- reading numbers out -------------------------------------------------------------------------------------

    def __getitem__(self, key: object) -> float:
        """One probability, by the labels of its axes in order or by a mapping: ``answer["yes", 3]``."""
        if isinstance(key, Mapping):
            if set(key) != set(self.names):
                raise InputError(f"{self.title}: give a level for each of {list(self.names)}, got {list(key)}")
            chosen: tuple[object, ...] = tuple(key[name] for name in self.names)
        else:
            chosen = key if isinstance(key, tuple) else (key,)
        if len(chosen) != len(self.names):
            raise InputError(
                f"{self.title} has an axis for each of {list(self.names)}, got {counted(len(chosen), 'level')}"
            )
        return float(self.probabilities[tuple(map(self._position, range(len(chosen)), chosen))])

    def _position(self, axis: int, label: object) -> int:
        text = level_text(label)
        try:
            return self.labels[axis].index(text)
        except ValueError:
            hint = did_you_mean(text, self.labels[axis])
            raise InputError(f"column {self.names[axis]!r} has no level {text!r}{hint}") from None

    def __float__(self) -> float:
        if self.probabilities.ndim:
            raise InputError(f"{self.title} is a table of shape {self.probabilities.shape}, not one number")
        return float(self.probabilities)

    def __iter__(self) -> Iterator[tuple[tuple[str, ...], float]]:
        """Cells in order: (labels, probability)."""
        for index in np.ndindex(self.probabilities.shape):
            yield self._labels_at(index), float(self.probabilities[index])

    def __len__(self) -> int:
        return int(self.probabilities.size)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        return np.array(self.probabilities, dtype=dtype)

    def _labels_at(self, index: tuple[int, ...]) -> tuple[str, ...]:
        return tuple(labels[i] for labels, i in zip(self.labels, index, strict=True))

    def to_dict(self) -> dict[str, Any]:
        """A plain value for JSON: the question, its cells and how they were computed."""
        return {
            "question": self.title,
            "names": list(self.names),
            "cells": [{"levels": list(labels), self.figure: p} for labels, p in self],
            "method": self.method,
            **({"remark": self.remark} if self.remark else {}),
            **({"caution": self.caution} if self.caution else {}),
        }

    def to_frame(self, backend: str | None = None) -> Any:
        """One row for each cell, a column for each name and ``probability`` (or what else the cells are), as pandas,
        polars or pyarrow."""
        cells = list(self)
        columns: dict[str, list[Any]] = {n: [labels[axis] for labels, _ in cells] for axis, n in enumerate(self.names)}
        columns[self.figure if self.figure not in columns else self.kind] = [p for _, p in cells]
        return frame_of(columns, backend)

    # -- showing -------------------------------------------------------------------------------------------------

    def _rows(self) -> tuple[list[str], list[list[str]], int]:
        """Header, body and how many cells or lines were left out."""
        table = self.probabilities
        if table.ndim == 2 and 1 < table.shape[1] <= SHOWN_COLUMNS:
            head = [self.names[0], *(f"{self.names[1]}={label}" for label in self.labels[1])]
            lines = [[l, *map(self._text, row)] for l, row in zip(self.labels[0], table, strict=True)]
        else:
            head = [*self.names, self.figure]
            some = np.ndindex(table.shape)
            lines = [[*self._labels_at(i), self._text(float(table[i]))] for i, _ in zip(some, range(10_000))]  # noqa: B905
        left_out = (table.size if head[-1] == self.figure else len(lines)) - min(len(lines), SHOWN_ROWS)
        return head, lines[:SHOWN_ROWS], left_out

    def __repr__(self) -> str:
        note = "" if self.method == "exact" else f"   [{self.method}]"
        if not self.names:
            return f"{self.title} = {self._text(float(self))}{note}{self.remarks}"
        head, lines, left_out = self._rows()
        labelled = 1 if head[-1] != self.figure else len(head) - 1
        width = [max(map(len, column)) for column in zip(head, *lines, strict=True)]
        text = [self.title + note]
        for row in [head, *lines]:
            cells = [
                c.ljust(w) if i < labelled else c.rjust(w) for i, (c, w) in enumerate(zip(row, width, strict=True))
            ]
            text.append(("  " + "  ".join(cells)).rstrip())
        if left_out:
            text.append(f"  … and {left_out} more; to_frame() has them all")
        return "\n".join(text) + self.remarks

    def _repr_html_(self) -> str:
        note = "" if self.method == "exact" else f"   [{self.method}]"
        if not self.names:
            return markup.table(f"{self.title} = {self._text(float(self))}{note}", notes=[self.remarks.strip()])
        head, lines, left_out = self._rows()
        more = [f"… and {left_out} more; to_frame() has them all"] if left_out else []
        labels = 1 if head[-1] != self.figure else len(head) - 1
        return markup.table(self.title + note, head, lines, [*more, self.remarks.strip()], labels=labels)

    @property
    def remarks(self) -> str:
        """What is to be said below the answer."""
        return (f"\n  {self.remark}" if self.remark else "") + _caution_text(self.caution)


@dataclass(frozen=True, eq=False)
class Assignment(Mapping[str, Level | float]):
    """The most probable values of some columns: a mapping from names to levels, with its probability.

    ``log_probability`` is that of the assignment given the condition; NaN when the method could not tell.
    """

    values_: Mapping[str, Level | float]
    log_probability: float
    given: Mapping[str, str | Condition] = field(default_factory=dict)
    method: str = "exact"
    reason: str = ""
    caution: str = ""

    def __getitem__(self, name: str) -> Level | float:
        return self.values_[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.values_)

    def __len__(self) -> int:
        return len(self.values_)

    @property
    def probability(self) -> float:
        return math.exp(self.log_probability)

    @property
    def title(self) -> str:
        """The question in the query language."""
        return _title("MAP", map(quoted, self.values_), _terms(self.given))

    def to_dict(self) -> dict[str, Any]:
        """A plain value for JSON."""
        return {
            "question": self.title,
            "assignment": dict(self.values_),
            "log_probability": self.log_probability,
            "method": self.method,
            **({"caution": self.caution} if self.caution else {}),
        }

    def _repr_html_(self) -> str:
        rows = [[name, level_text(value)] for name, value in self.values_.items()]
        notes = [f"probability {_probability_text(self.probability)}", _caution_text(self.caution).strip()]
        return markup.table(self.title, (), rows, notes, labels=2)

    def __repr__(self) -> str:
        width = max(map(len, self.values_), default=0)
        lines = [f"  {name.ljust(width)} = {level_text(value)}" for name, value in self.values_.items()]
        note = "" if self.method == "exact" else f"   [{self.method}]"
        lines = [f"{self.title}{note}", *lines, f"  probability {_probability_text(self.probability)}"]
        return "\n".join(lines) + _caution_text(self.caution)
