# SPDX-License-Identifier: Apache-2.0
"""/servers/{server_id}/topology: the NUMA nodes of a server, since 2.78."""

import falcon

from novalite.api import http, microversion
from novalite.api.parts import Resource
from novalite.api.resources import servers


class ServerTopologyResource(Resource):
    """/servers/{server_id}/topology"""

    @microversion.between(78)
    def on_get(self, req: http.Request, resp: falcon.Response, server_id: str) -> None:
        """Show the topology. No server here has one: guests get no NUMA nodes of their own, and
        this is what Nova answers for such servers."""
        servers.find(self.parts, req, server_id, "compute:server:topology:index")
        http.send(resp, {"nodes": [], "pagesize_kb": None})
