"""A page on this machine, for one person: the server behind `discreet explore` and `discreet start`.

It listens on 127.0.0.1 only and answers nobody who does not know the random token in the address; requests whose Host
is another name are refused, so that no website can reach it through a name of its own. Pages may load nothing from
elsewhere. Routes are Bottle's; who may ask is decided before them.
"""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from io import StringIO
from socketserver import ThreadingMixIn
from typing import Any
from urllib.parse import parse_qs
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from bottle import BaseRequest, Bottle, HTTPResponse, request

from ..errors import DiscreetError, InputError
from ..io.strictjson import finite

LARGEST_REQUEST = 1 << 16
HOST = "127.0.0.1"
_ALONE = "img-src data:; base-uri 'none'; frame-ancestors 'none'"
_HEADERS = {
    "Cache-Control": "no-store",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "Server": "discreet",
}

Environment = dict[str, Any]


class LocalPage:
    """Routes behind a token. ``address`` holds it; :meth:`serve` answers until it is interrupted or closed."""

    def __init__(self, command: str, port: int, largest_request: int = LARGEST_REQUEST) -> None:
        self.command, self.largest_request = command, largest_request
        self.token = secrets.token_urlsafe(24)
        # Bottle's own limit for forms is a hundred kilobytes; ours is what :meth:`_refusal` keeps to.
        BaseRequest.MEMFILE_MAX = max(BaseRequest.MEMFILE_MAX, largest_request)
        self.routes = Bottle()
        self.routes.default_error_handler = _problem
        try:
            self._server = make_server(HOST, port, self._answer, _Server, _Handler)
        except (OSError, OverflowError) as error:
            raise InputError(f"port {port} on {HOST} cannot be used: {error}; take another with --port") from None

    @property
    def port(self) -> int:
        return int(self._server.server_address[1])

    @property
    def address(self) -> str:
        return self.at("/")

    def at(self, path: str) -> str:
        """The address of a page, with the token."""
        return f"http://{HOST}:{self.port}{path}?token={self.token}"

    def serve(self) -> None:
        self._server.serve_forever(poll_interval=0.2)

    def close(self) -> None:
        self._server.shutdown()
        self._server.server_close()

    def _answer(self, environ: Environment, start_response: Callable[..., Any]) -> Iterable[bytes]:
        def start(status: str, headers: list[tuple[str, str]], *more: Any) -> Any:
            own = {"Content-Security-Policy": f"default-src 'none'; {_ALONE}; form-action 'none'", **_HEADERS}
            said = {name.lower() for name, _ in headers}
            headers += [(name, value) for name, value in own.items() if name.lower() not in said]
            return start_response(status, headers, *more)

        if not os.environ.get("DISCREET_DEBUG"):
            environ["wsgi.errors"] = StringIO()  # Bottle writes there what failed, which may hold private values
        found = self._refusal(environ)
        # Bottle is not typed, and answers as any WSGI program does.
        return self.routes(environ, start) if found is None else found(environ, start)  # type: ignore[no-any-return]

    def _refusal(self, environ: Environment) -> Any:
        """What to say to who may not ask, or asks too much."""
        token = parse_qs(environ.get("QUERY_STRING", "")).get("token", [environ.get("HTTP_X_TOKEN", "")])[0]
        ours = {f"{name}:{self.port}" for name in (HOST, "localhost")}
        if environ.get("HTTP_HOST") not in ours or not secrets.compare_digest(token.encode(), self.token.encode()):
            said = f"the address needs the token that discreet {self.command} printed"
            return _plain(HTTPStatus.FORBIDDEN, said)
        size = environ.get("CONTENT_LENGTH") or ("0" if environ["REQUEST_METHOD"] == "GET" else "")
        if not size.isdecimal() or int(size) > self.largest_request:
            return _plain(HTTPStatus.BAD_REQUEST, f"a request has at most {self.largest_request} bytes")
        return None


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Silent: a browser that went away is no event, and what failed may hold private values."""


class _Handler(WSGIRequestHandler):
    timeout = 30

    def log_message(self, format: str, *arguments: Any) -> None:
        """Silent: the address holds the token."""

    def log_request(self, code: Any = "-", size: Any = "-") -> None:
        """Silent, too."""


def page(html: str, nonce: str, *, forms: bool = False) -> HTTPResponse:
    """A page whose one script bears the nonce; with ``forms`` it may send some, to us."""
    allowed = f"style-src 'unsafe-inline'; script-src 'nonce-{nonce}'; connect-src 'self'"
    form = "'self'" if forms else "'none'"
    policy = f"default-src 'none'; {allowed}; {_ALONE}; form-action {form}"
    return HTTPResponse(
        html.encode(), 200, {"Content-Type": "text/html; charset=utf-8", "Content-Security-Policy": policy}
    )


def say(value: Mapping[str, Any], status: int = HTTPStatus.OK) -> HTTPResponse:
    """Words for a script of the page."""
    body = json.dumps(finite(value), allow_nan=False).encode()
    return HTTPResponse(body, int(status), {"Content-Type": "application/json"})


def in_words(answer: Callable[[dict[str, Any]], Mapping[str, Any]]) -> HTTPResponse:
    """The answer to a request in JSON, or what is wrong with it."""
    try:
        try:
            asked = json.loads(request.body.read())
        except (ValueError, RecursionError):
            raise InputError("a request is JSON") from None
        if not isinstance(asked, dict):
            raise InputError("a request is a JSON object")
        return say(answer(asked))
    except DiscreetError as error:
        return say({"problem": str(error)}, HTTPStatus.BAD_REQUEST)


def _problem(error: Any) -> bytes:
    """What Bottle has to say: that there is no such page, or that something failed, without what."""
    known = error.status_code in (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED)
    said = "there is no such page" if known else "a defect of discreet; details are withheld"
    return json.dumps({"problem": said}).encode()


def _plain(status: HTTPStatus, said: str) -> Callable[..., Iterable[bytes]]:
    def answer(environ: Environment, start_response: Callable[..., Any]) -> Iterable[bytes]:
        body = json.dumps({"problem": said}).encode()
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
        start_response(f"{status.value} {status.phrase}", headers)
        return [body]

    return answer
