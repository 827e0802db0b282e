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

from ..errors import DiscreetError, InputError, counted
from ..models.base import Model
from . import words
from .drawing import graph_svg
from .page import NAMES, example_question, resource, template

LARGEST_REQUEST = 1 << 16
HOST = "127.0.0.1"


class Explorer:
    """A model behind a page. ``address`` holds the token; :meth:`serve` answers until it is interrupted."""

    def __init__(self, model: Model, *, title: str | None = None, port: int = 0) -> None:
        self.model = model
        self.title = title or f"{NAMES.get(model.kind, 'A model')} of {counted(len(model.domain), 'column')}"
        self.token = secrets.token_urlsafe(24)
        self._asking = Lock()  # models cache beliefs: one question at a time
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
        is_release = card is not None and "budget" in card and card.get("origin") == "release"
        return str(
            template("explore.html.j2").render(
                title=self.title,
                nonce=nonce,
                style=resource("style.css"),
                script=resource("explore.js"),
                guarantee=words.guarantee(card) if is_release and card is not None else [],
                how_good=words.how_good(card or {}),
                graph=graph_svg(self.model, self.model.edge_strength()),
                columns=[{"name": a.name, "labels": list(a.labels)} for a in self.model.domain.attributes],
                example=example_question(self.model),
            )
        )

    def beliefs(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """P(column | given) of every column that is not given, and how probable what is given is."""
        given = _given(request)
        free = [name for name in self.model.domain if name not in given]
        answers = {name: self.model.marginal(name, given) for name in free}
        return {
            "marginals": {name: answer.probabilities.tolist() for name, answer in answers.items()},
            "probability": self.model.probability(given) if given else 1.0,
            "method": next(iter({a.method for a in answers.values()} - {"exact"}), "exact"),
        }

    def most_probable(self, request: Mapping[str, Any]) -> dict[str, Any]:
        return {"text": repr(self.model.map(given=_given(request)))}

    def ask(self, request: Mapping[str, Any]) -> dict[str, Any]:
        question = request.get("question")
        if not isinstance(question, str):
            raise InputError("ask a question in the query language, as P(a | b=yes)")
        return {"text": repr(self.model.ask(question))}

    def answer(self, path: str, request: Mapping[str, Any]) -> dict[str, Any] | None:
        """The answer to a request, or None for a path that does not exist."""
        paths: dict[str, Callable[[Mapping[str, Any]], dict[str, Any]]] = {
            "/beliefs": self.beliefs,
            "/map": self.most_probable,
            "/ask": self.ask,
        }
        if path not in paths:
            return None
        with self._asking:
            return paths[path](request)


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
            found = answer is not None
            self._say(
                HTTPStatus.OK if found else HTTPStatus.NOT_FOUND, answer or {"problem": "there is no such question"}
            )

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
