# SPDX-License-Identifier: Apache-2.0
"""The request as handlers see it, and the two ways to answer.

Used by every resource. Nothing here decides anything: the middleware fills :class:`State`, the
handlers read it.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import falcon

from novalite import context as context_module

JSON = "application/json"


@dataclass(slots=True)
class State:
    """What the middleware found out about one request.

    ``version`` is the minor part of the microversion in use (53 means 2.53). ``url_project`` is
    the project id that stood in the URL, which then also stands in links, or "". ``max_body``
    is in bytes. ``load_body`` reads the body; see :attr:`body`.
    """

    started: float = 0.0
    request_id: str = ""
    path: str = ""
    version: int = 1
    url_project: str = ""
    max_body: int = 0
    load_body: Callable[[], Any] | None = None
    context: context_module.RequestContext = field(init=False)
    _body: Any = None

    @property
    def body(self) -> Any:
        """The decoded body, which fits the schema; None if the handler takes none.

        It is read and validated when a handler first asks for it, so that whoever may not do a
        thing hears that (403, 404) and not what is wrong with the body (400).
        """
        if self.load_body is not None:
            self._body = self.load_body()
            self.load_body = None
        return self._body


class Request(falcon.Request):
    """A request with a typed :class:`State`."""

    __slots__ = ("state",)

    def __init__(self, env: dict[str, Any], options: falcon.RequestOptions | None = None):
        super().__init__(env, options)
        self.state = State()


def encode(body: Any) -> bytes:
    """Return compact JSON."""
    return json.dumps(body, separators=(",", ":")).encode()


def send(resp: falcon.Response, body: Any, status: int = 200) -> None:
    """Answer with a JSON body."""
    resp.status = status
    resp.content_type = JSON
    resp.data = encode(body)


def send_nothing(resp: falcon.Response, status: int) -> None:
    """Answer without a body: 202 for accepted, 204 for done."""
    resp.status = status
    if status != 204:
        resp.content_type = JSON
        resp.data = b""
