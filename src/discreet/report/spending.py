"""Where a budget went, from the public facts that a release carries: the entries of its curator's account.

Every entry says what it was for: the step of the procedure that asked (``step``), or else the noun of what was asked.
What was asked of a block, of a sample or within a sequence says so (``in``); it was paid for by the entry that made the
block, the sample or the sequence, and is not counted beside it.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from ..measurement import Measurement, Measurements
from ..privacy.budget import ApproxDP, Budget, PureDP, part_of

NUMBER = "number of records"
_OF_SOME_RECORDS = ("partition", "subsample")
_SHARED_OUT = ("in sequence", "Gaussian steps")
_MADE_BY = {"sequence": _SHARED_OUT[:1], "Gaussian steps": _SHARED_OUT[1:], "block or sample": _OF_SOME_RECORDS}
"""By where an entry belongs, the entries that make such a place."""


@dataclass(frozen=True)
class Portion:
    """A part of the budget and what it was spent on; of a table also the step that asked for it."""

    what: str
    part: float
    step: str = ""


@dataclass(frozen=True)
class _Entry:
    """An entry of the account, with what was asked inside of what it made."""

    facts: Mapping[str, Any]
    inside: list[_Entry] = field(default_factory=list)

    @property
    def step(self) -> str:
        return str(self.facts.get("step", ""))

    @property
    def query(self) -> str:
        return str(self.facts.get("query", ""))

    @property
    def parts(self) -> list[str]:
        return [str(part) for part in self.facts.get("parts", ())]

    @property
    def noun(self) -> tuple[str, str]:
        """For one and for several. Old files have the name of a class instead."""
        noun = self.facts.get("noun")
        if isinstance(noun, Sequence) and not isinstance(noun, str) and len(noun) == 2:
            return str(noun[0]), str(noun[1])
        name = str(self.facts.get("score") or self.facts.get("test") or self.query or "question")
        words = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", name.lstrip("_")).lower()
        return words, words

    @property
    def is_shared_out(self) -> bool:
        """Whether it is nothing in itself: what is inside of it shares it out."""
        return self.query in _SHARED_OUT and bool(self.inside)

    @property
    def question(self) -> tuple[Any, ...]:
        """What entries that are alike have in common; one with others inside is like no other."""
        return (self.noun, self.parts) if not self.inside else (id(self),)

    @property
    def share(self) -> Budget:
        return Budget.from_dict(dict(self.facts["share"]))


# -- parts of the budget -----------------------------------------------------------------------------------------------


def portions(card: Mapping[str, Any], measurements: Measurements | None = None) -> list[Portion]:
    """The parts of the budget, in the order in which they were spent; what was left over comes last.

    A step is taken apart into its tables when their measurements are at hand: a Laplace table costs in proportion to
    Δ/scale, a Gaussian one to Δ²/scale², Δ being how far a unit moves it. Parts are those that a plan shows
    (:func:`discreet.privacy.budget.part_of`).
    """
    whole = Budget.from_dict(dict(card["budget"]))
    labels = [m.label for m in measurements or () if m.origin == "release"]
    known = {m.label: m for m in measurements or () if m.origin == "release" and labels.count(m.label) == 1}
    out: list[Portion] = []
    top = _tree(card.get("steps", ()))
    parts = _parts(top, whole)
    for alike in _by_step(_paid(top)):
        own = [parts.pop(0) for _ in alike]
        apart = [_apart(entry, part, known) for entry, part in zip(alike, own, strict=True)]
        label = _label(alike)
        tables = [replace(p, step=label) for p in itertools.chain.from_iterable(apart)]
        out += tables if all(apart) else [Portion(label, sum(own))]
    left = 1 - sum(p.part for p in out)
    return [*out, Portion("not used", left)] if left > 0.005 else out


def _parts(entries: Sequence[_Entry], whole: Budget) -> list[float]:
    """What part of the whole each entry of :func:`_paid` is. Many small ε may add up to more than an (ε, δ) that holds
    them all, because they compose in zCDP: then parts are of the ρ within it."""
    shares = [entry.share for entry in entries]
    parts = [part_of(share, whole) for share in shares]
    if sum(parts) > 1:
        parts = [part_of(s.to_zcdp() if isinstance(s, PureDP | ApproxDP) else s, whole) for s in shares]
    out: list[float] = []
    for entry, part in zip(entries, parts, strict=True):
        out += [float(part) * p for p in _parts(entry.inside, entry.share)] if entry.is_shared_out else [float(part)]
    return out


def _apart(entry: _Entry, part: float, tables: Mapping[str, Measurement]) -> list[Portion]:
    """The tables of an entry; none where they are not all known."""
    if entry.inside or not all(label in tables for label in entry.parts):
        return []
    weights = _weights(entry, [tables[label] for label in entry.parts])
    if not all(weights):
        return []
    return [Portion(label, part * w / sum(weights)) for label, w in zip(entry.parts, weights, strict=True)]


def paid_tables(card: Mapping[str, Any], measurements: Iterable[Measurement]) -> list[tuple[str, Measurement, float]]:
    """Every table in the order in which it was measured: the step that asked for it, and its part of the budget."""
    left = [m for m in measurements if m.origin == "release"]
    top = _tree(card.get("steps", ()))
    out: list[tuple[str, Measurement, float]] = []
    for entry, part in zip(_paid(top), _parts(top, Budget.from_dict(dict(card["budget"]))), strict=True):
        own = left[: len(entry.parts)]
        weights = _weights(entry, own)
        if own and [m.label for m in own] == entry.parts and all(weights):
            left = left[len(own) :]
            out += [(entry.step, m, part * w / sum(weights)) for m, w in zip(own, weights, strict=True)]
    return out


def _weights(entry: _Entry, measured: Sequence[Measurement]) -> list[float]:
    """What each table has cost, up to a common factor. How far a unit moves it is said with its draw; old files do not
    say it, and have tables alone, which are all moved alike."""
    draws = [d for d in entry.facts.get("draws", ()) if isinstance(d, Mapping)]
    times = [d.get("times", 1) for d in draws]
    moved: list[Any] = [None] * len(measured)
    if all(type(n) is int and n > 0 for n in times) and sum(times) == len(measured):
        norms = [d.get("l1" if d.get("kind") == "laplace" else "l2_squared") for d in draws]
        moved = [norm for norm, n in zip(norms, times, strict=True) for _ in range(n)]
    known = all(isinstance(norm, int | float) and norm > 0 for norm in moved)
    return [_weight(m, float(norm) if known else 1.0) for m, norm in zip(measured, moved, strict=True)]


def _weight(measurement: Measurement, moved: float) -> float:
    scale = measurement.noise.scale
    if scale <= 0:
        return 0.0
    return moved / scale if measurement.noise.kind == "laplace" else moved / scale**2


def merged(parts: Iterable[Portion], most: int = 12) -> list[Portion]:
    """At most ``most`` portions: the tables of a step are put together, then the smallest ones."""
    shown = list(parts)
    if len(shown) <= most:
        return shown
    together = itertools.groupby(shown, key=lambda p: p.step or id(p))
    shown = [p if rest == [] else Portion(p.step, sum(q.part for q in (p, *rest))) for _, (p, *rest) in together]
    if len(shown) <= most:
        return shown
    by_size = sorted(shown, key=lambda p: -p.part)
    few = {id(p) for p in by_size[most - 1 :] if p.what != "not used"}
    rest = [p for p in shown if id(p) in few]
    others = Portion(f"{len(rest)} more", sum(p.part for p in rest))
    kept = [p for p in shown if id(p) not in few]
    at = next((i for i, p in enumerate(kept) if p.what == "not used"), len(kept))
    return [*kept[:at], others, *kept[at:]]


# -- which entry is part of which --------------------------------------------------------------------------------------


def _tree(steps: Iterable[Mapping[str, Any]]) -> list[_Entry]:
    """The entries that were paid for from the budget itself, the others inside of those that made their place."""
    top: list[_Entry] = []
    every: list[_Entry] = []
    for facts in steps:
        entry = _Entry(facts)
        place = facts.get("in")
        if place is None:
            top.append(entry)
        else:
            makers = [e for e in every if e.query in _MADE_BY.get(str(place), ())]
            number = facts.get("of")  # of the entry that made the place; old files do not say: it was the last one then
            if type(number) is int and 0 < number <= len(every):
                makers = [every[number - 1]]
            if makers:
                makers[-1].inside.append(entry)
        every.append(entry)
    return top


def _paid(entries: Iterable[_Entry]) -> Iterator[_Entry]:
    """Entries whose shares add up. Shares within a sequence do, so they stand for it; what was asked of a block or a
    sample has a price of its own and does not."""
    for entry in entries:
        if entry.is_shared_out:
            yield from _paid(entry.inside)
        else:
            yield entry


def _by_step(entries: Iterable[_Entry]) -> Iterator[list[_Entry]]:
    """Entries of one step are one to a reader; so are those without a step that follow each other and are alike."""
    for _, group in itertools.groupby(entries, lambda entry: entry.step or entry.question):
        yield list(group)


# -- in words ----------------------------------------------------------------------------------------------------------


def describe_steps(steps: Iterable[Mapping[str, Any]], most: int = 8) -> str:
    """All entries of a release in words: each step by its name, with what was asked in it. Equal questions that follow
    each other are counted, and tables are named unless there are more than ``most``."""
    return _text(_tree(steps), most)


def _label(entries: Sequence[_Entry]) -> str:
    """A few words for what may have asked much."""
    first = entries[0]
    names = dict.fromkeys(entry.step for entry in first.inside if entry.step)
    return first.step or (f"{' and '.join(names)}, each on its own records" if names else _text(entries, most=3))


def _text(entries: Iterable[_Entry], most: int, within: str = "") -> str:
    """``within`` is a step whose name was said before."""
    out = []
    for group in _by_step(_paid(entries)):
        name = group[0].step
        alike = itertools.groupby(group, lambda entry: entry.question)
        asked = "; ".join(_asked(list(equal), most) for _, equal in alike)
        if name in ("", within):
            out.append(asked)
        else:
            out.append(name if asked in (name, f"the {name}") or _says_it_all(name, group) else f"{name}: {asked}")
    return "; ".join(out)


def _says_it_all(name: str, group: Sequence[_Entry]) -> bool:
    """Steps of distances bear their names: what was asked in them has one label for all tables."""
    return all(e.noun[1] == "distances" and len(e.parts) == 1 and name.startswith(e.parts[0]) for e in group)


def _asked(alike: Sequence[_Entry], most: int) -> str:
    first, number = alike[0], len(alike)
    if first.query == "subsample" and "rounds" in first.facts:
        return f"{first.facts['rounds']} sums over random samples"
    if first.query in _OF_SOME_RECORDS:
        which = f"{first.facts.get('blocks')} disjoint blocks" if first.query == "partition" else "a random sample"
        return f"{which} ({_text(first.inside, most, first.step) or 'nothing was asked'})"
    if not first.parts:
        return f"{number:,} {first.noun[number > 1]}"
    return (f"{number:,} × " if number > 1 else "") + _tables(first, most)


def _tables(entry: _Entry, most: int) -> str:
    names = entry.parts
    if names == [NUMBER]:
        return f"the {NUMBER}"
    noun = entry.noun[len(names) > 1]
    return f"{len(names):,} {noun}" if len(names) > most else f"{noun} of {', '.join(names)}"
