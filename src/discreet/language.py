"""The query language: ``P(lung, bronc | smoke=yes)``, ``P(dysp=yes)``, ``MAP(lung, tub | xray=yes)``.

    question = ("P" | "MAP") "(" term {"," term} ["|" term {"," term}] ")"
    term     = name ["=" level]

Before the bar stand the columns asked about, each with a level or without; after it, what is given, always with a
level. A name or a level with spaces or with any of ``, ( ) | = < > ! " '`` stands in quotes: ``"odd name"='x y'``;
levels may hold ``= < > !`` without them. A column of numbers takes any number, or a bin as it is printed: ``age=30``,
``age=[18, 65)``.

:func:`parse` knows nothing of models; :func:`resolve` looks names and levels up in a domain. What is wrong is a
:class:`LanguageError`, which shows the text with a mark under the place.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

from .domain import Attribute, Domain
from .errors import InputError, did_you_mean

KINDS = {"p": "P", "pr": "P", "map": "MAP"}

_SPACE = re.compile(r"\s*")
_KIND = re.compile(r"[A-Za-z]+")
_NAME = re.compile(r"""[^\s,()|=<>!"'“”‘’][^\s,()|=<>!]*""")
_INTERVAL = re.compile(r"\[\s*([^\s,()|\[\]]+)\s*,\s*([^\s,()|\[\]]+)\s*([\])])")
_LEVEL = re.compile(r"""[^\s,()|"'“”‘’][^\s,()|]*""")
_EQUALS = re.compile(r"==?")
_CLOSING = {'"': '"', "'": "'", "“": "”", "‘": "’"}
_LONGEST = 10_000
_WINDOW = 100


class LanguageError(InputError):
    """A question cannot be understood; ``reason`` says why and ``position`` where in ``text``."""

    def __init__(self, reason: str, text: str, start: int, end: int | None = None) -> None:
        super().__init__(f"{reason}\n{marked(text, start, end)}")
        self.reason = reason
        self.text = text
        self.position = start

    def __reduce__(self) -> tuple[type[LanguageError], tuple[str, str, int]]:
        return type(self), (self.reason, self.text, self.position)


@dataclass(frozen=True)
class Word:
    """A name or a level as it was written, and where: ``text[start:end]``."""

    value: str
    start: int
    end: int


@dataclass(frozen=True)
class Term:
    """A column, and a level of it if one was written."""

    name: Word
    level: Word | None = None


@dataclass(frozen=True)
class Question:
    """A question as it was written; :func:`resolve` gives it a meaning."""

    kind: str
    targets: tuple[Term, ...]
    given: tuple[Term, ...]
    text: str


@dataclass(frozen=True)
class Target:
    """A column that is asked about: the distribution of it, or the probability of one level."""

    name: str
    level: str | None = None
    code: int | None = None


@dataclass(frozen=True)
class Resolved:
    """A question about a domain: existing columns, labels of their levels, and the codes of these."""

    kind: str
    targets: tuple[Target, ...]
    given: tuple[tuple[str, str], ...]
    evidence: dict[str, int]


def parse(text: str) -> Question:
    """Read a question."""
    if not isinstance(text, str):
        raise InputError(f"a question is a string such as 'P(lung | smoke=yes)', got {type(text).__name__}")
    if len(text) > _LONGEST:
        raise InputError(f"a question has at most {_LONGEST:,} characters, got {len(text):,}")
    return _Parser(text).question()


def resolve(question: Question, domain: Domain) -> Resolved:
    """Look up the names and levels of a question; unknown ones are errors that suggest the nearest."""
    text = question.text
    seen: dict[str, str] = {}
    targets: list[Target] = []
    for term in question.targets:
        attribute = _column(term.name, domain, text, seen, "asked about")
        if term.level is None:
            targets.append(Target(attribute.name))
            continue
        if question.kind == "MAP":
            reason = f"MAP looks for the level of {attribute.name!r} itself; leave the level out, or put it after '|'"
            raise LanguageError(reason, text, term.level.start, term.level.end)
        code = _code(term.level, attribute, text)
        targets.append(Target(attribute.name, attribute.labels[code], code))
    evidence: dict[str, int] = {}
    for term in question.given:
        attribute = _column(term.name, domain, text, seen, "given")
        if term.level is None:
            reason = f"a level of {attribute.name!r} must be given, as in {attribute.name}={attribute.labels[0]}"
            raise LanguageError(reason, text, term.name.start, term.name.end)
        evidence[attribute.name] = _code(term.level, attribute, text)
    given = tuple((name, domain[name].labels[code]) for name, code in evidence.items())
    return Resolved(question.kind, tuple(targets), given, evidence)


def quoted(word: str, *, is_level: bool = False) -> str:
    """A name or level as it must be written in a question: as it is when it is plain, in quotes otherwise."""
    # After "=" another one belongs to the sign, and what begins with a bracket may be read on as a bin: [0, 1).
    if (_LEVEL if is_level else _NAME).fullmatch(word) and not (is_level and word.startswith(("=", "["))):
        return word
    return '"' + word.replace("\\", "\\\\").replace('"', '\\"') + '"'


def marked(text: str, start: int, end: int | None = None) -> str:
    """The text on one line, and under it a mark at the characters from ``start`` to ``end``."""
    end = max(start + 1, end or 0)
    first = max(0, start - _WINDOW // 2)
    last = min(len(text), first + _WINDOW)
    line = "".join(" " if unicodedata.category(c) in ("Cc", "Zl", "Zp") else c for c in text[first:last])
    before, under = line[: start - first], line[start - first : end - first]
    cut, more = ("…" if first else ""), ("…" if last < len(text) else "")
    mark = " " * _columns(cut + before) + "^" * max(1, _columns(under))
    return f"  {cut}{line}{more}\n  {mark}"


def _columns(text: str) -> int:
    """How many columns of a terminal the text takes: East Asian characters take two, combining ones none."""
    wide = sum(1 for c in text if unicodedata.east_asian_width(c) in "WF")
    return len(text) + wide - sum(1 for c in text if unicodedata.category(c) in ("Mn", "Me", "Cf"))


class _Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.here = 0

    def question(self) -> Question:
        kind = self.kind()
        self.here += 1
        targets = self.terms(last="|")
        given: tuple[Term, ...] = ()
        if self.character() == "|":
            self.here += 1
            given = self.terms(last="")
        if self.character() != ")":
            self.fail(self.found("',' or ')'" if given else "',', '=', '|' or ')'"))
        self.here += 1
        if self.character():
            self.fail(f"the question ends before {self.character()!r}; ask one question at a time")
        return Question(kind, targets, given, self.text)

    def kind(self) -> str:
        self.character()
        match = _KIND.match(self.text, self.here)
        kind = KINDS.get(match.group().lower()) if match else None
        start = self.here
        if match:
            self.here = match.end()
        if kind is None or self.character() != "(":
            self.here = start
            self.fail("a question begins with P( or MAP(, as in P(lung | smoke=yes) or MAP(lung | smoke=yes)")
        return kind

    def terms(self, last: str) -> tuple[Term, ...]:
        terms = [self.term()]
        while self.character() == ",":
            self.here += 1
            terms.append(self.term())
        if not last and self.character() == "|":
            self.fail("a question has one '|'; separate what is given by commas")
        return tuple(terms)

    def term(self) -> Term:
        name = self.word(_NAME, "the name of a column")
        self.character()
        match = _EQUALS.match(self.text, self.here)
        if match is None:
            return Term(name)
        self.here = match.end()
        return Term(name, self.word(_LEVEL, f"a level of {name.value!r}"))

    def word(self, bare: re.Pattern[str], what: str) -> Word:
        opening = self.character()
        start = self.here
        if opening in _CLOSING:
            return self.quotation(start, _CLOSING[opening])
        interval = _INTERVAL.match(self.text, start) if bare is _LEVEL else None
        match = interval or bare.match(self.text, start)
        if match is None:
            self.fail(self.found(what))
        self.here = match.end()
        value = f"[{interval[1]}, {interval[2]}{interval[3]}" if interval else match.group()
        return Word(value, start, self.here)

    def quotation(self, start: int, closing: str) -> Word:
        value: list[str] = []
        position = start + 1
        while position < len(self.text) and self.text[position] != closing:
            if self.text[position] == "\\" and self.text[position + 1 : position + 2] in (closing, "\\"):
                position += 1
            value.append(self.text[position])
            position += 1
        if position == len(self.text):
            self.fail(f"the quotation that begins here is never closed by {closing}")
        self.here = position + 1
        return Word("".join(value), start, self.here)

    def character(self) -> str:
        """The next character that is not a space, or nothing at the end."""
        match = _SPACE.match(self.text, self.here)
        self.here = match.end() if match else self.here
        return self.text[self.here : self.here + 1]

    def found(self, expected: str) -> str:
        here = self.character()
        reason = f"expected {expected}, found {here!r}" if here else f"expected {expected}, found the end"
        if here in ("<", ">", "!"):
            return reason + "; only = is understood, as in smoke=yes"
        if here and here not in ",=|)":
            return reason + "; a name or level with spaces, brackets or signs stands in quotes: \"odd name\"='x y'"
        return reason

    def fail(self, reason: str) -> NoReturn:
        raise LanguageError(reason, self.text, self.here)


def _column(word: Word, domain: Domain, text: str, seen: dict[str, str], role: str) -> Attribute:
    name = _lookup(word.value, domain.names)
    if name is None:
        reason = f"no column {word.value!r} in the domain{_hint(word.value, domain.names)}"
        raise LanguageError(reason, text, word.start, word.end)
    if name in seen:
        both = f"{name!r} is both asked about and given" if seen[name] != role else f"{name!r} is {role} twice"
        raise LanguageError(f"{both}; name each column once", text, word.start, word.end)
    seen[name] = role
    return domain[name]


def _code(word: Word, attribute: Attribute, text: str) -> int:
    label = _lookup(word.value, attribute.labels)
    if label is None and attribute.levels and isinstance(attribute.levels[0], bool):
        label = _lookup(word.value.lower(), attribute.labels)
    try:
        return attribute.code(word.value if label is None else label)
    except InputError:
        reason = f"column {attribute.name!r} has no level {word.value!r}"
        if attribute.is_numeric:
            bins = attribute.labels[: len(attribute.edges) - 1]
            reason += f"; give a number from {bins[0][1:].split(',')[0]} to {bins[-1][:-1].split(', ')[1]}"
            others = attribute.labels[len(bins) :]
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
