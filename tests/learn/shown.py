"""Watching a run: the requests that are put, the entries that are booked, the noise that is drawn; and what differs
between the plan that was shown, what ran, and what was written down."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import pytest

from discreet.learn import procedure as procedures
from discreet.learn.procedure import Procedure, Step
from discreet.privacy.account import Account
from discreet.privacy.budget import Budget, GaussianDP, PureDP, part_of
from discreet.privacy.claims import contradictions
from discreet.privacy.curator import Curator
from discreet.privacy.ledger import Ledger
from discreet.privacy.mechanisms import NoiseCall, SecureGateway
from discreet.privacy.queries.descent import SampledRounds
from discreet.privacy.requests import Measure, Request

# The one entry, before all steps, by which a procedure takes its budget as a whole.
FRAMES = {
    "composed": [],
    "in sequence": ["in sequence"],
    "as one Gaussian": ["Gaussian steps"],
    "in blocks": ["partition"],
}
# The kind of noise as the gateway knows it, in the words of plans.
WORDS = {
    "exponential": "exponential mechanism",
    "noisy-max": "report noisy max",
    "stability": "test of stability",
    "threshold": "stability histogram",
}


@dataclass
class Seen:
    """What was seen of one run, each thing with the step under way, None for none."""

    requests: list[tuple[str | None, Request]] = field(default_factory=list)
    booked: list[tuple[str | None, dict[str, Any]]] = field(default_factory=list)
    drawn: list[tuple[str | None, NoiseCall]] = field(default_factory=list)
    now: str | None = None


class WatchedGateway:
    """Lets another draw, as always, and says what."""

    origin = "release"

    def __init__(self, seen: Seen) -> None:
        self._seen, self._inner = seen, SecureGateway()

    def __getattr__(self, name: str) -> Any:
        draw = getattr(self._inner, name)

        def watched(call: NoiseCall, *rest: Any) -> Any:
            self._seen.drawn.append((self._seen.now, call))
            return draw(call, *rest)

        return watched

    def secret(self) -> bytes:
        return self._inner.secret()

    def inside(self, budget: Budget) -> WatchedGateway:
        return self


@contextmanager
def watching() -> Iterator[Seen]:
    """Everything that is asked of curators and booked on their accounts in between."""
    seen, put, spend = Seen(), procedures.put, Account._spend

    def watched_put(request: Request, curator: Curator) -> Any:
        seen.now = curator._step_name
        seen.requests.append((seen.now, request))
        try:
            return put(request, curator)
        finally:
            seen.now = None

    def watched_spend(account: Account, costs: Any, step: Any) -> int:
        number = spend(account, costs, step)
        seen.booked.append((account._step_name, account._root._steps[-1]))
        return number

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(procedures, "put", watched_put)
        patch.setattr(Account, "_spend", watched_spend)
        yield seen


# -- what differs ------------------------------------------------------------------------------------------------------


def differences(procedure: Procedure, seen: Seen, ledger: Ledger, card: Any) -> list[str]:
    """Sentences that begin with the name of what is wrong; none for a run that is as it was shown and recorded.

    ``card``: the statement on what came out; None where nothing came out that has one.
    """
    return [
        *_printed(procedure),
        *_listed(procedure, seen),
        *(problem for step in procedure.steps for problem in _step(procedure, step, seen)),
        *_drawn(seen),
        *_written(procedure, seen, ledger, card),
    ]


def _printed(procedure: Procedure) -> list[str]:
    """Every step, with its share, and every row of it stands in the text, and both in the plan as plain data."""
    lines, shown = iter(str(procedure).splitlines()), procedure.to_dict()["steps"]
    out = []
    for step in procedure.steps:
        name, percent = step.name, f"{100 * float(part_of(step.share, procedure.budget)):.3g} %"
        if not any(line.startswith(f"{name}  ") and percent in line for line in lines):
            out.append(f"printed: the plan has no line for {name!r} with {percent}, or in another order")
        own = [row for row in step.rows if row.label != name]
        out += [
            f"printed: the plan has no line for {row.label!r} under {name!r}"
            for row in own
            if not any(line.startswith(f"  {row.label}  ") and row.how in line for line in lines)
        ]
    if [s["name"] for s in shown] != [s.name for s in procedure.steps]:
        out.append("printed: other steps than are run")
    for step, plain in zip(procedure.steps, shown, strict=True):
        parts = sum(row.share for row in step.rows)
        exact_rows = all(row.share_range is None for row in step.rows)
        if plain["share"] != step.share.to_dict() or (exact_rows and abs(parts - plain["part"]) > 1e-9):
            out.append(f"printed: the rows of {step.name!r} have {parts} of the budget, the step {plain['part']}")
    return out


def _listed(procedure: Procedure, seen: Seen) -> list[str]:
    """What was booked belongs to a step that was shown, in its order; but for the frame of the whole."""
    names = [step.name for step in procedure.steps]
    out = [f"unlisted: {e.get('query', e)} was paid for, in no step" for n, e in seen.booked if n is None]
    frames = FRAMES[procedure.composition]
    if [e.get("query") for n, e in seen.booked if n is None] == frames:
        out = []
    out += [f"unlisted: the step {n!r} was paid for" for n, _ in seen.booked if n is not None and n not in names]
    out += [f"unlisted: noise was drawn in {n!r}" for n, _ in seen.drawn if n not in names]
    visited = list(dict.fromkeys(n for n, _ in seen.booked if n in names))
    if visited != [n for n in names if n in visited]:
        out.append(f"order: the steps ran as {visited}")
    return out + [
        f"unlisted: an entry of {n!r} bears the name {e.get('step')!r}" for n, e in seen.booked if e.get("step") != n
    ]


def _step(procedure: Procedure, step: Step, seen: Seen) -> list[str]:
    """One step: what it asked for is its share, and where its rows are known before, it is what they show."""
    own = [e for n, e in seen.booked if n == step.name and ("in" not in e or procedure.composition != "composed")]
    requests = [r for n, r in seen.requests if n == step.name]
    calls = [c for n, c in seen.drawn if n == step.name]
    known = all(row.cells for row in step.rows)
    shares = [Budget.from_dict(dict(e["share"])) for e in own]
    instead = isinstance(step.share, GaussianDP) and step.share.epsilon is not None
    if instead and shares and all(isinstance(share, PureDP) for share in shares):  # its ε, in the place of its μ²
        asked, whole = sum(share.epsilon for share in shares), step.share.epsilon
    else:
        asked = sum((part_of(share, procedure.budget) for share in shares), Fraction(0))
        whole = part_of(step.share, procedure.budget)
    name = f"step {step.name!r}"
    if asked > whole or (known and asked != whole):
        return [f"share: {name} asked for {float(asked):.6g} of the budget and was shown with {float(whole):.6g}"]
    if not known:
        words = {word for row in step.rows for then in row.how.split(", then ") for word in then.split(" or ")}
        odd = {WORDS.get(c.kind, c.kind) for c in calls} - words
        return [f"noise: {name} drew {sorted(odd)}, shown was {sorted(words)}"] if odd else []
    parts = [part for r in requests if isinstance(r, Measure) for part in r.query.parts]
    if any(isinstance(r, SampledRounds) for r in requests):
        return _rounds(step, calls)
    if parts:
        shown = [(row.clique, row.cells) for row in step.rows]
        if [(part.clique or (), part.cells) for part in parts] != shown:
            return [f"query: {name} asked for {[p.label for p in parts]}, shown was {[r.label for r in step.rows]}"]
    if len(calls) != len(step.rows):
        return [f"noise: {name} drew {len(calls)} times and was shown with {len(step.rows)} rows"]
    out = []
    for row, call in zip(step.rows, calls, strict=True):
        kind = WORDS.get(call.kind, call.kind)
        # A share that depends on what came before is shown with the noise of an equal one.
        if kind != row.how or (call.scale != row.noise.scale and row.share_range is None):
            out.append(f"noise: {name} drew {kind} of {call.scale:g}, shown was {row.how} of {row.noise.scale:g}")
    return out


def _rounds(step: Step, calls: list[NoiseCall]) -> list[str]:
    """Rounds of descent are shown as the noise of their mean, in records."""
    (row,) = step.rows
    rounds, rate = len(calls), next(float(word) for word in row.why.split() if word.startswith("0."))
    for call in calls:
        mean = call.scale * 2.0**-26 / rate / rounds**0.5
        if call.kind != row.noise.kind or abs(mean / row.noise.scale - 1) > 1e-3:
            return [f"noise: step {step.name!r} drew noise of {mean:g} in the mean, shown was {row.noise.scale:g}"]
    return []


def _drawn(seen: Seen) -> list[str]:
    """What the entries say of the noise is what the gateway drew."""
    out = []
    for name in dict.fromkeys(n for n, _ in seen.booked):
        entries = [e for n, e in seen.booked if n == name]
        if any("multiplier" in e for e in entries):
            continue  # rounds of descent: their entry tells the multiplier, from which each scale follows
        told = {(d["kind"], d["scale"], d.get("threshold")) for e in entries for d in e.get("draws", ())}
        drew = {(c.kind, c.scale, c.threshold) for n, c in seen.drawn if n == name}
        if told != drew:
            out.append(
                f"noise: the entries of {name!r} tell of {sorted(map(str, told))}, drawn was {sorted(map(str, drew))}"
            )
        many = any(e.get("joint") for e in entries)  # selections in groups are told once for each scale
        times = sum(d["times"] for e in entries for d in e.get("draws", ()))
        if not many and times != sum(n == name for n, _ in seen.drawn):
            out.append(f"noise: the entries of {name!r} tell of {times} draws")
    return out


def _written(procedure: Procedure, seen: Seen, ledger: Ledger, card: Any) -> list[str]:
    """Ledger and card hold the entries that were booked, all of them and no others; and they imply the guarantee."""
    out = []
    charges = [e.details for e in ledger.entries if e.kind == "charge"]
    steps = [e.details["steps"] for e in ledger.entries if e.kind == "steps"]
    if [c["amount"] for c in charges] != [procedure.budget.to_dict()]:
        out.append(f"ledger: charged was {[c['amount'] for c in charges]}")
    booked = [e for _, e in seen.booked]
    if len(steps) != 1 or plain(steps[0]) != plain(booked):
        out.append("ledger: it has other steps than were booked")
    if card is not None:
        if plain(card["steps"]) != plain(booked):
            out.append("card: it has other steps than were booked")
        if card["budget"] != procedure.budget.to_dict() or card["unit"] != procedure.unit.to_dict():
            out.append("card: it is about another budget or unit")
        out += [f"card: {problem}" for problem in contradictions(card)]
    return out


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value))
