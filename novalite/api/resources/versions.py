# SPDX-License-Identifier: Apache-2.0
"""/, /v2.1 and /v2: the version documents. They need no token."""

import falcon

from novalite.api import http, links
from novalite.api.parts import Resource
from novalite.api.views import versions as view


class VersionsResource(Resource):
    """The list at the root."""

    def on_get(self, req: http.Request, resp: falcon.Response) -> None:
        """List all versions."""
        http.send(resp, view.everything(links.base(self.conf, req)))

    on_head = on_get  # what load balancers ask


class VersionResource(Resource):
    """The document of v2.1."""

    def on_get(self, req: http.Request, resp: falcon.Response) -> None:
        """Show the version with its microversions."""
        http.send(resp, view.one(links.base(self.conf, req), legacy=False))

    on_head = on_get  # what load balancers ask


class LegacyVersionResource(Resource):
    """The document of v2.0, which only points to itself."""

    def on_get(self, req: http.Request, resp: falcon.Response) -> None:
        """Show the version."""
        http.send(resp, view.one(links.base(self.conf, req), legacy=True))

    on_head = on_get  # what load balancers ask
