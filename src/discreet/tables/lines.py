"""Bytes of delimited text as records, each read by itself: what one holds never changes how another is read.

A line ends as the header line ends, and nowhere else. A record is a line, or several when a quoted field holds line
ends. The same bytes may be one record whose text spans lines, or many records two of which have a stray quote; no
reader can be right about both. So that is decided by what is public:

- As a rule, text that is valid (RFC 4180) is read as valid: a field that is opened by a quote runs over line ends if
  thereby the record comes to a valid end with as many fields as there are columns, however far away. So records of
  any text, written by any sound writer, are rows one to one. If it does not, the quote was a stray one, and the end of
  its line closes it.
- With ``row_is_line``, a record is a line whatever its quotes are. So lines of any text are rows one to one.

Every record has a reading; nothing fails on what it holds. Most records are *plain*: a line with as many fields as
there are columns, in which every quote is where the rules want it. They are read many at a time; the others, found
here, one by one in Python.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import IO, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .texts import Spans, Texts

LONGEST = 1 << 24  # bytes of a record; a longer one is not counted
CHUNK = 1 << 22
_QUOTE = b'"'
_BLANKS = re.compile(rb" *")

Bytes = NDArray[np.uint8]
Places = NDArray[np.int64]


@dataclass(frozen=True)
class Form:
    """All that decides how records are read. Public: it follows from the header line and from what the caller said."""

    columns: int
    delimiter: bytes
    line_end: bytes = b"\n"
    row_is_line: bool = False


class Piece(NamedTuple):
    """Some records: plain ones, a line each, and any others one by one. Those ``too_long`` are not counted."""

    plain: bytes
    rows: int
    odd: list[bytes]
    too_long: int = 0


class Fields(NamedTuple):
    """A record as it is read, and in what its quotes are not as they should be."""

    values: list[bytes]
    left_open: bool = False
    stray: bool = False


def pieces(opened: Callable[[int], AbstractContextManager[IO[bytes]]], form: Form) -> Iterator[Piece]:
    """The records of a stream, which is ``opened`` at any number of bytes behind the header line."""
    with opened(0) as stream:
        buffer, at, stray, final = b"", 0, -1, False
        while not final:
            chunk = stream.read(CHUNK)
            final = not chunk
            buffer += chunk
            piece, used = _split(buffer, form, final, stray - at)
            yield piece
            buffer, at = buffer[used:], at + used
            if final or len(buffer) <= LONGEST + 1:
                continue
            # The record that is open is too long, if it is one: to hold it is not possible, to look ahead is.
            end = None
            if stray != at and not form.row_is_line:
                with opened(at) as ahead:
                    end = _far_end(ahead, form)
            if end is None and form.line_end in buffer:
                stray = at
                continue
            yield Piece(b"", 0, [], 1)
            buffer, skipped = _behind(stream, buffer, form.line_end, 0 if end is None else end)
            at += skipped


def batch_of(piece: Piece, form: Form, columns: Sequence[int]) -> list[Texts]:
    """The fields of some columns; an empty field is absent. A record with one that is not UTF-8 in these columns is
    left out.
    """
    odd = _odd_fields(piece.odd, form, columns)
    if not piece.rows:
        return odd
    return [plain.with_more(more) for plain, more in zip(_plain_fields(piece, form, columns), odd, strict=True)]


def fields_of(record: bytes, form: Form) -> Fields:
    """The fields of a record. Total: a quote that is not closed is closed by the end, what follows a closing quote is
    part of the field, and a quote inside of a field is a character like others. Blanks around quotes are dropped.
    """
    if _QUOTE not in record:
        return Fields(record.split(form.delimiter))
    values: list[bytes] = []
    i, stray = 0, False
    while True:
        start = _past_blanks(record, i, form)
        if record.startswith(_QUOTE, start):
            close = _closing(record, start + 1, len(record), ended=True)
            if close < 0:
                values.append(record[start + 1 :].replace(b'""', _QUOTE))
                return Fields(values, True, stray)
            end = record.find(form.delimiter, close + 1)
            rest = record[close + 1 : len(record) if end < 0 else end]
            after = rest if rest.strip(b" ") else b""
            values.append(record[start + 1 : close].replace(b'""', _QUOTE) + after)
            stray = stray or bool(after)
        else:
            end = record.find(form.delimiter, i)
            values.append(record[i : len(record) if end < 0 else end])
        if end < 0:
            return Fields(values, False, stray)
        i = end + 1


# -- which lines are plain ---------------------------------------------------------------------------------------------


def _split(buffer: bytes, form: Form, final: bool, stray: int = -1) -> tuple[Piece, int]:
    """The records that are complete, and how many bytes they take. ``final``: no more bytes will come. ``stray``: where
    a line starts that is known to be a record by itself.
    """
    a = np.frombuffer(buffer, dtype=np.uint8)
    starts, ends, after = _lines(a, form, final)
    if not len(starts):
        return Piece(b"", 0, []), 0
    a = a[: after[-1]]
    unsound, inner = _unsound(a, starts, ends, form)
    separators = np.add.reduceat(a == form.delimiter[0], starts, dtype=np.int64) - inner
    odd = unsound | (separators != form.columns - 1)
    odd[_line_of(_strange_line_ends(a, form), starts)] = True
    odd |= ends - starts > LONGEST
    blank = (ends == starts) & (form.columns > 1)
    unsound &= starts != stray
    records, taken, cut = _odd_records(buffer, starts, ends, np.flatnonzero(odd & ~blank), unsound, form, final)
    too_long = sum(len(record) > LONGEST for record in records)
    records = [record for record in records if len(record) <= LONGEST]
    plain = ~(odd | blank | taken)
    plain[cut:] = False
    used = int(after[cut - 1]) if cut else 0
    text = _joined(buffer, a, starts, after, plain, used)
    if not is_utf8(text):
        for i in np.flatnonzero(plain & (np.maximum.reduceat(a, starts) >= 0x80)).tolist():
            if not is_utf8(line := buffer[starts[i] : ends[i]]):
                plain[i] = False
                records.append(line)
        text = _joined(buffer, a, starts, after, plain, used)
    return Piece(text, int(plain.sum()), records, too_long), used


def _lines(a: Bytes, form: Form, final: bool) -> tuple[Places, Places, Places]:
    """Where lines start, where they end, and where the next one starts."""
    feed = np.flatnonzero(a == ord("\n"))
    if form.line_end == b"\r\n":
        feed = feed[(feed > 0) & (a[feed - 1] == ord("\r"))]
    after = feed + 1
    if final and len(a) > (after[-1] if len(after) else 0):
        after = np.append(after, len(a))
    starts = np.concatenate([[0], after[:-1]]).astype(np.int64)[: len(after)]
    ends = after.copy()
    ends[: len(feed)] -= len(form.line_end)
    return starts, ends, after


def _strange_line_ends(a: Bytes, form: Form) -> Places:
    """Characters that other readers take for the end of a line, and that are none here."""
    returns = np.flatnonzero(a == ord("\r"))
    if form.line_end == b"\n":
        return returns
    feeds = np.flatnonzero(a == ord("\n"))
    return np.setxor1d(returns + 1, feeds, assume_unique=True).clip(0, max(len(a) - 1, 0))


def _unsound(a: Bytes, starts: Places, ends: Places, form: Form) -> tuple[NDArray[np.bool_], Places]:
    """Lines in which some quote does not open a field, close one, or stand doubled in one; and for the others, how many
    delimiters stand in quotes.
    """
    inner = np.zeros(len(starts), dtype=np.int64)
    quotes = np.flatnonzero(a == ord('"'))
    if not len(quotes):
        return inner > 0, inner
    count = np.diff(np.searchsorted(quotes, starts), append=len(quotes))
    unsound = (count & 1).astype(bool)
    if unsound.any():
        quotes = quotes[~np.repeat(unsound, count)]
    # Now every line has an even number of them: they open and close in turn. A doubled one closes and opens again.
    opens, closes = quotes[::2], quotes[1::2]
    is_delimiter = a == form.delimiter[0]
    may_open, may_close = np.zeros(len(a) + 1, dtype=bool), np.zeros(len(a) + 1, dtype=bool)
    may_open[1:], may_close[: len(a) - 1] = is_delimiter, is_delimiter[1:]
    may_open[starts], may_close[ends - 1] = True, True  # in an empty first line, that is the place behind the last byte
    opens_well, closes_well = may_open[opens], may_close[closes]
    doubled = opens[1:] == closes[:-1] + 1
    opens_well[1:] |= doubled
    closes_well[:-1] |= doubled
    unsound[_line_of(np.concatenate([opens[~opens_well], closes[~closes_well]]), starts)] = True
    if len(quotes):
        within = np.add.reduceat(is_delimiter, quotes, dtype=np.int64)[::2]
        np.add.at(inner, _line_of(opens[within > 0], starts), within[within > 0])
    return unsound, inner


def _line_of(places: Places, starts: Places) -> Places:
    return np.searchsorted(starts, places, side="right") - 1


def _odd_records(
    buffer: bytes, starts: Places, ends: Places, odd: Places, unsound: NDArray[np.bool_], form: Form, final: bool
) -> tuple[list[bytes], NDArray[np.bool_], int]:
    """The records that begin with odd lines, the lines that belong to them, and the line from which on more bytes are
    needed to tell.
    """
    records: list[bytes] = []
    taken = np.zeros(len(starts), dtype=bool)
    upto = 0
    for i in odd.tolist():
        start, end = int(starts[i]), int(ends[i])
        if start < upto:
            continue
        if unsound[i] and not form.row_is_line and fields_of(buffer[start:end], form).left_open:
            found = _end_of_record(buffer, _Place(start), form, final)
            if isinstance(found, _Place):
                return records, taken, i
            if found is not None:
                end = found
                taken[i : np.searchsorted(starts, end)] = True
        records.append(buffer[start:end])
        upto = end
    return records, taken, len(starts)


# -- records that span lines -------------------------------------------------------------------------------------------


class _Place(NamedTuple):
    """Where a look at a record has come to: in which column, and in what part of a field."""

    at: int
    column: int = 1
    part: Literal["start", "plain", "quoted", "closed"] = "start"


def _end_of_record(buffer: bytes, place: _Place, form: Form, final: bool) -> int | _Place | None:
    """Where a valid record ends: all fields there, and each either in quotes or without any. None: it is not valid.
    A place: more bytes are needed to tell.
    """
    stop = len(buffer)
    i, column, part = place
    while True:
        if part == "start":
            i = _past_blanks(buffer, i, form)
            if i == stop and not final:
                return _Place(i, column)
            part = "quoted" if buffer.startswith(_QUOTE, i) else "plain"
            i += part == "quoted"
        if part == "quoted":
            close = _closing(buffer, i, stop, ended=final)
            if close < 0:
                return None if final else _Place(~close, column, part)
            i, part = close + 1, "closed"
        if part == "closed":
            i = _past_blanks(buffer, i, form)
        else:
            marks = [at for mark in (form.delimiter, form.line_end) if (at := buffer.find(mark, i)) >= 0]
            half = form.line_end == b"\r\n" and buffer.endswith(b"\r")  # of a line end, or a character of the field
            end = min(marks, default=stop - (half and not final))
            if buffer.find(_QUOTE, i, end) >= 0:
                return None
            if not marks and not final:
                return _Place(end, column, part)
            i = end
        last = column == form.columns
        if last and final and i == stop:
            return i
        mark = form.line_end if last else form.delimiter
        if not final and i + len(mark) > stop:
            return _Place(i, column, part)
        if not buffer.startswith(mark, i):
            return None
        if last:
            return i
        i, column, part = i + len(mark), column + 1, "start"


def _far_end(stream: IO[bytes], form: Form) -> int | None:
    """Where a valid record ends that may be too long to hold; None: it is not valid."""
    buffer, behind = b"", 0
    found: int | _Place | None = _Place(0)
    while isinstance(found, _Place):
        buffer, behind, found = buffer[found.at :], behind + found.at, found._replace(at=0)
        buffer += (chunk := stream.read(CHUNK))
        found = _end_of_record(buffer, found, form, not chunk)
    return None if found is None else behind + found


def _behind(stream: IO[bytes], buffer: bytes, line_end: bytes, least: int) -> tuple[bytes, int]:
    """What comes behind the first line end that starts ``least`` or more bytes from here, and how far from here."""
    passed = 0
    while (found := buffer.find(line_end, max(least - passed, 0))) < 0:
        chunk = stream.read(CHUNK)
        if not chunk:
            return b"", passed + len(buffer)
        buffer, passed = buffer[-1:] + chunk, passed + len(buffer[:-1])  # the last byte may be half of a line end
    found += len(line_end)
    return buffer[found:], passed + found


def _closing(text: bytes, i: int, stop: int, *, ended: bool) -> int:
    """The next quote that is not doubled; or ~ the place, which is negative, from where on more bytes have to tell."""
    while (found := text.find(_QUOTE, i, stop)) >= 0:
        if found + 1 == stop:
            return found if ended else ~found
        if not text.startswith(_QUOTE, found + 1):
            return found
        i = found + 2
    return ~max(i, stop)


def _past_blanks(text: bytes, i: int, form: Form) -> int:
    if form.delimiter == b" ":
        return i
    return next(_BLANKS.finditer(text, i)).end()


# -- fields as texts ---------------------------------------------------------------------------------------------------


def _plain_fields(piece: Piece, form: Form, columns: Sequence[int]) -> list[Texts]:
    """Plain records, all at once: outside of quotes, every delimiter and every line end is the end of a field."""
    text = piece.plain if piece.plain.endswith(form.line_end) else piece.plain + form.line_end
    a = np.frombuffer(text, dtype=np.uint8)
    marks = np.flatnonzero((a == form.delimiter[0]) | (a == ord("\n")))
    if quoted := _QUOTE in text:
        before = np.cumsum((a == ord('"')).view(np.uint8), dtype=np.uint8)  # odd or even is all that counts
        marks = marks[before[marks] & 1 == 0]
    grid = marks.reshape(piece.rows, form.columns)
    lines = np.concatenate([[0], grid[:-1, -1] + 1])
    spans = Spans(text, quoted=quoted)
    found = []
    for i in columns:
        starts = grid[:, i - 1] + 1 if i else lines
        ends = grid[:, i] - (len(form.line_end) - 1 if i == form.columns - 1 else 0)
        found.append(spans.texts(starts, ends))
    return found


def _odd_fields(records: Iterable[bytes], form: Form, columns: Sequence[int]) -> list[Texts]:
    chosen: list[list[str | None]] = []
    for record in records:
        values = fields_of(record, form).values
        try:
            chosen.append([values[i].decode("utf-8") or None if i < len(values) else None for i in columns])
        except UnicodeDecodeError:
            continue
    return [Texts.of(row[i] for row in chosen) for i in range(len(columns))]


def _joined(buffer: bytes, a: Bytes, starts: Places, after: Places, chosen: NDArray[np.bool_], used: int) -> bytes:
    if chosen.all():
        return buffer[:used]
    return a[np.repeat(chosen, after - starts)].tobytes()


def is_utf8(text: bytes) -> bool:
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True
