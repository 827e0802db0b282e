"""Record and replay: a private algorithm may depend on its rows through the noise gateway only.

Run it on D and record every call of the gateway with its answer. Run it again on a neighbour D′, give the *same*
answers, and compare. Whatever differs left the curator without being paid for: another number of calls, another shape
or scale, another result, message, log line or exception. What may differ is the input of a call, by no more than the
sensitivity it declares; and the losses that follow from the inputs that were seen must compose within the budget, and
those of every entry in the books within what it has paid.
"""

from __future__ import annotations

import contextlib
import gc
import io
import logging
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

from ..domain import Domain
from ..privacy.budget import Budget
from ..privacy.curator import Curator
from ..privacy.ledger import Ledger
from ..privacy.mechanisms import Gateway
from ..privacy.unit import PrivacyUnit
from ..progress import listening, track
from ..tables.base import Table
from .findings import Finding, canonical
from .neighbours import Pair, large_pairs, large_tables, pairs
from .transcripts import MOVED, SPENT, RecordingGateway, ReplayingGateway, Transcript

Algorithm = Callable[[Curator], Any]
MakeCurator = Callable[..., Curator]
SIZES = (3, 0, 1, 100, 1_000, 10_000)
"""Numbers of units of large tables."""
MORE = 20
"""Pairs that are looked at from the first failure on: what else fails shows there, if anywhere."""


# -- running -------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _watched(seen: list[Any]) -> Iterator[None]:
    """Collect what a run says: standard output and error, log lines, warnings, progress. What others do at a time that
    has nothing to do with the rows is not the run's: no garbage is collected in the meantime, and threads that were
    there before are not listened to (Java's connections log from theirs)."""
    others = {thread.ident for thread in threading.enumerate()} - {threading.get_ident()}
    out, err = io.StringIO(), io.StringIO()
    lines: list[str] = []
    handler = logging.Handler()
    handler.addFilter(lambda record: record.thread not in others)
    handler.emit = lambda record: lines.append(record.getMessage())  # type: ignore[method-assign]
    logger = logging.getLogger()
    level, collecting = logger.level, gc.isenabled()
    logger.addHandler(handler)
    logger.setLevel(logging.DEBUG)
    gc.disable()
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            warnings.catch_warnings(record=True) as caught,
            listening(lambda label, done, total: lines.append(f"{label} {done}/{total}")),
        ):
            warnings.simplefilter("always")
            yield
    finally:
        logger.removeHandler(handler)
        logger.setLevel(level)
        if collecting:
            gc.enable()
        seen.extend([out.getvalue(), err.getvalue(), lines, [str(w.message) for w in caught]])


def _run(algorithm: Algorithm, curator: Curator, ledger: Ledger, transcript: Transcript) -> None:
    said: list[Any] = []
    outcome: Any
    with _watched(said):
        try:
            outcome = ("returned", canonical(algorithm(curator)))
            transcript.returned = True
        except Exception as error:
            outcome = ("raised", canonical(error))
    curator.close()
    transcript.public = {
        "result or exception": outcome,
        "output, logs, warnings, progress": canonical(said),
        "what was spent": canonical(curator.statement()),
        "ledger": canonical([(entry.kind, entry.details) for entry in ledger.entries]),
    }


@dataclass(frozen=True)
class Outcome:
    """The problems found on one pair of neighbours, and whether the algorithm returned at all."""

    problems: tuple[Finding, ...]
    returned: bool


def replay_pair(
    algorithm: Algorithm,
    left: Table,
    right: Table,
    unit: PrivacyUnit,
    budget: Budget,
    *,
    make_curator: MakeCurator = Curator,
    gateway: Gateway | None = None,
    **options: Any,
) -> Outcome:
    """Record on one table, replay on the other."""
    recorded, replay = Transcript(), Transcript()
    with Ledger.in_memory(budget) as ledger:
        recording = RecordingGateway(recorded, ledger, gateway)
        curator = make_curator(left, unit, budget, ledger, gateway=recording, **options)
        _run(algorithm, curator, ledger, recorded)
    replaying = ReplayingGateway(recorded, replay, budget)
    with Ledger.in_memory(budget) as other_ledger:
        again = make_curator(right, unit, budget, other_ledger, gateway=replaying, **options)
        replaying.watch(again)
        _run(algorithm, again, other_ledger, replay)
    replaying.finish()
    problems = recorded.problems + replay.problems
    for what, value in recorded.public.items():
        if replay.public[what] != value:
            problems.append(Finding(f"same {what}", False, "neighbours can be told apart without noise"))
    return Outcome(tuple(problems), recorded.returned)


def audit_replay(
    algorithm: Algorithm,
    domain: Domain,
    unit: PrivacyUnit,
    budget: Budget,
    *,
    count: int = 200,
    seed: int = 0,
    largest: int = 5,
    sizes: Sequence[int] = (),
    make_curator: MakeCurator = Curator,
    gateway: Gateway | None = None,
    **options: Any,
) -> list[Finding]:
    """Record/replay on many random neighbours, small ones and (``sizes``) large ones. Returns one finding a failed
    check (with the first pair that showed it), or a single passed finding. A few pairs after the first failure it
    stops."""
    first: dict[str, Finding] = {}
    returned = False
    left = MORE
    every = chain(pairs(domain, unit, count, seed, largest), large_pairs(domain, unit, sizes, seed))
    tried = count + len(sizes)
    for number, pair in enumerate(track(every, tried, f"replay on neighbours, {unit.relation}")):
        outcome = _replayed(pair, algorithm, domain, unit, budget, make_curator, gateway, options)
        returned = returned or outcome.returned
        for finding in outcome.problems:
            detail = f"{finding.detail} (pair {number}, {pair.what}, {len(pair.left.codes)} rows)"
            first.setdefault(finding.name, Finding(finding.name, False, detail))
        left -= bool(first)
        if left == 0:
            break
    else:
        if not returned:  # an audit of an algorithm that always fails would show nothing
            first["the algorithm returns"] = Finding("the algorithm returns", False, f"it raised on all {count} tables")
    return list(first.values()) or [Finding(f"record and replay on {tried} neighbours, {unit.relation}", True)]


def audit_sizes(
    algorithm: Algorithm,
    domain: Domain,
    unit: PrivacyUnit,
    budget: Budget,
    *,
    sizes: Sequence[int] = SIZES,
    seed: int = 0,
    make_curator: MakeCurator = Curator,
    gateway: Gateway | None = None,
    **options: Any,
) -> list[Finding]:
    """Record on a table of some units and replay on tables of quite other rows and numbers of units.

    Between any two tables there is a chain of neighbours. With the same answers nothing may differ along the chain but
    what goes into the noise; so nothing may differ between its ends. Whatever depends on the number of records (a
    strategy, a number of rounds, a threshold, an error beyond some size) shows, wherever on the way it changes. How far
    sums move is a matter of neighbours, and not looked at here.
    """
    tables = list(large_tables(domain, unit, sizes, seed))
    problems: dict[str, Finding] = {}
    for rows in track(tables[1:], len(tables) - 1, "replay on tables of other sizes"):
        pair = Pair(tables[0], rows, "other rows")
        outcome = _replayed(pair, algorithm, domain, unit, budget, make_curator, gateway, options)
        for finding in outcome.problems:
            if finding.name not in (MOVED, SPENT):
                detail = f"{finding.detail} ({sizes[0]} units and {len(set(rows.owners.tolist()))} units)"
                problems.setdefault(finding.name, Finding(finding.name, False, detail))
    done = Finding(f"record and replay on tables of {', '.join(f'{n:,}' for n in sizes)} units", True)
    return list(problems.values()) or [done]


def _replayed(
    pair: Pair,
    algorithm: Algorithm,
    domain: Domain,
    unit: PrivacyUnit,
    budget: Budget,
    make_curator: MakeCurator,
    gateway: Gateway | None,
    options: Mapping[str, Any],
) -> Outcome:
    left, right = pair.left.table(domain, unit), pair.right.table(domain, unit)
    return replay_pair(algorithm, left, right, unit, budget, make_curator=make_curator, gateway=gateway, **options)
