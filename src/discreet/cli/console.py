"""What is printed, and where: results on stdout, remarks and progress on stderr, JSON for scripts."""

from __future__ import annotations

import json
import re
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ..progress import listening, with_budget

_WIDTH_OF_A_FILE = 160
_PATIENCE_SECONDS = 1.0
_STEPS = "steps of the procedure"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def say(text: str = "") -> None:
    """A line of the result."""
    print(clean(text))


def note(text: str) -> None:
    """A remark that is no part of the result."""
    print(clean(text), file=sys.stderr)


def say_json(value: Any) -> None:
    print(json.dumps(value, indent=2, ensure_ascii=False))


def clean(text: str) -> str:
    """Without control characters: names and labels in files from anywhere must not drive the terminal."""
    return "\n".join(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", line) for line in text.split("\n"))


def say_table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[str] = ()) -> None:
    """A table; the columns named in ``right`` are aligned to the right."""
    out = sys.stdout
    width = None if out.isatty() else _WIDTH_OF_A_FILE
    # Labels of bins look like markup ("[0, 18)"), and must not be taken for it.
    console = Console(file=out, width=width, markup=False, highlight=False, emoji=False, soft_wrap=False)
    table = Table(box=None, pad_edge=False, header_style="bold")
    aligned = set(right)
    for heading in headings:
        table.add_column(_cell(heading), justify="right" if heading in aligned else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(_cell, row))
    console.print(table)


def _cell(text: str) -> str:
    return clean(str(text)).replace("\n", "\N{REPLACEMENT CHARACTER}")


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show that something happens whose amount is private or unknown: on a terminal only, and after a second."""
    if not sys.stderr.isatty():
        yield
        return
    status = Console(stderr=True).status(text)
    timer = threading.Timer(_PATIENCE_SECONDS, status.start)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        status.stop()


@contextmanager
def progress() -> Iterator[None]:
    """Show the progress of what happens inside: on a terminal only, and only of work that takes more than a second.

    A terminal that cannot move its cursor gets a line for each step of a procedure."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # not needed for most commands

    begun = time.monotonic()
    tasks: dict[str, Any] = {}
    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
    )

    plain = bars.console.is_dumb_terminal

    def show(key: str, description: str, done: int, total: int) -> None:
        if time.monotonic() - begun < _PATIENCE_SECONDS or total <= 1:
            return
        if not tasks:
            bars.start()
        if key not in tasks:
            tasks[key] = bars.add_task(description, total=total)
        bars.update(tasks[key], description=description, completed=done, total=total)

    def hear(label: str, done: int, total: int) -> None:
        if not plain:
            show(label, escape(clean(label)), done, total)

    def hear_step(name: str, done: int, total: int, left: float) -> None:
        words = clean(with_budget(name, left))
        if not plain:
            show(_STEPS, escape(words), done, total)
        elif time.monotonic() - begun >= _PATIENCE_SECONDS:
            note(f"{min(done + 1, total)} of {total}: {words}")

    try:
        with listening(hear, hear_step):
            yield
    finally:
        if tasks:
            bars.stop()
