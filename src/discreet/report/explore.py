"""A page on this machine to explore a model: click what is given, and see the other columns move.

The server listens on 127.0.0.1 only and answers nobody who does not know the random token in the address; requests
whose Host is another name are refused, so that no website can reach it through a name of its own. It holds one model.
It reads no rows: there is no way to hand it any.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock
from typing import Any
from urllib.parse import parse_qs, urlsplit

import numpy as np
from numpy.typing import NDArray

from ..claimed import CLAIMED
from ..errors import DiscreetError, EvidenceError, InputError, counted
from ..models.base import Model
from ..release.uncertainty import NoiseIntervals
from . import words
from .drawing import drawn_edges, graph_svg
from .levels import percent
from .page import NAMES, example_question
from .pages import resource, template

LARGEST_REQUEST = 1 << 16
HOST = "127.0.0.1"


class Explorer:
    """A model behind a page. ``address`` holds the token; :meth:`serve` answers until it is interrupted.

    With ``intervals`` (of this model) the page says of every number how far noise can have moved it.
    """

    def __init__(
        self, model: Model, *, intervals: NoiseIntervals | None = None, title: str | None = None, port: int = 0
    ) -> None:
        self.model = model
        self.intervals = intervals
        self.title = title or f"{NAMES.get(model.kind, 'A model')} of {counted(len(model.domain), 'column')}"
        self.token = secrets.token_urlsafe(24)
        self._asking = Lock()  # models cache beliefs: one question at a time
        self._latest = 0  # how often beliefs were asked for: what noise did to older ones is no longer of interest
        try:
            self._server = ThreadingHTTPServer((HOST, port), _handler(self))
        except (OSError, OverflowError) as error:
            raise InputError(f"port {port} on {HOST} cannot be used: {error}; take another with --port") from None
        self._server.daemon_threads = True

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def address(self) -> str:
        return f"http://{HOST}:{self.port}/?token={self.token}"

    def serve(self) -> None:
        self._server.serve_forever(poll_interval=0.2)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    # -- what the page can ask -----------------------------------------------------------------------------------------

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
                level="" if self.intervals is None else f"{100 * self.intervals.level:g} %",
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

        def beliefs(model: Model) -> NDArray[np.float64]:
            with self._asking:
                if self._latest != asked:
                    raise _Overtaken
                return np.concatenate([model.marginal(name, given).probabilities for name in names])

        try:
            found = self.intervals.of(beliefs) if names else None
        except (_Overtaken, EvidenceError):  # under some noise what is given cannot be
            return {}
        if found is None:
            return {}
        lower, upper = np.clip(found.lower, 0, 1), np.clip(found.upper, 0, 1)
        half = np.maximum(upper - found.estimate, found.estimate - lower)
        texts = [percent(p, h) for p, h in zip(found.estimate.tolist(), half.tolist(), strict=True)]
        out: dict[str, dict[str, Any]] = {}
        at = 0
        for name in names:
            part = slice(at, at := at + self.model.domain[name].size)
            out[name] = {"texts": texts[part], "lower": lower[part].tolist(), "upper": upper[part].tolist()}
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

    def answer(self, path: str, request: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answer to a request, or None for a path that does not exist."""
        paths: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "/beliefs": self.beliefs,
            "/noise": self.noise,
            "/map": self.most_probable,
            "/ask": self.ask,
        }
        return paths[path](request) if path in paths else None


class _Overtaken(Exception):
    """Something else was clicked in the meantime."""


def _given(request: Mapping[str, Any]) -> dict[str, object]:
    given = request.get("given", {})
    if not isinstance(given, dict) or not all(isinstance(v, str) for v in given.values()):
        raise InputError("given must map columns to levels")
    return given


def _handler(explorer: Explorer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        server_version = "discreet"
        sys_version = ""
        timeout = 30

        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            if not self._is_known(parse_qs(parts.query).get("token", [""])[0]):
                return
            if parts.path != "/":
                self._say(HTTPStatus.NOT_FOUND, {"problem": "there is no such page"})
                return
            nonce = secrets.token_urlsafe(12)
            self._send(HTTPStatus.OK, explorer.page(nonce).encode(), "text/html; charset=utf-8", nonce)

        def do_POST(self) -> None:
            if not self._is_known(self.headers.get("X-Token", "")):
                return
            try:
                answer = explorer.answer(urlsplit(self.path).path, self._request())
            except DiscreetError as error:
                self._say(HTTPStatus.BAD_REQUEST, {"problem": str(error)})
                return
            if answer is None:
                self._say(HTTPStatus.NOT_FOUND, {"problem": "there is no such question"})
            else:
                self._say(HTTPStatus.OK, answer)

        def _is_known(self, token: str) -> bool:
            ours = {f"{name}:{explorer.port}" for name in (HOST, "localhost")}
            if self.headers.get("Host") in ours and secrets.compare_digest(token.encode(), explorer.token.encode()):
                return True
            self._say(HTTPStatus.FORBIDDEN, {"problem": "the address needs the token that discreet explore printed"})
            return False

        def _request(self) -> dict[str, Any]:
            size = self.headers.get("Content-Length", "")
            if not size.isdecimal() or int(size) > LARGEST_REQUEST:
                raise InputError(f"a request has at most {LARGEST_REQUEST} bytes")
            try:
                request = json.loads(self.rfile.read(int(size)))
            except (ValueError, RecursionError):
                raise InputError("a request is JSON") from None
            if not isinstance(request, dict):
                raise InputError("a request is a JSON object")
            return request

        def _say(self, status: HTTPStatus, value: Mapping[str, Any]) -> None:
            self._send(status, json.dumps(value).encode(), "application/json")

        def _send(self, status: HTTPStatus, body: bytes, kind: str, nonce: str = "") -> None:
            self.send_response(status)
            allowed = f"style-src 'unsafe-inline'; script-src 'nonce-{nonce}'; connect-src 'self'; "
            headers = {
                "Content-Type": kind,
                "Content-Length": str(len(body)),
                "Cache-Control": "no-store",
                "Referrer-Policy": "no-referrer",
                "X-Content-Type-Options": "nosniff",
                "Content-Security-Policy": f"default-src 'none'; {allowed if nonce else ''}img-src data:; "
                "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
            }
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Silent: the address holds the token."""

    return Handler
