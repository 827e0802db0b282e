"""From the text of a question to its parts, for :mod:`.language`, where the grammar stands."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import NoReturn

from .conditions import COMPARISONS, MIRRORED, decimal_of
from .errors import InputError

KINDS = {"p": "P", "pr": "P", "map": "MAP", "e": "E", "sd": "SD", "quantile": "QUANTILE"}
NUMBERS = ("E", "SD", "QUANTILE")
"""Questions about the numbers of one column."""

_SPACE = re.compile(r"\s*")
_KIND = re.compile(r"[A-Za-z]+")
_NAME = re.compile(r"""[^\s,()|=<>!"'“”‘’][^\s,()|=<>!]*""")
_INTERVAL = re.compile(r"\[\s*([^\s,()|\[\]]+)\s*,\s*([^\s,()|\[\]]+)\s*([\])])")
_LEVEL = re.compile(r"""[^\s,()|"'“”‘’][^\s,()|]*""")
_ITEM = re.compile(r"""[^\s,()|{}"'“”‘’][^\s,()|{}]*""")
_SIGN = re.compile(r"==?|!=|<=|>=|<|>")
_IN = re.compile(r"(not\s+)?in\s*(?=[{\[])", re.IGNORECASE)
_KNOWN = re.compile(r"known\s*(?=\()", re.IGNORECASE)
_DATE = re.compile(r"\d{4}-\d")
_CLOSING = {'"': '"', "'": "'", "“": "”", "‘": "’"}
_IN_QUOTES = "a name or level with spaces, brackets or signs stands in quotes: \"odd name\"='x y'"
_LONGEST = 10_000
_LONGEST_REASON = 1_000
_WINDOW = 100


class LanguageError(InputError):
    """A question cannot be understood; ``reason`` says why and ``position`` where in ``text``."""

    def __init__(self, reason: str, text: str, start: int, end: int | None = None) -> None:
        reason = reason if len(reason) <= _LONGEST_REASON else f"{reason[:_LONGEST_REASON]}…"  # words may be repeated
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
    """A column and what was written about it: ``level`` after ``=``; ``comparisons`` with numbers; ``levels`` after
    ``in`` or, with ``without``, after ``not in`` and ``!=``; or that it is ``known``."""

    name: Word
    level: Word | None = None
    comparisons: tuple[tuple[str, Word], ...] = ()
    levels: tuple[Word, ...] = ()
    without: bool = False
    known: bool = False

    @property
    def restricts(self) -> bool:
        """Whether it says something of the column other than one level of it."""
        return bool(self.comparisons or self.levels or self.known)


@dataclass(frozen=True)
class Question:
    """A question as it was written; :func:`resolve` gives it a meaning."""

    kind: str
    targets: tuple[Term, ...]
    given: tuple[Term, ...]
    text: str
    quantile: Word | None = None


def parse(text: str) -> Question:
    """Read a question."""
    return Parser(checked_text(text)).question()


def checked_text(text: str) -> str:
    if not isinstance(text, str):
        raise InputError(f"a question is a string such as 'P(lung | smoke=yes)', got {type(text).__name__}")
    if len(text) > _LONGEST:
        raise InputError(f"a question has at most {_LONGEST:,} characters, got {len(text):,}")
    return text


def quoted(word: str, *, is_level: bool = False, is_item: bool = False) -> str:
    """A name, a level after a sign, or one in a set, as it must be written in a question: as it is when it is plain, in
    quotes otherwise."""
    bare = _ITEM if is_item else _LEVEL if is_level else _NAME
    # After "=" another one belongs to the sign, and what begins with a bracket may be read on as a bin: [0, 1).
    if bare.fullmatch(word) and not ((is_level or is_item) and word.startswith(("=", "["))):
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


class Parser:
    def __init__(self, text: str) -> None:
        self.text = text
        self.here = 0

    def question(self) -> Question:
        kind = self.kind()
        self.here += 1
        targets = (self.term(),) if kind == "QUANTILE" else self.terms(last="|")
        quantile = self.quantile(targets[0]) if kind == "QUANTILE" else None
        given: tuple[Term, ...] = ()
        if self.character() == "|":
            self.here += 1
            given = self.terms(last="")
        if self.character() != ")":
            self.fail(self.found("',' or ')'" if given else "',', '=', '|' or ')'"))
        self.here += 1
        if self.character():
            self.fail(f"the question ends before {self.character()!r}; ask one question at a time")
        return Question(kind, targets, given, self.text, quantile)

    def conditions(self) -> tuple[Term, ...]:
        terms = self.terms(last="")
        if self.character():
            self.fail(self.found("','"))
        return terms

    def quantile(self, target: Term) -> Word:
        if self.character() != ",":
            self.fail(f"which quantile? Write a number from 0 to 1, as in QUANTILE({target.name.value}, 0.5)")
        self.here += 1
        return self.word(_NAME, "a number from 0 to 1")

    def kind(self) -> str:
        self.character()
        match = _KIND.match(self.text, self.here)
        kind = KINDS.get(match.group().lower()) if match else None
        start = self.here
        if match:
            self.here = match.end()
        if kind is None or self.character() != "(":
            self.here = start
            self.fail(
                "a question begins with P(, MAP(, E(, SD( or QUANTILE(, as in P(lung | smoke=yes), MAP(lung), E(age | "
                "job), QUANTILE(age, 0.5)"
            )
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
        self.character()
        is_known = _KNOWN.match(self.text, self.here)
        if is_known:
            self.here = is_known.end() + 1
            name = self.word(_NAME, "the name of a column")
            if self.character() != ")":
                self.fail(self.found("')'"))
            self.here += 1
            return Term(name, known=True)
        is_quoted = self.character() in _CLOSING
        name = self.word(_NAME, "the name of a column")
        self.character()
        if is_in := _IN.match(self.text, self.here):
            self.here = is_in.end()
            return self.among(name, without=bool(is_in[1]))
        sign = self.sign()
        if sign in COMPARISONS:
            return self.compared(name, sign, is_number=not is_quoted and _looks_like_a_number(name.value))
        if sign == "!=":
            return Term(name, levels=(self.word(_LEVEL, f"a level of {name.value!r}"),), without=True)
        return Term(name, self.word(_LEVEL, f"a level of {name.value!r}")) if sign else Term(name)

    def sign(self) -> str:
        self.character()
        match = _SIGN.match(self.text, self.here)
        if match is None:
            return ""
        self.here = match.end()
        return match.group()

    def compared(self, first: Word, sign: str, *, is_number: bool) -> Term:
        """After ``name sign``, or ``number sign``, or the beginning of ``number sign name sign number``."""
        second = self.word(_NAME, "the name of a column" if is_number else "a number")
        start = self.here
        again = self.sign()
        if not again:
            return (
                Term(second, comparisons=((MIRRORED[sign], first),))
                if is_number
                else Term(first, None, ((sign, second),))
            )
        if again[0] != sign[0]:
            self.here = start
            self.character()
            self.fail(f"expected a sign in the same direction as {sign}, as in 18 <= age < 65; {_IN_QUOTES}")
        third = self.word(_NAME, "a number")
        return Term(second, comparisons=((MIRRORED[sign], first), (again, third)))

    def among(self, name: Word, *, without: bool) -> Term:
        """After ``name in``: ``{…}``, or a range as bins are printed."""
        start = self.here
        interval = _INTERVAL.match(self.text, start)
        if interval and not without:
            self.here = interval.end()
            low, high = (Word(interval[i], interval.start(i), interval.end(i)) for i in (1, 2))
            return Term(name, comparisons=((">=", low), ("<" if interval[3] == ")" else "<=", high)))
        if self.character() != "{":
            self.fail(self.found("'{'"))
        levels: list[Word] = []
        while not levels or self.character() == ",":
            self.here += 1
            levels.append(self.word(_ITEM, f"a level of {name.value!r}"))
        if self.character() != "}":
            self.fail(self.found("',' or '}'"))
        self.here += 1
        return Term(name, levels=tuple(levels), without=without)

    def word(self, bare: re.Pattern[str], what: str) -> Word:
        opening = self.character()
        start = self.here
        if opening in _CLOSING:
            return self.quotation(start, _CLOSING[opening])
        interval = _INTERVAL.match(self.text, start) if bare in (_LEVEL, _ITEM) else None
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
        if here and here not in ",=|)":
            return f"{reason}; {_IN_QUOTES}"
        return reason

    def fail(self, reason: str) -> NoReturn:
        raise LanguageError(reason, self.text, self.here)


def _looks_like_a_number(word: str) -> bool:
    return decimal_of(word) is not None or bool(_DATE.match(word))
