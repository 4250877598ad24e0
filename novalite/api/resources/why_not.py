# SPDX-License-Identifier: Apache-2.0
"""/servers/{server_id}/why-not: what all filters say of a host for a server; ours, not Nova's."""

import falcon

from novalite.api import http, paging, questions
from novalite.api.parts import Resource
from novalite.api.resources import servers
from novalite.api.views import why_not as view


class WhyNotResource(Resource):
    """/servers/{server_id}/why-not"""

    def on_get(self, req: http.Request, resp: falcon.Response, server_id: str) -> None:
        """Ask the scheduler anew what it thinks of one host, or of all."""
        row = servers.find(self.parts, req, server_id, "servers:why-not", read_deleted=True)
        context = req.state.context
        values = paging.values(req)
        paging.refuse_unknown(values, req.state.version, "host", since=1)
        host = paging.last(values, "host")
        found = questions.why_not(self.parts, context, server_id, host)
        admin = self.policy.allows(context, "servers:explain:host_details", row.project_id)
        http.send(resp, view.show(row, found, admin=admin))
