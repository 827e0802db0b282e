"""Progress is for people: on a terminal, and only of what takes long."""

from __future__ import annotations

import contextlib
import io
import json
import re
import sys
import threading

import pytest

from discreet import ZCDP, ApproxDP, PureDP
from discreet.cli import console
from discreet.privacy.budget import part_of
from discreet.progress import listening, track


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


def test_short_work_is_silent_without_a_terminal(monkeypatch):
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(console, "_PATIENCE_SECONDS", 0.0)
    with console.progress():
        work(5)
    assert stream.getvalue() == ""


def test_long_work_without_a_terminal_says_now_and_then_what_it_is_at(monkeypatch):
    said = threading.Event()

    class Log(io.StringIO):
        def write(self, text):
            said.set()
            return super().write(text)

    stream = Log()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(console, "_SILENT_SECONDS", 0.01)
    with console.progress():
        for _ in track(range(3), 3, "drawing noise"):
            assert said.wait(60)
            break
    # It may have been said before it was known what the work is, but for the last time.
    assert re.fullmatch(r"((at work|1 of 3: drawing noise) \(\d+ s so far\)\n)+", stream.getvalue())
    said.clear()
    with console.waiting("reading the rows"):
        assert said.wait(60)
    assert "reading the rows (" in stream.getvalue()
    before = stream.getvalue()
    said.clear()
    assert not said.wait(0.1) and stream.getvalue() == before


def test_who_listens_to_what_work_says_does_not_hear_of_its_time(monkeypatch):
    """An audit compares all that runs say: how long they take must not be among it."""
    said = threading.Event()

    class Log(io.StringIO):
        def write(self, text):
            said.set()
            return super().write(text)

    log, heard = Log(), io.StringIO()
    monkeypatch.setattr(sys, "stderr", log)
    monkeypatch.setattr(console, "_SILENT_SECONDS", 0.01)
    with console.progress(), contextlib.redirect_stderr(heard):
        assert said.wait(60)
    assert "so far" in log.getvalue() and not heard.getvalue()
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(console, "_PATIENCE_SECONDS", 0.0)
    with console.progress(), contextlib.redirect_stderr(heard):
        work(5)
    assert "drawing noise" in terminal.getvalue() and not heard.getvalue()


def test_audits_say_how_far_they_are():
    from discreet import Domain, PrivacyUnit
    from discreet.audit import audit_replay, releasing_tables

    heard, domain = [], Domain.of({"a": 2})
    with listening(lambda *told: heard.append(told)):
        audit_replay(releasing_tables(domain, [("a",)]), domain, PrivacyUnit(), PureDP(1), count=3)
    assert [told for told in heard if told[0].startswith("replay")] == [
        ("replay on neighbours, add-remove", done, 3) for done in range(4)
    ]


def spend_it(budget):
    from discreet import Curator, PrivacyUnit, encode, networks, resolve

    network = networks.load("asia")
    table = encode(network.sample(300, random_state=1).to_pandas(), network.domain)
    procedure = resolve(network.domain).prepare(network.domain, PrivacyUnit(), budget)
    procedure.run(Curator(table, PrivacyUnit(), budget))
    return procedure


@pytest.mark.parametrize("budget", [PureDP(1), ZCDP("0.1"), ApproxDP(1, "1e-6")], ids=str)
def test_steps_say_how_much_of_the_budget_is_left(budget):
    heard, words = [], []
    with listening(lambda label, done, total: None, lambda *step: heard.append(step)):
        procedure = spend_it(budget)
    names = [step.name for step in procedure.steps]
    assert [name for name, *_ in heard[:-1]] == names and heard[-1][1] == len(names)
    assert [done for _, done, _, _ in heard] == list(range(len(names) + 1))
    spent = 0.0
    for (*_, left), step in zip(heard, procedure.steps, strict=False):
        least = 1 - spent  # selections that were not needed give back what they would have cost
        assert least - 1e-6 <= left <= least + 0.17
        spent += float(part_of(step.share, budget))
    with listening(lambda label, done, total: words.append(label)):
        spend_it(budget)
    assert f"100 % of the budget left; {names[0]}" in words


@pytest.mark.parametrize("kind", ["xterm", "dumb"])
def test_steps_on_a_terminal(monkeypatch, kind):
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setenv("TERM", kind)
    monkeypatch.setattr(console, "_PATIENCE_SECONDS", 0.0)
    with console.progress():
        spend_it(ApproxDP(1, "1e-6"))
    said = terminal.getvalue()
    assert "of the budget left" in said
    line = re.search(r"^\d of \d: \d+ % of the budget left; tables of a spanning tree$", said, re.MULTILINE)
    assert bool(line) == (kind == "dumb")


def test_json_is_strict(capsys):
    console.say_json({"noise": float("nan"), "cells": [(float("inf"), 1.5, "NaN")], "none": None})
    said = json.loads(capsys.readouterr().out, parse_constant=pytest.fail)
    assert said == {"noise": None, "cells": [[None, 1.5, "NaN"]], "none": None}
