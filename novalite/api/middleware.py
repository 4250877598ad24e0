# SPDX-License-Identifier: Apache-2.0
"""What happens to every request before its handler and after it.

In this order: request id and start of the clock, project in the URL, who asks, microversion. The
version documents pass without a token. Afterwards: the access log.
"""

import re
import time
import urllib.parse
import uuid
from typing import Any

import falcon
from oslo_config import cfg

from novalite import context as context_module
from novalite import exception
from novalite.api import auth, formats, http, microversion, policy, request_log

DOCUMENTS = frozenset(("/", "/v2", "/v2/", "/v2.1", "/v2.1/"))
_ROOT = "/v2.1/"
_METHODS = frozenset(("GET", "POST", "PUT", "DELETE"))
_REQUEST_ID = re.compile(r"req-[0-9a-fA-F-]{36}\Z")


# What may stand in a Host header: it comes back in links, and must not bring anything along.
_HOST = re.compile(r"(?:[A-Za-z0-9._-]{1,255}|\[[0-9A-Fa-f:.]{2,45}\])(?::[0-9]{1,5})?\Z")


class BadHost(exception.Invalid):
    msg_fmt = "Malformed request: the Host header is no name or address with a port"


class MismatchedProject(exception.Invalid):
    """The project in the URL is not that of the token."""

    msg_fmt = (
        "Malformed request url: URL's project_id '%(url)s' doesn't match Context's project_id "
        "'%(context)s'"
    )


class RequestMiddleware:
    """Fills ``req.state`` and sets the headers that every answer has."""

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        authenticator: auth.Authenticator,
        nouns: frozenset[str],
        rules: policy.Policy,
    ):
        """*nouns* are the first path segments of the routes below /v2.1."""
        self._conf = conf
        self._authenticator = authenticator
        self._policy = rules
        self._nouns = nouns

    def process_request(self, req: http.Request, resp: falcon.Response) -> None:
        """Before routing."""
        state = req.state
        state.started = time.monotonic()
        state.request_id = f"req-{uuid.uuid4()}"
        state.path = urllib.parse.quote(req.path, safe="/:@!$&'()*+,;=~")
        if req.query_string:
            state.path = f"{state.path}?{req.query_string}"
        resp.set_headers(
            {
                "x-openstack-request-id": state.request_id,
                "x-compute-request-id": state.request_id,
                "Vary": microversion.VARY,
            }
        )
        self._announce(resp, microversion.MIN)
        state.max_body = int(self._conf.api.max_request_body_size)
        # Without the header, WSGI names the address that was connected to.
        if "HTTP_HOST" in req.env and not _HOST.match(req.env["HTTP_HOST"]):
            state.context = context_module.RequestContext(request_id=state.request_id)
            raise BadHost()
        if req.path in DOCUMENTS:
            state.context = context_module.RequestContext(request_id=state.request_id)
            return
        self._identify(req)
        state.version = microversion.requested(
            req.get_header(microversion.HEADER), req.get_header(microversion.LEGACY_HEADER)
        )
        self._announce(resp, state.version)
        self._locate(req)

    def _announce(self, resp: falcon.Response, version: int) -> None:
        text = microversion.text(version)
        resp.set_header(microversion.HEADER, f"compute {text}")
        resp.set_header(microversion.LEGACY_HEADER, text)

    def _identify(self, req: http.Request) -> None:
        outer = req.get_header("X-OpenStack-Request-Id") or ""
        # Until somebody is known, log lines carry the request id alone.
        req.state.context = context_module.RequestContext(request_id=req.state.request_id)
        context = self._authenticator.authenticate(
            req.env, req.state.request_id, outer if _REQUEST_ID.match(outer) else None
        )
        context.is_admin = self._policy.is_admin(context)
        req.state.context = context

    def _locate(self, req: http.Request) -> None:
        """Take the project id out of the path, so that one table of routes serves both forms.

        :raises MismatchedProject: it is another project than the token's
        """
        path = req.path
        if "\0" in path or (path.endswith("/") and path not in DOCUMENTS):
            raise falcon.HTTPNotFound()
        if req.method not in _METHODS:
            raise falcon.HTTPNotFound()
        if not path.startswith(_ROOT):
            return
        first, _, rest = path[len(_ROOT) :].partition("/")
        if not rest or first in self._nouns:
            return
        project = req.state.context.project_id or ""
        if first != project:
            if formats.is_uuid(first):
                raise MismatchedProject(url=first, context=project)
            return
        req.state.url_project = first
        req.path = _ROOT + rest

    def process_response(
        self, req: http.Request, resp: falcon.Response, _resource: Any, _succeeded: bool
    ) -> None:
        """After the handler or the error handler."""
        request_log.write(req, resp)
