"""Rows of which some values are known, completed: what is absent is drawn given what is there, exactly.

Rows with the same known values are one question to the engine, and many such questions are one batch, so that the work
follows the number of different ones. The rows must be public: what comes out repeats what is known of them.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..attribute import NEAREST
from ..conditions import Condition
from ..domain import Attribute, level_text
from ..encoding import Unreadable, as_list, columns_of, encode_column
from ..errors import EvidenceError, InputError
from ..inference.exact import get_engine
from ..language import conditions
from ..spelling import number_or_nan
from .distribution import Distribution
from .encoding import code_type
from .evidence import Evidence, evidence_of
from .records import COMPLETED, RandomState, Records, generator, origin_of
from .rules import Said, has_sums, lawful
from .values import has_numbers

_CELLS = 1 << 24
"""Of all tables of a batch of questions."""
_MARK = "\0"
_DAY = 86_400_000_000


@dataclass(frozen=True)
class _Column:
    """A column of the rows: its codes, −1 where it is absent, and its numbers, NaN where there is none."""

    codes: NDArray[np.int64]
    numbers: NDArray[np.float64] | None

    def at(self, rows: NDArray[np.intp]) -> _Column:
        return _Column(self.codes[rows], None if self.numbers is None else self.numbers[rows])


def complete(
    model: Distribution, rows: Any, random_state: RandomState, where: str | None, known: bool, labels: bool, limit: int
) -> Records:
    domain = model.domain
    names = _names(model, rows)
    values = columns_of(rows, names)
    columns = {name: _column(values[name], domain[name]) for name in names}
    wanted = evidence_of(model, {**(_not_missing(model) if known else {}), **_said(model, where)})
    rng = generator(random_state)
    said, how = origin_of(model.card), "given what is known of each row"
    origin = COMPLETED if said in ("release", "public", "claimed") else said

    def drawn(rows: Mapping[str, _Column]) -> Records:
        records = Records(domain, _drawn(model, rows, wanted, rng, limit), method="exact", reason=how, origin=origin)
        if labels and not has_sums(domain):
            return records
        records = records.with_numbers(rng, model.density, wanted.conditions)
        numbers = dict(records.numbers)
        for name, column in rows.items():
            if column.numbers is not None:
                numbers[name] = np.where(np.isnan(column.numbers), numbers[name], column.numbers)
        return replace(records, numbers=numbers)

    def again(broken: NDArray[np.intp]) -> Records:
        return drawn({name: column.at(broken) for name, column in columns.items()})

    levels = {name: column.codes >= 0 for name, column in columns.items()}
    numbers = {name: ~np.isnan(column.numbers) for name, column in columns.items() if column.numbers is not None}
    records = lawful(drawn(columns), again, Said(levels, numbers, wanted.conditions))
    return replace(records, numbers={}) if labels else records


def _said(model: Distribution, where: str | None) -> dict[str, Condition]:
    """What is wanted of values that are drawn; a level is a condition as others are, since rows may have it given."""
    said = {} if where is None else conditions(where, model.domain)
    return {
        name: c if isinstance(c, Condition) else Condition(name, f"{name}={c}", frozenset({model.domain[name].code(c)}))
        for name, c in said.items()
    }


def _not_missing(model: Distribution) -> dict[str, Condition]:
    """No missing value in columns that can have one, and others, too."""
    out = {}
    for a in model.domain.attributes:
        if a.missing is not None and a.size > 1:
            out[a.name] = Condition(a.name, f"known({a.name})", frozenset(range(a.size)) - {a.codes[a.missing]})
    return out


def _names(model: Distribution, rows: Any) -> list[str]:
    """The columns of the rows that the model knows."""
    if not isinstance(rows, Mapping):
        import narwhals as nw  # commands that have no frame start without it

        try:
            rows = nw.from_native(rows, eager_only=True).columns
        except TypeError:
            raise InputError("rows are a pandas, polars or Arrow frame, or a mapping from columns to lists") from None
    names = [name for name in model.domain if name in rows]
    if not names:
        raise InputError(f"the rows have no column of the model; it has {list(model.domain.names)[:20]}")
    return names


def _column(values: Any, attribute: Attribute) -> _Column:
    """Absent values are what is to be drawn; a value that the schema does not foresee is an error."""
    missing, other = attribute.missing or _MARK + "absent", attribute.other
    marked = replace(attribute, missing=missing)
    if other is None and attribute.outside != NEAREST:
        other = _MARK + "outside"
        marked = replace(attribute, missing=missing, other=other, outside=other)
    codes = encode_column(values, marked).astype(np.int64)
    is_absent = codes == marked.codes[missing]
    if other is not None:
        is_outside = codes == marked.codes[other]
        if attribute.other is None and np.any(is_outside):
            row = int(np.flatnonzero(is_outside)[0])
            raise InputError(
                f"row {row + 1}: column {attribute.name!r} has no level {_shown(as_list(values)[row])}; leave the "
                "field empty to have it drawn"
            )
        codes[is_outside] = attribute.codes.get(other, 0)
    codes[is_absent] = -1
    numbers = _numbers(values, attribute) if has_numbers(attribute) else None
    if numbers is not None:
        numbers[is_absent] = np.nan
    return _Column(codes, numbers)


def _numbers(values: Any, attribute: Attribute) -> NDArray[np.float64]:
    """The numbers as they are given, or the days since 1970; NaN for what is none."""
    seen: dict[Any, float] = {}
    items = [
        item if isinstance(item, Hashable) and not isinstance(item, Unreadable) else None for item in as_list(values)
    ]
    for item in items:
        if item not in seen:
            moment = attribute.dates.moment(item) if attribute.dates is not None else None
            number = number_or_nan(level_text(item)) if attribute.dates is None and item is not None else np.nan
            seen[item] = moment / _DAY if moment is not None else number
    return np.array([seen[item] for item in items], dtype=np.float64)


def _shown(value: Any) -> str:
    return "that cannot be read" if isinstance(value, Unreadable) else repr(level_text(value)[:200])


def _drawn(
    model: Distribution,
    known: Mapping[str, _Column],
    wanted: Evidence,
    rng: np.random.Generator,
    limit: int,
) -> NDArray[Any]:
    domain = model.domain
    model.forecast.check(limit)
    potentials = wanted.on(model.compact)
    engine = get_engine(potentials.domain, potentials.cliques, memory_limit=limit)
    given = np.stack([column.codes for column in known.values()], axis=1)
    cases, which = np.unique(given, axis=0, return_inverse=True)
    which = which.reshape(-1)
    order = np.argsort(which, kind="stable")
    ends = np.searchsorted(which[order], np.arange(len(cases) + 1))
    out = np.empty((len(given), len(domain)), dtype=code_type(domain))
    size = max(1, _CELLS // max(engine.forecast.total_cells, 1))
    for start in range(0, len(cases), size):
        some = cases[start : start + size]
        evidence = {name: some[:, j] for j, name in enumerate(known)}
        beliefs = engine.calibrate(potentials, evidence, allow_impossible=True)
        impossible = np.flatnonzero(np.isneginf(beliefs.log_partition))
        if len(impossible):
            _refuse(model, known, int(order[ends[start + impossible[0]]]), wanted)
        rows = order[ends[start] : ends[min(start + size, len(cases))]]
        out[rows] = beliefs.sample_each(which[rows] - start, rng)[:, : len(domain)]
    return out


def _refuse(model: Distribution, known: Mapping[str, _Column], row: int, wanted: Evidence) -> None:
    said = [f"{n}={model.domain[n].labels[c.codes[row]]}" for n, c in known.items() if c.codes[row] >= 0]
    said += [condition.text for condition in wanted.conditions.values()]
    raise EvidenceError(f"row {row + 1}: {', '.join(said)} has probability 0 under the model; change a value of it")
