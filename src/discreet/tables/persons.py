"""Whose row it is: a person is what their identifier spells. Curator-side."""

from __future__ import annotations

import hashlib
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..domain import level_text
from ..encoding import as_list
from .memory import Persons


def persons_of(values: Any) -> tuple[NDArray[np.int64], Persons]:
    """Rows that have a person, and who that is: a person is what their identifier spells, so 1 and "1" are one.

    Rows without one are left out (see PrivacyUnit).
    """
    digests = list(map(digest_of, as_list(values)))
    kept = np.flatnonzero(np.fromiter((d is not None for d in digests), dtype=bool, count=len(digests)))
    present = np.frombuffer(b"".join(d for d in digests if d is not None), dtype="<u8").reshape(-1, 2)
    identity, owner = np.unique(present, axis=0, return_inverse=True)
    return kept, Persons(owner.reshape(-1).astype(np.int64), identity.astype(np.uint64))


def digest_of(person: Any) -> bytes | None:
    """128 bits of identity: a digest of what the identifier spells. None, nobody, for one that cannot be spelled:
    strangers that share a spelling would be one unit, and one of them could choose which rows of the others count.
    """
    spelling = None if person is None else _spelling(person)
    return None if spelling is None else hashlib.blake2b(spelling, digest_size=16).digest()


def _spelling(person: Any) -> bytes | None:
    try:
        if isinstance(person, float | Decimal) and person == int(person):
            person = int(person)  # frames turn whole numbers with gaps into floats, databases into decimals
        return level_text(person).encode("utf-8", "surrogatepass")
    except Exception:  # spelling runs code of the value's own, which may raise anything
        return None
