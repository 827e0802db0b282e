"""The release file: a model, its card and, where the learner allows it, the noisy sums that it follows from.

Whoever has the file can learn the model again, ask how far the noise can have moved an answer, and write a report: all
of it post-processing, which costs no budget. Loading is as safe as for every native file (:mod:`discreet.io.archive`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from .. import markup
from ..claimed import CLAIMED
from ..errors import CostError, DiscreetError, FileFormatError, InputError, NotAReleaseError
from ..files import load_parts
from ..io.archive import Sign
from ..io.limits import DEFAULT_LIMITS, Limits
from ..io.native import save_model
from ..io.reading import shown
from ..learn.certifying import FOUND
from ..learn.fields.coordinates import MOST_INTERACTIONS, interactions
from ..learn.fields.noise_aware import PROBES_OF_FIRST_VERSION
from ..measurement import Measurements
from ..methods import collective_of_first_version
from ..models.base import Model
from ..models.records import RandomState
from ..privacy.budget import Budget
from ..privacy.unit import PrivacyUnit
from ..spec import Learned, Spec, plain
from .certificate import Certificate
from .same_model import SAME, distance
from .together import Together
from .uncertainty import NoiseIntervals, intervals_at_once, noise_intervals

DRAWS = 40
"""Refits behind an interval: the half-width is then right to about a tenth."""
_REPEATED = ("fit_steps", "iterations", "steps")  # options that say how often the tables are gone over
_SECONDS_A_PASS, _SECONDS_A_CELL = 5e-4, 2e-8
_SECONDS_AT_ONCE, _SECONDS_A_SQUARE = 1e-6, 9e-10
"""Measured on one core: of a draw, by cells of the junction tree and by the square of the cells of all tables."""
_EARLIER = ("again", "recipe")  # the specification, in files of earlier versions
_KEYS = ("spec", *_EARLIER, "measurements", "run", "stated")


_reporters: list[Callable[..., None]] = []


def writes_reports(function: Callable[..., None]) -> Callable[..., None]:
    """What :meth:`Release.report` calls: pages are made further out, of releases, and say so here."""
    _reporters.append(function)
    return function


@dataclass(frozen=True, eq=False)
class Release:
    """What ``discreet fit`` writes: all of it public.

    ``Release.of(spec.learn(curator)).save("model.zip")``; and whoever has the file::

        release = Release.load("model.zip")
        print(release.model.ask("P(lung | smoke=yes)"), release.intervals().marginal("lung"))

    Parameters
    ----------
    model:
        With its card: who is protected, how far, what was spent on what.
    spec:
        How it was learned: a :class:`discreet.Spec`.
    measurements:
        The noisy sums from which the spec makes the model; None where the learner asks the rows step by step.
    run:
        What was said on the command line or in the run file, but for the places of files.
    stated:
        What the curator says about the release (name, intended use, …), in the registry's field names.
    """

    model: Model
    spec: Spec | None = None
    measurements: Measurements | None = None
    run: Mapping[str, Any] = field(default_factory=dict)
    stated: Mapping[str, Any] = field(default_factory=dict)
    _seconds: float | None = field(default=None, init=False, repr=False)
    _limits: Limits = field(default=DEFAULT_LIMITS, init=False, repr=False)

    @classmethod
    def of(
        cls, learned: Learned, run: Mapping[str, Any] | None = None, stated: Mapping[str, Any] | None = None
    ) -> Release:
        """Put together what was learned and what was said."""
        return cls(learned.model, learned.spec, learned.measurements, dict(run or {}), stated or {})

    @property
    def card(self) -> Mapping[str, Any]:
        """The model's card; an error when it says that nothing was protected."""
        card = self.model.card
        if card is None or "budget" not in card:
            raise NotAReleaseError("this model carries no statement of privacy, so there is no release to speak of")
        if card.get("origin") not in (None, "release", CLAIMED):
            raise NotAReleaseError(
                f"this model carries no privacy guarantee (its origin is {str(card['origin'])[:20]!r}) and must not be "
                "shown as a release"
            )
        return card

    @cached_property
    def certificate(self) -> Certificate | None:
        """How far the model is from the records, where that was paid for: ``print(release.certificate)``."""
        facts = (self.model.card or {}).get(FOUND)
        return None if facts is None else Certificate.from_dict(facts)

    def certified(self, released: Measurements) -> Release:
        """The same release with a certificate that was bought for it:
        ``release.certified(certify_later(release.model, unit, budget).run(curator))``."""
        facts = released.found.get(FOUND)
        if not isinstance(facts, Mapping):
            raise InputError("these are not the answers of a certificate of fit; see discreet.learn.certifying")
        if released.release.get("origin") != "release":
            raise NotAReleaseError(
                "this certificate was made without protection, from exact counts, and cannot be part of a release"
            )
        paid = {key: value for key, value in released.release.items() if key != "found"}
        card = {**self.card, FOUND: {**facts, "paid": paid}}
        return replace(self, model=self.model.with_card(card))

    def _repr_html_(self) -> str:
        """What it is, for notebooks."""
        model, card = self.model, self.model.card or {}
        rows = [["columns", len(model.domain)], ["edges", len(model.edges)]]
        if "budget" in card:
            rows += [["guarantee", Budget.from_dict(dict(card["budget"]))], ["protects", _protected(card)]]
        rows += [["method", card.get("method", "not stated")]]
        notes = [str(card.get("caution", "")), *([] if self.certificate is None else self.certificate.lines())]
        return markup.table(f"A release: a model of kind {model.kind}", (), rows, notes, labels=2)

    def report(
        self, path: str | os.PathLike[str], *, title: str | None = None, level: float = 0.9, draws: int = DRAWS
    ) -> None:
        """Write a page about it, as `discreet report` does: one HTML file that needs no network."""
        if not _reporters:
            raise InputError("take Release from discreet (`from discreet import Release`): it brings the pages along")
        _reporters[-1](self, path, title=title, level=level, draws=draws)

    # -- post-processing -------------------------------------------------------------------------------------------

    def refit(self, measurements: Measurements | None = None) -> Model:
        """The model again, from the noisy sums in the file (or from others of the same shape)."""
        spec, kept = self._needed()
        self._check_work()
        model: Model = spec.estimate(kept if measurements is None else measurements, self.model.domain)
        return model

    def intervals(self, level: float = 0.9, draws: int = DRAWS, random_state: RandomState = 0) -> NoiseIntervals:
        """How far the noise can have moved the model's answers; and where the graph was found, how far answers that
        rest on it may be off. See :mod:`discreet.release.uncertainty` for what they cover."""
        spec, kept = self._needed()
        if self._at_once:
            self._check_work()
            many = partial(spec.estimates, domain=self.model.domain)
            found = intervals_at_once(many, kept, self.model, level, draws, random_state)
        else:
            expected = spec.learner().expected(kept)
            found = noise_intervals(self.refit, kept, self.model, level, draws, random_state, expected=expected)
        return replace(found, together=self.together)

    @cached_property
    def together(self) -> Together | None:
        """What was measured together: answers about other columns rest on the graph, or on the model's form."""
        if self.measurements is None:
            return None
        return Together.of(self.model, self.measurements, self.certificate, self.graph_was_found)

    def interval_seconds(self, draws: int = DRAWS) -> float:
        """About how long :meth:`intervals` takes; where that does not follow from the size of the model, or this is
        too large for refits at once, one refit is timed, if it was not already."""
        tables = [m for m in self._needed()[1] if m.told_of]
        shapes = [m.counts.shape for m in tables]
        if self._at_once and interactions([m.told_of or () for m in tables], shapes) <= MOST_INTERACTIONS:
            cells = sum(m.counts.size for m in tables)
            return draws * (_SECONDS_AT_ONCE * self.model.forecast.total_cells + _SECONDS_A_SQUARE * cells**2)
        if self._seconds is None:
            begun = time.perf_counter()
            self.refit()
            object.__setattr__(self, "_seconds", time.perf_counter() - begun)
        assert self._seconds is not None
        return self._seconds * (draws + 1)

    @property
    def _at_once(self) -> bool:
        spec, kept = self._needed()
        return spec.learner().at_once and all(m.told_of is not None for m in kept)

    @property
    def refit_seconds(self) -> float:
        """At least about how long one refit takes, by what the recipe asks for: whoever made the file may have asked
        for ten million steps."""
        spec, kept = self._needed()
        asked = [spec.options.get(name) for name in _REPEATED]
        passes = max((n for n in asked if isinstance(n, int)), default=1)
        return passes * (_SECONDS_A_PASS + _SECONDS_A_CELL * sum(m.counts.size for m in kept))

    def _check_work(self) -> None:
        seconds, most = self.refit_seconds, self._limits.refit_seconds
        if seconds > most:
            raise CostError(
                f"to learn this model again takes {seconds:,.0f} seconds or more by the number of steps that the file "
                f"asks for, and the limit is {most:,}; if you trust the file, raise it: --most-seconds {seconds:.0f}, "
                f"or Release.load(path, Limits(refit_seconds={seconds:.0f}))"
            )

    @property
    def graph_was_found(self) -> bool:
        """Whether the graph was found privately: intervals then take it as it is."""
        found = {} if self.measurements is None else self.measurements.found
        return (self.spec is not None and self.spec.learner().finds_graph) or "cliques" in found or "parents" in found

    @property
    def has_intervals(self) -> bool:
        """Whether :meth:`intervals` can be asked for."""
        if self.spec is None or self.measurements is None:
            return False
        tables = all(m.told_of is not None for m in self.measurements)
        noisy = any(m.noise.variance for m in self.measurements)
        return noisy and (tables or self.spec.learner().expected(self.measurements) is not None)

    def refit_agrees(self) -> bool:
        """Whether the model is what the spec makes of the noisy sums: then nothing but them is in it."""
        return self.refit_distance() <= SAME

    def refit_distance(self) -> float:
        """How far the model is from the one that the spec makes of the noisy sums here; see :func:`distance`."""
        return distance(self.model, self.refit())

    def _needed(self) -> tuple[Spec, Measurements]:
        if self.spec is None or self.measurements is None:
            raise InputError(
                "this release holds no noisy sums from which its model follows: it cannot be learned again, and has no "
                "noise intervals"
            )
        return self.spec, self.measurements

    # -- files -----------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], *, sign: Sign | None = None) -> None:
        """Write the file; what carries no guarantee refuses. ``sign``: a ledger's ``signer``.

        As everything that saves in Python it replaces a file of that name, all at once, but for a ledger or a private
        key: by the time that a program saves, what it saves is paid for. The command line asks before anything is spent
        (`--force`).
        """
        _ = self.card
        if Path(path).suffix.lower() != ".zip":
            raise InputError(f"a release is a .zip file, which keeps everything; got {os.fspath(path)!r}")
        measured, arrays = (None, {}) if self.measurements is None else self.measurements.to_archive()
        beside = {
            "spec": None if self.spec is None else self.spec.to_dict(),
            "measurements": measured,
            "run": plain(dict(self.run)),
            "stated": plain(dict(self.stated)),
        }
        save_model(self.model, path, (beside, arrays), sign)

    @classmethod
    def load(cls, source: str | os.PathLike[str] | bytes, limits: Limits = DEFAULT_LIMITS) -> Release:
        """Read a release, or the file of a model alone. It may come from anywhere."""
        model, beside = load_parts(source, limits)
        if beside is None:
            return cls(model)
        try:
            release = cls(model, **_opened(*beside, model.card or {}))
            object.__setattr__(release, "_limits", limits)
            return release
        except DiscreetError as error:
            raise FileFormatError(f"cannot read {shown(source)}: {str(error)[:500]}") from None


def _protected(card: Mapping[str, Any]) -> str:
    return str(PrivacyUnit.from_dict(dict(card["unit"]))) if "unit" in card else "not stated"


def _opened(header: dict[str, Any], arrays: dict[str, Any], card: Mapping[str, Any]) -> dict[str, Any]:
    for key in header:
        if key not in _KEYS:
            raise FileFormatError(f"its release part has the unknown key {key[:60]!r}")
    out: dict[str, Any] = {}
    for key in ("run", "stated"):
        if not isinstance(header.get(key), dict | None):
            raise FileFormatError(f"its {key} is not a table")
        out[key] = header.get(key) or {}
    measured = header.get("measurements")
    if measured is not None:
        if not isinstance(measured, dict):
            raise FileFormatError("its measurements are not described")
        out["measurements"] = Measurements.from_archive(measured, arrays)
    elif arrays:
        raise FileFormatError("it holds arrays that nothing describes")
    said = next((header[key] for key in ("spec", *_EARLIER) if header.get(key) is not None), None)
    if said is not None:
        out["spec"] = Spec.from_dict(_as_given(said, out.get("measurements"), card))
    return out


def _as_given(said: Any, measured: Measurements | None, card: Mapping[str, Any]) -> Any:
    """What a file of an earlier version asks for, in words of today: what was said then, and what went without saying.

    ``field, searched`` is gone: to its noisy tables, the cliques that it found are cliques that are given, and its
    model is that of ``noise_aware``, whose first version saw noise through fewer vectors. ``field, collective`` had
    other defaults; its card did not name the noise's law.
    """
    if not isinstance(said, dict) or measured is None or not isinstance(said.get("options"), dict):
        return said
    options, which = said["options"], (said.get("family"), said.get("method"))
    seen_at_first = {"probes": PROBES_OF_FIRST_VERSION}
    if which == ("field", "searched"):
        kept = {k: v for k, v in options.items() if k == "noise"}
        cliques = [list(c) for c in measured.cliques if c]
        return {"family": "field", "method": "noise_aware", "options": {"cliques": cliques, **kept, **seen_at_first}}
    if which == ("field", "noise_aware") and "probes" not in {**card, **options}:
        return {**said, "options": {**options, **seen_at_first}}
    if which == ("field", "collective") and "likelihood" not in card:
        return {**said, "options": collective_of_first_version(options)}
    return said
