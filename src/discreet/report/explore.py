"""A page on this machine to explore a model: click what is given, and see the other columns move.

Who may ask is decided in ``local.py``. It holds one model. It reads no rows: there is no way to hand it any.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from functools import partial
from threading import Lock
from typing import Any

from bottle import HTTPResponse

from ..claimed import CLAIMED
from ..errors import EvidenceError, InputError, counted
from ..models.base import Model
from ..release.uncertainty import NoiseIntervals
from . import words
from .drawing import drawn_edges, graph_svg
from .levels import percent, percents
from .local import LocalPage, in_words
from .local import page as served
from .page import NAMES, example_question
from .pages import resource, template


class Explorer(LocalPage):
    """A model behind a page.

    With ``intervals`` (of this model) the page says of every number how far noise can have moved it.
    """

    def __init__(
        self, model: Model, *, intervals: NoiseIntervals | None = None, title: str | None = None, port: int = 0
    ) -> None:
        self.model = model
        self.intervals = intervals
        self.title = title or f"{NAMES.get(model.kind, 'A model')} of {counted(len(model.domain), 'column')}"
        self._asking = Lock()  # models cache beliefs: one question at a time
        self._latest = 0  # how often beliefs were asked for: what noise did to older ones is no longer of interest
        super().__init__("explore", port)
        self.routes.get("/", callback=self._show)
        asked = {"/beliefs": self.beliefs, "/noise": self.noise, "/map": self.most_probable, "/ask": self.ask}
        for path, answer in asked.items():
            self.routes.post(path, callback=partial(in_words, answer))

    # -- what the page can ask -----------------------------------------------------------------------------------------

    def _show(self) -> HTTPResponse:
        nonce = secrets.token_urlsafe(12)
        return served(self.page(nonce), nonce)

    def page(self, nonce: str) -> str:
        card = self.model.card
        strength = self.model.edge_strength()
        is_release = card is not None and "budget" in card and card.get("origin") in ("release", CLAIMED)
        return str(
            template("explore.html.j2").render(
                title=self.title,
                nonce=nonce,
                style=resource("style.css"),
                script=resource("explore.js"),
                guarantee=words.guarantee(card) if is_release and card is not None else [],
                caution=(card or {}).get("caution", ""),
                how_near=words.certificate_lines(card or {}),
                graph=graph_svg(self.model, strength),
                columns=[{"name": a.name, "labels": list(a.labels)} for a in self.model.domain.attributes],
                example=example_question(self.model),
                level="" if self.intervals is None else f"{100 * self.intervals.level:g}\N{NO-BREAK SPACE}%",
                drawn=len(drawn_edges(self.model, strength)),
                edges=len(self.model.edges),
            )
        )

    def beliefs(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """P(column | given) of every column that is not given, and how probable what is given is."""
        given = _given(request)
        with self._asking:
            self._latest += 1
            answers = {name: self.model.marginal(name, given) for name in self._free(given)}
            probability = self.model.probability(given) if given else 1.0
        tables = {name: answer.probabilities.tolist() for name, answer in answers.items()}
        return {
            "marginals": tables,
            "texts": {name: [percent(p) for p in table] for name, table in tables.items()},
            "probability": percent(float(probability)),
            "method": next(iter({a.method for a in answers.values()} - {"exact"}), "exact"),
        }

    def noise(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """How far noise can have moved these beliefs. Every refit is asked, so a later click goes before it: then, and
        where there are no intervals, there is nothing to say."""
        given = _given(request)
        if self.intervals is None:
            return {}
        names, asked = self._free(given), self._latest
        out: dict[str, dict[str, Any]] = {}
        for name in names:
            try:
                with self._asking:
                    if self._latest != asked:
                        return {}
                    found = self.intervals.marginal(name, given)
            except EvidenceError:  # under some noise what is given cannot be
                return {}
            numbers = {"lower": found.lower.tolist(), "upper": found.upper.tolist()}
            out[name] = {"texts": percents(found), **numbers, "why": found.note}
        return {"noise": out}

    def most_probable(self, request: Mapping[str, Any]) -> dict[str, Any]:
        given = _given(request)
        with self._asking:
            return {"text": repr((self.intervals or self.model).map(given=given))}

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        question = request.get("question")
        if not isinstance(question, str):
            raise InputError("ask a question in the query language, as P(a | b=yes)")
        with self._asking:
            return {"text": repr((self.intervals or self.model).ask(question))}

    def _free(self, given: Mapping[str, object]) -> list[str]:
        return [name for name in self.model.domain if name not in given]


def _given(request: Mapping[str, Any]) -> dict[str, object]:
    given = request.get("given", {})
    if not isinstance(given, dict) or not all(isinstance(v, str) for v in given.values()):
        raise InputError("given must map columns to levels")
    return given
