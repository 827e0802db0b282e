"""``discreet verify``: does a released file hold what it says, and only that?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import CostError, DiscreetError, FileFormatError, ForeignFileError, NotAReleaseError
from ..io.limits import DEFAULT_LIMITS, Limits
from . import options
from .console import progress, say, say_json
from .failures import Exit
from .show import NAMES, ReleasedFile, about_model, is_release, kind_of, statement_of

if TYPE_CHECKING:
    from ..domain import Domain
    from ..measurement import Measurements
    from ..release import Release

_GRAPH = "graph"
FOUND = "certificate"
_FIGURES = (
    "Its figures are noisy numbers, which follow from nothing else in the file: that they are those of the records is "
    "the word of whoever made it."
)
_ORDER = (Exit.SIGNATURE, Exit.NOT_TO_BE_PUBLISHED, Exit.CONTRADICTION, Exit.CHECK_FAILED)
"""Which exit code is taken when there are several problems."""


class Findings:
    """What is to be said about a file, and what is wrong with it, each with the exit code that it leads to."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.problems: list[tuple[Exit, str]] = []

    def wrong(self, problem: str, code: Exit = Exit.CHECK_FAILED) -> None:
        if (code, problem) not in self.problems:  # the card and the tables often say the same
            self.problems.append((code, problem))

    @property
    def code(self) -> Exit:
        return next((code for code in _ORDER if any(code == own for own, _ in self.problems)), Exit.OK)


def verify(
    file: ReleasedFile,
    key: Annotated[
        str | None,
        typer.Option("--key", metavar="PUBLIC", help="The key that must have signed it, or a file with it."),
    ] = None,
    no_refit: Annotated[bool, typer.Option("--no-refit", help="Do not learn the model again to compare.")] = False,
    most_seconds: options.MostSeconds = None,
    as_json: options.Json = False,
) -> None:
    """Check a released file: is it whole, does its guarantee follow from its noise, is nothing private in it?

    From the noise of every step what it costs is computed again; together it must
    be within the guarantee. When the file holds the noisy tables behind a model, the
    model is learned again from them: if it comes out the same, there is nothing
    else in it.

    This shows that what the file says fits together. Whoever makes up a whole file
    can make it fit; only a signature by a key that you trust tells who vouches for
    it (--key; `discreet ledger key` shows the key of a ledger).

    Exit codes: 6 the guarantee does not follow, 7 it must not be published, 8 the
    signature, 1 anything else that is off, 4 no file of ours at all.

    \b
    [bold]Examples[/bold]
      discreet verify model.zip
      discreet verify model.zip --key ed25519:wUrc…
    """
    from ..signing import read_public_key

    if not file.is_file():
        raise FileFormatError(f"there is no file {file}" if not file.exists() else f"{file} is not a file")
    trusted = None if key is None else read_public_key(key)
    found = Findings()
    limits = options.limits_from(most_seconds)
    try:
        _verify(file, trusted, found, limits, refit=not no_refit)
    except (ForeignFileError, CostError):  # there is nothing to check, or too much
        raise
    except NotAReleaseError as error:
        found.wrong(str(error), Exit.NOT_TO_BE_PUBLISHED)
    except FileFormatError as error:
        found.wrong(str(error))
    except DiscreetError as error:
        found.wrong(f"its parts do not fit together: {error}")
    problems = [problem for _, problem in found.problems]
    if as_json:
        say_json({"verified": not problems, "problems": problems, "statement": found.lines})
    else:
        for line in found.lines:
            say(line)
        for problem in problems:
            say(f"PROBLEM: {problem}")
    if problems:
        raise typer.Exit(found.code)


def _verify(file: Path, trusted: str | None, found: Findings, limits: Limits = DEFAULT_LIMITS, *, refit: bool) -> None:
    if file.suffix.lower() == ".json":
        _verify_graph(file, trusted, found)
        return
    from ..io.archive import read_signature

    kind = kind_of(file)
    found.lines.append(f"{file}: whole, the checksum holds; it is {NAMES.get(kind, 'a file of another kind')}")
    if kind == "measurements":
        _verify_measurements(file, found)
    else:
        _verify_model(file, found, limits, refit=refit)
    _verify_signature(*read_signature(file), trusted, found)


def _verify_measurements(file: Path, found: Findings) -> None:
    from ..measurement import Measurements

    released = Measurements.load(file)
    if not released:
        found.wrong("it holds no tables")
        return
    found.lines.append("Tables: " + ", ".join(m.label for m in released))
    found.lines.extend(statement_of(file, released.release))
    _verify_tables(released, found)
    _verify_statement(released.release, released.domain, found, released)


def _verify_model(file: Path, found: Findings, limits: Limits, *, refit: bool) -> None:
    from ..models.records import origin_of
    from ..release import Release
    from ..release.agreement import disagreements
    from ..release.same_model import SAME

    release = Release.load(file, limits)
    card = release.model.card
    found.lines.extend(about_model(file, card))
    if not is_release(card):
        if origin_of(card) != "public":
            found.wrong(
                "it carries no statement of privacy and does not say that it is public knowledge; if it was learned "
                "from private records, it must not be published",
                Exit.NOT_TO_BE_PUBLISHED,
            )
        return
    _verify_statement(release.card, release.model.domain, found, release.measurements, _bought(release, found))
    besides = {} if release.measurements is None else release.measurements.release.get("found", {})
    for disagreement in disagreements(release.card, release.spec, besides):
        found.wrong(disagreement, Exit.CONTRADICTION)
    for key in sorted(set(release.run) & {"data", "ledger", "output"}):
        found.wrong(f"it says where private files lie ({key})")
    if release.measurements is not None:
        _verify_tables(release.measurements, found)
        _verify_statement(release.measurements.release, release.model.domain, found, release.measurements)
        _verify_agreement(release.card, release.measurements.release, found)
    if release.measurements is not None and refit:
        with progress():
            distance = release.refit_distance()
        if distance <= SAME:
            searched = release.graph_was_found
            chosen = " and from the graph that was chosen privately" if searched else ""
            nearly = f" (its probabilities to {distance:.1g}, as another machine rounds)" if distance else ""
            found.lines.append(
                f"The model follows from the noisy tables in the file{chosen}{nearly}: nothing else is in it."
            )
        else:
            found.wrong("the model is not what its specification makes of the noisy tables in the file")


def _bought(release: Release, found: Findings) -> list[Any]:
    """The noise of the certificate, for which the release's own steps have paid. One that was bought by itself has a
    statement of its own, which is checked here."""
    from ..models.marginals import EXACTLY
    from ..privacy.claims import Noised, contradictions

    certificate = release.certificate
    if certificate is None:
        return []
    about = certificate.is_about(release.model)
    if not about:
        found.wrong("its certificate of fit is about another model")
    elif certificate.computed == EXACTLY:
        found.lines.append(f"The certificate of fit is about this model. {_FIGURES}")
    else:
        found.lines.append(
            f"Whether the certificate of fit is about this model was not checked: the model's tables were computed "
            f"{certificate.computed}. {_FIGURES}"
        )
    drawn = [Noised(FOUND, n.noise.kind, n.noise.scale, moves=moves) for n, moves in certificate.drawn]
    if certificate.paid is None:
        return drawn
    if certificate.paid.get("origin") != "release":
        found.wrong("its certificate of fit carries no guarantee", Exit.NOT_TO_BE_PUBLISHED)
    for contradiction in contradictions(certificate.paid, drawn):
        found.wrong(f"its certificate of fit: {contradiction}", Exit.CONTRADICTION)
    return []


def _verify_graph(file: Path, trusted: str | None, found: Findings) -> None:
    from ..learn.graph_files import graph_digest, saved_graph

    document = saved_graph(file)
    card = document.get("release")
    found.lines.append(f"{file}: it is a graph that was found privately")
    found.lines.extend(statement_of(file, card))
    if card.get("origin") != "release":  # type: ignore[union-attr]
        raise NotAReleaseError("this graph carries no privacy guarantee and must not be shown as a release")
    _verify_statement(card, None, found)  # type: ignore[arg-type]
    signature = document.get("signature")
    _verify_signature(graph_digest(document), None if signature is None else str(signature), trusted, found)


def _verify_statement(
    card: Mapping[str, Any],
    domain: Domain | None,
    found: Findings,
    tables: Measurements | None = None,
    more: Iterable[Any] = (),
) -> None:
    """Whether the guarantee follows from the steps and their noise; and the schema's own marks."""
    from ..privacy.claims import contradictions
    from ..report import words

    if words.claim(card):
        found.wrong(
            "its guarantee is the claim of whoever made its noisy tables: it does not follow from anything in the file",
            Exit.CONTRADICTION,
        )
        return
    odd = contradictions(card, [*(noised(tables) if tables is not None else ()), *more])
    for contradiction in odd:
        found.wrong(contradiction, Exit.CONTRADICTION)
    told = "From the noise of its steps, computed again, the guarantee follows."
    if not odd and told not in found.lines:
        found.lines.append(told)
    peeked = {} if domain is None else {k: list(v) for k, v in domain.peeked.items()}
    if domain is not None and dict(card.get("peeked") or {}) != peeked:
        found.wrong("its statement of what was peeked at does not agree with its schema", Exit.CONTRADICTION)
    if domain is not None:
        said = {k: v for k, v in dict(card.get("found_privately") or {}).items() if k in domain}
        if said != {k: list(v) for k, v in domain.found.items()}:
            found.wrong("its statement of what was found privately does not agree with its schema", Exit.CONTRADICTION)
    if card.get("peeked") or peeked:
        found.wrong(
            "levels that were learned by looking at private data are in it: it must not be published as it is",
            Exit.NOT_TO_BE_PUBLISHED,
        )


def _verify_agreement(card: Mapping[str, Any], tables: Mapping[str, Any], found: Findings) -> None:
    """The card is the statement of the tables, and perhaps of steps that came after them."""
    for key in ("budget", "unit", "public_size", "peeked", "found_privately", "delta_for_tests", "composition"):
        if card.get(key) != tables.get(key):
            said = f"its card and its noisy tables do not agree about the {key.replace('_', ' ')}"
            found.wrong(said, Exit.CONTRADICTION)
    steps = list(tables.get("steps") or ())
    if list(card.get("steps") or ())[: len(steps)] != steps:
        found.wrong("its card and its noisy tables do not agree about the steps", Exit.CONTRADICTION)


def _verify_tables(released: Measurements, found: Findings) -> None:
    for m in released:
        if m.origin not in ("release", "public", "claimed"):
            found.wrong(
                f"the table {m.label} is {m.origin}: it carries no guarantee and must not be published",
                Exit.NOT_TO_BE_PUBLISHED,
            )
        elif m.origin == "release" and (m.noise.kind == "none" or not m.noise.scale):
            found.wrong(f"the table {m.label} is said to be a release, but has no noise", Exit.CONTRADICTION)
        elif m.origin == "release" and dict(m.cost) != {"kind": m.noise.kind, "scale": repr(m.noise.scale)}:
            found.wrong(f"the table {m.label} says two things about its noise", Exit.CONTRADICTION)


def noised(tables: Measurements) -> Iterable[Any]:
    """What the tables say of their noise, in plain facts."""
    from ..privacy.claims import Noised

    for m in tables:
        if m.origin == "release":
            cells = None if m.clique is None else m.counts.size
            levels = tuple(m.domain[n].size for n in m.told_of) if m.clique is None and m.told_of else None
            yield Noised(m.label, m.noise.kind, m.noise.scale, cells, levels=levels, parts=math.ceil(1 / m.grid))


def _verify_signature(digest: str, line: str | None, trusted: str | None, found: Findings) -> None:
    """What the signature is worth, in words: without one, or without a key to trust, it proves nothing."""
    from ..signing import Signature

    if line is None:
        if trusted is not None:
            found.wrong(f"it is not signed, and should be by {trusted}", Exit.SIGNATURE)
        found.lines.append(
            "Not signed: whether what it says fits together is all that can be told. A file that was made up as a "
            "whole can fit together too."
        )
        return
    signature = Signature.read(line)
    if signature is None or not signature.holds("release", digest):
        found.wrong("its signature is not one of this file: it was altered after it was signed", Exit.SIGNATURE)
    elif trusted is None:
        found.lines.append(
            f"Signed by {signature.public}, which was not checked against a key that you trust (--key): anybody can "
            "sign with a key of their own."
        )
    elif signature.public != trusted:
        found.wrong(f"it is signed by {signature.public}, not by {trusted}", Exit.SIGNATURE)
    else:
        found.lines.append(
            f"Signed by {trusted}: unaltered since. That the noise was drawn, and from the records, is the word of "
            "who holds that key."
        )
