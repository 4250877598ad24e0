# SPDX-License-Identifier: Apache-2.0
"""The microversion of a request to block storage: read, kept, and said back.

Clients take an answer without the header for one of another version, so every answer has it.
"""

from typing import Any

import falcon

from novalite.neighbors.http import Fault

LEAST, MOST = 0, 70
HEADER = "OpenStack-API-Version"


class Echo:
    """Middleware that does so."""

    def process_request(self, req: falcon.Request, _resp: falcon.Response) -> None:
        """Read the version; without one it is the oldest."""
        req.context.minor = LEAST
        for word in (req.get_header(HEADER) or "").split(","):
            service, _, asked = word.strip().partition(" ")
            if service == "volume":
                req.context.minor = _minor(asked.strip())

    def process_response(
        self, req: falcon.Request, resp: falcon.Response, _resource: Any, _ok: bool
    ) -> None:
        """Say the version."""
        resp.set_header(HEADER, f"volume 3.{getattr(req.context, 'minor', LEAST)}")
        resp.set_header("Vary", HEADER)


def _minor(asked: str) -> int:
    if asked == "latest":
        return MOST
    major, _, minor = asked.partition(".")
    if major != "3" or not minor.isdecimal():
        raise Fault(400, f"API Version String {asked} is of invalid format. Must be of format 3.N.")
    if int(minor) > MOST:
        raise Fault(
            406,
            f"Version {asked} is not supported by the API. Minimum is 3.{LEAST} and maximum is "
            f"3.{MOST}.",
        )
    return int(minor)


def need(req: falcon.Request, minor: int) -> None:
    """Refuse what came with a later version.

    :raises Fault: 404
    """
    if req.context.minor < minor:
        raise Fault(404, "The resource could not be found.")
