"""Errors: each names the thing, its public value and the way out, and never echoes a private value."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LONGEST = 4_000
"""Characters of a message: a name in a file may be as long as the file."""


class DiscreetError(Exception):
    """Base of every error that discreet raises on purpose: ``except DiscreetError as error: print(error)``."""

    def __str__(self) -> str:
        said = super().__str__()
        return said if len(said) <= LONGEST else f"{said[: LONGEST // 2]} […] {said[-LONGEST // 2 + 5 :]}"


class SchemaError(DiscreetError, ValueError):
    """The schema (public knowledge about the columns) is missing, malformed or does not fit."""


class InputError(DiscreetError, ValueError):
    """An argument is wrong: a name, a shape, a number out of its range."""


class BudgetError(DiscreetError, ValueError):
    """The privacy budget is malformed, of the wrong notion, or does not suffice. Nothing was spent."""


class LedgerError(DiscreetError):
    """The ledger file cannot be used, or does not verify."""


class DamagedLedgerError(LedgerError):
    """The ledger file is damaged, was altered or put back, or is no ledger: nothing can be charged to it."""


class CostError(DiscreetError):
    """The work was forecast to exceed the memory limit and was refused before any of it was done."""


class EvidenceError(DiscreetError, ValueError):
    """The evidence has probability zero under the model."""


class FileFormatError(DiscreetError, ValueError):
    """A file is not what it claims to be: truncated, altered, too large, or of another format."""


class ForeignFileError(FileFormatError):
    """A file that is none of ours: another format altogether, not a damaged one."""


class EngineError(DiscreetError):
    """The engine that holds the rows failed: the disk is full, memory is short, a cluster lost its tasks."""


class MissingPackageError(DiscreetError, ImportError):
    """A package is not installed that not everybody needs; the message says what to install."""


class NotAReleaseError(DiscreetError):
    """A value that carries no privacy guarantee was about to be saved or shown as a release."""


WEIGHTS_REFUSED = (
    "survey weights are refused: one record would count as often as its weight says, so the noise would have to grow "
    "with the largest weight there can be; and weights are computed from other people's answers, so that one person "
    "would move the records of others, which no noise here covers. Fit without weights, and put what is publicly known "
    "about the population (say, its shares by age and sex) as [[totals]] with proportions into the schema"
)


def counted(number: int, thing: str) -> str:
    """A number of things in words: ``1 column``, ``3 columns``, ``12,000 records``."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A hint for a public name that does not exist: ``"; did you mean 'smoke'?"``, or the known names when few."""
    known = [str(k) for k in known]
    if len(name) > 200 or len(known) > 2000:  # looking for a near one would take seconds
        return ""
    close = difflib.get_close_matches(name, known, n=1)
    if close:
        return f"; did you mean {close[0]!r}?"
    if 0 < len(known) <= 12:
        return "; known: " + ", ".join(repr(k[:200]) for k in known)
    return ""
