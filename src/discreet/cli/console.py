"""What is printed, and where: results on stdout, remarks and progress on stderr, JSON for scripts."""

from __future__ import annotations

import io
import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, TextIO

from ..program import program
from ..progress import listening, with_budget

_WIDTH_OF_A_FILE = 160
_PATIENCE_SECONDS = 1.0
_SILENT_SECONDS = 30.0
"""How long nothing is said of work that nobody sees on a terminal."""
_STEPS = "steps of the procedure"
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def say(text: str = "") -> None:
    """A line of the result."""
    print(clean(as_called(text)))


def note(text: str, before: str = "", to: TextIO | None = None) -> None:
    """A remark that is no part of the result. That nobody can hear it is no reason to fail."""
    with suppress(OSError, ValueError):
        print(f"{before}{clean(as_called(text))}", file=to or sys.stderr)


def say_json(value: Any) -> None:
    from ..io.strictjson import finite  # NumPy, which not every command needs

    text = json.dumps(finite(value), indent=2, ensure_ascii=False, allow_nan=False)
    print("\n".join(_CONTROL.sub(lambda c: f"\\u{ord(c[0]):04x}", line) for line in text.split("\n")))


_deaf: set[int] = set()  # numbers of the streams that nobody reads


def is_heard() -> bool:
    """Whether all that was said has gone out; if not, nothing more does, and work that is paid for goes on."""
    try:
        sys.stdout.flush()
    except (OSError, ValueError):
        fall_silent()
    return 1 not in _deaf


@contextmanager
def even_if_unheard() -> Iterator[None]:
    """What is said inside may be lost when nobody reads it, and :func:`is_heard` tells: it stops nothing."""
    try:
        yield
    except OSError:
        fall_silent()


def fall_silent() -> None:
    """Say nothing more: not even what Python would flush at its end."""
    _to_nowhere(1)


def open_streams() -> None:
    """Streams that were closed before the start (``>&-``) lead nowhere. Their numbers are taken: otherwise the next
    file that is opened, say the ledger, would be taken for one."""
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            _to_nowhere(number)
            setattr(sys, name, open(number, "w" if number else "r", encoding="utf-8"))  # noqa: SIM115


def _to_nowhere(number: int) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere != number:
        os.dup2(nowhere, number)
        os.close(nowhere)
    _deaf.add(number)


def as_called(text: str) -> str:
    """With our commands as they can be typed here, where others are written as if we were on the path."""
    return text.replace("`discreet ", f"`{program()} ") if "`discreet " in text else text


def clean(text: str) -> str:
    """Without control characters: names and labels in files from anywhere must not drive the terminal."""
    return "\n".join(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", line) for line in text.split("\n"))


def say_table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, right: Iterable[str] = ()) -> None:
    """A table; the columns named in ``right`` are aligned to the right."""
    from rich.console import Console  # most answers are lines
    from rich.table import Table

    out = sys.stdout
    width = None if out.isatty() else _WIDTH_OF_A_FILE
    # Labels of bins look like markup ("[0, 18)"), and must not be taken for it.
    # And it is not written by the library: when nobody reads any more, that is ours to know.
    drawn = io.StringIO()
    console = Console(
        file=drawn,
        width=width,
        force_terminal=out.isatty(),
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=False,
    )
    table = Table(box=None, pad_edge=False, header_style="bold")
    aligned = set(right)
    for heading in headings:
        table.add_column(_cell(heading), justify="right" if heading in aligned else "left", overflow="fold")
    for row in rows:
        table.add_row(*map(_cell, row))
    console.print(table)
    print(drawn.getvalue(), end="")


def _cell(text: str) -> str:
    return clean(str(text)).replace("\n", "\N{REPLACEMENT CHARACTER}")


@contextmanager
def waiting(text: str) -> Iterator[None]:
    """Show that something happens whose amount is private or unknown: on a terminal after a second, elsewhere in a line
    now and then."""
    if not sys.stderr.isatty():
        with _now_and_then(lambda: text):
            yield
        return
    from rich.console import Console

    status = Console(file=sys.stderr).status(text)
    timer = threading.Timer(_PATIENCE_SECONDS, status.start)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        status.stop()


@contextmanager
def _now_and_then(words: Callable[[], str]) -> Iterator[None]:
    """A line about long work, for logs: what it is at, and for how long it has been at work. It goes where errors went
    at the beginning: an audit looks for a while at all that is said there, and must not hear of its own time."""
    begun, done, out = time.monotonic(), threading.Event(), sys.stderr

    def tell() -> None:
        while not done.wait(_SILENT_SECONDS):
            note(f"{words()} ({time.monotonic() - begun:.0f} s so far)", to=out)

    thread = threading.Thread(target=tell, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


@contextmanager
def _in_lines() -> Iterator[None]:
    """Progress where no bars can be drawn."""
    at = "at work"

    def hear(label: str, done: int, total: int) -> None:
        nonlocal at
        at = f"{min(done + 1, total)} of {total}: {label}"

    def hear_step(name: str, done: int, total: int, left: float) -> None:
        hear(with_budget(name, left), done, total)

    with _now_and_then(lambda: at), listening(hear, hear_step):
        yield


@contextmanager
def progress() -> Iterator[None]:
    """Show the progress of what happens inside: on a terminal, of work that takes more than a second; elsewhere in a
    line now and then.

    A terminal that cannot move its cursor gets a line for each step of a procedure."""
    if not sys.stderr.isatty():
        with _in_lines():
            yield
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn  # not needed for most commands

    begun = time.monotonic()
    tasks: dict[str, Any] = {}
    bars = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} %"),
        TimeRemainingColumn(),
        console=Console(file=sys.stderr),
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
