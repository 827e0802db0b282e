"""Progress is for people: on a terminal, and only of what takes long."""

from __future__ import annotations

import io
import sys

import pytest

from discreet.cli import console
from discreet.progress import track


class Terminal(io.StringIO):
    def isatty(self):
        return True


def work(steps):
    for _ in track(range(steps), steps, "drawing noise"):
        pass


@pytest.mark.parametrize("patience", [0.0, 1.0])
def test_progress_waits_a_second(monkeypatch, patience):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(console, "_PATIENCE_SECONDS", patience)
    with console.progress():
        work(5)
    assert ("drawing noise" in terminal.getvalue()) == (patience == 0.0)


def test_progress_is_silent_without_a_terminal(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(console, "_PATIENCE_SECONDS", 0.0)
    with console.progress():
        work(5)
    assert stream.getvalue() == ""
