# SPDX-License-Identifier: Apache-2.0
"""/servers/{server_id}/ips: the addresses of a server by network."""

from typing import Any

import falcon

from novalite import exception
from novalite.api import http
from novalite.api.parts import Resource
from novalite.api.resources import servers
from novalite.api.views import servers as view


def _addresses(row: Any) -> dict[str, list[dict[str, Any]]]:
    return view.addresses(row.network_info, extended=False)


class IpsResource(Resource):
    """/servers/{server_id}/ips"""

    def on_get(self, req: http.Request, resp: falcon.Response, server_id: str) -> None:
        """List the addresses of all networks."""
        row = servers.find(self.parts, req, server_id, "ips:index")
        http.send(resp, {"addresses": _addresses(row)})


class IpResource(Resource):
    """/servers/{server_id}/ips/{network}"""

    def on_get(
        self, req: http.Request, resp: falcon.Response, server_id: str, network: str
    ) -> None:
        """Show the addresses of one network."""
        row = servers.find(self.parts, req, server_id, "ips:show")
        found = _addresses(row)
        if network not in found:
            raise exception.NotFound("Instance is not a member of specified network")
        http.send(resp, {network: found[network]})
