"""Dates and times as levels: calendar periods between two public days, hours of the day, days of the week.

A value counts by what its clock shows: a time zone is dropped, not converted. Everything here is public knowledge.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import InputError, SchemaError, did_you_mean

CALENDAR = ("day", "week", "month", "quarter", "year")
CYCLES = ("hour of day", "weekday")
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
MOST_PERIODS = 100_000
KEYS = ("from", "to", "by", "format")
_EPOCH = date(1970, 1, 1).toordinal()
_START = datetime(1970, 1, 1)
_MICROSECOND = timedelta(microseconds=1)
_HOUR, _DAY = 3_600_000_000, 86_400_000_000
_COARSE = ("Y", "M", "W", "D", "h", "m", "s", "ms")
_CLOCK = re.compile(r"%-?[HIMSfTXcrR]")
NOT_A_TIME = int(np.datetime64("NaT", "us").astype(np.int64))
BEYOND = 2**63 - 1
"""In place of moments that 64 bits of microseconds have no room for, some 292,000 years from now; −BEYOND before."""


def moments_of(times: NDArray[np.datetime64]) -> NDArray[np.int64]:
    """Times of any unit in microseconds since 1970. Of those that are too large NumPy would make others, or fail."""
    times = times.astype(times.dtype.newbyteorder("="), copy=False)
    if np.datetime_data(times.dtype)[0] not in _COARSE:
        return times.astype("M8[us]").astype(np.int64)
    most = np.datetime64(BEYOND, "us").astype(times.dtype).astype(np.int64)
    whole = times.astype(np.int64)
    after, before = whole >= most, (whole <= -most) & ~np.isnat(times)
    whole[after | before] = 0
    moments = whole.view(times.dtype).astype("M8[us]").astype(np.int64)
    moments[after], moments[before] = BEYOND, -BEYOND
    return moments


@dataclass(frozen=True)
class Dates:
    """The levels of a column of dates: ``Dates("month", date(2019, 1, 1), date(2024, 12, 31))``.

    ``by`` is one of day, week (from Monday), month, quarter, year, which need a first and a last day; or "hour of day"
    or "weekday", which do not. ``format``: how dates are spelled in text, as for ``strptime``; ISO by default.
    """

    by: str
    first: date | None = None
    last: date | None = None
    format: str = ""

    def __post_init__(self) -> None:
        if self.by not in (*CALENDAR, *CYCLES):
            hint = did_you_mean(str(self.by), (*CALENDAR, *CYCLES))
            known = ", ".join((*CALENDAR, *CYCLES[:-1]))
            raise SchemaError(f"dates: by is one of {known} and {CYCLES[-1]}; got {self.by!r}{hint}")
        if not isinstance(self.format, str):
            raise SchemaError(f"dates: format must be a string such as '%d.%m.%Y', got {self.format!r}")
        if self.by in CYCLES and (self.first is not None or self.last is not None):
            raise SchemaError(f"dates: by = {self.by!r} comes round again and again, and has neither from nor to")
        if self.by in CALENDAR:
            self._check_ends()
        if self.format:
            self._check_format()

    def _check_ends(self) -> None:
        if self.first is None or self.last is None:
            raise SchemaError(
                f"dates: by = {self.by!r} needs the first and the last day that can occur, from public knowledge: "
                'dates = {from = 2019-01-01, to = 2024-12-31, by = "month"}'
            )
        if self.first > self.last:
            raise SchemaError(f"dates: from = {self.first} is after to = {self.last}")
        if (self.last - self.first).days + 1 > MOST_PERIODS and self.by == "day":
            raise SchemaError(f"dates: more than {MOST_PERIODS:,} days; count by week, month, quarter or year")

    def _check_format(self) -> None:
        """It must read what it writes, or every date would silently be no date."""
        moment = datetime(2019, 11, 23, 17, 45, 50)
        try:
            datetime.strptime(moment.strftime(self.format), self.format)
            written = "%" in self.format.replace("%%", "")
        except ValueError:
            written = False
        if not written:
            raise SchemaError(
                f"dates: format = {self.format!r} cannot be read back; write it as in '%d.%m.%Y' or '%Y-%m-%d %H:%M'"
            )

    # -- periods -----------------------------------------------------------------------------------------------------

    @cached_property
    def starts(self) -> NDArray[np.int64]:
        """The first day of each calendar period, in days since 1970; empty for cycles."""
        if self.first is None or self.last is None:
            return np.empty(0, dtype=np.int64)
        low, high = np.datetime64(self.first, "D"), np.datetime64(self.last, "D")
        if self.by == "week":
            begin = low.astype(np.int64) - (low.astype(np.int64) + 3) % 7  # 1970 began on a Thursday
            return np.arange(begin, high.astype(np.int64) + 1, 7)
        if self.by == "quarter":
            begin, end = (day.astype("M8[M]").astype(np.int64) // 3 for day in (low, high))
            return (3 * np.arange(begin, end + 1)).astype("M8[M]").astype("M8[D]").astype(np.int64)
        unit = {"day": "D", "month": "M", "year": "Y"}[self.by]
        begin, end = (day.astype(f"M8[{unit}]").astype(np.int64) for day in (low, high))
        return np.arange(begin, end + 1).astype(f"M8[{unit}]").astype("M8[D]").astype(np.int64)

    @cached_property
    def labels(self) -> tuple[str, ...]:
        """One label a period, in order: "2021-03-05", "2021-W09", "2021-03", "2021-Q1", "2021", "13", "Friday"."""
        if self.by == "weekday":
            return WEEKDAYS
        if self.by == "hour of day":
            return tuple(map(str, range(24)))
        days = [date.fromordinal(_EPOCH + d) for d in self.starts.tolist()]
        if self.by == "week":
            return tuple(f"{d.isocalendar().year:04}-W{d.isocalendar().week:02}" for d in days)
        if self.by == "quarter":
            return tuple(f"{d.year:04}-Q{(d.month + 2) // 3}" for d in days)
        return tuple(d.isoformat()[: {"day": 10, "month": 7, "year": 4}[self.by]] for d in days)

    def span(self, code: int) -> tuple[datetime, datetime] | None:
        """The first and the last moment of a period, within the public ends; None for hours and weekdays."""
        if self.first is None or self.last is None:
            return None
        starts = self.starts
        if not 0 <= code < len(starts):
            raise InputError(f"there is no period {code}; they are numbered from 0 to {len(starts) - 1}")
        begin = max(date.fromordinal(_EPOCH + int(starts[code])), self.first)
        end = self.last
        if code + 1 < len(starts):
            end = date.fromordinal(_EPOCH + int(starts[code + 1]) - 1)
        return datetime.combine(begin, time.min), datetime.combine(end, time.max)

    @property
    def has_clock(self) -> bool:
        """Whether dates are written with a time of the day."""
        return bool(_CLOCK.search(self.format))

    # -- values ------------------------------------------------------------------------------------------------------

    def codes(self, moments: NDArray[np.int64]) -> NDArray[np.int64]:
        """Codes of moments, in microseconds since 1970: −1 before the first period, as many as there are after the
        last one; −1, too, for the hour and the weekday of a moment beyond all that are counted. What is not a time is
        the caller's to sort out."""
        days = moments // _DAY
        if self.by in CYCLES:
            codes = moments // _HOUR % 24 if self.by == "hour of day" else (days + 3) % 7
            codes[np.abs(moments) == BEYOND] = -1
            return codes
        assert self.first is not None and self.last is not None
        codes = np.searchsorted(self.starts, days, side="right").astype(np.int64) - 1
        codes[days < self.first.toordinal() - _EPOCH] = -1
        codes[days > self.last.toordinal() - _EPOCH] = len(self.starts)
        return codes

    def moment(self, value: Any) -> int | None:
        """A value in microseconds since 1970: a date or time of any make, or text that spells one; None for others."""
        try:
            if isinstance(value, np.datetime64):
                micros = int(moments_of(np.array([value]))[0])
                return None if micros == NOT_A_TIME else micros
            if isinstance(value, datetime):
                return (value.replace(tzinfo=None) - _START) // _MICROSECOND
            if isinstance(value, date):
                return (value.toordinal() - _EPOCH) * _DAY
            if isinstance(value, time):
                since = timedelta(hours=value.hour, minutes=value.minute, seconds=value.second)
                return since // _MICROSECOND + value.microsecond
            if isinstance(value, str):
                return self._read(value.strip())
            if self.format and isinstance(value, int | np.integer) and not isinstance(value, bool):
                return self._read(str(int(value)))
            if self.format and isinstance(value, float | np.floating) and float(value).is_integer():
                return self._read(str(int(value)))
        except Exception:  # values may run code of their own; what cannot be read is no time
            return None
        return None

    def _read(self, text: str) -> int:
        moment = datetime.strptime(text, self.format) if self.format else datetime.fromisoformat(text)
        return (moment.replace(tzinfo=None) - _START) // _MICROSECOND

    # -- plain data --------------------------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, str]:
        """The schema-file form: ``{"from": "2019-01-01", "to": "2024-12-31", "by": "month"}``."""
        ends = {} if self.first is None or self.last is None else {"from": str(self.first), "to": str(self.last)}
        return {**ends, "by": self.by, **({"format": self.format} if self.format else {})}

    @classmethod
    def from_dict(cls, entry: Mapping[str, Any]) -> Dates:
        """Read the schema-file form; days are TOML dates, or text."""
        for key in entry:
            if key not in KEYS:
                raise SchemaError(f"dates: unknown key {key!r}{did_you_mean(str(key), KEYS)}")
        if "by" not in entry:
            raise SchemaError(f"dates: say by what they are counted, by = {' or '.join(map(repr, CALENDAR[:3]))}, …")
        return cls(entry["by"], _day(entry, "from"), _day(entry, "to"), entry.get("format", ""))


def _day(entry: Mapping[str, Any], key: str) -> date | None:
    value = entry.get(key)
    if isinstance(value, datetime):
        return value.date()
    if value is None or isinstance(value, date):
        return value
    try:
        return date.fromisoformat(value)
    except (TypeError, ValueError):
        raise SchemaError(f"dates: {key} is a day such as 2019-01-31, got {value!r}") from None
