"""Hard evidence: codes of columns, one set or many at once, turned into tables of 0 and −∞."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from ..domain import Clique, Domain
from ..errors import EvidenceError, InputError
from ..factor import Array

Evidence = Mapping[str, int | npt.NDArray[np.integer[Any]] | Sequence[int]]
"""Codes by column; an array of codes asks one question per entry, and −1 there means *not observed*."""


def evidence_tables(domain: Domain, evidence: Evidence | None) -> dict[Clique, Array]:
    """One log table a column: 0 at the observed code and −∞ elsewhere (all 0 where not observed)."""
    return {(name,): _mask(domain, name, codes) for name, codes in (evidence or {}).items()}


def _mask(domain: Domain, name: str, codes: Any) -> Array:
    size = domain[name].size
    given = np.asarray(codes)
    if given.dtype.kind not in "iu":
        raise InputError(f"evidence is given as codes 0 … {size - 1} of column {name!r}, got {codes!r}")
    lowest = -1 if given.ndim else 0
    if given.size and not (given.min() >= lowest and given.max() < size):
        wrong = given[(given < lowest) | (given >= size)].flat[0]
        raise InputError(f"column {name!r} has codes 0 … {size - 1}, got {wrong}")
    allowed = (given[..., None] == np.arange(size)) | (given[..., None] < 0)
    out: Array = np.where(allowed, 0.0, -np.inf)
    return out


def describe(domain: Domain, evidence: Evidence, entry: tuple[int, ...] = (), batch: tuple[int, ...] = ()) -> str:
    """``smoke=yes, xray=no`` for one entry of a batch; columns that are not observed there are left out."""
    words = []
    for name, codes in evidence.items():
        code = int(np.broadcast_to(np.asarray(codes), batch)[entry])
        if code >= 0:
            words.append(f"{name}={domain[name].labels[code]}")
    return ", ".join(words)


def impossible(domain: Domain, evidence: Evidence | None, log_partition: Any) -> Exception:
    """The error for a total of zero: of the evidence if there is any, of the potentials otherwise."""
    totals = np.asarray(log_partition)
    entry = tuple(int(i) for i in np.argwhere(np.isneginf(totals))[0])
    where = f" (entry {entry if len(entry) > 1 else entry[0]} of the batch)" if entry else ""
    given = describe(domain, evidence, entry, totals.shape) if evidence else ""
    if not given:
        return InputError(
            f"the potentials allow no cell at all{where}: every combination of levels is a structural zero"
        )
    return EvidenceError(
        f"the evidence {given} has probability 0 under the model{where}; leave out or change one of these values"
    )
