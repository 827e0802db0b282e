"""The release file: a model, its card and, where the learner allows it, the noisy sums that it follows from.

Whoever has the file can learn the model again, ask how far the noise can have moved an answer, and write a report: all
of it post-processing, which costs no budget. Loading is as safe as for every native file (:mod:`discreet.io.archive`).
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import CostError, DiscreetError, FileFormatError, InputError, NotAReleaseError
from ..files import load_parts
from ..io.archive import Sign
from ..io.limits import DEFAULT_LIMITS, Limits
from ..io.native import save_model
from ..io.reading import shown
from ..learn.certifying import FOUND
from ..measurement import Measurements
from ..models.base import Model
from ..models.records import RandomState
from ..spec import Learned, Spec, plain
from .certificate import Certificate
from .uncertainty import NoiseIntervals, noise_intervals

DRAWS = 40
"""Refits behind an interval: the half-width is then right to about a tenth."""
_REPEATED = ("fit_steps", "iterations", "steps")  # options that say how often the tables are gone over
_SECONDS_A_PASS, _SECONDS_A_CELL = 5e-4, 2e-8
_EARLIER = ("again", "recipe")  # the specification, in files of earlier versions
_KEYS = ("spec", *_EARLIER, "measurements", "run", "stated")


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
        if card.get("origin") not in (None, "release"):
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
        paid = {key: value for key, value in released.release.items() if key != "found"}
        card = {**self.card, FOUND: {**facts, "paid": paid}}
        return replace(self, model=self.model.with_card(card))

    # -- post-processing -------------------------------------------------------------------------------------------

    def refit(self, measurements: Measurements | None = None) -> Model:
        """The model again, from the noisy sums in the file (or from others of the same shape)."""
        spec, kept = self._needed()
        self._check_work()
        model: Model = spec.estimate(kept if measurements is None else measurements, self.model.domain)
        return model

    def intervals(self, level: float = 0.9, draws: int = DRAWS, random_state: RandomState = 0) -> NoiseIntervals:
        """How far the noise can have moved the model's answers. With a graph that was found privately they are for
        this graph; see :mod:`discreet.release.uncertainty` for what they cover."""
        spec, kept = self._needed()
        expected = spec.learner().expected(kept)
        return noise_intervals(self.refit, kept, self.model, level, draws, random_state, expected=expected)

    def interval_seconds(self, draws: int = DRAWS) -> float:
        """About how long :meth:`intervals` takes: one refit is timed, if it was not already."""
        if self._seconds is None:
            begun = time.perf_counter()
            self.refit()
            object.__setattr__(self, "_seconds", time.perf_counter() - begun)
        assert self._seconds is not None
        return self._seconds * (draws + 1)

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
        tables = all(m.clique is not None for m in self.measurements)
        noisy = any(m.noise.variance for m in self.measurements)
        return noisy and (tables or self.spec.learner().expected(self.measurements) is not None)

    def refit_agrees(self, tolerance: float = 1e-6) -> bool:
        """Whether the model is what the spec makes of the noisy sums: then nothing but them is in it."""
        again = self.refit()
        (header, arrays), (header_, arrays_) = self.model.to_archive(), again.to_archive()
        same = (
            all(header[key] == header_[key] for key in ("kind", "domain", "model")) and arrays.keys() == arrays_.keys()
        )
        close = (np.allclose(arrays[k], arrays_[k], rtol=tolerance, atol=tolerance) for k in arrays)
        return same and all(close)

    def _needed(self) -> tuple[Spec, Measurements]:
        if self.spec is None or self.measurements is None:
            raise InputError(
                "this release holds no noisy sums from which its model follows: it cannot be learned again, and has no "
                "noise intervals"
            )
        return self.spec, self.measurements

    # -- files -----------------------------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str], *, sign: Sign | None = None) -> None:
        """Write the file; what carries no guarantee refuses. ``sign``: a ledger's ``signer``."""
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
            release = cls(model, **_opened(*beside))
            object.__setattr__(release, "_limits", limits)
            return release
        except DiscreetError as error:
            raise FileFormatError(f"cannot read {shown(source)}: {str(error)[:500]}") from None


def _opened(header: dict[str, Any], arrays: dict[str, Any]) -> dict[str, Any]:
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
        out["spec"] = Spec.from_dict(_as_given(said, out.get("measurements")))
    return out


def _as_given(said: Any, measured: Measurements | None) -> Any:
    """A method of earlier versions is gone, ``field, searched``: to its noisy tables, the cliques that it found are
    cliques that are given, and its model is that of ``noise_aware``."""
    gone = isinstance(said, dict) and (said.get("family"), said.get("method")) == ("field", "searched")
    if not gone or measured is None or not isinstance(said.get("options"), dict):
        return said
    kept = {k: v for k, v in said["options"].items() if k == "noise"}
    cliques = [list(c) for c in measured.cliques if c]
    return {"family": "field", "method": "noise_aware", "options": {"cliques": cliques, **kept}}
