"""Progress of long work. Silent unless somebody listens: the command line does, a library does not print.

``with listening(callback): …`` calls ``callback(label, done, total)``; work is wrapped in :func:`track`. What is
reported must be public: sizes of models and draws, never the number of records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeVar

T = TypeVar("T")
Listener = Callable[[str, int, int], None]
_listener: ContextVar[Listener | None] = ContextVar("progress_listener", default=None)


def nobody(label: str, done: int, total: int) -> None:
    """A listener that hears nothing: for work whose amount is private."""


@contextmanager
def listening(callback: Listener) -> Iterator[None]:
    """Report the progress of everything inside to ``callback``."""
    token = _listener.set(callback)
    try:
        yield
    finally:
        _listener.reset(token)


def track(items: Iterable[T], total: int, label: str) -> Iterator[T]:
    """Pass items on, reporting how many of ``total`` are done."""
    listener = _listener.get()
    for done, item in enumerate(items):
        if listener is not None:
            listener(label, done, total)
        yield item
    if listener is not None:
        listener(label, total, total)


def in_hundredths(items: Iterable[T], total: int, label: str) -> Iterator[T]:
    """As :func:`track`, for work whose amount is private: only what part of it is done is told."""
    listener = _listener.get()
    for done, item in enumerate(items):
        if listener is not None:
            listener(label, 100 * done // total, 100)
        yield item
    if listener is not None:
        listener(label, 100, 100)


def report_hundredths(label: str) -> Callable[[int], None] | None:
    """A function that tells what part of private work is done, for work that is not a loop; None if nobody listens."""
    listener = _listener.get()
    return None if listener is None else lambda done: listener(label, done, 100)
