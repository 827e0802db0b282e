"""Progress of long work. Silent unless somebody listens: the command line does, a library does not print.

``with listening(callback): …`` calls ``callback(label, done, total)``; work is wrapped in :func:`track`. The steps of a
procedure say how much of the budget is left, too. What is reported must be public: sizes of models and draws, what the
account says, never the number of records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
Listener = Callable[[str, int, int], None]
StepListener = Callable[[str, int, int, float], None]
_listener: ContextVar[Listener | None] = ContextVar("progress_listener", default=None)
_remarks: ContextVar[Callable[[str], None] | None] = ContextVar("remarks", default=None)
_of_steps: ContextVar[StepListener | None] = ContextVar("progress_of_steps", default=None)


def nobody(label: str, done: int, total: int) -> None:
    """A listener that hears nothing: for work whose amount is private."""


@contextmanager
def listening(callback: Listener, steps: StepListener | None = None) -> Iterator[None]:
    """Report the progress of everything inside to ``callback``; that of the steps of a procedure to
    ``steps(name, done, total, part of the budget that is left)`` if there is one, and else in words to ``callback``."""
    tokens = _listener.set(callback), _of_steps.set(steps)
    try:
        yield
    finally:
        _listener.reset(tokens[0])
        _of_steps.reset(tokens[1])


def step_begins(name: str, done: int, total: int, left: Callable[[], float]) -> None:
    """A step of a procedure begins, after ``done`` of ``total``; what is ``left`` is asked only if somebody listens."""
    if (steps := _of_steps.get()) is not None:
        steps(name, done, total, left())
    elif (listener := _listener.get()) is not None and listener is not nobody:
        listener(with_budget(name, left()), done, total)


def with_budget(name: str, left: float) -> str:
    """A step in words; what is left comes first, as names are long and lines are cut."""
    return f"{100 * left:.0f} % of the budget left; {name}"


@contextmanager
def remarking(callback: Callable[[str], None]) -> Iterator[None]:
    """Pass on what is to be said while somebody waits, such as for whom."""
    token = _remarks.set(callback)
    try:
        yield
    finally:
        _remarks.reset(token)


def remark(text: str) -> None:
    """Say to who listens why nothing happens."""
    callback = _remarks.get()
    if callback is not None:
        callback(text)


def track(items: Iterable[T], total: int, label: str) -> Iterator[T]:
    """Pass items on, reporting how many of ``total`` are done."""
    listener = _listener.get()
    for done, item in enumerate(items):
        if listener is not None:
            listener(label, done, total)
        yield item
    if listener is not None:
        listener(label, total, total)


class Hundredths:
    """Progress of work whose amount is private: what part of it is done, and nothing else.

    Every listener hears 0, 1, …, 100, each once, however many rows there are; only when is not fixed.
    """

    def __init__(self, label: str) -> None:
        self._listener = _listener.get()
        self._label, self._next = label, 0

    def __bool__(self) -> bool:
        return self._listener is not None

    def reached(self, hundredths: int) -> None:
        while self._listener is not None and self._next <= min(hundredths, 100):
            self._next += 1
            self._listener(self._label, self._next - 1, 100)


def in_hundredths(items: Iterable[T], total: int, label: str) -> Iterator[T]:
    """As :func:`track`, for work whose amount is private."""
    progress = Hundredths(label)
    for done, item in enumerate(items):
        progress.reached(100 * done // total)
        yield item
    progress.reached(100)
