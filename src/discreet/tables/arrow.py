"""From Arrow columns to codes: what :func:`~discreet.encoding.encode_column` gives, value by value, only faster.

A code depends on its value alone. So equal values are encoded once, wherever that is quicker: by a dictionary of the
batch, or by looking up the few texts that spell a level. Parquet and Spark both come this way, so they agree;
texts of delimited files are encoded in the same spirit (texts.py).
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..domain import Attribute
from ..encoding import Codes, Hashed, as_list, code_type, encode_column, is_series, unlisted_text
from .delimited import is_unicode
from .texts import Identities, identities_of

_FEW = 256
"""Texts that are encoded one by one. To make an array of the texts of all levels, pyarrow imports pandas."""


@lru_cache(maxsize=4096)
def spellings(attribute: Attribute) -> tuple[str, ...]:
    """The texts that spell a level of a column of categories. Every other text has one code in common."""
    forms = ["True", "TRUE", "False", "FALSE"] if attribute.levels and isinstance(attribute.levels[0], bool) else []
    return tuple(
        text for text in dict.fromkeys([*attribute.codes, *attribute.missing_values, *forms]) if is_unicode(text)
    )


@lru_cache(maxsize=4096)
def spelling_codes(attribute: Attribute) -> Codes:
    """Codes of :func:`spellings`, then that of an absent value, then that of any other text."""
    known = spellings(attribute)
    stranger = "?"
    while stranger in known:
        stranger += "?"
    return encode_column([*known, None, stranger], attribute)


def _few_spellings(kind: Any, attribute: Attribute) -> bool:
    """Whether these are texts of which :func:`spellings` lists all that spell a level."""
    if (
        isinstance(attribute, Hashed)
        or attribute.is_numeric
        or attribute.dates is not None
        or attribute.strip
        or attribute.ignore_case
    ):
        return False
    return is_text(kind)


def is_text(kind: Any) -> bool:
    import pyarrow as pa

    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def texts_of(values: Any) -> list[Any] | None:
    """A column of a frame as Arrow arrays, where its declared type holds nothing but texts; None for all others. (What
    pandas calls objects, which may be anything, it declares to be texts when it has looked at all of them.)"""
    if not is_series(values) or not _declared_texts(values):
        return None
    try:
        import pyarrow as pa

        found = values.to_arrow()
    except Exception:  # no Arrow, or a text that is not Unicode: then value by value, with the same codes
        return None
    chunks = found.chunks if isinstance(found, pa.ChunkedArray) else [found]
    return chunks if chunks and all(is_text(chunk.type) for chunk in chunks) else None


def _declared_texts(series: Any) -> bool:
    if str(getattr(series.to_native(), "dtype", "")) == "object":
        return False
    import narwhals as nw

    return bool(series.dtype == nw.String)


@dataclass(frozen=True, eq=False, repr=False)
class ArrowColumn:
    """An Arrow array with what :class:`~discreet.tables.texts.Texts` can do."""

    values: Any

    def __len__(self) -> int:
        return len(self.values)

    def codes(self, attribute: Attribute) -> Codes:
        return encode_arrow(self.values, attribute)

    def identities(self) -> Identities:
        return identities(self.values)

    def among(self, attribute: Hashed, numbers: Container[int]) -> dict[int, str]:
        return texts_among(self.values, attribute, numbers)

    def to_list(self) -> list[Any]:
        return arrow_list(self.values)


def encode_arrow(values: Any, attribute: Attribute) -> Codes:
    """Codes of an Arrow array."""
    import pyarrow as pa

    kind = values.type
    if isinstance(attribute, Hashed) and not pa.types.is_dictionary(kind):
        return _by_dictionary(_dictionary(values), attribute)
    if pa.types.is_dictionary(kind):
        return _by_dictionary(values, attribute)
    import pyarrow.compute as pc  # slow to import, and texts by number are encoded without it

    if pa.types.is_string_view(kind):
        return encode_arrow(values.cast(pa.large_string()), attribute)
    if pa.types.is_integer(kind) and len(values) and not values.null_count:
        return encode_column(_whole_numbers(values), attribute)
    if pa.types.is_integer(kind) or (pa.types.is_floating(kind) and attribute.is_numeric):
        if not values.null_count:
            return encode_column(values.to_numpy(zero_copy_only=False), attribute)
        codes = encode_column(pc.fill_null(values, pa.scalar(0, kind)).to_numpy(zero_copy_only=False), attribute)
        return np.where(_is_null(values), encode_column([None], attribute), codes)
    if _few_spellings(kind, attribute):
        known = pa.array(spellings(attribute), type=kind)
        place = pc.index_in(values, value_set=known)
        index = np.asarray(pc.fill_null(place, len(known) + 1).to_numpy(zero_copy_only=False))
        if values.null_count:
            index = np.where(_is_null(values), len(known), index)
        codes = spelling_codes(attribute)
        return np.take(codes, index)
    try:
        return _by_dictionary(values.dictionary_encode(), attribute)
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):  # nested values, and others that have no hash
        return encode_column(_series(values), attribute)


def identities(values: Any) -> Identities:
    """Which rows have a person (None: all), and 128 bits of identity for each of those, as two rows of words."""
    import pyarrow as pa

    try:
        encoded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
        index, dictionary = encoded.indices, encoded.dictionary
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        index, dictionary = pa.array(range(len(values))), values
    return identities_of([*arrow_list(dictionary), None], _numbers(index, len(dictionary)))


def texts_among(values: Any, attribute: Hashed, numbers: Container[int]) -> dict[int, str]:
    """Which of these numbers the texts of an Arrow array have, with the texts."""
    distinct = _dictionary(values).dictionary
    return attribute.among({unlisted_text(v, attribute) for v in arrow_list(distinct)}, numbers)


def arrow_list(values: Any) -> list[Any]:
    """An Arrow array as Python values, with None for every kind of null."""
    return as_list(_series(values))


def _dictionary(values: Any) -> Any:
    """An array with its values by number; those that have no hash are no texts, and are one absent value."""
    import pyarrow as pa

    if pa.types.is_dictionary(values.type):
        return values
    try:
        return values.dictionary_encode()
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid):
        return pa.array([None] * len(values), pa.string()).dictionary_encode()


def _by_dictionary(values: Any, attribute: Attribute) -> Codes:
    size = len(values.dictionary)
    codes = np.empty(size + 1, dtype=code_type(attribute.size))
    texts = _few_spellings(values.type.value_type, attribute)
    distinct = values.dictionary
    if texts and size <= _FEW:
        codes[:size] = _by_bytes(distinct, attribute)
    else:
        codes[:size] = encode_arrow(distinct, attribute) if texts else encode_column(_series(distinct), attribute)
    codes[size] = encode_column([None], attribute)[0]
    return np.take(codes, _numbers(values.indices, size))


def _by_bytes(texts: Any, attribute: Attribute) -> Codes:
    """Codes of a few texts, which may be no Unicode, of a column where :func:`_few_spellings` holds."""
    import pyarrow as pa

    known = [*(text.encode() for text in spellings(attribute)), None]
    place = {text: i for i, text in enumerate(known)}
    as_bytes = texts.view(pa.large_binary() if pa.types.is_large_string(texts.type) else pa.binary())
    return np.take(spelling_codes(attribute), [place.get(text, len(known)) for text in as_bytes.to_pylist()])


def _numbers(index: Any, null: int) -> NDArray[np.integer[Any]]:
    """The indices of a dictionary, with a number for those that are absent."""
    if index.null_count:
        import pyarrow as pa
        import pyarrow.compute as pc

        index = pc.fill_null(index.cast(pa.int64()), null)
    return _whole_numbers(index)


def _whole_numbers(values: Any) -> NDArray[np.integer[Any]]:
    """Those of an Arrow array without nulls. (To convert any array at all, pyarrow imports pandas.)"""
    dtype = np.dtype(str(values.type))
    return np.frombuffer(values.buffers()[1], dtype, len(values), values.offset * dtype.itemsize)


def _series(values: Any) -> Any:
    import narwhals as nw  # files of text are read without it
    import pyarrow as pa

    return nw.from_native(pa.chunked_array([values]), series_only=True)


def _is_null(values: Any) -> NDArray[np.bool_]:
    return np.asarray(values.is_null().to_numpy(zero_copy_only=False))
