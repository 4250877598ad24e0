# SPDX-License-Identifier: Apache-2.0
"""What the stand-ins share over HTTP: faults, tokens at the door, bodies, the access log.

Used by the three applications. Knows nothing of what they serve.
"""

import datetime
import functools
import json
import logging
import sqlite3
import time
import uuid
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias
from urllib import parse

import falcon

from novalite import context
from novalite.neighbors.identity.tokens import Caller, InvalidToken, Tokens
from novalite.neighbors.store import Doc, StoreLocked

LOG = logging.getLogger("novalite.neighbors")

MAX_BODY = 4 * 1024 * 1024
TITLES = {
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    406: "Not Acceptable",
    409: "Conflict",
    410: "Gone",
    413: "Request Entity Too Large",
    415: "Unsupported Media Type",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


class Fault(Exception):
    """An answer that is an error; ``kind`` is the error type that network v2.0 names."""

    def __init__(self, status: int, message: str, kind: str = ""):
        super().__init__(message)
        self.status = status
        self.message = message
        self.kind = kind or "HTTP" + TITLES.get(status, "Error").replace(" ", "")


def not_found(noun: str, record_id: str) -> Fault:
    """Return the fault for a record that is not there or not the caller's to see."""
    return Fault(404, f"{noun} {record_id} could not be found.", noun.replace(" ", "") + "NotFound")


def standard_error(fault: Fault) -> Doc:
    """Render a fault as identity and image do."""
    title = TITLES.get(fault.status, "Error")
    return {"error": {"code": fault.status, "title": title, "message": fault.message}}


Render = Callable[[Fault], Doc]
App: TypeAlias = "falcon.App[Any, Any]"


class Gate:
    """Middleware: request id, token check, access log.

    A resource lists in ``anonymous`` the methods that need no token.
    """

    def __init__(self, service: str, tokens: Tokens):
        self._service = service
        self._tokens = tokens

    def process_request(self, req: falcon.Request, _resp: falcon.Response) -> None:
        """Give the request its id; a client's own id is kept as the global one."""
        req.context.started = time.perf_counter()
        asked = req.get_header("X-OpenStack-Request-ID")
        req.context.log = context.RequestContext(
            global_request_id=asked if asked and asked.startswith("req-") else None
        )

    def process_resource(
        self, req: falcon.Request, _resp: falcon.Response, resource: Any, _params: Any
    ) -> None:
        """Turn the token into the caller; refuse without one."""
        if req.method in getattr(resource, "anonymous", ()):
            return
        try:
            caller = self._tokens.caller(req.get_header("X-Auth-Token") or "")
        except InvalidToken as error:
            raise Fault(401, str(error)) from error
        if not caller.target and self._service != "identity":
            raise Fault(403, "This needs a token with a scope; log in to a project.")
        req.context.caller = caller
        req.context.log.user_id = caller.user_id
        req.context.log.project_id = caller.project_id

    def process_response(
        self, req: falcon.Request, resp: falcon.Response, _resource: Any, _ok: bool
    ) -> None:
        """Write the request id and the line of the access log."""
        log: context.RequestContext = req.context.log
        resp.set_header("X-OpenStack-Request-ID", log.request_id)
        size = len(resp.data or b"") if resp.stream is None else resp.get_header("Content-Length")
        LOG.info(
            '%s: %s "%s %s HTTP/1.1" status: %s len: %s time: %.7f%s',
            self._service,
            req.remote_addr,
            req.method,
            req.relative_uri,
            resp.status_code,
            size,
            time.perf_counter() - req.context.started,
            f" for: {log.global_request_id}" if log.global_request_id else "",
        )


def make_app(
    service: str,
    tokens: Tokens,
    routes: Iterable[tuple[str, object]],
    render: Render,
    middleware: Iterable[Any] = (),
) -> App:
    """Return the application of one service from its table of routes.

    :param middleware: what the service has besides; it sees a request after the gate
    """
    app: App = falcon.App(middleware=[Gate(service, tokens), *middleware])
    app.req_options.keep_blank_qs_values = True
    app.req_options.auto_parse_qs_csv = False

    def answer(resp: falcon.Response, fault: Fault) -> None:
        resp.status = fault.status
        if fault.status == 401:
            resp.set_header("WWW-Authenticate", "Keystone")
        reply(resp, render(fault), fault.status)

    def on_fault(_req: Any, resp: falcon.Response, error: Fault, _params: Any) -> None:
        answer(resp, error)

    def on_http(_req: Any, resp: falcon.Response, error: falcon.HTTPError, _params: Any) -> None:
        # Clients do not understand 405; a method that a path does not have is a path not found.
        status = 404 if error.status_code == 405 else error.status_code
        answer(resp, Fault(status, error.description or "The resource could not be found."))

    def on_locked(_req: Any, resp: falcon.Response, error: StoreLocked, _params: Any) -> None:
        LOG.error("%s", error)
        answer(resp, Fault(503, "The database is busy, try again."))

    def on_crash(req: falcon.Request, resp: falcon.Response, error: Exception, _p: Any) -> None:
        LOG.error("%s %s failed", req.method, req.path, exc_info=error)
        ident = req.context.log.request_id
        answer(resp, Fault(500, f"The request {ident} failed inside the {service} service."))

    app.add_error_handler(Exception, on_crash)
    app.add_error_handler(falcon.HTTPError, on_http)
    app.add_error_handler(StoreLocked, on_locked)
    app.add_error_handler(Fault, on_fault)
    for template, resource in routes:
        app.add_route(template, resource)
    return app


def caller(req: falcon.Request) -> Caller:
    """Return who asks."""
    found: Caller = req.context.caller
    return found


def reply(resp: falcon.Response, body: Doc, status: int = 200) -> None:
    """Answer with a JSON body."""
    resp.status = status
    resp.content_type = falcon.MEDIA_JSON
    resp.data = json.dumps(body).encode()


def body(req: falcon.Request) -> Any:
    """Return the request's JSON document.

    :raises Fault: 400 when it is none, 413 when it is too long
    """
    raw = stream(req).read(MAX_BODY + 1)
    if len(raw) > MAX_BODY:
        raise Fault(413, f"The body is longer than {MAX_BODY} bytes.")
    try:
        return json.loads(raw)
    except (ValueError, UnicodeDecodeError) as error:
        raise Fault(400, f"The body is not valid JSON: {error}") from error


def body_object(req: falcon.Request, key: str) -> Doc:
    """Return the object under *key* of the request's JSON document.

    :raises Fault: 400 naming the key
    """
    document = body(req)
    found = document.get(key) if isinstance(document, dict) else None
    if not isinstance(found, dict):
        raise Fault(400, f"The body must be an object with the key '{key}' holding an object.")
    return found


def stream(req: falcon.Request) -> Any:
    """Return the body's stream, ended by its length or by the last chunk."""
    if "chunked" in (req.get_header("Transfer-Encoding") or "").lower():
        return req.stream
    return req.bounded_stream


def query(req: falcon.Request) -> dict[str, list[str]]:
    """Return the query's parameters, each with all its values."""
    return parse.parse_qs(req.query_string, keep_blank_values=True)


def isotime(moment: float, fraction: bool = False) -> str:
    """Return *moment* (seconds since the epoch) as text in UTC with a Z."""
    stamp = datetime.datetime.fromtimestamp(moment, datetime.UTC)
    return stamp.strftime("%Y-%m-%dT%H:%M:%S.%fZ" if fraction else "%Y-%m-%dT%H:%M:%SZ")


def hex_id() -> str:
    """Return a new id as identity writes it: 32 hexadecimal digits."""
    return uuid.uuid4().hex


def same(value: Any, wanted: str) -> bool:
    """Tell whether a document's value is what a query asks for."""
    if isinstance(value, bool):
        return wanted.lower() in (("true", "1", "yes") if value else ("false", "0", "no"))
    if value is None:
        return wanted.lower() in ("", "none", "null")
    if isinstance(value, list):
        return wanted in value
    return str(value) == wanted


def boolean(values: list[str] | None) -> bool | None:
    """Return the truth that a query parameter asks for, None if it is absent."""
    if not values:
        return None
    return values[-1].lower() in ("true", "1", "yes")


def limit(params: dict[str, list[str]], most: int) -> int:
    """Return the page size asked for, at most *most*.

    :raises Fault: 400 when it is no number or negative
    """
    values = params.get("limit")
    if not values:
        return most
    if not values[-1].isdecimal():
        raise Fault(400, f"limit must be a number that is not negative, not '{values[-1]}'.")
    return min(int(values[-1]), most)


def page(items: list[Doc], params: dict[str, list[str]], size: int) -> tuple[list[Doc], bool]:
    """Return the page after the marker and whether more follow.

    :raises Fault: 400 when the marker is not in the list
    """
    start, marker = 0, (params.get("marker") or [""])[-1]
    if marker:
        places = [index for index, item in enumerate(items) if item["id"] == marker]
        if not places:
            raise Fault(400, f"The marker {marker} is not in this list.")
        start = places[0] + 1
    return items[start : start + size], len(items) > start + size


def sort(items: list[Doc], keys: list[str], directions: list[str]) -> list[Doc]:
    """Sort stably by the keys, the first one first; missing values come first.

    :raises Fault: 400 for a direction that is neither asc nor desc
    """
    for place in reversed(range(len(keys))):
        key = keys[place]
        direction = directions[place] if place < len(directions) else "asc"
        if direction not in ("asc", "desc"):
            raise Fault(400, f"sort_dir must be asc or desc, not '{direction}'.")
        items = sorted(items, key=functools.partial(_order, key), reverse=direction == "desc")
    return items


def _order(key: str, item: Doc) -> tuple[int, Any]:
    value = item.get(key)
    if value is None:
        return 0, 0
    if isinstance(value, (int, float)):
        return 1, value
    return 2, str(value)


def integrity(error: sqlite3.IntegrityError, message: str) -> Fault:
    """Return the 409 for a broken rule of uniqueness."""
    fault = Fault(409, message)
    fault.__cause__ = error
    return fault
