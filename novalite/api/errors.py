# SPDX-License-Identifier: Apache-2.0
"""The one table from exceptions to HTTP, looked up by MRO. Resources hold no ``try``.

A 500 tells the request id and nothing else; the log has the rest.
"""

import logging
from typing import Any

import falcon

from novalite import exception
from novalite.api import auth, http, microversion, validation

LOG = logging.getLogger(__name__)

# Exception -> status. The nearest class in the MRO decides, so a new subclass needs no row unless
# it differs; what is not listed at all is a 500.
STATUS: dict[type[Exception], int] = {
    exception.Invalid: 400,
    validation.RequestTooLarge: 413,
    validation.UnsupportedMediaType: 415,
    auth.Unauthenticated: 401,
    exception.Forbidden: 403,
    exception.NotFound: 404,
    microversion.VersionNotAcceptable: 406,
    exception.Conflict: 409,
    exception.Unavailable: 503,
    exception.NeighborError: 500,
    exception.NoValidHost: 500,
    exception.ComputeResourcesUnavailable: 500,
    exception.RescheduledException: 500,
    exception.BuildAbortException: 500,
    exception.BuildCancelled: 500,
    exception.HypervisorError: 500,
    exception.PortBindingFailed: 500,
    exception.ConfigurationError: 500,
    exception.NovaliteException: 500,
}

# Seconds after which a client should ask again what could not be answered.
RETRY_AFTER = "2"
# Status -> the key that wraps the error, Nova's words.
KEYS = {
    400: "badRequest",
    401: "error",
    403: "forbidden",
    404: "itemNotFound",
    406: "computeFault",
    409: "conflictingRequest",
    413: "overLimit",
    415: "badMediaType",
    500: "computeFault",
    501: "notImplemented",
    503: "serviceUnavailable",
}

NOT_FOUND = "The resource could not be found."


def status_of(error: BaseException) -> int:
    """Return the HTTP status for an exception of the domain, 500 for any other."""
    for cls in type(error).__mro__:
        found = STATUS.get(cls)
        if found is not None:
            return found
    return 500


def body(status: int, message: str) -> dict[str, Any]:
    """Return the body of an error."""
    content: dict[str, Any] = {"code": status, "message": message}
    if status == 401:
        content["title"] = "Unauthorized"  # as keystonemiddleware answers
    return {KEYS.get(status, "computeFault"): content}


def unexpected(request_id: str) -> str:
    """Return what a 500 says."""
    return f"Unexpected API Error. The request id is {request_id}."


def handle_domain(req: http.Request, resp: falcon.Response, error: Any, _params: Any) -> None:
    """Answer for an exception of novalite, its ``X_Remote`` twin included."""
    status = status_of(error)
    if status == 500:
        LOG.error("%s: %s", type(error).__name__, error.message(), exc_info=error)
        message = unexpected(req.state.request_id)
    else:
        message = error.message()
    if status == 401:
        resp.set_header("WWW-Authenticate", error.challenge)
    if status == 503:
        resp.set_header("Retry-After", RETRY_AFTER)
    http.send(resp, body(status, message), status)


def handle_falcon(req: http.Request, resp: falcon.Response, error: Any, _params: Any) -> None:
    """Answer for what Falcon itself refuses: no such route, no such method, a broken request."""
    status = int(error.status_code)
    if status in (404, 405):
        # Clients of Nova understand 404 for "there is no such thing here", not 405.
        http.send(resp, body(404, NOT_FOUND), 404)
    elif status >= 500:
        http.send(resp, body(500, unexpected(req.state.request_id)), 500)
    else:
        http.send(resp, body(status, error.description or error.title or ""), status)


def handle_unexpected(req: http.Request, resp: falcon.Response, error: Any, _params: Any) -> None:
    """Answer for a bug: the log gets the traceback, the user the request id."""
    LOG.error("Unexpected exception in API method", exc_info=error)
    http.send(resp, body(500, unexpected(req.state.request_id)), 500)


def register(app: "falcon.App[Any, Any]") -> None:
    """Make *app* answer every exception in Nova's form."""
    app.add_error_handler(Exception, handle_unexpected)
    app.add_error_handler(falcon.HTTPError, handle_falcon)
    app.add_error_handler(exception.NovaliteException, handle_domain)
