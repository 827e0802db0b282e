"""Levels that were taken together: how far the records may be from how the model tells them apart.

The model shares what a group of levels has between them, in the same parts whatever the other columns say. How far the
noise leaves these parts open is in the refits (:func:`~discreet.learn.fields.grouping.shares_within`). Beside it there
are two things. By chance, a cell of a table with probability p, of a level with P and the part s of its group, is off
by about √(p(1 − p/P)(1 − s)/n), also where level and other columns are independent given the group. And the levels of a
group may differ in other columns. Nothing in a release tells how; but what is released tells how far groups differ from
each other: with τ² the variance of P(other columns | group) over groups, P·τ·√(1 − s) is about how far off the cell is
if levels differ as much. Answers that this concerns say so.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from ..models.base import Model
from ..models.evidence import evidence_of
from ..models.grouped import GroupedField

Array = NDArray[np.float64]
_ALONE = 1e-9


def variance_within(
    model: Model, records: float, joint: Array, axes: Sequence[str], held: Mapping[str, object]
) -> Array:
    """Of each cell of a joint table with an axis for each of these columns, the others held."""
    joint = np.nan_to_num(joint)  # of a level with no records by the model
    variance = np.zeros_like(joint)
    if not isinstance(model, GroupedField):
        return variance
    for k, name in enumerate(axes):
        if name in model.groups:
            shape = [-1 if i == k else 1 for i in range(joint.ndim)]
            alone = model.marginal((name,)).probabilities.reshape(shape)
            others = 1 - np.asarray(model.within[name]).reshape(shape)
            variance += others * _if_alone(joint, alone, _between(joint, alone, k), records)
    for name, what in held.items():
        if name in model.groups and len(axes) + len(held) > 1:
            rest = {n: w for n, w in held.items() if n != name}
            table = np.asarray(model.marginal((name, *axes), rest).probabilities)
            table = table * (float(model.probability(rest)) if rest else 1.0)
            each = model.marginal((name,)).probabilities.reshape((-1,) + (1,) * len(axes))
            alone = np.asarray(float(model.probability({name: what})))
            between = _between(table, each, 0)[0]
            variance += _others(model, name, what) * _if_alone(joint, alone, between, records)
    return variance


def _if_alone(joint: Array, alone: Array, between: Array, records: float) -> Array:
    """Of a level that has next to nothing of its group."""
    rest = np.clip(1 - joint / np.maximum(alone, 1e-300), 0.0, 1.0)
    return np.asarray(joint * rest / max(records, 1.0) + alone**2 * between)


def _between(joint: Array, alone: Array, axis: int) -> Array:
    """τ²: how far what is said of the other columns differs from group to group."""
    apart = joint / np.maximum(alone, 1e-300) - joint.sum(axis=axis, keepdims=True)
    return np.asarray((alone * apart**2).sum(axis=axis, keepdims=True))


def told_apart_alike(model: Model, free: Iterable[str], held: Mapping[str, object], *, room: bool) -> str:
    """In words, where an answer is about levels that were taken together and about other columns as well; ``room``:
    whether its interval has room for that, which probabilities have alone."""
    columns = {*free, *held}
    if not isinstance(model, GroupedField) or len(columns) < 2:
        return ""
    concerned = [n for n in model.groups if n in columns and (n not in held or _others(model, n, held[n]) > _ALONE)]
    if not concerned:
        return ""
    known = "± makes room for as much as groups differ from each other" if room else "the answer does not allow for it"
    return (
        f"levels of {' and '.join(concerned)} with few records were taken together: how those of one group differ in "
        f"other columns is not known, and {known}"
    )


def _others(model: GroupedField, name: str, what: object) -> float:
    """The part of the groups of what a column is held at that other levels have."""
    codes, alone = np.asarray(model.groups[name].codes), model.marginal((name,)).probabilities
    evidence = evidence_of(model, {name: what})
    chosen = evidence.weights[name] if name in evidence.weights else np.arange(len(codes)) == evidence.codes[name]
    held, groups = np.bincount(codes, alone * chosen), np.bincount(codes, alone)
    return float(held @ np.clip(1 - held / np.maximum(groups, 1e-300), 0.0, 1.0) / max(float(held.sum()), 1e-300))
