"""The query language: ``P(lung, bronc | smoke=yes)``, ``E(age | job)``, ``MAP(lung, tub | xray=yes)``.

    question = ("P" | "MAP" | "E" | "SD") "(" terms ["|" terms] ")"  |  "QUANTILE" "(" name "," number ["|" terms] ")"
    terms    = term {"," term}
    term     = name ["=" level | "!=" level | ["not"] "in" "{" level {"," level} "}" | "in" bin | sign number]
             | number sign name [sign number]  |  "known" "(" name ")"
    sign     = "<" | "<=" | ">" | ">="

Before the bar stand the columns asked about; after it, what is given. A column by itself after the bar asks for a whole
table: ``P(age | job)``. E (the mean), SD (the standard deviation) and QUANTILE are about the numbers of one column, as
far as they are known. Comparisons are about numbers; ``=`` and ``in`` name levels, where a number stands for the bin
that it is in. A name or a level with spaces or with any of ``, ( ) | = < > ! " '`` stands in quotes: ``"odd
name"='x y'``; after ``=`` and ``!=``, levels may hold ``= < > !`` without them.

:func:`parse` knows nothing of models; :func:`resolve` looks names and levels up in a domain. What is wrong is a
:class:`LanguageError`, which shows the text with a mark under the place.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass, replace

from .conditions import MIRRORED, Condition, among, comparison, decimal_of, is_calendar, known, number_line
from .domain import Attribute, Domain
from .errors import InputError, did_you_mean
from .question import NUMBERS, LanguageError, Parser, Question, Term, Word, checked_text, parse, quoted

__all__ = ["NUMBERS", "LanguageError", "Resolved", "Target", "conditions", "parse", "quoted", "resolve"]


@dataclass(frozen=True)
class Target:
    """A column that is asked about: the distribution of it, or the probability of one level or of a condition."""

    name: str
    level: str | None = None
    code: int | None = None
    condition: Condition | None = None

    @property
    def event(self) -> str | Condition | None:
        return self.level if self.condition is None else self.condition


@dataclass(frozen=True)
class Resolved:
    """A question about a domain: existing columns, labels of their levels, and the codes of these. ``given`` has a
    label or a condition for each column, ``tables`` are the columns that are given with every level of them."""

    kind: str
    targets: tuple[Target, ...]
    given: tuple[tuple[str, str | Condition], ...]
    evidence: dict[str, int]
    tables: tuple[str, ...] = ()
    quantile: float | None = None


def resolve(question: Question, domain: Domain) -> Resolved:
    """Look up the names and levels of a question; unknown ones are errors that suggest the nearest."""
    seen: dict[str, tuple[str, bool]] = {}
    targets: dict[str, Target] = {}
    for term in question.targets:
        target = _target(term, question, domain, seen)
        before = targets.get(target.name)
        if before is not None and before.condition is not None and target.condition is not None:
            target = Target(target.name, condition=before.condition.meet(target.condition))
        targets[target.name] = target
    given, tables = _given(question.given, question.text, domain, seen)
    if tables and question.kind == "MAP":
        word = next(term.name for term in question.given if term.level is None and not term.restricts)
        attribute = domain[tables[0]]
        reason = f"a level of {attribute.name!r} must be given, as in {attribute.name}={attribute.labels[0]}"
        raise LanguageError(reason, question.text, word.start, word.end)
    evidence = {name: domain[name].codes[said] for name, said in given.items() if isinstance(said, str)}
    quantile = _quantile(question)
    return Resolved(question.kind, tuple(targets.values()), tuple(given.items()), evidence, tables, quantile)


def conditions(text: str, domain: Domain) -> dict[str, str | Condition]:
    """What is said of columns, as after the bar of a question: ``age >= 40, sex in {M}``."""
    given, tables = _given(Parser(checked_text(text)).conditions(), text, domain, {})
    if tables:
        start = max(text.find(tables[0]), 0)
        reason = f"say which values of {tables[0]!r} are wanted, as in {tables[0]}={domain[tables[0]].labels[0]}"
        raise LanguageError(reason, text, start, start + len(tables[0]))
    return given


def _target(term: Term, question: Question, domain: Domain, seen: dict[str, tuple[str, bool]]) -> Target:
    text, kind = question.text, question.kind
    attribute = _column(term, domain, text, seen, "asked about")
    word = term.level or (term.levels[0] if term.levels else term.name)
    if kind in NUMBERS:
        if term.level is not None or term.restricts:
            reason = f"{kind} asks about the numbers of {attribute.name!r}; what is given stands after '|'"
            raise LanguageError(reason, text, word.start, word.end)
        if number_line(attribute) is None or is_calendar(attribute):
            holds = "dates" if is_calendar(attribute) else "categories"
            reason = f"column {attribute.name!r} holds {holds}, and {kind} is about numbers"
            raise LanguageError(reason, text, word.start, word.end)
        if len(question.targets) > 1:
            second = question.targets[1].name
            reason = f"{kind} asks about one column at a time; what is given stands after '|'"
            raise LanguageError(reason, text, second.start, second.end)
    if kind == "MAP" and (term.level is not None or term.restricts):
        reason = f"MAP looks for the level of {attribute.name!r} itself; leave the level out, or put it after '|'"
        raise LanguageError(reason, text, word.start, word.end)
    if term.restricts:
        return Target(attribute.name, condition=_condition(term, attribute, text))
    if term.level is None:
        return Target(attribute.name)
    code = _code(term.level, attribute, text)
    return Target(attribute.name, attribute.labels[code], code)


def _given(
    terms: Iterable[Term], text: str, domain: Domain, seen: dict[str, tuple[str, bool]]
) -> tuple[dict[str, str | Condition], tuple[str, ...]]:
    given: dict[str, str | Condition] = {}
    tables: list[str] = []
    for term in terms:
        attribute = _column(term, domain, text, seen, "given")
        name = attribute.name
        if term.restricts:
            found, before = _condition(term, attribute, text), given.get(name)
            given[name] = before.meet(found) if isinstance(before, Condition) else found
        elif term.level is None:
            tables.append(name)
        else:
            given[name] = attribute.labels[_code(term.level, attribute, text)]
    return given, tuple(tables)


def _condition(term: Term, attribute: Attribute, text: str) -> Condition:
    name = quoted(attribute.name)
    if term.known:
        return among(attribute, known(attribute), f"known({name})")
    if term.levels:
        codes = frozenset(_code(word, attribute, text) for word in term.levels)
        said = [quoted(attribute.labels[code], is_item=True) for code in sorted(codes)]
        if term.without:
            codes = frozenset(range(attribute.size)) - codes
        if not codes:
            first, last = term.levels[0], term.levels[-1]
            raise LanguageError(f"this leaves no level of column {attribute.name!r}", text, first.start, last.end)
        sign = "not in" if term.without else "in"
        one = term.without and len(said) == 1
        return among(attribute, codes, f"{name} != {said[0]}" if one else f"{name} {sign} {{{', '.join(said)}}}")
    found: Condition | None = None
    for sign, word in term.comparisons:
        try:
            part = comparison(attribute, sign, word.value, f"{name} {sign} {quoted(word.value)}")
        except InputError as error:
            level = f"; for a level, write {name}={quoted(sign + word.value, is_level=True)}"
            hint = level if sign + word.value in attribute.codes else ""
            raise LanguageError(f"{error}{hint}", text, word.start, word.end) from None
        found = part if found is None else found.meet(part)
    assert found is not None
    if len(term.comparisons) == 2:
        (below, low), (above, high) = term.comparisons
        ends = quoted(low.value), quoted(high.value)
        found = replace(found, text=f"{ends[0]} {MIRRORED[below]} {name} {above} {ends[1]}")
    if not found.codes or found.low >= found.high:
        first, last = term.comparisons[0][1], term.comparisons[-1][1]
        start, end = min(first.start, last.start), max(first.end, last.end)
        raise LanguageError(f"no value of column {attribute.name!r} lies between these", text, start, end)
    return found


def _quantile(question: Question) -> float | None:
    word = question.quantile
    if word is None:
        return None
    number = decimal_of(word.value)
    if number is None or not 0 <= number <= 1:
        reason = f"a quantile is a number from 0 to 1, as in QUANTILE({question.targets[0].name.value}, 0.5)"
        raise LanguageError(reason, question.text, word.start, word.end)
    return float(number)


def _column(term: Term, domain: Domain, text: str, seen: dict[str, tuple[str, bool]], role: str) -> Attribute:
    word = term.name
    name = _lookup(word.value, domain.names)
    if name is None:
        reason = f"no column {word.value[:80]!r} in the domain{_hint(word.value, domain.names)}"
        raise LanguageError(reason, text, word.start, word.end)
    before, restricted = seen.get(name, (role, True))
    # Several conditions are all to hold; and what is asked about may be given in part: E(age | age >= 40).
    if name in seen and not (term.restricts and (restricted or before != role)):
        both = f"{name!r} is both asked about and given" if before != role else f"{name!r} is {role} twice"
        raise LanguageError(f"{both}; name each column once", text, word.start, word.end)
    seen[name] = (role, term.restricts)
    return domain[name]


def _code(word: Word, attribute: Attribute, text: str) -> int:
    label = _lookup(word.value, attribute.labels)
    if label is None and attribute.levels and isinstance(attribute.levels[0], bool):
        label = _lookup(word.value.lower(), attribute.labels)
    try:
        return attribute.code(word.value if label is None else label)
    except InputError:
        reason = f"column {attribute.name!r} has no level {word.value[:80]!r}"
        if attribute.is_numeric:
            bins = attribute.labels[: attribute.bins]
            reason += f"; give a number from {bins[0][1:].split(',')[0]} to {bins[-1][:-1].split(', ')[1]}"
            others = attribute.labels[len(bins) + len(attribute.heaps) :]
            reason += f", or {' or '.join(map(repr, others))}" if others else ""
        else:
            reason += _hint(word.value, attribute.labels)
        raise LanguageError(reason, text, word.start, word.end) from None


def _lookup(word: str, known: Iterable[str]) -> str | None:
    """The known word that is equal, or the only one that is equal up to how Unicode composes its letters."""
    same = [k for k in known if k == word]
    if same:
        return same[0]
    composed = unicodedata.normalize("NFC", word)
    same = [k for k in known if not k.isascii() and unicodedata.normalize("NFC", k) == composed]
    return same[0] if len(same) == 1 else None


def _hint(word: str, known: Iterable[str]) -> str:
    """The same word in other letter case, else the nearest."""
    known = list(known)
    same = [k for k in known if k.casefold() == word.casefold()]
    return f"; did you mean {same[0]!r}?" if same else did_you_mean(word, known)
