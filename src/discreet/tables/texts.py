"""A column of texts as numbers among its distinct ones: what a value becomes is worked out once for each of those.

The fields of many records are told apart at once, by the 64-bit words that they consist of. Words choose a place in a
small table, and whoever comes there last stands for all who have the very same words; the others, few unless a column
has very many texts, are told apart in Python. So the outcome never rests on a hash: equal means equal byte for byte.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..domain import Attribute
from ..encoding import Codes, Hashed, encode_column, unlisted_text
from ..extras import needed
from .persons import digest_of

_WORD = 8
_LONG = 4 * _WORD  # longer fields are told apart in Python: one of them must not make all others slow
_SPREAD = np.uint64(0x9E3779B97F4A7C15)  # odd, and its bits look random
_ENDS = np.array([(1 << 8 * n) - 1 for n in range(_WORD + 1)], dtype=np.uint64)

Identities = tuple[NDArray[np.bool_] | None, NDArray[np.uint64]]


@dataclass(frozen=True, eq=False, repr=False)
class Texts:
    """Row i holds ``distinct[index[i]]``, a text, or None for an absent one. A text may have more than one number."""

    index: NDArray[np.int64]
    distinct: list[str | None]

    def __len__(self) -> int:
        return len(self.index)

    def __repr__(self) -> str:
        return "Texts()"

    @classmethod
    def of(cls, values: Iterable[str | None]) -> Texts:
        numbers: dict[str | None, int] = {}
        index = np.fromiter((numbers.setdefault(v, len(numbers)) for v in values), np.int64)
        return cls(index, list(numbers))

    def with_more(self, other: Texts) -> Texts:
        """These rows, then those."""
        if not len(other):
            return self
        index = np.concatenate([self.index, other.index + len(self.distinct)])
        return Texts(index, self.distinct + other.distinct)

    def codes(self, attribute: Attribute) -> Codes:
        return np.take(encode_column(self.distinct, attribute), self.index)

    def identities(self) -> Identities:
        """Which rows have a person (None: all), and 128 bits of identity for each of those, as two rows of words."""
        return identities_of(self.distinct, self.index)

    def among(self, attribute: Hashed, numbers: Container[int]) -> dict[int, str]:
        """Which of these numbers the texts have, with the texts."""
        return attribute.among({unlisted_text(v, attribute) for v in self.distinct}, numbers)

    def to_list(self) -> list[str | None]:
        return [self.distinct[i] for i in self.index.tolist()]

    def to_arrow(self) -> Any:
        pa = needed("pyarrow", "handing rows to DuckDB or Spark", "discreet[files]")
        return pa.array(self.distinct, pa.string()).take(pa.array(self.index))


def identities_of(distinct: Sequence[Any], index: NDArray[np.integer[Any]]) -> Identities:
    """As :meth:`Texts.identities`, of values of any type."""
    digests = [digest_of(value) for value in distinct]
    if not digests:
        return np.zeros(len(index), dtype=bool), np.empty((2, 0), dtype=np.uint64)
    known = np.array([digest is not None for digest in digests])
    words = np.frombuffer(b"".join(d or bytes(16) for d in digests), dtype="<u8").astype(np.uint64).reshape(-1, 2)
    kept = known[index]
    if kept.all():
        return None, np.ascontiguousarray(words[index].T)
    return kept, np.ascontiguousarray(words[index[kept]].T)


class Spans:
    """Bytes, valid UTF-8, of which pieces are fields. ``quoted``: one that begins with a quote is in quotes."""

    def __init__(self, text: bytes, *, quoted: bool = False) -> None:
        self._text: str | bytes = text.decode() if text.isascii() else text  # of ASCII, places are the same
        self._quoted = quoted
        self._words: NDArray[np.uint64] = np.ndarray((len(text) + _LONG - _WORD,), "<u8", text + bytes(_LONG), 0, (1,))

    def texts(self, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> Texts:
        """The fields that start and end there."""
        length = ends - starts
        short = np.flatnonzero(length <= _LONG)
        length = length[short]
        words = self._words_of(starts[short], length)
        bits = min(max(len(short).bit_length() - 3, 8), 14)
        place = (_spread(words) >> np.uint64(64 - bits)).astype(np.int64)
        stands_there = np.full(1 << bits, -1)
        stands_there[place] = np.arange(len(short))
        other = stands_there[place]
        alike = length == length[other]
        for word in words:
            alike &= word == word[other]
        taken = np.flatnonzero(stands_there >= 0)
        chosen = short[stands_there[taken]]
        distinct = self._read(starts[chosen], ends[chosen])
        number = np.empty(1 << bits, dtype=np.int64)
        number[taken] = np.arange(len(taken))
        if len(short) == len(starts) and alike.all():
            return Texts(number[place], distinct)
        index = np.full(len(starts), -1)
        index[short[alike]] = number[place[alike]]
        others = np.flatnonzero(index < 0)
        more = Texts.of(self._read(starts[others], ends[others]))
        index[others] = more.index + len(distinct)
        return Texts(index, distinct + more.distinct)

    def _words_of(self, starts: NDArray[np.int64], length: NDArray[np.int64]) -> list[NDArray[np.uint64]]:
        """The bytes of each field, eight by eight, with nothing but zeros behind its end."""
        words = []
        for at in range(0, max(int(length.max(initial=0)), 1), _WORD):
            left = np.clip(length - at, 0, _WORD) if at else np.minimum(length, _WORD)
            words.append(self._words[starts + at] & _ENDS[left])
        return words

    def _read(self, starts: NDArray[np.int64], ends: NDArray[np.int64]) -> list[str | None]:
        text = self._text
        spans = zip(starts.tolist(), ends.tolist(), strict=True)
        if isinstance(text, str):
            found = [text[start:end] for start, end in spans]
        else:
            found = [text[start:end].decode() for start, end in spans]
        if self._quoted:
            found = [field[1:-1].replace('""', '"') if field.startswith('"') else field for field in found]
        return [field or None for field in found]


def _spread(words: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """A number for each field that differs, as a rule, where the fields do; its high bits choose the place."""
    mixed = words[0] * _SPREAD
    for word in words[1:]:
        mixed = ((mixed ^ (mixed >> np.uint64(29))) + word) * _SPREAD
    return (mixed ^ (mixed >> np.uint64(32))) * _SPREAD
