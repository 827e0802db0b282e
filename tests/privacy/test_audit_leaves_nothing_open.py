"""What is left behind makes no difference between the two runs of an audit: it closes what it opens, since a warning of
Python about something left open would be one, and what others left is collected before or after."""

from __future__ import annotations

import gc
import logging
import threading
import warnings

from discreet.audit import audit_replay
from discreet.domain import Domain
from discreet.privacy.budget import PureDP
from discreet.privacy.ledger import Ledger
from discreet.privacy.query import Marginals
from discreet.privacy.unit import PrivacyUnit

DOMAIN = Domain.of({"a": ["x", "y"]})


def test_no_ledger_is_left_open(monkeypatch):
    opened = []
    in_memory = Ledger.in_memory

    def counted(total):
        opened.append(in_memory(total))
        return opened[-1]

    monkeypatch.setattr(Ledger, "in_memory", counted)

    def algorithm(curator):
        return curator.measure(Marginals(DOMAIN, [("a",)]))

    with warnings.catch_warnings():
        warnings.simplefilter("error", ResourceWarning)
        findings = audit_replay(algorithm, DOMAIN, PrivacyUnit(), PureDP(1), count=3)
        gc.collect()
    assert all(f.passed for f in findings) and len(opened) == 6
    for ledger in opened:
        try:
            ledger._connection.execute("SELECT 1")
        except Exception as error:
            assert "closed" in str(error)
        else:
            raise AssertionError("a ledger was left open")


class Talkative:
    """Says something when it goes, as connections to Java do; and as it holds itself, only a collection ends it."""

    def __init__(self):
        self.itself = self

    def __del__(self):
        logging.getLogger("left").debug("gone")


def test_garbage_of_others_is_no_finding():
    before = gc.get_threshold()

    def algorithm(curator):
        gc.set_threshold(1, 1, 1)  # the next objects that are made set a collection off
        try:
            return curator.measure(Marginals(DOMAIN, [("a",)]))
        finally:
            gc.set_threshold(*before)

    Talkative()
    assert all(f.passed for f in audit_replay(algorithm, DOMAIN, PrivacyUnit(), PureDP(1), count=1))
    assert gc.isenabled()


def test_threads_of_others_are_no_findings():
    over, said = threading.Event(), threading.Event()

    def talk():
        while not over.is_set():
            logging.getLogger("elsewhere").debug("something else")
            said.set()

    def algorithm(curator):
        said.clear()
        said.wait()  # a line in the midst of every run, and as many as there happen to be
        return curator.measure(Marginals(DOMAIN, [("a",)]))

    other = threading.Thread(target=talk)
    other.start()
    try:
        assert all(f.passed for f in audit_replay(algorithm, DOMAIN, PrivacyUnit(), PureDP(1), count=3))
    finally:
        over.set()
        other.join()


def test_threads_of_its_own_are_listened_to():
    def algorithm(curator):
        count = curator._rows.count([()])[0]
        own = threading.Thread(target=logging.getLogger("own").debug, args=(f"{count} records",))
        own.start()
        own.join()

    found = [f for f in audit_replay(algorithm, DOMAIN, PrivacyUnit(), PureDP(1), count=3) if not f.passed]
    assert "same output, logs, warnings, progress" in {f.name for f in found}
