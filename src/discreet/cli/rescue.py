"""What was paid for is not lost: when it cannot be saved where it should be, it is saved elsewhere, or printed."""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from .console import is_heard, say_json

if TYPE_CHECKING:
    from ..io.archive import Sign
    from ..measurement import Measurements
    from ..privacy.curator import Curator


class Saved(Protocol):
    """What can be bought: it knows how to write itself to a file."""

    def save(self, path: Path, *, sign: Sign | None) -> None: ...


S = TypeVar("S", bound=Saved)


@dataclass
class Bought(Generic[S]):
    """What a command has bought so far, from the first answer to the saved file."""

    place: Path
    """Where it goes, or would go."""
    sign: Sign | None
    answers: list[Any] = field(default_factory=list)
    released: Measurements | None = None
    made: S | None = None
    saved: Path | None = None


def rescue(bought: Bought[S], show: Callable[[S], None] | None, curator: Curator | None) -> str:
    """Save the most that there is: the result, or the noisy sums that it would have been made of, or the answers until
    it failed. Returns what is to be said about it."""
    if bought.made is not None:
        made = bought.made
        if place := _written(bought.place, lambda path: made.save(path, sign=bought.sign)):
            return f"The release is rescued: it is whole, in {place}"
        if show is not None and _printed(lambda: show(made)):
            return "The release is printed above, as no file could be written"
    released = bought.released
    if released is None and bought.answers and curator is not None:
        with suppress(Exception):
            released = _so_far(bought.answers, curator)
    if released is None:
        return "Nothing was answered before that"
    kept = released
    # A file of sums is about columns; a number of records alone, or a selection, is printed.
    has_columns = any(len(m.domain) for m in kept)
    if has_columns and (
        place := _written(bought.place.with_suffix(".zip"), lambda path: kept.save(path, sign=bought.sign))
    ):
        return f"What was released is rescued: the noisy sums are in {place} (`discreet show {place}`)"
    if _printed(lambda: _say_sums(kept)):
        return "What was released is printed as JSON above"
    return "What was released could be neither written to a file nor printed"


def _so_far(answers: list[Any], curator: Curator) -> Measurements:
    """The answers of a procedure that did not come to its end."""
    from ..learn.transcript import plain_answer
    from ..measurement import Measurements

    # Histograms of columns that were still to be found are no tables of the columns as they were found.
    sums = [m for answer in answers if isinstance(answer, Measurements) for m in answer if not m.domain.sought]
    others = [plain_answer(a) for a in answers if not isinstance(a, Measurements) or any(m.domain.sought for m in a)]
    return Measurements(sums, {**curator.statement(), "found": {"answers": others}})


def _written(place: Path, write: Callable[[Path], None]) -> Path | None:
    """Beside the place that was meant; else in the working folder, else where temporary files go."""
    name = f"{place.stem[:80]}.rescued-{secrets.token_hex(3)}{place.suffix}"
    beside: tuple[Path, ...] = (
        (place.parent,) if place.is_file() or not place.exists() or place.is_dir() else ()
    )  # not in /dev
    for folder in dict.fromkeys((*beside, Path(), Path(tempfile.gettempdir()))):
        with suppress(Exception):
            write(folder / name)
            return folder / name
    return None


def _printed(what: Callable[[], None]) -> bool:
    with suppress(Exception):
        what()
        return is_heard()
    return False


def _say_sums(released: Measurements) -> None:
    from .views import measurement_json

    say_json({"tables": [measurement_json(m, 0.9) for m in released], "release": dict(released.release)})
